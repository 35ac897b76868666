"""Equations of motion in independent coordinates, as an integrator asks for them.

The unknowns are the independent coordinates themselves, so that loops are closed anew at every evaluation and
nothing can drift. Of an open chain they are its whole state: quaternions of balls are unknowns like others,
brought to unit length wherever they are used and never otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from kic.arrays import as_numbers
from kic.closer import Closer
from kic.errors import InputError, SimulationError, shown
from kic.evaluator import Evaluator
from kic.model import Model
from kic.posture import phi_of
from kic.rotations import product

Effort = Callable[[float, np.ndarray, np.ndarray], Any]
# what is integrated beside the motion: work of efforts, of loads, and of dampers
ACCOUNTS = 3


class Motion:
    """What moves: efforts and prescribed motions in the user's coordinates, at one moment.

    Parameters
    ----------
    model : Model
        The mechanism.
    names : tuple of str
        The user's coordinates.
    effort : callable or None
        ``effort(t, q, qd)`` gives efforts (M,) at them.
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

    def efforts(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Efforts (M,) at a moment, checked."""
        if self.effort is None:
            return np.zeros(len(self.names))
        a = as_numbers(self.effort(t, q, qd))
        if a is None or a.dtype != np.float64 or a.shape != (len(self.names),):
            got = "no numbers" if a is None else f"{a.dtype} of {a.shape}"
            raise InputError(
                f"Expected `effort(t, q, qd)` to return real numbers of shape ({len(self.names)},), one for each "
                f"of {', '.join(self.names)}, got {got} at t = {t:g}.",
                time=t,
            )
        if not np.isfinite(a).all():
            n = int(np.flatnonzero(~np.isfinite(a))[0])
            raise SimulationError(
                f"`effort(t, q, qd)` returned {a[n]} for '{self.names[n]}' at t = {t:.9g}, q = {shown(q.tolist())}, "
                f"qd = {shown(qd.tolist())}. Efforts must be finite.",
                time=t,
                q=q.copy(),
                qd=qd.copy(),
            )
        return a

    def given(self, t: float) -> np.ndarray:
        """Values, rates and accelerations (3, H) of the prescribed coordinates."""
        rows = []
        for name, motion in self.prescribed.items():
            a = as_numbers(np.asarray(motion(t), dtype=object).tolist())
            if a is None or a.shape != (3,) or not np.isfinite(a).all():
                raise SimulationError(
                    f"The motion prescribed for '{name}' must return value, rate and acceleration, three finite "
                    f"numbers; got {shown(motion(t))} at t = {t:.9g}.",
                    time=t,
                )
            rows.append(a)
        return np.array(rows).reshape(-1, 3).T


class Chart:
    """The equations in one set of coordinates, the user's or others.

    Parameters
    ----------
    motion : Motion
        What moves, in the user's coordinates.
    names : tuple of str
        The coordinates of the chart.
    near : (S,)
        A closed state.

    Attributes
    ----------
    size : int
        Rates in the chart.
    """

    def __init__(self, motion: Motion, names: tuple[str, ...], near: np.ndarray) -> None:
        model = motion.model
        self.motion, self.names, self.near = motion, names, near.copy()
        self.whole = model.direct and names == model.coordinates
        self._tree = model.tree
        self.own = names == motion.names
        wrt = None if self.whole else names
        asked = () if self.own else motion.names
        self._evaluate = Evaluator(model, asked, 1, True, wrt)
        self._results: Any = None
        self._close = None if self.whole else Closer(model, names)
        self.places = model.tree.state_size if self.whole else len(names)
        self.size = len(names)

    def pack(self, state: np.ndarray, rates: np.ndarray, accounts: np.ndarray) -> np.ndarray:
        """Unknowns from a closed state (S,) and rates (M,) of the chart."""
        x = state if self.whole else self.motion.model.values(self.names, state[None])[0]
        return np.concatenate([x, rates, accounts])

    def parts(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Closed state (S,) and rates (M,) of the chart; prescribed motion put in."""
        x, v = y[: self.places], y[self.places : self.places + self.size]
        held = self.motion.held
        if held.size:
            value, rate, _ = self.motion.given(t)
            x, v = x.copy(), v.copy()
            v[held] = rate
            x[self._columns(held)] = value
        if self._close is None:
            return self._unit(x), v
        self.near = self._close(x, self.near)
        return self.near, v

    def _columns(self, held: np.ndarray) -> np.ndarray:
        """Entries of the unknowns that are the values of some coordinates."""
        if not self.whole:
            return held
        tree = self._tree
        return np.array([tree.cols[tree.column[self.names[k]], 3] for k in held], dtype=np.intp)

    def _unit(self, state: np.ndarray) -> np.ndarray:
        """A state with quaternions of length one."""
        tree = self._tree
        if not tree.balls:
            return state
        state = state.copy()
        for n in tree.balls:
            place = tree.cols[n, 3]
            q = state[place : place + 4]
            state[place : place + 4] = q / np.sqrt(q @ q)
        return state

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """Rates of the unknowns."""
        state, v = self.parts(t, y)
        r = self._evaluated(state)
        T, a = self._driven(t, r, *self._users(r, state, v), v)
        rate = np.empty_like(y)
        rate[: self.places] = self._slopes(y[: self.places], v)
        rate[self.places : self.places + self.size] = a
        rate[-ACCOUNTS:] = T @ v, r.load @ v, v @ r.damping @ v
        if not np.isfinite(rate).all():
            raise SimulationError(
                f"The motion of '{self.motion.model.drawing.name}' is no longer finite at t = {t:.9g}.",
                time=t,
            )
        return rate

    def seen(self, state: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The user's coordinates and their rates at a closed state and rates of the chart."""
        q, qd, _ = self._users(self._evaluated(state), state, v)
        return q, qd

    def moment(self, t: float, y: np.ndarray) -> dict[str, Any]:
        """Everything that is kept of a moment."""
        state, v = self.parts(t, y)
        state, r = state.copy(), self._evaluated(state)
        q, qd, G = self._users(r, state, v)
        T, a = self._driven(t, r, q, qd, G, v)
        effort = T if G is None else self.motion.efforts(t, q, qd)
        f = self._whole_tree(state)
        rates = [np.concatenate([np.atleast_2d(f[name].G) for name in group]) @ v for group in self._groups]
        bent = [
            np.concatenate([f[name].G @ a + (f[name].H @ v) @ v for name in group]) for group in self._groups
        ]
        return {
            "t": t,
            "q": q.copy(),
            "qd": rates[0],
            "qdd": bent[0],
            "effort": effort.copy(),
            "state": state,
            "rates": rates[1],
            "second": bent[1],
            "kinetic": v @ r.I @ v / 2,
            "accounts": y[-ACCOUNTS:].copy(),
        }

    def _evaluated(self, state: np.ndarray) -> Any:
        """Dynamics in the chart, and the user's coordinates if they are others."""
        self._results = (
            self._evaluate(state) if self._results is None else self._evaluate(state, self._results)
        )
        return self._results

    @cached_property
    def _whole_tree(self) -> Evaluator:
        """The user's coordinates and the tree's, to second order."""
        names = dict.fromkeys((*self.motion.names, *self._tree.columns))
        return Evaluator(self.motion.model, list(names), 2, False, None if self.whole else self.names)

    @property
    def _groups(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.motion.names, self._tree.columns

    def _users(self, r: Any, state: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any]:
        """The user's q and q̇, and their G unless they are the chart's."""
        motion, model = self.motion, self.motion.model
        if self.whole and self.own:
            return phi_of(self._tree, state[None])[0], v, None
        if self.own:
            return model.values(motion.names, state[None])[0], v, None
        q = np.concatenate([r[name].value for name in motion.names])
        G = np.concatenate([r[name].G for name in motion.names])
        return q, G @ v, G

    def _driven(
        self, t: float, r: Any, q: np.ndarray, qd: np.ndarray, G: Any, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Efforts in the chart, those that hold prescribed motions among them, and accelerations."""
        motion = self.motion
        T = motion.efforts(t, q, qd)
        if G is not None:
            T = G.T @ T
        h = (r.P @ v) @ v + r.damping @ v - r.load
        if not motion.held.size:
            return T, np.linalg.solve(r.I, T - h)
        free, held = motion.free, motion.held
        a, T = np.empty(self.size), T.copy()
        a[held] = motion.given(t)[2]
        I = r.I[free]
        a[free] = np.linalg.solve(I[:, free], T[free] - h[free] - I[:, held] @ a[held])
        T[held] = r.I[held] @ a + h[held]
        return T, a

    def _slopes(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rates of the unknown coordinates."""
        if not self.whole:
            return v
        tree = self._tree
        order = tree.to_coordinates
        columns = v
        if order is not None:
            columns = np.empty_like(v)
            columns[order] = v
        return state_rates(tree, x, columns)


def state_rates(tree: Any, state: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Rates (..., S) of states from those (..., M) of the tree's columns: ½ ω q for the quaternions."""
    if not tree.balls:
        return rates
    slopes = np.empty_like(state)
    for n in range(tree.size):
        place = tree.cols[n, 3]
        if n in tree.balls:
            turn = np.concatenate([np.zeros_like(rates[..., :1]), rates[..., n : n + 3] / 2], axis=-1)
            slopes[..., place : place + 4] = product(turn, state[..., place : place + 4])
        elif place >= 0:
            slopes[..., place] = rates[..., n]
    return slopes
