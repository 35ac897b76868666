"""Entry: paths of complex solutions, while the parameters of their equations move along straight lines.

The predictor is the cubic Hermite extrapolation of two solutions and their slopes, the corrector two steps of
Newton's method. A step is accepted if the first of them is short and the second much shorter. This makes a
jump to another path unlikely, but does not exclude it.

Rows that are linear in the coordinates are eliminated first: a step of the coordinates is N y + E r, with the
unknowns y and the residuals r of these rows. With more rows than unknowns, random combinations are solved.
"""

from __future__ import annotations

import math

from kic.kernels import layout as lay
from kic.kernels.constraint_jacobian import gradient
from kic.kernels.frames import frames, motion
from kic.kernels.functions import logarithm, root
from kic.kernels.jit import entry, helper
from kic.kernels.linear_solve import factor, solve
from kic.kernels.offsets import sections
from kic.kernels.ranges import add_range, clear_range, copy_range
from kic.kernels.views import table

# rows of the equations: row of the system; kind of goal; its parameter, -1 for none; entry of a rotation
ROW, GOAL, PARAMETER, ENTRY = 0, 1, 2, 3
ZERO, LINE, TURN, POSE, SQUARE = 0, 1, 2, 3, 4
# entries of N and E: coordinate; unknown, or number of unknowns plus the linear row
COLUMN, SOURCE = 0, 1
# nodes of a path: solution and slope, the previous solution and slope, and the next solution
HERE, SLOPE, BEFORE, SLOPE_BEFORE, NEXT, NODES = 0, 1, 2, 3, 4, 5

# largest first Newton step of a corrector (rad, lengths), and ratio of its second step to the first
PATH_CORRECTION_MAX, PATH_CONTRACTION_MAX = 0.05, 0.07
# smallest and largest bound of steps that are rounding, largest at the end; number of corrections at the end
PATH_STEP_ATOL, ROUNDING_MAX, FINAL_ROUNDING_MAX, CORRECTIONS = 1e-8, 1e-5, 3e-7, 3
# first and shortest step as a share of a path, largest growth, and steps of a path
FIRST_PATH_STEP, PATH_STEP_MIN, STEP_GROWTH_MAX, PATH_STEPS_MAX = 0.02, 1e-7, 2.5, 1500
# imaginary part of an angle (rad), slide in lengths and quaternion, beyond which a path is at infinity
IMAGINARY_TURN_MAX, SLIDE_MAX, QUATERNION_MAX = 16.0, 1e6, 1e4
# largest remaining share of a path that ends at infinity, and share that is reported for incomplete paths
DIVERGED_SHARE, ALMOST = 1e-3, 0.999


def path_scratch(plan, count, state_size):
    """Return the length of the scratch array for `count` rows of the equations."""
    mobile, height = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT]
    system = mobile * (lay.FRAME_WIDTH + mobile + 5) + height * (mobile + 1)
    return int(system + 3 * count + 8 + NODES * state_size)


@helper
def set_goal(rows, scales, start, change, b, share, begun, pose, aim, rate):
    """Compute the goals of all rows after a share of path b, and their rates."""
    for k in range(rows.shape[0]):
        p, scale = rows[k, PARAMETER], scales[k, 0]
        aim[k], rate[k] = begun[k], 0
        if rows[k, GOAL] == LINE:
            aim[k], rate[k] = scale * (start[b, p] + share * change[b, p]), scale * change[b, p]
        elif rows[k, GOAL] == SQUARE:  # its sign does not matter, see `set_rows`
            aim[k] = scale * root(start[b, p] + share * change[b, p])
            rate[k] = scale * scale * change[b, p] / (2 * aim[k])
        elif rows[k, GOAL] == TURN and p >= 0:
            z, dz = start[b, p], change[b, p]
            aim[k] = begun[k] - 1j * logarithm(1 + share * dz / z)
            rate[k] = -1j * dz / (z + share * dz)
        elif rows[k, GOAL] == POSE:
            # the unit quaternion and its rate, for the nine rows of a rotation
            if rows[k, ENTRY] == 0:
                square, slope = 0j, 0j
                for c in range(4):
                    pose[c] = start[b, p + c] + share * change[b, p + c]
                    square += pose[c] * pose[c]
                    slope += pose[c] * change[b, p + c]
                f = 1 / root(square)
                for c in range(4):
                    pose[4 + c] = f * (change[b, p + c] - pose[c] * slope / square)
                    pose[c] *= f
            j, i = rows[k, ENTRY] // 3, rows[k, ENTRY] % 3  # by columns
            aim[k] = scale * form(pose, 0, 0, i, j)
            rate[k] = scale * (form(pose, 0, 4, i, j) + form(pose, 4, 0, i, j))


