"""Grasps and stances: maps from their definitions, equilibrium by Newton and Euler, efforts by work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from documentation import documented
from grasp_cases import HELD, configuration, every_grasp, mechanism, moving
from hands import hand
from raising import raises, refuses
from sampling import STEP, check_orders, mismatch, stepped

import kic
from kic.mechanism.configuration import Configuration, displacement


def place(c: Configuration, body: str) -> np.ndarray:
    return np.eye(4) if body == "ground" else displacement(c, body)


def lever(T: np.ndarray, at: object) -> np.ndarray:
    return T[:3, :3] @ np.asarray(at) + T[:3, 3]


def reference(m: kic.Mechanism, c: Configuration, held: str) -> np.ndarray:
    body = next(body for body in m.bodies if body.name == held)
    return lever(place(c, held), body.at or body.com)


def loads(m: kic.Mechanism, c: Configuration, force: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    """Of each contact its point, and force and moment on the second body, from loads along its rows."""
    found, start = [], 0
    for contact in m.contacts:
        one, two = (place(c, body) for body in contact.bodies)
        n = np.array([0, 0, 1.0] if contact.normal is None else contact.normal)
        n /= np.linalg.norm(n)
        first = np.zeros(3)
        first[np.argmin(np.abs(n))] = 1
        t1 = first - (first @ n) * n
        t1 /= np.linalg.norm(t1)
        t2 = np.cross(n, t1)
        turned = two[:3, :3] @ np.array([n, t1, t2]).T
        count = {"point": 1, "soft": 4}.get(contact.type, 3)
        f = force[start : start + count]
        spin = np.cross(turned[:, 1], one[:3, :3] @ t2)
        moment = f[3] * spin if count == 4 else np.zeros(3)
        found.append((lever(one, contact.at), turned[:, : min(count, 3)] @ f[:3], moment))
        start += count
    return found


# --------------------------------------------------------------------------------------- the maps


@every_grasp
def test_grasp_map_is_the_sum_of_the_contacts_wrenches(name: str) -> None:
    m, c = configuration(name)
    g = c.grasp(HELD[name])
    o = reference(m, c, HELD[name])
    onto = 1.0 if all(x.bodies[1] == HELD[name] for x in m.contacts) else -1.0
    assert g.rows == tuple(row for contact in m.contacts for row in contact.rows)
    for f in np.random.default_rng(1).normal(size=(4, len(g.rows))):
        wrench = np.zeros(6)
        for k, (p, force, moment) in enumerate(loads(m, c, f)):
            assert np.abs(g.point[k] - p).max() < 1e-12
            wrench += onto * np.concatenate([force, np.cross(p - o, force) + moment])
        assert np.abs(g.G @ f - wrench).max() < 1e-12 * np.abs(f).max()


@every_grasp
def test_frames(name: str) -> None:
    """n, t1, t2 are a right-handed frame that turns with the second body; friction stands beside it."""
    m, c = configuration(name)
    g = c.grasp(HELD[name])
    axes = np.stack([g.normal, g.tangent1, g.tangent2], axis=-2)
    assert np.abs(axes @ np.swapaxes(axes, 1, 2) - np.eye(3)).max() < 1e-12
    assert np.abs(np.cross(g.tangent1, g.tangent2) - g.normal).max() < 1e-12
    for k, contact in enumerate(m.contacts):
        n = np.array([0, 0, 1.0] if contact.normal is None else contact.normal)
        assert np.abs(g.normal[k] - place(c, contact.bodies[1])[:3, :3] @ n / np.linalg.norm(n)).max() < 1e-12
        if contact.type != "soft":
            assert (g.spin[k] == g.normal[k]).all()
        assert g.friction[k] == (contact.friction or 0.0)
        assert g.torsion[k] == (contact.torsion or 0.0)


@every_grasp
def test_open_contacts_by_complex_step(name: str) -> None:
    """[−J, Gᵀ] are rates of the contacts' rows while they are open; H and D go on from there."""
    m, c = configuration(name)
    g = c.grasp(HELD[name], order=3)
    labels = [*g.fingers, *g.coordinates]
    assert g.relative.columns == tuple(labels)
    free = replace(m, contacts=[replace(x, closed=False) for x in m.contacts])
    apart = Configuration(free._model, (), c._states)
    check_orders(apart, g.rows, labels, exact=g.relative)
    assert g.coordinates == tuple(f"{HELD[name]}.{x}" for x in ("x", "y", "z", "wx", "wy", "wz"))
    n = len(g.fingers)
    assert mismatch(g.relative.G[:, :n], -g.J) == 0
    # the grasp map, which came from points and directions, is the other half
    assert mismatch(g.relative.G[:, n:], g.G.T) < 1e-12


