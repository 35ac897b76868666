"""Questions equal methods in every target, for joints and coordinates in any order, with springs in loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from c_text import translated
from raising import raises

import kic
from kic.export.export import Exports

# rounding errors of a few thousand operations, times a margin
RTOL = 1e-10


def arm(order: tuple[int, ...], coordinates: list[str] | None = None) -> kic.Mechanism:
    """Return a spatial arm whose joints are listed in some order."""
    J, at = kic.Joint, ((0, 0, 0), (1, 0, 0.1), (2, 0.2, 0), (2.5, 0.2, 0.3))
    joints = [
        J("base", "revolute", ("ground", "a"), at=at[0], axis=(0, 0, 1), damping=0.5, stiffness=0.2),
        J("elbow", "prismatic", ("a", "b"), at=at[1], axis=(0.2, 1, 0.3), damping=0.3),
        J("wrist", "revolute", ("b", "c"), at=at[2], axis=(0, 1, 0.2), armature=0.4),
        J("roll", "revolute", ("c", "d"), at=at[3], axis=(1, 0, 0.3), stiffness=0.7, rest=0.2),
    ]
    bodies = [
        kic.Body(name, mass=1.0 + k, com=(0.5 + k, 0.1, 0.2 * k), inertia=(0.1, 0.2, 0.25))
        for k, name in enumerate("abcd")
    ]
    return kic.Mechanism(
        "arm",
        bodies,
        [joints[k] for k in order],
        points=[kic.Point("tip", "d", at=(3, 0.2, 0.4))],
        gravity=(0, -9.81, 1.0),
        coordinates=coordinates,
    )


def ball_arm() -> kic.Mechanism:
    """Return an arm that ends with a ball joint with axes of its own, which is listed first."""
    m = arm((3, 1, 0, 2), None)
    laws = {"damping": (0.1, 0.2, 0.3), "armature": (0.3, 0.2, 0.1)}
    axes = {"axis": (1, 2, 0), "axis2": (-2, 1, 3)}
    return m.replace("roll", type="spherical", **axes, **laws)


def sprung(name: str, coordinates: list[str] | None = None) -> kic.Mechanism:
    """Return a closed mechanism with springs, dampers and rotors in all joints, in reverse order."""
    m = kic.load(name)
    for k, joint in enumerate(m.joints):
        count, valued = len(joint.components), len(joint.valued) == len(joint.components)
        laws = {
            "damping": [0.1 + k + n for n in range(count)],
            "armature": [0.02 * (k + n) for n in range(count)],
        }
        if valued and count:
            laws |= {"stiffness": [0.3 + n for n in range(count)], "rest": [0.1 * k] * count}
        m = m.replace(joint.name, **{key: x[0] if count == 1 else x for key, x in laws.items() if count})
    return m.replace(joints=m.joints[::-1], coordinates=coordinates or m.coordinates)


# mechanism, a task, and a body
MECHANISMS: dict[str, tuple[Callable[[], kic.Mechanism], list[str], str]] = {
    "arm": (lambda: arm((0, 1, 2, 3)), ["tip"], "d"),
    "wrist first": (lambda: arm((2, 3, 0, 1)), ["tip.x", "tip.z"], "d"),
    "base last": (lambda: arm((3, 2, 1, 0)), ["tip.y"], "c"),
    "named coordinates": (lambda: arm((1, 3, 0, 2), ["roll", "base", "wrist", "elbow"]), ["tip"], "d"),
    "ball": (ball_arm, ["tip.x", "tip.y"], "d"),
    "four-bar": (lambda: sprung("four-bar"), ["tip.x"], "coupler"),
    "four-bar by C": (lambda: sprung("four-bar", ["C"]), ["tip.x"], "coupler"),
    "five-bar": (lambda: sprung("five-bar", ["E", "A"]), ["tip.y", "tip.x"], "coupler"),
    "slider-crank": (lambda: sprung("slider-crank"), ["wristpin"], "rod"),
    "rssr": (lambda: sprung("rssr"), ["coupler.wx"], "coupler"),
    "three-rps": (lambda: sprung("three-rps"), ["plate.z", "plate.wx"], "plate"),
}
BOTH = "coefficients_and_dynamics"
QUESTIONS = [name for name in vars(Exports) if name[0] != "_"]
SINGLE = [name for name in QUESTIONS if name != BOTH]
OPTIONS = {"criterion": "minimum kinetic energy"}


def moved(m: kic.Mechanism) -> kic.Configuration:
    """Return a configuration near the reference."""
    q = m._model.coordinate_values(m.coordinates, m.at().state[None])[0]
    return m.at(q + 0.04 * np.arange(1, 1 + q.size))


def options_of(question: str, of: list[str], body: str) -> dict[str, Any]:
    """Return the options of a question."""
    if question in ("inverse_dynamics", "forward_dynamics", "dynamics", "position"):
        return {}
    options: dict[str, Any] = {"of": body if question == "pose" else of}
    if question.startswith("coefficients"):
        options["order"] = 3
    return options | (OPTIONS if question == "resolve_redundancy" else {})


def answered(
    c: kic.Configuration, question: str, of: list[str], body: str, x: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Return the results that methods of a configuration give for the inputs of an exported function."""
    rates = [x[key] for key in ("qd", "qdd", "qddd") if key in x]
    if question == BOTH:
        return answered(c, "coefficients", of, body, x) | answered(c, "dynamics", of, body, x)
    if question == "coefficients":
        found = [(name, c.coefficients(name, order=3)) for name in of]
        return {f"{name}.{k}": getattr(r, k) for name, r in found for k in "GHD"}
    if question == "dynamics":
        return {key: getattr(c.dynamics(), key) for key in ("I", "P", "load", "damping")}
    if question == "inverse_dynamics":
        return {"effort": c.inverse_dynamics(*rates)}
    if question == "forward_dynamics":
        return {"qdd": c.forward_dynamics(*rates, x["effort"])}
    if question == "motion":
        names = "velocity", "acceleration", "jerk"
        found = [(name, c.motion(name, *rates)[1:]) for name in of]
        return {f"{name}.{k}": a for name, r in found for k, a in zip(names, r, strict=True)}
    if question == "operational_space":
        s = c.operational_space(of)
        return {key: getattr(s, key) for key in ("Lambda", "inverse", "mu", "p", "damping")}
    if question == "pose":
        r, R = c.coefficients(body, order=1), c.pose(body).rotation.as_matrix()
        return {"p": r.values[:3], "R": R, "twist": r.G @ rates[0], "G": r.G}
    if question == "position":
        return {"state": c.state}
    if question == "actuation_map":
        r = c.coefficients(of)
        made = {"value": r.values, "J": r.G, "Jdot": np.einsum("pmn,m->pn", r.H, x["qd"])}
        return made | {"motor_effort": r.G.T @ x["effort"], "inertia": c.dynamics().I}
    z = x["secondary"], x["secondary_rate"]
    r = c.resolve_redundancy(of, x["ud"], x["udd"], secondary=z, **OPTIONS)
    return {"qd": r.qd, "qdd": r.qdd, "multiplier": r.multiplier}


