"""Inputs of a simulation: efforts, voltages and prescribed motions, and the snapshot that they receive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kic.errors import InputError, SimulationError, short_repr
from kic.numerics.arrays import as_numbers, reals
from kic.transfer.compiled_model import CompiledModel

# currents where there are no voltages
NONE = np.zeros(0)


@dataclass(frozen=True)
class Snapshot:
    """State of a motion at one time, as efforts, voltages and events receive it.

    Attributes
    ----------
    q, qd : (M,)
        Values and rates of the user's coordinates.
    state : (S,)
        Closed state of the spanning tree.
    current : (K,)
        Currents of the motors; NaN for plain sources of torque. Effort and voltage functions also receive NaN
        for motors without inductance, whose current the voltage determines. Empty without voltages.
    """

    q: np.ndarray
    qd: np.ndarray
    state: np.ndarray
    current: np.ndarray = field(default_factory=lambda: NONE)

    def copy(self) -> Snapshot:
        """Return a copy for a user's function, which may write into it."""
        return Snapshot(self.q.copy(), self.qd.copy(), self.state.copy(), self.current.copy())


Effort = Callable[[float, Snapshot], Any]
# allowed relative difference between a start and the start of a prescribed motion
START_RTOL = 1e-6


class Motion:
    """Efforts, voltages and prescribed motions in the user's coordinates.

    Parameters
    ----------
    model : CompiledModel
        The mechanism.
    names : tuple of str
        The user's coordinates.
    effort : callable, (A,) or None
        Efforts (A,) at the actuators: ``effort(t, now)``, constants, or none.
    prescribed : dict of str to callable
        Coordinates with a given motion: value, rate, acceleration at a time.
    voltage : callable or (K,), optional
        Voltages of the motors: ``voltage(t, now)`` or constants. Without them the motors are left out.
    actuators : tuple of str, optional
        Rows where efforts act; by default the coordinates.

    Attributes
    ----------
    command : (A,)
        Efforts that a sampled controller holds, in addition to `effort`.
    voltage_command : (K,)
        Voltages that a sampled controller holds, in addition to `voltage`.
    is_sampled : bool
        True if there is a sampled controller of efforts.

    Raises
    ------
    InputError
        If voltages are given for a mechanism without motors, or for motors with dry friction.
    """

    def __init__(
        self,
        model: CompiledModel,
        names: tuple[str, ...],
        effort: Effort | np.ndarray | None,
        prescribed: dict[str, Any],
        voltage: Effort | np.ndarray | None = None,
        actuators: tuple[str, ...] | None = None,
    ) -> None:
        self.model, self.names, self.effort, self.prescribed = model, names, effort, prescribed
        self.actuators = names if actuators is None else actuators
        self.command, self.is_sampled = np.zeros(len(self.actuators)), False
        self.voltage, self.train = voltage, None if voltage is None else model.drive_train
        self.voltage_command = np.zeros(0 if self.train is None else len(self.train.names))
        if self.train is not None and self.train.friction.any():
            dry = [name for name, f in zip(self.train.names, self.train.friction, strict=True) if f]
            raise InputError(
                f"Motors of '{model.description.name}' have dry friction ({', '.join(dry)}): shafts "
                "stick and slip. The simulation does not support this. Describe them without "
                "`friction`; give a smooth law, such as -f·tanh(q̇/v), by `effort`.",
                motors=tuple(dry),
            )
        self.held = np.array([names.index(name) for name in prescribed], dtype=np.intp)

    @property
    def has_functions(self) -> bool:
        """True if efforts or voltages are functions of the user, which need a snapshot."""
        return callable(self.effort) or callable(self.voltage)

    def efforts(self, t: float, now: Snapshot | None) -> np.ndarray:
        """Return checked efforts (A,) of the actuators at a time."""
        if not callable(self.effort):
            return self.command.copy() if self.effort is None else self.command + self.effort
        assert now is not None
        return self.command + checked("effort", self.effort(t, now.copy()), self.actuators, t, now)

    @property
    def acts_at_coordinates(self) -> bool:
        """True if efforts act at the coordinates, where prescribed motions replace them."""
        return self.actuators == self.names

    def voltages(self, t: float, now: Snapshot | None) -> np.ndarray:
        """Return checked voltages (K,) of the motors at a time; torques for plain sources."""
        assert self.voltage is not None  # for the type checker
        assert self.train is not None
        if not callable(self.voltage):
            return self.voltage_command + self.voltage
        assert now is not None
        given = checked("voltage", self.voltage(t, now.copy()), self.train.names, t, now)
        return self.voltage_command + given

    def given(self, t: float) -> np.ndarray:
        """Return values, rates and accelerations (3, H) of the prescribed coordinates."""
        rows = []
        for name, motion in self.prescribed.items():
            got = motion(t)
            # trajectories return jerks, too
            a = reals(got[:3] if isinstance(got, tuple) else got)
            if a is None or a.size != 3:
                message = (
                    f"The motion prescribed for '{name}' must return value, rate and acceleration, three "
                    f"finite numbers; got {short_repr(got)} at t = {t:.9g}."
                )
                raise SimulationError(message, key="prescribed", name=name, got=got, time=t)
            rows.append(a.reshape(3))
        return np.array(rows).reshape(-1, 3).T

    def start_rates(self, t: float, q: np.ndarray, qd: np.ndarray | None) -> np.ndarray:
        """Return the initial rates (M,), including prescribed ones; zero where none are given.

        Raises
        ------
        InputError
            If the values or rates at the start differ from the prescribed ones.
        """
        given = self.given(t)
        rates = np.zeros(len(self.names)) if qd is None else qd.copy()
        for what, at, of in (("values", q, given[0]), ("rates", rates, given[1])):
            off = np.abs(at[self.held] - of) > START_RTOL * np.maximum(1.0, np.abs(of))
            if off.any() and (what == "values" or qd is not None):
                k = int(np.argmax(off))
                name = self.names[self.held[k]]
                raise InputError(
                    f"The motion prescribed for '{name}' begins with {of[k]:.9g}, but the {what} of the "
                    f"start are {at[self.held[k]]:.9g}. Start where it begins.",
                    name=name,
                )
        rates[self.held] = given[1]
        return rates


def checked(what: str, got: Any, names: tuple[str, ...], t: float, now: Any) -> np.ndarray:
    """Check and return the numbers from a user's function; errors report its name, time and state."""
    a = as_numbers(got)
    a = None if a is None else np.atleast_1d(a)
    if a is None or a.dtype != np.float64 or a.shape != (len(names),):
        returned = "no numbers" if a is None else f"{a.dtype} of {a.shape}"
        message = (
            f"`{what}(t, now)` must return real numbers of shape ({len(names)},), one for each of "
            f"{', '.join(names)}, got {returned} at t = {t:g}."
        )
        raise InputError(message, key=what, got=got, time=t)
    if not np.isfinite(a).all():
        n = int(np.flatnonzero(~np.isfinite(a))[0])
        message = (
            f"`{what}(t, now)` returned {a[n]} for '{names[n]}' at t = {t:.9g}, where q = "
            f"{short_repr(now.q.tolist())} and qd = {short_repr(now.qd.tolist())}. They must "
            "be finite."
        )
        raise SimulationError(message, key=what, name=names[n], time=t, q=now.q, qd=now.qd)
    return a
