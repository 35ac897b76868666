"""The kernels accept symbols and reproduce Horn's closed form."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from sampling import random_tree

import kic

t1, t2, w1, w2, a1, a2, g = sp.symbols("theta1 theta2 omega1 omega2 alpha1 alpha2 g", real=True)


def zero(x) -> bool:
    return sp.simplify(sp.nsimplify(sp.expand(x), rational=True)) == 0


@pytest.fixture(scope="module")
def two_link():
    return kic.load("horn-two-link").at([t1, t2])


@pytest.mark.slow
def test_tip_and_its_derivatives(two_link) -> None:
    tip = two_link.coefficients("tip", order=3)
    x, y = sp.cos(t1) + sp.cos(t1 + t2), sp.sin(t1) + sp.sin(t1 + t2)
    q = (t1, t2)
    for p, u in enumerate((x, y, sp.Integer(0))):
        assert zero(tip.values[p] - u)
        for n in range(2):
            assert zero(tip.G[p, n] - u.diff(q[n]))
            for m in range(2):
                assert zero(tip.H[p, m, n] - u.diff(q[n], q[m]))
                for k in range(2):
                    assert zero(tip.D[p, k, m, n] - u.diff(q[n], q[m], q[k]))
    # the polar radius, a distance: r² = 2 + 2 cos θ2
    reach = two_link.coefficients("reach")
    assert zero(reach.values[0] ** 2 - 2 - 2 * sp.cos(t2))
    assert zero(reach.G[0, 1] * reach.values[0] + sp.sin(t2))


@pytest.mark.slow
def test_dynamics_equal_horn_s_closed_form(two_link) -> None:
    """Equal sticks, m = l = 1: the bracket times ml²/2, and the gravity torques."""
    d = two_link.dynamics()
    c2, s2 = sp.cos(t2), sp.sin(t2)
    T = d.inverse_dynamics([w1, w2], [a1, a2])
    five, two = sp.Rational(5, 3), sp.Rational(2, 3)
    first = (2 * (five + c2) * a1 + (two + c2) * a2 - s2 * w2 * (2 * w1 + w2)) / 2
    second = ((two + c2) * a1 + two * a2 + s2 * w1**2) / 2
    g = sp.Rational(981, 100)
    weight2 = g * sp.cos(t1 + t2) / 2
    weight1 = g * sp.Rational(3, 2) * sp.cos(t1) + weight2
    assert zero(T[0] - first - weight1)
    assert zero(T[1] - second - weight2)
    assert zero(d.kinetic_energy([w1, w2]) - ((five + c2) * w1**2 + (two + c2) * w1 * w2 + w2**2 / 3) / 2)


@pytest.mark.slow
def test_symbols_and_numbers_agree_on_other_joints() -> None:
    """A tree with sliders and a ball (as drawn): symbols, then numbers put in."""
    rng = np.random.default_rng(4)
    m = random_tree(rng, ["R", "P", "spherical", "R"], branched=True, loads=True)
    symbols = sp.symbols("q0 q1 q5")
    phi = np.array([*symbols[:2], 0, 0, 0, symbols[2]], dtype=object)
    values = rng.normal(size=3)
    numbers = np.array([*values[:2], 0, 0, 0, values[2]])
    a, b = m.at(phi), m.at(numbers)
    put = np.vectorize(lambda x: float(sp.sympify(x).subs(dict(zip(symbols, values, strict=True)))))
    last = m.bodies[-1].name
    assert np.allclose(put(a.coefficients([last, "gap"]).H), b.coefficients([last, "gap"]).H, atol=1e-11)
    d, e = a.dynamics(), b.dynamics()
    assert np.allclose(put(d.I), e.I, atol=1e-11)
    assert np.allclose(put(d.P), e.P, atol=1e-10)
    assert np.allclose(put(d.load), e.load, atol=1e-11)
    shares, others = a.body_contributions(), b.body_contributions()
    assert np.allclose(put(shares.P_angular), others.P_angular, atol=1e-10)


def test_symbolic_results_can_be_printed(two_link) -> None:
    assert "cos" in two_link.coefficients("tip").summary().text()
    assert "theta2" in two_link.dynamics().summary().text()
    assert "<table>" in two_link.dynamics()._repr_html_()
    assert "theta1" in two_link.summary().text()
