"""Force table: input, loads, efforts, pin forces, mechanical advantage and transmission angle, by member."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.analysis.joint_forces.joint_forces import driver_columns
from kic.description.description import MechanismDescription
from kic.description.parts import Joint
from kic.description.table_columns import effort_columns
from kic.description.units import row_unit
from kic.description.validation import GROUND
from kic.errors import InputError, invalid
from kic.kinematics.coefficients import Coefficients
from kic.mechanism.configuration import Configuration, displacement, model_of
from kic.numerics.arguments import names_of
from kic.numerics.tables import DataTable, TableAxis, Variable, batch_axes


def mechanical_advantage(u: Coefficients) -> np.ndarray:
    """Return the efforts (..., P, M) at rows per effort at each coordinate, 1/G."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1.0 / u.G)


def advantage_unit(description: MechanismDescription, row: str, coordinate: str) -> str:
    """Return the unit of the mechanical advantage of a row over a coordinate."""
    turning, moving = (row_unit(description, name) == "rad" for name in (coordinate, row))
    length = description.units.length
    return "" if turning == moving else f"1/{length}" if turning else length


def transmission_angle(c: Configuration, joint: Any, argument: str = "joint") -> np.ndarray:
    """Return the angle (...) at a pin between its two bodies; see `metrics.transmission_angle`."""
    model_of(c).require_real("transmission_angle()", "Use coefficients() of the bodies' angles.")
    description = model_of(c).description
    hinges = {j.name: j for j in description.joints if j.type == "revolute"}
    names = names_of(joint, argument, 1)
    if len(names) == 1 and (pin := hinges.get(names[0])) is not None:
        arms = [[j.name for j in hinges.values() if body in j.bodies and j is not pin] for body in pin.bodies]
        if not all(len(found) == 1 for found in arms):
            shown = "; ".join(
                f"{body}: {', '.join(found) or 'none'}" for body, found in zip(pin.bodies, arms, strict=True)
            )
            message = (
                f"`joint` must be given with one other hinge of each body, (…, '{pin.name}', …). {shown}."
            )
            raise InputError(message, key=argument, name=pin.name)
        names = arms[0][0], pin.name, arms[1][0]
    if len(names) != 3 or any(name not in hinges for name in names):
        listed = ", ".join(hinges)
        raise invalid(argument, "must be a revolute joint or three of them", joint, f"Available: {listed}.")
    outer, middle = ([{*hinges[name].bodies} for name in some] for some in (names[::2], names[1:2]))
    first, second = middle[0]
    if len({*names}) < 3 or not any(
        a in outer[0] and b in outer[1] for a, b in ((first, second), (second, first))
    ):
        raise invalid(
            argument, "must have a hinge of one body, their common pin, and a hinge of the other body", names
        )
    one, corner, other = (_place(c, hinges[name]) for name in names)
    a, b = one - corner, other - corner
    return np.asarray(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), np.einsum("...i,...i", a, b)))


def _place(c: Configuration, joint: Joint) -> np.ndarray:
    """Return the position (..., 3) of a hinge."""
    body = next(name for name in joint.bodies if name != GROUND)
    moved = displacement(c, body)
    return np.asarray(moved[..., :3, :3] @ np.array(joint.at) + moved[..., :3, 3])


def tabulate_forces(
    c: Configuration,
    qd: Any,
    qdd: Any,
    of: Any,
    wrt: Any,
    applied: dict[str, Any] | None,
    actuators: Any,
    transmission: Any,
    axis: TableAxis | None = None,
) -> DataTable:
    """Return the table of forces along a motion; see `Configuration.force_table`."""
    description = model_of(c).description
    units, forces = description.units, c.joint_forces(qd, qdd, wrt=wrt, applied=applied, actuators=actuators)
    made, moment = driver_columns(c, wrt, forces.batch), f"{units.force} {units.length}"
    loads: list[tuple[str, Any, str]] = [(x.name, x.force, units.force) for x in description.forces]
    loads += [(x.name, x.moment, moment) for x in description.moments]
    for name, own, unit in loads:
        given = np.broadcast_to(np.asarray((applied or {}).get(name, own)), (*forces.batch, 3))
        parts = zip("xyz", np.moveaxis(given, -1, 0), strict=True)
        made += [Variable(f"{name}.{x}", part, unit) for x, part in parts if part.any()]
    made += effort_columns(description, forces.actuators, forces.effort)
    size = np.linalg.norm(forces.force, axis=-1)
    made += [Variable(f"{joint}.force", size[..., j], units.force) for j, joint in enumerate(forces.joints)]
    if of is not None:
        rows = c.coefficients(of, order=1, wrt=wrt)
        found = mechanical_advantage(rows)
        found = np.broadcast_to(found, (*forces.batch, *found.shape[-2:]))
        for p, row in enumerate(rows.rows):
            for m, column in enumerate(rows.columns):
                pair = f"{row}/{column}" if len(rows.columns) > 1 else row
                unit = advantage_unit(description, row, column)
                made.append(Variable(f"{pair}.advantage", found[..., p, m], unit))
    if transmission is not None:
        names = names_of(transmission, "transmission", 1)
        angle = np.broadcast_to(transmission_angle(c, names, "transmission"), forces.batch)
        made.append(Variable(f"{names[len(names) // 2]}.transmission_angle", angle, "rad"))
    index = batch_axes(forces.batch) if axis is None else (axis,)
    return DataTable(f"{c.name}: drive and load", index, tuple(made))


def force_table(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    *,
    of: str | Iterable[str] | None = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    actuators: str | Iterable[str] | None = None,
    transmission: str | Iterable[str] | None = None,
) -> DataTable:
    """Return the table of a drive and its load: input, load, effort, pin forces, advantage, by member.

    Parameters
    ----------
    qd, qdd : (..., M) array_like, optional
        Rates and accelerations of the coordinates; zero by default.
    of : str or list of str, optional
        Rows whose mechanical advantage over each coordinate is listed; see
        `metrics.mechanical_advantage`.
    wrt, applied, actuators
        As in `joint_forces`. Loads in `applied` may differ in every member.
    transmission : str or (3,) list of str, optional
        Pin whose transmission angle is listed; see `metrics.transmission_angle`.

    Returns
    -------
    DataTable
        Columns "A", "load.x", "A.effort", "B.force", "tip.y.advantage", "C.transmission_angle" and so on;
        ``to_dataframe()``, ``to_csv(path)``.

    Raises
    ------
    InertiaError, InputError, SingularError
        As `joint_forces`; also if a joint has no transmission angle.

    Examples
    --------
    >>> m = kic.load("four-bar").add(kic.Force("load", "tip"))
    >>> turn = m.path({"A": np.linspace(1.2, 7.4, 25)})
    >>> pull = np.outer(1 + np.cos(turn.value("A")), [-5.0, 0.0, 0.0])
    >>> turn.force_table(of="tip.x", applied={"load": pull}, transmission="C").columns[:4]
    ('A', 'load.x', 'A.effort', 'A.force')
    """
    return tabulate_forces(configuration, qd, qdd, of, wrt, applied, actuators, transmission)
