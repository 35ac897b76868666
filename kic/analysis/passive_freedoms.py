"""Idle freedoms: motions of a group of bodies of a closed mechanism that nothing else takes part in.

A rod between two balls spins about its own line, a piston turns in its cylinder: freedoms that count, that
every set of coordinates must name, and that pass nothing on. Bodies are seen one by one here, each with
its velocity, so that nothing depends on where the loops were cut. Groups of joined bodies are tried, the
smallest first, for motions that leave all other bodies at rest. Such a motion is idle if its group

* is held by at least two other bodies, so that it is no door, no wheel and no last link of an arm, and
* moves as one rigid piece; or it moves within itself, as a rod does whose balls are made of three hinges
  each, and ties the others all the same: with the joints locked that rest, it takes freedoms from them, and
  without any one of its bodies it would take none. What takes none, such as the second crank of a five-bar
  with its two couplers, or has bodies that are not needed for it, such as a platform with the legs that move
  it, has a motion of its own to be driven.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kic.analysis.body_twists import REST, BodyTwists, TwistBasis, null
from kic.transfer.closure import Closure
from kic.transfer.finite_mobility import beside, is_finite

# about so many groups of bodies are tried, the smallest first; all of those that a usual mechanism has
GROUPS = 3000


@dataclass(frozen=True, eq=False)
class PassiveFreedom:
    """An idle freedom: a motion of some bodies that leaves all others at rest.

    Attributes
    ----------
    bodies : tuple of str
        The bodies that move.
    rigid : bool
        Whether they move as one piece; else within themselves, too.
    coordinates : tuple of str
        Coordinates of joints in which it shows; one of them belongs to every coordinate set, or something
        else of these bodies that moves with it.
    rates : (F,) ndarray
        Their rates, the largest 1; lengths are shares of the characteristic length.
    body : str
        The body that turns or slides as the next two say: of several the longest.
    point, axis : (3,) ndarray
        A point of its line and the unit vector along it, in the posture; the point is the one closest to the
        body's own, and NaN where it only slides.
    pitch : float
        Advance along the axis for each radian; infinite where it only slides.
    through : tuple of str
        The two joints of the moving bodies that lie farthest apart on the line, or one if there is but one.
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
        """What moves, and how.

        Examples
        --------
        >>> import kic
        >>> kic.load("rssr").mobility().idle[0].text()
        "'coupler' spins about the line through joints 'spin' and 'ball'"
        """
        names = _and(self.bodies)
        if len(self.through) > 1:
            line = f"the line through joints {_and(self.through)}"
        elif self.through:
            line = f"the line through joint {_and(self.through)} along {_vector(self.axis)}"
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
        return f"{self.summary()}; it shows in {', '.join(self.coordinates)}"


def find_passive_freedoms(
    closure: Closure, states: np.ndarray, singular: bool = False
) -> tuple[PassiveFreedom, ...]:
    """Idle freedoms at a closed state.

    Each must persist where its own motion leads, and in other postures beside.

    Parameters
    ----------
    closure : Closure
        The conditions alone, without chosen rows.
    states : (n, S)
        The posture asked for, then others beside it.
    singular : bool
        Whether the first has more freedoms than the others, by chance; those count then.

    Returns
    -------
    tuple of Idle
    """
    bodies = BodyTwists(closure)
    if closure.transfer.tree.open or not bodies.count:
        return ()
    views = [bodies.view(state[None], 10.0 if k else 1.0) for k, state in enumerate(states)]
    base = views[1 if singular else 0]
    found: list[PassiveFreedom] = []
    spanned = np.zeros((base.R.shape[1], 0))
    for group, x in _groups(bodies, base):
        if _independent(spanned, x) and len(bodies.holders(group)) > 1:
            made = _judged(bodies, group, x, base, views)
            if made is not None:
                found.append(made)
                spanned = np.column_stack([spanned, x])
    return tuple(found)


def _judged(
    bodies: BodyTwists, group: frozenset[int], x: np.ndarray, base: TwistBasis, views: list[TwistBasis]
) -> PassiveFreedom | None:
    """The idle freedom of a group's motion, if it is one wherever it was looked."""
    closure, generic = bodies.closure, views[-1]
    if not base.rigid(group, x) and not generic.tied(group, generic.moving(generic.of(group))):
        return None
    lead = beside(closure, base.state, np.stack([1, -1])[:, None] * (base.N @ x))
    if not len(lead) or not is_finite(closure, base.state, base.N @ x):
        return None
    size = base.of(group).shape[1]
    every = [*views[1:], base, *(bodies.view(state[None]) for state in lead)]
    motions = [view.of(group) for view in every]
    if any(own.shape[1] < size for own in motions):
        return None
    moving = np.any([view.moving(own) for view, own in zip(every, motions, strict=True)], axis=0)
    if not base.rigid(group, x) and not base.tied(group, moving):
        return None
    here = views[0]
    own = here.of(group)
    if own.shape[1] == size == 1:
        base, x = here, own[:, 0]
    return _told(base, group, x)


