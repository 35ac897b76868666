"""Locks: joints, distances, and rows of points and bodies fixed at values until they are unlocked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations, count
from typing import Any

import numpy as np

from kic.description.couplings import ratio_fields
from kic.description.description import Part, find_part, given_names
from kic.description.joint_types import BALL_TYPES
from kic.description.parts import Body, Frame, Joint, Measure, Point
from kic.description.spins import Spin, find_spins, free_remarks, held_remark, with_held_spins
from kic.description.validation import GROUND, part_of, split_row
from kic.errors import InputError, KicError, SingularError, counted, invalid, short_repr
from kic.kinematics.outputs import OMEGA
from kic.kinematics.tree import ball_axes
from kic.mechanism.assembly import default_coordinates, described_at, states_at
from kic.mechanism.configuration import Configuration, displacements, flat_states, row_sizes
from kic.mechanism.inputs import single_entries
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import mapping, names_of
from kic.numerics.arrays import numbers
from kic.numerics.rotations import vector_from_matrix
from kic.numerics.tolerances import RANK_RTOL

# attribute of a locked mechanism: the unlocked one in the same reference configuration, and the locked names
_LOCKS = "_locks"
# attribute of a mechanism without locks: spins whose hinges are locked by `hold_spins`
_SPINS = "_spins"
# fields of a distance or an angle that is locked
_FIXED: dict[str, Any] = {
    "fixed": True,
    "held": False,
    "limits": None,
    "effort_limits": None,
    "rate_limits": None,
}
# kinds of parts that can be locked
_KINDS = "joints", "distances", "angles", "points", "bodies"
# largest difference between values of dependent locks that are consistent
CONSISTENT_RTOL = 1e-9


def lock(mechanism: Mechanism, values: Mapping[str, Any] | str | Iterable[str]) -> Mechanism:
    """Return the mechanism with joints, distances, angles, and rows of points and bodies fixed.

    Parameters
    ----------
    values : dict of str to array_like, or names
        Values of joints, distances, angles, points, and rows such as "tip.x" or "hand.angle", as in `at`.
        Names alone are fixed in the reference configuration, without a solution: also bodies as a whole,
        and angular velocities, all or two of a body. Rows that cannot move are locked without effect. The
        remaining coordinates, including orientations of free and spherical joints, keep their values in
        the new reference configuration. Displacements and rotations are measured from it, and the axes
        of spherical and free joints turn with their first bodies.

    Returns
    -------
    Mechanism
        With fewer degrees of freedom. A coupling locks the last of its joints. Motors drive their
        unlocked joints, and are omitted if all are locked. Rows of a part "hand" close a loop through
        ground (4-30): massless slides "hand slide 1", … along the free directions, and a joint
        "hand lock", whose `joint_forces` are the constraint loads. These need as many actuators as
        degrees of freedom remain; name them if the mechanism has its own.

    Raises
    ------
    UnknownNameError, InputError
        If a part is of another kind or already fixed, one angular velocity of a body is locked alone, or
        an orientation is locked while others move.
    ConfigurationError
        If there is no configuration with these values.
    ModelError
        If locks leave a coupling with one coordinate of a joint that has several, or move a joint with
        `swing`, which is an angle from the reference configuration.
    SingularError
        If locks of joints at rest to first order in the reference configuration, such as the rocker of a
        linkage at a dead centre, reduce the mobility.

    See Also
    --------
    unlock

    Examples
    --------
    >>> arm = kic.load("panda").lock({"joint4": -1.5, "joint7": 0.3})
    >>> arm.coordinates, arm["joint7"].type
    (('joint1', 'joint2', 'joint3', 'joint5', 'joint6'), 'fixed')
    >>> pushing = kic.load("planar-4r").lock("tip.x")  # along a wall
    >>> pushing.coordinates, pushing.dof
    (('joint1', 'joint2', 'joint3'), 3)
    """
    base, names = _without_locks(mechanism)
    spins = base.__dict__.get(_SPINS, ())
    if isinstance(values, Mapping):
        given = mapping("values", values, "names to values")
    else:
        given = dict.fromkeys(names_of(values, "values"))
    for name in given:
        part = find_part(base, part_of(name) if _is_row(base, name) else name, *_KINDS)
        if _is_fixed(part):
            raise InputError(f"'{name}' of '{base.name}' is fixed. Leave it out.", name=name, key="values")
    base, left = _with_values(base, {**dict.fromkeys(names), **given})
    names = tuple(dict.fromkeys((*names, *given)))
    rows = [name for name in names if _is_row(base, name)]
    locked, couplings = dict.fromkeys(name for name in names if name not in rows), dict(base._terms)
    moved = True
    while moved:  # a coupling fixes its last joint
        moved = False
        for name, terms in couplings.items():
            couplings[name] = terms = tuple(x for x in terms if part_of(x[0]) not in locked)
            if len(terms) == 1 and terms[0][0] in base._joints:
                locked[terms[0][0]], moved = None, True
    made = base.replace(coordinates=left).without(*(name for name, terms in couplings.items() if not terms))
    for motor in base.motors:  # the shaft turns with the remaining joints
        pairs = zip(motor.joints, motor.ratios or (), base._shafts[motor.name], strict=True)
        rest = [(joint, ratio) for joint, ratio, c in pairs if part_of(c) not in locked]
        if not rest:
            made = made.without(motor.name)
        elif len(rest) < len(motor.joints):
            joints, ratios = zip(*rest, strict=True)
            made = made.replace(motor.name, joints=joints, ratios=ratios)
    for name, terms in couplings.items():
        # a locked joint has the value of the reference configuration, where its term is zero
        if terms and terms != base._terms[name]:
            made = made.replace(name, **ratio_fields(terms))
    for name in locked:
        made = made.replace(name, **({"type": "fixed"} if name in base._joints else _FIXED))
    made = made.add(*_guides(base, rows)) if rows else made
    if made.dof != len(left):
        message = (
            f"Locking {', '.join(names)} would leave '{base.name}' with "
            f"{counted(made.dof, 'degree of freedom', 'degrees of freedom')}, but {len(left)} to first "
            "order: the reference configuration is singular. Lock other joints, or first leave this "
            "configuration: lock others at values, and unlock them."
        )
        raise SingularError(message, key="values", names=names)
    if spins:
        base.__dict__[_SPINS] = spins
        text = held_remark(spin for spin in spins if spin.held and spin.held.name in names)
        made = made.replace(remarks=(*made.remarks, *([text] if text else [])))
    made.__dict__[_LOCKS] = base, names
    return made


def unlock(mechanism: Mechanism, names: str | Iterable[str] | None = None) -> Mechanism:
    """Return the mechanism without the locks of `lock`, in its present reference configuration.

    Parameters
    ----------
    names : str or list of str, optional
        Joints, distances and angles; by default all that are locked.

    Returns
    -------
    Mechanism

    Raises
    ------
    InputError
        If a name is not locked, or nothing is locked. A change of the mechanism makes its locks
        permanent.

    Examples
    --------
    >>> m = kic.load("five-bar").lock({"A": 2.0})
    >>> m.dof, m.unlock("A").dof, m.unlock().at().value("A").round(9)
    (1, 2, np.float64(2.0))
    """
    base, locked = _without_locks(mechanism)
    chosen = locked if names is None else names_of(names, "names", 1)
    for name in chosen or ("",):
        if name not in locked:
            what = f"'{name}' of '{mechanism.name}' is not" if name else f"Nothing of '{mechanism.name}' is"
            message = (
                f"{what} locked; a change of the mechanism makes its locks permanent. Unlock first, then "
                f"change it. Locked: {', '.join(locked) or 'none'}."
            )
            raise InputError(message, key="names", name=name)
    rest = [name for name in locked if name not in chosen]
    return lock(base, rest) if rest else base


def hold_spins(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism without spins of rods about their own axes, which move nothing else.

    A rod between two ball joints that belong to a loop turns about the line through them. One of these
    joints becomes universal, which is the usual model of such a rod: with one axis parallel to the hinge
    of its neighbour, if the rod is inclined to it by 45° or more. A hinge along the line is locked.
    Readers of robot files and `close_loops` hold spins, too.

    Returns
    -------
    Mechanism
        With fewer degrees of freedom, and no coordinate of a spin by default. `remarks` and `mobility`
        list the spins. A spin stays free, with a remark, if loads act on the rod off its axis, or if
        both ball joints have dry friction, limits, or damping or armature that differ by axis. Spins that
        a motor drives or a coupling transmits stay, and so do passive degrees of freedom of another kind,
        such as the swivel of a knee between two ball joints.

    Notes
    -----
    The spin is held even against the weight, which turns a rod only if its centre of mass is off the
    line. The universal joint determines its angular velocity about the line, so that the moment of
    inertia about the line takes part in dynamics.

    See Also
    --------
    lock, mobility

    Examples
    --------
    >>> m = kic.load("rssr")
    >>> m.dof, m.hold_spins().dof, m.hold_spins().coordinates
    (2, 1, ('crank',))
    """
    mechanism._model.require_real("hold_spins()", "Hold the spins of the mechanism without it.")
    spins = find_spins(mechanism)
    if not spins:
        return mechanism
    base, locked = _without_locks(mechanism)
    hinges = [spin.held.name for spin in spins if spin.held and spin.held.type == "fixed"]
    balls = _spins_of_balls(spins)
    remark = [text for text in (held_remark(balls),) if text]
    made = base.replace(remarks=(*base.remarks, *remark, *free_remarks(spins)))
    made = _without_spins(made, balls)
    made.__dict__[_SPINS] = (*base.__dict__.get(_SPINS, ()), *(x for x in spins if x not in balls and x.held))
    names = (*locked, *hinges)
    return lock(made, names) if names else made


