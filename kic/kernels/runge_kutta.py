"""Entries: explicit Runge–Kutta steps of the equations of motion, one or many in a call.

Unknowns are positions of m coordinates, their rates, currents of motors with inductance, and energies: work
of efforts, work of loads, dissipation; with motors also the energy supplied to them, and their heat.

Both entries share these arguments. Stage s is at y + h Σ weights[s, k] K[k], and its derivatives are written
into K[s + 1]. `control` describes the step and the method: its entries are named in `layout`. Its task is a
sum of PREPARE, which computes the unknowns of a stage and closes the loops, and EVALUATE, which computes its
derivatives. The scratch `work` begins with `point` (4, N): the integrated unknowns, the same with the values
and rates of prescribed coordinates, the unknowns of the last closed stage, and y at the start of the step.

`acting` contains efforts (m,) at the coordinates and a row for each motor: its constants, its voltage or
torque, and the constant Jacobian (m,) of its angle. `places` (STAGE_HEIGHT, M) contains the indices of the
prescribed coordinates and of their values among the unknowns; `given` (stages, 3, H) contains their values,
rates and accelerations.

After the stages, the error of the step is estimated from its components Σ errors[c, k] K[k], and the next
length is written into `control`. A rejected step is repeated at once if `control` allows it.

With STEP_MOST, further steps follow, up to that number, and the unknowns and closed states at their ends and
at output times become rows of `records`. A step after which the system is much nearer to a singular one is
not recorded, so that the caller takes it. The last step is that after which the drive measure, the squared
norm of the scaled rates of the tree for unit rates of the coordinates, exceeds its limit, or rotations are
far from those of their reference. No step passes a singular system, as every stage is certified.
"""

from __future__ import annotations

from math import cos

import numpy as np

from kic.kernels import layout as lay
from kic.kernels.functions import has_nonfinite, root
from kic.kernels.jit import entry, helper, inlined
from kic.kernels.linear_solve import factor_symmetric, solve_symmetric
from kic.kernels.motion import GOOD_INERTIA, motion_in_coordinates, motion_scratch, tree_motion
from kic.kernels.newton import close_members, closing_scratch, forget
from kic.kernels.offsets import sections
from kic.kernels.ranges import clear_range, copy_range
from kic.kernels.views import table

# distance from the anchor (rad, shares of the length) above which loops are closed from a nearer stage:
# longer steps fail the tests, and dividing them takes longer than inverting another system
FAR_MIN = 0.1
# a singular system may be less than 1.5 steps ahead if the pivot, and its ratio to that before, are smaller
NEAR_PIVOT, PIVOT_RATIO_MIN = 0.03, 0.6
# distance of a time from the next one, at most; a step is at least ten times as long
SPACING_RTOL = 2.0**-52
# trace of a rotation by half of the largest one; larger ones need another reference
REFERENCE_TRACE_MIN = 1 + 2 * cos(lay.ORIENTATION_TURN_MAX / 2)

# factors on the next step: safety, and the smallest; weight of the second component of the error of DOP853
SAFETY_FACTOR, STEP_FACTOR_MIN, SECOND_ERROR_WEIGHT = 0.9, 0.2, 0.01


@inlined
def method_tables(control, unknowns):
    """Return views of the weights of the method and its error, and of the dense output.

    Absolute tolerances (N,) and the times of outputs follow.
    """
    n, start = int(control[lay.STEP_STAGES]), lay.CONTROL_WIDTH
    dense = start + (n + 2) * (n + 1)
    atol = dense + (n + 1) * lay.DENSE_WIDTH
    times, shares = atol + unknowns, table(control, dense, n + 1, lay.DENSE_WIDTH)
    return table(control, start, n + 2, n + 1), shares, control[atol:times], control[times:]


@helper
def stage_scratch(size, unknowns):
    """Return the length of the scratch of `stage_space` without the rest."""
    return 4 * unknowns + lay.QUALITY_WIDTH + size * (2 * size + 3) + 2


