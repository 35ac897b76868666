"""MJCF files and MuJoCo models, read from the model that the installed `mujoco` package compiles."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn
from warnings import catch_warnings, simplefilter

import numpy as np

from kic.description.joint_types import BALL_TYPES
from kic.errors import ModelFileError, invalid, short_repr, unknown
from kic.io import robot as rb
from kic.io.mjcf_schema import ACTUATORS, ANY, ATTRIBUTES, COMPUTED, FINITE, PARTLY, attributes_of
from kic.io.robot import MESH_BYTES_MAX, TOO_LARGE, WORLD, Robot, RobotJoint
from kic.io.xml import DEPTH_MAX, XML_BYTES_MAX, Element, Source, parse, read_root, read_source
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import flag
from kic.numerics.optional import import_optional
from kic.numerics.rotations import vector_from_matrix

# parts and bodies of a model with all copies of repeated ones; mujoco needs 2 s for so many bodies
PARTS_MAX, BODIES_MAX = 40_000, 2_400
# numbers of one table, and those that each part of a kind may have
TABLE_MAX, ROW_MAX = 4_000_000, 1_000
# largest depth of files that include or attach others
FILES_DEPTH_MAX = 8
# types of joints in the order of mujoco.mjtJoint
JOINT_TYPES = ("free", "spherical", "prismatic", "revolute")
# deviation of the size of axes and quaternions from 1, which mujoco normalizes when it compiles
UNIT_ATOL = 1e-6
# a remark: its line, its text, and True if something with an effect on motion is lost
Remark = tuple[int, str, bool]
# flags of options with their treatment
_FLAGS = ATTRIBUTES["option/flag"]
# tables of numbers that must be finite, with the kind of their parts
_FINITE = {
    "body": ("body_pos", "body_ipos", "body_quat", "body_iquat"), "site": ("site_pos", "site_quat"),
    "joint": ("jnt_pos", "jnt_axis"), "equality": ("eq_data",), "tendon": ("tendon_lengthspring",),
}  # fmt: skip
_TRUST = "If you trust it, give the model that mujoco.MjModel.from_xml_path compiles."


def from_mjcf(
    model: Any,
    *,
    coordinates: Iterable[str] | None = None,
    near: Mapping[str, float] | None = None,
    key: str | None = None,
    spins: str = "held",
    strict: bool = False,
) -> Mechanism:
    """Read a robot from an MJCF file or a compiled MuJoCo model, and close its loops.

    The package `mujoco` (an extra) reads the file. Geometry that no inertia depends on is removed first, so
    mesh files may be missing. All files that the model refers to must be in its directory; a model given as
    text cannot refer to files. Equality constraints are exact, not soft. Actuators are ideal motors. Contacts
    between geoms are not read. The reference lists the treatment of all attributes.

    Parameters
    ----------
    model : str, path or mujoco.MjModel
        Path of the file, its text, which starts with "<", or a compiled model.
    coordinates : sequence of str, optional
        Joints of the default coordinates. By default all joints of an open chain. In a closed one, the
        actuated joints, with the best conditioned others if the actuated ones cannot drive it.
    near : dict of str to float, optional
        Joint values from which the loops are closed; "ball.1" to "ball.3" are the rotation vector of a ball
        joint. No other start is then used. By default, starts are tried until the loops close within limits:
        the zero of the file, its key frames, the zero within the limits, their middle, and samples if the
        loops are open at the zero.
    key : str, optional
        Key frame from which the loops are closed; values in `near` replace those of the key frame. In a file
        without loops, both have no effect and cause a remark.
    spins : {"held", "free"}
        "held" applies `Mechanism.hold_spins`: a rod between two ball joints does not spin about its axis,
        unless `coordinates` has a coordinate of these joints. "free" keeps spins as degrees of freedom.
    strict : bool
        True to raise an error if something that affects motion is ignored: control laws, springs and limits
        without a counterpart, attributes that are unknown.

    Returns
    -------
    Mechanism
        In a closed configuration. Coordinates have the values of `qpos`; where loops close, those of free
        and ball joints are displacements from the closed configuration. `Mechanism.remarks` lists what was
        merged, renamed, replaced and ignored.

    Raises
    ------
    ModelFileError
        If the file cannot be read or contradicts itself, or the loops do not close. If `near` or `key` fails
        and another start succeeds, the error has the values of the latter as `near`.
    UnknownNameError
        If a joint in `near` or the `key` is unknown.
    MissingExtraError
        If `mujoco` is not installed.
    """
    mujoco = import_optional("mujoco", "mujoco", "from_mjcf() requires MuJoCo")
    lines, left, unknown = dict[tuple[str, str], int](), list[Remark](), set[str]()
    if isinstance(model, mujoco.MjModel):
        compiled, source = model, Source(None, b"", "MuJoCo model")
    elif isinstance(model, str | os.PathLike | Element):
        root = read_root(model, "MJCF")
        compiled, files, unknown = _compiled(mujoco, root)
        source, lines, left = root.source, files.lines, files.remarks
    else:
        raise invalid("model", "must be a path, the text of a file or an MjModel", model)
    name = bytes(compiled.names).split(b"\0")[0].decode("utf-8", "replace") or "robot"
    robot = Robot(source, name, strict=flag("strict", strict))
    for remark in left:
        robot.remark(*remark)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers are checked by the parts
        _Reader(mujoco, compiled, robot, lines, unknown).read(key)
    return rb.mechanism_of(robot, coordinates, near, "A free body needs <freejoint/>.", spins)


def compiled_geometry(root: Element, further: Iterable[Path] = ()) -> tuple[Any, dict[str, str]]:
    """Return the compiled model of a file with its meshes, and the reasons why shapes are left out.

    Meshes may be in the directory of the model and in `further` ones.
    """
    mujoco = import_optional("mujoco", "mujoco", "The shapes of MJCF files require MuJoCo")
    compiled, files, _ = _compiled(mujoco, root, True, further)
    return compiled, files.left_out


def _compiled(
    mujoco: Any, root: Element, meshes: bool = False, further: Iterable[Path] = ()
) -> tuple[Any, _Files, set[str]]:
    """Return the compiled model of a file, its files, and the bodies whose inertia depends on a missing mesh.

    Geometry on which no inertia depends is left out, unless `meshes` is True.
    """
    source = root.source
    if root.tag not in ("mujoco", "robot"):
        root.fail("the root of an MJCF file must be <mujoco>.")
    files = _Files(source, further)
    files.count(root)
    try:
        if source.path is None:
            spec = mujoco.MjSpec.from_string(source.data.decode("utf-8"))
        else:
            # mujoco selects a decoder by the suffix and has one for .xml only
            name, buffers = f"{source.path}.xml", mujoco.MjVfs()
            buffers[name] = source.data
            spec = mujoco.MjSpec.from_file(name, vfs=buffers)
        if len(spec.bodies) > BODIES_MAX:  # whatever they come from
            root.fail(f"a model must have at most {BODIES_MAX:,} bodies, got {len(spec.bodies):,}. {_TRUST}")
        if meshes and len(spec.hfields):
            files.left_out["height fields"] = "not a mesh"
        files.remarks += _without_geometry(mujoco, spec, meshes)
        unknown = _without_missing_files(mujoco, spec, files, meshes)
        # ranges of actuators' lengths have no effect here; the simulations that find them may have no end
        spec.compiler.LRopt.mode = int(mujoco.mjtLRMode.mjLRMODE_NONE)
        with catch_warnings(record=True) as caught:
            simplefilter("always")
            compiled = spec.compile()
        files.remarks += [(0, f"mujoco: {' '.join(str(one.message).split())}", False) for one in caught]
    except ModelFileError:
        raise
    except (ValueError, RuntimeError, KeyError, UnicodeDecodeError) as error:
        words = " ".join(str(error).split())
        raise source.error(0, f"mujoco cannot compile it: {words[:300]}") from None
    return compiled, files, unknown


@dataclass
class _Document:
    """File with its included files: the main file, or a model that others attach."""

    folder: Path | None
    counts: dict[str, int] = field(default_factory=lambda: {"parts": 0, "bodies": 0, "bytes": 0})
    paths: set[Path] = field(default_factory=set)
    """Files that are included, each once."""
    models: dict[str, dict[str, int]] = field(default_factory=dict)
    """Counts of the models that can be attached."""
    attached: list[tuple[Element, int]] = field(default_factory=list)
    """Elements that attach a model, with their numbers of copies."""

    def add(self, element: Element, counts: Mapping[str, int], copies: int = 1) -> None:
        """Add to the counts; raise an error if one exceeds its bound."""
        bounds = {"parts": PARTS_MAX, "bodies": BODIES_MAX, "bytes": XML_BYTES_MAX}
        for kind, count in counts.items():
            self.counts[kind] += copies * count
            if self.counts[kind] > bounds[kind]:
                rule = f"a model must have at most {bounds[kind]:,} {kind} with the files that it refers to"
                element.fail(f"{rule}, got more. {_TRUST}", limit=bounds[kind])


class _Files:
    """Files that mujoco opens for a model, with limits on their location and parts."""

    def __init__(self, source: Source, further: Iterable[Path] = ()) -> None:
        self.source, self.further = source, tuple(further)
        self.folder = None if source.path is None else source.path.parent.resolve()
        self.folders = [] if source.path is None else [source.path.parent]
        self.lines: dict[tuple[str, str], int] = {}
        self.remarks: list[Remark] = []
        self.left_out: dict[str, str] = {}
        """Mesh files that are not read, with the reason."""
        self.unknown: set[tuple[str, str]] = set()
        """Unknown elements and attributes that already have a remark."""
        self.known: dict[Path, dict[str, int]] = {}
        self.open: list[Path] = []
        self.rows: list[tuple[int, Element, str]] = []
        """Numbers of entries per part, with the elements and attributes that set them."""

    def count(self, root: Element) -> None:
        """Count the parts of the model, and collect the lines of its named parts."""
        parts = self._document(root, 0)["parts"]
        total = 0
        for rows, element, key in self.rows:
            total += rows * parts
            if total > TABLE_MAX:
                rule = f"the attributes of {parts:,} parts, such as `{key}`, may hold at most"
                element.fail(f"{rule} {TABLE_MAX:,} numbers in total. {_TRUST}", limit=TABLE_MAX)

    def is_inside(self, folder: Path, name: str, further: Iterable[Path] = ()) -> bool:
        """Return True if a file is in the directory of the model, or in `further` ones.

        Symbolic links are resolved.
        """
        if self.folder is None:
            return False
        path = folder.resolve() / name
        paths = [one.resolve() for one in (path, Path(os.path.normpath(path)))]
        return any(all(one.is_relative_to(place) for one in paths) for place in (self.folder, *further))

    def fail_outside(self, line: int, name: str) -> NoReturn:
        """Raise an error for a file outside the directory."""
        rule = f"a file that the model refers to must be in its directory, got {short_repr(name)}."
        raise self.source.error(line, f"{rule} {_TRUST}", key="file", got=name)

    def _read(self, element: Element, document: _Document) -> Source:
        """Return the text of a file that an element refers to."""
        name, own = element.get("file"), element.source.path
        if document.folder is None or own is None:
            self.fail_outside(element.line, name)
        # mujoco starts at the directory of the main file
        folders = (document.folder, own.parent)
        for folder in folders:
            if not self.is_inside(folder, name.replace("\\", "/")):
                self.fail_outside(element.line, name)
        paths = [folder / name.replace("\\", "/") for folder in folders]
        return read_source(next((path for path in paths if path.is_file()), paths[0]), "MJCF")

    def _document(self, root: Element, level: int) -> dict[str, int]:
        """Return the counts of a file, including the files that it includes."""
        path = root.source.path
        document = _Document(None if path is None else path.parent)
        if path is not None:
            document.paths.add(path.resolve())
        document.add(root, {"bytes": len(root.source.data)})
        self._walk(root, document, 1, level, 0)
        largest = {
            kind: max((counts[kind] for counts in document.models.values()), default=0)
            for kind in ("parts", "bodies")
        }
        for element, copies in document.attached:
            counts = document.models.get(element.attributes.get("model", ""), largest)
            document.add(element, {kind: counts[kind] for kind in largest}, copies)
        return document.counts

    def _check_attributes(
        self, element: Element, section: str, above: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return the treatment of the attributes of an element; add a remark about unknown ones."""
        known = attributes_of(section, element.tag, above)
        found = [""] if known is None else [key for key in element.attributes if not {key, ANY} & {*known}]
        for key in found:
            if (element.tag, key) not in self.unknown:
                self.unknown.add((element.tag, key))
                what = f"attribute `{key}` of <{element.tag}>" if key else f"<{element.tag}>"
                self.remarks.append((element.line, f"{what} is ignored.", True))
        return {ANY: ""} if known is None else known

    def _walk(
        self,
        element: Element,
        document: _Document,
        copies: int,
        level: int,
        depth: int,
        section: str = "",
        above: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Count the parts below an element, at a nesting level of elements and a depth of files.

        `section` is the tag of the root's child that contains the element, and `above` the treatment of its
        attributes.
        """
        if level > DEPTH_MAX:
            rule = f"must be nested at most {DEPTH_MAX} levels deep with its files, got more."
            element.fail(rule, limit=DEPTH_MAX)
        for child in element.children:
            tag = "joint" if child.tag == "freejoint" else child.tag
            name = child.attributes.get("name")
            if name and child.source is self.source:
                self.lines.setdefault((tag, name), child.line)
            if child.tag == "plugin":
                child.fail("plugins cannot be read. Remove them.")
            inner = self._check_attributes(child, section, above)
            _check_numbers(child, inner)
            self._check_tables(child)
            count, bodies = _copies(child)
            document.add(child, {"parts": count, "bodies": bodies}, copies)
            if child.tag == "flexcomp" and child.attributes.get("file"):
                child.fail(f"files of flexible bodies are not read. {_TRUST}")
            if child.tag == "attach":
                document.attached.append((child, copies))
            elif child.tag == "include":
                inside = self._included(child, document, depth)
                self._walk(inside, document, copies, level, depth + 1, section, above)
            elif child.tag == "model":  # without a file, mujoco does not return the next time
                self._model(child, document, level)
            self._walk(child, document, copies * count, level + 1, depth, section or child.tag, inner)

    def _included(self, element: Element, document: _Document, depth: int) -> Element:
        """Return the root of an included file."""
        source = self._read(element, document)
        path = Path(source.path or "").resolve()
        if path in document.paths:
            element.fail(f"{short_repr(element.get('file'))} is included twice. Remove one <include>.")
        if depth >= FILES_DEPTH_MAX:
            rule = f"files must include each other at most {FILES_DEPTH_MAX} levels deep."
            element.fail(rule, limit=FILES_DEPTH_MAX)
        document.paths.add(path)
        document.add(element, {"bytes": len(source.data)})
        return parse(source)

    def _model(self, element: Element, document: _Document, level: int) -> None:
        """Count the parts of a model that can be attached; mujoco reads it for each reference."""
        source = self._read(element, document)
        path = Path(source.path or "").resolve()
        if path in self.open or len(self.open) >= FILES_DEPTH_MAX:
            rule = f"models must contain each other at most {FILES_DEPTH_MAX} levels deep"
            element.fail(f"{rule}, and not themselves.", limit=FILES_DEPTH_MAX)
        if path not in self.known:
            self.open.append(path)
            self.folders.append(Path(source.path or "").parent)
            self.known[path] = self._document(parse(source), level)
            self.open.pop()
        document.add(element, self.known[path])
        document.models[element.attributes.get("name") or element.get("file")] = self.known[path]

    def _check_tables(self, element: Element) -> None:
        """Raise an error for a table with too many entries; collect numbers of entries per part."""
        whole = {"hfield": ("nrow", "ncol"), "numeric": ("size",), "size": ("nuserdata",)}
        product = 1.0
        for key, text in element.attributes.items():
            rows = element.tag == "size" and (key == "nkey" or key.startswith("nuser_"))
            if not rows and key not in whole.get(element.tag, ()):
                continue
            count, largest = 0.0, ROW_MAX if rows else TABLE_MAX
            with suppress(ValueError):  # mujoco has an error for it
                count = float(text)
            product *= max(1.0, count) if element.tag == "hfield" else 1.0
            if not count <= largest or not product <= TABLE_MAX:
                rule = f"`{key}` must be at most {largest:,}"
                if element.tag == "hfield":
                    rule = f"`nrow` times `ncol` must be at most {TABLE_MAX:,}"
                element.fail(f"{rule}, got more. {_TRUST}", limit=largest)
            if rows:
                self.rows.append((int(count), element, key))


def _check_numbers(element: Element, known: Mapping[str, str]) -> None:
    """Raise an error for infinite or NaN numbers that kic reads, before MuJoCo computes with them."""
    for key, text in element.attributes.items():
        found = list[float]()
        if key in FINITE and known.get(key) in (COMPUTED, PARTLY):
            with suppress(ValueError):  # mujoco has an error for it
                found += map(float, text.split())
        if not all(map(isfinite, found)):
            name = element.attributes.get("name", "")
            what = f"`{key}`{f' of {short_repr(name)}' * bool(name)}"
            rule = f"{what} must be finite, got {short_repr(text)}. Correct or remove it."
            element.fail(rule, name=name, got=text)


def _copies(element: Element) -> tuple[int, int]:
    """Return the numbers of parts and of bodies that one element stands for."""
    if element.tag not in ("replicate", "flexcomp"):
        return 1, int(element.tag == "body")
    count = 1.0
    for word in element.attributes.get("count", "").split()[:3]:
        with suppress(ValueError):  # mujoco has an error for it
            count *= max(1.0, float(word))
    count = max(count, len(element.attributes.get("point", "").split()) / 3)
    if not count < 1e9:
        element.fail("the number of its parts is too large.")
    has_bodies = element.tag == "flexcomp" and element.attributes.get("dof", "full") in ("full", "radial")
    return int(count), int(count) if has_bodies else 0


def _without_geometry(mujoco: Any, spec: Any, meshes: bool) -> list[Remark]:
    """Delete geometry on which no inertia depends, except meshes if `meshes` is True; return remarks.

    A small sphere with the same name replaces each geom, because other parts may refer to it.
    """
    remarks, kept, count = list[Remark](), {site.meshname for site in spec.sites}, 0
    if len(spec.flexes):
        remarks.append((0, "flexible bodies are ignored.", True))
        kinds = [int(kind) for name, kind in vars(mujoco.mjtEq).items() if name.startswith("mjEQ_FLEX")]
        for one in [e for e in spec.equalities if int(e.type) in kinds]:
            spec.delete(one)
    for parts in (spec.sensors, spec.tuples, spec.skins, spec.flexes, spec.textures):
        for one in list(parts):
            spec.delete(one)
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for light in spec.lights:
        light.texture = ""
    moves, rule = {spec.worldbody.name: False}, mujoco.mjtInertiaFromGeom
    for body in spec.bodies:
        if body.name not in moves:
            moves[body.name] = moves.get(body.parent.name, True) or bool(body.joints)
        for geom in body.geoms:
            compiler = geom.compiler
            source = int(compiler.inertiafromgeom)
            low, high = compiler.inertiagrouprange
            needed = source == int(rule.mjINERTIAFROMGEOM_TRUE) or (
                source != int(rule.mjINERTIAFROMGEOM_FALSE) and not body.explicitinertial
            )
            # the total mass includes that of fixed bodies
            needed &= moves[body.name] or spec.compiler.settotalmass > 0
            if geom.meshname and (meshes or (needed and low <= geom.group <= high)):
                kept.add(geom.meshname)
            elif geom.meshname or geom.hfieldname:
                _replace(mujoco, geom)
                count += 1
    for mesh in list(spec.meshes):
        if mesh.name not in kept:
            spec.delete(mesh)
    for one in list(spec.hfields):
        spec.delete(one)
    if count:
        remarks.append((0, f"{count} mesh geoms, on which no inertia depends, are ignored.", False))
    return remarks


def _replace(mujoco: Any, part: Any) -> None:
    """Replace the shape of a geom or site by a small, invisible sphere without mass."""
    part.type, part.size, part.fromto = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-3] * 3, [np.nan] * 6
    part.meshname, part.rgba = "", [0.0] * 4
    if hasattr(part, "mass"):
        part.mass, part.hfieldname = 0.0, ""


def _without_missing_files(mujoco: Any, spec: Any, files: _Files, meshes: bool) -> set[str]:
    """Delete meshes whose files are missing; return the bodies whose inertia they would have given."""
    missing = set()
    for mesh in spec.meshes:
        if not mesh.file:
            continue
        name = mesh.file.replace("\\", "/")
        if spec.strippath and not files.known:
            name = name.rpartition("/")[2]
        if mesh.compiler.meshdir:
            name = f"{mesh.compiler.meshdir}/{name}".replace("\\", "/") if not name.startswith("/") else name
        reason = ""
        if not files.folders or not all(
            files.is_inside(folder, name, files.further) for folder in files.folders
        ):
            if not meshes:
                files.fail_outside(files.lines.get(("mesh", mesh.name), 0), mesh.file)
            reason = "outside the directory of the model and those of `meshes`"
        elif not (found := [folder / name for folder in files.folders if (folder / name).is_file()]):
            reason = "no such file"
        elif meshes and any(one.stat().st_size > MESH_BYTES_MAX for one in found):
            reason = TOO_LARGE
        if reason:
            missing.add(mesh.name)
            files.left_out[mesh.file] = reason
    unknown = set()
    for body in spec.bodies if missing else ():
        for geom in body.geoms:
            if geom.meshname in missing:
                _replace(mujoco, geom)
                # any inertia serves, because it is not read
                body.mass, body.inertia, body.explicitinertial = 1.0, [1.0] * 3, True
                body.fullinertia = [np.nan] * 6
                unknown.add(body.name)
        for site in body.sites:
            if site.meshname in missing:
                _replace(mujoco, site)
                files.remarks.append(
                    (0, f"site '{site.name}' is not fitted to its mesh, which is missing.", True)
                )
    for mesh in list(spec.meshes):
        if mesh.name in missing:
            spec.delete(mesh)
    return unknown


class _Reader:
    """Reader of a compiled model."""

    def __init__(
        self, mujoco: Any, model: Any, robot: Robot, lines: Mapping[tuple[str, str], int], unknown: set[str]
    ) -> None:
        self.mj, self.m, self.robot, self.lines, self.unknown = mujoco, model, robot, lines, unknown
        kinds = ("body", "joint", "site", "tendon", "equality", "actuator")
        self.names = {kind: rb.part_names(mujoco, model, kind) for kind in kinds}
        self.joint_name, self.types = self.names["joint"], [JOINT_TYPES[t] for t in model.jnt_type]
        self.relations: list[rb.RobotCoupling] = []
        # actuators that are not ideal motors
        self.laws: list[str] = []
        # sums of the limits of actuators, and the limited actuators with their lines, by joint
        self.efforts = dict[str, np.ndarray]()
        self.limited = dict[str, list[tuple[str, int]]]()
        computed = [key for key, treatment in _FLAGS.items() if treatment == COMPUTED]
        bits = {key: int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{key.upper()}")) for key in computed}
        self.has = {key: not int(model.opt.disableflags) & bit for key, bit in bits.items()}
        for key in ("equality", "frictionloss", "limit"):
            self.has[key] &= self.has["constraint"]

    def line(self, kind: str, name: str) -> int:
        """Return the line of a part, 0 if unknown."""
        return self.lines.get((kind, name), 0)

    def read(self, key: str | None = None) -> None:
        """Fill the robot; loops are closed from a key frame if one is given."""
        m, robot = self.m, self.robot
        self._check_finite()
        self._check_options()
        robot.gravity = tuple(m.opt.gravity.tolist()) if self.has["gravity"] else (0.0, 0.0, 0.0)
        limited = ("actuator_act", "tendon_actfrc")
        if any(np.any(getattr(m, f"{key}limited")) for key in limited):
            robot.remark_limits(0)
        self.links = [WORLD]
        for b in range(1, m.nbody):
            self._body(b)
        if np.any(m.body_gravcomp):
            robot.remark_lost(0, "gravity compensation of bodies is ignored.")
        if m.opt.density or m.opt.viscosity:
            robot.remark_lost(0, "fluid forces are ignored.")
        for s in range(m.nsite):
            name = self.names["site"][s]
            pose = rb.frame_of(m.site_pos[s], m.site_quat[s])
            robot.frames.append(
                rb.RobotFrame(name, self.links[m.site_bodyid[s]], pose, self.line("site", name))
            )
        self._tendons()
        for e in range(m.neq):
            self._equality(e)
        self._relate()
        if robot.loops or robot.couplings:
            self._place_free_bodies()
        for a in range(m.nactuator):
            self._actuator(a)
        for joint, (lower, upper) in self.efforts.items():
            robot.joints[joint].limit("effort_limits", 0, float(lower), float(upper))
            for name, line in self.limited.get(joint, ()) if np.isinf(lower) or np.isinf(upper) else ():
                why = f"another actuator of joint '{joint}' has none"
                robot.remark_lost(line, f"the limits of actuator '{name}' are ignored: {why}.")
        if self.laws:
            names = ", ".join(f"'{name}'" for name in self.laws[:3])
            more = f" and {len(self.laws) - 3} more" if len(self.laws) > 3 else ""
            robot.remark_lost(0, f"control laws are ignored, and actuators are ideal motors: {names}{more}.")
        self._key_frames(key)
        for what, count in (("flexible bodies", m.nflex), ("plugins", m.nplugin)):
            if count:
                robot.remark_lost(0, f"{what} are ignored.")

    def _key_frames(self, chosen: str | None) -> None:
        """Add key frames as starts of the search that closes loops."""
        m, robot, names = self.m, self.robot, rb.part_names(self.mj, self.m, "key")
        finite = np.isfinite(m.key_qpos).all(axis=1)
        if chosen is not None:
            if chosen not in names:
                raise unknown("key frame", chosen, robot.name, names)
            if not finite[names.index(chosen)]:
                text = f"`qpos` of key frame '{chosen}' must be finite. Correct its numbers."
                raise robot.source.error(self.line("key", chosen), text, name=chosen)
            robot.chosen = f"key frame '{chosen}'"
        poses = rb.place(robot)[0]
        for k in np.flatnonzero(finite):
            values = dict[str, float]()
            for j, name in enumerate(self.joint_name):
                own, q = robot.joints[name], m.key_qpos[k, m.jnt_qposadr[j] :]
                if own.type in ("revolute", "prismatic"):
                    values[name] = float(q[0])
                elif own.type in BALL_TYPES:
                    # displacements from the zero of the file, about the axes of the world
                    zero, moves = poses[own.child], len(own.rest) - 3
                    quaternion = q[moves : moves + 4]
                    if not np.linalg.norm(quaternion) > 0:
                        continue
                    there = (
                        rb.frame_of(q[:3], quaternion) if moves else zero @ rb.frame_of([0.0] * 3, quaternion)
                    )
                    turn = vector_from_matrix(there[:3, :3] @ zero[:3, :3].T)
                    moved = [*(there[:3, 3] - zero[:3, 3])[:moves], *turn]
                    values |= {f"{name}.{i}": float(x) for i, x in enumerate(moved, 1)}
            robot.starts[f"key frame '{names[k]}'"] = values

    def _check_finite(self) -> None:
        """Raise an error for numbers that are not finite, and for axes and quaternions that are not unit."""
        for kind, keys in _FINITE.items():
            for key in keys:
                table = getattr(self.m, key)
                good = np.isfinite(table).all(axis=1)
                if key.endswith(("quat", "axis")):
                    good &= np.abs(np.linalg.norm(table, axis=1) - 1.0) < UNIT_ATOL
                for k in np.flatnonzero(~good)[:1]:
                    name = self.names[kind][k]
                    what = "finite and of size 1" if key.endswith(("quat", "axis")) else "finite"
                    text = f"`{key}` of {kind} '{name}' must be {what}, got {table[k]}. Correct its numbers."
                    raise self.robot.source.error(self.line(kind, name), text, name=name)
        for key in ("qpos0", "wrap_prm"):
            if not np.isfinite(getattr(self.m, key)).all():
                raise self.robot.source.error(0, f"`{key}` must be finite. Its numbers may be too large.")

    def _check_options(self) -> None:
        """Add a remark about flags that are not known."""
        flags = (("disable", self.mj.mjtDisableBit, "mjDSBL"), ("enable", self.mj.mjtEnableBit, "mjENBL"))
        for word, bits, prefix in flags:
            left = int(getattr(self.m.opt, f"{word}flags"))
            for key in _FLAGS:
                left &= ~int(getattr(bits, f"{prefix}_{key.upper()}", 0))
            if left:
                self.robot.remark_lost(0, f"unknown bits {left:#x} of the option `{word}flags` are ignored.")

    def _place_free_bodies(self) -> None:
        """Place the free bodies of closed loops at their poses in the file, where the search starts."""
        m = self.m
        for j in np.flatnonzero(m.jnt_type == JOINT_TYPES.index("free")):
            q = m.qpos0[m.jnt_qposadr[j] :][:7]
            name = self.joint_name[j]
            if not abs(np.linalg.norm(q[3:]) - 1.0) < UNIT_ATOL:
                text = f"`qpos0` of joint '{name}' must have a unit quaternion, got {q[3:]}."
                raise self.robot.source.error(self.line("joint", name), text, name=name)
            self.robot.joints[name].pose = rb.frame_of(q[:3], q[3:])

    def _body(self, b: int) -> None:
        """Add a body with its joints; all but the last of several joints carry massless links."""
        m, robot = self.m, self.robot
        name = self.names["body"][b]
        line = self.line("body", name)
        T = rb.frame_of(m.body_ipos[b], m.body_iquat[b])
        J = T[:3, :3] @ np.diag(m.body_inertia[b]) @ T[:3, :3].T
        link = rb.Link(name, line, float(m.body_mass[b]), T[:3, 3], J)
        if name in self.unknown:
            link.mass = None
            robot.remark_lost(line, f"mass of body '{name}' is unknown: the file of its mesh is missing.")
        pose = rb.frame_of(m.body_pos[b], m.body_quat[b])
        parent = self.links[m.body_parentid[b]]
        joints = range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b])
        if m.body_mocapid[b] >= 0:
            robot.remark_lost(line, f"mocap body '{name}' is fixed to the world.")
        if not joints:
            fixed = f"{name} fixed"
            robot.add(RobotJoint(fixed, "fixed", parent, name, pose, line))
        for k, j in enumerate(joints):
            child = name if j == joints[-1] else f"{name} before {self.joint_name[j + 1]}"
            if child != name:
                robot.add(rb.Link(child, line))
            robot.add(self._joint(j, parent, child, pose if k == 0 else np.eye(4)))
            parent = child
        robot.add(link)
        self.links.append(name)

    def _joint(self, j: int, parent: str, child: str, pose: np.ndarray) -> RobotJoint:
        """Return a joint; a free body starts at the world frame, so the free joint has its pose."""
        m, robot, kind, name = self.m, self.robot, self.types[j], self.joint_name[j]
        line = self.line("joint", name)
        dof, q = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        if kind == "free":
            joint = RobotJoint(name, kind, parent, child, np.eye(4), line)
        else:
            joint = RobotJoint(name, kind, parent, child, pose, line, at=tuple(m.jnt_pos[j].tolist()))
        if kind in ("revolute", "prismatic"):
            joint.axis, joint.zero = tuple(m.jnt_axis[j].tolist()), float(m.qpos0[q])
            joint.rest[:] = m.qpos_spring[q]
        own = slice(dof, dof + len(joint.rest))
        joint.armature[:] = m.dof_armature[own]
        joint.friction[:] = m.dof_frictionloss[own] if self.has["frictionloss"] else 0.0
        joint.damping[:] = m.dof_damping[own] if self.has["damper"] else 0.0
        joint.stiffness[:] = m.jnt_stiffness[j] if self.has["spring"] else 0.0
        for key in ("armature", "damping", "friction"):
            turns = getattr(joint, key)[-3:]
            if kind in BALL_TYPES and np.ptp(turns):
                text = f"`{key}` of joint '{name}' differs by body axis, and is applied about fixed axes."
                robot.remark_lost(line, text)
        self._remark_nonlinear(f"joint '{name}'", line, m.jnt_stiffnesspoly[j], m.dof_dampingpoly[own])
        if joint.stiffness.any() and m.jnt_plasticadr[j] >= 0:
            robot.remark_lost(line, f"the yield of the spring of joint '{name}' is ignored.")
        if joint.stiffness.any() and kind in BALL_TYPES:
            robot.remark_lost(line, f"the spring of joint '{name}', which is {kind}, is ignored.")
        if m.jnt_limited[j] and self.has["limit"]:
            if joint.axis:
                joint.lower, joint.upper = (float(x) for x in m.jnt_range[j])
            else:
                robot.remark_lost(line, f"the limit of joint '{name}', which is {kind}, is ignored.")
        if m.jnt_actfrclimited[j] and not (
            joint.axis and joint.limit("effort_limits", 0, *map(float, m.jnt_actfrcrange[j]))
        ):
            robot.remark_lost(line, f"the effort limit of joint '{name}', which is {kind}, is ignored.")
        return joint

    def _remark_nonlinear(self, owner: str, line: int, stiffness: Any, damping: Any) -> None:
        """Add remarks about polynomials of stiffness and damping, which are ignored unless disabled."""
        for key, flag_key, table in (("stiffness", "spring", stiffness), ("damping", "damper", damping)):
            if np.any(table) and self.has[flag_key]:
                self.robot.remark_lost(line, f"the nonlinear part of {key} of {owner} is ignored.")

    def _equality(self, e: int) -> None:
        """Add an equality constraint as a closing joint or a coupling."""
        m, robot, kinds = self.m, self.robot, self.mj.mjtEq
        kind, data = int(m.eq_type[e]), m.eq_data[e]
        name = self.names["equality"][e]
        line = next(filter(None, (self.line(k, name) for k in ("connect", "weld", "joint", "tendon"))), 0)
        one, two = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        if not (m.eq_active0[e] and self.has["equality"]):
            robot.remark(line, f"equality '{name}' is inactive and is ignored.")
        elif kind == int(kinds.mjEQ_CONNECT) or kind == int(kinds.mjEQ_WELD):
            self._loop(e, name, line, kind == int(kinds.mjEQ_WELD))
        elif kind == int(kinds.mjEQ_JOINT):
            joints = ({j: 1.0} if j >= 0 else {} for j in (one, two))
            first, second = map(self._joint_coefficients, joints)
            self._relation(name, line, first, second, data, float(data[0]))
        elif kind == int(kinds.mjEQ_TENDON):
            tendons = (self._tendon_terms(t) if t >= 0 else {} for t in (one, two))
            first, second = map(self._joint_coefficients, tendons)
            offset = data[0] + self._initial_length(one) - data[1] * self._initial_length(two)
            self._relation(name, line, first, second, data, float(offset))
        else:
            robot.remark_lost(line, f"equality '{name}' is ignored.")

    def _joint_coefficients(self, terms: Mapping[int, float] | None) -> dict[str, float] | None:
        """Return the coefficients by joint name, or None unless each joint has one coordinate."""
        known = terms is not None and all(self.types[j] in ("revolute", "prismatic") for j in terms)
        return {self.joint_name[j]: ratio for j, ratio in (terms or {}).items()} if known else None

    def _initial_length(self, t: int) -> float:
        """Return the reference length of a fixed tendon minus its length at the zero of the file."""
        m, terms = self.m, (self._tendon_terms(t) if t >= 0 else None) or {}
        if not terms:
            return 0.0
        zero = sum(ratio * m.qpos0[m.jnt_qposadr[j]] for j, ratio in terms.items())
        return float(m.tendon_length0[t] - zero)

    def _relation(
        self,
        name: str,
        line: int,
        first: Mapping[str, float] | None,
        second: Mapping[str, float] | None,
        data: np.ndarray,
        offset: float,
    ) -> None:
        """Add change₁ = a₀ + a₁ change₂ between joints or tendons, or change₁ = a₀ if the second is empty."""
        robot = self.robot
        if first is None or second is None:
            robot.remark_lost(line, f"equality '{name}' is ignored.")
            return
        if second and np.any(data[2:5]):
            robot.remark_lost(line, f"equality '{name}' is a polynomial and is ignored.")
            return
        terms = dict(first)
        for joint, ratio in second.items():
            terms[joint] = terms.get(joint, 0.0) - float(data[1]) * ratio
        terms = {joint: ratio for joint, ratio in terms.items() if ratio}
        if terms:
            names, ratios = tuple(terms), tuple(terms.values())
            self.relations.append(rb.RobotCoupling(name, names, ratios, offset, line))
        else:
            robot.remark_lost(line, f"equality '{name}' does not relate joints and is ignored.")

    def _relate(self) -> None:
        """Fix the joints that relations determine, and add the other relations as couplings."""
        robot, left, fixed = self.robot, self.relations, dict[str, float]()
        count = len(left) + 1
        while len(left) < count:
            count, rest = len(left), []
            for one in left:
                terms = dict(zip(one.joints, one.ratios, strict=True))
                value = one.offset - sum(r * fixed[j] for j, r in terms.items() if j in fixed)
                terms = {j: r for j, r in terms.items() if j not in fixed}
                if not terms:
                    text = f"equality '{one.name}' of joints that are fixed is ignored."
                    robot.remark_lost(one.line, text)
                elif len(terms) == 1:
                    joint, ratio = next(iter(terms.items()))
                    fixed[joint] = value / ratio
                    self._lock(joint, fixed[joint], one.name, one.line)
                else:
                    names, ratios = tuple(terms), tuple(terms.values())
                    rest.append(rb.RobotCoupling(one.name, names, ratios, value, one.line))
            left = rest
        robot.couplings += left

    def _lock(self, joint: str, change: float, name: str, line: int) -> None:
        """Fix a joint at a given change of its coordinate."""
        own = self.robot.joints[joint]
        own.pose = own.pose @ rb.joint_motion(own, change)
        own.type = "fixed"
        self.robot.remark(line, f"equality '{name}' fixes joint '{joint}'.")

    def _loop(self, e: int, name: str, line: int, weld: bool) -> None:
        """Add a connect or weld constraint; points and orientation are those of the compiled model."""
        m, data = self.m, self.m.eq_data[e]
        one, two = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
        if int(m.eq_objtype[e]) == int(self.mj.mjtObj.mjOBJ_SITE):
            links = tuple(self.links[m.site_bodyid[s]] for s in (one, two))
            frames = tuple(rb.frame_of(m.site_pos[s], m.site_quat[s]) for s in (one, two))
        else:
            links = tuple(self.links[b] for b in (one, two))
            if weld:
                # data: anchor in the second body, point and orientation relative to the first
                frames = rb.frame_of(data[3:6], data[6:10]), rb.transform(data[:3])
            else:
                frames = rb.transform(data[:3]), rb.transform(data[3:6])
        # without a scale of torques a weld leaves rotations free
        kind = "fixed" if weld and data[10] else "spherical"
        self.robot.loops.append(rb.RobotLoop(name, kind, links, frames, line))  # type: ignore[arg-type]

    def _tendon_terms(self, t: int) -> dict[int, float] | None:
        """Return the joints of a fixed tendon with their coefficients; None for a spatial tendon."""
        m = self.m
        span = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
        if not all(int(m.wrap_type[w]) == int(self.mj.mjtWrap.mjWRAP_JOINT) for w in span):
            return None
        return {int(m.wrap_objid[w]): float(m.wrap_prm[w]) for w in span}

    def _tendons(self) -> None:
        """Add springs and dampers of tendons that are straight lines between two sites."""
        m, robot = self.m, self.robot
        site = int(self.mj.mjtWrap.mjWRAP_SITE)
        for t in range(m.ntendon):
            name = self.names["tendon"][t]
            line = self.line("spatial", name) or self.line("fixed", name)
            span = range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t])
            keys = {"stiffness": "spring", "damping": "damper", "frictionloss": "frictionloss"}
            stiffness, damping, friction = (
                float(getattr(m, f"tendon_{key}")[t]) if self.has[on] else 0.0 for key, on in keys.items()
            )
            self._remark_nonlinear(
                f"tendon '{name}'", line, m.tendon_stiffnesspoly[t], m.tendon_dampingpoly[t]
            )
            if m.tendon_limited[t] and self.has["limit"]:
                robot.remark_lost(line, f"the limit of tendon '{name}' is ignored.")
            straight = len(span) == 2 and all(int(m.wrap_type[w]) == site for w in span)
            low, high = m.tendon_lengthspring[t]
            others = friction or m.tendon_armature[t] or (stiffness and m.tendon_plasticadr[t] >= 0)
            if straight and (low == high or not stiffness) and not others:
                if stiffness or damping:
                    ends = [self.names["site"][int(m.wrap_objid[w])] for w in span]
                    robot.springs.append(
                        rb.RobotSpring(name, (ends[0], ends[1]), stiffness, float(low), damping, line)
                    )
            elif stiffness or damping or others:
                robot.remark_lost(
                    line, f"spring, damper, friction and armature of tendon '{name}' are ignored."
                )
            elif self._tendon_terms(t) is None:
                robot.remark(line, f"tendon '{name}' is ignored.")

    def _limit(self, a: int, terms: dict[str, float], is_ideal: bool, line: int) -> None:
        """Add the effort limits of an actuator to those of its joint, if it acts on only one."""
        m, pair = self.m, np.array([-np.inf, np.inf])
        clamps = is_ideal and not m.opt.disableflags & int(self.mj.mjtDisableBit.mjDSBL_CLAMPCTRL)
        # the control of an ideal motor is its effort
        for key, counts in (("force", True), ("ctrl", clamps)):
            if counts and getattr(m, f"actuator_{key}limited")[a]:
                lower, upper = getattr(m, f"actuator_{key}range")[a]
                pair = np.array([max(pair[0], lower), min(pair[1], upper)])
        if len(terms) > 1 or not pair[0] <= 0 <= pair[1] or pair[0] == pair[1]:
            if np.isfinite(pair).any():
                self.robot.remark_lost(
                    line, f"the limits of actuator '{self.names['actuator'][a]}' are ignored."
                )
            pair = np.array([-np.inf, np.inf])
        for joint, ratio in terms.items():
            own = self.efforts.setdefault(joint, np.zeros(2))
            own += np.sort(ratio * pair)
            if np.isfinite(pair).any():
                self.limited.setdefault(joint, []).append((self.names["actuator"][a], line))

    def _actuator(self, a: int) -> None:
        """Add an actuator of joints as an ideal motor."""
        m, robot, kinds = self.m, self.robot, self.mj.mjtTrn
        name = self.names["actuator"][a]
        line = next((line for (_, n), line in self.lines.items() if n == name and _ in ACTUATORS), 0)
        kind, target = int(m.actuator_trntype[a]), int(m.actuator_trnid[a, 0])
        # an actuator with several outputs acts on a ball joint
        gear = m.actuator_gear[m.actuator_outadr[a]]
        terms: dict[str, float] | None = None
        if kind in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)):
            terms = self._joint_coefficients({target: 1.0})
        elif kind == int(kinds.mjTRN_TENDON):
            terms = self._joint_coefficients(self._tendon_terms(target))
        terms = {
            joint: ratio * float(gear[0])
            for joint, ratio in (terms or {}).items()
            if ratio * gear[0] and robot.joints[joint].type != "fixed"
        }
        if not terms:
            robot.remark(
                line,
                f"actuator '{name}' does not act on joints with one coordinate and is ignored.",
                lost=True,
            )
            return
        armature = float(m.actuator_armature[a])
        damping = float(m.actuator_damping[a]) if self.has["damper"] else 0.0
        self._remark_nonlinear(f"actuator '{name}'", line, 0.0, m.actuator_dampingpoly[a])
        if (armature or damping) and len(terms) == 1:
            joint, ratio = next(iter(terms.items()))
            robot.joints[joint].armature += ratio**2 * armature
            robot.joints[joint].damping += ratio**2 * damping
        elif armature or damping:
            text = f"armature and damping of actuator '{name}', which acts on several joints, are ignored."
            robot.remark_lost(line, text)
        group = int(m.actuator_group[a])
        if not self.has["actuation"] or (0 <= group < 31 and m.opt.disableactuator >> group & 1):
            robot.remark(line, f"actuator '{name}' is disabled and is ignored.")
            return
        types = (m.actuator_gaintype[a], m.actuator_biastype[a], m.actuator_dyntype[a])
        ideal = (self.mj.mjtGain.mjGAIN_FIXED, self.mj.mjtBias.mjBIAS_NONE, self.mj.mjtDyn.mjDYN_NONE)
        is_ideal = tuple(map(int, types)) == tuple(map(int, ideal)) and m.actuator_gainprm[a, 0] == 1.0
        if not is_ideal or m.actuator_delay[a]:
            self.laws.append(name)
        self._limit(a, terms, is_ideal, line)
        robot.actuators.append(rb.RobotActuator(name, tuple(terms), tuple(terms.values()), line))
