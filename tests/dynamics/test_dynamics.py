"""I*, P* and loads, and quantities derived from them, against identities and independent methods."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import needle, serial, shifted
from raising import raises
from sampling import derivative, mismatch, random_posture, random_tree

import kic
from kic.mechanism.configuration import displacement

TREES = [
    ("RPRRPR", False),
    ("RRRRRR", True),
    ("RPRPRRRP", True),
    ("R" * 12, True),
    ("R", False),
    ("P", False),
    (["R", "spherical", "R"], False),
    (["free", "R", "P"], True),
    (["P", "universal", "spherical", "R"], True),
    (["free", "spherical", "planar", "cylindrical", "fixed", "R"], True),
]


def cases():
    for seed, (kinds, branched) in enumerate(TREES):
        for k in range(1 if isinstance(kinds, str) else 3):
            yield pytest.param(kinds, branched, seed + 50 * k, id=f"{''.join(kinds)}-{k}")


@pytest.mark.parametrize(("kinds", "branched", "seed"), list(cases()))
def test_identities(kinds, branched: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = random_tree(rng, kinds, branched)
    c = random_posture(rng, m)
    d = c.dynamics()
    size = len(c.coordinates)
    qd, qdd = rng.normal(size=(2, size))
    assert d.holonomic == (not c._model.tree.balls)
    assert mismatch(d.I, d.I.swapaxes(0, 1)) < 1e-14
    assert np.linalg.eigvalsh(d.I).min() > 0
    # ∂I*_lm/∂q_n against the complex step, in quasi-velocities too
    gradient = derivative(c, lambda x: x.dynamics().I)
    scale = max(np.abs(d.P).max(), np.abs(d.I).max())  # P* may vanish
    assert np.abs(d.inertia_gradient() - gradient).max() < 1e-12 * scale
    # Ṁ - 2C is skew
    skew = np.einsum("lmn,n->lm", gradient, qd) - 2 * d.coriolis(qd)
    assert np.abs(skew + skew.T).max() < 1e-12 * scale * np.abs(qd).max()
    # symmetric exactly where the coordinates are holonomic
    if d.holonomic:
        assert np.array_equal(d.P.swapaxes(1, 2), d.P)
        christoffel = (gradient + np.einsum("knm->kmn", gradient) - np.einsum("mnk->kmn", gradient)) / 2
        assert np.abs(d.P - christoffel).max() < 1e-12 * scale
    # effort and acceleration are inverse to each other
    effort = d.inverse_dynamics(qd, qdd)
    assert mismatch(d.forward_dynamics(qd, effort), qdd) < 1e-9
    # Freeman's sums give the same inertia and, as a quadratic form, the same inertia power
    parts = c.body_contributions()
    assert mismatch((parts.I_linear + parts.I_angular).sum(axis=0), d.I) < 1e-12
    summed = (parts.P_linear + parts.P_angular).sum(axis=0)
    assert np.abs(summed @ qd @ qd - d.P @ qd @ qd).max() < 1e-12 * scale * (qd @ qd)
    if d.holonomic:
        assert np.abs((summed + summed.swapaxes(1, 2)) / 2 - d.P).max() < 1e-12 * scale


def test_free_bodies_satisfy_euler_equations() -> None:
    """In (v, ω) of a free body the model is Newton's and Euler's, at any orientation."""
    inertia = np.diag([1.0, 2.0, 2.5])
    m = kic.Mechanism(
        "top",
        [kic.Body("top", mass=3.0, com=(0, 0, 0), inertia=inertia)],
        [kic.Joint("J", "free", ("ground", "top"), at=(0, 0, 0))],
        gravity=(0, 0, 0),
    )
    rng = np.random.default_rng(3)
    for _ in range(5):
        c = m.at(rng.normal(size=6) * 2)
        R = c.pose("top").rotation.as_matrix()
        world = R @ inertia @ R.T
        v, w, a, alpha = rng.normal(size=(4, 3))
        effort = c.dynamics().inverse_dynamics([*v, *w], [*a, *alpha])
        assert mismatch(effort[:3], 3 * a) < 1e-13
        assert mismatch(effort[3:], world @ alpha + np.cross(w, world @ w)) < 1e-12
        assert not c.dynamics().holonomic
        # written the other way round, the rates are those of ground seen from the body, and give the same
        b = m.replace(joints=[kic.Joint("J", "free", ("top", "ground"), at=(0, 0, 0))])
        d = b.at(rng.normal(size=6) * 2)
        body = d.coefficients("top")
        turn = d.pose("top").rotation.as_matrix()
        qd, qdd = rng.normal(size=(2, 6))
        u, a = body.velocity(qd), body.acceleration(qd, qdd)
        world = turn @ inertia @ turn.T
        wrench = np.concatenate([3 * a[:3], world @ a[3:] + np.cross(u[3:], world @ u[3:])])
        assert mismatch(d.dynamics().inverse_dynamics(qd, qdd), body.G.T @ wrench) < 1e-12


@pytest.mark.parametrize("kinds", ["RPRR", ["R", "spherical", "P"], ["free", "R"]], ids="-".join)
def test_loads_are_virtual_work(kinds) -> None:
    rng = np.random.default_rng(4)
    m = random_tree(rng, kinds, branched=True, loads=True)
    c = random_posture(rng, m)
    d = c.dynamics()
    parts = m._parts

    def jacobian(name: str) -> np.ndarray:
        return c.coefficients(name, order=1).G

    want = np.zeros(len(c.coordinates))
    for body in m.bodies:
        want += body.mass * jacobian(body.name)[:3].T @ m.gravity
    want += parts["lump"].mass * jacobian("lump").T @ m.gravity
    for force in m.forces:
        turn = np.eye(3) if force.axes == "world" else c.pose(parts[force.point].body).rotation.as_matrix()
        want += jacobian(force.point).T @ turn @ force.force
    for moment in m.moments:
        turn = np.eye(3) if moment.axes == "world" else c.pose(moment.body).rotation.as_matrix()
        want += jacobian(moment.body)[3:].T @ turn @ moment.moment
    damping = np.zeros((len(want),) * 2)
    for spring in m.springs:
        a, b = spring.points
        gap = c.value(b) - c.value(a) if b != "post" else np.array(parts["post"].at) - c.value(a)
        length = np.linalg.norm(gap)
        rate = (jacobian(b) - jacobian(a) if b != "post" else -jacobian(a)).T @ gap / length
        want -= spring.stiffness * (length - spring.rest) * rate
        damping += spring.damping * np.outer(rate, rate)
    assert mismatch(d.load, want) < 1e-12
    assert mismatch(d.damping, damping) < 1e-12
    qd = rng.normal(size=len(want))
    assert mismatch(d.inverse_dynamics(qd, 0 * qd), d.P @ qd @ qd + damping @ qd - want) < 1e-12


def test_given_loads_replace_those_of_the_model() -> None:
    rng = np.random.default_rng(6)
    m = random_tree(rng, "RRP", loads=True)
    c = random_posture(rng, m, (4,))
    push = rng.normal(size=(4, 3))
    thrust = rng.normal(size=3)
    moment = rng.normal(size=(4, 3))
    d = c.dynamics(applied={"push": push, "thrust": thrust, "wrench": moment})
    bare = c.dynamics(applied={name: np.zeros(3) for name in ("push", "thrust", "wrench")})
    turn = c.pose("b0").rotation.as_matrix()
    G = c.coefficients(["p2", "p0"], order=1).G
    G_turn = c.coefficients(["b0.wx", "b0.wy", "b0.wz"], order=1).G
    gain = np.einsum("bpn,bp->bn", G_turn, moment)
    gain = gain + np.einsum("bpn,bp->bn", G[:, :3], push) + np.einsum("bpn,bpk,k->bn", G[:, 3:], turn, thrust)
    assert mismatch(d.load - bare.load, gain) < 1e-12
    same = c.dynamics(applied={"push": m["push"].force, "thrust": m["thrust"].force})
    assert mismatch(same.load, c.dynamics().load) < 1e-14
    # a configuration with a batch of forces is a batch
    many = m.at(c._phi[0]).dynamics(applied={"push": push})
    assert many.load.shape == (4, 3)
    assert many.I.shape == (4, 3, 3)


def test_joint_springs_and_dampers() -> None:
    m = kic.Mechanism(
        "sprung",
        [
            kic.Body("a", mass=1, com=(1, 0, 0), inertia=(0, 0, 0)),
            kic.Body("b", mass=1, com=(1, 0, 0), inertia=(1, 1, 1)),
        ],
        [
            kic.Joint(
                "P", "prismatic", ("ground", "a"), axis=(1, 0, 0),
                value=0.5, stiffness=3, rest=0.2, damping=0.7,
            ),
            kic.Joint("S", "spherical", ("a", "b"), at=(0, 0, 0), damping=(0.1, 0.2, 0.3)),
        ],
        gravity=(0, 0, 0),
    )  # fmt: skip
    d = m.at().dynamics()
    assert d.load == pytest.approx([-3 * (0.5 - 0.2), 0, 0, 0])
    assert np.diag(d.damping) == pytest.approx([0.7, 0.1, 0.2, 0.3])


def test_power_balance() -> None:
    """Effort times rate is the rate of kinetic energy less the power of the loads."""
    rng = np.random.default_rng(9)
    for kinds in ("RRPR", ["free", "R"], ["spherical", "P"]):
        m = random_tree(rng, kinds, branched=True, loads=True)
        c = random_posture(rng, m)
        d = c.dynamics()
        qd, qdd = rng.normal(size=(2, len(c.coordinates)))
        gradient = derivative(c, lambda x, qd=qd: x.dynamics().kinetic_energy(qd))
        power = gradient @ qd + qd @ d.I @ qdd
        assert d.inverse_dynamics(qd, qdd) @ qd == pytest.approx(
            power + qd @ d.damping @ qd - d.load @ qd, rel=1e-12
        )


def test_jerk_along_a_motion() -> None:
    """Velocity, acceleration and jerk against derivatives in time of the position."""
    rng = np.random.default_rng(10)
    m = random_tree(rng, "RPRRPR")
    q, v, a, j = rng.normal(size=(4, 6))
    c = m.at(q)
    tip = c.coefficients(["p5", "b5.wx", "b5.wy", "b5.wz"], order=3)
    step = 1e-40

    def at(t: complex):
        return m.at(q + v * t + a * t**2 / 2 + j * t**3 / 6).coefficients(list(tip.rows))

    moved = at(1j * step)
    assert mismatch(moved.values[:3].imag / step, tip.velocity(v)[:3]) < 1e-12
    rate = np.imag(moved.velocity(v + a * 1j * step)) / step
    assert mismatch(rate, tip.acceleration(v, a)) < 1e-12
    rate = np.imag(moved.acceleration(v + a * 1j * step, a + j * 1j * step)) / step
    assert mismatch(rate, tip.jerk(v, a, j)) < 1e-12


@pytest.mark.parametrize("question", ["forward_dynamics", "prepare", "dynamics"])
def test_singular_mass_matrices_are_found_in_batches(question: str) -> None:
    """A massless arm with a point mass at its tip: I* is singular where the arm is stretched."""
    a = kic.Body("a", mass=0, com=(0.5, 0, 0), inertia=(0, 0, 0))
    m = serial([(0, 0, 0), (1, 0, 0)], [a, kic.Body("b", mass=1, com=(2, 0, 0), inertia=(0, 0, 0))])
    B = np.array([[0.5, 0.0, 0.7], [0.0, 1.0, -0.4]])
    state = m.at(np.stack([0.3 * np.ones_like(B), B], axis=-1)).state

    def asked(at: np.ndarray) -> np.ndarray:
        if question == "prepare":
            return m.prepare.forward_dynamics()(at)
        if question == "dynamics":
            return m.at(at).dynamics().forward_dynamics([0, 0], [0, 0])
        return m.at(at).forward_dynamics()

    for at, failed in ((state, [(0, 1), (1, 0)]), (state[0], [(1,)]), (state[0, 1], [()])):
        with raises(kic.SingularError, failed=failed):
            asked(at)
    assert np.isfinite(asked(state[0, ::2])).all()


def test_acceleration_rejects_motions_without_mass() -> None:
    m = needle()
    d = m.at().dynamics()
    assert d.inverse_dynamics([0, 0], [1, 1]) == pytest.approx([2, 0])
    with raises(kic.SingularError, coordinates=("B",)) as caught:
        d.forward_dynamics([0, 0], [1, 0])
    assert caught.value.coordinates == ("B",)


def test_shipped_models_against_pinocchio_s_numbers() -> None:
    """Reference numbers of another library for the published arms (see the data's own note)."""
    import json
    from pathlib import Path

    data = json.loads(
        (Path(__file__).parents[1] / "data" / "arms_by_pinocchio.json").read_text(encoding="utf-8")
    )
    for name, case in data["models"].items():
        m = kic.load(name)
        for posture in case["postures"]:
            q, qd, qdd = (np.array(posture[k]) for k in ("q", "qd", "qdd"))
            d = m.at(q).dynamics()
            assert mismatch(d.I, np.array(posture["mass_matrix"])) < 1e-12
            still = np.zeros_like(q)
            assert mismatch(d.inverse_dynamics(still, still), np.array(posture["static_effort"])) < 1e-11
            assert mismatch(d.inverse_dynamics(qd, qdd), np.array(posture["effort"])) < 1e-11


@pytest.mark.parametrize("kinds", ["RPRR", ["free", "R", "P"], ["R", "spherical", "R"]], ids=str)
def test_far_from_the_origin(kinds) -> None:
    """Nothing depends on where the world's origin lies: not one digit in a million lengths."""
    rng = np.random.default_rng(12)
    m = random_tree(rng, kinds, branched=True)
    far = np.array([1e6, -2e6, 3e6])
    away = shifted(m, far)
    phi = rng.normal(size=len(m.coordinates))
    a, b = m.at(phi), away.at(phi)
    assert mismatch(b.dynamics().I, a.dynamics().I) < 1e-8  # the drawing itself is rounded to 1e-10
    assert mismatch(b.dynamics().P, a.dynamics().P) < 1e-8
    turned = displacement(b, m.bodies[-1].name)[:3, :3]
    assert np.abs(turned @ turned.T - np.eye(3)).max() < 1e-13
    # a mechanism near the origin that travels far: its inertia is a sum over bodies, whatever the route
    if kinds == ["free", "R", "P"]:
        gone = phi.copy()
        gone[:3] = far
        c = m.at(gone)
        parts = c.body_contributions()
        assert mismatch(c.dynamics().I, (parts.I_linear + parts.I_angular).sum(axis=0)) < 1e-12
