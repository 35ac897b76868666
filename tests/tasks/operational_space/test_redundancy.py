"""Redundancy resolution against reference values, differences in time, and its defining properties."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from arms import CONFIGURATIONS, arm, configuration
from linkages import resized
from raising import raises
from sampling import OFFSETS, mismatch, random_tree
from sampling import WEIGHTS as SHARES

import kic

DATA = json.loads((Path(__file__).parents[2] / "data" / "redundant.json").read_text(encoding="utf-8"))
# mechanisms with a task of fewer rows than degrees of freedom
TASKS = {
    "panda": "flange",
    "puma560": "tool",
    "twin-arm": "left_hand eyes.z",
    "gough-stewart": "platform.x platform.wy L3",
    "three-legged-robot": "w.x platform.angle",
    "five-bar": "tip.x",
}
WEIGHTS = ["minimum norm", "minimum kinetic energy", "matrix"]
DAMPINGS = [None, 0.1, (0.3, 50.0)]
LAWS = ["consistent", "instantaneous"]
every_case = pytest.mark.parametrize("name", TASKS)
every_weight = pytest.mark.parametrize("weight", WEIGHTS)
every_damping = pytest.mark.parametrize("damping", DAMPINGS, ids=["exact", "damped", "growing"])


def weighty(weight: str, size: int) -> object:
    """A weight by name, or a full matrix."""
    if weight != "matrix":
        return weight
    a = np.random.default_rng(5).normal(size=(size, size))
    return a @ a.T + size * np.eye(size)


# the reference


@pytest.fixture
def reference() -> kic.Configuration:
    return arm(DATA["chain"], hand=DATA["P_local"]).at(DATA["phi"])


HAND = ["hand.x", "hand.y"]


@pytest.mark.parametrize(
    ("law", "H", "P"),
    [
        ("instantaneous", "H_uu_4_72", "P_quu_4_75"),
        ("consistent", "H_uu_true_derivative_of_4_68", "P_quu_consistent"),
    ],
)
def test_the_source(reference: kic.Configuration, law: str, H: str, P: str) -> None:
    """Equations 4-70 to 4-75, with both accelerations."""
    c = reference
    ud, udd = np.array([0.3, -0.7]), np.array([1.1, 0.4])
    r = c.resolve_redundancy(HAND, ud, udd, criterion="minimum kinetic energy", law=law)
    found = r.coefficients
    assert (found.rows, found.columns) == (c.coordinates, tuple(HAND))
    assert mismatch(found.G, np.array(DATA["G_minusR_4_70"])) < 1e-12
    assert mismatch(found.H, np.array(DATA[H])) < 1e-12
    assert mismatch(r.dynamics().I, np.array(DATA["I_qu_4_74"])) < 1e-12
    # the source's P* is not symmetric; with it, entry by entry
    d = c.dynamics()
    freeman = kic.Dynamics(d.coordinates, DATA["I"], DATA["P"], d.load, damping=d.damping)
    seen = freeman.transfer(found, left=kic.Coefficients.identity(d.coordinates))
    assert mismatch(seen.P, np.array(DATA[P])) < 1e-12
    assert mismatch(r.dynamics().P + r.dynamics().P.swapaxes(1, 2), seen.P + seen.P.swapaxes(1, 2)) < 1e-12
    # the load of (4-73) is that of the coordinates, and all comes to the efforts of (4-67)
    assert mismatch(r.dynamics().load, d.load) == 0
    assert mismatch(r.effort, d.inverse_dynamics(r.qd, r.qdd)) < 1e-14
    assert mismatch(r.dynamics().inverse_dynamics(ud, udd), r.effort) < 1e-12


# what it promises


@every_damping
@every_weight
@every_case
@pytest.mark.parametrize("law", LAWS)
def test_the_law_and_its_coefficients_agree(name: str, weight: str, damping: object, law: str) -> None:
    """The kernel's motion agrees with G and H of the law and meets the conditions of the minimum."""
    c, task = configuration(name), TASKS[name].split()
    M = len(c.coordinates)
    rng = np.random.default_rng(0)
    u = c.coefficients(task)
    ud, udd = rng.normal(size=(2, len(u.rows)))
    r = c.resolve_redundancy(task, ud, udd, criterion=weighty(weight, M), law=law, damping=damping)
    limit = 1e-13 * np.linalg.cond(c.dynamics().I if weight == WEIGHTS[1] else np.eye(M)) * 100
    assert mismatch(r.coefficients.velocity(ud), r.qd) < limit
    assert mismatch(r.coefficients.acceleration(ud, udd), r.qdd) < limit
    Q = {"minimum norm": np.eye(M), "minimum kinetic energy": c.dynamics().I}.get(weight)
    Q = weighty(weight, M) if Q is None else Q
    assert mismatch(Q @ r.qd, u.G.T @ r.multiplier) < limit
    assert np.abs(ud - u.velocity(r.qd) - r.velocity_residual).max() < 1e-12
    assert (
        np.abs(udd - u.acceleration(r.qd, r.qdd) - r.acceleration_residual).max()
        < limit * np.abs(r.qdd).max()
    )
    assert bool(r.damped) == (damping is not None)
    if damping is None:
        assert np.abs(r.velocity_residual).max() < limit
        assert np.abs(r.acceleration_residual).max() < limit * np.abs(r.qdd).max()
    else:
        assert np.abs(r.velocity_residual).max() > 1e-6
        assert 0 < r.damping <= np.max(damping) ** 2


