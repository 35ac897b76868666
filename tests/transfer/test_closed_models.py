"""Shipped mechanisms with loops, against differences of closed configurations and constraint forces.

Positions are differentiated by closing again, without kic's closure rows, and by complex steps. Dynamics are
compared with those of the opened mechanism with multipliers.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from closed_models import EVERY, configuration, displaced, every_configuration, ladder
from linkages import hinged
from raising import raises
from representative_models import OTHER_MODELS
from sampling import OFFSETS, WEIGHTS, agree, check_inertia, check_orders, mismatch

import kic
from kic.mechanism.configuration import Configuration

STEP = 2e-3


GHD, MODEL = ("G", "H", "D"), ("I", "P", "load")


@every_configuration
def test_every_order_in_other_coordinates(name: str, place: int) -> None:
    """By complex steps; shares of bodies add up. The gallery has the mechanisms' own coordinates."""
    (m, c), case = configuration(name, place), EVERY[name]
    assert (m.dof, len(m.coordinates)) == (case.dof, case.dof)
    read = np.array([c.value(q) - m.at().value(q) for q in m.coordinates])
    assert np.abs(read - case.moves[place]).max() < 1e-12
    for wrt in (list(m.coordinates), *(w.split() for w in case.wrt)):
        check_orders(c, case.of.split(), wrt, 1e-10)
        check_inertia(c, wrt, 1e-10)
        d, shares = c.dynamics(wrt=wrt), c.body_contributions(wrt=wrt)
        largest = max(np.abs(d.P).max(), np.abs(d.I).max())
        assert d.holonomic
        assert np.abs(d.P - d.P.swapaxes(1, 2)).max() < 1e-12 * largest
        assert mismatch((shares.I_linear + shares.I_angular).sum(axis=0), d.I) < 1e-12
        assert np.abs(shares.weight.sum(axis=0) - d.load).max() <= 1e-12 * np.abs(shares.weight).max()
        v, a = np.random.default_rng(place).normal(size=(2, m.dof))
        efforts = shares.inverse_dynamics(v, a)
        size = np.abs(efforts).max() + largest * (np.abs(v).sum() ** 2 + np.abs(a).sum())
        assert np.abs(efforts.sum(axis=0) - d.inverse_dynamics(v, a)).max() < 1e-12 * size
        power = (shares.P_linear + shares.P_angular).sum(axis=0)
        assert np.abs((power + power.swapaxes(1, 2)) / 2 - d.P).max() < 1e-11 * largest


@every_configuration
def test_orders_and_power_along_a_closed_path(name: str, place: int) -> None:
    """Differences of configurations that are closed again; efforts and weight do what the energy gains."""
    m, c = configuration(name, place)
    qd, qdd = np.random.default_rng(place).normal(size=(2, m.dof))
    t = STEP * OFFSETS[:, None]
    path = m.at(np.stack([c.value(q) for q in m.coordinates]) + t * qd + t**2 / 2 * qdd, near=c)
    of = EVERY[name].of.split()
    exact, near = c.coefficients(of, order=3), path.coefficients(of, order=2)
    # the differentiating index comes first: ∂G[p, n]/∂q_m, ∂H[p, m, n]/∂q_l
    for T, order in zip((near.values, near.G, near.H), exact.tensors, strict=True):
        slope, known = np.tensordot(WEIGHTS, T, axes=1) / STEP, np.einsum("pm...,m->p...", order, qd)
        valued = np.isfinite(slope)
        assert np.abs(slope - known)[valued].max() < 1e-6 * np.abs(known).max()
    energy, d = path.dynamics().kinetic_energy(qd + t * qdd), c.dynamics()
    for body in m.bodies:
        energy = energy - body.mass * path.pose(body.name).apply(body.com) @ m.gravity
    gained, given = WEIGHTS @ energy / STEP, d.inverse_dynamics(qd, qdd) @ qd
    assert abs(gained - given) < 1e-8 * (np.abs(energy).max() + abs(given))
    turning = np.tensordot(WEIGHTS, path.dynamics().I, axes=1) / STEP - 2 * d.coriolis(qd)
    assert np.abs(turning + turning.T).max() < 1e-6 * max(np.abs(turning).max(), np.abs(d.I).max())


