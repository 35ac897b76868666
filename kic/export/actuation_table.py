"""Tables of the transmission between motors and joints, on a grid."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.units import effort_unit, row_unit
from kic.errors import invalid
from kic.mechanism.configuration import Configuration
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import flag, integer, names_of
from kic.numerics.files import atomic_write
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable


@dataclass(frozen=True, eq=False)
class ActuationTable(Tabular):
    """Values and derivatives of rows on a grid of coordinates, such as joints over motors.

    Attributes
    ----------
    rows, variables : tuple of str
        Names of the P rows and of the M coordinates.
    units : dict of str to str
        Units of the rows and coordinates.
    axes : tuple of ndarray
        Values of each coordinate along its axis of the grid.
    value : (n, …, P) ndarray
        Values of the rows.
    J : (n, …, P, M) ndarray
        Derivatives of the values with respect to the coordinates.
    inertia : (n, …, M, M) ndarray or None
        Reflected inertia I* at the coordinates.

    Examples
    --------
    >>> m = kic.load("five-bar")
    >>> box = {"A": (1.0, 1.4), "E": (1.3, 1.7)}
    >>> t = m.export.actuation_map(["B", "D"]).to_table(limits=box, points=5)
    >>> t.value.shape, t.J.shape, t.inertia.shape
    ((5, 5, 2), (5, 5, 2, 2), (5, 5, 2, 2))
    """

    rows: tuple[str, ...]
    variables: tuple[str, ...]
    units: dict[str, str]
    axes: tuple[np.ndarray, ...]
    value: np.ndarray
    J: np.ndarray
    inertia: np.ndarray | None

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        index = tuple(
            TableAxis(n, x.tolist(), self.units[n]) for n, x in zip(self.variables, self.axes, strict=True)
        )
        row, one, two = (
            TableAxis(k, x) for k, x in (("row", self.rows), ("by", self.variables), ("and", self.variables))
        )
        made = [
            Variable("value", self.value, lambda row: self.units[row], (row,)),
            Variable("J", self.J, lambda row, by: f"{self.units[row]}/{self.units[by]}", (row, one)),
        ]
        if self.inertia is not None:
            made.append(Variable("inertia", self.inertia, lambda i, j: self.units[f"{i}, {j}"], (one, two)))
        return DataTable("table", index, tuple(made)).select(names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file; the suffix of its name selects the format.

        Parameters
        ----------
        path : path
            File to write: ".csv" has one line for each cell, with names and units in the first; ".npz" has
            the attributes as arrays of NumPy. An existing file is replaced.

        Raises
        ------
        FileError
            If the file cannot be written.
        """
        suffix = os.path.splitext(os.fspath(path))[1].lower() if isinstance(path, str | os.PathLike) else ""
        if suffix == ".csv":
            self.table().to_csv(path)
            return
        if suffix != ".npz":
            raise invalid("path", "must end with .csv or .npz", path)
        own: dict[str, Any] = {f"axis_{k + 1}": x for k, x in enumerate(self.axes)}
        own |= {key: getattr(self, key) for key in ("rows", "variables", "value", "J")}
        own["units"] = [self.units[n] for n in (*self.rows, *self.variables)]
        own |= {} if self.inertia is None else {"inertia": self.inertia}
        with atomic_write(path) as file:
            np.savez(file, **own)

    def __repr__(self) -> str:
        grid = " × ".join(f"{len(x)} values of {n}" for n, x in zip(self.variables, self.axes, strict=True))
        return f"table of {', '.join(self.rows)} over {grid}"


def actuation_table(
    m: Mechanism,
    near: Configuration | None,
    of: str | Iterable[str],
    wrt: Any,
    limits: Any,
    points: int = 33,
    inertia: bool = True,
) -> ActuationTable:
    """Return a table of rows `of`; see `ExportedMap.to_table`."""
    from kic.export.certified_polynomials import box_of

    box, count = box_of(m, wrt, limits), integer("points", points, 2)
    axes = tuple(np.linspace(a, b, count) for a, b in box.limits)
    c, found = box.closed(m, near, names_of(of, least=1), list(axes))
    I = c.dynamics(wrt=box.names).I if flag("inertia", inertia) else None
    grid, M = (count,) * len(axes), len(axes)
    units = {n: row_unit(m, n) for n in (*found.rows, *box.names)}
    square = f"{m.units.time}²"
    for i in box.names:
        for j in box.names:
            units[f"{i}, {j}"] = f"{effort_unit(m, i)} {square}/{units[j]}"
    value, J = found.values.reshape(*grid, -1), found.G.reshape(*grid, -1, M)
    return ActuationTable(
        found.rows, box.names, units, axes, value, J, None if I is None else I.reshape(*grid, M, M)
    )
