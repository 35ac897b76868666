"""Assembly modes from several starts: distinct, sorted, within limits; residuals of failed starts."""

from __future__ import annotations

import numpy as np
import pytest
from raising import refuses
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.description.description import find_part
from kic.mechanism.configuration import Configuration, displacement

ARM = kic.load("puma560")
TWO = kic.load("horn-two-link")


def wrapped(angle: np.ndarray) -> np.ndarray:
    return np.remainder(angle + np.pi, 2 * np.pi) - np.pi


def family(phi: np.ndarray) -> np.ndarray:
    """The two wrists of one configuration: the same pose with the bend turned over."""
    other = np.add(phi, [0, 0, 0, np.pi, -2 * phi[4], np.pi])
    return np.stack([phi, other])


@pytest.mark.parametrize("seed", range(8))
def test_the_eight_configurations_of_an_arm_with_a_spherical_wrist(seed: int) -> None:
    """Left or right shoulder, elbow up or down, wrist turned over or not: all with the same pose."""
    rng = np.random.default_rng(seed)
    phi = rng.uniform(-1, 1, size=6) + np.array([0.0, 0.5, -2.2, 0.0, 0.0, 0.0])
    phi[4] = np.sign(phi[4]) * (0.4 + abs(phi[4]) / 2)
    c = ARM.at(phi)
    found = ARM.assembly_modes({"link6": c.pose("link6")})
    assert found.configuration.batch == (8,)
    assert found.counts.sum() <= found.starts == 128
    assert not found.singular.any()
    assert np.abs(displacement(found.configuration, "link6") - displacement(c, "link6")).max() < 1e-12
    # the known one is among them; each has its turned wrist beside it
    off = np.abs(wrapped(found.configuration._phi - phi)).max(axis=1)
    assert off.min() < 1e-10
    for one in found.configuration._phi:
        for wrist in family(one):
            assert np.abs(wrapped(found.configuration._phi - wrist)).max(axis=1).min() < 1e-9
    # the inner three are the four of the wrist's centre, each twice
    inner = {tuple(np.round(wrapped(x), 6) + 0.0) for x in found.configuration._phi[:, :3]}
    assert len(inner) == 4
    # nearest first, each angle in its closest turn
    far = np.linalg.norm(found.configuration._phi - ARM.at()._phi, axis=1)
    assert (np.diff(far) > -1e-9).all()
    assert np.abs(found.configuration._phi - ARM.at()._phi).max() <= np.pi + 1e-12


def test_the_same_seed_finds_the_same() -> None:
    pose = {"link6": ARM.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4]).pose("link6")}
    a, b = ARM.assembly_modes(pose, rng=3), ARM.assembly_modes(pose, rng=3)
    assert a.configuration.state.tolist() == b.configuration.state.tolist()
    assert a.counts.tolist() == b.counts.tolist()
    few = ARM.assembly_modes(pose, starts=12, rng=np.random.default_rng(1))
    assert few.starts == 12
    assert 1 <= len(few.counts) <= 8
    near = ARM.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
    best = ARM.assembly_modes(pose, near=near)
    assert np.abs(best.configuration._phi[0] - near._phi).max() < 1e-12
    assert isinstance(best.configuration, Configuration)
    assert best.configuration.coefficients("tool").G.shape == (8, 3, 6)


def test_two_links_inside_at_and_beyond_their_reach() -> None:
    for x, y in ((1.0, 1.0), (0.3, -1.7), (1.9999, 0.0)):
        found = TWO.assembly_modes({"tip.x": x, "tip.y": y})
        assert found.configuration.batch == (2,)
        bend = np.arccos((x**2 + y**2) / 2 - 1)
        assert np.sort(found.configuration.value("elbow")) == pytest.approx([-bend, bend], abs=1e-10)
        assert not found.singular.any()
    edge = TWO.assembly_modes({"tip.x": 2.0, "tip.y": 0.0})
    assert (edge.configuration.batch, edge.singular.tolist()) == ((1,), [True])
    assert "1 distinct assembly mode found" in edge.summary().text()
    assert "the values barely determine assembly mode 0: the limit of reach" in edge.summary().text()
    assert np.abs(edge.configuration._phi).max() < 1e-6
    for complete in (False, True):
        none = TWO.assembly_modes({"tip.x": 2.1, "tip.y": 0.0}, complete=complete)
        assert (len(none), none.configuration.batch) == (0, (0,))
        assert none.reason in none.summary().text().replace("\n", " ")
    none = TWO.assembly_modes({"tip.x": 2.1, "tip.y": 0.0})
    assert "out of reach by 0.1 " in none.reason
    assert none.nearest.value("tip") == pytest.approx([2.0, 0.0, 0.0], abs=1e-6)


