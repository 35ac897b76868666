"""Solutions that a motion connects count as one: aligned wrists and wrists on the first axis."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from assembly_cases import arm_of_six

import kic

RIGHT = np.pi / 2
REACH, FOREARM, OFFSET, HEIGHT = 0.45, 0.43, -0.02, 0.4


@cache
def elbow_arm(shoulder: float) -> kic.Mechanism:
    """Return an arm like the PUMA, with a shoulder offset, and a spherical wrist."""
    lengths = [0, REACH, OFFSET, 0, 0, 0], [HEIGHT, 0, shoulder, FOREARM, 0, 0.1]
    return arm_of_six(*lengths, [RIGHT, 0, -RIGHT, RIGHT, -RIGHT, 0])


@cache
def stanford_arm(shoulder: float) -> kic.Mechanism:
    """Return an arm whose third joint slides, with a spherical wrist."""
    turns = {"alpha": -RIGHT}, {"alpha": RIGHT, "d": shoulder}, {"type": "prismatic"}, {"alpha": -RIGHT}
    rows = [
        kic.DHRow(f"J{k}", f"link{k}", **{"d": 0.0, **row})
        for k, row in enumerate([*turns, {"alpha": RIGHT}, {"d": 0.1}])
    ]
    return kic.from_dh("stanford", rows, convention="standard", frames=[kic.Frame("hand", "link5")])


def elbow_arm_inverted(wrist: np.ndarray, shoulder: float) -> list[tuple[float, np.ndarray]]:
    """Return the waist and the unit vector along the forearm for each way to reach a wrist centre."""
    x, y, z = wrist - [0, 0, HEIGHT]
    link = OFFSET + 1j * FOREARM
    found = []
    for side in (1, -1):
        u = side * np.sqrt(x * x + y * y - shoulder**2)
        waist = np.angle((x + 1j * y) / (u - 1j * shoulder))
        way = u + 1j * z
        for elbow in (1, -1):
            cosine = (abs(way) ** 2 - REACH**2 - abs(link) ** 2) / (2 * REACH * abs(link))
            bend = elbow * np.arccos(cosine)
            first = way / (REACH + abs(link) * np.exp(1j * bend))
            forearm = 1j * first * np.exp(1j * bend) * abs(link) / link
            found.append((waist, np.array([*forearm.real * direction(waist), forearm.imag])))
    return found


def stanford_arm_inverted(wrist: np.ndarray, shoulder: float) -> list[tuple[float, np.ndarray]]:
    """Return the same for an arm with a slide, whose axis is that of the forearm."""
    x, y, z = wrist
    found = []
    for side in (1, -1):
        u = side * np.sqrt(x * x + y * y - shoulder**2)
        waist = np.angle((x + 1j * y) / (u + 1j * shoulder))
        along = np.array([*u * direction(waist), z]) / np.hypot(u, z)
        found += [(waist, along), (waist, -along)]
    return found


def direction(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


ARMS = {"elbow": (elbow_arm, elbow_arm_inverted), "stanford": (stanford_arm, stanford_arm_inverted)}


def counts(name: str, shoulder: float, pose) -> tuple[int, int]:
    """Return the numbers of isolated solutions and of curves by the closed form."""
    R = pose.rotation.as_matrix()
    ways = ARMS[name][1](pose.translation - 0.1 * R[:, 2], shoulder)
    aligned = [np.linalg.norm(np.cross(forearm, R[:, 2])) < 1e-6 for _, forearm in ways]
    return 2 * (len(aligned) - sum(aligned)), sum(aligned)


def configurations(name: str, rng: np.random.Generator) -> np.ndarray:
    q = rng.uniform(-1.5, 1.5, 6)
    if name == "stanford":
        q[2] = rng.uniform(0.3, 0.6)
    return q


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("bend", [0.0, np.pi, 0.7])
@pytest.mark.parametrize(("name", "shoulder"), [("elbow", 0.0), ("elbow", 0.15), ("stanford", 0.15)])
def test_aligned_wrists_agree_with_the_closed_form(
    name: str, shoulder: float, bend: float, complete: bool
) -> None:
    """Axes of an aligned wrist turn against each other: one configuration stands for the curve."""
    arm = ARMS[name][0](shoulder)
    for seed in range(3):
        q = configurations(name, np.random.default_rng(seed))
        q[4] = bend
        pose = arm.at(q).pose("hand")
        isolated, curves = counts(name, shoulder, pose)
        assert (curves > 0) == (bend in (0.0, np.pi))
        found = arm.assembly_modes({"hand": pose}, complete=complete)
        assert len(found) == isolated + curves
        assert found.singular.sum() == curves
        assert np.abs(np.sin(found.configuration._phi[found.singular, 4])).max(initial=0.0) < 1e-6
        if complete:
            assert (found.completeness.real, found.completeness.moving) == (isolated + curves, 2 * curves)
            assert (found.counts[found.singular] == 2).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_wrist_on_the_first_axis(seed: int) -> None:
    """The waist turns freely: a curve for each elbow and each way to bend the wrist."""
    arm, rng = elbow_arm(0.0), np.random.default_rng(seed)
    q = rng.uniform(-0.8, 0.8, 6)
    way = -REACH * np.exp(1j * q[1])  # the wrist is on the axis if the forearm leads back to it
    link = OFFSET + 1j * FOREARM
    q[2] = np.arccos(way.real / abs(link)) - np.angle(link) - q[1]
    pose = arm.at(q).pose("hand")
    found = arm.assembly_modes({"hand": pose})
    kinds = {(np.cos(x[1]) > 0, np.sin(x[4]) > 0) for x in found.configuration._phi}
    assert (len(found), len(kinds)) == (4, 4)
    whole = arm.assembly_modes({"hand": pose}, complete=True)
    known = whole.completeness
    assert (known.moving, known.real, whole.counts.sum()) == (8, len(whole), 8)
    kinds = {(np.cos(x[1]) > 0, np.sin(x[4]) > 0) for x in whole.configuration._phi}
    assert len(kinds) == len(whole)


def jumps(found: kic.results.AssemblyModes) -> float:
    """Return the largest step of the joints between continued neighbours."""
    phi = found.configuration._phi
    steps = np.abs(np.exp(1j * phi[:, 1:]) - np.exp(1j * phi[:, :-1])).max(axis=-1)
    return float(steps[found.continued[:, 1:]].max())


@pytest.mark.parametrize("complete", [True, False])
def test_a_batch_through_an_aligned_wrist(complete: bool) -> None:
    """Branches of the batch lead through the curve, which counts once, and keep their slices."""
    arm = elbow_arm(0.15)
    q = np.tile([0.3, 0.5, -1.2, 0.7, 0.0, -0.4], (5, 1))
    q[:, 4] = [-0.2, -0.1, 0.0, 0.1, 0.2]
    found = arm.assembly_modes({"hand": arm.at(q).pose("hand")}, complete=complete)
    assert found.configuration.ok.sum(axis=0).tolist() == [8] * 5
    assert found.continued[:, 1:].all()
    assert jumps(found) < 0.6
    if complete:
        assert found.completeness.real.tolist() == [8, 8, 7, 8, 8]
        assert found.completeness.evidence == "proven number"


def test_branches_of_a_rhombus_keep_their_slices() -> None:
    """Both branches lead through the configuration in which the rocker turns freely."""
    m = kic.linkages.four_bar(ground=1.0, crank=1.0, coupler=1.0, rocker=1.0, angle=1.0)
    found = m.assembly_modes({"A": [-0.02, -0.01, 0.0, 0.01, 0.02]}, complete=True)
    assert found.completeness.real.tolist() == [2, 2, 1, 2, 2]
    assert found.configuration.ok.all()
    assert found.continued[:, 1:].all()
    assert jumps(found) < 0.03


def test_solutions_beyond_limits_count_a_curve_once() -> None:
    """Also in a fresh mechanism."""
    arm = elbow_arm(0.15).replace(name="fresh")
    pose = arm.at([0.3, 0.5, -1.2, 0.7, 0.0, -0.4]).pose("hand")
    for complete in (True, False):
        none = arm.assembly_modes({"hand": pose}, limits={"J0": (1.0, 1.1)}, complete=complete)
        assert "none within `limits`" in none.reason
        assert (len(none), len(none.nearest._phi)) == (0, 7)


def test_a_configuration_within_limits_stands_for_a_curve() -> None:
    """Another one on the curve may be beyond the limits, and closer to the start."""
    arm = elbow_arm(0.15)
    pose = arm.at([0.3, 0.5, -1.2, 2.0, 0.0, 1.5]).pose("hand")
    whole = arm.assembly_modes({"hand": pose}, starts=256)
    (free,) = np.flatnonzero(whole.singular)
    roll = whole.configuration.value("J3")[free]
    kept = arm.assembly_modes({"hand": pose}, starts=256, limits={"J3": (roll + 0.2, roll + 2 * np.pi - 0.2)})
    assert kept.singular.sum() == 1
    assert 0.2 <= kept.configuration.value("J3")[kept.singular][0] - roll <= 2 * np.pi - 0.2


def test_parts_of_two_dimensions() -> None:
    """Two folded arms turn about their shoulders independently."""
    links = [kic.Body(n) for n in ("a1 link", "a2 link", "b1 link", "b2 link")]
    joints, points = [], []
    for k, name in enumerate("ab"):
        for n, body in enumerate(("ground", f"{name}1 link")):
            ends = body, f"{name}{n + 1} link"
            joints.append(
                kic.Joint(f"{name}{n}", "revolute", ends, at=(n, 3 * k, 0), axis=(0, 0, 1), value=0)
            )
        points.append(kic.Point(f"tip_{name}", f"{name}2 link", at=(2, 3 * k, 0)))
    m = kic.Mechanism("arms", links, joints, points=points, coordinates=["a0", "a1", "b0", "b1"])
    folded = {"tip_a.x": 0.0, "tip_a.y": 0.0, "tip_b.x": 0.0, "tip_b.y": 3.0}
    for complete in (True, False):
        found = m.assembly_modes(folded, complete=complete)
        assert len(found) == 1
        half = m.assembly_modes(folded | {"tip_b.x": 1.0}, complete=complete)
        assert (len(half), half.singular.tolist()) == (2, [True, True])
