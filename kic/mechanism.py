"""Mechanism: a description of parts, and the configurations that are solved for it."""

from __future__ import annotations

import cmath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.configuration import Configuration
from kic.description import contacts, couplings
from kic.description.description import MechanismDescription
from kic.description.motors import list_motors
from kic.description.validation import STRICT
from kic.errors import ConfigurationError, InputError
from kic.evaluator import Evaluator, MotionEvaluator
from kic.kernels.layout import MASS
from kic.kinematics.state import coordinates_of, only_coordinates, states_of
from kic.numerics.arrays import check_failures
from kic.numerics.display import Printable, Summary
from kic.position import initial_states, real_configuration, solve_path, solve_position, within_limits
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import Limits

if TYPE_CHECKING:
    from kic.analysis.assembly_modes import Assemblies
    from kic.analysis.input_sets import IndependentSets
    from kic.analysis.mobility import Mobility
    from kic.evaluator import PositionSolver
    from kic.io.order import JointOrder
    from kic.linear.equilibrium import Equilibrium
    from kic.operational_space.operational_space import OperationalSpaceEvaluator
    from kic.operational_space.redundancy import RedundancyEvaluator
    from kic.operational_space.weighting import Damping, Law, Weight
    from kic.trajectory.tracking import TrackingResult


