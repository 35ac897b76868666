"""Serial chains: the joints that lead from ground to a body, without the rest of a mechanism."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from kic.description.description import MEASURES, REFERENCES, D, MechanismDescription, connected, find_part
from kic.description.parts import Joint
from kic.description.validation import GROUND, part_of
from kic.errors import InputError, short_repr
from kic.numerics.arguments import names_of

# chains that are listed in an error, and steps of the search for chains
CHAINS_LISTED_MAX, CHAIN_STEPS_MAX = 8, 100_000


def chain(description: D, tip: str, *, through: str | Iterable[str] | None = None) -> D:
    """Return the serial chain of joints from ground to a body, an open mechanism.

    The chain is a leg of a closed mechanism, or a finger that holds an object, in the same reference
    configuration. `Dynamics.transfer` by the inverse of the tip's coefficients gives its model in
    coordinates of the tip. Models of legs add up to that of the mechanism (4-42) to (4-53), if masses and
    loads that several chains have are counted once.

    Parameters
    ----------
    tip : str
        Body at the end of the chain.
    through : str or list of str, optional
        Joints or bodies of the chain; needed if several chains lead to the body.

    Returns
    -------
    Mechanism
        The bodies of the chain, and those that are fixed to them, with all parts that refer to these
        bodies and joints alone: chains to the same tip all have its mass and its loads, and none has a
        spring between two legs. Coordinates are the joints from ground to the tip. Contacts, and fixed
        distances and angles, which close loops, are left out.

    Raises
    ------
    UnknownNameError
        If a name is unknown.
    InputError
        If no chain leads to the body, or more than one.

    Examples
    --------
    >>> robot = kic.load("three-legged-robot")
    >>> leg = robot.chain("platform", through="A1")
    >>> leg.coordinates, leg.dof, robot.dof
    (('A1', 'B1', 'C1'), 3, 3)
    """
    find_part(description, tip, "bodies", argument="tip")
    wanted = () if through is None else names_of(through, "through")
    for name in wanted:
        find_part(description, name, "joints", "bodies", argument="through")
    found = [
        path
        for path in _paths(description, tip)
        if {*wanted} <= {tip, *(joint.name for joint in path), *(b for j in path for b in j.bodies)}
    ]
    if len(found) != 1:
        _raise(description, tip, wanted, found)
    path = found[0]
    # bodies that are fixed to a link belong to it
    rigid = [joint for joint in description.joints if not joint.dof]
    bodies = connected(rigid, {GROUND, *(body for joint in path for body in joint.bodies)})
    joints = {joint.name for joint in (*path, *rigid) if {*joint.bodies} <= bodies}
    kept = _parts(description, bodies, joints)
    order = [c for joint in path for c in joint.components]
    for coupling in kept["couplings"]:  # determines the last of its coordinates
        names = {c for name in coupling.joints for c in description._components(name) or ()}
        own = [c for c in order if c in names]
        order = [c for c in order if c not in own[-1:]]
    kept |= {"coordinates": tuple(order), "actuators": None, "remarks": ()}
    name = f"{description.name}: {path[0].name} to {tip}"
    return replace(description, name=name, closure_tolerance=0.0, **kept)


def _paths(description: MechanismDescription, tip: str) -> Iterator[tuple[Joint, ...]]:
    """Yield all chains of joints from ground to a body that meet no body twice.

    Raise `InputError` if the search takes too many steps.
    """
    beside: dict[str, list[tuple[Joint, str]]] = {}
    for joint in description.joints:
        for a, b in (joint.bodies, joint.bodies[::-1]):
            beside.setdefault(a, []).append((joint, b))
    near = connected([joint for joint in description.joints if GROUND not in joint.bodies], [tip])
    # joints, and bodies that are met
    ways: list[tuple[tuple[Joint, ...], tuple[str, ...]]] = [((), (GROUND,))]
    for _ in range(CHAIN_STEPS_MAX):
        if not ways:
            return
        joints, met = ways.pop()
        for joint, body in reversed(beside.get(met[-1], ())):
            if body == tip:
                yield (*joints, joint)
            elif body in near and body not in met:
                ways.append(((*joints, joint), (*met, body)))
    raise InputError(
        f"'{tip}' of '{description.name}' is reached by more chains than can be listed. Remove joints with "
        "`without` first.",
        key="tip",
        got=tip,
    )


def _parts(
    description: MechanismDescription, bodies: Collection[str], joints: Collection[str]
) -> dict[str, Any]:
    """Return the parts that refer to these bodies and joints alone, without contacts and fixed measures."""
    names = {*bodies, *(point.name for point in description.points if point.body in bodies)}
    kept: dict[str, Any] = {"contacts": ()}
    kept["bodies"] = tuple(body for body in description.bodies if body.name in bodies)
    kept["joints"] = tuple(joint for joint in description.joints if joint.name in joints)
    for kind, key in REFERENCES.items():
        if kind not in kept:
            parts = getattr(description, kind)
            kept[kind] = tuple(part for part in parts if {*_listed(getattr(part, key))} <= names)
    kept |= {kind: tuple(x for x in kept[kind] if not x.fixed) for kind in MEASURES}
    for kind in ("couplings", "motors"):
        given = getattr(description, kind)
        kept[kind] = tuple(x for x in given if {part_of(j) for j in x.joints} <= {*joints})
    return kept


def _listed(names: str | Iterable[str] | None) -> Iterable[str]:
    """Return one or several names as a collection; none for None."""
    return (names,) if isinstance(names, str) else names or ()


def _raise(
    description: MechanismDescription, tip: str, wanted: tuple[str, ...], found: list[tuple[Joint, ...]]
) -> NoReturn:
    """Raise the error for no chain, or for several."""
    which = f" through {' and '.join(wanted)}" if wanted else ""
    if not found:
        raise InputError(
            f"No chain of joints leads from {GROUND} to '{tip}' of '{description.name}'{which}. Name joints "
            "or bodies of one chain.",
            key="through",
            got=wanted,
        )
    listed = "; ".join(", ".join(joint.name for joint in path) for path in found[:CHAINS_LISTED_MAX])
    more = "; …" if len(found) > CHAINS_LISTED_MAX else ""
    raise InputError(
        f"`through` must select one chain from {GROUND} to '{tip}' of '{description.name}', got "
        f"{short_repr(wanted or None)}, which leaves several: {listed}{more}. Name a joint or body that only "
        "one of them has.",
        key="through",
        got=wanted,
    )
