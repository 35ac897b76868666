"""Panels: what moves in time, named and with its units, ready to be plotted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kic.drawing import Drawing
from kic.errors import InputError
from kic.picturing.plots import Panel, by_unit
from kic.units import effort_unit, rate_unit, row_unit

# what a derivative of so high order is called
ORDERS = ("value", "rate", "acceleration", "jerk")
# beside rows that move, those that do not (in a plane, say) are left out
STILL = 1e-12


def motion_panels(
    drawing: Drawing, names: Sequence[str], values: np.ndarray, order: int = 0, what: str = ""
) -> list[Panel]:
    """Values (T, n) of rows, or their derivatives in time: a panel for each unit.

    Parameters
    ----------
    drawing : Drawing
        Which knows the units.
    names : list of str
        Of n rows.
    values : (T, n)
        Columns.
    order : {0, 1, 2, 3}
        Which derivative.
    what : str
        What they are called, if not after their order.
    """
    units = [rate_unit(row_unit(drawing, name), drawing.units.time, order) for name in names]
    return by_unit(what or ORDERS[order], units, names, values)


def effort_panels(drawing: Drawing, names: Sequence[str], efforts: np.ndarray) -> list[Panel]:
    """Efforts (T, n) at rows: a panel for each unit."""
    return by_unit("effort", [effort_unit(drawing, name) for name in names], names, efforts)


def part_panels(drawing: Drawing, configuration: Any, names: Sequence[str], which: Any = ...) -> list[Panel]:
    """Values of points, joints, distances or rows at postures, of which an index takes (T,): some panels.

    Names of single rows come first, a panel for each unit; then each part with several. Rows of a part that
    stand still while others of it move are left out, such as z in a plane.
    """
    panels: list[Panel] = []
    plain: list[str] = []
    columns: list[np.ndarray] = []
    for name in names:
        values = configuration.value(name)[which]
        if values.ndim == 1:
            plain.append(name)
            columns.append(values)
            continue
        labels = configuration.coefficients(name, order=1).rows
        moved = np.ptp(values, axis=0) > STILL * max(float(np.abs(values).max()), 1e-300)
        kept = np.flatnonzero(moved) if moved.any() else np.arange(len(labels))
        panels += motion_panels(drawing, [labels[k] for k in kept], values[:, kept])
    if plain:
        panels = motion_panels(drawing, plain, np.stack(columns, axis=1)) + panels
    return panels


def one_line(batch: tuple[int, ...], member: Any) -> tuple[Any, ...]:
    """Index of one course in a batch of courses (beside time).

    Raises
    ------
    InputError
        If there are several and none is named, or there is no such one.
    """
    index = () if member is None else tuple(np.atleast_1d(np.asarray(member)).tolist())
    fits = len(index) == len(batch) and all(
        isinstance(i, int) and -n <= i < n for i, n in zip(index, batch, strict=True)
    )
    if not fits:
        raise InputError(
            f"A plot shows one course; this is a batch {batch} of them. Give `member`, the index of one, as "
            f"member={tuple(0 for _ in batch)}; got {member}."
            if batch
            else f"There is but one course here: leave `member` out, got {member}."
        )
    return index
