"""Infinitesimal degrees of freedom of known order: alone, with finite ones, and in one loop with them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import linkages
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import kic
from kic.transfer.mobility.finite_mobility import contact_order

X, Y, Z = np.eye(3)


class Parts:
    """Bodies, joints and couplings of subassemblies, each turned and placed at random."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.bodies: list[kic.Body] = []
        self.joints: list[kic.Joint] = []
        self.points: list[kic.Point] = []
        self.distances: list[kic.Distance] = []
        self.couplings: list[kic.Coupling] = []
        self.place()

    def place(self) -> None:
        self.R = Rotation.random(random_state=int(self.rng.integers(2**31))).as_matrix()
        self.origin = self.rng.normal(size=3)

    def body(self) -> str:
        self.bodies.append(kic.Body(f"b{len(self.bodies)}"))
        return self.bodies[-1].name

    def joint(self, kind: str, a: str, b: str, at=None, axis=None) -> str:
        name = f"J{len(self.joints)}"
        more = {} if axis is None else {"axis": tuple(self.R @ axis)}
        if at is not None:
            more["at"] = tuple(self.origin + self.R @ at)
        self.joints.append(kic.Joint(name, kind, (a, b), **more))
        return name

    def couple(self, terms: dict[str, float]) -> None:
        name = f"C{len(self.couplings)}"
        self.couplings.append(kic.Coupling(name, tuple(terms), ratios=tuple(terms.values())))

    def rod(self, a: str, at_a, b: str, at_b) -> None:
        names = []
        for body, at in ((a, at_a), (b, at_b)):
            names.append(f"p{len(self.points)}")
            self.points.append(kic.Point(names[-1], body, tuple(self.origin + self.R @ at)))
        self.distances.append(kic.Distance(f"d{len(self.distances)}", tuple(names), fixed=True))

    def mechanism(self) -> kic.Mechanism:
        return kic.Mechanism(
            "parts", self.bodies, self.joints, points=self.points, distances=self.distances,
            couplings=self.couplings, coordinates=[],
        )  # fmt: skip


def yoke(p: Parts, base: str = "ground") -> tuple[str, str, str, str]:
    """Scotch yoke of unit crank: names of its angle, 1 − cosine and sine, and the crank."""
    crank, block, slide = p.body(), p.body(), p.body()
    angle = p.joint("revolute", base, crank, 0 * X, Z)
    p.joint("revolute", crank, block, X, Z)
    sine = p.joint("prismatic", block, slide, axis=Y)
    cosine = p.joint("prismatic", slide, base, axis=X)
    return angle, cosine, sine, crank


