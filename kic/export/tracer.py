"""Recording of programs on scalars, at a chosen configuration."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from kic.description.parts import Joint
from kic.errors import SingularError
from kic.export.parameters import Parameters
from kic.export.trace import Argument, Graph, Scalar, Trace, make_trace
from kic.kernels import layout as lay
from kic.kinematics.euler import middle_cosine
from kic.kinematics.outputs import Rows
from kic.kinematics.queries import Query, kernel
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.program import ARGUMENTS, BOTH, Program, Table, Transfer, joint_laws, terms_along

OBJECT = np.dtype(object)


class Tracer:
    """Recording of one trace: inputs in their order, and programs run on them."""

    def __init__(
        self,
        near: np.ndarray,
        model: CompiledModel,
        parameters: Parameters,
        transfer_of: Callable[[CompiledModel], Transfer],
    ) -> None:
        self.graph, self.model, self.parameters = Graph(), model, parameters
        self.transfer_of, self.transfer = transfer_of, transfer_of(model)
        self.inputs: list[Argument] = []
        # constants that complete the values of the rows launched last
        self._offsets = np.zeros(0)
        about = "state, see Configuration.state: coordinates of the spanning tree, quaternions (w, x, y, z)"
        self.state = self.input("state", near, about, _state_labels(model), near)

    def input(
        self, name: str, at: np.ndarray, about: str, labels: tuple[str, ...], default: Any = None
    ) -> np.ndarray:
        """Return the scalars of an input with the numbers `at` the chosen configuration."""
        self.inputs.append(Argument(name, at.shape, about, labels, default))
        return self.graph.inputs(len(self.inputs) - 1, at)

    def finish(self, name: str, outputs: list[tuple[Argument, Any]]) -> Trace:
        """Return the trace of the given outputs; parameters are its last input."""
        for out, a in outputs:
            if out.name == "radius":  # NaN where nothing is proved
                continue
            found = np.array([float(x) for x in np.ravel(a)])
            recorded = np.array([type(x) is Scalar for x in np.ravel(a)], bool)
            if np.isinf(found).any() or (np.isnan(found) & recorded).any():
                raise SingularError(
                    f"`{out.name}` of '{self.model.description.name}' is not finite at `near`. "
                    "Choose another configuration."
                )
        return make_trace(name, self.graph, self.inputs, outputs)

    def numbers(self, pack: Callable[[CompiledModel], list[np.ndarray]]) -> list[np.ndarray]:
        """Return packed numbers as functions of the parameters."""
        return self.parameters.pack(self.graph, -1, self.model, pack)  # the last input

    def launch(self, find: Callable[[CompiledModel], Program], *rates: np.ndarray) -> Table:
        """Return the results of a program for the state, with springs, dampers and armature of cut joints."""
        program, out = find(self.model), self.run(find, *rates)
        if program.want & BOTH and not program.along:
            offsets = self._offsets
            self._add_cut_joints(program, out)
            self._offsets = offsets
        return out

    def run(
        self, find: Callable[[CompiledModel], Program], *rates: np.ndarray, width: int | None = None
    ) -> Table:
        """Return the tables of the kernels of a program, optionally only `width` results along a motion."""
        program = find(self.model)
        transfer: Any = program.transfer
        choice = None
        if transfer.system is not None:
            near = np.array([float(x) for x in self.state])[None]
            choice = transfer.choice_at(near)
            if choice is None:
                raise SingularError(
                    f"Coordinates {', '.join(transfer.labels)} cannot drive '{program.name}' at `near`. "
                    "Choose another configuration or other coordinates.",
                    coordinates=transfer.labels,
                )
        *numbers, applied, offsets = self.numbers(
            lambda model: [
                *(q.numbers for q in find(model).queries),
                find(model).applied,
                _offsets(find(model)),
            ]
        )
        out = program.table(1, OBJECT, rates)
        out.T, out.quality = out.T[:, :width], out.quality.astype(OBJECT)
        for query, own in zip(program.queries, numbers, strict=True):
            query = _with_numbers(query, own)
            arguments = ARGUMENTS[query.entry](query, out, self.state[None], applied, choice)
            for a in arguments:
                if isinstance(a, np.ndarray) and a.dtype == OBJECT and a.size and a.flat[0] is None:
                    a.fill(0.0)
            try:
                kernel(query.entry).py_func(*arguments)
            except ZeroDivisionError as error:
                raise SingularError(
                    f"Loops or inertia of '{program.name}' are singular at `near`. Choose another."
                ) from error
        if len(out.quality) and not out.quality[0, lay.PIVOT] > 0:
            raise SingularError(f"The loops of '{program.name}' are singular at `near`. Choose another.")
        self._offsets = offsets
        return out

    def check_inertia(self) -> None:
        """Raise `SingularError` if some motion moves no mass at `near`."""
        near = np.array([[float(x) for x in self.state]])
        program = self.model.program(self.transfer, want=lay.WANT_INERTIA, keep=True)
        program.check_inertia(program.run(near), near)

    def _add_cut_joints(self, program: Program, out: Table) -> None:
        """Add springs, dampers and armature of joints that are not columns of the tree, unless all are 0."""

        def motion(joint: Joint, order: int) -> tuple[np.ndarray, ...]:
            found = self.launch(lambda model: model.program(self.transfer_of(model), joint.name, order))
            values, *tensors = self.rows(found)
            values = np.where(found.outputs.rows.valued, values, joint.rest)  # type: ignore[union-attr]
            return values[None], *(a[None] for a in tensors)

        laws = self.numbers(lambda model: [joint_laws(joint) for joint in model.tree.cuts])
        joints = zip(self.model.tree.cuts, laws, strict=True)
        program.add_joints(out, [(joint, law) for joint, law in joints if law.any()], motion)

    def cut_joint_terms(self, want: int, qd: np.ndarray) -> tuple[Any, Any]:
        """Return I* (m, m) and bias (m,), at rates (m,), of joints that are not columns of the tree."""
        program = self.model.program(self.transfer, want=want)
        out = program.table(1, OBJECT)
        out.K.fill(0.0)
        self._add_cut_joints(program, out)
        I, bias, _, _ = terms_along(out.model, qd[None])
        return I[0], bias[0]

    def rows(self, found: Table) -> list[np.ndarray]:
        """Return values (P,), G, H, D of the rows launched last; values of pure rates are NaN."""
        rows: Rows = found.outputs.rows  # type: ignore[union-attr]
        values, *tensors = (a[0] for a in found.arrays)
        values, offsets = values.copy(), list(self._offsets)
        for row, _ in rows.offsets:
            values[row] = values[row] + offsets.pop(0)
        for row, sine, cosine, _ in rows.angles:
            c = middle_cosine(values, sine) if cosine < 0 else values[cosine]
            values[row] = arctan2(values[sine], c) + offsets.pop(0)
        if rows.select is not None:
            values, *tensors = (t.take(rows.select, axis=0) for t in (values, *tensors))
        return [np.where(rows.valued, values, np.nan), *tensors]


def arctan2(sine: Any, cosine: Any) -> Any:
    """Return the angle of a sine and a cosine, which may be constants."""
    if isinstance(sine, Scalar):
        return sine.arctan2(cosine)
    if isinstance(cosine, Scalar):
        return cosine.graph.pair("atan2", sine, cosine, np.arctan2(sine, cosine.number))
    return np.arctan2(sine, cosine)


def _with_numbers(query: Query, numbers: np.ndarray) -> Query:
    found = copy(query)
    found.scalars = {OBJECT: numbers}
    return found


def _offsets(program: Program) -> np.ndarray:
    """Return the constants that complete the values of rows, see `Rows.complete`."""
    rows = None if program.outputs is None else program.outputs.rows
    if rows is None:
        return np.zeros(0)
    return np.array(
        [*(x for _, x in rows.offsets), *(x for *_, x in rows.angles)], program.transfer.tree.scalar
    )


def _state_labels(model: CompiledModel) -> tuple[str, ...]:
    tree, labels = model.tree, [""] * model.tree.state_size
    for n, name in enumerate(tree.columns):
        place = tree.cols[n, lay.STATE]
        if tree.cols[n, lay.KIND] != lay.BALL:
            labels[place] = name
        elif tree.cols[n, lay.GROUP] == n:
            labels[place : place + 4] = [f"{name.rpartition('.')[0] or name}.{c}" for c in "wxyz"]
    return tuple(labels)
