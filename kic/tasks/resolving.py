"""Resolving redundancy at postures: rates, accelerations, jerks, and the coefficients of the law itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, trailing
from kic.coefficients import Coefficients
from kic.errors import InputError
from kic.members import spread, surviving
from kic.placement import Placement
from kic.posture import advance
from kic.rows import names_of
from kic.scaling import EPS
from kic.tasks.redundancy import ResolutionEvaluator
from kic.tasks.resolution import Resolution
from kic.tasks.rightinverse import RightInverse
from kic.tasks.secondary import Aim
from kic.tasks.weighting import INERTIA_METRIC, UNIT_METRIC, Damping, Law, Weight

# of a complex step: the squares of what moves must vanish beside it
STEP = 1e-40


def resolve(
    c: Placement,
    task: str | Iterable[str],
    motion: dict[str, Any],
    weight: Weight,
    law: Law,
    secondary: Any,
    damping: Damping,
    wrt: str | Iterable[str] | None,
    failures: str,
) -> Resolution:
    """The motion of the coordinates for that of a task; see `Configuration.resolve`."""
    names = names_of(task, "task")
    order = 1 + (motion["udd"] is not None)
    f = ResolutionEvaluator(c._model, names, weight, law, damping, wrt, order=order)
    P, M = len(f.task), len(f.coordinates)
    _check(motion, f.weighting.consistent)
    sizes = {"ud": P, "udd": P, "uddd": P, "qd": M}
    given = {k: trailing(k, v, sizes[k]) for k, v in motion.items() if v is not None}
    for name, a in given.items():
        if a.dtype.kind == "O":
            raise InputError(f"Expected `{name}` to be numbers, got symbols.")
    aim = Aim(secondary, M)
    shapes = {k: a.shape[:-1] for k, a in given.items()}
    shape = broadcast_batches(posture=c.batch, weight=f.weighting.batch, **shapes, **aim.batches)
    if f.weighting.batch and f.weighting.batch != shape:
        whole = np.broadcast_to(f.weighting.matrix, (*shape, M, M))
        f = ResolutionEvaluator(c._model, names, whole, law, damping, wrt, order=order)
    c = spread_out(c, shape)
    case = _Case(
        c, f, names, wrt, aim, {k: np.broadcast_to(a, (*shape, a.shape[-1])) for k, a in given.items()}
    )

    found: dict[str, np.ndarray] = {}

    def answer(members: Any) -> np.ndarray:
        found["jerk"] = np.empty(0)
        part = case.part(members)
        table = part.table()
        if "uddd" in given:
            found["jerk"] = part.jerk(table)
        return table

    good, table = surviving(c.ok, failures, answer)
    out = f.results(spread(table, good), shape)
    if "uddd" in given:
        out.qddd = spread(found["jerk"], good).reshape(*shape, M)
    out._map = lambda: law_coefficients(c, f, names, wrt, good, out.damping)
    out._model = lambda: c.dynamics(wrt, failures="mask" if failures == "mask" else "raise")  # type: ignore[attr-defined]
    return out


def _check(motion: dict[str, Any], consistent: bool) -> None:
    """What of the motion goes together."""
    if motion["qd"] is not None:
        if consistent:
            raise InputError(
                "Rates `qd` go with law='instantaneous'; the law 'consistent' has rates of its own."
            )
        if motion["ud"] is not None or motion["udd"] is None:
            raise InputError("With rates `qd` give `udd`, the acceleration of the task, and no `ud`.")
    elif motion["ud"] is None:
        raise InputError("Give `ud`, the rates of the task; zeros if it stands still.")
    if motion["uddd"] is not None and motion["udd"] is None:
        raise InputError("Jerks need `udd`, the acceleration of the task, too.")


def spread_out(c: Placement, shape: tuple[int, ...]) -> Any:
    """The same posture over a larger batch."""
    if shape == c.batch:
        return c
    size = c._states.shape[-1]
    states = np.broadcast_to(c.state, (*shape, size)).reshape(prod(shape), size)
    ok = None if c._ok is None else np.broadcast_to(c._ok, shape).copy()
    return c._beside(shape, states.copy(), ok)


def tree_rates(c: Any, qd: np.ndarray, wrt: Any) -> np.ndarray:
    """Rates (B, N) of the tree's own coordinates at postures, from those (B, M) of the coordinates."""
    model = c._model
    transfer = model.asked(wrt)
    if transfer is None:
        order = model.tree.to_coordinates
        if order is None:
            return qd
        rates = np.empty_like(qd)
        rates[:, order] = qd
        return rates
    size, first = model.tree.size, transfer.first
    X = transfer.solve(c._states, 1).X
    return np.einsum("bnm,bm->bn", X[:, size : size * (1 + first)].reshape(len(qd), size, first), qd)


