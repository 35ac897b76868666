"""Trajectories of orientations: about one axis, or smoothly through several.

An orientation is a quaternion p(t), of any length, with known derivatives: on a circular arc or a spline.
With N = p·p and W = 2 vec(ṗ p̄), in world axes ω = W/N, ω̇ = (Ẇ − ω Ṅ)/N and ω̈ = (Ẅ − 2 ω̇ Ṅ − ω N̈)/N.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from kic.errors import InputError, invalid
from kic.numerics.rotations import product
from kic.trajectory.splines import centripetal, spline
from kic.trajectory.trajectory import Trajectory, positive_duration

# distance (rad) from half a turn below which the shortest rotation is ambiguous
HALF_TURN_ATOL = 1e-6
# smallest length of the quaternion of a spline, and number of points per interval at which it is checked
QUATERNION_MIN, CHECKS = 0.2, 33


class RotationSegments(NamedTuple):
    """Orientations and their derivatives: ``rotation, w, wd, wdd = turning(t)``.

    A SciPy `Rotation`, and angular velocities, accelerations and jerks (..., 3) in world axes.
    """

    rotation: Any
    w: np.ndarray
    wd: np.ndarray
    wdd: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class OrientationTrajectory:
    """Orientations in time; made by `rotation`. Immutable; call it with times.

    Attributes
    ----------
    trajectory : Trajectory
        Half of the rotation angle, or the quaternion (w, x, y, z), of any length.
    arms : (2, 4) or None
        For a rotation about one axis, the quaternions at the start and half a turn further.
    """

    trajectory: Trajectory
    arms: np.ndarray | None

    @property
    def duration(self) -> float:
        """Duration."""
        return self.trajectory.duration

    @property
    def knots(self) -> np.ndarray:
        """Array (K + 1,) of the times where the polynomials meet."""
        return self.trajectory.knots

    def __call__(self, t: Any, *, beyond: Literal["raise", "hold"] = "raise") -> RotationSegments:
        """Return orientations, angular velocities, accelerations and jerks at times.

        Parameters
        ----------
        t, beyond
            As for a `Trajectory`; times are real, of shape () or (T,).

        Returns
        -------
        RotationSegments
            A SciPy `Rotation`, and ω, ω̇, ω̈ (..., 3) in world axes.
        """
        motion = self.trajectory(t, beyond=beyond)
        if motion.q.dtype.kind == "c" or motion.q.ndim > 2:
            raise invalid("t", "must be real times of shape () or (T,)", t)
        from scipy.spatial.transform import Rotation

        p = self._quaternions(motion)
        w, wd, wdd = angular_motion(p)
        return RotationSegments(Rotation.from_quat(p[0], scalar_first=True), w, wd, wdd)

    def _quaternions(self, motion: Any) -> list[np.ndarray]:
        """Return quaternions (..., 4) and three derivatives."""
        if self.arms is None:
            return list(motion)
        h, hd, hdd, hddd = motion
        start, across = self.arms
        along = np.cos(h) * start + np.sin(h) * across
        ahead = np.cos(h) * across - np.sin(h) * start
        return [along, hd * ahead, hdd * ahead - hd**2 * along, (hddd - hd**3) * ahead - 3 * hd * hdd * along]

    def scaled(self, factor: float) -> OrientationTrajectory:
        """Return the same rotations in `factor` times the duration."""
        return replace(self, trajectory=self.trajectory.scaled(factor))

    def lasting(self, duration: float) -> OrientationTrajectory:
        """Return the same rotations with the given duration."""
        return replace(self, trajectory=self.trajectory.lasting(duration))

    def reversed(self) -> OrientationTrajectory:
        """Return the rotations reversed in time."""
        return replace(self, trajectory=self.trajectory.reversed())

    def __repr__(self) -> str:
        description = "about one axis" if self.arms is not None else f"through {len(self.knots)} orientations"
        return f"rotation {description}: duration {self.duration:.5g}"


def angular_motion(p: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ω, ω̇, ω̈ (..., 3) in world axes from quaternions (..., 4) of any length and three derivatives."""
    back = [x * np.array([1.0, -1.0, -1.0, -1.0]) for x in p[:2]]

    def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.einsum("...i,...i->...", a, b)[..., None]

    # the vector part of ṗ times its own conjugate vanishes
    W, Wd = (2 * product(p[k], back[0])[..., 1:] for k in (1, 2))
    Wdd = 2 * (product(p[3], back[0]) + product(p[2], back[1]))[..., 1:]
    N, Nd, Ndd = dots(p[0], p[0]), 2 * dots(p[0], p[1]), 2 * (dots(p[1], p[1]) + dots(p[0], p[2]))
    w = W / N
    wd = (Wd - w * Nd) / N
    return w, wd, (Wdd - 2 * wd * Nd - w * Ndd) / N


