"""Gears, belts, racks, differentials and rods, against closed forms and equivalent descriptions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from raising import raises
from sampling import agree, check_inertia, check_orders

import kic
from kic.kinematics.closure_rows import all_closure_rows
from kic.kinematics.items import heights
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.transfer.constraint_system import row_scales
from kic.transfer.coordinate_transfer import CoordinateTransfer

X, Y, Z = np.eye(3)


def body(name: str, at=(0, 0, 0), mass: float = 1.0, spin: float = 1.0) -> kic.Body:
    return kic.Body(name, mass=mass, com=at, inertia=(0.6 * spin, 0.7 * spin, spin))


def joint(
    name: str, kind: str, pair: tuple[str, str], at=(0, 0, 0), axis=Z, flip: int = 1, swap: bool = False
):
    """A joint drawn with its axis either way and its bodies in either order."""
    place = None if kind == "prismatic" else tuple(at)
    return kic.Joint(name, kind, pair[::-1] if swap else pair, place, tuple(flip * np.array(axis)))


def equal(a: kic.Dynamics, b: kic.Dynamics, limit: float = 1e-12) -> bool:
    """I*, P* and load alike; where P* vanishes, relative to I*."""
    size = max(np.abs(b.P).max(initial=0.0), np.abs(b.I).max(initial=0.0))
    return agree(a, b, ("I", "load"), limit) and bool(np.abs(a.P - b.P).max(initial=0.0) <= limit * size)


def linear(rows: list[str], columns: list[str], G: np.ndarray) -> kic.Coefficients:
    """Coefficients of coordinates that depend linearly on others."""
    p, m = np.shape(G)
    return kic.Coefficients(rows, columns, np.array(G, float), np.zeros((p, m, m)), np.zeros((p, m, m, m)))


# ------------------------------------------------------------------------------------- pairs of wheels

WAYS = list(product([1, -1], [1, -1], [False, True], [False, True]))
PAIRS = {
    # coupling, centre of the second, rate of the second about z for each of the first
    "gears": ({"gears": (20, 50)}, (0.7, 0, 0), -0.4),
    "ring": ({"gears": (20, -50)}, (-0.3, 0, 0), 0.4),
    "belt": ({"belt": (0.2, 0.5)}, (1.5, 0.1, 0), 0.4),
    "rolling outside": ({"pitch_point": (0.2, 0, 0.3)}, (0.7, 0, 0), -0.4),
    "rolling inside": ({"pitch_point": (0.2, 0, 0)}, (-0.3, 0, 0.2), 0.4),
}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", PAIRS)
def test_wheels_turn_as_wheels_do_however_they_are_drawn(kind: str, way) -> None:
    said, centre, rate = PAIRS[kind]
    flip, turn, swap, other = way
    m = kic.Mechanism(
        "pair",
        [body("a", spin=2.0), body("b", centre, spin=3.0)],
        [
            joint("A", "revolute", ("ground", "a"), flip=flip, swap=swap),
            replace(joint("B", "revolute", ("ground", "b"), centre, flip=turn, swap=other), value=0.3),
        ],
        couplings=[kic.Coupling("mesh", ("A", "B"), **said)],
        coordinates=["A"],
    )
    assert (m.dof, m.mobility().redundant, m.mobility().cuts) == (1, 0, ())
    c = m.at({"A": np.array([0.0, 2.0, -40.3])})
    u = c.coefficients(["a.wz", "b.wz", "B"], order=3)
    assert u.G[:, 1, 0] == pytest.approx(rate * u.G[:, 0, 0], abs=1e-14)
    assert np.abs(u.G[:, 0, 0]) == pytest.approx(1)
    assert not np.any(u.H)
    assert not np.any(u.D)
    assert c.value("B") == pytest.approx(0.3 + c.value("A") * u.G[0, 2, 0], abs=1e-12)
    d = c.dynamics()
    assert d.I[:, 0, 0] == pytest.approx(2 + 3 * rate**2, abs=1e-13)
    assert np.abs(d.P).max() < 1e-14
    assert c.dynamics(wrt="B").I[0, 0, 0] == pytest.approx(2 / rate**2 + 3, abs=1e-12)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_rack_and_pinion(way) -> None:
    """With the pitch line 0.25 below the pinion the rack moves with the lowest point of the pinion."""
    flip, turn, swap, other = way
    pin = joint("pinion", "revolute", ("ground", "wheel"), flip=flip, swap=swap)
    slide = joint("slide", "prismatic", ("ground", "rack"), axis=X, flip=turn, swap=other)
    rack = kic.Coupling("mesh", ("pinion", "slide"), pitch_point=(0, -0.25, 0))
    points = [kic.Point(f"on_{b}", b, (0, -0.25, 0)) for b in ("wheel", "rack")]
    bodies = [body("wheel", spin=0.5), body("rack", (0, -0.3, 0), mass=3.0)]
    m = kic.Mechanism("rack", bodies, [pin, slide], points=points, couplings=[rack], coordinates=["slide"])
    c = m.at({"slide": 0.0})
    on = c.coefficients(["on_wheel", "on_rack"], order=1)
    assert on.G[:3] == pytest.approx(on.G[3:], abs=1e-14)
    assert abs(on.G[0, 0]) == pytest.approx(1, abs=1e-14)
    assert m.at({"slide": [0.4]}).dynamics().I[0, 0, 0] == pytest.approx(3 + 0.5 / 0.25**2, abs=1e-12)
    ratio = c.coefficients("pinion").G[0, 0]
    # the same, written as a relation
    said = kic.Coupling("mesh", ("slide", "pinion"), ratios=(ratio, -1))
    e = replace(m, couplings=[said]).at({"slide": 0.4})
    assert agree(
        m.at({"slide": 0.4}).coefficients(["pinion", "on_wheel"], order=3),
        e.coefficients(["pinion", "on_wheel"], order=3),
    )


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_wheel_that_rolls_on_the_ground(way) -> None:
    """The carrier is the carriage; the rack is the ground, relative to it. The tyre's point stands still."""
    flip, turn, swap, other = way
    m = kic.Mechanism(
        "cart",
        [body("carriage"), body("wheel", spin=0.5)],
        [
            joint("go", "prismatic", ("ground", "carriage"), axis=X, flip=turn, swap=other),
            joint("roll", "revolute", ("carriage", "wheel"), flip=flip, swap=swap),
        ],
        points=[kic.Point("tyre", "wheel", (0, -0.3, 0))],
        couplings=[kic.Coupling("grip", ("roll", "go"), pitch_point=(0, -0.3, 0))],
        coordinates=["go"],
    )
    c = m.at({"go": 0.0})
    u = c.coefficients(["tyre", "carriage.x"], order=3)
    assert np.abs(u.G[:3]).max() < 1e-14
    # a cycloid rises from its cusp with the curvature 1/r
    assert u.H[:3, 0, 0] == pytest.approx([0, 1 / 0.3, 0], abs=1e-13)
    assert abs(u.D[0, 0, 0, 0]) == pytest.approx(1 / 0.3**2, rel=1e-13)
    assert c.dynamics().I[0, 0] == pytest.approx(2 + 0.5 / 0.3**2, abs=1e-12)


