"""Rotations of spherical joints among the values of a position problem, beside loops and in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy.spatial.transform import RigidTransform, Rotation

import kic

AXES = {"axis": (0.0, 1.0, 0.0), "axis2": (0.0, 0.0, 1.0)}
COLUMNS = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]).T


def machine(free: bool = False, **axes: Any) -> kic.Mechanism:
    """A four-bar with an arm on a ball joint at its coupler, on the ground or on a free base."""
    m = kic.load("four-bar")
    arm = kic.Body("arm", mass=1.0, com=(0.1, 0.2, 1.0), inertia=(1.0, 1.0, 1.0))
    ball = kic.Joint("S", "spherical", ("coupler", "arm"), at=m["B"].at, **axes)
    if not free:
        return m.add(arm, ball).replace(coordinates=["A", "S"])
    base = kic.Body("base", mass=1.0, com=(0.0, 0.0, 0.0), inertia=(1.0, 1.0, 1.0))
    joints = [replace(j, bodies=tuple("base" if b == "ground" else b for b in j.bodies)) for j in m.joints]
    joints += [kic.Joint("root", "free", ("ground", "base"), at=(0.0, 0.0, 0.0)), ball]
    return kic.Mechanism("mobile", [*m.bodies, arm, base], joints, coordinates=["root", "A", "S"])


def spatial_loop(seed: int, coordinates: list[str], kinds: str = "USUU") -> kic.Mechanism:
    """A loop of bodies a, b and c with joints at random places."""
    rng = np.random.default_rng(seed)
    places = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0]]) + 0.2 * rng.normal(size=(4, 3))
    types = {"U": ("universal", 2), "S": ("spherical", 0), "R": ("revolute", 1)}
    names, joints = ["ground", "a", "b", "c", "ground"], []
    for k, (name, kind) in enumerate(zip("JSKL", kinds, strict=True)):
        word, count = types[kind]
        rows = np.linalg.qr(rng.normal(size=(3, 3)))[0][:count].tolist()
        axes = dict(zip(("axis", "axis2"), rows, strict=False))
        joints.append(kic.Joint(name, word, (names[k], names[k + 1]), at=places[k].tolist(), **axes))
    bodies = [
        kic.Body(name, mass=1.0, com=places[k : k + 2].mean(axis=0).tolist(), inertia=(1.0, 1.0, 1.0))
        for k, name in enumerate("abc")
    ]
    return kic.Mechanism("loop", bodies, joints, coordinates=coordinates)


def furthest(m: kic.Mechanism, a: kic.Configuration, b: kic.Configuration) -> float:
    """Largest difference of the poses of all bodies."""
    pairs = ((a.pose(body.name), b.pose(body.name)) for body in m.bodies)
    return max(float(np.abs(p.as_matrix() - q.as_matrix()).max()) for p, q in pairs)


def relative(c: kic.Configuration, joint: kic.Joint) -> Rotation:
    """Rotation of the second body of a joint relative to the first, from the poses of both."""
    first, second = (c.pose(body).rotation for body in joint.bodies)
    return first.inv() * second


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("axes", [{}, AXES])
@pytest.mark.parametrize("free", [False, True])
def test_a_ball_joint_takes_its_rotation(seed: int, axes: dict[str, Any], free: bool) -> None:
    """It is a vector in its axes, in three components or an array, or a Rotation, also beyond half a turn."""
    rng = np.random.default_rng(seed)
    m = machine(free, **axes)
    columns = COLUMNS if axes else np.eye(3)
    vector, crank = rng.normal(size=3) * rng.choice([0.3, 1.0, 3.0]), rng.uniform(0.0, 6.0)
    root = rng.normal(size=6) if free else np.zeros(0)
    rest = {"A": crank} | ({"root": root} if free else {})
    wanted = Rotation.from_rotvec(columns @ vector)
    given = (
        rest | {"S": vector},
        rest | {"S": wanted},
        rest | {f"S.{k + 1}": x for k, x in enumerate(vector)},
        np.concatenate([root, [crank], vector]),
    )
    for values in given:
        c = m.at(values)
        assert (relative(c, m["S"]) * wanted.inv()).magnitude() < 1e-9
        assert abs(c.value("A") - crank) < 1e-9
        assert np.abs(m.at(given[0]).pose("arm").as_matrix() - c.pose("arm").as_matrix()).max() < 1e-9


def test_batches_and_paths_of_rotations() -> None:
    m = machine()
    vectors = np.linspace([0.1, 0.0, -0.2], [1.0, 2.0, 0.4], 7)
    for values in ({"A": np.linspace(1, 2, 7), "S": vectors}, {"A": 1.2, "S": Rotation.from_rotvec(vectors)}):
        for c in (m.at(values), m.path(values)):
            assert c.batch == (7,)
            assert (relative(c, m["S"]) * Rotation.from_rotvec(vectors).inv()).magnitude().max() < 1e-9
    found = m.at({"A": 1.2, "S": [[np.nan, 0, 0], [0.1, 0, 0], [np.inf, 0, 0]]}, failures="mask")
    assert found.ok.tolist() == [False, True, False]
    modes = m.assembly_modes({"A": 1.2, "S": [0.1, 0.2, 0.3]})
    assert relative(modes.configuration, m["S"]).as_rotvec() == pytest.approx(np.array([[0.1, 0.2, 0.3]] * 2))
    assert m.lock({"S": [0.1, 0.2, 0.3]}).coordinates == ("A",)


@pytest.mark.parametrize("seed", range(3))
def test_a_ball_joint_of_a_leg_drives_a_platform(seed: int) -> None:
    """With three lengths: the other lengths are those from which the rotation was taken."""
    m = kic.load("gough-stewart")
    c = m.at(m.at().value(m.coordinates) + np.random.default_rng(seed).uniform(-0.05, 0.05, 6))
    d = m.at({"S1": relative(c, m["S1"])} | {name: c.value(name) for name in ("L1", "L2", "L3")})
    assert np.abs(d.value(m.coordinates) - c.value(m.coordinates)).max() < 1e-10


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("coordinates", [["S"], ["J", "K.1"]])
def test_a_ball_joint_drives_its_spatial_loop(seed: int, coordinates: list[str]) -> None:
    """It is in the tree or closes the loop; other joints lead to the same configuration."""
    m = spatial_loop(seed, coordinates)
    assert (m.dof, "S" in m.mobility().cuts) == (3, coordinates != ["S"])
    c = m.at({"J.1": 0.2, "J.2": -0.1, "K.1": 0.15})
    turn = relative(c, m["S"])
    # both are closed to 1e-12 of the length at most, and conditions are below 1e3
    assert max(furthest(m, m.at({"S": value}), c) for value in (turn, turn.as_rotvec())) < 2e-8


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "rest", [["S1", "S2"], ["S4", "S1"], ["S1", "platform.x", "platform.y", "platform.z"]]
)
def test_ball_joints_of_legs_with_other_rows(seed: int, rest: list[str]) -> None:
    """S1 is in the tree, the others close loops."""
    m = kic.load("gough-stewart")
    c = m.at(m.at().value(m.coordinates) + np.random.default_rng(seed).uniform(-0.05, 0.05, 6))
    values = {n: relative(c, m[n]) if n.startswith("S") else c.value(n) for n in rest}
    assert furthest(m, m.at(values), c) < 2e-8


def test_arms_below_a_platform_in_batches() -> None:
    """Two ball joints in series below the loops, with a scalar, a batch and a batch of rotations."""
    m = kic.load("gough-stewart")
    at = m["S1"].at
    bodies = [kic.Body(n, mass=1.0, com=at, inertia=(1.0, 1.0, 1.0)) for n in ("arm", "hand")]
    arm = kic.Joint("P", "spherical", ("platform", "arm"), at=at)
    m = m.add(*bodies, arm, kic.Joint("Q", "spherical", ("hand", "arm"), at=(0.1, 0.2, 0.5)))
    m = m.replace(coordinates=[*[f"L{k}" for k in range(1, 7)], "P", "Q"])
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3, 2, 3))
    turns = Rotation.from_rotvec(vectors)
    lengths = {f"L{k}": float(m.at().value(f"L{k}")) for k in range(2, 7)}
    c = m.at({"L1": m.at().value("L1") + np.array([0.0, 0.02]), "P": turns, "Q": [0.1, -0.7, 2.0], **lengths})
    assert c.batch == (3, 2)
    assert (relative(c, m["P"]) * turns.inv()).magnitude().max() < 1e-9
    assert np.abs(relative(c, m["Q"]).as_rotvec() - [0.1, -0.7, 2.0]).max() < 1e-9
    one = {"L1": c[1, 1].value("L1"), "P": vectors[1, 1], "Q": [0.1, -0.7, 2.0]} | lengths
    assert furthest(m, c[1, 1], m.at(one)) < 1e-9


MOVING = [
    (lambda: machine(), {"A": 1.0, "S": [0.3, -0.4, 0.9]}, "arm"),
    (lambda: machine(**AXES), {"A": 1.0, "S": [0.3, -0.4, 2.9]}, "arm"),
    (lambda: spatial_loop(1, ["S"]), {"S": [0.05, -0.1, 0.1]}, "c"),
    (lambda: spatial_loop(1, ["J", "K.1"]), {"S": [0.05, -0.1, 0.1]}, "c"),
    (
        lambda: kic.load("gough-stewart"),
        {"S1": [0.05, 0.03, 0.1], "L1": 1.0, "L2": 1.02, "L3": 1.0},
        "platform",
    ),
]


@pytest.mark.parametrize(("make", "values", "body"), MOVING)
@pytest.mark.parametrize("seed", range(2))
def test_coefficients_are_derivatives_by_the_rotation(
    make: Callable[[], kic.Mechanism], values: dict[str, Any], body: str, seed: int
) -> None:
    """G and H with a joint among the coordinates, along a motion that `at` closes at each time.

    The rotation vector from the start, in the joint's axes, is w t + a t²/2. At the start its derivatives are
    the angular velocity w and acceleration a.
    """
    m, rng = make(), np.random.default_rng(seed)
    m = m.add(kic.Point("probe", body, at=(0.3, 0.2, 0.1)))
    ball = next(name for name in values if name.startswith("S"))
    columns = COLUMNS if m[ball].axis else np.eye(3)
    qd, qdd = ({n: rng.normal(size=np.shape(x)) for n, x in values.items()} for _ in range(2))
    begin, start = Rotation.from_rotvec(columns @ values[ball]), m.at(values)

    def probe(t: np.ndarray) -> np.ndarray:
        moved = {
            n: x + np.multiply.outer(t, qd[n]) + np.multiply.outer(t**2 / 2, qdd[n])
            for n, x in values.items()
        }
        vectors = (moved[ball] - values[ball]) @ columns.T
        return m.at(moved | {ball: Rotation.from_rotvec(vectors) * begin}, near=start).value("probe")

    rows = start.coefficients("probe", wrt=list(values))
    v, a = (np.concatenate([np.atleast_1d(x[n]) for n in values]) for x in (qd, qdd))
    found = rows.G @ v, rows.acceleration(v, a)
    # central differences of fourth order; the error follows from twice the step, and from rounding
    estimates = []
    for h in (0.01, 0.02):
        p = probe(h * np.arange(-2, 3))
        estimates.append(
            (np.array([1, -8, 0, 8, -1]) @ p / (12 * h), np.array([-1, 16, -30, 16, -1]) @ p / (12 * h * h))
        )
    for one, fine, coarse, rounding in zip(found, *estimates, (1e-11, 1e-9), strict=True):
        error = np.abs(fine - coarse).max() / 15 + rounding
        assert np.abs(one - fine).max() < 20 * error
        assert 20 * error < 0.01 * np.abs(one).max()


@pytest.mark.parametrize("value", [[0.1, -0.4, 2.0], Rotation.from_rotvec([0.1, -0.4, 2.0])])
def test_sensitivities_to_places_and_axes(value: Any) -> None:
    """A rotation vector turns with the axes of its joint, and a `Rotation` does not."""
    m = machine(**AXES).add(kic.Point("probe", "arm", at=(0.3, 0.2, 0.1)))

    def probe(m: kic.Mechanism) -> np.ndarray:
        return m.at({"A": 1.2, "S": value}).value("probe")

    def changed(step: float, place: bool) -> kic.Mechanism:
        if place:
            return m.replace("B", at=tuple(np.add(m["B"].at, (step, 0.0, 0.0))))
        turn = Rotation.from_rotvec([step, 0.0, 0.0])
        return m.replace("S", **{key: tuple(turn.apply(axis)) for key, axis in AXES.items()})

    found = m.sensitivity(probe, [{"S.axis.rx": 1.0, "S.axis2.rx": 1.0}, "B.at.x"])
    h = 1e-4
    for one, place in zip(found, (False, True), strict=True):
        expected = (probe(changed(h, place)) - probe(changed(-h, place))) / (2 * h)
        # third derivatives below 10 give 2e-8, and closures to 1e-13 give 1e-9
        assert np.abs(one - expected).max() < 4e-7
    assert (np.abs(found[0]).max() > 0.01) == isinstance(value, list)


def test_a_prepared_position_gives_the_reasons_of_at() -> None:
    """Where the compiled iteration fails, `at` takes the rotation of a joint between moving bodies."""
    m = machine().replace(coordinates=["D", "S"])
    with pytest.raises(kic.ConfigurationError, match="dead centre") as caught:
        m.prepare.position()(m.at().state, np.array([3.0, 0.1, 0.2, 0.3]))
    assert 0.5 < caught.value.share[0] < 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"A": 1.0, "S": [0.1, 0.2]}, r"`S` must have shape \(\.\.\., 3\)"),
        ({"A": 1.0, "S": 0.1}, "a rotation vector or a SciPy Rotation"),
        ({"A": 1.0, "S": RigidTransform.identity()}, "Give its `rotation`"),
        ({"A": 1.0, "S": [0.1, 0.2, 0.3], "S.1": 0.1, "S.2": 0.2, "S.3": 0.3}, "'S' is given twice"),
        ({"A": 1.0, "S": [0.1, 0.2, 0.3], "S.1": 0.1}, "'S' is given twice"),
        ({"A": 1.0, "S": "x"}, "`S` must be an array of numbers"),
        ({"A": 1.0, "S": np.array([0.1, 0.2, 1e-30j])}, "`S` must be real numbers"),
        ({"A": 1.0, "S.1": 0.1}, "Give 'S' a rotation vector or a Rotation"),
        ({"S": [0.1, 0.2, 0.3]}, r"S \(orientation\): 3. Name 1 more"),
        (
            {"A": 1.0, "D": 1.0, "S": [0.1, 0.2, 0.3]},
            r"5 coordinates were named: A, D, S \(orientation\): 3. N",
        ),
        ({"A": 1.0, "arm.euler_xyz": np.array([0.1, 0.2, 1e-30j])}, "must be real numbers"),
    ],
)
def test_wrong_rotations_raise(values: dict[str, Any], message: str) -> None:
    with pytest.raises(kic.InputError, match=message):
        machine().at(values)
    with pytest.raises(kic.InputError, match="`root` must be real numbers"):
        machine(free=True).at({"A": 1.0, "S": [0.0, 0, 0], "root": np.array([0, 0, 0, 0, 0, 1e-30j])})


def test_a_pose_beside_its_free_joint_is_given_twice() -> None:
    """In either order; so are Euler angles and one of them."""
    pose, root = RigidTransform.from_translation([1.0, 2.0, 3.0]), [0.0] * 6
    for twice in ({"root": root, "base": pose}, {"base": pose, "root": root}):
        with raises(kic.InputError, name="base"):
            machine(free=True).at(twice | {"A": 1.0, "S": [0.1, 0.2, 0.3]})
    angles = {"arm.euler_xyz": [0.1, 0.2, 0.3], "arm.euler_xyz.1": 0.1}
    with raises(kic.InputError, name="arm.euler_xyz"):
        machine().at({"A": 1.0} | angles)


def test_too_many_inputs_of_a_loop_with_little_freedom() -> None:
    """The rotation counts as three where the loop has two, one of which is the spin of its rod."""
    m = spatial_loop(0, ["J"], "RSSR")
    with raises(kic.InputError, mobility=2, count=3):
        m.at({"S": [0.1, 0.0, 0.0]})


def test_rotation_vectors_in_degrees() -> None:
    """They are read in rad, with a warning, as those of open chains."""
    with pytest.warns(kic.DegreesWarning, match="S.2 = 90"):
        machine().at({"A": 1.0, "S": [0.0, 90.0, 0.0]})
    with pytest.warns(kic.DegreesWarning, match="root.4 = 90"):
        machine(free=True).at({"A": 1.0, "S": [0.1, 0.2, 0.3], "root": [0, 0, 0, 90, 0, 0]})
