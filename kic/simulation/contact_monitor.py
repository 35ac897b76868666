"""Contact forces of a run: check that closed contacts can transmit the loads of the motion.

While they are closed, contacts are bilateral constraints. Their loads f follow from the dynamics of the
mechanism with open contacts, in coordinates y: Rᵀ f = I* ÿ + ẏᵀ P* ẏ − Tᴸ − Eᵀ T. R is the first order of
the contact rows. E is the first order of the coordinates at which efforts T act, and of the motor shafts. If
the contacts are redundant, f is not unique and the check requires only that some admissible f exists.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from kic.description.description import closed_contacts
from kic.dynamics.drive_train import DriveTrain
from kic.dynamics.friction import CONTACT_LOAD_RTOL, contact_force_check, remarks
from kic.errors import SingularError
from kic.kernels import layout as lay
from kic.mechanism.evaluator import PARTS, Tables
from kic.numerics.linalg import null_space
from kic.simulation.coordinates import Chart, DrivenMotion
from kic.simulation.events import crossings
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.input_selection import ALL_SETS_QUICK_MAX, ranking
from kic.transfer.rank import RANK_SHARE

# shares of a step at which contacts are checked
CHECK_SHARES = np.array([1 / 3, 2 / 3, 1.0])


class ContactMonitor:
    """Monitor of the closed contacts of a mechanism; `names` are the rows at which efforts act."""

    def __init__(self, model: CompiledModel, names: tuple[str, ...]) -> None:
        closed = closed_contacts(model.description)
        self._model, self._names = model, names
        self._check = contact_force_check(closed)
        self._rows = tuple(row for contact in closed for row in contact.rows)
        self._open_model = model.with_open_contacts(tuple(contact.name for contact in closed))
        self._open_coordinates: tuple[str, ...] = ()
        self._evaluators: Any = None
        # last time at which the margin was evaluated, and the margin
        self._known: tuple[float, float] | None = None

    def forget(self) -> None:
        """Discard the last margin, because efforts have changed."""
        self._known = None

    def broken(self, chart: Chart, begin: float, end: float, at: Any) -> float | None:
        """Return the time within a step at which a contact constraint is first violated, or None.

        `at` returns the unknowns at a time of the step.
        """

        def margin(t: float) -> float:
            return self.margin(chart, t, at(t))

        first = self._known[1] if self._known and self._known[0] == begin else margin(begin)
        if first < 0:
            return begin
        times = (begin + CHECK_SHARES * (end - begin)).tolist()
        times[-1] = end
        margins = [margin(t) for t in times]
        self._known = end, margins[-1]
        falls = [t for t, sign in crossings(margin, [begin, *times], [first, *margins]) if sign < 0]
        return min(falls, default=None)

    def margin(self, chart: Chart, t: float, y: np.ndarray) -> float:
        """Return the margin of the contact loads to their limits, as a share of the loads."""
        load, free, size = self.loads(chart, t, y)
        return self._check.largest_margin(load, free, size)[0] + CONTACT_LOAD_RTOL

    def description(self, chart: Chart, t: float, y: np.ndarray) -> str:
        """Describe the contacts that cannot hold."""
        load, free, size = self.loads(chart, t, y)
        _, best, violated = self._check.largest_margin(load, free, size)
        margins = self._check.margins(best)
        if free.any() and len(violated) > 1:
            names = ", ".join(f"'{self._check.names[k]}'" for k in violated)
            return f"this motion would require one of the contacts {names} to pull or slip"
        normal = self._check.parts(best)[0]
        worst = np.arange(len(normal)) == int(np.argmin(margins))
        detached = normal <= CONTACT_LOAD_RTOL * size
        return remarks(self._check.names, normal, worst & detached, worst & ~detached)[0]

    def loads(self, chart: Chart, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return contact loads (R,), a basis (R, k) of their undetermined part, and the scale of loads."""
        now, driven = chart.driven(t, y)
        v, a = now.v, driven.a
        closed, opened = self._evaluate(chart, now.state)
        columns = self._open_coordinates
        G = np.concatenate([closed[name].G for name in columns])
        H = np.concatenate([closed[name].H for name in columns])
        rate, acceleration = G @ v, G @ a + (H @ v) @ v
        E = np.concatenate([opened[name].G for name in self._names])
        R = np.concatenate([opened[name].G for name in self._rows])
        inertia, velocity_terms = opened.I @ acceleration, (opened.P @ rate) @ rate + opened.damping @ rate
        given = E.T @ np.concatenate([driven.effort, driven.prescribed])
        if chart.motion.train is not None:
            given = given + self._motors(chart.motion.train, closed, opened, v, driven)
        needed = inertia + velocity_terms - opened.load - given
        size = float(max(np.abs(x).max(initial=0.0) for x in (inertia, velocity_terms, opened.load, given)))
        U, s, V = np.linalg.svd(R.T, full_matrices=True)
        rank = int((s > RANK_SHARE * s.max(initial=0.0)).sum())
        load = V[:rank].T @ ((U[:, :rank].T @ needed) / s[:rank])
        return load, V[rank:].T, max(size, float(np.abs(load).max(initial=0.0))) or 1.0

    def _motors(
        self, train: DriveTrain, closed: Any, opened: Any, v: np.ndarray, driven: DrivenMotion
    ) -> np.ndarray:
        """Return generalized efforts of the motors on the open mechanism, minus rotor inertia and damping."""
        G, H = (np.concatenate([getattr(closed[joint], x) for joint in train.joints]) for x in "GH")
        speed, acceleration = train.ratios @ (G @ v), train.ratios @ (G @ driven.a + (H @ v) @ v)
        net = driven.motor_state.torque - train.rotor_torques(speed, acceleration)
        turns = np.concatenate([opened[joint].G for joint in train.joints])
        return np.asarray((train.ratios @ turns).T @ net)

    def _evaluate(self, chart: Chart, state: np.ndarray) -> tuple[Any, Any]:
        """Return coefficients of the open mechanism's coordinates in the chart, and its dynamics in these."""
        if self._evaluators is not None and self._evaluators[0] is chart:
            with suppress(SingularError):  # choose other coordinates of the open mechanism
                return self._evaluators[1](state), self._evaluators[2](state)
        self._open_coordinates = self._coordinates(state)
        shafts = () if chart.motion.train is None else chart.motion.train.joints
        outputs = tuple(dict.fromkeys((*self._rows, *self._names, *shafts)))
        coordinates = tuple(dict.fromkeys((*self._open_coordinates, *shafts)))
        self._evaluators = (
            chart,
            Tables(self._model, coordinates, 2, (), chart.names),
            Tables(self._open_model, outputs, 1, PARTS, self._open_coordinates),
        )
        return self._evaluators[1](state), self._evaluators[2](state)

    def _coordinates(self, state: np.ndarray) -> tuple[str, ...]:
        """Return coordinates that drive the open mechanism well."""
        tree = self._open_model.tree
        if tree.open:
            return tree.columns
        closing = self._open_model.closure(()).rows(state[None])[1][0]
        null = null_space(closing, self._open_model.dof)
        picks = ranking(null[None], tree.cols[:, lay.KIND] <= lay.PRISMATIC, 1, ALL_SETS_QUICK_MAX).picks[0]
        return tuple(tree.columns[n] for n in picks)