AIMS = {
    "panda": [
        kic.JointLimits({"joint4": (-3.0, -0.1), "reach": (0.2, 0.9)}, gain=3.0, weights={"reach": 2.0}),
        kic.Manipulability(gain=0.5),
        kic.PreferredConfiguration({"joint1": 0.4, "elbow.y": 0.1}, gain=0.7),
    ],
    "gough-stewart": [kic.PreferredConfiguration({"platform.x": 0.1, "L1": 1.2})],
    "five-bar": [
        kic.PreferredConfiguration({"tip.y": 10.0, "B": 0.1}),
        kic.Manipulability(["tip.x"], gain=0.1),
    ],
}


@every_damping
@every_weight
@pytest.mark.parametrize("name", ["panda", "gough-stewart", "three-legged-robot", "five-bar"])
def test_accelerations_and_jerks_are_derivatives_in_time(name: str, weight: str, damping: object) -> None:
    """Of the velocity law along the motion that it gives, by differences of sixth order."""
    m, c, task = kic.load(name), configuration(name), TASKS[name].split()
    M, P = len(c.coordinates), len(c.coefficients(task, order=1).rows)
    given = {"criterion": weighty(weight, M), "damping": damping, "secondary": AIMS.get(name)}
    ud, udd, uddd = 0.3 * c._model.length * np.random.default_rng(1).normal(size=(3, P))
    r = c.resolve_redundancy(task, ud, udd, uddd, **given)
    q = np.array([float(c.value(x)) for x in c.coordinates])
    speed = max(1.0, np.abs(r.qd).max(), np.abs(r.qdd).max() ** 0.5, np.abs(r.qddd).max() ** (1 / 3))
    h = 4e-3 / speed
    near = []
    for t in OFFSETS * h:
        moved = m.at(q + r.qd * t + r.qdd * t**2 / 2 + r.qddd * t**3 / 6, near=c)
        near.append(moved.resolve_redundancy(task, ud + udd * t + uddd * t**2 / 2, udd + uddd * t, **given))
    qdd = sum(w * x.qd for w, x in zip(SHARES, near, strict=True)) / h
    qddd = sum(w * x.qdd for w, x in zip(SHARES, near, strict=True)) / h
    assert np.abs(qdd - r.qdd).max() < 1e-8 * max(np.abs(r.qdd).max(), np.abs(r.qd).max())
    assert np.abs(qddd - r.qddd).max() < 1e-7 * max(np.abs(r.qddd).max(), np.abs(r.qdd).max())


def test_rates_of_the_instantaneous_law() -> None:
    """Where rates are given, accelerations are the least that the task allows; jerks go on from there."""
    m, c = kic.load("panda"), configuration("panda")
    rng = np.random.default_rng(2)
    qd, udd, uddd = rng.normal(size=7), rng.normal(size=3), rng.normal(size=3)
    given = {"criterion": "minimum kinetic energy", "law": "instantaneous"}
    r = c.resolve_redundancy("flange", udd=udd, uddd=uddd, qd=qd, **given)
    u, d = c.coefficients("flange"), c.dynamics()
    assert mismatch(r.qd, qd) == 0
    assert not r.velocity_residual.any()  # rates are given
    assert np.abs(r.acceleration_residual).max() < 1e-13
    assert mismatch(u.acceleration(qd, r.qdd), udd) < 1e-12
    s = c.operational_space("flange")
    others = r.qdd + rng.normal(size=(50, 7)) @ s.projector.T
    assert (d.kinetic_energy(others) >= d.kinetic_energy(r.qdd) * (1 - 1e-12)).all()
    h, found = 1e-3, 0.0
    for w, t in zip(SHARES, OFFSETS * h, strict=True):
        phi = c._phi + qd * t + r.qdd * t**2 / 2 + r.qddd * t**3 / 6
        later = qd + r.qdd * t + r.qddd * t**2 / 2
        found = (
            found + w / h * m.at(phi).resolve_redundancy("flange", udd=udd + uddd * t, qd=later, **given).qdd
        )
    assert mismatch(found, r.qddd) < 1e-8
    # with rates of the velocity law it is (4-71)
    law = c.resolve_redundancy("flange", u.velocity(qd), udd, **given)
    again = c.resolve_redundancy("flange", udd=udd, qd=law.qd, **given)
    assert mismatch(again.qdd, law.qdd) < 1e-12


