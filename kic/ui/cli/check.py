"""Commands `kic check` and `kic schema` for authors of model files."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from math import radians
from typing import TYPE_CHECKING

import click

from kic.errors import KicError
from kic.ui.cli import completion as completing
from kic.ui.cli.parsing import json_option, load_model, width

if TYPE_CHECKING:
    from kic.mechanism.mechanism import Mechanism


@click.command()
@click.argument("model", metavar="MODEL_FILE", shell_complete=completing.models)
@json_option
def check(model: str, as_json: bool) -> None:
    """Check that MODEL_FILE is a valid mechanism.

    Print ok with a summary, or the error and its location (exit code 1). Missing inertia is a warning,
    because kinematics does not need it.

    \b
      kic check ./arm.toml
      kic check ./robot.urdf
      kic check ./arm.toml --json

    --json prints a single object: name, ok (always true, since errors are printed to stderr), summary,
    warnings and notes (lists of sentences).
    """
    from kic.mechanism.configuration import model_of
    from kic.ui.report.report import summary

    mechanism = load_model(model)
    compiled = model_of(mechanism)
    compiled.check_number(None)
    warnings, notes = [], []
    if mechanism.mobility().caveat():
        warnings.append(str(mechanism.mobility()))
    elif not compiled.tree.open:
        notes.append(str(mechanism.mobility()))
    try:
        compiled.masses  # noqa: B018
    except KicError as error:
        warnings.append(str(error))
    notes += [
        f"the inertia of {body.name} is an exception. {' '.join(body.inertia_exception.split())}"
        for body in mechanism.bodies
        if body.inertia_exception
    ]
    notes += [*_large_angles(mechanism), *_centers_in_other_units(mechanism), *_idle_gravity(mechanism)]
    notes += mechanism.remarks
    if as_json:
        data = {"name": mechanism.name, "ok": True, "summary": summary(mechanism)}
        click.echo(json.dumps(data | {"warnings": warnings, "notes": notes}))
        return
    click.echo(f"ok: {mechanism.name}, {summary(mechanism)}")
    for note in [f"warning: {text}" for text in warnings] + [f"note: {text}" for text in notes]:
        click.echo(textwrap.fill(note, width(), subsequent_indent="  ", break_long_words=False))


def _large_angles(mechanism: Mechanism) -> Iterator[str]:
    """Yield a note for each reference angle or limit beyond two turns, which may be meant in degrees."""
    from kic.description.units import DEGREES_ANGLE_MAX, DEGREES_ANGLE_MIN, coordinate_units, turns_note

    units = coordinate_units(mechanism)
    for joint in mechanism.joints:
        for name, value in zip(joint.components, joint.value, strict=True):  # type: ignore[arg-type]
            if units[name] == "rad" and abs(value) > DEGREES_ANGLE_MIN:
                yield turns_note(f"value = {value:g} of joint {name}", value, f"write {radians(value):.10g}")
        for name, pair in joint.ranges.items():
            for limit in pair:
                if units.get(name) == "rad" and DEGREES_ANGLE_MIN < abs(limit) <= DEGREES_ANGLE_MAX:
                    yield turns_note(
                        f"limit {limit:g} of joint {name}", limit, f"write {radians(limit):.10g}"
                    )


# largest distance of a centre of mass from the joints of its body, in sizes of the mechanism
DISTANCE_SHARE_MAX = 20.0
# sine of the angle between gravity and a normal that are parallel
PARALLEL_RTOL = 1e-9
# distance of a centre of mass from the origin, as a share of that of its joints, if it is in m and they are
# in mm
THOUSANDTH_MIN, THOUSANDTH_MAX = 3e-5, 3e-3


def _centers_in_other_units(mechanism: Mechanism) -> Iterator[str]:
    """Yield a note for each centre of mass that is far from the joints of its body, or in other units."""
    from math import dist, hypot

    places = [joint.at for joint in mechanism.joints if joint.at is not None]
    size, unit = max((dist(places[0], place) for place in places), default=0.0), mechanism.units.length
    # of the bodies with joints off the origin: all are in thousandths if the file mixes units
    thousandths, others = list[str](), list[str]()
    for body in mechanism.bodies:
        own = [j.at for j in mechanism.joints if body.name in j.bodies and j.at is not None]
        if body.com is None or not own or not size:
            continue
        gap, reach = min(dist(body.com, place) for place in own), max(hypot(*place) for place in own)
        if gap > DISTANCE_SHARE_MAX * size:
            yield (
                f"the centre of mass of {body.name} is {gap:.3g} {unit} from its nearest joint, and the "
                f"joints are within {size:.3g} {unit}. Give all lengths in one unit."
            )
        elif (radius := hypot(*body.com)) and reach:
            small = THOUSANDTH_MIN * reach < radius < THOUSANDTH_MAX * reach
            (thousandths if small else others).append(
                f"the centre of mass of {body.name} is {radius:.3g} {unit} from the origin, and the "
                f"farthest joint of the body {reach:.3g} {unit}. If their units differ, give all lengths "
                "in one."
            )
    if not others:
        yield from thousandths


def _idle_gravity(mechanism: Mechanism) -> Iterator[str]:
    """Yield a note if gravity is perpendicular to the plane of a mechanism, and so has no effect."""
    import numpy as np

    from kic.mechanism.configuration import model_of

    normal, pull = model_of(mechanism).tree.planar_normal, np.array(mechanism.gravity)
    if normal is None or not pull.any() or not any(body.mass for body in mechanism.bodies):
        return
    if np.linalg.norm(np.cross(normal, pull)) < PARALLEL_RTOL * np.linalg.norm(pull):
        yield (
            f"gravity {pull.tolist()} is perpendicular to the plane of the mechanism and has no effect on "
            "its motion. If the mechanism is upright, give gravity in its plane."
        )


@click.command()
def schema() -> None:
    """Print the JSON Schema of model files, for editors.

    \b
      kic schema > kic.schema.json

    Editors with the TOML language server Taplo (such as VS Code with Even Better TOML) complete and
    check a model if its first line is

    \b
      #:schema ./kic.schema.json
    """
    from kic.io.toml import schema as model_schema

    click.echo(json.dumps(model_schema(), indent=2))
