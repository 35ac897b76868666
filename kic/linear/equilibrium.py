"""Resting: the search for an equilibrium, by Newton on what is left of the effort, or by falling.

Newton needs the stiffness, which linearization gives. It goes on in coordinates that drive the mechanism well
where it is, and changes them near dead centres; efforts that are given keep to the coordinates of the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from kic.analysis.input_sets import independent_sets
from kic.configuration import Configuration
from kic.display import Summary
from kic.errors import ConfigurationError, InputError, SingularError, unknown
from kic.kinematics.state import integrate
from kic.linear.linearize import Linearization
from kic.linear.modes import Modes
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import real_array
from kic.position import initial_states
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.continuation import ending


class Equilibrium:
    """A posture at rest under its loads, and whether it stays there.

    Attributes
    ----------
    configuration : Configuration
        The posture.
    coordinates : tuple of str
        Names of the M coordinates: those of the mechanism, or others, if these can not drive it there.
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
    >>> found.descriptions()
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
        growth, squares = float(self.modes.growth), self.modes.squares
        if growth < 0:
            return "asymptotically stable"
        # of a potential: its minimum is stable, with dampers or without, and nothing else is
        if np.isfinite(squares).all():
            return "stable" if squares.min() > 0 else "unstable"
        return "unstable" if growth > 0 else "undecided"

    def descriptions(self) -> list[str]:
        """Stability and every mode, in lines."""
        return [self.stability, *(self.modes.descriptions() if self.free else [])]

    def summary(self) -> Summary:
        """Labelled account, to print or to show."""
        sheet = Summary(f"{self.configuration.name}: equilibrium, {self.stability}")
        place = [float(self.configuration.value(c)) if self._valued(c) else np.nan for c in self.coordinates]
        table = np.stack([np.array(place), self.effort], axis=-1)
        sheet.matrix("coordinates", self.coordinates, ["value", "effort"], table)
        if self.held:
            sheet.say(f"held: {', '.join(self.held)}")
        for line in self.modes.descriptions() if self.free else []:
            sheet.say(line)
        return sheet

    def _valued(self, name: str) -> bool:
        return self.configuration._model.value_rows(name)[1]

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


# most steps of a search; the longest one, in radians or shares of the length
STEPS, LONGEST = 100, 0.25
# a step this small ends the search, or one no smaller than that before it, if both are smaller than this
ARRIVED, NEAR = 1e-15, 1e-8
# stiffness, and effort, this small beside the loads' own can not be told from none
NOTHING = 1e-10
# coordinates that move less than this are changed for others (see IndependentSet.worst)
POOR = 0.2
# shares of a step that are tried before the mechanism is left to fall, and of falling
_SHARES, _FALLING = (1.0, 0.5, 0.25, 0.125, 0.0625), (1.0, 0.5, 0.25, 0.1, 0.01, 1e-3)
# a search that had to fall so often climbs no more: Newton's way up and the falls would take turns for ever;
# nor does one that took so many steps up that were all too long
FALLS, CLIMBS = 3, 16


def find_equilibrium(
    model: CompiledModel,
    near: Configuration | None,
    effort: Any,
    held: str | Iterable[str],
    wrt: str | Iterable[str] | None,
    applied: dict[str, Any] | None,
    motors: bool,
    stable: bool,
) -> Equilibrium:
    """The equilibrium near a posture; see `Mechanism.find_equilibrium`."""
    model.require_real("find_equilibrium()", "Ask the mechanism in real numbers.")
    state, batch = initial_states(model, near)
    if batch:
        raise InputError(f"Expected `near` to be one posture, got a batch of shape {batch}.")
    names = model.coordinates if wrt is None else names_of(wrt, "wrt")
    model.check_number(None if wrt is None else names)
    motors, stable = flag("motors", motors), flag("stable", stable)
    search = _Search(model, names, effort, held, applied, motors, stable)
    search.named = wrt is not None
    return search.run(Configuration(model, (), state[None]))