@every_case
def test_minimum_kinetic_energy_really_is(name: str) -> None:
    c, task = configuration(name), TASKS[name].split()
    u, d = c.coefficients(task, order=1), c.dynamics()
    rng = np.random.default_rng(3)
    r = c.resolve_redundancy(task, rng.normal(size=len(u.rows)), criterion="minimum kinetic energy")
    null = np.linalg.svd(u.G)[2][len(u.rows) :]
    others = r.qd + rng.normal(size=(200, len(null))) @ null
    assert mismatch(others @ u.G.T, np.broadcast_to(u.velocity(r.qd), (200, len(u.rows)))) < 1e-11
    assert (d.kinetic_energy(others) > d.kinetic_energy(r.qd)).all()
    assert mismatch(r.qd, c.operational_space(task).inverse @ u.velocity(r.qd)) < 1e-11
    least = c.resolve_redundancy(task, u.velocity(r.qd))
    assert (np.linalg.norm(others, axis=1) > np.linalg.norm(least.qd)).all()


@every_weight
def test_as_many_rows_as_dof_have_a_unique_solution(weight: str) -> None:
    """With as many rows as coordinates, G is the inverse for all weights and laws."""
    c = configuration("puma560")
    inverse = c.coefficients("link6", order=3).inverse()
    ud, udd, uddd = np.random.default_rng(4).normal(size=(3, 6))
    for law in LAWS:
        r = c.resolve_redundancy("link6", ud, udd, uddd, criterion=weighty(weight, 6), law=law)
        limit = 1e-12 * np.linalg.cond(c.dynamics().I)
        assert mismatch(r.qd, inverse.velocity(ud)) < limit
        assert mismatch(r.qdd, inverse.acceleration(ud, udd)) < limit
        assert mismatch(r.qddd, inverse.jerk(ud, udd, uddd)) < 10 * limit
        assert mismatch(r.coefficients.H, inverse.H) < limit
    assert r.coefficients.quasi == inverse.quasi


def test_heavily_weighted_joint_moves_less() -> None:
    c = configuration("panda")
    Q = np.eye(7)
    Q[3, 3] = 1e8
    r = c.resolve_redundancy("flange", [0.1, 0.2, 0.3], criterion=Q)
    assert abs(r.qd[3]) < 1e-6 * np.abs(r.qd).max()


def test_other_coordinates() -> None:
    """The kinetic energy does not depend on coordinates, a norm does."""
    c, task = configuration("gough-stewart"), ["platform.x", "platform.wz"]
    ud, udd, uddd = [0.1, 0.2], [0.3, -0.2], [0.5, 0.1]
    moved = {}
    for weight in WEIGHTS[:2]:
        legs = c.resolve_redundancy(task, ud, udd, uddd, criterion=weight)
        pose = c.resolve_redundancy(task, ud, udd, uddd, criterion=weight, wrt="platform")
        u = c.coefficients("platform", order=3)
        moved[weight] = mismatch(u.velocity(legs.qd), pose.qd)
        if weight == "minimum kinetic energy":
            assert mismatch(u.acceleration(legs.qd, legs.qdd), pose.qdd) < 1e-11
            assert mismatch(u.jerk(legs.qd, legs.qdd, legs.qddd), pose.qddd) < 1e-11
    assert moved["minimum kinetic energy"] < 1e-11
    assert moved["minimum norm"] > 1e-2


# secondary objectives


def test_objectives_are_gradients() -> None:
    """Complex steps of the functions themselves."""
    m, q = kic.load("panda"), np.array(CONFIGURATIONS["panda"])
    c = m.at(q)
    limits = {"joint4": (-3.0, -0.1), "reach": (0.2, 0.9)}

    def far(x: kic.Configuration) -> np.ndarray:
        return sum(
            w * ((x.value(k) - (a + b) / 2) / (b - a)) ** 2 / 4
            for w, (k, (a, b)) in zip((1.0, 2.0), limits.items(), strict=True)
        )

    def w(x: kic.Configuration) -> np.ndarray:
        G = x.coefficients("flange").G
        return np.sqrt(np.linalg.det(G @ np.swapaxes(G, -1, -2)))

    def preferred(x: kic.Configuration) -> np.ndarray:
        return ((x.value("joint1") - 0.4) ** 2 + (x.value("elbow.y") - 0.1) ** 2) / 2

    steps = m.at(q + 1e-30j * np.eye(7))
    for aim, function, sign in zip(AIMS["panda"], (far, w, preferred), (-1, 1, -1), strict=True):
        z = aim.rates(c, None, ("flange",))
        exact = sign * aim.gain * function(steps).imag / 1e-30
        assert mismatch(z, exact) < 1e-12
        qd = np.random.default_rng(0).normal(size=7)
        ahead = aim.rates(m.at(q + 1e-30j * qd), None, ("flange",)).imag / 1e-30
        assert mismatch(aim.derivative(c, None, ("flange",), qd), ahead) < 1e-12


