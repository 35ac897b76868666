"""Forces in all joints: free-body equilibrium from scratch, printed tables, multipliers, other cuts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from closed_models import CASES, configuration, displaced
from documentation import BATCH, documented
from free_bodies import Motion, equilibrium_residual, placed, rotated
from raising import refuses
from representative_models import OTHER_MODELS
from sampling import mismatch, random_body, random_joint, random_posture, random_tree

import kic
from kic.mechanism.configuration import Configuration

PAGES = json.loads((Path(__file__).parents[2] / "data" / "appendix_c_e.json").read_text(encoding="utf-8"))
BAR = PAGES["five_bar"]
ARMS = ["horn-two-link", "puma560", "panda", "rrprrr", "twin-arm"]
C = ("fx", "fy", "fz", "mx", "my", "mz")
OUT_OF_PLANE = ("fz", "mx", "my")


def standing(name: str, place: int = 0) -> tuple[kic.Mechanism, Configuration]:
    """A shipped model at some configuration."""
    if name in CASES:
        return configuration(name, place)
    m, rng = kic.load(name), np.random.default_rng(place)
    return m, m.at(m.at()._phi + rng.normal(size=len(m.coordinates or m.at()._phi)) / 3)


def moving(c: Configuration, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(2, len(c.coordinates)))


def freedoms(c: Configuration, j: kic.Joint) -> np.ndarray:
    """Unit twists (velocity, angular velocity) of a joint's second body for each coordinate, (f, 6)."""
    first, second = j.bodies
    one, two = (np.array(a) / np.linalg.norm(a) if a else np.zeros(3) for a in (j.axis, j.axis2))
    a, b, none = rotated(c, first, one), rotated(c, first, two), np.zeros(3)
    x, y, z = (rotated(c, first, e) for e in np.eye(3))
    twists = {
        "fixed": [],
        "revolute": [(none, a)],
        "prismatic": [(a, none)],
        "cylindrical": [(none, a), (a, none)],
        "universal": [(none, a), (none, rotated(c, second, two))],
        "spherical": [(none, x), (none, y), (none, z)],
        "planar": [(a, none), (b, none), (none, np.cross(a, b))],
        "free": [(x, none), (y, none), (z, none), (none, x), (none, y), (none, z)],
    }[j.type]
    return np.array(twists).reshape(-1, 6)


def along_freedoms(c: Configuration, f: kic.results.JointForces, j: kic.Joint) -> np.ndarray:
    """Components of a joint's wrench along its degrees of freedom (f,), by `along`."""
    w = f[j.name]
    return np.array([w.along(t[:3])[0] if t[:3].any() else w.along(t[3:])[1] for t in freedoms(c, j)])


def open_by_hand(m: kic.Mechanism, c: Configuration, efforts: tuple[str, ...]) -> set[str]:
    """Components that equilibrium leaves open: six unknowns in each joint, and efforts in joints."""
    bodies, count = {b.name: i for i, b in enumerate(m.bodies)}, 6 * len(m.joints) + len(efforts)
    size = max(np.ptp([j.at for j in m.joints if j.at], axis=0)) if len(m.joints) > 1 else 1.0
    balance, frees = np.zeros((6 * len(bodies), count)), []
    for k, j in enumerate(m.joints):
        place = placed(c, j.bodies[1], j.at or (0, 0, 0)) / size
        wrench = np.eye(6)
        wrench[3:, :3] = np.cross(place, np.eye(3)).T  # moments about the origin: columns place × e
        for body, sign in zip(j.bodies, (-1, 1), strict=True):
            if body != "ground":
                i = 6 * bodies[body]
                balance[i : i + 6, 6 * k : 6 * k + 6] = sign * wrench
        for twist, component in zip(freedoms(c, j), j.components, strict=True):
            row = np.zeros(count)
            row[6 * k : 6 * k + 6] = twist
            if component in efforts:
                row[6 * len(m.joints) + efforts.index(component)] = -1
            frees.append(row)
    A = np.concatenate([balance, frees])
    _, s, V = np.linalg.svd(A)
    rank = int((s > 1e-9 * s[0]).sum())
    loose = np.linalg.norm(V[rank:], axis=0) > 1e-6
    names = [f"{j.name}.{x}" for j in m.joints for x in C] + list(efforts)
    return {name for name, is_loose in zip(names, loose, strict=True) if is_loose}


def unlike(f: kic.results.JointForces, g: kic.results.JointForces) -> float:
    """Largest difference of two results in any joint, relative to the largest force or moment."""
    six = [np.array([np.concatenate([x[j].force, x[j].moment]) for j in f.joints]) for x in (f, g)]
    assert (np.isnan(six[0]) == np.isnan(six[1])).all()
    return float(np.nanmax(np.abs(six[0] - six[1])) / np.nanmax(np.abs(six[1])))


everywhere = pytest.mark.parametrize(
    ("name", "place"), [(name, k) for name in (*CASES, *ARMS) for k in (0, 1)]
)


@pytest.mark.slow
@everywhere
def test_every_body_is_in_equilibrium(name: str, place: int) -> None:
    m, c = standing(name, place)
    for qd, qdd in ((0, 0), moving(c)):
        qd, qdd = np.broadcast_to(qd, len(c.coordinates)), np.broadcast_to(qdd, len(c.coordinates))
        f = c.joint_forces(qd, qdd, criterion="minimum norm")
        assert equilibrium_residual(m, c, f, qd, qdd) < 1e-12
        effort = c.dynamics().inverse_dynamics(qd, qdd)
        # an effort is a sum of forces times arms, which may cancel
        sizes = np.abs(effort), np.abs(f.moment), np.abs(f.force) * m._model.length
        assert np.abs(f.effort - effort).max() <= 1e-12 * max(size.max() for size in sizes)


