"""Closed forms of motion with 60 digits: derivatives by differences, dynamics by Lagrange's equations.

A closed form maps coordinates to displacements (4, 4) of bodies from the reference configuration.
Of the mechanism only its data are used: masses, centres, inertias and points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np
from exact import exact, zeros

import kic

# central differences: errors of 1e-24, of rounding at third order too
STEP = mp.mpf(10) ** -12
M = mp.mpf

Motion = Callable[[np.ndarray], dict[str, np.ndarray]]
Map = Callable[[np.ndarray], np.ndarray]


def unit(angle: mp.mpf) -> mp.mpc:
    return mp.mpc(mp.cos(angle), mp.sin(angle))


def circles(p: mp.mpc, rp: object, q: mp.mpc, rq: object, side: int) -> mp.mpc:
    """The point at distances rp from p and rq from q, left (side 1) or right (-1) of the way from p to q."""
    L = abs(q - p)
    along = (M(rp) ** 2 - M(rq) ** 2 + L**2) / (2 * L)
    return p + mp.mpc(along, side * mp.sqrt(M(rp) ** 2 - along**2)) * (q - p) / L


def turn(at: Sequence, axis: Sequence, angle: object) -> np.ndarray:
    """Return the displacement (4, 4) of a rotation about a line."""
    p, a = exact(at), exact(axis)
    a = a / mp.sqrt(a @ a)
    K = np.array([[0 * angle, -a[2], a[1]], [a[2], 0 * angle, -a[0]], [-a[1], a[0], 0 * angle]])
    T = exact(np.eye(4))
    T[:3, :3] += mp.sin(angle) * K + (1 - mp.cos(angle)) * (K @ K)
    T[:3, 3] = p - T[:3, :3] @ p
    return T


def shift(v: Sequence) -> np.ndarray:
    """Return the displacement (4, 4) of a translation."""
    T = exact(np.eye(4))
    T[:3, 3] = exact(v)
    return T


def frame(R: np.ndarray, p: Sequence) -> np.ndarray:
    """Return the displacement (4, 4) of a rotation and a translation."""
    T = exact(np.eye(4))
    T[:3, :3], T[:3, 3] = R, exact(p)
    return T


def back(T: np.ndarray) -> np.ndarray:
    """Return the inverse displacement."""
    return frame(T[:3, :3].T, -T[:3, :3].T @ T[:3, 3])


def spheres(centers: Sequence[np.ndarray], radii: Sequence, side: int) -> np.ndarray:
    """The point at distances from three points, above (side 1) or below (-1) their plane."""
    a, b, c = centers
    sides = np.stack([2 * (b - a), 2 * (c - a), np.cross(b - a, c - a)])
    squares = [center @ center - r**2 for center, r in zip(centers, radii, strict=True)]
    right = mp.matrix([squares[1] - squares[0], squares[2] - squares[0], sides[2] @ a])
    foot = np.array(list(mp.lu_solve(mp.matrix(sides.tolist()), right)))
    normal = sides[2] / mp.sqrt(sides[2] @ sides[2])
    return foot + side * mp.sqrt(radii[0] ** 2 - (foot - a) @ (foot - a)) * normal


def delta(q: np.ndarray, knee: Sequence = (0, 0, 0), ankle: Sequence = (0, 0, 0)) -> dict[str, np.ndarray]:
    """Return the displacements of a Delta's bodies by angles from the reference configuration.

    It is the model "delta", but of exact symmetry. The joints of the first pair of rods may be moved.
    """
    made, joints, axes = {}, [], []
    for k in range(3):
        T = turn((0, 0, 0), (0, 0, 1), 2 * mp.pi * k / 3)
        places = exact([[0.2, 0, 0, 1], [0.44, 0, -0.1, 1], [0.05, 0, -0.62, 1]])
        if k == 0:
            places[1:, :3] += np.array([knee, ankle])
        base, *ends = ((T @ place)[:3] for place in places)
        axes.append(T[:3, 1])
        joints.append(ends)
        made[f"arm{k + 1}"] = turn(base, axes[k], q[k])
    tops = [(made[f"arm{k}"] @ [*top, M(1)])[:3] for k, (top, _) in enumerate(joints, 1)]
    radii = [mp.sqrt((top - end) @ (top - end)) for top, end in joints]
    middle = [now - end for now, (_, end) in zip(tops, joints, strict=True)]
    made["plate"] = shift(spheres(middle, radii, -1))

    def held(hinge: np.ndarray, rod: np.ndarray) -> np.ndarray:
        """Axes of a rod in a universal joint, whose first axis is the hinge."""
        second = np.cross(hinge, rod)
        second, rod = second / mp.sqrt(second @ second), rod / mp.sqrt(rod @ rod)
        return np.stack([np.cross(second, rod), second, rod], axis=1)

    for k, (top, end) in enumerate(joints):
        now = held(axes[k], (made["plate"] @ [*end, M(1)])[:3] - tops[k])
        R = now @ held(axes[k], end - top).T
        for name, side in (("a", 0.04), ("b", -0.04)):
            center = top + side * axes[k]
            p = (made[f"arm{k + 1}"] @ [*center, M(1)])[:3]
            made[f"rod{k + 1}{name}"] = frame(R, p - R @ center)
    return made


def remembered(motion: Callable[[np.ndarray], dict[str, np.ndarray]]) -> Motion:
    """Return the closed form with a cache."""
    known: dict[tuple, dict[str, np.ndarray]] = {}

    def again(q: np.ndarray) -> dict[str, np.ndarray]:
        key = tuple(q)
        if key not in known:
            known[key] = motion(q)
        return known[key]

    return again


def slope(f: Map) -> Map:
    """Return ∂f/∂q as a function; the differentiating index follows the first index of f."""

    def df(q: np.ndarray) -> np.ndarray:
        steps = STEP * exact(np.eye(len(q)))
        return np.stack([(f(q + dq) - f(q - dq)) / (2 * STEP) for dq in steps], axis=1)

    return df


def place(motion: Motion, body: str, at: Sequence) -> Map:
    """Return the position of a point of a body as a function."""
    p = exact([*at, 1.0])
    return lambda q: (motion(q)[body] @ p)[:3]


def turning(motion: Motion, body: str) -> Map:
    """Return the angular velocity (3, M) for unit rates as a function, from the orientation."""
    R = slope(lambda q: motion(q)[body][:3, :3].reshape(9))

    def G(q: np.ndarray) -> np.ndarray:
        now = motion(q)[body][:3, :3]
        spin = [rate.reshape(3, 3) @ now.T for rate in R(q).T]
        return np.array([[W[2, 1], W[0, 2], W[1, 0]] for W in spin]).T

    return G


def tensors(f: Map, q: np.ndarray, first: bool = False) -> list[np.ndarray]:
    """Return G, H, D in floats, of a map or, with `first`, of its G."""
    G = f if first else slope(f)
    return [T(exact(q)).astype(float) for T in (G, slope(G), slope(slope(G)))]


def dynamics(m: kic.Mechanism, motion: Motion, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return I*, P* (Christoffel symbols) and the load of gravity in floats, from the energies."""
    q = exact(q)
    bodies = [b for b in m.bodies if b.mass]

    def inertia(q: np.ndarray) -> np.ndarray:
        I = zeros(len(q), len(q))
        for b in bodies:
            v, w = slope(place(motion, b.name, b.com))(q), turning(motion, b.name)(q)
            R = motion(q)[b.name][:3, :3]
            I = I + b.mass * v.T @ v + w.T @ R @ exact(np.array(b.inertia)) @ R.T @ w
        return I

    load = sum(b.mass * exact(m.gravity) @ slope(place(motion, b.name, b.com))(q) for b in bodies)
    dI = slope(inertia)(q)  # [a, n, b]: ∂I*_ab/∂q_n
    P = (dI.swapaxes(1, 2) + dI - dI.transpose(1, 0, 2)) / 2
    return inertia(q).astype(float), P.astype(float), load.astype(float)
