"""The planar linkages of the catalogue: what each is for, and legs against circles of 60 digits.

The motion and the dynamics of those of one freedom are tested beside the mechanisms in space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest
from lagrange import M, circles, unit
from raising import raises, refuses
from sampling import mismatch
from scipy.optimize import brentq

import kic
from kic.mechanism.configuration import Configuration, displacement

DIGITS = 60


def slopes(f: Callable[[mp.mpf], np.ndarray], x: object = 0) -> list[np.ndarray]:
    """Values and the first three derivatives of an array of numbers of 60 digits."""
    with mp.workdps(DIGITS):
        h = M(10) ** -12
        a, b, c, d, e = (f(M(x) + k * h) for k in (-2, -1, 0, 1, 2))
        return [c, (d - b) / (2 * h), (d - 2 * c + b) / h**2, (e - 2 * d + 2 * b - a) / (2 * h**3)]


def member(c: Configuration, k: int) -> Configuration:
    """One configuration of a path."""
    return Configuration(c._model, (), c.state[[k]])


def led(m: kic.Mechanism, angle: float) -> Configuration:
    """Return a linkage continued from its reference configuration to an angle of its crank."""
    (crank,) = m.coordinates
    return member(m.path({crank: np.linspace(m.at().value(crank), angle, 100)}), -1)


# --- what each of one freedom is for


def test_watts_point_and_its_larger_copy() -> None:
    """A, pump and piston stay in line, 3 to 5, and their path is upright to third order."""
    m = kic.load("watt-parallel-motion")
    c = m.at({"A": np.linspace(-0.45, 0.45, 91)})
    pump, piston = (c.coefficients(p, order=3) for p in ("pump", "piston"))
    assert np.abs(5 * pump.values - 3 * piston.values).max() < 1e-13
    for one, two in zip(pump.tensors, piston.tensors, strict=True):
        assert np.abs(5 * one - 3 * two).max() < 1e-11
    for T in m.at().coefficients("piston.x", order=3).tensors:
        assert np.abs(T).max() < 1e-13
    # then x = 3 - A⁴/12: with B = R(cos A, sin A), radius R₂ = 3R/2 and x of P = 0.4 B.x + 0.6 E.x
    near = m.at({"A": [[-1e-3], [1e-3]]}).coefficients("piston.x", order=3).D.ravel()
    assert np.diff(near)[0] / 2e-3 == pytest.approx(-24 / 12, abs=1e-5)
    height = piston.values[:, 1] + 0.9
    reached = np.abs(piston.values[:, 0] - 3)[np.abs(height) <= 0.92].max()
    assert 0.0028 < reached < 0.0032


def turn(name: str, count: int = 721) -> tuple[kic.Mechanism, Configuration, np.ndarray]:
    m = kic.load(name)
    angles = m.at().value("A") + np.linspace(0, 2 * np.pi, count)
    return m, m.path({"A": angles}), angles


def test_output_dwells() -> None:
    """Within 0.1 degrees for a quarter turn of the crank, of 69 in all; the tip by inscribed angles."""
    m, c, A = turn("stephenson-six-bar")
    # crank pin, rocker's pivot and tip lie on a circle of 0.25 m about C, pin and tip 60 degrees of it apart
    pin, D = 0.1 * np.exp(1j * A), 0.2
    half = np.arcsin(np.abs(pin - D) / 0.5)
    lean = np.exp(-1j * np.pi / 6)
    tip = D + 0.5 * np.sin(half + np.pi / 6) * lean * (pin - D) / np.abs(pin - D)
    found = c.value("tip")[:, :2] @ [1, 1j]
    assert np.abs(found - tip).max() < 1e-13
    # its curve is symmetric: opposite angles of the crank, mirrored in a line through D
    mirrored = m.path({"A": -A[::-1]}, near=led(m, -A[-1])).value("tip")[::-1, :2] @ [1, 1j]
    assert np.abs((mirrored - D) / lean - np.conj((tip - D) / lean)).max() < 1e-13
    out = np.degrees(c.value("O"))
    rest = np.abs((np.degrees(A) % 360) - 180) <= 45
    assert 0.08 < np.ptp(out[rest]) < 0.1
    assert 68 < np.ptp(out) < 69.5
    centre = c.value("pin")[np.argmin(np.abs(np.degrees(A) - 180))]
    assert np.abs(np.linalg.norm(c.value("tip") - centre, axis=1) - 0.272)[rest].max() < 0.25e-3
    # where it turns back it drives nothing
    slope = c.coefficients("O").G.ravel()
    assert np.abs(slope[rest]).max() < 0.01 * np.abs(slope).max()
    k = np.flatnonzero(np.diff(np.sign(slope)) != 0)[0]

    def rate(angle: float) -> float:
        return m.at({"A": angle}, near=member(c, k)).coefficients("O").G[0, 0]

    still = m.at({"A": brentq(rate, A[k], A[k + 1], xtol=1e-15, rtol=1e-15)}, near=member(c, k))
    refuses(lambda: still.dynamics(wrt="O"), kic.SingularError, coordinates=("O",))


def test_an_exact_straight_line() -> None:
    """The tracer's x never changes, its y is x tan(C/2), with all that follows."""
    m, x = kic.load("peaucellier"), (0.37**2 - 0.15**2) / (2 * 0.1625)
    limit = 2 * np.arccos(0.22 / 0.325)
    C = np.linspace(-limit + 0.01, limit - 0.01, 181)
    c = m.path({"C": C}, near=led(m, C[0]))
    line = c.coefficients(["tracer.x", "tracer.y", "tracer.z"], order=3)
    assert np.abs(line.values[:, 0] - x).max() < 1e-13
    assert np.abs(line.values[:, 1] - x * np.tan(C / 2)).max() < 1e-13
    assert np.abs(c.value("OP") * c.value("OQ") - (0.37**2 - 0.15**2)).max() < 1e-14
    t = np.tan(C / 2)
    s = 1 + t * t
    exact = x / 2 * s, x / 2 * s * t, x / 4 * s * (1 + 3 * t * t)
    # towards the limit the bars turn ever faster, and what they round the tracer cannot know better
    bars = c.coefficients(["O1", "O2", "A1", "B1", "Q1"], order=3)
    for T, along, fast in zip(line.tensors, exact, bars.tensors, strict=True):
        T, off = T.reshape(len(C), 3), 1e-12 * np.abs(fast).reshape(len(C), -1).max(axis=1, initial=1)
        assert (np.abs(T[:, 0]) < off).all()
        assert (np.abs(T[:, 1] - along) < off).all()
        assert not T[:, 2].any()
    # the line as the coordinate: C = 2 atan(y/x)
    back = c.coefficients("C", order=3, wrt="tracer.y")
    exact = 2 / (x * s), -4 * t / (x**2 * s**2), 4 * (3 * t * t - 1) / (x**3 * s**3)
    inside = np.abs(C) < limit - 0.3
    for T, along in zip(back.tensors, exact, strict=True):
        assert np.abs(T.ravel() - along)[inside].max() < 1e-11 * np.abs(along).max()
    # a force there is felt by the crank as much as the tracer moves, and across the line not at all
    pushed = replace(m, forces=[kic.Force("push", "tracer", (7.0, 2.0, 0.0))]).at({"C": 0.5}).dynamics()
    felt = pushed.load - m.at({"C": 0.5}).dynamics().load
    assert felt[0] == pytest.approx(2 * x / 2 / np.cos(0.25) ** 2, rel=1e-12)


