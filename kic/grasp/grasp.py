"""Grasps: a body and what holds it by contacts, fingers an object, or legs on the ground a trunk.

With its contacts open, a hand and its object move in y = (fingers θ, object x). The rows of the contacts,
the motion of what is touched relative to what touches it, have first order [−J, Gᵀ] there; closed contacts
keep them at zero, J θ̇ = Gᵀ ẋ, and their loads f enter the dynamics of the open mechanism by the same matrix:

    T = (I* ÿ + ẏᵀ P* ẏ − Tᴸ)_θ + Jᵀ f          G f = (I* ÿ + ẏᵀ P* ẏ − Tᴸ)_x
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from kic.actuation.internal_loads import canonical
from kic.configuration import Configuration
from kic.description.contacts import CONTACT_ROWS, Contact
from kic.description.units import row_unit
from kic.description.validation import GROUND
from kic.display import Summary, member
from kic.dynamics.friction import SMALL, classify_contacts, remarks
from kic.errors import InputError, SingularError, short_repr
from kic.grasp.contacts import ContactSet, Frames, contacts_of, coordinates_of, frames_of
from kic.grasp.force_closure import GraspClosure, force_closure
from kic.grasp.grip import Criterion, grip_forces
from kic.numerics.arguments import names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_failures, check_order
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.rank import RANK_SHARE


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
        self.pulling, self.slipping = classify_contacts(
            self.normal_force, across, moment, bounds, pinned, small
        )

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

    def summary(self) -> Summary:
        """Labelled tables, to print or to show."""
        sheet = Summary(f"motion of '{self.held}' in its grasp")
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
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


# forces that were chosen must hold the object to this share of what it needs; the rest is put right
BALANCED = 1e-6
# what contacts can not hold is more than this share of all
HELD = 1e-9

_ROWS = CONTACT_ROWS["soft"]

Choice = str | np.ndarray | Callable[["Grasp", np.ndarray], Any]


class Grasp:
    """A body and what holds it by contacts: fingers an object, or legs on the ground a trunk.

    ``G f`` is the wrench on the object that loads f of its contacts make. Their rows are those of the
    contacts: the force along the normal (positive: it pushes) and along both tangents with which the first
    body acts on the second, and the moment of a soft finger. Where a body stands on ground, f acts on the
    ground, and ``G f`` is what comes back. Made by `Configuration.grasp`.

    Attributes
    ----------
    held : str
        The body.
    contacts : tuple of Contact
        The K contacts.
    rows : tuple of str
        Names of the R rows of all contacts, such as "tip1.n".
    fingers, coordinates : tuple of str
        Names of the coordinates of the fingers (n), and of the object's (m).
    point : (..., K, 3)
        Points of contact in the world.
    normal, tangent1, tangent2 : (..., K, 3)
        Unit vectors, t1 × t2 = n: n is the direction in which the first body pushes the second.
    spin : (..., K, 3)
        What the moment of a soft finger is about: n, but for what the finger has tilted about t2.
    reference : (..., 3)
        The object's reference point.
    friction, torsion : (K,)
        Coefficients of friction and lengths of torsion, 0 where there are none.
    inward : (..., K, 3)
        Directions in which the object itself is pushed: n, or −n where it stands on what it touches.
    signs : (R,)
        What turns loads of the rows into components of what acts on the object, along inward, t1 and
        inward × t1, and back.
    G : (..., 6, R)
        Grasp map: force and moment about the object's reference point, in world axes, of unit loads.
    J : (..., R, n)
        Hand Jacobian: velocity of the first bodies at the contacts, along the rows, by the fingers.
    relative : Coefficients
        Rows of the contacts, second body relative to first, with respect to fingers and object while the
        contacts are open: G = [−J, Gᵀ], with its second order, without rolling.

    Examples
    --------
    >>> import kic
    >>> hand = kic.load("three-finger-hand").at()
    >>> g = hand.grasp("ball")
    >>> g.G.shape, g.J.shape, g.internal.shape
    ((6, 9), (9, 9), (9, 3))
    >>> m = g.motion()                                 # at rest: what the weight takes
    >>> (g.G @ m.force).round(6)[2]
    np.float64(2.943)
    """

    def __init__(
        self,
        closed: Configuration,
        opened: Configuration,
        model: CompiledModel,
        held: str,
        contacts: tuple[Contact, ...],
        names: tuple[tuple[str, ...], tuple[str, ...]],
        states: np.ndarray,
        order: int,
        failures: Literal["raise", "mask"],
    ) -> None:
        self._closed, self._opened, self._model, self._failures = closed, opened, model, failures
        self._names, self._states = names, states
        self.held, self.contacts = held, contacts
        self.rows = tuple(row for contact in contacts for row in contact.rows)
        self.friction = np.array([contact.friction or 0.0 for contact in contacts])
        self.torsion = np.array([contact.torsion or 0.0 for contact in contacts])
        frames = frames_of(model, held, contacts, states)
        self.point, self.spin, self.reference = frames.point, frames.spin, frames.reference
        # the first body acts on the second: on the object, or back from what it touches, such as the ground
        self._back = np.array([c.bodies[0] == held or c.bodies[1] == GROUND for c in contacts])
        self.normal, self.tangent1, self.tangent2 = (frames.axes[..., k, :] for k in range(3))
        # of each row its contact, and which of n, t1, t2, s it is
        self._owner = np.array(
            [k for k, c in enumerate(contacts) for _ in CONTACT_ROWS[c.type]], dtype=np.intp
        )
        self._which = np.array([_ROWS.index(r) for c in contacts for r in CONTACT_ROWS[c.type]])
        self._directions = np.concatenate([frames.axes, frames.spin[..., None, :]], axis=-2)[
            ..., self._owner, self._which, :
        ]
        self.inward = np.where(self._back[:, None], -self.normal, self.normal)
        self.signs = np.where(self._back[self._owner] & (self._which == 1), -1.0, 1.0)
        self.G = self._map(frames)
        self.relative = opened.coefficients(self.rows, order, [*names[0], *names[1]], failures)
        fingers, own = self._split(self.relative.columns)
        self.fingers, self.coordinates = fingers, own
        self.J = -self.relative.G[..., : len(fingers)]

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

    def _split(self, columns: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Labels of the fingers and of the object."""
        count = sum(len(self._model.rows(name, 1).layout.rows.labels) for name in self._names[1])
        return columns[: len(columns) - count], columns[len(columns) - count :]

    def _map(self, frames: Frames) -> np.ndarray:
        """Grasp map from places and directions."""
        d, pushes = self._directions, (self._which < 3)[:, None]
        arm = (frames.point - frames.reference[..., None, :])[..., self._owner, :]
        wrench = np.concatenate([d * pushes, np.where(pushes, np.cross(arm, d), d)], axis=-1)
        onto = np.where(self._back, -1.0, 1.0)
        return np.swapaxes(wrench * onto[self._owner, None], -1, -2)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.G.shape[:-2]

    @property
    def _turning(self) -> np.ndarray:
        """Which of the object's coordinates (m,) are angles, so that loads there are moments."""
        return np.array([row_unit(self._model.description, label) == "rad" for label in self.coordinates])

    @property
    def _scales(self) -> tuple[np.ndarray, np.ndarray]:
        """What loads at the object (m,) and at the contacts (R,) are divided by: a length for moments."""
        length = self._model.length
        return np.where(self._turning, length, 1.0), np.where(self._which == 3, length, 1.0)

    @property
    def _balance(self) -> np.ndarray:
        """Scaled matrix (..., m, R) from loads of the contacts to loads at the object's coordinates."""
        W = np.swapaxes(self.relative.G[..., len(self.fingers) :], -1, -2)
        at, of = self._scales
        return W * of / at[:, None]

    @property
    def rank(self) -> np.ndarray:
        """How many of the object's m loads (...) the contacts can balance, whatever their friction.

        0 for members without a posture.
        """
        W = self._balance
        sizes = np.linalg.svd(np.where(np.isfinite(W), W, 0.0), compute_uv=False)
        return (sizes > RANK_SHARE * sizes.max(axis=-1, keepdims=True, initial=0.0)).sum(axis=-1)

    @property
    def internal(self) -> np.ndarray:
        """Internal loads (..., R, k): a basis of those that do nothing to the object.

        Orthonormal, the moments of soft fingers divided by the largest extent of the drawing. The first is
        the nearest to a load along one row, of the row that it comes nearest to; so are the next, of what is
        left. Of an object that moves in a plane, loads across it are among them: its joint takes them.

        Raises
        ------
        SingularError
            For a batch whose members have different numbers of them.
        InputError
            For a posture that holds complex numbers.
        """
        self._only_real("Internal loads need")
        W = self._balance
        known = np.isfinite(W).all(axis=(-2, -1))
        ranks = sorted(set(self.rank[known].tolist()))
        if len(ranks) > 1:
            raise SingularError(
                f"The contacts of '{self.held}' balance {ranks[0]} to {ranks[-1]} loads over this batch, so "
                "that internal loads differ in number. Ask for its members one by one.",
                ranks=tuple(ranks),
            )
        V = np.linalg.svd(np.where(known[..., None, None], W, 0.0))[2]
        kept = ranks[0] if ranks else min(W.shape[-2:])
        spanned = np.swapaxes(V[..., kept:, :], -1, -2)
        basis = canonical(spanned.reshape(-1, *spanned.shape[-2:])).reshape(spanned.shape)
        return np.where(known[..., None, None], basis * self._scales[1][:, None], np.nan)

    def _only_real(self, what: str) -> None:
        if self._states.dtype != np.float64:
            raise InputError(f"{what} real numbers; this posture holds {self._states.dtype}.")

    def motion(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        forces: Choice = "minimum norm",
    ) -> GraspMotion:
        """Motion of the fingers, loads of the contacts and efforts for a motion of the object.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the coordinates `wrt`; at rest if left out.
        wrt : str or list of str, optional
            Coordinates of the closed mechanism, as many as it has freedoms; by default the object's.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.
        forces : "minimum norm", (..., R) array_like, or callable
            Which of the loads that hold the object: those whose sum of squares is least (moments divided by
            the largest extent of the drawing), given ones, or what ``forces(grasp, wrench)`` returns,
            (..., R), for the loads (..., m) that the object needs. Chosen ones that miss it by less than a
            millionth are put right by the least change.

        Returns
        -------
        GraspMotion

        Raises
        ------
        InputError
            For other shapes, coordinates of another number than freedoms, or loads that do not hold it.
        SingularError
            If no loads of the contacts hold it, with what is missing; or where `wrt` can not drive.

        Examples
        --------
        >>> import kic
        >>> g = kic.load("three-finger-hand").at().grasp("ball")
        >>> least = g.motion()
        >>> firm = g.motion(forces=least.force + g.internal @ [5.0, 0.0, 0.0])
        >>> bool(abs(g.G @ (firm.force - least.force)).max() < 1e-12)
        True
        """
        self._only_real("motion() needs")
        asked = self._names[1] if wrt is None else names_of(wrt, "wrt")
        both = [*self._names[0], *self._names[1]]
        A = self._closed.coefficients(both, 2, asked, self._failures)
        v, a = (
            as_array(key, np.zeros(len(A.columns)) if given is None else given, len(A.columns))
            for key, given in (("qd", qd), ("qdd", qdd))
        )
        d = self._opened.dynamics(both, applied, self._failures)
        batch = broadcast_batches(grasp=d.batch, qd=v.shape[:-1], qdd=a.shape[:-1])
        # members without a posture have no rates, and NaN in all that follows
        rate, acceleration = (
            np.broadcast_to(x, (*batch, x.shape[-1])) for x in (A.velocity(v), A.acceleration(v, a))
        )
        known = np.isfinite(rate).all(axis=-1, keepdims=True)
        efforts = d.inverse_dynamics(np.where(known, rate, 0.0), np.where(known, acceleration, 0.0))
        count = len(self.fingers)
        wrench = efforts[..., count:]
        # the parts of what the object needs, which may cancel: round-off is told against these
        inertial = np.einsum("...ij,...j->...i", d.I, np.where(known, acceleration, 0.0))
        parts = (np.abs(efforts) + np.abs(inertial) + np.abs(d.load))[..., count:]
        size = np.linalg.norm(parts / self._scales[0], axis=-1)
        force = self._loads(forces, wrench, size)
        return GraspMotion(
            self.held,
            tuple(contact.name for contact in self.contacts),
            self.kinds,
            (self.rows, self.fingers, self.coordinates),
            (rate, acceleration),
            (efforts[..., :count] + np.einsum("...rn,...r->...n", self.J, force), wrench, force),
            (self.friction, self.torsion),
            size,
            self._along(force, self._which < 3),
            self._along(force, self._which == 3),
        )

    def _along(self, force: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Vectors (..., K, 3) of the loads at some rows, in the world."""
        owned = (np.arange(len(self.contacts))[:, None] == self._owner) & some
        return np.einsum("kr,...r,...rc->...kc", owned.astype(float), force, self._directions)

    def _loads(self, forces: Choice, wrench: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Loads (..., R) of the contacts that hold the object with these (..., m), of parts of such size."""
        at, of = self._scales
        W, w = self._balance, wrench / at
        fine = np.isfinite(w).all(axis=-1) & np.isfinite(W).all(axis=(-2, -1))
        W = np.where(np.isfinite(W), W, 0.0)
        w = np.where(fine[..., None], w, 0.0)
        inverse = np.linalg.pinv(W, rcond=RANK_SHARE)
        least = np.einsum("...rm,...m->...r", inverse, w)
        left = w - np.einsum("...mr,...r->...m", W, least)
        size = np.where(fine, size, 0.0)
        loose = np.linalg.norm(left, axis=-1) > HELD * size
        if loose.any() and self._failures == "raise":
            self._refuse(left, size, loose)
        fine = fine & ~loose
        if isinstance(forces, str):
            if forces != "minimum norm":
                raise InputError(
                    f"Expected `forces` to be 'minimum norm', loads of the {len(self.rows)} rows, or a "
                    f"callable that makes them, got {short_repr(forces)}."
                )
            return np.where(fine[..., None], least, np.nan) * of
        given = forces(self, np.where(fine[..., None], wrench, np.nan)) if callable(forces) else forces
        f = as_array("forces", given, len(self.rows), finite=bool(fine.all())) / of
        broadcast_batches(grasp=wrench.shape[:-1], forces=f.shape[:-1])
        miss = w - np.einsum("...mr,...r->...m", W, f)
        off = np.linalg.norm(miss, axis=-1)
        if (off > BALANCED * np.maximum(size, np.linalg.norm(f, axis=-1))).any():
            raise InputError(
                f"The loads in `forces` do not hold '{self.held}': what is left of what it needs is "
                f"{np.nanmax(off):.2g} {self._model.description.units.force}. Add internal loads to those of "
                "minimum norm, which change nothing for the object.",
                left=float(np.nanmax(off)),
            )
        return np.where(fine[..., None], f + np.einsum("...rm,...m->...r", inverse, miss), np.nan) * of

    def _refuse(self, left: np.ndarray, size: np.ndarray, loose: np.ndarray) -> None:
        """No loads of the contacts hold the object, in some members."""
        missed, failed = np.linalg.norm(left, axis=-1).ravel(), np.flatnonzero(loose.ravel())
        worst = int(failed[np.argmax(missed[failed] / size.ravel()[failed])])
        scaled = left.reshape(-1, left.shape[-1])[worst]
        rank = int(np.broadcast_to(self.rank, size.shape).flat[worst])
        way = scaled * self._scales[0]
        share = np.abs(scaled) > 1e-6 * np.abs(scaled).max()
        units = self._model.description.units
        said = ", ".join(
            f"{x:.3g} {units.force}{f' {units.length}' if turns else ''} at {label}"
            for label, x, turns, there in zip(self.coordinates, way, self._turning, share, strict=True)
            if there
        )
        which = f" (member {worst}, the worst of {len(failed)} such of {size.size})" if size.ndim else ""
        raise SingularError(
            f"The contacts of '{self.held}' cannot hold it{which}, whatever their friction and however hard "
            f"they press: what is left is {said}. They balance {rank} of its {len(self.coordinates)} loads; "
            "give it another contact, or one that holds more.",
            left=way,
            rank=rank,
            failed=failed.tolist(),
        )

    def summary(self) -> Summary:
        """Labelled tables of the contacts and the grasp map, to print or to show."""
        sheet = Summary(f"grasp of '{self.held}' by {len(self.contacts)} contacts")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is not None:
            names = [f"{c.name} ({c.type}, {' on '.join(c.bodies)})" for c in self.contacts]
            place = np.concatenate([self.point[index], self.normal[index]], axis=-1)
            sheet.matrix("contacts", names, ["x", "y", "z", "nx", "ny", "nz"], place)
            sheet.matrix("G (grasp map)", ["fx", "fy", "fz", "mx", "my", "mz"], self.rows, self.G[index])
            sheet.matrix("J (hand Jacobian)", self.rows, self.fingers, self.J[index])
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def grasp(
    configuration: Configuration,
    held: str,
    fingers: str | Iterable[str] | None = None,
    order: int = 2,
    failures: Literal["raise", "mask"] = "raise",
) -> Grasp:
    """How contacts hold a body: grasp map, hand Jacobian, and what moving it takes.

    See `Configuration.grasp`.
    """
    check_failures(failures)
    model = configuration._model
    contacts = contacts_of(model, held)
    opened = model.with_open_contacts(tuple(contact.name for contact in contacts))
    names = coordinates_of(opened, held, fingers)
    apart = Configuration(opened, configuration.batch, configuration._states, configuration._ok)
    return Grasp(
        configuration,
        apart,
        opened,
        held,
        contacts,
        names,
        configuration._masked(configuration.state.reshape(configuration._states.shape)).reshape(
            configuration.state.shape
        ),
        check_order(order),
        failures,
    )
