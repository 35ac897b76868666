"""Legs: parts of a mechanism that are independent of one another for a given place (pose) of a platform.

Without ground and one body, the platform, the graph of bodies may fall apart into legs. Two solutions of a
position problem with the same place of the platform may then exchange a leg: every combination of assembly
modes of the legs is a solution. Solutions are counted by products, so that only few must be tracked.
"""

from __future__ import annotations

import numpy as np

from kic.errors import InputError
from kic.kernels import layout as lay
from kic.kinematics.items import OF_COLUMN, Item, axes_of
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.numerics.graphs import components
from kic.transfer.closure import Closure

# real assembly modes of one target, and complex ones, that are numbered; counts are exact in floating point
MODES_MAX, COMPLEX_MODES_MAX = 100_000, 2**53


class Legs:
    """Legs of a position problem, and an arrangement of complex solutions by places and legs.

    Row n of a place in the arrangement has the nth assembly mode of every leg, or its last one.

    Attributes
    ----------
    count : int
        Number of legs L. A mechanism without platform is one leg, and its whole state is the place.
    platform : int
        Frame of the platform; -1 if the parts are independent without one.
    of_entry, of_column : (S,), (M,) int
        Leg of each entry of the state and of each column of the tree.
    place, rank : (N,) int
        Place of each row of the arrangement, and its number n among the rows of this place.
    modes : (C, L) int
        Number of assembly modes of each leg in each place.
    own : (N, L) bool
        True for legs whose assembly mode is in no earlier row.
    starts : (C,) int
        First row of each place.
    """

    def __init__(self, closure: Closure) -> None:
        self.closure = closure
        tree = closure.transfer.tree
        frames, groups = sorted({-1, *tree.frame.values()}), _rigid_groups(closure)
        moving = groups[:-1] != groups[tree.cols[:, lay.PARENT]]
        found = [_columns_of_legs(closure, groups, groups[frame]) for frame in frames]
        # the smallest legs; if equal, those without a platform, or the most
        sizes = [
            (np.bincount(x[moving]).max(initial=0), frame >= 0, -x.max())
            for frame, x in zip(frames, found, strict=True)
        ]
        best = min(range(len(frames)), key=sizes.__getitem__)
        self._divide(frames[best], found[best])

    def _divide(self, platform: int, of_column: np.ndarray) -> None:
        """Set the legs of the columns of the tree (M,), and an empty arrangement."""
        tree = self.closure.transfer.tree
        self.platform, self.of_column, self.count = platform, of_column, int(of_column.max()) + 1
        self.of_entry = np.zeros(tree.state_size, dtype=np.intp)
        columns, entries = tree.single_columns
        self.of_entry[entries] = of_column[columns]
        for turn, quaternion in tree.ball_slices:
            self.of_entry[quaternion] = of_column[turn.start]
        rows = plain_rows(tree, [Item.point(platform), *axes_of([platform])]) if platform >= 0 else None
        self._pose = None if rows is None else output_query(tree, rows, 1)
        self.place = self.rank = self.starts = np.zeros(0, dtype=np.intp)
        self.modes = np.zeros((0, self.count), dtype=np.intp)
        self.own = np.zeros((0, self.count), dtype=bool)

    def join(self) -> None:
        """Join all legs into one."""
        self._divide(-1, np.zeros_like(self.of_column))

    @property
    def several(self) -> np.ndarray:
        """Array of the legs with several assembly modes in a place."""
        return np.flatnonzero(self.modes.max(axis=0, initial=1) > 1)

    def largest(self, values: np.ndarray, of: np.ndarray) -> np.ndarray:
        """Return the largest value (B, L) of each leg, from values (B, n) that belong to legs (n,)."""
        order = np.argsort(of, kind="stable")
        return np.maximum.reduceat(
            values[:, order], np.searchsorted(of[order], np.arange(self.count)), axis=1
        )

    def poses(self, states: np.ndarray) -> np.ndarray:
        """Return real numbers (B, n) that are equal for states (B, S) with the same place of the platform.

        Large coordinates are on a logarithmic scale.
        """
        if self._pose is None:
            return np.zeros((len(states), 1))
        pose = self._pose.arrays(states)[0].astype(complex)
        pose[:, :3] /= self.closure.transfer.length
        size = np.abs(pose)
        pose *= np.log1p(size) / np.where(size > 0, size, 1.0)
        return np.concatenate([pose.real, pose.imag], axis=1)

    def arrange(
        self, places: np.ndarray, points: list[np.ndarray], atol: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Arrange solutions; return indices (N, L) of solutions with the legs of each row, and a mask (B,).

        The mask is True for solutions with a place or a mode of a leg that no earlier solution has.

        Parameters
        ----------
        places : (B, n)
            Equal rows are the same place of the platform.
        points : list of (B, n)
            One array for each leg; equal rows in one place are the same assembly mode.
        """
        place = numbered(places, atol)
        new, first, modes = np.zeros(len(place), dtype=bool), [], []
        for own in points:
            number = numbered(np.column_stack([own, place]), atol)
            k = np.unique(number, return_index=True)[1]
            first.append(k[np.lexsort((k, place[k]))])
            modes.append(np.bincount(place[k]))
            new[k] = True
        self.modes = np.stack(modes, axis=1)
        rows = self.modes.max(axis=1)
        self.place, self.starts = np.repeat(np.arange(len(rows)), rows), np.cumsum(rows) - rows
        self.rank = np.arange(len(self.place)) - self.starts[self.place]
        self.own = self.rank[:, None] < self.modes[self.place]
        n = np.minimum(self.rank[:, None], self.modes[self.place] - 1)
        n += (np.cumsum(self.modes, axis=0) - self.modes)[self.place]
        return np.stack([k[n[:, j]] for j, k in enumerate(first)], axis=1), new

    def in_place(self, mask: np.ndarray) -> np.ndarray:
        """Return the numbers (..., C, L) of assembly modes of legs in each place, from a mask (..., N, L)."""
        return np.add.reduceat(mask & self.own, self.starts, axis=-2, dtype=np.intp)

    def number(self, mask: np.ndarray) -> np.ndarray:
        """Return the number (...) of combinations of assembly modes in a mask (..., N, L)."""
        if not len(self.modes):
            return np.zeros(mask.shape[:-2])
        return self.in_place(mask).prod(axis=-1, dtype=float).sum(axis=-1)

    def combinations(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return members (T,) and rows (T, L) of all combinations of assembly modes in a mask (B, N, L)."""
        if not len(self.modes):
            return np.zeros(0, dtype=np.intp), np.zeros((0, self.count), dtype=np.intp)
        counts = self.in_place(mask).reshape(-1, self.count)
        number = counts.prod(axis=1)
        group = np.repeat(np.arange(len(counts)), number)
        left = np.arange(len(group)) - np.repeat(np.cumsum(number) - number, number)
        starts, rows = np.cumsum(counts, axis=0) - counts, np.zeros((len(group), self.count), dtype=np.intp)
        for j in range(self.count):
            left, digit = np.divmod(left, counts[group, j])
            rows[:, j] = np.nonzero(mask[..., j] & self.own[:, j])[1][starts[group, j] + digit]
        return group // len(self.modes), rows

    def torn(self, poses: np.ndarray, rows: np.ndarray, members: np.ndarray, atol: float) -> np.ndarray:
        """Return a mask (B,) of paths that start in one place of the platform and end in several.

        `poses` (B, n) are the end poses of `rows` (B,) of the arrangement for several `members` (B,).
        """
        group = members * len(self.modes) + self.place[rows]
        _, first, group = np.unique(group, return_index=True, return_inverse=True)
        apart = np.abs(poses - poses[first[group]]).max(axis=1) > atol
        return np.isin(group, group[apart])

    def check_number(self, number: float, largest: int, which: str) -> None:
        """Raise `InputError` if the number of assembly modes exceeds the largest that is allowed."""
        if number > largest:
            name = self.closure.transfer.tree.description.name
            raise InputError(
                f"`complete` must be False for '{name}' with these values: its legs combine to give "
                f"{number:.4g} {which}assembly modes, more than {largest:.4g}. Use the random search, or "
                "give coordinates of its legs.",
                key="complete",
                got=True,
                number=number,
            )

    def describe(self) -> str:
        """Return the numbers of places and of assembly modes of legs, if any leg has several."""
        least, most = self.modes.min(axis=0, initial=10**9), self.modes.max(axis=0, initial=0)
        if not self.several.size:
            return ""
        numbers = " · ".join(
            f"{low}" if low == high else f"{low} to {high}"
            for low, high in zip(least[self.several], most[self.several], strict=True)
        )
        if self.platform < 0:
            return f"{numbers} of independent parts"
        frame = self.closure.transfer.tree.frame
        body = next(body for body, n in frame.items() if n == self.platform)
        places = f"{len(self.modes)} place{'' if len(self.modes) == 1 else 's'} of '{body}'"
        return f"{places} with {numbers} assembly modes of its legs"


def numbered(points: np.ndarray, atol: float) -> np.ndarray:
    """Number the distinct points (B, n) in order of appearance."""
    from scipy.spatial import cKDTree

    near = cKDTree(points).query_ball_point(points, atol)  # faster than pairs, for many coordinates
    number = components([(k, n) for k, own in enumerate(near) for n in own if n < k], len(points))
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


def _rigid_groups(closure: Closure) -> np.ndarray:
    """Return the rigid group (M + 1,) of each frame, ground last, with given coordinates fixed."""
    t = closure.transfer
    items = [t.system.rows.source[i] for i in t.system.rows.item_of[t.system.picked[: t.size]]]
    given = [item.frame_b for item in items if item.kind == lay.COORDINATE]
    links = [(n, int(t.tree.cols[n, lay.PARENT]) % (t.tree.size + 1)) for n in given]
    return components(links, t.tree.size + 1)


def _columns_of_legs(closure: Closure, groups: np.ndarray, platform: int) -> np.ndarray:
    """Return the leg (M,) of each column of the tree, for a rigid group of frames as the platform.

    Columns and rows of the equations connect groups, except ground and the platform.
    """
    t = closure.transfer
    cols, size, source = t.tree.cols, t.tree.size, t.system.rows.source
    # nodes are columns, then groups of frames, and then rows
    ends = [(n, frame) for n in range(size) for frame in (n, int(cols[n, lay.PARENT]))]
    links = list[tuple[int, int]]()
    for node, last in enumerate(t.system.rows.item_of[t.system.picked].tolist(), 2 * size + 1):
        first = last
        while first and source[first - 1].has_next_term:
            first -= 1
        for item in source[first : last + 1]:
            if OF_COLUMN[item.kind]:
                links.append((node, item.frame_b))
            else:
                ends += [(node, frame) for frame in (item.frame_b, item.frame_a) if frame >= 0]
    core = {groups[-1], platform}
    links += [(node, size + groups[frame]) for node, frame in ends if groups[frame] not in core]
    parts = components(links, 2 * size + 1 + len(t.system.picked))[:size]
    given = groups[:-1] == groups[cols[:, lay.PARENT]]
    parts[given & np.isin(groups[:-1], list(core))] = parts[np.argmin(given)]  # they do not move
    return np.unique(parts, return_inverse=True)[1]
