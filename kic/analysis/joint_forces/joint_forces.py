"""Joint forces: forces and moments that the bodies of a mechanism exert on each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.table_columns import effort_columns, motion_columns
from kic.description.validation import split_row
from kic.dynamics.friction import CONTACT_LOAD_RTOL, ContactForceCheck, remarks
from kic.errors import UnknownNameError, unknown
from kic.kinematics.outputs import WRENCH_LABELS
from kic.mechanism.configuration import Configuration, model_of
from kic.numerics.arguments import text
from kic.numerics.arrays import as_array, broadcast_batches, directions
from kic.numerics.display import Batched, Summary
from kic.numerics.tables import DataTable, Tabular, Variable, batch_axes

Split = Literal["minimum norm"] | None


@dataclass(eq=False, repr=False)
class Wrench:
    """Force and moment of one joint, exerted by its first body on its second, in world axes.

    Attributes
    ----------
    name : str
        The joint.
    bodies : tuple of str
        First and second body of the joint. The opposite wrench acts on the first, at the same point.
    point : (..., 3)
        Point of application and reference of the moment: the joint's `at`, fixed in the second body (for a
        joint without `at`, the origin of the reference configuration); for a contact, fixed in the first
        body.
    force, moment : (..., 3)
        NaN where the model leaves a component undetermined and no `criterion` was given.
    """

    name: str
    bodies: tuple[str, str]
    point: np.ndarray
    # forces · length and moments at the joint's point: one solution (..., 6), variations (..., 6, k)
    _loads: np.ndarray
    _variations: np.ndarray
    _variation_atol: np.ndarray
    _length: float
    _split: Split
    # transform of the loads from the joint's point to `point`
    _to_point: np.ndarray = field(default_factory=lambda: np.eye(6))

    @property
    def force(self) -> np.ndarray:
        """Force (..., 3)."""
        return self._components(np.eye(6)[:3]) / self._length

    @property
    def moment(self) -> np.ndarray:
        """Moment (..., 3) about `point`."""
        return self._components(np.eye(6)[3:])

    def _components(self, directions: np.ndarray) -> np.ndarray:
        """Return components (..., K) of the six loads along rows (..., K, 6); NaN if undetermined."""
        rows = directions @ self._to_point
        found = np.einsum("...kc,...c->...k", rows, self._loads)
        if self._split is not None:
            return found
        limit = self._variation_atol[..., None] * np.sqrt((rows**2).sum(axis=-1))
        return np.where(exceeds(rows @ self._variations, limit), np.nan, found)

    def along(self, direction: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the components (...,) of force and moment along a direction (..., 3) in world axes.

        They may be determined even if the components along the world axes are not; otherwise they are NaN.

        Examples
        --------
        >>> f = kic.load("horn-two-link").at([0.0, 0.0]).joint_forces()
        >>> [round(float(x), 6) for x in f["shoulder"].along([0, 1, 0])]
        [19.62, 0.0]
        """
        u = directions("direction", direction, 3)
        broadcast_batches(direction=u.shape[:-1], forces=self.point.shape[:-1])
        rows = np.zeros((*u.shape[:-1], 2, 6))
        rows[..., 0, :3] = rows[..., 1, 3:] = u
        found = self._components(rows)
        return found[..., 0] / self._length, found[..., 1]

    def about(self, place: Any) -> Wrench:
        """Return the same wrench with its moment about another point (..., 3), in world axes.

        Examples
        --------
        >>> f = kic.load("horn-two-link").at([0.0, 0.0]).joint_forces()
        >>> f["shoulder"].about([1.0, 0.0, 0.0]).moment.round(6)[2]
        np.float64(0.0)
        """
        place = as_array("place", place, 3)
        broadcast_batches(place=place.shape[:-1], forces=self.point.shape[:-1])
        arm = (self.point - place) / self._length
        shift = np.broadcast_to(np.eye(6), (*arm.shape[:-1], 6, 6)).astype(np.result_type(arm, float))
        shift[..., 3:, :3] = np.cross(np.eye(3), arm[..., None, :])  # its columns are arm × e
        point = np.broadcast_to(place, arm.shape)
        return replace(self, point=point, _to_point=shift @ self._to_point)

    def __repr__(self) -> str:
        batch, (first, second) = self.point.shape[:-1], self.bodies
        if not batch:
            facts = f"force {self.force}, moment {self.moment}"
        return f"<Wrench '{self.name}': {first} on {second}, {f'batch {batch}' if batch else facts}>"


