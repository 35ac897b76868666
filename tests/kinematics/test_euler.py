"""Euler angles of frames, bodies and ball joints: SciPy's values, and derivatives by the complex step."""

from __future__ import annotations

from dataclasses import replace

import gimbal_lock
import numpy as np
import pytest
from sampling import check_orders
from scipy.spatial.transform import Rotation

import kic

EPS = np.finfo(float).eps
Q = np.array([0.1, 0.5, -2.2, 0.7, 0.8, -0.4])
SEQUENCES = gimbal_lock.SEQUENCES
ALL = [s for sequence in SEQUENCES for s in (sequence, sequence.upper())]


def with_frame(m: kic.Mechanism, body: str) -> kic.Mechanism:
    turn = Rotation.from_euler("xyz", [0.3, -0.4, 0.5])
    return replace(m, frames=[kic.Frame("grip", body, origin=(0.7, 0.1, 0.3), axes=turn)])


ARM = with_frame(kic.load("puma560"), "link6")


@pytest.mark.parametrize("sequence", ALL)
def test_values_are_those_of_scipy(sequence):
    c = ARM.at(Q + np.random.default_rng(3).normal(size=(4, 5, 6)))
    expected = c.pose("grip").rotation.as_euler(sequence)
    found = c.value(f"grip.euler_{sequence}")
    away = np.minimum(np.abs(np.cos(expected[..., 1])), 1)
    if sequence[0] == sequence[2]:
        away = np.abs(np.sin(expected[..., 1]))
    assert np.abs((found - expected + np.pi) % (2 * np.pi) - np.pi).max() < 1e3 * EPS / away.min()


@pytest.mark.parametrize("sequence", ALL)
def test_each_order_is_the_complex_step_of_the_one_below(sequence):
    check_orders(ARM.at(Q), f"grip.euler_{sequence}")


def test_velocities_agree_with_the_angular_velocity():
    c, qd = ARM.at(Q), np.array([0.3, -0.2, 0.5, 0.1, 0.7, -0.9])
    a = c.value("grip.euler_xyz")
    rate = c.coefficients("grip.euler_xyz").velocity(qd)
    # fixed axes: ω = Σ (earlier rotations, applied later) of each axis
    z, y = Rotation.from_euler("z", a[2]), Rotation.from_euler("y", a[1])
    omega = rate[2] * np.eye(3)[2] + z.apply(rate[1] * np.eye(3)[1] + y.apply(rate[0] * np.eye(3)[0]))
    assert np.abs(omega - c.coefficients("grip").velocity(qd)[3:]).max() < 100 * EPS


@pytest.mark.parametrize("sequence", ["xyz", "ZYZ"])
def test_they_are_coordinates(sequence):
    """Composition with coefficients in the joints gives the identity, and the joints' own coefficients."""
    names = ["grip.x", "grip.y", "grip.z", f"grip.euler_{sequence}"]
    c = ARM.at(Q)
    there = c.coefficients(names, order=3)
    joints = list(ARM.coordinates)
    back = c.coefficients(joints, order=3, wrt=names)
    for got, expected in zip(there.compose(back).tensors, (np.eye(6), 0, 0), strict=True):
        assert np.abs(got - expected).max() < 1e-9
    d, own = c.dynamics(wrt=names), c.dynamics()
    qdd, qd = np.arange(6.0), np.linspace(-1, 1, 6)
    T = d.inverse_dynamics(qd, qdd)
    joint_qd, joint_qdd = back.velocity(qd), back.acceleration(qd, qdd)
    expected = back.G.T @ own.inverse_dynamics(joint_qd, joint_qdd)
    assert np.abs(T - expected).max() < 1e-10 * np.abs(expected).max()


def test_they_are_coordinates_of_a_closed_mechanism():
    m = with_frame(kic.load("gough-stewart"), "platform")
    c = m.at({"grip.x": 0.72, "grip.y": 0.12, "grip.z": 0.35, "grip.euler_xyz": [0.35, -0.38, 0.52]})
    assert np.abs(c.value("grip.euler_xyz") - [0.35, -0.38, 0.52]).max() < 1e-11
    names = ["grip.x", "grip.y", "grip.z", "grip.euler_xyz"]
    legs = [f"L{k + 1}" for k in range(6)]
    product = c.coefficients(names, order=3, wrt=legs).compose(c.coefficients(legs, order=3, wrt=names))
    for got, expected in zip(product.tensors, (np.eye(6), 0, 0), strict=True):
        assert np.abs(got - expected).max() < 1e-8