def test_the_manipulability_is_that_of_the_ellipsoid() -> None:
    c = configuration("panda")
    z = kic.Manipulability(gain=2.0).rates(c, None, ("flange",))
    assert mismatch(z, 2 * c.ellipsoid("flange").gradient()) < 1e-12
    # also near a singular configuration
    near = kic.load("horn-two-link").at([0.3, 1e-8])
    z = kic.Manipulability().rates(near, None, ("tip.x", "tip.y"))
    assert mismatch(z, np.array([0.0, 1.0])) < 1e-7


def test_objectives_decrease_without_affecting_the_task() -> None:
    c = configuration("panda")
    still = np.zeros(3)
    away = c.resolve_redundancy("flange", still, secondary=kic.JointLimits({"joint4": (-1.6, 0.0)}, gain=3.0))
    assert away.qd[3] > 0
    w = c.resolve_redundancy("flange", still, secondary=kic.Manipulability())
    G = c.coefficients("flange")
    assert np.abs(G.velocity(w.qd)).max() < 1e-14
    assert np.abs(w.qd).max() > 1e-3
    slope = kic.Manipulability().rates(c, None, ("flange",)) @ w.qd
    assert slope > 0
    drawn = c.resolve_redundancy(
        "flange", still, secondary=kic.PreferredConfiguration({"joint3": 1.0}, gain=2.0)
    )
    assert drawn.qd[2] > 0


@pytest.mark.parametrize("weight", ["minimum norm", "minimum kinetic energy", "matrix"])
@pytest.mark.parametrize("aim", range(3))
def test_objectives_decrease_in_every_metric(weight: str, aim: int) -> None:
    """The null-space motion is the orthogonal projection of the slope; its rate is exact."""
    m, rng = kic.load("panda"), np.random.default_rng(11)
    objective, still = AIMS["panda"][aim], np.zeros(3)
    Q = np.diag(10.0 ** rng.uniform(-2, 2, 7))
    given = {"criterion": Q if weight == "matrix" else weight, "secondary": objective}
    for q in np.array(CONFIGURATIONS["panda"]) + rng.uniform(-0.5, 0.5, (20, 7)):
        c = m.at(q)
        r = c.resolve_redundancy("flange", still, still, **given)
        slope, G = objective.rates(c, None, ("flange",)), c.coefficients("flange", order=1).G
        own = slope - np.linalg.pinv(G) @ (G @ slope)
        assert mismatch(r.qd, own) < 1e-10
        assert slope @ r.qd > 0
        ahead = m.at(q + 1e-20j * r.qd).resolve_redundancy("flange", still, **given).qd.imag / 1e-20
        assert mismatch(r.qdd, ahead) < 1e-10
        by_call = {**given, "secondary": lambda x: objective.rates(x, None, ("flange",))}
        assert mismatch(c.resolve_redundancy("flange", still, still, **by_call).qdd, r.qdd) < 1e-10


@pytest.mark.parametrize("law", LAWS)
def test_secondary_in_every_form(law: str) -> None:
    """Rates with their derivatives, a callable, an objective and a list: one motion."""
    m, c = kic.load("panda"), configuration("panda")
    ud, udd, uddd = np.random.default_rng(6).normal(size=(3, 3))
    rest = {name: 0.3 for name in c.coordinates}
    aim = kic.PreferredConfiguration(rest, gain=0.8)

    def named(x: kic.Configuration) -> np.ndarray:
        return -0.8 * (x._phi - 0.3)

    by_aim = c.resolve_redundancy("flange", ud, udd, uddd, secondary=aim, law=law)
    by_call = c.resolve_redundancy("flange", ud, udd, secondary=named, law=law)
    assert mismatch(by_call.qdd, by_aim.qdd) < 1e-13
    qd, qdd = by_aim.qd, by_aim.qdd
    by_rates = c.resolve_redundancy(
        "flange", ud, udd, uddd, secondary=(-0.8 * (c._phi - 0.3), -0.8 * qd, -0.8 * qdd), law=law
    )
    for part in ("qd", "qdd", "qddd"):
        assert mismatch(getattr(by_rates, part), getattr(by_aim, part)) < 1e-12, part
    halves = [kic.PreferredConfiguration(rest, gain=0.4), lambda x: named(x) / 2]
    both = c.resolve_redundancy("flange", ud, udd, secondary=halves, law=law)
    assert mismatch(both.qdd, by_aim.qdd) < 1e-13
    batch = m.at(c._phi + np.zeros((2, 1, 1))).resolve_redundancy(
        "flange", ud, udd, secondary=halves, law=law
    )
    assert mismatch(batch.qdd[1, 0], both.qdd) < 1e-13


