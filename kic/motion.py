"""Equations of motion in independent coordinates, as an integrator asks for them.

The unknowns are the independent coordinates themselves, so that loops are closed anew at every evaluation and
nothing can drift. Of an open chain they are its whole state: quaternions of balls are unknowns like others,
brought to unit length wherever they are used and never otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kic.arrays import as_numbers
from kic.closer import Closer
from kic.errors import InputError, SimulationError, SingularError, shown
from kic.evaluator import Evaluator
from kic.model import Model
from kic.posture import phi_of
from kic.rotations import product


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
            a = as_numbers(np.asarray(motion(t), dtype=object).tolist())
            if a is None or a.shape != (3,) or not np.isfinite(a).all():
                raise SimulationError(
                    f"The motion prescribed for '{name}' must return value, rate and acceleration, three "
                    f"finite numbers; got {shown(motion(t))} at t = {t:.9g}.",
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
        self._wrt = None if self.whole else names
        asked = () if self.own else motion.names
        self._evaluate = Evaluator(model, asked, 1, True, self._wrt)
        self._results: Any = None
        self._close = None if self.whole else Closer(model, names)
        self.places = model.tree.state_size if self.whole else len(names)
        self.size = len(names)

    def pack(self, state: np.ndarray, rates: np.ndarray, accounts: np.ndarray) -> np.ndarray:
        """Unknowns from a closed state (S,) and rates (M,) of the chart."""
        x = state if self.whole else self.motion.model.values(self.names, state[None])[0]
        return np.concatenate([x, rates, accounts])

    def parts(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Unknown coordinates, closed state (S,), rates (M,) of the chart; prescribed motion put in."""
        x, v = y[: self.places], y[self.places : self.places + self.size]
        held = self.motion.held
        if held.size:
            value, rate, _ = self.motion.given(t)
            x, v = x.copy(), v.copy()
            v[held] = rate
            x[self._columns(held)] = value
        if self._close is None:
            return x, self._unit(x), v
        self.near = self._close(x, self.near)
        return x, self.near, v

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
        x, state, v = self.parts(t, y)
        r = self._evaluated(state)
        now, G = self._users(r, x, state, v)
        T, a = self._driven(t, r, now, G, v)
        rate = np.empty_like(y)
        rate[: self.places] = self._slopes(x, v)
        rate[self.places : self.places + self.size] = a
        # one by one: for NumPy to make an array of them takes longer
        rate[-3], rate[-2], rate[-1] = T @ v, r.load @ v, v @ (r.damping @ v)
        if not np.isfinite(rate).all():
            raise SimulationError(
                f"The motion of '{self.motion.model.drawing.name}' is no longer finite at t = {t:.9g}.",
                time=t,
            )
        return rate

    def seen(self, t: float, y: np.ndarray) -> Now:
        """What efforts and events see of the unknowns."""
        x, state, v = self.parts(t, y)
        return self._users(self._evaluated(state), x, state, v)[0]

    def moment(self, t: float, y: np.ndarray) -> dict[str, Any]:
        """What is kept of a moment, its motion in the chart; see `seen_from`."""
        x, state, v = self.parts(t, y)
        r = self._evaluated(state)
        now, G = self._users(r, x, state, v)
        T, a = self._driven(t, r, now, G, v)
        return {
            "t": t,
            "q": now.q.copy(),
            "effort": (T if G is None else self.motion.efforts(t, now)).copy(),
            "state": state.copy(),
            "kinetic": v @ r.I @ v / 2,
            "accounts": y[-ACCOUNTS:].copy(),
            "v": v.copy(),
            "a": a,
        }

    def spread(self, states: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, np.ndarray]:
        """Rates and accelerations (T, M) of the user's coordinates and of the tree's columns."""
        user, tree = self.motion.names, self._tree.columns
        f = Evaluator(self.motion.model, list(dict.fromkeys((*user, *tree))), 2, False, self._wrt)(states)
        made = {}
        for first, second, names in (("qd", "qdd", user), ("rates", "second", tree)):
            G = np.concatenate([f[name].G for name in names], axis=-2)
            H = np.concatenate([f[name].H for name in names], axis=-3)
            made[first] = np.einsum("tpn,tn->tp", G, v)
            made[second] = np.einsum("tpn,tn->tp", G, a) + np.einsum("tpmn,tm,tn->tp", H, v, v)
        return made

    def _evaluated(self, state: np.ndarray) -> Any:
        """Dynamics in the chart, and the user's coordinates if they are others."""
        self._results = self._evaluate(state, self._results)
        return self._results

    def _users(self, r: Any, x: np.ndarray, state: np.ndarray, v: np.ndarray) -> tuple[Now, Any]:
        """What the user sees, and the G of the user's coordinates unless they are the chart's."""
        motion = self.motion
        if not self.own:
            G = np.concatenate([r[name].G for name in motion.names])
            return Now(np.concatenate([r[name].value for name in motion.names]), G @ v, state), G
        # of a chart of their own the coordinates are unknowns; balls have rotation vectors
        q = phi_of(self._tree, state[None])[0] if self.whole else x
        return Now(q, v, state), None

    def _driven(self, t: float, r: Any, now: Now, G: Any, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Efforts in the chart, those that hold prescribed motions among them, and accelerations."""
        motion = self.motion
        T = motion.efforts(t, now)
        if G is not None:
            T = G.T @ T
        h = (r.P @ v) @ v + r.damping @ v - r.load
        if not motion.held.size:
            return T, self._solve(r.I, T - h)
        free, held = motion.free, motion.held
        a, T = np.empty(self.size), T.copy()
        a[held] = motion.given(t)[2]
        I = r.I[free]
        a[free] = self._solve(I[:, free], T[free] - h[free] - I[:, held] @ a[held])
        T[held] = r.I[held] @ a + h[held]
        return T, a

    def _solve(self, I: np.ndarray, net: np.ndarray) -> np.ndarray:
        """Accelerations of an inertia that must be positive definite."""
        if not net.size:  # every motion is given
            return net
        _, a, failed = self._cholesky(I, net)
        if failed:
            raise SingularError(
                f"I* of '{self.motion.model.drawing.name}' in {', '.join(self.names)} has no inverse: some "
                "motion moves no mass. Give every body that moves mass and inertia.",
                coordinates=self.names,
            )
        return np.asarray(a)

    @cached_property
    def _cholesky(self) -> Any:
        """LAPACK's solver, called without the checks around it: they cost more than it does."""
        from scipy.linalg.lapack import dposv

        return dposv

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
