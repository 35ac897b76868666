"""Motors of a mechanism in a motion: their demand, and dry friction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.errors import InputError
from kic.kinematics.coefficients import Coefficients
from kic.mechanism.configuration import model_of, motor_shafts
from kic.numerics.arrays import as_array, not_symbolic

if TYPE_CHECKING:
    from kic.dynamics.drive_train import MotorDemand
    from kic.mechanism.configuration import Configuration


def motor_demand(
    configuration: Configuration,
    qd: Any,
    qdd: Any,
    qddd: Any = None,
    *,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> MotorDemand:
    """Compute speed, torque, current and voltage of every motor for a motion.

    Parameters
    ----------
    qd, qdd : (..., M) array_like
        Rates and accelerations of the coordinates.
    qddd : (..., M) array_like, optional
        Jerks, needed for motors with inductance.
    wrt : str or list of str, optional
        Coordinates, as in `coefficients`; by default the mechanism's own.
    applied : dict of str to (..., 3) array_like, optional
        Components of named forces and moments, each in its axes (world or body), instead of those of the
        model.
    failures : {"raise", "mask"}
        As in `coefficients`.

    Returns
    -------
    MotorDemand
        Arrays (..., K) for the K motors (eqs 2-231 to 2-240).

    Raises
    ------
    InputError
        If there are no motors, a shape is wrong, jerks are missing, the motors cannot produce the motion,
        or there are more motors than degrees of freedom, so that torques are undetermined.
    SingularError, InertiaError
        As `dynamics`; also if motors depend on one another.

    Examples
    --------
    >>> crank = kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, resistance=0.5, torque_constant=0.02)
    >>> c = kic.load("four-bar").add(crank).at({"A": 1.2})
    >>> c.motor_demand([6.0], [0.0]).speed
    array([180.])
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