# damping


def test_damping_increases_towards_a_singular_configuration() -> None:
    m = kic.load("horn-two-link")
    task = ["tip.x", "tip.y"]
    # w of rows in lengths of 2: |sin(elbow)| / 4
    elbows = np.array([0.0, 0.1, 0.4, 1.5])
    c = m.at(np.stack([np.full(4, 0.3), elbows], axis=-1))
    r = c.resolve_redundancy(task, [0.2, 0.1], damping=(0.2, 0.1))
    L2 = c._model.length**2
    w = np.sin(elbows) / L2
    assert mismatch(r.damping, 0.04 * np.where(w < 0.1, 1 - (w / 0.1) ** 2, 0) ** 2) < 1e-12
    assert r.damped.tolist() == [True, True, True, False]
    assert np.abs(r.velocity_residual[~r.damped]).max() < 1e-14
    assert (np.abs(r.velocity_residual[r.damped]).max(axis=1) > 0).all()
    assert "damped in" in r.summary().text()
    # the textbook's: rows and weight free of units
    G = c.coefficients(task, order=1).G
    for k in range(4):
        lam = r.damping[k] * L2
        plain = G[k].T @ np.linalg.solve(G[k] @ G[k].T + lam * np.eye(2), [0.2, 0.1])
        if k:
            assert mismatch(r.qd[k], plain) < 1e-10
    # a rate even at the singular configuration: its derivative in time
    one = m.at([0.3, 0.0])
    ud, udd = np.array([0.2, 0.1]), np.array([0.1, 0.3])
    law = one.resolve_redundancy(task, ud, udd, damping=(0.2, 0.1))
    h, found = 1e-3, 0.0
    for w, t in zip(SHARES, OFFSETS * h, strict=True):
        moved = m.at(one._phi + law.qd * t + law.qdd * t**2 / 2)
        found = found + w / h * moved.resolve_redundancy(task, ud + udd * t, damping=(0.2, 0.1)).qd
    assert mismatch(found, law.qdd) < 1e-8


def test_damping_is_free_of_units() -> None:
    """The same arm in millimetres is damped by the same λ² and misses the same share."""
    m, c = kic.load("panda"), configuration("panda")
    small = resized(m, 1000.0)
    ud = np.array([0.1, 0.2, 0.3])
    for weight in WEIGHTS[:2]:
        for damping in DAMPINGS[1:]:
            a = c.resolve_redundancy("flange", ud, criterion=weight, damping=damping)
            b = small.at(c._phi).resolve_redundancy("flange", 1000 * ud, criterion=weight, damping=damping)
            assert mismatch(b.qd, a.qd) < 1e-11
            assert mismatch(b.velocity_residual / 1000, a.velocity_residual) < 1e-9
            assert mismatch(b.damping, a.damping) < 1e-11


def test_singular_configuration_raises_or_is_damped() -> None:
    m = kic.load("horn-two-link")
    c = m.at([0.3, 0.0])
    with raises(kic.SingularError, names=("tip.x", "tip.y")):
        c.resolve_redundancy(["tip.x", "tip.y"], [0.1, 0.1])
    r = c.resolve_redundancy(["tip.x", "tip.y"], [0.1, 0.1], [0.0, 0.0], damping=0.1)
    assert np.isfinite(r.qdd).all()
    assert bool(r.damped)


# batches and members


@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2), (0,)])
@pytest.mark.parametrize("name", ["panda", "gough-stewart"])
def test_batches(name: str, batch: tuple[int, ...]) -> None:
    m, task = kic.load(name), TASKS[name].split()
    rng = np.random.default_rng(7)
    drawn = np.array([float(m.at().value(x)) for x in m.at().coordinates])
    c = m.at(drawn + 0.05 * rng.normal(size=(*batch, len(drawn))), near=m.at())
    P, M = len(c.coefficients(task, order=1).rows), len(drawn)
    ud, udd, uddd = rng.normal(size=(3, *batch, P))
    a = rng.normal(size=(*batch, M, M))
    Q = a @ np.swapaxes(a, -1, -2) + np.eye(M)
    for weight in ("minimum kinetic energy", Q):
        aim = kic.PreferredConfiguration({c.coordinates[0]: 0.3})
        r = c.resolve_redundancy(task, ud, udd, uddd, criterion=weight, secondary=aim)
        shapes = {"qd": (M,), "qdd": (M,), "qddd": (M,), "effort": (M,), "multiplier": (P,), "damped": (),
                  "velocity_residual": (P,), "acceleration_residual": (P,), "damping": ()}  # fmt: skip
        for part, shape in shapes.items():
            assert getattr(r, part).shape == (*batch, *shape), part
        assert r.coefficients.H.shape == (*batch, M, P, P)
        assert r.dynamics().P.shape == (*batch, M, P, P)
        for index in np.ndindex(batch):
            given = {"criterion": weight if isinstance(weight, str) else Q[index], "secondary": aim}
            s = (c[index] if batch else c).resolve_redundancy(
                task, ud[index], udd[index], uddd[index], **given
            )
            for part in ("qd", "qdd", "qddd", "effort"):
                assert mismatch(getattr(r, part)[index], getattr(s, part)) < 1e-12, part
            assert mismatch(r.coefficients.H[index], s.coefficients.H) < 1e-12
        assert "<table>" in r._repr_html_() or 0 in batch