def _is_fixed(part: Part) -> bool:
    """Return True for a part that cannot move."""
    if isinstance(part, Measure):
        return part.fixed
    return part.body == GROUND if isinstance(part, Point) else isinstance(part, Joint) and not part.dof


def _is_row(mechanism: Mechanism, name: Any) -> bool:
    """Return True for a point, a body, or one of their rows."""
    known = isinstance(name, str) and mechanism._components(name) is not None
    return known and isinstance(mechanism._parts[part_of(name)], Point | Body)


def _guides(mechanism: Mechanism, names: Iterable[str]) -> list[Body | Joint]:
    """Return massless slides from ground and a last joint that constrain rows of points and bodies.

    Slides have the free directions, in the plane of a planar mechanism. The last joint is spherical, revolute
    or fixed for none, two or three locked angular velocities. One alone is no constraint of positions.
    """
    held: dict[str, set[str]] = {}
    for name in names:
        owner, row = split_row(name)
        rows = {row} if row else {split_row(x)[1] for x in mechanism._components(name) or ()}
        held.setdefault(owner, set()).update(rows)
    normal, made = mechanism._model.tree.planar_normal, list[Body | Joint]()
    for owner, own in held.items():
        part, at = mechanism._parts[owner], _place(mechanism, owner)
        directions = [e for x, e in zip("xyz", np.eye(3), strict=True) if x in own]
        turning: list[Any] = [e for w, e in zip(OMEGA, np.eye(3), strict=True) if w not in own]
        if normal is not None:
            directions.append(normal)
            turned = {w for w, n in zip(OMEGA, normal, strict=True) if abs(n) > RANK_RTOL}
            turning = [] if own & {"angle", *turned} else [normal]
        if len(turning) == 2:
            fixed = next(w for w in OMEGA if w in own)
            raise InputError(
                f"`values` must lock none, two or three angular velocities of '{owner}', got {fixed}, which "
                "is no constraint of positions. Lock the two about axes perpendicular to the free one.",
                key="values",
                name=owner,
            )
        last, axes, label = GROUND, _free_directions(directions), owner
        for number in count(2):  # locks of an earlier mechanism may be permanent
            used = {f"{label} slide{r} {k + 1}" for k in range(len(axes)) for r in ("", "r")}
            if not mechanism._parts.keys() & {f"{label} lock", *used}:
                break
            label = f"{owner} {number}"
        for k, axis in enumerate(axes, 1):
            body = f"{label} slider {k}"
            made.append(Body(body, mass=0.0, com=at, inertia=np.zeros(3)))
            made.append(Joint(f"{label} slide {k}", "prismatic", (last, body), at=at, axis=axis))
            last = body
        pair, lock = (last, getattr(part, "body", owner)), f"{label} lock"
        if len(turning) == 1:
            made.append(Joint(lock, "revolute", pair, at=at, axis=turning[0]))
        else:
            made.append(Joint(lock, "spherical" if turning else "fixed", pair, at=at))
    return made