@pytest.mark.parametrize("name", ["three-finger-hand", "friction", "pinned"])
def test_hand_jacobian_is_the_motion_of_the_finger_tips(name: str) -> None:
    """Complex steps of points of the fingers, along the normal and the tangents."""
    m, c = configuration(name)
    g = c.grasp(HELD[name])
    tips = [kic.Point(f"end {x.name}", x.bodies[0], x.at) for x in m.contacts]
    free = replace(m, points=[*m.points, *tips], contacts=[replace(x, closed=False) for x in m.contacts])
    apart = Configuration(free._model, (), c._states)
    labels = [*g.fingers, *g.coordinates]
    steps = stepped(apart, labels)
    for k, tip in enumerate(tips):
        velocity = steps.value(tip.name).imag / STEP
        axes = np.stack([g.normal[k], g.tangent1[k], g.tangent2[k]])
        assert np.abs(velocity[len(g.fingers) :]).max() == 0  # the object moves no finger
        assert mismatch(axes @ velocity[: len(g.fingers)].T, g.J[3 * k : 3 * k + 3]) < 1e-12


# --------------------------------------------------------------------------------------- the motion


@every_grasp
def test_fingers_follow(name: str) -> None:
    """The grasp constraint J θ̇ = Gᵀ ẋ, and its derivative with all second-order terms."""
    _, c, g, qd, qdd, motion = moving(name)
    assert motion.object_rate == pytest.approx(qd)
    assert motion.object_acceleration == pytest.approx(qdd)
    size = np.abs(g.G.T @ qd).max()
    assert np.abs(g.J @ motion.rate - g.G.T @ qd).max() < 1e-11 * size
    y, a = np.concatenate([motion.rate, qd]), np.concatenate([motion.acceleration, qdd])
    parts = np.abs(g.relative.G @ a).max() + np.abs(g.J @ motion.acceleration).max() + 1.0
    assert np.abs(g.relative.acceleration(y, a)).max() < 1e-10 * parts
    # second orders count: without them the contacts would come apart
    assert np.abs(np.einsum("pmn,m,n->p", g.relative.H, y, y)).max() > 1e-3
    again = c.coefficients(list(g.fingers), order=2, wrt=HELD[name])
    assert mismatch(motion.acceleration, again.acceleration(qd, qdd)) < 1e-12


@every_grasp
def test_newton_and_euler(name: str) -> None:
    """Bodies that move with the object (in a stance all) move by weight and contacts alone."""
    m, c, g, qd, qdd, motion = moving(name)
    held = HELD[name]
    standing = m.contacts[0].bodies[1] == "ground"
    bodies = [b for b in m.bodies if standing or b.name == held]
    total = np.zeros(6)
    marks = [kic.Point(f"centre {b.name}", b.name, b.com) for b in m.bodies]
    marked = Configuration(replace(m, points=[*m.points, *marks])._model, (), c._states)
    for b in bodies:
        spin = marked.coefficients([f"{b.name}.{w}" for w in ("wx", "wy", "wz")], order=2, wrt=held)
        centre = marked.coefficients(f"centre {b.name}", order=2, wrt=held)
        w, alpha, a = spin.velocity(qd), spin.acceleration(qd, qdd), centre.acceleration(qd, qdd)
        R = place(c, b.name)[:3, :3]
        J = R @ np.array(b.inertia) @ R.T
        force = b.mass * (a - np.array(m.gravity))
        moment = J @ alpha + np.cross(w, J @ w) + np.cross(centre.values, force)
        total += np.concatenate([force, moment])
    given = np.zeros(6)
    for k, contact in enumerate(m.contacts):
        sign = 1.0 if contact.bodies[1] == held else -1.0
        F, M = motion.contact_force[k], motion.contact_moment[k]
        given += sign * np.concatenate([F, np.cross(g.point[k], F) + M])
    assert np.abs(given - total).max() < 1e-10 * np.abs(total).max()
    # and the same from the loads along the rows
    for k, (_, F, M) in enumerate(loads(m, c, motion.force)):
        assert np.abs(motion.contact_force[k] - F).max() < 1e-10 * np.abs(motion.force).max()
        assert np.abs(motion.contact_moment[k] - M).max() < 1e-10 * np.abs(motion.force).max()
    assert np.abs(g.G @ motion.force - motion.wrench).max() < 1e-10 * np.abs(motion.wrench).max()


