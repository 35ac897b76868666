"""Drive train: motors with rotors, gears and circuits, and the demands of a motion (2-228 to 2-240)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kic.description.description import MechanismDescription
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, SingularError
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.products import contract, evaluate_form
from kic.kinematics.scaling import composed
from kic.numerics.display import Batched, Summary

# largest effort without a motor, relative to the largest effort of the motion
UNDRIVEN_RTOL = 1e-9
# smallest diagonal entry of R in a QR of unit columns, below which motors count as dependent
DEPENDENCE_ATOL = 1e-12


class DriveTrain:
    """Motors of a mechanism, with gears between shafts and joints: u̇ = N φ̇, N = [G_q^φ]⁻¹ (2-232).

    Attributes
    ----------
    names : tuple of str
        Names of the K motors.
    joints : tuple of str
        Names of the J coordinates driven by the shafts.
    ratios : (K, J) ndarray
        Angle of each shaft per unit of each coordinate.
    inertia, damping, friction : (K,) ndarray
        Rotor inertia, viscous damping and dry friction at the shafts.
    electrical : (K,) bool
        True for DC motors.
    resistance, inductance, torque_constant, speed_constant : (K,) ndarray
        Constants of DC motors; NaN, 0, 1 and 0 for ideal torque sources.
    """

    def __init__(self, description: MechanismDescription, scalar: np.dtype) -> None:
        motors = description.motors
        if not motors:
            raise InputError(
                f"'{description.name}' has no motors. Add motors=[kic.Motor(…)], or [[motors]] in its file.",
                motors=(),
            )
        self.names = tuple(motor.name for motor in motors)
        self.joints = tuple(dict.fromkeys(c for names in description._shafts.values() for c in names))
        self.ratios = np.zeros((len(motors), len(self.joints)), scalar)
        for k, motor in enumerate(motors):
            for name, ratio in zip(description._shafts[motor.name], motor.ratios or (), strict=True):
                self.ratios[k, self.joints.index(name)] = ratio

        def numbers(key: str, default: float) -> np.ndarray:
            values = [getattr(motor, key) for motor in motors]
            return np.array([default if x is None else x for x in values], scalar)

        self.inertia, self.damping = numbers("inertia", 0.0), numbers("damping", 0.0)
        self.friction = numbers("friction", 0.0)
        self.electrical = np.array([motor.electrical for motor in motors])
        self.resistance, self.inductance = numbers("resistance", np.nan), numbers("inductance", 0.0)
        self.torque_constant = numbers("torque_constant", 1.0)
        self.speed_constant = numbers("speed_constant", 0.0)

    def shafts(self, joints: Coefficients) -> Coefficients:
        """Return the coefficients of the shafts from those of their joints in any coordinates."""
        jet = [
            np.einsum(f"kj,...j{axes}->...k{axes}", self.ratios, T)
            for axes, T in zip(("n", "mn", "lmn"), joints.tensors, strict=False)
        ]
        G, H, D = (*jet, None, None)[:3]
        scaling = composed(None, self.ratios, joints.scaling, joints.G)
        return Coefficients(self.names, joints.columns, G, H, D, quasi=joints.quasi, scaling=scaling)

    def require_no_friction(self, mechanism: str) -> None:
        """Raise an error if a motor has dry friction, which I*, P* and damping cannot include."""
        names = [name for name, f in zip(self.names, self.friction, strict=True) if f]
        if names:
            raise InputError(
                f"Motors of '{mechanism}' must not have dry friction, got {', '.join(names)}: a model in I*, "
                "P* and B cannot include it. Use motor_demand() for torques with friction, or remove "
                "`friction`.",
                motors=tuple(names),
            )

    def dynamics(self, shafts: Coefficients) -> Dynamics:
        """Return I*, P* and damping of the rotors in the coordinates (columns) of the shafts (2-237).

        For shafts u̇ = N q̇, I* = Nᵀ J N, P*_kab = N_ik J_i H^u_iab, and the damping is Nᵀ b N.
        """
        N, H = shafts.G, shafts.needed("H", 2)
        P = contract(np.swapaxes(N, -1, -2) * self.inertia, H, 1, 2)
        damping = (np.swapaxes(N, -1, -2) * self.damping) @ N
        holonomic = shafts.quasi.isdisjoint(shafts.columns)
        return Dynamics(shafts.columns, self.reflected(N), P, damping=damping, holonomic=holonomic)

    def reflected(self, N: np.ndarray) -> np.ndarray:
        """Return the reflected rotor inertia (..., M, M), Nᵀ J N, for shafts u̇ = N q̇ (2-237)."""
        return (np.swapaxes(N, -1, -2) * self.inertia) @ N

    def rotor_torques(self, speed: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        """Return the torques (..., K) of rotor inertia and damping, J ü + b u̇ (2-236)."""
        return self.inertia * acceleration + self.damping * speed

    def steady_voltages(self, current: np.ndarray, speed: np.ndarray) -> np.ndarray:
        """Return the voltages (..., K) at steady current, R i + k_e u̇ (2-240); NaN for torque sources."""
        return self.resistance * current + self.speed_constant * speed

    def magnetic_energy(self, current: np.ndarray) -> np.ndarray:
        """Return the energy (...) in the inductances, ½ L i²."""
        return np.asarray((self.inductance * np.where(self.is_inductive, current, 0.0) ** 2).sum(axis=-1) / 2)

    @property
    def is_inductive(self) -> np.ndarray:
        """Mask (K,) of motors with inductance, whose currents lag their voltages."""
        return self.inductance != 0

    def stiffness(self, shafts: Coefficients, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parts (..., M, M) of ∂T/∂q of rotors due to inertia and to damping.

        T_k = g_k (J ü + b u̇ + f sign u̇) has the form of the efforts of a body in (2-216). Dry friction does
        not change with small deviations of a moving shaft.
        """
        G, H, D = shafts.G, shafts.needed("H", 2), shafts.needed("D", 3)
        velocity_change = evaluate_form(H, (None, v))
        acceleration_change = evaluate_form(H, (None, a)) + evaluate_form(D, (None, v, v))
        g = np.swapaxes(G, -1, -2)
        drag = self.damping * shafts.velocity(v) + self.friction_torques(shafts, v)
        parts = []
        for weight, torque, change in (
            (self.inertia, self.inertia * shafts.acceleration(v, a), acceleration_change),
            (self.damping, drag, velocity_change),
        ):
            parts.append(np.einsum("...plk,...p->...kl", H, torque) + (g * weight) @ change)
        return parts[0], parts[1]

    def friction_torques(self, shafts: Coefficients, v: np.ndarray) -> np.ndarray:
        """Return the torques (..., K) of dry friction, zero for shafts at rest."""
        return self.friction * np.sign(shafts.velocity(v).real)

    def torques(self, shafts: Coefficients, effort: np.ndarray, what: str = "effort") -> np.ndarray:
        """Return the torques (..., K) at the output of the shafts for efforts (..., M), Nᵀ τ = T (2-231).

        Raise `InputError` for more motors than coordinates, or efforts that motors cannot produce. Raise
        `SingularError` if the speeds of motors are linearly dependent.
        """
        K, M = shafts.G.shape[-2:]
        if K > M:
            message = (
                f"{K} motors drive {M} degrees of freedom, and efforts do not determine their torques. Leave "
                "some motors out, or use the efforts alone, dynamics(motors=True).inverse_dynamics()."
            )
            raise InputError(message, motors=K, dof=M)
        N = np.swapaxes(shafts.G, -1, -2)
        batch = np.broadcast_shapes(N.shape[:-2], effort.shape[:-1])
        known = np.isfinite(N).all(axis=(-1, -2))
        safe = np.where(known[..., None, None], N, np.eye(M, K))
        # scale each column by its own size, because units can differ
        size = np.sqrt((safe.real**2).sum(axis=-2, keepdims=True))
        Q, R = np.linalg.qr(safe.real / np.where(size > 0, size, 1.0))
        least = np.abs(np.diagonal(R, axis1=-2, axis2=-1)).min(axis=-1, initial=1.0)
        if (least < DEPENDENCE_ATOL).any():
            message = (
                f"The speeds of motors {', '.join(self.names)} are linearly dependent (relative pivot "
                f"{least.min():.1e}): their torques cannot be distinguished. Choose another configuration."
            )
            raise SingularError(message, motors=self.names, share=float(least.min()))
        effort = np.broadcast_to(effort, (*batch, M))
        # as many equations as motors; this keeps complex steps
        Q = np.swapaxes(Q, -1, -2)
        torque = np.linalg.solve(Q @ safe, Q @ effort[..., None])
        left = effort - (N @ torque)[..., 0]
        top = np.abs(effort).max(axis=-1, initial=0.0)
        worst = np.nan_to_num(np.abs(left))
        if (worst.max(axis=-1, initial=0.0) > UNDRIVEN_RTOL * np.nan_to_num(top)).any():
            at = np.unravel_index(np.argmax(worst), worst.shape)
            message = (
                f"The motors {', '.join(self.names)} cannot produce this motion: {what} {left[at].real:.4g} "
                f"at {shafts.columns[int(at[-1])]} remains unbalanced. Give a motion that they can produce."
            )
            raise InputError(message, name=shafts.columns[int(at[-1])], motors=self.names, residual=left)
        return np.where(known[..., None], torque[..., 0], np.nan)

    def drive(
        self,
        shafts: Coefficients,
        effort: np.ndarray,
        effort_rate: np.ndarray | None,
        v: np.ndarray,
        a: np.ndarray,
        j: np.ndarray | None,
    ) -> MotorDemand:
        """Return the demand of a motion on the motors, from efforts without those of the rotors.

        Motors with inductance also need the rates of the efforts and the jerk (2-239).
        """
        speed, acceleration = shafts.velocity(v), shafts.acceleration(v, a)
        output = self.torques(shafts, effort)
        torque = output + self.rotor_torques(speed, acceleration) + self.friction_torques(shafts, v)
        current = np.where(self.electrical, torque / self.torque_constant, np.nan)
        voltage = self.steady_voltages(current, speed)
        rate = np.full_like(current, np.nan)
        if effort_rate is not None and j is not None:
            # d(Nᵀ τ)/dt = Ṅᵀ τ + Nᵀ τ̇, where Ṅ ≠ 0 for joints that depend on the coordinates
            N_rate = evaluate_form(shafts.needed("H", 2), (v, None))
            of_shafts = np.einsum("...pn,...p->...n", N_rate, output)
            torque_rate = self.torques(shafts, effort_rate - of_shafts, "a rate of effort")
            torque_rate = torque_rate + self.rotor_torques(acceleration, shafts.jerk(v, a, j))
            rate = np.where(self.electrical, torque_rate / self.torque_constant, np.nan)
            voltage = voltage + np.where(self.is_inductive, self.inductance * rate, 0.0)
        return MotorDemand(self.names, speed, torque, current, rate, voltage)


