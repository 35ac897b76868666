"""Arms of the sources in closed form, with misprints corrected; see the table of `kic.classics`.

Joint angles q (..., n) and other arguments are arrays with batch axes in front. Methods accept complex
numbers and symbols unless they solve for angles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, pi, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from kic.classics.split_dynamics import SplitDynamics
from kic.description.parts import Body, Distance, Joint, Point
from kic.description.validation import GROUND, Vector, assign, number, vector
from kic.dynamics.dynamics import Dynamics
from kic.errors import ConfigurationError, InertiaError, ModelError, SingularError, invalid_part
from kic.io.dh import DHRow, from_dh
from kic.kernels.functions import cosine, sine
from kic.kinematics.coefficients import Coefficients
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import check_order
from kic.numerics.arrays import as_array, check_failures, real_array, reals
from kic.numerics.tolerances import EPS

# a radius this close to a workspace boundary, relative to the link lengths, may differ from it by rounding
BOUNDARY_RTOL = 4 * EPS
# |sin θ₃| at or below which the inverse of the wrist centre does not exist; limits its condition to 1e12
SINGULAR_SINE_ATOL = 1e-12


def sin_cos(angle: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sine and cosine of real numbers, complex numbers or symbols."""
    a = np.asarray(angle)  # the sum of two symbols is a scalar without a dtype
    if a.dtype != object:
        return np.sin(a), np.cos(a)
    s, c = (np.asarray(np.frompyfunc(f, 1, 1)(a), dtype=object) for f in (sine, cosine))
    return s, c


def wrap_to_pi(angle: np.ndarray) -> np.ndarray:
    """Return angles in (−π, π]; angles in this interval are returned unchanged."""
    return angle - 2 * np.pi * np.ceil((angle - np.pi) / (2 * np.pi)) + 0.0