@every_grasp
def test_efforts_are_those_of_the_closed_mechanism(name: str) -> None:
    """Contacts do no work: efforts of the fingers, seen from the object, are the dynamics of the whole."""
    _, c, g, qd, qdd, motion = moving(name)
    whole = c.dynamics(wrt=HELD[name]).inverse_dynamics(qd, qdd)
    seen = c.coefficients(list(g.fingers), order=1, wrt=HELD[name]).G.T @ motion.effort
    assert np.abs(seen - whole).max() < 1e-10 * np.abs(whole).max()
    assert motion.effort @ motion.rate == pytest.approx(whole @ qd, rel=1e-9, abs=1e-9)  # power


@every_grasp
def test_internal_loads_do_nothing_to_the_object(name: str) -> None:
    m, _, g, qd, qdd, motion = moving(name)
    least = g.motion(qd, qdd)
    assert g.internal.shape == (len(g.rows), len(g.rows) - g.rank)
    assert np.abs(g.G @ g.internal).max() < 1e-12
    change = motion.force - least.force
    assert np.abs(change).max() > 0.1
    assert mismatch(motion.effort - least.effort, g.J.T @ change) < 1e-9
    # and that of minimum norm has none of them
    length = np.where([row.endswith(".s") for row in g.rows], m._model.length, 1.0)
    basis = g.internal / length[:, None]
    assert np.abs(basis.T @ basis - np.eye(basis.shape[1])).max() < 1e-12
    assert np.abs(basis.T @ (least.force / length)).max() < 1e-11 * np.abs(least.force).max()


@pytest.mark.parametrize("name", ["three-finger-hand", "quadruped", "soft"])
def test_joint_forces_agree(name: str) -> None:
    """With six actuators the contacts' loads are known; free bodies and the open hand give the same."""
    m, c, g, qd, qdd, _ = moving(name)
    among = [joint.name for joint in m.joints if joint.type == "revolute"]
    acting = list(m.mobility().independent_sets(of=among, count=1)[0].names)
    f = c.joint_forces(qd, qdd, wrt=HELD[name], actuators=acting)
    assert f.undetermined == ()
    force = []
    for k, contact in enumerate(m.contacts):
        one = f[contact.name]
        assert np.abs(one.point - g.point[k]).max() < 1e-12
        force += [u @ one.force for u in (g.normal[k], g.tangent1[k], g.tangent2[k])]
        if contact.type == "soft":
            force.append(g.spin[k] @ one.moment / (g.spin[k] @ g.spin[k]))
    motion = g.motion(qd, qdd, forces=np.array(force))
    size = np.abs(f.effort).max()
    for label, effort in zip(g.fingers, motion.effort, strict=True):
        want = f.effort[acting.index(label)] if label in acting else 0.0
        assert abs(effort - want) < 1e-8 * size


def test_applied_loads_are_carried() -> None:
    m = kic.load("three-finger-hand")
    m = replace(m, forces=[kic.Force("push", "top", (0.0, 0.0, 0.0))])
    g = m.at().grasp("ball")
    push = np.array([[1.0, 0, 0], [0, 0, -2.0]])
    motion = g.motion(applied={"push": push})
    assert motion.batch == (2,)
    bare = g.motion()
    arm = np.array([0, 0, 0.04])
    for k in range(2):
        extra = np.concatenate([push[k], np.cross(arm, push[k])])
        assert np.abs(motion.wrench[k] - bare.wrench + extra).max() < 1e-12
        assert np.abs(g.G @ motion.force[k] - motion.wrench[k]).max() < 1e-12


# ----------------------------------------------------------------------------- which loads are chosen


def test_forces_may_be_chosen() -> None:
    g = kic.load("three-finger-hand").at().grasp("ball")
    least = g.motion()
    seen = []

    def squeeze(grasp: kic.results.Grasp, wrench: np.ndarray) -> np.ndarray:
        seen.append((grasp, wrench))
        normal = np.array([row.endswith(".n") for row in grasp.rows], dtype=float)
        return least.force + 4.0 * normal  # the three normals meet at one height: their sum is nothing

    firm = g.motion(forces=squeeze)
    assert seen[0][0] is g
    assert np.abs(seen[0][1] - least.wrench).max() == 0
    assert firm.normal_force == pytest.approx([4.0] * 3)
    assert firm.feasible
    assert firm.remarks == ()
    assert not least.feasible
    # a solver's last digits are put right, exactly
    near = firm.force * (1 + 1e-8)
    assert np.abs(g.G @ g.motion(forces=near).force - least.wrench).max() < 1e-13
    refuses(lambda: g.motion(forces=firm.force * 1.01), key="forces", residual=pytest.approx(0.02943))


