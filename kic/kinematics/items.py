"""The builder of rows: items that the kernels read, and the properties of their kinds.

An item is one row or three, computed from points and directions that are fixed in frames of the tree, from a
column of the tree, or from rows before it. Outputs, closure conditions, targets and loads are rows of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.kernels import layout as lay
from kic.kinematics.tree import Tree

# poses (4, 4) of one frame in each of two bodies, in the world of the reference configuration
Ends = tuple[np.ndarray, np.ndarray]
# a joint that is closed there is described in the world, whose axes both bodies have
CLOSED: Ends = (np.eye(4), np.eye(4))
ORIGIN = (0.0, 0.0, 0.0)


def _mask(*kinds: int) -> np.ndarray:
    mask = np.zeros(lay.NORM + 2, dtype=bool)  # the kind -1 is the last
    mask[list(kinds)] = True
    return mask


# number of rows of an item, indexed by kinds
HEIGHT = np.where(_mask(lay.WEIGHTED_POINT, lay.POINT, lay.DIRECTION, lay.OMEGA), 3, 1).tolist()
# properties of kinds, as masks that are indexed by kinds
OF_COLUMN = _mask(lay.COORDINATE, lay.LINEAR_TERM)  # depend on column B, and on no frame
LINEAR = _mask(lay.COORDINATE, lay.LINEAR_TERM, lay.PLANE_ANGLE)  # linear in the coordinates of the tree
WEIGHTED = _mask(lay.WEIGHTED_POINT, lay.LINEAR_TERM)  # terms with the factor extra[0]
LENGTH = _mask(lay.WEIGHTED_POINT, lay.POINT, lay.DISTANCE, lay.DOT2, lay.NORM)
ROOT = _mask(lay.DISTANCE, lay.NORM)  # lengths of vectors, whose squares are analytic
COSINE = _mask(lay.DIRECTION, lay.DOT1)  # components of directions
PRODUCT = _mask(lay.DOT1, lay.DOT2, lay.RELATIVE_OMEGA, lay.NORM)  # with a direction that frame A turns
RATE = _mask(lay.OMEGA, lay.RELATIVE_OMEGA)  # angular velocities, which have no values


@dataclass(frozen=True)
class Item:
    """Row descriptor of the kernels: kind, frames, and vectors in the axes of these frames."""

    kind: int
    frame_b: int
    frame_a: int = lay.NONE
    local_b: tuple[float, ...] = ORIGIN
    local_a: tuple[float, ...] = ORIGIN
    extra: tuple[float, ...] = ORIGIN
    has_next_term: bool = False
    """True if the next item is another term of the same rows."""

    @staticmethod
    def point(frame: int, local: Iterable[float] = ORIGIN) -> Item:
        """Return the three rows of the position of a point of a frame, in its axes."""
        return Item(lay.POINT, frame, local_b=tuple(local))

    @staticmethod
    def point_on(tree: Tree, body: str, at: Any) -> Item:
        """Return the three rows of the position of a point of a body, from its reference position."""
        frame = tree.frame[body]
        return Item(lay.POINT, frame, local_b=tuple(tree.local_point(frame, at)))

    @staticmethod
    def weighted_point(frame: int, local: Iterable[float], weight: float) -> Item:
        """Return the three rows of the position of a point of a frame, in its axes, times a weight."""
        return Item(lay.WEIGHTED_POINT, frame, local_b=tuple(local), extra=(weight, 0.0, 0.0))

    @staticmethod
    def direction(frame: int, local: Iterable[float]) -> Item:
        """Return the three rows of a vector that a frame carries, in its axes."""
        return Item(lay.DIRECTION, frame, local_b=tuple(local))

    @staticmethod
    def angular_velocity(frame: int) -> Item:
        """Return the three rows of the angular velocity of a frame."""
        return Item(lay.OMEGA, frame)

    @staticmethod
    def coordinate(column: int) -> Item:
        """Return the row of a coordinate of the tree."""
        return Item(lay.COORDINATE, column)

    @staticmethod
    def coordinate_term(column: int, factor: float, constant: float) -> Item:
        """Return the row of a factor times a coordinate of the tree, minus a constant."""
        return Item(lay.LINEAR_TERM, column, extra=(factor, constant, 0.0))

    @staticmethod
    def plane_angle(frame: int, normal: Iterable[float], reference: float) -> Item:
        """Return the row of the sum of angles about a normal up to a frame, minus a reference value."""
        return Item(lay.PLANE_ANGLE, frame, local_b=(-reference, 0.0, 0.0), extra=tuple(normal))

    @staticmethod
    def distance(first: Item, second: Item) -> Item:
        """Return the row of the distance of two points."""
        return Item(lay.DISTANCE, second.frame_b, first.frame_b, second.local_b, first.local_b)

    @staticmethod
    def distance_from_line(tree: Tree, point: Item, other: Item, u: np.ndarray, v: np.ndarray) -> list[Item]:
        """Return two rows, and the distance of a point from the line through another one.

        The two rows are components along the unit vectors u and v of the other point's body, perpendicular to
        the line and to one another.
        """
        gap = Item(lay.DOT2, point.frame_b, other.frame_b, point.local_b, other.local_b)
        x, y = (replace(gap, extra=tuple(tree.local_vector(gap.frame_a, w))) for w in (u, v))
        return [x, y, replace(y, kind=lay.NORM)]


def heights(items: Iterable[Item]) -> list[int]:
    """Return the number of rows of each item; 0 for a term whose row is continued by the next item."""
    return [0 if item.has_next_term else HEIGHT[item.kind] for item in items]


@dataclass(frozen=True)
class Part:
    """Items of one name, labels of their rows, and data for the values of these rows."""

    # items, with consecutive rows. Rows without label serve only to compute others.
    items: list[Item]
    labels: list[str]  # names of rows
    valued: list[bool]  # True for each labelled row that has a value
    # (row, sine row, cosine row, reference value): rows whose value is an angle with given sine and cosine
    # rows, and its value in the reference configuration. A cosine row of −1 is the norm of the rows 3 and 2
    # before the sine (see `euler`); −2 likewise, for an angle other than that of Euler.
    angles: tuple[tuple[int, int, int, float], ...] = ()
    # (row, reference value): rows computed as zero in the reference configuration, and their value there
    offsets: tuple[tuple[int, float], ...] = ()
    labelled: tuple[int, ...] | None = None
    """Rows with labels; None for the first ones."""


def axes_of(frames: Iterable[int]) -> list[Item]:
    """Return the nine rows of the axes of each frame."""
    return [Item(lay.DIRECTION, frame, local_b=tuple(e)) for frame in frames for e in np.eye(3)]


def directions_on(tree: Tree, body: str, vectors: Iterable[Any]) -> list[Item]:
    """Return the three rows of each vector that a body carries, from the reference configuration."""
    frame = tree.frame[body]
    return [Item(lay.DIRECTION, frame, local_b=tuple(tree.local_vector(frame, u))) for u in vectors]


def summed(terms: Sequence[Item]) -> list[Item]:
    """Return weighted points or terms as one sum: all have the same rows."""
    return [*(replace(term, has_next_term=True) for term in terms[:-1]), terms[-1]]


class Between:
    """Rows between two bodies, from a point and directions of a frame that coincides in both when closed."""

    def __init__(
        self, tree: Tree, bodies: Iterable[str], at: tuple[float, ...] | None = None, ends: Ends = CLOSED
    ) -> None:
        self._tree, self._axes = tree, [T[:3, :3] for T in ends]
        self._a, self._b = [tree.frame[body] for body in bodies]
        self._here, self._there = [
            tuple(tree.local_point(frame, T[:3, :3] @ (at or ORIGIN) + T[:3, 3]))
            for frame, T in zip((self._a, self._b), ends, strict=True)
        ]

    def _on_first(self, u: np.ndarray) -> tuple[float, ...]:
        return tuple(self._tree.local_vector(self._a, self._axes[0] @ u))

    def coincide(self) -> Item:
        """Return the three rows of the difference of the point in the two bodies."""
        return Item(lay.POINT, self._b, self._a, self._there, self._here)

    def distance_along(self, u: np.ndarray) -> Item:
        """Return the row of the difference of the points along a direction of the first body."""
        return Item(lay.DOT2, self._b, self._a, self._there, self._here, self._on_first(u))

    def cosine(self, u: np.ndarray, w: np.ndarray) -> Item:
        """Return the row of the product of a direction of the first body and one of the second."""
        second = tuple(self._tree.local_vector(self._b, self._axes[1] @ w))
        return Item(lay.DOT1, self._b, self._a, second, self._on_first(u))

    def rate(self, u: np.ndarray) -> Item:
        """Return the row of the relative angular velocity about a direction of the first body."""
        return Item(lay.RELATIVE_OMEGA, self._b, self._a, extra=self._on_first(u))

    def angle(self) -> Item:
        """Return the row of the angle whose sine and cosine, times any length, are the two rows before it."""
        return Item(lay.ANGLE, self._b, self._a)

    def arcsine(self) -> Item:
        """Return the row of the arcsine of the row before it; its cosine is that of an outer Euler angle."""
        return Item(lay.ARCSINE, self._b, self._a)
