"""The planar linkages of the catalogue, against closed forms of their geometry.

Places come from intersecting circles with 60 digits, their slopes from differences there; masses and moments are
put on them by Lagrange's equations. Nothing of that uses kic. Every order by complex step, constraint forces and
other cuts of the loops are the business of `test_closed_models` and its neighbours, where these models are cases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest
from sampling import mismatch

import kic
from kic.configuration import Configuration

DIGITS = 60
M = mp.mpf


def unit(angle: mp.mpf) -> mp.mpc:
    return mp.mpc(mp.cos(angle), mp.sin(angle))


def circles(p: mp.mpc, rp: object, q: mp.mpc, rq: object, side: int) -> mp.mpc:
    """The point at distances rp from p and rq from q, left (side 1) or right (-1) of the way from p to q."""
    L = abs(q - p)
    along = (M(rp) ** 2 - M(rq) ** 2 + L**2) / (2 * L)
    return p + mp.mpc(along, side * mp.sqrt(M(rp) ** 2 - along**2)) * (q - p) / L


def slopes(f: Callable[[mp.mpf], np.ndarray], x: object = 0) -> list[np.ndarray]:
    """Values and the first three derivatives of an array of numbers of 60 digits."""
    with mp.workdps(DIGITS):
        h = M(10) ** -12
        a, b, c, d, e = (f(M(x) + k * h) for k in (-2, -1, 0, 1, 2))
        return [c, (d - b) / (2 * h), (d - 2 * c + b) / h**2, (e - 2 * d + 2 * b - a) / (2 * h**3)]


def flat(point: mp.mpc | complex) -> list[float]:
    return [float(point.real), float(point.imag), 0.0]


# --- one freedom


class Linkage(NamedTuple):
    """Places by name as functions of the crank's angle, and the two that each body joins."""

    places: Callable[[mp.mpf], dict[str, mp.mpc]]
    bodies: dict[str, str]
    points: dict[str, str]
    angles: tuple[float, ...]


def watt(angle: mp.mpf) -> dict[str, mp.mpc]:
    B, C = M("1.8") * unit(angle), 3 * unit(angle)
    F = mp.mpc("4.5", "-0.9")
    E = circles(B, "0.9", F, "2.7", -1)
    return {"A": mp.mpc(0), "B": B, "C": C, "D": E + C - B, "E": E, "F": F, "P": (2 * B + 3 * E) / 5}


def stephenson(angle: mp.mpf) -> dict[str, mp.mpc]:
    B, D, G = unit(angle) / 10, mp.mpc("0.2"), mp.mpc("-0.041", "-0.034")
    C = circles(B, "0.25", D, "0.25", 1)
    E = C + (B - C) * unit(-mp.pi / 3)
    return {"A": mp.mpc(0), "B": B, "C": C, "D": D, "E": E, "F": circles(G, "0.15", E, "0.272", -1), "G": G}


def peaucellier(angle: mp.mpf) -> dict[str, mp.mpc]:
    C = mp.mpc("0.1625")
    P = C + C * unit(angle)
    A, B = (circles(mp.mpc(0), "0.37", P, "0.15", side) for side in (1, -1))
    return {"O": mp.mpc(0), "C": C, "P": P, "A": A, "B": B, "Q": A + B - P}


def jansen(angle: mp.mpf) -> dict[str, mp.mpc]:
    P, B = mp.mpc("-0.38", "-0.078"), M("0.15") * unit(angle)
    X = circles(P, "0.415", B, "0.5", 1)
    Y = circles(P, "0.401", X, "0.558", 1)
    Z = circles(P, "0.393", B, "0.619", -1)
    W = circles(Z, "0.367", Y, "0.394", 1)
    foot = circles(Z, "0.49", W, "0.657", 1)
    return {"A": mp.mpc(0), "P": P, "B": B, "X": X, "Y": Y, "Z": Z, "W": W, "foot": foot}