@helper
def form(q, a, b, i, j):
    """Return entry (i, j) of the bilinear form of two quaternions that is R for equal unit quaternions."""
    value = 2 * q[a + 1 + i] * q[b + 1 + j]
    if i == j:
        value += q[a] * q[b] - q[a + 1] * q[b + 1] - q[a + 2] * q[b + 2] - q[a + 3] * q[b + 3]
    else:
        k = 3 - i - j
        value += (2 if (j + 1) % 3 == i else -2) * q[a] * q[b + 1 + k]
    return value


@helper
def set_rows(cols, geometry, items, vectors, used, nodes, b, F, value, g, rows, curved, aim):
    """Compute values of the rows at a node, and the first order of the first `curved` rows.

    The first order `g` (rows, M) follows the values in the same array. Given distances are roots of complex
    squares; their signs are chosen to be close to the goals.
    """
    motion(cols, geometry, nodes, b, F)
    frames(cols, geometry, F)
    clear_range(value, 0, g.shape[0])
    for k in range(curved):
        clear_range(g[rows[k, ROW]], 0, g.shape[1])
    for i in range(used.shape[0]):
        gradient(cols, F, items, vectors, used[i], nodes, b, value, g.shape[0])
    for k in range(rows.shape[0]):
        row = rows[k, ROW]
        if rows[k, GOAL] == SQUARE and (value[row] * aim[k].conjugate()).real < 0:
            value[row] = -value[row]
            for n in range(g.shape[1]):
                g[row, n] = -g[row, n]


@helper
def newton_step(equations, value, g, aim, rate, space):
    """Compute Newton's step and the rates of the solution, side by side in S.

    Return the largest step, or NaN if the system is singular.
    """
    rows, scales, mix, ties, ratios, rest = equations
    W, R, w, S, pivots, ends = space
    unknowns, mobile, linear = mix.shape[0], g.shape[1], rows.shape[0] - mix.shape[1]
    clear_range(S, 0, 2 * mobile)
    clear_range(R, 0, 2 * unknowns)
    for t in range(ties.shape[0]):
        n, k = ties[t, COLUMN], ties[t, SOURCE] - unknowns
        if k >= 0:
            S[2 * n] += ratios[t] * (aim[k] - value[rows[k, ROW]] - scales[k, 1])
            S[2 * n + 1] += ratios[t] * rate[k]
    for i in range(unknowns):
        clear_range(W[i], 0, unknowns)
        clear_range(w, 0, mobile)
        for k in range(mix.shape[1]):
            f = mix[i, k]
            if f != 0:
                row = rows[k, ROW]
                add_range(w, 0, f, g[row], 0, mobile)
                R[2 * i] += f * (aim[k] - value[row] - scales[k, 1])
                R[2 * i + 1] += f * rate[k]
        for n in range(mobile if linear > 0 else 0):
            R[2 * i] -= w[n] * S[2 * n]
            R[2 * i + 1] -= w[n] * S[2 * n + 1]
        for t in range(ties.shape[0]):
            f = w[ties[t, COLUMN]]
            if f != 0 and ties[t, SOURCE] < unknowns:
                W[i, ties[t, SOURCE]] += ratios[t] * f
    if not factor(W, pivots, ends) > 0:
        clear_range(S, 0, 2 * mobile)
        return math.nan
    solve(W, pivots, ends, R, 2)
    for t in range(ties.shape[0]):
        n, u = ties[t, COLUMN], ties[t, SOURCE]
        if u < unknowns:
            S[2 * n] += ratios[t] * R[2 * u]
            S[2 * n + 1] += ratios[t] * R[2 * u + 1]
    size, not_finite = 0.0, 0j
    for n in range(mobile):
        size = max(size, abs(S[2 * n]) / rest[n, lay.COLUMN_SCALE].real)
        not_finite += 0 * S[2 * n] + 0 * S[2 * n + 1]
    return size + not_finite.real + not_finite.imag


@helper
def turn(q, k, w, p, r):
    """Write into r[p:] the rate of a quaternion q[k:] at angular velocity w, in axes of the first body."""
    x, y, z = w[0] / 2, w[1] / 2, w[2] / 2
    a, u, v, t = q[k], q[k + 1], q[k + 2], q[k + 3]
    r[p] = -x * u - y * v - z * t
    r[p + 1] = x * a + y * t - z * v
    r[p + 2] = y * a + z * u - x * t
    r[p + 3] = z * a + x * v - y * u


