"""The account of a mechanism in one posture, as tables on a sheet: parts, places, coefficients, dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kic import contacts, couplings
from kic.coefficients import Coefficients
from kic.configuration import Configuration
from kic.dynamics import Dynamics
from kic.errors import KicError
from kic.mechanism import Mechanism
from kic.motors import list_motors
from kic.parts import Distance, Joint, Point
from kic.placement import single_values, valued
from kic.rotations import vector_from_matrix
from kic.tables import BAR, ROUNDOFF, Sheet, column, largest_of
from kic.units import coordinate_units, row_unit

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
        sheet: Sheet,
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
        owner = {c: owner[c] for c in names} | {j.name: j for j in joints if not j.freedoms}
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
        contacts.tell(self.sheet, self.mechanism.contacts)
        couplings.tell(self.sheet, self.mechanism.terms)
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
