"""Several solutions of one position problem: Newton from many starts, and the distinct postures found."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from kic.closure import Closure
from kic.configuration import Configuration
from kic.errors import InputError, PostureError, shown, unknown
from kic.model import Model
from kic.position import beginning, followed, on_real, real_inputs
from kic.posture import gaps
from kic.tables import Sheet
from kic.tree import REVOLUTE, Tree

# postures closer than this (rad, or characteristic lengths) are one; a double root is known less well
SAME, SAME_SINGULAR = 1e-5, 1e-3
# inputs whose rows have a worse condition hardly fix the posture: the limit of reach, or a motion left over
SINGULAR = 1e5
# how far beyond a limit a coordinate still counts as at the limit
ROUND_OFF = 1e-9


class Assemblies(Configuration):
    """The distinct postures that were found for some inputs: a batch of them, the nearest first.

    Made by `Mechanism.assemblies`. They are those *found*: from finitely many starts nobody knows whether
    they are all.

    Attributes
    ----------
    starts : int
        How many starts were tried.
    hits : (K,) int
        How many of them led to each posture.
    singular : (K,) bool
        Postures that the inputs hardly fix: there several solutions meet, as at the limit of reach, or
        some motion is left over, as in an aligned wrist.

    Examples
    --------
    >>> import kic
    >>> found = kic.load("horn-two-link").assemblies({"tip.x": 1.0, "tip.y": 1.0})
    >>> found.value("elbow").round(6).tolist()
    [1.570796, -1.570796]
    """

    def __init__(
        self, model: Model, states: np.ndarray, starts: int, hits: np.ndarray, singular: np.ndarray
    ) -> None:
        super().__init__(model, (len(states),), states)
        self.starts, self.hits, self.singular = starts, hits, singular

    def sheet(self) -> Sheet:
        """Labelled table of the postures found, to print or to show."""
        count = len(self.hits)
        sheet = Sheet(f"{self.name}: {count} distinct posture{'s' if count > 1 else ''} found")
        sheet.say(f"{int(self.hits.sum())} of {self.starts} starts led to them; there may be others")
        if self.singular.any():
            which = ", ".join(map(str, np.flatnonzero(self.singular)))
            sheet.say(
                f"the inputs hardly fix posture {which}: at the limit of reach, or with a motion left over"
            )
        names = self.coordinates if self._model.direct else self._model.tree.columns
        sheet.matrix("postures", [str(k) for k in range(count)], list(names), self.phi)
        return sheet


def search(
    model: Model,
    inputs: Any,
    near: Configuration | None,
    starts: int,
    seed: Any,
    limits: Mapping[str, Any] | None,
) -> Assemblies:
    """Distinct solutions found from random starts; see `Mechanism.assemblies`."""
    if model.stepped:
        real = search(model.real, real_inputs(inputs), on_real(model, near), starts, seed, limits)
        targets = model.targets(inputs)
        states = followed(model, targets, targets.values, real)._states
        return Assemblies(model, states, real.starts, real.hits, real.singular)
    who = model.drawing.name
    if not isinstance(starts, int | np.integer) or isinstance(starts, bool) or starts < 1:
        raise InputError(f"Expected `starts` to be a positive number of starts, got {shown(starts)}.")
    targets = model.targets(inputs)
    if targets.batch:
        raise InputError(
            f"Assemblies of '{who}' are searched for one target at a time, for each has its own number of "
            f"them; got inputs with the batch {targets.batch}. Ask in a loop."
        )
    base, around = beginning(model, near)
    if around:
        raise InputError(f"Expected `near` to be one posture, got a batch {around}.")
    why = str(targets.impossible) or ("" if np.isfinite(targets.values).all() else "inputs must be finite")
    if why:
        raise PostureError(f"'{who}' has no such posture: {why}.", failed=[()], reasons=[why])
    bounds = _bounds(model, limits)
    closure = model.closure(targets.names, targets.held)
    begin = _starts(model, base, bounds, int(starts), seed)
    wanted = dict(zip(closure.transfer.labels, targets.values, strict=False))  # poses follow the names
    given = {n: wanted[n] for n in wanted if n in model.tree.column}
    for name, value in given.items():
        begin[1:, model.tree.cols[model.tree.column[name], 3]] = value
    ended, left, reasons = closure.find(begin, np.repeat(targets.values[None], len(begin), axis=0))
    closed = np.array([not reason for reason in reasons])
    if not closed.any():
        _refuse(model, ended, left, reasons)
    states = _unwound(model.tree, base, ended[closed], bounds, given)
    beyond = _beyond(model, states, bounds)
    within = beyond.max(axis=1, initial=0.0) <= ROUND_OFF
    if not within.any():
        least = int(np.argmin(beyond.max(axis=1)))
        worst = list(bounds)[int(np.argmax(beyond[least]))]
        kept, _ = _distinct(closure, base, states)
        raise PostureError(
            f"'{who}' has such postures ({len(kept)} found from {starts} starts), but none within `limits`: "
            f"the nearest exceeds those of '{worst}' by {beyond[least].max():.3g}. Widen them, or move the "
            "target.",
            failed=[()],
            reasons=[f"beyond the limits of '{worst}'"],
            beyond=float(beyond[least].max()),
            joint=worst,
            configuration=Configuration(model, (len(kept),), states[kept]),
        )
    states = states[within]
    kept, hits = _distinct(closure, base, states)
    states = states[kept]
    return Assemblies(model, states, int(starts), hits, closure.condition(states) > SINGULAR)


def _bounds(model: Model, limits: Mapping[str, Any] | None) -> dict[str, tuple[float, float]]:
    """Lower and upper limit of each coordinate that has some."""
    if limits is None:
        return {}
    if not isinstance(limits, Mapping):
        raise InputError(f"Expected `limits` to be a dict of joint to (lower, upper), got {shown(limits)}.")
    components = [c for joint in model.drawing.joints for c in joint.components]
    bounds = {}
    for key, pair in limits.items():
        if key not in components:
            raise unknown("coordinate of a joint", key, model.drawing.name, components)
        if not model.value_rows(key)[1] or key in _turns_of_balls(model.tree):
            raise InputError(
                f"'{key}' is a turn of a ball, which has no coordinate that `limits` could hold."
            )
        lower, upper = _pair(key, pair)
        bounds[key] = (lower, upper)
    return bounds


def _pair(name: str, pair: Any) -> tuple[float, float]:
    try:
        lower, upper = (float(x) for x in pair)
    except (TypeError, ValueError):
        lower, upper = np.nan, np.nan
    if not lower <= upper:
        raise InputError(
            f"Expected `limits` of '{name}' to be two numbers, the lower one first, got {shown(pair)}."
        )
    return lower, upper


def _turns_of_balls(tree: Tree) -> set[str]:
    return {tree.columns[n + k] for n in tree.balls for k in range(3)}


def _starts(
    model: Model, base: np.ndarray, bounds: dict[str, tuple[float, float]], count: int, seed: Any
) -> np.ndarray:
    """States (count, S): the given one, then random ones, within limits where there are some."""
    tree, rng = model.tree, np.random.default_rng(seed)
    states = np.repeat(base[None], count, axis=0)
    for n, name in enumerate(tree.columns):
        place = tree.cols[n, 3]
        if n in tree.balls:
            q = rng.normal(size=(count, 4))
            states[:, place : place + 4] = q / np.linalg.norm(q, axis=1)[:, None]
        elif place >= 0:
            reach = np.pi if tree.cols[n, 1] == REVOLUTE else model.length
            lower, upper = bounds.get(name, (-np.inf, np.inf))
            middle = min(max(base[place], lower), upper)
            lower, upper = max(lower, middle - reach), min(upper, middle + reach)
            states[:, place] = rng.uniform(lower, upper, size=count)
    states[0] = base
    return states


def _unwound(
    tree: Tree,
    base: np.ndarray,
    states: np.ndarray,
    bounds: dict[str, tuple[float, float]],
    given: Container[str],
) -> np.ndarray:
    """The same postures, with each revolute in the turn closest to where it was, within its limits."""
    states = states.copy()
    for n, name in enumerate(tree.columns):
        place = tree.cols[n, 3]
        if tree.cols[n, 1] == REVOLUTE and name not in given:
            states[:, place] = _closest_turn(
                states[:, place], base[place], *bounds.get(name, (-np.inf, np.inf))
            )
    return states


def _closest_turn(angle: np.ndarray, near: float, lower: float, upper: float) -> np.ndarray:
    """Angles (K,) but for full turns: those within limits if there are any, the closest to `near`."""
    middle = min(max(near, lower), upper)
    turns = angle[:, None] + 2 * np.pi * (np.round((middle - angle) / (2 * np.pi))[:, None] + [-1, 0, 1])
    beyond = np.maximum(np.maximum(lower - turns, turns - upper), 0.0)
    cost = np.where(beyond > ROUND_OFF, 1e6 + beyond, np.abs(turns - near))
    return np.take_along_axis(turns, np.argmin(cost, axis=1)[:, None], axis=1)[:, 0]


def _beyond(model: Model, states: np.ndarray, bounds: dict[str, tuple[float, float]]) -> np.ndarray:
    """How far (K, limits) each limited coordinate is beyond its limits."""
    tree, postures = model.tree, Configuration(model, (len(states),), states)
    columns = []
    for name, (lower, upper) in bounds.items():
        value = postures.value(name)
        if name not in tree.column and model.rows(name, 1).answer.rows.angles:  # known but for full turns
            value = _closest_turn(value, float(np.clip(0.0, lower, upper)), lower, upper)
        columns.append(np.maximum(np.maximum(lower - value, value - upper), 0.0))
    return np.stack(columns, axis=1) if columns else np.zeros((len(states), 0))


def _distinct(closure: Closure, base: np.ndarray, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which states (K, S) are distinct postures, the closest to the base first, and how many led to each."""
    t = closure.transfer

    def gap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """How far states are apart, but for full turns."""
        b = np.broadcast_to(b, a.shape).copy()
        at = t.tree.cols[t.tree.cols[:, 1] == REVOLUTE, 3]
        b[:, at] += 2 * np.pi * np.round((a[:, at] - b[:, at]) / (2 * np.pi))
        return gaps(t.tree, a, b, t.column_scale).max(axis=1, initial=0.0)

    same = np.where(closure.condition(states) > SINGULAR, SAME_SINGULAR, SAME)
    far = np.linalg.norm(gaps(t.tree, states, np.broadcast_to(base, states.shape), t.column_scale), axis=1)
    rest = np.argsort(far, kind="stable")
    kept, hits = [], []
    while rest.size:
        first = rest[0]
        alike = gap(states[rest], states[first]) <= np.minimum(same[rest], same[first])
        alike[0] = True
        kept.append(first)
        hits.append(int(alike.sum()))
        rest = rest[~alike]
    return np.array(kept, dtype=np.intp), np.array(hits)


def _refuse(model: Model, states: np.ndarray, left: np.ndarray, reasons: list[str]) -> None:
    """No start led to a posture: how near they came, or what they closed the wrong way round."""
    best = int(np.argmin(np.where(np.isfinite(left), left, np.inf)))
    flipped = [why for why in reasons if "wrong way" in why]
    why = flipped[0] if flipped else f"the nearest misses by {left[best]:.2e}"
    raise PostureError(
        f"No posture of '{model.drawing.name}' with these values was found from {len(states)} starts: {why}. "
        "Move the target, or try more `starts`.",
        failed=[()],
        reasons=[why],
        left=float(left[best]),
        nearest=Configuration(model, (), states[best : best + 1]),
    )
