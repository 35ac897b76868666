"""Measured columns by name, in units of a model; their derivatives and low-pass filters."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kic.description.units import effort_unit, motor_unit, rate_unit, row_unit, unit_ratio
from kic.errors import InputError, KicError, invalid, unknown
from kic.mechanism.configuration import model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import mapping
from kic.numerics.arrays import real_array
from kic.numerics.tables import DataTable, read_columns

# name of the time, and endings of the names of other columns; values have none
TIME, RATE, ACCELERATION, EFFORT, CURRENT, TORQUE = "t", "rate", "acceleration", "effort", "current", "torque"
MOTION = ("", RATE, ACCELERATION)
# a name, and its unit in brackets
_HEAD = re.compile(r"(.*?)\s*(?:[(\[]([^()\[\]]*)[)\]])?")
# largest deviation of times from equal steps, in steps
TIME_STEP_ATOL = 0.01
# order of the filter, which is applied forward and backward, and largest frequency relative to the rate
FILTER_ORDER, CUTOFF_MAX = 4, 0.2
# cycles of the frequency that the filter disturbs at either end
ENDS_CYCLES = 1.0
SPLINE_DEGREE = 5


class Columns:
    """Measured columns of a mechanism, in units of its model.

    Attributes
    ----------
    table : dict of str to dict of str to (N,)
        Columns by quantity and row.
    unused : list of str
        Names of columns that are no quantities of the mechanism.
    """

    def __init__(self, mechanism: Mechanism, measurements: Any, columns: Mapping[str, str] | None) -> None:
        self.mechanism = mechanism
        self.table: dict[str, dict[str, np.ndarray]] = {
            key: {} for key in (*MOTION, EFFORT, CURRENT, TORQUE, TIME)
        }
        self.unused: list[str] = []
        raw = _raw_columns(measurements)
        named = _names(raw, {} if columns is None else mapping("columns", columns, "names to columns"))
        for head, values in raw.items():
            text, bracket = _HEAD.fullmatch(head).groups()  # type: ignore[union-attr]
            name = named.get(head, text)
            if head not in named and name in named.values():
                self.unused.append(head)  # another column has its name
                continue
            try:
                row, key, unit = self._place(name)
            except KicError:
                if head in named:
                    raise
                self.unused.append(head)
                continue
            ratio = 1.0 if bracket is None else unit_ratio(name, bracket, unit)
            x = real_array(name, values, np.size(values), finite=False)
            if row in self.table[key]:
                raise invalid("measurements", "must have one column of each quantity", name)
            self.table[key][row] = ratio * x
        lengths = {len(x) for rows in self.table.values() for x in rows.values()}
        if len(lengths) > 1:
            raise invalid("measurements", "must have columns of one length", tuple(sorted(lengths)))

    def _place(self, name: str) -> tuple[str, str, str]:
        """Return row, quantity and unit of a column; raise `KicError` if it is none of this mechanism."""
        m, (row, _, key) = self.mechanism, name.rpartition(".")
        if name == TIME:
            return TIME, TIME, m.units.time
        if key in (CURRENT, TORQUE) and row in {motor.name for motor in m.motors}:
            return row, key, motor_unit(m, key)
        if key not in (RATE, ACCELERATION, EFFORT):
            row, key = name, ""
        if model_of(m).rows(row, 1).layout.rows.labels != (row,):
            raise invalid("columns", "must be single rows", name)
        if key == EFFORT:
            return row, key, effort_unit(m, row)
        return row, key, rate_unit(row_unit(m, row), m.units.time, MOTION.index(key))

    @property
    def t(self) -> np.ndarray | None:
        """Array (N,) of times, or None."""
        return self.table[TIME].get(TIME)

    def require(self, what: str, names: Iterable[str], there: Iterable[str]) -> None:
        """Raise an error if columns are missing."""
        missing = tuple(name for name in names if name not in there)
        if missing:
            hint = f" Columns without use: {', '.join(self.unused)}." if self.unused else ""
            raise InputError(
                f"`measurements` must have {what}, got no column {' or '.join(map(repr, missing))}.{hint} "
                "Rename columns, or name them in `columns`.",
                key="measurements",
                missing=missing,
            )

    def keep(self, chosen: np.ndarray) -> None:
        """Leave other samples (N,) out."""
        self.table = {key: {n: x[chosen] for n, x in rows.items()} for key, rows in self.table.items()}

    def series(self, name: str, frequency: float | None) -> list[np.ndarray]:
        """Return values, rates and accelerations (N,) of a row, low-passed at a frequency if it is given.

        What is not measured is differentiated by splines.
        """
        parts: list[Any] = [self.table[key].get(name) for key in MOTION]
        if frequency is None:
            missing = [f"{name}.{key}" for key in MOTION[1:] if name not in self.table[key]]
            self.require("rates and accelerations, or `cutoff` to differentiate values", missing, ())
            return parts
        from scipy.interpolate import make_interp_spline

        if row_unit(self.mechanism, name) == "rad":
            parts[0] = np.unwrap(parts[0])  # an encoder may begin again at zero
        parts = [None if x is None else low_pass(self.t, frequency, x) for x in parts]
        for k in (1, 2):
            if parts[k] is None:
                parts[k] = make_interp_spline(self.t, parts[k - 1], SPLINE_DEGREE)(self.t, 1)
        return parts


def _raw_columns(measurements: Any) -> dict[str, Any]:
    """Return the columns of measurements by their heads."""
    if isinstance(measurements, str | os.PathLike):
        return dict(read_columns(measurements))
    if isinstance(measurements, DataTable):
        axes = [(axis.name, axis.unit, list(axis.labels)) for axis in measurements.index]
        n = len(axes[0][2]) if len(axes) == 1 else 0
        made = [column for v in measurements.variables for column in v.columns(n)] if n else []
        return {f"{name} ({unit})" if unit else name: x for name, unit, x in (*axes, *made)}
    if hasattr(measurements, "columns") and hasattr(measurements, "index"):  # a data frame
        index = measurements.index
        found = {str(name): measurements[name].to_numpy() for name in measurements.columns}
        return found | ({str(index.name): index.to_numpy()} if index.name else {})
    if not isinstance(measurements, Mapping):
        raise invalid("measurements", "must be a CSV file, a table, or a dict of columns", measurements)
    return {str(name): values for name, values in measurements.items()}


def _names(raw: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of columns by head."""
    made = {}
    for name, head in columns.items():
        heads = [text for text in raw if head in (text, _HEAD.fullmatch(text)[1])]  # type: ignore[index]
        if len(heads) != 1:
            raise unknown("column", head, "the measurements", raw)
        made[heads[0]] = name
    return made


