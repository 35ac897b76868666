"""All assembly modes: numbers from the literature, independent solvers, and the evidence that is stated."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from assembly_cases import (
    BARANOV,
    STEPHENSON,
    WATT,
    arm_of_six,
    inputs_of,
    modes_of,
    planar,
    platform,
    six_distances,
    spatial_four_bar,
    translating_delta,
)  # fmt: skip
from raising import refuses
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.analysis.positions import monodromy
from kic.analysis.positions.complex_paths import solved_rows
from kic.analysis.positions.endgame import Endgame
from kic.analysis.positions.monodromy import GenericSolutions
from kic.analysis.positions.proven_numbers import proven_number
from kic.classics import WristPartitioned
from kic.mechanism.inputs import position_problem

TWO = kic.load("horn-two-link")
# Manseur and Doty, "A robot manipulator with 16 real inverse kinematic solution sets", International Journal
# of Robotics Research 8, 1989, pp. 75-79: standard DH rows, and the pose of the hand to six digits
DOTY_A, DOTY_D = [0.3, 1.0, 0.0, 1.5, 0.0, 0.0], [0.0, 0.0, 0.2, 0.0, 0.0, 0.0]
DOTY_ALPHA = np.radians([90.0, 1.0, 90.0, 1.0, 90.0, 1.0])
DOTY_AXES = [[-0.760117, -0.641689, 0.102262], [0.133333, 0.0, 0.991071], [-0.635959, 0.766965, 0.085558]]
DOTY_PLACE = [-1.140175, 0.0, 0.0]


@cache
def loaded(name: str) -> kic.Mechanism:
    return kic.load(name)


def has_values(m: kic.Mechanism, found: kic.results.AssemblyModes, q) -> bool:
    """Return True if all configurations have these inputs, and a certificate."""
    own = np.stack([found.configuration.value(name) for name in m.coordinates], axis=-1)
    return bool(np.abs(own - q).max(initial=0.0) < 1e-9 and found.completeness.certified.all())


@pytest.fixture
def no_proofs(monkeypatch) -> None:
    """Let searches go on beyond numbers that are proven."""
    monkeypatch.setattr("kic.analysis.positions.monodromy.proven_number", lambda _: None)


# numbers of complex solutions for generic inputs, with their sources
LITERATURE = {
    # two circles
    "four-bar": 2,
    "slider-crank": 2,
    "five-bar": 2,
    # a four-bar and a dyad: 2 · 2
    "stephenson-six-bar": 4,
    # C. Gosselin, J. Sefrioui, M. J. Richard, Mechanism and Machine Theory 27, 1992: a polynomial of degree 6
    "three-rrr": 6,
    # K.-M. Lee, D. K. Shah, IEEE Journal of Robotics and Automation 4, 1988: degree 8 in squares of tangents
    "three-rps": 16,
    # two poses, each with the universal joint in both ways: J. J. Uicker, J. Denavit, R. S. Hartenberg, 1964
    "rssr": 4,
}


@pytest.mark.slow_for("three-rps", "three-rrr", "stephenson-six-bar", "five-bar", "slider-crank")
@pytest.mark.parametrize("name", LITERATURE)
def test_numbers_of_the_literature(monkeypatch, name: str) -> None:
    m = kic.load(name)
    with monkeypatch.context() as patch:
        patch.setattr("kic.analysis.positions.monodromy.proven_number", lambda _: None)
        found = modes_of(m)
    known = found.completeness
    assert known.generic == LITERATURE[name]
    # traces of large degree are not significant in floating-point numbers
    assert known.evidence == ("loops" if LITERATURE[name] > 4 else "trace test")
    assert known.chance < 1e-2
    assert known.evidence != "loops" or "no proof" in known.statement
    proven = modes_of(kic.load(name)).completeness
    assert proven.generic == LITERATURE[name]
    assert proven.evidence == "proven number"
    assert known.real == len(found) <= known.finite + known.infinite == known.generic
    assert known.lost == 0


def test_sixteen_real_configurations_of_an_arm() -> None:
    arm = arm_of_six(DOTY_A, DOTY_D, DOTY_ALPHA)
    U, _, V = np.linalg.svd(np.transpose(DOTY_AXES))
    pose = RigidTransform.from_components(DOTY_PLACE, Rotation.from_matrix(U @ V))
    found = modes_of(arm, {"hand": pose})
    assert len(found) == found.completeness.real == found.completeness.generic == 16
    assert found.completeness.evidence == "proven number"
    assert found.completeness.certified.all()
    assert not found.singular.any()
    T = found.configuration.pose("hand").inv() * pose
    assert np.abs(T.translation).max() < 1e-9
    assert T.rotation.magnitude().max() < 1e-9
    turns = np.exp(1j * found.configuration._phi)
    apart = np.abs(turns[:, None] - turns).max(axis=-1) + np.eye(16)
    assert apart.min() > 1e-3


@pytest.mark.slow
def test_forty_solutions_of_a_general_platform() -> None:
    """Expect the number of F. Ronga and T. Vust, 1992."""
    m = six_distances(np.random.default_rng(1))
    q = inputs_of(m)
    found = modes_of(m)
    assert found.completeness.generic == found.completeness.finite == 40
    assert found.completeness.evidence == "proven number"
    assert has_values(m, found, q)
    # complex solutions are in conjugate pairs
    assert found.completeness.real % 2 == 0


# P. Dietmaier in: Advances in Robot Kinematics, Analysis and Control, 1998, pp. 7-16: base, platform and
# lengths of a Stewart-Gough platform of general geometry
DIETMAIER_BASE = [
    (0, 0, 0), (1.107915, 0, 0), (0.549094, 0.756063, 0), (0.735077, -0.223935, 0.525991),
    (0.514188, -0.526063, -0.368418), (0.590473, 0.094733, -0.205018),
]  # fmt: skip
DIETMAIER_TOP = [
    (0, 0, 0), (0.542805, 0, 0), (0.956919, -0.528915, 0), (0.665885, -0.353482, 1.402538),
    (0.478359, 1.158742, 0.107672), (-0.137087, -0.235121, 0.353913),
]  # fmt: skip
DIETMAIER_LENGTHS = np.array([1.0, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071])


def test_forty_real_configurations_of_dietmaiers_platform() -> None:
    m = platform(DIETMAIER_BASE, DIETMAIER_TOP)
    found = modes_of(m, DIETMAIER_LENGTHS)
    assert len(found) == found.completeness.real == found.completeness.generic == 40
    assert found.completeness.evidence == "proven number"
    assert has_values(m, found, DIETMAIER_LENGTHS)
    assert not found.singular.any()


@pytest.mark.slow
def test_a_platform_with_six_points_on_three(monkeypatch) -> None:
    """The 6-3 platform has 16: P. Nanua, K. J. Waldron, V. Murthy, IEEE Trans. Rob. Autom. 6, 1990."""
    rng = np.random.default_rng(10)
    top = rng.normal(size=(3, 3))[[0, 0, 1, 1, 2, 2]] + [0.0, 0.0, 1.0]
    base = rng.normal(size=(6, 3)) * [1.0, 1.0, 0.0]
    for proven in (True, False):
        for ends in ((base, top), (top, base)):
            known = modes_of(platform(*ends)).completeness
            assert (known.generic, known.finite, known.lost) == (16, 16, 0)
            assert (known.evidence == "proven number") == proven
        monkeypatch.setattr("kic.analysis.positions.monodromy.proven_number", lambda _: None)


def test_sixteen_solutions_of_a_general_arm() -> None:
    """Expect the number of E. J. F. Primrose, 1986."""
    rng = np.random.default_rng(11)
    arm = arm_of_six(*rng.uniform(0.2, 1.0, size=(2, 6)), rng.uniform(-1.5, 1.5, 6))
    q = rng.uniform(-3, 3, 6)
    found = modes_of(arm, {"hand": arm.at(q).pose("hand")})
    assert found.completeness.generic == found.completeness.finite == 16
    assert found.completeness.evidence == "proven number"
    assert np.abs(np.exp(1j * found.configuration._phi) - np.exp(1j * q)).max(axis=1).min() < 1e-7


def test_two_rockers_of_a_spatial_four_bar() -> None:
    """Expect two solutions of an RSSR with a distance as its coupler: J. Denavit, R. S. Hartenberg, 1955."""
    assert modes_of(spatial_four_bar(np.random.default_rng(13))).completeness.generic == 2


@pytest.mark.slow
@pytest.mark.parametrize("driven", range(7))
def test_six_bars_with_each_input(monkeypatch, driven: int) -> None:
    """Two dyads give 2 · 2, a triad 6.

    E. J. F. Primrose, F. Freudenstein, B. Roth, Archive for Rational Mechanics and Analysis 24, 1967. In a
    Stephenson linkage, the hinges 4 to 6 are outside of the four-bar loop.
    """
    at = np.random.default_rng(12 + driven).uniform(-1, 1, size=(7, 2))
    number = 4 if driven < 4 else 6
    for proven in (True, False):
        watt, stephenson = (planar(edges, at, f"J{driven}") for edges in (WATT, STEPHENSON))
        known = modes_of(watt).completeness, modes_of(stephenson).completeness
        assert [(x.generic, x.lost) for x in known] == [(4, 0), (number, 0)]
        assert {x.evidence == "proven number" for x in known} == {proven}
        monkeypatch.setattr("kic.analysis.positions.monodromy.proven_number", lambda _: None)


@pytest.mark.slow
@pytest.mark.parametrize("bar", [4, 5, 6])
@pytest.mark.parametrize("number", BARANOV)
def test_trusses_of_seven_links(monkeypatch, no_proofs, number: int, bar: int) -> None:
    """A truss has no degree of freedom: the length of one of its bars is the input."""
    for seed in range(2):
        at = np.random.default_rng(20 + seed).uniform(-1, 1, size=(9, 2))
        m = planar(BARANOV[number], at, "L", bar)
        known = modes_of(m).completeness
        assert (known.generic, known.finite, known.lost) == (number, number, 0)
        assert known.evidence in ("loops", "trace test")
        with monkeypatch.context() as patch:
            patch.setattr("kic.analysis.positions.monodromy.proven_number", proven_number)
            known = modes_of(planar(BARANOV[number], at, "L", bar)).completeness
        assert (known.generic, known.evidence) == (number, "proven number")


@pytest.mark.slow
def test_a_delta_robot_both_ways() -> None:
    """Expect two places of the plate (three spheres) and 2³ triples of arms: R. Clavel, 1988."""
    m = translating_delta(np.random.default_rng(14))
    there = modes_of(m, [0.1, 0.05, -0.1])
    assert (len(there), there.completeness.generic) == (2, 2)
    back = modes_of(m, {"tip": there.configuration[0].value("tip")})
    assert (len(back), back.completeness.generic, back.completeness.lost) == (8, 8, 0)
    arms = np.stack([back.configuration.value(f"A{k}") for k in range(3)], axis=-1)
    assert np.abs(arms - [0.1, 0.05, -0.1]).max(axis=1).min() < 1e-8


@pytest.mark.slow
def test_universal_joints_are_turned_over() -> None:
    """Each pose of a platform has both ways of each of six universal joints."""
    m = loaded("gough-stewart")
    found = modes_of(m)
    places = found.places("platform")
    assert len(found) == 64 * (places.max() + 1) == found.completeness.real
    assert (np.bincount(places) == 64).all()
    assert found.completeness.generic % 64 == 0
    assert f"the first 100 of {len(found)} are listed" in found.summary().text()
    # the base and the platform are semi-regular hexagons; the same six distances have no joints
    few = modes_of(kic.linkages.stewart(base_radius=0.7, platform_radius=0.45, height=0.9, legs="distance"))
    assert 64 * few.completeness.generic == found.completeness.generic


def platform_angles(m: kic.Mechanism, q: np.ndarray) -> np.ndarray:
    """Return all complex exp(iθ) of the platform of a 3-RRR robot from a polynomial of degree 6.

    Its joints C are on circles about the elbows B: |p + z c − b|² = l² in complex numbers, with their
    conjugates as independent unknowns p̄ and 1/z. Differences are linear in p and p̄.
    """
    at = {j.name: np.dot(j.at[:2], [1, 1j]) for j in m.joints}
    c = np.array([at[f"C{k}"] for k in (1, 2, 3)])
    a, b0 = (np.array([at[f"{x}{k}"] for k in (1, 2, 3)]) for x in "AB")
    b = a + (b0 - a) * np.exp(1j * (q - inputs_of(m)))
    square = np.abs(b0 - c) ** 2

    def residual(z: complex) -> complex:
        w, v = z * c - b, np.conj(c) / z - np.conj(b)  # p + w, p̄ + v
        p, pbar, e = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
        linear = [
            (v[k] - v[0]) * p + (w[k] - w[0]) * pbar
            + (w[k] * v[k] - w[0] * v[0] - square[k] + square[0]) * e
            for k in (1, 2)
        ]  # fmt: skip
        x = np.cross(*linear)  # homogeneous p, p̄
        return (x[0] + w[0] * x[2]) * (x[1] + v[0] * x[2]) - square[0] * x[2] ** 2

    # a Laurent polynomial in z of degree at most 4, by its values on the unit circle
    count = 16
    circle = np.exp(2j * np.pi * np.arange(count) / count)
    coefficients = np.fft.fft([residual(z) for z in circle]) / count
    degrees = np.roll(coefficients, count // 2)  # of z to the power -8 … 7
    large = np.flatnonzero(np.abs(degrees) > 1e-10 * np.abs(degrees).max())
    return np.roots(degrees[large[0] : large[-1] + 1][::-1])


def compare_platforms(m: kic.Mechanism, q: np.ndarray) -> int:
    """Compare the real solutions with those of the polynomial for many inputs; return their number."""
    found = modes_of(m, dict(zip(m.coordinates, q.T, strict=True)))
    turn = np.exp(1j * np.nan_to_num(found.configuration.value("platform.angle")))
    total = 0
    for n in range(len(q)):
        roots = platform_angles(m, q[n])
        assert len(roots) == 6
        real = roots[np.abs(np.abs(roots) - 1) < 1e-7]
        own = turn[found.configuration.ok[:, n], n]
        assert len(own) == len(real) == found.completeness.real[n]
        if len(own):
            assert np.abs(own[:, None] - real).min(axis=0).max() < 1e-6
            assert np.abs(own[:, None] - real).min(axis=1).max() < 1e-6
        total += len(own)
    return total


def test_a_planar_platform_agrees_with_its_polynomial() -> None:
    m = kic.linkages.three_rrr(base_radius=0.5, platform_radius=0.2, proximal=0.3, distal=0.35)
    q = inputs_of(m) + np.random.default_rng(4).uniform(-0.6, 0.6, size=(12, 3))
    assert compare_platforms(m, q) > 12


@pytest.mark.slow
def test_many_planar_platforms_agree_with_their_polynomials() -> None:
    rng, total = np.random.default_rng(5), 0
    for _ in range(5):
        base, distal = 0.5, rng.uniform(0.25, 0.45)
        m = kic.linkages.three_rrr(
            base_radius=base, platform_radius=rng.uniform(0.1, 0.4), proximal=0.3, distal=distal
        )
        total += compare_platforms(m, inputs_of(m) + rng.uniform(-1.5, 1.5, size=(100, 3)))
    assert total > 250


def test_four_bars_agree_with_two_circles() -> None:
    """At many crank angles, in reach or out of it."""
    m = kic.linkages.four_bar(ground=1.0, crank=0.6, coupler=0.7, rocker=0.5, angle=1.0)
    angles = np.random.default_rng(2).uniform(-np.pi, np.pi, 40)
    found = modes_of(m, {m.coordinates[0]: angles})
    B = 0.6 * np.exp(1j * angles)
    span = np.abs(1.0 - B)
    expected = np.where((span < 1.2) & (span > 0.2), 2, 0)
    assert found.completeness.real.tolist() == expected.tolist()
    assert found.configuration.ok.sum(axis=0).tolist() == expected.tolist()
    assert 0 < expected.mean() < 2


@pytest.mark.slow
def test_a_wrist_partitioned_arm_agrees_with_its_closed_form() -> None:
    closed = WristPartitioned(1.3, 0.9, 0.4)
    rng = np.random.default_rng(6)
    theta = rng.uniform(-3, 3, size=(20, 3))
    P = closed.wrist_coefficients(theta, order=1).values
    found = modes_of(closed.mechanism(), dict(zip(closed.rows, P.T, strict=True)))
    assert found.completeness.generic == 4
    assert (found.completeness.real == 4).all()
    expected = closed.inverse_kinematics(P)
    turns = np.exp(1j * found.configuration._phi)
    apart = np.abs(turns[:, None] - np.exp(1j * expected)).max(axis=-1)
    assert apart.min(axis=0).max() < 1e-7
    assert apart.min(axis=1).max() < 1e-7


@pytest.mark.slow
def test_eight_configurations_of_an_arm_with_a_spherical_wrist() -> None:
    arm = loaded("puma560")
    q = np.array([0.0, 0.5, -2.2, 0.0, 0.8, 0.0]) + np.random.default_rng(7).uniform(-1, 1, size=(3, 6))
    found = modes_of(arm, {"link6": arm.at(q).pose("link6")})
    assert found.completeness.generic == 8  # D. L. Pieper, 1968
    assert found.completeness.evidence == "proven number"
    assert (found.completeness.real == 8).all()
    apart = np.abs(np.exp(1j * found.configuration._phi) - np.exp(1j * q)).max(axis=-1)
    assert apart.min(axis=0).max() < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["stephenson-six-bar", "watt-parallel-motion", "three-rrr", "three-rps", "jansen-leg", "five-bar"]
)
def test_many_random_starts_find_no_more(name: str) -> None:
    m = loaded(name)
    rng = np.random.default_rng(8)
    for _ in range(5):
        q = inputs_of(m) * (1 + 0.05 * rng.normal(size=len(m.coordinates)))
        found = modes_of(m, q)
        try:
            searched = len(m.assembly_modes(q, starts=4096))
        except kic.ConfigurationError:
            searched = 0
        assert searched <= len(found)
        assert found.completeness.evidence != "incomplete"
        assert found.completeness.certified[~found.singular].all()


def test_at_and_beyond_the_limit_of_reach() -> None:
    """A double solution has its multiplicity, and solutions out of reach are complex."""
    edge = modes_of(TWO, {"tip.x": 2.0, "tip.y": 0.0})
    assert (edge.counts.tolist(), edge.singular.tolist()) == ([2], [True])
    assert not edge.completeness.certified.any()
    assert np.abs(edge.configuration._phi).max() < 1e-5
    none = modes_of(TWO, {"tip.x": 2.1, "tip.y": 0.0})
    assert len(none) == none.completeness.real == 0
    assert none.completeness.finite == 2
    assert "0 distinct real" in none.summary().text()
    row = modes_of(TWO, {"tip.x": [1.2, 1.6, 2.0, 2.4], "tip.y": 0.0})
    assert row.completeness.real.tolist() == row.configuration.ok.sum(axis=0).tolist() == [2, 2, 1, 0]
    assert row.counts.sum(axis=0).tolist() == [2, 2, 2, 0]
    assert row.continued[:, 1].all()
    none = modes_of(TWO, {"tip.x": 1.0, "tip.y": 1.0}, limits={"elbow": (0.0, 1.0)})
    assert (len(none), none.completeness.real, none.nearest.batch) == (0, 2, (2,))
    up = modes_of(TWO, {"tip.x": 1.0, "tip.y": 1.0}, limits={"elbow": (0.0, 2.0)})
    assert (len(up), up.completeness.real) == (1, 2)


@pytest.mark.parametrize("gap", 10.0 ** -np.arange(2.0, 16.0))
def test_two_elbows_near_the_limit_of_reach(gap: float) -> None:
    """Elbows are separate, or one of multiplicity 2 where the condition is that of rounding."""
    found = modes_of(TWO, {"tip.x": 2.0 - gap, "tip.y": 0.0})
    known = found.completeness
    assert (known.evidence, known.lost, found.counts.sum()) == ("proven number", 0, 2)
    assert len(found) == 2 or (gap < 1e-11 and found.singular.all())
    elbow = 2 * np.arccos(1 - gap / 2)
    accuracy = max(1e-8, 1e-14 / elbow) if len(found) == 2 else 2e-6
    assert np.abs(np.abs(found.configuration.value("elbow")) - elbow).max() < accuracy
    beyond = modes_of(TWO, {"tip.x": 2.0 + gap, "tip.y": 0.0})
    assert beyond.counts.sum() == 0 or gap < 1e-11
    assert (beyond.completeness.lost, beyond.completeness.finite) == (0, 2)


def test_the_condition_grows_towards_the_limit_of_reach() -> None:
    """The determinant of the arm's Jacobian is the sine of its elbow."""
    gap = 10.0 ** -np.arange(2.0, 9.0)
    found = modes_of(TWO, {"tip.x": 2.0 - gap, "tip.y": 0.0})
    slope = np.polyfit(np.log(np.sin(2 * np.arccos(1 - gap / 2))), np.log(found.condition[0]), 1)[0]
    assert abs(slope + 1) < 1e-2
    assert np.array_equal(found.singular, found.condition > 1e5)
    assert "1/condition" in modes_of(TWO, {"tip.x": 1.0, "tip.y": 1.0}).summary().text()
    missing = modes_of(TWO, {"tip.x": [1.0, 3.0], "tip.y": 0.0})
    assert np.isnan(missing.condition[:, 1]).all()


