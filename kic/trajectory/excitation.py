"""Motions that excite the dynamic parameters of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from kic.description.description import declared_limits, held_coordinates
from kic.dynamics.dynamic_parameters import dynamic_parameters
from kic.dynamics.regressor import SINGULAR_GAP_MIN
from kic.errors import ConfigurationError, InputError, KicError, SingularError, invalid
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import generator, instance, integer, names_of, positive
from kic.numerics.limits import bounds
from kic.trajectory.splines import spline
from kic.trajectory.trajectory import Trajectory

# random motions, of which the best is improved, first ones, and evaluations for each of its unknowns
TRIALS, FIRST_TRIALS, EVALUATIONS_PER_UNKNOWN = 20, 4, 20
# shares of the limits that are tried, the next one if no motion closes the loops
SHARES = 1.0, 0.5, 0.25, 0.125
# samples between points, and for limits; share of a limit that is reached, for peaks between samples
SAMPLES_PER_POINT, FINE_SAMPLES_PER_POINT, INSIDE = 6, 60, 0.999
# largest share of the rate and acceleration limits that a shift of the points to the middle may have
SHIFT_MAX = 0.5
# motions below this share of their peak reach no limit
PEAK_RTOL = 1e-9
# step of differences of points, relative to the random ones
DIFFERENCE = 1e-6
# logarithm of the condition of motions that the mechanism cannot make
UNREACHED = 50.0


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
    gap_min: float = SINGULAR_GAP_MIN,
    rng: Any = 0,
) -> Trajectory:
    """Return a motion from rest to rest that makes parameters easy to identify.

    The motion is a spline through points that minimize the condition of the regressor, whose columns belong
    to the base parameters and have unit norm. Each coordinate reaches one of its limits, or, if loops do not
    close there, a part of it. The search is local, from the best of random motions around the middle of the
    limits.

    Parameters
    ----------
    duration : float
        Duration.
    of : str or list of str, optional
        The parameters, as in `Configuration.regressor`.
    wrt : str or list of str, optional
        Coordinates; by default the mechanism's own, which need no solution in open chains.
    near : Configuration, optional
        Configuration at start and end; by default the reference configuration.
    limits, rate_limits : float, (M,) or (2, M) array_like, dict, or True, optional
        Limits of values and rates; a dict has them by name, True selects those of the description. Each
        coordinate needs both limits of its value, or one of its rate or acceleration.
    acceleration_limits : float, (M,) or (2, M) array_like, or dict, optional
        Limits of accelerations.
    points : int
        Number of points of the spline, at least 4.
    gap_min : float
        Smallest gap of singular values, as in `Regressor.base`.
    rng : int or Generator
        Source of the random motions.

    Returns
    -------
    Trajectory
        Of the coordinates that are not held.

    Raises
    ------
    InputError
        If a coordinate has no limit, `near` is beyond one, or no motion within the limits is possible.
    SingularError
        If no motion determines a number of combinations, as in `Regressor.base`.

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
    instance("mechanism", mechanism, Mechanism)
    model, count = model_of(mechanism), integer("points", points, 4)
    wrt, of = wrt if wrt is None else names_of(wrt, "wrt", 1), of if of is None else names_of(of, least=1)
    labels, held = model.transfer_for(wrt).labels, held_coordinates(model.description)
    names = tuple(name for name in labels if name in (wrt or ()) or name not in held)
    moving = [labels.index(name) for name in names]
    if not names:
        raise InputError(f"'{mechanism.name}' must move to be identified, but has no coordinates.")
    start = mechanism.at() if near is None else instance("near", near, Configuration)
    if start.batch:
        raise invalid("near", "must be one configuration", start.batch)
    q0 = np.array([float(start.value(name)) for name in names])
    search = _Search(
        q0,
        _limits(mechanism, names, q0, limits, rate_limits, acceleration_limits),
        np.linspace(0.0, positive("duration", duration), count),
        len(dynamic_parameters(model.tree, of).names),
    )
    columns, failed = None, []
    # own coordinates of an open chain need no start
    begin = None if model.is_open_chain and set(names) <= set(mechanism.coordinates) else near

    def cost(x: np.ndarray) -> float:
        """Return the logarithm of the condition."""
        nonlocal columns
        q, qd, qdd = search.motion(x)
        rates = np.zeros((2, len(q), len(labels)))
        rates[..., moving] = qd, qdd
        try:
            path = mechanism.path(dict(zip(names, q.T, strict=True)), near=begin)
            r = path.regressor(*rates, of=of, wrt=wrt)
            columns = r.base(gap_min=gap_min).columns if columns is None else columns
        except (ConfigurationError, SingularError) as error:
            failed.append(error)
            return UNREACHED
        Y = r.matrix[..., columns].reshape(-1, len(columns))
        s = np.linalg.svd(np.linalg.qr(Y / np.linalg.norm(Y, axis=0), mode="r"), compute_uv=False)
        return float(np.log(s[0] / s[-1])) if s[-1] > 0 else UNREACHED

    return spline(dict(zip(names, search.best(cost, generator(rng), failed).T, strict=True)), search.times)


