"""Trajectories of orientations: along the shortest turn, or smoothly through several.

An orientation is a quaternion p(t), of any length, whose derivatives are known: those of a circular arc, or
of a spline. With N = p·p and W = 2 vec(ṗ p̄), in world axes ω = W/N, ω̇ = (Ẇ − ω Ṅ)/N and
ω̈ = (Ẅ − 2 ω̇ Ṅ − ω N̈)/N.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from kic.errors import InputError, short_repr
from kic.numerics.rotations import product
from kic.trajectory.splines import centripetal, spline
from kic.trajectory.trajectory import Trajectory, positive

# neighbours closer to a half turn than this may be joined by either of two ways
_HALF_TURN = 1e-6
# a quaternion shorter than this on the way between unit ones has lost its direction; where it is looked at
_SHORT, _LOOKS = 0.2, 33


class RotationSegments(NamedTuple):
    """Orientations and what they change by: ``rotation, w, wd, wdd = turning(t)``.

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
        Half of the angle turned, or the quaternion (w, x, y, z), of any length.
    arms : (2, 4) or None
        Of a turn about one axis, the quaternion where it starts and that of half a turn further.
    """

    trajectory: Trajectory
    arms: np.ndarray | None

    @property
    def duration(self) -> float:
        """How long it takes."""
        return self.trajectory.duration

    @property
    def knots(self) -> np.ndarray:
        """Instants (K + 1,) where its polynomials meet."""
        return self.trajectory.knots

    def __call__(self, t: Any, beyond: Literal["raise", "hold"] = "raise") -> RotationSegments:
        """Orientations, angular velocities, accelerations and jerks at times.

        Parameters
        ----------
        t, beyond
            As for a `Trajectory`; times (...) are real, and (T,) at most in shape.

        Returns
        -------
        Turns
            A SciPy `Rotation`, and ω, ω̇, ω̈ (..., 3) in world axes.

        Raises
        ------
        InputError
            For times that are none, or beyond the ends.
        """
        motion = self.trajectory(t, beyond)
        if motion.q.dtype.kind == "c" or motion.q.ndim > 2:
            raise InputError(f"`t` must be real times of shape () or (T,), got {short_repr(t)}.")
        from scipy.spatial.transform import Rotation

        p = self._quaternions(motion)
        w, wd, wdd = turned(p)
        return RotationSegments(Rotation.from_quat(p[0], scalar_first=True), w, wd, wdd)

    def _quaternions(self, motion: Any) -> list[np.ndarray]:
        """Quaternions (..., 4) and three derivatives."""
        if self.arms is None:
            return list(motion)
        h, hd, hdd, hddd = motion
        start, across = self.arms
        along = np.cos(h) * start + np.sin(h) * across
        ahead = np.cos(h) * across - np.sin(h) * start
        return [
            along,
            hd * ahead,
            hdd * ahead - hd**2 * along,
            (hddd - hd**3) * ahead - 3 * hd * hdd * along,
        ]

    def scaled(self, factor: float) -> OrientationTrajectory:
        """The same turns in so many times the time."""
        return replace(self, trajectory=self.trajectory.scaled(factor))

    def lasting(self, duration: float) -> OrientationTrajectory:
        """The same turns in another time."""
        return replace(self, trajectory=self.trajectory.lasting(duration))

    def reversed(self) -> OrientationTrajectory:
        """The same turns back."""
        return replace(self, trajectory=self.trajectory.reversed())

    def __repr__(self) -> str:
        way = "about one axis" if self.arms is not None else f"through {len(self.knots)} orientations"
        return f"turning {way}: duration {self.duration:.5g}"


def turned(p: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ω, ω̇, ω̈ (..., 3) in world axes from quaternions (..., 4) of any length and three derivatives."""
    back = [x * np.array([1.0, -1.0, -1.0, -1.0]) for x in p[:2]]

    def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.einsum("...i,...i->...", a, b)[..., None]

    # ṗ p̄ is a number and a vector; that of ṗ with itself is a number alone
    W, Wd = (2 * product(p[k], back[0])[..., 1:] for k in (1, 2))
    Wdd = 2 * (product(p[3], back[0]) + product(p[2], back[1]))[..., 1:]
    N, Nd, Ndd = dots(p[0], p[0]), 2 * dots(p[0], p[1]), 2 * (dots(p[1], p[1]) + dots(p[0], p[2]))
    w = W / N
    wd = (Wd - w * Nd) / N
    return w, wd, (Wdd - 2 * wd * Nd - w * Ndd) / N


