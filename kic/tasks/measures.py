"""Ellipsoids and manipulability at a posture: its coefficients and dynamics, scaled and put together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.arrays import check_failures
from kic.errors import InputError, SingularError, shown
from kic.jets import ERROR_FACTOR, diagnose
from kic.model import Model
from kic.scales import coordinate_limits, row_scales
from kic.tasks.ellipsoids import KINDS, Ellipsoid, Kind
from kic.tasks.manipulability import manipulability_gradient


def make_ellipsoid(
    posture: Any,
    model: Model,
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
        raise InputError(f"Expected `kind` to be one of {', '.join(KINDS)}, got {shown(kind)}.")
    check_failures(failures)
    if not isinstance(load, bool):
        raise InputError(f"Expected `load` to be True or False, got {shown(load)}.")
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
    S = row_scales(model.drawing, u.rows, length)
    R = np.ones(len(u.columns))
    if kind != "inertia":
        R = coordinate_limits(model.drawing, u.columns, limits, kind)
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
    model: Model,
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
    S = row_scales(model.drawing, u.rows, length)
    R = coordinate_limits(model.drawing, u.columns, limits, "velocity")
    gradient = manipulability_gradient(S[:, None] * u.G * R, S[:, None, None] * u.H * R)
    flat = np.isinf(diagnose(u.G, None, u.scaling)[0])
    gradient = np.where(flat[..., None], np.nan, gradient)
    lost = np.isfinite(u.G).all(axis=(-1, -2)) & np.isnan(gradient).any(axis=-1)
    if failures == "raise" and lost.any():
        raise SingularError(
            f"The manipulability of {', '.join(u.rows)} of '{model.drawing.name}' is 0 here, where it has an "
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
