"""Grip forces: least contact forces that balance a load within friction cones and joint efforts.

With the external wrench w on the body the contact forces f satisfy G f + w = 0, each within its friction cone
(Murray, Li and Sastry 1994, section 5.3; Boyd and Wegbreit 2007 for the cone program). Feet on the ground are
treated as fingers; the load of a walker is its weight at its centre of mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal, get_args

import numpy as np

from kic.errors import InputError, LimitError, MemberError, SingularError, invalid
from kic.numerics import conic_programs as conic
from kic.numerics.arguments import at_least, choice, instance, names_of
from kic.numerics.arrays import broadcast_batches, numbers, real_array
from kic.numerics.display import Batched, Summary
from kic.numerics.limits import bounds
from kic.tasks.grasp.contacts import ContactSet
from kic.tasks.grasp.force_closure import SingleGrasp, gather, map_members, single_grasps

# sum of normal forces, as a share of the load, below which contacts carry nothing; zeros of the solver are
# accurate only to the square root of its tolerance
IDLE_FORCE_RTOL = 1e-4
# smallest multiplier of an active limit, relative to the largest
GRIP_MULTIPLIER_RTOL = 1e-6


@dataclass(frozen=True)
class Fingers:
    """Joints of the fingers of one grasp; their efforts own + Jᵀ f lie between low and high."""

    J: np.ndarray
    low: np.ndarray
    high: np.ndarray
    own: np.ndarray
    names: tuple[str, ...]


class GripProgram:
    """Cone programs for the forces of one grasp that balance a load.

    Unknowns are the force components x of the `active` contacts, f = `force` · unit · x. If loads are added
    along a `direction`, their amount is the last unknown.
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
        self._check_unloaded_joints()
        self._rows = rows[self.moves] / size[self.moves, None]
        room = np.stack(
            [(a - fingers.own)[self.moves] / size[self.moves] for a in (fingers.low, fingers.high)]
        )
        sizes = [float(np.linalg.norm(load)), least, *np.abs(room[np.isfinite(room)])]
        self.force = max(sizes[:2]) or next((x for x in sizes if x), 1.0)
        self.load, self.room = load / self.force, room / self.force
        self.least, self.safety = least / self.force, safety
        self.pinned = grasp.contacts.pinned
        self.joints = [name for name, moves in zip(fingers.names, self.moves, strict=True) if moves]

    def _check_unloaded_joints(self) -> None:
        """Raise an error if joints that contacts do not load exceed their limits."""
        f = self.fingers
        over = ~self.moves & ((f.own < f.low) | (f.own > f.high))
        if over.any():
            names = [name for name, bad in zip(f.names, over, strict=True) if bad]
            message = (
                f"No grip keeps joint {', '.join(names)} within its limits: its effort {f.own[over][0]:g} "
                "does not depend on the contacts. Widen the limits, or change `offset`."
            )
            raise LimitError(message, scale=None, binding=tuple(names))

    def columns(self, active: np.ndarray) -> np.ndarray:
        """Return the mask of the components of active contacts."""
        return active[self.grasp.contacts.owner]

    def program(
        self, active: np.ndarray, extras: bool = True
    ) -> tuple[conic.Program, list[tuple[str, str]], np.ndarray]:
        """Return the program of feasible forces without cost, its blocks, and T of its equalities.

        Raise `SingularError` if the equalities are inconsistent.
        """
        grasp, contacts, keep = self.grasp, self.grasp.contacts, self.columns(active)
        G = grasp.map[:, keep]
        extra = [] if self.added is None else [self.added[:, None] / self._added_size]
        G = np.concatenate([G, *extra], axis=1)
        N = G.shape[1]
        remainder, T = conic.orthonormal_rows(G, -self.load)
        if np.linalg.norm(remainder) > conic.EQUALITY_RTOL:
            y = -remainder / np.linalg.norm(remainder)
            raise self.unresisted(y, "in either sense, ")
        rows = np.zeros((len(self._rows), N))
        rows[:, : int(keep.sum())] = self._rows[:, keep]
        low, high = self.room
        level = (low == high) if extras else np.zeros(len(low), dtype=bool)
        if level.any():
            both = np.concatenate([G, rows[level]])
            remainder, T = conic.orthonormal_rows(both, np.concatenate([-self.load, high[level]]))
            if np.linalg.norm(remainder) > conic.EQUALITY_RTOL * (1 + np.abs(high[level]).max()):
                fixed = [("limit", n) for n, at in zip(self.joints, level, strict=True) if at]
                raise self._infeasibility(active, fixed)
        E, e = np.concatenate([G, rows[level]]), np.concatenate([-self.load, high[level]])
        # rows, bounds and name of each block
        blocks: list[tuple[np.ndarray, np.ndarray, tuple[str, str]]] = []
        place = np.cumsum(keep) - 1
        for k in np.flatnonzero(active & ~self.pinned):
            span = contacts.spans[k]
            width = span.stop - span.start
            block = np.zeros((width, N))
            block[np.arange(width), place[span]] = [-1.0] + [-self.safety] * (width - 1)
            blocks.append((block, np.zeros(width), ("contact", contacts.names[k])))
            if extras and self.least:
                blocks.append((block[:1], np.array([-self.least]), ("least", contacts.names[k])))
        for sign, limit in ((1.0, high), (-1.0, -low)):
            blocks += [
                (sign * rows[j : j + 1], limit[j : j + 1], ("limit", self.joints[j]))
                for j in np.flatnonzero(np.isfinite(limit) & ~level & extras)
            ]
        if self.added is not None:
            blocks.append((-np.eye(N)[-1:], np.zeros(1), ("added", "")))
        A = np.concatenate([np.zeros((0, N)), *(a for a, _, _ in blocks)])
        h = np.concatenate([np.zeros(0), *(bound for _, bound, _ in blocks)])
        sizes = tuple(len(a) for a, _, _ in blocks)
        return conic.Program(np.zeros(N), T @ E, T @ e, A, h, sizes), [name for _, _, name in blocks], T

    def interior(self) -> tuple[np.ndarray, conic.Program]:
        """Return a mask of the contacts that can carry load, and their program, with points inside all cones.

        Raise `SingularError` if there is no such program.
        """
        active = np.ones(len(self.pinned), dtype=bool)
        while True:
            program, names, _ = self.program(active)
            if not program.sizes:
                return active, program
            deepest = conic.deepest_point(program)
            if deepest.margin > conic.CONE_TIGHTENING_MAX:
                return active, program
            if deepest.margin < -conic.CONE_TIGHTENING_MAX:
                multiplier = deepest.z[program.starts]
                binding = multiplier > GRIP_MULTIPLIER_RTOL * multiplier.max()
                names = [name for name, at in zip(names, binding, strict=True) if at]
                raise self._infeasibility(active, names)
            idle = self._idle_contacts(program, names)
            active = active & ~np.isin(np.array(self.grasp.contacts.names), idle)

    def _idle_contacts(self, program: conic.Program, names: list[tuple[str, str]]) -> list[str]:
        """Return contacts that cannot carry load; raise an error if limits allow no margin."""
        blocks = range(len(names))
        margins = [conic.deepest_point(program, np.array([b])).margin for b in blocks]
        stuck = [b for b in blocks if margins[b] <= conic.CONE_TIGHTENING_MAX]
        idle = [names[b][1] for b in stuck]
        if stuck and all(names[b][0] == "contact" for b in stuck):
            # largest sum of their normal forces, bounded by 1
            total = -program.A[program.starts[stuck]].sum(axis=0)
            A, h = np.concatenate([program.A, [total]]), np.append(program.h, 1.0)
            largest = replace(program, cost=-total, A=A, h=h, sizes=(*program.sizes, 1))
            if total @ conic.solve(largest)[0] <= IDLE_FORCE_RTOL:
                return idle
        what = ", ".join(dict.fromkeys(f"{kind} {name}".strip() for kind, name in (names[b] for b in stuck)))
        message = (
            f"The load can only be held with zero margin at: {what or 'all contacts'}. Increase the "
            "friction, widen the limits, or use other contacts."
        )
        raise SingularError(message, wrench=self.given, at=tuple(idle))

    def _infeasibility(self, active: np.ndarray, names: list[tuple[str, str]]) -> MemberError:
        """Return the error for a load that the contacts, or the named limits, do not allow."""
        program, _, T = self.program(active, extras=False)
        unlimited = conic.deepest_point(program)
        if unlimited.margin < -conic.CONE_TIGHTENING_MAX:
            return self.unresisted(T.T @ unlimited.y, "")
        joints, pressed = (
            tuple(dict.fromkeys(name for kind, name in names if kind == what)) for what in ("limit", "least")
        )
        parts = [f"the effort limits of {', '.join(joints)}"] if joints else []
        parts += [f"`normal_force_min` at contact {', '.join(pressed)}"] if pressed else []
        share = self._load_share()
        much = "none" if share is None else f"{share:.6g}"
        return LimitError(
            f"The contacts can hold the load, but only {much} of it within "
            f"{' and '.join(parts) or 'all limits'}. Widen these limits, or move the contacts.",
            scale=share,
            binding=(*joints, *(f"contact {name}" for name in pressed)),
            wrench=self.given,
        )

    def _load_share(self) -> float | None:
        """Return the share of the load that is feasible within the limits; None if even zero load is not."""
        if self.added is not None or not self.load.any():
            return None
        more = np.zeros_like(self.given), self.fingers, self._level, self.safety
        try:
            GripProgram(self.grasp, *more).interior()
            return GripProgram(self.grasp, *more, self.given).largest_amount()
        except MemberError:
            return None

    def unresisted(self, y: np.ndarray, sense: str) -> SingularError:
        """Return the error for a load that does work on a twist that no contact resists."""
        twist = self.grasp.twist(self.grasp.simplify_twist(y, self.load, None, self.safety))
        description = self.grasp.describe_load(twist)
        condition = ", at this `safety`" if self.safety > 1 else ""
        return SingularError(
            f"The contacts cannot hold the load{condition}: {sense}they cannot resist a {description}, which "
            "is part of the load. Move the contacts, increase the friction, or add contacts.",
            twist=twist,
            wrench=self.given,
        )

    def solve(self, criterion: str) -> dict[str, Any]:
        """Return the optimal forces with margins and efforts."""
        own = self.fingers.own
        if not (
            self.load.any() or self.least or (own < self.fingers.low).any() or (own > self.fingers.high).any()
        ):
            zero = np.zeros(len(self.grasp.unit))
            return {"force": zero, "margin": self.grasp.friction_margins(zero), "effort": own}
        active, program = self.interior()
        keep, contacts = self.columns(active), self.grasp.contacts
        whole = np.zeros(len(keep))
        if keep.any():
            whole[keep] = conic.solve_feasible(self._with_cost(program, active, criterion))[: keep.sum()]
        residual = float(np.linalg.norm(self.grasp.map @ whole + self.load))
        f = self.force * self.grasp.unit * whole
        margin = self.grasp.friction_margins(f)
        effort = self.fingers.own + self.fingers.J.T @ f
        within = np.clip(effort, self.fingers.low, self.fingers.high)
        off = float(np.abs(effort - within).max(initial=0.0)) / (1 + float(np.abs(effort).max(initial=0.0)))
        if (
            residual > conic.EQUALITY_RTOL * (1 + np.abs(whole).max())
            or margin.min() < 0
            or off > conic.EQUALITY_RTOL
        ):
            message = (
                f"The solution has a relative residual of {residual:.1e} and a smallest margin of "
                f"{float(margin.min()):.1e}, which is not accurate enough. Change contacts or limits."
            )
            raise SingularError(message, residual=residual, contacts=contacts.names)
        return {"force": f, "margin": margin, "effort": within}

    def _with_cost(self, p: conic.Program, active: np.ndarray, criterion: str) -> conic.Program:
        """Return the program with the cost of a criterion."""
        keep, contacts = self.columns(active), self.grasp.contacts
        if criterion == "minimum norm":
            weight = np.where(contacts.axis == 3, 1.0, self.grasp.unit)[keep]
            return replace(p, square=np.diag(weight**2))
        N = len(p.cost)
        place = np.cumsum(keep) - 1
        blocks, sizes = [np.concatenate([p.A, np.zeros((len(p.h), 1))], axis=1)], list(p.sizes)
        for k in np.flatnonzero(active):
            span = contacts.spans[k]
            # the last unknown is at least each normal force, and the norm of each force of a pin
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
        return conic.Program(np.append(np.zeros(N), 1.0), E, p.e, A, h, tuple(sizes))

    def largest_amount(self) -> float:
        """Return the largest multiple of the direction that can be added to a feasible load."""
        program, _, _ = self.program(np.ones(len(self.pinned), dtype=bool))
        if (
            conic.deepest_point(program, np.array([len(program.sizes) - 1])).margin
            <= conic.CONE_TIGHTENING_MAX
        ):
            return 0.0
        _, program = self.interior()
        last = np.eye(len(program.cost))[-1]
        # a feasible direction of recession that increases the amount makes it unbounded
        E, e = np.concatenate([program.E, [last]]), np.append(np.zeros(len(program.e)), 1.0)
        remainder, T = conic.orthonormal_rows(E, e)
        if np.linalg.norm(remainder) <= conic.EQUALITY_RTOL:
            onward = replace(program, E=T @ E, e=T @ e, h=np.zeros(len(program.h)))
            if conic.deepest_point(onward).margin >= -conic.CONE_TIGHTENING_MAX:
                return np.inf
        return float(conic.solve_feasible(replace(program, cost=-last))[-1]) * self.force / self._added_size