@inlined
def stage_space(size, unknowns, work):
    """Return views of the scratch: unknowns (4, N), terms of the dynamics, a linear system, and the rest.

    The quality of the last stage follows the unknowns.
    """
    terms, rest = 4 * unknowns + lay.QUALITY_WIDTH, stage_scratch(size, unknowns)
    solved = rest - size * (size + 1)
    return table(work, 0, 4, unknowns), work[terms:solved], work[solved:rest], work[rest:]


@inlined
def closed_space(closing_plan, length, rest):
    """Return views of the rest of `stage_space`: the last closed state and another, a goal, and the rest."""
    height = closing_plan[2, lay.HEIGHT]
    states = table(rest, 0, 1, length), table(rest, length, 1, length)
    return states, table(rest, 2 * length, 1, height), rest[2 * length + height :]


@inlined
def inputs_of(size, acting):
    """Return views of efforts (m,) and of the table of motors."""
    width = lay.MOTOR_SHAFT + size
    return acting[:size], table(acting, size, (acting.shape[0] - size) // width, width)


@helper
def repeats_step(y, end, K, control):
    """Estimate the error of a step as SciPy does, and write the next length; return True to repeat the step.

    The norm of the error is |e|² / √(e² + 0.01 f²) for the norms of its components e and f.
    """
    if control[lay.STEP_CONTROLLED] == 0:
        return False
    size, n = y.shape[0], int(control[lay.STEP_STAGES])
    (weights, _, atol, _), first, second = method_tables(control, size), 0.0, 0.0
    for i in range(size):
        scale = atol[i] + max(abs(y[i]), abs(end[i])) * control[lay.STEP_RTOL]
        a, b = 0.0, 0.0
        for k in range(int(control[lay.STEP_LAST]) + 1):
            a += weights[n, k] * K[k, i]
            b += weights[n + 1, k] * K[k, i]
        first += (a / scale) * (a / scale)
        second += (b / scale) * (b / scale)
    h, error, factor = control[lay.STEP_LENGTH], 0.0, control[lay.STEP_FACTOR_MAX]
    if first > 0 or second > 0:
        error = h * first / root((first + SECOND_ERROR_WEIGHT * second) * size)
    error += 0 * (first + second)  # NaN is rejected
    if error != 0:
        factor = SAFETY_FACTOR * error ** control[lay.STEP_EXPONENT]
    control[lay.STEP_COUNT] += 1
    if error < 1:
        control[lay.STEP_NEXT], control[lay.STEP_ACCEPTED] = h * min(control[lay.STEP_FACTOR_MAX], factor), 1
        return False
    control[lay.STEP_NEXT] = h * (factor if factor > STEP_FACTOR_MIN else STEP_FACTOR_MIN)
    control[lay.STEP_FACTOR_MAX] = 1
    if control[lay.STEP_REPEATED] == 0 or control[lay.STEP_NEXT] < control[lay.STEP_MIN]:
        return False
    control[lay.STEP_END] = min(control[lay.STEP_START] + control[lay.STEP_NEXT], control[lay.STEP_BOUND])
    control[lay.STEP_LENGTH] = control[lay.STEP_END] - control[lay.STEP_START]
    return True


@inlined
def stage_point(y, control, K, stage, places, given, start, point):
    """Compute the unknowns y + h Σ weights K of a stage, whose rates begin at `start`."""
    h, (weights, _, _, _) = control[lay.STEP_LENGTH], method_tables(control, y.shape[0])
    for i in range(y.shape[0]):
        step = 0.0
        for k in range(stage + 1):
            step += weights[stage, k] * K[k, i]
        point[0, i] = point[1, i] = y[i] + h * step
    for k in range(given.shape[2]):
        point[1, places[lay.HELD_VALUE, k]] = given[stage, 0, k]
        point[1, start + places[lay.HELD, k]] = given[stage, 1, k]


@helper
def quaternion_rate(x, place, a, b, c, scale, rate):
    """Write the rate ½ ω p of the quaternion at index `place` of x, times a scale, for ω = (a, b, c)."""
    wx, wy, wz = a * scale / 2, b * scale / 2, c * scale / 2
    p, q, r, s = x[place], x[place + 1], x[place + 2], x[place + 3]
    rate[place] = -wx * q - wy * r - wz * s
    rate[place + 1] = wx * p + wy * s - wz * r
    rate[place + 2] = wy * p + wz * q - wx * s
    rate[place + 3] = wz * p + wx * r - wy * q


@helper
def unit_scale(x, place):
    """Return the inverse norm of the quaternion at index `place` of x."""
    p, q, r, s = x[place], x[place + 1], x[place + 2], x[place + 3]
    return 1 / root(p * p + q * q + r * r + s * s)


@helper
def rotation_goal(x, place, turned, i, goal, places, origin, k):
    """Write the rows of the rotation from turned[3 i :] to a quaternion; return the trace of it."""
    f = unit_scale(x, place)
    w, a, b, c = f * x[place], f * x[place + 1], f * x[place + 2], f * x[place + 3]
    one = 1 - 2 * (b * b + c * c), 2 * (a * b - w * c), 2 * (a * c + w * b)
    two = 2 * (a * b + w * c), 1 - 2 * (a * a + c * c), 2 * (b * c - w * a)
    three = 2 * (a * c - w * b), 2 * (b * c + w * a), 1 - 2 * (a * a + b * b)
    trace = yz = zx = xy = 0.0
    for j in range(3):  # products of this matrix with the transposed one of the start
        trace += one[j] * turned[3 * i, j] + two[j] * turned[3 * i + 1, j] + three[j] * turned[3 * i + 2, j]
        yz += three[j] * turned[3 * i + 1, j]
        zx += one[j] * turned[3 * i + 2, j]
        xy += two[j] * turned[3 * i, j]
    goal[0, places[lay.AIM, k]] = yz + origin[k]
    goal[0, places[lay.AIM, k + 1]] = zx + origin[k + 1]
    goal[0, places[lay.AIM, k + 2]] = xy + origin[k + 2]
    return trace


@helper
def is_nearer(x, y, before, units):
    """Return True if positions x are far from y, and less than half as far from positions `before`."""
    far, near = 0.0, 0.0
    for k in range(units.shape[0]):
        far = max(far, abs(x[k] - y[k]) * units[k])
        near = max(near, abs(x[k] - before[k]) * units[k])
    return far > FAR_MIN and 2 * near < far


@helper
def add_motors(size, start, motors, x, T, rate):
    """Add motors to the bias and the inertia in T; return power, heat, dissipation, and the next unknown.

    T holds accelerations (size), the bias, efforts at zero acceleration (size), and I* (size², by rows); x
    holds rates from `start`, then currents. Rates of currents are written. The equations are
    L di/dt + R i + k_e u̇ = V and τ = k_t i (2-228 to 2-236).
    """
    n, power, heat, drag = start + size, 0.0, 0.0, 0.0
    for k in range(motors.shape[0]):
        speed, given = 0.0, motors[k, lay.MOTOR_SUPPLY]
        for i in range(size):
            speed += motors[k, lay.MOTOR_SHAFT + i] * x[start + i]
        resistance, back_emf = motors[k, lay.MOTOR_RESISTANCE], motors[k, lay.MOTOR_SPEED_CONSTANT] * speed
        torque = given
        if motors[k, lay.MOTOR_ELECTRICAL] != 0:
            if motors[k, lay.MOTOR_INDUCTANCE] != 0:
                current = x[n]
                rate[n] = (given - resistance * current - back_emf) / motors[k, lay.MOTOR_INDUCTANCE]
                n += 1
            else:
                current = (given - back_emf) / resistance
            torque = motors[k, lay.MOTOR_TORQUE_CONSTANT] * current
            power += given * current
            heat += (resistance * current + back_emf - motors[k, lay.MOTOR_TORQUE_CONSTANT] * speed) * current
        else:
            power += given * speed
        lost = motors[k, lay.MOTOR_DAMPING] * speed
        drag += lost * speed
        for i in range(size):
            ratio = motors[k, lay.MOTOR_SHAFT + i]
            T[size + i] += ratio * (lost - torque)
            for j in range(size):
                other = motors[k, lay.MOTOR_SHAFT + j]
                T[2 * size + i * size + j] += ratio * motors[k, lay.MOTOR_INERTIA] * other
    return power, heat, drag, n


@helper
def driven_accelerations(size, start, stage, effort, places, given, T, solved, rate):
    """Write accelerations due to efforts, and prescribed accelerations; return False if I* is singular."""
    square, first = size * size, 2 * size
    copy_range(solved, 0, T, first, square)
    for i in range(size):
        solved[square + i] = effort[i] - T[size + i]
        for k in range(given.shape[2]):
            solved[square + i] -= T[first + i * size + places[lay.HELD, k]] * given[stage, 2, k]
    for k in range(given.shape[2]):
        n = places[lay.HELD, k]
        for i in range(size):
            solved[n * size + i] = solved[i * size + n] = 0
        solved[n * size + n], solved[square + n] = 1, given[stage, 2, k]
    if not factor_symmetric(solved, 0, size) > GOOD_INERTIA:
        return False
    solve_symmetric(solved, 0, size, solved, square, 1)
    copy_range(rate, start, solved, square, size)
    return True


@helper
def store_rates(size, start, stage, acting, places, given, x, T, solved, rate):
    """Write the derivatives of rates, currents and energies at unknowns x; return True if all are finite.

    T has accelerations and the terms of `store_terms`. `solved` (m (m + 1)) is scratch.
    """
    effort, motors = inputs_of(size, acting)
    count = motors.shape[0]
    power, heat, drag, n = add_motors(size, start, motors, x, T, rate)
    if count == 0 and given.shape[2] == 0:
        copy_range(rate, start, T, 0, size)
    elif not driven_accelerations(size, start, stage, effort, places, given, T, solved, rate):
        return False
    work = 0.0
    for i in range(size):
        work += effort[i] * x[start + i]
    for k in range(given.shape[2]):
        row = places[lay.HELD, k]
        needed = T[size + row]
        for i in range(size):
            needed += T[2 * size + row * size + i] * rate[start + i]
        work += needed * x[start + row]
    end = T.shape[0]
    rate[n], rate[n + 1], rate[n + 2] = work, T[end - 2], T[end - 1] + drag
    if count > 0:
        rate[n + 3], rate[n + 4] = power, heat
    return not has_nonfinite(rate)


@inlined
def position_rates(x, values, count, places, rates, rate):
    """Write the derivatives of values, and of quaternions of `count` orientations."""
    for k in range(values):
        rate[k] = rates[places[lay.VALUED, k]]
    for i in range(count):
        place, k = values + 4 * i, values + 3 * i
        a, b = rates[places[lay.VALUED, k]], rates[places[lay.VALUED, k + 1]]
        c = rates[places[lay.VALUED, k + 2]]
        quaternion_rate(x, place, a, b, c, unit_scale(x, place), rate)


@inlined
def reference_tables(reference, length, count, size):
    """Return views of the origins (m,) of the rows, and of the rotations (n, 3, 3), after the anchor."""
    return reference[length : length + size], table(reference, length + 2 * size + count, 3 * count, 3)


@inlined
def close_stage(closing, reference, y, near, places, size, count, point, states, goal, scratch):
    """Close the loops at the unknowns point[1]; return False if they do not close."""
    length, values, x = states[0].shape[1], size - 3 * count, point[1]
    units = reference[length + size : length + 2 * size + count]
    origin, turned = reference_tables(reference, length, count, size)
    for k in range(values):
        goal[0, places[lay.AIM, k]] = x[k] + origin[k]
    for i in range(count):
        trace = rotation_goal(x, values + 4 * i, turned, i, goal, places, origin, values + 3 * i)
        if not trace >= lay.TRACE_MIN:
            return False
    plan, numbers, choice = closing
    whole, share = places[lay.STAGE_WHOLE :], scratch[closing_scratch(plan) :]
    for attempt in range(2):
        if attempt == 0 and not (near and is_nearer(x, y, point[2], units)):
            continue
        copy_range(states[1][0], 0, states[0][0] if attempt == 0 else reference, 0, length)
        if close_members(plan, numbers, states[1], goal, choice, scratch, whole, share, lay.TRIES) == 0:
            copy_range(states[0][0], 0, states[1][0], 0, length)
            copy_range(point[2], 0, x, 0, values + 4 * count)
            return True
    return False


@helper
def outputs_due(control, unknowns):
    """Return the number of outputs until the end of the step."""
    (_, _, _, times), count = method_tables(control, unknowns), 0
    n = int(control[lay.STEP_OUTPUT])
    while n + count < times.shape[0] and times[n + count] <= control[lay.STEP_END]:
        count += 1
    return count


@inlined
def dense_point(y, control, K, point):
    """Compute the unknowns at the next output, within the step; return its time."""
    _, shares, _, times = method_tables(control, y.shape[0])
    t = times[int(control[lay.STEP_OUTPUT])]
    h = control[lay.STEP_LENGTH]
    x = (t - control[lay.STEP_START]) / h
    for i in range(y.shape[0]):
        point[0, i] = 0.0
    for k in range(K.shape[0]):
        share, power = 0.0, 1.0
        for n in range(lay.DENSE_WIDTH):
            power *= x if n % 2 == 0 else 1 - x
            share += shares[k, n] * power
        for i in range(y.shape[0]):
            point[0, i] += share * K[k, i]
    for i in range(y.shape[0]):
        point[0, i] = point[1, i] = y[i] + h * point[0, i]
    return t


@helper
def write_record(row, t, end, unknowns, state):
    """Write a record: time, 1 at the end of a step, unknowns, and the closed state."""
    row[lay.RECORD_TIME], row[lay.RECORD_END] = t, end
    copy_range(row, lay.RECORD_UNKNOWNS, unknowns, 0, unknowns.shape[0])
    copy_range(row, lay.RECORD_UNKNOWNS + unknowns.shape[0], state, 0, state.shape[0])


@helper
def record_output(records, control, t, unknowns, state, closes):
    """Write the record of the next output, with NaN as state if its loops do not close."""
    row = records[int(control[lay.STEP_RECORDS])]
    write_record(row, t, 0.0, unknowns, state)
    if not closes:
        row[lay.RECORD_UNKNOWNS + unknowns.shape[0]] = np.nan
    control[lay.STEP_RECORDS] += 1
    control[lay.STEP_OUTPUT] += 1


@helper
def accepts(control, y, end, state, records):
    """Record the end of a step after its outputs; return their number, or -1 if no more steps follow."""
    if control[lay.STEP_MOST] == 0 or control[lay.STEP_ACCEPTED] == 0:
        return -1
    due, row = outputs_due(control, y.shape[0]), int(control[lay.STEP_RECORDS])
    if row + due >= records.shape[0]:  # the caller takes the step
        control[lay.STEP_NEXT], control[lay.STEP_ACCEPTED] = control[lay.STEP_TRIAL], 0
        return -1
    write_record(records[row + due], control[lay.STEP_END], 1.0, end, state)
    return due


@helper
def goes_on(control, y, K, records):
    """Begin the next step at the end of the last one; return False if no more steps follow."""
    row, n = int(control[lay.STEP_RECORDS]), int(control[lay.STEP_LAST])
    control[lay.STEP_RECORDS] += 1
    control[lay.STEP_MOST] -= 1
    copy_range(y, 0, records[row], lay.RECORD_UNKNOWNS, y.shape[0])
    copy_range(K[0], 0, K[n], 0, y.shape[0])
    t = control[lay.STEP_END]
    control[lay.STEP_START], control[lay.STEP_FACTOR_MAX], control[lay.STEP_ACCEPTED] = t, lay.FACTOR_MAX, 0
    control[lay.STEP_MIN] = 10 * SPACING_RTOL * abs(t)
    control[lay.STEP_TRIAL] = control[lay.STEP_NEXT] = max(control[lay.STEP_NEXT], control[lay.STEP_MIN])
    control[lay.STEP_END] = min(t + control[lay.STEP_NEXT], control[lay.STEP_BOUND])
    control[lay.STEP_LENGTH] = control[lay.STEP_END] - t
    return control[lay.STEP_MOST] > 0 and t < control[lay.STEP_BOUND]


@inlined
def drive_measure(plan, numbers, choice, scratch):
    """Return the squared norm of the scaled rates of the tree for unit rates of the coordinates."""
    mobile, size, start, measure = plan[0, lay.COLUMNS], plan[1, lay.SIZE], motion_scratch(plan)[6], 0.0
    _, (_, vectors), _, _, _, rest = sections(plan, numbers)
    for i in range(mobile):
        if choice[lay.INPUT, i] >= 0:
            scale = vectors[choice[lay.USED_ITEM, i], lay.SCALE]
            for n in range(mobile):
                rate = scratch[start + n * size + choice[lay.INPUT, i]] * scale / rest[n, lay.COLUMN_SCALE]
                measure += rate * rate
    return measure


@inlined
def stays_regular(control, pivot, measure):
    """Return False if the caller must take the step, as its end is much nearer to a singular system.

    The last step of a call is that after which a measure exceeds its limit.
    """
    if control[lay.STEP_ACCEPTED] == 0:
        return True
    near = pivot < NEAR_PIVOT and pivot < PIVOT_RATIO_MIN * control[lay.STEP_PIVOT]
    control[lay.STEP_PIVOT] = pivot
    if near:
        control[lay.STEP_NEXT], control[lay.STEP_ACCEPTED] = control[lay.STEP_TRIAL], 0
        return False
    if not measure <= control[lay.STEP_DRIVE_MAX]:
        control[lay.STEP_MOST] = 1
    return True


@inlined
def is_turned(x, reference, length, count, size, goal, places):
    """Return True if a rotation is so large that the next ones need another reference."""
    (origin, turned), values = reference_tables(reference, length, count, size), size - 3 * count
    for i in range(count):
        place, k = values + 4 * i, values + 3 * i
        if not rotation_goal(x, place, turned, i, goal, places, origin, k) >= REFERENCE_TRACE_MIN:
            return True
    return False


@entry
def stages_in_coordinates(
    closing_plan, closing_numbers, closing_choice, plan, numbers, applied, choice, places, reference, acting,
    given, K, control, work, records,
):  # fmt: skip
    """Compute stages of steps; return False if one does not close, is singular, or is not finite.

    Positions of the m coordinates are V values and then quaternions of n orientations. places[VALUED] are the
    coordinates of these values and then of the angular velocities. `reference` contains a closed state, the
    anchor, from which loops are closed; origins (m,) of the rows; inverse scales (V + 4 n,) of the positions;
    and rotations (n, 3, 3). Row places[AIM, k] must take the value k plus its origin, or the value of a
    rotation from the given one, which is at most ORIENTATION_TURN_MAX. The scratch holds the goals of other
    rows, as in `closed_space`. A stage far from the anchor is closed from the preceding stage if that is
    nearer; every segment of the path is still certified. The end of a step is the anchor of the next one.
    Outputs whose loops do not close have NaN as state. For other arguments see `closing` and
    `motion_in_coordinates`.
    """
    size, length, unknowns = plan[1, lay.SIZE], plan[2, lay.STATE_SIZE], K.shape[1]
    count = (reference.shape[0] - length - 2 * size) // 10
    values = size - 3 * count
    start, closing = values + 4 * count, (closing_plan, closing_numbers, closing_choice)
    point, T, solved, rest = stage_space(size, unknowns, work)
    states, goal, closing_rest = closed_space(closing_plan, length, rest)
    scratch = closing_rest[closing_scratch(closing_plan) + 1 :]
    quality = table(work, 4 * unknowns, 1, lay.QUALITY_WIDTH)
    x, y, effort, task = point[1], point[3], acting[:size], int(control[lay.STEP_TASK])
    rates, near, due = x[start : start + size], control[lay.STEP_BEGINS] == 0, -1
    first, last = int(control[lay.STEP_FIRST]), int(control[lay.STEP_LAST])
    space = point, states, goal, closing_rest
    if not near:
        forget(closing_plan, closing_rest)
    while True:
        for stage in range(first, last):
            if task & lay.PREPARE:
                stage_point(y, control, K, stage, places, given, start, point)
                if not close_stage(closing, reference, y, near, places, size, count, *space):
                    return False
                near = True
            if task & lay.EVALUATE:
                rate, whole = K[stage + 1], places[lay.STAGE_WHOLE :]
                left = motion_in_coordinates(
                    plan, numbers, states[0][0], applied, choice, rates, effort, effort, scratch, whole, T,
                    quality,
                )  # fmt: skip
                if left != 0:
                    return False
                position_rates(x, values, count, places, rates, rate)
                if not store_rates(size, start, stage, acting, places, given, x, T, solved, rate):
                    return False
        if due < 0:
            if repeats_step(y, point[0], K, control):
                near, first = False, 0
                continue
            if control[lay.STEP_MOST] == 0:
                return True
            if not stays_regular(
                control, quality[0, lay.PIVOT], drive_measure(plan, numbers, choice, scratch)
            ):
                return True
            due = accepts(control, y, point[0], states[0][0], records)
            if due < 0:
                return True
            if is_turned(x, reference, length, count, size, goal, places):
                control[lay.STEP_TURNED] = control[lay.STEP_MOST] = 1
            if due > 0:
                first, last = last, int(control[lay.STEP_STAGES])
                continue
        for _ in range(due):
            t = dense_point(y, control, K, point)
            closes = close_stage(closing, reference, y, near, places, size, count, *space)
            record_output(records, control, t, point[0], states[0][0], closes)
        if not goes_on(control, y, K, records):
            return True
        row = int(control[lay.STEP_RECORDS]) - 1
        copy_range(reference, 0, records[row], lay.RECORD_UNKNOWNS + unknowns, length)
        forget(closing_plan, closing_rest)
        first, last, near, due = 0, int(control[lay.STEP_LAST]), False, -1


@entry
def tree_stages(plan, numbers, applied, places, acting, given, K, control, work, records):
    """Compute stages of steps of an open chain with its state as positions; see `stages_in_coordinates`."""
    size, start = plan[0, lay.COLUMNS], plan[2, lay.STATE_SIZE]
    point, T, solved, scratch = stage_space(size, K.shape[1], work)
    x, y, effort, task, due = point[1], point[3], acting[:size], int(control[lay.STEP_TASK]), -1
    state, rates, nothing = x[:start], x[start : start + size], x[:0]
    first, last = int(control[lay.STEP_FIRST]), int(control[lay.STEP_LAST])
    while True:
        for stage in range(first, last):
            if task & lay.PREPARE:
                stage_point(y, control, K, stage, places, given, start, point)
            if task & lay.EVALUATE:
                rate = K[stage + 1]
                clear_range(rate, 0, start)
                for n in range(size):
                    place = plan[lay.HEADER + n, lay.STATE]
                    if plan[lay.HEADER + n, lay.KIND] < lay.BALL:
                        rate[place] = rates[n]
                    elif place >= 0:  # the first column of a ball
                        quaternion_rate(x, place, rates[n], rates[n + 1], rates[n + 2], 1.0, rate)
                if tree_motion(plan, numbers, state, applied, rates, effort, scratch, T) != 0:
                    return False
                if not store_rates(size, start, stage, acting, places, given, x, T, solved, rate):
                    return False
        if due < 0:
            if repeats_step(y, point[0], K, control):
                first = 0
                continue
            due = accepts(control, y, point[0], nothing, records)
            if due < 0:
                return True
            if due > 0:
                first, last = last, int(control[lay.STEP_STAGES])
                continue
        for _ in range(due):
            t = dense_point(y, control, K, point)
            record_output(records, control, t, point[0], nothing, True)
        if not goes_on(control, y, K, records):
            return True
        first, last, due = 0, int(control[lay.STEP_LAST]), -1