def test_one_configuration_many_motions_and_weights() -> None:
    c = configuration("panda")
    ud = np.random.default_rng(8).normal(size=(4, 1, 3))
    Q = np.stack([np.eye(7), np.diag(np.arange(1.0, 8.0))])
    r = c.resolve_redundancy("flange", ud, np.zeros(3), criterion=Q)
    assert r.qd.shape == (4, 2, 7)
    assert r.coefficients.G.shape == (4, 2, 7, 3)
    assert (
        mismatch(r.qdd[2, 1], c.resolve_redundancy("flange", ud[2, 0], np.zeros(3), criterion=Q[1]).qdd)
        < 1e-13
    )
    z = np.random.default_rng(9).normal(size=(2, 7))
    assert c.resolve_redundancy("flange", ud[0, 0], secondary=z).qd.shape == (2, 7)


def test_masked_members_stay_nan() -> None:
    m = kic.load("horn-two-link")
    c = m.at([[0.3, 1.0], [np.nan, 1.0], [0.3, 0.0]], failures="mask")
    task, ud = ["tip.x", "tip.y"], [[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]]
    with raises(kic.SingularError, names=("tip.x", "tip.y"), failed=[(2,)]) as caught:
        c.resolve_redundancy(task, ud, np.zeros(2))
    assert caught.value.failed == [(2,)]
    r = c.resolve_redundancy(task, ud, np.zeros(2), [0.0, 0.0], failures="mask")
    for part in (r.qd, r.qdd, r.qddd, r.effort, r.coefficients.G[:, :, 0]):
        assert np.isnan(part).any(axis=1).tolist() == [False, True, True]
    assert mismatch(r.qdd[0], m.at([0.3, 1.0]).resolve_redundancy(task, ud[0], np.zeros(2)).qdd) < 1e-14
    aimed = c.resolve_redundancy(
        task, ud, np.zeros(2), secondary=kic.Manipulability("tip.x"), failures="mask"
    )
    assert np.isnan(aimed.qd).any(axis=1).tolist() == [False, True, True]


@every_damping
@pytest.mark.parametrize("weight", WEIGHTS[:2])
def test_coefficients_of_a_law_pass_complex_steps_on(weight: str, damping: object) -> None:
    m, q, step = kic.load("panda"), np.array(CONFIGURATIONS["panda"]), np.eye(7)[2]

    def bent(at: np.ndarray) -> np.ndarray:
        return (
            m.at(at)
            .resolve_redundancy("flange", np.zeros(3), criterion=weight, damping=damping)
            .coefficients.H
        )

    exact, h = bent(q + 1e-30j * step).imag / 1e-30, 1e-3
    near = sum(w / h * bent(q + t * step) for w, t in zip(SHARES, OFFSETS * h, strict=True))
    assert mismatch(near, exact) < 1e-10


@every_weight
def test_sensitivities_to_the_drawing(weight: str) -> None:
    """Compare with differences; damping is scaled by the size of the mechanism, which has no complex step."""
    m = kic.load("horn-two-link")
    task, ud, udd = ["tip.x"], [0.3], [0.2]

    def changed(h: float) -> kic.Mechanism:
        points = (replace(p, at=(p.at[0] + h, *p.at[1:])) if p.name == "tip" else p for p in m.points)
        bodies = (replace(b, mass=b.mass + h) if b.name == "link2" else b for b in m.bodies)
        return replace(m, points=tuple(points), bodies=tuple(bodies))

    for part in ("qd", "qdd", "effort"):

        def ask(m: kic.Mechanism, part: str = part, **given) -> np.ndarray:
            r = m.at([0.1, 0.3]).resolve_redundancy(task, ud, udd, criterion=weighty(weight, 2), **given)
            return getattr(r, part)

        exact = m.sensitivity(ask, ["tip.at.x", "link2.mass"]).sum(axis=0)
        near = sum(w / 1e-3 * ask(changed(t)) for w, t in zip(SHARES, OFFSETS * 1e-3, strict=True))
        assert mismatch(near, exact) < 1e-9, part
    with raises(kic.InputError, function="Damping"):
        m.sensitivity(lambda m: ask(m, "qd", damping=0.1), ["tip.at.x"])


# hot loops


