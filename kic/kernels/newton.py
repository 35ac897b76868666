"""Entry: certified tracking of closed configurations by Newton's method on the square system.

The goal moves along a straight line. A step is accepted only if the solution at its end is proved to be the
continuation of the solution at its start, by a Newton–Kantorovich test along the chord c(τ) between the two.
Let A be an approximate inverse of the Jacobian J, r(τ) the residual to the goal at τ, and

    κ ≥ ‖I − A J(c(τ))‖,    η ≥ ‖A r(τ)‖,    λ ≥ ‖A J'‖

in the norm max |x_i| / w_i, with λ a bound in the ball of radius ρ about c(τ). If κ < 1, 4 λ η < (1 − κ)² and
2 η < (1 − κ) ρ, then for every τ the ball of radius 2 η / (1 − κ) about c(τ) contains exactly one solution
and no singular Jacobian. The solutions form one curve from the start to the end. The test holds for steps of
any length, without the sign of a determinant. The weights w_i account for columns of different sensitivity:
they are the row sums of |A| over the rows of J that are not constant.

A is the inverse at the start. J is known at both ends of the chord; at the end it is that before the last
Newton step, which is shorter than 3e-9. J is interpolated linearly for κ. For η, r is a Hermite interpolant,
at most a quarter of its larger slope. If the test fails, the path is divided into two chords. Their common
node is the middle of the path to second order, by the slopes of r. Its residual is part of η, and A is the
inverse there, for both chords: κ halves and η falls to about a quarter.

Lever arms bound λ and the errors of interpolation: the k-th derivative of a row along x is at most
LEVER ‖x‖₁ᵏ over the columns of the row. For points and directions, the arm of the outermost column replaces
LEVER. Points of a loop are compared in world axes, and columns that carry the whole loop rotate its rows;
this is part of the errors. A step that fails the tests is made shorter. Members that fail stay at the last
certified configuration.

This Newton iteration is preferred wherever it applies. `transfer.closure` has another in NumPy for poses,
angles of cut joints, rounded dimensions, singular configurations, and distant starts.
"""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import world_point, world_vector
from kic.kernels.functions import root
from kic.kernels.influence import affects
from kic.kernels.influence import first as first_influence
from kic.kernels.jit import entry, helper, inlined, part, reordered
from kic.kernels.linear_solve import factor, solve
from kic.kernels.offsets import sections
from kic.kernels.ranges import clear_range, copy_range
from kic.kernels.transfer import assemble
from kic.kernels.vectors import cross, dot, scale, sub, take
from kic.kernels.views import table

# largest number of Newton steps, largest first step (rad, shares of the length), and largest ratio of steps
STEPS_MAX, STEP_MAX, CONTRACTION_MAX = 10, 0.2, 0.25
# residuals, relative to the characteristic length: at round-off, and where further steps do not reduce them
ROUNDING_RTOL, CLOSURE_RTOL = 1e-15, 1e-13
# Largest step after which the inverse is reused. The residual is below round-off if the product of the last
# two steps is below the second value, and the last step times the length of all steps since the inverse is
# below the third.
REUSED_STEP_MAX, STEP_PRODUCT_MIN, STALE_PRODUCT_MIN = 1e-4, 1e-17, 2.5e-16
# smallest pivot, as a share of the largest, of systems that are solved here
PIVOT_MIN = 1e-6
# shortest step, as a share of the path
SHARE_MIN = 1e-6
# errors of linear and of cubic Hermite interpolation, and the largest share of a slope in the latter
LINEAR_FACTOR, HERMITE_FACTOR, SLOPE_FACTOR = 1 / 8, 1 / 384, 1 / 4
# largest growth of the step, smallest and largest reduction, and the share of the longest step that is tried
GROWTH_MAX, SHRINK_MIN, SHRINK_MAX, STEP_FACTOR = 3.0, 0.2, 0.7, 0.8
# radius of the balls about a chord, as a multiple of η without errors of interpolation, and the smallest one
RADIUS_FACTOR, RADIUS_MIN = 10.0, 1e-6
# columns of the bounds of an item: errors of interpolation of residual and Jacobian, norm of its second
# derivative, rotation of columns that carry both of its frames; along the chord, its lever arm, the bound of
# its third derivative, and the smallest length of a distance
RESIDUAL_ERROR, JACOBIAN_ERROR, CURVATURE, CARRIED_TURN = 0, 1, 2, 3
ARM, THIRD, LEAST, BOUNDS_WIDTH = 4, 5, 6, 7
# end of the scratch array, for the next call: 1 if the system at the start of the last member is kept, 1 if
# its inverse is kept, and the smallest pivot
KEPT, INVERTED, START_PIVOT, MEMORY_WIDTH = 0, 1, 2, 3
# smallest weight of a column, as a share of the largest
WEIGHT_MIN = 1e-3


