"""Idle freedoms: motions of a group of bodies of a closed mechanism that nothing else takes part in.

A rod between two balls spins about its own line, a piston turns in its cylinder: freedoms that count, that
every set of coordinates must name, and that pass nothing on. Bodies are seen one by one here, each with
its velocity, so that nothing depends on where the loops were cut. Groups of joined bodies are tried, the
smallest first, for motions that leave all other bodies at rest. Such a motion is idle if its group

* is held by at least two other bodies, so that it is no door, no wheel and no last link of an arm, and
* moves as one rigid piece; or it moves within itself, as a sphere made of three hinges does, and ties the
  others all the same: with the joints locked that rest, it takes freedoms from them. A chain that takes none,
  such as the second crank of a five-bar with its two couplers, is a part that is driven, and not idle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kic.checks import GROUND
from kic.closure import Closure
from kic.cuts import closure_items, distance_item
from kic.finite import beside
from kic.freebodies import cut_everywhere, freedom_items, spot
from kic.items import DIRECTION, OMEGA, POINT, Item
from kic.kinematics import RowsQuestion
from kic.posture import columns_to_states
from kic.rotations import vector_from_matrix
from kic.rows import plain_rows
from kic.system import column_scales, row_scales
from kic.transfer import RANK_SHARE
from kic.tree import Tree

# what moves less than this beside the rest of its motion is at rest
REST = 1e-7
# so many groups of bodies are tried
GROUPS = 3000


@dataclass(frozen=True, eq=False)
class Idle:
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
        Joints of the moving bodies whose points lie on the line.
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

    def text(self) -> str:
        """What moves, and how.

        Examples
        --------
        >>> import kic
        >>> kic.load("rssr").mobility().idle[0].text()
        "'coupler' spins about the line through joints 'pin' and 'ball'"
        """
        names = _and(self.bodies)
        if len(self.through) > 1:
            line = f"the line through joints {_and(self.through[:2])}"
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
        return f"{self.text()}; it shows in {', '.join(self.coordinates)}"


def idle_freedoms(closure: Closure, states: np.ndarray, singular: bool = False) -> tuple[Idle, ...]:
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
    bodies = _Bodies(closure)
    if closure.transfer.tree.open or not bodies.count:
        return ()
    views = [bodies.view(state[None]) for state in states]
    base = views[1 if singular else 0]
    found: list[Idle] = []
    spanned = np.zeros((base.R.shape[1], 0))
    for group, x in _groups(bodies, base):
        if _independent(spanned, x) and len(bodies.holders(group)) > 1:
            made = _judged(bodies, group, x, base, views)
            if made is not None:
                found.append(made)
                spanned = np.column_stack([spanned, x])
    return tuple(found)


def _judged(
    bodies: _Bodies, group: frozenset[int], x: np.ndarray, base: _View, views: list[_View]
) -> Idle | None:
    """The idle freedom of a group's motion, if it is one wherever it was looked."""
    closure = bodies.closure
    lead = beside(closure, base.state, np.stack([1, -1]) [:, None] * (base.N @ x))
    if not len(lead):
        return None
    size = base.of(group).shape[1]
    every = [*views[1:], base, *(bodies.view(state[None]) for state in lead)]
    motions = [view.of(group) for view in every]
    if any(own.shape[1] < size for own in motions):
        return None
    moving = np.any([np.abs(v.R @ own).max(axis=1) > REST for v, own in zip(every, motions, strict=True)], axis=0)
    if not base.rigid(group, x) and not base.tied(group, moving):
        return None
    here = views[0]
    own = here.of(group)
    if own.shape[1] == size == 1:
        base, x = here, own[:, 0]
    return base.idle(group, x)


def _groups(bodies: _Bodies, view: _View) -> Iterator[tuple[frozenset[int], np.ndarray]]:
    """Groups of joined units with a motion (f,) of their own, that none of smaller groups inside them is."""
    level = {frozenset([u]) for u in range(1, bodies.count)}
    seen, known = len(level), list[tuple[frozenset[int], np.ndarray]]()
    while level:
        for group in sorted(level, key=sorted):
            own = view.of(group)
            inside = [x for other, x in known if other <= group]
            if own.shape[1] > len(inside):
                # what is left when the motions of smaller groups are taken away
                mine = own
                if inside:
                    mine = own @ _null(np.stack(inside) @ own, REST)
                for x in mine.T:
                    known.append((group, x))
                    yield group, x
        wider = {group | {n} for group in level for n in bodies.beside(group)}
        seen += len(wider)
        level = wider if seen <= GROUPS else set()


