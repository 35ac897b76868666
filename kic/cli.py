"""The command line: reads what was typed, prints what `kic.report` says."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import click

from kic.errors import KicError
from kic.linear.linear_command import linearize
from kic.simulating.simulate_command import simulate
from kic.typed import at_terminal as _at_terminal
from kic.typed import load_model as _load
from kic.typed import posture_of as _posture
from kic.typed import width as _width

if TYPE_CHECKING:
    from kic.mechanism import Mechanism


class _Group(click.Group):
    """Says what kic refuses in one paragraph, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KicError as error:
            raise click.ClickException(str(error)) from None


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from kic import __version__

        click.echo(f"kic {__version__}")
        ctx.exit()


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
              help="Show the version and exit.")  # fmt: skip
def main() -> None:
    """Kinematic influence coefficients of mechanisms: G, H, D, I*, P* and loads, in a posture.

    \b
    Look at what is shipped, then at one of them:
      kic list
      kic report puma560
    \b
    Bend it, and ask for another part of it, to second order:
      kic report puma560 --at shoulder=30deg --at wrist_bend=0.8 --of link6 --order 2
    \b
    Your own mechanism is a TOML file; check it while you write it:
      kic check ./arm.toml
      kic report ./arm.toml --at "10deg, 0.5, -30deg"
    \b
    Numbers for a script:
      kic report puma560 --json > puma560.json

    The first question ever asked compiles kernels for this machine, which takes some seconds once;
    a line on stderr says so.
    """
    os.environ.setdefault("KIC_VERBOSE", "1")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a stream that knows no ᴸ prints ? in its place
            stream.reconfigure(errors="replace")


main.add_command(linearize)
main.add_command(simulate)


@main.command("list")
def list_models() -> None:
    """List the shipped models: name, freedoms, title.

    \b
      kic list
      kic report twin-arm
    """
    from kic.modelfile import model_names

    lines = [("model", "freedoms", "title")]
    lines += [(name, *_headline(name)) for name in model_names()]
    wide = max(len(name) for name, _, _ in lines)
    room = _width() if _at_terminal() else 10_000
    for name, freedoms, title in lines:
        start = f"{name.ljust(wide)}  {freedoms.rjust(8)}  "
        click.echo(textwrap.fill(start + title, room, subsequent_indent=" " * len(start)))


def _headline(name: str) -> tuple[str, str]:
    """Freedoms and title of a shipped model, straight from its file: the schema library loads slowly."""
    import tomllib

    from kic.modelfile import find
    from kic.parts import FREEDOMS

    data = tomllib.loads(find(name).read_text(encoding="utf-8"))
    rows = data["dh"]["rows"] if "dh" in data else data["joints"]
    count = {row.get("name", row.get("joint")): FREEDOMS[row.get("type", "revolute")] for row in rows}
    named = data.get("coordinates", list(count))
    return str(sum(1 if "." in c else count[c] for c in named)), data.get("title", "")


@main.command()
@click.argument("model")
@click.option("--at", "given", multiple=True, metavar="POSTURE",
              help="Coordinates, in order or by name; repeatable. As drawn if left out.")  # fmt: skip
@click.option("--of", "names", multiple=True, metavar="NAME[,NAME…]",
              help="Points, bodies, joints, distances or rows of them (tool.x); repeatable. "
                   "By default the last point.")  # fmt: skip
@click.option("--order", type=click.IntRange(1, 3), default=1, show_default=True,
              help="1: G. 2: also H, and P* of every size. 3: also D.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object for scripts, see above.")
