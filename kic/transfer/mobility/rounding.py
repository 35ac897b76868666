"""Loops of rounded dimensions: their redundant conditions, and the residuals of these.

Planar and other overconstrained loops move because some of their conditions follow from the others. In
dimensions of a few digits they follow only approximately: their singular values are as small as the rounding,
all along the motion. The loops move if the weakest conditions, beyond a gap of the singular values, are left
out. Their residuals are measured along the motion that the other conditions allow. Residuals larger than
rounding, as near a dead centre or at an infinitesimal motion, show that the conditions are not redundant. If
the tilt of one axis explains the residuals, or the rotation of one frame with all below, that axis or frame
is wrong, not rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kic.description.couplings import Coupling
from kic.description.parts import Body, Joint
from kic.description.validation import part_of
from kic.errors import either
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import all_closure_rows
from kic.kinematics.items import LENGTH
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.kinematics.tree import Tree, frame_axes
from kic.numerics.gauss_newton import gauss_newton
from kic.numerics.linalg import pivoted_qr, unit
from kic.numerics.tolerances import EPS
from kic.transfer.closure import PINV_RTOL, Closure
from kic.transfer.rank import independent_rows

# singular values and residuals, relative to the largest and to the size of the loops: for conditions that
# hold identically, for dimensions with 16 digits, and the maximum for rounded ones, such as an angle 3.14
ZERO_SHARE, EXACT_SHARE, ROUNDED_SHARE_MAX = 4 * EPS, 64 * EPS, 8e-3
# largest residual of exact conditions, as a share of that of closed configurations, and residual of steps
EXACT_FACTOR, STEP_RESIDUAL = 0.1, 1e-14
# the maximum for rounded positions, and for loops that move with all conditions, which may be intended
MOVING_SHARE_MAX = 1e-3
# smallest ratio of successive singular values at a rank: up to the number of strong conditions, and above
GAP_MIN, FURTHER_GAP_MIN = 10.0, 100.0
# ratio of the tolerance to the residual of redundant conditions
TOLERANCE_FACTOR = 10.0
# steps along the motion: their length (radians, shares of the characteristic length), their number, and the
# number of initial directions, each with its opposite
STEP_LENGTH, STEPS, WAYS = 0.1, 32, 4
# smallest share of a direction that is still a motion, and of the initial smallest singular value of the
# conditions, at which steps continue
DIRECTION_SHARE_MIN, INDEPENDENCE_SHARE_MIN = 0.3, 0.3
# distance along the motion that shows that conditions are redundant
PROVED_DISTANCE_MIN = 0.1
# the largest residual that a turn may explain, the largest share of it that may remain, the largest ratio of
# the remainder to the best and of the angle to the smallest, and the largest tilt due to rounding
TILTED_SHARE_MAX, TILT_MISFIT_MAX, TILT_RATIO_MAX, ROUNDED_TILT_MAX = 0.1, 0.15, 5.0, 3e-3
# joints with one axis, and share of singular values below which tilts have no effect
AXIAL_TYPES, TILT_RTOL = ("revolute", "prismatic", "cylindrical"), 1e-3


@dataclass(frozen=True)
class RoundedLoops:
    """Loops with conditions that are redundant except for rounding, and are left out.

    Attributes
    ----------
    parts : tuple of str
        Parts that impose these conditions.
    length, angle : float
        Largest residuals of the conditions along the motion: a length, and radians.
    share : float
        Larger of their scaled residual and their contribution beyond the other conditions.
    rank : int
        Number of independent conditions that are kept.
    """

    parts: tuple[str, ...]
    length: float
    angle: float
    share: float
    rank: int


@dataclass(frozen=True)
class Turn:
    """Rotation of an axis or frame that makes conditions of its loops redundant.

    Attributes
    ----------
    joint : str
        The joint.
    angle : float
        Angle of the rotation (rad).
    axis : (3,) ndarray, or None
        Corrected axis in the reference configuration; None if the frame turns with all below.
    """

    joint: str
    angle: float
    axis: np.ndarray | None


@dataclass(frozen=True)
class MotionBeyond:
    """Account of the conditions beyond a rank along the motion that the other conditions allow.

    Attributes
    ----------
    states : (n, S) ndarray
        Configurations along the motion.
    missed : (R,) ndarray
        Largest residual of each condition.
    share : float
        Larger of the largest residual and the largest contribution beyond the other conditions.
    kept : float
        Smallest singular value of the other conditions.
    distance : float
        Length of the motion: radians, shares of the characteristic length.
    """

    states: np.ndarray
    missed: np.ndarray
    share: float
    kept: float
    distance: float


def rounded_loops(closure: Closure, state: np.ndarray) -> tuple[float, list[RoundedLoops], list[list[Turn]]]:
    """Return the tolerance with which loops of rounded dimensions move, these loops, and turns.

    Loops that share no joint are judged one by one. The tolerance is 0 if there are no such loops, or if no
    tolerance separates redundant from other conditions in all loops. In each list of turns, one axis or frame
    is wrong.
    `closure` has the conditions alone, without chosen rows; the state is (1, S).
    """
    if closure.transfer.tree.open or not closure.transfer.owners:
        return 0.0, [], []
    G = closure.rows(state)[1][0]
    found, tilts, total = list[RoundedLoops](), list[list[Turn]](), 0
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
) -> tuple[RoundedLoops | None, list[Turn]]:
    """Return the account of some loops of rounded dimensions, or None, and turns of wrong axes or frames.

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
    wrong = list[Turn]()
    for rank in range(least, min(certain + 1, len(own), len(free))):
        if sigma[rank] < ZERO_SHARE and rank <= strong:
            break
        weakest = sigma[rank - 1] if rank else 1.0
        if sigma[rank] * (GAP_MIN if rank <= strong else FURTHER_GAP_MIN) > weakest:
            continue
        motion = motion_beyond(closure, state, rank, own, free, TILTED_SHARE_MAX)
        if motion.distance < PROVED_DISTANCE_MIN:
            continue
        tilts, is_rounding = list[Turn](), True
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
    """Return the account of loops, with the largest residuals of their rows `own` along a motion."""
    t = closure.transfer
    left = pivoted_qr(closure.rows(state)[1][0][np.ix_(own, free)].T)[1][rank:]
    rows, missed = t.system.rows, motion.missed
    angular = ~LENGTH[rows.kinds[rows.item_of[t.system.picked[own]]]]
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
    """Follow the motion that the `rank` strongest conditions allow, in both directions; measure the others.

    Parameters
    ----------
    closure : Closure
        Position problem of the conditions, without chosen rows.
    state : (1, S)
        The closed state.
    rank : int
        Number of conditions that are enforced, chosen again in each step.
    own, free : (R,) or (M,) int, optional
        Indices of the conditions, and of the columns that move.
    most : float, optional
        Residual or contribution of the other conditions at which the motion ends.

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
        # nearly dependent conditions indicate a bifurcation
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


def tilt_sentence(turns: Sequence[Turn]) -> str:
    """Return a sentence on axes and frames that explain residuals of conditions; '' without turns."""
    words = []
    for turn in turns:
        of = f"of '{turn.joint}' by {turn.angle:.2g} rad"
        if turn.axis is None:
            words.append(f"the frame {of}")
        else:
            words.append(f"the axis {of} to ({', '.join(f'{x:.5g}' for x in np.round(turn.axis, 6) + 0.0)})")
    return f"Turning {either(words)} makes a condition of its loops redundant." if words else ""


def _tilts(
    closure: Closure, motion: MotionBeyond, rank: int, own: np.ndarray, free: np.ndarray
) -> tuple[list[Turn], bool]:
    """Return the axes and frames whose turn explains the residuals of rows along a motion, the best first.

    Also return True if rounding explains them: small tilts of all axes leave residuals of rounded positions.
    Residuals are projected on the directions that motions of the columns cannot change.
    """
    t = closure.transfer
    values, G = closure.rows(motion.states)
    beyond = np.swapaxes(np.linalg.svd(G[:, own][:, :, free])[0][:, :, rank:], 1, 2)
    missed = np.einsum("brp,bp->br", beyond, values[:, own]).ravel()
    tied = {t.owners[row] for row in own} | {part_of(t.tree.columns[k]) for k in free}
    joints = [j for j in t.tree.description.joints if j.name in tied and j.type in AXIAL_TYPES]
    tree, states, turned = with_turning_frames(t.tree, motion.states, joints)
    rows = plain_rows(tree, all_closure_rows(tree)[0])
    changes = output_query(tree, rows, 1).arrays(states)[1][:, t.system.closing_rows] / t.scale[:, None]
    changes = (beyond @ changes[:, own]).reshape(missed.size, -1)
    made, every = list[tuple[float, Turn]](), [np.zeros((missed.size, 0))]
    for joint, columns in turned:
        axis = unit(joint.axis)
        across, (first, second) = frame_axes(axis)[:, :2], (changes[:, one] for one in columns)
        every.append((first - second) @ across)
        # a turn of a hinge about its axis is its motion
        fits = [(every[-1], False), (first if joint.type == "prismatic" else first @ across, True)]
        for A, is_frame in fits if joint.at else fits[:1]:
            x, left = fitted(A, missed)
            if left < TILT_MISFIT_MAX:
                to = None if is_frame else unit(axis + np.cross(across @ x, axis))
                made.append((left, Turn(joint.name, float(np.linalg.norm(x)), to)))
    made.sort(key=lambda pair: pair[0])
    least = min((turn.angle for _, turn in made), default=0.0)
    found = [
        turn
        for left, turn in made
        if left < TILT_RATIO_MAX * made[0][0] and turn.angle < TILT_RATIO_MAX * least
    ]
    A = np.concatenate(every, axis=1)
    x = fitted(A, missed)[0]
    angles = [float(np.linalg.norm(one)) for one in x.reshape(-1, 2)]
    angles.append(min((turn.angle for turn in found), default=0.0))
    is_rounding = max(angles) < ROUNDED_TILT_MAX and np.abs(missed + A @ x).max() < MOVING_SHARE_MAX
    return found, bool(is_rounding)


def with_turning_frames(
    tree: Tree, states: np.ndarray, joints: Iterable[Joint]
) -> tuple[Tree, np.ndarray, list[tuple[Joint, np.ndarray]]]:
    """Return a tree with ball joints between joints and their bodies, and its states.

    The first ball joint rotates the frame of a joint with all below. Only the axis rotates if the second ball
    joint has the opposite rotation. Joints that `tree` does not have stay open.

    Parameters
    ----------
    tree : Tree
        Tree of the mechanism, whose columns are kept.
    states : (B, S)
        States of `tree`. The ball joints are at zero in the new states.
    joints : iterable of Joint
        Joints whose frames turn.

    Returns
    -------
    tree : Tree
    states : (B, S) ndarray
    turned : list of (Joint, ndarray)
        The joints between the new bodies, and the columns (2, 3) of their ball joints.
    """
    description, balls, turned = tree.description, list[Joint](), list[Joint]()
    mark = "turn"
    while any(name.startswith(mark) for name in description._parts):
        mark += "'"
    for joint in joints:
        a, b = joint.bodies
        ends = f"{mark} before {joint.name}", f"{mark} after {joint.name}"
        for end, pair in zip(ends, ((a, ends[0]), (ends[1], b)), strict=True):
            balls.append(Joint(f"{mark} of {end}", "spherical", pair, joint.at or (0.0, 0.0, 0.0)))
        turned.append(replace(joint, bodies=ends))
    bodies = [Body(end) for joint in turned for end in joint.bodies]
    instead = {joint.name: joint for joint in turned}
    # the joints of gears and belts now have no common body
    terms = {name: zip(*pairs, strict=True) for name, pairs in description._terms.items()}
    couplings = tuple(Coupling(name, joints, ratios=ratios) for name, (joints, ratios) in terms.items())
    whole = Tree(
        replace(
            description,
            bodies=(*description.bodies, *bodies),
            joints=(*(instead.get(joint.name, joint) for joint in description.joints), *balls),
            couplings=couplings,
            coordinates=(*tree.columns, *(name for ball in balls for name in ball.components)),
        )
    )
    column = whole.column
    made = whole.reference_state.repeat(len(states), axis=0)
    for name, (_, kind, _, entry, _) in zip(tree.columns, tree.cols, strict=True):
        if entry >= 0:
            there, width = whole.cols[column[name], lay.STATE], 4 if kind == lay.BALL else 1
            made[:, there : there + width] = states[:, entry : entry + width]
    columns = np.reshape([column[name] for ball in balls for name in ball.components], (-1, 2, 3))
    return whole, made, list(zip(turned, columns, strict=True))


def fitted(A: np.ndarray, missed: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the smallest least-squares solution of A x = -missed, and the share of `missed` that remains."""
    x, size = np.linalg.lstsq(A, -missed, rcond=TILT_RTOL)[0], np.linalg.norm(missed)
    return x, float(np.linalg.norm(missed + A @ x) / size) if size else 1.0
