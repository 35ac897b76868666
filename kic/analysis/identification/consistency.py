"""Values of all parameters that real bodies can have, from estimates of combinations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kic.description.parts import INERTIA_RTOL
from kic.dynamics.dynamic_parameters import (
    INERTIAL,
    carried_numbers,
    dynamic_parameters,
    pseudo_inertia,
    ten_numbers,
)
from kic.dynamics.regressor import BaseParameters
from kic.errors import InertiaError, SingularError
from kic.numerics import conic_programs
from kic.transfer.compiled_model import CompiledModel

# smallest radius of gyration of a body, relative to the size of the mechanism
GYRATION_RTOL = 1e-5
# masses below this share of the largest count as such a mass
SMALL_MASS_RTOL = 1e-3
# weights of the distance from values that are not in the description, and from others if data contradict them
UNKNOWN_WEIGHT, DISTANCE_WEIGHT = 1e-3, 1e-9


def consistent_values(
    model: CompiledModel, base: BaseParameters, values: np.ndarray, covariance: np.ndarray
) -> np.ndarray:
    """Return values (K,) of all parameters with estimated combinations; see `Identification.consistent`."""
    unknowns = _Unknowns(model, base, values)
    size = len(base.parameters)
    weights = np.diag(np.where(unknowns.given, 1.0, UNKNOWN_WEIGHT))
    B, left = base.matrix * unknowns.scale, values - base.matrix @ unknowns.start
    norms = np.linalg.norm(B, axis=1)
    E, e = B / norms[:, None], left / norms
    _, T = conic_programs.orthonormal_rows(E, e)
    signs, orders = (1,) * unknowns.signed, (4,) * len(unknowns.bodies)
    program = conic_programs.Program(
        np.zeros(size), T @ E, T @ e, unknowns.A, unknowns.h, signs, weights, orders
    )
    try:
        return unknowns.values(program.exact(conic_programs.solve(program)[0]))
    except SingularError:  # no bodies have these combinations
        pass
    sigma = np.sqrt(np.diagonal(covariance))
    root = np.linalg.cholesky(covariance / np.outer(sigma, sigma))
    W, r = np.linalg.solve(root, B / sigma[:, None]), np.linalg.solve(root, left / sigma)
    largest, count = np.abs(W).max(), len(r)
    zero = np.zeros((size, count))
    # the squares of further unknowns W z − r are minimized
    nearest = replace(
        program,
        cost=np.zeros(size + count),
        E=np.hstack([W / largest, -np.eye(count)]),
        e=r / largest,
        A=np.hstack([program.A, np.zeros((len(program.h), count))]),
        square=np.block([[DISTANCE_WEIGHT * weights, zero], [zero.T, np.eye(count)]]),
    )
    try:
        return unknowns.values(conic_programs.solve(nearest)[0][:size])
    except SingularError:
        if partly := {body: at for body, at in unknowns.bodies.items() if len(at) < len(INERTIAL)}:
            raise _incomplete(partly) from None
        raise


class _Unknowns:
    """Parameters as differences from the description in units of the mechanism, and their cones.

    Attributes
    ----------
    given : (K,) bool
        Parameters with a value in the description.
    start, scale : (K,)
        Values of the parameters are ``start + scale * z``.
    bodies : dict of str to dict of int to int
        Places of parameters by those among the ten numbers of a body.
    signed : int
        Number of parameters of joints, springs and motors that are not negative.
    A, h : (R, K), (R,)
        Cones of h − A z: signs, then the pseudo-inertias of the bodies.
    """

    def __init__(self, model: CompiledModel, base: BaseParameters, values: np.ndarray) -> None:
        tree, size = model.tree, len(base.parameters)
        known = dynamic_parameters(tree, base.parameters).values
        self.given, self.start, self.scale = np.isfinite(known), np.nan_to_num(known), np.ones(size)
        self.scale[base.columns] = np.where(values != 0, np.abs(values), 1.0)
        self.bodies: dict[str, dict[int, int]] = {}
        signed = []
        for k, (part, _, key) in enumerate(name.rpartition(".") for name in base.parameters):
            if part in tree.frame:
                self.bodies.setdefault(part, {})[INERTIAL.index(key)] = k
            elif key != "offset":
                signed.append(k)
        self.signed = len(signed)
        units = float(model.length) ** np.repeat([0.0, 1.0, 2.0], [1, 3, 6])
        masses = {
            body: max((self.scale[k] / units[i] for i, k in at.items() if k in base.columns), default=0.0)
            for body, at in self.bodies.items()
        }
        A, h = [-np.eye(size)[signed]], [self.start[signed] / self.scale[signed]]
        self._carried = {}
        for body, at in self.bodies.items():
            numbers, places = list(at), list(at.values())
            whole, heaviest = dynamic_parameters(tree, body), max(masses.values()) or 1.0
            carried = self._carried[body] = carried_numbers(model.description, body, whole.points[body])
            ten = whole.values - carried
            unit = units * max(SMALL_MASS_RTOL * heaviest, masses[body], np.nan_to_num(ten[0], nan=heaviest))
            triangle = _triangle(self._margin(ten / unit, whole=len(at) == len(INERTIAL)))
            ten[numbers] = np.nan_to_num(ten[numbers])
            self.start[places] = (carried + ten)[numbers]
            if np.isnan(ten).any():
                raise _incomplete({body: at})
            self.scale[places] = unit[numbers]
            block = np.zeros((len(triangle), size))
            block[:, places] = -triangle[:, numbers]
            A.append(block)
            h.append(triangle @ (ten / unit))
        self.A, self.h = np.concatenate(A), np.concatenate(h)

    def _margin(self, ten: np.ndarray, whole: bool) -> float:
        """Return the smallest eigenvalue of a pseudo-inertia of unit mass.

        Other numbers of a body may make it flat, up to their rounding.
        """
        margin = GYRATION_RTOL**2
        if whole or not np.isfinite(ten).all():
            return margin
        least = float(np.linalg.eigvalsh(pseudo_inertia(ten)).min())
        return min(margin, least) if least > -INERTIA_RTOL else margin

    def values(self, z: np.ndarray) -> np.ndarray:
        """Return the parameters; pseudo-inertias of whole bodies are definite without rounding."""
        x = self.start + self.scale * z
        for body, at in self.bodies.items():
            if len(at) == len(INERTIAL):
                places = [at[k] for k in range(len(INERTIAL))]
                carried, unit = self._carried[body], self.scale[places]
                x[places] = carried + unit * _definite((x[places] - carried) / unit)
        return x


def _definite(ten: np.ndarray) -> np.ndarray:
    """Return the nearest ten numbers (10,) with a definite pseudo-inertia."""
    values, axes = np.linalg.eigh(pseudo_inertia(ten))
    return ten_numbers(axes * np.maximum(values, GYRATION_RTOL**2 * max(ten[0], GYRATION_RTOL)) @ axes.T)


def _triangle(margin: float) -> np.ndarray:
    """Return the upper triangles (10, 10) of pseudo-inertias of unit numbers, as cone programs need them.

    They are less than the pseudo-inertia by a margin for unit mass.
    """
    J = pseudo_inertia(np.eye(10))
    J[0] -= margin * np.eye(4)
    rows, columns = np.array([(i, j) for j in range(4) for i in range(j + 1)]).T
    return (J[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))).T


def _incomplete(bodies: dict[str, Any]) -> InertiaError:
    """Return the error for bodies whose other numbers are unknown, or allow no consistent values."""
    names = ", ".join(bodies)
    return InertiaError(
        f"Consistent values of {names} must be possible with their other numbers in the description, but are "
        f"not. Identify the bodies as a whole: name {names} in `of`.",
        names=tuple(bodies),
    )