def rotation(
    rotations: Any,
    times: Any = None,
    duration: float = 1.0,
    degree: Literal[3, 5, 7] = 5,
    ends: Literal["rest", "free"] = "rest",
    stops: bool | Iterable[int] = False,
) -> OrientationTrajectory:
    """Orientations in time: the shortest turn between two, or smoothly through several.

    Between two orientations the body turns about one axis, by an angle that is a polynomial of the degree.
    Through several goes a spline of unit quaternions, put back to unit length; between neighbours at both of
    which it stops, too, it turns about one axis. In `Mechanism.follow` it is the course of a body, by its
    rows wx, wy, wz.

    Parameters
    ----------
    rotations : scipy.spatial.transform.Rotation
        K orientations; of a body, as its turn from the drawing.
    times : (K,) array_like, optional
        When, from 0 on. By default spread over the duration as the square roots of the angles between them.
    duration, degree, ends, stops
        As for `through`.

    Returns
    -------
    Turning

    Raises
    ------
    InputError
        For what is no several rotations, neighbours half a turn apart, which two ways join, neighbours that
        coincide where no times are given, or a spline that goes astray; and as `through`.

    Examples
    --------
    >>> from scipy.spatial.transform import Rotation
    >>> from kic import trajectory
    >>> turn = trajectory.rotation(Rotation.from_rotvec([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), duration=2.0)
    >>> turn(1.0).w.round(12).tolist(), turn(1.0).rotation.as_rotvec().round(12).tolist()
    ([0.0, 0.0, 0.9375], [0.0, 0.0, 0.5])
    """
    if not hasattr(rotations, "as_quat") or getattr(rotations, "single", False) or len(rotations) < 2:
        raise InputError(
            f"`rotations` must be a SciPy Rotation of at least 2 orientations, got {short_repr(rotations)}."
        )
    q = rotations.as_quat(scalar_first=True)
    if q.ndim != 2:
        raise InputError(f"`rotations` must have shape (K,), got {q.shape[:-1]}.")
    angles = (rotations[1:] * rotations[:-1].inv()).magnitude()
    wide = np.pi - angles < _HALF_TURN
    if wide.any():
        k = int(np.argmax(wide))
        raise InputError(
            f"Orientations {k} and {k + 1} are half a turn apart ({angles[k]:.9g} rad): two ways join them. "
            "Give one between them.",
            point=k,
        )
    if len(q) == 2:
        # the quaternion a quarter of a circle ahead, which is half a turn
        at = positive("duration", duration) * np.arange(2.0) if times is None else times
        half = spline([[0.0], [angles[0] / 2]], at, 1.0, degree, ends, stops)
        axis = (rotations[1] * rotations[0].inv()).as_rotvec() / (angles[0] or 1.0)
        return OrientationTrajectory(half, np.stack([q[0], product(np.append(0.0, axis), q[0])]))
    # of both signs, those on the same side
    flips = np.where(np.einsum("ki,ki->k", q[1:], q[:-1]) < 0, -1.0, 1.0)
    q = q * np.cumprod(np.append(1.0, flips))[:, None]
    when = centripetal(angles, positive("duration", duration)) if times is None else times
    whole = spline(q, when, 1.0, degree, ends, stops)
    share = np.linspace(0.0, 1.0, _LOOKS)[:, None]
    knots = whole.knots
    size = np.linalg.norm(whole((knots[:-1] + share * np.diff(knots)).ravel(order="F")).q, axis=1)
    if size.min() < _SHORT:
        k = int(np.argmin(size)) // _LOOKS
        raise InputError(
            f"The spline goes astray between t = {knots[k]:.4g} and {knots[k + 1]:.4g}: its quaternion "
            f"shrinks to {size.min():.2g}. Give more orientations there, times that suit the angles, or "
            "stops.",
            size=float(size.min()),
        )
    return OrientationTrajectory(whole, None)