@helper
def closing_scratch(plan):
    """Return the size of the scratch array."""
    mobile, height = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT]
    square = mobile * mobile
    bounds = BOUNDS_WIDTH * plan[2, lay.SYSTEM]
    numbers = mobile * lay.FRAME_WIDTH + height * (4 + mobile) + 6 * square + 22 * mobile + 3 + bounds
    return numbers + MEMORY_WIDTH


@inlined
def closing_space(plan, width, scratch):
    """Return views of the scratch for states of a width.

    Frames; values and first order of the rows; values at the start and end of a chord, and the goal; a
    square; systems at the start, middle and end, inverses at the start and middle (2, M²), states; a step,
    the residual at the middle, weights and units of the columns for both inverses, measures, and a rest.
    """
    mobile, height = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT]
    square, first = mobile * mobile, mobile * lay.FRAME_WIDTH
    begun = first + height * (1 + mobile)
    W = begun + 3 * height
    nodes = W + 6 * square
    # a ball joint has four entries for its three columns
    step = nodes + 6 * mobile
    weights = step + 2 * mobile
    measures = weights + 4 * mobile
    S, M = table(scratch, W + square, mobile, mobile), table(scratch, W + 2 * square, mobile, mobile)
    systems = S, M, table(scratch, W + 3 * square, mobile, mobile)
    both = table(scratch, weights, mobile, 2), table(scratch, weights + 2 * mobile, mobile, 2)
    return (
        table(scratch, 0, mobile, lay.FRAME_WIDTH), scratch[first:begun],
        table(scratch, first + height, height, mobile), scratch[begun : begun + height],
        scratch[begun + height : begun + 2 * height], scratch[begun + 2 * height : W],
        table(scratch, W, mobile, mobile), systems, table(scratch, W + 4 * square, 2, square),
        table(scratch, nodes, 3, width), scratch[step : step + mobile], scratch[step + mobile : weights],
        both, scratch[measures : measures + 3], scratch[measures + 3 :],
    )  # fmt: skip


@helper
def forget(plan, scratch):
    """Clear the kept system, so that `close_members` evaluates it at the start of its first member."""
    clear_range(scratch, closing_scratch(plan) - MEMORY_WIDTH, MEMORY_WIDTH)


@helper
def residuals(vectors, choice, aim, value, mobile, left_out, R):
    """Write residuals of used rows into R; return the largest of all, of unused rows, and of the values."""
    worst, other, large, not_finite = 0.0, 0.0, 1.0, 0.0
    for i in range(mobile + left_out):
        if i < mobile:
            row, item = choice[lay.USED_ROW, i], choice[lay.USED_ITEM, i]
        else:
            row, item = choice[lay.UNUSED_ROW, i - mobile], choice[lay.UNUSED_ITEM, i - mobile]
        residual = (aim[row] - value[row]) / vectors[item, lay.SCALE]
        if i < mobile:
            R[i] = residual
        else:
            other = max(other, abs(residual))
        worst = max(worst, abs(residual))
        not_finite += 0 * residual  # `max` may ignore NaN
        large = max(large, abs(value[row] / vectors[item, lay.SCALE]))
    return worst + not_finite, other, large


@inlined
def copy_matrix(target, source):
    """Write a square matrix into another."""
    for i in range(source.shape[0]):
        copy_range(target[i], 0, source[i], 0, source.shape[0])


@helper
def move(cols, choice, rest, R, states, b):
    """Move a state by a step R of its columns, in the order of elimination."""
    for j in range(cols.shape[0]):
        n = choice[lay.ELIMINATED, j]
        k = cols[n, lay.STATE]
        if cols[n, lay.KIND] != lay.BALL:
            states[b, k] += rest[n, lay.COLUMN_SCALE] * R[j]
        else:
            # a small rotation about one axis of the first body; the other axes follow
            k, c = cols[cols[n, lay.GROUP], lay.STATE], n - cols[n, lay.GROUP]
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
def evaluate(system, states, b, F, value, g, W):
    """Call `assemble`; this helper is compiled once for all calls."""
    assemble(system, states, b, F, value, g, W)


@inlined
def chord(cols, rest, nodes, a, e, d):
    """Compute the scaled step d (M,) from node a to node e."""
    for n in range(cols.shape[0]):
        k = cols[n, lay.STATE]
        if cols[n, lay.KIND] != lay.BALL:
            d[n] = (nodes[e, k] - nodes[a, k]) / rest[n, lay.COLUMN_SCALE]
        elif cols[n, lay.GROUP] == n:
            same = 0.0
            for c in range(4):
                same += nodes[a, k + c] * nodes[e, k + c]
            sign = 1 if same >= 0 else -1
            # the vector part of the end times the conjugate of the start, made as long as the angle
            p, u = nodes[e, k], (nodes[e, k + 1], nodes[e, k + 2], nodes[e, k + 3])
            o, v = nodes[a, k], (nodes[a, k + 1], nodes[a, k + 2], nodes[a, k + 3])
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
    """Return the share of column n in the 1-norm of a step; a ball joint counts at its first column."""
    if cols[n, lay.KIND] != lay.BALL:
        return abs(d[n])
    return root(d[n] * d[n] + d[n + 1] * d[n + 1] + d[n + 2] * d[n + 2]) if cols[n, lay.GROUP] == n else 0.0


