"""Mechanisms that are described with open loops, and closed by `Mechanism.close_loops`."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from raising import raises
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.description.joint_types import JOINT_DOF, LOOP_TYPES
from kic.mechanism.assembly import Loop, LoopFrame, closed_mechanism

Z = (0, 0, 1)


def chain(reach: float = 2.0, **more) -> kic.Mechanism:
    """Return three bars in a line, whose end is a four-bar linkage's second pin."""
    bodies = [
        kic.Body(name, mass=1.0 + k, com=(x, 0.1, 0), inertia=(0.1, 0.2, 0.25, 0.01, 0, 0))
        for k, (name, x) in enumerate((("crank", 0.5), ("coupler", 2.0), ("rocker", 4.0)))
    ]
    joints = [
        kic.Joint("A", "revolute", ("ground", "crank"), (0, 0, 0), Z, **more),
        kic.Joint("B", "revolute", ("crank", "coupler"), (1, 0, 0), Z),
        kic.Joint("C", "revolute", ("coupler", "rocker"), (3, 0, 0), Z),
    ]
    points = [kic.Point("end", "rocker", (5, 0, 0), mass=0.3), kic.Point("pin", "ground", (reach, 0, 0))]
    return kic.Mechanism("chain", bodies, joints, points=points, gravity=(0, -9.81, 0))


def test_coordinates_keep_their_values_and_dynamics_their_numbers():
    open_chain = chain()
    m = open_chain.close_loops([("end", "pin", "revolute")], near={"A": 1.0, "B": -0.5, "C": -2.0})
    assert (m.dof, [j.name for j in m.joints]) == (1, ["A", "B", "C", "end to pin"])
    c = m.at({m.coordinates[0]: m.at().value(m.coordinates[0]) + 0.1})
    values = {name: float(c.value(name)) for name in "ABC"}
    free = open_chain.at(values)
    assert np.abs(free.value("end") - [2, 0, 0]).max() < 1e-12
    # the closed mechanism is the chain, transferred by its own coefficients
    A = c.coefficients(["A", "B", "C"])
    d = free.dynamics()
    assert np.abs(c.dynamics().I - A.G.T @ d.I @ A.G).max() < 1e-12
    assert np.abs(c.dynamics().load - A.G.T @ d.load).max() < 1e-12
    assert any("'end to pin' by" in remark for remark in m.remarks)


def test_nearest_solution_within_limits():
    for low, high in ((0.2, 1.5), (-1.5, -0.2)):
        m = chain(limits=(low, high)).close_loops([("end", "pin", "revolute")])
        assert low < m.at().value("A") < high


@pytest.mark.parametrize("wide", [1e16, 1e50, 1e308])
def test_limits_wider_than_any_motion_do_not_matter(wide):
    """Sampled starts lie within a full turn, where angles have all their digits."""
    m = chain(limits=(-wide, wide)).close_loops([("end", "pin", "revolute")])
    c = m.at()
    assert abs(c.value("A")) < 4 * np.pi
    assert np.abs(c.value("end") - [2, 0, 0]).max() < 1e-11


@pytest.mark.parametrize("limits", [None, (-1.0, 2.0)])
def test_a_start_is_not_left_for_another(limits):
    """The start leads to the mirrored four-bar, whose crank may be beyond its limits."""
    pins = [(0, 0, 0), (0.8, 0.6, 0), (2.8, 0.6, 0)]
    bodies = ("ground", "crank", "coupler", "rocker")
    joints = [
        kic.Joint(name, "revolute", pair, at, Z, limits=limits if name == "A" else None)
        for name, pair, at in zip("ABC", itertools.pairwise(bodies), pins, strict=True)
    ]
    points = [kic.Point("end", "rocker", (3.2, -1.3, 0)), kic.Point("pin", "ground", (3, 0, 0))]
    m = kic.Mechanism("bent", [kic.Body(name) for name in bodies[1:]], joints, points=points)
    loops, near = [("end", "pin", "revolute")], {"A": -2.0, "B": 1.0, "C": 2.0}
    if limits is None:
        closed = m.close_loops(loops, near=near)
        assert closed.remarks[0].endswith("a search from `near` closed them.")
        assert closed.at().value("A") < 0
        return
    with pytest.raises(kic.ModelError, match="The described configuration closes the loops") as caught:
        m.close_loops(loops, near=near)
    assert caught.value.beyond.keys() == {"A"}
    # the remedy works
    for values in (None, caught.value.near):
        assert m.close_loops(loops, near=values).at().value("A") > 0


