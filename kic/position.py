"""The position problem: closed configurations that have wanted values, one by one or along a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.errors import ConfigurationError, InputError, batch_indices, short_repr
from kic.numerics.arrays import as_numbers, broadcast_batches
from kic.transfer.closure import Closure
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.continuation import continue_to
from kic.transfer.limits import Limits, MotionLimits
from kic.transfer.targets import BatchTargets, Targets


def solve_position(
    model: CompiledModel, inputs: Any, near: Configuration | None, failures: str
) -> Configuration:
    """Return configurations with the values of the inputs. See `Mechanism.at`."""
    targets = model.targets(inputs)
    if model.has_complex_step:
        found = solve_position(model.real, real_inputs(inputs), real_configuration(model, near), failures)
        return follow_complex_step(model, targets, targets.values, found)
    start, around = initial_states(model, near)
    shape = broadcast_batches(inputs=targets.batch, near=around)
    problem = _PositionProblem(
        model.closure(targets.names, targets.held),
        _members(start, shape),
        _members(targets.values, shape),
        np.broadcast_to(targets.impossible, shape).ravel().tolist(),
        failures == "raise",
    )
    problem.solve(np.arange(prod(shape)))
    return problem.configuration(model, shape, failures, str, targets)


def solve_path(model: CompiledModel, inputs: Any, near: Configuration | None, failures: str) -> Configuration:
    """Return configurations along a path, the first axis of the batch. See `Mechanism.path`."""
    targets = model.targets(inputs)
    if not targets.batch:
        raise InputError(
            f"A path of '{model.description.name}' needs several members: give inputs with a batch, whose "
            "first axis is the path, or ask at() for one configuration."
        )
    start, around = initial_states(model, near)
    length, *side = targets.batch
    beside = broadcast_batches(inputs=tuple(side), near=around)
    shape = (length, *beside)
    values = targets.values.reshape(length, *(1,) * (len(beside) - len(side)), *targets.values.shape[1:])
    if model.has_complex_step:
        found = solve_path(model.real, real_inputs(inputs), real_configuration(model, near), failures)
        return follow_complex_step(model, targets, values, found)
    impossible = targets.impossible.reshape(length, *(1,) * (len(beside) - len(side)), *side)
    problem = _PositionProblem(
        model.closure(targets.names, targets.held),
        np.concatenate([_members(start, beside)] * length) if length else np.zeros((0, start.shape[-1])),
        _members(values, shape),
        np.broadcast_to(impossible, shape).ravel().tolist(),
        failures == "raise",
    )
    abreast = prod(beside)
    going = np.arange(abreast)
    for k in range(length):
        members = k * abreast + going
        if k:
            problem.start[members] = problem.states[members - abreast]
        problem.solve(members)
        stopped = np.array([bool(problem.reasons[b]) for b in members], dtype=bool)
        for b in going[stopped]:
            for later in range((k + 1) * abreast + b, length * abreast, abreast):
                problem.reasons[later] = f"its path stops at member {k}"
                problem.told[later] = False
        going = going[~stopped]

    def place(index: tuple[int, ...]) -> str:
        led = f", led from member {index[0] - 1}" if index[0] else ""
        return f"member {index[0] if len(index) == 1 else index}{led}"

    return problem.configuration(model, shape, failures, place, targets)


def within_limits(
    configuration: Configuration,
    limits: Limits,
    failures: str,
    path: bool = False,
    times: np.ndarray | None = None,
) -> Configuration:
    """Return configurations with members beyond limits masked, or raise an error that names the limits.

    Parameters
    ----------
    configuration : Configuration
        Solved configurations.
    limits : bool, dict of str to (lower, upper), or None
        See `MotionLimits`.
    failures : {"raise", "mask"}
        As in `Mechanism.at`.
    path : bool
        True if a member beyond limits ends its path along the first axis of the batch.
    times : (n,), optional
        Times of the first axis of the batch, for the error.
    """
    if limits is None or limits is False:
        return configuration
    model, shape = configuration._model, configuration.batch
    bounds = MotionLimits(model, limits)
    found = bounds.violations(configuration._states)
    bad = np.array([bool(one) for one in found], dtype=bool).reshape(shape)
    if not bad.any():
        return configuration
    stopped = np.logical_or.accumulate(bad, axis=0) if path else bad
    ok = configuration.ok & ~stopped
    states = np.where(ok.reshape(-1, 1), configuration._states, np.nan)
    masked = Configuration(model, shape, states, ok, configuration._aims)
    if failures == "mask":
        return masked
    which = np.flatnonzero(bad)
    failed = [tuple(map(int, index)) for index in np.argwhere(bad)]
    reasons = [bounds.reason(found[b]) for b in which]
    places = [
        f"t = {times[index[0]]:g}: " if times is not None else f"{index}: " * bool(shape) for index in failed
    ]
    said = [f"{place}{reason}" for place, reason in zip(places, reasons, strict=True)]
    numbers: dict[str, Any] = {} if times is None else {"time": float(times[failed[0][0]])}
    mask = ", or keep the others with failures='mask'" * (bool(shape) and times is None)
    raise ConfigurationError(
        f"'{model.description.name}' exceeds its limits: {'; '.join(said[:3])}"
        f"{'; …' if len(said) > 3 else ''}. Widen the limits, give other values{mask}.",
        failed=failed,
        reasons=reasons,
        beyond=[found[b] for b in which],
        configuration=masked,
        reached=Configuration(model, (len(which),), configuration._states[which]),
        **numbers,
    )


def real_inputs(inputs: Any) -> Any:
    """Return inputs without complex steps."""
    if isinstance(inputs, Mapping):
        return {key: real_inputs(value) for key, value in inputs.items()}
    a = as_numbers(inputs)
    return a.real if a is not None and a.dtype.kind == "c" else inputs


def real_configuration(model: CompiledModel, near: Configuration | None) -> Configuration | None:
    """Return a configuration of a mechanism with complex steps as one of the real mechanism."""
    if not isinstance(near, Configuration):
        return near
    own, real = near._model, model.real
    if own is not model:  # a description that was made again in real numbers may differ by rounding
        one, other = own.tree.geometry.real, real.tree.geometry
        if own.tree.columns != real.tree.columns or not np.allclose(one, other, 1e-9, 1e-9 * real.length):
            return near
    return Configuration(real, near.batch, np.ascontiguousarray(near._states.real), near._ok)


def follow_complex_step(
    model: CompiledModel, targets: Targets, values: np.ndarray, found: Configuration
) -> Configuration:
    """Add the complex step of the dimensions and the values to configurations of real numbers."""
    from kic.transfer.complex_step import ComplexStepTransfer

    states = found._states.astype(complex)
    good = np.flatnonzero(found.ok)
    transfer = model.closure(targets.names, targets.held).transfer
    assert isinstance(transfer, ComplexStepTransfer)  # for the type checker: the drawing carries a step
    with batch_indices(good, found.batch):
        states[good] = transfer.follow(found._states[good], _members(values, found.batch)[good])
    return Configuration(model, found.batch, states, found._ok)


def initial_states(
    model: CompiledModel, near: Configuration | None, argument: str = "near"
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return states (..., S) and batch of the starts: the reference configuration, or those of the user.

    Raise `InputError` if the argument is no configuration of this mechanism, or some of its members have
    failed.
    """
    if near is None:
        return model.reference_state[0], ()
    name = model.description.name
    if not isinstance(near, Configuration):
        raise InputError(f"`{argument}` must be a configuration made by at(), got {short_repr(near)}.")
    if near._model is not model and near._model.description != model.description:
        got = f"one of '{near.name}'" if near.name != name else "one of another mechanism of that name"
        raise InputError(f"`{argument}` must be a configuration of '{name}', got {got}.")
    if near._ok is not None:
        bad = int((~near.ok).sum())
        raise InputError(
            f"`{argument}` must have configurations only, but {bad} of its {near.ok.size} members have none."
        )
    if near._states.dtype != np.float64:
        raise InputError(f"`{argument}` must hold real numbers, got {near._states.dtype}.")
    return near.state, near.batch


