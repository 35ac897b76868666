"""Tracing of questions: their programs, run once on recording scalars at a chosen configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kic.dynamics.dynamic_parameters import LawColumns, dynamic_parameters
from kic.errors import InputError, invalid, unknown
from kic.export.closing import closing, equations
from kic.export.derivatives import with_derivatives
from kic.export.parameters import Parameters
from kic.export.trace import Argument, Trace
from kic.export.tracer import Tracer
from kic.kernels import layout as lay
from kic.kernels.linear_solve import factor_symmetric, solve_symmetric
from kic.kinematics.outputs import WRENCH_LABELS
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.evaluator import PARTS
from kic.mechanism.mechanism import Mechanism
from kic.mechanism.position import initial_states
from kic.mechanism.regressor import regressor_parts
from kic.numerics.arguments import check_order, flag, integer, names_of, text
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.program import BOTH

_Names = str | Iterable[str]


@dataclass(frozen=True)
class Export:
    """A question in the form of traces.

    Attributes
    ----------
    name : str
        Name of the function.
    mechanism, question, coordinates : Mechanism, str, tuple of str
        The mechanism, and names of the question and of the coordinates.
    answer : Trace or None
        Trace from a closed state and the other inputs to the results; None for "position" itself.
    step, certificate : Trace or None
        With closed loops: traces from a state, the coordinates q and parameters to the state after one Newton
        step; and to the residual and the radius of a ball about the state that holds a closed state.
    steps : int
        Number of Newton steps.
    chords : callable or None
        Function that returns the trace of two steps with exact first and second derivatives.
    """

    name: str
    mechanism: Mechanism
    question: str
    coordinates: tuple[str, ...]
    answer: Trace | None
    step: Trace | None = None
    certificate: Trace | None = None
    steps: int = 0
    chords: Callable[[], Trace] | None = None

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """Tuple of the inputs: with closed loops, q and a nearby state take the place of the state."""
        own = () if self.answer is None else self.answer.inputs
        if self.step is None:
            return own
        state, *first = self.step.inputs
        start = Argument(
            "near", state.shape, f"closed {state.about} near the wanted one", state.labels, state.default
        )
        known = {"state", *(a.name for a in first)}
        rest = [a for a in own if a.name not in known]
        q, *parameters = first
        return (q, *rest, *parameters, start)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """Tuple of the results; the guard is the minimum over all traces."""
        if self.certificate is None or self.step is None:
            assert self.answer is not None  # for the type checker
            return self.answer.outputs
        own = () if self.answer is None else self.answer.outputs[:-1]
        state, (residual, radius, guard) = (
            replace(self.step.outputs[0], name="state"),
            self.certificate.outputs,
        )
        about = "as radius, of a ball about `near`; unless it is NaN, the state is the continuation of `near`"
        return (*own, state, residual, radius, replace(radius, name="branch", about=about), guard)

    @property
    def operations(self) -> int:
        """Number of arithmetic operations of one call."""
        step, last, answer = (
            0 if t is None else t.operations for t in (self.step, self.certificate, self.answer)
        )
        return self.steps * step + last + answer

    def run(self, functions: Any, given: dict[str, Sequence[Any]], large: bool = False) -> list[Any]:
        """Compute the entries of the outputs in the arithmetic of any library; see `Trace.run`."""

        def ask(trace: Trace) -> list[Any]:
            return trace.run(functions, [given[a.name] for a in trace.inputs], large)

        if self.step is None or self.certificate is None:
            assert self.answer is not None  # for the type checker
            return ask(self.answer)
        given = {**given, "state": given["near"]}
        branch = ask(self.certificate)[1]
        for _ in range(self.steps):
            given["state"] = ask(self.step)[0]
        *found, guard = ask(self.certificate)
        own: list[Any] = []
        if self.answer is not None:
            *own, other = ask(self.answer)
            guard = [functions.minimum(guard[0], other[0])]
        return [*own, given["state"], *found, branch, guard]


_AXES = {
    "value": "[p]: value of row p (NaN for rates without a value)",
    "G": "[p][n] = d value[p] / d q[n], the Jacobian",
    "H": "[p][m][n] = d G[p][n] / d q[m], the Hessian",
    "D": "[p][l][m][n] = d H[p][m][n] / d q[l], the third derivative",
    "I": "[m][n], the mass matrix I*",
    "P": "[k][a][b], Christoffel symbols P*: efforts qd[a] P[k][a][b] qd[b]",
    "load": "[k], generalized loads of gravity, forces and springs; I* qdd + P* qd qd - load = T",
    "damping": "[k][n], the damping matrix: efforts damping[k][n] qd[n]",
}


def _tables(
    tracer: Tracer, of: _Names = (), order: int = 2, parts: tuple[str, ...] = ()
) -> list[tuple[Argument, Any]]:
    """Return coefficients and dynamics, as `evaluator.Tables`."""
    names, order = names_of(of, least=0 if parts else 1), check_order(order)
    want = (lay.WANT_INERTIA if parts else 0) | (lay.WANT_LOADS if len(parts) > 2 else 0)
    transfer: Any = tracer.transfer
    found = tracer.launch(lambda model: model.program(tracer.transfer_of(model), names, order, want))
    made: list[tuple[Argument, Any]] = []
    if names:
        rows = found.outputs.rows  # type: ignore[union-attr]
        values, *tensors = tracer.rows(found)
        tensors = transfer.in_coordinates(tensors, range(1, len(tensors) + 1))
        for name in names:
            span = rows.spans[name]
            labels = rows.labels[span]
            for letter, a in zip(_AXES, (values, *tensors), strict=False):
                made.append((Argument(f"{name}.{letter}", a[span].shape, _AXES[letter], labels), a[span]))
    if parts:
        tensors = transfer.in_coordinates([a[0] for a in found.model], (2, 3, 1, 2)[: len(parts)])
        made += [
            (Argument(n, a.shape, _AXES[n], transfer.labels), a) for n, a in zip(parts, tensors, strict=True)
        ]
    return made


def coefficients(tracer: Tracer, of: _Names, order: int = 2) -> list[tuple[Argument, Any]]:
    """Return values and coefficients of rows."""
    return _tables(tracer, of, order)


def dynamics(tracer: Tracer, loads: bool = True) -> list[tuple[Argument, Any]]:
    """Return I*, P*, and with `loads` the load and damping."""
    return _tables(tracer, parts=PARTS if flag("loads", loads) else PARTS[:2])


def coefficients_and_dynamics(
    tracer: Tracer, of: _Names, order: int = 2, loads: bool = True
) -> list[tuple[Argument, Any]]:
    """Return coefficients and dynamics from one run of the kernels."""
    return _tables(tracer, names_of(of, least=1), order, PARTS if flag("loads", loads) else PARTS[:2])


_RATES = {
    "qd": "rates of the coordinates",
    "qdd": "accelerations of the coordinates",
    "qddd": "jerks of the coordinates",
    "effort": "efforts at the coordinates",
}


def _rates(tracer: Tracer, *names: str) -> list[np.ndarray]:
    """Return rates as inputs; no branch depends on their recorded values, which are nonzero."""
    size, labels = tracer.transfer.size, tracer.transfer.labels
    return [tracer.input(name, np.full(size, 0.7), _RATES[name], labels) for name in names]


def _columns(transfer: Any, *rates: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return rates (1, m) in the order of the columns of the tree."""
    order = slice(None) if transfer.permutation is None else np.argsort(transfer.permutation)
    return tuple(a[None, order] for a in rates)


