"""Configurations of a mechanism, and their kinematics and dynamics; packages above add methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np

from kic.description.parts import Frame, Joint
from kic.description.units import coordinate_units, row_unit
from kic.description.validation import GROUND, part_of, split_row
from kic.dynamics.dynamics import Dynamics
from kic.dynamics.mass_and_load_tables import Loads
from kic.errors import InputError, OutOfRangeError, batch_indices, invalid, short_repr
from kic.kernels import layout as lay
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.euler import check_gimbal, gimbal_errors
from kic.kinematics.state import phi_of
from kic.numerics.arguments import by_name, flag, mapping, names_of
from kic.numerics.arrays import (
    as_array,
    broadcast_batches,
)
from kic.numerics.caches import without_caches
from kic.numerics.display import Printable, Summary
from kic.numerics.registration import with_methods
from kic.numerics.tables import DataTable, Tabular, Variable, batch_axes
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import SWING, swing_angle
from kic.transfer.program import BOTH, OutputMotion, Program, Table, Transfer, flat_members, output_motion
from kic.transfer.targets import BatchTargets

if TYPE_CHECKING:
    from scipy.spatial.transform import RigidTransform

    from kic.analysis import sensitivity as _sensitivity
    from kic.analysis.joint_forces import force_table as _force_table
    from kic.analysis.joint_forces import reactions as _reactions
    from kic.analysis.joint_forces import shaking_force as _shaking_force
    from kic.analysis.linear import linearize as _linearize
    from kic.analysis.linear import motor_demand as _motor_demand
    from kic.analysis.positions import singularities as _singularities
    from kic.analysis.tolerances import tolerance_analysis as _tolerances
    from kic.mechanism import regressor as _regressor
    from kic.mechanism import whole_body as _whole_body
    from kic.plotting import animate as _animate
    from kic.plotting import draw as _draw
    from kic.tasks.actuation import distribution as _distribution
    from kic.tasks.grasp import grasp as _grasp
    from kic.tasks.operational_space import (
        ellipsoids as _ellipsoids,
    )
    from kic.tasks.operational_space import (
        operational_space as _operational_space,
    )
    from kic.tasks.operational_space import (
        redundancy as _redundancy,
    )
    from kic.transfer.coordinate_transfer import CoordinateTransfer
    from kic.ui.report import page as _page
    from kic.ui.viewer import viewer as _viewer

    class _Modelled(Protocol):
        """Holder of a compiled model."""

        @property
        def _model(self) -> CompiledModel: ...


@with_methods
class Animated:
    """Mixin of motions that can be animated.

    A `Simulation` is interpolated at the times of the frames; for other motions, the nearest samples are
    shown.
    """

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        animate = _animate.animate
        view = _viewer.view


@with_methods
class Configuration(Printable, Tabular, Animated):
    """Configuration of a mechanism, or a batch of configurations, with the pose of every body.

    `Mechanism.at` makes it. It is immutable. Its methods compute everything else, in any coordinates `wrt`.

    Attributes
    ----------
    ok : (...) bool
        Mask of the members that were solved; unsolved members are NaN in every result.
    state : (..., S)
        State of the spanning tree, the input of prepared evaluators: one number for each revolute or
        prismatic joint, a unit quaternion (w, x, y, z) for each spherical joint.

    Examples
    --------
    >>> c = kic.load("horn-two-link").at([[0.0, 0.0], [0.0, 0.5]])
    >>> c.batch, c.value("tip").round(3).tolist()
    ((2,), [[2.0, 0.0, 0.0], [1.878, 0.479, 0.0]])
    """

    _one_line = ("coordinates", "batch")

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
        # a mask without unsolved members is not kept
        self._ok = None if ok is None or ok.all() else ok
        # targets of all members, solved or not, of a position problem
        self._aims = aims

    __getstate__ = without_caches

    @cached_property
    def _origin(self) -> CoordinateTransfer | None:
        """Transfer with the equations for which the states were solved, or None."""
        aims = self._aims
        return None if aims is None else self._model.closure(aims.names, aims.held).transfer

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; ``()`` for one configuration."""
        return self._batch

    @property
    def ok(self) -> np.ndarray:
        """Mask (...) of the members that were solved."""
        return np.ones(self.batch, dtype=bool) if self._ok is None else np.array(self._ok)

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
    def _phi(self) -> np.ndarray:
        """Array (..., M) of the coordinates of the spanning tree; spherical joints have rotation vectors."""
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
            message = (
                f"`members` must be an index of the batch {self.batch}, got {short_repr(members)}: {error}."
            )
            raise OutOfRangeError(message, key="members") from error
        if which is None:
            kinds = "integers, slices, or arrays of integers or booleans"
            raise invalid("members", f"must be {kinds}", members)
        ok = None if self._ok is None else self._ok.reshape(-1)[which]
        which, shape = which.reshape(-1), which.shape
        aims = None if self._aims is None else self._aims.take(which)
        return type(self)(self._model, shape, self._states[which], ok, aims)

    def __iter__(self) -> Iterator[Self]:
        """Iterate over the first axis of the batch."""
        if not self.batch:
            raise InputError(
                f"This is one configuration of '{self.name}' and has no members. Use it without an index.",
                batch=(),
            )
        return (self[k] for k in range(self.batch[0]))

    def __len__(self) -> int:
        """Return the length of the first axis of the batch."""
        if not self.batch:
            raise TypeError(f"One configuration of '{self.name}' has no length; only a batch has one.")
        return self.batch[0]

    def __bool__(self) -> bool:
        """Return True, also for an empty batch."""
        return True

    def _masked(self, T: np.ndarray) -> np.ndarray:
        """Set the rows of unsolved members to NaN."""
        if self._ok is not None:
            T[~self._ok.reshape(-1)] = np.nan
        return T

    def value(self, of: str | Iterable[str]) -> np.ndarray:
        """Return the values u(φ) of a point, a joint, a distance or a single row: (2-1) to (2-4).

        Parameters
        ----------
        of : str or list of str
            For example "tip" (..., 3), "tip.x" (...,), "A" (...,), "hand.angle" (...,), "hand.euler_xyz"
            (..., 3), or "S1.swing", the swing of a universal or spherical joint.

        Returns
        -------
        ndarray
            (..., P) for a part with several rows, (...,) for a single row.

        Raises
        ------
        InputError
            If a row is an angular velocity, which is no derivative of a coordinate; see `pose`.
        SingularError
            If the first and third Euler angles are not determined (gimbal lock); `pose` is.

        Notes
        -----
        Euler angles are rows "hand.euler_xyz.1" to 3 of a frame, of a body (of its displacement
        from the reference configuration), or of a spherical or free joint (of its second body relative to the
        first). The three axes are as in SciPy's `Rotation.as_euler`: lowercase about fixed axes, uppercase
        about moving axes; "xyz" are roll, pitch and yaw. The second angle is within ±π/2, or within 0 and π
        if the first and third axes are the same; the other angles are within ±π. `wrt` takes them as
        coordinates, and ``at({"hand.euler_xyz": angles})`` as an orientation.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).value("tip")
        array([2., 0., 0.])
        >>> c = kic.load("puma560").at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
        >>> c.value("link6.euler_xyz").shape
        (3,)
        """
        base, row = split_row(of) if isinstance(of, str) else ("", "")
        if row == SWING and isinstance(self._model.description._parts.get(base), Joint):
            return self._masked(swing_angle(self._model, base, self._states)).reshape(self.batch)
        query = self._model.rows(of, 1)
        rows = query.layout.rows
        if not rows.holonomic:
            bare = next(n for n, valued in zip(rows.labels, rows.valued, strict=True) if not valued)
            name, base = of if isinstance(of, str) else bare, part_of(bare)
            part = self._model.description._parts.get(base)
            row = f"{base}.x"
            if isinstance(part, Joint):
                swing = f"{base}.{SWING}" if part.swing_axis else ""
                row = part.components[0] if part.type == "free" else swing
            rows_too = f" or rows such as '{row}'" if row else ""
            raise InputError(
                f"'{name}' includes angular velocities, which have no value. Name a point{rows_too}, or use "
                "the pose() of a body.",
                name=name,
            )
        values = self._masked(self._model.values(of, self._states))
        values = values.reshape(*self.batch, len(rows.labels))
        if rows.euler and self._states.dtype.kind != "O":
            sines = query.arrays(self._states)[0]
            with batch_indices(range(len(self._states)), self.batch):
                check_gimbal(self.name, rows.labels, gimbal_errors(rows.euler, sines))
        return values[..., 0][()] if len(rows.labels) == 1 else values

    def pose(self, of: str) -> RigidTransform:
        """Return the pose of a frame in the world, or the displacement of a body, as a `RigidTransform`.

        The pose of a `Frame` maps its own coordinates to world coordinates, like the matrix T₀ₙ of a robot. A
        body has no axes of its own. Its pose is its displacement from the reference configuration, where a
        frame in it coincides with the world: ``pose.apply(p)`` is the current position of the body's point
        with reference position p.

        Parameters
        ----------
        of : str
            Name of the frame or body.

        Returns
        -------
        scipy.spatial.transform.RigidTransform
            With the batch of this configuration.

        Raises
        ------
        InputError
            If the state has complex numbers or symbols, or a member is unsolved.

        Examples
        --------
        >>> arm = kic.load("horn-two-link").add(kic.Frame("tool", "link2", origin=(2, 0, 0)))
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

        self._model.require_real("pose()", "Use value() of its rows.")
        require_solved(self, "pose()")
        return RigidTransform.from_matrix(self._pose(of))

    def _pose(self, name: str) -> np.ndarray:
        """Return the pose (..., 4, 4) of a frame or body."""
        if self._states.dtype not in (np.float64, self._model.tree.scalar):
            got = self._states.dtype
            message = f"`configuration` must hold real numbers in pose(), got {got}. Convert its state."
            raise InputError(message, key="configuration", got=self._states.dtype)
        return self._masked(self._model.poses(name, self._states)).reshape(*self.batch, 4, 4)

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        names = self.coordinates if names is None else names_of(names, "of", 1)
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
                T = displacement(self, body.name)
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
        return U if self._ok is None else np.where(self._ok, U, np.nan)[()]

    def _facts(self) -> Iterator[str]:
        yield from super()._facts()
        if self._ok is not None:
            yield f"{int((~self._ok).sum())} of {self._ok.size} members unsolved"

    def summary(self) -> Summary:
        """Return a table of the coordinates."""
        sheet = Summary(f"{self.name}: configuration")
        index = sheet.member(self.batch)
        if self._ok is not None:
            sheet.say(f"{int((~self.ok).sum())} of {self.ok.size} members were not solved")
        if index is not None:
            one = self[index] if self.batch else self
            names, phi = tree_coordinates(one)
            # joints where loops are cut are not columns of the tree
            cut = [] if self._model.tree.open else valued(self._model.description.joints)
            cut = [c for c in dict.fromkeys((*cut, *self.coordinates)) if c not in names]
            values = np.concatenate([phi, single_values(one, cut)])
            caption = "coordinates" if self._model.tree.open else "joints"
            sheet.matrix(caption, [*names, *cut], ["value"], values[:, None])
        return sheet

    def coefficients(
        self,
        of: str | Iterable[str],
        *,
        order: int = 2,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Coefficients:
        """Compute the Jacobian (G), Hessian (H) and third derivatives (D) of outputs in any coordinates.

        Velocities are u̇ = G q̇, accelerations ü = G q̈ + q̇ᵀ H q̇: (3-1), (3-2), or (4-65), (4-66) for fewer
        rows than coordinates. Other coordinates as rows are (4-37), (4-38).

        Parameters
        ----------
        of : str or list of str
            Outputs: points ("tip"), bodies ("hand": x y z of its reference point, then wx wy wz), joints,
            distances, or single rows ("tip.x", "hand.wz", "hand.angle" of a planar mechanism).
        order : {1, 2, 3}
            Highest order.
        wrt : str or list of str, optional
            Coordinates: joints, points, body motion, distances, or single rows of them, as many as the
            mechanism has degrees of freedom, without those that are held. By default the mechanism's own.
        failures : {"raise", "mask"}
            Treatment of members whose coordinates cannot drive the mechanism: raise an error, or return NaN.

        Returns
        -------
        Coefficients
            G (..., P, M), H (..., P, M, M), D (..., P, M, M, M), with named rows and columns.

        Raises
        ------
        UnknownNameError
            If a name does not exist, with the candidates.
        InputError
            If the order is invalid, a part has no such rows, or the number of coordinates differs from the
            degrees of freedom.
        SingularError
            If the coordinates cannot drive the mechanism here. The error names sets of coordinates that can.

        Notes
        -----
        Rows of open chains are those of Tables 2-3 to 2-5, from (2-51) to (2-118). In other coordinates they
        are (3-20) to (3-26) and (3-47). Closure conditions (4-1), (4-2) lead to (4-18) to (4-23) for loops.
        Examples are (C-1) to (C-4), Table C-2 and (D-2).

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> c.coefficients("tip", order=1).G
        array([[0., 0.],
               [2., 1.],
               [0., 0.]])
        """
        program = self._model.program(wrt, of, order)
        return program.coefficients(run_program(self, program, failures))

    def dynamics(
        self,
        *,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        motors: bool = False,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Dynamics:
        """Compute the mass matrix (I*), Christoffel symbols (P*) and loads in any coordinates.

        The efforts of a motion are T = I* q̈ + q̇ᵀ P* q̇ − Tᴸ: (3-3), (4-3) to (4-5) for open chains, (4-40),
        (4-41) and (4-67) for closed and redundant mechanisms, (4-50) to (4-53) for a free body.

        Parameters
        ----------
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, each in its axes (world or body), instead of those of the
            model.
        motors : bool
            True to add the rotors of the motors and their damping (eq 2-237). Otherwise efforts are those at
            the joints.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        Dynamics
            I* (..., M, M), P* (..., M, M, M), Tᴸ (..., M) (eqs 2-196, 2-197, 2-119 to 2-125, 2-147).

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        InputError
            If a force does not exist, the ends of a spring coincide, or `motors` is True for a mechanism
            without motors, or with dry friction, which this model excludes.
        SingularError
            If the coordinates cannot drive the mechanism here.

        Notes
        -----
        Other coordinates are those of (3-34) to (3-42), loops those of (4-24) to (4-29). Examples are Tables
        C-2 to C-3 and (E-1) to (E-2).

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).dynamics().load
        array([-19.62 ,  -4.905])
        """
        if motors is not False and flag("motors", motors):
            return self.dynamics(wrt=wrt, applied=applied, failures=failures) + self._rotor_dynamics(
                wrt, failures
            )
        program, states = self._model.program(wrt, want=BOTH), self._states
        if applied is None and states.dtype == program.applied.dtype:
            return program.model_of(run_program(self, program, failures), states)
        states, _, force, given = flat_motion(self, program.transfer, {}, applied)
        return program.model_of(program.run(states, applied=force, failures=failures, **given), states)

    def _rotor_dynamics(
        self, wrt: str | Iterable[str] | None, failures: Literal["raise", "mask"]
    ) -> Dynamics:
        """Return the dynamics of the rotors of the motors."""
        train = self._model.drive_train
        train.require_no_friction(self.name)
        return train.dynamics(motor_shafts(self, 2, wrt, failures))

    def motion(
        self,
        of: str | Iterable[str],
        qd: Any = None,
        qdd: Any = None,
        qddd: Any = None,
        *,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> OutputMotion:
        """Compute values, velocities, accelerations and jerks of outputs along a motion.

        The motion is propagated through tree and loops as a Taylor series in time. H and D are not formed.

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
        OutputMotion
            value, velocity, acceleration, jerk (..., P). Values of angular velocities are NaN.

        Raises
        ------
        UnknownNameError, InputError, SingularError
            As `coefficients`.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> tip = c.motion("tip", [1.0, 0.0])
        >>> tip.velocity, tip.acceleration
        (array([0., 2., 0.]), array([-2.,  0.,  0.]))
        """
        model, transfer = self._model, self._model.transfer_for(wrt)
        names = of if isinstance(of, str) else names_of(of, least=1)
        motion = {"qd": qd, "qdd": qdd, "qddd": qddd}
        states, rates, _, given = flat_motion(self, transfer, motion)
        return output_motion(model, transfer, names, states, rates, failures=failures, **given)

    def inverse_dynamics(
        self,
        qd: Any = None,
        qdd: Any = None,
        *,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        loads: bool = True,
        motors: bool = False,
        failures: Literal["raise", "mask"] = "raise",
    ) -> np.ndarray:
        """Compute the efforts that produce a motion (inverse dynamics), without forming I* and P*.

        T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (2-198), by the Newton–Euler algorithm (2-148 to 2-151). Without
        `qdd` it is the bias, without both the static effort −Tᴸ, and with ``loads=False`` the inertial effort
        alone (2-195).

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Velocities and accelerations of the coordinates, by default zero. Scalars are accepted for one
            coordinate.
        wrt, applied
            As in `dynamics`.
        loads : bool
            False to omit gravity, forces, springs and dampers.
        motors, failures
            As in `dynamics`; with `motors`, the rotors are added.

        Returns
        -------
        (..., M) ndarray
            Efforts at the coordinates.

        Raises
        ------
        InertiaError, InputError, SingularError
            As `dynamics`.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> c.inverse_dynamics(), c.inverse_dynamics(qdd=[1.0, 0.0], loads=False).round(3)
        (array([19.62 ,  4.905]), array([2.667, 0.833]))

        With one degree of freedom, scalars are accepted as rates and accelerations:

        >>> kic.load("four-bar").at(1.2).inverse_dynamics(6.0, 0.0).round(4)
        array([0.0691])
        """
        want = BOTH if loads is True or flag("loads", loads) else lay.WANT_INERTIA
        program, motion = self._model.program(wrt, want=want, along=True), {"qd": qd, "qdd": qdd}
        rotors = None
        if motors is not False and flag("motors", motors):
            rotors = self._rotor_dynamics(wrt, failures)
        states, rates, force, given = flat_motion(self, program.transfer, motion, applied)
        T = program.efforts(states, rates, applied=force, failures=failures, **given)
        if rotors is not None:
            v, a = (a.reshape(*given["batch"], program.transfer.size) for a in rates)
            T = T + rotors.inverse_dynamics(v, a)
        return T

    def forward_dynamics(
        self,
        qd: Any = None,
        effort: Any = None,
        *,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        motors: bool = False,
        failures: Literal["raise", "mask"] = "raise",
    ) -> np.ndarray:
        """Compute the accelerations that efforts cause (forward dynamics), without forming P* (2-199).

        Parameters
        ----------
        qd, effort : (..., M) array_like, optional
            Velocities of the coordinates and efforts at them, by default zero. Scalars are accepted for one
            coordinate. A dict gives efforts of rows by name, such as actuators.
        wrt, applied, motors, failures
            As in `dynamics`.

        Returns
        -------
        (..., M) ndarray
            Accelerations of the coordinates.

        Raises
        ------
        InertiaError, InputError, SingularError
            As `dynamics`; also if I* is singular because some motion moves no mass.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> c.forward_dynamics(effort=[19.62, 4.905]).round(12) + 0.0
        array([0., 0.])
        >>> c.forward_dynamics(effort={"tip.y": 9.81}).round(4)  # lifts the tip
        array([-21.0214,  67.2686])
        """
        if isinstance(effort, Mapping):
            effort = efforts_at_coordinates(self, effort, wrt, failures)
        motion = {"qd": qd, "effort": effort}
        if (motors is not False and flag("motors", motors)) or self._states.dtype.kind == "O":
            # rotors and symbols take the tensors
            d = self.dynamics(wrt=wrt, applied=applied, failures=failures, motors=motors)
            size = len(d.coordinates)
            v, T = (as_array(k, np.zeros(size) if a is None else a, size) for k, a in motion.items())
            return d.forward_dynamics(v, T)
        program = self._model.program(wrt, want=BOTH | lay.WANT_FORWARD, along=True)
        states, rates, force, given = flat_motion(self, program.transfer, motion, applied)
        a = program.efforts(states, rates, applied=force, failures=failures, **given)
        return a

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        actuator_dynamics = _distribution.actuator_dynamics
        body_contributions = _whole_body.body_contributions
        centroidal_momentum = _whole_body.centroidal_momentum
        regressor = _regressor.regressor
        distribute = _distribution.distribute
        draw = _draw.draw
        ellipsoid = _ellipsoids.ellipsoid
        force_table = _force_table.force_table
        grasp = _grasp.grasp
        internal_loads = _distribution.internal_loads
        joint_forces = _reactions.joint_forces
        linearize = _linearize.linearize
        motor_demand = _motor_demand.motor_demand
        operational_space = _operational_space.operational_space
        resolve_redundancy = _redundancy.resolve_redundancy
        shaking_force = _shaking_force.shaking_force
        singularities = _singularities.singularities
        to_html = _page.to_html
        sensitivity = _sensitivity.sensitivity_of_rows
        tolerance_analysis = _tolerances.tolerance_analysis


def model_of(owner: _Modelled) -> CompiledModel:
    """Return the compiled model of a configuration, a mechanism, its evaluators or its mobility.

    It has the description, the tree, rows, transfers and programs.
    """
    return owner._model


def row_sizes(owner: _Modelled, rows: Iterable[str]) -> np.ndarray:
    """Return the sizes (n,) of rows of a mechanism: 1 for angles, else its characteristic length."""
    model = model_of(owner)
    units, length = coordinate_units(model.description), float(model.length)
    return np.array(
        [1.0 if (units.get(n) or row_unit(model.description, n)) == "rad" else length for n in rows]
    )


def flat_states(configuration: Configuration) -> np.ndarray:
    """Return the states (B, S) of a batch, not copied; those of unsolved members may be NaN."""
    return configuration._states


def displacement(configuration: Configuration, of: str) -> np.ndarray:
    """Return the displacement (..., 4, 4) of a body, or of a frame's body, from the reference.

    Unsolved members are NaN; complex numbers and symbols are kept.
    """
    T = configuration._pose(of)
    part = configuration._model.description._parts[of]
    if isinstance(part, Frame):  # T = displacement · [axes, origin]
        T[..., :3, :3] = T[..., :3, :3] @ np.array(part.axes)
        T[..., :3, 3] -= T[..., :3, :3] @ np.array(part.origin)
    return T


def displacements(configuration: Configuration) -> dict[str, np.ndarray]:
    """Return the displacements (..., 4, 4) of ground and all bodies from the reference configuration."""
    ground = np.broadcast_to(np.eye(4), (*configuration.batch, 4, 4))
    bodies = configuration._model.description.bodies
    return {GROUND: ground} | {body.name: displacement(configuration, body.name) for body in bodies}


def require_solved(configuration: Configuration, subject: str, remedy: str = "") -> None:
    """Raise an error if a member is unsolved, for results that cannot be NaN."""
    if configuration._ok is not None:
        bad = np.argwhere(~configuration._ok)
        message = (
            f"{subject} requires solved configurations, but {len(bad)} of {configuration._ok.size} were not "
            f"solved. Select the others by `ok`{remedy}."
        )
        raise InputError(message, key="configuration", failed=[tuple(index) for index in bad.tolist()])


def run_program(configuration: Configuration, program: Program, failures: str) -> Table:
    """Return the results of a program at the states of a configuration."""
    c = configuration
    return program.run(c._states, batch=c._batch, ok=c._ok, failures=failures, origin=c._origin)


def flat_motion(
    configuration: Configuration,
    transfer: Transfer,
    motion: dict[str, Any],
    applied: dict[str, Any] | None = None,
    loads: Loads | None = None,
    **batches: Any,
) -> tuple[np.ndarray, tuple[np.ndarray, ...], np.ndarray | None, dict[str, Any]]:
    """Return states (B, S), motions (B, m), applied forces, and further arguments of programs.

    `applied` are forces of `loads`, by default those of the mechanism; `batches` are further shapes.
    """
    c, model = configuration, configuration._model
    force, ok, loaded = None, c._ok, tuple[int, ...]()
    if applied is not None:
        force, loaded = (model.loads if loads is None else loads).applied(applied, c.name)
        batches |= {"applied": loaded} if loaded else {}
    others = () if force is None else (force,)
    states, rates, batch = flat_members(
        transfer.size, c._batch, c._states, motion, model.tree.scalar, *others, **batches
    )
    if force is not None:
        force = np.broadcast_to(force, (*batch, *force.shape[-2:])) if loaded else force
        force = force.reshape(len(states) if loaded else 1, *force.shape[-2:])
    if ok is not None and ok.shape != batch:
        ok = np.broadcast_to(ok, batch)
    return states, rates, force, {"batch": batch, "ok": ok, "origin": c._origin}


def tree_coordinates(configuration: Configuration) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names and the values (..., M) of the coordinates of the spanning tree.

    The columns of spherical joints are rotation vectors. An open chain has the order of its `coordinates`.
    """
    model = model_of(configuration)
    return configuration.coordinates if model.is_open_chain else model.tree.columns, configuration._phi


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


