"""Loops of rounded dimensions: which of their conditions are redundant, and by how much these miss.

Planar and other overconstrained loops move because some of their conditions follow from the others. In
dimensions of a file with a few digits they almost do: their singular values are as small as the rounding, all
along the motion. The loops move if the weakest conditions, beyond a gap of the singular values, are left out.
Their residuals are measured along the motion that the others allow. Where these exceed what rounding makes,
as next to a dead centre or at an infinitesimal motion, the conditions are not redundant. If the tilt of one
axis explains them, that axis is wrong, and not rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kic.errors import either
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import all_closure_rows
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.kinematics.tree import Tree, frame_axes
from kic.numerics.arrays import stepping
from kic.numerics.gauss_newton import gauss_newton
from kic.numerics.linalg import pivoted_qr, unit
from kic.numerics.tolerances import EPS
from kic.transfer.closure import PINV_RTOL, Closure
from kic.transfer.rank import independent_rows

# singular values and residuals, relative to the largest and to the size of the loops: of conditions that hold
# by themselves, of dimensions with 16 digits, and the largest of rounded ones, as of an angle written 3.14
ZERO_SHARE, EXACT_SHARE, ROUNDED_SHARE_MAX = 4 * EPS, 64 * EPS, 8e-3
# share of the residual of closed configurations that exact conditions may miss, and residual of steps
EXACT_FACTOR, STEP_RESIDUAL = 0.1, 1e-14
# the largest of rounded places, and of loops that move without: their conditions may be meant
MOVING_SHARE_MAX = 1e-3
# ratio of successive singular values between which a rank is sought: the smallest rank, and others
GAP_MIN, FURTHER_GAP_MIN = 10.0, 100.0
# margin of the tolerance over what redundant conditions miss
TOLERANCE_FACTOR = 10.0
# steps along the motion: their length (radians, shares of the characteristic length) and number, and the
# motions in which they begin, both ways
STEP_LENGTH, STEPS, WAYS = 0.1, 32, 4
# a step ends where a direction has turned so far out of the motions, or the conditions are so much closer to
# dependence, as shares of what they were
DIRECTION_SHARE_MIN, INDEPENDENCE_SHARE_MIN = 0.3, 0.3
# distance along the motion that shows that conditions are redundant
PROVED_DISTANCE_MIN = 0.1
# the largest residuals along it that a tilt may explain, the share of them that it may leave, also compared
# with the tilt that explains them best, and the largest tilt of rounding
TILTED_SHARE_MAX, TILT_MISFIT_MAX, TILT_RATIO_MAX, ROUNDED_TILT_MAX = 0.1, 0.1, 5.0, 3e-3
# complex step of an axis, joints with one axis, and singular values of tilts that change nothing
AXIS_STEP, AXIAL_TYPES, TILT_RTOL = 1e-30, ("revolute", "prismatic", "cylindrical"), 1e-3


@dataclass(frozen=True)
class RoundedLoops:
    """Loops from which conditions are left out that follow from the others but for rounding.

    Attributes
    ----------
    parts : tuple of str
        Parts that impose these conditions.
    length, angle : float
        By how much the conditions miss along the motion: a length, and radians.
    share : float
        Largest residual of them, and contribution beyond the others, in the scales of the closure.
    rank : int
        Number of the other conditions that are independent.
    """

    parts: tuple[str, ...]
    length: float
    angle: float
    share: float
    rank: int


@dataclass(frozen=True)
class TiltedAxis:
    """Axis that, turned, makes conditions of its loops redundant.

    Attributes
    ----------
    joint : str
        The joint.
    angle : float
        Angle by which the axis is to turn (rad).
    axis : (3,) ndarray
        Where it would be, in the world.
    """

    joint: str
    angle: float
    axis: np.ndarray


@dataclass(frozen=True)
class MotionBeyond:
    """Account of the conditions beyond a rank along the motion that the others allow.

    Attributes
    ----------
    states : (n, S) ndarray
        Configurations along it.
    missed : (R,) ndarray
        Largest residual of each condition.
    share : float
        Largest residual, and contribution beyond the others.
    kept : float
        Smallest singular value of the others.
    distance : float
        How far it goes: radians, shares of the characteristic length.
    """

    states: np.ndarray
    missed: np.ndarray
    share: float
    kept: float
    distance: float


def rounded_loops(
    closure: Closure, state: np.ndarray
) -> tuple[float, list[RoundedLoops], list[list[TiltedAxis]]]:
    """Return the tolerance with which loops of rounded dimensions move, these loops, and wrong axes.

    Loops that share no joint are judged one by one. The tolerance is 0 if there are none, or if none
    separates the conditions of all loops that are redundant from those that are not. One axis of each list
    is wrong. `closure` has the conditions alone, without chosen rows; the state is (1, S).
    """
    if closure.transfer.tree.open or not closure.transfer.owners:
        return 0.0, [], []
    G = closure.rows(state)[1][0]
    found, tilts, total = list[RoundedLoops](), list[list[TiltedAxis]](), 0
    for own, free in closure.blocks:
        made, tilted = _rounded(closure, state, own, free)
        tilts += [tilted] * bool(tilted)
        if made is not None:
            found.append(made)
        total += made.rank if made is not None else len(independent_rows(G[own], 0.0))
    tolerance = TOLERANCE_FACTOR * max((loops.share for loops in found), default=0.0)
    if len(independent_rows(G, tolerance)) != total:
        return 0.0, [], tilts
    return tolerance, found, tilts


def _rounded(
    closure: Closure, state: np.ndarray, own: np.ndarray, free: np.ndarray
) -> tuple[RoundedLoops | None, list[TiltedAxis]]:
    """Return the conditions that some loops leave out to move, None if there are none, and wrong axes.

    `own` are the rows of the loops, and `free` the columns that move them.
    """
    sigma = np.linalg.svd(closure.rows(state)[1][0][np.ix_(own, free)], compute_uv=False)
    if not sigma.size or not sigma[0] > EXACT_SHARE:
        return None, []
    sigma = np.append(sigma / max(sigma[0], 1.0), 0.0)
    least, strong, certain = (
        int((sigma > share).sum()) for share in (TILTED_SHARE_MAX, ROUNDED_SHARE_MAX, EXACT_SHARE)
    )
    most = ROUNDED_SHARE_MAX if certain == len(free) else MOVING_SHARE_MAX
    wrong = list[TiltedAxis]()
    for rank in range(least, min(certain + 1, len(own), len(free))):
        if sigma[rank] < ZERO_SHARE and rank <= strong:
            break
        weakest = sigma[rank - 1] if rank else 1.0
        if sigma[rank] * (GAP_MIN if rank <= strong else FURTHER_GAP_MIN) > weakest:
            continue
        motion = motion_beyond(closure, state, rank, own, free, TILTED_SHARE_MAX)
        if motion.distance < PROVED_DISTANCE_MIN:
            continue
        tilts, is_rounding = list[TiltedAxis](), True
        if motion.share > MOVING_SHARE_MAX:
            tilts, is_rounding = _tilts(closure, motion, rank, own, free)
        if motion.share < most and is_rounding:
            exact = motion.share <= EXACT_FACTOR * closure.limit
            return None if exact else _described(closure, state, motion, rank, own, free), wrong
        wrong = wrong or tilts
    return None, wrong


def _described(
    closure: Closure, state: np.ndarray, motion: MotionBeyond, rank: int, own: np.ndarray, free: np.ndarray
) -> RoundedLoops:
    """Return by how much the rows of some loops miss along a motion."""
    t = closure.transfer
    left = pivoted_qr(closure.rows(state)[1][0][np.ix_(own, free)].T)[1][rank:]
    rows, missed = t.system.rows, motion.missed
    kinds = rows.items[rows.item_of[t.system.picked[own]], lay.ITEM]
    angular = ~np.isin(kinds, (lay.POINT, lay.DOT2, lay.DISTANCE))
    length = (missed * t.scale[own])[~angular].max(initial=0.0)
    parts = tuple(dict.fromkeys(t.owners[row] for row in own[left]))
    return RoundedLoops(parts, float(length), float(missed[angular].max(initial=0.0)), motion.share, rank)


def motion_beyond(
    closure: Closure,
    state: np.ndarray,
    rank: int,
    own: np.ndarray | slice = slice(None),
    free: np.ndarray | slice = slice(None),
    most: float = 1.0,
) -> MotionBeyond:
    """Follow the motion that the `rank` strongest conditions allow, both ways, and measure the others.

    Parameters
    ----------
    closure : Closure
        The conditions alone, without chosen rows.
    state : (1, S)
        The closed state.
    rank : int
        Number of conditions that hold. They are chosen anew in each step.
    own, free : (R,) or (M,) int, optional
        Rows that are conditions, and columns that move.
    most : float, optional
        Residual or contribution of the others at which the motion ends.

    Returns
    -------
    MotionBeyond
    """
    t = closure.transfer

    def rows(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, G = closure.rows(states)
        return values[:, own], G[:, own][:, :, free]

    def moved(states: np.ndarray, steps: np.ndarray) -> np.ndarray:
        every = np.zeros((len(steps), t.tree.size))
        every[:, free] = steps
        return closure.moved(states, every)

    def solved(states: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, G = rows(states)
        return values * used[members], G * used[members][:, :, None]

    G = rows(state)[1]
    size = G.shape[2] - rank
    ways = np.random.default_rng(0).normal(size=(1 if size == 1 else WAYS, G.shape[2]))
    ways = np.concatenate([ways, -ways])
    states, passed = state.repeat(len(ways), axis=0), [state]
    missed, share, least, distance = np.zeros(G.shape[1]), 0.0, np.inf, 0.0
    for step in range(STEPS):
        values, G = rows(states)
        used = np.zeros(values.shape)
        for k, one in enumerate(G):
            used[k, pivoted_qr(one.T)[1][:rank]] = 1.0
        sigma, V = np.linalg.svd(G * used[:, :, None])[1:]
        N = V[:, rank:]
        weakest = sigma[:, rank - 1] if rank else np.ones(len(states))
        others = np.linalg.norm(G @ np.swapaxes(N, 1, 2), axis=2).max(axis=1)
        along = np.einsum("bki,bk->bi", N, np.einsum("bki,bi->bk", N, ways))
        length = np.linalg.norm(along, axis=1)
        if not step:
            first = weakest[0]
        # conditions meet other motions where they come close to dependence
        going = (weakest > INDEPENDENCE_SHARE_MIN * first) & (weakest > 10 * others)
        going &= length > DIRECTION_SHARE_MIN * np.linalg.norm(ways, axis=1) if step else length > 0
        if not going.any():
            break
        missed = np.maximum(missed, np.abs(values[going]).max(axis=0))
        share = max(share, np.abs(values[going]).max(), others[going].max())
        least = min(least, weakest[going].min())
        if share > most:
            break
        distance = step * STEP_LENGTH
        passed.append(states[going])
        ways = along[going] / np.abs(along[going]).max(axis=1, keepdims=True)
        used, ahead = used[going], moved(states[going], STEP_LENGTH * ways)
        states, residual = gauss_newton(
            solved, moved, ahead, rtol=PINV_RTOL, step_max=STEP_LENGTH, enough=STEP_RESIDUAL
        )
        closed = residual <= closure.limit
        states, ways = states[closed], ways[closed]
        if not closed.any():
            break
    return MotionBeyond(np.concatenate(passed), missed, float(share), float(least), distance)


def tilt_sentence(tilts: Sequence[TiltedAxis]) -> str:
    """Return a sentence on axes that explain what conditions miss; '' if there are none."""
    turns = []
    for tilt in tilts:
        axis = ", ".join(f"{x:.5g}" for x in tilt.axis + 0.0)
        turns.append(f"that of '{tilt.joint}' by {tilt.angle:.2g} rad to ({axis})")
    return f"Turning one axis makes a condition of its loops redundant: {either(turns)}." if turns else ""


def _tilts(
    closure: Closure, motion: MotionBeyond, rank: int, own: np.ndarray, free: np.ndarray
) -> tuple[list[TiltedAxis], bool]:
    """Return the axes whose tilt explains what rows miss along a motion, the best first.

    Also return True if rounding explains it: small tilts of all axes leave no more than rounded places make.
    Motions of the columns explain no part of what is left of a row beyond the rank.
    """
    t, states = closure.transfer, motion.states
    description, scale = t.tree.description, t.scale
    values, G = closure.rows(states)
    beyond = np.swapaxes(np.linalg.svd(G[:, own][:, :, free])[0][:, :, rank:], 1, 2)
    missed = np.einsum("brp,bp->br", beyond, values[:, own]).ravel()
    tied = {t.owners[row] for row in own} | {t.tree.columns[k].partition(".")[0] for k in free}
    made, every = list[tuple[float, TiltedAxis]](), [np.zeros((missed.size, 0))]
    with stepping():
        for joint in description.joints:
            if joint.name not in tied or joint.type not in AXIAL_TYPES:
                continue
            axis = unit(joint.axis)
            across = frame_axes(axis)[:, :2]
            changes = []
            for u in across.T:
                tilted = replace(joint, axis=tuple(axis + 1j * AXIS_STEP * u))
                joints = tuple(tilted if other is joint else other for other in description.joints)
                tree = Tree(replace(description, joints=joints))
                change = _closure_values(tree, states.astype(complex)).imag / AXIS_STEP / scale
                changes.append(np.einsum("brp,bp->br", beyond, change[:, own]).ravel())
            every.append(np.stack(changes, axis=1))
            x, left = fitted(every[-1], missed)
            if left < TILT_MISFIT_MAX:
                made.append((left, TiltedAxis(joint.name, float(np.linalg.norm(x)), unit(axis + across @ x))))
    made.sort(key=lambda pair: pair[0])
    tilts = [tilt for left, tilt in made if left < TILT_RATIO_MAX * made[0][0]]
    A = np.concatenate(every, axis=1)
    x = fitted(A, missed)[0]
    turns = [float(np.linalg.norm(one)) for one in x.reshape(-1, 2)]
    turns.append(min((tilt.angle for tilt in tilts), default=0.0))
    is_rounding = max(turns) < ROUNDED_TILT_MAX and np.abs(missed + A @ x).max() < MOVING_SHARE_MAX
    return tilts, bool(is_rounding)


def fitted(A: np.ndarray, missed: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the smallest x that fits A x = -missed best, and the share of `missed` that is left."""
    x, size = np.linalg.lstsq(A, -missed, rcond=TILT_RTOL)[0], np.linalg.norm(missed)
    return x, float(np.linalg.norm(missed + A @ x) / size) if size else 1.0


def _closure_values(tree: Tree, states: np.ndarray) -> np.ndarray:
    """Return the closure rows (B, R) of a tree at states (B, S), in their units."""
    items, _, offsets = all_closure_rows(tree)
    rows = replace(plain_rows(tree, items), offsets=offsets)
    return rows.complete(output_query(tree, rows, 1).arrays(states)[0].copy())
