"""Configuration: the proof that a posture was solved, one or a batch, and the answers it gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from kic.description.parts import Joint
from kic.display import Summary, member
from kic.dynamics.contributions import Contributions
from kic.dynamics.dynamics import Dynamics
from kic.dynamics.queries import ContributionsQuery
from kic.errors import InputError, OutOfRangeError, short_repr
from kic.kernels.layout import PIVOT
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.state import phi_of
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import (
    broadcast_batches,
    check_finite,
    check_order,
    map_valid_members,
    scatter,
)
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.targets import BatchTargets

if TYPE_CHECKING:
    from scipy.spatial.transform import RigidTransform

    from kic.actuation.distribution import Distribution
    from kic.actuation.internal_loads import InternalLoads
    from kic.analysis.singularities import Singularities
    from kic.dynamics.drive_train import MotorDemand
    from kic.dynamics.dynamics import Dynamics
    from kic.grasp.grasp import Grasp
    from kic.joint_forces.joint_forces import JointForces
    from kic.kinematics.coefficients import Coefficients
    from kic.linear.linearize import Linearization
    from kic.linear.state_space import StateSpace
    from kic.operational_space.ellipsoids import Ellipsoid, Kind
    from kic.operational_space.operational_space import OperationalSpace
    from kic.operational_space.redundancy import RedundancyResolution
    from kic.operational_space.weighting import Damping, Law, Weight


class Configuration:
    """A posture of a mechanism, or a batch of postures, with its frames known.

    Made by `Mechanism.at`. Immutable; questions are methods, and coordinates an argument of the question.

    Attributes
    ----------
    ok : (...) bool
        Members that have a posture; the others are NaN in every answer.
    state : (..., S)
        State of the spanning tree, what `Mechanism.prepare` takes: one number for each revolute or
        slider, a unit quaternion (w, x, y, z) for each ball.

    Examples
    --------
    >>> import kic
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
        # what was asked of members with and without a posture, where that was a position problem
        self._aims = aims

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch, ``()`` for one posture."""
        return self._batch

    @property
    def ok(self) -> np.ndarray:
        """Members that have a posture, (...) bool."""
        return np.ones(self.batch, dtype=bool) if self._ok is None else self._ok.copy()

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self._model.description.name

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates in which answers come."""
        return self._model.coordinates

    @property
    def state(self) -> np.ndarray:
        """State of the spanning tree, (..., S); a copy."""
        return self._states.reshape(*self.batch, self._states.shape[-1]).copy()

    @property
    def phi(self) -> np.ndarray:
        """Coordinates of the spanning tree, (..., M); of an open chain in the order of `coordinates`.

        Balls appear as rotation vectors. For an open chain, ``mechanism.at(c.phi)`` is the same posture.
        """
        phi = phi_of(self._model.tree, self._states)
        return phi.reshape(*self.batch, self._model.tree.size)

    def __getitem__(self, members: Any) -> Self:
        """Members of a batch, by what NumPy takes as an index of its axes.

        Parameters
        ----------
        members : int, slice, array of int or bool, or a tuple of these
            Such as ``path[-1]``, ``path[::10]``, ``grid[0, :]``, ``c[c.ok]``.

        Returns
        -------
        Configuration
            Of the batch that is left.

        Raises
        ------
        IndexError
            For members that are not there.
        InputError
            Of one posture, which has no members.

        Examples
        --------
        >>> import kic
        >>> path = kic.load("four-bar").path({"A": [1.0, 1.1, 1.2]})
        >>> path[-1].value("A").round(6), path[:2].batch
        (np.float64(1.2), (2,))
        """
        if not self.batch:
            raise InputError(f"This is one posture of '{self.name}', and no batch that has members.")
        try:
            which = np.asarray(np.arange(prod(self.batch)).reshape(self.batch)[members])
        except (TypeError, ValueError, OverflowError):
            which = None
        except IndexError as error:
            raise OutOfRangeError(f"`members` must be an index of the batch {self.batch}: {error}.") from None
        if which is None:
            said = "integers, slices, or arrays of integers or booleans"
            raise InputError(f"`members` must be {said}, got {short_repr(members)}.")
        ok = None if self._ok is None else self._ok.reshape(-1)[which]
        which, shape = which.reshape(-1), which.shape
        aims = None if self._aims is None else self._aims.take(which)
        return type(self)(self._model, shape, self._states[which], ok, aims)

    def _beside(self, batch: tuple[int, ...], states: np.ndarray, ok: np.ndarray | None = None) -> Any:
        """Return a configuration of the same mechanism at other states; of assembly modes a plain one."""

        return Configuration(self._model, batch, states, ok)

    def __iter__(self) -> Iterator[Self]:
        """The members of a batch along its first axis."""
        if not self.batch:
            raise InputError(f"This is one posture of '{self.name}', and no batch that has members.")
        return (self[k] for k in range(self.batch[0]))

    def _masked(self, T: np.ndarray) -> np.ndarray:
        """NaN in every number of the members that have no posture."""
        if self._ok is not None:
            T[~self._ok.reshape(-1)] = np.nan
        return T

    def value(self, name: str) -> np.ndarray:
        """Values of a point, a joint, a distance or a single row.

        Parameters
        ----------
        name : str
            Such as "tip" (..., 3), "tip.x" (...,), "A" (...,), "hand.angle" (...,).

        Returns
        -------
        ndarray
            (..., P) of a part with several rows, (...,) of a single one.

        Raises
        ------
        InputError
            For an angular velocity, which is the rate of nothing; `pose` has the orientation.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 0.0]).value("tip")
        array([2., 0., 0.])
        """
        rows = self._model.rows(name, 1).layout.rows
        if not rows.holonomic:
            raise InputError(
                f"'{name}' includes angular velocities, which have no value. "
                "Ask for a point, or for the pose() of a body."
            )
        values = self._masked(self._model.values(name, self._states))
        values = values.reshape(*self.batch, len(rows.labels))
        return values[..., 0] if len(rows.labels) == 1 else values

    def pose(self, body: str) -> RigidTransform:
        """Displacement of a body from the drawing, as a SciPy `RigidTransform` (batched).

        ``pose.apply(p)`` is where the body's point drawn at p is now.

        Parameters
        ----------
        body : str
            Name of the body.

        Returns
        -------
        scipy.spatial.transform.RigidTransform

        Raises
        ------
        UnknownNameError
            If there is no such body.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.0, 0.5])
        >>> c.pose("link2").apply([2.0, 0.0, 0.0]).round(3)
        array([1.878, 0.479, 0.   ])
        """
        from scipy.spatial.transform import RigidTransform

        self._model.require_real("pose()", "Ask for the same as a matrix, displacement().")
        return RigidTransform.from_matrix(self.displacement(body))

    def displacement(self, body: str) -> np.ndarray:
        """The same as a matrix: homogeneous transform of a body from the drawing.

        Parameters
        ----------
        body : str
            Name of the body.

        Returns
        -------
        (..., 4, 4)

        Raises
        ------
        UnknownNameError, InputError
            If there is no such body, or for complex numbers, symbols, or members without posture.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 0.0]).displacement("link2")[:3, :3]
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
        """
        model = self._model
        model.description.part(body, "bodies")
        if self._states.dtype not in (np.float64, model.tree.scalar):
            raise InputError(f"pose() needs real numbers; this posture holds {self._states.dtype}.")
        if self._ok is not None:
            raise InputError(
                f"pose() needs every member, but {int((~self.ok).sum())} of {self.ok.size} have no posture."
            )
        question = model.pose(body)
        p = question.layout.split(question.table(self._states), self.batch)[0].reshape(*self.batch, 4, 3)
        T = np.zeros((*self.batch, 4, 4), p.dtype)
        T[..., 3, 3] = 1
        T[..., :3, 3] = p[..., 0, :]
        # columns of the rotation: where the drawing's unit vectors have gone
        T[..., :3, :3] = np.swapaxes(p[..., 1:, :], -1, -2)
        return T

    def summary(self) -> Summary:
        """Labelled table of the posture, to print or to show."""
        sheet = Summary(f"{self.name}: posture")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if self._ok is not None:
            sheet.say(f"{int((~self.ok).sum())} of {self.ok.size} members have no posture")
        if index is not None:
            names = self.coordinates if self._model.is_open_chain else self._model.tree.columns
            # joints at which loops are cut are no columns of the tree
            cut = [] if self._model.tree.open else valued(self._model.description.joints)
            cut = [c for c in cut if c not in names]
            one = self[index] if self.batch else self
            values = np.concatenate([one.phi, single_values(one, cut)])
            caption = "coordinates" if self._model.tree.open else "joints"
            sheet.matrix(caption, [*names, *cut], ["value"], values[:, None])
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()

    def coefficients(
        self,
        of: str | Iterable[str],
        order: int = 2,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Coefficients:
        """G, H and D of anything that moves, with respect to any coordinates.

        Parameters
        ----------
        of : str or list of str
            Points ("tip"), bodies ("hand": x y z of its reference point, then wx wy wz), joints,
            distances, or single rows of them ("tip.x", "hand.wz", "hand.angle" of a planar mechanism).
        order : {1, 2, 3}
            Highest order.
        wrt : str or list of str, optional
            The coordinates: joints, points, body motion, distances, or single rows of them, as many as
            the mechanism has freedoms. By default the mechanism's own.
        failures : {"raise", "mask"}
            What becomes of members where the coordinates can not drive the mechanism: an error that names
            them, or NaN.

        Returns
        -------
        Coefficients
            G (..., P, M), H (..., P, M, M), D (..., P, M, M, M), with named rows and columns
            (Tables 2-3 to 2-5).

        Raises
        ------
        UnknownNameError
            For a name that is not there, with the candidates.
        InputError
            For an order that is none, a part that has no such rows, or another number of coordinates
            than freedoms.
        SingularError
            Where the coordinates can not drive the mechanism; it names some that can.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.0, 0.0])
        >>> c.coefficients("tip", order=1).G
        array([[0., 0.],
               [2., 1.],
               [0., 0.]])
        """
        model = self._model
        transfer = model.transfer_for(wrt)
        if transfer is None:
            question = model.rows(of, check_order(order))
            table: Any = question.layout
            ok, pivot, error = self._ok, None, None
            T = self._masked(question.table(self._states))
        else:
            names = names_of(of, least=1)
            chosen, asked = transfer, model.query(transfer, names, check_order(order))
            table = asked.answer
            inputs = self._inputs

            def answered(members: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
                states = self._states[members]
                found = chosen.answer(asked, states)
                error = np.zeros(len(states))
                if inputs is not None:
                    error = chosen.check_position_error(states, found.quality, order, inputs)
                return found.T, found.quality[:, PIVOT], error

            good, parts = map_valid_members(self.ok, failures, answered)
            T = scatter(parts[0], good)
            pivot, error = (scatter(part, good).reshape(self.batch) for part in parts[1:])
            ok = good
        model.check_distances(table.rows, T, ok)
        check_finite("Coefficients", self.name, T, None if ok is None else ok.reshape(-1))
        return model.assemble(table.rows, table.split(T, self.batch), transfer, pivot, error)

    @property
    def _inputs(self) -> CoordinateTransfer | None:
        """Equations that the states were solved for; None for states that were given."""
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
        """I*, P* and loads in any coordinates.

        Parameters
        ----------
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.
        failures : {"raise", "mask"}
            As in `coefficients`.
        motors : bool
            Whether to add the rotors of the motors and their damping (eq 2-237); else efforts are those at
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
            For a force that is not there, a spring whose ends meet, motors that are not drawn, or their dry
            friction, which is no part of such a model.
        SingularError
            Where the coordinates can not drive the mechanism.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 0.0]).dynamics().load
        array([-19.62 ,  -4.905])
        """
        if flag("motors", motors):
            from kic.actuation.motors import rotor_dynamics

            return self.dynamics(wrt, applied, failures) + rotor_dynamics(self, wrt, failures)
        model = self._model
        force, batch = model.loads.applied(applied, self.name)
        states, shape, ok = self._states, self.batch, self._ok
        if batch:
            shape = broadcast_batches(applied=batch, posture=self.batch)
            states = np.broadcast_to(self.state, (*shape, states.shape[-1])).reshape(-1, states.shape[-1])
            ok = None if ok is None else np.broadcast_to(ok, shape)
            force = np.broadcast_to(force, (*shape, *force.shape[-2:]))
        force = force.reshape(len(states) if batch else 1, *force.shape[-2:])
        dtype = np.result_type(states, force)
        states = np.require(states, dtype, ["C", "A", "W"])
        transfer = model.transfer_for(wrt)
        if transfer is None:
            question = model.dynamics()
            T = question.table(states, force)
            parts = question.model.split(T, shape)
            model.check_springs(parts[2], ok)
            flat = None if ok is None else ok.reshape(-1)
            check_finite("I*, P* or loads", self.name, T, flat)
            if flat is not None:
                T[~flat] = np.nan
            I, P, load, damping = model.in_coordinates(parts, (2, 3, 1, 2))
            return Dynamics(
                model.coordinates,
                I,
                P,
                load,
                damping,
                holonomic=not model.tree.balls,
                inertia_error=model.inertia_error_at(None, states)[0],
            )
        return self._transferred(transfer, states, shape, ok, force, failures)

    def _transferred(
        self,
        transfer: CoordinateTransfer,
        states: np.ndarray,
        shape: tuple[int, ...],
        ok: np.ndarray | None,
        force: np.ndarray,
        failures: str,
    ) -> Dynamics:
        """Dynamics in chosen coordinates (3-34 to 3-36)."""
        model = self._model
        inputs = self._inputs

        def answered(members: Any) -> list[np.ndarray]:
            some = states[members]
            parts, quality = model.transferred_dynamics(
                transfer, some, force if len(force) == 1 else force[members]
            )
            if inputs is not None:
                transfer.check_position_error(some, quality, 2, inputs)
            return parts

        good, parts = map_valid_members(np.ones(shape, dtype=bool) if ok is None else ok, failures, answered)
        model.check_springs(parts[2], None)
        for quantity, part in zip(("I*", "P*", "Loads", "Damping"), parts, strict=True):
            check_finite(quantity, self.name, part)
        full = [scatter(part, good).reshape(*shape, *part.shape[1:]) for part in parts]

        def error() -> np.ndarray:
            found = model.inertia_error_at(transfer, states[good.reshape(-1)])
            return scatter(found, good).reshape(*shape, found.shape[-1])

        I, P, load, damping = full
        return Dynamics(
            transfer.labels,
            I,
            P,
            load,
            damping,
            holonomic=transfer.holonomic,
            inertia_error=error,
        )

    def contributions(
        self, wrt: str | Iterable[str] | None = None, failures: Literal["raise", "mask"] = "raise"
    ) -> Contributions:
        """Freeman's sums: what each body contributes to I* and P*, by linear and angular momentum.

        Parameters
        ----------
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        Contributions
            Shares (..., N, M, M) and (..., N, M, M, M) (eqs 2-157, 2-158, 2-193, 2-194).

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.0, 0.0]).contributions()
        >>> c.I_linear.sum(axis=0)[0, 0] + c.I_angular.sum(axis=0)[0, 0]
        np.float64(2.6666666666666665)
        """
        model = self._model
        transfer = model.transfer_for(wrt)
        if transfer is None:
            question = model.contributions
            T = self._masked(question.table(self._states))
            check_finite("Contributions", self.name, T, None if self._ok is None else self._ok.reshape(-1))
            parts = model.in_coordinates(question.split(T, self.batch), (2, 2, 3, 3))
            return Contributions(model.masses.names, model.coordinates, *parts)
        chosen, question = transfer, ContributionsQuery(model.tree, model.masses, transfer.first)

        def shares(members: Any) -> np.ndarray:
            states = self._states[members]
            return question.table(states, chosen.solve(states, 2).X)

        good, T = map_valid_members(self.ok, failures, shares)
        check_finite("Contributions", self.name, T)
        T = scatter(T, good)
        return Contributions(model.masses.names, transfer.labels, *question.split(T, self.batch))

    def joint_forces(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        actuators: str | Iterable[str] | None = None,
        split: Literal["minimum norm"] | None = None,
        effort: Any = None,
    ) -> JointForces:
        """Forces and moments in all joints for a motion, and the efforts that it takes.

        The bodies are set free, and every joint is put back as loads: those of (4-31), T_c at the conditions
        that it holds, T at the coordinates with actuators. A coupling acts as efforts in its joints, a fixed
        distance as a force between its points; a closed contact is a joint. There is no friction in joints.
        Bodies are rigid: where they are held more often than needed, their equilibrium leaves components
        open. Those are NaN and are named; all others are as exact as the rest.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the coordinates; at rest if left out.
        wrt : str or list of str, optional
            The coordinates of the motion, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.
        actuators : str or list of str, optional
            Where efforts act; by default at the coordinates. An effort at a joint acts between its two
            bodies, one at a distance between its two points; one at a row of a point or of a body is a force
            or a moment on it from outside. There may be more than freedoms.
        split : {None, "minimum norm"}
            How open components are chosen: not at all, or so that the sum over all joints (and actuators, if
            there are more than freedoms) of (force · L)² + moment² is least: of all that joints hold, about
            their points, L being the largest extent of the drawing. A coupling counts with the largest of
            its efforts.
        effort : (..., A) array_like, optional
            Efforts of the actuators, such as `distribute` or `Grasp.motion` chose; NaN where there are none.
            They must make the motion, and what they miss of it, a millionth at most, is put right.

        Returns
        -------
        JointForces
            ``f["C"].force`` and ``f["C"].moment`` (..., 3), ``f.effort`` (..., A), ``f.undetermined``.

        Raises
        ------
        InertiaError
            If a body has no mass or inertia; what stands still needs a mass.
        InputError
            For another shape or kind of numbers, fewer actuators than freedoms, or efforts that do not make
            the motion.
        SingularError
            Where the coordinates can not drive the mechanism, or the actuators can not hold it.

        Examples
        --------
        >>> import kic
        >>> f = kic.load("five-bar").at().joint_forces([2.0, 3.0], [1.0, 0.5])
        >>> f["B"].force.round(4), f.effort.round(4)  # Table C-1
        (array([...,     nan]), array([ 0.0504, -0.8259]))
        """
        from kic.joint_forces.reactions import joint_forces

        return joint_forces(self, qd, qdd, wrt, applied, actuators, split, effort)

    def singularities(
        self, inputs: str | Iterable[str] | None = None, outputs: str | Iterable[str] | None = None
    ) -> Singularities:
        """Singular postures between the members of a path or a grid, and how near every member is to one.

        Parameters
        ----------
        inputs : str or list of str, optional
            Rows that drive the mechanism, as many as freedoms; by default its coordinates.
        outputs : str or list of str, optional
            Rows of interest, such as those of a point; no more than freedoms.

        Returns
        -------
        Singularities
            ``measures`` (...) of the kinds "inputs", "outputs" and "closure"; iterated, the postures found.

        Raises
        ------
        UnknownNameError, InputError
            For names that are not there, another number of inputs than freedoms, more outputs, inputs that
            drive the mechanism nowhere, outputs that nothing moves or that depend on one another everywhere,
            or a mechanism without freedom; on iteration, for one posture without neighbours.

        Examples
        --------
        >>> import kic
        >>> import numpy as np
        >>> turn = kic.load("four-bar").path({"A": 1.2 + np.linspace(0, 2 * np.pi, 60)})
        >>> for one in turn.singularities(inputs="D"):
        ...     print(one.text())
        inputs: D can stand still while others move: A 1, B -0.6552, C -0.3448
        inputs: D can stand still while others move: A -0.7436, B 1, C -0.2564
        """
        from kic.analysis.singularities import singularities

        return singularities(self, inputs, outputs)

    def distribute(
        self,
        effort: Any,
        actuators: str | Iterable[str],
        criterion: Any = "minimum norm",
        limits: Any = None,
        lower: Any = None,
        preload: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Distribution:
        """Efforts of more actuators than freedoms that together give a generalized effort.

        The motion of the coordinates settles that of the actuators, but not their efforts T: with G their
        coefficients, GᵀT = T_u is all that is needed (4-80). The criterion takes those of least TᵀWT, in
        closed form where no limit is met (4-85), else by an active set; or those of the least largest share.

        Parameters
        ----------
        effort : (..., M) array_like
            Generalized effort T_u at the coordinates, such as `Dynamics.inverse_dynamics` gives.
        actuators : str or list of str
            Rows where efforts act: joints, cut ones included, distances, rows of points or bodies; A of them.
        criterion : str or (A,) or (..., A, A) array_like
            "minimum norm" (W = 1); "limits" (weights 1/limit²); "least largest share" of the limits, and
            among those of the next largest, and so on, which is unique; or positive weights, or a symmetric
            positive definite W.
        limits : float or (..., A) array_like, optional
            Greatest efforts, which are never exceeded. They may be infinite, but not where the criterion
            divides by them.
        lower : float or (..., A) array_like, optional
            Least efforts, such as 0 of a cable; by default −limits.
        preload : (..., A) array_like, optional
            Efforts whose part that does no work is added, as nearly as the limits let it.
        wrt : str or list of str, optional
            The coordinates of the effort, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            What becomes of members without an answer: an error that names them, or NaN.

        Returns
        -------
        Distribution
            ``d.effort`` (..., A), ``d.share``, ``d.at_limit``, ``d.internal`` (..., A), ``d.stiffness``.

        Raises
        ------
        InputError
            For fewer actuators than freedoms, weights or limits that are none, or a minimum norm over forces
            and moments together.
        LimitError
            Where the limits do not allow the effort; it says how much of it, and which limits stop it.
        SingularError
            Where the actuators can not hold every motion.

        Examples
        --------
        >>> import kic
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
        actuators: str | Iterable[str],
        criterion: Any = "minimum norm",
        limits: Any = None,
        wrt: str | Iterable[str] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> InternalLoads:
        """Efforts of actuators that do no work: what they pull against each other, whatever moves.

        Parameters
        ----------
        actuators : str or list of str
            As in `distribute`; A of them.
        criterion : str or (A,) or (..., A, A) array_like
            In which metric the basis is orthonormal: "minimum norm", "limits" or weights, as in `distribute`.
        limits : (..., A) array_like, optional
            For "limits".
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
        >>> import kic
        >>> loads = kic.load("walking-machine").at().internal_loads(["B1", "C1", "B2", "C2"])
        >>> print(*loads.sentences())
        Internal load 1: B1, C1 against B2, C2.
        """
        from kic.actuation.distribution import internal_loads

        return internal_loads(self, actuators, criterion, limits, wrt, failures)

    def actuator_dynamics(
        self,
        actuators: str | Iterable[str],
        criterion: Any = "minimum norm",
        limits: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Dynamics:
        """I*, P* and loads seen from more actuators than freedoms (eqs 4-87 to 4-90).

        Parameters
        ----------
        actuators, criterion, limits, wrt, failures
            As in `distribute`; limits are weights here, and not watched.
        applied : dict of str to (..., 3) array_like, optional
            As in `dynamics`.

        Returns
        -------
        Dynamics
            I* (..., A, M), P* (..., A, M, M), Tᴸ (..., A), with `efforts` the actuators: its `effort` of a
            motion is that of `dynamics`, distributed.

        Raises
        ------
        InputError, SingularError, InertiaError
            As `distribute` and `dynamics`; and for "least largest share", which is no linear law.

        Examples
        --------
        >>> import kic
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
        """Dynamics as a task feels them: Λ, μ, p, the dynamically consistent inverse and its null space.

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `coefficients`, at most as many as there are freedoms.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            What becomes of members where the task is singular: an error that names them, or NaN.

        Returns
        -------
        OperationalSpace
            Λ (..., P, P), μ (..., P, M, M), p (..., P), J̄ (..., M, P).

        Raises
        ------
        UnknownNameError, InertiaError
            As `coefficients` and `dynamics`.
        InputError
            For a task of more rows than freedoms, or symbols.
        SingularError
            Where the task's rows depend on one another.

        Examples
        --------
        >>> import kic
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
        """Ellipsoid of a task's velocity, force, inertia or acceleration, with its measures.

        Parameters
        ----------
        kind : {"velocity", "force", "inertia", "acceleration"}
            Of what; the definitions stand at `Ellipsoid`.
        of : str or list of str
            Rows of the task, as in `coefficients`: of one unit, or see `length`.
        wrt : str or list of str, optional
            The coordinates that are measured, as in `coefficients`: those with the actuators.
        limits : dict of str to float, or (M,) array_like, optional
            For each coordinate its largest rate ("velocity") or effort ("force", "acceleration"), by which it
            is measured. Without, each counts with its unit, and they all must have the same.
        length : float, optional
            In the drawing's unit of length: angular rows are multiplied by it (moments divided).
        qd : (..., M) array_like, optional
            Rates of the coordinates, for the center of "acceleration"; at rest if left out.
        load : bool
            Whether gravity, springs and applied forces shift the center of "acceleration". If not, efforts
            are those beyond what holds these.
        failures : {"raise", "mask"}
            As in `coefficients`. A singular task is no failure.

        Returns
        -------
        Ellipsoid
            axes (..., P, P), semi_axes (..., P), and measures (...): manipulability, condition, isotropy.

        Raises
        ------
        UnknownNameError, InertiaError, SingularError
            As `coefficients` and, for "inertia" and "acceleration", `dynamics`; SingularError also where some
            motion moves no mass.
        InputError
            For another kind, rows or coordinates of different units, limits or a length that are not
            positive, an argument that the kind has no use for, or a posture that is not of real numbers.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("gough-stewart").at()
        >>> e = c.ellipsoid("force", "platform", length=0.5)
        >>> e.semi_axes.shape, e.isotropy.round(3)
        ((6,), np.float64(0.351))
        """
        from kic.operational_space.ellipsoids import make_ellipsoid

        return make_ellipsoid(self, self._model, kind, of, wrt, limits, length, qd, load, failures)

    def manipulability_gradient(
        self,
        of: str | Iterable[str],
        wrt: str | Iterable[str] | None = None,
        limits: Any = None,
        length: float | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> np.ndarray:
        """Gradient of the manipulability w = √det(G Gᵀ) of a task along the coordinates, exactly, by H.

        Parameters
        ----------
        of, wrt, limits, length
            As in `ellipsoid`, of "velocity".
        failures : {"raise", "mask"}
            What becomes of members where w is 0, and has an edge: an error that names them, or NaN.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            As `ellipsoid`, and for more rows than coordinates.
        SingularError
            Where the task is singular.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 1.5]).manipulability_gradient(["tip.x", "tip.y"]).round(4)
        array([0.    , 0.0707])
        """
        from kic.operational_space.ellipsoids import gradient_at

        return gradient_at(self, self._model, of, wrt, limits, length, failures)

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
        """Motion of all coordinates for that of a task with fewer rows (or as many): redundancy resolved.

        Rates make ½ (q̇ − z)ᵀ Q (q̇ − z) least among those with G q̇ = u̇ (4-68, 4-70)::

            q̇ = z + R (u̇ − G z)        R = Q⁻¹ Gᵀ (G Q⁻¹ Gᵀ)⁻¹

        Accelerations follow one of two laws. "consistent": they are the derivative of these rates, so that a
        motion obeys the law above all the time. "instantaneous": they make ½ (q̈ − ż)ᵀ Q (q̈ − ż) least at the
        instant, whatever the rates are (4-71, 4-72). They differ in the null space, where the second lets
        rates grow that the first would not have; (4-72) is not, as printed, the derivative of (4-68).

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `coefficients`, at most as many as there are freedoms.
        ud, udd, uddd : (..., P) array_like
            Rates, accelerations and jerks of the task, as far as wanted; their batch broadcasts with that of
            the posture.
        weight : {"minimum norm", "minimum kinetic energy"} or (..., M, M) array_like
            The weight Q: 1, in the coordinates as they are; I*; or a symmetric positive definite matrix,
            which does not change with the posture.
        law : {"consistent", "instantaneous"}
            The law of accelerations.
        secondary : optional
            What the null space is for: `JointLimits`, `Manipulability`, `PreferredConfiguration`; rates z (..., M),
            or (z, ż) or (z, ż, z̈), zero where left out; a callable that takes a configuration of any batch
            and returns z; or a list of these, whose sum counts. Where accelerations are asked, a callable is
            derived by its complex step, and must pass complex numbers on.
        damping : float or (float, float), optional
            λ, or the largest λ and the manipulability w₀ below which λ² grows from 0, as (1 − w²/w₀²)² of the
            largest (after Nakamura and Hanafusa 1986). λ² S is added to G Q⁻¹ Gᵀ, which is measured free of
            units: rows of the task by the characteristic length where they are lengths, Q by a mean of
            its diagonal. So is w = √det. What the task then lacks is in `missed`.
        qd : (..., M) array_like, optional
            Rates as they are, for the law "instantaneous", in place of `ud`.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        failures : {"raise", "mask"}
            What becomes of members where the task is singular: an error that names them, or NaN.

        Returns
        -------
        Resolution
            q̇, q̈, q⃛ (..., M), and what they come from; `effort`, and `coefficients` and `dynamics()` with
            respect to the task (4-73 to 4-75).

        Raises
        ------
        UnknownNameError, InertiaError
            As `coefficients` and `dynamics`.
        InputError
            For a task of more rows than freedoms, a weight that is not symmetric and positive definite,
            arrays of another shape, or symbols.
        SingularError
            Where the task's rows depend on one another and it is not damped, or the weight is I* and some
            motion moves no mass.

        Examples
        --------
        >>> import kic
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
        """How contacts hold a body: grasp map, hand Jacobian, and what moving it takes.

        Parameters
        ----------
        held : str
            The body: an object that fingers touch; or one that stands on feet, by contacts with ground.
        fingers : str or list of str, optional
            Coordinates of the fingers (or legs), as many as they have freedoms while the contacts are open;
            by default the joints of open chains. Of closed ones name those with actuators.
        order : {1, 2, 3}
            Highest order of `Grasp.relative`.
        failures : {"raise", "mask"}
            What becomes of members where these coordinates can not drive fingers and object, or where, in
            `Grasp.motion`, the contacts can not hold it: an error that names them, or NaN.

        Returns
        -------
        Grasp
            G (..., 6, R), J (..., R, n); and ``motion(qd, qdd)``.

        Raises
        ------
        UnknownNameError
            For a name that is not there.
        InputError
            For a body that no closed contact holds, or that stands still; another number of fingers than
            freedoms.
        SingularError
            Where these coordinates can not drive fingers and object.

        Examples
        --------
        >>> import kic
        >>> g = kic.load("three-finger-hand").at().grasp("ball")
        >>> v = [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]         # the object rises, and the fingers with it
        >>> bool(abs(g.J @ g.motion(v).rate - g.G.T @ v).max() < 1e-12)
        True
        """
        from kic.grasp.grasp import grasp

        return grasp(self, held, fingers, order, failures)

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
        """How efforts change with small deviations from a motion: δT = K δq + C δq̇ + I* δq̈.

        Exact, from third-order coefficients, with all loads: gravity, forces in world and body axes, springs
        and dampers; in any coordinates, of open and closed mechanisms, for a batch such as a trajectory.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the nominal motion; at rest if left out.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        effort : (..., M) array_like, optional
            Efforts of the nominal motion, in place of `qdd`.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.
        failures : {"raise", "mask"}
            As in `coefficients`.
        motors : bool
            Whether to count the rotors of the motors and their damping, as in `dynamics`.

        Returns
        -------
        Linearization
            K, C, I (..., M, M) (eqs 2-201 to 2-225).

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        InputError
            For another shape, or both `qdd` and `effort`.
        SingularError
            Where the coordinates can not drive the mechanism, or I* has no inverse and efforts are given.

        Examples
        --------
        >>> import kic
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
        """Linear state space of small deviations from a motion: ẋ = A x + B u, y = C x + D u.

        Parameters
        ----------
        qd, qdd, effort : (..., M) array_like, optional
            The nominal motion, as in `linearize`; at rest if left out.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own. They and their rates are
            states.
        inputs : str or list of str, optional
            Names of motors (a voltage, or the torque of a plain source), of coordinates (an effort), of
            forces and moments of the model ("push", or "push.x" alone; eq 2-227). By default all motors if
            they count, else the efforts at all coordinates.
        outputs : str or list of str, optional
            Anything that moves, as `of` in `coefficients`; with ".rate" its rate ("tip.x.rate"; angular
            velocities are rates as they stand), and "M.current" of a motor M. By default the coordinates.
        motors : bool, optional
            Whether motors count, with rotors and circuits; by default if any are drawn.
        reduced : bool
            Whether currents are taken to follow voltages at once, as those of motors without inductance do.
        applied, failures
            As in `linearize`.

        Returns
        -------
        StateSpace
            Its states are those of (2-241): coordinates, rates, currents of motors with inductance.

        Raises
        ------
        UnknownNameError, InputError, SingularError, InertiaError
            As `linearize`; for inputs and outputs that are not there.

        Examples
        --------
        >>> import kic
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
        """What the motors do in a motion: speeds, torques, currents and voltages of each.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations of the coordinates.
        qddd : (..., M) array_like, optional
            Jerks, needed where a motor has inductance.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        Drive
            Arrays (..., K) for the K motors (eqs 2-238 to 2-240).

        Raises
        ------
        InputError
            Without motors, for another shape, without jerks where inductance asks for them, for a motion that
            the motors can not make, or more motors than freedoms, which leave torques open.
        SingularError, InertiaError
            As `dynamics`; or where motors depend on one another.

        Examples
        --------
        >>> import kic
        >>> from dataclasses import replace
        >>> crank = kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, resistance=0.5, torque_constant=0.02)
        >>> c = replace(kic.load("four-bar"), motors=[crank]).at({"A": 1.2})
        >>> c.drive([6.0], [0.0]).speed
        array([180.])
        """
        from kic.actuation.motors import motor_demand

        return motor_demand(self, qd, qdd, qddd, wrt, applied, failures)


def valued(joints: Iterable[Joint]) -> list[str]:
    """Components of joints that have values in a loop, too: all but those of balls."""
    return [c for j in joints if j.type != "spherical" for c in j.components[: 3 + 3 * (j.dof < 6)]]


def single_values(configuration: Configuration, names: Iterable[str]) -> np.ndarray:
    """Values (n,) of single rows of one posture, NaN where there is none."""
    found = []
    for name in names:
        try:
            found.append(configuration.value(name))
        except InputError:
            found.append(np.array(np.nan))
    return np.array(found)
