"""Limits along a path q(s) as rows that are linear in s̈, ṡ² and ṡ.

    lower ≤ A(s) s̈ + B(s) ṡ² + C(s) ṡ + D(s) ≤ upper

Velocities, accelerations and efforts are such rows (Bobrow, Dubowsky and Gibson 1985; Shin and McKay 1985),
and so are voltages of motors without inductance, or whatever else a function of the user's makes of a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.arguments import entries
from kic.arrays import as_numbers
from kic.coefficients import Coefficients
from kic.configuration import Configuration
from kic.errors import InputError, shown
from kic.mechanism import Mechanism
from kic.trajectories.naming import Naming
from kic.trajectories.piecewise import Piecewise
from kic.trajectories.trajectory import Trajectory

# rates that jump by this share of the largest make a corner
_CORNER = 1e-9


@dataclass(frozen=True, eq=False)
class Rows:
    """Limits lower ≤ A s̈ + B ṡ² + C ṡ + D ≤ upper at both ends of each interval of a path.

    Attributes
    ----------
    names : tuple of str
        A word for each of R rows, for messages.
    A, B, C, D : (L, 2, R) array_like, or what broadcasts to it
        At the start and at the end of each of L intervals, from inside.
    lower, upper : (R,) array_like, or what broadcasts to (L, 2, R)
        Limits; infinite ones are none.
    """

    names: tuple[str, ...]
    A: Any = 0.0
    B: Any = 0.0
    C: Any = 0.0
    D: Any = 0.0
    lower: Any = -np.inf
    upper: Any = np.inf


@dataclass(frozen=True, eq=False, repr=False)
class Along:
    """A path cut into intervals, and a mechanism on it: what rows of limits are made of.

    Attributes
    ----------
    s : (L + 1,)
        Ends of the intervals.
    first, second : (L, 2, M)
        Derivatives q′(s), q″(s) of the coordinates at the start and the end of each interval, from inside.
    configuration : Configuration or None
        Postures (L + 1,) of the mechanism.
    wrt : tuple of str or None
        The coordinates, for `wrt` in other questions.
    naming : Naming
        Names of the coordinates.
    """

    s: np.ndarray
    first: np.ndarray
    second: np.ndarray
    configuration: Configuration | None
    wrt: tuple[str, ...] | None
    naming: Naming

    def both(self, a: np.ndarray) -> np.ndarray:
        """What is known at the ends (L + 1, ...) at the start and the end of each interval (L, 2, ...)."""
        return np.stack([a[:-1], a[1:]], axis=1)

    def velocity(self, limits: Any) -> Rows:
        """Rows q′ ṡ."""
        lower, upper = self.naming.bounds("velocity", limits)
        return Rows(self._words("velocity", self.naming), C=self.first, lower=lower, upper=upper)

    def acceleration(self, limits: Any) -> Rows:
        """Rows q′ s̈ + q″ ṡ²."""
        lower, upper = self.naming.bounds("acceleration", limits)
        words = self._words("acceleration", self.naming)
        return Rows(words, self.first, self.second, lower=lower, upper=upper)

    def effort(self, limits: Any, actuators: str | Iterable[str] | None = None) -> Rows:
        """Rows of efforts at the coordinates, or at actuators; see `terms`."""
        names, *terms = self.terms(actuators)
        of = self.naming if actuators is None else Naming(names, (0,) * len(names), len(names))
        lower, upper = of.bounds("effort", limits, rest=False)
        A, B, C, D = terms
        return Rows(self._words("effort", of), A, B, C, D, lower, upper)

    def terms(
        self, actuators: str | Iterable[str] | None = None
    ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Names of efforts, and A, B, C, D (L, 2, M) for which T = A s̈ + B ṡ² + C ṡ + D.

        With the path y(s) of the coordinates at which they act: A = I* y′, B = I* y″ + y′ᵀ P* y′, C = B* y′
        with the matrix B* of the dampers, and D = −Tᴸ.
        """
        c = self.configuration
        if c is None:
            raise InputError("Efforts need a mechanism: give the one that goes along the path.")
        first, second, names = self.first, self.second, self.wrt
        if actuators is not None:
            rows = c.coefficients(actuators, order=2, wrt=self.wrt)
            ends = Coefficients(rows.rows, rows.columns, self.both(rows.G), self.both(rows.H))  # type: ignore[arg-type]
            first, second, names = ends.velocity(first), ends.acceleration(first, second), rows.rows
        d = c.dynamics(wrt=self.wrt if actuators is None else actuators)
        I, P, damping = self.both(d.I), self.both(d.P), self.both(d.damping)
        B = np.einsum("...kn,...n->...k", I, second)
        B = B + np.einsum("...kab,...a,...b->...k", P, first, first)
        A, C = (np.einsum("...kn,...n->...k", a, first) for a in (I, damping))
        return names or d.coordinates, A, B, C, -self.both(d.load)

    @staticmethod
    def _words(what: str, of: Naming) -> tuple[str, ...]:
        return tuple(f"{what} of {label}" for label in of.labels)


