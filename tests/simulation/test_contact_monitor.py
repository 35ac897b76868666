"""Contacts in runs: a run stops where feet slip or lift off, at times known in closed form."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from raising import raises
from scipy.optimize import brentq

import kic

G, LENGTH, MASS = 9.81, 1.2, 3.0


def standing_rod(mu: float, lean: float, planar: bool = True) -> kic.Mechanism:
    """A slender rod that stands on its foot and leans, in a plane."""
    tip = LENGTH * np.array([np.sin(lean), np.cos(lean), 0.0])
    inertia = MASS * LENGTH**2 / 12
    u = tip / LENGTH
    across = inertia * (np.eye(3) - np.outer(u, u)) + 1e-3 * np.outer(u, u)
    bodies = [kic.Body("rod", mass=MASS, com=tuple(tip / 2), inertia=across)]
    if planar:
        joints = [kic.Joint("P", "planar", ("ground", "rod"), at=(0, 0, 0), axis=(1, 0, 0), axis2=(0, 1, 0))]
        own = "P.3"
    else:  # carried along three axes by what has no mass, so that the foot could go any way
        at = ["ground", "cx", "cy", "cz", "rod"]
        bodies += [kic.Body(name, mass=0.0, com=(0, 0, 0), inertia=(0, 0, 0)) for name in at[1:4]]
        joints = [
            kic.Joint(x, "prismatic", pair, axis=tuple(np.eye(3)[k]))
            for k, (x, pair) in enumerate(zip("xyz", pairwise(at), strict=False))
        ]
        joints.append(kic.Joint("turn", "revolute", ("cz", "rod"), at=(0, 0, 0), axis=(0, 0, 1)))
        own = "turn"
    return kic.Mechanism(
        "standing rod",
        bodies,
        joints,
        points=[kic.Point("top", "rod", tuple(tip))],
        contacts=[
            kic.Contact("foot", "friction", ("rod", "ground"), (0, 0, 0), normal=(0, -1, 0), friction=mu)
        ],
        gravity=(0, -G, 0),
        coordinates=[own],
    )


def loads(angle: float, start: float) -> tuple[float, float]:
    """Forces along and across the normal on a rod that fell from rest, by energy and Newton's law."""
    rate2 = 3 * G / LENGTH * (np.cos(start) - np.cos(angle))
    acceleration = 3 * G / (2 * LENGTH) * np.sin(angle)
    half = MASS * LENGTH / 2
    normal = MASS * G - half * (acceleration * np.sin(angle) + rate2 * np.cos(angle))
    return normal, half * (acceleration * np.cos(angle) - rate2 * np.sin(angle))


def slip(mu: float, start: float) -> float:
    """The angle at which it slips first."""

    def left(angle: float) -> float:
        normal, across = loads(angle, start)
        return mu * normal - abs(across)

    angles = np.linspace(start, np.pi / 2, 4001)
    first = int(np.argmax(np.array([left(a) for a in angles]) < 0))
    return float(brentq(left, angles[first - 1], angles[first], xtol=1e-14))


