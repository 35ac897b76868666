"""Motors of a motion in time: their shafts in the coordinates that are integrated, and their circuits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.dynamics.drive_train import DriveTrain
from kic.simulation.motion import Motion, Snapshot


@dataclass(frozen=True)
class ShaftKinematics:
    """Shafts at a moment.

    Attributes
    ----------
    N : (K, M)
        Turn of each shaft for each unit of each coordinate, u̇ = N q̇.
    speed, bend : (K,)
        u̇, and ü at no q̈.
    """

    N: np.ndarray
    speed: np.ndarray
    bend: np.ndarray


@dataclass(frozen=True)
class MotorState:
    """What flows in the motors at a moment, (K,) each: NaN where a plain source of torque has none.

    Attributes
    ----------
    torque, voltage, current, current_rate : (K,)
        As in `MotorDemand`; the rate is NaN of motors without inductance.
    power, heat : float
        What the motors take in, V i or τ u̇; what is lost in them, R i² and (k_e − k_t) i u̇.
    """

    torque: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    current_rate: np.ndarray
    power: float
    heat: float


class Motoring:
    """Motors of a motion, in one set of coordinates.

    Parameters
    ----------
    motion : Motion
        What moves, with voltages.
    train : Train
        Its motors.
    names : tuple of str
        The coordinates.

    Attributes
    ----------
    rows : tuple of str
        Joints whose coefficients to second order are needed; none where they are coordinates themselves.
    slow : (K,) bool
        Motors whose current is an unknown.
    """

    def __init__(self, motion: Motion, train: DriveTrain, names: tuple[str, ...]) -> None:
        self._motion, self.train, self.slow = motion, train, train.slow
        self.rows = () if set(train.joints) <= set(names) else train.joints
        self._fixed = np.zeros((len(train.names), len(names)))
        if not self.rows:
            self._fixed[:, [names.index(joint) for joint in train.joints]] = train.ratios

    def shafts(self, r: Any, v: np.ndarray) -> ShaftKinematics:
        """Shafts for rates (M,), from results in the coordinates."""
        if not self.rows:
            return ShaftKinematics(self._fixed, self._fixed @ v, np.zeros(len(self._fixed)))
        ratios = self.train.ratios
        N = ratios @ np.concatenate([r[name].G for name in self.rows])
        turned = np.concatenate([r[name].H for name in self.rows])
        return ShaftKinematics(N, N @ v, ratios @ ((turned @ v) @ v))

    def known(self, unknowns: np.ndarray) -> np.ndarray:
        """Currents (K,) as far as they are unknowns of the integrator; NaN elsewhere."""
        current = np.full(len(self.slow), np.nan)
        current[self.slow] = unknowns
        return current

    def flow(self, t: float, now: Snapshot, shafts: ShaftKinematics) -> MotorState:
        """What flows at a moment: L di/dt + R i + k_e u̇ = V and τ = k_t i (2-228 to 2-236)."""
        train, slow = self.train, self.slow
        given = self._motion.voltages(t, now)
        still = train.drop(np.zeros(len(slow)), shafts.speed)
        current = np.where(slow, now.current, (given - still) / train.resistance)
        rate = np.full(len(slow), np.nan)
        rate[slow] = ((given - train.drop(current, shafts.speed)) / np.where(slow, train.inductance, 1.0))[
            slow
        ]
        torque = np.where(train.electrical, train.torque_constant * current, given)
        taken = np.where(train.electrical, given * current, given * shafts.speed)
        # what is lost on the way from the supply to the shaft, where the two constants differ
        lost = (train.speed_constant - train.torque_constant) * shafts.speed
        heat = np.where(train.electrical, (train.resistance * current + lost) * current, 0.0)
        voltage = np.where(train.electrical, given, np.nan)
        return MotorState(torque, voltage, current, rate, float(taken.sum()), float(heat.sum()))

    def scale(self, shafts: ShaftKinematics, inertia: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """What is one in each current that is an unknown: it gives some motion a unit acceleration.

        Parameters
        ----------
        inertia, rates : (M,)
            Inertia in each coordinate, and what is one in its rate.
        """
        train = self.train
        pull = (
            np.abs(shafts.N) * train.torque_constant[:, None] / np.where(inertia > 0, inertia * rates, np.inf)
        )
        most = pull.max(axis=1, initial=0.0)
        return np.asarray(1 / np.where(most > 0, most, 1.0))[self.slow]


def between(
    t: np.ndarray, current: np.ndarray, rate: np.ndarray, when: np.ndarray, k: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Currents (n, K) between moments, by cubic Hermite interpolation, and how rough it is (n,).

    Rough is a step whose trapezoid of rates misses it, as a share of the largest current.

    Parameters
    ----------
    t : (T,)
        Moments.
    current, rate : (T, K)
        At them; NaN rates of motors whose current is no smooth function of time.
    when, k : (n,)
        Times, and the moments before them.
    """
    if len(t) == 1:
        return np.where(np.isnan(rate), np.nan, current)[k], np.zeros(len(k))
    h = (t[k + 1] - t[k])[:, None]
    s, step = (when - t[k])[:, None] / h, current[k + 1] - current[k]
    first, last = rate[k] * h - step, rate[k + 1] * h - step
    most = np.nan_to_num(np.abs(current)).max(axis=0, initial=0.0)
    off = np.nan_to_num(np.abs(first + last) / 2 / np.where(most > 0, most, 1.0)) * ((s > 0) & (s < 1))
    found = current[k] + s * (step + (1 - s) * (first * (1 - s) - last * s))
    return found, off.max(axis=1, initial=0.0)
