"""Report on a mechanism in one configuration, as printed tables or as data for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kic.description import contacts, couplings
from kic.description.motors import list_motors
from kic.description.parts import Frame, Joint, Measure, Point, ends_text
from kic.description.units import coordinate_units, effort_unit, row_unit
from kic.description.validation import GROUND, part_of
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, KicError, SingularError, counted
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.outputs import WRENCH_LABELS
from kic.mechanism.configuration import (
    Configuration,
    displacement,
    flat_states,
    model_of,
    require_solved,
    single_values,
    tree_coordinates,
    valued,
)
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import names_of
from kic.numerics.arrays import one_batch_axis
from kic.numerics.display import BAR, ROUNDOFF, Summary, column, largest_of
from kic.numerics.rotations import vector_from_matrix
from kic.tasks.actuation.distribution import static_efforts

# with more coordinates, zero columns and the planes of P* are omitted
FULL_TABLES_MAX = 6
_ZEROS_OMITTED = "zero rows and columns are omitted"


def _vector_text(v: Sequence[float]) -> str:
    return f"({', '.join(f'{x:.5g}' for x in v)})"


def _blank_nan(texts: Sequence[str], otherwise: str = "") -> list[str]:
    return [otherwise if text.strip() == "nan" else text for text in texts]


def coordinate_values(configuration: Configuration) -> np.ndarray:
    """Return the values (M,) of the mechanism's coordinates.

    The coordinates of a spherical joint in a loop have no values and are NaN.
    """
    if model_of(configuration).is_open_chain:
        return tree_coordinates(configuration)[1]
    return single_values(configuration, configuration.coordinates)


def dynamics_or_reason(
    configuration: Configuration, wrt: list[str] | None = None
) -> tuple[Dynamics | None, str | None]:
    """Return the dynamics, or None and the reason why they are not available."""
    try:
        return configuration.dynamics(wrt=wrt), None
    except KicError as error:
        return None, str(error)


def gravity_load(
    mechanism: Mechanism, configuration: Configuration, dynamics: Dynamics, wrt: list[str] | None = None
) -> np.ndarray:
    """Return the contribution of gravity to Tᴸ."""
    if not other_loads(mechanism):
        return dynamics.load
    weightless = replace(mechanism, gravity=(0.0, 0.0, 0.0))
    same = Configuration(model_of(weightless), configuration.batch, flat_states(configuration))
    return dynamics.load - same.dynamics(wrt=wrt).load


def other_loads(mechanism: Mechanism) -> list[str]:
    """Return a description of each load other than gravity."""
    u = mechanism.units
    texts = [
        f"force {f.name} at {f.point} {_vector_text(f.force)} {u.force} ({f.axes} axes)"
        for f in mechanism.forces
    ]
    texts += [
        f"moment {m.name} on {m.body} {_vector_text(m.moment)} {u.force} {u.length} ({m.axes} axes)"
        for m in mechanism.moments
    ]
    for s in mechanism.springs:
        text = f"spring {s.name} from {' to '.join(s.points)} ({s.stiffness:.5g} {u.force}/{u.length}, "
        damping = f", damping {s.damping:.5g} {u.force} {u.time}/{u.length}" if s.damping else ""
        texts.append(f"{text}free length {s.rest:.5g} {u.length}{damping})")
    springy = [joint.name for joint in mechanism.joints if any(joint.stiffness)]  # type: ignore[arg-type]
    return texts + ([f"springs in the joints {', '.join(springy)}"] if springy else [])


class ReportBuilder:
    """Tables of a report on one configuration, written to a `Summary`."""

    def __init__(self, mechanism: Mechanism, configuration: Configuration, output: Summary, wrt: Any) -> None:
        self.mechanism, self.configuration, self.output, self.wrt = mechanism, configuration, output, wrt
        self.names = configuration.coordinates
        self.units = coordinate_units(mechanism)
        parts = model_of(mechanism).parts.values()
        places = [getattr(part, key, None) for part in parts for key in ("at", "com")]
        # largest reference length, the scale of round-off
        self.size = max((abs(x) for place in places if place for x in place), default=0.0)

    def coordinates(self) -> None:
        """Write values of the coordinates and the joints to which they belong."""
        phi, names, joints = coordinate_values(self.configuration), self.names, self.mechanism.joints
        if not model_of(self.mechanism).is_open_chain:  # append dependent joints that have a value
            names = (*names, *(c for c in valued(joints) if c not in names))
            phi = single_values(self.configuration, names)
        wide = max(len(self.units[c]) for c in names)
        values = dict(zip(names, _blank_nan(column(phi), "–"), strict=True))
        turns = [c for c in names if self.units[c] == "rad"]
        angles = np.degrees([x for c, x in zip(names, phi, strict=True) if c in turns])
        degrees = dict(zip(turns, _blank_nan(column(angles)), strict=True))
        owner = {
            x.name: (type(x).__name__.lower(), ends_text(x))
            for x in (*self.mechanism.distances, *self.mechanism.angles)
        }
        owner |= {c: (joint.type, " – ".join(joint.bodies)) for joint in joints for c in joint.components}
        owner = {c: owner[c] for c in names} | {
            j.name: (j.type, " – ".join(j.bodies)) for j in joints if not j.dof
        }
        shown = {c: f"{values[c]} {self.units[c].ljust(wide)}" for c in names}
        cells = [[shown.get(c, ""), degrees.get(c, ""), kind, ends] for c, (kind, ends) in owner.items()]
        is_reference = np.array_equal(self.configuration.state, self.mechanism.at().state)
        caption = "coordinates" + " (reference configuration)" * is_reference
        if len(names) > len(self.names):
            caption += ", then dependent ones"
        heads = ["value", "degrees" if turns else "", "joint", "between"]
        self.output.texts(caption, list(owner), heads, cells)

    def bodies(self) -> None:
        """Write masses, current centres of mass and rotations of bodies."""
        bodies = self.mechanism.bodies
        poses = [displacement(self.configuration, body.name) for body in bodies]
        nowhere = np.full(3, np.nan)
        centres = [
            nowhere if b.com is None else pose[:3, :3] @ b.com + pose[:3, 3]
            for b, pose in zip(bodies, poses, strict=True)
        ]
        masses = _blank_nan(column([np.nan if b.mass is None else b.mass for b in bodies]), "?")
        cells = [[mass, *xyz] for mass, xyz in zip(masses, self._xyz(centres), strict=True)]
        heads = [f"mass ({self.mechanism.units.mass})", "x", "y", f"z ({self.mechanism.units.length})"]
        caption = "bodies: mass, centre of mass"
        turns = [vector_from_matrix(pose[:3, :3]) for pose in poses]
        angles = np.linalg.norm(turns, axis=-1)
        if angles.max() > ROUNDOFF:
            caption += ", rotation from the reference configuration"
            heads += ["degrees", "about"]
            for line, degrees, r, angle in zip(cells, column(np.degrees(angles)), turns, angles, strict=True):
                turned = angle > ROUNDOFF
                axis = [text.strip() for text in column(r / angle, 10.0)] if turned else []
                line += [degrees, f"({', '.join(axis)})"] if turned else ["", ""]
        self.output.texts(caption, [b.name for b in bodies], heads, cells)

    def _xyz(self, places: Sequence[np.ndarray]) -> list[list[str]]:
        """Return positions as texts, one column for each component."""
        a = np.array(places)
        columns = [_blank_nan(column(a[:, k], max(largest_of(a), self.size))) for k in range(3)]
        return [list(line) for line in zip(*columns, strict=True)]

    def positions(self) -> None:
        """Write positions of points, values of distances and angles, contacts, couplings and motors."""
        points, unit = self.mechanism.points, self.mechanism.units.length
        if points:
            places = self._xyz([self.configuration.value(p.name) for p in points])
            cells = [[p.body, *xyz] for p, xyz in zip(points, places, strict=True)]
            self.output.texts("points", [p.name for p in points], ["of", "x", "y", f"z ({unit})"], cells)
        if frames := self.mechanism.frames:
            poses = [self.configuration.pose(f.name) for f in frames]
            angles = np.degrees([pose.rotation.as_euler("xyz", suppress_warnings=True) for pose in poses])
            turned = [list(line) for line in zip(*(column(a) for a in angles.T), strict=True)]
            places = self._xyz([pose.translation for pose in poses])
            each = zip(frames, places, turned, strict=True)
            cells = [[f.body, *xyz, *turns] for f, xyz, turns in each]
            heads = ["of", "x", "y", f"z ({unit})", "roll", "pitch", "yaw (degrees)"]
            self.output.texts("frames", [f.name for f in frames], heads, cells)
        for kind, head in (("distances", f"length ({unit})"), ("angles", "angle (rad)")):
            if measures := getattr(self.mechanism, kind):
                values = column([self.configuration.value(x.name) for x in measures])
                ends = [ends_text(x) + ", fixed" * x.fixed for x in measures]
                cells = [list(line) for line in zip(values, ends, strict=True)]
                self.output.texts(kind, [x.name for x in measures], [head, "between"], cells)
        contacts.add_contacts(self.output, self.mechanism.contacts)
        couplings.add_couplings(self.output, self.mechanism._terms)
        list_motors(self.output, self.mechanism.motors)

    def _description(self, name: str) -> str:
        """Return a description of an output for its caption."""
        part = self.mechanism[name]
        if isinstance(part, Point):
            return f"point of {part.body}"
        if isinstance(part, Frame):
            return f"frame of {part.body}"
        if isinstance(part, Measure):
            return f"{type(part).__name__.lower()} {ends_text(part)}"
        return f"{part.type} joint" if isinstance(part, Joint) else "body"

    def coefficients(self, part: str, names: list[str], c: Coefficients) -> None:
        """Write values and G, then H and D plane by plane, of the outputs of one part."""
        output, units = self.output, [row_unit(self.mechanism, q) for q in c.columns]
        rows = [row_unit(self.mechanism, row) for row in c.rows]
        one = units[0] if len(set(units)) == 1 else ""
        top = max(largest_of(c.G), self.size)
        values = np.asarray(c.values)
        cells = [[value, BAR] for value in _blank_nan(column(values, max(largest_of(values), self.size)))]
        # with many coordinates, columns without influence are omitted
        influencing = list(range(len(units)))
        if len(units) > FULL_TABLES_MAX:
            influencing = [n for n in influencing if largest_of(c.G[:, n]) > ROUNDOFF * top]
        for n in influencing:
            for line, entry in zip(cells, column(c.G[:, n], top), strict=True):
                line.append(entry)
        labels = [f"{row} ({unit})" for row, unit in zip(c.rows, rows, strict=True)]
        if not one:
            labels, cells = ["", *labels], [["", BAR, *(f"/{units[n]}" for n in influencing)], *cells]
        name = ", ".join(names)
        caption = f"{name} ({self._description(part)}): value | G = ∂u/∂q" + (f", per {one}" if one else "")
        output.texts(caption, labels, ["value", BAR, *(c.columns[n] for n in influencing)], cells)
        if len(influencing) < len(units):
            zero = [q for n, q in enumerate(c.columns) if n not in influencing]
            output.say(f"  G = 0 for {', '.join(zero)}")
        if c.H is not None:
            per = [f"{u}/{one}²" if one else f"{u} per unit of row and column" for u in rows]
            output.say(f"\nH = ∂G/∂q of {name}: rows differentiate; {_ZEROS_OMITTED}")
            output.planes("H", c.rows, c.columns, c.columns, c.H, per, max(largest_of(c.H), self.size))
        if c.D is not None:
            output.say(f"\nD = ∂H/∂q of {name}: D[u, q] is ∂H[u]/∂q; {_ZEROS_OMITTED}")
            labels = [f"{row}, {q}" for row in c.rows for q in c.columns]
            per = [f"{u}/{one}³" if one else "" for u in rows for _ in c.columns]
            planes = one_batch_axis(c.D, 2)
            output.planes("D", labels, c.columns, c.columns, planes, per, max(largest_of(c.D), self.size))

    def dynamics(self, planes: bool) -> None:
        """Write I*, P* and loads, or the reason why they are not available."""
        output, u = self.output, self.mechanism.units
        d, why = dynamics_or_reason(self.configuration, self.wrt)
        if d is None:
            output.say(f"\nI*, P* and loads are not available. {why}")
            return
        names = d.coordinates
        damped = largest_of(d.damping) > 0
        output.say(f"\nDynamics: T = I* q̈ + q̇ᵀ P* q̇ {'+ B q̇ ' if damped else ''}− Tᴸ")
        turns = [row_unit(self.mechanism, c) == "rad" for c in names]
        unit = f"{u.mass} {u.length}²" if all(turns) else u.mass
        if any(turns) and not all(turns):
            unit = f"{u.mass} {u.length}² rotation, {u.mass} translation, {u.mass} {u.length} mixed"
        output.matrix(f"mass matrix I* ({unit})", names, names, d.I)
        efforts = [f"{u.force} {u.length}" if turn else u.force for turn in turns]
        if planes or len(names) <= FULL_TABLES_MAX:
            output.say(f"\nChristoffel symbols P*: q̇ᵀ P*[k] q̇ is the effort at k; {_ZEROS_OMITTED}")
            per = [f"{effort} per product of rates" for effort in efforts]
            output.planes("P*", names, names, names, d.P, per, max(largest_of(d.P), largest_of(d.I)))
        else:
            output.say(
                f"\nChristoffel symbols P* {d.P.shape} are omitted; print them with --order 2 or --json, "
                "or use dynamics().P in Python."
            )
        if damped:
            unit = ", ".join(dict.fromkeys(efforts))
            output.matrix(f"damping B (efforts in {unit})", names, names, d.damping)
        self._load(d, [f"{c} ({effort})" for c, effort in zip(names, efforts, strict=True)])
        if len(names) == 1:
            s = self.configuration.shaking_force(1.0, wrt=self.wrt)
            caption = f"shaking force ({u.force}) and moment ({u.force} {u.length}) on ground"
            six = np.concatenate([s.force, s.moment])[None]
            output.matrix(f"{caption}, per squared rate of {names[0]}", ["ground"], WRENCH_LABELS, six)

    def _load(self, d: Dynamics, labels: list[str]) -> None:
        """Write the loads and their effort in each coordinate."""
        mechanism, u, g = self.mechanism, self.mechanism.units, self.mechanism.gravity
        others = other_loads(mechanism)
        if not any(g) and not others:
            self.output.say("\nLoads: none (no gravity, no forces, no springs).")
            return
        gravity = [f"gravity {_vector_text(g)} {u.length}/{u.time}²"] if any(g) else []
        self.output.say(f"\nLoads: {'; '.join(gravity + others)}.")
        mass = sum(b.mass or 0.0 for b in mechanism.bodies) + sum(p.mass for p in mechanism.points)
        top = max(largest_of(d.load), mass * max(map(abs, g)) * self.size)
        heads, columns = ["Tᴸ", "holding effort −Tᴸ"], [d.load, -d.load]
        if gravity and others:
            part = gravity_load(mechanism, self.configuration, d, self.wrt)
            heads, columns = ["gravity", "others", *heads], [part, d.load - part, *columns]
        self.output.matrix("applied load Tᴸ", labels, heads, np.stack(columns, axis=1), largest=top)
        self._actuators(top)

    def _actuators(self, top: float) -> None:
        """Write the static efforts of the declared actuators, unless they are the coordinates."""
        mechanism = self.mechanism
        if mechanism.actuators == mechanism.coordinates:
            return
        try:
            names, efforts = static_efforts(self.configuration)
        except (InputError, SingularError) as error:
            self.output.say(f"\nStatic efforts of the actuators are not available. {error}")
            return
        shared = ", shared by the least sum of squares" if len(names) > mechanism.dof else ""
        rows = [f"{name} ({effort_unit(mechanism, name)})" for name in names]
        caption = f"static efforts of {len(names)} actuators{shared}"
        self.output.matrix(caption, rows, ["effort"], efforts[:, None], largest=top)


def report(
    mechanism: Mechanism,
    configuration: Configuration,
    of: str | Sequence[str] = (),
    order: int = 1,
    wrt: str | Iterable[str] | None = None,
) -> Summary:
    """Return a report on a mechanism in one configuration: parts, positions, coefficients, dynamics.

    Arguments are those of `Configuration.to_html`. P* of more than six coordinates requires order 2.
    If the dynamics are not available, for example because masses are missing, the report contains the reason.

    Examples
    --------
    >>> from kic.ui.report.report import report
    >>> arm = kic.load("horn-two-link")
    >>> print(report(arm, arm.at([0.0, 0.5]), of=["reach"]).text().splitlines()[0])
    horn-two-link – Horn's planar two-link arm of equal thin sticks
    """
    chosen = _checked_coordinates(configuration, wrt)
    info = mechanism.info
    output = Summary(f"{mechanism.name} – {info.title}" if info.title else mechanism.name)
    for prose in (info.about, info.drawing and f"Reference configuration: {info.drawing}"):
        if prose:
            output.say("\n" + " ".join(prose.split()))
    u = mechanism.units
    output.say(f"\n{summary(mechanism)} Units: {u.length}, {u.mass}, {u.time}, {u.force}; angles in rad.")
    if not model_of(mechanism).tree.open:
        output.chapter("Mobility")
        output.say(f"\n{mechanism.mobility()}")
    builder = ReportBuilder(mechanism, configuration, output, chosen)
    output.chapter("Configuration")
    builder.coordinates()
    builder.bodies()
    builder.positions()
    parts: dict[str, list[str]] = {}
    for name in _unique_names(of):  # group the outputs of each part
        parts.setdefault(part_of(name), []).append(name)
    for part, names in parts.items():
        output.chapter(f"Coefficients of {part}")
        builder.coefficients(part, names, configuration.coefficients(names, order=order, wrt=chosen))
    output.chapter("Dynamics")
    builder.dynamics(order > 1)
    return output


def report_data(
    mechanism: Mechanism,
    configuration: Configuration,
    of: str | Sequence[str] = (),
    order: int = 1,
    wrt: str | Iterable[str] | None = None,
) -> dict[str, Any]:
    """Return the content of `report` in plain lists and exact numbers, for JSON.

    The keys are listed in ``kic report --help``. Values are None for spherical joints in a loop and for
    quasi-velocities. The differentiating index comes first: H[p][m][n], D[p][l][m][n], P[k][a][b].

    Examples
    --------
    >>> from kic.ui.report.report import report_data
    >>> arm = kic.load("horn-two-link")
    >>> report_data(arm, arm.at([0.0, 0.0]), of=["tip"])["G"]
    [[0.0, 0.0], [2.0, 1.0], [0.0, 0.0]]
    """
    chosen = _checked_coordinates(configuration, wrt)
    names = _unique_names(of)
    rows = configuration.coefficients(names, order=order, wrt=chosen) if names else None
    units = coordinate_units(mechanism)
    data: dict[str, Any] = {
        "name": mechanism.name,
        "title": mechanism.info.title,
        "units": {key: getattr(mechanism.units, key) for key in ("length", "mass", "time", "force")}
        | {"angle": "rad"},
        "dof": mechanism.dof,
        "mobility": mechanism.mobility().summary(),
        "coordinates": list(configuration.coordinates),
        "coordinate_units": [units[c] for c in configuration.coordinates],
        "phi": plain_lists(coordinate_values(configuration)),
        "gravity": list(mechanism.gravity),
        "points": {p.name: plain_lists(configuration.value(p.name)) for p in mechanism.points},
        "poses": {b.name: plain_lists(displacement(configuration, b.name)) for b in mechanism.bodies},
        "frames": {f.name: plain_lists(configuration.pose(f.name).as_matrix()) for f in mechanism.frames},
        "rows": list(rows.rows) if rows else [],
        "row_units": [row_unit(mechanism, row) for row in rows.rows] if rows else [],
        "holonomic": rows.holonomic if rows else None,
    }
    data |= {key: plain_lists(getattr(rows, key, None)) for key in ("values", "G", "H", "D")}
    dynamics, why = dynamics_or_reason(configuration, chosen)
    columns = list(configuration.coordinates)
    if chosen is not None:
        columns = list(configuration.coefficients(chosen, order=1, wrt=chosen).columns)
    data |= {"wrt": columns, "wrt_units": [row_unit(mechanism, q) for q in columns]}
    data |= dict.fromkeys(("I", "P", "load", "gravity_load", "damping"))
    if dynamics is not None:
        data |= {key: plain_lists(getattr(dynamics, key)) for key in ("I", "P", "load", "damping")}
        data["gravity_load"] = plain_lists(gravity_load(mechanism, configuration, dynamics, chosen))
    data |= {"actuators": list(mechanism.actuators), "static_efforts": None}
    try:
        names_of_efforts, efforts = static_efforts(configuration)
        data["static_efforts"] = dict(zip(names_of_efforts, efforts.tolist(), strict=True))
    except KicError:  # without masses, or of forces and moments together
        pass
    return data | {"dynamics_left_out": why}


def summary(mechanism: Mechanism) -> str:
    """Return the numbers of degrees of freedom, parts and loops in one sentence."""
    at_most = "at most " if mechanism.mobility().finite is None else ""
    counts = [at_most + counted(mechanism.dof, "degree of freedom", "degrees of freedom")]
    counts += [counted(len(mechanism.bodies), "body", "bodies"), counted(len(mechanism.joints), "joint")]
    for kind in ("points", "frames", "couplings", "_fixed_distances", "_fixed_angles", "contacts", "motors"):
        if parts := getattr(mechanism, kind):
            counts.append(counted(len(parts), kind[:-1].replace("_", " ").strip()))
    cuts = mechanism.mobility().cuts
    counts.append(f"{counted(len(cuts), 'loop')} (cut at {', '.join(cuts)})" if cuts else "no loop")
    return ", ".join(counts) + "."


def plain_lists(a: np.ndarray | None) -> Any:
    """Return nested lists with None for NaN."""
    if a is None:
        return None
    exact: Any = a.astype(object)
    exact[np.isnan(a)] = None
    return exact.tolist()


def _unique_names(of: str | Iterable[str], argument: str = "of") -> list[str]:
    return list(dict.fromkeys(names_of(of, argument)))


def default_outputs(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the outputs of a report without `of`: the last moving point, else the end of the arm.

    Points that only hold a spring have the lowest priority. A body without reference point has its angular
    velocity as output.
    """
    held = {name for spring in mechanism.springs for name in spring.points}
    bodies = [p.body for p in mechanism.points if p.body != GROUND]
    still = {b for b in bodies if model_of(mechanism).tree.frame[b] < 0}
    moving = [p.name for p in mechanism.points if p.body not in still | {GROUND}]
    points = [name for name in moving if name not in held] or moving
    if points:
        return (points[-1],)
    body = mechanism.bodies[-1]
    if len(mechanism.joints) == len(mechanism.bodies) and (trunk := _trunk(mechanism)):
        body = next(one for one in mechanism.bodies if one.name == trunk[-1])
    if frames := [frame.name for frame in mechanism.frames if frame.body == body.name]:
        return (frames[-1],)
    return (body.name,) if body.reference else tuple(f"{body.name}.{w}" for w in ("wx", "wy", "wz"))


