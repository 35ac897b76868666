"""Results of a simulation: arrays over time, energy balance, interpolation, files and plots.

Method. `Simulation` stores samples of the motion at the requested times: the closed state of the spanning
tree, rates and accelerations of the user's coordinates and of the tree, efforts, motor quantities, and the
integrated energies. Everything else is computed on demand:

* `Simulation.configuration` is the batch of sampled states, so every analysis of a `Configuration` applies.
* `Simulation.at` interpolates states between samples by quintic or higher Hermite polynomials of values,
  rates and accelerations. It then closes the loops by Newton's method, and raises an error where the
  estimated error exceeds the tolerance.
* `Simulation.energy` balances kinetic, potential and magnetic energy against work, dissipation and heat. Its
  residual measures the error of the whole run.

`run_file` reads what `Simulation.save` writes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.parts import COM
from kic.description.table_columns import effort_columns, motion_columns
from kic.description.units import energy_unit, motor_unit, power_unit, rate_unit, row_unit
from kic.description.validation import part_of
from kic.errors import InputError, invalid, unknown
from kic.io.toml import written
from kic.kernels import layout as lay
from kic.mechanism.configuration import Animated, Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import instance, names_of
from kic.numerics.arrays import reals
from kic.numerics.display import OneLine, Printable, Summary
from kic.numerics.files import atomic_write
from kic.numerics.interpolation import HermiteInterpolant
from kic.numerics.rotations import product
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable
from kic.plotting.figures import Picture
from kic.plotting.plots import (
    MOTOR_GROUPS,
    Panel,
    by_unit,
    draw_plots,
    effort_panels,
    motion_panels,
    motor_panels,
    part_panels,
)
from kic.simulation.coordinates import normalized, state_rates, state_scale
from kic.simulation.motor_circuits import interpolate_currents
from kic.simulation.run_file import FORMAT, control_arrays, digest_of, read_run
from kic.simulation.sampling import ControlSamples, joined_samples
from kic.transfer.compiled_model import CompiledModel


@dataclass(frozen=True, repr=False)
class Energy(OneLine):
    """Energy balance of a run at its T times.

    Attributes
    ----------
    kinetic, potential : (T,)
        Kinetic energy of the bodies, including rotors of motors under voltages. Potential energy of weights
        and springs.
    work : (T,)
        Work of the efforts since the start, including efforts of prescribed motions.
    applied : (T,)
        Work of the forces and moments of the model.
    dissipated : (T,)
        Energy dissipated in dampers, including those of motors.
    electrical : (T,)
        Energy supplied to motors since the start: V i for DC motors, the work of plain sources of torque.
    heat : (T,)
        Energy lost in motor armatures: R i², and (k_e − k_t) i u̇ where these constants differ.
    magnetic : (T,)
        Energy in motor inductances, ½ L i².
    """

    _one_line = ("kinetic",)

    kinetic: np.ndarray
    potential: np.ndarray
    work: np.ndarray
    applied: np.ndarray
    dissipated: np.ndarray
    electrical: np.ndarray
    heat: np.ndarray
    magnetic: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """Kinetic, potential and magnetic energy (T,)."""
        return self.kinetic + self.potential + self.magnetic

    @property
    def residual(self) -> np.ndarray:
        """Residual (T,) of the balance: gain in energy, minus energy supplied, plus energy lost."""
        supplied = self.work + self.applied + self.electrical
        return self.total - self.total[:1] - supplied + self.dissipated + self.heat


# energies below this share of the largest are not drawn
ENERGY_RTOL = 1e-6
# groups of quantities that can be plotted by name; a part of the same name takes precedence
PLOT_GROUPS = ("values", "rates", "accelerations", "efforts", "powers", "energy")


def plot_run(run: Any, names: str | Iterable[str] | None, width: float) -> Picture:
    """Plot quantities of a run in stacked panels; see `Simulation.plot`."""
    description, parts = run.mechanism, model_of(run.mechanism).parts
    if names is None:
        names = ("values", "rates", *(("efforts",) if np.any(run.actuator_effort) else ()))
    groups = (*PLOT_GROUPS, *(MOTOR_GROUPS if run.motors else ()))
    panels: list[Panel] = []
    rows: list[str] = []
    for name in names_of(names, "of"):
        if name not in groups or name in parts:
            if part_of(name) not in {COM, *parts}:
                raise unknown("group or part", name, description.name, (*groups, *parts))
            rows.append(name)
            continue
        panels += part_panels(description, run.configuration, rows) if rows else []
        rows = []
        panels += _group_panels(run, name)
    panels += part_panels(description, run.configuration, rows) if rows else []
    return draw_plots(run.t, panels, description.units.time, [when for when, _ in run.events], width)


def _group_panels(run: Any, name: str) -> list[Panel]:
    """Return the panels of a group of quantities of a run."""
    description = run.mechanism
    if name == "efforts":
        return effort_panels(description, run.actuators, run.actuator_effort)
    if name == "powers":
        return by_unit(
            "power", [power_unit(description)] * len(run.actuators), run.actuators, run.actuator_power
        )
    if name == "energy":
        return energy_panels(run.energy, energy_unit(description))
    if name in MOTOR_GROUPS:
        return motor_panels(description, run, MOTOR_GROUPS[name])
    order = PLOT_GROUPS.index(name)
    return motion_panels(description, run.coordinates, (run.q, run.qd, run.qdd)[order], order)


def energy_panels(energy: Any, unit: str) -> list[Panel]:
    """Return the panels of the energy balance and of its residual."""
    lines = {"kinetic": energy.kinetic, "potential": energy.potential, "total": energy.total}
    others = {"work": energy.work, "work of loads": energy.applied, "dissipated": energy.dissipated}
    others |= {"in inductance": energy.magnetic, "supplied to motors": energy.electrical, "heat": energy.heat}
    size = max(np.abs(y).max(initial=0.0) for y in lines.values())

    lines |= {name: y for name, y in others.items() if np.abs(y).max(initial=0.0) > ENERGY_RTOL * size}
    return [Panel("energy", unit, lines), Panel("residual", unit, {"residual": energy.residual})]


# currents are interpolated if their changes agree with the trapezoidal rule of the rates to this share of the
# largest current; the interpolation itself is far more accurate
CURRENT_RTOL = 1e-3


class Simulation(Printable, Tabular, Animated):
    """Motion of a mechanism over time. Made by `Mechanism.simulate`, or read by `Simulation.load`.

    ``run["tip.x"]`` gives values over time. ``run.configuration`` is the batch of configurations, to which
    every analysis applies. ``run.at(t)`` gives configurations at other times.

    Attributes
    ----------
    mechanism : Mechanism
        The simulated mechanism.
    coordinates : tuple of str
        The user's coordinates.
    t : (T,)
        Times.
    q, qd, qdd, effort : (T, M)
        Values, rates and accelerations of the coordinates, and the efforts at them.
    actuators : tuple of str
        The A rows where efforts act, by default the coordinates.
    control : ControlSamples or None
        Samples of the controller; None without a controller.
    state : (T, S)
        States of the spanning tree, closed.
    current, voltage, torque : (T, K)
        Quantities of the motors, as in `MotorDemand`; K = 0 without voltages. NaN for plain sources of
        torque, which have no current and voltage.
    events : tuple of (float, int)
        Time and event index of each zero of an event function.
    stopped : str
        Reason why the run ended early; '' for a complete run.
    steps, charts : int
        Number of integrator steps; number of coordinate sets used, including the user's.
    change_points : tuple of float
        Times at which the motion passed a change point, where branches of the loop closure meet.
    """

    _one_line = ("coordinates", "t")

    def __init__(
        self,
        mechanism: Mechanism,
        coordinates: tuple[str, ...],
        arrays: dict[str, np.ndarray],
        *,
        events: tuple[tuple[float, int], ...] = (),
        stopped: str = "",
        steps: int = 0,
        charts: int = 1,
        change_points: tuple[float, ...] = (),
        actuators: tuple[str, ...] | None = None,
        control: ControlSamples | None = None,
    ) -> None:
        self.mechanism, self.coordinates = mechanism, coordinates
        self.actuators = coordinates if actuators is None else actuators
        self.control = control
        self._arrays = arrays
        self.t, self.state = arrays["t"], arrays["state"]
        self.q, self.qd, self.qdd = arrays["q"], arrays["qd"], arrays["qdd"]
        self.effort, self.torque = arrays["effort"], arrays["torque"]
        self.current, self.voltage = arrays["current"], arrays["voltage"]
        self.events, self.stopped = events, stopped
        self.steps, self.charts, self.change_points = steps, charts, change_points

    @property
    def _model(self) -> CompiledModel:
        return model_of(self.mechanism)

    @property
    def actuator_effort(self) -> np.ndarray:
        """Array (T, A) of actuator efforts; at a controller's sample, those that act after it."""
        return self.effort if self.actuators == self.coordinates else self._arrays["actuator_effort"]

    @property
    def actuator_rate(self) -> np.ndarray:
        """Array (T, A) of actuator rates."""
        return self.qd if self.actuators == self.coordinates else self._arrays["actuator_rate"]

    @property
    def actuator_power(self) -> np.ndarray:
        """Array (T, A) of actuator powers."""
        return self.actuator_effort * self.actuator_rate

    @property
    def motors(self) -> tuple[str, ...]:
        """Tuple of the names of the K motors driven by voltages."""
        return tuple(motor.name for motor in self.mechanism.motors) if self.current.shape[1] else ()

    @property
    def tree_rates(self) -> np.ndarray:
        """Array (T, columns) of the rates of the spanning tree."""
        return self._arrays["rates"]

    @property
    def configuration(self) -> Configuration:
        """Batch (T,) of the configurations of the samples."""
        return Configuration(self._model, (len(self.t),), self.state.copy())

    def __getitem__(self, name: str) -> np.ndarray:
        """Return values over time (T, ...) of a coordinate, point, joint, distance or one of their rows."""
        return self.configuration.value(name if isinstance(name, str) else names_of(name, "name", 1))

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        m, made = self.mechanism, []
        if names is not None:
            made = list(self.configuration.table(names).variables)
        else:
            made = motion_columns(m, self.coordinates, (self.q, self.qd, self.qdd))
            made += self._actuator_columns()
            for key in MOTOR_GROUPS.values():
                values = getattr(self, key)
                made += [
                    Variable(f"{motor}.{key}", values[:, k], motor_unit(m, key))
                    for k, motor in enumerate(self.motors)
                ]
        return DataTable(m.name, (TableAxis("t", self.t, m.units.time),), tuple(made))

    def _actuator_columns(self) -> list[Variable]:
        """Return columns of actuator efforts, powers, and rates of actuators that are not coordinates."""
        m, made = self.mechanism, list[Variable]()
        for k, name in enumerate(self.actuators):
            if name not in self.coordinates:
                unit = rate_unit(row_unit(m, name), m.units.time, 1)
                made.append(Variable(f"{name}.rate", self.actuator_rate[:, k], unit))
        made += effort_columns(m, self.actuators, self.actuator_effort)
        powers = zip(self.actuators, self.actuator_power.T, strict=True)
        return made + [Variable(f"{name}.power", power, power_unit(m)) for name, power in powers]

    @property
    def energy(self) -> Energy:
        """Energy balance of the run."""
        potential = self.configuration.potential_energy()
        accounts, motors = self._arrays["accounts"].T, np.zeros((3, len(self.t)))
        work, loads, lost = accounts[: lay.N_ENERGIES]
        if self.motors:
            motors[:2], motors[2] = (
                accounts[lay.N_ENERGIES :],
                self._model.drive_train.magnetic_energy(self.current),
            )
        applied = loads + potential - potential[:1]
        return Energy(self._arrays["kinetic"], potential, work, applied, lost, *motors)

    @property
    def closure(self) -> np.ndarray:
        """Closure error (T,): largest residual of the loops, in radians or shares of a length."""
        missing = self._model.closure(()).rows(self.state)[0]
        return np.abs(missing).max(axis=1, initial=0.0)

    def at(self, t: Any, *, tolerance: float = 1e-4) -> Configuration:
        """Return configurations at other times, by interpolation between the samples of the run.

        The interpolant matches values, rates and accelerations at two neighbouring samples (degree five), or
        at four if these agree better. The error is estimated to a factor of about three. Halving the
        intervals divides it by at least 64. Loops close exactly.

        Parameters
        ----------
        t : (...) array_like
            Times within the run.
        tolerance : float
            Largest allowed error of interpolated states, in radians and shares of the characteristic length.

        Returns
        -------
        Configuration
            A batch of shape (...).

        Raises
        ------
        InputError
            If times are outside the run, the tolerance is not positive, or samples are too far apart for it,
            for example where an effort jumps.

        Examples
        --------
        >>> m = kic.load("horn-two-link")
        >>> run = m.simulate([0.0, 0.1, 0.2], near=m.at([0.0, 0.5]))
        >>> run.at(0.15).batch
        ()
        """
        allowed = reals(tolerance)
        if allowed is None or allowed.shape or not allowed > 0:
            raise invalid("tolerance", "must be a positive number", tolerance)
        times, when, k = self._locate(t)
        if len(self.t) == 1 or not len(when):
            return Configuration(self._model, times.shape, self.state[k])
        return Configuration(
            self._model, times.shape, self._close(self._interpolate(when, k, float(allowed)), when)
        )

    def current_at(self, t: Any) -> np.ndarray:
        """Return motor currents at other times, by cubic interpolation between the samples.

        Parameters
        ----------
        t : (...) array_like
            Times within the run.

        Returns
        -------
        (..., K)
            NaN for plain sources of torque and for motors without inductance, whose current jumps with the
            voltage.

        Raises
        ------
        InputError
            If times are outside the run, or samples are too far apart.
        """
        times, when, k = self._locate(t)
        values, error = interpolate_currents(self.t, self.current, self._arrays["current_rate"], when, k)
        if (error > CURRENT_RTOL).any():
            self._too_far(when[np.argmax(error > CURRENT_RTOL)])
        return values.reshape(*times.shape, len(self.motors))

    def _locate(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return times (...) of the run, flat times (n,), and the indices (n,) of the samples before them."""
        times = reals(t)
        if times is None or ((times < self.t[0]) | (times > self.t[-1])).any():
            raise invalid("t", f"must be within the run, from {self.t[0]:g} to {self.t[-1]:g}", t)
        when = times.reshape(-1)
        k = np.searchsorted(self.t, when, side="right") - 1
        return times, when, np.clip(k, 0, max(len(self.t) - 2, 0))

    def _interpolate(self, when: np.ndarray, k: np.ndarray, tolerance: float) -> np.ndarray:
        """Return interpolated states, or raise InputError if the estimated error exceeds the tolerance."""
        found, off = HermiteInterpolant(self.t, self.state, *self._state_rates()).at(when, k)
        scale = state_scale(self._model.tree, self._model.closure(()).transfer.column_scale)
        inside = (when > self.t[k]) & (when < self.t[k + 1])
        rough = inside & ~(off <= tolerance * scale).all(axis=1)
        if rough.any():
            worst = float((off[rough][0] / scale).max())
            self._too_far(
                when[rough][0],
                f": the estimated error is {worst:.0e} (rad, shares of a length), allowed {tolerance:g}",
            )
        return np.where(inside[:, None], found, self.state[np.where(when == self.t[k], k, k + 1)])

    def _too_far(self, when: float, remark: str = "") -> None:
        raise InputError(
            f"The samples of the run around t = {when:.9g} are too far apart to interpolate between "
            f"them{remark}. Simulate with more times `t`.",
            key="t",
            time=float(when),
        )

    def _state_rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return first and second rates (T, S) of the states."""
        tree, rates, second = self._model.tree, self._arrays["rates"], self._arrays["second"]
        first = state_rates(tree, self.state, rates)
        turned = state_rates(tree, self.state, second)
        for part, place in tree.ball_slices:  # q̈ = ½ ω̇ q + ½ ω q̇
            w = np.concatenate([np.zeros((len(rates), 1)), rates[:, part] / 2], axis=1)
            turned[:, place] += product(w, first[:, place])
        return first, turned

    def _close(self, states: np.ndarray, when: np.ndarray) -> np.ndarray:
        """Return the closed states nearest to interpolated ones."""
        tree, states = self._model.tree, normalized(self._model.tree, states)
        if tree.open:
            return states
        closure = self._model.closure(())
        states, left = closure.newton(states, closure.goal(np.zeros((len(states), 0))))
        if (left > closure.limit).any():
            self._too_far(when[np.argmax(left > closure.limit)])
        return states

    def joined(self, later: Simulation) -> Simulation:
        """Return this run followed by its continuation."""
        instance("later", later, Simulation)
        more = dict(later._arrays)
        alike = later.mechanism == self.mechanism and later.coordinates == self.coordinates
        alike = alike and later.actuators == self.actuators
        if not alike or any(a.shape[1:] != more[key].shape[1:] for key, a in self._arrays.items()):
            raise InputError(
                "`later` must have the mechanism, coordinates and actuators of this run, and both or neither "
                f"must be driven by voltages, got a run of '{later.mechanism.name}' in "
                f"{', '.join(later.coordinates)}. Join runs that continue each other.",
                key="later",
            )
        more["accounts"] = more["accounts"] + self._arrays["accounts"][-1]
        arrays = {key: np.concatenate([a, more[key][1:]]) for key, a in self._arrays.items()}
        return Simulation(
            self.mechanism,
            self.coordinates,
            arrays,
            events=self.events + later.events,
            stopped=later.stopped,
            steps=self.steps + later.steps,
            charts=self.charts + later.charts - 1,
            change_points=self.change_points + later.change_points,
            actuators=self.actuators,
            control=joined_samples(self.control, later.control),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run and its mechanism to one file (NumPy's npz).

        Parameters
        ----------
        path : path
            File to write. An existing file is replaced; it is left unchanged if writing fails.

        Raises
        ------
        FileError
            If the file cannot be written.

        Examples
        --------
        >>> import kic, tempfile, pathlib
        >>> m = kic.load("horn-two-link")
        >>> run = m.simulate([0.0, 0.1], near=m.at([0.0, 0.5]))
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "swing.npz"
        >>> run.save(file)
        >>> kic.results.Simulation.load(file).q.shape
        (2, 2)
        """
        model, arrays = written(self.mechanism), self._arrays | control_arrays(self.control)
        attributes = {
            "format": FORMAT,
            "digest": digest_of(arrays, model),
            "coordinates": self.coordinates,
            "events": self.events,
            "stopped": self.stopped,
            "steps": self.steps,
            "charts": self.charts,
            "change_points": self.change_points,
            "actuators": self.actuators,
            "measured": None if self.control is None else self.control.measured,
            "controlled": None if self.control is None else self.control.actuators,
        }
        texts = {"model": np.array(model), "attributes": np.array(json.dumps(attributes))}
        with atomic_write(path) as file:
            np.savez(file, **texts, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Simulation:
        """Read a run that `save` wrote.

        Shapes, types and sizes of the arrays are checked. The states must close the loops of the mechanism,
        and agree with the coordinates.

        Parameters
        ----------
        path : path
            The file.

        Raises
        ------
        ModelFileError
            If the file cannot be read or does not hold a run.
        """
        return cls(**read_run(path))

    def plot(self, of: str | Iterable[str] | None = None, *, width: float = 3.5) -> Picture:
        """Plot quantities over time in stacked panels, one unit in each. Thin vertical lines mark events.

        Parameters
        ----------
        of : str or list of str, optional
            Groups of coordinates: "values", "rates", "accelerations". Of actuators: "efforts", "powers". Of
            motors under voltages: "torques", "currents", "voltages". "energy" is the energy balance with its
            residual. Other names must have a value, such as "tip", "tip.x" or "A"; rows of a part that do not
            move are omitted. By default values, rates and, if any is nonzero, efforts.
        width : float
            Width in inches.

        Returns
        -------
        Picture
            Its ``axes`` are a tuple, one for each panel.
        """
        return plot_run(self, of, width)

    def summary(self) -> Summary:
        """Return labelled tables of the coordinates, actuators, motors and energies of the run."""
        sheet = Summary(f"{self.mechanism.name}: t = {self.t[0]:g} to {self.t[-1]:g}, {len(self.t)} samples")
        if self.stopped:
            sheet.say(self.stopped)
        several = f" in {self.charts} sets of coordinates" if self.charts > 1 else ""
        sheet.say(f"{self.steps} steps{several}")
        if self.change_points:
            sheet.say(
                f"passed change points at t = {', '.join(f'{t:.6g}' for t in self.change_points[:8])}"
                f"{', …' if len(self.change_points) > 8 else ''}"
            )
        ends = np.stack([self.q[0], self.q[-1], self.q.min(axis=0), self.q.max(axis=0)], axis=1)
        sheet.matrix("coordinates", self.coordinates, ["start", "end", "least", "most"], ends)
        if self.actuators != self.coordinates:
            most = [
                np.abs(x).max(axis=0) for x in (self.actuator_effort, self.actuator_rate, self.actuator_power)
            ]
            sheet.matrix(
                "actuators, at most", self.actuators, ["effort", "rate", "power"], np.stack(most, axis=1)
            )
        if self.control is not None:
            cut = (self.control.command != self.control.effort).any(axis=1)
            sheet.say(
                f"controller: {len(cut)} samples, {int(cut.sum())} of them with efforts at their limits"
            )
        if self.motors:
            most = [np.abs(x).max(axis=0) for x in (self.torque, self.current, self.voltage)]
            sheet.matrix(
                "motors, at most", self.motors, ["torque", "current", "voltage"], np.stack(most, axis=1)
            )
        e = self.energy
        rows = {"kinetic": e.kinetic, "potential": e.potential, "work of efforts": e.work}
        if self.mechanism.forces or self.mechanism.moments:
            rows["work of loads"] = e.applied
        if np.abs(e.dissipated).max(initial=0.0):
            rows["dissipated"] = e.dissipated
        if self.motors:
            rows |= {
                "in inductance": e.magnetic,
                "supplied to motors": e.electrical,
                "heat in motors": e.heat,
            }
        table = np.array([[x[0], x[-1]] for x in rows.values()])
        sheet.matrix("energy", list(rows), ["start", "end"], table)
        sheet.say(
            f"energy residual at most {np.abs(e.residual).max():.1e}, "
            f"closure error at most {self.closure.max():.1e}"
        )
        return sheet
