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
        phi, qd, qdd = rng.normal(size=(3, len(m.coordinates)))
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


@pytest.mark.parametrize("task", ["link7", "flange"])
def test_operational_space_control_agrees(task: str) -> None:
    """T = Gᵀ(Λ a + q̇ᵀ μ q̇ + p) + Nᵀ T₀ from Pinocchio's terms, with the inverse dynamics of −d q̇ as T₀."""
    case = operational.Task("panda", task, 1)
    peer, m = operational.Peer(case), case.mechanism
    c, rng = m.at(case.phi), np.random.default_rng(6)
    G = c.coefficients(task, order=1).G
    a = rng.normal(size=len(G))
    if task == "link7":
        pose = np.array([c.value(f"link7.{x}") for x in "xyz"]), c.pose("link7").rotation.as_matrix()
    else:
        pose = c.value("flange")
    # at the reference, with its rates: only the acceleration counts
    reference = {task: lambda t: (pose, G @ case.qd, a)}
    control = kic.controllers.OperationalSpaceControl(m, reference, 100.0, 20.0, null_damping=3.0)
    Lambda, power, p, inverse = peer.raw(peer.q, peer.v)
    rest = pinocchio.rnea(peer.arm.model, peer.arm.data, peer.q, peer.v, -3.0 * peer.v)[peer.arm.back]
    N = np.eye(7) - inverse[peer.arm.back] @ G
    expected = G.T @ (Lambda @ a + power + p) + N.T @ rest
    assert mismatch(control(0.0, (case.phi, case.qd)), expected) < 1e-10


def platform_terms(peer: closed_peers.ClosedPeer, body: kic.Body, q: np.ndarray, ld: np.ndarray):
    """Λ, q̇ᵀ μ q̇, p and G at the pose of a platform from Pinocchio's accelerations of the constrained tree.

    The acceleration of the pose is ü = Λ⁻¹ (G⁻ᵀ T − q̇ᵀ μ q̇ − p) for leg forces T.
    """
    pin, axes = pinocchio, pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
    joint, placement = peer.carrier[body.name]
    place = placement.actInv(pin.SE3(np.eye(3), np.array(body.reference)))
    frame = peer.model.addFrame(pin.Frame("platform", joint, place, pin.FrameType.OP_FRAME))
    data, nothing = peer.model.createData(), np.zeros(peer.model.nv)
    peer.data = peer.model.createData()
    pin.initConstraintDynamics(peer.model, peer.data, peer.constraints, peer.constraint_data)

    def acceleration(effort: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = np.array(peer.raw(q, v, peer.tau(effort)))
        pin.forwardKinematics(peer.model, data, q, v, a)
        pin.updateFramePlacements(peer.model, data)
        return pin.getFrameClassicalAcceleration(peer.model, data, frame, axes).vector.copy()

    rest, unit = np.zeros(6), np.eye(6)
    at_rest = acceleration(rest, nothing)
    response = np.stack([acceleration(e, nothing) - at_rest for e in unit], axis=1)
    # rates of the tree for rates of the legs, from the Jacobian of the constraints
    legs = np.array([peer.tau(e) for e in unit])
    Jc = pin.getConstraintsJacobian(peer.model, peer.data, peer.constraints, peer.constraint_data)
    Z = np.linalg.lstsq(np.concatenate([legs, Jc]), np.eye(6 + len(Jc))[:, :6], rcond=None)[0]
    pin.computeJointJacobians(peer.model, data, q)
    pin.updateFramePlacements(peer.model, data)
    G = pin.getFrameJacobian(peer.model, data, frame, axes) @ Z
    Lambda = np.linalg.inv(response @ G.T)
    moving = acceleration(rest, Z @ ld) - at_rest
    return Lambda, -Lambda @ moving, -Lambda @ at_rest, G


def test_operational_space_of_a_platform_agrees() -> None:
    """Λ, μ and p of notebook 13, and the leg forces of the controller, in the pose of the platform."""
    m = closed_peers.with_masses(kic.load("gough-stewart"))
    rng = np.random.default_rng(7)
    c = m.at(np.array([1.05, 1.0, 1.02, 0.98, 1.03, 1.01]))
    ld, a = rng.normal(size=(2, 6))
    peer = closed_peers.ClosedPeer(m, closed_peers.SIX_ROWS)
    Lambda, power, p, G = platform_terms(peer, m["platform"], peer.q(c), ld)
    s = c.operational_space("platform")
    for got, expected in (
        (c.coefficients("platform", order=1).G, G),
        (s.Lambda, Lambda),
        (np.einsum("pab,a,b->p", s.mu, ld, ld), power),
        (s.p, p),
    ):
        assert mismatch(got, expected) < 1e-9
    pose = np.array([c.value(f"platform.{x}") for x in "xyz"]), c.pose("platform").rotation.as_matrix()
    control = kic.controllers.OperationalSpaceControl(
        m, {"platform": lambda t: (pose, G @ ld, a)}, 100.0, 20.0
    )
    legs = np.array([c.value(name) for name in m.coordinates])
    assert mismatch(control(0.0, (legs, ld)), G.T @ (Lambda @ a + power + p)) < 1e-9


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
    inputs = np.array([float(drawn.value(name)) for name in m.coordinates])
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
