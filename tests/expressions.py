"""Printed formulas as data: evaluated for numbers, and compared."""

from __future__ import annotations

from typing import Any

import numpy as np


def evaluate(formula: str, names: dict[str, Any]) -> np.ndarray:
    """Value of a formula of the test data, in Python's spelling."""
    return np.asarray(eval(formula, {"__builtins__": {}}, names))


def angles(names: dict[str, Any], q: np.ndarray) -> dict[str, Any]:
    """The same names with sines and cosines of angles (..., 3) and of their sums: s1, c23, s123 and so on."""
    sums = {"1": q[..., 0], "2": q[..., 1], "3": q[..., 2]}
    sums |= {"12": sums["1"] + sums["2"], "23": sums["2"] + sums["3"]}
    sums["123"] = sums["12"] + sums["3"]
    return (
        names | {f"s{k}": np.sin(x) for k, x in sums.items()} | {f"c{k}": np.cos(x) for k, x in sums.items()}
    )


def rates(names: dict[str, Any], qd: np.ndarray, qdd: np.ndarray) -> dict[str, Any]:
    """The same names with rates w1 … and accelerations a1 …"""
    w = {f"w{k + 1}": qd[..., k] for k in range(3)}
    return names | w | {f"a{k + 1}": qdd[..., k] for k in range(3)}


def relative_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference over largest entry, after broadcasting."""
    a, b = np.broadcast_arrays(a, b)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), np.abs(a).max(), 1e-300))
