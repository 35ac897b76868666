"""Kernels for trees, linear maps, loops and motions give the derivatives of the general rule."""

from __future__ import annotations

import numpy as np
import pytest
from leibniz import Frames
from sampling import mismatch, random_posture, random_tree

import kic
from kic.kinematics.outputs import make_rows
from kic.mechanism.configuration import Configuration

# largest error relative to the largest entry of an order; measured at most 8e-15 with two kinds of kernels
LIMIT = 4e-13
COORDINATES = [
    ("gough-stewart", "platform"),
    ("stewart-6r", ["plate.wx", "plate.wy", "plate.wz", "plate.x", "plate.y", "plate.z"]),
    ("delta", ["plate.z", "plate.x", "plate.y"]),
    ("five-bar", ["tip.y", "tip.x"]),
    ("puma560", ["flange", "wrist_bend", "wrist_roll", "tool"]),
]


def rows_of(m: kic.Mechanism) -> list[str]:
    """Return rows of all points, distances, angles and joints, and of the rotation of the last body."""
    body = m.bodies[-1].name
    angles = ["wx", "wy", "wz", "euler_zyx", *["angle"] * (m._model.tree.planar_normal is not None)]
    joints = [joint.name for joint in m.joints if joint.dof]
    parts = [part.name for part in (*m.points, *m.distances, *m.angles)]
    return [*parts, *joints, *[f"{body}.{row}" for row in angles]]


def check(m: kic.Mechanism, c: Configuration, wrt: str | list[str] | None = None) -> str:
    """Compare all rows to third order, in coordinates and along a motion; return the kernel that was used."""
    model, of = m._model, rows_of(m)
    rows, transfer = make_rows(model.tree, of), model.transfer_for(wrt)
    picked = slice(None) if rows.select is None else rows.select

    def tensors(columns: list[np.ndarray]) -> list[np.ndarray]:
        jets = Frames(model.tree, c._states, columns).rows(rows.source)
        return [np.array([jet[k] for jet in jets])[picked] for k in (1, 2, 3)]

    A, B, C = (x[0] for x in transfer.jets(c._states, 3))
    qd, qdd, qddd = np.random.default_rng(1).normal(size=(3, A.shape[1]))
    series = [
        A @ qd,
        A @ qdd + (B @ qd) @ qd,
        A @ qddd + (B @ qd) @ qdd + 2 * (B @ qdd) @ qd + ((C @ qd) @ qd) @ qd,
    ]
    moving = m.prepare.motion(of, wrt=wrt)(c.state, qd, qdd, qddd)
    found = [*c.coefficients(of, order=3, wrt=wrt).tensors, moving.velocity, moving.acceleration, moving.jerk]
    # the time is the only variable of a motion
    along = tensors([x.reshape(-1, *[1] * k) for k, x in enumerate(series, 1)])
    for own, right in zip(found, [*tensors([A, B, C]), *along], strict=True):
        assert mismatch(own, right.reshape(own.shape)) < LIMIT
    return model.program(wrt, of, 3).queries[0].entry


def test_models() -> None:
    used = {check(m, m.at()) for m in map(kic.load, kic.model_names())}
    assert used == {"kinematics", "linear_kinematics", "transfer"}


@pytest.mark.parametrize(("name", "wrt"), COORDINATES, ids=[name for name, _ in COORDINATES])
def test_other_coordinates(name: str, wrt: str | list[str]) -> None:
    m = kic.load(name)
    check(m, m.at(), wrt)


@pytest.mark.parametrize("seed", range(8))
def test_trees_of_all_joints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = ["revolute", "prismatic", "spherical", "universal", "cylindrical", "planar", "free"]
    m = random_tree(rng, list(rng.permutation(kinds)[:5]), branched=seed % 2 == 1)
    check(m, random_posture(rng, m) if seed % 3 else m.at())
