"""The shipped ladder with any number of windows: its four rockers, over and over."""

from __future__ import annotations

import numpy as np

import kic

PITCH, WIDTH, THICKNESS, COUPLER = 0.4, 0.02, 0.01, 0.4
# of rockers 0, 1, 2, 3, then 0 again: foot beside its place in an even row, way from foot to top, mass
FEET = np.array([(0, 0, 0), (0, 0, 0), (0.02, 0.01, 0), (0.01, -0.01, 0)])
LEANS = np.array([(0.1, 0.25, 0), (0.12, 0.26, 0), (0.1, 0.25, 0), (0.13, 0.26, 0)])
MASSES = (0.25, 0.26, 0.27, 0.28)


def ladder(windows: int) -> kic.Mechanism:
    """Return `count` four-bars in a row with one degree of freedom; three are the shipped model."""
    places = np.arange(windows + 1) % len(FEET)
    feet = FEET[places] + np.outer(np.arange(windows + 1) * PITCH, (1, 0, 0))
    tops = feet + LEANS[places]
    bodies = [_box(f"rocker{k}", MASSES[places[k]], feet[k], tops[k]) for k in range(windows + 1)]
    bodies += [_box(f"coupler{k}", COUPLER, tops[k - 1], tops[k]) for k in range(1, windows + 1)]
    angles = np.arctan2(LEANS[places, 1], LEANS[places, 0])
    joints = [_hinge(f"D{k}", "ground", f"rocker{k}", feet[k], angles[k]) for k in range(windows + 1)]
    for k in range(1, windows + 1):
        joints.append(_hinge(f"A{k}", f"rocker{k - 1}", f"coupler{k}", tops[k - 1]))
        joints.append(_hinge(f"B{k}", f"coupler{k}", f"rocker{k}", tops[k]))
    tip = kic.Point("tip", f"rocker{windows}", at=tuple(tops[-1]))
    return kic.Mechanism("ladder", bodies, joints, points=[tip], gravity=(0, -9.81, 0), coordinates=["D0"])


def _hinge(name: str, one: str, other: str, at: np.ndarray, value: float = 0.0) -> kic.Joint:
    return kic.Joint(name, "revolute", (one, other), at=tuple(at), axis=(0, 0, 1), value=float(value))


def _box(name: str, mass: float, start: np.ndarray, stop: np.ndarray) -> kic.Body:
    """A homogeneous bar between two points of the plane."""
    along = stop - start
    squares = np.array([along @ along, WIDTH**2, THICKNESS**2])
    length = np.sqrt(squares[0])
    axes = np.array([along, np.cross((0, 0, length), along) / length, (0, 0, length)]).T / length
    moments = mass * (squares.sum() - squares) / 12
    inertia = axes @ np.diag(moments) @ axes.T
    return kic.Body(name, mass=mass, com=tuple((start + stop) / 2), inertia=tuple(map(tuple, inertia)))