@every_weight
@pytest.mark.parametrize("name", ["panda", "gough-stewart", "puma560"])
def test_prepared_evaluators_return_the_same(name: str, weight: str) -> None:
    m, c, task = kic.load(name), configuration(name), TASKS[name].split()
    M = len(c.coordinates)
    P = len(c.coefficients(task, order=1).rows)
    ud, udd = np.random.default_rng(10).normal(size=(2, P))
    z, zd = np.random.default_rng(11).normal(size=(2, M))
    Q = weighty(weight, M)
    damped, parts = (
        {"criterion": Q, "damping": 0.05},
        "multiplier velocity_residual acceleration_residual damping",
    )
    f = m.prepare.resolve_redundancy(task, effort=True, **damped)
    one = c.resolve_redundancy(task, ud, udd, secondary=(z, zd), **damped)
    r = f(c.state, ud, udd, z, zd)
    for part in ("qd", "qdd", "effort", *parts.split()):
        assert mismatch(getattr(r, part), getattr(one, part)) < 1e-12, part
    rates = m.prepare.resolve_redundancy(task, order=1, **damped)
    assert mismatch(rates(c.state, ud, secondary=z).qd, r.qd) < 1e-14
    assert rates(c.state, ud).qdd is None
    given = {"criterion": Q, "law": "instantaneous"}
    found = m.prepare.resolve_redundancy(task, **given)(c.state, udd=udd, qd=z)
    assert mismatch(found.qdd, c.resolve_redundancy(task, udd=udd, qd=z, **given).qdd) < 1e-12
    assert "evaluator of resolve_redundancy of" in repr(f)


@every_weight
@pytest.mark.parametrize("kinds", ["RPRRP", ["R", "spherical", "P", "universal"]], ids=str)
def test_random_trees_with_loads(kinds: object, weight: str) -> None:
    """Sliders, balls, springs, dampers, and coordinates in another order than the tree's."""
    rng = np.random.default_rng(12)
    m = random_tree(rng, kinds, branched=True, loads=True)
    if "spherical" not in kinds:
        m = replace(m, coordinates=tuple(reversed(m.coordinates)))
    c = m.at(rng.normal(size=len(m.coordinates)))
    task = ["gap", "p3.x"]
    M = len(c.coordinates)
    ud, udd, uddd = rng.normal(size=(3, 2))
    Q = weighty(weight, M)
    r = c.resolve_redundancy(task, ud, udd, uddd, criterion=Q)
    u = c.coefficients(task, order=3)
    limit = 1e-13 * np.linalg.cond(c.dynamics().I) * 10
    assert mismatch(u.acceleration(r.qd, r.qdd), udd) < limit
    assert mismatch(u.jerk(r.qd, r.qdd, r.qddd), uddd) < 10 * limit
    assert mismatch(r.coefficients.acceleration(ud, udd), r.qdd) < limit
    f = m.prepare.resolve_redundancy(task, criterion=Q, effort=True)
    assert mismatch(f(c.state, ud, udd).effort, c.dynamics().inverse_dynamics(r.qd, r.qdd)) < limit
    s = c.operational_space(task)
    if weight == "minimum kinetic energy":
        assert mismatch(s.force(r.qd, udd), s.inverse.T @ (r.effort)) < limit


def test_invalid_arguments_of_the_evaluator() -> None:
    m = kic.load("panda")
    state, ud = m.at(CONFIGURATIONS["panda"]).state, np.zeros(3)
    f = m.prepare.resolve_redundancy("flange")
    r = f(state, ud, ud)
    cases = [
        ({"ud": ud}, {"key": "udd"}),
        ({"udd": ud}, {"key": "ud"}),
        ({"ud": ud, "udd": ud, "qd": np.zeros(7)}, {"key": "ud"}),
        ({"udd": ud, "qd": np.zeros(7)}, {"key": "qd"}),
        ({"ud": np.zeros(2), "udd": ud}, {"key": "ud", "got": (2,), "expected": (3,)}),
        ({"ud": np.zeros((2, 3)), "udd": ud}, {"key": "ud", "got": (2,)}),
        ({"ud": ud * 1j, "udd": ud}, {"key": "ud", "got": complex}),
        ({"ud": ud, "udd": ud, "out": m.prepare.resolve_redundancy("flange")(state, ud, ud)}, {"key": "out"}),
    ]
    for given, data in cases:
        with raises(kic.InputError, **data):
            f(state, **given)
    rates = m.prepare.resolve_redundancy("flange", order=1)
    with raises(kic.InputError, key="udd"):
        rates(state, ud, ud)
    slow = m.prepare.resolve_redundancy("flange", law="instantaneous", order=1)
    with raises(kic.InputError, key="qd"):
        slow(state, qd=np.zeros(7))
    for ask in (lambda: r.coefficients, r.dynamics):
        with raises(kic.InputError, key="configuration"):
            ask()
    with raises(kic.InputError, key="effort"):
        _ = r.effort
    many = m.prepare.resolve_redundancy("flange", criterion=np.stack([np.eye(7)] * 2))
    with raises(kic.InputError, key="criterion", got=2):
        many(state, ud, ud)


