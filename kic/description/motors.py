"""Motors: what drives joints through a train of gears, with its rotor, friction and electrical circuit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kic.description.couplings import coordinate_of
from kic.description.parts import Joint
from kic.description.validation import STRICT, assign, check_name, check_size, listed, number
from kic.display import Summary
from kic.errors import ModelError, short_repr
from kic.numerics.arrays import reals, strip_complex_step

# numbers of the electrical circuit, which belong together
_CIRCUIT = ("inductance", "torque_constant", "speed_constant")


@dataclass(frozen=True)
class Motor:
    """A motor: torque on a shaft that turns with joints, through gears that are stiff and without play.

    With the shaft's angle u̇ = Σ ratio φ̇ and a torque τ, the joints feel ratio · (τ − J ü − b u̇ − f sign u̇).
    Of a DC motor τ = k_t i and L i̇ + R i + k_e u̇ = V (eqs 2-228 to 2-236); a motor without `resistance` is
    a plain source of torque. The rotor counts with its spin about the shaft alone; its mass and the rest of
    its inertia belong to the body that carries it. Rotors and damping count where ``motors=True`` is asked,
    in `dynamics`, `linearize` and `find_equilibrium`, in `state_space` and `drive`, and in `simulate` where
    voltages are given; every other answer, such as `joint_forces`, `operational_space` or `prepare`, is of
    the bodies alone.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    joints : sequence of str
        The joints that turn with the shaft; one freedom of a joint with several is written "hip.1".
    ratios : sequence of float, optional
        Angle of the shaft for each unit of each joint: a row of [G_q^φ]⁻¹ (eq 2-232). A single joint that is
        driven directly has the ratio 1, and needs none.
    inertia, damping, friction : float
        Of rotor and train at the shaft: inertia J, viscous damping b, dry friction torque f.
    resistance, inductance : float, optional
        Of the armature: R and L. Without inductance the current follows the voltage at once.
    torque_constant : float, optional
        Torque for each unit of current, k_t.
    speed_constant : float, optional
        Voltage for each unit of speed, k_e; in consistent units equal to k_t, which is taken if left out.

    Raises
    ------
    ModelError
        For numbers that make no sense; by the mechanism, for joints that are not there.

    Examples
    --------
    >>> import kic
    >>> kic.Motor("M1", ["shoulder"], ratios=[60.0], inertia=2e-4, resistance=1.6, torque_constant=0.25)
    Motor(name='M1', joints=('shoulder',), ratios=(60.0,), inertia=0.0002, ...speed_constant=0.25)
    """

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    joints: tuple[str, ...]
    """The joints that turn with the shaft; one freedom of a joint with several is written "hip.1"."""
    ratios: tuple[float, ...] | None = None
    """Angle of the shaft for each unit of each joint; 1 for a single joint that is driven directly."""
    inertia: float = 0.0
    """Inertia of rotor and train about the shaft."""
    damping: float = 0.0
    """Viscous damping at the shaft."""
    friction: float = 0.0
    """Dry friction torque at the shaft, against its motion."""
    resistance: float | None = None
    """Resistance of the armature of a DC motor; without it the motor is a plain source of torque."""
    inductance: float = 0.0
    """Inductance of the armature; 0 where the current follows the voltage at once."""
    torque_constant: float | None = None
    """Torque for each unit of current."""
    speed_constant: float | None = None
    """Voltage for each unit of speed; in consistent units the torque constant, which is taken if left out."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("motor", self.name))
        who = f"Motor '{self.name}'"
        joints = listed(who, "joints", self.joints, "joint names")
        if not joints or not all(isinstance(name, str) for name in joints):
            raise ModelError(
                f"{who}: expected `joints` to name one joint or more, got {short_repr(self.joints)}.",
                key="joints",
            )
        if len(set(joints)) < len(joints):
            raise ModelError(f"{who}: `joints` names a joint twice, got {short_repr(joints)}.", key="joints")
        assign(self, joints=tuple(map(str, joints)))
        given = reals((1.0,) if self.ratios is None and len(joints) == 1 else self.ratios)
        if given is None or given.shape != (len(joints),) or not given.real.all():
            raise ModelError(
                f"{who}: expected `ratios` to be {len(joints)} finite numbers other than zero, the angle of "
                f"the shaft for each unit of each joint, got {short_repr(self.ratios)}.",
                key="ratios",
            )
        assign(self, ratios=tuple(check_size(who, "ratios", given).tolist()))
        for key in ("inertia", "damping", "friction", "inductance"):
            assign(self, **{key: number(who, key, getattr(self, key), 0.0)})
        for key in ("resistance", "torque_constant", "speed_constant"):
            if getattr(self, key) is not None:
                assign(self, **{key: number(who, key, getattr(self, key))})
        self._check_circuit(who)

    def _check_circuit(self, who: str) -> None:
        """All numbers of a circuit, or none."""
        if self.resistance is None:
            given = [key for key in _CIRCUIT if getattr(self, key)]
            if given:
                raise ModelError(
                    f"{who} has `{given[0]}` but no `resistance`. Give that of its armature, or leave the "
                    "circuit out: the motor is then a plain source of torque.",
                    key="resistance",
                )
            return
        if not self.resistance.real > 0:
            raise ModelError(
                f"{who}: expected `resistance` to be positive, got {short_repr(self.resistance)}.",
                key="resistance",
            )
        if not self.torque_constant:
            raise ModelError(
                f"{who} has a `resistance` but no `torque_constant`: say what torque a current makes.",
                key="torque_constant",
            )
        if self.speed_constant is None:
            assign(self, speed_constant=self.torque_constant)

    @property
    def electrical(self) -> bool:
        """Whether it is a DC motor, driven by a voltage."""
        return self.resistance is not None


def list_motors(sheet: Summary, motors: Iterable[Motor]) -> None:
    """Write motors on a sheet, if there are any."""
    lines = {}
    for motor in motors:
        gears = " + ".join(
            f"{strip_complex_step(r):.6g} {j}" for j, r in zip(motor.joints, motor.ratios or (), strict=True)
        )
        lines[motor.name] = [gears, "voltage" if motor.electrical else "torque"]
    if lines:
        caption = "motors (rotors and damping count where motors=True asks for them)"
        sheet.texts(caption, list(lines), ["turn of the shaft", "input"], list(lines.values()))


def driven(motor: Motor, owner: str, joints: Mapping[str, Joint]) -> tuple[str, ...]:
    """Coordinates of the joints that turn with a motor's shaft.

    Parameters
    ----------
    motor : Motor
        The motor.
    owner : str
        Name of the mechanism.
    joints : mapping of str to Joint
        All its joints.

    Raises
    ------
    ModelError
        For joints that are not there or have no such coordinate.
    """
    who = f"Motor '{motor.name}'"
    names = tuple(coordinate_of(who, owner, name, joints)[1] for name in motor.joints)
    if len(set(names)) < len(names):
        raise ModelError(
            f"{who}: `joints` names a joint twice, got {short_repr(motor.joints)}.", key="joints"
        )
    return names
