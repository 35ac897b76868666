"""The mechanism in its reference configuration: displacements of every joint type, trees, immutability."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from linkages import hinged
from raising import raises
from sampling import mismatch, random_body, random_joint, random_tree
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.description.joint_types import JOINT_DOF
from kic.description.parts import TENSOR_ENTRIES, check_inertia

MOVING = [kind for kind in JOINT_DOF if kind != "fixed"]
PAIRS = [("ground", "b"), ("b", "ground")]


def about(axis, angle, at) -> RigidTransform:
    """The turn about an axis through a point."""
    axis, at = np.asarray(axis, float), np.asarray(at, float)
    R = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
    return RigidTransform.from_components(at - R.apply(at), R)


def along(axis, length) -> RigidTransform:
    axis = np.asarray(axis, float)
    return RigidTransform.from_translation(length * axis / np.linalg.norm(axis))


def displacement(joint: kic.Joint, q) -> RigidTransform:
    """Return the motion of the second body relative to the first, in world axes."""
    q = np.asarray(q, float) - np.array(joint.value)
    a, b, p = joint.axis, joint.axis2, joint.at
    if joint.type == "fixed":
        return RigidTransform.identity()
    if joint.type == "revolute":
        return about(a, q[0], p)
    if joint.type == "prismatic":
        return along(a, q[0])
    if joint.type == "cylindrical":
        return about(a, q[0], p) * along(a, q[1])
    if joint.type == "universal":
        return about(a, q[0], p) * about(b, q[1], p)
    if joint.type == "planar":
        return along(a, q[0]) * along(b, q[1]) * about(np.cross(a, b), q[2], p)
    turn = about(q[-3:], np.linalg.norm(q[-3:]), p)
    return turn if joint.type == "spherical" else RigidTransform.from_translation(q[:3]) * turn


def same(a, b, within: float = 1e-13) -> bool:
    return bool(np.abs(a.as_matrix() - b.as_matrix()).max() < within)


# ------------------------------------------------------------------------------------------- joints


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0])
@pytest.mark.parametrize("kind", JOINT_DOF)
def test_one_joint(kind: str, pair: tuple[str, str]) -> None:
    rng = np.random.default_rng(sum(map(ord, kind)))
    joint = replace(random_joint(rng, "J", kind, "ground", "b"), bodies=pair)
    m = kic.Mechanism("one", [kic.Body("b")], [joint], points=[kic.Point("tip", "b", (0.3, -0.2, 0.5))])
    assert m.dof == JOINT_DOF[kind]
    assert same(m.at().pose("b"), RigidTransform.identity(), 1e-14)
    assert m.at().value("tip").tolist() == pytest.approx([0.3, -0.2, 0.5], abs=1e-14)
    phi = rng.normal(size=(5, JOINT_DOF[kind]))
    c = m.at(phi)
    for b in range(5):
        D = displacement(joint, phi[b])
        wanted = D if pair[1] == "b" else D.inv()
        assert same(c.pose("b")[b], wanted)
        assert c.value("tip")[b] == pytest.approx(wanted.apply((0.3, -0.2, 0.5)), abs=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_a_branched_tree_of_all_joints(seed: int) -> None:
    """Poses along every branch, joints written in either order, walked from either side."""
    rng = np.random.default_rng(seed)
    m = random_tree(rng, [*rng.permutation(list(JOINT_DOF)), "revolute", "prismatic"], branched=seed > 1)
    q = {name: x for name, x in zip(m.coordinates, rng.normal(size=m.dof), strict=True)}
    c = m.at(q)
    poses = {"ground": RigidTransform.identity()}
    todo = list(m.joints)
    while todo:
        for joint in list(todo):
            first, second = joint.bodies
            if first in poses or second in poses:
                D = displacement(joint, [q[name] for name in joint.components])
                if first in poses:
                    poses[second] = poses[first] * D
                else:
                    poses[first] = poses[second] * D.inv()
                todo.remove(joint)
    for body in m.bodies:
        assert same(c.pose(body.name), poses[body.name], 1e-12)
        assert c.value(f"{body.name}.x") == pytest.approx(poses[body.name].apply(body.com)[0], abs=1e-12)


@pytest.mark.parametrize("kind", MOVING)
def test_axes_need_no_unit_length_and_coordinates_are_lengths_and_radians(kind: str) -> None:
    rng = np.random.default_rng(2)
    joint = random_joint(rng, "J", kind, "ground", "b")
    scaled = {
        key: tuple(f * np.array(getattr(joint, key)))
        for key, f in (("axis", 1e-60), ("axis2", 1e60))
        if getattr(joint, key)
    }
    tip = [kic.Point("tip", "b", (0.3, -0.2, 0.5))]
    one, two = (
        kic.Mechanism("m", [kic.Body("b")], [j], points=tip) for j in (joint, replace(joint, **scaled))
    )
    phi = rng.normal(size=(3, one.dof))
    a, b = one.at(phi).coefficients("tip"), two.at(phi).coefficients("tip")
    assert a.values == pytest.approx(b.values, abs=1e-13)
    assert mismatch(a.H, b.H) < 1e-13


def test_value_is_the_coordinate_in_the_reference_configuration() -> None:
    def arm(value: float) -> kic.Mechanism:
        joint = kic.Joint("A", "revolute", ("ground", "b"), at=(0, 0, 0), axis=(0, 0, 1), value=value)
        return kic.Mechanism("arm", [kic.Body("b")], [joint], points=[kic.Point("tip", "b", (1, 0, 0))])

    assert arm(0.5).at()._phi.tolist() == [0.5]
    assert arm(0.5).at([0.5]).value("tip").tolist() == [1.0, 0.0, 0.0]
    assert arm(0.5).at([0.7]).value("tip") == pytest.approx(arm(0.0).at([0.2]).value("tip"), abs=1e-14)


def test_points_distances_and_ground_contacts() -> None:
    m = kic.Mechanism(
        "post",
        [kic.Body("foot"), kic.Body("arm", com=(0, 0, 0), at=(0.5, 0, 0))],
        [
            kic.Joint("bolt", "fixed", ("ground", "foot")),
            kic.Joint("A", "revolute", ("foot", "arm"), at=(0, 0, 0), axis=(0, 0, 1)),
        ],
        points=[
            kic.Point("tip", "arm", (1, 0, 0)),
            kic.Point("nail", "ground", (0, 2, 0)),
            kic.Point("toe", "foot", (3, 0, 4)),
        ],
        distances=[kic.Distance("gap", ("nail", "tip")), kic.Distance("span", ("nail", "toe"))],
    )
    c = m.at([[0.0], [np.pi / 2]])
    assert c.value("gap") == pytest.approx([np.sqrt(5), 1.0], abs=1e-14)
    assert c.value("span") == pytest.approx([np.sqrt(29)] * 2, abs=1e-13)
    assert not c.coefficients(["span", "nail", "toe"], order=3).D.any()
    assert c.value("arm.x") == pytest.approx([0.5, 0.0], abs=1e-14)  # `at`, not the centre of mass
    assert c.value("arm.angle") == pytest.approx([0.0, np.pi / 2], abs=1e-14)


# -------------------------------------------------------------------------------- coordinates, trees


def test_coordinates_in_any_order_single_components_too() -> None:
    m = kic.load("twin-arm")
    names = list(m.coordinates)
    assert names[-2:] == ["neck.1", "neck.2"]
    turned = ["neck.2", *names[:4][::-1], "neck.1", *names[4:-2]]
    n = replace(m, coordinates=turned)
    rng = np.random.default_rng(0)
    q = dict(zip(names, rng.normal(size=10), strict=True))
    a, b = m.at(q), n.at(q)
    assert n.coordinates == tuple(turned) == b.coordinates
    assert b._phi.tolist() == [q[name] for name in turned]
    place = [names.index(name) for name in turned]
    for letter, rank in (("G", 1), ("H", 2), ("D", 3)):
        x = getattr(a.coefficients(["eyes", "left_hand"], order=3), letter)
        y = getattr(b.coefficients(["eyes", "left_hand"], order=3), letter)
        assert mismatch(y, x[(..., *np.ix_(*[place] * rank))]) < 1e-14
    assert mismatch(b.dynamics().load, a.dynamics().load[place]) < 1e-14
    assert replace(m, coordinates=turned) != m == replace(m, coordinates=names)


def loop() -> kic.Mechanism:
    """A four-bar whose loop is part of the drawing."""
    ends = [(0, 0, 0), (0, 1, 0), (2, 1.5, 0), (2, 0, 0)]
    return hinged(ends, bodies=("crank", "coupler", "rocker"))


def test_loops_are_drawn_and_named() -> None:
    m = loop()
    assert len(m.mobility().cuts) == 1
    assert "A" not in m.mobility().cuts
    assert m.dof == 1
    opened = replace(m, joints=[j for j in m.joints if j.name not in m.mobility().cuts], coordinates=None)
    assert opened.mobility().cuts == ()
    assert opened.dof == 3


def test_cuts_keep_wanted_joints_and_take_those_with_most_dof() -> None:
    def ring(coordinates: list[str]) -> kic.Mechanism:
        return kic.Mechanism(
            "ring",
            [kic.Body("a"), kic.Body("b")],
            [
                kic.Joint("S", "spherical", ("ground", "a"), at=(0, 0, 0)),
                kic.Joint("R", "revolute", ("a", "b"), at=(1, 0, 0), axis=(0, 0, 1)),
                kic.Joint("C", "cylindrical", ("b", "ground"), at=(2, 0, 0), axis=(0, 0, 1)),
            ],
            coordinates=coordinates,
        )

    assert ring(["R"]).mobility().cuts == ("S",)
    assert ring(["S", "R"]).mobility().cuts == ("C",)
    assert ring(["S.2"]).mobility().cuts == ("C",)


def test_mechanism_without_dof_of_any_kind() -> None:
    m = kic.Mechanism(
        "rock",
        [kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))],
        [kic.Joint("bolt", "fixed", ("ground", "b"))],
        points=[kic.Point("tip", "b", (1, 2, 3))],
    )
    assert m.dof == 0
    assert m.coordinates == ()
    for inputs in (None, [], {}, np.zeros((4, 0))):
        c = m.at(inputs)
        assert c.coefficients("tip", order=3).D.shape == (*c.batch, 3, 0, 0, 0)
        assert c.value("tip").shape == (*c.batch, 3)
    assert c.value("tip")[2].tolist() == [1.0, 2.0, 3.0]


def test_a_long_chain_written_backwards_is_checked_in_no_time() -> None:
    """Written from the tip on, so that no body is held by what comes before it."""
    count = 3000
    names = ["ground", *(f"b{i}" for i in range(count))]
    joints = [
        kic.Joint(f"j{i}", "prismatic", (names[i], names[i + 1]), axis=(1, 0, 0))
        for i in reversed(range(count))
    ]
    m = kic.Mechanism("chain", [kic.Body(name) for name in names[1:]], joints)
    assert len(m.coordinates) == count
    with raises(kic.ModelError, key="bodies[10]") as caught:
        replace(m, joints=[j for j in joints if j.name != "j10"])
    assert len(caught.value.bodies) == count - 10


# --------------------------------------------------------------------------------------------- loads


def loaded(**more) -> kic.Mechanism:
    rng = np.random.default_rng(8)
    bodies = [random_body(rng, "a"), random_body(rng, "b")]
    joints = [
        random_joint(rng, "U", "universal", "ground", "a"),
        random_joint(rng, "C", "cylindrical", "a", "b"),
    ]
    points = [kic.Point("tip", "b", (0.3, -0.2, 0.5)), kic.Point("nail", "ground", (2, 2, 2))]
    return kic.Mechanism("loaded", bodies, joints, points=points, **more)


PHI = np.random.default_rng(9).normal(size=(3, 4))


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (3, 0, 0), (1.0, -2.0, 0.5)])
def test_gravity_in_any_direction(gravity: tuple[float, ...]) -> None:
    m = loaded(gravity=gravity)
    c = m.at(PHI)
    G = c.coefficients(["a", "b"], order=1)
    wanted = sum(
        body.mass * np.einsum("bpn,p->bn", G[[f"{body.name}.{x}" for x in "xyz"]].G, gravity)
        for body in m.bodies
    )
    assert mismatch(c.dynamics().load, wanted) < 1e-14


@pytest.mark.parametrize("axes", ["world", "body"])
def test_forces_and_moments_of_the_model_and_of_the_caller(axes: str) -> None:
    m = loaded(
        forces=[kic.Force("push", "tip", (1, 2, 3), axes=axes)],
        moments=[kic.Moment("twist", "a", (-1, 0.5, 2), axes=axes)],
        gravity=(0, 0, 0),
    )
    c = m.at(PHI)
    at_tip = c.coefficients("tip", order=1).G
    on_a = c.coefficients(["a.wx", "a.wy", "a.wz"], order=1).G

    def wanted(push, twist) -> np.ndarray:
        push, twist = (np.broadcast_to(x, (3, 3)).astype(float) for x in (push, twist))
        if axes == "body":  # as they are in the drawing, turned with the body
            push, twist = c.pose("b").rotation.apply(push), c.pose("a").rotation.apply(twist)
        return np.einsum("bpn,bp->bn", at_tip, push) + np.einsum("bpn,bp->bn", on_a, twist)

    assert mismatch(c.dynamics().load, wanted((1, 2, 3), (-1, 0.5, 2))) < 1e-14
    assert mismatch(c.dynamics(applied={"push": (0, 0, 7)}).load, wanted((0, 0, 7), (-1, 0.5, 2))) < 1e-14
    many = np.random.default_rng(1).normal(size=(3, 3))
    assert (
        mismatch(c.dynamics(applied={"push": many, "twist": (1, 1, 1)}).load, wanted(many, (1, 1, 1))) < 1e-14
    )
    # one configuration, many forces
    alone = m.at(PHI[0]).dynamics(applied={"push": many}).load
    for k in range(3):
        assert mismatch(alone[k], m.at(PHI[0]).dynamics(applied={"push": many[k]}).load) < 1e-14


def test_gravity_has_one_default() -> None:
    """It is −9.81 m/s² along z in any constructor and reader, in the units of the mechanism."""
    urdf = """<robot name="r"><link name="base"/><link name="a"/>
        <joint name="J" type="continuous"><parent link="base"/><child link="a"/></joint></robot>"""
    made = [
        loaded(),
        kic.from_dh("arm", [kic.DHRow("A", "link", a=1.0)], convention="standard"),
        kic.linkages.four_bar(ground=4.0, crank=1.0, coupler=3.5, rocker=3.0),
        kic.from_urdf(urdf),
        kic.load("puma560").replace(gravity=None),
    ]
    for m in made:
        assert m.gravity == (0.0, 0.0, -9.81)
        assert "gravity (m/s²): 0, 0, -9.81" in str(m.summary())
    for units, value in ((dict(length="mm", mass="t"), -9810.0), (dict(time="ms", force="MN"), -9.81e-6)):
        m = loaded(units=kic.Units(**units))
        assert m.gravity == pytest.approx((0.0, 0.0, value), rel=1e-14)
    for changed in (loaded(), pickle.loads(pickle.dumps(loaded()))):
        assert changed.replace(units=kic.Units(length="mm", mass="t")).gravity[2] == pytest.approx(-9810.0)
    with raises(kic.ModelError, key="gravity") as caught:
        loaded(units=kic.Units(length="cubit"))
    assert "must be given in cubit/s²" in str(caught.value)
    assert loaded(units=kic.Units(length="cubit"), gravity=(0, 0, 0)).gravity == (0.0, 0.0, 0.0)


# ------------------------------------------------------------------------------------------ inertias


def test_springs_and_dampers() -> None:
    laws = dict(stiffness=(3.0, 5.0), rest=(0.2, -0.1), damping=(0.4, 0.6))
    plain = loaded(gravity=(0, 0, 0))
    joints = [plain.joints[0], replace(plain.joints[1], **laws)]
    spring = kic.Spring("s", ("tip", "nail"), stiffness=7.0, rest=0.3, damping=0.9)
    m = replace(plain, joints=joints, springs=[spring], distances=[kic.Distance("d", ("nail", "tip"))])
    c = m.at(PHI)
    stretch = c.coefficients("d", order=1).G[:, 0]
    pull = 7.0 * (c.value("d") - 0.3)
    wanted = -pull[:, None] * stretch
    wanted[:, 2:] -= np.array(laws["stiffness"]) * (PHI[:, 2:] - laws["rest"])
    assert mismatch(c.dynamics().load, wanted) < 1e-14
    damping = 0.9 * stretch[:, :, None] * stretch[:, None] + np.diag([0, 0, 0.4, 0.6])
    assert mismatch(c.dynamics().damping, damping) < 1e-14


def test_products_of_inertia_are_entries_of_the_tensor() -> None:
    """A body and the cloud of point masses that it stands for move alike: signs and places are right."""
    rng = np.random.default_rng(4)
    mass, r = rng.uniform(0.5, 2, 5), rng.normal(size=(5, 3))
    com = mass @ r / mass.sum()
    d = r - com
    tensor = np.einsum(
        "p,pij->ij", mass, np.eye(3) * (d**2).sum(-1)[:, None, None] - d[:, :, None] * d[:, None]
    )
    assert tensor[0, 1] == pytest.approx(-(mass * d[:, 0] * d[:, 1]).sum())
    six = tuple(tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
    joints = [random_joint(rng, "S", "spherical", "ground", "b")]
    cloud = kic.Mechanism(
        "cloud",
        [kic.Body("b", mass=0)],
        joints,
        points=[kic.Point(f"p{i}", "b", r[i], mass=mass[i]) for i in range(5)],
        gravity=(1, 2, 3),
    )
    massless = replace(cloud, bodies=[kic.Body("b", mass=0, inertia=(0, 0, 0))])
    for inertia in (tensor, six, tuple(map(tuple, tensor))):
        solid = kic.Mechanism(
            "solid", [kic.Body("b", mass=mass.sum(), com=com, inertia=inertia)], joints, gravity=(1, 2, 3)
        )
        phi = rng.normal(size=(3, 3))
        a, b = solid.at(phi).dynamics(), massless.at(phi).dynamics()
        for letter in ("I", "P", "load"):
            assert mismatch(getattr(a, letter), getattr(b, letter)) < 1e-13


POSSIBLE = [
    (0, 0, 0),
    (0, 1, 1),
    (1, 1, 2),
    (2, 1, 1),
    (1, 1, 1),
    (1e-300, 1e-300, 1e-300),
    (0, 2, 2, 0, 0, 0),
]
IMPOSSIBLE = [
    (1, 1, 2.1), (0, 1, 1.1), (1, 0, 0), (-1, 1, 1), (-1, -1, -1), (-1e-9, 1, 1.1), (1, 1, 1, 1, 0, 0),
    (1, 1, 1, 0, 0.9, 0.9), ((1, 0, 0), (0, 1, 0), (0, 0, 3)), (0, 0, 0, 0, 0, 1e-9),
]  # fmt: skip


@pytest.mark.parametrize("inertia", POSSIBLE)
def test_possible_inertias(inertia: tuple[float, ...]) -> None:
    matrix = kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=inertia).inertia
    assert np.shape(matrix) == (3, 3)
    assert np.array_equal(matrix, np.transpose(matrix))
    # the same matrix, whatever was given
    assert check_inertia("Body 'b'", matrix) == matrix
    given = np.ravel(inertia)
    if given.size in (3, 6):
        entries = [matrix[i][j] for i, j in zip(*TENSOR_ENTRIES, strict=True)]
        assert entries == [*given, *[0.0] * (6 - given.size)]
    # turned about, it stays possible
    for R in Rotation.random(20, rng=1).as_matrix():
        turned = R @ np.array(matrix) @ R.T
        check_inertia("Body 'b'", (turned + turned.T) / 2)


@pytest.mark.parametrize("inertia", IMPOSSIBLE)
def test_impossible_inertias(inertia: tuple) -> None:
    with raises(kic.ModelError, key="inertia") as caught:
        kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=inertia)
    assert caught.value.key == "inertia"
    low, middle, high = caught.value.principal
    assert low < 0 or high > low + middle
    assert caught.value.excess == pytest.approx(high - (low + middle))
    kept = kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=inertia, inertia_exception="printed so in table 3")
    matrix = np.array(kept.inertia)
    assert np.linalg.eigvalsh(matrix) == pytest.approx([low, middle, high])


def test_rounded_tables_pass() -> None:
    """Six printed digits of a flat body: the sum may be missed by half a unit of the last."""
    check_inertia("Body 'plate'", (0.123456, 0.234567, 0.358023 + 1e-7))
    with raises(kic.ModelError, key="inertia"):
        check_inertia("Body 'plate'", (0.123456, 0.234567, 0.358023 + 1e-6))


# -------------------------------------------------------------------------------------- immutability


PARTS = [
    kic.Body("b", mass=1.0, com=[0, 0, 0], inertia=np.eye(3), at=np.zeros(3)),
    kic.Joint(
        "U",
        "universal",
        ["a", "b"],
        [0, 0, 0],
        [0, 0, 1],
        axis2=[1, 0, 0],
        value=[1, 2],
        stiffness=[3, 4],
        rest=[5, 6],
        damping=7,
    ),
    kic.Point("p", "b", [1, 2, 3], mass=1),
    kic.Distance("d", ["p", "o"], fixed=True),
    kic.Force("f", "p", [1, 2, 3], axes="body"),
    kic.Moment("t", "b", np.ones(3)),
    kic.Spring("s", ["p", "o"], stiffness=1, rest=2, damping=3),
    kic.Coupling("k", ["A", "B"], ratios=np.array([1, 2])),
    kic.Units(length="mm", mass="t"),
    kic.DHRow("A", "b"),
    kic.load("twin-arm"),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_parts_are_immutable_values(part) -> None:
    for f in fields(part):
        with pytest.raises(FrozenInstanceError):
            setattr(part, f.name, getattr(part, f.name))
        with pytest.raises(FrozenInstanceError):
            delattr(part, f.name)
        value = getattr(part, f.name)
        assert value is None or isinstance(
            value, str | float | bool | tuple | kic.Units | kic.results.Info
        ), f.name
    with pytest.raises(FrozenInstanceError):
        part.surplus = 1
    for twin in (copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part)), replace(part)):
        assert twin == part
        assert hash(twin) == hash(part)
    assert part != replace(part, **{fields(part)[0].name: "other"})


def test_inputs_are_copied() -> None:
    at, bodies = np.array([1.0, 0.0, 0.0]), [kic.Body("b")]
    joints = [kic.Joint("A", "revolute", ("ground", "b"), at=(0, 0, 0), axis=(0, 0, 1))]
    points = [kic.Point("tip", "b", at)]
    m = kic.Mechanism("m", bodies, joints, points=points, coordinates=(names := ["A"]))
    before = m.at([0.3]).value("tip")
    at[:] = 9
    for given in (bodies, joints, points, names):
        given.clear()
    assert m.at([0.3]).value("tip").tolist() == before.tolist()
    assert m == kic.Mechanism("m", m.bodies, m.joints, points=m.points, coordinates=["A"])


def test_a_configuration_cannot_be_overwritten() -> None:
    phi = np.array([0.1, 0.2])
    m = kic.load("horn-two-link")
    c = m.at(phi)
    phi[:] = 5
    assert c._phi.tolist() == [0.1, 0.2]
    # an answer is the asker's own
    c.state[:] = 6
    c._phi[:] = 6
    tip = c.coefficients("tip")
    tip.G[:] = 7
    assert c._phi.tolist() == c.state.tolist() == [0.1, 0.2]
    assert c.coefficients("tip").G.max() < 7


def reloaded(x):
    """Return an object that was pickled."""
    return pickle.loads(pickle.dumps(x))


@pytest.mark.slow_for("stewart-6r")
@pytest.mark.parametrize("name", kic.model_names())
def test_caches_are_neither_pickled_nor_copied(name: str) -> None:
    """Pickles of a mechanism and its results keep their size when it is used; copies give equal numbers."""
    m = kic.load(name)
    fresh, of, rest = len(pickle.dumps(m)), m.joints[0].name, np.zeros(len(m.coordinates))

    def at() -> kic.Configuration:
        return m.at({q: m.at().value(q) for q in m.coordinates})

    def results() -> tuple:
        c = at()
        return m, c, c.coefficients(of), c.dynamics(), c.joint_forces(rest, rest)

    sizes = [len(pickle.dumps(x)) for x in results()]
    m.mobility(), m.at().coefficients(of, order=3), m.prepare.coefficients(of)(m.at().state)
    assert [len(pickle.dumps(x)) for x in results()] == sizes
    assert sizes[:2] == [fresh, len(pickle.dumps(at()))]
    _, c, G, T, _ = results()
    for copied in (copy.copy, copy.deepcopy, reloaded):
        again, twin, own_G, own_T, _ = map(copied, results())
        assert again == m
        assert np.array_equal(again.at().state, m.at().state)
        assert np.array_equal(twin.state, c.state)
        for one in (own_G, twin.coefficients(of)):
            assert np.array_equal(one.G, G.G)
        for two in (own_T, twin.dynamics()):
            assert np.array_equal(two.P, T.P)


@pytest.mark.slow
def test_used_mechanism_keeps_results_and_locks_small() -> None:
    """Runs, sweeps and assembly modes of a used mechanism are as large as those of a new one."""
    used, sizes = kic.load("four-bar"), []
    used.assembly_modes({"A": 1.2}, complete=True), used.lock("A").at(), used.simulate(0.01)
    for m in (kic.load("four-bar"), used):
        found = m.simulate(0.01), m.sweep({"A": [0.1, 0.2]}, "transmission"), m.assembly_modes({"A": 1.2})
        sizes.append([len(pickle.dumps(x)) for x in found])
    assert sizes[0] == sizes[1]
    assert reloaded(used.lock("A")).unlock() == used
