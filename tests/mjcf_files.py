"""Small MJCF files with all kinds of elements, in which attributes are changed one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

# an open tree, one whose loops an equality closes, and a flexible body
OPEN, TWO, FLEX = (
    (Path(__file__).parent / "data" / f"mjcf_{name}.xml").read_text()
    for name in ("open", "closed", "flexible")
)
INERTIA = '<inertial pos=".1 .2 .3" mass="2" diaginertia=".3 .4 .5"/>'
EQUALITIES = {
    "connect": ('<connect body1="b" body2="f" anchor=".3 .1 0"/>', '<connect site1="s" site2="u"/>'),
    "weld": ('<weld body1="b" body2="f"/>', '<weld site1="s" site2="u"/>'),
    "joint": ('<joint joint1="j" joint2="k"/>', '<joint joint1="j"/>'),
    "tendon": ('<tendon tendon1="y" tendon2="y2"/>',),
}
# attributes without which an element is not valid
REQUIRED = {
    "general": 'joint="j"', "motor": 'joint="j"', "position": 'joint="j"', "velocity": 'joint="j"',
    "intvelocity": 'joint="j" actrange="0 1"', "orientation": 'joint="l"', "pid": 'joint="j"',
    "damper": 'joint="j" ctrlrange="0 1"', "cylinder": 'joint="j"', "muscle": 'joint="j" lengthrange="0 1"',
    "adhesion": 'body="b" ctrlrange="0 1"', "dcmotor": 'joint="j" motorconst=".05" resistance="2"',
}  # fmt: skip


def open_file(actuator: str = "motor") -> str:
    """Return an open mechanism with an actuator of a kind."""
    return OPEN.replace("<actuator_to_test />", f'<{actuator} name="a" {REQUIRED[actuator]}/>')


def closed_file(equality: str) -> str:
    """Return two chains with an equality."""
    return TWO.replace("<equality_to_test />", equality)


# values to try: numbers, and words with blanks as underscores; then names of parts
NUMBERS = (
    "0.3", "2", "0", "-0.2", "0.1 0.4", "0.2 -0.3 0.5", "0.5 0.5 -0.5 0.5", "0.6 0.5 0.5 0.1 0.02 0.03",
    "0.1 0.3 0.5 0.7 0.9",
)  # fmt: skip
NAMES = (
    "true", "false", "enable", "disable", "auto", "b", "c", "f", "j", "k", "l", "s", "t", "w", "g", "h", "q",
    "m", "v", "y", "y2", "u", "u2", "coat", "paint", "hills",
)  # fmt: skip
WORDS = {
    "actrange": "0_0.01", "actuatorfrcrange": "-0.001_0.001", "angle": "radian degree", "bias": "0.1_0.2_3",
    "biastype": "affine muscle", "builtin": "checker sphere", "cellcount": "2_2_2", "childclass": "main",
    "class": "main", "colorspace": "sRGB linear", "cone": "elliptic", "conflict": "merge error warning",
    "controller": "0.1_0.2_0.3", "coordinate": "local", "count": "2_2_1 3_3_1",
    "ctrlrange": "0_0.001 -0.1_0.1", "dim": "1 2 3", "diaginertia": "0.3_0.4_0.6", "dof": "radial 2d",
    "dyntype": "integrator filter filterexact muscle", "elastic2d": "bend stretch both",
    "eulerseq": "zyx XYZ", "fluidshape": "ellipsoid none", "forcerange": "0_0.001",
    "gaintype": "affine muscle", "gridlayout": "........", "inertia": "convex exact legacy shell",
    "inertiafromgeom": "true false auto", "inertiagrouprange": "0_3",
    "input": "position velocity force torque", "integrator": "RK4 implicit", "jacobian": "sparse dense",
    "mark": "edge", "mode": "track trackcom none all", "model": "other", "name": "new",
    "objtype": "site geom", "origin": "0.1_0.2_0.3", "output": "rgb depth", "passthrough": "true",
    "posrange": "0_1", "projection": "orthographic", "range": "0_0.5 -1_1",
    "relpose": "0.1_0.2_0.3_0.5_0.5_0.5_-0.5", "rgba": "1_0_0_1", "role": "rgb normal",
    "selfcollide": "none narrow", "size": "0.2_0.3_0.4 3 1_1", "sleep": "never init",
    "solver": "PGS CG Newton",
    "type": "slide hinge ball sphere capsule box cylinder ellipsoid mesh plane cube skybox spot point grid",
    "vertex": "0_0_0_1_0_0_0_1_0_0_0_2",
}  # fmt: skip
# attributes that only have an effect with another one, or without it
WITH: dict[str, dict[str, str | None]] = {
    "limited": {"range": "0 0.1"}, "actuatorfrclimited": {"actuatorfrcrange": "-0.001 0.001"},
    "forcelimited": {"forcerange": "0 0.001"}, "ctrllimited": {"ctrlrange": "0 0.001"},
    "actlimited": {"actrange": "0 0.001"}, "springyield": {"stiffness": "5"}, "springref": {"stiffness": "5"},
    "springlength": {"stiffness": "5"}, "fromto": {"type": "capsule", "size": ".1", "pos": None},
    "delay": {"nsample": "2"}, "general/actrange": {"dyntype": "integrator"}, "mesh": {"type": "mesh"},
    "fullinertia": {"diaginertia": None},
}  # fmt: skip


def values(name: str) -> list[str]:
    """Return values to try for an attribute."""
    return [*(word.replace("_", " ") for word in WORDS.get(name, "").split()), *NUMBERS, *NAMES]


def files(path: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return files with an element of a path of the schema, and its place in each."""
    section, tag, place = path[0], path[-1], "/".join(path)
    if tag in REQUIRED and section in ("default", "actuator"):
        return [(open_file(tag), place)]
    if path == ("default", "equality"):
        return [(closed_file(texts[0]), place) for texts in EQUALITIES.values()]
    if section == "equality" and tag in EQUALITIES:
        return [(closed_file(text), place) for text in EQUALITIES[tag]]
    if section == "equality" and len(path) == 2:
        return [(FLEX.replace("</worldbody>", f'</worldbody><equality><{tag} flex="x"/></equality>'), place)]
    if "flexcomp" in path:
        return [(FLEX, f".//{tag}")]
    parts = {"joint": "jkl", "geom": ("g", "g2", "q"), "body": "bcefi", "spatial": "vn"}
    if tag in parts and section in ("worldbody", "tendon") and len(path) == 2:
        return [(open_file(), f".//{tag}[@name='{name}']") for name in parts[tag]]
    return [(open_file(), f".//{tag}" if section == "worldbody" else place)]


def changed(text: str, place: str, values: Mapping[str, str | None]) -> str:
    """Return a file with attributes of the first element at a place, which is made if it is missing.

    Values None remove attributes.
    """
    root = ElementTree.fromstring(text)
    found = root.find(place)
    if found is None:
        found = root
        for tag in place.split("/"):
            below = found.find(tag)
            found = ElementTree.SubElement(found, tag) if below is None else below
    for name, value in values.items():
        found.attrib.pop(name, None)
        if value is not None:
            found.set(name, value)
    return ElementTree.tostring(root, encoding="unicode")
