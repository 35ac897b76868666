"""Planar two-link and three-link arms in closed form, and their workspaces (Horn 1975).

Pages are those of B. K. P. Horn, "Kinematics, Statics, and Dynamics of Two-D Manipulators", Working Paper 99,
Artificial Intelligence Laboratory, Massachusetts Institute of Technology, June 1975.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import acos
from typing import Any, ClassVar, Literal

import numpy as np

from kic.classics.common import check_fields, real_array, sin_cos, wrap_to_pi
from kic.classics.planar_chain import PlanarChain
from kic.errors import ConfigurationError, InputError, SingularError, invalid, invalid_part
from kic.numerics.arrays import as_array, broadcast_batches, check_failures, reals
from kic.numerics.tolerances import EPS

# a radius this close to a workspace boundary, relative to the link lengths, may differ from it by rounding
BOUNDARY_RTOL = 4 * EPS


@dataclass(frozen=True)
class Annulus:
    """Annulus about the base, including both boundary circles; a disc if `inner` is 0.

    Parameters
    ----------
    inner, outer : float
        Radii.

    Examples
    --------
    >>> ring = Annulus(0.5, 1.5)
    >>> ring.width, ring.mean_radius
    (1.0, 1.0)
    """

    inner: float
    outer: float

    def __post_init__(self) -> None:
        check_fields(self, nonnegative=["inner", "outer"])
        if self.inner > self.outer:
            rule = f"must not exceed `outer` = {self.outer:g}"
            raise invalid_part("Annulus", "inner", rule, self.inner, "Swap them.", shown=f"{self.inner:g}")

    @property
    def width(self) -> float:
        """Difference of the radii."""
        return self.outer - self.inner

    @property
    def mean_radius(self) -> float:
        """Mean of the radii."""
        return (self.inner + self.outer) / 2

    def contains(self, radius: Any) -> np.ndarray:
        """Return a mask (...) of the distances (...) from the base that are in the annulus.

        Examples
        --------
        >>> Annulus(0.5, 1.5).contains([0.4, 0.5, 1.0]).tolist()
        [False, True, True]
        """
        r = reals(radius)
        if r is None:
            raise invalid("radius", "must be finite and real", radius, "Give distances.")
        return (self.inner <= r) & (r <= self.outer)


def reachable_workspace(*lengths: float) -> Annulus:
    """Return the annulus that the tip of a planar serial chain reaches (p. 8 for two links).

    Parameters
    ----------
    *lengths : float
        Lengths of the links, at least one.

    Returns
    -------
    Annulus
        For two links its width is twice the shorter length and its mean radius the longer length.

    Examples
    --------
    >>> reachable_workspace(2.0, 0.5)
    Annulus(inner=1.5, outer=2.5)
    """
    if not lengths:
        message = "`lengths` must name at least one link, got none. Give the length of each link."
        raise InputError(message, key="lengths")
    found = _positive_lengths("lengths", lengths)
    if found.ndim != 1:
        raise invalid("lengths", "must be numbers, one for each link", lengths)
    *rest, longest = np.sort(found).tolist()
    return Annulus(max(0.0, longest - sum(rest)), longest + sum(rest))


def dexterous_radii(l1: Any, l2: Any, l3: Any) -> np.ndarray:
    """Return the tip radii at which the last of three links can point in every direction (p. 22, corrected).

    The circle of radius l3 about the tip must lie in the annulus of the first two links. The printed rule is
    corrected in three points. The disc also ends at l1 + l2 − l3. A ring needs l3 ≤ min(l1, l2). There is
    neither disc nor ring for l3 > l1 + l2.

    Parameters
    ----------
    l1, l2, l3 : (...) array_like
        Positive lengths of the links; batches broadcast.

    Returns
    -------
    (..., 2, 2) ndarray
        Intervals (inner, outer) of a disc and a ring, NaN where one does not exist. The disc is (0, min(l3 −
        |l1 − l2|, l1 + l2 − l3)) and exists for |l1 − l2| ≤ l3 ≤ l1 + l2. The ring starts at l3 + |l1 − l2|,
        has width 2 (min(l1, l2) − l3) and exists for l3 ≤ min(l1, l2). For l1 = l2 (to rounding) the two
        touch and are returned as one disc.

    Examples
    --------
    >>> dexterous_radii(1.0, 0.625, [0.25, 0.5, 0.75]).tolist()
    [[[nan, nan], [0.625, 1.375]], [[0.0, 0.125], [0.875, 1.125]], [[0.0, 0.375], [nan, nan]]]
    """
    lengths = {name: _positive_lengths(name, value) for name, value in (("l1", l1), ("l2", l2), ("l3", l3))}
    batch = broadcast_batches(**{name: a.shape for name, a in lengths.items()})
    l1, l2, l3 = (np.broadcast_to(a, batch) for a in lengths.values())
    difference, total, shorter = abs(l1 - l2), l1 + l2, np.minimum(l1, l2)
    atol = BOUNDARY_RTOL * total
    equal = difference <= atol
    has_disc = (difference <= l3 + atol) & (l3 <= total + atol)
    has_ring = (l3 <= shorter + atol) & ~equal
    disc_outer = np.where(equal, total - l3, np.minimum(l3 - difference, total - l3))
    ring_inner = l3 + difference
    disc = np.stack([0 * disc_outer, np.maximum(disc_outer, 0.0)], axis=-1)
    ring = np.stack([ring_inner, ring_inner + 2 * np.maximum(shorter - l3, 0.0)], axis=-1)
    exists = np.stack([has_disc, has_ring], axis=-1)
    return np.where(exists[..., None], np.stack([disc, ring], axis=-2), np.nan)


def _positive_lengths(name: str, value: Any) -> np.ndarray:
    """Return positive lengths of any shape, or raise `InputError`."""
    a = as_array(name, value)
    if a.dtype != np.float64 or not (a > 0).all():
        raise invalid(name, "must be positive", value, "Omit links without length.")
    return a


@dataclass(frozen=True)
class TwoLink(PlanarChain):
    """Planar arm of two uniform slender links in closed form (pp. 4-19).

    theta1 is measured from x and theta2 from the direction of link 1, both counterclockwise; y points up.

    Parameters
    ----------
    l1, l2 : float
        Lengths.
    m1, m2 : float, optional
        Masses; only the dynamics need them.
    g : float
        Gravity along −y.

    Examples
    --------
    >>> arm = TwoLink(1.0, 1.0, m1=2.0, m2=2.0, g=9.81)
    >>> arm.inverse_kinematics([1.0, 1.0]).round(6).tolist()  # both elbow branches
    [[0.0, 1.570796], [1.570796, -1.570796]]
    >>> arm.reachable_workspace
    Annulus(inner=0.0, outer=2.0)
    """

    dof: ClassVar[int] = 2
    _reference_quarter_turns: ClassVar[tuple[int, ...]] = (0, 0)
    l1: float
    l2: float
    m1: float | None = None
    m2: float | None = None
    g: float = 0.0

    @property
    def reachable_workspace(self) -> Annulus:
        """Reachable annulus of the tip, from |l1 − l2| to l1 + l2 (p. 8)."""
        return reachable_workspace(*self.lengths)

    def tip_polar(self, q: Any) -> np.ndarray:
        """Return the polar coordinates of the tip (pp. 5, 9).

        With h = theta2/2 the radius is the hypotenuse of (l1 + l2) cos h and (l1 − l2) sin h. The polar angle
        is theta1 + h minus the angle of this triangle. The form stays accurate where the arm is folded.

        Returns
        -------
        (..., 2) ndarray
            Radius, and polar angle in (−π, π]. Where equal links fold onto the base, the angle is the limit
            theta1 + theta2/2.

        Examples
        --------
        >>> TwoLink(1.0, 1.0).tip_polar([0.25, np.pi / 2]).round(6).tolist()
        [1.414214, 1.035398]
        """
        theta1, theta2 = np.moveaxis(real_array("q", q, 2), -1, 0)
        half = theta2 / 2
        x, y = (self.l1 + self.l2) * np.cos(half), (self.l1 - self.l2) * np.sin(half)
        return np.stack([np.hypot(x, y), wrap_to_pi(theta1 + half - np.arctan2(y, x))], axis=-1)

    def inverse_kinematics(self, tip: Any, *, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Return the joint angles of both elbow branches for a tip position (pp. 6-9).

        Parameters
        ----------
        tip : (..., 2) array_like
            Components x and y, real.
        failures : {"raise", "mask"}
            Raise an error for members with no solution or infinitely many, or return NaN for them.

        Returns
        -------
        (2, ..., 2) ndarray
            Angles in (−π, π]: the branch with theta2 ≥ 0, then its mirror image. The branches are equal on a
            workspace boundary; positions within rounding of it count as on it.

        Raises
        ------
        ConfigurationError
            If a member has no unique pair of branches. It carries `failed`, `reasons`, the `radius` of these
            members, and the `branches` of all members.

        Examples
        --------
        >>> TwoLink(2.0, 1.0).inverse_kinematics([[3.0, 0.0], [0.0, 1.0]])[0].round(6).tolist()
        [[0.0, 0.0], [1.570796, 3.141593]]
        """
        check_failures(failures)
        position = real_array("tip", tip, 2)
        branches, count = self._solve(position)
        if failures == "raise":
            _check_solved("tip", self, position, self, position, branches, count)
        return branches

    def solution_count(self, tip: Any) -> np.ndarray:
        """Return the number (...) of inverse kinematics solutions for tip positions (..., 2) (p. 8).

        It is 2 inside the workspace, 1 on its boundary, 0 outside, and inf at the base of equal links.

        Examples
        --------
        >>> TwoLink(1.0, 1.0).solution_count([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]).tolist()
        [inf, 2.0, 1.0, 0.0]
        """
        return self._solve(real_array("tip", tip, 2))[1]

    def _solve(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the branches and their number, with a tolerance relative to the arm."""
        return solve_two_link(self.l1, self.l2, position, BOUNDARY_RTOL * (self.l1 + self.l2))

    def inverse_mass_matrix(self, q: Any) -> np.ndarray:
        """Return the inverse of the mass matrix (p. 19).

        Returns
        -------
        (..., 2, 2) ndarray
            The adjugate divided by l1² l2² m2 (m1/9 + m2/3 − m2/4 cos² theta2).

        Raises
        ------
        SingularError
            If link 2 is massless.

        Examples
        --------
        >>> TwoLink(1.0, 1.0, 2.0, 2.0).inverse_mass_matrix([0.0, np.pi / 2]).round(6).tolist()
        [[0.375, -0.375], [-0.375, 1.875]]
        """
        I = self.dynamics(q).I
        m1, m2 = self._known_masses()
        if not m2:
            message = (
                f"`m2` of {self._label} must be positive for an invertible mass matrix, got 0. Give link 2 a "
                "mass."
            )
            raise SingularError(message, key="m2", condition=np.inf)
        _, c2 = sin_cos(as_array("q", q, 2)[..., 1:])
        determinant = (self.l1 * self.l2) ** 2 * m2 * (m1 / 9 + m2 / 3 - m2 / 4 * c2**2)
        adjugate = I[..., ::-1, ::-1] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return adjugate / determinant[..., None]

    def decoupling_angles(self) -> np.ndarray:
        """Return the angles theta2 at which the mass matrix is diagonal (p. 18).

        The condition is cos theta2 = −2 l2/(3 l1) for any masses.

        Returns
        -------
        (2,) ndarray
            Both signs of theta2; both are π for l2 = 3/2 l1.

        Raises
        ------
        ConfigurationError
            If link 2 is longer than 3/2 of link 1; it carries `cosine`.

        Examples
        --------
        >>> TwoLink(1.0, 1.0).decoupling_angles().round(6).tolist()
        [2.300524, -2.300524]
        """
        cosine = -2 * self.l2 / (3 * self.l1)
        if abs(cosine + 1) <= BOUNDARY_RTOL:
            cosine = -1.0
        if cosine < -1:
            message = (
                f"`l2` must not exceed 3/2 l1 for decoupling, got {self._label}: cos theta2 = {cosine:.6g}. "
                f"Make link 2 at most {1.5 * self.l1:g} long."
            )
            raise ConfigurationError(
                message, key="l2", failed=[()], reasons=["link 2 is too long"], cosine=cosine
            )
        angle = acos(cosine)
        return wrap_to_pi(np.array([angle, -angle]))


@dataclass(frozen=True)
class ThreeLink(PlanarChain):
    """Planar arm of three uniform slender links in closed form (pp. 20-29).

    theta1 is measured from x, theta2 and theta3 from the direction of the previous link, counterclockwise;
    y points up. The direction of the last link is phi = theta1 + theta2 + theta3.

    Parameters
    ----------
    l1, l2, l3, m1, m2, m3, g : float
        Lengths, masses and gravity, as in `TwoLink`.

    Examples
    --------
    >>> arm = ThreeLink(1.0, 0.6, 0.5)
    >>> for ring in arm.dexterous_workspace:
    ...     print(f"{ring.inner:.3g} to {ring.outer:.3g}")
    0 to 0.1
    0.9 to 1.1
    """

    dof: ClassVar[int] = 3
    _reference_quarter_turns: ClassVar[tuple[int, ...]] = (0, 1, -1)
    l1: float
    l2: float
    l3: float
    m1: float | None = None
    m2: float | None = None
    m3: float | None = None
    g: float = 0.0

    @property
    def first_two_links(self) -> TwoLink:
        """Arm of the first two links, with the wrist as its tip."""
        return TwoLink(self.l1, self.l2, self.m1, self.m2, self.g)

    @property
    def reachable_workspace(self) -> Annulus:
        """Reachable annulus of the tip with some direction of the last link."""
        return reachable_workspace(*self.lengths)

    @property
    def dexterous_workspace(self) -> tuple[Annulus, ...]:
        """Disc and ring in which the last link can point anywhere (p. 22); see `dexterous_radii`."""
        radii = dexterous_radii(*self.lengths)
        return tuple(Annulus(*pair) for pair in radii[~np.isnan(radii[:, 0])].tolist())

    def tip_pose(self, q: Any) -> np.ndarray:
        """Return the position of the tip and the direction of the last link (p. 20).

        Returns
        -------
        (..., 3) ndarray
            x, y and phi, the sum of the joint angles.

        Examples
        --------
        >>> ThreeLink(3.0, 2.0, 1.0).tip_pose([0.0, 0.0, 0.0])
        array([6., 0., 0.])
        """
        phi = as_array("q", q, 3).sum(axis=-1, keepdims=True)
        return np.concatenate([self.tip_position(q), phi], axis=-1)

    def wrist_position(self, pose: Any) -> np.ndarray:
        """Return the position (..., 2) of joint 3 for a tip pose (..., 3): x, y and phi (p. 21).

        Examples
        --------
        >>> ThreeLink(3.0, 2.0, 1.0).wrist_position([6.0, 0.0, 0.0]).tolist()
        [5.0, 0.0]
        """
        x, y, phi = np.moveaxis(real_array("pose", pose, 3), -1, 0)
        return np.stack([x - self.l3 * np.cos(phi), y - self.l3 * np.sin(phi)], axis=-1)

    def inverse_kinematics(self, pose: Any, *, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Return the joint angles (2, ..., 3) of both elbow branches for a tip pose (p. 21).

        Branches, `failures` and errors are those of `TwoLink.inverse_kinematics` for the wrist.

        Parameters
        ----------
        pose : (..., 3) array_like
            x and y of the tip and phi (rad), real.
        failures : {"raise", "mask"}
            As in `TwoLink.inverse_kinematics`.

        Examples
        --------
        >>> ThreeLink(1.0, 1.0, 0.5).inverse_kinematics([1.0, 1.5, 1.5707963267948966]).round(6).tolist()
        [[0.0, 1.570796, 0.0], [1.570796, -1.570796, 1.570796]]
        """
        check_failures(failures)
        wrist = self.wrist_position(pose)
        branches, count = self._solve(wrist)
        pose = np.asarray(pose, dtype=float)
        if failures == "raise":
            _check_solved("pose", self, pose, self.first_two_links, wrist, branches, count)
        theta3 = wrap_to_pi(pose[..., 2] - branches[..., 0] - branches[..., 1])
        return np.concatenate([branches, theta3[..., None]], axis=-1)

    def solution_count(self, pose: Any) -> np.ndarray:
        """Return the number (...) of inverse kinematics solutions for tip poses (..., 3).

        It is 2 in general, 1 where links 1 and 2 are parallel, and 0 out of reach. It is inf where equal
        links fold with the wrist on the base.

        Examples
        --------
        >>> ThreeLink(1.0, 1.0, 0.5).solution_count([[2.5, 0.0, 0.0], [0.5, 0.0, 0.0]]).tolist()
        [1.0, inf]
        """
        return self._solve(self.wrist_position(pose))[1]

    def _solve(self, wrist: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return angles of links 1 and 2 and their number, with a tolerance relative to the whole arm."""
        atol = BOUNDARY_RTOL * (self.l1 + self.l2 + 2 * self.l3)
        return solve_two_link(self.l1, self.l2, wrist, atol)


def solve_two_link(l1: float, l2: float, target: np.ndarray, atol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint angles (2, ..., 2) of two links that end at `target` (..., 2), and their number (...).

    Half angles of the triangle l1, l2, r follow from its sides. They keep full accuracy near a workspace
    boundary, where cos theta2 loses half of the digits. Angles are NaN for no or infinitely many solutions.
    A target within `atol` of a boundary counts as on it.
    """
    x, y = np.moveaxis(target, -1, 0)
    r = np.hypot(x, y)
    # The arm is stretched where `outer` is 0, and folded where `folded1` or `folded2` is 0.
    margins = l1 + l2 - r, r - (l1 - l2), r + (l1 - l2), l1 + l2 + r
    outer, folded1, folded2, perimeter = (np.where(abs(x) <= atol, 0.0, x) for x in margins)
    infinite = (folded1 == 0) & (folded2 == 0)
    reachable = (outer >= 0) & (folded1 >= 0) & (folded2 >= 0) & ~infinite
    boundary = (outer == 0) | (folded1 == 0) | (folded2 == 0)
    a, b, c, d = (np.sqrt(np.where(reachable, x, np.nan)) for x in (outer, folded1, folded2, perimeter))
    theta2, alpha = 2 * np.arctan2(a * d, b * c), 2 * np.arctan2(a * b, c * d)
    # On a boundary ±alpha agree up to a full turn; using one of them makes the branches equal bit for bit.
    theta1 = np.arctan2(y, x) - np.stack([alpha, np.where(boundary, alpha, -alpha)])
    branches = wrap_to_pi(np.stack([theta1, np.stack([theta2, -theta2])], axis=-1))
    return branches, np.where(infinite, np.inf, np.where(reachable, np.where(boundary, 1.0, 2.0), 0.0))


def _check_solved(
    argument: str,
    arm: PlanarChain,
    given: np.ndarray,
    links: TwoLink,
    target: np.ndarray,
    branches: np.ndarray,
    count: np.ndarray,
) -> None:
    """Raise an error if a target of the first two links has no solution or infinitely many."""
    failed = (count == 0) | np.isinf(count)
    if not failed.any():
        return
    point, radius = "tip" if arm is links else "wrist", np.hypot(target[..., 0], target[..., 1])
    reasons = {}
    for index in map(tuple, np.argwhere(failed).tolist()):
        if count[index]:
            reasons[index] = f"the {point} is on the base; choose any theta1 and set theta2 = π"
        else:
            reasons[index] = unreachable_reason(f"{point} radius", radius[index], links.reachable_workspace)
    raise inverse_kinematics_error(
        argument, arm._label, given, reasons, branches=branches, radius=radius[failed]
    )


def unreachable_reason(quantity: str, radius: float, workspace: Annulus) -> str:
    """Return the reason and the remedy for a radius outside an annulus."""
    inner, outer = workspace.inner, workspace.outer
    move = f"{radius - outer:.3g} inwards" if radius > outer else f"{inner - radius:.3g} outwards"
    return f"{quantity} {radius:.6g} is outside [{inner:.6g}, {outer:.6g}]; move it {move}"


def inverse_kinematics_error(
    argument: str, arm: str, given: np.ndarray, reasons: Mapping[tuple[int, ...], str], **numbers: Any
) -> ConfigurationError:
    """Return the error for members of `given` (..., n) that an arm cannot reach, with a reason for each."""
    listed = [
        f"{given[index].tolist()}{f' at {index}' if index else ''} ({why})" for index, why in reasons.items()
    ]
    more = f" and {len(listed) - 2} more" if len(listed) > 2 else ""
    remedy = "Pass failures='mask' to keep the other members." if given.ndim > 1 else "Choose another target."
    return ConfigurationError(
        f"`{argument}` must be reachable by {arm}, got {', '.join(listed[:2])}{more}. {remedy}",
        key=argument,
        failed=list(reasons),
        reasons=list(reasons.values()),
        **numbers,
    )
