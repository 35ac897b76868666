"""Entries: a mechanism along a motion, by Taylor series in time through the tree and the loops.

A motion needs only directional derivatives. The rates, accelerations and jerks of a frame follow from those
of its parent. The closure rows give the series of the tree's coordinates by the LU factors of `transfer`: G^w
φ̇ = [q̇; 0], G^w φ̈ = [q̈; 0] - H^w(φ̇, φ̇), and likewise to third order. The Newton–Euler equations then
give efforts τ of the tree, and T = Aᵀ τ. No tensor of second order is formed.

Helpers that an entry calls once are `inlined`: a call copies the structures of all passed tables, at the cost
of the arithmetic of a small mechanism.
"""

from __future__ import annotations

import numpy as np

from kic.kernels import layout as lay
from kic.kernels.constraint_jacobian import closure_gap
from kic.kernels.frames import frames, motion, rotates, world_point, world_vector
from kic.kernels.functions import has_nonfinite, larger, root
from kic.kernels.inertia import COMPOSITE_WIDTH, add_armature, composites, moments, momentum
from kic.kernels.jit import entry, helper, inlined
from kic.kernels.linear_map import (
    dense_map,
    linear_start,
    open_members,
    project_matrix,
    project_vector,
    tree_rates,
)
from kic.kernels.linear_solve import factor, factor_symmetric, solve, solve_symmetric, solve_transposed
from kic.kernels.loads import spring_pull
from kic.kernels.offsets import sections
from kic.kernels.outputs import motion_item
from kic.kernels.ranges import add_range, clear_range, copy_range
from kic.kernels.regressor import body_regressor
from kic.kernels.series import first_pass, frame_series, vector_series
from kic.kernels.transfer import assemble, spread
from kic.kernels.transferred_influence import arm
from kic.kernels.vectors import add, add_to, axpy, cross, dot, scale, sub, take, turn, turn_back
from kic.kernels.vectors import symmetric as times_symmetric
from kic.kernels.views import table

# smallest ratio of a pivot of I* to its diagonal entry that needs no further check
GOOD_INERTIA = 1e-9


@inlined
def add_wrench(forces, n, arm_, f):
    """Add a force at an arm from the origin of frame n."""
    add_to(forces, n, lay.WRENCH_MOMENT, cross(arm_, f))
    add_to(forces, n, lay.WRENCH_FORCE, f)


@inlined
def body_wrenches(F, V, bodies, inertias, gravity, want, forces, power):
    """Add the inertial forces of the bodies, minus their weights, to the wrenches of frames.

    A wrench (6,) is the moment about the frame's origin, then the force. The power of the weights is added to
    power[0].
    """
    for i in range(bodies.shape[0]):
        n = bodies[i, lay.CARRIER]
        m, c = inertias[i, lay.MASS], turn(F, n, lay.ROTATION, take(inertias, i, lay.CENTRE))
        first, second, _ = vector_series(V, n, lay.POINT, c, 2)
        f = scale(0, second)
        if want & lay.WANT_INERTIA:
            # Euler's equation in the axes of the frame
            w = turn_back(F, n, lay.ROTATION, take(V, n + 1, lay.ANGULAR_VELOCITY))
            a = turn_back(F, n, lay.ROTATION, take(V, n + 1, lay.ANGULAR_ACCELERATION))
            j = moments(inertias, i)
            moment = add(times_symmetric(j, a), cross(w, times_symmetric(j, w)))
            add_to(forces, n, lay.WRENCH_MOMENT, turn(F, n, lay.ROTATION, moment))
            f = scale(m, second)
        if want & lay.WANT_LOADS:
            weight = scale(m, gravity)
            f = sub(f, weight)
            power[0] += dot(weight, first)
        add_wrench(forces, n, c, f)


