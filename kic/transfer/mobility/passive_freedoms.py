"""Passive degrees of freedom: motions of some bodies of a closed mechanism that leave all others at rest.

A rod between two spherical joints spins about its own line; a piston turns in its cylinder. Such motions
count in the mobility, and every set of independent coordinates must include them, but they transmit nothing.
Each body has an independent velocity, and the result does not depend on the cut joints.
Joints outside all loops are held at rest, so branches without loops have no passive degrees of freedom.
Groups of joined bodies are examined in order of size for motions that leave all other bodies at rest. Such a
motion is passive if the group

* is constrained by at least two other bodies (this excludes the ends of a chain, like doors and wheels), and
* moves as one rigid piece; or it moves within itself, like a rod whose spherical joints are made of three
  hinges each, and still constrains the other bodies. It constrains them if, with its resting joints locked,
  it removes degrees of freedom from them, and removes none if any one of its bodies is left out.

A group that removes none, such as the second crank of a five-bar with its couplers, has a motion to be
driven. The same is true of a group with bodies that the constraint does not need, such as a platform with
the legs that move it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kic.description.validation import GROUND
from kic.errors import either
from kic.kinematics.closure_rows import closure_items, fixed_rows
from kic.kinematics.items import Item, directions_on, heights
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import Query, output_query
from kic.kinematics.tree import Tree
from kic.numerics.graphs import components
from kic.numerics.rotations import vector_from_matrix
from kic.transfer.closure import Closure
from kic.transfer.constraint_system import column_scales, row_scales
from kic.transfer.free_bodies import cut_everywhere, joint_motion_items, spot
from kic.transfer.mobility.finite_mobility import closed_neighbours, is_finite
from kic.transfer.rank import RANK_SHARE, nearby_rtol

# share of the largest rate of a motion below which rates count as zero; the maximum is for rounded dimensions
REST_RTOL, REST_RTOL_MAX = 1e-7, 0.1


class BodyTwists:
    """Bodies of a mechanism and the constraints between them.

    Bodies connected by fixed joints, or by joints outside all loops, form one unit. Ground is unit 0.
    """

    def __init__(self, closure: Closure) -> None:
        description, t = closure.transfer.tree.description, closure.transfer
        self.closure, self.description, self.length = closure, description, t.length
        self.names = tuple(body.name for body in description.bodies)
        joints, unit = description.joints, {name: k for k, name in enumerate((GROUND, *self.names))}
        moving = t.system.moving[t.system.rows.item_of[t.system.picked]]
        idle = {name for name, moves in zip(t.tree.columns, moving.any(axis=0), strict=True) if not moves}
        rigid = [joint for joint in joints if joint.type != "free" and idle.issuperset(joint.components)]
        idle = {name for joint in rigid for name in joint.components}
        self.loose = np.array([name not in idle for name in t.tree.columns], dtype=bool)
        of = components([(unit[a], unit[b]) for a, b in (joint.bodies for joint in rigid)], len(unit))
        unit = dict(zip(unit, of.tolist(), strict=True))
        self.count = len(set(unit.values()))
        self.unit = of[1:]
        self.rods = description._fixed_measures
        # units connected by each joint, and then by each fixed distance
        ends = [[unit[b] for b in joint.bodies] for joint in joints]
        ends += [[unit[b] for b in description._bodies_of(rod)] for rod in self.rods]
        self.ends = np.array(ends, dtype=np.intp).reshape(-1, 2)
        self.holds = np.array([j.type not in ("free", "fixed") for j in joints] + [True] * len(self.rods))
        self.coordinates = tuple(c for joint in joints for c in joint.components)
        self.owner = np.repeat(np.arange(len(joints)), [joint.dof for joint in joints])
        self.couplings = np.zeros((len(description.couplings), len(self.coordinates)))
        for k, coupling in enumerate(description.couplings):
            for name, ratio in description._terms[coupling.name]:
                self.couplings[k, self.coordinates.index(name)] = ratio
        # joints and fixed distances of loops that share a joint have the same number
        names = [*(joint.name for joint in joints), *(rod.name for rod in self.rods)]
        place = {name: k for k, name in enumerate(names)}
        joint_of = dict(zip(self.coordinates, self.owner.tolist(), strict=True))
        links = [(joint_of[t.tree.columns[n]], len(ends) + row) for row, n in np.argwhere(moving).tolist()]
        links += [(place[name], len(ends) + row) for row, name in enumerate(t.owners) if name in place]
        self.loop = components(links, len(ends) + len(moving))[: len(ends)]
        self._make_queries(t.tree)

    def _make_queries(self, tree: Tree) -> None:
        free = self._free = Tree(cut_everywhere(self.description))
        self.reference_points = np.array([spot(body) for body in self.description.bodies]).reshape(-1, 3)
        items = [Item.point_on(tree, *one) for one in zip(self.names, self.reference_points, strict=True)]
        items += [item for name in self.names for item in directions_on(tree, name, np.eye(3))]
        items += [Item.angular_velocity(tree.frame[name]) for name in self.names]
        self._body_motion = output_query(tree, plain_rows(tree, items), 1)
        last = np.array([free.frame[name] for name in self.names])
        self._columns = (last[:, None] + np.arange(-5, 1)).ravel()
        self.scale = column_scales(free, self.length)[self._columns]
        held = [closure_items(free, joint) for joint in self.description.joints]
        counts = [sum(heights(one)) for one in held] + [1] * len(self.rods)
        rods, used = fixed_rows(free, self.rods)
        count = sum(counts) - len(used)
        used = [*range(count), *(count + row for row in used)]
        self._constraints, self._constraint_scale = self._rows([*held, rods], np.array(used, dtype=np.intp))
        self.constraint_owner = np.repeat(np.arange(len(counts)), counts)
        of_coordinates = [joint_motion_items(free, joint) for joint in self.description.joints]
        self._coordinate_rates, self._coordinate_scale = self._rows(of_coordinates)

    def _rows(self, made: list[list[Item]], used: np.ndarray | None = None) -> tuple[Query, np.ndarray]:
        """Return the query for rows on the free bodies, and the scales of the `used` rows."""
        items = [item for of_joint in made for item in of_joint]
        rows = replace(plain_rows(self._free, items), select=used)
        return output_query(self._free, rows, 1), row_scales(self._free, rows, self.length)

    @cached_property
    def _adjacent(self) -> list[set[int]]:
        """List of sets: each unit and the units that joints, fixed distances or couplings connect to it."""
        made = [{u} for u in range(self.count)]
        coupled = [self.ends[self.owner[row]].ravel().tolist() for row in self.couplings != 0]
        for ends in (*self.ends[self.holds].tolist(), *coupled):
            for u in ends:
                made[u].update(ends)
        return made

    def adjacent_units(self, group: frozenset[int]) -> set[int]:
        """Return the units that joints, fixed distances or couplings connect to a group, without ground."""
        return set().union(*(self._adjacent[u] for u in group)) - group - {0}

    def touching(self, group: frozenset[int]) -> np.ndarray:
        """Return a mask of the joints and fixed distances with an end in a group."""
        return np.logical_or(*np.isin(self.ends, list(group)).T)

    def constraining_units(self, group: frozenset[int]) -> set[int]:
        """Return the units outside a group whose joints and fixed distances constrain it."""
        return set(self.ends[self.holds & self.touching(group)].ravel().tolist()) - group

    def basis_at(self, state: np.ndarray, nearby: bool = True) -> TwistBasis:
        """Return the motions at a closed state (1, S); `nearby` selects the tolerance of neighbours."""
        t, n = self.closure.transfer, len(self.names)
        values, G = (x[0] for x in self._body_motion.arrays(state))
        rows = values.reshape(-1, 3)
        rotations = np.swapaxes(rows[n : 4 * n].reshape(n, 3, 3), 1, 2)
        six = np.concatenate([rows[:n] - self.reference_points, vector_from_matrix(rotations)], axis=1)
        phi = np.empty((1, self._free.size))
        phi[:, self._columns] = six.ravel()
        free = self._free.states(phi)
        constraints, rates = (
            q.arrays(free)[1][0][:, self._columns][q.layout.rows.select].reshape(-1, 6 * n)
            * self.scale
            / scale[:, None]
            for q, scale in (
                (self._constraints, self._constraint_scale),
                (self._coordinate_rates, self._coordinate_scale),
            )
        )
        # joints outside all loops are held at rest
        closing = self.closure.rows(state)[1][0][:, self.loose]
        few = free_motions(closing, nearby_rtol(t.tolerance) if nearby else max(RANK_SHARE, t.tolerance))
        N = np.zeros((t.tree.size, few.shape[1]))
        N[self.loose] = few
        G = (G * t.column_scale) @ N
        moves = np.concatenate([G[: 3 * n].reshape(n, 3, -1), G[12 * n :].reshape(n, 3, -1)], axis=1)
        X = moves.reshape(6 * n, -1) / self.scale[:, None]
        # choose motions whose joint rates are orthonormal
        U, sigma, V = np.linalg.svd(rates @ X, full_matrices=False)
        back = V.T / sigma
        rigid = self._rigid(rows[:n])
        return TwistBasis(
            self, state, N @ back, X @ back, U, constraints @ rigid, rates @ rigid, rows[:n], rotations
        )

    def _rigid(self, origins: np.ndarray) -> np.ndarray:
        """Return the map (6 B, 6 (U - 1)) from twists of the moving units to those of bodies at origins."""
        bodies = np.arange(len(self.names))
        firsts = np.array([np.argmax(self.unit == u) for u in self.unit], dtype=np.intp)
        arms = (origins - origins[firsts]) / self.length
        made = np.zeros((len(bodies), self.count, 6, 6))
        made[bodies, self.unit] = np.eye(6)
        made[bodies, self.unit, :3, 3:] = np.swapaxes(np.cross(np.eye(3), arms[:, None]), 1, 2)
        made = np.swapaxes(made, 1, 2)
        return made[:, :, 1:].reshape(6 * len(self.names), -1)


@dataclass(frozen=True, eq=False)
class TwistBasis:
    """Basis of the f independent motions at one configuration, with the characteristic length as unit."""

    bodies: BodyTwists
    state: np.ndarray
    N: np.ndarray  # (M, f): rates of the tree's coordinates
    X: np.ndarray  # (6 B, f): twists of the B bodies
    R: np.ndarray  # (F, f): rates of the F joint coordinates, orthonormal
    # (…, 6 (U - 1)): constraints of the joints, and rates of their coordinates, as rows on twists of units
    constraints: np.ndarray
    coordinate_rates: np.ndarray
    # (B, 3), (B, 3, 3): position of the bodies' points, and rotation from the reference configuration
    origins: np.ndarray
    rotations: np.ndarray

    @cached_property
    def _squares(self) -> np.ndarray:
        """Array (U, f, f) of XᵀX of each unit."""
        f = self.X.shape[1]
        squares = np.zeros((self.bodies.count, f, f))
        np.add.at(squares, self.bodies.unit, np.einsum("bif,big->bfg", *[self.X.reshape(-1, 6, f)] * 2))
        return squares

    def squares_of_others(self, groups: list[frozenset[int]]) -> np.ndarray:
        """Return XᵀX (n, f, f) of all units outside each group."""
        inside = np.array([[u in group for u in range(self.bodies.count)] for group in groups], dtype=float)
        return self._squares[1:].sum(axis=0) - np.tensordot(inside, self._squares, axes=1)

    def motions_of(self, group: frozenset[int]) -> np.ndarray:
        """Return the motions (f, k) that leave all units outside a group at rest."""
        # the squares select few candidate directions, which is much faster for large mechanisms
        values, vectors = np.linalg.eigh(self.squares_of_others([group])[0])
        few = vectors[:, values < self.rtol]
        others = ~np.isin(self.bodies.unit, list(group))
        return few @ free_motions(self.X[np.repeat(others, 6)] @ few, self.rtol, 1.0)

    def participates(self, motions: np.ndarray) -> np.ndarray:
        """Return a mask (F,) of the joint coordinates that move in motions (f, k)."""
        return np.abs(self.R @ motions).max(axis=1, initial=0.0) > REST_RTOL

    @property
    def rtol(self) -> float:
        """Relative tolerance: smaller shares of the largest velocity of a motion count as zero."""
        return min(max(REST_RTOL, 10 * self.bodies.closure.transfer.tolerance), REST_RTOL_MAX)

    def twists(self, x: np.ndarray) -> np.ndarray:
        """Return the twists (B, 6) of all bodies in a motion (f,), at the mean of their origins."""
        twist = (self.X @ x).reshape(-1, 6)
        arm = (self.origins.mean(axis=0) - self.origins) / self.bodies.length
        return np.concatenate([twist[:, :3] + np.cross(twist[:, 3:], arm), twist[:, 3:]], axis=1)

    def is_rigid(self, group: frozenset[int], x: np.ndarray) -> bool:
        """Return True if a group moves as one rigid piece."""
        twist = self.twists(x)[np.isin(self.bodies.unit, list(group))]
        return bool(np.ptp(twist, axis=0).max() < self.rtol)

    def constrains_others(self, group: frozenset[int], moving: np.ndarray) -> bool:
        """Return True if a group removes degrees of freedom from the other bodies and needs all its bodies.

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
        """Return the degrees of freedom of the bodies outside a group; only its `kept` bodies constrain them.

        Loops that share no joint with those of the group keep their motions and are left out.
        """
        b = self.bodies
        gone, near = b.touching(group - kept), np.isin(b.loop, b.loop[b.touching(group)])
        coupled = b.couplings @ self.coordinate_rates
        size = np.abs(coupled).max(axis=1, initial=0.0)[:, None]
        coupled = np.divide(coupled, size, out=np.zeros_like(coupled), where=size > 0)
        terms = b.couplings != 0
        couples = ~(terms & gone[b.owner]).any(axis=1) & (terms & near[b.owner]).any(axis=1)
        fixed = self.coordinate_rates[locked & ~gone[b.owner]]
        holding = near & ~gone & (b.ends[:, 0] != b.ends[:, 1])
        rows = [self.constraints[holding[b.constraint_owner]], coupled[couples], fixed]
        units = np.setdiff1d(b.ends[near], [0, *(group - kept)])
        columns = (6 * (units[:, None] - 1) + np.arange(6)).ravel()
        motions = free_motions(np.concatenate(rows)[:, columns], self.rtol)
        others = motions[np.repeat(~np.isin(units, list(group)), 6)]
        return int((np.linalg.svd(others, compute_uv=False) > self.rtol).sum()) if others.size else 0