def test_parts_of_positive_dimension() -> None:
    """Aligned axes of a wrist turn against each other, and a folded arm turns about its shoulder."""
    arm = loaded("puma560")
    q = np.array([0.3, 0.5, -2.2, 0.7, 0.0, -0.4])
    found = modes_of(arm, {"link6": arm.at(q).pose("link6")})
    assert (len(found), found.completeness.moving, found.completeness.finite) == (7, 2, 8)
    assert "2 paths end on components of positive dimension" in found.completeness.statement
    phi = found.configuration._phi[found.singular]
    assert np.abs(np.sin(phi[:, 4])).max() < 1e-7
    total = np.exp(1j * (phi[:, 3] + phi[:, 5]))
    own = np.abs(np.exp(1j * phi[:, :3]) - np.exp(1j * q[:3])).max(axis=1) < 1e-7
    assert own.any()
    assert np.abs(total[own] - np.exp(0.3j)).max() < 1e-7
    folded = modes_of(TWO, {"tip.x": 0.0, "tip.y": 0.0})
    assert folded.completeness.moving == 2
    assert folded.singular.tolist() == [True]
    # at the limit of reach, one solution of multiplicity 2 does not move
    row = modes_of(TWO, {"tip.x": [2.0, 0.0, 1.0], "tip.y": 0.0})
    assert row.completeness.moving.tolist() == [0, 2, 0]
    for edge in (
        modes_of(TWO, {"tip.x": 2.0, "tip.y": 0.0}),
        modes_of(kic.linkages.four_bar(ground=1, crank=0.5, coupler=1, rocker=0.5), 0.0),
    ):
        assert (edge.completeness.moving, edge.counts.tolist()) == (0, [2])


