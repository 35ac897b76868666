"""Dimensions as coordinates: massless slides and hinges that place joints, points and centres of mass.

A slide stands between a part and its body. Derivatives by its coordinate are influence coefficients, to third
order and through closed loops, and need no equation of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.description.contacts import Contact
from kic.description.couplings import Coupling, Terms, ratio_fields
from kic.description.description import KINDS, REFERENCES, Part, given_names, reference_values
from kic.description.joint_types import JointType
from kic.description.parts import COM, Body, CenterOfMass, Frame, Joint, Measure, Point
from kic.description.validation import GROUND, PARALLEL_ATOL, SIZE_MAX, check_name, part_of, split_row
from kic.errors import InputError, SingularError, invalid, short_repr, unknown
from kic.kinematics.outputs import XYZ
from kic.mechanism.configuration import model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import names_of
from kic.numerics.arrays import reals
from kic.numerics.linalg import unit

# order of the shifts from a body to its part: slides, rotations about the moved point, zero of a coordinate
_SLIDE, _TURN, _ZERO = range(3)
# sides of a part with two bodies that a dimension without the name of a body changes
_BOTH: dict[str, tuple[int, ...]] = {"": (0, 1)}
# numbers of a description that differ by less are equal, relative to their largest or to the mechanism
SAME_NUMBER_RTOL = 1e-14
# difference from 1 of the length of a unit vector: a few rounding errors
_UNIT_ATOL = 1e-14


@dataclass(frozen=True)
class _Shift:
    """Slide or hinge between a part and one of its bodies (`side` 0 or 1), at a rate `direction` (3,)."""

    part: str
    side: int
    rank: int
    turns: bool
    direction: np.ndarray
    at: Any


@dataclass(frozen=True)
class _Dimension:
    """Value of a dimension in the reference configuration, and the shifts that change it.

    A fixed distance or angle has none: it becomes a coordinate.
    """

    value: float
    shifts: tuple[_Shift, ...]


@dataclass(frozen=True)
class _Link:
    """Joint of a shift, and its fields if its coordinate is the dimension."""

    shift: _Shift
    joint: str
    fields: dict[str, Any]


def vary(
    mechanism: Mechanism, dimensions: str | Iterable[str] | Mapping[str, str | Mapping[str, float]]
) -> Mechanism:
    """Return the mechanism with dimensions as further coordinates; the inverse of `lock`.

    They are held: `at` and `wrt` need not name them, and they keep the values of the reference configuration.
    As many names as degrees of freedom determine them instead. Every question has their columns, such as
    derivatives by dimensions to third order.

    Parameters
    ----------
    dimensions : str, list of str, or dict of str to str or dict
        Names of numbers of the description:

        - ``"B.at.x"``: point of a joint or contact, which changes the bodies on both sides; in one of them
          ``"B.at.crank.x"``, which moves all that is beyond the joint;
        - ``"B.axis.rx"``: rotation of an axis about the world's x through the point of the joint (rad), or
          ``"B.axis.crank.rx"``; of joints with two axes, fixed joints and frames ``"U.axes.rx"``;
        - ``"B.value"``: zero of a single coordinate, such as the offset of an encoder;
        - ``"tip.at.x"`` of a point, ``"tool.origin.x"`` of a frame, ``"coupler.com.y"`` of a body;
        - ``"crank.length"`` of a body with two joints: the distance of their points, or of parallel axes. The
          second moves along the line between them, with all that is beyond it;
        - ``"rod"``, a fixed distance or angle.

        A dict maps names of coordinates to dimensions, or to weights of several that change together. These
        coordinates are 0 in the reference configuration, unless it maps a dimension to itself.

    Returns
    -------
    Mechanism
        With the dimensions at the end of `coordinates`. Fix them by `lock`, also at other values.

    Raises
    ------
    UnknownNameError
        If there is no such dimension; the error has the candidates.
    InputError
        If a name is given twice, a weight is not a number, or a pitch point determines the ratio of a joint
        that would move. Also for a mechanism with a complex step.
    SingularError
        If loops cannot stay closed: tilting one axis of a planar linkage makes it rigid.

    See Also
    --------
    lock : Fix dimensions and other coordinates.
    calibrate : Dimensions from measured positions.
    sensitivity : Derivative of any result, also by masses and other numbers.

    Notes
    -----
    A dimension changes the reference configuration as `replace` does: loops stay closed there, and points,
    centres of mass, other joints and values of coordinates stay. But rods, which are fixed distances, keep
    their length when their points move, and the rows of a body without `at` stay at its first centre of mass.
    A slider carries the mass of a body whose centre of mass varies. A mass on ground that dimensions move
    counts as a moving one, also in the centre of mass. Rotations of one part follow each other
    in the order of their names, each about an axis that those before it have turned.

    In dynamics, an effort at a dimension is the load that holds it. Functions that would move dimensions,
    such as `simulate` or `forward_dynamics`, or choose efforts among them, raise an `InputError`.

    Examples
    --------
    >>> m = kic.load("four-bar").vary(["coupler.length", "D.at.x"])
    >>> m.coordinates
    ('A', 'coupler.length', 'D.at.x')
    >>> c = m.at({"A": 1.2})
    >>> c.coefficients("tip.y").G.round(4)
    array([[ 0.0162, -0.0011, -0.0049]])
    >>> m.lock({"coupler.length": 0.26, "D.at.x": 0.35}).coordinates
    ('A',)
    """
    mechanism._model.require_real("vary()", "Vary the dimensions of the mechanism without it.")
    if isinstance(dimensions, Mapping):
        chosen = {
            name: _found(mechanism, name) if one == name else _weighted(mechanism, name, one)
            for name, one in dimensions.items()
        }
    else:
        names = names_of(dimensions, "dimensions")
        if twice := [name for name in names if names.count(name) > 1]:
            message = f"`dimensions` must be distinct, got '{twice[0]}' twice. Name it once."
            raise InputError(message, key="dimensions", name=twice[0])
        chosen = {name: _found(mechanism, name) for name in names}
    for name in chosen:
        if name in mechanism._joints:
            raise InputError(
                f"`dimensions` must be new names, got '{name}', a joint of '{mechanism.name}'. Unlock it, or "
                "give the dimension another name in a dict.",
                key="dimensions",
                name=name,
            )
    if not chosen:
        raise invalid("dimensions", "must contain at least one name", dimensions)
    made = _with_shifts(mechanism, chosen)
    if made.dof != mechanism.dof + len(chosen):
        one = mechanism.dof + 1
        stiff = [name for name in chosen if _with_shifts(mechanism, {name: chosen[name]}).dof != one]
        raise SingularError(
            f"`dimensions` must leave the loops of '{mechanism.name}' closed, but these do not close with "
            f"other values of {', '.join(stiff or chosen)}. Leave them out, or combine them with others in a "
            "dict of weights.",
            key="dimensions",
            names=tuple(stiff or chosen),
        )
    return made


def vary_as_drawn(mechanism: Mechanism, dimensions: Any) -> Mechanism:
    """Return `vary` of a mechanism; centres of mass are those of the bodies that move without dimensions."""
    frame = model_of(mechanism).tree.frame
    still = {GROUND, *(body.name for body in mechanism.bodies if frame[body.name] < 0)}
    masses = [body.mass for body in mechanism.bodies if body.name in still]
    masses += [point.mass for point in mechanism.points if point.body in still]
    moving = tuple(body.name for body in mechanism.bodies if body.name not in still)
    if any(masses) and moving:
        every = (*mechanism.centers, *([] if COM in mechanism._parts else [CenterOfMass(COM)]))
        centers = tuple(replace(center, bodies=center.bodies or moving) for center in every)
        mechanism = replace(mechanism, centers=centers)
    return vary(mechanism, dimensions)


def with_dimensions(varied: Mechanism, mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """Return a mechanism described with other values of dimensions, which `varied` has as coordinates.

    Couplings whose joints move are described by ratios.
    """
    there, known = varied.lock(values), mechanism._parts
    length = float(model_of(mechanism).length)
    slides = [joint.bodies for joint in there.joints if joint.name not in known]

    def carrier(name: str) -> Any:
        """Return the body with the mass of another one, beyond its slides, or None."""
        beyond = (carrier(outer) for inner, outer in slides if inner == name)
        return there[name] if there[name].mass else next(filter(None, beyond), None)

    def parts(kind: str) -> Iterator[Any]:
        for part in getattr(mechanism, kind):
            made: Any = there._parts[part.name]
            if kind == "motors":
                made = part
            elif kind == "couplings":
                still = part.pitch_point is None and varied._parts[part.name] == part
                made = part if still else replace(part, **ratio_fields(mechanism._terms[part.name]))
            elif kind in REFERENCES:
                made = replace(made, **{REFERENCES[kind]: getattr(part, REFERENCES[kind])})
            elif kind == "bodies" and part.mass != made.mass:
                made = replace(carrier(part.name), name=part.name, at=made.at)
            yield _without_rounding(made, part, length)

    fields: dict[str, Any] = {kind: tuple(parts(kind)) for kind in KINDS}
    return replace(mechanism, **fields)


def _without_rounding(made: Any, part: Any, length: float) -> Any:
    """Return a part whose numbers are those of another one where they agree up to rounding."""
    same = {}
    for key, x in vars(part).items():
        a, b = reals(x), reals(getattr(made, key))
        if a is not None and b is not None and a.shape == b.shape:
            size = max(np.abs(a).max(initial=0.0), length if key in ("at", "origin", "com", "value") else 0.0)
            equal = np.abs(a - b) <= SAME_NUMBER_RTOL * size
            same[key] = x if equal.all() else np.where(equal, a, b).tolist()
    return replace(made, **same)


def dimensions_of(mechanism: Mechanism, part: Part) -> Iterator[tuple[str, _Dimension]]:
    """Yield the names and dimensions of a part."""
    origin: Any = (0.0, 0.0, 0.0)
    if isinstance(part, Joint | Contact):
        alone: dict[str, tuple[int, ...]] = {f"{body}.": (side,) for side, body in enumerate(part.bodies)}
        place = part.at or origin
        yield from _moves(part.name, "at", place, alone if part.at is None else _BOTH | alone)
        if isinstance(part, Joint) and part.axis is not None:
            key = "axis" if part.axis2 is None else "axes"
            yield from _moves(part.name, key, place, _BOTH | alone, turns=True)
        elif isinstance(part, Joint) and part.type == "fixed" and part.at is not None:
            yield from _moves(part.name, "axes", place, alone, turns=True)
        if isinstance(part, Joint) and part.dof == 1:
            zero = _Shift(part.name, 1, _ZERO, part.type == "revolute", unit(part.axis), part.at)
            yield f"{part.name}.value", _Dimension(reference_values(mechanism)[part.name], (zero,))
    elif isinstance(part, Point):
        yield from _moves(part.name, "at", part.at, {"": (0,)})
    elif isinstance(part, Frame):
        yield from _moves(part.name, "origin", part.origin, {"": (0,)})
        yield from _moves(part.name, "axes", part.origin, {"": (0,)}, turns=True)
    elif isinstance(part, Measure) and part.fixed:
        yield part.name, _Dimension(0.0, ())
    elif isinstance(part, Body):
        if part.mass and part.com is not None:
            yield from _moves(part.name, "com", part.com, {"": (0,)})
        yield from _length(mechanism, part.name)


def _moves(
    part: str, key: str, place: Any, sides: Mapping[str, tuple[int, ...]], turns: bool = False
) -> Iterator[tuple[str, _Dimension]]:
    """Yield displacements of a part along the world's axes, or rotations about them, on some of its sides."""
    for body, own in sides.items():
        for c, e, x in zip(XYZ, np.eye(3), place, strict=True):
            shifts = tuple(_Shift(part, side, _TURN if turns else _SLIDE, turns, e, place) for side in own)
            yield f"{part}.{key}.{body}{'r' * turns}{c}", _Dimension(0.0 if turns else x, shifts)


