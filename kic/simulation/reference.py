"""References of controllers: desired values and orientations of rows as functions of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from math import cos, sin
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from kic.description.parts import Body, Frame
from kic.errors import InputError, counted, invalid, short_repr
from kic.numerics.arguments import is_function
from kic.numerics.arrays import reals
from kic.numerics.polynomials import Piecewise, beside
from kic.numerics.rotations import matrix_from_quaternion, product
from kic.tasks.operational_space.pose import parse_pose, parse_rotation
from kic.trajectory.orientation import OrientationTrajectory, angular_motion
from kic.trajectory.trajectory import Trajectory
from kic.transfer.compiled_model import CompiledModel

_ZEROS, _NO_PARTS = np.zeros(3), np.empty((0, 3, 3))
# value, rate and acceleration of rows at a time, or more derivatives
Sample = Callable[[float], Any]
# orientation (3, 3), and its angular velocity with one or two derivatives, (2, 3) or (3, 3), at a time
Turning = Callable[[float], tuple[np.ndarray, Any]]


class Desired(NamedTuple):
    """Desired motion of P rows at one time.

    Entries of `q` for angular velocities are unused. `R` (K, 3, 3) holds the orientations. `qddd` is empty
    unless a reference of order 3 returns it.
    """

    q: np.ndarray
    R: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray = np.empty(0)


class Reference:
    """Desired values and orientations of rows over time, with rates and accelerations.

    Parameters
    ----------
    model : CompiledModel
        The mechanism.
    given
        A `Trajectory`; or a dict of rows, bodies and frames, each with a trajectory, a constant, or a
        function of time that returns value, rate and acceleration. A body or frame has a pose: a
        `RigidTransform`, or a pair of position and rotation, each of which may be a trajectory. A `Rotation`
        or an `OrientationTrajectory` gives three rows, the angular velocities.
    order : {2, 3}
        Number of derivatives that functions of time return.

    Attributes
    ----------
    names : tuple of str
        Names of the rows, or of parts with several rows.
    size : int
        Number P of rows.
    """

    def __init__(self, model: CompiledModel, given: Any, order: int = 2) -> None:
        self._model, self._order = model, order
        self._given = _frozen(dict(given)) if isinstance(given, Mapping) else given
        self._samples: list[Callable[[float], Desired]] = []
        self.names: tuple[str, ...] = ()
        self.size = 0
        if isinstance(given, Trajectory):
            names = given.names or model.coordinates
            widths = given.naming.widths or (0,) * len(names)
            for name, width in zip(names, widths, strict=True):
                self._check_valued(name, max(width, 1))
            if sum(max(width, 1) for width in widths) != given.size:
                self._raise(", ".join(names), f"{given.size}", len(names))
            self._add(names, given.size, _valued(Held(given.pieces)))
        elif isinstance(given, Mapping) and given:
            for name, motion in given.items():
                if not isinstance(name, str):
                    raise invalid("reference", "must have names of rows, bodies and frames as keys", name)
                self._add(*self._entry(name, motion))
        else:
            rule = "must be a Trajectory, or a dict that maps rows, bodies and frames to motions"
            raise invalid("reference", rule, given)
        self._single = self._samples[0] if len(self._samples) == 1 else None

    def __reduce__(self) -> tuple[Any, ...]:
        return Reference, (self._model, self._given, self._order)  # functions of time are made again

    def __call__(self, t: float) -> Desired:
        """Return the desired motion at a time; outside its time span a trajectory is at rest."""
        if self._single is not None:
            return self._single(t)
        parts = [sample(t) for sample in self._samples]
        return Desired(*(np.concatenate([part[k] for part in parts]) for k in range(self._order + 2)))

    def _add(self, names: tuple[str, ...], size: int, sample: Callable[[float], Desired]) -> None:
        self._samples.append(sample)
        self.names, self.size = (*self.names, *names), self.size + size

    def _entry(self, name: str, motion: Any) -> tuple[tuple[str, ...], int, Callable[[float], Desired]]:
        """Return names and number of an entry's rows, and their desired motion as a function of time."""
        part = self._model.parts.get(name)
        timed = isinstance(motion, Trajectory | OrientationTrajectory) or hasattr(motion, "as_matrix")
        first = motion
        if is_function(motion) and not timed:  # the kind of its values
            found = motion(0.0)
            first = found[0] if isinstance(found, tuple) and found else found
        if not isinstance(part, Body | Frame):
            if hasattr(first, "as_matrix"):
                raise InputError(
                    f"'{name}' is not a body or frame; only these have poses. Give its values.",
                    key="reference",
                    name=name,
                )
        elif _is_pose(first):
            if isinstance(motion, tuple):
                place, turning = self._place(name, first[0]), self._turning(name, first[1])
                whole = isinstance(turning, _AboutAxis) and isinstance(first[0], Trajectory)
                if whole and first[0].duration == first[1].duration:  # one evaluation for both
                    return (name,), 6, cast("_AboutAxis", turning).beside(first[0].pieces)
                return (name,), 6, _posed(place, turning, self._order)
            return (name,), 6, self._whole(name, part, motion)
        elif isinstance(first, OrientationTrajectory) or hasattr(first, "as_matrix"):
            names = tuple(f"{name}.{w}" for w in ("wx", "wy", "wz"))
            return names, 3, _turned(self._turning(name, motion))
        size = self._check_valued(name)
        return (name,), size, _valued(self._place(name, motion, size))

    def _check_valued(self, name: str, size: int | None = None) -> int:
        """Return the number of rows of a name; raise InputError if one has no value."""
        rows, valued = self._model.value_rows(name)
        if not valued:
            raise InputError(
                f"'{name}' includes angular velocities, which have no values. Give a body or frame its pose "
                "in a dict: a RigidTransform, or (position, rotation).",
                key="reference",
                name=name,
                names=self._model.rows((name,), 1).layout.rows.labels,
            )
        if size not in (None, rows):
            self._raise(name, f"{size}", rows)
        return rows

    def _place(self, name: str, motion: Any, size: int = 3) -> Sample:
        """Return values of rows and their derivatives as a function of time."""
        if isinstance(motion, Trajectory):
            if motion.size != size:
                self._raise(name, f"{motion.size} coordinates", size)
            return Held(motion.pieces)
        if not is_function(motion):
            return _constant(self._numbers(name, motion, size), size)
        return lambda t: self._sampled(name, motion(t), lambda value: self._numbers(name, value, size), size)

    def _turning(self, name: str, motion: Any) -> Turning:
        """Return an orientation and its rates as a function of time."""
        if isinstance(motion, OrientationTrajectory):
            return _AboutAxis(motion) if motion.arms is not None else _splined(motion, self._order)

        def matrix(value: Any) -> np.ndarray:
            R = parse_rotation("reference", name, value)
            if R.ndim != 2:
                raise invalid("reference", f"must have one rotation for '{name}'", value, name=name)
            return R.copy()

        if hasattr(motion, "as_matrix") or not is_function(motion):
            fixed = matrix(motion), np.zeros((3, 3))
            return lambda t: fixed

        def sample(t: float) -> tuple[np.ndarray, Any]:
            R, *rates = self._sampled(name, motion(t), matrix, 3)
            return R, rates

        return sample

    def _whole(self, name: str, part: Body | Frame, motion: Any) -> Callable[[float], Desired]:
        """Return a pose, constant or given by a function, as a function of time."""

        def placed(pose: Any) -> tuple[np.ndarray, np.ndarray]:
            p, R = parse_pose("reference", part, pose)
            if R.ndim != 2:
                raise invalid("reference", f"must have one pose for '{name}'", pose, name=name)
            return self._numbers(name, p, 3), R

        if not is_function(motion):
            p, R = placed(motion)
            fixed = Desired(np.concatenate((p, _ZEROS)), np.array([R]), *np.zeros((3, 6)))
            return lambda t: fixed

        def sample(t: float) -> Desired:
            (p, R), *rates = self._sampled(name, motion(t), placed, 6)
            return Desired(np.concatenate((p, _ZEROS)), np.array([R]), *rates)

        return sample

    def _sampled(self, name: str, found: Any, value: Callable[[Any], Any], size: int) -> list[Any]:
        """Return the value and its derivatives from the result of a user's function."""
        if not isinstance(found, tuple) or len(found) <= self._order:
            raise InputError(
                f"`reference` must return {self._returned} for '{name}', got {short_repr(found)}.",
                key="reference",
                name=name,
                got=found,
            )
        rates = [self._numbers(name, rate, size) for rate in found[1 : self._order + 1]]
        return [value(found[0]), *rates]

    @property
    def _returned(self) -> str:
        """Text for the result of a function of time."""
        return f"(value, rate, acceleration{', jerk' * (self._order > 2)})"

    def _numbers(self, name: str, value: Any, size: int) -> np.ndarray:
        a = reals(value)
        if a is not None and size == 1 and a.ndim == 0:
            a = a[None]
        if a is None or a.shape != (size,):
            self._raise(name, short_repr(value), size)
        return a.copy()

    def _raise(self, name: str, got: str, size: int) -> NoReturn:
        raise InputError(
            f"`reference` must have {counted(size, 'finite number')} for '{name}', got {got}. A function "
            f"returns {self._returned}.",
            key="reference",
            name=name,
            got=got,
        )


