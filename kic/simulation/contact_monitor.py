"""The watch over contacts in a run: whether they can give the loads that the motion takes.

While they are closed, contacts hold both ways. Their loads f follow from the motion of the mechanism in which
they are open, with y its coordinates: Rᵀ f = I* ÿ + ẏᵀ P* ẏ − Tᴸ − Eᵀ T, where R is the first order of their
rows and E that of the coordinates at which efforts T act, and of the shafts at which motors do. Where they
are held more often than needed, f is open, and it is enough that some f is possible.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from kic.dynamics.drive_train import DriveTrain
from kic.dynamics.friction import SMALL, contact_force_check, remarks
from kic.errors import SingularError
from kic.evaluator import Evaluator
from kic.kernels.layout import PRISMATIC
from kic.numerics.linalg import null_space
from kic.simulation.coordinates import Chart
from kic.simulation.events import crossings
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.coordinate_transfer import RANK_SHARE
from kic.transfer.input_selection import ranking

# where within a step contacts are looked at, its end included
_LOOKS = np.array([1 / 3, 2 / 3, 1.0])


class ContactMonitor:
    """Watches over the closed contacts of a mechanism.

    Parameters
    ----------
    model : Model
        The mechanism.
    names : tuple of str
        The user's coordinates, at which efforts act.
    """

    def __init__(self, model: CompiledModel, names: tuple[str, ...]) -> None:
        touching = model.description.closed_contacts
        self._model, self._names = model, names
        self._pressing = contact_force_check(touching)
        self._rows = tuple(row for contact in touching for row in contact.rows)
        self._opened = model.with_open_contacts(tuple(contact.name for contact in touching))
        self._open: tuple[str, ...] = ()
        self._evaluators: Any = None
        # the last moment that was looked at
        self._known: tuple[float, float] | None = None

    def broken(self, chart: Chart, begin: float, end: float, at: Any) -> float | None:
        """The moment within a step from which contacts can not hold any more, or None.

        Parameters
        ----------
        chart : Chart
            The equations.
        begin, end : float
            The step.
        at : callable
            The unknowns at a time of the step.
        """

        def margin(t: float) -> float:
            return self.margin(chart, t, at(t))

        first = self._known[1] if self._known and self._known[0] == begin else margin(begin)
        if first < 0:
            return begin
        times = (begin + _LOOKS * (end - begin)).tolist()
        times[-1] = end
        margins = [margin(t) for t in times]
        self._known = end, margins[-1]
        falls = [t for t, way in crossings(margin, [begin, *times], [first, *margins]) if way < 0]
        return min(falls, default=None)

    def margin(self, chart: Chart, t: float, y: np.ndarray) -> float:
        """How far within friction the contacts are, as a share of what loads they have; negative if not."""
        load, play, size = self.loads(chart, t, y)
        return self._pressing.most(load, play, size)[0] + SMALL

    def said(self, chart: Chart, t: float, y: np.ndarray) -> str:
        """Which contacts can not hold at a moment, in words."""
        load, play, size = self.loads(chart, t, y)
        _, best, who = self._pressing.most(load, play, size)
        margins = self._pressing.margins(best)
        if play.any() and len(who) > 1:
            names = ", ".join(f"'{self._pressing.names[k]}'" for k in who)
            return f"no loads of contacts {names} that push and do not slip can make this motion"
        normal = self._pressing.parts(best)[0]
        worst = np.arange(len(normal)) == int(np.argmin(margins))
        flat = normal <= SMALL * size
        return remarks(self._pressing.names, normal, worst & flat, worst & ~flat)[0]

    def loads(self, chart: Chart, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Loads (R,) of the contacts, how they may vary (R, k), and the size of what they come from."""
        now = chart.moment(t, y)
        state, v, a = now["state"], now["v"], now["a"]
        closed, opened = self._evaluated(chart, state)
        columns = self._open
        G = np.concatenate([closed[name].G for name in columns])
        H = np.concatenate([closed[name].H for name in columns])
        rate, acceleration = G @ v, G @ a + (H @ v) @ v
        E = np.concatenate([opened[name].G for name in self._names])
        R = np.concatenate([opened[name].G for name in self._rows])
        inertia, turning = opened.I @ acceleration, (opened.P @ rate) @ rate + opened.damping @ rate
        given = E.T @ now["effort"]
        if chart.train is not None:
            given = given + self._motors(chart.train, closed, opened, now)
        needed = inertia + turning - opened.load - given
        size = float(max(np.abs(x).max(initial=0.0) for x in (inertia, turning, opened.load, given)))
        U, s, V = np.linalg.svd(R.T, full_matrices=True)
        rank = int((s > RANK_SHARE * s.max(initial=0.0)).sum())
        load = V[:rank].T @ ((U[:, :rank].T @ needed) / s[:rank])
        return load, V[rank:].T, max(size, float(np.abs(load).max(initial=0.0))) or 1.0

    def _motors(self, train: DriveTrain, closed: Any, opened: Any, now: dict[str, Any]) -> np.ndarray:
        """What motors give the coordinates of the open mechanism, less what their rotors and damping take."""
        v, a = now["v"], now["a"]
        G, H = (np.concatenate([getattr(closed[joint], x) for joint in train.joints]) for x in "GH")
        speed, acceleration = train.ratios @ (G @ v), train.ratios @ (G @ a + (H @ v) @ v)
        net = now["torque"] - train.inner(speed, acceleration)
        turns = np.concatenate([opened[joint].G for joint in train.joints])
        return np.asarray((train.ratios @ turns).T @ net)

    def _evaluated(self, chart: Chart, state: np.ndarray) -> tuple[Any, Any]:
        """The motion of the open mechanism's coordinates in the chart, and its dynamics in them."""
        if self._evaluators is not None and self._evaluators[0] is chart:
            with suppress(SingularError):  # other coordinates of the open mechanism serve there
                return self._evaluators[1](state), self._evaluators[2](state)
        self._open = self._coordinates(state)
        shafts = () if chart.train is None else chart.train.joints
        asked = tuple(dict.fromkeys((*self._rows, *self._names, *shafts)))
        moved = tuple(dict.fromkeys((*self._open, *shafts)))
        self._evaluators = (
            chart,
            Evaluator(self._model, moved, 2, False, chart.names),
            Evaluator(self._opened, asked, 1, True, self._open),
        )
        return self._evaluators[1](state), self._evaluators[2](state)

    def _coordinates(self, state: np.ndarray) -> tuple[str, ...]:
        """Coordinates that drive the mechanism well whose contacts are open."""
        tree = self._opened.tree
        if tree.open:
            return tree.columns
        closing = self._opened.closure(()).rows(state[None])[1][0]
        null = null_space(closing, self._opened.dof)
        picks = ranking(null[None], tree.cols[:, 1] <= PRISMATIC, 1).picks[0]
        return tuple(tree.columns[n] for n in picks)
