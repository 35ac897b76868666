"""Questions equal methods in every target, for joints and coordinates in any order, with springs in loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from c_text import translated
from linkages import serial
from questions import EXPORTED, MECHANISMS, SINGLE, answered, arm, inputs_of, moved, options_of
from raising import raises

import kic

# rounding errors of a few thousand operations, times a margin
RTOL = 1e-10


def same(found: Any, known: Any, rtol: float = RTOL) -> None:
    found, known = np.asarray(found, float), np.asarray(known, float)
    assert found.shape == known.shape
    assert np.array_equal(np.isnan(found), np.isnan(known))
    size = max(1.0, float(np.nanmax(np.abs(known), initial=0.0)))
    assert np.nanmax(np.abs(found - known), initial=0.0) <= rtol * size


@pytest.mark.slow_for("three-rps")
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("question", EXPORTED)
def test_questions_equal_methods(question: str, name: str) -> None:
    """Results and their labels have the order of the coordinates; joints that close loops have their laws."""
    make, of, body = MECHANISMS[name]
    m = make()
    c = moved(m)
    if name == "ball" and question in ("position", "actuation_map"):
        with raises(kic.InputError, key="wrt"):
            getattr(m.export, question)(**options_of(question, of, body)).to_numpy()
        return
    f = getattr(m.export, question)(near=c, **options_of(question, of, body)).to_numpy()
    x = inputs_of(f, m, c)
    r, known = f(**x), answered(c, question, of, body, x)
    for key, a in known.items():
        same(r[key], a)
    labels = c.dynamics().coordinates
    for key in known.keys() & {"I", "P", "load", "damping", "effort", "inverse", "qd", "qdd", "motor_effort"}:
        if (question, key) != ("operational_space", "damping"):
            assert f.labels[key] == labels
    if "qd" in f.inputs:
        assert f.labels["qd"] == labels


def in_c(export: Callable[..., Any], x: dict[str, np.ndarray], shapes: dict[str, Any]) -> dict[str, Any]:
    code = export("c")
    found = {key: np.zeros(max(1, int(np.prod(shape)))) for key, shape in shapes.items()}
    with np.errstate(invalid="ignore"):
        translated(code.source)[code.name](*x.values(), *found.values())
    return {key: a.reshape(shapes[key]) for key, a in found.items()}


def in_casadi(export: Callable[..., Any], x: dict[str, np.ndarray], shapes: dict[str, Any]) -> dict[str, Any]:
    pytest.importorskip("casadi", reason="needs CasADi: pip install -e '.[casadi]'")
    found = [np.array(a) for a in export("casadi").call([*x.values()])]
    return {key: a.reshape(shape) for (key, shape), a in zip(shapes.items(), found, strict=True)}


def in_jax(export: Callable[..., Any], x: dict[str, np.ndarray], shapes: dict[str, Any]) -> dict[str, Any]:
    jax = pytest.importorskip("jax", reason="needs JAX: pip install -e '.[jax]'")
    with jax.enable_x64(True):
        return {key: np.asarray(a) for key, a in export("jax")(**x).items()}


def in_torch(export: Callable[..., Any], x: dict[str, np.ndarray], shapes: dict[str, Any]) -> dict[str, Any]:
    pytest.importorskip("torch", reason="needs PyTorch: pip install -e '.[torch]'")
    return {key: a.numpy() for key, a in export("torch")(**x).items()}


TARGETS = {"c": in_c, "casadi": in_casadi, "jax": in_jax, "torch": in_torch}


@pytest.mark.slow_for("jax")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["wrist first", "five-bar"])
def test_targets_equal_numpy(name: str, target: str) -> None:
    """All results of all questions, with loops that functions close where their target can."""
    make, of, body = MECHANISMS[name]
    m = make()
    c = moved(m)
    for question in SINGLE:
        options = options_of(question, of, body)

        def export(to: str, question: str = question, options: dict[str, Any] = options) -> Any:
            close = m.dof < len(m.joints)
            return getattr(getattr(m.export, question)(close=close, near=c, **options), f"to_{to}")()

        f = export("numpy")
        x = inputs_of(f, m, c)
        known = f(**x)
        for key, a in TARGETS[target](export, x, f.outputs).items():
            if key.replace("radius", "branch") != "branch":  # bounds, which may be NaN where others are not
                same(a, known[key])


@pytest.mark.parametrize("question", ["coefficients", "dynamics", "inverse_dynamics", "motion", "pose"])
def test_sympy_equals_numpy(question: str) -> None:
    """Each input has symbols of its own."""
    sympy = pytest.importorskip("sympy")
    m = kic.load("horn-two-link")
    m = m.replace(joints=m.joints[::-1], coordinates=["elbow", "shoulder"])
    c = m.at([0.3, 0.5])
    options = {"near": c} | options_of(question, ["tip"], "link2")
    f = getattr(m.export, question)(**options).to_numpy()
    x = inputs_of(f, m, c)
    endings = {"state": "", "qd": "_d", "qdd": "_dd", "qddd": "_ddd"}
    values = {
        sympy.Symbol(f"{label}{endings[name]}", real=True): value
        for name, a in x.items()
        for label, value in zip(f.labels[name], a, strict=True)
    }
    known = f(**x)
    for key, a in getattr(m.export, question)(**options).to_sympy().items():
        same([float(entry.subs(values)) for entry in a.ravel()], known[key].ravel())


def test_laws_of_cut_joints_are_parameters() -> None:
    """Also those that are zero, and those of joints that no coordinate names."""
    m = kic.load("four-bar")
    for name in "ABC":
        m = m.replace(name, damping=0.1)
    keys = "damping", "armature", "stiffness", "rest"
    f = m.export.forward_dynamics(parameters=[f"D.{key}" for key in keys]).to_numpy()
    c, given = moved(m), (0.2, 0.3, 0.4, 0.5)
    laws = dict(zip(keys, given, strict=True))
    known = m.replace("D", **laws).at(c.value("A")).forward_dynamics([0.7], [0.2])
    same(f(c.state, [0.7], [0.2], given)["qdd"], known)
    same(f(c.state, [0.7], [0.2])["qdd"], c.forward_dynamics([0.7], [0.2]))


@pytest.mark.parametrize("question", ["forward_dynamics", "operational_space", "resolve_redundancy"])
def test_motions_without_mass_raise(question: str) -> None:
    m = arm((0, 1, 2, 3))
    for name in "abcd":
        m = m.replace(name, inertia=0.0)
    m = m.replace("d", com=(3.5, 0.2, 0.6))  # on the axis of the last joint
    with raises(kic.SingularError):
        getattr(m.export, question)(**options_of(question, ["tip"], "d")).to_numpy()


@pytest.mark.parametrize("height", [1e-2, 1e-5])
def test_motions_of_little_mass(height: float) -> None:
    """Accelerations agree where the kernel leaves the decision to the check of I*, too."""
    bodies = [kic.Body("a", mass=0, inertia=0.0), kic.Body("b", mass=1.0, com=(1, 0, 0), inertia=0.0)]
    m = serial([(0, 0, 0), (0.5, height, 0)], bodies)
    c = m.at()
    known = c.forward_dynamics([0.3, 0.2], [1.0, 2.0])
    found = m.export.forward_dynamics().to_numpy()(c.state, [0.3, 0.2], [1.0, 2.0])["qdd"]
    # rounding errors of I*, over its smallest eigenvalue
    assert np.abs(found - known).max() <= 1e-14 / height**2 * np.abs(known).max()


def test_maps_on_a_box_equal_configurations() -> None:
    """Axes have the order of the coordinates, whatever that of `limits`."""
    m = MECHANISMS["five-bar"][0]()
    asked, limits = m.export.actuation_map(["D", "B"]), {"A": (1.2, 1.3), "E": (1.5, 1.7)}
    table = asked.to_table(limits=limits, points=3)
    c = m.at({"E": table.axes[0][2], "A": table.axes[1][0]})
    r = c.coefficients(["D", "B"], order=1)
    for found, known in ((table.value, r.values), (table.J, r.G), (table.inertia, c.dynamics().I)):
        same(found[2, 0], known)
    p = asked.to_polynomial(limits=limits, error_max=1e-3)
    assert (
        np.abs(p([[1.55, 1.25]])[0] - m.at({"E": 1.55, "A": 1.25}).value(["D", "B"])) <= p.error_bound
    ).all()


def test_symbols_of_two_inputs_must_differ() -> None:
    m = kic.load("horn-two-link")
    first, second = m.joints
    m = m.replace(joints=[first, replace(second, name=f"{first.name}_d")], coordinates=None)
    with raises(kic.InputError, names=(f"{first.name}_d",)):
        m.export.inverse_dynamics().to_sympy()