def _frozen(given: Any) -> Any:
    """Return the input with copies of its arrays and lists, because the caller may change them."""
    if type(given) is dict:
        return {name: _frozen(motion) for name, motion in given.items()}
    if type(given) is tuple:
        return tuple(map(_frozen, given))
    return deepcopy(given) if isinstance(given, np.ndarray | list) else given


def _is_pose(value: Any) -> bool:
    """Return True for a pair, a RigidTransform or a (4, 4) array."""
    pair = isinstance(value, tuple) and len(value) == 2
    return pair or hasattr(value, "translation") or getattr(value, "shape", None) == (4, 4)


def _constant(value: np.ndarray, size: int) -> Sample:
    sample = value, *np.zeros((3, size))
    return lambda t: sample


def _valued(place: Sample) -> Callable[[float], Desired]:
    """Return the desired motion of rows with values as a function of time."""

    def sample(t: float) -> Desired:
        q, *rates = place(t)
        return Desired(q, _NO_PARTS, *rates)

    return sample


def _turned(turning: Turning) -> Callable[[float], Desired]:
    """Return the desired motion of three angular velocities as a function of time."""

    def sample(t: float) -> Desired:
        R, rates = turning(t)
        return Desired(_ZEROS, R[None], *rates)

    return sample


def _posed(place: Sample, turning: Turning, order: int) -> Callable[[float], Desired]:
    """Return the desired motion of a pose as a function of time."""

    def sample(t: float) -> Desired:
        motion = np.zeros((order + 1, 6))
        R, rates = turning(t)
        motion[1:, 3:] = rates[:order]
        motion[:, :3] = place(t)[: order + 1]
        return Desired(motion[0], R[None], *motion[1:])

    return sample


