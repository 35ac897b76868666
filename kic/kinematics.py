"""Runs the kernels on a tree: rows to tables, in batches and in every scalar."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from kic.masses import Loads, Masses
from kic.rows import Rows
from kic.tree import Tree

# rough cost of one posture (microseconds), by which a batch is given to threads
_START, _PER_NUMBER = 0.2, 0.002


def table_width(rows: int, size: int, order: int) -> int:
    """Numbers of one posture in a table: values, G, H and D side by side."""
    return sum(rows * size**k for k in range(order + 1))


def split_table(T: np.ndarray, rows: int, size: int, order: int, batch: tuple[int, ...]) -> list[np.ndarray]:
    """Views of a table (B, width) as values, G, H, D with the batch axes in front."""
    parts, start = [], 0
    for k in range(order + 1):
        width = rows * size**k
        parts.append(T[:, start : start + width].reshape(*batch, rows, *(size,) * k))
        start += width
    return parts


def in_scalar(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A model table in the scalar type of the states; any layout but this would compile a kernel anew."""
    return np.require(a, dtype, ["C", "A", "W"])


@lru_cache(maxsize=16)
def kernel(name: str) -> Any:
    """A kernel entry by name; the compiler is imported when the first is asked for."""
    if name in ("kinematics", "products"):
        from kic.kernels import kinematics as module
    elif name == "inertia":
        from kic.kernels import inertia as module  # type: ignore[no-redef]
    elif name in ("links", "contracted_inertia"):
        from kic.kernels import links as module  # type: ignore[no-redef]
    else:
        from kic.kernels import loads as module  # type: ignore[no-redef]
    return getattr(module, name)


def run(name: str, dtype: np.dtype) -> Callable[..., None]:
    """The compiled kernel for machine numbers, the same source as plain Python for any other scalar."""
    entry = kernel(name)
    return entry.py_func if dtype.kind == "O" else entry


def in_parts(work: Callable[[int, int], None], count: int, width: int, dtype: np.dtype) -> None:
    """Do a batch on all cores where that pays; symbols stay on one."""
    from kic.kernels.pool import over_batch

    if dtype.kind == "O":
        work(0, count)
    else:
        over_batch(work, count, _START + _PER_NUMBER * width)


def row_tables(
    tree: Tree,
    rows: Rows,
    states: np.ndarray,
    order: int,
    X: np.ndarray | None = None,
    size: int | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Table (B, width) of rows at states (B, nq), in the tree's coordinates or contracted with X."""
    dtype = states.dtype
    columns = tree.size if size is None else size
    width = table_width(rows.height, columns, order)
    T = np.empty((len(states), width), dtype) if out is None else out
    model = (
        tree.cols,
        in_scalar(tree.geometry, dtype),
        rows.items,
        in_scalar(rows.vectors, dtype),
    )

    def work(a: int, b: int) -> None:
        part = None if X is None else X[a:b]
        run("kinematics", dtype)(*model, states[a:b], part, columns, order, rows.height, T[a:b])
        if rows.products:
            run("products", dtype)(*model, states[a:b], part, columns, order, rows.height, T[a:b])

    in_parts(work, len(states), width, dtype)
    return T


def inertia_tables(tree: Tree, masses: Masses, states: np.ndarray) -> np.ndarray:
    """I* and P* side by side, (B, M² + M³), in the tree's coordinates."""
    dtype = states.dtype
    width = tree.size**2 * (1 + tree.size)
    T = np.empty((len(states), width), dtype)
    model = tree.cols, in_scalar(tree.geometry, dtype), masses.frames, in_scalar(masses.numbers, dtype)
    entry = run("inertia", dtype)
    in_parts(lambda a, b: entry(*model, states[a:b], T[a:b]), len(states), width, dtype)
    return T


def contribution_tables(tree: Tree, masses: Masses, states: np.ndarray) -> np.ndarray:
    """Each body's shares, (B, N, 2 M² + 2 M³), in the tree's coordinates."""
    dtype = states.dtype
    width = 2 * tree.size**2 * (1 + tree.size)
    T = np.empty((len(states), len(masses.names), width), dtype)
    model = tree.cols, in_scalar(tree.geometry, dtype), masses.frames, in_scalar(masses.numbers, dtype)
    entry = run("links", dtype)

    def work(a: int, b: int) -> None:
        entry(*model, states[a:b], None, tree.size, T[a:b])

    in_parts(work, len(states), width * len(masses.names), dtype)
    return T


def load_tables(
    tree: Tree, masses: Masses, loads: Loads, states: np.ndarray, applied: np.ndarray
) -> np.ndarray:
    """Tᴸ and damping matrix side by side, (B, M + M²); applied forces are (B or 1, n, 3)."""
    dtype = states.dtype
    width = tree.size * (1 + tree.size)
    T = np.empty((len(states), width), dtype)
    before = (
        tree.cols,
        in_scalar(tree.geometry, dtype),
        masses.frames,
        in_scalar(masses.numbers, dtype),
        in_scalar(loads.gravity, dtype),
        loads.forces,
        in_scalar(loads.places, dtype),
    )
    after = (
        loads.springs,
        in_scalar(loads.spring_numbers, dtype),
        in_scalar(loads.laws, dtype),
    )
    entry = run("loads", dtype)
    force = in_scalar(applied, dtype)

    def work(a: int, b: int) -> None:
        part = force if len(force) == 1 else force[a:b]
        entry(*before, part, *after, states[a:b], T[a:b])

    in_parts(work, len(states), width, dtype)
    return T
