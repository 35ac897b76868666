"""Model files in TOML: reading, their schema, and writing."""

from __future__ import annotations

import inspect
import json
import os
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import inf, radians
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kic.description.description import KINDS, Info, MechanismDescription, Part, given_names
from kic.description.joint_types import LOOP_TYPES
from kic.description.parts import TENSOR_ENTRIES, Six
from kic.description.units import Units
from kic.description.validation import Vector
from kic.errors import FileError, KicError, ModelFileError, either, invalid, short_repr
from kic.io.dh import DH, DHRow, from_dh
from kic.io.library import SUFFIXES, find, model_names
from kic.mechanism.assembly import tolerate_rounding
from kic.mechanism.mechanism import Mechanism
from kic.numerics.files import atomic_write

# first bytes of files of other kinds, what they are, and what reads them
_KINDS = (
    (b"PK", "is a zip archive, perhaps a saved run. kic.results.Simulation.load reads runs"),
    (b"\x89PNG", "is a picture"),
    (b"%PDF", "is a picture (PDF)"),
    (b"<svg", "is a picture (SVG)"),
    (b"<robot", "is URDF. kic.from_urdf reads it"),
    (b"<sdf", "is SDF. kic.from_sdf reads it"),
    (b"<mujoco", "is MJCF. kic.from_mjcf reads it"),
    (b"{", "is JSON, which kic writes but does not read. A model file is TOML"),
)


def load(model: str | os.PathLike[str]) -> Mechanism:
    """Read a mechanism from a shipped model, or from a TOML, URDF, SDF or MJCF file.

    Parameters
    ----------
    model : str or path
        Name of a shipped model ("puma560"), or the path of a file ("./arm.toml", "robot.urdf"). The functions
        `from_urdf`, `from_sdf` and `from_mjcf` have more options.

    Returns
    -------
    Mechanism

    Raises
    ------
    UnknownNameError
        If the shipped model is unknown.
    ModelFileError
        If the file is invalid; the error carries `path` and `key`.

    Examples
    --------
    >>> kic.load("puma560").dof
    6
    """
    path = find(model)
    if path.suffix.lower() in SUFFIXES[1:]:
        from kic.io import mjcf, sdf, urdf, xml

        root = xml.read_root(path, "robot")
        readers: dict[str, Any] = {
            "robot": urdf.from_urdf, "sdf": sdf.from_sdf, "mujoco": mjcf.from_mjcf,
        }  # fmt: skip
        if root.tag not in readers:
            root.fail("the root must be <robot> (URDF), <sdf> or <mujoco>.")
        return readers[root.tag](root)
    return _mechanism(path, _read(path))


def _kind_of(content: bytes) -> str:
    """Return the kind of a file that is not a TOML model, with the function that reads it; '' if unknown.

    Examples
    --------
    >>> _kind_of(b"<?xml version='1.0'?><robot name='arm'>")
    'is URDF. kic.from_urdf reads it'
    """
    start = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    # an XML file may begin with a declaration and comments
    while start.startswith((b"<?", b"<!--")):
        end = b"-->" if start.startswith(b"<!--") else b">"
        start = start.partition(end)[2].lstrip()
    return next((what for first, what in _KINDS if start.startswith(first)), "")


