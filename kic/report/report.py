"""A axis_label account of a mechanism in one posture: for people a `Sheet`, for scripts a dict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kic.configuration import Configuration, single_values, valued
from kic.description import contacts, couplings
from kic.description.motors import list_motors
from kic.description.parts import Distance, Joint, Point
from kic.description.validation import GROUND
from kic.display import BAR, ROUNDOFF, Summary, column, largest_of
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, KicError
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.scales import coordinate_units, row_unit
from kic.mechanism import Mechanism
from kic.numerics.rotations import vector_from_matrix

# of larger mechanisms the planes of P* are printed on request only
MANY = 6
_THINNED = "rows and columns that are zero are left out"


def _triple(v: Sequence[float]) -> str:
    return f"({', '.join(f'{x:.5g}' for x in v)})"


def _known(texts: Sequence[str], otherwise: str = "") -> list[str]:
    return [otherwise if text.strip() == "nan" else text for text in texts]


def coordinate_values(configuration: Configuration) -> np.ndarray:
    """Values (M,) of the mechanism's coordinates; NaN where a ball in a loop has none."""
    if configuration._model.tree.open:
        return configuration.phi
    return single_values(configuration, configuration.coordinates)


def dynamics_or_reason(
    configuration: Configuration, wrt: list[str] | None = None
) -> tuple[Dynamics | None, str | None]:
    """The dynamics, or why there are none."""
    try:
        return configuration.dynamics(wrt), None
    except KicError as error:
        return None, str(error)


def gravity_load(
    mechanism: Mechanism, configuration: Configuration, dynamics: Dynamics, wrt: list[str] | None = None
) -> np.ndarray:
    """The part of Tᴸ that is gravity's: what goes when gravity is switched off."""
    if not other_loads(mechanism):
        return dynamics.load
    weightless = replace(mechanism, gravity=(0.0, 0.0, 0.0))
    same = Configuration(weightless._model, configuration.batch, configuration._states)
    return dynamics.load - same.dynamics(wrt).load


def other_loads(mechanism: Mechanism) -> list[str]:
    """Everything that loads beside gravity, in words."""
    u = mechanism.units
    said = [
        f"force {f.name} at {f.point} {_triple(f.force)} {u.force} ({f.axes} axes)" for f in mechanism.forces
    ]
    said += [
        f"moment {m.name} on {m.body} {_triple(m.moment)} {u.force} {u.length} ({m.axes} axes)"
        for m in mechanism.moments
    ]
    for s in mechanism.springs:
        text = f"spring {s.name} from {' to '.join(s.points)} ({s.stiffness:.5g} {u.force}/{u.length}, "
        damping = f", damping {s.damping:.5g} {u.force} {u.time}/{u.length}" if s.damping else ""
        said.append(f"{text}free length {s.rest:.5g} {u.length}{damping})")
    springy = [joint.name for joint in mechanism.joints if any(joint.stiffness)]  # type: ignore[arg-type]
    return said + ([f"springs in the joints {', '.join(springy)}"] if springy else [])


