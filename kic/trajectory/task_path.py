"""Task paths: desired rows or poses as functions of time, from functions, samples or trajectories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kic.description.parts import Body, Frame
from kic.errors import InputError, invalid, short_repr
from kic.numerics.arguments import is_function
from kic.numerics.arrays import broadcast_batches, is_scalar, numbers, reals
from kic.numerics.rotations import vector_from_matrix
from kic.numerics.tolerances import EPS
from kic.tasks.operational_space.pose import parse_pose, parse_rotation
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.constraint_system import row_scales

# value, rotation (3, 3), rate and acceleration of some rows; the value of a body is its position
Sample = tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None]

# number of checked intervals, position in the interval, and width of the differences
CHECKS, CHECK_SHARE, WIDTH_SHARE = 6, 0.382, 5e-3
# tolerance of rates: relative, relative drift of the values over the whole time, and rounding of the values
RATE_RTOL, VALUE_DRIFT_RTOL, VALUE_ROUNDING_RTOL = 1e-5, 1e-8, 16 * EPS


def check_rates(name: str, labels: tuple[str, ...], sample: Callable[[float], Sample], t: np.ndarray) -> None:
    """Check that stated rates and accelerations are the derivatives of the values at increasing times (K,).

    Central differences over two widths are taken inside some of the intervals between times. The
    difference between the two widths, for example at a kink, is not counted as an error of the function.
    `sample` returns value (..., a), rotation, rate (..., n), and acceleration or None at a time. Raise
    `InputError` with the time, the stated number, and the derivative of the values.
    """
    checks = np.unique(np.linspace(0, len(t) - 2, CHECKS).round().astype(int))
    steps = np.diff(t)[checks]
    times, h = t[checks] + CHECK_SHARE * steps, WIDTH_SHARE * steps
    middle = [sample(x) for x in times.tolist()]
    # narrow and wide pairs around each
    around = [
        [(sample(x - w * r), sample(x + w * r)) for x, r in zip(times, h, strict=True)] for w in (0.5, 1.0)
    ]
    drift = 0.0
    stated = [[m[2] for m in middle], [m[3] for m in middle if m[3] is not None]]
    for order, (word, below) in enumerate((("rate", "values"), ("acceleration", "rates"))):
        if not stated[order]:
            break
        # values and rates broadcast against each other
        shape = np.broadcast_shapes(stated[order][0].shape, _change(*around[0][0], order).shape)
        rate_given = np.stack([np.broadcast_to(a, shape) for a in stated[order]])
        size = max(drift, *(_magnitude(m, order) for m in middle))
        drift = VALUE_DRIFT_RTOL * size / float(t[-1] - t[0])
        wide = np.broadcast_to(h.reshape(-1, *[1] * (rate_given.ndim - 1)), rate_given.shape)
        one, two = (
            np.stack([np.broadcast_to(_change(a, b, order), shape) for a, b in pairs]) / (w * wide)
            for w, pairs in zip((1.0, 2.0), around, strict=True)
        )
        slope = (4 * one - two) / 3
        allowed = 4 * np.abs(one - two) + VALUE_ROUNDING_RTOL * size / wide + drift
        allowed = allowed + RATE_RTOL * np.maximum(np.abs(rate_given), np.abs(slope)).max(axis=0)
        off = np.abs(slope - rate_given) - allowed
        if off.max(initial=-1.0) > 0:
            at = np.unravel_index(int(np.argmax(off)), off.shape)
            time, width = float(times[at[0]]), float(h[at[0]])
            raise InputError(
                f"The {word} of the path of '{name}' contradicts its {below}: for {labels[at[-1]]} "
                f"at t = {time:.6g} it is {rate_given[at]:.6g}, where the {below} within {width:.2g} change "
                f"by {slope[at]:.6g} per unit of time. Return the derivative, or leave it out.",
                name=name,
                row=labels[at[-1]],
                order=order + 1,
                time=time,
                stated=float(rate_given[at]),
                found=float(slope[at]),
            )


def _change(before: Sample, after: Sample, order: int) -> np.ndarray:
    """Return the difference of two samples; rotations give rotation vectors."""
    if order:
        change: np.ndarray = after[2] - before[2]
        return change
    moved: np.ndarray = after[0] - before[0]
    if after[1] is None or before[1] is None:
        return moved
    return np.concatenate([moved, vector_from_matrix(after[1] @ before[1].swapaxes(-1, -2))], axis=-1)


def _magnitude(sample: Sample, order: int) -> float:
    """Return the largest magnitude in a sample; 1 for a rotation."""
    value, turn, rate, _ = sample
    if order:
        return float(np.abs(rate).max(initial=0.0))
    return max(float(np.abs(value).max(initial=0.0)), 0.0 if turn is None else 1.0)


# complex step, whose square is negligible against any value
STEP = 1e-40


class TaskPath:
    """Desired values of a task's rows in time, with rates, and accelerations if they are known.

    `path` is as in `Mechanism.track`, and `t` (n,) are the times of the samples. `batch` is the shape of the
    batch of paths, and `scale` (P,) the scale of each row: a characteristic length, or 1.
    """

    def __init__(self, model: CompiledModel, path: Any, t: np.ndarray) -> None:
        # a Trajectory; its module cannot be imported here
        if hasattr(path, "sampled"):
            path = path.sampled(model.description.coordinates)
        if not isinstance(path, Mapping) or not path:
            raise invalid("path", "must be a Trajectory, or a dict that maps rows or bodies to paths", path)
        self._model = model
        self._entries: list[_RowPath] = []
        names: list[str] = []
        for name, motion in path.items():
            if not isinstance(name, str):
                raise InputError(
                    f"The keys of `path` must be names of rows, got {short_repr(name)}.", key="path", got=name
                )
            entry = _RowPath(model, name, motion, t)
            self._entries.append(entry)
            names += entry.names
        self.names = tuple(names)
        self.batch = broadcast_batches(**{e.name: e.batch for e in self._entries})
        rows = model.rows(self.names, 1).layout.rows
        self.scale = row_scales(model.tree, rows, model.length)

    def rates(self, time: float) -> np.ndarray:
        """Return u̇ (..., P) at a time."""
        return self._joined([e.sample(time)[2] for e in self._entries])

    def accelerations(self, time: float) -> np.ndarray | None:
        """Return ü (..., P) at a time, or None if some are unknown."""
        found = [e.sample(time)[3] for e in self._entries]
        return None if any(a is None for a in found) else self._joined(found)

    def error(self, states: np.ndarray, time: float, shape: tuple[int, ...]) -> np.ndarray:
        """Return the error (B, P) of states (B, S), desired minus actual; rotations give rotation vectors."""
        parts = []
        for e in self._entries:
            value, turn, _, _ = e.sample(time)
            missing = []
            if value.shape[-1]:
                there = self._model.values(e.valued, states)[:, : value.shape[-1]]
                apart = np.broadcast_to(value, (*shape, value.shape[-1])).reshape(there.shape) - there
                rows = self._model.rows(e.valued, 1).layout.rows
                missing.append(apart if turn is not None else rows.shortest(apart))
            if turn is not None:
                p = self._model.pose(e.name).arrays(states)[0].reshape(-1, 4, 3)
                # the rows of p are the rotated unit vectors, so p is the transpose of the rotation
                missing.append(vector_from_matrix(turn @ p[:, 1:]))
            parts.append(np.concatenate(missing, axis=-1))
        return np.concatenate(parts, axis=-1)

    def _joined(self, parts: list[Any]) -> np.ndarray:
        return np.concatenate([np.broadcast_to(a, (*self.batch, a.shape[-1])) for a in parts], axis=-1)


class _RowPath:
    """Desired path of one named row or part."""

    def __init__(self, model: CompiledModel, name: str, motion: Any, t: np.ndarray) -> None:
        self.name = name
        self._last: tuple[float, Sample] | None = None
        part = model.parts.get(name)
        given = motion(float(t[0])) if is_function(motion) and not _is_pose(motion) else motion
        first = given[0] if isinstance(given, tuple) and given else given
        self.names: tuple[str, ...] = (name,)
        self.valued: str = name
        if _is_pose(first):
            if not isinstance(part, Body | Frame):
                raise InputError(f"'{name}' is not a body or frame; only these can follow poses.", name=name)
            self.whole = hasattr(first, "translation")
            if not self.whole:
                self.names = tuple(f"{name}.{w}" for w in ("wx", "wy", "wz"))
            self.size = 6 if self.whole else 3
            self._part = part
            self._made = self._pose_function(motion, t)
            self.batch: tuple[int, ...] = ()
            if is_function(motion) and not _is_pose(motion):
                labels = tuple(f"{name}.{w}" for w in ("x", "y", "z", "wx", "wy", "wz")[6 - self.size :])
                check_rates(name, labels, self._made, t)
            return
        self.size, valued = model.value_rows(name)
        if not valued:
            raise InputError(
                f"'{name}' includes angular velocities, which have no value to follow. Give a body its "
                "motion as SciPy RigidTransforms or Rotations, or name single rows of it.",
                name=name,
            )
        self._made = self._valued(motion, t)
        self.batch = self._made(float(t[0]))[0].shape[:-1]
        if isinstance(given, tuple) and self._has_rates(given):
            check_rates(name, model.rows((name,), 1).layout.rows.labels, self._made, t)

    def sample(self, time: float) -> Sample:
        """Return value, rotation, rate and acceleration at a time; the last sample is cached."""
        if self._last is None or self._last[0] != time:
            self._last = time, self._made(time)
        return self._last[1]

    def _array(self, what: str, value: Any, size: int) -> np.ndarray:
        a = numbers(f"{self.name} ({what})", value)
        single = size == 1 and (a.ndim == 0 or a.shape[-1] != 1)
        if single:
            a = a[..., None]
        if a.ndim == 0 or a.shape[-1] != size or a.dtype != np.float64 or not np.isfinite(a).all():
            raise InputError(
                f"The {what} of '{self.name}' must be finite real numbers of shape (..., {size}), got "
                f"{short_repr(value)}.",
                key="path",
                name=self.name,
                got=value,
            )
        return a

    def _valued(self, motion: Any, t: np.ndarray) -> Callable[[float], Sample]:
        size = self.size
        if not is_function(motion):
            a = reals(motion)
            if a is not None and size == 1 and a.ndim and (a.ndim == 1 or a.shape[-1] != 1):
                a = a[..., None]
            if a is None or a.ndim < 2 or a.shape[0] != len(t) or a.shape[-1] != size:
                raise InputError(
                    f"The path of '{self.name}' must be a function of time, or finite samples of "
                    f"shape ({len(t)}, ..., {size}), one for each time; got {short_repr(motion)}.",
                    key="path",
                    name=self.name,
                    got=motion,
                )
            at = _interpolant(t, a)

            def interpolated(time: float) -> Sample:
                value, rate, acceleration = at(time)
                return value, None, rate, acceleration

            return interpolated

        def made(time: float) -> Sample:
            found = motion(time)
            if self._has_rates(found):
                whats = ("value", "rate", "acceleration")
                given = [self._array(w, a, size) for w, a in zip(whats, found, strict=False)]
                return given[0], None, given[1], given[2] if len(given) > 2 else None
            value = self._array("value", found, size)
            try:
                rate = np.asarray(motion(time + 1j * STEP))
            except (TypeError, ValueError) as error:
                raise InputError(self._missing_rate(), key="path", name=self.name) from error
            if rate.dtype.kind != "c":
                raise InputError(self._missing_rate(), key="path", name=self.name)
            return value, None, self._array("rate", rate.imag / STEP, size), None

        return made

    def _has_rates(self, found: Any) -> bool:
        """Return True if the result of a path function includes rates, and perhaps higher derivatives."""
        several = isinstance(found, tuple) and 2 <= len(found) <= 4
        return several and (self.size == 1 or not is_scalar(found[0]))

    def _missing_rate(self) -> str:
        return (
            f"The rate of '{self.name}' is computed by a complex step of its function, which must accept "
            "complex times. Otherwise return (value, rate) or (value, rate, acceleration) from it."
        )

    def _pose_function(self, motion: Any, t: np.ndarray) -> Callable[[float], Sample]:
        def parsed(pose: Any) -> tuple[np.ndarray, np.ndarray]:
            if self.whole:
                return parse_pose("path", self._part, pose)
            return np.zeros(0), parse_rotation("path", self.name, pose)

        if is_function(motion) and not _is_pose(motion):

            def made(time: float) -> Sample:
                found = motion(time)
                if not isinstance(found, tuple) or not 2 <= len(found) <= 4 or not _is_pose(found[0]):
                    raise InputError(
                        f"The function of '{self.name}' must return (pose, rate) or (pose, rate, "
                        f"acceleration), its rates as rows {', '.join(self.names)}; got {short_repr(found)}.",
                        key="path",
                        name=self.name,
                        got=found,
                    )
                later = [
                    self._array(w, a, self.size)
                    for w, a in zip(("rate", "acceleration"), found[1:3], strict=False)
                ]
                return *parsed(found[0]), later[0], later[1] if len(later) > 1 else None

            return made
        p, matrices = parsed(motion)
        if matrices.shape != (len(t), 3, 3):
            raise InputError(
                f"`path` must have {len(t)} poses of '{self.name}', one for each time, got shape "
                f"{matrices.shape[:-2]}.",
                key="path",
                got=matrices.shape[:-2],
            )
        from scipy.spatial.transform import Rotation, RotationSpline

        splined = RotationSpline(t, Rotation.from_matrix(matrices))
        places = _interpolant(t, p) if self.whole else None

        def posed(time: float) -> Sample:
            R = splined(time).as_matrix()
            # RotationSpline returns rates in body axes
            w, wd = R @ splined(time, 1), R @ splined(time, 2)
            if places is None:
                return p, R, w, wd
            at, v, a = places(time)
            return at, R, np.concatenate([v, w]), None if a is None else np.concatenate([a, wd])

        return posed


def _interpolant(
    t: np.ndarray, samples: np.ndarray
) -> Callable[[float], tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Return a function that evaluates a spline: value, rate and, from four times on, acceleration."""
    from scipy.interpolate import make_interp_spline

    spline = make_interp_spline(t, samples, k=5 if len(t) > 5 else 3 if len(t) > 3 else 1)
    return lambda time: (spline(time), spline(time, 1), spline(time, 2) if spline.k > 1 else None)


def _is_pose(value: Any) -> bool:
    """Return True for a SciPy Rotation or RigidTransform."""
    return hasattr(value, "as_matrix")
