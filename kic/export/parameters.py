"""Parameters of exported functions: numbers of the description in which packed tables are linear."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kic.analysis.sensitivity import COMPLEX_STEP, find_parameter, with_complex_step
from kic.errors import InputError, invalid
from kic.export.trace import Argument, Graph, Scalar
from kic.mechanism.configuration import model_of
from kic.mechanism.mechanism import Mechanism
from kic.transfer.compiled_model import CompiledModel

# entries below these shares, of the table's rotations and of the mechanism's length, are rounding
_ZERO_SHARE = 4 * np.finfo(float).eps
# fields of unit vectors, in which nothing is linear
_DIRECTIONS = ("axis", "axis2", "normal", "tangent", "tangent2", "axes")
# finite change of a parameter that tests if it enters linearly, and the tolerance of its derivative
_CHANGE, _LINEAR_RTOL = 0.01, 1e-10
_REMEDY = "Name positions, masses, inertias, gravity, forces or springs."


class Parameters:
    """Names and values of the numbers that remain variable; tables are linear functions of them."""

    def __init__(self, m: Mechanism, names: tuple[str, ...]) -> None:
        self.mechanism, self.names = m, names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            shown = f"{', '.join(twice)} twice"
            raise invalid("parameters", "must be distinct", tuple(twice), "Name each once.", shown=shown)
        for name in names:
            if find_parameter(m, name).key in _DIRECTIONS:
                rule = "must not be directions of axes, normals or frames"
                raise invalid("parameters", rule, name, _REMEDY, shown=f"'{name}'", name=name)
        self.values = np.array([_value(m, name) for name in names])
        length = model_of(m).length
        change = _CHANGE * np.where(self.values == 0, length, np.abs(self.values))
        self._stepped = [model_of(with_complex_step(m, {n: 1.0}, COMPLEX_STEP)) for n in names]
        self._changed = [
            # 1j times this step is the change and a small imaginary step
            model_of(with_complex_step(m, {n: 1.0}, COMPLEX_STEP - 1j * d))
            for n, d in zip(names, change, strict=True)
        ]
        for name, other in zip(names, self._changed, strict=True):
            if other.dof != m.dof:
                rule, remedy = "must keep the mobility", "Its loops close only with this number. Name others."
                shown = f"'{name}' of '{m.name}'"
                raise invalid("parameters", rule, name, remedy, shown=shown, name=name)

    @property
    def arguments(self) -> list[Argument]:
        """List of the input "parameters"; empty without parameters."""
        about = "numbers of the description, in its units"
        return (
            [Argument("parameters", self.values.shape, about, self.names, self.values)] if self.names else []
        )

    def pack(
        self,
        graph: Graph,
        argument: int,
        model: CompiledModel,
        pack: Callable[[CompiledModel], list[np.ndarray]],
    ) -> list[np.ndarray]:
        """Return packed arrays as linear functions of the parameters, with rounding errors set to zero."""
        made = [_clean(a.real, model.length).astype(object) for a in pack(model)]
        p = graph.inputs(argument, self.values)
        rates = [
            self._rates(name, pack(stepped), pack(changed), made)
            for name, stepped, changed in zip(self.names, self._stepped, self._changed, strict=True)
        ]
        for k, a in enumerate(made):
            J = np.array([r[k] for r in rates]).reshape(len(rates), a.size)
            for entry in np.flatnonzero(J.any(axis=0)):
                x = float(a.flat[entry]) - float(J[:, entry] @ self.values)
                x = 0.0 if abs(x) < _ZERO_SHARE * abs(a.flat[entry]) else x
                a.flat[entry] = x + sum(J[i, entry] * p[i] for i in np.flatnonzero(J[:, entry]))
        return made

    def _rates(self, name: str, stepped: list, changed: list, made: list) -> list[np.ndarray]:
        """Return the derivatives of packed arrays with respect to a parameter; these must be constant."""
        rates = []
        for here, there, own in zip(stepped, changed, made, strict=True):
            if not here.shape == there.shape == own.shape:
                rule, remedy = "must not be zero", "Give it a small value in the description."
            else:
                J, other = here.imag / COMPLEX_STEP, there.imag / COMPLEX_STEP
                atol = _LINEAR_RTOL * np.abs(J).max(initial=0.0)
                rule = (
                    "" if np.allclose(J, other, _LINEAR_RTOL, atol) else "must enter the equations linearly"
                )
                remedy = _REMEDY
            if rule:
                message = f"`parameters` {rule}, got '{name}' of '{self.mechanism.name}'. {remedy}"
                raise InputError(message, key="parameters", name=name)
            rates.append(J)
        return rates

    @staticmethod
    def moves(numbers: np.ndarray) -> bool:
        """Return True if numbers depend on parameters."""
        return any(type(x) is Scalar for x in numbers.flat)


def _clean(a: np.ndarray, length: float) -> np.ndarray:
    """Return an array with entries within rounding of 0, 1 and −1 set to these values."""
    a = np.where(np.abs(a) < _ZERO_SHARE * min(length, 1.0), 0.0, a)
    return np.where(np.abs(np.abs(a) - 1) < _ZERO_SHARE, np.sign(a), a)


def _value(m: Mechanism, name: str) -> float:
    number = find_parameter(m, name)
    value = np.asarray(m.gravity if not number.part else getattr(m[number.part], number.key), float)
    return float((value * number.direction).sum() / (number.direction**2).sum())
