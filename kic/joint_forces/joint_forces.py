"""Joint forces: what the bodies of a mechanism exert on each other, with what the model leaves open."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from kic.display import Summary, member
from kic.dynamics.friction import SMALL, ContactForceCheck, remarks
from kic.errors import unknown
from kic.numerics.arrays import as_array, broadcast_batches, directions

COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")
Split = Literal["minimum norm"] | None


class Wrench:
    """Force and moment of one joint: what its first body exerts on its second, in world axes.

    Attributes
    ----------
    name : str
        The joint.
    bodies : tuple of str
        Its first and its second body, as drawn. On the first acts the opposite, at the same point.
    point : (..., 3)
        Where the force acts and about which the moment is: the joint's `at` as the second body carries it
        (of a joint drawn without, the origin of the drawing); of a contact, as the first body carries it.
    force, moment : (..., 3)
        NaN where the model leaves a component open, unless a split was asked for.
    """

    def __init__(
        self,
        name: str,
        bodies: tuple[str, str],
        point: np.ndarray,
        loads: np.ndarray,
        play: np.ndarray,
        share: np.ndarray,
        length: float,
        split: Split,
    ) -> None:
        self.name = name
        self.bodies = bodies
        self.point = point
        # forces · length and moments at the joint's point, one answer (..., 6) and its variations (..., 6, k)
        self._loads, self._play = loads, play
        self._share, self._length, self._split = share, length, split
        self._moved = np.eye(6)  # from there to `point`

    @property
    def force(self) -> np.ndarray:
        """Force (..., 3)."""
        return self._components(np.eye(6)[:3]) / self._length

    @property
    def moment(self) -> np.ndarray:
        """Moment (..., 3) about `point`."""
        return self._components(np.eye(6)[3:])

    def _components(self, of: np.ndarray) -> np.ndarray:
        """Sums (..., K) of the six loads, by rows `of` (..., K, 6); NaN where they are open."""
        rows = of @ self._moved
        found = np.einsum("...kc,...c->...k", rows, self._loads)
        if self._split is not None:
            return found
        size = np.sqrt((rows**2).sum(axis=-1))
        return np.where(varies(rows @ self._play, self._share[..., None] * size), np.nan, found)

    def along(self, direction: Any) -> tuple[np.ndarray, np.ndarray]:
        """Components of force and moment along a direction, which may be known where world ones are not.

        Parameters
        ----------
        direction : (..., 3) array_like
            In world axes; need not have unit length.

        Returns
        -------
        force, moment : (...,)
            NaN where the model leaves them open.

        Raises
        ------
        InputError
            For another shape, entries that are not finite, or a direction of no length.

        Examples
        --------
        >>> import kic
        >>> f = kic.load("horn-two-link").at([0.0, 0.0]).joint_forces()
        >>> [round(float(x), 6) for x in f["shoulder"].along([0, 1, 0])]
        [19.62, 0.0]
        """
        u = directions("direction", direction, 3)
        broadcast_batches(direction=u.shape[:-1], forces=self.point.shape[:-1])
        of = np.zeros((*u.shape[:-1], 2, 6))
        of[..., 0, :3] = of[..., 1, 3:] = u
        found = self._components(of)
        return found[..., 0] / self._length, found[..., 1]

    def about(self, place: Any) -> Wrench:
        """The same wrench with its moment about another place.

        Parameters
        ----------
        place : (..., 3) array_like
            In world axes.

        Returns
        -------
        Wrench

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> f = kic.load("horn-two-link").at([0.0, 0.0]).joint_forces()
        >>> f["shoulder"].about([1.0, 0.0, 0.0]).moment.round(6)[2]
        np.float64(0.0)
        """
        place = as_array("place", place, 3)
        broadcast_batches(place=place.shape[:-1], forces=self.point.shape[:-1])
        arm = (self.point - place) / self._length
        shift = np.broadcast_to(np.eye(6), (*arm.shape[:-1], 6, 6)).copy()
        shift[..., 3:, :3] = np.cross(np.eye(3), arm[..., None, :])  # its columns are arm × e
        point = np.broadcast_to(place, arm.shape)
        moved = Wrench(
            self.name, self.bodies, point, self._loads, self._play, self._share, self._length, self._split
        )
        moved._moved = shift @ self._moved
        return moved

    def __repr__(self) -> str:
        first, second = self.bodies
        return f"{self.name}, {first} on {second}: force {self.force}, moment {self.moment}"


def varies(play: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Which of K components vary, by their variations (..., K, k), more than a limit (..., K)."""
    return np.sqrt((play**2).sum(axis=-1)) > limit