@pytest.mark.parametrize("planar", [True, False], ids=["planar", "in space"])
@pytest.mark.parametrize("mu", [0.2, 0.9])  # it slips backwards, or later forwards
def test_falling_rod_slips(mu: float, planar: bool) -> None:
    start = 0.1
    m = standing_rod(mu, start, planar)
    run = m.simulate(2.0, near=m.at(), integrator=kic.Integrator(rtol=1e-11, atol=1e-11))
    assert run.stopped.startswith(f"stopped at t = {run.t[-1]:.9g}: contact 'foot' needs more friction than")
    top = run["top"][-1]
    angle = slip(mu, start)
    assert np.arctan2(top[0], top[1]) == pytest.approx(angle, abs=1e-7)
    # what it says is the force that presses it
    normal, _ = loads(angle, start)
    assert f"at a normal force of {normal:.3g}, and slips" in run.stopped
    assert np.abs(run.closure).max() < 1e-11
    # the forces in the joints are the same, at every moment, and possible all the way to the end
    c, qdd = run.configuration, run.qdd
    f = c.joint_forces(run.qd, qdd, wrt=run.coordinates)
    ways = [np.arctan2(x, y) for x, y, _ in run["top"]]
    known = np.array([loads(a, start) for a in ways])
    assert np.abs(-f["foot"].force[:, 1] - known[:, 0]).max() < 1e-7 * MASS * G
    assert f.feasible[:-1].all()
    assert not f.slipping[:-1].any()
    # knowingly held, it goes on; and can be continued from where it stopped
    held = m.simulate(run.t[-1] + np.array([0.0, 0.05]), near=run, integrator=kic.Integrator(contacts="hold"))
    assert not held.stopped
    after = held.configuration.joint_forces(held.qd, held.qdd, wrt=held.coordinates)
    assert not after.feasible[-1]
    at_once = m.simulate(held.t[-1] + np.array([0.0, 0.05]), near=held)
    assert at_once.stopped.startswith(f"stopped at t = {held.t[-1]:.9g}: contact 'foot' needs more")
    assert len(at_once.t) == len(held.t)


@pytest.mark.parametrize("planar", [True, False], ids=["planar", "in space"])
def test_joint_forces_flag_violated_contacts(planar: bool) -> None:
    """Joint forces match Newton's law for the center of the rod."""
    mu, lean = 0.5, 0.1
    c = standing_rod(mu, lean, planar).at()
    way = c.coefficients("rod", order=1).G[:2, 0]
    seen = set()
    for qdd in (0.0, -3.0, 30.0, 300.0, -300.0):
        f = c.joint_forces(None, [qdd])
        across, normal = MASS * (way * qdd + [0, G])
        pulls = normal < 0
        slips = not pulls and abs(across) > mu * normal
        assert (bool(f.pulling[0]), bool(f.slipping[0])) == (pulls, slips)
        assert bool(f.feasible) == (not pulls and not slips)
        assert len(f.remarks) == pulls + slips
        assert all(remark in str(f.summary()) for remark in f.remarks)
        seen.add((pulls, slips))
    assert len(seen) == 3
    batch = c.joint_forces(None, [[0.0], [300.0], [-300.0]])
    assert batch.contacts == ("foot",)
    assert batch.feasible.tolist() == [True, False, False]
    assert [remark[-19:] for remark in batch.remarks] == ["(in 1 of 3 members)"] * 2
    assert "would have to pull, by" in batch.remarks[0]
    assert "needs more friction than it has at a normal force of" in batch.remarks[1]


ROTOR, ARM, BLOCK, HIGH, FEET = 0.8, 0.25, 4.0, 0.3, 0.5