@helper
def weight_of(cols, w, n):
    """Return the weight of column n; a ball joint counts at its first column."""
    if cols[n, lay.KIND] != lay.BALL:
        return w[n, 0]
    if cols[n, lay.GROUP] != n:
        return 0.0
    return root(w[n, 0] * w[n, 0] + w[n + 1, 0] * w[n + 1, 0] + w[n + 2, 0] * w[n + 2, 0])


@helper
def arm_of(cols, F, n, sort, e):
    """Return the speed of a point or direction e per rate of column n; for a ball joint, an upper bound."""
    if cols[n, lay.KIND] == lay.BALL:
        arm = e if sort == lay.DIRECTION else sub(e, take(F, n, lay.ORIGIN))
    elif affects(cols, n, sort):
        arm = first_influence(cols, F, n, sort, e)
    else:
        return 0.0
    return root(dot(arm, arm))


@helper
def power(x, exponent):
    """Return an integer power of x."""
    result = 1.0
    for _ in range(exponent):
        result *= x
    return result


@helper
def slope_at_end(items, value, g, d, w, i):
    """Return a bound of the slope of a difference u of points at both ends of a chord, but for third order.

    `value` and `g` are those of the rows at one end; at the other, u = 0. The trapezoidal rule gives
    u̇(0) + u̇(1) = 2 (u(1) − u(0)) + u⃛/6, and so at most |u̇| + 2 |u| at that end.
    """
    row, square, missed = items[i, lay.ROW], 0.0, 0.0
    for c in range(3):
        x = 0.0
        for n in range(g.shape[1]):
            x += g[row + c, n] * w[n, 1] * d[n]
        square += x * x
        missed += value[row + c] * value[row + c]
    return root(square) + 2 * root(missed)


@inlined
def bound_residual(cols, geometry, items, vectors, value, g, nodes, a, e, d, w, i, bounds):
    """Bound derivatives of item i along the chord from node a to node e, and the error of its residual.

    Write row i of `bounds`, with zero errors of the Jacobian and zero curvature; return the error of the
    residual. `value` and `g` are those at either end of the chord.
    """
    lever, kind, row = vectors[i, lay.LEVER], items[i, lay.ITEM], items[i, lay.ROW]
    bounds[i, RESIDUAL_ERROR] = bounds[i, JACOBIAN_ERROR] = bounds[i, CURVATURE] = 0
    if lever == 0:
        return 0.0
    all_columns = kind == lay.WEIGHTED_POINT  # a sum with terms on any column
    body = cols.shape[0] - 1 if all_columns else items[i, lay.FRAME_B]
    base = max(items[i, lay.FRAME_A], -1)
    unit, extension, turn, other_turn, carried = 1 / vectors[i, lay.SCALE], 0.0, 0.0, 0.0, 0.0
    while body != base:
        n = max(body, base)
        if cols[n, lay.KIND] == lay.PRISMATIC:
            k = cols[n, lay.STATE]
            extension += max(
                abs(nodes[a, k] - geometry[n, lay.DRAWN]), abs(nodes[e, k] - geometry[n, lay.DRAWN])
            )
        if body > base:
            turn += turn_of(cols, d, n)
            body = n - 1 if all_columns else cols[n, lay.PARENT]
        else:
            other_turn += turn_of(cols, d, n)
            base = cols[n, lay.PARENT]
    lever += extension * unit
    third = fourth = lever
    least = 0.0
    if kind == lay.POINT:
        # each point of an item is moved by the columns of its side; other items by the columns of both
        error = HERMITE_FACTOR * lever * (power(turn, 4) + power(other_turn, 4))
        # columns that carry both points turn their difference
        while body >= 0:
            carried += turn_of(cols, d, body)
            body = cols[body, lay.PARENT]
        if carried > 0:
            slope = slope_at_end(items, value, g, d, w, i) * unit
            slope += lever * (power(turn, 3) + power(other_turn, 3)) / 6
            error += SLOPE_FACTOR * carried * slope
    else:
        turn += other_turn
        if kind == lay.DISTANCE or kind == lay.NORM:
            # Derivatives of |v| are bounded by those of v over powers of the smallest length on the way. For
            # a norm, v is a projection of the difference of points in axes of A, with the lever arm of DOT2.
            least = value[row] * unit - lever * turn
            f = lever / least if least > 0 else 1e9
            third *= 1 + f * (3 + 3 * f)
            fourth *= 1 + f * (7 + f * (18 + 15 * f))
        error = HERMITE_FACTOR * fourth * power(turn, 4)
    bounds[i, RESIDUAL_ERROR], bounds[i, CARRIED_TURN] = error, carried
    bounds[i, ARM], bounds[i, THIRD], bounds[i, LEAST] = lever, third, least
    return error


