"""Spins of rods between ball joints: found, held by universal joints, and left free where they do work."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from raising import refuses
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation

import kic

X, Y, Z = np.eye(3)
# moment of a rod about its line, relative to the others
THIN = 1e-8


def slender(mass: float, start: np.ndarray, end: np.ndarray) -> dict:
    """Return mass, centre and inertia of a slender rod.

    With a moment about its line it would turn a little as the universal joint demands.
    """
    d = end - start
    length2, u = d @ d, d / np.linalg.norm(d)
    moment = mass * length2 / 12
    inertia = moment * (np.eye(3) - np.outer(u, u)) + THIN * moment * np.outer(u, u)
    return {"mass": mass, "com": tuple((start + end) / 2), "inertia": (inertia + inertia.T) / 2}


class Rocker:
    """A crank, a rod between two balls and a rocker, at random places."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.axes = Rotation.random(2, rng=rng).as_matrix()[:, 2]
        self.pivots = np.array([[0.0, 0.0, 0.0], [0.5, 0.1, -0.1]]) + 0.1 * rng.normal(size=(2, 3))
        # arms perpendicular to the axes
        self.balls = np.array([p + 0.2 * np.linalg.qr(np.c_[a, rng.normal(size=3)])[0][:, 1]
                               for p, a in zip(self.pivots, self.axes, strict=True)])  # fmt: skip

    def hinge(self, k: int, body: str) -> kic.Joint:
        bodies = ("ground", f"{body} link")
        return kic.Joint(body, "revolute", bodies, at=tuple(self.pivots[k]), axis=tuple(self.axes[k]))

    def mechanism(self, closed: bool, **ball: object) -> kic.Mechanism:
        """Return the mechanism, with its second ball as a joint, or by `close_loops` of two points."""
        (p, q), (a, b) = self.pivots, self.balls
        joints = [
            self.hinge(0, "crank"),
            kic.Joint("first", "spherical", ("crank link", "rod"), at=tuple(a), **ball),
            self.hinge(1, "rocker"),
        ]
        second = kic.Joint("second", "spherical", ("rod", "rocker link"), at=tuple(b))
        points = [kic.Point("tip", "rod", tuple(b)), kic.Point("pin", "rocker link", tuple(b))]
        m = kic.Mechanism(
            "rocker",
            [
                kic.Body("crank link", **slender(0.3, p, a)),
                kic.Body("rod", **slender(0.1, a, b)),
                kic.Body("rocker link", **slender(0.4, q, b)),
            ],
            [*joints, second] if closed else joints,
            points=() if closed else points,
            gravity=(0, 0, -9.81),
        )
        return m

    def angle(self, crank: float) -> float:
        """Return the rocker's angle for one of the crank near 0, from the length of the rod."""

        def pin(k: int, angle: float) -> np.ndarray:
            turn = Rotation.from_rotvec(angle * self.axes[k])
            return self.pivots[k] + turn.apply(self.balls[k] - self.pivots[k])

        length = np.linalg.norm(self.balls[1] - self.balls[0])

        def gap(x: float) -> float:
            return float(np.linalg.norm(pin(1, x) - pin(0, crank)) - length)

        # the branch of the reference: the nearest root on either side
        grid = np.linspace(-1, 1, 401)
        signs = np.sign([gap(x) for x in grid])
        roots = [
            brentq(gap, grid[i], grid[i + 1], xtol=1e-15) for i in np.flatnonzero(signs[1:] != signs[:-1])
        ]
        return min(roots, key=abs)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("closed", [True, False])
def test_random_rods(seed: int, closed: bool) -> None:
    """The rocker is where the circles say; accelerations are those with the spin as a coordinate at rest."""
    robot = Rocker(seed)
    m = robot.mechanism(closed)
    if closed:
        free, held = m, m.hold_spins()
    else:
        loops = [("tip", "pin")]
        free, held = (m.close_loops(loops, spins=spins) for spins in ("free", "held"))
    assert (free.dof, held.dof) == (2, 1)
    assert held.mobility().passive_freedoms == ()
    names = {held["first"].type, held[held.joints[-1].name].type}
    assert names == {"universal", "spherical"}
    assert held["first"].type == "universal"
    crank = 0.02
    c = held.at({"crank": crank}, near=held.at())
    # the condition of the closure times the tolerance of brentq
    assert float(c.value("rocker")) == pytest.approx(robot.angle(crank), abs=1e-10)
    rates, effort = [0.7], 0.2
    spin = free.mobility().passive_freedoms[0]
    component = spin.coordinates[int(np.argmax(np.abs(spin.rates)))]
    wrt = ["crank", component]
    # the rate of the component at which the rod does not turn about itself
    line = robot.balls[1] - robot.balls[0]
    turn = line @ free.at().coefficients(["rod.wx", "rod.wy", "rod.wz"], order=1, wrt=wrt).G
    both = [*rates, -turn[0] / turn[1] * rates[0]]
    expected = free.at().dynamics(wrt=wrt).forward_dynamics(both, [effort, 0.0])[0]
    got = held.at().dynamics(wrt="crank").forward_dynamics(rates, [effort])[0]
    # the moment about the line takes part in one of them
    assert got == pytest.approx(expected, rel=100 * THIN)