def shaken_block(mu: float) -> kic.Mechanism:
    """A block on two feet, with an unbalanced rotor: its feet press sideways as they like."""
    feet = [
        kic.Contact(name, "friction", ("block", "ground"), (x, 0, 0), normal=(0, -1, 0), friction=mu)
        for name, x in (("left", -FEET), ("right", FEET))
    ]
    return kic.Mechanism(
        "shaken block",
        [
            kic.Body("block", mass=BLOCK, com=(0, 0.2, 0), inertia=(1, 1, 1)),
            kic.Body("rotor", mass=ROTOR, com=(ARM, HIGH, 0), inertia=(0, 0, 0)),
        ],
        [
            kic.Joint("P", "planar", ("ground", "block"), at=(0, 0, 0), axis=(1, 0, 0), axis2=(0, 1, 0)),
            kic.Joint("R", "revolute", ("block", "rotor"), at=(0, HIGH, 0), axis=(0, 0, 1)),
        ],
        contacts=feet,
        gravity=(0, -G, 0),
        coordinates=["R"],
    )


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "why"), [(0.15, "slip"), (5.0, "lift")])
def test_redundant_contacts_hold_while_admissible_loads_exist(mu: float, why: str) -> None:
    """Both feet share the sideways load, so they slip at the same time."""
    m = shaken_block(mu)
    spin = 3.0  # rad/s²

    def turn(t: float) -> tuple[float, float, float]:
        return spin * t**2 / 2, spin * t, spin

    def limits(t: float) -> tuple[float, float, float]:
        angle, rate, second = turn(t)
        e, n = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        a = ARM * (second * n - rate**2 * e)
        across, normal = ROTOR * a[0], (BLOCK + ROTOR) * G + ROTOR * a[1]
        # moment about the origin of all that the feet give: F·0 + (x_r N_r + x_l N_l)
        r = np.array([ARM * e[0], HIGH + ARM * e[1]])
        moment = ROTOR * (r[0] * (a[1] + G) - r[1] * a[0])
        lean = moment / FEET
        return mu * normal - abs(across), (normal + lean) / 2, (normal - lean) / 2

    times = np.linspace(0, 6, 60001)
    table = np.array([limits(t) for t in times])
    first = int(np.argmax((table < 0).any(axis=1)))
    which = int(np.argmin(table[first]))
    assert (which == 0) == (why == "slip")
    when = brentq(lambda t: limits(t)[which], times[first - 1], times[first], xtol=1e-13)
    run = m.simulate(6.0, near=m.at(), prescribed={"R": turn})
    assert run.t[-1] == pytest.approx(when, abs=1e-6)
    if why == "slip":
        assert run.stopped.endswith(
            "this motion would require one of the contacts 'left', 'right' to pull or slip"
        )
        # of the smallest loads, which share it alike, one foot would have slipped before
        f = run.configuration.joint_forces(run.qd, run.qdd, criterion="minimum norm")
        assert not f.feasible[:-1].all()
        loose = run.configuration.joint_forces(run.qd, run.qdd)
        assert loose.feasible[:-2].all()
        assert not loose.slipping.any()  # none that is known
    else:
        foot = "right" if which == 1 else "left"
        assert f"contact '{foot}' would have to pull, by" in run.stopped
    hold = m.simulate(
        when + 0.1, near=m.at(), prescribed={"R": turn}, integrator=kic.Integrator(contacts="hold")
    )
    assert not hold.stopped


@pytest.mark.parametrize("inductance", [0.0, 2e-3])
def test_contact_loads_include_motor_torques(inductance: float) -> None:
    """A leg stretches its knee until the foot lifts off; the contact load is the rate of momentum."""
    motor = kic.Motor(
        "M",
        ["knee"],
        ratios=[12.0],
        inertia=3e-4,
        damping=1e-4,
        resistance=0.8,
        inductance=inductance,
        torque_constant=0.05,
    )
    m = kic.Mechanism(
        "hopper",
        [
            kic.Body("trunk", mass=2.0, com=(0, 0.7, 0), inertia=(1e-2, 1e-2, 1e-2)),
            kic.Body("thigh", mass=0.4, com=(0.15, 0.55, 0), inertia=(0, 4e-3, 4e-3)),
            kic.Body("shank", mass=0.3, com=(0.15, 0.2, 0), inertia=(0, 3e-3, 3e-3)),
        ],
        [
            kic.Joint("slide", "prismatic", ("ground", "trunk"), at=(0, 0.7, 0), axis=(0, 1, 0)),
            kic.Joint("hip", "revolute", ("trunk", "thigh"), at=(0, 0.7, 0), axis=(0, 0, 1)),
            kic.Joint("knee", "revolute", ("thigh", "shank"), at=(0.3, 0.4, 0), axis=(0, 0, 1)),
        ],
        contacts=[
            kic.Contact("foot", "friction", ("shank", "ground"), (0, 0, 0), normal=(0, -1, 0), friction=4.0)
        ],
        gravity=(0, -G, 0),
        motors=[motor],
        coordinates=["knee"],
    )
    run = m.simulate(3.0, near=m.at(), voltage=[14.0], integrator=kic.Integrator(rtol=1e-9, atol=1e-9))
    height = run.configuration.coefficients([f"{body.name}.y" for body in m.bodies])
    ways = height.acceleration(run.qd, run.qdd)
    normal = (ways + G) @ [body.mass for body in m.bodies]
    assert len(normal) > 10
    assert (normal > 0).all()
    # what it says is the force that presses the foot
    assert (
        f"contact 'foot' needs more friction than it has at a normal force of {normal[-1]:.3g}, and slips"
        in run.stopped
    )


