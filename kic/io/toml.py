"""Model files in TOML: reading with a schema, and writing."""

from __future__ import annotations

import inspect
import json
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import radians
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args, get_origin, get_type_hints

from kic.description.description import KINDS, MechanismDescription, Part
from kic.description.joint_types import LOOP_TYPES
from kic.description.parts import Six
from kic.description.units import Units
from kic.description.validation import STRICT, Vector
from kic.errors import FileError, KicError, ModelFileError, either, invalid, short_repr
from kic.io.dh import DH, DHRow, from_dh
from kic.io.files import atomic_write, kind_of
from kic.io.library import SUFFIXES, find, model_names
from kic.mechanism import Mechanism


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
        For an unknown shipped model.
    ModelFileError
        For an invalid file; carries `path` and `key`.

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


def _read(path: Path) -> dict[str, Any]:
    """Return the keys and values of a file."""
    numbers: dict[str, Any] = {}
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)  # a device may have no end
        if len(content) <= BYTES_MAX:
            return _tables(content.decode("utf-8-sig"), path)
        rule, numbers = (
            f"must have at most {BYTES_MAX // 10**6} MB, got more",
            {"limit": BYTES_MAX},
        )
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
        rule = kind_of(content) or f"is not text (byte {error.start} is not UTF-8). A model file is TOML"
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

    The parser takes time and memory with the square of the number of dots in a key, and about 2 µs for each
    value. Both are bounded before it starts.
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
            rule = kind_of(text.encode()) or f"is not TOML: {error}{kinds}"
    raise ModelFileError(f"{path}: {rule}.", path=path)


@dataclass(frozen=True)
class OpenLoop:
    """Loop that is open in the file and closed by `Mechanism.close_loops`."""

    __pydantic_config__ = STRICT
    frames: tuple[str, str]
    """The two frames or points that coincide where the loop is closed."""
    type: Literal[LOOP_TYPES] = "spherical"  # type: ignore[valid-type]
    """Type of the closing joint: revolute about the z axis of the first frame, for example."""


@lru_cache(maxsize=2)
def _file_type(dh: bool) -> Any:
    """Return the type of a file: a description with open loops, and perhaps DH rows instead of joints."""
    hints = get_type_hints(MechanismDescription)
    left_out = ("name", "joints") if dh else ("name",)
    kept = [(f.name, hints[f.name], f) for f in fields(MechanismDescription) if f.name not in left_out]
    first: list[Any] = [("name", str)] + [("dh", DH)] * dh
    return make_dataclass(
        "DHFile" if dh else "ModelFile",
        [*first, *kept, ("loops", tuple[OpenLoop, ...], ())],
        frozen=True,
        namespace={"__pydantic_config__": MechanismDescription.__pydantic_config__},
    )


@lru_cache(maxsize=2)
def _adapter(dh: bool) -> Any:
    """Return the validator of a file; the schema library is imported here."""
    from pydantic import TypeAdapter

    return TypeAdapter(_file_type(dh))


def _mechanism(path: Path, data: dict[str, Any]) -> Mechanism:
    """Return the mechanism of keys and values, or raise an error that names path and key."""
    from pydantic import ValidationError

    dh = "dh" in data
    if dh and "joints" in data:
        message = f"{path}: joints: a file must have either `joints` or `dh` rows, not both."
        raise ModelFileError(message, path=path, key="joints")
    try:
        # a date becomes True, which is invalid for every key
        checked = _adapter(dh).validate_json(json.dumps(data, default=lambda date: True), strict=True)
        values = {f.name: getattr(checked, f.name) for f in fields(checked)}
        loops = [(*loop.frames, loop.type) for loop in values.pop("loops")]
        if dh:
            arm = values.pop("dh")
            made = from_dh(values.pop("name"), arm.rows, convention=arm.convention, **values)
        else:
            made = Mechanism(**values)
        return made.close_loops(loops) if loops else made
    except RecursionError:
        raise ModelFileError(f"{path}: {_TOO_DEEP}.", path=path) from None
    except ValidationError as error:
        raise _explained(
            path, _file_type(dh), data, error.errors(include_url=False, include_input=False)
        ) from None
    except KicError as error:
        key = error.numbers.get("key", "")
        if dh:  # keys of joints made by `from_dh` become keys of rows
            key = re.sub(r"^joints\[(\d+)\]\.name", r"rows[\1].joint", key)
            key = re.sub(r"^(rows|convention)", r"dh.\1", key)
        place = f"{key}: " if key else ""
        words = str(error)
        numbers = {**error.numbers, "path": path, "key": key}
        raise ModelFileError(f"{path}: {place}{words}", **numbers) from None


def _explained(path: Path, form: Any, data: dict[str, Any], found: list[Any]) -> ModelFileError:
    """Return an error for findings of the schema library, each with key, rule and value."""
    seen: dict[str, str] = {}
    for error in found:
        if error["type"] == "json_invalid":  # the depth limit of the schema library
            return ModelFileError(f"{path}: {_TOO_DEEP}.", path=path)
        key, here, hint, value = _place(form, data, error["loc"])
        name, kind, message = str(error["loc"][-1]), error["type"], ""
        is_key = kind in ("unexpected_keyword_argument", "missing") and here is not None
        if is_key:
            key = _joined(key, name)
        if len(seen) >= 4:
            pass  # further findings are only counted
        elif is_key and kind == "missing":
            message = f"`{name}` is missing."
        elif is_key:
            keys = [f.name for f in fields(here)] + (["dh"] if here is _file_type(False) else [])
            close = get_close_matches(name, keys, n=1)
            guess = f" Did you mean '{close[0]}'?" if close else ""
            message = f"unknown key.{guess} Keys here: {', '.join(keys)}."
        elif kind == "value_error":
            message = str(cause := error["ctx"]["error"])
            if isinstance(cause, KicError):
                key = _joined(key, *cause.numbers.get("key", "").split("."))
        else:
            came = f"the date {value}" if hasattr(value, "isoformat") else short_repr(value)
            message = f"must be {_rule(key, hint)}, got {came}.{_angles(value)}"
        seen.setdefault(key, message)
    lines = [f"{key}: {message}" if key else message for key, message in seen.items()]
    more = f"\n  … and {len(lines) - 4} more." if len(lines) > 4 else ""
    return ModelFileError(f"{path}: " + "\n  ".join(lines[:4]) + more, path=path, key=next(iter(seen)))