LINKAGES = {
    "watt-parallel-motion": Linkage(
        watt,
        {"beam": "AC", "back_link": "BE", "main_link": "CD", "parallel_bar": "ED", "radius_bar": "EF"},
        {"pump": "P", "piston": "D"},
        (0.0, 0.3, -0.27),
    ),
    "stephenson-six-bar": Linkage(
        stephenson,
        {"crank": "AB", "coupler": "BC", "rocker": "DC", "link": "EF", "output": "GF"},
        {"pin": "F", "tip": "E"},
        (0.4, 2.0, 3.1, 3.9, 5.5),
    ),
    "peaucellier": Linkage(
        peaucellier,
        {"OA": "OA", "OB": "OB", "AP": "AP", "BP": "BP", "AQ": "AQ", "BQ": "BQ", "crank": "CP"},
        {"inverse": "P", "tracer": "Q"},
        (0.0, 1.2, -0.7, -1.6),
    ),
    "jansen-leg": Linkage(
        jansen,
        {"crank": "AB", "upper": "PX", "rod_j": "BX", "rod_k": "BZ", "rod_c": "PZ", "rod_f": "YW", "shank": "ZW"},
        {"foot": "foot"},
        (0.1, 1.3, 2.6, 3.6, 5.2),
    ),
}  # fmt: skip
everywhere = pytest.mark.parametrize(("name", "k"), [(n, k) for n in LINKAGES for k in range(len(LINKAGES[n].angles))])
each = pytest.mark.parametrize("name", LINKAGES)


def member(c: Configuration, k: int) -> Configuration:
    """One posture of a path."""
    return Configuration(c._model, (), c.state[[k]])


def led(m: kic.Mechanism, angle: float) -> Configuration:
    """A linkage led from its drawing to an angle of its crank."""
    (crank,) = m.coordinates
    return member(m.path({crank: np.linspace(m.at().value(crank), angle, 100)}), -1)


@cache
def posture(name: str, k: int) -> tuple[kic.Mechanism, Configuration, float]:
    """A linkage led from its drawing to one of its angles."""
    m, angle = kic.load(name), LINKAGES[name].angles[k]
    return m, led(m, angle), angle


@each
def test_the_drawing_closes_as_it_says(name: str) -> None:
    """Every hinge is drawn where the lengths put it, to the last digit but one."""
    m = kic.load(name)
    with mp.workdps(DIGITS):
        drawn = LINKAGES[name].places(M(float(m.at().value(m.coordinates[0]))))
    for joint in m.joints:
        place = drawn[joint.name if joint.name in drawn else joint.name[0]]
        assert np.abs(np.array(joint.at) - flat(place)).max() < 1e-15 * max(1, abs(place))


def places_of(m: kic.Mechanism, name: str) -> Callable[[mp.mpf], np.ndarray]:
    """Centres of the bodies, points, and turns of the bodies from the drawing, as functions of the crank."""
    of = LINKAGES[name]
    with mp.workdps(DIGITS):
        drawn = of.places(M(float(m.at().value(m.coordinates[0]))))

    def ends(at: dict[str, mp.mpc], body: str) -> tuple[mp.mpc, mp.mpc]:
        one, two = of.bodies[body]
        return at[one], at[two] - at[one]

    def everything(angle: mp.mpf) -> np.ndarray:
        at, centres, turns = of.places(angle), [], []
        for body in m.bodies:
            (p, d), (p0, d0) = ends(at, body.name), ends(drawn, body.name)
            centres.append(p + (mp.mpc(*map(M, body.com[:2])) - p0) * d / d0)
            turns.append(d / d0)
        return np.array([*centres, *(at[p] for p in of.points.values()), *turns], dtype=object)

    return everything


def turning(u: list[np.ndarray]) -> list[np.ndarray]:
    """Derivatives of angles from those of the unit vectors that they turn."""
    one, two, three = (np.array([mp.im(x) for x in du / u[0]]) for du in u[1:])
    return [one, two, three + one**3]


def real(x: np.ndarray) -> np.ndarray:
    return np.array([[mp.re(v), mp.im(v)] for v in x]).astype(float)


