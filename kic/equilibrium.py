"""Equilibrium: postures that loads and given efforts leave at rest, and what small motions do about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from kic.arrays import trailing
from kic.configuration import Configuration
from kic.errors import InputError, PostureError, SingularError, unknown
from kic.linearize import Linearization
from kic.model import Model
from kic.modes import Modes
from kic.position import beginning
from kic.posture import advance
from kic.rows import names_of
from kic.tables import Sheet
from kic.transfer import Transfer

# most steps of a search; the longest one, in radians or shares of the length
STEPS, LONGEST = 100, 0.25
# a step this small ends the search, or one no smaller than that before it, if both are smaller than this
ARRIVED, NEAR = 1e-15, 1e-8
# stiffness, and effort, this small beside the loads' own can not be told from none
NOTHING = 1e-10
# shares of a step that are tried before the mechanism is left to fall
_SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625)


class Equilibrium:
    """A posture at rest under its loads, and whether it stays there.

    Attributes
    ----------
    configuration : Configuration
        The posture.
    coordinates : tuple of str
        Names of the M coordinates.
    free, held : tuple of str
        Those that found their place, and those that were held in it.
    effort : (M,)
        Efforts at all coordinates: those given at the free ones, what it takes at those held.
    left : float
        What of the effort was left at the free coordinates, beside the size of the loads.
    steps : int
        Steps of the search.

    Examples
    --------
    >>> import kic
    >>> found = kic.load("four-bar").find_equilibrium(stable=True)
    >>> found.words()
    ['stable', 'swings at 2.877 Hz: A 1']
    """

    def __init__(
        self,
        configuration: Configuration,
        linearization: Linearization,
        free: tuple[str, ...],
        left: float,
        steps: int,
    ) -> None:
        self.configuration = configuration
        self.coordinates = linearization.coordinates
        self.free = free
        self.held = tuple(name for name in self.coordinates if name not in free)
        self.effort = linearization.T
        self.left = left
        self.steps = steps
        self._linearization = linearization

    @cached_property
    def linearization(self) -> Linearization:
        """Stiffness, damping and inertia of the free coordinates."""
        return self._linearization.held(self.held)

    @cached_property
    def modes(self) -> Modes:
        """Small motions of the free coordinates."""
        return self.linearization.modes()

    @property
    def stability(self) -> str:
        """What becomes of small disturbances.

        "asymptotically stable" if all die away; "stable" if the potential energy has a minimum, so that
        none grows; "unstable" if one grows; "undecided" if first order can not tell.
        """
        if not self.free:
            return "stable"
        modes = self.modes
        growth = float(modes.growth)
        if growth < 0:
            return "asymptotically stable"
        if growth > 0:
            return "unstable"
        squares = modes.squares
        # of a potential, dampers or none: its minimum is stable
        return "stable" if np.isfinite(squares).all() and squares.min() > 0 else "undecided"

    def words(self) -> list[str]:
        """Stability and every mode, in lines."""
        return [self.stability, *(self.modes.words() if self.free else [])]

    def sheet(self) -> Sheet:
        """Labelled account, to print or to show."""
        sheet = Sheet(f"{self.configuration.name}: equilibrium, {self.stability}")
        place = [float(self.configuration.value(c)) if self._valued(c) else np.nan for c in self.coordinates]
        table = np.stack([np.array(place), self.effort], axis=-1)
        sheet.matrix("coordinates", self.coordinates, ["value", "effort"], table)
        if self.held:
            sheet.say(f"held: {', '.join(self.held)}")
        for line in self.modes.words() if self.free else []:
            sheet.say(line)
        return sheet

    def _valued(self, name: str) -> bool:
        return self.configuration._model.value_rows(name)[1]

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


def find_equilibrium(
    model: Model,
    near: Configuration | None,
    effort: Any,
    held: str | Iterable[str],
    wrt: str | Iterable[str] | None,
    applied: dict[str, Any] | None,
    motors: bool,
    stable: bool,
) -> Equilibrium:
    """The equilibrium near a posture; see `Mechanism.find_equilibrium`."""
    model.only_real("find_equilibrium()", "Ask the mechanism in real numbers.")
    state, batch = beginning(model, near)
    if batch:
        raise InputError(f"Expected `near` to be one posture, got a batch of shape {batch}.")
    model.asked(wrt)  # as many coordinates as freedoms
    names = model.coordinates if wrt is None else names_of(wrt, "wrt")
    search = _Search(model, names, wrt, effort, held, applied, motors, stable)
    return search.run(Configuration(model, (), state[None]))


class _Search:
    """Newton on what is left of the effort, and where that fails, the way the mechanism would fall."""

    def __init__(
        self,
        model: Model,
        names: tuple[str, ...],
        wrt: str | Iterable[str] | None,
        effort: Any,
        held: str | Iterable[str],
        applied: dict[str, Any] | None,
        motors: bool,
        stable: bool,
    ) -> None:
        self.model, self.wrt, self.applied, self.motors = model, wrt, applied, motors
        self.stable = stable
        self.transfer: Transfer = model.transfer(names)
        labels = self.transfer.labels
        still = names_of(held, "held")
        for name in still:
            if name not in labels:
                raise unknown("coordinate", name, model.drawing.name, labels)
        self.free = np.array([n for n, x in enumerate(labels) if x not in still], dtype=np.intp)
        self.labels = labels
        self.wanted = self._efforts(effort, still)
        # what coordinates are multiplied by: lengths for those that go
        self.scale = self.transfer.scale[: self.transfer.first][self.free]

    def _efforts(self, given: Any, held: tuple[str, ...]) -> np.ndarray:
        """Efforts (f,) at the free coordinates."""
        full = np.zeros(len(self.labels))
        if isinstance(given, Mapping):
            for name, value in given.items():
                if name not in self.labels:
                    raise unknown("coordinate", name, self.model.drawing.name, self.labels)
                if name in held:
                    raise InputError(
                        f"'{name}' is held, where effort is found. Leave it out of `effort` or of `held`.",
                        name=name,
                    )
                full[self.labels.index(name)] = trailing(f"effort[{name!r}]", value)
        elif given is not None:
            a = trailing("effort", given, len(self.free))
            if a.ndim != 1:
                raise InputError(f"Expected `effort` for one posture, got shape {a.shape}.")
            full[self.free] = a
        return full[self.free]

    def run(self, c: Configuration) -> Equilibrium:
        """The search from a posture."""
        lin = self._at(c)
        steps, last = 0, np.inf
        while True:
            r, K = self._scaled(lin)
            size = self._size(lin)
            step, lost = self._newton(r, K, size)
            length = float(np.abs(step).max(initial=0.0))
            if lost <= NOTHING * size and (length <= ARRIVED or (length >= last and length <= NEAR)):
                leave = self._downhill(K, size)
                if leave is not None and steps < STEPS:
                    c, lin, last, steps = *self._leave(c, r, leave), np.inf, steps + 1
                    continue
                self._check_neutral(K, size)
                left = float(np.abs(r).max(initial=0.0)) / size if size else 0.0
                return Equilibrium(c, lin, tuple(self.labels[n] for n in self.free), left, steps)
            last = length
            if steps == STEPS:
                self._refuse(c, r)
            steps += 1
            c, lin = self._on(c, lin, r, K, size, step, lost)

    def _on(
        self,
        c: Configuration,
        lin: Linearization,
        r: np.ndarray,
        K: np.ndarray,
        size: float,
        step: np.ndarray,
        lost: float,
    ) -> tuple[Configuration, Linearization]:
        """One step further."""
        length = float(np.abs(step).max(initial=0.0))
        # a step is good if what the old stiffness makes of the new rest is smaller (natural monotonicity)
        if lost <= 1e-3 * float(np.linalg.norm(r)) and self._downhill(K, size) is None:
            if length <= NEAR:
                near, there = self._try(c, step)
                if there is not None and near is not None:
                    return near, there
            short = min(1.0, LONGEST / length) if length else 1.0
            for share in _SHARES:
                near, there = self._try(c, share * short * step)
                if there is not None and near is not None:
                    next_step, _ = self._newton(self._scaled(there)[0], K, size)
                    if np.linalg.norm(next_step) <= (1 - share * short / 4) * np.linalg.norm(step):
                        return near, there
        fall = self._fall(lin, r)
        for share in (*_SHARES, 1e-2, 1e-3):
            near, there = self._try(c, share * LONGEST * fall)
            # as long as it still goes down there
            if there is not None and near is not None and self._scaled(there)[0] @ fall <= 0:
                return near, there
        self._refuse(c, r)
        raise AssertionError  # never reached

    def _at(self, c: Configuration) -> Linearization:
        return c.linearize(wrt=self.wrt, applied=self.applied, motors=self.motors)

    def _try(self, c: Configuration, step: np.ndarray) -> tuple[Configuration | None, Linearization | None]:
        """The posture a scaled step away, where there is one."""
        delta = np.zeros(len(self.labels))
        delta[self.free] = step * self.scale
        try:
            moved = self._moved(c, delta)
            return moved, self._at(moved)
        except (PostureError, SingularError):
            return None, None

    def _moved(self, c: Configuration, delta: np.ndarray) -> Configuration:
        """The posture with coordinates changed so; turns of balls about their axes."""
        if self.transfer.holonomic:
            wanted = {x: c.value(x) + d for x, d in zip(self.labels, delta, strict=True)}
            return self.model.drawing.at(wanted, near=c)  # type: ignore[attr-defined]
        tree, states = self.model.tree, c._states
        A = self.transfer.solve(states, 1).X[:, tree.size :].reshape(tree.size, len(delta))
        states = advance(tree, states, (A @ delta)[None])
        if not tree.open:
            states = self._closed(c, states, delta)
        return Configuration(self.model, (), states)

    def _closed(self, c: Configuration, states: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """Loops closed again, by what turns least; coordinates with values where they shall be."""
        t = self.transfer
        closure = self.model.closure(t.names)
        goal = closure.goal(np.zeros((1, t.first)))
        values = closure.rows(c._states)[0]
        known = np.isfinite(values[0, : t.first])
        goal[0, : t.first][known] = (values[0, : t.first] + delta / t.scale[: t.first])[known]
        for _ in range(20):
            values, G = closure.rows(states)
            rows = np.concatenate([np.flatnonzero(t.chosen.valued), t.independent(G[0])])
            missing = (goal - values)[0, rows]
            step = np.linalg.lstsq(G[0, rows], missing, rcond=None)[0]
            states = advance(self.model.tree, states, (step * t.column_scale)[None])
            if np.abs(missing).max(initial=0.0) <= closure.limit:
                return states
        raise PostureError(f"Loops of '{self.model.drawing.name}' did not close.")

    def _scaled(self, lin: Linearization) -> tuple[np.ndarray, np.ndarray]:
        """What is left of the effort (f,), and the stiffness (f, f), both as energies."""
        f, d = self.free, self.scale
        return (lin.T[f] - self.wanted) * d, lin.K[np.ix_(f, f)] * d[:, None] * d

    def _size(self, lin: Linearization) -> float:
        """How large the loads are, as an energy: what is small beside it is nothing."""
        model, L = self.model, self.model.length
        loads = model.loads
        weight = float(model.masses.numbers[:, 0].sum() * np.linalg.norm(loads.gravity)) * L
        size = weight + float(np.abs(self.wanted * self.scale).sum())
        force, _ = loads.applied(self.applied, model.drawing.name)
        for (_, moment, _), f in zip(loads.forces.tolist(), force, strict=True):
            size += float(np.linalg.norm(f)) * (1.0 if moment else L)
        size += float((loads.spring_numbers[:, 6] * L**2).sum())
        for joint in model.drawing.joints:
            size += sum(abs(k) * (L if joint.type == "prismatic" else 1.0) ** 2 for k in joint.stiffness)  # type: ignore[union-attr]
        return size

    def _newton(self, r: np.ndarray, K: np.ndarray, size: float) -> tuple[np.ndarray, float]:
        """The step −K⁺ r, and how much of r no step mends."""
        if not r.size:
            return r, 0.0
        U, s, V = np.linalg.svd(K)
        good = s > NOTHING * max(size, s[0])
        parts = U.T @ r
        step = -(V.T[:, good] @ (parts[good] / s[good]))
        return step, float(np.linalg.norm(parts[~good]))

    def _fall(self, lin: Linearization, r: np.ndarray) -> np.ndarray:
        """The direction in which the mechanism would start from rest, of length one."""
        d = self.scale
        I = lin.I[np.ix_(self.free, self.free)] * d[:, None] * d
        value, modes = np.linalg.eigh(I)
        floor = max(float(value[-1]), np.finfo(float).tiny) * 1e-6
        way = -(modes @ ((modes.T @ r) / np.maximum(value, floor)))
        return way / np.abs(way).max()

    def _downhill(self, K: np.ndarray, size: float) -> np.ndarray | None:
        """Where the potential energy falls away most, if only a stable equilibrium is wanted."""
        if not self.stable or not len(K):
            return None
        bend, ways = np.linalg.eigh((K + K.T) / 2)
        return ways[:, 0] / np.abs(ways[:, 0]).max() if bend[0] < -NOTHING * size else None

    def _leave(self, c: Configuration, r: np.ndarray, way: np.ndarray) -> tuple[Configuration, Linearization]:
        """A posture off an unstable equilibrium."""
        for share in (0.1, -0.1):
            near, there = self._try(c, share * LONGEST * way)
            if there is not None and near is not None:
                return near, there
        self._refuse(c, r)
        raise AssertionError  # never reached

    def _check_neutral(self, K: np.ndarray, size: float) -> None:
        """Refuse an equilibrium that goes on: some freedom moves without any effort."""
        if not len(K):
            return
        _, s, V = np.linalg.svd(K)
        loose = s <= NOTHING * max(size, s[0])
        if not loose.any():
            return
        share = np.linalg.norm(V[loose], axis=0)
        names = [self.labels[n] for n, x in zip(self.free, share, strict=True) if x > 0.1 * share.max()]
        raise SingularError(
            f"'{self.model.drawing.name}' is at rest here, but not here alone: {', '.join(names)} can move "
            f"without effort, to first order. Hold what is free (held={names[:1]!r}), or give it a spring.",
            free=tuple(names),
        )

    def _refuse(self, c: Configuration, r: np.ndarray) -> None:
        """No equilibrium was found."""
        left = r / self.scale
        where = ", ".join(f"{self.labels[n]} {x:.3g}" for n, x in zip(self.free, left, strict=True) if x)
        raise PostureError(
            f"No equilibrium of '{self.model.drawing.name}' was found near the start; where the search "
            f"ended, these efforts would still be needed: {where}. Give them as `effort`, hold what drifts "
            "away with `held`, or start nearer with `near`.",
            left=left,
            reached=c,
        )