def _place(form: Any, data: Any, loc: tuple[Any, ...]) -> tuple[str, Any, Any, Any]:
    """Return for a location its key as in the file, the table that holds it, its type and its value.

    Further parts, in a list of numbers or a branch of a union, are ignored.
    """
    key, value = "", data
    here: Any = form
    hint: Any = form
    for part in loc:
        if isinstance(part, int):
            if here is None or not isinstance(value, list):
                break
            key, hint, value = f"{key}[{part}]", here, value[part]
        elif here is None or part not in _hints(here) or not isinstance(value, dict) or part not in value:
            break
        else:
            hint = _hints(here)[part]
            key, value = _joined(key, part), value[part]
            here = next((t for t in (hint, *get_args(hint)) if is_dataclass(t)), None)
    return key, here, hint, value


@lru_cache(maxsize=32)
def _hints(form: Any) -> dict[str, Any]:
    """Return the resolved type hints of a dataclass."""
    return get_type_hints(form)


def _joined(key: str, *names: str) -> str:
    """Return a key below another, quoted as in TOML."""
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
    tuple[str, str]: "two names",
    tuple[str, ...]: "a list of names",
}


def _rule(key: str, hint: Any) -> str:
    """Return a type as text."""
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


# all parts share the schema settings STRICT, which one call at a time may change
_SETTINGS_LOCK = Lock()
# sections of docstrings, and parameters in them
_SECTION = re.compile(r"\n\n(\w+)\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"^(\w.*?) : .*((?:\n    .*)+)", re.MULTILINE)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of model files, for editors.

    Examples
    --------
    >>> kic.schema()["title"]
    'kic model'
    """
    from pydantic import TypeAdapter

    with _SETTINGS_LOCK:
        # docstrings of fields are read from the source, which takes longer than loading a model
        STRICT["use_attribute_docstrings"] = True
        try:
            description = TypeAdapter(MechanismDescription).json_schema()
            dh = TypeAdapter(DH).json_schema()
            loop = TypeAdapter(OpenLoop).json_schema()
        finally:
            del STRICT["use_attribute_docstrings"]
    description["$defs"] |= {**dh.pop("$defs"), "DH": dh, "OpenLoop": loop}
    description["properties"] |= {
        "dh": {"$ref": "#/$defs/DH", "description": "DH rows, instead of joints."},
        "loops": {
            "type": "array",
            "items": {"$ref": "#/$defs/OpenLoop"},
            "description": "Loops that are open in the description.",
        },
    }
    description["oneOf"] = [{"required": ["joints"]}, {"required": ["dh"]}]
    description["title"] = "kic model"
    kinds = {kind.__name__: kind for kind in (*get_args(Part), Units, DHRow, DH, OpenLoop)}
    for name, part in description["$defs"].items():
        _describe(part, inspect.getdoc(kinds[name]) or "")
    description["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return description


def _describe(part: dict[str, Any], docstring: str) -> None:
    """Describe a part by its docstring, and its properties by the parameters; keep the notes alone."""
    for names, text in _PARAMETER.findall(dict(_SECTION.findall(docstring)).get("Parameters", "")):
        for name in names.split(", "):
            part["properties"][name]["description"] = " ".join(text.split())
    part["description"] = _SECTION.sub(lambda m: m[0] if m[1] == "Notes" else "", docstring)


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a mechanism to a TOML file that `load` reads back equal.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism to write. Default values are left out.
    path : path
        File to write. An existing file is replaced.

    Raises
    ------
    ModelFileError
        If the file cannot be written; an existing file stays unchanged.

    Examples
    --------
    >>> import kic, tempfile, pathlib
    >>> arm = kic.load("horn-two-link")
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "arm.toml"
    >>> arm.save(file)
    >>> kic.load(file) == arm
    True
    """
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
    except UnicodeEncodeError as error:
        raise ModelFileError(
            f"{path}: cannot be written: {error}. Remove that character from the text.", path=path
        ) from None


def written(mechanism: MechanismDescription) -> str:
    """Return a mechanism as the text of a model file."""
    import tomlkit

    values = _plain(mechanism)
    document = tomlkit.document()
    for key in sorted(values, key=_rank):
        document[key] = _item(values[key])
    return tomlkit.dumps(document)


def parsed(text: str, path: Path) -> Mechanism:
    """Return the mechanism of the text of a model file; errors name the path."""
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
    values = {}
    for f in fields(item):
        value = getattr(item, f.name)
        if isinstance(item, MechanismDescription) and f.name in ("coordinates", "actuators"):
            value = item._given(f.name)  # the argument, not its default
        if isinstance(value, tuple) and f.name in _PER_COORDINATE:
            if not any(value):
                continue
            value = value[0] if len(value) == 1 else value
        elif f.name == "inertia" and isinstance(value, tuple) and not any(value[3:]):
            value = value[:3]
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        if value != default:
            values[f.name] = _plain(value)
    return values
