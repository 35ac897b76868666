"""Command `kic report`: a mechanism in one configuration, as tables, JSON or an HTML page."""

from __future__ import annotations

import json
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kic.errors import printable
from kic.numerics.files import atomic_write
from kic.ui.cli import parsing
from kic.ui.cli.parsing import usage_error

if TYPE_CHECKING:
    from kic.mechanism.configuration import Configuration


@click.command()
@parsing.configuration_options
@parsing.names_option("--of", "of", "Select points, bodies, joints, distances or their rows (tool.x); "
                                    "repeatable. Default: the last moving point, "
                                    "else the last body.")  # fmt: skip
@parsing.names_option(
    "--wrt", "wrt", "Use other coordinates for G, H, D and dynamics, one per degree of freedom; repeatable."
)
@click.option("--order", type=click.IntRange(1, 3), default=1, show_default=True,
              help="Set the order. 1: G. 2: also H, and P* of more than six coordinates. "
                   "3: also D.")  # fmt: skip
@click.option("--html", "page", metavar="FILE", type=parsing.OutputFile(dir_okay=False, allow_dash=True),
              help="Write a page with drawing, tables, plots and the model file; - for stdout.")  # fmt: skip
@click.option("--replay", is_flag=True, help="Show each coordinate moving in the page of --html, in space.")
@parsing.json_option
def report(
    request: parsing.Request,
    of: tuple[str, ...],
    wrt: tuple[str, ...],
    order: int,
    page: str | None,
    replay: bool,
    as_json: bool,
) -> None:
    """Report on MODEL in one configuration, as tables or a page.

    Print the parts and their positions, values and influence coefficients of the --of outputs, then I*, P*
    and the loads.

    \b
      kic report puma560
      kic report puma560 --at "10deg, 0.5, -30deg, 0, 0.8, 0"     all coordinates, in order
      kic report puma560 --at waist=10deg --at elbow=0.3          the others keep their reference values
      kic report twin-arm --at "lift=0.9, neck.1=5deg" --of left_hand,eyes --order 2
      kic report five-bar --at tip.x=24,tip.y=25                  a position: one row per degree of freedom
      kic report horn-two-link --at tip.x=1,tip.y=1 --near 0.3,1.2     this assembly mode
      kic report five-bar --wrt tip.x,tip.y                       in other coordinates
      kic report four-bar --at A=70deg --html four-bar.html       one page with drawing and plots

    Angles are in radians, or in degrees with the suffix deg; sliders are in the model's unit of length. The
    coordinates of a joint with several degrees of freedom are named joint.1, joint.2 …; those of a spherical
    joint are the components of its rotation vector.

    --html requires Matplotlib (pip install -e '.[plot]' in the checkout). The page has no scripts and loads
    no other files. --replay adds about 1 MB with scripts, and requires viser (the extra view).

    --json prints a single object: name, title, units, dof, mobility (text); coordinates, coordinate_units,
    phi (their values); gravity; points; poses (4×4, displacement from the reference configuration); frames
    (4×4, in the world); rows, row_units, values (null for angular velocities), holonomic; wrt, wrt_units
    (coordinates of the following arrays); Jacobian G[p][n], Hessian H[p][m][n], third derivatives
    D[p][l][m][n] (null above the order), the differentiating index first; mass matrix I[k][n], Christoffel
    symbols P[k][a][b] (q̇ᵀ P[k] q̇ is the effort at k), load, gravity_load, damping (null if not available;
    dynamics_left_out states the reason); actuators, static_efforts (that hold the loads, by actuator; null if
    not available). Floats are exact.
    """
    if page is not None and as_json:
        raise usage_error("--html and --json exclude each other; give one of them.", "--html")
    if replay and page is None:
        raise usage_error("--replay requires a page. Give --html FILE.", "--replay")
    mechanism = request.mechanism
    outputs, chosen = parsing.split_names(of, "--of"), parsing.split_names(wrt, "--wrt") or None
    from kic.ui.report.report import default_outputs, report_data
    from kic.ui.report.report import report as full_report

    outputs_shown = outputs or default_outputs(mechanism)
    configuration = request.configuration()
    if as_json:
        data = report_data(mechanism, configuration, outputs_shown, order, chosen)
        click.echo(json.dumps(data, allow_nan=False))
        return
    if page is not None:
        from kic.ui.report.page import to_html

        options = [("--at", request.given), ("--near", request.near), ("--of", of), ("--wrt", wrt)]
        words = [word for option, texts in options for text in texts for word in (option, text)]
        words += ["--limits"] * request.limits + ["--replay"] * replay
        words += ["--order", str(order)] * (order > 1) + ["--html", Path(page).name]
        source = printable(parsing.model_file(request.model).read_text(encoding="utf-8-sig"))
        repeat = shlex.join(["kic", "report", request.model, *words])
        shown = _replay(configuration) if replay else ""
        made = to_html(
            configuration, outputs_shown, order=order, wrt=chosen, source=source, repeat=repeat, replay=shown
        )
        _write(page, made)
        return
    click.echo(full_report(mechanism, configuration, outputs_shown, order, chosen).text(parsing.width()))
    if not outputs and order == 1:
        from kic.description.description import VALUED_KINDS

        there = [part.name for kind in VALUED_KINDS for part in getattr(mechanism, kind)]
        there += [joint.name for joint in mechanism.joints if joint.dof]
        hint = (
            f"More: --of NAME selects another part ({', '.join(there)}), --order 2 adds H, --order 3 adds D, "
            "--at sets the configuration, --html FILE writes a page; see kic report --help."
        )
        click.echo("\n" + textwrap.fill(hint, parsing.width()))


def _replay(configuration: Configuration) -> str:
    """Return a replay in which each coordinate moves alone."""
    from kic.ui.report.ranges import there_and_back
    from kic.ui.viewer.viewer import view

    viewer = view(there_and_back(configuration))
    try:
        return viewer.to_html()
    finally:
        viewer.stop()


def _write(file: str, text: str) -> None:
    """Write the page to its file or to stdout."""
    if file == "-":
        click.echo(text, nl=False)
        return
    data = text.encode()
    with atomic_write(file) as out:
        out.write(data)
    click.echo(printable(f"{file}: {len(data) / 1000:.0f} kB; open it in a browser."))
