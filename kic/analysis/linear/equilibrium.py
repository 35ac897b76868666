"""Equilibrium search: Newton's method on the residual effort, with descent steps as a fallback.

The stiffness for Newton's method comes from linearization. The search uses coordinates that drive the
mechanism well and changes them near dead centres. Given efforts act at the user's coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np

from kic.analysis.linear.linearize import Linearization
from kic.analysis.linear.modes import Modes
from kic.description.description import held_coordinates
from kic.errors import ConfigurationError, InputError, SingularError, invalid, unknown
from kic.kernels import layout as lay
from kic.kinematics.state import integrate
from kic.mechanism.configuration import Configuration, flat_states, generalized_efforts, model_of
from kic.mechanism.input_sets import rank_sets
from kic.mechanism.mechanism import Mechanism
from kic.mechanism.position import initial_states, within_limits
from kic.numerics.arguments import by_name, flag, names_of
from kic.numerics.arrays import real_array
from kic.numerics.display import Printable, Summary
from kic.tasks.actuation.internal_loads import stiffness as constant_effort_stiffness
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.continuation import ending
from kic.transfer.limits import Limits, MotionLimits


class Equilibrium(Printable):
    """A static equilibrium and its stability.

    Attributes
    ----------
    configuration : Configuration
        The configuration.
    coordinates : tuple of str
        Names of the M coordinates: those of the mechanism, or others if these cannot drive it there.
    free, fixed : tuple of str
        Free and fixed coordinates.
    effort : (M,)
        Efforts at all coordinates: given ones at free coordinates, required ones at fixed coordinates.
    residual : float
        Residual effort at the free coordinates, relative to the size of the loads.
    steps : int
        Steps of the search.

    Examples
    --------
    >>> found = kic.load("four-bar").find_equilibrium(stable=True)
    >>> found.descriptions()
    ['stable', 'oscillates at 2.877 Hz: A 1']
    """

    _one_line = ("coordinates", "fixed")
    _counterparts: ClassVar[dict[str, str]] = {
        "state_space": "configuration.linearize().state_space()",
        "linearize": "linearization",
        "eigenvalues": "modes.eigenvalues",
        "stable": "stability",
    }

    def __init__(
        self,
        configuration: Configuration,
        linearization: Linearization,
        free: tuple[str, ...],
        residual: float,
        steps: int,
    ) -> None:
        self.configuration = configuration
        self.coordinates = linearization.coordinates
        self.free = free
        self.fixed = tuple(name for name in self.coordinates if name not in free)
        self.effort = linearization.T
        self.residual = residual
        self.steps = steps
        self._linearization = linearization

    @cached_property
    def linearization(self) -> Linearization:
        """Stiffness, damping and inertia of the free coordinates."""
        return self._linearization.with_fixed(self.fixed)

    @cached_property
    def modes(self) -> Modes:
        """Small motions of the free coordinates."""
        return self.linearization.modes()

    @property
    def stability(self) -> str:
        """Stability under small disturbances.

        "asymptotically stable" if all decay; "stable" if the potential energy has a minimum; "unstable" if a
        disturbance grows; "undecided" if the first order is inconclusive.
        """
        if not self.free:
            return "stable"
        growth, squares = float(self.modes.growth), self.modes.squares
        if growth < 0:
            return "asymptotically stable"
        # with or without dampers, only a minimum of the potential is stable
        if np.isfinite(squares).all():
            return "stable" if squares.min() > 0 else "unstable"
        return "unstable" if growth > 0 else "undecided"

    def descriptions(self) -> list[str]:
        """Return lines that describe the stability and every mode."""
        return [self.stability, *(self.modes.descriptions() if self.free else [])]

    def summary(self) -> Summary:
        """Return a labelled table of values and efforts, with descriptions of the modes."""
        sheet = Summary(f"{self.configuration.name}: equilibrium, {self.stability}")
        place = [float(self.configuration.value(c)) if self._valued(c) else np.nan for c in self.coordinates]
        table = np.stack([np.array(place), self.effort], axis=-1)
        sheet.matrix("coordinates", self.coordinates, ["value", "effort"], table)
        if self.fixed:
            sheet.say(f"fixed: {', '.join(self.fixed)}")
        for line in self.modes.descriptions() if self.free else []:
            sheet.say(line)
        return sheet

    def _valued(self, name: str) -> bool:
        """Return True if a coordinate has a value."""
        return model_of(self.configuration).value_rows(name)[1]


# largest number of steps
EQUILIBRIUM_STEPS_MAX = 100
# longest step (rad, or share of the characteristic length)
EQUILIBRIUM_STEP_MAX = 0.25
# step length at which the search converges
EQUILIBRIUM_STEP_ATOL = 1e-15
# it also converges at a step below this length that is not shorter than the previous step
STAGNATION_STEP_MAX = 1e-8
# residual efforts and stiffness below this share of the loads are zero
LOAD_RTOL = 1e-10
# smallest measure of good coordinates (see IndependentSet.worst)
COORDINATE_MEASURE_MIN = 0.2
# step lengths of the line searches along Newton's and the descent direction
_NEWTON_SHARES, _DESCENT_SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625), (1.0, 0.5, 0.25, 0.1, 0.01, 1e-3)
# largest numbers of descent steps and of shortened uphill steps; then uphill steps are no longer allowed, to
# prevent cycling between Newton's method and descent
DESCENTS_MAX, CLIMBS_MAX = 3, 16


def find_equilibrium(
    mechanism: Mechanism,
    effort: Any = None,
    *,
    near: Configuration | None = None,
    fixed: str | Iterable[str] = (),
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    motors: bool = False,
    stable: bool = False,
    limits: Limits = None,
) -> Equilibrium:
    """Find an equilibrium under loads and given efforts near a configuration, and its stability.

    Parameters
    ----------
    effort : dict of str to float, or (f,) array_like, optional
        Efforts at the coordinates that are not fixed; or by name, at coordinates or actuators. Zero by
        default.
    near : Configuration, optional
        One configuration from which the search starts; by default the reference configuration.
    fixed : str or list of str
        Coordinates that keep their values; the required efforts are computed.
    wrt : str or list of str, optional
        Coordinates, as in `Configuration.coefficients`; by default the mechanism's own.
    applied : dict of str to (3,) array_like, optional
        Components of named forces and moments, each in its axes (world or body), instead of those of the
        model.
    motors : bool
        True to include rotors and damping of motors in the modes, as in `Configuration.dynamics`.
    stable : bool
        True to descend to a minimum of the potential energy; otherwise any equilibrium nearby is
        accepted, even if it is unstable.
    limits
        As in `at`; an equilibrium beyond them is an error.

    Returns
    -------
    Equilibrium
        The configuration, its efforts, stability, natural frequencies and mode shapes.

    Raises
    ------
    UnknownNameError, InputError, InertiaError
        If a name does not exist, efforts have another shape, `near` is a batch, or masses are missing.
    ConfigurationError
        If no equilibrium was found; it has the residual efforts (`residual`) and the configuration
        `reached`.
    SingularError
        If a degree of freedom moves without effort, so that the equilibrium is not isolated; it has the
        `free` motion. Also if named coordinates cannot drive the mechanism.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> found = arm.find_equilibrium(stable=True)
    >>> found.stability, found.configuration.value("tip").round(6).tolist()
    ('stable', [0.0, -2.0, 0.0])
    """
    model = model_of(mechanism)
    model.require_real("find_equilibrium()", "Use a mechanism of real numbers.")
    state, batch = initial_states(model, near)
    if batch:
        raise invalid(
            "near",
            "must be a single configuration",
            batch,
            remedy="Select a member by its index.",
            shown=f"a batch of shape {batch}",
        )
    given = None if wrt is None else model.with_held(names_of(wrt, "wrt"))
    model.check_number(given)
    names = model.coordinates if given is None else given
    fixed = names_of(fixed, "fixed")
    fixed = (*fixed, *(x for x in held_coordinates(model.description) if x in names and x not in fixed))
    motors, stable = flag("motors", motors), flag("stable", stable)
    search = _Search(model, names, effort, fixed, applied, motors, stable)
    search.named = wrt is not None
    MotionLimits(model, limits)  # raises for an invalid argument before the search
    found = search.run(Configuration(model, (), state[None]))
    within_limits(found.configuration, limits, "raise")
    return found


@dataclass
class _Place:
    """Search point: configuration, and residual effort (f,), stiffness and inertia (f, f) as energies."""

    configuration: Configuration
    residual: np.ndarray
    stiffness: np.ndarray
    inertia: np.ndarray

    def newton_step(self, residual: np.ndarray, size: float) -> tuple[np.ndarray, float]:
        """Return the step −K⁺ r for a residual, and the norm of the part of r outside range(K)."""
        if not residual.size:
            return residual, 0.0
        U, s, V = np.linalg.svd(self.stiffness)
        good = s > LOAD_RTOL * max(size, s[0])
        parts = U.T @ residual
        return -(V.T[:, good] @ (parts[good] / s[good])), float(np.linalg.norm(parts[~good]))

    def descent_direction(self) -> np.ndarray:
        """Return the direction of the acceleration from rest, with a largest entry of one."""
        value, modes = np.linalg.eigh(self.inertia)
        floor = max(float(value[-1]), np.finfo(float).tiny) * 1e-6
        direction = -(modes @ ((modes.T @ self.residual) / np.maximum(value, floor)))
        return direction / np.abs(direction).max()

    def negative_curvature(self, size: float) -> np.ndarray | None:
        """Return the direction of most negative curvature of the potential energy, or None."""
        if not len(self.residual):
            return None
        curvature, axes = np.linalg.eigh((self.stiffness + self.stiffness.T) / 2)
        return axes[:, 0] / np.abs(axes[:, 0]).max() if curvature[0] < -LOAD_RTOL * size else None


class _Search:
    """Equilibrium search from one configuration."""

    def __init__(
        self,
        model: CompiledModel,
        names: tuple[str, ...],
        effort: Any,
        fixed: tuple[str, ...],
        applied: dict[str, Any] | None,
        motors: bool,
        stable: bool,
    ) -> None:
        self.model, self.asked, self.applied, self.motors = model, names, applied, motors
        self.stable = stable
        self.named, self.descents, self.climbs = False, 0, 0
        labels = model.transfer(names).labels
        self.fixed = fixed
        for name in self.fixed:
            if name not in labels:
                raise unknown("coordinate", name, model.description.name, labels)
        # rows at which given efforts act
        self.acting = names
        if isinstance(effort, Mapping) and effort and not set(effort) <= set(labels):
            self.acting = model.actuators(list(effort), hold_all=False)
        self.wanted = self._efforts(effort, labels if self.acting == names else self.acting)
        self._use(labels)
        self.size = self._size()

    def _use(self, names: tuple[str, ...]) -> None:
        """Use the named coordinates for the following steps."""
        self.transfer = self.model.transfer(names)
        self.labels = self.transfer.labels
        self.free = np.array([n for n, x in enumerate(self.labels) if x not in self.fixed], dtype=np.intp)
        # scales of the coordinates: lengths for translations
        self.scale = self.transfer.scale[: self.transfer.size][self.free]

    def _efforts(self, given: Any, labels: tuple[str, ...]) -> np.ndarray:
        """Return efforts (A,) at the user's coordinates or actuators `labels`, zero at fixed coordinates."""
        full, named = np.zeros(len(labels)), isinstance(given, Mapping)
        for name in set(self.fixed).intersection(given if named else ()):
            message = (
                f"`effort` must not contain fixed coordinates, got '{name}'. Leave it out of `effort` or of "
                "`fixed`."
            )
            raise InputError(message, key="effort", name=name)
        places = [n for n, x in enumerate(labels) if named or x not in self.fixed]
        if given is not None:
            a = real_array("effort", by_name("effort", given, labels), len(places))
            if a.ndim != 1:
                message = f"`effort` must be for a single configuration, got shape {a.shape}."
                raise InputError(message, key="effort", got=a.shape)
            full[places] = a
        return full

    def _size(self) -> float:
        """Return the size of the loads as an energy, the unit of residuals."""
        model, L = self.model, self.model.length
        loads = model.loads
        scale = model.transfer(self.asked).scale[: len(self.wanted)]
        size = float(model.masses.numbers[:, lay.MASS].sum() * np.linalg.norm(loads.gravity)) * L
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
        """Search from a configuration and return the equilibrium."""
        self.start = c
        here, last = self._at(c), np.inf
        for steps in range(EQUILIBRIUM_STEPS_MAX):
            step, outside = here.newton_step(here.residual, self.size)
            length = float(np.abs(step).max(initial=0.0))
            converged = length <= EQUILIBRIUM_STEP_ATOL or last <= length <= STAGNATION_STEP_MAX
            if outside <= LOAD_RTOL * self.size and converged:
                direction = here.negative_curvature(self.size) if self.stable else None
                if direction is None:
                    return self._result(here, steps)
                here, last = self._leave(here, direction), np.inf
            else:
                here, last = self._next(here, step, outside), length
            here = self._in_good_coordinates(here)
        self._raise_not_found(here, self._describe_drift(here.configuration))

    def _result(self, here: _Place, steps: int) -> Equilibrium:
        """Return the equilibrium in the user's coordinates.

        If no coordinates were named and the default ones cannot drive the mechanism there, use those of the
        search.
        """
        self._check_isolated(here)
        residual = float(np.abs(here.residual).max(initial=0.0)) / self.size if self.size else 0.0
        c = here.configuration
        try:
            lin = c.linearize(wrt=self.asked, applied=self.applied, motors=self.motors)
        except SingularError:
            if self.named or self.fixed:
                raise
            lin = c.linearize(wrt=self.labels, applied=self.applied, motors=self.motors)
        if self.wanted.any():  # constant efforts at other rows change the stiffness
            rows = c.coefficients(self.acting, order=2, wrt=lin.coordinates)
            lin.K_load = lin.K_load + constant_effort_stiffness(rows.needed("H", 2), self.wanted)
        free = tuple(name for name in lin.coordinates if name not in self.fixed)
        return Equilibrium(c, lin, free, residual, steps)

    def _at(self, c: Configuration) -> _Place:
        """Return the search point of a configuration, with required minus given efforts as residual."""
        lin = c.linearize(wrt=self.labels, applied=self.applied)
        T, K = lin.T, lin.K
        if self.wanted.any():
            user = c.coefficients(self.acting, order=2, wrt=self.labels)
            T = T - generalized_efforts(user.G, self.wanted)
            K = K - np.einsum("plk,p->kl", user.needed("H", 2), self.wanted)
        f, d = self.free, self.scale
        both = d[:, None] * d
        return _Place(c, T[f] * d, K[np.ix_(f, f)] * both, lin.I[np.ix_(f, f)] * both)

    def _in_good_coordinates(self, here: _Place) -> _Place:
        """Return the search point, in better coordinates if the present ones are ill-conditioned."""
        if self.fixed or self.model.is_open_chain:
            return here
        c = here.configuration
        if rank_sets(self.model, c, self.labels, 1)[0].worst > COORDINATE_MEASURE_MIN:
            return here
        self._use(rank_sets(self.model, c, None, 1)[0].names)
        return self._at(c)

    def _next(self, here: _Place, step: np.ndarray, outside: float) -> _Place:
        """Return the search point after a Newton step or, if that is not acceptable, a descent step."""
        length = float(np.abs(step).max(initial=0.0))
        concave = self.stable and here.negative_curvature(self.size) is not None
        up = length > STAGNATION_STEP_MAX and float(here.residual @ step) > 0
        cycling = up and (self.descents >= DESCENTS_MAX or self.climbs >= CLIMBS_MAX)
        if outside <= 1e-3 * float(np.linalg.norm(here.residual)) and not concave and not cycling:
            short = min(1.0, EQUILIBRIUM_STEP_MAX / length) if length else 1.0
            for share in _NEWTON_SHARES:
                there = self._try(here.configuration, share * short * step)
                if there is not None:
                    # natural monotonicity: the simplified Newton step at the new point must be shorter
                    after = np.linalg.norm(here.newton_step(there.residual, self.size)[0])
                    bound = (1 - share * short / 4) * np.linalg.norm(step)
                    if length <= STAGNATION_STEP_MAX or after <= bound:
                        self.climbs += up and length > EQUILIBRIUM_STEP_MAX
                        return there
        if here.residual.any():
            direction = here.descent_direction()
            for share in _DESCENT_SHARES:
                there = self._try(here.configuration, share * EQUILIBRIUM_STEP_MAX * direction)
                # the energy still decreases there
                if there is not None and there.residual @ direction <= 0:
                    self.descents += 1
                    return there
        self._raise_not_found(here)

    def _leave(self, here: _Place, direction: np.ndarray) -> _Place:
        """Return a search point away from an unstable equilibrium."""
        for share in (0.1, -0.1):
            there = self._try(here.configuration, share * EQUILIBRIUM_STEP_MAX * direction)
            if there is not None:
                return there
        self._raise_not_found(here)

    def _try(self, c: Configuration, step: np.ndarray) -> _Place | None:
        """Return the search point after a scaled step; None if it does not exist or is singular."""
        delta = np.zeros(len(self.labels))
        delta[self.free] = step * self.scale
        try:
            return self._at(self._moved(c, delta))
        except (ConfigurationError, SingularError):
            return None

    def _moved(self, c: Configuration, delta: np.ndarray) -> Configuration:
        """Return the configuration with coordinates changed by `delta`; quasi-velocities rotate bodies."""
        if self.transfer.holonomic:
            wanted = {x: c.value(x) + d for x, d in zip(self.labels, delta, strict=True)}
            return self.model.description.at(wanted, near=c)
        tree, states = self.model.tree, flat_states(c)
        A = self.transfer.solve(states, 1).X[:, tree.size :].reshape(tree.size, len(delta))
        states = integrate(tree, states, (A @ delta)[None])
        if not tree.open:
            states = self._closed(c, states, delta)
        return Configuration(self.model, (), states)

    def _closed(self, c: Configuration, states: np.ndarray, delta: np.ndarray) -> np.ndarray:
        """Close the loops of states by the least motion, with valued coordinates changed by `delta`."""
        valued = np.flatnonzero(self.transfer.chosen.valued)
        closure = self.model.closure(tuple(self.labels[n] for n in valued))
        start = closure.rows(flat_states(c))[0][:, : valued.size] * closure.transfer.scale[: valued.size]
        states, residual, reasons = closure.solve_from(states, start + delta[valued])
        if any(reasons):
            message = f"The loops of '{self.model.description.name}' did not close."
            raise ConfigurationError(message, residual=float(residual.max()))
        return states

    def _check_isolated(self, here: _Place) -> None:
        """Raise an error for an equilibrium with a motion that requires no effort."""
        if not len(here.residual):
            return
        _, s, V = np.linalg.svd(here.stiffness)
        free = s <= LOAD_RTOL * max(self.size, s[0])
        if not free.any():
            return
        share = np.linalg.norm(V[free], axis=0)
        names = [self.labels[n] for n, x in zip(self.free, share, strict=True) if x > 0.1 * share.max()]
        raise SingularError(
            f"The equilibrium of '{self.model.description.name}' is not isolated: {', '.join(names)} can "
            f"move without effort, to first order. Fix a coordinate (fixed={names[:1]!r}), or add a spring.",
            free=tuple(names),
        )

    def _valued_coordinates(self) -> list[str]:
        """Return the user's coordinates that have a value."""
        return [x for x in self.model.transfer(self.asked).labels if self.model.value_rows(x)[1]]

    def _describe_drift(self, c: Configuration) -> str:
        """Return text on the motion of a search that did not converge."""
        moves = {x: (float(self.start.value(x)), float(c.value(x))) for x in self._valued_coordinates()}
        far = max(moves, key=lambda x: abs(moves[x][1] - moves[x][0]), default=None)
        moved = "" if far is None else f": {far} went from {moves[far][0]:.3g} to {moves[far][1]:.3g}"
        return f"the search did not converge in {EQUILIBRIUM_STEPS_MAX} steps{moved}"

    def _describe_stop(self, c: Configuration) -> str:
        """Return text on why no step decreases the energy."""
        place = ", ".join(f"{x} = {float(c.value(x)):.6g}" for x in self._valued_coordinates())
        if self.model.is_open_chain:
            return f"no step from {place} decreases the energy"
        closure = self.model.closure(self.transfer.names)
        why = ending(closure, *(closure.rows(flat_states(one))[1][0] for one in (self.start, c)))
        return f"the search ended at {place} ({why}), which linearized steps cannot pass"

    def _raise_not_found(self, here: _Place, why: str = "") -> NoReturn:
        """Raise the error of a search without result."""
        residual = here.residual / self.scale
        labels = [self.labels[n] for n in self.free]
        efforts = ", ".join(f"{name} {x:.3g}" for name, x in zip(labels, residual, strict=True) if x)
        message = (
            f"No equilibrium of '{self.model.description.name}' was found near the start: "
            f"{why or self._describe_stop(here.configuration)}. Residual efforts at the end of the search: "
            f"{efforts}. Give them as `effort`, hold drifting coordinates with `fixed`, or start nearer with "
            "`near`."
        )
        raise ConfigurationError(message, key="near", residual=residual, reached=here.configuration)