def test_a_start_from_which_the_loop_stays_open_names_another():
    """Three bars of length 1 and a slide: a straight chain pushed along itself stays straight."""
    bodies = [kic.Body(name) for name in "abc"]
    pairs = (("ground", "a"), ("a", "b"), ("b", "c"))
    joints = [
        kic.Joint(n, "revolute", p, (k, 0, 0), Z) for k, (n, p) in enumerate(zip("ABC", pairs, strict=True))
    ]
    points = [kic.Point("end", "c", (3, 0, 0)), kic.Point("pin", "ground", (2, 0, 0))]
    m = kic.Mechanism("bars", bodies, joints, points=points)
    straight = {"A": 0.0, "B": 0.0, "C": 0.0}
    with pytest.raises(kic.ModelError) as caught:
        m.close_loops([("end", "pin", "revolute")], near=straight)
    assert caught.value.loop == "end to pin"
    assert abs(caught.value.residual * m._model.length - 1.0) < 1e-9
    other = m.close_loops([("end", "pin", "revolute")], near=caught.value.near)
    assert np.abs(other.at().value("end") - [2, 0, 0]).max() < 1e-10
    points[1] = kic.Point("pin", "ground", (4, 0, 0))
    with pytest.raises(kic.ModelError, match="No other start") as caught:
        replace(m, points=tuple(points)).close_loops([("end", "pin", "revolute")], near=straight)
    assert caught.value.near is None


@pytest.mark.parametrize("limits", [((-3.0, 0.0), (-1.0, 1.0)), ((0.0, 3.0), (-1.0, 1.0))])
@pytest.mark.parametrize("types", [("cylindrical", "revolute"), ("revolute", "cylindrical")])
def test_limits_of_joints_with_several_coordinates_select_the_solution(types, limits):
    """An arm reaches its slide at two mirrored angles; the limited joint is in the tree or closes it."""
    laws = [{"limits": limits} if kind == "cylindrical" else {} for kind in types]
    joints = [
        kic.Joint("A", types[0], ("ground", "arm"), (0, 0, 0), Z, **laws[0]),
        kic.Joint("S", "prismatic", ("ground", "slide"), axis=(0, 1, 0)),
    ]
    m = kic.Mechanism("arm", [kic.Body("arm"), kic.Body("slide")], joints)
    tip, eye = np.eye(4), np.eye(4)
    tip[0, 3], eye[0, 3] = 1.0, 0.125
    made, remarks = closed_mechanism(
        m, [Loop("T", types[1], LoopFrame("arm", tip), LoopFrame("slide", eye), laws[1])]
    )
    assert not any("beyond" in remark for remark in remarks)
    (limited,) = (joint for joint in made.joints if joint.limits is not None)
    (lower, upper), _ = limits
    assert lower <= limited.value[0] <= upper
    assert abs(abs(limited.value[0]) - np.arccos(0.125)) < 1e-9


def test_joints_beyond_limits_that_no_solution_meets_are_named():
    m = chain()
    ends = [LoopFrame(name, np.eye(4)) for name in ("rocker", "ground")]
    ends[0].pose[0, 3], ends[1].pose[0, 3] = 5.0, 2.0
    laws = {"limits": (0.0, 1e-3), "stiffness": 1.0}
    ranges = {"A": (0.1, 0.1001), "B": (0.1, 0.1001)}
    m = replace(m, joints=tuple(replace(j, limits=ranges.get(j.name)) for j in m.joints))
    _, remarks = closed_mechanism(m, [Loop("T", "revolute", *ends, laws)])
    (remark,) = (x for x in remarks if "beyond" in x)
    assert any(name in remark.partition(":")[2] for name in ("A", "B", "T"))


def gaps(turn: Rotation, tilt: Rotation) -> str:
    """Return the remark on a loop whose pins are apart, with axes along z, one of them tilted."""
    first, second = np.eye(4), np.eye(4)
    first[:3, :3], first[0, 3] = turn.as_matrix(), 5.0
    second[:3, :3], second[0, 3] = (tilt * turn).as_matrix(), 2.0
    ends = LoopFrame("rocker", first), LoopFrame("ball", second)
    m = chain()
    ball = kic.Joint("D", "spherical", ("ground", "ball"), (2, 0, 0))
    m = replace(m, bodies=(*m.bodies, kic.Body("ball")), joints=(*m.joints, ball))
    axis = tuple(turn.inv().apply([0, 0, 1]).tolist())
    return closed_mechanism(m, [Loop("T", "revolute", *ends, axis=axis)])[1][0].partition(";")[0]