def contact(p: Parts, order: int, angles: tuple[str, ...] = (), base: str = "ground") -> str:
    """Sines or cosines of multiple angles whose sum vanishes but for the given order; a crank of it.

    The angle is that of the first crank, or a random combination of given joints.
    """
    count = max(2, (order + 1) // 2)
    multiples = np.arange(1, count + 1)
    powers = 2 * np.arange(1, count) - (order % 2)
    weights = np.linalg.svd(multiples ** powers[:, None].astype(float))[2][-1] if order > 2 else np.ones(2)
    terms, first, crank = {}, "", ""
    for k, weight in zip(multiples, weights, strict=True):
        angle, cosine, sine, body = yoke(p, base)
        terms[sine if order % 2 else cosine] = float(weight)
        if first:
            p.couple({first: float(k), angle: -1.0})
        first, crank = first or angle, crank or body
    if angles:
        p.couple({first: 1.0} | {name: float(p.rng.uniform(0.5, 1.5)) for name in angles})
    p.couple(terms)
    return crank


def parallelogram(p: Parts, base: str = "ground") -> None:
    """Three cranks, so that one of them is redundant."""
    bar, cranks = p.body(), [p.body() for _ in range(3)]
    x, angle = np.cumsum(p.rng.uniform(0.5, 1.5, 3)), p.rng.uniform(0.5, 2.5)
    arm = np.array([np.cos(angle), np.sin(angle), 0])
    for crank, foot in zip(cranks, x, strict=True):
        p.joint("revolute", base, crank, foot * X, Z)
        p.joint("revolute", crank, bar, foot * X + arm, Z)


def ring(p: Parts, base: str, places, axes) -> None:
    bodies = [base, *(p.body() for _ in places[1:]), base]
    for pair, at, axis in zip(pairwise(bodies), places, axes, strict=True):
        p.joint("revolute", *pair, at, axis)


def four_bar(p: Parts, base: str = "ground") -> None:
    places = np.array([[0, 0, 0], [0.3, 1, 0], [2, 1.5, 0], [2.2, 0, 0.0]])
    places[:, :2] += p.rng.uniform(-0.15, 0.15, (4, 2))
    ring(p, base, places, [Z] * 4)


def bennett(p: Parts, base: str = "ground") -> None:
    alpha, beta, theta = p.rng.uniform(0.4, 0.8), p.rng.uniform(1.0, 1.4), p.rng.uniform(0.6, 2.2)
    ring(p, base, *linkages.bennett(alpha, beta, theta))


def sarrus(p: Parts, base: str = "ground") -> None:
    h, out, turn = p.rng.uniform(0.4, 1.0), p.rng.uniform(0.2, 0.8), p.rng.uniform(0.6, 2.5)
    places, axes = [], []
    for angle in (0.0, turn):
        radial = np.array([np.cos(angle), np.sin(angle), 0])
        axes.append(np.cross(Z, radial))
        places.append([radial, radial * (1 + out) + h * Z, radial + 2 * h * Z])
    ring(p, base, [*places[0], *places[1][::-1]], [axes[0]] * 3 + [axes[1]] * 3)


def bricard(p: Parts, base: str = "ground") -> None:
    """Line-symmetric: three hinges, and the same turned by half about x."""
    at, axes = p.rng.normal(size=(2, 3, 3))
    flip = np.diag([1.0, -1.0, -1.0])
    ring(p, base, [*at, *at @ flip], [*axes, *axes @ flip])


def hinge(p: Parts, base: str = "ground") -> str:
    return p.joint("revolute", base, p.body(), 0 * X, Z)


def rounded(kind, seed: int, digits: int, tolerance: float = 0.0) -> kic.Mechanism:
    """One over-constrained linkage whose dimensions are off as rounding to so many digits leaves them."""
    p = Parts(np.random.default_rng(seed))
    kind(p)
    # as rounding of unrelated numbers leaves them; equal numbers would be rounded alike
    off = np.random.default_rng(seed + 1).uniform(-0.5, 0.5, (2, len(p.joints), 3)) * 10.0**-digits
    joints = [
        replace(j, at=tuple(np.array(j.at) + dx), axis=tuple(np.array(j.axis) + da))
        for j, dx, da in zip(p.joints, *off, strict=True)
    ]
    return kic.Mechanism("rounded", p.bodies, joints, coordinates=["J0"], closure_tolerance=tolerance)


def range_outcome(kind, seed: int, digits: int) -> str:
    """Return "right" if the linkage with the hinted tolerance moves over the range of the exact one."""
    exact = rounded(kind, seed, 16)
    if exact.mobility().dof != 1:
        return f"exact linkage has mobility {exact.mobility().dof}"
    hint = rounded(kind, seed, digits).mobility().caveat().partition("closure_tolerance = ")[2].split()
    if not hint:
        return "no hint"
    m = rounded(kind, seed, digits, float(hint[0]))
    if (m.dof, m.mobility().finite) != (1, True):
        return f"mobility {m.dof} at {hint[0]}"
    for sign in (1, -1):
        c, e = m.at({"J0": 0.0}), exact.at({"J0": 0.0})
        for k in range(1, 32):
            try:
                e = exact.at({"J0": sign * 0.1 * k}, near=e)
                # near the ends of its range the rounded linkage ends before the exact one
                exact.at({"J0": sign * (0.1 * k + 0.1)}, near=e)
            except kic.KicError:
                break
            try:
                c = m.at({"J0": sign * 0.1 * k}, near=c)
            except kic.KicError as error:
                if "closure_tolerance" in str(error):
                    return f"{hint[0]} at {sign * 0.1 * k:.1f}: {error}"
                return "ends at a singular configuration of the exact linkage"
    return "right"


FINITE = [parallelogram, four_bar, bennett, sarrus, bricard, hinge]


def structure(seed: int) -> tuple[kic.Mechanism, int, int, list[int]]:
    """A random mechanism, its finite and first-order degrees of freedom, and the orders of the others."""
    rng = np.random.default_rng(seed)
    p = Parts(rng)
    orders = [int(rng.integers(2, 7)) for _ in range(rng.integers(0, 3))]
    finite = int(rng.integers(0 if orders else 1, 3))
    left = finite
    bases = ["ground"]
    for order in orders:
        p.place()
        if left and rng.random() < 0.4:
            # the sum of several angles is what cannot move: one combination of these stays finite
            many = int(rng.integers(2, left + 2))
            bases.append(contact(p, order, tuple(hinge(p) for _ in range(many))))
            left -= many - 1
        else:
            bases.append(contact(p, order, base=str(rng.choice(bases))))
    for _ in range(left):
        p.place()
        FINITE[rng.integers(len(FINITE))](p, str(rng.choice(bases)))
    return p.mechanism(), finite, finite + len(orders), orders


@pytest.mark.parametrize("order", range(2, 7))
def test_one_dof_of_known_order(order: int) -> None:
    """Alone it is obstructed at its order, and nothing moves."""
    p = Parts(np.random.default_rng(order))
    contact(p, order)
    f = p.mechanism().mobility()
    assert (f.first_order, f.dof, f.finite, f.extends) == (1, 0, False, order - 1)
    assert [(x.verdict, x.order) for x in f.motions] == [("obstructed", order)]


@pytest.mark.slow_for("bennett-2", "bennett-4", "bennett-5", "hinge-2")
@pytest.mark.parametrize("order", [2, 4, 5])
@pytest.mark.parametrize("kind", [hinge, bennett])
def test_beside_a_finite_one(kind, order: int) -> None:
    """An infinitesimal freedom together with a finite one is never counted as finite; it may be undecided."""
    p = Parts(np.random.default_rng(order))
    contact(p, order)
    p.place()
    kind(p)
    m = p.mechanism()
    f = m.mobility()
    assert f.first_order == 2
    assert (f.finite, f.dof) in ((True, 1), (None, 2))
    assert m.dof == f.dof
    assert order in {x.order for x in f.motions}


@pytest.mark.slow_for("6", "0")
@pytest.mark.parametrize("seed", [0, 1, 6])
def test_random_structures(seed: int) -> None:
    """No infinitesimal motion is counted as finite, no finite one as infinitesimal."""
    m, finite, first_order, orders = structure(seed)
    f = m.mobility()
    assert f.first_order == first_order
    if f.finite is None:
        assert orders
        assert f.dof >= finite
    else:
        assert (f.dof, f.infinitesimal) == (finite, first_order - finite)


@pytest.mark.parametrize("kind", [parallelogram, four_bar, bennett, sarrus, bricard])
def test_overconstrained_linkages_are_finite(kind) -> None:
    for seed in range(5):
        p = Parts(np.random.default_rng(seed))
        kind(p)
        f = p.mechanism().mobility()
        assert (f.dof, f.finite, f.regular, f.infinitesimal) == (1, True, True, 0)


@pytest.mark.slow
@pytest.mark.parametrize("digits", [3, 5])
@pytest.mark.parametrize("kind", [four_bar, bennett])
def test_the_hinted_tolerance_serves_over_the_range(kind, digits: int) -> None:
    for seed in range(1):
        outcome = range_outcome(kind, seed, digits)
        assert outcome == "right" or outcome.startswith("ends"), outcome


def test_the_power_of_a_residual() -> None:
    s = 0.6 / 2.0 ** np.arange(8, -1, -1)
    for order in range(2, 7):
        assert contact_order(s, 0.3 * s**order + 1e-16, 1e-14) == order
    assert contact_order(s, np.where(s < 0.1, 1e-16, 0.1 * s), 1e-14) == math.inf
    assert math.isnan(contact_order(s, np.where(s < 0.5, 1e-16, 1e-9), 1e-14))
