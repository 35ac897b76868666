"""Items: row descriptors of the kernels, with vectors in the axes of the frames that carry them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kic.description.parts import Point
from kic.kernels import layout as lay
from kic.kinematics.tree import Tree


@dataclass(frozen=True)
class Item:
    """Row descriptor of the kernels: kind, frames, and vectors in the axes of these frames."""

    kind: int
    frame_b: int
    frame_a: int = lay.NONE
    local_b: tuple[float, ...] = (0.0, 0.0, 0.0)
    local_a: tuple[float, ...] = (0.0, 0.0, 0.0)
    extra: tuple[float, ...] = (0.0, 0.0, 0.0)
    has_next_term: bool = False
    """True if the next item is another term of the same rows."""


def heights(items: Iterable[Item]) -> list[int]:
    """Return the number of rows of each item; 0 for a term whose row is continued by the next item."""
    return [0 if item.has_next_term else 3 if item.kind <= lay.OMEGA else 1 for item in items]


@dataclass(frozen=True)
class Part:
    """Items of one name, labels of their rows, and data for the values of these rows."""

    # items, with consecutive rows. Rows without label serve only to compute others.
    items: list[Item]
    labels: list[str]  # names of rows
    valued: list[bool]  # True for each labelled row that has a value
    # (row, sine row, cosine row, reference value): rows whose value is an angle with given sine and cosine
    # rows, and its value in the reference configuration. A cosine row of −1 is the norm of the rows 3 and 2
    # before the sine (see `euler`).
    angles: tuple[tuple[int, int, int, float], ...] = ()
    # (row, reference value): rows computed as zero in the reference configuration, and their value there
    offsets: tuple[tuple[int, float], ...] = ()
    labelled: tuple[int, ...] | None = None
    """Rows with labels; None for the first ones."""


def point_item(tree: Tree, point: Point) -> Item:
    """Return the item of the three rows of a point."""
    frame = tree.frame[point.body]
    return Item(lay.POINT, frame, local_b=tuple(tree.local_point(frame, point.at)))