def suffix_sums(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the sum over each entry and all later entries along an axis."""
    return np.flip(np.cumsum(np.flip(x, axis), axis=axis), axis)


def check_fields(arm: Any, positive: list[str], nonnegative: list[str], finite: list[str]) -> None:
    """Convert fields of a frozen dataclass to finite floats and check their signs."""
    owner = type(arm).__name__
    for keys, minimum, nonzero in ((positive, 0.0, True), (nonnegative, 0.0, False), (finite, None, False)):
        for key in keys:
            value = number(owner, key, getattr(arm, key), minimum)
            if nonzero and not value:
                message = f"{owner}: `{key}` must be positive, got 0. Give the link a length."
                raise ModelError(message, key=key)
            assign(arm, **{key: value})


def solve_two_link(l1: float, l2: float, target: np.ndarray, atol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint angles (2, ..., 2) of two links that end at `target` (..., 2), and their number (...).

    Half angles of the triangle l1, l2, r follow from its sides. They keep full accuracy near a workspace
    boundary, where cos theta2 loses half of the digits. Angles are NaN for no or infinitely many
    solutions. A target within `atol` of a boundary counts as on it.
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


def check_reached(
    name: str, given: np.ndarray, arm: str, count: np.ndarray, quantity: str, r: np.ndarray,
    lengths: tuple[float, float], infinite: str, branches: np.ndarray,
) -> None:  # fmt: skip
    """Raise an error for members of `given` (..., n) with a `count` of 0 or, for the reason `infinite`, inf.

    The distance `r` that two links must reach is called `quantity` in the message.
    """
    failed = [tuple(index) for index in np.argwhere((count == 0) | np.isinf(count)).tolist()]
    if not failed:
        return
    reasons, inner, outer = [], abs(lengths[0] - lengths[1]), sum(lengths)
    for k in failed:
        move = f"{r[k] - outer:.3g} inwards" if r[k] > outer else f"{inner - r[k]:.3g} outwards"
        missed = f"{quantity} {r[k]:.6g} is outside [{inner:.6g}, {outer:.6g}]; move it {move}"
        reasons.append(infinite if count[k] else missed)
    members = zip(failed[:2], reasons, strict=False)
    shown = ", ".join(f"{given[k].tolist()}{f' at {k}' if k else ''} ({why})" for k, why in members)
    more = f" and {len(failed) - 2} more" if len(failed) > 2 else ""
    remedy = "Pass failures='mask' to keep the other members." if count.shape else "Choose another target."
    message = f"`{name}` must be reachable by {arm}, got {shown}{more}. {remedy}"
    radius = [float(r[k]) for k in failed]
    raise ConfigurationError(
        message, key=name, failed=failed, reasons=reasons, radius=radius, branches=branches
    )


class PlanarArm:
    """Base class of the planar arms: n links in a vertical plane with relative, counterclockwise angles.

    Angles are zero with the arm along x, and gravity acts along −y. Pages are those of Horn (1975).
    """

    dof: ClassVar[int] = 3
    coordinates: tuple[str, ...] = ("shoulder", "elbow", "wrist")
    """Names of the joint angles."""
    _reference: ClassVar[tuple[int, ...]] = (0, 1, -1)  # joint angles of `mechanism`, in quarter turns
    _points: ClassVar[dict[str, int]] = {"base": 0, "tip": 3}  # and the number of the link that ends there
    _name: ClassVar[str]
    g: float

    def __post_init__(self) -> None:
        links = range(1, self.dof + 1)
        masses = [f"m{k}" for k in links if getattr(self, f"m{k}") is not None]
        check_fields(self, [f"l{k}" for k in links], masses, ["g"])

    @property
    def lengths(self) -> tuple[float, ...]:
        """Tuple of the lengths of the links."""
        return tuple(getattr(self, f"l{k + 1}") for k in range(self.dof))

    @property
    def _bodies(self) -> list[tuple[Any, ...]]:
        # mass, distance of the centre of mass, and axial and transverse inertia of each link
        links = [(getattr(self, f"m{k}"), l) for k, l in enumerate(self.lengths, 1)]
        return [(m, l / 2, 0.0, None if m is None else m * l**2 / 12) for m, l in links]

    def _link_vectors(self, q: Any) -> np.ndarray:
        """Return the vector (..., n, 2) of each link, from joint to joint."""
        s, c = sin_cos(np.cumsum(as_array("q", q, self.dof), axis=-1))
        return np.stack([c, s], axis=-1) * np.array(self.lengths)[:, None]

    def forward_kinematics(self, q: Any) -> np.ndarray:
        """Return x and y of the tip and, for three links, the direction of the last one (pp. 4, 20)."""
        tip = self._link_vectors(q).sum(axis=-2)
        phi = as_array("q", q, self.dof).sum(axis=-1, keepdims=True)
        return tip if self.dof == 2 else np.concatenate([tip, phi], axis=-1)

    def jacobian(self, q: Any) -> np.ndarray:
        """Return the Jacobian (G) of `forward_kinematics`, with determinant l1 l2 sin theta2 (p. 24).

        Its transpose maps the wrench that the tip exerts to the joint torques (pp. 11, 24).
        """
        x, y = np.moveaxis(self._link_vectors(q), -1, 0)
        return np.stack([-suffix_sums(y), suffix_sums(x), np.ones_like(x)][: self.dof], axis=-2)

    def inverse_kinematics(self, tip: Any, *, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Return the joint angles (2, ..., n) of both elbow branches in (−π, π] (pp. 6-9, 21).

        The branch with theta2 ≥ 0 is first, then its mirror image. They are equal on a workspace boundary;
        positions within rounding of it count as on it.

        Parameters
        ----------
        tip : (..., n) array_like
            As returned by `forward_kinematics`; real.
        failures : {"raise", "mask"}
            Mask members with no solution or infinitely many with NaN, or raise a `ConfigurationError`. It
            has `failed`, `reasons`, the `radius` of these members (of joint 3 for three links), and all
            `branches`.
        """
        check_failures(failures)
        given = real_array("tip", tip, self.dof)
        l1, l2, *last = self.lengths
        target, l3, point = given[..., :2], sum(last), "wrist" if last else "tip"
        if last:
            s, c = sin_cos(given[..., 2])
            target = target - l3 * np.stack([c, s], axis=-1)
        branches, count = solve_two_link(l1, l2, target, BOUNDARY_RTOL * (l1 + l2 + 2 * l3))
        if last:
            theta3 = wrap_to_pi(given[..., 2] - branches.sum(axis=-1))
            branches = np.concatenate([branches, theta3[..., None]], axis=-1)
        if failures == "raise":
            why = f"the {point} is on the base; choose any theta1 and set theta2 = π"
            radius = f"{point} radius", np.hypot(target[..., 0], target[..., 1])
            check_reached("tip", given, repr(self), count, *radius, (l1, l2), why, branches)
        return branches

    def dynamics(self, q: Any) -> Dynamics:
        """Return the mass matrix (I*), Christoffel symbols (P*) and gravity load (pp. 13-29).

        In the absolute link angles a the kinetic energy is ½ Σ W_ij cos(a_i − a_j) ȧ_i ȧ_j with constant
        W. Therefore I*_kl is the sum of W_ij cos(a_i − a_j) over i ≥ k and j ≥ l (pp. 17, 29). P*_kab is
        that of W_ij sin(a_i − a_j) over i ≥ k and j ≥ max(a, b). The gravity torques −load are on pp. 13,
        19 and 26. Horn calls the mass matrix divided by m l²/2 the sensitivity matrix.
        """
        angles, lengths = as_array("q", q, self.dof), np.array(self.lengths)
        missing = tuple(f"m{k}" for k, body in enumerate(self._bodies, 1) if body[0] is None)
        if missing:
            message = f"`{'`, `'.join(missing)}` must be given for the dynamics of {self!r}, got None."
            raise InertiaError(f"{message} Give 0 for a massless link.", bodies=missing)
        m, com, _, inertia = np.array(self._bodies, dtype=float).T
        later = suffix_sums(m) - m
        moment = m * com + later * lengths
        i, j = np.indices((self.dof, self.dof))
        W = moment[np.maximum(i, j)] * lengths[np.minimum(i, j)]
        W[i == j] = inertia + m * com**2 + later * lengths**2
        # The result is independent of the first angle; setting it to zero avoids cancellation.
        a = np.cumsum(np.concatenate([0 * angles[..., :1], angles[..., 1:]], axis=-1), axis=-1)
        s, c = sin_cos(a[..., :, None] - a[..., None, :])
        sines, cosines = (suffix_sums(suffix_sums(W * x), axis=-2) for x in (s, c))
        _, c = sin_cos(np.cumsum(angles, axis=-1))
        load = -suffix_sums(self.g * moment * c)
        return Dynamics(self.coordinates, cosines, sines[..., :, np.maximum(i, j)], load)

    def mechanism(self) -> Mechanism:
        """Return the same arm as a mechanism, with bodies link1 to linkn and the same coordinates.

        Points are base and tip or, with point masses, frame2 and frame3 at the ends of links 1 and 2.
        Three links have θ = (0, 90°, −90°) in the reference configuration.
        """
        bodies, joints, ends = [], [], [(GROUND, (0.0, 0.0, 0.0))]
        for k, (mass, com, axial, across) in enumerate(self._bodies):
            (parent, (x, y, _)), name, turn = ends[-1], f"link{k + 1}", self._reference[k] * pi / 2
            c, s = ((1.0, 0.0), (0.0, 1.0))[sum(self._reference[: k + 1])]
            inertia = None if mass is None else (c * axial + s * across, s * axial + c * across, across)
            bodies.append(Body(name, mass=mass, com=(x + c * com, y + s * com, 0.0), inertia=inertia))
            at, axis, pair = (x, y, 0.0), (0.0, 0.0, 1.0), (parent, name)
            joints.append(Joint(self.coordinates[k], "revolute", pair, at, axis, value=turn))
            ends.append((name, (x + c * self.lengths[k], y + s * self.lengths[k], 0.0)))
        points = [Point(name, *ends[k]) for name, k in self._points.items()]
        reach, gravity = [Distance("reach", ("base", "tip"))] * ("base" in self._points), (0.0, -self.g, 0.0)
        return Mechanism(self._name, bodies, joints, points=points, distances=reach, gravity=gravity)


@dataclass(frozen=True)
class TwoLink(PlanarArm):
    """Planar arm of two uniform slender links (Horn 1975, pp. 4-19).

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
    >>> arm = TwoLink(1.0, 1.0, m1=3.0, m2=3.0, g=10.0)
    >>> arm.inverse_kinematics([1.0, 1.0]).round(6).tolist()  # both elbow branches
    [[0.0, 1.570796], [1.570796, -1.570796]]
    >>> arm.dynamics([0.0, 0.0]).inverse_dynamics([0.0, 0.0], [1.0, 0.0])
    array([68. , 17.5])
    >>> arm.decoupling_angles().round(6).tolist()
    [2.300524, -2.300524]
    """

    dof = 2
    coordinates = ("shoulder", "elbow")
    _reference, _points, _name = (0, 0), {"base": 0, "tip": 2}, "two-link"
    l1: float
    l2: float
    m1: float | None = None
    m2: float | None = None
    g: float = 0.0

    def decoupling_angles(self) -> np.ndarray:
        """Return both angles theta2 (2,) at which the mass matrix is diagonal (p. 18).

        There cos theta2 = −2 l2/(3 l1). A `ConfigurationError` is raised if l2 exceeds 3/2 l1.
        """
        cosine = -2 * self.l2 / (3 * self.l1)
        cosine = -1.0 if abs(cosine + 1) <= BOUNDARY_RTOL else cosine
        if cosine < -1:
            message = f"`l2` must not exceed 3/2 l1 for decoupling, got {self!r}: cos theta2 = {cosine:.6g}."
            more = {"key": "l2", "failed": [()], "reasons": ["link 2 is too long"], "cosine": cosine}
            raise ConfigurationError(f"{message} Make link 2 at most {1.5 * self.l1:g} long.", **more)
        return wrap_to_pi(np.array([acos(cosine), -acos(cosine)]))


@dataclass(frozen=True)
class ThreeLink(PlanarArm):
    """Planar arm of three uniform slender links (Horn 1975, pp. 20-29).

    Parameters
    ----------
    l1, l2, l3, m1, m2, m3, g : float
        Lengths, masses and gravity, as in `TwoLink`.

    Examples
    --------
    >>> ThreeLink(1.0, 1.0, 0.5).inverse_kinematics([1.0, 1.5, np.pi / 2]).round(6).tolist()
    [[0.0, 1.570796, 0.0], [1.570796, -1.570796, 1.570796]]
    """

    _name = "three-link"
    l1: float
    l2: float
    l3: float
    m1: float | None = None
    m2: float | None = None
    m3: float | None = None
    g: float = 0.0


@dataclass(frozen=True)
class PointMassArm(PlanarArm):
    """Planar arm with point masses at the ends of links 1 and 2, and a body that turns at joint 3, its tip.

    The centre of mass of link 3 is on its joint axis, so the torques do not depend on θ₃. The defaults
    are those of programming exercise 6 of J. J. Craig, "Introduction to Robotics: Mechanics and Control".
    The web page with the derivation has wrong terms in m₃ where ³f₃ was not rotated into frame 2.

    Parameters
    ----------
    l1, l2, m1, m2, m3 : float
        Lengths of links 1 and 2, and masses.
    Izz : float
        Moment of inertia of link 3 about its joint axis; about its own line it is Izz/2.
    g : float
        Gravity along −y.

    Examples
    --------
    >>> PointMassArm().dynamics([0.0, 0.0, 0.0]).inverse_dynamics([0, 0, 0], [0, 0, 0]).round(2)
    array([54.88, 16.17,  0.  ])
    """

    coordinates = ("joint1", "joint2", "joint3")
    _points, _name = {"frame2": 1, "frame3": 2}, "point-mass-arm"
    l1: float = 0.5
    l2: float = 0.5
    m1: float = 4.6
    m2: float = 2.3
    m3: float = 1.0
    Izz: float = 0.1
    g: float = 9.8

    def __post_init__(self) -> None:
        check_fields(self, ["l1", "l2"], ["m1", "m2", "m3", "Izz"], ["g"])
        if self.Izz and not self.m3:
            message = f"PointMassArm: `Izz` must be 0 for m3 = 0, got {self.Izz:g}. Give link 3 a mass."
            raise ModelError(message, key="Izz")

    @property
    def lengths(self) -> tuple[float, ...]:
        """Tuple of the lengths of the links; that of link 3 is 0."""
        return self.l1, self.l2, 0.0

    @property
    def _bodies(self) -> list[tuple[Any, ...]]:
        ends = [(self.m1, self.l1, 0.0, 0.0), (self.m2, self.l2, 0.0, 0.0)]
        return [*ends, (self.m3, 0.0, self.Izz / 2, self.Izz)]


def plane_axes(theta1: np.ndarray) -> np.ndarray:
    """Return unit vectors (..., 3, 3) as rows: along the plane, across it and upwards."""
    s, c = sin_cos(theta1)
    zero = 0 * s
    components = ((c, s, zero), (-s, c, zero), (zero, zero, zero + 1))
    return np.stack([np.stack(v, axis=-1) for v in components], axis=-2)


def plane_tensors(X: Any, Z: Any, x: Any, z: Any, d: Any, lean: int = 1, order: int = 2) -> list[np.ndarray]:
    """Return a point and its derivatives of orders 1 to 3, with components in the plane in the last axis.

    X and Z are radial distance and height, x and z their parts that turn with θ₃, and d is the offset
    from the plane. With axes s and vectors r from the axes to the point, the first order is g_n = s_n ×
    r_n. Each further order is the cross product with the axis closer to the base (Table B-1): h_mn = s_m
    × g_n for m ≤ n.
    """
    axes = np.array([[0, 0, 1], [0, lean, 0], [0, lean, 0]])  # θ₂ and θ₃ turn towards x for lean = 1
    p, distal = (np.stack(np.broadcast_arrays(*v), axis=-1) for v in ((X, d, Z), (x, 0 * x, z)))
    tensors = [p, np.cross(axes, np.stack([p, p, distal], axis=-2))]
    for n in range(2, order + 1):
        first, *rest = np.sort(np.indices((3,) * n), axis=0)
        tensors.append(np.cross(axes[first], tensors[-1][(..., *rest, slice(None))]))
    return tensors


def plane_point(rows: Any, columns: Any, theta1: np.ndarray, tensors: list[Any]) -> Coefficients:
    """Return the coefficients of a point from its `plane_tensors`."""
    B, letters = plane_axes(theta1), ("", "i", "ij", "ijk")
    pairs = zip(letters, tensors, strict=False)
    values, *world = [np.einsum(f"...{k}a,...ac->...c{k}", T, B) for k, T in pairs]
    return Coefficients(rows, columns, *world, values=values)


def particle_dynamics(m: np.ndarray, gravity: Any, *point: Any) -> tuple[np.ndarray, ...]:
    """Return I*, P* and the load of particles m (N,); gravity has components in the plane."""
    _, G, H = plane_tensors(*point)
    I, P = np.einsum("p,...pia,...pja->...ij", m, G, G), np.einsum("p,...pia,...pjka->...ijk", m, G, H)
    return I, P, np.einsum("p,...pia,...a->...i", m, G, gravity)


@dataclass(frozen=True)
class Leg:
    """Leg of a column and two thin rods (Horn, Hirokawa and Vazirani 1977).

    The column turns about z (θ₁). Link 2 is hinged to it at the origin and leans from the vertical (θ₂,
    towards x for θ₁ = 0). Link 3 is hinged to the end of link 2 (θ₃, from the direction of link 2).

    Parameters
    ----------
    l2, l3, m2, m3 : float
        Lengths and masses of links 2 and 3.
    m1, R, H : float
        Mass, radius and height of the column, an upright cylinder. The height has no effect (p. 8).
    M2, M3 : float
        Point masses at the ends of link 2 (p. 23) and of link 3, the load (p. 24).
    d2, d3 : float
        Offsets δ₂ and δ₃ of links 2 and 3 from the column axis along the axis of joint 2 (p. 28).
    gravity : (3,) float
        Acceleration of gravity in any direction (p. 21).

    Examples
    --------
    >>> leg = Leg(l2=0.5, l3=0.4, m2=7.0, m3=4.0)
    >>> leg.tip_coefficients([0.0, 0.0, 0.0]).velocity([0.0, 1.0, 0.0])
    array([0.9, 0. , 0. ])
    """

    l2: float
    l3: float
    m2: float
    m3: float
    m1: float = 0.0
    R: float = 0.0
    H: float = 0.0
    M2: float = 0.0
    M3: float = 0.0
    d2: float = 0.0
    d3: float = 0.0
    gravity: Vector = (0.0, 0.0, -9.81)

    coordinates = ("waist", "hip", "knee")
    """Names of θ₁, θ₂, θ₃."""

    def __post_init__(self) -> None:
        check_fields(self, ["l2", "l3"], ["m1", "m2", "m3", "M2", "M3", "R", "H"], ["d2", "d3"])
        assign(self, gravity=vector("Leg", "gravity", self.gravity))

    def tip_coefficients(self, q: Any, order: int = 2) -> Coefficients:
        """Return the end of link 3 and its derivatives to `order` 1, 2 or 3 (pp. 11, 15, 29, 31)."""
        q, order = as_array("q", q, 3), check_order(order)
        (s2, c2), (s23, c23) = sin_cos(q[..., 1]), sin_cos(q[..., 1] + q[..., 2])
        x, z = self.l3 * s23, self.l3 * c23
        tensors = plane_tensors(self.l2 * s2 + x, self.l2 * c2 + z, x, z, self.d3, order=order)
        return plane_point(("tip.x", "tip.y", "tip.z"), self.coordinates, q[..., 0], tensors)

    def dynamics(self, q: Any) -> Dynamics:
        """Return the dynamic model T = I(θ) θ̈ + Σ C_ijk(θ) θ̇_j θ̇_k + G(θ) (pp. 5-7, 13-43).

        The load is −G; the source prints −∂P/∂θᵢ for G, with the wrong sign. C_ijk is P*_ijj for equal
        velocities and 2 P*_ijk for different ones. One mass alone gives the terms of its body.
        """
        q = as_array("q", q, 3)
        (s2, c2), (s23, c23) = sin_cos(q[..., 1:2]), sin_cos(q[..., 1:2] + q[..., 2:])
        # Halves of a rod at its Gauss points, and of the column at its radius of gyration, have its moments.
        # Each has a mass, distances u along link 2 and v along link 3, and an offset d.
        l2, l3, gauss = self.l2, self.l3, ((1 - 1 / sqrt(3)) / 2, (1 + 1 / sqrt(3)) / 2)
        m, u, v, d = np.array([
            *((self.m1 / 2, 0.0, 0.0, side * self.R / sqrt(2)) for side in (-1, 1)),
            *((self.m2 / 2, l2 * part, 0.0, self.d2) for part in gauss), (self.M2, l2, 0.0, self.d2),
            *((self.m3 / 2, l2, l3 * part, self.d3) for part in gauss), (self.M3, l2, l3, self.d3),
        ]).T  # fmt: skip
        x, z = v * s23, v * c23
        gravity = np.einsum("...ac,c->...a", plane_axes(q[..., 0]), self.gravity)
        parts = particle_dynamics(m, gravity, u * s2 + x, u * c2 + z, x, z, d)
        return Dynamics(self.coordinates, *parts)

    def mechanism(self) -> Mechanism:
        """Return the same leg with bodies column, link2 and link3, and reference θ = (0, 90°, 90°).

        Link 2 is along x and link 3 points down. M2 and M3 are at the points end and tip.
        """
        l2, l3, d2, d3, H = self.l2, self.l3, self.d2, self.d3, self.H
        axial, across = self.m1 * self.R**2 / 2, self.m1 * (3 * self.R**2 + H**2) / 12
        rod2, rod3 = self.m2 * l2**2 / 12, self.m3 * l3**2 / 12
        origin, hip, knee, end = (0.0, 0.0, 0.0), (0.0, d2, 0.0), (l2, d3, 0.0), (l2, d2, 0.0)
        y, z, turn = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), pi / 2
        bodies = (
            Body("column", mass=self.m1, com=(0.0, 0.0, -H / 2), inertia=(across, across, axial)),
            Body("link2", mass=self.m2, com=(l2 / 2, d2, 0.0), inertia=(0.0, rod2, rod2)),
            Body("link3", mass=self.m3, com=(l2, d3, -l3 / 2), inertia=(rod3, rod3, 0.0)),
        )
        joints = (
            Joint("waist", "revolute", ("ground", "column"), origin, z),
            Joint("hip", "revolute", ("column", "link2"), hip, y, value=turn),
            Joint("knee", "revolute", ("link2", "link3"), knee, y, value=turn),
        )
        tip = Point("tip", "link3", (l2, d3, -l3), mass=self.M3)
        points = (Point("hub", "column", origin), Point("end", "link2", end, mass=self.M2), tip)
        reach = (Distance("reach", ("hub", "tip")),)
        return Mechanism("leg", bodies, joints, points=points, distances=reach, gravity=self.gravity)


