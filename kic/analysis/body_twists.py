"""Twists of all bodies of a closed mechanism, and the constraints between them.

Nothing here depends on the cut joints: every joint connects two bodies, each with a velocity of its own, and
constrains their relative motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kic.description.validation import GROUND
from kic.kernels.layout import DIRECTION, OMEGA, POINT
from kic.kinematics.closure_rows import closure_items, distance_item
from kic.kinematics.items import Item, heights
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import OutputQuery
from kic.kinematics.state import columns_to_states
from kic.kinematics.tree import Tree
from kic.numerics.rotations import vector_from_matrix
from kic.transfer.closure import Closure
from kic.transfer.constraint_system import column_scales, row_scales
from kic.transfer.free_bodies import cut_everywhere, joint_motion_items, spot
from kic.transfer.rank import RANK_SHARE

# rates below this share of the largest rate of a motion count as zero
REST_RTOL = 1e-7


class BodyTwists:
    """Bodies of a mechanism and the constraints between them; bodies welded by fixed joints form one unit.

    Ground is unit 0.
    """

    def __init__(self, closure: Closure) -> None:
        description, t = closure.transfer.tree.description, closure.transfer
        self.closure, self.description, self.length = closure, description, t.length
        self.names = tuple(body.name for body in description.bodies)
        joints = description.joints
        unit = {name: k for k, name in enumerate((GROUND, *self.names))}
        for a, b in (joint.bodies for joint in joints if joint.type == "fixed"):
            old, new = sorted((unit[a], unit[b]))[::-1]
            unit = {name: new if u == old else u for name, u in unit.items()}
        order = sorted(set(unit.values()))
        unit = {name: order.index(u) for name, u in unit.items()}
        self.count = len(order)
        self.unit = np.array([unit[name] for name in self.names], dtype=np.intp)
        self.rods = [distance for distance in description.distances if distance.fixed]
        # units connected by each joint, and then by each fixed distance
        carrier = {point.name: unit[point.body] for point in description.points}
        ends = [[unit[b] for b in joint.bodies] for joint in joints]
        ends += [[carrier[p] for p in rod.points] for rod in self.rods]
        self.ends = np.array(ends, dtype=np.intp).reshape(-1, 2)
        self.holds = np.array([j.type not in ("free", "fixed") for j in joints] + [True] * len(self.rods))
        self.coordinates = tuple(c for joint in joints for c in joint.components)
        self.owner = np.repeat(np.arange(len(joints)), [joint.dof for joint in joints])
        self.couplings = np.zeros((len(description.couplings), len(self.coordinates)))
        for k, coupling in enumerate(description.couplings):
            for name, ratio in description.terms[coupling.name]:
                self.couplings[k, self.coordinates.index(name)] = ratio
        self._make_queries(t.tree)

    def _make_queries(self, tree: Tree) -> None:
        free = self._free = Tree(cut_everywhere(self.description))
        frames = [tree.frame[name] for name in self.names]
        self.reference_points = np.array([spot(body) for body in self.description.bodies]).reshape(-1, 3)
        items = [
            Item(POINT, f, local_b=tuple(tree.local_point(f, at)))
            for f, at in zip(frames, self.reference_points, strict=True)
        ]
        items += [
            Item(DIRECTION, f, local_b=tuple(tree.local_vector(f, e))) for f in frames for e in np.eye(3)
        ]
        items += [Item(OMEGA, f) for f in frames]
        self._body_motion = OutputQuery(tree, plain_rows(tree, items), 1)
        last = np.array([free.frame[name] for name in self.names])
        self._columns = (last[:, None] + np.arange(-5, 1)).ravel()
        self.scale = column_scales(free, self.length)[self._columns]
        held = [closure_items(free, joint) for joint in self.description.joints]
        held += [[distance_item(free, rod)] for rod in self.rods]
        self._constraints, self._constraint_scale = self._rows(held)
        counts = [sum(heights(one)) for one in held]
        self.constraint_owner = np.repeat(np.arange(len(held)), counts)
        of_coordinates = [joint_motion_items(free, joint) for joint in self.description.joints]
        self._coordinate_rates, self._coordinate_scale = self._rows(of_coordinates)

    def _rows(self, made: list[list[Item]]) -> tuple[OutputQuery, np.ndarray]:
        """Return the query for rows on the free bodies, and their scales."""
        items = [item for of_joint in made for item in of_joint]
        question = OutputQuery(self._free, plain_rows(self._free, items), 1)
        return question, row_scales(self._free, items, self.length)

    def adjacent_units(self, group: frozenset[int]) -> set[int]:
        """Return the units that joints, fixed distances or couplings connect to a group, without ground."""
        near = set(self.ends[self.holds & self.touching(group)].ravel().tolist())
        on = self.touching(group)[self.owner]
        for row in self.couplings != 0:
            if (row & on).any():
                near |= set(self.ends[self.owner[row]].ravel().tolist())
        return near - group - {0}

    def touching(self, group: frozenset[int]) -> np.ndarray:
        """Return a mask of the joints and fixed distances with an end in a group."""
        return np.logical_or(*np.isin(self.ends, list(group)).T)

    def holders(self, group: frozenset[int]) -> set[int]:
        """Return the units outside a group that hold it."""
        return set(self.ends[self.holds & self.touching(group)].ravel().tolist()) - group

    def basis_at(self, state: np.ndarray, tolerance_factor: float = 10.0) -> TwistBasis:
        """Return the motions at a closed state (1, S).

        Conditions count as redundant within `tolerance_factor` times the closure tolerance.
        """
        t, n = self.closure.transfer, len(self.names)
        values, G = (x[0] for x in self._body_motion.layout.split(self._body_motion.table(state), (1,)))
        rows = values.reshape(-1, 3)
        rotations = np.swapaxes(rows[n : 4 * n].reshape(n, 3, 3), 1, 2)
        six = np.concatenate([rows[:n] - self.reference_points, vector_from_matrix(rotations)], axis=1)
        phi = np.empty((1, self._free.size))
        phi[:, self._columns] = six.ravel()
        free = columns_to_states(self._free, phi)
        constraints, rates = (
            q.layout.split(q.table(free), (1,))[1][0][:, self._columns] * self.scale / scale[:, None]
            for q, scale in (
                (self._constraints, self._constraint_scale),
                (self._coordinate_rates, self._coordinate_scale),
            )
        )
        N = null_space(self.closure.rows(state)[1][0], max(RANK_SHARE, tolerance_factor * t.tolerance))
        G = (G * t.column_scale) @ N
        moves = np.concatenate([G[: 3 * n].reshape(n, 3, -1), G[12 * n :].reshape(n, 3, -1)], axis=1)
        X = moves.reshape(6 * n, -1) / self.scale[:, None]
        # choose motions whose joint rates are orthonormal
        U, sigma, V = np.linalg.svd(rates @ X, full_matrices=False)
        back = V.T / sigma
        return TwistBasis(self, state, N @ back, X @ back, U, constraints, rates, rows[:n], rotations)


@dataclass(frozen=True, eq=False)
class TwistBasis:
    """Basis of the f independent motions at one configuration.

    Velocities are in units of the characteristic length.
    """

    bodies: BodyTwists
    state: np.ndarray
    N: np.ndarray  # (M, f): rates of the tree's coordinates
    X: np.ndarray  # (6 B, f): twists of the B bodies
    R: np.ndarray  # (F, f): rates of the F joint coordinates, orthonormal
    # (…, 6 B): constraints of the joints, and rates of their coordinates, as rows on the twists of free
    # bodies
    constraints: np.ndarray
    coordinate_rates: np.ndarray
    # (B, 3), (B, 3, 3): position of the bodies' points, and rotation from the reference configuration
    origins: np.ndarray
    rotations: np.ndarray

    @cached_property
    def _squares(self) -> np.ndarray:
        """XᵀX of each unit (U, f, f)."""
        f = self.X.shape[1]
        squares = np.zeros((self.bodies.count, f, f))
        np.add.at(squares, self.bodies.unit, np.einsum("bif,big->bfg", *[self.X.reshape(-1, 6, f)] * 2))
        return squares

    def _squares_of_others(self, groups: list[frozenset[int]]) -> np.ndarray:
        """Return XᵀX (n, f, f) of all units outside each group."""
        inside = np.array([[u in group for u in range(self.bodies.count)] for group in groups], dtype=float)
        return self._squares[1:].sum(axis=0) - np.tensordot(inside, self._squares, axes=1)

    def may_move(self, groups: list[frozenset[int]]) -> np.ndarray:
        """Return a mask of the groups that may have a motion that leaves all others at rest."""
        return np.linalg.eigvalsh(self._squares_of_others(groups))[:, 0] < self.rtol

    def motions_of(self, group: frozenset[int]) -> np.ndarray:
        """Return the motions (f, k) that leave all units outside a group at rest."""
        # the squares select few candidate directions, which is much faster for large mechanisms
        values, vectors = np.linalg.eigh(self._squares_of_others([group])[0])
        few = vectors[:, values < self.rtol]
        others = ~np.isin(self.bodies.unit, list(group))
        return few @ null_space(self.X[np.repeat(others, 6)] @ few, self.rtol, 1.0)

    def participates(self, motions: np.ndarray) -> np.ndarray:
        """Return a mask (F,) of the joint coordinates that take part in motions (f, k)."""
        return np.abs(self.R @ motions).max(axis=1, initial=0.0) > REST_RTOL

    @property
    def rtol(self) -> float:
        """Relative tolerance: velocities below this share of the largest of a motion count as zero."""
        return max(REST_RTOL, 10 * self.bodies.closure.transfer.tolerance)

    def twists(self, x: np.ndarray) -> np.ndarray:
        """Return the twists (B, 6) of all bodies at their mean position, in a motion (f,)."""
        twist = (self.X @ x).reshape(-1, 6)
        arm = (self.origins.mean(axis=0) - self.origins) / self.bodies.length
        return np.concatenate([twist[:, :3] + np.cross(twist[:, 3:], arm), twist[:, 3:]], axis=1)

    def is_rigid(self, group: frozenset[int], x: np.ndarray) -> bool:
        """Return True if a group moves as one rigid piece."""
        twist = self.twists(x)[np.isin(self.bodies.unit, list(group))]
        return bool(np.ptp(twist, axis=0).max() < self.rtol)

    def constrains_others(self, group: frozenset[int], moving: np.ndarray) -> bool:
        """Return True if a group removes degrees of freedom from the others, and all its bodies are needed.

        Joints of the group are locked if none of their coordinates is `moving` (F,).
        """
        b = self.bodies
        working = np.zeros(len(b.ends), dtype=bool)
        working[b.owner[moving]] = True
        locked = b.touching(group)[b.owner] & ~working[b.owner]
        free = self._dof_of_others(group, frozenset(), locked)
        return self._dof_of_others(group, group, locked) < free and all(
            self._dof_of_others(group, group - {one}, locked) == free for one in group
        )

    def _dof_of_others(self, group: frozenset[int], kept: frozenset[int], locked: np.ndarray) -> int:
        """Return the degrees of freedom of the others, without the members of a group that are not kept."""
        b = self.bodies
        gone = b.touching(group - kept)
        coupled = b.couplings @ self.coordinate_rates
        size = np.abs(coupled).max(axis=1, initial=0.0)[:, None]
        coupled = np.divide(coupled, size, out=np.zeros_like(coupled), where=size > 0)
        couples = ~((b.couplings != 0) & gone[b.owner]).any(axis=1)
        fixed = self.coordinate_rates[locked & ~gone[b.owner]]
        rows = [self.constraints[~gone[b.constraint_owner]], coupled[couples], fixed]
        there = np.repeat(~np.isin(b.unit, list(group - kept)), 6)
        motions = null_space(np.concatenate(rows)[:, there], self.rtol)
        others = motions[np.repeat(~np.isin(b.unit, list(group)), 6)[there]]
        return int((np.linalg.svd(others, compute_uv=False) > self.rtol).sum()) if others.size else 0


def null_space(G: np.ndarray, rtol: float, largest: float | None = None) -> np.ndarray:
    """Return an orthonormal null space (M, k) of rows (P, M).

    Singular values below `rtol` times the largest count as zero, and all of them if the largest is round-off.
    """
    if not G.size:
        return np.eye(G.shape[1])
    _, sigma, V = np.linalg.svd(G, full_matrices=len(G) < G.shape[1])
    largest = sigma[0] if largest is None else largest
    return V[int((sigma > max(rtol * largest, RANK_SHARE)).sum()) :].T
