"""The signatures of all public callables of kic, one a line.

Run ``python tests/signatures.py`` to write them to ``tests/data/signatures.txt``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ForwardRef

import kic
from kic.numerics.registration import Registered

FILE = Path(__file__).parent / "data" / "signatures.txt"


def written(annotation: Any) -> str:
    """Return an annotation in the form in which sources write it."""
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def signature(call: Any) -> str:
    """Return the parameters, kinds, defaults and types of a callable, without `self`."""
    found = inspect.signature(call)
    parts, seen_star = [], False
    for name, p in found.parameters.items():
        if name in ("self", "cls") and not parts:
            continue
        if p.kind is p.KEYWORD_ONLY and not seen_star:
            parts.append("*")
        seen_star |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "" if p.annotation is p.empty else f": {written(p.annotation)}"
        default = "" if p.default is p.empty else f" = {p.default!r}"
        parts.append(star + name + kind + default)
    returned = found.return_annotation
    end = "" if returned in (found.empty, None, "None") else f" -> {written(returned)}"
    return f"({', '.join(parts)}){end}"


def members(cls: type) -> dict[str, Any]:
    """Return the public members of a class that kic defines, with those of its bases and `__call__`.

    Of an evaluator, they are those of `Evaluator`; others belong to the package.
    """
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] == "kic":
            for name in inspect.get_annotations(base):
                found.setdefault(name, inspect.Parameter.empty)
            found |= vars(base)
    if issubclass(cls, kic.results.Evaluator):
        found = {k: v for k, v in found.items() if k in dir(kic.results.Evaluator)}
    public = (name for name in sorted(found) if not name.startswith("_") or name == "__call__")
    return {k: getattr(cls, k) if isinstance(found[k], Registered) else found[k] for k in public}


def of_class(path: str, cls: type) -> Iterator[str]:
    """Yield the constructor and the public members of a class; fields of dataclasses are attributes."""
    init = inspect.getattr_static(cls, "__init__")
    # constructors of named tuples and of exceptions without their own are inherited from C; those of
    # evaluators belong to the package
    is_open = not issubclass(cls, kic.results.Evaluator)
    yield path + (
        signature(cls) if is_open and (inspect.isfunction(init) or hasattr(cls, "_fields")) else "(…)"
    )
    for name, value in members(cls).items():
        full = f"{path}.{name}"
        if isinstance(value, property | cached_property):
            getter = value.fget if isinstance(value, property) else value.func
            yield f"{full}: property{signature(getter).rpartition(')')[2]}"
        elif inspect.isfunction(value):
            yield full + signature(value)
        elif isinstance(value, classmethod | staticmethod):
            yield f"{full}{signature(value.__func__)} [{type(value).__name__}]"
        else:
            yield f"{full}: attribute"


def classes() -> dict[str, type]:
    """Return the public classes of all modules of kic by name; a name of two classes is left out."""
    found: dict[str, set[type]] = {}
    for info in pkgutil.walk_packages(kic.__path__, "kic."):
        if not info.name.startswith("kic.kernels") and not info.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(info.name)).items():
                if inspect.isclass(value) and value.__module__.startswith("kic.") and name[0].isupper():
                    found.setdefault(name, set()).add(value)
    return {name: options.pop() for name, options in found.items() if len(options) == 1}


def public() -> dict[str, Any]:
    """Return the public objects of kic and of its public modules, by path."""
    found: dict[str, Any] = {}
    modules: list[tuple[str, ModuleType]] = [
        ("kic", kic),
        ("kic.classics", importlib.import_module("kic.classics")),
    ]
    for path, module in modules:
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__
        ]
        for name in names:
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                modules.append((f"{path}.{name}", value))
            elif not name.startswith("_"):
                found[f"{path}.{name}"] = value
    return found


def returned() -> dict[str, Any]:
    """Return the public objects, and the classes that public callables return, by path."""
    found, known = public(), classes()
    seen, queue = {id(value) for value in found.values()}, list(found.items())
    while queue:
        path, value = queue.pop()
        for line in described(path, value):
            for name in re.findall(r"\w+", line.partition(" -> ")[2]):
                other = known.get(name)
                if other is not None and id(other) not in seen:
                    seen.add(id(other))
                    found[f"{other.__module__}.{name}"] = other
                    queue.append((f"{other.__module__}.{name}", other))
    return found


def described(path: str, value: Any) -> list[str]:
    """Return the lines of one public object."""
    if inspect.isclass(value):
        return list(of_class(path, value))
    return [path + signature(value) if callable(value) else f"{path}: {type(value).__name__}"]


def lines() -> list[str]:
    """Return the signatures, and those of the classes that public callables return."""
    return [line for path, value in sorted(returned().items()) for line in described(path, value)]


def callables() -> dict[str, inspect.Signature]:
    """Return the signatures of functions, constructors and methods by path; errors are left out."""
    found: dict[str, inspect.Signature] = {}
    for path, value in returned().items():
        if inspect.isclass(value):
            if issubclass(value, BaseException):
                continue
            for name, member in members(value).items():
                plain = getattr(member, "__func__", member)
                if inspect.isfunction(plain):
                    found[f"{path}.{name}"] = inspect.signature(plain)
        if callable(value) and not (inspect.isclass(value) and issubclass(value, kic.results.Evaluator)):
            found[path] = inspect.signature(value)
    return found


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