def motor_shafts(
    configuration: Configuration,
    order: int,
    wrt: str | Iterable[str] | None,
    failures: Literal["raise", "mask"],
) -> Coefficients:
    """Return the coefficients of the motor shafts."""
    train = model_of(configuration).drive_train
    return train.shafts(configuration.coefficients(train.joints, order=order, wrt=wrt, failures=failures))


def acting_efforts(
    configuration: Configuration,
    effort: Mapping[str, Any],
    wrt: Any,
    failures: Literal["raise", "mask"],
    order: Literal[1, 2] = 2,
) -> tuple[Coefficients, np.ndarray]:
    """Return the coefficients of the rows in a dict of efforts, and the efforts (..., A)."""
    effort = mapping("effort", effort, "rows to efforts")
    if not effort:
        raise invalid("effort", "must have an effort for at least one row", effort)
    names = model_of(configuration).actuators(list(effort), hold_all=False)
    if names != tuple(effort):
        raise invalid("effort", "must be efforts of single rows", tuple(effort))
    rows = configuration.coefficients(names, order=order, wrt=wrt, failures=failures)
    return rows, by_name("effort", effort, names)


def generalized_efforts(G: np.ndarray, effort: np.ndarray) -> np.ndarray:
    """Return the generalized efforts GᵀT (..., M) of efforts T (..., A) at rows with G (..., A, M)."""
    broadcast_batches(configuration=G.shape[:-2], effort=effort.shape[:-1])
    return np.einsum("...pn,...p->...n", G, effort)


def efforts_at_coordinates(
    configuration: Configuration, effort: Any, wrt: Any, failures: Literal["raise", "mask"]
) -> Any:
    """Return efforts (..., M) at the coordinates from a dict by row; return other arguments unchanged.

    Efforts are zero in members where the coordinates cannot drive the mechanism.
    """
    if not isinstance(effort, Mapping):
        return effort
    labels = model_of(configuration).transfer_for(wrt).labels
    if effort.keys() <= set(labels):
        return by_name("effort", effort, labels)
    rows, given = acting_efforts(configuration, effort, wrt, failures, order=1)
    G = rows.G
    if G.dtype != object:  # symbols have no such members
        G = np.where(np.isfinite(G).all(axis=(-2, -1), keepdims=True), G, 0.0)
    return generalized_efforts(G, given)