def exceeds(variations: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Return a mask of the components whose variations (..., K, k) exceed a limit (..., K)."""
    return np.sqrt((variations**2).sum(axis=-1)) > limit


class JointForces(Batched, Tabular):
    """Forces and moments in all joints for a motion, and the efforts that the motion requires.

    ``f["C"].force`` and ``f["C"].moment`` are exerted by the first body of joint C on the second, in world
    axes, at the joint's point (see `Wrench`). They include the effort of an actuator, spring or damper in the
    joint.

    Attributes
    ----------
    joints : tuple of str
        Names of the J joints and of the closed contacts.
    force, moment, point : (..., J, 3)
        Forces and moments in all joints, and the points of the moments.
    actuators : tuple of str
        Names of the A coordinates at which efforts act.
    effort : (..., A)
        Efforts at these coordinates.
    ties : tuple of str
        Names of the K couplings, fixed distances and fixed angles.
    tie_load : (..., K)
        Loads of the ties. A fixed distance pushes its points apart with this force, or a point from a line.
        A fixed angle turns its directions apart with this moment. A coupling gives each of its joints this
        effort times the joint's coefficient in the relation. The model has no forces between
        teeth or along a belt, nor their effect on the bearings.
    undetermined : tuple of str
        Components that the model leaves undetermined, like "D.fz" or "D.mx", and efforts and ties by name:
        rigid bodies do not determine the loads of an overconstrained mechanism. In a batch, those
        undetermined in any member.
    split : str or None
        Criterion that selects undetermined components; None where they are NaN.
    contacts : tuple of str
        Names of the C closed contacts, which are treated as bilateral.
    pulling, slipping : (..., C) bool
        Contacts that would have to pull, and contacts that push but exceed their friction, as in
        `GraspMotion`. If loads are undetermined, only violations for every choice of loads count; `feasible`
        is True if admissible loads exist.

    Examples
    --------
    >>> f = kic.load("four-bar").at({"A": 1.2}).joint_forces()
    >>> f["B"].force.round(3)
    array([2.542, 5.374, 0.   ])
    >>> kic.load("four-bar").at({"A": 1.2}).joint_forces(out_of_plane=True).undetermined[:3]
    ('A.fz', 'A.mx', 'A.my')
    """

    _one_line = ("joints", "actuators", "batch")
    _per_member = ("effort", 1)

    def __init__(
        self,
        bodies: dict[str, tuple[str, str]],
        actuators: tuple[str, ...],
        ties: tuple[str, ...],
        point: np.ndarray,
        loads: np.ndarray,
        variations: np.ndarray,
        effort: np.ndarray,
        tie_load: np.ndarray,
        single_variations: np.ndarray,
        variation_atol: np.ndarray,
        length: float,
        split: Split,
        contact_check: ContactForceCheck,
        contact_load: np.ndarray,
        contact_variations: np.ndarray,
        load_scale: np.ndarray,
    ) -> None:
        self.joints = tuple(bodies)
        # of the mechanism, for the units of a table; and its configuration, for a column of each driver
        self._description: MechanismDescription | None = None
        self._source: tuple[Any, Any] | None = None
        # components that are not zero in all joints of a planar mechanism
        self._shown: tuple[str, ...] = WRENCH_LABELS
        self.actuators = actuators
        self.ties = ties
        self.point = point
        self.split = split
        self._bodies, self._length = bodies, length
        self._loads, self._variations, self._variation_atol = loads, variations, variation_atol
        limit, flat = variation_atol[..., None], (*loads.shape[:-2], 6 * len(bodies), variations.shape[-1])
        every = np.concatenate([variations.reshape(flat), single_variations], axis=-2)
        undetermined = exceeds(every, limit)
        names = [f"{joint}.{c}" for joint in bodies for c in WRENCH_LABELS] + [*actuators, *ties]
        in_any_member = undetermined.reshape(-1, len(names)).any(axis=0)
        self.undetermined = tuple(np.array(names)[in_any_member].tolist())
        masked = undetermined[..., 6 * len(bodies) :] & (split is None)
        single = np.where(masked, np.nan, np.concatenate([effort, tie_load], axis=-1))
        self.effort, self.tie_load = single[..., : len(actuators)], single[..., len(actuators) :]
        self.contacts, self._contact_check = contact_check.names, contact_check
        is_open = exceeds(contact_variations, limit) & (split is None)
        self._contact_load = contact_load
        # variations of round-off size count as zero
        self._contact_variations = np.where(is_open[..., None], contact_variations, 0.0)
        # the scale includes weight and inertia forces, which may cancel
        self._load_scale = np.maximum(np.abs(contact_load).max(axis=-1, initial=0.0), load_scale)
        # a contact that slips without its undetermined tangential loads also slips with them
        self._certain = np.where(is_open, np.where(contact_check.along, np.nan, 0.0), contact_load)

    @cached_property
    def _violations(self) -> tuple[np.ndarray, np.ndarray]:
        """Pair of masks (..., C) of contacts that would pull, and of contacts that slip."""
        return self._contact_check.classify(self._certain, CONTACT_LOAD_RTOL * self._load_scale)

    @property
    def pulling(self) -> np.ndarray:
        """Mask (..., C) of the contacts that would have to pull."""
        return self._violations[0]

    @property
    def slipping(self) -> np.ndarray:
        """Mask (..., C) of the contacts that push but exceed their friction."""
        return self._violations[1]

    @property
    def force(self) -> np.ndarray:
        """Array (..., J, 3) of the forces in all joints."""
        return np.stack([self[name].force for name in self.joints], axis=-2)

    @property
    def moment(self) -> np.ndarray:
        """Array (..., J, 3) of the moments in all joints, each about its point."""
        return np.stack([self[name].moment for name in self.joints], axis=-2)

    @property
    def feasible(self) -> np.ndarray:
        """Mask (...) of the members in which the contacts can carry the loads: no contact pulls or slips.

        Undetermined loads are feasible if some admissible choice exists.

        Raises
        ------
        KicError
            If the contacts have spatial friction cones and the solver for them is not installed.
        """
        found = np.zeros(self.batch, dtype=bool)
        for b in np.ndindex(self.batch):
            scale, load = float(self._load_scale[b]), self._contact_load[b]
            if np.isfinite(scale) and np.isfinite(load).all():
                margin = 0.0
                if scale:
                    margin = self._contact_check.largest_margin(load, self._contact_variations[b], scale)[0]
                found[b] = margin >= -CONTACT_LOAD_RTOL
        return found

    @property
    def remarks(self) -> tuple[str, ...]:
        """Tuple of violations of contact conditions as text; empty if there are none."""
        normal = self._certain[..., self._contact_check.along]
        small = ~(np.abs(normal) > CONTACT_LOAD_RTOL * self._load_scale[..., None])
        return remarks(self.contacts, np.where(small, 0.0, normal), *self._violations)

    def __getitem__(self, joint: str) -> Wrench:
        if text("joint", joint) not in self._bodies:
            if joint in self.actuators:
                message = f"'{joint}' is an actuator, not a joint. Its driving effort is in `effort`."
                raise UnknownNameError(message, name=joint, candidates=self.joints)
            raise unknown("joint", joint, "these forces", self.joints, quoted=False)
        j = self.joints.index(joint)
        parts = self.point[..., j, :], self._loads[..., j, :], self._variations[..., j, :, :]
        return Wrench(joint, self._bodies[joint], *parts, self._variation_atol, self._length, self.split)

    def __iter__(self) -> Iterator[str]:
        return iter(self.joints)

    def __len__(self) -> int:
        return len(self.joints)

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        d = self._description
        force, moment = ("", "") if d is None else (d.units.force, f"{d.units.force} {d.units.length}")
        six = np.concatenate([self.force, self.moment], axis=-1)
        made = [] if self._source is None else driver_columns(*self._source, self.batch)
        made += [
            Variable(f"{joint}.{c}", six[..., j, k], force if k < 3 else moment)
            for j, joint in enumerate(self.joints)
            for k, c in enumerate(WRENCH_LABELS)
            if c in self._shown
        ]
        if d is not None:
            made += effort_columns(d, self.actuators, self.effort)
        made += [Variable(f"{tie}.load", self.tie_load[..., k]) for k, tie in enumerate(self.ties)]
        return DataTable("joint forces", batch_axes(self.batch), tuple(made)).select(names)

    def summary(self) -> Summary:
        """Return labelled tables of forces and efforts."""
        sheet = Summary("joint forces, of the first body on the second, in world axes")
        index = sheet.member(self.batch)
        if index is not None:
            six = np.concatenate([self.force[index], self.moment[index]], axis=-1)
            ties = [f"{name} ({' on '.join(self[name].bodies)})" for name in self.joints]
            shown = [WRENCH_LABELS.index(c) for c in self._shown]
            sheet.matrix("forces and moments", ties, self._shown, six[:, shown])
            if self.actuators:
                sheet.matrix("T (efforts)", self.actuators, [""], self.effort[index][:, None])
            if self.ties:
                sheet.matrix("loads of couplings and rods", self.ties, [""], self.tie_load[index][:, None])
        if self.undetermined:
            how = f"chosen by {self.split}" if self.split else "nan"
            sheet.say(f"\nundetermined ({how}): {_listed(self.undetermined)}")
            if not self.split and set(self.actuators) & set(self.undetermined):
                sheet.say(
                    f"{len(self.actuators)} actuators share the load in many ways: choose by `criterion`, or "
                    "give `effort`, such as that of distribute()"
                )
        for remark in self.remarks:
            sheet.say(remark)
        return sheet


def driver_columns(c: Configuration, wrt: Any, batch: tuple[int, ...]) -> list[Variable]:
    """Return a column for each coordinate of a motion that has a value."""
    if not (wrt or c.coordinates):
        return []
    rows = c.coefficients(wrt or c.coordinates, order=1, wrt=wrt, failures="mask")
    values = np.broadcast_to(rows.values, (*batch, len(rows.rows)))
    made = motion_columns(model_of(c).description, rows.rows, [values])
    return [column for column in made if column.name not in rows.quasi]


# more components than this are listed by joint
_LISTED_MAX = 24


def _listed(components: tuple[str, ...]) -> str:
    """Return components such as "D.fz" and efforts as text; many of them are grouped by joint."""
    if len(components) <= _LISTED_MAX:
        return ", ".join(components)
    parts: dict[str, list[str]] = {}
    for name in components:
        part, row = split_row(name)
        parts.setdefault(part, []).extend([row] * bool(row))
    return ", ".join(part + (f" ({' '.join(rows)})" if len(rows) % 6 else "") for part, rows in parts.items())
