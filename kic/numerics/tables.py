"""Results as tables with names and units: pandas, xarray, and CSV files by the standard library."""

from __future__ import annotations

import csv
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import chain, product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kic.errors import FileError, InputError, invalid, unknown
from kic.numerics.arguments import names_of, text
from kic.numerics.display import Hinting, Printable, Summary
from kic.numerics.files import atomic_write
from kic.numerics.optional import import_optional

if TYPE_CHECKING:
    from pandas import DataFrame
    from xarray import Dataset


@dataclass(frozen=True)
class TableAxis:
    """Named axis of arrays, with a label for each index."""

    name: str
    labels: Iterable[Any]
    unit: str = ""


@dataclass(frozen=True)
class UnitsByLabel:
    """Function that returns the unit of a column from its labels."""

    units: dict[tuple[Any, ...], str]

    def __call__(self, *labels: Any) -> str:
        """Return the unit of the column with the given labels."""
        return self.units[labels]


@dataclass(frozen=True)
class Variable:
    """Array over the index of a table, with optional further axes."""

    name: str
    values: np.ndarray  # (..., n, ...): the axes of the index come first
    unit: str | Callable[..., str] = ""  # a function returns the unit of a column from its labels
    axes: tuple[TableAxis, ...] = ()  # the axes after those of the index

    def __getstate__(self) -> dict[str, Any]:
        """Return the state, with a function of units replaced by a table of units that can be pickled."""
        state = dict(self.__dict__)
        if callable(self.unit):
            labels = product(*(list(axis.labels) for axis in self.axes))
            state["unit"] = UnitsByLabel({some: self.unit(*some) for some in labels})
        return state

    def columns(self, rows: int) -> Iterator[tuple[str, str, np.ndarray]]:
        """Yield name, unit and values (rows,) of each column; further axes give "name[label, label]"."""
        flat = self.values.reshape(rows, prod(self.values.shape[self.values.ndim - len(self.axes) :]))
        for k, labels in enumerate(product(*(list(axis.labels) for axis in self.axes))):
            name = f"{self.name}[{', '.join(map(str, labels))}]" if labels else self.name
            yield name, self.unit(*labels) if callable(self.unit) else self.unit, flat[:, k]


@dataclass(frozen=True, eq=False, repr=False)
class DataTable(Printable):
    """Variables by name over a common index: members of a batch, times or cells of a grid.

    Made by the method ``table`` of results, and by `Configuration.force_table`. ``table["tip.x"]`` is the
    array of a variable.

    Attributes
    ----------
    title : str
        Title.
    index : tuple
        Axes of the index, with `name`, `labels` and `unit`.
    variables : tuple
        Arrays over the index, with `name`, `values` and `unit`, and perhaps further `axes`.

    Examples
    --------
    >>> turn = kic.load("four-bar").path({"A": np.linspace(1.2, 7.4, 25)})
    >>> table = turn.force_table(10.0, 0.0, of="tip.y", transmission="C")
    >>> float(table["A.effort"].max().round(2)), table.to_dataframe().shape
    (1.09, (25, 8))
    """

    _one_line = ("columns",)

    title: str
    index: tuple[TableAxis, ...]
    variables: tuple[Variable, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Tuple of the names of the variables."""
        return tuple(variable.name for variable in self.variables)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.select(text("name", name)).variables[0].values

    def summary(self) -> Summary:
        """Return a table of the smallest, largest and mean finite value of each variable."""
        sheet, cells = Summary(self.title), []
        for v in self.variables:
            known = v.values[np.isfinite(v.values)] if v.values.dtype.kind in "iuf" else v.values[:0]
            ranges = [f"{f(known):.5g}" for f in (np.min, np.max, np.mean)] if known.size else [""] * 3
            cells.append([*ranges, v.unit if isinstance(v.unit, str) else ""])
        sheet.texts("columns", list(self.columns), ["smallest", "largest", "mean", "unit"], cells)
        return sheet

    def select(self, of: str | Iterable[str] | None) -> DataTable:
        """Return the table of the given variables, or of all.

        Parameters
        ----------
        of : str or list of str, optional
            Names of variables.
        """
        if of is None:
            return self
        there, names = {variable.name: variable for variable in self.variables}, names_of(of, "of", 1)
        for name in names:
            if name not in there:
                raise unknown("column", name, self.title, there)
        return replace(self, variables=tuple(there[name] for name in names))

    @property
    def _rows(self) -> list[tuple[Any, ...]]:
        return list(product(*(list(axis.labels) for axis in self.index)))

    def to_dataframe(self) -> DataFrame:
        """Return a pandas DataFrame; its ``attrs["units"]`` has the units of columns and index levels.

        Returns
        -------
        pandas.DataFrame
        """
        pandas = import_optional("pandas", "tables", "Data frames require pandas")
        rows = self._rows
        found = [column for v in self.variables for column in v.columns(len(rows))]
        columns = {name: x for name, _, x in found}
        units = {name: unit for name, unit, _ in found}
        index = None
        if len(self.index) == 1:
            index = pandas.Index([row[0] for row in rows], name=self.index[0].name)
        elif self.index:
            index = pandas.MultiIndex.from_tuples(rows, names=[axis.name for axis in self.index])
        frame = pandas.DataFrame(columns, index=index)
        frame.attrs["units"] = {axis.name: axis.unit for axis in self.index} | units
        return frame

    def to_xarray(self) -> Dataset:
        """Return an xarray Dataset with labelled axes; its variables have the attribute "units".

        Returns
        -------
        xarray.Dataset
        """
        xarray = import_optional("xarray", "tables", "Labelled arrays require xarray")
        shape = tuple(len(list(axis.labels)) for axis in self.index)
        axes = {axis.name: axis for axis in chain(self.index, *(v.axes for v in self.variables))}
        made = {}
        for v in self.variables:
            dims = [axis.name for axis in (*self.index, *v.axes)]
            values = v.values.reshape((*shape, *v.values.shape[v.values.ndim - len(v.axes) :]))
            made[v.name] = (dims, values, {"units": v.unit} if isinstance(v.unit, str) and v.unit else {})
        coordinates = {
            name: (name, np.array(list(axis.labels)), {"units": axis.unit} if axis.unit else {})
            for name, axis in axes.items()
        }
        return xarray.Dataset(made, coordinates, {"title": self.title})

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file with names and units in the first line; no other package is required.

        Names and labels that begin with one of ``= + - @ '``, also in full width, and are not numbers are
        prefixed with an apostrophe, because spreadsheets would evaluate them as formulas.

        Parameters
        ----------
        path : path
            File to write. An existing file is replaced.

        Raises
        ------
        FileError
            If the file cannot be written.
        """
        if not isinstance(path, str | os.PathLike):
            raise invalid("path", "must be a string or os.PathLike", path)
        rows = self._rows
        heads = [(axis.name, axis.unit) for axis in self.index]
        columns = [column for v in self.variables for column in v.columns(len(rows))]
        heads += [(name, unit) for name, unit, _ in columns]
        with atomic_write(path) as stream:
            # lone surrogates in labels are escaped
            file = TextIOWrapper(stream, "utf-8", "backslashreplace", newline="")
            writer = csv.writer(file)
            writer.writerow([_cell(f"{name} ({unit})" if unit else name) for name, unit in heads])
            for k, row in enumerate(rows):
                # repr has all digits
                writer.writerow([*map(_cell, row), *(_cell(x[k]) for _, _, x in columns)])
            file.detach()  # which leaves the stream open


# first characters of a formula in spreadsheets, also in full width, and the mark of a text
_FORMULAS = tuple("=+-@＝＋－＠'")


def _cell(x: Any) -> Any:
    """Return a cell of a CSV file: a Python number with all digits, an escaped text, or '' for NaN."""
    value = x.item() if isinstance(x, np.generic) else x
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULAS) and not _is_number(value) else value
    return "" if isinstance(value, float) and value != value else value