def free_motions(G: np.ndarray, rtol: float, largest: float | None = None) -> np.ndarray:
    """Return an orthonormal null space (M, k) of rows (P, M).

    Singular values below `rtol` times the largest, or times 1, count as zero.
    """
    if not G.size:
        return np.eye(G.shape[1])
    _, sigma, V = np.linalg.svd(G, full_matrices=len(G) < G.shape[1])
    largest = sigma[0] if largest is None else largest
    return V[int((sigma > max(rtol * max(largest, 1.0), RANK_SHARE)).sum()) :].T


# approximate number of groups of bodies to examine, smallest first; it bounds the time for large mechanisms
GROUPS_MAX = 3000


@dataclass(frozen=True, eq=False)
class PassiveFreedom:
    """A passive degree of freedom: a motion of some bodies that leaves all others at rest.

    Attributes
    ----------
    bodies : tuple of str
        The bodies that move.
    rigid : bool
        True if they move as one rigid piece.
    coordinates : tuple of str
        Joint coordinates that take part. Every set of independent coordinates must include one of them, or
        another output of these bodies that moves with it.
    rates : (F,) ndarray
        Their rates, the largest 1; lengths are in units of the characteristic length.
    body : str
        The longest of the bodies; `point`, `axis` and `pitch` describe its motion.
    point, axis : (3,) ndarray
        The point of its screw axis closest to the body's reference point, NaN for a translation, and the
        unit vector along the axis, in the configuration.
    pitch : float
        Advance along the axis per radian; infinite for a translation.
    through : tuple of str
        The two joints of the moving bodies that are farthest apart on the axis, or one if there is only one.
    motion : (M,) ndarray
        Rates of the tree's coordinates, in their units.
    """

    bodies: tuple[str, ...]
    rigid: bool
    coordinates: tuple[str, ...]
    rates: np.ndarray
    body: str
    point: np.ndarray
    axis: np.ndarray
    pitch: float
    through: tuple[str, ...]
    motion: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.rates, self.point, self.axis, self.motion):
            array.flags.writeable = False

    def summary(self) -> str:
        """Describe the motion.

        Examples
        --------
        >>> kic.load("rssr").mobility().passive_freedoms[0].summary()
        "'coupler' spins about the line through joints 'spin' and 'ball'"
        """
        names = _quoted(self.bodies)
        if len(self.through) > 1:
            line = f"the line through joints {_quoted(self.through)}"
        elif self.through:
            line = f"the line through joint {_quoted(self.through)} along {_vector(self.axis)}"
        else:
            line = f"the line through {_vector(self.point)} along {_vector(self.axis)}"
        how = f"about {line}"
        if not np.isfinite(self.pitch):
            verb, how = "slide", f"along {_vector(self.axis)}"
        elif self.pitch:
            verb, how = "screw", f"{how}, {self.pitch:.4g} along it per radian"
        else:
            verb = "spin"
        if len(self.bodies) == 1:
            return f"{names} {verb}s {how}"
        if self.rigid:
            return f"{names} {verb} as one {how}"
        return f"{names} move, of which '{self.body}' {verb}s {how}"

    def __repr__(self) -> str:
        return f"{self.summary()}; coordinates {', '.join(self.coordinates)} take part"