def test_feet_only_push() -> None:
    """The trunk falls faster than by its weight, or speeds up hard: feet separate, and remarks report it."""
    g = kic.load("quadruped").at().grasp("trunk")
    still = g.motion()
    assert still.feasible
    assert still.normal_force.sum() == pytest.approx(30.0 * 9.81)
    # what the fore feet carry, by levers: feet stand below the hips, 0.25 m before and behind the middle
    bodies = kic.load("quadruped").bodies
    ahead = sum(b.mass * b.com[0] for b in bodies) / sum(b.mass for b in bodies)
    assert still.normal_force[:2].sum() == pytest.approx(30.0 * 9.81 * (0.25 + ahead) / 0.5)
    falls = g.motion(None, [0, 0, -25.0, 0, 0, 0])
    assert falls.pulling.all()
    assert not falls.feasible
    assert "contact 'step_fl' would have to pull, by" in falls.summary().text()
    hard = g.motion(None, np.array([[1.0, 0, 0, 0, 0, 0], [12.0, 0, 0, 0, 0, 0]]))
    assert hard.feasible.tolist() == [True, False]
    assert hard.slipping[1].any() or hard.pulling[1].any()
    assert all("(in 1 of 2 members)" in remark for remark in hard.remarks)


@every_grasp
def test_loads_on_the_object(name: str) -> None:
    """Along its inward normals, t1 and inward × t1: the same wrench, by signs alone."""
    m, c = configuration(name)
    g = c.grasp(HELD[name])
    f = np.random.default_rng(2).normal(size=len(g.rows))
    on_it, wrench, r = g.signs * f, np.zeros(6), 0
    assert np.abs(g.reference - reference(m, c, HELD[name])).max() < 1e-12
    for k, kind in enumerate(g.kinds):
        axes = [g.inward[k], g.tangent1[k], np.cross(g.inward[k], g.tangent1[k])]
        for u in axes[: 1 if kind == "point" else 3]:
            wrench += on_it[r] * np.concatenate([u, np.cross(g.point[k] - g.reference, u)])
            r += 1
        if kind == "soft":
            wrench[3:] += on_it[r] * g.spin[k]
            r += 1
    assert np.abs(g.G @ f - wrench).max() < 1e-12


def test_slipping_is_judged_by_each_bound() -> None:
    """Tangential forces and moments against the soft fingers' ellipsoid; only pins may pull."""
    m = hand(20, ("soft",) * 3, 4)
    c = m.at()
    g = c.grasp("box")
    rng = np.random.default_rng(0)
    for _ in range(20):
        f = g.motion().force + g.internal @ rng.normal(size=g.internal.shape[1]) * 20
        motion = g.motion(forces=f)
        n, t1, t2, s = f.reshape(3, 4).T
        assert mismatch(motion.normal_force, n) < 1e-12
        assert (motion.pulling == (n < 0)).all()
        moment = s * np.linalg.norm(g.spin, axis=1)
        over = (t1 / 0.6) ** 2 + (t2 / 0.6) ** 2 + (moment / 0.02) ** 2 > n**2
        assert (motion.slipping == (over & (n > 0))).all()
        assert motion.feasible == (not (over | (n < 0)).any())
    pins = hand(11, ("pinned",) * 3).at().grasp("box")
    pulls = pins.motion(forces=pins.motion().force + 50 * pins.internal[:, 0])
    assert (pulls.normal_force < 0).any()
    assert pulls.feasible  # a pin can pull


# ------------------------------------------------------------------------------ fingers of all kinds


