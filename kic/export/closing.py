"""Closing of loops in exported code: a Newton step, a certificate of its result, and the equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.errors import InputError, SingularError
from kic.export.parameters import Parameters
from kic.export.trace import Argument, Trace
from kic.export.tracer import Tracer, arctan2
from kic.kernels import layout as lay
from kic.kernels import newton
from kic.kernels.linear_solve import factor, solve
from kic.kernels.offsets import sections
from kic.kinematics.euler import middle_cosine
from kic.kinematics.items import ROOT
from kic.transfer.compiled_model import CompiledModel

# radius, in the norm of the certificate, within which it bounds derivatives
CERTIFIED_RADIUS_MAX = 0.1
# steps with the inverse of the first; each makes one more order of derivatives exact
_STEPS = {"step": 1, "chords": 2}


def closing(
    model: CompiledModel,
    names: tuple[str, ...],
    near: np.ndarray,
    parameters: Parameters,
    name: str,
    want: str,
) -> Trace:
    """Return the trace of a Newton "step" on the square system, of "chords" or of the "certificate".

    Chords are two steps with one inverse. At a fixed closed state, their first and second derivatives with
    respect to the coordinates are those of closed states.

    The certificate is the theorem of Newton and Kantorovich in the 1-norm of scaled coordinates of the tree
    (rad, shares of lengths). Let N be the inverse of the system, S_j = Σ_i |N_ij|, r its residual, and L_j
    bounds of second derivatives of the rows by lever arms, see `ConstraintSystem.levers`. Then η ≥ ‖N r‖, λ =
    Σ S_j L_j ≥ ‖N J'‖, and κ = 2 Σ S_j max|r|, over the rows of the loops, bounds the share of columns that
    carry a whole loop. If 4 λ η < (1 − κ)², the ball of radius 2 η / (1 − κ) holds exactly one state with
    these coordinates. The result is slightly larger, and NaN where the conditions fail. In a ball about
    `near`, the state is its continuation, because η grows in proportion to the change of q.
    """
    transfer, choice = model.transfer(names), driving_choice(model, names, near)
    q0 = model.coordinate_values(names, near[None])[0].real
    tracer = Tracer(near, model, parameters, lambda model: model.transfer(names))
    q = tracer.input("q", q0, "values of the coordinates", transfer.labels)
    made = _newton(tracer, transfer, choice, q, want)
    tracer.inputs += parameters.arguments
    return tracer.finish(f"{name}_{want}", made)


def equations(tracer: Tracer, names: tuple[str, ...], near: np.ndarray) -> list[tuple[Argument, Any]]:
    """Return rows that vanish on closed states, and the values q of the coordinates.

    The rows are those of the loops that are independent at `near` (rad, shares of the length), and the norms
    of the quaternions.
    """
    model = tracer.model
    return _newton(tracer, model.transfer(names), driving_choice(model, names, near), None, "equations")


def driving_choice(model: CompiledModel, names: tuple[str, ...], near: np.ndarray) -> np.ndarray:
    """Return the rows and the order of elimination at a configuration."""
    transfer = model.transfer(names)
    if transfer.quasi:
        raise InputError(
            f"Exported code cannot close the loops of '{model.description.name}' with angular velocities "
            f"among {', '.join(transfer.labels)}. Name others in `wrt`, or give closed states without "
            "`close`.",
            key="wrt",
        )
    choice = transfer.choice_at(near[None])
    if choice is None:
        raise SingularError(
            f"Coordinates {', '.join(names)} cannot drive '{model.description.name}' at `near`.",
            coordinates=names,
        )
    return choice


def _newton(
    tracer: Tracer, transfer: Any, choice: np.ndarray, q: np.ndarray | None, want: str
) -> list[tuple[Argument, Any]]:
    """Return the state after a "step" or "chords", the "certificate", or the "equations"."""
    own, chosen = transfer.newton_tables[:2]
    names = transfer.names
    (numbers, goal) = tracer.numbers(
        lambda model: [model.transfer(names).own.numbers, _goal(model.transfer(names).system)]
    )
    plan, mobile, system = own.plan, transfer.tree.size, transfer.system
    (cols, geometry), (items, vectors), *_, rest = sections(plan, numbers)
    square = cols, geometry, items, vectors, rest, choice, plan[2, lay.SYSTEM]
    height = system.rows.height

    def zeros(*shape: int) -> np.ndarray:
        return np.full(shape, 0.0, object)

    F, value, W, R = (
        zeros(mobile, lay.FRAME_WIDTH),
        zeros(height * (1 + mobile)),
        zeros(mobile, mobile),
        zeros(mobile),
    )
    g = value[height:].reshape(height, mobile)
    pivots, ends = np.zeros((2, mobile), np.int64)
    states, aim = tracer.state[None].copy(), goal.copy()
    if q is not None:
        aim[chosen] = q + goal[chosen]
    chosen_rows = set(system.picked[: system.n_chosen].tolist())

    def evaluate(W: np.ndarray) -> None:
        newton.evaluate(square, states, 0, F, value, g, W)
        for row, sine, cosine, _ in system.rows.angles:
            angle = arctan2(value[sine], middle_cosine(value, sine) if cosine < 0 else value[cosine])
            if q is None:  # as near its goal as at `near`
                turns = 0.0 if row in chosen_rows else round(float(aim[row] - angle) / (2 * np.pi))
                value[row] = angle + 2 * np.pi * turns
                continue
            apart = aim[row] - angle  # less than half a turn
            value[row] = aim[row] - apart.sin().arctan2(apart.cos())

    evaluate(W)
    used = [(choice[lay.USED_ROW, i], choice[lay.USED_ITEM, i]) for i in range(mobile)]
    if q is None:
        rows = [(value[r] - goal[r]) / vectors[i, lay.SCALE] for r, i in used if r not in chosen_rows]
        for n in range(mobile):
            if cols[n, lay.KIND] == lay.BALL and cols[n, lay.GROUP] == n:
                k = cols[n, lay.STATE]
                rows.append(sum(x * x for x in states[0, k : k + 4]) - 1)
        about = "[k], zero on closed states: rows of loops (rad, shares of the length), norms of quaternions"
        values = value[chosen] - goal[chosen]
        closure = Argument("closure", (len(rows),), about, tuple(f"{k + 1}" for k in range(len(rows))))
        q_about = "values of the coordinates"
        return [(closure, rows), (Argument("q", values.shape, q_about, transfer.labels), values)]
    newton.residuals(vectors, choice, aim, value, mobile, 0, R)
    if not factor(W, pivots, ends) > 0:
        raise SingularError(f"The loops of '{tracer.model.description.name}' are singular at `near`.")
    if want in _STEPS:
        for k in range(_STEPS[want]):
            if k:
                evaluate(zeros(mobile, mobile))
                newton.residuals(vectors, choice, aim, value, mobile, 0, R)
            solve(W, pivots, ends, R, 1)
            newton.move(cols, choice, rest, R, states, 0)
        return [(Argument("moved", states[0].shape, "closed state", tracer.inputs[0].labels), states[0])]
    zero: Any = tracer.graph.node("const", 0.0, 0, 0.0)
    largest = gap = zero
    left_out = choice[[lay.UNUSED_ROW, lay.UNUSED_ITEM], : system.left_out].T
    for row, item in [*used, *left_out.tolist()]:
        residual = abs((aim[row] - value[row]) / vectors[item, lay.SCALE])
        largest = largest.maximum(residual)
        gap = gap if row in chosen_rows else gap.maximum(residual)
    N = zeros(mobile * mobile)
    for i in range(mobile):
        N[i * mobile + i] = 1.0
    solve(W, pivots, ends, N, mobile)
    bound, total = zero, 0.0
    for j, (row, item) in enumerate(used):
        share = sum(abs(x) for x in N[j::mobile])
        total = total + share
        lever, unit = vectors[item, lay.LEVER], 1 / vectors[item, lay.SCALE]
        if lever == 0:
            continue
        for n in np.flatnonzero(system.moving[item]).tolist():
            if cols[n, lay.KIND] == lay.PRISMATIC:
                slide = states[0, cols[n, lay.STATE]] - numbers[n, lay.DRAWN]
                lever = lever + unit * (abs(slide) + rest[n, lay.COLUMN_SCALE] * CERTIFIED_RADIUS_MAX)
        if ROOT[items[item, lay.ITEM]]:
            root = (value[row] * unit - lever * CERTIFIED_RADIUS_MAX).sqrt()  # NaN near length zero
            lever = lever * (1 + lever / (root * root))
        bound = bound + share * lever
    steps = N.reshape(mobile, mobile)
    eta = total * newton.CLOSURE_RTOL + sum(abs(sum(steps[i] * R)) for i in range(mobile))
    left = 1 - 2 * total * gap
    fits = (left * left - 4 * bound * eta).sqrt() * (1 - 2 * eta / CERTIFIED_RADIUS_MAX).sqrt()
    radius = 2 * eta / (left.sqrt() * fits)
    if tracer.parameters.moves(numbers):
        radius = np.nan
    about = (
        "radius of a ball about the state that is proved to hold exactly one closed state, or NaN (1-norm, "
    )
    about += "rad and shares of the length)"
    residual = Argument(
        "residual", (), "largest residual of coordinates and loops (rad, shares of the length)"
    )
    return [(residual, largest), (Argument("radius", (), about), radius)]


def _goal(system: Any) -> np.ndarray:
    goal = np.zeros(system.rows.height, system.tree.scalar)
    for row, drawn in system.rows.offsets:
        goal[row] -= drawn
    for row, *_, reference in system.rows.angles:
        goal[row] -= reference
    return goal
