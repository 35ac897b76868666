"""Random sets of contacts and generators of their wrench cones."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull

import kic

KINDS = ["point", "friction", "soft", "pinned"]

Z = (0.0, 0.0, 1.0)


def random_grasp(rng: np.random.Generator, planar: bool, pins: bool = True) -> kic.ContactSet:
    """Contacts on a random ellipsoid or ellipse, their normals perturbed, so that about half are closed."""
    count = int(rng.integers(2, 7))
    u = rng.normal(size=(count, 3))
    if planar:
        u[:, 2] = 0
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    axes = rng.uniform(0.02, 0.1, 3)
    aside = 0.2 * rng.normal(size=u.shape) * ([1, 1, 0] if planar else [1, 1, 1])
    normals = -u / axes
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True) + aside
    share = [0.15, 0.5, 0.3, 0.05] if pins else [0.2, 0.5, 0.3, 0.0]
    kinds = rng.choice(KINDS, size=count, p=share).tolist()
    return kic.ContactSet(
        u * axes + rng.normal(size=3) * ([1, 1, 0] if planar else [1, 1, 1]),
        normals,
        kinds,
        mu=rng.uniform(0.2, 1.0, count),
        gamma=rng.uniform(0.002, 0.02, count),
        about=rng.normal(size=3),
        plane=Z if planar else None,
    )


def spread(dimension: int) -> tuple[np.ndarray, float]:
    """Points of the unit sphere by Fibonacci's spiral (circle, interval), and what their hull reaches."""
    if dimension < 2:
        return np.array([[1.0], [-1.0]])[:, :dimension] if dimension else np.zeros((1, 0)), 1.0
    if dimension == 2:
        a = 2 * np.pi * (np.arange(90) + 0.3) / 90
        return np.stack([np.cos(a), np.sin(a)], axis=1), float(np.cos(np.pi / 90))
    k = np.arange(500) + 0.5
    z, a = 1 - 2 * k / 500, k * np.pi * (1 + np.sqrt(5))
    r = np.sqrt(1 - z**2)
    points = np.stack([r * np.cos(a), r * np.sin(a), z], axis=1)
    return points, float(-ConvexHull(points).equations[:, -1].max())


def generators(c: kic.ContactSet, around: bool) -> np.ndarray:
    """Wrenches (W, n) that span the polyhedral cone of a grasp, written from forces and moments anew."""
    made = []
    flat = c.plane is not None
    for p, (n, t1, t2), kind, mu, gamma in zip(c.points, c.frames, c.kinds, c.mu, c.gamma, strict=True):
        arm = p - c.about
        tangents = [t1] if flat else [t1, t2]
        forces = {"point": [n], "pinned": [s * x for s in (1, -1) for x in (n, *tangents)]}.get(kind)
        if forces is not None:
            made += [np.concatenate([f, np.cross(arm, f)]) for f in forces]
            continue
        soft = kind == "soft" and not flat
        directions, reach = spread(len(tangents) + soft)
        for d in directions / (reach if around else 1.0):
            f = n + mu * sum(x * t for x, t in zip(d, tangents, strict=False))
            moment = np.cross(arm, f) + (gamma * d[-1] * n if soft else 0)
            made.append(np.concatenate([f, moment]))
    W = np.array(made).T
    return W[[0, 1, 5]] if flat else W