def test_flat_rhombus() -> None:
    m, limit = kic.load("peaucellier"), 2 * np.arccos(0.22 / 0.325)
    assert m.at({"C": limit - 1e-4}).value("OP") == pytest.approx(0.22, abs=2e-5)
    refuses(lambda: m.at({"C": limit + 1e-3}), kic.ConfigurationError, failed=[()])


def test_the_step_of_the_leg() -> None:
    """155 degrees on the ground, 0.57 m of way, 0.22 m of lift."""
    m, c, _ = turn("jansen-leg")
    foot = c.value("foot")
    low = foot[:, 1] - foot[:, 1].min()
    on = low < 0.01
    assert 154 < 360 * on[:-1].mean() < 157
    assert 0.56 < np.ptp(foot[on, 0]) < 0.58
    assert 0.22 < low.max() < 0.23
    # it goes back in the rest of the turn, and returns to where it was
    assert np.abs(foot[-1] - foot[0]).max() < 1e-12
    refuses(lambda: m.at({"foot.x": 0.0}), kic.ConfigurationError, failed=[()])


def around(m: kic.Mechanism, cut: str) -> set[str]:
    """The moving bodies of the loop that a cut joint closes."""
    pairs = [set(j.bodies) for j in m.joints if j.name not in m.mobility().cuts]
    one, two = next(j.bodies for j in m.joints if j.name == cut)
    ways = [[one]]
    while all(way[-1] != two for way in ways):
        ways = [[*w, b] for w in ways for pair in pairs if w[-1] in pair for b in pair - set(w)]
    return set(next(way for way in ways if way[-1] == two)) - {"ground"}


