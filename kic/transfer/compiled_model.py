"""Model: a drawing with its freedoms, its closures and the transfers to any coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.parts import Joint
from kic.dynamics.mass_tables import Loads, Masses, pack_loads, pack_masses
from kic.dynamics.queries import ContributionsQuery, DynamicsQuery
from kic.errors import InputError
from kic.kernels.layout import DIRECTION, POINT, PRISMATIC, WANT_INERTIA, WANT_LOADS
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.items import Item
from kic.kinematics.outputs import Rows, make_rows, plain_rows
from kic.kinematics.queries import OutputQuery
from kic.kinematics.scaling import EPS, Scaling, moved_error
from kic.kinematics.state import reference_states
from kic.kinematics.tree import Tree
from kic.numerics.arguments import names_of
from kic.numerics.lru import LRU
from kic.transfer.closure import Closure
from kic.transfer.constraint_system import TransferQuery, column_scales, row_scales
from kic.transfer.coordinate_transfer import RANK_SHARE, CoordinateTransfer
from kic.transfer.targets import PoseTarget, Targets, motion_subspace, pose_items, targets_of

if TYPE_CHECKING:
    from kic.analysis.mobility import Mobility
    from kic.dynamics.drive_train import DriveTrain
    from kic.transfer.free_bodies import FreeBodies


class CompiledModel:
    """What is packed of a drawing, and what of it moves: each made once, when first needed."""

    def __init__(self, drawing: MechanismDescription) -> None:
        self.description = drawing
        self._questions: LRU[object, OutputQuery] = LRU()
        self._dynamics: dict[int, DynamicsQuery] = {}
        self._elsewhere: LRU[object, TransferQuery] = LRU()
        self._transfers: LRU[tuple[str, ...], CoordinateTransfer] = LRU()
        self._closures: LRU[tuple[tuple[str, ...], tuple[PoseTarget, ...]], Closure] = LRU()
        # a model each, with caches of its own
        self._opened: LRU[tuple[str, ...], CompiledModel] = LRU(8)
        self._sizes: LRU[tuple[str, ...], np.ndarray] = LRU()

    @cached_property
    def tree(self) -> Tree:
        """The spanning tree."""
        return Tree(self.description)

    @cached_property
    def masses(self) -> Masses:
        """Bodies and point masses."""
        return pack_masses(self.tree)

    @cached_property
    def loads(self) -> Loads:
        """Gravity, forces, springs."""
        return pack_loads(self.tree)

    @cached_property
    def drive_train(self) -> DriveTrain:
        """Motors and their gears."""
        from kic.dynamics.drive_train import DriveTrain

        return DriveTrain(self.description, self.tree.scalar)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the default coordinates."""
        return self.description.coordinate_names

    @cached_property
    def is_open_chain(self) -> bool:
        """Whether the coordinates are all those of the tree: an open chain in its own coordinates."""
        return self.tree.open and len(self.coordinates) == self.tree.size

    @cached_property
    def has_complex_step(self) -> bool:
        """Whether the drawing carries a complex step, as in a sensitivity."""
        return self.tree.scalar.kind == "c"

    def require_real(self, question: str, remedy: str) -> None:
        """Refuse a question that complex steps can not follow."""
        if self.has_complex_step:
            raise InputError(
                f"{question} of '{self.description.name}' needs real numbers and can not follow the step of a "
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
        places = [joint.at for joint in self.description.joints if joint.at]
        places += [point.at for point in self.description.points]
        places += [contact.at for contact in self.description.contacts]
        places += [body.reference for body in self.description.bodies if body.reference]
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
    def reference_state(self) -> np.ndarray:
        """State (1, S) of the drawing."""
        return reference_states(self.tree)

    def value_rows(self, name: str) -> tuple[int, bool]:
        """How many rows a name has, and whether they all have values."""
        rows = self.rows(name, 1).layout.rows
        return len(rows.labels), rows.holonomic

    def rows(self, of: str | Iterable[str], order: int) -> OutputQuery:
        """The question for rows of a name or of several, remembered."""
        key = (of if isinstance(of, str) else names_of(of), order)
        found = self._questions.get(key)
        if found is None:
            names = (of,) if isinstance(of, str) else key[0]
            found = self._questions[key] = OutputQuery(self.tree, make_rows(self.tree, names), order)
        return found

    def pose(self, body: str) -> OutputQuery:
        """The question for a body's place: its point drawn at the origin, and the drawing's unit vectors."""
        found = self._questions.get(("pose", body))
        if found is None:
            tree = self.tree
            frame = tree.frame[body]
            items = [Item(POINT, frame, local_b=tuple(tree.local_point(frame, np.zeros(3))))]
            items += [Item(DIRECTION, frame, local_b=tuple(tree.local_vector(frame, e))) for e in np.eye(3)]
            found = OutputQuery(tree, plain_rows(tree, items), 1)
            self._questions["pose", body] = found
        return found

    def values(self, of: str | Iterable[str], states: np.ndarray) -> np.ndarray:
        """Values (B, P) of rows at states (B, S)."""
        question = self.rows(of, 1)
        rows = question.layout.rows
        values = rows.complete(question.layout.split(question.table(states), (len(states),))[0])
        return values if rows.select is None else values[:, rows.select]

    @cached_property
    def free_bodies(self) -> FreeBodies:
        """The bodies with every joint cut."""
        from kic.transfer.free_bodies import FreeBodies

        return FreeBodies(self.tree, self.length)

    def dynamics(self, want: int = WANT_INERTIA | WANT_LOADS) -> DynamicsQuery:
        """The question for I* and P*, for load and damping, or for all of these, remembered."""
        found = self._dynamics.get(want)
        if found is None:
            found = self._dynamics[want] = DynamicsQuery(self.tree, self.masses, self.loads, want)
        return found

    @cached_property
    def contributions(self) -> ContributionsQuery:
        """The question for each body's shares."""
        return ContributionsQuery(self.tree, self.masses)

    @cached_property
    def cut_joint_loads(self) -> tuple[Joint, ...]:
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
                f"A distance of '{self.description.name}' is zero here ({', '.join(rows.distances)}), where it "
                "has no derivatives. Ask for the points themselves, or move them apart.",
                distances=rows.distances,
            )

    def check_springs(self, load: np.ndarray, ok: np.ndarray | None) -> None:
        """Loads are NaN where the two ends of a spring meet, which leaves its direction open."""
        if not self.description.springs or load.dtype.kind == "O":
            return
        if not np.isnan(load if ok is None else load[ok]).any():
            return
        names = ", ".join(s.name for s in self.description.springs if s.rest or s.damping)
        raise InputError(
            f"A spring of '{self.description.name}' has no direction here: the ends of one of {names} coincide "
            "while it has a free length or damping. Move its points or the posture."
        )

    @cached_property
    def real(self) -> CompiledModel:
        """The model of the drawing without its steps; it finds the postures that the steps then follow."""
        return CompiledModel(self.description.without_complex_step()) if self.has_complex_step else self

    @cached_property
    def mobility(self) -> Mobility:
        """Account of the freedoms."""
        from kic.analysis.mobility import Mobility

        return (
            self.real.mobility if self.has_complex_step else Mobility(self.closure(()), self.reference_state)
        )

    def mobility_at(self, state: np.ndarray) -> Mobility:
        """Account of the freedoms at a closed state (1, S)."""
        from kic.analysis.mobility import Mobility

        return Mobility(self.closure(()), state, drawn=False)

    @cached_property
    def dof(self) -> int:
        """Number of freedoms in the reference configuration.

        The rank of the closure conditions decides where they are independent, or where one step along generic
        first-order motions shows that the rank is constant. Only singular configurations need the account.
        """
        if self.has_complex_step:
            return self.real.dof
        if "mobility" in self.__dict__:
            return self.mobility.dof
        closure = self.closure(())
        count, independent = closure.transfer.dof(self.reference_state)
        if not independent:
            from kic.analysis.finite_mobility import is_regular

            independent = is_regular(closure, self.reference_state, count)
        return count if independent else self.mobility.dof

    @property
    def redundant(self) -> int:
        """Closure conditions that follow from the others."""
        return self.mobility.redundant

    @property
    def _transferring(self) -> type[CoordinateTransfer]:
        if not self.has_complex_step:
            return CoordinateTransfer
        from kic.transfer.complex_step import ComplexStepTransfer

        return ComplexStepTransfer

    def transfer(self, names: tuple[str, ...]) -> CoordinateTransfer:
        """The transfer to the coordinates of some names, remembered."""
        found = self._transfers.get(names)
        if found is None:
            tolerance = self.description.closure_tolerance
            found = self._transfers[names] = self._transferring(self.tree, names, self.length, tolerance)
            found.remark = partial(self.undriven_freedom, names)
        return found

    def targets(self, inputs: Any) -> Targets:
        """What inputs want of a posture: as many values as there are freedoms."""
        targets = targets_of(self.tree, self.value_rows, self.length, inputs)
        self.check_number(targets.names, targets.held)
        return targets

    def closure(self, names: tuple[str, ...], held: tuple[PoseTarget, ...] = ()) -> Closure:
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

    def check_number(self, names: tuple[str, ...], held: tuple[PoseTarget, ...] = ()) -> None:
        """As many coordinates as freedoms, none of them fixed, or an error that says how many."""
        touching = {contact.name: contact for contact in self.description.closed_contacts}
        for contact in (touching[base] for base in (n.partition(".")[0] for n in names) if base in touching):
            raise InputError(
                f"Contact '{contact.name}' of '{self.description.name}' is closed, and its rows can be no "
                "coordinates. Name something that moves, or write `closed = False` in it.",
                name=contact.name,
            )
        still = [name for name in names if name in self.description.fixed_distances]
        if still:
            raise InputError(
                f"Distance '{still[0]}' of '{self.description.name}' is fixed and can be no coordinate. Name "
                "something that moves, or leave `fixed` out of it.",
                name=still[0],
            )
        labels = self.transfer(names).labels
        twice = [name for k, name in enumerate(labels) if name in labels[:k]]
        if twice:
            raise InputError(
                f"'{twice[0]}' of '{self.description.name}' is named twice as a coordinate. Name it once, and "
                "another beside it.",
                name=twice[0],
            )
        room = motion_subspace(self.tree) if held else None
        counts = [room.count(one) for one in held] if room else []
        count = len(labels) + sum(counts)
        if count == self.dof:
            return
        # the very tuple that stands for what nobody named
        if names is self.coordinates and self.description.coordinates is None and count > self.dof:
            raise InputError(self._unnamed(), mobility=self.dof, count=0)
        named = [*labels, *(f"{one}: {n}" for one, n in zip(held, counts, strict=True))]
        remedy = f"Name {self.dof - count} more." if count < self.dof else f"Name {self.dof}."
        if not self.dof:
            remedy = "It does not move: name none."
        if named and not held and count < self.dof and self.mobility.regular:
            one = "that stands" if count == 1 else "these stand"
            remedy += f" While {one} still, {self.unconstrained_coordinates(names)} can move. {self.undriven_freedom(names)}".rstrip()
        if held and count > self.dof:
            remedy += f" Of a body that moves less freely give single rows, such as '{held[0].body}.x'."
        raise InputError(
            f"'{self.description.name}' has mobility {self.dof}; {count} coordinates were named: "
            f"{', '.join(named) or 'none'}. {remedy} {self.mobility.doubt()}".rstrip(),
            mobility=self.dof,
            count=count,
        )

    def _unnamed(self) -> str:
        """What to write where a drawing names no coordinates and has more than it has freedoms."""
        head = f"'{self.description.name}' has mobility {self.dof}, and no coordinates are named"
        if not self.dof:
            return f"{head}. It does not move: add `coordinates = []`. {self.mobility.doubt()}".rstrip()
        if self.has_complex_step:
            return self.real._unnamed()
        closure, names = self.closure(self.coordinates), self.coordinates
        G, first = closure.rows(self.reference_state)[1][0], closure.transfer.first
        least = max(RANK_SHARE, closure.transfer.tolerance) * np.linalg.norm(G, 2)
        found: list[int] = []  # the first that neither the conditions nor those before them settle
        kept = list(range(first, len(G)))
        for row in range(first):
            if np.linalg.matrix_rank(G[[*kept, row]], least) > np.linalg.matrix_rank(G[kept], least):
                found.append(row)
                kept.append(row)
        few = names if len(names) <= 12 else (*names[:10], "…", names[-1])
        among = f"any {self.dof} of {', '.join(few)} that can drive it"
        said = ", ".join(f'"{names[row]}"' for row in found)
        remedy = f" = [{said}]`, or {among}" if len(found) == self.dof else f"`: {among}"
        return f"{head}. Add `coordinates{remedy}. {self.mobility.doubt()}".rstrip()

    def actuators(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Labels of the rows at which efforts act: as many as there are freedoms or more, each once."""
        still = {
            name: f"Distance '{name}' of '{self.description.name}' is fixed"
            for name in self.description.fixed_distances
        }
        for contact in self.description.closed_contacts:
            still[contact.name] = f"Contact '{contact.name}' of '{self.description.name}' is closed"
        for base in (name.partition(".")[0] for name in names):
            if base in still:
                raise InputError(
                    f"{still[base]}: an effort there does no work, and is none of an actuator. Leave it out; "
                    "joint_forces() tells its load.",
                    name=base,
                )
        labels = self.rows(names, 1).layout.rows.labels if names else ()
        twice = sorted({name for name in labels if labels.count(name) > 1})
        if twice:
            raise InputError(f"Expected actuators with different names, got twice {', '.join(twice)}.")
        if len(labels) < self.dof:
            raise InputError(
                f"'{self.description.name}' has mobility {self.dof}; {len(labels)} actuators were "
                f"named: {', '.join(labels) or 'none'}. Name {self.dof} or more.",
                mobility=self.dof,
            )
        return labels

    def unconstrained_coordinates(self, names: tuple[str, ...]) -> str:
        """What can move at the drawing while the rows of some names stand still, in words."""
        closure = self.closure(names)
        return closure.transfer.unconstrained_coordinates(closure.rows(self.reference_state)[1][0])

    def undriven_freedom(self, names: tuple[str, ...]) -> str:
        """Which idle freedom some named rows leave at rest at the drawing, in a sentence; '' for none."""
        if self.has_complex_step:
            return self.real.undriven_freedom(names)
        closure = self.closure(names)
        return self.mobility.undriven_freedom(
            closure.rows(self.reference_state)[1][0][: closure.transfer.first]
        )

    def query(
        self, transfer: CoordinateTransfer, of: str | Iterable[str] = (), order: int = 1, want: int = 0
    ) -> TransferQuery:
        """The question for rows, and for the dynamics, in the coordinates of a transfer, remembered."""
        names = (of,) if isinstance(of, str) else names_of(of)
        key = (transfer.names, names, order, want)
        found = self._elsewhere.get(key)
        if found is None:
            found = self._elsewhere[key] = TransferQuery(
                transfer.system,
                max(order, 2) if want & WANT_INERTIA else order,
                make_rows(self.tree, names) if names else None,
                order,
                self.masses if want else None,
                self.loads if want else None,
                want,
            )
        return found

    def transferred_dynamics(
        self, transfer: CoordinateTransfer, states: np.ndarray, force: np.ndarray
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """I*, P*, load and damping (B, …) in chosen coordinates (3-34 to 3-36), and the `quality` (B, 7)."""
        question = self.query(transfer, want=WANT_INERTIA | WANT_LOADS)
        out = transfer.answer(question, states, force)
        parts = question.model.split(out.K, (len(states),))
        self.add_cut_joint_loads(transfer, states, *parts[2:])
        return parts, out.quality

    def add_cut_joint_loads(
        self, transfer: CoordinateTransfer, states: np.ndarray, load: np.ndarray, damping: np.ndarray
    ) -> None:
        """Add spring loads (B, m) and damping (B, m, m) in joints that are no columns of the tree."""
        for joint in self.cut_joint_loads:
            question = self.query(transfer, joint.name)
            table = question.answer
            assert table is not None  # for the type checker: there is a name
            T = transfer.answer(question, states).T
            c = self.assemble(table.rows, table.split(T, (len(states),)), transfer)
            stretch = np.where(table.rows.valued, c.values - np.array(joint.rest), 0.0)
            load -= np.einsum("bpa,p,bp->ba", c.G, np.array(joint.stiffness), stretch)
            damping += np.einsum("bpa,p,bpc->bac", c.G, np.array(joint.damping), c.G)

    def with_open_contacts(self, contacts: tuple[str, ...]) -> CompiledModel:
        """The same mechanism, on the same tree, with some of its contacts open; remembered."""
        found = self._opened.get(contacts)
        if found is None:
            every = tuple(
                replace(c, closed=c.closed and c.name not in contacts) for c in self.description.contacts
            )
            found = self._opened[contacts] = CompiledModel(replace(self.description, contacts=every))
        return found

    def transfer_for(self, wrt: str | Iterable[str] | None) -> CoordinateTransfer | None:
        """The transfer to the coordinates asked for; None for the tree's own."""
        if wrt is None:
            if self.is_open_chain:
                return None
            names = self.coordinates
        else:
            names = names_of(wrt, "wrt")
        self.check_number(names)
        return self.transfer(names)

    def sizes(self, rows: Rows) -> np.ndarray:
        """Return the characteristic sizes (P,) of rows: a length for lengths, 1 for angles."""
        found = self._sizes.get(rows.labels)
        if found is None:
            found = row_scales(self.tree, list(rows.source), self.length)
            found = found if rows.select is None else found[rows.select]
            found.flags.writeable = False  # all answers share it
            self._sizes[rows.labels] = found
        return found

    @cached_property
    def own_sizes(self) -> np.ndarray:
        """Characteristic sizes (M,) of the coordinates of an open chain."""
        (sizes,) = self.in_coordinates([column_scales(self.tree, self.length)], [1])
        sizes.flags.writeable = False
        return sizes

    def inertia_error_at(self, transfer: CoordinateTransfer | None, states: np.ndarray) -> np.ndarray:
        """Return the estimated error (B or 1, m) of the diagonal of I* in chosen coordinates."""
        if transfer is None:
            return self.in_coordinates([self.inertia_error], [1])[0][None]
        size, first = self.tree.size, transfer.first
        A = transfer.solve(states, 1).X[:, size : size * (1 + first)].reshape(-1, size, first)
        return moved_error(self.inertia_error, A)

    def scaling(
        self,
        rows: Rows,
        wrt: CoordinateTransfer | None,
        pivot: np.ndarray | None = None,
        error: np.ndarray | None = None,
    ) -> Scaling:
        """Return the scaling of rows in chosen coordinates.

        `pivot` (...) has the smallest pivot of each member's transfer: errors grow with its inverse. `error`
        (...) is the one that comes from the solved state, see `CoordinateTransfer.check_position_error`.
        """
        if wrt is None:
            return Scaling(self.sizes(rows), self.own_sizes, self.rounding)
        rounding = self.rounding * wrt.amplification(pivot)
        if error is not None:
            rounding = np.fmax(rounding, error)
        return Scaling(self.sizes(rows), self.sizes(wrt.chosen), rounding)

    def assemble(
        self,
        rows: Rows,
        parts: list[np.ndarray],
        wrt: CoordinateTransfer | None = None,
        pivot: np.ndarray | None = None,
        error: np.ndarray | None = None,
    ) -> Coefficients:
        """Return coefficients of the rows asked for; columns in the order of the coordinates.

        `pivot` and `error` are those of `scaling`.
        """
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
        scaling = self.scaling(rows, wrt, pivot, error)
        return Coefficients(rows.labels, columns, G, H, D, values, quasi=quasi, scaling=scaling)

    def _quasi(self, rows: Rows, wrt: CoordinateTransfer | None) -> set[str]:
        """Names, among rows and columns, that have rates but no values."""
        turns = {name for name, n in self.tree.column.items() if self.tree.cols[n, 1] > 1}
        asked = [rows] if wrt is None else [rows, wrt.chosen]
        for of in asked:
            turns |= {label for label, has in zip(of.labels, of.valued, strict=True) if not has}
        return turns
