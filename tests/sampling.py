"""Random mechanisms and their derivatives by complex step, shared by the tests."""

from __future__ import annotations

import numpy as np

import kic
from kic.kernels import layout as lay
from kic.mechanism.configuration import Configuration

STEP = 1e-40
# central differences of sixth order
OFFSETS, WEIGHTS = np.array([-3, -2, -1, 1, 2, 3]), np.array([-1, 9, -45, 45, -9, 1]) / 60
# directions of the angle of random trees
TILTED = (1.0, 2.0, -1.0), (2.0, 1.0, 0.5)


def random_body(rng: np.random.Generator, name: str) -> kic.Body:
    """Return a body with a physically valid inertia."""
    a = rng.normal(size=(5, 3))
    mass = rng.uniform(0.5, 2, size=5)
    com = mass @ a / mass.sum()
    r = a - com
    inertia = np.einsum(
        "p,pij->ij", mass, np.eye(3) * (r**2).sum(-1)[:, None, None] - r[:, :, None] * r[:, None]
    )
    return kic.Body(name, mass=mass.sum(), com=tuple(com), inertia=tuple(map(tuple, inertia)))


def random_joint(rng: np.random.Generator, name: str, kind: str, parent: str, child: str) -> kic.Joint:
    """Return a joint at a random position, with its two bodies in random order."""
    axis = rng.normal(size=3)
    second = np.cross(axis, rng.normal(size=3))
    pair = (parent, child) if rng.random() < 0.5 else (child, parent)
    two = kind in ("universal", "planar")
    one = two or kind in ("revolute", "prismatic", "cylindrical")
    values = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2, "planar": 3}.get(kind, 0)
    return kic.Joint(
        name,
        kind,
        pair,
        at=None if kind == "fixed" else tuple(rng.normal(size=3)),
        axis=tuple(axis) if one else None,
        axis2=tuple(second) if two else None,
        value=tuple(rng.normal(size=values)) if values else 0.0,
    )


def random_tree(
    rng: np.random.Generator, kinds: list[str] | str, branched: bool = False, loads: bool = False
) -> kic.Mechanism:
    """Return an open mechanism with a joint of each kind; R and P stand for revolute and prismatic."""
    words = {"R": "revolute", "P": "prismatic"}
    bodies, joints = [], []
    names = ["ground"]
    for n, kind in enumerate(kinds):
        parent = names[rng.integers(len(names))] if branched else names[-1]
        child = f"b{n}"
        joints.append(random_joint(rng, f"j{n}", words.get(kind, kind), parent, child))
        bodies.append(random_body(rng, child))
        names.append(child)
    points = [kic.Point(f"p{n}", f"b{n}", at=tuple(rng.normal(size=3))) for n in range(len(kinds))]
    points.append(kic.Point("post", "ground", at=tuple(rng.normal(size=3))))
    last = points[-2].name
    extra = {}
    if loads:
        points.append(kic.Point("lump", "b0", at=tuple(rng.normal(size=3)), mass=0.7))
        extra = {
            "forces": [
                kic.Force("push", last, tuple(rng.normal(size=3))),
                kic.Force("thrust", "p0", tuple(rng.normal(size=3)), axes="body"),
            ],
            "moments": [
                kic.Moment("twist", f"b{len(kinds) - 1}", tuple(rng.normal(size=3)), axes="body"),
                kic.Moment("wrench", "b0", tuple(rng.normal(size=3))),
            ],
            "springs": [
                kic.Spring("coil", (last, "post"), stiffness=3.0, rest=0.4, damping=0.5),
                kic.Spring("rubber", ("lump", "post"), stiffness=2.0),
            ],
        }
    return kic.Mechanism(
        "random",
        bodies,
        joints,
        points=points,
        distances=[
            kic.Distance("gap", (last, "post")),
            kic.Distance("off", (last, "post"), axis=(1, 2, 3)),
            kic.Distance("beside", ("post", last), axis=(1, -1, 2)),
        ],
        angles=[kic.Angle("tilt", (names[1], points[-2].body if len(kinds) > 1 else "ground"), *TILTED)],
        gravity=tuple(rng.normal(size=3)),
        **extra,
    )


def random_posture(
    rng: np.random.Generator, mechanism: kic.Mechanism, batch: tuple[int, ...] = ()
) -> Configuration:
    """Return a configuration with random coordinates."""
    return mechanism.at(rng.normal(size=(*batch, len(mechanism.coordinates))))


