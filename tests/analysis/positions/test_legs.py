"""Legs whose assembly modes are independent in each place of a platform."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from assembly_cases import WATT, generic_of, inputs_of, modes_of, planar, translating_delta
from raising import refuses
from scipy.spatial.transform import Rotation

import kic
from kic.analysis.positions import legs as legs_of
from kic.analysis.positions.legs import Legs


def crank_with_dyads(count: int, seed: int = 3) -> kic.Mechanism:
    """Return a crank that drives some rockers, each by a coupler of its own."""
    edges, at = [(0, 1)], [(0.0, 0.0)]
    rng = np.random.default_rng(seed)
    for k in range(count):
        edges += [(1, 2 * k + 2), (2 * k + 2, 2 * k + 3), (2 * k + 3, 0)]
        at += [rng.uniform(0.2, 0.4, 2), rng.uniform(0.8, 1.2, 2), rng.uniform(-1.0, -0.6, 2)]
    return planar(edges, np.array(at))


def as_one(monkeypatch, m: kic.Mechanism, values=None) -> kic.results.AssemblyModes:
    """Return the assembly modes of a new copy of a mechanism whose legs are one."""
    with monkeypatch.context() as patch:
        patch.setattr(legs_of, "_columns_of_legs", lambda *_: np.zeros(m._model.tree.size, dtype=int))
        return modes_of(m.replace(name="one"), values)


def same(a: kic.results.AssemblyModes, b: kic.results.AssemblyModes) -> None:
    """Check that the configurations of two searches, and the numbers, are equal."""
    one, other = (np.exp(1j * x.configuration._phi) for x in (a, b))
    apart = np.abs(one[:, None] - other).max(axis=2)
    assert apart.shape == (len(b), len(b))
    assert (apart < 1e-7).sum(axis=0).tolist() == (apart < 1e-7).sum(axis=1).tolist() == [1] * len(b)
    assert np.array_equal(np.sort(a.counts), np.sort(b.counts))
    for name in ("generic", "finite", "infinite", "lost", "moving", "real", "certified_complex", "proven"):
        assert getattr(a.completeness, name) == getattr(b.completeness, name)


LEGGED = ["two-arms", "walking-machine-on-feet", "peaucellier", "ladder", "watt-parallel-motion", "three-rps"]


@pytest.mark.slow_for("two-arms", "peaucellier", "walking-machine-on-feet", "three-rps")
@pytest.mark.parametrize("name", LEGGED)
def test_legs_apart_and_as_one_agree(name: str, monkeypatch) -> None:
    m = kic.load(name)
    same(modes_of(m), as_one(monkeypatch, m))


@pytest.mark.slow
def test_mechanisms_on_one_crank(monkeypatch) -> None:
    """Each coupler and rocker has two assembly modes: 2³, from two paths."""
    m = crank_with_dyads(3)
    found = modes_of(m)
    generic = generic_of(m)
    assert (len(found), found.completeness.generic, len(generic.states)) == (8, 8, 2)
    assert generic.tracker.legs.modes.tolist() == [[2, 2, 2]]
    assert "(2 · 2 · 2 of independent parts)" in found.completeness.statement
    same(found, as_one(monkeypatch, m))
    row = modes_of(m, np.linspace(-0.8, 0.8, 13)[:, None])
    whole = as_one(monkeypatch, m, np.linspace(-0.8, 0.8, 13)[:, None])
    assert row.completeness.real.tolist() == whole.completeness.real.tolist()
    assert len(set(row.completeness.real.tolist())) > 1


@pytest.mark.parametrize("other", [-1, 0])
def test_ends_at_a_double_solution_are_alike(other: int, monkeypatch) -> None:
    """Rounding may call one of two conjugate ends regular, or find their mean for one of them."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (4, 5), (5, 0)]
    straight = [(0.3, -0.2), (0.8, 0.8), (1.8, 2.8)]
    m = planar(edges, np.array([(0, 0), (0.3, 0.2), (1.0, 0.9), (-0.8, -0.7), *straight]))
    found = modes_of(m)
    assert (len(found), found.counts.tolist(), found.completeness.finite) == (2, [2, 2], 4)
    generic, here = generic_of(m), m._model.reference_state[:1].astype(complex)
    tracker = generic.tracker
    null = np.linalg.svd(tracker.closure.rows(here)[1])[2][:, -1].conj()
    ends = np.concatenate([tracker.moved(here, 2e-7j * side * null) for side in (1, other)])
    for regular, expected in (([True, True], False), ([True, False], True)):
        monkeypatch.setattr(tracker, "is_regular", lambda states, *_, of=regular: np.array(of[: len(states)]))
        real = generic._real(ends[None], np.ones((1, 2), dtype=bool), generic.like[None])[0]
        assert real[0, 0].all() == real.all() == expected
    with warnings.catch_warnings(action="error"):  # Newton's method may diverge from there
        assert np.isnan(tracker.refined(np.nan * here, generic.like[None])).any()


