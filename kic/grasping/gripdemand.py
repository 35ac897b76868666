"""What one grasp is asked to hold, as a cone program; and why it can not, where it can not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.errors import LimitError, MemberError, SingularError
from kic.grasping.conic import BRINK, EQUAL, Program, best, centre, independent, solve
from kic.grasping.onegrasp import OneGrasp

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


class Demand:
    """A load on one grasp with all that bounds the forces that hold it.

    Unknowns are components x of the contacts that are `active`, f = `force` · unit · x, then, where loads
    along `direction` are added, how much of it.
    """

    def __init__(
        self,
        grasp: OneGrasp,
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
        if np.linalg.norm(remainder) > EQUAL:
            y = -remainder / np.linalg.norm(remainder)
            raise self.refusal(y, "in either sense, ")
        rows = np.zeros((len(self._rows), N))
        rows[:, : int(keep.sum())] = self._rows[:, keep]
        low, high = self.room
        level = (low == high) if extras else np.zeros(len(low), dtype=bool)
        if level.any():
            both = np.concatenate([G, rows[level]])
            remainder, T = independent(both, np.concatenate([-self.load, high[level]]))
            if np.linalg.norm(remainder) > EQUAL * (1 + np.abs(high[level]).max()):
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
            if middle.margin > BRINK:
                return active, program
            if middle.margin < -BRINK:
                weight = middle.z[program.starts]
                heavy = weight > IN_THE_WAY * weight.max()
                raise self._why(active, [name for name, at in zip(names, heavy, strict=True) if at])
            idle = self._idle(program, names)
            active = active & ~np.isin(np.array(self.grasp.contacts.names), idle)

    def _idle(self, program: Program, names: list[tuple[str, str]]) -> list[str]:
        """Contacts that can give nothing, whatever others do; where a limit is in the way, the refusal."""
        stuck = [b for b in range(len(names)) if centre(program, np.array([b])).margin <= BRINK]
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
        if alone.margin < -BRINK:
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
            Demand(self.grasp, *more).inside()
            return Demand(self.grasp, *more, self.given).most()
        except MemberError:
            return None

    def refusal(self, y: np.ndarray, sense: str) -> SingularError:
        """No contact pushes against this motion, on which the load does work."""
        twist = self.grasp.twist(self.grasp.plainer(y, self.load, None, self.safety))
        words = self.grasp.words(twist)
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
        if missed > EQUAL * (1 + np.abs(whole).max()) or margin.min() < 0 or off > EQUAL:
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
        if centre(program, np.array([len(program.sizes) - 1])).margin <= BRINK:
            return 0.0
        _, program = self.inside()
        last = np.eye(len(program.cost))[-1]
        # where a share of forces goes on for ever, nothing bounds it
        E, e = np.concatenate([program.E, [last]]), np.append(np.zeros(len(program.e)), 1.0)
        remainder, T = independent(E, e)
        if np.linalg.norm(remainder) <= EQUAL:
            onward = replace(program, E=T @ E, e=T @ e, h=np.zeros(len(program.h)))
            if centre(onward).margin >= -BRINK:
                return np.inf
        return float(best(replace(program, cost=-last))[-1]) * self.force / self._added_size
