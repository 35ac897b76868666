"""Everything that follows from a drawing before any posture: its tree, packed tables and questions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from kic.coefficients import Coefficients
from kic.drawing import Drawing
from kic.errors import InputError, LoopError
from kic.masses import Loads, Masses, pack_loads, pack_masses
from kic.rows import Item, Rows, make_rows, pack
from kic.tree import Tree


class Model:
    """Tree, masses, loads and row plans of a drawing, each made once, when first needed."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self._rows: dict[object, Rows] = {}

    @cached_property
    def tree(self) -> Tree:
        """The spanning tree."""
        return Tree(self.drawing)

    @cached_property
    def masses(self) -> Masses:
        """Bodies and point masses."""
        return pack_masses(self.tree)

    @cached_property
    def loads(self) -> Loads:
        """Gravity, forces, springs."""
        return pack_loads(self.tree)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the default coordinates."""
        return self.drawing.coordinate_names

    @cached_property
    def mobility(self) -> int:
        """Freedoms of an open chain."""
        self.check_open()
        return self.tree.size

    def check_open(self) -> None:
        """Refuse what only an open chain can answer."""
        drawing, tree = self.drawing, self.tree
        if tree.cuts:
            cut = ", ".join(f"'{joint.name}'" for joint in tree.cuts)
            raise LoopError(
                f"'{drawing.name}' has {len(tree.cuts)} loop{'s' if len(tree.cuts) > 1 else ''}, cut at "
                f"{cut}. This version answers for open chains; leave the joint out to study the open chain.",
                cuts=tuple(joint.name for joint in tree.cuts),
            )
        if len(self.coordinates) != tree.size:
            free = [c for c in tree.columns if c not in self.coordinates]
            raise InputError(
                f"'{drawing.name}' has mobility {tree.size}; {len(self.coordinates)} coordinates were named: "
                f"{', '.join(self.coordinates)}. Missing: {', '.join(free)}.",
                missing=tuple(free),
            )

    def rows(self, of: str | Iterable[str]) -> Rows:
        """Rows of a name or of several, remembered."""
        key: object = of if isinstance(of, str) else tuple(of)
        found = self._rows.get(key)
        if found is None:
            names = (of,) if isinstance(of, str) else key
            found = make_rows(self.tree, names)  # type: ignore[arg-type]
            self._rows[key] = found
        return found

    def pose_rows(self, body: str) -> Rows:
        """Four points of a body: drawn at the origin and at the three unit vectors."""
        key = ("pose", body)
        found = self._rows.get(key)
        if found is None:
            tree = self.tree
            frame = tree.frame[body]
            corners = np.vstack([np.zeros(3), np.eye(3)])
            items = [Item(0, frame, local_b=tuple(tree.local_point(frame, p))) for p in corners]
            table, vectors = pack(tree, items)
            found = Rows((), {}, np.ones(12, dtype=bool), None, table, vectors, 12, False)
            self._rows[key] = found
        return found

    def assemble(self, rows: Rows, parts: list[np.ndarray]) -> Coefficients:
        """Coefficients of the rows asked for, columns in the order of the coordinates."""
        values, *tensors = parts
        if rows.select is not None:
            values = values[..., rows.select]
            tensors = [t.take(rows.select, axis=t.ndim - k - 2) for k, t in enumerate(tensors)]
        order = self.tree.to_coordinates
        if order is not None:
            for k in range(len(tensors)):
                for axis in range(-1, -2 - k, -1):
                    tensors[k] = tensors[k].take(order, axis=axis)
        if not rows.holonomic:
            values = np.where(rows.valued, values, np.nan)
        G, H, D = (*tensors, None, None)[:3]
        return Coefficients(
            rows.labels,
            self.coordinates,
            G,  # type: ignore[arg-type]
            H,
            D,
            values,
            rows.holonomic and not self.tree.balls,
        )

    def check_springs(self, table: np.ndarray) -> None:
        """Loads are NaN where the two ends of a spring meet, which leaves its direction open."""
        if table.dtype == object or not np.isnan(table).any():
            return
        names = ", ".join(s.name for s in self.drawing.springs if s.rest or s.damping)
        raise InputError(
            f"A spring of '{self.drawing.name}' has no direction here: the ends of one of {names} coincide "
            "while it has a free length or damping. Move its points or the posture."
        )
