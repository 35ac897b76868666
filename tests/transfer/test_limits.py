"""Accuracy near the limits: units, mixed scales, dead centres, singular loops, open states.

Errors are measured against 60 digits and compared with eps·condition, which they must not exceed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from exact import Linkage, Platform, exact, inverse, rounded
from linkages import hinged, resized
from raising import raises
from sampling import mismatch
from scipy.optimize import brentq
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.mechanism.configuration import Configuration

EPS = np.finfo(float).eps


def condition(c: Configuration, *wrt: str) -> float:
    """Condition of the rows that are coordinates and those that close the loops."""
    closure = c._model.closure(wrt)
    return float(closure.condition(c._states).max())


def worst(found, right) -> np.ndarray:
    """Mismatch of each order."""
    return np.array([mismatch(a, rounded(b)) for a, b in zip(found, right, strict=True)])


# ------------------------------------------------------------------------------------------------- units


def lengths(m: kic.Mechanism, names) -> np.ndarray:
    """1 for rows that are lengths, 0 for angles."""
    slides = {j.name for j in m.joints if j.type == "prismatic"}
    return np.array([name in slides or name.endswith((".x", ".y", ".z")) for name in names], int)


def in_units(T: np.ndarray, *units: np.ndarray) -> np.ndarray:
    """A tensor divided along each of its last axes by the units there (a power of the scale)."""
    for axis, unit in enumerate(units, T.ndim - len(units)):
        T = T / unit.reshape(-1, *(1,) * (T.ndim - 1 - axis))
    return T


# a model, a move from its drawing, rows, and two sets of coordinates, angles and lengths among them
SIZED = {
    "gough-stewart": ((0.1, 0.15, -0.05, 0.0, 0.08, -0.1), "eye platform U1 S3 L2",
                      ("L1 L2 L3 L4 L5 L6", "eye.x eye.y eye.z L1 U3.1 L5")),
    "five-bar": ((0.3, 0.2), "tip coupler B C D", ("A E", "tip.x tip.y", "A tip.x")),
    "rssr": ((0.4, 0.2), "flag coupler rocker ball", ("crank spin", "crank flag.z")),
    "slider-crank": ((0.9,), "rod crown piston wristpin", ("shaft", "piston", "rod.angle")),
}  # fmt: skip


SCALES = [(length, mass) for length in (1e-6, 1e-3, 1e6) for mass in (1e-6, 1e6)]


@pytest.mark.parametrize(("length", "mass"), [*SCALES, (2.0**-20, 2.0**10)])
@pytest.mark.parametrize("name", SIZED)
def test_units_do_not_matter(name: str, length: float, mass: float) -> None:
    """Results, chosen rows and conditions are the same in all units; powers of two change no digit."""
    move, of, sets = SIZED[name]
    m = kic.load(name)
    other = resized(m, length, mass)
    assert (other.dof, other.mobility().redundant, other.mobility().cuts) == (
        m.dof,
        m.mobility().redundant,
        m.mobility().cuts,
    )
    q = np.array([m.at().value(x) for x in m.coordinates]) + move
    c, e = m.at(q), other.at(q * length ** lengths(m, m.coordinates))
    of = of.split()
    for wrt in (names.split() for names in sets):
        one, two = (x._model.transfer(tuple(wrt)) for x in (c, e))
        assert np.array_equal(one.choice, two.choice)
        worse = condition(c, *wrt)
        assert condition(e, *wrt) == pytest.approx(worse, rel=1e-9 * worse)
        a, b = c.coefficients(of, order=3, wrt=wrt), e.coefficients(of, order=3, wrt=wrt)
        rows, columns = (length ** -lengths(m, names).astype(float) for names in (a.rows, a.columns))
        limit = max(1e-12, 100 * EPS * worse)
        for k, (T, S) in enumerate(zip(a.tensors, b.tensors, strict=True), 1):
            found = in_units(S, 1 / rows, *[columns] * k)
            assert np.array_equal(found, T) if length == 2.0**-20 else mismatch(found, T) < limit
        p, r, work = c.dynamics(wrt=wrt), e.dynamics(wrt=wrt), np.array(mass * length**2)
        assert mismatch(in_units(r.I / work, columns, columns), p.I) < limit
        assert mismatch(in_units(r.P / work, columns, columns, columns), p.P) < limit
        # in five-bar there is no weight
        assert np.abs(in_units(r.load / work, columns) - p.load).max() <= limit * np.abs(p.load).max()


# ------------------------------------------------------------------------------------------ mixed scales


def two_loops(first: float, second: float) -> kic.Mechanism:
    """Two four-bars of different size; the rocker of the first is the crank of the second."""
    a = first * np.array([[-0.9, 0], [-0.9, 0.3], [-0.25, 0.65], [0, 0]])
    b = second * np.array([[0.2, 0.25], [0.95, 0.7], [0.9, 0]])
    pairs = ["ground crank", "crank coupler", "coupler rocker", "ground rocker",
             "rocker link", "link output", "ground output"]  # fmt: skip
    joints = [
        kic.Joint(name, "revolute", tuple(pair.split()), (*at, 0), (0, 0, 1))
        for name, pair, at in zip("ABCDEFG", pairs, np.concatenate([a, b]), strict=True)
    ]
    sizes = dict(crank=first, coupler=first, rocker=second, link=second, output=second)
    bodies = [kic.Body(n, mass=1.0, com=(0, 0, 0), inertia=(x**2, x**2, x**2)) for n, x in sizes.items()]
    points = [kic.Point("small", "coupler", (*a[2], 0)), kic.Point("large", "link", (*b[1], 0))]
    return kic.Mechanism("two loops", bodies, joints, points=points, coordinates=["A"])


def through(m: kic.Mechanism, c: Configuration) -> tuple[mp.mpf, np.ndarray]:
    """Exact turn of G, and its three derivatives by A: those of one four-bar after those of the other."""
    one, two = Linkage(m, "ABCD"), Linkage(m, "DEFG")
    x = one.closed(one.start(c), {0: mp.mpf(float(c.value("A")))})
    y = two.closed(two.start(c), {0: x[2]})
    (a, b, d), (A, B, D) = (
        [T[2].ravel()[0] for T in linkage.coefficients(z, [0])] for linkage, z in ((one, x), (two, y))
    )
    return y[2], rounded(np.array([A * a, B * a**2 + A * b, D * a**3 + 3 * B * a * b + A * d]))


@pytest.mark.slow_for("-0.5")
@pytest.mark.parametrize("sizes", [(5e-5, 50.0), (50.0, 50.0), (5e-5, 5e-5)], ids=str)
@pytest.mark.parametrize("A", [-0.5, 0.4])
def test_fifty_micrometres_and_fifty_metres(sizes: tuple[float, float], A: float) -> None:
    """A small loop drives a large one: each is measured by its own size, and nothing is lost."""
    m = two_loops(*sizes)
    assert (m.dof, m.mobility().redundant) == (1, 6)
    c = m.at({"A": A})
    turn, right = through(m, c)
    assert float(turn) == pytest.approx(c.value("G"), abs=1e-14)
    assert condition(c, "A") < 100
    found = np.array([T[1].ravel()[0] for T in c.coefficients(["D", "G"], order=3).tensors])
    assert np.abs(found / right - 1).max() < 1e-12
    # seen from the other end, from points of either size, and led there
    even = two_loops(1.0, 1.0).at({"A": A})
    for wrt in ("G", "small.x", "large.y"):
        assert condition(c, wrt) < 1.01 * condition(even, wrt)
        there, back = c.coefficients(wrt, order=3), c.coefficients("A", order=3, wrt=wrt)
        for T, one in zip((there @ back).tensors, (1, 0, 0), strict=True):
            assert abs(T.ravel()[0] - one) < 1e-11 * max(1, np.abs(back.G).max(), np.abs(back.D).max())
        again = m.at({wrt: c.value(wrt)}, near=m.at({"A": A - 0.1}))
        assert again.value("A") == pytest.approx(A, abs=1e-12 * condition(c, wrt))


@pytest.mark.parametrize("sizes", [(1.0, 1e-2), (1.0, 1e-4), (50.0, 5e-5)])
def test_a_large_loop_that_drives_a_small_one(sizes: tuple[float, float]) -> None:
    """Loops are cut so that each is walked by itself, and nothing is lost."""
    m = two_loops(*sizes)
    c = m.at({"A": 0.4})
    turn, right = through(m, c)
    assert condition(c, "A") < 100
    assert float(turn) == pytest.approx(c.value("G"), abs=1e-13)
    found = np.array([T[1].ravel()[0] for T in c.coefficients(["D", "G"], order=3, wrt="A").tensors])
    assert np.abs(found / right - 1).max() < 1e-12


@pytest.mark.parametrize("size", [1e-2, 1e-3, 1e-5])
def test_a_small_loop_far_out(size: float) -> None:
    """A four-bar at the end of a boom of ten metres: its places are known to the digits of the boom's."""
    at = size * np.array([[-0.9, 0, 0], [-0.9, 0.3, 0], [-0.25, 0.65, 0], [0, 0, 0]])
    names = ["boom", "crank", "coupler", "rocker"]

    def drawn(bodies: list[str], offset: float, boom: list[kic.Joint], keep: list[str]) -> kic.Mechanism:
        joints = [
            kic.Joint(
                "ABCD"[k], "revolute", (bodies[k], bodies[(k + 1) % 4]), at[k] + [offset, 0, 0], (0, 0, 1)
            )
            for k in range(4)
        ]
        return kic.Mechanism(
            "far", [kic.Body(b) for b in names if b in bodies], [*boom, *joints], coordinates=keep
        )

    hinge = kic.Joint("boom_", "revolute", ("ground", "boom"), (0, 0, 0), (0, 0, 1))
    far = drawn(names, 10.0, [hinge], ["boom_", "A"])
    near = drawn(["ground", *names[1:]], 0.0, [], ["A"])
    assert (far.dof, near.dof) == (2, 1)
    e = near.at({"A": 0.4})
    right = e.coefficients("D", order=3)
    for boom in (0.3, 2.0, -2.9):
        c = far.at({"boom_": boom, "A": 0.4})
        known = 100 * EPS * condition(e, "A") * max(1, 10 / size)
        assert abs(c.value("D") - e.value("D")) < known
        found = c.coefficients("D", order=3)
        for k, (T, S) in enumerate(zip(found.tensors, right.tensors, strict=True), 1):
            assert abs(T[(0, *(1,) * k)] / S.ravel()[0] - 1) < known
        # the boom does nothing to the loop
        assert np.abs(found.G[0, 0]) < known