@inlined
def applied_wrenches(F, V, pulls, places, applied, b, forces, power):
    """Subtract forces and moments `applied` (B or 1, n, 3) from the wrenches (2-125); add their power."""
    member = b if applied.shape[0] > 1 else 0
    for i in range(pulls.shape[0]):
        n = pulls[i, lay.CARRIER]
        if n < 0:
            continue
        f = (applied[member, i, 0], applied[member, i, 1], applied[member, i, 2])
        if pulls[i, lay.FORCE_AXES] == lay.BODY_AXES:
            f = world_vector(F, n, f)
        if pulls[i, lay.FORCE_KIND] == lay.MOMENT:
            add_to(forces, n, lay.WRENCH_MOMENT, scale(-1, f))
            power[0] += dot(take(V, n + 1, lay.ANGULAR_VELOCITY), f)
        else:
            e = turn(F, n, lay.ROTATION, take(places, i, 0))
            add_wrench(forces, n, e, scale(-1, f))
            power[0] += dot(vector_series(V, n, lay.POINT, e, 1)[0], f)


@inlined
def spring_wrenches(F, V, springs, coils, forces, power):
    """Subtract the tension of springs and dampers between two points; add their dissipation to power[1]."""
    for i in range(springs.shape[0]):
        a, b = springs[i, lay.END_A], springs[i, lay.END_B]
        ea, eb = take(coils, i, lay.POINT_A), take(coils, i, lay.POINT_B)
        pa, pb = world_point(F, a, ea), world_point(F, b, eb)
        ea, eb = world_vector(F, a, ea), world_vector(F, b, eb)
        w = sub(pb, pa)
        rate = sub(vector_series(V, b, lay.POINT, eb, 1)[0], vector_series(V, a, lay.POINT, ea, 1)[0])
        f = scale(spring_pull(w, coils, i), w)
        power[0] -= dot(f, rate)
        if coils[i, lay.DAMPING] != 0:
            length = root(dot(w, w))
            stretch = dot(w, rate) / length
            power[1] += coils[i, lay.DAMPING] * stretch * stretch
            f = axpy(coils[i, lay.DAMPING] * stretch / length, w, f)
        if a >= 0:
            add_wrench(forces, a, ea, scale(-1, f))
        if b >= 0:
            add_wrench(forces, b, eb, f)


@inlined
def tree_efforts(tables, applied, states, b, want, space):
    """Compute the efforts (M,) of a motion of the tree in O(M), and the powers of loads and dampers.

    `tables` are the `sections`, and `space` are the arrays of `tree_space`.
    """
    (cols, _), _, bodies, pulls, springs, rest = tables
    F, V, forces, x, power, t, _ = space
    mobile = cols.shape[0]
    for n in range(mobile):
        for k in range(6):
            forces[n, k] = 0
    power[0] = power[1] = 0
    body_wrenches(F, V, *bodies, take(rest, mobile, lay.GRAVITY), want, forces, power)
    if want & lay.WANT_LOADS:
        applied_wrenches(F, V, *pulls, applied, b, forces, power)
        spring_wrenches(F, V, *springs, forces, power)
    for n in range(mobile - 1, -1, -1):
        s, up = take(F, n, lay.AXIS), cols[n, lay.PARENT]
        moment, force = take(forces, n, lay.WRENCH_MOMENT), take(forces, n, lay.WRENCH_FORCE)
        effort = dot(s, moment) if rotates(cols, n) else dot(s, force)
        if want & lay.WANT_INERTIA:
            effort += rest[n, lay.ARMATURE] * x[mobile + n]
        if up >= 0:
            add_to(forces, up, lay.WRENCH_MOMENT, add(moment, cross(arm(cols, F, n), force)))
            add_to(forces, up, lay.WRENCH_FORCE, force)
        if want & lay.WANT_LOADS:
            drag = rest[n, lay.JOINT_DAMPING] * x[n]
            power[1] += drag * x[n]
            effort += drag
            if cols[n, lay.KIND] <= lay.PRISMATIC:
                pull = rest[n, lay.JOINT_STIFFNESS] * (
                    states[b, cols[n, lay.STATE]] - rest[n, lay.FREE_VALUE]
                )
                power[0] -= pull * x[n]
                effort += pull
        t[n] = effort


