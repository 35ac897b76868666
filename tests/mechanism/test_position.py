"""The position problem: any inputs, from any near configuration, on its branch, or an error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linkages import bars_between, four_bar_pivots, serial
from numpy.testing import assert_allclose
from raising import raises
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.description.description import find_part
from kic.mechanism.configuration import Configuration, displacement
from kic.mechanism.inputs import position_problem

# for each closed model: the distance of its configurations from the reference, and inputs beside its own
MODELS = {
    "four-bar": (0.8, ["D", "C", "tip.x"]),
    "slider-crank": (0.8, ["piston", "wristpin"]),
    "five-bar": (0.3, ["tip.x tip.y", "B D", "A D"]),
    "three-legged-robot": (0.15, ["w.x w.y platform.angle", "B1 B2 B3", "C1 A2 B3"]),
    "gough-stewart": (0.05, ["eye.x eye.y eye.z L1 U3.1 L5"]),
    "stewart-6r": (0.06, ["A1 B1 C1 D1 E1 F1"]),
    "rssr": (0.6, ["rocker spin", "crank flag.z"]),
    "ladder": (0.3, ["D3", "tip.y"]),
}
every_model = pytest.mark.parametrize("name", MODELS)


def random_postures(m: kic.Mechanism, size: float, count: int, seed: int = 0) -> Configuration:
    """Closed configurations around the reference configuration, reached by the model's own inputs."""
    q = [m.at().value(name) for name in m.coordinates]
    move = size * np.random.default_rng(seed).normal(size=(4 * count, len(q)))
    c = m.at(q + move, failures="mask")
    assert c.ok.sum() >= count
    return m.at((q + move)[c.ok][:count])


def chosen(c: Configuration, names: list[str]) -> dict[str, np.ndarray]:
    return {name: c.value(name) for name in names}


def residual(c: Configuration) -> float:
    """Residual of the closure conditions of the loops, relative to the characteristic length."""
    closure = c._model.closure(())
    return float(np.abs(closure.rows(c._states)[0]).max(initial=0.0))


def apart(c: Configuration, e: Configuration) -> float:
    """Distance between the bodies of two configurations, over the characteristic length."""
    both = [np.stack([displacement(x, b.name) for b in c._model.description.bodies]) for x in (c, e)]
    return float((np.abs(both[0] - both[1]).max(axis=(-1, -2))).max()) / max(1.0, c._model.length)


# ---------------------------------------------------------------------------------- closing, and back


@pytest.mark.slow
@every_model
def test_position_solver_converges_from_nearby_configurations(name: str) -> None:
    size, sets = MODELS[name]
    m = kic.load(name)
    near, goal = random_postures(m, size, 12), random_postures(m, size, 12, seed=1)
    for names in (list(m.coordinates), *(s.split() for s in sets)):
        wanted = chosen(goal, names)
        c = m.at(wanted, near=near, failures="mask")
        assert c.ok.sum() >= 4, names
        assert residual(Configuration(c._model, (), c._states[c.ok])) < 1e-12
        for row, x in wanted.items():
            scale = max(1.0, c._model.length)
            off = (c.value(row) - x)[c.ok]
            if row in m._model.tree.column:
                assert np.abs(off).max() < 1e-12 * scale
            else:  # angles of cut joints are known but for full turns
                assert np.abs(np.remainder(off + np.pi, 2 * np.pi) - np.pi).max() < 1e-12 * scale


@every_model
def test_inverse_path_returns(name: str) -> None:
    """Inputs read off a configuration lead back to it from nearby, for any inputs, and out and back."""
    size, sets = MODELS[name]
    m = kic.load(name)
    c = random_postures(m, size, 6)
    q = np.stack([c.value(x) for x in m.coordinates], axis=-1)
    near = m.at(q + 0.01 * np.random.default_rng(2).normal(size=q.shape), near=c)
    for names in (list(m.coordinates), *(s.split() for s in sets)):
        condition = m._model.closure(tuple(names)).condition(c._states)
        good = condition < 1e4
        assert good.any()
        e = m.at(chosen(c, names), near=near, failures="mask")
        for b in np.flatnonzero(good & e.ok):
            one, other = (Configuration(x._model, (), x._states[b : b + 1]) for x in (c, e))
            assert apart(one, other) < 1e-13 * max(100.0, condition[b])
        assert (e.ok | ~good).sum() >= 5


@every_model
def test_batch_members_equal_single_configurations(name: str) -> None:
    m = kic.load(name)
    goal = random_postures(m, MODELS[name][0], 5)
    wanted = np.stack([goal.value(x) for x in m.coordinates], axis=-1)
    many = m.at(wanted)
    for b in range(5):
        assert np.abs(m.at(wanted[b]).state - many.state[b]).max() < 1e-12 * max(1.0, m._model.length)
    assert m.at(wanted[:0]).batch == (0,)
    assert m.at(wanted[None, :, None], near=m.at()).batch == (1, 5, 1)


# ------------------------------------------------------------------------------------ poses as inputs


def transform(move: np.ndarray, turn: np.ndarray) -> RigidTransform:
    return RigidTransform.from_components(move, Rotation.from_rotvec(turn))


