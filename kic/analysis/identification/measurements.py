"""Measured columns by name, in units of a model; their derivatives and low-pass filters."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from math import tau
from typing import Any

import numpy as np

from kic.description.units import effort_unit, motor_unit, rate_unit, row_unit, unit_ratio
from kic.errors import InputError, KicError, invalid, unknown
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import instance, mapping, positive
from kic.numerics.arrays import numbers, require_real
from kic.numerics.tables import DataTable, read_columns

# name of the time, and endings of the names of other columns; values have none
TIME, RATE, ACCELERATION, EFFORT, CURRENT, TORQUE = "t", "rate", "acceleration", "effort", "current", "torque"
MOTION = ("", RATE, ACCELERATION)
# a name, and its unit in brackets
_HEAD = re.compile(r"\s*(.*?)\s*(?:[(\[]([^()\[\]]*)[)\]]\s*)?", re.DOTALL)
# largest deviation of times from equal steps, in steps
TIME_STEP_ATOL = 0.01
# order of the filter, which is applied forward and backward, and largest frequency relative to the rate
FILTER_ORDER, CUTOFF_MAX = 4, 0.2
# cycles that the filters of motions, and then of efforts, disturb at either end; fewest of a measurement
MOTION_CYCLES, EFFORT_CYCLES, CYCLES_MIN = 1.0, 2.0, 10.0
# frequencies at which the gain of the filter is averaged
FREQUENCIES = 8192
SPLINE_DEGREE = 5


class Columns:
    """Measured columns of a mechanism, in units of its model.

    Attributes
    ----------
    table : dict of str to dict of str to (N,)
        Columns by quantity and row.
    unused : list of str
        Heads of columns that are no quantities of the mechanism.
    """

    def __init__(self, mechanism: Mechanism, measurements: Any, columns: Mapping[str, str] | None) -> None:
        self.mechanism = mechanism
        self.table: dict[str, dict[str, np.ndarray]] = {
            key: {} for key in (*MOTION, EFFORT, CURRENT, TORQUE, TIME)
        }
        self.unused: list[str] = []
        raw = _raw_columns(measurements)
        named = _names(raw, {} if columns is None else mapping("columns", columns, "names to columns"))
        taken = {_split(name)[0] for name in named.values()}
        for head, values in raw.items():
            name, unit = _split(named.get(head, head))
            if head in named and unit is None:
                unit = _split(head)[1]
            elif head not in named and name in taken:
                self.unused.append(head)
                continue
            try:
                row, key, own = self._place(name)
            except KicError:
                if head in named:
                    raise
                self.unused.append(head)
                continue
            x = require_real(name, numbers(name, values))
            if x.ndim != 1:
                raise invalid(name, "must be one column (N,)", x.shape)
            if np.isinf(x).any():
                raise invalid(name, "must be finite or empty (NaN)", np.inf)
            if row in self.table[key]:
                raise invalid("measurements", "must have one column of each quantity", name)
            self.table[key][row] = x * (1.0 if unit is None else unit_ratio(name, unit, own))
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
            remedy = f"The coordinates are {', '.join(m.coordinates)}."
            raise invalid("columns", "must be single rows", name, remedy)
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

    def keep(self, chosen: Any) -> None:
        """Leave other samples (N,) out."""
        self.table = {key: {n: x[chosen] for n, x in rows.items()} for key, rows in self.table.items()}

    def series(self, name: str, frequency: float | None) -> list[np.ndarray]:
        """Return values, rates and accelerations (N,) of a row, low-passed at a frequency if it is given.

        Rates and accelerations that are not measured are derivatives of splines.
        """
        parts: list[Any] = [self.table[key].get(name) for key in MOTION]
        if self.t is not None and row_unit(self.mechanism, name) == "rad":
            parts[0] = _without_jumps(self.t, *parts[:2]) if frequency is None else np.unwrap(parts[0])
        if frequency is None:
            missing = [f"{name}.{key}" for key in MOTION[1:] if name not in self.table[key]]
            self.require("rates and accelerations, or `cutoff` to differentiate values", missing, ())
            return parts
        from scipy.interpolate import make_interp_spline

        parts = [None if x is None else low_pass(self.t, frequency, x) for x in parts]
        for k in (1, 2):
            if parts[k] is None:
                parts[k] = make_interp_spline(self.t, parts[k - 1], SPLINE_DEGREE)(self.t, 1)
        return parts


def _without_jumps(t: np.ndarray, angle: np.ndarray, rate: np.ndarray | None) -> np.ndarray:
    """Return angles (N,) of an encoder that begins again at zero, without its jumps by whole turns.

    The rate between samples in the order of time shows a jump, where it turns by less than half a turn.
    """
    steps = np.diff(t)
    if rate is None or not (steps > 0).all():
        return angle
    expected = (rate[1:] + rate[:-1]) / 2 * steps
    turns = np.round((np.diff(angle) - expected) / tau)
    fast = np.maximum(np.abs(rate[1:]), np.abs(rate[:-1])) * steps >= tau / 2
    return angle - tau * np.cumsum([0.0, *np.where(fast, 0.0, turns)])


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
        index, units = measurements.index, getattr(measurements, "attrs", {}).get("units", {})
        found = {name: measurements[name].to_numpy() for name in measurements.columns}
        found |= {index.name: index.to_numpy()} if index.name else {}
        return {f"{name} ({units[name]})" if units.get(name) else str(name): x for name, x in found.items()}
    if not isinstance(measurements, Mapping):
        raise invalid("measurements", "must be a CSV file, a table, or a dict of columns", measurements)
    return {str(name): values for name, values in measurements.items()}


def _names(raw: Mapping[str, Any], columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of columns by head."""
    made = {}
    for name, head in columns.items():
        heads = [text for text in raw if head in (text, _split(text)[0])]
        if len(heads) != 1:
            raise unknown("column", head, "the measurements", raw, quoted=False)
        made[heads[0]] = name
    return made


