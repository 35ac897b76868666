"""Grasps: a body held by contacts, such as an object by fingers, or a trunk by legs on the ground.

With open contacts, a hand and its object move in y = (fingers θ, object x). The rows of the contacts, motion
of the second body relative to the first, have the Jacobian [−J, Gᵀ]. Closed contacts keep them at zero,
J θ̇ = Gᵀ ẋ, and the contact loads f enter the dynamics of the open mechanism by the same matrix:

    T = (I* ÿ + ẏᵀ P* ẏ − Tᴸ)_θ + Jᵀ f          G f = (I* ÿ + ẏᵀ P* ẏ − Tᴸ)_x
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NoReturn

import numpy as np

from kic.description.contacts import CONTACT_ROWS
from kic.description.units import row_unit
from kic.description.validation import GROUND
from kic.dynamics.friction import CONTACT_LOAD_RTOL, classify_contacts, remarks
from kic.errors import InputError, SingularError, invalid
from kic.kinematics.outputs import WRENCH_LABELS
from kic.mechanism.configuration import Configuration, flat_states, model_of, require_solved
from kic.numerics.arguments import check_order, is_function, names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_failures, one_batch_axis
from kic.numerics.display import Batched, Summary
from kic.numerics.tolerances import RANK_RTOL
from kic.tasks.actuation.internal_loads import canonical
from kic.tasks.grasp.contacts import (
    MOMENT,
    ContactFrames,
    ContactSet,
    contacts_of,
    coordinates_of,
    frames_of,
)
from kic.tasks.grasp.force_closure import GraspClosure, force_closure
from kic.tasks.grasp.grip import Criterion, grip_forces


class GraspMotion(Batched):
    """Motion of the fingers, contact loads and efforts for a motion of a held body.

    Attributes
    ----------
    body : str
        Name of the body.
    contacts, kinds : tuple of str
        Names and types of the K contacts.
    rows, fingers, coordinates : tuple of str
        Names of the R rows of the contacts, of the n coordinates of the fingers and of the m coordinates of
        the object.
    rate, acceleration : (..., n)
        Rates and accelerations of the coordinates of the fingers.
    object_rate, object_acceleration : (..., m)
        Rates and accelerations of the coordinates of the object.
    wrench : (..., m)
        Load that the object requires from its contacts, at its coordinates: inertia less gravity and other
        loads.
    force : (..., R)
        Contact loads along the rows.
    contact_force, contact_moment : (..., K, 3)
        Contact loads in world axes: of the first body of each contact on the second, at the contact.
    effort : (..., n)
        Efforts at the coordinates of the fingers.
    normal_force : (..., K)
        Normal forces, positive in compression.
    pulling : (..., K) bool
        Unilateral contacts that would be in tension; they separate.
    slipping : (..., K) bool
        Contacts in compression whose friction limit is exceeded: fₜ > μ fₙ, or for soft fingers (fₜ / μ)² +
        (m / γ)² > fₙ², with the length γ of torsion.

    Examples
    --------
    >>> walker = kic.load("quadruped").at()
    >>> step = walker.grasp("trunk").motion()
    >>> step.normal_force.sum().round(6), bool(step.pulling.any())
    (np.float64(294.3), False)
    """

    _one_line = ("body", "contacts", "coordinates", "batch")
    _per_member = ("effort", 1)

    def __init__(
        self,
        grasp: Grasp,
        rate: np.ndarray,
        acceleration: np.ndarray,
        loads: tuple[np.ndarray, np.ndarray, np.ndarray],
        size: np.ndarray,
    ) -> None:
        self.body, self.contacts, self.kinds = grasp.body, tuple(c.name for c in grasp.contacts), grasp.kinds
        self.rows, self.fingers, self.coordinates = grasp.rows, grasp.fingers, grasp.coordinates
        count = len(self.fingers)
        self.rate, self.object_rate = rate[..., :count], rate[..., count:]
        self.acceleration, self.object_acceleration = acceleration[..., :count], acceleration[..., count:]
        self.effort, self.wrench, self.force = loads
        self.contact_force, self.contact_moment = grasp._world_loads(self.force)
        at = {row: k for k, row in enumerate(self.rows)}
        self.normal_force = self.force[..., [at[f"{name}.n"] for name in self.contacts]]
        pinned = np.array([kind == "pinned" for kind in self.kinds])
        # in free fall the loads are rounding errors of weight and inertia
        small = CONTACT_LOAD_RTOL * np.maximum(np.abs(self.force).max(axis=-1, initial=0.0), size)[..., None]
        self._pressed = np.where(np.abs(self.normal_force) > small, self.normal_force, 0.0)
        tangents = [[at[row] for row in (f"{name}.t1", f"{name}.t2") if row in at] for name in self.contacts]
        across = np.stack([np.linalg.norm(self.force[..., two], axis=-1) for two in tangents], axis=-1)
        moment, bounds = np.linalg.norm(self.contact_moment, axis=-1), (grasp.friction, grasp.torsion)
        self.pulling, self.slipping = classify_contacts(
            self.normal_force, across, moment, bounds, pinned, small
        )

    @property
    def feasible(self) -> np.ndarray:
        """True for members without pulling or slipping contacts, (...) bool."""
        known = np.isfinite(self.force).all(axis=-1)
        return known & ~(self.pulling | self.slipping).any(axis=-1)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Tuple of descriptions of pulling and slipping contacts; empty if the motion is feasible."""
        return remarks(self.contacts, self._pressed, self.pulling, self.slipping)

    def summary(self) -> Summary:
        """Return tables of the fingers, the object and the contact loads, with remarks."""
        sheet = Summary(f"motion of '{self.body}' in its grasp")
        index = sheet.member(self.batch)
        if index is not None:
            fingers = [a[index] for a in (self.rate, self.acceleration, self.effort)]
            columns = ["rate", "acceleration", "effort"]
            sheet.matrix("fingers", self.fingers, columns, np.stack(fingers, axis=-1))
            body = [a[index] for a in (self.object_rate, self.object_acceleration, self.wrench)]
            columns = ["rate", "acceleration", "load of contacts"]
            sheet.matrix(self.body, self.coordinates, columns, np.stack(body, axis=-1))
            both = np.concatenate([self.contact_force[index], self.contact_moment[index]], axis=-1)
            both = np.concatenate([self.normal_force[index][:, None], both], axis=-1)
            columns = ["along n", "fx", "fy", "fz", "mx", "my", "mz"]
            sheet.matrix("contacts, of the first body on the second", self.contacts, columns, both)
        for remark in self.remarks:
            sheet.say(remark)
        return sheet


