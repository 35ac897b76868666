"""Actuators: rotors and circuits of motors, and what they take for a motion (2-228 to 2-240, corrected)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kic.description.description import MechanismDescription
from kic.display import Summary, member
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, SingularError
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.scaling import composed

# what motors can not do, beside all that is to be done, may be this much
_MISSED = 1e-9


class DriveTrain:
    """All motors of a drawing with the gears between shafts and joints, u̇ = N φ̇ with N = [G_q^φ]⁻¹ (2-232).

    Attributes
    ----------
    names : tuple of str
        Names of the K motors.
    joints : tuple of str
        Names of the J coordinates that turn with some shaft.
    ratios : (K, J)
        Angle of each shaft for each unit of each joint.
    inertia, damping, friction : (K,)
        At the shafts.
    electrical : (K,) bool
        Which are DC motors.
    resistance, inductance, torque_constant, speed_constant : (K,)
        Of those; of plain sources of torque NaN, 0, 1 and 0.
    """

    def __init__(self, drawing: MechanismDescription, scalar: np.dtype) -> None:
        motors = drawing.motors
        if not motors:
            raise InputError(
                f"'{drawing.name}' has no motors. Give it some: motors=[kic.Motor(…)], or [[motors]] in its "
                "file."
            )
        self.names = tuple(motor.name for motor in motors)
        self.joints = tuple(dict.fromkeys(c for names in drawing.shafts.values() for c in names))
        self.ratios = np.zeros((len(motors), len(self.joints)), scalar)
        for k, motor in enumerate(motors):
            for name, ratio in zip(drawing.shafts[motor.name], motor.ratios or (), strict=True):
                self.ratios[k, self.joints.index(name)] = ratio

        def numbers(key: str, plain: float) -> np.ndarray:
            found = [getattr(motor, key) for motor in motors]
            return np.array([plain if x is None else x for x in found], scalar)

        self.inertia, self.damping = numbers("inertia", 0.0), numbers("damping", 0.0)
        self.friction = numbers("friction", 0.0)
        self.electrical = np.array([motor.electrical for motor in motors])
        self.resistance, self.inductance = numbers("resistance", np.nan), numbers("inductance", 0.0)
        self.torque_constant = numbers("torque_constant", 1.0)
        self.speed_constant = numbers("speed_constant", 0.0)

    def shafts(self, joints: Coefficients) -> Coefficients:
        """Shafts as rows, from the coefficients of their joints in any coordinates."""
        jet = [
            np.einsum(f"kj,...j{axes}->...k{axes}", self.ratios, T)
            for axes, T in zip(("n", "mn", "lmn"), joints.tensors, strict=False)
        ]
        G, H, D = (*jet, None, None)[:3]
        scaling = composed(None, self.ratios, joints.scaling, joints.G)
        return Coefficients(self.names, joints.columns, G, H, D, quasi=joints.quasi, scaling=scaling)

    def dynamics(self, shafts: Coefficients) -> Dynamics:
        """I*, P* and damping of rotors, in the coordinates of their shafts' rows (2-237).

        With N of the shafts, I* = Nᵀ J N and P*_kab = N_ik J_i H^u_iab; damping Nᵀ b N.
        """
        N, H = shafts.G, shafts.needed("H", 2)
        P = np.einsum("...ik,i,...iab->...kab", N, self.inertia, H)
        damping = (np.swapaxes(N, -1, -2) * self.damping) @ N
        holonomic = shafts.quasi.isdisjoint(shafts.columns)
        return Dynamics(shafts.columns, self.reflected(N), P, damping=damping, holonomic=holonomic)

    def reflected(self, N: np.ndarray) -> np.ndarray:
        """Inertia (..., M, M) of the rotors as coordinates feel it, Nᵀ J N, for shafts u̇ = N q̇ (2-237)."""
        return (np.swapaxes(N, -1, -2) * self.inertia) @ N

    def inner(self, speed: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        """Torques (..., K) that rotors and damping take of those of the motors, J ü + b u̇ (2-236)."""
        return self.inertia * acceleration + self.damping * speed

    def drop(self, current: np.ndarray, speed: np.ndarray) -> np.ndarray:
        """Voltages (..., K) of steady currents, R i + k_e u̇ (2-240); NaN of plain sources of torque."""
        return self.resistance * current + self.speed_constant * speed

    def stored(self, current: np.ndarray) -> np.ndarray:
        """Energy (...) in the inductances, ½ L i²."""
        return np.asarray((self.inductance * np.where(self.slow, current, 0.0) ** 2).sum(axis=-1) / 2)

    @property
    def slow(self) -> np.ndarray:
        """Motors (K,) bool with inductance, whose currents take time to follow their voltages."""
        return self.inductance != 0

    def stiffness(self, shafts: Coefficients, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂T/∂q of rotors, by inertia and by damping, (..., M, M) each.

        T_k = g_k (J ü + b u̇ + f sign u̇): a row like any of a body, so that (2-216) holds for it. The last,
        dry friction, does not change with small deviations of a shaft that turns.
        """
        G, H, D = shafts.G, shafts.needed("H", 2), shafts.needed("D", 3)
        bend = np.einsum("...pln,...n->...pl", H, v)
        change = np.einsum("...pln,...n->...pl", H, a) + np.einsum("...plmn,...m,...n->...pl", D, v, v)
        g = np.swapaxes(G, -1, -2)
        drag = self.damping * shafts.velocity(v) + self.dry(shafts, v)
        parts = []
        for weight, now, then in (
            (self.inertia, self.inertia * shafts.acceleration(v, a), change),
            (self.damping, drag, bend),
        ):
            parts.append(np.einsum("...plk,...p->...kl", H, now) + (g * weight) @ then)
        return parts[0], parts[1]

    def dry(self, shafts: Coefficients, v: np.ndarray) -> np.ndarray:
        """Torques (..., K) that dry friction takes; of a shaft that stands still none."""
        return self.friction * np.sign(shafts.velocity(v).real)

    def torques(self, shafts: Coefficients, effort: np.ndarray, what: str = "effort") -> np.ndarray:
        """Torques (..., K) on the joints' side of the shafts that make efforts (..., M): Nᵀ τ = T (2-231).

        Raises
        ------
        InputError
            For more motors than coordinates, or efforts that they can not make.
        SingularError
            Where motors depend on one another.
        """
        K, M = shafts.G.shape[-2:]
        if K > M:
            raise InputError(
                f"{K} motors drive {M} freedoms, so that the efforts leave their torques open. Leave "
                "the others out of the drawing, or ask for efforts alone, dynamics(motors=True).inverse_dynamics().",
                motors=K,
                freedoms=M,
            )
        N = np.swapaxes(shafts.G, -1, -2)
        batch = np.broadcast_shapes(N.shape[:-2], effort.shape[:-1])
        known = np.isfinite(N).all(axis=(-1, -2))
        safe = np.where(known[..., None, None], N, np.eye(M, K))
        # rows and columns of any units: each column of its own size first
        size = np.sqrt((safe.real**2).sum(axis=-2, keepdims=True))
        Q, R = np.linalg.qr(safe.real / np.where(size > 0, size, 1.0))
        least = np.abs(np.diagonal(R, axis1=-2, axis2=-1)).min(axis=-1, initial=1.0)
        if (least < 1e-12).any():
            raise SingularError(
                f"The motors {', '.join(self.names)} depend on one another here (share {least.min():.1e}): "
                "their torques can not be told apart. Move away from the posture.",
                share=float(least.min()),
            )
        effort = np.broadcast_to(effort, (*batch, M))
        # as many equations as motors, by which complex steps pass
        Q = np.swapaxes(Q, -1, -2)
        found = np.linalg.solve(Q @ safe, Q @ effort[..., None])
        left = effort - (N @ found)[..., 0]
        top = np.abs(effort).max(axis=-1, initial=0.0)
        worst = np.nan_to_num(np.abs(left))
        if (worst.max(axis=-1, initial=0.0) > _MISSED * np.nan_to_num(top)).any():
            at = np.unravel_index(np.argmax(worst), worst.shape)
            raise InputError(
                f"The motors {', '.join(self.names)} can not make this motion: {what} {left[at].real:.4g} is "
                f"left at {shafts.columns[int(at[-1])]}, which no motor drives. Give a motion that needs "
                "none there.",
                left=left,
            )
        return np.where(known[..., None], found[..., 0], np.nan)

    def drive(
        self,
        shafts: Coefficients,
        effort: np.ndarray,
        effort_rate: np.ndarray | None,
        v: np.ndarray,
        a: np.ndarray,
        j: np.ndarray | None,
    ) -> MotorDemand:
        """What the motors do for a motion that needs these efforts, without those of the rotors.

        Rates of efforts and the jerk are needed where there is inductance (2-239).
        """
        speed, acceleration = shafts.velocity(v), shafts.acceleration(v, a)
        outside = self.torques(shafts, effort)
        torque = outside + self.inner(speed, acceleration) + self.dry(shafts, v)
        current = np.where(self.electrical, torque / self.torque_constant, np.nan)
        voltage = self.drop(current, speed)
        rate = np.full_like(current, np.nan)
        if effort_rate is not None and j is not None:
            # d(Nᵀ τ)/dt = Ṅᵀ τ + Nᵀ τ̇, where gears drive joints that depend on the coordinates
            turned = np.einsum("...pmn,...m,...p->...n", shafts.needed("H", 2), v, outside)
            torque_rate = self.torques(shafts, effort_rate - turned, "a rate of effort")
            torque_rate = torque_rate + self.inner(acceleration, shafts.jerk(v, a, j))
            rate = np.where(self.electrical, torque_rate / self.torque_constant, np.nan)
            voltage = voltage + np.where(self.slow, self.inductance * rate, 0.0)
        return MotorDemand(self.names, speed, torque, current, rate, voltage)


