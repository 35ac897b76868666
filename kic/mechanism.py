"""Mechanism: a drawing that can be asked."""

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
from kic.display import Summary
from kic.errors import ConfigurationError, InputError
from kic.evaluator import Evaluator
from kic.kinematics.state import coordinates_of, only_coordinates, states_of
from kic.numerics.arrays import check_failures
from kic.position import initial_states, real_configuration, solve_path, solve_position
from kic.transfer.compiled_model import CompiledModel

if TYPE_CHECKING:
    from kic.analysis.assemblies import Assemblies
    from kic.analysis.input_sets import IndependentSets
    from kic.analysis.mobility import Mobility
    from kic.evaluator import PositionSolver
    from kic.linear.equilibrium import Equilibrium
    from kic.operational_space.operational_space import OperationalSpaceEvaluator
    from kic.operational_space.redundancy import RedundancyEvaluator
    from kic.operational_space.weighting import Damping, Law, Weight
    from kic.trajectory.tracking import TrackingResult


def _finite(a: np.ndarray) -> bool:
    """Whether every number is finite; symbols are taken to be."""
    if a.dtype.kind == "O":
        return True
    square = np.vdot(a, a)  # several times faster than looking at each; an overflow only costs the look
    return cmath.isfinite(square) or bool(np.isfinite(a).all())


