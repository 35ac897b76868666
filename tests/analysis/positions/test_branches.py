"""Assembly modes of a batch, matched as branches from member to member."""

from __future__ import annotations

import numpy as np
import pytest
from raising import refuses
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.mechanism.configuration import Configuration, displacement

TWO = kic.load("horn-two-link")
ARM = kic.load("puma560")
FOUR = kic.load("four-bar")


def check(m: kic.Mechanism, found: kic.results.AssemblyModes, inputs: dict) -> None:
    """Every configuration has the inputs and is closed; those of a member are distinct; others are masked."""
    shape = found.configuration.batch
    assert found.configuration.ok.shape == found.counts.shape == shape
    assert found.singular.shape == found.continued.shape == shape
    assert (found.counts > 0).tolist() == found.configuration.ok.tolist()
    assert not (found.continued & ~found.configuration.ok).any()
    assert not (found.singular & ~found.configuration.ok).any()
    assert np.isfinite(found.configuration.state).all(axis=-1).tolist() == found.configuration.ok.tolist()
    for name, value in inputs.items():
        got = found.configuration.value(name)
        assert np.isfinite(got).tolist() == found.configuration.ok.tolist()
        assert np.nanmax(np.abs(got - np.broadcast_to(value, got.shape)), initial=0.0) < 1e-11
    closure = m._model.closure(())
    have = found.configuration._states[found.configuration.ok.ravel()]
    if closure.transfer.owners and len(have):
        assert np.abs(closure.rows(have)[0]).max() < 1e-12
    assert found.counts.sum() <= found.starts
    # no slice is empty: there are as many as the most that a member has
    assert len(found.counts) == found.configuration.ok.sum(axis=0).max(initial=0)


def test_two_elbows_up_to_the_limit_of_reach_and_beyond() -> None:
    """The law of cosines for every member; the two branches are the two signs of the elbow."""
    x = np.array([0.6, 1.0, 1.4, 1.8, 1.95, 2.0, 2.2])
    found = TWO.assembly_modes({"tip.x": x, "tip.y": 0.0})
    check(TWO, found, {"tip.x": x, "tip.y": 0.0})
    assert found.configuration.ok.sum(axis=0).tolist() == [2, 2, 2, 2, 2, 1, 0]
    bend = np.arccos(x[:5] ** 2 / 2 - 1)
    elbow = found.configuration.value("elbow")[:, :5]
    signs = np.sign(elbow[:, :1])
    assert sorted(signs.ravel()) == [-1, 1]
    assert elbow == pytest.approx(signs * bend, abs=1e-11)
    assert found.singular[:, 5].sum() == 1
    assert found.continued[:, 1:5].all()
    assert not found.continued[:, 0].any()
    assert found.configuration.coefficients("tip", failures="mask").G.shape == (2, 7, 3, 2)
    text = " ".join(found.summary().text().split())
    assert "distinct assembly modes at each of 7 members (7,)" in text
    assert "assembly modes number of members 0 1 1 1 2 5" in text


def test_each_member_as_it_is_alone() -> None:
    """The first member is the search for it alone, to the last hit but for what its neighbours add."""
    angles = np.linspace(0.4, 2.9, 6)
    found = FOUR.assembly_modes({"A": angles}, rng=5)
    check(FOUR, found, {"A": angles})
    assert found.configuration.batch == (2, 6)
    alone = FOUR.assembly_modes({"A": angles[0]}, rng=5)
    assert np.abs(found.configuration._phi[:, 0] - alone.configuration._phi).max() < 1e-12
    assert (found.counts[:, 0] >= alone.counts).all()
    for k, angle in enumerate(angles):
        alone = FOUR.assembly_modes({"A": angle})
        gap = np.abs(
            np.exp(1j * alone.configuration._phi)[:, None] - np.exp(1j * found.configuration._phi[:, k])
        ).max(axis=-1)
        assert gap.min(axis=0).max() < 1e-10


def test_a_slice_is_a_branch() -> None:
    """Each slice equals the result of path() from its first configuration, over full turns."""
    angles = FOUR.at().value("A") + np.linspace(0, 4 * np.pi, 80)
    found = FOUR.assembly_modes({"A": angles})
    check(FOUR, found, {"A": angles})
    assert found.continued[:, 1:].all()
    for k in range(2):
        first = Configuration(FOUR._model, (), found.configuration._states[[k * len(angles)]])
        path = FOUR.path({"A": angles}, near=first)
        assert np.abs(found.configuration._phi[k] - path._phi).max() < 1e-9


