"""Arguments of a question about grip forces, checked, and asked of one member after the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from kic.arguments import names_of
from kic.arrays import broadcast_batches, numbers, trailing
from kic.errors import InputError, shown
from kic.grasping.contactarrays import real
from kic.grasping.contactset import ContactSet
from kic.grasping.gripdemand import Demand, Fingers
from kic.grasping.onegrasp import members


class Question:
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
            raise InputError(f"Expected `contacts` to be a ContactSet, got {shown(contacts)}.")
        size = len(contacts.labels)
        load = np.zeros(size) if wrench is None else real("wrench", trailing("wrench", wrench, size))
        way = np.zeros(size)
        if direction is not None:
            way = real("direction", trailing("direction", direction, size))
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

    def demand(self, i: int, added: bool = False) -> Demand:
        """What member i is asked to hold, with loads added along the direction or not."""
        wrench, direction, low, high, own = (a[i] for a in self._parts.values())
        fingers = Fingers(self._J[i], low, high, own, self.names)
        return Demand(
            self._grasps[i], wrench, fingers, self._least, self._safety, direction if added else None
        )


def _one(name: str, value: Any, smallest: float) -> float:
    """One number, not below another."""
    a = real(name, trailing(name, value))
    if a.ndim or a < smallest:
        raise InputError(f"Expected `{name}` to be one number of at least {smallest:g}, got {shown(value)}.")
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
    J = real("jacobian", trailing("jacobian", jacobian, width, shape[-1] if shape else 0))
    N = J.shape[-1]
    high = np.full(N, np.inf) if limits is None else _limit("limits", limits, N)
    low = -high if lower is None else _limit("lower", lower, N)
    own = np.zeros(N) if offset is None else real("offset", trailing("offset", offset, N))
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
    a = real(name, trailing(name, value, size, finite=False))
    if np.isnan(a).any():
        raise InputError(f"Expected `{name}` to be numbers or infinite, got NaN.")
    return a


def _joint_names(joints: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """A name for every joint."""
    if joints is None:
        return tuple(map(str, range(1, count + 1)))
    names = names_of(joints, "joints")
    if len(names) != count:
        raise InputError(f"Expected `joints` to be {count} names, got {shown(joints)}.")
    return names


def _flat(a: np.ndarray, batch: tuple[int, ...], rank: int) -> np.ndarray:
    """Members of a batch below each other (B, …), whose last axes are no batch."""
    tail = a.shape[a.ndim - rank :]
    return np.broadcast_to(a, (*batch, *tail)).reshape(prod(batch), *tail)