@pytest.mark.slow_for(*OTHER_MODELS)
@everywhere
def test_undetermined_components_are_named(name: str, place: int) -> None:
    m, c = standing(name, place)
    qd, qdd = moving(c)
    f = c.joint_forces(qd, qdd, out_of_plane=True)
    split = c.joint_forces(qd, qdd, criterion="minimum norm", out_of_plane=True)
    assert set(f.undetermined) == open_by_hand(m, c, c.coordinates) == set(split.undetermined)
    assert bool(f.undetermined) == (name in (*PLANAR, "parallel-serial"))  # whose legs are planar
    for j in m.joints:
        six = np.concatenate([f[j.name].force, f[j.name].moment])
        whole = np.concatenate([split[j.name].force, split[j.name].moment])
        assert [f"{j.name}.{x}" in f.undetermined for x in C] == np.isnan(six).tolist()
        assert np.isfinite(whole).all()
        known = ~np.isnan(six)
        assert (six[known] == whole[known]).all()
    assert (f.effort == split.effort).all()


PLANAR = (
    "four-bar", "slider-crank", "five-bar", "three-legged-robot", "ladder", "watt-parallel-motion",
    "stephenson-six-bar", "peaucellier", "jansen-leg", "three-rrr", "six-freedom-planar",
    "scotch-yoke",
)  # fmt: skip


def test_planar_linkages_know_their_plane() -> None:
    for name in PLANAR:
        m, c = configuration(name, 0)
        f = c.joint_forces(*moving(c), out_of_plane=True)
        assert f.undetermined == tuple(f"{j.name}.{x}" for j in m.joints for x in OUT_OF_PLANE)
        count = 6 * len(m.bodies) + sum(j.dof for j in m.joints) - 6 * len(m.joints)
        assert m.dof - count == 3 * len(m.mobility().cuts)  # redundant conditions, three for each planar loop
        first = f["A" if name == "five-bar" else m.joints[0].name]
        assert first._variations.shape == (6, 3 * len(m.mobility().cuts))


@pytest.mark.slow_for(*OTHER_MODELS)
@everywhere
def test_joints_transmit_no_more_than_they_hold(name: str, place: int) -> None:
    """Along its degrees of freedom a joint gives the effort of its actuator, which is nothing in most."""
    m, c = standing(name, place)
    qd, qdd = moving(c)
    f = c.joint_forces(qd, qdd)
    largest = np.nanmax(np.abs(np.concatenate([f.force, f.moment])))
    for j in m.joints:
        efforts = [f.effort[c.coordinates.index(x)] if x in c.coordinates else 0.0 for x in j.components]
        given = along_freedoms(c, f, j)
        assert np.abs(np.subtract(given, efforts)).max(initial=0) < 1e-12 * largest, j.name
        if j.type == "spherical":
            assert np.abs(f[j.name].moment).max() < 1e-12 * largest


@pytest.mark.slow_for(*OTHER_MODELS)
@everywhere
def test_virtual_power(name: str, place: int) -> None:
    """Joints do on their bodies the work of the efforts, for any motion, not only the one that happens."""
    m, c = standing(name, place)
    f, (other, _) = c.joint_forces(*moving(c), criterion="minimum norm"), moving(c, 9)
    virtual, power, size = Motion(m, c, other, 0 * other), 0.0, 0.0
    for j in m.joints:
        first, second = j.bodies
        w = f[j.name]
        # the first body's point that is there now
        there = placed(c, second, j.at or (0, 0, 0))
        drawn = there if first == "ground" else c.pose(first).inv().apply(there)
        dv = virtual.velocity(second, j.at or (0, 0, 0)) - virtual.velocity(first, drawn)
        dw = virtual.omega(second) - virtual.omega(first)
        power += w.force @ dv + w.moment @ dw
        size += abs(w.force) @ abs(dv) + abs(w.moment) @ abs(dw)
    assert abs(power - f.effort @ other) < 1e-11 * (size + abs(f.effort) @ abs(other))


@pytest.mark.slow_for("stewart-6r")
@pytest.mark.parametrize("name", CASES)
def test_results_are_independent_of_the_cuts(name: str) -> None:
    m, c = configuration(name, 0)
    split = "minimum norm"
    turned_round = replace(m, joints=m.joints[::-1], coordinates=CASES[name].tree.split())
    e = turned_round.at({q: c.value(q) for q in m.coordinates})
    assert set(turned_round.mobility().cuts) != set(m.mobility().cuts)
    qd, qdd = moving(c)
    a = c.joint_forces(qd, qdd, criterion=split)
    b = e.joint_forces(qd, qdd, wrt=m.coordinates, criterion=split)
    assert b.joints == a.joints[::-1]
    assert set(a.undetermined) == set(b.undetermined)
    assert unlike(a, b) < 1e-10
    assert mismatch(b.effort, a.effort) < 1e-10


def test_the_order_of_the_bodies_is_the_sign() -> None:
    m, c = configuration("gough-stewart", 0)
    slides = [j.name for j in m.joints if j.type == "prismatic"]
    joints = [replace(j, bodies=j.bodies[::-1]) if j.type != "universal" else j for j in m.joints]
    other = replace(m, joints=joints)
    # what reads the same in the drawing now goes the other way from there
    e = other.at({q: 2 * m.at().value(q) - c.value(q) for q in m.coordinates})
    qd, qdd = moving(c)
    a, b = c.joint_forces(qd, qdd), e.joint_forces(-qd, -qdd)
    assert mismatch(-b.effort, a.effort) < 1e-10
    assert set(m.coordinates) == set(slides)
    for j in m.joints:
        sign = 1 if j.type == "universal" else -1
        there = b[j.name].about(a[j.name].point)  # a slider's point goes with the other body now
        assert mismatch(sign * there.force, a[j.name].force) < 1e-10
        assert np.abs(sign * there.moment - a[j.name].moment).max() < 1e-10 * np.abs(a.force).max()


# --- independent numbers -----------------------------------------------------------------------------------