@inlined
def bound_jacobian(cols, F, items, vectors, d, w, radius, i, bounds):
    """Bound the error of the Jacobian of item i along a chord, and its second derivative, in the norm.

    The second derivative is bounded in balls of the `radius` about the chord. F has the frames at either end.
    Derivatives of a point or direction by several columns are at most the arm of the outermost column. The
    change of an arm is at most the motion due to columns farther out.
    """
    if vectors[i, lay.LEVER] == 0:
        return
    kind, unit = items[i, lay.ITEM], 1 / vectors[i, lay.SCALE]
    all_columns = kind == lay.WEIGHTED_POINT
    last = cols.shape[0] - 1 if all_columns else items[i, lay.FRAME_B]
    carried, weights, extension = bounds[i, CARRIED_TURN], 0.0, 0.0
    body, base = last, max(items[i, lay.FRAME_A], -1)
    while body != base:
        n = max(body, base)
        weights += weight_of(cols, w, n)
        if cols[n, lay.KIND] == lay.PRISMATIC:
            extension += w[n, 0] * w[n, 1]
        if body > base:
            body = n - 1 if all_columns else cols[n, lay.PARENT]
        else:
            base = cols[n, lay.PARENT]
    # in the ball sliders are longer, and a distance may be shorter
    second, third_share = bounds[i, ARM] + radius * extension * unit, 1.0
    if kind == lay.DISTANCE or kind == lay.NORM:
        least = bounds[i, LEAST] - second * radius * weights
        second *= 1 + (second / least if least > 0 else 1e9)
        third_share = bounds[i, THIRD] / second
    # arms are known for points, for vectors fixed in B, and for differences of points seen from A
    armed = kind == lay.POINT or kind == lay.DOT1 or kind == lay.DOT2
    sort = lay.DIRECTION if kind == lay.DOT1 else lay.POINT
    head = tail = (0.0, 0.0, 0.0)
    if armed:
        local = take(vectors, i, lay.LOCAL_B)
        head = world_vector(F, last, local) if kind == lay.DOT1 else world_point(F, last, local)
        tail = world_point(F, max(items[i, lay.FRAME_A], -1), take(vectors, i, lay.LOCAL_A))
    for side in range(2 if kind == lay.POINT else 1):
        # sums over pairs and triples of columns: arms times weights, and times turns of the chord
        weight_weight, turn_turn_weight = 0.0, 0.0
        # sums over the columns and pairs that are farther out
        weighted, turned, weight_turn, turn_turn = 0.0, 0.0, 0.0, 0.0
        body, base = last, max(items[i, lay.FRAME_A], -1)
        while body != base:
            n = max(body, base)
            if (body > base) == (side == 0) or kind != lay.POINT:
                arm, weight, h = second, weight_of(cols, w, n), turn_of(cols, d, n)
                if armed and (body > base or kind == lay.POINT):
                    arm = arm_of(cols, F, n, sort, head if side == 0 else tail) * unit * w[n, 1]
                    arm = min(second, arm + turned + radius * weighted)
                weight_weight += weight * (arm * weight + 2 * weighted)
                turn_turn_weight += weight * (turn_turn + 2 * h * turned + h * h * arm)
                turn_turn_weight += h * (2 * weight_turn + h * weighted)
                turn_turn += h * (2 * turned + h * arm)
                weight_turn += weight * turned + h * (weighted + weight * arm)
                weighted += weight * arm
                turned += h * arm
            if body > base:
                body = n - 1 if all_columns else cols[n, lay.PARENT]
            else:
                base = cols[n, lay.PARENT]
        turn_turn_weight = turn_turn_weight * third_share + carried * (2 * weight_turn + carried * weighted)
        bounds[i, JACOBIAN_ERROR] += LINEAR_FACTOR * turn_turn_weight
        bounds[i, CURVATURE] += weight_weight


@reordered
def compare_rows(s, e, d, w):
    """Return s · d, e · d and |e − s| · w of two rows (n,) of systems."""
    x = y = change = 0.0
    for j in range(s.shape[0]):
        x += s[j] * d[j]
        y += e[j] * d[j]
        change += abs(e[j] - s[j]) * w[j]
    return x, y, change


@reordered
def three_products(n, a, b, c):
    """Return the products of a row n (M,) with three vectors."""
    x = y = z = 0.0
    for k in range(n.shape[0]):
        x += n[k] * a[k]
        y += n[k] * b[k]
        z += n[k] * c[k]
    return x, y, z


