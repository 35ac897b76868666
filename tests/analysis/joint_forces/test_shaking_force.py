"""Shaking force and moment against momentum and reactions, harmonics and counterweights against textbooks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raising import raises
from representative_models import OTHER_MODELS
from snapshot import Case

import kic

# of the sum of |Y π|; the largest error is 3e-12, of momentum in coordinates that nearly fail
FORCE_RTOL = 1e-10


def turned(m: kic.Mechanism, name: str, count: int = 180) -> kic.Configuration:
    """Return a turn of a crank, without its end."""
    return m.path({name: np.linspace(0.0, 2 * np.pi, count + 1)[:-1]})


@pytest.mark.parametrize("name", kic.model_names())
@pytest.mark.slow_for(*OTHER_MODELS)
def test_momentum_changes_by_the_shaking_force(name: str) -> None:
    """Force and moment are −ṗ and −L̇, by the derivatives of centroidal momentum, in any coordinates."""
    s, about = Case(name), np.array([0.3, -0.2, 0.1])
    for wrt in (None, s.wrt):
        for c in (s.c, s.batch):
            found = c.shaking_force(s.qd, s.qdd, about=about, wrt=wrt)
            rate = c.centroidal_momentum(wrt=wrt).rate(s.qd, s.qdd)
            arm = c.value("com") - about
            r = found.regressor
            size = np.abs(r.matrix * r.values).sum(axis=-1).max(initial=1e-300)
            assert_allclose(found.force, -rate[..., :3], 0, FORCE_RTOL * size)
            moment = rate[..., 3:] + np.cross(arm, rate[..., :3])
            assert_allclose(found.moment, -moment, 0, FORCE_RTOL * size)
            weight = c.shaking_force(s.qd, s.qdd, about=about, wrt=wrt, gravity=True).force - found.force
            assert_allclose(weight, s.m.total_mass * np.array(s.m.gravity) + 0 * weight, 0, FORCE_RTOL * size)


@pytest.mark.parametrize(
    ("name", "wrt"),
    [
        ("four-bar", None),
        ("four-bar", "D"),
        ("slider-crank", None),
        ("puma560", None),
        ("gough-stewart", None),
    ],
)
def test_ground_carries_all_reactions(name: str, wrt: str | None) -> None:
    """With gravity, the force is the resultant of the reactions that joints exert on ground."""
    s = Case(name)
    size = len(s.c.coefficients("com", order=1, wrt=wrt).columns)
    qd, qdd = np.random.default_rng(1).normal(size=(2, size))
    found = s.c.shaking_force(qd, qdd, wrt=wrt, gravity=True)
    f = s.c.joint_forces(qd, qdd, wrt=wrt, criterion="minimum norm")
    force, moment = np.zeros((2, 3))
    for joint in f:
        wrench = f[joint].about([0.0, 0.0, 0.0])
        if "ground" in wrench.bodies:
            sign = 1.0 if wrench.bodies[1] == "ground" else -1.0
            force, moment = force + sign * wrench.force, moment + sign * wrench.moment
    scale = np.abs(f.force).max()
    assert_allclose(found.force, force, 0, 1e-10 * scale)
    assert_allclose(found.moment, moment, 0, 1e-10 * scale)


def test_a_spring_to_ground_does_not_shake() -> None:
    """Springs and efforts are internal; their reactions act on ground."""
    m = kic.load("four-bar")
    hung = m.add(
        kic.Point("pin", "ground", (0.0, 1.0, 0.0)), kic.Spring("hook", ("tip", "pin"), stiffness=100.0)
    )
    assert_allclose(hung.at(0.5).shaking_force(2.0).force, m.at(0.5).shaking_force(2.0).force)


def test_full_force_balance_of_a_four_bar() -> None:
    """Berkof and Lowen: with counterweights on crank and rocker the total mass centre is at rest.

    Their moments are −m₂ a₁ (coupler at the crank pin) and so on, for the coupler replaced by two complex
    masses at its pins.
    """
    m = kic.load("four-bar")
    turn = turned(m, "A")
    s = turn.shaking_force(10.0)
    assert_allclose(np.sqrt((s.force**2).sum(axis=1).mean()), 7.4, 0, 0.05)
    b = s.balance(["crank", "rocker"], radius={"crank": 0.05, "rocker": 0.2})
    A, B, C, D = (complex(*m[name].at[:2]) for name in "ABCD")
    crank, coupler, rocker = (m[name] for name in ("crank", "coupler", "rocker"))
    share = coupler.mass * (complex(*coupler.com[:2]) - B) / (C - B)  # at C, the rest at B
    expected = [
        -crank.mass * (complex(*crank.com[:2]) - A) - (coupler.mass - share) * (B - A),
        -rocker.mass * (complex(*rocker.com[:2]) - D) - share * (C - D),
    ]
    assert_allclose(b.moment[:, 0] + 1j * b.moment[:, 1], expected, 1e-12)
    assert_allclose(b.mass, np.abs(expected) / [0.05, 0.2], 1e-12)
    assert np.abs(b.after.force).max() < 1e-11
    # the mechanism, and another motion
    again = turned(b.mechanism, "A")
    assert_allclose(again.value("com"), again.value("com")[:1] + np.zeros((180, 3)), 0, 1e-13)
    other = again.shaking_force(np.sin(np.arange(180.0))[:, None], 3.0)
    assert np.abs(other.force).max() < 1e-11
    assert_allclose(again.shaking_force(10.0).moment, b.after.moment, 1e-10, 1e-12)
    twice = again.shaking_force(10.0).balance("crank", radius=0.05)
    assert twice.mechanism.points == b.mechanism.points


def test_partial_balance_of_a_slider_crank() -> None:
    """Textbook: half of the reciprocating mass leaves equal primary forces along and across the stroke.

    A weight of the force along the stroke, √2, balances two thirds: k = w² / (1 + w²).
    """
    m = kic.linkages.slider_crank(crank=0.05, rod=0.2, masses={"crank": 0.0, "rod": 0.0, "slider": 1.2})
    turn = turned(m, m.coordinates[0], 72)
    s, r, w = turn.shaking_force(100.0), 0.05, 100.0
    before = s.harmonics(2).amplitude
    primary = 1.2 * r * w**2
    assert_allclose(before[1, :2], [primary, 0.0], 1e-12, 1e-9)
    for weights, share in (((1, 1, 1, 0, 0, 0), 1 / 2), ((np.sqrt(2), 1, 1, 0, 0, 0), 2 / 3)):
        b = s.balance("crank", radius=0.03, weights=weights)
        found = b.after.harmonics(2).amplitude
        assert_allclose(found[1, :2], [(1 - share) * before[1, 0], share * before[1, 0]], 1e-9)
        assert_allclose(found[2], before[2], 1e-9, 1e-9)
    half = s.balance("crank", radius=0.03, bounds={"crank.mx": (-0.01, 0.01)})
    # the crank, at 60° in the reference configuration, needs (−0.015, −0.026)
    assert_allclose(half.moment[0, :2], [-0.01, -0.03 * np.sin(np.pi / 3)], 1e-9)


def cost(s: kic.results.ShakingForce, weights: np.ndarray) -> float:
    return float(((s._six * weights) ** 2).sum())


def test_counterweights_of_a_floating_body_have_mass() -> None:
    """The mass of a counterweight on a coupler shakes, too: no place and no mass is better."""
    m, every = kic.load("four-bar"), np.ones(6)
    s = turned(m, "A", 60).shaking_force(10.0)
    b = s.balance(["crank", "coupler"], radius=0.3, weights=every)
    assert (b.mass > 0).all()
    least = cost(turned(b.mechanism, "A", 60).shaking_force(10.0), every)
    assert_allclose(least, cost(b.after, every), 1e-10)
    step = 1e-3 * np.abs(b.moment).max()
    for place in np.ndindex(2, 2):
        for sign in (-step, step):
            moment, other = b.moment.copy(), m
            moment[place] += sign
            for body, x, point in zip(b.bodies, moment, b.point, strict=True):
                size = np.linalg.norm(x)
                other = other.add(kic.Point(f"{body} w", body, point + 0.3 * x / size, mass=size / 0.3))
            assert cost(turned(other, "A", 60).shaking_force(10.0), every) > least
    # the result has no unit: the masses of a watch
    for k in (1e-6, 1e-12):
        small = m
        for body in m.bodies:
            small = small.replace(body.name, mass=k * body.mass, inertia=k * np.array(body.inertia))
        light = turned(small, "A", 60).shaking_force(10.0).balance(b.bodies, radius=0.3, weights=every)
        assert_allclose(light.mass / k, b.mass, 1e-8)


@pytest.mark.parametrize(
    "name", ["slider-crank", "four-bar", "jansen-leg", "geared-five-bar", "rssr", "sarrus"]
)
@pytest.mark.parametrize("gravity", [False, True])
def test_counterweights_are_never_worse_than_none(name: str, gravity: bool) -> None:
    """More bodies are never worse, and `after` is the shaking force of the returned mechanism."""
    s = Case(name)
    rates = np.random.default_rng(3).normal(size=(2, *s.batch.batch, s.m.dof))
    given = s.batch.shaking_force(*rates, gravity=gravity)
    bodies, radius = list(given.regressor.points), 0.1 * float(s.m._model.length)
    for weights in (np.ones(6), np.array([1.0, 1, 1, 0, 0, 0])):
        found = [given.balance(of, radius=radius, weights=weights) for of in (bodies[:2], bodies)]
        costs = [cost(one, weights) for one in (given, *(b.after for b in found))]
        assert costs[1] <= costs[0] * (1 + 1e-9)
        assert costs[2] <= costs[1] * (1 + 1e-9) + 1e-20 * costs[0]
        for b in found:
            y = b.mechanism.prepare.regressor(bodies, ground=True, loads=gravity)
            values = b.mechanism.at().regressor(of=bodies, ground=True).values
            assert_allclose(
                -y(s.batch.state, *rates) @ values, b.after._six, 1e-9, 1e-10 * np.abs(given._six).max()
            )


def test_bodies_may_be_listed_in_any_order() -> None:
    m = kic.load("four-bar")
    b = turned(m.replace(bodies=m.bodies[::-1]), "A", 60).shaking_force(10.0)
    assert np.abs(b.balance(["crank", "rocker"], radius=0.05).after.force).max() < 1e-11


def test_harmonics_sum_to_the_force() -> None:
    turn = turned(kic.load("four-bar"), "A", 121)
    s = turn.shaking_force(10.0, about=(0.1, 0.0, 0.0))
    h = s.harmonics(60)
    phase = np.outer(turn.value("A"), h.order)
    assert_allclose(np.cos(phase) @ h.cosine + np.sin(phase) @ h.sine, s._six, 0, 1e-12)
    closed = kic.load("four-bar").path({"A": 1.0 - np.linspace(0.0, 2 * np.pi, 122)})
    assert_allclose(
        closed.shaking_force(10.0, about=(0.1, 0, 0)).harmonics(3).amplitude, h.amplitude[:4], 1e-9, 1e-12
    )
    with raises(kic.InputError, key="count", got=61):
        s.harmonics(61)
    assert h.table("fx.cos")["fx.cos"].shape == (61,)
    assert "amplitudes" in str(h.summary())


def test_shaking_along_a_motion_and_in_files(tmp_path) -> None:
    turn = kic.trajectory.at_speed(turned(kic.load("four-bar"), "A", 24), 10.0)
    s = turn.shaking_force()
    assert_allclose(s.force, turn.configuration.shaking_force(10.0).force)
    assert np.array_equal(turn.table("shaking force")["ground.fx"], s.force[:, 0])
    table = s.table(["A", "ground.mz"])
    assert np.array_equal(table["ground.mz"], s.moment[:, 2])
    table.to_csv(tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines()[0] == "member,A (rad),ground.mz (N m)"
    copied = pickle.loads(pickle.dumps(s))
    assert np.array_equal(copied.balance("crank", radius=0.1).mass, s.balance("crank", radius=0.1).mass)
    assert len(s.regressor.base()) > 3
    masked = turn.configuration.shaking_force(1.0, wrt="tip.z", failures="mask")
    assert np.isnan(masked.table()["ground.fx"]).all()


def test_balanced_forces_are_not_drawn() -> None:
    pytest.importorskip("matplotlib")
    balanced = turned(kic.load("four-bar"), "A").shaking_force(10.0).balance(["crank", "rocker"], radius=0.1)
    (moment,) = kic.trajectory.at_speed(turned(balanced.mechanism, "A"), 10.0).plot("shaking force").axes
    assert moment.get_ylabel() == "shaking moment (N m)"
    assert balanced.after.components == ("mz",)


@pytest.mark.parametrize(
    ("values", "rates", "key"),
    [
        (np.linspace(0.0, np.pi, 40), 1.0, "configuration"),
        (np.linspace(0.0, 4 * np.pi, 80), 1.0, "configuration"),
        (np.linspace(0.0, 1.0, 40) ** 2 * 2 * np.pi, 1.0, "configuration"),
        (np.zeros(0), 1.0, "configuration"),
        (0.3, 1.0, "configuration"),
        (np.linspace(0.0, 2 * np.pi, 41), np.linspace(1.0, 2.0, 41)[:, None], "qd"),
    ],
)  # fmt: skip
def test_harmonics_need_a_periodic_turn(values: np.ndarray, rates: np.ndarray, key: str) -> None:
    with raises(kic.InputError, key=key):
        kic.load("four-bar").at({"A": values}, failures="mask").shaking_force(rates).harmonics()


def test_harmonics_are_those_of_an_angle_that_turns() -> None:
    m, slide = kic.load("four-bar"), kic.load("slider-crank")
    turn = turned(m, "A")
    expected = turn.shaking_force(10.0).harmonics().amplitude
    wrapped = m.at({"A": (turn.value("A") + np.pi) % (2 * np.pi) - np.pi})
    assert_allclose(wrapped.shaking_force(10.0).harmonics().amplitude, expected, 1e-9, 1e-9)
    coupler = turn.coefficients("B")  # in another coordinate, whose rate varies
    other = turn.shaking_force(coupler.velocity(10.0), coupler.acceleration(10.0, 0.0), wrt="B")
    assert_allclose(other.harmonics().amplitude, expected, 1e-9, 1e-9)
    assert other.harmonics().coordinate == "A"
    for c in (slide.replace(coordinates=["piston"]).at(), slide.lock("shaft").at()):
        with raises(kic.InputError, key="coordinates"):
            c.shaking_force().harmonics()


def test_shaking_force_needs_masses_and_real_numbers() -> None:
    m = kic.load("four-bar")
    with raises(kic.InertiaError):
        m.replace(bodies=[kic.Body(body.name) for body in m.bodies]).at().shaking_force(1.0)
    moved, plain = (m.at(0.5).shaking_force(rate) for rate in (2.0 + 1e-30j, 2.0))
    assert_allclose(moved.force.imag / 1e-30, plain.force, 1e-12)  # F is quadratic: dF/dω = 2 F / ω
    for call in (moved.harmonics, lambda: moved.balance("crank", radius=0.1)):
        with raises(kic.InputError, key="force"):
            call()
    masked = m.at({"A": [0.5, np.nan]}, failures="mask").shaking_force(2.0)
    assert np.isnan(masked.force[1]).all()
    assert np.isfinite(masked.balance("crank", radius=0.1).mass).all()
    still = m.lock("A").at()
    assert not still.shaking_force().force.any()
    carried = m["coupler"].mass + m["rocker"].mass  # the crank is part of ground
    assert_allclose(still.shaking_force(gravity=True).force, carried * np.array(m.gravity), 1e-12)
