"""Design sensitivities: derivatives of any answer with respect to the numbers of the drawing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.description.description import KINDS, Part
from kic.description.parts import Distance, Joint
from kic.errors import InputError, KicError, short_repr, unknown
from kic.mechanism import Mechanism
from kic.numerics.arrays import reals, stepping

_XYZ = ("x", "y", "z")
_TENSOR = ("xx", "yy", "zz", "xy", "xz", "yz")
_COMPONENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("at", "com", "axis", "axis2", "normal", "force", "moment", "pitch_point"), _XYZ),
    "inertia": _TENSOR,
}
_KEYS = (
    "mass", "com", "inertia", "at", "axis", "axis2", "normal", "value", "stiffness", "rest", "damping",
    "force", "moment", "ratios", "gears", "belt", "pitch_point", "friction", "resistance", "inductance",
    "torque_constant", "speed_constant",
)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """Where a number of a drawing stands: its part, the field, and how the field moves with it."""

    part: str
    key: str
    way: np.ndarray


def numbers_of(part: Part) -> Iterator[tuple[str, Number]]:
    """Names and places of the numbers of a part, and of the angles by which its axes can be turned."""
    for key in _KEYS:
        value = getattr(part, key, None)
        if value is None:
            continue
        if isinstance(value, float):
            yield f"{part.name}.{key}", Number(part.name, key, np.ones(()))
            continue
        count = _count(part, key, len(value))
        names = _COMPONENTS.get(key) or tuple(str(k + 1) for k in range(len(value)))
        single = isinstance(part, Joint) and part.dof == 1 and key not in _COMPONENTS
        for name, way in list(zip(names, np.eye(len(value)), strict=True))[:count]:
            yield f"{part.name}.{key}" + ("" if single else f".{name}"), Number(part.name, key, way)
        if key in ("axis", "axis2", "normal"):
            for name, way in zip(_XYZ, np.eye(3), strict=True):
                yield f"{part.name}.{key}.r{name}", Number(part.name, key, np.cross(way, value))


def _count(part: Part, key: str, count: int) -> int:
    """How many of a field's numbers may change: turns of balls have no coordinates, but dampers."""
    ball = isinstance(part, Joint) and part.type in ("spherical", "free")
    return count - 3 if ball and key in ("value", "stiffness", "rest") else count


def find(mechanism: Mechanism, name: str) -> Number:
    """The number of a name.

    Raises
    ------
    UnknownNameError, InputError
        If there is none, with the candidates.
    """
    gravity = {f"gravity.{c}": Number("", "gravity", way) for c, way in zip(_XYZ, np.eye(3), strict=True)}
    if name in gravity:
        return gravity[name]
    part = mechanism.parts.get(name.partition(".")[0])
    if isinstance(part, Distance):
        raise InputError(
            f"Distance '{part.name}' of '{mechanism.name}' has no number of its own: it is as long as drawn. "
            f"Move its points, such as '{part.points[1]}.at.x'.",
            name=name,
        )
    here = {} if part is None else dict(numbers_of(part))
    if name in here:
        return here[name]
    if part is not None:
        key = name.split(".")[1] if "." in name else ""
        if key in _KEYS and getattr(part, key, "") is None:
            raise InputError(
                f"'{part.name}' of '{mechanism.name}' was drawn without `{key}`, so that '{name}' is no "
                "number that could change. Give it first.",
                name=name,
            )
        raise unknown("number", name, mechanism.name, here)
    every = [other for kind in KINDS for one in getattr(mechanism, kind) for other, _ in numbers_of(one)]
    raise unknown("number", name, mechanism.name, [*every, *gravity])


def stepped(mechanism: Mechanism, weights: Mapping[str, float], step: float) -> Mechanism:
    """The mechanism with an imaginary step in some numbers, each as large as its weight says."""
    moves: dict[tuple[str, str], np.ndarray] = {}
    for name, weight in weights.items():
        number = find(mechanism, name)
        place = number.part, number.key
        moves[place] = moves.get(place, 0.0) + weight * number.way
    fields: dict[str, dict[str, Any]] = {}
    for (name, key), way in moves.items():
        value = np.array(mechanism.gravity if not name else getattr(mechanism.parts[name], key))
        moved = value + 1j * step * way
        fields.setdefault(name, {})[key] = tuple(moved.tolist()) if moved.ndim else moved.item()
    whole = fields.pop("", {})
    with stepping():
        for kind in KINDS:
            parts = getattr(mechanism, kind)
            if any(part.name in fields for part in parts):
                whole[kind] = tuple(
                    replace(part, **fields[part.name]) if part.name in fields else part for part in parts
                )
        return replace(mechanism, **whole)


