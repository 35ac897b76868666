"""Motors of a mechanism in a motion: shafts, rotor dynamics, dry friction, torque, current, voltage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError
from kic.kinematics.coefficients import Coefficients
from kic.numerics.arrays import as_array

if TYPE_CHECKING:
    from kic.configuration import Configuration
    from kic.dynamics.drive_train import MotorDemand


def motor_demand(
    configuration: Configuration,
    qd: Any,
    qdd: Any,
    qddd: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> MotorDemand:
    """What the motors do in a motion: speeds, torques, currents and voltages of each.

    See `Configuration.drive`.
    """
    train = configuration._model.drive_train
    d = configuration.dynamics(wrt, applied, failures)
    M = len(d.coordinates)
    v, a = as_array("qd", qd, M), as_array("qdd", qdd, M)
    j = None if qddd is None else as_array("qddd", qddd, M)
    if j is None and train.inductance.any():
        slow = [name for name, L in zip(train.names, train.inductance, strict=True) if L]
        raise InputError(
            f"Motors of '{configuration.name}' have inductance ({', '.join(slow)}), and voltages need the "
            "jerk. Give `qddd`.",
            motors=tuple(slow),
        )
    shafts = motor_shafts(configuration, 2 if j is None else 3, wrt, failures)
    rate = None
    if j is not None:
        rate = configuration.linearize(v, a, wrt, applied=applied, failures=failures).rate(j)
    return train.drive(shafts, d.inverse_dynamics(v, a), rate, v, a, j)


def motor_shafts(
    configuration: Configuration,
    order: int,
    wrt: str | Iterable[str] | None,
    failures: Literal["raise", "mask"],
) -> Coefficients:
    """The shafts of the motors as rows."""
    train = configuration._model.drive_train
    return train.shafts(configuration.coefficients(train.joints, order, wrt, failures))


def rotor_dynamics(
    configuration: Configuration, wrt: str | Iterable[str] | None, failures: Literal["raise", "mask"]
) -> Dynamics:
    """Rotors and damping of the motors."""
    train = configuration._model.drive_train
    if train.friction.any():
        dry = [name for name, f in zip(train.names, train.friction, strict=True) if f]
        raise InputError(
            f"Motors of '{configuration.name}' have dry friction ({', '.join(dry)}), which is no part of a "
            "model in I*, P* and B, and would be left out. Ask for torques that include it with drive(), or "
            "draw them without `friction`.",
            motors=tuple(dry),
        )
    return train.dynamics(motor_shafts(configuration, 2, wrt, failures))


def dry_friction(configuration: Configuration, shafts: Coefficients, v: np.ndarray) -> np.ndarray:
    """Efforts (..., M) of dry friction in the motors, whose shafts must turn."""
    train = configuration._model.drive_train
    stuck = (train.friction != 0) & (shafts.velocity(v) == 0)
    if stuck.any():
        names = np.array(train.names)[stuck.reshape(-1, len(train.names)).any(axis=0)].tolist()
        raise InputError(
            f"Shafts with dry friction stand still ({', '.join(names)}): what holds them there is no "
            "linear function of small deviations. Give rates that turn them, or draw the motors without "
            "`friction`.",
            motors=tuple(names),
        )
    return np.einsum("...pk,...p->...k", shafts.G, train.dry(shafts, v))
