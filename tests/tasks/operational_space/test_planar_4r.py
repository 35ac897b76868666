"""The redundant planar arm of four links against its closed form in absolute angles."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises
from sampling import mismatch

import kic

LENGTHS, RADIUS, PER_METRE = np.array([0.4, 0.35, 0.3, 0.2]), 0.025, 5.0
TIP = ["tip.x", "tip.y"]
POSTURE = np.array([0.3, 0.9, -0.7, 1.1])
TURN = 2 * np.pi


def summed(n: int = 4) -> np.ndarray:
    """Absolute angles of the first n links, of joint angles."""
    return np.tril(np.ones((4, 4)))[:n]


def reach(q: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place (2,) of a point that is these lengths along the links, and its Jacobian (2, 4)."""
    t = summed() @ q
    at = np.array([shares @ np.cos(t), shares @ np.sin(t)])
    return at, np.array([-shares * np.sin(t), shares * np.cos(t)]) @ summed()


def tip(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return reach(q, LENGTHS)


def inertia(q: np.ndarray) -> np.ndarray:
    """I* (4, 4): of the centres of mass, and of the bars about their own."""
    I = np.zeros((4, 4))
    for k, l in enumerate(LENGTHS):
        m = PER_METRE * l
        J = reach(q, np.concatenate([LENGTHS[:k], [l / 2], np.zeros(3 - k)]))[1]
        w = summed()[k]
        I += m * J.T @ J + m * (3 * RADIUS**2 + l**2) / 12 * np.outer(w, w)
    return I


def law(q: np.ndarray, ud: np.ndarray, energy: bool) -> np.ndarray:
    """Rates of the least norm, or of the least kinetic energy."""
    J = tip(q)[1]
    X = np.linalg.solve(inertia(q), J.T) if energy else J.T
    return X @ np.linalg.solve(J @ X, ud)


@pytest.fixture(scope="module")
def arm() -> kic.Mechanism:
    return kic.load("planar-4r")


def test_model_agrees_with_its_description(arm: kic.Mechanism) -> None:
    assert arm.dof == 4
    q = arm.at()._phi
    assert np.abs(q - np.radians([0, 90, -90, 90])).max() < 1e-14
    for c in (arm.at(), arm.at(POSTURE)):
        at, J = tip(c._phi)
        assert mismatch(c.value("tip")[:2], at) < 1e-13
        assert mismatch(c.coefficients(TIP).G, J) < 1e-14
        assert mismatch(c.dynamics().I, inertia(c._phi)) < 1e-13


@pytest.mark.parametrize("energy", [False, True], ids=["norm", "energy"])
def test_rates_and_operational_space_in_closed_form(arm: kic.Mechanism, energy: bool) -> None:
    rng = np.random.default_rng(0)
    weight = "minimum kinetic energy" if energy else "minimum norm"
    c, ud = arm.at(rng.uniform(-2, 2, size=(20, 4))), rng.normal(size=(20, 2))
    r, s = c.resolve_redundancy(TIP, ud, criterion=weight), c.operational_space(TIP)
    for q, v, qd, Lambda, w in zip(c._phi, ud, r.qd, s.Lambda, c.ellipsoid(TIP).manipulability, strict=True):
        J = tip(q)[1]
        assert mismatch(qd, law(q, v, energy)) < 1e-10
        assert mismatch(Lambda, np.linalg.inv(J @ np.linalg.solve(inertia(q), J.T))) < 1e-10
        assert abs(w - np.sqrt(np.linalg.det(J @ J.T))) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("energy", [False, True], ids=["norm", "energy"])
def test_ten_turns_of_the_tip_do_not_bring_the_joints_back(arm: kic.Mechanism, energy: bool) -> None:
    """The joints follow the integral of the closed form; the tip stays on its circle."""
    from scipy.integrate import solve_ivp

    c = arm.at(POSTURE)
    home, weight = c.value("tip")[:2], "minimum kinetic energy" if energy else "minimum norm"

    def circle(t: float) -> np.ndarray:
        return home + 0.12 * np.stack([np.cos(t) - 1, np.sin(t)])

    path = {"tip.x": lambda t: circle(t)[0], "tip.y": lambda t: circle(t)[1]}
    f = arm.track(path, np.linspace(0, 10 * TURN, 101), near=c, criterion=weight)
    assert max(np.abs(tip(q)[0] - circle(t)).max() for q, t in zip(f.phi, f.t, strict=True)) < 1e-12
    drift = f.drift(TURN)
    assert (np.abs(drift).max(axis=1) > 1e-4).all()

    def rate(t: float, q: np.ndarray) -> np.ndarray:
        return law(q, 0.12 * np.array([-np.sin(t), np.cos(t)]), energy)

    alone = solve_ivp(rate, (0, TURN), POSTURE, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    assert np.abs(alone - POSTURE - drift[0]).max() < 1e-8
    rest = kic.PreferredConfiguration(dict(zip(c.coordinates, POSTURE, strict=True)), gain=3.0)
    held = arm.track(path, np.linspace(0, 4 * TURN, 41), near=c, criterion=weight, secondary=rest)
    assert np.abs(held.drift(TURN)[-1]).max() < 1e-3 * np.abs(drift).max()


def test_elbow_moves_in_the_null_space(arm: kic.Mechanism) -> None:
    c = arm.at(POSTURE)
    up = kic.PreferredConfiguration({"elbow2.y": 0.6}, gain=2.0)
    f = arm.track({x: float(c.value(x)) + np.zeros(2) for x in TIP}, [0.0, 3.0], near=c, secondary=up)
    high = f.configuration.value("elbow2.y")
    assert high[1] > high[0] + 0.02
    assert np.abs(f.error).max() < 1e-13


def test_the_tip_is_singular_only_in_one_line(arm: kic.Mechanism) -> None:
    lined = arm.at([[0.4, 0, 0, 0], [0.4, np.pi, 0, np.pi], [0.4, 0.1, 0, 0]])
    assert lined.ellipsoid(TIP).rank.tolist() == [1, 1, 2]
    with raises(kic.SingularError, names=("tip.x", "tip.y")):
        arm.at([0.4, 0.0, 0.0, 0.0]).resolve_redundancy(TIP, [0.1, 0.1])
    # the last link's direction leaves one freedom, of which joint rates are the null space
    c = arm.at(POSTURE)
    task = [*TIP, "link4.angle"]
    N = c.operational_space(task).projector
    assert np.linalg.matrix_rank(N, tol=1e-9) == 1
    assert np.abs(np.vstack([tip(POSTURE)[1], np.ones(4)]) @ N).max() < 1e-12
