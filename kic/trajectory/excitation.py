"""Motions that excite the dynamic parameters of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kic.description.description import declared_limits
from kic.errors import ConfigurationError, InputError, SingularError
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import generator, instance, integer, names_of, positive
from kic.numerics.limits import bounds
from kic.trajectory.splines import spline
from kic.trajectory.trajectory import Trajectory

# motions from which the best is improved, samples between points, and evaluations for each unknown
TRIALS, SAMPLES_PER_POINT, EVALUATIONS_MAX = 20, 6, 30
# samples for limits are finer, and their share of a limit is reached, for peaks between samples
FINER, INSIDE = 10, 0.999
# smallest peak of a random motion
PEAK_MIN = 1e-300
# logarithm of the condition of motions that the mechanism cannot make
UNREACHED = 50.0
# step of differences of points, relative to the random ones
DIFFERENCE = 1e-6


def exciting(
    mechanism: Mechanism,
    duration: float,
    of: str | Iterable[str] | None = None,
    *,
    wrt: str | Iterable[str] | None = None,
    near: Configuration | None = None,
    limits: Any = None,
    rate_limits: Any = None,
    acceleration_limits: Any = None,
    points: int = 9,
    rng: Any = 0,
) -> Trajectory:
    """Return a motion from rest to rest that makes parameters easy to identify.

    The motion is a spline through points that minimize the condition of the regressor, whose columns belong
    to the base parameters and have unit norm. Each coordinate reaches one of its limits. The search is local,
    from the best of random motions.

    Parameters
    ----------
    duration : float
        Duration.
    of : str or list of str, optional
        The parameters, as in `Configuration.regressor`.
    wrt : str or list of str, optional
        Coordinates; by default the mechanism's own.
    near : Configuration, optional
        Configuration at start and end; by default the reference configuration.
    limits, rate_limits, acceleration_limits : float, (M,) or (2, M) array_like, dict, or True, optional
        Limits of values, rates and accelerations; a dict has them by name, True selects `limits` and
        `rate_limits` of the description. Each coordinate needs one of them.
    points : int
        Number of points of the spline, at least 4.
    rng : int or Generator
        Source of the random motions.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        If a coordinate has no limit, `near` is at or beyond one, or no motion within the limits is possible.

    See Also
    --------
    kic.Mechanism.identify

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> go = kic.trajectory.exciting(m, 2.0, rate_limits=12.0, rng=1)
    >>> run = go.on(m, 100)
    >>> float(np.abs(run.motion.qd).max().round(1)), len(run.configuration.regressor(*run.motion[1:3]).base())
    (12.0, 8)
    """
    from scipy.optimize import minimize

    duration, count = positive("duration", duration), integer("points", points, 4)
    instance("mechanism", mechanism, Mechanism)
    names = model_of(mechanism).transfer_for(wrt if wrt is None else names_of(wrt, "wrt", 1)).labels
    start = mechanism.at() if near is None else instance("near", near, Configuration)
    q0 = np.atleast_1d(start.value(list(names)))
    room = _room(mechanism, names, q0, limits, rate_limits, acceleration_limits)
    times = np.linspace(0.0, duration, count)
    unit = spline(np.eye(count)[:, 1:-1], times)
    fine, coarse = (
        np.stack(unit(np.linspace(0.0, duration, n * (count - 1) + 1))[:3])
        for n in (SAMPLES_PER_POINT * FINER, SAMPLES_PER_POINT)
    )
    columns: Any = None

    def within(x: np.ndarray) -> np.ndarray:
        """Return points (count − 2, M), relative to the start, within the limits."""
        x = x.reshape(count - 2, len(names))
        motion = fine @ x
        peaks = np.maximum(np.stack([motion.max(axis=1), -motion.min(axis=1)]), PEAK_MIN)
        return INSIDE * x * (room / peaks).min(axis=(0, 1))

    def cost(x: np.ndarray) -> float:
        """Return the logarithm of the condition."""
        nonlocal columns
        q, qd, qdd = coarse @ within(x)
        try:
            path = mechanism.path(dict(zip(names, (q0 + q).T, strict=True)), near=near)
            r = path.regressor(qd, qdd, of=of, wrt=names)
            columns = r.base().columns if columns is None else columns
        except (ConfigurationError, SingularError):
            return UNREACHED
        Y = r.matrix[..., columns].reshape(-1, len(columns))
        s = np.linalg.svd(np.linalg.qr(Y / np.linalg.norm(Y, axis=0), mode="r"), compute_uv=False)
        return float(np.log(s[0] / s[-1])) if s[-1] > 0 else UNREACHED

    random, size = generator(rng), (count - 2) * len(names)
    best = min((random.normal(size=size) for _ in range(TRIALS)), key=cost)
    if cost(best) >= UNREACHED:
        raise InputError(
            f"No motion of '{mechanism.name}' through random points within the limits determines the "
            "parameters. Give smaller `limits`, within which loops close, or more `points`.",
            key="limits",
        )
    options = {"maxfun": EVALUATIONS_MAX * size, "eps": DIFFERENCE}
    through = np.zeros((count, len(names)))
    through[1:-1] = within(minimize(cost, best, method="L-BFGS-B", options=options).x)
    return spline(dict(zip(names, (q0 + through).T, strict=True)), times)


def _room(
    mechanism: Mechanism, names: tuple[str, ...], q0: np.ndarray, limits: Any, rates: Any, accelerations: Any
) -> np.ndarray:
    """Return the largest differences from the start, rates and accelerations, up and down (2, 3, M)."""
    rows = []
    given = {"limits": limits, "rate_limits": rates, "acceleration_limits": accelerations}
    for key, value in given.items():
        if value is True:
            value = (
                dict(mechanism.limits) if key == "limits" else declared_limits(mechanism, key, True, names)
            )
        origin = q0 if key == "limits" else 0 * q0
        low, high = bounds(key, {} if value is None else value, names)
        rows.append(np.stack([high - origin, origin - low]))
        if not (rows[-1] > 0).all():
            k = int(np.argmin(rows[-1].min(axis=0)))
            raise InputError(
                f"`{key}` must have the start inside, got {low[k]:g} to {high[k]:g} of '{names[k]}', which "
                f"is {origin[k]:.4g} at the start. Give another `near`.",
                key=key,
                name=names[k],
            )
    free = [name for name, x in zip(names, np.min(rows, axis=(0, 1)), strict=True) if x == np.inf]
    if free:
        raise InputError(
            f"`rate_limits` or other limits must be given for {', '.join(free)}, whose motion has none. Name "
            "them in a dict.",
            key="rate_limits",
            names=tuple(free),
        )
    return np.stack(rows, axis=1)