def near_singular(rng: np.random.Generator) -> tuple[kic.Mechanism, np.ndarray, np.ndarray]:
    """Return a random arm, a singular configuration between two others, and its direction of self-motion."""
    arm = arm_of_six(*rng.uniform(0.1, 1.0, (2, 6)), rng.uniform(-np.pi, np.pi, 6))

    def jacobian(q: np.ndarray) -> np.ndarray:
        return arm.at(q).coefficients("hand", order=1).G

    q = rng.uniform(-np.pi, np.pi, (100, 6))
    sign = np.sign(np.linalg.det(jacobian(q)))
    low, high = q[sign < 0][0], q[sign > 0][0]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if np.linalg.det(jacobian(middle)) > 0 else (middle, high)
    return arm, low, np.linalg.svd(jacobian(low))[2][-1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_close_configurations_of_an_arm(seed: int) -> None:
    """On both sides of a singular configuration are two that have the same pose of the hand."""
    arm, q, way = near_singular(np.random.default_rng(40 + seed))
    for off in (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        pose = arm.at(q + off * way).pose("hand")
        found = modes_of(arm, {"hand": pose})
        assert found.completeness.evidence == "proven number"
        turns = np.exp(1j * found.configuration._phi)
        near = np.abs(turns - np.exp(1j * q)).max(axis=1) < max(4 * off, 1e-6)
        assert found.counts[near].sum() == 2
        T = found.configuration.pose("hand").as_matrix() - pose.as_matrix()
        assert np.abs(T).max() < 1e-11
        if near.sum() == 2:
            assert off > 1e-6
            assert np.abs(turns - np.exp(1j * (q + off * way))).max(axis=1).min() < 1e-2 * off
            assert np.abs(np.subtract(*turns[near])).max() > off
        else:
            assert (near.sum(), found.singular[near].tolist()) == (1, [True])
            assert off < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four-bar", "stephenson-six-bar", "rssr"])
def test_the_trace_test_fails_if_a_solution_is_missing(no_proofs, name: str) -> None:
    m = kic.load(name)
    modes_of(m)
    (generic,) = (x for key, x in m._model._prepared.items() if key[0] == "generic solutions")
    assert isinstance(generic, GenericSolutions)
    assert generic.trace_degree >= 0
    for _ in range(len(generic.states) - 1):
        rest, generic.states = generic.states[1:], generic.states[:0]
        generic.add(rest)
        assert generic._trace_test() in (-1, -2 if len(generic.states) == 1 else -1)


def generic_solutions() -> GenericSolutions:
    m = kic.load("three-rps")
    modes_of(m)
    (generic,) = (x for key, x in m._model._prepared.items() if key[0] == "generic solutions")
    return generic


def test_equal_solutions_are_added_once() -> None:
    generic = generic_solutions()
    states, generic.states = generic.states, generic.states[:3]
    twice = np.concatenate([states, states[::-1]])
    assert generic.add(twice).sum() == len(states) - 3
    assert generic.add(twice).sum() == 0
    assert len(generic.states) == len(states)


def test_loops_of_many_solutions_may_lose_few_paths(monkeypatch) -> None:
    generic = generic_solutions()
    around, clean = generic.tracker.around, generic.clean

    def lose_one(*arguments):
        ends, good = around(*arguments)
        good[:1] = False
        return ends, good

    monkeypatch.setattr(generic.tracker, "around", lose_one)
    generic.loop()
    assert (generic.clean, generic.lost_share) == (clean, 0.0)
    monkeypatch.setattr(monodromy, "LOSING_STATES_MIN", 2)
    monkeypatch.setattr(monodromy, "LOST_SHARE_MAX", 1.5 / len(generic.states))
    generic.loop()
    assert (generic.clean, generic.lost_share) == (clean + 1, 1 / len(generic.states))
    generic.proven = generic.trace_degree = None
    evidence, statement = generic.statement("")
    assert evidence == "incomplete"
    assert f"lost up to {generic.lost_share:.1%} of their paths" in statement


def test_rows_that_are_linear_are_solved() -> None:
    rng = np.random.default_rng(3)
    A = rng.integers(-1, 2, size=(4, 9)).astype(float)
    A[2] = A[0] - A[1]
    N, E = solved_rows(A)
    v, y = A @ rng.normal(size=9), rng.normal(size=N.shape[1])
    assert N.shape == (9, 6)
    assert np.linalg.matrix_rank(N) == 6
    assert np.abs(A @ (N @ y + E @ v) - v).max() < 1e-13


def test_a_time_limit_leaves_an_incomplete_search_that_can_go_on() -> None:
    m = kic.load("three-rps")
    few = modes_of(m, time_limit=1e-3)
    assert few.completeness.evidence == "incomplete"
    assert "incomplete, because the time limit ended the search" in few.summary().text()
    assert few.completeness.generic < 16
    assert modes_of(m).completeness.generic == 16


def test_all_coordinates_determine_an_open_chain() -> None:
    m = loaded("puma560")
    found = modes_of(m, inputs_of(m) + 0.1)
    assert (len(found), found.completeness.evidence) == (1, "proven number")


def test_arguments() -> None:
    refuses(lambda: loaded("four-bar").assembly_modes(1.2, complete="all"), key="complete", got="all")
    for limit in (0.0, -1.0, np.nan, "long"):
        refuses(lambda limit=limit: modes_of(loaded("four-bar"), time_limit=limit), key="time_limit")
    refuses(lambda: loaded("four-bar").assembly_modes(1.2, time_limit=2.0), key="time_limit", got=2.0)
    assert not hasattr(loaded("four-bar").assembly_modes(1.2), "completeness")
    # a rounded linkage has no exact closure equations
    m = loaded("four-bar").replace(closure_tolerance=1e-4)
    refuses(lambda: modes_of(m), key="complete", got=True)
    # with gears of another ratio than 1, a full turn is another configuration
    refuses(lambda: modes_of(loaded("geared-five-bar")), key="complete", got=True)


@pytest.mark.slow_for("gough-stewart")
@pytest.mark.parametrize("name", ["five-bar", "six-freedom-planar", "gough-stewart"])
def test_distinct_solutions_among_many_and_few_states(monkeypatch, name) -> None:
    m = loaded(name)
    found = []
    for many in (0, 10**9):
        monkeypatch.setattr("kic.analysis.positions.assembly_modes.MANY_STATES_MIN", many)
        found.append(m.assembly_modes(inputs_of(m), starts=32))
    assert np.array_equal(found[0].configuration.state, found[1].configuration.state)
    assert np.array_equal(found[0].counts, found[1].counts)


@pytest.mark.slow
def test_an_interrupted_search_can_go_on(monkeypatch, no_proofs, capsys) -> None:
    m = kic.load("three-rps")
    loop = GenericSolutions.loop

    def interrupted(self: GenericSolutions) -> None:
        if self.loops == 2:
            raise KeyboardInterrupt
        loop(self)

    with monkeypatch.context() as patch:
        patch.setattr(GenericSolutions, "loop", interrupted)
        refuses(lambda: modes_of(m), KeyboardInterrupt)
    assert not capsys.readouterr().err
    monkeypatch.setattr("kic.numerics.progress.REFRESH_S", 0.0)
    known = modes_of(m, progress=True).completeness
    assert (known.generic, known.evidence) in ((16, "loops"), (16, "trace test"))
    assert "kic: [" in capsys.readouterr().err
    refuses(lambda: modes_of(m, progress="yes"), key="progress", got="yes")


def test_the_number_of_modes_as_a_metric() -> None:
    """A two-link arm has two elbows within its reach, one at its limit, and none that the sweep misses."""
    grid = {"tip.x": np.linspace(0.1, 1.9, 4), "tip.y": 0.0}
    swept = TWO.sweep(grid, kic.metrics.assembly_modes("tip.x", "tip.y"), near=TWO.at([0.5, 1.0]))
    assert swept.values["assembly modes"].tolist() == [2, 2, 2, 2]
    m = kic.linkages.three_rrr(base_radius=0.5, platform_radius=0.2, proximal=0.3, distal=0.35)
    q = inputs_of(m) + np.linspace([-0.6, 0.3, 0.5], [0.6, -0.5, 0.0], 9)
    c = m.at(dict(zip(m.coordinates, q.T, strict=True)), failures="mask")
    numbers = kic.metrics.assembly_modes()(c[c.ok])
    real = [np.abs(np.abs(platform_angles(m, x)) - 1) < 1e-7 for x in q[c.ok]]
    assert numbers.tolist() == [int(x.sum()) for x in real]
    assert len(numbers) > 4
    assert np.array_equal(np.isnan(kic.metrics.assembly_modes()(c)), ~c.ok)
    assert np.isnan(kic.metrics.assembly_modes()(c[~c.ok])).all()


def test_lost_paths_leave_the_numbers_of_other_members(monkeypatch) -> None:
    """Without their endgame, paths are lost where the elbows of one member are close together."""

    def lost(self: Endgame, states: np.ndarray, *_: np.ndarray):
        return states, np.zeros(len(states)), np.ones(len(states), dtype=int)

    monkeypatch.setattr(Endgame, "_by_circles", lost)
    c = TWO.at({"shoulder": [0.0, 0.0, 0.1], "elbow": [1.0, 0.0, 1.0]})
    values = {name: c.value(name) for name in ("tip.x", "tip.y")}
    known = modes_of(TWO, values).completeness
    assert (known.lost.tolist(), known.finite.tolist()) == ([0, 2, 0], [2, 0, 2])
    assert known.evidence == "incomplete"
    numbers = kic.metrics.assembly_modes("tip.x", "tip.y")(c)
    assert np.array_equal(numbers, [2, np.nan, 2], equal_nan=True)


@pytest.mark.slow
def test_mirrored_loops_are_no_evidence_of_moves(no_proofs) -> None:
    """Loops that return with conjugate solutions exchange known ones; only polygons count as moves."""
    m = kic.load("three-rps")
    modes_of(m)
    (generic,) = (x for key, x in m._model._prepared.items() if key[0] == "generic solutions")
    before = generic.tracked, generic.moved, generic.polygons, generic.chance
    generic.loops = 1
    generic.loop()
    assert (generic.tracked, generic.moved, generic.polygons, generic.chance) == before
    generic.loop()
    assert generic.tracked == before[0] + generic.tracker.legs.own.sum()
    assert generic.moved > before[1]
    assert generic.polygons == before[2] + 1
    assert generic.chance < 1e-6


def solutions_on_six_rods(a: np.ndarray, b: np.ndarray, starts: int) -> np.ndarray:
    """Return complex quaternions and places (n, 7) of a body whose points b (6, 3) keep their distances to a.

    Newton's method from random complex starts.
    """
    rng, found = np.random.default_rng(3), np.zeros((0, 7), complex)
    a, b = (a - b.mean(axis=0)) / np.linalg.norm(a - b), (b - b.mean(axis=0)) / np.linalg.norm(a - b)
    squares = ((a - b) ** 2).sum(axis=1)

    def turned(q: np.ndarray, r: np.ndarray) -> np.ndarray:  # bilinear, R b of a quaternion if q is r
        w, v, x, u = q[:, :1, None], q[:, None, 1:], r[:, :1, None], r[:, None, 1:]
        inner = [(y * b).sum(axis=2, keepdims=True) for y in (v, u)]
        cross = w * np.cross(u, b) + x * np.cross(v, b)
        return (w * x - (v * u).sum(axis=2, keepdims=True)) * b + inner[0] * u + inner[1] * v + cross

    def equations(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, away = z[:, :4], z[:, None, 4:] + turned(z[:, :4], z[:, :4]) - a
        F = np.concatenate([(away**2).sum(axis=2) - squares, (q**2).sum(axis=1, keepdims=True) - 1], axis=1)
        G = np.zeros((len(z), 7, 7), complex)
        for k, e in enumerate(np.eye(4)):
            G[:, :6, k] = 4 * (away * turned(q, np.tile(e, (len(z), 1)))).sum(axis=2)
        G[:, :6, 4:], G[:, 6, :4] = 2 * away, 2 * q
        return F, G

    z = rng.normal(size=(starts, 7)) + 1j * rng.normal(size=(starts, 7))
    for _ in range(80):
        F, G = equations(z)
        step = np.linalg.solve(G, F[..., None])[..., 0]
        z = z - step / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1.0)
    F, G = equations(z)
    for one in z[(np.abs(F).max(axis=1) < 1e-12) & (np.linalg.cond(G) < 1e8)]:
        apart = [np.abs(found - one * np.repeat([sign, 1], [4, 3])).max(axis=1) for sign in (1, -1)]
        if np.min(apart, initial=1.0) > 1e-6:
            found = np.vstack([found, one])
    return found


@pytest.mark.slow
def test_the_shipped_delta_robot() -> None:
    """Six rods are six distances with at most 40 poses of the plate (F. Ronga and T. Vust, 1992).

    Each has the two ways of six universal joints. With equal arms, 28 poses are finite.
    """
    m = loaded("delta")
    found = modes_of(m)
    known = found.completeness
    assert known.generic == 40 * 2**6
    assert (known.finite, known.lost) == (28 * 2**6, 0)
    assert known.infinite + known.far == 12 * 2**6
    assert known.evidence == "proven number"
    places = found.places("plate")
    assert (np.bincount(places) == 64).all()
    assert known.certified[~found.singular].all()
    # the plate does not turn in two of these places, on three spheres
    rotation = found.configuration.pose("plate").rotation.magnitude()
    assert len(set(places[rotation < 1e-9])) == 2
    ends = [np.array([j.at for j in m.joints if j.type == kind]) for kind in ("universal", "spherical")]
    others = solutions_on_six_rods(*ends, 6000)
    assert (len(others), (np.abs(others.imag).max(axis=1) < 1e-9).sum()) == (28, places.max() + 1)


@pytest.mark.slow
def test_far_solutions_are_not_at_infinity() -> None:
    """Four of the 40 poses of a Delta robot grow with the inverse difference of two arms."""
    m = loaded("delta")
    q = inputs_of(m)
    for apart in (1e-1, 1e-3, 1e-5, 1e-7, 1e-8):
        known = modes_of(m, np.add(q, [0.1, 0.1 + apart, -0.2])).completeness
        assert (known.infinite, known.lost, known.finite + known.far) == (0, 0, 40 * 64)
        assert known.far == (4 * 64 if apart < 1e-2 else known.far)
        assert (known.evidence, known.real) == ("proven number", 16 * 64)
    known = modes_of(m, np.add(q, [0.1, 0.1, -0.2])).completeness
    assert (known.finite, known.infinite + known.far, known.lost) == (36 * 64, 4 * 64, 0)
    assert known.infinite > 0


@pytest.mark.slow
def test_a_slide_to_infinity() -> None:
    """A pin in the slot of a crank slides on a line, parallel to the slot at one angle."""
    m = kic.Mechanism(
        "slot",
        [kic.Body("crank"), kic.Body("block"), kic.Body("slider")],
        [
            kic.Joint("A", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=(0, 0, 1), value=np.pi / 4),
            kic.Joint("s", "prismatic", ("crank", "block"), at=(1, 1, 0), axis=(1, 1, 0)),
            kic.Joint("x", "prismatic", ("ground", "slider"), at=(1, 1, 0), axis=(1, 0, 0)),
            kic.Joint("B", "revolute", ("slider", "block"), at=(1, 1, 0), axis=(0, 0, 1)),
        ],
        coordinates=["A"],
    )
    for angle in (0.5, -1e-3):
        found = modes_of(m, [angle])
        assert abs(found.configuration.value("x")[0] + 1 - 1 / np.tan(angle)) < 1e-9 / angle**2
    assert modes_of(m, [0.0]).completeness.infinite == 1
    for angle in (1e-5, 1e-6, 1e-7, 1e-8):  # rounding errors are larger than the angle
        known = modes_of(m, [angle]).completeness
        assert (known.finite + known.lost, known.infinite) == (1, 0)
        assert known.evidence == "incomplete" or known.real == 1


@pytest.mark.slow
def test_equal_arms_of_a_symmetric_planar_platform() -> None:
    """Four of six places are at infinity, and far if the arms differ little. None of them can move."""
    third = 2 * np.pi * np.arange(3)[:, None] / 3
    ground = np.hstack([np.cos(third), np.sin(third)])
    plate = 0.3 * np.hstack([np.cos(third + 0.2), np.sin(third + 0.2)])
    away = plate - ground
    elbows = (plate + ground) / 2 + 0.45 * np.stack([-away[:, 1], away[:, 0]], axis=1)
    edges = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 7), (6, 7)]
    m = planar(edges, np.concatenate([ground, elbows, plate]), ["J0", "J1", "J2"])
    for apart in (0.0, 1e-8, 1e-6, 1e-5, 1e-3):
        known = modes_of(m, apart * np.array([1.0, -0.4, 0.3])).completeness
        assert (known.generic, known.real, known.moving, known.lost) == (6, 2, 0, 0)
        assert known.infinite == (0 if apart else 4)
        assert known.finite + known.far == (6 if apart else 2)
        assert known.evidence != "incomplete"


