"""Close the loops of a robot whose file describes it with open loops: damped Gauss–Newton on its tree.

The residuals are displacements between the two frames of each closing joint, as vectors and rotation vectors,
and not the closure rows of the mechanism: those are made for configurations that are closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kic.errors import InputError, ModelFileError, short_repr, unknown
from kic.io.xml import Source
from kic.kernels.layout import DIRECTION, KIND, OMEGA, POINT, PRISMATIC
from kic.kinematics.items import Item
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import OutputQuery
from kic.kinematics.state import columns_to_states, distance, integrate
from kic.kinematics.tree import frame_axes, unit
from kic.numerics.arrays import numbers
from kic.numerics.rotations import vector_from_matrix
from kic.transfer.compiled_model import CompiledModel

STEPS_MAX = 100
# a search ends after so many steps that improve the squares of the residuals by less than a share
STALLED_STEPS, STALLED_RTOL = 4, 1e-3
# residual relative to the characteristic length: closed; closed with numbers of four digits; and the largest
CLOSED_RTOL, DIGITS_RTOL, ROUNDED_RTOL = 1e-11, 1e-4, 1e-3
# singular values of the closure, relative to the largest, that the rounding of a file makes: six digits
ROUNDED_RANK = (1e-10, 3e-5)
# margin of the closure tolerance over the residual and the singular values
TOLERANCE_FACTOR = 5.0
# starts sampled within the limits of the joints, if those of the file do not close the loops; the nearest of
# the first closed ones is taken
SAMPLED_STARTS, SAMPLES_ENOUGH = 64, 4
# evaluations of the residuals after which no further start is tried
EVALUATIONS_MAX = 1500
# violation of limits that counts as round-off
LIMIT_ATOL = 1e-6


@dataclass(frozen=True)
class LoopFrame:
    """End of a loop: a body and the frame (4, 4) in it, in world axes at the zero of the file."""

    body: str
    place: np.ndarray


@dataclass(frozen=True)
class Loop:
    """Closing joint between two frames; its axes are given in them."""

    name: str
    type: str
    first: LoopFrame
    second: LoopFrame
    axis: tuple[float, ...]
    axis2: tuple[float, ...]
    damping: float = 0.0
    friction: float = 0.0


@dataclass
class Assembly:
    """Closed state, the remarks on how it was found, and the tolerance that the loops need."""

    state: np.ndarray
    remarks: list[str] = field(default_factory=list)
    tolerance: float = 0.0


class _Closing:
    """Residuals of loops and couplings over the coordinates of a tree."""

    def __init__(
        self,
        model: CompiledModel,
        loops: Sequence[Loop],
        couplings: Sequence[tuple[str, dict[str, float], float]],
    ) -> None:
        self.tree, self.loops, self.length = model.tree, loops, _size(model, loops)
        tree, items = self.tree, list[Item]()
        for loop in loops:
            for end in (loop.first, loop.second):
                frame = tree.frame[end.body]
                items.append(Item(POINT, frame, local_b=tuple(tree.local_point(frame, end.place[:3, 3]))))
                items += [
                    Item(DIRECTION, frame, local_b=tuple(tree.local_vector(frame, e)))
                    for e in end.place[:3, :3].T
                ]
                items.append(Item(OMEGA, frame))
        self.query = OutputQuery(tree, plain_rows(tree, items), 1) if items else None
        self.scale = np.where(tree.cols[:, KIND] == PRISMATIC, self.length, 1.0)
        self.names = [loop.name for loop in loops] + [name for name, *_ in couplings]
        self.coupled = np.zeros((len(couplings), tree.size))
        self.coupled_value = np.array([value for *_, value in couplings])
        for k, (_, terms, _) in enumerate(couplings):
            for joint, ratio in terms.items():
                self.coupled[k, tree.column[joint]] = ratio
        size = np.abs(self.coupled * self.scale).max(axis=1, initial=0.0)
        self.evaluations = 0
        self.coupled_size = np.where(size > 0, size, 1.0)

    def residual(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return scaled residuals (n,), their derivatives (n, M) by scaled steps, and their owners (n,)."""
        parts, slopes, owner = [], [], []
        self.evaluations += 1
        if self.query is not None:
            values, G = self.query.layout.split(self.query.table(state[None]), (1,))
            per = values.shape[1] // len(self.loops)
            for k, loop in enumerate(self.loops):
                e, J = self._loop(loop, values[0, k * per :][:per], G[0, k * per :][:per])
                parts.append(e)
                slopes.append(J)
                owner += [k] * len(e)
        phi = state if not self.tree.balls else self._columns(state)
        parts.append((self.coupled @ phi - self.coupled_value) / self.coupled_size)
        slopes.append(self.coupled / self.coupled_size[:, None])
        owner += range(len(self.loops), len(self.names))
        return np.concatenate(parts), np.concatenate(slopes) * self.scale, np.array(owner)

    def _columns(self, state: np.ndarray) -> np.ndarray:
        """Return the coordinates (M,) of a state; those of ball joints, which no coupling has, are zero."""
        phi = np.zeros(self.tree.size)
        columns, entries = self.tree.single_columns
        phi[columns] = state[entries]
        return phi

    def _loop(self, loop: Loop, values: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals of a loop and their derivatives, in the axes of its first frame."""
        half = len(values) // 2
        (p, A, wa, va), (q, B, wb, vb) = (
            (v[:3], v[3:12].reshape(3, 3).T, g[12:15], g[:3])
            for v, g in ((values[:half], G[:half]), (values[half:], G[half:]))
        )
        gap = q - p
        shift = A.T @ gap / self.length
        # the first frame turns, too: d(Aᵀ gap) = Aᵀ (v - ω × gap)
        shift_rate = A.T @ (vb - va - np.cross(wa.T, gap).T) / self.length
        turn_rate = A.T @ (wb - wa)
        axis, axis2 = unit(loop.axis), unit(loop.axis2)
        if loop.type == "universal":
            cosine = (A @ axis) @ (B @ axis2)
            normal = np.cross(A @ axis, B @ axis2)
            rate = (A.T @ normal) @ turn_rate  # d(a·b) = (ω_b − ω_a)·(b × a), and e = −a·b
            return np.append(shift, -cosine), np.vstack([shift_rate, rate])
        if loop.type == "planar":
            axis = np.cross(axis, axis2)
        E = frame_axes(axis).T
        shift, shift_rate, turn_rate = E @ shift, E @ shift_rate, E @ turn_rate
        if loop.type in ("fixed", "prismatic"):
            turn = E @ vector_from_matrix(A.T @ B)
            count = 3
        else:
            turn, count = E @ A.T @ _between(A @ axis, B @ axis), 2
        rows = {"prismatic": [0, 1], "cylindrical": [0, 1], "planar": [2]}.get(loop.type, [0, 1, 2])
        if loop.type == "spherical":
            count = 0
        return (
            np.concatenate([shift[rows], turn[:count]]),
            np.vstack([shift_rate[rows], turn_rate[:count]]),
        )

    def worst(self, state: np.ndarray) -> tuple[float, int]:
        """Return the largest residual, and the index of its loop or coupling."""
        e, _, owner = self.residual(state)
        k = int(np.argmax(np.abs(e)))
        return float(np.abs(e[k])), int(owner[k])

    def solve(self, state: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the state where damped Gauss–Newton ends, and its largest residual."""
        damping = 1e-3
        e, J, _ = self.residual(state)
        cost, stalled = float(e @ e), 0
        for _ in range(STEPS_MAX):
            if not np.abs(e).max(initial=0.0) > CLOSED_RTOL * 1e-3:
                break
            U, s, Vt = np.linalg.svd(J, full_matrices=False)
            top = s[0] if len(s) else 0.0
            improved = False
            while damping < 1e8:
                # without damping directions of round-off size would move far
                factor = np.where(s > 1e-12 * top, s / (s**2 + damping * min(1.0, cost) * top**2), 0.0)
                step = -(Vt.T * factor) @ (U.T @ e)
                step *= min(1.0, 0.5 / max(np.abs(step).max(initial=0.0), 1e-300))
                tried = integrate(self.tree, state[None], (step * self.scale)[None])[0]
                new, slope, _ = self.residual(tried)
                if new @ new < cost:
                    improved = True
                    break
                damping = max(damping, 1e-12) * 4
            if not improved:
                break
            gain = float(new @ new) / cost
            state, e, J, cost = tried, new, slope, float(new @ new)
            damping = max(damping / 4, 1e-14)
            stalled = stalled + 1 if gain > 1 - STALLED_RTOL else 0
            if stalled == STALLED_STEPS:
                break
        return state, float(np.abs(e).max(initial=0.0))


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the smallest rotation vector that turns the unit vector a to b."""
    c = np.cross(a, b)
    s = float(np.linalg.norm(c))
    if s < 1e-300:
        return np.zeros(3) if a @ b > 0 else np.pi * frame_axes(a)[:, 0]
    return c / s * np.arctan2(s, a @ b)


def _size(model: CompiledModel, loops: Sequence[Loop]) -> float:
    """Return the characteristic length of the tree and its loops."""
    places = [end.place[:3, 3] for loop in loops for end in (loop.first, loop.second)]
    extent = float(np.ptp(places, axis=0).max()) if places else 0.0
    return max(model.length, extent) if model.length != 1.0 or not extent else extent


def closed_state(
    model: CompiledModel,
    loops: Sequence[Loop],
    couplings: Sequence[tuple[str, dict[str, float], float]],
    limits: Mapping[str, tuple[float, float]],
    starts: Sequence[Mapping[str, Any]],
    first: Mapping[str, Any] | None,
    source: Source,
) -> Assembly:
    """Find the closed configuration next to the zero of a file.

    Parameters
    ----------
    model : CompiledModel
        The tree, described at the zero of the file.
    loops, couplings : sequences
        What must be closed. A coupling is a name, the coefficients of joints, and the value of their sum.
    limits : dict of str to (lower, upper)
        Limits of joints with one coordinate.
    starts : sequence of dict
        Values of joints to start from after the zero.
    first : dict, optional
        Values to start from before the zero.
    source : Source
        The file, for messages.

    Raises
    ------
    ModelFileError
        If no start closes the loops; it has the residual (`left`) and the name of the `loop`.
    """
    closing = _Closing(model, loops, couplings)
    zero = model.reference_state[0]
    opening, _ = closing.worst(zero)
    begin = zero if first is None else _at(closing, zero, first)
    found = _nearest(closing, begin, limits, ({}, *starts) if first is not None else starts)
    made = Assembly(found[0])
    left, worst = closing.worst(made.state)
    gap = _open_loops(closing, zero)
    if left > ROUNDED_RTOL:
        raise ModelFileError(
            f"{source.path or source.name}: loop '{closing.names[worst]}' does not close, {left:.2g} of a "
            f"length of {closing.length:.3g} remains, from the zero and sampled starts. "
            "Correct its frames, or give `start=` closer to a closed configuration.",
            path=source.path,
            key="",
            loop=closing.names[worst],
            left=left,
        )
    if opening > CLOSED_RTOL and first is None:
        made.remarks.append(f"loops were open at the zero of the file: {gap}; they were closed {found[1]}.")
    _, J, _ = closing.residual(made.state)
    s = np.linalg.svd(J, compute_uv=False)
    rounded = s[(s > ROUNDED_RANK[0] * s[0]) & (s < ROUNDED_RANK[1] * s[0])] / s[0] if len(s) else s
    need = max(left if left > CLOSED_RTOL else 0.0, float(rounded.max(initial=0.0)))
    if need:
        made.tolerance = TOLERANCE_FACTOR * need
        made.remarks.append(
            f"loops contradict themselves by {need:.1g} of a length of {closing.length:.3g}, most at "
            f"'{closing.names[worst]}'; `closure_tolerance` is {made.tolerance:.1g}."
        )
    return made


def _open_loops(closing: _Closing, state: np.ndarray) -> str:
    """Return the loops that are open most, with their residuals, in words."""
    e, _, owner = closing.residual(state)
    sizes = {name: float(np.abs(e[owner == k]).max(initial=0.0)) for k, name in enumerate(closing.names)}
    wide = sorted((x for x in sizes.items() if x[1] > CLOSED_RTOL), key=lambda x: -x[1])
    words = [f"'{name}' by {size * closing.length:.3g} m or {size:.3g} rad" for name, size in wide[:3]]
    return ", ".join(words) + (f" and {len(wide) - 3} more" if len(wide) > 3 else "")


def _nearest(
    closing: _Closing,
    zero: np.ndarray,
    limits: Mapping[str, tuple[float, float]],
    starts: Sequence[Mapping[str, Any]],
) -> tuple[np.ndarray, str]:
    """Return the first closed state within limits from zero and the starts, else the nearest of samples."""
    tree = closing.tree
    single = {name: n for name, n in tree.column.items() if name in limits}
    lower, upper = np.full(tree.size, -np.inf), np.full(tree.size, np.inf)
    for name, n in single.items():
        lower[n], upper[n] = limits[name]

    def beyond(state: np.ndarray) -> float:
        phi = closing._columns(state)
        return float(np.maximum(np.maximum(lower - phi, phi - upper) / closing.scale, 0.0).max(initial=0.0))

    best: tuple[float, float, np.ndarray, str] | None = None
    rough: tuple[float, np.ndarray] | None = None
    closed = 0
    generator = np.random.default_rng(0)
    base = closing._columns(zero)
    low = np.where(np.isfinite(lower), lower, base - np.where(closing.scale == 1.0, np.pi, closing.length))
    high = np.where(np.isfinite(upper), upper, base + np.where(closing.scale == 1.0, np.pi, closing.length))
    if closing.worst(zero)[0] <= CLOSED_RTOL:
        return zero, "there"
    for k in range(1 + len(starts) + SAMPLED_STARTS):
        if k > len(starts) and closing.evaluations > EVALUATIONS_MAX:
            break
        where, state = "from there", zero
        if k and k <= len(starts):
            where, state = "from a start that was given", _at(closing, zero, starts[k - 1])
        elif k:
            where = f"from start {k - len(starts)} of those sampled within the limits"
            phi = low + (high - low) * generator.random(tree.size)
            for turn, _ in tree.ball_slices:
                phi[turn] = generator.normal(size=3)
            state = columns_to_states(tree, phi[None])[0]
        state, left = closing.solve(state)
        if rough is None or left < rough[0]:
            rough = left, state
        if left <= (DIGITS_RTOL if k <= len(starts) else ROUNDED_RTOL):
            out = beyond(state)
            far = float(distance(tree, zero[None], state[None], closing.scale).max(initial=0.0))
            if out <= LIMIT_ATOL and k <= len(starts):
                return state, where
            closed += k > len(starts)
            if best is None or (max(out, LIMIT_ATOL), far) < best[:2]:
                best = max(out, LIMIT_ATOL), far, state, where
        if closed == SAMPLES_ENOUGH:
            break
    if best is not None:
        return best[2], best[3]
    assert rough is not None  # for the type checker: zero is always tried
    return rough[1], "as far as they go"


def _at(closing: _Closing, zero: np.ndarray, values: Mapping[str, Any]) -> np.ndarray:
    """Return the state with some values of joints.

    Raises
    ------
    InputError
        For an unknown joint, or a value that is no finite number.
    """
    tree = closing.tree
    phi = closing._columns(zero)
    state = zero.copy()
    columns, entries = tree.single_columns
    for name, value in values.items():
        n = tree.column.get(name)
        if n is None or tree.cols[n, KIND] > PRISMATIC:
            raise unknown("joint", name, tree.description.name, list(tree.column))
        number = numbers(name, value)
        if number.ndim or not np.isfinite(number):
            raise InputError(
                f"`start['{name}']` must be a finite number, got {short_repr(value)}.", name=name
            )
        phi[n] = number
    state[entries] = phi[columns]
    return state
