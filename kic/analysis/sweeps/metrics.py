"""Metrics for sweeps: scalar measures of a configuration.

Each function here makes a `Metric`, which returns one number for each member of a `Configuration`. Metrics
can be pickled, have a unit, and name the rows whose singularity makes them vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kic.analysis.joint_forces import force_table
from kic.analysis.positions.assembly_modes import find_assemblies
from kic.description.description import MechanismDescription
from kic.description.units import effort_unit, row_unit
from kic.errors import InputError, invalid, unknown
from kic.kinematics.scaling import coordinate_limits, row_factors
from kic.mechanism.configuration import Configuration, model_of
from kic.numerics.arguments import flag, names_of, text
from kic.numerics.arrays import directions
from kic.tasks.actuation.distribution import static_efforts

# random starts of a search for all assembly modes of the first member
QUICK_STARTS = 128
Names = str | Iterable[str]


@dataclass(frozen=True, eq=False)
class Metric:
    """Scalar measure of configurations; made by the functions of `kic.metrics`.

    Attributes
    ----------
    name : str
        Name of its values.
    function : callable
        Function of a `Configuration` and the arguments.
    arguments : dict
        Arguments of the function.
    unit_function : callable or None
        Function of the description and the arguments that returns the unit; None without a unit.
    singular : dict of str to (tuple of str or None)
        Rows ("inputs", "outputs") that are linearly dependent where the metric vanishes or is undefined; None
        for the mechanism's coordinates.
    """

    name: str
    function: Callable[..., np.ndarray]
    arguments: Mapping[str, Any]
    unit_function: Callable[..., str] | None = None
    singular: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)

    @property
    def typed(self) -> str:
        """Name of the function of `kic.metrics` that makes the metric."""
        return self.function.__name__.removeprefix("_")

    def __call__(self, c: Configuration) -> np.ndarray:
        """Return the metric (...) of configurations."""
        return self.function(c, **self.arguments)

    def unit(self, description: MechanismDescription) -> str:
        """Return the unit of the metric; '' if it has no unit."""
        return self.unit_function(description, **self.arguments) if self.unit_function else ""


def value(row: str) -> Metric:
    """Return the metric "value of a row", such as "tip.x": a coordinate, a row of a point, or a distance.

    In `Mechanism.sweep` the bare name of the row means this metric.
    """
    return Metric(text("row", row), _value, {"row": row}, row_unit)


def inverse_condition_number(
    *of: str, wrt: Names | None = None, rate_limits: Any = None, length: float | None = None
) -> Metric:
    """Return the metric "inverse condition number" of a task's Jacobian (G).

    It is the ratio of the shortest and the longest semi-axis of the velocity ellipsoid: 1 where the task
    moves equally well in all directions, 0 where it is singular. Arguments are those of
    `Configuration.ellipsoid`.

    Examples
    --------
    >>> fit = kic.metrics.inverse_condition_number("tip.x", "tip.y")
    >>> fit(kic.load("horn-two-link").at([0.0, 1.5])).round(3)
    np.float64(0.358)
    """
    return _of_task(_inverse_condition_number, None, of, wrt, rate_limits, length)


def condition(
    *of: str, wrt: Names | None = None, rate_limits: Any = None, length: float | None = None
) -> Metric:
    """Return the metric "condition" of a task's Jacobian (G), the inverse of `inverse_condition_number`.

    It is 1 where the task moves equally well in all directions, and infinite where it is singular. Arguments
    are those of `Configuration.ellipsoid`.

    Examples
    --------
    >>> kic.metrics.condition("tip.x", "tip.y")(kic.load("horn-two-link").at([0.0, 1.5])).round(3)
    np.float64(2.791)
    """
    return _of_task(_condition, None, of, wrt, rate_limits, length)


def manipulability(
    *of: str, wrt: Names | None = None, rate_limits: Any = None, length: float | None = None
) -> Metric:
    """Return the metric "manipulability" of a task, √det(G Gᵀ) after Yoshikawa, 0 where it is singular.

    Arguments are those of `Configuration.ellipsoid`.

    Examples
    --------
    >>> w = kic.metrics.manipulability("tip.x", "tip.y")
    >>> w(kic.load("horn-two-link").at([0.0, 1.5])).round(3)  # l₁ l₂ |sin elbow|
    np.float64(0.997)
    """
    return _of_task(_manipulability, _unit_of_product, of, wrt, rate_limits, length)


def _of_task(
    function: Any, unit: Any, of: tuple[str, ...], wrt: Names | None, rate_limits: Any, length: Any
) -> Metric:
    """Return a metric of the velocity ellipsoid of a task."""
    key = function.__name__.removeprefix("_")
    rows, given = _rows(key, of), _given("wrt", wrt)
    arguments = {"of": rows, "wrt": given, "rate_limits": rate_limits, "length": length}
    return Metric(key.replace("_", " "), function, arguments, unit, {"outputs": rows, "inputs": given})


def transmission(*drivers: str) -> Metric:
    """Return the metric "transmission": how well inputs drive the mechanism, from 0 (singular) to 1.

    It is the smallest singular value of the scaled rows of the inputs, on motions that the closure allows.
    This is the inverse of the largest singular value of the transfer G^φ_q. See `Singularities.measures`.

    Parameters
    ----------
    *drivers : str
        As many rows as degrees of freedom; none for the mechanism's coordinates.

    Examples
    --------
    >>> kic.metrics.transmission("A")(kic.load("four-bar").at({"A": [1.2, 1.3]})).shape
    (2,)
    """
    given = tuple(drivers) or None
    arguments = {"inputs": given, "kinds": ("inputs",)}
    return Metric("transmission", _min_singular_value, arguments, singular={"inputs": given})


def mechanical_advantage(row: str, coordinate: str | None = None, *, wrt: Names | None = None) -> Metric:
    """Return the metric "mechanical advantage": the effort at a row per effort of a coordinate.

    It is 1/G: without losses, an effort T of the coordinate exerts T/G at the row, if no other effort does
    work. It grows without bound towards a dead centre of the row, and is negative where the row moves
    backwards.

    Parameters
    ----------
    row : str
        Row, such as "tip.x" or "rocker.angle".
    coordinate : str, optional
        The coordinate; it must be named if there are several.
    wrt : str or list of str, optional
        The coordinates, such as a cylinder; by default those of the mechanism.

    Examples
    --------
    >>> lift = kic.linkages.scissor_lift(arm=1.0, stages=2)
    >>> kic.metrics.mechanical_advantage("top.y", wrt="S")(lift.at({"A": 0.5})).round(4)
    np.float64(-0.2732)
    """
    given, at = _given("wrt", wrt), None if coordinate is None else _coordinate(coordinate)
    arguments = {"row": text("row", row), "coordinate": at, "wrt": given}
    singular = {"outputs": (row,), "inputs": given}
    name = f"mechanical advantage of {row}" + (f"/{at}" if at else "")
    return Metric(name, _mechanical_advantage, arguments, _unit_of_advantage, singular)


def transmission_angle(*joint: str) -> Metric:
    """Return the metric "transmission angle" at a pin: the angle between the two bodies that it joins.

    It is from 0 to π (rad), and π/2 is best.

    Parameters
    ----------
    *joint : str
        The pin between coupler and follower, if either has one other hinge; otherwise three hinges, with
        the pin in the middle.

    Examples
    --------
    >>> kic.metrics.transmission_angle("C")(kic.load("four-bar").at({"A": [1.2, 2.2]})).round(4)
    array([1.5659, 2.0318])
    """
    names = names_of(joint, "joint", 1)
    name = f"transmission angle at {names[len(names) // 2]}"
    return Metric(name, force_table.transmission_angle, {"joint": names}, _unit_of_angle)


def min_singular_value(*, drivers: Names | None = None, of: Names | None = None) -> Metric:
    """Return the metric "smallest singular value" of inputs, outputs and closure, 0 at any singularity.

    Arguments are those of `Configuration.singularities`.
    """
    given, wanted = _given("drivers", drivers), _given("of", of)
    singular = {"inputs": given, **({"outputs": wanted} if wanted else {})}
    arguments = {"inputs": given, "outputs": wanted}
    return Metric("smallest singular value", _min_singular_value, arguments, singular=singular)


def inertia(coordinate: str, *, wrt: Names | None = None) -> Metric:
    """Return the metric "effective inertia" of a coordinate: its diagonal entry of the mass matrix (I*).

    The other coordinates are at rest.

    Parameters
    ----------
    coordinate : str
        One of the coordinates.
    wrt : str or list of str, optional
        The coordinates, as in `Configuration.dynamics`.

    Examples
    --------
    >>> kic.metrics.inertia("elbow")(kic.load("horn-two-link").at([0.0, 1.5])).round(4)
    np.float64(0.3333)
    """
    given, coordinate = _given("wrt", wrt), _coordinate(coordinate)
    arguments = {"coordinate": coordinate, "wrt": given}
    return Metric(f"inertia of {coordinate}", _inertia, arguments, _unit_of_inertia, {"inputs": given})


def mass(*of: str, direction: Any = None, wrt: Names | None = None) -> Metric:
    """Return the metric "effective mass" of a task along a direction, with all other motion free.

    Parameters
    ----------
    *of : str
        Rows of the task.
    direction : (P,) array_like, optional
        Components along these rows; optional for a single row.
    wrt : str or list of str, optional
        As in `Configuration.operational_space`.

    Examples
    --------
    >>> m = kic.metrics.mass("tip.x", "tip.y", direction=[1, 0])
    >>> m(kic.load("horn-two-link").at([0.0, 1.5])).round(4)
    np.float64(0.3341)
    """
    rows, given = _rows("mass", of), _given("wrt", wrt)
    arguments = {"of": rows, "direction": _direction("mass", rows, direction), "wrt": given}
    return Metric("effective mass", _mass, arguments, _unit_of_mass, {"outputs": rows, "inputs": given})


def static_effort(coordinate: str | None = None, *, wrt: Names | None = None) -> Metric:
    """Return the metric "static effort" that holds the mechanism against gravity, springs and applied forces.

    Parameters
    ----------
    coordinate : str, optional
        Actuator or coordinate of the effort; by default the largest effort by magnitude.
    wrt : str or list of str, optional
        The coordinates, as in `Configuration.dynamics`; by default the actuators of the mechanism. If these
        are more than the degrees of freedom, they share the load with the least sum of squares.

    Examples
    --------
    >>> kic.metrics.static_effort("shoulder")(kic.load("horn-two-link").at([0.0, 0.0]))
    np.float64(19.62)
    """
    given = _given("wrt", wrt)
    at = None if coordinate is None else _coordinate(coordinate)
    name = f"static effort of {at}" if at is not None else "largest static effort"
    return Metric(name, _static_effort, {"coordinate": at, "wrt": given}, _unit_of_effort, {"inputs": given})


def force(
    *of: str,
    effort_limits: Any,
    direction: Any = None,
    wrt: Names | None = None,
    length: float | None = None,
    load: bool = True,
) -> Metric:
    """Return the metric "force margin": the largest task force on top of the static load.

    With the static efforts h and the limits L, a force f along the unit vector d requires h + Gᵀ d f. The
    margin is the largest f for which no effort exceeds its limit. Without a direction it is the margin in the
    worst direction, min (Lₙ − |hₙ|)/‖Gₙ‖. It is NaN where the load itself exceeds the limits.

    Parameters
    ----------
    *of : str
        Rows of the task, of one unit or with a `length`.
    effort_limits : dict of str to float, or (M,) array_like
        Largest effort of each coordinate.
    direction : (P,) array_like, optional
        Components along these rows (angular components times `length`).
    wrt, length
        As in `Configuration.ellipsoid`.
    load : bool
        True if efforts also hold gravity, springs and applied forces.

    Examples
    --------
    >>> up = kic.metrics.force("tip.y", effort_limits=[30.0, 10.0], direction=[1.0])
    >>> up(kic.load("horn-two-link").at([0.0, 0.0])).round(3)  # the elbow: 10 − 4.905 at 1 m
    np.float64(5.095)
    """
    rows, given = _rows("force", of), _given("wrt", wrt)
    along = None if direction is None else _direction("force", rows, direction)
    arguments = {
        "of": rows, "effort_limits": effort_limits, "direction": along, "wrt": given, "length": length,
        "load": flag("load", load),
    }  # fmt: skip
    return Metric("force margin", _force, arguments, _unit_of_force, {"inputs": given})


def assembly_modes(*of: str) -> Metric:
    """Return the metric "assembly modes": the number of real solutions for the values of rows or poses.

    All complex solutions are collected, as by ``assembly_modes(…, complete=True)``. The metric is NaN where
    the search is incomplete, and for unsolved configurations. Limits do not apply.

    Parameters
    ----------
    *of : str
        Rows whose values are given, such as "tip.x"; by default the coordinates of the mechanism.

    Examples
    --------
    >>> c = kic.load("horn-two-link").at({"shoulder": 0.0, "elbow": [0.0, 1.0]})
    >>> kic.metrics.assembly_modes("tip.x", "tip.y")(c)  # at the limit of reach, and within it
    array([1., 2.])
    """
    arguments = {"of": names_of(of) if of else None}
    return Metric("assembly modes", _assembly_modes, arguments)


def _assembly_modes(c: Configuration, of: tuple[str, ...] | None) -> np.ndarray:
    if not c.ok.any():
        return np.full(c.batch, np.nan)
    values = {name: c.value(name) for name in (c.coordinates if of is None else of)}
    found = find_assemblies(model_of(c), values, None, QUICK_STARTS, 0, None, complete=True, progress=False)
    known = found.completeness
    numbers = np.where(c.ok & (known.evidence != "incomplete"), known.real, np.nan)
    # lost paths concern single members, an incomplete collection all
    others = c.ok & (known.lost == 0)
    if known.lost.any() and others.any():
        numbers[others] = _assembly_modes(c[others], of)
    return numbers


def _value(c: Configuration, row: str) -> np.ndarray:
    found = c.value(row)
    if found.shape != c.batch:
        raise InputError(f"'{row}' has several rows; give one of them, such as '{row}.x'.", name=row)
    return found


def _inverse_condition_number(
    c: Configuration, of: Any, wrt: Any, rate_limits: Any, length: Any
) -> np.ndarray:
    return c.ellipsoid(of, wrt=wrt, rate_limits=rate_limits, length=length).isotropy


def _manipulability(c: Configuration, of: Any, wrt: Any, rate_limits: Any, length: Any) -> np.ndarray:
    return c.ellipsoid(of, wrt=wrt, rate_limits=rate_limits, length=length).manipulability


def _condition(c: Configuration, of: Any, wrt: Any, rate_limits: Any, length: Any) -> np.ndarray:
    return c.ellipsoid(of, wrt=wrt, rate_limits=rate_limits, length=length).condition


def _mechanical_advantage(c: Configuration, row: str, coordinate: str | None, wrt: Any) -> np.ndarray:
    u = c.coefficients(row, order=1, wrt=wrt)
    if len(u.rows) > 1:
        raise InputError(f"'{row}' has several rows; give one of them, such as '{u.rows[0]}'.", name=row)
    if coordinate is None and len(u.columns) > 1:
        listed = ", ".join(u.columns)
        raise InputError(f"`coordinate` must name one of {listed}, got none.", key="coordinate")
    n = 0 if coordinate is None else _place(c, coordinate, u.columns)
    return force_table.mechanical_advantage(u)[..., 0, n][()]


def _min_singular_value(c: Configuration, inputs: Any, outputs: Any = None, kinds: Any = None) -> np.ndarray:
    measures = c.singularities(drivers=inputs, of=outputs).measures
    return np.min([measures[kind] for kind in kinds or measures], axis=0)


def _inertia(c: Configuration, coordinate: str, wrt: Any) -> np.ndarray:
    d = c.dynamics(wrt=wrt)
    n = _place(c, coordinate, d.coordinates)
    return d.I[..., n, n]


def _mass(c: Configuration, of: Any, direction: Any, wrt: Any) -> np.ndarray:
    return c.operational_space(of, wrt=wrt).mass(direction)


def _static_effort(c: Configuration, coordinate: str | None, wrt: Any) -> np.ndarray:
    names, efforts = static_efforts(c, wrt)
    if coordinate is None:
        coordinate_limits(
            model_of(c).description, names, None, "effort_limits"
        )  # raises unless all have one unit
        return np.abs(efforts).max(axis=-1)
    return efforts[..., _place(c, coordinate, names)][()]  # a number for one configuration


def _force(
    c: Configuration, of: Any, effort_limits: Any, direction: Any, wrt: Any, length: Any, load: bool
) -> np.ndarray:
    description = model_of(c).description
    u = c.coefficients(of, order=1, wrt=wrt)
    L = coordinate_limits(description, u.columns, effort_limits, "effort_limits")
    G = row_factors(description, u.rows, length)[:, None] * u.G
    static = -c.dynamics(wrt=wrt).load if load else np.zeros(len(u.columns))
    if direction is None:
        share, upper, lower = np.sqrt((G**2).sum(axis=-2)), L - np.abs(static), L + np.abs(static)
    else:
        moved = np.einsum("...pn,p->...n", G, np.asarray(direction))
        share, helped = np.abs(moved), np.sign(moved) * static
        # coordinates without a share of the force still hold their static load
        upper, lower = L - np.where(share == 0, np.abs(static), helped), L + helped
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(share == 0, np.where(upper < 0, -np.inf, np.inf), upper / share).min(axis=-1)
        low = np.where(share == 0, 0.0, -lower / share).max(axis=-1).clip(0.0)
    return np.where((high >= low) & np.isfinite(upper).all(axis=-1), high, np.nan)


def _unit_of_product(
    description: MechanismDescription, of: tuple[str, ...], rate_limits: Any, wrt: Any, **rest: Any
) -> str:
    columns = description.coordinates if wrt is None else wrt
    units = {row_unit(description, name) for name in columns}
    if rate_limits is not None or units != {"rad"} or any(row_unit(description, row) == "rad" for row in of):
        return ""
    # a part has an unknown number of rows
    power = {1: "", 2: "²", 3: "³"}.get(len(of)) if all("." in row for row in of) else None
    return "" if power is None else f"{description.units.length}{power}"


def _unit_of_advantage(description: MechanismDescription, row: str, coordinate: str | None, wrt: Any) -> str:
    return force_table.advantage_unit(description, row, coordinate or (wrt or description.coordinates)[0])


def _unit_of_angle(description: MechanismDescription, joint: tuple[str, ...]) -> str:
    return "rad"


def _unit_of_inertia(description: MechanismDescription, coordinate: str, **rest: Any) -> str:
    turns = row_unit(description, coordinate) == "rad"
    return f"{description.units.mass} {description.units.length}²" if turns else description.units.mass


def _unit_of_mass(description: MechanismDescription, of: tuple[str, ...], **rest: Any) -> str:
    return _unit_of_inertia(description, of[0])


def _unit_of_effort(description: MechanismDescription, coordinate: str | None, wrt: Any) -> str:
    names = (coordinate,) if coordinate else wrt or description.actuators
    return effort_unit(description, names[0])


def _unit_of_force(description: MechanismDescription, of: tuple[str, ...], length: Any, **rest: Any) -> str:
    return effort_unit(description, of[0]) if length is None else description.units.force


def _rows(what: str, of: tuple[str, ...]) -> tuple[str, ...]:
    rows = names_of(of)
    if not rows:
        raise InputError(
            f"`of` must name rows of a task, got none. For example, write {what}('tip.x', 'tip.y').", key="of"
        )
    return rows


def _given(argument: str, names: Names | None) -> tuple[str, ...] | None:
    return None if names is None else names_of(names, argument)


def _direction(what: str, rows: tuple[str, ...], direction: Any) -> list[float]:
    if direction is None:
        if len(rows) > 1 or "." not in rows[0]:
            raise InputError(f"{what}() requires `direction`, one number for each row.", key="direction")
        return [1.0]
    d = directions("direction", direction, None)
    if d.ndim != 1:
        raise InputError(
            f"`direction` must be one direction, got an array of shape {d.shape}.",
            key="direction",
            got=d.shape,
        )
    return d.tolist()


def _coordinate(name: Any) -> str:
    names = names_of(name, "coordinate", least=1)
    if len(names) > 1:
        raise invalid("coordinate", "must be one name", names)
    return names[0]


def _place(c: Configuration, coordinate: str, coordinates: tuple[str, ...]) -> int:
    if coordinate not in coordinates:
        raise unknown("coordinate", coordinate, c.name, coordinates)
    return coordinates.index(coordinate)


# functions that make metrics
MAKERS = (
    value, condition, inverse_condition_number, manipulability, transmission, mechanical_advantage,
    transmission_angle, min_singular_value, inertia, mass, static_effort, force, assembly_modes,
)  # fmt: skip
# metrics that `Mechanism.sweep` accepts by name
BY_NAME: dict[str, Callable[[], Metric]] = {
    maker.__name__: maker for maker in (transmission, min_singular_value, static_effort, assembly_modes)
}


def __dir__() -> list[str]:
    """Return the names of the metrics."""
    return [maker.__name__ for maker in MAKERS]
