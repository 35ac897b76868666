"""Results of a simulation: arrays by name, the energy account, interpolation, one file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.configuration import Configuration
from kic.description.units import energy_unit, motor_unit
from kic.display import Summary
from kic.errors import InputError, KicError, ModelFileError, short_repr, unknown
from kic.io.files import atomic_write
from kic.io.toml import written
from kic.kernels.layout import STATE
from kic.mechanism import Mechanism
from kic.numerics.arguments import instance, names_of
from kic.numerics.arrays import reals
from kic.numerics.interpolation import HermiteInterpolant
from kic.numerics.rotations import product
from kic.plotting.figures import Picture
from kic.plotting.plots import Panel, by_unit, draw_plots, effort_panels, motion_panels, part_panels
from kic.simulation.coordinates import ACCOUNTS, state_rates, state_scale
from kic.simulation.motors import between
from kic.simulation.run_file import FORMAT, digest_of, read_run
from kic.transfer.compiled_model import CompiledModel

if TYPE_CHECKING:
    from kic.configuration import Configuration


@dataclass(frozen=True)
class Energy:
    """The energy account of a run, (T,) each.

    Attributes
    ----------
    kinetic, potential : (T,)
        Of the bodies, with the rotors of motors whose voltages are given; of their weights and of springs.
    work : (T,)
        Done by the efforts since the start, those of prescribed motions included.
    applied : (T,)
        Done by the forces and moments of the model.
    dissipated : (T,)
        Lost in dampers, those of motors included.
    electrical : (T,)
        Taken in by motors since the start: V i of DC motors, the work of plain sources of torque.
    heat : (T,)
        Lost in their armatures: R i², and (k_e − k_t) i u̇ where these constants differ.
    magnetic : (T,)
        In their inductances, ½ L i².
    """

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
        """What the account misses (T,): gain in energy, less what came in, plus what was lost."""
        came = self.work + self.applied + self.electrical
        return self.total - self.total[:1] - came + self.dissipated + self.heat


def potential_energy(c: Configuration) -> np.ndarray:
    """Potential energy (...) of gravity and of springs between points and in joints.

    Weights count from the origin of the drawing, springs from where they are free. Forces and moments of the
    model have none; dampers neither.
    """
    drawing = c._model.description
    U = np.zeros(c.batch)
    g = np.array(drawing.gravity)
    for body in drawing.bodies:
        if body.mass and g.any():
            T = c.displacement(body.name)
            U = U - body.mass * ((T[..., :3, :3] @ np.array(body.com) + T[..., :3, 3]) @ g)
    for point in drawing.points:
        if point.mass and g.any():
            U = U - point.mass * (c.value(point.name) @ g)
    for spring in drawing.springs:
        r = c.value(spring.points[1]) - c.value(spring.points[0])
        stretch = np.sqrt(np.einsum("...i,...i->...", r, r)) - spring.rest
        U = U + spring.stiffness * stretch**2 / 2
    for joint in drawing.joints:
        for name, k, rest in zip(joint.components, joint.stiffness, joint.rest, strict=True):  # type: ignore[arg-type]
            if k:
                U = U + k * (c.value(name) - rest) ** 2 / 2
    return U


# of the energies, what counts as none: an account that misses as little is a good one
NOTHING = 1e-6
# what a run has beside the rows of its mechanism; a part of the same name is meant first
PLOT_GROUPS = ("values", "rates", "accelerations", "efforts", "energy")


# and a run under voltages beside those: what it is called, and where the run has it
MOTORS = {"torques": "torque", "currents": "current", "voltages": "voltage"}


def plot_run(run: Any, names: str | Iterable[str] | None, width: float) -> Picture:
    """Panels of a run; see `Simulation.plot`."""
    drawing = run.mechanism
    if names is None:
        names = ("values", "rates", *(("efforts",) if np.any(run.effort) else ()))
    accounts = (*PLOT_GROUPS, *(MOTORS if run.motors else ()))
    panels: list[Panel] = []
    rows: list[str] = []
    for name in names_of(names, "names"):
        if name not in accounts or name in drawing.parts:
            if name.partition(".")[0] not in drawing.parts:
                raise unknown("account or part", name, drawing.name, (*accounts, *drawing.parts))
            rows.append(name)
            continue
        panels += part_panels(drawing, run.configuration, rows) if rows else []
        rows = []
        panels += _account(run, name)
    panels += part_panels(drawing, run.configuration, rows) if rows else []
    return draw_plots(run.t, panels, drawing.units.time, [when for when, _ in run.events], width)


def _account(run: Any, name: str) -> list[Panel]:
    """Panels of what a run has beside its rows."""
    drawing = run.mechanism
    if name == "efforts":
        return effort_panels(drawing, run.coordinates, run.effort)
    if name == "energy":
        return energy_panels(run.energy, energy_unit(drawing))
    if name in MOTORS:
        values = getattr(run, MOTORS[name])
        there = np.isfinite(values).any(axis=0)  # plain sources of torque have no current
        named = [motor for motor, some in zip(run.motors, there, strict=True) if some]
        return by_unit(
            MOTORS[name], [motor_unit(drawing, MOTORS[name])] * len(named), named, values[:, there]
        )
    order = PLOT_GROUPS.index(name)
    return motion_panels(drawing, run.coordinates, (run.q, run.qd, run.qdd)[order], order)


def energy_panels(energy: Any, unit: str) -> list[Panel]:
    """The energy account, and below it what it misses."""
    lines = {"kinetic": energy.kinetic, "potential": energy.potential, "total": energy.total}
    others = {"work": energy.work, "work of forces": energy.applied, "dissipated": energy.dissipated}
    others |= {"in inductance": energy.magnetic, "taken by motors": energy.electrical, "heat": energy.heat}
    size = max(np.abs(y).max(initial=0.0) for y in lines.values())
    # what is rounding beside the rest is no line
    lines |= {name: y for name, y in others.items() if np.abs(y).max(initial=0.0) > NOTHING * size}
    return [Panel("energy", unit, lines), Panel("missed", unit, {"residual": energy.residual})]


# between moments a current is interpolated if trapezoids of its rate agree with it to so much (shares of the
# largest); what is interpolated errs by much less
_AGREE = 1e-3


class Simulation:
    """A motion in time. Made by `simulate`, or read by `Simulation.load`.

    ``run["tip.x"]`` are the values of anything over time, ``run.configuration`` the postures, of which every
    question can be asked; ``run.at(t)`` the postures at other times.

    Attributes
    ----------
    mechanism : Mechanism
        What moved.
    coordinates : tuple of str
        The user's coordinates.
    t : (T,)
        Times.
    q, qd, qdd, effort : (T, M)
        Values, rates, accelerations of the coordinates, and the efforts at them.
    state : (T, S)
        States of the spanning tree, closed.
    current, voltage, torque : (T, K)
        Of the motors, as in `MotorDemand`, where voltages were given; else K = 0. NaN where there is none, as of
        plain sources of torque.
    events : tuple of (float, int)
        Zeros of the events: when, and which.
    stopped : str
        Why the run ended before its time; '' if it did not.
    steps, charts : int
        Steps of the integrator; sets of coordinates that it took, the user's included.
    change_points : tuple of float
        Times at which the motion passed a change point, where branches of the loop closure meet.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        coordinates: tuple[str, ...],
        arrays: dict[str, np.ndarray],
        events: tuple[tuple[float, int], ...] = (),
        stopped: str = "",
        steps: int = 0,
        charts: int = 1,
        change_points: tuple[float, ...] = (),
    ) -> None:
        self.mechanism, self.coordinates = mechanism, coordinates
        self._arrays = arrays
        self.t, self.state = arrays["t"], arrays["state"]
        self.q, self.qd, self.qdd = arrays["q"], arrays["qd"], arrays["qdd"]
        self.effort, self.torque = arrays["effort"], arrays["torque"]
        self.current, self.voltage = arrays["current"], arrays["voltage"]
        self.events, self.stopped = events, stopped
        self.steps, self.charts, self.change_points = steps, charts, change_points

    @property
    def _model(self) -> CompiledModel:
        return self.mechanism._model

    @property
    def motors(self) -> tuple[str, ...]:
        """Names of the K motors whose voltages were given."""
        return tuple(motor.name for motor in self.mechanism.motors) if self.current.shape[1] else ()

    @property
    def tree_rates(self) -> np.ndarray:
        """Rates (T, columns) of the spanning tree."""
        return self._arrays["rates"]

    @property
    def configuration(self) -> Configuration:
        """The postures, a batch (T,)."""
        return Configuration(self._model, (len(self.t),), self.state.copy())

    def __getitem__(self, name: str) -> np.ndarray:
        """Values over time (T, ...) of a coordinate, a point, a joint, a distance or one of their rows."""
        return self.configuration.value(name)

    @property
    def energy(self) -> Energy:
        """The energy account."""
        potential = potential_energy(self.configuration)
        accounts, motors = self._arrays["accounts"].T, np.zeros((3, len(self.t)))
        work, loads, lost = accounts[:ACCOUNTS]
        if self.motors:
            motors[:2], motors[2] = accounts[ACCOUNTS:], self._model.drive_train.stored(self.current)
        applied = loads + potential - potential[:1]
        return Energy(self._arrays["kinetic"], potential, work, applied, lost, *motors)

    @property
    def closure(self) -> np.ndarray:
        """What the loops miss, (T,): the worst closure condition, as a share of its length or in radians."""
        missing = self._model.closure(()).rows(self.state)[0]
        return np.abs(missing).max(axis=1, initial=0.0)

    def at(self, t: Any, tolerance: float = 1e-4) -> Configuration:
        """Postures at other times, by interpolation between the moments of the run, closed.

        Values, rates and accelerations at the moments beside make it: two, of fifth degree, or four, where
        these agree better. What it errs is estimated, to a factor of about three; halving the intervals
        divides it by 64 and more. Loops close exactly.

        Parameters
        ----------
        t : (...) array_like
            Times within the run.
        tolerance : float
            The most that interpolated states may err, in radians and shares of the characteristic length.

        Returns
        -------
        Configuration
            Of the batch (...).

        Raises
        ------
        InputError
            For times outside of the run, a tolerance that is no positive number, or between moments too far
            apart for it, as where an effort jumps.

        Examples
        --------
        >>> import kic
        >>> m = kic.load("horn-two-link")
        >>> run = kic.simulate(m, m.at([0.0, 0.5]), [0.0, 0.1, 0.2])
        >>> run.at(0.15).batch
        ()
        """
        allowed = reals(tolerance)
        if allowed is None or allowed.shape or not allowed > 0:
            raise InputError(f"Expected `tolerance` to be a positive number, got {short_repr(tolerance)}.")
        times, when, k = self._placed(t)
        if len(self.t) == 1 or not len(when):
            return Configuration(self._model, times.shape, self.state[k])
        return Configuration(self._model, times.shape, self._closed(self._between(when, k, tolerance), when))

    def current_at(self, t: Any) -> np.ndarray:
        """Currents of the motors at other times, by cubic interpolation between the moments of the run.

        Parameters
        ----------
        t : (...) array_like
            Times within the run.

        Returns
        -------
        (..., K)
            NaN of plain sources of torque, and of motors without inductance, whose current follows a voltage
            that may jump.

        Raises
        ------
        InputError
            For times outside of the run, or between moments too far apart.
        """
        times, when, k = self._placed(t)
        found, off = between(self.t, self.current, self._arrays["current_rate"], when, k)
        if (off > _AGREE).any():
            self._too_far(when[np.argmax(off > _AGREE)])
        return found.reshape(*times.shape, len(self.motors))

    def _placed(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times (...) of the run, flat ones (n,), and the moments (n,) before them."""
        times = reals(t)
        if times is None or ((times < self.t[0]) | (times > self.t[-1])).any():
            raise InputError(
                f"Expected times from {self.t[0]:g} to {self.t[-1]:g}, those of the run, got {short_repr(t)}."
            )
        when = times.reshape(-1)
        k = np.searchsorted(self.t, when, side="right") - 1
        return times, when, np.clip(k, 0, max(len(self.t) - 2, 0))

    def _between(self, when: np.ndarray, k: np.ndarray, tolerance: float) -> np.ndarray:
        """Interpolated states, if they err little enough."""
        found, off = HermiteInterpolant(self.t, self.state, *self._slopes()).at(when, k)
        scale = state_scale(self._model.tree, self._model.closure(()).transfer.column_scale)
        inside = (when > self.t[k]) & (when < self.t[k + 1])
        rough = inside & ~(off <= tolerance * scale).all(axis=1)
        if rough.any():
            worst = float((off[rough][0] / scale).max())
            self._too_far(
                when[rough][0],
                f": what comes out may err by {worst:.0e} (rad, shares of a length), allowed {tolerance:g}",
            )
        return np.where(inside[:, None], found, self.state[np.where(when == self.t[k], k, k + 1)])

    def _too_far(self, when: float, remark: str = "") -> None:
        raise InputError(
            f"The moments of the run around t = {when:.9g} are too far apart to interpolate between "
            f"them{remark}. Simulate with more times `t`.",
            time=float(when),
        )

    def _slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """First and second rates (T, S) of the states."""
        tree, rates, second = self._model.tree, self._arrays["rates"], self._arrays["second"]
        first = state_rates(tree, self.state, rates)
        turned = state_rates(tree, self.state, second)
        for n in tree.balls:  # q̈ = ½ ω̇ q + ½ ω q̇
            place = tree.cols[n, STATE]
            w = np.concatenate([np.zeros((len(rates), 1)), rates[:, n : n + 3] / 2], axis=1)
            turned[:, place : place + 4] += product(w, first[:, place : place + 4])
        return first, turned

    def _closed(self, states: np.ndarray, when: np.ndarray) -> np.ndarray:
        """The closed states beside some that nearly are."""
        tree = self._model.tree
        for n in tree.balls:
            place = tree.cols[n, STATE]
            q = states[:, place : place + 4]
            states[:, place : place + 4] = q / np.linalg.norm(q, axis=1, keepdims=True)
        if tree.open:
            return states
        closure = self._model.closure(())
        states, left = closure.newton(states, closure.goal(np.zeros((len(states), 0))))
        if (left > closure.limit).any():
            self._too_far(when[np.argmax(left > closure.limit)])
        return states

    def joined(self, later: Simulation) -> Simulation:
        """This run with its continuation."""
        instance("later", later, Simulation)
        more = dict(later._arrays)
        alike = later.mechanism == self.mechanism and later.coordinates == self.coordinates
        if not alike or any(a.shape[1:] != more[key].shape[1:] for key, a in self._arrays.items()):
            raise InputError(
                "`later` must be a run of the same mechanism in the same coordinates, driven alike, "
                f"got one of '{later.mechanism.name}' in {', '.join(later.coordinates)}."
            )
        more["accounts"] = more["accounts"] + self._arrays["accounts"][-1]
        arrays = {key: np.concatenate([a, more[key][1:]]) for key, a in self._arrays.items()}
        return Simulation(
            self.mechanism,
            self.coordinates,
            arrays,
            self.events + later.events,
            later.stopped,
            self.steps + later.steps,
            self.charts + later.charts - 1,
            self.change_points + later.change_points,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run, its mechanism included, to one file (NumPy's npz).

        Parameters
        ----------
        path : path
            File to write; one that is there is replaced, and stays as it was if writing fails.

        Raises
        ------
        ModelFileError
            If it cannot be written.

        Examples
        --------
        >>> import kic, tempfile, pathlib
        >>> m = kic.load("horn-two-link")
        >>> run = kic.simulate(m, m.at([0.0, 0.5]), [0.0, 0.1])
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "swing.npz"
        >>> run.save(file)
        >>> kic.Simulation.load(file).q.shape
        (2, 2)
        """
        model = written(self.mechanism)
        told = {
            "format": FORMAT,
            "digest": digest_of(self._arrays, model),
            "coordinates": self.coordinates,
            "events": self.events,
            "stopped": self.stopped,
            "steps": self.steps,
            "charts": self.charts,
            "change_points": self.change_points,
        }
        texts = {"model": np.array(model), "told": np.array(json.dumps(told))}
        try:
            with atomic_write(path) as file:
                np.savez(file, **texts, **self._arrays)  # type: ignore[arg-type]
        except (OSError, TypeError, ValueError) as error:  # of the place, of the path
            if isinstance(error, KicError):
                raise
            why = error.strerror if isinstance(error, OSError) else error
            raise ModelFileError(f"{path}: can not be written: {why}.", path=path) from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Simulation:
        """Read a run that `save` wrote.

        Shapes, kinds and sizes of the arrays are checked. The states must close the loops of the mechanism,
        and the coordinates must be those of the states.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Simulation

        Raises
        ------
        ModelFileError
            If it cannot be read, or holds no run.
        """
        return cls(**read_run(path))

    def plot(self, names: str | Iterable[str] | None = None, width: float = 3.5) -> Picture:
        """Panels over time above one another, one unit in each; events are thin lines across.

        Parameters
        ----------
        names : str or list of str, optional
            Of the coordinates "values", "rates", "accelerations", "efforts"; the account "energy", with what
            it misses; of motors under voltages "torques", "currents", "voltages"; and anything that has a
            value, such as "tip", "tip.x" or "A", of a part with several rows those that move. By default
            values, rates and, where there are any, efforts.
        width : float
            In inches.

        Returns
        -------
        Picture
            Its ``axes`` are a tuple, one for each panel.

        Raises
        ------
        UnknownNameError, InputError
            For names that are not there or have no value.
        MissingExtraError
            Without Matplotlib.
        """
        return plot_run(self, names, width)

    def summary(self) -> Summary:
        """Account of the run, to print or to show."""
        sheet = Summary(f"{self.mechanism.name}: t = {self.t[0]:g} to {self.t[-1]:g}, {len(self.t)} moments")
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
        if self.motors:
            most = [np.abs(x).max(axis=0) for x in (self.torque, self.current, self.voltage)]
            sheet.matrix(
                "motors, at most", self.motors, ["torque", "current", "voltage"], np.stack(most, axis=1)
            )
        e = self.energy
        rows = {"kinetic": e.kinetic, "potential": e.potential, "work of efforts": e.work}
        if self.mechanism.forces or self.mechanism.moments:
            rows["work of forces"] = e.applied
        if np.abs(e.dissipated).max(initial=0.0):
            rows["dissipated"] = e.dissipated
        if self.motors:
            rows |= {"in inductance": e.magnetic, "taken by motors": e.electrical, "heat in motors": e.heat}
        table = np.array([[x[0], x[-1]] for x in rows.values()])
        sheet.matrix("energy", list(rows), ["start", "end"], table)
        sheet.say(f"account misses at most {np.abs(e.residual).max():.1e}, loops {self.closure.max():.1e}")
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()