def test_bevel_gears() -> None:
    """Axes meet at the origin; at the pitch point both wheels go the same way."""
    at = (0.3, 0.4, 0.0)
    m = kic.Mechanism(
        "bevel",
        [body("a"), body("b")],
        [
            joint("A", "revolute", ("ground", "a"), axis=X),
            joint("B", "revolute", ("ground", "b"), axis=Y, flip=-1),
        ],
        points=[kic.Point("pa", "a", at), kic.Point("pb", "b", at)],
        couplings=[kic.Coupling("mesh", ("A", "B"), pitch_point=at)],
        coordinates=["A"],
    )
    u = m.at({"A": 0.0}).coefficients(["pa", "pb", "B"])
    assert u.G[:3] == pytest.approx(u.G[3:6], abs=1e-14)
    assert u.G[6, 0] == pytest.approx(0.4 / 0.3, abs=1e-14)


# ----------------------------------------------------------------------------------- trains and wrists


def planetary(zs: float = 24, zp: float = 18) -> kic.Mechanism:
    """Sun, arm and ring on one axis, all in ground; the planet in the arm."""
    zr = zs + 2 * zp
    return kic.Mechanism(
        "planetary",
        [body("sun_wheel"), body("carrier"), body("planet_wheel", (0.42, 0, 0)),
         body("ring_wheel", spin=4.0)],
        [
            joint("sun", "revolute", ("ground", "sun_wheel")),
            joint("arm", "revolute", ("ground", "carrier")),
            joint("planet", "revolute", ("carrier", "planet_wheel"), (0.42, 0, 0)),
            joint("ring", "revolute", ("ground", "ring_wheel")),
        ],
        points=[kic.Point("tooth", "planet_wheel", (0.6, 0, 0))],
        couplings=[
            kic.Coupling("inner", ("sun", "arm", "planet"), ratios=(zs, -zs, zp)),
            kic.Coupling("outer", ("planet", "ring", "arm"), ratios=(zp, -zr, zr)),
        ],
        gravity=(0, -9.81, 0),
        coordinates=["sun", "arm"],
    )  # fmt: skip


