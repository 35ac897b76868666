"""Limits of the voltages of motors: as rows of a path, and as speeds at which a motion keeps them.

Without inductance V = R i + k_e u̇ is a row like an effort's. With it the voltage has a share of the jerk, so
that for a motion run r times as fast V is a cubic in r: it is read off at four speeds, and solved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.coefficients import Coefficients
from kic.configuration import Configuration
from kic.errors import InputError
from kic.linear.actuators import Train
from kic.mechanism import Mechanism
from kic.trajectories.naming import Naming
from kic.trajectories.pathlimits import Along, Hook, Rows, along
from kic.trajectories.trajectory import Trajectory

# speeds at which a cubic is read off
_SPEEDS = np.array([0.5, 1.0, 1.5, 2.0])
# roots are rounded by this share, so that two may leave the real axis; inverse ones below this are none
_ROUNDED, _NONE = 1e-7, 1e-12


def voltage_rows(mechanism: Mechanism | None, limits: Any) -> Hook:
    """Rows of voltages of motors without inductance, for `fastest`.

    V = R τ/k_t + k_e u̇, of which the torque takes what efforts, rotors, damping and friction do.
    """
    train, lower, upper = _limited(mechanism, limits)
    slow = [name for name, has in zip(train.names, train.slow, strict=True) if has]
    if slow:
        raise InputError(
            f"Motors have inductance ({', '.join(slow)}), but accelerations of the fastest motion jump, and "
            "so would their currents, which no voltage makes them do. Leave it out, replace(motor, "
            "inductance=0.0), or take a smooth motion and uniform().",
            motors=tuple(slow),
        )

    def rows(of: Along) -> Rows:
        c = of.configuration
        assert c is not None  # for the type checker: there is a mechanism
        joints = c.coefficients(train.joints, order=2, wrt=of.wrt)
        G, H = of.both(joints.G), of.both(joints.needed("H", 2))
        shafts = train.shafts(Coefficients(joints.rows, joints.columns, G, H, quasi=joints.quasi))
        turn, still = shafts.velocity(of.first), np.zeros(1)
        # speeds and accelerations of shafts that go with s̈, ṡ², ṡ and 1
        moved = (
            (still, turn),
            (still, shafts.acceleration(of.first, of.second)),
            (turn, still),
            (still, still),
        )
        found = []
        for effort, (speed, acceleration) in zip(of.terms()[1:], moved, strict=True):
            torque = train.torques(shafts, effort) + train.inner(speed, acceleration)
            found.append(train.drop(torque / train.torque_constant, speed))
        # dry friction is against the motion, which goes forth
        held = train.drop(train.dry(shafts, of.first) / train.torque_constant, still)
        A, B, C, D = (np.where(train.electrical, V, 0.0) for V in (*found[:3], found[3] + held))
        return Rows(tuple(f"voltage of {name}" for name in train.names), A, B, C, D, lower, upper)

    return rows


def voltage_room(
    trajectory: Trajectory,
    mechanism: Mechanism | None,
    near: Configuration | None,
    t: np.ndarray,
    limits: Any,
) -> np.ndarray:
    """Closed intervals (n, 2) of r, so many times as fast the motion keeps the voltages at t (L + 1,).

    At both sides of each instant, as accelerations and jerks may jump there.
    """
    train, lower, upper = _limited(mechanism, limits)
    of = along(trajectory, mechanism, near, t)
    assert of.configuration is not None  # for the type checker: there is a mechanism
    c = of.configuration
    ends = Configuration(c._model, (len(t) - 1, 2), of.both(c.state).reshape(-1, c.state.shape[-1]))
    third = np.stack(trajectory.pieces.refined(t).limits(3), axis=1)
    # both sides of each limit of V(r), a cubic
    seen = [ends.drive(r * of.first, r**2 * of.second, r**3 * third, wrt=of.wrt).voltage for r in _SPEEDS]
    powers = np.linalg.inv(np.vander(_SPEEDS, increasing=True))
    V = np.where(train.electrical, np.einsum("pr,r...k->p...k", powers, np.array(seen)), 0.0)
    room = []
    for sign, limit in ((-1.0, upper), (1.0, lower)):
        held = np.isfinite(limit)
        cubics = sign * V.reshape(4, -1, len(limit))[:, :, held]
        rounding = 1e-13 * (np.abs(cubics[0]) + np.abs(limit[held]))
        cubics[0] -= sign * limit[held]
        cubics[0][np.abs(cubics[0]) <= rounding] = 0.0
        room.append(cubics.reshape(4, -1))
    return cubic_room(np.concatenate(room, axis=1))


def cubic_room(c: np.ndarray) -> np.ndarray:
    """Closed intervals (n, 2) of r ≥ 0, in order, on which all of the cubics c (4, N) are at least 0.

    Examples
    --------
    >>> cubic_room(np.array([[-1.0, 8.0], [1.0, 0.0], [0.0, 0.0], [0.0, -1.0]])).round(12)
    array([[1., 2.]])
    """
    size = np.abs(c).max(axis=0, initial=0.0)
    c = c[:, size > 0] / size[size > 0]
    ends = np.full((5, c.shape[1]), np.inf)
    ends[0], ends[1:4] = 0.0, _roots(c)
    ends = np.sort(ends, axis=0)
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isfinite(ends[1:]), (ends[:-1] + ends[1:]) / 2, 2 * ends[:-1] + 1)
        value = c[0] + middle * (c[1] + middle * (c[2] + middle * c[3]))
    shut = (ends[1:] > ends[:-1]) & (value < 0)
    ends[0] = np.where(c[0] < 0, -np.inf, 0.0)
    start, end = ends[:-1][shut], ends[1:][shut]
    order = np.argsort(start, kind="stable")
    # what is left between open intervals that are shut
    left = np.maximum.accumulate(np.concatenate([[0.0], end[order]]))
    right = np.concatenate([start[order], [np.inf]])
    there = (right >= left) & (left < np.inf)
    return np.stack([left[there], right[there]], axis=1)


def _roots(c: np.ndarray) -> np.ndarray:
    """Positive roots (3, N) of cubics (4, N), infinite where there are fewer."""
    for _ in range(3):  # without roots at zero
        c = np.where(c[0] == 0, np.concatenate([c[1:], np.zeros_like(c[:1])]), c)
    there = c[0] != 0
    found = np.full((3, c.shape[1]), np.inf)
    c = c[:, there]
    # of x = s/r, the polynomial turned round, whose coefficients are at most the first
    with np.errstate(divide="ignore"):
        s = np.min([np.abs(c[0] / c[k]) ** (1 / k) for k in (1, 2, 3)], axis=0)
    s = np.where(np.isfinite(s), s, 1.0)
    companion = np.zeros((c.shape[1], 3, 3))
    companion[:, 0] = (-c[1:] / c[0] * s ** np.arange(1, 4)[:, None]).T
    companion[:, 1, 0] = companion[:, 2, 1] = 1.0
    x = np.linalg.eigvals(companion).T
    real = (np.abs(x.imag) <= _ROUNDED * np.abs(x)) & (x.real > _NONE)
    r = np.where(real, s / np.where(real, x.real, 1.0), np.inf)
    found[:, there] = np.where(real, _polished(c, r), np.inf)
    return found


def _polished(c: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Roots after a step of Newton's, where it is small."""
    safe = np.where(np.isfinite(r), r, 1.0)
    value = c[0] + safe * (c[1] + safe * (c[2] + safe * c[3]))
    slope = c[1] + safe * (2 * c[2] + 3 * safe * c[3])
    step = value / np.where(slope != 0, slope, np.inf)
    return np.where(np.abs(step) < _ROUNDED * safe, safe - step, r)


