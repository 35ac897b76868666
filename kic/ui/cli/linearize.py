"""Command `kic linearize`: stiffness, modes and state space, as tables or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kic.ui.cli import completion as completing
from kic.ui.cli import parsing
from kic.ui.cli.parsing import usage_error

if TYPE_CHECKING:
    from kic.analysis.linear.linearize import Linearization
    from kic.analysis.linear.state_space import StateSpace


@click.command()
@parsing.configuration_options
@parsing.names_option("--wrt", "wrt", "Use these coordinates: joints, points or their rows; repeatable.")
@click.option("--qd", "rates", multiple=True, metavar="NAME=NUMBER",
              shell_complete=completing.coordinates,
              help="Set the rates of these coordinates, 0 for the others; repeatable.")  # fmt: skip
@click.option("--equilibrium", is_flag=True,
              help="Find an equilibrium nearby under zero effort and linearize there.")  # fmt: skip
@parsing.json_option
def linearize(
    request: parsing.Request,
    wrt: tuple[str, ...],
    rates: tuple[str, ...],
    equilibrium: bool,
    as_json: bool,
) -> None:
    """Linearize the dynamics of MODEL about one configuration.

    Print the linearized equation of motion, δT = K δq + C δq̇ + I* δq̈, and the modes of small motions under
    constant holding efforts.

    \b
      kic linearize four-bar --at A=70deg
      kic linearize puma560 --at "10deg, 0.5, -30deg, 0, 0.8, 0" --wrt link6
      kic linearize horn-two-link --at "-80deg, 5deg" --equilibrium
      kic linearize four-bar --qd A=6.28 --json

    Rates are in rad, deg or length per unit of time; they refer to the --wrt coordinates, if given.
    The state space of a model with motors includes rotors and circuits; K, C, I* and the modes do not.

    --json prints a single object: name, units, coordinates, holonomic; the nominal motion qd, qdd, T; K, C, I
    and their parts K_inertia, K_load, C_inertia, C_load; commutator; modes with eigenvalues as pairs
    [real, imaginary], natural (null if a motion grows or K is not symmetric), descriptions; state_space
    with A, B, C, D, states, inputs, outputs; stability (null unless --equilibrium). Floats are exact.
    """
    mechanism = request.mechanism
    names = parsing.split_names(wrt, "--wrt") or None
    configuration = request.configuration()
    found = None
    if equilibrium:
        if rates:
            raise usage_error("an equilibrium is at rest; leave --qd out.", "--qd")
        found = mechanism.find_equilibrium(near=configuration, wrt=names, limits=request.limits)
        configuration = found.configuration
    qd = None
    if rates:
        qd = parsing.parse_rates(mechanism, configuration.linearize(wrt=names).coordinates, rates)
    lin = configuration.linearize(qd, wrt=names)
    driven = configuration.linearize(qd, wrt=names, motors=True) if mechanism.motors else lin
    space = driven.state_space()
    if as_json:
        import json

        data = {"name": mechanism.name, "units": vars(mechanism.units), **_data(lin, space)}
        click.echo(json.dumps(data | {"stability": found.stability if found else None}, allow_nan=False))
        return
    wide = parsing.width()
    if found:
        click.echo(found.summary().text(wide) + "\n")
    click.echo(lin.summary().text(wide))
    if not found:
        click.echo("\n" + lin.modes().summary().text(wide))
    if mechanism.motors:
        click.echo("\n" + space.summary().text(wide))


def _data(lin: Linearization, space: StateSpace) -> dict[str, Any]:
    """Return the results in types of JSON."""
    import numpy as np

    from kic.ui.report.report import plain_lists

    arrays = ("qd", "qdd", "T", "K", "C", "I", "K_inertia", "K_load", "C_inertia", "C_load", "commutator")
    modes = lin.modes()
    pairs = np.stack([modes.eigenvalues.real, modes.eigenvalues.imag], axis=-1)
    return {
        "coordinates": list(lin.coordinates),
        "holonomic": lin.holonomic,
        **{key: plain_lists(getattr(lin, key)) for key in arrays},
        "modes": {
            "eigenvalues": plain_lists(pairs),
            "natural": plain_lists(modes.natural),
            "descriptions": modes.descriptions(),
        },
        "state_space": {
            **{key: plain_lists(getattr(space, key)) for key in "ABCD"},
            **{key: list(getattr(space, key)) for key in ("states", "inputs", "outputs")},
        },
    }