def rotation(
    rotations: Any,
    times: Any = None,
    *,
    duration: float = 1.0,
    degree: Literal[3, 5, 7] = 5,
    ends: Literal["rest", "free"] = "rest",
    stops: bool | Iterable[int] = False,
) -> OrientationTrajectory:
    """Return orientations in time: the shortest rotation between two, or a smooth rotation through several.

    Between two orientations the body rotates about one axis, by an angle that is a polynomial of the degree.
    A normalized spline of quaternions joins several; between two stops, the body rotates about one axis. In
    `Mechanism.track` it is the path of a body, with the rows wx, wy, wz.

    Parameters
    ----------
    rotations : scipy.spatial.transform.Rotation
        K orientations; for a body, its rotation from the reference configuration.
    times : (K,) array_like, optional
        Times from 0. By default intervals in proportion to the square roots of the angles between
        orientations.
    duration, degree, ends, stops
        As for `spline`.

    Raises
    ------
    InputError
        If there are fewer than two rotations, neighbours coincide without `times` or are half a turn apart
        (an ambiguous rotation), or the spline degenerates; and as for `spline`.

    Examples
    --------
    >>> from scipy.spatial.transform import Rotation
    >>> turn = kic.trajectory.rotation(Rotation.from_rotvec([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), duration=2.0)
    >>> turn(1.0).w.round(12).tolist(), turn(1.0).rotation.as_rotvec().round(12).tolist()
    ([0.0, 0.0, 0.9375], [0.0, 0.0, 0.5])
    """
    if not hasattr(rotations, "as_quat") or getattr(rotations, "single", False) or len(rotations) < 2:
        raise invalid("rotations", "must be a SciPy Rotation of at least 2 orientations", rotations)
    q = rotations.as_quat(scalar_first=True)
    if q.ndim != 2:
        raise invalid("rotations", "must have shape (K,)", q.shape[:-1])
    angles = (rotations[1:] * rotations[:-1].inv()).magnitude()
    wide = np.pi - angles < HALF_TURN_ATOL
    if wide.any():
        k = int(np.argmax(wide))
        raise InputError(
            f"Orientations {k} and {k + 1} are half a turn apart ({angles[k]:.9g} rad), so the rotation "
            "is ambiguous. Give one between them.",
            key="rotations",
            point=k,
        )
    if len(q) == 2:
        # the quaternion at a quarter of the circle, which is a rotation by half a turn
        at = positive_duration("duration", duration) * np.arange(2.0) if times is None else times
        half = spline([[0.0], [angles[0] / 2]], at, duration=1.0, degree=degree, ends=ends, stops=stops)
        axis = (rotations[1] * rotations[0].inv()).as_rotvec() / (angles[0] or 1.0)
        return OrientationTrajectory(half, np.stack([q[0], product(np.append(0.0, axis), q[0])]))
    # p and −p are the same orientation; choose the sign nearer to the neighbour
    flips = np.where(np.einsum("ki,ki->k", q[1:], q[:-1]) < 0, -1.0, 1.0)
    q = q * np.cumprod(np.append(1.0, flips))[:, None]
    when = centripetal(angles, positive_duration("duration", duration)) if times is None else times
    whole = spline(q, when, duration=1.0, degree=degree, ends=ends, stops=stops)
    share = np.linspace(0.0, 1.0, CHECKS)[:, None]
    knots = whole.knots
    size = np.linalg.norm(whole((knots[:-1] + share * np.diff(knots)).ravel(order="F")).q, axis=1)
    if size.min() < QUATERNION_MIN:
        k = int(np.argmin(size)) // CHECKS
        raise InputError(
            f"The spline degenerates between t = {knots[k]:.4g} and {knots[k + 1]:.4g}: its quaternion "
            f"shrinks to {size.min():.2g}. Give more orientations there, times in proportion to the angles, "
            "or stops.",
            key="rotations",
            size=float(size.min()),
        )
    return OrientationTrajectory(whole, None)
