"""Form and force closure: whether contacts can resist every wrench, and which they can not.

Force closure (Murray, Li and Sastry 1994, proposition 5.3): the grasp map has full rank, and there are forces
strictly inside all friction cones that add up to nothing. Form closure of first order is the same without
friction (Lakshminarayana 1978; Mishra, Schwartz and Sharir 1987): the normals positively span all wrenches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

from kic.display import Summary, member
from kic.errors import MemberError, SingularError
from kic.grasp.contacts import ContactSet
from kic.numerics.arguments import choice, instance, integer
from kic.numerics.arrays import check_failures
from kic.numerics.conic_programs import (
    EQUALITY_TOL,
    MAX_CONE_TIGHTENING,
    Program,
    centre,
    independent,
    inside,
)

# directions are named by numbers of four digits; what is less beside the size of the grasp is none
NAMED = 1e-6
# pushes that are no more than rounding
EXACT = 1e-12


def each(
    batch: tuple[int, ...], failures: str, answer: Callable[[int], dict[str, Any]]
) -> tuple[np.ndarray, list[dict[str, Any] | None]]:
    """Answers of all members, None for those that have none, and which have one.

    Raises
    ------
    InputError
        For other `failures` than "raise" and "mask".
    MemberError
        Of the first member without an answer, with the indices of all in `failed`; unless they are masked.
    """
    check_failures(failures)
    answers: list[dict[str, Any] | None] = []
    errors: list[tuple[tuple[int, ...], MemberError]] = []
    for i in range(prod(batch)):
        try:
            answers.append(answer(i))
        except MemberError as error:
            answers.append(None)
            errors.append((tuple(int(k) for k in np.unravel_index(i, batch)), error))
    if errors and failures == "raise":
        first = errors[0][1]
        where = [index for index, _ in errors]
        first.numbers["failed"] = first.failed = where
        if batch:
            those = ", ".join(str(list(index)) for index in where[:4])
            first.message += f" (Members {those}{' …' if where[4:] else ''} of batch {batch}.)"
        raise first
    return np.array([a is not None for a in answers], dtype=bool).reshape(batch), answers


def gathered(
    answers: Sequence[dict[str, Any] | None], batch: tuple[int, ...], key: str, tail: tuple[int, ...]
) -> np.ndarray:
    """One part of the answers (..., *tail), NaN for members without."""
    whole = np.full((len(answers), *tail), np.nan)
    for i, answer in enumerate(answers):
        if answer is not None:
            whole[i] = answer[key]
    return whole.reshape((*batch, *tail))


def members(contacts: ContactSet, batch: tuple[int, ...]) -> list[SingleGrasp]:
    """One after the other the grasps of a batch, to which that of the contacts is spread."""
    parts = contacts.points, contacts.columns, contacts.mu, contacts.gamma, contacts.about
    tails = (a.shape[len(contacts.batch) :] for a in parts)
    arrays = [
        np.broadcast_to(a, (*batch, *tail)).reshape(prod(batch), *tail)
        for a, tail in zip(parts, tails, strict=True)
    ]
    return [SingleGrasp(contacts, *(a[i] for a in arrays)) for i in range(prod(batch))]


class SingleGrasp:
    """One grasp of a batch in numbers of order 1: moments about the contacts' middle, over their size.

    Components x of force are such that every cone is xₙ ≥ |x_others|; f = `unit` · x.

    Attributes
    ----------
    map : (W, m)
        Wrench for x.
    unit : (m,)
        Forces for x: 1, μ, μ, γ.
    length : float
        Size of the grasp.
    """

    def __init__(
        self,
        contacts: ContactSet,
        points: np.ndarray,
        columns: np.ndarray,
        mu: np.ndarray,
        gamma: np.ndarray,
        about: np.ndarray,
    ) -> None:
        self.contacts, self.about = contacts, about
        # in a plane what lies above each other is at one place
        arms = points - points.mean(axis=0)
        if contacts.plane is not None:
            arms = arms @ (np.eye(3) - np.outer(contacts.plane[0], contacts.plane[0]))
        self.middle = points.mean(axis=0)
        size = float(np.sqrt((arms**2).sum(axis=-1).mean()))
        self.length = size or float(gamma.max()) or 1.0
        sliding = np.isin(np.array(contacts.kinds), ("friction", "soft"))[contacts.owner]
        axis = contacts.axis
        self.unit = np.where(axis == 3, gamma[contacts.owner], np.where(axis == 0, 1.0, mu[contacts.owner]))
        self.unit = np.where(sliding, self.unit, 1.0)
        self.map = contacts.basis @ self._moved(columns).T * self.unit

    def wrench(self, w: np.ndarray) -> np.ndarray:
        """A wrench (W,) about the reference point, in these numbers."""
        return self.contacts.basis @ self._moved(w @ self.contacts.basis)

    def twist(self, y: np.ndarray) -> np.ndarray:
        """The motion (W,) of the reference point and of turning that y is: their power against wrenches."""
        v, omega = np.split(y @ self.contacts.basis, 2)
        omega = omega / self.length
        return self.contacts.basis @ np.concatenate([v + np.cross(omega, self.about - self.middle), omega])

    def _moved(self, six: np.ndarray) -> np.ndarray:
        """Wrenches (..., 6) about the reference point, about the middle and with moments over the size."""
        force, moment = six[..., :3], six[..., 3:]
        shifted = moment + np.cross(self.about - self.middle, force)
        return np.concatenate([force, shifted / self.length], axis=-1)

    def margins(self, f: np.ndarray) -> np.ndarray:
        """Margins (K,) of forces (m,): μ fₙ less the friction in use, fₙ without friction, ∞ where pinned."""
        found = np.empty(len(self.contacts))
        for k, (kind, span) in enumerate(zip(self.contacts.kinds, self.contacts.spans, strict=True)):
            if kind == "pinned":
                found[k] = np.inf
            elif kind == "point":
                found[k] = f[span.start]
            else:
                mu = self.unit[span.start + 1]
                weights = mu / self.unit[span.start + 1 : span.stop]
                found[k] = mu * f[span.start] - np.linalg.norm(weights * f[span.start + 1 : span.stop])
        return found

    def felt(self, y: np.ndarray, counted: np.ndarray | None = None, safety: float = 1.0) -> float:
        """What pushes against a motion y (W,) in these numbers, at least: negative where contacts can."""
        push, least = y @ self.map, np.inf
        if counted is not None:
            push = np.where(np.isin(np.arange(len(push)), counted), push, 0.0)
        for kind, span in zip(self.contacts.kinds, self.contacts.spans, strict=True):
            along, across = push[span.start], float(np.linalg.norm(push[span.start + 1 : span.stop]))
            least = min(least, -np.hypot(along, across) if kind == "pinned" else along - across / safety)
        return float(least)

    def plainer(
        self,
        y: np.ndarray,
        load: np.ndarray | None = None,
        counted: np.ndarray | None = None,
        safety: float = 1.0,
    ) -> np.ndarray:
        """A simpler motion than y that no contact resists either, where there is one, of size one.

        Along the load, or a world axis; on which a load, if there is one, does most work.
        """
        unit = np.eye(len(y))
        worth = np.zeros(len(y)) if load is None else load / np.linalg.norm(load)
        simple = [*([] if load is None else [worth]), *unit, *-unit]
        free = [
            v
            for v in simple
            if self.felt(v, counted, safety) >= -EXACT and (load is None or v @ worth > NAMED)
        ]
        return max(free, key=lambda v: round(float(v @ worth), 9)) if free else y / np.linalg.norm(y)

    def describe_load(self, twist: np.ndarray) -> str:
        """The load that does work on a motion (W,), as a force, a moment about a line, or on a screw."""
        v, omega = np.split(twist @ self.contacts.basis, 2)
        v = v + np.cross(omega, self.middle - self.about)
        turn, shift = float(np.linalg.norm(omega)), float(np.linalg.norm(v))
        if turn * self.length <= NAMED * shift:
            return f"force along {triple(v / shift, 1.0)}"
        axis = omega / turn
        pitch = float(v @ omega) / turn**2
        through = self.middle + np.cross(omega, v) / turn**2
        line = f"the line through {triple(through, self.length)} along {triple(axis, 1.0)}"
        if abs(pitch) <= NAMED * self.length:
            return f"moment about {line}"
        return f"wrench on {line} of pitch {pitch:.4g}"


def triple(a: np.ndarray, size: float) -> str:
    """Three numbers for a message; what is nothing beside a size is 0."""
    return f"({', '.join(f'{x:.4g}' if abs(x) > NAMED * size else '0' for x in a.tolist())})"


# contacts may push against a motion that is called free by so much of what they push along it
PROVED = 1e-6


@dataclass(frozen=True, repr=False)
class GraspClosure:
    """Whether contacts hold a body, and the proof; made by `form_closure` and `force_closure`.

    Attributes
    ----------
    kind : {"form", "force"}
        Without and with friction.
    contacts : ContactSet
    ok : (...) bool
        Members that could be decided.
    closed : (...) bool
        Whether every wrench can be resisted.
    margin : (...)
        From 0 (not closed) to 1 (contacts that balance by equal normal forces, without friction): of forces
        that add up to nothing, the smallest xₙ − |xₜ| over the mean xₙ, where xₜ is the friction over its
        coefficient, at its largest.
    force : (..., m)
        Those forces, which prove closure: strictly inside the cones, their wrench zero, the normal ones of
        contacts that are no pins 1 in the mean. NaN where not closed.
    twist : (..., W)
        Where not closed, the proof: a motion (velocity of the reference point, angular velocity) against
        which no contact can push, of size one over the grasp. Every load that does work on it, as gravity
        does on what falls, goes unresisted. NaN where closed.
    both : (...) bool
        Whether nothing is felt of that motion in either sense.
    missing : tuple of str
        The same in words for each member in order, "" where closed.
    """

    kind: str
    contacts: ContactSet
    ok: np.ndarray
    closed: np.ndarray
    margin: np.ndarray
    force: np.ndarray
    twist: np.ndarray
    both: np.ndarray
    missing: tuple[str, ...]

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.ok.shape

    def __bool__(self) -> bool:
        """Whether all members are closed; those without an answer are not."""
        return bool(self.closed.all())

    def summary(self) -> Summary:
        """The verdict in words with its proof, to print or to show."""
        sheet = Summary(f"{self.kind} closure of {len(self.contacts)} contacts")
        index, remark = member(self.batch)
        if remark:
            sheet.say(f"{remark}; closed: {int(self.closed.sum())} of {self.closed.size}")
        if index is None:
            return sheet
        if not self.ok[index]:
            sheet.say("undecided")
        elif self.closed[index]:
            sheet.say(f"closed, margin {self.margin[index]:.4g}")
            forces = self.force[index][:, None]
            sheet.matrix("forces that balance, inside all cones", self.contacts.components, [""], forces)
        else:
            sheet.say(f"not closed: {self.missing[0]}")
            rows = [label.replace("f", "v").replace("m", "w") for label in self.contacts.labels]
            sheet.matrix("motion that no contact resists", rows, [""], self.twist[index][:, None])
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def form_closure(contacts: ContactSet, failures: Literal["raise", "mask"] = "raise") -> GraspClosure:
    """Whether contacts hold a body at rest by their places alone, to first order and without friction.

    Friction is not counted, whatever the kinds; pins hold in both senses. Decided by a linear program. Bodies
    that only curvature holds are not closed to first order.

    Parameters
    ----------
    contacts : ContactSet
    failures : {"raise", "mask"}
        What becomes of members that can not be decided.

    Returns
    -------
    GraspClosure
        With the motion that is left where not closed.

    Raises
    ------
    InputError
        For what is no `ContactSet`.
    SingularError
        For a member on the brink, where rounding decides.

    Examples
    --------
    >>> import kic
    >>> sides = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]
    >>> inward = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0]]
    >>> kic.form_closure(kic.ContactSet(sides, inward, "point", plane=[0, 0, 1])).missing
    ('cannot resist, in either sense, a moment about the line through (0, 0, 0) along (0, 0, 1)',)
    """
    held = _checked(contacts)
    pinned = np.array([kind == "pinned" for kind in held.kinds])
    counted = np.flatnonzero((held.axis == 0) | pinned[held.owner])
    return _closure("form", held, counted, None, failures)


def force_closure(
    contacts: ContactSet,
    method: Literal["cones", "pyramids"] = "cones",
    edges: int = 24,
    failures: Literal["raise", "mask"] = "raise",
) -> GraspClosure:
    """Whether contacts with friction can resist every wrench, if they press hard enough.

    Parameters
    ----------
    contacts : ContactSet
    method : {"cones", "pyramids"}
        With the cones as they are, by a second-order cone program (in a plane a linear one), or with pyramids
        inside and around them, by linear programs: needs no solver, and refuses where the two disagree.
    edges : int
        Of the pyramids, 4 at least; of soft fingers as many around the normal in half as many rings.
    failures : {"raise", "mask"}
        What becomes of members that can not be decided.

    Returns
    -------
    GraspClosure
        With the wrench that is missing where not closed.

    Raises
    ------
    InputError
        For what is no `ContactSet`, another method, or too few edges.
    SingularError
        For a member on the brink, where rounding or the pyramids decide.
    KicError
        Where Clarabel is needed and not installed.

    Examples
    --------
    Two hard fingers let a ball spin about the line between them:

    >>> import kic
    >>> c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.4)
    >>> kic.force_closure(c).missing
    ('cannot resist, in either sense, a moment about the line through (0, 0, 0) along (1, 0, 0)',)
    """
    held = _checked(contacts)
    choice("method", method, ("cones", "pyramids"))
    integer("edges", edges, 4)
    return _closure(
        "force", held, np.arange(len(held.axis)), int(edges) if method == "pyramids" else None, failures
    )


def _checked(contacts: Any) -> ContactSet:
    return instance("contacts", contacts, ContactSet)


def _closure(
    kind: str, contacts: ContactSet, counted: np.ndarray, edges: int | None, failures: str
) -> GraspClosure:
    """The verdict with the components `counted`, by cones or pyramids."""
    grasps = members(contacts, contacts.batch)
    ok, answers = each(contacts.batch, failures, lambda i: _decided(grasps[i], counted, edges))
    wide, high = (len(contacts.axis),), (len(contacts.labels),)
    return GraspClosure(
        kind,
        contacts,
        ok,
        gathered(answers, contacts.batch, "closed", ()) == 1,
        gathered(answers, contacts.batch, "margin", ()),
        gathered(answers, contacts.batch, "force", wide),
        gathered(answers, contacts.batch, "twist", high),
        gathered(answers, contacts.batch, "both", ()) == 1,
        tuple("" if a is None else a["missing"] for a in answers),
    )


def _decided(grasp: SingleGrasp, counted: np.ndarray, edges: int | None) -> dict[str, Any]:
    """Verdict and proof of one member."""
    contacts = grasp.contacts
    pinned = np.array([k == "pinned" for k in contacts.kinds])[contacts.owner[counted]]
    G = grasp.map[:, counted]
    U, sigma, _ = np.linalg.svd(G)
    rank = int((sigma > EQUALITY_TOL * sigma.max(initial=0.0)).sum())
    if rank < len(G):
        return _open(grasp, _plainest(U[:, rank:]), True, counted)
    # what pins resist is resisted in both senses; the others have to span the rest
    rest, press = _beyond(G[:, pinned]), G[:, ~pinned]
    sizes = tuple(np.unique(contacts.owner[counted][~pinned], return_counts=True)[1].tolist())
    if not sizes:
        return _shut(grasp, counted, np.zeros(0), 1.0)
    if edges is None:
        x, y, t = _deepest(rest.T @ press, np.eye(press.shape[1]), sizes)
    else:
        x, y, t = _between(rest.T @ press, sizes, edges)
    if t > MAX_CONE_TIGHTENING:
        return _shut(grasp, counted, x * len(sizes), t * len(sizes))
    return _open(grasp, rest @ y, False, counted)


def _deepest(
    E: np.ndarray, made_of: np.ndarray, sizes: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Forces deepest inside cones that add up to nothing, the multipliers of that, and how deep.

    The forces are `made_of` times what is to be found, whose blocks in cones have these sizes.
    """
    N = made_of.shape[1]
    _, T = independent(E @ made_of, np.zeros(len(E)))
    program = Program(np.zeros(N), T @ E @ made_of, np.zeros(len(T)), -np.eye(N), np.zeros(N), sizes)
    found = centre(program, bound=1.0)
    return made_of @ found.x, T.T @ found.y, found.margin


