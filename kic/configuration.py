"""Configurations of a mechanism, and everything that is computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np

from kic.description.parts import Frame, Joint
from kic.description.units import row_unit
from kic.dynamics.contributions import Contributions, add_rotors
from kic.dynamics.dynamics import Dynamics
from kic.dynamics.mass_and_load_tables import Loads
from kic.errors import InputError, OutOfRangeError, batch_indices, invalid, short_repr
from kic.kernels import layout as lay
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.euler import check_gimbal, gimbal_errors
from kic.kinematics.state import phi_of
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import (
    as_array,
    check_finite,
    map_valid_members,
    scatter,
)
from kic.numerics.caches import without_caches
from kic.numerics.display import Printable, Summary
from kic.numerics.tables import DataTable, Tabular, Variable, batch_axes
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import SWING, swing_angle
from kic.transfer.program import BOTH, OutputMotion, Program, Table, Transfer, flat_members, output_motion
from kic.transfer.targets import BatchTargets

if TYPE_CHECKING:
    import os

    from scipy.spatial.transform import RigidTransform

    from kic.actuation.distribution import Distribution
    from kic.actuation.internal_loads import InternalLoads
    from kic.analysis.singularities import Singularities
    from kic.analysis.whole_body import CentroidalMomentum
    from kic.dynamics.drive_train import MotorDemand
    from kic.grasp.grasp import Grasp
    from kic.joint_forces.joint_forces import JointForces
    from kic.linear.linearize import Linearization
    from kic.operational_space.ellipsoids import Ellipsoid, Kind
    from kic.operational_space.operational_space import OperationalSpace
    from kic.operational_space.redundancy import RedundancyResolution
    from kic.operational_space.weighting import Damping, Law, Weight
    from kic.plotting.animate import Animation
    from kic.plotting.draw import MechanismPicture
    from kic.plotting.figures import Picture
    from kic.plotting.view import ViewName
    from kic.transfer.coordinate_transfer import CoordinateTransfer
    from kic.viewer.viewer import Viewer


class Animated:
    """Mixin of motions that can be animated.

    A `Simulation` is interpolated at the times of the frames; for other motions, the nearest samples are
    shown.
    """

    def animate(
        self,
        *,
        fps: float = 25,
        speed: float = 1.0,
        trace: str | Iterable[str] = (),
        view: ViewName | None = None,
        progress: bool | None = None,
    ) -> Animation:
        """Animate the motion, or a batch of configurations (F,), one for each frame.

        Parameters
        ----------
        fps : float
            Frames per second: 1, 2, 4, 5, 10, 20, 25 or 50, which all players show evenly.
        speed : float
            Simulated time per second; 0.1 shows slow motion. Ignored for a batch.
        trace : str or list of str
            Points, frames, centres of mass and bodies whose curves are drawn as they move.
        view : str or (2,) floats, optional
            As in `Configuration.draw`.
        progress : bool, optional
            Show a progress bar while saving; by default at a terminal, if it takes long.

        Returns
        -------
        Animation
            With a method `save`; notebooks play it.

        Raises
        ------
        InputError
            If the batch has no shape (F,) or no valid member; if `fps` or `speed` is
            invalid; if there are more than 3000 frames.

        Examples
        --------
        >>> turn = kic.load("four-bar").path({"A": np.linspace(0.0, 2 * np.pi, 50, endpoint=False)})
        >>> film = turn.animate(trace="tip")
        >>> film.save("four-bar.gif")  # doctest: +SKIP
        """
        from kic.plotting.animate import animate

        return animate(self, fps=fps, speed=speed, trace=trace, view=view, progress=progress)

    def view(
        self,
        *,
        fps: float = 25,
        speed: float = 1.0,
        trace: str | Iterable[str] = (),
        host: str = "127.0.0.1",
        port: int = 8080,
        proxy: str | None = None,
        visuals: str | os.PathLike[str] | None = None,
        meshes: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    ) -> Viewer:
        """Show a configuration or a motion in an interactive viewer, in the browser or inline in Jupyter.

        Sliders set the coordinates, parts are dragged, and motions are played. The page is served by this
        process and needs no network. Only the address `url` of the viewer, which has a token, opens it. It
        requires the extra ``view``.

        Parameters
        ----------
        fps, speed
            As in `animate`; ignored for one configuration.
        trace : str or list of str, optional
            Points, frames, centres of mass and bodies whose curves are shown.
        host : str
            Address at which the page is served; by default only this computer can open it. "0.0.0.0", or "::"
            for IPv6, allows everyone who has the token, with a warning.
        port : int
            Port of the page; the next free port if it is in use.
        proxy : str, optional
            Address at which a proxy serves the page, such as "https://hub.org/user/me/proxy/{port}". A
            forwarded port (``ssh -L``) needs no proxy.
        visuals : path, optional
            URDF, SDF or MJCF file from which the mechanism was read; its visual meshes are shown too. The
            panel names the meshes that are not shown. MJCF requires the extra ``mujoco``.
        meshes : path or list of paths, optional
            Directories of mesh files outside that of the file, or of its ROS or Gazebo package. Files
            elsewhere are not read.

        Returns
        -------
        Viewer
            With `url`, `show` (another configuration), `save` (a replay as HTML), `wait` and `stop`.

        Raises
        ------
        MissingExtraError
            If viser is not installed.
        ModelFileError
            If the file of the visual meshes cannot be read.
        InputError
            As `animate`; also if the host is not an address of this computer, or the proxy is not the address
            of a page.

        Examples
        --------
        >>> turn = kic.load("four-bar").path({"A": np.linspace(0.0, 2 * np.pi, 100)})
        >>> viewer = turn.view(trace="tip")  # doctest: +SKIP
        >>> viewer.wait()  # doctest: +SKIP
        """
        from kic.viewer.viewer import view

        return view(
            self, fps=fps, speed=speed, trace=trace, host=host, port=port, proxy=proxy, visuals=visuals,
            meshes=meshes,
        )  # fmt: skip


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
    _counterparts: ClassVar[dict[str, str]] = {
        "G": "coefficients(of).G, the Jacobian",
        "H": "coefficients(of).H, the Hessian",
        "I": "dynamics().I, the mass matrix",
        "P": "dynamics().P, the Christoffel symbols",
        "jacobian": "coefficients(of).G, the Jacobian",
        "hessian": "coefficients(of).H, the Hessian",
        "mass_matrix": "dynamics().I, the mass matrix",
        "coriolis": "dynamics().coriolis(qd)",
        "gravity": "inverse_dynamics(), the static effort",
        "forward_kinematics": "pose(of) or value(of)",
        "fk": "pose(of) or value(of)",
        "inverse_kinematics": "Mechanism.at({tool: pose}, near=…)",
        "position": "value(of)",
        "euler": 'value("tool.euler_xyz")',
        "kinetic_energy": "dynamics().kinetic_energy(qd)",
        "velocity": "coefficients(of).velocity(qd)",
        "acceleration": "coefficients(of).acceleration(qd, qdd)",
        "reaction_forces": "joint_forces(qd, qdd)",
        "rnea": "inverse_dynamics(qd, qdd)",
        "aba": "forward_dynamics(qd, effort)",
        "crba": "dynamics().I, the mass matrix",
        "simulate": "Mechanism.simulate(t, near=…)",
        "find_equilibrium": "Mechanism.find_equilibrium(near=…)",
        "show": "draw(), or view() in the browser",
        "q": "value(coordinates)",
        "phi": "value(coordinates)",
        "draw_sheet": "draw(columns=4)",
        "plot": "draw()",
        "state_space": "linearize().state_space(); linearize(motors=True) includes motors",
        "mechanical_advantage": "kic.metrics.mechanical_advantage(row)(c), or force_table(of=row)",
        "transmission_angle": "kic.metrics.transmission_angle(joint)(c), or force_table(transmission=joint)",
        "manipulability": "ellipsoid(of).manipulability",
        "manipulability_gradient": "ellipsoid(of).gradient()",
        "center_of_mass": 'coefficients("com")',
        "influence_coefficients": "coefficients(of, order=3)",
        "transfer": "coefficients(of, wrt=…) or dynamics(wrt=…)",
        "partial_transfer": "actuator_dynamics(), or resolve_redundancy(of, ud).dynamics()",
        "effective_load": "dynamics().load, or inverse_dynamics(qd, qdd) of a motion",
        "load_distribution": "distribute(effort, actuators=…)",
        "antagonistic": "internal_loads(actuators=…), and its stiffness(efforts)",
        "superabundance": "resolve_redundancy(of, ud), or distribute(effort) among dependent actuators",
        **dict.fromkeys(("redundancy", "kinematic_redundancy"), "resolve_redundancy(of, ud)"),
        "drive_train": "motor_demand(qd, qdd), or dynamics(motors=True)",
        "linearization": "linearize()",
        "stiffness": "linearize().K",
        "compliance": "linearize().K and coefficients(of).G: compliance is G K⁻¹ Gᵀ",
        "payload": "kic.metrics.force, the largest force within effort limits",
    }

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
        base, _, row = of.partition(".") if isinstance(of, str) else ("", "", "")
        if row == SWING and isinstance(self._model.description._parts.get(base), Joint):
            return self._masked(swing_angle(self._model, base, self._states)).reshape(self.batch)
        query = self._model.rows(of, 1)
        rows = query.layout.rows
        if not rows.holonomic:
            bare = next(n for n, valued in zip(rows.labels, rows.valued, strict=True) if not valued)
            name, base = of if isinstance(of, str) else bare, bare.partition(".")[0]
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
        self._require_solved("pose()")
        return RigidTransform.from_matrix(self._pose(of))

    def _displacement(self, of: str) -> np.ndarray:
        """Return the displacement (..., 4, 4) of a body, or of a frame's body, from the reference.

        Unsolved members are NaN; complex numbers and symbols are kept.
        """
        T = self._pose(of)
        part = self._model.description._parts[of]
        if isinstance(part, Frame):  # T = displacement · [axes, origin]
            T[..., :3, :3] = T[..., :3, :3] @ np.array(part.axes)
            T[..., :3, 3] -= T[..., :3, :3] @ np.array(part.origin)
        return T

    def _require_solved(self, subject: str, remedy: str = "") -> None:
        """Raise an error if a member is unsolved, for results that cannot be NaN."""
        if self._ok is not None:
            bad = np.argwhere(~self._ok)
            message = (
                f"{subject} requires solved configurations, but {len(bad)} of {self._ok.size} were not "
                f"solved. Select the others by `ok`{remedy}."
            )
            raise InputError(message, key="configuration", failed=[tuple(index) for index in bad.tolist()])

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
                T = self._displacement(body.name)
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
            names = self.coordinates if self._model.is_open_chain else self._model.tree.columns
            # joints where loops are cut are not columns of the tree
            cut = [] if self._model.tree.open else valued(self._model.description.joints)
            cut = [c for c in dict.fromkeys((*cut, *self.coordinates)) if c not in names]
            one = self[index] if self.batch else self
            values = np.concatenate([one._phi, single_values(one, cut)])
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
            mechanism has degrees of freedom. By default the mechanism's own.
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
        return program.coefficients(self._run(program, failures))

    def _run(self, program: Program, failures: str) -> Table:
        """Return the results of a program."""
        return program.run(
            self._states, batch=self._batch, ok=self._ok, failures=failures, origin=self._origin
        )

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
            return program.model_of(self._run(program, failures), states)
        states, _, force, given = self._along(program.transfer, {}, applied)
        return program.model_of(program.run(states, applied=force, failures=failures, **given), states)

    def _along(
        self,
        transfer: Transfer,
        motion: dict[str, Any],
        applied: dict[str, Any] | None = None,
        loads: Loads | None = None,
        **batches: Any,
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...], np.ndarray | None, dict[str, Any]]:
        """Return states (B, S), motions (B, m), applied forces, and further arguments of programs.

        `applied` are forces of `loads`, by default those of the mechanism; `batches` are further shapes.
        """
        force, ok, loaded = None, self._ok, tuple[int, ...]()
        if applied is not None:
            force, loaded = (self._model.loads if loads is None else loads).applied(applied, self.name)
            batches |= {"applied": loaded} if loaded else {}
        others = () if force is None else (force,)
        states, rates, batch = flat_members(
            transfer.size, self._batch, self._states, motion, self._model.tree.scalar, *others, **batches
        )
        if force is not None:
            force = np.broadcast_to(force, (*batch, *force.shape[-2:])) if loaded else force
            force = force.reshape(len(states) if loaded else 1, *force.shape[-2:])
        if ok is not None and ok.shape != batch:
            ok = np.broadcast_to(ok, batch)
        return states, rates, force, {"batch": batch, "ok": ok, "origin": self._origin}

    def _efforts_at_coordinates(
        self, effort: Any, wrt: str | Iterable[str] | None, failures: Literal["raise", "mask"]
    ) -> Any:
        """Return efforts (..., M) at the coordinates from those of rows by name."""
        from kic.actuation.efforts import efforts_at_coordinates

        return efforts_at_coordinates(self, effort, wrt, failures)

    def _rotor_dynamics(
        self, wrt: str | Iterable[str] | None, failures: Literal["raise", "mask"]
    ) -> Dynamics:
        """Return the dynamics of the rotors of the motors."""
        from kic.actuation.motor_demand import rotor_dynamics

        return rotor_dynamics(self, wrt, failures)

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
        states, rates, _, given = self._along(transfer, motion)
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
        states, rates, force, given = self._along(program.transfer, motion, applied)
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
            effort = self._efforts_at_coordinates(effort, wrt, failures)
        motion = {"qd": qd, "effort": effort}
        if (motors is not False and flag("motors", motors)) or self._states.dtype.kind == "O":
            # rotors and symbols take the tensors
            d = self.dynamics(wrt=wrt, applied=applied, failures=failures, motors=motors)
            size = len(d.coordinates)
            v, T = (as_array(k, np.zeros(size) if a is None else a, size) for k, a in motion.items())
            return d.forward_dynamics(v, T)
        program = self._model.program(wrt, want=BOTH | lay.WANT_FORWARD, along=True)
        states, rates, force, given = self._along(program.transfer, motion, applied)
        a = program.efforts(states, rates, applied=force, failures=failures, **given)
        return a

    def centroidal_momentum(
        self, *, wrt: str | Iterable[str] | None = None, failures: Literal["raise", "mask"] = "raise"
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

    def body_contributions(
        self, *, wrt: str | Iterable[str] | None = None, failures: Literal["raise", "mask"] = "raise"
    ) -> Contributions:
        """Compute the contribution of each body to I* and P*, by linear and angular momentum, and its weight.

        Parameters
        ----------
        wrt, failures
            As in `coefficients`.

        Returns
        -------
        Contributions
            Arrays (..., N, M, M), (..., N, M, M, M) and (..., N, M) for N bodies (eqs 2-147 and 2-152 to
            2-194). Its `inverse_dynamics` returns the effort that each body requires.

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        SingularError
            If the coordinates cannot drive the mechanism here.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.0]).body_contributions()
        >>> c.I_linear.sum(axis=0)[0, 0] + c.I_angular.sum(axis=0)[0, 0]
        np.float64(2.6666666666666665)
        >>> c.inverse_dynamics([1.0, 2.0], [0.0, 0.0]).round(3).tolist()  # of each stick, at both joints
        [[4.905, 0.0], [14.715, 4.905]]
        """
        model = self._model
        transfer = model.transfer_for(wrt)
        good, T = map_valid_members(
            self.ok, failures, lambda members: model.contributions(transfer, self._states[members])
        )
        check_finite("Contributions", self.name, T)
        T, layout = scatter(T, good), model.contributions_query(transfer).layout
        shape = *self.batch, len(model.masses.names)
        rows = T.reshape(prod(shape), layout.width)
        *parts, momentum = transfer.in_coordinates(list(layout.split(rows, shape)), (2, 2, 3, 3, 1))
        parts.append(np.einsum("x,...nxm->...nm", np.array(model.description.gravity), momentum))
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
        effort: Any = None,
        *,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        actuators: str | Iterable[str] | None = None,
        criterion: Literal["minimum norm"] | None = None,
        out_of_plane: bool = False,
    ) -> JointForces:
        """Compute the forces and moments in all joints for a motion, and the efforts that drive it.

        Every joint is cut and replaced by its loads, as in (4-31): T_c at the conditions that the joint
        imposes, T at the coordinates with actuators. A coupling acts as efforts in its joints, a fixed
        distance as a force between its points, and a closed contact as a joint. Joints are frictionless.
        Bodies are rigid: if they are overconstrained, equilibrium does not determine some components. Those
        are NaN and are named; all remaining components are exact. An example is Table C-1.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the coordinates; zero by default.
        effort : (..., A) array_like, or dict of str to (...) array_like, optional
            Efforts of the actuators, for example from `distribute` or `Grasp.motion`; NaN if a member has
            none. They must drive the motion; a residual of at most 1e-6 is corrected. A dict gives them by
            name, zero for the others; without `actuators`, its names are the actuators.
        wrt : str or list of str, optional
            Coordinates of the motion, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, each in its axes (world or body), instead of those of the
            model.
        actuators : str or list of str, optional
            Rows where efforts act; by default the actuators of the mechanism, or else the coordinates. An
            effort at a joint acts between its two bodies, an effort at a distance between its two points. An
            effort at a row of a point or of a body is an external force or moment. There may be more
            actuators than degrees of freedom.
        criterion : {None, "minimum norm"}
            Choice of undetermined components: none, or those that minimize the sum of (force · L)² + moment²
            over all joints, and over the actuators if they are redundant. Moments are about the points of the
            joints, and L is the largest extent of the reference configuration. A coupling counts with the
            largest of its efforts.
        out_of_plane : bool
            True to include forces out of the plane of a planar mechanism and moments in it. Rigid bodies do
            not determine them. By default they are 0 where no load acts on them, so that each joint has two
            forces and a moment.

        Returns
        -------
        JointForces
            ``f["C"].force`` and ``f["C"].moment`` (..., 3) of the first body of the joint on the second, in
            world axes; ``f.effort`` (..., A), ``f.undetermined``.

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

        return joint_forces(self, qd, qdd, wrt, applied, actuators, criterion, effort, out_of_plane)

    def force_table(
        self,
        qd: Any = None,
        qdd: Any = None,
        *,
        of: str | Iterable[str] | None = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        actuators: str | Iterable[str] | None = None,
        transmission: str | Iterable[str] | None = None,
    ) -> DataTable:
        """Return the table of a drive and its load: input, load, effort, pin forces, advantage, by member.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the coordinates; zero by default.
        of : str or list of str, optional
            Rows whose mechanical advantage over each coordinate is listed; see
            `metrics.mechanical_advantage`.
        wrt, applied, actuators
            As in `joint_forces`. Loads in `applied` may differ in every member.
        transmission : str or (3,) list of str, optional
            Pin whose transmission angle is listed; see `metrics.transmission_angle`.

        Returns
        -------
        DataTable
            Columns "A", "load.x", "A.effort", "B.force", "tip.y.advantage", "C.transmission_angle" and so on;
            ``to_dataframe()``, ``to_csv(path)``.

        Raises
        ------
        InertiaError, InputError, SingularError
            As `joint_forces`; also if a joint has no transmission angle.

        Examples
        --------
        >>> m = kic.load("four-bar").add(kic.Force("load", "tip"))
        >>> turn = m.path({"A": np.linspace(1.2, 7.4, 25)})
        >>> pull = np.outer(1 + np.cos(turn.value("A")), [-5.0, 0.0, 0.0])
        >>> turn.force_table(of="tip.x", applied={"load": pull}, transmission="C").columns[:4]
        ('A', 'load.x', 'A.effort', 'A.force')
        """
        from kic.joint_forces.force_table import force_table

        return force_table(self, qd, qdd, of, wrt, applied, actuators, transmission)

    def singularities(
        self, *, drivers: str | Iterable[str] | None = None, of: str | Iterable[str] | None = None
    ) -> Singularities:
        """Find singular configurations between the members of a path or grid, and measure every member.

        Parameters
        ----------
        drivers : str or list of str, optional
            Rows that drive the mechanism, as many as its degrees of freedom; by default its coordinates.
        of : str or list of str, optional
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
        >>> for one in turn.singularities(drivers="D"):
        ...     print(one.summary())
        inputs: D can be at rest while others move: A 1, B -0.6552, C -0.3448
        inputs: D can be at rest while others move: A -0.7436, B 1, C -0.2564
        """
        from kic.analysis.singularities import Singularities

        return Singularities(self, drivers, of)

    def distribute(
        self,
        effort: Any,
        *,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = "minimum norm",
        effort_limits: Any = None,
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
        effort : (..., M) array_like, or dict of str to (...) array_like
            Generalized effort T_u at the coordinates, for example from `Dynamics.inverse_dynamics`. A dict
            gives efforts at rows by name, zero at other rows.
        actuators : str or list of str, optional
            Rows where efforts act, (A,): joints (also those that are cut), distances, rows of points or
            bodies; by default the actuators of the mechanism.
        criterion : str or (A,) or (..., A, A) array_like
            "minimum norm" (W = 1), "limits" (weights 1/limit²), positive weights, or a symmetric positive
            definite W. "least largest share" minimizes the largest share, then the next, and so on; the
            result is unique.
        effort_limits : float, (A,) or (2, ..., A) array_like, dict of str to those, or True, optional
            Magnitudes, or lower and upper limits, which are never exceeded: ``{"L1": 20.0, "L2": (-9, 0)}``;
            (2, 1) numbers are one pair for all. They may be infinite unless the criterion divides by them.
            True selects `Mechanism.effort_limits`.
        preload : (..., A) array_like, or dict of str to (...) array_like, optional
            Efforts of the actuators; their component that does no work is added, as nearly as limits allow.
        wrt : str or list of str, optional
            Coordinates of the effort, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            Treatment of members without solution: raise an error, or return NaN.

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
        >>> c.distribute(weight, actuators=motors).effort.round(2).tolist()
        [6.67, -5.88, -11.51, 4.04]
        >>> most = [40, 40, 20, 20]
        >>> d = c.distribute(weight, actuators=motors, criterion="least largest share", effort_limits=most)
        >>> d.share.round(3).tolist()
        [0.101, 0.268, 0.444, 0.444]
        """
        from kic.actuation.distribution import distribute

        return distribute(self, effort, actuators, criterion, effort_limits, preload, wrt, failures)

    def internal_loads(
        self,
        *,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = "minimum norm",
        effort_limits: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> InternalLoads:
        """Compute the internal loads: efforts of actuators that balance each other and do no work.

        Parameters
        ----------
        actuators : str or list of str, optional
            Rows where efforts act, (A,), as in `distribute`.
        criterion : str or (A,) or (..., A, A) array_like
            Metric in which the basis is orthonormal: "minimum norm", "limits" or weights, as in `distribute`.
        effort_limits : optional
            Limits as in `distribute`, for "limits".
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
        >>> loads = kic.load("walking-machine").at().internal_loads(actuators=["B1", "C1", "B2", "C2"])
        >>> print(*loads.sentences())
        Internal load 1: B1, C1 against B2, C2.
        """
        from kic.actuation.distribution import internal_loads

        return internal_loads(self, actuators, criterion, effort_limits, wrt, failures)

    def actuator_dynamics(
        self,
        *,
        actuators: str | Iterable[str] | None = None,
        criterion: Any = "minimum norm",
        effort_limits: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Dynamics:
        """Compute I*, P* and loads at more actuators than degrees of freedom (eqs 4-87 to 4-90).

        The dynamics in the coordinates (4-76) to (4-79) are mapped to the actuators by a pseudo-inverse.

        Parameters
        ----------
        actuators, criterion, effort_limits, wrt
            As in `distribute`; limits act as weights only.
        applied : dict of str to (..., 3) array_like, optional
            As in `dynamics`.
        failures : {"raise", "mask"}
            As in `distribute`.

        Returns
        -------
        Dynamics
            I* (..., A, M), P* (..., A, M, M), Tᴸ (..., A), with the actuators as `efforts`. Its
            `inverse_dynamics` gives the efforts of `dynamics`, distributed to the actuators.

        Raises
        ------
        InputError, SingularError, InertiaError
            As `distribute` and `dynamics`; also for "least largest share", which is not linear.

        Examples
        --------
        >>> c = kic.load("two-finger-hand").at()
        >>> c.actuator_dynamics(actuators=["A1", "B1", "A2", "B2"]).P.shape
        (4, 3, 3)
        """
        from kic.actuation.distribution import actuator_dynamics

        return actuator_dynamics(self, actuators, criterion, effort_limits, wrt, applied, failures)

    def operational_space(
        self,
        of: str | Iterable[str],
        *,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> OperationalSpace:
        """Compute the operational-space dynamics of a task: Λ, μ, p, consistent inverse and null space.

        Parameters
        ----------
        of : str or list of str
            Rows of the task, as `of` in `coefficients`, at most as many as the degrees of freedom.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            Treatment of members whose task is singular: raise an error, or return NaN.

        Returns
        -------
        OperationalSpace
            ``s.Lambda`` (..., P, P), ``s.mu`` (..., P, M, M), ``s.p`` (..., P), ``s.inverse`` (..., M, P).

        Raises
        ------
        InputError
            If the task has more rows than degrees of freedom, or the state has symbols.
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

        return operational_space(self, of, wrt, failures)

    def ellipsoid(
        self,
        of: str | Iterable[str],
        *,
        kind: Kind = "velocity",
        wrt: str | Iterable[str] | None = None,
        rate_limits: Any = None,
        effort_limits: Any = None,
        length: float | None = None,
        qd: Any = None,
        load: bool = True,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Ellipsoid:
        """Compute the ellipsoid of a task's velocity, force, inertia or acceleration, with its measures.

        Parameters
        ----------
        of : str or list of str
            Rows of the task, as in `coefficients`, of one unit unless `length` is given.
        kind : {"velocity", "force", "inertia", "acceleration"}
            Quantity; see `Ellipsoid` for the definitions.
        wrt : str or list of str, optional
            Coordinates of the actuators, as in `coefficients`; by default the mechanism's own.
        rate_limits, effort_limits : float, (M,) array_like, dict of str to float, or True, optional
            Largest rate ("velocity") or effort ("force", "acceleration") of each coordinate, by which it is
            scaled. Without limits all coordinates must have one unit.
        length : float, optional
            Length that multiplies angular rows and divides moments.
        qd : (..., M) array_like, optional
            Rates of the coordinates, for the centre of "acceleration"; zero by default.
        load : bool
            True if gravity, springs and applied forces shift the centre of "acceleration". Otherwise efforts
            are those beyond static equilibrium.
        failures : {"raise", "mask"}
            As in `coefficients`. A singular task is not a failure.

        Returns
        -------
        Ellipsoid
            axes (..., P, P), semi_axes (..., P), measures (...): manipulability, condition, isotropy; and the
            gradient of the manipulability.

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
        >>> e = c.ellipsoid("platform", kind="force", length=0.5)
        >>> e.semi_axes.shape, e.isotropy.round(3)
        ((6,), np.float64(0.351))
        """
        from kic.operational_space.ellipsoids import make_ellipsoid

        return make_ellipsoid(self, kind, of, wrt, rate_limits, effort_limits, length, qd, load, failures)

    def resolve_redundancy(
        self,
        of: str | Iterable[str],
        ud: Any = None,
        udd: Any = None,
        uddd: Any = None,
        *,
        qd: Any = None,
        criterion: Weight = "minimum norm",
        law: Law = "consistent",
        secondary: Any = None,
        damping: Damping = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> RedundancyResolution:
        """Resolve redundancy: compute the motion of all coordinates from that of a task with fewer rows.

        Rates minimize ½ (q̇ − z)ᵀ Q (q̇ − z) subject to G q̇ = u̇, (4-68) to (4-70)::

            q̇ = z + R (u̇ − G z)        R = Q⁻¹ Gᵀ (G Q⁻¹ Gᵀ)⁻¹

        Accelerations follow one of two laws. "consistent" accelerations are the derivative of these rates, so
        that the rates satisfy the law at all times. "instantaneous" accelerations minimize ½ (q̈ − ż)ᵀ Q (q̈
        − ż) for any rates (4-71, 4-72). The two laws differ in the null space, where the second law lets
        rates grow. (4-72) is not, as printed, the derivative of (4-68).

        Parameters
        ----------
        of : str or list of str
            Rows of the task, as `of` in `coefficients`, at most as many as the degrees of freedom.
        ud, udd, uddd : (..., P) array_like
            Rates, accelerations and jerks of the task, up to the desired order. Their batch broadcasts with
            that of the configuration.
        qd : (..., M) array_like, optional
            Current rates in place of `ud`, for the law "instantaneous".
        criterion : {"minimum norm", "minimum kinetic energy"} or (..., M, M) array_like
            Weight Q: the unit matrix, I*, or a constant symmetric positive definite matrix.
        law : {"consistent", "instantaneous"}
            Law of the accelerations.
        secondary : optional
            Null-space motion: `JointLimits`, `Manipulability`, `PreferredConfiguration`; rates z (..., M), or
            (z, ż) or (z, ż, z̈), zero if omitted; a callable that takes a configuration of any batch and
            returns z; or a list of these, which are added. Rates of objectives and callables are projected
            orthogonally on the null space, so that objectives decrease for any Q. For accelerations a
            callable is differentiated by the complex step, and must propagate complex numbers.
        damping : float or (float, float), optional
            λ; or the largest λ and the manipulability w₀ below which λ² grows from 0 as (1 − w²/w₀²)² of the
            largest (after Nakamura and Hanafusa 1986). λ² S is added to G Q⁻¹ Gᵀ, without units: lengths
            among the rows are divided by the characteristic length, Q by the mean of its diagonal, as is w =
            √det. `velocity_residual` has the resulting error of the task.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            Treatment of members whose task is singular: raise an error, or return NaN.

        Returns
        -------
        RedundancyResolution
            q̇, q̈, q⃛ (..., M), with `effort`, and `coefficients` and `dynamics()` with respect to the task
            (4-73 to 4-75).

        Raises
        ------
        InputError
            If the task has more rows than degrees of freedom, the weight is not symmetric and positive
            definite, a shape is wrong, or the state has symbols.
        SingularError
            If the rows of the task are dependent and there is no damping, or the weight is I* and some motion
            moves no mass.

        Examples
        --------
        >>> c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
        >>> r = c.resolve_redundancy("flange", [0.1, 0.0, 0.0], [0.0] * 3, criterion="minimum kinetic energy")
        >>> bool(abs(c.coefficients("flange").acceleration(r.qd, r.qdd)).max() < 1e-12)
        True
        """
        from kic.operational_space.redundancy import resolve

        motion = {"ud": ud, "udd": udd, "uddd": uddd, "qd": qd}
        return resolve(self, of, motion, criterion, law, secondary, damping, wrt, failures)

    def grasp(
        self,
        of: str,
        *,
        fingers: str | Iterable[str] | None = None,
        order: int = 2,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Grasp:
        """Compute the grasp of a body by contacts: grasp map, hand Jacobian, and the efforts of its motion.

        Parameters
        ----------
        of : str
            The body: an object that fingers touch, or a body that stands on feet, by contacts with ground.
        fingers : str or list of str, optional
            Coordinates of the fingers or legs, as many as their degrees of freedom with open contacts; by
            default the joints of open chains. For closed chains, name the coordinates with actuators.
        order : {1, 2, 3}
            Highest order of `Grasp.relative`.
        failures : {"raise", "mask"}
            Treatment of members whose coordinates cannot drive fingers and object or, in `Grasp.motion`,
            whose contacts cannot hold it: raise an error, or return NaN.

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

        return Grasp(self, of, fingers, order, failures)

    @overload
    def draw(
        self, *, names: bool = False, view: ViewName | None = None, ax: Any = None, columns: None = None
    ) -> MechanismPicture: ...
    @overload
    def draw(
        self, *, names: bool = False, view: ViewName | None = None, ax: None = None, columns: int
    ) -> Picture: ...
    def draw(
        self,
        *,
        names: bool = False,
        view: ViewName | None = None,
        ax: Any = None,
        columns: int | None = None,
    ) -> MechanismPicture | Picture:
        """Draw the mechanism to scale with standard kinematic symbols.

        Planar mechanisms are shown along their normal, spatial mechanisms in an oblique orthographic view;
        lengths across the view are to scale. Actuators are vermilion: those of the mechanism, or else its
        coordinates. A revolute joint is drawn at its `at`; spatial joints with a common position are offset
        along their axes. A distance is drawn as a cylinder if it is an actuator and as a rod if it is fixed.
        The first and the last member of a batch are drawn in full, at most ten evenly spaced members between
        them are faded. Unsolved members are omitted.

        Parameters
        ----------
        names : bool
            Label joints, points and (in italics) bodies.
        view : str or (2,) floats, optional
            "top", "front" (x to the right) or "side"; or azimuth about the vertical, measured from x, and
            elevation of the viewer in degrees. Up is opposite to gravity, or z. By default chosen
            automatically.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure with the width of a journal column.
        columns : int, optional
            Largest number of drawings in a row, to draw the valid members of a batch side by side at one
            scale, such as all assembly modes, with their indices as titles. By default all share one drawing.

        Returns
        -------
        MechanismPicture, or Picture with `columns`
            With a method `save`; notebooks display it. A MechanismPicture also has `velocity`,
            `acceleration`, `forces`, `ellipsoid` and `trace`.

        Raises
        ------
        InputError
            If no member is valid, or more than 64 with `columns`; if the numbers are not real, or the view is
            invalid; or `ax` is given with `columns`.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": np.linspace(1.0, 2.5, 40)})
        >>> picture = turn.draw().trace("tip")
        >>> picture.save("four-bar.svg")  # doctest: +SKIP
        >>> found = m.assembly_modes({"A": 1.2})
        >>> len(found.configuration.draw(columns=4).axes)
        2
        """
        from kic.plotting.draw import draw, draw_sheet

        if columns is None:
            return draw(self, names=names, view=view, ax=ax)
        return draw_sheet(self, names=names, view=view, ax=ax, columns=columns)

    def to_html(
        self,
        of: str | Sequence[str] = (),
        *,
        order: int = 1,
        wrt: str | Iterable[str] | None = None,
        source: str | None = None,
        repeat: str = "",
        replay: str = "",
    ) -> str:
        """Return the report on a configuration as one self-contained HTML page.

        The page contains a drawing, all tables of the report, plots over each coordinate moved alone, curves
        of the requested points, the mobility and the model file. It has no script, needs no network and
        supports light pages, dark pages and print. Pictures require the extra ``plot``.

        Parameters
        ----------
        of : str or sequence of str
            Outputs, as in `Configuration.coefficients`; none by default.
        order : {1, 2, 3}
            Highest order of the coefficients.
        wrt : str or list of str, optional
            Coordinates of the coefficients and the dynamics; by default those of the mechanism.
        source : str, optional
            Text of the model file; by default that of `Mechanism.save`.
        repeat : str
            Command that reproduces the page, shown at its end.
        replay : str
            Page of `Viewer.to_html`, which is shown below the drawing; the report then has its scripts.

        Returns
        -------
        str
            HTML, to be encoded in UTF-8.

        Raises
        ------
        UnknownNameError, InputError
            If an output or coordinate does not exist, `order` is out of range, or this is a batch.
        SingularError
            If the coordinates cannot drive the mechanism.
        MissingExtraError
            If Matplotlib is not installed.

        Examples
        --------
        >>> page = kic.load("four-bar").at({"A": 1.2}).to_html(of="tip")
        >>> page[:15], "<script" in page
        ('<!doctype html>', False)
        """
        from kic.report.page import report_page

        return report_page(self, of, order=order, wrt=wrt, source=source, repeat=repeat, replay=replay)

    def linearize(
        self,
        qd: Any = None,
        qdd: Any = None,
        effort: Any = None,
        *,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        motors: bool = False,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Linearization:
        """Linearize the efforts about a motion: δT = K δq + C δq̇ + I* δq̈.

        The result is exact, from third-order coefficients, with gravity, forces in world and body axes,
        springs and dampers. It holds in any coordinates, for open and closed mechanisms, and for a batch such
        as a trajectory.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the nominal motion; zero by default.
        effort : (..., M) array_like, or dict of str to float, optional
            Efforts of the nominal motion, in place of `qdd`. A dict gives those of actuators by name. These
            efforts stay constant when the mechanism deviates, so that K includes −Σ T_i H_i, and δT are
            additional efforts.
        wrt : str or list of str, optional
            Coordinates, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, each in its axes (world or body), instead of those of the
            model.
        motors : bool
            True to include the rotors of the motors and their damping, as in `dynamics`.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        Linearization
            K, C, I (..., M, M) (eqs 2-201 to 2-226).

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

    def motor_demand(
        self,
        qd: Any,
        qdd: Any,
        qddd: Any = None,
        *,
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
            Components of named forces and moments, each in its axes (world or body), instead of those of the
            model.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        MotorDemand
            Arrays (..., K) for the K motors (eqs 2-231 to 2-240).

        Raises
        ------
        InputError
            If there are no motors, a shape is wrong, jerks are missing, the motors cannot produce the motion,
            or there are more motors than degrees of freedom, so that torques are undetermined.
        SingularError, InertiaError
            As `dynamics`; also if motors depend on one another.

        Examples
        --------
        >>> crank = kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, resistance=0.5, torque_constant=0.02)
        >>> c = kic.load("four-bar").add(crank).at({"A": 1.2})
        >>> c.motor_demand([6.0], [0.0]).speed
        array([180.])
        """
        from kic.actuation.motor_demand import motor_demand

        return motor_demand(self, qd, qdd, qddd, wrt, applied, failures)


def model_of(configuration: Configuration) -> CompiledModel:
    """Return the compiled mechanism of a configuration: its description, tree, rows and programs.

    Functions of other packages use it and `flat_states` instead of private attributes. The mask is `ok`.
    """
    return configuration._model


def flat_states(configuration: Configuration) -> np.ndarray:
    """Return the states (B, S) of a batch, not copied; those of unsolved members may be NaN."""
    return configuration._states


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
