"""The command `kic linearize`: stiffness, modes and state space of a posture, to read or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kic.cli import completion as completing
from kic.cli.parsing import (
    configuration_of,
    configuration_options,
    json_option,
    load_model,
    model_argument,
    names_option,
    parse_numbers,
    split_names,
    width,
)

if TYPE_CHECKING:
    from kic.linear.linearize import Linearization
    from kic.linear.state_space import StateSpace


@click.command()
@model_argument
@configuration_options
@names_option("--wrt", "wrt", "Coordinates of the answer: joints, points, rows of them; repeatable.")
@click.option("--rate", "rates", multiple=True, metavar="NAME=NUMBER",
              shell_complete=completing.coordinates,
              help="Rates of these coordinates; the others stand still. Repeatable.")  # fmt: skip
@click.option("--equilibrium", is_flag=True,
              help="First find the equilibrium near the posture; else efforts hold it.")  # fmt: skip
@json_option
def linearize(
    model: str,
    given: tuple[str, ...],
    near: tuple[str, ...],
    wrt: tuple[str, ...],
    rates: tuple[str, ...],
    equilibrium: bool,
    as_json: bool,
) -> None:
    """Linearize MODEL, a shipped name or a TOML file, about one posture.

    Tells how efforts change with small deviations, δT = K δq + C δq̇ + I* δq̈, then the modes of small motions
    while the efforts that hold the posture stay as they are.

    \b
      kic linearize four-bar --at A=70deg
      kic linearize puma560 --at "10deg, 0.5, -30deg, 0, 0.8, 0" --wrt link6
      kic linearize horn-two-link --at "-80deg, 5deg" --equilibrium
      kic linearize four-bar --rate A=6.28 --json

    Rates are in rad or length, or deg, for each unit of time; of --wrt coordinates if such are given.
    Of a model with motors the state space counts their rotors and circuits; all else is of the bodies alone.

    --json prints one object and nothing else: name, units, coordinates, holonomic; the nominal motion qd,
    qdd, T; K, C, I and their parts K_inertia, K_load, C_inertia, C_load; commutator; modes with eigenvalues
    as pairs [real, imaginary], natural (null where a motion grows, or K is not symmetric), words; state_space
    with A, B, C, D, states, inputs, outputs; stability (null unless --equilibrium). Floats are exact.
    """
    mechanism = load_model(model)
    names = split_names(wrt, "--wrt") or None
    configuration = configuration_of(mechanism, given, near)
    found = None
    if equilibrium:
        if rates:
            raise click.BadParameter("an equilibrium is at rest; leave --rate out.", param_hint="'--rate'")
        found = mechanism.find_equilibrium(configuration, wrt=names)
        configuration = found.configuration
    qd = (
        parse_numbers(mechanism, configuration.linearize(wrt=names).coordinates, rates, "--rate")
        if rates
        else None
    )
    lin = configuration.linearize(qd, wrt=names)
    space = configuration.state_space(qd, wrt=names)
    if as_json:
        import json

        data = {"name": mechanism.name, "units": vars(mechanism.units), **_data(lin, space)}
        click.echo(json.dumps(data | {"stability": found.stability if found else None}, allow_nan=False))
        return
    wide = width()
    if found:
        click.echo(found.summary().text(wide) + "\n")
    click.echo(lin.summary().text(wide))
    if not found:
        click.echo("\n" + lin.modes().summary().text(wide))
    if mechanism.motors:
        click.echo("\n" + space.summary().text(wide))


def _data(lin: Linearization, space: StateSpace) -> dict[str, Any]:
    """The numbers as plain lists."""
    import numpy as np

    from kic.report.report import plain

    arrays = ("qd", "qdd", "T", "K", "C", "I", "K_inertia", "K_load", "C_inertia", "C_load", "commutator")
    modes = lin.modes()
    pairs = np.stack([modes.eigenvalues.real, modes.eigenvalues.imag], axis=-1)
    return {
        "coordinates": list(lin.coordinates),
        "holonomic": lin.holonomic,
        **{key: plain(getattr(lin, key)) for key in arrays},
        "modes": {
            "eigenvalues": plain(pairs),
            "natural": plain(modes.natural),
            "words": modes.descriptions(),
        },
        "state_space": {
            **{key: plain(getattr(space, key)) for key in "ABCD"},
            **{key: list(getattr(space, key)) for key in ("states", "inputs", "outputs")},
        },
    }