@pytest.mark.slow
def test_frictionless_contacts_push_and_pins_pull() -> None:
    """The block on wheels, held sideways by a pin in one of them."""

    def turn(t: float) -> tuple[float, float, float]:
        return 5 * t**2, 10 * t, 10.0

    m = shaken_block(0.5)
    left, right = (replace(c, type="pinned", friction=None) for c in m.contacts)
    pinned = replace(m, contacts=[left, right])
    assert not pinned.simulate(2.0, near=pinned.at(), prescribed={"R": turn}).stopped
    wheel = replace(m, contacts=[left, replace(right, type="point")])
    run = wheel.simulate(2.0, near=wheel.at(), prescribed={"R": turn})
    assert "contact 'right' would have to pull, by" in run.stopped
    # the moment about the pin that is left to the wheel is none then
    last = run.configuration.joint_forces(run.qd, run.qdd)
    assert np.abs(last["right"].along([0, 1, 0])[0][-1]) < 1e-6
    assert (last["right"].along([0, -1, 0])[0][:-1] > 0).all()


def test_start_with_violated_contacts() -> None:
    m = standing_rod(0.3, 1.2)  # leans far: it slips at once
    run = m.simulate(1.0, near=m.at())
    assert run.t.tolist() == [0.0]
    assert run.stopped.startswith("stopped at t = 0: contact 'foot' needs more friction than it has at a")


def test_events_and_contact_violations_are_ordered() -> None:
    m = standing_rod(0.2, 0.1)
    free = m.simulate(2.0, near=m.at())
    middle = float(free.q[-1, 0] + free.q[0, 0]) / 2
    side = (-np.inf, middle) if free.q[-1, 0] > free.q[0, 0] else (middle, np.inf)
    limited = m.simulate(2.0, near=m.at(), limits={"P.3": side})
    assert "limit of P.3" in limited.stopped
    assert limited.t[-1] < free.t[-1]
    wide = tuple(3 * x for x in (-1.0, 1.0))
    assert m.simulate(2.0, near=m.at(), limits={"P.3": wide}).stopped == free.stopped


def test_invalid_arguments_raise() -> None:
    m = standing_rod(0.3, 0.1)
    with raises(kic.InputError, key="contacts"):
        m.simulate(1.0, near=m.at(), integrator=kic.Integrator(contacts="slide"))


def test_contact_loads_match_joint_forces_of_shipped_models() -> None:
    """Loads of the contact monitor equal those of the joint forces, where these are unique."""
    from kic.simulation.contact_monitor import ContactMonitor
    from kic.simulation.coordinates import Chart
    from kic.simulation.motion import Motion

    rng = np.random.default_rng(4)
    for name in ("three-finger-hand", "quadruped"):
        m = kic.load(name)
        c = m.at()
        M = len(c.coordinates)
        T, v = rng.normal(size=M), 0.3 * rng.normal(size=M)
        motion = Motion(m._model, c.coordinates, lambda t, now, T=T: T, {})
        chart = Chart(motion, c.coordinates, c.state, np.array([c.value(x) for x in c.coordinates]))
        y = chart.pack(c.state, v, np.zeros(3))
        load, play, _ = ContactMonitor(m._model, c.coordinates).loads(chart, 0.0, y)
        assert not play.size
        a = c.dynamics().forward_dynamics(v, T)
        f = c.joint_forces(v, a, actuators=c.coordinates)
        assert np.abs(load - f._contact_load).max() < 1e-9 * np.abs(load).max()
        assert np.abs(f.effort - T).max() < 1e-9 * np.abs(f.effort).max() + 1e-9
