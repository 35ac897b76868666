"""Packed: what follows from a drawing before any coordinates are chosen: its tree, tables and questions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kic.drawing import Drawing
from kic.errors import InputError
from kic.items import DIRECTION, POINT, Item
from kic.kinematics import WANT_INERTIA, WANT_LOADS, ContributionsQuestion, DynamicsQuestion, RowsQuestion
from kic.lru import LRU
from kic.masses import Loads, Masses, pack_loads, pack_masses
from kic.parts import Joint
from kic.posture import drawn_states
from kic.rows import Rows, make_rows, names_of, plain_rows
from kic.scaling import EPS
from kic.tree import PRISMATIC, Tree

if TYPE_CHECKING:
    from kic.bearing.freebodies import FreeBodies
    from kic.linear.actuators import Train


class Packed:
    """Tree, masses, loads and row plans of a drawing, each made once, when first needed."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self._questions: LRU[object, RowsQuestion] = LRU()
        self._dynamics: dict[int, DynamicsQuestion] = {}

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
    def train(self) -> Train:
        """Motors and their gears."""
        from kic.linear.actuators import Train

        return Train(self.drawing, self.tree.scalar)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the default coordinates."""
        return self.drawing.coordinate_names

    @cached_property
    def direct(self) -> bool:
        """Whether the coordinates are all those of the tree: an open chain in its own coordinates."""
        return self.tree.open and len(self.coordinates) == self.tree.size

    @cached_property
    def stepped(self) -> bool:
        """Whether the drawing carries a complex step, as in a sensitivity."""
        return self.tree.scalar.kind == "c"

    def only_real(self, question: str, remedy: str) -> None:
        """Refuse a question that complex steps can not follow."""
        if self.stepped:
            raise InputError(
                f"{question} of '{self.drawing.name}' needs real numbers and can not follow the step of a "
                f"sensitivity. {remedy}"
            )

    @cached_property
    def length(self) -> float:
        """Characteristic length: the extent of the drawing's joints, points and contacts."""
        places = self._places
        extent = float(np.ptp(places, axis=0).max()) if len(places) > 1 else 0.0
        slides = self.tree.geometry[self.tree.cols[:, 1] == PRISMATIC, 12].real
        extent = max(extent, float(np.abs(slides).max(initial=0.0)))
        return extent if extent > 0 else 1.0

    @cached_property
    def _places(self) -> np.ndarray:
        """Places (n, 3) of the drawing's joints, points, contacts and bodies."""
        places = [joint.at for joint in self.drawing.joints if joint.at]
        places += [point.at for point in self.drawing.points]
        places += [contact.at for contact in self.drawing.contacts]
        places += [body.reference for body in self.drawing.bodies if body.reference]
        return np.array(places).real.reshape(-1, 3)

    @cached_property
    def rounding(self) -> float:
        """Error of places by rounding, as a share of the characteristic length; large far from the origin."""
        return EPS * max(1.0, float(np.abs(self._places).max(initial=0.0)) / self.length)

    @cached_property
    def inertia_error(self) -> np.ndarray:
        """Estimated error (M,) of the diagonal of I* in the tree's coordinates, from what each one moves."""
        numbers = self.masses.numbers.real
        mass, reach = numbers[:, 0], np.maximum(self.length, np.abs(numbers[:, 1:4]).max(axis=1, initial=0.0))
        turning = mass * reach**2 + numbers[:, 4:7].sum(axis=1)
        moved = np.zeros(self.tree.size)
        for frame, m, I in zip(self.masses.frames.tolist(), mass, turning, strict=True):
            path = list(self.tree.path(frame))
            moved[path] += np.where(self.tree.cols[path, 1] == PRISMATIC, m, I)
        return EPS * moved

    @cached_property
    def drawn(self) -> np.ndarray:
        """State (1, S) of the drawing."""
        return drawn_states(self.tree)

    def value_rows(self, name: str) -> tuple[int, bool]:
        """How many rows a name has, and whether they all have values."""
        rows = self.rows(name, 1).answer.rows
        return len(rows.labels), rows.holonomic

    def rows(self, of: str | Iterable[str], order: int) -> RowsQuestion:
        """The question for rows of a name or of several, remembered."""
        key = (of if isinstance(of, str) else names_of(of), order)
        found = self._questions.get(key)
        if found is None:
            names = (of,) if isinstance(of, str) else key[0]
            found = self._questions[key] = RowsQuestion(self.tree, make_rows(self.tree, names), order)
        return found

    def pose(self, body: str) -> RowsQuestion:
        """The question for a body's place: its point drawn at the origin, and the drawing's unit vectors."""
        found = self._questions.get(("pose", body))
        if found is None:
            tree = self.tree
            frame = tree.frame[body]
            items = [Item(POINT, frame, local_b=tuple(tree.local_point(frame, np.zeros(3))))]
            items += [Item(DIRECTION, frame, local_b=tuple(tree.local_vector(frame, e))) for e in np.eye(3)]
            found = RowsQuestion(tree, plain_rows(tree, items), 1)
            self._questions["pose", body] = found
        return found

    def values(self, of: str | Iterable[str], states: np.ndarray) -> np.ndarray:
        """Values (B, P) of rows at states (B, S)."""
        question = self.rows(of, 1)
        rows = question.answer.rows
        values = rows.complete(question.answer.split(question.table(states), (len(states),))[0])
        return values if rows.select is None else values[:, rows.select]

    @cached_property
    def free(self) -> FreeBodies:
        """The bodies with every joint cut."""
        from kic.bearing.freebodies import FreeBodies

        return FreeBodies(self.tree, self.length)

    def dynamics(self, want: int = WANT_INERTIA | WANT_LOADS) -> DynamicsQuestion:
        """The question for I* and P*, for load and damping, or for all of these, remembered."""
        found = self._dynamics.get(want)
        if found is None:
            found = self._dynamics[want] = DynamicsQuestion(self.tree, self.masses, self.loads, want)
        return found

    @cached_property
    def contributions(self) -> ContributionsQuestion:
        """The question for each body's shares."""
        return ContributionsQuestion(self.tree, self.masses)

    @cached_property
    def cut_laws(self) -> tuple[Joint, ...]:
        """Cut joints with springs or dampers."""
        return tuple(j for j in self.tree.cuts if any(j.stiffness) or any(j.damping))  # type: ignore[arg-type]

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

    def check_distances(self, rows: Rows, T: np.ndarray, ok: np.ndarray | None) -> None:
        """Coefficients of a distance are NaN where its two points meet: it has no direction there."""
        if not rows.distances or T.dtype.kind == "O":
            return
        if np.isnan(T if ok is None else T[ok.reshape(-1)]).any():
            raise InputError(
                f"A distance of '{self.drawing.name}' is zero here ({', '.join(rows.distances)}), where it "
                "has no derivatives. Ask for the points themselves, or move them apart.",
                distances=rows.distances,
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