def _trunk(mechanism: Mechanism) -> list[str]:
    """Return the bodies between ground and all ends of a tree; none if they are less than half of a chain.

    An arm ends at the hand that carries its fingers.
    """
    chains: dict[str, list[str]] = {GROUND: []}
    front = [GROUND]
    while front:
        found = {
            end: body
            for body in front
            for joint in mechanism.joints
            if body in joint.bodies
            for end in joint.bodies
            if end not in chains
        }
        chains |= {end: [*chains[body], end] for end, body in found.items()}
        front = list(found)
    carriers = {body for chain in chains.values() for body in chain[:-1]}
    ends = [chain for body, chain in chains.items() if body not in carriers and chain]
    common = [bodies[0] for bodies in zip(*ends, strict=False) if len(set(bodies)) == 1]
    return common if 2 * len(common) >= max(map(len, ends)) else []


def _checked_coordinates(configuration: Configuration, wrt: str | Iterable[str] | None) -> list[str] | None:
    """Return the coordinates `wrt` as a list, or None for those of the mechanism.

    Raise an error for a batch or for names that are not coordinates.
    """
    if configuration.batch:
        message = f"`configuration` must be a single configuration, got a batch {configuration.batch}."
        raise InputError(message, key="configuration", got=configuration.batch)
    require_solved(configuration, "The report")
    if wrt is None:
        return None
    names = _unique_names(wrt, "wrt")
    configuration.coefficients(names, order=1, wrt=names)  # raises for invalid coordinates
    return names