@dataclass
class _Place:
    """A posture of the search: what is left of the effort (f,) and the stiffness (f, f), both as energies."""

    configuration: Configuration
    left: np.ndarray
    stiffness: np.ndarray
    inertia: np.ndarray

    def newton(self, left: np.ndarray, size: float) -> tuple[np.ndarray, float]:
        """The step −K⁺ r for what is left somewhere, and how much of that no step mends."""
        if not left.size:
            return left, 0.0
        U, s, V = np.linalg.svd(self.stiffness)
        good = s > NOTHING * max(size, s[0])
        parts = U.T @ left
        return -(V.T[:, good] @ (parts[good] / s[good])), float(np.linalg.norm(parts[~good]))

    def fall(self) -> np.ndarray:
        """The direction in which the mechanism would start from rest, of length one."""
        value, modes = np.linalg.eigh(self.inertia)
        floor = max(float(value[-1]), np.finfo(float).tiny) * 1e-6
        way = -(modes @ ((modes.T @ self.left) / np.maximum(value, floor)))
        return way / np.abs(way).max()

    def downhill(self, size: float) -> np.ndarray | None:
        """Where the potential energy has a ridge, if it has one: the direction across."""
        if not len(self.left):
            return None
        bend, ways = np.linalg.eigh((self.stiffness + self.stiffness.T) / 2)
        return ways[:, 0] / np.abs(ways[:, 0]).max() if bend[0] < -NOTHING * size else None