def _place(mechanism: Mechanism, owner: str) -> Any:
    """Return the reference position (3,) of a point, or of the reference point of a body."""
    return mechanism.at().coefficients([f"{owner}.{x}" for x in "xyz"], order=1).values


def _free_directions(held: Iterable[np.ndarray]) -> list[Any]:
    """Return the directions perpendicular to some, along axes of the world as far as possible."""
    known, free = list[np.ndarray](), list[np.ndarray]()
    for kind, vectors in ((known, held), (free, np.eye(3))):
        for v in vectors:
            rest = v - sum(((u @ v) * u for u in (*known, *free)), np.zeros(3))
            if (size := float(np.linalg.norm(rest))) > RANK_RTOL:
                kind.append(rest / size)
    return free


def _spins_of_balls(spins: Iterable[Spin]) -> list[Spin]:
    """Return the spins that are held by a universal joint in place of a ball joint."""
    return [spin for spin in spins if spin.held and spin.held.type != "fixed"]


def _without_spins(mechanism: Mechanism, spins: Iterable[Spin]) -> Mechanism:
    """Return a mechanism with spins held by universal joints; the same object without such spins."""
    idle = {name for spin in spins for name in spin.joints}
    if not idle:
        return mechanism
    made, given = with_held_spins(mechanism, spins), given_names(mechanism, "coordinates")
    if given is None:
        return made
    kept = tuple(c for c in given if part_of(c) not in idle)
    return made.replace(coordinates=default_coordinates(made.replace(coordinates=None), [kept]))