def test_planetary_gears_after_willis() -> None:
    m = planetary()
    assert m.dof == 2
    c = m.at({"sun": 1.0, "arm": -0.4})
    u = c.coefficients(["ring", "planet", "tooth"], order=3)
    # (ω_ring − ω_arm) / (ω_sun − ω_arm) = −z_sun / z_ring
    assert u.G[0] == pytest.approx([-24 / 60, 84 / 60], abs=1e-14)
    assert u.G[1] == pytest.approx([-24 / 18, 24 / 18], abs=1e-14)
    assert c.coefficients("sun", wrt=["ring", "arm"]).G[0] == pytest.approx([-2.5, 3.5], abs=1e-13)
    # the planet's tooth, opened and composed by hand
    free = replace(m, couplings=(), coordinates=None).at({j.name: c.value(j.name) for j in m.joints})
    chosen = linear(["sun", "arm", "planet", "ring"], ["sun", "arm"], [[1, 0], [0, 1], *u.G[[1, 0]]])
    assert agree(free.coefficients("tooth", order=3) @ chosen, c.coefficients("tooth", order=3))
    assert equal(free.dynamics().transfer(chosen), c.dynamics())


def test_the_same_gear_with_its_sun_in_the_arm_and_in_the_ground() -> None:
    """Drawn with a second bearing the sun closes a loop; meshing wheels then share their carrier."""
    m = planetary()
    inside = joint("inside", "revolute", ("sun_wheel", "carrier"))
    joints = [*m.joints, inside, joint("out", "revolute", ("carrier", "ring_wheel"))]
    meshes = [
        kic.Coupling("inner", ("inside", "planet"), gears=(24, 18)),
        kic.Coupling("outer", ("out", "planet"), gears=(-60, 18)),
    ]
    twice = replace(m, joints=joints, couplings=meshes)
    assert twice.dof == 2
    assert len(twice.mobility().cuts) == 2
    assert {"inside", "planet", "out"}.isdisjoint(twice.mobility().cuts)
    c, e = (x.at({"sun": 0.9, "arm": -0.4}) for x in (m, twice))
    of = ["ring", "planet", "tooth", "sun", "arm"]
    assert agree(e.coefficients(of, order=3), c.coefficients(of, order=3))
    assert equal(e.dynamics(), c.dynamics())


def two_link(**more) -> kic.Mechanism:
    return kic.Mechanism(
        "arm",
        [body("upper", (0.3, 0, 0)), body("fore", (0.9, 0.1, 0), 0.7), *more.pop("bodies", [])],
        [
            joint("shoulder", "revolute", ("ground", "upper")),
            joint("elbow", "revolute", ("upper", "fore"), (0.6, 0, 0)),
            *more.pop("joints", []),
        ],
        points=[kic.Point("tip", "fore", (1.2, 0.2, 0))],
        gravity=(0, -9.81, 0),
        **more,
    )


def test_an_arm_with_its_elbow_driven_by_a_belt_from_the_base() -> None:
    """A motor at the base turns the pulley; relative to the upper arm the forearm follows it."""
    arm = two_link()
    belted = two_link(
        bodies=[body("pulley", spin=0.2)],
        joints=[joint("motor", "revolute", ("ground", "pulley"))],
        couplings=[kic.Coupling("belt", ("motor", "shoulder", "elbow"), ratios=(0.05, -0.05, -0.08))],
        coordinates=["shoulder", "motor"],
    )
    k = 0.05 / 0.08
    c = belted.at({"shoulder": 0.4, "motor": 1.5})
    e = arm.at([0.4, k * 1.1])
    assert c.value("elbow") == pytest.approx(k * 1.1, abs=1e-14)
    chosen = linear(["shoulder", "elbow"], ["shoulder", "motor"], [[1, 0], [-k, k]])
    assert agree(e.coefficients(["tip", "fore"], order=3) @ chosen, c.coefficients(["tip", "fore"], order=3))
    by_hand, d = e.dynamics().transfer(chosen), c.dynamics()
    assert pytest.approx(np.diag([0, 0.2]) + by_hand.I, abs=1e-13) == d.I
    assert agree(d, by_hand, ["P", "load"])
    qd, qdd = np.array([0.7, -1.1]), np.array([0.3, 0.2])
    # the belt does no work of its own: motors give what the arm's joints and the pulley take
    given = d.inverse_dynamics(qd, qdd) @ qd
    rates, acc = chosen.G @ qd, chosen.G @ qdd
    assert given == pytest.approx(
        e.dynamics().inverse_dynamics(rates, acc) @ rates + 0.2 * qdd[1] * qd[1], abs=1e-12
    )


