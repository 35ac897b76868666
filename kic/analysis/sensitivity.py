"""Design sensitivities: derivatives of any result with respect to the numbers of a description."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kic.description.description import KINDS, Part
from kic.description.parts import Distance, Frame, Joint
from kic.errors import InputError, KicError, invalid, short_repr, unknown
from kic.mechanism import Mechanism
from kic.numerics.arguments import entries
from kic.numerics.arrays import reals, stepping

_XYZ = ("x", "y", "z")
_TENSOR = ("xx", "yy", "zz", "xy", "xz", "yz")
_COMPONENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("at", "origin", "com", "axis", "axis2", "normal", "force", "moment", "pitch_point"), _XYZ
    ),
    "inertia": _TENSOR,
}
_KEYS = (
    "mass", "com", "inertia", "at", "origin", "axis", "axis2", "normal", "value", "stiffness", "rest",
    "damping", "armature", "force", "moment", "ratios", "gears", "belt", "pitch_point", "friction",
    "resistance", "inductance", "torque_constant", "speed_constant",
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A number of a description: its part, the field, and the change of the field with the number."""

    part: str
    key: str
    direction: np.ndarray


def parameters_of(part: Part) -> Iterator[tuple[str, Parameter]]:
    """Yield names and locations of the numbers of a part, and of the angles by which its axes can turn."""
    for key in _KEYS:
        value = vars(part).get(key)
        # dry friction in a joint is data without effect
        if value is None or (key == "friction" and isinstance(part, Joint)):
            continue
        if isinstance(value, float):
            yield f"{part.name}.{key}", Parameter(part.name, key, np.ones(()))
            continue
        count = _count(part, key, len(value))
        names = _COMPONENTS.get(key) or tuple(str(k + 1) for k in range(len(value)))
        single = isinstance(part, Joint) and part.dof == 1 and key not in _COMPONENTS
        for name, direction in list(zip(names, np.eye(len(value)), strict=True))[:count]:
            yield f"{part.name}.{key}" + ("" if single else f".{name}"), Parameter(part.name, key, direction)
        if key in ("axis", "axis2", "normal"):
            for name, direction in zip(_XYZ, np.eye(3), strict=True):
                yield f"{part.name}.{key}.r{name}", Parameter(part.name, key, np.cross(direction, value))
    if isinstance(part, Frame):
        for name, direction in zip(_XYZ, np.eye(3), strict=True):
            yield f"{part.name}.axes.r{name}", Parameter(part.name, "axes", np.cross(direction, part.axes))


def _count(part: Part, key: str, count: int) -> int:
    """Return the number of entries of a field that may change.

    The rotations of spherical and free joints have no coordinates; only their damping may change.
    """
    ball = isinstance(part, Joint) and part.type in ("spherical", "free")
    return count - 3 if ball and key in ("value", "stiffness", "rest") else count


def find_parameter(mechanism: Mechanism, name: str) -> Parameter:
    """Return the parameter of a name.

    Raise `UnknownNameError` or `InputError` if there is none, with the candidates.
    """
    gravity = {
        f"gravity.{c}": Parameter("", "gravity", direction)
        for c, direction in zip(_XYZ, np.eye(3), strict=True)
    }
    if name in gravity:
        return gravity[name]
    part = mechanism.parts.get(name.partition(".")[0])
    if isinstance(part, Distance):
        raise InputError(
            f"Distance '{part.name}' of '{mechanism.name}' has no number of its own; its points determine "
            f"it. Move these, such as '{part.points[1]}.at.x'.",
            name=name,
        )
    available = {} if part is None else dict(parameters_of(part))
    if name in available:
        return available[name]
    if part is not None:
        key = name.split(".")[1] if "." in name else ""
        if key in _KEYS and getattr(part, key, "") is None:
            raise InputError(
                f"'{part.name}' of '{mechanism.name}' has no `{key}`, and '{name}' cannot change. Add "
                f"`{key}` to the description.",
                name=name,
            )
        raise unknown("number", name, mechanism.name, available)
    candidates = [
        other for kind in KINDS for one in getattr(mechanism, kind) for other, _ in parameters_of(one)
    ]
    raise unknown("number", name, mechanism.name, [*candidates, *gravity])


