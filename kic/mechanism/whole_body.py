"""Centre of mass with its derivatives, and centroidal momentum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from kic.dynamics.contributions import Contributions, add_rotors
from kic.kernels import layout as lay
from kic.kinematics.items import Item, axes_of
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.mechanism.configuration import Configuration, flat_states, model_of, run_program
from kic.numerics.arrays import as_array, check_finite, map_valid_members, scatter
from kic.numerics.display import OneLine
from kic.transfer.program import Program


@dataclass(frozen=True, repr=False)
class CentroidalMomentum(OneLine):
    """Linear momentum, and angular momentum about the centre of mass, of all moving bodies: h = A q̇.

    Rotors (armature of joints) are not included.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    matrix : (..., 6, M)
        A: linear momentum, then angular momentum about the centre of mass, in world axes.
    derivative : (..., 6, M, M)
        ∂A/∂q with the index of differentiation before the column index, as in H.
    """

    _one_line = ("coordinates", "matrix")

    coordinates: tuple[str, ...]
    matrix: np.ndarray
    derivative: np.ndarray

    def momentum(self, qd: Any) -> np.ndarray:
        """Return h (..., 6) for rates (..., M)."""
        return np.einsum("...pn,...n->...p", self.matrix, as_array("qd", qd, len(self.coordinates)))

    def matrix_rate(self, qd: Any) -> np.ndarray:
        """Return Ȧ (..., 6, M) for rates (..., M)."""
        return np.einsum("...pmn,...m->...pn", self.derivative, as_array("qd", qd, len(self.coordinates)))

    def rate(self, qd: Any, qdd: Any) -> np.ndarray:
        """Return ḣ = A q̈ + Ȧ q̇ (..., 6): the resultant force, and the moment about the centre of mass."""
        a = as_array("qdd", qdd, len(self.coordinates))
        bias = np.einsum("...pn,...n->...p", self.matrix_rate(qd), as_array("qd", qd, len(self.coordinates)))
        return np.einsum("...pn,...n->...p", self.matrix, a) + bias


def centroidal_momentum(
    configuration: Configuration,
    *,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> CentroidalMomentum:
    """Compute the matrix of linear momentum, and of angular momentum about the centre of mass.

    Parameters
    ----------
    wrt : str or list of str, optional
        Coordinates, as in `coefficients`; by default the mechanism's own.
    failures : {"raise", "mask"}
        As in `coefficients`.

    Returns
    -------
    CentroidalMomentum
        The matrix A of h = A q̇ and its derivatives.

    Examples
    --------
    >>> kic.load("horn-two-link").at([0.0, 0.0]).centroidal_momentum().momentum([1.0, 0.0])[1].round(6)
    np.float64(2.0)
    """
    model = model_of(configuration)
    tree, masses = model.tree, model.masses
    transfer = model.transfer_for(wrt)
    n = len(masses.names)
    frames = masses.frames.tolist()
    items = [*map(Item.point, frames, masses.numbers[:, lay.CENTRE : lay.MOMENTS])]
    items += map(Item.angular_velocity, frames)
    program = Program(transfer, plain_rows(tree, items), 2)
    axes = output_query(tree, plain_rows(tree, axes_of(frames)), 1)
    batch = configuration.batch
    values, *tensors = run_program(configuration, program, failures).arrays
    G, H = (
        a.reshape(*batch, 2 * n, 3, *a.shape[len(batch) + 1 :])
        for a in transfer.in_coordinates(tensors, (1, 2))
    )
    R = np.swapaxes(axes.arrays(flat_states(configuration))[0].reshape(*batch, n, 3, 3), -1, -2)
    own = masses.numbers[:, 4:][:, [[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
    J = R @ own @ np.swapaxes(R, -1, -2)
    m = masses.numbers[:, lay.MASS]
    share = m / m.sum()
    p = values[..., : 3 * n].reshape(*batch, n, 3)
    # relative to the centre of mass
    v, w = np.moveaxis(G[..., :n, :, :], -1, -3), np.moveaxis(G[..., n:, :, :], -1, -3)  # (..., M, n, 3)
    dv, dw = (np.moveaxis(a, (-2, -1), (-4, -3)) for a in (H[..., :n, :, :, :], H[..., n:, :, :, :]))
    r = (p - np.einsum("i,...ic->...c", share, p)[..., None, :])[..., None, :, :]
    u = v - np.einsum("i,...ic->...c", share, v)[..., None, :]
    du = dv - np.einsum("i,...ic->...c", share, dv)[..., None, :]
    Jw = np.einsum("...ipq,...miq->...mip", J, w)
    linear = np.einsum("i,...mic->...cm", m, v)
    angular = np.einsum("i,...mic->...cm", m, np.cross(r, u)) + Jw.sum(axis=-2).swapaxes(-1, -2)
    d_linear = np.einsum("i,...klic->...ckl", m, dv)
    # ∂(J w_l)/∂q_k = w_k × J w_l + J (∂w_l/∂q_k − w_k × w_l)
    wk, wl, Jwl = w[..., :, None, :, :], w[..., None, :, :, :], Jw[..., None, :, :, :]
    turned = np.cross(wk, Jwl) + np.einsum("...ipq,...kliq->...klip", J, dw - np.cross(wk, wl))
    moved = np.cross(u[..., :, None, :, :], u[..., None, :, :, :]) + np.cross(r[..., None, :, :], du)
    d_angular = np.einsum("i,...klic->...ckl", m, moved) + np.moveaxis(turned.sum(axis=-2), -1, -3)
    return CentroidalMomentum(
        transfer.labels,
        np.concatenate([linear, angular], axis=-2),
        np.concatenate([d_linear, d_angular], axis=-3),
    )


def body_contributions(
    configuration: Configuration,
    *,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> Contributions:
    """Compute the contribution of each body to I* and P*, by linear and angular momentum, and its weight.

    Parameters
    ----------
    wrt, failures
        As in `coefficients`.

    Returns
    -------
    Contributions
        Arrays (..., N, M, M), (..., N, M, M, M) and (..., N, M) for N bodies (eqs 2-147 and 2-152 to
        2-194). Its `inverse_dynamics` returns the effort that each body requires.

    Raises
    ------
    InertiaError
        If a moving body has no mass or inertia.
    SingularError
        If the coordinates cannot drive the mechanism here.

    Examples
    --------
    >>> c = kic.load("horn-two-link").at([0.0, 0.0]).body_contributions()
    >>> c.I_linear.sum(axis=0)[0, 0] + c.I_angular.sum(axis=0)[0, 0]
    np.float64(2.6666666666666665)
    >>> c.inverse_dynamics([1.0, 2.0], [0.0, 0.0]).round(3).tolist()  # of each stick, at both joints
    [[4.905, 0.0], [14.715, 4.905]]
    """
    model, states = model_of(configuration), flat_states(configuration)
    transfer = model.transfer_for(wrt)
    good, T = map_valid_members(
        configuration.ok, failures, lambda members: model.contributions(transfer, states[members])
    )
    check_finite("Contributions", configuration.name, T)
    T, layout = scatter(T, good), model.contributions_query(transfer).layout
    shape = *configuration.batch, len(model.masses.names)
    rows = T.reshape(prod(shape), layout.width)
    *parts, momentum = transfer.in_coordinates(list(layout.split(rows, shape)), (2, 2, 3, 3, 1))
    parts.append(np.einsum("x,...nxm->...nm", np.array(model.description.gravity), momentum))
    rotors = tuple(joint.name for joint in model.description.joints if any(joint.armature))  # type: ignore[arg-type]
    if rotors:
        parts = add_rotors(
            configuration.coefficients(rotors, wrt=wrt, failures=failures), parts, model.description, rotors
        )
    return Contributions((*model.masses.names, *rotors), transfer.labels, *parts)