def crank_and_arm(crank: float, arm: float) -> kic.Mechanism:
    """A slider-crank on the shaft of a four-bar of another size."""
    b = arm * np.array([[0, 0], [0.2, 0.25], [0.95, 0.7], [0.9, 0]])
    up, pin = crank * 3.0, crank * np.array([0.6, 0.8])
    slide = crank * 0.6 + np.sqrt(up**2 - (crank * 0.8) ** 2)
    joints = [
        kic.Joint("shaft", "revolute", ("ground", "crank"), (0, 0, 0), (0, 0, 1)),
        kic.Joint("pin", "revolute", ("crank", "rod"), (*pin, 0), (0, 0, 1)),
        kic.Joint("wrist", "revolute", ("rod", "piston"), (slide, 0, 0), (0, 0, 1)),
        kic.Joint("piston_", "prismatic", ("ground", "piston"), axis=(1, 0, 0), value=slide),
        kic.Joint("E", "revolute", ("crank", "link"), (*b[1], 0), (0, 0, 1)),
        kic.Joint("F", "revolute", ("link", "output"), (*b[2], 0), (0, 0, 1)),
        kic.Joint("G", "revolute", ("ground", "output"), (*b[3], 0), (0, 0, 1)),
    ]
    bodies = [kic.Body(name) for name in ("crank", "rod", "piston", "link", "output")]
    return kic.Mechanism("arm", bodies, joints, coordinates=["shaft"])