def _read(path: Path) -> dict[str, Any]:
    """Return the keys and values of a file."""
    numbers: dict[str, Any] = {}
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)  # a device may have no end
        if len(content) <= BYTES_MAX:
            return _tables(content.decode("utf-8-sig"), path)
        rule, numbers = f"must have at most {BYTES_MAX // 10**6} MB, got more", {"limit": BYTES_MAX}
    except FileNotFoundError as error:
        numbers = {"errno": error.errno}
        there = sorted(p.name for p in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
        close = get_close_matches(path.name, there)
        close += [f"the shipped model '{name}'" for name in get_close_matches(path.stem, model_names(), 1)]
        rule = f"there is no such file{f', but there is {either(close)}' if close else ''}"
        numbers["candidates"] = tuple(close)
    except OSError as error:
        rule, numbers = f"cannot be read: {error.strerror}", {"errno": error.errno}
    except UnicodeDecodeError as error:
        rule = _kind_of(content) or f"is not text (byte {error.start} is not UTF-8). A model file is TOML"
    except ModelFileError:
        raise
    except ValueError as error:  # an invalid path
        rule = f"cannot be read: {error}"
    raise ModelFileError(f"{path}: {rule}.", path=path, **numbers)


# a file within these bounds loads, or fails, in about 2 s and 200 MB; a chain of 13,000 joints is within them
BYTES_MAX, VALUES_MAX, DOTS_MAX = 4_000_000, 250_000, 16
_TOO_DEEP = "is nested too deeply to be a model"
# strings and comments of TOML; one without an end reaches to the end of the line or the text
_TEXTS = re.compile(
    r'"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+"
)
_KEYS = re.compile(r"[\w\-. \t]+")


def _tables(text: str, path: Path) -> dict[str, Any]:
    """Return the keys and values of the text of a model file.

    Time and memory of the parser grow with the square of the number of dots in a key, and by about 2 µs for
    each value. Both numbers are bounded before it starts.
    """
    bare = _TEXTS.sub(" ", text)
    values = sum(map(bare.count, "=,[{"))
    if values > VALUES_MAX:
        rule = f"must have at most {VALUES_MAX:,} values, got about {values:,}"
    elif any(found[0].count(".") > DOTS_MAX for found in _KEYS.finditer(bare)):
        rule = _TOO_DEEP
    else:
        try:
            return tomllib.loads(text)
        except RecursionError:
            rule = _TOO_DEEP
        except ValueError as error:
            known = path.suffix.lower() in SUFFIXES
            kinds = "" if known else f". Files of mechanisms end in {', '.join(SUFFIXES)}"
            rule = _kind_of(text.encode()) or f"is not TOML: {error}{kinds}"
    raise ModelFileError(f"{path}: {rule}.", path=path)


@dataclass(frozen=True)
class OpenLoop:
    """Loop that is open in the file and closed by `Mechanism.close_loops`.

    Parameters
    ----------
    frames : (str, str)
        The two frames or points that coincide where the loop is closed.
    type : str
        Type of the closing joint: revolute about the z axis of the first frame, for example.
    """

    frames: tuple[str, str]
    type: Literal[LOOP_TYPES] = "spherical"  # type: ignore[valid-type]


# type and default of each key of a table
Form = dict[str, tuple[Any, Any]]


@lru_cache(maxsize=32)
def _form(kind: Any) -> Form:
    """Return the keys of a table for a dataclass; for a mechanism, the keys of a file."""
    if kind is Mechanism:
        return _form(MechanismDescription) | {"loops": (tuple[OpenLoop, ...], None), "dh": (DH, None)}
    hints = get_type_hints(kind)
    made = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(kind)}
    texts = _form(Info) if made.pop("info", None) else {}
    return {name: (hints[name], default) for name, default in made.items()} | texts


def _mechanism(path: Path, data: dict[str, Any]) -> Mechanism:
    """Return the mechanism of keys and values, or raise an error that names path and key."""
    if "dh" in data and "joints" in data:
        message = f"{path}: joints: a file must have either `joints` or `dh` rows, not both."
        raise ModelFileError(message, path=path, key="joints")
    found: dict[str, str] = {}
    values = _table(_form(Mechanism), data, "", found)
    if found:
        lines = [f"{key}: {message}" for key, message in found.items()]
        more = f"\n  … and {len(lines) - FINDINGS_MAX} more." if len(lines) > FINDINGS_MAX else ""
        message = f"{path}: " + "\n  ".join(lines[:FINDINGS_MAX]) + more
        raise ModelFileError(message, path=path, key=next(iter(found)))
    loops, arm = values.pop("loops", ()), values.pop("dh", None)
    values["info"] = {f.name: values.pop(f.name) for f in fields(Info) if f.name in values}
    try:
        if arm is not None:
            made = from_dh(values.pop("name"), arm.rows, convention=arm.convention, **values)
        else:
            made = Mechanism(**values)
        if loops:
            return made.close_loops([(*loop.frames, loop.type) for loop in loops])
        return made if "closure_tolerance" in data else tolerate_rounding(made)
    except KicError as error:
        key = error.numbers.get("key", "")
        if arm is not None:  # keys of joints made by `from_dh` become keys of rows
            key = re.sub(r"^joints\[(\d+)\]\.name", r"rows[\1].joint", key)
            key = re.sub(r"^(rows|convention)", r"dh.\1", key)
        place = f"{key}: " if key else ""
        numbers = {**error.numbers, "path": path, "key": key}
        raise ModelFileError(f"{path}: {place}{error}", **numbers) from None


# number of findings in an error; further ones are counted
FINDINGS_MAX = 4


def _table(form: Form, given: dict[str, Any], key: str, found: dict[str, str]) -> dict[str, Any]:
    """Return the values of a table with their types; add findings to `found` by key."""
    values = {}
    for name, (hint, default) in form.items():
        if name in given:
            values[name] = _value(hint, given[name], _joined(key, name), found)
        elif default is MISSING:
            found[_joined(key, name)] = f"`{name}` is missing."
    for name in given:
        if name not in form:
            close = get_close_matches(name, form, n=1) if len(found) < FINDINGS_MAX else []
            guess = f" Did you mean '{close[0]}'?" if close else ""
            found[_joined(key, name)] = f"unknown key.{guess} Keys here: {', '.join(form)}."
    return values


