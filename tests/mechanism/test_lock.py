"""Joints that are locked, unlocked, or replaced by another type."""

from dataclasses import replace

import numpy as np
import pytest
from raising import raises
from scipy.spatial.transform import RigidTransform, Rotation

import kic


def test_a_locked_arm_is_the_arm_with_constant_coordinates() -> None:
    arm = kic.load("panda")
    locked = arm.lock({"joint4": -1.5, "joint7": 0.3})
    free = [0, 1, 2, 4, 5]
    phi = np.random.default_rng(3).uniform(-1.0, 1.0, (6, 7))
    phi[:, [3, 6]] = -1.5, 0.3
    a, b = locked.at(phi[:, free]), arm.at(phi)
    assert locked.coordinates == tuple(arm.coordinates[k] for k in free)
    assert np.allclose(a.value("flange"), b.value("flange"), atol=1e-13)
    for order in "GH":
        whole = getattr(b.coefficients("flange"), order)
        for axis in range(2, whole.ndim):
            whole = whole.take(free, axis=axis)
        assert np.allclose(getattr(a.coefficients("flange"), order), whole, atol=1e-12)
    effort = b.inverse_dynamics(0.3 * np.eye(7)[free].sum(0), np.eye(7)[free].sum(0))
    assert np.allclose(a.inverse_dynamics(np.full(5, 0.3), np.ones(5)), effort[:, free], atol=1e-11)


@pytest.mark.parametrize(
    ("model", "values"),
    [("five-bar", {"A": 2.0}), ("gough-stewart", {"L1": 1.05, "L4": 1.1}), ("five-bar", {"C": -2.0})],
)
def test_loops_close_at_the_locked_value(model, values) -> None:
    m = kic.load(model)
    locked = m.lock(values)
    assert locked.dof == m.dof - len(values) == len(locked.coordinates)
    rest = {c: locked.at().value(c) + 0.01 for c in locked.coordinates}
    a, b = locked.at(rest), m.at({**values, **rest})
    assert np.allclose(a.coefficients("com").values, b.coefficients("com").values, atol=1e-9)
    kept = [m.coordinates.index(c) for c in locked.coordinates if c in m.coordinates]
    if set(values) <= set(m.coordinates):
        assert np.allclose(
            a.dynamics().load, b.dynamics().load[kept], atol=1e-9 * abs(b.dynamics().load).max()
        )
    again = locked.unlock()
    assert again.dof == m.dof
    for name, value in values.items():
        assert abs(again.at().value(name) - value) < 1e-10


def test_a_leg_that_is_a_distance_is_locked() -> None:
    m = kic.linkages.stewart(base_radius=1.0, platform_radius=0.5, height=1.0, legs="distance")
    locked = m.lock({"L1": 1.2})
    assert (locked.dof, locked["L1"].fixed) == (5, True)
    assert locked.lock(["L2", "L3"]).coordinates == ("L4", "L5", "L6")
    assert locked.lock(["L2", "L3"]).unlock(["L1", "L3"]).coordinates == ("L1", "L3", "L4", "L5", "L6")


def test_a_coupling_locks_the_last_of_its_joints() -> None:
    names = ("a", "b", "c")
    m = kic.Mechanism(
        "row",
        [kic.Body(name) for name in names],
        [
            kic.Joint(name.upper(), "revolute", ("ground", name), (k, 0, 0), (0, 0, 1))
            for k, name in enumerate(names)
        ],
        couplings=[kic.Coupling("sum", ("A", "B", "C"), ratios=(1.0, 2.0, 3.0))],
        points=[kic.Point("tip", "c", (3, 0, 0))],
        coordinates=["A", "B"],
    )
    one = m.lock({"A": 0.3})
    assert one.coordinates == ("B",)
    assert abs(one.at({"B": 0.2}).value("C") + 0.7 / 3) < 1e-12
    both = one.lock({"B": 0.2})
    assert (both.dof, both["C"].type, both.couplings) == (0, "fixed", ())
    assert np.allclose(both.at().value("tip"), m.at([0.3, 0.2]).value("tip"))


@pytest.mark.slow
def test_bad_locks_raise() -> None:
    with pytest.raises(kic.ConfigurationError):
        kic.linkages.four_bar(ground=4.0, crank=1.0, coupler=3.5, rocker=3.0).lock({"D": 0.1})