def test_pins_of_the_five_bar() -> None:
    """Table C-1: the source finds its pin forces from free bodies."""
    c = kic.load("five-bar").at()
    f = c.joint_forces(BAR["rates"], BAR["accelerations"])
    # on the coupler at its two ends, and on the follower by the rocker
    found = np.array([f["B"].force, -f["C"].force, -f["D"].force])[:, :2]
    assert mismatch(found, np.array(BAR["pin_forces"])) < 1e-12
    assert mismatch(f.effort, np.array(BAR["torques"])) < 1e-12


def test_arm_by_hand() -> None:
    """Two rods of Horn's arm by the textbook, outwards and inwards again."""
    m = kic.load("horn-two-link")
    q, qd, qdd = np.array([0.4, -0.9]), np.array([1.3, -0.7]), np.array([0.2, 2.1])
    f = m.at(q).joint_forces(qd, qdd)
    mass = m.bodies[0].mass
    I = np.array(m.bodies[0].inertia)[2, 2]
    w, al = np.cumsum(qd), np.cumsum(qdd)
    e = np.array([[np.cos(x), np.sin(x)] for x in np.cumsum(q)])
    n = np.array([[-y, x] for x, y in e])
    rate = [al[k] * n[k] - w[k] ** 2 * e[k] for k in (0, 1)]  # acceleration of a unit length
    g = np.array(m.gravity[:2])
    a1, a2 = rate[0] / 2, rate[0] + rate[1] / 2
    f2 = mass * (a2 - g)
    f1 = f2 + mass * (a1 - g)

    def turn(a, b):
        return a[0] * b[1] - a[1] * b[0]

    t2 = I * al[1] + turn(e[1] / 2, f2)
    t1 = I * al[0] + t2 + turn(e[0] / 2, f1) + turn(e[0] / 2, f2)
    assert f["shoulder"].force == pytest.approx([*f1, 0], abs=1e-12)
    assert f["elbow"].force == pytest.approx([*f2, 0], abs=1e-12)
    assert f["shoulder"].moment == pytest.approx([0, 0, t1], abs=1e-12)
    assert f["elbow"].moment == pytest.approx([0, 0, t2], abs=1e-12)
    assert f.effort == pytest.approx([t1, t2], abs=1e-12)
    assert f["elbow"].point == pytest.approx([*e[0], 0], abs=1e-12)
    assert f.undetermined == ()


KINDS = ["R", "P", "cylindrical", "universal", "spherical", "planar", "free", "fixed"]


def with_laws(rng: np.random.Generator, m: kic.Mechanism) -> kic.Mechanism:
    """The same with springs and dampers in all joints."""
    joints = []
    for j in m.joints:
        n = j.dof
        valued = np.arange(n) < {"spherical": 0, "free": 3}.get(j.type, n)
        k, rest = rng.uniform(0, 2, n) * valued, rng.normal(size=n) * valued
        joints.append(replace(j, stiffness=tuple(k), rest=tuple(rest), damping=tuple(rng.uniform(0, 2, n))))
    return replace(m, joints=joints)


