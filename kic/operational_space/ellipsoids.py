"""Ellipsoids and manipulability at a posture: its coefficients and dynamics, scaled and put together."""

from __future__ import annotations

from collections.abc import Iterable
from math import gamma, pi
from typing import Any, Literal

import numpy as np

from kic.display import Summary, member
from kic.errors import InputError, SingularError, short_repr
from kic.kinematics.jets import ERROR_FACTOR, diagnose
from kic.kinematics.scaling import coordinate_limits, row_factors
from kic.numerics.arrays import as_array, broadcast_batches, check_failures, directions, numbers
from kic.transfer.compiled_model import CompiledModel

Kind = Literal["velocity", "force", "inertia", "acceleration"]
# what each is, in its sheet
KINDS = {
    "velocity": "u̇ = G q̇ of rates with Σ (q̇/limit)² ≤ 1",
    "force": "F whose efforts T = GᵀF have Σ (T/limit)² ≤ 1",
    "inertia": "u̇ᵀ Λ u̇ ≤ 1",
    "acceleration": "ü of efforts with Σ (T/limit)² ≤ 1",
}
# in a collapsed ellipsoid, what a direction has less of than this across it is round-off
ACROSS = 1e-12


class Ellipsoid:
    """What a task can do, in every direction, for a unit of what the coordinates do.

    With M coordinates, P task rows, limits ℓ (1 by default) and R = diag ℓ, all four are images of a ball::

        velocity      u̇ = G q̇,  |R⁻¹q̇| ≤ 1                  Yoshikawa's manipulability ellipsoid (1985)
        force         T = GᵀF,  |R⁻¹T| ≤ 1                  its dual: loads that the actuators can hold
        inertia       u̇ᵀ Λ u̇ ≤ 1, Λ = (G I*⁻¹Gᵀ)⁻¹          Asada's generalized inertia ellipsoid (1983)
        acceleration  ü = G I*⁻¹(T − bias) + q̇ᵀH q̇,         Yoshikawa's dynamic manipulability (1985)
                      |R⁻¹T| ≤ 1

    The norm is the Euclidean one of coordinates as shares of their limits; an ellipsoid lies within what the
    coordinates can do if each may go to its limit. Where the task is singular, those of velocity, inertia and
    acceleration are flat (a semi-axis is 0), that of force has no bound (it is inf).

    Attributes
    ----------
    kind : {"velocity", "force", "inertia", "acceleration"}
        What it is of.
    task, coordinates : tuple of str
        Names of the P rows and of the M coordinates.
    limits : (M,)
        Of the rates or of the efforts.
    length : float or None
        By which angular rows were multiplied (and moments divided).
    axes : (..., P, P)
        Directions of the principal axes: orthonormal columns, the largest entry of each positive.
    semi_axes : (..., P)
        Their lengths, the longest first. Of "inertia" they are 1/√mass: the longest is the lightest.
    center : (..., P)
        Middle: 0 but of "acceleration", where it is what the task does without effort.
    matrix : (..., P, P)
        E of (x − center)ᵀ E⁻¹ (x − center) ≤ 1; of "force" it is Q of FᵀQ F ≤ 1. Finite also where the task
        is singular: G R² Gᵀ, G R⁻² Gᵀ, Λ⁻¹ and G I*⁻¹R² I*⁻¹Gᵀ.

    Examples
    --------
    >>> import kic
    >>> e = kic.load("horn-two-link").at([0.0, 1.5]).ellipsoid("velocity", ["tip.x", "tip.y"])
    >>> e.semi_axes.round(3), e.manipulability.round(3), e.condition.round(3)
    (array([1.669, 0.598]), np.float64(0.997), np.float64(2.791))
    """

    def __init__(
        self,
        kind: Kind,
        task: tuple[str, ...],
        coordinates: tuple[str, ...],
        image: np.ndarray,
        center: np.ndarray,
        limits: np.ndarray,
        length: float | None,
        error: np.ndarray | None = None,
    ) -> None:
        self.kind, self.task, self.coordinates = kind, task, coordinates
        self.limits, self.length, self.center = limits, length, center
        self.matrix = image @ np.swapaxes(image, -1, -2)
        self.axes, self._singular = _principal(image, error)
        self.semi_axes = self._singular
        if kind == "force":  # the shortest of the ball's image is the direction that is held best
            self.axes, s = self.axes[..., ::-1], self._singular[..., ::-1]
            self.semi_axes = _over(s)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.semi_axes.shape[:-1]

    @property
    def rank(self) -> np.ndarray:
        """How many directions the task can move in, (...) int; 0 for members without posture."""
        return (self._singular > 0).sum(axis=-1)

    @property
    def manipulability(self) -> np.ndarray:
        """Product of the semi-axes, (...).

        Of "velocity" it is Yoshikawa's w = √det(G R² Gᵀ), of "acceleration" his dynamic measure, of "inertia"
        1/√det Λ, of "force" 1/w.
        """
        return self.semi_axes.prod(axis=-1)

    @property
    def volume(self) -> np.ndarray:
        """Volume, (...): the product of the semi-axes times that of the unit ball, in P dimensions."""
        half = len(self.task) / 2
        return pi**half / gamma(half + 1) * self.manipulability

    @property
    def isotropy(self) -> np.ndarray:
        """Shortest by longest semi-axis, (...): 1 of a ball, 0 where the task is singular.

        Of "velocity" it is the conditioning index; its mean over postures spread evenly over a workspace is
        Gosselin and Angeles' global one (1991).
        """
        s = self._singular
        return s[..., -1] / np.where(s[..., 0] == 0, 1.0, s[..., 0])

    @property
    def condition(self) -> np.ndarray:
        """Longest by shortest semi-axis, (...): 1 of a ball, inf where the task is singular."""
        return _over(self.isotropy)

    @property
    def masses(self) -> np.ndarray:
        """Principal masses, (..., P): eigenvalues of Λ, lightest first; inf where the task can not move.

        Raises
        ------
        InputError
            Of another kind than "inertia".

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.0, 1.5])
        >>> c.ellipsoid("inertia", ["tip.x", "tip.y"]).masses.round(4)
        array([0.3332, 1.3368])
        """
        if self.kind != "inertia":
            raise InputError(f"Masses are those of the ellipsoid of 'inertia'; this is of '{self.kind}'.")
        return _over(self.semi_axes**2)

    def along(self, direction: Any) -> np.ndarray:
        """How far it reaches from its center along a direction, when nothing goes across.

        Parameters
        ----------
        direction : (..., P) array_like
            In the task's rows, angular ones times `length`; need not have unit length.

        Returns
        -------
        (...,)
            1/√(dᵀE⁻¹d) of the unit vector d: 0 off a flat one, inf where there is no bound. Of "inertia",
            1/√(dᵀΛd).

        Raises
        ------
        InputError
            For another shape, entries that are not finite, or a direction of no length.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([[0.0, 1.5], [0.0, 0.0]])
        >>> c.ellipsoid("velocity", ["tip.x", "tip.y"]).along([1.0, 0.0]).round(3)
        array([0.93, 0.  ])
        """
        return _over(np.sqrt(self._level(self._unit(direction))))

    def support(self, direction: Any) -> np.ndarray:
        """Largest component along a direction, from the center, whatever goes across.

        Parameters
        ----------
        direction : (..., P) array_like
            As in `along`.

        Returns
        -------
        (...,)
            √(dᵀE d) of the unit vector d. Of "inertia" it is 1/√mass with the effective mass of
            `OperationalSpace.mass`.

        Raises
        ------
        InputError
            As `along`.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.0, 1.5])
        >>> e = c.ellipsoid("inertia", ["tip.x", "tip.y"])
        >>> (1 / e.support([1, 0]) ** 2).round(4)  # the mass that a force along x accelerates
        np.float64(0.3341)
        """
        y = self._components(self._unit(direction))
        return np.sqrt(((np.where(y == 0, 1.0, self.semi_axes) * y) ** 2).sum(axis=-1))

    def level(self, x: Any) -> np.ndarray:
        """(x − center)ᵀ E⁻¹ (x − center): below 1 within, 1 on the surface, above 1 outside.

        Parameters
        ----------
        x : (..., P) array_like
            Velocities, forces or accelerations of the task; angular rows times `length`.

        Returns
        -------
        (...,)
            inf off a flat one.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.
        """
        x = as_array("x", x, len(self.task))
        broadcast_batches(ellipsoid=self.batch, x=x.shape[:-1])
        return self._level(x - self.center)

    def surface(self, unit: Any) -> np.ndarray:
        """Points of the surface, to draw it: where those of a unit sphere go.

        Parameters
        ----------
        unit : (K, P) array_like
            Points of the sphere, such as cos and sin of K angles; need not have unit length.

        Returns
        -------
        (..., K, P)
            center + axes · (semi_axes × unit); NaN for members that have no bound.

        Raises
        ------
        InputError
            For another shape, entries that are not finite, or a point without direction.

        Examples
        --------
        >>> import kic
        >>> import numpy as np
        >>> e = kic.load("horn-two-link").at([0.0, 1.5]).ellipsoid("velocity", ["tip.x", "tip.y"])
        >>> angle = np.linspace(0, 2 * np.pi, 100)
        >>> e.surface(np.stack([np.cos(angle), np.sin(angle)], axis=1)).shape
        (100, 2)
        """
        v = directions("unit", unit, len(self.task))
        if v.ndim != 2:
            raise InputError(f"Expected `unit` to have shape (K, {len(self.task)}), got {v.shape}.")
        bounded = np.where(np.isfinite(self.semi_axes).all(axis=-1, keepdims=True), self.semi_axes, np.nan)
        return self.center[..., None, :] + (bounded[..., None, :] * v) @ np.swapaxes(self.axes, -1, -2)

    def _unit(self, direction: Any) -> np.ndarray:
        """A direction of unit length whose batch goes with this."""
        d = directions("direction", direction, len(self.task))
        broadcast_batches(ellipsoid=self.batch, direction=d.shape[:-1])
        return d

    def _components(self, x: np.ndarray) -> np.ndarray:
        """Along the principal axes, (..., P); what is round-off across a collapsed one is none."""
        y = np.einsum("...pk,...p->...k", self.axes, x)
        collapsed = (self._singular == 0).any(axis=-1, keepdims=True)
        size = np.sqrt((x**2).sum(axis=-1, keepdims=True))
        return np.where(collapsed & (np.abs(y) <= ACROSS * size), 0.0, y)

    def _level(self, x: np.ndarray) -> np.ndarray:
        """xᵀE⁻¹x of what lies so far from the center."""
        y = self._components(x)
        flat = self.semi_axes == 0
        shares = np.where(flat, np.where(y == 0, 0.0, np.inf), y / np.where(flat, 1.0, self.semi_axes))
        return (shares**2).sum(axis=-1)

    def summary(self) -> Summary:
        """Labelled tables, to print or to show."""
        sheet = Summary(f"{self.kind} ellipsoid of {', '.join(self.task)}")
        sheet.say(KINDS[self.kind])
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
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
        names = [f"axis {k + 1}" for k in range(len(self.task))]
        sheet.matrix("semi-axes, longest first", names, list(lengths), sizes)
        sheet.matrix("axes (columns)", self.task, names, self.axes[index])
        if self.center[index].any():
            sheet.matrix("center", self.task, [""], self.center[index][:, None])
        measures = {x: getattr(self, x)[index] for x in ("manipulability", "condition", "isotropy")}
        # each on its own scale: they are no parts of one thing
        sheet.matrix("measures", list(measures), [""], np.array(list(measures.values()))[:, None], largest=0)
        rank = int(self.rank[index])
        if rank < len(self.task) and np.isfinite(self.center[index]).all():
            how = "has no bound" if self.kind == "force" else "is flat"
            many = len(self.task)
            sheet.say(
                f"\nThe task is singular: it moves in {rank} of {many} directions. The ellipsoid {how}."
            )
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def _over(x: np.ndarray) -> np.ndarray:
    """1/x, of 0 inf."""
    with np.errstate(divide="ignore"):
        return 1.0 / x