@helper
def move_node(cols, R, part, nodes, target, b):
    """Write the state rates of node b (part 1), or node b plus a step (part 0), into node `target`."""
    for n in range(cols.shape[0]):
        k = cols[n, lay.STATE]
        if cols[n, lay.KIND] != lay.BALL:
            nodes[target, k] = R[2 * n + part] + (nodes[b, k] if part == 0 else 0)
        elif cols[n, lay.GROUP] == n:
            w = (R[2 * n + part], R[2 * n + 2 + part], R[2 * n + 4 + part])
            if part == 1:
                turn(nodes[b], k, w, k, nodes[target])
            else:
                a, u, v, t = nodes[b, k], nodes[b, k + 1], nodes[b, k + 2], nodes[b, k + 3]
                turn(nodes[b], k, w, k, nodes[target])
                nodes[target, k] += a
                nodes[target, k + 1] += u
                nodes[target, k + 2] += v
                nodes[target, k + 3] += t


@helper
def normalize(cols, nodes, b):
    """Normalize the quaternions of ball joints."""
    for n in range(cols.shape[0]):
        k = cols[n, lay.STATE]
        if cols[n, lay.KIND] == lay.BALL and cols[n, lay.GROUP] == n:
            square = 0j
            for c in range(4):
                square += nodes[b, k + c] * nodes[b, k + c]
            f = 1 / root(square)
            for c in range(4):
                nodes[b, k + c] *= f


@helper
def extent(cols, rest, nodes, b):
    """Return the rounding error of steps at a node, and True if the node is near infinity.

    Cosines grow with imaginary parts of angles, and their products along a chain with the sum of these.
    Rotations are quadratic in quaternions, and distances in positions.
    """
    turned, all_turns, slid, turned_ball = 0.0, 0.0, 0.0, 0.0
    for n in range(cols.shape[0]):
        k = cols[n, lay.STATE]
        if cols[n, lay.KIND] == lay.REVOLUTE:
            turned = max(turned, abs(nodes[b, k].imag))
            all_turns += abs(nodes[b, k].imag)
        elif cols[n, lay.KIND] == lay.PRISMATIC:
            slid = max(slid, abs(nodes[b, k]) / rest[n, lay.COLUMN_SCALE].real)
        elif cols[n, lay.GROUP] == n:
            for c in range(4):
                turned_ball = max(turned_ball, abs(nodes[b, k + c]))
    far = slid > SLIDE_MAX or turned_ball > QUATERNION_MAX or turned > IMAGINARY_TURN_MAX
    noise = 1e-15 * math.exp(min(max(2 * turned, all_turns), 40.0))
    noise = max(noise, 1e-15 * slid * slid, 1e-13 * turned_ball**4)
    return min(max(noise, PATH_STEP_ATOL), ROUNDING_MAX), far