def _value(hint: Any, given: Any, key: str, found: dict[str, str]) -> Any:
    """Return a value of a file with its type; add findings to `found` by key."""
    part, count = next(filter(is_dataclass, get_args(hint)), None), len(found)
    if is_dataclass(hint) and isinstance(given, dict):
        values = _table(_form(hint), given, key, found)  # type: ignore[arg-type]
        try:
            return hint(**values) if len(found) == count else None  # type: ignore[operator]
        except KicError as error:
            found[_joined(key, *error.numbers.get("key", "").split("."))] = str(error)
            return None
    if part and isinstance(given, list):
        return tuple(_value(part, one, f"{key}[{k}]", found) for k, one in enumerate(given))
    try:
        return _converted(hint, given)
    except TypeError:
        came = f"the date {given}" if hasattr(given, "isoformat") else short_repr(given)
        found[key] = f"must be {_rule(key, hint)}, got {came}.{_angles(given)}"


def _converted(hint: Any, given: Any) -> Any:
    """Convert a number, text or list to a type; raise TypeError if it does not match."""
    origin, kinds = get_origin(hint), get_args(hint)
    if hint is float and isinstance(given, int | float) and not isinstance(given, bool):
        try:
            return float(given)
        except OverflowError:  # an integer
            return inf if given > 0 else -inf
    if (hint in (str, bool) and isinstance(given, hint)) or (origin is Literal and given in kinds):
        return given
    if origin is tuple and isinstance(given, list):
        kinds = kinds[:1] * len(given) if kinds[-1] is ... else kinds
        if len(kinds) == len(given):
            return tuple(map(_converted, kinds, given))
    for kind in kinds if origin in (Union, UnionType) else ():
        with suppress(TypeError):
            return _converted(kind, given)
    raise TypeError


def _joined(key: str, *names: str) -> str:
    """Return a dotted key of TOML from a key and names, quoted if necessary."""
    for name in names:
        if name:
            bare = re.fullmatch(r"[\w-]+(\[\d+\])?", name, re.ASCII)
            key += ("." if key else "") + (name if bare else json.dumps(name, ensure_ascii=False))
    return key


_ANGLE = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(°|deg(?:rees?)?|rad(?:ians?)?)", re.IGNORECASE
)


def _angles(value: Any) -> str:
    """Return a remark on angles given as text with a unit, with their values in radians; else ''."""
    texts = value if isinstance(value, list) else [value]
    found = [m for m in (_ANGLE.fullmatch(t.strip()) for t in texts if isinstance(t, str)) if m]
    # ten digits, because an error of 1e-6 would open a loop
    each = [f"{m[0]} is {radians(float(m[1])) if m[2][0] not in 'rR' else float(m[1]):.10g}" for m in found]
    return f" Angles are radians, numbers without a unit: {', '.join(each)}." if each else ""


_WORDS: dict[Any, str] = {
    str: "text",
    float: "a number",
    Vector: "three numbers",
    Six: "six numbers (xx yy zz xy xz yz)",
    tuple[Vector, Vector, Vector]: "three rows of three numbers",
    bool: "true or false",
    tuple[float, float]: "two numbers",
    tuple[float, ...]: "a list of numbers",
    tuple[tuple[float, float], ...]: "a list of pairs of numbers",
    tuple[float | tuple[float, float], ...]: "a list of numbers and pairs",
    tuple[str, str]: "two names",
    tuple[str, ...]: "a list of names",
}


def _rule(key: str, hint: Any) -> str:
    """Return the description of a type for an error message."""
    if hint in _WORDS:
        return _WORDS[hint]
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    if is_dataclass(hint):
        return "a table"
    if any(map(is_dataclass, get_args(hint))):
        return f"tables, each below [[{key}]]"
    *rest, last = [_WORDS[t] for t in get_args(hint) if t in _WORDS]
    return f"{', '.join(rest)} or {last}" if rest else last


