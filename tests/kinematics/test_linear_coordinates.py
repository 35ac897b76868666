"""Coordinates in which those of the tree are linear: couplings as constant columns, and angles in a plane.

Compared with the square system of coordinates and couplings, which serves all other coordinates, with the
same mechanism without couplings, and with complex steps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sampling import check_inertia, check_orders, mismatch

import kic
from kic.kernels import layout as lay
from kic.kinematics.linear_map import LinearMap
from kic.kinematics.state import integrate
from kic.mechanism.configuration import Configuration
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.identity import LinearTransfer


def hand(floating: bool = True) -> kic.Mechanism:
    """A floating palm with two fingers: followers behind their driver and beside it, a slider, rotors."""
    rng = np.random.default_rng(5)
    names = ["palm", "a1", "a2", "a3", "b1", "b2", "plug"]
    bodies = [
        kic.Body(
            n,
            mass=float(rng.uniform(1, 2)),
            com=tuple(rng.normal(size=3)),
            inertia=tuple(rng.uniform(1, 1.5, 3)),
        )
        for n in names
    ]
    base = kic.Joint("base", "free", ("ground", "palm"), (0.1, 0, 0))
    if not floating:
        base = kic.Joint("base", "revolute", ("ground", "palm"), (0.1, 0, 0), (0, 0, 1))

    def turn(name: str, pair: tuple[str, str], **more) -> kic.Joint:
        return kic.Joint(name, "revolute", pair, tuple(rng.normal(size=3)), tuple(rng.normal(size=3)), **more)

    joints = [
        base,
        turn("A1", ("palm", "a1"), value=0.3, armature=0.7),
        turn("A2", ("a1", "a2"), stiffness=2.0, rest=0.1, damping=0.4),
        turn("A3", ("a2", "a3"), armature=0.2),
        turn("B1", ("palm", "b1")),
        turn("B2", ("b1", "b2"), value=-0.2),
        kic.Joint("S", "prismatic", ("b2", "plug"), None, (1, 2, 2), value=0.4, damping=0.3),
    ]
    points = [kic.Point(n, b, tuple(rng.normal(size=3))) for n, b in (("tip", "a3"), ("nail", "plug"))]
    return kic.Mechanism(
        "hand", bodies, joints, points=points, coordinates=["base", "A1", "B1"], gravity=(0, 1, -9.81),
        distances=[kic.Distance("grip", ("tip", "nail"))],
        couplings=[
            kic.Coupling("one", ("A2", "A1"), ratios=(1.0, -0.8)),
            kic.Coupling("two", ("A3", "A2", "B1"), ratios=(2.0, -1.0, 0.5)),
            kic.Coupling("beside", ("B2", "A1"), ratios=(3.0, 1.0)),
            kic.Coupling("rack", ("S", "B2"), ratios=(1.0, 0.05)),
        ],
        forces=[kic.Force("push", "tip", (1.0, 2.0, 3.0))],
        springs=[kic.Spring("band", ("tip", "nail"), stiffness=3.0, rest=0.5, damping=0.6)],
    )  # fmt: skip


def chain() -> kic.Mechanism:
    """A planar arm without couplings, whose bodies have angles."""
    m = kic.load("horn-three-link")
    assert m._model.is_open_chain
    return m


CASES = {
    "bevel-wrist": (lambda: kic.load("bevel-wrist"), None),
    "bevel-wrist by joints": (lambda: kic.load("bevel-wrist"), ("drive1", "pitch", "roll")),
    "scara": (lambda: kic.load("scara"), None),
    "scara by followers": (lambda: kic.load("scara"), ("motor1", "elbow", "quill.2", "quill.1")),
    "hand": (hand, None),
    "hand by followers": (hand, ("base", "S", "A3")),
    "turning hand": (lambda: hand(False), ("B2", "base", "A3")),
    "reordered": (lambda: kic.load("puma560"), ("J6", "J2", "J3", "J1", "J5", "J4")),
}


def prepared(case: str) -> tuple[kic.Mechanism, LinearTransfer, CoordinateTransfer, np.ndarray]:
    """Return a mechanism, both transfers and closed states."""
    make, wrt = CASES[case]
    m = make()
    if case == "reordered":
        wrt = tuple(reversed(m.coordinates))
    model = m._model
    linear = model.transfer_for(wrt)
    assert isinstance(linear, LinearTransfer)
    move = np.random.default_rng(1).normal(size=(3, linear.size)) @ linear.linear.A.T
    states = integrate(model.tree, model.reference_state.repeat(3, 0), 0.4 * move)
    return m, linear, model.transfer(linear.names), states


@pytest.mark.parametrize("case", CASES)
def test_both_roads_agree_to_third_order(case: str) -> None:
    m, linear, system, states = prepared(case)
    model, count = m._model, len(states)
    names = (*(p.name for p in m.points), *(b.name for b in m.bodies), *(d.name for d in m.distances))
    names += tuple(j.name for j in m.joints if j.dof)
    tables = []
    for transfer in (linear, system):
        found = model.program(transfer, names, 3, lay.WANT_INERTIA | lay.WANT_LOADS).run(states)
        tables.append((*found.arrays, *found.model))
        assert (not len(found.quality)) == (transfer is linear)
    for found, expected in zip(*tables, strict=True):
        assert found.shape == expected.shape
        assert mismatch(found, expected) < 1e-12
    for found, expected in zip(linear.jets(states, 3), system.jets(states, 3), strict=True):
        assert mismatch(found, expected) < 1e-12
    qd = np.random.default_rng(2).normal(size=(count, linear.size))
    assert mismatch(linear.tree_rates(states, qd), system.tree_rates(states, qd)) < 1e-13
    error = np.ones(model.tree.size)
    assert mismatch(linear.inertia_error(error, states), system.inertia_error(error, states)) < 1e-12
    assert (linear.coordinate_scale == system.coordinate_scale).all()
    assert linear.quasi == system.quasi


@pytest.mark.slow_for("hand")
@pytest.mark.parametrize("case", ["bevel-wrist", "scara", "hand", "turning hand"])
def test_couplings_project_the_mechanism_without_them(case: str) -> None:
    """G A and AᵀI A with A of the couplings, computed from their equations alone."""
    m, linear, _, states = prepared(case)
    tree, A = m._model.tree, linear.linear.A
    for terms in m._terms.values():
        row = np.zeros(tree.size)
        for name, ratio in terms:
            row[tree.column[name]] = ratio
        assert np.abs(row @ A).max() < 1e-14 * np.abs(row).max()
    free = replace(m, couplings=[], coordinates=None)._model
    there = np.zeros_like(states)
    for n, name in enumerate(tree.columns):
        here, other = tree.cols[n, lay.STATE], free.tree.cols[free.tree.column[name], lay.STATE]
        if here >= 0:  # a ball joint has four entries
            width = 4 if n in tree.balls else 1
            there[:, other : other + width] = states[:, here : here + width]
    c, without = Configuration(m._model, (len(states),), states), Configuration(free, (len(states),), there)
    by_column = [without.coordinates.index(name) for name in tree.columns]
    of = [p.name for p in m.points] + [b.name for b in m.bodies]
    u, v = c.coefficients(of, order=3, wrt=linear.names), without.coefficients(of, order=3)
    d, e = c.dynamics(wrt=linear.names), without.dynamics()

    def in_columns(X: np.ndarray, rank: int) -> np.ndarray:
        for axis in range(-rank, 0):
            X = X.take(by_column, axis=axis)
        return X

    G, H, D, I, P = (in_columns(X, k) for X, k in ((v.G, 1), (v.H, 2), (v.D, 3), (e.I, 2), (e.P, 3)))
    assert mismatch(u.G, G @ A) < 1e-13
    assert mismatch(u.H, np.einsum("bpmn,ma,nc->bpac", H, A, A)) < 1e-13
    assert mismatch(u.D, np.einsum("bplmn,lz,ma,nc->bpzac", D, A, A, A)) < 1e-12
    assert mismatch(d.I, A.T @ I @ A) < 1e-13
    assert mismatch(d.P, np.einsum("bkmn,kz,ma,nc->bzac", P, A, A, A)) < 1e-12
    assert mismatch(d.load, e.load[:, by_column] @ A) < 1e-13


def test_orders_by_complex_step() -> None:
    m, linear, _, states = prepared("turning hand")
    c = Configuration(m._model, (), states[:1])
    check_orders(c, ["tip", "plug", "grip"], linear.names)
    check_inertia(c, linear.names)


def test_angles_of_bodies_in_a_plane() -> None:
    """In absolute angles the mass matrix of a planar arm is that of pendulums: no coupling by rates."""
    m = chain()
    names = tuple(f"{body.name}.angle" for body in m.bodies)
    transfer = m._model.transfer_for(names)
    assert isinstance(transfer, LinearTransfer)
    assert np.abs(np.linalg.inv(transfer.linear.A) - np.tri(len(names))).max() < 1e-14
    c, system = m.at(), m._model.transfer(names)
    I, P = m._model.program(system, want=lay.WANT_INERTIA).run(c._states).model
    d = c.dynamics(wrt=names)
    assert mismatch(d.I, I[0]) < 1e-13
    assert np.abs(d.P - P[0]).max() < 1e-13 * np.abs(P).max()


def test_other_coordinates_solve_a_system() -> None:
    wrist = kic.load("bevel-wrist")
    assert isinstance(wrist._model.transfer_for(None), LinearTransfer)
    for wrt in (("tip.y", "drive2", "drive3"), ("finger.x", "finger.y", "finger.z")):
        assert type(wrist._model.transfer_for(wrt)) is CoordinateTransfer
    loops = kic.load("geared-five-bar")
    assert type(loops._model.transfer_for(None)) is CoordinateTransfer
    # coordinates that cannot drive the wrist raise the same error as before
    with pytest.raises(kic.SingularError) as caught:
        wrist.at().dynamics(wrt=("drive2", "drive1", "pitch"))
    assert caught.value.coordinates == ("drive2", "drive1", "pitch")


def test_simulations_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    m = hand(False)
    start, span = {"base": 0.1, "A1": 0.2, "B1": 0.3}, 0.5
    runs = []
    for linear in (True, False):
        if not linear:
            monkeypatch.setattr(CoordinateTransfer, "linear_map", None)
        fresh = replace(m)
        run = fresh.simulate(span, near=fresh.at(start), integrator=kic.Integrator(rtol=1e-10, atol=1e-12))
        runs.append(run)
        assert isinstance(fresh._model.transfer_for(None), LinearTransfer) == linear
    one, two = (run.state[-1] for run in runs)
    assert np.abs(one - two).max() < 1e-8


def test_terms_of_a_map() -> None:
    A = np.array([[0.0, 0.0], [2.0, 0.0], [3.0, -1.0]])
    linear = LinearMap(A)
    assert linear.terms[:, :2].tolist() == [[0, -1], [0, -1], [0, 3], [1, -1]]
    assert linear.factors[:, 0].tolist() == [0.0, 2.0, 3.0, -1.0]
    assert not linear.A.flags.writeable
