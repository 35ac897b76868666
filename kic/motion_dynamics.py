"""Motions of outputs, inverse and forward dynamics, without H, I* and P*: (2-198), (2-199), (4-40), (4-41).

Rates and accelerations pass through the tree and its loops as a Taylor series in time, and forces return by
Newton and Euler; see `kic.kernels.motion`. `Dynamics` has the same results from the tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np

from kic.configuration import Configuration
from kic.dynamics.dynamics import check_inertia_regular
from kic.errors import InputError, short_repr
from kic.kernels.layout import QUALITY_WIDTH, WANT_FORWARD, WANT_INERTIA, WANT_LOADS
from kic.kinematics.queries import compiled, kernel
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_finite, numbers
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.identity import IdentityTransfer, Transfer

_empty, _REAL = np.empty, np.dtype(np.float64)
BOTH = WANT_INERTIA | WANT_LOADS
# memory layout for which kernels are compiled
_LAYOUT = ["C", "A", "W"]


def inverse_dynamics(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
    loads: bool = True,
    motors: bool = False,
) -> np.ndarray:
    """Compute the efforts of a motion; see `Configuration.inverse_dynamics`."""
    want = BOTH if flag("loads", loads) else WANT_INERTIA
    rotors = None
    if flag("motors", motors):
        from kic.actuation.motors import rotor_dynamics

        rotors = rotor_dynamics(configuration, wrt, failures)
    T = _along(configuration, want, {"qd": qd, "qdd": qdd}, wrt, applied, failures)
    if rotors is None:
        return T
    size = len(rotors.coordinates)
    return T + rotors.inverse_dynamics(*(np.zeros(size) if a is None else a for a in (qd, qdd)))


def forward_dynamics(
    configuration: Configuration,
    qd: Any = None,
    effort: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
    motors: bool = False,
) -> np.ndarray:
    """Compute the accelerations that efforts cause; see `Configuration.forward_dynamics`."""
    given = {"qd": qd, "effort": effort}
    if flag("motors", motors) or configuration.state.dtype.kind == "O":
        # rotors and symbols take the tensors
        d = configuration.dynamics(wrt, applied, failures, motors)
        size = len(d.coordinates)
        v, force = (as_array(k, np.zeros(size) if a is None else a, size) for k, a in given.items())
        return d.forward_dynamics(v, force)
    return _along(configuration, BOTH | WANT_FORWARD, given, wrt, applied, failures)


def output_motion(
    configuration: Configuration,
    of: str | Iterable[str],
    qd: Any = None,
    qdd: Any = None,
    qddd: Any = None,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Compute the motion of outputs; see `Configuration.motion`."""
    model = configuration._model
    transfer, names = model.transfer_for(wrt), (of,) if isinstance(of, str) else names_of(of, least=1)
    states, rates, shape, ok = _members(configuration, transfer, {"qd": qd, "qdd": qdd, "qddd": qddd})
    if isinstance(transfer, IdentityTransfer) or not transfer.size:
        x = transfer.tree_motion(states, *rates)
    else:
        query = transfer.series_query(3)
        found, ok = configuration._evaluate(transfer, query, failures, states, shape, ok, None, rates)
        x = transfer.series(found.T)
    query = model.rows(names, 3)
    rows = query.layout.rows
    parts = query.motion(states, np.moveaxis(x, 0, 1))
    known = None if ok is None else ok.reshape(-1)
    model.check_distances(rows, parts, ok)
    check_finite("Velocities, accelerations or jerks", configuration.name, parts, known)
    if rows.select is not None:
        parts = parts[..., rows.select]
    values = np.where(rows.valued, model.values(names, states), np.nan)
    size = len(rows.labels)
    first, second, third = (parts[:, k].reshape(*shape, size) for k in (1, 2, 3))
    return values.reshape(*shape, size), first, second, third


def _members(
    configuration: Configuration,
    transfer: Transfer,
    given: dict[str, Any],
    *others: np.ndarray,
    **batches: Any,
) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[int, ...], np.ndarray | None]:
    """Return states (B, S), arrays (B, m) by default zero, the batch and the mask of solved members."""
    size = len(transfer.labels)
    arrays = {k: as_array(k, np.zeros(size) if a is None else a, size) for k, a in given.items()}
    batches.update(configuration=configuration.batch, **{k: a.shape[:-1] for k, a in arrays.items()})
    shape = broadcast_batches(**batches)
    states = configuration.state
    dtype = np.result_type(configuration._model.tree.scalar, states, *arrays.values(), *others)
    states, *rates = (
        np.require(
            np.broadcast_to(a, (*shape, a.shape[-1])).reshape(prod(shape), a.shape[-1]), dtype, _LAYOUT
        )
        for a in (states, *arrays.values())
    )
    ok = configuration._ok
    return states, tuple(rates), shape, None if ok is None else np.broadcast_to(ok, shape)