@pytest.mark.parametrize("seed", range(12))
def test_any_joint_with_any_load(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = random_tree(rng, list(rng.permutation(KINDS))[:6], branched=bool(seed % 2), loads=True)
    m = with_laws(rng, m) if seed % 3 else m
    c = random_posture(rng, m)
    qd, qdd = moving(c)
    f = c.joint_forces(qd, qdd)
    assert f.undetermined == ()
    assert equilibrium_residual(m, c, f, qd, qdd) < 1e-12
    assert mismatch(f.effort, c.dynamics().inverse_dynamics(qd, qdd)) < 1e-12
    # efforts stand apart from what springs and dampers in the same joint give
    u = c.coefficients([j.name for j in m.joints if j.dof])
    rates = dict(zip(u.rows, u.velocity(qd), strict=True))
    for j in m.joints:
        given = along_freedoms(c, f, j)
        for k, name in enumerate(j.components):
            stretch = c.value(name) - j.rest[k] if j.stiffness[k] else 0.0
            law = -j.stiffness[k] * stretch - j.damping[k] * rates[name]
            effort = f.effort[c.coordinates.index(name)]
            assert abs(given[k] - effort - law) < 1e-11 * (1 + abs(f.effort).max()), name


def test_springs_that_wind_up_and_springs_in_cut_joints() -> None:
    """A coil spring counts full turns, also in a cut joint."""
    m = kic.load("horn-two-link")
    coil = replace(m, joints=[replace(m.joints[0], stiffness=2.0, rest=0.5), m.joints[1]])
    plain, wound = (x.at([7.0, 0.3]).joint_forces() for x in (m, coil))
    assert wound.effort[0] - plain.effort[0] == pytest.approx(2.0 * 6.5, abs=1e-12)
    assert mismatch(wound.moment, plain.moment) < 1e-12  # the joint gives what it must, spring or motor
    m = kic.load("four-bar")
    (cut,) = m.mobility().cuts
    joints = [replace(j, stiffness=3.0, damping=0.7) if j.name == cut else j for j in m.joints]
    m = replace(m, joints=joints)
    c = m.at({"A": 1.2})
    f = c.joint_forces([0.4], [1.1], criterion="minimum norm")
    assert equilibrium_residual(m, c, f, [0.4], [1.1]) < 1e-12
    assert f.effort == pytest.approx(c.dynamics().inverse_dynamics([0.4], [1.1]), rel=1e-12)
    u = c.coefficients(cut)
    law = float(-3.0 * u.values[0] - 0.7 * u.velocity([0.4])[0])
    assert f[cut].moment[2] == pytest.approx(law, rel=1e-12)


# --- the same by the loads of (4-31) and by multipliers ----------------------------------------------------


def test_constraint_loads_of_the_four_bar() -> None:
    """T_c: the rocker's pin hangs on no ground, and is held where it is by the force that (4-31) names."""
    m = kic.load("four-bar")
    pin = m.joints[-1]
    assert (pin.name, pin.bodies[0]) == ("D", "ground")
    points = [*m.points, kic.Point("heel", pin.bodies[1], pin.at)]
    chain = replace(m, joints=m.joints[:-1], points=points, coordinates=None)
    for A in (0.3, 1.2, 2.9):
        c = m.at({"A": A})
        o = chain.at({j.name: c.value(j.name) for j in chain.joints})
        w = ["A", "heel.x", "heel.y"]
        f = c.joint_forces([0.8], [-0.3])
        # all of (4-31) with ċ = c̈ = 0 ...
        T = o.dynamics(wrt=w).inverse_dynamics([0.8, 0, 0], [-0.3, 0, 0])
        assert mismatch(T, np.array([f.effort[0], *f["D"].force[:2]])) < 1e-12
        # ... and its algebra: from the motion of A alone
        phi = o.coefficients(w).inverse()
        T = o.dynamics().transfer(phi.columns_of("A"), left=phi).inverse_dynamics([0.8], [-0.3])
        assert mismatch(T, np.array([f.effort[0], *f["D"].force[:2]])) < 1e-11


@pytest.mark.parametrize("name", ["gough-stewart", "rssr", "five-bar"])
def test_multipliers_are_joint_forces(name: str) -> None:
    """The tree with M φ̈ + h = τ + Jᵀλ: the cut ball joints' multipliers are their forces."""
    m, c = configuration(name, 0)
    qd, qdd = moving(c)
    f = c.joint_forces(qd, qdd)
    kept, cuts = ([j for j in m.joints if (j.name in m.mobility().cuts) is cut] for cut in (False, True))
    ends = [kic.Point(f"{j.name} {k}", j.bodies[k], j.at) for j in cuts for k in (0, 1)]
    o = replace(m, joints=kept, points=[*m.points, *ends], coordinates=None)
    given = {}
    for j in kept:
        first, second = (displaced(c, body).rotation for body in j.bodies)
        given[j.name] = first.inv() * second if j.type == "spherical" else c.value(j.name)
    o = o.at(given)
    u = c.coefficients([j.name for j in kept])
    d, phid, phidd = o.dynamics(), u.velocity(qd), u.acceleration(qd, qdd)
    assert d.coordinates == u.rows
    apart = [o.coefficients(f"{j.name} 1").G - o.coefficients(f"{j.name} 0").G for j in cuts]
    efforts = np.zeros(len(phid))
    efforts[[d.coordinates.index(q) for q in m.coordinates]] = f.effort
    # rows of the plane only, where all else is open
    rows = 2 if name in PLANAR else 3
    J = np.concatenate([G[:rows] for G in apart])
    found, *_ = np.linalg.lstsq(J.T, d.inverse_dynamics(phid, phidd) - efforts, rcond=None)
    assert {j.type for j in cuts} <= {"spherical", "revolute"}
    forces = np.concatenate([f[j.name].force[:rows] for j in cuts])
    assert mismatch(found, forces) < 1e-10


# --- where efforts act -------------------------------------------------------------------------------------


def test_efforts_at_points_come_from_outside() -> None:
    m = kic.load("five-bar")
    m = replace(m, gravity=(0, -386.4, 0), forces=[kic.Force("hand", "tip")])
    c = m.at()
    u, (qd, qdd) = c.coefficients(["tip.x", "tip.y"]), moving(c)
    v, a = u.velocity(qd), u.acceleration(qd, qdd)
    f = c.joint_forces(v, a, wrt=["tip.x", "tip.y"])
    assert f.actuators == ("tip.x", "tip.y")
    assert mismatch(f.effort, c.dynamics(wrt=["tip.x", "tip.y"]).inverse_dynamics(v, a)) < 1e-12
    # the hand's force as a load: then the joints need none
    same = c.joint_forces(qd, qdd, applied={"hand": [*f.effort, 0]})
    assert np.abs(same.effort).max() < 1e-12 * np.abs(f.effort).max()
    assert unlike(same, f) < 1e-12
    # which coordinates describe the motion and where efforts act are two questions
    back = c.joint_forces(v, a, wrt=["tip.x", "tip.y"], actuators=["A", "E"])
    assert mismatch(back.effort, c.joint_forces(qd, qdd).effort) < 1e-12


def test_efforts_at_bodies_and_distances() -> None:
    m = kic.load("four-bar")
    m = m.add(
        kic.Point("anchor", "ground", (0.1, 0.5, 0)),
        kic.Distance("ram", ("anchor", "tip")),
        kic.Moment("twist", "coupler"),
    )
    c, rest = m.at({"A": 0.8}), ([0.0], [0.0])
    for row in ("coupler.angle", "coupler.wz"):
        f = c.joint_forces(*rest, actuators=row)
        loaded = c.joint_forces(*rest, applied={"twist": [0, 0, f.effort[0]]})
        assert abs(loaded.effort[0]) < 1e-12
        assert unlike(loaded, f) < 1e-12
    assert f.effort == pytest.approx(c.dynamics(wrt="coupler.wz").inverse_dynamics(*rest), rel=1e-12)
    # a ram pushes its two points apart, as a compressed spring there would
    f = c.joint_forces(*rest, actuators="ram")
    assert f.effort == pytest.approx(c.dynamics(wrt="ram").inverse_dynamics(*rest), rel=1e-12)
    push, now = f.effort[0], float(c.value("ram"))
    spring = kic.Spring("coil", ("anchor", "tip"), stiffness=100.0, rest=now + push / 100.0)
    held = replace(m, springs=[spring]).at({"A": 0.8}).joint_forces()
    assert abs(held.effort[0]) < 1e-12
    assert unlike(held, f) < 1e-12


def test_efforts_at_angular_velocities() -> None:
    """The platform's six rows as coordinates: a force and a moment on it, and legs that push nothing."""
    m, c = configuration("gough-stewart", 0)
    u, (qd, qdd) = c.coefficients("platform"), moving(c)
    v, a = u.velocity(qd), u.acceleration(qd, qdd)
    f = c.joint_forces(v, a, wrt="platform")
    assert mismatch(f.effort, c.dynamics(wrt="platform").inverse_dynamics(v, a)) < 1e-11
    for j in m.joints:
        if j.type == "prismatic":
            assert abs(f[j.name].along(freedoms(c, j)[0, :3])[0]) < 1e-11 * np.abs(f.effort).max()
    assert f.actuators == u.rows


def test_applied_forces_in_either_axes() -> None:
    rng = np.random.default_rng(4)
    m = random_tree(rng, "RRPR", loads=True)
    given = {name: rng.normal(size=3) for name in ("push", "thrust", "twist", "wrench")}
    loads = {
        "forces": [replace(x, force=tuple(given[x.name])) for x in m.forces],
        "moments": [replace(x, moment=tuple(given[x.name])) for x in m.moments],
    }
    assert {x.axes for x in (*m.forces, *m.moments)} == {"world", "body"}
    q, other = rng.normal(size=(2, 4)), replace(m, **loads)
    f, g = m.at(q).joint_forces(applied=given), other.at(q).joint_forces()
    assert mismatch(f.force, g.force) < 1e-13
    assert mismatch(f.moment, g.moment) < 1e-13


def test_more_actuators_than_dof() -> None:
    c = kic.load("four-bar").at({"A": 1.2})
    one, two = c.joint_forces(), c.joint_forces(actuators=["A", "D"])
    assert {"A", "D", "A.mz", "D.mz"} <= set(two.undetermined)
    assert np.isnan(two.effort).all()
    split = c.joint_forces(actuators=["A", "D"], criterion="minimum norm")
    # any share does: they hold the same
    G = c.coefficients("D").G[0, 0]
    assert split.effort @ [1, G] == pytest.approx(one.effort[0], rel=1e-12)
    assert c.joint_forces(actuators="D").effort[0] * G == pytest.approx(one.effort[0], rel=1e-12)
    m = kic.load("four-bar")
    assert equilibrium_residual(m, c, split, [0.0], [0.0]) < 1e-12


# --- couplings and rods ------------------------------------------------------------------------------------


def tied(name: str) -> tuple[kic.Mechanism, Configuration]:
    m = kic.load(name)
    return m, m.at({q: m.at().value(q) + 0.02 for q in m.coordinates})


@pytest.mark.parametrize("name", ["geared-five-bar", "five-rod-suspension"])
def test_couplings_and_rods(name: str) -> None:
    m, c = tied(name)
    qd, qdd = moving(c)
    f = c.joint_forces(qd, qdd, criterion="minimum norm")
    assert f.ties == (*m._terms, *m._fixed_distances)
    assert equilibrium_residual(m, c, f, qd, qdd) < 1e-12
    assert mismatch(f.effort, c.dynamics().inverse_dynamics(qd, qdd)) < 1e-11
    assert "loads of couplings and rods" in f.summary().text()
    # joints give along their degrees of freedom what actuators and couplings put there
    numbers = {q: 0.0 for j in m.joints for q in j.components}
    for tie, load in zip(f.ties, f.tie_load, strict=True):
        for q, ratio in m._terms.get(tie, ()):
            numbers[q] += ratio * load
    for q, effort in zip(f.actuators, f.effort, strict=True):
        if q in numbers:
            numbers[q] += effort
    for j in m.joints:
        want = [numbers[q] for q in j.components]
        if not any(any(x) for x in (j.stiffness, j.damping)):
            off = np.abs(along_freedoms(c, f, j) - want).max(initial=0)
            assert off < 1e-11 * np.abs([f.force, f.moment]).max()


def test_rods_are_bodies_without_mass() -> None:
    """A rod drawn as a body with a ball and a universal joint pushes the same."""
    m, c = tied("five-rod-suspension")
    points = {p.name: p for p in m.points}
    bodies, joints = list(m.bodies), list(m.joints)
    for name in m._fixed_distances:
        a, b = (points[x] for x in m[name].points)
        axis = np.subtract(b.at, a.at)
        one = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
        bodies.append(kic.Body(f"{name} rod", mass=0.0, com=a.at, inertia=(0, 0, 0)))
        axes = {"axis": tuple(one), "axis2": tuple(np.cross(axis, one))}
        joints.append(kic.Joint(f"{name} foot", "universal", (a.body, f"{name} rod"), a.at, **axes))
        joints.append(kic.Joint(f"{name} ball", "spherical", (f"{name} rod", b.body), b.at))
    loose = [replace(d, fixed=False) for d in m.distances]
    drawn = replace(m, bodies=bodies, joints=joints, distances=loose)
    e = drawn.at({q: c.value(q) for q in m.coordinates})
    qd, qdd = moving(c)
    f, g = c.joint_forces(qd, qdd), e.joint_forces(qd, qdd)
    assert mismatch(g.effort, f.effort) < 1e-10
    assert unlike(f, g) < 1e-10
    for name, load in zip(f.ties, f.tie_load, strict=True):
        a, b = (points[x] for x in m[name].points)
        along = placed(c, b.body, b.at) - placed(c, a.body, a.at)
        assert abs(g[f"{name} ball"].along(along)[0] - load) < 1e-10 * np.abs(f.tie_load).max()


def test_more_gears_than_needed() -> None:
    """The loads of two redundant meshes are undetermined; the split gives each half."""
    m, c = tied("geared-five-bar")
    (gear,) = m.couplings
    both = replace(m, couplings=[gear, replace(gear, name="twin")])
    e = both.at({q: c.value(q) for q in m.coordinates})
    f, g = c.joint_forces(), e.joint_forces()
    assert set(g.undetermined) - set(f.undetermined) == {gear.name, "twin"}
    assert np.isnan(g.tie_load).all()
    assert mismatch(g.effort, f.effort) < 1e-12
    half = e.joint_forces(criterion="minimum norm").tie_load
    assert half == pytest.approx(f.tie_load[[0, 0]] / 2, rel=1e-10)


# --- splits ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANAR)
def test_the_split_is_the_smallest_that_holds(name: str) -> None:
    m, c = configuration(name, 0)
    qd, qdd = moving(c)
    f = c.joint_forces(qd, qdd, criterion="minimum norm", out_of_plane=True)
    L, play = m._model.length, np.concatenate([f[j]._variations for j in f.joints])
    assert np.abs(play.T @ play - np.eye(play.shape[1])).max() < 1e-12

    def held(x: kic.results.JointForces) -> np.ndarray:
        """Forces · length and moments, but for the efforts."""
        six = np.concatenate([L * x.force, x.moment], axis=1)
        for q, T in zip(x.actuators, x.effort, strict=True):
            six[x.joints.index(q)] -= T * np.array([0, 0, 0, 0, 0, 1])
        return six.ravel()

    least = held(f)
    size = np.abs(f.effort).max()
    assert np.abs(play.T @ least).max() < 1e-11 * size  # no step to any side makes it less
    rng = np.random.default_rng(3)
    for _ in range(5):
        step = rng.normal(size=play.shape[1])
        assert np.linalg.norm(least + play @ step) > np.linalg.norm(least)
        # the other answers hold just as well
        loads = (play @ step).reshape(len(f.joints), 6)
        for j, name_ in enumerate(f.joints):
            f[name_]._loads[:] += loads[j]
        assert equilibrium_residual(m, c, f, qd, qdd) < 1e-12
        for j, name_ in enumerate(f.joints):
            f[name_]._loads[:] -= loads[j]


def test_planes_oblique_to_the_axes() -> None:
    """A tilted planar linkage has undetermined components along all axes, except in its plane."""
    from scipy.spatial.transform import Rotation

    R = Rotation.from_rotvec([0.4, -0.7, 0.3])
    m = kic.load("four-bar")
    turn = lambda v: tuple(R.apply(v)) if v else v  # noqa: E731
    inertias = [R.as_matrix() @ np.array(b.inertia) @ R.as_matrix().T for b in m.bodies]
    tilted = replace(
        m,
        bodies=[
            replace(b, com=turn(b.com), at=turn(b.at), inertia=J)
            for b, J in zip(m.bodies, inertias, strict=True)
        ],
        joints=[replace(j, at=turn(j.at), axis=turn(j.axis)) for j in m.joints],
        points=[replace(p, at=turn(p.at)) for p in m.points],
        gravity=turn(m.gravity),
    )
    f, e = (x.at({"A": 1.2}).joint_forces([0.5], [0.2], out_of_plane=True) for x in (m, tilted))
    assert e.effort == pytest.approx(f.effort, rel=1e-12)
    assert set(e.undetermined) == {f"{j}.{x}" for j in f.joints for x in C}
    for j in f.joints:
        for axis in np.eye(3):
            for got, want in zip(e[j].along(R.apply(axis) * 7), f[j].along(axis), strict=True):
                assert np.isnan(got) == np.isnan(want)
                assert np.isnan(want) or abs(got - want) < 1e-12 * np.nanmax(np.abs(f.force))


def test_moments_about_other_places() -> None:
    c = configuration("gough-stewart", 0)[1]
    f = c.joint_forces(*moving(c))
    w, place = f["U1"], np.array([[0.3, -0.2, 0.9], [0, 0, 0]])
    moved = w.about(place)
    assert mismatch(moved.moment, w.moment + np.cross(w.point - place, w.force)) < 1e-14
    assert mismatch(moved.force, np.stack([w.force, w.force])) < 1e-14
    assert mismatch(moved.about(w.point).moment, np.stack([w.moment, w.moment])) < 1e-12
    assert (moved.point == place).all()
    # open components stay open, and no others become so
    four = kic.load("four-bar").at({"A": 1.2}).joint_forces(out_of_plane=True)["B"].about([0.4, -3.0, 0.0])
    assert np.isnan(four.moment).tolist() == [True, True, False]


# --- loops of every joint -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds",
    [
        "R universal spherical R cylindrical", "spherical P universal R prismatic",
        "planar R spherical universal fixed", "R spherical cylindrical P universal",
        "planar R cylindrical planar planar", "spherical cylindrical R universal spherical",
        "universal P fixed spherical revolute R",
    ],
)  # fmt: skip
def test_spatial_loops_closed_by_any_joint(kinds: str) -> None:
    """A chain whose last joint ties it to ground again; then the same with its joints in another order."""
    rng = np.random.default_rng(len(kinds))
    *inner, last = kinds.split()
    chain = random_tree(rng, inner, loads=True)
    chain = with_laws(rng, chain)
    tie = random_joint(rng, "tie", {"R": "revolute"}.get(last, last), f"b{len(inner) - 1}", "ground")
    loop = replace(chain, joints=[*chain.joints, tie], coordinates=())
    count = sum(j.dof for j in loop.joints) - 6
    assert loop.dof == count > 0
    transfer = loop._model.transfer(())
    rates = transfer.values_and_rates(loop._model.reference_state)[1]
    G = rates / transfer.scale[:, None] * transfer.column_scale
    names = transfer.admissible_inputs(G[0])[0].split(", ")
    c = loop.at()
    qd, qdd = rng.normal(size=(2, count))
    f = c.joint_forces(qd, qdd, wrt=names)
    assert f.undetermined == ()
    motion = c.coefficients([f"b{k}" for k in range(len(inner))], wrt=names)
    condition = np.linalg.cond(motion.G)
    assert equilibrium_residual(loop, c, f, qd, qdd, names) < 1e-14 * max(100, condition)
    assert mismatch(f.effort, c.dynamics(wrt=names).inverse_dynamics(qd, qdd)) < 1e-14 * max(100, condition)
    other = replace(loop, joints=loop.joints[::-1], coordinates=loop.mobility().cuts)
    assert other.mobility().cuts != loop.mobility().cuts
    g = other.at().joint_forces(qd, qdd, wrt=names)
    assert unlike(g, f) < 1e-13 * max(100, condition)
    assert mismatch(g.effort, f.effort) < 1e-13 * max(100, condition)