def along(path: Trajectory, mechanism: Mechanism | None, near: Configuration | None, s: np.ndarray) -> Along:
    """A path cut at s (L + 1,), its knots among them, with a mechanism on it."""
    pieces: Piecewise = path.pieces.refined(s)
    first, second = (np.stack(pieces.limits(k), axis=1) for k in (1, 2))
    corner = np.abs(first[1:, 0] - first[:-1, 1]) > _CORNER * np.abs(first).max(axis=(0, 1), initial=0.0)
    if corner.any():
        k, n = np.argwhere(corner)[0].tolist()
        raise InputError(
            f"The path has a corner at {s[k + 1]:g}, where the rate of {path.naming.labels[n]} jumps. Take a "
            "smooth one, or time its parts and concatenate them.",
            s=float(s[k + 1]),
        )
    of = named(path, mechanism)
    if mechanism is None:
        return Along(s, first, second, None, path.names or None, of)
    course = path.on(mechanism, s, near)
    return Along(s, first, second, course.configuration, course.wrt, of)


def named(path: Trajectory, mechanism: Mechanism | None) -> Naming:
    """Names of the coordinates; where the path has none, those of the mechanism."""
    of = path.naming
    if mechanism is not None and not isinstance(mechanism, Mechanism):
        raise InputError(f"Expected `mechanism` to be a Mechanism, got {shown(mechanism)}.")
    if of.names or mechanism is None:
        return of
    names = mechanism.coordinate_names
    if len(names) != of.size:
        raise InputError(
            f"Expected a path in the {len(names)} coordinates of '{mechanism.name}', {', '.join(names)}, got "
            f"one in {of.size}."
        )
    return Naming(names, (0,) * of.size, of.size)


Hook = Callable[[Along], Rows]


def gathered(
    of: Along,
    velocity: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    actuators: str | Iterable[str] | None = None,
    rows: Hook | Iterable[Hook] = (),
) -> Rows:
    """All limits as one set of rows, checked and with full shapes; those without any limit are left out."""
    made = []
    if velocity is not None:
        made.append(of.velocity(velocity))
    if acceleration is not None:
        made.append(of.acceleration(acceleration))
    if effort is not None:
        made.append(of.effort(effort, actuators))
    elif actuators is not None:
        raise InputError("`actuators` were named without limits of `effort`.")
    made += [_checked(hook, of) for hook in hooks_of(rows)]
    shape = len(of.s) - 1, 2
    names = tuple(name for one in made for name in one.names)
    parts = [
        np.concatenate(
            [np.zeros((*shape, 0))]
            + [np.broadcast_to(getattr(one, key), (*shape, len(one.names))) for one in made],
            axis=2,
        )
        for key in ("A", "B", "C", "D", "lower", "upper")
    ]
    held = (np.isfinite(parts[4]) | np.isfinite(parts[5])).any(axis=(0, 1))
    kept = tuple(name for name, there in zip(names, held, strict=True) if there)
    return Rows(kept, *(part[:, :, held] for part in parts))


def hooks_of(rows: Any) -> list[Any]:
    """Functions of further limits, one or several; None is none."""
    if rows is None or callable(rows):
        return [] if rows is None else [rows]
    return entries(rows)


def _checked(hook: Any, of: Along) -> Rows:
    """Rows that a function of the user's makes of a path."""
    if not callable(hook):
        raise InputError(
            f"Expected `rows` to be functions that take an Along and return Rows, got {shown(hook)}."
        )
    made = hook(of)
    if not isinstance(made, Rows):
        raise InputError(f"Expected a function in `rows` to return Rows, got {shown(made)}.")
    shape = len(of.s) - 1, 2, len(made.names)
    for key in ("A", "B", "C", "D", "lower", "upper"):
        a = as_numbers(getattr(made, key))
        if a is None or a.dtype != np.float64 or not _fits(a, shape, finite=key in "ABCD"):
            raise InputError(
                f"Expected `{key}` of the rows {', '.join(made.names)} to be numbers that broadcast to "
                f"{shape}, got {shown(getattr(made, key)) if a is None else a.shape}.",
                key=key,
            )
    if not (np.asarray(made.lower) <= np.asarray(made.upper)).all():
        raise InputError(f"Expected `lower` of the rows {', '.join(made.names)} to be at most `upper`.")
    return made


def _fits(a: np.ndarray, shape: tuple[int, ...], finite: bool) -> bool:
    """Whether numbers broadcast to a shape, and are finite, or at least numbers."""
    try:
        fits = np.broadcast_shapes(a.shape, shape) == shape
    except ValueError:
        return False
    return fits and bool(np.isfinite(a).all() if finite else not np.isnan(a).any())


def impossible(rows: Rows, s: np.ndarray, letter: str) -> str | None:
    """What says that a row fails at rest already: which, where and by how much; None if all can rest."""
    beyond = np.maximum(rows.D - rows.upper, rows.lower - rows.D)
    if not (beyond > 0).any():
        return None
    k, end, r = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
    return (
        f"at {letter} = {s[k + end]:.4g} the {rows.names[r]} is {rows.D[k, end, r]:.5g} at rest already, "
        f"with limits {rows.lower[k, end, r]:.5g} and {rows.upper[k, end, r]:.5g}"
    )