@dataclass(frozen=True)
class ThreeLinkPuma:
    """First three links of the PUMA with the split dynamics of Lee, Lee and Nigam (1982, pp. 17-31).

    The corrected misprints are the offset d₂, missing in the positions, the factor 2 of one term of H₁,
    and the sign of G. Terms that vanish are omitted.

    Parameters
    ----------
    masses : (3,) array_like
        Masses of the links.
    coms : (3, 3) array_like
        Centre of mass of each link in its own frame, which is at the distal end of the link.
    inertias : (3, 3) array_like
        Moments of inertia of each link about its centre of mass along the axes of its frame. The source
        has no products of inertia (p. 17).
    a2, a3, d2 : float
        Denavit-Hartenberg lengths; the defaults are those of the table on p. 18, in metres.
    g : float
        Gravity along −z.
    inertia_exception : str
        Reason for moments of inertia that no body can have; see `kic.Body`.

    Examples
    --------
    >>> arm = ThreeLinkPuma([1, 1, 1], [[0, 0, 0]] * 3, [[0.1, 0.1, 0.1]] * 3)
    >>> arm.dynamics([0.0, 0.5, 0.3]).H_tran([0.0, 1.0, 0.0]).round(4)
    array([ 0.1109,  0.    , -0.0026])
    """

    masses: Any
    coms: Any
    inertias: Any
    a2: float = 0.4318
    a3: float = -0.02032
    d2: float = 0.14909
    g: float = 9.8062
    inertia_exception: str = ""

    coordinates = ("joint1", "joint2", "joint3")
    """Names of the joint angles."""

    def __post_init__(self) -> None:
        check_fields(self, [], [], ["a2", "a3", "d2", "g"])
        for key, shape in {"masses": (3,), "coms": (3, 3), "inertias": (3, 3)}.items():
            value, a = getattr(self, key), reals(getattr(self, key))
            if a is None or a.shape != shape:
                rule = f"must be finite numbers of shape {shape}"
                raise invalid_part("ThreeLinkPuma", key, rule, value, "Give one entry per link.")
            assign(self, **{key: tuple(tuple(x) if isinstance(x, list) else x for x in a.tolist())})
        self.mechanism()  # checks masses and inertias

    def dynamics(self, q: Any) -> SplitDynamics:
        """Return the split dynamics in closed form: D (pp. 21-23), H (pp. 24-31) and G (p. 31).

        H_tran and H_rot of the source are quadratic forms of P_tran and P_rot in the joint velocities.
        """
        q = as_array("q", q, 3)
        (s2, c2), (s23, c23) = sin_cos(q[..., 1]), sin_cos(q[..., 1] + q[..., 2])
        (x1, _, z1), (x2, y2, z2), (x3, y3, z3) = self.coms
        (_, Iy1, _), (Ix2, Iy2, Iz2), (Ix3, Iy3, Iz3) = self.inertias
        # Centres of mass along the arm (C₁x + S₁y of the source) and upwards: r of link 2 and b of link 3
        # from the shoulder, and c of link 3 from the elbow.
        rx, rz = (self.a2 + x2) * c2 - y2 * s2, -(self.a2 + x2) * s2 - y2 * c2
        cx, cz = (self.a3 + x3) * c23 + z3 * s23, z3 * c23 - (self.a3 + x3) * s23
        bx, bz = self.a2 * c2 + cx, cz - self.a2 * s2
        X, Z, x, z = (np.stack(v, axis=-1) for v in ((rx, bx), (rz, bz), (0 * cx, cx), (0 * cz, cz)))
        m, d = np.array(self.masses[1:]), np.array([self.d2 + z2, self.d2 + y3])
        D_tran, P_tran, load = particle_dynamics(m, [0.0, 0.0, -self.g], X, Z, x, z, d)
        D_tran[..., 0, 0] += self.masses[0] * (x1**2 + z1**2)
        D_rot, P_rot = np.zeros_like(D_tran), np.zeros_like(P_tran)
        D_rot[..., 0, 0] = Iy1 + Ix2 * s2**2 + Iy2 * c2**2 + Ix3 * s23**2 + Iz3 * c23**2
        D_rot[..., 1, 1] = Iz2 + Iy3
        D_rot[..., 1, 2] = D_rot[..., 2, 1] = D_rot[..., 2, 2] = Iy3
        upper_arm, forearm = s2 * c2 * (Ix2 - Iy2), s23 * c23 * (Ix3 - Iz3)
        P_rot[..., 0, 0, 1] = P_rot[..., 0, 1, 0] = upper_arm + forearm
        P_rot[..., 0, 0, 2] = P_rot[..., 0, 2, 0] = forearm
        P_rot[..., 1, 0, 0], P_rot[..., 2, 0, 0] = -(upper_arm + forearm), -forearm
        return SplitDynamics(self.coordinates, D_tran, D_rot, P_tran, P_rot, -load, damping=np.zeros((3, 3)))

    def mechanism(self) -> Mechanism:
        """Return the same arm as a mechanism with zero joint angles in the reference configuration."""
        lengths = (0.0, -pi / 2, 0.0), (self.a2, 0.0, self.d2), (self.a3, pi / 2, 0.0)
        rows = [DHRow(f"joint{k}", f"link{k}", a=a, alpha=t, d=d) for k, (a, t, d) in enumerate(lengths, 1)]
        parts, why = zip(self.masses, self.coms, self.inertias, strict=True), self.inertia_exception
        given = [{"mass": m, "com": c, "inertia": I, "inertia_exception": why} for m, c, I in parts]
        links, gravity = [Body(f"link{k}", **x) for k, x in enumerate(given, 1)], (0.0, 0.0, -self.g)
        return from_dh("three-link-puma", rows, convention="standard", bodies=links, gravity=gravity)