def read_columns(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the columns of a CSV file by the texts in its first line; empty cells are NaN.

    Columns are separated by commas, semicolons or tabs. Empty lines, and lines that begin with #, are left
    out. Raise `FileError` if the file cannot be read, `InputError` for a cell that is not a number.
    """
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, ValueError) as error:  # of the file, its name, or its encoding
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{path}: cannot be read: {reason}. Name a CSV file in UTF-8.", path=path) from None
    numbered = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"]
    if not numbered:
        raise InputError(f"{path}: must have a line with names of columns, got none.", key="path", got=0)
    delimiter = max(",;\t", key=numbered[0][1].count)
    try:
        head, *rows = (next(csv.reader([line], delimiter=delimiter)) for _, line in numbered)
    except csv.Error as error:
        raise InputError(f"{path}: must be a CSV file: {error}.", key="path") from None
    names = [re.sub(f"^'(?=[{''.join(map(re.escape, _FORMULAS))}])", "", name.strip()) for name in head]
    for name in filter(None, names):
        if names.count(name) > 1:
            raise invalid("path", "must have different names of columns", name, "Rename or delete one.")
    numbers = np.full((len(rows), len(names)), np.nan)
    for (line, _), row, place in zip(numbered[1:], rows, numbers, strict=True):
        if len(row) != len(names):
            raise invalid(
                "path", f"must have {len(names)} cells in each line", len(row), f"See line {line} of {path}."
            )
        for k, cell in enumerate(row):
            if cell.strip():
                if not _is_number(cell) or "_" in cell:
                    remedy = f"See line {line}, column '{names[k]}', of {path}; decimals have points."
                    raise invalid("path", "must have numbers", cell, remedy)
                place[k] = float(cell)
    return {name: x for name, x in zip(names, numbers.T, strict=True) if name}


def batch_axes(batch: tuple[int, ...]) -> tuple[TableAxis, ...]:
    """Return the axes of a batch: "member", or "member_1" and so on."""
    names = ["member"] if len(batch) == 1 else [f"member_{k + 1}" for k in range(len(batch))]
    return tuple(TableAxis(name, range(n)) for name, n in zip(names, batch, strict=True))


def per(*units: str) -> str:
    """Return the unit of a derivative with respect to quantities of the given units; '' if one is unknown."""
    if not all(units):
        return ""
    return f"1/{units[0]}" if len(units) == 1 else f"1/({' '.join(units)})"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Tabular(Hinting, ABC):
    """Mixin of results that can be exported."""

    _counterparts: ClassVar[Mapping[str, str]] = {
        "to_csv": "table(of).to_csv(path)",
        "to_dataframe": "table(of).to_dataframe()",
        "to_pandas": "table(of).to_dataframe()",
        "to_xarray": "table(of).to_xarray()",
    }

    @abstractmethod
    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        """Return the table of the given columns, or of the default columns."""

    def table(self, of: str | Iterable[str] | None = None) -> DataTable:
        """Return the values as a table with names and units, for pandas, xarray and CSV files.

        Parameters
        ----------
        of : str or list of str, optional
            Columns: quantities of the result ("G"), or, for configurations and motions, points, joints or
            rows ("tip"). By default all quantities, or the coordinates.

        Returns
        -------
        DataTable
            One row for each member of the batch, time or grid cell; for coefficients and dynamics one for
            each of their rows.
        """
        return self._table(of)