@reordered
def absolute_products(n, a, b):
    """Return |n| · a and |n| · b of a row n (M,)."""
    x = y = 0.0
    for k in range(n.shape[0]):
        f = abs(n[k])
        x += f * a[k]
        y += f * b[k]
    return x, y


@inlined
def slopes(mobile, choice, vectors, begun, aim, share, d, S, E, N, w, end_residual, line):
    """Compare the systems S, E at the ends of a chord along which the goal covers a `share` of its path.

    Write into line (8 M,): N times the slopes of the residuals at both ends, the change of each row in the
    norm of the columns, and |N times the residual (M,) at the end|. The step and the weights, in the order of
    elimination, come last. Return the largest residual due to the slopes and the end, in the norm.
    """
    change, first, second = line[2 * mobile :], line[3 * mobile : 4 * mobile], line[4 * mobile : 5 * mobile]
    step, weights = line[6 * mobile : 7 * mobile], line[7 * mobile : 8 * mobile]
    for j in range(mobile):
        step[j], weights[j] = d[choice[lay.ELIMINATED, j]], w[choice[lay.ELIMINATED, j], 0]
    for i in range(mobile):
        x = 0.0
        if choice[lay.INPUT, i] >= 0:
            row = choice[lay.USED_ROW, i]
            x = share * (aim[row] - begun[row]) / vectors[choice[lay.USED_ITEM, i], lay.SCALE]
        moved, moved_end, change[i] = compare_rows(S[i], E[i], step, weights)
        first[i], second[i] = x - moved, x - moved_end
    largest, largest_end = 0.0, 0.0
    for i in range(mobile):
        x, y, end = three_products(N[i], first, second, end_residual)
        line[i], line[mobile + i], line[5 * mobile + i] = x, y, abs(end)
        largest = max(largest, max(abs(x), abs(y)) / weights[i])
        largest_end = max(largest_end, abs(end) / weights[i])
    return SLOPE_FACTOR * largest + largest_end


@helper
def passes(kappa, curvature_residual, eta, radius):
    """Return True if κ, 4 λ η and η pass both Newton–Kantorovich tests; NaN fails."""
    gap = 1 - kappa
    return kappa < 1 and curvature_residual < gap * gap and 2 * eta < gap * radius


@inlined
def certify(mobile, choice, closure_error, S, E, N, line, product, bounds, radius, whole, measures):
    """Compute κ and 4 λ η; return True if a ball about each point of the chord contains one solution.

    `closure_error` bounds residuals along the chord, and `line` has the results of `slopes`. κ is computed
    from the norm of |N| |E − S| and, if the test fails, from that of N (E − S). For a `whole` chord whose
    halves are tried next, the second computation stops once its test fails too. κ and 4 λ η are written into
    `measures`.
    """
    change, weights = line[2 * mobile : 3 * mobile], line[7 * mobile : 8 * mobile]
    residuals, jacobians = line[3 * mobile : 4 * mobile], line[4 * mobile : 5 * mobile]
    errors = line[6 * mobile : 7 * mobile]
    for k in range(mobile):
        item = choice[lay.USED_ITEM, k]
        residuals[k] = closure_error + bounds[item, RESIDUAL_ERROR]
        jacobians[k], product[k] = bounds[item, JACOBIAN_ERROR], bounds[item, CURVATURE]
    kappa, eta, curvature, not_finite = 0.0, 0.0, 0.0, 0.0
    for i in range(mobile):
        residual, second = absolute_products(N[i], residuals, product)
        error, changed = absolute_products(N[i], jacobians, change)
        f = 1 / weights[i]
        residual += line[5 * mobile + i] + SLOPE_FACTOR * max(abs(line[i]), abs(line[mobile + i]))
        kappa, eta = max(kappa, f * (error + changed)), max(eta, f * residual)
        curvature = max(curvature, f * second)
        errors[i] = f * error
        not_finite += 0 * (residual + error + changed + second)
    measures[0], measures[1] = kappa + not_finite, 4 * curvature * eta + not_finite
    if passes(measures[0], measures[1], eta, radius):
        return True
    half, kappa = 1 - measures[0] / 2, 0.0
    brief = whole and half > 0 and measures[1] / 4 < half * half
    for i in range(mobile):
        clear_range(product, 0, mobile)
        for k in range(mobile):
            f = N[i, k]
            if f != 0:
                for j in range(mobile):
                    product[j] += f * (E[k, j] - S[k, j])
        changed, _ = absolute_products(product, weights, weights)
        changed = errors[i] + changed / weights[i]
        kappa, not_finite = max(kappa, changed), not_finite + 0 * changed
        if brief and not passes(kappa, measures[1], eta, radius):
            return False
    measures[0] = kappa + not_finite
    return passes(measures[0], measures[1], eta, radius)