@every_configuration
def test_inverse_path_returns(name: str, place: int) -> None:
    """One set of coordinates in terms of another and back is the identity, to third order."""
    (m, c), case = configuration(name, place), EVERY[name]
    own = list(m.coordinates)
    for names in (other.split() for other in (*case.wrt, case.quasi) if other):
        there, back = c.coefficients(names, order=3, wrt=own), c.coefficients(own, order=3, wrt=names)
        trip, most = there @ back, np.abs(there.G).max()
        assert np.abs(trip.G - np.eye(case.dof)).max() < 1e-11
        assert np.abs(trip.H).max() < 1e-10 * max(1, np.abs(back.H).max()) * most
        assert np.abs(trip.D).max() < 1e-10 * max(1, np.abs(back.D).max()) * most
        u, v = (
            c.coefficients(case.of.split(), order=3, wrt=own),
            c.coefficients(case.of.split(), order=3, wrt=names),
        )
        assert agree(there.inverse(), back, GHD, 1e-10)
        assert agree(u @ back, v, GHD, 1e-10)
        moved, asked = c.dynamics().transfer(back), c.dynamics(wrt=names)
        assert moved.holonomic == asked.holonomic == (" ".join(names) != case.quasi)
        assert agree(moved, asked, MODEL, 1e-10)
        assert agree(asked.transfer(there), c.dynamics(), ("I", "load"), 1e-9)


def linked(m: kic.Mechanism) -> kic.Mechanism:
    """Rods drawn as massless bodies, with a universal joint at one end and a ball at the other."""
    at = {p.name: np.array(p.at) for p in m.points}
    body = {p.name: p.body for p in m.points}
    rods, joints = [], list(m.joints)
    for d in m.distances:
        if d.fixed:
            one, two = d.points
            along = at[two] - at[one]
            across = np.linalg.svd(along[None])[2][1:]
            rods.append(kic.Body(f"{d.name} bar", mass=0.0, com=(at[one] + at[two]) / 2, inertia=(0, 0, 0)))
            pairs = (body[one], rods[-1].name), (rods[-1].name, body[two])
            joints.append(
                kic.Joint(f"{d.name} in", "universal", pairs[0], at[one], across[0], axis2=across[1])
            )
            joints.append(kic.Joint(f"{d.name} out", "spherical", pairs[1], at[two]))
    free = [d for d in m.distances if not d.fixed]
    return replace(m, bodies=[*m.bodies, *rods], joints=joints, distances=free)


@pytest.mark.slow_for(*OTHER_MODELS)
@every_configuration
def test_results_are_independent_of_the_cuts(name: str, place: int) -> None:
    """Other orders of the joints and other coordinates change the tree, but not the results."""
    (m, c), case = configuration(name, place), EVERY[name]
    turned = replace(m, joints=m.joints[::-1], coordinates=case.tree.split()) if case.tree else linked(m)
    assert set(turned.mobility().cuts) != set(m.mobility().cuts)
    assert turned.dof == m.dof
    e, of = turned.at({q: c.value(q) for q in m.coordinates}), case.of.split()
    for wrt in (list(m.coordinates), case.wrt[0].split()):
        a, b = c.coefficients(of, order=3, wrt=wrt), e.coefficients(of, order=3, wrt=wrt)
        valued = np.isfinite(a.values)
        assert np.abs(b.values - a.values)[valued].max() < 1e-12 * max(1, np.abs(a.values[valued]).max())
        assert agree(b, a, GHD, 1e-10)
        assert agree(e.dynamics(wrt=wrt), c.dynamics(wrt=wrt), MODEL, 1e-10)