class GripProblem:
    """Loads, limits and fingers of a batch of grasps, with the arguments of `grip_forces`."""

    def __init__(
        self,
        contacts: ContactSet,
        wrench: Any,
        direction: Any,
        least: Any,
        safety: Any,
        jacobian: Any,
        limits: Any,
        offset: Any,
        joints: Sequence[str] | None,
    ) -> None:
        instance("contacts", contacts, ContactSet)
        size = len(contacts.labels)
        load = np.zeros(size) if wrench is None else real_array("wrench", wrench, size)
        added = np.zeros(size)
        if direction is not None:
            added = real_array("direction", direction, size)
            if not added.any(axis=-1).all():
                raise InputError("`direction` must not be the zero vector.", key="direction")
        self._least, self._safety = at_least("normal_force_min", least, 0.0), at_least("safety", safety, 1.0)
        J, low, high, own = _fingers(contacts, jacobian, limits, offset, joints)
        self.names = _joint_names(joints, J.shape[-1])
        self.batch = broadcast_batches(
            contacts=contacts.batch,
            wrench=load.shape[:-1],
            direction=added.shape[:-1],
            jacobian=J.shape[:-2],
            effort_limits=low.shape[:-1],
        )
        self._grasps = single_grasps(contacts, self.batch)
        parts = {"wrench": load, "direction": added, "lower": low, "upper": high, "own": own}
        self._parts = {key: _flat_batch(a, self.batch, 1) for key, a in parts.items()}
        self._J = _flat_batch(J, self.batch, 2)

    def argument(self, key: str) -> np.ndarray:
        """Return an argument, broadcast to the batch."""
        a = self._parts[key]
        return a.reshape(*self.batch, a.shape[-1])

    def program(self, i: int, added: bool = False) -> GripProgram:
        """Return the program of member i, with or without loads added along the direction."""
        wrench, direction, low, high, own = (a[i] for a in self._parts.values())
        fingers = Fingers(self._J[i], low, high, own, self.names)
        return GripProgram(
            self._grasps[i], wrench, fingers, self._least, self._safety, direction if added else None
        )


