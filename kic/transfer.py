"""Transfer of generalized coordinates: coefficients of the tree's coordinates φ with respect to chosen q.

Chosen rows s(φ) = q and independent rows of the closure c(φ) = 0 are stacked into one square system w(φ).
To first order G^w A = [1; 0]; to second G^w B = −H^w(A, A); to third likewise: the matrix is the same at
every order, and the right-hand sides come from the kernels that contract with what is known so far.
Which closure rows are independent is found once for each posture, by a pivoted QR of scaled rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb, prod

import numpy as np

from kic.cuts import closure_items
from kic.errors import InputError, SingularError
from kic.items import DISTANCE, POINT, REACH, UNIT, Item
from kic.kinematics import RowsQuestion
from kic.rows import make_rows, plain_rows
from kic.tree import PRISMATIC, Tree

# a pivot below this share of the largest is no row of its own: closed postures are known to about 1e-13
RANK_SHARE = 1e-9
# a system worse than this has lost too many digits to be called an answer
WORST_CONDITION = 1e12
# share of an answer that may be lost to a closure that is nearly singular in itself
DIGITS_LOST = 1e-4
_EPS = float(np.finfo(float).eps)


def closure_rows(tree: Tree) -> tuple[list[Item], list[str]]:
    """Items of all cut joints, with the joint that each row belongs to."""
    items: list[Item] = []
    owners: list[str] = []
    for joint in tree.cuts:
        made = closure_items(tree, joint)
        items += made
        owners += [joint.name] * sum(item.height for item in made)
    return items, owners


def row_scales(tree: Tree, items: list[Item], length: float) -> np.ndarray:
    """What each row is divided by: the characteristic length for lengths, 1 for the others."""
    scales: list[float] = []
    for item in items:
        is_length = item.kind in (POINT, DISTANCE, REACH) or (
            item.kind == UNIT and tree.cols[item.frame_b, 1] == PRISMATIC
        )
        scales += [length if is_length else 1.0] * item.height
    return np.array(scales)


def column_scales(tree: Tree, length: float) -> np.ndarray:
    """What each coordinate of the tree is multiplied by: the characteristic length for sliders."""
    return np.where(tree.cols[:, 1] == PRISMATIC, length, 1.0)


@dataclass(frozen=True)
class Solved:
    """Coefficients of φ with respect to q at a batch of postures.

    Attributes
    ----------
    X : (B, M (1 + m + m² + …))
        Table of the tree's coordinates: zeros for the values, then A, B, C as far as asked.
    condition : (B,)
        Condition of the scaled system.
    """

    X: np.ndarray
    condition: np.ndarray
    size: int
    order: int


class Transfer:
    """From a tree to the coordinates of some names, for any posture of the mechanism.

    Parameters
    ----------
    tree : Tree
        The spanning tree.
    names : tuple of str
        Rows that are the coordinates: joints, points, body motion, distances, or single rows of them.
    length : float
        Characteristic length of the mechanism.
    tolerance : float
        Relative length within which a redundant closure row may contradict the others.
    held : list of Item
        Further chosen rows, without names: those of bodies whose pose is given.
    """

    def __init__(
        self,
        tree: Tree,
        names: tuple[str, ...],
        length: float,
        tolerance: float = 0.0,
        held: Sequence[Item] = (),
    ) -> None:
        self.tree = tree
        self.names = names
        self.chosen = make_rows(tree, names) if names else plain_rows(tree, [])
        self.labels = self.chosen.labels
        self.length = length
        self.tolerance = tolerance
        closing, self.owners = closure_rows(tree)
        items = [*self.chosen.source, *held, *closing]
        more = sum(item.height for item in held)
        self.first = len(self.labels) + more
        picked = np.arange(self.chosen.height) if self.chosen.select is None else self.chosen.select
        closed = np.arange(more + len(self.owners)) + self.chosen.height
        self.picked = np.concatenate([picked, closed]).astype(np.intp)
        self.rows = replace(plain_rows(tree, items), angles=self.chosen.angles, offsets=self.chosen.offsets)
        self.scale = row_scales(tree, items, length)[self.picked]
        self.column_scale = column_scales(tree, length)
        self._questions: dict[tuple[int, int | None], RowsQuestion] = {}

    @cached_property
    def holonomic(self) -> bool:
        """Whether every chosen coordinate has a value."""
        return self.chosen.holonomic and not any(
            item.kind == UNIT and self.tree.cols[item.frame_b, 1] > PRISMATIC for item in self.chosen.source
        )

    def first_order(self, states: np.ndarray) -> np.ndarray:
        """G^w of the chosen rows and then all closure rows, (B, P, M), unscaled."""
        question = self._question(1, None)
        G = question.split(question.table(states), (len(states),))[1]
        return G[:, self.picked]

    def _question(self, order: int, size: int | None) -> RowsQuestion:
        key = order, size
        found = self._questions.get(key)
        if found is None:
            found = self._questions[key] = RowsQuestion(self.tree, self.rows, order, size)
        return found

    def rank(self, states: np.ndarray) -> int:
        """Number of independent closure rows at one posture (1, S)."""
        if not self.owners:
            return 0
        return len(self.independent((self.first_order(states) / self.scale[:, None] * self.column_scale)[0]))

    def independent(self, G: np.ndarray) -> np.ndarray:
        """Closure rows that are independent at one posture, from scaled G (P, M)."""
        closing = G[self.first :].real
        if not len(closing):
            return np.empty(0, dtype=np.intp)
        from scipy.linalg import qr

        R, pivot = qr(closing.T, mode="r", pivoting=True)
        diagonal = np.abs(np.diag(R))
        share = max(RANK_SHARE, self.tolerance)
        rank = int((diagonal > share * diagonal[0]).sum()) if diagonal.size and diagonal[0] > 0 else 0
        return np.sort(pivot[:rank]) + self.first

    def first_part(self, X: np.ndarray) -> np.ndarray:
        """A (B, M, m) of a table of the tree's coordinates."""
        mobile = self.tree.size
        return X[:, mobile : mobile * (1 + self.first)].reshape(-1, mobile, self.first)

    def solve(self, states: np.ndarray, order: int) -> Solved:
        """A, B, C at states (B, S).

        Raises
        ------
        SingularError
            If the coordinates can not drive the mechanism at a posture, or its loops are singular there.
        """
        size, mobile, count = self.first, self.tree.size, len(states)
        if states.dtype.kind == "O":
            raise InputError(
                "Symbols are answered in the coordinates of an open chain itself; a transfer to others "
                "chooses rows by their size and needs numbers. Put numbers in first."
            )
        G = self.first_order(states)
        if not np.isfinite(G).all():
            raise InputError(
                f"Coordinates {', '.join(self.labels)} have no derivatives here: a distance of them is zero.",
                coordinates=self.labels,
            )
        scaled = G / self.scale[:, None] * self.column_scale
        use = self._rows_of_each(scaled)
        taken = np.take_along_axis(scaled, use[:, :, None], axis=1)
        condition = np.linalg.cond(taken.real) if count and mobile else np.ones(count)
        if count and not condition.max() < WORST_CONDITION:
            self._refuse(scaled, condition)
        if size < mobile and count:
            self._check_bifurcation(np.linalg.cond(taken[:, size:].real), order)
        # [1; 0] in the units of the scaled system
        right = np.zeros((count, mobile, size), taken.dtype)
        right[:, np.arange(size), np.arange(size)] = 1 / self.scale[:size]
        A = np.linalg.solve(taken, right) * self.column_scale[:, None]
        parts = [np.zeros((count, mobile), A.dtype), A]
        dropped = len(self.owners) > mobile - size
        if dropped:
            self._check_dropped(G @ A, condition, np.abs(A).max(initial=0.0))
        for k in range(2, order + 1):
            parts.append(np.zeros((count, mobile, *(size,) * k), A.dtype))
            X = side_by_side(parts)
            question = self._question(k, size)
            known = question.split(question.table(states, X), (count,))[k][:, self.picked]
            rest = known / self.scale.reshape(-1, *(1,) * k)
            right = -np.take_along_axis(rest, use.reshape(*use.shape, *(1,) * k), axis=1)
            solved = np.linalg.solve(taken, right.reshape(count, mobile, size**k))
            parts[k] = (solved * self.column_scale[:, None]).reshape(count, mobile, *(size,) * k)
            if dropped:
                flat = parts[k].reshape(count, mobile, size**k)
                total = known + (G @ flat).reshape(known.shape)
                self._check_dropped(total, condition, np.abs(flat).max(initial=0.0))
        X = side_by_side(parts)
        return Solved(np.ascontiguousarray(X), condition, size, order)

    def _rows_of_each(self, scaled: np.ndarray) -> np.ndarray:
        """Rows (B, M) of the square system: the chosen ones and independent closure rows.

        Members share the choice of the first; it is made anew where that would not do.
        """
        count, mobile = len(scaled), self.tree.size
        use = np.zeros((count, mobile), dtype=np.intp)
        if not count:
            return use
        use[:] = self._choice(scaled[0])
        if count > 1 and self.owners:
            for b in np.flatnonzero(~(np.linalg.cond(scaled[:, use[0]].real) < 1e4)):
                use[b] = self._choice(scaled[b])
        return use

    def _choice(self, scaled: np.ndarray) -> np.ndarray:
        """Rows of the square system at one posture."""
        rows = np.concatenate([np.arange(self.first), self.independent(scaled)])
        if len(rows) != self.tree.size:
            freedoms = self.tree.size - (len(rows) - self.first)
            raise SingularError(
                f"Closure conditions of '{self.tree.drawing.name}' depend on one another at this posture: it "
                f"has {freedoms} freedoms here, and {self.first} coordinates were named: "
                f"{', '.join(self.labels)}. Move off this posture, where several motions meet.",
                freedoms=freedoms,
                coordinates=self.labels,
            )
        return rows

    def _check_bifurcation(self, condition: np.ndarray, order: int) -> None:
        """Each order loses the digits of the closure rows' own condition once more."""
        lost = _EPS * condition**order
        if lost.max() > DIGITS_LOST:
            b = int(np.argmax(lost))
            raise SingularError(
                f"Loops of '{self.tree.drawing.name}' are nearly singular here (condition {condition[b]:.0e} "
                f"of the closure alone): order {order} would be wrong by {lost[b]:.0e} of itself. Move off "
                "this posture, where several motions meet, or ask for a lower order.",
                condition=float(condition[b]),
                failed=np.flatnonzero(lost > DIGITS_LOST).tolist(),
            )

    def _check_dropped(self, residual: np.ndarray, condition: np.ndarray, size: float) -> None:
        """Closure rows that were left out must hold by themselves, at every order."""
        if not len(residual):
            return
        left = np.abs(
            residual[:, self.first :] / self.scale[self.first :].reshape(-1, *(1,) * (residual.ndim - 2))
        )
        worst = left.max(axis=tuple(range(1, left.ndim)))
        allowed = max(size / self.length, size, 1.0) * (1e3 * _EPS * condition + 10 * self.tolerance)
        bad = np.flatnonzero(worst > np.maximum(allowed, 1e-9))
        if bad.size:
            b = int(bad[0])
            raise SingularError(
                f"Loops of '{self.tree.drawing.name}' contradict each other here: closure rows that should "
                f"follow from the others miss by {worst[b]:.1e} (condition {condition[b]:.1e}). Mend the "
                "dimensions, or give closure_tolerance if they are rounded.",
                residual=float(worst[b]),
                condition=float(condition[b]),
            )

    def _refuse(self, scaled: np.ndarray, condition: np.ndarray) -> None:
        """These coordinates can not drive the mechanism at a posture: say which can."""
        failed = np.flatnonzero(~(condition < WORST_CONDITION))
        worst = int(failed[0])
        others = self.possible(scaled[worst])
        hint = f" Possible here: {'; '.join(others)}." if others else ""
        which = (
            f" (members {', '.join(map(str, failed[:4]))} of {len(condition)})" if len(condition) > 1 else ""
        )
        raise SingularError(
            f"Coordinates {', '.join(self.labels)} cannot drive '{self.tree.drawing.name}' here{which} "
            f"(condition {condition[worst]:.0e}).{hint}",
            condition=float(condition[worst]),
            coordinates=self.labels,
            possible=others,
            failed=failed.tolist(),
        )

    def possible(self, scaled: np.ndarray) -> list[str]:
        """Sets of tree coordinates that can drive the mechanism at one posture, best first."""
        closing = scaled[self.independent(scaled)].real
        mobility = self.tree.size - len(closing)
        if not 0 < mobility <= self.tree.size:
            return []
        # null space of the closure: a set of coordinates drives it if its rows there are regular
        null = np.linalg.svd(closing)[2][len(closing) :].T if len(closing) else np.eye(self.tree.size)
        if comb(self.tree.size, mobility) > 3000:
            from scipy.linalg import qr

            best = np.sort(qr(null.T, mode="r", pivoting=True)[1][:mobility])
            return [", ".join(self.tree.columns[n] for n in best)]
        found = []
        for pick in combinations(range(self.tree.size), mobility):
            least = np.linalg.svd(null[list(pick)], compute_uv=False)[-1]
            if least > 1e-3:
                found.append((least, ", ".join(self.tree.columns[n] for n in pick)))
        return [names for _, names in sorted(found, reverse=True)[:3]]


def side_by_side(parts: list[np.ndarray]) -> np.ndarray:
    """One table (B, width) of parts (B, …)."""
    return np.concatenate([p.reshape(len(p), prod(p.shape[1:])) for p in parts], axis=1)