# largest residual of given forces, relative to the required load, that a least change corrects
GIVEN_FORCES_RTOL = 1e-6
# largest residual, relative to the parts of the required load, that counts as balanced
BALANCE_RTOL = 1e-9

_ROWS = CONTACT_ROWS["soft"]

Choice = str | np.ndarray | Callable[["Grasp", np.ndarray], Any]


class Grasp(Batched):
    """A body held by contacts: an object by fingers, or a trunk by legs on the ground.

    ``G f`` is the wrench of contact loads f on the object. The loads are those of the first body of each
    contact on the second: the force along the normal (positive in compression) and along both tangents, and
    the moment of a soft finger. If a body stands on the ground, f acts on the ground and ``G f`` is the
    reaction. Made by `Configuration.grasp`.

    Attributes
    ----------
    body : str
        Name of the body.
    contacts : tuple of Contact
        The K contacts.
    rows : tuple of str
        Names of the R rows of all contacts, such as "tip1.n".
    fingers, coordinates : tuple of str
        Names of the n coordinates of the fingers and of the m coordinates of the object.
    point : (..., K, 3)
        Contact points in world axes.
    normal, tangent1, tangent2 : (..., K, 3)
        Unit vectors, t1 × t2 = n: n is the direction in which the first body pushes the second.
    spin : (..., K, 3)
        Axis of the moment of a soft finger: n, up to the tilt of the finger about t2.
    reference : (..., 3)
        Reference point of the object.
    friction, torsion : (K,)
        Coefficients of friction and lengths of torsion, 0 if there are none.
    inward : (..., K, 3)
        Directions in which the object is pushed: n, or −n if it stands on the second body.
    signs : (R,)
        Factors that convert loads along the rows into loads on the object along inward, t1 and inward × t1,
        and back.
    G : (..., 6, R)
        Grasp map: force and moment about the reference point of the object, in world axes, of unit loads.
    J : (..., R, n)
        Hand Jacobian: velocity of the first bodies at the contacts along the rows, due to the fingers.
    relative : Coefficients
        Rows of the contacts, second body relative to first, with respect to fingers and object with open
        contacts: G = [−J, Gᵀ], with its second order, without rolling.

    Examples
    --------
    >>> hand = kic.load("three-finger-hand").at()
    >>> g = hand.grasp("ball")
    >>> g.G.shape, g.J.shape, g.internal.shape
    ((6, 9), (9, 9), (9, 3))
    >>> m = g.motion()                                 # at rest: the loads that balance the weight
    >>> (g.G @ m.force).round(6)[2]
    np.float64(2.943)
    """

    _one_line = ("body", "fingers", "coordinates", "batch")
    _per_member = ("G", 2)

    def __init__(
        self,
        configuration: Configuration,
        body: str,
        fingers: str | Iterable[str] | None,
        order: int,
        failures: Literal["raise", "mask"],
    ) -> None:
        check_failures(failures)
        model = model_of(configuration)
        model.require_none_held("A grasp")
        contacts = contacts_of(model, body)
        model = model.with_open_contacts(tuple(contact.name for contact in contacts))
        names = coordinates_of(model, body, fingers)
        states = np.where(configuration.ok[..., None], configuration.state, np.nan)
        opened = Configuration(model, configuration.batch, flat_states(configuration), configuration.ok)
        self._closed, self._opened, self._model = configuration, opened, model
        self._names, self._states, self._failures = names, states, failures
        self.body, self.contacts = body, contacts
        self.rows = tuple(row for contact in contacts for row in contact.rows)
        self.friction = np.array([contact.friction or 0.0 for contact in contacts])
        self.torsion = np.array([contact.torsion or 0.0 for contact in contacts])
        frames = frames_of(model, body, contacts, states)
        self.point, self.spin, self.reference = frames.point, frames.spin, frames.reference
        # f acts on the second body; True if that is not the object, such as the ground
        self._back = np.array([c.bodies[0] == body or c.bodies[1] == GROUND for c in contacts])
        self.normal, self.tangent1, self.tangent2 = (frames.axes[..., k, :] for k in range(3))
        # contact and axis (n, t1, t2, spin) of each row
        rows = [(k, _ROWS.index(row)) for k, c in enumerate(contacts) for row in CONTACT_ROWS[c.type]]
        self._owner, self._axis = np.array(rows, dtype=np.intp).reshape(-1, 2).T
        axes = np.concatenate([frames.axes, frames.spin[..., None, :]], axis=-2)
        self._directions = axes[..., self._owner, self._axis, :]
        self.inward = np.where(self._back[:, None], -self.normal, self.normal)
        self.signs = np.where(self._back[self._owner] & (self._axis == 1), -1.0, 1.0)
        self.G = self._map(frames)
        both = [*names[0], *names[1]]
        self.relative = opened.coefficients(self.rows, order=check_order(order), wrt=both, failures=failures)
        self.fingers, self.coordinates = self._split(self.relative.columns)
        self.J = -self.relative.G[..., : len(self.fingers)]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Tuple of the types of the contacts."""
        return tuple(contact.type for contact in self.contacts)

    @property
    def contact_set(self) -> ContactSet:
        """The contacts as they act on the object, for `force_closure`, `grip_forces` and `largest_load`.

        Their components are ``signs`` times the rows of the grasp, their Jacobian is ``signs[:, None] * J``.

        Raises
        ------
        InputError
            If a member is unsolved.
        """
        require_solved(self._closed, "contact_set")
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

    def closure(self, *, method: Literal["cones", "pyramids"] = "cones") -> GraspClosure:
        """Test if the contacts can hold any load, with friction; `method` as in `force_closure`.

        Examples
        --------
        >>> bool(kic.load("three-finger-hand").at().grasp("ball").closure().closed)
        True
        """
        return force_closure(self.contact_set, method=method)

    def grip(
        self, *, criterion: Criterion = "minimum norm", normal_force_min: float = 0.0, safety: float = 1.0
    ) -> Callable[[Any, np.ndarray], np.ndarray]:
        """Return a function that chooses forces in the friction cones, for ``g.motion(…, forces=g.grip())``.

        Parameters
        ----------
        criterion : {"minimum norm", "minimum largest"}
            As in `grip_forces`, which also accepts limits of joints.
        normal_force_min : float
            Smallest normal force of every contact.
        safety : float
            Divisor of the coefficients of friction.

        Returns
        -------
        callable
            Function of a grasp and the required wrench (..., 6) that returns loads (..., R) of its rows. It
            raises the errors of `grip_forces` if the contacts cannot hold the load.

        Examples
        --------
        >>> g = kic.load("three-finger-hand").at().grasp("ball")
        >>> m = g.motion(None, [0, 0, 2.0, 0, 0, 0], forces=g.grip(safety=1.2))
        >>> bool(m.feasible)
        True
        """

        def forces(grasp: Any, wrench: np.ndarray) -> np.ndarray:
            held = grip_forces(
                grasp.contact_set,
                -wrench,
                criterion=criterion,
                normal_force_min=normal_force_min,
                safety=safety,
            )
            return np.asarray(grasp.signs * held.force)

        return forces

    def _split(self, columns: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the labels of the fingers and of the object."""
        count = sum(len(self._model.rows(name, 1).layout.rows.labels) for name in self._names[1])
        return columns[: len(columns) - count], columns[len(columns) - count :]

    def _map(self, frames: ContactFrames) -> np.ndarray:
        """Return the grasp map."""
        d, is_force = self._directions, (self._axis != MOMENT)[:, None]
        arm = (frames.point - frames.reference[..., None, :])[..., self._owner, :]
        wrench = np.concatenate([d * is_force, np.where(is_force, np.cross(arm, d), d)], axis=-1)
        sign = np.where(self._back, -1.0, 1.0)
        return np.swapaxes(wrench * sign[self._owner, None], -1, -2)

    @property
    def _angular(self) -> np.ndarray:
        """Mask (m,) of the angular coordinates of the object, whose loads are moments."""
        return np.array([row_unit(self._model.description, label) == "rad" for label in self.coordinates])

    @property
    def _scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scales of loads at the object (m,) and the contacts (R,): a length for moments, else 1."""
        length = self._model.length
        return np.where(self._angular, length, 1.0), np.where(self._axis == MOMENT, length, 1.0)

    @property
    def _balance(self) -> np.ndarray:
        """Scaled matrix (..., m, R) from contact loads to loads at the coordinates of the object."""
        W = np.swapaxes(self.relative.G[..., len(self.fingers) :], -1, -2)
        at, of = self._scales
        return W * of / at[:, None]

    @property
    def rank(self) -> np.ndarray:
        """Number (...) of the m loads of the object that the contacts can balance, for any friction.

        It is 0 for unsolved members.
        """
        W = self._balance
        sigma = np.linalg.svd(np.where(np.isfinite(W), W, 0.0), compute_uv=False)
        return (sigma > RANK_RTOL * sigma.max(axis=-1, keepdims=True, initial=0.0)).sum(axis=-1)

    @property
    def internal(self) -> np.ndarray:
        """Internal loads (..., R, k): a basis of the contact loads without resultant on the object.

        The basis is orthonormal, with moments of soft fingers divided by the largest extent of the mechanism.
        The first vector is nearest to a load along a single row. The next vectors follow in the same way in
        the remaining space. For an object that moves in a plane, loads across the plane are included: its
        joint carries them.

        Raises
        ------
        SingularError
            If the number of internal loads differs among members of a batch.
        InputError
            If the configuration is complex.
        """
        self._require_real("Internal loads require")
        W = self._balance
        known = np.isfinite(W).all(axis=(-2, -1))
        ranks = sorted(set(self.rank[known].tolist()))
        if len(ranks) > 1:
            raise SingularError(
                f"The contacts of '{self.body}' balance {ranks[0]} to {ranks[-1]} loads over this batch, "
                "hence the number of internal loads differs. Compute the members one by one.",
                ranks=tuple(ranks),
            )
        V = np.linalg.svd(np.where(known[..., None, None], W, 0.0))[2]
        rank = ranks[0] if ranks else min(W.shape[-2:])
        null = np.swapaxes(V[..., rank:, :], -1, -2)
        basis = canonical(one_batch_axis(null, 2)).reshape(null.shape)
        return np.where(known[..., None, None], basis * self._scales[1][:, None], np.nan)

    def _require_real(self, subject: str) -> None:
        """Raise an error unless the configuration is real."""
        if self._states.dtype != np.float64:
            message = f"{subject} a real configuration, got {self._states.dtype}."
            raise InputError(message, key="configuration", got=self._states.dtype)

    def motion(
        self,
        qd: Any = None,
        qdd: Any = None,
        *,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        forces: Choice = "minimum norm",
    ) -> GraspMotion:
        """Compute motion of the fingers, contact loads and efforts for a motion of the object.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the coordinates `wrt`; at rest if omitted.
        wrt : str or list of str, optional
            Independent coordinates of the closed mechanism; by default those of the object.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.
        forces : "minimum norm", (..., R) array_like, or callable
            Choice among the contact loads that hold the object. "minimum norm" minimizes their sum of squares
            (moments divided by the largest extent of the mechanism). An array gives the loads. A callable
            ``forces(grasp, wrench)`` returns the loads (..., R) for the required loads (..., m) at the
            object. Relative residuals below a millionth are corrected by the least change.

        Raises
        ------
        InputError
            If a shape is wrong, the number of coordinates differs from the degrees of freedom, or given loads
            do not hold the object.
        SingularError
            If no contact loads hold the object (with the residual), or `wrt` cannot drive the mechanism.

        Examples
        --------
        >>> g = kic.load("three-finger-hand").at().grasp("ball")
        >>> least = g.motion()
        >>> firm = g.motion(forces=least.force + g.internal @ [5.0, 0.0, 0.0])
        >>> bool(abs(g.G @ (firm.force - least.force)).max() < 1e-12)
        True
        """
        self._require_real("motion() requires")
        coordinates = self._names[1] if wrt is None else names_of(wrt, "wrt")
        both = [*self._names[0], *self._names[1]]
        A = self._closed.coefficients(both, order=2, wrt=coordinates, failures=self._failures)
        v, a = (
            as_array(key, np.zeros(len(A.columns)) if given is None else given, len(A.columns))
            for key, given in (("qd", qd), ("qdd", qdd))
        )
        d = self._opened.dynamics(wrt=both, applied=applied, failures=self._failures)
        batch = broadcast_batches(grasp=d.batch, qd=v.shape[:-1], qdd=a.shape[:-1])
        # unsolved members have NaN rates
        rate, acceleration = (
            np.broadcast_to(x, (*batch, x.shape[-1])) for x in (A.velocity(v), A.acceleration(v, a))
        )
        known = np.isfinite(rate).all(axis=-1, keepdims=True)
        efforts = d.inverse_dynamics(np.where(known, rate, 0.0), np.where(known, acceleration, 0.0))
        count = len(self.fingers)
        wrench = efforts[..., count:]
        # the terms of the required load may cancel: rounding is measured against their sizes
        inertial = np.einsum("...ij,...j->...i", d.I, np.where(known, acceleration, 0.0))
        parts = (np.abs(efforts) + np.abs(inertial) + np.abs(d.load))[..., count:]
        size = np.linalg.norm(parts / self._scales[0], axis=-1)
        force = self._loads(forces, wrench, size)
        effort = efforts[..., :count] + np.einsum("...rn,...r->...n", self.J, force)
        return GraspMotion(self, rate, acceleration, (effort, wrench, force), size)

    def _world_loads(self, force: np.ndarray) -> list[np.ndarray]:
        """Return forces and moments (..., K, 3) of the contacts in world axes, for loads along the rows."""
        own, is_moment = np.arange(len(self.contacts))[:, None] == self._owner, self._axis == MOMENT
        return [
            np.einsum("kr,...r,...rc->...kc", (own & rows).astype(float), force, self._directions)
            for rows in (~is_moment, is_moment)
        ]

    def _loads(self, forces: Choice, wrench: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return contact loads (..., R) for a required load (..., m) with terms of magnitude `size`."""
        at, of = self._scales
        W, w = self._balance, wrench / at
        fine = np.isfinite(w).all(axis=-1) & np.isfinite(W).all(axis=(-2, -1))
        W = np.where(np.isfinite(W), W, 0.0)
        w = np.where(fine[..., None], w, 0.0)
        inverse = np.linalg.pinv(W, rcond=RANK_RTOL)
        minimum = np.einsum("...rm,...m->...r", inverse, w)
        residual = w - np.einsum("...mr,...r->...m", W, minimum)
        size = np.where(fine, size, 0.0)
        failed = np.linalg.norm(residual, axis=-1) > BALANCE_RTOL * size
        if failed.any() and self._failures == "raise":
            self._raise_unbalanced(residual, size, failed)
        fine = fine & ~failed
        if isinstance(forces, str):
            if forces != "minimum norm":
                raise invalid(
                    "forces",
                    f"must be 'minimum norm', loads of the {len(self.rows)} rows, or a callable that returns "
                    "them",
                    forces,
                )
            return np.where(fine[..., None], minimum, np.nan) * of
        given = forces(self, np.where(fine[..., None], wrench, np.nan)) if is_function(forces) else forces
        f = as_array("forces", given, len(self.rows), finite=bool(fine.all())) / of
        broadcast_batches(grasp=wrench.shape[:-1], forces=f.shape[:-1])
        residual = w - np.einsum("...mr,...r->...m", W, f)
        size_left = np.linalg.norm(residual, axis=-1)
        if (size_left > GIVEN_FORCES_RTOL * np.maximum(size, np.linalg.norm(f, axis=-1))).any():
            largest = float(np.nanmax(size_left))
            message = (
                f"`forces` must balance the load of '{self.body}', got a residual of {largest:.2g} "
                f"{self._model.description.units.force}. Add internal loads, which have no resultant on the "
                "object, to those of minimum norm."
            )
            raise InputError(message, key="forces", residual=largest)
        return np.where(fine[..., None], f + np.einsum("...rm,...m->...r", inverse, residual), np.nan) * of

    def _raise_unbalanced(self, residual: np.ndarray, size: np.ndarray, mask: np.ndarray) -> NoReturn:
        """Raise the error for members whose load cannot be balanced by contact loads."""
        norm, failed = np.linalg.norm(residual, axis=-1).ravel(), np.flatnonzero(mask.ravel())
        worst = int(failed[np.argmax(norm[failed] / size.ravel()[failed])])
        scaled = residual.reshape(-1, residual.shape[-1])[worst]
        rank = int(np.broadcast_to(self.rank, size.shape).flat[worst])
        load = scaled * self._scales[0]
        listed = np.abs(scaled) > 1e-6 * np.abs(scaled).max()
        units = self._model.description.units
        parts = ", ".join(
            f"{x:.3g} {units.force}{f' {units.length}' if angular else ''} at {label}"
            for label, x, angular, show in zip(self.coordinates, load, self._angular, listed, strict=True)
            if show
        )
        which = f" (member {worst}, the worst of {len(failed)} of {size.size})" if size.ndim else ""
        raise SingularError(
            f"The contacts of '{self.body}' cannot hold it{which} with any friction and normal force: the "
            f"residual load is {parts}. They balance {rank} of its {len(self.coordinates)} loads. Add a "
            "contact, or use one with more components.",
            residual=load,
            rank=rank,
            failed=[tuple(member) for member in np.argwhere(mask).tolist()],
        )

    def summary(self) -> Summary:
        """Return labelled tables of the contacts and the grasp map."""
        sheet = Summary(f"grasp of '{self.body}' by {len(self.contacts)} contacts")
        index = sheet.member(self.batch)
        if index is not None:
            names = [f"{c.name} ({c.type}, {' on '.join(c.bodies)})" for c in self.contacts]
            place = np.concatenate([self.point[index], self.normal[index]], axis=-1)
            sheet.matrix("contacts", names, ["x", "y", "z", "nx", "ny", "nz"], place)
            sheet.matrix("G (grasp map)", WRENCH_LABELS, self.rows, self.G[index])
            sheet.matrix("J (hand Jacobian)", self.rows, self.fingers, self.J[index])
        return sheet


