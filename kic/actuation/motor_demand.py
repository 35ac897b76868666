"""Motors of a mechanism in a motion: shaft kinematics, rotor dynamics, dry friction and motor demand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.configuration import model_of
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError
from kic.kinematics.coefficients import Coefficients
from kic.numerics.arrays import as_array, not_symbolic

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
    """Return speed, torque, current and voltage of each motor in a motion.

    See `Configuration.motor_demand`.
    """
    train = model_of(configuration).drive_train
    d = configuration.dynamics(wrt=wrt, applied=applied, failures=failures)
    M = len(d.coordinates)
    v, a = (not_symbolic(name, as_array(name, x, M)) for name, x in (("qd", qd), ("qdd", qdd)))
    j = None if qddd is None else not_symbolic("qddd", as_array("qddd", qddd, M))
    if j is None and train.inductance.any():
        names = [name for name, L in zip(train.names, train.inductance, strict=True) if L]
        message = (
            f"`qddd` is required for motors of '{configuration.name}' with inductance ({', '.join(names)}): "
            "their voltages depend on the jerk."
        )
        raise InputError(message, key="qddd", motors=tuple(names))
    shafts = motor_shafts(configuration, 2 if j is None else 3, wrt, failures)
    rate = None
    if j is not None:
        rate = configuration.linearize(v, a, wrt=wrt, applied=applied, failures=failures).rate(j)
    return train.drive(shafts, d.inverse_dynamics(v, a), rate, v, a, j)


def motor_shafts(
    configuration: Configuration,
    order: int,
    wrt: str | Iterable[str] | None,
    failures: Literal["raise", "mask"],
) -> Coefficients:
    """Return the coefficients of the motor shafts."""
    train = model_of(configuration).drive_train
    return train.shafts(configuration.coefficients(train.joints, order=order, wrt=wrt, failures=failures))


def rotor_dynamics(
    configuration: Configuration, wrt: str | Iterable[str] | None, failures: Literal["raise", "mask"]
) -> Dynamics:
    """Return the dynamics of rotors and motor damping."""
    train = model_of(configuration).drive_train
    if train.friction.any():
        names = [name for name, f in zip(train.names, train.friction, strict=True) if f]
        raise InputError(
            f"Motors of '{configuration.name}' must not have dry friction, got {', '.join(names)}: a "
            "model in I*, P* and B cannot include it. Use motor_demand() for torques with friction, or "
            "remove `friction`.",
            motors=tuple(names),
        )
    return train.dynamics(motor_shafts(configuration, 2, wrt, failures))


def dry_friction(configuration: Configuration, shafts: Coefficients, v: np.ndarray) -> np.ndarray:
    """Return generalized efforts (..., M) of dry friction in the motors; shafts with friction must turn."""
    train = model_of(configuration).drive_train
    at_rest = (train.friction != 0) & (shafts.velocity(v) == 0)
    if at_rest.any():
        names = np.array(train.names)[at_rest.reshape(-1, len(train.names)).any(axis=0)].tolist()
        raise InputError(
            f"Shafts with dry friction must turn, but {', '.join(names)} are at rest: static friction is not "
            "a linear function of small deviations. Give rates that turn them, or remove `friction`.",
            motors=tuple(names),
        )
    return np.einsum("...pk,...p->...k", shafts.G, train.friction_torques(shafts, v))
