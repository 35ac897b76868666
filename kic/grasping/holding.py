"""Holding: what a posture answers about bodies that are held by contacts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, cast

from kic.arrays import check_failures, check_order
from kic.tasks.taskspace import TaskSpace

if TYPE_CHECKING:
    from kic.grasping.grasp import Answers, Grasp


class Holding(TaskSpace):
    """A posture with the questions that a hand or a walker asks; see `Configuration`."""

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
        from kic.configuration import Configuration
        from kic.grasping.grasp import Grasp
        from kic.grasping.touching import contacts_of, coordinates_of

        check_failures(failures)
        model = self._model
        contacts = contacts_of(model, held)
        opened = model.opened(tuple(contact.name for contact in contacts))
        names = coordinates_of(opened, held, fingers)
        apart = Configuration(opened, self.batch, self._states, self._ok)
        return Grasp(
            cast("Answers", self),
            cast("Answers", apart),
            opened,
            held,
            contacts,
            names,
            self._masked(self.state.reshape(self._states.shape)).reshape(self.state.shape),
            check_order(order),
            failures,
        )
