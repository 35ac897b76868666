"""Methods that packages above add to the user's types; each is imported on its first use.

The root of the package registers a table before any class is made. Thus no class names the packages that
define its methods, and a missing package disables only these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)
_Names = Mapping[str, Mapping[str, str]]
_methods: dict[str, dict[str, tuple[str, str]]] = {}
_counterparts: dict[str, Mapping[str, str]] = {}


def register(methods: _Names, counterparts: _Names) -> None:
    """Register methods and common terms by the names of their classes.

    Parameters
    ----------
    methods : dict of str to dict of str to str
        By class and by module below kic, names of functions whose first parameter is the object, separated
        by blanks. A name such as "draw:draw_reference" has that of its function if it differs. Properties
        begin with "@".
    counterparts : dict of str to dict of str to str
        By class, names by common terms for them, for errors.
    """
    for cls, modules in methods.items():
        _methods[cls] = {}
        for module, names in modules.items():
            for name, _, function in (entry.partition(":") for entry in names.split()):
                _methods[cls][name] = f"kic.{module}", (function or name).removeprefix("@")
    _counterparts.update(counterparts)


def with_methods(cls: _Class) -> _Class:
    """Add the methods and common terms that are registered for a class."""
    for name, home in _methods.get(cls.__name__, {}).items():
        setattr(cls, name.removeprefix("@"), Registered(cls, name, *home))
    if cls.__name__ in _counterparts:
        cls._counterparts = _counterparts[cls.__name__]  # type: ignore[attr-defined]
    return cls


def import_wing(module: str, used: str) -> ModuleType:
    """Import a module for a name; raise `MissingExtraError` if a package that defines methods is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = error.name or ""
        homes = {home for methods in _methods.values() for home, _ in methods.values()} | {module}
        if not any(f"{home}.".startswith(f"{package}.") for home in homes):
            raise
        from kic.errors import MissingExtraError

        message = f"'{used}' requires the package {package}, which is missing."
        raise MissingExtraError(message, name=used.rpartition(".")[2], package=package) from error


class Registered:
    """Method or property that is a function of another module."""

    def __init__(self, owner: type, name: str, module: str, function: str) -> None:
        self.is_property, self.name, self.owner = name[0] == "@", name.removeprefix("@"), owner
        self.module, self.function = module, function

    def __get__(self, instance: Any, cls: type) -> Any:
        found = self.load()
        made: Any = property(found) if self.is_property else self.as_method(found)
        # it replaces this descriptor
        setattr(self.owner, self.name, made)
        return made.__get__(instance, cls)

    def load(self) -> FunctionType:
        """Import the function; raise `MissingExtraError` if a package of kic is missing."""
        module = import_wing(self.module, f"{self.owner.__name__}.{self.name}")
        function: FunctionType = getattr(module, self.function)
        return function

    def as_method(self, function: FunctionType) -> Callable[..., Any]:
        """Return a function with the name and the signature of a method."""
        # imported here, because every import of kic imports this module
        import inspect

        from kic.numerics.calls import explained

        signature = inspect.signature(function)
        first, *others = signature.parameters.values()
        own = first.replace(name="self", annotation=first.empty)
        returned = signature.return_annotation
        if returned == first.annotation and isinstance(function.__globals__.get(returned), TypeVar):
            returned = "Self"
        method: Any = explained(function)
        method.__signature__ = signature.replace(parameters=[own, *others], return_annotation=returned)
        # pickles find a method by these
        method.__module__ = self.owner.__module__
        method.__name__, method.__qualname__ = self.name, f"{self.owner.__name__}.{self.name}"
        return method