def _without_locks(mechanism: Mechanism) -> tuple[Mechanism, tuple[str, ...]]:
    """Return a mechanism without locks, and the names of the locks."""
    return mechanism.__dict__.get(_LOCKS, (mechanism, ()))


def _with_values(mechanism: Mechanism, values: Mapping[str, Any]) -> tuple[Mechanism, tuple[str, ...]]:
    """Return a mechanism whose reference configuration has the given values, and its free coordinates.

    None keeps the value of the reference configuration; if all are None, no position problem is solved.
    Other coordinates keep their values, except those that the loops determine.
    """
    reference, turns = mechanism.at(), _turns(mechanism)

    held: dict[str, Any] = {}
    spare: dict[str, Any] = {}  # values determined by `held`
    locked, rows = list[str](), list[str]()
    moves = any(value is not None for value in values.values())
    for name, value in values.items():
        own = mechanism._components(name) or ()
        if moves and (turning := [c for c in own if c.rpartition(".")[2] in OMEGA and _is_row(mechanism, c)]):
            message = (
                f"'{turning[0]}' of '{mechanism.name}' has no value, and cannot be locked while others move. "
                f"Unlock '{name}' if it is locked, lock values first, and then '{name}' by name."
            )
            raise InputError(message, key="values", name=name)
        given = {c: _rest(mechanism, c) if moves else 0.0 for c in own}
        if value is not None:
            given = _entries(mechanism, name, value)
        locked += own
        for c, x in given.items():
            is_free = _rank(reference, [*rows, c]) > len(rows)
            (held if is_free else spare)[c] = x
            rows += [c] * is_free
    if not moves:
        # whole rotations, at least if they are chosen first, or parts of them
        for whole, preferred in ((turns, ()), (turns, tuple(turns)), ({}, ())):
            free = _independent(mechanism, reference, rows, locked, whole, preferred)
            if len(free) + len(rows) == len(mechanism.coordinates):
                break
        return mechanism, free
    # ball joints have no values, so rods must not spin during the motion
    steady = _without_spins(mechanism, _spins_of_balls(find_spins(mechanism, locked)))
    first = _independent(steady, steady.at(), rows, locked, turns)
    others = [c for c in steady.coordinates if c not in locked]
    chosen, found, error = first, None, None
    for chosen in chain([first], combinations(others, len(steady.coordinates) - len(rows))):
        try:
            found = _solved(steady, {**{c: _rest(steady, c) for c in chosen}, **held})
            break
        except KicError as failed:
            error = error or failed
    if found is None and len(first) + len(rows) < len(steady.coordinates):
        message = (
            f"`values` must determine a configuration of '{mechanism.name}' with its other coordinates, but "
            "some components of rotations alone have no values. Lock joints at values and unlock them, then "
            "lock by name."
        )
        raise InputError(message, key="values", coordinates=first) from error
    if found is None or found.batch:
        raise error or InputError("`values` must be single numbers, got a batch.", key="values")
    state = flat_states(found)[0]
    poses = displacements(Configuration(steady._model, (), state[None]))
    if steady is not mechanism:
        state = flat_states(configuration_like(mechanism, mechanism, found))[0]
    for name, value in spare.items():
        there = _turned(mechanism, poses, name) if name in turns else found.value(name)
        if not np.allclose(numbers(name, value), there, rtol=CONSISTENT_RTOL, atol=CONSISTENT_RTOL):
            got = short_repr(value)
            if not _rank(reference, [name]):
                message = (
                    f"'{name}' of '{mechanism.name}' must keep its value {there:.6g}, got {got}: it is at "
                    "rest to first order in the reference configuration. Change the configuration first: "
                    "lock others at values, and unlock them."
                )
                raise SingularError(message, key="values", names=(name,))
            message = f"`values` must agree: the others give {name} = {there:.6g}, got {got}. Leave one out."
            raise InputError(message, key="values", name=name)
    made = described_at(mechanism, state, poses)
    spins = _independent(mechanism, reference, [*rows, *chosen], locked, {})
    # joints other than coordinates are locked
    if len(chosen) < len(others) and not any(_is_row(mechanism, c) for c in held):
        made = made.replace(coordinates=(*chosen, *spins, *held))
    return made, (*chosen, *spins)