@part
def certify_chord(plan, numbers, choice, scratch, width, segment, closure_error):
    """Write κ, 4 λ η and a flag into `measures`; the flag is 1 if a chord is certified.

    Segment 0 is the chord from node 0 to node 2, and segments 1 and 2 are its halves. The inverse is that of
    the system at either end, where frames, values and first order were computed too.
    """
    mobile, count = plan[0, lay.COLUMNS], plan[2, lay.SYSTEM]
    (cols, geometry), (items, vectors), _, _, _, rest = sections(plan, numbers)
    space = closing_space(plan, width, scratch)
    F, value, g, begun, found, _, _, systems, inverses, nodes, _, last, weights, measures, work = space
    a, e, h = 1 if segment == 2 else 0, 1 if segment == 1 else 2, 0 if segment == 0 else 1
    share, w, N = 1.0 if segment == 0 else 0.5, weights[h], table(inverses[h], 0, mobile, mobile)
    d, product, line = work[:mobile], work[mobile : 2 * mobile], work[2 * mobile : 10 * mobile]
    bounds, S, E = table(work, 10 * mobile, count, BOUNDS_WIDTH), systems[a], systems[e]
    chord(cols, rest, nodes, a, e, d)
    caused = slopes(mobile, choice, vectors, begun, found, share, d, S, E, N, w, last, line)
    error = closure_error
    for i in range(count):
        error = max(
            error, bound_residual(cols, geometry, items, vectors, value, g, nodes, a, e, d, w, i, bounds)
        )
    # with these weights the norm is at most the largest error of a row
    radius = max(RADIUS_FACTOR * (caused + error), RADIUS_MIN)
    for i in range(count):
        bound_jacobian(cols, F, items, vectors, d, w, radius, i, bounds)
    certified = certify(
        mobile, choice, closure_error, S, E, N, line, product, bounds, radius, share == 1, measures
    )
    measures[2] = 1 if certified else 0


@helper
def set_middle(cols, rest, choice, line, R, nodes):
    """Compute node 1, the middle of the curve from node 0 to node 2, to second order."""
    for n in range(cols.shape[0]):
        k = cols[n, lay.STATE]
        if cols[n, lay.KIND] != lay.BALL:
            nodes[1, k] = (nodes[0, k] + nodes[2, k]) / 2
        elif cols[n, lay.GROUP] == n:
            same = 0.0
            for c in range(4):
                same += nodes[0, k + c] * nodes[2, k + c]
            sign = 1 if same >= 0 else -1
            for c in range(4):
                nodes[1, k + c] = (nodes[0, k + c] + sign * nodes[2, k + c]) / 2
    # the residual of the chord's middle, by its slopes at both ends
    for j in range(cols.shape[0]):
        R[j] = (line[j] - line[cols.shape[0] + j]) / 8
    move(cols, choice, rest, R, nodes, 1)


@helper
def invert(mobile, choice, vectors, rest, W, pivots, ends, inverse, w):
    """Compute the inverse of a factored system, and the weights and units of the columns."""
    clear_range(inverse, 0, mobile * mobile)
    for i in range(mobile):
        inverse[i * mobile + i] = 1
    solve(W, pivots, ends, inverse, mobile)
    largest = 0.0
    for j in range(mobile):
        n, total = choice[lay.ELIMINATED, j], 0.0
        for k in range(mobile):
            if vectors[choice[lay.USED_ITEM, k], lay.LEVER] != 0:
                total += abs(inverse[j * mobile + k])
        w[n, 0], w[n, 1] = total, rest[n, lay.COLUMN_SCALE]
        largest = max(largest, total)
    for n in range(mobile):
        w[n, 0] = max(w[n, 0], WEIGHT_MIN * largest if largest > 0 else 1.0)


@entry
def closing(plan, numbers, states, goal, choice, scratch, whole, quality, tries):
    """Move closed states (B, S) in place to the goal (B, rows) of all rows; return the number of failures.

    quality (B,) receives the completed share of the path, 1 for members that converged. At most `tries` steps
    are made. `choice` is as in `transfer`, and `whole` (2 or more, M) is scratch.
    """
    forget(plan, scratch)
    return close_members(plan, numbers, states, goal, choice, scratch, whole, quality, tries)


@inlined
def set_aim(mobile, choice, begun, goal, share, aim):
    """Set the goal of the chosen rows to a share of the path from `begun`; all other rows keep their goal."""
    for i in range(mobile):
        if choice[lay.INPUT, i] >= 0:
            row = choice[lay.USED_ROW, i]
            aim[row] = goal[row] if share == 1 else begun[row] + share * (goal[row] - begun[row])


