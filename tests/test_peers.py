"""Against Pinocchio, where it is installed (extra `bench`): I*, P*, efforts, their derivatives, G and H."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sampling import derivative, mismatch

import kic

pinocchio = pytest.importorskip("pinocchio", reason="pip install 'kic[bench]' to compare with Pinocchio")
sys.path.insert(0, str(Path(__file__).parent))
from benchmarks import peers  # noqa: E402

MODELS = {
    "serial": lambda: peers.serial_arm(7, seed=3),
    "tree": lambda: peers.binary_tree(11, seed=4),
    "puma560": lambda: kic.load("puma560"),
    "panda": lambda: kic.load("panda"),
    "rrprrr": lambda: kic.load("rrprrr"),
}


@pytest.mark.parametrize("name", MODELS)
def test_pinocchio_agrees(name: str) -> None:
    m = MODELS[name]()
    peer = peers.PinocchioPeer(m)
    rng = np.random.default_rng(5)
    for _ in range(3):
        phi, qd, qdd = rng.normal(size=(3, len(m.coordinate_names)))
        peers.check_rates(m, peer, m.points[-1].name, phi)
        peers.check_rates(m, peer, m.bodies[-1].name, phi)  # rows of angular velocity too
        peers.check_dynamics(m, peer, phi)
        # derivatives of the effort with respect to the coordinates and their rates
        c = m.at(phi)
        data = peer.model.createData()
        pinocchio.computeRNEADerivatives(peer.model, data, peer.q(phi), peer.v(qd), peer.v(qdd))
        along = derivative(c, lambda x, qd=qd, qdd=qdd: x.dynamics().effort(qd, qdd))
        back = peer.back
        assert mismatch(along, data.dtau_dq[np.ix_(back, back)]) < 1e-11
        d = c.dynamics()
        by_rate = np.einsum("kab,b->ka", d.P + d.P.swapaxes(1, 2), qd)
        assert mismatch(by_rate, data.dtau_dv[np.ix_(back, back)]) < 1e-11