def test_differential_wrist() -> None:
    """Two wheels on the pitch axis drive a third between them: sum and difference, in three terms each."""
    h = 0.05
    plain = [
        joint("pitch", "revolute", ("ground", "yoke"), axis=Y),
        joint("roll", "revolute", ("yoke", "tool"), axis=X),
    ]
    bodies = [body("yoke", (0.1, 0, 0)), body("tool", (0.2, 0.03, 0.01), 0.5)]
    m = kic.Mechanism(
        "wrist",
        [*bodies, body("left", (0, -h, 0), spin=0.1), body("right", (0, h, 0), spin=0.1)],
        [*plain, *(joint(q, "revolute", ("ground", b), axis=Y) for q, b in (("a", "left"), ("b", "right")))],
        points=[kic.Point("tip", "tool", (0.3, 0.1, 0)),
         kic.Point("ta", "tool", (h, -h, 0)), kic.Point("tb", "tool", (h, h, 0)),
         kic.Point("pa", "left", (h, -h, 0)), kic.Point("pb", "right", (h, h, 0))],
        couplings=[kic.Coupling("sum", ("a", "b", "pitch"), ratios=(1, 1, -2)),
            kic.Coupling("difference", ("a", "b", "roll"), ratios=(1, -1, -2))],
        gravity=(0, 0, -9.81),
        coordinates=["a", "b"],
    )  # fmt: skip
    assert m.dof == 2
    drawn = m.at({"a": 0.0, "b": 0.0}).coefficients(["ta", "tb", "pa", "pb"])
    assert drawn.G[:6] == pytest.approx(drawn.G[6:], abs=1e-14)
    c = m.at({"a": 0.9, "b": -0.3})
    assert (c.value("pitch"), c.value("roll")) == pytest.approx((0.3, 0.6), abs=1e-14)
    chosen = linear(["pitch", "roll"], ["a", "b"], [[0.5, 0.5], [0.5, -0.5]])
    wrist = kic.Mechanism("wrist", bodies, plain, points=m.points[:1], gravity=m.gravity).at([0.3, 0.6])
    assert agree(
        wrist.coefficients(["tip", "tool"], order=3) @ chosen, c.coefficients(["tip", "tool"], order=3)
    )
    by_hand = wrist.dynamics().transfer(chosen)
    # wheels about y: 0.7 of their spin
    assert pytest.approx(0.07 * np.eye(2) + by_hand.I, abs=1e-13) == c.dynamics().I
    assert agree(c.dynamics(), by_hand, ["P", "load"])


# ------------------------------------------------------------------------------------ geared five-bar

OF = ["tip", "rod1", "rod2", "B", "C", "D", "E", "large_wheel.angle"]
GEARED = kic.load("geared-five-bar")


@pytest.mark.parametrize("turn", [0.3, 2.0, 9.0, -4.0])
def test_a_five_bar_whose_cranks_are_geared(turn: float) -> None:
    """The five-bar without its gears, in both cranks, composed with their relation."""
    assert GEARED.dof == 1
    start = GEARED.at().value("A")
    c = GEARED.at({"A": start + turn})
    assert c.value("E") == pytest.approx(start - turn / 2, abs=1e-13)
    free = replace(GEARED, couplings=(), coordinates=["A", "E"])
    e = free.at({"A": c.value("A"), "E": c.value("E")}, near=free.at())
    chosen = linear(["A", "E"], ["A"], [[1], [-0.5]])
    composed, asked = e.coefficients(OF, order=3) @ chosen, c.coefficients(OF, order=3)
    assert e.value("tip") == pytest.approx(c.value("tip"), abs=1e-13)
    assert agree(composed, asked)
    assert equal(e.dynamics().transfer(chosen), c.dynamics())
    for wrt in ("E", "tip.x", "C"):
        map = c.coefficients("A", order=3, wrt=wrt)
        assert agree(asked @ map, c.coefficients(OF, order=3, wrt=wrt))
        assert equal(c.dynamics().transfer(map), c.dynamics(wrt=wrt))


def test_the_curve_closes_after_two_turns_of_the_small_wheel() -> None:
    c = GEARED.at({"A": GEARED.at().value("A") + 2 * np.pi * np.array([0, 1, 2])})
    tip = c.value("tip")
    assert tip[2] == pytest.approx(tip[0], abs=1e-12)
    assert np.linalg.norm(tip[1] - tip[0]) > 0.05