class MotorDemand(Batched):
    """Speeds, torques, currents and voltages of the motors of a mechanism in a motion.

    Attributes
    ----------
    motors : tuple of str
        Names of the K motors.
    speed : (..., K) ndarray
        Speeds of the shafts, u̇ = N q̇.
    torque : (..., K) ndarray
        Motor torques τ, which accelerate the rotors, overcome damping and friction, and drive the joints
        (2-236). Dry friction opposes the speed; for a shaft at rest it is taken as zero.
    current : (..., K) ndarray
        Currents i = τ/k_t (2-238); NaN for ideal torque sources.
    current_rate : (..., K) ndarray
        Rates of the currents (2-239); NaN if no jerk was given.
    voltage : (..., K) ndarray
        Voltages V = L di/dt + R i + k_e u̇ (2-240); NaN for ideal torque sources.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> circuit = {"resistance": 2.0, "torque_constant": 0.1}
    >>> pair = [kic.Motor(f"M{j}", [j], ratios=[50.0], **circuit) for j in arm.coordinates]
    >>> drive = arm.add(*pair).at([0.0, 0.0]).motor_demand([0.0, 0.0], [0.0, 0.0])
    >>> drive.current.round(3), drive.voltage.round(3)
    (array([3.924, 0.981]), array([7.848, 1.962]))
    """

    _one_line = ("motors", "batch")
    _per_member = ("torque", 1)

    def __init__(
        self,
        motors: Iterable[str],
        speed: np.ndarray,
        torque: np.ndarray,
        current: np.ndarray,
        current_rate: np.ndarray,
        voltage: np.ndarray,
    ) -> None:
        self.motors = tuple(motors)
        self.speed, self.torque, self.current, self.current_rate, self.voltage = np.broadcast_arrays(
            speed, torque, current, current_rate, voltage
        )

    @property
    def power(self) -> np.ndarray:
        """Power (..., K) of each motor: V i of a DC motor, τ u̇ of an ideal torque source."""
        electrical = np.isfinite(self.current)
        return np.where(electrical, self.voltage * self.current, self.torque * self.speed)

    def summary(self) -> Summary:
        """Return a labelled table of the motors."""
        sheet = Summary(f"motors {', '.join(self.motors)}")
        index = sheet.member(self.batch)
        if index is not None:
            parts = (self.speed, self.torque, self.current, self.voltage, self.power)
            table = np.stack([part[index] for part in parts], axis=-1)
            sheet.matrix(
                "in this motion", self.motors, ["speed", "torque", "current", "voltage", "power"], table
            )
        return sheet
