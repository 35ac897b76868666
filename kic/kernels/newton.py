"""Entry: certified tracking of closed configurations by Newton's method on the square system.

The goal moves along a straight line. A step is accepted only if the solution at its end is proved to be the
continuation of the solution at its start, by a Newton–Kantorovich test along the chord c(τ) between the two.
Let A be an approximate inverse of the Jacobian J, r(τ) the residual to the goal at τ, and

    κ ≥ ‖I − A J(c(τ))‖,    η ≥ ‖A r(τ)‖,    λ ≥ ‖A J'‖

in the norm max |x_i| / w_i, with λ a bound in the ball of radius ρ about c(τ). If κ < 1, 4 λ η < (1 − κ)² and
2 η < (1 − κ) ρ, then this ball holds exactly one solution and no singular Jacobian for every τ. The solutions
form one curve from the start to the end. The test holds for steps of any length and needs no sign of a
determinant. The weights w_i, the sums of the rows of |A| over the rows of J that are not constant, serve
columns of different sensitivity.

A is the inverse at the start. At both ends of the chord J is known: κ interpolates it linearly. η is a
Hermite interpolant of r, at most a quarter of its larger slope. Lever arms bound λ and the errors of
interpolation: the k-th derivative of a row along x is at most LEVER ‖x‖₁ᵏ over the columns of the row, and
for points at most the arm of the outermost column in place of LEVER. A step that fails the test is made
shorter. Members that fail stay at the last configuration that was proved.

This Newton iteration is authoritative wherever it applies. `transfer.closure` has a second one in NumPy for
poses, angles of cut joints, rounded dimensions and singular configurations, and for starts far away.
"""

from __future__ import annotations

from kic.kernels.constraint_jacobian import gradient
from kic.kernels.frames import frames, motion
from kic.kernels.functions import root
from kic.kernels.jit import entry, helper
from kic.kernels.layout import (
    BALL,
    COLUMN_SCALE,
    COLUMNS,
    DISTANCE,
    DRAWN,
    ELIMINATED,
    FRAME_A,
    FRAME_B,
    FRAME_WIDTH,
    GOOD_PIVOT,
    GROUP,
    HEADER,
    HEIGHT,
    INPUT,
    ITEM,
    ITEMS,
    KIND,
    LEFT_OUT,
    LEVER,
    PARENT,
    POINT,
    PRISMATIC,
    ROW,
    SCALE,
    STATE,
    SYSTEM,
    UNUSED_ITEM,
    UNUSED_ROW,
    USED_ITEM,
    USED_ROW,
    WEIGHTED_POINT,
)
from kic.kernels.linear_solve import factor, solve
from kic.kernels.offsets import section
from kic.kernels.ranges import clear_range
from kic.kernels.transfer import scaled_system
from kic.kernels.vectors import cross, dot, scale, sub

# Newton steps at most; the largest first step and the largest ratio of two steps (rad, shares of the length)
STEPS_MAX, STEP_MAX, CONTRACTION_MAX = 10, 0.2, 0.25
# residuals, relative to the characteristic length: at round-off, and where no step reduces them any more
ROUNDING_RTOL, CLOSURE_RTOL = 1e-15, 1e-13
# a smaller step leaves the inverse accurate enough for the next one; after two steps with a smaller product
# the residual is below round-off
REUSED_STEP_MAX, STEP_PRODUCT_MIN = 1e-4, 1e-17
# smallest pivot, as a share of the largest, of systems that are solved here
PIVOT_MIN = 1e-6
# shortest step, as a share of the way
SHARE_MIN = 1e-6
# errors of linear and of cubic Hermite interpolation, and the largest share of a slope in the latter
LINEAR_FACTOR, HERMITE_FACTOR, SLOPE_FACTOR = 1 / 8, 1 / 384, 1 / 4
# largest growth and shrinkage of the step, and the share of the allowed slack that the next step aims at
GROWTH_MAX, SHRINK_MIN, SLACK_FACTOR = 3.0, 0.2, 0.8
# radius of the balls about a chord, as a share of its length, and the smallest one
RADIUS_SHARE, RADIUS_MIN = 0.05, 1e-6
# smallest weight of a column, as a share of the largest
WEIGHT_MIN = 1e-3
# slack below which the next step needs no sharper estimate
SLACK_SHARP_MIN = 0.04