def _between(E: np.ndarray, sizes: tuple[int, ...], edges: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The same by pyramids inside the cones, or where these fail around them."""
    for around in (False, True):
        made_of = _pyramids(sizes, edges, around)
        x, y, t = _deepest(E, made_of, (1,) * made_of.shape[1])
        if around == (t <= MAX_CONE_TIGHTENING):
            return x, y, t if around else float(inside(x, sizes).min())
    raise SingularError(
        f"Force closure lies between pyramids of {edges} edges inside and around the cones. Give more "
        "`edges`, or use method='cones'.",
        edges=edges,
    )


def _pyramids(sizes: tuple[int, ...], edges: int, around: bool) -> np.ndarray:
    """Edges of pyramids inside or around unit cones as columns, block by block."""
    whole = np.zeros((sum(sizes), 0))
    for size, end in zip(sizes, np.cumsum(sizes), strict=True):
        directions, reach = sphere(size - 1, edges)
        rays = np.ones((size, len(directions)))
        rays[1:] = directions.T / (reach if around else 1.0)
        part = np.zeros((len(whole), len(directions)))
        part[end - size : end] = rays
        whole = np.concatenate([whole, part], axis=1)
    return whole


@lru_cache(maxsize=32)
def sphere(dimension: int, edges: int) -> tuple[np.ndarray, float]:
    """Points (n, d) of the unit sphere of 0 to 3 dimensions, and the radius of the ball that they enclose."""
    from scipy.spatial import ConvexHull

    if dimension == 0:
        return np.zeros((1, 0)), 1.0
    if dimension == 1:
        return np.array([[1.0], [-1.0]]), 1.0
    turn = 2 * np.pi * np.arange(edges) / edges
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    if dimension == 2:
        return ring, float(np.cos(np.pi / edges))
    high = np.pi * np.arange(1, edges // 2) / (edges // 2)
    body = np.concatenate(
        [np.concatenate([np.sin(a) * ring, np.full((edges, 1), np.cos(a))], axis=1) for a in high]
    )
    points = np.concatenate([body, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
    return points, float(-ConvexHull(points).equations[:, -1].max())


def _beyond(pins: np.ndarray) -> np.ndarray:
    """Orthonormal wrenches (W, r) that pins do not resist."""
    if not pins.shape[1]:
        return np.eye(len(pins))
    U, sigma, _ = np.linalg.svd(pins)
    return U[:, int((sigma > EQUALITY_TOL * sigma[0]).sum()) :]


def _plainest(null: np.ndarray) -> np.ndarray:
    """Of the directions that orthonormal columns span, the one nearest to a moment or force along an axis."""
    nearest = null @ null.T
    best = int(np.argmax(np.round(np.linalg.norm(nearest, axis=0), 9)[::-1]))
    y = nearest[:, len(null) - 1 - best]
    return y / np.linalg.norm(y)


def _shut(grasp: SingleGrasp, counted: np.ndarray, x: np.ndarray, margin: float) -> dict[str, Any]:
    """Closed, with forces x of those that are no pins; pins balance what these leave."""
    contacts = grasp.contacts
    pinned = np.array([k == "pinned" for k in contacts.kinds])[contacts.owner[counted]]
    whole = np.zeros(len(contacts.axis))
    whole[counted[~pinned]] = x
    if pinned.any():
        whole[counted[pinned]] = -np.linalg.lstsq(grasp.map[:, counted[pinned]], grasp.map @ whole)[0]
    twist = np.full(len(contacts.labels), np.nan)
    force = grasp.unit * whole
    return {"closed": 1, "margin": margin, "force": force, "twist": twist, "both": 0, "missing": ""}


def _open(grasp: SingleGrasp, y: np.ndarray, both: bool, counted: np.ndarray) -> dict[str, Any]:
    """Not closed: along y contacts may push, against it none can."""
    size = float(np.linalg.norm(y))
    if not (size > 0 and grasp.felt(y, counted) >= -PROVED * size):
        raise SingularError(
            "Closure can not be decided here: neither forces that balance inside the cones nor a motion that "
            "no contact resists was found to rounding. The grasp is on the brink."
        )
    twist = grasp.twist(y / size if both else grasp.plainer(y, None, counted))
    sense = "in either sense, " if both else ""
    return {
        "closed": 0,
        "margin": 0.0,
        "force": np.full(len(grasp.unit), np.nan),
        "twist": twist,
        "both": int(both),
        "missing": f"cannot resist{', ' + sense if both else ' '}a {grasp.describe_load(twist)}",
    }