class Account:
    """A report while it is written: the mechanism, its posture, the units, the sheet."""

    def __init__(
        self,
        mechanism: Mechanism,
        configuration: Configuration,
        sheet: Summary,
        wrt: list[str] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.configuration = configuration
        self.sheet = sheet
        self.names = configuration.coordinates
        self.wrt = wrt
        self.units = coordinate_units(mechanism)
        places = [getattr(part, key, None) for part in mechanism.parts.values() for key in ("at", "com")]
        # the largest length drawn, beside which round-off shows
        self.size = max((abs(x) for place in places if place for x in place), default=0.0)

    def posture(self) -> None:
        """Coordinates and the joints that they belong to."""
        phi, names, joints = self.configuration.phi, self.names, self.mechanism.joints
        if not self.mechanism._model.tree.open:  # the other joints follow; balls have no values
            names = (*names, *(c for c in valued(joints) if c not in names))
            phi = single_values(self.configuration, names)
        wide = max(len(self.units[c]) for c in names)
        values = dict(zip(names, _known(column(phi), "–"), strict=True))
        turns = [c for c in names if self.units[c] == "rad"]
        angles = np.degrees([x for c, x in zip(names, phi, strict=True) if c in turns])
        degrees = dict(zip(turns, _known(column(angles)), strict=True))
        owner = {c: joint for joint in joints for c in joint.components}
        owner = {c: owner[c] for c in names} | {j.name: j for j in joints if not j.dof}
        shown = {c: f"{values[c]} {self.units[c].ljust(wide)}" for c in names}
        cells = [
            [shown.get(c, ""), degrees.get(c, ""), joint.type, " – ".join(joint.bodies)]
            for c, joint in owner.items()
        ]
        still = np.array_equal(self.configuration.state, self.mechanism.at().state)
        drawn = (" as drawn" * still) + (", the others following" if len(names) > len(self.names) else "")
        heads = ["value", "degrees" if turns else "", "joint", "between"]
        self.sheet.texts(f"coordinates{drawn}", list(owner), heads, cells)

    def bodies(self) -> None:
        """Masses, centres of mass now, and how far each body is turned from the drawing."""
        bodies = self.mechanism.bodies
        poses = [self.configuration.displacement(body.name) for body in bodies]
        nowhere = np.full(3, np.nan)
        centres = [
            nowhere if b.com is None else pose[:3, :3] @ b.com + pose[:3, 3]
            for b, pose in zip(bodies, poses, strict=True)
        ]
        masses = _known(column([np.nan if b.mass is None else b.mass for b in bodies]), "?")
        cells = [[mass, *xyz] for mass, xyz in zip(masses, self._xyz(centres), strict=True)]
        heads = [f"mass ({self.mechanism.units.mass})", "x", "y", f"z ({self.mechanism.units.length})"]
        caption = "bodies: mass, centre of mass"
        turns = [vector_from_matrix(pose[:3, :3]) for pose in poses]
        angles = np.linalg.norm(turns, axis=-1)
        if angles.max() > ROUNDOFF:
            caption += ", turn from the drawing"
            heads += ["degrees", "about"]
            for line, degrees, r, angle in zip(cells, column(np.degrees(angles)), turns, angles, strict=True):
                turned = angle > ROUNDOFF
                axis = [text.strip() for text in column(r / angle, 10.0)] if turned else []
                line += [degrees, f"({', '.join(axis)})"] if turned else ["", ""]
        self.sheet.texts(caption, [b.name for b in bodies], heads, cells)

    def _xyz(self, places: Sequence[np.ndarray]) -> list[list[str]]:
        """Places as texts, one column for each component."""
        a = np.array(places)
        columns = [_known(column(a[:, k], max(largest_of(a), self.size))) for k in range(3)]
        return [list(line) for line in zip(*columns, strict=True)]

    def places(self) -> None:
        """Where the points are now, and the distances."""
        points, distances, unit = self.mechanism.points, self.mechanism.distances, self.mechanism.units.length
        if points:
            places = self._xyz([self.configuration.value(p.name) for p in points])
            cells = [[p.body, *xyz] for p, xyz in zip(points, places, strict=True)]
            self.sheet.texts("points", [p.name for p in points], ["of", "x", "y", f"z ({unit})"], cells)
        if distances:
            lengths = column([self.configuration.value(d.name) for d in distances])
            cells = [
                [x, " – ".join(d.points) + ", fixed" * d.fixed]
                for x, d in zip(lengths, distances, strict=True)
            ]
            self.sheet.texts("distances", [d.name for d in distances], [f"length ({unit})", "between"], cells)
        contacts.add_contacts(self.sheet, self.mechanism.contacts)
        couplings.add_couplings(self.sheet, self.mechanism.terms)
        list_motors(self.sheet, self.mechanism.motors)

    def _what(self, name: str) -> str:
        """What a dependent is, for its caption."""
        part = self.mechanism.part(name)
        if isinstance(part, Point):
            return f"point of {part.body}"
        if isinstance(part, Distance):
            return f"distance {' – '.join(part.points)}"
        return f"{part.type} joint" if isinstance(part, Joint) else "body"

    def coefficients(self, part: str, names: list[str], c: Coefficients) -> None:
        """Values beside G, then H and D plane by plane, of what is asked of one part."""
        sheet, units = self.sheet, [row_unit(self.mechanism, q) for q in c.columns]
        rows = [row_unit(self.mechanism, row) for row in c.rows]
        one = units[0] if len(set(units)) == 1 else ""
        top = max(largest_of(c.G), self.size)
        values = np.asarray(c.values)
        cells = [[value, BAR] for value in _known(column(values, max(largest_of(values), self.size)))]
        # of many columns those are left out that the dependent does not feel
        felt = [n for n in range(len(units)) if len(units) <= MANY or largest_of(c.G[:, n]) > ROUNDOFF * top]
        for n in felt:
            for line, entry in zip(cells, column(c.G[:, n], top), strict=True):
                line.append(entry)
        labels = [f"{row} ({unit})" for row, unit in zip(c.rows, rows, strict=True)]
        if not one:
            labels, cells = ["", *labels], [["", BAR, *(f"/{units[n]}" for n in felt)], *cells]
        name = ", ".join(names)
        caption = f"{name} ({self._what(part)}): value | G = ∂u/∂q" + (f", per {one}" if one else "")
        sheet.texts(caption, labels, ["value", BAR, *(c.columns[n] for n in felt)], cells)
        if len(felt) < len(units):
            zero = [q for n, q in enumerate(c.columns) if n not in felt]
            sheet.say(f"  G = 0 for {', '.join(zero)}")
        if c.H is not None:
            per = [f"{u}/{one}²" if one else f"{u} per unit of row and column" for u in rows]
            sheet.say(f"\nH = ∂G/∂q of {name}: rows differentiate; {_THINNED}")
            sheet.planes("H", c.rows, c.columns, c.columns, c.H, per, max(largest_of(c.H), self.size))
        if c.D is not None:
            sheet.say(f"\nD = ∂H/∂q of {name}: D[u, q] is ∂H[u]/∂q; {_THINNED}")
            labels = [f"{row}, {q}" for row in c.rows for q in c.columns]
            per = [f"{u}/{one}³" if one else "" for u in rows for _ in c.columns]
            planes = c.D.reshape(-1, *c.D.shape[-2:])
            sheet.planes("D", labels, c.columns, c.columns, planes, per, max(largest_of(c.D), self.size))

    def dynamics(self, planes: bool) -> None:
        """I*, P* and loads, or why there are none."""
        sheet, u = self.sheet, self.mechanism.units
        d, why = dynamics_or_reason(self.configuration, self.wrt)
        if d is None:
            sheet.say(f"\nI*, P* and loads are left out. {why}")
            return
        names = d.coordinates
        damped = largest_of(d.damping) > 0
        sheet.say(f"\nDynamics: T = I* q̈ + q̇ᵀ P* q̇ {'+ B q̇ ' if damped else ''}− Tᴸ")
        turns = [row_unit(self.mechanism, c) == "rad" for c in names]
        unit = f"{u.mass} {u.length}²" if all(turns) else u.mass
        if any(turns) and not all(turns):
            unit = f"{u.mass} {u.length}² turning, {u.mass} sliding, {u.mass} {u.length} mixed"
        sheet.matrix(f"I* inertia ({unit})", names, names, d.I)
        efforts = [f"{u.force} {u.length}" if turn else u.force for turn in turns]
        if planes or len(names) <= MANY:
            sheet.say(f"\nP* inertia power: q̇ᵀ P*[k] q̇ is its effort at k; {_THINNED}")
            per = [f"{effort} per product of rates" for effort in efforts]
            sheet.planes("P*", names, names, names, d.P, per, max(largest_of(d.P), largest_of(d.I)))
        else:
            sheet.say(
                f"\nP* inertia power {d.P.shape} is left out: order 2 shows it (--order 2), "
                "--json has it, in Python it is dynamics().P."
            )
        if damped:
            sheet.matrix(
                f"B damping (efforts in {', '.join(dict.fromkeys(efforts))})", names, names, d.damping
            )
        self._load(d, [f"{c} ({effort})" for c, effort in zip(names, efforts, strict=True)])

    def _load(self, d: Dynamics, labels: list[str]) -> None:
        """What loads, and the load in each coordinate."""
        mechanism, u, g = self.mechanism, self.mechanism.units, self.mechanism.gravity
        others = other_loads(mechanism)
        if not any(g) and not others:
            self.sheet.say("\nNothing loads it: no gravity, no forces, no springs.")
            return
        gravity = [f"gravity {_triple(g)} {u.length}/{u.time}²"] if any(g) else []
        self.sheet.say(f"\nLoads: {'; '.join(gravity + others)}.")
        mass = sum(b.mass or 0.0 for b in mechanism.bodies) + sum(p.mass for p in mechanism.points)
        top = max(largest_of(d.load), mass * max(map(abs, g)) * self.size)
        heads, columns = ["Tᴸ", "to hold it: −Tᴸ"], [d.load, -d.load]
        if gravity and others:
            part = gravity_load(mechanism, self.configuration, d, self.wrt)
            heads, columns = ["gravity", "others", *heads], [part, d.load - part, *columns]
        self.sheet.matrix("Tᴸ applied load", labels, heads, np.stack(columns, axis=1), largest=top)


def report(
    mechanism: Mechanism,
    configuration: Configuration,
    of: str | Sequence[str] = (),
    order: int = 1,
    wrt: str | Iterable[str] | None = None,
) -> Summary:
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
    >>> from kic.report.report import report
    >>> arm = kic.load("horn-two-link")
    >>> print(report(arm, arm.at([0.0, 0.5]), of=["reach"]).text().splitlines()[0])
    horn-two-link – Horn's planar two-link arm of equal thin sticks
    """
    chosen = _chosen(configuration, wrt)
    sheet = Summary(f"{mechanism.name} – {mechanism.title}" if mechanism.title else mechanism.name)
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
    >>> from kic.report.report import report_data
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
        "freedoms": mechanism.dof,
        "mobility": mechanism.mobility().summary(),
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
    counts = [at_most + _count(mechanism.dof, "freedom")]
    counts += [_count(len(mechanism.bodies), "body", "bodies"), _count(len(mechanism.joints), "joint")]
    for kind in ("points", "couplings", "fixed_distances", "contacts", "motors"):
        if parts := getattr(mechanism, kind):
            counts.append(_count(len(parts), kind[:-1].replace("_", " ")))
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


def default_outputs(mechanism: Mechanism) -> tuple[str, ...]:
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