def _efforts(tracer: Tracer, want: int, second: str, name: str) -> list[tuple[Argument, Any]]:
    """Return efforts or accelerations, as `evaluator.Motions`."""
    transfer: Any = tracer.transfer
    if want & lay.WANT_FORWARD:
        tracer.model.require_none_held("Forward dynamics")
        tracer.check_inertia()
    columns = _columns(transfer, *_rates(tracer, "qd", second))
    found = tracer.launch(
        lambda model: model.program(tracer.transfer_of(model), want=want, along=True), *columns
    )
    size, (qd, given) = transfer.size, (a[0] for a in columns)
    I, bias = tracer.cut_joint_terms(want & BOTH, qd)
    if want & lay.WANT_FORWARD:  # from the terms, also where the kernel doubts I*
        T = given - bias - found.T[0, size : 2 * size]
        L = (I + found.T[0, 2 * size : -2].reshape(size, size)).reshape(-1)
        factor_symmetric(L, 0, size)
        solve_symmetric(L, 0, size, T, 0, 1)
    else:
        T = found.T[0, :size] + I @ given + bias
    (T,) = transfer.in_coordinates([T], (1,))
    return [(Argument(name, (size,), _RATES[name], transfer.labels), T)]


def inverse_dynamics(tracer: Tracer, loads: bool = True) -> list[tuple[Argument, Any]]:
    """Return the efforts that produce a motion."""
    want = BOTH if flag("loads", loads) else lay.WANT_INERTIA
    return _efforts(tracer, want, "qdd", "effort")