@entry
def path_tracking(
    plan, numbers, used, rows, scales, mix, ties, ratios, states, start, change, tightness, shares, scratch,
    whole,
):  # fmt: skip
    """Continue states (B, S) in place as parameters change from `start` (B, n) by `change`.

    Return the number of steps. `shares` (B,) become 1 for complete paths, -1 for paths that end at infinity,
    else the completed share. `rows` (P, 4) and `scales` (P, 2), a scale and the reference value, are the
    equations, the linear equations last. `used` (n,) are their items. `mix` (U, C) has the coefficients of
    combinations of the C other rows, divided by the scales. `ties` (T, 2) and `ratios` (T,) are the entries
    of N and E. `whole` (2, U) is scratch.
    """
    mobile, height, count, width = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT], rows.shape[0], states.shape[1]
    unknowns, curved = mix.shape
    (cols, geometry), (items, vectors), _, _, _, rest = sections(plan, numbers)
    F, place = table(scratch, 0, mobile, lay.FRAME_WIDTH), mobile * lay.FRAME_WIDTH
    value, g = scratch[place:], table(scratch, place + height, height, mobile)
    place += height * (1 + mobile)
    W = table(scratch, place, unknowns, unknowns)
    place += unknowns * unknowns
    R, w, S = scratch[place:], scratch[place + 2 * unknowns :], scratch[place + 2 * unknowns + mobile :]
    place += 2 * unknowns + 3 * mobile
    aim, rate, begun = scratch[place:], scratch[place + count :], scratch[place + 2 * count :]
    pose, nodes = scratch[place + 3 * count :], table(scratch, place + 3 * count + 8, NODES, width)
    equations = rows, scales, mix, ties, ratios, rest
    space = W, R, w, S, whole[0], whole[1]
    contraction, largest = PATH_CONTRACTION_MAX * tightness, PATH_CORRECTION_MAX * tightness
    steps = 0
    for b in range(states.shape[0]):
        copy_range(nodes[HERE], 0, states[b], 0, width)
        set_goal(rows, scales, start, change, b, 0.0, begun, pose, aim, rate)  # of distances
        set_rows(cols, geometry, items, vectors, used, nodes, HERE, F, value, g, rows, curved, aim)
        for k in range(count):
            begun[k] = value[rows[k, ROW]] + scales[k, 1] if rows[k, GOAL] == TURN else 0
        set_goal(rows, scales, start, change, b, 0.0, begun, pose, aim, rate)
        newton_step(equations, value, g, aim, rate, space)
        move_node(cols, S, 1, nodes, SLOPE, HERE)
        share, step, before, done = 0.0, FIRST_PATH_STEP * tightness, -1.0, 0.0
        for _ in range(PATH_STEPS_MAX):
            steps += 1
            h = min(step, 1 - share)
            if 1 - share - h < 1e-3 * h:
                h = 1 - share
            # cubic through both nodes, or the tangent at the first step
            d = share - before if before >= 0 else 1.0
            a = h / d if before >= 0 else 0.0
            for k in range(width):
                x, v = nodes[HERE, k], nodes[SLOPE, k]
                u, w, old = nodes[BEFORE, k] - x, v * d, nodes[SLOPE_BEFORE, k] * d
                if before >= 0:
                    x += a * w + a * a * (3 * u + 2 * w + old) + a * a * a * (2 * u + w + old)
                else:
                    x += h * v
                nodes[NEXT, k] = x
            normalize(cols, nodes, NEXT)
            end = share + h
            set_goal(rows, scales, start, change, b, end, begun, pose, aim, rate)
            set_rows(cols, geometry, items, vectors, used, nodes, NEXT, F, value, g, rows, curved, aim)
            one = newton_step(equations, value, g, aim, rate, space)
            good, factor_of_step = False, 0.2
            if one <= largest:
                move_node(cols, S, 0, nodes, NEXT, NEXT)
                normalize(cols, nodes, NEXT)
                set_rows(cols, geometry, items, vectors, used, nodes, NEXT, F, value, g, rows, curved, aim)
                two = newton_step(equations, value, g, aim, rate, space)
                noise, _ = extent(cols, rest, nodes, NEXT)
                good = two <= max(contraction * one, noise)
                grow = one / largest
                if not two <= noise:
                    grow = max(grow, two / (contraction * max(one, 1e-300)))
                    grow += 0 * two
                if grow < 1e9:
                    factor_of_step = 0.8 / math.sqrt(math.sqrt(max(grow, 1e-6)))
            elif one < 1e9:
                factor_of_step = 0.8 / math.sqrt(math.sqrt(one / largest))
            factor_of_step = min(max(factor_of_step, 0.2), STEP_GROWTH_MAX)
            if good:
                move_node(cols, S, 0, nodes, NEXT, NEXT)
                normalize(cols, nodes, NEXT)
                copy_range(nodes[BEFORE], 0, nodes[HERE], 0, width)
                copy_range(nodes[SLOPE_BEFORE], 0, nodes[SLOPE], 0, width)
                copy_range(nodes[HERE], 0, nodes[NEXT], 0, width)
                before, share = share, end if end < 1 else 1.0
                move_node(cols, S, 1, nodes, SLOPE, HERE)
                step = h * max(factor_of_step, 0.5)
            else:
                step = h * min(factor_of_step, 0.5)
            _, far = extent(cols, rest, nodes, HERE)
            done = min(share, ALMOST)
            if share >= 1:
                done = 1.0
            elif far and 1 - share < DIVERGED_SHARE:
                done = -1.0
            if share >= 1 or far or step < PATH_STEP_MIN:
                break
        if done == 1:
            set_goal(rows, scales, start, change, b, 1.0, begun, pose, aim, rate)
            last = 0.0
            for _ in range(CORRECTIONS):
                set_rows(cols, geometry, items, vectors, used, nodes, HERE, F, value, g, rows, curved, aim)
                last = newton_step(equations, value, g, aim, rate, space)
                move_node(cols, S, 0, nodes, HERE, HERE)
                normalize(cols, nodes, HERE)
            noise, _ = extent(cols, rest, nodes, HERE)
            if not last <= min(noise, FINAL_ROUNDING_MAX):
                done = ALMOST
        copy_range(states[b], 0, nodes[HERE], 0, width)
        shares[b] = done
    return steps
