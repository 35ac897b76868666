"""Compiled model: packed tables of a mechanism, and its transfers, closures and queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kic.description.description import check_variable, given_names
from kic.description.parts import Angle, Body, Distance, Frame, Joint
from kic.description.validation import part_of
from kic.dynamics.dynamic_parameters import pack_bodies
from kic.dynamics.mass_and_load_tables import Loads, Masses, pack_loads, pack_masses
from kic.dynamics.queries import contributions_query
from kic.errors import InputError, LoopError, coordinates_named, either
from kic.kernels import layout as lay
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.items import Item, directions_on, heights
from kic.kinematics.outputs import Rows, make_rows, plain_rows
from kic.kinematics.queries import Query, output_query
from kic.kinematics.scaling import EPS
from kic.kinematics.state import phi_of
from kic.kinematics.tree import PLANARITY_ATOL, Tree
from kic.numerics.arguments import check_order, names_of
from kic.numerics.linalg import unit
from kic.transfer.closure import PLACE_RTOL, Closure
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.identity import IdentityTransfer, LinearTransfer
from kic.transfer.mobility.finite_mobility import regular_dof
from kic.transfer.orientations import Positions
from kic.transfer.program import Program, Transfer
from kic.transfer.rank import RANK_SHARE
from kic.transfer.targets import (
    NamedInput,
    PoseTarget,
    frame_part,
    motion_subspace,
    pose_items,
    turned_items,
)

if TYPE_CHECKING:
    from kic.dynamics.drive_train import DriveTrain
    from kic.mechanism.mechanism import Mechanism
    from kic.transfer.free_bodies import FreeBodies
    from kic.transfer.mobility.mobility import Mobility

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
# argument types that can be cache keys
_KEYS = (NoneType, str, tuple)
# largest number of entries, more than a program alternates between; a full cache of a large mechanism takes
# some tens of megabytes
CACHE_SIZE_MAX = 128


class BoundedCache(dict[K, V]):
    """Thread-safe dict that keeps the last `size` values.

    A look-up costs the same as in a dict, and does not refresh the entry.
    """

    size = CACHE_SIZE_MAX

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        while len(self) > self.size:
            try:
                self.pop(next(iter(self)), None)
            except (StopIteration, RuntimeError):  # another thread changes it
                return


class CompiledModel:
    """Packed tables of a mechanism, made on first use, with bounded caches; `parts` has its parts by name."""

    def __init__(self, description: Mechanism) -> None:
        self.description, self.parts = description, description._parts
        self._row_queries: BoundedCache[object, Query] = BoundedCache()
        self._programs: BoundedCache[object, Program] = BoundedCache()
        # objects of higher layers, see `prepared`
        self._prepared: BoundedCache[object, Any] = BoundedCache()
        self._transfers: BoundedCache[tuple[str, ...], CoordinateTransfer] = BoundedCache()
        self._closures: BoundedCache[tuple[tuple[str, ...], tuple[PoseTarget, ...]], Closure] = BoundedCache()
        # closures and transfers of coordinates whose number was checked, keyed by the given names
        self.problems: BoundedCache[tuple[tuple[str, ...], tuple[PoseTarget, ...]], Closure] = BoundedCache()
        self._checked: BoundedCache[tuple[str, ...] | None, Transfer] = BoundedCache()
        self._positions: BoundedCache[tuple[str, ...], Positions] = BoundedCache()
        # models with caches of their own
        self._opened: BoundedCache[tuple[str, ...], CompiledModel] = BoundedCache()
        self._opened.size = 8

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the mechanism alone; its tables are made again on first use."""
        return attrgetter("_model"), (self.description,)

    @cached_property
    def tree(self) -> Tree:
        """Spanning tree."""
        return Tree(self.description)

    @cached_property
    def masses(self) -> Masses:
        """Packed bodies and point masses."""
        return pack_masses(self.tree)

    @cached_property
    def loads(self) -> Loads:
        """Packed gravity, forces and springs."""
        return pack_loads(self.tree)

    @cached_property
    def drive_train(self) -> DriveTrain:
        """Drive train: motors and their gears."""
        from kic.dynamics.drive_train import DriveTrain

        return DriveTrain(self.description, self.tree.scalar)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Tuple of the names of the default coordinates."""
        return self.description.coordinates

    @cached_property
    def is_open_chain(self) -> bool:
        """True if the mechanism is an open chain whose coordinates are those of the tree."""
        return self.tree.has_own_coordinates

    @cached_property
    def has_complex_step(self) -> bool:
        """True if the description carries a complex step, as in a sensitivity."""
        return self.tree.scalar.kind == "c"

    def require_real(self, function: str, remedy: str) -> None:
        """Raise an error for a function that does not propagate complex steps."""
        if self.has_complex_step:
            raise InputError(
                f"{function} of '{self.description.name}' needs real numbers and cannot propagate the "
                f"complex step of a sensitivity. {remedy}",
                got=self.tree.scalar,
                function=function,
            )

    def require_none_held(self, function: str) -> None:
        """Raise an error for a function that would move coordinates that are held."""
        if held := self.description._held:
            raise InputError(
                f"{function} of '{self.description.name}' would move held coordinates. Lock them at their "
                f"values, as in m.lock({dict(held)}).",
                names=tuple(held),
                function=function,
            )

    @cached_property
    def length(self) -> float:
        """Characteristic length: the extent of joints, points and contacts in the reference configuration."""
        places = self._places
        extent = float(np.ptp(places, axis=0).max()) if len(places) > 1 else 0.0
        slides = self.tree.geometry[self.tree.cols[:, lay.KIND] == lay.PRISMATIC, lay.DRAWN].real
        extent = max(extent, float(np.abs(slides).max(initial=0.0)))
        # joints in one place may differ by rounding
        return extent if extent > PLACE_RTOL * np.abs(places).max(initial=0.0) else 1.0

    @cached_property
    def _places(self) -> np.ndarray:
        """Reference positions (n, 3) of joints, points, contacts and bodies."""
        places = [joint.at for joint in self.description.joints if joint.at]
        places += [point.at for point in self.description.points]
        places += [frame.origin for frame in self.description.frames]
        places += [contact.at for contact in self.description.contacts]
        places += [body.reference for body in self.description.bodies if body.reference]
        return np.array(places).real.reshape(-1, 3)

    @cached_property
    def rounding(self) -> float:
        """Rounding error of positions relative to the characteristic length; it grows far from the origin."""
        return EPS * max(1.0, float(np.abs(self._places).max(initial=0.0)) / self.length)

    @cached_property
    def inertia_error(self) -> np.ndarray:
        """Estimated error (M,) of the diagonal of I* in the tree's coordinates, from the masses they move."""
        numbers = self.masses.numbers.real
        mass, reach = numbers[:, 0], np.maximum(self.length, np.abs(numbers[:, 1:4]).max(axis=1, initial=0.0))
        turning = mass * reach**2 + numbers[:, 4:7].sum(axis=1)
        moved = np.zeros(self.tree.size)
        for frame, m, I in zip(self.masses.frames.tolist(), mass, turning, strict=True):
            path = list(self.tree.path(frame))
            moved[path] += np.where(self.tree.cols[path, lay.KIND] == lay.PRISMATIC, m, I)
        return EPS * moved

    @cached_property
    def reference_state(self) -> np.ndarray:
        """State (1, S) of the reference configuration."""
        return self.tree.reference_state

    def value_rows(self, name: str) -> tuple[int, bool]:
        """Return the number of rows of a name, and a flag that is True if they all have values."""
        rows = self.rows(name, 1).layout.rows
        return len(rows.labels), rows.holonomic

    def rows(self, of: str | Iterable[str], order: int) -> Query:
        """Return the query for rows in the tree's coordinates, from a cache."""
        key = (of if isinstance(of, str) else names_of(of), order)
        found = self._row_queries.get(key)
        if found is None:
            names = (of,) if isinstance(of, str) else key[0]
            found = self._row_queries[key] = output_query(self.tree, make_rows(self.tree, names), order)
        return found

    def pose(self, name: str) -> Query:
        """Return the query for the pose of a body or frame: its origin and its axes."""
        tree, part = self.tree, frame_part(self.tree, name)
        found = self._row_queries.get(("pose", name))
        if found is None:
            items = [Item.point_on(tree, part.body, part.origin), *directions_on(tree, part.body, part.axes)]
            found = output_query(tree, plain_rows(tree, items), 1)
            self._row_queries["pose", name] = found
        return found

    def poses(self, name: str, states: np.ndarray) -> np.ndarray:
        """Return the poses (B, 4, 4) of a frame or body at states (B, S)."""
        query = self.pose(name)
        p = query.arrays(states)[0].reshape(len(states), 4, 3)
        T = np.zeros((len(states), 4, 4), p.dtype)
        T[:, 3, 3] = 1
        T[:, :3, 3] = p[:, 0]
        # columns of the rotation: the axes
        T[:, :3, :3] = np.swapaxes(p[:, 1:], -1, -2)
        return T

    def values(self, of: str | Iterable[str], states: np.ndarray) -> np.ndarray:
        """Return the values (B, P) of rows at states (B, S)."""
        query = self.rows(of, 1)
        rows = query.layout.rows
        values = rows.complete(query.arrays(states)[0])
        return values if rows.select is None else values[:, rows.select]

    @cached_property
    def free_bodies(self) -> FreeBodies:
        """Free-body system: the mechanism with every joint cut."""
        from kic.transfer.free_bodies import FreeBodies

        return FreeBodies(self.tree, self.length)

    @cached_property
    def cut_joint_loads(self) -> tuple[Joint, ...]:
        """Cut joints with springs, dampers or armature."""
        laws = ("stiffness", "damping", "armature")
        return tuple(j for j in self.tree.cuts if any(any(getattr(j, key)) for key in laws))

    def check_distances(self, rows: Rows, T: np.ndarray, ok: np.ndarray | None) -> None:
        """Raise an error if a distance has NaN coefficients because its two points coincide."""
        if not rows.distances or T.dtype.kind == "O":
            return
        if np.isnan(T if ok is None else T[ok.reshape(-1)]).any():
            raise InputError(
                f"A distance of '{self.description.name}' is zero here ({', '.join(rows.distances)}) and has "
                "no derivatives. Use the points themselves, or move them apart.",
                distances=rows.distances,
            )

    def check_springs(self, load: np.ndarray, ok: np.ndarray | None) -> None:
        """Raise an error if a spring has NaN loads because its two ends coincide."""
        if not self.description.springs or load.dtype.kind == "O":
            return
        if not np.isnan(load if ok is None else load[ok]).any():
            return
        springs = self.description.springs
        names = tuple(s.name for s in springs if s.rest or s.damping) or tuple(s.name for s in springs)
        raise InputError(
            f"The ends of one of the springs {', '.join(names)} coincide, so its force has no direction. "
            "Move its points or choose another configuration.",
            names=names,
        )

    @cached_property
    def real(self) -> CompiledModel:
        """Model of the mechanism without complex step, for position problems."""
        return self.description._without_complex_step()._model if self.has_complex_step else self

    @cached_property
    def dof(self) -> int:
        """Number of degrees of freedom at and near the reference configuration, from the rank of the closure.

        In a singular configuration the rank is not conclusive, and the account of `mobility` is used.
        """
        if self.has_complex_step:
            return self.real.dof
        try:
            transfer = self.transfer(self.coordinates)
        except LoopError:  # a cut joint among them has no coordinates
            transfer = self.transfer(())
        found = regular_dof(transfer, lambda: self.closure(()), self.reference_state)
        return self.mobility().dof if found is None else found

    def mobility(self) -> Mobility:
        """Return the account of the mobility at the reference configuration."""
        return self.real._mobility

    @cached_property
    def _mobility(self) -> Mobility:
        from kic.transfer.mobility.mobility import Mobility

        return Mobility(self, self.reference_state)

    @property
    def _transfer_class(self) -> type[CoordinateTransfer]:
        if not self.has_complex_step:
            return CoordinateTransfer
        from kic.transfer.complex_step import ComplexStepTransfer

        return ComplexStepTransfer

    def transfer(self, names: tuple[str, ...]) -> CoordinateTransfer:
        """Return the transfer to named coordinates, from a cache."""
        found = self._transfers.get(names)
        if found is None:
            tolerance = self.description.closure_tolerance
            found = self._transfers[names] = self._transfer_class(
                self.tree, names, self.length, tolerance, (), self.mobility
            )
        return found

    def positions(self, names: tuple[str, ...]) -> Positions | None:
        """Return the `Positions` of coordinates that include angular velocities; None if all have values.

        Raises
        ------
        InputError
            If only one or two components of an angular velocity are coordinates.
        """
        if self.transfer(names).holonomic:
            return None
        found = self._positions.get(names)
        if found is None:
            found = self._positions[names] = Positions(self, names)
        return found

    def coordinate_values(self, names: tuple[str, ...], states: np.ndarray) -> np.ndarray:
        """Return the values (B, M) of coordinates at states (B, S), rotation vectors for orientations."""
        if self.is_open_chain and names == self.coordinates:
            return phi_of(self.tree, states)
        positions = self.positions(names)
        return self.values(names, states) if positions is None else positions.values(positions.of(states))

    def problem(self, names: tuple[str, ...], held: tuple[PoseTarget, ...]) -> Closure:
        """Return the position problem of targets, which must be as many as the degrees of freedom."""
        self.check_number(names, held)
        found = self.problems[names, held] = self.closure(names, held)
        return found

    @cached_property
    def inputs(self) -> BoundedCache[str, NamedInput]:
        """Cache of what names in inputs mean; it begins with the single coordinates of the tree."""
        known, single = BoundedCache[str, NamedInput](), NamedInput(1, True, False)
        known.update({self.tree.columns[k]: single for k in self.tree.single_columns[0]})
        known.size += len(known)
        return known

    def named_input(self, name: str) -> NamedInput:
        """Return the `NamedInput` of a name, from a cache."""
        found = self.inputs.get(name)
        if found is None:
            part = self.parts.get(name)
            if isinstance(part, Body | Frame):  # it has angular velocities, which have no value
                found = NamedInput(6, False, True)
            elif name in self.description._ball_joints:
                found = NamedInput(3, False, True)
            else:
                rows = make_rows(self.tree, (name,))
                largest = np.pi if isinstance(part, Angle) else np.inf if isinstance(part, Distance) else 0.0
                found = NamedInput(len(rows.labels), rows.holonomic, False, largest)
            if found.valued or found.has_pose:
                self.inputs[name] = found
        return found

    def closure(self, names: tuple[str, ...], held: tuple[PoseTarget, ...] = ()) -> Closure:
        """Return the position problem for values of named rows and poses of bodies, from a cache."""
        found = self._closures.get((names, held))
        if found is None:
            transfer, posed = self.transfer(names), None
            places = []
            if held:
                rows, items = len(transfer.labels), list[Item]()
                turned = [item for one in held for item in turned_items(self.tree, one)]
                if rows + sum(heights(turned)) == self.dof:  # none of them is redundant, as in a plane
                    posed = CoordinateTransfer(
                        self.tree, names, self.length, transfer.tolerance, turned, self.mobility
                    )
                for one in held:
                    made = pose_items(self.tree, one)
                    places.append((str(one), rows, rows + one.turns_at))
                    rows += sum(heights(made))
                    items += made
                transfer = self._transfer_class(
                    self.tree, names, self.length, transfer.tolerance, items, self.mobility
                )
            found = self._closures[names, held] = Closure(transfer, tuple(places), posed)
        return found

    def check_number(self, names: tuple[str, ...] | None, held: tuple[PoseTarget, ...] = ()) -> None:
        """Check that coordinates and body poses are as many as the degrees of freedom, and none is fixed.

        `names` is None for the default coordinates.
        """
        unnamed = names is None and given_names(self.description, "coordinates") is None
        names = self.coordinates if names is None else names
        touching = {contact.name for contact in self.description._closed_contacts}
        closed = [part for part in map(part_of, names) if part in touching] if touching else []
        if closed:
            raise InputError(
                f"Contact '{closed[0]}' of '{self.description.name}' is closed, so its rows cannot "
                "be coordinates. Name rows that move, or set `closed = False`.",
                name=closed[0],
            )
        remedy = "Name rows that move, or remove `fixed`."
        check_variable(self.description, names, "a coordinate", remedy)
        labels = self.transfer(names).labels
        twice = [name for k, name in enumerate(labels) if name in labels[:k]]
        if twice:
            raise InputError(
                f"'{twice[0]}' of '{self.description.name}' is named twice as a coordinate. Replace one by "
                "another row.",
                name=twice[0],
            )
        room = motion_subspace(self.tree) if held else None
        counts = [room.count(one) for one in held] if room else []
        count = len(labels) + sum(counts)
        if count == self.dof:
            return
        if unnamed and count > self.dof:
            raise InputError(self._unnamed(), mobility=self.dof, count=0)
        named = [*labels, *(f"{one}: {n}" for one, n in zip(held, counts, strict=True))]
        remedy = f"Name {self.dof - count} more." if count < self.dof else f"Name {self.dof}."
        if not self.dof:
            remedy = f"It does not move: name none.{self._oblique_hinge()}"
        if named and not held and count < self.dof and self.mobility().regular:
            remedy += f" With {either(labels, 'and')} held, {self.unconstrained_coordinates(names)} can move."
            remedy = f"{remedy} {self.transfer(names).undriven_freedom()}".rstrip()
            if self.is_open_chain:
                remedy += " `track` and `resolve_redundancy` choose them."
        bodies = [one.body for one in held if one.body not in self.description._ball_joints]
        if bodies and count > self.dof:
            remedy += f" Of a body with restricted motion, give single rows, such as '{bodies[0]}.x'."
        raise InputError(
            f"'{self.description.name}' has mobility {self.dof}; {coordinates_named(count)}: "
            f"{', '.join(named) or 'none'}. {remedy} {self.mobility().caveat()}".rstrip(),
            mobility=self.dof,
            count=count,
        )

    def _oblique_hinge(self) -> str:
        """Return a sentence on the only hinge that is not parallel to the others; '' without such a hinge."""
        hinges = [joint for joint in self.description.joints if joint.type == "revolute"]
        axes = np.array([unit(joint.axis).real for joint in hinges]).reshape(-1, 3)
        apart = np.linalg.norm(np.cross(axes[:, None], axes), axis=-1) > PLANARITY_ATOL
        for joint, others in zip(hinges, apart, strict=True):
            if len(hinges) > 3 and others.sum() == len(hinges) - 1 and not apart[others][:, others].any():
                return f" The axes of all hinges but '{joint.name}' are parallel."
        return ""

    def _unnamed(self) -> str:
        """Return the error text for a mechanism that needs named coordinates and has none."""
        head = f"'{self.description.name}' has mobility {self.dof}, and no coordinates are named"
        if not self.dof:
            caveat = self.mobility().caveat()
            still = f"It does not move: add `coordinates = []`.{self._oblique_hinge()}"
            return f"{head}. {still} {caveat}".rstrip()
        if self.has_complex_step:
            return self.real._unnamed()
        closure, names = self.closure(self.coordinates), self.coordinates
        G, first = closure.rows(self.reference_state)[1][0], closure.transfer.size
        least = max(RANK_SHARE, closure.transfer.tolerance) * max(float(np.linalg.norm(G, 2)), 1.0)
        found: list[int] = []  # the first that neither the conditions nor earlier coordinates determine
        kept = list(range(first, len(G)))
        for row in range(first):
            if np.linalg.matrix_rank(G[[*kept, row]], least) > np.linalg.matrix_rank(G[kept], least):
                found.append(row)
                kept.append(row)
        few = names if len(names) <= 12 else (*names[:10], "…", names[-1])
        among = f"any {self.dof} of {', '.join(few)} that can drive it"
        said = ", ".join(f'"{names[row]}"' for row in found)
        remedy = f" = [{said}]`, or {among}" if len(found) == self.dof else f"`: {among}"
        return f"{head}. Add `coordinates{remedy}. {self.mobility().caveat()}".rstrip()

    def actuators(
        self,
        given: str | Iterable[str] | None,
        default: tuple[str, ...] | None = None,
        hold_all: bool = True,
    ) -> tuple[str, ...]:
        """Return the labels of the rows where efforts act.

        If `given` is None, the declared `actuators` of the mechanism apply, then `default`, then the
        coordinates. With `hold_all`, there must be at least as many as the degrees of freedom.
        """
        if given is not None:
            names = names_of(given, "actuators")
        elif given_names(self.description, "actuators") is not None or default is None:
            names = self.description.actuators
        else:
            names = default
        still = {
            name: f"{self.description._label(name)} of '{self.description.name}' is fixed"
            for name in self.description._fixed_names
        }
        for contact in self.description._closed_contacts:
            still[contact.name] = f"Contact '{contact.name}' of '{self.description.name}' is closed"
        for base in map(part_of, names):
            if base in still:
                raise InputError(
                    f"{still[base]} and cannot be an actuator: an effort there does no work. Omit it; "
                    "joint_forces() computes its load.",
                    name=base,
                )
        labels = self.rows(names, 1).layout.rows.labels if names else ()
        twice = sorted({name for name in labels if labels.count(name) > 1})
        if twice:
            raise InputError(
                f"`actuators` must be distinct, got {', '.join(twice)} twice. Name each once.",
                key="actuators",
                got=tuple(twice),
            )
        if hold_all and len(labels) < self.dof:
            raise InputError(
                f"'{self.description.name}' has mobility {self.dof}; {len(labels)} actuators were "
                f"{'named' if given is not None else 'declared'}: {', '.join(labels) or 'none'}. Name "
                f"{self.dof} or more in `actuators`.",
                count=len(labels),
                mobility=self.dof,
            )
        return labels

    def unconstrained_coordinates(self, names: tuple[str, ...]) -> str:
        """Return coordinates that can move from the reference configuration while named rows are constant."""
        closure = self.closure(names)
        return closure.transfer.unconstrained_coordinates(closure.rows(self.reference_state)[1][0])

    def program(
        self,
        wrt: str | Iterable[str] | Transfer | None,
        of: str | Iterable[str] = (),
        order: int = 1,
        want: int = 0,
        along: bool = False,
        keep: bool = False,
    ) -> Program:
        """Return the program for rows and dynamics, or for results along motions, from a cache.

        Parameters
        ----------
        wrt : str, list of str, Transfer or None
            Coordinates, by default the mechanism's own.
        of : str or list of str
            Rows, or bodies of a regressor.
        order : {1, 2, 3}
            Highest order of the rows.
        want : int
            Flags of the requested parts of the dynamics; 0 requires rows.
        along : bool
            True for results along motions.
        keep : bool
            True to keep the table of φ among the results.
        """
        # lists of names are keys as tuples: this is the hot path
        key = tuple(wrt) if type(wrt) is list else wrt, tuple(of) if type(of) is list else of
        try:
            found = self._programs.get((key, order, want, along, keep)) if type(order) is int else None
        except TypeError:  # names that are no strings
            found = None
        if found is None:
            if want & lay.WANT_FORWARD:
                self.require_none_held("Forward dynamics")
            is_transfer = isinstance(wrt, IdentityTransfer | CoordinateTransfer)
            transfer: Any = wrt if is_transfer else self.transfer_for(wrt)  # type: ignore[arg-type]
            names, order = names_of(of, least=0 if want else 1), check_order(order)
            rows, masses, loads = None, None, self.loads if want else None
            if want & lay.WANT_REGRESSOR:
                masses = pack_bodies(self.tree, names)
            else:
                rows, masses = make_rows(self.tree, names) if names else None, self.masses if want else None
            found = Program(transfer, rows, order, masses, loads, want, along, keep, self)
            # a mutable argument may be exhausted or change later, and is not a key
            if (is_transfer or isinstance(key[0], _KEYS)) and isinstance(key[1], _KEYS):
                self._programs[key, order, want, along, keep] = found
        return found

    def prepared(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return the object of a key; `make` creates it on first use."""
        found = self._prepared.get(key)
        if found is None:
            found = self._prepared[key] = make()
        return found

    def rates_of(self, transfer: Transfer, of: str, order: int, states: np.ndarray) -> Coefficients:
        """Return the coefficients of an output at states (B, S) with respect to a transfer's coordinates."""
        program = self.program(transfer, of, order)
        return program.coefficients(program.run(states))

    def contributions(self, transfer: Transfer, states: np.ndarray) -> np.ndarray:
        """Return the contributions (B, N, n) of N bodies to I* and P*, see `contributions_query`."""
        query = self.contributions_query(transfer)
        X, masses = transfer.tree_table(states), self.masses
        T = np.empty((len(states), len(masses.names), query.layout.width), states.dtype)
        return query.run(states, X, np.zeros(len(self.tree.cols), np.int64), out=T)

    def contributions_query(self, transfer: Transfer) -> Query:
        """Return the query for the contribution of each body to I* and P*."""
        return contributions_query(self.tree, self.masses, transfer.size)

    def with_open_contacts(self, contacts: tuple[str, ...]) -> CompiledModel:
        """Return the model of the mechanism with some contacts open, on the same tree, from a cache."""
        found = self._opened.get(contacts)
        if found is None:
            every = tuple(
                replace(c, closed=c.closed and c.name not in contacts) for c in self.description.contacts
            )
            found = self._opened[contacts] = replace(self.description, contacts=every)._model
        return found

    @cached_property
    def identity(self) -> IdentityTransfer:
        """Transfer of an open chain to its own coordinates."""
        return IdentityTransfer(self.tree, self.coordinates, self.length)

    def transfer_for(self, wrt: str | Iterable[str] | None) -> Transfer:
        """Return the transfer to requested coordinates, by default the mechanism's own."""
        if wrt is None and self.is_open_chain:
            return self.identity
        names = None if wrt is None else names_of(wrt, "wrt")
        found = self._checked.get(names)
        if found is None:
            given, names = names, self.with_held(names) if self.description._held else names
            self.check_number(names)
            solving = self.transfer(self.coordinates if names is None else names)
            # a constant map needs no system
            constant = None if self.has_complex_step else solving.linear_map
            found = solving if constant is None else LinearTransfer(solving, constant)
            self._checked[given] = found
        return found

    def with_held(self, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Return coordinates with the held ones that are missing, unless the others suffice."""
        held = self.description._held
        if names is None or not held or len(self.transfer(names).labels) == self.dof:
            return names
        return (*names, *(name for name in held if name not in names))
