"""Several solutions of one position problem: Newton from many starts, and the distinct postures found."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from kic.analysis.body_places import numbered, tell
from kic.configuration import Configuration
from kic.display import Summary
from kic.errors import ConfigurationError, InputError, short_repr, unknown
from kic.kernels.layout import KIND, REVOLUTE, STATE
from kic.kinematics.state import distance
from kic.kinematics.tree import Tree
from kic.numerics.arguments import integer
from kic.position import initial_states
from kic.transfer.closure import Closure
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.targets import BatchTargets, Targets

# postures closer than this (rad, or characteristic lengths) are one; a double root is known less well
SAME, SAME_SINGULAR = 1e-5, 1e-3
# inputs whose rows have a worse condition hardly fix the posture: the limit of reach, or a motion left over
SINGULAR = 1e5
# how far beyond a limit a coordinate still counts as at the limit
ROUND_OFF = 1e-9
# with more postures than these it is said how to tell them by the place of a body
MANY = 8


class Assemblies(Configuration):
    """The distinct postures that were found for some inputs: a batch of them, the nearest first.

    Made by `Mechanism.assemblies`. They are those *found*: from finitely many starts nobody knows whether
    they are all. For a batch of inputs K is the largest number found at any member; where a member has fewer,
    the others have no posture (``.ok``), and slice k is one branch as far as it goes.

    Attributes
    ----------
    starts : int
        How many starts were tried.
    hits : (K, ...) int
        How many of them led to each posture.
    singular : (K, ...) bool
        Postures that the inputs hardly fix: there several solutions meet, as at the limit of reach, or
        some motion is left over, as in an aligned wrist.
    continued : (K, ...) bool
        Postures to which the one of the same slice at the member before leads without a jump: the member
        before is the neighbour along the last axis of the batch, at its beginning that along the axis before.
        Always False for one target.

    Examples
    --------
    >>> import kic
    >>> found = kic.load("horn-two-link").assemblies({"tip.x": 1.0, "tip.y": 1.0})
    >>> found.value("elbow").round(6).tolist()
    [1.570796, -1.570796]
    """

    def __init__(
        self,
        model: CompiledModel,
        states: np.ndarray,
        starts: int,
        hits: np.ndarray,
        singular: np.ndarray,
        continued: np.ndarray | None = None,
        aims: BatchTargets | None = None,
    ) -> None:
        ok = np.isfinite(states).all(axis=1).reshape(hits.shape)
        super().__init__(model, hits.shape, states, None if ok.all() else ok, aims)
        self.starts, self.counts, self.singular = starts, hits, singular
        self.continued = np.zeros(hits.shape, dtype=bool) if continued is None else continued

    def __getitem__(self, members: Any) -> Configuration:  # type: ignore[override]
        """Some of the postures, by index, as `Configuration` has them."""
        return Configuration(self._model, self.batch, self._states, self._ok, self._aims)[members]

    def places(self, of: str) -> np.ndarray:
        """Which postures have a body at the same place: assemblies that differ elsewhere only.

        A leg that is folded over at a universal joint is another posture, and the platform on it stays.

        Parameters
        ----------
        of : str
            The body.

        Returns
        -------
        (K, ...) int ndarray
            The number of its place, at each member counted from 0 in the order of the postures; -1 where
            there is no posture.

        Raises
        ------
        UnknownNameError
            If there is no such body.

        Examples
        --------
        >>> import kic
        >>> found = kic.load("puma560").assemblies([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
        >>> found.places("link6").tolist()
        [0]
        """
        self._model.description.part(of, "bodies")
        states = self._states.reshape(*self.counts.shape[:1], -1, self._states.shape[-1])
        same = np.where(self.singular, SAME_SINGULAR, SAME).reshape(states.shape[:2])
        return numbered(self._model, states, same, of).reshape(self.counts.shape)

    def summary(self, of: str | None = None) -> Summary:
        """Labelled table of the postures found, to print or to show.

        Parameters
        ----------
        of : str, optional
            A body of one target's postures: the table is of its places, and of who is there.
        """
        count = len(self.counts)
        if self.counts.ndim > 1:
            if of is not None:
                raise InputError(f"A batch has no one table of places. Ask places('{of}').", name=of)
            return self._branches()
        sheet = Summary(f"{self.name}: {count} distinct posture{'s' if count > 1 else ''} found")
        sheet.say(f"{int(self.counts.sum())} of {self.starts} starts led to them; there may be others")
        if self.singular.any():
            which = ", ".join(map(str, np.flatnonzero(self.singular)))
            why = "at the limit of reach, or with a motion left over"
            sheet.say(f"the inputs hardly fix posture {which}: {why}")
        if of is not None:
            return tell(sheet, self._model, self._states, self.places(of), of)
        if count > MANY:
            body = self._model.description.bodies[-1].name  # what a mechanism is for is mostly drawn last
            sheet.say(f"told apart by all joints; by the places of '{body}' alone: .summary('{body}').text()")
        names = self.coordinates if self._model.is_open_chain else self._model.tree.columns
        sheet.matrix("postures", [str(k) for k in range(count)], list(names), self.phi)
        return sheet

    def _branches(self) -> Summary:
        """The table for a batch of inputs: how many postures its members have."""
        number, members = self.ok.sum(axis=0), self.counts[0].size if len(self.counts) else 0
        sheet = Summary(f"{self.name}: distinct postures found at each of {members} members {self.batch[1:]}")
        sheet.say(f"{int(self.counts.sum())} of {self.starts} starts led to them; there may be others")
        have = [int((number == n).sum()) for n in range(len(self.counts) + 1)]
        rows = [str(n) for n, several in enumerate(have) if several]
        sheet.texts("postures", rows, ["members that have so many"], [[str(n)] for n in have if n])
        return sheet


@dataclass(frozen=True)
class Search:
    """What is looked for, and from where: checked arguments of `Mechanism.assemblies`."""

    model: CompiledModel
    targets: Targets
    closure: Closure
    base: np.ndarray
    bounds: dict[str, tuple[float, float]]
    starts: int
    rng: np.random.Generator

    @property
    def given(self) -> dict[str, int]:
        """Coordinates of the tree that are inputs themselves, and which of the values."""
        labels = self.closure.transfer.labels  # poses follow the names
        return {n: k for k, n in enumerate(labels) if n in self.model.tree.column}

    @property
    def members(self) -> list[tuple[int, ...]]:
        """Indices of the targets."""
        return list(np.ndindex(self.targets.batch))

    def begin(self, count: int, values: np.ndarray) -> np.ndarray:
        """Starts (count, S) for values (count, P): near, then random ones that have the given coordinates."""
        tree = self.model.tree
        begin = _starts(self.model, self.base, self.bounds, count, self.rng)
        for name, k in self.given.items():
            begin[1:, tree.cols[tree.column[name], STATE]] = values[1:, k]
        return begin

    def unwound(self, states: np.ndarray, base: np.ndarray) -> np.ndarray:
        """The same postures (K, S), each revolute in the turn closest to the base (S,) or (K, S)."""
        return _unwound(self.model.tree, base, states, self.bounds, self.given)

    def beyond(self, states: np.ndarray) -> np.ndarray:
        """How far (K, limits) each limited coordinate is beyond its limits."""
        return beyond_limits(self.model, states, self.bounds)


def searched(
    model: CompiledModel,
    inputs: Any,
    near: Configuration | None,
    starts: int,
    seed: Any,
    limits: Mapping[str, Any] | None,
) -> Search:
    """Arguments of `Mechanism.assemblies`, checked."""
    starts = integer("starts", starts, 1)
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(
            f"Expected `seed` to be a whole number or a Generator, got {short_repr(seed)}."
        ) from None
    targets = model.targets(inputs)
    base, around = initial_states(model, near)
    if around:
        raise InputError(f"Expected `near` to be one posture, got a batch {around}.")
    closure = model.closure(targets.names, targets.held)
    return Search(model, targets, closure, base, limits_of(model, limits), int(starts), rng)


def one_target(search: Search) -> Assemblies:
    """Distinct solutions found for one target; see `Mechanism.assemblies`."""
    model, targets, closure = search.model, search.targets, search.closure
    why = str(targets.impossible) or ("" if np.isfinite(targets.values).all() else "inputs must be finite")
    if why:
        raise ConfigurationError(
            f"'{model.description.name}' has no such posture: {why}.", failed=[()], reasons=[why]
        )
    values = np.repeat(targets.values[None], search.starts, axis=0)
    ended, left, reasons = closure.newton_global(search.begin(search.starts, values), values)
    closed = np.array([not reason for reason in reasons])
    if not closed.any():
        refuse(search, ended, left, reasons)
    states = search.unwound(ended[closed], search.base)
    beyond = search.beyond(states)
    within = beyond.max(axis=1, initial=0.0) <= ROUND_OFF
    if not within.any():
        refuse_limits(search, states, beyond, search.starts)
    states = states[within]
    kept, hits = distinct(closure, search.base, states)
    states = states[kept]
    return Assemblies(model, states, search.starts, hits, closure.condition(states) > SINGULAR)


def limits_of(model: CompiledModel, limits: Mapping[str, Any] | None) -> dict[str, tuple[float, float]]:
    """Lower and upper limit of each coordinate that has some."""
    if limits is None:
        return {}
    if not isinstance(limits, Mapping):
        raise InputError(
            f"Expected `limits` to be a dict of joint to (lower, upper), got {short_repr(limits)}."
        )
    components = [c for joint in model.description.joints for c in joint.components]
    bounds = {}
    for key, pair in limits.items():
        if key not in components:
            raise unknown("coordinate of a joint", key, model.description.name, components)
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
            f"Expected `limits` of '{name}' to be two numbers, the lower one first, got {short_repr(pair)}."
        )
    return lower, upper


def _turns_of_balls(tree: Tree) -> set[str]:
    return {tree.columns[n + k] for n in tree.balls for k in range(3)}


def _starts(
    model: CompiledModel,
    base: np.ndarray,
    bounds: dict[str, tuple[float, float]],
    count: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """States (count, S): the given one, then random ones, within limits where there are some."""
    tree = model.tree
    states = np.repeat(base[None], count, axis=0)
    for n, name in enumerate(tree.columns):
        place = tree.cols[n, STATE]
        if n in tree.balls:
            q = rng.normal(size=(count, 4))
            states[:, place : place + 4] = q / np.linalg.norm(q, axis=1)[:, None]
        elif place >= 0:
            reach = np.pi if tree.cols[n, KIND] == REVOLUTE else model.length
            lower, upper = bounds.get(name, (-np.inf, np.inf))
            middle = min(max(base[place], lower), upper)
            lower, upper = max(lower, middle - reach), min(upper, middle + reach)
            states[:, place] = rng.uniform(lower, upper, size=count)
    states[:1] = base
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
        place = tree.cols[n, STATE]
        if tree.cols[n, KIND] == REVOLUTE and name not in given:
            near = np.broadcast_to(base[..., place], len(states))
            states[:, place] = _closest_turn(states[:, place], near, *bounds.get(name, (-np.inf, np.inf)))
    return states


def _closest_turn(angle: np.ndarray, near: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """Angles (K,) but for full turns: those within limits if there are any, the closest to `near` (K,)."""
    middle = np.clip(near, lower, upper)
    turns = angle[:, None] + 2 * np.pi * (np.round((middle - angle) / (2 * np.pi))[:, None] + [-1, 0, 1])
    beyond = np.maximum(np.maximum(lower - turns, turns - upper), 0.0)
    cost = np.where(beyond > ROUND_OFF, 1e6 + beyond, np.abs(turns - near[:, None]))
    return np.take_along_axis(turns, np.argmin(cost, axis=1)[:, None], axis=1)[:, 0]


def beyond_limits(
    model: CompiledModel, states: np.ndarray, bounds: dict[str, tuple[float, float]]
) -> np.ndarray:
    """How far (K, limits) each limited coordinate is beyond its limits."""
    tree, postures = model.tree, Configuration(model, (len(states),), states)
    columns = []
    for name, (lower, upper) in bounds.items():
        value = postures.value(name)
        if name not in tree.column and model.rows(name, 1).layout.rows.angles:  # known but for full turns
            value = _closest_turn(value, np.full(len(value), np.clip(0.0, lower, upper)), lower, upper)
        columns.append(np.maximum(np.maximum(lower - value, value - upper), 0.0))
    return np.stack(columns, axis=1) if columns else np.zeros((len(states), 0))


def apart(transfer: CoordinateTransfer, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far states (K, S) are from others (K, S) or one (S,), but for full turns: the largest gap, (K,)."""
    tree = transfer.tree
    b = np.broadcast_to(b, a.shape).copy()
    at = tree.cols[tree.cols[:, KIND] == REVOLUTE, STATE]
    b[:, at] += 2 * np.pi * np.round((a[:, at] - b[:, at]) / (2 * np.pi))
    return distance(tree, a, b, transfer.column_scale).max(axis=1, initial=0.0)


def sameness(condition: np.ndarray) -> np.ndarray:
    """How close postures of some condition must be to count as one."""
    return np.where(condition > SINGULAR, SAME_SINGULAR, SAME)


def distinct(closure: Closure, base: np.ndarray, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which states (K, S) are distinct postures, the closest to the base first, and how many led to each."""
    t = closure.transfer
    same = sameness(closure.condition(states))
    far = np.linalg.norm(
        distance(t.tree, states, np.broadcast_to(base, states.shape), t.column_scale), axis=1
    )
    rest = np.argsort(far, kind="stable")
    kept, hits = [], []
    while rest.size:
        first = rest[0]
        alike = apart(t, states[rest], states[first]) <= np.minimum(same[rest], same[first])
        alike[0] = True
        kept.append(first)
        hits.append(int(alike.sum()))
        rest = rest[~alike]
    return np.array(kept, dtype=np.intp), np.array(hits, dtype=np.intp)


def refuse_limits(search: Search, states: np.ndarray, beyond: np.ndarray, starts: int) -> NoReturn:
    """Postures (K, S) were found, but all of them beyond limits, by (K, limits)."""
    model, bounds = search.model, search.bounds
    least = int(np.argmin(beyond.max(axis=1)))
    worst = list(bounds)[int(np.argmax(beyond[least]))]
    kept, _ = distinct(search.closure, search.base, states)
    raise ConfigurationError(
        f"'{model.description.name}' has such postures ({len(kept)} found from {starts} starts), but none within "
        f"`limits`: the nearest exceeds those of '{worst}' by {beyond[least].max():.3g}. Widen them, or move "
        "the target.",
        failed=search.members,
        reasons=[f"beyond the limits of '{worst}'"] * len(search.members),
        beyond=float(beyond[least].max()),
        joint=worst,
        configuration=Configuration(model, (len(kept),), states[kept]),
    )


def refuse(search: Search, states: np.ndarray, left: np.ndarray, reasons: list[str]) -> NoReturn:
    """No start led to a posture: how near they came, or what they closed the wrong way round."""
    best = int(np.argmin(np.where(np.isfinite(left), left, np.inf)))
    flipped = [why for why in reasons if "wrong way" in why]
    why = flipped[0] if flipped else f"the nearest misses by {left[best]:.2e}"
    members, model = search.members, search.model
    where = f" at any of {len(members)} members" if search.targets.batch else ""
    raise ConfigurationError(
        f"No posture of '{model.description.name}' with these values was found{where} from {len(states)} starts: "
        f"{why}. Move the target, or try more `starts`.",
        failed=members,
        reasons=[why] * len(members),
        left=float(left[best]),
        nearest=Configuration(model, (), states[best : best + 1]),
    )
