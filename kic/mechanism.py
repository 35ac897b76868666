"""Mechanism: a description of parts, and the configurations that are solved for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from kic.configuration import Configuration
from kic.description import contacts, couplings
from kic.description.description import Info, MechanismDescription, Part, added, edited, removed
from kic.description.motors import list_motors
from kic.description.units import DEGREES_ANGLE_MIN, rate_unit, warn_of_degrees
from kic.errors import ConfigurationError, InputError
from kic.kernels import layout as lay
from kic.kinematics.state import coordinates_of, only_coordinates, states_of
from kic.numerics.arrays import broadcast_batches, check_failures
from kic.numerics.display import Printable, Summary
from kic.position import (
    initial_states,
    real_configuration,
    solve_path,
    solve_position,
    within_limits,
)
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import Limits

if TYPE_CHECKING:
    from kic.analysis.assembly_modes import AssemblyModes
    from kic.analysis.sensitivity import ParameterSpec
    from kic.description.contacts import Contact
    from kic.description.couplings import Coupling
    from kic.description.motors import Motor
    from kic.description.parts import (
        Body,
        CenterOfMass,
        Distance,
        Force,
        Frame,
        Joint,
        Moment,
        Point,
        Spring,
    )
    from kic.description.units import Units
    from kic.export.export import Exports
    from kic.linear.equilibrium import Equilibrium
    from kic.numerics.polynomial_map import PolynomialMap
    from kic.operational_space.weighting import Damping, Weight
    from kic.plotting.draw import MechanismPicture
    from kic.plotting.view import ViewName
    from kic.prepared import Evaluators
    from kic.simulation.controllers import Sampled
    from kic.simulation.motion import Effort
    from kic.simulation.options import Integrator, Method, Voltage
    from kic.simulation.result import Simulation
    from kic.sweeps.result import Sweep
    from kic.trajectory.tracking import TrackingResult
    from kic.trajectory.trajectory import Trajectory
    from kic.transfer.mobility import Mobility
    from kic.viewer.viewer import Viewer


def _size(a: np.ndarray) -> float:
    """Return the sum of squares, as a fast test for finite numbers; zero for symbols."""
    return 0.0 if a.dtype.kind == "O" else abs(np.vdot(a, a))


@dataclass(frozen=True, repr=False)
class Mechanism(Printable, MechanismDescription):
    """Mechanism described in one assembled configuration, the reference configuration, in world coordinates.

    It is immutable.

    Parameters
    ----------
    name : str
        Short name.
    bodies, joints, points, distances, forces, moments, springs : sequences
    couplings, contacts, motors, frames, centers : sequences
        Parts, each sequence of one kind. All names share one namespace, and ``ground`` is the fixed world.
    gravity : (3,) float, optional
        Acceleration of gravity (length/time²), in any direction; −9.81 m/s² along z by default.
    closure_tolerance : float
        Gap that a loop with rounded dimensions may have, as a share of its length; less than 1. Conditions
        that are redundant within it are dropped; `mobility` reports them, and whether exact conditions are
        among them. Inputs are met exactly, dropped conditions within the tolerance. Files without a tolerance
        are read with ten times the residual of redundant conditions along the motion, if that is rounding.
    coordinates : sequence of str, optional
        Joints and distances that are the default coordinates; by default all joints that move, in their
        order. The attribute is the tuple of single coordinates, as in `Configuration.coordinates`.
    actuators : sequence of str, optional
        Joints, distances, or rows of points and bodies, where efforts act; by default the coordinates. There
        may be more or fewer than degrees of freedom. Drawings mark them, and `joint_forces`, `distribute`,
        `internal_loads`, static efforts and reports use them by default. The attribute is the tuple of single
        rows.
    info : dict of str to str, or results.Info
        Texts: `title`, a headline; `about`, a description; `source` of the data; and `drawing`, the reference
        configuration. The attribute is an `Info`.
    units : Units
        Names of the units, for labels only; angles are radians.
    remarks : sequence of str
        Remarks of the reader of a file: what it merged, renamed, replaced or ignored.

    Raises
    ------
    ModelError
        If the description contradicts itself. The message has the rule, the value and the remedy.

    Examples
    --------
    >>> pendulum = kic.Mechanism(
    ...     "pendulum",
    ...     bodies=[kic.Body("rod", mass=2.0, com=(0.5, 0, 0), inertia=(0, 0.17, 0.17))],
    ...     joints=[kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))],
    ...     points=[kic.Point("tip", "rod", at=(1, 0, 0))],
    ...     gravity=(0, -9.81, 0),
    ... )
    >>> pendulum.at([0.0]).coefficients("tip").G
    array([[0.],
           [1.],
           [0.]])
    """

    _counterparts: ClassVar[dict[str, str]] = {
        "jacobian": "at(values).coefficients(of).G",
        "mass_matrix": "at(values).dynamics().I",
        "forward_kinematics": "at(values).pose(of)",
        "fkine": "at(values).pose(of)",
        "inverse_kinematics": "at({tool: pose}, near=…)",
        "ikine": "at({tool: pose}, near=…)",
        "inverse_dynamics": "at(values).inverse_dynamics(qd, qdd)",
        "forward_dynamics": "at(values).forward_dynamics(qd, effort)",
        "rnea": "at(values).inverse_dynamics(qd, qdd)",
        "aba": "at(values).forward_dynamics(qd, effort)",
        "crba": "at(values).dynamics().I",
        "reaction_forces": "at(values).joint_forces(qd, qdd)",
        "joint_forces": "at(values).joint_forces(qd, qdd)",
        "coefficients": "at(values).coefficients(of)",
        "dynamics": "at(values).dynamics()",
        "operational_space": "at(values).operational_space(of)",
        "linearize": "at(values).linearize()",
        "state_space": "at(values).linearize().state_space(); linearize(motors=True) includes motors",
        "show": "draw(), or view() in the browser",
        "plot": "draw()",
        "locked": "lock(values)",
        "part": "the name as an index, such as m['A']",
        "degrees_of_freedom": "dof",
        "solve": "at(values)",
        "close": "at(values)",
        "cuts": "mobility().cuts",
        "independent_sets": "mobility().independent_sets(configuration)",
        "to_urdf": "kic.to_urdf(mechanism)",
        "to_mjcf": "kic.to_mjcf(mechanism)",
        "joint_order": "kic.joint_order(mechanism, peer)",
        **{text: f"info.{text}" for text in ("title", "about", "source", "drawing")},
        **dict.fromkeys(("leg", "legs", "serial_chain", "open_chain"), "chain(tip, through=…)"),
        "drive_train": "motors, or at(values).motor_demand(qd, qdd)",
        "payload": "kic.metrics.force, the largest force within effort limits",
        "influence_coefficients": "at(values).coefficients(of, order=3)",
        "transfer": "at(values).coefficients(of, wrt=…)",
        "effective_load": "at(values).dynamics().load",
        "load_distribution": "at(values).distribute(effort, actuators=…)",
        "antagonistic": "at(values).internal_loads(actuators=…)",
        **dict.fromkeys(
            ("redundancy", "kinematic_redundancy", "superabundance"),
            "at(values).resolve_redundancy(of, ud), or track({of: …}, t, near=…)",
        ),
        "compliance": "at(values).linearize().K and coefficients(of).G: compliance is G K⁻¹ Gᵀ",
    }

    if TYPE_CHECKING:  # for users' type checkers: sequences become tuples

        def __init__(
            self,
            name: str,
            bodies: Iterable[Body] = (),
            joints: Iterable[Joint] = (),
            *,
            points: Iterable[Point] = (),
            distances: Iterable[Distance] = (),
            forces: Iterable[Force] = (),
            moments: Iterable[Moment] = (),
            springs: Iterable[Spring] = (),
            couplings: Iterable[Coupling] = (),
            contacts: Iterable[Contact] = (),
            motors: Iterable[Motor] = (),
            frames: Iterable[Frame] = (),
            centers: Iterable[CenterOfMass] = (),
            gravity: Any = None,
            closure_tolerance: float = 0.0,
            coordinates: str | Iterable[str] | None = None,
            actuators: str | Iterable[str] | None = None,
            info: Info | Mapping[str, str] = ...,
            units: Units = ...,
            remarks: Iterable[str] = (),
        ) -> None: ...

    @cached_property
    def _model(self) -> CompiledModel:
        return CompiledModel(self)

    def at(
        self,
        values: Any = None,
        *,
        near: Configuration | None = None,
        limits: Limits = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Configuration:
        """Solve a configuration, or a batch of configurations, for given values; loops are closed.

        Parameters
        ----------
        values : (..., M) array_like, dict of str to array_like, or None
            Coordinates in the order of `coordinates`, or by name; batches broadcast. None is the reference
            configuration. A spherical joint takes a rotation vector along its axes, or a SciPy `Rotation`
            relative to the reference configuration. A free joint takes x y z and a rotation vector, or a
            `RigidTransform`, the displacement of the second body relative to the first as returned by
            `Configuration.pose`. For closed mechanisms, and for inverse kinematics, any rows with a value are
            allowed, as many as the degrees of freedom: joints, points ("tip", "tip.x"), distances, angles of
            a planar mechanism. A body takes a `RigidTransform`, its displacement from the reference
            configuration, or a `Rotation` for its orientation alone: 6 and 3 inputs in space, 3 and 1 in a
            plane. A spherical joint, also in a loop, counts as many inputs as an orientation.
        near : Configuration, optional
            Configuration from which the solution is continued, so that the assembly mode is kept; by default
            the reference configuration. The path from its values to the inputs is followed by predictor steps
            of second order, and every step is checked: the solution never crosses a dead centre to another
            branch. Angles of `Mobility.cuts` are known modulo full turns, and change by the shorter arc.
        limits : bool or dict of str to (lower, upper), optional
            True for the limits of the description, or limits of rows with a value ("A", "tip.x") or swings
            ("S1.swing"); by default none. Members beyond them have no solution. Only the solution is checked,
            not the path to it from `near`. `path` checks every member of a given path.
        failures : {"raise", "mask"}
            Treatment of members without solution, or with NaN or infinite input: raise an error, or return
            NaN in every result and False in ``.ok``.

        Raises
        ------
        InputError
            If a shape is wrong, or coordinates are missing, surplus or of another type.
        ConfigurationError
            If members fail, do not close, or exceed limits. The error has their indices (`failed`), the
            `reasons`, the solved members (`configuration`), and the configurations `reached`. Members that do
            not close have the `share` of the path that was completed. Members beyond limits have `beyond`: a
            dict of the names to the excess, negative below the lower limit.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> arm.at({"shoulder": 0.0, "elbow": [0.0, 0.1, 0.2]}).batch
        (3,)

        The elbow that is already bent is kept:

        >>> arm.at({"tip.x": 1.0, "tip.y": 1.0}, near=arm.at([0.3, 1.2])).value("elbow").round(6)
        np.float64(1.570796)

        Leg lengths of a platform from its pose:

        >>> from scipy.spatial.transform import RigidTransform
        >>> platform = kic.load("gough-stewart")
        >>> up = RigidTransform.from_translation([0.0, 0.0, 0.1])
        >>> platform.at({"platform": up}).value("L1").round(4)
        np.float64(1.0999)
        """
        found = self._solve(values, near, failures)
        return found if limits is None else within_limits(found, limits, failures)

    def _solve(
        self, inputs: Any, near: Configuration | None, failures: Literal["raise", "mask"]
    ) -> Configuration:
        """Solve configurations without limits; see `at`."""
        if type(failures) is not str or failures != "raise":
            check_failures(failures)
        model = self._model
        if inputs is None:
            if near is not None:
                message = "`near` was given without `values`. Give those of the configuration."
                raise InputError(message, key="near")
            return Configuration(model, (), model.reference_state.copy())
        if not model.is_open_chain or not only_coordinates(self, inputs):
            return solve_position(model, inputs, near, failures)
        if near is not None and model.has_complex_step:
            return solve_position(model, inputs, near, failures)
        a = coordinates_of(self, inputs)
        if near is not None:  # the state of an open chain is the same from any start
            shape = broadcast_batches(values=a.shape[:-1], near=initial_states(model, near)[1])
            a = np.broadcast_to(a, (*shape, a.shape[-1]))
        batch = a.shape[:-1]
        phi = a.reshape(prod(batch), a.shape[-1]).copy()
        size = _size(phi)
        if not size < DEGREES_ANGLE_MIN**2:
            warn_of_degrees(self, self.coordinates, phi)
        if isfinite(size) or np.isfinite(phi).all():
            return Configuration(model, batch, states_of(model.tree, phi))
        ok = np.isfinite(phi).all(axis=-1)
        phi[~ok] = np.nan
        configuration = Configuration(model, batch, states_of(model.tree, phi), ok.reshape(batch))
        if failures == "raise":
            self._refuse(configuration, a)
        return configuration

    def path(
        self,
        values: Any,
        *,
        near: Configuration | None = None,
        limits: Limits = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Configuration:
        """Solve configurations along a path: each member is continued from the previous one, on its branch.

        Parameters
        ----------
        values : (..., M) array_like, or dict of str to array_like
            As in `at`; the first axis of the batch is the path, further axes are parallel paths.
        near : Configuration, optional
            Configuration from which the first member is continued; by default the reference configuration.
        limits
            As in `at`, checked at each member; a path ends at the first member beyond them.
        failures : {"raise", "mask"}
            Treatment of a path that cannot continue without a jump to another branch: raise an error with the
            member and the reason, or return NaN from there on and False in ``.ok``.

        Raises
        ------
        InputError
            As `at`; also if inputs have no batch.
        ConfigurationError
            If a path stops; the error has the same attributes as in `at`.

        Examples
        --------
        A crank makes a full turn; the tip of the coupler returns to its start.

        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 50)})
        >>> bool(np.allclose(turn.value("tip")[0], turn.value("tip")[-1]))
        True
        """
        check_failures(failures)
        direct = self._model.is_open_chain and near is None and only_coordinates(self, values)
        try:
            if direct and values is not None:
                found = self._solve(values, None, failures)
            else:
                found = solve_path(self._model, values, near, failures)
        except ConfigurationError as error:
            if limits is not None and isinstance(done := error.numbers.get("configuration"), Configuration):
                within_limits(done, limits, failures, path=True)
            raise
        return within_limits(found, limits, failures, path=True)

    def assembly_modes(
        self,
        values: Any,
        *,
        near: Configuration | None = None,
        starts: int = 128,
        rng: Any = 0,
        limits: Limits = None,
        complete: bool = False,
        certify: bool = False,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> AssemblyModes:
        """Find the distinct configurations (assembly modes) with given values, such as both elbows of an arm.

        The default is a quick search from random starts, which may miss solutions. With ``complete=True`` all
        complex solutions of the closure equations are collected by monodromy loops of the inputs, and
        followed to the values. The result states the evidence that no solution is missing. The loops are run
        once for a mechanism and a choice of inputs; further values take milliseconds for each path.

        Parameters
        ----------
        values : dict or (..., M) array_like
            One target or a batch of targets, as in `at`.
        near : Configuration, optional
            One configuration, the first start; solutions are sorted by the distance of their joints from it.
            By default the reference configuration.
        starts : int
            Number of starts: `near`, and random starts. In a batch, this is the number at the first member;
            others have an eighth (at least 8), and the solutions of their neighbours.
        rng : int or numpy Generator
            Seed of the random starts.
        limits
            As in `at`. An angle may be within them modulo full turns.
        complete : bool
            True to collect all solutions; see `AssemblyModes.completeness`. The poses of bodies, points,
            distances and joints may be given. Couplings of rotations must have the ratio 1, and dimensions
            must be exact (no `closure_tolerance`). Assembly modes of legs that are independent for each pose
            of a platform are combined.
        certify : bool
            With ``complete=True``, True to follow the paths to the values once more in steps that are proved
            not to jump; this takes 0.01 to 1 s for each path. Solutions are certified in any case.
        time_limit : float, optional
            With ``complete=True``, the time (s) after which loops and paths end; the result then states that
            it is incomplete. A later call continues, also after a KeyboardInterrupt.
        progress : bool, optional
            With ``complete=True``, show a progress bar on stderr; by default at a terminal, if it takes long.

        Returns
        -------
        AssemblyModes
            Its `configuration` is a batch whose first axis has the solutions found, which may not be all. For
            a batch, each slice is one branch, as far as it could be continued. Missing solutions are NaN in
            every result and False in ``configuration.ok``. If no solution was found, it is empty, and
            `reason` states the cause.

        Raises
        ------
        InputError, UnknownNameError
            As for `at`; also for invalid limits, and for more than 100,000 real assembly modes of one target
            with ``complete=True``; the error carries their `number`.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> found = m.assembly_modes({"A": 1.2})
        >>> len(found.counts), found.configuration.value("A").tolist()
        (2, [1.2, 1.2])

        Both elbow configurations up to the limit of reach and beyond:

        >>> arm = kic.load("horn-two-link")
        >>> found = arm.assembly_modes({"tip.x": [1.2, 1.6, 2.0, 2.4], "tip.y": 0.0})
        >>> found.configuration.ok.sum(axis=0).tolist()
        [2, 2, 1, 0]

        A planar platform with three legs has six complex solutions, of which two are real here:

        >>> platform = kic.load("three-rrr")
        >>> every = platform.assembly_modes([1.9, 1.2, -2.3], complete=True)
        >>> every.completeness.generic, len(every)
        (6, 2)
        """
        from kic.analysis.assembly_modes import find_assemblies

        options = complete, time_limit, progress, certify
        return find_assemblies(self._model, values, near, starts, rng, limits, *options)

    def track(
        self,
        path: Mapping[str, Any] | Any,
        t: Any,
        *,
        near: Configuration | None = None,
        criterion: Weight = "minimum norm",
        secondary: Any = None,
        damping: Damping = None,
        gain: float = 0.0,
        exact: bool = True,
        wrt: str | Iterable[str] | None = None,
        tolerance: float = 1e-10,
        limits: Limits = None,
    ) -> TrackingResult:
        """Follow a path in time with a task, and resolve redundancy if the task has fewer rows.

        The rates q̇ of `Configuration.resolve_redundancy` are integrated by the method of Dormand and Prince
        of order 8, with closed loops. At every time of `t` the configuration is corrected to the path, so
        that the task does not drift; the coordinates may, see `TrackingResult.drift`. `prepare` provides the
        same rates step by step, for a control loop.

        Parameters
        ----------
        path : Trajectory, or dict of str to callable or array_like
            The task: a trajectory of `kic.trajectory`; or, for rows with a value ("flange", "tip.x") or
            bodies, a trajectory, a function of time that returns values, (values, rates) or (values, rates,
            accelerations), or samples (n, ..., P) at the times, interpolated by a spline of fifth degree. A
            function that returns values alone is differentiated by a complex step and must accept complex
            times. For a body, a SciPy `RigidTransform` or `Rotation` of n members, its displacement from the
            reference configuration; a function that returns such an object with its rates; or a rotation made
            by `kic.trajectory.rotation`.
        t : (n,) array_like
            Times.
        near : Configuration, optional
            Start, one configuration or a batch, near the path; by default the reference configuration.
        criterion, secondary, damping
            As in `Configuration.resolve_redundancy`. A callable receives a configuration of the batch and, at
            the end, one whose first axis is time.
        gain : float
            Feedback of the task's error between the times, 1/time: u̇ = u̇ of the path + gain · error.
        exact : bool
            True to correct configurations to the path at each time; otherwise only `gain` reduces errors.
            With damping the correction is limited.
        wrt
            As in `Configuration.resolve_redundancy`.
        tolerance : float
            Relative tolerance of the integration.
        limits
            As in `at`; a configuration beyond them is an error with its `time`.

        Returns
        -------
        TrackingResult
            Configurations, rates, errors, damping; `drift`.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.resolve_redundancy`; also for times that do not increase, an invalid path, or
            rates that contradict the values.
        SingularError
            If the task becomes singular and there is no damping; it has the `time`.
        ConfigurationError
            If the path is out of reach or beyond limits; it has the `time`.

        Examples
        --------
        >>> m = kic.load("three-link-arm")
        >>> c = m.at([0.4, 0.5, 0.6])
        >>> x = c.value("frame3.x")
        >>> f = m.track({"frame3.x": lambda t: x - 0.1 * np.sin(t)}, np.linspace(0, 2 * np.pi, 9), near=c)
        >>> f.qd.shape, bool(abs(f.error).max() < 1e-12)
        ((9, 3), True)
        """
        from kic.trajectory.tracking import follow

        return follow(
            self._model, path, t, near, criterion, secondary, damping, gain, exact, wrt, tolerance, limits
        )

    def _refuse(self, configuration: Configuration, inputs: np.ndarray) -> None:
        failed = [tuple(index) for index in np.argwhere(~configuration.ok).tolist()]
        reasons = []
        for index in failed:
            bad = np.flatnonzero(~np.isfinite(inputs[index]))
            reasons.append(", ".join(f"{configuration.coordinates[k]} = {inputs[index][k]}" for k in bad))
        if not configuration.batch:
            message = f"Coordinates of '{self.name}' must be finite, got {reasons[0]}."
        else:
            some = "; ".join(f"{i}: {why}" for i, why in list(zip(failed, reasons, strict=True))[:4])
            message = (
                f"Coordinates of '{self.name}' must be finite, got others in {len(failed)} of "
                f"{configuration.ok.size} members: {some}{'; …' if len(failed) > 4 else ''}. Use "
                "failures='mask' to keep the rest."
            )
        raise ConfigurationError(message, failed=failed, reasons=reasons, configuration=configuration)

    @property
    def dof(self) -> int:
        """Number of degrees of freedom at the reference configuration and near it; see `mobility`."""
        return self._model.dof

    def mobility(self, configuration: Configuration | None = None) -> Mobility:
        """Return the mobility: degrees of freedom, closure conditions, and their redundancy (D-1).

        Parameters
        ----------
        configuration : Configuration, optional
            One configuration; by default the reference configuration.

        Returns
        -------
        Mobility
            Coordinates of the tree, closure conditions of each part, and the redundant conditions; whether
            motions are finite or only shown to some order; motions that are passive; and, by
            `Mobility.independent_sets`, the coordinates that can drive the mechanism. Printed, it is a
            paragraph.

        Examples
        --------
        >>> kic.load("five-bar").mobility()
        mobility 2: 4 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them redundant (3 of
        joint 'D'). All motion is in one plane, normal (0, 0, 1); other conditions hold identically.
        """
        if configuration is None:
            return self._model.mobility()
        from kic.transfer.mobility import Mobility

        model = self._model.real
        here = real_configuration(self._model, configuration)
        state, batch = initial_states(model, here, "configuration")
        if batch:
            message = f"`configuration` must not be a batch, got a batch {batch}. Index it first."
            raise InputError(message, key="configuration", got=batch)
        return Mobility(model, state[None], here)

    def close_loops(
        self,
        loops: Iterable[Any],
        *,
        near: Mapping[str, float] | None = None,
        coordinates: Iterable[str] | None = None,
        spins: str = "held",
    ) -> Mechanism:
        """Close loops that are open in the description, in the nearest closed configuration.

        Damped Gauss–Newton steps start from `near`, or else from the described configuration, then from zero
        coordinates clipped to the joint limits, and then from samples within them; the nearest of the first
        solutions is taken. Closed loops, couplings, closed contacts and fixed distances are maintained.

        Parameters
        ----------
        loops : sequence of (str, str) or (str, str, str)
            Pairs of frames or points that coincide where a loop is closed. The third word is the type of the
            closing joint: "spherical" (the default), "revolute" about the z axis of the first frame, "fixed",
            "cylindrical", "prismatic", "universal" (the second axis is the x axis of the second frame) or
            "planar" (along z and x of the first). Its coordinates are 0 where both frames coincide. Points
            have the axes of the world.
        near : dict of str to float, optional
            Values of joints from which the search starts; "ball.1" to "ball.3" are the rotation vector of a
            ball joint. No other start is used then.
        coordinates : sequence of str, optional
            Joints of the default coordinates. By default those of the description if they can drive the
            closed mechanism, else the best-conditioned set.
        spins : {"held", "free"}
            "held" for `hold_spins`, except for rods whose joints have a coordinate in `coordinates`; "free"
            to keep all spins of rods as degrees of freedom.

        Returns
        -------
        Mechanism
            Described in the closed configuration, with a joint "a to b" for each loop. Coordinates keep their
            values; rotations of free and spherical joints are at their zero. `remarks` lists the gap of each
            loop.

        Raises
        ------
        ModelError
            If no configuration closes the loops. It has the name of the `loop` that remains open, and the
            `residual` as a share of the characteristic length. Also if `near` does not close them within
            limits, but another start does; the error has its values as `near`. Also for open contacts and
            swings of joints that move, which refer to the described configuration.
        InputError, UnknownNameError
            If a loop, value or name is invalid.

        Examples
        --------
        A double pendulum, drawn straight, becomes a four-bar linkage by a second pin:

        >>> z = (0, 0, 1)
        >>> chain = kic.Mechanism(
        ...     "chain",
        ...     [kic.Body("crank"), kic.Body("coupler"), kic.Body("rocker")],
        ...     [
        ...         kic.Joint("A", "revolute", ("ground", "crank"), (0, 0, 0), z),
        ...         kic.Joint("B", "revolute", ("crank", "coupler"), (1, 0, 0), z),
        ...         kic.Joint("C", "revolute", ("coupler", "rocker"), (3, 0, 0), z),
        ...     ],
        ...     points=[kic.Point("end", "rocker", (5, 0, 0)), kic.Point("pin", "ground", (2, 0, 0))],
        ... )
        >>> m = chain.close_loops([("end", "pin", "revolute")], near={"A": 1.0, "B": -0.5, "C": -2.0})
        >>> m.dof, bool(abs(m.at().value("end") - [2, 0, 0]).max() < 1e-12)
        (1, True)
        """
        from kic.assembly import assemble

        return assemble(self, loops, near, coordinates, spins)

    def find_equilibrium(
        self,
        effort: Any = None,
        *,
        near: Configuration | None = None,
        fixed: str | Iterable[str] = (),
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        motors: bool = False,
        stable: bool = False,
        limits: Limits = None,
    ) -> Equilibrium:
        """Find an equilibrium under loads and given efforts near a configuration, and its stability.

        Parameters
        ----------
        effort : dict of str to float, or (f,) array_like, optional
            Efforts at the coordinates that are not fixed; or by name, at coordinates or actuators. Zero by
            default.
        near : Configuration, optional
            One configuration from which the search starts; by default the reference configuration.
        fixed : str or list of str
            Coordinates that keep their values; the required efforts are computed.
        wrt : str or list of str, optional
            Coordinates, as in `Configuration.coefficients`; by default the mechanism's own.
        applied : dict of str to (3,) array_like, optional
            Components of named forces and moments, each in its axes (world or body), instead of those of the
            model.
        motors : bool
            True to include rotors and damping of motors in the modes, as in `Configuration.dynamics`.
        stable : bool
            True to descend to a minimum of the potential energy; otherwise any equilibrium nearby is
            accepted, even if it is unstable.
        limits
            As in `at`; an equilibrium beyond them is an error.

        Returns
        -------
        Equilibrium
            The configuration, its efforts, stability, natural frequencies and mode shapes.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            If a name does not exist, efforts have another shape, `near` is a batch, or masses are missing.
        ConfigurationError
            If no equilibrium was found; it has the residual efforts (`residual`) and the configuration
            `reached`.
        SingularError
            If a degree of freedom moves without effort, so that the equilibrium is not isolated; it has the
            `free` motion. Also if named coordinates cannot drive the mechanism.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> found = arm.find_equilibrium(stable=True)
        >>> found.stability, found.configuration.value("tip").round(6).tolist()
        ('stable', [0.0, -2.0, 0.0])
        """
        from kic.linear.equilibrium import find_equilibrium

        return find_equilibrium(self._model, near, effort, fixed, wrt, applied, motors, stable, limits)

    @property
    def total_mass(self) -> float:
        """Mass of all moving bodies and their point masses.

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        """
        return float(self._model.masses.numbers[:, lay.MASS].sum())

    @property
    def prepare(self) -> Evaluators:
        """Namespace of questions for hot loops: its methods return evaluators on plain arrays.

        All names are resolved once. Call an evaluator with a state (..., S), see `Configuration.state`, and
        the motion that the question needs.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> c, f = m.at({"A": 0.5}), m.prepare.inverse_dynamics()
        >>> bool(abs(f(c.state, [2.0], [1.0]) - c.inverse_dynamics([2.0], [1.0])).max() < 1e-12)
        True
        >>> m.prepare.coefficients("tip")(c.state).tip.G.shape
        (3, 1)
        """
        from kic.prepared import Evaluators

        return Evaluators(self._model)

    @property
    def export(self) -> Exports:
        """Namespace of questions for C, FMI, CasADi, JAX, PyTorch, SymPy and NumPy, and of motor maps.

        Each method returns a question; its methods `to_c`, `to_casadi`, … convert it for a target.

        Examples
        --------
        >>> m = kic.load("five-bar")
        >>> m.export.inverse_dynamics(close=True).to_c()
        C source of five_bar_inverse_dynamics: 837 operations, 507 lines
        """
        from kic.export.export import Exports

        return Exports(self)

    def simulate(
        self,
        t: Any,
        *,
        effort: Effort | Any = None,
        actuators: str | Iterable[str] | None = None,
        controller: Sampled | None = None,
        near: Configuration | Simulation | None = None,
        qd: Any = None,
        wrt: str | Iterable[str] | None = None,
        prescribed: Trajectory | Mapping[str, Callable[[float], Any]] | None = None,
        events: Callable[..., float] | Sequence[Callable[..., float]] = (),
        limits: Limits = None,
        voltage: Voltage | Effort | Any = None,
        integrator: Method | Integrator = "DOP853",
    ) -> Simulation:
        """Simulate the motion under efforts, voltages or prescribed motions.

        Only independent coordinates are integrated. The loops are closed at each evaluation, to machine
        precision and without stabilization. Where the coordinates cease to drive the mechanism, others
        replace them; the results stay in the user's coordinates.

        Parameters
        ----------
        t : (T,) array_like
            Increasing times at which results are recorded, the first being the time of the start; or the end
            time alone, for 1001 times from 0 (from the end of the earlier run), or the times of the samples
            of a controller.
        effort : callable or (M,) array_like, optional
            ``effort(t, now)`` returns the efforts (M,) at the coordinates; ``now.q``, ``now.qd`` (M,) are
            their values and rates, ``now.state`` (S,) is the closed state that evaluators and controllers
            take. Or a controller of `kic.controllers` that gives efforts at them, or constant efforts. None:
            no efforts. A scalar is accepted for one coordinate; this holds for all array arguments. A dict
            gives a function or a number to each actuator by name, ``{"A": f, "L2": 3.0}``.
        actuators : str or list of str, optional
            Rows where efforts act, such as ``m.actuators``: joints, distances, or rows of points and bodies,
            in any number; by default the coordinates. The efforts T at them act on the coordinates as GᵀT,
            with their Jacobian G.
        controller : controllers.Sampled, optional
            Sampled controller, whose efforts are held between samples and added to `effort`. With `voltage`
            it may give voltages. It has options: measured rows, delay, noise, quantization and limits.
        near : Configuration or Simulation, optional
            Start: one configuration, by default the reference configuration; or an earlier run, which is
            continued from its end and returned with its continuation.
        qd : (M,) array_like, optional
            Rates at the start. By default zero, or the prescribed rates. Not with an earlier run.
        wrt : str or list of str, optional
            The user's coordinates for efforts, rates and results; by default the mechanism's own. The three
            angular velocities of a joint, body or frame may be among them, such as those of a free base.
            Their orientation is integrated as a unit quaternion. Their values in the results and in `now` are
            a rotation vector, which is at most π long and reverses there; their efforts are moments.
        prescribed : Trajectory or dict of str to callable, optional
            Coordinates with a given motion: a trajectory of `kic.trajectory`; or by name, where ``f(t)``
            returns value, rate and acceleration, or is a trajectory of one coordinate. Rates and
            accelerations must be the derivatives of the values. The motion must begin at the start.
            Prescribed coordinates remain when other coordinates are replaced. The results contain the effort
            of the prescribed motion, in place of `effort`. A trajectory continues beyond its ends only if it
            rests there. Prescribed angles of joints that close a loop are slow to integrate.
        events : callable or list of them, optional
            ``event(t, now)`` returns a real number whose zeros are found, including those that it only
            touches. Attributes as in SciPy: ``terminal`` (True stops the run there), ``direction`` (+1 or -1:
            only where it rises or falls). A zero at the start does not count, so a run can continue from
            where an event stopped it.
        limits : bool or dict of str to (lower, upper), optional
            True for the limits of the description, or those of rows and swings, as in `Mechanism.at`. The run
            stops at a limit; at once if it starts there and moves beyond it.
        voltage : callable, (K,) array_like or Voltage, optional
            ``voltage(t, now)`` returns the voltages (K,) of the motors in the order of the description, and
            torques for plain sources of torque; ``now.current`` (K,) are their currents. Or a controller of
            `kic.controllers` that gives voltages, or constant voltages; or a `Voltage`, which has currents at
            the start. Rotors, damping and circuits are then included, and efforts are added. None: the motors
            are ignored.
        integrator : str or Integrator
            Method of integration, such as "DOP853", or "Radau" for stiff motions; an `Integrator` has
            tolerances, too, and states whether to stop at contacts that open and at change points.

        Returns
        -------
        Simulation
            Times, coordinates, rates, accelerations, efforts and states as arrays, with the energy balance;
            for motors currents, voltages and torques. A run interrupted by Ctrl-C keeps its results up to the
            last good state, and ``stopped`` states the interruption.

        Raises
        ------
        InputError
            If an argument has a wrong shape or type, the start is not closed, or voltages are given without
            motors or with dry friction in motors.
        SimulationError
            If the run cannot continue: efforts, voltages or events that are not finite, inconsistent
            prescribed motions, steps that become too small, or loops that are singular or cannot close.

        Notes
        -----
        Circuits are fast. If L/R is far below the time scale of the motion, "Radau" and "LSODA" take longer
        steps. Alternatively remove the inductance, ``m.replace("M", inductance=0.0)``, so that the current
        follows at once.

        A run in coordinates of an orientation, angular velocities or Euler angles, does not pass change
        points.

        Every error during the run carries the run so far as ``simulation``, with its last good state at the
        end. This includes exceptions of the user's functions, which propagate unchanged. The partial run can
        be saved and continued. Changes that functions make to ``now`` have no effect on the run.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> run = m.simulate(2.0)
        >>> bool(abs(run.energy.residual).max() < 1e-7)
        True

        Switch on a motor at the crank:

        >>> circuit = {"resistance": 0.5, "inductance": 1e-3, "torque_constant": 0.02}
        >>> driven = m.add(kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, **circuit))
        >>> run = driven.simulate(0.2, voltage=[6.0])
        >>> run.current.shape, bool(run.energy.electrical[-1] > run.energy.heat[-1])
        ((1001, 1), True)

        Sample a controller of two motors every millisecond, with a delay and limited torques:

        >>> law = lambda t, now: [-now.qd[0], 0.5]
        >>> sampled = kic.controllers.Sampled(law, 1e-3, delay=2e-4, effort_limits={"A": 2.0})
        >>> run = m.simulate(0.1, controller=sampled, actuators=["A", "D"])
        >>> run.control.effort.shape, run.actuator_power.shape
        ((100, 2), (101, 2))
        """
        from kic.simulation.simulate import simulate

        return simulate(
            self,
            t,
            effort=effort,
            actuators=actuators,
            controller=controller,
            near=near,
            qd=qd,
            wrt=wrt,
            prescribed=prescribed,
            events=events,
            limits=limits,
            voltage=voltage,
            integrator=integrator,
        )

    def sweep(
        self,
        grid: Mapping[str, Any],
        of: Any,
        *,
        near: Configuration | None = None,
        limits: Limits = None,
        executor: Any = None,
        chunk: int | None = None,
        progress: bool | None = None,
        units: Mapping[str, str] | None = None,
    ) -> Sweep:
        """Evaluate metrics over a grid of inputs or task coordinates.

        An open chain in its own coordinates reaches all cells. Otherwise each cell is closed from a
        neighbour, beginning with the cell nearest to the start that can be reached, by the continuation of
        `Mechanism.at`. The map therefore shows one assembly, that of the start, up to dead centres. Cells
        beyond are not reached and have a reason. If paths around a hole in the grid lead to different
        assemblies, the map has a seam between them. The result depends on the grid and the start alone, not
        on the executor or the chunks.

        Parameters
        ----------
        grid : dict of str to array_like
            Inputs of `Mechanism.at`, as many as degrees of freedom: joints or rows, lists of monotonic values
            for axes, and single values for fixed inputs. The orientation of a body is given by its Euler
            angles, such as "platform.euler_xyz.1", "platform.euler_xyz.2" and "platform.euler_xyz.3".
        of : callable, str, or dict or list of them
            Metrics: functions of a `Configuration` with a batch of n members that return n numbers, or a dict
            of several by name; metrics of `kic.metrics`; names of rows with a value ("tip.x"); or
            "transmission", "min_singular_value", "static_effort" for those of `kic.metrics` without
            arguments. The keys of a dict name the metrics; a metric with the name of an axis must equal it.
        near : Configuration, optional
            One configuration, the start of the branch; by default the reference configuration. Open chains in
            their own coordinates need no start.
        limits : bool or dict of str to (lower, upper), optional
            True for the limits of the description, or those of rows, as in `Mechanism.at`; cells beyond them
            are not reached, nor passed through.
        executor : concurrent.futures.Executor, optional
            A `ThreadPoolExecutor`, a `ProcessPoolExecutor`, Dask's ``client.get_executor()``, an
            `MPIPoolExecutor`. Processes must be able to import the metrics: functions of an installed module,
            metrics of `kic.metrics`, or names. If cloudpickle is installed, as with Dask, lambdas and
            functions of the session are sent too. By default the sweep runs serially in this process.
        chunk : int, optional
            Number of cells in a job, 1024 by default.
        progress : bool, optional
            Show a progress bar on stderr; by default if stderr is a terminal and the sweep is long.
        units : dict of str to str, optional
            Units of your own metrics, for labels.

        Returns
        -------
        Sweep
            Values, `reached` and `reasons` over the grid; ``plot()``. A sweep interrupted by Ctrl-C keeps its
            results, and ``stopped`` states the interruption.

        Raises
        ------
        InputError, UnknownNameError
            If the grid is invalid, a name is unknown, the number of inputs differs from the degrees of
            freedom, metrics have another shape or cannot be imported by other processes, or the start is a
            batch or belongs to another mechanism.
        ConfigurationError
            If no cell can be reached from the start.

        Notes
        -----
        Configurations where a metric raises `SingularError` or a similar member error are NaN with their
        reason. Any other error ends the sweep and carries the results so far as ``sweep``.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> turn = np.linspace(-3, 3, 7)
        >>> s = arm.sweep({"shoulder": 0.0, "elbow": turn}, kic.metrics.manipulability("tip.x", "tip.y"))
        >>> bool(np.allclose(s["manipulability"], np.abs(np.sin(turn))))
        True
        >>> arm.sweep({"shoulder": 0.0, "elbow": turn}, "static_effort")["static_effort"].shape
        (7,)
        """
        from kic.sweeps.sweep import sweep

        return sweep(
            self,
            grid,
            of,
            near=near,
            limits=limits,
            executor=executor,
            chunk=chunk,
            progress=progress,
            units=units,
        )

    def __getitem__(self, name: str) -> Any:
        """Return the part with a name."""
        return self._part(name)

    def replace(self, part: str | None = None, /, **changes: Any) -> Self:
        """Return the mechanism with changed fields, or with changed fields of one part.

        Parameters
        ----------
        part : str, optional
            Name of a part; by default the mechanism itself changes.
        **changes
            New values by field, such as ``gravity=(0, 0, 0)`` or, of a joint, ``limits=(-1, 1)``. A joint of
            another ``type`` keeps its point and those axes that the type has. If its coordinates change, then
            value, spring, damping and limits return to their defaults. Parts that become fixed are no longer
            among `coordinates` and `actuators`.

        Returns
        -------
        Mechanism

        Raises
        ------
        UnknownNameError
            If there is no such part or field.
        ModelError
            If the changed description contradicts itself.

        Examples
        --------
        >>> m = kic.load("four-bar").replace("A", stiffness=2.0).replace(gravity=(0, 0, 0))
        >>> m["A"].stiffness, m.gravity
        ((2.0,), (0.0, 0.0, 0.0))
        """
        return edited(self, part, changes)

    def add(self, *parts: Part) -> Self:
        """Return the mechanism with further parts: bodies, joints, points and others.

        Parameters
        ----------
        *parts : Body, Joint, Point, …
            Parts to add, each to the sequence of its kind.

        Returns
        -------
        Mechanism

        Raises
        ------
        InputError
            If an object is not a part.
        ModelError
            If a name is taken, or the description contradicts itself.

        Examples
        --------
        >>> m = kic.load("horn-two-link").add(kic.Frame("tool", "link2", origin=(2, 0, 0)))
        >>> m.at([0.0, 0.0]).pose("tool").translation
        array([2., 0., 0.])
        """
        return added(self, parts)

    def without(self, *names: str) -> Self:
        """Return the mechanism without the named parts.

        Parameters
        ----------
        *names : str
            Names of the parts. Parts that refer to them must be removed as well.

        Returns
        -------
        Mechanism

        Raises
        ------
        UnknownNameError
            If there is no such part.
        ModelError
            If a remaining part refers to a removed part.

        Examples
        --------
        >>> [p.name for p in kic.load("four-bar").without("tip").points]
        []
        """
        return removed(self, names)

    def chain(self, tip: str, *, through: str | Iterable[str] | None = None) -> Self:
        """Return the serial chain of joints from ground to a body, an open mechanism.

        The chain is a leg of a closed mechanism, or a finger that holds an object, in the same reference
        configuration. `Dynamics.transfer` by the inverse of the tip's coefficients gives its model in
        coordinates of the tip. Models of legs add up to that of the mechanism (4-42) to (4-53), if masses and
        loads that several chains have are counted once.

        Parameters
        ----------
        tip : str
            Body at the end of the chain.
        through : str or list of str, optional
            Joints or bodies of the chain; needed if several chains lead to the body.

        Returns
        -------
        Mechanism
            The bodies of the chain, and those that are fixed to them, with all parts that refer to these
            bodies and joints alone: chains to the same tip all have its mass and its loads, and none has a
            spring between two legs. Coordinates are the joints from ground to the tip. Contacts and fixed
            distances, which close loops, are left out.

        Raises
        ------
        UnknownNameError
            If a name is unknown.
        InputError
            If no chain leads to the body, or more than one.

        Examples
        --------
        >>> robot = kic.load("three-legged-robot")
        >>> leg = robot.chain("platform", through="A1")
        >>> leg.coordinates, leg.dof, robot.dof
        (('A1', 'B1', 'C1'), 3, 3)
        """
        from kic.description.chains import serial_chain

        return serial_chain(self, tip, through)

    def lock(self, values: Mapping[str, Any] | str | Iterable[str]) -> Mechanism:
        """Return the mechanism with joints, distances, and rows of points and bodies fixed at values.

        Parameters
        ----------
        values : dict of str to array_like, or names
            Values of joints, distances, points, and rows such as "tip.x" or "hand.angle", as in `at`. Names
            alone are fixed in the reference configuration, without a solution: also bodies as a whole, and
            angular velocities, all or two of a body. Rows that cannot move are locked without effect. The
            remaining coordinates, including orientations of free and spherical joints, keep their values in
            the new reference configuration. Displacements and rotations are measured from it, and the axes
            of spherical and free joints turn with their first bodies.

        Returns
        -------
        Mechanism
            With fewer degrees of freedom. A coupling locks the last of its joints. Motors drive their
            unlocked joints, and are omitted if all are locked. Rows of a part "hand" close a loop through
            ground (4-30): massless slides "hand slide 1", … along the free directions, and a joint
            "hand lock", whose `joint_forces` are the constraint loads. These need as many actuators as
            degrees of freedom remain; name them if the mechanism has its own.

        Raises
        ------
        UnknownNameError, InputError
            If a part is of another kind or already fixed, one angular velocity of a body is locked alone, or
            an orientation is locked while others move.
        ConfigurationError
            If there is no configuration with these values.
        ModelError
            If locks leave a coupling with one coordinate of a joint that has several, or move a joint with
            `swing`, which is an angle from the reference configuration.
        SingularError
            If locks of joints at rest to first order in the reference configuration, such as the rocker of a
            linkage at a dead centre, reduce the mobility.

        See Also
        --------
        unlock

        Examples
        --------
        >>> arm = kic.load("panda").lock({"joint4": -1.5, "joint7": 0.3})
        >>> arm.coordinates, arm["joint7"].type
        (('joint1', 'joint2', 'joint3', 'joint5', 'joint6'), 'fixed')
        >>> pushing = kic.load("planar-4r").lock("tip.x")  # along a wall
        >>> pushing.coordinates, pushing.dof
        (('joint1', 'joint2', 'joint3'), 3)
        """
        from kic.locking import lock

        return lock(self, values)

    def hold_spins(self) -> Mechanism:
        """Return the mechanism without spins of rods about their own axes, which move nothing else.

        A rod between two ball joints that belong to a loop turns about the line through them. One of these
        joints becomes universal, which is the usual model of such a rod: with one axis parallel to the hinge
        of its neighbour, if the rod is inclined to it by 45° or more. A hinge along the line is locked.
        Readers of robot files and `close_loops` hold spins, too.

        Returns
        -------
        Mechanism
            With fewer degrees of freedom, and no coordinate of a spin by default. `remarks` and `mobility`
            list the spins. A spin stays free, with a remark, if loads act on the rod off its axis, or if
            both ball joints have dry friction, limits, or damping or armature that differ by axis. Spins that
            a motor drives or a coupling transmits stay, and so do passive degrees of freedom of another kind,
            such as the swivel of a knee between two ball joints.

        Notes
        -----
        The spin is held even against the weight, which turns a rod only if its centre of mass is off the
        line. The universal joint determines its angular velocity about the line, so that the moment of
        inertia about the line takes part in dynamics.

        See Also
        --------
        lock, mobility

        Examples
        --------
        >>> m = kic.load("rssr")
        >>> m.dof, m.hold_spins().dof, m.hold_spins().coordinates
        (2, 1, ('crank',))
        """
        from kic.locking import hold_spins

        return hold_spins(self)

    def unlock(self, names: str | Iterable[str] | None = None) -> Mechanism:
        """Return the mechanism without the locks of `lock`, in its present reference configuration.

        Parameters
        ----------
        names : str or list of str, optional
            Joints and distances; by default all that are locked.

        Returns
        -------
        Mechanism

        Raises
        ------
        InputError
            If a name is not locked, or nothing is locked. A change of the mechanism makes its locks
            permanent.

        Examples
        --------
        >>> m = kic.load("five-bar").lock({"A": 2.0})
        >>> m.dof, m.unlock("A").dof, m.unlock().at().value("A").round(9)
        (1, 2, np.float64(2.0))
        """
        from kic.locking import unlock

        return unlock(self, names)

    def draw(self, *, names: bool = False, view: ViewName | None = None, ax: Any = None) -> MechanismPicture:
        """Draw the mechanism in its reference configuration; see `Configuration.draw`."""
        return self.at().draw(names=names, view=view, ax=ax)

    def view(
        self,
        *,
        trace: str | Iterable[str] = (),
        host: str = "127.0.0.1",
        port: int = 8080,
        proxy: str | None = None,
        visuals: str | os.PathLike[str] | None = None,
        meshes: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    ) -> Viewer:
        """Show the mechanism in an interactive viewer; see `Configuration.view`."""
        return self.at().view(trace=trace, host=host, port=port, proxy=proxy, visuals=visuals, meshes=meshes)

    def save(
        self, path: str | os.PathLike[str], *, polynomials: PolynomialMap | Sequence[PolynomialMap] = ()
    ) -> None:
        """Write the mechanism to a file; its suffix selects the format. A TOML file reads back equal.

        Parameters
        ----------
        path : path
            File to write: ".toml", ".urdf", or ".xml" or ".mjcf" for MJCF. An existing file is replaced.
        polynomials : PolynomialMap or sequence of PolynomialMap
            Maps that replace loops, see `kic.to_mjcf` and `kic.to_urdf`.

        Raises
        ------
        InputError
            If the file has another suffix.
        ModelFileError
            If the file cannot be written; an existing file stays unchanged.
        ModelError
            If the format cannot express the mechanism; see `kic.to_urdf` and `kic.to_mjcf`. URDF has no
            loops.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> arm = kic.load("horn-two-link")
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "arm.toml"
        >>> arm.save(file)
        >>> kic.load(file) == arm
        True
        """
        from kic.io.robot_writers import save

        save(self, path, polynomials)

    def sensitivity(
        self, of: Callable[[Mechanism], Any], parameters: ParameterSpec | Sequence[ParameterSpec]
    ) -> np.ndarray:
        """Return the derivative of any result with respect to dimensions, masses and angles.

        The derivative is exact, by complex step: the description gets a tiny imaginary part, which all
        computations, including loop closure, propagate. Each parameter costs one complex evaluation.

        Parameters
        ----------
        of : callable
            Function of a mechanism that returns an array of any shape, such as
            ``lambda m: m.at({"A": 1.2}).coefficients("tip").H``.
        parameters : str, dict, or list of those
            Names of parameters of the description:

            - ``"B.at.x"``, ``"tip.at.y"``, ``"rod.com.z"``: positions of joints, points, bodies, contacts;
            - ``"B.axis.rx"`` (rad): rotation of an axis about the world's x; ``"B.axis.x"``: a component; of
              joints with two axes also ``axis2``, of contacts ``normal``, ``tangent`` and ``tangent2``;
            - ``"tool.origin.x"`` and ``"tool.axes.rx"`` of frames, the latter a rotation of all three axes;
            - ``"B.value"``: the coordinate's value in the reference configuration, ``"B.stiffness"``,
              ``"B.rest"``, ``"B.damping"``, ``"B.armature"``; of joints with several degrees
              of freedom ``"hip.value.2"``;
            - ``"rod.mass"``, ``"rod.inertia.xy"``, ``"lump.mass"``, ``"gravity.y"``, ``"push.force.x"``,
              ``"twist.moment.x"``, ``"coil.rest"``, ``"mesh.ratios.1"``, ``"mesh.gears.2"``.

            A dict of names to weights, such as ``{"B.at.x": 0.8, "B.at.y": 0.6}``, is one parameter that
            moves several numbers together.

        Returns
        -------
        (K, ...) ndarray
            Derivatives, parameters first; NaN where the result is NaN. A single name counts as a list of one.

        Raises
        ------
        UnknownNameError
            If the description has no such number; the error has the candidates.
        InputError
            If the result is not an array of numbers, or is real although the mechanism carries a step. Also
            for computations that do not support complex steps: `joint_forces`, `pose`,
            ``prepare.position()``, and closures of rounded dimensions (closure_tolerance).
        SingularError
            If a change contradicts redundant closure conditions: tilting one axis of a planar linkage makes
            it rigid, and there is no derivative.
        KicError
            Any error that `of` raises.

        See Also
        --------
        kic.sensitivity : With respect to arguments of a function that makes the mechanism.

        Notes
        -----
        The description is one assembled configuration in world coordinates. Moving a joint there keeps the
        loop closed and changes the links on both sides of the joint. Points, centres of mass, other joints,
        and the coordinates' values in the reference configuration stay. For a single length, use a dict of
        weights, or `kic.sensitivity` with a function that builds the mechanism. Values passed to `at` stay.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> m.sensitivity(lambda m: m.at({"A": 1.2}).coefficients("tip").G, ["B.at.x", "D.at.y"]).shape
        (2, 3, 1)
        """
        from kic.analysis.sensitivity import sensitivity_to_numbers

        return sensitivity_to_numbers(self, of, parameters)

    def _facts(self) -> Iterator[str]:
        bodies, joints = len(self.bodies), len(self.joints)
        yield f"{bodies} {'body' if bodies == 1 else 'bodies'}, {joints} joint{'s' * (joints != 1)}"
        yield f"coordinates {', '.join(self._moving_parts)}"

    def _repr_html_(self) -> str:
        return self._parts_sheet("").html()

    def summary(self) -> Summary:
        """Return a table of the parts, with the account of the mobility if loops close."""
        return self._parts_sheet("" if self._model.tree.open else self.mobility().summary())

    def _parts_sheet(self, account: str) -> Summary:
        """Return a table of the parts, with an account of the mobility."""
        sheet = Summary(f"{self.name}: {self.info.title}" if self.info.title else self.name)
        if account:
            sheet.say(account)
        for kind in ("coordinates", "actuators"):
            if (named := getattr(self, kind)) is not None:
                sheet.say(f"{kind}: {', '.join(named) or 'none'}")
        pull = ", ".join(f"{x:.5g}" for x in self.gravity) if any(self.gravity) else "none"
        sheet.say(f"gravity ({rate_unit(self.units.length, self.units.time, 2)}): {pull}")
        joints = [[j.type, " – ".join(j.bodies), ", ".join(j.components)] for j in self.joints]
        sheet.texts("joints", [j.name for j in self.joints], ["type", "ties", "coordinates"], joints)
        if self.bodies:
            mass = [["?" if b.mass is None else f"{b.mass:.5g}"] for b in self.bodies]
            sheet.texts("bodies", [b.name for b in self.bodies], [f"mass ({self.units.mass})"], mass)
        if self.points:
            carried = [[p.body, ", ".join(f"{x:.5g}" for x in p.at)] for p in self.points]
            sheet.texts("points", [p.name for p in self.points], ["body", "reference position"], carried)
        if self._variable_distances:
            ends = [[" – ".join(d.points)] for d in self.distances if not d.fixed]
            sheet.texts("distances", self._variable_distances, ["between"], ends)
        several = {
            "limits": self.limits,
            "effort limits": self.effort_limits,
            "rate limits": self.rate_limits,
        }
        for caption, limits in several.items():
            if limits:
                pairs = [[f"{lower:.5g}", f"{upper:.5g}"] for lower, upper in limits.values()]
                sheet.texts(caption, list(limits), ["lower", "upper"], pairs)
        if self.frames:
            carried = [
                [f.body, ", ".join(f"{x:.5g}" for x in f.origin)]
                + [", ".join(f"{x + 0.0:.4g}" for x in axis) for axis in f.axes]
                for f in self.frames
            ]
            heads = ["body", "reference origin", "x axis", "y axis", "z axis"]
            sheet.texts("frames", [f.name for f in self.frames], heads, carried)
        if self.centers:
            carried = [[", ".join(x.bodies or ("all",))] for x in self.centers]
            sheet.texts("centres of mass", [x.name for x in self.centers], ["bodies"], carried)
        couplings.add_couplings(sheet, self._terms)
        contacts.add_contacts(sheet, self.contacts)
        if self._fixed_distances:
            rods = [[f"{length:.5g}"] for length in self._fixed_distances.values()]
            sheet.texts(
                "fixed distances", list(self._fixed_distances), [f"length ({self.units.length})"], rods
            )
        list_motors(sheet, self.motors)
        return sheet