@pytest.mark.parametrize("new", ["fixed", "prismatic", "cylindrical", "spherical"])
def test_a_joint_changes_its_type_in_one_call(new) -> None:
    m = kic.load("horn-two-link").replace("elbow", damping=1.0, limits=(-1.0, 1.0), stiffness=2.0)
    made = m.replace("elbow", type=new)
    assert made["elbow"].type == new
    assert made["elbow"].at == m["elbow"].at
    assert made.dof == 1 + {"fixed": 0, "prismatic": 1, "cylindrical": 2, "spherical": 3}[new]
    assert not any(made["elbow"].stiffness)
    assert m.replace("elbow", type="revolute") == m
    made.at().coefficients("tip")


def test_locks_of_dependent_joints_solve_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four four-bars with three locked rockers: only the crank of the fourth remains a coordinate."""
    one, sides = kic.load("four-bar"), "abcd"

    def name(part: str, side: str) -> str:
        return part if part == "ground" else part + side

    m = kic.Mechanism(
        "row",
        bodies=[replace(b, name=name(b.name, s)) for s in sides for b in one.bodies],
        joints=[
            replace(j, name=name(j.name, s), bodies=tuple(name(b, s) for b in j.bodies))
            for s in sides
            for j in one.joints
        ],
        coordinates=["A" + s for s in sides],
    )
    rest, calls = {"D" + s: float(m.at().value("D" + s)) for s in sides[:3]}, []
    solve = kic.Mechanism.at
    monkeypatch.setattr(kic.Mechanism, "at", lambda *a, **k: calls.append(a) or solve(*a, **k))
    locked = m.lock(rest)
    assert locked.mobility().dof == 1
    assert locked.coordinates == ("Ad",)
    assert len(calls) <= 3


def on_a_base(model: str, kind: str) -> kic.Mechanism:
    """Return a shipped closed mechanism whose ground is a body on a free or ball joint, maybe of an arm."""
    one, on_arm = kic.load(model), kind.endswith("arm")
    bodies = [kic.Body(name, mass=2.0, com=(0, 0, 0.1), inertia=(0.1, 0.1, 0.1)) for name in ("base", "arm")]
    joints = [kic.Joint("float", kind.split()[0], ("arm" if on_arm else "ground", "base"), (0, 0, 0))]
    if on_arm:
        joints.append(kic.Joint("R", "revolute", ("ground", "arm"), (0, 0.1, 0), (1, 0, 0.2)))

    def name(part: str) -> str:
        return "base" if part == "ground" else part

    return kic.Mechanism(
        "on a base",
        [*bodies[: 1 + on_arm], *one.bodies],
        [*joints, *(replace(j, bodies=tuple(map(name, j.bodies))) for j in one.joints)],
        points=[replace(p, body=name(p.body)) for p in one.points],
        coordinates=[*(j.name for j in joints), *one.coordinates],
    )


@pytest.mark.parametrize("kind", ["free", "spherical", "free on an arm", "spherical on an arm"])
@pytest.mark.parametrize(("model", "values"), [("five-bar", {"A": 2.0}), ("gough-stewart", {"L1": 1.05})])
def test_locks_on_a_base_that_moves(model, values, kind) -> None:
    """The base stays at the reference, and the mechanism on it is the one on the ground."""
    m, one, (name,) = on_a_base(model, kind), kic.load(model), values
    base = m.dof - one.dof
    assert base == {"free": 6, "spherical": 3}[kind.split()[0]] + ("arm" in kind)
    for given in (name, values):
        locked = m.lock(given)
        assert locked.dof == len(locked.coordinates) == m.dof - 1
        assert set(locked.coordinates) == set(m.coordinates) - {name}
        assert np.abs(locked.at().pose("base").as_matrix() - np.eye(4)).max() < 1e-12
        for mine, grounded in zip(locked.points, one.lock(given).points, strict=True):
            assert np.abs(np.subtract(mine.at, grounded.at)).max() < 1e-10
        both = locked.lock("float")
        assert both.dof == one.dof - 1 + ("arm" in kind)
        assert set(both.unlock("float").coordinates) == set(locked.coordinates)
        assert (both.unlock().dof, both.unlock(name).dof) == (m.dof, both.dof + 1)
    assert m.lock("float").coordinates == m.coordinates[-one.dof - ("arm" in kind) :]


def test_a_base_locked_at_a_pose_carries_the_loop() -> None:
    pose = RigidTransform.from_components([0.1, 0.2, 0.3], Rotation.from_rotvec([0.4, -0.3, 0.2]))
    m = on_a_base("five-bar", "free")
    locked = m.lock({"float": pose, "A": 2.0})
    assert locked.coordinates == ("E",)
    tip = kic.load("five-bar").lock({"A": 2.0}).at().value("tip")
    assert np.abs(locked.at().value("tip") - pose.apply(tip)).max() < 1e-10
    for wrong in ({"float": [0.0] * 5}, {"float": np.zeros((2, 6))}, {"A": [1.0, 2.0]}):
        with pytest.raises(kic.InputError):
            m.lock(wrong)


@pytest.mark.parametrize("name", kic.model_names())
def test_a_lock_by_name_needs_no_solution(name, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every joint of every model, also with rotations, is held as it is, and unlocked to the same."""
    m = kic.load(name)
    at = kic.Mechanism.at
    reference = m.at()

    def only_reference(self, values=None, **options):
        assert values is None
        return at(self, values, **options)

    monkeypatch.setattr(kic.Mechanism, "at", only_reference)
    coupled = {joint.partition(".")[0] for terms in m._terms.values() for joint, _ in terms}
    for joint in m.joints[:6]:
        if not joint.dof or joint.name in coupled:
            continue
        locked = m.lock(joint.name)
        G = reference.coefficients(joint.name, order=1).G
        assert locked.dof == len(locked.coordinates) == m.dof - np.linalg.matrix_rank(G, tol=1e-8)
        assert locked.unlock() == m
        assert [j.at for j in locked.joints] == [j.at for j in m.joints]