def test_of_a_ball_joint_and_a_body():
    ball = kic.Mechanism(
        "ball",
        [kic.Body("arm"), kic.Body("hand")],
        [
            kic.Joint("A", "revolute", ("ground", "arm"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("S", "spherical", ("arm", "hand"), at=(1, 0, 0)),
        ],
    )
    turn = Rotation.from_euler("ZYX", [0.2, 0.5, -0.7])
    c = ball.at({"A": 0.9, "S": turn})
    assert np.abs(c.value("S.euler_ZYX") - [0.2, 0.5, -0.7]).max() < 50 * EPS
    whole = (Rotation.from_euler("z", 0.9) * turn).as_euler("ZYX")
    assert np.abs(c.value("hand.euler_ZYX") - whole).max() < 50 * EPS
    rows = c.coefficients("S.euler_ZYX", order=3)
    assert np.abs(rows.G[:, 0]).max() < 50 * EPS
    # in these coordinates the rotation about the ball joint is holonomic
    d = c.coefficients(["S.1", "S.2", "S.3"], wrt=["A", "S.euler_ZYX"])
    assert d.columns == ("A", "S.euler_ZYX.1", "S.euler_ZYX.2", "S.euler_ZYX.3")
    assert np.abs(rows.G[:, 1:] @ d.G[:, 1:] - np.eye(3)).max() < 100 * EPS


def test_gimbal_lock_raises():
    m = kic.Mechanism(
        "pointer", [kic.Body("hand")], [kic.Joint("S", "spherical", ("ground", "hand"), at=(0, 0, 0))]
    )
    c = m.at({"S": Rotation.from_euler("ZYX", [[0.1, np.pi / 2, 0.0], [0.1, 0.2, 0.3]])})
    for ask in (lambda: c.value("hand.euler_ZYX"), lambda: c.coefficients("hand.euler_ZYX")):
        with pytest.raises(kic.SingularError) as caught:
            ask()
        assert caught.value.failed == [(0,)]
    masked = c.coefficients("hand.euler_ZYX", failures="mask")
    assert np.isnan(masked.G[0]).all()
    assert np.isfinite(masked.G[1]).all()
    with pytest.raises(kic.SingularError):
        c.coefficients(["hand.wx"], wrt="hand.euler_ZYX")
    assert c.value("hand.euler_ZXZ").shape == (2, 3)
    # the reference configuration is in lock
    rows = c.coefficients("hand.euler_ZXZ")
    back = c.coefficients(["S.1", "S.2", "S.3"], wrt="hand.euler_ZXZ")
    assert np.abs(rows.G @ back.G - np.eye(3)).max() < 1e-13


@pytest.mark.parametrize("first", range(len(SEQUENCES)))
def test_digits_beside_gimbal_lock(first):
    """See `gimbal_lock`, which runs many more."""
    outcomes = [gimbal_lock.verdict(seed) for seed in range(first, 60, len(SEQUENCES))]
    for outcome, details in outcomes:
        assert outcome in ("right", "partly refused", "refused"), details


def test_members_beside_gimbal_lock():
    """Each order and each question masks the members that the estimate of this order excludes."""
    hinges = gimbal_lock.Hinges.mechanism(np.eye(3)[[2, 1, 0]])
    distances = np.array([[1e-1, 1e-3, 1e-5], [1e-2, 1e-4, 1e-6]])
    c = hinges.at(np.stack([0.4 + 0 * distances, np.pi / 2 - distances, -0.7 + 0 * distances], axis=-1))
    least = (100 * EPS / 1e-4) ** (1 / np.arange(2, 5))
    for order, limit in enumerate(least, 1):
        ok = distances > limit
        for ask in (
            lambda **how: c.coefficients("f.euler_ZYX", order=order, **how).G,  # noqa: B023
            lambda **how: c.coefficients("J0", order=order, wrt="f.euler_ZYX", **how).G,  # noqa: B023
        ):
            assert (np.isfinite(ask(failures="mask")).all(axis=(-1, -2)) == ok).all()
            if not ok.all():
                with pytest.raises(kic.SingularError) as caught:
                    ask()
                assert caught.value.failed == list(zip(*np.nonzero(~ok), strict=True))
                assert caught.value.estimate > 1e-4
    assert (np.isfinite(c.motion("f.euler_ZYX", np.ones(3), failures="mask")[3]).all(axis=-1) == ok).all()
    near = c[0, 1].coefficients("f.euler_ZYX", order=1)
    assert near.scaling.error > 10 * np.abs(near.G - np.eye(3)).max()


def test_bodies_that_do_not_turn_are_not_in_gimbal_lock():
    """Derivatives of their direction cosines are rounding errors."""
    m = kic.load("sarrus")
    for rates in np.random.default_rng(0).normal(size=(3, 3, 1)):
        assert np.abs(m.at().motion("plate.euler_zyx", *rates).jerk).max() < 1e-12
