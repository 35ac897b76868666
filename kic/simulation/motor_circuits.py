"""Motors of a simulation: their shafts in the integrated coordinates, and their circuits (2-228 to 2-236)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kic.dynamics.drive_train import DriveTrain
from kic.kernels import layout as lay


def matvec(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the products (..., n) of matrices (..., n, m) and vectors (..., m)."""
    return np.asarray((A @ x[..., None])[..., 0])


class ShaftKinematics(NamedTuple):
    """Motion of the motor shafts at one time or many."""

    N: np.ndarray  # (..., K, M): Jacobian of the shaft angles, u̇ = N q̇
    # (..., K): u̇, and ü at q̈ = 0
    speed: np.ndarray
    bias: np.ndarray


class MotorState(NamedTuple):
    """Electrical state of the motors at one time or many; NaN for quantities that a torque source lacks."""

    # (..., K): as in `MotorDemand`; the rate is NaN for motors without inductance
    torque: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    current_rate: np.ndarray
    # (...): power supplied, V i or τ u̇, and power lost, R i² and (k_e − k_t) i u̇
    power: Any
    heat: Any


class MotorEquations:
    """Motors under voltages, in one set of coordinates.

    `rows` are the joints of the motors; their coefficients to second order are needed. It is empty if the
    joints are coordinates: then the Jacobian `fixed` (K, M) of the shafts is constant. The mask
    `is_inductive` (K,) is True for motors with inductance, whose currents are unknowns.
    """

    def __init__(self, train: DriveTrain, names: tuple[str, ...]) -> None:
        self.train, self.is_inductive = train, train.is_inductive
        self.rows = () if set(train.joints) <= set(names) else train.joints
        self.fixed = np.zeros((len(train.names), len(names)))
        if not self.rows:
            self.fixed[:, [names.index(joint) for joint in train.joints]] = train.ratios

    def shafts(self, r: Any, v: np.ndarray) -> ShaftKinematics:
        """Return the motion of the shafts for rates (..., M), from results in the coordinates."""
        if not self.rows:
            return ShaftKinematics(self.fixed, matvec(self.fixed, v), np.zeros(len(self.fixed)))
        ratios = self.train.ratios
        N = ratios @ np.concatenate([r[name].G for name in self.rows], axis=-2)
        H = np.concatenate([r[name].H for name in self.rows], axis=-3)
        return ShaftKinematics(N, matvec(N, v), matvec(ratios, matvec(matvec(H, v[..., None, :]), v)))

    @property
    def table(self) -> np.ndarray:
        """Array (K, MOTOR_WIDTH) of the constants of the motors, for kernels."""
        train, table = self.train, np.empty((len(self.fixed), lay.MOTOR_WIDTH))
        table[:, lay.MOTOR_INERTIA], table[:, lay.MOTOR_DAMPING] = train.inertia, train.damping
        table[:, lay.MOTOR_ELECTRICAL], table[:, lay.MOTOR_RESISTANCE] = train.electrical, train.resistance
        table[:, lay.MOTOR_INDUCTANCE], table[:, lay.MOTOR_TORQUE_CONSTANT] = (
            train.inductance,
            train.torque_constant,
        )
        table[:, lay.MOTOR_SPEED_CONSTANT] = train.speed_constant
        return table

    def currents(self, unknowns: np.ndarray) -> np.ndarray:
        """Return currents (K,) from the unknowns of the integrator; NaN for motors without inductance."""
        current = np.full(len(self.is_inductive), np.nan)
        current[self.is_inductive] = unknowns
        return current

    def state(self, given: np.ndarray, current: np.ndarray, shafts: ShaftKinematics) -> MotorState:
        """Return the state of the motors: L di/dt + R i + k_e u̇ = V and τ = k_t i (2-228 to 2-236).

        Voltages and currents (..., K) are given; only the currents of motors with inductance are used.
        """
        train, inductive = self.train, self.is_inductive
        back_emf = train.steady_voltages(np.zeros(len(inductive)), shafts.speed)
        current = np.where(inductive, current, (given - back_emf) / train.resistance)
        net = given - train.steady_voltages(current, shafts.speed)
        rate = np.where(inductive, net / np.where(inductive, train.inductance, 1.0), np.nan)
        torque = np.where(train.electrical, train.torque_constant * current, given)
        taken = np.where(train.electrical, given * current, given * shafts.speed)
        # power lost between supply and shaft where the two constants differ
        lost = (train.speed_constant - train.torque_constant) * shafts.speed
        heat = np.where(train.electrical, (train.resistance * current + lost) * current, 0.0)
        voltage = np.where(train.electrical, given, np.nan)
        return MotorState(torque, voltage, current, rate, taken.sum(axis=-1), heat.sum(axis=-1))

    def scale(self, shafts: ShaftKinematics, inertia: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Return the scale of each unknown current: the current that causes a unit scaled acceleration.

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

    The measure compares the change of the current with the trapezoidal rule of its rates, as a share of the
    largest current. Rates (T, K) are NaN for motors whose current is not a smooth function of time. `k` (n,)
    are the indices of the samples before the times `when` (n,).
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
