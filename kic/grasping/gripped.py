"""Gripped: what friction lets the contacts of a grasp do, from its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from kic.contacts import Contact
from kic.grasping.contactset import ContactSet
from kic.grasping.forceclosure import GraspClosure, force_closure
from kic.grasping.gripping import Criterion, grip_forces


class Gripped:
    """A grasp with the questions of friction; see `Grasp`."""

    contacts: tuple[Contact, ...]
    point: np.ndarray
    inward: np.ndarray
    tangent1: np.ndarray
    reference: np.ndarray
    friction: np.ndarray
    torsion: np.ndarray
    signs: np.ndarray

    @property
    def kinds(self) -> tuple[str, ...]:
        """Types of the contacts."""
        return tuple(contact.type for contact in self.contacts)

    @property
    def contact_set(self) -> ContactSet:
        """The contacts as they act on the object, for `force_closure`, `grip_forces` and `largest_load`.

        Their components are ``signs`` times the rows of the grasp, their Jacobian is ``signs[:, None] * J``.
        """
        return ContactSet(
            self.point,
            self.inward,
            self.kinds,
            mu=self.friction,
            gamma=self.torsion,
            about=self.reference,
            tangents=self.tangent1,
            names=[contact.name for contact in self.contacts],
        )

    def closure(self, method: Literal["cones", "pyramids"] = "cones") -> GraspClosure:
        """Whether the contacts can hold any load, with friction; see `force_closure`.

        Parameters
        ----------
        method : {"cones", "pyramids"}
            As in `force_closure`.

        Returns
        -------
        GraspClosure

        Raises
        ------
        KicError
            Where the solver is needed and not installed.

        Examples
        --------
        >>> import kic
        >>> bool(kic.load("three-finger-hand").at().grasp("ball").closure().closed)
        True
        """
        return force_closure(self.contact_set, method)

    def grip(
        self, criterion: Criterion = "minimum norm", least: float = 0.0, safety: float = 1.0
    ) -> Callable[[Any, np.ndarray], np.ndarray]:
        """Contact forces within the friction cones, as `motion` takes them: ``g.motion(…, forces=g.grip())``.

        Parameters
        ----------
        criterion : {"minimum norm", "minimum largest"}
            As in `grip_forces`, where joints can have limits, too.
        least : float
            Normal force that every contact has at least.
        safety : float
            Divides the coefficients of friction.

        Returns
        -------
        callable
            Of a grasp and the wrench (..., 6) that it needs, loads (..., R) of its rows. It raises what
            `grip_forces` does, where the contacts can not hold.

        Examples
        --------
        >>> import kic
        >>> g = kic.load("three-finger-hand").at().grasp("ball")
        >>> m = g.motion(None, [0, 0, 2.0, 0, 0, 0], forces=g.grip(safety=1.2))
        >>> bool(m.feasible)
        True
        """

        def forces(grasp: Any, wrench: np.ndarray) -> np.ndarray:
            held = grip_forces(grasp.contact_set, -wrench, criterion, least=least, safety=safety)
            return np.asarray(grasp.signs * held.force)

        return forces