@helper
def closing_scratch(plan):
    """Return the size of the scratch array."""
    mobile, height = plan[0, COLUMNS], plan[2, HEIGHT]
    square = mobile * mobile
    return mobile * FRAME_WIDTH + height * (4 + mobile) + 4 * square + 12 * mobile + 3 * plan[2, SYSTEM]


@helper
def residuals(vectors, choice, aim, value, mobile, left_out, R):
    """Write residuals of used rows into R; return the worst of all and of others, and the largest value."""
    worst, other, large, not_finite = 0.0, 0.0, 1.0, 0.0
    for i in range(mobile + left_out):
        if i < mobile:
            row, item = choice[USED_ROW, i], choice[USED_ITEM, i]
        else:
            row, item = choice[UNUSED_ROW, i - mobile], choice[UNUSED_ITEM, i - mobile]
        left = (aim[row] - value[row]) / vectors[item, SCALE]
        if i < mobile:
            R[i] = left
        else:
            other = max(other, abs(left))
        worst = max(worst, abs(left))
        not_finite += 0 * left  # `max` may ignore NaN
        large = max(large, abs(value[row] / vectors[item, SCALE]))
    return worst + not_finite, other, large


@helper
def move(cols, choice, rest, R, states, b):
    """Move a state by a step R of its columns, in the order of elimination."""
    for j in range(cols.shape[0]):
        n = choice[ELIMINATED, j]
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


@helper
def evaluate(cols, geometry, items, vectors, rest, choice, count, states, b, F, value, g, W):
    """Compute values and first order of all rows of the system at state b, and the scaled square system W."""
    motion(cols, geometry, states, b, F)
    frames(cols, geometry, F)
    for row in range(g.shape[0]):
        value[row] = 0
        clear_range(g[row], 0, g.shape[1])
    for i in range(count):
        gradient(cols, F, items, vectors, i, states, b, value, g)
    scaled_system(cols.shape[0], vectors, choice, rest, g, W)


@helper
def chord(cols, rest, first, states, b, d):
    """Compute the scaled step d (M,) from state `first` (1, S) to state b."""
    for n in range(cols.shape[0]):
        k = cols[n, STATE]
        if cols[n, KIND] != BALL:
            d[n] = (states[b, k] - first[0, k]) / rest[n, COLUMN_SCALE]
        elif cols[n, GROUP] == n:
            same = 0.0
            for c in range(4):
                same += first[0, k + c] * states[b, k + c]
            sign = 1 if same >= 0 else -1
            # the vector part of states times the conjugate of first, made as long as the angle
            p, u = states[b, k], (states[b, k + 1], states[b, k + 2], states[b, k + 3])
            o, v = first[0, k], (first[0, k + 1], first[0, k + 2], first[0, k + 3])
            t = sub(scale(sign * o, u), scale(sign * p, v))
            t = sub(t, scale(sign, cross(u, v)))
            s = dot(t, t)
            put_vector(d, n, 2 * (1 + s * (1 / 6 + s * (3 / 40 + s * (5 / 112 + s / 24)))), t)


@helper
def put_vector(d, n, f, v):
    """Write f v into three entries from n on."""
    for c in range(3):
        d[n + c] = f * v[c]


@helper
def turn_of(cols, d, n):
    """Return the share of column n in the 1-norm of a step; for the first of a ball joint, the whole turn."""
    if cols[n, KIND] != BALL:
        return abs(d[n])
    return root(d[n] * d[n] + d[n + 1] * d[n + 1] + d[n + 2] * d[n + 2]) if cols[n, GROUP] == n else 0.0


@helper
def weight_of(cols, w, n):
    """Return the weight of column n; for the first of a ball joint, that of all turns, 0 for the others."""
    if cols[n, KIND] != BALL:
        return w[n, 0]
    if cols[n, GROUP] != n:
        return 0.0
    return root(w[n, 0] * w[n, 0] + w[n + 1, 0] * w[n + 1, 0] + w[n + 2, 0] * w[n + 2, 0])