def regressor(
    tracer: Tracer, of: _Names | None = None, loads: bool = True, ground: bool = False
) -> list[tuple[Argument, Any]]:
    """Return the regressor of efforts, or of force and moment on ground, as `regressor.RegressorQuestion`."""
    ground, want = flag("ground", ground), regressor_parts(flag("loads", loads), ground)
    found, transfer = dynamic_parameters(tracer.model.tree, of, ground), tracer.transfer
    names, labels = found.names, WRENCH_LABELS if ground else transfer.labels
    qd, qdd = _rates(tracer, "qd", "qdd")
    parts = [np.zeros((len(labels), 0))]
    if found.bodies:
        ran = tracer.launch(
            lambda model: model.program(tracer.transfer_of(model), found.bodies, want=want, along=True),
            *_columns(transfer, qd, qdd),
        )
        Y = ran.T.reshape(len(labels), -1)
        parts.append(Y if ground else transfer.in_coordinates([Y.T], (1,))[0].T)
    if found.laws:
        rows, tables = found.rows, {a.name: x for a, x in _tables(tracer, found.rows, 2)}
        stacked = [np.concatenate([tables[f"{name}.{k}"] for name in rows]) for k in ("value", "G", "H")]
        ends = np.cumsum([len(tables[f"{name}.value"]) for name in rows]).tolist()
        places = {name: slice(a, b) for name, a, b in zip(rows, [0, *ends], ends, strict=False)}
        # ratios of motors may be parameters of the export
        weights = tracer.numbers(
            lambda model: [np.array(law.weights or ()) for law in dynamic_parameters(model.tree, names).laws]
        )
        parts.append(LawColumns(found.laws, places, weights).columns(stacked, qd, qdd, loads))
    Y = found.chosen(np.concatenate(parts, axis=1))
    row = f"row m of {', '.join(labels)} on ground" if ground else "effort at coordinate m"
    about = f"[m][k]: {row} for a unit of parameter k of {', '.join(names)}"
    return [(Argument("regressor", Y.shape, about, labels), Y)]


def forward_dynamics(tracer: Tracer) -> list[tuple[Argument, Any]]:
    """Return the accelerations that efforts cause."""
    return _efforts(tracer, BOTH | lay.WANT_FORWARD, "effort", "qdd")


def motion(tracer: Tracer, of: _Names) -> list[tuple[Argument, Any]]:
    """Return values and three derivatives of rows, from their coefficients (2-36)."""
    qd, qdd, qddd = _rates(tracer, "qd", "qdd", "qddd")
    names, tables = names_of(of, least=1), {a.name: (a, x) for a, x in _tables(tracer, of, 3)}
    made = []
    for name in names:
        (about, values), G, H, D = tables[f"{name}.value"], *(tables[f"{name}.{k}"][1] for k in "GHD")
        along = {
            "value": values,
            "velocity": G @ qd,
            "acceleration": G @ qdd + (H @ qd) @ qd,
            "jerk": G @ qddd + (H @ qd) @ qdd + 2 * (H @ qdd) @ qd + ((D @ qd) @ qd) @ qd,
        }
        for key, x in along.items():
            made.append((Argument(f"{name}.{key}", x.shape, f"[p]: {key} of row p", about.labels), x))
    return made


def actuation_map(tracer: Tracer, of: _Names, inertia: bool = True) -> list[tuple[Argument, Any]]:
    """Return values of rows, J, its rate, reflected inertia and motor efforts Jᵀ τ (3-39)."""
    labels, names = tracer.transfer.labels, names_of(of, least=1)
    (qd,) = _rates(tracer, "qd")
    tables = {a.name: (a, x) for a, x in _tables(tracer, names, 2)}
    rows = [label for name in names for label in tables[f"{name}.value"][0].labels]
    values, J, H = (np.concatenate([tables[f"{name}.{k}"][1] for name in names]) for k in ("value", "G", "H"))
    effort = tracer.input("effort", np.full(len(rows), 0.7), "efforts at the rows", tuple(rows))
    found: dict[str, tuple[np.ndarray, str, Any]] = {
        "value": (values, "[p]: value of row p", rows),
        "J": (J, "[p][n] = d value[p] / d q[n]; rates of rows J qd", rows),
        "Jdot": (
            np.einsum("pmn,m->pn", H, qd),
            "[p][n] = d J[p][n] / dt; accelerations J qdd + Jdot qd",
            rows,
        ),
        "motor_effort": (effort @ J, "[n] = sum over p of effort[p] J[p][n], of the same power", labels),
    }
    if flag("inertia", inertia):
        found["inertia"] = _tables(tracer, parts=PARTS[:2])[0][1], "[m][n], reflected inertia I* at q", labels
    return [(Argument(key, x.shape, about, tuple(names)), x) for key, (x, about, names) in found.items()]


