"""Task tables: where the rows of a task and the dynamics stand in the tables that task kernels read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kic.dynamics import check_inertia_regular
from kic.errors import InputError
from kic.evaluator import Evaluator
from kic.model import Model
from kic.rows import Rows, names_of


@dataclass(frozen=True)
class TaskTables:
    """What a kernel of tasks is given.

    Attributes
    ----------
    evaluator : Evaluator
        Fills the tables.
    rows : Rows
        Of the task, P of them in M coordinates.
    plan : (…) int
        See `kic.kernels.operational`.
    """

    evaluator: Evaluator
    rows: Rows
    plan: np.ndarray


def task_tables(
    model: Model,
    task: str | Iterable[str],
    order: int,
    dynamics: bool | Literal["inertia"],
    wrt: str | Iterable[str] | None,
) -> TaskTables:
    """Tables for a task of at most as many rows as there are freedoms.

    Raises
    ------
    InputError
        For a task of no rows, or of more than freedoms.
    """
    names = names_of(task, "task")
    if not names:
        raise InputError("Expected at least one row in `task`, got none.")
    evaluator = Evaluator(model, names, order, dynamics, wrt)
    table, parts = evaluator.layouts
    assert table is not None  # for the type checker: a task has rows
    rows, M = table.rows, len(evaluator.coordinates)
    P = len(rows.labels)
    if P > M:
        raise InputError(
            f"'{model.drawing.name}' has {M} freedoms, but the task has {P} rows: "
            f"{', '.join(rows.labels)}. Name at most as many as there are freedoms.",
            rows=P,
            freedoms=M,
        )
    picked = np.arange(rows.height) if rows.select is None else rows.select
    columns = model.tree.to_coordinates if wrt is None and model.direct else None
    places = [table.places[1][0], table.places[2][0] if order > 1 else 0]
    # of dynamics that are not asked for no place is read
    places += [start for start, _ in parts.places] + [0] * (4 - len(parts.places))
    in_order = range(M) if columns is None else columns
    return TaskTables(evaluator, rows, np.array([M, P, columns is None, *places, *picked, *in_order]))


def check_inertia(evaluator: Evaluator, states: np.ndarray, table: np.ndarray) -> None:
    """Raise an error where I* in a table (B, n) of the dynamics at states (B, S) has no inverse."""
    model, transfer, M = evaluator._model, evaluator._transfer, len(evaluator.coordinates)
    start, _ = evaluator.layouts[1].places[0]
    I = table[:, start : start + M * M].reshape(-1, M, M)
    if transfer is None:
        (I,) = model.in_coordinates([I], [2])
    check_inertia_regular(I, model.inertia_error_at(transfer, states), evaluator.coordinates)