class _Bodies:
    """All bodies of a mechanism, and what ties them; those that fixed joints weld together are one unit.

    Ground is unit 0.
    """

    def __init__(self, closure: Closure) -> None:
        drawing, t = closure.transfer.tree.drawing, closure.transfer
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
        self.owner = np.repeat(np.arange(len(joints)), [joint.freedoms for joint in joints])
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
        self._moving = RowsQuestion(chain, plain_rows(chain, items), 1)
        last = np.array([free.frame[name] for name in self.names])
        self._columns = (last[:, None] + np.arange(-5, 1)).ravel()
        self.scale = column_scales(free, self.length)[self._columns]
        held = [closure_items(free, joint) for joint in self.drawing.joints]
        held += [[distance_item(free, rod)] for rod in self.rods]
        self._held, self._held_scale = self._rows(held)
        self.held_by = np.repeat(np.arange(len(held)), [sum(item.height for item in one) for one in held])
        self._left, self._left_scale = self._rows([freedom_items(free, j) for j in self.drawing.joints])

    def _rows(self, made: list[list[Item]]) -> tuple[RowsQuestion, np.ndarray]:
        """Rows of the free bodies, and what they are divided by."""
        items = [item for of_joint in made for item in of_joint]
        question = RowsQuestion(self._free, plain_rows(self._free, items), 1)
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
        return np.isin(self.ends, list(group)).any(axis=1)

    def holders(self, group: frozenset[int]) -> set[int]:
        """Units that hold a group from outside."""
        return set(self.ends[self.holds & self.touched(group)].ravel().tolist()) - group

    def view(self, state: np.ndarray) -> _View:
        """The motions at a closed state (1, S), and all that they move."""
        t, n = self.closure.transfer, len(self.names)
        values, G = (x[0] for x in self._moving.answer.split(self._moving.table(state), (1,)))
        rows = values.reshape(-1, 3)
        turned = np.swapaxes(rows[n : 4 * n].reshape(n, 3, 3), 1, 2)
        six = np.concatenate([rows[:n] - self.drawn, vector_from_matrix(turned)], axis=1)
        phi = np.empty((1, self._free.size))
        phi[:, self._columns] = six.ravel()
        free = columns_to_states(self._free, phi)
        held, left = (
            q.answer.split(q.table(free), (1,))[1][0][:, self._columns] * self.scale / scale[:, None]
            for q, scale in ((self._held, self._held_scale), (self._left, self._left_scale))
        )
        N = _null(self.closure.rows(state)[1][0], max(RANK_SHARE, 10 * t.tolerance))
        G = (G * t.column_scale) @ N
        moves = np.concatenate([G[: 3 * n].reshape(n, 3, -1), G[12 * n :].reshape(n, 3, -1)], axis=1)
        X = moves.reshape(6 * n, -1) / self.scale[:, None]
        # motions of which the joints' rates are orthonormal
        U, sigma, V = np.linalg.svd(left @ X, full_matrices=False)
        back = V.T / sigma
        return _View(self, state, N @ back, X @ back, U, held, left, rows[:n], turned)


