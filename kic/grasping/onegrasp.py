"""One grasp of a batch, in numbers of order one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from kic.arrays import check_failures
from kic.errors import MemberError
from kic.grasping.contactset import ContactSet

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


def members(contacts: ContactSet, batch: tuple[int, ...]) -> list[OneGrasp]:
    """One after the other the grasps of a batch, to which that of the contacts is spread."""
    parts = contacts.points, contacts.columns, contacts.mu, contacts.gamma, contacts.about
    tails = (a.shape[len(contacts.batch) :] for a in parts)
    arrays = [
        np.broadcast_to(a, (*batch, *tail)).reshape(prod(batch), *tail)
        for a, tail in zip(parts, tails, strict=True)
    ]
    return [OneGrasp(contacts, *(a[i] for a in arrays)) for i in range(prod(batch))]


class OneGrasp:
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

    def words(self, twist: np.ndarray) -> str:
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