# sections of docstrings, and parameters in them
_SECTION = re.compile(r"\n\n(\w+)\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"^(\w.*?) : .*((?:\n    .*)+)", re.MULTILINE)
_JSON_TYPES = {str: "string", float: "number", bool: "boolean"}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of model files, for editors.

    Examples
    --------
    >>> kic.schema()["title"]
    'kic model'
    """
    kinds = (*get_args(Part), Units, DHRow, DH, OpenLoop)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kic model",
        **_table_schema(Mechanism),
        "oneOf": [{"required": ["joints"]}, {"required": ["dh"]}],
        "$defs": {kind.__name__: _table_schema(kind) for kind in kinds},
    }


def _table_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a table, with the description and the parameters of its docstring."""
    docstring, form = inspect.getdoc(kind) or "", _form(kind)
    both = docstring, inspect.getdoc(Info) or "" if kind is Mechanism else ""
    found = [
        one for text in both for one in _PARAMETER.findall(dict(_SECTION.findall(text)).get("Parameters", ""))
    ]
    described = {name: " ".join(text.split()) for names, text in found for name in names.split(", ")}
    properties = {}
    for name, (hint, default) in form.items():
        parts = [part for part in (hint, *get_args(hint)) if is_dataclass(part)]
        # a table, or tables, have the summary of their part
        text = (inspect.getdoc(parts[0]) or "").partition("\n")[0] if parts else described[name]
        properties[name] = _value_schema(hint) | {"description": text}
        if default not in (None, MISSING):
            properties[name]["default"] = _plain(default)
    return {
        "type": "object",
        "description": _SECTION.sub(lambda m: m[0] if m[1] == "Notes" else "", docstring),
        "properties": properties,
        "required": [name for name, (_, default) in form.items() if default is MISSING],
        "additionalProperties": False,
    }


def _value_schema(hint: Any) -> dict[str, Any]:
    """Return the JSON schema of a type hint."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    if hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    if is_dataclass(hint):
        return {"$ref": f"#/$defs/{hint.__name__}"}  # type: ignore[union-attr]
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": kinds}
    if get_origin(hint) is not tuple:
        return {"anyOf": list(map(_value_schema, kinds))} if len(kinds) > 1 else _value_schema(kinds[0])
    if kinds[-1] is ...:
        return {"type": "array", "items": _value_schema(kinds[0])}
    size = {"minItems": len(kinds), "maxItems": len(kinds)}
    return {"type": "array", "prefixItems": list(map(_value_schema, kinds)), **size}


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a mechanism to a TOML file that `load` reads back equal; see `Mechanism.save`."""
    if not isinstance(mechanism, MechanismDescription):
        raise invalid("mechanism", "must be a Mechanism", mechanism)
    write_model(path, lambda: written(mechanism))


def write_model(path: str | os.PathLike[str], text: Callable[[], str]) -> None:
    """Write the text of a model file."""
    try:
        content = text().encode("utf-8")
        with atomic_write(path) as file:
            file.write(content)
    except FileError as error:
        raise ModelFileError(error.message, **error.numbers) from None


def written(mechanism: MechanismDescription) -> str:
    """Return a mechanism as the text of a model file."""
    import tomlkit

    values = _plain(mechanism)
    if isinstance(mechanism, Mechanism):
        tolerance = mechanism.closure_tolerance
        if tolerate_rounding(mechanism).closure_tolerance != tolerance:
            values["closure_tolerance"] = tolerance
    document = tomlkit.document()
    for key in sorted(values, key=_rank):
        document[key] = _item(values[key])
    return tomlkit.dumps(document)


def parsed(text: str, path: Path) -> Mechanism:
    """Return the mechanism from the text of a model file; errors name the path."""
    return _mechanism(path, _tables(text, path))


def _rank(key: str) -> int:
    """Return the position of a key: texts first, tables last, as in the shipped models."""
    first = ("name", "title", "about", "source", "drawing", "units", "gravity")
    return first.index(key) if key in first else len(first) + (key in KINDS)


def _item(value: Any) -> Any:
    """Return a value as a TOML item: arrays of tables, and multi-line strings."""
    import tomlkit

    if isinstance(value, dict):
        item = tomlkit.inline_table()
        item.update(value)
        return item
    if isinstance(value, list) and value and isinstance(value[0], dict):
        array = tomlkit.aot()
        for row in value:
            table = tomlkit.table()
            table.update({key: _item(x) for key, x in row.items()})
            array.append(table)
        return array
    if isinstance(value, str) and "\n" in value and all(c.isprintable() or c == "\n" for c in value):
        escaped = re.sub(r'"(?="")|"\Z', r'\\"', value.replace("\\", "\\\\"))
        return tomlkit.value(f'"""\n{escaped}"""')
    return value


_PER_COORDINATE = ("value", "stiffness", "rest", "damping", "armature", "friction")


def _plain(item: Any) -> Any:
    """Return dataclasses as dicts without default values, and tuples as lists, in the shortest form."""
    if not is_dataclass(item):
        return [_plain(x) for x in item] if isinstance(item, tuple) else item
    values: dict[str, Any] = {}
    for f in fields(item):
        value = getattr(item, f.name)
        if isinstance(value, Info):
            values |= _plain(value)
            continue
        if isinstance(item, MechanismDescription) and f.name in ("coordinates", "actuators"):
            value = given_names(item, f.name)  # the argument, not its default
        if isinstance(value, tuple) and f.name in _PER_COORDINATE:
            if not any(value):
                continue
            value = value[0] if len(value) == 1 else value
        elif f.name == "inertia" and isinstance(value, tuple):
            six = tuple(value[i][j] for i, j in zip(*TENSOR_ENTRIES, strict=True))
            value = six if any(six[3:]) else six[:3]
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        if value != default:
            values[f.name] = _plain(value)
    return values
