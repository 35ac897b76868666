"""The command `kic simulate`: a motion in time, to read, as JSON, or kept in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from kic.cli import completion as completing
from kic.cli.parsing import (
    configuration_of,
    configuration_options,
    load_model,
    model_argument,
    names_option,
    parse_numbers,
    parse_plain_numbers,
    split_names,
    width,
)

if TYPE_CHECKING:
    import numpy as np

    from kic.display import Summary
    from kic.simulation.result import Simulation


@click.command()
@model_argument
@configuration_options
@click.option("--for", "duration", type=float, default=1.0, show_default=True, metavar="TIME",
              help="How long, in the model's unit of time.")  # fmt: skip
@click.option("--rate", "rates", multiple=True, metavar="NAME=NUMBER",
              shell_complete=completing.coordinates,
              help="Rates at the start; the others stand still. Repeatable.")  # fmt: skip
@click.option("--effort", "efforts", multiple=True, metavar="NAME=NUMBER",
              shell_complete=completing.coordinates,
              help="Constant efforts at these coordinates; the others move freely. Repeatable.")  # fmt: skip
@click.option("--voltage", "voltages", multiple=True, metavar="NAME=NUMBER",
              help="Constant voltages of these motors, torques of plain sources; the others get 0, so that "
                   "DC motors brake. Repeatable.")  # fmt: skip
@click.option("--current", "currents", multiple=True, metavar="NAME=NUMBER",
              help="Currents at the start of these motors, the others begin with none; with --voltage. "
                   "Repeatable.")  # fmt: skip
@click.option("--contacts", type=click.Choice(["stop", "hold"]), default="stop", show_default=True,
              help="Whether the run stops where a closed contact would have to pull or needs more friction "
                   "than it has, or contacts hold whatever comes.")  # fmt: skip
@click.option("--on-change-point", type=click.Choice(["continue", "stop"]), default="continue",
              show_default=True,
              help="Continue smoothly through points where branches of the loop closure meet, such as a "
                   "parallelogram with all links in line, or stop there.")  # fmt: skip
@names_option("--wrt", "wrt", "Coordinates of rates, efforts and results; repeatable.")
@names_option("--of", "of", "Also the values of points, joints, distances or rows of them; repeatable.")
@click.option("--moments", type=click.IntRange(2, 1_000_000), default=11, show_default=True,
              help="At how many moments, evenly from start to end.")  # fmt: skip
@click.option("--save", "file", type=click.Path(dir_okay=False), help="Keep the run in FILE (.npz).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for scripts, see above.")
def simulate(
    model: str,
    given: tuple[str, ...],
    near: tuple[str, ...],
    duration: float,
    rates: tuple[str, ...],
    efforts: tuple[str, ...],
    voltages: tuple[str, ...],
    currents: tuple[str, ...],
    contacts: Literal["stop", "hold"],
    on_change_point: Literal["continue", "stop"],
    wrt: tuple[str, ...],
    of: tuple[str, ...],
    moments: int,
    file: str | None,
    as_json: bool,
) -> None:
    """Let MODEL, a shipped name or a TOML file, move in time.

    Loops are closed anew at each step. Prints coordinates over time, the energy account and what it misses.

    \b
      kic simulate four-bar --for 5
      kic simulate horn-two-link --at "0deg, 30deg" --of tip --moments 6
      kic simulate four-bar --rate A=6.28 --effort A=0.2 --for 2 --json
      kic simulate gough-stewart --for 0.2 --save fall.npz
      kic simulate puma560-motors --voltage waist_motor=12 --voltage shoulder_motor=5
      kic simulate four-bar-motor --voltage motor=6 --current motor=1.5
      kic simulate quadruped --for 0.1 --contacts hold

    Rates are in rad or length, or deg, for each unit of time. A file that was saved is read in Python by
    kic.Simulation.load(file).

    Motors count where --voltage is given: rotors, damping and circuits, whose currents begin with 0 or as
    --current says; those of motors without inductance follow the voltage from the first moment.

    A run that is interrupted (Ctrl-C) prints and keeps what it had; of one that can not go on, --save keeps
    what there is up to there.

    --json prints one object and nothing else: name, units, coordinates, motors; t; q, qd, qdd, effort, and of
    motors current, voltage, torque (a row for each moment, null where there is none); values of what --of
    asks, by name; energy with kinetic, potential, magnetic, work, applied, electrical, dissipated, heat,
    residual; change_points (times at which branches of the closure met); stopped; steps.
    """
    import numpy as np

    from kic.errors import InputError, SimulationError
    from kic.simulation.simulate import simulate as run_of

    mechanism = load_model(model)
    if not 0 < duration < float("inf"):
        raise InputError(f"--for takes a finite time larger than 0, got {duration:g}.")
    names = split_names(wrt, "--wrt") or None
    asked = split_names(of, "--of")
    start = configuration_of(mechanism, given, near)
    coordinates = mechanism.coordinate_names if names is None else start.dynamics(wrt=names).coordinates
    motors = tuple(motor.name for motor in mechanism.motors)
    for name in asked:
        start.value(name)  # what has no value is refused before the run
    try:
        run = run_of(
            mechanism,
            start,
            np.linspace(0.0, duration, moments),
            effort=parse_plain_numbers("a coordinate", coordinates, efforts, "--effort"),
            qd=parse_numbers(mechanism, coordinates, rates, "--rate"),
            wrt=names,
            voltage=parse_plain_numbers("a motor", motors, voltages, "--voltage") if voltages else None,
            current=parse_plain_numbers("a motor", motors, currents, "--current") if currents else None,
            contacts=contacts,
            on_change_point=on_change_point,
        )
    except SimulationError as error:
        if file is not None and (kept := error.numbers.get("simulation")) is not None:
            kept.save(file)
        raise
    if file is not None:
        run.save(file)
    if as_json:
        import json

        click.echo(json.dumps(_data(run, asked), allow_nan=False))
        return
    click.echo(_sheet(run, asked).text(width()))


def _sheet(run: Simulation, asked: list[str]) -> Summary:
    """The account of the run; coordinates, and what else was asked, over time, each once."""
    import numpy as np

    from kic.kinematics.scales import row_unit

    columns = dict(zip(run.coordinates, run.q.T, strict=True))
    for name in asked:
        rows = run.configuration.coefficients(name, order=1).rows
        for row, values in zip(rows, run[name].reshape(len(run.t), -1).T, strict=True):
            columns.setdefault(row, values)
    sheet = run.summary()
    heads = [f"{name} ({row_unit(run.mechanism, name)})" for name in columns]
    times = [f"{t:.5g}" for t in run.t]
    table = np.stack(list(columns.values()), axis=-1)
    sheet.matrix("over time", times, heads, table, corner=f"t ({run.mechanism.units.time})")
    return sheet


def _data(run: Simulation, asked: list[str]) -> dict[str, Any]:
    """The numbers as plain lists."""
    energy = run.energy
    came, went = ("work", "applied", "electrical"), ("dissipated", "heat")
    lines = ("kinetic", "potential", "magnetic", *came, *went, "residual")
    return {
        "name": run.mechanism.name,
        "units": vars(run.mechanism.units),
        "coordinates": list(run.coordinates),
        "motors": list(run.motors),
        **{key: getattr(run, key).tolist() for key in ("t", "q", "qd", "qdd", "effort")},
        **{key: _known(getattr(run, key)) for key in ("current", "voltage", "torque")},
        "values": {name: run[name].tolist() for name in asked},
        "energy": {key: getattr(energy, key).tolist() for key in lines},
        "change_points": list(run.change_points),
        "stopped": run.stopped,
        "steps": run.steps,
    }


def _known(table: np.ndarray) -> list[list[float | None]]:
    """Rows as lists, None for what there is not."""
    return [[None if x != x else x for x in row] for row in table.tolist()]