@pytest.mark.slow
def test_eight_branches_of_an_arm_along_a_path() -> None:
    along = np.array([0.3, 0.5, -2.2, 0.7, 0.8, -0.4]) + np.linspace(0, 0.6, 12)[:, None]
    c = ARM.at(along)
    found = ARM.assembly_modes({"link6": c.pose("link6")})
    assert found.configuration.batch == (8, 12)
    assert found.configuration.ok.all()
    assert found.continued[:, 1:].all()
    poses = displacement(found.configuration, "link6")
    assert np.abs(poses - displacement(c, "link6")).max() < 1e-11
    off = np.abs(np.exp(1j * found.configuration._phi) - np.exp(1j * along)).max(axis=-1)
    own = int(np.argmin(off[:, 0]))
    assert off[own].max() < 1e-9  # the motion itself is one of the slices
    # no slice jumps: the largest step is of the size of the motion's own
    assert np.abs(np.diff(found.configuration._phi, axis=1)).max() < 10 * np.abs(np.diff(along, axis=0)).max()


@pytest.mark.slow
def test_several_axes_and_a_seed() -> None:
    x, y = np.linspace(0.5, 2.3, 4)[:, None], np.linspace(-0.4, 0.4, 3)
    found = TWO.assembly_modes({"tip.x": x, "tip.y": y})
    check(TWO, found, {"tip.x": x, "tip.y": y})
    reach = x**2 + y**2 <= 4
    assert found.configuration.ok.sum(axis=0).tolist() == (2 * reach).tolist()
    sign = np.sign(found.configuration.value("elbow"))
    for k in range(2):
        assert len(set(sign[k][found.configuration.ok[k]])) == 1
    again = TWO.assembly_modes({"tip.x": x, "tip.y": y})
    assert np.array_equal(again.configuration.state, found.configuration.state, equal_nan=True)
    few = TWO.assembly_modes({"tip.x": x, "tip.y": y}, starts=1)
    check(TWO, few, {"tip.x": x, "tip.y": y})
    assert few.starts < found.starts
    one = TWO.assembly_modes({"tip.x": [1.0], "tip.y": 1.0})
    assert one.configuration.batch == (2, 1)
    assert one.configuration._phi[:, 0] == pytest.approx(
        TWO.assembly_modes({"tip.x": 1.0, "tip.y": 1.0}).configuration._phi, abs=1e-12
    )


@pytest.mark.parametrize("batch", [(0,), (2, 0)])
def test_an_empty_batch(batch: tuple[int, ...]) -> None:
    found = TWO.assembly_modes({"tip.x": np.zeros(batch), "tip.y": 0.0})
    assert found.configuration.batch == found.counts.shape == (0, *batch)
    assert found.configuration.value("elbow").shape == (0, *batch)
    assert found.starts == 0
    assert "at each of 0 members" in found.summary().text()


def test_a_branch_missed_at_one_member_is_continued_there() -> None:
    """Members with few starts of their own receive the solutions found at others."""
    m = kic.load("three-legged-robot")
    turn = np.linspace(0.0, 0.2, 5)
    pose = RigidTransform.from_components([0.1, 0.05, 0.0], Rotation.from_rotvec(np.outer(turn, [0, 0, 1.0])))
    found = m.assembly_modes({"platform": pose}, starts=64)
    assert found.configuration.batch == (8, 5)
    assert found.configuration.ok.all()
    assert found.continued[:, 1:].all()
    assert np.abs(displacement(found.configuration, "platform") - pose.as_matrix()).max() < 1e-11


def test_a_branch_that_ends_leaves_its_slice_to_another() -> None:
    """Out of reach in the middle: two and two, four branches that meet nowhere, in two slices."""
    x = np.array([1.6, 1.9, 2.3, 2.3, 1.9, 1.6])
    found = TWO.assembly_modes({"tip.x": x, "tip.y": 0.0})
    check(TWO, found, {"tip.x": x, "tip.y": 0.0})
    assert found.configuration.ok.sum(axis=0).tolist() == [2, 2, 0, 0, 2, 2]
    assert found.continued.all(axis=0).tolist() == [False, True, False, False, False, True]