@pytest.mark.parametrize("keep", ["shaft", "piston_"])
@pytest.mark.parametrize(("crank", "arm"), [(5e-5, 50.0), (0.3, 0.5), (50.0, 5e-5)])
def test_sliders_of_any_size(crank: float, arm: float, keep: str) -> None:
    m = replace(crank_and_arm(crank, arm), coordinates=[keep])
    c = m.at({"shaft": 0.3})
    angle = mp.atan2(4, 3) + mp.mpf(0.3)

    def place(t):
        r = mp.mpf(crank)
        return r * mp.cos(t) + mp.sqrt(9 * r * r - (r * mp.sin(t)) ** 2)

    series = mp.taylor(place, angle, 3)
    assert c.value("piston_") == pytest.approx(float(series[0]), rel=1e-13)
    found = [T.ravel()[0] for T in c.coefficients("piston_", order=3, wrt="shaft").tensors]
    right = [float(k * x) for k, x in zip((1, 2, 6), series[1:], strict=True)]
    assert np.abs(np.array(found) / right - 1).max() < 1e-12 * max(1, 1e-2 * condition(c, "shaft"))
    assert condition(c, "shaft") < 1000
    back = c.coefficients(["shaft", "G"], order=3, wrt="piston_") @ c.coefficients(
        "piston_", order=3, wrt="shaft"
    )
    there = c.coefficients(["shaft", "G"], order=3, wrt="shaft")
    for T, S in zip(back.tensors, there.tensors, strict=True):
        assert mismatch(T, S) < 1e-11 if S.any() else np.abs(T).max() < 1e-11