@inlined
def tree_inertia(cols, F, C, rest, I):
    """Compute I (M, M) of the tree from composite inertias (2-157) and armature, in O(M × depth)."""
    mobile = cols.shape[0]
    clear_range(I, 0, mobile * mobile)
    for k in range(mobile):
        s, zero, n = take(F, k, lay.AXIS), scale(0, take(F, k, lay.AXIS)), k
        moment, force = momentum(C, k, s, zero) if rotates(cols, k) else momentum(C, k, zero, s)
        while n >= 0:
            s = take(F, n, lay.AXIS)
            f = dot(s, moment) if rotates(cols, n) else dot(s, force)
            I[k * mobile + n] = f
            I[n * mobile + k] = f
            moment = add(moment, cross(arm(cols, F, n), force))
            n = cols[n, lay.PARENT]
    add_armature(rest, mobile, None, mobile, I)


@inlined
def projected_inertia(cols, I, A, size, Y, K):
    """Compute I* = Aᵀ I A (m, m) of columns A (M, m) from I (M, M) (3-34); Y (M, m) is scratch."""
    mobile = cols.shape[0]
    clear_range(Y, 0, mobile * size)
    for k in range(mobile):
        n = k
        while n >= 0:
            f = I[k * mobile + n]
            add_range(Y, k * size, f, A, n * size, size)
            if n != k:
                add_range(Y, n * size, f, A, k * size, size)
            n = cols[n, lay.PARENT]
    clear_range(K, 0, size * size)
    for n in range(mobile):
        for a in range(size):
            f = A[n * size + a]
            if f != 0:
                add_range(K, a * size, f, Y, n * size, size)


@inlined
def chosen_inertia(cols, F, bodies, C, rest, W, A, size, Y, I):
    """Compute I* of columns A; C, W (M, M) and Y (M, m) are scratch."""
    composites(cols, F, *bodies, C)
    tree_inertia(cols, F, C, rest, W)
    projected_inertia(cols, W, A, size, Y, I)


@inlined
def accelerate(size, efforts, start, h, I, L):
    """Replace the bias h (m,) by the accelerations due to `efforts`.

    L (m, m) is scratch. Returns False, and NaN accelerations, for an inertia I* (m, m) that may be singular.
    """
    copy_range(L, 0, I, 0, size * size)
    if not factor_symmetric(L, 0, size) > GOOD_INERTIA:
        for a in range(size):
            h[a] = np.nan
        return False
    for a in range(size):
        h[a] = efforts[start + a] - h[a]
    solve_symmetric(L, 0, size, h, 0, 1)
    return True


@inlined
def store_terms(size, h, I, power, T, place):
    """Write the bias h, I* and the powers after the accelerations at `place`."""
    square = size * size
    copy_range(T, place + size, h, 0, size)
    copy_range(T, place + size + size, I, 0, square)
    copy_range(T, place + size + size + square, power, 0, 2)


@helper
def tree_scratch(mobile, want):
    """Return the ends of the parts of the scratch for the series and forces of a tree."""
    F = mobile * lay.FRAME_WIDTH
    V = F + (mobile + 1) * lay.SERIES_WIDTH
    forces = V + 6 * mobile
    x = forces + 3 * mobile
    power = x + 2
    tau = power + mobile
    C = tau + (COMPOSITE_WIDTH * mobile if want & lay.WANT_FORWARD else 0)
    return F, V, forces, x, power, tau, C


@inlined
def tree_space(mobile, want, scratch):
    """Return views of the scratch: frames, series, wrenches, motion x, powers, efforts, and composites.

    Ground is at rest in the series.
    """
    F, V, forces, x, power, tau, _ = tree_scratch(mobile, want)
    series = table(scratch, F, mobile + 1, lay.SERIES_WIDTH)
    clear_range(scratch, F, lay.SERIES_WIDTH)
    C = table(scratch, tau, mobile if want & lay.WANT_FORWARD else 0, COMPOSITE_WIDTH)
    frame, wrenches = table(scratch, 0, mobile, lay.FRAME_WIDTH), table(scratch, V, mobile, 6)
    return frame, series, wrenches, scratch[forces:x], scratch[x:power], scratch[power:tau], C


@helper
def tree_places(plan):
    """Return the length of the scratch of `tree_motion`."""
    mobile, want = plan[0, lay.COLUMNS], plan[1, lay.WANT]
    more = plan[1, lay.SIZE] if plan[1, lay.TERMS] > 0 else 0
    if want & lay.WANT_REGRESSOR:
        more *= mobile
    return tree_scratch(mobile, want)[6] + (2 * mobile * mobile if want & lay.WANT_FORWARD else 0) + more


