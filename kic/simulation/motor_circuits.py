"""Motors of a simulation: their shafts in the integrated coordinates, and their circuits (2-228 to 2-236)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.dynamics.drive_train import DriveTrain
from kic.kernels.layout import (
    MOTOR_DAMPING,
    MOTOR_ELECTRICAL,
    MOTOR_INDUCTANCE,
    MOTOR_INERTIA,
    MOTOR_RESISTANCE,
    MOTOR_SPEED_CONSTANT,
    MOTOR_TORQUE_CONSTANT,
    MOTOR_WIDTH,
)
from kic.simulation.motion import Motion, Snapshot


@dataclass(frozen=True)
class ShaftKinematics:
    """Motion of the motor shafts at one time."""

    N: np.ndarray  # (K, M): Jacobian of the shaft angles, u̇ = N q̇
    # (K,): u̇, and ü at q̈ = 0
    speed: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True)
class MotorState:
    """Electrical state of the motors at one time; NaN where a plain source of torque has no such quantity."""

    # (K,): as in `MotorDemand`; the rate is NaN for motors without inductance
    torque: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    current_rate: np.ndarray
    # power supplied, V i or τ u̇, and power lost, R i² and (k_e − k_t) i u̇
    power: float
    heat: float


class MotorEquations:
    """Motors of a motion, in one set of coordinates.

    Joints `rows` are those whose coefficients to second order are needed; none if they are coordinates
    themselves, so that the Jacobian `fixed` (K, M) of the shafts is constant. The mask `is_inductive` (K,)
    has the motors with inductance, whose current is an unknown.
    """

    def __init__(self, motion: Motion, train: DriveTrain, names: tuple[str, ...]) -> None:
        self._motion, self.train, self.is_inductive = motion, train, train.is_inductive
        self.rows = () if set(train.joints) <= set(names) else train.joints
        self.fixed = np.zeros((len(train.names), len(names)))
        if not self.rows:
            self.fixed[:, [names.index(joint) for joint in train.joints]] = train.ratios

    def shafts(self, r: Any, v: np.ndarray) -> ShaftKinematics:
        """Return the motion of the shafts for rates (M,), from results in the coordinates."""
        if not self.rows:
            return ShaftKinematics(self.fixed, self.fixed @ v, np.zeros(len(self.fixed)))
        ratios = self.train.ratios
        N = ratios @ np.concatenate([r[name].G for name in self.rows])
        H = np.concatenate([r[name].H for name in self.rows])
        return ShaftKinematics(N, N @ v, ratios @ ((H @ v) @ v))

    @property
    def table(self) -> np.ndarray:
        """Array (K, MOTOR_WIDTH) of the constants of the motors, for kernels."""
        train, table = self.train, np.empty((len(self.fixed), MOTOR_WIDTH))
        table[:, MOTOR_INERTIA], table[:, MOTOR_DAMPING] = train.inertia, train.damping
        table[:, MOTOR_ELECTRICAL], table[:, MOTOR_RESISTANCE] = train.electrical, train.resistance
        table[:, MOTOR_INDUCTANCE], table[:, MOTOR_TORQUE_CONSTANT] = train.inductance, train.torque_constant
        table[:, MOTOR_SPEED_CONSTANT] = train.speed_constant
        return table

    def currents(self, unknowns: np.ndarray) -> np.ndarray:
        """Return currents (K,) from the unknowns of the integrator; NaN for motors without inductance."""
        current = np.full(len(self.is_inductive), np.nan)
        current[self.is_inductive] = unknowns
        return current

    def state(self, t: float, snapshot: Snapshot, shafts: ShaftKinematics) -> MotorState:
        """Return the state of the motors: L di/dt + R i + k_e u̇ = V and τ = k_t i (2-228 to 2-236)."""
        train, inductive = self.train, self.is_inductive
        given = self._motion.voltages(t, snapshot)
        back_emf = train.steady_voltages(np.zeros(len(inductive)), shafts.speed)
        current = np.where(inductive, snapshot.current, (given - back_emf) / train.resistance)
        rate = np.full(len(inductive), np.nan)
        rate[inductive] = (
            (given - train.steady_voltages(current, shafts.speed))
            / np.where(inductive, train.inductance, 1.0)
        )[inductive]
        torque = np.where(train.electrical, train.torque_constant * current, given)
        taken = np.where(train.electrical, given * current, given * shafts.speed)
        # power lost between supply and shaft where the two constants differ
        lost = (train.speed_constant - train.torque_constant) * shafts.speed
        heat = np.where(train.electrical, (train.resistance * current + lost) * current, 0.0)
        voltage = np.where(train.electrical, given, np.nan)
        return MotorState(torque, voltage, current, rate, float(taken.sum()), float(heat.sum()))

    def scale(self, shafts: ShaftKinematics, inertia: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Return the scale of each current that is an unknown: it causes a unit scaled acceleration.

        `inertia` and `rates` (M,) are the inertia of each coordinate, and the scale of its rate.
        """
        train = self.train
        acceleration = (
            np.abs(shafts.N) * train.torque_constant[:, None] / np.where(inertia > 0, inertia * rates, np.inf)
        )
        most = acceleration.max(axis=1, initial=0.0)
        return np.asarray(1 / np.where(most > 0, most, 1.0))[self.is_inductive]


def interpolate_currents(
    t: np.ndarray, current: np.ndarray, rate: np.ndarray, when: np.ndarray, k: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return currents (n, K) between samples by cubic Hermite interpolation, and an error measure (n,).

    The measure compares the change of the current with the trapezoidal rule of its rates, as a share of
    the largest current. Rates (T, K) are NaN for motors whose current is no smooth function of time. `k`
    (n,) are the indices of the samples before the times `when` (n,).
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