@pytest.mark.slow
def test_nearly_similar_hexagons() -> None:
    """At most values, twelve of 28 solutions are near infinity, where loops do not reach them."""
    thirds = np.repeat(2 * np.pi * np.arange(3) / 3, 2)
    base, top = (thirds + np.tile([-x, x], 3) for x in (0.4993, 0.5548))
    hexagons = [np.stack([r * np.cos(x), r * np.sin(x), z + 0 * x], axis=1) for r, x, z in
                ((1.0, base, 0.0), (0.6, top, 0.9))]  # fmt: skip
    known = modes_of(platform(*hexagons)).completeness
    assert known.generic == 28 or (known.evidence == "incomplete" and known.generic >= 16)


def test_an_incomplete_search_is_no_number(monkeypatch) -> None:
    monkeypatch.setattr(GenericSolutions, "collect", lambda *_: "a test ended it")
    assert np.isnan(kic.metrics.assembly_modes()(kic.load("four-bar").at(1.2)))


def with_slides(edges, at, slides, coordinates: str) -> kic.Mechanism:
    """Return the links of `planar` with prismatic joints in some places."""
    names = ["ground", *(f"b{k}" for k in range(1, 1 + max(map(max, edges))))]
    joints = [
        kic.Joint(f"J{k}", "prismatic", (names[a], names[b]), axis=(*np.roll(at[k], 1) * [1, -1], 0.0))
        if k in slides
        else kic.Joint(f"J{k}", "revolute", (names[a], names[b]), at=(*at[k], 0.0), axis=(0, 0, 1))
        for k, (a, b) in enumerate(edges)
    ]
    return kic.Mechanism("slides", [kic.Body(n) for n in names[1:]], joints, coordinates=[coordinates])