def _length(mechanism: Mechanism, body: str) -> Iterator[tuple[str, _Dimension]]:
    """Yield the distance of the two joints of a body, unless there are others, or they have no distance."""
    joints = [joint for joint in mechanism.joints if body in joint.bodies]
    # dimensions that vary already stand between the body and its joints
    massless = {one.name for one in mechanism.bodies if one.mass == 0.0}
    slides = massless & {_slider(joint.name) for joint in joints}
    if len(joints) != 2 or slides or any(joint.at is None for joint in joints):
        return
    one, two = (np.array(joint.at) for joint in joints)
    line, axes = two - one, [unit(joint.axis) for joint in joints if joint.axis is not None]
    if len(axes) == 2 and np.linalg.norm(np.cross(axes[0], axes[1])) <= PARALLEL_ATOL:
        line = line - (line @ axes[0]) * axes[0]
    size = float(np.linalg.norm(line))
    if size > PARALLEL_ATOL * np.abs([one, two]).max():
        side = joints[1].bodies.index(body)
        shift = _Shift(joints[1].name, side, _SLIDE, False, line / size, joints[1].at)
        yield f"{body}.length", _Dimension(size, (shift,))


def dimensions_named(mechanism: Mechanism, name: str) -> dict[str, _Dimension]:
    """Return the dimensions of the part, or of ground, with which a name begins."""
    model, owner = model_of(mechanism), name.partition(".")[0]
    part = model.parts.get(owner)
    if part is None:
        return dict(_length(mechanism, GROUND)) if owner == GROUND else {}
    return model.prepared(("dimensions", owner), lambda: dict(dimensions_of(mechanism, part)))


