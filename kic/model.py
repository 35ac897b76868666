"""Everything that follows from a drawing before any posture: its tree, packed tables and questions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from kic.coefficients import Coefficients
from kic.drawing import Drawing
from kic.errors import InputError, LoopError
from kic.kinematics import ContributionsQuestion, DynamicsQuestion, RowsQuestion
from kic.masses import Loads, Masses, pack_loads, pack_masses
from kic.rows import Item, Rows, make_rows, plain_rows
from kic.tree import Tree


class Model:
    """Tree, masses, loads and row plans of a drawing, each made once, when first needed."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self._questions: dict[object, RowsQuestion] = {}
        self._open = False

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
        if self._open:
            return
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
        self._open = True

    def rows(self, of: str | Iterable[str], order: int) -> RowsQuestion:
        """The question for rows of a name or of several, remembered."""
        key = (of if isinstance(of, str) else tuple(of), order)
        found = self._questions.get(key)
        if found is None:
            names = (of,) if isinstance(of, str) else key[0]
            found = self._questions[key] = RowsQuestion(self.tree, make_rows(self.tree, names), order)
        return found

    def pose(self, body: str) -> RowsQuestion:
        """The question for four points of a body: drawn at the origin and at the three unit vectors."""
        found = self._questions.get(("pose", body))
        if found is None:
            tree = self.tree
            frame = tree.frame[body]
            corners = np.vstack([np.zeros(3), np.eye(3)])
            items = [Item(0, frame, local_b=tuple(tree.local_point(frame, p))) for p in corners]
            found = RowsQuestion(tree, plain_rows(tree, items), 1)
            self._questions["pose", body] = found
        return found

    @cached_property
    def dynamics(self) -> DynamicsQuestion:
        """The question for I*, P*, load and damping."""
        return DynamicsQuestion(self.tree, self.masses, self.loads)

    @cached_property
    def contributions(self) -> ContributionsQuestion:
        """The question for each body's shares."""
        return ContributionsQuestion(self.tree, self.masses)

    def in_coordinates(self, tensors: list[np.ndarray], ranks: Iterable[int]) -> list[np.ndarray]:
        """Tensors whose last `rank` axes are the tree's columns, in the order of the coordinates."""
        order = self.tree.to_coordinates
        if order is None:
            return tensors
        turned = []
        for tensor, rank in zip(tensors, ranks, strict=True):
            for axis in range(-rank, 0):
                tensor = tensor.take(order, axis=axis)
            turned.append(tensor)
        return turned

    def assemble(self, rows: Rows, parts: list[np.ndarray]) -> Coefficients:
        """Coefficients of the rows asked for, columns in the order of the coordinates."""
        values, *tensors = parts
        if rows.select is not None:
            values = values[..., rows.select]
            tensors = [t.take(rows.select, axis=t.ndim - k - 2) for k, t in enumerate(tensors)]
        tensors = self.in_coordinates(tensors, range(1, 4)[: len(tensors)])
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

    def check_springs(self, load: np.ndarray, ok: np.ndarray | None) -> None:
        """Loads are NaN where the two ends of a spring meet, which leaves its direction open."""
        if not self.drawing.springs or load.dtype.kind == "O":
            return
        if not np.isnan(load if ok is None else load[ok]).any():
            return
        names = ", ".join(s.name for s in self.drawing.springs if s.rest or s.damping)
        raise InputError(
            f"A spring of '{self.drawing.name}' has no direction here: the ends of one of {names} coincide "
            "while it has a free length or damping. Move its points or the posture."
        )