@pytest.mark.parametrize("height", [0.0, 0.2, 0.6])
def test_full_turns(height: float) -> None:
    """The crank turns fully; its rod is never along an axis of the universal joint."""
    pivot, radius = np.array([0.4, 0.0, height]), 0.3
    start, end = np.array([0.08, 0.0, 0.0]), pivot + radius * Z
    m = kic.Mechanism(
        "rssr",
        [kic.Body("crank link"), kic.Body("rod"), kic.Body("rocker link")],
        [
            kic.Joint("crank", "revolute", ("ground", "crank link"), at=(0, 0, 0), axis=tuple(Z)),
            kic.Joint("first", "spherical", ("rod", "crank link"), at=tuple(start)),
            kic.Joint("rocker", "revolute", ("ground", "rocker link"), at=tuple(pivot), axis=tuple(Y)),
            kic.Joint("second", "spherical", ("rod", "rocker link"), at=tuple(end)),
        ],
    ).hold_spins()
    angles = np.linspace(0, 2 * np.pi, 73)
    c = m.path({"crank": angles}, near=m.at())
    pins = pivot + radius * np.stack([np.sin(b := c.value("rocker")), 0 * b, np.cos(b)], axis=-1)
    ends = 0.08 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    assert np.linalg.norm(pins - ends, axis=-1) == pytest.approx(np.linalg.norm(end - start), abs=1e-10)
    rod = np.swapaxes(c.pose("rod").rotation.as_matrix(), -1, -2)
    crank = np.swapaxes(c.pose("crank link").rotation.as_matrix(), -1, -2)
    # the rod's line in the crank, from the axis that it must not reach
    line = np.einsum("bij,bkj,k->bi", crank, rod, (end - start) / np.linalg.norm(end - start))
    assert np.abs(line @ np.array(m["first"].axis2)).max() < 0.9


def test_even_damping_stays() -> None:
    """The power of damping is that of the whole relative angular velocity, about all axes alike."""
    power = []
    for damping in (0.0, 0.3):
        m = Rocker(1).mechanism(True, damping=damping).hold_spins()
        c = m.at({"crank": 0.1}, near=m.at())
        power.append(2.0 * c.dynamics(wrt="crank").inverse_dynamics([2.0], [0.0])[0])
    rows = [f"{body}.w{axis}" for body in ("rod", "crank link") for axis in "xyz"]
    w = c.coefficients(rows, order=1, wrt="crank").G[:, 0] * 2.0
    assert power[1] - power[0] == pytest.approx(0.3 * ((w[:3] - w[3:]) ** 2).sum(), rel=1e-9)


def test_joints_that_cannot_hold() -> None:
    m = Rocker(2).mechanism(True, damping=(0.1, 0.2, 0.3))
    assert [j.type for j in m.hold_spins().joints] == ["revolute", "spherical", "revolute", "universal"]
    both = m.replace("second", armature=(0.1, 0.0, 0.0)).hold_spins()
    assert both.dof == 2
    assert "'rod' moves nothing else, but stays free: damping of 'first'" in both.remarks[0]
    # three axes with dry friction have another power than two
    rough = Rocker(2).mechanism(True, friction=0.1)
    assert rough.hold_spins()["second"].type == "universal"
    rough = rough.replace("second", friction=0.1).hold_spins()
    assert "friction of 'first' is given by axis; friction of 'second' is given by axis" in rough.remarks[0]
    # swing is a limit of both types of joints
    limited = Rocker(2).mechanism(True, swing=0.5, swing_axis=tuple(X)).hold_spins()
    first = limited["first"]
    assert (first.type, first.swing, first.swing_axis) == ("universal", 0.5, tuple(X))


def test_loads_beside_the_line() -> None:
    m = Rocker(3).mechanism(True)
    at = np.array(m["rod"].com)
    anchor = kic.Point("wall", "ground", (1.0, 1.0, 1.0))
    for beside, dof in ((0.0, 1), (0.1, 2)):
        point = kic.Point("eye", "rod", tuple(at + beside * np.cross(X, at)))
        spring = kic.Spring("spring", ("eye", "wall"), stiffness=1.0)
        made = m.add(point, anchor, spring).hold_spins()
        assert made.dof == dof
        assert ("'spring' acts off its axis" in made.remarks[0]) == (dof == 2)


