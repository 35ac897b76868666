"""Joints of SDF files in any order and direction, in trees and in loops; corners of the written files."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from raising import refuses
from scipy.spatial.transform import Rotation

import kic

INERTIAL = "<inertial><mass>1</mass><inertia><ixx>.1</ixx><iyy>.1</iyy><izz>.1</izz></inertia></inertial>"
AXES = {"revolute": 1, "prismatic": 1, "screw": 1, "universal": 2, "ball": 0}
PITCH = 0.3


def text_of(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)


class Model:
    """Random model: links along the axes of the world, and joints with random poses."""

    def __init__(self, rng: np.random.Generator, joints: list[tuple[str, str, str, str]]) -> None:
        self.joints = joints
        names = sorted({link for _, _, *ends in joints for link in ends} - {"world"})
        self.at = {name: rng.normal(size=3) for name in names} | {"world": np.zeros(3)}
        self.places = {name: (rng.normal(size=3), rng.normal(size=3) * 0.5) for name, *_ in joints}
        self.laws = {name: rng.uniform(0.1, 1.0, (2, 3)) for name, *_ in joints}

    def text(self, order: tuple[int, ...] | None = None, more: str = "") -> str:
        """Return the file, with its joints in an order."""
        links = [f'<link name="{x}"><pose>{text_of(p)} 0 0 0</pose>{INERTIAL}</link>'
                 for x, p in self.at.items() if x != "world"]  # fmt: skip
        joints = []
        for k in order or range(len(self.joints)):
            name, kind, parent, child = self.joints[k]
            place, turn = self.places[name]
            axes = ""
            for tag, xyz, law in zip(("axis", "axis2"), ("1 0 0", "0 1 0"), self.laws[name], strict=True):
                if tag in ("axis", "axis2")[: AXES[kind]]:
                    axes += (
                        f"<{tag}><xyz>{xyz}</xyz>"
                        f"<limit><lower>{-5 - law[0]}</lower><upper>inf</upper></limit>"
                        f"<dynamics><damping>{law[0]}</damping><spring_stiffness>{law[1]}</spring_stiffness>"
                        f"<spring_reference>{law[2]}</spring_reference></dynamics></{tag}>"
                    )
            axes += f"<screw_thread_pitch>{PITCH}</screw_thread_pitch>" * (kind == "screw")
            joints.append(
                f'<joint name="{name}" type="{kind}"><pose relative_to="__model__">{text_of(place)} '
                f"{text_of(turn)}</pose><parent>{parent}</parent><child>{child}</child>{axes}</joint>"
            )
        return f'<sdf version="1.11"><model name="m">{"".join(links + joints)}{more}</model></sdf>'

    def check(self, m: kic.Mechanism, c) -> None:
        """Check pose and values of each joint, by the definition of the format, and its laws."""
        parts = {joint.name: joint for joint in m.joints}
        for name, kind, parent, child in self.joints:
            place, turn = self.places[name]
            J = np.eye(4)
            J[:3, :3], J[:3, 3] = Rotation.from_euler("xyz", turn).as_matrix(), place
            A, B = (np.linalg.inv(J) @ self._moved(c, link) @ J for link in (parent, child))
            T = np.linalg.inv(A) @ B
            joint = parts[name]
            assert joint.bodies == tuple("ground" if x == "world" else x for x in (parent, child))
            values = [float(c.value(x)) for x in joint.components[: len(joint.valued)]]
            E = np.eye(4)
            if kind in ("revolute", "screw"):
                E[:3, :3] = Rotation.from_rotvec([values[0], 0, 0]).as_matrix()
            elif kind == "universal":
                E[:3, :3] = Rotation.from_euler("XY", values).as_matrix()
            elif kind == "ball":
                E[:3, :3] = T[:3, :3]
            if kind == "prismatic":
                E[0, 3] = values[0]
            if kind == "screw":
                E[0, 3] = values[1]
                assert abs(values[1] - PITCH * values[0] / (2 * np.pi)) < 1e-9
            assert np.abs(T - E).max() < 1e-9, (name, kind)
            for k in range(AXES[kind]):
                damping, stiffness, rest = self.laws[name][k]
                assert (joint.damping[k], joint.stiffness[k], joint.rest[k]) == (damping, stiffness, rest)
                assert joint.ranges[joint.components[k]] == (-5 - damping, np.inf)

    def _moved(self, c, link: str) -> np.ndarray:
        """Return the displacement (4, 4) of a link from the zero of the file."""
        if link == "world":
            return np.eye(4)
        pose, T = c.pose(f"{link}_frame"), np.eye(4)
        T[:3, :3] = pose.rotation.as_matrix()
        T[:3, 3] = pose.translation - T[:3, :3] @ self.at[link]
        return T


@pytest.mark.parametrize("seed", range(12))
def test_values_and_laws_of_joints_of_random_loops(seed):
    """Four links in a ring, whose joints are written in any order and direction."""
    rng = np.random.default_rng([seed, 5])
    ring = ["world", "a", "b", "c", "d"]
    kinds = [str(x) for x in rng.permutation(["revolute", "universal", "screw", "ball", "universal"])]
    pairs = [tuple(rng.permutation(pair)) for pair in zip(ring, ring[1:] + ring[:1], strict=True)]
    pairs = [pair[::-1] if pair[1] == "world" else pair for pair in pairs]
    model = Model(rng, [(f"j{k}", kinds[k], *pair) for k, pair in enumerate(pairs)])
    order = tuple(int(x) for x in rng.permutation(5))
    m = kic.from_sdf(model.text(order), coordinates=None)
    model.check(m, m.at())
    name = m.coordinates[0]
    model.check(m, m.at({x: float(m.at().value(x)) + 0.05 * (x == name) for x in m.coordinates}))


@pytest.mark.slow
def test_coupled_joints_are_read_in_every_order():
    """A screw and joints of a <mimic> never close the loop."""
    rng = np.random.default_rng(2)
    ring = ["world", "a", "b", "c"]
    kinds = ["screw", "universal", "ball", "ball"]
    pairs = list(zip(ring, [*ring[1:], "world"], strict=True))
    pairs[-1] = pairs[-1][::-1]
    model = Model(rng, [(f"j{k}", kinds[k], *pair) for k, pair in enumerate(pairs)])
    for order in permutations(range(4)):
        m = kic.from_sdf(model.text(order), spins="free")
        assert m.dof == 3
        model.check(m, m.at())


@pytest.mark.parametrize(("parent", "child"), [("a", "b"), ("b", "a")])
def test_mimic_of_a_universal_joint_that_is_turned_round(parent, child):
    follow = '<mimic joint="j1" axis="axis"/>'
    rng = np.random.default_rng(4)
    ends = ("j1", "universal", parent, child)
    model = Model(rng, [("j0", "revolute", "world", "a"), ends, ("j2", "revolute", "a", "e")])
    text = model.text()
    at = text.index('name="j2"')
    text = text[:at] + text[at:].replace("<axis>", f"<axis>{follow}", 1)
    m = kic.from_sdf(text, coordinates=["j0", "j1"])
    c = m.at({"j0": 0.1, "j1.1": 0.2, "j1.2": 0.3})
    model.check(m, c)
    assert abs(float(c.value("j2")) - 0.2) < 1e-9


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e6])
def test_laminas_are_written_for_mujoco(size):
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(1)
    for _ in range(100):
        a, b = rng.uniform(0.1, 1.0, 2) * size
        R = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
        J = R @ np.diag([a, b, a + b]) @ R.T
        body = kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=tuple(map(tuple, (J + J.T) / 2)))
        m = kic.Mechanism("m", [body], [kic.Joint("A", "revolute", ("ground", "b"), (0, 0, 0), (0, 0, 1))])
        model = mujoco.MjModel.from_xml_string(kic.to_mjcf(m))
        found = np.sort(model.body_inertia[1])
        assert np.abs(found - np.sort([a, b, a + b])).max() < 1e-12 * size


@pytest.mark.parametrize("inertia", [(2e-16, 2e-16, 3e-16), (0.0, 1.0, 1.0)])
def test_inertia_that_mujoco_does_not_allow_raises(inertia):
    body = kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=inertia)
    m = kic.Mechanism("m", [body], [kic.Joint("A", "revolute", ("ground", "b"), (0, 0, 0), (0, 0, 1))])
    refuses(lambda: kic.to_mjcf(m), kic.ModelError, name="b")


@pytest.mark.parametrize("distance", [0.0, 1e-15, 1e-9, 1e-8, 1e-7, 1e-6, 1e-3])
def test_rotations_beside_gimbal_lock_are_written(distance):
    rng = np.random.default_rng(6)
    for _ in range(20):
        roll, yaw = rng.uniform(-3, 3, 2)
        R = Rotation.from_euler("xyz", [roll, rng.choice([-1, 1]) * (np.pi / 2 - distance), yaw]).as_matrix()
        body = kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
        joint = kic.Joint("A", "revolute", ("ground", "b"), (0, 0, 0), (0, 0, 1))
        m = kic.Mechanism("m", [body], [joint], frames=[kic.Frame("tool", "b", axes=R.T)])
        again = kic.from_urdf(kic.to_urdf(m).text)
        assert np.abs(again.at([0.0]).pose("tool").rotation.as_matrix() - R).max() < 1e-13
