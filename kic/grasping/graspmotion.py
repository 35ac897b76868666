"""Grasp motion: how fingers move with what they hold, with what loads and efforts, and whether they can."""

from __future__ import annotations

import numpy as np

from kic.grasping.pressing import SMALL, judged, remarks
from kic.tables import Sheet, member


class GraspMotion:
    """Motion of the fingers, loads of the contacts and efforts for a motion of a body that is held.

    Attributes
    ----------
    held : str
        The body.
    contacts, kinds : tuple of str
        Names and types of the K contacts.
    rows, fingers, coordinates : tuple of str
        Names of the R rows of the contacts, of the coordinates of the fingers (n) and of the object's (m).
    rate, acceleration : (..., n)
        Of the fingers' coordinates.
    object_rate, object_acceleration : (..., m)
        Of the object's.
    wrench : (..., m)
        What the object needs from its contacts, at its coordinates: its inertia less gravity and other loads.
    force : (..., R)
        Loads of the contacts, along their rows.
    contact_force, contact_moment : (..., K, 3)
        The same in world axes: what the first body of each contact exerts on the second, at the contact.
    effort : (..., n)
        Efforts at the fingers' coordinates.
    normal_force : (..., K)
        Forces along the normals; positive where the contact pushes.
    pulling : (..., K) bool
        Contacts that would have to pull, which only a pin can: they come off.
    slipping : (..., K) bool
        Contacts that push, but need more friction than they have, fₜ > μ fₙ, or of soft fingers
        (fₜ / μ)² + (m / γ)² > fₙ², with the length γ of torsion.

    Examples
    --------
    >>> import kic
    >>> walker = kic.load("quadruped").at()
    >>> step = walker.grasp("trunk").motion()
    >>> step.normal_force.sum().round(6), bool(step.pulling.any())
    (np.float64(294.3), False)
    """

    def __init__(
        self,
        held: str,
        contacts: tuple[str, ...],
        kinds: tuple[str, ...],
        names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]],
        moved: tuple[np.ndarray, np.ndarray],
        loads: tuple[np.ndarray, np.ndarray, np.ndarray],
        bounds: tuple[np.ndarray, np.ndarray],
        size: np.ndarray,
        contact_force: np.ndarray,
        contact_moment: np.ndarray,
    ) -> None:
        self.held, self.contacts, self.kinds = held, contacts, kinds
        self.rows, self.fingers, self.coordinates = names
        count = len(self.fingers)
        self.rate, self.object_rate = moved[0][..., :count], moved[0][..., count:]
        self.acceleration, self.object_acceleration = moved[1][..., :count], moved[1][..., count:]
        self.effort, self.wrench, self.force = loads
        self.contact_force, self.contact_moment = contact_force, contact_moment
        at = {row: k for k, row in enumerate(self.rows)}
        self.normal_force = self.force[..., [at[f"{name}.n"] for name in contacts]]
        pinned = np.array([kind == "pinned" for kind in kinds])
        # of a body in free fall the loads are round-off of its weight and its inertia
        small = SMALL * np.maximum(np.abs(self.force).max(axis=-1, initial=0.0), size)[..., None]
        self._pressed = np.where(np.abs(self.normal_force) > small, self.normal_force, 0.0)
        tangents = [[at[row] for row in (f"{name}.t1", f"{name}.t2") if row in at] for name in contacts]
        across = np.stack([np.linalg.norm(self.force[..., two], axis=-1) for two in tangents], axis=-1)
        moment = np.linalg.norm(contact_moment, axis=-1)
        self.pulling, self.slipping = judged(self.normal_force, across, moment, bounds, pinned, small)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.effort.shape[:-1]

    @property
    def feasible(self) -> np.ndarray:
        """Whether no contact has to pull or slips, (...) bool."""
        known = np.isfinite(self.force).all(axis=-1)
        return known & ~(self.pulling | self.slipping).any(axis=-1)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What contacts can not do, in words; none where all is well."""
        return remarks(self.contacts, self._pressed, self.pulling, self.slipping)

    def sheet(self) -> Sheet:
        """Labelled tables, to print or to show."""
        sheet = Sheet(f"motion of '{self.held}' in its grasp")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is not None:
            three = np.stack([self.rate[index], self.acceleration[index], self.effort[index]], axis=-1)
            sheet.matrix("fingers", self.fingers, ["rate", "acceleration", "effort"], three)
            on = np.stack(
                [self.object_rate[index], self.object_acceleration[index], self.wrench[index]], axis=-1
            )
            sheet.matrix(self.held, self.coordinates, ["rate", "acceleration", "load of contacts"], on)
            both = np.concatenate([self.contact_force[index], self.contact_moment[index]], axis=-1)
            both = np.concatenate([self.normal_force[index][:, None], both], axis=-1)
            columns = ["along n", "fx", "fy", "fz", "mx", "my", "mz"]
            sheet.matrix("contacts, of the first body on the second", self.contacts, columns, both)
        for remark in self.remarks:
            sheet.say(remark)
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