def test_motions_that_are_no_spins() -> None:
    m = Rocker(4).mechanism(True)
    # a motor at the ball turns the rod
    assert m.replace(coordinates=None, actuators=["crank", "first.3"]).hold_spins().dof == 2
    # a body on two balls of the ground is a door
    door = [
        kic.Joint("low", "spherical", ("ground", "door"), at=(2, 0, 0)),
        kic.Joint("high", "spherical", ("ground", "door"), at=(2, 0, 1)),
    ]
    made = m.add(kic.Body("door"), *door).hold_spins()
    assert (made["low"].type, made["high"].type, made.dof) == ("spherical", "spherical", 2)
    # a rod with a tool on a hinge, which swings about the line of the balls
    tool = kic.Joint("knee", "revolute", ("rod", "tool"), at=tuple(m["first"].at), axis=tuple(X))
    assert m.add(kic.Body("tool"), tool).hold_spins().dof == 3
    # an open branch of balls
    tail = [
        kic.Joint("tail 1", "spherical", ("rocker link", "tail a"), at=(1, 1, 1)),
        kic.Joint("tail 2", "spherical", ("tail a", "tail b"), at=(1, 1, 2)),
    ]
    made = m.add(kic.Body("tail a"), kic.Body("tail b"), *tail).hold_spins()
    assert made.dof == 7


def test_pendulums_are_no_rods() -> None:
    """A body that swings by its weight about the hinge at its ball joint keeps this motion."""

    def double_pendulum(beside: float) -> kic.Mechanism:
        at = (0.5, 0.0, 0.0)
        joints = [
            kic.Joint("A", "revolute", ("ground", "upper"), at=(0, 0, 0), axis=(0, 1, 0)),
            kic.Joint("x", "prismatic", ("ground", "slide"), axis=(1, 0, 0)),
            kic.Joint("z", "prismatic", ("slide", "carrier"), axis=(0, 0, 1)),
            kic.Joint("B", "revolute", ("carrier", "lower"), at=at, axis=(0, 1, 0)),
            kic.Joint("pin", "spherical", ("upper", "lower"), at=at),
        ]
        slender = {"mass": 1.0, "inertia": (1 / 12, 1 / 12, 1 / 12)}
        bodies = [
            kic.Body("upper", com=(0.25, 0, 0), **slender),
            *(kic.Body(name, mass=0.0, inertia=0.0) for name in ("slide", "carrier")),
            kic.Body("lower", com=(0.5, 0.1, -beside), **slender),
        ]
        made = kic.Mechanism("double pendulum", bodies, joints, coordinates=["A", "B"])
        return made.hold_spins()

    assert double_pendulum(0.0).dof == 1
    made = double_pendulum(0.2)
    assert (made.dof, made["B"].type) == (2, "revolute")
    assert "stays free: its centre of mass is off the axis of 'B'" in made.remarks[0]


def test_a_large_tolerance_holds_no_crank() -> None:
    """A rocker whose ball is clearly beside its hinge moves, however rounded the loops are."""
    m = Rocker(0).mechanism(True)
    for tolerance in (0.0, 0.05):
        held = replace(m, closure_tolerance=tolerance).hold_spins()
        assert [j.type for j in held.joints] == ["revolute", "universal", "revolute", "spherical"]


def test_rods_in_a_row() -> None:
    """Each of two rods has its own universal joint, and none holds the spin of both."""
    m = Rocker(5).mechanism(True)
    a, b = Rocker(5).balls
    middle = (a + b) / 2 + 0.05 * np.cross(b - a, Z)
    joints = [j for j in m.joints if j.name != "second"]
    chain = kic.Mechanism(
        "row",
        [*m.bodies, kic.Body("other")],
        [
            *joints,
            kic.Joint("middle", "spherical", ("rod", "other"), at=tuple(middle)),
            kic.Joint("second", "spherical", ("other", "rocker link"), at=tuple(b)),
        ],
    )
    held = chain.hold_spins()
    assert held.dof == chain.dof - 2
    assert sum(j.type == "universal" for j in held.joints) == 2


def test_locks_and_copies() -> None:
    """Locks stay locks, and that of a hinge along the line is one, too."""
    rssr = kic.load("rssr")
    held = rssr.lock("crank").hold_spins()
    assert (held.dof, held.unlock("spin").dof, held.unlock("crank").dof, held.unlock().dof) == (0, 1, 1, 2)
    for m in (held.unlock("spin"), held.unlock(), rssr.hold_spins().unlock("spin").lock("crank")):
        assert not m.remarks
        assert "held" not in str(m.mobility())
    other = rssr.hold_spins().lock({"crank": 1.0})
    for m in (held, held.unlock("crank"), other, pickle.loads(pickle.dumps(held))):
        assert ["'coupler' by 'spin', now a fixed joint" in text for text in m.remarks] == [True]
        assert "held: 'coupler' by 'spin'" in str(m.mobility())
    m = Rocker(6).mechanism(True)
    assert pickle.loads(pickle.dumps(m.hold_spins())) == m.hold_spins()
    assert m.hold_spins().hold_spins().dof == 1
    assert Rocker(6).mechanism(False).hold_spins().remarks == ()


