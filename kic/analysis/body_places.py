"""Places of one body among several postures: which of them have it where others have it, too."""

from __future__ import annotations

import numpy as np

from kic.configuration import Configuration
from kic.display import Summary
from kic.numerics.rotations import vector_from_matrix
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.targets import reference_of

# so many postures of each place are told by number
MANY = 8


def body_places(model: CompiledModel, states: np.ndarray, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Points (K, 3) of reference of a body in K states, and how it is turned from the drawing, (K, 3, 3)."""
    T = Configuration(model, (len(states),), states).displacement(body)
    return T[:, :3, :3] @ reference_of(model.tree, body) + T[:, :3, 3], T[:, :3, :3]


def numbered(model: CompiledModel, states: np.ndarray, same: np.ndarray, body: str) -> np.ndarray:
    """Numbers (K, B) of a body's places in K states (K, B, S) of each of B members, in their order.

    Closer than `same` (K, B) is one; -1 where there is no posture.
    """
    numbers = np.full(same.shape, -1)
    for b in range(same.shape[1]):
        have = np.isfinite(states[:, b]).all(axis=1)
        numbers[have, b] = _numbered(model, states[have, b], same[have, b], body)
    return numbers


def _numbered(model: CompiledModel, states: np.ndarray, same: np.ndarray, body: str) -> np.ndarray:
    """The same at one member: (K,) for states (K, S)."""
    point, turned = body_places(model, states, body)
    place = np.concatenate([point / model.length, turned.reshape(-1, 9)], axis=1)
    numbers, first = np.zeros(len(states), dtype=int), list[int]()
    for k in range(len(states)):
        off = np.abs(place[first] - place[k]).max(axis=1)
        alike = np.flatnonzero(off <= np.minimum(same[first], same[k]))
        numbers[k] = alike[0] if alike.size else len(first)
        if not alike.size:
            first.append(k)
    return numbers


def tell(sheet: Summary, model: CompiledModel, states: np.ndarray, numbers: np.ndarray, body: str) -> Summary:
    """The table of a body's places, and which of the states (K, S) are there."""
    count, unit = int(numbers.max()) + 1, model.description.units.length
    sheet.say(f"{count} place{'s' if count > 1 else ''} of '{body}'")
    first = np.array([np.argmax(numbers == n) for n in range(count)])
    point, turned = body_places(model, states[first], body)
    rows = [str(n) for n in range(count)]
    columns = [*(f"{axis} ({unit})" for axis in "xyz"), *(f"turn {axis} (rad)" for axis in "xyz")]
    table = np.concatenate([point, vector_from_matrix(turned)], axis=1)
    sheet.matrix(f"places of '{body}', and its turn from the drawing", rows, columns, table)
    there = [np.flatnonzero(numbers == n).tolist() for n in range(count)]
    told = [[str(len(p)), ", ".join(map(str, p[:MANY])) + (", …" if p[MANY:] else "")] for p in there]
    sheet.texts("postures there", rows, ["how many", "which"], told)
    return sheet
