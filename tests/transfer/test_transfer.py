"""Coefficients and dynamics in chosen coordinates, for open and closed mechanisms; loop closure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linkages import hinged
from raising import raises
from sampling import mismatch, random_posture, random_tree

import kic

AT = [(0.0, 0, 0), (0.3, 1, 0), (2, 1.5, 0), (2.2, 0, 0)]


def four_bar(coordinates=("A",), kinds=("revolute",) * 4, swap: int = 0) -> kic.Mechanism:
    """A planar linkage drawn in space; two of its loop's five conditions follow from the others."""
    names = ["ground", "a", "b", "c"]
    com = [(x + 0.5, y + 0.2, z) for x, y, z in AT]
    joints = []
    for k in range(4):
        pair = (names[k], names[(k + 1) % 4])
        joints.append(
            kic.Joint(
                "ABCD"[k], kinds[k], pair[::-1] if swap >> k & 1 else pair, at=AT[k],
                axis=None if kinds[k] == "spherical" else (0, 0, 1 - 2 * (swap >> k & 1)),
            )
        )  # fmt: skip
    return kic.Mechanism(
        "four-bar",
        [kic.Body(n, mass=1, com=com[k], inertia=(0.1, 0.1, 0.2)) for k, n in enumerate(names[1:])],
        joints,
        points=[kic.Point("tip", "b", (1, 2, 0)), kic.Point("post", "ground", (3, 3, 0))],
        distances=[kic.Distance("gap", ("tip", "post"))],
        gravity=(0, -9.81, 0),
        coordinates=coordinates,
    )


OF = ["tip", "gap", "A", "B", "C", "D", "b.angle", "c.wz"]


def test_mobility_and_redundant_conditions() -> None:
    m = four_bar()
    assert (m.dof, m.mobility().cuts) == (1, ("D",))
    assert m.mobility().redundant == 3  # of five, in space
    assert four_bar(kinds=("revolute", "spherical", "revolute", "revolute")).dof == 1


@pytest.mark.parametrize("coordinates", [("A",), ("B",), ("D",)])
@pytest.mark.parametrize("swap", [0, 5, 15])
def test_results_do_not_depend_on_the_cut(coordinates: tuple[str, ...], swap: int) -> None:
    base, other = four_bar(), four_bar(coordinates, swap=swap)
    c = base.at({"A": 0.3})
    d = other.at({"A": 0.3})
    for wrt in ("A", "C", "D", "tip.x", "gap", "b.angle", "c.wz"):
        a, b = c.coefficients(OF, order=3, wrt=wrt), d.coefficients(OF, order=3, wrt=wrt)
        assert a.rows == b.rows
        for letter in "GHD":
            assert mismatch(getattr(b, letter), getattr(a, letter)) < 1e-11, (wrt, letter)
        p, q = c.dynamics(wrt=wrt), d.dynamics(wrt=wrt)
        for letter in ("I", "P", "load"):
            assert mismatch(getattr(q, letter), getattr(p, letter)) < 1e-11, (wrt, letter)


def test_power_and_inertia_along_the_motion() -> None:
    m = four_bar()
    h = 2e-3
    weights = np.array([-1, 9, -45, 0, 45, -9, 1]) / 60
    c = m.at({"A": 0.3})
    for wrt in ("A", "D", "tip.x"):
        at = c.coefficients(wrt).values[0]
        steps = m.at({wrt: at + h * np.arange(-3, 4)}, near=c).dynamics(wrt=wrt)
        slope = np.tensordot(weights, steps.I, axes=1) / h
        d = c.dynamics(wrt=wrt)
        assert mismatch(d.inertia_gradient()[..., 0], slope) < 1e-9
        # transfer by hand from one coordinate to another
        phi = c.coefficients("A", wrt=wrt, order=2)
        base = c.dynamics()
        assert mismatch(d.I, base.I * phi.G**2) < 1e-12
        assert mismatch(d.P, base.P * phi.G**3 + base.I * phi.G * phi.H) < 1e-12
        assert mismatch(d.load, base.load * phi.G[0]) < 1e-12