@pytest.mark.slow
def test_gaps_of_loops_are_described_without_rounding():
    """The cosine of equal directions has half of the digits."""
    rng = np.random.default_rng(4)
    turns = Rotation.random(20, rng)
    for turn in turns:
        assert "rad" not in gaps(turn, Rotation.identity())
    for angle in (1e-6, 0.3, 2.5):
        found = float(gaps(turns[0], Rotation.from_rotvec([angle, 0, 0])).split()[-2])
        # the larger of two components, where the angle is small
        assert (0.7 if angle < 1e-4 else 0.999) * angle < found < 1.001 * angle


def relative_pose(first: RigidTransform, second: RigidTransform) -> tuple[np.ndarray, np.ndarray]:
    """Return the rotation and the displacement of a frame in the axes of another."""
    found = first.inv() * second
    return found.rotation.as_matrix(), found.translation


# residual of each closing joint, of a rotation R and displacement d: z is the axis and x the second one
OPEN = {
    "spherical": lambda R, d: d,
    "revolute": lambda R, d: [*d, *(R[:, 2] - [0, 0, 1])],
    "fixed": lambda R, d: [*d, *(R - np.eye(3)).ravel()],
    "cylindrical": lambda R, d: [*d[:2], *(R[:, 2] - [0, 0, 1])],
    "prismatic": lambda R, d: [*d[:2], *(R - np.eye(3)).ravel()],
    "universal": lambda R, d: [*d, R[2, 0]],
    "planar": lambda R, d: [d[1], *(R[:, 1] - [0, 1, 0])],
}


@pytest.mark.parametrize("kind", LOOP_TYPES)
def test_open_loops_of_every_type(kind):
    """A floating body is tied by frames that are far apart, and turned by up to 2 rad."""
    rng = np.random.default_rng(LOOP_TYPES.index(kind))
    for _ in range(4):
        turns = [Rotation.from_rotvec(u * 2 / max(2, np.linalg.norm(u))) for u in rng.normal(size=(2, 3))]
        places = [tuple(x.tolist()) for x in rng.normal(size=(2, 3))]
        frames = [
            kic.Frame(name, body, origin=at, axes=turn)
            for name, body, at, turn in zip("uv", ("ground", "body"), places, turns, strict=True)
        ]
        joint = kic.Joint("J", "free", ("ground", "body"), (0, 0, 0))
        m = kic.Mechanism("one", [kic.Body("body", at=(0, 0, 0))], [joint], frames=frames)
        closed = m.close_loops([("u", "v", kind)])
        assert closed.dof == JOINT_DOF[kind]
        R, d = relative_pose(*(closed.at().pose(name) for name in "uv"))
        assert np.abs(OPEN[kind](R, d)).max() < 1e-10


def test_loops_that_are_not_finite_are_named():
    """Positions that overflow or are infinite, as in files of other programs."""
    m = chain()
    for number in (np.nan, np.inf, -np.inf):
        pose = np.eye(4)
        pose[0, 3] = number
        loop = Loop("tie", "revolute", LoopFrame("rocker", pose), LoopFrame("ground", np.eye(4)))
        with np.errstate(invalid="ignore"), raises(kic.ModelError, loop="tie"):
            closed_mechanism(m, [loop])


def test_loop_that_contradicts_itself_is_named():
    with pytest.raises(kic.ModelError) as caught:
        chain(reach=9.0).close_loops([("end", "pin")])
    assert caught.value.loop == "end to pin"
    # the chain reaches 5 of 9, and the residual is relative to the characteristic length
    assert caught.value.residual > 0.1
    with pytest.raises(kic.InputError):
        chain().close_loops([("end",)])
    with pytest.raises(kic.UnknownNameError):
        chain().close_loops([("end", "nobody")])
    with pytest.raises(kic.InputError):
        chain().close_loops([("end", "pin", "screw")])