def test_what_is_said() -> None:
    m = Rocker(7).mechanism(True).replace(coordinates=["crank", "first.3"])
    refuses(lambda: m.at({"crank": 0.1}), text="`hold_spins()`")
    held = m.hold_spins()
    assert held.coordinates == ("crank",)
    assert "Spins that move nothing else are held: 'rod' by 'first', now a universal joint." in str(
        held.mobility()
    )


SDF = """<sdf version="1.9"><model name="rods"><static>false</static>
<link name="crank"><inertial><mass>1</mass></inertial></link>
<link name="rod"><pose>0.1 0 0 0 0 0</pose><inertial><mass>0.1</mass></inertial></link>
<link name="rocker"><pose>0.3 0 0 0 0 0</pose><inertial><mass>1</mass></inertial></link>
<joint name="A" type="revolute"><parent>world</parent><child>crank</child>
<axis><xyz>0 0 1</xyz></axis></joint>
<joint name="D" type="revolute"><parent>world</parent><child>rocker</child>
<axis><xyz>0 1 0</xyz></axis></joint>
<joint name="P" type="ball"><parent>crank</parent><child>rod</child></joint>
<joint name="S" type="ball"><pose>0 0 0.2 0 0 0</pose><parent>rod</parent><child>rocker</child></joint>
</model></sdf>"""


def test_readers() -> None:
    """Files with two balls at a rod have its spin only if it is wanted."""
    m = kic.from_sdf(SDF)
    assert (m.dof, m["P"].type) == (1, "universal")
    assert set(m.coordinates) <= {"A", "D"}
    (said,) = [remark for remark in m.remarks if "spins" in remark]
    assert "spins='free'" in said
    assert kic.from_sdf(SDF, spins="free").dof == 2
    assert kic.from_sdf(SDF, coordinates=["A", "P.3"]).dof == 2
    caught = refuses(lambda: kic.from_sdf(SDF, spins="none"))
    assert caught.numbers["key"] == "spins"


MJCF = """<mujoco model="rssr"><compiler angle="radian"/><worldbody>
<body name="crank"><joint name="crank" type="hinge" axis="0 0 1"/>
<inertial pos="0.05 0 0" mass="0.2" diaginertia="1e-5 2e-4 2e-4"/>
<body name="rod" pos="0.1 0 0"><joint name="rod" type="ball"/>
<inertial pos="0.1 0 0.1" mass="0.1" diaginertia="7e-4 7e-4 1e-5"/></body></body>
<body name="rocker" pos="0.3 0 0"><joint name="rocker" type="hinge" axis="0 1 0"/>
<inertial pos="0 0 0.1" mass="0.2" diaginertia="7e-4 7e-4 1e-5"/></body>
</worldbody><equality><connect body1="rod" body2="rocker" anchor="0.2 0 0.2"/></equality>
<actuator><motor joint="crank"/></actuator></mujoco>"""


def test_mjcf_moves() -> None:
    """A rod on a ball joint that a `connect` closes needs no edit in any function."""
    pytest.importorskip("mujoco", reason="MJCF needs mujoco")
    m = kic.from_mjcf(MJCF)
    assert m.coordinates == ("crank",)

    def gap(b: float) -> float:
        tip = np.array([0.3 + 0.2 * np.sin(b), 0.0, 0.2 * np.cos(b)])
        return float(np.linalg.norm(tip - 0.1 * np.array([np.cos(0.2), np.sin(0.2), 0])) - 0.2 * np.sqrt(2))

    expected = brentq(gap, -0.5, 0.5, xtol=1e-15)
    assert float(m.at({"crank": 0.2}).value("rocker")) == pytest.approx(expected, abs=1e-10)
    path = m.path({"crank": np.linspace(0, 0.2, 5)}).value("rocker")
    assert float(path[-1]) == pytest.approx(expected, abs=1e-10)
    assert m.simulate(0.05).t[-1] == 0.05
    assert m.lock("crank").dof == 0
    m.prepare.position()
    assert m.sweep({"crank": np.linspace(0, 0.2, 3)}, "transmission").shape == (3,)
    again = kic.from_mjcf(kic.to_mjcf(m))
    assert (again.dof, again.coordinates) == (1, ("crank",))
