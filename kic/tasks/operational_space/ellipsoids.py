"""Ellipsoids of velocity, force, inertia and acceleration of a task, and manipulability."""

from __future__ import annotations

from collections.abc import Iterable
from math import gamma, pi
from typing import Any, Literal

import numpy as np

from kic.errors import InputError, SingularError, invalid
from kic.kinematics.jets import ERROR_FACTOR, diagnose
from kic.kinematics.scaling import coordinate_limits, row_factors
from kic.mechanism.configuration import Configuration, model_of
from kic.numerics.arguments import choice, flag, names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_failures, directions, numbers, real_array
from kic.numerics.display import Printable, Summary

Kind = Literal["velocity", "force", "inertia", "acceleration"]
# definitions, for summaries
KINDS = {
    "velocity": "u̇ = G q̇ of rates with Σ (q̇/limit)² ≤ 1",
    "force": "F whose efforts T = GᵀF have Σ (T/limit)² ≤ 1",
    "inertia": "u̇ᵀ Λ u̇ ≤ 1",
    "acceleration": "ü of efforts with Σ (T/limit)² ≤ 1",
}
# smallest component of a direction, as a share of its length, across a flat ellipsoid; less is rounding
OFF_AXIS_RTOL = 1e-12
# smallest singular value, as a share of the largest, that rounding does not reach
FLATNESS_RTOL = 1e-14