# errors


def test_invalid_uses_raise() -> None:
    c = configuration("panda")
    ud = np.zeros(3)
    wide = np.eye(7)
    wide[2, 2] = 0
    indefinite = np.eye(7)
    indefinite[0, 1] = indefinite[1, 0] = 2.0
    skew = np.eye(7)
    skew[0, 1] = 0.1
    graded = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1e7, 1e7])
    cases = [
        ({"criterion": wide}, {"key": "criterion"}),
        ({"criterion": np.zeros((7, 7))}, {"key": "criterion"}),
        ({"criterion": indefinite}, {"key": "criterion"}),
        ({"criterion": skew}, {"key": "criterion"}),
        ({"criterion": np.stack([1e20 * np.eye(7), skew])}, {"key": "criterion"}),
        ({"criterion": skew * np.outer(graded, graded)}, {"key": "criterion"}),
        ({"criterion": np.eye(3)}, {"key": "criterion", "got": (3, 3), "expected": (7, 7)}),
        ({"criterion": np.eye(7) * 1j}, {"key": "criterion", "got": complex}),
        ({"criterion": "heavy"}, {"key": "criterion", "got": "heavy"}),
        ({"law": "true"}, {"key": "law", "got": "true"}),
        ({"damping": 0.0}, {"key": "damping"}),
        ({"damping": (0.1, 0.1, 0.1)}, {"key": "damping"}),
        ({"damping": "much"}, {"key": "damping"}),
        ({"secondary": np.zeros(3)}, {"key": "secondary", "got": (3,)}),
        ({"secondary": "up"}, {"key": "secondary", "got": "up"}),
        ({"secondary": np.full(7, np.nan)}, {"key": "secondary"}),
        ({"secondary": lambda x: x._phi * np.inf}, {"key": "secondary"}),
        ({"secondary": (np.zeros(7),) * 4}, {"key": "secondary", "got": 4}),
        ({"secondary": kic.JointLimits({"nose": (0, 1)})}, {"name": "nose"}),
        ({"secondary": kic.JointLimits({"flange": (0, 1)})}, {"key": "limits", "name": "flange"}),
        ({"secondary": kic.PreferredConfiguration({"link7.wx": 0.0})}, {"key": "values"}),
        ({"qd": np.zeros(7)}, {"key": "qd"}),
        ({"qd": np.zeros(7), "law": "instantaneous"}, {"key": "udd"}),
        ({"uddd": ud}, {"key": "udd"}),
        ({"wrt": ["joint1"]}, {"mobility": 7, "count": 1}),
        ({"failures": "ignore"}, {"key": "failures", "got": "ignore"}),
    ]
    for given, data in cases:
        with raises(kic.KicError, **data):
            c.resolve_redundancy("flange", ud, **given)
    with raises(kic.InputError, key="secondary"):
        c.resolve_redundancy("flange", ud, ud, ud, secondary=lambda x: -x._phi)
    ahead = kic.load("panda").at(np.array(CONFIGURATIONS["panda"]) + 0j)
    with raises(kic.InputError, key="configuration"):
        ahead.resolve_redundancy("flange", ud, ud, ud)
    with raises(kic.InputError, key="secondary"):
        ahead.resolve_redundancy("flange", ud, ud, secondary=lambda x: -x._phi)


def test_symbols_and_missing_mass() -> None:
    m = kic.load("horn-two-link")
    bare = replace(m, bodies=tuple(replace(b, mass=None) for b in m.bodies)).at([0.3, 1.0])
    r = bare.resolve_redundancy("tip.x", [0.1], [0.0])  # a norm needs no mass
    assert r.qd.shape == (2,)
    with pytest.raises(kic.InertiaError):
        _ = r.effort
    with pytest.raises(kic.InertiaError):
        bare.resolve_redundancy("tip.x", [0.1], criterion="minimum kinetic energy")
    light = replace(m, bodies=(m.bodies[0], replace(m.bodies[1], mass=0.0, inertia=(0, 0, 0)))).at([0.3, 1.0])
    with raises(kic.SingularError, coordinates=("elbow",)):
        light.resolve_redundancy("tip.x", [0.1], criterion="minimum kinetic energy")


def test_scratch_is_that_of_the_kernel() -> None:
    from kic.kernels import redundancy as resolution
    from kic.tasks.operational_space.redundancy import RedundancyTask

    for name, task in TASKS.items():
        f = RedundancyTask(kic.load(name)._model, task.split())
        assert f.scratch == resolution.scratch_places(len(f.coordinates), len(f.names))[-1]