@helper
def members(plan, states, first, second, T):
    """Return the number of members and the width of their results; -1 if lengths of arrays disagree."""
    size, length = plan[1, lay.SIZE], plan[2, lay.STATE_SIZE]
    # without joints, T has only the two powers of each member
    count = states.shape[0] // length if length > 0 else T.shape[0] // 2
    width = T.shape[0] // count if count > 0 else 0
    rates = count * size
    if states.shape[0] != count * length or T.shape[0] != count * width or T.shape[0] < rates:
        return -1, width
    return (-1 if first.shape[0] != rates or second.shape[0] != rates else count), width


@helper
def tree_motions(plan, numbers, states, applied, first, second, linear, scratch, T):
    """Compute `tree_motion` in the coordinates of `linear`, or of the tree if it is None.

    With WANT_REGRESSOR, T has the coefficients (m, 10 n) of the inertial parameters of n bodies instead.
    """
    mobile, size, want = plan[0, lay.COLUMNS], plan[1, lay.SIZE], plan[1, lay.WANT]
    count, width = members(plan, states, first, second, T)
    if count < 0:
        return -1
    tables, space = sections(plan, numbers), tree_space(mobile, want, scratch)
    (cols, geometry), _, bodies, _, _, rest = tables
    F, V, _, x, power, tau, C = space
    endC = tree_scratch(mobile, want)[6]
    I, L, efforts, A = scratch[endC:], scratch[endC + mobile * mobile :], tau, None
    if linear is not None:
        efforts, A = scratch[scratch.shape[0] - size :], scratch[endC:]
        if want & lay.WANT_REGRESSOR:
            dense_map(linear, mobile, size, A)
    states, doubtful = table(states, 0, count, plan[2, lay.STATE_SIZE]), 0
    for b in range(count):
        place = b * width
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        tree_rates(linear, mobile, first, b * size, x, 0)
        if want & lay.WANT_FORWARD:
            clear_range(x, mobile, mobile)
        else:
            tree_rates(linear, mobile, second, b * size, x, mobile)
        fine = not (has_nonfinite(states[b]) or has_nonfinite(x[: 2 * mobile]))
        frame_series(cols, F, x, V, 2)
        if want & lay.WANT_REGRESSOR:
            body_regressor(cols, F, V, *bodies, take(rest, mobile, lay.GRAVITY), want, A, size, T, place)
            doubtful += not fine or has_nonfinite(T[place : place + width])
            continue
        tree_efforts(tables, applied, states, b, want, space)
        if linear is not None:
            project_vector(linear, mobile, size, tau, 0, efforts, 0)
        if want & lay.WANT_FORWARD:
            composites(cols, F, *bodies, C)
            tree_inertia(cols, F, C, rest, I)
            if linear is not None:
                project_matrix(linear, mobile, size, I, 0, L, 0)
                copy_range(I, 0, L, 0, size * size)
            if width > size:
                store_terms(size, efforts, I, power, T, place)
                fine = fine and not has_nonfinite(T[place + size : place + width])
            fine = accelerate(size, second, b * size, efforts, I, L) and fine
        if fine and not has_nonfinite(efforts):
            copy_range(T, place, efforts, 0, size)
        else:
            doubtful += 1
    return doubtful


@entry
def tree_motion(plan, numbers, states, applied, first, second, scratch, T):
    """Compute the efforts (M,) of motions of an open chain, or its accelerations due to efforts.

    States, rates `first`, accelerations or efforts `second`, and results T are flat arrays, because making a
    view of an array takes half as long as evaluating a chain. If T is wide enough, the terms of `store_terms`
    follow the accelerations. Returns the number of members whose inertia may be singular or whose results are
    not finite; their efforts or accelerations are not written. Returns -1 if lengths of the arrays disagree.
    """
    return tree_motions(plan, numbers, states, applied, first, second, None, scratch, T)