@dataclass(frozen=True, repr=False)
class Mechanism(MechanismDescription):
    """A mechanism as drawn in one assembled posture, in world coordinates. Immutable.

    Parameters
    ----------
    name : str
        Short name.
    bodies, joints, points, distances, forces, moments, springs, couplings, contacts, motors : sequences
        Parts, each sequence of one kind.
        All their names share one namespace, and ``ground`` is the fixed world.
    gravity : (3,) float
        Acceleration of gravity (length/time²), in any direction; none by default.
    closure_tolerance : float
        For rounded dimensions: share of its length by which a loop may contradict itself. What is redundant
        within it is dropped, and `mobility` says so; inputs are met exactly, the rest as well as it is drawn.
    coordinates : sequence of str, optional
        Joints whose coordinates are meant where none are named; by default all that move, as written. The
        attribute is what was written, None if nothing; `coordinate_names` are the coordinates that count.
    title, about, source, drawing : str
        Prose: a headline, a description, where the numbers come from, which posture is drawn.
    units : Units
        Names of the units, for labels only; angles are radians.

    Raises
    ------
    ModelError
        If the description contradicts itself: the rule, what came, and the remedy.

    Examples
    --------
    >>> import kic
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
    ) -> Configuration:
        """Posture, or batch of postures, that has these values: closes the loops.

        Parameters
        ----------
        inputs : (..., M) array_like, dict of str to array_like, or None
            Coordinates in the order of `coordinates`, or by name; batches broadcast. A spherical joint
            takes a rotation vector or a SciPy `Rotation` from the drawing; a free one x y z of its place
            and a rotation vector, or a `RigidTransform`, the displacement of the second body relative to
            the first from the drawing, as `Configuration.pose` has it. None means as drawn. For a mechanism
            with loops, and for the inverse position of an arm, any rows with a value may be named: joints,
            points ("tip", "tip.x"), distances, angles of a planar mechanism; as many as there are freedoms.
            A body takes a `RigidTransform`, its displacement from the drawing as `Configuration.pose` has
            it, or a `Rotation` for its orientation alone: 6 and 3 inputs in space, 3 and 1 in a plane.
        near : Configuration, optional
            A posture from which the wanted one is led, so that its assembly is kept; by default the
            drawing. The mechanism follows the way from its values there to those wanted, in leaps that are
            predicted to second order and watched: it never steps over a dead centre to another branch.
            Angles of `cuts` are known but for full turns, and go the shorter way.
        failures : {"raise", "mask"}
            What becomes of members without a posture (NaN or infinite input): an error that says which,
            or NaN in every answer and False in ``.ok``.

        Returns
        -------
        Configuration

        Raises
        ------
        InputError
            For a wrong shape, or coordinates that are missing, surplus or of another kind.
        ConfigurationError
            For members that fail or do not close; it carries which (`failed`), why (`reasons`), the rest
            (`configuration`), and how far they came: the `share` of the way, and the postures `reached`.

        Examples
        --------
        >>> import kic
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
        check_failures(failures)
        model = self._model
        if inputs is None:
            if near is not None:
                raise InputError("`near` was given without inputs. Say which values the posture should have.")
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
    ) -> Configuration:
        """Mechanism along a path: each member is led from the one before it, and its branch is watched.

        Parameters
        ----------
        inputs : (..., M) array_like, or dict of str to array_like
            As in `at`; the first axis of the batch is the path, further ones are paths side by side.
        near : Configuration, optional
            From where the first member is led; by default the drawing.
        failures : {"raise", "mask"}
            What becomes of a path that can not go on without a jump to another branch: an error that says
            at which member and why, or NaN from there on, and False in ``.ok``.

        Returns
        -------
        Configuration

        Raises
        ------
        InputError
            As `at`; also for inputs without a batch.
        ConfigurationError
            For paths that stop; it carries what that of `at` does.

        Examples
        --------
        A crank makes a full turn; the tip of the coupler comes back to where it was.

        >>> import kic
        >>> import numpy as np
        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 50)})
        >>> bool(np.allclose(turn.value("tip")[0], turn.value("tip")[-1]))
        True
        """
        check_failures(failures)
        if (
            self._model.is_open_chain
            and near is None
            and only_coordinates(self, inputs)
            and inputs is not None
        ):
            return self.at(inputs, failures=failures)
        return solve_path(self._model, inputs, near, failures)

    def assemblies(
        self,
        inputs: Any,
        near: Configuration | None = None,
        starts: int = 128,
        seed: Any = 0,
        limits: Mapping[str, Any] | None = None,
    ) -> Assemblies:
        """Distinct postures found that have these values: other elbows, wrists, assemblies.

        Parameters
        ----------
        inputs : dict or (..., M) array_like
            As in `at`, for one target or a batch of them.
        near : Configuration, optional
            One posture; the solutions come sorted by how far their joints are from it. By default the
            drawing. It is the first start, too.
        starts : int
            How many starts are tried: `near`, and random ones. In a batch so many at the first member and an
            eighth at each other (8 at least), beside the postures found at their neighbours.
        seed : int or numpy Generator
            Of the random starts; the same seed finds the same.
        limits : dict of str to (lower, upper), optional
            Limits of joint coordinates. An angle may lie within them by full turns.

        Returns
        -------
        Assemblies
            A `Configuration` whose first batch axis are the postures found, never claimed to be all. In a
            batch each slice is one branch as far as it goes; where a member has fewer postures than another,
            or none, the rest of its slices are NaN in every answer and False in ``.ok``.

        Raises
        ------
        InputError, UnknownNameError
            As `at`; also for limits that are none.
        ConfigurationError
            If none was found, at no member; it carries how near they came (`left`, in length), or how far
            `beyond` limits.

        Examples
        --------
        >>> import kic
        >>> m = kic.load("four-bar")
        >>> found = m.assemblies({"A": 1.2})
        >>> len(found.counts), found.value("A").tolist()
        (2, [1.2, 1.2])

        The two elbows on the way to the limit of reach and beyond:

        >>> arm = kic.load("horn-two-link")
        >>> arm.assemblies({"tip.x": [1.2, 1.6, 2.0, 2.4], "tip.y": 0.0}).ok.sum(axis=0).tolist()
        [2, 2, 1, 0]
        """
        from kic.analysis.branches import find_assemblies

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
    ) -> TrackingResult:
        """Follow a path in time with a task of fewer rows than freedoms (or as many): redundancy resolved.

        Rates q̇ of `Configuration.resolve` are integrated (Dormand and Prince's method of order 8), loops kept
        closed. At every time of `t` the posture is put on the path, so that the task does not drift; the
        coordinates may, see `TrackingResult.drift`. Step by step, in a control loop, `prepare_resolve` gives the
        same rates.

        Parameters
        ----------
        path : Trajectory, or dict of str to callable or array_like
            The task: a trajectory of `kic.trajectory` in its rows; or by rows with a value ("flange",
            "tip.x") or bodies, and their course: a trajectory, a function of time that returns values,
            (values, rates) or (values, rates, accelerations), or samples (n, ..., P) at the times, between
            which a spline of fifth degree goes. A function that returns values alone is derived by a complex
            step, and must pass complex times on; rates that are returned must be those of the values. Of a
            body, a SciPy `RigidTransform` or `Rotation` of n members, its displacement from the drawing; a
            function that returns one with its rates; or a turn made by `kic.trajectory.rotation`.
        t : (n,) array_like
            Times.
        near : Configuration, optional
            Where to begin, one posture or a batch, near to the path; by default the drawing.
        weight, secondary, damping, wrt
            As in `Configuration.resolve`. A callable gets a configuration of the batch, and at the end
            one whose first axis is time.
        gain : float
            Feedback of the task's error between the times, 1/time: u̇ = u̇ of the path + gain · error.
        exact : bool
            Whether postures are put on the path at each time; without, only the gain brings them there. With
            damping they come as near as it lets them.
        tolerance : float
            Relative tolerance of the integration.

        Returns
        -------
        Following
            Mechanism, rates, errors, damping; `drift`.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.resolve`; also for times that do not grow, a path that is none, or one whose
            stated rates contradict its values.
        SingularError
            Where the task is singular on the way and it is not damped; it says when.
        ConfigurationError
            If the path is out of reach; it carries the `time`.

        Examples
        --------
        >>> import kic
        >>> import numpy as np
        >>> m = kic.load("three-link-arm")
        >>> c = m.at([0.4, 0.5, 0.6])
        >>> x = c.value("frame3.x")
        >>> f = m.follow({"frame3.x": lambda t: x - 0.1 * np.sin(t)}, np.linspace(0, 2 * np.pi, 9), near=c)
        >>> f.qd.shape, bool(abs(f.error).max() < 1e-12)
        ((9, 3), True)
        """
        from kic.trajectory.tracking import follow

        return follow(self._model, path, t, near, weight, secondary, damping, gain, exact, wrt, tolerance)

    def prepare_position(self, inputs: str | Iterable[str] | None = None) -> PositionSolver:
        """Closer for hot loops: closes postures near to given states, plain arrays in and out.

        Parameters
        ----------
        inputs : str or list of str, optional
            Rows whose values will be given, as in `at`; by default the coordinates.

        Returns
        -------
        Closer
            Call it with values (..., P) and closed states (..., S).

        Raises
        ------
        InputError, UnknownNameError
            As `at` would.
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
                f"{len(failed)} of {configuration.ok.size} members of the batch have no posture, coordinates "
                f"must be finite: {some}{'; …' if len(failed) > 4 else ''}. "
                "failures='mask' keeps the others."
            )
        raise ConfigurationError(message, failed=failed, reasons=reasons, configuration=configuration)

    @property
    def dof(self) -> int:
        """Number of freedoms at the drawing and near it; `mobility` says what it rests on."""
        return self._model.dof

    @property
    def redundant(self) -> int:
        """Number of closure conditions that follow from the others."""
        return self.mobility().redundant

    def mobility(self, at: Configuration | None = None) -> Mobility:
        """Account of the freedoms, in numbers and in words.

        Parameters
        ----------
        at : Configuration, optional
            One posture; by default the drawing.

        Returns
        -------
        Mobility
            Coordinates of the tree, closure conditions and whose they are, which of them are redundant;
            whether the freedoms are finite motions, or only shown to some order; and those of them that are
            idle. Printed, it is a paragraph.

        Raises
        ------
        InputError
            If `at` is no posture of this mechanism, or a batch of them.

        Examples
        --------
        >>> import kic
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
            raise InputError(f"`at` must be one configuration, got a batch {batch}. Index it first.")
        from kic.analysis.mobility import Mobility

        return Mobility(model.closure(()), state[None], False)

    @cached_property
    def _reference_mobility(self) -> Mobility:
        from kic.analysis.mobility import Mobility

        model = self._model.real
        return Mobility(model.closure(()), model.reference_state)

    def independent_sets(
        self,
        at: Configuration | None = None,
        among: str | Iterable[str] | None = None,
        count: int = 10,
    ) -> IndependentSets:
        """Sets of coordinates that can drive the mechanism, the best conditioned first.

        Parameters
        ----------
        at : Configuration, optional
            A posture, or a batch of them over which the worst counts; members without a posture are passed
            over. By default the drawing.
        among : str or list of str, optional
            Candidates: joints, points, distances, body motion, or single rows of them; every row is a
            candidate of its own. By default the coordinates of all joints, cut ones included. Rows without a
            value, such as rates of balls, only stand in for freedoms that nothing else has.
        count : int
            How many sets are wanted at most.

        Returns
        -------
        IndependentSets
            Iterable, printable. It says whether all sets were tried.

        Raises
        ------
        UnknownNameError, InputError
            For names that are not there, too few of them, no posture, or a mechanism without freedom.
        SingularError
            At postures where several motions meet, which no set drives; or if no set serves.

        Examples
        --------
        >>> import kic
        >>> import numpy as np
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
    ) -> Equilibrium:
        """A posture that loads and given efforts leave at rest, near another one, and whether it stays there.

        Parameters
        ----------
        near : Configuration, optional
            One posture from which the search starts; by default the drawing.
        effort : dict of str to float, or (f,) array_like, optional
            Efforts at the coordinates, by name or at all those that are not held; none if left out.
        held : str or list of str
            Coordinates that stay where they are; the effort that this takes is found.
        wrt : str or list of str, optional
            The coordinates, as in `Configuration.coefficients`; by default the mechanism's own.
        applied : dict of str to (3,) array_like, optional
            Components of named forces and moments, instead of those of the model.
        motors : bool
            Whether rotors and damping of motors count in the modes, as in `Configuration.dynamics`.
        stable : bool
            Whether to let the mechanism fall until it rests in a minimum of its potential energy; else any
            equilibrium near will do, such as one that is upside down.

        Returns
        -------
        Equilibrium
            The posture, its efforts, stability, natural frequencies and mode shapes.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            For names that are not there, efforts of another shape, a batch, or missing masses.
        ConfigurationError
            If none was found; it carries the efforts that were `left`, and the posture `reached`.
        SingularError
            If a freedom can move without effort, so that there are more beside it; it carries what is `free`.
            Where coordinates that were named can not drive the mechanism.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> found = arm.find_equilibrium(stable=True)
        >>> found.stability, found.configuration.value("tip").round(6).tolist()
        ('stable', [0.0, -2.0, 0.0])
        """
        from kic.linear.equilibrium import find_equilibrium

        return find_equilibrium(self._model, near, effort, held, wrt, applied, motors, stable)

    @property
    def cuts(self) -> tuple[str, ...]:
        """Joints at which the loops are opened; none for an open chain."""
        return tuple(joint.name for joint in self._model.tree.cuts)

    def prepare(
        self,
        of: str | Iterable[str] = (),
        order: int = 2,
        dynamics: bool | Literal["inertia"] = False,
        wrt: str | Iterable[str] | None = None,
    ) -> Evaluator:
        """Evaluator for hot loops: plain arrays in and out, all names resolved beforehand.

        Parameters
        ----------
        of : str or list of str
            Dependents, as in `Configuration.coefficients`.
        order : {1, 2, 3}
            Highest order.
        dynamics : bool or "inertia"
            Also I*, P*, the load and the damping; "inertia" for I* and P* alone.
        wrt : str or list of str, optional
            The coordinates, as in `Configuration.coefficients`.

        Returns
        -------
        Evaluator
            Call it with a state (..., S); see `Configuration.state`.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `coefficients` and `dynamics` would.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> f = arm.prepare(of=["tip"])
        >>> f(arm.at([0.0, 0.0]).state).tip.G[1].tolist()
        [2.0, 1.0]
        """
        return Evaluator(self._model, of, order, dynamics, wrt)

    def prepare_operational_space(
        self, task: str | Iterable[str], wrt: str | Iterable[str] | None = None
    ) -> OperationalSpaceEvaluator:
        """Evaluator of Λ, μ, p for hot loops: plain arrays in and out.

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `Configuration.coefficients`.
        wrt : str or list of str, optional
            The coordinates, as in `Configuration.coefficients`.

        Returns
        -------
        OperationalSpaceEvaluator
            Call it with a state (..., S); see `Configuration.state`.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.operational_space` would.
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
        """Evaluator that resolves redundancy in hot loops: plain arrays in and out.

        Parameters
        ----------
        task, weight, law, damping, wrt
            As in `Configuration.resolve`.
        effort : bool
            Whether efforts are wanted, too.
        order : {1, 2}
            1 for rates alone.

        Returns
        -------
        RedundancyEvaluator
            Call it with a state (..., S) (see `Configuration.state`) and the motion of the task.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.resolve` would.
        """
        from kic.operational_space.redundancy import RedundancyEvaluator

        return RedundancyEvaluator(self._model, task, weight, law, damping, wrt, effort, order)

    def summary(self) -> Summary:
        """Labelled account of the parts, to print or to show."""
        sheet = Summary(f"{self.name}: {self.title}" if self.title else self.name)
        if not self._model.tree.open:
            sheet.say(self.mobility().summary())
        joints = [[j.type, " – ".join(j.bodies), ", ".join(j.components)] for j in self.joints]
        sheet.texts("joints", [j.name for j in self.joints], ["type", "ties", "coordinates"], joints)
        if self.bodies:
            mass = [["?" if b.mass is None else f"{b.mass:.5g}"] for b in self.bodies]
            sheet.texts("bodies", [b.name for b in self.bodies], [f"mass ({self.units.mass})"], mass)
        if self.points:
            carried = [[p.body, ", ".join(f"{x:.5g}" for x in p.at)] for p in self.points]
            sheet.texts("points", [p.name for p in self.points], ["body", "drawn at"], carried)
        couplings.add_couplings(sheet, self.terms)
        contacts.add_contacts(sheet, self.contacts)
        if self.fixed_distances:
            rods = [[f"{length:.5g}"] for length in self.fixed_distances.values()]
            sheet.texts(
                "fixed distances", list(self.fixed_distances), [f"length ({self.units.length})"], rods
            )
        list_motors(sheet, self.motors)
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()