def position(tracer: Tracer) -> None:
    """Return nothing: the closed state is an output of every function that closes the loops."""


# questions whose inputs are values of the coordinates
_CLOSED = ("position", "actuation_map")
# Newton steps, of quadratic convergence, unless the user sets their number
_STEPS = 5


def function_name(m: Mechanism, question: str, name: str | None) -> str:
    """Return the name of a function, by default composed of mechanism and question."""
    called = re.sub("[-.]", "_", f"{m.name}_{question}" if name is None else text("name", name))
    if name is not None and not called.isidentifier():
        raise invalid("name", "must be an identifier", name, "Give a name such as 'arm_dynamics'.")
    return called


def one_state(model: CompiledModel, near: Configuration | None) -> np.ndarray:
    """Return the state (S,) of `near`, by default of the reference configuration."""
    state, batch = initial_states(model, near)
    if batch:
        raise invalid("near", "must be one configuration", batch, shown=f"a batch {batch}")
    return state


def export_traces(
    m: Mechanism,
    trace: Callable[..., list[tuple[Argument, Any]] | None],
    own: Mapping[str, Any],
    /,
    near: Configuration | None = None,
    parameters: _Names = (),
    close: bool | str = False,
    derivatives: int = 0,
    outputs: _Names = (),
    steps: int | None = None,
    name: str | None = None,
) -> Export:
    """Return the traces of a question from its function and its options; others are as in `Exports`."""
    model = model_of(m)
    model.require_real("export()", "Export the mechanism itself, with `parameters`.")
    asked, options = trace.__name__, dict(own)
    wrt = options.pop("wrt")
    order, wanted = integer("derivatives", derivatives, 0, 2), names_of(outputs, "outputs")
    open_loops = isinstance(close, str) and close == "equations"
    close = not open_loops and (flag("close", close) or asked in _CLOSED)
    count = _STEPS if steps is None else integer("steps", steps, 1)
    if steps is not None and not close:
        raise InputError("`steps` requires `close`. Add it, or leave `steps` out.", key="steps")
    if order and not close:
        raise invalid("derivatives", "must be 0 without `close=True`", order, "Add `close=True`.")
    state = one_state(model, near)
    called = function_name(m, asked, name)
    found = Parameters(m, names_of(parameters, "parameters"))
    transfer = model.transfer_for(wrt)
    if not transfer.size:
        message = (
            f"'{m.name}' must have degrees of freedom to be exported, got 0. Use `Configuration` instead."
        )
        raise InputError(message, dof=0)

    def transfer_of(model: CompiledModel) -> Any:
        # parameters of couplings cannot enter linear maps
        made = model.transfer_for(wrt)
        return model.transfer(made.names) if found.names and transfer.linear is not None else made

    def answer() -> Trace | None:
        tracer = Tracer(state, model, found, transfer_of)
        made = trace(tracer, **options)
        if wanted:
            there = {a.name: (a, x) for a, x in made or []}
            for word in wanted:
                if word not in there:
                    raise unknown("output", word, called, there)
            made = [there[word] for word in dict.fromkeys(wanted)]
        if open_loops:
            made = [*(made or []), *equations(tracer, transfer.names, state)]
        if made is None:
            return None
        tracer.inputs += found.arguments
        return tracer.finish(called, made)

    if not close:
        return Export(called, m, asked, transfer.labels, answer())
    close_by = partial(closing, model, transfer.names, state, found, called)
    step, certificate = close_by("step"), close_by("certificate")
    found_answer = answer()
    if order:
        if found_answer is None:
            raise invalid(
                "derivatives", "must be 0 for 'position'", order, "Export coefficients for derivatives."
            )
        values = model.coordinate_values(transfer.names, state[None])[0].real
        found_answer = with_derivatives(found_answer, step, {"state": state, "q": values}, order)
    chords = partial(close_by, "chords")
    return Export(called, m, asked, transfer.labels, found_answer, step, certificate, count, chords)
