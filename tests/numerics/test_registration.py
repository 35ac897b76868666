"""Methods that are functions of packages above the class."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import pytest

import kic
from kic.numerics import registration


def test_dir_imports_no_package() -> None:
    code = (
        "import sys, kic; names = {*dir(kic.load('four-bar').at()), *dir(kic.Mechanism)}; "
        "print({'grasp', 'draw', 'sweep', 'prepare'} <= names, "
        "'kic.tasks.grasp' in sys.modules, 'kic.plotting' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "False", "False"]


def test_methods_have_the_signature_of_their_function() -> None:
    signature = inspect.signature(kic.Configuration.linearize)
    assert [*signature.parameters][:3] == ["self", "qd", "qdd"]
    assert kic.Configuration.linearize.__qualname__ == "Configuration.linearize"
    assert inspect.signature(kic.Mechanism.add).return_annotation == "Self"
    assert kic.Mechanism.sensitivity.__name__ == "sensitivity"
    assert "evaluators" in (kic.Mechanism.prepare.__doc__ or "")


def test_methods_are_pickled() -> None:
    for cls in (kic.Configuration, kic.Mechanism):
        for names in kic._METHODS[cls.__name__].values():
            for name in (entry.partition(":")[0] for entry in names.split() if entry[0] != "@"):
                method = getattr(cls, name)
                assert pickle.loads(pickle.dumps(method)) is method
    again = pickle.loads(pickle.dumps(kic.load("four-bar").sensitivity))
    assert again(lambda m: m.at().value("tip"), "B.at.x").shape == (1, 3)


class Base:
    """Class with a method and a property of another module."""

    def __repr__(self) -> str:
        return "base"


@pytest.mark.parametrize("name", ["shown", "@shown"])
def test_subclasses_extend_methods(name: str) -> None:
    """The first access, which imports the function, may come from `super`."""
    Base.shown = registration.Registered(Base, name, "kic.errors", "short_repr")

    class Method(Base):
        def shown(self) -> str:
            return f"<{super().shown()}>"  # type: ignore[misc]

    class Property(Base):
        @property
        def shown(self) -> str:
            return f"<{super().shown}>"  # type: ignore[misc]

    made = Property() if name[0] == "@" else Method()
    for _ in range(2):
        assert (made.shown if name[0] == "@" else made.shown()) == "<base>"  # type: ignore[operator]


class Thing:
    """Class with methods of missing modules."""


def test_broken_imports_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "kic.tasks.grasp.grasp", None
    )  # raises ModuleNotFoundError, which names it
    made = registration.Registered(Thing, "grasp", "kic.tasks.grasp.grasp", "grasp")
    with pytest.raises(kic.MissingExtraError):
        made.load()
    monkeypatch.setitem(sys.modules, "kic.tasks.grasp.grasp", object())
    with pytest.raises(AttributeError):
        made.load()