@entry
def linear_tree_motion(plan, numbers, states, applied, first, second, scratch, T):
    """Compute `tree_motion` in coordinates q with φ - φ₀ = A (q - q₀).

    The returned number includes the members whose couplings do not hold.
    """
    linear = plan[linear_start(plan, plan) :], numbers[linear_start(plan, numbers) :]
    doubtful, length = tree_motions(plan, numbers, states, applied, first, second, linear, scratch, T), 1
    if doubtful < 0:
        return doubtful
    if plan[2, lay.STATE_SIZE] > 0:
        length = plan[2, lay.STATE_SIZE]
    states = table(states, 0, states.shape[0] // length, length)
    return doubtful + open_members(plan, linear[0], linear[1], states)


@helper
def motion_scratch(plan):
    """Return the starts of the parts of the scratch of `motion_in_coordinates`, and the end."""
    mobile, height, size = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT], plan[1, lay.SIZE]
    columns = 1 if plan[1, lay.WANT] & (lay.WANT_FORWARD | lay.WANT_REGRESSOR) else 0
    forward = 1 if plan[1, lay.WANT] & lay.WANT_FORWARD else 0
    tree = tree_scratch(mobile, plan[1, lay.WANT])[6]
    t = tree + 4 * height
    W = t + height * (1 + mobile)
    R = W + mobile * mobile
    late = R + mobile
    efforts = late + mobile
    A = efforts + size
    Y = A + columns * mobile * size
    I = Y + columns * mobile * size
    return tree, t, W, R, late, efforts, A, Y, I, I + forward * 2 * size * size


@inlined
def motion_space(plan, scratch):
    """Return views of the scratch of `motion_in_coordinates`, after those of the tree.

    Series of the rows; values and first order of the rows, the square system (M²,), its right side and
    solution, efforts; for accelerations and regressors, A, a product of the same shape, I* and its factors.
    """
    height, size = plan[2, lay.HEIGHT], plan[1, lay.SIZE]
    tree, t, W, R, late, efforts, A, Y, I, _ = motion_scratch(plan)
    first, L = table(scratch, t + height, height, plan[0, lay.COLUMNS]), I + size * size
    return (
        scratch[tree:t], scratch[t:W], first, scratch[W:R], scratch[R:late], scratch[late:efforts],
        scratch[efforts:A], scratch[A:Y], scratch[Y:I], scratch[I:], scratch[L:],
    )  # fmt: skip


@inlined
def lower_orders(cols, F, V, x, items, vectors, states, b, k, t, height):
    """Compute the rows t, with order k + 1 of the tree's coordinates zero: the part due to lower orders."""
    clear_range(x, k * cols.shape[0], cols.shape[0])
    clear_range(t, 0, 4 * height)
    if k > 0:
        for n in range(first_pass(cols, k + 1), k + 2):
            frame_series(cols, F, x, V, n)
        for i in range(items.shape[0]):
            motion_item(cols, F, V, x, items, vectors, i, states, b, k + 1, t, height)


@inlined
def solve_order(choice, vectors, rest, factors, want, motions, start, t, lower, k, R, late):
    """Compute order k + 1 of the tree's coordinates from the chosen ones, less the rows t[lower :]."""
    mobile, (first, second, third) = factors[0].shape[0], motions
    for i in range(mobile):
        R[i] = -t[lower + choice[lay.USED_ROW, i]]
        a = choice[lay.INPUT, i]
        if a >= 0 and k == 0:
            R[i] += first[start + a]
        elif a >= 0 and k == 2:
            R[i] += third[start + a]
        elif a >= 0 and not want & lay.WANT_FORWARD:
            R[i] += second[start + a]
        R[i] *= 1 / vectors[choice[lay.USED_ITEM, i], lay.SCALE]
    solve(*factors, R, 1)
    spread(mobile, choice, rest, R, late, 1)


@inlined
def unused_residual(choice, vectors, rest, g, late, t, lower, left_out, large):
    """Return the largest of `large` and |late|, and the largest residual of unused rows relative to it."""
    worst = abs(late[0]) * 0
    for n in range(g.shape[1]):
        large = larger(large, abs(late[n]) / abs(rest[n, lay.COLUMN_SCALE]))
    for i in range(left_out):
        row = choice[lay.UNUSED_ROW, i]
        left = t[lower + row]
        for n in range(g.shape[1]):
            left += g[row, n] * late[n]
        scale = abs(vectors[choice[lay.UNUSED_ITEM, i], lay.SCALE])
        worst = larger(worst, abs(left) / scale) + 0 * abs(left)
    return large, (worst / large if large > 0 else worst)


