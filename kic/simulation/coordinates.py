"""Equations of motion in one set of independent coordinates, as a SciPy integrator calls them.

Method. The unknowns y of the integrator are the positions x of the independent coordinates, their rates v,
the currents of motors with inductance, and the energy accounts. At each evaluation

1. prescribed positions and rates replace the integrated ones,
2. the loops are closed at x by Newton's method from the anchor, the last accepted state,
3. I* dv/dt = T − vᵀ P* v − B v + Tᴸ is solved for the accelerations in these coordinates, by one kernel that
   follows the motion through tree and loops and does not form P*.

The loops are closed again at every evaluation, so constraint errors cannot drift. The result depends on time
and unknowns alone, up to rounding: stages far from the anchor may be closed via an earlier stage, but every
segment of the path is certified to stay on the branch. For an open chain in the mechanism's coordinates, x is
the full state; quaternions of ball joints are integrated, and normalized on use.

A set of coordinates is called a chart. It is valid only where its coordinates drive the mechanism, so
`integration` replaces it when needed. Angular velocities among its coordinates have unit quaternions as
positions (see `transfer.orientations`). Near a change point, where branches of the closure meet, states come
from a smooth `Branch` instead (see `change_points`). Charts with quaternions have no branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from kic.errors import ConfigurationError, SingularError
from kic.kernels import layout as lay
from kic.kinematics.state import distance as state_distance
from kic.kinematics.state import integrate, phi_of
from kic.kinematics.tree import Tree
from kic.mechanism.evaluator import PARTS, Motions, PositionSolver, Tables, program_of
from kic.numerics.linalg import null_space
from kic.numerics.rotations import product
from kic.simulation.change_points import Branch, branch_ahead, branch_here
from kic.simulation.lsoda import lsoda
from kic.simulation.motion import NONE, Motion, Snapshot
from kic.simulation.motor_circuits import MotorEquations, matvec
from kic.simulation.stages import EXPLICIT, Stages, Tableau, many_steps, with_stages
from kic.transfer.program import MotionTerms

# energies that are integrated with motors, after the N_ENERGIES: electrical energy supplied, heat
N_MOTOR_ENERGIES = 2
# quantities of motors that are recorded at each sample
MOTOR_ARRAYS = ("torque", "voltage", "current", "current_rate")
# quantities of actuators that are recorded there, if these are not the user's coordinates
ACTUATOR_ARRAYS = ("actuator_effort", "actuator_rate")
# smallest part of the distance from the anchor that is closed in one Newton iteration
PART_MIN = 1 / 64
# a start is near a change point if the smallest singular value of the closure is below this share
CHANGE_POINT_RTOL = 1e-2
# slides longer than this many characteristic lengths need equilibrated rows; limits of Newton's method there
LONG_SLIDE_FACTOR, NEWTON_STEPS_MAX, NEWTON_CONTRACTION = 10.0, 10, 0.25
NOT_FINITE = "the motion is no longer finite: it diverges. Check the last state."


class DrivenMotion(NamedTuple):
    """Accelerations and the efforts and motor quantities that cause them."""

    # (..., M): efforts, including those of prescribed motions, and accelerations, in the chart
    T: np.ndarray
    a: np.ndarray
    # (..., A): efforts of the actuators, by default those at the user's coordinates; (H,) or (0,): efforts of
    # prescribed motions that are not among them
    effort: np.ndarray
    prescribed: np.ndarray
    shafts: Any
    motor_state: Any
    terms: MotionTerms


class MotionSample(NamedTuple):
    """Positions, rates and inputs of a motion at one time, or arrays of many times.

    Attributes
    ----------
    t : (...)
        Times.
    x, v : (..., M)
        Coordinates of the chart and their rates, with prescribed values.
    state : (..., S)
        Closed states.
    near : (..., M)
        The user's coordinates at the anchor, from which angles modulo full turns continue.
    current, accounts : (..., K), (..., E)
        Currents of the motors, NaN without inductance, and energy accounts.
    effort, voltage, second : (..., A), (..., K), (..., H)
        Efforts of the actuators, voltages, and accelerations of prescribed coordinates.
    rows : Results or None
        The user's coordinates, actuators and joints of motors, if they are not coordinates of the chart.
    tensors : Results or None
        Interpolated dynamics inside a change point's gap, where the closure is singular.
    """

    t: Any
    x: np.ndarray
    v: np.ndarray
    state: np.ndarray
    near: np.ndarray
    current: np.ndarray = NONE
    accounts: np.ndarray = NONE
    effort: np.ndarray = NONE
    voltage: np.ndarray = NONE
    second: np.ndarray = NONE
    rows: Any = None
    tensors: Any = None


class Chart:
    """Equations of motion in one set of coordinates, the user's or others.

    Every evaluation is a function of time and unknowns alone. Loops are closed from the anchor, the last
    accepted state, and never from a trial step of the integrator.

    Parameters
    ----------
    motion : Motion
        Efforts, voltages and prescribed motions in the user's coordinates.
    names : tuple of str
        The coordinates of the chart.
    anchor_state : (S,)
        A closed state, the first anchor.
    q : (M,)
        The user's coordinates at the anchor. Angles known modulo full turns continue from these values.

    Attributes
    ----------
    size : int
        Number of rates in the chart.
    n_positions : int
        Number of position unknowns: the size of the state if `is_full_state`, else `size`, and one more for
        each quaternion.
    rest : slice
        Unknowns after positions and rates, equal in all charts: currents of motors, and energy accounts.
    held, free : (H,), (M - H,)
        Indices of the prescribed coordinates, which every chart contains, and of the free ones.
    is_full_state : bool
        True if the mechanism is an open chain and the chart has its coordinates.
    is_users : bool
        True if the chart has the user's coordinates.
    use_global_solver : bool
        True if the global solver closes loops that Newton's method does not.
    branch : Branch or None
        Smooth branch through a change point near the anchor.
    normalized : callable
        Returns states with normalized quaternions.
    solved : Closure
        The rows that are solved: those of the chart, or rotations in place of angular velocities.
    """

    def __init__(
        self, motion: Motion, names: tuple[str, ...], anchor_state: np.ndarray, q: np.ndarray
    ) -> None:
        model = motion.model
        self.motion, self.names, self.normalized = motion, names, partial(normalized, model.tree)
        self.anchor_state, self.q = anchor_state.copy(), q.copy()
        self.is_full_state = model.is_open_chain and names == model.coordinates
        self._tree = model.tree
        self.is_users = names == motion.names
        self._wrt = None if self.is_full_state else names
        self._motors = None if motion.train is None else MotorEquations(motion.train, names)
        outputs, order = () if self.is_users else motion.names, 1
        # places of the actuators among the coordinates; None if their Jacobian varies
        self._places: list[int] | None = None
        if set(motion.actuators) <= set(names):
            self._places = [names.index(name) for name in motion.actuators]
        else:
            outputs = tuple(dict.fromkeys((*outputs, *motion.actuators)))
        if self._motors is not None and self._motors.rows:
            outputs, order = tuple(dict.fromkeys((*outputs, *self._motors.rows))), 2
        self.evaluator = Tables(model, outputs, order, PARTS, self._wrt, check_results=False)
        self._forward = Motions(model, "forward_dynamics", self._wrt)
        self._rows = Tables(model, outputs, order, (), self._wrt, check_results=False) if outputs else None
        self._results: Any = None
        # evaluator of the Jacobian of the actuators, if that varies
        self._acting: Tables | None = None
        self._acting_results: Any = None
        if self._places is None:
            self._acting = Tables(model, motion.actuators, 1, (), self._wrt, check_results=False)
        self._global_solver = None if self.is_full_state else PositionSolver(model, names)
        self._closure = model.closure(names)
        self._positions = None if self.is_full_state else model.positions(names)
        self._has_values = model.transfer(motion.names).holonomic
        # compiled Newton iteration of the rows that are solved
        self.solved = self._closure if self._positions is None else self._positions.closure
        self._track = (self._closure if self._positions is None else self._positions).track
        self.use_global_solver = False
        # closure rows chosen at an anchor; None for the rows chosen in the reference configuration
        self._choice: np.ndarray | None = None

        # positions at the end of the last step or at the anchor, and their closed state
        self._closed: tuple[np.ndarray, np.ndarray] = (np.empty(0), self.anchor_state)
        # first order of all rows at the last state, and the state
        self._first_order: tuple[np.ndarray, np.ndarray] | None = None

        self.branch: Branch | None = None
        self.size = self.n_positions = len(names)
        if self.is_full_state:
            self.n_positions = model.tree.state_size
        elif self._positions is not None:
            self.n_positions = self._positions.size

        self.held = np.array([names.index(motion.names[k]) for k in motion.held], dtype=np.intp)
        self.free = np.setdiff1d(np.arange(len(names)), self.held)
        n_currents = 0 if self._motors is None else int(self._motors.is_inductive.sum())
        self.n_accounts = lay.N_ENERGIES if self._motors is None else lay.N_ENERGIES + N_MOTOR_ENERGIES
        self.rest = slice(self.n_positions + self.size, None)
        self._currents = slice(self.n_positions + self.size, self.n_positions + self.size + n_currents)
        rows = program_of(self.evaluator).outputs
        # the user's coordinates that are known modulo full turns
        self._turns = np.zeros(len(q), dtype=bool)
        if rows is not None and not self.is_users:
            self._turns = rows.rows.turns[: len(q)]
        self.anchor_position = np.zeros(0) if self.is_full_state else self._values(anchor_state)

    @cached_property
    def _stages(self) -> Stages | None:
        """Compiled stages; None if shafts of motors are not coordinates, or the closure is not compiled."""
        motion, closure = self.motion, None if self.is_full_state else self.solved
        program = program_of(self._forward)
        if not program.is_compiled or not (closure is None or closure.compiled):
            return None
        if program.queries[0].entry not in ("tree_motion", "motion_in_coordinates"):
            return None
        if self._motors is not None and self._motors.rows:
            return None
        held = np.array([self.held, self._columns(self.held)], dtype=np.int64)
        n_unknowns = self._currents.stop + self.n_accounts
        return Stages(
            motion, program, closure, self._positions, self._motors, held, n_unknowns, self._inputs,
            not self._has_constant_inputs,
        )  # fmt: skip

    @cached_property
    def _has_constant_inputs(self) -> bool:
        """True if efforts at the coordinates, and voltages, do not depend on time or state within a step."""
        motion = self.motion
        if motion.has_functions or self._places is not None:
            return not motion.has_functions
        acting = np.ones(len(motion.actuators), dtype=bool)
        if motion.acts_at_coordinates:
            acting[motion.held] = False
        return not (motion.is_sampled or motion.efforts(0.0, None)[acting].any())

    def _inputs(self, t: float, x: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return efforts (M,) at the coordinates, and voltages or None, for unknowns with prescribed values.

        Efforts at prescribed coordinates are zero, because kernels add those that their motions require.
        """
        motion = self.motion
        if not self._has_constant_inputs:
            v = x[self.n_positions : self.n_positions + self.size]
            state = self.normalized(state)
            now = MotionSample(t, x[: self.n_positions], v, state, self.q, self._currents_of(x))
            if motion.has_functions and not self.is_users:
                now = self._with_rows(now)
            now, G = self._with_inputs(now), None
            if self._acting is not None:
                self._acting_results = self._acting(state, out=self._acting_results)
                G = self._acting.jacobian(self._acting_results)
            T, voltage = self._at_coordinates(now, now.effort, G), now.voltage
        else:
            voltage = NONE if self._motors is None else motion.voltages(t, None)
            T = np.zeros(self.size)
            if self._places is not None:
                T = self._at_coordinates(None, motion.efforts(t, None))
        T[self.held] = 0.0
        return T, None if self._motors is None else voltage

    def integrator(self, method: str) -> Any:
        """Return SciPy's integrator by name, with compiled stages if possible."""
        if method in EXPLICIT and self.branch is None and self._stages is not None:
            return with_stages(method)
        if method == "LSODA":
            return lsoda()
        import scipy.integrate

        return getattr(scipy.integrate, method)

    def stages(
        self,
        t: float,
        y: np.ndarray,
        h: float,
        tableau: Tableau,
        K: np.ndarray,
        first: int,
        last: int,
        controlled: bool = False,
    ) -> np.ndarray | None:
        """Compute stages of a step from the anchor; see `Stages`."""
        if self._stages is None or self.branch is not None:
            return None
        end = self._stages(self.anchor_state, self._choice, t, y, h, tableau, K, first, last, controlled)
        if end is not None and first == 0:
            self._closed = self._stages.unknowns[: self.n_positions].copy(), self._stages.state.copy()
        return end

    @cached_property
    def is_free(self) -> bool:
        """True if one call can take many steps: inputs are constant, and nothing is prescribed."""
        return self._stages is not None and self._has_constant_inputs and not self.held.size

    @property
    def width(self) -> int:
        """Number of entries of a state besides the unknowns."""
        return 0 if self.is_full_state else self._tree.state_size

    def many_steps(self, solver: Any, most: int, output: int) -> np.ndarray:
        """Take steps of an integrator from the anchor; see `stages.many_steps`."""
        assert self._stages is not None  # for the type checker
        return many_steps(solver, self._stages, self.anchor_state, self._choice, most, output)

    def follow(self, records: np.ndarray) -> list[MotionSample]:
        """Make the end of the last recorded step the anchor; return the motion at the recorded outputs."""
        size, place = records.shape[1] - self.width - lay.RECORD_UNKNOWNS, self.n_positions
        unknowns = records[:, lay.RECORD_UNKNOWNS :][:, :size]
        x, v = unknowns[:, :place], unknowns[:, place : place + self.size]
        states = self.normalized(x if self.is_full_state else records[:, lay.RECORD_UNKNOWNS + size :])
        near, made, outputs = None, list[MotionSample](), np.zeros(0, int)
        if len(records) > 1:
            outputs = np.flatnonzero(records[:, lay.RECORD_END] == 0)
            if not self.is_full_state:
                self._close_outputs(records, x, states, outputs)
        if self._rows is not None and not self.is_users:
            # angles count full turns from one record to the next
            now = MotionSample(records[:, lay.RECORD_TIME], x, v, states, self.q, rows=self._rows(states))
            q = self._values_of(now)
            near = np.where(self._turns, np.unwrap(np.vstack([self.q, q]), axis=0)[1:], q)
        for k in outputs.tolist():
            t = float(records[k, lay.RECORD_TIME])
            now = self._with_inputs(self.evaluate(t, unknowns[k].copy(), states[k].copy()))
            made.append(now if near is None else now._replace(near=near[k]))
        self.anchor_position, self.anchor_state = x[-1].copy(), states[-1].copy()
        self._closed = self.anchor_position, self.anchor_state
        last = MotionSample(0.0, self.anchor_position, v[-1], self.anchor_state, self.q)
        self.q = (self._values_of(last) if near is None else near[-1]).copy()
        return made

    def _close_outputs(
        self, records: np.ndarray, x: np.ndarray, states: np.ndarray, outputs: np.ndarray
    ) -> None:
        """Close the loops at outputs where compiled code does not, from the step before them."""
        anchor = self.anchor_position, self.anchor_state
        try:
            for k in outputs[np.isnan(states[outputs]).any(axis=1)]:
                before = np.flatnonzero(records[:k, lay.RECORD_END])
                if len(before):
                    self.anchor_position, self.anchor_state = x[before[-1]], states[before[-1]]
                states[k] = self._close_at(x[k])
        finally:
            self.anchor_position, self.anchor_state = anchor

    def _values(self, state: np.ndarray) -> np.ndarray:
        """Return the positions of the chart's coordinates."""
        if self._positions is not None:
            x = self._positions.of(state[None])[0]
            x[self._columns(self.held)] = self.q[self.motion.held]
            return x
        if self.is_users:
            return self.q.copy()
        values = self.motion.model.values(self.names, state[None])[0]
        values[self.held] = self.q[self.motion.held]  # full turns included
        return values

    @cached_property
    def scale(self) -> np.ndarray:
        """Characteristic scale of each unknown.

        Radians and the characteristic length for positions and rates. For energies, the largest kinetic
        energy of a motion at unit scaled rate. For currents, see `MotorEquations.scale`.
        """
        rates = self.position_scale
        places = self.state_scale if self.is_full_state else rates
        if self._positions is not None:
            places = self._positions.scale(rates)
        if self.branch is not None and self.branch.inside(self.anchor_position):
            r = self.branch.evaluated(self.evaluator, self.anchor_position)
        else:
            r = self.evaluator(self.anchor_state)
        inertia, currents = np.diag(r.I), np.zeros(0)
        if self._motors is not None:
            shafts = self._motors.shafts(r, np.zeros(self.size))
            inertia = inertia + np.diag(self._motors.train.reflected(shafts.N))
            currents = self._motors.scale(shafts, inertia, rates)
        energy = (inertia * rates**2).max(initial=0.0) or 1.0
        return np.concatenate([places, rates, currents, np.full(self.n_accounts, energy)])

    @property
    def position_scale(self) -> np.ndarray:
        """Array (M,) of the scales of the chart's coordinates."""
        t = self._closure.transfer
        return t.scale[: t.size]

    @cached_property
    def state_scale(self) -> np.ndarray:
        """Array (S,) of the scales of states."""
        return state_scale(self._tree, self._closure.transfer.column_scale)

    def residual(self, state: np.ndarray) -> float:
        """Return the largest residual of the closure rows at a state (S,), as a share of its limit."""
        rows = self._closure.rows(state[None])[0][0, self._closure.transfer.size :]
        return float(np.abs(rows).max()) / self._closure.limit

    def first_order(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the scaled first order of the chart's rows (M, columns) and closure rows (P, columns)."""
        if self._first_order is None or self._first_order[0] is not state:
            self._first_order = state, self._closure.transfer.first_order(state)
        G, size = self._first_order[1], self._closure.transfer.size
        return G[:size], G[size:]

    @property
    def rank(self) -> int:
        """Rank of the closure rows where they are regular."""
        return self._tree.size - self.size

    def closure_margin(self, states: np.ndarray) -> np.ndarray:
        """Return the ratio (B,) of smallest to largest singular value of the closure; 0 at change points."""
        closing = self._closure.rows(states)[1][:, self._closure.transfer.size :]
        sigma = np.linalg.svd(closing, compute_uv=False)
        return np.asarray(sigma[:, self.rank - 1] / sigma[:, 0])

    def tangent(self, rates: np.ndarray) -> np.ndarray | None:
        """Return scaled rates (columns,) of the tree at the anchor for scaled rates (M,) of the chart."""
        own, closing = self.first_order(self.anchor_state)
        null = null_space(closing, self.size)
        with suppress(np.linalg.LinAlgError):
            tangent = null @ np.linalg.solve(own @ null, rates)
            if tangent.any() and np.isfinite(tangent).all():
                return np.asarray(tangent)
        return None

    def rates_of_tangent(self, tangent: np.ndarray) -> np.ndarray:
        """Return scaled rates (M,) of the chart at the anchor for scaled rates (columns,) of the tree."""
        return np.asarray(self.first_order(self.anchor_state)[0] @ tangent)

    def state_after(self, step: np.ndarray) -> np.ndarray:
        """Return the state (S,) after a scaled step (columns,) of the tree from the anchor."""
        return integrate(
            self._tree, self.anchor_state[None], (step * self._closure.transfer.column_scale)[None]
        )[0]

    def close_locally(self, x: np.ndarray, state: np.ndarray) -> np.ndarray | None:
        """Return the closed state (S,) at coordinates by Newton's method from a near state, or None."""
        states, share = self._closure.track(state[None], x[None], self._choice)
        return states[0] if share[0] == 1 else None

    def distance(self, a: np.ndarray, b: np.ndarray) -> float:
        """Return the largest scaled difference between two states (S,)."""
        scale = self._closure.transfer.column_scale
        return float(state_distance(self._tree, a[None], b[None], scale).max(initial=0.0))

    @property
    def has_branches(self) -> bool:
        """True if change points can be passed in this chart: loops, compiled closure, no quaternions."""
        return self._positions is None and not self.is_full_state and self._closure.compiled and self.rank > 0

    def seek_branch(self, direction: np.ndarray) -> bool:
        """Change to the smooth branch through a change point ahead; return True if one is found."""
        if self.branch is None and self.has_branches:
            self.branch = branch_ahead(self, direction)
            return self.branch is not None
        return False

    def seek_branch_at_start(self, rates: np.ndarray | None, v: np.ndarray) -> None:
        """Change to the smooth branch through the start if the start is at a change point or very near one.

        The rates of the tree determine the branch if they are known, otherwise those of the chart.
        """
        if not self.has_branches or self.closure_margin(self.anchor_state[None])[0] > CHANGE_POINT_RTOL:
            return
        if rates is not None and rates.any():
            tangents = [rates / self._closure.transfer.column_scale]
        else:
            given = [v / self.position_scale] if v.any() else list(np.eye(self.size))
            tangents = [tangent for tangent in map(self.tangent, given) if tangent is not None]
        for tangent in (*tangents, *(-tangent for tangent in tangents)):
            if self.branch is None:
                self.branch = branch_here(self, tangent)

    def pack(self, state: np.ndarray, rates: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return unknowns: anchor state (S,), rates (M,), and further unknowns `rest` of another chart."""
        return np.concatenate([state if self.is_full_state else self.anchor_position, rates, rest])

    def anchor(self, t: float, y: np.ndarray) -> None:
        """Make an accepted state the anchor, from which other states are closed."""
        now = self.evaluate(t, y)
        self.q = self._values_of(now).copy()
        self.anchor_state, self.anchor_position = now.state, now.x.copy()
        # also where a branch ends: states of steps before it may be on another one
        self._closed = self.anchor_position, self.anchor_state

    def coordinates(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and rates (M,) of the chart, with prescribed values inserted."""
        x, v = y[: self.n_positions], y[self.n_positions : self.n_positions + self.size]
        held = self.held
        if held.size:
            value, rate, _ = self.motion.given(t)
            x, v = x.copy(), v.copy()
            v[held] = rate
            x[self._columns(held)] = value
        return x, v

    def evaluate(self, t: float, y: np.ndarray, state: np.ndarray | None = None) -> MotionSample:
        """Return positions, rates and closed state of the chart, with results of rows outside the chart.

        The state is a copy. If `state` is given, these results are computed only for the user's functions.
        """
        x, v = self.coordinates(t, y)
        found, wanted = None, state is None or self.motion.has_functions
        if state is None:
            (known, closed), loops = self._closed, self._global_solver is not None and self.branch is None
            # comparing bytes takes a tenth of the time of comparing numbers
            state = closed if loops and known.tobytes() == x.tobytes() else self._states(x[None])[0]
        now = MotionSample(t, x, v, state, self.q, self._currents_of(y), y[self._currents.stop :])
        if self.branch is not None and self.branch.inside(x):
            found = self.branch.evaluated(self.evaluator, x)
            return now._replace(rows=found, tensors=found)
        return self._with_rows(now) if wanted else now

    def _with_rows(self, now: MotionSample) -> MotionSample:
        """Return the motion with results of the rows that are not coordinates of the chart, if any."""
        if self._rows is None:
            return now
        self._results = self._rows(now.state, out=self._results)
        return now._replace(rows=self._results)

    def _states(self, x: np.ndarray) -> np.ndarray:
        """Return copies of the closed states (T, S) at positions (T, M)."""
        if self._global_solver is None:
            return self.normalized(x.copy())
        if self.branch is not None:
            return np.array([self.branch.state(one) for one in x])
        states, share = self._track(self.anchor_state[None].repeat(len(x), 0), x, self._choice)
        for k in np.flatnonzero(share != 1):
            states[k] = self._close_at(x[k])
        return states

    def integrated(self, y: np.ndarray) -> np.ndarray:
        """Return the integrated values and rates (2, H) of prescribed coordinates."""
        held = self.held
        return np.array([y[self._columns(held)], y[self.n_positions + held]])

    def _close_at(self, x: np.ndarray) -> np.ndarray:
        """Return the closed state (S,) at positions x, from the anchor at once or in several parts.

        If the chosen closure rows fail, they are chosen again at the anchor. If the loops still do not close,
        the trial step is too long and a shorter one follows. The global solver is used only after shorter
        steps failed too.
        """
        assert self._global_solver is not None  # for the type checker
        if not self.solved.compiled:
            return self._close_globally(x)
        state, share = self.close_stepwise(x, self.anchor_position, self.anchor_state)
        if state is None and self._positions is None and self._has_long_slides:
            state = self._close_long_slides(x)
        if state is None and (choice := self.solved.transfer.choice_at(self.anchor_state[None])) is not None:
            self._choice = choice
            state, share = self.close_stepwise(x, self.anchor_position, self.anchor_state)
        if state is None and share and not self.use_global_solver:
            raise ConfigurationError(
                f"its loops do not close for the values of {', '.join(self.names)} along the motion",
                values=x.copy(),
            )
        return self._close_globally(x) if state is None else state

    def _close_globally(self, x: np.ndarray) -> np.ndarray:
        """Return the closed state (S,) at positions x by the global solver from the anchor."""
        assert self._global_solver is not None  # for the type checker
        return self._global_solver(self.anchor_state, x)

    @property
    def _has_long_slides(self) -> bool:
        """True if slides are far longer than the characteristic length, which scales all rows."""
        slides = self._tree.cols[self._tree.cols[:, lay.KIND] == lay.PRISMATIC, lay.STATE]
        return bool(
            (np.abs(self.anchor_state[slides]) > LONG_SLIDE_FACTOR * self._closure.transfer.length).any()
        )

    def _close_long_slides(self, x: np.ndarray) -> np.ndarray | None:
        """Return the closed state (S,) by Newton's method with equilibrated rows and columns, or None.

        It must converge as fast as the compiled solver, which is scaled by the described lengths.
        """
        closure, tree, state = self._closure, self._tree, self.anchor_state[None]
        column_scale, goal, size = closure.transfer.column_scale, closure.goal(x[None]), np.inf
        # positions are rounded in proportion to the largest length
        limit = closure.limit * max(1.0, float(np.abs(self.anchor_state / self.state_scale).max()))
        for _ in range(NEWTON_STEPS_MAX):
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

    def close_stepwise(
        self, x: np.ndarray, start: np.ndarray, state: np.ndarray
    ) -> tuple[np.ndarray | None, float]:
        """Continue a closed state from `start` to x; return it (S,) or None, and the share completed."""
        state, done, part = state[None], 0.0, 1.0
        while part >= PART_MIN:
            share = min(1.0, done + part)
            target = (start + share * (x - start))[None]
            closed, completed = self._track(state, target, self._choice)
            if completed[0] != 1:
                part /= 2
            elif share == 1.0:
                return closed[0], share
            else:
                state, done = closed, share
        return None, done

    def reason(self, error: Exception) -> str:
        """Return the reason why the loops do not close where a motion fails at any step size."""
        values = getattr(error, "values", None)
        if values is not None and self._global_solver is not None:
            try:
                self._close_globally(values)
            except ConfigurationError as closer:
                error = closer
        return str(error).rstrip(".")

    def _columns(self, held: np.ndarray) -> np.ndarray:
        """Return the indices of the unknowns that hold the values of given coordinates."""
        if self._positions is not None:
            return np.searchsorted(self._positions.valued, held)
        if not self.is_full_state:
            return held
        tree = self._tree
        return np.array([tree.cols[tree.column[self.names[k]], lay.STATE] for k in held], dtype=np.intp)

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return the derivatives of the unknowns."""
        if not isfinite(y @ y):  # a trial step; the user's functions are not called with it
            raise SingularError(NOT_FINITE)
        if self._stages is not None and self.branch is None:
            found = self._stages.derivatives(self.anchor_state, self._choice, t, y)
            if found is not None:
                return found
        now, solved = self.driven(t, y)
        x, v = now.x, now.v
        rate = np.empty_like(y)
        rate[: self.n_positions] = self._position_rates(x, v)
        rate[self.n_positions : self.n_positions + self.size] = solved.a
        spent, end = solved.terms.dissipation, self._currents.stop
        if self._motors is not None:
            shafts, motor_state = solved.shafts, solved.motor_state
            rate[self._currents] = motor_state.current_rate[self._motors.is_inductive]
            rate[-N_MOTOR_ENERGIES:] = motor_state.power, motor_state.heat
            spent = spent + self._motors.train.damping @ shafts.speed**2
        rate[end : end + lay.N_ENERGIES] = solved.T @ v, solved.terms.load_power, spent
        if not np.isfinite(rate).all():
            raise SingularError(NOT_FINITE)
        return rate

    def snapshot(self, t: float, y: np.ndarray) -> Snapshot:
        """Return the snapshot that efforts and events receive."""
        now = self.evaluate(t, y)
        snapshot = self.snapshot_of(now)
        if self._motors is None:
            return snapshot
        given, shafts = self.motion.voltages(t, snapshot), self._motors.shafts(now.rows, now.v)
        return replace(snapshot, current=self._motors.state(given, now.current, shafts).current)

    def driven(self, t: float, y: np.ndarray) -> tuple[MotionSample, DrivenMotion]:
        """Return the motion with its inputs, and the accelerations with the efforts that cause them."""
        now = self._with_inputs(self.evaluate(t, y))
        return now, self._accelerations(now)

    def samples(self, times: Sequence[float], unknowns: Sequence[np.ndarray]) -> list[MotionSample]:
        """Return the motion and its inputs at samples of a step; their loops are closed in one batch."""
        x = np.array([self.coordinates(*at)[0] for at in zip(times, unknowns, strict=True)])
        at_anchor = len(x) == 1 and np.array_equal(x[0], self.anchor_position) and self.branch is None
        states = self.anchor_state[None].copy() if at_anchor else self._states(x)
        made = []
        for t, y, state in zip(times, unknowns, states, strict=True):
            now, rows = self._with_inputs(self.evaluate(t, y, state)), None
            if now.tensors is not None:
                assert self.branch is not None  # for the type checker
                rows = self.branch.evaluated(self._motion_evaluator, now.x)
            made.append(now._replace(rows=rows))
        return made

    def quantities(self, now: MotionSample) -> dict[str, np.ndarray]:
        """Return the quantities recorded at samples, by name."""
        r, v = self._motion_evaluator(now.state) if now.tensors is None else now.rows, now.v
        now = now._replace(rows=r)
        solved, none = self._accelerations(now), np.zeros((*v.shape[:-1], 0))
        found = {key: getattr(now, key) for key in ("t", "state", "accounts")}
        found |= {"q": self._values_of(now), "effort": self.effort_of(now, solved)}
        found |= dict.fromkeys((*MOTOR_ARRAYS, *ACTUATOR_ARRAYS), none)
        if not self.motion.acts_at_coordinates:
            found["actuator_effort"] = solved.effort
            found["actuator_rate"] = matvec(self._jacobian(now, self.motion.actuators), v)
        found["kinetic"] = np.einsum("...i,...ij,...j->...", v, solved.terms.I, v) / 2
        if self._motors is not None:
            found["kinetic"] = found["kinetic"] + solved.shafts.speed**2 @ self._motors.train.inertia / 2
            found |= {key: getattr(solved.motor_state, key) for key in MOTOR_ARRAYS}
        of_user, of_tree = ("qd", "qdd", self.motion.names), ("rates", "second", self._tree.columns)
        for first, second, names in (of_user, of_tree):
            G = np.concatenate([r[name].G for name in names], axis=-2)
            H = np.concatenate([r[name].H for name in names], axis=-3)
            found[first] = np.einsum("...pn,...n->...p", G, v)
            bias = np.einsum("...pmn,...m,...n->...p", H, v, v)
            found[second] = np.einsum("...pn,...n->...p", G, solved.a) + bias
        return found

    @cached_property
    def _motion_evaluator(self) -> Tables:
        """Evaluator of the second order of the user's coordinates, of joints of motors, and of the tree."""
        shafts = () if self._motors is None else self._motors.rows
        names = list(
            dict.fromkeys((*self.motion.names, *self.motion.actuators, *shafts, *self._tree.columns))
        )
        return Tables(self.motion.model, names, 2, (), self._wrt)

    def _currents_of(self, y: np.ndarray) -> np.ndarray:
        """Return the currents (K,) among unknowns."""
        return NONE if self._motors is None else self._motors.currents(y[self._currents])

    def tables(self, names: tuple[str, ...]) -> Tables:
        """Return an evaluator of rows in this chart, for `results`."""
        return Tables(self.motion.model, names, 1, (), self._wrt, check_results=False)

    def results(self, now: MotionSample, tables: Tables) -> Any:
        """Return the results of an evaluator; they are interpolated inside the gap of a change point."""
        if now.tensors is None:
            return tables(now.state)
        assert self.branch is not None  # for the type checker
        return self.branch.evaluated(tables, now.x)

    def _values_of(self, now: MotionSample) -> np.ndarray:
        """Return the user's coordinates (..., M)."""
        names, states = self.motion.names, now.state.reshape(-1, now.state.shape[-1])
        if not self.is_users:
            q = np.concatenate([now.rows[name].value for name in names], axis=-1)
            if not self._has_values:
                q = self.motion.model.coordinate_values(names, states).reshape(q.shape)
            turns = np.round((now.near - q) / (2 * np.pi))
            return np.where(self._turns, q + 2 * np.pi * turns, q)
        # in the user's chart the coordinates are the unknowns; those of orientations are rotation vectors
        if self.is_full_state:
            return phi_of(self._tree, states).reshape(now.v.shape)
        return now.x if self._positions is None else self._positions.values(now.x)

    def _jacobian(self, now: MotionSample, names: tuple[str, ...]) -> np.ndarray:
        """Return the Jacobian (G) of the user's coordinates, or of actuators, in this chart."""
        return np.concatenate([now.rows[name].G for name in names], axis=-2)

    def _at_coordinates(
        self, now: MotionSample | None, effort: np.ndarray, G: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the efforts (..., M) in the chart for efforts (..., A) of the actuators: T_q = Gᵀ T.

        Prescribed motions replace efforts at their coordinates.
        """
        motion = self.motion
        if motion.acts_at_coordinates and motion.held.size:
            effort = effort.copy()
            effort[..., motion.held] = 0.0
        if self._places is None:
            if G is None:
                assert now is not None  # for the type checker: only constant Jacobians need no motion
                G = self._jacobian(now, motion.actuators)
            return matvec(np.swapaxes(G, -1, -2), effort)
        if self._places == list(range(self.size)):
            return effort.copy()
        T = np.zeros((*effort.shape[:-1], self.size))
        T[..., self._places] = effort
        return T

    def effort_of(self, now: MotionSample, driven: DrivenMotion) -> np.ndarray:
        """Return the efforts (..., M) at the user's coordinates; NaN if these cannot drive the chart."""
        if self.motion.acts_at_coordinates:
            return driven.effort
        if self.is_users:
            return driven.T
        transposed = np.swapaxes(self._jacobian(now, self.motion.names), -1, -2)
        try:
            return np.asarray(np.linalg.solve(transposed, driven.T[..., None])[..., 0])
        except np.linalg.LinAlgError:
            return np.full(driven.T.shape, np.nan)

    def snapshot_of(self, now: MotionSample) -> Snapshot:
        """Return the snapshot for functions of the user."""
        rates = now.v if self.is_users else self._jacobian(now, self.motion.names) @ now.v
        return Snapshot(self._values_of(now), rates, now.state, now.current)

    def _with_inputs(self, now: MotionSample) -> MotionSample:
        """Return the motion at one time with its inputs; call the user's functions."""
        motion, t = self.motion, now.t
        snapshot = self.snapshot_of(now) if motion.has_functions else None
        effort, second = motion.efforts(t, snapshot), motion.given(t)[2] if self.held.size else NONE
        voltage = NONE if self._motors is None else motion.voltages(t, snapshot)
        return now._replace(effort=effort, voltage=voltage, second=second)

    def _accelerations(self, now: MotionSample) -> DrivenMotion:
        """Return accelerations, efforts and motor quantities, including those of prescribed motions."""
        motion, held, free, v = self.motion, self.held, self.free, now.v
        effort, T = now.effort, self._at_coordinates(now, now.effort)
        terms, shafts, motor_state = self._terms(now, T), None, None
        if not held.size and self._motors is None and not np.isnan(terms.acceleration).any():
            return DrivenMotion(T, terms.acceleration, effort, NONE, shafts, motor_state, terms)
        I, h, a = terms.I, terms.bias, np.empty(v.shape)
        if self._motors is not None:
            train, shafts = self._motors.train, self._motors.shafts(now.rows, v)
            motor_state = self._motors.state(now.voltage, now.current, shafts)
            net = train.rotor_torques(shafts.speed, shafts.bias) - motor_state.torque
            I, h = I + train.reflected(shafts.N), h + matvec(np.swapaxes(shafts.N, -1, -2), net)
        a[..., held] = now.second
        part = I[..., free, :]
        net = T[..., free] - h[..., free] - matvec(part[..., held], a[..., held])
        a[..., free] = self._solve(part[..., free], net)
        # coordinates of the chart are independent, so a prescribed one takes only its own effort
        prescribed = matvec(I[..., held, :], a) + h[..., held] - T[..., held]
        T[..., held] += prescribed
        if motion.acts_at_coordinates:
            effort = effort.copy()
            effort[..., motion.held], prescribed = prescribed, NONE
        return DrivenMotion(T, a, effort, prescribed, shafts, motor_state, terms)

    def _terms(self, now: MotionSample, T: np.ndarray) -> MotionTerms:
        """Return the terms of the equations of motion, with accelerations due to efforts T (M,) if known."""
        v, r = now.v, now.tensors
        if r is None:
            return self._forward.terms(now.state, v, np.asarray(T, float))
        drag = r.damping @ v
        return MotionTerms(
            np.full(self.size, np.nan), (r.P @ v) @ v + drag - r.load, r.I, r.load @ v, drag @ v
        )

    def _solve(self, I: np.ndarray, net: np.ndarray) -> np.ndarray:
        """Return accelerations for a mass matrix (I*), which must be positive definite."""
        if not net.size:  # all coordinates are prescribed
            return net
        if net.ndim > 1:
            return np.array([self._solve(*member) for member in zip(I, net, strict=True)])
        # the checks of SciPy's wrapper cost more than the solution
        from scipy.linalg.lapack import dposv

        _, a, failed = dposv(I, net)
        if failed:
            if not (np.isfinite(I).all() and np.isfinite(net).all()):
                return np.full(net.shape, np.nan)
            raise SingularError(
                f"I* of '{self.motion.model.description.name}' in {', '.join(self.names)} is singular: "
                "some motion moves no mass. Give mass and inertia to every body that moves.",
                coordinates=self.names,
            )
        return np.asarray(a)

    def _position_rates(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the derivatives of the position unknowns."""
        if self._positions is not None:
            return self._positions.rates(x, v)
        if not self.is_full_state:
            return v
        order = self._tree.to_coordinates
        return state_rates(self._tree, x, v if order is None else v[np.argsort(order)])


def state_scale(tree: Tree, columns: np.ndarray) -> np.ndarray:
    """Return scales (S,) of states from scales (M,) of the tree's columns; 1 for quaternions."""
    scale, places = np.ones(tree.state_size), tree.cols[:, lay.STATE]
    scale[places[places >= 0]] = columns[places >= 0]
    return scale


def normalized(tree: Tree, states: np.ndarray) -> np.ndarray:
    """Return states (..., S) with normalized quaternions."""
    if not tree.balls:
        return states
    states = states.copy()
    for _, place in tree.ball_slices:
        q = states[..., place]
        q /= np.sqrt(np.einsum("...i,...i->...", q, q))[..., None]
    return states


def state_rates(tree: Tree, state: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return rates (..., S) of states from rates (..., M) of the tree's columns: ½ ω q for quaternions."""
    if not tree.balls:
        return rates
    slopes, (columns, entries) = np.empty_like(state), tree.single_columns
    slopes[..., entries] = rates[..., columns]
    for part, place in tree.ball_slices:
        turn = np.concatenate([np.zeros_like(rates[..., :1]), rates[..., part] / 2], axis=-1)
        slopes[..., place] = product(turn, state[..., place])
    return slopes