def with_complex_step(mechanism: Mechanism, weights: Mapping[str, float], step: float) -> Mechanism:
    """Return the mechanism with an imaginary step in some numbers, each times its weight."""
    directions: dict[tuple[str, str], np.ndarray] = {}
    for name, weight in weights.items():
        number = find_parameter(mechanism, name)
        place = number.part, number.key
        directions[place] = directions.get(place, 0.0) + weight * number.direction
    fields: dict[str, dict[str, Any]] = {}
    for (name, key), direction in directions.items():
        value = np.array(mechanism.gravity if not name else getattr(mechanism.parts[name], key))
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

ParameterSpec = str | Mapping[str, float]


def sensitivity(
    of: Mechanism | Callable[[np.ndarray], Mechanism],
    function: Callable[[Mechanism], Any],
    parameters: ParameterSpec | Sequence[ParameterSpec] | Any,
) -> np.ndarray:
    """Return the derivative of any result with respect to dimensions, masses and angles.

    Exact, by complex step: the description gets a tiny imaginary part, and everything computed from it, loop
    closure included, carries the derivative along. Each parameter costs one complex evaluation.

    Parameters
    ----------
    of : Mechanism, or callable
        A mechanism, whose numbers are named; or a function that makes one from numbers x (K,), such as link
        lengths or DH rows. The function is called with complex x. It must use analytic functions of NumPy: no
        abs, no ``float``, no branches on signs that matter.
    function : callable
        Computes the result from the mechanism it is given and returns an array of any shape, such as
        ``lambda m: m.at({"A": 1.2}).coefficients("tip").H``.
    parameters : str, dict, or list of those; or (K,) array_like
        Of a mechanism, names of its numbers:

        - ``"B.at.x"``, ``"tip.at.y"``, ``"rod.com.z"``: positions of joints, points, bodies, contacts;
        - ``"B.axis.rx"`` (rad): rotation of an axis about the world's x; ``"B.axis.x"``: a component; of
          universal and planar joints also ``axis2``, of contacts ``normal``;
        - ``"tool.origin.x"`` and ``"tool.axes.rx"`` of frames, the latter a rotation of all three axes;
        - ``"B.value"``: the coordinate's value in the reference configuration, ``"B.stiffness"``,
          ``"B.rest"``, ``"B.damping"``, ``"B.armature"``; of joints with several degrees
          of freedom ``"hip.value.2"``;
        - ``"rod.mass"``, ``"rod.inertia.xy"``, ``"lump.mass"``, ``"gravity.y"``, ``"push.force.x"``,
          ``"twist.moment.x"``, ``"coil.rest"``, ``"mesh.ratios.1"``, ``"mesh.gears.2"``.

        A dict of names to weights, such as ``{"B.at.x": 0.8, "B.at.y": 0.6}``, is one parameter that moves
        several numbers together. Of a function, the numbers x themselves.

    Returns
    -------
    (K, ...) ndarray
        Derivatives, parameters first; NaN where the result is NaN. A single name counts as a list of one.

    Raises
    ------
    UnknownNameError
        For a number that the description does not have, with the candidates.
    InputError
        For a result that is not an array of numbers, or real although its mechanism carries a step; for
        computations that do not support complex steps: `joint_forces`, `pose`, `prepare_position`, and
        closures of rounded dimensions (closure_tolerance).
    SingularError
        If a change contradicts redundant closure conditions: tilting one axis of a planar linkage makes it
        rigid, and there is no derivative.
    KicError
        Any error that `function` raises.

    Notes
    -----
    The description is one assembled configuration in world coordinates. Moving a joint there keeps the loop
    closed and changes the links on both sides of the joint. Points, centres of mass, other joints, and the
    coordinates' values in the reference configuration stay. A single length is a dict of weights, or a
    function that builds the mechanism again. Inputs of `at` are held.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> G = kic.sensitivity(m, lambda m: m.at({"A": 1.2}).coefficients("tip").G, ["B.at.x", "D.at.y"])
    >>> G.shape
    (2, 3, 1)

    The weight of a pendulum, by its length:

    >>> def pendulum(x):
    ...     rod = kic.Body("rod", mass=2.0, com=(x[0], 0, 0), inertia=(0, 0.1, 0.1))
    ...     pin = kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))
    ...     return kic.Mechanism("pendulum", [rod], [pin], gravity=(0, -9.81, 0))
    >>> kic.sensitivity(pendulum, lambda m: m.at([0.0]).dynamics().load, [0.5]).tolist()
    [[-19.62]]
    """
    if not callable(function):
        raise invalid("function", "must be a function of a mechanism", function)
    designs: list[tuple[str, Callable[[], Mechanism]]]
    if isinstance(of, Mechanism):
        several = [parameters] if isinstance(parameters, str | Mapping) else entries(parameters)
        weighted = [_weights(of, one) for one in several]
        designs = [
            (label, partial(with_complex_step, of, weights, COMPLEX_STEP)) for label, weights in weighted
        ]
    elif callable(of):
        x = reals(parameters)
        if x is None or x.ndim != 1:
            raise invalid("parameters", "must be real numbers (K,) if `of` is a function", parameters)
        designs = [(f"x[{k}]", partial(_stepped, of, x, k)) for k in range(len(x))]
    else:
        raise invalid("of", "must be a mechanism, or a function that makes one from numbers", of)
    derivatives = [_derivative(label, design, function) for label, design in designs]
    if not derivatives:
        reference = of if isinstance(of, Mechanism) else of(np.empty(0))
        return np.empty((0, *np.shape(function(reference))))
    shapes = {derivative.shape for derivative in derivatives}
    if len(shapes) > 1:
        raise InputError(
            f"`function` returned arrays of different shapes: {', '.join(map(str, sorted(shapes)))}.",
            key="function",
            shapes=shapes,
        )
    return np.stack(derivatives)


