"""Regressors of efforts, and the combinations of parameters that they determine."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from exact import exact
from four_points import regressor
from lagrange import delta
from numpy.testing import assert_allclose
from questions import sprung
from raising import raises
from representative_models import OTHER_MODELS
from snapshot import Case

import kic
from kic.mechanism.configuration import displacement

# of the sum of |Y π|; the largest error is 4e-15 on all models, with two kinds of kernels
EFFORT_RTOL = 1e-12


def third_set(s: Case) -> tuple[str, ...]:
    """Return coordinates of a mechanism that differ from its own, if there are others."""
    sets = s.m.mobility(s.c).independent_sets(s.c, count=8)
    own = set(s.q)
    return next((one.names for one in sets if set(one.names) != own), tuple(s.q))


@pytest.mark.parametrize("name", kic.model_names())
@pytest.mark.slow_for(*OTHER_MODELS)
def test_efforts_are_linear_in_parameters(name: str) -> None:
    """T = Y π in three sets of coordinates, for one configuration, a batch and an evaluator."""
    s = Case(name)
    none = {part.name: np.zeros(3) for part in (*s.m.forces, *s.m.moments)}
    for wrt in (None, s.wrt, third_set(s)):
        for c in (s.c, s.batch):
            r = c.regressor(s.qd, s.qdd, wrt=wrt)
            expected = c.inverse_dynamics(s.qd, s.qdd, wrt=wrt, applied=none)
            size = np.abs(r.matrix * r.values).sum(axis=-1).max(initial=1e-300)
            assert np.abs(r.matrix @ r.values - expected).max(initial=0.0) < EFFORT_RTOL * size
            assert_allclose(
                s.m.prepare.regressor(wrt=wrt)(c.state, s.qd, s.qdd), r.matrix, 1e-11, 1e-13 * size
            )


@pytest.mark.parametrize(
    ("name", "wrt"),
    [
        ("puma560", None), ("puma560", ["link6"]), ("scara", None), ("four-bar", ["C"]),
        ("gough-stewart", ["platform"]), ("two-arms", None), ("bevel-wrist", None), ("quadruped", None),
        ("slider-crank", None), ("spatial-slider-crank", None),
    ],
)  # fmt: skip
def test_columns_are_those_of_four_points(name: str, wrt: list[str] | None) -> None:
    """Columns agree with the sum over four points of a body, whose ten numbers are its pseudo-inertia."""
    s = Case(name)
    size = len(s.c.coefficients(s.of[0], order=1, wrt=wrt).columns)
    qd, qdd = np.random.default_rng(2).normal(size=(2, size))
    r = s.c.regressor(qd, qdd, wrt=wrt)
    assert_allclose(r.matrix, regressor(s.c, qd, qdd, wrt), 1e-11, 1e-12 * np.abs(r.matrix).max())


@pytest.mark.parametrize("name", ["four-bar", "slider-crank", "rssr", "three-rps", "scara", "bevel-wrist"])
def test_joints_have_parameters(name: str) -> None:
    """Armature, dampers and springs of all joints, also those that are cut, and dry friction."""
    m = sprung(name)
    q = m._model.coordinate_values(m.coordinates, m.at().state[None])[0]
    c = m.at(q + 0.02 * np.sin(1 + np.arange(len(q))))
    qd, qdd = np.random.default_rng(3).normal(size=(2, m.dof))
    r = c.regressor(qd, qdd)
    expected = c.inverse_dynamics(qd, qdd)
    size = np.abs(r.matrix * r.values).sum(axis=-1).max()
    assert_allclose(r.matrix @ r.values, expected, 0, EFFORT_RTOL * size)
    inertial = c.regressor(qd, qdd, loads=False)
    assert inertial.parameters == r.parameters
    assert_allclose(
        inertial.matrix @ r.values, c.inverse_dynamics(qd, qdd, loads=False), 0, EFFORT_RTOL * size
    )
    # dry friction is named, and acts like a damper whose rate is its sign
    rows = c.coefficients([joint.name for joint in m.joints], order=1)
    dry = c.regressor(qd, of=[f"{row}.friction" for row in rows.rows])
    assert_allclose(dry.matrix, rows.G.T * np.sign(rows.velocity(qd)), 1e-12, 1e-14)
    assert not any(name.endswith(".friction") for name in r.parameters)


def test_motors_have_parameters() -> None:
    c = kic.load("puma560-motors").at(np.linspace(0.1, 0.6, 6))
    qd, qdd = np.random.default_rng(4).normal(size=(2, 6))
    bodies = c.regressor(qd, qdd).parameters
    motors = [motor.name for motor in kic.load("puma560-motors").motors]
    assert not any(name.partition(".")[0] in motors for name in bodies)
    r = c.regressor(qd, qdd, of=[*{name.rpartition(".")[0]: 0 for name in bodies}, *motors])
    keep = np.array([not name.endswith(".friction") for name in r.parameters])
    smooth = kic.load("puma560-motors")
    for name in motors:
        smooth = smooth.replace(name, friction=0.0)
    expected = smooth.at(np.linspace(0.1, 0.6, 6)).inverse_dynamics(qd, qdd, motors=True)
    assert_allclose((r.matrix * r.values)[:, keep].sum(axis=1), expected, 1e-12)


def test_regressors_need_no_masses() -> None:
    """Y of a mechanism without masses is the same, and names and order of parameters are those requested."""
    m = kic.load("four-bar")
    bare = m.replace(bodies=[kic.Body(body.name) for body in m.bodies])
    c = m.path({"A": [0.1, 0.4, 0.9]})
    r, other = c.regressor(2.0, 1.0), bare.path({"A": [0.1, 0.4, 0.9]}).regressor(2.0, 1.0)
    assert_allclose(other.matrix, r.matrix, 1e-12, 1e-13)
    assert np.isnan(other.values).all()
    assert other.parameters == r.parameters
    asked = ["rocker.Izz", "A.friction", "crank.mx", "A.offset", "crank.m"]
    some = c.regressor(2.0, 1.0, of=asked)
    assert some.parameters == tuple(asked)
    own = [r.parameters.index(name) for name in asked if name in r.parameters]
    assert_allclose(some.matrix[..., [0, 2, 4]], r.matrix[..., own])
    assert_allclose(some.matrix[..., [1, 3]], 1.0)
    assert_allclose(m.prepare.regressor(asked)(c.state, [2.0], [1.0]), some.matrix)
    partly = bare.replace("crank", mass=2.0, com=(0.1, 0.0, 0.0))
    values = dict(zip(some.parameters, partly.at().regressor(of=asked).values, strict=True))
    assert values["crank.m"] == 2.0
    assert values["crank.mx"] == 0.2
    assert np.isnan(values["rocker.Izz"])


def test_momentum_and_energy_are_regressors_too() -> None:
    c = kic.load("gough-stewart").at()
    v = np.random.default_rng(5).normal(size=6)
    r, d = c.regressor(qdd=v, loads=False), c.dynamics()
    assert_allclose(r.matrix @ r.values, d.I @ v, 1e-12)
    assert_allclose(v @ r.matrix @ r.values / 2, d.kinetic_energy(v), 1e-12)


def test_unsolved_members_are_nan() -> None:
    m = sprung("five-bar")
    c = m.at({"A": [1.0, np.nan, 1.1], "E": 1.5}, failures="mask")
    r = c.regressor([1.0, 2.0])
    assert np.isnan(r.matrix[1]).all()
    assert np.isfinite(r.matrix[[0, 2]]).all()
    copied = pickle.loads(pickle.dumps(r))
    assert_allclose(copied.matrix, r.matrix)
    line = kic.load("four-bar").at({"A": [0.5, 1.0]})
    with raises(kic.SingularError):
        line.regressor(wrt="tip.z")
    assert np.isnan(line.regressor(wrt="tip.z", of=["crank", "A.damping"], failures="mask").matrix).all()


def eyed(at: tuple[float, float, float], **numbers: float) -> kic.Mechanism:
    """Return an arm with a spring from its tip to a point on ground."""
    spring = kic.Spring("S", ("tip", "eye"), stiffness=3.0, **numbers)
    return kic.load("horn-two-link").add(kic.Point("eye", "ground", at), spring)


def test_springs_between_points() -> None:
    """They are exported, accept symbols, and may have length zero if their free length is zero."""
    m = eyed((0.5, 1.0, 0.3), rest=0.2, damping=0.4)
    c, qd = m.at([0.2, 0.3]), np.array([1.0, 2.0])
    r = c.regressor(qd)
    assert r.parameters[-3:] == ("S.stiffness", "S.damping", "S.offset")
    assert_allclose(r.matrix @ r.values, c.inverse_dynamics(qd), 1e-13)
    assert_allclose(r.matrix, regressor(c, qd, 0 * qd), 1e-12, 1e-13)
    assert_allclose(m.export.regressor().to_numpy()(c.state, qd, 0 * qd)["regressor"], r.matrix, 1e-12, 1e-13)
    x = sp.symbols("x y")
    symbolic = m.at(x).regressor(qd, of=["S", "link1"]).matrix
    assert copy.copy(m.at(x).regressor(qd, of="S")).parameters[0] == "S.stiffness"
    numbers = sp.Matrix(symbolic).subs(dict(zip(x, (0.2, 0.3), strict=True))).evalf()
    expected = c.regressor(qd, of=["S", "link1"]).matrix
    assert_allclose(np.array(numbers, float), expected, 1e-12, 1e-13)
    flat = eyed((2.0, 0.0, 0.0)).at([[0.0, 0.0], [0.1, 0.2]])
    r = flat.regressor(qd)
    assert_allclose(r.matrix @ r.values, flat.inverse_dynamics(qd), 1e-13)
    with raises(kic.InputError, names=("S",)):
        eyed((2.0, 0.0, 0.0), rest=0.1).at([0.0, 0.0]).regressor(qd)


def test_default_parameters_do_not_depend_on_a_complex_step() -> None:
    m = kic.load("four-bar")
    names = ["C.at.x", "A.damping", "coupler.mass"]
    J = m.sensitivity(lambda x: x.at(0.3).regressor(1.0, 2.0).matrix, names)
    assert J.shape == (3, 1, 30)
    assert not J[1:].any()
    h = 1e-6
    changed = [m.replace("C", at=np.add(m["C"].at, (x, 0, 0))).at(0.3).regressor(1.0, 2.0) for x in (h, -h)]
    assert_allclose(J[0], (changed[0].matrix - changed[1].matrix) / (2 * h), 1e-5, 1e-7)


def test_moments_keep_their_points_if_dimensions_vary() -> None:
    m = kic.load("four-bar")
    r = m.at(0.3).regressor(1.0, 2.0)
    for name in ("D.at.x", "D.at.rocker.y", "B.at.x", "A.value", "crank.length"):
        v = m.vary([name])
        own = v.at({"A": 0.3}).regressor([1.0, 0.0], [2.0, 0.0])
        assert own.parameters == r.parameters
        assert own.points == r.points
        assert_allclose(own.matrix[0], r.matrix[0], 1e-11, 1e-12)


def test_distances_and_motors_have_laws() -> None:
    """A cylinder with damping has the effort of its rate along its gradient; friction of a shaft likewise."""
    c = kic.load("puma560-motors").at(np.linspace(0.1, 0.6, 6))
    qd = np.array([1.0, -2.0, 0.5, 1.5, -1.0, 2.0])
    train = c._model.drive_train
    shafts = train.shafts(c.coefficients(train.joints))
    r = c.regressor(qd, of=[f"{name}.friction" for name in train.names])
    assert_allclose(r.matrix, shafts.G.T * np.sign(shafts.velocity(qd)), 1e-13)
    m = kic.load("four-bar").add(
        kic.Distance("cylinder", ("tip", "A0")), kic.Point("A0", "ground", (0.5, 0.5, 0))
    )
    c = m.at(0.4)
    row = c.coefficients("cylinder")
    r = c.regressor(2.0, 3.0, of="cylinder")
    factors = [
        row.acceleration(2.0, 3.0)[0],
        row.velocity(2.0)[0],
        np.sign(row.velocity(2.0)[0]),
        row.values[0],
        1,
    ]
    assert_allclose(r.matrix[0], row.G[0, 0] * np.array(factors), 1e-12)


def test_open_states_raise() -> None:
    c = kic.load("four-bar").at(0.4)
    wrong = c.state + 0.01
    for of in (None, "A.damping", ["C.damping"]):
        with raises(kic.InputError):
            kic.load("four-bar").prepare.regressor(of)(wrong, [1.0], [0.0])


# spread of the coordinates, and numbers of base parameters that the literature and other programs give
COUNTS = [
    ("four-bar", 3.0, 8), ("slider-crank", 3.0, 6), ("puma560", 1.0, 36), ("panda", 1.0, 43),
    ("gough-stewart", 0.03, 82), ("delta", 0.15, 34),
]  # fmt: skip


def excited(name: str, spread: float, count: int = 400) -> Any:
    """Return a regressor of random configurations and motions."""
    m = kic.load(name)
    rng = np.random.default_rng(1)
    start = m._model.coordinate_values(m.coordinates, m.at().state[None])[0]
    q = start + spread * rng.uniform(-1, 1, (count, len(start)))
    values = dict(zip(m.coordinates, (np.sort(q, axis=0) if len(start) == 1 else q).T, strict=True))
    c = m.path(values) if len(start) == 1 else m.at(values)
    return c, c.regressor(*rng.normal(size=(2, count, len(start))))


@pytest.mark.parametrize(("name", "spread", "count"), COUNTS)
def test_numbers_of_base_parameters(name: str, spread: float, count: int) -> None:
    """The efforts follow from the base parameters alone; parameters of the null space change nothing."""
    _, r = excited(name, spread)
    base = r.base()
    assert len(base) == count
    assert base.gap > 20 * 1e6
    T = r.matrix @ r.values
    size = np.abs(r.matrix * r.values).sum(axis=-1).max()
    assert_allclose(r.matrix[..., base.columns] @ base.values, T, 0, 1e-9 * size)
    assert_allclose(base.matrix @ r.values, base.values, 1e-12, 1e-12 * np.abs(base.values).max())
    free = np.setdiff1d(np.arange(len(r.parameters)), base.columns)
    null = np.zeros((len(r.parameters), len(free)))
    null[free, np.arange(len(free))] = 1.0
    null[base.columns] = -base.matrix[:, free]
    top = np.abs(r.matrix).max(axis=(0, 1)) @ np.abs(null)
    assert (np.abs(r.matrix @ null).max(axis=(0, 1)) <= 1e-9 * (top + top.max())).all()


def particle(at: Any, point: Any) -> np.ndarray:
    """The ten numbers (10,) of a unit mass at a place, with moments about a point."""
    r = np.subtract(at, point)
    inertia = r @ r * np.eye(3) - np.outer(r, r)
    return np.array([1.0, *r, *np.diagonal(inertia), *inertia[[0, 0, 1], [1, 2, 2]]])


@pytest.mark.parametrize(("name", "count"), [("puma560", 36), ("panda", 43)])
def test_base_parameters_are_those_of_gautier_and_khalil(name: str, count: int) -> None:
    """Particles on a joint axis may belong to either link; link 1 has only the inertia about its axis."""
    c, r = excited(name, 1.0)
    links = {body: slice(10 * k, 10 * k + 10) for k, body in enumerate(r.points)}
    first, *joints = (joint for joint in c._model.description.joints if joint.type == "revolute")
    null = [np.eye(len(r.parameters))[k] for k in range(10) if k != 6]
    for joint in joints:
        for along in (-0.1, 0.2, 0.3):
            moved = np.zeros(len(r.parameters))
            for side, body in zip((-1.0, 1.0), joint.bodies, strict=True):
                at = np.add(joint.at, along * np.array(joint.axis))
                moved[links[body]] = side * particle(at, r.points[body])
            null.append(moved)
    assert first.axis == (0.0, 0.0, 1.0)
    assert np.linalg.matrix_rank(null) == len(null) == len(r.parameters) - count
    Y, moved = r.matrix, np.array(null).T
    assert (np.abs(Y @ moved) <= EFFORT_RTOL * (np.abs(Y) @ np.abs(moved) + np.abs(Y).max())).all()
    assert_allclose(r.base().matrix @ moved, 0.0, atol=1e-9)


def test_forces_in_joints_are_efforts_at_their_points() -> None:
    """The regressor of the forces in joints is that of the dimensions that place them in one body."""
    for name, joint, q, qd, qdd in (
        ("four-bar", "B", [1.2], [3.0], [5.0]),
        ("puma560", "elbow", np.full(6, 0.3), np.linspace(-1, 1, 6), np.linspace(2, 1, 6)),
        ("gough-stewart", "S1", None, np.linspace(-1, 1, 6), np.linspace(2, 1, 6)),
    ):
        m = kic.load(name)
        body = m[joint].bodies[0]
        names = [f"{joint}.at.{body}.{x}" for x in ("xy" if name == "four-bar" else "xyz")]
        c, v = m.at(q), m.vary(names)
        here = v.at() if q is None else v.at(dict(zip(m.coordinates, q, strict=True)))
        r = here.regressor([*qd, *np.zeros(len(names))], [*qdd, *np.zeros(len(names))])
        got = (r.matrix @ r.values)[-len(names) :]
        found = c.joint_forces(qd, qdd)
        force = found.force[found.joints.index(joint)]
        want = displacement(c, body)[:3, :3].T @ force
        assert_allclose(got, want[: len(names)], 1e-9, 1e-9)


def test_base_parameters_of_a_delta_with_100_digits() -> None:
    """Inertia and load are linear in the second moments (4, 4) of bodies; pivots tell their rank."""
    with mp.workdps(100):
        h, rng, rows = mp.mpf(10) ** -40, np.random.default_rng(1), []
        entries = [(i, j) for i in range(4) for j in range(i, 4)]
        for _ in range(14):
            q = exact(rng.uniform(-0.15, 0.15, 3))
            both = [(delta(q + dq), delta(q - dq)) for dq in h * exact(np.eye(3))]
            slopes = [{body: (T[body] - S[body]) / (2 * h) for body in T} for T, S in both]
            for a, X in enumerate(slopes):
                for Y in slopes[a:]:
                    products = [X[body].T @ Y[body] for body in X]
                    rows.append([P[i, j] + (i != j) * P[j, i] for P in products for i, j in entries])
                rows.append([T[2, i] * (j == 3) for T in X.values() for i, j in entries])
        A, pivots = np.array(rows), [mp.mpf(1)]
        while pivots[-1] > mp.mpf(10) ** -50:
            i, j = np.unravel_index(np.argmax(np.abs(A)), A.shape)
            pivots.append(abs(A[i, j]))
            A = np.delete(np.delete(A - np.outer(A[:, j] / A[i, j], A[i]), i, 0), j, 1)
        assert len(pivots) - 2 == 34
        assert pivots[-2] > 1e-5


def test_base_parameters_in_words() -> None:
    """The base parameters of a four-bar, by the lengths of its bars; a mass that moves on a circle."""
    c, r = excited("four-bar", 3.0)
    base = r.base()
    words = dict(zip((text.split()[0] for text in base.expressions), base.expressions, strict=True))
    assert words["crank.mx"] == "crank.mx + 0.06 coupler.m + 0.2143 rocker.my"
    assert words["rocker.Izz"].startswith("rocker.Izz")
    assert {"crank.Ixx", "coupler.mz", "rocker.Iyz"} <= set(base.without_effect)
    kept = r.base(keep="coupler.m")
    assert kept.expressions[0].startswith("coupler.m ")
    assert len(kept) == 8
    some = c.regressor(6.0, 0.0, of=["crank", "A.friction", "A.offset", "A.damping"])
    # the rate is constant: dry and viscous friction are one number
    assert "A.friction + A.offset + 6 A.damping" in some.base().expressions
    assert "8 base parameters of 30" in base.summary().text()


def cart(unit: float) -> kic.results.Regressor:
    """Return the regressor of a pendulum on a damped cart, in metres or another unit of length."""
    joints = [
        kic.Joint("P", "prismatic", ("ground", "cart"), axis=(1, 0, 0), damping=0.1),
        kic.Joint("R", "revolute", ("cart", "rod"), at=(0, 0, 0), axis=(0, 0, 1), damping=0.2),
    ]
    bodies = [
        kic.Body("cart", mass=1.0, com=(0, 0, 0), inertia=0.0),
        kic.Body("rod", mass=0.5, com=(0, -0.5 * unit, 0), inertia=0.1 * unit**2),
    ]
    tip = kic.Point("tip", "rod", (0, -unit, 0))
    m = kic.Mechanism("cart", bodies, joints, points=[tip], gravity=(0, -9.81 * unit, 0))
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 50, 2)) * [unit, 1.0]
    return m.at(q).regressor(
        qd, qdd, of=["cart", "rod", "P.damping", "P.stiffness", "R.damping", "R.armature"]
    )


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_base_parameters_do_not_depend_on_units(unit: float) -> None:
    metres, other = cart(1.0).base(), cart(unit).base()
    assert metres.expressions == other.expressions
    assert metres.without_effect == other.without_effect
    assert "cart.m + rod.m" in metres.expressions
    assert {"P.damping", "P.stiffness", "R.damping"} <= set(metres.expressions)
    assert min(other.gap, metres.gap) > 20 * 1e6


def test_parameters_without_effect_are_not_named() -> None:
    """A column of rounding has no gap of its own; parameters that are kept begin a combination."""
    c, r = excited("four-bar", 3.0)
    rates = np.random.default_rng(1).normal(size=(2, *c.batch, 1))
    some = c.regressor(*rates, of=["rocker.m", "rocker.Izz", "crank.m"]).base()
    assert some.expressions == ("rocker.Izz",)
    assert some.without_effect == ("rocker.m", "crank.m")
    for name in ("coupler.m", "rocker.my", "coupler.Izz"):
        assert r.base(keep=name).expressions[0].split()[0] == name
    _, r = excited("bricard", 0.2, 150)
    for name in np.array(r.parameters)[r.base(gap_min=1.0).columns][:5]:
        assert r.base(keep=name, gap_min=1.0).expressions[0].split()[0] == name


@pytest.mark.parametrize(("name", "spread"), [("bricard", 0.2), ("peaucellier", 0.2)])
def test_nothing_is_named_without_a_gap(name: str, spread: float) -> None:
    _, r = excited(name, spread, 800)
    with raises(kic.SingularError) as caught:
        r.base()
    assert caught.value.gap < 1e6 / 20
    assert len(caught.value.singular_values) > 10
    base = r.base(gap_min=1.0)
    T = r.matrix @ r.values
    assert_allclose(r.matrix[..., base.columns] @ base.values, T, 0, np.abs(T).max() / base.gap)
