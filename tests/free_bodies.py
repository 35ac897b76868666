"""Equilibrium of every body by d'Alembert's principle, written from rigid-body formulas."""

from __future__ import annotations

import numpy as np

import kic
from kic.mechanism.configuration import Configuration


def placed(c: Configuration, body: str, at) -> np.ndarray:
    """Return the position of a point given in the reference configuration."""
    return np.array(at) if body == "ground" else c.pose(body).apply(at)


def rotated(c: Configuration, body: str, v) -> np.ndarray:
    """Return a vector given in the reference configuration, turned with its body."""
    return np.array(v, dtype=float) if body == "ground" else c.pose(body).rotation.apply(v)


class Motion:
    """Positions, velocities and accelerations of points of bodies, by rigid-body formulas."""

    def __init__(self, m: kic.Mechanism, c: Configuration, qd, qdd, wrt=None) -> None:
        self.c, self.bodies = c, {b.name: b for b in m.bodies}
        self.of = {}
        for b in m.bodies:
            u = c.coefficients(b.name, wrt=wrt)
            self.of[b.name] = u.values[:3], u.velocity(qd), u.acceleration(qd, qdd)

    def omega(self, body: str) -> np.ndarray:
        return self.of[body][1][3:] if body != "ground" else np.zeros(3)

    def alpha(self, body: str) -> np.ndarray:
        return self.of[body][2][3:]

    def velocity(self, body: str, at) -> np.ndarray:
        if body == "ground":
            return np.zeros(3)
        p, v, _ = self.of[body]
        return v[:3] + np.cross(v[3:], placed(self.c, body, at) - p)

    def acceleration(self, body: str, at) -> np.ndarray:
        p, v, a = self.of[body]
        arm = placed(self.c, body, at) - p
        return a[:3] + np.cross(a[3:], arm) + np.cross(v[3:], np.cross(v[3:], arm))


def equilibrium_residual(
    m: kic.Mechanism, c: Configuration, f: kic.results.JointForces, qd, qdd, wrt=None
) -> float:
    """Return the largest residual of d'Alembert's equilibrium of the bodies, relative to the largest load."""
    motion, rest, size = Motion(m, c, qd, qdd, wrt), {b.name: np.zeros(6) for b in m.bodies}, 0.0

    def push(body: str, place, force, moment=(0.0, 0.0, 0.0)) -> None:
        nonlocal size
        about = np.cross(place, force) + moment
        size = max(size, np.abs(force).max(), np.abs(about).max())
        if body != "ground":
            rest[body] += np.concatenate([force, about])

    points = {p.name: p for p in m.points}
    for b in m.bodies:
        if b.mass or b.inertia:
            J = rotated(c, b.name, rotated(c, b.name, np.array(b.inertia)).T)
            w, alpha = motion.omega(b.name), motion.alpha(b.name)
            com = b.com or (0, 0, 0)
            push(
                b.name,
                placed(c, b.name, com),
                b.mass * (np.array(m.gravity) - motion.acceleration(b.name, com)),
                -(J @ alpha + np.cross(w, J @ w)),
            )
    for p in m.points:
        if p.mass:
            a = motion.acceleration(p.body, p.at)
            push(p.body, placed(c, p.body, p.at), p.mass * (np.array(m.gravity) - a))
    for load in m.forces:
        p = points[load.point]
        force = rotated(c, p.body, load.force) if load.axes == "body" else np.array(load.force)
        push(p.body, placed(c, p.body, p.at), force)
    for load in m.moments:
        moment = rotated(c, load.body, load.moment) if load.axes == "body" else np.array(load.moment)
        push(load.body, np.zeros(3), np.zeros(3), moment)
    for spring in m.springs:
        a, b = (points[name] for name in spring.points)
        pa, pb = placed(c, a.body, a.at), placed(c, b.body, b.at)
        length = np.linalg.norm(pb - pa)
        along = (pb - pa) / length
        rate = along @ (motion.velocity(b.body, b.at) - motion.velocity(a.body, a.at))
        pull = (spring.stiffness * (length - spring.rest) + spring.damping * rate) * along
        push(a.body, pa, pull)
        push(b.body, pb, -pull)
    for name, load in zip(f.ties, f.tie_load, strict=True):
        if name in m._fixed_angles:
            (a, b), measure = m[name].bodies, m[name]
            about = np.cross(rotated(c, a, measure.axis), rotated(c, b, measure.axis2))
            about *= load / np.linalg.norm(about)
            push(a, np.zeros(3), np.zeros(3), -about)
            push(b, np.zeros(3), np.zeros(3), about)
        elif name in m._fixed_distances:  # couplings act in joints
            a, b = (points[x] for x in m[name].points)
            pa, pb = placed(c, a.body, a.at), placed(c, b.body, b.at)
            if m[name].axis is not None:  # from the foot of the perpendicular
                u = rotated(c, b.body, m[name].axis)
                pb = pb + (pa - pb) @ u * u / (u @ u)
            along = load * (pb - pa) / np.linalg.norm(pb - pa)
            push(a.body, pa, -along)
            push(b.body, pb, along)
    for j in m.joints:
        first, second = j.bodies
        w = f[j.name]
        assert w.bodies == j.bodies
        assert np.abs(w.point - placed(c, second, j.at or (0, 0, 0))).max() < 1e-12 * (
            1 + np.abs(w.point).max()
        )
        push(second, w.point, w.force, w.moment)
        push(first, w.point, -w.force, -w.moment)
    return max(np.abs(r).max() for r in rest.values()) / max(size, 1e-300)