def inputs_of(f: Any, m: kic.Mechanism, c: kic.Configuration) -> dict[str, np.ndarray]:
    """Return numbers for the inputs of an exported function at a configuration."""
    rng = np.random.default_rng(3)
    known = {"state": c.state, "near": c.state}
    known["q"] = m._model.coordinate_values(m.coordinates, c.state[None])[0]
    return {name: known.get(name, rng.normal(size=shape)) for name, shape in f.inputs.items()}


def same(found: Any, known: Any, rtol: float = RTOL) -> None:
    found, known = np.asarray(found, float), np.asarray(known, float)
    assert found.shape == known.shape
    assert np.array_equal(np.isnan(found), np.isnan(known))
    size = max(1.0, float(np.nanmax(np.abs(known), initial=0.0)))
    assert np.nanmax(np.abs(found - known), initial=0.0) <= rtol * size


@pytest.mark.slow_for("three-rps")
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("question", QUESTIONS)
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
    J, axis = kic.Joint, (0, 0, 1)
    m = kic.Mechanism(
        "light",
        [kic.Body("a", mass=0, inertia=0.0), kic.Body("b", mass=1.0, com=(1, 0, 0), inertia=0.0)],
        [
            J("A", "revolute", ("ground", "a"), at=(0, 0, 0), axis=axis),
            J("B", "revolute", ("a", "b"), at=(0.5, height, 0), axis=axis),
        ],
    )
    c = m.at()
    known = c.forward_dynamics([0.3, 0.2], [1.0, 2.0])
    found = m.export.forward_dynamics().to_numpy()(c.state, [0.3, 0.2], [1.0, 2.0])["qdd"]
    # rounding errors of I*, over its smallest eigenvalue
    assert np.abs(found - known).max() <= 1e-14 / height**2 * np.abs(known).max()


@pytest.mark.parametrize("question", ["operational_space", "resolve_redundancy"])
def test_rows_that_do_not_move_raise(question: str) -> None:
    m = kic.load("horn-two-link")
    with raises(kic.InputError, key="of"):
        getattr(m.export, question)(["tip.x", "tip.z"], near=m.at([0.3, 0.5])).to_numpy()


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


@pytest.mark.parametrize(
    ("given", "key", "message"),
    [
        (
            {"q": [1.2], "qd": [1.0], "qdd": [0.0]},
            "q",
            "`f` has no input `q`. Its inputs are state, qd, qdd. Give",
        ),
        ({"qd": [1.0]}, "state", "`state` must be given to `f`. Its inputs are state, qd, qdd"),
        ({"state": 0.0, "qd": [1.0], "qdd": [0.0], "out": 1}, "out", "`f` has no input `out`. Its inputs"),
    ],
)
def test_wrong_inputs_are_named(given: dict[str, Any], key: str, message: str) -> None:
    f = kic.load("four-bar").export.inverse_dynamics(name="f").to_numpy()
    with pytest.raises(kic.InputError, match=f"^{re.escape(message)}") as caught:
        f(**given)
    assert caught.value.numbers["key"] == key
    state = kic.load("four-bar").at().state
    with pytest.raises(kic.InputError, match=r"^`f` got `state` twice, by position and by name\."):
        f(state, state=state)
