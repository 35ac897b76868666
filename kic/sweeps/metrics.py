"""Ready answers for a sweep: scalars of a configuration by which workspaces are judged.

Each function here makes an answer; called with a `Configuration` it gives one number for each member. All
can be sent to other processes, know their unit, and those that vanish where something is singular know what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.description.description import MechanismDescription
from kic.errors import InputError, short_repr, unknown
from kic.kinematics.scales import coordinate_limits, effort_unit, row_scales, row_unit
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import directions

Names = str | Iterable[str]


@dataclass(frozen=True, eq=False)
class Metric:
    """An answer that knows what it is; made by the functions of `kic.metrics`.

    Attributes
    ----------
    name : str
        What its values are called.
    question : callable
        Function of a `Configuration` and the arguments.
    arguments : dict
        Of the question.
    measure : callable
        Function of the drawing and the arguments that gives the unit.
    singular : dict of str to (tuple of str or None)
        Rows ("inputs", "outputs") that depend on one another where the answer vanishes or is refused; None
        for the mechanism's coordinates.
    """

    name: str
    question: Callable[..., np.ndarray]
    arguments: Mapping[str, Any]
    measure: Callable[..., str]
    singular: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)

    def __call__(self, c: Configuration) -> np.ndarray:
        """The answer (...) at configurations."""
        return self.question(c, **self.arguments)

    def unit(self, drawing: MechanismDescription) -> str:
        """Its unit; '' for none."""
        return self.measure(drawing, **self.arguments)


def value(row: str) -> Metric:
    """Value of a coordinate, of a row of a point, or of a distance.

    Parameters
    ----------
    row : str
        Such as "tip.x"; a bare name of one as an answer of `kic.sweep` means this.
    """
    return Metric(row, _value, {"row": row}, _unit_of_value)


def inverse_condition_number(
    *of: str, wrt: Names | None = None, limits: Any = None, length: float | None = None
) -> Metric:
    """Inverse condition number of a task's G: shortest by longest semi-axis of its velocity ellipsoid.

    1 where the task moves equally well in all directions, 0 where it is singular.

    Parameters
    ----------
    *of : str
        Rows of the task.
    wrt, limits, length
        As in `Configuration.ellipsoid`.

    Examples
    --------
    >>> import kic
    >>> fit = kic.metrics.inverse_condition_number("tip.x", "tip.y")
    >>> fit(kic.load("horn-two-link").at([0.0, 1.5])).round(3)
    np.float64(0.358)
    """
    rows, given = _rows("conditioning", of), _given(wrt)
    arguments = {"of": rows, "wrt": given, "limits": limits, "length": length}
    return Metric("conditioning", _conditioning, arguments, _no_unit, {"outputs": rows, "inputs": given})


def manipulability(
    *of: str, wrt: Names | None = None, limits: Any = None, length: float | None = None
) -> Metric:
    """Yoshikawa's manipulability √det(G Gᵀ) of a task, 0 where it is singular.

    Parameters
    ----------
    *of : str
        Rows of the task.
    wrt, limits, length
        As in `Configuration.ellipsoid`.

    Examples
    --------
    >>> import kic
    >>> w = kic.metrics.manipulability("tip.x", "tip.y")
    >>> w(kic.load("horn-two-link").at([0.0, 1.5])).round(3)  # l₁ l₂ |sin elbow|
    np.float64(0.997)
    """
    rows, given = _rows("manipulability", of), _given(wrt)
    arguments = {"of": rows, "wrt": given, "limits": limits, "length": length}
    return Metric(
        "manipulability", _manipulability, arguments, _unit_of_product, {"outputs": rows, "inputs": given}
    )


def transmission(*inputs: str) -> Metric:
    """How well inputs drive the mechanism, between 0, where the transfer to them is singular, and 1.

    The smallest singular value of the inputs' rows, each on its own scale, on the motions that the closure
    leaves: the inverse of the largest one of the transfer's G^φ_q. See `Singularities.measures`.

    Parameters
    ----------
    *inputs : str
        As many rows as freedoms; none for the mechanism's coordinates.

    Examples
    --------
    >>> import kic
    >>> kic.metrics.transmission("A")(kic.load("four-bar").at({"A": [1.2, 1.3]})).shape
    (2,)
    """
    given = tuple(inputs) or None
    return Metric("transfer", _gap, {"inputs": given, "kinds": ("inputs",)}, _no_unit, {"inputs": given})


def min_singular_value(inputs: Names | None = None, outputs: Names | None = None) -> Metric:
    """How far all is from singular: the least singular value of inputs, outputs and closure, 0 at the worst.

    Parameters
    ----------
    inputs, outputs
        As in `Configuration.singularities`.
    """
    given, wanted = _given(inputs), _given(outputs)
    singular: dict[str, tuple[str, ...] | None] = {"inputs": given}
    if wanted:
        singular["outputs"] = wanted
    arguments = {"inputs": given, "outputs": wanted, "kinds": None}
    return Metric("singular value gap", _gap, arguments, _no_unit, singular)


def inertia(coordinate: str, wrt: Names | None = None) -> Metric:
    """Effective inertia of a coordinate, the others at rest: its entry on the diagonal of I*.

    Parameters
    ----------
    coordinate : str
        One of the coordinates.
    wrt : str or list of str, optional
        The coordinates, as in `Configuration.dynamics`.

    Examples
    --------
    >>> import kic
    >>> kic.metrics.inertia("elbow")(kic.load("horn-two-link").at([0.0, 1.5])).round(4)
    np.float64(0.3333)
    """
    given = _given(wrt)
    coordinate = _coordinate(coordinate)
    arguments = {"coordinate": coordinate, "wrt": given}
    return Metric(f"inertia of {coordinate}", _inertia, arguments, _unit_of_inertia, {"inputs": given})


def mass(*of: str, direction: Any = None, wrt: Names | None = None) -> Metric:
    """Effective mass of a task along a direction: what a force in it has to accelerate, all else free.

    Parameters
    ----------
    *of : str
        Rows of the task.
    direction : (P,) array_like, optional
        In these rows; may be left out of a single one.
    wrt : str or list of str, optional
        As in `Configuration.operational_space`.

    Examples
    --------
    >>> import kic
    >>> m = kic.metrics.mass("tip.x", "tip.y", direction=[1, 0])
    >>> m(kic.load("horn-two-link").at([0.0, 1.5])).round(4)
    np.float64(0.3341)
    """
    rows, given = _rows("mass", of), _given(wrt)
    arguments = {"of": rows, "direction": _direction("mass", rows, direction), "wrt": given}
    return Metric("effective mass", _mass, arguments, _unit_of_mass, {"outputs": rows, "inputs": given})


def static_effort(coordinate: str | None = None, wrt: Names | None = None) -> Metric:
    """Effort that holds the mechanism at rest, against gravity, springs and applied forces.

    Parameters
    ----------
    coordinate : str, optional
        Where; by default the largest of all by its size.
    wrt : str or list of str, optional
        The coordinates, as in `Configuration.dynamics`.

    Examples
    --------
    >>> import kic
    >>> kic.metrics.static_effort("shoulder")(kic.load("horn-two-link").at([0.0, 0.0]))
    np.float64(19.62)
    """
    given = _given(wrt)
    at = None if coordinate is None else _coordinate(coordinate)
    name = f"holding effort of {at}" if at is not None else "largest holding effort"
    return Metric(name, _holding, {"coordinate": at, "wrt": given}, _unit_of_effort, {"inputs": given})


def force(
    *of: str,
    limits: Any,
    direction: Any = None,
    wrt: Names | None = None,
    length: float | None = None,
    load: bool = True,
) -> Metric:
    """Force margin: the largest force of a task that the actuators can press with, beside holding the load.

    With the holding efforts h and the limits L, force f along the unit vector d takes h + Gᵀ d f, and f is
    the largest for which no effort exceeds its limit. Without a direction it is what is left in the worst
    one, min (Lₙ − |hₙ|)/‖Gₙ‖. NaN where the limits do not hold the load itself.

    Parameters
    ----------
    *of : str
        Rows of the task, of one unit or with a `length`.
    limits : dict of str to float, or (M,) array_like
        Largest effort of each coordinate.
    direction : (P,) array_like, optional
        In these rows (angular ones times `length`).
    wrt, length
        As in `Configuration.ellipsoid`.
    load : bool
        Whether efforts also hold gravity, springs and applied forces.

    Examples
    --------
    >>> import kic
    >>> up = kic.metrics.force("tip.y", limits=[30.0, 10.0], direction=[1.0])
    >>> up(kic.load("horn-two-link").at([0.0, 0.0])).round(3)  # the elbow: 10 − 4.905 at 1 m
    np.float64(5.095)
    """
    rows, given = _rows("force", of), _given(wrt)
    along = None if direction is None else _direction("force", rows, direction)
    arguments = {
        "of": rows, "limits": limits, "direction": along, "wrt": given, "length": length,
        "load": flag("load", load),
    }  # fmt: skip
    return Metric("force margin", _force, arguments, _unit_of_force, {"inputs": given})


def _value(c: Configuration, row: str) -> np.ndarray:
    found = c.value(row)
    if found.shape != c.batch:
        raise InputError(f"'{row}' has several rows; a sweep asks one of them, such as '{row}.x'.", name=row)
    return found


def _conditioning(c: Configuration, of: Any, wrt: Any, limits: Any, length: Any) -> np.ndarray:
    return c.ellipsoid("velocity", of, wrt, limits, length).isotropy


def _manipulability(c: Configuration, of: Any, wrt: Any, limits: Any, length: Any) -> np.ndarray:
    return c.ellipsoid("velocity", of, wrt, limits, length).manipulability


def _gap(c: Configuration, inputs: Any, outputs: Any = None, kinds: Any = None) -> np.ndarray:
    measures = c.singularities(inputs, outputs).measures
    return np.min([measures[kind] for kind in kinds or measures], axis=0)


def _inertia(c: Configuration, coordinate: str, wrt: Any) -> np.ndarray:
    d = c.dynamics(wrt)
    n = _place(c, coordinate, d.coordinates)
    return d.I[..., n, n]


def _mass(c: Configuration, of: Any, direction: Any, wrt: Any) -> np.ndarray:
    return c.operational_space(of, wrt).mass(direction)


def _holding(c: Configuration, coordinate: str | None, wrt: Any) -> np.ndarray:
    d = c.dynamics(wrt)
    if coordinate is None:
        coordinate_limits(c._model.description, d.coordinates, None, "force")  # of one unit, or it refuses
        return np.abs(d.load).max(axis=-1)
    return -d.load[..., _place(c, coordinate, d.coordinates)]


def _force(
    c: Configuration, of: Any, limits: Any, direction: Any, wrt: Any, length: Any, load: bool
) -> np.ndarray:
    drawing = c._model.description
    u = c.coefficients(of, order=1, wrt=wrt)
    L = coordinate_limits(drawing, u.columns, limits, "force")
    G = row_scales(drawing, u.rows, length)[:, None] * u.G
    held = -c.dynamics(wrt).load if load else np.zeros(len(u.columns))
    if direction is None:
        share, room, most = np.sqrt((G**2).sum(axis=-2)), L - np.abs(held), L + np.abs(held)
    else:
        moved = np.einsum("...pn,p->...n", G, np.asarray(direction))
        share, helped = np.abs(moved), np.sign(moved) * held
        # what takes no part holds its load all the same
        room, most = L - np.where(share == 0, np.abs(held), helped), L + helped
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(share == 0, np.where(room < 0, -np.inf, np.inf), room / share).min(axis=-1)
        low = np.where(share == 0, 0.0, -most / share).max(axis=-1).clip(0.0)
    return np.where((high >= low) & np.isfinite(room).all(axis=-1), high, np.nan)


def _no_unit(drawing: MechanismDescription, **arguments: Any) -> str:
    return ""


def _unit_of_value(drawing: MechanismDescription, row: str) -> str:
    return row_unit(drawing, row)


def _unit_of_product(
    drawing: MechanismDescription, of: tuple[str, ...], limits: Any, wrt: Any, **rest: Any
) -> str:
    columns = drawing.coordinate_names if wrt is None else wrt
    units = {row_unit(drawing, name) for name in columns}
    if limits is not None or units != {"rad"} or any(row_unit(drawing, row) == "rad" for row in of):
        return ""
    # of single rows; a part's name stands for several, and of how many it is asked for later
    power = {1: "", 2: "²", 3: "³"}.get(len(of)) if all("." in row for row in of) else None
    return "" if power is None else f"{drawing.units.length}{power}"


def _unit_of_inertia(drawing: MechanismDescription, coordinate: str, **rest: Any) -> str:
    turns = row_unit(drawing, coordinate) == "rad"
    return f"{drawing.units.mass} {drawing.units.length}²" if turns else drawing.units.mass


def _unit_of_mass(drawing: MechanismDescription, of: tuple[str, ...], **rest: Any) -> str:
    return _unit_of_inertia(drawing, of[0])


def _unit_of_effort(drawing: MechanismDescription, coordinate: str | None, wrt: Any) -> str:
    names = (coordinate,) if coordinate else wrt or drawing.coordinate_names
    return effort_unit(drawing, names[0])


def _unit_of_force(drawing: MechanismDescription, of: tuple[str, ...], length: Any, **rest: Any) -> str:
    return effort_unit(drawing, of[0]) if length is None else drawing.units.force


def _rows(what: str, of: tuple[str, ...]) -> tuple[str, ...]:
    rows = names_of(of)
    if not rows:
        raise InputError(f"{what}() needs rows of a task, such as {what}('tip.x', 'tip.y'); got none.")
    return rows


def _given(names: Names | None) -> tuple[str, ...] | None:
    return None if names is None else names_of(names)


def _direction(what: str, rows: tuple[str, ...], direction: Any) -> list[float]:
    if direction is None:
        if len(rows) > 1 or "." not in rows[0]:
            raise InputError(f"{what}() of several rows needs a `direction` in them.")
        return [1.0]
    d = directions("direction", direction, None)
    if d.ndim != 1:
        raise InputError(f"`direction` must be one direction, got an array of shape {d.shape}.")
    return d.tolist()


def _coordinate(name: Any) -> str:
    names = names_of(name, "coordinate", least=1)
    if len(names) > 1:
        raise InputError(f"`coordinate` must be one name, got {short_repr(names)}.", name="coordinate")
    return names[0]


def _place(c: Configuration, coordinate: str, coordinates: tuple[str, ...]) -> int:
    if coordinate not in coordinates:
        raise unknown("coordinate", coordinate, c.name, coordinates)
    return coordinates.index(coordinate)


# what makes an answer, and is none itself
MAKERS = (
    value,
    inverse_condition_number,
    manipulability,
    transmission,
    min_singular_value,
    inertia,
    mass,
    static_effort,
    force,
)
# what may be asked by its name alone
BY_NAME: dict[str, Callable[[], Metric]] = {
    "transmission": transmission,
    "min_singular_value": min_singular_value,
    "static_effort": static_effort,
}