@inlined
def correct(system, left_out, states, b, space, pivots, ends, whole, inverted, start_pivot):
    """Move state b from node 0 to the goal `aim` by Newton's method.

    Return 1 if it converges, 2 if the start already has the values of the goal, else 0; the ratio of the next
    step to this one; the largest value; True if the start is inverted; and its smallest pivot. `whole` is
    True if the goal is the end of the path.
    """
    cols, _, _, vectors, rest, choice, _ = system
    F, value, g, begun, _, aim, W, (S, _, E), inverses, _, R, _, weights, _, work = space
    mobile = cols.shape[0]
    d, N = work[:mobile], table(inverses[0], 0, mobile, mobile)
    fresh, last, stale, converged, ratio, large = True, False, 0.0, 0, SHRINK_MIN, 1.0
    before, size, pivot = 0.0, STEP_MAX / CONTRACTION_MAX, 0.0
    for step in range(STEPS_MAX):
        if step > 0:
            evaluate(system, states, b, F, value, g, E)
            worst, other, large = residuals(vectors, choice, aim, value, mobile, left_out, R)
        else:
            worst, other, large = residuals(vectors, choice, aim, begun, mobile, left_out, R)
        # an ill-conditioned system amplifies the residual: it is reduced until round-off stops it
        good = step == 0 or pivot > lay.GOOD_PIVOT
        done = (
            worst == 0
            or (good and worst <= ROUNDING_RTOL * large)
            or (worst <= CLOSURE_RTOL and step > 0 and not whole)
            or (worst <= CLOSURE_RTOL and step > 1 and worst > before / 2)
        )
        if done and step > 0:
            converged = 1
            break
        if step == 0 and not inverted:
            copy_matrix(W, S)
            start_pivot = factor(W, pivots, ends)
            if not start_pivot > PIVOT_MIN:
                break
            invert(mobile, choice, vectors, rest, W, pivots, ends, inverses[0], weights[0])
            inverted = True
        # after a short step the last system is reused
        if step == 0:
            fresh, pivot = True, start_pivot
        elif not good or last or size > REUSED_STEP_MAX:
            fresh, stale = False, 0.0
            copy_matrix(W, E)
            pivot = factor(W, pivots, ends)
            if not pivot > PIVOT_MIN:
                break
        if done:  # the start has the values of the goal, and the rows fix it
            converged = 2
            break
        before = worst
        next_size = newton_step(W, pivots, ends, N, fresh, d, R)
        # NaN fails this test; near the end round-off decides about the size of steps
        share_max = 1.0 if last else CONTRACTION_MAX
        if not (next_size <= share_max * size or next_size <= CLOSURE_RTOL):
            if step > 0 and worst <= 2 * ROUNDING_RTOL * large:
                converged = 1
            elif step == 0:
                ratio = STEP_FACTOR * STEP_FACTOR * STEP_MAX / next_size
            break
        move(cols, choice, rest, R, states, b)
        # the residual after such a step is below round-off
        settled = next_size * max(size, next_size) <= STEP_PRODUCT_MIN
        settled = settled and next_size * stale <= STALE_PRODUCT_MIN
        stale += next_size
        if step > 0 and pivot > lay.GOOD_PIVOT and settled and other <= CLOSURE_RTOL:
            # where steps shrink slowly, round-off is reached by one more with a new inverse
            if last or next_size * next_size * pivot <= STALE_PRODUCT_MIN * size:
                converged = 1
                break
            last = True
        size = next_size
    return (1 if last else converged), ratio, large, inverted, start_pivot


@inlined
def newton_step(W, pivots, ends, N, fresh, d, R):
    """Replace the residual R (M,) by Newton's step; return its size. N is the inverse if it is `fresh`."""
    mobile, size = R.shape[0], 0.0
    if fresh:
        copy_range(d, 0, R, 0, mobile)
        for i in range(mobile):
            R[i] = 0
            for k in range(mobile):
                R[i] += N[i, k] * d[k]
    else:
        solve(W, pivots, ends, R, 1)
    for n in range(mobile):
        size = max(size, abs(R[n]))
        size += 0 * R[n]
    return size