# ------------------------------------------------------------------------------------------ dead centres

GAPS = 10.0 ** -np.arange(1, 14)


def four_bar_gap(gap: float) -> tuple[kic.Mechanism, Configuration]:
    """Crank and coupler in one line but for an angle of the crank; the rocker turns back there."""
    m = kic.load("four-bar")
    return m, m.at({"A": dead_angle() + gap})


@cache
def dead_angle() -> float:
    """Angle of the crank where it lies in one line with the coupler: a triangle of known sides."""
    c = kic.load("four-bar").at()
    A, B, C, D = (np.array(j.at) for j in c._model.description.joints)
    long, ground, rocker = (np.linalg.norm(x) for x in (B - A, D - A, D - C))
    long += np.linalg.norm(C - B)
    return float(np.arccos((long**2 + ground**2 - rocker**2) / (2 * long * ground)))


@pytest.mark.slow
def test_a_four_bar_towards_its_dead_centre() -> None:
    """In D, with A near where D turns back: relative errors of all orders are eps·condition, up to 1e12."""
    conditions, answered = [], 0
    for gap in GAPS:
        m, c = four_bar_gap(gap)
        linkage, worse = Linkage(m, "ABCD"), condition(c, "D")
        conditions.append(worse)
        if worse > 1e12:
            with raises(kic.SingularError, coordinates=("D",)) as caught:
                c.coefficients("B", order=3, wrt="D")
            assert 1e12 <= caught.value.condition < 10 * worse
        else:
            answered += 1
            held = mp.mpf(float(c.value("A"))) - mp.mpf(m.joints[0].value[0])
            x = linkage.closed(linkage.start(c), {0: held})
            turns = exact([[1, 0, 0], [-1, 1, 0]])
            right = [np.tensordot(turns, T, (1, 0)) for T in linkage.coefficients(x, [2])]
            found = c.coefficients(["A", "B"], order=3, wrt="D").tensors
            assert (worst(found, right) < 100 * EPS * worse).all()
        # another coordinate serves all along, and where both do they agree
        a = c.coefficients(["B", "D"], order=3, wrt="A")
        assert np.isfinite(a.D).all()
        if worse < 1e12:
            through_d = c.coefficients(["B", "D"], order=3, wrt="D") @ c.coefficients("D", order=3, wrt="A")
            # what was divided by a small rate is multiplied by it again, once for each order
            for k, (T, S) in enumerate(zip(through_d.tensors, a.tensors, strict=True), 1):
                assert mismatch(T, S) < 100 * EPS * worse**k
            moved, asked = c.dynamics().transfer(c.coefficients("A", order=2, wrt="D")), c.dynamics(wrt="D")
            for letter in ("I", "P", "load"):
                assert mismatch(getattr(moved, letter), getattr(asked, letter)) < 100 * EPS * worse
    assert answered == 10
    assert np.abs(np.diff(np.log10(conditions[1:])) - 1).max() < 0.05  # one over the gap


