"""Locks: joints and distances that are fixed at values, and freed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, combinations
from typing import Any

import numpy as np

from kic.assembly import described_at, displacements
from kic.configuration import flat_states
from kic.description.parts import Distance
from kic.errors import InputError, KicError, short_repr
from kic.mechanism import Mechanism
from kic.numerics.arguments import mapping, names_of
from kic.numerics.arrays import numbers
from kic.numerics.tolerances import RANK_RTOL

# attribute of a locked mechanism: the one without locks in the same reference configuration, and their names
_LOCKS = "_locks"
# values of dependent locks that agree this well are consistent
CONSISTENT_RTOL = 1e-9


def lock(mechanism: Mechanism, values: Any) -> Mechanism:
    """Return a mechanism with joints and distances fixed at values; see `Mechanism.lock`."""
    base, names = _without_locks(mechanism)
    if isinstance(values, Mapping):
        given = mapping("values", values, "values by name")
    else:
        given = dict.fromkeys(names_of(values, "values"))
    for name in given:
        part: Any = base._part(name, "joints", "distances")
        if part.fixed if isinstance(part, Distance) else not part.dof:
            raise InputError(f"'{name}' of '{base.name}' is fixed. Leave it out.", name=name, key="values")
    base = _with_values(base, {**dict.fromkeys(names), **given})
    names = tuple(dict.fromkeys((*names, *given)))
    locked, couplings = dict.fromkeys(names), dict(base._terms)
    moved = True
    while moved:  # a coupling fixes the last of its joints
        moved = False
        for name, terms in couplings.items():
            couplings[name] = terms = tuple(x for x in terms if x[0].partition(".")[0] not in locked)
            if len(terms) == 1 and terms[0][0] in base._joints:
                locked[terms[0][0]], moved = None, True
    motors = [
        x.name for x in base.motors if {c.partition(".")[0] for c in base._shafts[x.name]} <= locked.keys()
    ]
    made = base.without(*motors, *(name for name, terms in couplings.items() if not terms))
    for name, terms in couplings.items():
        # a locked joint has the value of the reference configuration, where its term is zero
        if terms and terms != base._terms[name]:
            joints, ratios = zip(*terms, strict=True)
            made = made.replace(name, joints=joints, ratios=ratios, gears=None, belt=None, pitch_point=None)
    for name in locked:
        made = made.replace(name, **({"type": "fixed"} if name in base._joints else {"fixed": True}))
    made.__dict__[_LOCKS] = base, names
    return made


def unlock(mechanism: Mechanism, names: str | Iterable[str] | None) -> Mechanism:
    """Return a mechanism without some or all locks; see `Mechanism.unlock`."""
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


def _without_locks(mechanism: Mechanism) -> tuple[Mechanism, tuple[str, ...]]:
    """Return a mechanism without locks, and the names of the locks."""
    return mechanism.__dict__.get(_LOCKS, (mechanism, ()))


def _with_values(mechanism: Mechanism, values: Mapping[str, Any]) -> Mechanism:
    """Return a mechanism described where joints and distances have values; None is that of the reference.

    Other coordinates keep their values, except as many as the loops determine.
    """
    reference = mechanism.at()

    def rest(name: str) -> Any:
        return (
            mechanism._reference_values[name]
            if name in mechanism._reference_values
            else reference.value(name)
        )

    held: dict[str, Any] = {}
    spare: dict[str, Any] = {}  # values that those of other names determine
    rank, rows = 0, list[str]()
    for name, value in values.items():
        own = mechanism._components(name) or ()
        G = reference.coefficients([*rows, *own], order=1).G
        found_rank = int(np.linalg.matrix_rank(G))
        given = {c: rest(c) for c in own} if value is None else {name: value}
        (held if found_rank > rank else spare).update(given)
        if found_rank > rank:
            rank, rows = found_rank, [*rows, *own]
    others = [c for c in mechanism.coordinates if c not in held and c.partition(".")[0] not in held]
    # the first set whose rows are independent in the reference configuration, then all others
    first, chosen, found, error = tuple[str, ...](), tuple[str, ...](), None, None
    for name in others:
        G = reference.coefficients([*rows, *first, name], order=1).G
        if np.linalg.matrix_rank(G, tol=RANK_RTOL * np.abs(G).max()) == len(G):
            first = (*first, name)
    count = max(mechanism.dof - rank, 0)
    for chosen in chain([first[:count]], combinations(others, count)):
        try:
            found = mechanism.at({**{c: rest(c) for c in chosen}, **held})
            break
        except KicError as failed:
            error = error or failed
    if found is None or found.batch:
        raise error or InputError("`values` must be single numbers, got a batch.", key="values")
    for name, value in spare.items():
        there = found.value(name)
        if not np.allclose(numbers(name, value), there, rtol=CONSISTENT_RTOL, atol=CONSISTENT_RTOL):
            got = short_repr(value)
            message = f"`values` must agree: the others give {name} = {there:.6g}, got {got}. Leave one out."
            raise InputError(message, key="values", name=name)
    made = mechanism
    if any(value is not None for value in values.values()):
        state = flat_states(found)[0]
        made = described_at(mechanism, state, displacements(mechanism._model, state))
    # locks of other joints than the coordinates
    return made.replace(coordinates=(*chosen, *held)) if len(chosen) < len(others) else made