@helper
def arm_of(cols, g, n, row):
    """Return the speed of a point per rate of column n; for a ball joint, the distance from its centre."""
    size, last = 0.0, n
    if cols[n, KIND] == BALL:
        n, last = cols[n, GROUP], cols[n, GROUP] + 2
    for k in range(n, last + 1):
        for c in range(3):
            size += g[row + c, k] * g[row + c, k]
    return root(size / 2) if last > n else root(size)


@helper
def bounds(cols, geometry, items, vectors, value, g, first, states, b, d, w, radius, i, extra):
    """Compute bounds for item i along the chord: interpolation errors of η and κ, and its share of λ.

    `value` and `g` are those of the end of the chord. The bounds hold in balls of the `radius` about it.
    Derivatives of a point by several columns are at most the arm of the outermost. An arm changes by what
    columns farther out move the point, at most.
    """
    lever, kind, row = vectors[i, LEVER], items[i, ITEM], items[i, ROW]
    extra[3 * i] = extra[3 * i + 1] = extra[3 * i + 2] = 0
    if lever == 0:
        return
    mean = kind == WEIGHTED_POINT  # a sum with terms on any column
    last = cols.shape[0] - 1 if mean else items[i, FRAME_B]
    body, base = last, max(items[i, FRAME_A], -1)
    unit, slid, t, other = 1 / vectors[i, SCALE], 0.0, 0.0, 0.0
    while body != base:
        n = max(body, base)
        if cols[n, KIND] == PRISMATIC:
            k = cols[n, STATE]
            slid += max(abs(states[b, k] - geometry[n, DRAWN]), abs(first[0, k] - geometry[n, DRAWN]))
        if body > base:
            t += turn_of(cols, d, n)
            body = n - 1 if mean else cols[n, PARENT]
        else:
            other += turn_of(cols, d, n)
            base = cols[n, PARENT]
    lever += slid * unit
    # the two points of an item move by the columns of their own side; all else by those of both
    if kind != POINT:
        t += other
        other = 0.0
    second = third = fourth = lever
    if kind == DISTANCE:
        # |v| has derivatives by those of v, over powers of the smallest length on the way
        least = value[row] * unit - 1.5 * lever * t
        f = lever / least if least > 0 else 1e9
        second *= 1 + f
        third *= 1 + f * (3 + 3 * f)
        fourth *= 1 + f * (7 + f * (18 + 15 * f))
    extra[3 * i] = HERMITE_FACTOR * fourth * (t * t * t * t + other * other * other * other)
    bend, twist = 0.0, 0.0
    for side in range(2):
        # sums of arms times weights and turns of the columns, of pairs, and of triples with one weight
        weighted, turned, weight_turn, turn_turn = 0.0, 0.0, 0.0, 0.0
        body, base = last, max(items[i, FRAME_A], -1)
        while body != base:
            n = max(body, base)
            if (body > base) == (side == 0) or kind != POINT:
                arm, f, h = second, weight_of(cols, w, n), turn_of(cols, d, n)
                if kind == POINT:
                    arm = min(lever, arm_of(cols, g, n, row) * unit * w[n, 1] + turned + radius * weighted)
                bend += f * (arm * f + 2 * weighted)
                twist += f * (turn_turn + 2 * h * turned + h * h * arm) + h * (2 * weight_turn + h * weighted)
                turn_turn += h * (2 * turned + h * arm)
                weight_turn += f * turned + h * (weighted + f * arm)
                weighted += f * arm
                turned += h * arm
            if body > base:
                body = n - 1 if mean else cols[n, PARENT]
            else:
                base = cols[n, PARENT]
        if kind != POINT:
            break
    extra[3 * i + 1] = LINEAR_FACTOR * twist * (third / second)
    extra[3 * i + 2] = bend


