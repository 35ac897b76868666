"""Entry: closing near postures by Newton on the square system, where it is certain to stay on its branch.

Certain means: short steps, each a small part of the one before it (the contraction by which Newton and
Kantorovich know that a solution belongs to its start), a determinant that keeps its sign, and at the end all
closure rows, those that were not used too. Anything else is left to those who look more closely.
"""

from kic.kernels.compiled import entry, helper
from kic.kernels.frames import frames, motion
from kic.kernels.functions import root
from kic.kernels.gradients import gradient
from kic.kernels.layout import (
    BALL,
    COLUMN_SCALE,
    COLUMNS,
    FRAME_WIDTH,
    GROUP,
    HEADER,
    HEIGHT,
    ITEMS,
    KIND,
    LEFT_OUT,
    SCALE,
    STATE,
    SYSTEM,
    section,
)
from kic.kernels.lu import factor, solve
from kic.kernels.ranges import clear_range
from kic.kernels.transfer import GOOD_PIVOT, scaled_system

STEPS, LONGEST, CONTRACTION = 10, 0.2, 0.25
# what is left, relative to the characteristic length: as good as it gets, and good enough where no step helps
PERFECT, CLOSED = 1e-15, 1e-13


@helper
def closing_scratch(plan):
    """Numbers of scratch."""
    mobile, height = plan[0, COLUMNS], plan[2, HEIGHT]
    return mobile * FRAME_WIDTH + height * (1 + mobile) + mobile * (1 + mobile)


@helper
def miss(vectors, choice, goal, b, value, mobile, left_out, R):
    """What is left of the rows in use, into R, and the worst of all rows; last the largest value."""
    worst, large, strange = 0.0, 1.0, 0.0
    for i in range(mobile + left_out):
        if i < mobile:
            row, item = choice[0, i], choice[2, i]
        else:
            row, item = choice[3, i - mobile], choice[4, i - mobile]
        left = (goal[b, row] - value[row]) / vectors[item, SCALE]
        if i < mobile:
            R[i] = left
        worst = max(worst, abs(left))
        strange += 0 * left  # `max` may pass over what is no number
        large = max(large, abs(value[row] / vectors[item, SCALE]))
    return worst + strange, large


@helper
def sign_of(W, pivots):
    """Sign of the determinant of a factored matrix."""
    sign = 1
    for k in range(W.shape[0]):
        if W[k, k] < 0:
            sign = -sign
        if pivots[k] != k:
            sign = -sign
    return sign


@helper
def move(cols, choice, rest, R, states, b):
    """Move a state by a step R of its columns, in the order of elimination."""
    for j in range(cols.shape[0]):
        n = choice[1, j]
        k = cols[n, STATE]
        if cols[n, KIND] != BALL:
            states[b, k] += rest[n, COLUMN_SCALE] * R[j]
        else:
            # a small turn about one axis of the first body; the other axes follow in their turn
            k, c = cols[cols[n, GROUP], STATE], n - cols[n, GROUP]
            h = R[j] / 2
            w, x, y, z = states[b, k], states[b, k + 1], states[b, k + 2], states[b, k + 3]
            if c == 0:
                w, x, y, z = w - h * x, x + h * w, y - h * z, z + h * y
            elif c == 1:
                w, x, y, z = w - h * y, x + h * z, y + h * w, z - h * x
            else:
                w, x, y, z = w - h * z, x - h * y, y + h * x, z + h * w
            f = 1 / root(w * w + x * x + y * y + z * z)
            states[b, k], states[b, k + 1], states[b, k + 2], states[b, k + 3] = f * w, f * x, f * y, f * z


@entry
def closing(plan, numbers, states, goal, choice, scratch, whole, quality):
    """Move closed states (B, S) to the goal (B, rows) of all rows, in place; returns how many did not arrive.

    quality (B,) is 1 for those that did. `choice` and `whole` are as in `transfer`.
    """
    mobile, height, left_out = plan[0, COLUMNS], plan[2, HEIGHT], plan[2, LEFT_OUT]
    cols, geometry = plan[HEADER : HEADER + mobile], numbers[:mobile]
    start, stop = section(plan, ITEMS)
    items, vectors = plan[HEADER + start : HEADER + stop], numbers[start:stop]
    rest = numbers[numbers.shape[0] - 1 - mobile :]
    framed, rated = mobile * FRAME_WIDTH, mobile * FRAME_WIDTH + height * (1 + mobile)
    F = scratch[:framed].reshape(mobile, FRAME_WIDTH)
    value, g = scratch[framed : framed + height], scratch[framed + height : rated].reshape(height, mobile)
    W = scratch[rated : rated + mobile * mobile].reshape(mobile, mobile)
    R = scratch[rated + mobile * mobile : rated + mobile * (1 + mobile)]
    pivots, ends = whole[0], whole[1]
    failed = 0
    for b in range(states.shape[0]):
        quality[b] = 0
        before, size, sign = 0.0, LONGEST / CONTRACTION, 0
        for step in range(STEPS):
            motion(cols, geometry, states, b, F)
            frames(cols, geometry, F)
            clear_range(scratch, framed, height * (1 + mobile))
            for i in range(plan[2, SYSTEM]):
                gradient(cols, F, items, vectors, i, states, b, value, g)
            worst, large = miss(vectors, choice, goal, b, value, mobile, left_out, R)
            done = worst <= PERFECT * large or (worst <= CLOSED and step > 0 and worst > before / 2)
            scaled_system(mobile, vectors, choice, rest, g, W)
            if not factor(W, pivots, ends) > GOOD_PIVOT:
                break
            here = sign_of(W, pivots)
            if step > 0 and here != sign:
                break
            if done:
                quality[b] = 1
                break
            sign, before = here, worst
            solve(W, pivots, ends, R, 1)
            next_size, strange = 0.0, 0.0
            for n in range(mobile):
                next_size = max(next_size, abs(R[n]))
                strange += 0 * R[n]
            next_size += strange
            # not-a-number is never fine; near the end round-off decides about the size of steps
            if not (next_size <= CONTRACTION * size or next_size <= CLOSED):
                break
            size = next_size
            move(cols, choice, rest, R, states, b)
        if quality[b] != 1:
            failed += 1
    return failed
