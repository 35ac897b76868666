"""All assembly modes: numbers from the literature, independent solvers, and the evidence that is stated."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from raising import raises
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.analysis.monodromy import GenericSolutions
from kic.classics.wrist_partitioned import WristPartitioned

TWO = kic.load("horn-two-link")
# Manseur and Doty, "A robot manipulator with 16 real inverse kinematic solution sets", International Journal
# of Robotics Research 8, 1989, pp. 75-79: standard DH rows, and the pose of the hand to six digits
DOTY_A, DOTY_D = [0.3, 1.0, 0.0, 1.5, 0.0, 0.0], [0.0, 0.0, 0.2, 0.0, 0.0, 0.0]
DOTY_ALPHA = np.radians([90.0, 1.0, 90.0, 1.0, 90.0, 1.0])
DOTY_AXES = [[-0.760117, -0.641689, 0.102262], [0.133333, 0.0, 0.991071], [-0.635959, 0.766965, 0.085558]]
DOTY_PLACE = [-1.140175, 0.0, 0.0]


def arm_of_six(a, d, alpha) -> kic.Mechanism:
    rows = [kic.DHRow(f"J{k}", f"link{k}", a=a[k], d=d[k], alpha=alpha[k], theta=0.0) for k in range(len(a))]
    hand = kic.Frame("hand", f"link{len(a) - 1}")
    return kic.from_dh("arm", rows, convention="standard", frames=[hand])


def six_distances(rng: np.random.Generator) -> kic.Mechanism:
    """Return a body on six distances from random points to random points of ground."""
    base, top = rng.normal(size=(6, 3)), 0.6 * rng.normal(size=(6, 3)) + [0.0, 0.0, 1.0]
    points = [kic.Point(f"A{k}", "ground", at=p) for k, p in enumerate(base)]
    points += [kic.Point(f"B{k}", "plate", at=p) for k, p in enumerate(top)]
    return kic.Mechanism(
        "platform",
        [kic.Body("plate", at=(0.0, 0.0, 1.0))],
        [kic.Joint("free", "free", ("ground", "plate"), at=(0.0, 0.0, 1.0))],
        points=points,
        distances=[kic.Distance(f"L{k}", (f"A{k}", f"B{k}")) for k in range(6)],
        coordinates=[f"L{k}" for k in range(6)],
    )


@cache
def loaded(name: str) -> kic.Mechanism:
    return kic.load(name)


def inputs_of(m: kic.Mechanism) -> np.ndarray:
    """Return the coordinates of the reference configuration."""
    return np.array([float(m.at().value(name)) for name in m.coordinates])


def modes_of(m: kic.Mechanism, values=None, **options) -> kic.AssemblyModes:
    return m.assembly_modes(inputs_of(m) if values is None else values, complete=True, **options)


def has_values(m: kic.Mechanism, found: kic.AssemblyModes, q) -> bool:
    """Return True if all configurations have these inputs, and a certificate."""
    own = np.stack([found.configuration.value(name) for name in m.coordinates], axis=-1)
    return bool(np.abs(own - q).max(initial=0.0) < 1e-9 and found.completeness.certified.all())


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


@pytest.mark.parametrize("name", LITERATURE)
def test_numbers_of_the_literature(name: str) -> None:
    m = loaded(name)
    found = modes_of(m)
    known = found.completeness
    assert known.generic == LITERATURE[name]
    # traces of large degree are not significant in floating-point numbers
    assert known.evidence == ("loops" if LITERATURE[name] > 4 else "trace test")
    assert known.chance < 1e-2
    assert known.evidence != "loops" or "no proof" in known.statement
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
    turns = np.exp(1j * found.configuration.phi)
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


@pytest.mark.slow
def test_universal_joints_are_turned_over() -> None:
    """Each pose of a platform has both ways of each of six universal joints."""
    m = loaded("gough-stewart")
    found = modes_of(m)
    places = found.places("platform")
    assert len(found) == 64 * (places.max() + 1) == found.completeness.real
    assert (np.bincount(places) == 64).all()
    assert found.completeness.generic % 64 == 0
    # the base and the platform are semi-regular hexagons; the same six distances have no joints
    few = modes_of(kic.linkages.stewart(0.7, 0.45, height=0.9, legs="distance"))
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
        m = kic.linkages.three_rrr(base, rng.uniform(0.1, 0.4), proximal=0.3, distal=distal)
        total += compare_platforms(m, inputs_of(m) + rng.uniform(-1.5, 1.5, size=(100, 3)))
    assert total > 250


def test_four_bars_agree_with_two_circles() -> None:
    """At many crank angles, in reach or out of it."""
    m = kic.linkages.four_bar(1.0, 0.6, 0.7, 0.5, angle=1.0)
    angles = np.random.default_rng(2).uniform(-np.pi, np.pi, 40)
    found = modes_of(m, {m.coordinates[0]: angles})
    B = 0.6 * np.exp(1j * angles)
    span = np.abs(1.0 - B)
    expected = np.where((span < 1.2) & (span > 0.2), 2, 0)
    assert found.completeness.real.tolist() == expected.tolist()
    assert found.configuration.ok.sum(axis=0).tolist() == expected.tolist()
    assert 0 < expected.mean() < 2


def test_a_wrist_partitioned_arm_agrees_with_its_closed_form() -> None:
    closed = WristPartitioned(1.3, 0.9, 0.4)
    rng = np.random.default_rng(6)
    theta = rng.uniform(-3, 3, size=(20, 3))
    P = closed.wrist_coefficients(theta, order=1).values
    found = modes_of(closed.mechanism(), dict(zip(closed.rows, P.T, strict=True)))
    assert found.completeness.generic == 4
    assert (found.completeness.real == 4).all()
    expected = closed.inverse_kinematics(P)
    turns = np.exp(1j * found.configuration.phi)
    apart = np.abs(turns[:, None] - np.exp(1j * expected)).max(axis=-1)
    assert apart.min(axis=0).max() < 1e-7
    assert apart.min(axis=1).max() < 1e-7


def test_eight_configurations_of_an_arm_with_a_spherical_wrist() -> None:
    arm = loaded("puma560")
    q = np.array([0.0, 0.5, -2.2, 0.0, 0.8, 0.0]) + np.random.default_rng(7).uniform(-1, 1, size=(3, 6))
    found = modes_of(arm, {"link6": arm.at(q).pose("link6")})
    assert found.completeness.generic == 8  # D. L. Pieper, 1968
    assert (found.completeness.real == 8).all()
    apart = np.abs(np.exp(1j * found.configuration.phi) - np.exp(1j * q)).max(axis=-1)
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
    assert np.abs(edge.configuration.phi).max() < 1e-5
    none = modes_of(TWO, {"tip.x": 2.1, "tip.y": 0.0})
    assert len(none) == none.completeness.real == 0
    assert none.completeness.finite == 2
    assert "0 distinct real" in none.summary().text()
    row = modes_of(TWO, {"tip.x": [1.2, 1.6, 2.0, 2.4], "tip.y": 0.0})
    assert row.completeness.real.tolist() == row.configuration.ok.sum(axis=0).tolist() == [2, 2, 1, 0]
    assert row.counts.sum(axis=0).tolist() == [2, 2, 2, 0]
    assert row.continued[:, 1].all()
    with raises(kic.ConfigurationError, failed=[()]):
        modes_of(TWO, {"tip.x": 1.0, "tip.y": 1.0}, limits={"elbow": (0.0, 1.0)})
    up = modes_of(TWO, {"tip.x": 1.0, "tip.y": 1.0}, limits={"elbow": (0.0, 2.0)})
    assert (len(up), up.completeness.real) == (1, 2)


@pytest.mark.parametrize("name", ["four-bar", "stephenson-six-bar", "rssr"])
def test_the_trace_test_fails_if_a_solution_is_missing(name: str) -> None:
    m = kic.load(name)
    modes_of(m)
    (generic,) = (x for key, x in m._model._prepared.items() if key[0] == "generic solutions")
    assert isinstance(generic, GenericSolutions)
    assert generic.trace_degree >= 0
    for _ in range(len(generic.states) - 1):
        generic.states = generic.states[1:]
        assert generic._trace_test() == -1


def test_a_time_limit_leaves_an_incomplete_search_that_can_go_on() -> None:
    m = kic.load("three-rps")
    few = modes_of(m, time_limit=1e-3)
    assert few.completeness.evidence == "incomplete"
    assert "incomplete, because the time limit" in few.summary().text()
    assert few.completeness.generic < 16
    assert modes_of(m).completeness.generic == 16


def test_all_coordinates_determine_an_open_chain() -> None:
    m = loaded("puma560")
    found = modes_of(m, inputs_of(m) + 0.1)
    assert (len(found), found.completeness.evidence) == (1, "proven number")


def test_arguments() -> None:
    with raises(kic.InputError, key="complete", got="all"):
        loaded("four-bar").assembly_modes(1.2, complete="all")
    for limit in (0.0, -1.0, np.nan, "long"):
        with raises(kic.InputError, key="time_limit"):
            modes_of(loaded("four-bar"), time_limit=limit)
    with raises(kic.InputError, key="time_limit", got=2.0):
        loaded("four-bar").assembly_modes(1.2, time_limit=2.0)
    assert not hasattr(loaded("four-bar").assembly_modes(1.2), "completeness")
    # a rounded linkage has no exact closure equations
    m = loaded("four-bar").replace(closure_tolerance=1e-4)
    with raises(kic.InputError, key="complete", got=True):
        modes_of(m)
    # with gears of another ratio than 1, a full turn is another configuration
    with raises(kic.InputError, key="complete", got=True):
        modes_of(loaded("geared-five-bar"))


@pytest.mark.parametrize("name", ["five-bar", "six-freedom-planar", "gough-stewart"])
def test_distinct_solutions_among_many_and_few_states(monkeypatch, name) -> None:
    m = loaded(name)
    found = []
    for many in (0, 10**9):
        monkeypatch.setattr("kic.analysis.assembly_modes.MANY_STATES_MIN", many)
        found.append(m.assembly_modes(inputs_of(m), starts=32))
    assert np.array_equal(found[0].configuration.state, found[1].configuration.state)
    assert np.array_equal(found[0].counts, found[1].counts)
