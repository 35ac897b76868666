"""Damped Gauss–Newton method: regular, degenerate, contradictory and undefined systems in one batch."""

from __future__ import annotations

import numpy as np

from kic.numerics.gauss_newton import DAMPING_MIN, STALLED_FACTOR, gauss_newton, least_squares_step
from kic.numerics.graphs import blocks


def circle_and_line(points: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return residuals of a circle and of lines y = 0, 1, 2 and NaN: crossing, tangent, apart, undefined."""
    x, y = points.T
    level = np.array([0.0, 1.0, 2.0, np.nan])[members]
    one = np.ones_like(x)
    error = np.stack([x**2 + y**2 - 1, y - level, 0 * x], axis=1)
    J = np.stack([np.stack([2 * x, 2 * y], 1), np.stack([0 * x, one], 1), np.zeros((len(x), 2))], axis=1)
    J[np.isnan(level)] = np.nan
    return error, J


def test_each_member_of_a_batch_ends_at_its_own_minimum():
    start = np.array([[2.0, 0.3], [0.4, 0.9], [0.4, 0.9], [2.0, 0.3]])
    # the minimum apart: x = 0 and 2 y³ − y − 2 = 0; a search that stalls ends within 2 % of its norm, and
    # half of the squared norm rises by at least y² − 1 times the squared distance, to second order
    roots = np.roots([2.0, 0.0, -1.0, -2.0])
    y = roots[roots.imag == 0].real[0]
    least = np.hypot(y**2 - 1, y - 2)
    distance = np.sqrt((STALLED_FACTOR**-2 - 1) * least**2 / (2 * (y**2 - 1)))
    for damping in (0.0, DAMPING_MIN):
        points, norm = gauss_newton(
            circle_and_line, lambda x, step: x + step, start, rtol=1e-12, step_max=0.5, damping=damping
        )
        assert np.abs(points[0] - [1, 0]).max() < 1e-14
        # a double root is known to half the digits
        assert norm[1] < 1e-10
        assert np.abs(points[1] - [0, 1]).max() < 1e-4
        assert least * (1 - 1e-14) <= norm[2] <= least / STALLED_FACTOR
        assert np.linalg.norm(points[2] - [0, y]) < distance
        assert norm[2] == np.linalg.norm(circle_and_line(points, np.arange(4))[0][2])
        assert np.array_equal(points[3], start[3])
        assert np.isinf(norm[3])


def test_members_outside_their_region_are_abandoned():
    start = np.array([[2.0, 0.3], [2.0, 0.3]])
    points, norm = gauss_newton(
        lambda x, members: circle_and_line(x, 0 * members),
        lambda x, step: x + step,
        start,
        rtol=1e-12,
        step_max=np.inf,
        inside=lambda x, members: np.linalg.norm(x - start[members], axis=1) < np.array([0.1, 9.0])[members],
    )
    assert norm[0] > 0.1
    assert np.abs(points[1] - [1, 0]).max() < 1e-14


def test_blocks_are_solved_as_the_whole():
    """A singular block, a regular one, and rows and columns of neither; shares are those of the whole."""
    rng, J = np.random.default_rng(0), np.zeros((2, 8, 7))
    rows, columns = [0, 2, 5, 6], [1, 4, 6]
    J[:, [[row] for row in rows], columns] = rng.normal(size=(2, 4, 3))
    J[:, [[1], [3], [4]], [0, 3, 5]] = 1e-3 * rng.normal(size=(2, 3, 1)) @ rng.normal(size=(2, 1, 3))
    found = blocks((J != 0).any(axis=0))
    assert [(a.tolist(), b.tolist()) for a, b in found] == [(rows, columns), ([1, 3, 4], [0, 3, 5])]
    error = rng.normal(size=(2, 8))
    for rtol, damping in ((1e-12, 0.0), (1e-12, 0.1), (0.1, 0.0)):
        whole, parts = (least_squares_step(J, error, damping, rtol, b) for b in (None, found))
        # the condition of the steps is at most 1e5
        np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-9 * np.abs(whole).max())
    assert not blocks(np.zeros((2, 3), dtype=bool))