@pytest.mark.slow
@pytest.mark.parametrize("side", [1, -1])
def test_closing_towards_a_dead_centre(side: int) -> None:
    """D itself is the input: the configuration loses the condition's digits, coefficients twice as many."""
    m = kic.load("four-bar")
    linkage, drawn = Linkage(m, "ABCD"), m.joints[3].value[0]
    answered = 0
    for gap in 10.0 ** (-np.arange(1, 14) / 2):
        near = m.at({"A": dead_angle() + 1.5 * side * gap})
        wanted = float(m.at({"A": dead_angle() + side * gap}).value("D"))
        if condition(near, "D") > 1e6:
            with raises(kic.ConfigurationError, failed=[()]):
                m.at({"D": wanted}, near=near)
            continue
        answered += 1
        c = m.at({"D": wanted}, near=near)
        worse = condition(c, "D")
        x = linkage.closed(linkage.start(c), {2: mp.mpf(wanted) - mp.mpf(drawn)})
        assert np.abs(rounded(x) - linkage.start(c)).max() < 100 * EPS * worse
        turns = exact([[1, 0, 0], [-1, 1, 0]])
        # higher orders may raise beyond a condition of about 9e4
        order = 3 if worse < 2e5 else 1
        right = [np.tensordot(turns, T, (1, 0)) for T in linkage.coefficients(x, [2])][:order]
        found = c.coefficients(["A", "B"], order=order, wrt="D").tensors
        assert (worst(found, right) < 100 * EPS * worse**2).all()
    assert answered == 9


def test_a_slider_crank_towards_its_dead_centre() -> None:
    m = kic.load("slider-crank")
    A, B, C = (
        np.array(next(j.at for j in m.joints if j.name == n)) for n in ("shaft", "crankpin", "wristpin")
    )
    r, rod = (mp.sqrt(mp.fsum(mp.mpf(x) ** 2 for x in v)) for v in (B - A, C - B))
    for gap in GAPS:
        c = m.at({"shaft": gap})
        series = mp.taylor(lambda t: r * mp.cos(t) + mp.sqrt(rod**2 - (r * mp.sin(t)) ** 2), mp.mpf(gap), 3)
        g, h, d = (k * x for k, x in zip((1, 2, 6), series[1:], strict=True))
        right = [1 / g, -h / g**3, 3 * h**2 / g**5 - d / g**4]
        worse = condition(c, "piston")
        if worse > 1e12:
            with raises(kic.SingularError, coordinates=("piston",)):
                c.dynamics(wrt="piston")
            continue
        found = [T.ravel()[0] for T in c.coefficients("shaft", order=3, wrt="piston").tensors]
        for a, b in zip(found, right, strict=True):
            assert abs(a / float(b) - 1) < 100 * EPS * worse
    assert gap < 1e-12 < worse


def assert_agree(
    found: kic.Coefficients, between: kic.Coefficients, other: kic.Coefficients, worse: float
) -> None:
    """Coefficients in bad coordinates, put into good ones: as exact as their terms, large as those are."""
    trip = (found @ between).tensors
    for k, (T, S, large) in enumerate(zip(trip, other.tensors, found.tensors, strict=True), 1):
        terms = np.abs(large).max() * max(1, np.abs(between.G).max()) ** k
        assert np.abs(T - S).max() < 100 * EPS * worse * terms