def planar_hand(closed: bool) -> kic.Mechanism:
    """A disc in a plane between two fingers: two links, or five-bars with both motors on ground."""
    X, Z = (1.0, 0, 0), (0, 0, 1.0)

    def bar(name: str, a, b) -> kic.Body:
        com = tuple((np.array(a) + b) / 2)
        return kic.Body(name, mass=0.3, com=com, inertia=(0.002, 0.002, 0.004))

    bodies = [kic.Body("disc", mass=0.5, com=(0, 0.7, 0), inertia=(0.001, 0.001, 0.002))]
    joints = [kic.Joint("plane", "planar", ("ground", "disc"), (0, 0.7, 0), X, axis2=(0, 1.0, 0))]
    contacts = []
    for k, s in ((0, -1.0), (1, 1.0)):
        A, B, T = (0.3 * s, 0, 0), (0.5 * s, 0.4, 0), (0.1 * s, 0.7, 0)
        bodies += [bar(f"in{k}", A, B), bar(f"out{k}", B, T)]
        joints += [
            kic.Joint(f"A{k}", "revolute", ("ground", f"in{k}"), A, Z),
            kic.Joint(f"B{k}", "revolute", (f"in{k}", f"out{k}"), B, Z),
        ]
        if closed:
            E, D = (0.8 * s, 0.1, 0), (0.75 * s, 0.6, 0)
            bodies += [bar(f"crank{k}", E, D), bar(f"rod{k}", D, T)]
            joints += [
                kic.Joint(f"E{k}", "revolute", ("ground", f"crank{k}"), E, Z),
                kic.Joint(f"D{k}", "revolute", (f"crank{k}", f"rod{k}"), D, Z),
                kic.Joint(f"C{k}", "revolute", (f"rod{k}", f"out{k}"), T, Z),
            ]
        contacts.append(
            kic.Contact(f"c{k}", "friction", (f"out{k}", "disc"), T, normal=(-s, 0, 0), friction=0.5)
        )
    more = {"gravity": (0, -9.81, 0), "coordinates": ["A0", "A1", "B0"]}
    return kic.Mechanism("planar-hand", bodies, joints, contacts=contacts, **more)


@pytest.mark.parametrize("closed", [False, True])
def test_fingers_that_are_open_or_closed_chains(closed: bool) -> None:
    m = planar_hand(closed)
    assert m.dof == 3
    motors = ["A0", "E0", "A1", "E1"] if closed else ["A0", "B0", "A1", "B1"]
    c = m.at({"A0": 0.05, "A1": 0.02, "B0": -0.03})
    g = c.grasp("disc", fingers=motors if closed else None)
    assert (g.fingers, g.coordinates) == (tuple(motors), ("plane.1", "plane.2", "plane.3"))
    qd, qdd = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, -3.0])
    motion = g.motion(qd, qdd)
    # in the plane the contacts' rows out of it are idle
    flat = [k for k, row in enumerate(g.rows) if abs(g.G[2, k]) < 0.5]
    assert np.abs((g.J @ motion.rate - g.relative.G[:, 4:] @ qd)[flat]).max() < 1e-12
    a = c.coefficients("disc", order=2, wrt=g.coordinates).acceleration(qd, qdd)
    F = motion.contact_force.sum(axis=0)
    assert np.abs(F - [0.5 * a[0], 0.5 * (a[1] + 9.81), 0]).max() < 1e-11
    arm = g.point - displacement(c, "disc")[:3, :3] @ [0, 0.7, 0] - displacement(c, "disc")[:3, 3]
    assert np.cross(arm, motion.contact_force)[:, 2].sum() == pytest.approx(0.002 * a[5], abs=1e-11)
    whole = c.dynamics(wrt=list(g.coordinates)).inverse_dynamics(qd, qdd)
    seen = c.coefficients(motors, order=1, wrt=list(g.coordinates)).G.T @ motion.effort
    assert seen == pytest.approx(whole, abs=1e-11)
    if closed:
        refuses(lambda: c.grasp("disc"), mobility=7)


def test_fingers_with_more_joints_than_needed() -> None:
    """The object's motion leaves a finger free: `wrt` names the other moving parts."""
    m = hand(6, ("friction",) * 3, (4, 3, 3))
    g = m.at().grasp("box")
    assert m.dof == 7
    refuses(g.motion, mobility=7, count=6)
    qd = np.arange(7.0)
    motion = g.motion(qd, wrt=["box", "j00"])
    assert motion.rate[g.fingers.index("j00")] == pytest.approx(6.0)
    assert np.abs(g.J @ motion.rate - g.G.T @ qd[:6]).max() < 1e-10
    assert np.abs(g.G @ motion.force - motion.wrench).max() < 1e-9 * np.abs(motion.wrench).max()


def test_the_ground_may_push_the_feet() -> None:
    """Contacts written the other way round, the ground first, normals upwards: the efforts are the same."""
    m = kic.load("quadruped")
    up = [replace(c, bodies=c.bodies[::-1], normal=(0, 0, 1)) for c in m.contacts]
    qdd = np.array([1.0, 0.5, -0.3, 0.2, 0.1, 0.4])
    g, h = (x.at().grasp("trunk") for x in (m, replace(m, contacts=up)))
    a, b = (x.motion(None, qdd) for x in (g, h))
    assert mismatch(h.relative.G[:, len(h.fingers) :], h.G.T) < 1e-12
    assert mismatch(a.effort, b.effort) < 1e-11
    assert mismatch(a.normal_force, b.normal_force) < 1e-11
    assert mismatch(a.contact_force, -b.contact_force) < 1e-11


