"""Axes of spherical and free joints, along and about which their coordinates are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.spatial.transform import RigidTransform, Rotation

import kic

A = Rotation.from_euler("xyz", [0.4, -0.7, 1.1]).as_matrix()
TURN = Rotation.from_rotvec([0.3, -0.2, 0.5])
X = (1.0, 0.0, 0.0)


both = pytest.mark.parametrize("kind", ["spherical", "free"])
either_way = pytest.mark.parametrize("turned", [False, True], ids=["forwards", "backwards"])


def arm(kind: str, turned: bool = False, axes: np.ndarray | None = None, **laws) -> kic.Mechanism:
    """Return a body on a ball or free joint of an arm, with axes or with those of the world."""
    given = {} if axes is None else {"axis": 2 * axes[:, 0], "axis2": 3 * axes[:, 1]}
    pair = ("end", "arm") if turned else ("arm", "end")
    inertia = (0.1, 0.2, 0.25, 0.01, 0.02, -0.03)
    return kic.Mechanism(
        "arm",
        [kic.Body(b, mass=1.0, com=(x, 0.1, 0), inertia=inertia) for b, x in (("arm", 0.5), ("end", 1.2))],
        [
            kic.Joint("R", "revolute", ("ground", "arm"), (0, 0, 0), (0.2, 0.1, 1)),
            kic.Joint("S", kind, pair, (1, 0, 0), **given, **laws),
        ],
        gravity=(1, -9.81, 2),
    )


def to_world(kind: str) -> np.ndarray:
    """Return the matrix from rates of R and along the axes to those of R and along the axes of the world."""
    return block_diag(1.0, *[A] * (2 if kind == "free" else 1))


def displaced(kind: str) -> Rotation | RigidTransform:
    return TURN if kind == "spherical" else RigidTransform.from_components([0.1, 0.2, 0.3], TURN)


@both
@either_way
def test_coordinates_are_along_the_axes(kind: str, turned: bool) -> None:
    c, world = (arm(kind, turned, axes).at({"R": 0.6, "S": displaced(kind)}) for axes in (A, None))
    assert np.allclose(c.pose("end").as_matrix(), world.pose("end").as_matrix(), atol=1e-13)
    B = to_world(kind)
    assert np.allclose(c.coefficients("end").G, world.coefficients("end").G @ B, atol=1e-13)
    assert np.allclose(c.dynamics().I, B.T @ world.dynamics().I @ B, atol=1e-13)
    # a vector has components along the axes
    vector = np.concatenate([[0.1, 0.2, 0.3] if kind == "free" else [], TURN.as_rotvec()])
    again = arm(kind, turned, A).at({"R": 0.6, "S": np.linalg.inv(B[1:, 1:]) @ vector})
    if kind == "spherical":
        assert np.allclose(again.pose("end").as_matrix(), c.pose("end").as_matrix(), atol=1e-13)
    relative = world.pose("arm").rotation.inv() * world.pose("end").rotation
    relative = (relative.inv() if turned else relative).as_matrix()
    angles = Rotation.from_matrix(A.T @ relative @ A).as_euler("ZYX")
    assert np.allclose(c.value("S.euler_ZYX"), angles, atol=1e-13)


@both
@either_way
def test_motions_do_not_depend_on_the_axes(kind: str, turned: bool) -> None:
    ends = []
    for axes, B in ((A, to_world(kind)), (None, np.eye(4 if kind == "spherical" else 7))):
        m = arm(kind, turned, axes, damping=0.2)
        qd = np.linalg.solve(B, np.linspace(1.0, 2.0, len(B)))
        run = m.simulate(
            0.5,
            near=m.at({"R": 0.6, "S": displaced(kind)}),
            qd=qd,
            integrator=kic.Integrator(rtol=1e-10, progress=False),
        )
        ends.append(run.configuration[-1].pose("end").as_matrix())
    assert np.allclose(*ends, atol=1e-7)


def looped(axes: np.ndarray | None, coordinates: tuple[str, ...]) -> kic.Mechanism:
    """Return an arm on a free body that a universal joint holds."""
    m = arm("free", False, axes)
    hold = kic.Joint("U", "universal", ("ground", "end"), (1.5, 0.5, 0), (1, 0, 0), axis2=(0, 1, 0))
    return replace(m, joints=(*m.joints, hold), coordinates=coordinates)


def test_rotations_as_coordinates_of_a_loop() -> None:
    ends = []
    for axes, B in ((A, A), (None, np.eye(3))):
        m = looped(axes, ("S.4", "S.5", "S.6"))
        assert m.dof == 3
        run = m.simulate(
            0.3, qd=B.T @ [0.3, 0.5, -0.4], integrator=kic.Integrator(rtol=1e-10, progress=False)
        )
        ends.append(run.configuration[-1].pose("end").as_matrix())
    assert np.allclose(*ends, atol=1e-7)


def test_axes_of_cut_joints() -> None:
    rows = []
    for axes in (A, None):
        m = arm("spherical", False, axes, damping=(1.0, 2.0, 3.0))
        hold = kic.Joint("F", "free", ("ground", "end"), (1.2, 0.1, 0))
        m = replace(m, joints=(*m.joints, hold), coordinates=("R", "F.4", "F.5", "F.6"))
        assert [joint.name for joint in m._model.tree.cuts] == ["S"]
        rows.append(m.at().coefficients("S", order=1).G)
        at_S = m.at().coefficients("S", order=1, wrt=["R", "S"]).G
        assert np.allclose(at_S[:, 1:], np.eye(3), atol=1e-12)
    assert np.allclose(rows[0], A.T @ rows[1], atol=1e-12)


def test_damping_by_axis_has_derivatives() -> None:
    m = arm("spherical", axes=A, damping=(1.0, 2.0, 3.0))

    def damping(m: kic.Mechanism) -> np.ndarray:
        c = m.at({"R": 0.6, "S": TURN})
        return c.dynamics(wrt=["R", "end.wx", "end.wy", "end.wz"]).damping

    both_axes = {"S.axis.rz": 1.0, "S.axis2.rz": 1.0}
    found = m.sensitivity(damping, both_axes)
    step = 1e-5
    turned = [
        damping(
            arm("spherical", axes=Rotation.from_rotvec([0, 0, s]).as_matrix() @ A, damping=(1.0, 2.0, 3.0))
        )
        for s in (step, -step)
    ]
    assert np.allclose(found, (turned[0] - turned[1]) / (2 * step), atol=1e-8)


def test_the_origin_of_a_free_joint() -> None:
    """A displacement is measured from the reference configuration, where the coordinates have values."""
    m = arm("free", axes=A, value=(0.5, 0.6, 0.7, 0.0, 0.0, 0.0))
    c = m.at({"R": 0.0, "S": RigidTransform.from_translation([0.1, 0.2, 0.3])})
    assert np.allclose(c.pose("end").translation, [0.1, 0.2, 0.3], atol=1e-14)
    assert np.allclose(c.value(["S.1", "S.2", "S.3"]), [0.5, 0.6, 0.7] + A.T @ [0.1, 0.2, 0.3], atol=1e-14)