def test_a_free_joint_beside_the_others_carries_nothing() -> None:
    m, c = configuration("rssr", 0)
    floating = m.add(kic.Joint("float", "free", ("ground", "coupler"), at=(0.1, 0, 0)))
    assert floating.mobility().cuts == (*m.mobility().cuts, "float")
    e = floating.at({q: c.value(q) for q in m.coordinates})
    qd, qdd = moving(c)
    f, g = c.joint_forces(qd, qdd), e.joint_forces(qd, qdd)
    assert unlike(f, g) < 1e-12
    assert not g["float"].force.any()
    assert not g["float"].moment.any()


# --- batches, failures, structures -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["five-bar", "puma560", "gough-stewart"])
def test_batches(name: str) -> None:
    m, c = standing(name)
    size = len(c.coordinates)
    x = np.stack([c.value(q) for q in c.coordinates])
    rng = np.random.default_rng(0)
    path = m.at(x + rng.normal(size=(3, 1, size)) / 30, near=None)
    qd, qdd = rng.normal(size=(2, size)), rng.normal(size=size)
    f = path.joint_forces(qd, qdd)
    count = len(m.joints)
    assert f.batch == (3, 2)
    assert f.force.shape == f.moment.shape == f.point.shape == (3, 2, count, 3)
    assert f.effort.shape == (3, 2, size)
    assert f[m.joints[0].name].force.shape == (3, 2, 3)
    places = np.stack([path.value(q) for q in path.coordinates], axis=-1)
    for i, k in np.ndindex(3, 2):
        g = m.at(places[i, 0]).joint_forces(qd[k], qdd)
        for part, one in ((f.force, g.force), (f.moment, g.moment), (f.effort, g.effort)):
            assert np.nanmax(np.abs(part[i, k] - one)) < 1e-10 * np.nanmax(np.abs(g.moment))
    empty = m.at(np.zeros((0, size)) + x).joint_forces()
    assert empty.force.shape == (0, count, 3)
    assert empty.effort.shape == (0, size)
    assert "empty batch" in empty.summary().text()


