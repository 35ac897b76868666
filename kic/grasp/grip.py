"""Grip forces: the least contact forces that hold a load, within friction and joint efforts.

With the external wrench w on the body the contact forces f fulfil G f + w = 0, each within its friction cone
(Murray, Li and Sastry 1994, section 5.3; Boyd and Wegbreit 2007 for the cone program). Fingers that hold an
object and feet that stand on ground are the same; of a walker the load is its weight at its centre of mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np

from kic.display import Summary, member
from kic.errors import InputError, LimitError, MemberError, SingularError, short_repr
from kic.grasp.contacts import ContactSet, real
from kic.grasp.force_closure import SingleGrasp, each, gathered, members
from kic.numerics.arguments import names_of
from kic.numerics.arrays import as_array, broadcast_batches, numbers
from kic.numerics.conic_programs import (
    EQUALITY_TOL,
    MAX_CONE_TIGHTENING,
    Program,
    best,
    centre,
    independent,
    solve,
)

# contacts that can not press, as far as the solver sees it, give less than this share of the load
IDLE = 1e-4
# limits whose multipliers are less than this share of the largest are not in the way
IN_THE_WAY = 1e-6


@dataclass(frozen=True)
class Fingers:
    """Joints behind the contacts of one grasp: efforts own + Jᵀ f between low and high."""

    J: np.ndarray
    low: np.ndarray
    high: np.ndarray
    own: np.ndarray
    names: tuple[str, ...]


class GripProgram:
    """A load on one grasp with all that bounds the forces that hold it.

    Unknowns are components x of the contacts that are `active`, f = `force` · unit · x, then, where loads
    along `direction` are added, how much of it.
    """

    def __init__(
        self,
        grasp: SingleGrasp,
        wrench: np.ndarray,
        fingers: Fingers,
        least: float = 0.0,
        safety: float = 1.0,
        direction: np.ndarray | None = None,
    ) -> None:
        self.grasp, self.fingers, self.given = grasp, fingers, wrench
        self._level = least
        load = grasp.wrench(wrench)
        self.added = None if direction is None else grasp.wrench(direction)
        self._added_size = 1.0 if self.added is None else float(np.linalg.norm(self.added))
        rows = fingers.J.T * grasp.unit
        size = np.linalg.norm(rows, axis=-1)
        self.moves = size > 0
        self._fixed()
        self._rows = rows[self.moves] / size[self.moves, None]
        room = np.stack(
            [(a - fingers.own)[self.moves] / size[self.moves] for a in (fingers.low, fingers.high)]
        )
        sizes = [float(np.linalg.norm(load)), least, *np.abs(room[np.isfinite(room)])]
        self.force = max(sizes[:2]) or next((x for x in sizes if x), 1.0)
        self.load, self.room = load / self.force, room / self.force
        self.least, self.safety = least / self.force, safety
        self.pinned = np.array([kind == "pinned" for kind in grasp.contacts.kinds])
        self.joints = [name for name, moves in zip(fingers.names, self.moves, strict=True) if moves]

    def _fixed(self) -> None:
        """Joints that no contact reaches must bear their own efforts."""
        f = self.fingers
        over = ~self.moves & ((f.own < f.low) | (f.own > f.high))
        if over.any():
            names = [name for name, bad in zip(f.names, over, strict=True) if bad]
            raise LimitError(
                f"No grip keeps joint {', '.join(names)} within its limits: its effort {f.own[over][0]:g} is "
                "not that of a contact. Widen them, or change `offset`.",
                scale=None,
                binding=tuple(names),
            )

    def columns(self, active: np.ndarray) -> np.ndarray:
        """Which components belong to active contacts."""
        return active[self.grasp.contacts.owner]

    def program(
        self, active: np.ndarray, extras: bool = True
    ) -> tuple[Program, list[tuple[str, str]], np.ndarray]:
        """Feasible forces: the program without cost, what its blocks are, and the rows T of its equalities.

        Raises
        ------
        SingularError
            Where the equalities contradict one another.
        """
        grasp, contacts, keep = self.grasp, self.grasp.contacts, self.columns(active)
        G = grasp.map[:, keep]
        extra = [] if self.added is None else [self.added[:, None] / self._added_size]
        G = np.concatenate([G, *extra], axis=1)
        N = G.shape[1]
        remainder, T = independent(G, -self.load)
        if np.linalg.norm(remainder) > EQUALITY_TOL:
            y = -remainder / np.linalg.norm(remainder)
            raise self.refusal(y, "in either sense, ")
        rows = np.zeros((len(self._rows), N))
        rows[:, : int(keep.sum())] = self._rows[:, keep]
        low, high = self.room
        level = (low == high) if extras else np.zeros(len(low), dtype=bool)
        if level.any():
            both = np.concatenate([G, rows[level]])
            remainder, T = independent(both, np.concatenate([-self.load, high[level]]))
            if np.linalg.norm(remainder) > EQUALITY_TOL * (1 + np.abs(high[level]).max()):
                raise self._why(
                    active, [("limit", n) for n, at in zip(self.joints, level, strict=True) if at]
                )
        E, e = np.concatenate([G, rows[level]]), np.concatenate([-self.load, high[level]])
        names: list[tuple[str, str]] = []
        A, h, sizes = [np.zeros((0, N))], [np.zeros(0)], []
        place = np.cumsum(keep) - 1
        for k in np.flatnonzero(active & ~self.pinned):
            span = contacts.spans[k]
            width = span.stop - span.start
            block = np.zeros((width, N))
            block[np.arange(width), place[span]] = [-1.0] + [-self.safety] * (width - 1)
            A.append(block)
            h.append(np.zeros(width))
            sizes.append(width)
            names.append(("contact", contacts.names[k]))
            if extras and self.least:
                A.append(block[:1])
                h.append(np.array([-self.least]))
                sizes.append(1)
                names.append(("least", contacts.names[k]))
        for sign, limit in ((1.0, high), (-1.0, -low)):
            for j in np.flatnonzero(np.isfinite(limit) & ~level) if extras else ():
                A.append(sign * rows[j : j + 1])
                h.append(limit[j : j + 1])
                sizes.append(1)
                names.append(("limit", self.joints[j]))
        if self.added is not None:
            A.append(-np.eye(N)[-1:])
            h.append(np.zeros(1))
            sizes.append(1)
            names.append(("added", ""))
        program = Program(np.zeros(N), T @ E, T @ e, np.concatenate(A), np.concatenate(h), tuple(sizes))
        return program, names, T

    def inside(self) -> tuple[np.ndarray, Program]:
        """Contacts that can press, and the program with these, which has points inside all cones.

        Raises
        ------
        SingularError
            Where there is none.
        """
        active = np.ones(len(self.pinned), dtype=bool)
        while True:
            program, names, _ = self.program(active)
            if not program.sizes:
                return active, program
            middle = centre(program)
            if middle.margin > MAX_CONE_TIGHTENING:
                return active, program
            if middle.margin < -MAX_CONE_TIGHTENING:
                weight = middle.z[program.starts]
                heavy = weight > IN_THE_WAY * weight.max()
                raise self._why(active, [name for name, at in zip(names, heavy, strict=True) if at])
            idle = self._idle(program, names)
            active = active & ~np.isin(np.array(self.grasp.contacts.names), idle)

    def _idle(self, program: Program, names: list[tuple[str, str]]) -> list[str]:
        """Contacts that can give nothing, whatever others do; where a limit is in the way, the refusal."""
        stuck = [b for b in range(len(names)) if centre(program, np.array([b])).margin <= MAX_CONE_TIGHTENING]
        idle = [names[b][1] for b in stuck]
        if stuck and all(names[b][0] == "contact" for b in stuck):
            first = program.starts[stuck]
            # the most that they can give together, at most 1
            pushes = -program.A[first].sum(axis=0)
            A, h = np.concatenate([program.A, [pushes]]), np.append(program.h, 1.0)
            most = replace(program, cost=-pushes, A=A, h=h, sizes=(*program.sizes, 1))
            if pushes @ solve(most)[0] <= IDLE:
                return idle
        what = ", ".join(dict.fromkeys(f"{kind} {name}".strip() for kind, name in (names[b] for b in stuck)))
        raise SingularError(
            f"The load is held on the brink at best, without any margin at: {what or 'all contacts'}. More "
            "friction, wider limits or other contacts are needed.",
            wrench=self.given,
            at=tuple(idle),
        )

    def _why(self, active: np.ndarray, names: list[tuple[str, str]]) -> MemberError:
        """The load can not be held: by the contacts at all, or only not with the limits among these."""
        program, _, T = self.program(active, extras=False)
        alone = centre(program)
        if alone.margin < -MAX_CONE_TIGHTENING:
            return self.refusal(T.T @ alone.y, "")
        joints, pressed = (
            tuple(dict.fromkeys(name for kind, name in names if kind == what)) for what in ("limit", "least")
        )
        parts = [f"the effort limits of {', '.join(joints)}"] if joints else []
        parts += [f"`least` at contact {', '.join(pressed)}"] if pressed else []
        share = self._share()
        much = "nothing of it" if share is None else f"{share:.6g} of it"
        return LimitError(
            f"The contacts could hold the load, but within {' and '.join(parts) or 'all limits'} they hold "
            f"{much}. Widen these, or grip elsewhere.",
            scale=share,
            binding=(*joints, *(f"contact {name}" for name in pressed)),
            wrench=self.given,
        )

    def _share(self) -> float | None:
        """How much of the load is held within the limits; None where not even no load is."""
        if self.added is not None or not self.load.any():
            return None
        more = np.zeros_like(self.given), self.fingers, self._level, self.safety
        try:
            GripProgram(self.grasp, *more).inside()
            return GripProgram(self.grasp, *more, self.given).most()
        except MemberError:
            return None

    def refusal(self, y: np.ndarray, sense: str) -> SingularError:
        """No contact pushes against this motion, on which the load does work."""
        twist = self.grasp.twist(self.grasp.plainer(y, self.load, None, self.safety))
        words = self.grasp.describe_load(twist)
        shared = ", at this `safety`" if self.safety > 1 else ""
        return SingularError(
            f"The contacts can not hold the load{shared}: {sense}they cannot resist a {words}, and the load "
            "has a part of it. Press on other places, with more friction, or add contacts.",
            twist=twist,
            wrench=self.given,
        )

    def held(self, criterion: str) -> dict[str, Any]:
        """The best forces with margins and efforts."""
        own = self.fingers.own
        if not (
            self.load.any() or self.least or (own < self.fingers.low).any() or (own > self.fingers.high).any()
        ):
            nothing = np.zeros(len(self.grasp.unit))
            return {"force": nothing, "margin": self.grasp.margins(nothing), "effort": own}
        active, program = self.inside()
        keep, contacts = self.columns(active), self.grasp.contacts
        whole = np.zeros(len(keep))
        if keep.any():
            whole[keep] = best(self._priced(program, active, criterion))[: keep.sum()]
        missed = float(np.linalg.norm(self.grasp.map @ whole + self.load))
        f = self.force * self.grasp.unit * whole
        margin = self.grasp.margins(f)
        effort = self.fingers.own + self.fingers.J.T @ f
        within = np.clip(effort, self.fingers.low, self.fingers.high)
        off = float(np.abs(effort - within).max(initial=0.0)) / (1 + float(np.abs(effort).max(initial=0.0)))
        if missed > EQUALITY_TOL * (1 + np.abs(whole).max()) or margin.min() < 0 or off > EQUALITY_TOL:
            raise SingularError(
                f"The forces found miss the load by {missed:.1e} of it with a least margin of "
                f"{float(margin.min()):.1e}; they are not accepted.",
                missed=missed,
                contacts=contacts.names,
            )
        return {"force": f, "margin": margin, "effort": within}

    def _priced(self, p: Program, active: np.ndarray, criterion: str) -> Program:
        """The program with its cost."""
        keep, contacts = self.columns(active), self.grasp.contacts
        if criterion == "minimum norm":
            weight = np.where(contacts.axis == 3, 1.0, self.grasp.unit)[keep]
            return replace(p, square=np.diag(weight**2))
        N = len(p.cost)
        place = np.cumsum(keep) - 1
        blocks, sizes = [np.concatenate([p.A, np.zeros((len(p.h), 1))], axis=1)], list(p.sizes)
        for k in np.flatnonzero(active):
            span = contacts.spans[k]
            # the last unknown is not below the normal force, nor below the whole of a pin's
            rows = np.zeros((1 + (span.stop - span.start) * int(self.pinned[k]), N + 1))
            rows[0, -1] = -1.0
            if self.pinned[k]:
                rows[np.arange(1, len(rows)), place[span]] = -1.0
            else:
                rows[0, place[span.start]] = 1.0
            blocks.append(rows)
            sizes.append(len(rows))
        A = np.concatenate(blocks)
        h = np.append(p.h, np.zeros(len(A) - len(p.h)))
        E = np.concatenate([p.E, np.zeros((len(p.e), 1))], axis=1)
        return Program(np.append(np.zeros(N), 1.0), E, p.e, A, h, tuple(sizes))

    def most(self) -> float:
        """The largest multiple of the direction that can be added to a load that is held."""
        program, _, _ = self.program(np.ones(len(self.pinned), dtype=bool))
        if centre(program, np.array([len(program.sizes) - 1])).margin <= MAX_CONE_TIGHTENING:
            return 0.0
        _, program = self.inside()
        last = np.eye(len(program.cost))[-1]
        # where a share of forces goes on for ever, nothing bounds it
        E, e = np.concatenate([program.E, [last]]), np.append(np.zeros(len(program.e)), 1.0)
        remainder, T = independent(E, e)
        if np.linalg.norm(remainder) <= EQUALITY_TOL:
            onward = replace(program, E=T @ E, e=T @ e, h=np.zeros(len(program.h)))
            if centre(onward).margin >= -MAX_CONE_TIGHTENING:
                return np.inf
        return float(best(replace(program, cost=-last))[-1]) * self.force / self._added_size


class GripProblem:
    """Loads, limits and fingers of a batch of grasps; arguments as of `grip_forces` and `largest_load`.

    Attributes
    ----------
    batch : tuple of int
    names : tuple of str
        Of the joints.
    """

    def __init__(
        self,
        contacts: ContactSet,
        wrench: Any,
        direction: Any,
        least: Any,
        safety: Any,
        jacobian: Any,
        limits: Any,
        lower: Any,
        offset: Any,
        joints: Sequence[str] | None,
    ) -> None:
        if not isinstance(contacts, ContactSet):
            raise InputError(f"Expected `contacts` to be a ContactSet, got {short_repr(contacts)}.")
        size = len(contacts.labels)
        load = np.zeros(size) if wrench is None else real("wrench", as_array("wrench", wrench, size))
        way = np.zeros(size)
        if direction is not None:
            way = real("direction", as_array("direction", direction, size))
            if not way.any(axis=-1).all():
                raise InputError("Expected `direction` to have a size, got zeros.")
        self._least, self._safety = _one("least", least, 0.0), _one("safety", safety, 1.0)
        J, low, high, own = _fingers(contacts, jacobian, limits, lower, offset)
        self.names = _joint_names(joints, J.shape[-1])
        self.batch = broadcast_batches(
            contacts=contacts.batch,
            wrench=load.shape[:-1],
            direction=way.shape[:-1],
            jacobian=J.shape[:-2],
            limits=low.shape[:-1],
        )
        self._grasps = members(contacts, self.batch)
        parts = {"wrench": load, "direction": way, "lower": low, "upper": high, "own": own}
        self._parts = {key: _flat(a, self.batch, 1) for key, a in parts.items()}
        self._J = _flat(J, self.batch, 2)

    def whole(self, key: str) -> np.ndarray:
        """One argument for the whole batch."""
        a = self._parts[key]
        return a.reshape(*self.batch, a.shape[-1])

    def demand(self, i: int, added: bool = False) -> GripProgram:
        """What member i is asked to hold, with loads added along the direction or not."""
        wrench, direction, low, high, own = (a[i] for a in self._parts.values())
        fingers = Fingers(self._J[i], low, high, own, self.names)
        return GripProgram(
            self._grasps[i], wrench, fingers, self._least, self._safety, direction if added else None
        )


def _one(name: str, value: Any, smallest: float) -> float:
    """One number, not below another."""
    a = real(name, as_array(name, value))
    if a.ndim or a < smallest:
        raise InputError(
            f"Expected `{name}` to be one number of at least {smallest:g}, got {short_repr(value)}."
        )
    return float(a)


def _fingers(
    contacts: ContactSet, jacobian: Any, limits: Any, lower: Any, offset: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """J (..., m, N), lower and upper limits and efforts without contact (..., N)."""
    width = len(contacts.axis)
    if jacobian is None:
        for name, value in (("limits", limits), ("lower", lower), ("offset", offset)):
            if value is not None:
                raise InputError(f"`{name}` is of the fingers' joints: give their `jacobian` too.")
        none = np.zeros(0)
        return np.zeros((width, 0)), none, none, none
    shape = numbers("jacobian", jacobian).shape
    J = real("jacobian", as_array("jacobian", jacobian, width, shape[-1] if shape else 0))
    N = J.shape[-1]
    high = np.full(N, np.inf) if limits is None else _limit("limits", limits, N)
    low = -high if lower is None else _limit("lower", lower, N)
    own = np.zeros(N) if offset is None else real("offset", as_array("offset", offset, N))
    batch = broadcast_batches(limits=high.shape[:-1], lower=low.shape[:-1], offset=own.shape[:-1])
    low, high, own = (np.broadcast_to(a, (*batch, N)) for a in (low, high, own))
    possible = (low <= high) & (low < np.inf) & (high > -np.inf)
    if not possible.all():
        where = [int(i) for i in np.argwhere(~possible)[0]]
        raise InputError(
            f"Expected limits that leave something, got {low[tuple(where)]:g} to {high[tuple(where)]:g} at "
            f"{where}.",
            entries=where,
        )
    return J, low, high, own


def _limit(name: str, value: Any, size: int) -> np.ndarray:
    """Efforts, or ±∞ where there is no limit."""
    a = real(name, as_array(name, value, size, finite=False))
    if np.isnan(a).any():
        raise InputError(f"Expected `{name}` to be numbers or infinite, got NaN.")
    return a


def _joint_names(joints: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """A name for every joint."""
    if joints is None:
        return tuple(map(str, range(1, count + 1)))
    names = names_of(joints, "joints")
    if len(names) != count:
        raise InputError(f"Expected `joints` to be {count} names, got {short_repr(joints)}.")
    return names


def _flat(a: np.ndarray, batch: tuple[int, ...], rank: int) -> np.ndarray:
    """Members of a batch below each other (B, …), whose last axes are no batch."""
    tail = a.shape[a.ndim - rank :]
    return np.broadcast_to(a, (*batch, *tail)).reshape(prod(batch), *tail)


CRITERIA = ("minimum norm", "minimum largest")
Criterion = Literal["minimum norm", "minimum largest"]
# a limit binds where less than this share of the load is left to it
AT_LIMIT = 1e-6


@dataclass(frozen=True, repr=False)
class GripForces:
    """Contact forces that hold a load; made by `grip_forces`.

    Attributes
    ----------
    contacts : ContactSet
    criterion : str
        What is least.
    ok : (...) bool
        Members that hold.
    wrench : (..., W)
        The load.
    force : (..., m)
        Components of all contacts in their axes: what they exert on the body. NaN where nothing holds.
    margin : (..., K)
        What is left before a contact slips: μ fₙ − |fₜ|, of soft fingers μ (fₙ − √((fₜ/μ)² + (m/γ)²));
        without friction fₙ, before it leaves; ∞ where pinned. Never negative.
    effort : (..., N)
        Efforts of the joints, with no joints where no `jacobian` was given.
    lower, upper : (..., N)
        Their limits.
    joints : tuple of str
        Their names.
    """

    contacts: ContactSet
    criterion: str
    ok: np.ndarray
    wrench: np.ndarray
    force: np.ndarray
    margin: np.ndarray
    effort: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    joints: tuple[str, ...]

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.ok.shape

    @property
    def normal(self) -> np.ndarray:
        """Normal forces (..., K)."""
        return self.force[..., self.contacts.axis == 0]

    @property
    def on_body(self) -> tuple[np.ndarray, np.ndarray]:
        """Forces and moments (..., K, 3) on the body in world axes, each at its contact."""
        return self.contacts.loads(self.force)

    @property
    def binding(self) -> tuple[str, ...]:
        """What the grip leans on, in any member: contacts about to slip, and joints at their limits."""
        size = np.abs(self.force).max(axis=-1, initial=0.0)[..., None]
        slips = self.margin <= AT_LIMIT * size
        room = np.minimum(self.upper - self.effort, self.effort - self.lower)
        stops = room <= AT_LIMIT * np.abs(self.effort).max(axis=-1, initial=0.0)[..., None]
        both = np.concatenate([slips, stops], axis=-1)
        there = np.atleast_1d(both.reshape(-1, both.shape[-1]).any(axis=0))
        names = [f"contact {name}" for name in self.contacts.names] + [
            f"joint {name}" for name in self.joints
        ]
        return tuple(name for k, name in enumerate(names) if there[k])

    def summary(self) -> Summary:
        """Labelled tables of forces, margins and efforts, to print or to show."""
        sheet = Summary(f"grip forces on the body, {self.criterion}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        force, moment = (a[index] for a in self.on_body)
        columns = ("normal", "margin", "fx", "fy", "fz", "mx", "my", "mz")
        first = np.stack([self.normal[index], self.margin[index]], axis=-1)
        rows = [f"{n} ({k})" for n, k in zip(self.contacts.names, self.contacts.kinds, strict=True)]
        sheet.matrix("contacts, world axes", rows, columns, np.concatenate([first, force, moment], axis=-1))
        sheet.matrix("load", self.contacts.labels, [""], self.wrench[index][:, None])
        if self.joints:
            three = np.stack([self.effort[index], self.lower[index], self.upper[index]], axis=-1)
            sheet.matrix("T (efforts)", self.joints, ("T", "lower", "upper"), three)
        if self.binding:
            sheet.say(f"\nat their limits: {', '.join(self.binding)}")
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def grip_forces(
    contacts: ContactSet,
    wrench: Any,
    criterion: Criterion = "minimum norm",
    *,
    least: float = 0.0,
    safety: float = 1.0,
    jacobian: Any = None,
    limits: Any = None,
    lower: Any = None,
    offset: Any = None,
    joints: Sequence[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> GripForces:
    """Least contact forces f that hold a load: G f + w = 0, within friction and joint efforts.

    The answer is checked: its wrench to 1e-9 of the load, and no margin negative. Where rounding leaves one
    negative, the best is sought with that much more margin, at most 1e-7 of the load; what is held with less
    than that at best is refused as on the brink. The cost is the least to 1e-8 of itself, and the forces are
    those of the least to the square root of that where the cost hardly feels them.

    Parameters
    ----------
    contacts : ContactSet
    wrench : (..., W) array_like
        External force and moment on the body about the contacts' reference point, as weight and inertia
        forces; in a plane two forces and a moment, in the order of ``contacts.labels``.
    criterion : {"minimum norm", "minimum largest"}
        The least sum of squares of all components, moments over their γ; or the least largest normal force
        (of pins the size of the force), where several grips may have the same and one of them is given.
    least : float
        Normal force that every contact has at least (pins excepted): the level of the internal grip.
    safety : float
        Divides the coefficients of friction, 1 or more; margins are those of the undivided ones.
    jacobian : (..., m, N) array_like, optional
        Of the fingers, as `ContactSet.jacobian` gives it: efforts are T = offset + Jᵀ f.
    limits, lower : (..., N) array_like, optional
        Largest and smallest efforts; without `lower` they are ±limits. Infinite ones are none.
    offset : (..., N) array_like, optional
        Efforts that the fingers take without contact, as for their own weight.
    joints : sequence of N str, optional
        Names of the joints.
    failures : {"raise", "mask"}
        What becomes of members that can not hold.

    Returns
    -------
    GripForces

    Raises
    ------
    InputError
        For other shapes, words or ranges, limits or `offset` without `jacobian`, limits below the lower ones.
    SingularError
        Where the contacts can not hold the load. Carries `twist` (W,): they push along it only, and the load
        does work on it.
    LimitError
        Where they could, but not within the limits or with `least`. Carries `scale`, the share of the load
        that is held (None if none is), and `binding`, the joints and contacts that stand in the way.
    KicError
        Where Clarabel is needed and not installed.

    Examples
    --------
    Two fingers lift a block of 3 N; friction 0.5 takes 3 N from each:

    >>> import kic
    >>> c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.5,
    ...     plane=[0, 0, 1])
    >>> kic.grip_forces(c, [0, -3, 0], "minimum largest").normal.round(6)
    array([3., 3.])
    """
    if criterion not in CRITERIA:
        raise InputError(f"Expected `criterion` to be of {', '.join(CRITERIA)}, got {short_repr(criterion)}.")
    asked = GripProblem(contacts, wrench, None, least, safety, jacobian, limits, lower, offset, joints)
    ok, answers = each(asked.batch, failures, lambda i: asked.demand(i).held(criterion))
    tails = {"force": len(contacts.axis), "margin": len(contacts), "effort": len(asked.names)}
    found = {key: gathered(answers, asked.batch, key, (size,)) for key, size in tails.items()}
    given = {key: asked.whole(key) for key in ("wrench", "lower", "upper")}
    return GripForces(contacts, criterion, ok, joints=asked.names, **found, **given)


def largest_load(
    contacts: ContactSet,
    direction: Any,
    wrench: Any = None,
    *,
    least: float = 0.0,
    safety: float = 1.0,
    jacobian: Any = None,
    limits: Any = None,
    lower: Any = None,
    offset: Any = None,
    joints: Sequence[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> np.ndarray:
    """How much of a wrench can be added to a load before no contact forces hold it.

    The static stability margin of a walker is the load that is added when its weight shifts: with `direction`
    the moment of its weight at one metre, how many metres.

    Parameters
    ----------
    contacts : ContactSet
    direction : (..., W) array_like
        The wrench that grows, as `wrench` in `grip_forces`.
    wrench : (..., W) array_like, optional
        The load that is there; none by default.
    least, safety, jacobian, limits, lower, offset, joints, failures
        As in `grip_forces`.

    Returns
    -------
    (...) ndarray
        Largest multiple of `direction`, never too large; infinite where nothing bounds it, NaN where the load
        itself is not held.

    Raises
    ------
    InputError
        As `grip_forces`, and for a direction of no size.
    SingularError, LimitError, KicError
        As `grip_forces`.

    Examples
    --------
    A block of 10 N on two feet, one metre apart, bears a moment of 5 N m before it tips:

    >>> import kic
    >>> c = kic.ContactSet([[-0.5, 0, 0], [0.5, 0, 0]], [[0, 1, 0], [0, 1, 0]], "point", plane=[0, 0, 1])
    >>> kic.largest_load(c, [0, 0, 1], [0, -10, 0]).round(6)
    np.float64(5.0)
    """
    asked = GripProblem(contacts, wrench, direction, least, safety, jacobian, limits, lower, offset, joints)

    def one(i: int) -> dict[str, Any]:
        asked.demand(i).inside()  # the load itself
        return {"most": asked.demand(i, added=True).most()}

    return gathered(each(asked.batch, failures, one)[1], asked.batch, "most", ())
