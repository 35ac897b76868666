"""Units of a model: their names, a check that they are consistent, and unit labels of rows and efforts."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose, tau
from typing import TYPE_CHECKING

import numpy as np

from kic.description.validation import assign, part_of, text
from kic.errors import DegreesWarning, ModelError, invalid

if TYPE_CHECKING:
    from kic.description.description import MechanismDescription

# the foot, the pound and standard gravity are exact. Pounds without "f" mean mass to some and weight to
# others, and are therefore not listed
_POUND_FORCE = 0.45359237 * 9.80665
_FEET = {"in": 0.0254, "ft": 0.3048}
SI_VALUES: dict[str, dict[str, float]] = {
    "length": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "dm": 1e-1, "km": 1e3, "um": 1e-6, "µm": 1e-6, "μm": 1e-6}
    | _FEET,
    "mass": {"kg": 1.0, "g": 1e-3, "mg": 1e-6, "t": 1e3, "Mg": 1e3}
    | {"slug": _POUND_FORCE / _FEET["ft"], "lbf s²/ft": _POUND_FORCE / _FEET["ft"]}
    | {"lbf s²/in": _POUND_FORCE / _FEET["in"], "blob": _POUND_FORCE / _FEET["in"]},
    "time": {"s": 1.0, "ms": 1e-3, "min": 60.0},
    "force": {"N": 1.0, "mN": 1e-3, "µN": 1e-6, "uN": 1e-6, "μN": 1e-6, "dyn": 1e-5, "kN": 1e3, "MN": 1e6}
    | {"lbf": _POUND_FORCE},
}
# units of measurements by name: size in SI, and powers of length, mass, time and current
_POWERS = {"length": (1, 0, 0, 0), "mass": (0, 1, 0, 0), "time": (0, 0, 1, 0), "force": (1, 1, -2, 0)}
_MEASURED = {name: (size, _POWERS[key]) for key, sizes in SI_VALUES.items() for name, size in sizes.items()}
_MEASURED |= {
    name: (size, (0, 0, 0, 0))
    for name, size in (("rad", 1.0), ("mrad", 1e-3), ("deg", tau / 360), ("°", tau / 360), ("rev", tau))
}
_MEASURED |= {"rpm": (tau / 60, (0, 0, -1, 0)), "J": (1.0, (2, 1, -2, 0))}
_MEASURED |= {"A": (1.0, (0, 0, 0, 1)), "mA": (1e-3, (0, 0, 0, 1))}
# signs of products and powers, in the form that is read
_PLAIN = str.maketrans(
    {"·": " ", "⋅": " ", "*": " ", "^": "", "¹": "1", "²": "2", "³": "3", "⁻": "-", "−": "-"}
)
# relative difference of unit sizes that counts as equal; typed factors have ten digits
_SIZE_RTOL = 1e-9
# angles of a configuration beyond two turns, and below ten turns in degrees, may be meant in degrees
DEGREES_ANGLE_MIN, DEGREES_ANGLE_MAX = 2 * tau, 3600.0
# last parts of names of rows that are angles or angular velocities
_ANGULAR_ROWS = ("wx", "wy", "wz", "angle", "s", "swing")


@dataclass(frozen=True, kw_only=True)
class Units:
    """Names of the units of a model; angles are always in radians.

    The names are labels: nothing is converted. The units must be consistent, force = mass · length / time².
    This is checked where all four names are known, such as mm, kg, s and N.

    Parameters
    ----------
    length, mass, time, force : str
        Name of the unit.

    Raises
    ------
    ModelError
        If all four units are known and not consistent. The error carries `product`, the value of
        mass · length / time² in the unit of force.

    Examples
    --------
    >>> Units(length="mm", mass="t", time="s", force="N").force
    'N'
    >>> Units(length="in", mass="lb", time="s", force="lbf").mass  # lb: mass or weight, so not checked
    'lb'
    >>> Units(length="mm", mass="kg", time="s", force="N")
    Traceback (most recent call last):
    kic.errors.ModelError: Units: force must be mass · length / time²; kg mm/s² is 0.001 N. Set force = ...
    """

    length: str = "m"
    mass: str = "kg"
    time: str = "s"
    force: str = "N"

    def __post_init__(self) -> None:
        named = {key: text("Units", key, getattr(self, key)) for key in SI_VALUES}
        assign(self, **named)
        if all(name in SI_VALUES[quantity] for quantity, name in named.items()):
            self._check_consistent()

    def _check_consistent(self) -> None:
        """Raise an error if the force of known units is not mass · length / time²."""
        size = {quantity: SI_VALUES[quantity][getattr(self, quantity)] for quantity in SI_VALUES}
        product = size["mass"] * size["length"] / size["time"] ** 2 / size["force"]
        if isclose(product, 1.0, rel_tol=_SIZE_RTOL):
            return
        composed = f"{self.mass} {self.length}/{self.time}²"
        forces = [*_units_of_size("force", product * size["force"]), composed]
        masses = _units_of_size("mass", size["mass"] / product)
        remedies = [f"force = {forces[0]!r}", *(f"mass = {name!r}" for name in masses[:1])]
        message = (
            f"Units: force must be mass · length / time²; {composed} is {product:.6g} {self.force}. Set "
            f"{' or '.join(remedies)}, and give numbers in this unit."
        )
        raise ModelError(message, key="force", product=product)


def _units_of_size(quantity: str, size: float) -> list[str]:
    """Return the names of units with the given SI size."""
    return [name for name, value in SI_VALUES[quantity].items() if isclose(value, size, rel_tol=_SIZE_RTOL)]


def default_gravity(units: Units, owner: str) -> tuple[float, float, float]:
    """Return the acceleration of gravity, −9.81 m/s² along z, in the given units."""
    length, time = SI_VALUES["length"].get(units.length), SI_VALUES["time"].get(units.time)
    if length is None or time is None:
        raise ModelError(
            f"{owner}: `gravity` must be given in {units.length}/{units.time}², a unit of unknown size. "
            "Write gravity = [0, 0, 0] for none.",
            key="gravity",
        )
    return 0.0, 0.0, -9.81 * time**2 / length


def coordinate_units(description: MechanismDescription) -> dict[str, str]:
    """Return the unit of each joint coordinate, distance and angle: rad, or the unit of length."""
    length = description.units.length
    return (
        {d.name: length for d in description.distances}
        | {a.name: "rad" for a in description.angles}
        | {
            component: length if translation else "rad"
            for joint in description.joints
            for component, translation in zip(joint.components, joint.translations, strict=True)
        }
    )


def row_unit(description: MechanismDescription, row: str) -> str:
    """Return the unit of a row."""
    if row.rpartition(".")[2] in _ANGULAR_ROWS or ".euler_" in row:
        return "rad"
    return coordinate_units(description).get(row, description.units.length)


def effort_unit(description: MechanismDescription, row: str) -> str:
    """Return the unit of the effort at a row: of a moment for angular rows, else of a force."""
    units = description.units
    return f"{units.force} {units.length}" if row_unit(description, row) == "rad" else units.force


def energy_unit(description: MechanismDescription) -> str:
    """Return the unit of energy: force times length, or J for newton and metre."""
    force, length = description.units.force, description.units.length
    return "J" if (force, length) == ("N", "m") else f"{force} {length}"


def power_unit(description: MechanismDescription) -> str:
    """Return the unit of power: that of energy per time, or W in SI."""
    energy, time = energy_unit(description), description.units.time
    return "W" if (energy, time) == ("J", "s") else f"{energy}/{time}"


def motor_unit(description: MechanismDescription, quantity: str) -> str:
    """Return the unit of a motor's "torque", "current" or "voltage"; '' if the model does not define it."""
    u = description.units
    if quantity == "torque":
        return f"{u.force} {u.length}"
    # V A = N m/s holds in SI only
    return (
        {"current": "A", "voltage": "V"}[quantity] if (u.force, u.length, u.time) == ("N", "m", "s") else ""
    )