def test_a_lifted_foot_holds_nothing() -> None:
    m = kic.load("quadruped")
    lifted = [replace(c, closed=c.name != "step_hr") for c in m.contacts]
    three = replace(m, contacts=lifted, coordinates=None)
    assert three.dof == 9
    g = three.at().grasp("trunk")
    assert len(g.contacts) == 3
    swing = ["trunk", "spread_hr", "swing_hr", "knee_hr"]
    motion = g.motion(np.zeros(9), np.zeros(9), wrt=swing)
    # the diagonal carries more, and nothing is lost
    assert motion.normal_force.sum() == pytest.approx(30 * 9.81)
    assert motion.pulling.any() == (motion.normal_force < 0).any()


# ------------------------------------------------------------------------------------ batches, masks


@pytest.mark.slow
@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
@pytest.mark.parametrize("name", HELD)
def test_batches(name: str, batch: tuple[int, ...]) -> None:
    m = mechanism(name)
    among = [joint.name for joint in m.joints if joint.type == "revolute"]
    best = list(m.mobility().independent_sets(of=among, count=1)[0].names)
    rng = np.random.default_rng(4)
    q = 0.03 * rng.uniform(-1, 1, size=(*batch, len(best)))
    c = m.at({label: q[..., k] for k, label in enumerate(best)}, near=m.at())
    g = c.grasp(HELD[name])
    R, n, K = len(g.rows), len(g.fingers), len(g.contacts)
    assert (g.G.shape, g.J.shape, g.point.shape) == ((*batch, 6, R), (*batch, R, n), (*batch, K, 3))
    assert g.rank.shape == batch
    qdd = rng.normal(size=6)
    motion = g.motion(np.ones(6), qdd)
    assert motion.force.shape == (*batch, R)
    assert motion.effort.shape == (*batch, n)
    assert motion.contact_moment.shape == (*batch, K, 3)
    assert motion.feasible.shape == motion.batch == batch
    assert g.internal.shape == (*batch, R, R - 6)
    for index in np.ndindex(*batch):
        one = Configuration(m._model, (), c.state[index][None]).grasp(HELD[name])
        assert mismatch(one.G, g.G[index]) < 1e-12
        alone = one.motion(np.ones(6), qdd)
        assert mismatch(alone.force, motion.force[index]) < 1e-9
        assert mismatch(alone.effort, motion.effort[index]) < 1e-9
    assert g.summary().text()
    assert motion.summary().text()


@pytest.mark.parametrize("name", HELD)
def test_documented_shapes(name: str) -> None:
    m = mechanism(name)
    c = Configuration(m._model, (2, 1), m.at()._states.repeat(2, axis=0))
    g = c.grasp(HELD[name])
    sizes = {"K": len(g.contacts), "R": len(g.rows), "n": len(g.fingers), "m": 6, "3": 3, "6": 6}
    for thing in (g, g.motion()):
        shapes = documented(type(thing).__doc__)
        assert len(shapes) >= 6
        for key, shape in shapes.items():
            want = (2, 1, *(sizes[s.strip()] for s in shape.split(",")[1:] if s.strip()))
            assert getattr(thing, key).shape == want, key


def test_unsolved_members() -> None:
    m = kic.load("three-finger-hand")
    q = np.array([[0.0] * 6, [0.0, -2.5, 0.0, 2.5, 0.0, 2.5], [0.01] * 6])
    c = m.at(q, failures="mask")
    assert c.ok.tolist() == [True, False, True]
    g = c.grasp("ball")
    motion = g.motion(np.ones((3, 6)))
    for answer in (g.G, g.J, g.point, g.internal, motion.force, motion.effort, motion.rate, motion.wrench):
        assert np.isnan(answer[1]).all()
        assert np.isfinite(answer[[0, 2]]).all()
    assert motion.feasible.tolist()[1] is False
    chosen = g.motion(np.ones((3, 6)), forces=lambda grasp, wrench: motion.force)
    assert np.isnan(chosen.force[1]).all()
    assert mismatch(chosen.force[[0, 2]], motion.force[[0, 2]]) < 1e-12
    m.at(q[[0, 2]]).grasp("ball", failures="mask")


# ----------------------------------------------------------------------------------- invalid arguments