def find_passive_freedoms(
    closure: Closure, states: np.ndarray, singular: bool = False
) -> tuple[PassiveFreedom, ...]:
    """Return the passive degrees of freedom at a closed state.

    Each of them must persist along its motion and at neighbouring closed configurations. `closure` has the
    conditions alone, without chosen rows. `states` (n, S) are the configuration, then its neighbours. If the
    configuration is `singular`, the degrees of freedom of the neighbours count.
    """
    bodies = BodyTwists(closure)
    if closure.transfer.tree.open or not bodies.count:
        return ()
    bases = [bodies.basis_at(state[None], k > 0) for k, state in enumerate(states)]
    reference = bases[1 if singular else 0]
    found: list[PassiveFreedom] = []
    spanned = np.zeros((reference.R.shape[1], 0))
    for group, x in _groups(bodies, reference):
        if _is_independent(spanned, x) and len(bodies.constraining_units(group)) > 1:
            made = _passive_freedom(bodies, group, x, reference, bases)
            if made is not None:
                found.append(made)
                spanned = np.column_stack([spanned, x])
    return tuple(found)


def _passive_freedom(
    bodies: BodyTwists, group: frozenset[int], x: np.ndarray, reference: TwistBasis, bases: list[TwistBasis]
) -> PassiveFreedom | None:
    """Return the passive degree of freedom of a group's motion; None if one of the bases excludes it."""
    closure, generic = bodies.closure, bases[-1]
    if not reference.is_rigid(group, x) and not generic.constrains_others(
        group, generic.participates(generic.motions_of(group))
    ):
        return None
    ahead = closed_neighbours(closure, reference.state, np.stack([1, -1])[:, None] * (reference.N @ x))
    if not len(ahead) or not is_finite(closure, reference.state, reference.N @ x):
        return None
    size = reference.motions_of(group).shape[1]
    every = [*bases[1:], reference, *(bodies.basis_at(state[None]) for state in ahead)]
    motions = [basis.motions_of(group) for basis in every]
    if any(motion.shape[1] < size for motion in motions):
        return None
    moving = np.any(
        [basis.participates(motion) for basis, motion in zip(every, motions, strict=True)], axis=0
    )
    if not reference.is_rigid(group, x) and not reference.constrains_others(group, moving):
        return None
    given = bases[0]
    motion = given.motions_of(group)
    if motion.shape[1] == size == 1:
        reference, x = given, motion[:, 0]
    return _describe_motion(reference, group, x)