def test_long_batches_are_split(monkeypatch) -> None:
    m = kic.load("five-bar")
    c = m.at(np.linspace([1.2, 1.5], [1.0, 1.7], 20))
    whole = c.joint_forces([1.0, 2.0], [0.3, 0.1])
    monkeypatch.setattr(
        "kic.analysis.joint_forces.reactions.BATCH_ENTRIES_MAX", 4 * m._model.free_bodies.size
    )
    parts = c.joint_forces([1.0, 2.0], [0.3, 0.1])
    assert np.array_equal(whole.force, parts.force, equal_nan=True)
    assert np.array_equal(whole.effort, parts.effort)


def test_members_without_configuration() -> None:
    m = kic.load("three-legged-robot")
    c = m.at({"w.x": [2.6, 9.0, 2.5], "w.y": 1.5, "platform.angle": 0.1}, failures="mask")
    f = c.joint_forces(out_of_plane=True)
    assert c.ok.tolist() == [True, False, True]
    for T in (f.force, f.moment, f.effort, f.point):
        assert np.isnan(T[1]).all()
    assert np.isfinite(f.effort[[0, 2]]).all()
    assert np.isfinite(f.force[[0, 2], :, :2]).all()
    assert f.undetermined[:3] == ("A1.fz", "A1.mx", "A1.my")
    open_chain = kic.load("horn-two-link").at([[0, 0], [np.nan, 0]], failures="mask").joint_forces()
    assert np.isnan(open_chain.force).all(axis=(1, 2)).tolist() == [False, True]


