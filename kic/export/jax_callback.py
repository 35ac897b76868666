"""Coefficients for JAX by the compiled kernels, for mechanisms that XLA compiles slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from kic.errors import InputError, invalid
from kic.export.closing import driving_choice
from kic.export.jax_function import arrays
from kic.export.questions import function_name, one_state
from kic.export.trace import Argument
from kic.kinematics.outputs import make_rows
from kic.kinematics.tree import Tree
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.evaluator import LETTERS as _LETTERS
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import check_order, integer, names_of
from kic.numerics.optional import import_optional
from kic.numerics.rotations import product

_Names = str | Iterable[str]
LETTERS = tuple(_LETTERS)


class Outputs(Mapping[str, Any]):
    """Pytree of arrays by name, computed on access, so that unused arrays are not differentiated."""

    def __init__(self, make: dict[str, Callable[[], Any]]) -> None:
        self._make, self._made = make, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)

    def __repr__(self) -> str:
        return f"outputs {', '.join(self)}"


def jax_callback(
    m: Mechanism,
    question: str,
    own: dict[str, Any],
    close: Any = False,
    parameters: _Names = (),
    derivatives: int = 0,
    outputs: _Names = (),
    steps: int | None = None,
    **options: Any,
) -> Callable[..., Outputs]:
    """Return `coefficients_function` for the options of `Exports`."""
    order = integer("derivatives", derivatives, 0, 2)
    if question != "coefficients":
        raise invalid("callback", f"must be False for '{question}'", True, "Export without `callback`.")
    for key, rule, value, wrong in (
        ("close", "True or left out", close, close is not True and close is not False),
        ("parameters", "left out", parameters, bool(names_of(parameters, "parameters"))),
        ("outputs", "left out", outputs, bool(names_of(outputs, "outputs"))),
        ("derivatives", "0", derivatives, order > 0),
        ("steps", "left out", steps, steps is not None),
    ):
        if wrong:
            raise invalid(key, f"must be {rule} with `callback`", value, "Export without `callback`.")
    return coefficients_function(m, **own, **options)


def coefficients_function(
    m: Mechanism,
    of: _Names,
    order: int = 2,
    wrt: _Names | None = None,
    near: Configuration | None = None,
    name: str | None = None,
) -> Callable[..., Outputs]:
    """Return a function of q and a nearby state; derivatives are the coefficients of the next order."""
    jax = _jax()
    jnp, model, names = jax.numpy, model_of(m), names_of(of, least=1)
    model.require_real("export()", "Export the mechanism itself.")
    called = function_name(m, "coefficients", name)
    start = one_state(model, near)
    solver, letters = m.prepare.position(wrt=wrt), LETTERS[: check_order(order) + 1]
    driving_choice(model, model.transfer_for(wrt).names, start)
    size, columns, (straight, turning) = len(solver.names), model.tree.columns, _state_rates(model.tree)
    inputs = Argument("q", (size,)), Argument("near", start.shape, default=start)
    prepare = lru_cache(lambda of, k: m.prepare.coefficients(of, order=max(k, 1), wrt=wrt))

    def call(host: Callable[..., Any], shape: tuple[int, ...], *given: Any) -> Any:
        dtype = given[0].dtype

        def run(*arrays: Any) -> Any:
            return np.asarray(host(*(np.asarray(a, float) for a in arrays)), dtype)

        return jax.pure_callback(run, jax.ShapeDtypeStruct(shape, dtype), *given, vmap_method="expand_dims")

    @partial(jax.custom_jvp, nondiff_argnums=(0, 1))
    def tensor(of: tuple[str, ...], k: int, q: Any, state: Any) -> Any:
        def host(state: np.ndarray) -> np.ndarray:
            found = prepare(of, k)(state)
            return np.concatenate([getattr(found[name], LETTERS[k]) for name in of], state.ndim - 1)

        return call(host, (len(make_rows(model.tree, of).labels), *[size] * k), state)

    @tensor.defjvp
    def next_order(of: tuple[str, ...], k: int, primals: Any, tangents: Any) -> Any:
        if k == 3:
            raise InputError(
                "Derivatives with `callback` must be of order 3 at most. Export without `callback`.",
                key="callback",
            )
        slope = tensor(of, k + 1, *primals)
        return tensor(of, k, *primals), jnp.tensordot(slope, tangents[0], ((1,), (0,)))

    @jax.custom_jvp
    def closed(q: Any, near: Any) -> Any:
        return call(lambda q, near: solver(near, q), start.shape, q, near)

    @closed.defjvp
    def moving(primals: Any, tangents: Any) -> Any:
        state = closed(*primals)
        rates = tensor(columns, 1, primals[0], state) @ tangents[0]
        return state, straight @ rates + (turning @ state) @ rates

    def function(*arguments: Any, **named: Any) -> Outputs:
        given = arrays(jnp, called, inputs, arguments, named)
        for key, x in given.items():
            if jnp.iscomplexobj(x):
                raise invalid(key, "must be real with `callback`", x.dtype, "Export without `callback`.")
        q, state = given["q"], closed(given["q"], given["near"])
        make = {
            f"{row}.{letter}": partial(tensor, (row,), k, q, state)
            for row in names
            for k, letter in enumerate(letters)
        }
        return Outputs({**make, "state": lambda: state})

    function.__name__ = called
    return function


@cache
def _jax() -> Any:
    """Import JAX and register `Outputs` as a pytree that becomes a dict."""
    jax = import_optional("jax", "jax", "Functions of JAX require JAX")
    jax.tree_util.register_pytree_node(
        Outputs,
        lambda made: (tuple(made.values()), tuple(made)),
        lambda names, x: dict(zip(names, x, strict=True)),
    )
    return jax


def _state_rates(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Return A (S, M) and B (S, M, S): rates of a state x are (A + B x) times those of the columns."""
    A, B = np.zeros((tree.state_size, tree.size)), np.zeros((tree.state_size, tree.size, tree.state_size))
    columns, entries = tree.single_columns
    A[entries, columns] = 1.0
    for turn, place in tree.ball_slices:
        for k, axis in enumerate(np.eye(4)[1:]):  # the rate of a quaternion x is ω x / 2
            B[place, turn.start + k, place] = product(axis / 2, np.eye(4)).T
    return A, B