def turns_note(name: str, value: float, remedy: str) -> str:
    """Return the note on an angle that may be meant in degrees."""
    return f"{name} is read as {value:g} rad, {abs(value) / tau:.1f} turns; for degrees {remedy}."


def warn_of_degrees(description: MechanismDescription, rows: Iterable[str], values: np.ndarray) -> None:
    """Warn of angles (..., n) of rows beyond `DEGREES_ANGLE_MIN` that are whole or half numbers.

    Such numbers are usually typed in degrees; computed angles are almost never whole or half numbers. Coupled
    joints, such as shafts of motors and screws, are skipped because they turn many times.
    """
    for k, row in enumerate(rows):
        column = values[..., k].real.ravel()
        if not column.size or part_of(row) in description._coupled:
            continue
        largest = float(column[np.argmax(np.nan_to_num(np.abs(column)))])
        degrees = DEGREES_ANGLE_MIN < abs(largest) <= DEGREES_ANGLE_MAX and (2 * largest).is_integer()
        if degrees and row_unit(description, row) == "rad":
            note = turns_note(f"{row} = {largest:g}", largest, f"give np.deg2rad({largest:g})")
            frame, level = sys._getframe(), 1
            while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("kic."):
                frame, level = frame.f_back, level + 1
            warnings.warn(note, DegreesWarning, stacklevel=level)
            return


def rate_unit(unit: str, time: str, order: int) -> str:
    """Return the unit of a time derivative."""
    return unit if order == 0 else f"{unit or '1'}/{time}{('', '²', '³')[order - 1]}"


def unit_ratio(name: str, unit: str, target: str) -> float:
    """Return the size of a unit of the column `name`, such as "deg/s" or "N·mm", in a unit of the model.

    Raise `InputError` if it is not known or of another kind.

    Examples
    --------
    >>> unit_ratio("A.effort", "Nmm", "N m"), unit_ratio("A.rate", "rpm", "rad/s").__round__(4)
    (0.001, 0.1047)
    """
    if unit == target:
        return 1.0
    given, wanted = _measured(unit), _measured(target)
    if given is None or wanted is None or not np.array_equal(given[1], wanted[1]):
        rule = f"must be in a known unit of the kind of {target}" if target else "must be without unit"
        raise invalid(name, rule, unit, "Convert the numbers.")
    return given[0] / wanted[0]


def _measured(unit: str) -> tuple[float, np.ndarray] | None:
    """Return the size of a unit in SI, and its powers of length, mass, time and current; None if unknown."""
    size, powers = 1.0, np.zeros(4, int)
    for k, group in enumerate(unit.translate(_PLAIN).split("/")):
        for word in group.split():
            name, power = re.fullmatch(r"(.*?)(-?\d)?", word).groups()  # type: ignore[union-attr]
            parts = [name] if name in _MEASURED else _two_units(name)
            if not parts and word != "1":
                return None
            exponent = int(power or 1) * (-1 if k else 1)
            for part in parts:
                size *= _MEASURED[part][0] ** exponent
                powers += exponent * np.array(_MEASURED[part][1])
    return size, powers


def _two_units(name: str) -> list[str]:
    """Return the units of a torque without a space, such as Nmm."""
    pairs = ([name[:k], name[k:]] for k in range(1, len(name)))
    return next((p for p in pairs if p[0] in SI_VALUES["force"] and p[1] in SI_VALUES["length"]), [])
