"""Passive degrees of freedom: motions of a group of bodies of a closed mechanism that no other body shares.

A rod between two spherical joints spins about its own line; a piston turns in its cylinder. Such motions
count in the mobility, and every set of independent coordinates must include them, but they transmit nothing.
Each body is treated separately, with a velocity of its own; the result does not depend on the cut joints.
Groups of joined bodies are examined in order of size for motions that leave all other bodies at rest. Such a
motion is passive if the group

* is held by at least two other bodies (this excludes bodies that merely end a chain, like doors and wheels),
  and
* moves as one rigid piece; or it moves within itself, like a rod whose spherical joints are made of three
  hinges each, and still constrains the others. To constrain them means that, with its resting joints locked,
  the group removes degrees of freedom from the others, and removes none if any one of its bodies is left out.

A group that removes none, such as the second crank of a five-bar with its couplers, or that has bodies that
are not needed for the constraint, such as a platform with the legs that move it, has a motion to be driven.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kic.analysis.body_twists import REST_RTOL, BodyTwists, TwistBasis, null_space
from kic.transfer.closure import Closure
from kic.transfer.finite_mobility import closed_neighbours, is_finite

# approximate number of groups of bodies that are examined, the smallest first; bounds the time for large
# mechanisms
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
        The body whose motion `point`, `axis` and `pitch` describe: the longest of several.
    point, axis : (3,) ndarray
        A point of its screw axis and the unit vector along it, in the configuration. The point is the one
        closest to the body's own point, and NaN for a translation.
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
        """Return the motion in words.

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

    Each must persist along its own motion and at neighbouring closed configurations. `closure` has the
    conditions alone, without chosen rows. `states` (n, S) are the configuration in question, then its
    neighbours. If it is `singular`, the degrees of freedom of the neighbours count.
    """
    bodies = BodyTwists(closure)
    if closure.transfer.tree.open or not bodies.count:
        return ()
    bases = [bodies.basis_at(state[None], 10.0 if k else 1.0) for k, state in enumerate(states)]
    reference = bases[1 if singular else 0]
    found: list[PassiveFreedom] = []
    spanned = np.zeros((reference.R.shape[1], 0))
    for group, x in _groups(bodies, reference):
        if _is_independent(spanned, x) and len(bodies.holders(group)) > 1:
            made = _passive_freedom(bodies, group, x, reference, bases)
            if made is not None:
                found.append(made)
                spanned = np.column_stack([spanned, x])
    return tuple(found)


def _passive_freedom(
    bodies: BodyTwists, group: frozenset[int], x: np.ndarray, reference: TwistBasis, bases: list[TwistBasis]
) -> PassiveFreedom | None:
    """Return the passive degree of freedom of a group's motion, or None if it is not passive everywhere."""
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
    """Yield groups of joined units with a motion (f,) that is not one of smaller groups in them."""
    level = {frozenset([u]) for u in range(1, bodies.count)}
    count, found = len(level), list[tuple[frozenset[int], np.ndarray]]()
    while level:
        groups = sorted(level, key=sorted)
        for k in np.flatnonzero(basis.may_move(groups)):
            group = groups[k]
            motions = basis.motions_of(group)
            inner = [x for other, x in found if other <= group]
            if motions.shape[1] > len(inner):
                # exclude the motions of smaller groups
                new = motions
                if inner:
                    new = motions @ null_space(np.stack(inner) @ motions, REST_RTOL)
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
    """Return the largest extent of joint positions along a world axis."""
    return float(np.ptp([place for _, place in points], axis=0).max()) if points else 0.0


def _joints_of(basis: TwistBasis, k: int) -> list[tuple[str, np.ndarray]]:
    """Return names and positions of the joints of a body that have a point."""
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
    quoted = [f"'{name}'" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)


def _vector(v: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in np.where(np.abs(v) < 1e-9, 0.0, v)) + ")"