@dataclass(frozen=True)
class WristPartitioned:
    """Arm whose wrist centre P is positioned by waist, shoulder and elbow (Freeman, Appendix B).

    The waist θ₁ turns about z. The axes of shoulder θ₂ and elbow θ₃ are parallel, their plane of motion
    contains the waist axis, and θ₂ is measured from the horizontal. With r = a₂₃ c₂ + a₃₄ c₂₃ and
    z = a₂₃ s₂ + a₃₄ s₂₃, the wrist centre is P = (r c₁, r s₁, s₁₁ + z).

    Parameters
    ----------
    a23, a34 : float
        Lengths of upper arm and forearm.
    s11 : float
        Height of the shoulder.

    Examples
    --------
    >>> arm = WristPartitioned(1.3, 0.9, 0.4)
    >>> theta = arm.inverse_kinematics([1.5, 0.5, 0.8])  # four branches
    >>> theta.shape, np.abs(arm.wrist_coefficients(theta).values - [1.5, 0.5, 0.8]).max() < 1e-14
    ((4, 3), np.True_)
    >>> arm.inverse_coefficients(theta).D.shape
    (4, 3, 3, 3, 3)
    """

    a23: float
    a34: float
    s11: float = 0.0

    coordinates = ("waist", "shoulder", "elbow")
    """Names of θ₁, θ₂, θ₃."""
    rows = ("wrist.x", "wrist.y", "wrist.z")
    """Names of the components of P."""
    branches = (("front", "down"), ("front", "up"), ("back", "down"), ("back", "up"))
    """Branches of `inverse_kinematics`: P in front of the waist (r > 0) or behind it, and elbow down or up.
    Down means below the line from the shoulder to P, with θ₃ > 0 in front."""

    def __post_init__(self) -> None:
        check_fields(self, ["a23", "a34"], [], ["s11"])

    def wrist_coefficients(self, theta: Any, order: int = 3) -> Coefficients:
        """Return the wrist centre and its derivatives to `order` 1, 2 or 3 (Table B-1, corrected)."""
        theta, order = as_array("theta", theta, 3), check_order(order)
        (s2, c2), (s23, c23) = sin_cos(theta[..., 1]), sin_cos(theta[..., 1] + theta[..., 2])
        x, z = self.a34 * c23, self.a34 * s23
        tensors = plane_tensors(self.a23 * c2 + x, self.a23 * s2 + z, x, z, 0.0, -1, order)
        tensors[0] = tensors[0] + [0.0, 0.0, self.s11]
        return plane_point(self.rows, self.coordinates, theta[..., 0], tensors)

    def inverse_kinematics(self, P: Any, *, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Return the joint angles (4, ..., 3) of all four `branches` for positions P (..., 3).

        Angles are in (−π, π]. The two elbow branches are equal on a boundary of the workspace. Members
        out of reach or on the waist axis raise a `ConfigurationError`, or are NaN for `failures` "mask".
        The error has `failed`, `reasons`, `radius` (distances from the shoulder) and the `branches` of
        all members.
        """
        check_failures(failures)
        P = real_array("P", P, 3)
        x, y, z = P[..., 0], P[..., 1], P[..., 2] - self.s11
        radius, a, b = np.hypot(x, y), self.a23, self.a34
        atol = BOUNDARY_RTOL * (a + b + abs(self.s11))
        planar, count = solve_two_link(a, b, np.stack([radius, z], axis=-1), atol)
        count = np.where((radius <= atol) & (count > 0), np.inf, count)
        shoulder, elbow = np.moveaxis(planar, -1, 0)
        # The arm behind the waist is the mirror image of the arm in front of it.
        waist = np.stack([np.arctan2(y, x)] * 2 + [np.arctan2(-y, -x)] * 2)
        angles = waist, np.concatenate([shoulder, np.pi - shoulder]), np.concatenate([elbow, -elbow])
        failed = (count == 0) | np.isinf(count)
        branches = np.where(failed[..., None], np.nan, wrap_to_pi(np.stack(angles, axis=-1)))
        if failures == "raise":
            why = "P is on the waist axis, where any waist angle is possible"
            distance = "distance of P from the shoulder", np.hypot(radius, z)
            check_reached("P", P, repr(self), count, *distance, (a, b), why, branches)
        return branches

    def inverse_coefficients(self, theta: Any, order: int = 3) -> Coefficients:
        """Return G, H and D of the joint angles with respect to the wrist centre, to `order` 1, 2 or 3.

        Let h and n be horizontal unit vectors along the arm and across it. Let f and e be unit vectors
        along upper arm and forearm, and p the vector from the shoulder to P. The first order (B-6, corrected)
        and the second order (B-8), the result of (B-1) to (B-15), follow. H2 and H3 are not printed::

            G1 = n / r                  H1 = −(n h + h n) / r²
            G2 = e / (a23 s3)           H2 = c23 n n / (a23 s3 r) + f f / (a23 a34 s3³) + c3 e e / (a23² s3³)
            G3 = −p / (a23 a34 s3)      H3 = −(1 + c3 p p / (a23 a34 s3²)) / (a23 a34 s3)

        The third order follows from these and Table B-1 (3-47). If the elbow is straight or folded, or P
        is on the waist axis, a `SingularError` has `failed`, `r` and `s3`.
        """
        theta, order = as_array("theta", theta, 3), check_order(order)
        # Scalars have shape (..., 1) and multiply vectors (..., 3) by broadcasting.
        (s2, c2), (s3, c3) = (sin_cos(theta[..., k : k + 1]) for k in (1, 2))
        s23, c23 = sin_cos(theta[..., 1:2] + theta[..., 2:])
        a, b, (h, n, up) = self.a23, self.a34, np.moveaxis(plane_axes(theta[..., 0]), -2, 0)
        r, f, e = a * c2 + b * c23, c2 * h + s2 * up, c23 * h + s23 * up
        self._check_regular(r[..., 0], s3[..., 0])
        p = a * f + b * e
        G = np.stack([n / r, e / (a * s3), -p / (a * b * s3)], axis=-2)

        def outer(k: Any, u: np.ndarray, v: np.ndarray) -> np.ndarray:
            return (k * u)[..., :, None] * v[..., None, :]

        H2 = outer(c23 / (a * s3 * r), n, n) + outer(1 / (a * b * s3**3), f, f)
        H3 = -np.eye(3) / (a * b * s3[..., None]) - outer(c3 / (a**2 * b**2 * s3**3), p, p)
        rows = [-outer(r**-2, n, h) - outer(r**-2, h, n), H2 + outer(c3 / (a**2 * s3**3), e, e), H3]
        H, w = np.stack(rows, axis=-3), self.wrist_coefficients(theta)
        h = np.einsum("...pab,...am,...bn->...pmn", w.H, G, G)
        D = -np.einsum("...kp,...pabc,...al,...bm,...cn->...klmn", G, w.D, G, G, G)
        for term in ("klp,...pmn", "kpn,...plm", "kmp,...pln"):
            D = D - np.einsum(f"...{term}->...klmn", H, h)
        return Coefficients(self.coordinates, self.rows, *(G, H, D)[:order], values=theta)

    def _check_regular(self, r: np.ndarray, s3: np.ndarray) -> None:
        if s3.dtype == object:
            return
        r, s3 = np.real(r), np.real(s3)
        straight = np.abs(s3) <= SINGULAR_SINE_ATOL
        failed = straight | (np.abs(r) <= SINGULAR_SINE_ATOL * (self.a23 + self.a34))
        if members := [tuple(index) for index in np.argwhere(failed).tolist()]:
            k, n = members[0], len(members)
            reason = "the elbow is straight or folded" if straight[k] else "P is on the waist axis"
            where = f" at member {k} ({n} of {failed.size} members fail)" if k else ""
            given = f"r = {r[k]:.3g} and sin θ₃ = {s3[k]:.3g}{where}: {reason}"
            message = f"`theta` must be nonsingular, got {given}. Choose another configuration."
            raise SingularError(message, key="theta", failed=members, r=float(r[k]), s3=float(s3[k]))

    def mechanism(self) -> Mechanism:
        """Return the same links as a mechanism without masses, with the point wrist."""
        shoulder, elbow = DHRow("shoulder", "upper_arm", alpha=pi / 2), DHRow("elbow", "forearm", a=self.a23)
        rows = (DHRow("waist", "column", d=self.s11), shoulder, elbow)
        wrist = Point("wrist", "forearm", (self.a34, 0.0, 0.0))
        return from_dh("wrist-partitioned", rows, convention="freeman", points=(wrist,))
