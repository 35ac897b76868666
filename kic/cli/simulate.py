"""Command `kic simulate`: a motion in time, as a table, JSON or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from kic.cli import completion as completing
from kic.cli import parsing

if TYPE_CHECKING:
    from kic.numerics.display import Summary
    from kic.simulation.result import Simulation


@click.command()
@parsing.model_argument
@parsing.configuration_options
@click.option("--for", "duration", type=float, default=1.0, show_default=True, metavar="TIME",
              help="Set the duration in the model's unit of time.")  # fmt: skip
@click.option("--rate", "rates", multiple=True, metavar="NAME=NUMBER",
              shell_complete=completing.coordinates,
              help="Set initial rates, 0 for the others; repeatable.")  # fmt: skip
@click.option("--effort", "efforts", multiple=True, metavar="NAME=NUMBER",
              shell_complete=completing.coordinates,
              help="Apply constant efforts at these coordinates, 0 at the others; repeatable.")  # fmt: skip
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
    "--of", "of", "Also print values of points, joints, distances or their rows; repeatable."
)
@click.option("--samples", type=click.IntRange(2, 1_000_000), default=11, show_default=True,
              help="Set the number of equally spaced output times.")  # fmt: skip
@click.option("--save", "file", type=click.Path(dir_okay=False), help="Save the run to FILE (.npz).")
@parsing.json_option
def simulate(
    model: str,
    given: tuple[str, ...],
    near: tuple[str, ...],
    limits: bool,
    duration: float,
    rates: tuple[str, ...],
    efforts: tuple[str, ...],
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
      kic simulate four-bar --rate A=6.28 --effort A=0.2 --for 2 --json
      kic simulate gough-stewart --for 0.2 --save fall.npz
      kic simulate puma560-motors --voltage waist_motor=12 --voltage shoulder_motor=5
      kic simulate four-bar-motor --voltage motor=6 --current motor=1.5
      kic simulate quadruped --for 0.1 --contacts hold

    Rates are in rad, deg or length per unit of time. Load a saved file in Python with
    kic.Simulation.load(file).

    With --voltage the motors are simulated, including rotors, damping and circuits. Currents start at 0 or at
    the --current values; the current of a motor without inductance follows the voltage from the start.

    With --limits, the start must lie within the limits, and the run stops at the first limit reached.

    An interrupted run (Ctrl-C) prints and saves its results up to the interruption. If a run cannot be
    continued, --save still writes the results up to that time.

    --json prints a single object: name, units, coordinates, motors; t; q, qd, qdd, effort; current, voltage,
    torque of motors (one row per time, null if not available); values of the --of outputs by name; energy
    with kinetic, potential, magnetic, work, applied, electrical, dissipated, heat, residual; change_points
    (times at which branches of the closure meet); stopped; steps.
    """
    import numpy as np

    from kic.errors import InputError, SimulationError
    from kic.simulation.simulate import simulate as run_simulation

    mechanism = parsing.load_model(model)
    if not 0 < duration < float("inf"):
        raise InputError(
            f"--for must be a finite time larger than 0, got {duration:g}.", key="--for", got=duration
        )
    names = parsing.split_names(wrt, "--wrt") or None
    outputs = parsing.split_names(of, "--of")
    start = parsing.configuration_of(mechanism, given, near, limits)
    coordinates = mechanism.coordinate_names if names is None else start.dynamics(wrt=names).coordinates
    motors = tuple(motor.name for motor in mechanism.motors)
    for name in outputs:
        start.value(name)  # check before the run
    try:
        run = run_simulation(
            mechanism,
            start,
            np.linspace(0.0, duration, samples),
            effort=parsing.parse_numbers("a coordinate", coordinates, efforts, "--effort"),
            qd=parsing.parse_rates(mechanism, coordinates, rates),
            wrt=names,
            voltage=parsing.parse_numbers("a motor", motors, voltages, "--voltage") if voltages else None,
            current=parsing.parse_numbers("a motor", motors, currents, "--current") if currents else None,
            contacts=contacts,
            on_change_point=on_change_point,
            limits=limits,
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
        return
    click.echo(_summary(run, outputs).text(parsing.width()))


def _summary(run: Simulation, outputs: list[str]) -> Summary:
    """Return the summary of the run with a table of coordinates and outputs over time."""
    import numpy as np

    from kic.description.units import row_unit

    columns = dict(zip(run.coordinates, run.q.T, strict=True))
    for name in outputs:
        rows = run.configuration.coefficients(name, order=1).rows
        for row, values in zip(rows, run[name].reshape(len(run.t), -1).T, strict=True):
            columns.setdefault(row, values)
    summary = run.summary()
    heads = [f"{name} ({row_unit(run.mechanism, name)})" for name in columns]
    times = [f"{t:.5g}" for t in run.t]
    table = np.stack(list(columns.values()), axis=-1)
    summary.matrix("over time", times, heads, table, corner=f"t ({run.mechanism.units.time})")
    return summary


def _data(run: Simulation, outputs: list[str]) -> dict[str, Any]:
    """Return the numbers as plain lists."""
    from kic.report.report import plain_lists

    energy = ["kinetic", "potential", "magnetic", "work", "applied", "electrical"]
    energy += ["dissipated", "heat", "residual"]
    return {
        "name": run.mechanism.name,
        "units": vars(run.mechanism.units),
        "coordinates": list(run.coordinates),
        "motors": list(run.motors),
        **{key: getattr(run, key).tolist() for key in ("t", "q", "qd", "qdd", "effort")},
        **{key: plain_lists(getattr(run, key)) for key in ("current", "voltage", "torque")},
        "values": {name: run[name].tolist() for name in outputs},
        "energy": {key: getattr(run.energy, key).tolist() for key in energy},
        "change_points": list(run.change_points),
        "stopped": run.stopped,
        "steps": run.steps,
    }