@everywhere
def test_places_and_orders_from_circles(name: str, k: int) -> None:
    m, c, angle = posture(name, k)
    n, points = len(m.bodies), list(LINKAGES[name].points)
    u = slopes(places_of(m, name), angle)
    for row, part in enumerate([*(b.name for b in m.bodies), *points]):
        found = c.coefficients([f"{part}.x", f"{part}.y"], order=3)
        assert np.abs(found.values - real(u[0][[row]])[0]).max() < 1e-13 * (1 + np.abs(found.values).max())
        for T, exact in zip(found.tensors, u[1:], strict=True):
            whole = real(exact[: n + len(points)])
            assert np.abs(T.ravel() - whole[row]).max() < 1e-11 * np.abs(whole).max(), part
    angles = c.coefficients([f"{b.name}.angle" for b in m.bodies], order=3)
    for T, exact in zip(angles.tensors, turning([x[-n:] for x in u]), strict=True):
        assert mismatch(T.ravel(), exact.astype(float)) < 1e-11


@everywhere
def test_dynamics_by_lagrange(name: str, k: int) -> None:
    """I* = Σ m |v|² + J ω², P* half its slope, the load what the weight gives up."""
    m, c, angle = posture(name, k)
    n = len(m.bodies)
    u = slopes(places_of(m, name), angle)
    v, a = (real(x[:n]) for x in u[1:3])
    w, dw = (x.astype(float) for x in turning([x[-n:] for x in u])[:2])
    mass, J = np.array([b.mass for b in m.bodies]), np.array([b.inertia[2] for b in m.bodies])
    d = c.dynamics()
    inertia = mass @ (v * v).sum(axis=1) + J @ (w * w)
    assert d.I[0, 0] == pytest.approx(inertia, rel=1e-12)
    P = mass @ (v * a).sum(axis=1) + J @ (w * dw)
    size = mass @ np.abs(v * a).sum(axis=1) + J @ np.abs(w * dw)
    assert abs(d.P[0, 0, 0] - P) < 1e-12 * max(size, inertia)
    assert abs(d.load[0] + 9.81 * mass @ v[:, 1]) < 1e-12 * 9.81 * mass @ np.abs(v[:, 1])


@each
@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_in_batches(name: str, batch: tuple[int, ...]) -> None:
    m = kic.load(name)
    angles = m.at().value(m.coordinates[0]) + 0.1 * np.random.default_rng(1).normal(size=(*batch, 1))
    c = m.at(angles)
    tip = list(LINKAGES[name].points)[-1]
    u, d = c.coefficients(tip, order=3), c.dynamics()
    assert (u.D.shape, d.P.shape) == ((*batch, 3, 1, 1, 1), (*batch, 1, 1, 1))
    for index in np.ndindex(batch):
        alone = m.at(angles[index])
        assert np.abs(u.D[index] - alone.coefficients(tip, order=3).D).max() < 1e-11 * np.abs(u.D).max()
        assert mismatch(d.I[index], alone.dynamics().I) < 1e-12


# --- what each is for


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


def test_the_output_rests() -> None:
    """Within 0.1 degrees for a quarter turn of the crank, of 69 degrees in all; the tip by inscribed angles."""
    m, c, A = turn("stephenson-six-bar")
    # crank pin, rocker's pivot and tip lie on a circle of 0.25 m about C, pin and tip 60 degrees of it apart
    pin, D = 0.1 * np.exp(1j * A), 0.2
    half = np.arcsin(np.abs(pin - D) / 0.5)
    tip = D + 0.5 * np.sin(half + np.pi / 6) * np.exp(1j * np.pi / 6 * -1) * (pin - D) / np.abs(pin - D)
    found = c.value("tip")[:, :2] @ [1, 1j]
    assert np.abs(found - tip).max() < 1e-13
    # its curve is symmetric: opposite angles of the crank, mirrored in a line through D
    axis = np.exp(1j * (np.pi - np.pi / 6))
    assert np.abs((tip[0] - D) / axis - 0).max() > 0.1
    mirrored = m.path({"A": -A[::-1]}, near=led(m, -A[-1])).value("tip")[::-1, :2] @ [1, 1j]
    assert np.abs((mirrored - D) / axis - np.conj((tip - D) / axis)).max() < 1e-13
    G = np.degrees(c.value("G"))
    rest = np.abs((np.degrees(A) % 360) - 180) <= 45
    assert 0.08 < np.ptp(G[rest]) < 0.1
    assert 68 < np.ptp(G) < 69.5
    # where it turns back it drives nothing
    slope = c.coefficients("G").G.ravel()
    assert np.abs(slope[rest]).max() < 0.01 * np.abs(slope).max()
    k = np.flatnonzero(np.diff(np.sign(slope)) != 0)[0]
    with pytest.raises(kic.SingularError, match="Coordinates G cannot drive 'stephenson-six-bar' here"):
        stand_still(m, A[k], A[k + 1], member(c, k)).dynamics(wrt="G")