def check_filter(t: np.ndarray | None, cutoff: float, whole: bool) -> None:
    """Raise an error if samples at times (N,), `whole` or with empty cells, cannot be filtered."""
    if t is None:
        raise invalid("measurements", "must have the time 't' for `cutoff`", None, "Add a column.")
    steps = np.diff(t) * (len(t) - 1) / (t[-1] - t[0]) if len(t) > 1 and t[-1] != t[0] else np.zeros(1)
    # written so that NaN fails
    if not whole or not np.abs(steps - 1).max() < TIME_STEP_ATOL or t[-1] < t[0]:
        rule = "must increase in equal steps for `cutoff`, without empty cells"
        raise invalid("t", rule, t[:4].tolist(), "Interpolate the samples.")
    rate, cycles = (len(t) - 1) / (t[-1] - t[0]), (t[-1] - t[0]) * cutoff
    if not cycles > 4 * ENDS_CYCLES or not cutoff < CUTOFF_MAX * rate:
        span = f"{4 * ENDS_CYCLES / (t[-1] - t[0]):.4g} and {CUTOFF_MAX * rate:.4g}"
        raise invalid("cutoff", f"must be between {span}, for these times", cutoff)


def low_pass(t: Any, frequency: float, x: np.ndarray) -> np.ndarray:
    """Return series (N, ...) filtered by a Butterworth filter, forward and backward, without delay."""
    from scipy.signal import butter, sosfiltfilt

    sections = butter(FILTER_ORDER, frequency, output="sos", fs=(len(t) - 1) / (t[-1] - t[0]))
    return np.asarray(sosfiltfilt(sections, x, axis=0))


def decimated(t: Any, cutoff: float) -> slice:
    """Return the samples of filtered series at twice the frequency, without those that ends disturb."""
    rate = (len(t) - 1) / (t[-1] - t[0])
    end = int(np.ceil(ENDS_CYCLES * rate / cutoff))
    return slice(end, len(t) - end, max(1, int(rate / (2 * cutoff))))
