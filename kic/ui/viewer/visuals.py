"""Visual meshes of a robot, read from the URDF, SDF or MJCF file from which a mechanism was imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from kic.description.validation import GROUND
from kic.errors import ModelFileError, short_repr
from kic.io.mjcf import compiled_geometry
from kic.io.robot import MESH_BYTES_MAX, TOO_LARGE, WORLD, clean_name, frame_of, part_names, transform
from kic.io.sdf import own_pose
from kic.io.urdf import placement
from kic.io.xml import Element, read_root
from kic.mechanism.mechanism import Mechanism
from kic.numerics.optional import import_optional
from kic.plotting.symbols import STEEL, Colour, rgba
from kic.ui.viewer.solids import BALL, BOX, CYLINDER, Mesh, Part, joined_meshes

# MuJoCo's own viewer shows the first groups; the rest are for collisions
_GROUPS_SHOWN = 3
# files that mark the directory of a package of ROS or Gazebo
_PACKAGES = ("package.xml", "model.config")
_NOT_FOUND = "no such file in the directory of the model or those of `meshes`"
# formats of meshes, all uncompressed, and the size of all files together
_FORMATS = ("stl", "obj", "ply", "off", "dae", "glb", "gltf")
_MESHES_BYTES_MAX = 10 * MESH_BYTES_MAX
# colour of MuJoCo that leaves the colour to the material
_NO_COLOUR = (0.5, 0.5, 0.5, 1.0)


class Shape(NamedTuple):
    """Mesh in a frame (4, 4) of a link, or the reason why it is not shown."""

    link: str
    pose: np.ndarray
    name: str
    mesh: Mesh | str
    colour: Colour


class Folders:
    """Directories of mesh files: that of a model file, or of its package, and `further` directories."""

    def __init__(self, file: str | os.PathLike[str], further: Iterable[str] = ()) -> None:
        self.further = [Path(one).resolve() for one in further]
        above = _folders_of_package(Path(file).resolve().parent)
        # names may have links to the same directories
        named = _folders_of_package(Path(os.path.abspath(file)).parent)
        self._bases = [*above, *self.further]
        self._allowed = [above[-1], *self.further]
        self._named = [*self._allowed, named[-1], *(Path(os.path.abspath(one)) for one in further)]
        self.bytes = 0

    def find(self, name: str) -> Path | None:
        """Return the file of a mesh, or None if no directory contains it.

        Names are relative to the file, to the directories above it in its package, or to further directories.
        Files elsewhere, to which a name, an address or a symbolic link may refer, are not read.
        """
        scheme, _, path = name.rpartition("://")
        if scheme in ("http", "https"):
            return None
        if scheme == "file":
            path = re.sub(r"^/(?=[A-Za-z]:)", "", path.removeprefix("localhost"))  # file:///C:/arm.stl
        names = [path, unquote(path)]
        names += [one.partition("/")[2] for one in names if scheme in ("package", "model")]
        places = [os.path.normpath(base / one) for base in self._bases for one in names]
        # a Windows path may refer to another computer, which is not contacted
        named = (one for one in places if _is_in(one, self._named) and os.path.isfile(one))
        return next((one for one in map(Path.resolve, map(Path, named)) if _is_in(one, self._allowed)), None)


def _is_in(place: str | Path, folders: Iterable[Path]) -> bool:
    return any(Path(place).is_relative_to(folder) for folder in folders)


def _folders_of_package(folder: Path) -> list[Path]:
    """Return a directory and its parents up to that of its package, or the directory alone."""
    above = [folder, *folder.parents]
    marks = (k for k, one in enumerate(above) if any((one / name).is_file() for name in _PACKAGES))
    return above[: next(marks, 0) + 1]


def visual_parts(
    mechanism: Mechanism, file: str | os.PathLike[str], further: Iterable[str] = ()
) -> tuple[list[Part], list[str]]:
    """Return the visual meshes of the links of a file as parts, and the reasons why others are not shown.

    Links are found by the frames that import gives them; links without a frame are omitted. `further` are
    directories that meshes may be read from.
    """
    root, folders = read_root(file, "robot"), Folders(file, further)
    shapes = {"sdf": _of_sdf, "mujoco": _of_mjcf}.get(root.tag, _of_urdf)
    frames = {frame.name: frame for frame in mechanism.frames}
    parts, missing = list[Part](), dict[str, None]()
    for link, pose, name, mesh, colour in shapes(root, folders):
        own = clean_name(link)
        frame = None if link == WORLD else frames.get(f"{own}_frame") or frames.get(own)
        if isinstance(mesh, str):
            missing[f"{name} ({mesh})"] = None
        elif frame is not None or link == WORLD:
            T = pose if frame is None else transform(frame.origin, np.transpose(frame.axes)) @ pose
            placed = Mesh(mesh.vertices @ T[:3, :3].T + T[:3, 3], mesh.faces)
            parts.append(Part(frame.body if frame else GROUND, placed, colour))
    return parts, list(missing)


def _of_urdf(root: Element, folders: Folders) -> Iterator[Shape]:
    colours = {m.get("name", ""): _colour(m) for m in root.all("material") if m.find("color")}
    for link in root.all("link"):
        for visual in link.all("visual"):
            shape = next((one for geometry in visual.all("geometry") for one in geometry.children), None)
            if shape is None:
                continue
            size = np.array(shape.vector("size")) if shape.tag == "box" else np.zeros(3)
            keys = {"sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}
            if shape.tag in keys:
                size = np.array([shape.number(key) for key in keys[shape.tag]])
            mesh = _mesh(shape.tag, size / 2 if shape.tag == "box" else size)
            if shape.tag == "mesh":
                mesh = _read(shape.get("filename", ""), folders, shape.vector("scale", "1 1 1"))
            own = visual.find("material")
            colour = colours.get(own.get("name", ""), rgba(STEEL)) if own else rgba(STEEL)
            if own and own.find("color"):
                colour = _colour(own)
            place = placement(visual.find("origin"))
            yield Shape(link.get("name"), place, shape.get("filename", shape.tag), mesh, colour)


def _colour(material: Element) -> Colour:
    red, green, blue, alpha = next(one.vector("rgba", count=4) for one in material.all("color"))
    return (red, green, blue, alpha)


def _of_sdf(root: Element, folders: Folders) -> Iterator[Shape]:
    sizes: dict[str, dict[str, int]] = {
        "box": {"size": 3}, "sphere": {"radius": 1}, "ellipsoid": {"radii": 3},
        "cylinder": {"radius": 1, "length": 1}, "capsule": {"radius": 1, "length": 1},
    }  # fmt: skip
    models = [one for top in (root.find("world"), root) if top is not None for one in top.all("model")]
    for link in models[0].all("link") if models else ():
        for visual in link.all("visual"):
            shape = next((one for geometry in visual.all("geometry") for one in geometry.children), None)
            if shape is None:
                continue
            size = [x for key, n in sizes.get(shape.tag, {}).items() for x in shape.content(key, n)]
            mesh = _mesh(shape.tag, np.array(size) / (2 if shape.tag == "box" else 1))
            if shape.tag == "mesh":
                mesh = _read(shape.word("uri"), folders, shape.content("scale", 3, "1 1 1"))
            pose = visual.find("pose")
            if pose is not None and pose.get("relative_to", "") not in ("", link.get("name")):
                mesh = f"relative to {pose.get('relative_to')}"
            diffuse = visual.find("material", "diffuse")
            colour = rgba(STEEL)
            if diffuse is not None:
                count = 4 if len(diffuse.text.split()) == 4 else 3
                red, green, blue, alpha = (*diffuse.numbers(diffuse.text, count, "<diffuse>"), 1.0)[:4]
                colour = (red, green, blue, alpha)
            yield Shape(link.get("name"), own_pose(visual), shape.word("uri") or shape.tag, mesh, colour)


def _of_mjcf(root: Element, folders: Folders) -> Iterator[Shape]:
    try:
        m, left_out = compiled_geometry(root, folders.further)
    except ModelFileError as error:  # of a mesh that mujoco cannot read
        left_out, m = {root.source.name: str(error)}, None
    for name, reason in left_out.items():
        yield Shape(WORLD, np.eye(4), name, reason, rgba(STEEL))
    if m is None:
        return
    mujoco = import_optional("mujoco", "mujoco", "The shapes of MJCF files require MuJoCo")
    bodies = part_names(mujoco, m, "body")
    for g in range(m.ngeom):
        kind = mujoco.mjtGeom(m.geom_type[g]).name.removeprefix("mjGEOM_").lower()
        material, colour = m.geom_matid[g], m.geom_rgba[g]
        if material >= 0 and np.allclose(colour, _NO_COLOUR):
            colour = m.mat_rgba[material]
        if m.geom_group[g] >= _GROUPS_SHOWN or not colour[3]:
            continue
        radius, half, _ = size = m.geom_size[g]
        mesh = _mesh(kind, np.array([radius, 2 * half]) if kind in ("cylinder", "capsule") else size)
        if kind == "mesh":
            d = m.geom_dataid[g]
            at, start = m.mesh_vertadr[d], m.mesh_faceadr[d]
            vertices, faces = (
                m.mesh_vert[at:][: m.mesh_vertnum[d]],
                m.mesh_face[start:][: m.mesh_facenum[d]],
            )
            mesh = Mesh(vertices.astype(float), faces.astype(int))
        link = bodies[m.geom_bodyid[g]] if m.geom_bodyid[g] else WORLD
        pose = frame_of(m.geom_pos[g], m.geom_quat[g])
        yield Shape(link, pose, kind, mesh, tuple(map(float, colour)))  # type: ignore[arg-type]


def _mesh(kind: str, size: Any) -> Mesh | str:
    """Return the mesh of a shape in its own axes: half sides, semi-axes, or radius and length."""
    if kind == "box":
        return Mesh(BOX.vertices * size, BOX.faces)
    if kind in ("sphere", "ellipsoid"):
        return Mesh(BALL.vertices * (size[0] if kind == "sphere" else size), BALL.faces)
    if kind not in ("cylinder", "capsule"):
        return "no solid"
    radius, length = size
    walls = Mesh(CYLINDER.vertices * [radius, radius, length], CYLINDER.faces)
    if kind == "cylinder":
        return walls
    ends = [Mesh(BALL.vertices * radius + [0, 0, s * length / 2], BALL.faces) for s in (-1, 1)]
    return joined_meshes([walls, *ends])


def _read(name: str, folders: Folders, scale: tuple[float, ...]) -> Mesh | str:
    """Return the mesh of a file, or the reason why it cannot be read."""
    file = folders.find(name)
    if file is None:
        return _NOT_FOUND
    kind, size = file.suffix[1:].lower(), file.stat().st_size
    if kind not in _FORMATS:
        return f"not one of {', '.join(_FORMATS)}"
    folders.bytes += size
    if size > MESH_BYTES_MAX or folders.bytes > _MESHES_BYTES_MAX:
        return TOO_LARGE
    trimesh = import_optional("trimesh", "view", "Meshes need trimesh")
    try:
        # without a name, so that no file to which it refers is read
        found = trimesh.load(BytesIO(file.read_bytes()), file_type=kind, force="mesh")
    except Exception as error:  # each format has errors of its own, and some need further packages
        return short_repr(str(error) or type(error).__name__)[1:-1]
    if not len(found.faces):
        return "no faces"
    return Mesh(np.asarray(found.vertices) * scale, np.asarray(found.faces))