@helper
def slopes(mobile, choice, vectors, begun, aim, d, S, E, w, line):
    """Compare the systems S, E at the ends of a chord.

    Write the slopes of the residuals at both ends, and the change of each row in the norm of the columns,
    into line (3 M).
    """
    for i in range(mobile):
        x = 0.0
        if choice[INPUT, i] >= 0:
            row = choice[USED_ROW, i]
            x = (aim[row] - begun[row]) / vectors[choice[USED_ITEM, i], SCALE]
        y, change = x, 0.0
        for j in range(mobile):
            n = choice[ELIMINATED, j]
            x -= S[i, j] * d[n]
            y -= E[i, j] * d[n]
            change += abs(E[i, j] - S[i, j]) * w[n, 0]
        line[i], line[mobile + i], line[2 * mobile + i] = x, y, change


@helper
def certified(mobile, choice, opened, S, E, N, w, line, product, extra, radius, sharp):
    """Return max(4 λ η / (1 − κ)², (2 η / ((1 − κ) ρ))²): below 1 the step stays on its branch.

    The result is 1e6 where κ is not below 1. λ holds within the `radius` ρ of the chord.

    N is the inverse of S, `opened` the closure error on the way, and `line` has the results of `slopes`. A
    `sharp` κ takes the norm of the product N (E − S), otherwise of the product of absolute values.
    """
    kappa, eta, bent, not_finite = 0.0, 0.0, 0.0, 0.0
    for i in range(mobile):
        x, y, side, more, much = 0.0, 0.0, 0.0, 0.0, 0.0
        if sharp:
            clear_range(product, 0, mobile)
        for k in range(mobile):
            f = N[i, k]
            if f != 0:
                item = 3 * choice[USED_ITEM, k]
                x += f * line[k]
                y += f * line[mobile + k]
                if sharp:
                    for j in range(mobile):
                        product[j] += f * (E[k, j] - S[k, j])
                f = abs(f)
                side += f * (opened + extra[item])
                more += f * extra[item + 1]
                much += f * extra[item + 2]
                if not sharp:
                    more += f * line[2 * mobile + k]
        if sharp:
            for j in range(mobile):
                more += abs(product[j]) * w[choice[ELIMINATED, j], 0]
        f = 1 / w[choice[ELIMINATED, i], 0]
        side += SLOPE_FACTOR * max(abs(x), abs(y))
        kappa, eta, bent = max(kappa, f * more), max(eta, f * side), max(bent, f * much)
        not_finite += 0 * (x + y + side + more + much)
    if not kappa + not_finite < 1:
        return 1e6
    ratio = eta / (1 - kappa)
    return max(4 * bent * ratio / (1 - kappa), (2 * ratio / radius) * (2 * ratio / radius))


@helper
def invert(mobile, choice, vectors, rest, W, pivots, ends, inverse, w):
    """Compute the inverse of a factored system, and the weights and units of the columns."""
    clear_range(inverse, 0, mobile * mobile)
    for i in range(mobile):
        inverse[i * mobile + i] = 1
    solve(W, pivots, ends, inverse, mobile)
    most = 0.0
    for j in range(mobile):
        n, much = choice[ELIMINATED, j], 0.0
        for k in range(mobile):
            if vectors[choice[USED_ITEM, k], LEVER] != 0:
                much += abs(inverse[j * mobile + k])
        w[n, 0], w[n, 1] = much, rest[n, COLUMN_SCALE]
        most = max(most, much)
    for n in range(mobile):
        w[n, 0] = max(w[n, 0], WEIGHT_MIN * most if most > 0 else 1.0)


