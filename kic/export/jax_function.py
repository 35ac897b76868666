"""Traces as functions of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kic.errors import invalid
from kic.export.numpy_function import matched
from kic.export.questions import Export
from kic.export.trace import Argument, Trace
from kic.numerics.optional import import_optional


def arrays(
    jnp: Any, function: str, inputs: tuple[Argument, ...], arguments: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    """Return the inputs by name in their shapes, in the widest precision of the arguments."""
    given = {k: jnp.asarray(x) for k, x in matched(function, inputs, arguments, named).items()}
    dtype = jnp.result_type(float, *given.values())
    for a in inputs:
        x = given[a.name]
        x = x.reshape(a.shape) if x.ndim == 0 and a.size == 1 else x
        if x.shape != a.shape:
            raise invalid(a.name, f"must have shape {a.shape}", x.shape, "Use jax.vmap for batches.")
        given[a.name] = x.astype(dtype)
    return given


def jax_function(export: Export) -> Callable[..., dict[str, Any]]:
    """Return a function of arrays of JAX, for jit, vmap, grad, jacfwd, jacrev and hessian.

    The function takes the inputs in order or by name, and returns a dict of the outputs. The operations are
    those of the list, in the precision of the inputs.

    Newton steps are a loop, which is not differentiated. A closed state is a fixed point, at which the
    derivative of a step by the state vanishes. The derivatives of one more step are thus those of the state.
    This rule is linear, for forward and reverse mode, and holds to any order.
    """
    jax = import_optional("jax", "jax", "Functions of JAX require JAX")
    jnp = jax.numpy

    def ask(trace: Trace, given: dict[str, Any]) -> list[Any]:
        found = trace.run(jnp, [list(given[a.name]) for a in trace.inputs])
        dtype = jnp.result_type(*given.values())
        arrays = [
            jnp.stack([jnp.asarray(x, dtype) for x in entries]) if entries else jnp.zeros(0, dtype)
            for entries in found
        ]
        return [a.reshape(out.shape) for a, out in zip(arrays, trace.outputs, strict=True)]

    def step(state: Any, first: dict[str, Any]) -> Any:
        assert export.step is not None  # for the type checker
        return ask(export.step, {**first, "state": state})[0]

    @jax.custom_jvp
    def closed(near: Any, first: dict[str, Any]) -> Any:
        return jax.lax.fori_loop(0, export.steps, lambda _, state: step(state, first), near)

    @closed.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        near, first = primals
        state = closed(near, first)
        return state, jax.jvp(lambda given: step(state, given), (first,), (tangents[1],))[1]

    def function(*arguments: Any, **named: Any) -> dict[str, Any]:
        given = arrays(jnp, export.name, export.inputs, arguments, named)
        traces: list[Trace] = []
        if export.step is not None and export.certificate is not None:
            traces.append(export.certificate)
            first = {a.name: given[a.name] for a in export.step.inputs[1:]}
            given["state"] = closed(given["near"], first)
        if export.answer is not None:
            traces.append(export.answer)
        made: dict[str, Any] = {}
        if export.step is not None and export.certificate is not None:
            made["state"] = given["state"]
            made["branch"] = ask(export.certificate, {**given, "state": given["near"]})[1]
        for trace in traces:
            found = {out.name: a for out, a in zip(trace.outputs, ask(trace, given), strict=True)}
            if "guard" in made:
                found["guard"] = jnp.minimum(found["guard"], made["guard"])
            made |= found
        return {out.name: made[out.name] for out in export.outputs}

    function.__name__ = export.name
    return function
