"""Entries: stages of explicit Runge–Kutta steps of the equations of motion, in one call for each step."""

from __future__ import annotations

from kic.kernels.functions import has_nonfinite
from kic.kernels.jit import entry, helper
from kic.kernels.layout import BALL, COLUMNS, HEADER, KIND, N_ENERGIES, SIZE, STATE
from kic.kernels.motion import motion_in_coordinates, tree_motion
from kic.kernels.newton import closing
from kic.kernels.ranges import clear_range, copy_range


@helper
def stage_point(y, h, weights, K, stage, point):
    """Compute the unknowns y + h Σ weights K of a stage."""
    for i in range(y.shape[0]):
        step = 0.0
        for k in range(stage + 1):
            step += weights[stage, k] * K[k, i]
        point[i] = y[i] + h * step


@helper
def store_rates(size, start, effort, rates, T, rate):
    """Write accelerations and the rates of work, load work and dissipation; return True if all are finite.

    `start` is the place of the accelerations in `rate`, and T is the result of `accelerate`.
    """
    copy_range(rate, start, T, 0, size)
    work = 0.0
    for k in range(size):
        work += effort[k] * rates[k]
    end = start + size
    rate[end], rate[end + 1], rate[end + 2] = work, T[T.shape[0] - 2], T[T.shape[0] - 1]
    return not has_nonfinite(rate)


@entry
def stages_in_coordinates(
    closing_plan, closing_numbers, plan, numbers, applied, choice, aims, start, origin, effort, y, h, weights,
    K, point, states, goal, scratch, whole, T, share, quality, tries,
):  # fmt: skip
    """Compute the derivatives K[1:] of the unknowns at the stages of a step, from K[0] at its start.

    Unknowns are m coordinates, their rates, and three energies. Stage s is at y + h Σ weights[s, k] K[k];
    `point` receives the last. Loops are closed from the state `start`: row `aims[k]` must take the value of
    coordinate k plus origin[k], and the others their values in `goal` (1, rows). Other arguments are as in
    `closing` and `motion_in_coordinates`. Return False if a stage does not close, is singular, or is not
    finite.
    """
    size = plan[1, SIZE]
    for stage in range(weights.shape[0]):
        stage_point(y, h, weights, K, stage, point)
        copy_range(states[0], 0, start, 0, start.shape[0])
        for k in range(size):
            goal[0, aims[k]] = point[k] + origin[k]
        if closing(closing_plan, closing_numbers, states, goal, choice, scratch, whole, share, tries) > 0:
            return False
        rates, rate = point[size : 2 * size], K[stage + 1]
        left = motion_in_coordinates(
            plan, numbers, states[0], applied, choice, rates, effort, effort, scratch, whole, T, quality
        )
        if left != 0:
            return False
        copy_range(rate, 0, rates, 0, size)
        if not store_rates(size, size, effort, rates, T, rate):
            return False
    return True


@entry
def tree_stages(plan, numbers, applied, effort, y, h, weights, K, point, scratch, T):
    """Compute the derivatives K[1:] of the unknowns at the stages of a step of an open chain.

    Unknowns are the state, the rates of the coordinates, and three energies; see `stages_in_coordinates`.
    """
    size = plan[0, COLUMNS]
    width = y.shape[0] - size - N_ENERGIES
    state, rates = point[:width], point[width : width + size]
    for stage in range(weights.shape[0]):
        stage_point(y, h, weights, K, stage, point)
        rate = K[stage + 1]
        clear_range(rate, 0, width)
        for n in range(size):
            place = plan[HEADER + n, STATE]
            if plan[HEADER + n, KIND] < BALL:
                rate[place] = rates[n]
            elif place >= 0:  # the first column of a ball, with the quaternion p: its rate is ½ ω p
                w, a, b, c = state[place], state[place + 1], state[place + 2], state[place + 3]
                wx, wy, wz = rates[n] / 2, rates[n + 1] / 2, rates[n + 2] / 2
                rate[place] = -wx * a - wy * b - wz * c
                rate[place + 1] = wx * w + wy * c - wz * b
                rate[place + 2] = wy * w + wz * a - wx * c
                rate[place + 3] = wz * w + wx * b - wy * a
        if tree_motion(plan, numbers, state, applied, rates, effort, scratch, T) != 0:
            return False
        if not store_rates(size, width, effort, rates, T, rate):
            return False
    return True
