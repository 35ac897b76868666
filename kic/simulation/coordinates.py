"""Equations of motion in independent coordinates, as an integrator asks for them.

The unknowns are the independent coordinates themselves, so that loops are closed anew at every evaluation and
nothing can drift. Of an open chain they are its whole state: quaternions of balls are unknowns like others,
brought to unit length wherever they are used and never otherwise.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from kic.dynamics.drive_train import DriveTrain
from kic.errors import ConfigurationError, SingularError
from kic.evaluator import Evaluator, PositionSolver
from kic.kernels.layout import PRISMATIC
from kic.kinematics.state import distance, integrate, phi_of
from kic.kinematics.tree import Tree
from kic.numerics.linalg import null_space
from kic.numerics.rotations import product
from kic.simulation.change_points import Branch, branch_ahead, branch_here
from kic.simulation.motion import NONE, Motion, Snapshot
from kic.simulation.motors import Motoring

# what is integrated beside the motion: work of efforts, of loads, and of dampers
ACCOUNTS = 3
# and with motors: what they take in, and what is lost in them
SUPPLIED = 2
# and what is kept of them at a moment
FLOWS = ("torque", "voltage", "current", "current_rate")
# the way from the last good state to another is walked in parts no smaller than this, before more is tried
_LEAST_PART = 1 / 64
# a start is beside a change point if the smallest singular value of the closure is below this share
BESIDE = 1e-2
# slides that are so many times the characteristic length, and Newton's method there
GROWN, NEWTON_STEPS, NEWTON_CONTRACTION = 10.0, 10, 0.25
_ENDLESS = "the motion is no longer finite: it blows up. Look at the last state."


class Driven(NamedTuple):
    """Efforts and accelerations (M,) in a chart; efforts at the user's coordinates; motors.

    Among the efforts are those that prescribed motions take.
    """

    T: np.ndarray
    a: np.ndarray
    effort: np.ndarray
    shafts: Any
    flow: Any


class Chart:
    """The equations in one set of coordinates, the user's or others.

    Every evaluation is a function of time and unknowns alone: loops are closed from the anchor, the last
    state that was good, and never from what an integrator only tried.

    Parameters
    ----------
    motion : Motion
        What moves, in the user's coordinates.
    names : tuple of str
        The coordinates of the chart.
    near : (S,)
        A closed state, the first anchor.
    q : (M,)
        The user's coordinates there; angles that are known but for full turns go on from the anchor's.

    Attributes
    ----------
    size : int
        Rates in the chart.
    rest : slice
        Unknowns beside coordinates and rates, of any chart the same: currents of motors, and accounts.
    careful : bool
        Whether all is tried where loops do not close at once.
    """

    def __init__(self, motion: Motion, names: tuple[str, ...], near: np.ndarray, q: np.ndarray) -> None:
        model = motion.model
        self.motion, self.names = motion, names
        self.near, self.q = near.copy(), q.copy()
        self.whole = model.is_open_chain and names == model.coordinates
        self._tree = model.tree
        self.own = names == motion.names
        self._wrt = None if self.whole else names
        self._motors = None if motion.train is None else Motoring(motion, motion.train, names)
        asked, order = () if self.own else motion.names, 1
        if self._motors is not None and self._motors.rows:
            asked, order = tuple(dict.fromkeys((*asked, *self._motors.rows))), 2
        self.evaluator = Evaluator(model, asked, order, True, self._wrt)
        self._results: Any = None
        self._close = None if self.whole else PositionSolver(model, names)
        self._closure = model.closure(names)
        self.careful = False
        # rows that serve in closing, where those of the drawing do not
        self._choice: np.ndarray | None = None
        # the smooth branch through a change point near the anchor, if there is one
        self.branch: Branch | None = None
        self.places = model.tree.state_size if self.whole else len(names)
        self.size = len(names)
        # the prescribed coordinates, which are in every chart, and the others
        self.held = np.array([names.index(motion.names[k]) for k in motion.held], dtype=np.intp)
        self.free = np.setdiff1d(np.arange(len(names)), self.held)
        slow = 0 if self._motors is None else int(self._motors.slow.sum())
        self.accounts = ACCOUNTS if self._motors is None else ACCOUNTS + SUPPLIED
        self.rest = slice(self.places + self.size, None)
        self._currents = slice(self.places + self.size, self.places + self.size + slow)
        rows = self.evaluator.layouts[0]
        # of the user's coordinates, those known but for full turns
        self._turns = np.zeros(len(q), dtype=bool)
        if rows is not None and not self.own:
            self._turns = rows.rows.turns[: len(q)]
        self.start = np.zeros(0) if self.whole else self._values(near)

    @property
    def train(self) -> DriveTrain | None:
        """Motors that are driven by voltages, if there are any."""
        return self.motion.train

    def _values(self, state: np.ndarray) -> np.ndarray:
        """Values (M,) of the chart's coordinates."""
        if self.own:
            return self.q.copy()
        values = self.motion.model.values(self.names, state[None])[0]
        values[self.held] = self.q[self.motion.held]  # full turns included
        return values

    @cached_property
    def scale(self) -> np.ndarray:
        """What is one in each unknown.

        A radian, the characteristic length; of energies, what a motion of most inertia has that moves by one
        of these in a unit of time; of currents, see `Motoring.scale`.
        """
        rates = self.place_scale
        places = self.state_scale if self.whole else rates
        if self.branch is not None and self.branch.inside(self.start):
            r = self.branch.evaluated(self.evaluator, self.start)
        else:
            r = self._evaluated(self.near)
        inertia, currents = np.diag(r.I), np.zeros(0)
        if self._motors is not None:
            shafts = self._motors.shafts(r, np.zeros(self.size))
            inertia = inertia + np.diag(self._motors.train.reflected(shafts.N))
            currents = self._motors.scale(shafts, inertia, rates)
        energy = (inertia * rates**2).max(initial=0.0) or 1.0
        return np.concatenate([places, rates, currents, np.full(self.accounts, energy)])

    @property
    def place_scale(self) -> np.ndarray:
        """Scales (M,) of the chart's coordinates."""
        t = self._closure.transfer
        return t.scale[: t.first]

    @cached_property
    def state_scale(self) -> np.ndarray:
        """Scales (S,) of states."""
        return state_scale(self._tree, self._closure.transfer.column_scale)

    @property
    def closure_limit(self) -> float:
        """Residual, as a share of the characteristic length, at which a state counts as closed."""
        return self._closure.limit

    def residual(self, state: np.ndarray) -> float:
        """Return the largest residual of the closure rows at a state (S,)."""
        return float(np.abs(self._closure.rows(state[None])[0][0, self._closure.transfer.first :]).max())

    def closing_rows(self, states: np.ndarray) -> np.ndarray:
        """Return the scaled first order (B, P, columns) of the closure rows at states (B, S)."""
        return self._closure.rows(states)[1][:, self._closure.transfer.first :]

    @property
    def rank(self) -> int:
        """Rank of the closure rows where they are regular."""
        return self._tree.size - self.size

    def closure_margin(self, states: np.ndarray) -> np.ndarray:
        """Return the smallest singular value (B,) of the closure over the largest, 0 at change points."""
        sigma = np.linalg.svd(self.closing_rows(states), compute_uv=False)
        return np.asarray(sigma[:, self.rank - 1] / sigma[:, 0])

    def tangent(self, rates: np.ndarray) -> np.ndarray | None:
        """Return scaled rates (columns,) of the tree at the anchor for scaled rates (M,) of the chart."""
        G, first = self._closure.rows(self.near[None])[1][0], self._closure.transfer.first
        null = null_space(G[first:], self.size)
        with suppress(np.linalg.LinAlgError):
            tangent = null @ np.linalg.solve(G[:first] @ null, rates)
            if tangent.any() and np.isfinite(tangent).all():
                return np.asarray(tangent)
        return None

    def along(self, tangent: np.ndarray) -> np.ndarray:
        """Return scaled rates (M,) of the chart at the anchor for scaled rates (columns,) of the tree."""
        G, first = self._closure.rows(self.near[None])[1][0], self._closure.transfer.first
        return np.asarray(G[:first] @ tangent)

    def stepped(self, step: np.ndarray) -> np.ndarray:
        """Return the state (S,) beside the anchor after a scaled step (columns,) of the tree."""
        return integrate(self._tree, self.near[None], (step * self._closure.transfer.column_scale)[None])[0]

    def closed_near(self, x: np.ndarray, state: np.ndarray) -> np.ndarray | None:
        """Return the closed state (S,) at coordinates by Newton's method from a near state, or None."""
        states, arrived = self._closure.newton_local(state[None], x[None], self._choice)
        return states[0] if arrived[0] else None

    def apart(self, a: np.ndarray, b: np.ndarray) -> float:
        """Return the largest scaled difference between two states (S,)."""
        scale = self._closure.transfer.column_scale
        return float(distance(self._tree, a[None], b[None], scale).max(initial=0.0))

    def seek_branch(self, direction: np.ndarray) -> bool:
        """Take the smooth branch through a change point ahead, if there is one; return True if so."""
        if self.branch is None and not self.whole and self._closure.compiled and self.rank > 0:
            self.branch = branch_ahead(self, direction)
            return self.branch is not None
        return False

    def begin_branch(self, rates: np.ndarray | None, v: np.ndarray) -> None:
        """Take the smooth branch through the start if that is at a change point or very near to one.

        Rates of the tree say which branch it is, if they are known; those of the chart do at its side.
        """
        if self.whole or not self._closure.compiled or not self.rank:
            return
        if self.closure_margin(self.near[None])[0] > BESIDE:
            return
        if rates is not None and rates.any():
            ways = [rates / self._closure.transfer.column_scale]
        else:
            given = [v / self.place_scale] if v.any() else list(np.eye(self.size))
            ways = [way for way in map(self.tangent, given) if way is not None]
        for way in (*ways, *(-way for way in ways)):
            if self.branch is None:
                self.branch = branch_here(self, way)

    def pack(self, state: np.ndarray, rates: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Unknowns from a closed state (S,), the anchor, rates (M,) of the chart, and the rest of another."""
        return np.concatenate([state if self.whole else self.start, rates, rest])

    def anchor(self, t: float, y: np.ndarray) -> None:
        """Take a good state for that from which others are closed."""
        x, state, v, r = self.parts(t, y)
        self.q = self._users(r, x, state, v, y)[0].q.copy()
        self.near, self.start = state.copy(), x.copy()

    def coordinates(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Unknown coordinates and rates (M,) of the chart, prescribed motion put in."""
        x, v = y[: self.places], y[self.places : self.places + self.size]
        held = self.held
        if held.size:
            value, rate, _ = self.motion.given(t)
            x, v = x.copy(), v.copy()
            v[held] = rate
            x[self._columns(held)] = value
        return x, v

    def parts(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, Any]:
        """Unknown coordinates, closed state (S,), rates (M,) of the chart, and dynamics there."""
        x, v = self.coordinates(t, y)
        if self._close is None:
            state = self.unit(x)
        elif self.branch is None:
            state = self._closed(x)
        else:
            state = self.branch.state(x)
            if self.branch.inside(x):
                return x, state, v, self.branch.evaluated(self.evaluator, x)
        return x, state, v, self._evaluated(state)

    def led(self, y: np.ndarray) -> np.ndarray:
        """Values and rates (2, H) of prescribed coordinates, as their rates and accelerations lead them."""
        held = self.held
        return np.array([y[self._columns(held)], y[self.places + held]])

    def _closed(self, x: np.ndarray) -> np.ndarray:
        """The closed state (S,) of some coordinates: from the anchor at once, or in parts of the way.

        Where rows chosen elsewhere do not serve any more, they are chosen at the anchor. Where the way ends
        all the same, a step that was only tried is too long, which is left to shorter ones; unless these
        failed, and the loops themselves are near singular: there more is tried.
        """
        assert self._close is not None  # for the type checker
        if not self._closure.compiled:
            return self._close(x, self.near)
        state, way = self.walked(x, self.start, self.near)
        if state is None and self._grown:
            state = self._closed_grown(x)
        if state is None and (choice := self._closure.transfer.choice_at(self.near[None])) is not None:
            self._choice = choice
            state, way = self.walked(x, self.start, self.near)
        if state is None and way and not self.careful:
            raise ConfigurationError(f"its loops do not close in {', '.join(self.names)}", values=x.copy())
        return self._close(x, self.near) if state is None else state

    @property
    def _grown(self) -> bool:
        """Return True if slides are far longer than the characteristic length, which scales all rows."""
        slides = self._tree.cols[self._tree.cols[:, 1] == PRISMATIC, 3]
        return bool((np.abs(self.near[slides]) > GROWN * self._closure.transfer.length).any())

    def _closed_grown(self, x: np.ndarray) -> np.ndarray | None:
        """The closed state (S,) by Newton's method in rows and columns of equal size, or None.

        It must converge as fast as the compiled one, which measures by the lengths of the drawing.
        """
        closure, tree, state = self._closure, self._tree, self.near[None]
        column_scale, goal, size = closure.transfer.column_scale, closure.goal(x[None]), np.inf
        # places are known to so many units of the last digit of the largest length
        limit = closure.limit * max(1.0, float(np.abs(self.near / self.state_scale).max()))
        for _ in range(NEWTON_STEPS):
            values, G = closure.rows(state)
            error, rows = (goal - values)[0], np.abs(G[0]).max(axis=1)
            rows = np.where(rows > 0, rows, 1.0)
            scaled = G[0] / rows[:, None]
            columns = np.abs(scaled).max(axis=0)
            if not columns.all():
                return None
            step = np.linalg.lstsq(scaled / columns, error / rows, rcond=None)[0]
            before, size = size, float(np.abs(step).max(initial=0.0))
            if np.abs(error).max() <= limit and size <= limit:
                return None if closure.flipped(state)[0] else state[0]
            if not size <= max(NEWTON_CONTRACTION * before, limit):
                return None
            state = integrate(tree, state, (step / columns * column_scale)[None])
        return None

    def walked(self, x: np.ndarray, start: np.ndarray, near: np.ndarray) -> tuple[np.ndarray | None, float]:
        """Return the closed state (S,) at x, continued from `near` at `start`, or None and the share made."""
        state, done, part = near[None], 0.0, 1.0
        while part >= _LEAST_PART:
            share = min(1.0, done + part)
            target = (start + share * (x - start))[None]
            there, arrived = self._closure.newton_local(state, target, self._choice)
            if not arrived[0]:
                part /= 2
            elif share == 1.0:
                return there[0], share
            else:
                state, done = there, share
        return None, done

    def reason(self, error: Exception) -> str:
        """Why a motion that no shorter step continues has no posture there."""
        values = getattr(error, "values", None)
        if values is not None and self._close is not None:
            try:
                self._close(values, self.near)
            except ConfigurationError as closer:
                error = closer
        return str(error).rstrip(".")

    def _columns(self, held: np.ndarray) -> np.ndarray:
        """Entries of the unknowns that are the values of some coordinates."""
        if not self.whole:
            return held
        tree = self._tree
        return np.array([tree.cols[tree.column[self.names[k]], 3] for k in held], dtype=np.intp)

    def unit(self, state: np.ndarray) -> np.ndarray:
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
        if not isfinite(y @ y):  # of a step that is only tried; the user's functions do not see it
            raise SingularError(_ENDLESS)
        x, state, v, r = self.parts(t, y)
        now, G = self._users(r, x, state, v, y)
        driven = self._driven(t, r, now, G, v)
        rate = np.empty_like(y)
        rate[: self.places] = self._slopes(x, v)
        rate[self.places : self.places + self.size] = driven.a
        spent, end = v @ r.damping @ v, self._currents.stop
        if self._motors is not None:
            shafts, flow = driven.shafts, driven.flow
            rate[self._currents] = flow.current_rate[self._motors.slow]
            rate[-SUPPLIED:] = flow.power, flow.heat
            spent = spent + self._motors.train.damping @ shafts.speed**2
        rate[end : end + ACCOUNTS] = driven.T @ v, r.load @ v, spent
        if not np.isfinite(rate).all():
            raise SingularError(_ENDLESS)
        return rate

    def seen(self, t: float, y: np.ndarray) -> Snapshot:
        """What efforts and events see of the unknowns."""
        x, state, v, r = self.parts(t, y)
        now = self._users(r, x, state, v, y)[0]
        if self._motors is None:
            return now
        return replace(now, current=self._motors.flow(t, now, self._motors.shafts(r, v)).current)

    def moment(self, t: float, y: np.ndarray) -> dict[str, Any]:
        """What is kept of a moment, its motion in the chart; see `seen_from`."""
        x, state, v, r = self.parts(t, y)
        now, G = self._users(r, x, state, v, y)
        driven = self._driven(t, r, now, G, v)
        kept = {
            "t": t,
            "q": now.q.copy(),
            "effort": driven.effort.copy(),
            "state": state.copy(),
            "kinetic": v @ r.I @ v / 2,
            "accounts": y[self._currents.stop :].copy(),
            "v": v.copy(),
            "a": driven.a,
            "motion": self._motion_inside(x, v, driven.a),
        }
        if self._motors is None:
            return kept | dict.fromkeys(FLOWS, np.zeros(0))
        kept["kinetic"] += self._motors.train.inertia @ driven.shafts.speed**2 / 2
        return kept | {key: getattr(driven.flow, key) for key in FLOWS}

    def spread(self, states: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, np.ndarray]:
        """Rates and accelerations (T, M) of the user's coordinates and of the tree's columns."""
        return self._motion(self._motion_evaluator(states), v, a)

    @cached_property
    def _motion_evaluator(self) -> Evaluator:
        """Second order of the user's coordinates and of the tree's columns."""
        names = list(dict.fromkeys((*self.motion.names, *self._tree.columns)))
        return Evaluator(self.motion.model, names, 2, False, self._wrt)

    def _motion(self, r: Any, v: np.ndarray, a: np.ndarray) -> dict[str, np.ndarray]:
        """Rates and accelerations (..., M) of the user's coordinates and of the tree's columns."""
        made = {}
        for first, second, names in (
            ("qd", "qdd", self.motion.names),
            ("rates", "second", self._tree.columns),
        ):
            G = np.concatenate([r[name].G for name in names], axis=-2)
            H = np.concatenate([r[name].H for name in names], axis=-3)
            made[first] = np.einsum("...pn,...n->...p", G, v)
            bend = np.einsum("...pmn,...m,...n->...p", H, v, v)
            made[second] = np.einsum("...pn,...n->...p", G, a) + bend
        return made

    def _motion_inside(self, x: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, np.ndarray] | None:
        """As `spread`, at a moment so near a change point that it is interpolated; None elsewhere."""
        if self.branch is None or not self.branch.inside(x):
            return None
        return self._motion(self.branch.evaluated(self._motion_evaluator, x), v, a)

    def _evaluated(self, state: np.ndarray) -> Any:
        """Dynamics in the chart, and the user's coordinates if they are others."""
        self._results = self.evaluator(state, self._results)
        return self._results

    def _users(
        self, r: Any, x: np.ndarray, state: np.ndarray, v: np.ndarray, y: np.ndarray
    ) -> tuple[Snapshot, Any]:
        """What the user sees, and the G of the user's coordinates unless they are the chart's."""
        motion = self.motion
        current = NONE if self._motors is None else self._motors.known(y[self._currents])
        if not self.own:
            G = np.concatenate([r[name].G for name in motion.names])
            q = np.concatenate([r[name].value for name in motion.names])
            turns = np.round((self.q - q) / (2 * np.pi))
            return Snapshot(np.where(self._turns, q + 2 * np.pi * turns, q), G @ v, state, current), G
        # of a chart of their own the coordinates are unknowns; balls have rotation vectors
        q = phi_of(self._tree, state[None])[0] if self.whole else x
        return Snapshot(q, v, state, current), None

    def _driven(self, t: float, r: Any, now: Snapshot, G: Any, v: np.ndarray) -> Driven:
        """What drives the motion: efforts, motors, and what prescribed motions take."""
        motion, held, free = self.motion, self.held, self.free
        effort = motion.efforts(t, now)
        I, h, shafts, flow = r.I, (r.P @ v) @ v + r.damping @ v - r.load, None, None
        if self._motors is not None:
            train, shafts = self._motors.train, self._motors.shafts(r, v)
            flow = self._motors.flow(t, now, shafts)
            I = I + train.reflected(shafts.N)
            h = h + shafts.N.T @ (train.inner(shafts.speed, shafts.bend) - flow.torque)
        if not held.size:
            T = effort if G is None else G.T @ effort
            return Driven(T, self._solve(I, T - h), effort, shafts, flow)
        effort = effort.copy()
        effort[motion.held] = 0.0
        T = effort.copy() if G is None else G.T @ effort
        a = np.empty(self.size)
        a[held] = motion.given(t)[2]
        part = I[free]
        a[free] = self._solve(part[:, free], T[free] - h[free] - part[:, held] @ a[held])
        # a prescribed coordinate moves nothing else of the chart: what it takes is its own effort
        effort[motion.held] = I[held] @ a + h[held] - T[held]
        T[held] += effort[motion.held]
        return Driven(T, a, effort, shafts, flow)

    def _solve(self, I: np.ndarray, net: np.ndarray) -> np.ndarray:
        """Accelerations of an inertia that must be positive definite."""
        if not net.size:  # every motion is given
            return net
        _, a, failed = self._cholesky(I, net)
        if failed:
            raise SingularError(
                f"I* of '{self.motion.model.description.name}' in {', '.join(self.names)} has no inverse: some "
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


def state_scale(tree: Tree, columns: np.ndarray) -> np.ndarray:
    """Scales (S,) of states from those (M,) of the tree's columns; 1 for quaternions."""
    scale, places = np.ones(tree.state_size), tree.cols[:, 3]
    scale[places[places >= 0]] = columns[places >= 0]
    return scale


def state_rates(tree: Tree, state: np.ndarray, rates: np.ndarray) -> np.ndarray:
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
