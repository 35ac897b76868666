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
        "'kic.grasp' in sys.modules, 'kic.plotting' in sys.modules)"
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


def test_bound_methods_are_pickled() -> None:
    m = kic.load("four-bar")
    again = pickle.loads(pickle.dumps(m.sensitivity))
    assert again(lambda m: m.at().value("tip"), "B.at.x").shape == (1, 3)


def test_errors_name_the_method() -> None:
    with pytest.raises(TypeError, match=r"Configuration.grasp\(\) has no argument `finger`. Use `fingers`"):
        kic.load("three-finger-hand").at().grasp("ball", finger="A")  # type: ignore[call-arg]


def test_subclasses_override_methods() -> None:
    class Silent(kic.Mechanism):
        def draw(self) -> str:  # type: ignore[override]
            return "nothing"

    hinge = kic.Joint("A", "revolute", ("ground", "rod"), (0, 0, 0), (0, 0, 1))
    made = Silent("pendulum", [kic.Body("rod")], [hinge])
    assert made.draw() == "nothing"
    assert made.dof == 1


class Thing:
    """Class with methods of missing modules."""


@pytest.mark.parametrize("name", ["fly", "@wings"])
def test_missing_packages_are_named(name: str) -> None:
    made = registration.Registered(Thing, name, "kic.aviation.flying", "fly")
    with pytest.raises(kic.MissingExtraError, match=r"'Thing\.[a-z]*' requires the package kic\.aviation"):
        made.__get__(None, Thing)


def test_broken_imports_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kic.grasp.grasp", None)  # raises ModuleNotFoundError, which names it
    made = registration.Registered(Thing, "grasp", "kic.grasp.grasp", "grasp")
    with pytest.raises(kic.MissingExtraError):
        made.load()
    monkeypatch.setitem(sys.modules, "kic.grasp.grasp", object())
    with pytest.raises(AttributeError):
        made.load()