def accelerations_by_multipliers(m: kic.Mechanism, c: Configuration, qd, effort) -> dict[str, float]:
    """The opened mechanism with M φ̈ + h = τ + Jᵀλ and J φ̈ = −φ̇ᵀHφ̇: accelerations by name."""
    kept, cuts = ([j for j in m.joints if (j.name in m.mobility().cuts) is cut] for cut in (False, True))
    # what a loop keeps together: a point, two of a hinge's axis, all but the line of a slider on ground
    points, across = [], {}
    for j in cuts:
        axis = np.array(j.axis or (0, 0, 0)) / (np.linalg.norm(j.axis) if j.axis else 1)
        slides = j.type == "prismatic"
        places = np.array(j.at) + {"revolute": [0 * axis, axis], "spherical": [axis]}.get(j.type, np.eye(3))
        for k, at in enumerate(places):
            points += [kic.Point(f"{j.name} {k} {side}", j.bodies[side], at) for side in (0, 1)]
            across[f"{j.name} {k}"] = np.linalg.svd(axis[None])[2][1:] if slides else np.eye(3)
    loose = [replace(d, fixed=False) for d in m.distances]
    chain = replace(
        m, joints=kept, points=[*m.points, *points], distances=loose, couplings=(), coordinates=None
    )
    given = {}
    for j in kept:
        first, second = (displaced(c, body).rotation for body in j.bodies)
        if j.type == "free":
            given[j.name] = displaced(c, j.bodies[0]).inv() * displaced(c, j.bodies[1])
        else:
            given[j.name] = first.inv() * second if j.type == "spherical" else c.value(j.name)
    o = chain.at(given)
    d, phid = o.dynamics(), c.coefficients([j.name for j in kept]).velocity(qd)
    J, bias = [], []
    for name, rows in across.items():
        u, v = o.coefficients(f"{name} 0"), o.coefficients(f"{name} 1")
        assert np.abs(rows @ (u.values - v.values)).max() < 1e-11
        J.append(rows @ (v.G - u.G))
        bias.append(rows @ np.einsum("pmn,m,n->p", v.H - u.H, phid, phid))
    for rod in m._fixed_distances:
        u = o.coefficients(rod)
        J.append(u.G)
        bias.append(np.einsum("pmn,m,n->p", u.H, phid, phid))
    for terms in m._terms.values():
        J.append(np.zeros((1, len(phid))))
        J[-1][0, [d.coordinates.index(q) for q, _ in terms]] = [ratio for _, ratio in terms]
        bias.append(np.zeros(1))
    J, force = np.concatenate(J), np.zeros(len(phid))
    force[[d.coordinates.index(q) for q in m.coordinates]] = effort
    K = np.block([[d.I, J.T], [J, np.zeros((len(J), len(J)))]])
    right = np.concatenate([force - d.inverse_dynamics(phid, 0 * phid), *(-b for b in bias)])
    # forces that redundant loops leave open get the smallest
    x = np.linalg.lstsq(K, right, rcond=1e-13)[0]
    assert np.abs(K @ x - right).max() < 1e-9 * max(1, np.abs(right).max())
    return dict(zip(d.coordinates, x[: len(phid)], strict=True))


def check_against_multipliers(m: kic.Mechanism, c: Configuration) -> None:
    qd, effort = np.random.default_rng(7).normal(size=(2, m.dof))
    qdd = c.dynamics().forward_dynamics(qd, effort)
    found = accelerations_by_multipliers(m, c, qd, effort)
    u = c.coefficients(list(dict.fromkeys(q.split(".")[0] for q in found)))
    follow = dict(zip(u.rows, u.acceleration(qd, qdd), strict=True))
    largest = max(map(abs, follow.values()))
    for q, a in follow.items():
        assert abs(found[q] - a) < 1e-9 * largest, q


@every_configuration
def test_against_constraint_forces(name: str, place: int) -> None:
    check_against_multipliers(*configuration(name, place))


@pytest.mark.parametrize("count", range(1, 11))
def test_ladders(count: int) -> None:
    m, g = ladder(count), 9.81
    assert (m.dof, len(m.mobility().cuts)) == (1, count)
    angle = np.arctan2(4, 3) + 0.5
    c = m.at({"D0": 0.5})
    u, d = c.coefficients([f"D{count}", f"A{count}", f"c{count}"], order=3), c.dynamics()
    assert np.abs(u.G[:2, 0] - [1, -1]).max() < 1e-12
    assert np.abs(u.H[:2]).max() < 1e-11
    assert np.abs(u.D[2:4].ravel() - [0.5 * np.sin(angle), -0.5 * np.cos(angle)]).max() < 1e-9
    # rockers turn, couplers go round without turning
    assert abs(d.I[0, 0] - ((count + 1) / 3 + count) * 0.25) < 1e-12 * count
    assert np.abs(d.P).max() < 1e-11 * count
    assert abs(d.load[0] + g * 0.5 * np.cos(angle) * ((count + 1) / 2 + count)) < 1e-11 * count
    check_against_multipliers(other := ladder(count, lean=0.05), other.at({"D0": 0.2}))