@entry
def closing(plan, numbers, states, goal, choice, scratch, whole, quality, tries):
    """Move closed states (B, S) to the goal (B, rows) of all rows, in place; return how many did not arrive.

    quality (B,) is the share of the way that was made, 1 for members that arrived. At most `tries` steps are
    made. `choice` and `whole` are as in `transfer`.
    """
    mobile, height, left_out, count = plan[0, COLUMNS], plan[2, HEIGHT], plan[2, LEFT_OUT], plan[2, SYSTEM]
    cols, geometry = plan[HEADER : HEADER + mobile], numbers[:mobile]
    start, stop = section(plan, ITEMS)
    items, vectors = plan[HEADER + start : HEADER + stop], numbers[start:stop]
    rest = numbers[numbers.shape[0] - 1 - mobile :]
    square, place = mobile * mobile, mobile * FRAME_WIDTH
    F = scratch[:place].reshape(mobile, FRAME_WIDTH)
    g = scratch[place : place + height * mobile].reshape(height, mobile)
    place += height * mobile
    value, begun = scratch[place : place + height], scratch[place + height : place + 2 * height]
    place += 2 * height
    found, aim = scratch[place : place + height], scratch[place + height : place + 2 * height]
    place += 2 * height
    W = scratch[place : place + square].reshape(mobile, mobile)
    S = scratch[place + square : place + 2 * square].reshape(mobile, mobile)
    E = scratch[place + 2 * square : place + 3 * square].reshape(mobile, mobile)
    inverse = scratch[place + 3 * square : place + 4 * square]
    N = inverse.reshape(mobile, mobile)
    place += 4 * square
    # a ball has four numbers for its three columns
    first = scratch[place : place + states.shape[1]].reshape(1, states.shape[1])
    place += 2 * mobile
    R = scratch[place : place + mobile]
    d = scratch[place + mobile : place + 2 * mobile]
    line = scratch[place + 2 * mobile : place + 5 * mobile]
    # weights and units of the columns
    w = scratch[place + 5 * mobile : place + 7 * mobile].reshape(mobile, 2)
    product = scratch[place + 7 * mobile : place + 8 * mobile]
    extra = scratch[place + 8 * mobile :]
    pivots, ends = whole[0], whole[1]
    # kept: S, `begun` and `first` are those of the previous member; inverted: N is the inverse of S
    failed, kept, inverted, start_pivot = 0, False, False, 0.0
    for b in range(states.shape[0]):
        quality[b] = 0
        not_finite = 0.0
        for k in range(states.shape[1]):
            kept = kept and first[0, k] == states[b, k]
            first[0, k] = states[b, k]
            not_finite += 0 * states[b, k]
        for row in range(height):
            aim[row] = goal[b, row]
            not_finite += 0 * aim[row]
        if not kept:
            evaluate(cols, geometry, items, vectors, rest, choice, count, states, b, F, value, g, S)
            for row in range(height):
                begun[row] = value[row]
            inverted = False
        kept, opened = True, 0.0
        for row in range(height):
            not_finite += 0 * begun[row]
        for i in range(mobile):
            if choice[INPUT, i] < 0:
                row = choice[USED_ROW, i]
                opened = max(opened, abs(goal[b, row] - begun[row]) / vectors[choice[USED_ITEM, i], SCALE])
        share, part = 0.0, 1.0
        for _ in range(tries if not_finite == 0 else 0):
            end = share + part
            if 1 - end < 1e-3 * part:
                end = 1.0
            for i in range(mobile):
                if choice[INPUT, i] >= 0:
                    row = choice[USED_ROW, i]
                    aim[row] = begun[row] + (end - share) / (1 - share) * (goal[b, row] - begun[row])
                    if end == 1:
                        aim[row] = goal[b, row]
            fresh = True
            before, size, pivot, arrived, slack = 0.0, STEP_MAX / CONTRACTION_MAX, 0.0, 0, 1e6
            for step in range(STEPS_MAX):
                if step > 0:
                    evaluate(cols, geometry, items, vectors, rest, choice, count, states, b, F, value, g, E)
                    worst, other, large = residuals(vectors, choice, aim, value, mobile, left_out, R)
                else:
                    worst, other, large = residuals(vectors, choice, aim, begun, mobile, left_out, R)
                # an ill-conditioned system amplifies the residual: it is reduced until round-off stops it
                good = step == 0 or pivot > GOOD_PIVOT
                done = (
                    worst == 0
                    or (good and worst <= ROUNDING_RTOL * large)
                    or (worst <= CLOSURE_RTOL and step > 0 and end < 1)
                    or (worst <= CLOSURE_RTOL and step > 1 and worst > before / 2)
                )
                if done and step > 0:
                    arrived = 1
                    break
                if step == 0 and not inverted:
                    for i in range(mobile):
                        for j in range(mobile):
                            W[i, j] = S[i, j]
                    start_pivot = factor(W, pivots, ends)
                    if not start_pivot > PIVOT_MIN:
                        break
                    invert(mobile, choice, vectors, rest, W, pivots, ends, inverse, w)
                    inverted = True
                # after a short step the last system serves again
                if step == 0:
                    fresh, pivot = True, start_pivot
                elif not good or size > REUSED_STEP_MAX:
                    fresh = False
                    for i in range(mobile):
                        for j in range(mobile):
                            W[i, j] = E[i, j]
                    pivot = factor(W, pivots, ends)
                    if not pivot > PIVOT_MIN:
                        break
                if done:  # the start has the values of the goal, and the rows fix it
                    arrived = 2
                    break
                before = worst
                if fresh:
                    for i in range(mobile):
                        d[i] = R[i]
                    for i in range(mobile):
                        much = 0.0
                        for k in range(mobile):
                            much += N[i, k] * d[k]
                        R[i] = much
                else:
                    solve(W, pivots, ends, R, 1)
                next_size = 0.0
                for n in range(mobile):
                    next_size = max(next_size, abs(R[n]))
                    next_size += 0 * R[n]
                # NaN fails this test; near the end round-off decides about the size of steps
                if not (next_size <= CONTRACTION_MAX * size or next_size <= CLOSURE_RTOL):
                    if step > 0 and worst <= 2 * ROUNDING_RTOL * large:
                        arrived = 1
                    elif step == 0:
                        slack = (next_size / (SLACK_FACTOR * STEP_MAX)) ** 2
                    break
                move(cols, choice, rest, R, states, b)
                # the residual after such a step is below round-off
                small = next_size * max(size, next_size) <= STEP_PRODUCT_MIN
                if step > 0 and pivot > GOOD_PIVOT and small and other <= CLOSURE_RTOL:
                    arrived = 1
                    break
                size = next_size
            if arrived == 1:
                for row in range(height):
                    found[row] = value[row]
                for i in range(mobile):
                    if choice[INPUT, i] >= 0:
                        found[choice[USED_ROW, i]] = aim[choice[USED_ROW, i]]
                chord(cols, rest, first, states, b, d)
                radius = 0.0
                for n in range(mobile):
                    radius = max(radius, abs(d[n]) / w[n, 0])
                radius = max(RADIUS_SHARE * radius, RADIUS_MIN)
                for i in range(count):
                    bounds(cols, geometry, items, vectors, value, g, first, states, b, d, w, radius, i, extra)
                slopes(mobile, choice, vectors, begun, aim, d, S, E, w, line)
                opened = max(opened, CLOSURE_RTOL)
                slack = certified(mobile, choice, opened, S, E, N, w, line, product, extra, radius, False)
                if not slack < (1.0 if end == 1 else SLACK_SHARP_MIN):
                    slack = certified(mobile, choice, opened, S, E, N, w, line, product, extra, radius, True)
            if arrived == 2 or slack < 1:
                share = end
                if share == 1:
                    break
                part *= min(GROWTH_MAX, SLACK_FACTOR / root(max(slack, 1e-6)))
                opened = CLOSURE_RTOL
                if arrived == 1:
                    for k in range(states.shape[1]):
                        first[0, k] = states[b, k]
                    for row in range(height):
                        begun[row] = found[row]
                    for i in range(mobile):
                        for j in range(mobile):
                            S[i, j] = E[i, j]
                    kept = inverted = False
            else:
                part = (end - share) * max(SHRINK_MIN, min(0.7, SLACK_FACTOR / root(slack)))
                for k in range(states.shape[1]):
                    states[b, k] = first[0, k]
                if not part > SHARE_MIN:
                    break
            # the rest of the way in equal parts
            part = (1 - share) / max(1, int((1 - share) / part + 0.999))
        quality[b] = share
        if share < 1:
            failed += 1
    return failed