def report(model: str, given: tuple[str, ...], names: tuple[str, ...], order: int, as_json: bool) -> None:
    """Tell about MODEL, a shipped name or a TOML file, in one posture.

    Parts and where they are, the values and influence coefficients of what is asked with --of, then
    I*, P* and the loads.

    \b
      kic report puma560
      kic report puma560 --at "10deg, 0.5, -30deg, 0, 0.8, 0"     all coordinates, in order
      kic report puma560 --at waist=10deg --at elbow=0.3          the others stay as drawn
      kic report twin-arm --at "lift=0.9, neck.1=5deg" --of left_hand,eyes --order 2

    Angles are radians, or degrees with the suffix deg; sliders are in the model's unit of length. The
    freedoms of a joint with several are named joint.1, joint.2 …; those of a ball are the components
    of its rotation vector.

    --json prints one object and nothing else: name, title, units, freedoms, mobility (what they rest on, in
    words); coordinates, coordinate_units, phi; gravity; points; poses (4×4, displacement from the drawing);
    rows, row_units, values (null for angular velocities), holonomic; G[p][n], H[p][m][n], D[p][l][m][n]
    (null above the order), the differentiating index first; I[k][n], P[k][a][b], load, gravity_load, damping
    (null where they have no answer, and dynamics_left_out says why). Floats are exact.
    """
    mechanism = _load(model)
    posture = _posture(mechanism, given) if given else None
    asked = [name.strip() for text in names for name in text.split(",")]
    if "" in asked:
        raise click.BadParameter(f"there is an empty name in {', '.join(names)!r}.", param_hint="'--of'")
    from kic.report import report as account
    from kic.report import report_data

    of = asked or _usual(mechanism)
    configuration = mechanism.at(posture)
    if as_json:
        import json

        click.echo(json.dumps(report_data(mechanism, configuration, of, order), allow_nan=False))
        return
    width = _width()
    click.echo(account(mechanism, configuration, of, order).text(width))
    if not asked and order == 1:
        there = [part.name for kind in ("points", "distances", "bodies") for part in getattr(mechanism, kind)]
        hint = (
            f"More: --of NAME asks about another part ({', '.join(there)}), --order 2 adds H, --order 3 "
            "adds D, --at moves it; see kic report --help."
        )
        click.echo("\n" + textwrap.fill(hint, width))


@main.command()
@click.argument("model", metavar="MODEL_FILE")
def check(model: str) -> None:
    """Read MODEL_FILE and say whether it is a mechanism.

    Prints ok with a summary, or what is wrong and where (exit code 1). Inertia that is missing is a
    warning: the kinematics do without.

    \b
      kic check ./arm.toml
    """
    from kic.report import summary

    mechanism = _load(model)
    mechanism._model.check_number(mechanism.coordinate_names)
    notes = [f"warning: {mechanism.mobility()}"] if mechanism.mobility().doubt() else []
    if not (notes or mechanism._model.tree.open):
        notes = [f"note: {mechanism.mobility()}"]
    try:
        mechanism._model.masses  # noqa: B018
    except KicError as error:
        notes.append(f"warning: {error}")
    notes += [
        f"note: the inertia of {body.name} is an exception. {' '.join(body.inertia_exception.split())}"
        for body in mechanism.bodies
        if body.inertia_exception
    ]
    click.echo(f"ok: {mechanism.name}, {summary(mechanism)}")
    for note in notes:
        click.echo(textwrap.fill(note, _width(), subsequent_indent="  ", break_long_words=False))


@main.command()
def schema() -> None:
    """Print the JSON Schema of model files, for editors.

    \b
      kic schema > kic.schema.json

    Editors with the TOML language server Taplo (such as VS Code with Even Better TOML) complete and
    check a model whose first line is

    \b
      #:schema ./kic.schema.json
    """
    import json

    from kic.modelfile import schema as model_schema

    click.echo(json.dumps(model_schema(), indent=2))


def _usual(mechanism: Mechanism) -> tuple[str, ...]:
    """What is asked where nothing is named: the last point that moves, else the last body.

    Points that only hold a spring come last; a body without reference point is asked for its turning.
    """
    from kic.checks import GROUND

    held = {name for spring in mechanism.springs for name in spring.points}
    bodies = [p.body for p in mechanism.points if p.body != GROUND]
    still = {b for b in bodies if mechanism._model.tree.frame[b] < 0}
    moving = [p.name for p in mechanism.points if p.body not in still | {GROUND}]
    points = [name for name in moving if name not in held] or moving
    if points:
        return (points[-1],)
    body = mechanism.bodies[-1]
    return (body.name,) if body.reference else tuple(f"{body.name}.{w}" for w in ("wx", "wy", "wz"))