@pytest.mark.slow
@pytest.mark.parametrize("edges", [WATT, STEPHENSON], ids=["Watt", "Stephenson"])
@pytest.mark.parametrize("slides", [(1,), (2,), (4,), (5,), (6,), (1, 5), (2, 6)], ids=str)
def test_proven_numbers_bound_those_of_sliders(monkeypatch, edges, slides: tuple[int, ...]) -> None:
    """Loops find no more solutions than are proven, whichever joints are prismatic."""
    at = np.random.default_rng(3).uniform(-1, 1, size=(7, 2))
    for driven in ("J0", "J5"):
        proven: list[tuple[int, str] | None] = []
        monkeypatch.setattr(
            "kic.analysis.positions.monodromy.proven_number",
            lambda c, own=proven: own.append(proven_number(c)),
        )
        known = modes_of(with_slides(edges, at, slides, driven)).completeness
        assert proven[0] is not None
        assert 0 < known.generic <= proven[0][0] <= 6
        assert known.evidence in ("loops", "trace test")


@pytest.mark.slow_for("six-freedom-planar", "jansen-leg", "three-rrr", "five-bar")
@pytest.mark.parametrize(
    ("name", "inputs", "number"),
    [
        ("five-bar", ("tip.x", "tip.y"), 4),
        ("five-bar", ("tip.x", "A"), 4),
        ("three-rrr", ("platform",), 8),
        ("three-rrr", ("platform.x", "platform.y", "platform.angle"), 8),
        ("six-freedom-planar", ("A1", "A2", "A3", "B1", "B2", "B3"), 6),
        ("jansen-leg", (), 8),
        ("scotch-yoke", ("yoke",), 2),
    ],
)
def test_proven_numbers_with_other_inputs(
    monkeypatch, name: str, inputs: tuple[str, ...], number: int
) -> None:
    """The pose of a planar platform moves in its plane: loops find as many as three dyads have."""
    for proven in (True, False):
        m = kic.load(name)
        c = m.at()
        values = {x: c.pose(x) if x == "platform" else c.value(x) for x in inputs or m.coordinates}
        known = modes_of(m, values).completeness
        assert (known.generic, known.finite + known.infinite, known.lost) == (number, number, 0)
        assert (known.evidence == "proven number") == proven
        assert not proven or "planar Assur groups" in known.statement
        monkeypatch.setattr("kic.analysis.positions.monodromy.proven_number", lambda _: None)