@pytest.mark.parametrize(
    "other",
    [
        {"coordinates": ["D"]},
        {"joints": GEARED.joints[::-1]},
        {"couplings": [kic.Coupling("mesh", ("E", "A"), pitch_point=(0.1, 0, 0))]},
        {"couplings": [kic.Coupling("mesh", ("E", "A"), ratios=(2, 1))]},
        {"couplings": [*GEARED.couplings, kic.Coupling("again", ("A", "E"), ratios=(-1, -2))]},
        {"joints": [replace(j, bodies=j.bodies[::-1], axis=(0, 0, -3)) for j in GEARED.joints]},
    ],
    ids=["named", "order", "pitch point", "ratios", "twice", "turned"],
)  # fmt: skip
def test_reference_configuration_is_arbitrary(other: dict) -> None:
    m = replace(GEARED, **other)
    assert {"A", "E"}.isdisjoint(m.mobility().cuts)
    c, e = (x.at({"tip.x": 0.25}) for x in (GEARED, m))
    of = ["tip", "A", "D", "rod2"]
    assert agree(e.coefficients(of, order=3, wrt="A"), c.coefficients(of, order=3, wrt="A"))
    assert equal(e.dynamics(wrt="A"), c.dynamics(wrt="A"))


def test_named_coordinates_may_be_cut_in_favour_of_coupled_ones() -> None:
    """Angles of a loop add up, so that a relation of four of them is one of the other."""
    four = kic.Coupling("k", ("A", "B", "C", "E"), ratios=(1, 1, 1, -3))
    m = replace(GEARED, couplings=[four], coordinates=["D"])
    assert m.mobility().cuts == ("D",)
    # A + B + C + D = E, each from the drawing: −D − 2 E = 0
    two = replace(m, couplings=[kic.Coupling("k", ("D", "E"), ratios=(1, 2))])
    assert "D" not in two.mobility().cuts
    c, e = (x.at({"D": -0.2}) for x in (m, two))
    assert agree(c.coefficients(OF, order=3), e.coefficients(OF, order=3))
    assert equal(c.dynamics(), e.dynamics())


# ------------------------------------------------------------------------------------------- rods


def hinged(rod: bool) -> kic.Mechanism:
    """A four-bar whose coupler is a massless body between revolutes, or a distance."""
    b, c = (0.3, 0.9, 0.0), (1.9, 1.4, 0.0)
    bodies = [body("crank", (0.1, 0.5, 0)), body("rocker", (2, 0.7, 0))]
    joints = [
        joint("A", "revolute", ("ground", "crank")),
        joint("D", "revolute", ("ground", "rocker"), (2.2, 0, 0)),
    ]
    points = [
        kic.Point("B", "crank", b),
        kic.Point("C", "rocker", c),
        kic.Point("tip", "rocker", (2.5, 2, 0.3)),
    ]
    more = {}
    if rod:
        more["distances"] = [kic.Distance("rod", ("B", "C"), fixed=True)]
    else:
        bodies.append(kic.Body("coupler", mass=0.0, com=b, inertia=(0, 0, 0)))
        joints += [
            joint("b", "revolute", ("crank", "coupler"), b),
            joint("c", "revolute", ("coupler", "rocker"), c),
        ]
    return kic.Mechanism(
        "hinged", bodies, joints, points=points, gravity=(0, -9.81, 0), coordinates=["A"], **more
    )


@pytest.mark.parametrize("angle", [0.0, 0.4, -1.2])
def test_a_rod_is_a_coupler_between_hinges(angle: float) -> None:
    rod, hinge = hinged(True), hinged(False)
    assert (rod.dof, rod.mobility().redundant, rod.mobility().cuts) == (1, 0, ())
    c, e = rod.at({"A": angle}), hinge.at({"A": angle})
    assert c.value("rod") == pytest.approx(np.hypot(1.6, 0.5), abs=1e-13)
    of = ["tip", "rocker", "D", "B"]
    for wrt in ("A", "D", "tip.y"):
        assert agree(c.coefficients(of, order=3, wrt=wrt), e.coefficients(of, order=3, wrt=wrt))
        assert equal(c.dynamics(wrt=wrt), e.dynamics(wrt=wrt))
    u = c.coefficients("rod", order=3)
    assert max(np.abs(x).max() for x in u.tensors) < 1e-12


FEET = [(1.0, 0.1, 0), (0.9, 0.4, 0), (-0.4, 1.1, 0.1), (-0.8, 0.7, 0), (-0.7, -0.8, 0), (0.2, -1, 0)]
HEADS = [(0.8, 0.5, 1), (0.3, 0.8, 1.1), (-0.2, 0.9, 1), (-0.9, -0.1, 1), (-0.8, -0.3, 1.2), (0.6, -0.5, 1)]


