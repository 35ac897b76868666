"""Serial chains from ground to a body: legs of closed mechanisms."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises

import kic

LEGS = {
    "three-legged-robot": ("platform", "x y wz"),
    "stewart-6r": ("plate", "x y z wx wy wz"),
    "two-finger-hand": ("object", "x y wz"),
    "walking-machine": ("trunk", "x y wz"),
}


@pytest.mark.parametrize("name", LEGS)
def test_models_of_legs_add_up(name: str) -> None:
    """Legs in coordinates of the platform add up to the mechanism (4-48), (4-49), in any configuration."""
    m, (tip, rows) = kic.load(name), LEGS[name]
    c = m.at(m.at().value(m.coordinates) + np.random.default_rng(2).uniform(-0.05, 0.05, m.dof))
    wrt = [f"{tip}.{row}" for row in rows.split()]
    firsts = [joint.name for joint in m.joints if "ground" in joint.bodies]
    assert len(firsts) == {"stewart-6r": 6, "three-legged-robot": 3}.get(name, 2)
    total: kic.Dynamics | None = None
    for first in firsts:
        leg = m.chain(tip, through=first)
        if total is not None:
            leg = leg.replace(tip, mass=0.0, inertia=np.zeros((3, 3)))
        there = leg.at(c.value(leg.coordinates))
        assert np.abs(there.pose(tip).as_matrix() - c.pose(tip).as_matrix()).max() < 1e-8
        own = there.dynamics().transfer(there.coefficients(wrt).inverse())
        total = own if total is None else total + own
    assert total is not None
    whole = c.dynamics(wrt=wrt)
    for part in ("I", "P", "load"):
        a, b = getattr(total, part), getattr(whole, part)
        assert np.abs(a - b).max() < 1e-8 * max(np.abs(b).max(), 1.0)


def test_parts_of_a_chain() -> None:
    """Parts of the bodies and joints of a chain are kept, with bodies that are fixed to them."""
    a = [kic.Body(name, mass=1.0, com=(k, 0, 0), inertia=(1, 1, 1)) for k, name in enumerate("abcdef")]
    z = (0, 0, 1)
    m = kic.Mechanism(
        "loop with a tool",
        a,
        [
            kic.Joint("A", "revolute", ("ground", "a"), (0, 0, 0), z),
            kic.Joint("B", "revolute", ("b", "a"), (1, 1, 0), z),
            kic.Joint("C", "revolute", ("b", "c"), (2, 1, 0), z),
            kic.Joint("D", "revolute", ("c", "ground"), (3, 0, 0), z),
            kic.Joint("weld", "fixed", ("d", "b")),
            kic.Joint("side", "revolute", ("b", "e"), (1.5, 2, 0), z),
            kic.Joint("stand", "fixed", ("ground", "f")),
        ],
        points=[
            kic.Point("p", "d", (1, 2, 0)), kic.Point("q", "e", (1, 2, 0)),
            kic.Point("r", "ground", (4, 2, 0)), kic.Point("s", "c", (1, 3, 0)),
        ],
        distances=[kic.Distance("pr", ("p", "r")), kic.Distance("ps", ("p", "s"))],
        springs=[kic.Spring("S", ("p", "r"), stiffness=1.0), kic.Spring("T", ("q", "r"), stiffness=1.0)],
        forces=[kic.Force("F", "p", (1, 0, 0)), kic.Force("H", "s", (1, 0, 0))],
        couplings=[kic.Coupling("gear", ("B", "side"), ratios=(1.0, 2.0))],
        motors=[kic.Motor("M", ("A",)), kic.Motor("N", ("D",))],
        frames=[kic.Frame("g", "d", origin=(0, 0, 0))],
        coordinates=["A"],
        actuators=["D"],
        gravity=(0, -9.81, 0),
    )  # fmt: skip
    chain = m.chain("b", through="a")
    names = {part.name for part in chain._parts.values()}
    assert names == {*"abdf", "A", "B", "weld", "stand", "p", "r", "pr", "S", "F", "M", "g"}
    assert chain.coordinates == chain.actuators == ("A", "B")
    assert chain.gravity == m.gravity
    assert chain.name == "loop with a tool: A to b"
    assert m.chain("b", through=["C", "D"]).coordinates == ("D", "C")
    assert m.chain("e", through="A").couplings == m.couplings
    far = m.chain("e", through="A").at()
    assert far.coordinates == ("A", "B")
    assert m.chain("f").coordinates == ()


def test_couplings_within_a_joint_determine_its_last_coordinate() -> None:
    """A screw is a cylindrical joint whose turn and travel are coupled."""
    m = kic.Mechanism(
        "press",
        [kic.Body(name, mass=1.0, com=(k, 0, 1), inertia=(1, 1, 1)) for k, name in enumerate("ab")],
        [
            kic.Joint("C", "cylindrical", ("ground", "a"), (0, 0, 0), (0, 0, 1)),
            kic.Joint("R", "revolute", ("a", "b"), (1, 0, 0), (0, 1, 0)),
        ],
        couplings=[kic.Coupling("thread", ("C.1", "C.2"), ratios=(1.0, 0.1))],
        coordinates=["C.1", "R"],
    )
    for tip, coordinates in (("a", ("C.1",)), ("b", ("C.1", "R"))):
        chain = m.chain(tip)
        assert (chain.coordinates, chain.dof) == (coordinates, len(coordinates))
        assert chain.at().coefficients(tip).G.shape == (6, len(coordinates))


def grid(columns: int) -> kic.Mechanism:
    """Return bodies in two rows, with two joints between neighbours, and a body "tip" apart."""
    names = [f"{row}{k}" for row in "ab" for k in range(columns)]
    pairs = [(f"{row}{k}", f"{row}{k + 1}") for row in "ab" for k in range(columns - 1)]
    pairs += [(f"a{k}", f"b{k}") for k in range(columns)]
    joints = [
        kic.Joint(f"{a} {b} {n}", "revolute", (a, b), (n, 0, 0), (0, 0, 1)) for a, b in pairs for n in (0, 1)
    ]
    joints += [
        kic.Joint(f"r{k}", "revolute", ("ground", b), (k, 0, 0), (0, 0, 1))
        for k, b in enumerate(("tip", "a0"))
    ]
    return kic.Mechanism("grid", [kic.Body(name) for name in ("tip", *names)], joints)


def test_chains_are_sought_near_the_tip_and_not_for_ever() -> None:
    m = grid(12)
    assert m.chain("tip").coordinates == ("r0",)
    with raises(kic.InputError, key="tip", got="b11"):
        m.chain("b11", through="r1")


def test_loads_on_the_tip_belong_to_each_chain() -> None:
    m = kic.load("three-legged-robot")
    pushed = m.add(kic.Force("push", "w", (1.0, 2.0, 0.0)))
    for first in ("A1", "A2", "A3"):
        assert [force.name for force in pushed.chain("platform", through=first).forces] == ["push"]


ERRORS = {
    "several": ((), {"key": "through", "got": ()}),
    "none": (("U1", "L2"), {"key": "through", "got": ("U1", "L2")}),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_chain_must_be_unique(case: str) -> None:
    through, numbers = ERRORS[case]
    with raises(kic.InputError, **numbers):
        kic.load("gough-stewart").chain("platform", through=through or None)