def test_structures() -> None:
    """Nothing moves, and still something is held: a beam on two pins, and a bracket of welded parts."""
    beam = kic.Body("beam", mass=3.0, com=(0.25, 0, 0), inertia=(1, 1, 1))
    pins = [
        kic.Joint(n, "revolute", ("ground", "beam"), at=(x, 0, 0), axis=(0, 0, 1))
        for n, x in (("A", 0), ("B", 1))
    ]
    m = kic.Mechanism("bridge", [beam], pins, gravity=(0, -10, 0), coordinates=[])
    f = m.at().joint_forces(out_of_plane=True)
    assert (m.dof, f.effort.shape) == (0, (0,))
    assert f["A"].force[1] == pytest.approx(22.5, abs=1e-12)
    assert f["B"].force[1] == pytest.approx(7.5, abs=1e-12)
    open_ = {f"{j}.{x}" for j in "AB" for x in ("fx", "fz", "mx", "my")}
    assert set(f.undetermined) == open_by_hand(m, m.at(), ()) == open_
    post = kic.Body("post", mass=2.0, com=(0, 0.5, 0))  # stands still: needs no inertia
    weld = [
        kic.Joint("foot", "fixed", ("ground", "post"), at=(0, 0, 0)),
        replace(pins[0], bodies=("post", "beam")),
    ]
    f = kic.Mechanism("crane", [post, beam], weld, gravity=(0, -10, 0)).at().joint_forces()
    assert f["foot"].force == pytest.approx([0, 50, 0], abs=1e-12)
    assert f["foot"].moment == pytest.approx([0, 0, 7.5], abs=1e-12)
    assert f["A"].moment == pytest.approx([0, 0, 7.5], abs=1e-12)
    assert f.undetermined == ()


def test_rounded_dimensions() -> None:
    """A loop that closes within its tolerance keeps its determined and undetermined components."""
    m = kic.load("four-bar")
    tilt = [replace(j, axis=(0, 1e-7 * k, 1)) for k, j in enumerate(m.joints)]
    rounded = replace(m, joints=tilt, closure_tolerance=1e-6)
    f, e = (x.at({"A": 1.2}).joint_forces([0.5], [0.2], out_of_plane=True) for x in (m, rounded))
    assert e.undetermined == f.undetermined
    assert np.nanmax(np.abs(e.force - f.force)) < 1e-5 * np.nanmax(np.abs(f.force))