def test_no_number_for_a_motion_that_remains() -> None:
    """The angle of a slider is no input, because it is constant."""
    m = kic.load("slider-crank")
    slider = m.at().value("slider.angle")
    assert proven_number(position_problem(m._model, {"slider.angle": slider})[1]) is None


@pytest.mark.slow
def test_a_linkage_without_proof() -> None:
    """A group with two prismatic joints for the angle may have 6 solutions, and has 2."""
    m = kic.load("four-bar")
    known = modes_of(m, {"coupler.angle": m.at().value("coupler.angle")}).completeness
    assert (known.generic, known.evidence) == (2, "trace test")


def test_a_body_on_five_rods_and_a_plane() -> None:
    """A given height is a distance from a point at infinity; a sixth rod in its place has 40, too."""
    m = loaded("five-rod-suspension")
    known = modes_of(m).completeness
    assert (known.generic, known.evidence) == (40, "proven number")
    assert "six distances: " in known.statement


def test_points_that_a_given_joint_moves_do_not_coincide() -> None:
    """Pairs of six distances to three points of a plate have 16 solutions, and 40 if a flap parts them."""
    rng = np.random.default_rng(1)
    base = rng.normal(size=(6, 3))
    top = np.repeat(0.6 * rng.normal(size=(3, 3)) + [0.0, 0.0, 1.0], 2, axis=0)
    whole = platform(base, top)
    hinge = kic.Joint("H", "revolute", ("plate", "flap"), at=(0.2, 0.1, 1.3), axis=(1, 2, 3))
    points = [replace(p, body="flap") if p.name in ("B1", "B3", "B5") else p for p in whole.points]
    parted = whole.replace(
        bodies=[*whole.bodies, kic.Body("flap")],
        joints=[*whole.joints, hinge],
        points=points,
        coordinates=[*whole.coordinates, "H"],
    )
    for m, number in ((whole, 16), (parted, 40)):
        known = proven_number(position_problem(m._model, inputs_of(m))[1])
        assert known is not None
        assert known[0] == number
    known = modes_of(parted, [*inputs_of(whole) * 1.05, 0.7]).completeness
    assert (known.generic, known.evidence, known.certified_complex) == (40, "proven number", 40)


