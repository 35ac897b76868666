"""Tracing of questions about tasks: operational space and redundancy, by the kernels of their evaluators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.errors import InputError
from kic.export.trace import Argument
from kic.export.tracer import OBJECT, Tracer
from kic.kernels import layout as lay
from kic.kinematics.outputs import XYZ, make_rows
from kic.kinematics.queries import kernel
from kic.tasks.operational_space.operational_space import OperationalSpaceTask, Task
from kic.tasks.operational_space.pose import one_part, with_axes
from kic.tasks.operational_space.redundancy import RedundancyTask
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.program import Program
from kic.transfer.targets import frame_part

_Made = list[tuple[Argument, Any]]


def _run(tracer: Tracer, task: Task, before: tuple[Any, ...], *after: Any) -> list[Any]:
    """Return the results of the kernel of a task, one array for each block of its layout."""
    of, order, want = task.asked
    if want & lay.WANT_INERTIA:
        tracer.check_inertia()
    found = tracer.launch(lambda m: m.program(tracer.transfer_of(m), of, order, want))
    table = np.full((1, task.layout.width), 0.0, object)
    scratch, shares = np.full(task.scratch, 0.0, object), np.zeros((1, *task.pivots))
    try:
        kernel(task.entry).py_func(task.plan, *before, found.T, found.K, *after, scratch, shares, table)
    except ZeroDivisionError:  # by a pivot that is exactly zero
        shares.fill(0.0)
    if not shares.min() > lay.PIVOT_SHARE_MIN:
        raise InputError(
            "`of` must be rows that are independent at `near`. Choose another configuration.", key="of"
        )
    return [a[0] for a in task.layout.split(table, (1,))]


def operational_space(tracer: Tracer, of: str | Iterable[str]) -> _Made:
    """Return Λ, the consistent inverse, μ, p and damping of a task; see `OperationalSpace`."""
    e = OperationalSpaceTask(tracer.model, of, tracer.transfer)
    found = _run(tracer, e, (), e.scaling)
    names = "Lambda", "inverse", "mu", "p", "damping"
    about = (
        "[p][r], inertia of the task",
        "[n][p], dynamically consistent inverse",
        "[p][m][n], velocity forces qd[m] mu[p][m][n] qd[n]",
        "[p], load",
        "[p][n], forces damping[p][n] qd[n]",
    )
    return [
        (Argument(n, x.shape, text, e.coordinates if n == "inverse" else e.rows), x)
        for n, x, text in zip(names, found, about, strict=False)
    ]


def resolve_redundancy(
    tracer: Tracer,
    of: str | Iterable[str],
    order: int = 2,
    criterion: Any = "minimum norm",
    law: Any = "consistent",
    damping: Any = None,
) -> _Made:
    """Return rates, accelerations and multipliers; see `RedundancyResolution`."""
    if damping is not None:
        message = (
            "`damping` must be None: it depends on the rank of the task, and exported code has no branches."
        )
        raise InputError(message, key="damping")
    e = RedundancyTask(tracer.model, of, criterion, law, None, tracer.transfer, False, order)
    size, P = tracer.transfer.size, len(e.rows)
    given = [("ud", P, "rates of the task", e.rows), ("udd", P, "accelerations of the task", e.rows)][:order]
    given += [("secondary", size, "rates z whose null-space part is added", e.coordinates)]
    given += [("secondary_rate", size, "their rates", e.coordinates)] * (order > 1)
    motion = np.full((1, e.motions.width), 0.0, object)
    places = [place for place, _ in e.motions.places]
    for name, count, about, labels in given:
        place = places[["ud", "udd", "secondary", "secondary_rate"].index(name)]
        motion[0, place : place + count] = tracer.input(name, np.full(count, 0.7), about, labels)
    matrix, numbers = e.matrix.astype(OBJECT), e.damping.astype(OBJECT)
    qd, qdd, multiplier, *_ = _run(tracer, e, (e.requests[0],), matrix, motion, numbers)
    made = [(Argument("qd", qd.shape, "rates of the coordinates", e.coordinates), qd)]
    if order > 1:
        made.append((Argument("qdd", qdd.shape, "accelerations of the coordinates", e.coordinates), qdd))
    return [*made, (Argument("multiplier", multiplier.shape, "Lagrange multipliers", e.rows), multiplier)]


def pose(tracer: Tracer, of: str | Iterable[str]) -> _Made:
    """Return position and orientation of a frame or body, its twist and its Jacobian; see `PoseMotion`."""
    labels, name = tracer.transfer.labels, one_part(tracer.model.tree, of).name

    def program(model: CompiledModel) -> Program:
        tree = model.tree
        rows = with_axes(tree, make_rows(tree, (name,)), [frame_part(tree, name)])
        return Program(tracer.transfer_of(model), rows, 1, model=model)

    qd = tracer.input("qd", np.full(len(labels), 0.7), "rates of the coordinates", labels)
    found = tracer.launch(program)
    values, G = tracer.rows(found)
    (G,) = tracer.transfer.in_coordinates([G], (1,))
    R = found.arrays[0][0][-9:].reshape(3, 3).T
    rows = found.outputs.rows.labels  # type: ignore[union-attr]
    return [
        (Argument("p", (3,), "position of the reference point", rows[:3]), values[:3]),
        (Argument("R", (3, 3), "[a][b], orientation: column b is axis b of the part in world axes", XYZ), R),
        (Argument("twist", (6,), "velocity of the point, then angular velocity", rows), G @ qd),
        (Argument("G", G.shape, "[p][n] = d twist[p] / d qd[n], the Jacobian", rows), G),
    ]
