"""Linkages in special positions."""

from __future__ import annotations

import numpy as np

import kic


def rigid() -> kic.Mechanism:
    return kic.Mechanism(
        "truss",
        [kic.Body("a"), kic.Body("b")],
        [
            kic.Joint("A", "revolute", ("ground", "a"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("B", "revolute", ("a", "b"), at=(1, 1, 0), axis=(0, 0, 1)),
            kic.Joint("C", "revolute", ("b", "ground"), at=(2, 0, 0), axis=(0, 0, 1)),
        ],
    )


def parallelogram(angle: float = 1.0) -> kic.Mechanism:
    """Four bars of lengths 2, 1, 2, 1, drawn as a parallelogram: A = D = −B = C."""
    p = np.array([np.cos(angle), np.sin(angle), 0])
    q = p + np.array([2, 0, 0])
    return kic.Mechanism(
        "parallelogram",
        [kic.Body(n) for n in ("crank", "coupler", "rocker")],
        [
            kic.Joint("A", "revolute", ("ground", "crank"), (0, 0, 0), (0, 0, 1), value=angle),
            kic.Joint("B", "revolute", ("crank", "coupler"), tuple(p), (0, 0, 1), value=-angle),
            kic.Joint("C", "revolute", ("coupler", "rocker"), tuple(q), (0, 0, 1), value=angle),
            kic.Joint("D", "revolute", ("ground", "rocker"), (2, 0, 0), (0, 0, 1), value=angle),
        ],
        coordinates=["A"],
    )


def bennett(
    alpha: float = 0.6, beta: float = 1.1, theta: float = 0.9
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the points and axes of the four revolute joints of a Bennett linkage.

    Twists alpha and beta, lengths 1 and sin β / sin α; opposite angles add up to a full turn, and Bennett's
    closure equation gives the second angle from the first, theta.
    """
    a, b = 1.0, np.sin(beta) / np.sin(alpha)
    other = 2 * np.arctan(np.sin((beta + alpha) / 2) / (np.sin((beta - alpha) / 2) * np.tan(theta / 2)))
    T, points, axes = np.eye(4), [], []
    for length, twist, angle in ((a, alpha, theta), (b, beta, other), (a, alpha, -theta), (b, beta, -other)):
        points.append(T[:3, 3])
        axes.append(T[:3, 2])
        c, s, C, S = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
        T = T @ [[c, -s * C, s * S, length * c], [s, c * C, -c * S, length * s], [0, S, C, 0], [0, 0, 0, 1]]
    assert np.abs(T - np.eye(4)).max() < 1e-12
    return points, axes


def four_bar_pivots(
    crank: float, coupler: float, rocker: float, ground: float, angle: float, side: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the pivots (3,) of a four-bar linkage: ground, crank end, coupler end, ground.

    `side` is +1 where the coupler end lies to the left of the line from the crank end to the rocker's pivot.
    """
    A, D = np.zeros(3), np.array([ground, 0.0, 0.0])
    B = crank * np.array([np.cos(angle), np.sin(angle), 0.0])
    span = np.linalg.norm(D - B)
    u = (D - B) / span
    foot = (coupler**2 - rocker**2 + span**2) / (2 * span)
    C = B + foot * u + side * np.sqrt(coupler**2 - foot**2) * np.array([-u[1], u[0], 0.0])
    return A, B, C, D


def xy_table(**more) -> kic.Mechanism:
    """Return two perpendicular slides of 1 and 2 kg that carry a pen."""
    return kic.Mechanism(
        "xy table",
        [kic.Body(n, mass=k, com=(0, 0, 0), inertia=(0, 0, 0)) for n, k in (("x", 1.0), ("y", 2.0))],
        [
            kic.Joint("X", "prismatic", ("ground", "x"), at=(0, 0, 0), axis=(1, 0, 0)),
            kic.Joint("Y", "prismatic", ("x", "y"), at=(0, 0, 0), axis=(0, 1, 0)),
        ],
        points=[kic.Point("pen", "y", at=(0, 0, 0))],
        **more,
    )


def needle() -> kic.Mechanism:
    """Return a rod with a massless tip, whose turning B moves no mass."""
    return kic.Mechanism(
        "needle",
        [
            kic.Body("rod", mass=1, com=(1, 0, 0), inertia=(0, 1, 1)),
            kic.Body("tip", mass=0, inertia=(0, 0, 0)),
        ],
        [
            kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("B", "revolute", ("rod", "tip"), at=(1, 0, 0), axis=(1, 0, 0)),
        ],
    )


def closed_gap() -> kic.Mechanism:
    """Return an arm with a distance that is zero in the reference configuration."""
    return kic.Mechanism(
        "arm",
        [kic.Body("a")],
        [kic.Joint("A", "revolute", ("ground", "a"), at=(0, 0, 0), axis=(0, 0, 1))],
        points=[kic.Point("p", "a", (1, 0, 0)), kic.Point("q", "ground", (1, 0, 0))],
        distances=[kic.Distance("gap", ("p", "q"))],
    )
