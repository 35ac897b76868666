"""Results of a locked mechanism, which are those of the unlocked one with the joints at rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hands import hand
from raising import raises
from sampling import random_tree
from scipy.spatial.transform import Rotation

import kic

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
BY_AXIS = {"damping": (1.0, 2.0, 3.0), "armature": (0.1, 0.2, 0.3)}
BY_SIX = {"damping": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), "armature": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)}


def body(name: str, *at: float) -> kic.Body:
    return kic.Body(name, mass=1.0, com=at, inertia=(0.1, 0.2, 0.25, 0.01, 0.02, -0.03))


def on_an_arm(kind: str, turned: bool = False, **given) -> kic.Mechanism:
    """Return a body on a ball or free joint of a moving arm, with another arm and a force on it."""
    pair = ("end", "arm") if turned else ("arm", "end")
    laws = BY_AXIS if kind == "spherical" else BY_SIX
    return kic.Mechanism(
        "ball on an arm",
        [body("arm", 0.5, 0, 0), body("end", 1.2, 0.1, 0), body("tip", 1.5, 0.2, 0.1)],
        [
            kic.Joint("R", "revolute", ("ground", "arm"), (0, 0, 0), (0.2, 0.1, 1), damping=0.3),
            kic.Joint("S", kind, pair, (1, 0, 0), **laws, **given),
            kic.Joint("T", "revolute", ("end", "tip"), (1.3, 0, 0), (0.5, 1, 0), stiffness=2.0),
        ],
        forces=[kic.Force("push", "hand", (1, 2, 3), axes="body")],
        points=[kic.Point("hand", "tip", (1.6, 0.1, 0.2))],
        gravity=(1, -9.81, 2),
    )


def finger(kind: str, *coordinates: str, **given) -> kic.Mechanism:
    """Return a finger that touches a box on two hinges, with a soft contact on a ball joint."""
    hold = kic.Joint("S", "spherical", ("ground", "box"), (1.5, 0, 0), **BY_AXIS)
    if kind != "soft":
        hold = kic.Joint("S", "universal", ("ground", "box"), (1.5, 0, 0), Z, axis2=X, damping=(1.0, 2.0))
    return kic.Mechanism(
        "finger",
        [
            body("f1", 0, 0, 0.3),
            body("f2", 0.2, 0, 0.6),
            body("f3", 0.5, 0.1, 0.8),
            body("box", 1.2, 0.1, 0.9),
        ],
        [
            kic.Joint("R1", "revolute", ("ground", "f1"), (0, 0, 0), Z),
            kic.Joint("R2", "revolute", ("f1", "f2"), (0, 0, 0.4), (0, 1, 0.2)),
            kic.Joint("R3", "revolute", ("f2", "f3"), (0.4, 0, 0.7), (0.3, 1, 0)),
            hold,
        ],
        contacts=[kic.Contact("touch", kind, ("f3", "box"), (0.9, 0.2, 0.9), **given)],
        coordinates=coordinates,
        gravity=(0, 0, -9.81),
    )


def held(kinds: tuple[str, ...], seed: int, links: int | tuple[int, ...]) -> kic.Mechanism:
    """Return a hand with a box, driven by joints of its fingers."""
    m = hand(seed, kinds, links)
    hinges = [joint.name for joint in m.joints if joint.type == "revolute"]
    return replace(m, coordinates=m.mobility().independent_sets(of=hinges, count=1)[0].names)


def damped_ball_joints(name: str) -> kic.Mechanism:
    """Return a shipped model whose ball joints, also those that are cut, have damping by axis."""
    m = kic.load(name)
    for joint in m.joints:
        if joint.type == "spherical":
            m = m.replace(joint.name, **BY_AXIS)
    return m


ON = {"normal": (1, 0.2, -0.3)}
RUBBING = {**ON, "friction": 0.5}
# mechanism, values of the locks, and steps of other coordinates from the locked reference configuration
CASES: dict[str, tuple[Callable[[], kic.Mechanism], dict[str, float], dict]] = {
    "ball": (lambda: on_an_arm("spherical"), {"R": 0.7}, {"S": (0.2, 0.1, -0.3), "T": 0.4}),
    "ball backwards": (lambda: on_an_arm("spherical", True), {"R": 0.7}, {"S": (0.2, 0.1, -0.3), "T": 0.4}),
    "ball with axes": (
        lambda: on_an_arm("spherical", axis=(1, 2, 0), axis2=(-2, 1, 0)),
        {"R": -1.1},
        {"S": (0.2, 0.1, -0.3), "T": 0.4},
    ),
    "free": (lambda: on_an_arm("free"), {"R": 0.7}, {"S": (0.1, 0.2, 0.3, -0.3, 0.2, 0.1)}),
    "free backwards": (lambda: on_an_arm("free", True), {"R": 0.7}, {"S": (0.1, 0.2, 0.3, -0.3, 0.2, 0.1)}),
    "friction": (lambda: finger("friction", "R1", "R2", **RUBBING), {"R1": 0.2}, {"R2": 0.1}),
    "soft": (lambda: finger("soft", "R1", "R3", torsion=0.1, **RUBBING), {"R1": 0.2}, {"R3": 0.1}),
    "pinned": (lambda: finger("pinned", "R1", "R2"), {"R1": 0.2}, {"R2": 0.1}),
    "point": (lambda: finger("point", "R1", "R2", "R3", "S.1", **ON), {"R2": -0.1}, {"R1": 0.1}),
    "platform": (lambda: damped_ball_joints("gough-stewart"), {"L1": 1.05}, {"L2": 0.03, "L5": -0.02}),
    "delta": (lambda: damped_ball_joints("delta"), {"A2": 0.5}, {"A1": 0.1}),
    "grasp": (lambda: kic.load("three-finger-hand"), {"swing1": 0.1}, {"curl2": 0.05}),
    "soft hand": (lambda: held(("soft",) * 3, 20, 4), {"j01": 0.05}, {"j10": 0.04}),
    "mixed hand": (lambda: held(("point", "soft", "pinned"), 38, (1, 4, 3)), {"j00": 0.05}, {"j11": 0.04}),
}


def pair(case: str) -> tuple[kic.Mechanism, kic.Configuration, kic.Configuration]:
    """Return a locked mechanism, its configuration, and that of the unlocked one, at the same place."""
    make, locks, steps = CASES[case]
    m = make()
    locked = m.lock(locks)
    balls = {j.name for j in m.joints if j.type in ("spherical", "free")}
    rest = {c: locked.at().value(c) for c in locked.coordinates if c.partition(".")[0] not in balls}
    rest |= {name: np.zeros(m[name].dof) for name in balls if name in steps}
    there = {name: np.add(x, steps.get(name, 0.0)) for name, x in rest.items()}
    if m._model.tree.open:
        return locked, locked.at(there), m.at({**there, **locks})
    near = m.at({**rest, **locks}, near=m.at())
    return locked, locked.at(there, near=locked.at()), m.at({**there, **locks}, near=near)


def assert_same(a: np.ndarray, b: np.ndarray) -> None:
    """Check that two results agree within errors of closed loops, relative to their largest entry."""
    assert np.array_equal(np.isnan(a), np.isnan(b))
    size = max(np.nanmax(np.abs(b), initial=0.0), 1.0)
    assert np.allclose(a, b, rtol=0.0, atol=1e-9 * size, equal_nan=True)


def wrench(of: kic.JointForce) -> np.ndarray:
    """Return the force, and the moment about the origin: joints without a point have one of the reference."""
    return np.concatenate([of.force, of.moment + np.cross(of.point, of.force)])


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_with_the_joints_at_rest(case: str) -> None:
    locked, one, other = pair(case)
    names, locks = one.dynamics().coordinates, [*CASES[case][1]]
    balls = [name for name in CASES[case][2] if name in locked._joints and locked[name].dof > 2]
    wrt = [*balls, *(name for name in names if name.partition(".")[0] not in balls), *locks]
    whole = other.dynamics(wrt=wrt)
    free = [whole.coordinates.index(name) for name in names]

    def columns(a: np.ndarray, first: int = 0) -> np.ndarray:
        for axis in range(first, a.ndim):
            a = a.take(free, axis=axis)
        return a

    parts = [x.name for x in (*locked.bodies, *locked.joints, *locked.contacts, *locked.points)]
    parts = [name for name in parts if name not in locks]
    found, wanted = one.coefficients(parts, order=3), other.coefficients(parts, order=3, wrt=wrt)
    assert found.rows == wanted.rows
    for order in "GHD":
        assert_same(getattr(found, order), columns(getattr(wanted, order), 1))
    d = one.dynamics()
    for key in ("I", "P", "load", "damping"):
        assert_same(getattr(d, key), columns(getattr(whole, key)))
    motion = np.random.default_rng(5).normal(size=(2, len(names)))
    moving = np.zeros((2, len(whole.coordinates)))
    moving[:, free] = motion
    assert_same(d.inverse_dynamics(*motion), whole.inverse_dynamics(*moving)[free])
    forces = one.joint_forces(*motion, actuators=names)
    others = other.joint_forces(*moving, wrt=wrt, actuators=wrt)
    for name in (*locked.joints, *locked.contacts):
        if name.name not in locks:
            assert_same(wrench(forces[name.name]), wrench(others[name.name]))
    if d.holonomic:
        K, C = (getattr(one.linearize(*motion), key) for key in "KC")
        all_K, all_C = (getattr(other.linearize(*moving, wrt=wrt), key) for key in "KC")
        assert_same(K, columns(all_K))
        assert_same(C, columns(all_C))


def test_an_open_contact_keeps_its_rows() -> None:
    """The reference configuration of a contact is one where its rows are zero."""
    m = finger("friction", "R1", "R2", **RUBBING)
    m = m.replace("touch", closed=False).replace(coordinates=None)
    with raises(kic.ModelError, name="touch") as caught:
        m.lock({"R1": 0.2})
    rows = m.at([0.2, *np.zeros(m.dof - 1)]).coefficients("touch", order=1).values
    assert [*caught.value.rows.values()] == pytest.approx(rows)
    assert m.lock(["R1"]).contacts == m.contacts
    assert m.without("touch").lock({"R1": 0.2}).dof == m.dof - 1


def test_an_open_contact_that_slides_or_spins() -> None:
    """A point slides along its plane. A soft finger must not spin; other contacts may."""
    slide = kic.Joint("J", "prismatic", ("ground", "box"), axis=X)
    turn = kic.Joint("J", "revolute", ("ground", "box"), (0, 0, 0), Z)
    soft = {"friction": 0.5, "torsion": 0.1}
    for joint, kind, given, fits in (
        (slide, "point", {}, True),
        (slide, "friction", {"friction": 0.5}, False),
        (turn, "friction", {"friction": 0.5}, True),
        (turn, "soft", soft, False),
    ):
        contact = kic.Contact("c", kind, ("ground", "box"), (0, 0, 0), normal=Z, closed=False, **given)
        m = kic.Mechanism("sliding", [body("box", 0, 0, 1)], [joint], contacts=[contact])
        if fits:
            locked = m.lock({"J": 0.3})
            assert np.allclose(locked.at().coefficients("c", order=1).values, 0.0, atol=1e-12)
        else:
            with raises(kic.ModelError, name="c"):
                m.lock({"J": 0.3})


def test_files_keep_the_axes(tmp_path: Path) -> None:
    for m in (on_an_arm("spherical").lock({"R": 0.7}), finger("soft", "R1", "R3", torsion=0.1, **RUBBING)):
        locked = m if m.dof > 3 else m.lock({"R1": 0.2})
        locked.save(tmp_path / "m.toml")
        read = kic.load(tmp_path / "m.toml")
        assert (read.joints, read.contacts) == (locked.joints, locked.contacts)


LOCKED_ROWS = {
    "one row": ["p6.x"],
    "point": ["p6"],
    "points": ["p6.y", "p3.z"],
    "contact of an edge": ["b6.z", "b6.wx", "b6.wz"],
    "orientation": ["b6.wx", "b6.wy", "b6.wz"],
    "pose": ["b6"],
}


@pytest.mark.parametrize("case", LOCKED_ROWS)
def test_results_are_those_with_the_rows_at_rest(case: str) -> None:
    """A chain whose end is held is a block of the model in w = (q, c), and its loads are T_c (4-31)."""
    rng, rows = np.random.default_rng(7), LOCKED_ROWS[case]
    m = random_tree(rng, "RRPRRRR", loads=True)
    locked, c = m.lock(rows), m.at()
    held, q = c.coefficients(rows).rows, locked.coordinates
    n, w = len(q), [*q, *held]
    assert (locked.dof, len(w)) == (7 - len(held), 7)
    found, whole = locked.at().dynamics(), c.dynamics(wrt=w)
    qd, qdd = rng.normal(size=(2, n))
    assert_same(found.I, whole.I[:n, :n])
    assert_same(found.P @ qd @ qd, whole.P[:n, :n, :n] @ qd @ qd)
    assert_same(found.load, whole.load[:n])
    u, v = (x.coefficients(["p2", "b4"], order=3, **k) for x, k in ((locked.at(), {}), (c, {"wrt": w})))
    for tensor in "GHD":
        a, b = getattr(u, tensor), getattr(v, tensor)
        assert_same(a, b[(slice(None), *(slice(n),) * (b.ndim - 1))])
    forces = locked.at().joint_forces(qd, qdd)
    rest = np.zeros(len(held))
    loads = dict(zip(w, whole.inverse_dynamics(np.append(qd, rest), np.append(qdd, rest)), strict=True))
    for owner in {row.partition(".")[0] for row in held}:
        lock = forces[f"{owner} lock"]
        acts = np.concatenate([lock.force, lock.moment])
        for k, row in enumerate(("x", "y", "z", "wx", "wy", "wz")):
            load = loads.get(f"{owner}.{row}", 0.0)
            assert abs(acts[k] - load) < 1e-8 * (1 + max(map(abs, loads.values())))
    away = locked.at(locked.at().value(q) + 0.01)
    valued = [row for row in held if ".w" not in row]
    for row in valued:
        assert abs(away.value(row) - c.value(row)) < 1e-9
    if len(held) - len(valued) == 3:
        assert (away.pose("b6").rotation * c.pose("b6").rotation.inv()).magnitude() < 1e-9


def test_rows_locked_at_values() -> None:
    m = kic.load("planar-4r")
    locked = m.lock({"tip": [0.6, 0.75, 0.0]})
    assert (locked.dof, locked.unlock().dof, locked.unlock("tip").lock("joint1").dof) == (2, 4, 3)
    away = locked.at(locked.at().value(locked.coordinates) + 0.1)
    assert np.abs(away.value("tip") - [0.6, 0.75, 0.0]).max() < 1e-9
    turned = m.lock({"link4.angle": 0.5}).lock("tip.x")
    assert (turned.dof, turned.lock({"joint1": 0.1}).dof) == (2, 1)
    joints = [f"joint{k}" for k in (1, 2, 3, 4)]
    away = turned.at(turned.at().value(turned.coordinates) + 0.01)
    assert abs(away.value(joints).sum() - m.at().value(joints).sum() - 0.5) < 1e-9
    assert abs(away.value("link4.angle")) < 1e-9  # from the new reference configuration
    assert locked.total_mass == m.total_mass
    again = m.lock("tip.x").replace(gravity=(0, 0, 0)).lock("tip.y")
    assert (again.dof, {joint.name for joint in again.joints} >= {"tip lock", "tip 2 lock"}) == (2, True)


def ball_arm(base: str) -> kic.Mechanism:
    """Return an arm on a base whose last link has a spherical joint and a tip."""
    first = kic.Joint("A", "revolute", ("ground", "a"), (0, 0, 0), Z)
    return kic.Mechanism(
        "ball arm",
        [body("a", 0.5, 0, 0), body("b", 1, 0.5, 0), body("c", 1.2, 1, 0.1)],
        [
            first if base == "hinge" else kic.Joint("A", "free", ("ground", "a"), (0, 0, 0)),
            kic.Joint("B", "revolute", ("a", "b"), (1, 0, 0), (0, 1, 0.3)),
            kic.Joint("W", "spherical", ("b", "c"), (1, 1, 0)),
        ],
        points=[kic.Point("tip", "c", at=(1.5, 1.1, 0.2))],
    )


@pytest.mark.parametrize("given", ["tip.x", {"tip.x": 1.45}])
@pytest.mark.parametrize("base", ["hinge", "free"])
def test_rows_locked_beside_rotations_keep_whole_rotations(base: str, given: str | dict[str, float]) -> None:
    """The remaining coordinates have values, so that the mechanism can be moved and simulated."""
    m = ball_arm(base)
    locked = m.lock(given)
    assert (locked.dof, {"W.1", "W.2", "W.3"} <= {*locked.coordinates}) == (m.dof - 1, True)
    run = locked.simulate(0.1)
    assert np.abs(run.configuration.value("tip.x") - locked.at().value("tip.x")).max() < 1e-7


def test_rows_that_leave_parts_of_rotations_have_no_solution() -> None:
    with raises(kic.InputError, key="values", coordinates=("A",)):
        ball_arm("hinge").lock({"tip": [1.5, 1.1, 0.25]})
    assert ball_arm("hinge").lock("tip").dof == 2


@pytest.mark.parametrize("turn", [0.0, np.pi / 2, np.pi, 0.3])
def test_rotations_that_a_plane_forbids_are_locked_without_effect(turn: float) -> None:
    """The normal of the plane is known to rounding."""
    normal = Rotation.from_rotvec([0.0, turn, 0.0]).apply(Z)
    side = Rotation.from_rotvec([0.0, turn, 0.0]).apply(X)
    joints = [
        kic.Joint("A", "revolute", ("ground", "a"), (0, 0, 0), normal),
        kic.Joint("B", "revolute", ("a", "b"), tuple(side), normal),
    ]
    m = kic.Mechanism(
        "plane", [kic.Body(x, mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1)) for x in "ab"], joints
    )
    # the rows that turn with the plane, about axes at right angles to its normal
    rest = ["b.wy"] + [f"b.{w}" for w, n in (("wx", normal[0]), ("wz", normal[2])) if abs(n) < 1e-9]
    assert m.lock(rest).dof == 2
    assert m.lock([*rest, "b.angle"]).dof == 1


def test_guides_have_names_of_their_own() -> None:
    m = kic.load("planar-4r").add(kic.Point("tip slide 1", "link1", (0, 0, 0)))
    assert "tip 2 lock" in {joint.name for joint in m.lock("tip.x").joints}


def test_loads_of_rows_need_as_many_actuators_as_remain() -> None:
    c = kic.load("two-arms").lock("load.z").at()
    rest = np.zeros(5)
    assert np.isnan(c.joint_forces(rest, rest)["load lock"].force).any()
    assert np.isfinite(c.joint_forces(rest, rest, actuators=c.coordinates)["load lock"].force).all()


BAD_ROWS = {
    "one angular velocity": ("link6.wx", {"key": "values", "name": "link6"}),
    "no such row": ("link6.q", {}),
    "a rate with a value": ({"link6.wx": 0.1}, {"key": "values", "name": "link6.wx"}),
    "a value beside a rate": ({"waist": 0.1, "link6.wx": None}, {"key": "values", "name": "link6.wx"}),
    "a point of the ground": ("post", {"key": "values", "name": "post"}),
    "a row of the ground": ({"post.x": 0.1}, {"key": "values", "name": "post.x"}),
    "no number": ({"tool": [0.1, 0.2, np.nan]}, {"key": "values"}),
    "two numbers": ({"tool": [0.1, 0.2]}, {"key": "values"}),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_raise(case: str) -> None:
    given, numbers = BAD_ROWS[case]
    error = kic.InputError if numbers else kic.UnknownNameError
    with raises(error, **numbers):
        kic.load("puma560").add(kic.Point("post", "ground", (0, 0, 0))).lock(given)