def test_closed_loops_couplings_and_body_axes_stay():
    m = kic.load("four-bar")
    arm = replace(
        m,
        bodies=(*m.bodies, kic.Body("one"), kic.Body("two")),
        joints=(
            *m.joints,
            kic.Joint("P", "revolute", ("ground", "one"), (-1, 0, 0), Z),
            kic.Joint("Q", "revolute", ("one", "two"), (-1.5, 0.3, 0), Z, value=0.4),
        ),
        points=(
            *m.points,
            kic.Point("hand", "two", (-1.5, 1.0, 0)),
            kic.Point("goal", "ground", (-1.2, 0.5, 0)),
        ),
        couplings=(kic.Coupling("gear", ("P", "A"), ratios=(1, -2)),),
        forces=(kic.Force("push", "hand", (1.0, 0, 0), axes="body"),),
        coordinates=("A", "Q"),
    )
    loop = [(p.name, q) for p in arm.points if p.name == "hand" for q in ("goal",)]
    made = arm.close_loops(loop)
    c = made.at()
    assert made.dof == 0
    assert np.abs(c.value("hand") - c.value("goal")).max() < 1e-9
    # 1 (P - P0) - 2 (A - A0) = 0
    change = {name: float(c.value(name) - arm.at().value(name)) for name in ("P", "A", "Q")}
    assert abs(change["P"] - 2 * change["A"]) < 1e-9
    (force,) = (f for f in made.forces if f.name == "push")
    turned = Rotation.from_rotvec([0, 0, change["P"] + change["Q"]]).apply([1.0, 0, 0])
    assert np.abs(turned - force.force).max() < 1e-9
    # the loop of the linkage is still closed: its joint is at one place on both bodies
    linkage = replace(m, coordinates=("A",)).at({"A": c.value("A")})
    for body in m.bodies:
        for row in "xy":
            assert abs(c.value(f"{body.name}.{row}") - linkage.value(f"{body.name}.{row}")) < 1e-9


def test_universal_loop_keeps_its_second_axis():
    bodies = [kic.Body(name) for name in "abcd"]
    joints = [
        kic.Joint("A", "revolute", ("ground", "a"), (0, 0, 0), (0.1, 0.2, 1)),
        kic.Joint("B", "spherical", ("a", "b"), (1, 0, 0)),
        kic.Joint("C", "revolute", ("ground", "d"), (0, 2, 0), (1, 0.3, 0.2)),
    ]
    joints.append(kic.Joint("K", "prismatic", ("d", "c"), axis=(0, 0, 1)))
    tilt = Rotation.from_rotvec([0.3, -0.2, 0.5])
    frames = [
        kic.Frame("u", "b", origin=(1, 1.2, 0.1)),
        kic.Frame("v", "c", origin=(0.4, 1.4, 0.4), axes=tilt),
    ]
    m = kic.Mechanism("u", bodies, joints, frames=frames).close_loops([("u", "v", "universal")])
    c = m.at()
    u, v = (c.pose(name) for name in "uv")
    assert np.abs(u.translation - v.translation).max() < 1e-10
    # z of the first frame stays perpendicular to x of the second
    for step in (0.0, 0.05):
        c = m.at({m.coordinates[0]: c.value(m.coordinates[0]) + step}) if m.dof == 1 else c
        u, v = (c.pose(name).rotation.as_matrix() for name in "uv")
        assert abs(u[:, 2] @ v[:, 0]) < 1e-10


def test_parts_of_the_described_configuration_are_refused():
    m = chain()
    foot = kic.Contact("step", "pinned", ("rocker", "ground"), (5, 0, 0))
    with raises(kic.ModelError, name="step"):
        replace(m, contacts=(replace(foot, closed=False),)).close_loops([("end", "pin")])
    # the end cannot be at the pin and at its contact
    with raises(kic.ModelError, loop="step"):
        replace(m, contacts=(foot,)).close_loops([("end", "pin")])
    swings = kic.Joint("A", "universal", ("ground", "crank"), (0, 0, 0), Z, axis2=(1, 0, 0), swing=1.0)
    with raises(kic.ModelError, name="A"):
        replace(m, joints=(swings, *m.joints[1:])).close_loops([("end", "pin")])


@pytest.mark.parametrize(("kind", "dof"), [("point", 2), ("friction", 1), ("soft", 1), ("pinned", 1)])
def test_closed_contacts_stay(kind, dof):
    """A foot on a slope touches it before and after another loop is closed."""
    m, at = chain(), np.array([2.0, -0.6, 0.0])
    normal = np.array([0.6, -0.8, 0.0])
    shin = kic.Body("shin", mass=1.0, com=(2, -0.3, 0), inertia=(0.1, 0.1, 0.1))
    sole = kic.Body("sole", mass=0.2, com=(2, -0.6, 0), inertia=(0.1, 0.1, 0.1))
    m = replace(
        m,
        bodies=(*m.bodies, shin, sole),
        joints=(
            *m.joints,
            kic.Joint("D", "prismatic", ("coupler", "shin"), axis=(0, 1, 0)),
            kic.Joint("E", "revolute", ("shin", "sole"), (2, -0.4, 0), Z),
        ),
        points=(*m.points, kic.Point("toe", "sole", tuple(at.tolist()))),
        contacts=(
            kic.Contact("step", kind, ("sole", "ground"), tuple(at.tolist()), normal=tuple(normal.tolist()),
                        friction=0.5 if kind in ("friction", "soft") else None,
                        torsion=0.1 if kind == "soft" else None, closed=True),
        ),
    )  # fmt: skip
    made = m.close_loops([("end", "pin", "revolute")], near={"A": 1.0, "B": -0.5, "C": -2.0})
    c = made.at()
    moved = c.value("toe") - at
    assert np.linalg.norm(c.value("A")) > 0.3
    assert abs(moved @ normal) < 1e-10
    assert (np.abs(moved).max() < 1e-10) == (kind != "point")
    assert np.abs(np.subtract(made.contacts[0].at, c.value("toe"))).max() < 1e-10
    assert made.dof == dof
    # the contact stays closed while the mechanism moves
    there = made.at({name: c.value(name) + 0.01 for name in made.coordinates})
    assert abs((there.value("toe") - at) @ normal) < 1e-10