class Ellipsoid(Printable):
    """Image of the unit ball of rates or efforts of the coordinates under a task.

    With M coordinates, P task rows, limits ℓ (1 by default) and R = diag ℓ, all four are images of a ball::

        velocity      u̇ = G q̇,  |R⁻¹q̇| ≤ 1                  Yoshikawa's manipulability ellipsoid (1985)
        force         T = GᵀF,  |R⁻¹T| ≤ 1                  its dual: loads that the actuators can hold
        inertia       u̇ᵀ Λ u̇ ≤ 1, Λ = (G I*⁻¹Gᵀ)⁻¹          Asada's generalized inertia ellipsoid (1983)
        acceleration  ü = G I*⁻¹(T − bias) + q̇ᵀH q̇,         Yoshikawa's dynamic manipulability (1985)
                      |R⁻¹T| ≤ 1

    The norm is the Euclidean norm of coordinates divided by their limits. Hence the ellipsoid lies within the
    set that is reachable if each coordinate may use its full limit. If the task is singular, ellipsoids of
    velocity, inertia and acceleration are flat (a semi-axis is 0) and that of force is unbounded (inf).

    Attributes
    ----------
    kind : {"velocity", "force", "inertia", "acceleration"}
        Kind of ellipsoid.
    rows, coordinates : tuple of str
        Names of the P rows and of the M coordinates.
    limits : (M,)
        Limits of the rates or efforts.
    length : float or None
        Length by which angular rows were multiplied (and moments divided).
    axes : (..., P, P)
        Directions of the principal axes: orthonormal columns, the largest entry of each positive.
    semi_axes : (..., P)
        Lengths of the semi-axes, the longest first. For "inertia" they are 1/√mass: the longest is the
        lightest.
    center : (..., P)
        Center: the acceleration of the task without effort for "acceleration", else 0.
    matrix : (..., P, P)
        E in (x − center)ᵀ E⁻¹ (x − center) ≤ 1; for "force" Q in FᵀQ F ≤ 1. It is finite for singular tasks,
        too: G R² Gᵀ, G R⁻² Gᵀ, Λ⁻¹ and G I*⁻¹R² I*⁻¹Gᵀ.

    Examples
    --------
    >>> e = kic.load("horn-two-link").at([0.0, 1.5]).ellipsoid(["tip.x", "tip.y"])
    >>> e.semi_axes.round(3), e.manipulability.round(3), e.condition.round(3)
    (array([1.669, 0.598]), np.float64(0.997), np.float64(2.791))
    """

    _one_line = ("kind", "rows", "coordinates", "batch")

    def __init__(
        self,
        kind: Kind,
        rows: tuple[str, ...],
        coordinates: tuple[str, ...],
        image: np.ndarray,
        center: np.ndarray,
        limits: np.ndarray,
        length: float | None,
        error: np.ndarray,
        source: tuple[Configuration, tuple[str, ...] | None],
    ) -> None:
        self._source = source
        self.kind, self.rows, self.coordinates = kind, rows, coordinates
        self.limits, self.length, self.center = limits, length, center
        self.matrix = image @ np.swapaxes(image, -1, -2)
        self.axes, self._singular = _principal_axes(image, error)
        self.semi_axes = self._singular
        if kind == "force":  # the shortest axis of the image of the ball supports the largest force
            self.axes, s = self.axes[..., ::-1], self._singular[..., ::-1]
            self.semi_axes = _reciprocal(s)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.semi_axes.shape[:-1]

    @property
    def rank(self) -> np.ndarray:
        """Number of directions in which the task can move, (...) int; 0 for unsolved members."""
        return (self._singular > 0).sum(axis=-1)

    @property
    def manipulability(self) -> np.ndarray:
        """Product of the semi-axes, (...).

        For "velocity" it is Yoshikawa's w = √det(G R² Gᵀ), for "acceleration" his dynamic measure, for
        "inertia" 1/√det Λ, for "force" 1/w.
        """
        return self.semi_axes.prod(axis=-1)

    @property
    def volume(self) -> np.ndarray:
        """Volume, (...): the product of the semi-axes times that of the unit ball, in P dimensions."""
        half = len(self.rows) / 2
        return pi**half / gamma(half + 1) * self.manipulability

    @property
    def isotropy(self) -> np.ndarray:
        """Ratio of the shortest to the longest semi-axis, (...): 1 for a ball, 0 for a singular task.

        For "velocity" it is the conditioning index. Its mean over a workspace is the global conditioning
        index of Gosselin and Angeles (1991).
        """
        s = self._singular
        return s[..., -1] / np.where(s[..., 0] == 0, 1.0, s[..., 0])

    @property
    def condition(self) -> np.ndarray:
        """Ratio of the longest to the shortest semi-axis, (...): 1 for a ball, inf for a singular task."""
        return _reciprocal(self.isotropy)

    @property
    def masses(self) -> np.ndarray:
        """Principal masses, (..., P): eigenvalues of Λ, lightest first; inf where the task cannot move.

        Raises
        ------
        InputError
            If the kind is not "inertia".

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 1.5])
        >>> c.ellipsoid(["tip.x", "tip.y"], kind="inertia").masses.round(4)
        array([0.3332, 1.3368])
        """
        if self.kind != "inertia":
            message = f"Masses require an ellipsoid of kind 'inertia', got '{self.kind}'."
            raise InputError(message, key="kind", got=self.kind)
        return _reciprocal(self.semi_axes**2)

    def gradient(self, *, failures: Literal["raise", "mask"] = "raise") -> np.ndarray:
        """Compute the exact gradient of the manipulability in the coordinates, from the Hessian (H).

        Parameters
        ----------
        failures : {"raise", "mask"}
            Treatment of members whose manipulability is 0 and has no gradient: raise an error, or return NaN.

        Returns
        -------
        (..., M) ndarray

        Raises
        ------
        InputError
            If the kind is not "velocity", or there are more rows than coordinates.
        SingularError
            If the task is singular.

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 1.5]).ellipsoid(["tip.x", "tip.y"]).gradient().round(4)
        array([0.    , 0.0707])
        """
        if self.kind != "velocity":
            message = f"The gradient requires an ellipsoid of kind 'velocity', got '{self.kind}'."
            raise InputError(message, key="kind", got=self.kind)
        if len(self.rows) > len(self.coordinates):
            message = (
                f"The gradient requires at most {len(self.coordinates)} rows, got {len(self.rows)}, whose "
                "manipulability is 0 everywhere. Name fewer rows."
            )
            raise InputError(message, key="of", got=len(self.rows))
        check_failures(failures)
        configuration, wrt = self._source
        u = configuration.coefficients(self.rows, order=2, wrt=wrt, failures=failures)
        assert u.scaling is not None  # for the type checker: these are of a mechanism
        S = row_factors(model_of(configuration).description, u.rows, self.length)
        G, H = S[:, None] * u.G * self.limits, S[:, None, None] * u.H * self.limits
        flat = np.isinf(diagnose(u.G, None, u.scaling)[0])
        gradient = np.where(flat[..., None], np.nan, manipulability_gradient(G, H))
        lost = np.isfinite(u.G).all(axis=(-1, -2)) & np.isnan(gradient).any(axis=-1)
        if failures == "raise" and lost.any():
            raise SingularError(
                f"The manipulability of {', '.join(u.rows)} of '{configuration.name}' is 0 here and has no "
                "gradient. Name fewer rows, or move away from this configuration.",
                names=u.rows,
                failed=[tuple(index) for index in np.argwhere(lost).tolist()],
            )
        return gradient

    def along(self, direction: Any) -> np.ndarray:
        """Return the distance (...,) from the centre to the surface along a direction.

        Parameters
        ----------
        direction : (..., P) array_like
            Direction in the rows of the task, angular rows times `length`, of any length.

        Returns
        -------
        (...,)
            1/√(dᵀE⁻¹d) for the unit vector d: 0 out of the plane of a flat ellipsoid, inf if unbounded. For
            "inertia" 1/√(dᵀΛd).

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([[0.0, 1.5], [0.0, 0.0]])
        >>> c.ellipsoid(["tip.x", "tip.y"]).along([1.0, 0.0]).round(3)
        array([0.93, 0.  ])
        """
        return _reciprocal(np.sqrt(self._level(self._unit(direction))))

    def support(self, direction: Any) -> np.ndarray:
        """Return the largest component (...,) along a direction as in `along`, measured from the centre.

        It is √(dᵀE d) for the unit vector d. For "inertia" it is 1/√mass with the effective mass of
        `OperationalSpace.mass`.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 1.5])
        >>> e = c.ellipsoid(["tip.x", "tip.y"], kind="inertia")
        >>> (1 / e.support([1, 0]) ** 2).round(4)  # the mass that a force along x accelerates
        np.float64(0.3341)
        """
        y = self._components(self._unit(direction))
        return np.sqrt(((np.where(y == 0, 1.0, self.semi_axes) * y) ** 2).sum(axis=-1))

    def level(self, x: Any) -> np.ndarray:
        """Return (x − center)ᵀ E⁻¹ (x − center): below 1 inside, 1 on the surface, above 1 outside.

        `x` (..., P) are velocities, forces or accelerations of the task, angular rows times `length`. The
        level is inf outside the plane of a flat ellipsoid.
        """
        x = real_array("x", x, len(self.rows))
        broadcast_batches(ellipsoid=self.batch, x=x.shape[:-1])
        return self._level(x - self.center)

    def surface(self, unit: Any) -> np.ndarray:
        """Return points of the surface, the images of points of a unit sphere.

        Parameters
        ----------
        unit : (K, P) array_like
            Directions on the sphere, such as cos and sin of K angles, of any length.

        Returns
        -------
        (..., K, P)
            center + axes · (semi_axes × unit); NaN for unbounded members.

        Examples
        --------
        >>> e = kic.load("horn-two-link").at([0.0, 1.5]).ellipsoid(["tip.x", "tip.y"])
        >>> angle = np.linspace(0, 2 * np.pi, 100)
        >>> e.surface(np.stack([np.cos(angle), np.sin(angle)], axis=1)).shape
        (100, 2)
        """
        v = directions("unit", unit, len(self.rows))
        if v.ndim != 2:
            raise invalid("unit", f"must have shape (K, {len(self.rows)})", v.shape)
        bounded = np.where(np.isfinite(self.semi_axes).all(axis=-1, keepdims=True), self.semi_axes, np.nan)
        return self.center[..., None, :] + (bounded[..., None, :] * v) @ np.swapaxes(self.axes, -1, -2)

    def _unit(self, direction: Any) -> np.ndarray:
        """Return a direction scaled to unit length; its batch must broadcast with that of the ellipsoid."""
        d = directions("direction", direction, len(self.rows))
        broadcast_batches(ellipsoid=self.batch, direction=d.shape[:-1])
        return d

    def _components(self, x: np.ndarray) -> np.ndarray:
        """Return components (..., P) along the principal axes; across flat ellipsoids, rounding becomes 0."""
        y = np.einsum("...pk,...p->...k", self.axes, x)
        collapsed = (self._singular == 0).any(axis=-1, keepdims=True)
        size = np.sqrt((x**2).sum(axis=-1, keepdims=True))
        return np.where(collapsed & (np.abs(y) <= OFF_AXIS_RTOL * size), 0.0, y)

    def _level(self, x: np.ndarray) -> np.ndarray:
        """Return xᵀE⁻¹x for x measured from the centre."""
        y = self._components(x)
        flat = self.semi_axes == 0
        shares = np.where(flat, np.where(y == 0, 0.0, np.inf), y / np.where(flat, 1.0, self.semi_axes))
        return (shares**2).sum(axis=-1)

    def summary(self) -> Summary:
        """Return tables of the semi-axes, the axes and the measures."""
        sheet = Summary(f"{self.kind} ellipsoid of {', '.join(self.rows)}")
        sheet.say(KINDS[self.kind])
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        if self.length is not None:
            sheet.say(f"angular rows times {self.length:g}")
        if self.kind != "inertia" and (self.limits != 1).any():
            sheet.matrix("limits", self.coordinates, [""], self.limits[:, None])
        lengths = {"semi-axis": self.semi_axes}
        if self.kind == "inertia":
            lengths["mass"] = self.masses
        sizes = np.stack([a[index] for a in lengths.values()], axis=-1)
        names = [f"axis {k + 1}" for k in range(len(self.rows))]
        sheet.matrix("semi-axes, longest first", names, list(lengths), sizes)
        sheet.matrix("axes (columns)", self.rows, names, self.axes[index])
        if self.center[index].any():
            sheet.matrix("center", self.rows, [""], self.center[index][:, None])
        measures = {x: getattr(self, x)[index] for x in ("manipulability", "condition", "isotropy")}
        # each on its own scale
        sheet.matrix("measures", list(measures), [""], np.array(list(measures.values()))[:, None], largest=0)
        rank = int(self.rank[index])
        if rank < len(self.rows) and np.isfinite(self.center[index]).all():
            shape = "unbounded" if self.kind == "force" else "flat"
            sheet.say(
                f"\nThe task is singular: it moves in {rank} of {len(self.rows)} directions. The ellipsoid "
                f"is {shape}."
            )
        return sheet