@pytest.mark.slow
def test_arms_of_a_delta_robot_are_independent() -> None:
    m = translating_delta(np.random.default_rng(14))
    there = modes_of(m, [0.1, 0.05, -0.1])
    m = m.replace(name="back")
    back = modes_of(m, {"tip": there.configuration[0].value("tip")})
    assert (len(back), back.completeness.generic, len(generic_of(m).states)) == (8, 8, 2)
    assert len({tuple(x) for x in np.round(back.configuration._phi, 6).tolist()}) == 8


@pytest.mark.slow
def test_numbers_of_assembly_modes_that_are_not_listed(monkeypatch) -> None:
    """Of 17 couplers and rockers in their reference configuration, all 2¹⁷ assembly modes are real."""
    m = crank_with_dyads(17)
    refuses(lambda: modes_of(m), key="complete", got=True, number=2.0**17)
    few = crank_with_dyads(3)
    monkeypatch.setattr("kic.analysis.positions.monodromy.COMPLEX_MODES_MAX", 7)
    refuses(lambda: modes_of(few), key="complete", number=8)


def test_parts_that_depend_on_each_other_are_one(monkeypatch) -> None:
    """A wrong division into legs shows in the residuals of combinations, and is dropped."""
    m = planar(WATT, np.random.default_rng(12).uniform(-1, 1, size=(7, 2)))
    expected = modes_of(m)
    m = m.replace(name="wrong")
    monkeypatch.setattr(legs_of, "_columns_of_legs", lambda *_: np.arange(m._model.tree.size))
    same(modes_of(m), expected)
    assert generic_of(m).tracker.legs.count == 1


def test_combinations_of_a_mask() -> None:
    m = crank_with_dyads(3)
    modes_of(m)
    legs: Legs = generic_of(m).tracker.legs
    rng = np.random.default_rng(1)
    points = [rng.integers(0, 3, (40, 1)).astype(float) for _ in range(legs.count)]
    place = rng.integers(0, 2, (40, 1)).astype(float)
    rows, new = legs.arrange(place, points, 1e-6)
    for j, own in enumerate(points):  # each mode of each leg in each place is in one row
        pairs = np.column_stack([place, own])
        assert len(np.unique(pairs, axis=0)) == legs.modes[:, j].sum()
        assert len(np.unique(pairs[rows[legs.own[:, j], j]], axis=0)) == legs.modes[:, j].sum()
        assert (place[rows[:, j], 0] == place[rows[:, 0], 0]).all()
    assert new.sum() <= legs.modes.sum()
    mask = rng.random((4, len(rows), legs.count)) < 0.6
    member, k = legs.combinations(mask)
    expected = [
        (b, *one)
        for b, c in np.ndindex(4, len(legs.modes))
        for one in product(*(
            np.flatnonzero(mask[b, :, j] & legs.own[:, j] & (legs.place == c)) for j in range(legs.count)
        ))
    ]  # fmt: skip
    assert sorted(map(tuple, np.column_stack([member, k]).tolist())) == sorted(expected)
    assert legs.number(mask).tolist() == np.bincount(member, minlength=4).tolist()


