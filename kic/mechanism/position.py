"""The position problem: closed configurations with given values, one by one or along a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from kic.errors import ConfigurationError, InputError, batch_indices, invalid
from kic.mechanism.configuration import Configuration, flat_states, model_of
from kic.mechanism.inputs import position_problem, real_inputs
from kic.numerics.arrays import broadcast_batches
from kic.transfer.closure import Closure
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.continuation import continue_from, placed
from kic.transfer.coordinate_transfer import TRIES_MAX
from kic.transfer.limits import Limits, MotionLimits
from kic.transfer.targets import BatchTargets, Targets


def solve_position(
    model: CompiledModel, inputs: Any, near: Configuration | None, failures: str
) -> Configuration:
    """Return configurations with given values of the inputs; see `Mechanism.at`."""
    targets, closure = position_problem(model, inputs)
    if model.has_complex_step:
        found = solve_position(model.real, real_inputs(inputs), real_configuration(model, near), failures)
        return follow_complex_step(model, targets, targets.values, found)
    start, around = (model.reference_state[0], ()) if near is None else initial_states(model, near)
    shape = targets.batch or around
    if targets.batch and around:
        shape = broadcast_batches(values=targets.batch, near=around)
    given = start, targets.values
    start, target = [_members(a, shape) if shape else a[None] for a in given]
    problem = _PositionProblem(closure, start, target, targets, shape, failures)
    problem.solve()
    return problem.configuration(model, str)


def solve_path(model: CompiledModel, inputs: Any, near: Configuration | None, failures: str) -> Configuration:
    """Return configurations along a path, the first axis of the batch; see `Mechanism.path`."""
    targets, closure = position_problem(model, inputs)
    if not targets.batch:
        message = (
            f"A path of '{model.description.name}' needs several members: give values with a batch, whose "
            "first axis is the path, or use at() for one configuration."
        )
        raise InputError(message, key="values", got=())
    start, around = initial_states(model, near)
    length, *side = targets.batch
    beside = broadcast_batches(values=tuple(side), near=around)
    shape = (length, *beside)
    values = targets.values.reshape(length, *(1,) * (len(beside) - len(side)), *targets.values.shape[1:])
    if model.has_complex_step:
        found = solve_path(model.real, real_inputs(inputs), real_configuration(model, near), failures)
        return follow_complex_step(model, targets, values, found)
    impossible = targets.impossible.reshape(length, *(1,) * (len(beside) - len(side)), *side)
    problem = _PositionProblem(
        closure,
        np.concatenate([_members(start, beside)] * length) if length else np.zeros((0, start.shape[-1])),
        _members(values, shape),
        replace(targets, reasons=[impossible] if targets.reasons else [], batch=impossible.shape),
        shape,
        failures,
    )
    abreast = prod(beside)
    going = np.arange(abreast)
    for k in range(length):
        members = k * abreast + going
        if k:
            problem.start[members] = problem.states[members - abreast]
        problem.solve(members)
        if not problem.reasons:
            continue
        stopped = np.array([b in problem.reasons for b in members.tolist()], dtype=bool)
        for b in going[stopped].tolist():
            for later in range((k + 1) * abreast + b, length * abreast, abreast):
                problem.reasons[later] = f"its path stops at member {k}"
                problem.told[later] = False
        going = going[~stopped]

    def place(index: tuple[int, ...]) -> str:
        origin = f", continued from member {index[0] - 1}" if index[0] else ""
        return f"member {index[0] if len(index) == 1 else index}{origin}"

    return problem.configuration(model, place)


def within_limits(
    configuration: Configuration,
    limits: Limits,
    failures: str,
    path: bool = False,
    times: np.ndarray | None = None,
) -> Configuration:
    """Return configurations with members beyond limits masked, or raise an error for such members.

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
    model, shape = model_of(configuration), configuration.batch
    bounds = MotionLimits(model, limits)
    found = bounds.violations(flat_states(configuration))
    bad = np.array([bool(one) for one in found], dtype=bool).reshape(shape)
    if not bad.any():
        return configuration
    stopped = np.logical_or.accumulate(bad, axis=0) if path else bad
    ok = configuration.ok & ~stopped
    states = np.where(ok.reshape(-1, 1), flat_states(configuration), np.nan)
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
        f"{'; …' if len(said) > 3 else ''}. Widen the limits, or give other values{mask}.",
        failed=failed,
        reasons=reasons,
        beyond=[found[b] for b in which],
        configuration=masked,
        reached=Configuration(model, (len(which),), flat_states(configuration)[which]),
        **numbers,
    )


def real_configuration(model: CompiledModel, near: Configuration | None) -> Configuration | None:
    """Convert a configuration of a mechanism with complex steps to one of the real mechanism."""
    if not isinstance(near, Configuration):
        return near
    own, real = model_of(near), model.real
    if own is not model:  # a description that was rebuilt in real numbers may differ by rounding
        one, other = own.tree.geometry.real, real.tree.geometry
        if own.tree.columns != real.tree.columns or not np.allclose(one, other, 1e-9, 1e-9 * real.length):
            return near
    return Configuration(real, near.batch, np.ascontiguousarray(flat_states(near).real), near.ok)


def follow_complex_step(
    model: CompiledModel, targets: Targets, values: np.ndarray, found: Configuration
) -> Configuration:
    """Add the complex step of the dimensions and `values` to real configurations."""
    from kic.transfer.complex_step import ComplexStepTransfer

    states = flat_states(found).astype(complex)
    good = np.flatnonzero(found.ok)
    transfer = model.closure(targets.names, targets.held).transfer
    assert isinstance(transfer, ComplexStepTransfer)  # for the type checker: the drawing carries a step
    with batch_indices(good, found.batch):
        states[good] = transfer.follow(flat_states(found)[good], _members(values, found.batch)[good])
    return Configuration(model, found.batch, states, found.ok)