def _reciprocal(x: np.ndarray) -> np.ndarray:
    """Return 1/x, inf for 0."""
    with np.errstate(divide="ignore"):
        return 1.0 / x


def _principal_axes(image: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return left singular vectors (..., P, P) and singular values (..., P) of images (..., P, M).

    Values are in descending order; those within the `error` (..., P, M) of the entries are zero.
    """
    P, M = image.shape[-2:]
    known = np.isfinite(image).all(axis=(-1, -2))[..., None]
    axes, some, right = np.linalg.svd(np.where(known[..., None], image, 0.0), full_matrices=P > M)
    s = np.zeros(image.shape[:-1])
    s[..., : min(P, M)] = some
    s[s <= FLATNESS_RTOL * s[..., :1]] = 0.0
    k = min(P, M)
    floor = np.einsum("...pk,...pm,...km->...k", np.abs(axes[..., :k]), error, np.abs(right[..., :k, :]))
    s[..., :k] = np.where(s[..., :k] <= floor, 0.0, s[..., :k])
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=-2, keepdims=True), axis=-2)
    return np.where(known[..., None], axes * np.sign(largest), np.nan), np.where(known, s, np.nan)


def manipulability(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the manipulability w and the right inverse Gᵀ(G Gᵀ)⁻¹ (..., M, P) of a Jacobian.

    Complex steps are allowed. The inverse is NaN if G is singular, where w is 0 and not differentiable. Raise
    `InputError` if there are more rows than coordinates.
    """
    P = G.shape[-2]
    if G.shape[-1] < P:
        message = (
            f"`G` must not have more rows than columns, got shape {G.shape}, whose manipulability is 0 "
            "everywhere. Name fewer rows."
        )
        raise InputError(message, key="G", got=G.shape)
    known = np.isfinite(G).all(axis=(-1, -2))
    safe = np.where(known[..., None, None], G, 0.0)
    U, s, _ = np.linalg.svd(safe.real, full_matrices=False)
    regular = known & (s[..., -1] > FLATNESS_RTOL * s[..., 0])
    # `unit` orthonormalizes the rows up to a complex step; G Gᵀ itself has the square of the condition of G
    unit = np.swapaxes(U, -1, -2) / np.where(regular[..., None], s, 1.0)[..., None]
    N = unit @ safe
    A = np.where(regular[..., None, None], N @ np.swapaxes(N, -1, -2), np.eye(P))
    w = np.where(regular, s.prod(axis=-1) * np.sqrt(np.linalg.det(A)), np.nan)
    inverse = np.swapaxes(N, -1, -2) @ np.linalg.inv(A) @ unit
    return w, np.where(regular[..., None, None], inverse, np.nan)


def manipulability_gradient(G: Any, H: Any) -> np.ndarray:
    """Compute the gradient (..., M) of Yoshikawa's w = √det(G Gᵀ): ∂w/∂q_m = w tr(G⁺ ∂G/∂q_m).

    G (..., P, M) has at most as many rows as coordinates, all in one unit. It may be scaled as S G R; then H
    is S H R, without scaling of the differentiating index. The gradient is NaN if G is singular.
    """
    G = numbers("G", G)
    if G.ndim < 2:
        raise invalid("G", "must have shape (..., P, M)", G.shape)
    H = as_array("H", H, *G.shape[-2:], G.shape[-1], finite=False)
    if not G.dtype == H.dtype == np.float64:
        raise invalid("G", "and `H` must be real numbers", G.dtype, shown=f"{G.dtype} and {H.dtype}")
    broadcast_batches(G=G.shape[:-2], H=H.shape[:-3])
    w, inverse = manipulability(G)
    return w[..., None] * np.einsum("...np,...pmn->...m", inverse, H)


def ellipsoid(
    configuration: Configuration,
    of: str | Iterable[str],
    *,
    kind: Kind = "velocity",
    wrt: str | Iterable[str] | None = None,
    rate_limits: Any = None,
    effort_limits: Any = None,
    length: float | None = None,
    qd: Any = None,
    load: bool = True,
    failures: Literal["raise", "mask"] = "raise",
) -> Ellipsoid:
    """Compute the ellipsoid of a task's velocity, force, inertia or acceleration, with its measures.

    Parameters
    ----------
    of : str or list of str
        Rows of the task, as in `coefficients`, of one unit unless `length` is given.
    kind : {"velocity", "force", "inertia", "acceleration"}
        Quantity; see `Ellipsoid` for the definitions.
    wrt : str or list of str, optional
        Coordinates of the actuators, as in `coefficients`; by default the mechanism's own.
    rate_limits, effort_limits : float, (M,) array_like, dict of str to float, or True, optional
        Largest rate ("velocity") or effort ("force", "acceleration") of each coordinate, by which it is
        scaled. Without limits all coordinates must have one unit.
    length : float, optional
        Length that multiplies angular rows and divides moments.
    qd : (..., M) array_like, optional
        Rates of the coordinates, for the centre of "acceleration"; zero by default.
    load : bool
        True if gravity, springs and applied forces shift the centre of "acceleration". Otherwise efforts
        are those beyond static equilibrium.
    failures : {"raise", "mask"}
        As in `coefficients`. A singular task is not a failure.

    Returns
    -------
    Ellipsoid
        axes (..., P, P), semi_axes (..., P), measures (...): manipulability, condition, isotropy; and the
        gradient of the manipulability.

    Raises
    ------
    UnknownNameError, InertiaError, SingularError
        As `coefficients` and, for "inertia" and "acceleration", `dynamics`; SingularError also if some
        motion moves no mass.
    InputError
        If the kind is unknown, units differ, limits or the length are not positive, an argument does not
        apply to the kind, or the configuration is not real.

    Examples
    --------
    >>> c = kic.load("gough-stewart").at()
    >>> e = c.ellipsoid("platform", kind="force", length=0.5)
    >>> e.semi_axes.shape, e.isotropy.round(3)
    ((6,), np.float64(0.351))
    """
    choice("kind", kind, KINDS)
    wrt = None if wrt is None else names_of(wrt, "wrt")
    check_failures(failures)
    load = flag("load", load)
    if kind != "acceleration" and (qd is not None or not load):
        message = f"`qd` and `load` require kind='acceleration', got '{kind}'. Leave them out."
        raise InputError(message, key="qd", got=kind)
    key = {"velocity": "rate_limits", "force": "effort_limits", "acceleration": "effort_limits"}.get(kind)
    limits = {"rate_limits": rate_limits, "effort_limits": effort_limits}
    for name, given in limits.items():
        if name != key and given is not None:
            raise InputError(f"`{name}` do not apply to kind='{kind}'. Leave them out.", key=name, got=given)
    _check_real(configuration)
    model_of(configuration).require_none_held("An ellipsoid")
    u = configuration.coefficients(of, order=1 if qd is None else 2, wrt=wrt, failures=failures)
    description = model_of(configuration).description
    S = row_factors(description, u.rows, length)
    R = np.ones(len(u.columns))
    if key is not None:
        R = coordinate_limits(description, u.columns, limits[key], key)
    image, center = u.G, np.zeros(u.G.shape[:-1])
    assert u.scaling is not None  # for the type checker: these are of a mechanism
    error = ERROR_FACTOR * u.scaling.errors()
    if kind == "velocity":
        image, error = u.G * R, error * R
    elif kind == "force":
        image, error = u.G / R, error / R
    else:
        d = configuration.dynamics(wrt=wrt, failures=failures)
        rest = np.zeros(len(u.columns))
        # without `load`, use the effort that balances it
        effort = rest if load else np.where(np.isfinite(d.load), -d.load, 0.0)
        v = rest if qd is None else qd
        bias = d.forward_dynamics(v, effort)  # raises for a singular I*
        if kind == "inertia":
            by = _inverse_root(d.I)
            image, error = u.G @ by, error @ np.abs(by)
        else:
            known = np.isfinite(d.I).all(axis=(-1, -2))[..., None, None]
            by = np.where(known, np.linalg.inv(np.where(known, d.I, np.eye(len(R)))), np.nan) * R
            image = np.swapaxes(np.linalg.solve(d.I, np.swapaxes(u.G, -1, -2)), -1, -2) * R
            error = error @ np.abs(by)
            moved = np.where(np.isfinite(bias), bias, 0.0)
            center = np.einsum("...pn,...n->...p", u.G, moved) if qd is None else u.acceleration(v, moved)
    known = np.asarray(np.isfinite(image).all(axis=(-1, -2)))[..., None]
    center = np.where(known, S * center, np.nan)
    image = np.broadcast_to(S[:, None] * image, (*center.shape[:-1], *image.shape[-2:]))
    far = None if length is None else float(length)
    error = S[:, None] * np.nan_to_num(error)
    return Ellipsoid(kind, u.rows, u.columns, image, center, R, far, error, (configuration, wrt))


def _check_real(configuration: Any) -> None:
    """Raise an error unless a configuration is real."""
    dtype = configuration.state.dtype
    if dtype != np.float64:
        message = f"Ellipsoids require a real configuration, got {dtype}."
        raise InputError(message, key="configuration", got=dtype)


def _inverse_root(I: np.ndarray) -> np.ndarray:
    """Return W (..., M, M) with W Wᵀ = I*⁻¹, with scaled coordinates; 1 for unsolved members."""
    known = np.isfinite(I).all(axis=(-1, -2))[..., None]
    safe = np.where(known[..., None], I, np.eye(I.shape[-1]))
    scale = np.sqrt(np.einsum("...nn->...n", safe))
    size, modes = np.linalg.eigh(safe / (scale[..., :, None] * scale[..., None, :]))
    return modes / scale[..., :, None] / np.sqrt(size)[..., None, :]
