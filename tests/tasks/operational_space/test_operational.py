"""Operational space against plain matrices, the transfer, and its defining properties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from arms import configuration
from linkages import serial, xy_table
from raising import raises
from sampling import mismatch

import kic

# mechanisms, a task of fewer rows than degrees of freedom, and one with as many coordinates as rows
CASES = {
    "panda": ("link7", ()),
    "puma560": ("tool", "link6"),
    "twin-arm": ("left_hand eyes.z", ()),
    "five-bar": ("tip.x", "tip.x tip.y"),
    "gough-stewart": ("platform.x platform.wy L3", "platform"),
    "geared-five-bar": ("tip.x", "tip.x"),
}
every_case = pytest.mark.parametrize("name", CASES)


def plain(c: kic.Configuration, task: list[str]) -> dict[str, np.ndarray]:
    """Compare with the matrices of the textbook for one configuration."""
    d, u = c.dynamics(), c.coefficients(task)
    W = np.linalg.inv(d.I)
    Lambda = np.linalg.inv(u.G @ W @ u.G.T)
    J = W @ u.G.T @ Lambda
    mu = np.einsum("ip,iab->pab", J, d.P) - np.einsum("pr,rab->pab", Lambda, u.H)
    return {
        "Lambda": Lambda,
        "inverse": J,
        "mu": mu,
        "p": -J.T @ d.load,
        "damping": J.T @ d.damping,
        "G": u.G,
    }


@every_case
def test_model_agrees_with_the_textbook(name: str) -> None:
    c, task = configuration(name), CASES[name][0].split()
    s = c.operational_space(task)
    limit = 1e-12 * np.linalg.cond(c.dynamics().I)
    for part, exact in plain(c, task).items():
        assert mismatch(getattr(s, part), exact) < limit, part
    assert s.rows == c.coefficients(task, order=1).rows


@every_case
def test_efforts_of_the_null_space_are_not_felt(name: str) -> None:
    c, task = configuration(name), CASES[name][0].split()
    s, d, u = c.operational_space(task), c.dynamics(), c.coefficients(task)
    rng = np.random.default_rng(0)
    T0, qd = rng.normal(size=(2, len(s.coordinates)))
    N = s.projector
    scale = np.abs(u.G @ np.linalg.inv(d.I)).max()
    assert np.abs(u.G @ np.linalg.solve(d.I, N.T @ T0)).max() < 1e-10 * scale
    assert np.abs(u.G @ N).max() < 1e-10 * np.abs(u.G).max()
    assert np.abs(N @ N - N).max() < 1e-10
    # a force and what is not felt: the task accelerates as it was asked
    udd = rng.normal(size=len(s.rows))
    qdd = d.forward_dynamics(qd, s.effort(s.force(qd, udd), T0))
    assert mismatch(u.acceleration(qd, qdd), udd) < 1e-10 * max(1.0, np.abs(T0).max() * scale)


@every_case
def test_its_inverse_spends_the_least_kinetic_energy(name: str) -> None:
    c, task = configuration(name), CASES[name][0].split()
    s, d = c.operational_space(task), c.dynamics()
    rng = np.random.default_rng(1)
    qd = s.inverse @ rng.normal(size=len(s.rows))
    others = qd + rng.normal(size=(50, len(qd))) @ s.projector.T
    assert (d.kinetic_energy(others) >= d.kinetic_energy(qd) * (1 - 1e-12)).all()


@pytest.mark.parametrize("name", [name for name, (_, full) in CASES.items() if full])
def test_a_whole_task_is_a_transfer(name: str) -> None:
    """Λ, μ and p of a task with a row per degree of freedom are I*, P* and the load in its coordinates."""
    c, task = configuration(name), CASES[name][1].split()
    s, d = c.operational_space(task), c.dynamics(wrt=task)
    limit = 1e-12 * np.linalg.cond(s.G) ** 2
    assert mismatch(s.Lambda, d.I) < limit
    assert mismatch(s.mu_task, d.P) < limit
    assert mismatch(-s.p, d.load) < limit
    assert mismatch(s.inverse, np.linalg.inv(s.G)) < limit


def test_in_other_coordinates_it_is_the_same_task() -> None:
    c, task = configuration("gough-stewart"), ["platform.x", "platform.wy"]
    legs, pose = c.operational_space(task), c.operational_space(task, wrt="platform")
    assert mismatch(pose.Lambda, legs.Lambda) < 1e-11
    # p is a small difference of large loads
    size = (np.abs(legs.inverse).T @ np.abs(c.dynamics().load)).max()
    assert np.abs(pose.p - legs.p).max() < 1e-12 * size
    qd = np.random.default_rng(0).normal(size=6)
    moved = c.coefficients("platform", order=1).G @ qd
    udd = [0.3, -0.2]
    assert mismatch(pose.force(moved, udd), legs.force(qd, udd)) < 1e-11


@pytest.mark.slow
def test_complex_singular_tasks_are_found() -> None:
    """A complex pivot that is zero stops the kernel; the members are those of real numbers."""
    c = kic.load("puma560").at(np.outer([0, 1], np.linspace(0.1, 0.6, 6)))
    z = kic.load("puma560").at(c._phi.astype(complex))
    for batch, failed in ((z, [(0,)]), (z[0], [()])):
        with raises(kic.SingularError, failed=failed):
            batch.operational_space("link6")
        with raises(kic.SingularError, failed=failed):
            batch.resolve_redundancy("link6", np.ones(6))
    for question in (
        lambda at: at.operational_space("link6", failures="mask").Lambda,
        lambda at: at.resolve_redundancy("link6", np.ones(6), failures="mask").qd,
    ):
        found, want = question(z), question(c)
        assert np.isnan(found[0]).all()
        assert np.isnan(want[0]).all()
        assert mismatch(found[1].real, want[1]) < 1e-11
        assert not found[1].imag.any()


def test_effective_mass() -> None:
    """Of a point mass it is the mass, whatever the direction; along a line it is 1/(dᵀΛ⁻¹d)."""
    slide = xy_table()
    s = slide.at([0.0, 0.0]).operational_space(["pen.x", "pen.y"])
    assert s.mass([[1, 0], [0, 2], [1, 1]]).round(12).tolist() == [3.0, 2.0, 2.4]


def test_fixed_row_raises_and_small_row_does_not() -> None:
    """Rounding is not motion; micrometres at the end of a boom of ten metres are."""
    m = kic.load("horn-two-link")
    for at in ([0.0, 0.0], [0.0, np.pi], [1e-17, 1e-17]):
        with raises(kic.SingularError, names=("tip.x",)):
            m.at(at).operational_space("tip.x")
    for size in (1.0, 1e-3, 1e-6):
        boom = kic.Body("boom", mass=100.0, com=(5, 0, 0), inertia=(0, 100, 100))
        finger = kic.Body("finger", mass=1.0, com=(10 + size / 2, 0, 0), inertia=(0, size**2, size**2))
        nail, anvil = (10 + size, 0, 0), (10, -size, 0)
        crane = serial(
            [(0, 0, 0), (10, 0, 0)],
            [boom, finger],
            points=[kic.Point("nail", "finger", at=nail), kic.Point("anvil", "boom", at=anvil)],
            distances=[kic.Distance("gap", ("nail", "anvil"))],
        )
        c = crane.at([0.1, 0.2])
        slope = np.sin((np.pi / 2 + 0.2) / 2 + np.pi / 2)
        for weight in ("minimum norm", "minimum kinetic energy"):
            assert abs(c.resolve_redundancy("gap", [size], criterion=weight).qd[1] * slope - 1) < 1e-8
        s = c.operational_space("gap")
        assert mismatch(s.Lambda, plain(c, ["gap"])["Lambda"]) < 1e-8


def test_invalid_arguments() -> None:
    m = kic.load("horn-two-link")
    with raises(kic.SingularError, names=("tip.x", "tip.y")) as caught:
        m.at([0.3, 0.0]).operational_space(["tip.x", "tip.y"])
    assert caught.value.share < 1e-12
    sympy = pytest.importorskip("sympy")
    with raises(kic.InputError, key="configuration"):
        m.at(sympy.symbols("a b")).operational_space("tip.x")
    bare = replace(m, bodies=tuple(replace(b, mass=None) for b in m.bodies))
    with pytest.raises(kic.InertiaError):
        bare.at([0.3, 1.0]).operational_space("tip.x")


def test_zero_distances_and_springs_raise() -> None:
    arm = kic.load("horn-two-link")
    ends = (kic.Point("here", "link2", at=(1, 0, 0)), kic.Point("there", "link1", at=(1, 0, 0)))
    m = replace(arm, points=(*arm.points, *ends), distances=(kic.Distance("none", ("here", "there")),))
    with raises(kic.InputError, distances=("none",)):
        m.at([0.0, 0.5]).operational_space("none")
    m = replace(m, springs=(kic.Spring("coil", ("here", "there"), stiffness=1.0, rest=0.1),))
    with raises(kic.InputError, names=("coil",)):
        m.at([0.0, 0.5]).operational_space("tip.x")