# its square is lost beside any number, so that the imaginary part is the derivative to the last digit
STEP = 1e-30

Design = str | Mapping[str, float]


def sensitivity(
    of: Mechanism | Callable[[np.ndarray], Mechanism],
    answer: Callable[[Mechanism], Any],
    parameters: Design | Sequence[Design] | Any,
) -> np.ndarray:
    """Derivative of any answer with respect to dimensions, masses and angles of the drawing.

    Exact, by complex step: the drawing gets a tiny imaginary part, and all that follows from it, the closing
    of loops included, carries the derivative along. Each parameter costs one complex evaluation.

    Parameters
    ----------
    of : Mechanism, or callable
        A mechanism, of which numbers are named; or a function that makes one from numbers x (K,), such as
        link lengths or DH rows. The function is given complex x, and may calculate with them as with real
        ones, by analytic functions of NumPy: no abs, no comparison of signs that matter, no ``float``.
    answer : callable
        Asks the mechanism it is given, from its posture on, and returns an array of any shape, such as
        ``lambda m: m.at({"A": 1.2}).coefficients("tip").H``.
    parameters : str, dict, or list of those; or (K,) array_like
        Of a mechanism, names of its numbers:

        - ``"B.at.x"``, ``"tip.at.y"``, ``"rod.com.z"``: places of joints, points, bodies, contacts;
        - ``"B.axis.rx"`` (rad): the turning of an axis about the world's x, ``"B.axis.x"``: a component of
          it as drawn; of universal and planar joints ``axis2``, too, of contacts ``normal``;
        - ``"B.value"``: what the coordinate reads as drawn, ``"B.stiffness"``, ``"B.rest"``,
          ``"B.damping"``; of joints with several freedoms ``"hip.value.2"``;
        - ``"rod.mass"``, ``"rod.inertia.xy"``, ``"lump.mass"``, ``"gravity.y"``, ``"push.force.x"``,
          ``"twist.moment.x"``, ``"coil.rest"``, ``"mesh.ratios.1"``, ``"mesh.gears.2"``.

        A dict of names to weights, as ``{"B.at.x": 0.8, "B.at.y": 0.6}``, is one parameter that moves several
        numbers together. Of a function, the numbers x themselves.

    Returns
    -------
    (K, ...) ndarray
        Derivatives, parameters in front; NaN where the answer is. A name alone counts as a list of one.

    Raises
    ------
    UnknownNameError
        For a number that the drawing does not have, with the candidates.
    InputError
        For an answer that is no array of numbers, or real although its mechanism carries a step; for
        questions that can not follow it: `joint_forces`, `pose`, `prepare_position`, and closures of rounded
        dimensions (closure_tolerance).
    SingularError
        Where a change contradicts redundant closure conditions: to tilt one axis of a planar linkage makes
        it rigid, and there is no derivative.
    KicError
        Whatever the answer itself raises.

    Notes
    -----
    The drawing is one assembled posture in world coordinates. To move a joint there keeps the loop closed and
    changes the links on both sides of the joint; points, centres of mass and other joints stay where they are
    drawn, and so does what the coordinates read there. One length alone is a dict of weights, or a function
    that draws the mechanism anew. Inputs of `at` are held.

    Examples
    --------
    >>> import kic
    >>> import numpy as np
    >>> m = kic.load("four-bar")
    >>> G = kic.sensitivity(m, lambda m: m.at({"A": 1.2}).coefficients("tip").G, ["B.at.x", "D.at.y"])
    >>> G.shape
    (2, 3, 1)

    The pendulum's weight, by its length:

    >>> def pendulum(x):
    ...     rod = kic.Body("rod", mass=2.0, com=(x[0], 0, 0), inertia=(0, 0.1, 0.1))
    ...     pin = kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))
    ...     return kic.Mechanism("pendulum", [rod], [pin], gravity=(0, -9.81, 0))
    >>> kic.sensitivity(pendulum, lambda m: m.at([0.0]).dynamics().load, [0.5]).tolist()
    [[-19.62]]
    """
    if not callable(answer):
        raise InputError(f"Expected `answer` to be a function of a mechanism, got {short_repr(answer)}.")
    if isinstance(of, Mechanism):
        designs, drawn = _of_names(of, parameters), of
    elif callable(of):
        x = reals(parameters)
        if x is None or x.ndim != 1:
            raise InputError(
                "Expected the numbers of which the mechanism is made to be a list (K,) of real ones, got "
                f"{short_repr(parameters)}."
            )
        designs, drawn = _of_numbers(of, x), None
    else:
        raise InputError(
            f"Expected a mechanism, or a function that makes one from numbers, got {short_repr(of)}."
        )
    parts = [_derivative(label, design, answer) for label, design in designs]
    if not parts:
        if drawn is None:
            drawn = of(np.empty(0))  # type: ignore[operator]
        return np.empty((0, *np.shape(answer(drawn))))
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise InputError(
            f"`answer` returned arrays of different shapes: {', '.join(map(str, sorted(shapes)))}.",
            shapes=shapes,
        )
    return np.stack(parts)