def test_a_ball_joint_that_others_hold_agrees_with_them() -> None:
    """Values of the legs of a platform turn it; then no ball joint of it is at the reference."""
    m = kic.load("gough-stewart")
    values = {f"L{k}": 1.0 + 0.05 * (k == 1) for k in range(1, 7)}
    assert m.lock(values).dof == 0
    for ball in ("S1", "S4"):
        with raises(kic.InputError, key="values", name=f"{ball}.1"):
            m.lock({**values, ball: [0.0, 0.0, 0.0]})
        legs = m.at(values)
        first, second = (legs.pose(body).rotation for body in m[ball].bodies)
        assert m.lock({**values, ball: first.inv() * second}).dof == 0


RODS = [
    kic.Joint("A", "revolute", ("ground", "a"), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    kic.Joint("S", "spherical", ("a", "b"), (0.1, 0.0, 0.0)),
    kic.Joint("T", "spherical", ("b", "c"), (0.3, 0.05, 0.2)),
    kic.Joint("D", "revolute", ("c", "ground"), (0.3, 0.05, 0.0), (0.0, 1.0, 0.0)),
]


@pytest.mark.parametrize(("idle", "values"), [("S.1", {"A": 0.1}), ("T.2", {"D": 0.05}), ("S.3", "A")])
def test_a_lock_keeps_one_component_of_a_rotation(idle, values) -> None:
    """A rod of the RSSR spins; its crank or rocker is locked, by name or at a value, and its length stays."""
    bodies = [kic.Body(name, mass=1.0, com=(0.1, 0.0, 0.1), inertia=(0.1, 0.1, 0.1)) for name in "abc"]
    m = kic.Mechanism("rod", bodies, RODS, coordinates=["A", idle])
    held = m.lock(values)
    assert (held.dof, held.coordinates) == (1, (idle,))
    there = held.unlock()
    assert there.dof == 2
    for name, value in values.items() if isinstance(values, dict) else ():
        assert abs(there.at().value(name) - value) < 1e-12
    A, D = (there.at().value(name) for name in "AD")
    S = 0.1 * np.array([np.cos(A), np.sin(A), 0.0])
    T = [0.3 - 0.2 * np.sin(D), 0.05, 0.2 * np.cos(D)]
    assert abs(np.linalg.norm(S - T) - np.linalg.norm([0.2, 0.05, 0.2])) < 1e-12
    assert np.allclose([there["S"].at, there["T"].at], [S, T], rtol=0, atol=1e-12)
    free = there.at().coefficients("b", order=1, wrt=["A", idle]).G[:, 1:]
    assert np.allclose(held.at().coefficients("b", order=1).G, free, atol=1e-12)


@pytest.mark.parametrize("coordinates", [["R", "A"], ["R", "B"]])
def test_a_lock_of_a_rocker_at_its_dead_centre_raises(coordinates) -> None:
    """Its rate is zero, but the lock takes a degree of freedom; a hinge in a truss takes none."""
    z, D = (0, 0, 1), (2.5, 1.25, 0)
    m = kic.Mechanism(
        "arm with a four-bar",
        [kic.Body(name) for name in ("base", "a", "b", "c")],
        [
            kic.Joint("R", "revolute", ("ground", "base"), (-1, 0, 0), z),
            kic.Joint("A", "revolute", ("base", "a"), (0, 0, 0), z),
            kic.Joint("B", "revolute", ("a", "b"), (1, 0, 0), z),
            kic.Joint("C", "revolute", ("b", "c"), (3, 0, 0), z),
            kic.Joint("D", "revolute", ("c", "base"), D, z),
        ],
        coordinates=coordinates,
    )
    with raises(kic.SingularError, names=("D",), key="values"):
        m.lock("D")
    with raises(kic.SingularError, names=("D",), key="values"):
        m.lock({"D": -0.1})
    assert m.lock("C").coordinates == ("R",)
    moved = m.lock({"A": 0.3}).unlock()
    assert (moved.dof, moved.lock("D").coordinates) == (2, ("R",))
    truss = m.lock("A").unlock().add(
        kic.Body("d"),
        kic.Joint("E", "revolute", ("base", "d"), (0, 0, 0), z),
        kic.Joint("F", "revolute", ("d", "b"), (2, 1, 0), z),
    ).replace(coordinates=["R"])  # fmt: skip
    assert (truss.dof, truss.lock("D").coordinates) == (1, ("R",))


@pytest.mark.parametrize(
    ("model", "joints", "ratios", "kept"),
    [
        ("horn-two-link", ("shoulder", "elbow"), (3.0, -2.0), 1),
        ("panda", ("joint5", "joint6", "joint7"), (2.0, 5.0, 7.0), 2),
        ("gough-stewart", ("L1", "L4"), (300.0, 200.0), 1),
    ],
)
def test_a_motor_of_a_locked_joint_drives_the_rest(model, joints, ratios, kept) -> None:
    """The inertia of its rotor, reflected to the joint that is left, is that of this joint alone."""
    m = kic.load(model).replace(motors=[kic.Motor("M", joints, ratios=ratios, inertia=0.1)])
    locked = m.lock([name for name in joints if name != joints[kept]])
    assert locked.motors == (replace(m["M"], joints=(joints[kept],), ratios=(ratios[kept],)),)
    with_motor, alone = (locked.at().dynamics(motors=motors).I for motors in (True, False))
    expected = np.zeros_like(alone)
    k = locked.coordinates.index(joints[kept])
    expected[k, k] = 0.1 * ratios[kept] ** 2
    assert np.allclose(with_motor - alone, expected, rtol=1e-12, atol=1e-9)
    assert locked.unlock().motors == m.motors
    assert not m.lock(joints).motors


def test_swings_of_joints_that_stay_at_the_reference() -> None:
    """A hinge below is locked where it turns the universal joint as a whole; its swing has two angles."""
    m = kic.Mechanism(
        "pendulum",
        [kic.Body("arm"), kic.Body("rod")],
        [
            kic.Joint("K", "revolute", ("ground", "arm"), (0, 0, 1), (1, 2, 2)),
            kic.Joint(
                "T", "universal", ("arm", "rod"), (0, 0, 2), (1, 0, 0), axis2=(0, 1, 0), swing=0.7,
                swing_axis=(0, 0, 1),
            ),
        ],
    )  # fmt: skip
    locked = m.lock({"K": 0.3})
    swing = locked.at({"T": [0.2, -0.5]}).value("T.swing")
    assert abs(swing - np.arccos(np.cos(0.2) * np.cos(0.5))) < 1e-12
    with raises(kic.ConfigurationError):
        locked.at({"T": [0.6, 0.6]}, limits=True)
    for given in ({"T": [0.1, 0.2]}, {"K": 0.3, "T": [0.1, 0.2]}):
        with raises(kic.ModelError, name="T"):
            m.lock(given)
    assert m.replace("T", swing=None, swing_axis=None).lock({"T": [0.1, 0.2]}).coordinates == ("K",)
    assert m.lock("T").coordinates == ("K",)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e10])
def test_locks_do_not_depend_on_the_unit_of_length(size: float) -> None:
    z = (0, 0, 1)
    joints = [
        kic.Joint("A", "revolute", ("ground", "a"), (0, 0, 0), z),
        kic.Joint("B", "revolute", ("a", "b"), (size, size, 0), z),
        kic.Joint("C", "revolute", ("b", "c"), (3 * size, 0, 0), z),
        kic.Joint("S", "prismatic", ("c", "ground"), (0, 0, 0), (1, 0, 0)),
    ]
    m = kic.Mechanism("slider-crank", [kic.Body(name) for name in "abc"], joints, coordinates=["S"])
    assert (m.lock("S").dof, m.lock({"A": 0.01}).dof, m.lock(["A"]).dof) == (0, 0, 0)