class Held:
    """Values and three derivatives (4, M) as a function of time; at rest outside the knots."""

    def __init__(self, pieces: Piecewise) -> None:
        self._at, self._end = pieces.at, float(pieces.knots[-1])
        self._ends = [self._at(x) * np.eye(4)[:, :1] for x in (0.0, self._end)]

    def __call__(self, t: float) -> Any:
        """Return the value and its derivatives (4, M)."""
        t = float(t)
        return self._at(t) if 0.0 <= t <= self._end else self._ends[int(t > self._end)]


class _AboutAxis:
    """Rotation about an axis n by an angle θ: R = R₀ + sin θ [n]R₀ + (1 − cos θ) [n][n]R₀.

    Attributes
    ----------
    pieces : Piecewise
        The rotation vector θ n, whose derivatives are angular velocity and acceleration.
    """

    def __init__(self, trajectory: OrientationTrajectory) -> None:
        assert trajectory.arms is not None  # for the type checker: `arms` are those of one axis
        start, across = trajectory.arms
        n = product(across, start * [1.0, -1.0, -1.0, -1.0])[1:]
        # the angle θ from the largest component of θ n, without a scalar product
        self._largest = k = int(np.argmax(np.abs(n)))
        self._per_component = 1 / float(n[k])
        K, R0 = np.cross(np.eye(3), n), matrix_from_quaternion(start.tolist())
        self._parts = np.array([R0, K @ R0, K @ K @ R0]).reshape(3, 9)
        half = trajectory.trajectory.pieces
        self.pieces = Piecewise(half.knots, half.coefficients * (2 * n))
        self._at = Held(self.pieces)

    def matrix(self, jet: np.ndarray, start: int = 0) -> np.ndarray:
        """Return the orientation (3, 3) for the vector θ n, three entries of `jet` from index `start` on."""
        angle = jet.item(start + self._largest) * self._per_component
        return np.array((1.0, sin(angle), 1 - cos(angle))).dot(self._parts).reshape(3, 3)

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        jet = self._at(t)
        return self.matrix(jet[0]), jet[1:]

    def beside(self, place: Piecewise) -> Callable[[float], Desired]:
        """Return the desired motion of a pose whose position has pieces with the same ends."""
        at, matrix = Held(beside([place, self.pieces])), self.matrix

        def sample(t: float) -> Desired:
            q, *rates = at(t)
            return Desired(q, matrix(q, 3)[None], *rates)

        return sample


def _splined(trajectory: OrientationTrajectory, order: int) -> Turning:
    """Return the orientation of a spline p of unnormalized quaternions as a function of time.

    ω = 2 E ṗ / N and ω̇ = (2 E p̈ − ω Ṅ) / N with N = p·p, see `kic.trajectory.orientation`; E (3, 4) gives
    the vector part of the product with the conjugate of p. Two derivatives are computed without `product`,
    because controllers call this at every step.
    """
    at = Held(trajectory.trajectory.pieces)

    def sample(t: float) -> tuple[np.ndarray, np.ndarray]:
        jet = at(t)
        w, x, y, z = jet[0].tolist()
        if order > 2:
            return matrix_from_quaternion((w, x, y, z)), np.array(angular_motion(list(jet)))
        E = np.array(((-x, -y, -z), (w, z, -y), (-z, w, x), (y, -x, w)))
        f = 2 / (w * w + x * x + y * y + z * z)
        rates = f * jet[1:3].dot(E)
        rates[1] -= f * jet[0].dot(jet[1]) * rates[0]
        return matrix_from_quaternion((w, x, y, z)), rates

    return sample