@pytest.mark.parametrize("scale", [5e-5, 50.0])
def test_scales(scale: float) -> None:
    m = kic.load("four-bar")
    grow = lambda v: tuple(scale * np.array(v)) if v else v  # noqa: E731
    big = replace(
        m,
        bodies=[
            replace(b, com=grow(b.com), at=grow(b.at), inertia=scale**2 * np.array(b.inertia))
            for b in m.bodies
        ],
        joints=[replace(j, at=grow(j.at)) for j in m.joints],
        points=[replace(p, at=grow(p.at)) for p in m.points],
        gravity=grow(m.gravity),
    )
    f, e = (x.at({"A": 1.2}).joint_forces([0.5], [0.2], criterion="minimum norm") for x in (m, big))
    assert e.undetermined == f.undetermined
    assert mismatch(e.force / scale, f.force) < 1e-11
    assert mismatch(e.moment / scale**2, f.moment) < 1e-11


def test_towards_a_dead_centre() -> None:
    """Crank and rod ever closer to one line, driven at the slider: efforts grow, the balance holds."""
    m = kic.load("slider-crank")
    efforts = []
    for gap in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        c = m.at([gap])
        f = c.joint_forces(actuators="piston", out_of_plane=True)
        split = c.joint_forces(actuators="piston", criterion="minimum norm")
        assert set(f.undetermined) == {f"{j.name}.{x}" for j in m.joints for x in OUT_OF_PLANE}
        assert equilibrium_residual(m, c, split, [0.0], [0.0]) < 1e-12
        # the same work as at the crank
        G = c.coefficients("piston").G[0, 0]
        assert f.effort[0] * G == pytest.approx(c.joint_forces().effort[0], rel=1e-9)
        efforts.append(abs(f.effort[0]))
    assert np.diff(efforts).min() > 0


def test_empty_input_gives_empty_output() -> None:
    for name in ("four-bar", "gough-stewart", "puma560"):
        m = replace(kic.load(name), gravity=(0, 0, 0))
        f = m.at().joint_forces(criterion="minimum norm")
        for T in (f.force, f.moment, f.effort):
            assert not T.any()


# --- what is shown -----------------------------------------------------------------------------------------


def test_documented_shapes() -> None:
    f = kic.load("puma560").at(np.random.default_rng(0).normal(size=(*BATCH, 6))).joint_forces()
    sizes = {"J": 6, "A": 6, "K": 0, "C": 0, "3": 3}
    for thing in (f, f[f.joints[1]]):
        shapes = documented(type(thing).__doc__)
        assert len(shapes) > 2
        for name, shape in shapes.items():
            want = BATCH + tuple(sizes[s.strip()] for s in shape.split(",")[1:])
            assert getattr(thing, name).shape == want, name


def test_sheets() -> None:
    f = kic.load("four-bar").at({"A": [1.2, 1.3]}).joint_forces(out_of_plane=True)
    text = f.summary().text()
    assert "batch (2,), shown: member [0]" in text
    assert "A (ground on crank)" in text
    assert "undetermined (nan): A.fz, A.mx, A.my, B.fz" in text
    assert "<table>" in f._repr_html_()
    assert list(f) == list(f.joints) == ["A", "B", "C", "D"]
    assert len(f) == 4
    split = kic.load("four-bar").at({"A": 1.2}).joint_forces(criterion="minimum norm", out_of_plane=True)
    assert "undetermined (chosen by minimum norm): " in split.summary().text()
    assert repr(split["B"]).startswith("<Wrench 'B': crank on coupler, force [")


def test_actuators_that_do_not_hold() -> None:
    # the crank stretched out over the rod: at the piston no effort turns it
    m = kic.load("slider-crank")
    c = m.at([0.0])
    caught = refuses(lambda: c.joint_forces(actuators="piston"), kic.SingularError, actuators=("piston",))
    assert caught.condition > 1e10
    assert caught.failed == [()]
    path = m.at([[0.4], [0.0], [0.8]])
    refuses(lambda: path.joint_forces(actuators="piston"), kic.SingularError, actuators=("piston",))


def test_masses_that_are_missing() -> None:
    rng = np.random.default_rng(0)
    arm = kic.Joint("A", "revolute", ("base", "arm"), at=(0, 0, 0), axis=(0, 0, 1))
    foot = kic.Joint("foot", "fixed", ("ground", "base"))
    m = kic.Mechanism("crane", [kic.Body("base"), random_body(rng, "arm")], [foot, arm])
    assert np.isfinite(m.at().dynamics().I).all()
    refuses(lambda: m.at().joint_forces(), kic.InertiaError, bodies=("base",))
    light = replace(m, bodies=[replace(m.bodies[0], mass=0, at=(0, 0, 0)), m.bodies[1]])
    f = light.at().joint_forces([1.0], [2.0])
    assert equilibrium_residual(light, light.at(), f, [1.0], [2.0]) < 1e-12
    bare = replace(m, bodies=[kic.Body("base", mass=0), kic.Body("arm")])
    refuses(lambda: bare.at().joint_forces(), kic.InertiaError, bodies=("arm",))


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "slider-crank", "jansen-leg"])
def test_planar_joints_have_two_forces_and_a_moment(name: str) -> None:
    c = kic.load(name).at()
    rates = np.full(len(c.coordinates), 0.7)
    f, whole = c.joint_forces(rates, rates), c.joint_forces(rates, rates, out_of_plane=True)
    assert not f.undetermined
    six, other = (np.concatenate([x.force, x.moment], axis=-1) for x in (f, whole))
    assert not six[:, 2:5].any()
    assert np.isnan(other[:, 2:5]).any()
    assert np.array_equal(six[:, [0, 1, 5]], other[:, [0, 1, 5]])
    assert np.isfinite(six).all()


def test_loads_out_of_the_plane_are_not_dropped() -> None:
    arm = replace(kic.load("horn-two-link"), gravity=(0, 0, -9.81))
    f = arm.at([0.3, 0.4]).joint_forces()
    assert abs(f["shoulder"].force[2] - 9.81 * sum(b.mass for b in arm.bodies)) < 1e-12
    bars = replace(kic.load("four-bar"), gravity=(0, 0, -9.81)).at({"A": 1.2}).joint_forces()
    assert "B.fz" in bars.undetermined
    assert np.isnan(bars["B"].force[2])