def truss(fixed: int, solid: bool = False) -> kic.Mechanism:
    """A free body on six legs, of which the first so many are rods, or bodies with a ball at either end."""
    points = [kic.Point(f"f{k}", "ground", p) for k, p in enumerate(FEET)]
    points += [kic.Point(f"h{k}", "top", p) for k, p in enumerate(HEADS)]
    points.append(kic.Point("eye", "top", (0.3, 0.2, 1.5)))
    bodies, joints, legs = (
        [body("top", (0.1, 0, 1.1), 2.0)],
        [kic.Joint("hold", "free", ("ground", "top"), (0, 0, 1))],
        [],
    )
    for k in range(6):
        if k < fixed and solid:
            bodies.append(kic.Body(f"leg{k}", mass=0.0, com=FEET[k], inertia=(0, 0, 0)))
            along = np.subtract(HEADS[k], FEET[k])
            first = np.cross(along, X + Y)
            joints.append(
                kic.Joint(
                    f"u{k}",
                    "universal",
                    ("ground", f"leg{k}"),
                    FEET[k],
                    tuple(first),
                    axis2=tuple(np.cross(along, first)),
                )
            )
            joints.append(kic.Joint(f"s{k}", "spherical", (f"leg{k}", "top"), HEADS[k]))
        else:
            legs.append(kic.Distance(f"d{k}", (f"f{k}", f"h{k}"), fixed=k < fixed))
    rest = [f"hold.{k}" for k in (3, 1, 2)][: 6 - fixed]
    return kic.Mechanism(
        "truss", bodies, joints, points=points, distances=legs, gravity=(0, 0, -9.81), coordinates=rest
    )


def test_six_rods_hold_a_body() -> None:
    m = truss(6)
    assert (m.dof, m.mobility().redundant, m.mobility().regular) == (0, 0, True)
    c = m.at({})
    assert c.value("eye") == pytest.approx([0.3, 0.2, 1.5], abs=1e-13)
    assert c.coefficients("eye", order=3).G.shape == (3, 0)
    assert c.dynamics().I.shape == (0, 0)


@pytest.mark.parametrize("fixed", [3, 4, 5])
def test_rods_are_legs_with_a_ball_at_either_end(fixed: int) -> None:
    rods, legs = truss(fixed), truss(fixed, solid=True)
    assert rods.dof == legs.dof == 6 - fixed
    free = [f"d{k}" for k in range(fixed, 6)]
    goal = {name: rods.at().value(name) * 1.03 for name in free}
    c, e = rods.at(goal), legs.at(goal)
    of = ["eye", "top", *free]
    for k in range(fixed):
        assert c.value(f"d{k}") == pytest.approx(rods.at().value(f"d{k}"), abs=1e-13)
    assert e.value("eye") == pytest.approx(c.value("eye"), abs=1e-12)
    assert agree(e.coefficients(of, order=3, wrt=free), c.coefficients(of, order=3, wrt=free))
    assert equal(e.dynamics(wrt=free), c.dynamics(wrt=free))


@pytest.mark.parametrize("m", [planetary(), GEARED, hinged(True)], ids=lambda m: m.name)
def test_orders_by_complex_step(m: kic.Mechanism) -> None:
    c = m.at({q: m.at().value(q) + 0.2 for q in m.coordinates})
    check_orders(c, [p.name for p in m.points] + [b.name for b in m.bodies])
    check_inertia(c)


def test_the_row_of_a_coupling() -> None:
    """Σ ratio (φ − drawn) and its ratios, also contracted and in complex numbers; scaled by its largest."""
    slide = joint("s", "prismatic", ("g", "t"), axis=Y)
    m = two_link(
        bodies=[body("g"), body("t")],
        joints=[replace(joint("r", "revolute", ("ground", "g")), value=0.4), replace(slide, value=-0.2)],
        couplings=[kic.Coupling("k", ("s", "elbow", "r"), ratios=(3.0, -0.5, 2.0))],
        coordinates=["shoulder", "r", "s"],
    )
    tree = m._model.tree
    items, owners, offsets = all_closure_rows(tree)
    assert (owners, offsets, heights(items)) == (["k"], (), [0, 0, 1])
    assert row_scales(tree, plain_rows(tree, items), 5.0).tolist() == [15.0]
    n = [tree.column[q] for q in ("s", "elbow", "r")]
    states = np.random.default_rng(1).normal(size=(4, tree.size)) + 0.3j
    rows = plain_rows(tree, items)
    question = output_query(tree, rows, 3)
    value, G, H, D = question.arrays(states)
    assert np.abs(value[:, 0] - (states[:, n] - [-0.2, 0, 0.4]) @ [3, -0.5, 2]).max() < 1e-14
    assert (G[:, 0, n] == [3, -0.5, 2]).all()
    assert np.abs(G).sum() == 4 * 5.5
    assert not H.any()
    assert not D.any()


def test_rods_read_zero_when_closed() -> None:
    m = truss(5)
    transfer = CoordinateTransfer(m._model.tree, (), m._model.length)
    for state in (m._model.reference_state, m.at({"hold.3": 0.01})._states):
        values, _ = m._model.closure(()).rows(state)
        assert values.shape == (1, 5)
        assert np.abs(values).max() < 1e-14
    assert transfer.owners == [f"d{k}" for k in range(5)]