class _Case:
    """Postures with a motion that is asked of them, one axis of members."""

    def __init__(
        self,
        c: Any,
        f: ResolutionEvaluator,
        names: tuple[str, ...],
        wrt: Any,
        aim: Aim,
        given: dict[str, np.ndarray],
    ) -> None:
        self.c, self.f, self.names, self.wrt, self.aim, self.given = c, f, names, wrt, aim, given
        self.members: Any = slice(None)

    def part(self, members: Any) -> _Case:
        """Some members alone, in a row."""
        flat = {k: a.reshape(-1, a.shape[-1])[members] for k, a in self.given.items()}
        states = self.c._states[members]
        aim = Aim(None, self.aim.size)
        shape = self.c.batch
        for one in self.aim.parts:
            if isinstance(one, list):
                one = [
                    np.broadcast_to(a, (*shape, a.shape[-1])).reshape(-1, a.shape[-1])[members] for a in one
                ]
            aim.parts.append(one)
        case = _Case(self.c._beside((len(states),), states), self.f, self.names, self.wrt, aim, flat)
        case.members = members
        return case

    def table(self) -> np.ndarray:
        """The kernel's table (B, …)."""
        return self._resolved(self.c, self.given, 0.0, self._ahead)

    def _resolved(self, c: Any, given: dict[str, np.ndarray], step: complex, ahead: Any) -> np.ndarray:
        f, aim = self.f, self.aim
        rates = given.get("qd")
        z = zd = None
        if rates is not None:
            z = rates
        elif aim:
            z = aim.rates(c, self.wrt, self.names, step)
        ud, udd = given.get("ud"), given.get("udd")
        dtype = np.result_type(c._states, *(a for a in (ud, udd, z) if a is not None))
        if aim and udd is not None:
            first = f.motion([ud, udd, z, None], len(c._states), dtype)
            qd = rates
            if qd is None:  # how the aim changes depends on the rates
                table = f.table(_as(c._states, dtype), first, False, self.members)
                qd = f.results(table, (len(first),)).qd
            zd = aim.change(c, self.wrt, self.names, qd, ahead and (lambda: ahead(qd)), step)
            dtype = np.result_type(dtype, zd)
        motion = f.motion([ud, udd, z, zd], len(c._states), dtype)
        return f.table(_as(c._states, dtype), motion, rates is not None, self.members)

    def _ahead(self, qd: np.ndarray) -> tuple[Any, float]:
        """The postures a complex step of time ahead along rates."""
        c = self.c
        if c._states.dtype.kind == "c" or qd.dtype.kind == "c":
            raise InputError(
                "A `secondary` callable is derived by a complex step; the posture holds one already."
            )
        moved = advance(c._model.tree, c._states.astype(complex), 1j * STEP * tree_rates(c, qd, self.wrt))
        return c._beside(c.batch, moved), STEP

    def jerk(self, table: np.ndarray) -> np.ndarray:
        """Jerks (B, M): the acceleration law a complex step of time ahead."""
        f, given = self.f, self.given
        now = f.results(table, (len(table),))
        qd, qdd = now.qd, now.qdd
        assert qdd is not None  # for the type checker: jerks are asked with accelerations
        if table.dtype.kind == "c":
            raise InputError(
                "Jerks are a complex step of accelerations; the posture holds complex numbers already."
            )
        c, h = self._ahead(qd)
        ahead = {"udd": given["udd"] + 1j * h * given["uddd"]}
        if "qd" in given or not f.weighting.consistent:
            # accelerations that are no derivative of rates: these go where the accelerations bring them
            ahead["qd"] = qd + 1j * h * qdd
        else:
            ahead["ud"] = given["ud"] + 1j * h * given["udd"]
        later = f.results(self._resolved(c, ahead, 1j * h, None), (len(table),)).qdd
        assert later is not None  # for the type checker: accelerations are of order 2
        return later.imag / h


def _as(states: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.require(states, dtype, ["C", "A", "W"])


def law_coefficients(
    c: Any, f: ResolutionEvaluator, names: tuple[str, ...], wrt: Any, good: np.ndarray, damping: np.ndarray
) -> Coefficients:
    """G and H of the coordinates with respect to the task, where there are answers; see `Resolution`."""
    P, M, batch = len(f.task), len(f.coordinates), c.batch
    G, H = (
        np.full((*batch, M, P), np.nan, c._states.dtype),
        np.full((*batch, M, P, P), np.nan, c._states.dtype),
    )
    sound = c._beside((int(good.sum()),), c._states[good.reshape(-1)])
    u = sound.coefficients(names, order=2, wrt=wrt)
    weighting = f.weighting
    Q: np.ndarray = np.eye(M)
    power = None
    if weighting.metric == INERTIA_METRIC:
        d = sound.dynamics(wrt)
        Q, power = d.I, d.P
    elif weighting.metric != UNIT_METRIC:
        Q = np.broadcast_to(weighting.matrix, (*batch, M, M))[good]
    soft = np.broadcast_to(f.soft, (prod(batch), P))[good.reshape(-1)]
    law = RightInverse(u.G, u.H, Q, power, soft, damping[good][:, None], (weighting.largest, weighting.near))
    G[good] = law.G
    H[good] = law.consistent() if weighting.consistent else law.instantaneous()
    quasi = u.quasi if P == M else {*u.rows, *u.columns}
    scaling = u.scaling and replace(u.scaling, error=EPS).inverse(G)
    return Coefficients(u.columns, u.rows, G, H, quasi=quasi, scaling=scaling)