@pytest.mark.parametrize("name", ["peaucellier", "jansen-leg"])
def test_links_that_the_loops_share(name: str) -> None:
    """Three loops, and any two of them have a moving link in common."""
    m = kic.load(name)
    assert (m.dof, len(m.bodies), len(m.joints)) == (1, 7, 10)
    loops = [around(m, cut) for cut in m.mobility().cuts]
    assert len(loops) == 3
    assert all(one & two for one in loops for two in loops)
    assert set.union(*loops) == {b.name for b in m.bodies}


def test_harmonic_motion() -> None:
    """The yoke is where r cos A is; the crank feels its mass with sin² A, and the block's with cos² A too."""
    m, r = kic.load("scotch-yoke"), 0.1
    A = np.linspace(-np.pi, np.pi, 73)
    c = m.path({"shaft": A}, near=led(m, A[0]))
    u = c.coefficients(["yoke", "slot", "pin"], order=3)
    cosine, sine = r * np.cos(A), r * np.sin(A)
    zero = 0 * A
    exact = [(cosine, sine, -A), (-sine, cosine, zero - 1), (-cosine, -sine, zero), (sine, -cosine, zero)]
    for T, rows in zip((u.values, *u.tensors), exact, strict=True):
        assert np.abs(T.reshape(len(A), 3) - np.stack(rows, axis=1)).max() < 1e-14
    mass = {b.name: b.mass for b in m.bodies}
    d, disc = c.dynamics(), m.bodies[0].inertia[2][2]
    inertia = disc + mass["block"] * r**2 + mass["slider"] * sine**2
    assert np.abs(d.I.ravel() - inertia).max() < 1e-14 + 1e-12 * inertia.max()
    assert np.abs(d.P.ravel() - mass["slider"] * sine * cosine).max() < 1e-12 * inertia.max()
    assert np.abs(d.load.ravel() + 9.81 * mass["block"] * cosine).max() < 1e-13
    refuses(lambda: m.at({"shaft": 0.0}).dynamics(wrt="yoke"), kic.SingularError, coordinates=("yoke",))
    e = m.at({"shaft": 1.1}).coefficients("shaft", order=3, wrt="yoke")
    one = -1 / (r * np.sin(1.1))
    two = -np.cos(1.1) / np.sin(1.1) * one**2
    three = (1 + 3 / np.tan(1.1) ** 2) * one**3
    assert np.abs(np.ravel([*e.G.ravel(), *e.H.ravel(), *e.D.ravel()]) / [one, two, three] - 1).max() < 1e-12


# --- several degrees of freedom: legs


class Legs(NamedTuple):
    """Three legs of bars from their feet: lengths, how the last two bend, and the platform's hinges."""

    feet: tuple[complex, ...]
    bars: tuple[tuple[str, ...], ...]
    bends: tuple[int, ...]
    ends: tuple[complex, ...]


def bend(one: complex, two: complex) -> int:
    """Return 1 if a bar turns left from the one before, -1 if it turns right."""
    return int(np.sign((one.conjugate() * two).imag))


def legs_of(m: kic.Mechanism, hinges: str) -> Legs:
    """Lengths of the legs in the reference configuration are whole millimetres, as the model states."""
    at = {j.name: complex(*j.at[:2]) for j in m.joints}
    chains = [[at[f"{h}{k}"] for h in hinges] for k in (1, 2, 3)]
    bars = tuple(tuple(f"{abs(q - p):.3f}" for p, q in pairwise(c)) for c in chains)
    bends = tuple(bend(c[-2] - c[-3], c[-1] - c[-2]) for c in chains)
    body = next(b for b in m.bodies if b.name == "platform")
    reference = complex(*body.com[:2])
    return Legs(tuple(c[0] for c in chains), bars, bends, tuple(c[-1] - reference for c in chains))