class JointForces:
    """Forces and moments in all joints for a motion, and the efforts that it takes.

    ``f["C"].force`` and ``f["C"].moment`` are what the first body of joint C exerts on the second, in world
    axes, at the joint's point (see `Wrench`); they include the effort of an actuator, spring or damper in the
    joint.

    Attributes
    ----------
    joints : tuple of str
        Names of the J joints, as drawn, and of the closed contacts.
    force, moment, point : (..., J, 3)
        Those of all joints, one below the other.
    actuators : tuple of str
        Names of the A coordinates at which efforts act.
    effort : (..., A)
        Efforts there.
    ties : tuple of str
        Names of the K couplings and fixed distances.
    tie_load : (..., K)
        Their loads: the force with which a fixed distance pushes its points apart; of a coupling what gives
        each of its joints an effort of so much, times the joint's number in the relation. Where teeth or a
        belt touch, and what that adds to the bearings, is not in the model.
    undetermined : tuple of str
        Components that the model leaves open, as "D.fz" or "D.mx", and efforts and ties by name: what rigid
        bodies alone do not tell of a mechanism that is held more often than needed. In a batch, those that
        are open in any member.
    split : str or None
        How open components were chosen; None where they are NaN.
    contacts : tuple of str
        Names of the K closed contacts, which hold either way here, whatever they can.
    pulling, slipping : (..., K) bool
        Contacts that would have to pull, and those that push but need more friction than they have, as in
        `GraspMotion`: those that do for certain, where loads are open. Whether such are possible together
        `feasible` tells.

    Examples
    --------
    >>> import kic
    >>> f = kic.load("four-bar").at({"A": 1.2}).joint_forces()
    >>> f.undetermined[:3]
    ('A.fz', 'A.mx', 'A.my')
    >>> f["B"].force.round(3)
    array([2.542, 5.374,   nan])
    """

    def __init__(
        self,
        bodies: dict[str, tuple[str, str]],
        actuators: tuple[str, ...],
        ties: tuple[str, ...],
        point: np.ndarray,
        loads: np.ndarray,
        play: np.ndarray,
        effort: np.ndarray,
        tie_load: np.ndarray,
        single_play: np.ndarray,
        share: np.ndarray,
        length: float,
        split: Split,
        pressing: ContactForceCheck,
        touch: np.ndarray,
        touch_play: np.ndarray,
        size: np.ndarray,
    ) -> None:
        self.joints = tuple(bodies)
        self.actuators = actuators
        self.ties = ties
        self.point = point
        self.split = split
        self._wrenches = {
            name: Wrench(
                name, pair, point[..., j, :], loads[..., j, :], play[..., j, :, :], share, length, split
            )
            for j, (name, pair) in enumerate(bodies.items())
        }
        six = [varies(play[..., j, :, :], share[..., None]) for j in range(len(bodies))]
        loose = np.concatenate([*six, varies(single_play, share[..., None])], axis=-1)
        names = [f"{joint}.{c}" for joint in bodies for c in COMPONENTS] + [*actuators, *ties]
        somewhere = loose.reshape(-1, len(names)).any(axis=0)
        self.undetermined = tuple(np.array(names)[somewhere].tolist())
        hidden = loose[..., 6 * len(bodies) :] & (split is None)
        single = np.where(hidden, np.nan, np.concatenate([effort, tie_load], axis=-1))
        self.effort, self.tie_load = single[..., : len(actuators)], single[..., len(actuators) :]
        self.contacts, self._pressing = pressing.names, pressing
        open_ = varies(touch_play, share[..., None]) & (split is None)
        # what varies by rounding alone does not
        self._touch, self._touch_play = touch, np.where(open_[..., None], touch_play, 0.0)
        # loads at a standstill in free fall are round-off of its weight and its inertia
        self._size = np.maximum(np.abs(touch).max(axis=-1, initial=0.0), size)
        # who slips without its open loads across does so with them
        sure = np.where(open_, np.where(pressing.along, np.nan, 0.0), touch)
        self.pulling, self.slipping = pressing.judge(sure, SMALL * self._size)
        normal = sure[..., pressing.along]
        self._normal = np.where(np.abs(normal) > SMALL * self._size[..., None], normal, 0.0)

    @property
    def force(self) -> np.ndarray:
        """Forces (..., J, 3) in all joints."""
        return np.stack([self[name].force for name in self.joints], axis=-2)

    @property
    def moment(self) -> np.ndarray:
        """Moments (..., J, 3) in all joints, each about its point."""
        return np.stack([self[name].moment for name in self.joints], axis=-2)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.effort.shape[:-1]

    @property
    def feasible(self) -> np.ndarray:
        """Whether the contacts can have such loads, (...) bool: none has to pull or slips.

        Of loads that the model leaves open it is enough that some are possible.

        Raises
        ------
        KicError
            Where these have friction cones in space, and the solver for them is not installed.
        """
        found = np.zeros(self.batch, dtype=bool)
        for b in np.ndindex(self.batch):
            size = float(self._size[b])
            if np.isfinite(self._touch[b]).all():
                most = self._pressing.most(self._touch[b], self._touch_play[b], size)[0] if size else 0.0
                found[b] = most >= -SMALL
        return found

    @property
    def remarks(self) -> tuple[str, ...]:
        """What contacts can not do, in words; none where all is well."""
        return remarks(self.contacts, self._normal, self.pulling, self.slipping)

    def __getitem__(self, joint: str) -> Wrench:
        found = self._wrenches.get(joint) if isinstance(joint, str) else None
        if found is None:
            raise unknown("joint", joint, "these forces", self.joints)
        return found

    def __iter__(self) -> Any:
        return iter(self.joints)

    def __len__(self) -> int:
        return len(self.joints)

    def summary(self) -> Summary:
        """Labelled tables of forces and efforts, to print or to show."""
        sheet = Summary("joint forces, of the first body on the second, in world axes")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is not None:
            six = np.concatenate([self.force[index], self.moment[index]], axis=-1)
            ties = [f"{name} ({' on '.join(self[name].bodies)})" for name in self.joints]
            sheet.matrix("forces and moments", ties, COMPONENTS, six)
            if self.actuators:
                sheet.matrix("T (efforts)", self.actuators, [""], self.effort[index][:, None])
            if self.ties:
                sheet.matrix("loads of couplings and rods", self.ties, [""], self.tie_load[index][:, None])
        if self.undetermined:
            how = f"chosen by {self.split}" if self.split else "nan"
            sheet.say(f"\nundetermined ({how}): {', '.join(self.undetermined)}")
        for remark in self.remarks:
            sheet.say(remark)
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()