class _PositionProblem:
    """Members of a batch with their starts, targets and results.

    `start` and `target` (B, S), (B, P) are closed states, and the values wanted. `reasons` are those of
    members that are impossible, '' for those to be solved. If `asked`, the reasons of failed members are
    computed.
    """

    def __init__(
        self, closure: Closure, start: np.ndarray, target: np.ndarray, reasons: list[str], asked: bool
    ) -> None:
        self.closure, self.start, self.target, self.asked = closure, start, target, asked
        finite = np.isfinite(target).all(axis=1) & np.isfinite(start).all(axis=1)
        self.reasons = [
            why or ("" if fine else "inputs must be finite")
            for why, fine in zip(reasons, finite, strict=True)
        ]
        self.told = np.ones(len(start), dtype=bool)
        self.states = np.full(start.shape, np.nan)
        self.reached = start.copy()
        self.share = np.zeros(len(start))

    def solve(self, members: np.ndarray) -> None:
        """Solve those of some members that are possible."""
        members = np.array([b for b in members if not self.reasons[b]], dtype=np.intp)
        if not members.size:
            return
        outcome = continue_to(self.closure, self.start[members], self.target[members], self.asked)
        solved = np.array([not why for why in outcome.reasons])
        self.states[members[solved]] = outcome.states[solved]
        self.reached[members], self.share[members] = outcome.states, outcome.share
        for b, why in zip(members, outcome.reasons, strict=True):
            self.reasons[b] = why

    def configuration(
        self,
        model: CompiledModel,
        shape: tuple[int, ...],
        failures: str,
        place: Callable[[tuple[int, ...]], str],
        asked: Targets,
    ) -> Configuration:
        """Return the configurations, with failed members masked, or raise an error that carries them.

        `place` returns the words for a member index.
        """
        ok = np.array([not why for why in self.reasons], dtype=bool).reshape(shape)
        aims = BatchTargets(asked.names, asked.held, self.target)
        configuration = Configuration(model, shape, self.states, None if ok.all() else ok, aims)
        if failures == "mask" or ok.all():
            return configuration
        failed = [tuple(index) for index in np.argwhere(~ok).tolist()]
        bad = np.flatnonzero(~ok.ravel())
        why = [self.reasons[b] for b in bad]
        said = [
            f"{place(index)}: {reason}" if shape else reason
            for index, reason, told in zip(failed, why, self.told[bad], strict=True)
            if told
        ]
        rest = (
            "look with assemblies(), or keep the others with failures='mask'"
            if shape
            else ("or look with assemblies()")
        )
        raise ConfigurationError(
            f"'{model.description.name}' has no configuration with these inputs near the start: "
            f"{'; '.join(said[:3])}{'; …' if len(said) > 3 else ''}. Give `near=` a configuration "
            f"closer to the wanted assembly, {rest}.",
            failed=failed,
            reasons=why,
            configuration=configuration,
            share=self.share[bad],
            reached=Configuration(model, (len(bad),), self.reached[bad]),
        )


def _members(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a copy of an array (..., n) over a batch of a shape, as rows (B, n)."""
    return np.broadcast_to(a, (*shape, a.shape[-1])).reshape(prod(shape), a.shape[-1]).copy()