def _finite(a: np.ndarray) -> bool:
    """Return True if every number is finite; symbols pass."""
    if a.dtype.kind == "O":
        return True
    square = np.vdot(
        a, a
    )  # several times faster than a test of each number, which is needed only for an overflow
    return cmath.isfinite(square) or bool(np.isfinite(a).all())


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
    gravity : (3,) float
        Acceleration of gravity (length/time²), in any direction; none by default.
    closure_tolerance : float
        Share of its length by which a loop with rounded dimensions may contradict itself. Conditions that are
        redundant within it are dropped, and `mobility` reports them. Inputs are met exactly, dropped
        conditions within the tolerance.
    coordinates : sequence of str, optional
        Joints and distances that are the default coordinates; by default all joints that move, in their
        order. The attribute is the argument, or None; `coordinate_names` has the names.
    actuators : sequence of str, optional
        Joints, distances, or rows of points and bodies, where efforts act; by default the coordinates. There
        may be more or fewer than degrees of freedom. Drawings mark them, and `joint_forces`, `distribute`,
        `internal_loads`, static efforts and reports use them by default. `actuator_names` has the names.
    title, about, source, drawing : str
        Texts: a headline, a description, the source of the numbers, and the reference configuration.
    units : Units
        Names of the units, for labels only; angles are radians.
    remarks : sequence of str
        Remarks of the reader of a file: what it merged, renamed, replaced or ignored.

    Raises
    ------
    ModelError
        If the description contradicts itself: the rule, the value, and the remedy.

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

    __pydantic_config__ = STRICT

    @cached_property
    def _model(self) -> CompiledModel:
        return CompiledModel(self)

    def at(
        self,
        inputs: Any = None,
        near: Configuration | None = None,
        failures: Literal["raise", "mask"] = "raise",
        limits: Limits = None,
    ) -> Configuration:
        """Solve a configuration, or a batch of configurations, for given values; loops are closed.

        Parameters
        ----------
        inputs : (..., M) array_like, dict of str to array_like, or None
            Coordinates in the order of `coordinates`, or by name; batches broadcast. None is the reference
            configuration. A spherical joint takes a rotation vector or a SciPy `Rotation` relative to the
            reference configuration. A free joint takes x y z and a rotation vector, or a `RigidTransform`,
            the displacement of the second body relative to the first as returned by `Configuration.pose`. For
            closed mechanisms, and for inverse kinematics, any rows with a value are allowed, as many as the
            degrees of freedom: joints, points ("tip", "tip.x"), distances, angles of a planar mechanism. A
            body takes a `RigidTransform`, its displacement from the reference configuration, or a `Rotation`
            for its orientation alone: 6 and 3 inputs in space, 3 and 1 in a plane.
        near : Configuration, optional
            Configuration from which the solution is continued, so that the assembly mode is kept; by default
            the reference configuration. The path from its values to the inputs is followed by predictor steps
            of second order, and every step is checked: the solution never crosses a dead centre to another
            branch. Angles of `cuts` are known modulo full turns, and take the shorter way.
        failures : {"raise", "mask"}
            Result for members without solution, or with NaN or infinite input: an error that names them, or
            NaN in every result and False in ``.ok``.
        limits : bool or dict of str to (lower, upper), optional
            True for the limits of the description, or limits of some rows with a value ("A", "tip.x") or
            swings ("S1.swing"); by default none. Members beyond them have no solution. Only the
            solution is checked, not the path to it from `near`. `path` checks every member of a given path.

        Raises
        ------
        InputError
            If a shape is wrong, or coordinates are missing, surplus or of another type.
        ConfigurationError
            For members that fail, do not close, or exceed limits. It has their indices (`failed`), the
            `reasons`, the solved members (`configuration`), and the configurations `reached`. Members that do
            not close have the `share` of the path that was completed. Members beyond limits have `beyond`: a
            dict of the names to the excess, negative below the lower limit.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> arm.at({"shoulder": 0.0, "elbow": [0.0, 0.1, 0.2]}).batch
        (3,)

        The elbow that is bent already is kept:

        >>> arm.at({"tip.x": 1.0, "tip.y": 1.0}, near=arm.at([0.3, 1.2])).value("elbow").round(6)
        np.float64(1.570796)

        Leg lengths of a platform from its pose:

        >>> from scipy.spatial.transform import RigidTransform
        >>> platform = kic.load("gough-stewart")
        >>> up = RigidTransform.from_translation([0.0, 0.0, 0.1])
        >>> platform.at({"platform": up}).value("L1").round(4)
        np.float64(1.0999)
        """
        return within_limits(self._solve(inputs, near, failures), limits, failures)

    def _solve(
        self, inputs: Any, near: Configuration | None, failures: Literal["raise", "mask"]
    ) -> Configuration:
        """Solve configurations without limits; see `at`."""
        if type(failures) is not str or failures != "raise":
            check_failures(failures)
        model = self._model
        if inputs is None:
            if near is not None:
                raise InputError(
                    "`near` was given without inputs. Give the values of the configuration.", key="near"
                )
            return Configuration(model, (), model.reference_state.copy())
        if not model.is_open_chain or near is not None or not only_coordinates(self, inputs):
            return solve_position(model, inputs, near, failures)
        a = coordinates_of(self, inputs)
        batch = a.shape[:-1]
        phi = a.reshape(prod(batch), a.shape[-1]).copy()
        if _finite(phi):
            return Configuration(model, batch, states_of(model.tree, phi))
        ok = np.isfinite(phi).all(axis=-1)
        phi[~ok] = np.nan
        configuration = Configuration(model, batch, states_of(model.tree, phi), ok.reshape(batch))
        if failures == "raise":
            self._refuse(configuration, a)
        return configuration

    def path(
        self,
        inputs: Any,
        near: Configuration | None = None,
        failures: Literal["raise", "mask"] = "raise",
        limits: Limits = None,
    ) -> Configuration:
        """Solve configurations along a path: each member is continued from the one before it, on its branch.

        Parameters
        ----------
        inputs : (..., M) array_like, or dict of str to array_like
            As in `at`; the first axis of the batch is the path, further axes are parallel paths.
        near : Configuration, optional
            Configuration from which the first member is continued; by default the reference configuration.
        failures : {"raise", "mask"}
            Result for a path that cannot continue without a jump to another branch: an error with the member
            and the reason, or NaN from there on and False in ``.ok``.
        limits
            As in `at`, checked at each member; a path ends at the first one beyond them.

        Raises
        ------
        InputError
            As `at`; also for inputs without a batch.
        ConfigurationError
            For paths that stop, with the attributes of that of `at`.

        Examples
        --------
        A crank makes a full turn; the tip of the coupler comes back to where it was.

        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 50)})
        >>> bool(np.allclose(turn.value("tip")[0], turn.value("tip")[-1]))
        True
        """
        check_failures(failures)
        direct = self._model.is_open_chain and near is None and only_coordinates(self, inputs)
        try:
            if direct and inputs is not None:
                found = self._solve(inputs, None, failures)
            else:
                found = solve_path(self._model, inputs, near, failures)
        except ConfigurationError as error:
            if limits is not None and isinstance(done := error.numbers.get("configuration"), Configuration):
                within_limits(done, limits, failures, path=True)
            raise
        return within_limits(found, limits, failures, path=True)

    def assemblies(
        self,
        inputs: Any,
        near: Configuration | None = None,
        starts: int = 128,
        seed: Any = 0,
        limits: Limits = None,
    ) -> Assemblies:
        """Find the distinct configurations that have these values: other elbows, wrists, assembly modes.

        Parameters
        ----------
        inputs : dict or (..., M) array_like
            One target or a batch of targets, as in `at`.
        near : Configuration, optional
            One configuration, the first start; solutions are sorted by the distance of their joints from it.
            By default the reference configuration.
        starts : int
            Number of starts: `near`, and random ones. For a batch, the number at the first member; an eighth
            (at least 8) at each other, besides the solutions found at neighbours.
        seed : int or numpy Generator
            Seed of the random starts.
        limits
            As in `at`. An angle may be within them modulo full turns.

        Returns
        -------
        Assemblies
            A `Configuration` whose first batch axis has the solutions found, which may not be all. For a
            batch, each slice is one branch, as far as it could be continued. Missing solutions are NaN in
            every result and False in ``.ok``.

        Raises
        ------
        InputError, UnknownNameError
            As for `at`; also for invalid limits.
        ConfigurationError
            If no member has a solution. The error carries the smallest residual (`residual`, a length) or, as
            for `at`, the excess `beyond` limits of the nearest solution.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> found = m.assemblies({"A": 1.2})
        >>> len(found.counts), found.value("A").tolist()
        (2, [1.2, 1.2])

        Both elbow configurations up to the limit of reach and beyond:

        >>> arm = kic.load("horn-two-link")
        >>> arm.assemblies({"tip.x": [1.2, 1.6, 2.0, 2.4], "tip.y": 0.0}).ok.sum(axis=0).tolist()
        [2, 2, 1, 0]
        """
        from kic.analysis.assembly_modes import find_assemblies

        return find_assemblies(self._model, inputs, near, starts, seed, limits)

    def follow(
        self,
        path: Mapping[str, Any] | Any,
        t: Any,
        near: Configuration | None = None,
        weight: Weight = "minimum norm",
        secondary: Any = None,
        damping: Damping = None,
        gain: float = 0.0,
        exact: bool = True,
        wrt: str | Iterable[str] | None = None,
        tolerance: float = 1e-10,
        limits: Limits = None,
    ) -> TrackingResult:
        """Follow a path in time with a task, and resolve redundancy if the task has fewer rows.

        The rates q̇ of `Configuration.resolve` are integrated by the method of Dormand and Prince of order 8,
        with closed loops. At every time of `t` the configuration is corrected to the path, so that the task
        does not drift; the coordinates may, see `TrackingResult.drift`. `prepare_resolve` gives the same
        rates step by step, for a control loop.

        Parameters
        ----------
        path : Trajectory, or dict of str to callable or array_like
            The task: a trajectory of `kic.trajectory`; or, for rows with a value ("flange", "tip.x") or
            bodies, a trajectory, a function of time that returns values, (values, rates) or (values, rates,
            accelerations), or samples (n, ..., P) at the times, interpolated by a spline of fifth degree. A
            function that returns values alone is differentiated by a complex step and must accept complex
            times. For a body, a SciPy `RigidTransform` or `Rotation` of n members, its displacement from the
            reference configuration; a function that returns one with its rates; or a rotation made by
            `kic.trajectory.rotation`.
        t : (n,) array_like
            Times.
        near : Configuration, optional
            Start, one configuration or a batch, near the path; by default the reference configuration.
        weight, secondary, damping
            As in `Configuration.resolve`. A callable gets a configuration of the batch, and at the end one
            whose first axis is time.
        gain : float
            Feedback of the task's error between the times, 1/time: u̇ = u̇ of the path + gain · error.
        exact : bool
            True to correct configurations to the path at each time; otherwise only the gain does. With
            damping the correction is limited.
        wrt
            As in `Configuration.resolve`.
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
            As `Configuration.resolve`; also for times that do not increase, an invalid path, or rates that
            contradict the values.
        SingularError
            If the task becomes singular and there is no damping; it has the `time`.
        ConfigurationError
            If the path is out of reach or beyond limits; it has the `time`.

        Examples
        --------
        >>> m = kic.load("three-link-arm")
        >>> c = m.at([0.4, 0.5, 0.6])
        >>> x = c.value("frame3.x")
        >>> f = m.follow({"frame3.x": lambda t: x - 0.1 * np.sin(t)}, np.linspace(0, 2 * np.pi, 9), near=c)
        >>> f.qd.shape, bool(abs(f.error).max() < 1e-12)
        ((9, 3), True)
        """
        from kic.trajectory.tracking import follow

        return follow(
            self._model, path, t, near, weight, secondary, damping, gain, exact, wrt, tolerance, limits
        )

    def prepare_position(self, inputs: str | Iterable[str] | None = None) -> PositionSolver:
        """Return a position solver for hot loops, from states near the solution: plain arrays in and out.

        Parameters
        ----------
        inputs : str or list of str, optional
            Rows whose values will be given; by default the coordinates. The three angular velocities of a
            joint, body or frame take a rotation vector.

        Returns
        -------
        PositionSolver
            Call it with values (..., P) and closed states (..., S).

        Raises
        ------
        InputError
            For a number of rows other than the degrees of freedom, or a part of an angular velocity.
        """
        from kic.evaluator import PositionSolver

        return PositionSolver(self._model, inputs)

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
                f"{len(failed)} of {configuration.ok.size} members of the batch were not solved, coordinates "
                f"must be finite: {some}{'; …' if len(failed) > 4 else ''}. "
                "failures='mask' keeps the others."
            )
        raise ConfigurationError(message, failed=failed, reasons=reasons, configuration=configuration)

    @property
    def dof(self) -> int:
        """Number of degrees of freedom at the reference configuration and near it; see `mobility`."""
        return self._model.dof

    @property
    def redundant(self) -> int:
        """Number of closure conditions that follow from the others."""
        return self.mobility().redundant

    def mobility(self, at: Configuration | None = None) -> Mobility:
        """Return the mobility: degrees of freedom, closure conditions, and their redundancy.

        Parameters
        ----------
        at : Configuration, optional
            One configuration; by default the reference configuration.

        Returns
        -------
        Mobility
            Coordinates of the tree, closure conditions of each part and the redundant ones; whether
            motions are finite or only shown to some order; and motions that are passive. Printed, it is a
            paragraph.

        Examples
        --------
        >>> kic.load("five-bar").mobility()
        mobility 2: 4 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them redundant (3 of
        joint 'D'). All motion is in one plane, normal (0, 0, 1); conditions out of it hold by themselves.
        """
        if at is None:
            return self._reference_mobility
        model = self._model.real
        state, batch = initial_states(
            model, real_configuration(self._model, at) if self._model.has_complex_step else at, "at"
        )
        if batch:
            raise InputError(
                f"`at` must be one configuration, got a batch {batch}. Index it first.", key="at", got=batch
            )
        from kic.analysis.mobility import Mobility

        return Mobility(model.closure(()), state[None], False)

    @cached_property
    def _reference_mobility(self) -> Mobility:
        from kic.analysis.mobility import Mobility

        model = self._model.real
        return Mobility(model.closure(()), model.reference_state)

    def assemble(
        self,
        loops: Iterable[Any],
        start: Mapping[str, float] | None = None,
        coordinates: Iterable[str] | None = None,
    ) -> Mechanism:
        """Close loops that are open in the description, in the nearest closed configuration.

        Damped Gauss–Newton steps start from the described configuration, and then from samples within the
        limits of the joints; the nearest of the first solutions is taken. Loops that are closed already,
        couplings, closed contacts and fixed distances stay so.

        Parameters
        ----------
        loops : sequence of (str, str) or (str, str, str)
            Pairs of frames or points that coincide where a loop is closed. The third word is the type of the
            closing joint: "spherical" (the default), "revolute" about the z axis of the first frame, "fixed",
            "cylindrical", "prismatic", "universal" (the second axis is the x axis of the second frame) or
            "planar" (along z and x of the first). Points have the axes of the world.
        start : dict of str to float, optional
            Values of joints from which the search starts.
        coordinates : sequence of str, optional
            Joints of the default coordinates. By default those of the description if they can drive the
            closed mechanism, else the best conditioned.

        Returns
        -------
        Mechanism
            Described in the closed configuration, with a joint "a to b" for each loop. Coordinates keep their
            values; free and spherical joints are at their zero. `remarks` says by how much each loop was
            open.

        Raises
        ------
        ModelError
            If no configuration closes the loops. It has the name of the `loop` that remains open, and the
            `residual` as a share of the characteristic length. Also for open contacts and swings,
            which refer to the described configuration.
        InputError, UnknownNameError
            For invalid loops, values or names.

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
        ...     [kic.Point("end", "rocker", (5, 0, 0)), kic.Point("pin", "ground", (2, 0, 0))],
        ... )
        >>> m = chain.assemble([("end", "pin", "revolute")], start={"A": 1.0, "B": -0.5, "C": -2.0})
        >>> m.dof, bool(abs(m.at().value("end") - [2, 0, 0]).max() < 1e-12)
        (1, True)
        """
        from kic.assembly import assemble

        return assemble(self, loops, start, coordinates)

    def independent_sets(
        self,
        at: Configuration | None = None,
        among: str | Iterable[str] | None = None,
        count: int = 10,
    ) -> IndependentSets:
        """Find sets of coordinates that can drive the mechanism, the best conditioned first.

        Parameters
        ----------
        at : Configuration, optional
            A configuration, or a batch over which the worst counts; unsolved members are ignored. By default
            the reference configuration.
        among : str or list of str, optional
            Candidates: joints, points, distances, body motion, or single rows of them; every row is a
            candidate. By default the coordinates of all joints, also those that are cut, and distances that
            are coordinates or actuators. Rows without a value, such as angular velocities of spherical
            joints, are used only where no other row serves.
        count : int
            Largest number of sets.

        Returns
        -------
        IndependentSets
            Iterable, printable, with a flag if all sets were tried.

        Raises
        ------
        UnknownNameError, InputError
            If a name does not exist, there are too few candidates or no solved member, or the mechanism
            cannot move.
        SingularError
            At a bifurcation, where no set can drive the mechanism, or if no set of the candidates can.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": np.linspace(1, 1 + 2 * np.pi, 100)})
        >>> best = m.independent_sets(turn)[0]
        >>> best.names, round(best.worst, 2)
        (('A',), 0.58)
        """
        from kic.analysis.input_sets import independent_sets

        return independent_sets(self._model, at, among, count)

    def find_equilibrium(
        self,
        near: Configuration | None = None,
        effort: Any = None,
        held: str | Iterable[str] = (),
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        motors: bool = False,
        stable: bool = False,
        limits: Limits = None,
    ) -> Equilibrium:
        """Find an equilibrium under loads and given efforts near a configuration, and its stability.

        Parameters
        ----------
        near : Configuration, optional
            One configuration from which the search starts; by default the reference configuration.
        effort : dict of str to float, or (f,) array_like, optional
            Efforts at the coordinates, by name or at all that are not held; zero by default.
        held : str or list of str
            Coordinates that keep their values; the required efforts are computed.
        wrt : str or list of str, optional
            Coordinates, as in `Configuration.coefficients`; by default the mechanism's own.
        applied : dict of str to (3,) array_like, optional
            Components of named forces and moments, in place of those of the model.
        motors : bool
            True to include rotors and damping of motors in the modes, as in `Configuration.dynamics`.
        stable : bool
            True to descend to a minimum of the potential energy; otherwise any equilibrium nearby is
            accepted, also an unstable one.
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
            If a freedom moves without effort, so that the equilibrium is not isolated; it has the `free`
            motion. Also if named coordinates cannot drive the mechanism.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> found = arm.find_equilibrium(stable=True)
        >>> found.stability, found.configuration.value("tip").round(6).tolist()
        ('stable', [0.0, -2.0, 0.0])
        """
        from kic.linear.equilibrium import find_equilibrium

        return find_equilibrium(self._model, near, effort, held, wrt, applied, motors, stable, limits)

    @property
    def total_mass(self) -> float:
        """Mass of all moving bodies and their point masses.

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        """
        return float(self._model.masses.numbers[:, MASS].sum())

    @property
    def cuts(self) -> tuple[str, ...]:
        """Tuple of the joints at which the loops are cut; empty for an open chain."""
        return tuple(joint.name for joint in self._model.tree.cuts)

    def prepare(
        self,
        of: str | Iterable[str] = (),
        order: int = 2,
        dynamics: bool | Literal["inertia"] = False,
        wrt: str | Iterable[str] | None = None,
    ) -> Evaluator:
        """Return an evaluator for hot loops: plain arrays in and out, with all names resolved.

        Parameters
        ----------
        of : str or list of str
            Outputs, as in `Configuration.coefficients`.
        order : {1, 2, 3}
            Highest order.
        dynamics : bool or "inertia"
            True for I*, P*, load and damping; "inertia" for I* and P* alone.
        wrt : str or list of str, optional
            Coordinates, as in `Configuration.coefficients`.

        Returns
        -------
        Evaluator
            Call it with a state (..., S); see `Configuration.state`.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> f = arm.prepare(of=["tip"])
        >>> f(arm.at([0.0, 0.0]).state).tip.G[1].tolist()
        [2.0, 1.0]
        """
        return Evaluator(self._model, of, order, dynamics, wrt)

    def prepare_inverse_dynamics(
        self, wrt: str | Iterable[str] | None = None, loads: bool = True
    ) -> MotionEvaluator:
        """Return an evaluator of inverse dynamics for hot loops: plain arrays in and out.

        Parameters
        ----------
        wrt, loads
            As in `Configuration.inverse_dynamics`.

        Returns
        -------
        MotionEvaluator
            ``f(state, qd, qdd, out=None)`` returns efforts (..., M).

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.inverse_dynamics`.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> f, c = m.prepare_inverse_dynamics(), m.at({"A": 0.5})
        >>> bool(abs(f(c.state, [2.0], [1.0]) - c.inverse_dynamics([2.0], [1.0])).max() < 1e-12)
        True
        """
        return MotionEvaluator(self._model, False, wrt, loads)

    def prepare_forward_dynamics(self, wrt: str | Iterable[str] | None = None) -> MotionEvaluator:
        """Return an evaluator of forward dynamics for hot loops: plain arrays in and out.

        Parameters
        ----------
        wrt
            As in `Configuration.forward_dynamics`.

        Returns
        -------
        MotionEvaluator
            ``f(state, qd, effort, out=None)`` returns accelerations (..., M).

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.forward_dynamics`.
        """
        return MotionEvaluator(self._model, True, wrt)

    def prepare_operational_space(
        self, task: str | Iterable[str], wrt: str | Iterable[str] | None = None
    ) -> OperationalSpaceEvaluator:
        """Return an evaluator of operational-space dynamics for hot loops: plain arrays in and out.

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `Configuration.coefficients`.
        wrt : str or list of str, optional
            Coordinates, as in `Configuration.coefficients`.

        Returns
        -------
        OperationalSpaceEvaluator
            Call it with a state (..., S); see `Configuration.state`.
        """
        from kic.operational_space.operational_space import OperationalSpaceEvaluator

        return OperationalSpaceEvaluator(self._model, task, wrt)

    def prepare_resolve(
        self,
        task: str | Iterable[str],
        weight: Weight = "minimum norm",
        law: Law = "consistent",
        damping: Damping = None,
        wrt: str | Iterable[str] | None = None,
        effort: bool = False,
        order: Literal[1, 2] = 2,
    ) -> RedundancyEvaluator:
        """Return an evaluator of redundancy resolution for hot loops: plain arrays in and out.

        Parameters
        ----------
        task, weight, law, damping, wrt
            As in `Configuration.resolve`.
        effort : bool
            True to compute efforts, too.
        order : {1, 2}
            1 for rates alone.

        Returns
        -------
        RedundancyEvaluator
            Call it with a state (..., S) (see `Configuration.state`) and the motion of the task.
        """
        from kic.operational_space.redundancy import RedundancyEvaluator

        return RedundancyEvaluator(self._model, task, weight, law, damping, wrt, effort, order)

    def order_of(self, peer: Any) -> JointOrder:
        """Return the maps between the coordinates of this mechanism and those of another package's model.

        Parameters
        ----------
        peer : pinocchio.Model or mujoco.MjModel
            Model with joints of the same names.

        Returns
        -------
        JointOrder
            Maps of positions, rates, accelerations and efforts.

        Raises
        ------
        InputError
            For another object, or a model without a common joint.
        """
        from kic.io.order import JointOrder

        return JointOrder(self, peer)

    def summary(self) -> Summary:
        """Return a table of the parts."""
        sheet = Summary(f"{self.name}: {self.title}" if self.title else self.name)
        if not self._model.tree.open:
            sheet.say(self.mobility().summary())
        for kind in ("coordinates", "actuators"):
            if (named := getattr(self, kind)) is not None:
                sheet.say(f"{kind}: {', '.join(named) or 'none'}")
        joints = [[j.type, " – ".join(j.bodies), ", ".join(j.components)] for j in self.joints]
        sheet.texts("joints", [j.name for j in self.joints], ["type", "ties", "coordinates"], joints)
        if self.bodies:
            mass = [["?" if b.mass is None else f"{b.mass:.5g}"] for b in self.bodies]
            sheet.texts("bodies", [b.name for b in self.bodies], [f"mass ({self.units.mass})"], mass)
        if self.points:
            carried = [[p.body, ", ".join(f"{x:.5g}" for x in p.at)] for p in self.points]
            sheet.texts("points", [p.name for p in self.points], ["body", "reference position"], carried)
        if self.variable_distances:
            ends = [[" – ".join(d.points)] for d in self.distances if not d.fixed]
            sheet.texts("distances", self.variable_distances, ["between"], ends)
        if self.limits:
            pairs = [[f"{lower:.5g}", f"{upper:.5g}"] for lower, upper in self.limits.values()]
            sheet.texts("limits", list(self.limits), ["lower", "upper"], pairs)
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
        couplings.add_couplings(sheet, self.terms)
        contacts.add_contacts(sheet, self.contacts)
        if self.fixed_distances:
            rods = [[f"{length:.5g}"] for length in self.fixed_distances.values()]
            sheet.texts(
                "fixed distances", list(self.fixed_distances), [f"length ({self.units.length})"], rods
            )
        list_motors(sheet, self.motors)
        return sheet