@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2), (0,)])
def test_the_pose_of_a_platform(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    m = kic.load("gough-stewart")
    pose = transform(0.05 * rng.normal(size=(*batch, 3)), 0.1 * rng.normal(size=(*batch, 3)))
    c = m.at({"platform": pose})
    assert c.batch == batch
    assert np.abs(displacement(c, "platform") - pose.as_matrix()).max(initial=0.0) < 1e-13
    # inverse kinematics of a platform in closed form: legs as long as between their joints
    for k in range(1, 7):
        low, high = (np.array(find_part(m._model.description, f"{x}{k}").at) for x in "US")
        long = np.linalg.norm(pose.apply(high) - low, axis=-1)
        assert np.abs(c.value(f"L{k}") - long).max(initial=0.0) < 1e-13
    # forward again, and to the same pose by its orientation and the place of a point
    legs = m.at({f"L{k}": c.value(f"L{k}") for k in range(1, 7)}, near=c if batch else m.at())
    assert np.abs(displacement(legs, "platform") - pose.as_matrix()).max(initial=0.0) < 1e-12
    again = m.at({"eye": c.value("eye"), "platform": pose.rotation})
    assert np.abs(displacement(again, "platform") - pose.as_matrix()).max(initial=0.0) < 1e-13


def wrist() -> kic.Mechanism:
    """Return a body on a ball joint, at the end of a slide."""
    bodies = [kic.Body("slide"), kic.Body("hand")]
    joints = [
        kic.Joint("P", "prismatic", ("ground", "slide"), (0, 0, 0), (1, 0, 0)),
        kic.Joint("S", "spherical", ("slide", "hand"), (1, 0, 0)),
    ]
    return kic.Mechanism("wrist", bodies=bodies, joints=joints)


@pytest.mark.parametrize("part", ["platform", "tilted", "S"])
def test_poses_are_reached_by_three_rows_of_each_rotation(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled steps reach the configurations of the nine rows, which large rotations still need."""
    rng, count = np.random.default_rng(8), 60
    m = kic.load("gough-stewart") if part != "S" else wrist()
    if part == "tilted":
        axes = Rotation.from_rotvec([0.3, -0.2, 0.5])
        m = m.replace(frames=[kic.Frame("tilted", "platform", origin=(0.1, 0.2, 1.0), axes=axes)])
    turns = rng.normal(size=(count, 3))
    turns *= rng.uniform(0, 1.2, (count, 1)) / np.linalg.norm(turns, axis=1)[:, None]
    asked = {part: Rotation.from_rotvec(turns), "P": rng.normal(size=count)}
    if part != "S":
        start, move = m.at().pose(part), rng.uniform(-0.1, 0.1, (count, 3))
        turned = Rotation.from_rotvec(turns) * start.rotation
        asked = {part: RigidTransform.from_components(start.translation + move, turned)}
    targets, _ = position_problem(m._model, asked)
    closure = m._model.problem(targets.names, targets.held)
    states, share = closure.track(np.repeat(m.at().state[None], count, axis=0), targets.values)
    c = m.at(asked, failures="mask")
    monkeypatch.setattr(
        type(closure), "_track_poses", lambda _, __, start, *___: (start.copy(), 0 * start[:, 0])
    )
    known = m.at(asked, failures="mask")
    assert (c.ok == known.ok).all()
    small = np.linalg.norm(turns, axis=1) < 0.8
    assert (share[small & known.ok] == 1).all()
    assert (share[~(small & known.ok)] == 0).all()
    assert 30 < (share == 1).sum() < count
    assert_allclose(states[share == 1], known.state[share == 1], rtol=0, atol=1e-11)
    assert_allclose(c.state, known.state, rtol=0, atol=1e-11)


@pytest.mark.slow_for("2.5")
@pytest.mark.parametrize("turn", [0.3, -1.2, 2.5, np.pi - 1e-6])
def test_large_turns(turn: float) -> None:
    """A wrist of three axes and a ball reach a far orientation along one axis."""
    about = turn * np.array([2.0, 1.0, -2.0]) / 3
    bodies = [kic.Body(name, at=(0, 0, 0)) for name in ("a", "b", "c")]
    axes = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.3, 1.0)]
    ties = [("ground", "a"), ("a", "b"), ("b", "c")]
    hinges = [
        kic.Joint(f"w{k}", "revolute", tie, (0, 0, 0), axis)
        for k, (tie, axis) in enumerate(zip(ties, axes, strict=True))
    ]
    wrist = kic.Mechanism("wrist", bodies, hinges)
    R = Rotation.from_rotvec(about)
    c = wrist.at({"c": R})
    assert np.abs(c.pose("c").rotation.as_matrix() - R.as_matrix()).max() < 1e-14
    ball = kic.Mechanism("ball", bodies[:1], [kic.Joint("S", "spherical", ("ground", "a"), (0, 0, 0))])
    c = ball.at({"a": R})
    assert np.abs(c._phi - about).max() < 1e-13
    loose = kic.Mechanism("loose", bodies[:1], [kic.Joint("F", "free", ("ground", "a"), (0, 0, 0))])
    pose = RigidTransform.from_components([1.0, -2.0, 0.5], R)
    assert np.abs(displacement(loose.at({"a": pose}), "a") - pose.as_matrix()).max() < 1e-14


def test_a_floating_base_with_a_loop() -> None:
    """It goes to any pose at once, and the loop moves as on the ground; rows of the world still follow."""
    fixed, rng = kic.load("four-bar"), np.random.default_rng(0)
    joints = [replace(j, bodies=tuple({"ground": "base"}.get(b, b) for b in j.bodies)) for j in fixed.joints]
    base = kic.Joint(
        "float", "free", ("ground", "base"), at=(0.1, -0.2, 0.3), axis=(0, 0, 1), axis2=(0, 1, 0)
    )
    bodies = [kic.Body("base", at=(1.0, 0.5, -0.4)), *fixed.bodies]
    m = replace(fixed, bodies=bodies, joints=[base, *joints], coordinates=["float", "A"])
    ref, turns = m.at(), Rotation.from_rotvec([[0, 0, 3.1], *rng.uniform(-1.7, 1.7, (4, 3))])
    poses = RigidTransform.from_components(rng.uniform(-5, 5, (5, 3)), turns)
    A = float(ref.value("A")) + rng.uniform(-0.3, 0.3, 5)
    expected = fixed.at({"A": A}, near=fixed.at())
    for c in (
        m.at({"float": poses, "A": A}),
        m.at({"base": poses, "A": A}, near=m.at({"base": poses[1]} | {"A": A[1]})),
    ):
        assert_allclose(c.value(["B", "C", "D"]), expected.value(["B", "C", "D"]), rtol=0, atol=1e-12)
        assert_allclose(c.pose("base").as_matrix(), poses.as_matrix(), rtol=0, atol=1e-12)
        assert_allclose(c.pose("crank").as_matrix(), (poses * expected.pose("crank")).as_matrix(), atol=1e-12)
    # the height of the tip above the ground, which moves with the base
    some = RigidTransform.from_components([0.1, 0.2, 0.3], Rotation.from_rotvec([0.1, -0.2, 0.1]))
    tip = (some * fixed.at({"A": A[0]}).pose("coupler")).apply(fixed.points[0].at)
    c = m.at({"base": some, "tip.y": tip[1]})
    assert float(c.value("A")) == pytest.approx(A[0], abs=1e-10)


def test_bodies_that_move_in_a_plane_or_turn_about_one_direction() -> None:
    m = kic.load("three-legged-robot")
    pose = transform(np.array([0.1, 0.05, 0.0]), np.array([0.0, 0.0, 0.3]))
    c = m.at({"platform": pose})
    assert np.abs(displacement(c, "platform") - pose.as_matrix()).max() < 1e-13
    rows = {"w.x": c.value("w.x"), "w.y": c.value("w.y")}
    for turn in ({"platform": pose.rotation}, {"platform.angle": 0.3}):
        assert np.abs(m.at(turn | rows).state - c.state).max() < 1e-12
    # four degrees of freedom, all turning about the vertical: a pose is four inputs
    bodies = [kic.Body(name, at=(0, 0, 0)) for name in ("a", "b", "c", "d")]
    ties = zip(("ground", "a", "b", "c"), "abcd", strict=True)
    places = [(0, 0, 0), (0.4, 0, 0), (0.4, 0.3, 0), (0.4, 0.3, 0)]
    kinds = ["revolute", "revolute", "revolute", "prismatic"]
    joints = [
        kic.Joint(f"j{k}", kind, tie, at, (0, 0, 1))
        for k, (kind, tie, at) in enumerate(zip(kinds, ties, places, strict=True))
    ]
    scara = kic.Mechanism("scara", bodies, joints)
    phi = np.array([0.4, 0.9, -0.3, 0.2])
    pose = scara.at(phi).pose("d")
    assert np.abs(scara.at({"d": pose}, near=scara.at(phi + 0.1))._phi - phi).max() < 1e-13
    with pytest.raises(
        kic.ConfigurationError, match=r"'d' turns about \(0, 0, 1\) only, .* tilts it by 0\.1 rad"
    ):
        scara.at({"d": transform(np.zeros(3), np.array([0.1, 0, 0]))})
    # a gantry does not turn at all
    slides = [
        kic.Joint(f"s{k}", "prismatic", tie, axis=axis)
        for k, (tie, axis) in enumerate(
            zip([("ground", "a"), ("a", "b"), ("b", "c")], np.eye(3).tolist(), strict=True)
        )
    ]
    gantry = kic.Mechanism("gantry", bodies[:3], slides)
    at = np.array([1.0, -2.0, 7.0])
    assert np.abs(gantry.at({"c": transform(at, np.zeros(3))})._phi - at).max() < 1e-14
    with raises(kic.ConfigurationError, failed=[()]):
        gantry.at({"c": transform(at, np.array([0, 0, 0.1]))})


@pytest.mark.slow
def test_the_inverse_position_of_an_arm() -> None:
    m, rng = kic.load("puma560"), np.random.default_rng(4)
    phi = rng.uniform(-2, 2, size=(20, 6))
    phi[:, 4] = np.sign(phi[:, 4]) * (0.3 + np.abs(phi[:, 4]))  # away from the aligned wrist
    c = m.at(phi)
    near = m.at(phi + 0.05 * rng.normal(size=phi.shape))
    e = m.at({"link6": c.pose("link6")}, near=near, failures="mask")
    _, closure = position_problem(m._model, {"link6": c.pose("link6")})
    condition = closure.condition(c._states)
    assert e.ok.sum() >= 17
    assert np.abs(e._phi - phi)[e.ok].max() < 1e-14 * condition[e.ok].max()
    h = kic.load("horn-two-link")
    where = h.at([0.3, 1.1]).value("tip")
    for elbow in (1.0, -1.0):  # the law of cosines
        c = h.at({"tip.x": where[0], "tip.y": where[1]}, near=h.at([0.5, elbow]))
        reach = np.linalg.norm(where)
        assert c.value("elbow") == pytest.approx(np.sign(elbow) * np.arccos(reach**2 / 2 - 1), abs=1e-13)


# ------------------------------------------------------------------------------- branches are watched


def posture_by_small_steps(m: kic.Mechanism, near: Configuration, wanted: dict[str, float]) -> Configuration:
    """Return the solution by a thousand small steps."""
    share = np.linspace(0, 1, 1001)[1:]
    return m.path(
        {k: near.value(k) + share * (x - near.value(k)) for k, x in wanted.items()},
        near=near,
        failures="mask",
    )


def test_the_branch_is_the_one_that_small_steps_keep() -> None:
    """Newton from here lands beyond a dead centre: spin = -1.18, with the same crank and the same flag."""
    m = kic.load("rssr")
    near = m.at({"crank": 0.19, "spin": 0.96})
    wanted = {"crank": -1.62, "flag.z": 0.09}
    closure = m._model.closure(tuple(wanted))
    states, left, why = closure.solve_from(near._states, np.array([list(wanted.values())]))
    assert (left[0] < 1e-12, why) == (True, [""])
    jumped = Configuration(m._model, (), states)
    assert jumped.value("spin") == pytest.approx(-1.17868, abs=1e-5)
    c = m.at(wanted, near=near)
    assert c.value("spin") == pytest.approx(0.46276, abs=1e-5)
    fine = posture_by_small_steps(m, near, wanted)
    assert fine.ok.all()
    assert np.abs(fine.state[-1] - c.state).max() < 1e-12


def test_targets_beyond_a_dead_centre_raise() -> None:
    m = kic.load("rssr")
    near = m.at({"crank": 0.3, "spin": -0.08})
    wanted = {"crank": -2.64, "flag.z": 0.04}
    assert m._model.closure(tuple(wanted)).solve_from(near._states, np.array([list(wanted.values())]))[2] == [
        ""
    ]
    fine = posture_by_small_steps(m, near, wanted)
    assert not fine.ok[-1]
    with pytest.raises(
        kic.ConfigurationError,
        match=r"a dead centre, .* a configuration with these values is on another branch",
    ) as e:
        m.at(wanted, near=near)
    # it came as far as the small steps did, and says so
    assert abs(e.value.share[0] - fine.ok.sum() / 1000) < 2e-3
    reached = e.value.reached
    assert residual(reached) < 1e-12
    for name, x in wanted.items():
        there = near.value(name) + e.value.share[0] * (x - near.value(name))
        assert reached.value(name)[0] == pytest.approx(there, abs=1e-9)


@pytest.mark.slow
@every_model
def test_large_moves_against_small_steps(name: str) -> None:
    """At random far targets: the configuration of the small steps where they arrive, else an error."""
    size, sets = MODELS[name]
    m, rng = kic.load(name), np.random.default_rng(8)
    near = random_postures(m, size, 8)
    for names in (list(m.coordinates), sets[0].split()):
        here = np.stack([near.value(x) for x in names], axis=-1)
        move = 2 * (here.std(axis=0) + 0.01) * rng.normal(size=here.shape)
        share = np.linspace(0, 1, 121)[1:, None]
        path = m.path(
            {x: here[:, k] + share * move[:, k] for k, x in enumerate(names)}, near=near, failures="mask"
        )
        c = m.at({x: here[:, k] + move[:, k] for k, x in enumerate(names)}, near=near, failures="mask")
        assert c.ok.tolist() == path.ok[-1].tolist(), names
        off = np.abs(c.state - path.state[-1])[c.ok].max(initial=0.0)
        assert off < 1e-9 * max(1.0, m._model.length), names


@pytest.mark.slow
def test_targets_at_and_near_a_dead_centre() -> None:
    m = kic.load("slider-crank")
    a, b = 0.05, np.hypot(0.198, 0.04)
    reach = a + b  # crank and rod in line
    inline = m.at({"piston": reach})
    assert abs(inline.value("shaft")) < 1e-6
    assert residual(inline) < 1e-12
    for short in (1e-3, 1e-6, 1e-9):
        x = reach - short
        c = m.at({"piston": x})
        wanted = np.arccos((x**2 + a**2 - b**2) / (2 * a * x))
        assert c.value("shaft") == pytest.approx(wanted, rel=1e-14 / short)
    with pytest.raises(kic.ConfigurationError, match="a dead centre, where its inputs drive it no further"):
        m.at({"piston": reach + 1e-6})
    for place in (0.0, np.pi):
        with pytest.raises(kic.ConfigurationError, match="its inputs are dependent where it starts"):
            m.at({"piston": 0.2}, near=m.at({"shaft": place}))


def test_rounded_dimensions_do_not_move_the_inputs() -> None:
    """With axes tilted by 1e-5 the loop is slightly contradictory; the crank has the requested value."""
    m, rng = kic.load("four-bar"), np.random.default_rng(1)
    joints = [replace(j, axis=tuple(np.array(j.axis) + 1e-5 * rng.normal(size=3))) for j in m.joints]
    rounded = replace(m, joints=tuple(joints), closure_tolerance=1e-4)
    wanted = np.linspace(0.5, 2.5, 7)
    c, plain = rounded.at({"A": wanted}), m.at({"A": wanted})
    assert np.abs(c.value("A") - wanted).max() < 1e-14
    assert 1e-9 < residual(c) < 1e-4
    assert np.abs(c.value("tip") - plain.value("tip")).max() < 1e-4
    tight = replace(rounded, closure_tolerance=1e-5)
    text = r"its loops are inconsistent by 1\.\de-05 .*, more than closure_tolerance = 1e-05 allows"
    with pytest.raises(kic.ConfigurationError, match=text) as caught:
        tight.at({"A": wanted})
    last = caught.value.reached.value("A")[0]
    assert wanted[0] < last < wanted[-1]
    assert tight.at({"A": last - 0.01}).ok


@pytest.mark.parametrize("size", [5e-5, 1.0, 5e4])
@pytest.mark.parametrize("short", [1.0, pytest.param(1e-3, marks=pytest.mark.slow), 1e-6])
def test_scales(size: float, short: float) -> None:
    """A four-bar of any size, and with a crank so much shorter than its ground."""
    crank, coupler, rocker, ground = size * np.array([0.3 * short, 0.8, 0.7, 0.9])
    drawn, moved = (
        four_bar_pivots(crank, coupler, rocker, ground, np.pi / 2 + angle) for angle in (0.0, 1.0)
    )
    m = bars_between(drawn)
    c = m.at({"A": 1.0})
    first, second = (np.arctan2(*(p[2] - p[3])[1::-1]) for p in (drawn, moved))
    turned = second - first
    assert c.value("D") == pytest.approx(turned, abs=1e-13 + 1e-12 * abs(turned))
    if short < 1e-5:  # a thousandth of a degree of the rocker is a turn of the crank: as good as locked
        with raises(kic.ConfigurationError, failed=[()]):
            m.at({"D": turned / 2})
        return
    half = m.at({"D": turned / 2})
    assert 0 < half.value("A") < 1
    assert m.at({"A": half.value("A")}).value("D") == pytest.approx(turned / 2, abs=1e-13 / short)


def test_many_turns() -> None:
    m = kic.load("four-bar")
    assert m.at({"A": 100.3}).value("tip") == pytest.approx(
        m.at({"A": 100.3 - 32 * np.pi}).value("tip"), abs=1e-12
    )


@pytest.mark.parametrize("target", [50.0, 100.0])
def test_slow_passage_in_the_middle_of_a_path(target: float) -> None:
    """A block drives a guide closely past its pivot, and the guide turns a wheel at 30 times its speed."""
    angle, start = np.arctan2(0.03, -10.0), (-10.0, 0.03, 0.0)
    along, z = (np.cos(angle), np.sin(angle), 0.0), (0.0, 0.0, 1.0)
    m = kic.Mechanism(
        "guide",
        [kic.Body(name) for name in ("block", "swivel", "guide", "wheel")],
        [
            kic.Joint("X", "prismatic", ("ground", "block"), start, (1, 0, 0), value=-10.0),
            kic.Joint("S", "revolute", ("block", "swivel"), start, z),
            kic.Joint("T", "prismatic", ("swivel", "guide"), start, along),
            kic.Joint("G", "revolute", ("ground", "guide"), (0, 0, 0), z),
            kic.Joint("W", "revolute", ("ground", "wheel"), (0, -5, 0), z),
        ],
        couplings=[kic.Coupling("gear", ("G", "W"), ratios=(30.0, -1.0))],
        coordinates=["X"],
    )
    assert m.at({"X": target}).value("G") == pytest.approx(np.arctan2(0.03, target) - angle, abs=1e-9)


@pytest.mark.slow
def test_targets_far_beyond_reach_take_few_steps() -> None:
    """Legs of a platform grow by a few millimetres in a step; so many steps are not taken."""
    m = kic.load("gough-stewart")
    solver, start = m.prepare.position(), m.at()
    legs = np.array([float(start.value(name)) for name in m.coordinates])
    assert solver(start, legs + 100).shape == start.state.shape
    with pytest.raises(kic.ConfigurationError, match="of it took 200 steps"):
        solver(start, legs + 1e6)


def test_overlong_travel_of_a_rack_raises_at_once() -> None:
    """A rack turns the crank by ten radians for each metre."""
    m = kic.load("four-bar")
    rack = kic.Joint("S", "prismatic", ("ground", "rack"), (0, 0, 0), (1, 0, 0))
    m = replace(
        m,
        bodies=(*m.bodies, kic.Body("rack")),
        joints=(*m.joints, rack),
        couplings=(kic.Coupling("mesh", ("S", "A"), ratios=(1.0, -0.1)),),
        coordinates=("S",),
    )
    start = m.at()
    assert m.at({"S": 0.5}).value("A") == pytest.approx(start.value("A") + 5.0, abs=1e-12)
    with raises(kic.ConfigurationError, failed=[()]):
        m.at({"S": 1e6})


# --------------------------------------------------------------------------------------------- errors


@pytest.mark.slow
def test_out_of_reach_reports_the_last_point() -> None:
    m = kic.load("slider-crank")
    with pytest.raises(kic.ConfigurationError) as caught:
        m.at({"piston": 0.2521})
    start, most = m.at().value("piston"), m.at({"shaft": 0.0}).value("piston")
    share = (most - start) / (0.2521 - start)
    assert caught.value.share[0] == pytest.approx(share, abs=1e-5)
    assert caught.value.reached.value("piston")[0] == pytest.approx(most, abs=1e-6)
    assert str(caught.value).startswith(
        f"'slider-crank' has no configuration with these values near the start: it completed "
        f"{100 * share:.4g} % of the path, to piston = {most:.6g} (requested 0.2521): a dead centre, where "
        "its inputs drive it no further (condition "
    )
    assert f"out of reach by {0.2521 - most:.3g} m" in str(caught.value)
    w = kic.load("three-legged-robot")
    with pytest.raises(
        kic.ConfigurationError, match=r"platform \(pose\) ([\d.]+) away and ([\d.]+) rad off"
    ) as far:
        w.at({"platform": transform(np.array([9.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.3]))})
    assert 0 < far.value.share[0] < 1
    angle = far.value.reached.value("platform.angle")[0]
    assert angle == pytest.approx(0.3 * far.value.share[0], abs=1e-9)
    assert f"and {0.3 - angle:.3g} rad off" in str(far.value)


WRONG = [
    ("four-bar", {"A": 1.0, "D": 2.0}, {"mobility": 1, "count": 2}),
    ("five-bar", {}, {"mobility": 2, "count": 0}),
    ("five-bar", {"tip": (24.0, 25.0, 0.0)}, {"mobility": 2, "count": 3}),
    ("five-bar", [1.0, 1.5, 0.0], {"key": "values", "got": (3,), "expected": (2,)}),
    ("five-bar", {"coupler": np.zeros(6), "A": 1.2}, {"name": "coupler"}),
    ("panda", {"link7": RigidTransform.identity()},
     {"mobility": 7, "count": 6}),
    ("puma560", {"link6": Rotation.identity()}, {"mobility": 6, "count": 3}),
    ("puma560", {"tool": [1, 0, 0], "link6": RigidTransform.identity()},
     {"mobility": 6, "count": 9}),
    ("five-bar", {"coupler": RigidTransform.identity()},
     {"mobility": 2, "count": 3}),
    ("puma560", {"link6": np.zeros(6)}, {"name": "link6"}),
    ("puma560", {"tool": Rotation.identity()}, {"key": "tool"}),
    ("puma560", {"hand": RigidTransform.identity()}, {"name": "hand"}),
    ("puma560", {"ground": RigidTransform.identity()}, {"name": "ground"}),
    ("four-bar", {"A": 1j}, {"key": "A", "got": complex}),
    ("four-bar", {3: 1.0}, {"key": "values", "got": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "data"), WRONG)
def test_inputs_of_wrong_count_or_type_raise(name: str, inputs: dict, data: dict) -> None:
    m = kic.load(name)
    with raises(kic.KicError, **data):
        m.at(inputs, near=m.at())


def test_mechanism_without_moving_bodies() -> None:
    """A triangle of bars has one configuration, and closes without inputs."""
    m = kic.load("four-bar")
    bars = replace(
        m,
        joints=tuple(replace(j, bodies=("ground", "crank")) if j.name == "B" else j for j in m.joints[:2]),
        bodies=m.bodies[:1],
        points=(),
        coordinates=(),
    )
    assert bars.dof == 0
    assert bars.at({}).batch == ()
    with raises(kic.InputError, mobility=0, count=1):
        bars.at({"A": 1.0})
    with raises(kic.ConfigurationError, failed=[()]):
        kic.load("gough-stewart").at({"platform": Rotation.identity(), "eye": [np.nan, 0, 1]})


@pytest.mark.parametrize("name", ["five-rod-suspension", "quadruped", "three-finger-hand", "puma560"])
def test_coordinates_without_numbers(name) -> None:
    m = kic.load(name)
    values = np.full((2, m.dof), np.nan)
    values[1] = 0.1
    with pytest.raises(kic.ConfigurationError, match="finite"):
        m.at(values[0])
    assert not m.at(values, failures="mask").ok[0]


def test_inputs_that_depend_on_one_another() -> None:
    """Crank and rocker of a linkage whose coupler spins by itself; and a body left free by a pose."""
    m = kic.load("rssr")
    here = m.at()
    for move in (0.0, 0.1):
        with pytest.raises(kic.ConfigurationError, match=r"are dependent where it starts.*spin can move"):
            m.at({"crank": here.value("crank") + move, "rocker": here.value("rocker")})
    arm = kic.load("puma560")
    near = arm.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
    with pytest.raises(kic.ConfigurationError, match=r"while they are at rest, .*(wrist|flange).* can move"):
        arm.at({"link3": near.pose("link3")}, near=near)
    # the drawn wrist is aligned: which way it bends is open
    with pytest.raises(
        kic.ConfigurationError, match=r"wrist_roll, flange can move.*look with assembly_modes\(\)"
    ):
        arm.at({"link6": near.pose("link6")})


def test_loops_that_contradict_themselves() -> None:
    """A four-bar with one axis tilted does not move, and takes no input."""
    m = kic.load("four-bar")
    joints = [replace(j, axis=(0.0, 0.1, 1.0)) if j.name == "C" else j for j in m.joints]
    stiff = replace(m, joints=tuple(joints))
    assert stiff.dof == 0
    with raises(kic.InputError, mobility=0, count=1):
        stiff.at({"A": 1.0})
    forced = replace(stiff, closure_tolerance=0.02)
    assert forced.dof == 1
    with pytest.raises(
        kic.ConfigurationError, match=r"it completed [\d.]+ % .* its loops are inconsistent by [\d.e-]+"
    ):
        forced.at({"A": 2.5})


@pytest.mark.slow
def test_distances_that_cannot_be() -> None:
    m = serial(
        [(0, 0, 0), (1, 0, 0)],
        "ab",
        points=[kic.Point("root", "ground", (0, 0, 0)), kic.Point("tip", "b", (1, 1, 0))],
        distances=[kic.Distance("gap", ("root", "tip"))],
    )
    long = np.array([1.2, -1.0, 0.0, 1.5, np.nan, 2.5])
    with pytest.raises(kic.ConfigurationError, match=r"gap = -1, but a distance is never negative") as caught:
        m.at({"A": 0.0, "gap": long})
    assert caught.value.failed == [(1,), (2,), (4,), (5,)]
    assert "gap = 0, where a distance has no direction; name the rows of a point" in caught.value.reasons[1]
    assert caught.value.reasons[2] == "gap is NaN, and values must be finite"
    assert "it completed" in caught.value.reasons[3]
    assert caught.value.share.tolist()[:3] == [0.0, 0.0, 0.0]
    rest = m.at({"A": 0.0, "gap": long}, failures="mask")
    assert rest.ok.tolist() == [True, False, False, True, False, False]
    assert np.abs(rest.value("gap")[rest.ok] - [1.2, 1.5]).max() < 1e-13
    assert "a distance is never negative" in m.assembly_modes({"A": 0.0, "gap": -1.0}).reason
    # drawn with the two points together, a distance has no direction to start in
    m = replace(m, points=(m.points[0], kic.Point("tip", "b", (0, 0, 0))))
    with pytest.raises(
        kic.ConfigurationError, match="a distance among its inputs is zero, or the directions"
    ):
        m.at({"A": 0.0, "gap": 0.5})


def test_poses_out_of_the_plane() -> None:
    m = kic.load("three-legged-robot")
    poses = transform(
        np.array([[0.1, 0, 0], [0, 0, 0.2], [0, 0, 0]]), np.array([[0, 0, 0.1]] * 2 + [[0, 0.3, 0]])
    )
    with pytest.raises(kic.ConfigurationError) as caught:
        m.at({"platform": poses})
    assert caught.value.failed == [(1,), (2,)]
    assert (
        "'platform' moves in the plane normal to (0, 0, 1), and the requested pose leaves it by 0.2"
        in str(caught.value)
    )
    assert "'platform' turns about (0, 0, 1) only, and the requested pose tilts it by 0.3 rad" in str(
        caught.value
    )
    assert m.at({"platform": poses}, failures="mask").ok.tolist() == [True, False, False]


def test_an_antiparallel_closure() -> None:
    """A door on a ball and a hinge: turned over it would also fit the hinge's perpendicularities."""
    leaf, tip = kic.Body("leaf"), kic.Point("tip", "leaf", (1, 0, 0.3))
    ball = kic.Joint("ball", "spherical", ("ground", "leaf"), at=(0, 0, 0))
    hinge = kic.Joint("hinge", "revolute", ("ground", "leaf"), at=(0, 0, 0), axis=(0, 0, 1))
    m = kic.Mechanism("door", [leaf], [ball, hinge], points=[tip], coordinates=["ball"])
    with pytest.raises(
        kic.ConfigurationError, match="joint 'hinge' closed the wrong way round: its two axes oppose"
    ):
        m.at({"tip.x": -1.0})
    # from an open door it is led there, hinge up
    assert m.at({"tip.x": -0.9}, near=m.at({"tip.y": 0.5})).value("hinge") == pytest.approx(
        np.arccos(-0.9), abs=1e-13
    )
    found = m.assembly_modes({"tip.x": 0.2})
    assert np.sort(found.configuration.value("hinge")) == pytest.approx(
        [-np.arccos(0.2), np.arccos(0.2)], abs=1e-12
    )
    # with a bolt on the other side of the leaf only the flipped door would do
    assert "closed the wrong way round" in m.assembly_modes({"tip.z": -0.3}).reason


@pytest.mark.slow
def test_members_of_a_batch() -> None:
    m = kic.load("four-bar")
    c = m.at({"A": [[1.0, 1.1, 1.2], [1.3, 1.4, 1.5]]})
    tip = c.value("tip")
    for index in (0, (1, 2), (..., 0), (slice(None), None), np.array([[True, False, True]] * 2), [1, 0]):
        some = c[index]
        of = tip[index] if not isinstance(index, tuple) else tip[(*index, slice(None))]
        assert np.array_equal(some.value("tip"), of)
        assert some.batch == of.shape[:-1]
    assert [one.batch for one in c] == [(3,), (3,)]
    assert c[:0].batch == (0, 3)
    # answers are those of the batch
    assert np.array_equal(c[1, 2].coefficients("tip", order=3).D, c.coefficients("tip", order=3).D[1, 2])
    assert np.array_equal(m.path({"A": [1.5, 1.6]}, near=c[1, 2])[-1].value("A"), np.float64(1.6))
    # a member without a configuration has none among others
    some = m.at({"D": [2.4, 0.0, 2.6]}, failures="mask")
    assert [bool(one.ok) for one in some] == [True, False, True]
    assert np.isnan(some[1].value("tip")).all()
    assert some[some.ok].ok.all()


def test_a_target_out_of_reach_of_a_straight_arm_is_reported_as_such() -> None:
    arm = kic.load("horn-two-link")
    with raises(kic.ConfigurationError) as caught:
        arm.at({"tip.x": [2.5] * 5, "tip.y": 0.0})
    reasons = caught.value.reasons
    assert reasons[0].startswith("out of reach by 0.5 m")
    assert "are dependent" in reasons[0]
    with raises(kic.ConfigurationError) as caught:
        arm.at({"tip.x": 1.5, "tip.y": 0.0})
    assert caught.value.reasons[0].startswith("its inputs are dependent")


def bent_arm(*parts: kic.CenterOfMass) -> kic.Mechanism:
    """Two links whose reference configuration is bent, with every kind of part whose rows have values."""
    return serial(
        [(0, 0, 0), (1, 0, 0)],
        [
            kic.Body("upper", mass=1.0, com=(0.5, 0.0, 0.0), inertia=0.1),
            kic.Body("lower", mass=2.0, com=(1.0, 0.4, 0.0), inertia=0.1),
        ],
        points=[kic.Point("tip", "lower", at=(1.0, 0.8, 0.0)), kic.Point("base", "ground", at=(-1, 0.1, 0))],
        frames=[kic.Frame("tool", "lower", origin=(1.0, 0.7, 0.0))],
        distances=[kic.Distance("reach", ("base", "tip"))],
        centers=parts,
    )


BENT = bent_arm(kic.CenterOfMass("lower half", ("lower",)))
VALUED_ROWS = [
    ("com.x", "com.y"),
    ("lower half.x", "lower half.y"),
    ("tip.x", "tip.y"),
    ("tool.x", "tool.y"),
    ("lower.x", "lower.y"),
    ("reach", "A"),
    ("lower.angle", "B"),
    ("com.x", "A"),
]


@pytest.mark.parametrize("names", VALUED_ROWS, ids=" ".join)
def test_every_row_with_a_value_is_an_input_of_open_chains(names: tuple[str, str]) -> None:
    near = BENT.at([0.1, -0.05])
    wanted = {name: near.value(name) for name in names}
    assert_allclose(BENT.at(wanted)._phi, near._phi, atol=1e-9)
    several = {name: [x, x] for name, x in wanted.items()}
    assert_allclose(BENT.path(several)._phi, [near._phi] * 2, atol=1e-9)
    swept = BENT.sweep({name: [x] for name, x in wanted.items()}, "A")
    assert_allclose(swept["A"].ravel(), near.value("A"), atol=1e-9)
    found = BENT.assembly_modes(wanted)
    assert np.abs(found.configuration._phi - near._phi).max(axis=-1).min() < 1e-9


def test_a_centre_of_mass_named_com_replaces_that_of_all_bodies() -> None:
    m = bent_arm(kic.CenterOfMass("com", ("lower",)))
    near = m.at([0.1, -0.05])
    assert_allclose(
        near.value("com"), displacement(near, "lower") @ [1.0, 0.4, 0.0, 1.0] @ np.eye(4, 3), atol=1e-14
    )
    assert_allclose(m.at({"com.x": near.value("com")[0], "A": 0.1})._phi, near._phi, atol=1e-9)


def test_ball_joints_of_open_chains_take_vectors_near_any_configuration() -> None:
    """All coordinates fix the state of an open chain, from any start."""
    base = kic.Joint("base", "spherical", ("ground", "arm"), at=(0, 0, 0))
    elbow = kic.Joint("elbow", "revolute", ("arm", "hand"), at=(1, 0, 0), axis=(0, 0, 1))
    m = kic.Mechanism("shoulder", [kic.Body("arm"), kic.Body("hand")], [base, elbow])
    near = m.at([0.1, 0.2, 0.3, 0.4])
    for values in ({"base": [0.2, -0.1, 0.5], "elbow": 1.0}, {"base": [0.2, -0.1, 0.5], "elbow": [1.0, 2.0]}):
        assert_allclose(m.at(values, near=near).state, m.at(values).state, rtol=0, atol=0)
    several = m.at(values, near=m.at([near._phi, 2 * near._phi]))
    assert_allclose(several.state, m.at(values).state, rtol=0, atol=0)
    with raises(kic.InputError):
        m.at(values, near=m.at([near._phi] * 3))
    with raises(kic.InputError, key="near"):
        m.at(values, near=kic.load("four-bar").at())