# ------------------------------------------------------------------------------------------- refusals

A, B = ("A", "B")
COUPLINGS = [
    ({"joints": "AB"}, "joints"),
    ({"joints": ("A",), "ratios": (1,)}, "joints"),
    ({"joints": ("A", 5)}, "joints"),
    ({"joints": ("A", "A")}, "joints"),
    ({}, "ratios"),
    ({"ratios": (1, 2), "belt": (1, 2)}, "belt"),
    ({"joints": ("A", "B", "C"), "gears": (1, 2)}, "joints"),
    ({"ratios": (1, 2, 3)}, "ratios"),
    ({"ratios": (1, 0)}, "ratios"),
    ({"ratios": (1, np.nan)}, "ratios"),
    ({"gears": 5}, "gears"),
    ({"belt": (1, -2)}, "belt"),
    ({"gears": (-1, -2)}, "gears"),
    ({"gears": (30, -20)}, "gears"),
    ({"gears": (-30, 30)}, "gears"),
    ({"pitch_point": (1, 2)}, "pitch_point"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "key"), COUPLINGS)
def test_invalid_couplings_raise(given: dict, key: str) -> None:
    with raises(kic.ModelError, key=key):
        kic.Coupling("k", **{"joints": ("A", "B"), **given})


def workshop(*couplings: kic.Coupling) -> kic.Mechanism:
    """One joint of each kind, most of them on ground."""
    kinds = {
        "R": ("revolute", {"axis": Z}), "R2": ("revolute", {"axis": Z, "at": (1, 0, 0)}),
        "RC": ("revolute", {"axis": -Z, "at": (0, 0, 1)}), "RX": ("revolute", {"axis": X, "at": (0, 1, 1)}),
        "P": ("prismatic", {"axis": X}), "C": ("cylindrical", {"axis": Z}), "S": ("spherical", {}),
        "U": ("universal", {"axis": X, "axis2": Y}), "F": ("free", {}), "X": ("fixed", {}),
    }  # fmt: skip
    joints = []
    for name, (kind, given) in kinds.items():
        at = None if kind in ("prismatic", "fixed") else given.pop("at", (0, 0, 0))
        joints.append(
            kic.Joint(name, kind, ("ground", f"b{name}"), at, **{k: tuple(v) for k, v in given.items()})
        )
    joints.append(kic.Joint("R3", "revolute", ("bR", "c"), (1, 1, 0), (0, 0, 1)))
    joints.append(kic.Joint("R4", "revolute", ("c", "d"), (1, 1, 0), (0, 0, 1)))
    joints.append(kic.Joint("twin", "revolute", ("ground", "bR"), (0, 0, 5), (0, 0, 1)))
    bodies = [kic.Body(name) for name in (*(f"b{name}" for name in kinds), "c", "d")]
    return kic.Mechanism("shop", bodies, joints, couplings=couplings)


REFUSED = [
    (("R", "Q"), {"ratios": (1, 1)}, {"key": "joints", "name": "Q"}),
    (("R", "X"), {"ratios": (1, 1)}, {"key": "joints", "name": "X"}),
    (("R", "S"), {"ratios": (1, 1)}, {"key": "joints", "name": "S"}),
    (("R", "C"), {"ratios": (1, 1)}, {"key": "joints", "name": "C"}),
    (("R", "F"), {"ratios": (1, 1)}, {"key": "joints", "name": "F"}),
    (("R", "S.2"), {"ratios": (1, 1)}, {"key": "joints", "name": "S.2"}),
    (("R", "F.4"), {"ratios": (1, 1)}, {"key": "joints", "name": "F.4"}),
    (("R", "R4"), {"gears": (1, 2)}, {"key": "joints", "names": ("R", "R4")}),
    (("R", "twin"), {"belt": (1, 2)}, {"key": "joints", "names": ("R", "twin")}),
    (("R", "P"), {"gears": (1, 2)}, {"key": "joints", "name": "P"}),
    (("C.1", "R"), {"belt": (1, 2)}, {"key": "joints", "name": "C"}),
    (("R", "RX"), {"gears": (1, 2)}, {"key": "gears", "cosine": pytest.approx(0.0, abs=1e-12)}),
    (("R", "RC"), {"gears": (1, 2)}, {"key": "joints", "names": ("R", "RC")}),
    (("R", "U.1"), {"pitch_point": (1, 1, 1)}, {"key": "joints", "name": "U"}),
    (("R", "R2"), {"pitch_point": (1, 0, 3)}, {"key": "pitch_point", "name": "R2"}),
    (
        ("R", "R2"),
        {"pitch_point": (0.5, 0.1, 0)},
        {"key": "pitch_point", "sine": pytest.approx(0.35, abs=0.05)},
    ),
    (("R", "P"), {"pitch_point": (0.5, 0, 0)}, {"key": "pitch_point", "sine": pytest.approx(1.0)}),
]


