"""Design sensitivities: derivatives of any result with respect to the parameters of a description."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kic.description.description import KINDS, Part, held_coordinates
from kic.description.joint_types import BALL_TYPES
from kic.description.parts import TENSOR_ENTRIES, Body, Distance, Frame, Joint
from kic.errors import (
    DegreesWarning,
    InputError,
    KicError,
    SingularError,
    UnknownNameError,
    invalid,
    short_repr,
    unknown,
)
from kic.kinematics.outputs import XYZ
from kic.mechanism.configuration import Configuration, flat_states, model_of, require_solved
from kic.mechanism.dimensions import dimensions_named, vary_as_drawn
from kic.mechanism.locking import configuration_like, kept_rows, values_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import entries, is_function, names_of
from kic.numerics.arrays import reals, stepping
from kic.numerics.linalg import unit

_TENSOR = ("xx", "yy", "zz", "xy", "xz", "yz")
_VECTORS = (
    "at", "origin", "com", "axis", "axis2", "normal", "tangent", "tangent2", "force", "moment", "pitch_point",
)  # fmt: skip
_COMPONENTS: dict[str, tuple[str, ...]] = dict.fromkeys(_VECTORS, XYZ)
_KEYS = (
    "mass", "com", "inertia", "at", "origin", "axis", "axis2", "normal", "tangent", "tangent2", "value",
    "stiffness", "rest", "damping", "armature", "force", "moment", "ratios", "gears", "belt", "pitch_point",
    "friction", "resistance", "inductance", "torque_constant", "speed_constant",
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """Parameter of a description: its part, the field, and the direction in which it changes the field."""

    part: str
    key: str
    direction: np.ndarray


def parameters_of(part: Part) -> Iterator[tuple[str, Parameter]]:
    """Yield names and parameters of a part: its numbers, and the angles by which its axes can turn."""
    for key in _KEYS:
        value = vars(part).get(key)
        # dry friction in a joint is data without effect
        if value is None or (key == "friction" and isinstance(part, Joint)):
            continue
        if isinstance(value, float):
            yield f"{part.name}.{key}", Parameter(part.name, key, np.ones(()))
            continue
        if key == "inertia":
            for name, i, j in zip(_TENSOR, *TENSOR_ENTRIES, strict=True):
                direction = np.zeros((3, 3))
                direction[i, j] = direction[j, i] = 1.0
                yield f"{part.name}.{key}.{name}", Parameter(part.name, key, direction)
            continue
        count = _count(part, key, len(value))
        names = _COMPONENTS.get(key) or tuple(str(k + 1) for k in range(len(value)))
        single = isinstance(part, Joint) and part.dof == 1 and key not in _COMPONENTS
        for name, direction in list(zip(names, np.eye(len(value)), strict=True))[:count]:
            yield f"{part.name}.{key}" + ("" if single else f".{name}"), Parameter(part.name, key, direction)
        if key in ("axis", "axis2", "normal", "tangent", "tangent2"):
            for name, direction in zip(XYZ, np.eye(3), strict=True):
                yield f"{part.name}.{key}.r{name}", Parameter(part.name, key, np.cross(direction, value))
    if isinstance(part, Frame):
        for name, direction in zip(XYZ, np.eye(3), strict=True):
            yield f"{part.name}.axes.r{name}", Parameter(part.name, "axes", np.cross(direction, part.axes))


def _count(part: Part, key: str, count: int) -> int:
    """Return the number of entries of a field that may change.

    The rotations of spherical and free joints have no coordinates; only their damping may change.
    """
    ball = isinstance(part, Joint) and part.type in BALL_TYPES
    return count - 3 if ball and key in ("value", "stiffness", "rest") else count


def _part_and_parameters(mechanism: Mechanism, name: str) -> tuple[Part | None, dict[str, Parameter]]:
    """Return the part, None for gravity, and the parameters among which one with a name would be."""
    model, (first, _, _) = model_of(mechanism), name.partition(".")
    parts = model.parts
    if first == "gravity" and first not in parts:
        directions = zip(XYZ, np.eye(3), strict=True)
        return None, {f"gravity.{c}": Parameter("", "gravity", direction) for c, direction in directions}
    # the joint of a dimension has dots in its name
    part = parts.get(name.rpartition(".")[0]) or parts.get(first)
    if part is None:
        return None, {}
    return part, model.prepared(("parameters", part.name), lambda: dict(parameters_of(part)))


def find_parameter(mechanism: Mechanism, name: str) -> Parameter:
    """Return the parameter with a name.

    Raise `UnknownNameError` or `InputError` if there is none, with the candidates.
    """
    part, available = _part_and_parameters(mechanism, name)
    if name in available:
        return available[name]
    if isinstance(part, Distance):
        raise InputError(
            f"Distance '{part.name}' of '{mechanism.name}' is not a parameter, because its points determine "
            f"it. Vary these, such as '{part.points[1]}.at.x'.",
            name=name,
        )
    if part is not None:
        key = name.split(".")[1] if "." in name else ""
        if key in _KEYS and getattr(part, key, "") is None:
            raise InputError(
                f"'{part.name}' of '{mechanism.name}' has no `{key}` that can vary. Add it to the "
                "description.",
                name=name,
            )
        if not name.endswith(".length"):
            raise unknown("parameter", name, mechanism.name, available)
    candidates = [
        other for kind in KINDS for one in getattr(mechanism, kind) for other, _ in parameters_of(one)
    ]
    candidates += (f"gravity.{c}" for c in XYZ)
    placed = [joint.name for joint in mechanism.joints if joint.at is not None]
    if name.endswith(".length") and placed:
        raise UnknownNameError(
            f"No parameter '{name}' in '{mechanism.name}'. Lengths follow from positions: name these, such "
            f"as '{placed[-1]}.at.x', or give `kic.sensitivity` a function of the lengths.",
            name=name,
            candidates=tuple(candidates),
        )
    raise unknown("parameter", name, mechanism.name, candidates)


def with_complex_step(mechanism: Mechanism, weights: Mapping[str, float], step: float) -> Mechanism:
    """Return the mechanism with an imaginary step in some parameters, scaled by their weights."""
    directions: dict[tuple[str, str], np.ndarray] = {}
    for name, weight in weights.items():
        number = find_parameter(mechanism, name)
        place = number.part, number.key
        directions[place] = directions.get(place, 0.0) + weight * number.direction
    fields: dict[str, dict[str, Any]] = {}
    for (name, key), direction in directions.items():
        value = np.array(mechanism.gravity if not name else getattr(mechanism[name], key))
        value = value + 1j * step * direction
        fields.setdefault(name, {})[key] = tuple(value.tolist()) if value.ndim else value.item()
    whole = fields.pop("", {})
    with stepping():
        for kind in KINDS:
            parts = getattr(mechanism, kind)
            if any(part.name in fields for part in parts):
                whole[kind] = tuple(
                    replace(part, **fields[part.name]) if part.name in fields else part for part in parts
                )
        return replace(mechanism, **whole)


# imaginary step: its square underflows relative to any number, and the imaginary part is exact to round-off
COMPLEX_STEP = 1e-30

_SECOND = "Use `vary` for second derivatives."
ParameterSpec = str | Mapping[str, float]


def sensitivity(
    make: Callable[[np.ndarray], Mechanism], of: Callable[[Mechanism], Any], x: Any
) -> np.ndarray:
    """Return the derivative of any result with respect to the numbers from which a mechanism is made.

    It is exact, by complex step. `Mechanism.sensitivity` uses parameters of the description instead.

    Parameters
    ----------
    make : callable
        Makes a mechanism from numbers x (K,), such as link lengths or DH rows. It is called with complex x
        and must use analytic functions of NumPy: no abs, no ``float``, no branches on signs that matter. The
        functions of `kic.linkages` that make linkages are analytic in lengths, angles and masses.
    of : callable
        Computes the result, an array of any shape, from a mechanism.
    x : (K,) array_like
        Numbers.

    Returns
    -------
    (K, ...) ndarray
        Derivatives, numbers first; NaN where the result is NaN.

    Raises
    ------
    InputError
        If `make` or `of` is not a function, `x` has another shape, the mechanism does not depend on a number,
        or a result is invalid as in `Mechanism.sensitivity`. Also for a linkage described with links in line
        or equal lengths: its reference configuration has no derivative.
    KicError
        Any error that `make` or `of` raises.

    Examples
    --------
    The load of a pendulum, differentiated with respect to its length:

    >>> def pendulum(x):
    ...     rod = kic.Body("rod", mass=2.0, com=(x[0], 0, 0), inertia=(0, 0.1, 0.1))
    ...     pin = kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))
    ...     return kic.Mechanism("pendulum", [rod], [pin], gravity=(0, -9.81, 0))
    >>> kic.sensitivity(pendulum, lambda m: m.at([0.0]).dynamics().load, [0.5]).tolist()
    [[-19.62]]

    The angle of a rocker, differentiated with respect to the lengths of ground and crank:

    >>> def four_bar(x):
    ...     return kic.linkages.four_bar(ground=x[0], crank=x[1], coupler=3.5, rocker=3.0)
    >>> S = kic.sensitivity(four_bar, lambda m: m.at({"A": 1.2}).value("D"), [4.0, 1.0])
    >>> S.round(6).tolist()
    [0.292781, -0.292394]
    """
    if not is_function(of):
        raise invalid("of", "must be a function of a mechanism", of)
    if not is_function(make):
        raise invalid("make", "must be a function that returns a mechanism for given numbers", make)
    numbers = reals(x)
    if numbers is None or numbers.ndim != 1:
        raise invalid("x", "must be real numbers (K,)", x)
    designs = [(f"x[{k}]", partial(_stepped, make, numbers, k)) for k in range(len(numbers))]
    return _derivatives(designs, of, lambda: _made(make, numbers))


def sensitivity_to_parameters(
    mechanism: Mechanism, of: Callable[[Mechanism], Any], parameters: ParameterSpec | Sequence[ParameterSpec]
) -> np.ndarray:
    """Return the derivative of any result with respect to dimensions, masses and angles.

    The derivative is exact, by complex step: the description gets a tiny imaginary part, which all
    computations, including loop closure, propagate. Each parameter costs one complex evaluation.

    Parameters
    ----------
    of : callable
        Function of a mechanism that returns an array of any shape, such as
        ``lambda m: m.at({"A": 1.2}).coefficients("tip").H``.
    parameters : str, dict, or list of those
        Names of parameters of the description:

        - ``"B.at.x"``, ``"tip.at.y"``, ``"rod.com.z"``: positions of joints, points, bodies, contacts;
        - ``"B.axis.rx"`` (rad): rotation of an axis about the world's x; ``"B.axis.x"``: a component; of
          joints with two axes also ``axis2``, of contacts ``normal``, ``tangent`` and ``tangent2``;
        - ``"tool.origin.x"`` and ``"tool.axes.rx"`` of frames, the latter a rotation of all three axes;
        - ``"B.value"``: the coordinate's value in the reference configuration, ``"B.stiffness"``,
          ``"B.rest"``, ``"B.damping"``, ``"B.armature"``; of joints with several degrees
          of freedom ``"hip.value.2"``;
        - ``"rod.mass"``, ``"rod.inertia.xy"``, ``"lump.mass"``, ``"gravity.y"``, ``"push.force.x"``,
          ``"twist.moment.x"``, ``"coil.rest"``, ``"mesh.ratios.1"``, ``"mesh.gears.2"``.

        A dict of names to weights, such as ``{"B.at.x": 0.8, "B.at.y": 0.6}``, is one parameter that
        moves several numbers together.

    Returns
    -------
    (K, ...) ndarray
        Derivatives, parameters first; NaN where the result is NaN. A single name counts as a list of one.

    Raises
    ------
    UnknownNameError
        If the description has no such number; the error has the candidates.
    InputError
        If the result is not an array of numbers, or is real although the mechanism carries a step. Also
        for computations that do not support complex steps: `joint_forces`, `pose`,
        ``prepare.position()``, and closures of rounded dimensions (closure_tolerance).
    SingularError
        If a change contradicts redundant closure conditions: tilting one axis of a planar linkage makes
        it rigid, and there is no derivative.
    KicError
        Any error that `of` raises.

    See Also
    --------
    Configuration.sensitivity : Of values of rows, by all dimensions together.
    kic.sensitivity : With respect to arguments of a function that makes the mechanism.

    Notes
    -----
    The description is one assembled configuration in world coordinates. Moving a joint there keeps the
    loop closed and changes the links on both sides of the joint. Points, centres of mass, other joints,
    and the coordinates' values in the reference configuration stay. For a single length, use a dict of
    weights, or `kic.sensitivity` with a function that builds the mechanism. Values passed to `at` stay.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> m.sensitivity(lambda m: m.at({"A": 1.2}).coefficients("tip").G, ["B.at.x", "D.at.y"]).shape
    (2, 3, 1)
    """
    if not is_function(of):
        remedy = (
            "For rows, call `sensitivity` of a configuration, such as m.at().sensitivity('tip', 'B.at.x')."
        )
        raise invalid("of", "must be a function of a mechanism", of, remedy)
    model_of(mechanism).require_real("sensitivity()", _SECOND)
    designs = [
        (label, partial(with_complex_step, mechanism, weights, COMPLEX_STEP))
        for label, weights in (_weights(mechanism, one) for one in _several(parameters))
    ]
    return _derivatives(designs, of, lambda: mechanism)


def sensitivity_of_rows(
    configuration: Configuration,
    of: str | Iterable[str],
    parameters: ParameterSpec | Sequence[ParameterSpec],
    *,
    wrt: str | Iterable[str] | None = None,
) -> np.ndarray:
    """Return the derivatives of values of rows with respect to dimensions and other parameters.

    They are influence coefficients of dimensions as coordinates, exact and computed together. Parameters with
    other numbers take one complex step each, as in `Mechanism.sensitivity`.

    Parameters
    ----------
    of : str or list of str
        Names of points, joints, distances or rows with values, as in `value`.
    parameters : str, dict, or list of those
        Names of dimensions as in `Mechanism.vary`, such as ``"B.at.x"``, ``"crank.length"`` or
        ``"B.at.crank.x"`` in one body, and of other numbers as in `Mechanism.sensitivity`. A dict of names to
        weights is one parameter that moves several numbers together.
    wrt : str or list of str, optional
        Coordinates that keep their values, with those that are held. By default the mechanism's own.

    Returns
    -------
    (..., P, K) ndarray
        Derivatives of P rows by K parameters. A single name counts as a list of one.

    Raises
    ------
    UnknownNameError
        If the description has no such number; the error has the candidates.
    InputError
        If rows have no values, or a parameter is a coordinate that `wrt` determines.
    SingularError
        If loops cannot stay closed: tilting one axis of a planar linkage makes it rigid. Also if coordinates
        cannot drive the mechanism.

    See Also
    --------
    Mechanism.sensitivity : Of any other result, also by masses.
    Mechanism.vary : Higher derivatives, and dynamics.
    tolerance_analysis : Effects of tolerances.

    Notes
    -----
    A parameter changes the reference configuration as in `Mechanism.sensitivity`; fixed distances have other
    lengths if their points move, and wheels other ratios, while distances that are coordinates keep theirs.
    Dimensions that only `vary` has change it as in `vary`.

    Examples
    --------
    >>> turn = kic.load("four-bar").path({"A": np.linspace(1.2, 7.4, 25)})
    >>> turn.sensitivity(["tip.x", "tip.y"], ["coupler.length", "D.at.y", "tip.at.x"]).shape
    (25, 2, 3)
    """
    require_solved(configuration, "sensitivity()")
    m: Mechanism = model_of(configuration).description
    model_of(m).require_real("sensitivity()", _SECOND)
    given, held = m.coordinates if wrt is None else names_of(wrt, "wrt"), held_coordinates(m)
    found = configuration.coefficients(of, order=1, wrt=given)
    rows, names = list(found.rows), dict.fromkeys(kept_rows(m, given))
    names |= dict.fromkeys(name for name in held if name in found.columns)
    configuration.value(rows)  # raises an error for rows without values

    designs = [_weights(m, one, _require_number) for one in _several(parameters)]
    for name in (name for _, weights in designs for name in weights):
        if name in held and name not in found.columns:
            raise InputError(
                f"`parameters` must not name coordinates that `wrt` determines, got '{name}'. Leave it out, "
                "or name it in `wrt`.",
                key="parameters",
                name=name,
            )
    G = {name: found.G[..., found.columns.index(name)] for name in held if name in found.columns}
    asked = dict.fromkeys(name for _, weights in designs for name in weights if name not in G)
    G |= _rates(m, configuration, rows, tuple(names), asked)
    others = [{name: x for name, x in weights.items() if name not in G} for _, weights in designs]
    values = values_of(m, configuration, names) if any(others) else {}

    def solved(stepped: Mechanism) -> np.ndarray:
        near = None
        if not model_of(m).is_open_chain or not {*m.coordinates} >= {*names}:
            near = Configuration(model_of(stepped), configuration.batch, flat_states(configuration))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegreesWarning)  # of values that were accepted
            there = stepped.at(values, near=near)
        return np.asarray(there.value(rows)).reshape(found.values.shape)

    made = np.zeros((*found.values.shape, len(designs)))
    for k, ((label, weights), rest) in enumerate(zip(designs, others, strict=True)):
        for name in (name for name in weights if name in G):
            made[..., k] += weights[name] * G[name]
        if rest:
            stepped = partial(with_complex_step, m, rest, COMPLEX_STEP)
            made[..., k] += _derivative(label, stepped, solved)
    return made


def _several(parameters: Any) -> list[Any]:
    """Return one parameter or several as a list."""
    return [parameters] if isinstance(parameters, str | Mapping) else entries(parameters)


def _require_number(m: Mechanism, name: str) -> None:
    """Raise an error if there is neither a dimension nor a parameter with a name."""
    dimensions = dimensions_named(m, name)
    if name not in dimensions and name not in held_coordinates(m):
        try:
            find_parameter(m, name)
        except UnknownNameError as error:
            raise unknown(
                "parameter", name, m.name, list(dict.fromkeys([*dimensions, *error.candidates]))
            ) from None


def _rates(
    m: Mechanism, c: Configuration, rows: list[str], names: tuple[str, ...], asked: Iterable[str]
) -> dict[str, np.ndarray]:
    """Return the derivatives (..., P) of rows by those numbers that are dimensions of `vary`."""
    stretches = {name: rods for name in asked if (rods := _stretches(m, name)) is not None}

    def found(chosen: Iterable[str]) -> dict[str, np.ndarray]:
        dimensions = tuple(dict.fromkeys(name for one in chosen for name in (one, *stretches[one])))
        if not dimensions:
            return {}
        varied = model_of(m).prepared(("vary", dimensions), lambda: vary_as_drawn(m, dimensions))
        u = configuration_like(varied, m, c).coefficients(rows, order=1, wrt=(*names, *dimensions))
        G = {name: u.G[..., u.columns.index(name)] for name in dimensions}
        return {one: G[one] + sum(rate * G[rod] for rod, rate in stretches[one].items()) for one in chosen}

    try:
        return found(stretches)
    except (InputError, SingularError) as error:
        # the complex step decides for those that are parameters, too
        only = [name for name in stretches if name not in _part_and_parameters(m, name)[1]]
        if len(only) < len(stretches):
            return _rates(m, c, rows, names, only)
        message = error.message.replace("`dimensions`", "`parameters`")
        raise type(error)(message, **{**error.numbers, "key": "parameters"}) from error


def _stretches(m: Mechanism, name: str) -> dict[str, float] | None:
    """Return the rates at which a number changes fixed distances, None if it is no dimension of `vary`.

    It is none, too, if `vary` changes rows otherwise.
    """
    parts, (owner, _, key) = model_of(m).parts, name.partition(".")
    part: Any = parts.get(owner)
    if name not in dimensions_named(m, name):
        return None
    if name in _part_and_parameters(m, name)[1] and (
        # its rows follow the centre of mass
        (isinstance(part, Body) and part.at is None)
        # wheels keep their ratio if dimensions vary
        or any(owner in coupling.joints and coupling.ratios is None for coupling in m.couplings)
    ):
        return None
    rates: dict[str, float] = {}
    for rod in m.distances:
        if rod.fixed and owner in rod.points:  # it keeps its length if dimensions vary
            ends: Any = [parts[point] for point in rod.points]
            line = np.subtract(ends[0].at, ends[1].at)
            line = line if rod.axis is None else line - (line @ unit(rod.axis)) * unit(rod.axis)
            side = 1.0 if owner == rod.points[0] else -1.0
            rates[rod.name] = side * float(unit(line)[XYZ.index(key[-1])])
    return rates


def _derivatives(
    designs: Iterable[tuple[str, Callable[[], Mechanism]]],
    of: Callable[[Mechanism], Any],
    reference: Callable[[], Mechanism],
) -> np.ndarray:
    """Return the derivatives of a result for the stepped designs, stacked along the first axis."""
    found = [_derivative(label, design, of) for label, design in designs]
    if not found:
        return np.empty((0, *np.shape(of(reference()))))
    shapes = {derivative.shape for derivative in found}
    if len(shapes) > 1:
        message = f"`of` returned arrays of different shapes: {', '.join(map(str, sorted(shapes)))}."
        raise InputError(message, key="of", shapes=shapes)
    return np.stack(found)


def _weights(
    m: Mechanism, one: Any, require: Callable[[Mechanism, str], Any] = find_parameter
) -> tuple[str, dict[str, float]]:
    """Return the label of a parameter, and the weights of the numbers that it changes."""
    if isinstance(one, str):
        require(m, one)
        return f"'{one}'", {one: 1.0}
    if not isinstance(one, Mapping) or not all(isinstance(name, str) for name in one):
        raise invalid(
            "parameters", "must be names of numbers, such as 'B.at.x', or dicts of names to weights", one
        )
    weights = {name: reals(weight) for name, weight in one.items()}
    if not all(a is not None and a.ndim == 0 for a in weights.values()):
        message = f"Weights in `parameters` must be numbers, got {short_repr(one)}."
        raise InputError(message, key="parameters", got=one)
    for name in weights:
        require(m, name)
    if not any(weights.values()):
        message = f"Weights in `parameters` must not all be zero, got {short_repr(one)}."
        raise InputError(message, key="parameters", got=one)
    return short_repr(dict(one)), {name: float(a) for name, a in weights.items()}  # type: ignore[arg-type]


def _made(build: Callable[[np.ndarray], Mechanism], x: np.ndarray) -> Mechanism:
    """Return the mechanism that a function makes from numbers x (K,)."""
    m = build(x)
    if not isinstance(m, Mechanism):
        raise InputError(f"`make` must return a mechanism, got {short_repr(m)}.", key="make", got=m)
    return m


def _stepped(build: Callable[[np.ndarray], Mechanism], x: np.ndarray, k: int) -> Mechanism:
    """Return the mechanism that a function makes from numbers x (K,) with a complex step in one."""
    moved = x.astype(complex)
    moved[k] += 1j * COMPLEX_STEP
    m = _made(build, moved)
    if not model_of(m).has_complex_step:
        message = (
            f"The mechanism does not depend on x[{k}], or the function dropped its imaginary part, for "
            "example by np.abs or np.real. Use analytic functions of NumPy."
        )
        raise InputError(message, key="make", entries=[k])
    return m


def _derivative(label: str, design: Callable[[], Mechanism], of: Callable[[Mechanism], Any]) -> np.ndarray:
    """Return the imaginary part of a result, divided by the step; NaN where the result is NaN."""
    try:
        with warnings.catch_warnings(), stepping():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            m = design()
            a = np.asarray(of(m))
    except KicError as error:
        error.message = f"Sensitivity to {label}: {error.message}"
        raise
    except np.exceptions.ComplexWarning:
        raise InputError(
            f"Sensitivity to {label}: `of` put complex numbers into a real array, which loses the "
            "derivative. Make its arrays complex, or use np.stack and np.zeros_like.",
            key="of",
        ) from None
    if a.dtype.kind in "fiu" and not model_of(m).has_complex_step:  # an axis turned about itself
        return np.where(np.isnan(a), np.nan, 0.0)
    if a.dtype.kind in "fiub":
        raise InputError(
            f"Sensitivity to {label}: `of` returned real numbers. It drops the derivative, or does "
            "not use the mechanism it is given. np.abs, np.linalg.norm, np.hypot, np.arctan2 and .real drop "
            "imaginary parts: write norms as np.sqrt(v @ v).",
            key="of",
            got=a.dtype,
        )
    if a.dtype.kind != "c":
        raise InputError(
            f"Sensitivity to {label}: `of` must return an array of numbers, got {short_repr(a)}. "
            "Return one of its arrays, such as .G or .I.",
            key="of",
            got=a,
        )
    return np.where(np.isnan(a.real), np.nan, a.imag / COMPLEX_STEP)
