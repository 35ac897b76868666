"""Everything that follows from a drawing before any posture: its tree, packed tables and questions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from kic.actuators import Train
from kic.closure import Closure
from kic.coefficients import Coefficients
from kic.drawing import Drawing
from kic.errors import InputError
from kic.freebodies import FreeBodies
from kic.items import DIRECTION, POINT, Item
from kic.kinematics import WANT_INERTIA, WANT_LOADS, ContributionsQuestion, DynamicsQuestion, RowsQuestion
from kic.masses import Loads, Masses, pack_loads, pack_masses
from kic.mobility import Mobility
from kic.parts import Joint
from kic.posture import drawn_states
from kic.rows import Rows, make_rows, names_of, plain_rows
from kic.steps import SteppedTransfer
from kic.system import TransferQuestion
from kic.targets import Held, Targets, pose_items, room_of, targets_of
from kic.transfer import Transfer
from kic.tree import PRISMATIC, Tree


class Model:
    """Tree, masses, loads and row plans of a drawing, each made once, when first needed."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self._questions: dict[object, RowsQuestion] = {}
        self._dynamics: dict[int, DynamicsQuestion] = {}
        self._elsewhere: dict[object, TransferQuestion] = {}
        self._transfers: dict[tuple[str, ...], Transfer] = {}
        self._closures: dict[tuple[tuple[str, ...], tuple[Held, ...]], Closure] = {}

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
    def real(self) -> Model:
        """The model of the drawing without its steps; it finds the postures that the steps then follow."""
        return Model(self.drawing.without_steps()) if self.stepped else self

    @cached_property
    def length(self) -> float:
        """Characteristic length: the extent of the drawing's joints and points."""
        places = [joint.at for joint in self.drawing.joints if joint.at]
        places += [point.at for point in self.drawing.points]
        places += [body.reference for body in self.drawing.bodies if body.reference]
        extent = float(np.ptp(np.array(places).real, axis=0).max()) if len(places) > 1 else 0.0
        slides = self.tree.geometry[self.tree.cols[:, 1] == PRISMATIC, 12].real
        extent = max(extent, float(np.abs(slides).max(initial=0.0)))
        return extent if extent > 0 else 1.0

    @cached_property
    def drawn(self) -> np.ndarray:
        """State (1, S) of the drawing."""
        return drawn_states(self.tree)

    @cached_property
    def mobility(self) -> Mobility:
        """Account of the freedoms."""
        return self.real.mobility if self.stepped else Mobility(self.closure(()), self.drawn)

    @cached_property
    def freedoms(self) -> int:
        """Mobility: the tree's, less the independent closure conditions."""
        return self.mobility.freedoms

    @property
    def redundant(self) -> int:
        """Closure conditions that follow from the others."""
        return self.mobility.redundant

    def value_rows(self, name: str) -> tuple[int, bool]:
        """How many rows a name has, and whether they all have values."""
        rows = self.rows(name, 1).answer.rows
        return len(rows.labels), rows.holonomic

    @property
    def _transferring(self) -> type[Transfer]:
        return SteppedTransfer if self.stepped else Transfer

    def transfer(self, names: tuple[str, ...]) -> Transfer:
        """The transfer to the coordinates of some names, remembered."""
        found = self._transfers.get(names)
        if found is None:
            tolerance = self.drawing.closure_tolerance
            found = self._transfers[names] = self._transferring(self.tree, names, self.length, tolerance)
        return found

    def targets(self, inputs: Any) -> Targets:
        """What inputs want of a posture: as many values as there are freedoms."""
        targets = targets_of(self.tree, self.value_rows, self.length, inputs)
        self.check_number(targets.names, targets.held)
        return targets

    def closure(self, names: tuple[str, ...], held: tuple[Held, ...] = ()) -> Closure:
        """The position problem for the values of some names and the poses of some bodies, remembered."""
        found = self._closures.get((names, held))
        if found is None:
            transfer = self.transfer(names)
            places = []
            if held:
                rows, items = len(transfer.labels), list[Item]()
                for one in held:
                    made = pose_items(self.tree, one)
                    places.append((str(one), rows, rows + one.turns_at))
                    rows += sum(item.height for item in made)
                    items += made
                transfer = self._transferring(self.tree, names, self.length, transfer.tolerance, items)
            found = self._closures[names, held] = Closure(transfer, tuple(places))
        return found

    def check_number(self, names: tuple[str, ...], held: tuple[Held, ...] = ()) -> None:
        """As many coordinates as freedoms, none of them fixed, or an error that says how many."""
        still = [name for name in names if name in self.drawing.rods]
        if still:
            raise InputError(
                f"Distance '{still[0]}' of '{self.drawing.name}' is fixed and can be no coordinate. Name "
                "something that moves, or leave `fixed` out of it.",
                name=still[0],
            )
        labels = self.transfer(names).labels
        twice = [name for k, name in enumerate(labels) if name in labels[:k]]
        if twice:
            raise InputError(
                f"'{twice[0]}' of '{self.drawing.name}' is named twice as a coordinate. Name it once, and "
                "another beside it.",
                name=twice[0],
            )
        room = room_of(self.tree) if held else None
        counts = [room.count(one) for one in held] if room else []
        count = len(labels) + sum(counts)
        if count == self.freedoms:
            return
        named = [*labels, *(f"{one}: {n}" for one, n in zip(held, counts, strict=True))]
        remedy = f"Name {self.freedoms - count} more." if count < self.freedoms else f"Name {self.freedoms}."
        if named and not held and count < self.freedoms and self.mobility.regular:
            one = "that stands" if count == 1 else "these stand"
            remedy += f" While {one} still, {self.loose(names)} can move."
        if held and count > self.freedoms:
            remedy += f" Of a body that moves less freely give single rows, such as '{held[0].body}.x'."
        raise InputError(
            f"'{self.drawing.name}' has mobility {self.freedoms}; {count} coordinates were named: "
            f"{', '.join(named) or 'none'}. {remedy} {self.mobility.doubt()}".rstrip(),
            mobility=self.freedoms,
            count=count,
        )

    def loose(self, names: tuple[str, ...]) -> str:
        """What can move at the drawing while the rows of some names stand still, in words."""
        closure = self.closure(names)
        return closure.transfer.loose(closure.rows(self.drawn)[1][0])

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
        return FreeBodies(self.tree, self.length)

    def dynamics(self, want: int = WANT_INERTIA | WANT_LOADS) -> DynamicsQuestion:
        """The question for I* and P*, for load and damping, or for all of these, remembered."""
        found = self._dynamics.get(want)
        if found is None:
            found = self._dynamics[want] = DynamicsQuestion(self.tree, self.masses, self.loads, want)
        return found

    def elsewhere(
        self, transfer: Transfer, of: str | Iterable[str] = (), order: int = 1, want: int = 0
    ) -> TransferQuestion:
        """The question for rows, and for the dynamics, in the coordinates of a transfer, remembered."""
        names = (of,) if isinstance(of, str) else names_of(of)
        key = (transfer.names, names, order, want)
        found = self._elsewhere.get(key)
        if found is None:
            found = self._elsewhere[key] = TransferQuestion(
                transfer.system,
                max(order, 2) if want & WANT_INERTIA else order,
                make_rows(self.tree, names) if names else None,
                order,
                self.masses if want else None,
                self.loads if want else None,
                want,
            )
        return found

    @cached_property
    def contributions(self) -> ContributionsQuestion:
        """The question for each body's shares."""
        return ContributionsQuestion(self.tree, self.masses)

    @cached_property
    def cut_laws(self) -> tuple[Joint, ...]:
        """Cut joints with springs or dampers."""
        return tuple(j for j in self.tree.cuts if any(j.stiffness) or any(j.damping))  # type: ignore[arg-type]

    def transferred(self, transfer: Transfer, states: np.ndarray, force: np.ndarray) -> list[np.ndarray]:
        """I*, P*, load and damping (B, …) in chosen coordinates (3-34 to 3-36): loads by Aᵀ."""
        question = self.elsewhere(transfer, want=WANT_INERTIA | WANT_LOADS)
        out = transfer.answer(question, states, force)
        parts = question.model.split(out.K, (len(states),))
        self.add_cut_laws(transfer, states, *parts[2:])
        return parts

    def add_cut_laws(
        self, transfer: Transfer, states: np.ndarray, load: np.ndarray, damping: np.ndarray
    ) -> None:
        """Add spring loads (B, m) and damping (B, m, m) in joints that are no columns of the tree."""
        for joint in self.cut_laws:
            question = self.elsewhere(transfer, joint.name)
            table = question.answer
            assert table is not None  # for the type checker: there is a name
            T = transfer.answer(question, states).T
            c = self.assemble(table.rows, table.split(T, (len(states),)), transfer)
            stretch = np.where(table.rows.valued, c.values - np.array(joint.rest), 0.0)
            load -= np.einsum("bpa,p,bp->ba", c.G, np.array(joint.stiffness), stretch)
            damping += np.einsum("bpa,p,bpc->bac", c.G, np.array(joint.damping), c.G)

    def asked(self, wrt: str | Iterable[str] | None) -> Transfer | None:
        """The transfer to the coordinates asked for; None for the tree's own."""
        if wrt is None:
            if self.direct:
                return None
            names = self.coordinates
        else:
            names = names_of(wrt, "wrt")
        self.check_number(names)
        return self.transfer(names)

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

    def assemble(self, rows: Rows, parts: list[np.ndarray], wrt: Transfer | None = None) -> Coefficients:
        """Coefficients of the rows asked for; columns in the order of the coordinates."""
        values, *tensors = parts
        if rows.angles or rows.offsets:
            values = rows.complete(values.copy())
        if rows.select is not None:
            values = values[..., rows.select]
            tensors = [t.take(rows.select, axis=t.ndim - k - 2) for k, t in enumerate(tensors)]
        if wrt is None:
            tensors = self.in_coordinates(tensors, range(1, 4)[: len(tensors)])
        if not rows.holonomic:
            values = np.where(rows.valued, values, np.nan)
        G, H, D = (*tensors, None, None)[:3]
        columns = self.coordinates if wrt is None else wrt.labels
        whole = rows.holonomic and (not self.tree.balls if wrt is None else wrt.holonomic)
        quasi = () if whole else self._quasi(rows, wrt)
        return Coefficients(rows.labels, columns, G, H, D, values, quasi=quasi)

    def _quasi(self, rows: Rows, wrt: Transfer | None) -> set[str]:
        """Names, among rows and columns, that have rates but no values."""
        turns = {name for name, n in self.tree.column.items() if self.tree.cols[n, 1] > 1}
        asked = [rows] if wrt is None else [rows, wrt.chosen]
        for of in asked:
            turns |= {label for label, has in zip(of.labels, of.valued, strict=True) if not has}
        return turns

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