@inlined
def chosen_efforts(mobile, choice, vectors, rest, factors, tau, R, efforts):
    """Compute the efforts T = Aᵀ τ at the coordinates by the `factors` of the system."""
    for j in range(mobile):
        R[j] = rest[choice[lay.ELIMINATED, j], lay.COLUMN_SCALE] * tau[choice[lay.ELIMINATED, j]]
    solve_transposed(*factors, R)
    for i in range(mobile):
        if choice[lay.INPUT, i] >= 0:
            efforts[choice[lay.INPUT, i]] = R[i] / vectors[choice[lay.USED_ITEM, i], lay.SCALE]


@inlined
def chosen_columns(mobile, size, choice, vectors, rest, factors, Y, A):
    """Compute A (M, m), the tree's rates for unit rates of the coordinates; Y (M, m) is scratch."""
    clear_range(Y, 0, mobile * size)
    for i in range(mobile):
        if choice[lay.INPUT, i] >= 0:
            Y[i * size + choice[lay.INPUT, i]] = 1 / vectors[choice[lay.USED_ITEM, i], lay.SCALE]
    solve(*factors, Y, size)
    spread(mobile, choice, rest, Y, A, size)


@entry
def motion_in_coordinates(
    plan, numbers, states, applied, choice, first, second, third, scratch, whole, T, quality
):  # fmt: skip
    """Compute the efforts (m,) of motions in chosen coordinates, or accelerations due to efforts.

    Arguments are as in `tree_motion`; `choice` and `quality` are as in `transfer`. Residuals of unused
    closure rows are relative to the largest rate, acceleration and jerk. With WANT_SERIES, φ̇, φ̈ and, to
    third order, φ⃛ for jerks `third` follow in T. With WANT_REGRESSOR, T has the regressor (m, 10 n) of n
    bodies instead. Returns the number of members that need another choice of rows, whose states do not close
    the loops, whose inertia may be singular, or whose results are not finite. If `quality` has no members,
    the efforts or accelerations of these members are not written.
    """
    mobile, height, size = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT], plan[1, lay.SIZE]
    want, left_out, order = plan[1, lay.WANT], plan[2, lay.LEFT_OUT], plan[1, lay.ORDER]
    count, width = members(plan, states, first, second, T)
    if count < 0:
        return -1
    tables, space = sections(plan, numbers), tree_space(mobile, want, scratch)
    (cols, geometry), (items, vectors), bodies, _, _, rest = tables
    F, V, _, x, power, tau, C = space
    t, value, g, W, R, late, efforts, A, Y, I, L = motion_space(plan, scratch)
    items, allowed = items[: plan[2, lay.SYSTEM]], abs(rest[mobile, lay.ALLOWED])
    system = cols, geometry, items, vectors, rest, choice, items.shape[0]
    factors, motions = (table(W, 0, mobile, mobile), whole[0], whole[1]), (first, second, third)
    doubtful, measured, states = 0, quality.shape[0] > 0, table(states, 0, count, plan[2, lay.STATE_SIZE])
    for b in range(count):
        place = b * width
        assemble(system, states, b, F, value, g, factors[0])
        pivot, gap = factor(*factors), closure_gap(items, vectors, items.shape[0], value)
        if measured:
            quality[b, lay.PIVOT], quality[b, lay.GAP] = pivot, gap
        if pivot == 0:
            if measured:
                quality[b, lay.LARGEST : lay.GAP] = np.nan
                T[place : place + width] = np.nan
            doubtful += 1
            continue
        fine = pivot > lay.GOOD_PIVOT and gap <= 1
        large = first_large = abs(late[0]) * 0
        for k in range(order):
            lower_orders(cols, F, V, x, items, vectors, states, b, k, t, height)
            lower = (k + 1) * height
            solve_order(choice, vectors, rest, factors, want, motions, b * size, t, lower, k, R, late)
            copy_range(x, k * mobile, late, 0, mobile)
            worst = abs(late[0]) * 0
            if left_out > 0:
                large = large * (first_large if k > 0 else 0)
                large, worst = unused_residual(choice, vectors, rest, g, late, t, lower, left_out, large)
                # NaN fails this test
                fine = fine and worst <= allowed
            first_large = large if k == 0 else first_large
            if measured:
                quality[b, lay.LARGEST + k], quality[b, lay.LEFT + k] = 1, worst
        fine = fine and not (has_nonfinite(states[b]) or has_nonfinite(x[: order * mobile]))
        frame_series(cols, F, x, V, 2)
        if want & lay.WANT_REGRESSOR:
            chosen_columns(mobile, size, choice, vectors, rest, factors, Y, A)
            body_regressor(cols, F, V, *bodies, take(rest, mobile, lay.GRAVITY), want, A, size, T, place)
            doubtful += not fine or has_nonfinite(T[place : place + width])
            continue
        tree_efforts(tables, applied, states, b, want, space)
        chosen_efforts(mobile, choice, vectors, rest, factors, tau, R, efforts)
        copy_range(T, place + size, x, 0, order * mobile if want & lay.WANT_SERIES else 0)
        if want & lay.WANT_FORWARD:
            chosen_columns(mobile, size, choice, vectors, rest, factors, Y, A)
            # the factors of the system, in W, are not needed any more
            chosen_inertia(cols, F, bodies, C, rest, W, A, size, Y, I)
            if width > size:
                store_terms(size, efforts, I, power, T, place)
            fine = accelerate(size, second, b * size, efforts, I, L) and fine
        fine = fine and not has_nonfinite(efforts)
        if measured or fine:
            copy_range(T, place, efforts, 0, size)
        doubtful += not fine or has_nonfinite(T[place + size : place + width])
    return doubtful