def _along(
    configuration: Configuration,
    want: int,
    given: dict[str, Any],
    wrt: str | Iterable[str] | None,
    applied: dict[str, Any] | None,
    failures: Literal["raise", "mask"],
) -> np.ndarray:
    """Return efforts or accelerations (..., M) of motions given by two arrays (..., M)."""
    model = configuration._model
    force, loaded = model.loads.applied(applied, configuration.name)
    transfer = model.transfer_for(wrt)
    states, rates, shape, ok = _members(configuration, transfer, given, force, applied=loaded)
    if loaded:
        force = np.broadcast_to(force, (*shape, *force.shape[-2:]))
    force = force.reshape(len(states) if loaded else 1, *force.shape[-2:])
    force = np.require(force, states.dtype, _LAYOUT)
    size = len(transfer.labels)
    query = model.motion_query(transfer, want)
    rates = to_columns(transfer, *rates)
    found, ok = configuration._evaluate(transfer, query, failures, states, shape, ok, force, rates)
    known = np.ones(len(found.T), bool) if ok is None else ok.reshape(-1)
    T = completed(model, transfer, want, states, rates, found.T, known)
    quantity = "Accelerations" if want & WANT_FORWARD else "Efforts"
    if want & WANT_LOADS:
        model.check_springs(T.reshape(*shape, size), ok)
    check_finite(quantity, configuration.name, T, None if ok is None else ok.reshape(-1))
    return T.reshape(*shape, size)