def test_coupler_of_the_rssr_has_a_passive_dof() -> None:
    """Its spin moves nothing else; and with two ball joints, drawn plainly, the linkage is the same."""
    m, c = configuration("rssr", 0)
    u = c.coefficients(["rocker", "crank"], order=3)
    for T in (u.G[:, 1], u.H[:, 1], u.H[:, :, 1], u.D[:, 1], u.D[:, :, 1], u.D[:, :, :, 1]):
        assert np.abs(T[:1]).max() < 1e-12
    balls = [j for j in m.joints if j.name in ("crank", "ball", "rocker")]
    pin = kic.Joint("pin", "spherical", ("crankarm", "coupler"), at=m.joints[1].at)
    bodies = [b for b in m.bodies if b.name != "fork"]
    plain = replace(m, bodies=bodies, joints=[balls[0], pin, *balls[1:]], coordinates=["crank"])
    assert plain.dof == 2
    with raises(kic.InputError, mobility=2, count=1):
        plain.at([1.0])
    e = plain.at({"crank": c.value("crank"), "flag.z": c.value("flag")[2]}, near=plain.at())
    of = ["rocker", "flag", "coupler"]
    for wrt in (["crank", "coupler.wx"], ["rocker", "flag.z"]):
        assert agree(*(x.coefficients(of, order=3, wrt=wrt) for x in (e, c)), GHD, 1e-9)
        assert agree(e.dynamics(wrt=wrt), c.dynamics(wrt=wrt), MODEL, 1e-9)


def test_dead_centres() -> None:
    """Where crank and rod are in line the piston drives nothing; what can is named, and does."""
    m = kic.load("slider-crank")
    for dead in (m.at({"shaft": 0.0}), m.at({"shaft": np.pi})):
        assert np.abs(dead.coefficients("piston").G).max() < 1e-12
        for question in (dead.dynamics, lambda wrt, c=dead: c.coefficients("rod", wrt=wrt)):
            with raises(kic.SingularError, coordinates=("piston",)) as caught:
                question(wrt="piston")
            assert set(caught.value.possible) == {"shaft", "crankpin", "wristpin"}
            assert caught.value.condition > 1e11
        for q in caught.value.possible:
            assert np.isfinite(dead.coefficients("rod", order=3, wrt=q).D).all()
    with raises(kic.ConfigurationError, failed=[()], share=[pytest.approx(0.9959, abs=5e-5)]):
        m.at({"piston": 0.2521})


@pytest.mark.slow
def test_batches_of_which_some_are_out_of_reach() -> None:
    m = kic.load("three-legged-robot")
    where = {"w.x": np.array([[2.6, 9.0], [2.4, 2.5]]), "w.y": 1.5, "platform.angle": [0.1, -0.1]}
    with raises(kic.ConfigurationError, failed=[(0, 1)]) as caught:
        m.at(where)
    assert caught.value.failed == [(0, 1)]
    c = m.at(where, failures="mask")
    assert c.ok.tolist() == caught.value.configuration.ok.tolist() == [[True, False], [True, True]]
    d, D = c.dynamics(wrt=[*where]), c.coefficients("link1", order=3, wrt=[*where]).D
    for T in (c.value("A1"), D, d.P, d.load):
        assert np.isnan(T[0, 1]).all()
        assert np.isfinite(T[c.ok]).all()


CLOSED = [name for name in kic.model_names() if kic.load(name).mobility().cuts]


@pytest.mark.parametrize("name", CLOSED)
def test_coordinates_that_are_offered_where_none_are_named_drive_the_mechanism(name: str) -> None:
    mechanism = kic.load(name)
    bare = replace(mechanism, coordinates=None)
    with raises(kic.InputError, count=0, mobility=mechanism.dof) as caught:
        bare.at().coefficients(mechanism.bodies[0].name)
    offered = re.search(r"Add `coordinates = (\[.*?\])`, or any", str(caught.value))
    assert offered
    driven = replace(bare, coordinates=json.loads(offered[1]))
    assert len(driven.coordinates) == driven.dof == caught.value.mobility
    G = driven.at().coefficients(list(driven.coordinates)).G
    assert abs(G - np.eye(driven.dof)).max() < 1e-9
    # an error lists all of them, as before
    with raises(kic.InputError, mobility=mechanism.dof):
        bare.at().coefficients(mechanism.bodies[0].name, wrt=list(bare.coordinates))


def test_fixed_mechanisms_need_no_coordinates() -> None:
    still = hinged([(0, 0, 0), (1, 2, 0), (3, 0, 0)], bodies="ab", coordinates=None)
    with raises(kic.InputError, mobility=0, count=0):
        still.at().coefficients("a.wz")
    assert replace(still, coordinates=[]).at().coefficients("a.wz").G.shape[-1] == 0
