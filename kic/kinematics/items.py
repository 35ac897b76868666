"""Items: the entries of a question to the kernels, in the axes of the frames that carry them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.description.parts import Point
from kic.kernels.layout import NONE, OMEGA, POINT
from kic.kinematics.tree import Tree


@dataclass(frozen=True)
class Item:
    """One entry for the kernels: what, on which frames, with which vectors (in those frames' axes)."""

    kind: int
    frame_b: int
    frame_a: int = NONE
    local_b: tuple[float, ...] = (0.0, 0.0, 0.0)
    local_a: tuple[float, ...] = (0.0, 0.0, 0.0)
    extra: tuple[float, ...] = (0.0, 0.0, 0.0)
    goes_on: bool = False
    """Whether the next item adds to the same row."""

    @property
    def height(self) -> int:
        """Rows that it makes; none of a term whose row goes on."""
        if self.goes_on:
            return 0
        return 3 if self.kind <= OMEGA else 1


@dataclass(frozen=True)
class Part:
    """What a name stands for: items, labels of their first rows, and how those get their values.

    Attributes
    ----------
    items : list of Item
        Their rows one after the other; those beyond the labels only serve the values.
    labels : list of str
        Names of the first rows.
    valued : list of bool
        Which of them have a value.
    angles : list of (row, sine row, cosine row, drawn)
        Rows whose value is an angle known by its sine and cosine, and what it reads in the drawing.
    offsets : list of (row, drawn)
        Rows whose value is zero in the drawing, and what it reads there.
    """

    items: list[Item]
    labels: list[str]
    valued: list[bool]
    angles: tuple[tuple[int, int, int, float], ...] = ()
    offsets: tuple[tuple[int, float], ...] = ()


def pack(tree: Tree, items: list[Item]) -> tuple[np.ndarray, np.ndarray]:
    """Tables (n, 5) and (n, 9) of the kernels for a list of items, their rows one after the other."""
    table = np.zeros((len(items), 5), dtype=np.int64)
    vectors = np.zeros((len(items), 9), tree.scalar)
    row = 0
    for i, item in enumerate(items):
        ordered = tree.has_ball(item.frame_b) or tree.has_ball(item.frame_a)
        table[i] = (item.kind, item.frame_b, item.frame_a, row, int(ordered))
        vectors[i] = (*item.local_b, *item.local_a, *item.extra)
        row += item.height
    return table, vectors


def point_item(tree: Tree, point: Point) -> Item:
    """Three rows of a point."""
    frame = tree.frame[point.body]
    return Item(POINT, frame, local_b=tuple(tree.local_point(frame, point.at)))