class _Search:
    """One search, from a posture to the equilibrium near it."""

    def __init__(
        self,
        model: CompiledModel,
        names: tuple[str, ...],
        effort: Any,
        held: str | Iterable[str],
        applied: dict[str, Any] | None,
        motors: bool,
        stable: bool,
    ) -> None:
        self.model, self.asked, self.applied, self.motors = model, names, applied, motors
        self.stable = stable
        self.named, self.falls, self.climbs = False, 0, 0
        labels = model.transfer(names).labels
        self.held = names_of(held, "held")
        for name in self.held:
            if name not in labels:
                raise unknown("coordinate", name, model.description.name, labels)
        self.wanted = self._efforts(effort, labels)
        self._use(labels)
        self.size = self._size()

    def _use(self, names: tuple[str, ...]) -> None:
        """Go on in these coordinates."""
        self.transfer = self.model.transfer(names)
        self.labels = self.transfer.labels
        self.free = np.array([n for n, x in enumerate(self.labels) if x not in self.held], dtype=np.intp)
        # what coordinates are multiplied by: lengths for those that go
        self.scale = self.transfer.scale[: self.transfer.first][self.free]

    def _efforts(self, given: Any, labels: tuple[str, ...]) -> np.ndarray:
        """Efforts (M,) at the coordinates of the user; none at those held."""
        full = np.zeros(len(labels))
        if isinstance(given, Mapping):
            for name, value in given.items():
                if name not in labels:
                    raise unknown("coordinate", name, self.model.description.name, labels)
                if name in self.held:
                    raise InputError(
                        f"'{name}' is held, where effort is found. Leave it out of `effort` or of `held`.",
                        name=name,
                    )
                full[labels.index(name)] = real_array(f"effort[{name!r}]", value)
        elif given is not None:
            free = [n for n, x in enumerate(labels) if x not in self.held]
            a = real_array("effort", given, len(free))
            if a.ndim != 1:
                raise InputError(f"Expected `effort` for one posture, got shape {a.shape}.")
            full[free] = a
        return full

    def _size(self) -> float:
        """How large the loads are, as an energy: what is small beside it is nothing."""
        model, L = self.model, self.model.length
        loads = model.loads
        scale = model.transfer(self.asked).scale[: len(self.wanted)]
        size = float(model.masses.numbers[:, 0].sum() * np.linalg.norm(loads.gravity)) * L
        size += float(np.abs(self.wanted * scale).sum())
        force, _ = loads.applied(self.applied, model.description.name)
        for (_, moment, _), f in zip(loads.forces.tolist(), force, strict=True):
            size += float(np.linalg.norm(f)) * (1.0 if moment else L)
        size += float((loads.spring_numbers[:, 6] * L**2).sum())
        for joint in model.description.joints:
            arm = L if joint.type == "prismatic" else 1.0
            size += float(sum(k * arm**2 for k in joint.stiffness))  # type: ignore
        return size

    def run(self, c: Configuration) -> Equilibrium:
        """The search from a posture."""
        self.began = c
        here, last = self._at(c), np.inf
        for steps in range(STEPS):
            step, lost = here.newton(here.left, self.size)
            length = float(np.abs(step).max(initial=0.0))
            if lost <= NOTHING * self.size and (length <= ARRIVED or last <= length <= NEAR):
                ridge = here.downhill(self.size) if self.stable else None
                if ridge is None:
                    return self._found(here, steps)
                here, last = self._leave(here, ridge), np.inf
            else:
                here, last = self._on(here, step, lost), length
            here = self._in_good_coordinates(here)
        self._refuse(here, self._drifted(here.configuration))

    def _found(self, here: _Place, steps: int) -> Equilibrium:
        """What was found, in the coordinates of the user.

        If these can not drive it there and were not named, in those of the search.
        """
        self._check_neutral(here)
        left = float(np.abs(here.left).max(initial=0.0)) / self.size if self.size else 0.0
        c = here.configuration
        try:
            lin = c.linearize(wrt=self.asked, applied=self.applied, motors=self.motors)
        except SingularError:
            if self.named or self.held:
                raise
            lin = c.linearize(wrt=self.labels, applied=self.applied, motors=self.motors)
        free = tuple(name for name in lin.coordinates if name not in self.held)
        return Equilibrium(c, lin, free, left, steps)

    def _at(self, c: Configuration) -> _Place:
        """What is left at a posture: the efforts that hold it, less those given in the user's coordinates."""
        lin = c.linearize(wrt=self.labels, applied=self.applied)
        T, K = lin.T, lin.K
        if self.wanted.any():
            user = c.coefficients(self.asked, 2, wrt=self.labels)
            T = T - user.G.T @ self.wanted
            K = K - np.einsum("plk,p->kl", user.needed("H", 2), self.wanted)
        f, d = self.free, self.scale
        both = d[:, None] * d
        return _Place(c, T[f] * d, K[np.ix_(f, f)] * both, lin.I[np.ix_(f, f)] * both)

    def _in_good_coordinates(self, here: _Place) -> _Place:
        """The same place in other coordinates, where these have become poor."""
        if self.held or self.model.is_open_chain:
            return here
        c = here.configuration
        if independent_sets(self.model, c, self.labels, 1)[0].worst > POOR:
            return here
        self._use(independent_sets(self.model, c, None, 1)[0].names)
        return self._at(c)

    def _on(self, here: _Place, step: np.ndarray, lost: float) -> _Place:
        """One step further."""
        length = float(np.abs(step).max(initial=0.0))
        ridge = here.downhill(self.size) if self.stable else None
        up = length > NEAR and float(here.left @ step) > 0
        tired = up and (self.falls >= FALLS or self.climbs >= CLIMBS)
        if lost <= 1e-3 * float(np.linalg.norm(here.left)) and ridge is None and not tired:
            short = min(1.0, LONGEST / length) if length else 1.0
            for share in _SHARES:
                there = self._try(here.configuration, share * short * step)
                if there is not None:
                    # good if what the old stiffness makes of the new rest is smaller (natural monotonicity)
                    after = np.linalg.norm(here.newton(there.left, self.size)[0])
                    if length <= NEAR or after <= (1 - share * short / 4) * np.linalg.norm(step):
                        self.climbs += up and length > LONGEST
                        return there
        if here.left.any():
            fall = here.fall()
            for share in _FALLING:
                there = self._try(here.configuration, share * LONGEST * fall)
                # as long as it still goes down there
                if there is not None and there.left @ fall <= 0:
                    self.falls += 1
                    return there
        self._refuse(here)

    def _leave(self, here: _Place, way: np.ndarray) -> _Place:
        """A posture off an unstable equilibrium."""
        for share in (0.1, -0.1):
            there = self._try(here.configuration, share * LONGEST * way)
            if there is not None:
                return there
        self._refuse(here)

    def _try(self, c: Configuration, step: np.ndarray) -> _Place | None:
        """The place a scaled step away, where there is one."""
        delta = np.zeros(len(self.labels))
        delta[self.free] = step * self.scale
        try:
            return self._at(self._moved(c, delta))
        except (ConfigurationError, SingularError):
            return None

    def _moved(self, c: Configuration, delta: np.ndarray) -> Configuration:
        """The posture with coordinates changed so; turns of balls about their axes."""
        if self.transfer.holonomic:
            wanted = {x: c.value(x) + d for x, d in zip(self.labels, delta, strict=True)}
            return self.model.description.at(wanted, near=c)
        tree, states = self.model.tree, c._states
        A = self.transfer.solve(states, 1).X[:, tree.size :].reshape(tree.size, len(delta))
        states = integrate(tree, states, (A @ delta)[None])
        if not tree.open:
            states = self._closed(c, states, delta)
        return Configuration(self.model, (), states)

    def _closed(self, c: Configuration, states: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """Loops closed again, by what turns least; coordinates with values where they shall be."""
        t = self.transfer
        closure = self.model.closure(t.names)
        goal = closure.goal(np.zeros((1, t.first)))
        valued = np.flatnonzero(t.chosen.valued)
        goal[0, valued] = closure.rows(c._states)[0][0, valued] + (delta / t.scale[: t.first])[valued]
        for _ in range(20):
            values, G = closure.rows(states)
            rows = np.concatenate([valued, t.independent(G[0])])
            missing = closure.residual(goal, values)[0, rows]
            if np.abs(missing).max(initial=0.0) <= closure.limit:
                return states
            step = np.linalg.lstsq(G[0, rows], missing, rcond=None)[0]
            states = integrate(self.model.tree, states, (step * t.column_scale)[None])
        raise ConfigurationError(f"Loops of '{self.model.description.name}' did not close.")

    def _check_neutral(self, here: _Place) -> None:
        """Refuse an equilibrium that goes on: some freedom moves without any effort."""
        if not len(here.left):
            return
        _, s, V = np.linalg.svd(here.stiffness)
        loose = s <= NOTHING * max(self.size, s[0])
        if not loose.any():
            return
        share = np.linalg.norm(V[loose], axis=0)
        names = [self.labels[n] for n, x in zip(self.free, share, strict=True) if x > 0.1 * share.max()]
        raise SingularError(
            f"'{self.model.description.name}' is at rest here, but not here alone: {', '.join(names)} can move "
            f"without effort, to first order. Hold what is free (held={names[:1]!r}), or give it a spring.",
            free=tuple(names),
        )

    def _drifted(self, c: Configuration) -> str:
        """How far a search that came to no end has gone."""
        names = [x for x in self.model.transfer(self.asked).labels if self.model.value_rows(x)[1]]
        ways = [(float(self.began.value(x)), float(c.value(x))) for x in names]
        far = max(range(len(names)), key=lambda k: abs(ways[k][1] - ways[k][0]), default=None)
        gone = "" if far is None else f": {names[far]} went from {ways[far][0]:.3g} to {ways[far][1]:.3g}"
        return f"after {STEPS} steps nothing has stopped it{gone}"

    def _stopped(self, c: Configuration) -> str:
        """Why no step leads further down from a posture."""
        names = [x for x in self.model.transfer(self.asked).labels if self.model.value_rows(x)[1]]
        place = ", ".join(f"{x} = {float(c.value(x)):.6g}" for x in names)
        if self.model.is_open_chain:
            return f"from {place} no step leads on"
        why = ending(self.model.closure(self.transfer.names), self.began._states, c._states)
        return f"it comes to {place}; {why}, and what rests only there is not told by linearization"

    def _refuse(self, here: _Place, why: str = "") -> NoReturn:
        """No equilibrium was found."""
        left = here.left / self.scale
        where = ", ".join(f"{self.labels[n]} {x:.3g}" for n, x in zip(self.free, left, strict=True) if x)
        raise ConfigurationError(
            f"No equilibrium of '{self.model.description.name}' was found near the start: "
            f"{why or self._stopped(here.configuration)}. Where the search ended, these efforts would still "
            f"be needed: {where}. Give them as `effort`, hold what drifts away with `held`, or start nearer "
            "with `near`.",
            left=left,
            reached=here.configuration,
        )
