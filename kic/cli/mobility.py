"""The command `kic mobility`: the freedoms of a mechanism and what they rest on."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from kic.cli.parsing import (
    configuration_of,
    configuration_options,
    json_option,
    load_model,
    model_argument,
    width,
)

if TYPE_CHECKING:
    from kic.analysis.mobility import Mobility


@click.command()
@model_argument
@configuration_options
@json_option
def mobility(model: str, given: tuple[str, ...], near: tuple[str, ...], as_json: bool) -> None:
    """Tell the freedoms of MODEL, a shipped name or a TOML file, and what they rest on.

    Closure conditions and whose they are, which of them are redundant, whether the freedoms are motions that
    go on, and which of them are idle.

    \b
      kic mobility bricard
      kic mobility rssr --json
      kic mobility four-bar --at A=70deg

    --json prints one object and nothing else: name, text (the account in words); freedoms, first_order,
    tree_coordinates; conditions (of each part that closes a loop), redundant; shares (what each condition
    adds, best first, as a share of the best); regular, finite (null where that is open), extends (null where
    that is no question); idle, each with bodies, coordinates, text.
    """
    mechanism = load_model(model)
    account = mechanism.mobility(configuration_of(mechanism, given, near) if given or near else None)
    if as_json:
        click.echo(json.dumps({"name": mechanism.name, **_data(account)}, allow_nan=False))
        return
    click.echo(textwrap.fill(account.summary(), width(), break_long_words=False))


def _data(account: Mobility) -> dict[str, Any]:
    """The account as plain values."""
    return {
        "text": account.summary(),
        "freedoms": account.dof,
        "first_order": account.first_order,
        "tree_coordinates": account.coordinates,
        "conditions": dict(account.conditions),
        "redundant": account.redundant,
        "shares": account.shares.tolist(),
        **{key: getattr(account, key) for key in ("regular", "finite", "extends")},
        "idle": [
            {"bodies": list(one.bodies), "coordinates": list(one.coordinates), "text": one.summary()}
            for one in account.passive_freedoms
        ],
    }
