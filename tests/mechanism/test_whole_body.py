"""Centre of mass and centroidal momentum against the laws of free motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import refuses
from sampling import check_orders
from scipy.spatial.transform import RigidTransform, Rotation

import kic


@pytest.fixture(scope="module")
def free_arm() -> kic.Mechanism:
    """Return an arm on a free base, with a point mass."""
    bodies = [
        kic.Body(name, mass=1.0 + k, com=(0.3 + k, 0.1, -0.2 * k), inertia=(0.2, 0.3, 0.4, 0.01, -0.02, 0.03))
        for k, name in enumerate(("base", "one", "two"))
    ]
    joints = [
        kic.Joint("float", "free", ("ground", "base"), (0, 0, 0)),
        kic.Joint("A", "revolute", ("base", "one"), (0.5, 0, 0), (0, 0.6, 0.8), armature=0.0),
        kic.Joint("B", "prismatic", ("one", "two"), axis=(1, 1, 0)),
    ]
    points = [kic.Point("lump", "two", (2.5, 0.4, 0.1), mass=0.7)]
    return kic.Mechanism("arm", bodies, joints, points=points, gravity=(0.3, 1, -9))


def moving(m: kic.Mechanism):
    pose = RigidTransform.from_components([1, 2, 3], Rotation.from_rotvec([0.4, -0.3, 0.8]))
    rng = np.random.default_rng(0)
    return m.at({"float": pose, "A": 0.6, "B": -0.2}), *rng.normal(size=(2, m.dof))


def test_centre_of_mass_follows_gravity(free_arm):
    c, qd, _ = moving(free_arm)
    d = c.dynamics()
    com = c.coefficients("com", order=3)
    assert abs(free_arm.total_mass - 6.7) < 1e-14
    # the load of gravity alone is that of the total mass at the centre of mass
    assert np.abs(d.load - free_arm.total_mass * np.array(free_arm.gravity) @ com.G).max() < 1e-12
    qdd = d.forward_dynamics(qd, np.zeros(free_arm.dof))
    assert np.abs(com.acceleration(qd, qdd) - free_arm.gravity).max() < 1e-11
    check_orders(c, "com")


def test_momentum_is_conserved(free_arm):
    c, qd, _ = moving(free_arm)
    effort = np.zeros(free_arm.dof)
    effort[6:] = 3.0, -2.0  # internal
    qdd = c.dynamics().forward_dynamics(qd, effort)
    h = c.centroidal_momentum()
    rate = h.rate(qd, qdd)
    weight = free_arm.total_mass * np.array(free_arm.gravity)
    assert np.abs(rate - [*weight, 0, 0, 0]).max() < 1e-11
    # kinetic energy by König's theorem for one rigid motion
    still = np.zeros(free_arm.dof)
    still[3:6] = 0.3, -0.5, 0.7
    com = c.coefficients("com")
    v = com.G @ still
    spin = h.momentum(still)[3:] @ still[3:6]
    d = c.dynamics()
    assert abs(still @ d.I @ still - (free_arm.total_mass * v @ v + spin)) < 1e-12


def test_some_bodies_in_batches_and_closed_mechanisms():
    m = kic.load("four-bar")
    c = m.at({"A": [[1.0], [1.2]]})
    whole = c.coefficients("com")
    names = [b.name for b in m.bodies if b.mass]
    centers = [kic.CenterOfMass(f"{name} centre", [name]) for name in names]
    own = replace(m, centers=centers).at({"A": [[1.0], [1.2]]})
    parts = [own.coefficients(center.name) for center in centers]
    masses = np.array([b.mass for b in m.bodies if b.mass])
    mean = sum(w * part.H for w, part in zip(masses, parts, strict=True)) / masses.sum()
    assert whole.H.shape == (2, 1, 3, 1, 1)
    assert np.abs(whole.H - mean).max() < 1e-13
    assert c.centroidal_momentum().matrix.shape == (2, 1, 6, 1)
    heavy = replace(m, gravity=(0, -9.81, 0)).at({"A": 1.0})
    weight = m.total_mass * np.array([0, -9.81, 0])
    assert np.abs(heavy.dynamics().load - weight @ whole.G[0, 0]).max() < 1e-12


def test_centre_of_mass_by_name_to_third_order():
    arm = kic.CenterOfMass("arm", ["link2", "link3"])
    m = replace(kic.load("puma560"), centers=[arm])
    phi = np.random.default_rng(1).normal(size=6)
    c = m.at(phi)
    rows = c.coefficients(["com", "arm"], order=3)
    assert rows.rows == ("com.x", "com.y", "com.z", "arm.x", "arm.y", "arm.z")
    check_orders(c, ["com", "arm"], limit=1e-14)
    # the mean of the bodies' own centres, which are points of their own
    bodies = [b for b in m.bodies if b.name in arm.bodies]
    points = [kic.Point(f"{b.name} centre", b.name, b.com) for b in bodies]
    own = replace(m, points=(*m.points, *points)).at(phi)
    masses = np.array([b.mass for b in bodies])
    for key in ("values", "G", "H", "D"):
        parts = [getattr(own.coefficients(p.name, order=3), key) for p in points]
        mean = sum(w * x for w, x in zip(masses, parts, strict=True)) / masses.sum()
        assert np.abs(getattr(rows, key)[3:] - mean).max() < 1e-14


def test_centre_of_mass_as_input_and_coordinate():
    m = kic.load("four-bar")
    crank = np.linspace(1.2, 2.6, 30)
    x = m.path({"A": crank}).value("com.x")
    assert np.all(np.diff(x) < 0)
    back = m.path({"com.x": x}, near=m.at({"A": crank[0]})).value("A")
    assert np.abs(back - crank).max() < 1e-10
    c = m.at({"A": 2.0})
    G = c.coefficients("com.x", order=2, wrt="A")
    one, other = c.dynamics(wrt="A"), c.dynamics(wrt="com.x")
    assert abs(one.I - G.G[0, 0] ** 2 * other.I) < 1e-12 * abs(one.I)
    # velocity to jerk along a motion, and prepared evaluators
    rows = c.coefficients("com", order=3)
    found = c.motion("com", [0.7], [0.3], [-0.4])
    third = rows.jerk([0.7], [0.3], [-0.4])
    rates = (c.value("com"), rows.velocity([0.7]), rows.acceleration([0.7], [0.3]), third)
    for one, other in zip(found, rates, strict=True):
        assert np.abs(one - other).max() < 1e-13
    prepared = m.prepare.coefficients(["com"], order=2)(c.state)
    assert np.abs(prepared.com.H - rows.H).max() < 1e-14


def test_centre_of_mass_needs_masses():
    m = kic.load("four-bar")
    light = replace(m, bodies=[kic.Body(b.name, at=(0, 0, 0)) for b in m.bodies])
    refuses(lambda: light.at().value("com.x"), kic.InertiaError)
    refuses(lambda: replace(m, centers=[kic.CenterOfMass("some", ["nobody"])]), kic.ModelError, name="nobody")
    refuses(lambda: kic.CenterOfMass("none", []), kic.ModelError)
    # a part of this name takes the place of the whole
    named = replace(m, centers=[kic.CenterOfMass("com", [m.bodies[0].name])])
    assert np.abs(named.at().value("com") - m.bodies[0].com).max() < 1e-14


def test_named_bodies_that_are_fixed_count():
    """The centre of mass of named bodies is that of exactly these, fixed to ground or not."""
    bodies = [
        kic.Body(n, mass=m, com=(x, 0, 0), inertia=0.1)
        for n, m, x in (("post", 1.0, 10.0), ("arm", 3.0, 1.0))
    ]
    joints = [
        kic.Joint("F", "fixed", ("ground", "post"), at=(10, 0, 0)),
        kic.Joint("A", "revolute", ("ground", "arm"), at=(0, 0, 0), axis=(0, 0, 1)),
    ]
    m = kic.Mechanism(
        "arm and post", bodies, joints, points=[kic.Point("lump", "post", (10, 1, 0), mass=1.0)],
        centers=[kic.CenterOfMass("both", ["post", "arm"]), kic.CenterOfMass("post only", ["post"])],
    )  # fmt: skip
    c = m.at([0.0])
    assert np.abs(c.value("both") - [23 / 5, 1 / 5, 0]).max() < 1e-14
    assert np.abs(c.value("post only") - [10, 0.5, 0]).max() < 1e-14
    assert np.abs(c.value("com") - [1, 0, 0]).max() < 1e-14
    both = c.coefficients(["both", "post only"], order=3)
    assert np.abs(both.G[:, 0] - [0, 3 / 5, 0, 0, 0, 0]).max() < 1e-14
    assert np.abs(both.H[:, 0, 0] - [-3 / 5, 0, 0, 0, 0, 0]).max() < 1e-14
    assert np.abs(both.D[:, 0, 0, 0] - [0, -3 / 5, 0, 0, 0, 0]).max() < 1e-14