@pytest.mark.slow
def test_a_five_bar_towards_aligned_links() -> None:
    """A and E cannot drive it where links B–C and C–D are in one line; A and C do."""
    m = kic.load("five-bar")
    linkage, drawn = Linkage(m, "ABCDE"), {j.name: mp.mpf(j.value[0]) for j in m.joints}
    c, answered = m.at(), 0
    # a configuration that can be stretched: the pins B and D at 48 in
    A = 2.2
    for gap in (1.0, 0.3, *GAPS):
        c = m.at({"A": A, "C": -gap}, near=c)
        worse = condition(c, "A", "E")
        if worse > 1e12:
            with raises(kic.SingularError, coordinates=("A", "E")) as caught:
                c.coefficients("tip", wrt=["A", "E"])
            assert any(set(names.split(", ")) & set("BCD") for names in caught.value.possible)
            continue
        answered += 1
        x, turn = exact(linkage.start(c)), mp.mpf(-gap) - drawn["C"]
        for _ in range(8):  # A and C held: bars 2 and 3 turn together
            x[0], x[2] = mp.mpf(A) - drawn["A"], x[1] + turn
            left, G, *_ = linkage.tensors(x)
            step = inverse(np.stack([G[:, 1] + G[:, 2], G[:, 3]], axis=1)) @ left
            x[[1, 2, 3]] = x[[1, 2, 3]] - step[[0, 0, 1]]
        turns = exact([[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1]])
        right = [np.tensordot(turns, T, (1, 0)) for T in linkage.coefficients(x, [0, 3])]
        found = c.coefficients(["B", "C", "D"], order=3, wrt=["A", "E"])
        assert (worst(found.tensors, right) < 100 * EPS * worse).all(), gap
        # what drives it there agrees where both do
        other = c.coefficients(["B", "C", "D"], order=3, wrt=["A", "C"])
        assert_agree(found, c.coefficients(["A", "E"], order=3, wrt=["A", "C"]), other, worse)
    assert answered > 8


LEGS = [f"L{k}" for k in range(1, 7)]


def turned(angle: float) -> RigidTransform:
    """The platform turned about the vertical, and a little aside."""
    return RigidTransform.from_components([0.02, 0.01, 0.05], Rotation.from_rotvec([0, 0, angle]))


@pytest.mark.slow
def test_a_platform_towards_a_singular_configuration() -> None:
    """Turned by a right angle its legs hold it no more: errors of the eye's motion, to third order."""
    m = kic.load("gough-stewart")
    platform = Platform(m)
    legs = lambda angle: rounded(platform.legs(turned(angle).as_matrix())[1])  # noqa: E731
    dead = brentq(lambda angle: np.linalg.det(legs(angle)), 1.4, 1.8, xtol=1e-15)
    assert dead == pytest.approx(np.pi / 2, abs=1e-12)
    near, conditions = m.at({"platform": turned(1.4)}, near=m.at({"platform": turned(0.7)})), []
    for gap in (0.3, *GAPS):
        c = m.at({"platform": turned(dead - gap)}, near=near)
        worse = condition(c, *LEGS)
        conditions.append(worse)
        if worse > 1e12:
            with raises(kic.SingularError, coordinates=tuple(LEGS)) as caught:
                c.coefficients("eye", order=3, wrt=LEGS)
            others = caught.value.possible[0].split(", ")
            assert np.isfinite(c.coefficients("eye", order=3, wrt=others).D).all()
            continue
        right = platform.eye_of_legs(turned(dead - gap).as_matrix())
        found = c.coefficients("eye", order=3, wrt=LEGS)
        assert (worst(found.tensors, right) < 100 * EPS * worse).all(), gap
        # its own motion serves all along
        own = c.coefficients([*LEGS, "eye"], order=3, wrt="platform")
        assert_agree(found, own[LEGS], own[["eye.x", "eye.y", "eye.z"]], worse)
    assert conditions[0] < 1e3
    assert conditions[-1] > 1e13


# ------------------------------------------------------------------------------- where several motions meet


def parallelogram(tilt: float) -> kic.Mechanism:
    """Flat at A = 0, where it may also turn over; A reads the angle from the tilted ground."""
    c, s = np.cos(tilt), np.sin(tilt)
    at = [(c * x - s * y, s * x + c * y, 0.0) for x, y in ((0, 0), (0.6, 0.8), (2.6, 0.8), (2, 0))]
    values = [float(np.arctan2(4, 3)), 0.0, 0.0, 0.0]
    tip = kic.Point("tip", "coupler", at[2])
    return hinged(at, bodies=("crank", "coupler", "rocker"), values=values, points=[tip])


def tip_or_reason(c: Configuration, order: int) -> tuple[np.ndarray | None, str]:
    """The tip's coefficients of an order, or why there are none."""
    try:
        return c.coefficients("tip", order=order).tensors[-1].ravel()[:2], ""
    except kic.SingularError as refused:
        return None, str(refused)


