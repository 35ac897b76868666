"""Command `kic simulate`: a motion in time, as a table, JSON or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from kic.ui.cli import completion as completing
from kic.ui.cli import parsing

if TYPE_CHECKING:
    from kic.mechanism.mechanism import Mechanism
    from kic.numerics.display import Summary
    from kic.simulation.controllers import Sampled
    from kic.simulation.result import Simulation

# groups of columns, with the endings of their names
GROUPS = {"rates": ".rate", "efforts": ".effort", "powers": ".power"}


@click.command()
@parsing.configuration_options
@click.option("--for", "duration", type=float, default=1.0, show_default=True, metavar="TIME",
              help="Set the duration in the model's unit of time.")  # fmt: skip
@click.option("--qd", "rates", multiple=True, metavar="NAME=NUMBER",
              shell_complete=completing.coordinates,
              help="Set initial rates, 0 for the others; repeatable.")  # fmt: skip
@click.option("--effort", "efforts", multiple=True, metavar="NAME=NUMBER",
              shell_complete=completing.coordinates,
              help="Apply constant efforts at these coordinates or actuators, 0 at the others; "
                   "repeatable.")  # fmt: skip
@click.option("--controller", metavar="FILE[:NAME]",
              help="Sample the function NAME of a Python file, by default controller, and hold its efforts "
                   "between samples; with --sample-time. Or a kic.controllers.Sampled of this name, "
                   "with its time, delay, noise, limits or voltages.")  # fmt: skip
@click.option("--sample-time", type=float, metavar="TIME",
              help="Set the time between samples of a function --controller.")  # fmt: skip
@click.option("--voltage", "voltages", multiple=True, metavar="NAME=NUMBER",
              help="Apply constant voltages to these motors, or torques to ideal torque sources; others get "
                   "0 V, which brakes DC motors, or no torque. Repeatable.")  # fmt: skip
@click.option("--current", "currents", multiple=True, metavar="NAME=NUMBER",
              help="Set initial currents of these motors, 0 for the others; with --voltage. "
                   "Repeatable.")  # fmt: skip
@click.option("--contacts", type=click.Choice(["stop", "hold"]), default="stop", show_default=True,
              help="Stop the run if a closed contact would need a tensile force or exceed its friction "
                   "limit, or hold contacts regardless.")  # fmt: skip
@click.option("--on-change-point", type=click.Choice(["continue", "stop"]), default="continue",
              show_default=True,
              help="Continue smoothly through points at which branches of the loop closure meet, such as a "
                   "parallelogram with all links in line, or stop there.")  # fmt: skip
@parsing.names_option("--wrt", "wrt", "Use these coordinates for rates, efforts and results; repeatable.")
@parsing.names_option(
    "--of",
    "of",
    "Also print values of points, joints, distances or their rows, or the rates, efforts or powers "
    "of coordinates and actuators; repeatable.",
)
@click.option("--samples", type=click.IntRange(2, 1_000_000), default=11, show_default=True,
              help="Set the number of equally spaced output times.")  # fmt: skip
@click.option("--save", "file", type=parsing.OutputFile(dir_okay=False), help="Save the run to FILE (.npz).")
@parsing.json_option
def simulate(
    request: parsing.Request,
    duration: float,
    rates: tuple[str, ...],
    efforts: tuple[str, ...],
    controller: str | None,
    sample_time: float | None,
    voltages: tuple[str, ...],
    currents: tuple[str, ...],
    contacts: Literal["stop", "hold"],
    on_change_point: Literal["continue", "stop"],
    wrt: tuple[str, ...],
    of: tuple[str, ...],
    samples: int,
    file: str | None,
    as_json: bool,
) -> None:
    """Simulate the motion of MODEL.

    Print coordinates over time and the energy balance with its residual. Loops are closed at each step.

    \b
      kic simulate four-bar --for 5
      kic simulate horn-two-link --at "0deg, 30deg" --of tip --samples 6
      kic simulate four-bar --qd A=6.28 --effort A=0.2 --for 2 --json
      kic simulate gough-stewart --for 0.2 --save fall.npz
      kic simulate walking-machine --effort B1=5,C1=-5 --of efforts,powers --for 0.1
      kic simulate four-bar --controller hold.py --sample-time 1e-3
      kic simulate four-bar-motor --voltage motor=0 --controller drive.py:slow
      kic simulate puma560-motors --voltage waist_motor=12 --voltage shoulder_motor=5
      kic simulate four-bar-motor --voltage motor=6 --current motor=1.5
      kic simulate quadruped --for 0.1 --contacts hold

    Rates are in rad, deg or length per unit of time. Load a saved file in Python with
    kic.results.Simulation.load(file).

    Names of --effort that are not coordinates are actuators: joints, distances or rows. With --controller,
    efforts act at the declared actuators. Its function takes the time and measured rows and returns one
    effort for each: def controller(t, now): return -5 * now.q - now.qd. It may be one of kic.controllers. For
    voltages of motors, define slow = kic.controllers.Sampled(controller, 1e-3, gives="voltages") and give
    --voltage for the start.

    With --voltage the motors are simulated, including rotors, damping and circuits. Currents start at 0 or at
    the --current values; the current of a motor without inductance follows the voltage from the start.

    With --limits, the start must lie within the limits, and the run stops at the first limit reached.

    An interrupted run (Ctrl-C) prints and saves its results up to the interruption, and ends with the exit
    code 130. If a run cannot be continued, --save still writes the results up to that time.

    --json prints a single object: name, units, coordinates, actuators, motors; t; q, qd, qdd, effort;
    actuator_effort, actuator_rate, actuator_power; current, voltage, torque of motors (one row per time, null
    if not available); values of the --of outputs by name; control (null, or t, command, effort); energy with
    kinetic, potential, magnetic, work, applied, electrical, dissipated, heat, residual; change_points
    (times at which branches of the closure meet); stopped; steps.
    """
    import numpy as np

    from kic.description.description import given_names
    from kic.errors import InputError, SimulationError
    from kic.mechanism.configuration import model_of
    from kic.simulation.options import Integrator, Voltage
    from kic.simulation.simulate import simulate as run_simulation

    mechanism = request.mechanism
    if not 0 < duration < float("inf"):
        message = f"--for must be a finite time larger than 0, got {duration:g}."
        raise InputError(message, key="--for", got=duration)
    names = parsing.split_names(wrt, "--wrt") or None
    outputs = parsing.split_names(of, "--of")
    start = request.configuration()
    coordinates = mechanism.coordinates if names is None else start.dynamics(wrt=names).coordinates
    motors = tuple(motor.name for motor in mechanism.motors)
    for name in outputs:
        if not _is_group(mechanism, name):
            start.value(name)  # check before the run
    acting, rows = None, coordinates
    named = [entry.partition("=")[0].strip() for text in efforts for entry in text.split(",")]
    if controller is not None and given_names(mechanism, "actuators") is not None:
        acting = rows = mechanism.actuators
    elif not set(named) <= set(coordinates):
        acting = rows = model_of(mechanism).actuators(dict.fromkeys(named), hold_all=False)
    voltage = None
    if currents and not voltages:
        raise InputError("--current requires --voltage.", key="--current")
    if voltages:
        given = parsing.parse_numbers("a motor", motors, voltages, "--voltage")
        start_current = parsing.parse_numbers("a motor", motors, currents, "--current") if currents else None
        voltage = Voltage(given, current=start_current)
    try:
        run = run_simulation(
            mechanism,
            np.linspace(0.0, duration, samples),
            near=start,
            effort=parsing.parse_numbers(
                "a coordinate" if acting is None else "an actuator", rows, efforts, "--effort"
            ),
            actuators=acting,
            controller=_sampled(controller, sample_time),
            qd=parsing.parse_rates(mechanism, coordinates, rates),
            wrt=names,
            voltage=voltage,
            integrator=Integrator(contacts=contacts, on_change_point=on_change_point),
            limits=request.limits,
        )
    except SimulationError as error:
        if file is not None and (kept := error.numbers.get("simulation")) is not None:
            kept.save(file)
        raise
    if file is not None:
        run.save(file)
    if as_json:
        import json

        click.echo(json.dumps(_data(run, outputs), allow_nan=False))
    else:
        click.echo(_summary(run, outputs).text(parsing.width()))
    if run.stopped.startswith("interrupted"):
        raise KeyboardInterrupt


def _is_group(mechanism: Mechanism, name: str) -> bool:
    """Return True for the name of a group of columns; a part of the same name takes precedence."""
    from kic.mechanism.configuration import model_of

    return name in GROUPS and name not in model_of(mechanism).parts


def _sampled(given: str | None, time: float | None) -> Sampled | None:
    """Return the controller FILE[:NAME], sampled at intervals `time` unless it is a `Sampled` itself."""
    import runpy

    from kic.errors import InputError, shorten_words
    from kic.simulation.controllers import Sampled

    if given is None:
        if time is not None:
            raise InputError("--sample-time requires --controller.", key="--sample-time")
        return None
    file, name = (given, "controller") if given.endswith(".py") else given.rpartition(":")[::2]
    try:
        there = runpy.run_path(file)
    except Exception as error:  # of the user's file
        # arguments in the file are not options of the command
        why = f"{type(error).__name__}: {shorten_words(str(error))}".replace("`", "'")
        message = f"--controller: {file or given} cannot be run: {why}"
        raise InputError(message, key="--controller", got=given) from error
    if name not in there:
        message = f"--controller: {file} has no '{name}'. Define it, or give FILE:NAME of another function."
        raise InputError(message, key="--controller", got=given)
    made = there[name]
    if not isinstance(made, Sampled):
        if time is None:
            message = f"--sample-time must be given for '{name}', which is not a kic.controllers.Sampled."
            raise InputError(message, key="--sample-time")
        return Sampled(made, time)
    if time is not None:
        message = f"--sample-time must be left out: '{name}' is sampled every {made.time:g}."
        raise InputError(message, key="--sample-time", got=time)
    return made


def _summary(run: Simulation, outputs: list[str]) -> Summary:
    """Return the summary of the run with a table of coordinates and outputs over time."""
    import numpy as np

    from kic.description.units import row_unit

    columns = dict(zip(run.coordinates, run.q.T, strict=True))
    units = {name: row_unit(run.mechanism, name) for name in columns}
    for name in outputs:
        if _is_group(run.mechanism, name):
            group = [x for x in run._table().variables if x.name.endswith(GROUPS[name])]
            columns |= {x.name: x.values for x in group}
            units |= {x.name: str(x.unit) for x in group}
            continue
        rows = run.configuration.coefficients(name, order=1).rows
        for row, values in zip(rows, run[name].reshape(len(run.t), -1).T, strict=True):
            columns.setdefault(row, values)
            units.setdefault(row, row_unit(run.mechanism, row))
    summary = run.summary()
    heads = [f"{name} ({units[name]})" for name in columns]
    times = [f"{t:.5g}" for t in run.t]
    table = np.stack(list(columns.values()), axis=-1)
    summary.matrix("over time", times, heads, table, corner=f"t ({run.mechanism.units.time})")
    return summary


def _data(run: Simulation, outputs: list[str]) -> dict[str, Any]:
    """Return the run in types of JSON."""
    from kic.ui.report.report import plain_lists

    energy = ["kinetic", "potential", "magnetic", "work", "applied", "electrical"]
    energy += ["dissipated", "heat", "residual"]
    return {
        "name": run.mechanism.name,
        "units": vars(run.mechanism.units),
        "coordinates": list(run.coordinates),
        "actuators": list(run.actuators),
        "motors": list(run.motors),
        **{key: getattr(run, key).tolist() for key in ("t", "q", "qd", "qdd", "effort")},
        **{
            f"actuator_{key}": getattr(run, f"actuator_{key}").tolist() for key in ("effort", "rate", "power")
        },
        **{key: plain_lists(getattr(run, key)) for key in ("current", "voltage", "torque")},
        "values": {name: run[name].tolist() for name in outputs if not _is_group(run.mechanism, name)},
        "control": run.control
        and {key: getattr(run.control, key).tolist() for key in ("t", "command", "effort")},
        "energy": {key: getattr(run.energy, key).tolist() for key in energy},
        "change_points": list(run.change_points),
        "stopped": run.stopped,
        "steps": run.steps,
    }
