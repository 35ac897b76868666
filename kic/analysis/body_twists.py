"""Bodies one by one: how each moves with a closed mechanism, and what the joints between them hold.

Nothing here depends on where the loops were cut: every joint ties two bodies, each with a velocity of its
own, and holds some of what these two could do to one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kic.description.validation import GROUND
from kic.kernels.layout import DIRECTION, OMEGA, POINT
from kic.kinematics.closure_rows import closure_items, distance_item
from kic.kinematics.items import Item
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import OutputQuery
from kic.kinematics.state import columns_to_states
from kic.kinematics.tree import Tree
from kic.numerics.rotations import vector_from_matrix
from kic.transfer.closure import Closure
from kic.transfer.constraint_system import column_scales, row_scales
from kic.transfer.free_bodies import cut_everywhere, freedom_items, spot
from kic.transfer.rank import RANK_SHARE

# what moves less than this beside the rest of its motion is at rest
REST = 1e-7


class BodyTwists:
    """All bodies of a mechanism, and what ties them; those that fixed joints weld together are one unit.

    Ground is unit 0.
    """

    def __init__(self, closure: Closure) -> None:
        drawing, t = closure.transfer.tree.description, closure.transfer
        self.closure, self.drawing, self.length = closure, drawing, t.length
        self.names = tuple(body.name for body in drawing.bodies)
        joints = drawing.joints
        unit = {name: k for k, name in enumerate((GROUND, *self.names))}
        for a, b in (joint.bodies for joint in joints if joint.type == "fixed"):
            old, new = sorted((unit[a], unit[b]))[::-1]
            unit = {name: new if u == old else u for name, u in unit.items()}
        order = sorted(set(unit.values()))
        unit = {name: order.index(u) for name, u in unit.items()}
        self.count = len(order)
        self.unit = np.array([unit[name] for name in self.names], dtype=np.intp)
        self.rods = [distance for distance in drawing.distances if distance.fixed]
        # what holds two units: joints, and then fixed distances
        carrier = {point.name: unit[point.body] for point in drawing.points}
        ends = [[unit[b] for b in joint.bodies] for joint in joints]
        ends += [[carrier[p] for p in rod.points] for rod in self.rods]
        self.ends = np.array(ends, dtype=np.intp).reshape(-1, 2)
        self.holds = np.array([j.type not in ("free", "fixed") for j in joints] + [True] * len(self.rods))
        self.freedoms = tuple(c for joint in joints for c in joint.components)
        self.owner = np.repeat(np.arange(len(joints)), [joint.dof for joint in joints])
        self.couplings = np.zeros((len(drawing.couplings), len(self.freedoms)))
        for k, coupling in enumerate(drawing.couplings):
            for name, ratio in drawing.terms[coupling.name]:
                self.couplings[k, self.freedoms.index(name)] = ratio
        self._make_questions(t.tree)

    def _make_questions(self, chain: Tree) -> None:
        free = self._free = Tree(cut_everywhere(self.drawing))
        frames = [chain.frame[name] for name in self.names]
        self.drawn = np.array([spot(body) for body in self.drawing.bodies]).reshape(-1, 3)
        items = [
            Item(POINT, f, local_b=tuple(chain.local_point(f, at)))
            for f, at in zip(frames, self.drawn, strict=True)
        ]
        items += [
            Item(DIRECTION, f, local_b=tuple(chain.local_vector(f, e))) for f in frames for e in np.eye(3)
        ]
        items += [Item(OMEGA, f) for f in frames]
        self._moving = OutputQuery(chain, plain_rows(chain, items), 1)
        last = np.array([free.frame[name] for name in self.names])
        self._columns = (last[:, None] + np.arange(-5, 1)).ravel()
        self.scale = column_scales(free, self.length)[self._columns]
        held = [closure_items(free, joint) for joint in self.drawing.joints]
        held += [[distance_item(free, rod)] for rod in self.rods]
        self._held, self._held_scale = self._rows(held)
        self.held_by = np.repeat(np.arange(len(held)), [sum(item.height for item in one) for one in held])
        self._left, self._left_scale = self._rows([freedom_items(free, j) for j in self.drawing.joints])

    def _rows(self, made: list[list[Item]]) -> tuple[OutputQuery, np.ndarray]:
        """Rows of the free bodies, and what they are divided by."""
        items = [item for of_joint in made for item in of_joint]
        question = OutputQuery(self._free, plain_rows(self._free, items), 1)
        return question, row_scales(self._free, items, self.length)

    def beside(self, group: frozenset[int]) -> set[int]:
        """Units that joints, fixed distances or couplings tie to a group; not ground."""
        near = set(self.ends[self.holds & self.touched(group)].ravel().tolist())
        on = self.touched(group)[self.owner]
        for row in self.couplings != 0:
            if (row & on).any():
                near |= set(self.ends[self.owner[row]].ravel().tolist())
        return near - group - {0}

    def touched(self, group: frozenset[int]) -> np.ndarray:
        """Which joints and fixed distances have an end in a group."""
        return np.logical_or(*np.isin(self.ends, list(group)).T)

    def holders(self, group: frozenset[int]) -> set[int]:
        """Units that hold a group from outside."""
        return set(self.ends[self.holds & self.touched(group)].ravel().tolist()) - group

    def view(self, state: np.ndarray, slack: float = 10.0) -> TwistBasis:
        """The motions at a closed state (1, S), and all that they move.

        Of rounded dimensions conditions count as redundant within so many times the tolerance.
        """
        t, n = self.closure.transfer, len(self.names)
        values, G = (x[0] for x in self._moving.layout.split(self._moving.table(state), (1,)))
        rows = values.reshape(-1, 3)
        turned = np.swapaxes(rows[n : 4 * n].reshape(n, 3, 3), 1, 2)
        six = np.concatenate([rows[:n] - self.drawn, vector_from_matrix(turned)], axis=1)
        phi = np.empty((1, self._free.size))
        phi[:, self._columns] = six.ravel()
        free = columns_to_states(self._free, phi)
        held, left = (
            q.layout.split(q.table(free), (1,))[1][0][:, self._columns] * self.scale / scale[:, None]
            for q, scale in ((self._held, self._held_scale), (self._left, self._left_scale))
        )
        N = null(self.closure.rows(state)[1][0], max(RANK_SHARE, slack * t.tolerance))
        G = (G * t.column_scale) @ N
        moves = np.concatenate([G[: 3 * n].reshape(n, 3, -1), G[12 * n :].reshape(n, 3, -1)], axis=1)
        X = moves.reshape(6 * n, -1) / self.scale[:, None]
        # motions of which the joints' rates are orthonormal
        U, sigma, V = np.linalg.svd(left @ X, full_matrices=False)
        back = V.T / sigma
        return TwistBasis(self, state, N @ back, X @ back, U, held, left, rows[:n], turned)


@dataclass(frozen=True, eq=False)
class TwistBasis:
    """One posture: f independent motions, N (M, f) of the tree, X (6 B, f) of B bodies, R (F, f) of joints.

    Velocities are shares of the characteristic length. What joints hold, and the rates of their freedoms, are
    rows (…, 6 B) on the velocities of free bodies; `places` and `turned` are where these are.
    """

    bodies: BodyTwists
    state: np.ndarray
    N: np.ndarray
    X: np.ndarray
    R: np.ndarray
    held: np.ndarray
    left: np.ndarray
    places: np.ndarray
    turned: np.ndarray

    @cached_property
    def _squares(self) -> np.ndarray:
        """XᵀX of each unit (U, f, f)."""
        f = self.X.shape[1]
        squares = np.zeros((self.bodies.count, f, f))
        np.add.at(squares, self.bodies.unit, np.einsum("bif,big->bfg", *[self.X.reshape(-1, 6, f)] * 2))
        return squares

    def _squares_of_others(self, groups: list[frozenset[int]]) -> np.ndarray:
        """XᵀX (n, f, f) of all units but those of groups."""
        inside = np.array([[u in group for u in range(self.bodies.count)] for group in groups], dtype=float)
        return self._squares[1:].sum(axis=0) - np.tensordot(inside, self._squares, axes=1)

    def may_move(self, groups: list[frozenset[int]]) -> np.ndarray:
        """Which groups may have a motion that leaves all others at rest: a quick look at many."""
        return np.linalg.eigvalsh(self._squares_of_others(groups))[:, 0] < self.share

    def of(self, group: frozenset[int]) -> np.ndarray:
        """Motions (f, k) that leave all but a group at rest."""
        # squares tell few directions that could be such, of a large mechanism much faster
        values, vectors = np.linalg.eigh(self._squares_of_others([group])[0])
        few = vectors[:, values < self.share]
        others = ~np.isin(self.bodies.unit, list(group))
        return few @ null(self.X[np.repeat(others, 6)] @ few, self.share, 1.0)

    def moving(self, motions: np.ndarray) -> np.ndarray:
        """Which freedoms of joints (F,) take part in motions (f, k)."""
        return np.abs(self.R @ motions).max(axis=1, initial=0.0) > REST

    @property
    def share(self) -> float:
        """What is less than this, beside the whole of a motion, is nothing."""
        return max(REST, 10 * self.bodies.closure.transfer.tolerance)

    def twists(self, x: np.ndarray) -> np.ndarray:
        """Velocities at the mean place of all bodies, and turnings, (B, 6), of a motion (f,)."""
        twist = (self.X @ x).reshape(-1, 6)
        arm = (self.places.mean(axis=0) - self.places) / self.bodies.length
        return np.concatenate([twist[:, :3] + np.cross(twist[:, 3:], arm), twist[:, 3:]], axis=1)

    def rigid(self, group: frozenset[int], x: np.ndarray) -> bool:
        """Whether a group moves as one piece."""
        twist = self.twists(x)[np.isin(self.bodies.unit, list(group))]
        return bool(np.ptp(twist, axis=0).max() < self.share)

    def tied(self, group: frozenset[int], moving: np.ndarray) -> bool:
        """Whether a group takes freedoms from the others, and does so by each of its bodies.

        Joints of the group are locked if none of their freedoms is `moving` (F,).
        """
        b = self.bodies
        working = np.zeros(len(b.ends), dtype=bool)
        working[b.owner[moving]] = True
        locked = b.touched(group)[b.owner] & ~working[b.owner]
        free = self._freedoms_beside(group, frozenset(), locked)
        return self._freedoms_beside(group, group, locked) < free and all(
            self._freedoms_beside(group, group - {one}, locked) == free for one in group
        )

    def _freedoms_beside(self, group: frozenset[int], kept: frozenset[int], locked: np.ndarray) -> int:
        """Freedoms of the others where a group is taken out but for those kept, some freedoms locked."""
        b = self.bodies
        gone = b.touched(group - kept)
        coupled = b.couplings @ self.left
        size = np.abs(coupled).max(axis=1, initial=0.0)[:, None]
        coupled = np.divide(coupled, size, out=np.zeros_like(coupled), where=size > 0)
        couples = ~((b.couplings != 0) & gone[b.owner]).any(axis=1)
        rows = [self.held[~gone[b.held_by]], coupled[couples], self.left[locked & ~gone[b.owner]]]
        there = np.repeat(~np.isin(b.unit, list(group - kept)), 6)
        motions = null(np.concatenate(rows)[:, there], self.share)
        others = motions[np.repeat(~np.isin(b.unit, list(group)), 6)[there]]
        return int((np.linalg.svd(others, compute_uv=False) > self.share).sum()) if others.size else 0


def null(G: np.ndarray, share: float, largest: float | None = None) -> np.ndarray:
    """Orthonormal null space (M, k) of rows (P, M): singular values below a share of the largest.

    Where the largest is rounding itself, all of them are.
    """
    if not G.size:
        return np.eye(G.shape[1])
    _, sigma, V = np.linalg.svd(G, full_matrices=len(G) < G.shape[1])
    largest = sigma[0] if largest is None else largest
    return V[int((sigma > max(share * largest, RANK_SHARE)).sum()) :].T
