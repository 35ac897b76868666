"""Each function of the indices of equations computes its equations: numerically, on random chains and loops.

A check writes the equations with `einsum`, from tensors that other tests compare with complex steps. It runs
with interpreted kernels, so that the indexed function, compiled or not, is known to take part in the result.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from appendix_tables import DATA, OPEN_W, PLATE, TABLES, agrees, entries
from arms import arm, frames
from equation_index import INDEX, find
from interpreted import interpreted
from sampling import derivative, mismatch, random_tree

import kic
from kic.classics import WristPartitioned

E = np.einsum
QD, QDD, QDDD = np.array([0.7, -0.4, 0.9]), np.array([0.3, 1.1, -0.6]), np.array([-0.2, 0.5, 0.8])
Row = tuple[str, str]
CHECKS: dict[Row, Callable[[], None]] = {}


def computes(path: str, *cited: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a check for rows of the index."""

    def register(check: Callable[[], None]) -> Callable[[], None]:
        CHECKS.update({(text, f"kic.{path}"): check for text in cited})
        return check

    return register


def close(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    assert mismatch(np.asarray(found), np.asarray(wanted)) < tolerance


# --- mechanisms ---------------------------------------------------------------------------------------------

U, Q = ["p1", "b2.wx", "b2.wy"], ["p2"]


@cache
def chain(kinds: str = "RPR") -> kic.Configuration:
    """Return a random chain with springs and applied loads."""
    m = random_tree(np.random.default_rng(4), kinds, loads=True)
    return m.at([0.3, 0.2, -0.4])


@cache
def loop() -> tuple[kic.Configuration, kic.Configuration, np.ndarray]:
    """Return a five-bar, the same chain with joint D open, and the rows of the closure in its points."""
    m = kic.load("five-bar")
    rng = np.random.default_rng(1)
    bodies = tuple(
        replace(b, mass=rng.uniform(1, 2), com=(*rng.normal(size=2), 0.0), inertia=rng.uniform(1, 2, size=3))
        for b in m.bodies
    )
    m = replace(m, bodies=bodies, gravity=(0.4, -9.0, 0.0))
    joint = next(j for j in m.joints if j.name == m.mobility().cuts[0])
    ends = tuple(kic.Point(f"end{k}", body, at=joint.at) for k, body in enumerate(joint.bodies))
    rest = tuple(j for j in m.joints if j is not joint)
    opened = replace(m, joints=rest, points=(*m.points, *ends), coordinates=None, actuators=None)
    c = m.at({"A": 1.4, "E": 1.3})
    columns = [opened.coordinates.index(name) for name in c._model.tree.columns]
    phi = np.empty(4)
    phi[columns] = c._phi
    return c, opened.at(phi), np.array([0, 1])


def system(u: Any = "tip") -> tuple[Any, ...]:
    """Return K = [G^w]⁻¹ (4-18), H^w, tensors of u and the open dynamics; w = (A, E, closure in x and y)."""
    _, o, planar = loop()
    s = o.coefficients(["A", "E"], order=3)
    e0, e1 = (o.coefficients(f"end{k}", order=3) for k in (0, 1))
    G, H, D = (
        np.concatenate([getattr(s, t), (getattr(e0, t) - getattr(e1, t))[planar]]) for t in ("G", "H", "D")
    )
    return np.linalg.inv(G), H, D, o.coefficients(u, order=3), o.dynamics()


def transferred(u: kic.Coefficients, K: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (3-22) and (3-26)."""
    return u.G @ K, E("pmn,ma,nb->pab", u.H - E("pk,ki,imn->pmn", u.G, K, H), K, K)


def moved_dynamics(
    d: kic.Dynamics, K: np.ndarray, H: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (3-34) to (3-36)."""
    I = K.T @ d.I @ K
    P = E("ik,imn,ma,nb->kab", K, d.P, K, K) - E("kp,pmn,ma,nb->kab", I, H, K, K)
    return I, P, K.T @ d.load


def same_dynamics(d: kic.Dynamics, I: np.ndarray, P: np.ndarray, load: np.ndarray, v: np.ndarray) -> None:
    """Compare; kic's P* is symmetric in its last indices, the source's is not."""
    close(d.I, I)
    close(E("kab,a,b->k", d.P, v, v), E("kab,a,b->k", P, v, v))
    close(d.load, load)


# --- Chapter II ---------------------------------------------------------------------------------------------


@computes("Coefficients", "(2-5) to (2-6)", "(2-17)", "(2-42)", "(3-6) to (3-7)")
def _() -> None:
    u = chain().coefficients(U, order=3)
    close(u[["p1"]].G, derivative(chain(), lambda c: c.value("p1")))
    H = derivative(chain(), lambda c: c.coefficients(U, order=1).G)
    D = derivative(chain(), lambda c: c.coefficients(U, order=2).H)
    close(u.H, np.moveaxis(H, -1, 1))
    close(u.D, np.moveaxis(D, -1, 1))


@computes("Coefficients.velocity", "(2-7) to (2-10)", "(3-8)")
def _() -> None:
    q = chain().coefficients(Q)
    close(q.velocity(QD), derivative(chain(), lambda c: c.value("p2")) @ QD)


@computes("Coefficients.acceleration", "(2-11) to (2-27)", "(3-4)", "(3-9)")
def _() -> None:
    q = chain().coefficients(Q)
    rate = derivative(chain(), lambda c: c.coefficients(Q, order=1).G @ QD) @ QD
    close(q.acceleration(QD, QDD), q.G @ QDD + rate)


@computes("Coefficients.jerk", "(2-28) to (2-44)", "(3-43) to (3-44)")
def _() -> None:
    u = chain().coefficients(U, order=3)
    value = derivative(chain(), lambda c: c.coefficients(U, order=2).acceleration(QD, QDD)) @ QD
    along = E("pmn,m,n->p", u.H, QDD, QD) + E("pmn,m,n->p", u.H, QD, QDD)
    close(u.jerk(QD, QDD, QDDD), value + along + u.G @ QDDD)


@computes("products.form", "(2-20), (2-35), (2-43)")
def _() -> None:
    c, form = chain(), kic.products.form
    u = c.coefficients(U, order=3)
    close(form(u.H, None, QD), derivative(c, lambda x: x.coefficients(U, order=1).velocity(QD)))
    # exact differences, because accelerations are quadratic in the rates
    changes = [(u.acceleration(QD + e, QDD) - u.acceleration(QD - e, QDD)) / 2 for e in np.eye(3)]
    close(form(u.H, QD, None) + form(u.H, None, QD), np.transpose(changes))
    change = derivative(c, lambda x: x.coefficients(U).acceleration(QD, QDD))
    close(form(u.H, None, QDD) + form(u.D, None, QD, QD), change)


@computes("DHRow", "Tables 2-1 to 2-2")
@computes("from_dh", "(2-45) to (2-50)")
@computes("kernels.frames.frames", "(2-45) to (2-50)")
@computes("Configuration.value", "(2-1) to (2-4)")
@computes("Configuration.coefficients", "(2-51) to (2-118)", "Tables 2-3 to 2-5")
def _() -> None:
    rng = np.random.default_rng(7)
    for kinds in ("RPRR", "PRRP"):
        rows = {"types": kinds, **{key: rng.normal(size=4) for key in ("a", "alpha", "s", "theta")}}
        phi, place = rng.normal(size=(2, 4))
        c = arm(rows, hand=place[:3]).at(phi)
        T, R = frames(rows, phi)
        P = R[-1] + T[-1] @ place[:3]
        close(c.value("hand"), P)
        s, zero = [x[:, 2] for x in T], np.zeros(3)
        g = [np.cross(s[n], P - R[n]) if kinds[n] == "R" else s[n] for n in range(4)]
        w = [s[n] if kinds[n] == "R" else zero for n in range(4)]
        H, D, H_w, D_w = (np.zeros((3, *(4,) * k)) for k in (2, 3, 2, 3))
        for l, m, n in product(range(4), repeat=3):
            i, k, q = sorted((l, m, n))
            H[:, m, n] = np.cross(w[min(m, n)], g[max(m, n)])
            D[:, l, m, n] = np.cross(w[i], np.cross(w[k], g[q]))
            H_w[:, m, n] = np.cross(w[m], w[n]) if m < n else zero
            i, k = sorted((l, m))
            D_w[:, l, m, n] = np.cross(w[i], np.cross(w[k], w[n])) if k < n else zero
        hand, spin = (c.coefficients(of, order=3) for of in ("hand", [f"l4.w{x}" for x in "xyz"]))
        for found, tensors in ((hand, (np.transpose(g), H, D)), (spin, (np.transpose(w), H_w, D_w))):
            for one, wanted in zip(found.tensors, tensors, strict=True):
                close(one, wanted)
        assert not c.coefficients([f"l2.w{x}" for x in "xyz"], order=1).G[:, 2:].any()


@computes("kernels.influence.first", "Table 2-3")
def _() -> None:
    u = chain().coefficients(["p2"], order=1)
    close(u.G, derivative(chain(), lambda c: c.value("p2")))


@computes("kernels.influence.second", "Table 2-4")
@computes("kernels.influence.third", "Table 2-5")
def _() -> None:
    m = random_tree(np.random.default_rng(3), ["R", "spherical", "P"])
    c = m.at({"j0": 0.3, "j1": [0.1, -0.2, 0.3], "j2": 0.2})
    u = c.coefficients(["p2", "b2.wx"], order=3)
    close(u.H, np.moveaxis(derivative(c, lambda x: x.coefficients(["p2", "b2.wx"], order=1).G), -1, 1))
    close(u.D, np.moveaxis(derivative(c, lambda x: x.coefficients(["p2", "b2.wx"], order=2).H), -1, 1))


@computes("products.cross", "(2-172)", "(2-190)")
def _() -> None:
    a, b = np.random.default_rng(5).normal(size=(2, 3, 4))
    close(kic.products.cross(a, b[:, 0], order=0), np.stack([np.cross(x, b[:, 0]) for x in a.T], axis=1))
    planes = [np.stack([np.cross(x, y) for y in b.T], axis=1) for x in a.T]
    close(kic.products.cross(a, b), planes)


@computes("products.quadratic", "Appendix A.1")
@computes("products.bilinear", "Appendix A.1")
@computes("products.form", "Appendix A.2")
@computes("products.dot", "Appendix A.3", "Appendix A.4")
def _() -> None:
    rng = np.random.default_rng(6)
    C, L, A = rng.normal(size=(2, 3, 3)), rng.normal(size=(3, 4)), rng.normal(size=(5, 2))
    R, b = rng.normal(size=(3, 2)), rng.normal(size=3)
    close(kic.products.quadratic(C, L), [L.T @ c @ L for c in C])
    close(kic.products.bilinear(C, L, R), [L.T @ c @ R for c in C])
    close(kic.products.form(C, b, b), [b @ c @ b for c in C])
    close(kic.products.dot(A, C), [sum(a * c for a, c in zip(row, C, strict=True)) for row in A])


@computes("Configuration.dynamics", "(2-119) to (2-125)", "(2-147)")
@computes("kernels.loads.virtual_work", "(2-125)")
@computes("kernels.loads.gravity_loads", "(2-147)")
def _() -> None:
    c, f = chain(), np.array([0.3, -0.8, 0.5])
    none = {name: np.zeros(3) for name in ("push", "thrust", "twist", "wrench")}
    loaded, bare = c.dynamics(applied=none | {"push": f}).load, c.dynamics(applied=none).load
    close(loaded - bare, c.coefficients("p2", order=1).G.T @ f)
    light = random_tree(np.random.default_rng(4), "RPR")
    weight = sum(
        b.mass * x.coefficients(f"com{b.name}", order=1).G.T @ np.array(light.gravity)
        for x in [with_centers(light).at(c._phi)]
        for b in light.bodies
    )
    close(light.at(c._phi).dynamics().load, weight)


def with_centers(m: kic.Mechanism) -> kic.Mechanism:
    """Return a mechanism with a point at the centre of mass of each body."""
    return replace(m, points=(*m.points, *(kic.Point(f"com{b.name}", b.name, at=b.com) for b in m.bodies)))


@computes("Dynamics.kinetic_energy", "(2-140)")
def _() -> None:
    d = chain().dynamics()
    close(d.kinetic_energy(QD), QD @ d.I @ QD / 2)


@computes("Dynamics.inverse_dynamics", "(2-145)", "(2-195)", "(2-198)", "(3-5)")
def _() -> None:
    d = chain().dynamics()
    bias = E("kab,a,b->k", d.P, QD, QD) + d.damping @ QD
    close(d.inverse_dynamics(QD, QDD), d.I @ QDD + bias - d.load)


@computes("Dynamics.forward_dynamics", "(2-146)", "(2-199)")
def _() -> None:
    d = chain().dynamics()
    bias = E("kab,a,b->k", d.P, QD, QD) + d.damping @ QD - d.load
    close(d.forward_dynamics(QD, QDDD), np.linalg.solve(d.I, QDDD - bias))
    close(d.inverse_dynamics(QD, d.forward_dynamics(QD, QDDD)), QDDD)


@computes("Configuration.body_contributions", "(2-152) to (2-194)")
@computes("Configuration.inverse_dynamics", "(2-148) to (2-151)")
@computes("kernels.body_contributions.add_link", "(2-157) to (2-158)", "(2-193) to (2-194)")
@computes("Dynamics", "(2-126) to (2-144)", "(2-196) to (2-197)")
@computes("kernels.inertia.rotated_inertia", "(2-164)")
def _() -> None:
    m = with_centers(random_tree(np.random.default_rng(4), "RPR"))
    c = m.at(chain()._phi)
    parts, d = c.body_contributions(), c.dynamics()
    expected, effort = [], 0.0
    for b in m.bodies:
        x = c.coefficients(f"com{b.name}")
        w = c.coefficients([f"{b.name}.{a}" for a in ("wx", "wy", "wz")])
        R = c.pose(b.name).rotation.as_matrix()
        II = R @ np.array(b.inertia) @ R.T
        linear = b.mass * x.G.T @ x.G, b.mass * E("pk,pab->kab", x.G, x.H)
        gyroscopic = E("pa,pq,kqb->kab", w.G, II, kic.products.cross(w.G, w.G))
        expected.append([*linear, w.G.T @ II @ w.G, E("pk,pq,qab->kab", w.G, II, w.H) + gyroscopic])
        omega = w.velocity(QD)
        effort += x.G.T @ (b.mass * x.acceleration(QD, QDD))
        effort += w.G.T @ (II @ w.acceleration(QD, QDD) + np.cross(omega, II @ omega))
    for part, sums in zip(
        ("I_linear", "P_linear", "I_angular", "P_angular"), zip(*expected, strict=True), strict=True
    ):
        close(getattr(parts, part), np.array(sums))
    close(d.I, (parts.I_linear + parts.I_angular).sum(axis=0))
    close(d.kinetic_energy(QD), QD @ d.I @ QD / 2)
    P = (parts.P_linear + parts.P_angular).sum(axis=0)
    close(d.P, (P + P.swapaxes(1, 2)) / 2)
    close(c.inverse_dynamics(QD, QDD, loads=False), effort)


# --- motors -------------------------------------------------------------------------------------------------


@cache
def motor() -> tuple[kic.Configuration, kic.Motor]:
    """Return a four-bar with a motor."""
    m = kic.load("four-bar-motor")
    return m.at({"A": 1.2}), m.motors[0]


def demand() -> kic.results.MotorDemand:
    c, _ = motor()
    return c.motor_demand([6.0], [2.0], [1.0])


@computes("Configuration.motor_demand", "(2-231) to (2-240)")
@computes("dynamics.drive_train.DriveTrain", "(2-232)")
@computes("dynamics.drive_train.DriveTrain.torques", "(2-231)")
@computes("results.MotorDemand", "(2-236)", "(2-238)")
@computes("dynamics.drive_train.DriveTrain.drive", "(2-239)")
def _() -> None:
    (c, one), found = motor(), demand()
    N, v, a = one.ratios[0], np.array([6.0]), np.array([2.0])
    T = c.inverse_dynamics(v, a)
    close(found.speed, N * v)
    close(found.torque, T / N + one.inertia * N * a + one.damping * N * v)
    close(found.current, found.torque / one.torque_constant)
    lin = c.linearize(v, a)
    rate = (lin.rate(np.array([1.0])) / N + one.inertia * N * 1.0 + one.damping * N * a) / one.torque_constant
    close(found.current_rate, rate)
    voltage = one.resistance * found.current + one.speed_constant * found.speed
    close(found.voltage, voltage + one.inductance * rate)


@computes("dynamics.drive_train.DriveTrain.steady_voltages", "(2-240)")
def _() -> None:
    (_, one), found = motor(), demand()
    steady = one.resistance * found.current + one.speed_constant * found.speed
    close(found.voltage - one.inductance * found.current_rate, steady)


@computes("Configuration.dynamics", "(2-237)")
@computes("dynamics.drive_train.DriveTrain.dynamics", "(2-237)")
def _() -> None:
    c, one = motor()
    rotor = c.dynamics(motors=True).I - c.dynamics().I
    close(rotor, one.ratios[0] ** 2 * one.inertia * np.ones((1, 1)), 1e-8)


# --- Chapter III --------------------------------------------------------------------------------------------


@computes("kinematics.jets.invert", "(3-15)", "(3-17) to (3-19)", "(3-47)")
@computes("Coefficients.inverse", "(3-11) to (3-19)", "(3-45) to (3-47)", "(4-39)",
          "(4-42) to (4-44)", "(4-63) to (4-64)")  # fmt: skip
def _() -> None:
    q = chain().coefficients(Q, order=3)
    inverse, K = q.inverse(), np.linalg.inv(q.G)
    close(inverse.G, K)
    close(inverse.H, -E("ip,pab,am,bn->imn", K, q.H, K, K))
    v = inverse.velocity(QD)
    a = K @ (QDD - E("pab,a,b->p", q.H, v, v))
    close(v, K @ QD)
    close(inverse.acceleration(QD, QDD), a)
    known = E("pab,a,b->p", q.H + 2 * q.H.swapaxes(1, 2), a, v) + E("pabc,a,b,c->p", q.D, v, v, v)
    close(inverse.jerk(QD, QDD, QDDD), K @ (QDDD - known))


@computes("kinematics.jets.compose", "(3-22)", "(3-26)")
@computes("Coefficients.compose", "(3-22)", "(3-26)")
def _() -> None:
    q, u = chain().coefficients(Q), chain().coefficients(U)
    found = u.compose(q.inverse())
    for a, b in zip(found.tensors, transferred(u, np.linalg.inv(q.G), q.H), strict=True):
        close(a, b)


@computes("Configuration.coefficients", "(3-1) to (3-2)", "(3-20) to (3-26)", "(3-47)")
@computes("kernels.transferred_influence.first_motion", "(3-20) to (3-22)")
@computes("kernels.transferred_influence.second_motion", "(3-23) to (3-26)")
@computes("kernels.transferred_influence.third_motion", "(3-47)")
def _() -> None:
    q, u = chain().coefficients(Q, order=3), chain().coefficients(U, order=3)
    found = chain().coefficients(U, order=3, wrt=Q)
    for a, b in zip(found.tensors, transferred(u, np.linalg.inv(q.G), q.H), strict=False):
        close(a, b)
    close(found.D, u.compose(q.inverse()).D)
    close(found.velocity(q.velocity(QD)), u.velocity(QD))
    close(found.acceleration(q.velocity(QD), q.acceleration(QD, QDD)), u.acceleration(QD, QDD))


@computes("Configuration.dynamics", "(3-3)", "(3-34) to (3-42)", "(4-3) to (4-5)")
@computes("kernels.newton_euler.inertia_tables", "(3-34) to (3-35)")
@computes("kernels.transfer.chosen_loads", "(3-37) to (3-42)")
def _() -> None:
    q, d = chain().coefficients(Q), chain().dynamics()
    same_dynamics(chain().dynamics(wrt=Q), *moved_dynamics(d, np.linalg.inv(q.G), q.H), QD)
    v, a = q.velocity(QD), q.acceleration(QD, QDD)
    close(q.G.T @ chain().dynamics(wrt=Q).inverse_dynamics(v, a), d.inverse_dynamics(QD, QDD))
    # I* of the open chain, by the kinetic energy along complex steps of its motion
    m = with_centers(random_tree(np.random.default_rng(4), "RPR"))
    c = m.at(chain()._phi)
    energy = 0.0
    for b in m.bodies:
        R = c.pose(b.name).rotation.as_matrix()
        x = c.coefficients(f"com{b.name}", order=1).velocity(QD)
        w = c.coefficients([f"{b.name}.{k}" for k in ("wx", "wy", "wz")], order=1).velocity(QD)
        energy += (b.mass * x @ x + w @ R @ np.array(b.inertia) @ R.T @ w) / 2
    close(QD @ c.dynamics().I @ QD / 2, energy)


@computes("Dynamics.transfer", "(3-29) to (3-36)", "(3-10)",
          "(4-45) to (4-47)", "(4-61) to (4-62)")  # fmt: skip
def _() -> None:
    q, d = chain().coefficients(Q), chain().dynamics()
    found = d.transfer(q.inverse())
    same_dynamics(found, *moved_dynamics(d, np.linalg.inv(q.G), q.H), QD)
    close(q.G.T @ found.load, d.load)


@computes("transfer.coordinate_transfer.CoordinateTransfer.tree_motion", "(3-11) to (3-13)")
def _() -> None:
    q = chain().coefficients(Q)
    transfer = chain()._model.transfer_for(Q)
    v, a = transfer.tree_motion(chain()._states, QD[None], QDD[None])[:2, 0]
    close(v, np.linalg.solve(q.G, QD))
    close(a, np.linalg.solve(q.G, QDD - E("pab,a,b->p", q.H, v, v)))


@computes("transfer.identity.IdentityTransfer.jets", "(3-27) to (3-28)")
def _() -> None:
    A, B = chain()._model.transfer_for(None).jets(chain()._states, 2)
    close(A[0], np.eye(3))
    assert not B.any()


@computes("Coefficients.identity", "(3-27) to (3-28)", "(4-35) to (4-36)")
def _() -> None:
    one = kic.Coefficients.identity(["a", "b"])
    close(one.G, np.eye(2))
    assert not one.H.any()


# --- Chapter IV ---------------------------------------------------------------------------------------------


@computes("kinematics.closure_rows.all_closure_rows", "(4-1) to (4-2)")
@computes("transfer.coordinate_transfer.CoordinateTransfer.jets", "(4-18) to (4-19)")
@computes("kernels.transfer.right_sides", "(4-20) to (4-23)")
def _() -> None:
    c, o, _ = loop()
    K, H, _, _, _ = system()
    # a fresh mechanism, whose rows are made here
    model = kic.load("five-bar").at({"A": 1.4, "E": 1.3})._model
    A, B = model.transfer_for(None).jets(c._states, 2)
    order = [o.coordinates.index(name) for name in model.tree.columns]
    close(A[0], K[order][:, :2])
    close(B[0], -E("ip,pab,am,bn->imn", K, H, K, K)[order][:, :2, :2])


@computes("Configuration.coefficients", "(4-1) to (4-2)", "(4-18) to (4-23)", "(4-37) to (4-38)",
          "(4-65) to (4-66)")  # fmt: skip
@computes("Coefficients.columns_of", "(4-33) to (4-34)")
def _() -> None:
    c, o, _ = loop()
    K, H, _, u, _ = system(["tip", "B"])
    inner = kic.Coefficients(o.coordinates, ["A", "E", "x", "y"], K, -E("ip,pab,am,bn->imn", K, H, K, K))
    y = inner.columns_of(["A", "E"])
    close(y.G, K[:, :2])
    close(y.H, inner.H[:, :2, :2])
    joints = c.coefficients(o.coordinates)
    close(joints.G, y.G)
    close(joints.H, y.H)
    found = c.coefficients(["tip", "B"])
    for a, b in zip(found.tensors, transferred(u, K, H), strict=True):
        close(a, b[(slice(None), *(slice(2),) * (a.ndim - 1))])


@computes("Configuration.dynamics", "(4-24) to (4-29)", "(4-40) to (4-41)", "(4-67)")
@computes("kernels.newton_euler.inertia_tables", "(4-24) to (4-27)")
@computes("kernels.transfer.chosen_loads", "(4-28) to (4-29)")
def _() -> None:
    c, _, _ = loop()
    K, H, _, _, d = system()
    I, P, load = moved_dynamics(d, K, H)
    same_dynamics(c.dynamics(), I[:2, :2], P[:2, :2, :2], load[:2], QD[:2])


@computes("Dynamics.transfer", "(4-31) to (4-32)")
@computes("Configuration.joint_forces", "(4-31)")
@computes("analysis.joint_forces.reactions.joint_forces", "(4-31)")
def _() -> None:
    c, o, _ = loop()
    K, H, _, _, d = system()
    w = kic.Coefficients(o.coordinates, ["A", "E", "x", "y"], K, -E("ip,pab,am,bn->imn", K, H, K, K))
    T = d.transfer(w.columns_of(["A", "E"]), left=w).inverse_dynamics(QD[:2], QDD[:2])
    v = K[:, :2] @ QD[:2]
    a = K[:, :2] @ QDD[:2] - K @ E("pab,a,b->p", H, v, v)
    close(T, K.T @ d.inverse_dynamics(v, a))
    close(T[:2], c.inverse_dynamics(QD[:2], QDD[:2]))
    found = c.joint_forces(QD[:2], QDD[:2])
    close(found["D"].force[:2] * np.sign(found["D"].force[0] / T[2]), T[2:])


@computes("Dynamics.__add__", "(4-48) to (4-49)")
def _() -> None:
    d = chain().dynamics()
    both = d + d
    close(both.I, 2 * d.I)
    close(both.P, 2 * d.P)
    close(both.load, 2 * d.load)


@computes("Configuration.dynamics", "(4-50) to (4-53)")
def _() -> None:
    m = random_tree(np.random.default_rng(2), ["free"])
    b, names = m.bodies[0], ["x", "y", "z", "wx", "wy", "wz"]
    c = m.at({"j0": [0.1, 0.2, 0.3, 0.4, -0.5, 0.6]})
    d = c.dynamics(wrt=[f"b0.{name}" for name in names])
    R = c.pose("b0").rotation.as_matrix()
    II = R @ np.array(b.inertia) @ R.T
    I = np.zeros((6, 6))
    I[:3, :3], I[3:, 3:] = b.mass * np.eye(3), II
    close(d.I, I)
    w = np.array([0.3, -0.2, 0.5])
    v = np.concatenate([QD, w])
    close(E("kab,a,b->k", d.P, v, v), np.concatenate([np.zeros(3), np.cross(w, II @ w)]))
    close(d.load, np.concatenate([b.mass * np.array(m.gravity), np.zeros(3)]))


@computes("Coefficients.stack", "(4-54) to (4-60)")
def _() -> None:
    legs = (
        chain().coefficients(Q).inverse(),
        chain().coefficients(Q).inverse().renamed({"j0": "k0", "j1": "k1", "j2": "k2"}),
    )
    q = legs[0][["j0"]].stack(legs[1][["k1", "k2"]])
    close(q.G, np.vstack([legs[0].G[:1], legs[1].G[1:]]))
    close(q.H, np.concatenate([legs[0].H[:1], legs[1].H[1:]]))


# --- redundancy ---------------------------------------------------------------------------------------------

TASK = ["p2.x", "p2.y"]


@computes("Configuration.resolve_redundancy", "(4-68) to (4-72)")
@computes("tasks.operational_space.redundancy.RedundancyTask", "(4-68)", "(4-71)")
@computes("tasks.operational_space.weighting.RightInverse", "(4-69) to (4-70)")
@computes("tasks.operational_space.weighting.RightInverse.instantaneous", "(4-72)")
@computes("results.RedundancyResolution.dynamics", "(4-73) to (4-75)")
def _() -> None:
    c = chain()
    u, d = c.coefficients(TASK), c.dynamics()
    ud, udd = QD[:2], QDD[:2]
    r = c.resolve_redundancy(TASK, ud, udd, criterion="minimum kinetic energy", law="instantaneous")
    X = np.linalg.solve(d.I, u.G.T)
    R = X @ np.linalg.inv(u.G @ X)
    H = -E("ip,pab,am,bn->imn", R, u.H, R, R)
    close(r.qd, R @ ud)
    close(r.qdd, R @ udd + E("imn,m,n->i", H, ud, ud))
    close(r.coefficients.G, R)
    close(r.coefficients.H, H)
    task = r.dynamics()
    close(task.I, d.I @ R)
    close(task.P, E("imn,ma,nb->iab", d.P, R, R) + E("ij,jab->iab", d.I, H))
    close(task.load, d.load)


@computes("Configuration.distribute", "(4-80) to (4-86)")
@computes("tasks.actuation.distribution.ActuationProblem", "(4-76)", "(4-78) to (4-79)")
@computes("tasks.actuation.internal_loads.EffortSpace.minimum_effort", "(4-80) to (4-85)")
def _() -> None:
    c, of = chain(), ["j0", "j1", "j2", "p1.x", "p2.z"]
    G = c.coefficients(of).G
    found = c.distribute(QD, actuators=of, criterion=np.ones(5))
    close(found.G, G)
    close(found.H, c.coefficients(of).H)
    close(found.effort, G @ np.linalg.solve(G.T @ G, QD))


@computes("Configuration.actuator_dynamics", "(4-76) to (4-79)", "(4-87) to (4-90)")
@computes("tasks.actuation.internal_loads.EffortSpace.inverse", "(4-86)")
@computes("tasks.actuation.distribution.actuator_dynamics", "(4-77)", "(4-87) to (4-90)")
def _() -> None:
    c, of = chain(), ["j0", "j1", "j2", "p1.x", "p2.z"]
    G, d = c.coefficients(of).G, c.dynamics()
    left = G @ np.linalg.inv(G.T @ G)
    found = c.actuator_dynamics(actuators=of, criterion=np.ones(5))
    close(found.I, left @ d.I)
    close(found.P, E("ai,imn->amn", left, d.P))
    close(found.load, left @ d.load)


# --- linear models ------------------------------------------------------------------------------------------


@computes("Configuration.linearize", "(2-201) to (2-226)")
@computes("results.Linearization.inverse_dynamics", "(2-201)")
@computes("results.Linearization", "(2-203) to (2-204)", "(2-225) to (2-226)")
@computes("analysis.linear.linearize.Stiffness", "(2-216) to (2-224)")
@computes("analysis.linear.linearize.acceleration_derivatives", "(2-43)")
@computes("analysis.linear.linearize.geometric_stiffness", "(2-208)")
def _() -> None:
    c = chain()
    d, lin = c.dynamics(), c.linearize(QD, QDD)
    close(lin.I, d.I)
    close(lin.C, 2 * E("kab,a->kb", d.P, QD) + d.damping)
    close(lin.K, derivative(c, lambda x: x.dynamics().inverse_dynamics(QD, QDD)))
    close(lin.inverse_dynamics(QD, QDD, QDDD), lin.K @ QD + lin.C @ QDD + lin.I @ QDDD)


@computes("analysis.linear.linearize.load_gains", "(2-227)")
@computes("results.Linearization.state_space", "(2-227)", "(3-48)")
def _() -> None:
    c = chain()
    lin, s = c.linearize(QD, QDD), c.linearize(QD, QDD).state_space(inputs=["j0", "j1", "j2", "push"])
    inverse = np.linalg.inv(lin.I)
    close(s.A, np.block([[np.zeros((3, 3)), np.eye(3)], [-inverse @ lin.K, -inverse @ lin.C]]))
    close(s.B[3:], np.hstack([inverse, inverse @ c.coefficients("p2", order=1).G.T]))


@computes("results.StateSpace", "(2-200)", "(2-241)")
@computes("results.Linearization.state_space", "(2-241) to (2-252)")
@computes("analysis.linear.state_space.StateSpaceBuilder", "(2-241) to (2-252)")
def _() -> None:
    c, one = motor()
    lin = c.linearize([6.0], [2.0], motors=True)
    s, N, M, L = lin.state_space(), one.ratios[0], lin.I[0, 0], one.inductance
    assert s.states == ("A", "A.rate", "motor.current")
    second = [-lin.K[0, 0] / M, -lin.C[0, 0] / M, N * one.torque_constant / M]
    close(s.A, [[0, 1, 0], second, [0, -N * one.speed_constant / L, -one.resistance / L]])
    close(s.B, [[0], [0], [1 / L]])


@computes("results.StateSpace.transfer", "(3-49) to (3-52)")
def _() -> None:
    c = chain()
    q = c.coefficients(Q, order=3)
    s = c.linearize(QD, QDD).state_space()
    found = s.transfer(q)
    # δq = G δφ, δq̇ = Ġ δφ + G δφ̇
    dG = E("pab,a->pb", q.H, QD)
    T = np.block([[q.G, np.zeros((3, 3))], [dG, q.G]])
    # δq̈ = (∂q̈/∂φ) δφ + 2 Ġ δφ̇ + G δφ̈ along the motion of δφ
    ddG = E("pab,a->pb", q.H, QDD) + E("pabc,a,b->pc", q.D, QD, QD)
    dT = np.block([[dG, np.zeros((3, 3))], [ddG, dG]])
    close(found.A, (dT + T @ s.A) @ np.linalg.inv(T), 1e-9)


@computes("results.Linearization", "(3-53)")
@computes("analysis.linear.linearize.commutator", "(3-53)")
def _() -> None:
    c = chain()
    names = ["p2.x", "b2.wx", "b2.wy"]
    lin = c.linearize(QD, QDD, wrt=names)
    q = c.coefficients(names)
    v = np.linalg.solve(q.G, QD)
    change = E("pmn,m->pn", q.H - q.H.swapaxes(1, 2), v) @ np.linalg.inv(q.G)
    close(lin.commutator, change)


# --- appendices ---------------------------------------------------------------------------------------------


def printed(name: str, **numbers: Any) -> None:
    """Require that a table shows these numbers, with its misprints corrected."""
    for quantity, found in numbers.items():
        table = TABLES[name, quantity.replace("_inverse", " inverse").replace("leg_", "leg ")]
        right = {tuple(e["at"]): e["correct"] for e in table["errata"]}
        for at, text in entries(table["printed"]):
            assert agrees(right.get(at, text), np.asarray(found)[at] / table["scale"]), (name, quantity, at)


def appendix(letter: str) -> Any:
    """Return the numbers of an appendix in full precision."""
    return json.loads((Path(__file__).parent / "data" / f"appendix_{letter}.json").read_text("utf-8"))


@computes("classics.WristPartitioned.inverse_coefficients", "(B-1) to (B-15)")
@computes("classics.WristPartitioned.wrist_coefficients", "Table B-1")
@computes("Coefficients.inverse", "(B-4)")
def _() -> None:
    numbers = appendix("b")["numbers"]
    given = numbers["inputs"]
    one = WristPartitioned(given["a23"], given["a34"], given["s11"])
    theta = np.array([given["theta1"], given["theta2"], given["theta3"]])
    w, direct = one.wrist_coefficients(theta), one.inverse_coefficients(theta)
    close(w.G, numbers["G_phi_P"])
    close(w.H, numbers["H_P"])
    close(direct.G, numbers["G_P_phi"])
    close(direct.H, numbers["H_PP_phi"])
    close(w.inverse().H[0], direct.H[0])
    # (B-15), corrected
    (x, y, _), (ax, ay, _), s, c, r = QD, QDD, np.sin(theta[0]), np.cos(theta[0]), given["r"]
    accelerations = (ay * c - ax * s) / r - 2 / r**2 * (x * c + y * s) * (y * c - x * s)
    close(direct.acceleration(QD, QDD)[0], accelerations)


@computes("Coefficients.stack", "(4-11)")
@computes("Configuration.coefficients", "(C-1) to (C-4)", "Table C-2")
@computes("Dynamics.transfer", "(C-5) to (C-7)")
@computes("Configuration.dynamics", "Tables C-2 to C-3")
@computes("Configuration.joint_forces", "Table C-1")
def _() -> None:
    m = kic.load("five-bar")
    c = m.chain("rocker", through="A").at()
    w = c.coefficients(OPEN_W[0]).stack(c.coefficients(OPEN_W[1:]))
    d = c.dynamics()
    printed("C-2", G_w=w.G, H_w=w.H, I=d.I, P=d.P)
    rates, accelerations = (np.array(DATA["five_bar"][key]) for key in ("rates", "accelerations"))
    whole = [np.insert(x, 1, [0, 0]) for x in (rates, accelerations)]
    # Table C-3 was computed from rounded coefficients
    numbers = DATA["five_bar"]
    for found in (d.transfer(w.inverse()), c.dynamics(wrt=OPEN_W)):
        printed("C-3", I_w=found.I, P_w=found.P, T_w=found.inverse_dynamics(*whole))
        close(found.I, numbers["I_w"])
        close(found.P, numbers["P_w"])
    f = m.at().joint_forces(rates, accelerations)
    forces = np.array([f["B"].force, -f["C"].force, -f["D"].force])[:, :2]
    printed("C-1", **{"pin forces": forces, "torques": f.effort})


@computes("Mechanism.mobility", "(D-1)")
@computes("Configuration.coefficients", "(D-2)")
def _() -> None:
    m, numbers = kic.load("bricard"), appendix("d")
    assert (m.mobility().dof, m.mobility().redundant) == (1, 1)
    exact = numbers["bricard_trihedral_equal"]
    names = [f"theta{k}" for k in range(1, 8)]
    u = m.at({"theta6": exact["theta6"]}).coefficients(names[:6])
    close(u.G[:, 0], exact["G_phi_y"])
    close(u.H[:, 0, 0], exact["H_phi_yy"])
    # the chain of six joints, whose last link is the ground
    last = kic.Body("link61", mass=0.0, com=(0, 0, 0), inertia=(0, 0, 0))
    joints = [*m.joints[:5], replace(m.joints[5], bodies=("link56", "link61"))]
    chain6 = replace(m, bodies=[*m.bodies, last], joints=joints, coordinates=None)
    e = chain6.at(u.values).coefficients("link61")
    assert np.linalg.matrix_rank(e.G, tol=1e-10) == 5
    five = np.linalg.pinv(e.G[:, :5])
    close(u.G[:5, 0], -five @ e.G[:, 5])
    close(u.H[:5, 0, 0], -five @ E("pmn,m,n->p", e.H, u.G[:, 0], u.G[:, 0]))
    # the slider-crank, with the spin of its coupler
    exact = numbers["slider_crank"]
    crank = kic.load("spatial-slider-crank").at({"theta1": 0.6, "theta5": 0.35}).coefficients(names)
    close(crank.G, exact["G_phi_q"])
    close(crank.H, exact["H_phi_qq"])


@computes("Configuration.dynamics", "(E-1) to (E-2)")
@computes("Coefficients.inverse", "(E-3) to (E-4)")
@computes("Dynamics.__add__", "(E-5)")
@computes("Coefficients.stack", "(E-6)")
@computes("Dynamics.transfer", "(E-7)", "Tables E-1 to E-2")
def _() -> None:
    m = kic.load("three-legged-robot")
    legs = [m.chain("platform", through=f"A{r}").at() for r in (1, 2, 3)]
    w = legs[0].coefficients(PLATE)
    inverses = [c.coefficients(PLATE).inverse() for c in legs]
    shares = [c.dynamics().transfer(k) for c, k in zip(legs, inverses, strict=True)]
    back, one = inverses[0], shares[0]
    printed("E-1", leg_G=w.G, leg_H=w.H, leg_I=legs[0].dynamics().I, leg_G_inverse=back.G)
    printed("E-1", leg_H_inverse=back.H, leg_I_w=one.I, leg_P_w=one.P)
    rows = [k[f"A{r}"] for r, k in enumerate(inverses, 1)]
    q, whole = rows[0].stack(*rows[1:]), shares[0] + shares[1] + shares[2]
    printed("E-2", G_q=q.G, H_q=q.H, I_w=whole.I, P_w=whole.P)
    for d in (whole.transfer(q.inverse()), m.at().dynamics()):
        close(d.I, np.diag([1.0, 2.0, 3.0]))
        close(d.P, np.zeros((3, 3, 3)))


# rows that name a definition or a part of a larger kernel, with the reason
REASONS: dict[Row, str] = {
    (
        "(4-6) to (4-17)",
        "kic.transfer.constraint_system.ConstraintSystem",
    ): "notation: w, φ and e",
    ("(4-30)", "kic.transfer.constraint_system.ConstraintSystem"): "notation: the vector y",
    ("(2-228) to (2-236)", "kic.Motor"): "constants of a motor",
    ("(2-228) to (2-236)", "kic.kernels.runge_kutta.add_motors"): "runs: test_voltage_runs.py",
}


def test_every_row_of_the_index_is_checked_or_explained() -> None:
    assert {*CHECKS, *REASONS} == {(text, path) for _, text, path in INDEX}


def rows_of(check: Callable[[], None]) -> list[Row]:
    return [row for row, own in CHECKS.items() if own is check]


@pytest.mark.parametrize("check", dict.fromkeys(CHECKS.values()), ids=lambda c: rows_of(c)[0][1][4:])
def test_indexed_functions_compute_their_equations(check: Callable[[], None]) -> None:
    _, executed = interpreted(check)
    for _, path in rows_of(check):
        target = find(path)
        target = inspect.unwrap(getattr(target, "py_func", target))
        name = f"{target.__module__}.{target.__qualname__}"
        ran = (
            any(one.startswith(f"{name}.") for one in executed)
            if inspect.isclass(target)
            else name in executed
        )
        assert ran, f"{path} is not executed"