def shared(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """What two unions of closed intervals (n, 2), in order, have in common.

    Examples
    --------
    >>> shared(np.array([[0.0, 2.0], [3.0, 5.0]]), np.array([[1.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    low = np.maximum(one[:, None, 0], other[None, :, 0]).reshape(-1)
    high = np.minimum(one[:, None, 1], other[None, :, 1]).reshape(-1)
    return np.stack([low, high], axis=1)[low <= high]


def _limited(mechanism: Mechanism | None, limits: Any) -> tuple[Train, np.ndarray, np.ndarray]:
    """The motors, and limits (K,) of their voltages."""
    if mechanism is None:
        raise InputError("Voltages need a mechanism with motors: give the one that goes along.")
    train = mechanism._model.train
    of = Naming(train.names, (0,) * len(train.names), len(train.names))
    lower, upper = of.bounds("voltage", limits, rest=False)
    plain = ~train.electrical & (np.isfinite(lower) | np.isfinite(upper))
    if plain.any():
        names = [name for name, has in zip(train.names, plain, strict=True) if has]
        raise InputError(
            f"Motors without a circuit have no voltage to be limited ({', '.join(names)}). Limit the others "
            "by name, in a dict; and efforts by `effort`.",
            motors=tuple(names),
        )
    return train, lower, upper