def test_limits() -> None:
    where = {"tip.x": 1.0, "tip.y": 1.0}
    up = TWO.assembly_modes(where, limits={"elbow": (0.0, 2.0)})
    assert up.configuration._phi == pytest.approx(np.array([[0.0, np.pi / 2]]), abs=1e-12)
    both = TWO.assembly_modes(
        where, limits={"elbow": (-np.pi / 2, np.pi / 2)}
    )  # the limits themselves belong
    assert both.configuration.batch == (2,)
    turned = TWO.assembly_modes(where, limits={"shoulder": (6.0, 8.0)})  # the same angles a turn further
    assert np.sort(turned.configuration.value("shoulder")) == pytest.approx(
        [2 * np.pi, 2.5 * np.pi], abs=1e-12
    )
    half = TWO.assembly_modes(where, limits={"shoulder": (1.0, np.inf)})
    assert half.configuration.value("elbow").max() == pytest.approx(np.pi / 2, abs=1e-12)
    assert half.configuration.value("shoulder").min() == pytest.approx(np.pi / 2, abs=1e-12)
    assert np.abs(half.configuration.value("tip") - [1, 1, 0]).max() < 1e-12
    none = TWO.assembly_modes(where, limits={"elbow": (0.0, 1.0)})
    assert (len(none), none.nearest.batch) == (0, (2,))
    assert f"exceeds the limits of 'elbow' by {np.pi / 2 - 1:.3g}." in none.reason
    # real limits of the arm keep some of the eight
    pose = {"link6": ARM.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4]).pose("link6")}
    bounds = {"waist": (-2.79, 2.79), "shoulder": (-3.93, 0.79), "elbow": (-3.93, 0.79)}
    kept, every = ARM.assembly_modes(pose, limits=bounds), ARM.assembly_modes(pose)
    assert 0 < len(kept.counts) < len(every.counts) == 8
    for name, (lower, upper) in bounds.items():
        assert (lower <= kept.configuration.value(name)).all()
        assert (kept.configuration.value(name) <= upper).all()


def test_assemblies_of_closed_mechanisms() -> None:
    m = kic.load("four-bar")
    for angle in (0.4, 1.2, 2.9):
        found = m.assembly_modes({"A": angle})
        assert found.configuration.batch == (2,)
        assert found.configuration.value("A") == pytest.approx([angle] * 2, abs=1e-13)
        # the two are mirror images in the line from B to D: transmission angles of opposite sign
        at = {k: np.array(find_part(m._model.description, k).at) for k in "BCD"}
        arms = [
            found.configuration.pose(body).rotation.apply(at[k] - at["C"])
            for body, k in (("coupler", "B"), ("rocker", "D"))
        ]
        turned = np.cross(*arms)[:, 2]
        assert turned.sum() == pytest.approx(0.0, abs=1e-12)
        assert abs(turned[0]) > 1e-3
    m = kic.load("five-bar")
    assert m.assembly_modes({"A": 1.2, "E": 1.5}).configuration.batch == (2,)
    four = m.assembly_modes({"tip.x": 24.0, "tip.y": 24.0})
    assert four.configuration.batch == (4,)
    assert np.abs(four.configuration.value("tip") - [24, 24, 0]).max() < 1e-11
    signs = {
        (np.sign(a), np.sign(b))
        for a, b in zip(
            four.configuration.value("B") - four.configuration.value("B").mean(),
            four.configuration.value("E") - four.configuration.value("E").mean(),
            strict=True,
        )
    }
    assert len(signs) == 4
    # three legs, each with two elbows
    m = kic.load("three-legged-robot")
    pose = RigidTransform.from_components([0.1, 0.05, 0.0], Rotation.from_rotvec([0, 0, 0.1]))
    eight = m.assembly_modes({"platform": pose})
    assert eight.configuration.batch == (8,)
    assert np.abs(displacement(eight.configuration, "platform") - pose.as_matrix()).max() < 1e-12
    # limits of a cut joint are looked at as well
    assert m.mobility().cuts == ("C2", "C3")
    some = m.assembly_modes(
        {"platform": pose}, limits={"C2": (eight.configuration.value("C2").mean(), np.inf)}
    )
    assert len(some.counts) == 8
    middle = np.sort(wrapped(eight.configuration.value("C2")))[[0, -1]].mean()
    half = m.assembly_modes({"platform": pose}, limits={"C2": (middle, middle + np.pi)})
    assert 0 < len(half.counts) < 8


