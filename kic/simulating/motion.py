"""What moves in time: efforts, prescribed motions, and what their functions see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.arrays import as_numbers, reals
from kic.errors import InputError, SimulationError, shown
from kic.model import Model


@dataclass(frozen=True)
class Now:
    """A moment of a motion, as efforts and events see it.

    Attributes
    ----------
    q, qd : (M,)
        Values and rates of the user's coordinates.
    state : (S,)
        Closed state of the spanning tree.
    """

    q: np.ndarray
    qd: np.ndarray
    state: np.ndarray


Effort = Callable[[float, Now], Any]
# a start may differ by this share from where a prescribed motion begins
_SAME = 1e-6


class Motion:
    """What moves: efforts and prescribed motions in the user's coordinates, at one moment.

    Parameters
    ----------
    model : Model
        The mechanism.
    names : tuple of str
        The user's coordinates.
    effort : callable or None
        ``effort(t, now)`` gives efforts (M,) at them.
    prescribed : dict of str to callable
        Of coordinates whose motion is given: value, rate, acceleration at a time.
    """

    def __init__(
        self, model: Model, names: tuple[str, ...], effort: Effort | None, prescribed: dict[str, Any]
    ) -> None:
        self.model, self.names, self.effort, self.prescribed = model, names, effort, prescribed
        self.held = np.array([names.index(name) for name in prescribed], dtype=np.intp)
        self.free = np.array(
            [n for n in range(len(names)) if n not in set(self.held.tolist())], dtype=np.intp
        )

    def efforts(self, t: float, now: Now) -> np.ndarray:
        """Efforts (M,) at a moment, checked."""
        size = len(self.names)
        if self.effort is None:
            return np.zeros(size)
        a = as_numbers(self.effort(t, now))
        if a is None or a.dtype != np.float64 or a.shape != (size,):
            got = "no numbers" if a is None else f"{a.dtype} of {a.shape}"
            raise InputError(
                f"Expected `effort(t, now)` to return real numbers of shape ({size},), one for each of "
                f"{', '.join(self.names)}, got {got} at t = {t:g}.",
                time=t,
            )
        if not np.isfinite(a).all():
            n = int(np.flatnonzero(~np.isfinite(a))[0])
            raise SimulationError(
                f"`effort(t, now)` returned {a[n]} for '{self.names[n]}' at t = {t:.9g}, where q = "
                f"{shown(now.q.tolist())} and qd = {shown(now.qd.tolist())}. Efforts must be finite.",
                time=t,
                q=now.q,
                qd=now.qd,
            )
        return a

    def given(self, t: float) -> np.ndarray:
        """Values, rates and accelerations (3, H) of the prescribed coordinates."""
        rows = []
        for name, motion in self.prescribed.items():
            got = motion(t)
            # trajectories give jerks, too
            a = reals(got[:3] if isinstance(got, tuple) else got)
            if a is None or a.size != 3:
                raise SimulationError(
                    f"The motion prescribed for '{name}' must return value, rate and acceleration, three "
                    f"finite numbers; got {shown(got)} at t = {t:.9g}.",
                    time=t,
                )
            rows.append(a.reshape(3))
        return np.array(rows).reshape(-1, 3).T

    def begun(self, t: float, q: np.ndarray, qd: np.ndarray | None) -> np.ndarray:
        """Rates (M,) at the start, those prescribed among them; zero where none are given.

        Raises
        ------
        InputError
            For a start (M,), or rates at it, that are not those prescribed.
        """
        given = self.given(t)
        rates = np.zeros(len(self.names)) if qd is None else qd.copy()
        for what, at, of in (("values", q, given[0]), ("rates", rates, given[1])):
            off = np.abs(at[self.held] - of) > _SAME * np.maximum(1.0, np.abs(of))
            if off.any() and (what == "values" or qd is not None):
                k = int(np.argmax(off))
                name = self.names[self.held[k]]
                raise InputError(
                    f"The motion prescribed for '{name}' begins with {of[k]:.9g}, but the {what} of the "
                    f"start are {at[self.held[k]]:.9g} there. Start where it begins.",
                    name=name,
                )
        rates[self.held] = given[1]
        return rates
