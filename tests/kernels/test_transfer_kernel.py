"""The transfer kernel against the written-out composition, frame by frame; closure rows as outputs."""

from __future__ import annotations

import numpy as np
import pytest
from sampling import STEP, compose, mismatch, moved, random_posture, random_tree

import kic
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import closure_items
from kic.kinematics.items import heights
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import output_query
from kic.kinematics.state import states_of
from kic.mechanism.configuration import Configuration

# trees and what they are seen from: true coordinates (places, joints) and rates (turnings) of bodies
TREES = {
    "true": ("RPRRPR", False, ["b5.x", "b5.y", "j1", "b2.z", "b4.y", "j5"]),
    "turnings": ("RRRRPR", False, ["b5"]),
    "branched": ("RRRR", True, ["b3.x", "j0", "j1", "j2"]),
    "ball": (["R", "spherical", "R"], False, ["b1.x", "b2.y", "b2.wx", "b2.wz", "b2.z"]),
    "ball, true": (["R", "spherical", "R"], False, ["j0", "b1.x", "b1.y", "b2.z", "j2"]),
    "free": (["free", "P", "spherical"], True, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", TREES)
def test_rows_in_other_coordinates(name: str, order: int) -> None:
    """Any rows in any coordinates, by the kernel and by inverting and composing Coefficients."""
    kinds, branched, wrt = TREES[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        m = random_tree(rng, kinds, branched)
        c = random_posture(rng, m, (2,))
        if wrt is None:  # all places and turnings of bodies that hang on the tree's branches
            wrt = [f"{m.bodies[0].name}.{x}" for x in ("x", "y", "z", "wx", "wy", "wz")] + ["j1", "j2"]
        of = [m.bodies[-1].name, "gap", *(j.name for j in m.joints if j.dof), "p0.x"]
        rows, chosen = c.coefficients(of, order=3), c.coefficients(wrt, order=3)
        inverse = chosen.inverse()
        found = c.coefficients(of, order=order, wrt=wrt)
        assert np.allclose(found.values, rows.values, rtol=1e-14, atol=1e-14, equal_nan=True)
        for b in range(2):
            parts = [rows.G[b], rows.H[b], rows.D[b], inverse.G[b], inverse.H[b], inverse.D[b]]
            want = compose(*parts)
            condition = np.linalg.cond(chosen.G[b])
            for k in range(order):
                allowed = max(1e-12, 100 * np.finfo(float).eps * condition ** (k + 1))
                assert mismatch((found.G, found.H, found.D)[k][b], want[k]) < allowed


@pytest.mark.parametrize("name", TREES)
def test_inertia_in_other_coordinates(name: str) -> None:
    """I*_q = Aᵀ I* A and P*_q[k, a, b] = A_ik (P*_imn A_ma A_nb + I*_in B_nab)."""
    kinds, branched, wrt = TREES[name]
    rng = np.random.default_rng(5)
    m = random_tree(rng, kinds, branched)
    c = random_posture(rng, m)
    if wrt is None:
        wrt = [f"{m.bodies[0].name}.{x}" for x in ("x", "y", "z", "wx", "wy", "wz")] + ["j1", "j2"]
    chosen = c.coefficients(wrt)
    inverse, d, found = chosen.inverse(), c.dynamics(), c.dynamics(wrt=wrt)
    A, B = inverse.G, inverse.H
    want_p = np.einsum("ik,imn,ma,nb->kab", A, d.P, A, A) + np.einsum("ik,in,nab->kab", A, d.I, B)
    allowed = max(1e-12, 100 * np.finfo(float).eps * np.linalg.cond(chosen.G) ** 2)
    assert mismatch(found.I, A.T @ d.I @ A) < allowed
    assert mismatch(found.P, want_p) < allowed
    assert mismatch(found.load, A.T @ d.load) < allowed
    shares = c.body_contributions(wrt=wrt)
    assert mismatch(shares.I_linear.sum(axis=0) + shares.I_angular.sum(axis=0), found.I) < allowed


def poisoned(shape: object, dtype: object = float) -> np.ndarray:
    """Return a new array whose entries, if they are numbers, are NaN."""
    return np.full(shape, 0 if np.dtype(dtype).kind in "iub" else np.nan, dtype)


# branched trees and coordinates other than those of the tree
BRANCHES = {
    "hinges": ("RRPRRRP", None),
    "hinges, other coordinates": ("RRPRRRP", ["b2.x", "j0", "j1", "j3", "j4", "j5", "j6"]),
    "balls": (["R", "spherical", "R", "P", "spherical", "R"], None),
    "free": (["free", "R", "R", "spherical"], ["b0", "j1", "j2", "j3"]),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_rows_of_one_branch_equal_those_among_all_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of other branches are not computed: rows alone are those among all, whatever scratch holds."""
    kinds, wrt = BRANCHES[name]
    omitted = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        m = random_tree(rng, kinds, branched=True)
        c = random_posture(rng, m, (2,))
        of = [*(b.name for b in m.bodies), "gap", *(j.name for j in m.joints if j.dof), "p0.x"]
        with monkeypatch.context() as patch:
            patch.setattr(np, "empty", poisoned)
            whole = c.coefficients(of, order=3, wrt=wrt)
            rates = rng.normal(size=(3, 2, whole.G.shape[-1]))
            motion = c.motion(of, *rates, wrt=wrt)
            start = 0
            for one in of:
                part = c.coefficients([one], order=3, wrt=wrt)
                rows = slice(start, start + part.G.shape[-2])
                assert np.array_equal(part.G, whole.G[:, rows])
                assert np.array_equal(part.H, whole.H[:, rows])
                assert np.array_equal(part.D, whole.D[:, rows])
                alone = c.motion([one], *rates, wrt=wrt)
                for k in range(4):
                    assert np.array_equal(alone[k], motion[k][:, rows], equal_nan=True)
                start = rows.stop
        cols = m._model.rows("b0", 2).plan[lay.HEADER : lay.HEADER + m._model.tree.size]
        omitted += int((cols[:, lay.GROUP] == lay.NO_FRAME).sum())
    assert omitted > 0


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
    assert m.mobility().cuts == ("cut",)
    model = m._model
    items = closure_items(model.tree, m.joints[-1])
    assert sum(heights(items)) == ROWS[kind]
    if not items:
        return
    rows = plain_rows(model.tree, items)

    def evaluate(states, order):
        question = output_query(model.tree, rows, order)
        return question.arrays(states)

    drawn = {c: v for j in m.joints for c, v in zip(j.components, j.value, strict=True)}
    home = np.array([[drawn[c] for c in m.coordinates]])
    values = evaluate(states_of(model.tree, home), 1)[0]
    assert np.abs(values).max() < 1e-13
    c = Configuration(model, (), states_of(model.tree, home + rng.normal(size=home.shape)))
    exact = evaluate(c._states, 3)
    for k in range(3):
        steps = [evaluate(moved(c, e[None])._states, max(k, 1))[k][0] for e in np.eye(home.size)]
        want = np.stack(np.imag(steps) / STEP, axis=1)
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

    assert four_bar(["A"]).mobility().cuts == ("D",)
    assert four_bar(["D", "C"]).mobility().cuts == ("B",)
    assert four_bar(["A"], ("revolute", "spherical", "revolute", "revolute")).mobility().cuts == ("B",)
    assert four_bar(["B", "A"], ("revolute", "spherical", "revolute", "revolute")).mobility().cuts == ("D",)