def stand_still(m: kic.Mechanism, low: float, high: float, near: Configuration) -> Configuration:
    """Where the output's rate vanishes between two angles of the crank."""
    from scipy.optimize import brentq

    rate = lambda a: m.at({"A": a}, near=near).coefficients("G").G[0, 0]  # noqa: E731
    return m.at({"A": brentq(rate, low, high, xtol=1e-15, rtol=1e-15)}, near=near)


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
        T, limit = T.reshape(len(C), 3), 1e-13 * np.abs(fast).reshape(len(C), -1).max(axis=1)
        assert (np.abs(T[:, 0]) < limit).all()
        assert (np.abs(T[:, 1] - along) < limit).all()
        assert not T[:, 2].any()
    # the line as the coordinate: C = 2 atan(y/x)
    back = c.coefficients("C", order=3, wrt="tracer.y")
    exact = 2 / (x * s), -4 * t / (x**2 * s**2), 4 * (3 * t * t - 1) / (x**3 * s**3)
    for T, along in zip(back.tensors, exact, strict=True):
        assert np.abs(T.ravel() - along).max() < 1e-11 * np.abs(along).max()
    # a force along the line is felt by the crank as much as the tracer moves
    pushed = m.at({"C": 0.5}).coefficients("tracer").G
    assert pushed[:, 0] @ [7.0, 2.0, 0.0] == pytest.approx(2 * x / 2 / np.cos(0.25) ** 2, rel=1e-12)


def test_where_the_rhombus_lies_flat() -> None:
    m, limit = kic.load("peaucellier"), 2 * np.arccos(0.22 / 0.325)
    assert m.at({"C": limit - 1e-4}).value("OP") == pytest.approx(0.22, abs=2e-5)
    with pytest.raises(kic.PostureError, match="'peaucellier' has no such posture near the start"):
        m.at({"C": limit + 1e-3})


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
    with pytest.raises(kic.PostureError, match="'jansen-leg' has no such posture near the start"):
        m.at({"foot.x": 0.0})


def around(m: kic.Mechanism, cut: str) -> set[str]:
    """The moving bodies of the loop that a cut joint closes."""
    pairs = [set(j.bodies) for j in m.joints if j.name not in m.cuts]
    one, two = next(j.bodies for j in m.joints if j.name == cut)
    ways = [[one]]
    while all(way[-1] != two for way in ways):
        ways = [[*w, b] for w in ways for pair in pairs if w[-1] in pair for b in pair - set(w)]
    return set(next(way for way in ways if way[-1] == two)) - {"ground"}


@pytest.mark.parametrize("name", ["peaucellier", "jansen-leg"])
def test_links_that_the_loops_share(name: str) -> None:
    """Three loops, and any two of them have a moving link in common."""
    m = kic.load(name)
    assert (m.freedoms, len(m.bodies), len(m.joints)) == (1, 7, 10)
    loops = [around(m, cut) for cut in m.cuts]
    assert len(loops) == 3
    assert all(one & two for one in loops for two in loops)
    assert set.union(*loops) == {b.name for b in m.bodies}