def typed(z: complex) -> mp.mpc:
    """The decimals that a float stands for."""
    return mp.mpc(repr(z.real), repr(z.imag))


def ends_at(legs: Legs, pose: np.ndarray) -> list[mp.mpc]:
    """Where the platform's hinges are when its reference point and angle are (x, y, θ)."""
    x, y, turn = pose
    return [mp.mpc(x, y) + mp.mpc(p.real, p.imag) * unit(turn) for p in legs.ends]


def knee_angles(legs: Legs, pose: np.ndarray) -> np.ndarray:
    """Angles of the first bars of legs of two bars, by circles about foot and platform's hinge."""
    angles = []
    for foot, (one, two), side, end in zip(
        legs.feet, legs.bars, legs.bends, ends_at(legs, pose), strict=True
    ):
        knee = circles(typed(foot), one, end, two, -side)
        angles.append(mp.arg(knee - typed(foot)))
    return np.array(angles, dtype=object)


POSE = ["platform.x", "platform.y", "platform.angle"]


def moved(m: kic.Mechanism, seed: int, size: float = 0.1) -> Configuration:
    """A configuration with all coordinates moved a little from the drawing."""
    here = np.array([m.at().value(q) for q in m.coordinates])
    return m.at(here + np.random.default_rng(seed).uniform(-size, size, len(here)))


def ahead(x: np.ndarray, w: np.ndarray, t: mp.mpf) -> list[mp.mpf]:
    """x + t w with all digits."""
    return [M(float(a)) + t * M(float(b)) for a, b in zip(x, w, strict=True)]


def along(u: kic.Coefficients, w: np.ndarray) -> list[np.ndarray]:
    """G, H and D in one direction of the coordinates."""
    return [u.G @ w, np.einsum("pmn,m,n->p", u.H, w, w), np.einsum("plmn,l,m,n->p", u.D, w, w, w)]


@pytest.mark.parametrize("seed", range(3))
def test_each_leg_by_circles(seed: int) -> None:
    """Motors as functions of the platform's pose, leg by leg, to third order along any direction."""
    m = kic.load("three-rrr")
    c, legs = moved(m, seed), legs_of(m, "ABC")
    assert legs.bars == (("0.250", "0.350"), ("0.260", "0.410"), ("0.290", "0.300"))
    u = c.coefficients(m.coordinates, order=3, wrt=POSE)
    pose = np.array([c.value(q) for q in POSE])
    for w in np.random.default_rng(seed).normal(size=(12, 3)):
        values, *tensors = slopes(lambda t, w=w: knee_angles(legs, ahead(pose, w, t)))
        assert np.abs(np.exp(1j * (values.astype(float) - u.values)) - 1).max() < 1e-13
        for T, by_circles in zip(along(u, w), tensors, strict=True):
            assert mismatch(T, by_circles.astype(float)) < 1e-11


def hinge(m: kic.Mechanism, c: Configuration, name: str) -> np.ndarray:
    """Where a joint is now, in the plane."""
    joint = next(j for j in m.joints if j.name == name)
    return c.pose(joint.bodies[1]).apply(joint.at)[:2]


def across(v: np.ndarray) -> np.ndarray:
    return np.array([-v[1], v[0]])


