"""Motors that drive joints through gears, with rotor inertia, friction and electrical circuit."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from kic.description import validation as valid
from kic.description.couplings import coordinate_of
from kic.description.parts import Joint
from kic.description.validation import assign, check_part
from kic.errors import ModelError, invalid_part
from kic.numerics.arrays import reals, strip_complex_step
from kic.numerics.display import Summary

# constants of the electrical circuit, which require a resistance
_CIRCUIT = ("inductance", "torque_constant", "speed_constant")


@dataclass(frozen=True)
class Motor:
    """Motor whose shaft drives joints through rigid gears without backlash.

    With the shaft speed u̇ = Σ ratio φ̇ and the torque τ, the efforts at the joints are
    ratio · (τ − J ü − b u̇ − f sign u̇). A DC motor has τ = k_t i and L i̇ + R i + k_e u̇ = V (2-228 to
    2-236). A motor without `resistance` is an ideal torque source. Only the spin of the rotor about the shaft
    is modelled; its mass and other inertia belong to the body that carries it.

    Rotors and damping are included with ``motors=True`` in `dynamics`, `linearize` and `find_equilibrium`,
    always in `state_space` and `Configuration.motor_demand`, and in `Mechanism.simulate` if voltages are
    given. All other results, such as `joint_forces`, `operational_space` or `prepare`, are those of the
    bodies alone.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    joints : sequence of str
        Joints, distances or angles driven by the shaft. One coordinate of several of a joint is "hip.1".
    ratios : sequence of float, optional
        Angle of the shaft per unit of each joint: a row of [G_q^φ]⁻¹ (2-232). By default 1 for a single
        joint.
    inertia, damping, friction : float
        Inertia J, viscous damping b and dry friction torque f of rotor and gears at the shaft.
    resistance, inductance : float, optional
        Resistance R and inductance L of the armature. Without inductance the current follows the voltage
        immediately.
    torque_constant : float, optional
        Torque per unit of current, k_t.
    speed_constant : float, optional
        Voltage per unit of speed, k_e. In consistent units it equals k_t, the default.

    Examples
    --------
    >>> kic.Motor("M1", ["shoulder"], ratios=[60.0], inertia=2e-4, resistance=1.6, torque_constant=0.25)
    Motor(name='M1', joints=('shoulder',), ratios=(60.0,), inertia=0.0002, ...speed_constant=0.25)
    """

    name: str
    joints: tuple[str, ...]
    _: KW_ONLY
    ratios: tuple[float, ...] | None = None
    inertia: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    resistance: float | None = None
    inductance: float = 0.0
    torque_constant: float | None = None
    speed_constant: float | None = None

    if TYPE_CHECKING:  # for users' type checkers: sequences become tuples

        def __init__(
            self,
            name: str,
            joints: str | Iterable[str],
            *,
            ratios: Iterable[float] | None = None,
            inertia: float = 0.0,
            damping: float = 0.0,
            friction: float = 0.0,
            resistance: float | None = None,
            inductance: float = 0.0,
            torque_constant: float | None = None,
            speed_constant: float | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        mechanical = dict.fromkeys(("inertia", "damping", "friction", "inductance"), valid.nonnegative)
        electrical = dict.fromkeys(("resistance", "torque_constant", "speed_constant"), valid.number)
        label = check_part(self, "motor", **mechanical, **electrical)
        joints = valid.joint_names(label, self.joints, 1)
        assign(self, joints=joints)
        given = reals((1.0,) if self.ratios is None and len(joints) == 1 else self.ratios)
        if given is None or given.shape != (len(joints),) or not given.real.all():
            rule = (
                f"must be {len(joints)} finite numbers other than zero, the angle of the shaft per unit of "
            )
            raise invalid_part(label, "ratios", f"{rule}each joint", self.ratios)
        assign(self, ratios=tuple(valid.check_size(label, "ratios", given).tolist()))
        self._check_circuit(label)

    def _check_circuit(self, label: str) -> None:
        """Check that the circuit is complete or absent."""
        if self.resistance is None:
            given = [key for key in _CIRCUIT if getattr(self, key)]
            if given:
                raise ModelError(
                    f"{label} has `{given[0]}` but no `resistance`. Give that of its armature, or leave the "
                    "circuit out: the motor is then an ideal torque source.",
                    key="resistance",
                )
            return
        if not self.resistance.real > 0:
            raise invalid_part(label, "resistance", "must be positive", self.resistance)
        if not self.torque_constant:
            raise ModelError(
                f"{label} has a `resistance` but no `torque_constant`. Give the torque per unit of current.",
                key="torque_constant",
            )
        if self.speed_constant is None:
            assign(self, speed_constant=self.torque_constant)

    @property
    def electrical(self) -> bool:
        """True for a DC motor, driven by a voltage."""
        return self.resistance is not None


def list_motors(sheet: Summary, motors: Iterable[Motor]) -> None:
    """Add a table of motors to a summary, if there are any."""
    lines = {}
    for motor in motors:
        gears = " + ".join(
            f"{strip_complex_step(r):.6g} {j}" for j, r in zip(motor.joints, motor.ratios or (), strict=True)
        )
        lines[motor.name] = [gears, "voltage" if motor.electrical else "torque"]
    if lines:
        caption = "motors (rotors and damping are included with motors=True)"
        sheet.texts(caption, list(lines), ["turn of the shaft", "input"], list(lines.values()))


def driven(
    motor: Motor, owner: str, joints: Mapping[str, Joint], distances: Container[str] = ()
) -> tuple[str, ...]:
    """Return the coordinates driven by the shaft of a motor, among joints, variable `distances` and angles.

    `owner` is the name of the mechanism. Raise `ModelError` for unknown joints or coordinates.
    """
    label = f"Motor '{motor.name}'"
    names = tuple(
        name if name in distances else coordinate_of(label, owner, name, joints)[1] for name in motor.joints
    )
    valid.check_distinct(label, names, motor.joints)
    return names