def _fingers(
    contacts: ContactSet, jacobian: Any, effort_limits: Any, offset: Any, joints: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return J (..., m, N), lower and upper limits, and efforts without contact (..., N)."""
    width = len(contacts.axis)
    if jacobian is None:
        for name, value in (("effort_limits", effort_limits), ("offset", offset)):
            if value is not None:
                raise InputError(f"`{name}` requires `jacobian`, the Jacobian of the fingers.", key=name)
        none = np.zeros(0)
        return np.zeros((width, 0)), none, none, none
    shape = numbers("jacobian", jacobian).shape
    J = real_array("jacobian", jacobian, width, shape[-1] if shape else 0)
    N = J.shape[-1]
    free = np.inf if effort_limits is None else effort_limits
    low, high = bounds("effort_limits", free, _joint_names(joints, N), batch=True)
    own = np.zeros(N) if offset is None else real_array("offset", offset, N)
    batch = broadcast_batches(effort_limits=high.shape[:-1], offset=own.shape[:-1])
    low, high, own = (np.broadcast_to(a, (*batch, N)) for a in (low, high, own))
    return J, low, high, own


def _joint_names(joints: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """Return a name for every joint."""
    if joints is None:
        return tuple(map(str, range(1, count + 1)))
    names = names_of(joints, "joints")
    if len(names) != count:
        raise invalid("joints", f"must be {count} names", joints)
    return names


def _flat_batch(a: np.ndarray, batch: tuple[int, ...], rank: int) -> np.ndarray:
    """Return an array (B, …) with a flat batch and `rank` further axes."""
    tail = a.shape[a.ndim - rank :]
    return np.broadcast_to(a, (*batch, *tail)).reshape(prod(batch), *tail)


Criterion = Literal["minimum norm", "minimum largest"]
CRITERIA: tuple[str, ...] = get_args(Criterion)
# distance to an active limit, relative to the largest force or effort
ACTIVE_LIMIT_RTOL = 1e-6


@dataclass(frozen=True, repr=False)
class GripForces(Batched):
    """Contact forces that hold a load; made by `grip_forces`.

    Attributes
    ----------
    contacts : ContactSet
        The contacts.
    criterion : str
        Criterion of the optimum.
    ok : (...) bool
        Members with a solution.
    wrench : (..., W)
        The load.
    force : (..., m)
        Components of the contact forces on the body, in the axes of the contacts. NaN without a solution.
    margin : (..., K)
        Margin against slip: μ fₙ − |fₜ|, for soft fingers μ (fₙ − √((fₜ/μ)² + (m/γ)²)); without friction the
        margin against separation fₙ; ∞ for pins. Never negative.
    effort : (..., N)
        Efforts of the joints; N = 0 without a `jacobian`.
    effort_min, effort_max : (..., N)
        Limits of the efforts.
    joints : tuple of str
        Names of the joints.
    """

    _one_line = ("criterion", "joints", "batch")
    _per_member = ("ok", 0)

    contacts: ContactSet
    criterion: str
    ok: np.ndarray
    wrench: np.ndarray
    force: np.ndarray
    margin: np.ndarray
    effort: np.ndarray
    effort_min: np.ndarray
    effort_max: np.ndarray
    joints: tuple[str, ...]

    @property
    def normal(self) -> np.ndarray:
        """Normal forces (..., K)."""
        return self.force[..., self.contacts.axis == 0]

    @property
    def on_body(self) -> tuple[np.ndarray, np.ndarray]:
        """Pair of forces and moments (..., K, 3) on the body in world axes, each at its contact."""
        return self.contacts.loads(self.force)

    @property
    def binding(self) -> tuple[str, ...]:
        """Tuple of contacts about to slip and joints at their limits, in any member."""
        size = np.abs(self.force).max(axis=-1, initial=0.0)[..., None]
        slips = self.margin <= ACTIVE_LIMIT_RTOL * size
        room = np.minimum(self.effort_max - self.effort, self.effort - self.effort_min)
        stops = room <= ACTIVE_LIMIT_RTOL * np.abs(self.effort).max(axis=-1, initial=0.0)[..., None]
        both = np.concatenate([slips, stops], axis=-1)
        there = np.atleast_1d(both.reshape(-1, both.shape[-1]).any(axis=0))
        names = [f"contact {name}" for name in self.contacts.names] + [
            f"joint {name}" for name in self.joints
        ]
        return tuple(name for k, name in enumerate(names) if there[k])

    def summary(self) -> Summary:
        """Return labelled tables of forces, margins and efforts."""
        sheet = Summary(f"grip forces on the body, {self.criterion}")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        force, moment = (a[index] for a in self.on_body)
        columns = ("normal", "margin", "fx", "fy", "fz", "mx", "my", "mz")
        first = np.stack([self.normal[index], self.margin[index]], axis=-1)
        rows = [f"{n} ({k})" for n, k in zip(self.contacts.names, self.contacts.kinds, strict=True)]
        sheet.matrix("contacts, world axes", rows, columns, np.concatenate([first, force, moment], axis=-1))
        sheet.matrix("load", self.contacts.labels, [""], self.wrench[index][:, None])
        if self.joints:
            three = np.stack([self.effort[index], self.effort_min[index], self.effort_max[index]], axis=-1)
            sheet.matrix("T (efforts)", self.joints, ("T", "lower", "upper"), three)
        if self.binding:
            sheet.say(f"\nat their limits: {', '.join(self.binding)}")
        return sheet


def grip_forces(
    contacts: ContactSet,
    wrench: Any,
    *,
    criterion: Criterion = "minimum norm",
    normal_force_min: float = 0.0,
    safety: float = 1.0,
    jacobian: Any = None,
    effort_limits: Any = None,
    offset: Any = None,
    joints: Sequence[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> GripForces:
    """Compute the least contact forces f that hold a load, G f + w = 0, within friction and joint efforts.

    The solution is checked: the resultant is accurate to 1e-9 of the load, and no margin is negative. If
    rounding makes a margin negative, the cones are tightened by at most 1e-7 of the load. Loads that can only
    be held with a smaller margin raise an error. The cost is accurate to 1e-8, and forces with little effect
    on it to the square root of that.

    Parameters
    ----------
    contacts : ContactSet
        The contacts.
    wrench : (..., W) array_like
        External force and moment on the body about the contacts' reference point, such as weight and inertia
        forces; in a plane two forces and a moment, in the order of ``contacts.labels``.
    criterion : {"minimum norm", "minimum largest"}
        Minimize the sum of squares of all components, moments divided by their γ; or minimize the largest
        normal force (for pins the norm of the force). The latter may have several solutions; one is returned.
    normal_force_min : float
        Smallest normal force of every contact except pins: the level of the internal grip.
    safety : float
        Divisor of the coefficients of friction, 1 or more; margins use the undivided coefficients.
    jacobian : (..., m, N) array_like, optional
        Jacobian of the fingers as in `ContactSet.jacobian`: efforts are T = offset + Jᵀ f.
    effort_limits : float, (N,) or (2, ..., N) array_like, or dict of str to those, optional
        Magnitudes, or lower and upper limits. Infinite values impose no limit. A dict has names of `joints`.
    offset : (..., N) array_like, optional
        Efforts of the fingers without contact, such as for their own weight.
    joints : sequence of N str, optional
        Names of the joints.
    failures : {"raise", "mask"}
        Treatment of members without a solution.

    Raises
    ------
    InputError
        If a shape, word or range is wrong, or limits or `offset` are given without `jacobian`.
    SingularError
        If the contacts cannot hold the load. The error has a `twist` (W,) that they do not resist, and on
        which the load does work.
    LimitError
        If they can hold it, but not within the limits or with `normal_force_min`. The error has `scale`, the
        share of the load that is held, or None, and `binding`, the limiting joints and contacts.

    Examples
    --------
    Two fingers lift a block of 3 N; with friction 0.5 each presses with 3 N:

    >>> c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.5,
    ...     plane=[0, 0, 1])
    >>> kic.grip_forces(c, [0, -3, 0], criterion="minimum largest").normal.round(6)
    array([3., 3.])
    """
    choice("criterion", criterion, CRITERIA)
    problem = GripProblem(
        contacts, wrench, None, normal_force_min, safety, jacobian, effort_limits, offset, joints
    )
    ok, answers = map_members(problem.batch, failures, lambda i: problem.program(i).solve(criterion))
    tails = {"force": len(contacts.axis), "margin": len(contacts), "effort": len(problem.names)}
    found = {key: gather(answers, problem.batch, key, (size,)) for key, size in tails.items()}
    arguments = {"wrench": "wrench", "effort_min": "lower", "effort_max": "upper"}
    given = {key: problem.argument(name) for key, name in arguments.items()}
    return GripForces(contacts, criterion, ok, joints=problem.names, **found, **given)


def largest_load(
    contacts: ContactSet,
    direction: Any,
    wrench: Any = None,
    *,
    normal_force_min: float = 0.0,
    safety: float = 1.0,
    jacobian: Any = None,
    effort_limits: Any = None,
    offset: Any = None,
    joints: Sequence[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> np.ndarray:
    """Compute the largest multiple of a wrench that can be added to a load.

    The static stability margin of a walker is an example. If `direction` is the moment of its weight at a
    distance of one metre, the result is the distance in metres by which the weight may shift.

    Parameters
    ----------
    contacts : ContactSet
        The contacts.
    direction : (..., W) array_like
        The added wrench, like `wrench` in `grip_forces`.
    wrench : (..., W) array_like, optional
        The load without addition; zero by default.
    normal_force_min, safety, jacobian, effort_limits, offset, joints, failures
        As in `grip_forces`.

    Returns
    -------
    (...) ndarray
        Largest multiple of `direction`, a lower bound to rounding; infinite if unbounded, NaN if the load
        itself cannot be held.

    Raises
    ------
    SingularError, LimitError, MissingExtraError
        As in `grip_forces`.

    Examples
    --------
    A block of 10 N on two feet, one metre apart, supports a moment of 5 N m before it tips:

    >>> c = kic.ContactSet([[-0.5, 0, 0], [0.5, 0, 0]], [[0, 1, 0], [0, 1, 0]], "point", plane=[0, 0, 1])
    >>> kic.largest_load(c, [0, 0, 1], [0, -10, 0]).round(6)
    np.float64(5.0)
    """
    problem = GripProblem(
        contacts, wrench, direction, normal_force_min, safety, jacobian, effort_limits, offset, joints
    )

    def solve_member(i: int) -> dict[str, Any]:
        problem.program(i).interior()  # the load itself must be feasible
        return {"amount": problem.program(i, added=True).largest_amount()}

    return gather(map_members(problem.batch, failures, solve_member)[1], problem.batch, "amount", ())