class MotorDemand:
    """What the motors of a mechanism do in a motion: speeds, torques, currents, voltages.

    Attributes
    ----------
    motors : tuple of str
        Names of the K motors.
    speed : (..., K)
        Of the shafts, u̇ = N q̇.
    torque : (..., K)
        τ of each motor, which moves its rotor, overcomes its damping and friction, and drives the joints
        (eq 2-236). Dry friction is against the speed; of a shaft that stands still it is taken as none.
    current : (..., K)
        i = τ/k_t (eq 2-238); NaN of plain sources of torque.
    current_rate : (..., K)
        Its rate (eq 2-239); NaN where no jerk was given.
    voltage : (..., K)
        V = L di/dt + R i + k_e u̇ (eq 2-240); NaN of plain sources of torque.

    Examples
    --------
    >>> import kic
    >>> from dataclasses import replace
    >>> arm = kic.load("horn-two-link")
    >>> circuit = {"resistance": 2.0, "torque_constant": 0.1}
    >>> pair = [kic.Motor(f"M{j}", [j], [50.0], **circuit) for j in arm.coordinate_names]
    >>> drive = replace(arm, motors=pair).at([0.0, 0.0]).drive([0.0, 0.0], [0.0, 0.0])
    >>> drive.current.round(3), drive.voltage.round(3)
    (array([3.924, 0.981]), array([7.848, 1.962]))
    """

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
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.torque.shape[:-1]

    @property
    def power(self) -> np.ndarray:
        """Power (..., K) that each motor takes: V i of a DC motor, τ u̇ of a plain source of torque."""
        electrical = np.isfinite(self.current)
        return np.where(electrical, self.voltage * self.current, self.torque * self.speed)

    def summary(self) -> Summary:
        """Labelled table, to print or to show."""
        sheet = Summary(f"motors {', '.join(self.motors)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is not None:
            parts = (self.speed, self.torque, self.current, self.voltage, self.power)
            table = np.stack([part[index] for part in parts], axis=-1)
            sheet.matrix(
                "in this motion", self.motors, ["speed", "torque", "current", "voltage", "power"], table
            )
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()
