"""Visual meshes of a robot, read from the URDF file from which a mechanism was imported."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from kic.errors import short_repr
from kic.io.robot import clean_name, transform
from kic.io.urdf import placement
from kic.io.xml import Element, read_root
from kic.mechanism import Mechanism
from kic.numerics.optional import import_optional
from kic.plotting.symbols import STEEL, Colour, rgba
from kic.viewer.solids import BALL, BOX, CYLINDER, Mesh, Part


def visual_parts(mechanism: Mechanism, file: str | os.PathLike[str]) -> tuple[list[Part], list[str]]:
    """Return the visual meshes of the links of a URDF file as parts, and why other meshes are not shown.

    Links are found by the frames that import gives them; links without a frame are left out.
    """
    root, folder = read_root(file, "URDF"), Path(file).resolve().parent
    colours = {m.get("name", ""): _colour(m) for m in root.all("material") if m.find("color")}
    frames = {frame.name: frame for frame in mechanism.frames}
    parts, missing = list[Part](), dict[str, None]()
    for link in root.all("link"):
        name = clean_name(link.get("name"))
        frame = frames.get(f"{name}_frame") or frames.get(name)
        if frame is None:
            continue
        for visual in link.all("visual"):
            shape = next((one for geometry in visual.all("geometry") for one in geometry.children), None)
            if shape is None:
                continue
            mesh = _mesh(shape, folder)
            if isinstance(mesh, str):
                missing[f"{shape.get('filename', shape.tag)} ({mesh})"] = None
                continue
            T = transform(frame.origin, np.transpose(frame.axes)) @ placement(visual.find("origin"))
            own = visual.find("material")
            colour = colours.get(own.get("name", ""), rgba(STEEL)) if own else rgba(STEEL)
            if own and own.find("color"):
                colour = _colour(own)
            placed = Mesh(mesh.vertices @ T[:3, :3].T + T[:3, 3], mesh.faces)
            parts.append(Part(frame.body, placed, colour))
    return parts, list(missing)


def _colour(material: Element) -> Colour:
    numbers = [one.vector("rgba", count=4) for one in material.all("color")]
    red, green, blue, alpha = numbers[0]
    return (red, green, blue, alpha)


def _mesh(shape: Element, folder: Path) -> Mesh | str:
    """Return the mesh of a shape in its own axes, or the reason why there is none."""
    if shape.tag == "box":
        return Mesh(BOX.vertices * np.array(shape.vector("size")) / 2, BOX.faces)
    if shape.tag == "sphere":
        return Mesh(BALL.vertices * shape.number("radius"), BALL.faces)
    if shape.tag == "cylinder":
        scale = [shape.number("radius")] * 2 + [shape.number("length")]
        return Mesh(CYLINDER.vertices * scale, CYLINDER.faces)
    if shape.tag != "mesh":
        return "not a shape of URDF"
    file = _find(shape.get("filename", ""), folder)
    if file is None:
        return "no such file"
    trimesh = import_optional("trimesh", "view", "Meshes need trimesh")
    try:
        found = trimesh.load(file, force="mesh")
    except Exception as error:  # each format has errors of its own, and some need further packages
        return short_repr(str(error) or type(error).__name__)[1:-1]
    if not len(found.faces):
        return "no faces"
    return Mesh(np.asarray(found.vertices) * shape.vector("scale", "1 1 1"), np.asarray(found.faces))


def _find(name: str, folder: Path) -> Path | None:
    """Return the file of a mesh; packages are searched in the folders above the file of the robot."""
    path = Path(name.removeprefix("file://").removeprefix("package://").removeprefix("model://"))
    inner = Path(*path.parts[1:]) if "package://" in name else path
    places = [base / one for base in (folder, *folder.parents) for one in (path, inner)]
    return next((place for place in places if place.is_file()), None)