def test_two_fingers_cannot_hold_every_load() -> None:
    """Two points with friction do not resist a moment about their line; the error reports the residual."""
    m = hand(5, ("friction",) * 2)
    g = m.at().grasp("box")
    assert g.rank == 5
    assert m.dof == 6 + 6 - 6
    caught = refuses(g.motion, kic.SingularError, text="They balance 5 of its 6 loads", rank=5, failed=[()])
    assert "N m at box.w" in str(caught)
    line = g.point[1] - g.point[0]
    missing = caught.residual[3:] + np.cross(reference(m, m.at(), "box") - g.point[0], caught.residual[:3])
    assert caught.rank == 5
    # what is left does work in turning about the line of the two points
    assert abs(missing @ line) > 0


def test_free_fall_needs_no_effort() -> None:
    """Two points with friction hold no turn about their line; in free fall they need not, to rounding."""
    m = hand(5, ("friction",) * 2)
    g = m.at().grasp("box")
    falls = g.motion(None, [*m.gravity, 0, 0, 0])
    assert np.abs(falls.force).max() < 1e-12
    assert falls.feasible  # what rounding leaves neither pulls nor slips
    assert falls.remarks == ()
    refuses(lambda: g.motion(None, [*m.gravity, 1e-3, 0, 0]), kic.SingularError, rank=5, failed=[()])


def test_members_that_are_not_held() -> None:
    """They are named, with the rank that they have; or NaN."""
    m = wedge()
    c = m.at([[0.1, 0.05, 0.2], [0.0, 0.0, 0.0], [0.2, 0.0, 0.3]])
    turn = [0, 0, 1.0]
    caught = refuses(lambda: c.grasp("plate").motion(None, turn), kic.SingularError, rank=2)
    assert (caught.rank, caught.failed) == (2, [(1,)])
    motion = c.grasp("plate", failures="mask").motion(None, turn)
    assert np.isnan(motion.force[1]).all()
    assert np.isnan(motion.effort[1]).all()
    assert np.isfinite(motion.force[[0, 2]]).all()
    assert motion.feasible.tolist()[1] is False


def test_residual_moments_have_the_unit_of_moments() -> None:
    """In a drawing whose largest extent is one unit, too."""
    small = wedge(0.5)
    small = replace(
        small, points=[kic.Point("a", "plate", (-0.5, 0, 0)), kic.Point("b", "plate", (0.5, 0, 0))]
    )
    assert small._model.length == 1.0
    with raises(kic.SingularError, rank=2, failed=[()]):
        small.at([0.0, 0.0, 0.0]).grasp("plate").motion(None, [0, 0, 1.0])


def test_internal_loads_across_a_plane_stand_apart_from_the_grip() -> None:
    """One load along a row where there is one; the grip presses at both contacts along their line."""
    g = planar_hand(False).at().grasp("disc")
    n = dict(zip(g.rows, g.internal, strict=True))
    assert g.internal.shape == (6, 3)
    found = [sorted(row for row in g.rows if abs(n[row][k]) > 1e-12) for k in range(3)]
    assert found == [["c0.t2"], ["c1.t2"], ["c0.n", "c1.n"]]
    assert n["c0.n"][2] == pytest.approx(np.sqrt(0.5))
    assert n["c1.n"][2] == pytest.approx(np.sqrt(0.5))


def test_sensitivities_are_exact_or_raise() -> None:
    """By the place and the normal of a contact, in the axes that the drawing has; not of a basis."""
    m = kic.load("three-finger-hand")
    names = ["tip1.at.x", "tip1.normal.y", "tip2.normal.x", "ball.com.z"]
    g = m.at().grasp("ball")
    seen = []

    def ask(m: kic.Mechanism) -> np.ndarray:
        seen.append(m.at().grasp("ball"))
        return seen[-1].G

    found = m.sensitivity(ask, names)
    for stepped_one in seen:  # the same axes, though the normal's smallest component is another
        assert np.abs(stepped_one.G.real - g.G).max() < 1e-14
    # a normal (-1, y, 0): n turns by -y about z, t1 = e_y along with it
    assert found[1, :3, 0] == pytest.approx([0, 1, 0])
    assert found[1, :3, 1] == pytest.approx([1, 0, 0])
    assert found[0, 3:, 2] == pytest.approx(np.cross([1, 0, 0], g.tangent2[0]))
    for answer in (lambda m: m.at().grasp("ball").internal, lambda m: m.at().grasp("ball").motion().force):
        refuses(lambda answer=answer: m.sensitivity(answer, names), key="configuration", got=complex)


