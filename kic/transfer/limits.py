"""Limits of coordinates, distances, angles, other rows with a value, and swings of joints.

The argument `limits` of all functions is read here: True for the limits of the description, or a dict of
names to (lower, upper).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kic.description.description import find_part
from kic.description.parts import Joint
from kic.description.validation import GROUND, part_of, split_row
from kic.errors import InputError, UnknownNameError, invalid, unknown
from kic.transfer.compiled_model import CompiledModel

# largest excess over a limit that counts as round-off (rad, or lengths)
LIMIT_ATOL = 1e-9
SWING = "swing"

Limits = bool | Mapping[str, Any] | None


class MotionLimits:
    """Lower and upper limits of rows and swings.

    Parameters
    ----------
    model : CompiledModel
        The mechanism.
    limits : bool, dict of str to (lower, upper), or None
        True for the limits of the description, None or False for no limits.

    Attributes
    ----------
    bounds : dict of str to (float, float)
        Limits of each row or swing.
    lower, upper : (n,)
        The same as arrays.

    Raises
    ------
    InputError, UnknownNameError
        If a name has no single value, a pair is invalid, or True is given without limits in the description.
    """

    def __init__(self, model: CompiledModel, limits: Limits) -> None:
        self._model = model
        given: Mapping[str, Any] = {}
        if isinstance(limits, Mapping):
            given = limits
        elif limits is True or (isinstance(limits, np.bool_) and limits):
            given = model.description.limits
            if not given:
                raise InputError(
                    f"`limits` is True, but '{model.description.name}' has no limits. Give its joints, "
                    "distances or angles `limits`, or pass a dict of names to (lower, upper).",
                    key="limits",
                )
        elif limits is not None and not isinstance(limits, bool | np.bool_):
            raise invalid("limits", "must be True, None, or a dict that maps names to (lower, upper)", limits)
        self.bounds = {self._checked(name): _pair(name, pair) for name, pair in given.items()}
        self.lower, self.upper = np.array([*self.bounds.values()]).reshape(-1, 2).T

    def __bool__(self) -> bool:
        return bool(self.bounds)

    def _checked(self, name: Any) -> str:
        """Return a name after checking that it has a single value."""
        model = self._model
        base, row = split_row(name) if isinstance(name, str) else (name, "")
        if row == SWING and isinstance(model.description._parts.get(base), Joint):
            swing_direction(model, base)
            return str(name)
        try:
            height, valued = model.value_rows(name)
        except (UnknownNameError, InputError, TypeError):
            components = [c for joint in model.description.joints for c in joint.components]
            there = [*components, *model.description._variable_measures]
            raise unknown("row with a value", name, model.description.name, there) from None
        if not valued:
            raise InputError(
                f"'{name}' has a rate but no value, which `limits` needs. Limit the swing of the joint.",
                name=name,
            )
        if height > 1:
            raise InputError(
                f"'{name}' has several rows. Give limits of each, such as '{name}.1'.", name=name
            )
        return str(name)

    def values(self, states: np.ndarray) -> np.ndarray:
        """Return the values (B, n) at states (B, S), with angles of cut joints in the `nearest_turn`."""
        model, columns = self._model, list[np.ndarray]()
        for name, (lower, upper) in self.bounds.items():
            if name.endswith(f".{SWING}"):
                columns.append(swing_angle(model, part_of(name), states))
                continue
            value = model.values(name, states)[:, 0]
            if name not in model.tree.column and model.rows(name, 1).layout.rows.angles:
                value = nearest_turn(value, np.full(len(value), np.clip(0.0, lower, upper)), lower, upper)
            columns.append(value)
        return np.stack(columns, axis=1) if columns else np.zeros((len(states), 0))

    def excess(self, states: np.ndarray) -> np.ndarray:
        """Return the excess (B, n) over upper limits, or (negative) below lower ones; 0 within."""
        values = self.values(states).real
        return np.asarray(np.maximum(values - self.upper, 0.0) + np.minimum(values - self.lower, 0.0))

    def violations(self, states: np.ndarray) -> list[dict[str, float]]:
        """Return the excess of each violated limit, largest first, as a dict for each state."""
        found: list[dict[str, float]] = [{} for _ in states]
        excess = self.excess(states)
        names = list(self.bounds)
        for b in np.flatnonzero((np.abs(excess) > LIMIT_ATOL).any(axis=1)):
            order = np.argsort(-np.abs(excess[b]), kind="stable")
            found[b] = {names[k]: float(excess[b, k]) for k in order if abs(excess[b, k]) > LIMIT_ATOL}
        return found

    def reason(self, violation: Mapping[str, float]) -> str:
        """Return the violated limits of a state as text; '' without violations."""
        said = []
        for name, excess in violation.items():
            bound = self.bounds[name][excess > 0]
            side = "above" if excess > 0 else "below"
            said.append(f"beyond the limits of '{name}' by {abs(excess):.3g} ({side} {bound:.6g})")
        return ", ".join(said)


def _pair(name: str, pair: Any) -> tuple[float, float]:
    """Return the lower and upper limit of a name, after a check of their order."""
    try:
        lower, upper = (float(x) for x in pair)
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not lower <= upper:
        raise invalid("limits", f"of '{name}' must be two numbers, the lower one first", pair, name=name)
    return lower, upper


def nearest_turn(angle: np.ndarray, near: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """Return angles (K,) shifted by full turns, as close to `near` (K,) as the limits allow."""
    middle = np.clip(near, lower, upper)
    turns = angle[:, None] + 2 * np.pi * (np.round((middle - angle) / (2 * np.pi))[:, None] + [-1, 0, 1])
    beyond = np.maximum(np.maximum(lower - turns, turns - upper), 0.0)
    cost = np.where(beyond > LIMIT_ATOL, 1e6 + beyond, np.abs(turns - near[:, None]))
    return np.take_along_axis(turns, np.argmin(cost, axis=1)[:, None], axis=1)[:, 0]


def swing_direction(model: CompiledModel, name: str) -> np.ndarray:
    """Return the reference direction (3,) that swings in a universal or spherical joint.

    Raises
    ------
    InputError
        If the joint has another type, or is spherical without `swing_axis`.
    """
    joint = find_part(model.description, name, "joints")
    assert isinstance(joint, Joint)  # for the type checker: `part` searches joints only
    if joint.type not in ("universal", "spherical") or (joint.type == "spherical" and not joint.swing_axis):
        raise InputError(
            f"'{name}.{SWING}' needs a universal joint, or a spherical one with `swing` and `swing_axis`; "
            f"'{name}' is {joint.type}.",
            name=name,
        )
    given = np.cross(joint.axis, joint.axis2) if joint.swing_axis is None else np.array(joint.swing_axis)  # type: ignore[arg-type]
    return np.asarray(given.real / np.linalg.norm(given.real))


def swing_angle(model: CompiledModel, name: str, states: np.ndarray) -> np.ndarray:
    """Return the swing (B,) of a universal or spherical joint at states (B, S).

    It is the angle between two directions, one in each body, that coincide in the reference configuration.
    """
    d = swing_direction(model, name)
    one, other = (
        np.broadcast_to(d, (len(states), 3)) if body == GROUND else model.poses(body, states)[:, :3, :3] @ d
        for body in find_part(model.description, name, "joints").bodies  # type: ignore[union-attr]
    )
    sine = np.linalg.norm(np.cross(one, other), axis=-1)
    return np.arctan2(sine, np.einsum("bi,bi->b", one, other))