@pytest.mark.parametrize("tilt", [0.0, 0.3])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_towards_a_bifurcation(order: int, tilt: float) -> None:
    """Each order loses the digits of the closure once more, besides those of the solved configuration."""
    m, refused = parallelogram(tilt), []
    for gap in 10.0 ** -np.arange(0, 12.5, 0.5):
        c, angle = m.at({"A": gap}), gap + tilt
        right = np.array([np.cos(angle), np.sin(angle)])
        for _ in range(order):
            right = np.array([-right[1], right[0]])
        closing = c._model.closure(("A",)).rows(c._states)[1][0][1:]
        singular = np.linalg.svd(closing, compute_uv=False)
        condition = singular[0] / singular[1]
        bound = EPS * (100 * condition**order + 5 * condition ** (order + 1))
        found, reason = tip_or_reason(c, order)
        if found is not None:
            assert not refused
            assert np.abs(found - right).max() < min(bound, 1e-4)
            continue
        assert bound > 1e-6
        refused.append(gap)
        assert (
            f"order {order} may have a relative error of" in reason
            or "it has 2 degrees of freedom here" in reason
        )
    assert len(refused) > 5


def slider_crank_turning(piston: float, sign: int) -> tuple[mp.mpf, mp.mpf]:
    """Shaft angle and its derivative for a position of the piston, in 60 digits."""
    r, rod = mp.hypot(mp.mpf(0.03), mp.mpf(0.04)), mp.hypot(mp.mpf(0.228) - mp.mpf(0.03), mp.mpf(0.04))

    def angle(x: mp.mpf) -> mp.mpf:
        return sign * mp.acos((r**2 + x**2 - rod**2) / (2 * r * x))

    return angle(mp.mpf(piston)), mp.diff(angle, mp.mpf(piston), h=mp.mpf(10) ** -32)


def four_bar_turning(rocker: float, sign: int) -> tuple[mp.mpf, mp.mpf]:
    """Crank angle and its derivative for an angle of the rocker, in 60 digits."""
    pins = {j.name: [mp.mpf(x) for x in j.at[:2]] for j in kic.load("four-bar").joints}
    a, b, c = (mp.hypot(pins[p][0] - pins[q][0], pins[p][1] - pins[q][1]) for p, q in ("AB", "BC", "CD"))
    drawn = next(mp.mpf(j.value[0]) for j in kic.load("four-bar").joints if j.name == "D")
    first = mp.atan2(pins["C"][1] - pins["D"][1], pins["C"][0] - pins["D"][0])

    def angle(D: mp.mpf) -> mp.mpf:
        x = pins["D"][0] + c * mp.cos(first + D - drawn)
        y = pins["D"][1] + c * mp.sin(first + D - drawn)
        far = mp.hypot(x, y)
        return mp.atan2(y, x) + sign * mp.acos((a**2 + far**2 - b**2) / (2 * a * far))

    return angle(mp.mpf(rocker)), mp.diff(angle, mp.mpf(rocker), h=mp.mpf(10) ** -32)