@pytest.mark.parametrize("kinds", ["RRRRRR", "RPRRPR", ["free"], ["spherical", "P", "R", "R"]], ids=str)
def test_open_arms_in_task_coordinates(kinds) -> None:
    """(v, ω) of the last body as coordinates: to third order the inverse map of the arm's own."""
    rng = np.random.default_rng(2)
    m = random_tree(rng, kinds, loads=True)
    c = random_posture(rng, m, (2,))
    hand = m.bodies[-1].name
    own = c.coefficients(hand, order=3)
    task = c.coefficients([hand, *c.coordinates], order=3, wrt=hand)
    size = 6
    identity = task.G[..., :size, :]
    assert np.abs(identity - np.eye(size)).max() < 1e-11
    scale = max(np.abs(task.H).max(), 1)
    assert np.abs(task.H[..., :size, :, :]).max() < 1e-11 * scale
    assert np.abs(task.D[..., :size, :, :, :]).max() < 1e-11 * max(np.abs(task.D).max(), 1)
    A = task.G[..., size:, :]
    assert mismatch(own.G @ A, identity) < 1e-11
    d, e = c.dynamics(), c.dynamics(wrt=hand)
    assert not e.holonomic
    v, a = rng.normal(size=(2, size))
    rates = np.einsum("bna,a->bn", A, v)
    acc = np.einsum("bna,a->bn", A, a) + np.einsum("bnac,a,c->bn", task.H[..., size:, :, :], v, v)
    pulled = np.einsum("bna,bn->ba", A, d.inverse_dynamics(rates, acc))
    assert mismatch(e.inverse_dynamics(v, a), pulled) < 1e-10


def test_invalid_requests_raise() -> None:
    m = four_bar()
    c = m.at({"A": 0.3})
    with raises(kic.InputError, mobility=1, count=2):
        m.at({"A": 0.1, "D": 0.2})
    with raises(kic.InputError, mobility=1, count=3):
        c.dynamics(wrt="tip")
    with raises(kic.InputError, name="c.wz"):
        m.at({"c.wz": 1.0})
    with raises(kic.InputError, key="near", got="horn-two-link"):
        m.at({"A": 0.2}, near=kic.load("horn-two-link").at())
    # the tip never leaves its plane: its z drives nothing
    with raises(kic.SingularError, coordinates=("tip.z",)) as caught:
        c.dynamics(wrt="tip.z")
    assert caught.value.possible


def sprung(coordinates: tuple[str, ...]) -> kic.Mechanism:
    """The four-bar with a spring and damper in joint D, which is cut or kept as the coordinates ask."""
    m = four_bar(coordinates)
    joints = [
        replace(j, stiffness=30.0, rest=0.2, damping=7.0, value=0.5) if j.name == "D" else j for j in m.joints
    ]
    return replace(m, joints=joints)


def test_springs_and_dampers_in_a_cut_joint() -> None:
    cut, kept = sprung(("A",)), sprung(("D",))
    assert cut.mobility().cuts == ("D",)
    assert kept.mobility().cuts != ("D",)
    c, d = cut.at({"A": 0.3}), kept.at({"A": 0.3})
    for wrt in ("A", "D", "tip.x"):
        p, q = c.dynamics(wrt=wrt), d.dynamics(wrt=wrt)
        assert mismatch(p.load, q.load) < 1e-11
        assert mismatch(p.damping, q.damping) < 1e-11
        bare = four_bar().at({"A": 0.3}).dynamics(wrt=wrt)
        rate = c.coefficients("D", wrt=wrt).G[0]
        assert p.load - bare.load == pytest.approx(-30 * (c.value("D") - 0.2) * rate)
        assert p.damping == pytest.approx(7 * np.outer(rate, rate))


def test_a_cut_joint_turns_on_and_on() -> None:
    """Its angle is known but for full turns; as an input it may be any number."""
    m = four_bar(("D",))
    assert "A" not in m.mobility().cuts
    swapped = replace(four_bar(), joints=four_bar().joints[::-1], coordinates=("D",))
    assert swapped.mobility().cuts == ("A",)
    for angle in (0.3, 3.0, 4.2, 6.5, -9.0):
        c = swapped.at({"A": angle})
        assert np.remainder(c.value("A") - angle + np.pi, 2 * np.pi) == pytest.approx(np.pi)