@inlined
def certify_curve(plan, numbers, system, scratch, space, pivots, ends, closure_error):
    """Return True if the curve from node 0 to node 2 is certified, and the ratio of the next step to it.

    The chord is tried first. If it fails, both halves of the curve are tried.
    """
    cols, _, _, vectors, rest, choice, _ = system
    F, value, g, begun, found, aim, W, (_, M, _), inverses, nodes, R, end_residual, weights, _, work = space
    mobile, certified, ratio = cols.shape[0], False, 0.0
    line, measures = work[2 * mobile : 4 * mobile], space[13]
    clear_range(end_residual, 0, mobile)
    for segment in range(3):
        if segment == 1:
            set_middle(cols, rest, choice, line, R, nodes)
            evaluate(system, nodes, 1, F, value, g, M)
            copy_matrix(W, M)
            if not factor(W, pivots, ends) > PIVOT_MIN:
                break
            invert(mobile, choice, vectors, rest, W, pivots, ends, inverses[1], weights[1])
            for i in range(mobile):
                if choice[lay.INPUT, i] >= 0:
                    row = choice[lay.USED_ROW, i]
                    aim[row] = (begun[row] + found[row]) / 2
            residuals(vectors, choice, aim, value, mobile, 0, end_residual)
        certify_chord(plan, numbers, choice, scratch, nodes.shape[1], segment, closure_error)
        kappa, product, certified = measures[0], measures[1], measures[2] != 0
        if segment == 0:
            # halves have about half of κ and a quarter of η
            kappa, product = kappa / 2, product / 4
        ratio = 1 / (root(product) / STEP_FACTOR + kappa + 1e-9)
        possible = kappa < 1 and product < (1 - kappa) * (1 - kappa)
        if certified == (segment == 0) or not possible:
            break
    return certified, ratio


@helper
def close_members(plan, numbers, states, goal, choice, scratch, whole, quality, tries):
    """Perform `closing`, with the kept system of an earlier call.

    If a member starts at the same state as the previous member, the system of that state is reused, even
    across calls unless `forget` is called.
    """
    mobile, height, left_out = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT], plan[2, lay.LEFT_OUT]
    (cols, geometry), (items, vectors), _, _, _, rest = sections(plan, numbers)
    system, width = (cols, geometry, items, vectors, rest, choice, plan[2, lay.SYSTEM]), states.shape[1]
    space, pivots, ends = closing_space(plan, width, scratch), whole[0], whole[1]
    F, value, g, begun, found, aim, _, (S, _, E), _, nodes, _, _, _, _, _ = space
    # kept: S, `begun` and node 0 are those of the previous member; inverted: N is the inverse of S
    memory = scratch[closing_scratch(plan) - MEMORY_WIDTH :]
    failed, kept, inverted, start_pivot = 0, memory[KEPT] > 0, memory[INVERTED] > 0, memory[START_PIVOT]
    for b in range(states.shape[0]):
        quality[b] = 0
        not_finite = 0.0
        for k in range(width):
            kept = kept and nodes[0, k] == states[b, k]
            nodes[0, k] = states[b, k]
            not_finite += 0 * states[b, k]
        for row in range(height):
            aim[row] = goal[b, row]
            not_finite += 0 * aim[row]
        if not kept:
            evaluate(system, states, b, F, value, g, S)
            copy_range(begun, 0, value, 0, height)
            inverted = False
        kept, closure_error = True, 0.0
        for row in range(height):
            not_finite += 0 * begun[row]
        for i in range(mobile):
            if choice[lay.INPUT, i] < 0:
                row = choice[lay.USED_ROW, i]
                error = abs(goal[b, row] - begun[row]) / vectors[choice[lay.USED_ITEM, i], lay.SCALE]
                closure_error = max(closure_error, error)
        share, part = 0.0, 1.0
        for _ in range(tries if not_finite == 0 else 0):
            end = share + part
            if 1 - end < 1e-3 * part:
                end = 1.0
            set_aim(mobile, choice, begun, goal[b], 1.0 if end == 1 else (end - share) / (1 - share), aim)
            converged, ratio, large, inverted, start_pivot = correct(
                system, left_out, states, b, space, pivots, ends, end == 1, inverted, start_pivot
            )
            certified = converged == 2
            if converged == 1:
                copy_range(found, 0, value, 0, height)
                for i in range(mobile):
                    if choice[lay.INPUT, i] >= 0:
                        found[choice[lay.USED_ROW, i]] = aim[choice[lay.USED_ROW, i]]
                copy_range(nodes[2], 0, states[b], 0, width)
                closure_error = max(closure_error, CLOSURE_RTOL, 2 * ROUNDING_RTOL * large)
                certified, ratio = certify_curve(
                    plan, numbers, system, scratch, space, pivots, ends, closure_error
                )
            if certified:
                share = end
                if share == 1:
                    break
                part *= min(GROWTH_MAX, ratio)
                closure_error = CLOSURE_RTOL
                if converged == 1:
                    copy_range(nodes[0], 0, states[b], 0, width)
                    copy_range(begun, 0, found, 0, height)
                    copy_matrix(S, E)
                    kept = inverted = False
            else:
                part = (end - share) * max(SHRINK_MIN, min(SHRINK_MAX, ratio))
                copy_range(states[b], 0, nodes[0], 0, width)
                if not part > SHARE_MIN:
                    break
            # the rest of the path in equal parts
            part = (1 - share) / max(1, int((1 - share) / part + 0.999))
        quality[b] = share
        if share < 1:
            failed += 1
    memory[KEPT], memory[INVERTED], memory[START_PIVOT] = kept, inverted, start_pivot
    return failed
