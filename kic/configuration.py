"""Configuration: the proof that a posture was solved, one or a batch, and the answers it gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.arguments import flag, names_of
from kic.arrays import broadcast_batches, check_finite, check_order
from kic.coefficients import Coefficients
from kic.contributions import Contributions
from kic.dynamics import Dynamics
from kic.errors import InputError
from kic.kinematics import ContributionsQuestion
from kic.linear.linearized import Linearized
from kic.members import spread, surviving
from kic.system import PIVOT
from kic.transfer import Transfer

if TYPE_CHECKING:
    from kic.bearing.jointforces import JointForces
    from kic.questions.singularities import Singularities


class Configuration(Linearized):
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
        transfer = model.asked(wrt)
        if transfer is None:
            question = model.rows(of, check_order(order))
            table: Any = question.answer
            ok, pivot = self._ok, None
            T = self._masked(question.table(self._states))
        else:
            names = names_of(of, least=1)
            chosen, asked = transfer, model.elsewhere(transfer, names, check_order(order))
            table = asked.answer
            good, found = surviving(
                self.ok, failures, lambda members: chosen.answer(asked, self._states[members])
            )
            T, pivot = spread(found.T, good), spread(found.quality[:, PIVOT], good).reshape(self.batch)
            ok = good
        model.check_distances(table.rows, T, ok)
        check_finite("Coefficients", self.name, T, None if ok is None else ok.reshape(-1))
        return model.assemble(table.rows, table.split(T, self.batch), transfer, pivot)

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
            return self.dynamics(wrt, applied, failures) + self._rotors(wrt, failures)
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
        transfer = model.asked(wrt)
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
        transfer: Transfer,
        states: np.ndarray,
        shape: tuple[int, ...],
        ok: np.ndarray | None,
        force: np.ndarray,
        failures: str,
    ) -> Dynamics:
        """Dynamics in chosen coordinates (3-34 to 3-36)."""
        model = self._model
        good, parts = surviving(
            np.ones(shape, dtype=bool) if ok is None else ok,
            failures,
            lambda members: model.transferred(
                transfer, states[members], force if len(force) == 1 else force[members]
            ),
        )
        model.check_springs(parts[2], None)
        for quantity, part in zip(("I*", "P*", "Loads", "Damping"), parts, strict=True):
            check_finite(quantity, self.name, part)
        full = [spread(part, good).reshape(*shape, *part.shape[1:]) for part in parts]

        def error() -> np.ndarray:
            found = model.inertia_error_at(transfer, states[good.reshape(-1)])
            return spread(found, good).reshape(*shape, found.shape[-1])

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
        transfer = model.asked(wrt)
        if transfer is None:
            question = model.contributions
            T = self._masked(question.table(self._states))
            check_finite("Contributions", self.name, T, None if self._ok is None else self._ok.reshape(-1))
            parts = model.in_coordinates(question.split(T, self.batch), (2, 2, 3, 3))
            return Contributions(model.masses.names, model.coordinates, *parts)
        chosen, question = transfer, ContributionsQuestion(model.tree, model.masses, transfer.first)

        def shares(members: Any) -> np.ndarray:
            states = self._states[members]
            return question.table(states, chosen.solve(states, 2).X)

        good, T = surviving(self.ok, failures, shares)
        check_finite("Contributions", self.name, T)
        T = spread(T, good)
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
        from kic.bearing.reactions import joint_forces

        return joint_forces(
            self._model,
            self._model.asked(wrt),
            self.state,
            self._ok,
            {"qd": qd, "qdd": qdd},
            applied,
            actuators,
            split,
            effort,
        )

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
        from kic.questions.singularities import Singularities

        if self._states.dtype != np.float64:
            raise InputError(
                f"singularities() needs real numbers; this posture holds {self._states.dtype}. Ask outside "
                "of a sensitivity, or with real inputs."
            )
        model = self._model
        return Singularities(
            model,
            self._states,
            self.ok,
            inputs,
            outputs,
            lambda state: Configuration(model, (), state[None]),
            self._aims,
        )