@helper
def output_scratch(plan):
    """Return the ends of the parts of the scratch of `output_motion`, in the order of their use."""
    mobile = plan[0, lay.COLUMNS]
    V = mobile * lay.FRAME_WIDTH + (mobile + 1) * lay.SERIES_WIDTH
    x = V + 3 * mobile
    return V, x


@entry
def output_motion(plan, numbers, states, first, second, third, scratch, T):
    """Compute values, velocities, accelerations and jerks of rows in T, up to the requested order.

    All arrays are flat, as in `tree_motion`; rates are those of the tree's coordinates. Values are as in
    `first_order`. Returns the number of members that are not finite, or whose couplings do not hold if the
    plan has couplings; -1 if lengths of the arrays disagree.
    """
    mobile, order, rows = plan[0, lay.COLUMNS], plan[1, lay.ORDER], plan[1, lay.ROWS]
    width, length = (order + 1) * rows, plan[2, lay.STATE_SIZE]
    count = T.shape[0] // width
    rates = count * mobile
    if T.shape[0] != count * width or states.shape[0] != count * length:
        return -1
    if first.shape[0] != rates or second.shape[0] != rates or third.shape[0] != rates:
        return -1
    (cols, geometry), (items, vectors), _, _, _, _ = sections(plan, numbers)
    endF, not_finite = mobile * lay.FRAME_WIDTH, 0
    endV, endx = output_scratch(plan)
    lowest = first_pass(cols, order)
    F, V = table(scratch, 0, mobile, lay.FRAME_WIDTH), table(scratch, endF, mobile + 1, lay.SERIES_WIDTH)
    x, states = scratch[endV:endx], table(states, 0, count, length)
    clear_range(scratch, endF, lay.SERIES_WIDTH)
    for b in range(count):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        copy_range(x, 0, first, b * mobile, mobile)
        copy_range(x, mobile, second, b * mobile, mobile)
        copy_range(x, 2 * mobile, third, b * mobile, mobile)
        for k in range(lowest, order + 1):
            frame_series(cols, F, x, V, k)
        t = T[b * width : (b + 1) * width]
        clear_range(t, 0, width)
        for i in range(items.shape[0]):
            motion_item(cols, F, V, x, items, vectors, i, states, b, order, t, rows)
        if has_nonfinite(t) or has_nonfinite(x) or has_nonfinite(states[b]):
            not_finite += 1
    if plan[1, lay.TERMS] > 0:
        terms, factors = plan[linear_start(plan, plan) :], numbers[linear_start(plan, numbers) :]
        not_finite += open_members(plan, terms, factors, states)
    return not_finite