def _found(mechanism: Mechanism, name: str) -> _Dimension:
    """Return the dimension with a name, or raise an error with the candidates."""
    there = dimensions_named(mechanism, name)
    if name in there:
        return there[name]
    parts = [] if there else [one for kind in KINDS for one in getattr(mechanism, kind)]
    error = unknown(
        "dimension",
        name,
        mechanism.name,
        [*there, *(other for one in parts for other, _ in dimensions_of(mechanism, one))],
    )
    if name.partition(".")[0] in model_of(mechanism).parts and split_row(name)[1]:
        error.message = f"{error.message} `sensitivity` takes masses, stiffnesses and other numbers."
    raise error


def _weighted(mechanism: Mechanism, name: Any, one: Any) -> _Dimension:
    """Return a dimension that changes others with weights."""
    check_name("dimension", name)
    if isinstance(one, str):
        one = {one: 1.0}
    if not isinstance(one, Mapping) or not one or not all(isinstance(key, str) for key in one):
        rule = "must be names of numbers, such as 'B.at.x', or dicts of names to weights"
        raise invalid("dimensions", rule, one)
    sums: dict[tuple[str, int, int], _Shift] = {}
    for key, given in one.items():
        weight, known = reals(given), _found(mechanism, key)
        if weight is None or weight.ndim or weight.dtype.kind == "c":
            message = f"Weights in `dimensions` must be real numbers, got {short_repr(given)}."
            raise InputError(message, key="dimensions", got=given)
        if not known.shifts:
            message = f"`dimensions` must name '{key}' alone, because it is a fixed distance or angle."
            raise InputError(message, key="dimensions", name=key)
        for shift in known.shifts:
            place = shift.part, shift.side, shift.rank
            direction = float(weight) * shift.direction
            direction = direction + sums[place].direction if place in sums else direction
            sums[place] = replace(shift, direction=direction)
    shifts = tuple(shift for shift in sums.values() if shift.direction.any())
    sizes = [float(np.abs(shift.direction).max()) for shift in shifts]
    if not shifts or not 1 / SIZE_MAX < min(sizes) <= max(sizes) < SIZE_MAX:
        message = f"Weights in `dimensions` must be moderate and not all zero, got {short_repr(dict(one))}."
        raise InputError(message, key="dimensions", got=one)
    return _Dimension(0.0, shifts)


