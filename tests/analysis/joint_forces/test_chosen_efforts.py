"""Joint forces for given efforts: equilibrium of each body, and contact loads equal to those of the grasp."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from actuation_cases import Case
from free_bodies import equilibrium_residual
from grasp_cases import HELD, moving
from raising import raises, refuses
from sampling import mismatch

import kic

CASES = ["hand", "hand, all six", "walker", "walker, five", "arms", "four-bar", "platform"]
MOTORS = ["B1", "C1", "B2", "C2"]


def chosen(name: str):
    """A case that moves, with what its motion takes and efforts that give it, strained by a preload."""
    case = Case(name)
    qd, qdd = 0.5 * case.rng.normal(size=(2, case.M))
    needed = case.c.dynamics(wrt=case.wrt).inverse_dynamics(qd, qdd)
    loads = case.c.internal_loads(actuators=case.actuators, criterion=np.ones(case.A), wrt=case.wrt)
    strain = np.abs(needed).max() * case.rng.normal(size=case.A)
    d = case.c.distribute(
        needed, actuators=case.actuators, criterion=np.ones(case.A), preload=strain, wrt=case.wrt
    )
    return case, qd, qdd, d, loads


@pytest.mark.parametrize("name", CASES)
def test_every_body_is_in_equilibrium(name: str) -> None:
    case, qd, qdd, d, _ = chosen(name)
    ask = {"wrt": case.wrt, "actuators": case.actuators, "effort": d.effort}
    f = case.c.joint_forces(qd, qdd, criterion="minimum norm", **ask)
    assert mismatch(f.effort, d.effort) < 1e-9
    if all(
        case.m[x].__class__ is kic.Joint for x in case.actuators
    ):  # the reference accepts efforts in joints
        assert equilibrium_residual(case.m, case.c, f, qd, qdd, case.wrt) < 1e-9
    # nothing is open any more that only the choice of efforts had left open
    bare = case.c.joint_forces(qd, qdd, wrt=case.wrt, actuators=case.actuators)
    same = case.c.joint_forces(qd, qdd, **ask)
    assert set(same.undetermined) <= set(bare.undetermined)
    assert not set(same.undetermined) & set(case.actuators)
    assert np.isfinite(same.effort).all()
    if case.A > case.M:
        assert set(bare.undetermined) & set(case.actuators)


@pytest.mark.parametrize("name", ["three-finger-hand", "quadruped", "soft", "mixed"])
def test_contact_loads_equal_those_of_the_grasp(name: str) -> None:
    """Free bodies with chosen efforts, and the open hand with chosen loads: two routes to each contact."""
    _, c, g, qd, qdd, _ = moving(name)
    rng = np.random.default_rng(4)
    strain = g.internal @ rng.normal(size=g.internal.shape[-1]) if g.internal.size else 0.0
    least = g.motion(qd, qdd)
    motion = g.motion(qd, qdd, forces=least.force + np.abs(least.force).max() * strain)
    f = c.joint_forces(qd, qdd, wrt=HELD[name], actuators=g.fingers, effort=motion.effort)
    assert f.undetermined == ()
    size = np.abs(motion.contact_force).max()
    for k, contact in enumerate(g.contacts):
        assert np.abs(f[contact.name].force - motion.contact_force[k]).max() < 1e-8 * size
        assert np.abs(f[contact.name].moment - motion.contact_moment[k]).max() < 1e-8 * size


@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_batches(batch: tuple[int, ...]) -> None:
    m = kic.load("walking-machine")
    start = np.array([m.at().value(x) for x in m.coordinates])
    at = start + np.random.default_rng(0).uniform(-0.05, 0.05, (*batch, 3))
    c = m.at(at)
    needed = c.dynamics().inverse_dynamics(np.zeros(3), np.zeros(3))
    d = c.distribute(needed, actuators=MOTORS, preload=[1.0, 0, 0, 0])
    f = c.joint_forces(actuators=MOTORS, effort=d.effort)
    assert f.effort.shape == (*batch, 4)
    assert f["A1"].force.shape == (*batch, 3)
    if f.effort.size:
        assert mismatch(f.effort, d.effort) < 1e-12
    for index in np.ndindex(batch):
        one = m.at(at[index]).joint_forces(actuators=MOTORS, effort=d.effort[index])
        assert mismatch(f["A1"].force[index][:2], one["A1"].force[:2]) < 1e-12
    # several choices for one configuration
    three = m.at().distribute(m.at().dynamics().load * -1, actuators=MOTORS, preload=5 * np.eye(4)[:3])
    many = m.at().joint_forces(actuators=MOTORS, effort=three.effort)
    assert many["A1"].force.shape == (3, 3)
    assert np.ptp(many["A1"].force[:, 0]) > 1.0  # legs push their feet apart, more or less


def test_no_efforts_give_no_forces() -> None:
    m = kic.load("walking-machine")
    c = m.at()
    needed = c.dynamics().inverse_dynamics(np.zeros(3), np.zeros(3)) * np.array([[1.0], [9.0]])
    d = c.distribute(needed, actuators=MOTORS, effort_limits=20.0, failures="mask")
    assert np.isnan(d.effort[1]).all()
    f = c.joint_forces(actuators=MOTORS, effort=d.effort)
    assert np.isfinite(f["A1"].force[0, :2]).all()
    assert np.isnan(f["A1"].force[1]).all()
    assert np.isnan(f.effort[1]).all()


def test_efforts_that_do_not_make_the_motion() -> None:
    m = kic.load("walking-machine")
    c = m.at()
    needed = c.dynamics().inverse_dynamics(np.zeros(3), np.zeros(3))
    T = c.distribute(needed, actuators=MOTORS).effort
    near = c.joint_forces(actuators=MOTORS, effort=T * (1 + 1e-9))  # a solver's last digits: put right
    assert mismatch(near["A1"].force[:2], c.joint_forces(actuators=MOTORS, effort=T)["A1"].force[:2]) < 1e-8
    assert mismatch(near.effort @ c.coefficients(MOTORS).G, needed) < 1e-13
    caught = refuses(lambda: c.joint_forces(actuators=MOTORS, effort=1.01 * T), failed=[()])
    assert 1e-4 < caught.residual < 0.1
    refuses(lambda: c.joint_forces(actuators=MOTORS, effort=[T, 0 * T]), key="effort", failed=[(1,)])
    # as many as degrees of freedom: there is one choice
    own = m.coordinates
    exact = c.joint_forces(actuators=own, effort=needed)
    assert mismatch(exact["A1"].force[:2], c.joint_forces(actuators=own)["A1"].force[:2]) < 1e-12
    refuses(lambda: c.joint_forces(actuators=own, effort=needed + 1.0), failed=[()])
    with raises(kic.InputError, key="effort"):
        c.joint_forces(effort=needed)  # the model declares the four motors
    refuses(lambda: c.joint_forces(actuators=MOTORS, effort=T + 1j), key="effort", got=complex)


def test_efforts_at_contacts() -> None:
    """A closed one does no work; between an open foot and the ground it is a force like others."""
    m = kic.load("quadruped")
    motors = [joint.name for joint in m.joints if joint.type == "revolute"]
    lifted = replace(
        m, contacts=[replace(x, closed=x.name != "step_fl") for x in m.contacts], coordinates=None
    ).at()
    wrt = ["trunk", "spread_fl", "swing_fl", "knee_fl"]
    acting = [*motors, "step_fl"]
    needed = lifted.dynamics(wrt=wrt).inverse_dynamics(np.zeros(9), np.zeros(9))
    # as if the foot stood: the ground's loads are three efforts more
    g = m.at().grasp("trunk")
    motion = g.motion()
    given = np.concatenate([motion.effort, motion.force[:3]])
    assert mismatch(given @ lifted.coefficients(acting, wrt=wrt).G, needed) < 1e-12
    f = lifted.joint_forces(wrt=wrt, actuators=acting, effort=given)
    for k in (1, 2, 3):
        assert np.abs(f[g.contacts[k].name].force - motion.contact_force[k]).max() < 1e-9


# ------------------------------------------------------------------------- the walking machine, twice


def test_walking_machine_on_feet_and_on_pins() -> None:
    """Contacts on the ground, pins with efforts that were chosen, free bodies of both: the same feet."""
    pins, feet = kic.load("walking-machine"), kic.load("walking-machine-on-feet")
    rng = np.random.default_rng(3)
    way = rng.uniform(-0.04, 0.04, 3)
    b = feet.at(way)
    a = pins.at({x: b.value(x) for x in ("B1", "C1", "B2")}, near=pins.at())
    assert a.value("C2") == pytest.approx(float(b.value("C2")), abs=1e-12)
    qd, qdd = rng.normal(size=(2, 3))
    trunk = ["trunk.x", "trunk.y", "trunk.angle"]
    needed = [c.dynamics(wrt=trunk).inverse_dynamics(qd, qdd) for c in (a, b)]
    assert mismatch(*needed) < 1e-12
    d, e = (c.distribute(needed[0], actuators=MOTORS, preload=[9.0, 0, 0, 0], wrt=trunk) for c in (a, b))
    assert mismatch(d.effort, e.effort) < 1e-11
    f, h = (c.joint_forces(qd, qdd, wrt=trunk, actuators=MOTORS, effort=d.effort) for c in (a, b))
    g = b.grasp("trunk")
    # the loads of the feet along their rows, of which those across the plane are open
    loads = [h[x.name].force[:2] @ g.normal[k][:2] for k, x in enumerate(g.contacts)]
    for k, (pin, foot) in enumerate((("A1", "foot1"), ("A2", "foot2"))):
        assert np.abs(f[pin].force[:2] + h[foot].force[:2]).max() < 1e-10
        assert f[pin].force[1] == pytest.approx(loads[k])
    least = g.motion(qd, qdd, wrt=trunk)
    strain = (d.effort - least.effort) @ np.linalg.pinv(g.J)
    motion = g.motion(qd, qdd, wrt=trunk, forces=least.force + g.internal @ (g.internal.T @ strain))
    assert mismatch(motion.effort, d.effort) < 1e-10
    assert np.abs(motion.contact_force[:, :2] - [h[x].force[:2] for x in ("foot1", "foot2")]).max() < 1e-9


def test_feet_of_the_walking_machine_only_push() -> None:
    m = kic.load("walking-machine-on-feet")
    g = m.at().grasp("trunk")
    assert g.motion().feasible
    total = sum(body.mass for body in m.bodies)
    assert g.motion().normal_force.sum() == pytest.approx(9.81 * total)
    # thrown forward it tips over the hind foot; pulled down faster than by its weight it has to hold on
    assert g.motion(None, [15.0, 0, 0]).pulling.tolist() == [False, True]
    assert g.motion(None, [0, -15.0, 0]).pulling.all()
    lifted = replace(m, contacts=[m.contacts[0], replace(m.contacts[1], closed=False)], coordinates=None)
    assert lifted.dof == 5
    with raises(kic.SingularError, rank=2, failed=[()]):
        lifted.at().grasp("trunk").motion(wrt=["drift", "B2", "C2"])
    # drawn with pins for feet it could: those hold both ways
    pinned = [kic.Contact(x.name, "pinned", x.bodies, x.at, normal=x.normal) for x in m.contacts]
    assert replace(m, contacts=pinned).at().grasp("trunk").motion(None, [0, -15.0, 0]).feasible


@pytest.mark.parametrize("name", CASES)
def test_efforts_by_name_are_those_in_order(name: str) -> None:
    """Efforts at rows of any name act as GᵀT at the coordinates; the order of a dict does not count."""
    case, qd, qdd, d, _ = chosen(name)
    c, wrt = case.c, case.wrt
    acting = d.actuators
    named = dict(reversed(list(zip(acting, d.effort.tolist(), strict=True))))
    order = {"wrt": wrt, "actuators": case.actuators}
    f = c.joint_forces(qd, qdd, named, criterion="minimum norm", **order)
    assert np.array_equal(
        f.effort, c.joint_forces(qd, qdd, d.effort, criterion="minimum norm", **order).effort
    )
    assert set(c.joint_forces(qd, qdd, named, wrt=wrt).actuators) == set(acting)
    # the efforts make the motion, by the Jacobian of their rows
    size = 1e3 * np.finfo(float).eps * np.linalg.cond(c.dynamics(wrt=wrt).I) * (1 + abs(qdd).max())
    assert mismatch(c.forward_dynamics(qd, named, wrt=wrt), qdd) < size
    again = c.distribute(named, criterion=np.ones(case.A), preload=named, **order)
    assert mismatch(again.effort, d.effort) < 1e-9
    labels = d.coordinates
    demand = {labels[0]: 2.0}
    model = c.dynamics(wrt=wrt)
    given = model.forward_dynamics(qd, np.eye(case.M)[0] * 2.0)
    assert np.array_equal(model.forward_dynamics(qd, demand), given)
    assert mismatch(c.forward_dynamics(qd, demand, wrt=wrt), given) < size


def test_efforts_by_name_of_batches_and_errors() -> None:
    c = kic.load("five-bar").at([[1.2, 1.5], [1.3, 1.6], [1.2, 9.9]], failures="mask")
    made = c.forward_dynamics([1.0, 1.0], {"B": [0.1, 0.2, 0.3]}, failures="mask")
    assert np.isfinite(made).all(axis=1).tolist() == c.ok.tolist()
    assert mismatch(made[1], c[1].forward_dynamics([1.0, 1.0], {"B": 0.2})) < 1e-12
    assert np.array_equal(c[0].forward_dynamics(effort={}), c[0].forward_dynamics())
    c = c[0]
    for effort, expected in (
        ({"Q": 1.0}, raises(kic.UnknownNameError, name="Q")),
        ({"tip": 1.0}, raises(kic.InputError, key="effort")),
        ({5: 1.0}, raises(kic.InputError, key="effort", got={5: 1.0})),
        ({"A": "x"}, raises(kic.InputError, key="effort", got="x")),
        (
            {"A": [1.0, 2.0], "B": [1.0] * 3},
            raises(kic.InputError, batches={"effort['A']": (2,), "effort['B']": (3,)}),
        ),
    ):
        with expected:
            c.forward_dynamics(effort=effort)
    with raises(kic.UnknownNameError, name="B", candidates=("A", "E")):
        c.dynamics().forward_dynamics([0.0, 0.0], {"B": 1.0})
    two, three = kic.load("five-bar").at([c.value(["A", "E"])] * 2), {"B": [0.1, 0.2, 0.3]}
    for asked in (
        lambda: two.forward_dynamics(effort=three),
        lambda: two.distribute(three),
        lambda: two.linearize(effort=three),
    ):
        refuses(asked, batches={"configuration": (2,), "effort": (3,)})


def test_efforts_by_name_of_symbols() -> None:
    sympy = pytest.importorskip("sympy")
    arm, q, push = kic.load("horn-two-link"), sympy.symbols("q1 q2"), sympy.Symbol("f")
    made = arm.at(q).forward_dynamics(effort={"tip.y": push})
    at = {q[0]: 0.3, q[1]: -0.8, push: 2.5}
    found = np.array([float(a.subs(at)) for a in made])
    want = arm.at([0.3, -0.8]).forward_dynamics(effort={"tip.y": 2.5})
    assert mismatch(found, want) < 1e-12