def _groups(bodies: BodyTwists, basis: TwistBasis) -> Iterator[tuple[frozenset[int], np.ndarray]]:
    """Yield groups of joined units, each with a motion (f,) that no smaller group within it has."""
    level = {frozenset([u]) for u in range(1, bodies.count if basis.X.size else 1)}
    count, found = len(level), list[tuple[frozenset[int], np.ndarray]]()
    while level:
        groups = sorted(level, key=sorted)
        # all other units can be at rest
        may_move = np.linalg.eigvalsh(basis.squares_of_others(groups))[:, 0] < basis.rtol
        for k in np.flatnonzero(may_move):
            group = groups[k]
            motions = basis.motions_of(group)
            inner = [x for other, x in found if other <= group]
            if motions.shape[1] > len(inner):
                # exclude the motions of smaller groups
                new = motions
                if inner:
                    new = motions @ free_motions(np.stack(inner) @ motions, REST_RTOL)
                for x in new.T:
                    found.append((group, x))
                    yield group, x
        neighbours = {group | {n} for group in level for n in bodies.adjacent_units(group)}
        count += len(neighbours)
        level = neighbours if count <= GROUPS_MAX else set()


def _describe_motion(basis: TwistBasis, group: frozenset[int], x: np.ndarray) -> PassiveFreedom:
    """Return the description of a group's motion."""
    bodies, atol = basis.bodies, basis.rtol * basis.bodies.length
    rates = basis.R @ x
    rates = rates / rates[np.argmax(np.abs(rates))]
    takes_part = np.abs(rates) > REST_RTOL
    members = [k for k, u in enumerate(bodies.unit) if u in group]
    twist = (basis.X @ x).reshape(-1, 6)
    twist = twist / np.abs(twist).max()
    joints = {k: _joints_of(basis, k) for k in members}
    moving = [k for k in members if np.abs(twist[k]).max() > basis.rtol]
    longest = max(moving, key=lambda k: _extent(joints[k]))
    v, w = twist[longest, :3] * bodies.length, twist[longest, 3:]
    is_translation = np.linalg.norm(w) < basis.rtol
    axis = v / np.linalg.norm(v) if is_translation else w / np.linalg.norm(w)
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    pitch, point, through = np.inf, np.full(3, np.nan), list[str]()
    if not is_translation:
        pitch = float(v @ w / (w @ w))
        pitch = pitch if abs(pitch) > atol else 0.0
        point = basis.origins[longest] + np.cross(w, v) / (w @ w)
        every = dict(p for k in members for p in joints[k])
        distances = {name: np.linalg.norm(np.cross(p - point, axis)) for name, p in every.items()}
        positions = {name: float(every[name] @ axis) for name, d in distances.items() if d < atol}
        if positions:
            first, last = min(positions, key=positions.__getitem__), max(positions, key=positions.__getitem__)
            through = [name for name in positions if name in (first, last)]
            if positions[last] - positions[first] <= atol:
                through = [next(iter(positions))]
    return PassiveFreedom(
        tuple(bodies.names[k] for k in moving),
        basis.is_rigid(group, x),
        tuple(name for name, moves in zip(bodies.coordinates, takes_part, strict=True) if moves),
        rates[takes_part],
        bodies.names[longest],
        point,
        axis,
        pitch,
        tuple(through),
        (basis.N @ x) * bodies.closure.transfer.column_scale,
    )


def _extent(points: list[tuple[str, np.ndarray]]) -> float:
    """Return the largest extent of named positions along a world axis."""
    return float(np.ptp([place for _, place in points], axis=0).max()) if points else 0.0


def _joints_of(basis: TwistBasis, k: int) -> list[tuple[str, np.ndarray]]:
    """Return names and positions of the joints of a body, for joints with a point."""
    bodies = basis.bodies
    return [
        (
            joint.name,
            basis.origins[k] + basis.rotations[k] @ (np.array(joint.at) - bodies.reference_points[k]),
        )
        for joint in bodies.description.joints
        if bodies.names[k] in joint.bodies and joint.at
    ]


def _is_independent(spanned: np.ndarray, x: np.ndarray) -> bool:
    """Return True if a unit motion (f,) lies outside the span of others (f, k)."""
    if not spanned.size:
        return True
    rest = x - spanned @ np.linalg.lstsq(spanned, x, rcond=None)[0]
    return bool(np.linalg.norm(rest) > REST_RTOL)


def _quoted(names: tuple[str, ...]) -> str:
    """Return names in quotes, the last after "and"."""
    return either((f"'{name}'" for name in names), "and")


def _vector(v: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in np.where(np.abs(v) < 1e-9, 0.0, v)) + ")"