def _with_shifts(mechanism: Mechanism, chosen: Mapping[str, _Dimension]) -> Mechanism:
    """Return the mechanism with the slides and hinges of dimensions, and couplings between them."""
    new: dict[str, list[Any]] = {"bodies": [], "joints": [], "couplings": []}
    changed: dict[str, dict[str, Any]] = {}
    chains: dict[tuple[str, int], list[_Link]] = {}
    for name, dimension in chosen.items():
        if not dimension.shifts:
            changed[name] = {"fixed": False, "held": True}
            continue
        own: dict[str, Any] = {"value": dimension.value, "held": True}
        label = name.replace(".", " ")
        sizes = [float(np.linalg.norm(shift.direction)) for shift in dimension.shifts]
        lead = next((k for k, size in enumerate(sizes) if abs(size - 1) <= _UNIT_ATOL), None)
        if lead is None:  # a dial, which moves nothing
            kind: JointType = "revolute" if dimension.shifts[0].turns else "prismatic"
            new["bodies"].append(_massless(f"{label} dial", (0.0, 0.0, 0.0)))
            pair = GROUND, f"{label} dial"
            new["joints"].append(Joint(name, kind, pair, at=(0, 0, 0), axis=(0, 0, 1), **own))
        for k, (shift, size) in enumerate(zip(dimension.shifts, sizes, strict=True)):
            joint = name if k == lead else f"{label} shift {k + 1}"
            chain = chains.setdefault((shift.part, shift.side), [])
            chain.append(_Link(shift, joint, own if k == lead else {}))
            if k != lead:
                new["couplings"].append(Coupling(f"{label} {k + 1}", (name, joint), ratios=(size, -1.0)))
    for (part, side), chain in chains.items():
        chain.sort(key=lambda link: link.shift.rank)
        _insert(mechanism, part, side, chain, new, changed)
    for coupling in mechanism.couplings:
        changed |= _with_ratios(coupling, mechanism._terms[coupling.name], chains)
    fields: dict[str, Any] = {}
    for kind_of_part in KINDS:
        parts = getattr(mechanism, kind_of_part)
        kept = [replace(one, **changed[one.name]) if one.name in changed else one for one in parts]
        fields[kind_of_part] = (*kept, *new.get(kind_of_part, ()))
    if (actuators := given_names(mechanism, "actuators")) is not None:
        fields["actuators"] = (*actuators, *chosen)
    return replace(mechanism, coordinates=(*mechanism._moving_parts, *chosen), **fields)