def _of_names(m: Mechanism, given: Any) -> Iterator[tuple[str, Callable[[], Mechanism]]]:
    """Labels of parameters, and what makes the mechanism with a step in each; names are looked up first."""
    several = given if np.iterable(given) and not isinstance(given, str | Mapping) else [given]
    weighted = [_weights(m, one) for one in several]
    return ((label, lambda w=weights: stepped(m, w, STEP)) for label, weights in weighted)  # type: ignore[misc]


def _weights(m: Mechanism, one: Any) -> tuple[str, dict[str, float]]:
    """What moves with a parameter, and its label."""
    if isinstance(one, str):
        find(m, one)
        return f"'{one}'", {one: 1.0}
    if not isinstance(one, Mapping) or not all(isinstance(name, str) for name in one):
        raise InputError(
            f"Expected names of numbers, such as 'B.at.x', or a dict of names to weights, got {short_repr(one)}."
        )
    weights = {name: reals(weight) for name, weight in one.items()}
    if not all(a is not None and a.ndim == 0 for a in weights.values()):
        raise InputError(f"Expected weights to be numbers, got {short_repr(one)}.")
    for name in weights:
        find(m, name)
    if not any(weights.values()):
        raise InputError(f"A parameter must move something; the weights of {short_repr(one)} are all zero.")
    return short_repr(dict(one)), {name: float(a) for name, a in weights.items()}  # type: ignore[arg-type]


def _of_numbers(
    build: Callable[[np.ndarray], Mechanism], x: np.ndarray
) -> Iterator[tuple[str, Callable[[], Mechanism]]]:
    """The same for numbers x (K,) from which a function makes the mechanism."""

    def make(k: int) -> Mechanism:
        moved = x.astype(complex)
        moved[k] += 1j * STEP
        m = build(moved)
        if not isinstance(m, Mechanism):
            raise InputError(f"Expected the function to make a mechanism, got {short_repr(m)}.")
        if not m.has_complex_step:
            raise InputError(
                f"The mechanism that was made does not depend on x[{k}], or its imaginary part was dropped "
                "on the way, as by np.abs and np.real. Calculate with analytic functions of NumPy."
            )
        return m

    return ((f"x[{k}]", lambda k=k: make(k)) for k in range(len(x)))  # type: ignore[misc]


def _derivative(
    label: str, design: Callable[[], Mechanism], answer: Callable[[Mechanism], Any]
) -> np.ndarray:
    """The imaginary part of an answer over the step, NaN where the answer is."""
    try:
        with warnings.catch_warnings(), stepping():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            m = design()
            a = np.asarray(answer(m))
    except KicError as error:
        error.message = f"Sensitivity to {label}: {error.message}"
        raise
    except np.exceptions.ComplexWarning:
        raise InputError(
            f"Sensitivity to {label}: `answer` put complex numbers into a real array, which would lose the "
            "derivative. Make its arrays complex, or with np.stack and np.zeros_like of what came."
        ) from None
    if a.dtype.kind in "fiu" and not m.has_complex_step:  # an axis turned about itself
        return np.where(np.isnan(a), np.nan, 0.0)
    if a.dtype.kind in "fiub":
        raise InputError(
            f"Sensitivity to {label}: `answer` returned real numbers, so that the derivative was lost or it "
            "does not ask the mechanism it is given. np.abs, np.linalg.norm, np.hypot, np.arctan2 and .real "
            "drop imaginary parts: write norms as np.sqrt(v @ v).",
            dtype=a.dtype,
        )
    if a.dtype.kind != "c":
        raise InputError(
            f"Sensitivity to {label}: expected `answer` to return an array of numbers, got {short_repr(a)}. "
            "Return one of its arrays, such as .G or .I."
        )
    return np.where(np.isnan(a.real), np.nan, a.imag / STEP)