def initial_states(
    model: CompiledModel, near: Configuration | None, argument: str = "near"
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return states (..., S) and batch of the starts: those of `near`, or the reference configuration.

    Raise `InputError` if `near` is not a configuration of this mechanism, or has failed members.
    """
    if near is None:
        return model.reference_state[0], ()
    name = model.description.name
    if not isinstance(near, Configuration):
        raise invalid(argument, "must be a Configuration, such as one from at()", near)
    own, states = model_of(near), flat_states(near)
    if own is not model and own.description != model.description:
        got = f"one of '{near.name}'" if near.name != name else "one of another mechanism of that name"
        raise invalid(argument, f"must be a configuration of '{name}'", near.name, shown=f"{got}")
    bad = int((~near.ok).sum())
    if bad:
        raise InputError(
            f"`{argument}` must contain solved configurations only; {bad} of its {near.ok.size} members "
            f"{'is' if bad == 1 else 'are'} unsolved.",
            key=argument,
        )
    if states.dtype != np.float64:
        raise invalid(argument, "must hold real numbers", states.dtype, shown=f"{states.dtype}")
    return states.reshape(*near.batch, states.shape[-1]), near.batch


class _PositionProblem:
    """Members of a batch with their starts, targets and results.

    Parameters
    ----------
    closure : Closure
        The equations.
    start, target : (B, S), (B, P)
        Closed states, and the target values.
    targets : Targets
        The targets, with reasons for impossible members.
    shape : tuple of int
        Shape of the batch.
    failures : {"raise", "mask"}
        With "raise", reasons for failed members are computed.
    """

    def __init__(
        self,
        closure: Closure,
        start: np.ndarray,
        target: np.ndarray,
        targets: Targets,
        shape: tuple[int, ...],
        failures: str,
    ) -> None:
        self.closure, self.start, self.target = closure, start, target
        self.targets, self.shape, self.failures = targets, shape, failures
        self.reasons: dict[int, str] = {}
        if targets.reasons:
            why = np.broadcast_to(targets.impossible, shape).ravel().tolist()
            self.reasons = {b: reason for b, reason in enumerate(why) if reason}
        # False for members whose reason follows from another member
        self.told = np.ones(len(start), dtype=bool)
        self.states = np.full(start.shape, np.nan)
        self.reached: dict[int, tuple[np.ndarray, float]] = {}

    def solve(self, members: np.ndarray | None = None) -> None:
        """Solve the given members, by default all, except those with impossible values."""
        if members is None and not self.reasons:
            start, target = self.start, self.target
        else:
            members = np.arange(len(self.start)) if members is None else members
            if self.reasons:
                members = np.array([b for b in members.tolist() if b not in self.reasons], dtype=np.intp)
            start, target = self.start[members], self.target[members]
        start = placed(self.closure, start, target)
        states, share = self.closure.track(start, target, tries=TRIES_MAX)
        failed = share < 1
        if failed.any():
            rest = continue_from(self.closure, start, target, states, share, self.failures == "raise")
            failed = rest.share < 1
            for k in np.flatnonzero(failed).tolist():
                b = k if members is None else int(members[k])
                self.reasons[b], self.reached[b] = rest.reasons[k], (rest.states[k], float(rest.share[k]))
            states = np.where(failed[:, None], np.nan, rest.states)
        if members is None:
            self.states = states
        else:
            self.states[members] = states

    def configuration(self, model: CompiledModel, place: Callable[[tuple[int, ...]], str]) -> Configuration:
        """Return the configurations with failed members masked, or raise an error that carries them.

        `place` returns the text for a member index.
        """
        shape = self.shape
        aims = BatchTargets(self.targets.names, self.targets.held, self.target)
        if not self.reasons:
            return Configuration(model, shape, self.states, None, aims)
        ok = np.ones(len(self.start), dtype=bool)
        ok[list(self.reasons)] = False
        ok = ok.reshape(shape)
        configuration = Configuration(model, shape, self.states, ok, aims)
        if self.failures == "mask":
            return configuration
        failed = [tuple(index) for index in np.argwhere(~ok).tolist()]
        bad = np.flatnonzero(~ok.ravel())
        why = [self.reasons[b] for b in bad.tolist()]
        said = [
            f"{place(index)}: {reason}" if shape else reason
            for index, reason, told in zip(failed, why, self.told[bad], strict=True)
            if told
        ]
        others = "keep the others with failures='mask'"
        where, remedy = "", f"Correct the values, or {others}." if shape else "Correct the values."
        if self.reached:  # possible values were not reached
            where, remedy = (
                " near the start",
                "Give `near=` a configuration closer to the desired assembly mode, ",
            )
            look = "look with assembly_modes()"
            remedy += f"{look}, or {others}." if shape else f"or {look}."
        raise ConfigurationError(
            f"'{model.description.name}' has no configuration with these values{where}: "
            f"{'; '.join(said[:3])}{'; …' if len(said) > 3 else ''}. {remedy}",
            failed=failed,
            reasons=why,
            configuration=configuration,
            share=np.array([self.reached[b][1] if b in self.reached else 0.0 for b in bad.tolist()]),
            reached=Configuration(
                model,
                (len(bad),),
                np.array([self.reached[b][0] if b in self.reached else self.start[b] for b in bad.tolist()]),
            ),
        )


def _members(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Broadcast an array (..., n) to a batch shape, and flatten it to (B, n)."""
    if a.shape[:-1] != shape:
        a = np.broadcast_to(a, (*shape, a.shape[-1]))
    return a.reshape(prod(shape), a.shape[-1])
