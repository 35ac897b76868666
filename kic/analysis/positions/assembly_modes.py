"""Assembly modes: solutions of a position problem from many starts, matched over a batch as branches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kic.analysis.positions.self_motion import NULL_RTOL, SelfMotion
from kic.description.description import find_part
from kic.errors import InputError, counted, invalid
from kic.kernels import layout as lay
from kic.kinematics.state import distance
from kic.mechanism.configuration import Configuration, displacement, flat_states, model_of, tree_coordinates
from kic.mechanism.inputs import position_problem, real_inputs
from kic.mechanism.mechanism import Mechanism
from kic.mechanism.position import follow_complex_step, initial_states, real_configuration
from kic.numerics.arguments import flag, generator, integer, positive
from kic.numerics.arrays import one_batch_axis
from kic.numerics.display import Printable, Summary
from kic.numerics.progress import Bar
from kic.numerics.rotations import vector_from_matrix
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.continuation import continue_to
from kic.transfer.limits import LIMIT_ATOL, Limits, MotionLimits, nearest_turn
from kic.transfer.targets import BatchTargets, frame_part, reference_of

if TYPE_CHECKING:
    from kic.analysis.positions.monodromy import GenericSolutions

# solutions closer than this are one (rad, or characteristic lengths); a double root is less accurate
SOLUTION_ATOL, SINGULAR_SOLUTION_ATOL = 1e-5, 1e-3
# number of states among which a tree finds those without others nearby
MANY_STATES_MIN = 64
# with a larger condition of their rows the values barely determine the configuration: at the limit of reach,
# or if some motion remains
ISOLATED_CONDITION_MAX = 1e5
# distance on a part of solutions, over the step that led there, within which two ends are of one branch
NEAR_SHARE_MAX = 0.5
# every member but the first has this share of the starts, at least a few, because its neighbours contribute
MEMBER_STARTS_FACTOR, MEMBER_STARTS_MIN = 1 / 8, 8
# assembly modes that are listed; with more, the summary proposes to group them by the pose of a body; rows of
# its table
MODES_LISTED_MAX, ROWS_MAX = 8, 100


@dataclass(frozen=True, eq=False)
class Completeness:
    """Numbers of solutions of a position problem, and the evidence that none is missing.

    Attributes
    ----------
    evidence : {"proven number", "trace test", "loops", "incomplete"}
        "proven number": the number of complex solutions found equals a published upper bound. "trace test":
        on a line of complex values, a sum over the solutions is a rational function to rounding, and is not
        if one of them is left out. "loops": monodromy loops found no other, and `chance` is the estimated
        chance that one is missing. This is not a proof. "incomplete": solutions may be missing, for the
        reason in `statement`. A trace test and loops do not cover components of the configuration space that
        neither the reference configuration nor random starts reach.
    statement : str
        The evidence in one or two sentences.
    generic : int
        Number of complex solutions found for generic complex values. If none is missing, this bounds the
        number of isolated finite solutions for the given values, counted with multiplicity.
    finite, infinite, far, lost : (...) int
        Numbers of these that lead, for each target, to finite solutions, counted with multiplicity; to
        infinity; and to complex solutions too far to be real, which rounding does not separate from infinity.
        Lost paths could not be completed, or end near real solutions too close to be separated. Solutions
        that a relative change of the values or dimensions by about 1e-9 moves to infinity count as infinite.
    moving : (...) int
        Number of finite solutions on parts of positive dimension, where a motion remains at fixed values. One
        real configuration represents all that a motion connects with it.
    real : (...) int
        Number of distinct real solutions for each target, before limits apply; solutions that a motion
        connects count as one.
    certified : (K, ...) bool
        True if Krawczyk's test proves that exactly one solution of the equations is near the configuration.
    certified_complex : (...) int
        Number of pairwise distinct complex solutions for each target that such tests prove. It is a lower
        bound whatever the evidence.
    proven : (...) bool
        True if the number of isolated solutions for the target is proven: the number of certified ones equals
        a proven bound; `real` of them are certified to be real, the others not to be real. Rounding errors
        are bounded a priori, not by interval arithmetic; redundant constraints are assumed consistent.
    certified_paths : (...) int
        With ``certify=True``, number of paths to each target that are certified from the solution for generic
        values to the end: one curve of regular solutions connects them. Paths to singular solutions and to
        infinity have no certificate.
    loops : int
        Number of loops after which no new solution was found.
    chance : float
        Estimated chance that a solution is missing after these loops, if they move it as often as the others.
        Loops through real values exchange conjugate solutions and do not count. 0 for a proven number.
    """

    evidence: str
    statement: str
    generic: int
    finite: np.ndarray
    infinite: np.ndarray
    far: np.ndarray
    lost: np.ndarray
    moving: np.ndarray
    real: np.ndarray
    certified: np.ndarray
    certified_complex: np.ndarray
    proven: np.ndarray
    certified_paths: np.ndarray
    loops: int
    chance: float


class AssemblyModes(Printable):
    """Distinct assembly modes found for given values, the nearest first.

    Made by `Mechanism.assembly_modes`. Finitely many starts do not prove that these are all; `completeness`
    states the evidence after ``complete=True``. For a batch of inputs, K is the largest number found at any
    member. Members with fewer have no configuration in the remaining slices (``configuration.ok`` is False),
    and slice k is one branch as far as it continues.

    Attributes
    ----------
    configuration : Configuration (K, ...)
        The assembly modes as a batch; ``found[k]`` is one of them.
    starts : int
        Number of starts.
    counts : (K, ...) int
        Number of starts that converged to each configuration.
    condition : (K, ...) float
        Condition number of the Jacobian of the equations, scaled by lengths. Its reciprocal is the distance
        to a singular matrix, as a share of the largest singular value.
    singular : (K, ...) bool
        Configurations with a condition above 1e5, which the values barely determine: several solutions meet
        there, as at the limit of reach, or some motion remains, as in an aligned wrist. One configuration
        represents all that this motion connects; in a batch, one for each branch that leads there. Parts that
        only meet where more motions remain may count as one or as several.
    continued : (K, ...) bool
        True if the configuration of the same slice at the preceding member leads here without a jump. The
        preceding member is the neighbour along the last axis of the batch; at its beginning, along the axis
        before. Always False for one target.
    reason : str
        Reason why no configuration has the values, with the smallest gap or the excess beyond limits, or ''.
    nearest : Configuration or None
        If none was found: the configurations beyond the limits, or the one with the smallest gap.
    completeness : Completeness
        Numbers of complex and real solutions and the evidence that none is missing. The attribute exists only
        with ``complete=True``; then `counts` are multiplicities, the numbers of paths that end in each
        configuration.

    Examples
    --------
    >>> found = kic.load("horn-two-link").assembly_modes({"tip.x": 1.0, "tip.y": 1.0})
    >>> found.configuration.value("elbow").round(6).tolist()
    [1.570796, -1.570796]
    """

    def __init__(
        self,
        model: CompiledModel,
        states: np.ndarray,
        starts: int,
        counts: np.ndarray,
        condition: np.ndarray,
        continued: np.ndarray | None = None,
        targets: BatchTargets | None = None,
        completeness: Completeness | None = None,
        reason: str = "",
        nearest: Configuration | None = None,
    ) -> None:
        ok = np.isfinite(states).all(axis=1).reshape(counts.shape)
        self.configuration = Configuration(model, counts.shape, states, None if ok.all() else ok, targets)
        self.starts, self.counts, self.condition = starts, counts, condition
        self.reason, self.nearest = reason, nearest
        self.singular = condition > ISOLATED_CONDITION_MAX
        self.continued = np.zeros(counts.shape, dtype=bool) if continued is None else continued
        if completeness is not None:
            self.completeness = completeness

    def _facts(self) -> Iterator[str]:
        several = f" at {self.counts.shape[1:]} members" * (self.counts.ndim > 1)
        yield f"{len(self)} found{several}"

    _counterparts: ClassVar[dict[str, str]] = {
        name: f"configuration.{name}" for name in ("ok", "phi", "state", "batch", "value", "pose", "draw")
    } | {"completeness": "assembly_modes(values, complete=True)"}

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, members: Any) -> Configuration:
        """Return selected configurations, indexed like a `Configuration`."""
        return self.configuration[members]

    def places(self, of: str) -> np.ndarray:
        """Number the poses of a body, to group assembly modes that differ only elsewhere.

        A leg that is folded over at a universal joint gives another assembly mode with the same pose of the
        platform.

        Parameters
        ----------
        of : str
            The body.

        Returns
        -------
        (K, ...) int ndarray
            Number of the pose in each assembly mode, counted from 0 at each member in order of appearance; -1
            where there is no configuration.

        Examples
        --------
        >>> found = kic.load("puma560").assembly_modes([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
        >>> found.places("link6").tolist()
        [0]
        """
        c = self.configuration
        model = model_of(c)
        find_part(model.description, of, "bodies", argument="of")
        states = flat_states(c).reshape(*c.batch[:1], prod(c.batch[1:]), flat_states(c).shape[-1])
        tolerance = np.where(self.singular, SINGULAR_SOLUTION_ATOL, SOLUTION_ATOL).reshape(states.shape[:2])
        numbers = np.full(tolerance.shape, -1)
        for b in range(states.shape[1]):
            have = np.isfinite(states[:, b]).all(axis=1)
            numbers[have, b] = _pose_numbers(model, states[have, b], tolerance[have, b], of)
        return numbers.reshape(self.counts.shape)

    def summary(self, of: str | None = None) -> Summary:
        """Return a labelled table of the assembly modes.

        Parameters
        ----------
        of : str, optional
            A body: tabulate its poses, and the assembly modes that share each. For one target only.
        """
        c, count = self.configuration, len(self.counts)
        if self.counts.ndim > 1:
            if of is not None:
                message = f"`of` must be None for a batch of targets, got '{of}'. Use places('{of}')."
                raise InputError(message, key="of", got=of)
            return self._batch_summary()
        sheet = Summary(f"{c.name}: {count} distinct assembly mode{'' if count == 1 else 's'} found")
        if self.reason:
            sheet.say(self.reason)
        self._say_evidence(sheet)
        if not count:
            return sheet
        if self.singular.any():
            which = _listed(np.flatnonzero(self.singular).tolist())
            why = "the limit of reach, or a motion remains"
            sheet.say(f"the values barely determine assembly mode {which}: {why}")
        if of is not None:
            return _add_pose_tables(sheet, model_of(c), flat_states(c), self.places(of), of)
        if count > MODES_LISTED_MAX:
            body = model_of(c).description.bodies[-1].name  # the output body is usually described last
            sheet.say(f"distinguished by all joints; by the pose of '{body}' alone: .summary('{body}')")
        if count > ROWS_MAX:
            sheet.say(f"the first {ROWS_MAX} of {count} are listed; `configuration` has all")
        names, phi = tree_coordinates(c)
        table = np.concatenate([phi, 1 / self.condition[:, None]], axis=1)[:ROWS_MAX]
        sheet.matrix("assembly modes", [str(k) for k in range(len(table))], [*names, "1/condition"], table)
        return sheet

    def _say_evidence(self, sheet: Summary) -> None:
        """Add the evidence of completeness to a table."""
        known: Completeness | None = getattr(self, "completeness", None)
        if known is None:
            found = int(self.counts.sum())
            sheet.say(f"{found} of {self.starts} starts converged to them; there may be others")
            return
        sheet.say(known.statement)
        if self.counts.ndim == 1:
            far = f"{known.far} too far to be real, " * bool(known.far)
            sheet.say(
                f"of these {known.generic}, {known.finite} lead to finite solutions, {known.infinite} to "
                f"infinity, {far}{known.lost} are lost; {known.real} distinct real solutions"
            )

    def _batch_summary(self) -> Summary:
        """Return a table of the number of assembly modes at the members of a batch."""
        c, members = self.configuration, self.counts[0].size if len(self.counts) else 0
        number = c.ok.sum(axis=0)
        sheet = Summary(f"{c.name}: distinct assembly modes at each of {members} members {c.batch[1:]}")
        self._say_evidence(sheet)
        have = [int((number == n).sum()) for n in range(len(self.counts) + 1)]
        rows = [str(n) for n, several in enumerate(have) if several]
        sheet.texts("assembly modes", rows, ["number of members"], [[str(n)] for n in have if n])
        return sheet


def _listed(numbers: list[int]) -> str:
    """Return the first few numbers as text."""
    return ", ".join(map(str, numbers[:MODES_LISTED_MAX])) + ", …" * (len(numbers) > MODES_LISTED_MAX)


def body_poses(model: CompiledModel, states: np.ndarray, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Return reference points (K, 3) of a body and rotations (K, 3, 3) from the reference configuration."""
    T = displacement(Configuration(model, (len(states),), states), body)
    return T[:, :3, :3] @ reference_of(frame_part(model.tree, body)) + T[:, :3, 3], T[:, :3, :3]


def _pose_numbers(model: CompiledModel, states: np.ndarray, tolerance: np.ndarray, body: str) -> np.ndarray:
    """Return numbers (K,) of the poses of a body in states (K, S), in order of appearance.

    Poses within `tolerance` (K,) have the same number.
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
    """Add tables of a body's poses, and of the assembly modes, with states (K, S), that share each pose."""
    count, unit = int(numbers.max()) + 1, model.description.units.length
    sheet.say(f"{count} pose{'s' if count > 1 else ''} of '{body}'")
    first = np.array([np.argmax(numbers == n) for n in range(count)])
    point, rotation = body_poses(model, states[first], body)
    rows = [str(n) for n in range(count)]
    columns = [*(f"{axis} ({unit})" for axis in "xyz"), *(f"turn {axis} (rad)" for axis in "xyz")]
    table = np.concatenate([point, vector_from_matrix(rotation)], axis=1)
    sheet.matrix(f"poses of '{body}', rotation from the reference configuration", rows, columns, table)
    modes = [np.flatnonzero(numbers == n).tolist() for n in range(count)]
    cells = [[str(len(m)), _listed(m)] for m in modes]
    sheet.texts("assembly modes in each pose", rows, ["number", "which"], cells)
    return sheet


def find_assemblies(
    model: CompiledModel,
    inputs: Any,
    near: Configuration | None,
    starts: int,
    seed: Any,
    limits: Limits,
    complete: bool = False,
    time_limit: float | None = None,
    progress: bool | None = None,
    certify: bool = False,
) -> AssemblyModes:
    """Return the distinct assembly modes for one target or a batch; see `assembly_modes`."""
    flag("complete", complete)
    flag("certify", certify)
    bar = Bar(progress)
    if time_limit is not None and not complete:
        raise invalid("time_limit", "must be None unless complete=True", time_limit)
    if certify and not complete:
        raise invalid("certify", "must be False unless complete=True", certify)
    if model.has_complex_step:  # solve in real numbers, then carry the step along
        near = real_configuration(model, near)
        options = starts, seed, limits, complete, time_limit, progress, certify
        real = find_assemblies(model.real, real_inputs(inputs), near, *options)
        targets, _ = position_problem(model, inputs)
        states = flat_states(follow_complex_step(model, targets, targets.values, real.configuration))
        return AssemblyModes(
            model,
            states,
            real.starts,
            real.counts,
            real.condition,
            real.continued,
            completeness=getattr(real, "completeness", None),
            reason=real.reason,
            nearest=real.nearest,
        )
    if complete:
        search = _CompleteSearch(model, inputs, near, starts, seed, limits, time_limit, bar, certify)
        try:
            return search.run()
        finally:
            bar.close()
    return _AssemblySearch(model, inputs, near, starts, seed, limits).run()


@dataclass
class _Solution:
    """Solution at one member of a batch."""

    state: np.ndarray  # (S,)
    condition: float  # of its rows
    count: int  # number of starts that converged to it
    origin: int = -1  # solution of the preceding member that it continues, -1 if unknown
    certified: bool = False  # by a complete search
    is_reached: bool = False  # True if a solution of a neighbour was continued to it
    is_repeated: bool = False  # True if a motion connects it with one found before

    @property
    def is_moving(self) -> bool:
        """True if a motion may remain at fixed values."""
        return self.condition * NULL_RTOL > 1

    @property
    def is_fixed(self) -> bool:
        """True if the problem is well-conditioned; only such solutions can be continued."""
        return self.condition <= ISOLATED_CONDITION_MAX


class _AssemblySearch:
    """Search for the solutions of each target of a batch, matched from member to member.

    Each member is solved from random starts. Its solutions are then continued to the neighbours. This matches
    solutions along the batch and finds those that the starts of the neighbours missed.
    """

    def __init__(
        self,
        model: CompiledModel,
        inputs: Any,
        near: Configuration | None,
        starts: int,
        seed: Any,
        limits: Limits,
    ) -> None:
        self.model, self.starts_per_target = model, integer("starts", starts, 1)
        self.rng = generator(seed)
        self.targets, self.closure = position_problem(model, inputs)
        self.base, around = initial_states(model, near)
        if around:
            raise invalid("near", "must be one configuration", around, shown=f"a batch {around}")
        self.limits = MotionLimits(model, limits)
        labels = self.closure.transfer.labels  # poses follow the names
        # tree coordinates that are inputs themselves, with their indices among the values
        self.given = {name: k for k, name in enumerate(labels) if name in model.tree.column}
        batch = self.targets.batch
        self.members = list(np.ndindex(batch))
        self.values = self.targets.values.reshape(len(self.members), self.targets.values.shape[-1])
        self.reasons = list(map(str, self.targets.impossible.ravel()))
        self.parent = preceding_members(batch)
        self.found: list[list[_Solution]] = [[] for _ in self.members]
        self.starts = 0
        # states beyond limits, by how much, and their members
        self._beyond: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.deadline = np.inf
        # why nothing was found, and what comes nearest
        self.none = ""
        self.nearest: Configuration | None = None

    def run(self) -> AssemblyModes:
        """Return the distinct solutions, each branch in one slice as far as it continues."""
        if self.members:
            self._start()
            self._propagate()
            if not any(self.found):
                self._find_nearest()
        slots = self._slots()
        shape = (max(map(len, slots), default=0), len(self.members))
        states = np.full((*shape, self.model.tree.state_size), np.nan)
        counts = np.zeros(shape, dtype=np.intp)
        continued, certified = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        condition = np.full(shape, np.nan)
        for b, slot in enumerate(slots):
            for k, one in zip(slot, self.found[b], strict=True):
                states[k, b], counts[k, b] = one.state, one.count
                condition[k, b], continued[k, b] = one.condition, one.origin >= 0
                certified[k, b] = one.certified
        whole = (shape[0], *self.targets.batch)
        return AssemblyModes(
            self.model,
            one_batch_axis(states),
            self.starts,
            counts.reshape(whole),
            condition.reshape(whole),
            continued.reshape(whole),
            BatchTargets(self.targets.names, self.targets.held, np.tile(self.values, (shape[0], 1))),
            self._completeness(certified),
            self.none,
            self.nearest,
        )

    def _completeness(self, certified: np.ndarray) -> Completeness | None:
        """Return None: random starts give no evidence of completeness."""
        return None

    def _start(self) -> None:
        """Solve from random starts: all of them at the first feasible member, a share at the others."""
        self._search(np.flatnonzero([not why for why in self.reasons]))

    def _search(self, feasible: np.ndarray, connect: bool = True) -> None:
        """Record the solutions found from random starts at feasible members (n,).

        If `connect` is True, one solution represents all that a motion connects.
        """
        where = f" at any of {len(self.members)} members" if self.targets.batch else ""
        if not feasible.size:
            self.none = f"No configuration has these values{where}: {self.reasons[0]}."
            return
        first = self.starts_per_target
        numbers = np.full(
            len(feasible), min(first, max(int(first * MEMBER_STARTS_FACTOR), MEMBER_STARTS_MIN))
        )
        numbers[0] = first
        owner = np.repeat(feasible, numbers)
        values = self.values[owner]
        # the starts of the first member equal those of a search for it alone
        head = self._starting_states(values[:first])
        tail = self._starting_states(values[first:])
        final, residuals, failures = self.closure.solve_from(np.concatenate([head, tail]), values)
        self.starts += len(owner)
        converged = np.array([not why for why in failures])
        if not converged.any():
            self._find_gap(final, residuals, failures, where)
            return
        owner = owner[converged]
        states = self._within(self._nearest_turns(final[converged], self.base), owner)
        valid = np.isfinite(states).all(axis=1)
        for b in np.unique(owner[valid]):
            own = states[valid & (owner == b)]
            self.found[b] = self._distinct(own, self.closure.condition(own), b if connect else None)

    def _starting_states(self, values: np.ndarray) -> np.ndarray:
        """Return starts (n, S) for values (n, P): the base, then random ones within the limits."""
        tree, rng, count = self.model.tree, self.rng, len(values)
        states = np.repeat(self.base[None], count, axis=0)
        for n, name in enumerate(tree.columns):
            column = tree.cols[n, lay.STATE]
            if n in tree.balls:
                q = rng.normal(size=(count, 4))
                states[:, column : column + 4] = q / np.linalg.norm(q, axis=1)[:, None]
            elif column >= 0:
                reach = np.pi if tree.cols[n, lay.KIND] == lay.REVOLUTE else self.model.length
                lower, upper = self.limits.bounds.get(name, (-np.inf, np.inf))
                middle = min(max(self.base[column], lower), upper)
                lower, upper = max(lower, middle - reach), min(upper, middle + reach)
                states[:, column] = rng.uniform(lower, upper, size=count)
        states[:1] = self.base
        for name, k in self.given.items():
            states[1:, tree.cols[tree.column[name], lay.STATE]] = values[1:, k]
        return states

    def _nearest_turns(self, states: np.ndarray, base: np.ndarray) -> np.ndarray:
        """Return states (K, S) with revolute joints shifted by full turns towards the base (S,) or (K, S)."""
        states, tree = states.copy(), self.model.tree
        for n, name in enumerate(tree.columns):
            column = tree.cols[n, lay.STATE]
            if tree.cols[n, lay.KIND] == lay.REVOLUTE and name not in self.given:
                near = np.broadcast_to(base[..., column], len(states))
                bounds = self.limits.bounds.get(name, (-np.inf, np.inf))
                states[:, column] = nearest_turn(states[:, column], near, *bounds)
        return states

    def _within(self, states: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return states (n, S) of members (n,) with NaN for those beyond limits, and record these."""
        beyond = np.abs(self.limits.excess(states))
        excluded = self._is_beyond(states)
        self._beyond.append((states[excluded], beyond[excluded], members[excluded]))
        return np.where(excluded[:, None], np.nan, states)

    def _is_beyond(self, states: np.ndarray) -> np.ndarray:
        """Return a mask (n,) of states (n, S) that are beyond limits."""
        return np.abs(self.limits.excess(states)).max(axis=1, initial=0.0) > LIMIT_ATOL

    def _by_distance(self, states: np.ndarray) -> np.ndarray:
        """Return the indices (n,) of states (n, S), the closest to the base first."""
        tree, scale = self.model.tree, self.closure.transfer.column_scale
        apart = distance(tree, states, np.broadcast_to(self.base, states.shape), scale)
        return np.argsort(np.linalg.norm(apart, axis=1), kind="stable")

    def _separation(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the largest coordinate distance (K,) of states (K, S) to others, up to full turns."""
        tree = self.model.tree
        b = np.broadcast_to(b, a.shape).copy()
        at = tree.cols[tree.cols[:, lay.KIND] == lay.REVOLUTE, lay.STATE]
        b[:, at] += 2 * np.pi * np.round((a[:, at] - b[:, at]) / (2 * np.pi))
        return distance(tree, a, b, self.closure.transfer.column_scale).max(axis=1, initial=0.0)

    def _alone(self, states: np.ndarray) -> np.ndarray:
        """Return a mask of states (n, S) that certainly have no other state within the tolerance.

        The compared entries differ by at most the distance of `_separation`.
        """
        tree = self.model.tree
        if len(states) < MANY_STATES_MIN or not tree.size:
            return np.zeros(len(states), dtype=bool)
        from scipy.spatial import cKDTree

        columns, entries = tree.single_columns
        turning = tree.cols[columns, lay.KIND] == lay.REVOLUTE
        turn, slide = states[:, entries[turning]], states[:, entries[~turning]]
        parts = [np.cos(turn), np.sin(turn), slide / self.closure.transfer.column_scale[columns[~turning]]]
        for _, quaternion in tree.ball_slices:
            q = states[:, quaternion]
            parts.append((q[:, :, None] * q[:, None, :])[:, *np.triu_indices(4)])  # the same for both signs
        points, limit = np.concatenate(parts, axis=1), 1.01 * SINGULAR_SOLUTION_ATOL
        nearest = cKDTree(points).query(points, k=[2], p=np.inf, distance_upper_bound=limit)[0]
        return np.isinf(nearest[:, 0])

    def _distinct(
        self,
        states: np.ndarray,
        condition: np.ndarray,
        member: int | None = None,
        certified: np.ndarray | None = None,
    ) -> list[_Solution]:
        """Return the distinct solutions among states (n, S), the closest to the base first.

        Of the solutions of `member` that a motion connects, only one is returned, within limits if possible.
        """
        certified = np.zeros(len(states), dtype=bool) if certified is None else certified
        tolerance = self._solution_tolerance(condition)
        left, found = np.ones(len(states), dtype=bool), list[_Solution]()
        alone = self._alone(states)
        order = self._by_distance(states)
        for first in order[np.argsort(self._is_beyond(states[order]), kind="stable")].tolist():
            if not left[first]:
                continue
            left[first], count = False, 1
            if not alone[first]:
                others = np.flatnonzero(left)
                near = np.minimum(tolerance[others], tolerance[first])
                alike = others[self._separation(states[others], states[first]) <= near]
                left[alike] = False
                count += len(alike)
            found.append(
                _Solution(states[first], float(condition[first]), count, certified=bool(certified[first]))
            )
        if member is None:
            return found
        first_of = self._first_of_part(found, member)
        for n, k in enumerate(first_of):
            found[k].count += found[n].count if n != k else 0
        return [one for n, one in enumerate(found) if first_of[n] == n]

    def _first_of_part(self, solutions: list[_Solution], member: int) -> list[int]:
        """Return the index of the first solution that a motion connects with each solution, or its own."""
        first = list(range(len(solutions)))
        moving = [k for k in first if solutions[k].is_moving]
        if len(moving) > 1:
            motion = SelfMotion(self.closure, self.values[member], self.deadline)
            part = motion.parts(np.array([solutions[k].state for k in moving]), SINGULAR_SOLUTION_ATOL)
            for k, n in zip(moving, part.tolist(), strict=True):
                first[k] = moving[part.tolist().index(n)]
        return first

    def _of_same_part(
        self, own: list[_Solution], apart: np.ndarray, end: _Solution, member: int, step: float
    ) -> int:
        """Return the index of a solution of a member that a motion connects with the end of a branch, or -1.

        Solutions that a branch has reached count only if `apart` is small compared with the branch's step.
        """
        known = [k for k in np.argsort(apart).tolist() if own[k].is_moving]
        known = [k for k in known if not own[k].is_reached or apart[k] < NEAR_SHARE_MAX * step]
        if not known or not end.is_moving:
            return -1
        return [*known, -1][self._first_of_part([*(own[k] for k in known), end], member)[-1]]

    def _solution_tolerance(self, condition: np.ndarray) -> np.ndarray:
        """Return the distances (n,) within which solutions of given condition numbers count as one."""
        return np.where(condition <= ISOLATED_CONDITION_MAX, SOLUTION_ATOL, SINGULAR_SOLUTION_ATOL)

    def _propagate(self) -> None:
        """Continue solutions to the adjacent members until nothing new is found."""
        done: set[tuple[int, int, int]] = set()
        children = [np.flatnonzero(self.parent == b).tolist() for b in range(len(self.members))]
        while True:
            steps = [
                (b, k, c)
                for b, own in enumerate(self.found)
                for k, one in enumerate(own)
                for c in (*children[b], *([int(self.parent[b])] if one.origin < 0 else []))
                if one.is_fixed and c >= 0 and not self.reasons[c] and (b, k, c) not in done
            ]
            if not steps:
                return
            done.update(steps)
            self._continue_branches(steps)

    def _continue_branches(self, steps: list[tuple[int, int, int]]) -> None:
        """Continue solution k of member b to member c for each step (b, k, c), and record the results."""
        start = np.stack([self.found[b][k].state for b, k, _ in steps])
        outcome = continue_to(self.closure, start, self.values[[c for *_, c in steps]], want_reasons=False)
        self.starts += len(steps)
        converged = np.flatnonzero([not why for why in outcome.reasons])
        states = outcome.states[converged]
        conditions = self.closure.condition(states)
        # keep the number of turns of the branch
        final = self._within(self._nearest_turns(states, states), np.array([c for *_, c in steps])[converged])
        for end, condition, n in zip(final, conditions.tolist(), converged, strict=True):
            b, k, c = steps[n]
            if not np.isfinite(end).all():
                continue
            own = self.found[c]
            distances = self._separation(np.array([x.state for x in own]).reshape(-1, len(end)), end)
            j = int(np.argmin(distances)) if distances.size else -1
            if j < 0 or distances[j] > self._solution_tolerance(np.array(condition)):
                new = _Solution(end, condition, 0)
                step = float(self._separation(start[n : n + 1], end)[0])
                j = self._of_same_part(own, distances, new, c, step)
                if j < 0:
                    j = len(own)
                    own.append(new)
                    new.is_repeated = self._first_of_part(own, c)[j] < j
                elif not own[j].is_reached:
                    own[j].state = end  # the branch continues
            own[j].is_reached = True
            own[j].count += 1
            if self.parent[c] == b and k not in [x.origin for x in own]:
                own[j].origin = k
            elif self.parent[b] == c and j not in [x.origin for x in self.found[b]]:
                self.found[b][k].origin = j

    def _slots(self) -> list[np.ndarray]:
        """Return the slice of each solution of each member: that of the continued solution, or a free slice.

        Angles of continued solutions are shifted by full turns to those of their branch.
        """
        from scipy.optimize import linear_sum_assignment

        most, slots = max(map(len, self.found), default=0), list[np.ndarray]()
        for b, own in enumerate(self.found):
            slot, p = np.full(len(own), -1), self.parent[b]
            for k, one in enumerate(own):
                if one.origin >= 0:
                    slot[k] = slots[p][one.origin]
                    before = self.found[p][one.origin].state
                    one.state = self._nearest_turns(one.state[None], before)[0]
            states = np.array([one.state for one in own]).reshape(len(own), len(self.base))
            new = np.flatnonzero(slot < 0)
            new = new[self._by_distance(states[new])]
            taken = set(slot.tolist())
            free = [s for s in range(most) if s not in taken]
            # a branch that ends by a jump passes its slice to the nearest of those that begin
            ended = np.flatnonzero(np.isin(slots[p], free)) if p >= 0 else np.empty(0, dtype=np.intp)
            if ended.size and new.size:
                apart = np.array([self._separation(states[new], self.found[p][k].state) for k in ended])
                for i, j in zip(*linear_sum_assignment(apart), strict=True):
                    slot[new[j]] = slots[p][ended[i]]
            taken = set(slot.tolist())
            rest = [s for s in free if s not in taken]
            unmatched = new[slot[new] < 0]
            slot[unmatched] = rest[: len(unmatched)]
            slots.append(slot)
        return slots

    def _find_nearest(self) -> None:
        """Store the solutions beyond limits, if any, and the reason why none is within limits."""
        if not self._beyond:
            return
        states, beyond, owner = (np.concatenate(parts) for parts in zip(*self._beyond, strict=True))
        nearest = int(np.argmin(beyond.max(axis=1)))
        worst = list(self.limits.bounds)[int(np.argmax(beyond[nearest]))]
        condition = self.closure.condition(states)
        kept = np.array(
            [
                one.state
                for b in np.unique(owner).tolist()
                for one in self._distinct(states[owner == b], condition[owner == b], b)
            ]
        )
        self.none = (
            f"{counted(len(kept), 'configuration')} found with these values (from {self.starts} starts), but "
            f"none within `limits`: the nearest exceeds the limits of '{worst}' by "
            f"{beyond[nearest].max():.3g}. Widen the limits, or move the target."
        )
        self.nearest = Configuration(self.model, (len(kept),), kept)

    def _find_gap(self, states: np.ndarray, residuals: np.ndarray, reasons: list[str], where: str) -> None:
        """Store the state with the smallest residual, and the reason why no start converged."""
        best = int(np.argmin(np.where(np.isfinite(residuals), residuals, np.inf)))
        flipped = [reason for reason in reasons if "wrong way" in reason]
        unit = self.model.description.units.length
        reason = flipped[0] if flipped else f"out of reach by {residuals[best]:.2g} {unit}"
        self.none = (
            f"No configuration with these values was found{where} from {len(states)} starts: {reason}. Move "
            "the target, or try more `starts`."
        )
        self.nearest = Configuration(self.model, (), states[best : best + 1])


class _CompleteSearch(_AssemblySearch):
    """Search for all solutions of each target, by paths from all solutions for generic complex values."""

    def __init__(self, *arguments: Any) -> None:
        *others, time_limit, self.bar, self.certify = arguments
        super().__init__(*others)
        if time_limit is not None:
            self.deadline = time.monotonic() + positive("time_limit", time_limit)
        self.reason = ""

    def _start(self) -> None:
        """Follow the paths from generic values to each feasible member."""
        from kic.analysis.positions.monodromy import GenericSolutions

        self.feasible = feasible = np.flatnonzero([not why for why in self.reasons])
        self.real = np.zeros(len(self.members), dtype=np.intp)
        if not feasible.size:
            self._search(feasible)
            return
        known, key = self.model._prepared, ("generic solutions", self.targets.names, self.targets.held)
        generic, quick = known.get(key), np.zeros((0, len(self.base)))
        if generic is None:
            generic = GenericSolutions(self.closure, self.model.reference_state[0], self.rng)
            known[key] = generic
            quick = self._quick(feasible[:1])
        self.generic: GenericSolutions = generic
        if not generic.is_done:
            self.reason = generic.collect(quick, self.deadline, self.bar)
        self.paths = generic.at(self.values[feasible], self.deadline, self.bar, self.certify)
        self.starts += len(feasible) * generic.number
        own = self.values[feasible][self.paths.owner]
        states, _, failures = self.closure.solve_from(self.paths.states, own)
        good = np.array([not why for why in failures], dtype=bool)
        close = [
            bool(w) and "wrong way" not in w and not m
            for w, m in zip(failures, self.paths.moving, strict=True)
        ]
        self.unsolved = np.bincount(self.paths.owner[close], minlength=len(feasible))
        if any(close) and not self.reason:
            self.reason = f"{sum(close)} paths end near real solutions that are too close to be separated"
        # half turns of universal joints only change signs of columns, not condition and certificate
        times = 2 ** len(generic.tracker.flips)
        first = states[: len(states) // times]
        condition = np.tile(self.closure.condition(first), times)
        good &= ~self.paths.moving | (condition > ISOLATED_CONDITION_MAX)
        condition = condition[good]
        off = distance(self.model.tree, states, self.paths.states, self.closure.transfer.column_scale)
        certified = (off.max(axis=1, initial=0.0) <= self.paths.radius)[good]
        states, owner = self._nearest_turns(states[good], self.base), feasible[self.paths.owner[good]]
        for b in feasible:
            k = owner == b
            real = self._distinct(states[k], condition[k], int(b), certified[k])
            if b == feasible[0] and len(quick):  # random starts may find one that paths missed
                at = np.array([one.state for one in real]).reshape(-1, len(self.base))
                value = np.repeat(self.values[b : b + 1], len(quick), axis=0)
                proved = generic.certified(quick, value)
                others = self._distinct(quick, self.closure.condition(quick), certified=proved)
                new = [x for x in others if self._separation(at, x.state).min(initial=np.inf) > SOLUTION_ATOL]
                if new and not self.reason:
                    self.reason = "random starts found a solution that no path did"
                real += [replace(x, count=0) for x in new]
            self.real[b] = len(real)
            own_states = np.array([one.state for one in real]).reshape(-1, len(self.base))
            inside = self._within(own_states, np.full(len(real), b))
            self.found[b] = [x for x, kept in zip(real, np.isfinite(inside).all(axis=1), strict=True) if kept]
        self.direct = [len(own) for own in self.found]

    def _solution_tolerance(self, condition: np.ndarray) -> np.ndarray:
        """Return the distances (n,) within which solutions count as one; regular ends are accurate."""
        from kic.analysis.positions.complex_paths import REGULAR_CONDITION_MAX, SAME_ATOL

        return np.where(condition <= REGULAR_CONDITION_MAX, SAME_ATOL, SINGULAR_SOLUTION_ATOL)

    def _propagate(self) -> None:
        """Match the solutions of neighbours; counts remain those of the paths from generic values."""
        counts = [[one.count for one in own] for own in self.found]
        super()._propagate()
        for own, known, value in zip(self.found, counts, self.values, strict=True):
            for one, count in zip(own, known, strict=False):
                one.count = count
            for one in own[len(known) :]:
                one.count = 0
                one.certified = bool(self.generic.certified(one.state[None], value[None])[0])

    def _quick(self, members: np.ndarray) -> np.ndarray:
        """Return regular solutions (n, S) that random starts find, before limits apply."""
        bounds, self.limits.bounds = self.limits.bounds, {}
        self._search(members, connect=False)
        self.limits.bounds, self.none, self.nearest = bounds, "", None
        states = [one.state for b in members for one in self.found[b] if one.is_fixed]
        self.found, self.starts, self._beyond = [[] for _ in self.members], 0, []
        return np.array(states).reshape(-1, len(self.base))

    def _find_nearest(self) -> None:
        """Store the solutions beyond limits, if there are real ones."""
        if self.real.any():
            super()._find_nearest()
        self.none = self.none or "No solution is real."

    def _completeness(self, certified: np.ndarray) -> Completeness | None:
        """Return the evidence of completeness for certified solutions (K, B); None without members."""
        if not self.members:
            return None
        if not self.feasible.size:
            no = np.zeros(self.targets.batch, dtype=np.intp)
            whole = certified.reshape(-1, *no.shape)
            why = f"the values are impossible: {self.reasons[0]}"
            return Completeness(
                "proven number", why, 0, no, no, no, no, no, no, whole, no, no == 0, no, 0, 0.0
            )
        generic, paths, batch = self.generic, self.paths, self.targets.batch
        numbers = np.zeros((4, len(self.members)), dtype=np.intp)
        unsolved = self.unsolved
        numbers[:, self.feasible] = paths.complex - unsolved, paths.infinite, paths.far, paths.lost + unsolved
        evidence, statement = generic.statement(self._doubt(int(numbers[3].sum())))
        if paths.on_parts.any():
            statement += (
                f". {paths.on_parts.sum()} paths end on components of positive dimension: a motion remains"
            )
        moving, certain, followed = np.zeros((3, len(self.members)), dtype=np.intp)
        proven = np.zeros(len(self.members), dtype=bool)
        moving[self.feasible], certain[self.feasible] = paths.on_parts, paths.certified
        followed[self.feasible] = paths.followed
        if generic.proven is not None:
            whole = paths.decided & (paths.certified == generic.proven[0])
            proven[self.feasible] = whole & (paths.certified_real == self.real[self.feasible])
        one = f"the values, of which {self.real.sum()} are real"
        if generic.proven is not None and proven.all():
            statement += f". Certificates prove {generic.proven[0]} distinct complex solutions for "
            statement += one if len(proven) == 1 else "each target, and the number of real ones"
        else:
            statement += f". {certain.sum()} distinct complex solutions for the values are certified"
        if self.certify:
            every = generic.times * len(generic.states) * len(self.feasible)
            statement += f". {followed.sum()} of {every} paths to them are certified: they do not jump"
        finite, infinite, far, lost = numbers.reshape(4, *batch)
        return Completeness(
            evidence,
            statement,
            generic.number,
            finite,
            infinite,
            far,
            lost,
            moving.reshape(batch),
            self.real.reshape(batch),
            certified.reshape(len(certified), *batch),
            certain.reshape(batch),
            proven.reshape(batch),
            followed.reshape(batch),
            generic.clean,
            generic.chance,
        )

    def _doubt(self, lost: int) -> str:
        """Return why solutions may be missing, with a number of lost paths; "" without a reason."""
        from kic.analysis.positions.endgame import IMAGINARY_MIN

        paths = self.paths
        if paths.lost.any() and time.monotonic() > self.deadline:
            return self.reason or "the time limit ended the search"
        if paths.lost.any():
            reason = f"{lost} paths to the values could not be completed"
            if paths.off > IMAGINARY_MIN:
                reason += f"; all were lost near infinity, at imaginary parts of {paths.off:.2g} or more"
            return reason
        pairs = zip(self.found, self.direct, strict=True)
        if any(not one.is_repeated for own, n in pairs for one in own[n:]):
            return "a neighbour in the batch led to a solution that no path found"
        return self.reason


def preceding_members(batch: tuple[int, ...]) -> np.ndarray:
    """Return the preceding member (B,) of each one, on the last axis along which it is not first, or -1."""
    at, parent = np.arange(prod(batch)), np.full(prod(batch), -1)
    for axis, size in enumerate(batch):
        stride = prod(batch[axis + 1 :])
        parent = np.where(at // stride % size > 0, at - stride, parent)
    return parent


def assembly_modes(
    mechanism: Mechanism,
    values: Any,
    *,
    near: Configuration | None = None,
    starts: int = 128,
    rng: Any = 0,
    limits: Limits = None,
    complete: bool = False,
    certify: bool = False,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> AssemblyModes:
    """Find the distinct configurations (assembly modes) with given values, such as both elbows of an arm.

    The default is a quick search from random starts, which may miss solutions. With ``complete=True`` all
    complex solutions of the closure equations are collected by monodromy loops of the inputs, and
    followed to the values. The result states the evidence that no solution is missing. The loops are run
    once for a mechanism and a choice of inputs; further values take milliseconds for each path.

    Parameters
    ----------
    values : dict or (..., M) array_like
        One target or a batch of targets, as in `at`.
    near : Configuration, optional
        One configuration, the first start; solutions are sorted by the distance of their joints from it.
        By default the reference configuration.
    starts : int
        Number of starts: `near`, and random starts. In a batch, this is the number at the first member;
        others have an eighth (at least 8), and the solutions of their neighbours.
    rng : int or numpy Generator
        Seed of the random starts.
    limits
        As in `at`. An angle may be within them modulo full turns.
    complete : bool
        True to collect all solutions; see `AssemblyModes.completeness`. The poses of bodies, points,
        distances and joints may be given. Couplings of rotations must have the ratio 1, and dimensions
        must be exact (no `closure_tolerance`). Assembly modes of legs that are independent for each pose
        of a platform are combined.
    certify : bool
        With ``complete=True``, True to follow the paths to the values once more in steps that are proved
        not to jump; this takes 0.01 to 1 s for each path. Solutions are certified in any case.
    time_limit : float, optional
        With ``complete=True``, the time (s) after which loops and paths end; the result then states that
        it is incomplete. A later call continues, also after a KeyboardInterrupt.
    progress : bool, optional
        With ``complete=True``, show a progress bar on stderr; by default at a terminal, if it takes long.

    Returns
    -------
    AssemblyModes
        Its `configuration` is a batch whose first axis has the solutions found, which may not be all. For
        a batch, each slice is one branch, as far as it could be continued. Missing solutions are NaN in
        every result and False in ``configuration.ok``. If no solution was found, it is empty, and
        `reason` states the cause.

    Raises
    ------
    InputError, UnknownNameError
        As for `at`; also for invalid limits, and for more than 100,000 real assembly modes of one target
        with ``complete=True``; the error carries their `number`.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> found = m.assembly_modes({"A": 1.2})
    >>> len(found.counts), found.configuration.value("A").tolist()
    (2, [1.2, 1.2])

    Both elbow configurations up to the limit of reach and beyond:

    >>> arm = kic.load("horn-two-link")
    >>> found = arm.assembly_modes({"tip.x": [1.2, 1.6, 2.0, 2.4], "tip.y": 0.0})
    >>> found.configuration.ok.sum(axis=0).tolist()
    [2, 2, 1, 0]

    A planar platform with three legs has six complex solutions, of which two are real here:

    >>> platform = kic.load("three-rrr")
    >>> every = platform.assembly_modes([1.9, 1.2, -2.3], complete=True)
    >>> every.completeness.generic, len(every)
    (6, 2)
    """
    options = complete, time_limit, progress, certify
    return find_assemblies(model_of(mechanism), values, near, starts, rng, limits, *options)