@dataclass(frozen=True, eq=False)
class _View:
    """One posture: f independent motions, N (M, f) of the tree, X (6 B, f) of B bodies, R (F, f) of joints.

    Velocities are shares of the characteristic length. What joints hold, and the rates of their freedoms, are
    rows (…, 6 B) on the velocities of free bodies; `places` and `turned` are where these are.
    """

    bodies: _Bodies
    state: np.ndarray
    N: np.ndarray
    X: np.ndarray
    R: np.ndarray
    held: np.ndarray
    left: np.ndarray
    places: np.ndarray
    turned: np.ndarray

    def of(self, group: frozenset[int]) -> np.ndarray:
        """Motions (f, k) that leave all but a group at rest."""
        others = ~np.isin(self.bodies.unit, list(group))
        return _null(self.X[np.repeat(others, 6)], self._share, 1.0)

    @property
    def _share(self) -> float:
        return max(REST, 10 * self.bodies.closure.transfer.tolerance)

    def twists(self, x: np.ndarray) -> np.ndarray:
        """Velocities at the mean place of all bodies, and turnings, (B, 6), of a motion (f,)."""
        twist = (self.X @ x).reshape(-1, 6)
        arm = (self.places.mean(axis=0) - self.places) / self.bodies.length
        return np.concatenate([twist[:, :3] + np.cross(twist[:, 3:], arm), twist[:, 3:]], axis=1)

    def rigid(self, group: frozenset[int], x: np.ndarray) -> bool:
        """Whether a group moves as one piece."""
        twist = self.twists(x)[np.isin(self.bodies.unit, list(group))]
        return bool(np.ptp(twist, axis=0).max() < self._share)

    def tied(self, group: frozenset[int], moving: np.ndarray) -> bool:
        """Whether a group takes freedoms from the others, with its joints locked but for the moving ones."""
        b = self.bodies
        outside = np.repeat(~np.isin(b.unit, list(group)), 6)
        touched = b.touched(group)
        coupled = b.couplings @ self.left
        coupled = coupled / np.maximum(np.abs(coupled).max(axis=1, initial=1e-300), 1e-300)[:, None]
        mine = touched[b.owner]
        own = ((b.couplings != 0) & mine).any(axis=1)
        # a joint that moves in some of its freedoms is not locked in the others: a ball's are any three
        working = np.zeros(len(touched), dtype=bool)
        working[b.owner[moving]] = True
        locks = self.left[mine & ~working[b.owner]]
        alone = np.concatenate([self.held[~touched[b.held_by]], coupled[~own]])[:, outside]
        free = _null(alone, self._share).shape[1]
        still = _null(np.concatenate([self.held, coupled, locks]), self._share)[outside]
        return int((np.linalg.svd(still, compute_uv=False) > self._share).sum()) < free

    def idle(self, group: frozenset[int], x: np.ndarray) -> Idle:
        """A motion of a group in words and numbers."""
        b, drawing = self.bodies, self.bodies.drawing
        rates = self.R @ x
        rates = rates / rates[np.argmax(np.abs(rates))]
        shows = np.abs(rates) > REST
        members = [k for k, u in enumerate(b.unit) if u in group]
        twist = (self.X @ x).reshape(-1, 6)
        spots = {k: self._joints_of(k) for k in members}
        moved = [k for k in members if np.abs(twist[k]).max() > self._share]
        longest = max(moved, key=lambda k: (np.ptp([p for _, p in spots[k]], axis=0).max(), -k))
        v, w = twist[longest, :3] * b.length, twist[longest, 3:]
        slides = np.linalg.norm(w) < self._share
        axis = v / np.linalg.norm(v) if slides else w / np.linalg.norm(w)
        axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
        pitch, point, through = np.inf, np.full(3, np.nan), list[str]()
        if not slides:
            pitch = float(v @ w / (w @ w))
            pitch = pitch if abs(pitch) > self._share * b.length else 0.0
            point = self.places[longest] + np.cross(w, v) / (w @ w)
            every = dict(p for k in members for p in spots[k])
            off = {name: np.linalg.norm(np.cross(p - point, axis)) for name, p in every.items()}
            through = [name for name, d in off.items() if d < self._share * b.length]
            if through and np.ptp([every[name] @ axis for name in through]) < self._share * b.length:
                through = through[:1]  # of one place: no line
        return Idle(
            tuple(b.names[k] for k in moved),
            self.rigid(group, x),
            tuple(name for name, on in zip(b.freedoms, shows, strict=True) if on),
            rates[shows],
            b.names[longest],
            point,
            axis,
            pitch,
            tuple(through),
            (self.N @ x) * b.closure.transfer.column_scale,
        )

    def _joints_of(self, k: int) -> list[tuple[str, np.ndarray]]:
        """Names and places of the joints of a body that have a point."""
        b = self.bodies
        moved = lambda at: self.places[k] + self.turned[k] @ (np.array(at) - b.drawn[k])  # noqa: E731
        return [(j.name, moved(j.at)) for j in b.drawing.joints if b.names[k] in j.bodies and j.at]


def _null(G: np.ndarray, share: float, largest: float | None = None) -> np.ndarray:
    """Orthonormal null space (M, k) of rows (P, M): singular values below a share of the largest."""
    if not G.size:
        return np.eye(G.shape[1])
    _, sigma, V = np.linalg.svd(G)
    largest = sigma[0] if largest is None else largest
    return V[int((sigma > share * largest).sum()) :].T


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