def test_jump_between_members_is_not_a_branch() -> None:
    """The straight line between both sides of the base passes through it, where every branch ends."""
    x = np.array([1.0, -1.0])
    found = TWO.assembly_modes({"tip.x": x, "tip.y": 0.0})
    check(TWO, found, {"tip.x": x, "tip.y": 0.0})
    assert found.configuration.ok.all()
    assert not found.continued.any()


def test_limits_of_each_member() -> None:
    x = np.array([0.6, 1.2, 1.8])
    bend = np.arccos(x**2 / 2 - 1)
    found = TWO.assembly_modes({"tip.x": x, "tip.y": 0.0}, limits={"elbow": (0.0, 2.0)})
    assert found.configuration.ok.sum(axis=0).tolist() == (bend <= 2.0).astype(int).tolist()
    assert found.configuration.value("elbow")[found.configuration.ok] == pytest.approx(
        bend[bend <= 2.0], abs=1e-11
    )
    turned = TWO.assembly_modes({"tip.x": x, "tip.y": 0.0}, limits={"shoulder": (5.0, 8.0)})
    assert turned.configuration.ok.all()
    assert (turned.configuration.value("shoulder") >= 5).all()
    assert turned.continued[:, 1:].all()
    none = TWO.assembly_modes({"tip.x": x, "tip.y": 0.0}, limits={"elbow": (-0.01, 0.01)})
    assert none.configuration.batch == (0, 3)


def test_a_member_that_cannot_be() -> None:
    found = TWO.assembly_modes({"tip.x": [np.nan, 1.0, 5.0], "tip.y": 1.0})
    assert found.configuration.ok.tolist() == [[False, True, False]] * 2
    found = TWO.assembly_modes({"tip.x": 1.0, "tip.y": [[0.5], [np.inf]]})
    assert found.configuration.batch == (2, 2, 1)
    assert found.configuration.ok[:, :, 0].tolist() == [[True, False]] * 2


def test_uncontrolled_motion_stays_bounded() -> None:
    """With an aligned wrist at every member each start converges elsewhere, and no solution is continued."""
    c = ARM.at(np.array([0.3, 0.5, -2.2, 0.0, 0.0, 0.0]) + np.outer([0, 0.01], [1, 0, 0, 0, 0, 0]))
    found = ARM.assembly_modes({"link6": c.pose("link6")}, starts=16)
    assert found.singular.any()
    assert len(found.counts) < 40


@pytest.mark.parametrize("complete", [False, True])
def test_no_solution_at_any_member(complete: bool) -> None:
    """Out of reach, with the last point; or for impossible values."""
    none = TWO.assembly_modes({"tip.x": [2.1, 2.2], "tip.y": 0.0}, complete=complete)
    assert none.configuration.batch == (0, 2)
    if not complete:
        assert "at any of 2 members" in none.reason
        assert none.nearest.value("tip") == pytest.approx([2.0, 0.0, 0.0], abs=1e-6)
    none = TWO.assembly_modes({"tip.x": [np.nan, np.inf], "tip.y": 0.0}, complete=complete)
    assert none.configuration.batch == (0, 2)
    assert "tip.x is NaN" in none.reason
    assert not complete or none.completeness.real.tolist() == [0, 0]


def structure() -> kic.Mechanism:
    """Two bars and the ground between three hinges: a triangle."""
    at = [(0, 0, 0), (1, 2, 0), (3, 0, 0)]
    pairs = [("ground", "a"), ("a", "b"), ("b", "ground")]
    joints = [
        kic.Joint(name, "revolute", pair, at=p, axis=(0, 0, 1))
        for name, pair, p in zip("ABC", pairs, at, strict=True)
    ]
    return kic.Mechanism("triangle", [kic.Body("a"), kic.Body("b")], joints, coordinates=[])


def test_mechanism_without_dof_of_any_kind() -> None:
    """It has no inputs; without any, both its assemblies are found: the triangle and its mirror image."""
    m = structure()
    assert (m.dof, m.mobility().finite) == (0, True)
    assert m.mobility().summary().startswith("mobility 0: ")
    data = {"mobility": 0, "count": 1}
    for inputs in ({"A": 1.0}, {"A": [1.0, 2.0]}):
        refuses(lambda inputs=inputs: m.assembly_modes(inputs), **data)
    found = m.assembly_modes({})
    assert found.configuration.batch == (2,)
    turn = found.configuration.value("A") - m.at().value("A")
    assert np.sort(turn) == pytest.approx([-2 * np.arctan(2.0), 0.0], abs=1e-12)