@pytest.mark.parametrize(("joints", "given", "data"), REFUSED)
def test_couplings_inconsistent_with_reference_configuration(joints, given: dict, data: dict) -> None:
    good = kic.Coupling("good", ("C.1", "F.2", "U.2"), ratios=(1, 2, 3))
    with raises(kic.ModelError, **{**data, "key": f"couplings[1].{data['key']}"}):
        workshop(good, kic.Coupling("k", joints, **given))


def test_joints_named_twice_by_other_names() -> None:
    with raises(kic.ModelError, key="joints"):
        workshop(kic.Coupling("k", ("C.1", "C.1"), ratios=(1, 2)))


def test_rods_that_cannot_be() -> None:
    m = hinged(True)
    twins = [*m.points, kic.Point("C2", "crank", (1.9, 1.4, 0)), kic.Point("B2", "crank", (1, 1, 1))]
    for pair, data in [
        (
            ("B", "B2"),
            {"key": "distances[0].fixed"},
        ),
        (
            ("C", "C2"),
            {"key": "distances[0].fixed"},
        ),
    ]:
        with raises(kic.ModelError, **data) as caught:
            replace(m, points=twins, distances=[kic.Distance("rod", pair, fixed=True)])
        assert caught.value.key == "distances[0].fixed"
        replace(m, points=twins, distances=[kic.Distance("rod", pair)])
    for question in (lambda: m.at({"rod": 1.0}), lambda: m.at().dynamics(wrt="rod")):
        with raises(kic.InputError, name="rod"):
            question()
    # out of reach: the rod does not give
    with raises(kic.ConfigurationError, failed=[()]):
        m.at({"A": np.pi - np.arctan2(3, 1)})


def test_couplings_of_arms_from_dh_rows(tmp_path) -> None:
    """A belt turns the second joint of an arm from DH rows back by the angle of the first."""
    file = tmp_path / "arm.toml"
    file.write_text(
        'name = "scara"\ncoordinates = ["one"]\n'
        'couplings = [{name = "belt", joints = ["one", "two"], ratios = [1, 1]}]\n'
        "[dh]\nconvention = 'standard'\n"
        'rows = [{joint = "one", body = "a", a = 0.3}, {joint = "two", body = "b", a = 0.2}]\n',
        encoding="utf-8",
    )
    m = kic.load(file)
    assert m.dof == 1
    assert m.at({"one": 0.7}).value("two") == pytest.approx(-0.7, abs=1e-14)
    file.write_text(file.read_text(encoding="utf-8").replace("[1, 1]", "[1, 0]"), encoding="utf-8")
    with raises(kic.ModelFileError, key="couplings[0].ratios") as e:
        kic.load(file)
    assert e.value.key == "couplings[0].ratios"


FILES = [
    ("ratios = 'x'", "couplings[0].ratios", "must be a list of numbers, got 'x'"),
    ("ratios = [1, true]", "couplings[0].ratios", "must be a list of numbers, got [1, True]"),
    ("gears = [1]", "couplings[0].gears", "must be two numbers, got [1]"),
    ("belt = [1, 2, 3]", "couplings[0].belt", "must be two numbers, got [1, 2, 3]"),
    ("pitch_point = 5", "couplings[0].pitch_point", "must be three numbers, got 5"),
    ("teeth = [1, 2]", "couplings[0].teeth", "Keys here: name, joints, ratios, gears, belt, pitch"),
    ("", "couplings[0].ratios", "exactly one of ratios, gears, belt, pitch_point must be given, got none"),
    ("gears = [5, 5]\n[[distances]]\nname = 'd'\npoints = ['tip', 'tip']\nfixed = 1", "distances[0].fixed",
        "must be true or false, got 1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "rule"), FILES)
def test_invalid_files_raise(text: str, key: str, rule: str, tmp_path) -> None:
    head = """name = "m"
        bodies = [{name = "a"}, {name = "b"}]
        joints = [{name="A", type="revolute", bodies=["ground", "a"], at=[0, 0, 0], axis=[0, 0, 1]},
                  {name="B", type="revolute", bodies=["ground", "b"], at=[1, 0, 0], axis=[0, 0, 1]}]
        """
    file = tmp_path / "m.toml"
    file.write_text(f"{head}\n[[couplings]]\nname = 'k'\njoints = ['A', 'B']\n{text}\n", encoding="utf-8")
    with pytest.raises(kic.ModelFileError) as caught:
        kic.load(file)
    assert caught.value.key == key
    assert f"{file}: {key}: " in str(caught.value)
    assert rule in str(caught.value)