def parallelogram() -> kic.Mechanism:
    """Drawn at A = 1.5; flat at A = 0, where it may also turn over."""
    at = [(0, 0, 0), (np.cos(1.5), np.sin(1.5), 0), (2 + np.cos(1.5), np.sin(1.5), 0), (2, 0, 0)]
    return hinged(at, bodies="abc", values=[1.5, 0.0, 0.0, 0.0], points=[kic.Point("tip", "b", at[2])])


def test_more_invalid_arguments_raise() -> None:
    m = four_bar()
    c = m.at({"A": [0.3, np.nan]}, failures="mask")
    with raises(kic.InputError, key="near"):
        m.at({"A": 0.3}, near=c)
    with raises(kic.InputError, key="near"):
        m.at(near=m.at())
    with raises(kic.SingularError, coordinates=("tip.z",)) as caught:
        m.at({"A": [0.3, 0.4]}).coefficients("tip", wrt="tip.z")
    assert caught.value.failed == [(0,), (1,)]
    flat = parallelogram()
    with raises(kic.SingularError, coordinates=("A",)):
        flat.at({"A": 1e-12}).coefficients("tip")
    with raises(kic.ConfigurationError, failed=[()]):
        m.at({"tip.z": 0.5})


@pytest.mark.slow
def test_possible_sets_begin_with_the_default_coordinates() -> None:
    """The legs come first of a platform's many sets, and no set drives the rates of a ball."""
    m = kic.load("gough-stewart")
    turning = [f"cylinder1.{w}" for w in ("wx", "wy", "wz")]  # of which a cylinder has two
    with pytest.raises(kic.SingularError, match="Possible here: L1, L2, L3, L4, L5, L6; ") as caught:
        m.at().coefficients("platform", wrt=[*turning, "L1", "L2", "L3"])
    for names in caught.value.possible:
        assert not any(name.startswith("S") for name in names.split(", "))


def test_one_singular_member_does_not_lose_the_others() -> None:
    m = kic.load("slider-crank")
    c = m.at({"shaft": [[0.5, 0.0, 1.0], [0.0, 0.7, 0.2]]})
    there = np.array([[True, False, True], [False, True, True]])
    alone = m.at({"shaft": c.value("shaft")[there]})
    d = c.dynamics(wrt="piston", failures="mask")
    assert np.isnan(d.P[~there]).all()
    assert np.isnan(d.load[~there]).all()
    assert np.array_equal(d.P[there], alone.dynamics(wrt="piston").P)
    shares = c.body_contributions(wrt="piston", failures="mask")
    assert np.isnan(shares.P_linear[~there]).all()
    assert np.isfinite(shares.P_linear[there]).all()
    rod = c.coefficients("rod", order=3, wrt="piston", failures="mask")
    assert np.isnan(rod.D[~there]).all()
    assert np.array_equal(rod.D[there], alone.coefficients("rod", order=3, wrt="piston").D)
    # together with members that have no configuration at all
    masked = m.at({"shaft": [np.nan, 0.0, 1.0]}, failures="mask")
    G = masked.coefficients("rod", wrt="piston", failures="mask").G
    assert np.isnan(G).all(axis=(1, 2)).tolist() == [True, True, False]
    assert np.isnan(m.at({"shaft": 0.0}).coefficients("rod", wrt="piston", failures="mask").G).all()
    # where several motions meet
    flat = parallelogram()
    some = flat.at({"A": [0.3, 0.0, 0.4]})
    with raises(kic.SingularError, coordinates=("A",)) as caught:
        some.coefficients("tip")
    assert caught.value.failed == [(1,)]
    assert np.isnan(some.coefficients("tip", failures="mask").G).all(axis=(1, 2)).tolist() == [
        False,
        True,
        False,
    ]


def test_no_wrong_digits_near_a_bifurcation() -> None:
    m = parallelogram()
    far = m.at({"A": 0.5}).coefficients("tip", order=3)
    assert far.D[1, 0, 0, 0] == pytest.approx(-np.cos(0.5), rel=1e-9)
    near = m.at({"A": 1e-5})
    assert near.coefficients("tip", order=1).G[1, 0] == pytest.approx(1, rel=1e-5)
    with raises(kic.SingularError, order=3):
        near.coefficients("tip", order=3)
