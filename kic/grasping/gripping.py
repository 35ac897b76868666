"""Grip forces: the least contact forces that hold a load, within friction and joint efforts.

With the external wrench w on the body the contact forces f fulfil G f + w = 0, each within its friction cone
(Murray, Li and Sastry 1994, section 5.3; Boyd and Wegbreit 2007 for the cone program). Fingers that hold an
object and feet that stand on ground are the same; of a walker the load is its weight at its centre of mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kic.errors import InputError, shown
from kic.grasping.contactset import ContactSet
from kic.grasping.gripquestion import Question
from kic.grasping.onegrasp import each, gathered
from kic.tables import Sheet, member

CRITERIA = ("minimum norm", "minimum largest")
Criterion = Literal["minimum norm", "minimum largest"]
# a limit binds where less than this share of the load is left to it
AT_LIMIT = 1e-6


@dataclass(frozen=True, repr=False)
class GripForces:
    """Contact forces that hold a load; made by `grip_forces`.

    Attributes
    ----------
    contacts : ContactSet
    criterion : str
        What is least.
    ok : (...) bool
        Members that hold.
    wrench : (..., W)
        The load.
    force : (..., m)
        Components of all contacts in their axes: what they exert on the body. NaN where nothing holds.
    margin : (..., K)
        What is left before a contact slips: μ fₙ − |fₜ|, of soft fingers μ (fₙ − √((fₜ/μ)² + (m/γ)²));
        without friction fₙ, before it leaves; ∞ where pinned. Never negative.
    effort : (..., N)
        Efforts of the joints, with no joints where no `jacobian` was given.
    lower, upper : (..., N)
        Their limits.
    joints : tuple of str
        Their names.
    """

    contacts: ContactSet
    criterion: str
    ok: np.ndarray
    wrench: np.ndarray
    force: np.ndarray
    margin: np.ndarray
    effort: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    joints: tuple[str, ...]

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.ok.shape

    @property
    def normal(self) -> np.ndarray:
        """Normal forces (..., K)."""
        return self.force[..., self.contacts.axis == 0]

    @property
    def on_body(self) -> tuple[np.ndarray, np.ndarray]:
        """Forces and moments (..., K, 3) on the body in world axes, each at its contact."""
        return self.contacts.loads(self.force)

    @property
    def binding(self) -> tuple[str, ...]:
        """What the grip leans on, in any member: contacts about to slip, and joints at their limits."""
        size = np.abs(self.force).max(axis=-1, initial=0.0)[..., None]
        slips = self.margin <= AT_LIMIT * size
        room = np.minimum(self.upper - self.effort, self.effort - self.lower)
        stops = room <= AT_LIMIT * np.abs(self.effort).max(axis=-1, initial=0.0)[..., None]
        both = np.concatenate([slips, stops], axis=-1)
        there = np.atleast_1d(both.reshape(-1, both.shape[-1]).any(axis=0))
        names = [f"contact {name}" for name in self.contacts.names] + [
            f"joint {name}" for name in self.joints
        ]
        return tuple(name for k, name in enumerate(names) if there[k])

    def sheet(self) -> Sheet:
        """Labelled tables of forces, margins and efforts, to print or to show."""
        sheet = Sheet(f"grip forces on the body, {self.criterion}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        force, moment = (a[index] for a in self.on_body)
        columns = ("normal", "margin", "fx", "fy", "fz", "mx", "my", "mz")
        first = np.stack([self.normal[index], self.margin[index]], axis=-1)
        rows = [f"{n} ({k})" for n, k in zip(self.contacts.names, self.contacts.kinds, strict=True)]
        sheet.matrix("contacts, world axes", rows, columns, np.concatenate([first, force, moment], axis=-1))
        sheet.matrix("load", self.contacts.labels, [""], self.wrench[index][:, None])
        if self.joints:
            three = np.stack([self.effort[index], self.lower[index], self.upper[index]], axis=-1)
            sheet.matrix("T (efforts)", self.joints, ("T", "lower", "upper"), three)
        if self.binding:
            sheet.say(f"\nat their limits: {', '.join(self.binding)}")
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


def grip_forces(
    contacts: ContactSet,
    wrench: Any,
    criterion: Criterion = "minimum norm",
    *,
    least: float = 0.0,
    safety: float = 1.0,
    jacobian: Any = None,
    limits: Any = None,
    lower: Any = None,
    offset: Any = None,
    joints: Sequence[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> GripForces:
    """Least contact forces f that hold a load: G f + w = 0, within friction and joint efforts.

    The answer is checked: its wrench to 1e-9 of the load, and no margin negative. Where rounding leaves one
    negative, the best is sought with that much more margin, at most 1e-7 of the load; what is held with less
    than that at best is refused as on the brink. The cost is the least to 1e-8 of itself, and the forces are
    those of the least to the square root of that where the cost hardly feels them.

    Parameters
    ----------
    contacts : ContactSet
    wrench : (..., W) array_like
        External force and moment on the body about the contacts' reference point, as weight and inertia
        forces; in a plane two forces and a moment, in the order of ``contacts.labels``.
    criterion : {"minimum norm", "minimum largest"}
        The least sum of squares of all components, moments over their γ; or the least largest normal force
        (of pins the size of the force), where several grips may have the same and one of them is given.
    least : float
        Normal force that every contact has at least (pins excepted): the level of the internal grip.
    safety : float
        Divides the coefficients of friction, 1 or more; margins are those of the undivided ones.
    jacobian : (..., m, N) array_like, optional
        Of the fingers, as `ContactSet.jacobian` gives it: efforts are T = offset + Jᵀ f.
    limits, lower : (..., N) array_like, optional
        Largest and smallest efforts; without `lower` they are ±limits. Infinite ones are none.
    offset : (..., N) array_like, optional
        Efforts that the fingers take without contact, as for their own weight.
    joints : sequence of N str, optional
        Names of the joints.
    failures : {"raise", "mask"}
        What becomes of members that can not hold.

    Returns
    -------
    GripForces

    Raises
    ------
    InputError
        For other shapes, words or ranges, limits or `offset` without `jacobian`, limits below the lower ones.
    SingularError
        Where the contacts can not hold the load. Carries `twist` (W,): they push along it only, and the load
        does work on it.
    LimitError
        Where they could, but not within the limits or with `least`. Carries `scale`, the share of the load
        that is held (None if none is), and `binding`, the joints and contacts that stand in the way.
    KicError
        Where Clarabel is needed and not installed.

    Examples
    --------
    Two fingers lift a block of 3 N; friction 0.5 takes 3 N from each:

    >>> import kic
    >>> c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.5,
    ...     plane=[0, 0, 1])
    >>> kic.grip_forces(c, [0, -3, 0], "minimum largest").normal.round(6)
    array([3., 3.])
    """
    if criterion not in CRITERIA:
        raise InputError(f"Expected `criterion` to be of {', '.join(CRITERIA)}, got {shown(criterion)}.")
    asked = Question(contacts, wrench, None, least, safety, jacobian, limits, lower, offset, joints)
    ok, answers = each(asked.batch, failures, lambda i: asked.demand(i).held(criterion))
    tails = {"force": len(contacts.axis), "margin": len(contacts), "effort": len(asked.names)}
    found = {key: gathered(answers, asked.batch, key, (size,)) for key, size in tails.items()}
    given = {key: asked.whole(key) for key in ("wrench", "lower", "upper")}
    return GripForces(contacts, criterion, ok, joints=asked.names, **found, **given)


def largest_load(
    contacts: ContactSet,
    direction: Any,
    wrench: Any = None,
    *,
    least: float = 0.0,
    safety: float = 1.0,
    jacobian: Any = None,
    limits: Any = None,
    lower: Any = None,
    offset: Any = None,
    joints: Sequence[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> np.ndarray:
    """How much of a wrench can be added to a load before no contact forces hold it.

    The static stability margin of a walker is the load that is added when its weight shifts: with `direction`
    the moment of its weight at one metre, how many metres.

    Parameters
    ----------
    contacts : ContactSet
    direction : (..., W) array_like
        The wrench that grows, as `wrench` in `grip_forces`.
    wrench : (..., W) array_like, optional
        The load that is there; none by default.
    least, safety, jacobian, limits, lower, offset, joints, failures
        As in `grip_forces`.

    Returns
    -------
    (...) ndarray
        Largest multiple of `direction`, never too large; infinite where nothing bounds it, NaN where the load
        itself is not held.

    Raises
    ------
    InputError
        As `grip_forces`, and for a direction of no size.
    SingularError, LimitError, KicError
        As `grip_forces`.

    Examples
    --------
    A block of 10 N on two feet, one metre apart, bears a moment of 5 N m before it tips:

    >>> import kic
    >>> c = kic.ContactSet([[-0.5, 0, 0], [0.5, 0, 0]], [[0, 1, 0], [0, 1, 0]], "point", plane=[0, 0, 1])
    >>> kic.largest_load(c, [0, 0, 1], [0, -10, 0]).round(6)
    np.float64(5.0)
    """
    asked = Question(contacts, wrench, direction, least, safety, jacobian, limits, lower, offset, joints)

    def one(i: int) -> dict[str, Any]:
        asked.demand(i).inside()  # the load itself
        return {"most": asked.demand(i, added=True).most()}

    return gathered(each(asked.batch, failures, one)[1], asked.batch, "most", ())
