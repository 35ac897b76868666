"""Configurations of a mechanism, and everything that is computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from kic.description.parts import Frame, Joint
from kic.description.units import row_unit
from kic.dynamics.contributions import Contributions, add_rotors
from kic.dynamics.dynamics import Dynamics, computed_dynamics
from kic.errors import InputError, MemberError, OutOfRangeError, invalid
from kic.kernels.layout import WANT_INERTIA, WANT_LOADS
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.euler import EULER
from kic.kinematics.state import phi_of
from kic.numerics.arguments import flag, instance, names_of
from kic.numerics.arrays import (
    broadcast_batches,
    check_failures,
    check_finite,
    check_order,
    map_valid_members,
    scatter,
)
from kic.numerics.display import Printable, Summary
from kic.numerics.tables import DataTable, Tabular, Variable, batch_axes
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.identity import Transfer
from kic.transfer.limits import SWING, swing_angle
from kic.transfer.targets import BatchTargets

if TYPE_CHECKING:
    from scipy.spatial.transform import RigidTransform

    from kic.actuation.distribution import Distribution
    from kic.actuation.internal_loads import InternalLoads
    from kic.analysis.singularities import Singularities
    from kic.analysis.whole_body import CentroidalMomentum
    from kic.dynamics.drive_train import MotorDemand
    from kic.grasp.grasp import Grasp
    from kic.joint_forces.joint_forces import JointForces
    from kic.linear.linearize import Linearization
    from kic.linear.state_space import StateSpace
    from kic.operational_space.ellipsoids import Ellipsoid, Kind
    from kic.operational_space.operational_space import OperationalSpace
    from kic.operational_space.redundancy import RedundancyResolution
    from kic.operational_space.weighting import Damping, Law, Weight


class Configuration(Printable, Tabular):
    """Configuration of a mechanism, or a batch of configurations, with the pose of every body.

    `Mechanism.at` makes it. It is immutable. Its methods compute everything else, in any coordinates `wrt`.

    Attributes
    ----------
    ok : (...) bool
        Mask of the members that were solved; the others are NaN in every result.
    state : (..., S)
        State of the spanning tree, the input of prepared evaluators: one number for each revolute or
        prismatic joint, a unit quaternion (w, x, y, z) for each spherical joint.

    Examples
    --------
    >>> c = kic.load("horn-two-link").at([[0.0, 0.0], [0.0, 0.5]])
    >>> c.batch, c.value("tip").round(3).tolist()
    ((2,), [[2.0, 0.0, 0.0], [1.878, 0.479, 0.0]])
    """

    def __init__(
        self,
        model: CompiledModel,
        batch: tuple[int, ...],
        states: np.ndarray,
        ok: np.ndarray | None = None,
        aims: BatchTargets | None = None,
    ) -> None:
        self._model = model
        self._states = states
        self._batch = batch
        self._ok = ok
        # targets of all members, solved or not, of a position problem
        self._aims = aims

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; ``()`` for one configuration."""
        return self._batch

    @property
    def ok(self) -> np.ndarray:
        """Mask (...) of the members that were solved."""
        return np.ones(self.batch, dtype=bool) if self._ok is None else self._ok.copy()

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self._model.description.name

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Tuple of the names of the default coordinates of results."""
        return self._model.coordinates

    @property
    def state(self) -> np.ndarray:
        """State of the spanning tree, (..., S); a copy."""
        return self._states.reshape(*self.batch, self._states.shape[-1]).copy()

    @property
    def phi(self) -> np.ndarray:
        """Array (..., M) of the coordinates of the spanning tree.

        Spherical joints have rotation vectors. Those of an open chain are in the order of `coordinates`, and
        ``mechanism.at(c.phi)`` is the same configuration.
        """
        phi = phi_of(self._model.tree, self._states)
        return phi.reshape(*self.batch, self._model.tree.size)

    def __getitem__(self, members: Any) -> Self:
        """Return members of a batch by a NumPy index of its axes.

        Parameters
        ----------
        members : int, slice, array of int or bool, or a tuple of these
            For example ``path[-1]``, ``path[::10]``, ``grid[0, :]``, ``c[c.ok]``.

        Returns
        -------
        Configuration
            With the remaining batch.

        Raises
        ------
        IndexError
            If an index is out of range.
        InputError
            If this is one configuration, which has no members.

        Examples
        --------
        >>> path = kic.load("four-bar").path({"A": [1.0, 1.1, 1.2]})
        >>> path[-1].value("A").round(6), path[:2].batch
        (np.float64(1.2), (2,))
        """
        if not self.batch:
            raise InputError(
                f"This is one configuration of '{self.name}' and has no members. Use it without an index.",
                batch=(),
            )
        try:
            which = np.asarray(np.arange(prod(self.batch)).reshape(self.batch)[members])
        except (TypeError, ValueError, OverflowError):
            which = None
        except IndexError as error:
            raise OutOfRangeError(
                f"`members` must be an index of the batch {self.batch}: {error}.", key="members"
            ) from None
        if which is None:
            kinds = "integers, slices, or arrays of integers or booleans"
            raise invalid("members", f"must be {kinds}", members)
        ok = None if self._ok is None else self._ok.reshape(-1)[which]
        which, shape = which.reshape(-1), which.shape
        aims = None if self._aims is None else self._aims.take(which)
        return type(self)(self._model, shape, self._states[which], ok, aims)

    def _at_states(self, batch: tuple[int, ...], states: np.ndarray, ok: np.ndarray | None = None) -> Any:
        """Return a configuration of the same mechanism at other states."""

        return Configuration(self._model, batch, states, ok)

    def __iter__(self) -> Iterator[Self]:
        """Iterate over the first axis of the batch."""
        if not self.batch:
            raise InputError(
                f"This is one configuration of '{self.name}' and has no members. Use it without an index.",
                batch=(),
            )
        return (self[k] for k in range(self.batch[0]))

    def _masked(self, T: np.ndarray) -> np.ndarray:
        """Set the rows of unsolved members to NaN."""
        if self._ok is not None:
            T[~self._ok.reshape(-1)] = np.nan
        return T

    def value(self, name: str) -> np.ndarray:
        """Return the values of a point, a joint, a distance or a single row.

        Parameters
        ----------
        name : str
            For example "tip" (..., 3), "tip.x" (...,), "A" (...,), "hand.angle" (...,), or "S1.swing",
            the swing of a universal or spherical joint.

        Returns
        -------
        ndarray
            (..., P) for a part with several rows, (...,) for a single row.

        Raises
        ------
        InputError
            For an angular velocity, which is not the derivative of a coordinate; `pose` has the orientation.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).value("tip")
        array([2., 0., 0.])
        """
        base, _, row = name.partition(".") if isinstance(name, str) else ("", "", "")
        if row == SWING and isinstance(self._model.description.parts.get(base), Joint):
            return self._masked(swing_angle(self._model, base, self._states)).reshape(self.batch)
        query = self._model.rows(name, 1)
        rows = query.layout.rows
        if not rows.holonomic:
            raise InputError(
                f"'{name}' includes angular velocities, which have no value. Name a point, or use the pose() "
                "of a body.",
                name=name,
            )
        values = self._masked(self._model.values(name, self._states))
        values = values.reshape(*self.batch, len(rows.labels))
        if rows.angles:
            self._model.check_gimbal(rows, query.layout.split(query.table(self._states), self.batch)[0])
        return values[..., 0][()] if len(rows.labels) == 1 else values

    def pose(self, name: str) -> RigidTransform:
        """Return the pose of a frame in the world, or the displacement of a body, as a `RigidTransform`.

        The pose of a `Frame` maps its own coordinates to world coordinates: it is the matrix T₀ₙ of a robot,
        in one call. A body has no axes of its own. Its pose is that of a frame in it which coincides with the
        world in the reference configuration, and so its displacement from the reference configuration:
        ``pose.apply(p)`` is the current place of the body's point with reference position p.

        Parameters
        ----------
        name : str
            Name of the frame or body.

        Returns
        -------
        scipy.spatial.transform.RigidTransform
            With the batch of this configuration.

        Raises
        ------
        InputError
            For complex numbers, symbols, or unsolved members.

        Examples
        --------
        >>> from dataclasses import replace
        >>> arm = replace(kic.load("horn-two-link"), frames=[kic.Frame("tool", "link2", origin=(2, 0, 0))])
        >>> c = arm.at([0.0, 0.5])
        >>> c.pose("tool").as_matrix().round(3)
        array([[ 0.878, -0.479,  0.   ,  1.878],
               [ 0.479,  0.878,  0.   ,  0.479],
               [ 0.   ,  0.   ,  1.   ,  0.   ],
               [ 0.   ,  0.   ,  0.   ,  1.   ]])
        >>> c.pose("link2").apply([2.0, 0.0, 0.0]).round(3)
        array([1.878, 0.479, 0.   ])
        """
        from scipy.spatial.transform import RigidTransform

        self._model.require_real("pose()", "Use displacement(), which returns a matrix.")
        return RigidTransform.from_matrix(self._pose(name))

    def displacement(self, name: str) -> np.ndarray:
        """Return the displacement of a body or frame from the reference configuration as a matrix.

        Parameters
        ----------
        name : str
            Name of the body; or of a frame, which is displaced with its body.

        Returns
        -------
        (..., 4, 4) ndarray

        Raises
        ------
        UnknownNameError, InputError
            As `pose`; complex numbers and symbols of the mechanism's own type are accepted.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).displacement("link2")[:3, :3]
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
        """
        T = self._pose(name)
        part = self._model.description.parts[name]
        if isinstance(part, Frame):  # T = displacement · [axes, origin]
            T[..., :3, :3] = T[..., :3, :3] @ np.array(part.axes)
            T[..., :3, 3] -= T[..., :3, :3] @ np.array(part.origin)
        return T

    def _pose(self, name: str) -> np.ndarray:
        """Return the pose (..., 4, 4) of a frame or body."""
        if self._states.dtype not in (np.float64, self._model.tree.scalar):
            raise InputError(
                f"pose() needs real numbers, and this configuration has {self._states.dtype}. Convert it.",
                key="configuration",
                got=self._states.dtype,
            )
        if self._ok is not None:
            raise InputError(
                f"pose() needs every member, but {int((~self.ok).sum())} of {self.ok.size} were not solved. "
                "Select the others by `ok`.",
                key="configuration",
                failed=[tuple(index) for index in np.argwhere(~self.ok).tolist()],
            )
        return self._model.poses(name, self._states).reshape(*self.batch, 4, 4)

    def euler(self, name: str, sequence: str = "xyz") -> np.ndarray:
        """Return the Euler angles of a frame or body in the world, or of a ball joint.

        They are rows like any other: ``coefficients("tool.euler_xyz")`` has their derivatives, `wrt` takes
        them as coordinates, and ``at({"tool.euler_xyz": angles})`` as an orientation. The three rows of
        "tool.euler_xyz" are "tool.euler_xyz.1" and so on.

        Parameters
        ----------
        name : str
            Name of a frame; of a body, whose angles are those of its displacement from the reference
            configuration; or of a spherical or free joint, the rotation of its second body relative to the
            first.
        sequence : str
            Three axes as in SciPy's `Rotation.as_euler`: lowercase about fixed axes, uppercase about moving
            axes. "xyz" are roll, pitch and yaw.

        Returns
        -------
        (..., 3) ndarray
            Angles in radians, in the order of the sequence. The second is within ±π/2, or within 0 and π if
            the first and third axes are the same; the others are within ±π.

        Raises
        ------
        UnknownNameError
            If there is no such part.
        InputError
            For another part, an invalid sequence, or symbols.
        SingularError
            In gimbal lock, where the first and third angle are not determined; `pose` is.

        Examples
        --------
        >>> c = kic.load("puma560").at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
        >>> c.euler("link6", "xyz").round(4)
        array([...])
        """
        instance("name", name, str)
        return self.value(f"{name}.{EULER}{instance('sequence', sequence, str)}")

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        names = self.coordinates if names is None else names_of(names, "names", 1)
        return DataTable(self.name, batch_axes(self.batch), tuple(self._columns(names)))

    def _columns(self, names: Iterable[str]) -> Iterator[Variable]:
        """Yield the values of rows as columns of a table, NaN for angular velocities."""
        for name in names:
            rows = self._model.rows(name, 1).layout.rows
            for label, has_value in zip(rows.labels, rows.valued, strict=True):
                values = self.value(label) if has_value else np.full(self.batch, np.nan)
                yield Variable(label, values, row_unit(self._model.description, label))

    def potential_energy(self) -> np.ndarray:
        """Return the potential energy of gravity and of springs between points and in joints.

        Weights are measured from the origin of the reference configuration, springs from their free length.
        Forces and moments of the model have no potential, nor have dampers.

        Returns
        -------
        (...) ndarray

        Examples
        --------
        >>> kic.load("horn-two-link").at([np.pi / 2, 0.0]).potential_energy().round(4)
        np.float64(19.62)
        """
        description = self._model.description
        U = np.zeros(self.batch)
        g = np.array(description.gravity)
        for body in description.bodies:
            if body.mass and g.any():
                T = self.displacement(body.name)
                U = U - body.mass * ((T[..., :3, :3] @ np.array(body.com) + T[..., :3, 3]) @ g)
        for point in description.points:
            if point.mass and g.any():
                U = U - point.mass * (self.value(point.name) @ g)
        for spring in description.springs:
            r = self.value(spring.points[1]) - self.value(spring.points[0])
            stretch = np.sqrt(np.einsum("...i,...i->...", r, r)) - spring.rest
            U = U + spring.stiffness * stretch**2 / 2
        for joint in description.joints:
            for name, k, rest in zip(joint.components, joint.stiffness, joint.rest, strict=True):  # type: ignore[arg-type]
                if k:
                    U = U + k * (self.value(name) - rest) ** 2 / 2
        return U

    def kinetic_energy(self, qd: Any, wrt: str | Iterable[str] | None = None) -> np.ndarray:
        """Return the kinetic energy ½ q̇ᵀ I* q̇ of the bodies.

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the coordinates.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.

        Returns
        -------
        (...) ndarray

        Raises
        ------
        InertiaError, SingularError, InputError
            As `dynamics`; also for another shape.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).kinetic_energy([1.0, 0.0]).round(4)
        np.float64(1.3333)
        """
        return self.dynamics(wrt).kinetic_energy(qd)

    def summary(self) -> Summary:
        """Return a table of the coordinates."""
        sheet = Summary(f"{self.name}: configuration")
        index = sheet.member(self.batch)
        if self._ok is not None:
            sheet.say(f"{int((~self.ok).sum())} of {self.ok.size} members were not solved")
        if index is not None:
            names = self.coordinates if self._model.is_open_chain else self._model.tree.columns
            # joints where loops are cut are not columns of the tree
            cut = [] if self._model.tree.open else valued(self._model.description.joints)
            cut = [c for c in dict.fromkeys((*cut, *self.coordinates)) if c not in names]
            one = self[index] if self.batch else self
            values = np.concatenate([one.phi, single_values(one, cut)])
            caption = "coordinates" if self._model.tree.open else "joints"
            sheet.matrix(caption, [*names, *cut], ["value"], values[:, None])
        return sheet

    def coefficients(
        self,
        of: str | Iterable[str],
        order: int = 2,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Coefficients:
        """Compute the Jacobian (G), Hessian (H) and third derivatives (D) of outputs in any coordinates.

        Velocities are u̇ = G q̇, accelerations ü = G q̈ + q̇ᵀ H q̇: (3-1), (3-2), or (4-65), (4-66) for fewer
        rows than coordinates.

        Parameters
        ----------
        of : str or list of str
            Outputs: points ("tip"), bodies ("hand": x y z of its reference point, then wx wy wz), joints,
            distances, or single rows ("tip.x", "hand.wz", "hand.angle" of a planar mechanism).
        order : {1, 2, 3}
            Highest order.
        wrt : str or list of str, optional
            Coordinates: joints, points, body motion, distances, or single rows of them, as many as the
            mechanism has degrees of freedom. By default the mechanism's own.
        failures : {"raise", "mask"}
            Result for members where the coordinates cannot drive the mechanism: an error that names them, or
            NaN.

        Returns
        -------
        Coefficients
            G (..., P, M), H (..., P, M, M), D (..., P, M, M, M), with named rows and columns (Tables 2-3 to
            2-5).

        Raises
        ------
        UnknownNameError
            If a name does not exist, with the candidates.
        InputError
            If the order is invalid, a part has no such rows, or the number of coordinates differs from the
            degrees of freedom.
        SingularError
            If the coordinates cannot drive the mechanism here. It names sets of coordinates that can.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> c.coefficients("tip", order=1).G
        array([[0., 0.],
               [2., 1.],
               [0., 0.]])
        """
        model = self._model
        transfer = model.transfer_for(wrt)
        names = of if isinstance(of, str) else names_of(of, least=1)
        query = model.query(transfer, names, check_order(order))
        found, ok = self._evaluate(transfer, query, failures, self._states, self.batch, self._ok)
        table, T, batch = query.outputs, found.T, self.batch
        parts = table.split(T, batch)
        if ok is not None or not found.finite or table.rows.angles:
            model.check_distances(table.rows, T, ok)
            ok = model.check_gimbal(table.rows, parts[0], failures, ok)
            if ok is not None:
                T[~ok.reshape(-1)] = np.nan
            check_finite("Coefficients", self.name, T, None if ok is None else ok.reshape(-1))
        pivot, error = found.pivot, found.error
        return model.assemble(
            table.rows,
            parts,
            transfer,
            None if pivot is None else pivot.reshape(batch),
            None if error is None else error.reshape(batch),
        )

    def _evaluate(
        self,
        transfer: Transfer,
        query: Any,
        failures: str,
        states: np.ndarray,
        batch: tuple[int, ...],
        ok: np.ndarray | None,
        force: np.ndarray | None = None,
        rates: tuple[np.ndarray, ...] | None = None,
    ) -> tuple[Any, np.ndarray | None]:
        """Return the tables of a query, NaN for members without result, and the mask of the others.

        Queries along motions have `rates`, each (B, m).
        """
        check_failures(failures)
        if ok is None and failures == "raise":
            try:
                return self._table_of(transfer, query, states, force, rates), None
            except MemberError as error:
                error.place(range(len(states)), batch)
                raise

        def some(members: Any) -> Any:
            own = force if force is None or len(force) == 1 else force[members]
            motion = None if rates is None else tuple(a[members] for a in rates)
            return self._table_of(transfer, query, states[members], own, motion)

        good, found = map_valid_members(np.ones(batch, bool) if ok is None else ok, failures, some)
        return found.scatter(good), None if good.all() else good

    def _table_of(
        self,
        transfer: Transfer,
        query: Any,
        states: np.ndarray,
        force: np.ndarray | None,
        rates: tuple[np.ndarray, ...] | None,
    ) -> Any:
        """Return the tables of a query at states (B, S), with the errors that come from solving for them."""
        out = None if rates is None else query.result(rates, states.dtype)
        found = transfer.evaluate(query, states, force, out)
        inputs = self._inputs
        if inputs is not None:
            found.error = transfer.position_error(states, found, query, inputs)
        return found

    @property
    def _inputs(self) -> CoordinateTransfer | None:
        """Transfer whose equations the states were solved for; None for states that were given."""
        aims = self._aims
        if aims is None or self._model.has_complex_step:
            return None
        return self._model.closure(aims.names, aims.held).transfer

    def dynamics(
        self,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
        motors: bool = False,
    ) -> Dynamics:
        """Compute the mass matrix (I*), Christoffel symbols (P*) and loads in any coordinates.

        The efforts of a motion are T = I* q̈ + q̇ᵀ P* q̇ − Tᴸ: (3-3), or (4-40), (4-41) and (4-67) for closed
        and redundant mechanisms.

        Parameters
        ----------
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, in place of those of the model.
        failures : {"raise", "mask"}
            As in `coefficients`.
        motors : bool
            True to add the rotors of the motors and their damping (eq 2-237). Otherwise efforts are those at
            the joints.

        Returns
        -------
        Dynamics
            I* (..., M, M), P* (..., M, M, M), Tᴸ (..., M) (eqs 2-196, 2-197, 2-125, 2-147).

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        InputError
            If a force does not exist, the ends of a spring coincide, or `motors` is True for a mechanism
            without motors, or with dry friction, which this model excludes.
        SingularError
            If the coordinates cannot drive the mechanism here.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).dynamics().load
        array([-19.62 ,  -4.905])
        """
        if motors is not False and flag("motors", motors):
            from kic.actuation.motor_demand import rotor_dynamics

            return self.dynamics(wrt, applied, failures) + rotor_dynamics(self, wrt, failures)
        model = self._model
        force, batch = model.loads.constant, tuple[int, ...]()
        if applied is not None:
            force, batch = model.loads.applied(applied, self.name)
        states, shape, ok = self._states, self.batch, self._ok
        if batch:
            shape = broadcast_batches(applied=batch, configuration=self.batch)
            states = np.broadcast_to(self.state, (*shape, states.shape[-1])).reshape(-1, states.shape[-1])
            ok = None if ok is None else np.broadcast_to(ok, shape)
            force = np.broadcast_to(force, (*shape, *force.shape[-2:]))
        force = force.reshape(len(states) if batch else 1, *force.shape[-2:])
        dtype = np.result_type(states, force)
        if batch or states.dtype != dtype:
            states = np.require(states, dtype, ["C", "A", "W"])
        transfer = model.transfer_for(wrt)
        query = model.query(transfer, want=WANT_INERTIA | WANT_LOADS)
        found, ok = self._evaluate(transfer, query, failures, states, shape, ok, force)
        K = found.K
        known = slice(None) if ok is None else ok.reshape(-1)
        if model.cut_joint_loads:
            model.add_cut_joint_loads(transfer, query, states, K, known)
        parts = query.dynamics.split(K, shape)
        if ok is not None or not found.finite or model.cut_joint_loads:
            model.check_springs(parts[2], ok)
            check_finite("I*, P* or loads", self.name, K, None if ok is None else ok.reshape(-1))

        def error() -> np.ndarray:
            e = transfer.inertia_error(model.inertia_error, states[known])
            e = e if ok is None else scatter(e, ok)
            return e.reshape(*shape, e.shape[-1])

        tensors = transfer.in_coordinates(parts, (2, 3, 1, 2))
        return computed_dynamics(transfer.labels, tensors, transfer.holonomic, error, model.description)

    def motion(
        self,
        of: str | Iterable[str],
        qd: Any = None,
        qdd: Any = None,
        qddd: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Compute values, velocities, accelerations and jerks of outputs along a motion.

        The motion passes through tree and loops as a Taylor series in time. H and D are not formed.

        Parameters
        ----------
        of : str or list of str
            Outputs, as in `coefficients`.
        qd, qdd, qddd : (..., M) array_like, optional
            Velocities, accelerations and jerks of the coordinates, by default zero.
        wrt, failures
            As in `coefficients`.

        Returns
        -------
        values, velocities, accelerations, jerks : (..., P) ndarray
            Values of angular velocities are NaN.

        Raises
        ------
        UnknownNameError, InputError, SingularError
            As `coefficients`.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> values, velocities, accelerations, jerks = c.motion("tip", [1.0, 0.0])
        >>> velocities, accelerations
        (array([0., 2., 0.]), array([-2.,  0.,  0.]))
        """
        from kic.evaluator import output_motion

        return output_motion(self, of, qd, qdd, qddd, wrt, failures)

    def inverse_dynamics(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
        loads: bool = True,
        motors: bool = False,
    ) -> np.ndarray:
        """Compute the efforts of a motion (inverse dynamics), without forming I* and P*.

        T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (2-198), by Newton and Euler along the motion. Without `qdd` it is the
        bias, without both the static effort −Tᴸ, and with ``loads=False`` the inertial effort alone (2-195).

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Velocities and accelerations of the coordinates, by default zero. Plain numbers are accepted
            for one coordinate.
        wrt, applied, failures
            As in `dynamics`.
        loads : bool
            False to leave out gravity, forces, springs and dampers.
        motors : bool
            True to add the rotors of the motors, as in `dynamics`.

        Returns
        -------
        (..., M) ndarray
            (...,) if the given `qd` and `qdd` are plain numbers.

        Raises
        ------
        InertiaError, InputError, SingularError
            As `dynamics`.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> c.inverse_dynamics(), c.inverse_dynamics(qdd=[1.0, 0.0], loads=False).round(3)
        (array([19.62 ,  4.905]), array([2.667, 0.833]))

        With one degree of freedom, numbers give a number:

        >>> crank = kic.load("four-bar").at(1.2)
        >>> crank.inverse_dynamics(6.0, 0.0).round(4), crank.inverse_dynamics([6.0], [0.0]).round(4)
        (np.float64(0.0691), array([0.0691]))
        """
        from kic.evaluator import inverse_dynamics

        return inverse_dynamics(self, qd, qdd, wrt, applied, failures, loads, motors)

    def forward_dynamics(
        self,
        qd: Any = None,
        effort: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
        motors: bool = False,
    ) -> np.ndarray:
        """Compute the accelerations that efforts cause (forward dynamics), without forming P* (2-199).

        Parameters
        ----------
        qd, effort : (..., M) array_like, optional
            Velocities of the coordinates and efforts at them, by default zero. Plain numbers are accepted
            for one coordinate.
        wrt, applied, failures, motors
            As in `dynamics`.

        Returns
        -------
        (..., M) ndarray
            (...,) if the given `qd` and `effort` are plain numbers.

        Raises
        ------
        InertiaError, InputError, SingularError
            As `dynamics`; also if I* is singular because some motion moves no mass.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> c.forward_dynamics(effort=[19.62, 4.905]).round(12) + 0.0
        array([0., 0.])
        """
        from kic.evaluator import forward_dynamics

        return forward_dynamics(self, qd, effort, wrt, applied, failures, motors)

    def center_of_mass(
        self,
        bodies: str | Iterable[str] | None = None,
        order: int = 2,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Coefficients:
        """Compute the centre of mass of the moving bodies, or of some, with its derivatives.

        Parameters
        ----------
        bodies : str or list of str, optional
            Bodies that count, each with its point masses; by default all that move.
        order : {1, 2, 3}
            Highest order.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        Coefficients
            Rows com.x, com.y, com.z with values, G, H and D.

        Raises
        ------
        UnknownNameError, InertiaError
            For an unknown body, or missing masses.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).center_of_mass().values.tolist()
        [1.0, 0.0, 0.0]
        """
        from kic.analysis.whole_body import center_of_mass

        return center_of_mass(self, bodies, order, wrt, failures)

    def centroidal_momentum(
        self, wrt: str | Iterable[str] | None = None, failures: Literal["raise", "mask"] = "raise"
    ) -> CentroidalMomentum:
        """Compute the matrix of linear momentum, and of angular momentum about the centre of mass.

        Parameters
        ----------
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        CentroidalMomentum
            The matrix A of h = A q̇ and its derivatives.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).centroidal_momentum().momentum([1.0, 0.0])[1].round(6)
        np.float64(2.0)
        """
        from kic.analysis.whole_body import centroidal_momentum

        return centroidal_momentum(self, wrt, failures)

    def contributions(
        self, wrt: str | Iterable[str] | None = None, failures: Literal["raise", "mask"] = "raise"
    ) -> Contributions:
        """Compute the contribution of each body to I* and P*, by linear and by angular momentum.

        Parameters
        ----------
        wrt, failures
            As in `coefficients`.

        Returns
        -------
        Contributions
            Arrays (..., N, M, M) and (..., N, M, M, M) for N bodies (eqs 2-157, 2-158, 2-193, 2-194).

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        SingularError
            If the coordinates cannot drive the mechanism here.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0]).contributions()
        >>> c.I_linear.sum(axis=0)[0, 0] + c.I_angular.sum(axis=0)[0, 0]
        np.float64(2.6666666666666665)
        """
        model = self._model
        transfer = model.transfer_for(wrt)
        query = transfer.contributions_query(model.masses)
        good, T = map_valid_members(
            self.ok, failures, lambda members: transfer.contributions(query, self._states[members])
        )
        check_finite("Contributions", self.name, T)
        parts = transfer.in_coordinates(query.split(scatter(T, good), self.batch), (2, 2, 3, 3))
        rotors = tuple(joint.name for joint in model.description.joints if any(joint.armature))  # type: ignore[arg-type]
        if rotors:
            parts = add_rotors(
                self.coefficients(rotors, wrt=wrt, failures=failures), parts, model.description, rotors
            )
        return Contributions((*model.masses.names, *rotors), transfer.labels, *parts)

    def joint_forces(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        actuators: str | Iterable[str] | None = None,
        split: Literal["minimum norm"] | None = None,
        effort: Any = None,
        out_of_plane: bool = False,
    ) -> JointForces:
        """Compute the forces and moments in all joints for a motion, and the efforts that drive it.

        Every joint is cut and replaced by its loads, as in (4-31): T_c at the conditions that the joint
        imposes, T at the coordinates with actuators. A coupling acts as efforts in its joints, a fixed
        distance as a force between its points, and a closed contact as a joint. Joints are frictionless.
        Bodies are rigid: if they are overconstrained, equilibrium does not determine some components. Those
        are NaN and are named; all others are exact.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the coordinates; zero by default.
        wrt : str or list of str, optional
            Coordinates of the motion, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, in place of those of the model.
        actuators : str or list of str, optional
            Rows where efforts act; by default the actuators of the mechanism, or else the coordinates. An
            effort at a joint acts between its two
            bodies, one at a distance between its two points, and one at a row of a point or of a body is an
            external force or moment. There may be more actuators than degrees of freedom.
        split : {None, "minimum norm"}
            Choice of undetermined components: none, or those that minimize the sum of (force · L)² + moment²
            over all joints, and over the actuators if they are redundant. Moments are about the points of the
            joints, and L is the largest extent of the reference configuration. A coupling counts with the
            largest of its efforts.
        effort : (..., A) array_like, optional
            Efforts of the actuators, for example from `distribute` or `Grasp.motion`; NaN for members without
            any. They must drive the motion; a residual of at most 1e-6 is corrected.
        out_of_plane : bool
            True to include forces out of the plane of a planar mechanism and moments in it. Rigid bodies do
            not determine them. By default they are 0 where no load acts on them, so that each joint has two
            forces and a moment.

        Returns
        -------
        JointForces
            ``f["C"].force`` and ``f["C"].moment`` (..., 3), ``f.effort`` (..., A), ``f.undetermined``.

        Raises
        ------
        InertiaError
            If a body has no inertia although it moves, or no mass.
        InputError
            If a shape or type is wrong, there are fewer actuators than degrees of freedom, or `effort` does
            not drive the motion.
        SingularError
            If the coordinates cannot drive the mechanism here, or the actuators cannot hold it.

        Examples
        --------
        >>> f = kic.load("five-bar").at().joint_forces([2.0, 3.0], [1.0, 0.5])
        >>> f["B"].force.round(4), f.effort.round(4)  # Table C-1
        (array([...,  0.    ]), array([ 0.0504, -0.8259]))
        """
        from kic.joint_forces.reactions import joint_forces

        return joint_forces(self, qd, qdd, wrt, applied, actuators, split, effort, out_of_plane)

    def singularities(
        self, inputs: str | Iterable[str] | None = None, outputs: str | Iterable[str] | None = None
    ) -> Singularities:
        """Find singular configurations between the members of a path or grid, and measure every member.

        Parameters
        ----------
        inputs : str or list of str, optional
            Rows that drive the mechanism, as many as its degrees of freedom; by default its coordinates.
        outputs : str or list of str, optional
            Rows of interest, such as those of a point, at most as many as the degrees of freedom.

        Returns
        -------
        Singularities
            ``measures`` (...) of the kinds "inputs", "outputs" and "closure". Iteration yields the singular
            configurations.

        Raises
        ------
        InputError
            If the number of inputs differs from the degrees of freedom, there are more outputs, the inputs
            drive the mechanism nowhere, or the outputs are fixed or dependent everywhere. Also for a
            mechanism that cannot move, and, on iteration, for one configuration without neighbours.

        Examples
        --------
        >>> turn = kic.load("four-bar").path({"A": 1.2 + np.linspace(0, 2 * np.pi, 60)})
        >>> for one in turn.singularities(inputs="D"):
        ...     print(one.summary())
        inputs: D can be at rest while others move: A 1, B -0.6552, C -0.3448
        inputs: D can be at rest while others move: A -0.7436, B 1, C -0.2564
        """
        from kic.analysis.singularities import Singularities

        return Singularities(self, inputs, outputs)

    def distribute(
        self,
        effort: Any,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = "minimum norm",
        limits: Any = None,
        lower: Any = None,
        preload: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Distribution:
        """Distribute a generalized effort among more actuators than degrees of freedom.

        The coordinates determine the motion of the actuators, but not their efforts T: with their Jacobian G,
        the requirement is GᵀT = T_u (4-80). The criterion selects the efforts of least TᵀWT, in closed form
        (4-81) to (4-86) if no limit is active, otherwise by an active-set method; or those with the smallest
        largest share of the limits.

        Parameters
        ----------
        effort : (..., M) array_like
            Generalized effort T_u at the coordinates, for example from `Dynamics.inverse_dynamics`.
        actuators : str or list of str, optional
            A rows where efforts act: joints (also those that are cut), distances, rows of points or bodies;
            by default the actuators of the mechanism.
        criterion : str or (A,) or (..., A, A) array_like
            "minimum norm" (W = 1), "limits" (weights 1/limit²), positive weights, or a symmetric positive
            definite W. "least largest share" minimizes the largest share, then the next, and so on; the
            result is unique.
        limits : float or (..., A) array_like, optional
            Largest efforts, which are never exceeded. They may be infinite unless the criterion divides by
            them.
        lower : float or (..., A) array_like, optional
            Least efforts, for example 0 for a cable; by default −limits.
        preload : (..., A) array_like, optional
            Efforts whose part that does no work is added, as nearly as the limits allow.
        wrt : str or list of str, optional
            Coordinates of the effort, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            Result for members without solution: an error that names them, or NaN.

        Returns
        -------
        Distribution
            ``d.effort`` (..., A), ``d.share``, ``d.at_limit``, ``d.internal`` (..., A), ``d.stiffness``.

        Raises
        ------
        InputError
            If there are fewer actuators than degrees of freedom, weights or limits are invalid, or the
            minimum norm is requested for forces and moments together.
        LimitError
            If the limits do not allow the effort. It has the feasible share and the limits that are active.
        SingularError
            If the actuators cannot drive every motion.

        Examples
        --------
        >>> c = kic.load("walking-machine").at()
        >>> weight = c.dynamics().inverse_dynamics([0, 0, 0], [0, 0, 0])
        >>> motors = ["B1", "C1", "B2", "C2"]
        >>> c.distribute(weight, motors).effort.round(2).tolist()
        [6.67, -5.88, -11.51, 4.04]
        >>> d = c.distribute(weight, motors, "least largest share", limits=[40, 40, 20, 20])
        >>> d.share.round(3).tolist()
        [0.101, 0.268, 0.444, 0.444]
        """
        from kic.actuation.distribution import distribute

        return distribute(self, effort, actuators, criterion, limits, lower, preload, wrt, failures)

    def internal_loads(
        self,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = "minimum norm",
        limits: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> InternalLoads:
        """Compute the internal loads: efforts of actuators that balance each other and do no work.

        Parameters
        ----------
        actuators : str or list of str, optional
            A rows where efforts act, as in `distribute`.
        criterion : str or (A,) or (..., A, A) array_like
            Metric in which the basis is orthonormal: "minimum norm", "limits" or weights, as in `distribute`.
        limits : (..., A) array_like, optional
            Largest efforts, for "limits".
        wrt, failures
            As in `distribute`. The space does not depend on the coordinates; the stiffness does.

        Returns
        -------
        InternalLoads
            ``loads.basis`` (..., A, A − M), ``loads.efforts``, ``loads.stiffness``.

        Raises
        ------
        InputError, SingularError
            As `distribute`.

        Examples
        --------
        >>> loads = kic.load("walking-machine").at().internal_loads(["B1", "C1", "B2", "C2"])
        >>> print(*loads.sentences())
        Internal load 1: B1, C1 against B2, C2.
        """
        from kic.actuation.distribution import internal_loads

        return internal_loads(self, actuators, criterion, limits, wrt, failures)

    def actuator_dynamics(
        self,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = "minimum norm",
        limits: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Dynamics:
        """Compute I*, P* and loads at more actuators than degrees of freedom (eqs 4-87 to 4-90).

        The dynamics in the coordinates (4-76) to (4-79) are mapped to the actuators by a pseudo-inverse.

        Parameters
        ----------
        actuators, criterion, limits, wrt
            As in `distribute`; limits act as weights only.
        applied : dict of str to (..., 3) array_like, optional
            As in `dynamics`.
        failures : {"raise", "mask"}
            As in `distribute`.

        Returns
        -------
        Dynamics
            I* (..., A, M), P* (..., A, M, M), Tᴸ (..., A), with the actuators as `efforts`. Its
            `inverse_dynamics` of a motion is that of `dynamics`, distributed.

        Raises
        ------
        InputError, SingularError, InertiaError
            As `distribute` and `dynamics`; also for "least largest share", which is not linear.

        Examples
        --------
        >>> c = kic.load("two-finger-hand").at()
        >>> c.actuator_dynamics(["A1", "B1", "A2", "B2"]).P.shape
        (4, 3, 3)
        """
        from kic.actuation.distribution import actuator_dynamics

        return actuator_dynamics(self, actuators, criterion, limits, wrt, applied, failures)

    def operational_space(
        self,
        task: str | Iterable[str],
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> OperationalSpace:
        """Compute the operational-space dynamics of a task: Λ, μ, p, consistent inverse and null space.

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `coefficients`, at most as many as the degrees of freedom.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            Result for members where the task is singular: an error that names them, or NaN.

        Returns
        -------
        OperationalSpace
            Λ (..., P, P), μ (..., P, M, M), p (..., P), J̄ (..., M, P).

        Raises
        ------
        InputError
            If the task has more rows than degrees of freedom, or for symbols.
        SingularError
            If the rows of the task are dependent.

        Examples
        --------
        >>> c = kic.load("gough-stewart").at()
        >>> s = c.operational_space(["platform.x", "platform.y"])
        >>> bool(abs(s.G @ s.projector).max() < 1e-12)
        True
        """
        from kic.operational_space.operational_space import operational_space

        return operational_space(self, task, wrt, failures)

    def ellipsoid(
        self,
        kind: Kind,
        of: str | Iterable[str],
        wrt: str | Iterable[str] | None = None,
        limits: Any = None,
        length: float | None = None,
        qd: Any = None,
        load: bool = True,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Ellipsoid:
        """Compute the ellipsoid of a task's velocity, force, inertia or acceleration, with its measures.

        Parameters
        ----------
        kind : {"velocity", "force", "inertia", "acceleration"}
            Quantity; see `Ellipsoid` for the definitions.
        of : str or list of str
            Rows of the task, as in `coefficients`, of one unit unless `length` is given.
        wrt : str or list of str, optional
            Coordinates of the actuators, as in `coefficients`; by default the mechanism's own.
        limits : dict of str to float, or (M,) array_like, optional
            Largest rate ("velocity") or effort ("force", "acceleration") of each coordinate, by which it is
            scaled. Without limits all coordinates must have one unit.
        length : float, optional
            Length that multiplies angular rows and divides moments.
        qd : (..., M) array_like, optional
            Rates of the coordinates, for the center of "acceleration"; zero by default.
        load : bool
            True if gravity, springs and applied forces shift the center of "acceleration". Otherwise efforts
            are those beyond static equilibrium.
        failures : {"raise", "mask"}
            As in `coefficients`. A singular task is not a failure.

        Returns
        -------
        Ellipsoid
            axes (..., P, P), semi_axes (..., P), and measures (...): manipulability, condition, isotropy.

        Raises
        ------
        UnknownNameError, InertiaError, SingularError
            As `coefficients` and, for "inertia" and "acceleration", `dynamics`; SingularError also if some
            motion moves no mass.
        InputError
            If the kind is unknown, units differ, limits or the length are not positive, an argument does not
            apply to the kind, or the configuration is not real.

        Examples
        --------
        >>> c = kic.load("gough-stewart").at()
        >>> e = c.ellipsoid("force", "platform", length=0.5)
        >>> e.semi_axes.shape, e.isotropy.round(3)
        ((6,), np.float64(0.351))
        """
        from kic.operational_space.ellipsoids import make_ellipsoid

        return make_ellipsoid(self, kind, of, wrt, limits, length, qd, load, failures)

    def manipulability_gradient(
        self,
        of: str | Iterable[str],
        wrt: str | Iterable[str] | None = None,
        limits: Any = None,
        length: float | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> np.ndarray:
        """Compute the gradient of the manipulability w = √det(G Gᵀ) of a task along the coordinates.

        It is exact, from the Hessian (H).

        Parameters
        ----------
        of, wrt, limits, length
            As in `ellipsoid` for "velocity".
        failures : {"raise", "mask"}
            Result for members where w = 0, which has no gradient: an error that names them, or NaN.

        Returns
        -------
        (..., M) ndarray

        Raises
        ------
        InputError
            As `ellipsoid`; also for more rows than coordinates.
        SingularError
            If the task is singular.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 1.5]).manipulability_gradient(["tip.x", "tip.y"]).round(4)
        array([0.    , 0.0707])
        """
        from kic.operational_space.ellipsoids import gradient_at

        return gradient_at(self, of, wrt, limits, length, failures)

    def resolve(
        self,
        task: str | Iterable[str],
        ud: Any = None,
        udd: Any = None,
        uddd: Any = None,
        weight: Weight = "minimum norm",
        law: Law = "consistent",
        secondary: Any = None,
        damping: Damping = None,
        qd: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> RedundancyResolution:
        """Resolve redundancy: compute the motion of all coordinates from that of a task with fewer rows.

        Rates minimize ½ (q̇ − z)ᵀ Q (q̇ − z) subject to G q̇ = u̇, (4-68) to (4-70)::

            q̇ = z + R (u̇ − G z)        R = Q⁻¹ Gᵀ (G Q⁻¹ Gᵀ)⁻¹

        Accelerations follow one of two laws. "consistent" accelerations are the derivative of these rates, so
        that the rates satisfy the law at all times. "instantaneous" accelerations minimize ½ (q̈ − ż)ᵀ Q (q̈
        − ż) for any rates (4-71, 4-72). The two differ in the null space, where the second lets rates grow.
        (4-72) is not, as printed, the derivative of (4-68).

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `coefficients`, at most as many as the degrees of freedom.
        ud, udd, uddd : (..., P) array_like
            Rates, accelerations and jerks of the task, up to the order wanted. Their batch broadcasts with
            that of the configuration.
        weight : {"minimum norm", "minimum kinetic energy"} or (..., M, M) array_like
            Weight Q: the unit matrix, I*, or a constant symmetric positive definite matrix.
        law : {"consistent", "instantaneous"}
            Law of the accelerations.
        secondary : optional
            Null-space motion: `JointLimits`, `Manipulability`, `PreferredConfiguration`; rates z (..., M), or
            (z, ż) or (z, ż, z̈), zero if omitted; a callable that takes a configuration of any batch and
            returns z; or a list of these, which are added. For accelerations a callable is differentiated by
            the complex step, and must propagate complex numbers.
        damping : float or (float, float), optional
            λ; or the largest λ and the manipulability w₀ below which λ² grows from 0 as (1 − w²/w₀²)² of the
            largest (after Nakamura and Hanafusa 1986). λ² S is added to G Q⁻¹ Gᵀ, without units: lengths
            among the rows are divided by the characteristic length, Q by the mean of its diagonal, as is w =
            √det. `missed` has the resulting error of the task.
        qd : (..., M) array_like, optional
            Current rates in place of `ud`, for the law "instantaneous".
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            Result for members where the task is singular: an error that names them, or NaN.

        Returns
        -------
        RedundancyResolution
            q̇, q̈, q⃛ (..., M), with `effort`, and `coefficients` and `dynamics()` with respect to the task
            (4-73 to 4-75).

        Raises
        ------
        InputError
            If the task has more rows than degrees of freedom, the weight is not symmetric and positive
            definite, a shape is wrong, or for symbols.
        SingularError
            If the rows of the task are dependent and there is no damping, or the weight is I* and some motion
            moves no mass.

        Examples
        --------
        >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
        >>> r = c.resolve("flange", [0.1, 0.0, 0.0], [0.0] * 3, weight="minimum kinetic energy")
        >>> bool(abs(c.coefficients("flange").acceleration(r.qd, r.qdd)).max() < 1e-12)
        True
        """
        from kic.operational_space.redundancy import resolve

        motion = {"ud": ud, "udd": udd, "uddd": uddd, "qd": qd}
        return resolve(self, task, motion, weight, law, secondary, damping, wrt, failures)

    def grasp(
        self,
        held: str,
        fingers: str | Iterable[str] | None = None,
        order: int = 2,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Grasp:
        """Compute the grasp of a body by contacts: grasp map, hand Jacobian, and the efforts of its motion.

        Parameters
        ----------
        held : str
            The body: an object that fingers touch, or a body that stands on feet, by contacts with ground.
        fingers : str or list of str, optional
            Coordinates of the fingers or legs, as many as their degrees of freedom with open contacts; by
            default the joints of open chains. Name those with actuators for closed chains.
        order : {1, 2, 3}
            Highest order of `Grasp.relative`.
        failures : {"raise", "mask"}
            Result for members where these coordinates cannot drive fingers and object, or where, in
            `Grasp.motion`, the contacts cannot hold it: an error that names them, or NaN.

        Returns
        -------
        Grasp
            G (..., 6, R), J (..., R, n); and ``motion(qd, qdd)``.

        Raises
        ------
        InputError
            If no closed contact holds the body or the body is fixed, or if the number of finger coordinates
            differs from the degrees of freedom.
        SingularError
            If these coordinates cannot drive fingers and object.

        Examples
        --------
        >>> g = kic.load("three-finger-hand").at().grasp("ball")
        >>> v = [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]         # the object rises, and the fingers with it
        >>> bool(abs(g.J @ g.motion(v).rate - g.G.T @ v).max() < 1e-12)
        True
        """
        from kic.grasp.grasp import Grasp

        return Grasp(self, held, fingers, order, failures)

    def linearize(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        effort: Any = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
        motors: bool = False,
    ) -> Linearization:
        """Linearize the efforts about a motion: δT = K δq + C δq̇ + I* δq̈.

        The result is exact, from third-order coefficients, with gravity, forces in world and body axes,
        springs and dampers. It holds in any coordinates, for open and closed mechanisms, and for a batch such
        as a trajectory.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the nominal motion; zero by default.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        effort : (..., M) array_like, optional
            Efforts of the nominal motion, in place of `qdd`.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, in place of those of the model.
        failures : {"raise", "mask"}
            As in `coefficients`.
        motors : bool
            True to include the rotors of the motors and their damping, as in `dynamics`.

        Returns
        -------
        Linearization
            K, C, I (..., M, M) (eqs 2-201 to 2-225).

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        InputError
            If a shape is wrong, or both `qdd` and `effort` are given.
        SingularError
            If the coordinates cannot drive the mechanism here, or I* is singular and efforts are given.

        Examples
        --------
        >>> lin = kic.load("four-bar").at({"A": 1.2}).linearize()
        >>> lin.T.round(4), lin.K.round(4)  # held at rest; the crank would fall away
        (array([-0.0138]), array([[-0.8245]]))
        """
        from kic.linear.linearize import linearize

        return linearize(self, qd, qdd, wrt, effort, applied, failures, motors)

    def state_space(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        effort: Any = None,
        inputs: str | Iterable[str] | None = None,
        outputs: str | Iterable[str] | None = None,
        motors: bool | None = None,
        reduced: bool = False,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> StateSpace:
        """Compute a linear state-space model of small deviations from a motion: ẋ = A x + B u, y = C x + D u.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Nominal motion, as in `linearize`; at rest by default.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own. They and their rates are
            states.
        effort : (..., M) array_like, optional
            Efforts of the nominal motion, in place of `qdd`, as in `linearize`.
        inputs : str or list of str, optional
            Names of motors (voltage, or torque of a plain source), of coordinates (effort), or of forces and
            moments of the model ("push", or "push.x" alone; eq 2-227). By default all motors if they count,
            otherwise the efforts at all coordinates.
        outputs : str or list of str, optional
            Outputs, as `of` in `coefficients`, with ".rate" for their rates ("tip.x.rate"; angular velocities
            are rates already), and "M.current" for the current of motor M. By default the coordinates.
        motors : bool, optional
            True to include motors with rotors and circuits; by default if the mechanism has any.
        reduced : bool
            True if currents follow voltages without delay, as for motors without inductance.
        applied, failures
            As in `linearize`.

        Returns
        -------
        StateSpace
            Its states are those of (2-241): coordinates, rates, currents of motors with inductance. Without
            motors it is (3-48).

        Raises
        ------
        UnknownNameError, InputError, SingularError, InertiaError
            As `linearize`; also if an input or output does not exist.

        Examples
        --------
        >>> s = kic.load("horn-two-link").at([-1.5, 0.0]).state_space(outputs=["tip.x", "tip.y.rate"])
        >>> s.A.shape, s.B.shape, s.C.shape
        ((4, 4), (4, 2), (2, 4))
        """
        from kic.linear.state_space import state_space

        return state_space(self, qd, qdd, wrt, effort, inputs, outputs, motors, reduced, applied, failures)

    def drive(
        self,
        qd: Any,
        qdd: Any,
        qddd: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> MotorDemand:
        """Compute speed, torque, current and voltage of every motor for a motion.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations of the coordinates.
        qddd : (..., M) array_like, optional
            Jerks, needed for motors with inductance.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, in place of those of the model.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        MotorDemand
            Arrays (..., K) for the K motors (eqs 2-238 to 2-240).

        Raises
        ------
        InputError
            If there are no motors, a shape is wrong, jerks are missing, the motors cannot make the motion, or
            there are more motors than degrees of freedom, which leaves torques undetermined.
        SingularError, InertiaError
            As `dynamics`; also if motors depend on one another.

        Examples
        --------
        >>> from dataclasses import replace
        >>> crank = kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, resistance=0.5, torque_constant=0.02)
        >>> c = replace(kic.load("four-bar"), motors=[crank]).at({"A": 1.2})
        >>> c.drive([6.0], [0.0]).speed
        array([180.])
        """
        from kic.actuation.motor_demand import motor_demand

        return motor_demand(self, qd, qdd, qddd, wrt, applied, failures)


def valued(joints: Iterable[Joint]) -> list[str]:
    """Return the components of joints that have values in a loop: all but those of spherical joints."""
    return [c for j in joints if j.type != "spherical" for c in j.components[: 3 + 3 * (j.dof < 6)]]


def single_values(configuration: Configuration, names: Iterable[str]) -> np.ndarray:
    """Return the values (n,) of single rows of one configuration, NaN for rows without value."""
    found = []
    for name in names:
        try:
            found.append(configuration.value(name))
        except InputError:
            found.append(np.array(np.nan))
    return np.array(found)
