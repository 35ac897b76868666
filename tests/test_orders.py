"""Every order of every shipped loop against the complex step of the order below.

A closed configuration steps along its own first order, which is tangent to the closure; the residual of the
closure is checked too. There are no differences, and the tolerance is max(1e-12, 100·eps·condition).
"""

from __future__ import annotations

import numpy as np
import pytest
from closed_models import EVERY, configuration, every_configuration
from sampling import STEP, mismatch, moved

from kic.configuration import Configuration
from kic.transfer.coordinate_transfer import CoordinateTransfer

EPS = np.finfo(float).eps


def first_order(transfer: CoordinateTransfer, c: Configuration) -> np.ndarray:
    """Return A (M, m) of the tree's coordinates at one configuration."""
    mobile = transfer.tree.size
    X = transfer.solve(c._states, 1).X[0]
    return X[mobile : mobile * (1 + transfer.size)].reshape(mobile, transfer.size)


@every_configuration
def test_each_order_is_the_slope_of_the_one_below(name: str, place: int) -> None:
    (m, c), case = configuration(name, place), EVERY[name]
    of = case.of.split()
    for names in (" ".join(m.coordinates), *case.wrt, case.quasi):
        if not names:
            continue
        wrt = names.split()
        transfer = c._model.transfer(tuple(wrt))
        limit = max(1e-12, 1000 * EPS * float(c._model.closure(tuple(wrt)).condition(c._states)[0]))
        A = first_order(transfer, c)
        u, d = c.coefficients(of, order=3, wrt=wrt), c.dynamics(wrt=wrt)
        valued, largest = np.isfinite(u.values), max(np.abs(d.I).max(), np.abs(d.P).max())
        for k in range(A.shape[1]):
            near = moved(c, A[None, :, k])
            # the coordinate goes one ahead, the others rest, and the loops stay closed
            rows = transfer.values_and_rates(near._states)[0][0].imag / STEP
            want = np.zeros(len(rows))
            want[k] = 1
            known = np.concatenate([transfer.chosen.valued, np.ones(len(transfer.owners), bool)])
            off = ((rows - want) / transfer.scale)[known]
            assert np.abs(off).max(initial=0) < limit * max(1, np.abs(A).max() / transfer.length)
            v = near.coefficients(of, order=3, wrt=wrt)
            assert mismatch((v.values.imag / STEP)[valued], u.G[valued, k]) < limit
            # the differentiating index comes first
            assert np.abs(v.G.imag / STEP - u.H[:, k]).max() <= limit * np.abs(u.H).max()
            assert np.abs(v.H.imag / STEP - u.D[:, k]).max() <= limit * np.abs(u.D).max()
            if d.holonomic:
                slope = near.dynamics(wrt=wrt).I.imag / STEP
                assert np.abs(slope - d.inertia_gradient()[..., k]).max() <= limit * largest


@pytest.mark.parametrize("name", [name for name in EVERY if EVERY[name].quasi])
def test_inertia_in_rotations_varies_along_the_rotation(name: str) -> None:
    """İ* along each direction is the Coriolis matrix plus its transpose, also for quasi-velocities."""
    (_, c), wrt = configuration(name, 0), EVERY[name].quasi.split()
    transfer, d = c._model.transfer(tuple(wrt)), c.dynamics(wrt=wrt)
    A = first_order(transfer, c)
    assert not d.holonomic
    for k in range(A.shape[1]):
        slope = moved(c, A[None, :, k]).dynamics(wrt=wrt).I.imag / STEP
        C = d.coriolis(np.eye(A.shape[1])[k])
        limit = 1e-11 * max(np.abs(d.I).max(), np.abs(d.P).max())
        assert np.abs(slope - C - C.T).max() < limit