@pytest.mark.parametrize(
    ("name", "crank", "slow", "turning", "exact_at"),
    [
        ("slider-crank", "shaft", "piston", 0.0, slider_crank_turning),
        ("four-bar", "A", "D", None, four_bar_turning),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_digits_near_a_turning_point(
    name: str,
    crank: str,
    slow: str,
    turning: float | None,
    exact_at: Callable[[float, int], tuple[mp.mpf, mp.mpf]],
    sign: int,
) -> None:
    """Errors relative to the requested value are below 5 ε κ², and below 1e-4 in every result."""
    m = kic.load(name)
    if turning is None:
        # crank and coupler are in line
        turning = brentq(lambda A: m.at({"A": A}).value("B").item(), 0.3, 1.2, xtol=1e-15)
    answered, refused = 0, 0
    for gap in 10.0 ** -np.arange(2, 12.5, 0.5):
        value = m.at({crank: turning + sign * gap}).value(slow).item()
        try:
            c = m.at({slow: value}, near=m.at({crank: turning + 1.5 * sign * gap}))
            found = c.coefficients(crank, order=1, wrt=slow)
        except (kic.SingularError, kic.ConfigurationError) as error:
            wrong = getattr(error, "estimate", 1.0)  # without one the coordinates cannot drive it at all
            assert (gap < 3e-5) & (wrong > 1e-4)
            refused += 1
            continue
        assert not refused
        G = exact_at(value, sign)[1]
        wrong = abs(float(mp.mpf(found.G.item()) / G - 1))
        assert wrong < min(1e-4, 5 * EPS * max(condition(c, slow), 1e3) ** 2)
        answered += 1
    assert answered >= 5
    assert refused >= 5


def test_members_near_a_bifurcation_are_named() -> None:
    m = parallelogram(0.3)
    c = m.at({"A": [[0.5, 1e-6], [0.4, 1e-5]]})
    with raises(kic.SingularError, order=3) as caught:
        c.coefficients("tip", order=3)
    assert caught.value.failed == [(0, 1), (1, 1)]
    assert 1e5 < caught.value.condition < 1e8
    with pytest.raises(kic.SingularError) as caught:
        c.coefficients("tip", order=1)
    assert caught.value.failed == [(0, 1)]
    masked = c.coefficients("tip", order=1, failures="mask")
    assert np.isfinite(masked.G[..., 0, 0]).tolist() == [[True, False], [True, True]]


# ---------------------------------------------------------------------------------------------- open states


@pytest.mark.parametrize("name", ["four-bar", "gough-stewart", "geared-five-bar", "five-rod-suspension"])
def test_states_are_checked(name: str) -> None:
    """Closed states have a condition; open ones are refused, with the joint that gapes and by how much."""
    m = kic.load(name)
    closure = m._model.closure(m.coordinates)
    move = 0.02 * np.random.default_rng(0).normal(size=(5, m.dof))
    c = m.at(np.array([m.at().value(q) for q in m.coordinates]) + move)
    found = closure.check(c.state)
    assert found.shape == (5,)
    assert (found >= 1).all()
    for k in range(5):
        G = closure.rows(c.state[[k]])[1][0]
        assert found[k] == pytest.approx(np.linalg.cond(G), rel=1e-9)
    # integrators leave a little
    closure.check(c.state + 1e-12)
    states = c.state
    states[3, -1] += 1e-3
    with raises(kic.InputError, failed=[3]) as caught:
        closure.check(states)
    assert caught.value.failed == [3]
    assert caught.value.joint in {*m.mobility().cuts, *m._fixed_distances, *(x.name for x in m.couplings)}
    assert 1e-5 < caught.value.residual < 1e-2
    with raises(kic.InputError, failed=[0]):
        closure.check(states[3:4])
    states[3] = np.nan
    found = closure.check(states)
    assert np.isnan(found).tolist() == [False, False, False, True, False]
    assert closure.check(states[:0]).shape == (0,)


def test_states_at_dead_centres_and_flipped_ones_raise() -> None:
    m = kic.load("slider-crank")
    states = np.stack([m.at({"shaft": x}).state for x in (0.5, 0.0)])
    closure = m._model.closure(("piston",))
    assert np.isfinite(m._model.closure(("shaft",)).check(states)).all()
    # a door on a ball and a hinge, turned over
    ball = kic.Joint("ball", "spherical", ("ground", "leaf"), at=(0, 0, 0))
    hinge = kic.Joint("hinge", "revolute", ("ground", "leaf"), at=(0, 0, 0), axis=(0, 0, 1))
    tip = kic.Point("tip", "leaf", (1, 0, 0.3))
    door = kic.Mechanism("door", [kic.Body("leaf")], [ball, hinge], points=[tip], coordinates=["ball"])
    closure = door._model.closure(("tip.y",))
    assert np.isfinite(closure.check(door.at().state[None])).all()
    with raises(kic.InputError, joint="hinge"):
        closure.check(np.array([[0.0, 1.0, 0.0, 0.0]]))


def test_states_of_rounded_linkages_are_closed_within_their_tolerance() -> None:
    m, rng = kic.load("four-bar"), np.random.default_rng(1)
    joints = [replace(j, axis=tuple(np.array(j.axis) + 1e-5 * rng.normal(size=3))) for j in m.joints]
    rough = replace(m, joints=joints, closure_tolerance=1e-4)
    state = rough.at({"A": 1.5}).state[None]
    assert rough._model.closure(("A",)).check(state)[0] < 100
    with raises(kic.InputError, joint="D"):
        replace(rough, closure_tolerance=0.0)._model.closure(()).check(state)