def quaternions_on_planes(normals: np.ndarray, tops: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return all complex quaternions (8, 4), of any length, of a body whose six points lie in given planes.

    The equations n·(p + R b) = c are linear in p and R. Without p, three are left, quadratic in a quaternion.
    Their zeros are eigenvalues of multiplications on the null space of their multiples of degree 4
    (H. J. Stetter, "Numerical Polynomial Algebra", 2004).
    """
    W, unit = np.linalg.svd(normals.T)[2][3:], np.eye(4, dtype=int)

    def value(w: np.ndarray, q: np.ndarray) -> float:
        R = (q @ q) * Rotation.from_quat(q, scalar_first=True).as_matrix()
        return float(w @ np.einsum("ki,ij,kj->k", normals, R, tops) - (w @ levels) * (q @ q))

    def monomials(degree: int) -> list[np.ndarray]:
        return [np.array(e) for e in np.ndindex(*[degree + 1] * 4) if sum(e) == degree]

    at = {tuple(e): n for n, e in enumerate(monomials(4))}
    rows = np.zeros((3, len(monomials(2)), len(at)))
    for k, n in np.ndindex(rows.shape[:2]):
        for a, b in product(unit, unit):
            square = (value(W[k], a + b) - value(W[k], a) - value(W[k], b)) / 2
            rows[k, n, at[tuple(monomials(2)[n] + a + b)]] += square
    _, sizes, V = np.linalg.svd(rows.reshape(-1, len(at)))
    null = V[(sizes > 1e-9 * sizes[0]).sum() :].T
    assert null.shape[1] == 8
    shifted = [null[[at[tuple(e + u)] for e in monomials(3)]] for u in unit]
    first, second = np.tensordot(np.random.default_rng(0).normal(size=(2, 4)), shifted, 1)
    vectors = np.linalg.eig(np.linalg.lstsq(first, second, rcond=None)[0])[1]
    cubic = np.stack([s @ vectors for s in shifted])  # of each solution, q times monomials
    q = cubic[:, np.abs(cubic).sum(axis=0).argmax(axis=0), np.arange(8)].T
    return q / q[np.arange(8), np.abs(q).argmax(axis=1)][:, None]


def modes_of_arm(joints: list[kic.Joint], hip: float, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the real angles (n, 5) of shoulder, elbow and wrist for a displacement (R, p) of the plate."""
    a, s, _, d, e, f = (np.array(j.axis) / np.linalg.norm(j.axis) for j in joints)
    shoulder, elbow, wrist = (np.array(joints[k].at) for k in (1, 2, 3))
    turn = lambda axis, angle: Rotation.from_rotvec(angle * axis).as_matrix()  # noqa: E731
    hips = turn(a, hip)
    reach = hips.T @ (R @ wrist + p - shoulder)
    upper, fore = elbow - shoulder, wrist - elbow
    found = []
    for C in angles(s, upper, fore, (reach @ reach - upper @ upper - fore @ fore) / 2):
        link = upper + turn(s, C) @ fore
        B = np.arctan2(s @ np.cross(link, reach), across(s, link) @ reach)
        inner = (hips @ turn(s, B + C)).T @ R
        for E in angles(e, d, f, d @ inner @ f):
            bent = turn(e, E) @ f
            D = np.arctan2(d @ np.cross(bent, inner @ f), across(d, bent) @ inner @ f)
            last = (turn(d, D) @ turn(e, E)).T @ inner
            F = np.arctan2(*(x @ last @ e for x in (np.cross(f, e), e)))
            found.append((B, C, D, E, F))
    return np.array(found).reshape(-1, 5)


def across(axis: np.ndarray, v: np.ndarray) -> np.ndarray:
    return v - (axis @ v) * axis


def angles(axis: np.ndarray, u: np.ndarray, v: np.ndarray, c: float) -> list[float]:
    """Return the real angles by which v is turned about an axis, so that its product with u is c."""
    a, b = across(axis, u) @ v, u @ np.cross(axis, v)
    cosine = (c - (axis @ u) * (axis @ v)) / np.hypot(a, b)
    return [] if abs(cosine) > 1 else [float(np.arctan2(b, a) + x * np.arccos(cosine)) for x in (1, -1)]


@pytest.mark.slow
def test_six_arms_hold_a_plate() -> None:
    """Hips hold the wrists in six planes: eight places of the plate, and 4⁶ assembly modes of the arms.

    Each arm has two ways of its elbow and two of its wrist, in closed form.
    """
    m = kic.load("stewart-6r")
    arms = [[next(j for j in m.joints if j.name == f"{x}{k}") for x in "ABCDEF"] for k in range(1, 7)]
    rng = np.random.default_rng(2)
    for q in (inputs_of(m), *rng.uniform(-0.15, 0.15, size=(1, 6))):
        found = modes_of(m, q)
        known = found.completeness
        assert (known.generic, known.finite, known.lost, known.evidence) == (8 * 4**6, 8 * 4**6, 0, "loops")
        assert len(found) == known.real
        assert len(generic_of(m).states) == 8 * 4
        # planes: normals are the shoulder's axes
        turns = [Rotation.from_rotvec(x * unit(arm[0].axis)) for x, arm in zip(q, arms, strict=True)]
        normals = np.array([R.apply(unit(arm[1].axis)) for R, arm in zip(turns, arms, strict=True)])
        tops, bases = (np.array([arm[k].at for arm in arms]) for k in (3, 1))
        levels = np.einsum("ki,ki->k", normals, bases)
        levels += [unit(arm[1].axis) @ np.subtract(arm[3].at, arm[1].at) for arm in arms]
        places = 0
        poses = found.configuration.pose("plate").as_matrix()
        for own in quaternions_on_planes(normals, tops, levels):
            if np.abs(own.imag).max() < 1e-9:
                R = Rotation.from_quat(own.real, scalar_first=True).as_matrix()
                p = np.linalg.lstsq(normals, levels - np.einsum("ki,ij,kj->k", normals, R, tops))[0]
                modes = [modes_of_arm(arm, x, R, p) for arm, x in zip(arms, q, strict=True)]
                here = np.abs(poses[:, :3, :3] - R).max(axis=(1, 2)) < 1e-6
                assert here.sum() == np.prod([len(x) for x in modes])
                places += bool(here.any())
                for k, expected in enumerate(modes, 1):
                    if here.any():
                        names = [f"{x}{k}" for x in "BCDEF"]
                        turn = np.exp(
                            1j * np.stack([found.configuration.value(n) for n in names], axis=1)[here]
                        )
                        apart = np.abs(turn[:, None] - np.exp(1j * expected)).max(axis=2)
                        assert apart.min(axis=1).max() < 1e-6
                        assert (np.bincount(apart.argmin(axis=1)) == here.sum() / len(expected)).all()
        assert len(found) == places * 4**6
        assert len(np.unique(np.round(np.exp(1j * found.configuration._phi), 5), axis=0)) == len(found)
    assert places


def unit(v) -> np.ndarray:
    return np.array(v) / np.linalg.norm(v)