def _split(head: str) -> tuple[str, str | None]:
    """Return the name of a column, and its unit in brackets or None."""
    name, unit = _HEAD.fullmatch(head).groups()  # type: ignore[union-attr]
    return name, unit


def check_near(near: Configuration | None) -> None:
    """Raise an error if `near` is not one configuration or None."""
    if near is not None and instance("near", near, Configuration).batch:
        raise invalid("near", "must be one configuration", near.batch)


def standard_deviations(
    noise: Mapping[str, float], rows: Collection[str], others: Iterable[str] = ()
) -> dict[str, float]:
    """Return given standard deviations of all rows, and of some others."""
    given = mapping("noise", noise, "rows to standard deviations")
    if not set(rows) <= set(given) <= {*rows, *others}:
        more = ", and may have those of coordinates" if others else ""
        raise invalid("noise", f"must have the keys {', '.join(rows)}{more}", tuple(given))
    return {name: positive(f"noise[{name!r}]", x) for name, x in given.items()}


def check_filter(t: np.ndarray | None, cutoff: float, whole: bool) -> None:
    """Raise an error if samples at times (N,), `whole` or with empty cells, cannot be filtered."""
    if t is None:
        raise invalid("measurements", "must have the time 't' for `cutoff`", None, "Add a column.")
    regular = whole and len(t) > 1 and bool(t[-1] > t[0])
    if not regular or np.abs(np.diff(t) * _rate(t) - 1).max() > TIME_STEP_ATOL:
        rule = "must increase in equal steps for `cutoff`, without empty cells"
        raise invalid("t", rule, t[:4].tolist(), "Interpolate the samples.")
    least, most = CYCLES_MIN / (t[-1] - t[0]), CUTOFF_MAX * _rate(t)
    if not least < cutoff < most:
        raise invalid("cutoff", f"must be between {least:.4g} and {most:.4g} for these times", cutoff)


def _rate(t: Any) -> float:
    """Return the samples per time of equal steps."""
    return float((len(t) - 1) / (t[-1] - t[0]))


def _filter(t: Any, frequency: float) -> np.ndarray:
    """Return the sections of a Butterworth filter."""
    from scipy.signal import butter

    return np.asarray(butter(FILTER_ORDER, frequency, output="sos", fs=_rate(t)))


def low_pass(t: Any, frequency: float, x: np.ndarray) -> np.ndarray:
    """Return series (N, ...) filtered forward and backward, without delay."""
    from scipy.signal import sosfiltfilt

    return np.asarray(sosfiltfilt(_filter(t, frequency), x, axis=0))


def passed_noise(t: Any, frequency: float) -> float:
    """Return the share of the standard deviation of white noise that passes the filter."""
    from scipy.signal import sosfreqz

    gain = np.abs(sosfreqz(_filter(t, frequency), FREQUENCIES)[1]) ** 2
    return float(np.sqrt(np.mean(gain**2)))


def within_ends(t: Any, cutoff: float, cycles: float, step: int = 1) -> slice:
    """Return every `step`-th sample, without those of some cycles at either end."""
    end = int(np.ceil(cycles * _rate(t) / cutoff))
    return slice(end, len(t) - end, step)


def independent(t: Any, cutoff: float) -> slice:
    """Return filtered samples, at most two in a cycle of the frequency, without those that ends disturb."""
    return within_ends(t, cutoff, EFFORT_CYCLES, int(np.ceil(_rate(t) / (2 * cutoff))))