def _weights(m: Mechanism, one: Any) -> tuple[str, dict[str, float]]:
    """Return the label of a parameter, and the weights of the numbers that it moves."""
    if isinstance(one, str):
        find_parameter(m, one)
        return f"'{one}'", {one: 1.0}
    if not isinstance(one, Mapping) or not all(isinstance(name, str) for name in one):
        raise invalid(
            "parameters", "must be names of numbers, such as 'B.at.x', or dicts of names to weights", one
        )
    weights = {name: reals(weight) for name, weight in one.items()}
    if not all(a is not None and a.ndim == 0 for a in weights.values()):
        raise InputError(
            f"Weights in `parameters` must be numbers, got {short_repr(one)}.", key="parameters", got=one
        )
    for name in weights:
        find_parameter(m, name)
    if not any(weights.values()):
        raise InputError(
            f"Weights in `parameters` must not all be zero, got {short_repr(one)}.", key="parameters", got=one
        )
    return short_repr(dict(one)), {name: float(a) for name, a in weights.items()}  # type: ignore[arg-type]


def _stepped(build: Callable[[np.ndarray], Mechanism], x: np.ndarray, k: int) -> Mechanism:
    """Return the mechanism that a function makes from numbers x (K,) with a complex step in one."""
    moved = x.astype(complex)
    moved[k] += 1j * COMPLEX_STEP
    m = build(moved)
    if not isinstance(m, Mechanism):
        raise InputError(f"The function `of` must return a mechanism, got {short_repr(m)}.", key="of", got=m)
    if not m.has_complex_step:
        raise InputError(
            f"The mechanism does not depend on x[{k}], or the function dropped its imaginary part, for "
            "example by np.abs or np.real. Use analytic functions of NumPy.",
            key="of",
            entries=[k],
        )
    return m


def _derivative(
    label: str, design: Callable[[], Mechanism], function: Callable[[Mechanism], Any]
) -> np.ndarray:
    """Return the imaginary part of a result over the step, NaN where the result is NaN."""
    try:
        with warnings.catch_warnings(), stepping():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            m = design()
            a = np.asarray(function(m))
    except KicError as error:
        error.message = f"Sensitivity to {label}: {error.message}"
        raise
    except np.exceptions.ComplexWarning:
        raise InputError(
            f"Sensitivity to {label}: `function` put complex numbers into a real array, which loses the "
            "derivative. Make its arrays complex, or use np.stack and np.zeros_like.",
            key="function",
        ) from None
    if a.dtype.kind in "fiu" and not m.has_complex_step:  # an axis turned about itself
        return np.where(np.isnan(a), np.nan, 0.0)
    if a.dtype.kind in "fiub":
        raise InputError(
            f"Sensitivity to {label}: `function` returned real numbers. It dropped the derivative, or does "
            "not use the mechanism it is given. np.abs, np.linalg.norm, np.hypot, np.arctan2 and .real drop "
            "imaginary parts: write norms as np.sqrt(v @ v).",
            key="function",
            got=a.dtype,
        )
    if a.dtype.kind != "c":
        raise InputError(
            f"Sensitivity to {label}: `function` must return an array of numbers, got {short_repr(a)}. "
            "Return one of its arrays, such as .G or .I.",
            key="function",
            got=a,
        )
    return np.where(np.isnan(a.real), np.nan, a.imag / COMPLEX_STEP)
