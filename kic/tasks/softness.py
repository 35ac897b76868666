"""The size of a task's rows under a weight, free of units: what damping and rounding are measured by."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from kic.kinematics import WANT_INERTIA
from kic.model import Model
from kic.rows import Rows
from kic.system import column_scales, row_scales
from kic.tasks.weighting import INERTIA_METRIC, UNIT_METRIC, Weighting


def softness(
    model: Model, rows: Rows, weighting: Weighting, wrt: str | Iterable[str] | None, size: int
) -> np.ndarray:
    """What 1 stands for in each row of G Q⁻¹Gᵀ: its units, over a mean of the weight's diagonal.

    Parameters
    ----------
    model : Model
        The mechanism.
    rows : Rows
        The P rows of the task.
    weighting : Weighting
        The weight; of I*, that of the tree as drawn.
    wrt : str or list of str, optional
        The coordinates, as they were asked.
    size : int
        How many they are.

    Returns
    -------
    (B or 1, P)
        For each member of a batch of weights.
    """
    tree = model.tree
    task = row_scales(tree, list(rows.source), model.length)
    task = (task if rows.select is None else task[rows.select]) ** 2
    lengths = column_scales(tree, model.length)
    if weighting.metric == INERTIA_METRIC:
        question = model.dynamics(WANT_INERTIA)
        I = question.model.split(question.table(model.drawn, np.empty((1, 0, 3))), ())[0].real
        return task[None] / np.mean(np.einsum("nn->n", I) * lengths**2)
    transfer = model.asked(wrt)
    if transfer is not None:
        columns = transfer.scale[: transfer.first]
    else:
        columns = lengths if tree.to_coordinates is None else lengths[tree.to_coordinates]
    if weighting.metric == UNIT_METRIC:
        return task[None] / np.mean(columns**2)
    diagonal = np.einsum("bnn->bn", weighting.matrix.reshape(prod(weighting.batch), size, size))
    return task / np.mean(diagonal * columns**2, axis=-1)[:, None]
