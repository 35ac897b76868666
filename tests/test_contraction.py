"""Kernels that contract with other coordinates, against the composition written out."""

from __future__ import annotations

import numpy as np
import pytest
from sampling import derivative, mismatch, random_posture, random_tree

import kic
from kic.configuration import Configuration
from kic.cuts import closure_items
from kic.kinematics import InertiaQuestion, RowsQuestion
from kic.posture import states_of
from kic.rows import make_rows, plain_rows

SIZES = [1, 2, 6]


def compose(G, H, D, A, B, C):
    """u(φ(q)) to third order, by the design's three lines."""
    e = np.einsum
    return (
        e("pn,na->pa", G, A),
        e("pmn,ma,nb->pab", H, A, A) + e("pn,nab->pab", G, B),
        e("plmn,lc,ma,nb->pcab", D, A, A, A)
        + e("pmn,mca,nb->pcab", H, B, A)
        + e("pmn,ma,ncb->pcab", H, A, B)
        + e("pln,lc,nab->pcab", H, A, B)
        + e("pn,ncab->pcab", G, C),
    )


def contracted(c: Configuration, of: list[str], A, B, C, order: int):
    model, size = c._model, A.shape[-1]
    question = RowsQuestion(model.tree, make_rows(model.tree, of), order, size)
    count = len(c._states)
    X = np.concatenate(
        [np.zeros((count, len(A[0]))), *(t.reshape(count, -1) for t in (A, B, C)[:order])], axis=1
    )
    return question.split(question.table(c._states, np.ascontiguousarray(X)), (count,))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("kinds", "branched"),
    [("RPRRPR", False), ("RRRR", True), (["R", "spherical", "R"], False), (["free", "P", "spherical"], True)],
    ids=str,
)
def test_rows(kinds, branched: bool, size: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        m = random_tree(rng, kinds, branched)
        c = random_posture(rng, m, (2,))
        mobile = c._model.tree.size
        shape = (2, mobile)
        A, B, C = (rng.normal(size=(*shape, *(size,) * k)) for k in (1, 2, 3))
        of = [m.bodies[-1].name, "gap", *(j.name for j in m.joints if j.freedoms), "p0.x"]
        own = c._model.rows(tuple(of), 3)
        values, *tensors = own.split(own.table(c._states), (2,))
        for order in (1, 2, 3):
            found = contracted(c, of, A, B, C, order)
            assert np.array_equal(found[0], values)
            for b in range(2):
                want = compose(*(t[b] for t in tensors), A[b], B[b], C[b])
                for k in range(order):
                    assert mismatch(found[k + 1][b], want[k]) < 1e-12


def test_with_the_identity_it_is_the_tree_s_own() -> None:
    rng = np.random.default_rng(1)
    m = random_tree(rng, ["R", "spherical", "P", "R"], branched=True)
    c = random_posture(rng, m, (3,))
    size = c._model.tree.size
    A = np.broadcast_to(np.eye(size), (3, size, size))
    B, C = np.zeros((3, *(size,) * 3)), np.zeros((3, *(size,) * 4))
    of = [m.bodies[-1].name, "gap"]
    found = contracted(c, of, A, B, C, 3)
    own = c.coefficients(of, order=3)
    for k, t in enumerate((own.G, own.H, own.D)):
        assert mismatch(found[k + 1], t) < 1e-13


@pytest.mark.parametrize("kinds", ["RPRR", ["R", "spherical", "R"], ["free", "R", "P"]], ids=str)
def test_inertia(kinds) -> None:
    """I*_q = Aᵀ I* A and P*_q[k, a, b] = A_ik (P*_imn A_ma A_nb + I*_in B_nab)."""
    for seed, size in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        m = random_tree(rng, kinds, branched=True)
        c = random_posture(rng, m)
        tree, masses = c._model.tree, c._model.masses
        A, B = (rng.normal(size=(tree.size, *(size,) * k)) for k in (1, 2))
        X = np.concatenate([np.zeros(tree.size), A.ravel(), B.ravel()])[None]
        T = InertiaQuestion(tree, masses, size).table(c._states, X)
        d = c.dynamics()
        if tree.to_coordinates is not None:  # the model of `d` is in the order of the coordinates
            A, B = A[tree.to_coordinates], B[tree.to_coordinates]
        want_i = A.T @ d.I @ A
        want_p = np.einsum("ik,imn,ma,nb->kab", A, d.P, A, A) + np.einsum("ik,in,nab->kab", A, d.I, B)
        assert mismatch(T[0, : size**2].reshape(size, size), want_i) < 1e-12
        assert mismatch(T[0, size**2 :].reshape(size, size, size), want_p) < 1e-12


CLOSURES = ["revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "fixed", "free"]
ROWS = {
    "revolute": 5,
    "prismatic": 5,
    "cylindrical": 4,
    "universal": 4,
    "spherical": 3,
    "planar": 3,
    "fixed": 6,
    "free": 0,
}


def loop(rng: np.random.Generator, kind: str) -> kic.Mechanism:
    """A spatial loop cut at its joint of the given kind."""
    open_chain = random_tree(rng, ["R", "spherical", "P", "R", "R"])
    v = rng.normal(size=(3, 3))
    two = kind in ("universal", "planar")
    cut = kic.Joint(
        "cut", kind, ("b4", "ground"),
        at=None if kind == "fixed" else tuple(v[0]),
        axis=tuple(v[1]) if kind in ("revolute", "prismatic", "cylindrical", "universal", "planar") else None,
        axis2=tuple(np.cross(v[1], v[2])) if two else None,
    )  # fmt: skip
    return kic.Mechanism(
        "loop", open_chain.bodies, (*open_chain.joints, cut), coordinates=[j.name for j in open_chain.joints]
    )


@pytest.mark.parametrize("kind", CLOSURES)
def test_closure_rows_are_rows(kind: str) -> None:
    """Conditions of a cut joint vanish as drawn, and are exact to third order anywhere."""
    rng = np.random.default_rng(7)
    m = loop(rng, kind)
    assert m.cuts == ("cut",)
    model = m._model
    items = closure_items(model.tree, m.joints[-1])
    assert sum(item.height for item in items) == ROWS[kind]
    if not items:
        return
    rows = plain_rows(model.tree, items)

    def evaluate(states, order):
        question = RowsQuestion(model.tree, rows, order)
        return question.split(question.table(states), (len(states),))

    drawn = {c: v for j in m.joints for c, v in zip(j.components, j.value, strict=True)}
    home = np.array([[drawn[c] for c in m.coordinate_names]])
    values = evaluate(states_of(model.tree, home), 1)[0]
    assert np.abs(values).max() < 1e-13
    c = Configuration(model, (), states_of(model.tree, home + rng.normal(size=home.shape)))
    exact = evaluate(c._states, 3)
    for k in range(3):
        steps = derivative(c, lambda x, k=k: evaluate(x._states, max(k, 1))[k][0])
        want = np.moveaxis(steps, -1, 1)
        assert mismatch(want, exact[k + 1][0]) < 1e-12


def test_the_tree_keeps_named_joints_and_cuts_the_loosest() -> None:
    def four_bar(coordinates, kinds=("revolute",) * 4):
        at = [(0, 0, 0), (0, 1, 0), (2, 1, 0), (2, 0, 0)]
        bodies = ["ground", "a", "b", "c"]
        joints = [
            kic.Joint(
                "ABCD"[k], kinds[k], (bodies[k], bodies[(k + 1) % 4]), at=at[k],
                axis=None if kinds[k] == "spherical" else (0, 0, 1),
            )
            for k in range(4)
        ]  # fmt: skip
        return kic.Mechanism("four-bar", [kic.Body(b) for b in bodies[1:]], joints, coordinates=coordinates)

    assert four_bar(["A"]).cuts == ("D",)
    assert four_bar(["D", "C"]).cuts == ("B",)
    assert four_bar(["A"], ("revolute", "spherical", "revolute", "revolute")).cuts == ("B",)
    assert four_bar(["B", "A"], ("revolute", "spherical", "revolute", "revolute")).cuts == ("D",)