def grasp(
    configuration: Configuration,
    of: str,
    *,
    fingers: str | Iterable[str] | None = None,
    order: int = 2,
    failures: Literal["raise", "mask"] = "raise",
) -> Grasp:
    """Compute the grasp of a body by contacts: grasp map, hand Jacobian, and the efforts of its motion.

    Parameters
    ----------
    of : str
        The body: an object that fingers touch, or a body that stands on feet, by contacts with ground.
    fingers : str or list of str, optional
        Coordinates of the fingers or legs, as many as their degrees of freedom with open contacts; by
        default the joints of open chains. For closed chains, name the coordinates with actuators.
    order : {1, 2, 3}
        Highest order of `Grasp.relative`.
    failures : {"raise", "mask"}
        Treatment of members whose coordinates cannot drive fingers and object or, in `Grasp.motion`,
        whose contacts cannot hold it: raise an error, or return NaN.

    Returns
    -------
    Grasp
        G (..., 6, R), J (..., R, n); and ``motion(qd, qdd)``.

    Raises
    ------
    InputError
        If no closed contact holds the body or the body is fixed, or if the number of finger coordinates
        differs from the degrees of freedom.
    SingularError
        If these coordinates cannot drive fingers and object.

    Examples
    --------
    >>> g = kic.load("three-finger-hand").at().grasp("ball")
    >>> v = [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]         # the object rises, and the fingers with it
    >>> bool(abs(g.J @ g.motion(v).rate - g.G.T @ v).max() < 1e-12)
    True
    """
    return Grasp(configuration, of, fingers, order, failures)
