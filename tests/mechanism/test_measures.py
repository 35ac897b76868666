"""Angles between directions, and distances from lines: identities, constraints, limits, errors and files."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from free_bodies import equilibrium_residual, placed, rotated
from raising import raises
from sampling import (
    agree,
    check_inertia,
    check_orders,
    derivative,
    random_body,
    random_posture,
    random_tree,
)

import kic

Z = (0.0, 0.0, 1.0)
MEASURES = ("mu", "clear", "off")


def four_bar(**limits: tuple[float, float]) -> kic.Mechanism:
    """Return a four-bar with an angle and two distances from lines, one of them through a point of ground."""
    m = kic.linkages.four_bar(ground=4.0, crank=1.0, coupler=3.5, rocker=3.0)
    return m.add(
        kic.Point("P", "ground", (2.0, 3.0, 1.0)),
        kic.Angle("mu", ("coupler", "rocker"), (1, 0, 0), (0.3, 1, 0), limits=limits.get("mu")),
        kic.Distance("clear", ("P", "tip"), axis=Z, limits=limits.get("clear")),
        kic.Distance("off", ("tip", "P"), axis=(0.2, 1, 1)),
    )


def five_bar() -> kic.Mechanism:
    """Return a five-bar in the vertical plane, with two degrees of freedom."""
    rng = np.random.default_rng(0)
    places = (0, 0, 0), (0, 1, 0), (1.5, 1.8, 0), (3, 1.1, 0), (3, 0, 0)
    ends = ("ground", "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("ground", "d")
    joints = [kic.Joint(*x, at, Z) for *x, at in zip("ABCDE", ["revolute"] * 5, ends, places, strict=True)]
    bodies = [random_body(rng, name) for name in "abcd"]
    return kic.Mechanism("five-bar", bodies, joints, gravity=(0, -9.81, 0), coordinates=["A", "E"])


def test_angle_of_a_planar_linkage_is_that_of_the_joint() -> None:
    m = four_bar()
    c = m.at({"A": np.linspace(0.4, 2.0, 5)})
    apart = c.value("mu") - c.value("C")
    np.testing.assert_allclose(apart, m.at().value("mu") - m.at().value("C"), atol=1e-13)
    assert agree(c.coefficients("mu", order=3), c.coefficients("C", order=3), limit=1e-11)


def test_by_hand() -> None:
    m = kic.load("horn-two-link").add(
        kic.Angle("tilt", ("link2", "ground"), (3, 0, 0), (0, 0, 5)),
        kic.Angle("turn", ("ground", "link2"), (0, 2, 0), (1, 0, 0)),
    )
    c = m.at([0.2, 0.3])
    assert c.value("tilt") == pytest.approx(np.pi / 2, abs=1e-15)
    assert c.value("turn") == pytest.approx(np.pi / 2 - 0.5, abs=1e-15)
    np.testing.assert_allclose(c.coefficients("turn").G, [[-1, -1]], atol=1e-15)
    assert not c.coefficients("tilt").G.any()


@pytest.mark.parametrize("batch", [(), (3, 2)])
def test_values_follow_from_poses(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    m = random_tree(rng, ["R", "P", "spherical", "R", "free"], branched=True)
    c = random_posture(rng, m, batch)
    for index in np.ndindex(*batch):
        one = c[index] if batch else c
        for d in m.distances[1:]:
            p, q = (m[name] for name in d.points)
            u, r = rotated(one, q.body, d.axis), placed(one, p.body, p.at) - placed(one, q.body, q.at)
            want = np.linalg.norm(np.cross(r, u)) / np.linalg.norm(u)
            assert one.value(d.name) == pytest.approx(want, rel=1e-13)
        (a,) = m.angles
        u, w = (rotated(one, body, v) for body, v in zip(a.bodies, (a.axis, a.axis2), strict=True))
        want = np.arctan2(np.linalg.norm(np.cross(u, w)), u @ w)
        assert one.value(a.name) == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("wrt", [None, *MEASURES])
def test_orders_in_closed_coordinates(wrt: str | None) -> None:
    c = four_bar().at({"A": 1.2})
    check_orders(c, [*MEASURES, "tip", "D"], wrt, 1e-10)
    if wrt:
        A, own = c.coefficients("A", wrt=wrt), c.coefficients(wrt)
        np.testing.assert_allclose(A.G * own.G, 1.0, rtol=1e-12)
        np.testing.assert_allclose(A.H, -own.H / own.G[..., None] ** 3, rtol=1e-10)
        check_inertia(kic_with_mass(c), wrt, 1e-9)


def kic_with_mass(c: kic.Configuration) -> kic.Configuration:
    """Return the configuration of the four-bar with random bodies."""
    bodies = [random_body(np.random.default_rng(1), name) for name in ("crank", "coupler", "rocker")]
    return four_bar().replace(bodies=bodies).at({"A": c.value("A")})


@pytest.mark.parametrize("name", MEASURES)
def test_positions_return(name: str) -> None:
    m = four_bar()
    goal = m.at({"A": np.linspace(1.4, 1.7, 4)})
    found = m.at({name: goal.value(name)}, near=goal[1])
    np.testing.assert_allclose(found.value("A"), goal.value("A"), atol=1e-10)
    way = m.path({name: goal.value(name)}, near=goal[0])
    np.testing.assert_allclose(way.value("A"), goal.value("A"), atol=1e-10)
    own = m.replace(coordinates=[name])
    assert own.at(way[3].value(name), near=own.at({"A": 1.4})).value("A") == pytest.approx(1.7, abs=1e-11)


def test_derivatives_are_bounded_as_certified_steps_assume() -> None:
    """Derivatives to fourth order along x, of norm 1 in the sum of all turns, at random configurations."""
    rng = np.random.default_rng(4)
    worst, rows = np.zeros((3, 4)), ("off", "beside", "tilt")
    for _ in range(20):
        m = random_tree(rng, "RRR")
        t = m._model.transfer(rows)
        lever = t.system.levers[t.system.rows.item_of[t.system.picked]] * t.scale[:3]
        c = random_posture(rng, m, (50,))
        x = rng.normal(size=(50, 3)) ** 3
        x /= np.abs(x).sum(axis=1, keepdims=True)
        k = c.coefficients(rows, order=3)
        G, H, D = (np.abs(y) for y in (
            np.einsum("bpi,bi->bp", k.G, x), np.einsum("bpij,bi,bj->bp", k.H, x, x),
            np.einsum("bpijk,bi,bj,bk->bp", k.D, x, x, x),
        ))  # fmt: skip
        E = np.abs(np.einsum(
            "bpijkl,bi,bj,bk,bl->bp",
            derivative(c, lambda c: c.coefficients(rows, order=3).D).reshape(*k.D.shape, 3),
            x, x, x, x,
        ))  # fmt: skip
        r, f = lever[:2] / k.values[:, :2], 1 / np.sin(k.values[:, 2:])
        length = [lever[:2] * y for y in (r**0, 1 + r, 1 + r * (3 + 3 * r), 1 + r * (7 + r * (18 + 15 * r)))]
        turn = f**0, 2 * f, 1 + f + 6 * f**2, f * (18 + f * (4 + 36 * f))
        for order, (y, one, other) in enumerate(zip((G, H, D, E), length, turn, strict=True)):
            bound = np.concatenate([one, other], axis=1)
            worst[:, order] = np.maximum(worst[:, order], (y / bound).max(axis=0))
    assert worst.max() < 1 + 1e-9
    assert worst[:, 0].min() > 0.2  # the first bounds are not far away


def test_fixed_angle_of_a_plane_is_a_gear() -> None:
    m = five_bar()
    held = m.add(kic.Angle("w", ("a", "d"), (0, 1, 0), (0.2, 1, 0), fixed=True)).replace(coordinates=["A"])
    gear = m.add(kic.Coupling("w", ("A", "E"), ratios=(1.0, -1.0))).replace(coordinates=["A"])
    c, other = (x.at([[0.3], [-0.2]]) for x in (held, gear))
    np.testing.assert_allclose(c.value("E"), c.value("A"), atol=1e-12)
    for of in ("c", "C"):
        assert agree(c.coefficients(of, order=3), other.coefficients(of, order=3), limit=1e-10)
    np.testing.assert_allclose(c.dynamics().I, other.dynamics().I, rtol=1e-11)
    load, pair = (x[0].joint_forces([0.7], [0.4]) for x in (c, other))
    np.testing.assert_allclose(load.effort, pair.effort, rtol=1e-10)
    np.testing.assert_allclose(np.abs(load.tie_load), np.abs(pair.tie_load), rtol=1e-10)
    assert held.mobility().conditions["w"] == 1


def spatial(*parts: object, joint: str = "spherical") -> kic.Mechanism:
    """Return a body on a ball or universal joint of an arm, with further parts."""
    rng = np.random.default_rng(7)
    axes = {"axis": (1, 0, 0), "axis2": (0, 1, 1)} if joint == "universal" else {}
    joints = [kic.Joint("A", "revolute", ("ground", "arm"), (0, 0, 0), (0, 1, 0))]
    joints.append(kic.Joint("B", joint, ("arm", "hand"), (1, 0, 0), **axes))
    points = [kic.Point("tip", "hand", (1.4, 0.5, 0.8)), kic.Point("eye", "ground", (0.5, 0.2, -0.3))]
    points.append(kic.Point("nail", "hand", (1.2, -0.4, 0.3)))
    bodies = [random_body(rng, name) for name in ("arm", "hand")]
    return kic.Mechanism("spatial", bodies, joints, points=points).add(*parts)


def test_fixed_right_angle_makes_a_ball_joint_universal() -> None:
    held = spatial(kic.Angle("square", ("arm", "hand"), (1, 0, 0), (0, 1, 1), fixed=True))
    hooked = spatial(joint="universal")
    other = hooked.at([0.2, 0.4, -0.3])
    c = held.at({row: other.value(row) for row in ("A", "tip.x", "tip.z")})
    wrt = ["A", "hand.wx", "hand.wz"]
    assert held.dof == 3
    of, qd, qdd = ["tip", "hand"], [0.3, -0.6, 0.2], [0.5, 0.1, -0.7]
    assert agree(c.coefficients(of, order=3, wrt=wrt), other.coefficients(of, order=3, wrt=wrt), limit=1e-10)
    load = c.joint_forces(qd, qdd, wrt=wrt, actuators=["A", "B.1", "B.3"])
    assert equilibrium_residual(held, c, load, qd, qdd, wrt) < 1e-11
    about = np.cross(rotated(c, "arm", (1, 0, 0)), rotated(c, "hand", (0, 1, 1)))
    moment = load["B"].moment + load.tie_load[0] * about / np.linalg.norm(about)
    assert abs(load.tie_load[0]) > 0.1
    hooked_load = other.joint_forces(qd, qdd, wrt=wrt, actuators=["A", "B.1", "B.2"])
    np.testing.assert_allclose(moment, hooked_load["B"].moment, rtol=1e-10)


def test_fixed_distance_from_a_line_is_a_sliding_rod() -> None:
    """The rod turns about the line and slides along it, and has a ball joint at the point."""
    axis = (0.2, 1.0, 0.3)
    held = spatial(kic.Distance("rod", ("tip", "eye"), axis=axis, fixed=True))
    drawn = spatial(
        kic.Body("rod", mass=0.0, com=(0, 0, 0), inertia=0),
        kic.Joint("S", "cylindrical", ("ground", "rod"), (0.5, 0.2, -0.3), axis),
        kic.Joint("T", "spherical", ("rod", "hand"), (1.4, 0.5, 0.8)),
    )
    wrt = ["A", "hand.wx", "hand.wz"]
    assert held.dof == 3
    start = {"A": held.at(), "S": drawn.at()}
    for turn in (0.0, 0.15):
        values = {"A": turn, "tip.x": 1.4 - 0.1 * turn, "nail.y": -0.4 + 0.3 * turn}
        c, other = held.at(values, near=start["A"]), drawn.at(values, near=start["S"])
        assert c.value("rod") == pytest.approx(held.at().value("rod"), rel=1e-11)
        of, qd, qdd = ["tip", "hand"], [0.3, -0.6, 0.2], [0.5, 0.1, -0.7]
        assert agree(
            c.coefficients(of, order=3, wrt=wrt), other.coefficients(of, order=3, wrt=wrt), limit=1e-9
        )
        load = c.joint_forces(qd, qdd, wrt=wrt, actuators=["A", "B.1", "B.2"])
        assert equilibrium_residual(held, c, load, qd, qdd, wrt) < 1e-11
        force = other.joint_forces(qd, qdd, wrt=wrt, actuators=["A", "B.1", "B.2"])["T"].force
        assert abs(load.tie_load[0]) == pytest.approx(np.linalg.norm(force), rel=1e-8)
    assert held.mobility().conditions == {"rod": 1}


def test_limits_stop_paths() -> None:
    m = four_bar(mu=(0.7, 1.1), clear=(0.3, 1.5))
    assert m.limits == {"clear": (0.3, 1.5), "mu": (0.7, 1.1)}
    way = m.path({"A": np.linspace(1.2, 2.2, 6)}, limits=True, failures="mask")
    inside = m.path({"A": np.linspace(1.2, 2.2, 6)}).value("mu") <= 1.1
    assert 0 < inside.sum() < 6
    np.testing.assert_array_equal(way.ok, inside)
    with raises(kic.ConfigurationError):
        m.at({"A": 2.2}, limits=True)


def test_exported_rows_agree() -> None:
    m, A = four_bar(), 1.2
    c = m.at({"A": A})
    made = m.export.coefficients([*MEASURES], order=3, close=True).to_numpy()(A)
    for name in MEASURES:
        k = c.coefficients(name, order=3)
        for letter, want in zip(("value", *"GHD"), (k.values, *k.tensors), strict=True):
            np.testing.assert_allclose(made[f"{name}.{letter}"], want, rtol=1e-9)


@pytest.mark.parametrize("name", MEASURES)
def test_assembly_modes_are_sampled_only(name: str) -> None:
    m = four_bar()
    want = m.at({"A": 1.6}).value(name)
    assert 1.6 in m.assembly_modes({name: want}).configuration.value("A").round(9)
    with raises(kic.InputError, key="complete"):
        m.assembly_modes({name: want}, complete=True)


def test_sensitivities() -> None:
    m, h = four_bar(), 1e-6
    names = ["mu.axis2.rz", "clear.axis.ry", "off.axis.x", "P.at.y", "C.at.x"]
    S = m.sensitivity(lambda x: x.at({"A": 1.2}).value([*MEASURES]), names)
    turned = m.replace("off", axis=(0.2 + h, 1, 1)).at({"A": 1.2}).value("off")
    assert S[2, 2] == pytest.approx((turned - m.at({"A": 1.2}).value("off")) / h, rel=1e-4)
    assert S[0].tolist() == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)
    with raises(kic.InputError, name="clear"):
        m.sensitivity(lambda x: 0.0, "clear")


def test_measures_on_a_straight_arm() -> None:
    arm = kic.load("horn-two-link").add(
        kic.Angle("fold", ("ground", "link2"), (1, 0, 0), (1, 0, 0)),
        kic.Point("eye", "ground", (5.0, 0.0, 0.0)),
        kic.Distance("lift", ("tip", "eye"), axis=(1, 0, 0)),
    )
    assert arm.at([0.0, 0.0]).value(["fold", "lift"]).tolist() == [0.0, 0.0]
    # the remedy: a perpendicular direction
    other = arm.replace("fold", axis2=(0, 1, 0)).at([0.0, 0.0]).coefficients("fold", order=3)
    np.testing.assert_allclose(other.G, [[1, 1]], atol=1e-15)


@pytest.mark.parametrize("apart", [1e-5, 1e-7, 1e-9])
def test_digits_near_parallel_directions(apart: float) -> None:
    """Of two skew directions in a plane that turns with its hinge, the angle is that of the hinge."""
    u = (0.3, -0.7, 0.0)
    arm = kic.load("horn-two-link").add(kic.Angle("fold", ("ground", "link2"), u, u))
    found = arm.at([0.2, apart - 0.2]).coefficients("fold", order=3)
    np.testing.assert_allclose(found.values, [apart], rtol=1e-4)
    np.testing.assert_allclose(found.G, [[1.0, 1.0]], rtol=1e-4)
    # relative to products of the first order with the inverse of the sine, which cancel
    assert np.abs(found.H).max() < 1e-4 / apart
    assert np.abs(found.D).max() < 1e-4 / apart**2
    with raises(kic.InputError, name="fold"):
        arm.at([0.2, 1e-11 - 0.2]).coefficients("fold")


def test_angles_drive() -> None:
    m = four_bar().replace(actuators=["mu"])
    c = kic_with_mass(m.at({"A": 1.2}))
    effort = c.linearize().state_space(inputs=["mu"]).B
    np.testing.assert_allclose(
        effort * c.coefficients("A", wrt="mu").G, c.linearize().state_space(inputs=["A"]).B, rtol=1e-10
    )
    spinning = kic.load("rssr").add(kic.Angle("t", ("crankarm", "coupler"), (1, 0.3, 0.2), (0, 1, 0.4)))
    assert spinning.hold_spins().dof == 1
    assert spinning.add(kic.Motor("M", ["t"], inertia=0.1)).hold_spins().dof == 2


def test_described_anew_and_copied(tmp_path: Path) -> None:
    m = four_bar(mu=(0.7, 1.3))
    m.save(tmp_path / "m.toml")
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), kic.load(tmp_path / "m.toml")):
        assert other == m
    locked = m.lock({"mu": 1.0})
    free = locked.unlock()
    assert (locked.dof, free.dof) == (0, 1)
    np.testing.assert_allclose(
        free.at().value([*MEASURES]), m.at({"A": locked.at().value("A")}).value([*MEASURES]), atol=1e-10
    )
    assert "coupler – rocker" in str(m.summary())
    assert "P – line at tip" in str(m.summary())
    assert kic.schema()["$defs"]["Angle"]["required"] == ["name", "bodies", "axis", "axis2"]


@pytest.mark.parametrize(
    ("part", "key"),
    [
        (lambda: kic.Angle("x", ("coupler", "coupler"), (1, 0, 0), (0, 1, 0)), "bodies"),
        (lambda: kic.Angle("x", ("coupler", "rocker"), (0, 0, 0), (0, 1, 0)), "axis"),
        (lambda: kic.Angle("x", ("coupler", "rocker"), (1, 0, 0), (0, 1)), "axis2"),
        (lambda: kic.Angle("x", ("coupler", "rocker"), (1, 0, 0), (0, 1, 0), limits=(-60, 60)), "limits"),
        (lambda: kic.Angle("x", ("a", "b"), (1, 0, 0), (0, 1, 0), limits=(1, 2), fixed=True), "limits"),
        (lambda: kic.Angle("x", ("coupler", "hand"), (1, 0, 0), (0, 1, 0)), "angles[1].bodies"),
        (lambda: kic.Angle("x", ("coupler", "rocker"), (1, 0, 0), (2, 0, 0), fixed=True), "angles[1].fixed"),
        (lambda: kic.Angle("x", ("coupler", "rocker"), Z, (0, 1e-6, -2), fixed=True), "angles[1].fixed"),
        (lambda: kic.Distance("x", ("tip", "P"), axis=(0, 0, 0)), "axis"),
        (lambda: kic.Distance("x", ("tip", "tip"), axis=Z), "points"),
        (lambda: kic.Distance("x", ("P", "Q"), axis=Z, fixed=True), "distances[2].fixed"),
    ],
)  # fmt: skip
def test_wrong_parts(part: object, key: str) -> None:
    with raises(kic.ModelError, key=key):
        four_bar().add(kic.Point("Q", "rocker", (2.0, 3.0, 4.0)), part())  # type: ignore[operator]
