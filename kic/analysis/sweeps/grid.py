"""Grids: named axes of inputs, and the neighbours of each cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from kic.errors import InputError, invalid, short_repr
from kic.numerics.arrays import grid_points, reals


@dataclass(frozen=True, eq=False)
class Grid:
    """Axes of a grid, and the inputs that all cells share."""

    axes: dict[str, np.ndarray]  # (n,): values along each axis, increasing or decreasing
    fixed: dict[str, Any]  # inputs that all cells have in common

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def size(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    def columns(self) -> dict[str, np.ndarray]:
        """Return values (cells,) of each axis at all cells, the last axis fastest."""
        return grid_points(self.axes)

    def inputs(self) -> dict[str, Any]:
        """Return all cells as one batch for `Mechanism.at`."""
        return {**self.columns(), **self.fixed}

    def by_distance(self, place: Mapping[str, float]) -> np.ndarray:
        """Return the cells ordered by distance from a point, in grid steps; ties keep their order."""
        squared = np.zeros(self.size)
        for name, x in self.columns().items():
            values = self.axes[name]
            step = np.abs(values[-1] - values[0]) / max(len(values) - 1, 1)
            squared += ((x - place[name]) / (step or 1.0)) ** 2
        return np.argsort(squared, kind="stable")

    def neighbours(self) -> np.ndarray:
        """Return the neighbours (cells, 2 axes) of each cell: before and after it on each axis, or -1."""
        cells = np.arange(self.size).reshape(self.shape)
        neighbours = np.full((*self.shape, 2 * len(self.shape)), -1)
        for axis in range(len(self.shape)):
            inner = np.moveaxis(neighbours, axis, 0)
            along = np.moveaxis(cells, axis, 0)
            inner[1:, ..., 2 * axis] = along[:-1]
            inner[:-1, ..., 2 * axis + 1] = along[1:]
        return neighbours.reshape(self.size, -1)


def make_grid(grid: Any) -> Grid:
    """Return a grid from a dict of names to lists, which are axes, or single values, which are fixed.

    Raise `InputError` for other types, or if an axis is not monotonic, or there is no axis.

    Examples
    --------
    >>> make_grid({"tip.x": [0.0, 1.0, 2.0], "tip.y": 0.5}).shape
    (3,)
    """
    if not isinstance(grid, Mapping):
        raise invalid("grid", "must be a dict that maps names to values, with lists for axes", grid)
    axes: dict[str, np.ndarray] = {}
    fixed: dict[str, Any] = {}
    for name, values in grid.items():
        if not isinstance(name, str):
            raise InputError(
                f"The keys of `grid` must be names, got {short_repr(name)}.", key="grid", got=name
            )
        found = reals(values)
        listed = isinstance(values, list | tuple | np.ndarray) if found is None else found.ndim > 0
        if not listed:
            fixed[name] = values  # a number, or another input of `at`, such as a pose
            continue
        if found is None or not _is_monotonic(found):
            raise InputError(
                f"Axis '{name}' of `grid` must be a list of increasing (or decreasing) numbers, got "
                f"{short_repr(values)}.",
                key="grid",
                name=name,
                got=values,
            )
        axes[name] = found.astype(float)
    if not axes:
        raise InputError(
            "`grid` must have at least one axis: a name with a list of values, such as {'A': "
            f"np.linspace(0, 1, 50)}}; got {short_repr(grid)}. For one configuration, call at().",
            key="grid",
            got=grid,
        )
    return Grid(axes, fixed)


def _is_monotonic(values: np.ndarray) -> bool:
    """Return True if numbers are a strictly monotonic list."""
    if values.ndim != 1 or not values.size:
        return False
    step = np.diff(values)
    return bool((step > 0).all() or (step < 0).all())
