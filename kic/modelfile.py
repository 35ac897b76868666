"""Model files: TOML with the words of the drawing, read through a schema, written back the same."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import MISSING, fields, is_dataclass, make_dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

from kic.dh import DH, from_dh
from kic.drawing import Drawing
from kic.errors import KicError, ModelFileError, unknown
from kic.mechanism import Mechanism


def models_directory() -> Path:
    """Folder of the shipped models: inside the installed package, or beside it in a checkout."""
    installed = Path(__file__).parent / "models"
    return installed if installed.is_dir() else Path(__file__).parent.parent / "models"


def model_names() -> tuple[str, ...]:
    """Names of the shipped models, sorted.

    Examples
    --------
    >>> import kic
    >>> "puma560" in kic.model_names()
    True
    """
    return tuple(sorted(path.stem for path in models_directory().glob("*.toml")))


def find(model: str | os.PathLike[str]) -> Path:
    """File of a shipped name or of a path.

    Raises
    ------
    UnknownNameError
        For a name that is not shipped.
    """
    text = os.fspath(model)
    if isinstance(model, str) and not text.endswith(".toml") and not any(c in text for c in "/\\"):
        path = models_directory() / f"{text}.toml"
        if not path.is_file():
            raise unknown("shipped model", text, "kic", model_names())
        return path
    return Path(text)


def load(model: str | os.PathLike[str]) -> Mechanism:
    """Read a mechanism from a shipped model or a TOML file.

    Parameters
    ----------
    model : str or path
        Name of a shipped model ("puma560"), or the path of a file ("./arm.toml").

    Returns
    -------
    Mechanism

    Raises
    ------
    UnknownNameError
        For a name that is not shipped.
    ModelFileError
        For a file that can not be read: which key, which rule, what came.

    Examples
    --------
    >>> import kic
    >>> kic.load("puma560").mobility
    6
    """
    path = find(model)
    return _mechanism(path, _read(path))


def _read(path: Path) -> dict[str, Any]:
    """The file's keys and values."""
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8"))
        json.dumps(data, default=str)  # the same depth is walked again by the schema
    except FileNotFoundError:
        raise ModelFileError(
            f"No file '{path}'. Shipped models: {', '.join(model_names())}.", path=path
        ) from None
    except OSError as error:
        raise ModelFileError(f"{path}: can not be read: {error.strerror}.", path=path) from None
    except UnicodeDecodeError as error:
        raise ModelFileError(
            f"{path}: is no text (byte {error.start} is not UTF-8). A model file is TOML.", path=path
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ModelFileError(f"{path}: is not TOML: {error}.", path=path) from None
    except RecursionError:
        raise ModelFileError(f"{path}: is nested too deeply to be a model.", path=path) from None
    return data


@lru_cache(maxsize=2)
def _adapter(kind: str) -> Any:
    """Schema of a drawn file or of one with DH rows; the schema library is imported here."""
    from pydantic import TypeAdapter

    if kind == "drawn":
        return TypeAdapter(Drawing)
    hints = get_type_hints(Drawing)
    kept = [f for f in fields(Drawing) if f.name != "joints"]
    made = make_dataclass(
        "DHFile",
        [("name", str), ("dh", DH), *((f.name, hints[f.name], f) for f in kept if f.name != "name")],
        frozen=True,
        namespace={"__pydantic_config__": Drawing.__pydantic_config__},
    )
    return TypeAdapter(made)


def _mechanism(path: Path, data: dict[str, Any]) -> Mechanism:
    from pydantic import ValidationError

    kind = "dh" if "dh" in data else "drawn"
    if kind == "dh" and "joints" in data:
        raise ModelFileError(
            f"{path}: joints: a file has either `joints` as drawn or `dh` rows, not both.",
            path=path,
            key="joints",
        )
    try:
        checked = _adapter(kind).validate_json(json.dumps(data, default=str), strict=True)
        values = {f.name: getattr(checked, f.name) for f in fields(checked)}
        if kind == "drawn":
            return Mechanism(**values)
        dh = values.pop("dh")
        return from_dh(values.pop("name"), dh.rows, dh.convention, **values)
    except ValidationError as error:
        raise _explained(path, kind, data, error.errors()) from None
    except KicError as error:
        raise ModelFileError(f"{path}: {error}", path=path, **error.numbers) from None


def _explained(path: Path, kind: str, data: dict[str, Any], found: list[Any]) -> ModelFileError:
    """What the schema library found, in kic's words: place, rule, what came."""
    seen: dict[str, str] = {}
    for error in found:
        # names of union branches are no keys
        where = [
            x
            for x in error["loc"]
            if isinstance(x, int) or (x.isidentifier() and _follows(data, error["loc"], x))
        ]
        key = _spelled(where)
        if error["type"] == "extra_forbidden":
            name = str(error["loc"][-1])
            key = _spelled([*error["loc"][:-1], name])
            message = f"unknown key '{name}'."
            keys = _keys(kind, error["loc"][:-1])
            close = get_close_matches(name, keys, n=1)
            if close:
                message += f" Did you mean '{close[0]}'?"
            if keys:
                message += f" Keys here: {', '.join(keys)}."
        elif error["type"] == "missing":
            key = _spelled(error["loc"])
            message = f"`{error['loc'][-1]}` is missing."
        elif error["type"] == "value_error":
            message = str(error["ctx"]["error"])
        else:
            rule = error["msg"].replace("Input should be", "expected").replace("Unexpected", "unexpected")
            message = f"{rule[0].lower()}{rule[1:]}, got {json.dumps(error['input'], default=str)[:80]}."
        seen.setdefault(key, message)
    lines = [f"{key}: {message}" if key else message for key, message in seen.items()]
    more = f" … and {len(lines) - 4} more." if len(lines) > 4 else ""
    return ModelFileError(f"{path}: " + "\n  ".join(lines[:4]) + more, path=path, key=next(iter(seen)))


def _follows(data: Any, loc: tuple[Any, ...], name: str) -> bool:
    """Whether a part of a location is a key of the file."""
    for part in loc:
        if isinstance(data, dict) and part in data:
            if part == name:
                return True
            data = data[part]
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return False
    return False


def _spelled(where: Any) -> str:
    """A location as a person writes it: bodies[0].mass."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _keys(kind: str, loc: tuple[Any, ...]) -> list[str]:
    """Keys that are allowed at a location."""
    here: Any = DH if loc and loc[0] == "dh" else Drawing
    for part in loc[1:] if here is DH else loc:
        if isinstance(part, int):
            continue
        hint = get_type_hints(here).get(part)
        here = next((t for t in (hint, *getattr(hint, "__args__", ())) if is_dataclass(t)), None)
        if here is None:
            return []
    names = [f.name for f in fields(here)]
    return [*names, "dh"] if here is Drawing else names


def schema() -> dict[str, Any]:
    """JSON Schema of model files, for editors.

    Examples
    --------
    >>> import kic
    >>> kic.schema()["title"]
    'kic model'
    """
    from pydantic import TypeAdapter

    drawn = TypeAdapter(Drawing).json_schema()
    dh = TypeAdapter(DH).json_schema()
    drawn["$defs"].update(dh.pop("$defs"))
    drawn["$defs"]["DH"] = dh
    drawn["properties"]["dh"] = {"$ref": "#/$defs/DH", "description": "DH rows, instead of joints."}
    drawn["oneOf"] = [{"required": ["joints"]}, {"required": ["dh"]}]
    drawn["title"] = "kic model"
    drawn["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return drawn


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a mechanism, as drawn, to a TOML file that `load` reads back equal.

    Parameters
    ----------
    mechanism : Mechanism
        What to write; values that are defaults are left out.
    path : path
        File to write.

    Examples
    --------
    >>> import kic, tempfile, pathlib
    >>> arm = kic.load("horn-two-link")
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "arm.toml"
    >>> kic.save(arm, file)
    >>> kic.load(file) == arm
    True
    """
    import tomlkit

    document = tomlkit.document()
    values = _plain(mechanism)
    tables = {key: value for key, value in values.items() if isinstance(value, list) and _of_tables(value)}
    for key, value in values.items():
        if key not in tables:
            document[key] = _inline(value) if isinstance(value, dict) else value
    for key, rows in tables.items():
        array = tomlkit.aot()
        for row in rows:
            table = tomlkit.table()
            table.update(row)
            array.append(table)
        document[key] = array
    Path(path).write_text(tomlkit.dumps(document), encoding="utf-8")


def _inline(values: dict[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.inline_table()
    table.update(values)
    return table


def _of_tables(value: list[Any]) -> bool:
    return bool(value) and isinstance(value[0], dict)


def _plain(item: Any) -> Any:
    """Dataclasses as dicts without their defaults, tuples as lists, one-number tuples as numbers."""
    if not is_dataclass(item):
        return [_plain(x) for x in item] if isinstance(item, tuple) else item
    values = {}
    for f in fields(item):
        value = getattr(item, f.name)
        if isinstance(value, tuple) and f.name in ("value", "stiffness", "rest", "damping"):
            if not any(value):
                continue
            value = value[0] if len(value) == 1 else value
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        if value != default:
            values[f.name] = _plain(value)
    return values