class _Search:
    """Splines through random points around the middle of the limits, scaled until they reach a limit.

    Attributes
    ----------
    times : (P,)
        Times of the points; the first and the last are at the start.
    shift : (M,)
        Difference of the other points from the start before the random part is added.
    share : float
        Share of the differences from the start.
    """

    def __init__(self, q0: np.ndarray, limits: np.ndarray, times: np.ndarray, parameters: int) -> None:
        self.q0, self.times, self.share = q0, times, 1.0
        count, size = len(times), len(q0)
        enough = int(np.ceil(2 * parameters / (size * (count - 1))))
        unit = spline(np.eye(count)[:, 1:-1], times)
        self._coarse, fine = (
            np.stack(unit(np.linspace(0.0, times[-1], n * (count - 1) + 1))[:3])
            for n in (max(SAMPLES_PER_POINT, enough), FINE_SAMPLES_PER_POINT)
        )
        self._fine, moved = fine, fine.sum(axis=-1)  # all points together
        ends = limits[:, 0] - q0
        both = np.isfinite(ends).all(axis=0)
        middle = np.where(both, np.where(both, ends, 0.0).mean(axis=0), 0.0)
        room = np.minimum(limits[1, 1:], -limits[0, 1:])
        most = (SHIFT_MAX * room / np.abs(moved[1:]).max(axis=1)[:, None]).min(axis=0)
        self.shift = np.clip(middle, -most, most)
        # room at all samples, down and up (2, 3, N, M)
        ahead = moved[..., None] * self.shift
        limits = np.concatenate([ends[:, None], limits[:, 1:]], axis=1)[:, :, None]
        self._room = np.maximum(np.stack([ahead - limits[0], limits[1] - ahead]), 0.0)

    def points(self, x: np.ndarray) -> np.ndarray:
        """Return all points (P, M) of the motion for unknowns x."""
        x = x.reshape(-1, len(self.q0))
        motion = self._fine @ x
        size = np.abs(motion)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(motion > 0, self._room[1], self._room[0]) / size
        reach[size <= PEAK_RTOL * size.max(axis=1, keepdims=True)] = np.inf
        made = np.tile(self.q0, (len(self.times), 1))
        made[1:-1] += self.share * (self.shift + INSIDE * reach.min(axis=(0, 1)) * x)
        return made

    def motion(self, x: np.ndarray) -> np.ndarray:
        """Return values, rates and accelerations (3, N, M) for unknowns x."""
        found = self._coarse @ (self.points(x)[1:-1] - self.q0)
        found[0] += self.q0
        return found

    def best(self, cost: Any, random: np.random.Generator, failed: Sequence[KicError]) -> np.ndarray:
        """Return the points (P, M) with the smallest cost; raise an error if there are none."""
        from scipy.optimize import minimize

        size = (len(self.times) - 2) * len(self.q0)
        for share in SHARES:
            self.share = share
            trials = [(cost(x), x) for x in random.normal(size=(FIRST_TRIALS, size))]
            if min(trials, key=itemgetter(0))[0] < UNREACHED:
                break
        else:
            gaps = [error for error in failed if isinstance(error, SingularError) and "gap" in error.numbers]
            if gaps:
                raise gaps[-1]
            raise InputError(
                "Random motions within the limits must be possible from the start, but none is: "
                f"{failed[-1]} Give another `near`, or smaller limits.",
                key="limits",
            )
        trials += [(cost(x), x) for x in random.normal(size=(TRIALS - FIRST_TRIALS, size))]
        options = {"maxfun": EVALUATIONS_PER_UNKNOWN * size, "eps": DIFFERENCE}
        start = min(trials, key=itemgetter(0))[1]
        return self.points(minimize(cost, start, method="L-BFGS-B", options=options).x)


def _limits(
    mechanism: Mechanism, names: tuple[str, ...], q0: np.ndarray, limits: Any, rates: Any, accelerations: Any
) -> np.ndarray:
    """Return the limits (2, 3, M), lower and upper, of values, rates and accelerations."""
    if limits is True:
        limits = {name: mechanism.limits[name] for name in names if name in mechanism.limits}
    given = {
        "limits": limits,
        "rate_limits": declared_limits(mechanism, "rate_limits", rates, names),
        "acceleration_limits": accelerations,
    }
    made = [bounds(key, {} if x is None else x, names, rest=key != "limits") for key, x in given.items()]
    low, high = np.array(made).transpose(1, 0, 2)
    beyond = (q0 < low[0]) | (q0 > high[0])
    if beyond.any():
        k = int(np.argmax(beyond))
        raise InputError(
            f"`limits` must have the start inside, got {low[0, k]:g} to {high[0, k]:g} of '{names[k]}', "
            f"which is {q0[k]:.4g} at the start. Give another `near`.",
            key="limits",
            name=names[k],
        )
    bounded = np.isfinite([low[0], high[0]]).all(axis=0) | np.isfinite([low[1:], high[1:]]).any(axis=(0, 1))
    free = tuple(names[k] for k in np.flatnonzero(~bounded))
    if free:
        raise InputError(
            f"`rate_limits` or `acceleration_limits` must be given for {', '.join(free)}, or both limits of "
            "its values. Name them in a dict.",
            key="rate_limits",
            names=free,
        )
    return np.stack([low, high])
