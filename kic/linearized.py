"""A posture with the questions that small deviations from a motion ask; see `Configuration`."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.arrays import broadcast_batches, trailing
from kic.errors import InputError
from kic.linearize import Linearization
from kic.members import spread, surviving
from kic.stiffness import Stiffness, commutator
from kic.taskspace import TaskSpace

if TYPE_CHECKING:
    from kic.dynamics import Dynamics


class Linearized(TaskSpace):
    """A posture with the questions that small deviations ask; see `Configuration`."""

    if TYPE_CHECKING:  # of the class above

        def dynamics(
            self,
            wrt: str | Iterable[str] | None = None,
            applied: dict[str, Any] | None = None,
            failures: Literal["raise", "mask"] = "raise",
        ) -> Dynamics: ...

    def linearize(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        effort: Any = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
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
        A pendulum of a crank-rocker, at rest where its efforts hold it:

        >>> import kic
        >>> lin = kic.load("four-bar").at({"A": 1.2}).linearize()
        >>> lin.T.round(4), lin.K.round(4)
        (array([0.2516]), array([[-0.1...]]))
        """
        model = self._model
        if model.tree.scalar.kind == "O" or self._states.dtype.kind == "O":
            raise InputError("linearize() is answered in numbers only; this posture holds symbols.")
        if qdd is not None and effort is not None:
            raise InputError("Expected `qdd` or `effort` of the nominal motion, got both. Leave one out.")
        d = self.dynamics(wrt, applied, failures)
        M = len(d.coordinates)
        v = np.zeros(M) if qd is None else trailing("qd", qd, M)
        if effort is not None:
            a = d.acceleration(v, trailing("effort", effort, M))
        else:
            a = np.zeros(M) if qdd is None else trailing("qdd", qdd, M)
        batch = broadcast_batches(posture=d.batch, qd=v.shape[:-1], qdd=a.shape[:-1])
        transfer = model.asked(wrt)
        force, _ = model.loads.applied(applied, self.name)
        count = prod(batch)

        def members(x: np.ndarray, *shape: int) -> np.ndarray:
            return np.broadcast_to(x, (*batch, *shape)).reshape(count, *shape)

        states, moving = members(self.state, self._states.shape[-1]), (members(v, M), members(a, M))
        if force.ndim > 2:
            force = members(force, *force.shape[-2:])
        else:
            force = force[None]
        dtype = np.result_type(states, force)
        states = np.require(states, dtype, ["C", "A", "W"])
        question = Stiffness(model, transfer, 3 if v.any() else 2)

        def answer(some: Any) -> np.ndarray:
            parts = question(
                states[some], *(x[some] for x in moving), force[some] if len(force) == count else force
            )
            return np.stack([*parts, commutator(model, transfer, states[some], moving[0][some])], axis=1)

        good, parts = surviving(np.broadcast_to(self.ok, batch), failures, answer)
        full = spread(parts, good).reshape(*batch, 3, M, M)
        if good.size and not good.all():
            full[~good] = np.nan
        return Linearization(d, (full[..., 0, :, :], full[..., 1, :, :]), v, a, full[..., 2, :, :])
