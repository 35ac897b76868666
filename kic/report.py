"""A labelled account of a mechanism in one posture: for people a `Sheet`, for scripts a dict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kic.checks import GROUND
from kic.configuration import Configuration
from kic.errors import InputError
from kic.mechanism import Mechanism
from kic.reporting.account import Account, coordinate_values, dynamics_or_reason, gravity_load
from kic.tables import Sheet
from kic.units import coordinate_units, row_unit


def report(
    mechanism: Mechanism,
    configuration: Configuration,
    of: str | Sequence[str] = (),
    order: int = 1,
    wrt: str | Iterable[str] | None = None,
) -> Sheet:
    """Account of a mechanism in a posture: parts, places, coefficients, dynamics.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    configuration : Configuration
        One posture of it.
    of : str or sequence of str
        Dependents, as in `Configuration.coefficients`; none by default.
    order : {1, 2, 3}
        Highest order of the coefficients. P* of more than six coordinates is shown from order 2 on.
    wrt : str or list of str, optional
        Coordinates of the coefficients and of the dynamics, as in `Configuration.coefficients`; by default
        the mechanism's own.

    Returns
    -------
    Sheet
        Its ``text(width)`` is for a terminal, ``html()`` for a notebook. Where the dynamics have no
        answer, such as without masses, it says why.

    Raises
    ------
    UnknownNameError, InputError
        For dependents or coordinates that are not there, another order, or a batch of postures.
    SingularError
        Where the coordinates can not drive the mechanism.

    Examples
    --------
    >>> import kic
    >>> from kic.report import report
    >>> arm = kic.load("horn-two-link")
    >>> print(report(arm, arm.at([0.0, 0.5]), of=["reach"]).text().splitlines()[0])
    horn-two-link – Horn's planar two-link arm of equal thin sticks
    """
    chosen = _chosen(configuration, wrt)
    sheet = Sheet(f"{mechanism.name} – {mechanism.title}" if mechanism.title else mechanism.name)
    for prose in (mechanism.about, mechanism.drawing and f"Drawn: {mechanism.drawing}"):
        if prose:
            sheet.say("\n" + " ".join(prose.split()))
    u = mechanism.units
    sheet.say(f"\n{summary(mechanism)} Units: {u.length}, {u.mass}, {u.time}, {u.force}; angles in rad.")
    if not mechanism._model.tree.open:
        sheet.chapter("Mobility")
        sheet.say(f"\n{mechanism.mobility()}")
    page = Account(mechanism, configuration, sheet, chosen)
    sheet.chapter("Posture")
    page.posture()
    page.bodies()
    page.places()
    parts: dict[str, list[str]] = {}
    for name in _names(of):  # what is asked of one part stands together
        parts.setdefault(name.partition(".")[0], []).append(name)
    for part, names in parts.items():
        sheet.chapter(f"Coefficients of {part}")
        page.coefficients(part, names, configuration.coefficients(names, order, chosen))
    sheet.chapter("Dynamics")
    page.dynamics(order > 1)
    return sheet


def report_data(
    mechanism: Mechanism,
    configuration: Configuration,
    of: str | Sequence[str] = (),
    order: int = 1,
    wrt: str | Iterable[str] | None = None,
) -> dict[str, Any]:
    """The same as `report` in plain lists and exact numbers, for JSON.

    Parameters
    ----------
    mechanism, configuration, of, order, wrt
        As in `report`.

    Returns
    -------
    dict
        name, title, units, freedoms, mobility (what they rest on, in words); coordinates, coordinate_units,
        phi (their values; None of balls in a loop); gravity; points {name: [x, y, z]}; poses {body: 4×4, its
        displacement from the drawing}; rows, row_units, values (None where there is none), holonomic; wrt,
        wrt_units (the coordinates of what follows), G, H, D (None above the order); I, P, load, gravity_load,
        damping (None where they have no answer, and dynamics_left_out says why). Axes are as in kic:
        H[p][m][n], D[p][l][m][n], P[k][a][b], the differentiating index first.

    Raises
    ------
    UnknownNameError, InputError, SingularError
        As `report`.

    Examples
    --------
    >>> import kic
    >>> from kic.report import report_data
    >>> arm = kic.load("horn-two-link")
    >>> report_data(arm, arm.at([0.0, 0.0]), of=["tip"])["G"]
    [[0.0, 0.0], [2.0, 1.0], [0.0, 0.0]]
    """
    chosen = _chosen(configuration, wrt)
    names = _names(of)
    rows = configuration.coefficients(names, order, chosen) if names else None
    units = coordinate_units(mechanism)
    data: dict[str, Any] = {
        "name": mechanism.name,
        "title": mechanism.title,
        "units": {key: getattr(mechanism.units, key) for key in ("length", "mass", "time", "force")}
        | {"angle": "rad"},
        "freedoms": mechanism.freedoms,
        "mobility": mechanism.mobility().text(),
        "coordinates": list(configuration.coordinates),
        "coordinate_units": [units[c] for c in configuration.coordinates],
        "phi": plain(coordinate_values(configuration)),
        "gravity": list(mechanism.gravity),
        "points": {p.name: plain(configuration.value(p.name)) for p in mechanism.points},
        "poses": {b.name: plain(configuration.displacement(b.name)) for b in mechanism.bodies},
        "rows": list(rows.rows) if rows else [],
        "row_units": [row_unit(mechanism, row) for row in rows.rows] if rows else [],
        "holonomic": rows.holonomic if rows else None,
    }
    data |= {key: plain(getattr(rows, key, None)) for key in ("values", "G", "H", "D")}
    dynamics, why = dynamics_or_reason(configuration, chosen)
    columns = _columns(configuration, chosen)
    data |= {"wrt": columns, "wrt_units": [row_unit(mechanism, q) for q in columns]}
    data |= dict.fromkeys(("I", "P", "load", "gravity_load", "damping"))
    if dynamics is not None:
        data |= {key: plain(getattr(dynamics, key)) for key in ("I", "P", "load", "damping")}
        data["gravity_load"] = plain(gravity_load(mechanism, configuration, dynamics, chosen))
    return data | {"dynamics_left_out": why}


def summary(mechanism: Mechanism) -> str:
    """How many freedoms and parts there are, in a sentence."""
    at_most = "at most " if mechanism.mobility().finite is None else ""
    counts = [at_most + _count(mechanism.freedoms, "freedom")]
    counts += [_count(len(mechanism.bodies), "body", "bodies"), _count(len(mechanism.joints), "joint")]
    for kind in ("points", "couplings", "rods", "contacts", "motors"):
        if parts := getattr(mechanism, kind):
            counts.append(_count(len(parts), "fixed distance" if kind == "rods" else kind[:-1]))
    cuts = mechanism.cuts
    counts.append(f"{_count(len(cuts), 'loop')} (cut at {', '.join(cuts)})" if cuts else "no loop")
    return ", ".join(counts) + "."


def _count(n: int, one: str, several: str = "") -> str:
    return f"{n} {one if n == 1 else several or one + 's'}"


def plain(a: np.ndarray | None) -> Any:
    """Nested lists with None for NaN."""
    if a is None:
        return None
    exact: Any = a.astype(object)
    exact[np.isnan(a)] = None
    return exact.tolist()


def _names(of: str | Sequence[str]) -> list[str]:
    return list(dict.fromkeys([of] if isinstance(of, str) else of))


def usual(mechanism: Mechanism) -> tuple[str, ...]:
    """What is asked where nothing is named: the last point that moves, else the last body.

    Points that only hold a spring come last; a body without reference point is asked for its turning.
    """
    held = {name for spring in mechanism.springs for name in spring.points}
    bodies = [p.body for p in mechanism.points if p.body != GROUND]
    still = {b for b in bodies if mechanism._model.tree.frame[b] < 0}
    moving = [p.name for p in mechanism.points if p.body not in still | {GROUND}]
    points = [name for name in moving if name not in held] or moving
    if points:
        return (points[-1],)
    body = mechanism.bodies[-1]
    return (body.name,) if body.reference else tuple(f"{body.name}.{w}" for w in ("wx", "wy", "wz"))


def _chosen(configuration: Configuration, wrt: str | Iterable[str] | None) -> list[str] | None:
    """The coordinates of the answers, None for the mechanism's own; of one posture."""
    if configuration.batch:
        raise InputError(f"A report is about one posture, got a batch {configuration.batch}.")
    if wrt is None:
        return None
    names = _names([wrt] if isinstance(wrt, str) else list(wrt))
    configuration.coefficients(names, 1, names)  # coordinates that are none are refused before all else
    return names


def _columns(configuration: Configuration, chosen: list[str] | None) -> list[str]:
    """The coordinates of the answers, one for each freedom."""
    if chosen is None:
        return list(configuration.coordinates)
    return list(configuration.coefficients(chosen, 1, chosen).columns)