def test_fixed_distances_stay():
    m = chain()
    m = replace(
        m,
        points=(
            *m.points,
            kic.Point("eye", "coupler", (2, 0.2, 0)),
            kic.Point("hook", "hanger", (1.5, -1, 0)),
        ),
        bodies=(*m.bodies, kic.Body("hanger", mass=1.0, com=(1, -1, 0), inertia=(0.1, 0.1, 0.1))),
        joints=(*m.joints, kic.Joint("D", "revolute", ("ground", "hanger"), (0.5, -1, 0), Z)),
        distances=(kic.Distance("rod", ("eye", "hook"), fixed=True),),
    )
    length = np.linalg.norm([0.5, 1.2])
    made = m.close_loops([("end", "pin", "revolute")], near={"A": 1.0, "B": -0.5, "C": -2.0})
    c = made.at()
    assert made.dof == 1
    assert abs(np.linalg.norm(c.value("eye") - c.value("hook")) - length) < 1e-10
    assert abs(made._fixed_distances["rod"] - length) < 1e-10


def test_toml_with_open_loops(tmp_path):
    path = tmp_path / "linkage.toml"
    chain().save(path)
    path.write_text(path.read_text() + '\n[[loops]]\nframes = ["end", "pin"]\ntype = "revolute"\n')
    m = kic.load(path)
    assert m.dof == 1
    assert np.abs(m.at().value("end") - [2, 0, 0]).max() < 1e-12
    m.save(path)
    assert kic.load(path) == m
    path.write_text(path.read_text() + '\n[[loops]]\nframes = ["end"]\n')
    with pytest.raises(kic.ModelFileError) as caught:
        kic.load(path)
    assert caught.value.key.startswith("loops[0]")


def test_angular_velocities_of_a_free_base_are_coordinates_of_the_closed_mechanism():
    base = chain()
    free = replace(
        base,
        bodies=(kic.Body("base", mass=2.0, com=(0.2, -0.3, 0.1), inertia=(0.3, 0.4, 0.5)), *base.bodies),
        joints=(
            kic.Joint("float", "free", ("ground", "base"), (0, 0, 0)),
            replace(base.joints[0], bodies=("base", "crank")),
            *base.joints[1:],
        ),
        points=(base.points[0], replace(base.points[1], body="base")),
    )
    m = free.close_loops(
        [("end", "pin", "revolute")], near={"A": 1.0, "B": -0.5, "C": -2.0}, coordinates=["float", "A"]
    )
    pose = RigidTransform.from_components([0.1, 0.2, 0.3], Rotation.from_rotvec([0.4, -0.3, 0.2]))
    c = m.at({"float": pose, "A": m.at().value("A") + 0.05})
    tree = free.at({"float": pose, **{name: c.value(name) for name in "ABC"}})
    rows = c.coefficients([*(f"float.{k}" for k in range(1, 7)), "A", "B", "C"])
    qd, qdd = np.random.default_rng(2).normal(size=(2, 7))
    found = c.inverse_dynamics(qd, qdd)
    # the open chain moves alike, and the pin does no work
    efforts = tree.inverse_dynamics(rows.velocity(qd), rows.acceleration(qd, qdd))
    assert np.abs(found - rows.G.T @ efforts).max() < 1e-12 * np.abs(efforts).max()
    assert np.abs(c.dynamics().inverse_dynamics(qd, qdd) - found).max() < 1e-12 * np.abs(efforts).max()


def test_start_of_an_open_robot():
    text = """<robot name="arm"><link name="base"/><link name="arm"/>
      <joint name="turn" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""
    assert kic.from_urdf(text, near={"turn": 0.1}).dof == 1