def kept_lengths(m: kic.Mechanism, c: Configuration, ends: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rows n·(ẋ, ẏ) + (r × n) θ̇ of the bars between two hinges of each leg, and those bars n."""
    rows, bars = [], []
    centre = np.array([c.value("platform.x"), c.value("platform.y")])
    for k in "123":
        one, two = (hinge(m, c, end + k) for end in ends)
        n = two - one
        rows.append([*n, n @ across(two - centre)])
        bars.append(n)
    return np.array(rows), bars


@pytest.mark.parametrize("seed", range(4))
def test_motors_drive_the_platform(seed: int) -> None:
    """A t = B q̇: each outer bar keeps its length."""
    m = kic.load("three-rrr")
    c = moved(m, seed, 0.2)
    A, bars = kept_lengths(m, c, "BC")
    B = np.diag([n @ across(hinge(m, c, f"B{k}") - hinge(m, c, f"A{k}")) for k, n in enumerate(bars, 1)])
    assert mismatch(c.coefficients(POSE).G, np.linalg.solve(A, B)) < 1e-12
    assert mismatch(c.coefficients(m.coordinates, wrt=POSE).G, np.linalg.solve(B, A)) < 1e-12
    # and the other way: a force and a moment on the platform, as the motors feel them
    points = [kic.Point("centre", "platform", next(b.com for b in m.bodies if b.name == "platform"))]
    force = [kic.Force("push", "centre", (3.0, -2.0, 0.0))]
    pushed = replace(m, points=points, forces=force, moments=[kic.Moment("twist", "platform", (0, 0, 0.7))])
    e = pushed.at({q: c.value(q) for q in m.coordinates}, near=pushed.at())
    felt = e.dynamics().load - c.dynamics().load
    assert mismatch(felt, B.T @ np.linalg.solve(A.T, [3.0, -2.0, 0.7])) < 1e-12


def test_eight_working_modes() -> None:
    """At one pose of the platform each knee bends either way, and all eight are found."""
    m = kic.load("three-rrr")
    legs, pose = legs_of(m, "ABC"), np.add([m.at().value(q) for q in POSE], [0.02, -0.01, 0.1])
    found = m.assembly_modes(dict(zip(POSE, pose, strict=True)))
    sides = product((1, -1), repeat=3)
    with mp.workdps(DIGITS):
        here = [M(float(x)) for x in pose]
        wanted = np.array([knee_angles(legs._replace(bends=s), here) for s in sides]).astype(float)
    motors = np.stack([found.configuration.value(q) for q in m.coordinates], axis=1)
    assert found.configuration.batch == (8,)
    off = np.abs(np.exp(1j * motors[:, None]) - np.exp(1j * wanted)).max(axis=2)
    assert off.min(axis=0).max() < 1e-11
    assert off.min(axis=1).max() < 1e-11


def test_assembly_modes() -> None:
    """At given motors the platform closes where the third outer bar fits the four-bar of the other two."""
    m = kic.load("three-rrr")
    c = m.at()
    knees = [complex(*hinge(m, c, f"B{k}")) for k in (1, 2, 3)]
    ends = [complex(*hinge(m, c, f"C{k}")) for k in (1, 2, 3)]
    bars = [abs(e - k) for e, k in zip(ends, knees, strict=True)]
    base = ends[1] - ends[0]

    def misfit(angle: np.ndarray, side: int) -> np.ndarray:
        one = knees[0] + bars[0] * np.exp(1j * angle)
        way = knees[1] - one
        s = (abs(base) ** 2 - bars[1] ** 2 + np.abs(way) ** 2) / (2 * np.abs(way))
        with np.errstate(invalid="ignore"):
            two = one + (s + 1j * side * np.sqrt(abs(base) ** 2 - s * s)) * way / np.abs(way)
        return np.abs(one + (ends[2] - ends[0]) * (two - one) / base - knees[2]) - bars[2]

    angles, places = np.linspace(-np.pi, np.pi, 20001), []
    for side in (1, -1):
        off = misfit(angles, side)
        for k in np.flatnonzero(off[:-1] * off[1:] < 0):
            places += [brentq(misfit, angles[k], angles[k + 1], args=(side,), xtol=1e-14)]
    found = m.assembly_modes({q: c.value(q) for q in m.coordinates})
    first = np.array(
        [np.angle(complex(*(hinge(m, found[k], "C1"))) - knees[0]) for k in range(len(found.counts))]
    )
    assert 2 <= len(places) <= 6
    assert np.abs(np.sort(first) - np.sort(places)).max() < 1e-10


def test_both_kinds_of_singular_configurations() -> None:
    m = kic.load("three-rrr")
    # a leg stretched: the platform's coordinates cannot drive it, its motors can
    straight = -np.angle((0.28 + 0.21j) / (-0.07 + 0.24j))
    c = m.at({"A1": np.arctan2(0.45, 0.21), "B1": straight, "platform.angle": 0.0})
    with raises(kic.SingularError, coordinates=("platform.x", "platform.y", "platform.angle")):
        c.coefficients("tool", wrt=POSE)
    assert np.isfinite(c.coefficients("tool", order=3).D).all()
    # outer bars on lines through one point: the motors cannot
    place = {q: m.at().value(q) for q in POSE[:2]}

    def turned(angle: float) -> Configuration:
        return m.at({**place, "platform.angle": angle})

    def lever(angle: float) -> float:
        return np.linalg.det(kept_lengths(m, turned(angle), "BC")[0])

    turns = np.linspace(0, 0.9, 19)
    signs = np.sign([lever(a) for a in turns])
    k = np.flatnonzero(np.diff(signs))[0]
    c = turned(brentq(lever, turns[k], turns[k + 1], xtol=1e-15, rtol=1e-15))
    refuses(c.dynamics, kic.SingularError, coordinates=("A1", "A2", "A3"))
    assert np.isfinite(c.dynamics(wrt=POSE).I).all()


# --- six degrees of freedom in the plane


SIX = [*POSE, "A1", "A2", "A3"]


def inputs_by_circles(legs: Legs, x: np.ndarray) -> np.ndarray:
    """The six inputs of the device as functions of its platform and of the first three of them."""
    first, second = list(x[3:]), []
    for k, (foot, end) in enumerate(zip(legs.feet, ends_at(legs, x[:3]), strict=True)):
        one, two, three = legs.bars[k]
        knee = typed(foot) + M(one) * unit(x[3 + k])
        other = circles(knee, two, end, three, -legs.bends[k])
        second.append(mp.arg((other - knee) / unit(x[3 + k])))
    return np.array([*first, *second], dtype=object)


@pytest.mark.parametrize("seed", range(3))
def test_the_six_inputs_by_circles(seed: int) -> None:
    m = kic.load("six-freedom-planar")
    c, legs = moved(m, seed), legs_of(m, "ABCD")
    assert m.mobility().dof == m.dof == 6
    u, x = c.coefficients(m.coordinates, order=3, wrt=SIX), np.array([c.value(q) for q in SIX])
    for w in np.random.default_rng(seed).normal(size=(12, 6)):
        values, *tensors = slopes(lambda t, w=w: inputs_by_circles(legs, ahead(x, w, t)))
        assert np.abs(np.exp(1j * (values.astype(float) - u.values)) - 1).max() < 1e-13
        for T, by_circles in zip(along(u, w), tensors, strict=True):
            assert mismatch(T, by_circles.astype(float)) < 1e-11
    # there and back
    trip = c.coefficients(SIX, order=3) @ u
    assert np.abs(trip.G - np.eye(6)).max() < 1e-12
    assert np.abs(trip.H).max() < 1e-11 * np.abs(u.H).max()
    assert np.abs(trip.D).max() < 1e-11 * np.abs(u.D).max()
    back = c.dynamics(wrt=SIX).transfer(c.coefficients(SIX))
    assert mismatch(back.I, c.dynamics().I) < 1e-11
    assert mismatch(back.P, c.dynamics().P) < 1e-11
    assert mismatch(back.load, c.dynamics().load) < 1e-11


@pytest.mark.parametrize("seed", range(3))
def test_the_platform_of_six_inputs(seed: int) -> None:
    """Each third bar keeps its length between the platform and a knee that two inputs place."""
    m = kic.load("six-freedom-planar")
    c = moved(m, seed)
    A, bars = kept_lengths(m, c, "CD")
    B = np.zeros((3, 6))
    for k, n in enumerate(bars):
        knee = hinge(m, c, f"C{k + 1}")
        for column, name in ((k, f"A{k + 1}"), (k + 3, f"B{k + 1}")):
            B[k, column] = n @ across(knee - hinge(m, c, name))
    assert mismatch(c.coefficients(POSE).G, np.linalg.solve(A, B)) < 1e-12


def test_redundant_inputs_of_least_energy() -> None:
    """(4-69) to (4-75): the weighted right inverse, its second order, and the efforts it asks."""
    m, rng = kic.load("six-freedom-planar"), np.random.default_rng(2)
    c = moved(m, 5)
    u, d = c.coefficients(POSE), c.dynamics()
    weight = np.linalg.inv(d.I)
    R = weight @ u.G.T @ np.linalg.inv(u.G @ weight @ u.G.T)  # (4-70)
    H = -np.einsum("ip,pmn,ma,nb->iab", R, u.H, R, R)  # (4-72)
    right = kic.Coefficients(m.coordinates, POSE, R, H)
    trip = u @ right
    assert np.abs(trip.G - np.eye(3)).max() < 1e-12
    assert np.abs(trip.H).max() < 1e-11 * np.abs(u.H).max()
    # no other rates of the inputs move the platform so with less energy
    for v in rng.normal(size=(5, 3)):
        least = d.kinetic_energy(R @ v)
        idle = np.linalg.svd(u.G)[2][3:].T @ rng.normal(size=(3, 20))
        assert (d.kinetic_energy((R @ v)[:, None].T + idle.T) > least).all()
    # with the other three left alone the platform feels (G I⁻¹ Gᵀ)⁻¹, whatever the others are
    felt = np.linalg.inv(u.G @ weight @ u.G.T)
    for others in (["A1", "A2", "A3"], ["B1", "A2", "C3"]):
        I = c.dynamics(wrt=[*POSE, *others]).I
        assert mismatch(I[:3, :3] - I[:3, 3:] @ np.linalg.solve(I[3:, 3:], I[3:, :3]), felt) < 1e-10
    # (4-73): efforts at the inputs for a motion of the platform
    partial = d.transfer(right, left=kic.Coefficients.identity(m.coordinates))
    v, a = rng.normal(size=(2, 3))
    asked = d.inverse_dynamics(right.velocity(v), right.acceleration(v, a))
    assert mismatch(partial.inverse_dynamics(v, a), asked) < 1e-11
    assert mismatch(partial.I, u.G.T @ felt) < 1e-11  # (4-74)


def test_platform_is_at_rest_while_the_knees_move() -> None:
    m = kic.load("six-freedom-planar")
    c = m.at()
    other = m.at({**{q: c.value(q) for q in POSE}, "A1": 1.9, "A2": 1.3, "A3": 0.2}, near=c)
    assert np.abs(displacement(other, "platform") - displacement(c, "platform")).max() < 1e-13
    assert np.abs(hinge(m, other, "C1") - hinge(m, c, "C1")).max() > 0.01
    refuses(lambda: c.dynamics(wrt=POSE), mobility=6, count=3)


# --- the hybrid of Fig. 4-3


HAND = ["hand.x", "hand.y", "hand.z", "hand.wx", "hand.wy", "hand.wz"]
ARM = ["shoulder", "elbow", "roll"]


def open_part(m: kic.Mechanism, joints: list[str], heavy: list[str]) -> kic.Mechanism:
    """The open chain of some joints of a mechanism, with the masses of some of its bodies."""
    kept = [j for j in m.joints if j.name in joints]
    names = {b for j in kept for b in j.bodies}
    bodies = [
        b if b.name in heavy else kic.Body(b.name, mass=0.0, com=b.com, inertia=(0, 0, 0), at=b.at)
        for b in m.bodies
        if b.name in names
    ]
    return kic.Mechanism("part", bodies, kept, gravity=m.gravity)


def leg_at(m: kic.Mechanism, c: Configuration, k: int, shared: bool) -> Configuration:
    """A leg of the hybrid with platform and arm behind it, as if the others did not exist."""
    heavy = [f"inner{k}", f"outer{k}", *(["platform", "upper_arm", "forearm", "hand"] if shared else [])]
    names = [f"A{k}", f"B{k}", f"C{k}", *ARM]
    return open_part(m, names, heavy).at([c.value(q) for q in names])


@pytest.mark.parametrize("seed", range(3))
def test_the_hybrid_as_the_source_models_it(seed: int) -> None:
    """(4-42) to (4-64) with the arm in all three initial sets, and its masses in one of them."""
    m = kic.load("parallel-serial")
    c = moved(m, seed, 0.2)
    legs = [leg_at(m, c, k, shared=k == 2) for k in (1, 2, 3)]
    inverses = [leg.coefficients(HAND, order=3).inverse() for leg in legs]  # (4-43), (4-44)
    total = sum(leg.dynamics().transfer(inverse) for leg, inverse in zip(legs, inverses, strict=True))
    motors = inverses[0]["A1"].stack(inverses[1]["A2"], inverses[2][["A3", *ARM]])  # (4-56), (4-57)
    back = motors.inverse()  # (4-63), (4-64)
    q = total.transfer(back)  # (4-61), (4-62)
    d = c.dynamics()
    assert q.coordinates == d.coordinates == m.coordinates
    limit = max(
        1e-12, 100 * np.finfo(float).eps * max(motors.condition(), *(i.condition() for i in inverses))
    )
    assert mismatch(q.I, d.I) < limit
    assert mismatch(q.load, d.load) < limit
    # P* came by way of ω: as a form
    assert mismatch(q.P + q.P.swapaxes(1, 2), 2 * d.P) < 10 * limit
    hand = c.coefficients(HAND, order=3)
    for found, asked in zip(back.tensors, hand.tensors, strict=True):
        assert mismatch(found, asked) < 10 * limit
    # whichever leg carries the arm
    others = [leg_at(m, c, k, shared=k == 1) for k in (1, 2, 3)]
    again = sum(leg.dynamics().transfer(inverse) for leg, inverse in zip(others, inverses, strict=True))
    assert mismatch(again.I, total.I) < limit


@pytest.mark.parametrize("seed", range(3))
def test_the_parallel_part_in_platform_coordinates_and_the_arm_upon_it(seed: int) -> None:
    """Legs transferred to the platform's x, y, θ and added to the arm on a table where its base slides."""
    m = kic.load("parallel-serial")
    c = moved(m, seed, 0.2)
    # the platform on a planar joint, drawn where it is: φ = its motion, and the arm
    plane = kic.Joint("P", "planar", ("ground", "platform"), at=(0, 0, 0), axis=(1, 0, 0), axis2=(0, 1, 0))
    carried = [
        next(b for b in m.bodies if b.name == name) for name in ("platform", "upper_arm", "forearm", "hand")
    ]
    arm = kic.Mechanism("arm", carried, [plane, *(j for j in m.joints if j.name in ARM)], gravity=m.gravity)
    T = displacement(c, "platform")
    turn = np.arctan2(T[1, 0], T[0, 0])
    s = arm.at([T[0, 3], T[1, 3], turn, *(c.value(q) for q in ARM)])
    assert np.abs(displacement(s, "hand") - displacement(c, "hand")).max() < 1e-13
    w = ["platform.x", "platform.y", "platform.wz"]
    mine = s.coefficients([*w, *ARM], order=3)
    total = s.dynamics().transfer(mine.inverse())
    bases = []
    for k in (1, 2, 3):
        leg = open_part(m, [f"A{k}", f"B{k}", f"C{k}"], [f"inner{k}", f"outer{k}"])
        o = leg.at([c.value(f"{h}{k}") for h in "ABC"])
        inverse = o.coefficients(w, order=3).inverse()
        # it feels the platform only
        wide = kic.Coefficients(
            w, [*w, *ARM], np.eye(3, 6), np.zeros((3, 6, 6)), np.zeros((3, 6, 6, 6)), quasi=["platform.wz"]
        )
        total = total + o.dynamics().transfer(inverse @ wide)
        bases.append((inverse @ wide)[f"A{k}"])
    own = kic.Coefficients.identity([*w, *ARM], quasi=["platform.wz"])
    own = kic.Coefficients(
        own.rows, own.columns, own.G, np.zeros((6,) * 3), np.zeros((6,) * 4), quasi=own.quasi
    )
    motors = bases[0].stack(*bases[1:], own[ARM])
    q, d = total.transfer(motors.inverse()), c.dynamics()
    assert q.coordinates == d.coordinates
    limit = max(1e-12, 100 * np.finfo(float).eps * float(motors.condition()))
    assert mismatch(q.I, d.I) < limit
    assert mismatch(q.load, d.load) < limit
    assert mismatch(q.P + q.P.swapaxes(1, 2), 2 * d.P) < 10 * limit
    back = motors.inverse()
    for found, asked in zip(back.tensors, c.coefficients([*w, *ARM], order=3).tensors, strict=True):
        assert mismatch(found, asked) < 10 * limit


def test_mobility_of_the_hybrid() -> None:
    """Not planar, so its platform has a rate of turning and no angle; and where the hand drives nothing."""
    m = kic.load("parallel-serial")
    c = m.at()
    refuses(lambda: c.coefficients("platform.angle"), name="platform")
    assert not c.dynamics(wrt="hand").holonomic
    # the elbow above the shoulder: what their turns differ in, the platform does too
    upright = m.at({**{q: c.value(q) for q in m.coordinates}, "shoulder": -np.arctan2(0.18, 0.24)}, near=c)
    u = upright.coefficients(HAND)
    lone, same = u.columns_of(["shoulder", "elbow"]).G.T
    assert np.abs((lone - same)[2:]).max() < 1e-14
    refuses(lambda: upright.dynamics(wrt="hand"), kic.SingularError, coordinates=tuple(HAND))
