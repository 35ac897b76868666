"""Cone programs: minimum cost under equalities, inequalities, second-order cones and semidefinite matrices.

A program with equalities, inequalities and linear cost alone is linear and solved by HiGHS of SciPy. Other
programs require Clarabel. Solutions fulfil the equalities to rounding and have no negative margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.errors import SingularError
from kic.numerics.optional import import_optional

# smallest significant margin, in a program of numbers of order one
CONE_TIGHTENING_MAX = 1e-7
# smallest margin of a solution, relative to its largest number, which rounding cannot make negative
MARGIN_RTOL = 1e-14
# largest residual of consistent equalities, in a program of numbers of order one
EQUALITY_RTOL = 1e-9
# tolerances of the solver, tried in this order
SOLVER_TOLERANCES = 1e-12, 1e-10, 1e-8


@dataclass(frozen=True)
class Program:
    """Minimum of ``cost·x + x·square·x / 2`` with ``E x = e`` and blocks of ``s = h − A x`` in cones."""

    cost: np.ndarray  # (N,): linear cost
    # (Q, N), (Q,): equalities with orthonormal rows; see `orthonormal_rows`
    E: np.ndarray
    e: np.ndarray
    # (R, N), (R,): inequalities, block by block
    A: np.ndarray
    h: np.ndarray
    # Rows of each block. A single row is nonnegative; in larger blocks, the first row is at least the norm of
    # the rest.
    sizes: tuple[int, ...]
    square: np.ndarray | None = None  # (N, N), optional: quadratic cost
    # Orders of positive semidefinite matrices. Their upper triangles follow the blocks, column by column,
    # with entries beside the diagonal times √2.
    orders: tuple[int, ...] = ()

    @property
    def starts(self) -> np.ndarray:
        """First row of each block."""
        return np.array([sum(self.sizes[:k]) for k in range(len(self.sizes))], dtype=np.intp)

    def margins(self, x: np.ndarray) -> np.ndarray:
        """Return the margin of each block: its first row less the norm of the rest."""
        return cone_margins(self.h - self.A @ x, self.sizes)

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Return the nearest x that satisfies the equalities."""
        return x - self.E.T @ (self.E @ x - self.e)


