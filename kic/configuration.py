"""Configuration: the proof that a posture was solved, one or a batch, and the answers it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.arrays import broadcast_batches, check_order
from kic.coefficients import Coefficients
from kic.contributions import Contributions
from kic.dynamics import Dynamics
from kic.errors import InputError
from kic.kinematics import ContributionsQuestion
from kic.model import Model
from kic.posture import phi_of
from kic.rows import names_of
from kic.tables import Sheet, member
from kic.transfer import Transfer

if TYPE_CHECKING:
    from scipy.spatial.transform import RigidTransform


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
        self, model: Model, batch: tuple[int, ...], states: np.ndarray, ok: np.ndarray | None = None
    ) -> None:
        self._model = model
        self._states = states
        self._batch = batch
        self._ok = ok

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
        return self._model.drawing.name

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

    def _masked(self, T: np.ndarray) -> np.ndarray:
        """NaN in every number of the members that have no posture."""
        if self._ok is not None:
            T[~self._ok.reshape(-1)] = np.nan
        return T

    def _filled(self, width: tuple[int, ...], answer: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """An answer (B, …) for the members that have a posture, NaN for the others."""
        if self._ok is None:
            return answer(self._states)
        ok = self._ok.reshape(-1)
        T = np.full((len(ok), *width), np.nan, self._states.dtype)
        if ok.any():
            T[ok] = answer(self._states[ok])
        return T

    def coefficients(
        self, of: str | Iterable[str], order: int = 2, wrt: str | Iterable[str] | None = None
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
            table, T = question.answer, self._masked(question.table(self._states))
            model.check_distances(table.rows, T, self._ok)
            return model.assemble(table.rows, table.split(T, self.batch))
        chosen, asked = transfer, model.elsewhere(transfer, names_of(of), check_order(order))
        table = asked.answer
        T = self._filled((asked.width,), lambda states: chosen.answer(asked, states).T)
        model.check_distances(table.rows, T, self._ok)
        return model.assemble(table.rows, table.split(T, self.batch), transfer)

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
        question = self._model.rows(name, 1)
        rows = question.answer.rows
        if not rows.holonomic:
            raise InputError(
                f"'{name}' includes angular velocities, which have no value. "
                "Ask for a point, or for the pose() of a body."
            )
        values = rows.complete(
            question.answer.split(self._masked(question.table(self._states)), self.batch)[0]
        )
        if rows.select is not None:
            values = values[..., rows.select]
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
        model.drawing.part(body, "bodies")
        if self._states.dtype != np.float64:
            raise InputError(f"pose() needs real numbers; this posture holds {self._states.dtype}.")
        if self._ok is not None:
            raise InputError(
                f"pose() needs every member, but {int((~self.ok).sum())} of {self.ok.size} have no posture."
            )
        question = model.pose(body)
        p = question.answer.split(question.table(self._states), self.batch)[0].reshape(*self.batch, 4, 3)
        T = np.zeros((*self.batch, 4, 4))
        T[..., 3, 3] = 1
        T[..., :3, 3] = p[..., 0, :]
        # columns of the rotation: where the drawing's unit vectors have gone
        T[..., :3, :3] = np.swapaxes(p[..., 1:, :], -1, -2)
        return T

    def dynamics(
        self, wrt: str | Iterable[str] | None = None, applied: dict[str, Any] | None = None
    ) -> Dynamics:
        """I*, P* and loads in any coordinates.

        Parameters
        ----------
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.

        Returns
        -------
        Dynamics
            I* (..., M, M), P* (..., M, M, M), Tᴸ (..., M) (eqs 2-196, 2-197, 2-125, 2-147).

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        InputError
            For a force that is not there, or a spring whose ends meet.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 0.0]).dynamics().load
        array([-19.62 ,  -4.905])
        """
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
            if ok is not None:
                T[~ok.reshape(-1)] = np.nan
            I, P, load, damping = model.in_coordinates(parts, (2, 3, 1, 2))
            return Dynamics(model.coordinates, I, P, load, damping, holonomic=not model.tree.balls)
        return self._transferred(transfer, states, shape, ok, force)

    def _transferred(
        self,
        transfer: Transfer,
        states: np.ndarray,
        shape: tuple[int, ...],
        ok: np.ndarray | None,
        force: np.ndarray,
    ) -> Dynamics:
        """Dynamics in chosen coordinates: I* and P* by contraction, loads by Aᵀ (3-34 to 3-36)."""
        model, count = self._model, len(states)
        good = np.ones(count, dtype=bool) if ok is None else ok.reshape(-1)
        states = states[good]
        parts = model.transferred(transfer, states, force if len(force) == 1 else force[good])
        model.check_springs(parts[2], None)
        full = []
        for part in parts:
            whole = np.full((count, *part.shape[1:]), np.nan, part.dtype)
            whole[good] = part
            full.append(whole.reshape(*shape, *part.shape[1:]))
        I, P, load, damping = full
        return Dynamics(transfer.labels, I, P, load, damping, holonomic=transfer.holonomic)

    def contributions(self, wrt: str | Iterable[str] | None = None) -> Contributions:
        """Freeman's sums: what each body contributes to I* and P*, by linear and angular momentum.

        Parameters
        ----------
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.

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
            parts = model.in_coordinates(question.split(T, self.batch), (2, 2, 3, 3))
            return Contributions(model.masses.names, model.coordinates, *parts)
        chosen, question = transfer, ContributionsQuestion(model.tree, model.masses, transfer.first)
        T = self._filled(
            (len(model.masses.names), question.width),
            lambda states: question.table(states, chosen.solve(states, 2).X),
        )
        return Contributions(model.masses.names, transfer.labels, *question.split(T, self.batch))

    def sheet(self) -> Sheet:
        """Labelled table of the posture, to print or to show."""
        sheet = Sheet(f"{self.name}: posture")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if self._ok is not None:
            sheet.say(f"{int((~self.ok).sum())} of {self.ok.size} members have no posture")
        if index is not None:
            names = self.coordinates if self._model.direct else self._model.tree.columns
            sheet.matrix("coordinates", names, ["value"], self.phi[index][:, None])
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