def _principal(image: np.ndarray, error: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return left singular vectors (..., P, P) and singular values (..., P) of images (..., P, M).

    The largest come first. Those within the `error` (..., P, M) of the entries are zero.
    """
    P, M = image.shape[-2:]
    known = np.isfinite(image).all(axis=(-1, -2))[..., None]
    axes, some, right = np.linalg.svd(np.where(known[..., None], image, 0.0), full_matrices=P > M)
    s = np.zeros(image.shape[:-1])
    s[..., : min(P, M)] = some
    s[s <= FLAT * s[..., :1]] = 0.0
    if error is not None:
        k = min(P, M)
        floor = np.einsum("...pk,...pm,...km->...k", np.abs(axes[..., :k]), error, np.abs(right[..., :k, :]))
        s[..., :k] = np.where(s[..., :k] <= floor, 0.0, s[..., :k])
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=-2, keepdims=True), axis=-2)
    return np.where(known[..., None], axes * np.sign(largest), np.nan), np.where(known, s, np.nan)


# a singular value below this share of the largest can not be told from 0
FLAT = 1e-14


def manipulability(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Manipulability and the right inverse Gᵀ(G Gᵀ)⁻¹, of real numbers and of those with a complex step.

    Parameters
    ----------
    G : (..., P, M) ndarray
        First-order coefficients of no more rows than coordinates.

    Returns
    -------
    w, inverse : (...,), (..., M, P) ndarray
        NaN where G is singular: there w is 0 and has an edge.

    Raises
    ------
    InputError
        For more rows than coordinates.

    Examples
    --------
    >>> w, inverse = manipulability(np.array([[3.0, 0.0, 4.0]]))
    >>> w.round(12), inverse[:, 0].round(12).tolist()
    (np.float64(5.0), [0.12, 0.0, 0.16])
    """
    P = G.shape[-2]
    if G.shape[-1] < P:
        raise InputError(
            "Manipulability has a gradient for at most as many rows as coordinates, got G of shape "
            f"{G.shape}; with more it is 0 everywhere. Name fewer rows."
        )
    known = np.isfinite(G).all(axis=(-1, -2))
    safe = np.where(known[..., None, None], G, 0.0)
    U, s, _ = np.linalg.svd(safe.real, full_matrices=False)
    regular = known & (s[..., -1] > FLAT * s[..., 0])
    # makes rows that are orthonormal, but for a complex step: G Gᵀ would lose the square of its condition
    unit = np.swapaxes(U, -1, -2) / np.where(regular[..., None], s, 1.0)[..., None]
    N = unit @ safe
    A = np.where(regular[..., None, None], N @ np.swapaxes(N, -1, -2), np.eye(P))
    w = np.where(regular, s.prod(axis=-1) * np.sqrt(np.linalg.det(A)), np.nan)
    inverse = np.swapaxes(N, -1, -2) @ np.linalg.inv(A) @ unit
    return w, np.where(regular[..., None, None], inverse, np.nan)


def manipulability_gradient(G: Any, H: Any) -> np.ndarray:
    """Gradient of Yoshikawa's w = √det(G Gᵀ) along the coordinates: ∂w/∂q_m = w tr(G⁺ ∂G/∂q_m).

    Parameters
    ----------
    G : (..., P, M) array_like
        First-order coefficients of no more rows than coordinates, all of one unit; or S G R of scaled ones.
    H : (..., P, M, M) array_like
        Their derivatives, the differentiating index first; or S H R, which leaves that index as it is.

    Returns
    -------
    (..., M)
        NaN where G is singular: there w is 0 and has an edge.

    Raises
    ------
    InputError
        For other shapes, more rows than coordinates, or numbers that are not real.

    Examples
    --------
    >>> import kic
    >>> c = kic.load("horn-two-link").at([0.0, 1.5]).coefficients(["tip.x", "tip.y"])
    >>> manipulability_gradient(c.G, c.H).round(4)  # of sin elbow
    array([0.    , 0.0707])
    """
    G = numbers("G", G)
    if G.ndim < 2:
        raise InputError(f"Expected `G` to have shape (..., P, M), got {G.shape}.")
    H = as_array("H", H, *G.shape[-2:], G.shape[-1], finite=False)
    if not G.dtype == H.dtype == np.float64:
        raise InputError(f"Expected G and H of real numbers, got {G.dtype} and {H.dtype}.")
    broadcast_batches(G=G.shape[:-2], H=H.shape[:-3])
    w, inverse = manipulability(G)
    return w[..., None] * np.einsum("...np,...pmn->...m", inverse, H)


def make_ellipsoid(
    posture: Any,
    model: CompiledModel,
    kind: Kind,
    of: str | Iterable[str],
    wrt: str | Iterable[str] | None,
    limits: Any,
    length: Any,
    qd: Any,
    load: bool,
    failures: Any,
) -> Ellipsoid:
    """An ellipsoid at a `Configuration`; see its method."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"Expected `kind` to be one of {', '.join(KINDS)}, got {short_repr(kind)}.")
    check_failures(failures)
    if not isinstance(load, bool):
        raise InputError(f"Expected `load` to be True or False, got {short_repr(load)}.")
    if kind != "acceleration" and (qd is not None or not load):
        raise InputError(
            f"`qd` and `load` shift the center of 'acceleration'; that of '{kind}' is 0. Leave them out."
        )
    if kind == "inertia" and limits is not None:
        raise InputError(
            "The ellipsoid of 'inertia' is measured by I* itself and has no `limits`. Leave them out."
        )
    _check_real(posture)
    u = posture.coefficients(of, order=1 if qd is None else 2, wrt=wrt, failures=failures)
    S = row_factors(model.description, u.rows, length)
    R = np.ones(len(u.columns))
    if kind != "inertia":
        R = coordinate_limits(model.description, u.columns, limits, kind)
    image, center = u.G, np.zeros(u.G.shape[:-1])
    assert u.scaling is not None  # for the type checker: these are of a mechanism
    error = ERROR_FACTOR * u.scaling.errors()
    if kind == "velocity":
        image, error = u.G * R, error * R
    elif kind == "force":
        image, error = u.G / R, error / R
    else:
        d = posture.dynamics(wrt=wrt, failures=failures)
        rest = np.zeros(len(u.columns))
        # what holds the load, if that is not to count
        effort = rest if load else np.where(np.isfinite(d.load), -d.load, 0.0)
        v = rest if qd is None else qd
        bias = d.acceleration(v, effort)  # it refuses an I* without inverse
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
    known = np.isfinite(image).all(axis=(-1, -2))
    center = np.where(known[..., None], S * center, np.nan)
    image = np.broadcast_to(S[:, None] * image, (*center.shape[:-1], *image.shape[-2:]))
    far = None if length is None else float(length)
    return Ellipsoid(kind, u.rows, u.columns, image, center, R, far, S[:, None] * np.nan_to_num(error))


def gradient_at(
    posture: Any,
    model: CompiledModel,
    of: str | Iterable[str],
    wrt: str | Iterable[str] | None,
    limits: Any,
    length: Any,
    failures: Any,
) -> np.ndarray:
    """Gradient of the manipulability at a `Configuration`; see its method."""
    check_failures(failures)
    _check_real(posture)
    u = posture.coefficients(of, order=2, wrt=wrt, failures=failures)
    S = row_factors(model.description, u.rows, length)
    R = coordinate_limits(model.description, u.columns, limits, "velocity")
    gradient = manipulability_gradient(S[:, None] * u.G * R, S[:, None, None] * u.H * R)
    flat = np.isinf(diagnose(u.G, None, u.scaling)[0])
    gradient = np.where(flat[..., None], np.nan, gradient)
    lost = np.isfinite(u.G).all(axis=(-1, -2)) & np.isnan(gradient).any(axis=-1)
    if failures == "raise" and lost.any():
        raise SingularError(
            f"The manipulability of {', '.join(u.rows)} of '{model.description.name}' is 0 here, where it has an "
            "edge and no gradient. Name fewer rows, or move away from the posture.",
            failed=[tuple(index) for index in np.argwhere(lost).tolist()],
        )
    return gradient


def _check_real(posture: Any) -> None:
    dtype = posture.state.dtype
    if dtype != np.float64:
        raise InputError(f"Ellipsoids need real numbers; this posture holds {dtype}.")


def _inverse_root(I: np.ndarray) -> np.ndarray:
    """W (..., M, M) with W Wᵀ = I*⁻¹, each coordinate on its own scale; of members without posture 1."""
    known = np.isfinite(I).all(axis=(-1, -2))[..., None]
    safe = np.where(known[..., None], I, np.eye(I.shape[-1]))
    scale = np.sqrt(np.einsum("...nn->...n", safe))
    size, modes = np.linalg.eigh(safe / (scale[..., :, None] * scale[..., None, :]))
    return modes / scale[..., :, None] / np.sqrt(size)[..., None, :]