def cone_margins(s: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return the margin of each block: its first row less the norm of the rest."""
    blocks = np.split(s, np.cumsum(sizes)[:-1]) if sizes else []
    return np.array([b[0] - (np.linalg.norm(b[1:]) if len(b) > 1 else 0.0) for b in blocks])


def orthonormal_rows(E: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the component of `e` outside range(E), and T such that T E has orthonormal rows."""
    if not E.size:
        return e, np.zeros((0, len(e)))
    U, sigma, _ = np.linalg.svd(E, full_matrices=False)
    kept = sigma > EQUALITY_RTOL * sigma[0]
    T = U[:, kept].T / sigma[kept, None]
    return e - U[:, kept] @ (U[:, kept].T @ e), T


def solve(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve a program; return x with the multipliers y of its equalities and z of its blocks.

    The multipliers satisfy cost + square·x + Eᵀy + Aᵀz = 0, with z in the cones.

    Raise `SingularError` if the solver does not converge. Raise `MissingExtraError` if Clarabel is
    required and not installed.
    """
    # a cone of two rows is two inequalities
    sizes = np.array(program.sizes, dtype=np.intp)
    pairs = program.starts[sizes == 2]
    turn = np.eye(len(program.h))
    turn[pairs, pairs + 1], turn[pairs + 1, pairs], turn[pairs + 1, pairs + 1] = 1.0, 1.0, -1.0
    flat = np.repeat(np.where(sizes == 2, 1, sizes), np.where(sizes == 2, 2, 1))
    lines = replace(program, A=turn @ program.A, h=turn @ program.h, sizes=tuple(flat.tolist()))
    simple = program.square is None and flat.max(initial=1) == 1 and not program.orders
    x, y, z = _solve_linear(lines) if simple else _solve_conic(lines)
    return x, y, turn.T @ z


def _solve_linear(p: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve a linear program by HiGHS."""
    from scipy.optimize import linprog

    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    equal = (p.E, p.e) if len(p.e) else (None, None)
    found = linprog(p.cost, p.A, p.h, *equal, (None, None), options=options)
    if found.status != 0:
        raise SingularError(f"The linear program has no solution: {found.message}", status=found.status)
    return found.x, -found.eqlin.marginals if len(p.e) else np.zeros(0), -found.ineqlin.marginals


def _solve_conic(p: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve a cone program by Clarabel."""
    from scipy.sparse import csc_array

    clarabel = import_optional("clarabel", "solver", "Cone programs require the solver Clarabel")
    cones: list[Any] = [clarabel.ZeroConeT(len(p.e))] if len(p.e) else []
    cones += [clarabel.NonnegativeConeT(1) if n == 1 else clarabel.SecondOrderConeT(n) for n in p.sizes]
    cones += map(clarabel.PSDTriangleConeT, p.orders)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    size = len(p.cost)
    square = csc_array((size, size)) if p.square is None else csc_array(np.triu(p.square))
    rows, right = csc_array(np.concatenate([p.E, p.A])), np.concatenate([p.e, p.h])
    for tolerance in SOLVER_TOLERANCES:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        found = clarabel.DefaultSolver(square, p.cost, rows, right, cones, settings).solve()
        if found.status == clarabel.SolverStatus.Solved:
            break
    else:
        raise SingularError(f"The cone program has no solution: {found.status}.", status=str(found.status))
    y, z = np.split(np.array(found.z), [len(p.e)])
    return np.array(found.x), y, z


@dataclass(frozen=True)
class DeepestPoint:
    """The point deepest inside all cones."""

    x: np.ndarray  # (N,): the point
    margin: float  # its smallest margin, at most 1; negative if no point is inside all cones
    # (Q,), (R,): multipliers. For a negative margin they prove infeasibility: Eᵀy + Aᵀz = 0, z in the
    # cones, and y·e + z·h is the margin.
    y: np.ndarray
    z: np.ndarray


def deepest_point(p: Program, among: np.ndarray | None = None, bound: float | None = None) -> DeepestPoint:
    """Find the point with the largest margin in the cones `among` that satisfies the other cones.

    By default `among` has all cones. `bound` limits the sum of the first rows of all blocks.
    """
    first = np.zeros(len(p.h))
    first[p.starts if among is None else p.starts[among]] = 1.0
    # the last unknown is the margin t: s − t·first in the cones, t ≤ 1
    A = np.block([[p.A, first[:, None]], [np.zeros((1, len(p.cost))), np.ones((1, 1))]])
    h, sizes = np.append(p.h, 1.0), (*p.sizes, 1)
    if bound is not None:
        A = np.concatenate([A, [np.append(-p.A[p.starts].sum(axis=0), 0.0)]])
        h, sizes = np.append(h, bound - p.h[p.starts].sum()), (*sizes, 1)
    E = np.concatenate([p.E, np.zeros((len(p.e), 1))], axis=1)
    cost = np.append(np.zeros(len(p.cost)), -1.0)
    x, y, z = solve(Program(cost, E, p.e, A, h, sizes))
    at = p.exact(x[:-1])
    margins = p.margins(at)[slice(None) if among is None else among]
    return DeepestPoint(at, min(1.0, float(margins.min(initial=1.0))), y, z)


def solve_feasible(p: Program) -> np.ndarray:
    """Solve a program that has a point inside all cones; return x (N,) with nonnegative margins.

    The solution is projected onto the equalities. If rounding leaves a margin negative or too small, the
    program is solved again with tighter cones, by at most `CONE_TIGHTENING_MAX`.

    Raise `SingularError` if no solution is found.
    """
    first = np.zeros(len(p.h))
    first[p.starts] = 1.0
    more = 0.0
    while True:
        x = p.exact(solve(replace(p, h=p.h - more * first))[0])
        worst = float(p.margins(x).min(initial=np.inf))
        floor = MARGIN_RTOL * (1.0 + float(np.abs(p.h - p.A @ x).max(initial=0.0)))
        if worst >= floor:
            return x
        if more == CONE_TIGHTENING_MAX:
            break
        more = min(CONE_TIGHTENING_MAX, 4 * more + 4 * (floor - worst))
    raise SingularError(
        f"No solution satisfies all limits within rounding error: the smallest margin is {worst:.1e} of the "
        "load. Relax the limits.",
        margin=worst,
    )