@pytest.mark.slow
def test_every_configuration_found_is_closed() -> None:
    m = kic.load("gough-stewart")
    legs = {f"L{k}": m.at().value(f"L{k}") for k in range(1, 7)}
    found = m.assembly_modes(legs)
    closure = m._model.closure(tuple(legs))
    miss = closure.residual(
        closure.goal(np.array([[*legs.values()]] * len(found.counts))),
        closure.rows(found.configuration._states)[0],
    )
    assert np.abs(miss).max() < 1e-12
    poses = displacement(found.configuration, "platform")
    assert np.abs(poses[0] - np.eye(4)).max() < 1e-9  # the drawing comes first
    apart = np.abs(poses[:, None] - poses).max(axis=(-1, -2)) + np.eye(len(poses))
    states = np.abs(wrapped(found.configuration.state[:, None] - found.configuration.state)).max(
        axis=-1
    ) + np.eye(len(poses))
    assert len(poses) > 1
    assert states.min() > 1e-5
    assert apart.max() > 0.1


def test_uncontrolled_motion_is_reported() -> None:
    """An aligned wrist: roll and flange may trade, every start ends elsewhere."""
    found = ARM.assembly_modes({"link6": ARM.at([0.3, 0.5, -2.2, 0.0, 0.0, 0.0]).pose("link6")}, starts=40)
    assert found.singular.any()
    assert "or a motion remains" in " ".join(found.summary().text().split())


def test_turns_of_balls_have_no_limits() -> None:
    body, ball = kic.Body("b", at=(1, 0, 0)), kic.Joint("S", "spherical", ("ground", "b"), at=(0, 0, 0))
    m = kic.Mechanism("ball", [body], [ball])
    turn = Rotation.from_rotvec([0.1, -2.0, 0.4])
    found = m.assembly_modes({"b": turn})
    assert found.configuration.batch == (1,)
    assert found.configuration._phi[0] == pytest.approx(turn.as_rotvec(), abs=1e-12)
    refuses(lambda: m.assembly_modes({"b": turn}, limits={"S.2": (0, 1)}), name="S.2")


def test_fewer_inputs_than_dof_raise() -> None:
    m = kic.load("panda")
    c = m.at(np.array([0.3, -0.4, 0.5, -1.8, 0.2, 1.6, 0.4]))
    refuses(lambda: m.assembly_modes({"link7": c.pose("link7")}), mobility=7, count=6)
    first = c.coordinates[2]
    found = m.assembly_modes({"link7": c.pose("link7"), first: 0.5})
    assert np.abs(displacement(found.configuration, "link7") - displacement(c, "link7")).max() < 1e-12
    assert found.configuration.value(first) == pytest.approx([0.5] * len(found.counts), abs=1e-13)
    assert np.abs(wrapped(found.configuration._phi - c._phi)).max(axis=1).min() < 1e-9


@pytest.mark.slow
def test_places_of_a_body_among_configurations() -> None:
    """A platform has fewer places than its legs have folds; each is reported with its configurations."""
    m = kic.load("gough-stewart")
    level = m.at()
    found = m.assembly_modes(level.value(m.coordinates))
    number = found.places("platform")
    count = int(number.max()) + 1
    assert 1 < count < len(found.counts)
    assert sorted(set(number.tolist())) == list(range(count))
    T = displacement(found.configuration, "platform")
    apart = np.abs(T[:, None] - T[None]).max(axis=(2, 3))
    np.testing.assert_array_equal(apart < 1e-4, number[:, None] == number)
    # bodies of a leg that folds over have more places than the platform
    leg = m.bodies[0].name
    assert len({*zip(number.tolist(), found.places(leg).tolist(), strict=True)}) > count
    text = found.summary("platform").text()
    assert f"{count} poses of 'platform'" in text
    assert ".summary('platform')" in str(found.summary())
    refuses(lambda: found.places("eye"), kic.UnknownNameError, name="eye")
    one = found[3]
    assert one.batch == ()
    assert np.array_equal(one.state, found.configuration.state[3])


def test_places_over_a_batch() -> None:
    m = kic.load("horn-two-link")
    found = m.assembly_modes({"tip.x": [1.2, 2.0, 2.4], "tip.y": 0.0})
    number = found.places("link2")
    np.testing.assert_array_equal(number < 0, ~found.configuration.ok)
    assert [sorted(column[column >= 0].tolist()) for column in number.T] == [[0, 1], [0], []]
    refuses(lambda: found.summary("link2"), key="of")


@pytest.mark.slow
def test_branches_that_end_report_where() -> None:
    m = kic.load("horn-two-link")
    found = m.assembly_modes({"tip.x": [1.2, 1.7, 2.2], "tip.y": 0.0})
    for branch in found:
        (end,) = branch.singularities(of=["tip.x", "tip.y"])
        assert end.between == ((1,), (2,))
        np.testing.assert_allclose(end.configuration.value("tip"), [2, 0, 0], atol=1e-9)
