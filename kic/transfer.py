"""Transfer of generalized coordinates: coefficients of the tree's coordinates φ with respect to chosen q.

Chosen rows s(φ) = q and independent rows of the closure c(φ) = 0 are stacked into one square system w(φ).
To first order G^w A = [1; 0]; to second G^w B = −H^w(A, A); to third likewise: the matrix is the same at
every order, and the right-hand sides come from the kernels that contract with what is known so far.
Which closure rows are independent is found once for each posture, by a pivoted QR of scaled rows.
"""

from __future__ import annotations

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
    """

    def __init__(self, tree: Tree, names: tuple[str, ...], length: float, tolerance: float = 0.0) -> None:
        self.tree = tree
        self.names = names
        self.chosen = make_rows(tree, names) if names else plain_rows(tree, [])
        self.labels = self.chosen.labels
        self.length = length
        self.tolerance = tolerance
        closing, self.owners = closure_rows(tree)
        items = [*self.chosen.source, *closing]
        self.first = len(self.labels)
        picked = np.arange(self.chosen.height) if self.chosen.select is None else self.chosen.select
        closed = np.arange(len(self.owners)) + self.chosen.height
        self.picked = np.concatenate([picked, closed]).astype(np.intp)
        self.rows = replace(plain_rows(tree, items), angles=self.chosen.angles, offsets=self.chosen.offsets)
        self.scale = row_scales(tree, items, length)[self.picked]
        self.column_scale = column_scales(tree, length)
        self._questions: dict[int, RowsQuestion] = {}

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
        key = order if size is not None else 0
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
        InputError
            If the number of coordinates is not the mobility.
        SingularError
            If the coordinates can not drive the mechanism at a posture.
        """
        size, mobile, count = self.first, self.tree.size, len(states)
        G = self.first_order(states)
        scaled = G / self.scale[:, None] * self.column_scale
        use = self._rows_of_each(scaled)
        taken = np.take_along_axis(scaled, use[:, :, None], axis=1)
        condition = np.linalg.cond(taken.real) if count and mobile else np.ones(count)
        if count and not condition.max() < WORST_CONDITION:
            self._refuse(scaled[int(np.argmax(condition))], float(condition.max()))
        # [1; 0] in the units of the scaled system
        right = np.zeros((count, mobile, size), taken.dtype)
        right[:, np.arange(size), np.arange(size)] = 1 / self.scale[:size]
        A = np.linalg.solve(taken, right) * self.column_scale[:, None]
        parts = [np.zeros((count, mobile), A.dtype), A]
        self._check_dropped(G @ A, use, condition, np.abs(A).max(initial=0.0))
        for k in range(2, order + 1):
            parts.append(np.zeros((count, mobile, *(size,) * k), A.dtype))
            X = side_by_side(parts)
            question = self._question(k, size)
            known = question.split(question.table(states, X), (count,))[k][:, self.picked]
            rest = known / self.scale.reshape(-1, *(1,) * k)
            right = -np.take_along_axis(rest, use.reshape(*use.shape, *(1,) * k), axis=1)
            solved = np.linalg.solve(taken, right.reshape(count, mobile, size**k))
            parts[k] = (solved * self.column_scale[:, None]).reshape(count, mobile, *(size,) * k)
            total = known + np.einsum("bpn,bn...->bp...", G, parts[k])
            self._check_dropped(total, use, condition, np.abs(parts[k]).max(initial=0.0))
        X = side_by_side(parts)
        return Solved(np.ascontiguousarray(X), condition, size, order)

    def _rows_of_each(self, scaled: np.ndarray) -> np.ndarray:
        """Rows (B, M) of the square system: the chosen ones and independent closure rows.

        Members near one another share their choice; it is made anew where it would not do.
        """
        count, mobile = len(scaled), self.tree.size
        use = np.zeros((count, mobile), dtype=np.intp)
        chosen = np.arange(self.first)
        last: np.ndarray | None = None
        for b in range(count):
            if last is not None:
                known = scaled[b, last].real
                if np.linalg.cond(known) < 1e4:
                    use[b] = last
                    continue
            rows = np.concatenate([chosen, self.independent(scaled[b])])
            if len(rows) != mobile:
                self._wrong_number(mobile - (len(rows) - self.first))
            use[b] = last = rows
        return use

    def _wrong_number(self, mobility: int) -> None:
        name = self.tree.drawing.name
        raise InputError(
            f"'{name}' has mobility {mobility} here; {self.first} coordinates were named: "
            f"{', '.join(self.labels)}. Name {mobility}.",
            mobility=mobility,
            coordinates=self.labels,
        )

    def _check_dropped(
        self, residual: np.ndarray, use: np.ndarray, condition: np.ndarray, size: float
    ) -> None:
        """Closure rows that were left out must hold by themselves, at every order."""
        if residual.shape[1] == use.shape[1] or not len(residual):
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

    def _refuse(self, scaled: np.ndarray, condition: float) -> None:
        """These coordinates can not drive the mechanism at a posture: say which can."""
        others = self.possible(scaled)
        hint = f" Possible here: {'; '.join(others)}." if others else ""
        raise SingularError(
            f"Coordinates {', '.join(self.labels)} cannot drive '{self.tree.drawing.name}' here "
            f"(condition {condition:.0e}).{hint}",
            condition=condition,
            coordinates=self.labels,
            possible=others,
        )

    def possible(self, scaled: np.ndarray) -> list[str]:
        """Sets of tree coordinates that can drive the mechanism at one posture, best first."""
        closing = scaled[self.independent(scaled)].real
        mobility = self.tree.size - len(closing)
        if not 0 < mobility <= self.tree.size or comb(self.tree.size, mobility) > 3000:
            return []
        # null space of the closure: a set of coordinates drives it if its rows there are regular
        null = np.linalg.svd(closing)[2][len(closing) :].T if len(closing) else np.eye(self.tree.size)
        found = []
        for pick in combinations(range(self.tree.size), mobility):
            least = np.linalg.svd(null[list(pick)], compute_uv=False)[-1]
            if least > 1e-3:
                found.append((least, ", ".join(self.tree.columns[n] for n in pick)))
        return [names for _, names in sorted(found, reverse=True)[:3]]


def side_by_side(parts: list[np.ndarray]) -> np.ndarray:
    """One table (B, width) of parts (B, …)."""
    return np.concatenate([p.reshape(len(p), prod(p.shape[1:])) for p in parts], axis=1)