def to_columns(transfer: Transfer, *rates: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return arrays (B, m) in the order of the kernels."""
    order = transfer.permutation
    if order is None:
        return rates
    made = tuple(np.empty_like(a) for a in rates)
    for a, b in zip(made, rates, strict=True):
        a[:, order] = b
    return made


class MotionTerms(NamedTuple):
    """Terms of the equations of motion I* q̈ + h = T along motions, in the order of the coordinates.

    Attributes
    ----------
    acceleration : (..., m)
        Accelerations due to efforts; NaN where I* may be singular.
    bias : (..., m)
        Efforts h of the motion at q̈ = 0.
    I : (..., m, m)
        Mass matrix.
    load_power, dissipation : (...)
        Power of the loads Tᴸ, and that lost in dampers.
    """

    acceleration: np.ndarray
    bias: np.ndarray
    I: np.ndarray
    load_power: Any
    dissipation: Any


def completed(
    model: CompiledModel,
    transfer: Transfer,
    want: int,
    states: np.ndarray,
    rates: tuple[np.ndarray, ...],
    T: np.ndarray,
    known: np.ndarray,
) -> np.ndarray:
    """Return efforts or accelerations (B, m) in the order of the coordinates, from results T of the kernels.

    Springs in cut joints are added, and I* is checked where the kernel doubts it. `known` (B,) are the
    members with a result.
    """
    if not want & WANT_FORWARD:
        if model.cut_joint_loads:
            T = T.copy()
            I, bias, _, _ = _cut_joints(model, transfer, want, states[known], rates[0][known])
            T[known] += _times(I, rates[1][known]) + bias
        return transfer.in_coordinates([T], (1,))[0]
    size = len(transfer.labels)
    terms = forward_terms(model, transfer, states, rates, T, known)
    doubtful = known & np.isnan(terms.acceleration.real).any(axis=1) & np.isfinite(terms.I).all((1, 2))
    if size and doubtful.any():
        I, (effort,) = terms.I[doubtful], transfer.in_coordinates([rates[1]], (1,))
        error = transfer.inertia_error(model.inertia_error, states[doubtful])
        check_inertia_regular(I, error, transfer.labels)
        net = (effort - terms.bias)[doubtful]
        terms.acceleration[doubtful] = np.linalg.solve(I, net[..., None])[..., 0]
    return terms.acceleration


def forward_terms(
    model: CompiledModel,
    transfer: Transfer,
    states: np.ndarray,
    rates: tuple[np.ndarray, ...],
    T: np.ndarray,
    known: np.ndarray,
) -> MotionTerms:
    """Return the terms (B, …) from results T of the kernels, with springs in cut joints."""
    size = len(transfer.labels)
    a, bias, I = T[:, :size], T[:, size : 2 * size], T[:, 2 * size : -2].reshape(len(T), size, size)
    load_power, dissipation = T[:, -2], T[:, -1]
    if model.cut_joint_loads:
        parts = _cut_joints(model, transfer, BOTH, states[known], rates[0][known])
        for whole, part in zip((I, bias, load_power, dissipation), parts, strict=True):
            whole[known] += part
        a[:] = np.nan  # to be solved for again
    a, bias, I = transfer.in_coordinates([a, bias, I], (1, 1, 2))
    return MotionTerms(a, bias, I, load_power, dissipation)


def _cut_joints(
    model: CompiledModel, transfer: Transfer, want: int, states: np.ndarray, v: np.ndarray
) -> tuple[Any, Any, Any, Any]:
    """Return I*, bias, and powers of loads and dampers, of joints that are no columns of the tree."""
    I, P, *loads = model.cut_joint_terms(transfer, states, want)
    bias = np.einsum("bkac,ba,bc->bk", P, v, v)
    if not loads:
        return I, bias, 0.0, 0.0
    load, drag = loads[0], _times(loads[1], v)
    return I, bias + drag - load, (load * v).sum(axis=1), (drag * v).sum(axis=1)


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("bac,bc->ba", A, x)


class MotionEvaluator:
    """Evaluator of inverse or forward dynamics in fixed coordinates, for hot loops.

    Made by `Mechanism.prepare_inverse_dynamics` and `Mechanism.prepare_forward_dynamics`. Call it with a
    state (..., S), rates (..., M), and accelerations or efforts (..., M). It is thread-safe.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the coordinates.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> f = arm.prepare_inverse_dynamics()
    >>> f(arm.at([0.0, 0.0]).state, [0.0, 0.0], [0.0, 0.0])
    array([19.62 ,  4.905])
    """

    def __init__(
        self, model: CompiledModel, forward: bool, wrt: str | Iterable[str] | None = None, loads: bool = True
    ) -> None:
        want = BOTH if flag("loads", loads) else WANT_INERTIA
        self._model, self._want = model, want | (WANT_FORWARD if forward else 0)
        self._transfer = transfer = model.transfer_for(wrt)
        self._query = query = model.motion_query(transfer, self._want)
        self.coordinates = transfer.labels
        size = len(self.coordinates)
        self._applied = model.loads.constant[None]
        plain = transfer.permutation is None and not model.cut_joint_loads
        hot = plain and transfer.is_compiled and not model.has_complex_step and size
        # only one real state takes the hot path
        self._hot, self._width, self._run = bool(hot), query.width, None
        self._sizes = model.tree.state_size, size

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run": None}

    def _prepare(self) -> Any:
        """Return the function that runs the kernel, whose module is imported on first use, for one state.

        It raises a TypeError for anything but contiguous arrays of float64 with one axis.
        """
        query, applied = self._query, self._applied
        plan, numbers_, places = query.plan, query.numbers_in(_REAL), query.places
        choice, shape = getattr(self._transfer, "choice", None), (2, self._model.tree.size)
        drawn, rest = self._model.reference_state, np.zeros((1, self._sizes[1]))
        first = query.result((rest, rest), _REAL)
        given = (drawn, applied) if choice is None else (drawn, applied, choice)
        entry = compiled(kernel(query.entry), *query.arguments(first, *given))
        # scratch of calls that have ended; taking and returning is atomic
        free: list[tuple[np.ndarray, ...]] = []

        def run(state: np.ndarray, qd: np.ndarray, second: np.ndarray, T: np.ndarray) -> Any:
            try:
                mine = free.pop()
            except IndexError:
                mine = _empty(places), _empty(shape, np.int64), _empty((1, QUALITY_WIDTH))
            scratch, whole, quality = mine
            if choice is None:
                left = entry(plan, numbers_, state, applied, qd, second, scratch, T)
            else:
                left = entry(
                    plan, numbers_, state, applied, choice, qd, second, second, scratch, whole, T, quality
                )  # fmt: skip
            free.append(mine)
            return left

        self._run = run
        return run

    def __call__(self, state: Any, qd: Any, second: Any, out: np.ndarray | None = None) -> np.ndarray:
        """Evaluate efforts, or accelerations.

        Parameters
        ----------
        state : (..., S) array_like
            One closed state or a batch; see `Configuration.state`. Batches of all arguments broadcast.
        qd : (..., M) array_like
            Rates of the coordinates.
        second : (..., M) array_like
            Accelerations, for inverse dynamics; efforts, for forward dynamics.
        out : (..., M) ndarray, optional
            Array of float64 that receives the result.

        Returns
        -------
        (..., M) ndarray
            Efforts, or accelerations.

        Raises
        ------
        InputError
            For arrays of another shape.
        SingularError
            If the coordinates cannot drive the mechanism, or I* is singular.

        Notes
        -----
        For speed it is not checked that states are closed and numbers finite.
        """
        S, M = self._sizes
        try:
            if (
                self._hot
                and len(state) == S
                and len(qd) == M == len(second)
                and (out is None or len(out) == M)
            ):
                T = _empty(self._width) if out is None or self._width != M else out
                if not (self._run or self._prepare())(state, qd, second, T):
                    if out is None:
                        return T if self._width == M else T[:M]
                    if T is out:
                        return out
                    if type(out) is np.ndarray and out.shape == (M,) and out.dtype is _REAL:
                        out[:] = T[:M]
                        return out
        except TypeError:  # lists, batches, other scalars
            pass
        return self._general(state, qd, second, out)

    def _general(self, state: Any, qd: Any, second: Any, out: np.ndarray | None) -> np.ndarray:
        """Evaluate batches, other scalars, and members that need more than the kernel."""
        made = self.raw(state, qd, second)
        if out is None:
            return made
        if not isinstance(out, np.ndarray) or out.shape != made.shape or out.dtype != made.dtype:
            raise InputError(
                f"`out` must be an array of {made.dtype} and shape {made.shape}, got {short_repr(out)}."
            )
        out[...] = made
        return out

    def raw(self, state: Any, qd: Any, second: Any) -> np.ndarray:
        """Return the results of a batch."""
        shape, states, rates, T, known = self._tables(state, qd, second)
        made = completed(self._model, self._transfer, self._want, states, rates, T, known)
        return made.reshape(*shape, len(self.coordinates))

    def terms(self, state: np.ndarray, qd: np.ndarray, effort: np.ndarray) -> MotionTerms:
        """Return the terms of forward dynamics at one real state."""
        state, qd, effort = (a if a.flags.carray else a.copy() for a in (state, qd, effort))
        if self._hot:
            size, T = len(qd), _empty(self._width)
            if not (self._run or self._prepare())(state, qd, effort, T):
                I = T[2 * size : -2].reshape(size, size)
                return MotionTerms(T[:size], T[size : 2 * size], I, T[-2], T[-1])
        _, states, rates, T, known = self._tables(state, qd, effort)
        found = forward_terms(self._model, self._transfer, states, rates, T, known)
        return MotionTerms(*(part[0] for part in found))

    def _tables(self, state: Any, qd: Any, second: Any) -> tuple[Any, ...]:
        """Return the batch, its states, rates and results of the kernel, and the mask of finite members."""
        size, model, transfer = len(self.coordinates), self._model, self._transfer
        given = {
            "state": (numbers("state", state), model.tree.state_size),
            "qd": (numbers("qd", qd), size),
            "effort" if self._want & WANT_FORWARD else "qdd": (numbers("second", second), size),
        }
        for name, (a, width) in given.items():
            if a.ndim == 0 or a.shape[-1] != width:
                raise InputError(f"`{name}` must have shape (..., {width}), got {a.shape}.", got=a.shape)
        shape = broadcast_batches(**{name: a.shape[:-1] for name, (a, _) in given.items()})
        dtype = np.result_type(model.tree.scalar, *(a for a, _ in given.values()))
        if dtype.kind == "O" and self._want & WANT_FORWARD:
            raise InputError("Prepared forward dynamics needs numbers. Use Configuration.forward_dynamics.")
        states, *rates = (
            np.require(np.broadcast_to(a, (*shape, n)).reshape(prod(shape), n), dtype, _LAYOUT)
            for a, n in given.values()
        )
        applied = np.require(self._applied, dtype, _LAYOUT)
        first, last = to_columns(transfer, *rates)
        out = self._query.result((first, last), dtype)
        known = np.ones(len(states), bool)
        if dtype.kind != "O":
            for a in (states, first, last):
                known &= np.isfinite(a).all(axis=1)
        if known.all():
            transfer.evaluate(self._query, states, applied, out)
        else:
            part = self._query.result((first[known], last[known]), dtype)
            out.T[:] = np.nan
            out.T[known] = transfer.evaluate(self._query, states[known], applied, part).T
        return shape, states, (first, last), out.T, known

    def __repr__(self) -> str:
        what = "forward" if self._want & WANT_FORWARD else "inverse"
        return f"{what} dynamics of '{self._model.description.name}' in {', '.join(self.coordinates)}"
