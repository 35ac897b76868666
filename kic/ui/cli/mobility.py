"""Command `kic mobility`: degrees of freedom and the closure conditions behind them."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from kic.ui.cli import parsing

if TYPE_CHECKING:
    from kic.transfer.mobility.mobility import Mobility


@click.command()
@parsing.configuration_options
@parsing.json_option
def mobility(request: parsing.Request, as_json: bool) -> None:
    """Print the degrees of freedom of MODEL and their derivation.

    List the closure conditions of each part, the redundant conditions, the result of the finite-mobility
    analysis and the passive degrees of freedom.

    \b
      kic mobility bricard
      kic mobility rssr --json
      kic mobility four-bar --at A=70deg

    --json prints a single object: name, summary (text); dof, first_order, tree_coordinates; conditions (for
    each part that closes a loop), redundant; shares (contribution of each condition relative to the largest,
    in descending order); regular, finite (null if undecided), extends (null if not applicable);
    passive_freedoms, each with bodies, coordinates, summary.
    """
    mechanism = request.mechanism
    at = request.configuration() if request.given or request.near or request.limits else None
    account = mechanism.mobility(at)
    if as_json:
        click.echo(json.dumps({"name": mechanism.name, **_data(account)}, allow_nan=False))
        return
    click.echo(textwrap.fill(account.summary(), parsing.width(), break_long_words=False))


def _data(account: Mobility) -> dict[str, Any]:
    """Return the mobility account in types of JSON."""
    return {
        "summary": account.summary(),
        "dof": account.dof,
        "first_order": account.first_order,
        "tree_coordinates": account.coordinates,
        "conditions": dict(account.conditions),
        "redundant": account.redundant,
        "shares": account.shares.tolist(),
        **{key: getattr(account, key) for key in ("regular", "finite", "extends")},
        "passive_freedoms": [
            {"bodies": list(one.bodies), "coordinates": list(one.coordinates), "summary": one.summary()}
            for one in account.passive_freedoms
        ],
    }