def test_feet_of_other_bodies_carry_no_load() -> None:
    """A box beside the walker floats: the walker's feet are not its own."""
    m = kic.load("quadruped")
    box = kic.Body("box", mass=1.0, com=(2, 0, 1), inertia=(0.1, 0.1, 0.1))
    joints = [*m.joints, kic.Joint("lost", "free", ("ground", "box"), at=(2, 0, 1))]
    both = replace(m, bodies=[*m.bodies, box], joints=joints, coordinates=None)
    refuses(lambda: both.at().grasp("box"), name="box")
    assert len(both.at().grasp("trunk", fingers=[*_legs(m), "lost"]).contacts) == 4


def _legs(m: kic.Mechanism) -> list[str]:
    return [joint.name for joint in m.joints if joint.type == "revolute"]


def test_a_body_that_is_at_rest() -> None:
    m = kic.load("three-finger-hand")
    fixed = [kic.Joint(j.name, "fixed", j.bodies) if j.name == "float" else j for j in m.joints]
    still = replace(m, joints=fixed, coordinates=[])
    assert still.dof == 0
    refuses(lambda: still.at().grasp("ball"), name="ball")


def wedge(radius: float = 1.0) -> kic.Mechanism:
    """A plate in a plane between three sliders without friction, whose normals meet in the drawing."""
    X, Y = (1.0, 0, 0), (0, 1.0, 0)
    bodies = [kic.Body("plate", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.2))]
    joints = [kic.Joint("plane", "planar", ("ground", "plate"), (0, 0, 0), X, axis2=Y)]
    contacts = []
    for k in range(3):
        angle = 2 * np.pi * k / 3
        out = (radius * np.cos(angle), radius * np.sin(angle), 0.0)
        inwards = tuple(-x for x in out)
        bodies.append(kic.Body(f"pin{k}", mass=0.2, com=out, inertia=(0.01, 0.01, 0.01)))
        joints.append(kic.Joint(f"slide{k}", "prismatic", ("ground", f"pin{k}"), axis=inwards))
        contacts.append(kic.Contact(f"c{k}", "point", (f"pin{k}", "plate"), out, normal=inwards))
    return kic.Mechanism("wedge", bodies, joints, contacts=contacts, coordinates=["plane"])


def test_rank_may_change_in_a_batch() -> None:
    """Normals that meet hold no moment; moved off centre the plate is held."""
    m = wedge()
    assert m.dof == 3
    c = m.at([[0.0, 0.0, 0.0], [0.1, 0.05, 0.2]])
    g = c.grasp("plate")
    assert g.rank.tolist() == [2, 3]
    with raises(kic.SingularError, ranks=(2, 3)):
        _ = g.internal
    assert m.at([0.0, 0.0, 0.0]).grasp("plate").internal.shape == (3, 1)
    turn = np.array([0, 0, 1.0])
    with raises(kic.SingularError, rank=2, failed=[()]):
        m.at([0.0, 0.0, 0.0]).grasp("plate").motion(None, turn)
    assert m.at([0.1, 0.05, 0.2]).grasp("plate").motion(None, turn).wrench == pytest.approx([0, 0, 0.2])


def test_contacts_with_another_coefficient() -> None:
    """Replaced arguments are checked like the original ones; the original set does not change."""
    points = np.array([[-1.0, 0, 0], [1, 0, 0]])
    sides = {"points": points, "normals": [[1, 0, 0], [-1, 0, 0]], "mu": 0.4, "names": ["left", "right"]}
    c = kic.ContactSet(kinds=(kind for kind in ("friction", "point")), **sides)
    points[0] = 7.0
    other = c.replaced(mu=0.7, about=(0, 0, 1))
    assert (other.mu[0], c.mu[0], other.names, other.kinds) == (0.7, 0.4, c.names, c.kinds)
    points[0] = [-1, 0, 0]
    anew = kic.ContactSet(kinds=["friction", "point"], **(sides | {"mu": 0.7}), about=(0, 0, 1))
    np.testing.assert_array_equal(other.map, anew.map)
    in_plane = c.replaced(plane=[0, 0, 1])
    assert in_plane.map.shape == (3, 3)
    assert in_plane.replaced(plane=None).map.shape == (6, 4)
    # as many as are given, if nothing else is given for each
    one = kic.ContactSet([[1, 0, 0]], [[-1, 0, 0]], "point")
    assert one.replaced(points=points, normals=sides["normals"]).names == ("1", "2")
    refuses(lambda: c.replaced(mu=-1.0), key="mu")
    refuses(lambda: c.replaced(friction=1.0), key="changes", name="friction")
