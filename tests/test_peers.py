"""Comparison with Pinocchio, if it is installed (extra `bench`).

Open chains: I*, P*, efforts, their derivatives, G and H. Loops: accelerations of the constrained tree.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sampling import derivative, mismatch

import kic

pinocchio = pytest.importorskip("pinocchio", reason="pip install -e '.[bench]' to compare with Pinocchio")
sys.path.insert(0, str(Path(__file__).parent))
from benchmarks import closed_peers, loops, operational, peers  # noqa: E402
from benchmarks.ladder import ladder  # noqa: E402

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
        along = derivative(c, lambda x, qd=qd, qdd=qdd: x.dynamics().inverse_dynamics(qd, qdd))
        back = peer.back
        assert mismatch(along, data.dtau_dq[np.ix_(back, back)]) < 1e-11
        d = c.dynamics()
        by_rate = np.einsum("kab,b->ka", d.P + d.P.swapaxes(1, 2), qd)
        assert mismatch(by_rate, data.dtau_dv[np.ix_(back, back)]) < 1e-11


@pytest.mark.parametrize(("model", "task"), operational.CASES)
def test_operational_space_agrees(model: str, task: str) -> None:
    assert operational.Peer(operational.Task(model, task, 1)).differs() < 1e-11


def named_backwards(model: str) -> kic.Mechanism:
    """Return the mechanism with the bodies of every joint exchanged: all coordinates change their sign."""
    m = kic.load(model)
    return replace(m, joints=[replace(j, bodies=j.bodies[::-1]) for j in m.joints])


CLOSED = {
    **{case.model: (lambda model=case.model: kic.load(model), case.closures) for case in loops.CASES},
    "slider-crank": (lambda: kic.load("slider-crank"), (closed_peers.SIX_ROWS,)),
    "four-bar": (lambda: kic.load("four-bar"), (closed_peers.SIX_ROWS, closed_peers.THREE_ROWS)),
    **{
        f"{model} backwards": (lambda model=model: named_backwards(model), (closed_peers.SIX_ROWS,))
        for model in ("gough-stewart", "stewart-6r", "rssr")
    },
    "ladder": (lambda: ladder(7), (closed_peers.SIX_ROWS, closed_peers.THREE_ROWS)),
}


@pytest.mark.parametrize("name", CLOSED)
def test_pinocchio_agrees_on_loops(name: str) -> None:
    make, closures = CLOSED[name]
    m = closed_peers.with_masses(make())
    rng = np.random.default_rng(6)
    drawn = m.at()
    inputs = np.array([float(drawn.value(name)) for name in m.coordinate_names])
    for kind in closures:
        peer = closed_peers.ClosedPeer(m, kind)
        for _ in range(3):
            c = m.at(inputs + rng.uniform(-0.1, 0.1, len(inputs)), near=drawn)
            closed_peers.check_accelerations(m, peer, c)


@pytest.mark.parametrize("name", ["stewart-6r", "slider-crank"])
def test_comparison_detects_another_closure(name: str) -> None:
    """Coincident points constrain less than a hinge or slider, so that the comparison must fail."""
    m = kic.load(name)
    peer = closed_peers.ClosedPeer(m, closed_peers.THREE_ROWS)
    with pytest.raises(peers.DisagreementError):
        closed_peers.check_accelerations(m, peer, m.at())