def _groups(bodies: BodyTwists, view: TwistBasis) -> Iterator[tuple[frozenset[int], np.ndarray]]:
    """Groups of joined units with a motion (f,) of their own, that none of smaller groups inside them is."""
    level = {frozenset([u]) for u in range(1, bodies.count)}
    seen, known = len(level), list[tuple[frozenset[int], np.ndarray]]()
    while level:
        groups = sorted(level, key=sorted)
        for k in np.flatnonzero(view.may_move(groups)):
            group = groups[k]
            own = view.of(group)
            inside = [x for other, x in known if other <= group]
            if own.shape[1] > len(inside):
                # what is left when the motions of smaller groups are taken away
                mine = own
                if inside:
                    mine = own @ null(np.stack(inside) @ own, REST)
                for x in mine.T:
                    known.append((group, x))
                    yield group, x
        wider = {group | {n} for group in level for n in bodies.beside(group)}
        seen += len(wider)
        level = wider if seen <= GROUPS else set()


def _told(view: TwistBasis, group: frozenset[int], x: np.ndarray) -> PassiveFreedom:
    """A motion of a group in numbers."""
    b = view.bodies
    rates = view.R @ x
    rates = rates / rates[np.argmax(np.abs(rates))]
    shows = np.abs(rates) > REST
    members = [k for k, u in enumerate(b.unit) if u in group]
    twist = (view.X @ x).reshape(-1, 6)
    spots = {k: _joints_of(view, k) for k in members}
    moved = [k for k in members if np.abs(twist[k]).max() > view.share]
    longest = max(moved, key=lambda k: _extent(spots[k]))
    v, w = twist[longest, :3] * b.length, twist[longest, 3:]
    slides = np.linalg.norm(w) < view.share
    axis = v / np.linalg.norm(v) if slides else w / np.linalg.norm(w)
    axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
    pitch, point, through = np.inf, np.full(3, np.nan), list[str]()
    if not slides:
        pitch = float(v @ w / (w @ w))
        pitch = pitch if abs(pitch) > view.share * b.length else 0.0
        point = view.places[longest] + np.cross(w, v) / (w @ w)
        every = dict(p for k in members for p in spots[k])
        off = {name: np.linalg.norm(np.cross(p - point, axis)) for name, p in every.items()}
        on = {name: float(every[name] @ axis) for name, d in off.items() if d < view.share * b.length}
        if on:
            first, last = min(on, key=on.__getitem__), max(on, key=on.__getitem__)
            several = on[last] - on[first] > view.share * b.length
            through = [name for name in on if name in (first, last)] if several else [next(iter(on))]
    return PassiveFreedom(
        tuple(b.names[k] for k in moved),
        view.rigid(group, x),
        tuple(name for name, on in zip(b.freedoms, shows, strict=True) if on),
        rates[shows],
        b.names[longest],
        point,
        axis,
        pitch,
        tuple(through),
        (view.N @ x) * b.closure.transfer.column_scale,
    )


def _extent(spots: list[tuple[str, np.ndarray]]) -> float:
    """How far places are apart."""
    return float(np.ptp([place for _, place in spots], axis=0).max()) if spots else 0.0


def _joints_of(view: TwistBasis, k: int) -> list[tuple[str, np.ndarray]]:
    """Names and places of the joints of a body that have a point."""
    b = view.bodies
    return [
        (joint.name, view.places[k] + view.turned[k] @ (np.array(joint.at) - b.drawn[k]))
        for joint in b.drawing.joints
        if b.names[k] in joint.bodies and joint.at
    ]


def _independent(spanned: np.ndarray, x: np.ndarray) -> bool:
    """Whether a unit motion (f,) is none of those that others span (f, k)."""
    if not spanned.size:
        return True
    rest = x - spanned @ np.linalg.lstsq(spanned, x, rcond=None)[0]
    return bool(np.linalg.norm(rest) > REST)


def _and(names: tuple[str, ...]) -> str:
    """Names in quotes, the last after an 'and'."""
    quoted = [f"'{name}'" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)


def _vector(v: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in np.where(np.abs(v) < 1e-9, 0.0, v)) + ")"
