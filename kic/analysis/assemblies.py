"""Assembly modes: several solutions of one position problem, found by Newton's method from many starts."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from kic.configuration import Configuration
from kic.errors import ConfigurationError, InputError
from kic.kernels.layout import KIND, REVOLUTE, STATE
from kic.kinematics.state import distance
from kic.kinematics.tree import Tree
from kic.numerics.arguments import integer
from kic.numerics.display import Summary
from kic.numerics.rotations import vector_from_matrix
from kic.position import initial_states
from kic.transfer.closure import Closure
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.limits import LIMIT_ATOL, Limits, MotionLimits, nearest_turn
from kic.transfer.targets import BatchTargets, Targets, frame_part, reference_of

# solutions closer than this are one (rad, or characteristic lengths); a double root is less accurate
SOLUTION_ATOL, SINGULAR_SOLUTION_ATOL = 1e-5, 1e-3
# with a larger condition of their rows the inputs barely determine the configuration: at the limit of reach,
# or if some motion remains
ISOLATED_CONDITION_MAX = 1e5
# assembly modes that are listed; with more, the summary proposes to group them by the pose of a body
LISTED_MAX = 8


class Assemblies(Configuration):
    """The distinct assembly modes found for some inputs, as a batch, the nearest first.

    Made by `Mechanism.assemblies`. Finitely many starts do not prove that these are all. For a batch of
    inputs, K is the largest number found at any member. Members with fewer have no configuration in the
    remaining slices (``.ok`` is False), and slice k is one branch as far as it continues.

    Attributes
    ----------
    starts : int
        Number of starts.
    counts : (K, ...) int
        Number of starts that converged to each configuration.
    singular : (K, ...) bool
        Configurations that the inputs barely determine: several solutions meet there, as at the limit of
        reach, or some motion remains, as in an aligned wrist.
    continued : (K, ...) bool
        True if the configuration of the same slice at the preceding member leads here without a jump. The
        preceding member is the neighbour along the last axis of the batch; at its beginning, along the axis
        before. Always False for one target.

    Examples
    --------
    >>> found = kic.load("horn-two-link").assemblies({"tip.x": 1.0, "tip.y": 1.0})
    >>> found.value("elbow").round(6).tolist()
    [1.570796, -1.570796]
    """

    def __init__(
        self,
        model: CompiledModel,
        states: np.ndarray,
        starts: int,
        counts: np.ndarray,
        singular: np.ndarray,
        continued: np.ndarray | None = None,
        targets: BatchTargets | None = None,
    ) -> None:
        ok = np.isfinite(states).all(axis=1).reshape(counts.shape)
        super().__init__(model, counts.shape, states, None if ok.all() else ok, targets)
        self.starts, self.counts, self.singular = starts, counts, singular
        self.continued = np.zeros(counts.shape, dtype=bool) if continued is None else continued

    def __getitem__(self, members: Any) -> Configuration:  # type: ignore[override]
        """Return some of the configurations, indexed like a `Configuration`."""
        return Configuration(self._model, self.batch, self._states, self._ok, self._aims)[members]

    def places(self, of: str) -> np.ndarray:
        """Number the poses of a body, to group assembly modes that differ only elsewhere.

        A leg that is folded over at a universal joint is another assembly mode with the same pose of the
        platform.

        Parameters
        ----------
        of : str
            The body.

        Returns
        -------
        (K, ...) int ndarray
            Number of its pose, counted from 0 at each member in the order of the assembly modes; -1 where
            there is no configuration.

        Examples
        --------
        >>> found = kic.load("puma560").assemblies([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
        >>> found.places("link6").tolist()
        [0]
        """
        self._model.description.part(of, "bodies")
        states = self._states.reshape(*self.counts.shape[:1], -1, self._states.shape[-1])
        tolerance = np.where(self.singular, SINGULAR_SOLUTION_ATOL, SOLUTION_ATOL).reshape(states.shape[:2])
        numbers = np.full(tolerance.shape, -1)
        for b in range(states.shape[1]):
            have = np.isfinite(states[:, b]).all(axis=1)
            numbers[have, b] = _pose_numbers(self._model, states[have, b], tolerance[have, b], of)
        return numbers.reshape(self.counts.shape)

    def summary(self, of: str | None = None) -> Summary:
        """Return a labelled table of the assembly modes.

        Parameters
        ----------
        of : str, optional
            A body: tabulate its poses, and the assembly modes that share each. For one target only.
        """
        count = len(self.counts)
        if self.counts.ndim > 1:
            if of is not None:
                raise InputError(
                    f"`of` must be None for a batch of targets, got '{of}'. Use places('{of}').", key="of"
                )
            return self._batch_summary()
        sheet = Summary(f"{self.name}: {count} distinct assembly mode{'s' if count > 1 else ''} found")
        sheet.say(f"{int(self.counts.sum())} of {self.starts} starts converged to them; there may be others")
        if self.singular.any():
            which = ", ".join(map(str, np.flatnonzero(self.singular)))
            why = "the limit of reach, or a motion remains"
            sheet.say(f"the inputs barely determine assembly mode {which}: {why}")
        if of is not None:
            return _add_pose_tables(sheet, self._model, self._states, self.places(of), of)
        if count > LISTED_MAX:
            body = self._model.description.bodies[-1].name  # the output body is usually described last
            sheet.say(f"distinguished by all joints; by the pose of '{body}' alone: .summary('{body}')")
        names = self.coordinates if self._model.is_open_chain else self._model.tree.columns
        sheet.matrix("assembly modes", [str(k) for k in range(count)], list(names), self.phi)
        return sheet

    def _batch_summary(self) -> Summary:
        """Return a table of the number of assembly modes at the members of a batch."""
        number, members = self.ok.sum(axis=0), self.counts[0].size if len(self.counts) else 0
        sheet = Summary(f"{self.name}: distinct assembly modes at each of {members} members {self.batch[1:]}")
        sheet.say(f"{int(self.counts.sum())} of {self.starts} starts converged to them; there may be others")
        have = [int((number == n).sum()) for n in range(len(self.counts) + 1)]
        rows = [str(n) for n, several in enumerate(have) if several]
        sheet.texts("assembly modes", rows, ["number of members"], [[str(n)] for n in have if n])
        return sheet


@dataclass(frozen=True)
class AssemblySearch:
    """Checked arguments of `Mechanism.assemblies`."""

    model: CompiledModel
    targets: Targets
    closure: Closure
    base: np.ndarray
    limits: MotionLimits
    starts: int
    rng: np.random.Generator

    @property
    def given(self) -> dict[str, int]:
        """Tree coordinates that are inputs themselves, with their indices among the values."""
        labels = self.closure.transfer.labels  # poses follow the names
        return {n: k for k, n in enumerate(labels) if n in self.model.tree.column}

    @property
    def members(self) -> list[tuple[int, ...]]:
        """Multi-index of each target."""
        return list(np.ndindex(self.targets.batch))

    def starting_states(self, count: int, values: np.ndarray) -> np.ndarray:
        """Return starts (count, S) for values (count, P): the base, then random ones with given inputs."""
        tree = self.model.tree
        states = _starting_states(self.model, self.base, self.limits.bounds, count, self.rng)
        for name, k in self.given.items():
            states[1:, tree.cols[tree.column[name], STATE]] = values[1:, k]
        return states

    def nearest_turns(self, states: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Return states (K, S) with each revolute joint in the turn closest to the base (S,) or (K, S)."""
        return _nearest_turns(self.model.tree, base, states, self.limits.bounds, self.given)

    def beyond(self, states: np.ndarray) -> np.ndarray:
        """Return the excess (K, limits) of each limited coordinate over its limits."""
        return np.abs(self.limits.excess(states))


def assembly_search(
    model: CompiledModel,
    inputs: Any,
    near: Configuration | None,
    starts: int,
    seed: Any,
    limits: Limits,
) -> AssemblySearch:
    """Check the arguments of `Mechanism.assemblies`."""
    starts = integer("starts", starts, 1)
    if not isinstance(seed, np.random.Generator):
        # NumPy's own check recurses without end on a matrix
        seed = integer("seed", seed, 0, other="a Generator")
    rng = np.random.default_rng(seed)
    targets, closure = model.position_problem(inputs)
    base, around = initial_states(model, near)
    if around:
        raise InputError(f"`near` must be one configuration, got a batch {around}.", key="near", got=around)
    return AssemblySearch(model, targets, closure, base, MotionLimits(model, limits), int(starts), rng)


def find_for_target(search: AssemblySearch) -> Assemblies:
    """Return the distinct solutions found for one target."""
    model, targets, closure = search.model, search.targets, search.closure
    why = str(targets.impossible)
    if why:
        raise ConfigurationError(
            f"'{model.description.name}' has no configuration with these inputs: {why}.",
            failed=[()],
            reasons=[why],
        )
    values = np.repeat(targets.values[None], search.starts, axis=0)
    final, residuals, reasons = closure.newton_global(search.starting_states(search.starts, values), values)
    converged = np.array([not reason for reason in reasons])
    if not converged.any():
        raise_not_found(search, final, residuals, reasons)
    states = search.nearest_turns(final[converged], search.base)
    beyond = search.beyond(states)
    within = beyond.max(axis=1, initial=0.0) <= LIMIT_ATOL
    if not within.any():
        raise_beyond_limits(search, states, beyond, search.starts)
    states = states[within]
    kept, counts = distinct_solutions(closure, search.base, states)
    states = states[kept]
    return Assemblies(
        model, states, search.starts, counts, closure.condition(states) > ISOLATED_CONDITION_MAX
    )


def _starting_states(
    model: CompiledModel,
    base: np.ndarray,
    bounds: dict[str, tuple[float, float]],
    count: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return states (count, S): the given one, then random ones within the limits."""
    tree = model.tree
    states = np.repeat(base[None], count, axis=0)
    for n, name in enumerate(tree.columns):
        column = tree.cols[n, STATE]
        if n in tree.balls:
            q = rng.normal(size=(count, 4))
            states[:, column : column + 4] = q / np.linalg.norm(q, axis=1)[:, None]
        elif column >= 0:
            reach = np.pi if tree.cols[n, KIND] == REVOLUTE else model.length
            lower, upper = bounds.get(name, (-np.inf, np.inf))
            middle = min(max(base[column], lower), upper)
            lower, upper = max(lower, middle - reach), min(upper, middle + reach)
            states[:, column] = rng.uniform(lower, upper, size=count)
    states[:1] = base
    return states


def _nearest_turns(
    tree: Tree,
    base: np.ndarray,
    states: np.ndarray,
    bounds: dict[str, tuple[float, float]],
    given: Container[str],
) -> np.ndarray:
    """Return states with each revolute joint in the turn closest to the base, within its limits."""
    states = states.copy()
    for n, name in enumerate(tree.columns):
        column = tree.cols[n, STATE]
        if tree.cols[n, KIND] == REVOLUTE and name not in given:
            near = np.broadcast_to(base[..., column], len(states))
            states[:, column] = nearest_turn(states[:, column], near, *bounds.get(name, (-np.inf, np.inf)))
    return states


def state_distance(transfer: CoordinateTransfer, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the largest coordinate distance (K,) of states (K, S) to others, up to full turns."""
    tree = transfer.tree
    b = np.broadcast_to(b, a.shape).copy()
    at = tree.cols[tree.cols[:, KIND] == REVOLUTE, STATE]
    b[:, at] += 2 * np.pi * np.round((a[:, at] - b[:, at]) / (2 * np.pi))
    return distance(tree, a, b, transfer.column_scale).max(axis=1, initial=0.0)


def solution_tolerance(condition: np.ndarray) -> np.ndarray:
    """Return the distance below which solutions of some condition count as one."""
    return np.where(condition > ISOLATED_CONDITION_MAX, SINGULAR_SOLUTION_ATOL, SOLUTION_ATOL)


def distinct_solutions(
    closure: Closure, base: np.ndarray, states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of distinct states, the closest to the base first, and their numbers of starts."""
    t = closure.transfer
    tolerance = solution_tolerance(closure.condition(states))
    distances = np.linalg.norm(
        distance(t.tree, states, np.broadcast_to(base, states.shape), t.column_scale), axis=1
    )
    remaining = np.argsort(distances, kind="stable")
    kept, counts = [], []
    while remaining.size:
        first = remaining[0]
        alike = state_distance(t, states[remaining], states[first]) <= np.minimum(
            tolerance[remaining], tolerance[first]
        )
        alike[0] = True
        kept.append(first)
        counts.append(int(alike.sum()))
        remaining = remaining[~alike]
    return np.array(kept, dtype=np.intp), np.array(counts, dtype=np.intp)


def raise_beyond_limits(
    search: AssemblySearch, states: np.ndarray, beyond: np.ndarray, starts: int
) -> NoReturn:
    """Raise an error for configurations (K, S) that are all beyond limits, by (K, limits)."""
    model, bounds = search.model, search.limits.bounds
    nearest = int(np.argmin(beyond.max(axis=1)))
    worst = list(bounds)[int(np.argmax(beyond[nearest]))]
    violation = search.limits.violations(states[nearest : nearest + 1])[0]
    kept, _ = distinct_solutions(search.closure, search.base, states)
    raise ConfigurationError(
        f"'{model.description.name}' has {len(kept)} configurations with these inputs (from {starts} "
        f"starts), but none within `limits`: the nearest exceeds those of '{worst}' by "
        f"{beyond[nearest].max():.3g}. Widen them, or move the target.",
        failed=search.members,
        reasons=[f"beyond the limits of '{worst}'"] * len(search.members),
        beyond=[violation] * len(search.members),
        configuration=Configuration(model, (len(kept),), states[kept]),
    )


def raise_not_found(
    search: AssemblySearch, states: np.ndarray, residuals: np.ndarray, reasons: list[str]
) -> NoReturn:
    """Raise an error with the smallest residual, or a configuration that closes the wrong way round."""
    best = int(np.argmin(np.where(np.isfinite(residuals), residuals, np.inf)))
    flipped = [reason for reason in reasons if "wrong way" in reason]
    members, model = search.members, search.model
    unit = model.description.units.length
    reason = flipped[0] if flipped else f"out of reach by {residuals[best]:.2g} {unit}"
    where = f" at any of {len(members)} members" if search.targets.batch else ""
    raise ConfigurationError(
        f"No configuration of '{model.description.name}' with these values was found{where} from "
        f"{len(states)} starts: {reason}. Move the target, or try more `starts`.",
        failed=members,
        reasons=[reason] * len(members),
        left=float(residuals[best]),
        nearest=Configuration(model, (), states[best : best + 1]),
    )


def body_poses(model: CompiledModel, states: np.ndarray, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Return reference points (K, 3) of a body and rotations (K, 3, 3) from the reference configuration."""
    T = Configuration(model, (len(states),), states).displacement(body)
    return T[:, :3, :3] @ reference_of(frame_part(model.tree, body)) + T[:, :3, 3], T[:, :3, :3]


def _pose_numbers(model: CompiledModel, states: np.ndarray, tolerance: np.ndarray, body: str) -> np.ndarray:
    """Number the distinct poses of a body (K,) in states (K, S), in their order.

    Poses closer than `tolerance` (K,) count as one.
    """
    point, rotation = body_poses(model, states, body)
    pose = np.concatenate([point / model.length, rotation.reshape(-1, 9)], axis=1)
    numbers, first = np.zeros(len(states), dtype=int), list[int]()
    for k in range(len(states)):
        distances = np.abs(pose[first] - pose[k]).max(axis=1)
        equal = np.flatnonzero(distances <= np.minimum(tolerance[first], tolerance[k]))
        numbers[k] = equal[0] if equal.size else len(first)
        if not equal.size:
            first.append(k)
    return numbers


def _add_pose_tables(
    sheet: Summary, model: CompiledModel, states: np.ndarray, numbers: np.ndarray, body: str
) -> Summary:
    """Add tables of a body's poses and of the assembly modes (K, S) that share each."""
    count, unit = int(numbers.max()) + 1, model.description.units.length
    sheet.say(f"{count} pose{'s' if count > 1 else ''} of '{body}'")
    first = np.array([np.argmax(numbers == n) for n in range(count)])
    point, rotation = body_poses(model, states[first], body)
    rows = [str(n) for n in range(count)]
    columns = [*(f"{axis} ({unit})" for axis in "xyz"), *(f"turn {axis} (rad)" for axis in "xyz")]
    table = np.concatenate([point, vector_from_matrix(rotation)], axis=1)
    sheet.matrix(f"poses of '{body}', rotation from the reference configuration", rows, columns, table)
    modes = [np.flatnonzero(numbers == n).tolist() for n in range(count)]
    cells = [
        [str(len(m)), ", ".join(map(str, m[:LISTED_MAX])) + (", …" if m[LISTED_MAX:] else "")] for m in modes
    ]
    sheet.texts("assembly modes in each pose", rows, ["number", "which"], cells)
    return sheet
