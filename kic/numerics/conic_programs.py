"""Cone programs: the least cost under equalities, inequalities and second-order cones.

Without second-order cones and squares in the cost a program is linear, and SciPy's HiGHS solves it; for all
others Clarabel is needed. An answer's equalities are exact to rounding, and no margin of it is negative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.errors import SingularError
from kic.numerics.optional import import_optional

# a margin no larger than this, in a program of numbers of order one, can not be told from none
MAX_CONE_TIGHTENING = 1e-7
# margins that are computed are at least this, beside the largest number, so that rounding can not undo them
FLOOR = 1e-14
# equalities hold to this, or can not hold
EQUALITY_TOL = 1e-9
# asked of the solver, one after the other until it can
TOLERANCES = 1e-12, 1e-10, 1e-8


@dataclass(frozen=True)
class Program:
    """Least ``cost·x + x·square·x / 2`` with ``E x = e``, where each block of ``s = h − A x`` is in its cone.

    Attributes
    ----------
    cost : (N,)
    E, e : (Q, N), (Q,)
        Equalities with orthonormal rows: see `independent`.
    A, h : (R, N), (R,)
    sizes : tuple of int
        Rows of each block: one, not negative, or more, the first no smaller than the norm of the others.
    square : (N, N), optional
    """

    cost: np.ndarray
    E: np.ndarray
    e: np.ndarray
    A: np.ndarray
    h: np.ndarray
    sizes: tuple[int, ...]
    square: np.ndarray | None = None

    @property
    def starts(self) -> np.ndarray:
        """First row of each block."""
        return np.array([sum(self.sizes[:k]) for k in range(len(self.sizes))], dtype=np.intp)

    def margins(self, x: np.ndarray) -> np.ndarray:
        """How far inside its cone each block is: its first row less the norm of the others."""
        return inside(self.h - self.A @ x, self.sizes)

    def exact(self, x: np.ndarray) -> np.ndarray:
        """The nearest x whose equalities hold."""
        return x - self.E.T @ (self.E @ x - self.e)


def inside(s: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Margins of blocks in their cones."""
    blocks = np.split(s, np.cumsum(sizes)[:-1]) if sizes else []
    return np.array([b[0] - (np.linalg.norm(b[1:]) if len(b) > 1 else 0.0) for b in blocks])


def independent(E: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What of `e` no E x can be, and the rows T so that T E is orthonormal and T E x = T e says the rest."""
    if not E.size:
        return e, np.zeros((0, len(e)))
    U, sigma, _ = np.linalg.svd(E, full_matrices=False)
    kept = sigma > EQUALITY_TOL * sigma[0]
    T = U[:, kept].T / sigma[kept, None]
    return e - U[:, kept] @ (U[:, kept].T @ e), T


def solve(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answer x of a program that has one, with the multipliers y of its equalities and z of its blocks.

    They fulfil cost + square·x + Eᵀy + Aᵀz = 0, with z in the cones.

    Raises
    ------
    SingularError
        Where the solver finds no answer.
    KicError
        Where Clarabel is needed and not installed.
    """
    # a cone of two rows is two inequalities
    sizes = np.array(program.sizes, dtype=np.intp)
    pairs = program.starts[sizes == 2]
    turn = np.eye(len(program.h))
    turn[pairs, pairs + 1], turn[pairs + 1, pairs], turn[pairs + 1, pairs + 1] = 1.0, 1.0, -1.0
    flat = np.repeat(np.where(sizes == 2, 1, sizes), np.where(sizes == 2, 2, 1))
    lines = replace(program, A=turn @ program.A, h=turn @ program.h, sizes=tuple(flat.tolist()))
    simple = program.square is None and flat.max(initial=1) == 1
    x, y, z = _linear(lines) if simple else _conic(lines)
    return x, y, turn.T @ z


def _linear(p: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By HiGHS."""
    from scipy.optimize import linprog

    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    equal = (p.E, p.e) if len(p.e) else (None, None)
    found = linprog(p.cost, p.A, p.h, *equal, (None, None), options=options)
    if found.status != 0:
        raise SingularError(f"The linear program found no answer: {found.message}", status=found.status)
    return found.x, -found.eqlin.marginals if len(p.e) else np.zeros(0), -found.ineqlin.marginals


def _conic(p: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By Clarabel."""
    from scipy.sparse import csc_array

    clarabel = solver()
    cones: list[Any] = [clarabel.ZeroConeT(len(p.e))] if len(p.e) else []
    cones += [clarabel.NonnegativeConeT(1) if n == 1 else clarabel.SecondOrderConeT(n) for n in p.sizes]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    size = len(p.cost)
    square = csc_array((size, size)) if p.square is None else csc_array(np.triu(p.square))
    rows, right = csc_array(np.concatenate([p.E, p.A])), np.concatenate([p.e, p.h])
    for tolerance in TOLERANCES:
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        found = clarabel.DefaultSolver(square, p.cost, rows, right, cones, settings).solve()
        if found.status == clarabel.SolverStatus.Solved:
            break
    else:
        raise SingularError(f"The cone program found no answer: {found.status}.", status=str(found.status))
    y, z = np.split(np.array(found.z), [len(p.e)])
    return np.array(found.x), y, z


def solver() -> Any:
    """Clarabel, or what to install."""
    return import_optional(
        "clarabel", "solver", "Friction cones in space and least squares need the solver Clarabel"
    )


@dataclass(frozen=True)
class Centre:
    """The point that is deepest inside all cones.

    Attributes
    ----------
    x : (N,)
    margin : float
        The smallest margin there, at most 1; negative where no point is in all cones.
    y, z : (Q,), (R,)
        Multipliers. Where the margin is negative they prove that no point is: Eᵀy + Aᵀz = 0, z in the cones,
        and y·e + z·h is the margin.
    """

    x: np.ndarray
    margin: float
    y: np.ndarray
    z: np.ndarray


def centre(p: Program, among: np.ndarray | None = None, bound: float | None = None) -> Centre:
    """Point deepest in the cones `among` (all by default), and not outside the others.

    `bound` is the largest sum of the first rows.
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
    margins = p.margins(at)
    return Centre(
        at, min(1.0, float(margins[slice(None) if among is None else among].min(initial=1.0))), y, z
    )


def best(p: Program) -> np.ndarray:
    """Answer (N,) of a program with a point inside all cones, none of whose margins is negative.

    The solver's answer is made exact in the equalities. Where rounding leaves a margin negative, or too small
    to be sure, the program is asked for a little more margin, `BRINK` at most, until all are.

    Raises
    ------
    SingularError
        Where no such answer is found.
    """
    first = np.zeros(len(p.h))
    first[p.starts] = 1.0
    more = 0.0
    while True:
        x = p.exact(solve(replace(p, h=p.h - more * first))[0])
        worst = float(p.margins(x).min(initial=np.inf))
        floor = FLOOR * (1.0 + float(np.abs(p.h - p.A @ x).max(initial=0.0)))
        if worst >= floor:
            return x
        if more == MAX_CONE_TIGHTENING:
            break
        more = min(MAX_CONE_TIGHTENING, 4 * more + 4 * (floor - worst))
    raise SingularError(
        f"The solver's answer leaves its limits by {-worst:.1e} of the load, which is more than rounding.",
        margin=worst,
    )