def _entries(mechanism: Mechanism, name: str, value: Any) -> dict[str, Any]:
    """Return the values of the rows of a joint, a distance, or a point or body."""
    own = mechanism._components(name) or ()
    if len(own) == 1:
        return {name: value}
    if not _is_row(mechanism, name):
        return dict(single_entries(mechanism, name, value))
    a: Any = numbers(name, value)
    if a.shape != (len(own),) or not np.isfinite(a).all():
        raise invalid("values", f"must be {len(own)} finite numbers for '{name}'", value)
    return dict(zip(own, a.tolist(), strict=True))


def _rest(mechanism: Mechanism, name: str) -> Any:
    """Return the value of a coordinate in the reference configuration."""
    values = mechanism._reference_values
    return values[name] if name in values else mechanism.at().value(name)


def _independent(
    mechanism: Mechanism,
    reference: Configuration,
    rows: list[str],
    locked: Iterable[str],
    turns: Mapping[str, tuple[str, ...]],
    preferred: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return all free coordinates that are independent of `rows` in the reference configuration.

    Coordinates of the mechanism that are not locked are preferred to those of other joints, and `preferred`
    to all. The three components in `turns` are added together, because a rotation has values only as
    a whole.
    """
    made, count = list[str](), len(mechanism.coordinates)
    order = dict.fromkeys([*mechanism.coordinates, *(c for j in mechanism.joints for c in j.components)])
    for c in dict.fromkeys([*preferred, *order]):
        whole = [] if c in locked or c in made else turns.get(c, (c,))
        wanted = [*rows, *made, *whole]
        if whole and len(wanted) <= count and _rank(reference, wanted) == len(wanted):
            made += whole
    return tuple(sorted(made, key=[*order].index))


def _rank(reference: Configuration, rows: list[str]) -> int:
    """Return the number of independent rows in the reference configuration, from scaled coefficients."""
    m = reference._model.description
    G = reference.coefficients(rows, order=1).G / row_sizes(m, rows)[:, None] * row_sizes(m, m.coordinates)
    return int(np.linalg.matrix_rank(G, tol=RANK_RTOL * np.abs(G).max(initial=1.0)))


def _turns(mechanism: Mechanism) -> dict[str, tuple[str, ...]]:
    """Return a dict from each angular velocity of a ball joint to the three components of the joint."""
    balls = [joint.components[-3:] for joint in mechanism.joints if joint.type in BALL_TYPES]
    return {c: whole for whole in balls for c in whole}


def _solved(mechanism: Mechanism, values: Mapping[str, Any]) -> Configuration:
    """Return the configuration at values of coordinates; rotations are vectors from the reference."""
    own = mechanism._model.is_open_chain and not any(_is_row(mechanism, name) for name in values)
    if own or not _turns(mechanism).keys() & values.keys():
        return mechanism.at(values)
    given = [numbers(name, value) for name, value in values.items()]
    if any(x.ndim for x in given):
        raise InputError("`values` must be single numbers, got a batch.", key="values")
    state = mechanism.prepare.position(wrt=tuple(values))(mechanism.at().state, np.array(given))
    return Configuration(mechanism._model, (), state[None])


def configuration_like(other: Mechanism, mechanism: Mechanism, found: Configuration) -> Configuration:
    """Return the configurations of another mechanism with the joints of one in its configurations.

    Further joints of the other one stay as described.
    """
    tree, batch = other._model.tree, found.batch
    own = {c for joint in mechanism.joints for c in joint.components} & {*tree.columns}
    values = {tree.column[c]: value for c, value in values_of(mechanism, found, own).items()}
    states = states_at(tree, other.at().state, values, batch)
    return Configuration(other._model, batch, states.reshape(-1, tree.state_size))


def values_of(mechanism: Mechanism, found: Configuration, names: Iterable[str]) -> dict[str, Any]:
    """Return the values (...) of coordinates for `at`; rotations are vectors from the reference.

    Those of bodies and frames are poses.
    """
    turns, names, parts = _turns(mechanism), tuple(names), mechanism._parts
    poses = displacements(found) if turns.keys() & {*names} else {}

    def value(name: str) -> Any:
        if name in turns:
            return _turned(mechanism, poses, name)
        return found.pose(name) if isinstance(parts.get(name), Body | Frame) else found.value(name)

    return {name: value(name) for name in names}


def kept_rows(mechanism: Mechanism, names: Iterable[str]) -> Iterator[str]:
    """Yield names of rows whose values are kept by coordinates, and of bodies and frames for their pose."""
    model = mechanism._model
    for name in names:
        whole = isinstance(model.parts.get(name), Body | Frame)
        rows = model.rows(name, 1).layout.rows
        owner = part_of(name)
        if not (whole or rows.holonomic or isinstance(model.parts.get(owner), Joint)):
            raise InputError(
                f"`wrt` must name coordinates with values, got '{name}', an angular velocity. Name '{owner}' "
                "instead of its rows: its pose is kept.",
                key="wrt",
                name=name,
            )
        yield from (name,) if whole else rows.labels


def _turned(mechanism: Mechanism, poses: Mapping[str, np.ndarray], component: str) -> np.ndarray:
    """Return a component of the rotation vector of a joint from displacements (..., 4, 4) of its bodies."""
    joint: Any = find_part(mechanism, component.rpartition(".")[0])
    first, second = (poses[body][..., :3, :3] for body in joint.bodies)
    turn = vector_from_matrix(first.swapaxes(-1, -2) @ second) @ ball_axes(joint)
    return np.asarray(turn[..., joint.components[-3:].index(component)])
