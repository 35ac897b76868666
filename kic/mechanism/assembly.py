"""Assembly: close the loops of a mechanism that is described with open loops, by damped Gauss–Newton.

The residuals are the closure rows, made with one frame of the closing joint in each of its bodies. Cosines of
directions that both bodies share, minus one, are residuals too: closure rows also hold for flipped parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from kic.description.contacts import Contact
from kic.description.couplings import ratio_fields
from kic.description.description import find_part, given_names
from kic.description.joint_types import BALL_TYPES, JOINT_AXES, LOOP_TYPES
from kic.description.parts import Body, Frame, Joint, Point
from kic.description.spins import find_spins, free_remarks, held_remark, with_held_spins
from kic.errors import InputError, KicError, ModelError, either, invalid, short_repr, unfinished_type, unknown
from kic.kinematics.closure_rows import (
    all_closure_rows,
    closure_items,
    contact_axes,
    coupling_items,
    facing_items,
    facing_rows,
    spin_axis,
)
from kic.kinematics.items import CLOSED, COSINE, LENGTH, heights
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.kinematics.state import distance, integrate
from kic.kinematics.tree import Tree, ball_axes, frame_axes
from kic.mechanism.configuration import Configuration, displacements
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import choice, entries, mapping, names_of
from kic.numerics.arrays import as_numbers
from kic.numerics.gauss_newton import DAMPING_MIN, gauss_newton
from kic.numerics.graphs import blocks
from kic.numerics.linalg import unit
from kic.numerics.rotations import universal_angles
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.constraint_system import column_scales, moving, row_scales
from kic.transfer.mobility.finite_mobility import SINGULAR_VALUE_RTOL
from kic.transfer.mobility.rounding import (
    AXIAL_TYPES,
    ROUNDED_SHARE_MAX,
    ROUNDED_TILT_MAX,
    fitted,
    rounded_loops,
    tilt_sentence,
    with_turning_frames,
)

# residual of closed loops relative to the characteristic length: exact, with numbers of four digits, and the
# largest
EXACT_RTOL, DIGITS_RTOL, ROUNDED_RTOL = 1e-11, 1e-4, 1e-3
# the largest gap that a turned frame may explain, the largest share of it that may remain, the largest ratio
# of the angle to that of the best frame, and the largest angle to first order
TURNED_GAP_MAX, TURN_MISFIT_MAX, TURN_RATIO_MAX, FRAME_TURN_MAX = 0.1, 0.1, 2.5, 0.3
# lengths and angles below this are rounding errors of the computation
MISSED_MIN = 1e-14
# number of starts sampled within joint limits if known starts do not close the loops, and numbers of closed
# samples at which sampling ends: within limits, and in all; the nearest of them is chosen
SAMPLED_STARTS, SAMPLES_ENOUGH, CLOSED_SAMPLES_MAX = 64, 4, 16
# if no start closes: share of a small gap from known starts that the gap of a better sample must not exceed
ROUGH_SHARE = 0.1
# evaluations of the residuals after which no further start is tried
ASSEMBLY_EVALUATIONS_MAX = 1500
# names of starts in remarks and errors
NEAR, DESCRIBED = "`near`", "the described configuration"
# largest number of values of a start that an error shows
NAMED_VALUES_MAX = 12
# violation of limits that counts as round-off
VIOLATION_ATOL = 1e-6
# difference of a cosine from 1 below which it does not determine an angle
COSINE_ATOL = 1e-8
# joints at the ends of rods
ROD_TYPES = ("universal", "spherical")
# largest entry of one step, and of the displacement to a state that satisfies the conditions of rounded
# dimensions too: radians, or shares of the characteristic length
ASSEMBLY_STEP_MAX, WAY_TO_EXACT_MAX = 0.5, 1e-2


@dataclass(frozen=True)
class LoopFrame:
    """End of an open loop: a body, and the world pose (4, 4) of a frame that is fixed in it."""

    body: str
    pose: np.ndarray


@dataclass(frozen=True)
class ClosingJoint:
    """Joint that closes a loop.

    `axis` and `axis2` are given in the first frame, except that `axis2` of a universal joint is given in the
    second, as in `Joint`. Coordinates are 0 where both frames coincide.
    """

    name: str
    type: str
    axis: tuple[float, ...] = field(default=(0.0, 0.0, 1.0), kw_only=True)
    axis2: tuple[float, ...] = field(default=(1.0, 0.0, 0.0), kw_only=True)


@dataclass(frozen=True)
class Loop(ClosingJoint):
    """Closing joint between two frames in the world.

    `laws` are springs, damping, friction, armature and limits, as in `Joint`.
    """

    first: LoopFrame
    second: LoopFrame
    laws: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class ClosedState:
    """State that closes the loops, with remarks on the search."""

    state: np.ndarray
    remarks: list[str] = field(default_factory=list)


class _Residuals:
    """Closure rows of a mechanism, open loops and couplings, with derivatives in the tree's coordinates."""

    def __init__(
        self,
        tree: Tree,
        length: float,
        loops: Sequence[Loop],
        couplings: Sequence[tuple[str, dict[str, float], float]],
    ) -> None:
        self.tree, self.length = tree, length
        items, names, offsets = all_closure_rows(tree)
        facing, facing_names = facing_rows(tree)
        for loop in loops:
            joint, ends = _joint(loop, *CLOSED), (loop.first.pose, loop.second.pose)
            rows, directions = closure_items(tree, joint, ends), facing_items(tree, joint, ends)
            items, facing = items + rows, facing + directions
            names += [loop.name] * sum(heights(rows))
            facing_names += [loop.name] * len(directions)
        for name, terms, value in couplings:
            items += coupling_items(tree, terms.items(), value)
            names.append(name)
        constant = tuple((row, -1.0) for row in range(len(names), len(names) + len(facing)))
        every = np.array(names + facing_names, dtype=object)
        items, self.select = items + facing, np.flatnonzero(every != "")
        self.size, self.owners = len(self.select) - len(facing), every[self.select]
        self.rows = replace(plain_rows(tree, items), offsets=(*offsets, *constant), select=self.select)
        self.query = output_query(tree, self.rows, 1)
        item_of = self.rows.item_of[self.select]
        kinds = self.rows.kinds[item_of]
        self.is_length, self.is_cosine = LENGTH[kinds], COSINE[kinds]
        self.row_scale = row_scales(tree, self.rows, self.length)
        self.scale = column_scales(tree, self.length)
        # joints that move both bodies together cannot close a gap between them
        moves = moving(tree, self.rows)[item_of]
        self.step_scale, self.blocks = moves * self.scale, blocks(moves)
        self.evaluations = 0

    def __call__(self, states: np.ndarray, members: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return scaled residuals (B, n) at states (B, S), and their derivatives (B, n, M)."""
        self.evaluations += len(states)
        values, G = self.query.arrays(states)
        values, G = self.rows.complete(values.copy())[:, self.select], G[:, self.select]
        return values / self.row_scale, G / self.row_scale[:, None] * self.step_scale

    def moved(self, states: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return the states (B, S) after scaled steps (B, M)."""
        return integrate(self.tree, states, steps * self.scale)

    def describe(self, state: np.ndarray, unit_of_length: str) -> str:
        """Return text on the loops and couplings with the largest gaps."""
        e = self(state[None])[0][0]
        # angles between directions that should be perpendicular
        angles = np.arcsin(np.minimum(np.abs(e), 1.0))
        # cosines of equal directions do not resolve small angles, unlike those of perpendicular directions
        facing = e[self.size :]
        angles[self.size :] = np.where(-facing > COSINE_ATOL, np.arccos(np.clip(1 + facing, -1.0, 1.0)), 0.0)
        sizes = np.where(self.is_cosine, angles, np.abs(e))
        wide = []
        for name in dict.fromkeys(self.owners.tolist()):
            own = self.owners == name
            length, angle = (
                float(sizes[own & of].max(initial=0.0)) for of in (self.is_length, ~self.is_length)
            )
            if max(length, angle) > EXACT_RTOL:
                parts = (length * self.length, unit_of_length, length), (angle, "rad", angle)
                words = [f"{size:.3g} {what}" for size, what, share in parts if share > EXACT_RTOL]
                wide.append((max(length, angle), f"'{name}' by {' and '.join(words)}"))
        wide.sort(key=lambda pair: -pair[0])
        more = f" and {len(wide) - 3} more" if len(wide) > 3 else ""
        return ", ".join(words for _, words in wide[:3]) + more

    def worst(self, state: np.ndarray) -> tuple[float, str]:
        """Return the largest residual, infinite for non-finite residuals, and its loop or coupling."""
        e = np.abs(self(state[None])[0][0])
        if not e.size:
            return 0.0, ""
        e[~np.isfinite(e)] = np.inf
        k = int(np.argmax(e))
        return float(e[k]), str(self.owners[k])

    def solve(self, state: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the state where damped Gauss–Newton ends, and its largest residual.

        Conditions that only rounding makes independent would move the mechanism to a state that satisfies
        them. They count if this state is near, or if the loops stay open without them.
        """
        found = self._solve(state, ROUNDED_SHARE_MAX)
        exact = self._solve(found, SINGULAR_VALUE_RTOL)
        left = self.worst(found)[0]
        far = distance(self.tree, found[None], exact[None], self.scale).max(initial=0.0)
        if left > DIGITS_RTOL or far < WAY_TO_EXACT_MAX:
            return exact, self.worst(exact)[0]
        return found, left

    def _solve(self, state: np.ndarray, rtol: float) -> np.ndarray:
        """Return the state where damped Gauss–Newton ends; singular values below a share `rtol` are zero."""
        (found,), _ = gauss_newton(
            self,
            self.moved,
            state[None],
            rtol=rtol,
            step_max=ASSEMBLY_STEP_MAX,
            damping=DAMPING_MIN,
            enough=EXACT_RTOL * 1e-3,
            blocks=self.blocks,
        )
        return found


def _size(model: CompiledModel, loops: Sequence[Loop]) -> float:
    """Return the characteristic length of the tree and its loops."""
    places = [end.pose[:3, 3] for loop in loops for end in (loop.first, loop.second)]
    extent = float(np.ptp(places, axis=0).max()) if places else 0.0
    return max(model.length, extent) if model.length != 1.0 or not extent else extent


def closed_state(
    model: CompiledModel,
    loops: Sequence[Loop],
    couplings: Sequence[tuple[str, dict[str, float], float]],
    starts: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    chosen: str = "",
) -> ClosedState:
    """Find a closed state from the chosen start, or else from the first start that yields one within limits.

    The described configuration is tried first, then other starts, the zero within limits, and samples.

    Parameters
    ----------
    model : CompiledModel
        Model whose tree is described with open loops.
    loops, couplings : sequences
        Conditions. A coupling is a name, the coefficients of joints, and the value of their sum.
    starts : dict of str to dict
        Starts by name: values of joints, and components of the rotation vectors of ball joints.
    chosen : str
        Name of the only start to use, if any.

    Raises
    ------
    ModelError
        If no start, or not the chosen one, closes the loops; it carries the `residual`, the name of the
        `loop`, and a start `near` another closed state if one is found. Also if only the chosen start leads
        beyond limits.
    """
    residuals = _Residuals(model.tree, _size(model, loops), loops, couplings)
    described = model.reference_state[0]
    opening, widest = residuals.worst(described)
    if np.isinf(opening):
        message = (
            f"loop '{widest}' has a residual that is not finite in the described configuration. Correct its "
            "frames."
        )
        raise ModelError(message, loop=widest, residual=opening)
    limits = _Limits(model, loops, residuals.length)
    known = {name: state_at(model.tree, described, values) for name, values in starts.items()}
    own = {chosen: known.pop(chosen)} if chosen else {}
    known = {DESCRIBED: described, **known}
    if not np.array_equal(clipped := limits.clipped(described), described):
        known["the zero within the limits"] = clipped
        known["the middle of the exceeded limits"] = limits.clipped(described, inwards=0.5)
    state, origin = _nearest(residuals, own or known, limits, 0 if own else SAMPLED_STARTS)
    made = ClosedState(state)
    left, worst = residuals.worst(made.state)
    turns = _frame_turns(model, loops, couplings, state) if ROUNDED_RTOL < left < TURNED_GAP_MAX else {}
    turned = [f"the frame of '{name}' by {angle:.2g} rad" for name, angle in turns.items()]
    closes = left <= ROUNDED_RTOL or min(turns.values(), default=np.inf) < ROUNDED_TILT_MAX
    remedy = f"Turning {either(turned)} closes it" if turns else "Correct its frames"
    if own and not (closes and limits.allow(state)):
        _check_chosen(residuals, own, known, limits, state, remedy)
    if not closes:
        message = (
            f"loop '{worst}' does not close: from the described configuration and sampled starts a gap of "
            f"{left:.2g} of the characteristic length {residuals.length:.3g} remains. {remedy}, or give "
            "`near` closer to a closed configuration."
        )
        raise ModelError(message, loop=worst, residual=left, turns=turns)
    if turns:
        made.remarks.append(f"turning {either(turned)} closes loop '{worst}', which is open by rounding.")
    if opening > EXACT_RTOL:
        gaps = residuals.describe(described, model.description.units.length or "length units")
        made.remarks.append(f"loops were open as described: {gaps}; a search from {origin} closed them.")
    elif origin != DESCRIBED:
        where = "" if own else ", but beyond limits"
        made.remarks.append(
            f"loops are closed as described{where}; the result of a search from {origin} is used."
        )
    beyond = [name for name, excess in limits.excesses(state).items() if excess > VIOLATION_ATOL]
    if beyond:
        made.remarks.append(f"coordinates beyond their limits where the loops close: {', '.join(beyond)}.")
    return made


def _frame_turns(
    model: CompiledModel,
    loops: Sequence[Loop],
    couplings: Sequence[tuple[str, dict[str, float], float]],
    state: np.ndarray,
) -> dict[str, float]:
    """Return, by joint, the smallest angle by which one frame of the joint must turn to close the loops."""
    joints = [joint for joint in model.description.joints if joint.type in AXIAL_TYPES and joint.at]
    for loop in loops:
        at = tuple(loop.first.pose[:3, 3].tolist())
        joints.append(Joint(loop.name, "spherical", (loop.first.body, loop.second.body), at))
    whole, states, turned = with_turning_frames(model.tree, state[None], joints)
    ends = {joint.name: joint.bodies[0] for joint, _ in turned}
    loops = [replace(loop, first=replace(loop.first, body=ends[loop.name])) for loop in loops]
    e, G = _Residuals(whole, _size(model, loops), loops, couplings)(states)
    turning = {joint.name: columns[0] for joint, columns in turned}
    others = np.setdiff1d(np.arange(G.shape[2]), [columns for _, columns in turned])
    # directions of residuals that no motion of the joints changes
    U, sigma, _ = np.linalg.svd(G[0][:, others])
    rest = U[:, int((sigma > ROUNDED_SHARE_MAX * sigma.max(initial=0.0)).sum()) :].T
    angles = dict[str, float]()
    for name, own in turning.items():
        x, left = fitted(rest @ G[0][:, own], rest @ e[0])
        if left < TURN_MISFIT_MAX:
            angles[name] = float(np.linalg.norm(x))
    most = min(FRAME_TURN_MAX, TURN_RATIO_MAX * min(angles.values(), default=0.0))
    return {name: angle for name, angle in angles.items() if angle < most}


class _Limits:
    """Limits of the coordinates of all joints, including those that close loops."""

    def __init__(self, model: CompiledModel, loops: Sequence[Loop], length: float) -> None:
        self.model, self.loops, self.length = model, loops, length
        joints = [joint for joint in model.description.joints if joint.limits is not None]
        self.names = [name for joint in joints for name in joint.valued]
        self.ranges = {name: pair for joint in joints for name, pair in joint.ranges.items()}
        self.lengths = [
            is_length for joint in joints for is_length in joint.translations[: len(joint.valued)]
        ]

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper limits (M,) of the columns of the tree."""
        pairs = [self.ranges.get(name, (-np.inf, np.inf)) for name in self.model.tree.columns]
        lower, upper = np.array(pairs, dtype=float).reshape(-1, 2).T
        return lower, upper

    def clipped(self, state: np.ndarray, inwards: float = 0.0) -> np.ndarray:
        """Return a state with the coordinates of the tree within their limits.

        Coordinates beyond a limit are placed inside it by a share `inwards` of their range, if it is finite.
        """
        made, (columns, entries) = state.copy(), self.model.tree.single_columns
        lower, upper = (x[columns] for x in self.columns())
        with np.errstate(over="ignore", invalid="ignore"):
            margin = inwards * (upper - lower)
        x, margin = state[entries], np.where(np.isfinite(margin), margin, 0.0)
        made[entries] = np.where(x < lower, lower + margin, np.where(x > upper, upper - margin, x))
        return made

    def allow(self, state: np.ndarray) -> bool:
        """Return True if no coordinate is beyond its limits."""
        return max(self.excesses(state).values(), default=0.0) <= VIOLATION_ATOL

    def excesses(self, state: np.ndarray) -> dict[str, float]:
        """Return the excess of each limited coordinate: radians, or shares of the characteristic length."""
        phi = self.model.values(self.names, state[None])[0] if self.names else []
        found = [
            (name, x, self.ranges[name], of)
            for name, x, of in zip(self.names, phi, self.lengths, strict=True)
        ]
        if any("limits" in loop.laws for loop in self.loops):
            for joint in closing_joints(
                self.loops, displacements(Configuration(self.model, (), state[None]))
            ):
                parts = zip(joint.components, joint.value, joint.translations, strict=True)  # type: ignore[arg-type]
                found += [(name, x, joint.ranges[name], of) for name, x, of in parts if name in joint.ranges]
        return {
            name: max(lower - x, x - upper, 0.0) / (self.length if is_length else 1.0)
            for name, x, (lower, upper), is_length in found
        }


def _check_chosen(
    residuals: _Residuals,
    own: Mapping[str, np.ndarray],
    known: Mapping[str, np.ndarray],
    limits: _Limits,
    state: np.ndarray,
    remedy: str,
) -> None:
    """Raise an error if the chosen start, `own`, leaves loops open, or if another start is better.

    `state` is the result of the chosen start: its loops are open, with a `remedy` for the error, or its
    coordinates are beyond limits. Limits alone are no error if no other start is better.
    """
    tree, length, ((chosen, start),) = residuals.tree, residuals.length, own.items()
    left, worst = residuals.worst(state)
    beyond = {name: x for name, x in limits.excesses(state).items() if x > VIOLATION_ATOL}
    other, origin = _nearest(residuals, known, limits, around=start)
    closes = residuals.worst(other)[0] <= ROUNDED_RTOL
    if left <= ROUNDED_RTOL and not (closes and limits.allow(other)):
        return
    if left <= ROUNDED_RTOL:
        problem = f"{chosen} closes the loops with coordinates beyond their limits: "
        problem += f"{', '.join(f'{name} by {x:.2g}' for name, x in beyond.items())}."
        remedy = "Correct the limits, or choose another start."
    else:
        gap = residuals.describe(state, limits.model.description.units.length or "length units")
        problem = f"loop '{worst}' does not close from {chosen}: gaps of {gap} remain, {left:.2g} of the "
        problem += f"characteristic length {length:.3g}."
        remedy += ", or choose another start."
    near = None
    if closes:
        columns, entries = tree.single_columns
        pairs = zip(columns.tolist(), other[entries].tolist(), strict=True)
        found = {tree.columns[n]: round(x, 4) for n, x in pairs}
        again, rest = residuals.solve(state_at(tree, known[DESCRIBED], found))
        if rest <= ROUNDED_RTOL and limits.allow(again) >= limits.allow(other):
            near = found
        values = f": near={near}" if near and len(near) <= NAMED_VALUES_MAX else ""
        remedy += f" {origin[0].upper()}{origin[1:]} closes the loops{values}."
    else:
        remedy += " No other start that was tried closes the loops."
    raise ModelError(f"{problem} {remedy}", loop=worst, residual=left, beyond=beyond, near=near)


def _nearest(
    residuals: _Residuals,
    starts: Mapping[str, np.ndarray],
    limits: _Limits,
    samples: int = SAMPLED_STARTS,
    around: np.ndarray | None = None,
) -> tuple[np.ndarray, str]:
    """Return the first closed state within limits from named starts, else the nearest of samples.

    Also return the name of the start. Samples and distances are `around` a state, by default the first start.
    If the first start is closed, it is kept unless another start leads within limits.
    """
    known = list(starts.items())
    tree, (first, zero) = residuals.tree, known[0]
    is_closed = residuals.worst(zero)[0] <= EXACT_RTOL
    if is_closed and (limits.allow(zero) or len(known) == 1):
        return zero, first
    if is_closed:  # other known starts may lead within limits
        samples = 0
    zero = zero if around is None else around
    lower, upper = limits.columns()
    best: tuple[float, float, np.ndarray, str] | None = None
    rough: tuple[float, np.ndarray, str] | None = None
    closed, inside = 0, 0
    generator = np.random.default_rng(0)
    # limits may be far wider than any motion, such as 1e16 rad in files
    middle = np.clip(_columns(tree, zero), lower, upper)
    reach = np.where(residuals.scale == 1.0, np.pi, residuals.length)
    low = np.maximum(lower, middle - np.where(np.isfinite(lower), 2, 1) * reach)
    high = np.minimum(upper, middle + np.where(np.isfinite(upper), 2, 1) * reach)
    for k in range(len(known) + samples):
        is_known = k < len(known)
        if is_known:
            origin, state = known[k]
        elif residuals.evaluations > ASSEMBLY_EVALUATIONS_MAX:
            break
        else:
            origin = f"start {k - len(known) + 1} of those sampled within the limits"
            phi = low + (high - low) * generator.random(tree.size)
            for turn, _ in tree.ball_slices:
                phi[turn] = generator.normal(size=3)
            state = tree.states(phi[None])[0]
        state, left = residuals.solve(state)
        nearly = not is_known and rough is not None and rough[0] < TURNED_GAP_MAX
        if rough is None or left < rough[0] * (ROUGH_SHARE if nearly else 1.0):
            rough = left, state, origin
        if left <= ROUNDED_RTOL:
            out = max(limits.excesses(state).values(), default=0.0)
            far = float(distance(tree, zero[None], state[None], residuals.scale).max(initial=0.0))
            if out <= VIOLATION_ATOL and is_known:
                return state, origin
            closed += not is_known
            inside += out <= VIOLATION_ATOL
            if best is None or (max(out, VIOLATION_ATOL), far) < best[:2]:
                best = max(out, VIOLATION_ATOL), far, state, origin
        if inside == SAMPLES_ENOUGH or closed == CLOSED_SAMPLES_MAX:
            break
    if is_closed:
        return known[0][1], first
    if best is not None:
        return best[2], best[3]
    assert rough is not None  # for the type checker: the first start is always tried
    return rough[1:]


def _columns(tree: Tree, state: np.ndarray) -> np.ndarray:
    """Return the coordinates (M,) of a state, zero for ball joints."""
    phi = np.zeros(tree.size)
    columns, entries = tree.single_columns
    phi[columns] = state[entries]
    return phi


def state_at(tree: Tree, zero: np.ndarray, values: Mapping[str, Any]) -> np.ndarray:
    """Return the state with given joint values; rotations are vectors from the described configuration."""
    return states_at(tree, zero, start_columns(tree, values), ())


def states_at(tree: Tree, zero: np.ndarray, given: Mapping[int, Any], batch: tuple[int, ...]) -> np.ndarray:
    """Return states (..., S) with given columns (...) of the tree, as in `state_at`."""
    phi = np.broadcast_to(_columns(tree, zero), (*batch, tree.size)).copy()
    for k, value in given.items():
        phi[..., k] = value
    turned = tree.states(phi.reshape(-1, tree.size)).reshape(*batch, *zero.shape)
    state = np.broadcast_to(zero, turned.shape).copy()
    entries = tree.single_columns[1]
    state[..., entries] = turned[..., entries]
    for turn, quaternion in tree.ball_slices:
        if given.keys() & range(turn.start, turn.stop):
            state[..., quaternion] = turned[..., quaternion]
    return state


def start_columns(tree: Tree, values: Mapping[str, Any]) -> dict[int, float]:
    """Return the values of a start by column of the tree.

    Raises
    ------
    UnknownNameError, InputError
        If a joint is unknown, or a value is not a finite number.
    """
    made = {}
    for name, value in values.items():
        if name not in tree.column:
            raise unknown("joint", name, tree.description.name, list(tree.column))
        number = as_numbers(value)
        if number is None or number.ndim or number.dtype != np.float64 or not np.isfinite(number):
            raise invalid(f"near['{name}']", "must be a finite number", value, name=name)
        made[tree.column[name]] = float(number)
    return made


def close_loops(
    mechanism: Mechanism,
    loops: Iterable[Any],
    *,
    near: Mapping[str, float] | None = None,
    coordinates: Iterable[str] | None = None,
    spins: str = "held",
) -> Mechanism:
    """Close loops that are open in the description, in the nearest closed configuration.

    Damped Gauss–Newton steps start from `near`, or else from the described configuration, then from zero
    coordinates clipped to the joint limits, and then from samples within them; the nearest of the first
    solutions is taken. Closed loops, couplings, closed contacts and fixed measures are maintained.

    Parameters
    ----------
    loops : sequence of (str, str) or (str, str, str)
        Pairs of frames or points that coincide where a loop is closed. The third word is the type of the
        closing joint: "spherical" (the default), "revolute" about the z axis of the first frame, "fixed",
        "cylindrical", "prismatic", "universal" (the second axis is the x axis of the second frame) or
        "planar" (along z and x of the first). Its coordinates are 0 where both frames coincide. Points
        have the axes of the world.
    near : dict of str to float, optional
        Values of joints from which the search starts; "ball.1" to "ball.3" are the rotation vector of a
        ball joint. No other start is used then.
    coordinates : sequence of str, optional
        Joints of the default coordinates. By default those of the description if they can drive the
        closed mechanism, else the best-conditioned set.
    spins : {"held", "free"}
        "held" for `hold_spins`, except for rods whose joints have a coordinate in `coordinates`; "free"
        to keep all spins of rods as degrees of freedom.

    Returns
    -------
    Mechanism
        Described in the closed configuration, with a joint "a to b" for each loop. Coordinates keep their
        values; rotations of free and spherical joints are at their zero. `remarks` lists the gap of each
        loop.

    Raises
    ------
    ModelError
        If no configuration closes the loops. It has the name of the `loop` that remains open, and the
        `residual` as a share of the characteristic length. Also if `near` does not close them within
        limits, but another start does; the error has its values as `near`. Also for open contacts and
        swings of joints that move, which refer to the described configuration.
    InputError, UnknownNameError
        If a loop, value or name is invalid.

    Examples
    --------
    A double pendulum, drawn straight, becomes a four-bar linkage by a second pin:

    >>> z = (0, 0, 1)
    >>> chain = kic.Mechanism(
    ...     "chain",
    ...     [kic.Body("crank"), kic.Body("coupler"), kic.Body("rocker")],
    ...     [
    ...         kic.Joint("A", "revolute", ("ground", "crank"), (0, 0, 0), z),
    ...         kic.Joint("B", "revolute", ("crank", "coupler"), (1, 0, 0), z),
    ...         kic.Joint("C", "revolute", ("coupler", "rocker"), (3, 0, 0), z),
    ...     ],
    ...     points=[kic.Point("end", "rocker", (5, 0, 0)), kic.Point("pin", "ground", (2, 0, 0))],
    ... )
    >>> m = chain.close_loops([("end", "pin", "revolute")], near={"A": 1.0, "B": -0.5, "C": -2.0})
    >>> m.dof, bool(abs(m.at().value("end") - [2, 0, 0]).max() < 1e-12)
    (1, True)
    """
    mechanism._model.require_real("close_loops()", "Close the loops of the mechanism without it.")
    names: Any = None if coordinates is None else names_of(coordinates, "coordinates")
    made = []
    for k, loop in enumerate(entries(loops)):
        first, second, kind = loop_words(k, loop)
        ends = _end(mechanism, first), _end(mechanism, second)
        if ends[0].body == ends[1].body:
            message = f"`loops[{k}]` connects '{ends[0].body}' with itself. Name frames of two bodies."
            raise InputError(message, key=f"loops[{k}]")
        made.append(Loop(f"{first} to {second}", kind, *ends))
    given = None if near is None else mapping("near", near, "joints to values")
    starts = {} if given is None else {NEAR: given}
    closed, remarks = closed_mechanism(mechanism, made, starts=starts, chosen=NEAR if starts else "")
    wanted = given_names(mechanism, "coordinates") or ()
    drives = names is None and wanted and _drives(closed.replace(coordinates=None), wanted)
    closed, more = without_spins(closed, wanted if drives else names, spins)
    if names is None:
        names = default_coordinates(closed, [wanted])
    return replace(closed, coordinates=names, remarks=(*mechanism.remarks, *remarks, *more))


def without_spins(
    mechanism: Mechanism, coordinates: Iterable[str] | None, spins: str
) -> tuple[Mechanism, list[str]]:
    """Return a closed mechanism, with the spins of rods held if `spins` is "held", and remarks on them.

    Spins stay free if one of the chosen `coordinates` takes part in them.
    """
    if choice("spins", spins, ("held", "free")) == "free":
        return mechanism, []
    found = find_spins(mechanism, coordinates or ())
    held = held_remark(found)
    if not held:
        return mechanism, free_remarks(found)
    remarks = [f"{held} With `spins='free'` they stay free.", *free_remarks(found)]
    return with_held_spins(mechanism, found), remarks


def loop_words(k: int, given: Any) -> tuple[str, str, str]:
    """Return the names of two frames and the type of the closing joint from entry k of `loops`."""
    words = entries(given)
    if len(words) not in (2, 3) or not all(isinstance(word, str) for word in words):
        raise invalid(f"loops[{k}]", "must be two frames, and a type of joint if not spherical", given)
    kind = words[2] if len(words) == 3 else "spherical"
    if kind not in LOOP_TYPES:
        message = f"`loops[{k}]`: the type must be one of {', '.join(LOOP_TYPES)}, got {short_repr(kind)}."
        raise InputError(message, key=f"loops[{k}]", got=kind)
    return words[0], words[1], kind


def _end(mechanism: Mechanism, name: str) -> LoopFrame:
    """Return the end of a loop at a frame or point; a point has world axes."""
    part = find_part(mechanism, name, "frames", "points")
    pose = np.eye(4)
    if isinstance(part, Frame):
        pose[:3, :3], pose[:3, 3] = np.array(part.axes).T, part.origin
    elif isinstance(part, Point):
        pose[:3, 3] = part.at
    return LoopFrame(part.body, pose)  # type: ignore[union-attr]


def closed_mechanism(
    mechanism: Mechanism,
    loops: Sequence[Loop],
    rows: Sequence[tuple[str, dict[str, float], float]] = (),
    starts: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    chosen: str = "",
    **added: Any,
) -> tuple[Mechanism, list[str]]:
    """Return a mechanism with its loops closed, described at the closed state, and remarks.

    Loops, contacts and rods that are already closed stay closed. `rows` are couplings with their values that
    the new description does not include; `added` are parts that it includes. Its ball joints are at zero.
    """
    model = mechanism._model
    found = closed_state(model, loops, rows, starts, chosen)
    poses = displacements(Configuration(model, (), found.state[None]))
    added["joints"] = closing_joints(loops, poses)
    made = tolerate_rounding(described_at(mechanism, found.state, poses, added, remarks=()))
    return made, [*found.remarks, *made.remarks]


def tolerate_rounding(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism with remarks, and a `closure_tolerance` with which loops of rounded dimensions move.

    Remarks also name axes and frames with errors too large for rounding. The same object is returned if its
    tolerance suffices and there are no such axes.
    """
    model = mechanism._model
    tolerance, loops, tilts = rounded_loops(model.closure(()), model.tree.reference_state)
    tilts = [] if mechanism.closure_tolerance else tilts
    if tolerance <= mechanism.closure_tolerance and not tilts:
        return mechanism
    unit_of_length = mechanism.units.length or "length units"
    remarks = [f"t{tilt_sentence(axes)[1:]}" for axes in tilts]
    for loop in loops:
        sizes = (loop.length, unit_of_length), (loop.angle, "rad")
        missed = [f"{size:.1g} {unit}" for size, unit in sizes if size > MISSED_MIN]
        missed = missed or [f"{loop.share:.1g} of their size"]
        names = ", ".join(f"'{name}'" for name in loop.parts)
        remarks.append(
            f"loop {names}: redundant conditions miss by {' and '.join(missed)} along the motion, by "
            f"rounding; `closure_tolerance` was set to {tolerance:.1g}."
        )
    tolerance = max(tolerance, mechanism.closure_tolerance)
    return replace(mechanism, closure_tolerance=tolerance, remarks=(*mechanism.remarks, *remarks))


def closing_joints(loops: Iterable[Loop], poses: Mapping[str, np.ndarray]) -> tuple[Joint, ...]:
    """Return the joints of loops, described at displacements `poses` (4, 4) of the bodies."""
    return tuple(
        _joint(loop, *(poses[end.body] @ end.pose for end in (loop.first, loop.second))) for loop in loops
    )


class _Displaced:
    """Converter of parts of a mechanism to their description at displacements (4, 4) of the bodies."""

    def __init__(self, poses: Mapping[str, np.ndarray]) -> None:
        self.poses = poses

    def point(self, body: str, x: Any) -> Any:
        """Return the displaced position of a point of a body."""
        T = self.poses[body]
        return None if x is None else tuple((T[:3, :3] @ x + T[:3, 3]).tolist())

    def vector(self, body: str, x: Any) -> Any:
        """Return the displaced direction of a vector that is fixed in a body."""
        return None if x is None else tuple((self.poses[body][:3, :3] @ x).tolist())

    def body(self, body: Body) -> Body:
        """Return a displaced body."""
        com, at = (self.point(body.name, x) for x in (body.com, body.at))
        inertia: Any = body.inertia
        if inertia is not None:
            R = self.poses[body.name][:3, :3]
            J = R @ np.array(inertia) @ R.T
            inertia = (J + J.T) / 2
        return replace(body, com=com, at=at, inertia=inertia)

    def joint(self, joint: Joint, value: tuple[float, ...]) -> Joint:
        """Return a displaced joint with given values, in axes of the first body for ball joints."""
        first, second = joint.bodies
        turned = self.poses[first][:3, :3], self.poses[second][:3, :3]
        if joint.swing is not None and not np.allclose(*turned, rtol=0.0, atol=EXACT_RTOL):
            raise ModelError(
                f"`swing` of joint '{joint.name}' is an angle from the reference configuration, which "
                "changes here. Remove it, and add it to the new mechanism.",
                name=joint.name,
            )
        axes = joint.axis, joint.axis2
        if joint.type in BALL_TYPES and not np.array_equal(self.poses[first][:3, :3], np.eye(3)):
            axes = tuple(ball_axes(joint).T[:2])
        axis, axis2 = self.vector(first, axes[0]), self.vector(first, axes[1])
        if joint.type == "universal":
            axis2 = self.vector(second, axes[1])
        swing_axis, at = self.vector(first, joint.swing_axis), self.point(second, joint.at)
        return replace(joint, at=at, axis=axis, axis2=axis2, value=value, swing_axis=swing_axis)

    def contact(self, contact: Contact) -> Contact:
        """Return a displaced contact: its point moves with the first body, its axes with the second."""
        first, second = contact.bodies
        at = self.point(first, contact.at)
        normal, tangent, _ = (self.vector(second, u) for u in contact_axes(contact))
        tangent2 = self.vector(first, spin_axis(contact)) if contact.type == "soft" else None
        return replace(contact, at=at, normal=normal, tangent=tangent, tangent2=tangent2)


def described_at(
    mechanism: Mechanism,
    state: np.ndarray,
    poses: Mapping[str, np.ndarray],
    added: Mapping[str, tuple[Any, ...]] | None = None,
    **changes: Any,
) -> Mechanism:
    """Return a mechanism described in another configuration; coordinates keep their values.

    Rotations of ball joints are zero in the new description. `added` are further parts in that configuration,
    and `changes` other fields. Raise `ModelError` if rows of open contacts are not zero there.
    """
    there, model = _Displaced(poses), mechanism._model
    for contact in mechanism.contacts:
        if not contact.closed:
            rows = dict(zip(contact.rows, model.values(contact.rows, state[None])[0].tolist(), strict=True))
            apart = {name: x for name, x in rows.items() if abs(x) > EXACT_RTOL * max(model.length, 1.0)}
            if apart:
                shown = ", ".join(f"{name} = {x:.3g}" for name, x in apart.items())
                raise ModelError(
                    f"Rows of the open contact '{contact.name}' must be zero in the new reference "
                    f"configuration, got {shown}. Remove the contact, and add it to the new mechanism.",
                    name=contact.name,
                    rows=apart,
                )
    joints = []
    for joint in mechanism.joints:
        value = np.zeros(joint.dof)
        if joint.valued:
            value[: len(joint.valued)] = model.values(joint.valued, state[None])[0]
        joints.append(there.joint(joint, tuple(value.tolist())))
    points = {p.name: p for p in mechanism.points}
    parts: dict[str, Any] = dict(
        bodies=tuple(map(there.body, mechanism.bodies)),
        couplings=tuple(
            # the ratios of a pitch point do not depend on the configuration
            replace(x, **ratio_fields(mechanism._terms[x.name])) if x.pitch_point is not None else x
            for x in mechanism.couplings
        ),
        joints=tuple(joints),
        points=tuple(replace(p, at=there.point(p.body, p.at)) for p in mechanism.points),
        distances=tuple(
            replace(d, axis=there.vector(mechanism._bodies_of(d)[1], d.axis)) for d in mechanism.distances
        ),
        angles=tuple(
            replace(a, axis=there.vector(a.bodies[0], a.axis), axis2=there.vector(a.bodies[1], a.axis2))
            for a in mechanism.angles
        ),
        frames=tuple(
            replace(
                f, origin=there.point(f.body, f.origin), axes=tuple(there.vector(f.body, e) for e in f.axes)
            )
            for f in mechanism.frames
        ),
        contacts=tuple(there.contact(contact) for contact in mechanism.contacts),
        forces=tuple(
            replace(f, force=there.vector(points[f.point].body, f.force)) if f.axes == "body" else f
            for f in mechanism.forces
        ),
        moments=tuple(
            replace(x, moment=there.vector(x.body, x.moment)) if x.axes == "body" else x
            for x in mechanism.moments
        ),
    )
    parts |= {field: (*parts[field], *more) for field, more in (added or {}).items()}
    return replace(mechanism, **parts, **changes)


def _joint(loop: Loop, first: np.ndarray, second: np.ndarray) -> Joint:
    """Return the joint of a loop, described at poses (4, 4) of its two frames."""
    axes: dict[str, Any] = {}
    for key in () if loop.type in BALL_TYPES else JOINT_AXES.get(loop.type, ()):
        carrier = second if loop.type == "universal" and key == "axis2" else first
        u = carrier[:3, :3] @ getattr(loop, key)
        if key == "axis2":  # exactly perpendicular, within the residual
            axis = np.array(axes["axis"])
            u = u - (u @ axis) / (axis @ axis) * axis
        axes[key] = tuple(u.tolist())
    at = tuple(((first[:3, 3] + second[:3, 3]) / 2).tolist())
    bodies = loop.first.body, loop.second.body
    made = Joint(loop.name, loop.type, bodies, at, **axes, **loop.laws)  # type: ignore[arg-type]
    return replace(made, value=_values_between(made, loop, np.linalg.inv(first) @ second))


def _values_between(joint: Joint, loop: Loop, T: np.ndarray) -> tuple[float, ...]:
    """Return the coordinates of a closing joint from the pose (4, 4) of its second frame in the first.

    Angles are in [−π, π], or shifted by full turns towards the limits.
    """
    a, b = unit(loop.axis), unit(loop.axis2)
    shift, turn = T[:3, 3], T[:3, :3]

    normal = np.cross(a, b) if joint.type == "planar" else a
    across = frame_axes(normal)[:, 0]
    angle = np.arctan2(normal @ np.cross(across, turn @ across), across @ turn @ across)
    found = {
        "revolute": lambda: [angle],
        "prismatic": lambda: [a @ shift],
        "cylindrical": lambda: [angle, a @ shift],
        "universal": lambda: universal_angles(a, b, turn).tolist(),
        "planar": lambda: [a @ shift, b @ shift, angle],
        **dict.fromkeys(("fixed", "spherical", "free"), lambda: [0.0] * joint.dof),
    }.get(joint.type)
    if found is None:
        where = "_values_between() in kic/mechanism/assembly.py"
        raise unfinished_type("joint", joint.name, joint.type, "values between two frames", where)
    values = found()
    for k, name in enumerate(joint.components):
        lower, upper = joint.ranges.get(name, (-np.inf, np.inf))
        if not joint.translations[k] and not lower <= values[k] <= upper:
            turns = np.round((np.clip(values[k], lower, upper) - values[k]) / (2 * np.pi))
            tried = values[k] + 2 * np.pi * (turns + np.array([0, -1, 1]))
            values[k] = tried[np.argmin(np.maximum(lower - tried, tried - upper).clip(0.0))]
    return tuple(float(x) for x in values)


def default_coordinates(mechanism: Mechanism, wanted: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return default coordinates of a closed mechanism; None for an open chain, or if no set drives it.

    They are the first of the `wanted` sets that drives it alone, else the first that drives it together with
    the best other coordinates, else the best conditioned coordinates.
    """
    if mechanism._model.tree.open:
        return None
    if not mechanism.dof:
        return ()
    wanted = [names for names in wanted if names]
    for names in wanted:
        if _drives(mechanism, names):
            return names
    best = _best(mechanism)
    for names in wanted if best else ():
        try:
            made = (*names, *mechanism.replace(coordinates=best).lock(names).coordinates)
        except KicError:
            continue
        if _drives(mechanism, made):
            return made
    return best


def _best(mechanism: Mechanism) -> tuple[str, ...] | None:
    """Return the best conditioned coordinates of a closed mechanism, of rods only if needed, or None."""
    hinges = [c for joint in mechanism.joints if joint.type not in ROD_TYPES for c in joint.components]
    has_rods = any(joint.type in ROD_TYPES for joint in mechanism.joints)
    for among in (hinges, None) if has_rods else (None,):
        try:
            return mechanism.mobility().independent_sets(of=among, count=1)[0].names
        except (KicError, IndexError):
            continue
    return None


def _drives(mechanism: Mechanism, names: tuple[str, ...]) -> bool:
    """Return True if coordinates can drive a mechanism in its reference configuration."""
    try:
        # errors would name a passive degree of freedom, which takes long to find in a large mechanism
        if sum(len(mechanism._components(name) or (name,)) for name in names) != mechanism.dof:
            return False
        mechanism.at().coefficients(mechanism.joints[0].name, order=1, wrt=names)
    except KicError:
        return False
    return True