def test_a_body_on_a_ball_joint_and_three_distances() -> None:
    rng = np.random.default_rng(70)
    base, top = rng.normal(size=(2, 3, 3))
    points = [kic.Point(f"A{k}", "ground", at=tuple(p)) for k, p in enumerate(base)]
    points += [kic.Point(f"B{k}", "plate", at=tuple(p)) for k, p in enumerate(top)]
    joint = kic.Joint("ball", "spherical", ("ground", "plate"), at=(0.1, 0.2, 0.3))
    distances = [kic.Distance(f"L{k}", (f"A{k}", f"B{k}")) for k in range(3)]
    names = [d.name for d in distances]
    m = kic.Mechanism(
        "wrist", [kic.Body("plate")], [joint], points=points, distances=distances, coordinates=names
    )
    known = modes_of(m).completeness
    assert (known.generic, known.finite, known.evidence) == (8, 8, "proven number")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("parallel", [True, False])
def test_arms_with_three_parallel_or_intersecting_axes(monkeypatch, first: int, parallel: bool) -> None:
    """They have 8 solutions, which loops find, too (D. L. Pieper, 1968)."""
    rng = np.random.default_rng(60 + first)
    a, d = rng.uniform(0.2, 1.0, size=(2, 6))
    alpha, q = rng.uniform(-3, 3, size=(2, 6))
    if parallel:
        alpha[first : first + 2] = 0.0
    else:
        a[first : first + 2] = d[first + 1] = 0.0
    for proven in (True, False):
        arm = arm_of_six(a, d, alpha)
        known = modes_of(arm, {"hand": arm.at(q).pose("hand")}).completeness
        assert (known.generic, known.finite, known.lost) == (8, 8, 0)
        assert (known.evidence == "proven number") == proven
        monkeypatch.setattr("kic.analysis.positions.monodromy.proven_number", lambda _: None)
    # a small offset brings the other eight, from far away
    d[first + 1] += 0.0 if parallel else 0.1
    alpha[first] += 0.1 if parallel else 0.0
    arm = arm_of_six(a, d, alpha)
    assert modes_of(arm, {"hand": arm.at(q).pose("hand")}).completeness.generic == 16