def moved(c: Configuration, rates: np.ndarray, step: complex = 1j * STEP) -> Configuration:
    """Return the configuration after a step along rates (B, M) of the tree's columns, to first order."""
    tree = c._model.tree
    states = c._states.astype(complex)
    for n in range(tree.size):
        entry = tree.cols[n, lay.STATE]
        if n in tree.balls:  # q' = (1, ½ e) q: a rotation about axes of the first body
            q, e = c._states[:, entry : entry + 4], step / 2 * rates[:, n : n + 3]
            w, v = q[:, :1], q[:, 1:]
            change = [-(v * e).sum(axis=1, keepdims=True), w * e + np.cross(e, v)]
            states[:, entry : entry + 4] += np.concatenate(change, axis=1)
        elif entry >= 0:
            states[:, entry] += step * rates[:, n]
    return Configuration(c._model, c.batch, states)


def tree_rates(c: Configuration, wrt=None) -> np.ndarray:
    """Return the rates (B, M_tree, M) of the tree's columns for each coordinate."""
    return c._model.transfer_for(wrt).jets(c._states, 1)[0]


def derivative(c: Configuration, question, wrt=None) -> np.ndarray:
    """Return the derivative of an array-valued function along every coordinate, as the last axis."""
    A = tree_rates(c, wrt)
    parts = [np.imag(question(moved(c, A[..., k]))) / STEP for k in range(A.shape[-1])]
    return np.stack(parts, axis=-1)


def effort_gradient(c: Configuration, v: np.ndarray, a: np.ndarray, wrt=None, **more) -> np.ndarray:
    """Return ∂T/∂q (..., M, M) at constant rates and accelerations."""
    return derivative(c, lambda x: x.dynamics(wrt=wrt, **more).inverse_dynamics(v, a), wrt)


def stepped(c: Configuration, wrt=None) -> Configuration:
    """Return configurations (M, ...) after a complex step along each coordinate, closed to first order."""
    A = np.moveaxis(tree_rates(c, wrt), -1, 0)
    whole = Configuration(c._model, (len(A), *c.batch), np.tile(c._states, (len(A), 1)))
    return moved(whole, A.reshape(-1, A.shape[-1]))


def check_orders(c: Configuration, of, wrt=None, limit: float = 1e-12, exact=None) -> None:
    """Require that G, H and D are the complex steps of the values, G and H, tensor by tensor.

    Rows without values, such as angular velocities, have no reference for G. `exact` are coefficients that
    stand for those of the rows `of`.
    """
    exact = exact or c.coefficients(of, order=3, wrt=wrt)
    below = stepped(c, wrt).coefficients(of, order=2, wrt=wrt)
    valued = np.isfinite(exact.values).all(axis=tuple(range(len(c.batch))))
    # the differentiating index comes first, after the row
    first, *others = (np.moveaxis(x.imag / STEP, 0, len(c.batch) + 1) for x in (below.values, *below.tensors))
    assert mismatch(first[..., valued, :], exact.G[..., valued, :]) < limit
    assert mismatch(others[0], exact.H) < limit
    assert mismatch(others[1], exact.D) < limit


def check_inertia(c: Configuration, wrt=None, limit: float = 1e-12) -> None:
    """Require that I* varies along each coordinate by the Coriolis matrix and its transpose."""
    d = c.dynamics(wrt=wrt)
    slope = derivative(c, lambda x: x.dynamics(wrt=wrt).I, wrt)
    C = np.stack([d.coriolis(e) for e in np.eye(slope.shape[-1])], axis=-1)
    allowed = limit * max(np.abs(d.P).max(initial=0.0), np.abs(d.I).max(initial=0.0))
    assert np.abs(slope - C - C.swapaxes(-2, -3)).max(initial=0.0) <= allowed
    if d.holonomic:
        assert np.abs(slope - d.inertia_gradient()).max(initial=0.0) <= allowed


def solved(A: np.ndarray) -> float:
    """Return an error bound for solving a system A (..., n, n), from its condition number."""
    return max(1e-12, 100 * float(np.finfo(float).eps * np.linalg.cond(A).max(initial=1.0)))


def mismatch(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference over the largest entry."""
    assert a.shape == b.shape, (a.shape, b.shape)
    if a.size == 0:
        return 0.0
    return (
        float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))
        if np.abs(b).max() > 0
        else float(np.abs(a).max())
    )


def agree(a: object, b: object, letters: str | tuple[str, ...] = "GHD", limit: float = 1e-12) -> bool:
    """Return True if tensors of two results are alike, relative to their largest entries."""
    return all(mismatch(getattr(a, x), getattr(b, x)) < limit for x in letters)


def compose(G, H, D, A, B, C):
    """Return G, H and D of u(φ(q)) by the chain rule, from those of u (G, H, D) and of φ (A, B, C)."""
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