def _insert(
    mechanism: Mechanism,
    name: str,
    side: int,
    chain: list[_Link],
    new: dict[str, list[Any]],
    changed: dict[str, dict[str, Any]],
) -> None:
    """Add the bodies and joints between a part and its body, and note the changed fields of the part."""
    part: Any = mechanism._parts[name]
    two = isinstance(part, Joint | Contact)
    owner = part.name if isinstance(part, Body) else part.bodies[side] if two else part.body
    bodies = [owner, *(_slider(link.joint) for link in chain)]
    for link, inner, outer in zip(chain, bodies, bodies[1:], strict=False):
        shift = link.shift
        # from the body to the part; beyond a joint from the part to the body, in the opposite direction
        sign, pair = (-1.0, (outer, inner)) if side else (1.0, (inner, outer))
        axis: Any = sign * shift.direction
        kind: JointType = "revolute" if shift.turns else "prismatic"
        new["joints"].append(Joint(link.joint, kind, pair, at=shift.at, axis=axis, **link.fields))
        new["bodies"].append(_massless(outer, shift.at or (0.0, 0.0, 0.0)))
    if isinstance(part, Body):
        new["bodies"][-1] = replace(part, name=bodies[-1], at=None)
        still = {"mass": 0.0, "com": part.com, "inertia": np.zeros(3), "inertia_exception": ""}
        changed[name] = still | {"at": part.reference}
    elif two:
        pair = changed.get(name, {}).get("bodies", part.bodies)
        changed[name] = {"bodies": (bodies[-1], pair[1]) if not side else (pair[0], bodies[-1])}
    else:
        changed[name] = {"body": bodies[-1]}
    if isinstance(part, Body | Point):
        for center in mechanism.centers:
            among = changed.get(center.name, {}).get("bodies", center.bodies) or ()
            if owner in among:
                changed[center.name] = {"bodies": (*among, bodies[-1])}


def _with_ratios(
    coupling: Coupling, terms: Terms, chains: Mapping[tuple[str, int], list[_Link]]
) -> dict[str, dict[str, Any]]:
    """Return the changed fields of a coupling whose joints move: ratios, also of the zeros of its joints."""
    ratios, moved = dict(terms), False
    for name, ratio in terms:
        part = part_of(name)
        for link in (*chains.get((part, 0), ()), *chains.get((part, 1), ())):
            moved = True
            if link.shift.rank == _ZERO:
                ratios[link.joint] = -ratio
            elif coupling.pitch_point is not None:
                raise InputError(
                    f"`dimensions` must not move '{part}', because the ratio of coupling '{coupling.name}' "
                    "depends on its distance from the pitch point. Give the coupling `ratios`.",
                    key="dimensions",
                    name=coupling.name,
                )
    if not moved:
        return {}
    return {coupling.name: ratio_fields(ratios.items())}


def _slider(joint: str) -> str:
    """Return the name of the body that the joint of a shift moves."""
    return f"{joint.replace('.', ' ')} slider"


def _massless(name: str, at: Any) -> Body:
    """Return a body without mass."""
    return Body(name, mass=0.0, com=at, inertia=np.zeros(3))
