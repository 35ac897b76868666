"""Passive degrees of freedom: found, named, confirmed by finite motion, and distinguished from others."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

import kic
from kic.ui.cli.main import main
from kic.ui.report.report import report_data

X, Y, Z = np.eye(3).tolist()
PIN, BALL, RAIL = (0.4, 0.3, 0.0), (0.7, 1.1, 0.6), (0.7, 1.1, 0.0)


def drawn(bodies: str, joints: list[kic.Joint], **more) -> kic.Mechanism:
    return kic.Mechanism("m", [kic.Body(name) for name in bodies.split()], joints, **more)


def crank_slider(at_pin: list[kic.Joint], at_ball: list[kic.Joint], bodies: str = "") -> kic.Mechanism:
    """A crank about z, a slider along z, and a rod that some joints tie to both."""
    return drawn(
        f"crank rod slider {bodies}",
        [
            kic.Joint("theta1", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=Z),
            kic.Joint("z", "prismatic", ("ground", "slider"), axis=Z),
            *at_pin,
            *at_ball,
        ],
        coordinates=[],
    )


def sphere(first: str, second: str, at: tuple, names: list[str], axes: list) -> list[kic.Joint]:
    """A ball as three hinges in one point, with two small bodies between."""
    chain = [first, f"{names[0]}{names[1]}", f"{names[1]}{names[2]}", second]
    pairs = list(pairwise(chain))
    return [
        kic.Joint(name, "revolute", pair, at=at, axis=tuple(axis))
        for name, pair, axis in zip(names, pairs, axes, strict=True)
    ]


def ball(name: str, first: str, second: str, at: tuple) -> kic.Joint:
    return kic.Joint(name, "spherical", (first, second), at=at)


LINE = np.subtract(BALL, PIN) / np.linalg.norm(np.subtract(BALL, PIN))
RSSP = crank_slider([ball("P", "crank", "rod", PIN)], [ball("S", "rod", "slider", BALL)])


def still_but(m: kic.Mechanism, one: kic.results.Mobility, state: kic.Configuration) -> None:
    """The passive motion satisfies every condition and moves no other body, by the kernels."""
    closure = m._model.closure(())
    G = closure.transfer.values_and_rates(state._states)[1][0]
    assert np.abs(G @ one.motion).max() < 1e-9 * np.abs(one.motion).max()
    for body in m.bodies:
        rows = m._model.rows([f"{body.name}.wx", f"{body.name}.wy", f"{body.name}.wz"], 1)
        w = rows.arrays(state._states)[1][0] @ one.motion
        if body.name == one.body:
            assert np.abs(np.cross(w, one.axis)).max() < 1e-9 * np.linalg.norm(w)
        if body.name not in one.bodies:
            assert np.abs(w).max() < 1e-9 * np.abs(one.motion).max()


def test_the_rod_between_two_balls() -> None:
    f = RSSP.mobility()
    (one,) = f.passive_freedoms
    assert (f.dof, one.bodies, one.rigid, one.pitch) == (2, ("rod",), True, 0.0)
    assert one.through == ("P", "S")
    assert np.abs(one.axis - LINE).max() < 1e-12
    assert np.abs(np.cross(one.point - PIN, LINE)).max() < 1e-12
    assert set(one.coordinates) == {"P.1", "P.2", "P.3", "S.1", "S.2", "S.3"}
    assert np.abs(one.rates).max() == 1
    still_but(RSSP, one, RSSP.at())
    said = (
        "1 passive degree of freedom: 'rod' spins about the line through joints 'P' and 'S', in P.1, P.2, "
        "P.3, S.1, S.2, S.3. Every set of independent coordinates must include one coordinate of it."
    )
    assert said in f.summary()
    assert repr(one).endswith("coordinates P.1, P.2, P.3, S.1, S.2, S.3 take part")


@pytest.mark.parametrize("spun", [LINE, (0.3, -0.5, 0.8)])
@pytest.mark.parametrize("other", [False, True])
def test_balls_made_of_three_hinges(spun, other) -> None:
    """Freeman's Appendix D: a 7R with the slider's line; the spin is in the sphere, links of it move along.

    With the third hinge along the rod only that sphere and the rod move, else the one at the other end too.
    """
    pin = sphere("crank", "rod", PIN, ["2", "3", "4"], [Z, X, Y])
    end = sphere("rod", "slider", BALL, ["5", "6", "7"], [spun, X, Z])
    joints = [pin, end] if not other else [pin, [ball("S", "rod", "slider", BALL)]]
    m = crank_slider(*joints, "23 34" if other else "23 34 56 67")
    f = m.mobility()
    (one,) = f.passive_freedoms
    assert f.dof == 2
    assert not one.rigid
    along = not other and spun is LINE
    assert set(one.bodies) == {"rod", "23", "34"} | (set() if other or along else {"56", "67"})
    assert (one.body, one.pitch) == ("rod", 0.0)
    assert np.abs(one.axis - LINE).max() < 1e-9
    if along:
        assert one.coordinates == ("2", "3", "4", "5")
    assert "move, of which 'rod' spins about the line through joints '" in one.summary()
    still_but(m, one, m.at())
    # what the crank and the slider do is what they do with the plain balls
    plain = replace(RSSP, coordinates=["theta1", "P.3"]).at().coefficients("z", order=2)
    made = replace(m, coordinates=["theta1", one.coordinates[-1] if other else "5"])
    c = made.at().coefficients("z", order=2)
    assert c.G[0] == pytest.approx([plain.G[0, 0], 0.0], abs=1e-12)
    assert c.H[0] == pytest.approx(np.array([[plain.H[0, 0, 0], 0.0], [0.0, 0.0]]), abs=1e-11)


def test_every_coordinate_set_has_one_of_it() -> None:
    """The theorem behind the sentence: sets without a coordinate of it are singular, some with it are not."""
    m = kic.load("rssr")
    (one,) = m.mobility().passive_freedoms
    assert (one.bodies, one.summary()) == (
        ("coupler",),
        "'coupler' spins about the line through joints 'spin' and 'ball'",
    )
    tree = m._model.tree
    c = m.at()
    G = m._model.closure(()).rows(c._states)[1][0]
    null = np.linalg.svd(G)[2][len(G) :].T
    for i in range(tree.size):
        for k in range(i):
            if np.abs(np.linalg.det(null[[i, k]])) > 1e-9:
                assert {tree.columns[i], tree.columns[k]} & set(one.coordinates)
    text = (
        r"With crank held, spin can move\. 'coupler' spins about the line through joints 'spin' and "
        r"'ball': a passive degree of freedom, of which every set needs a coordinate, such as "
        r"spin, ball\.1, ball\.2\."
    )
    with pytest.raises(kic.InputError, match=text):
        m.at({"crank": 1.0})
    with pytest.raises(
        kic.SingularError, match=r"they are at rest, spin can move\. 'coupler' spins .* crank, spin"
    ):
        c.coefficients("flag", wrt=["crank", "rocker"])
    with pytest.raises(
        kic.ConfigurationError,
        match=r"spin can move\. 'coupler' spins .* ball\.1, ball\.2\. `hold_spins\(\)` .* Give",
    ):
        m.at({"crank": 1.0, "rocker": 0.0})
    # another failure of the coordinates is not blamed on it
    five = kic.load("five-bar")
    with pytest.raises(kic.InputError) as error:
        five.at({"A": 1.0})
    assert "passive" not in str(error.value)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_full_rotations_are_independent_of_units(unit: float) -> None:
    """A link on a ball of a carriage and on a rod to ground has two dof while the carriage rests."""
    at = tuple((np.array([0.2, -0.4, 0.3]) * unit).tolist())
    eye, post = (tuple((np.array(p) * unit).tolist()) for p in ([0.9, 0.5, 0.1], [0.1, 1.3, -0.6]))
    m = drawn(
        "carriage link",
        [
            kic.Joint("rail", "prismatic", ("ground", "carriage"), axis=(0.6, 0, 0.8)),
            ball("hook", "carriage", "link", at),
        ],
        points=[kic.Point("eye", "link", eye), kic.Point("post", "ground", post)],
        distances=[kic.Distance("rod", ("post", "eye"), fixed=True)],
        coordinates=[],
    )
    f = m.mobility()
    assert f.dof == 3
    assert [(one.bodies, one.rigid) for one in f.passive_freedoms] == [(("link",), True)] * 2
    for one in f.passive_freedoms:
        still_but(m, one, m.at())


def test_at_another_configuration() -> None:
    m = kic.load("rssr")
    c = m.at({"crank": 1.9, "spin": 0.7})
    (one,) = m.mobility(configuration=c).passive_freedoms
    line = c.value("rockerball") - c.value("crankball")
    assert np.abs(np.cross(one.axis, line)).max() < 1e-10
    assert np.abs(np.cross(one.point - c.value("crankball"), line)).max() < 1e-10
    still_but(m, one, c)


def stewart(at_ground: str, leg: str) -> kic.Mechanism:
    """The shipped platform with other joints at the feet and in the legs."""
    m = kic.load("gough-stewart")
    feet = {joint.name[1:]: joint.at for joint in m.joints if joint.at}

    def other(joint: kic.Joint) -> kic.Joint:
        kind = {"U": at_ground, "L": leg}.get(joint.name[0])
        at = joint.at or feet[joint.name[1:]]
        if kind is None or kind == joint.type:
            return joint
        axis = joint.axis if kind == "cylindrical" else None
        return kic.Joint(joint.name, kind, joint.bodies, at=at, axis=axis)

    return replace(m, joints=[other(joint) for joint in m.joints], coordinates=[])


@pytest.mark.slow
def test_legs_of_a_platform() -> None:
    assert kic.load("gough-stewart").mobility().passive_freedoms == ()
    f = stewart("spherical", "prismatic").mobility()
    assert f.dof == 12
    assert [one.bodies for one in f.passive_freedoms] == [(f"cylinder{k}", f"piston{k}") for k in range(1, 7)]
    assert all(one.rigid and one.pitch == 0 for one in f.passive_freedoms)
    assert "6 passive degrees of freedom: 'cylinder1' and 'piston1' spin as one about the" in f.summary()
    assert "Every set of independent coordinates must include one coordinate of each." in f.summary()
    # a cylindrical leg: each half by itself
    f = stewart("spherical", "cylindrical").mobility()
    assert (f.dof, len(f.passive_freedoms)) == (18, 12)
    assert {one.bodies for one in f.passive_freedoms} == {
        (f"{half}{k}",) for half in ("cylinder", "piston") for k in range(1, 7)
    }
    assert "; … 6 more. Every set of independent coordinates" in f.summary()
    # between universal joint and ball: only the piston may turn
    f = stewart("universal", "cylindrical").mobility()
    assert (f.dof, {one.bodies for one in f.passive_freedoms}) == (12, {(f"piston{k}",) for k in range(1, 7)})


def test_a_piston_in_its_cylinder() -> None:
    """Its ball lies on its axis: it turns, and the rod does not feel it; off the axis the rod would."""
    for off, count in ((0.0, 2), (0.1, 1)):
        where = tuple(np.add(BALL, (off, 0, 0)))
        m = drawn(
            "crank rod piston",
            [
                kic.Joint("theta1", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=(0, 1, 1)),
                ball("P", "crank", "rod", PIN),
                ball("S", "rod", "piston", where),
                kic.Joint("C", "cylindrical", ("ground", "piston"), at=RAIL, axis=Z),
            ],
            coordinates=[],
        )
        f = m.mobility()
        assert (f.dof, len(f.passive_freedoms)) == (3, count)
        bodies = {one.bodies for one in f.passive_freedoms}
        assert bodies == ({("rod",), ("piston",)} if not off else {("rod",)})
        for one in f.passive_freedoms:
            still_but(m, one, m.at())
            if one.bodies == ("piston",):
                assert np.abs(one.axis - Z).max() < 1e-9
                assert one.coordinates == ("S.1", "S.2", "S.3", "C.1") or "C.1" in one.coordinates
                assert "C.2" not in one.coordinates


def test_the_pin_of_a_hinge_and_a_carriage_between_rails() -> None:
    """A pin that is a body of its own turns in the two links that it joins."""
    links = [
        kic.Joint("A", "revolute", ("ground", "a"), at=(0, 0, 0), axis=Z),
        kic.Joint("B1", "revolute", ("a", "pin"), at=(1, 2, 0), axis=Z),
        kic.Joint("B2", "revolute", ("pin", "b"), at=(1, 2, 0), axis=Z),
        kic.Joint("C", "revolute", ("b", "c"), at=(4, 3, 0), axis=Z),
        kic.Joint("D", "revolute", ("c", "ground"), at=(4, 0, 0), axis=Z),
    ]
    f = drawn("a pin b c", links, coordinates=[]).mobility()
    (one,) = f.passive_freedoms
    assert (f.dof, one.bodies, one.through, one.coordinates) == (2, ("pin",), ("B1",), ("B1", "B2"))
    assert one.summary() == "'pin' spins about the line through joint 'B1' along (0, 0, 1)"
    # screwed tight to one of them it is no freedom any more
    tight = [*links[:1], kic.Joint("B1", "fixed", ("a", "pin")), *links[2:]]
    assert drawn("a pin b c", tight, coordinates=[]).mobility().passive_freedoms == ()
    slides = [
        kic.Joint("T1", "prismatic", ("ground", "rail1"), axis=X),
        kic.Joint("T2", "prismatic", ("ground", "rail2"), axis=X),
        kic.Joint("S1", "prismatic", ("rail1", "carriage"), axis=Y),
        kic.Joint("S2", "prismatic", ("rail2", "carriage"), axis=Y),
    ]
    f = drawn("rail1 rail2 carriage", slides, coordinates=[]).mobility()
    (one,) = f.passive_freedoms
    assert (f.dof, one.bodies, one.pitch) == (2, ("carriage",), np.inf)
    assert np.isnan(one.point).all()
    assert one.summary() == "'carriage' slides along (0, 1, 0)"


def door(count: int) -> kic.Mechanism:
    hinges = [kic.Joint(f"H{k}", "revolute", ("ground", "leaf"), at=(0, 0, k), axis=Z) for k in range(count)]
    return drawn("leaf", hinges, coordinates=[])


def spherical_five_bar() -> kic.Mechanism:
    """Five hinges through one point: two degrees of freedom, both to be driven."""
    axes = [(0, 0, 1), (0.3, 0.1, 1), (0.5, 0.6, 1), (0.1, 0.9, 1), (-0.5, 0.3, 1)]
    names = ["ground", "a", "b", "c", "d", "ground"]
    return drawn(
        "a b c d",
        [
            kic.Joint("ABCDE"[k], "revolute", (names[k], names[k + 1]), at=(0, 0, 0), axis=axis)
            for k, axis in enumerate(axes)
        ],
        coordinates=[],
    )


def wheel() -> kic.Mechanism:
    """A four-bar that carries a wheel in two bearings."""
    m = kic.load("four-bar")
    at = m.points[0].at
    axles = [
        kic.Joint(f"W{k}", "revolute", ("coupler", "wheel"), at=(at[0], at[1], at[2] + k), axis=Z)
        for k in (0, 1)
    ]
    return replace(m, bodies=[*m.bodies, kic.Body("wheel")], joints=[*m.joints, *axles], coordinates=[])


def arm_beside_a_loop() -> kic.Mechanism:
    """A four-bar whose coupler carries a forearm and a hand on ball joints."""
    m, at = kic.load("four-bar"), np.array(kic.load("four-bar").points[0].at)
    arm = [ball("elbow", "coupler", "forearm", tuple(at)), ball("wrist", "forearm", "hand", tuple(at + 0.3))]
    bodies = [*m.bodies, kic.Body("forearm"), kic.Body("hand")]
    return replace(m, bodies=bodies, joints=[*m.joints, *arm], coordinates=[])


NONE = {
    "door": (door(2), 1),
    "spherical five-bar": (spherical_five_bar(), 2),
    "wheel": (wheel(), 2),
    "arm beside a loop": (arm_beside_a_loop(), 7),
    "five-bar": (kic.load("five-bar"), 2),
    "arm": (kic.load("panda"), 7),
    "platform": (kic.load("three-legged-robot"), 3),
    "legs of hinges": (kic.load("stewart-6r"), 6),
    "rods": (kic.load("five-rod-suspension"), 1),
    "gears": (kic.load("geared-five-bar"), 1),
}


@pytest.mark.slow_for("legs of hinges")
@pytest.mark.parametrize("name", NONE)
def test_no_passive_dof(name: str) -> None:
    """Doors, wheels, last links, cranks of a second freedom: motions with a purpose of their own."""
    m, freedoms = NONE[name]
    f = m.mobility()
    assert (f.dof, f.passive_freedoms) == (freedoms, ())
    assert "passive" not in f.summary()


def test_special_reference_configurations_add_no_passive_dof() -> None:
    """A bar in line with the rod that holds it: to first order it turns by itself, and nowhere near it."""
    m = drawn(
        "crank bar",
        [
            kic.Joint("A", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=Z),
            kic.Joint("B", "revolute", ("crank", "bar"), at=(1, 1, 0), axis=Z),
        ],
        points=[kic.Point("end", "bar", (3, 1, 0)), kic.Point("post", "ground", (4, 1, 0))],
        distances=[kic.Distance("rod", ("end", "post"), fixed=True)],
        coordinates=["B"],
    )
    assert abs(m.at().coefficients("A").G[0, 0]) < 1e-14
    f = m.mobility()
    assert (f.dof, f.regular, f.passive_freedoms) == (1, True, ())
    # where the rod is the bar's own, on the hinge's line for good, it is idle
    pin = replace(m, points=[kic.Point("end", "bar", (1, 1, 0)), m.points[1]])
    (one,) = pin.mobility().passive_freedoms
    assert (pin.dof, one.bodies, one.coordinates) == (1, ("bar",), ("B",))


def test_special_reference_configurations_hide_no_dof() -> None:
    """At the end of its stroke the slider rests in every motion; the rod's spin is still reported."""
    end = tuple(np.add(np.multiply(PIN, 2), (0, 0, 0.6)))
    m = crank_slider([ball("P", "crank", "rod", PIN)], [ball("S", "rod", "slider", end)])
    c = replace(m, coordinates=["theta1", "P.1"]).at()
    assert np.abs(c.coefficients("z").G).max() < 1e-12
    f = m.mobility()
    assert (f.dof, [one.bodies for one in f.passive_freedoms]) == (2, [("rod",)])


def test_rod_within_a_rigid_body() -> None:
    """A tetrahedron's strut between balls: nothing moves but its spin."""
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    top = (0.3, 0.4, 1.0)
    joints = [ball(f"F{k}", "ground", f"rod{k}", at) for k, at in enumerate(corners)]
    joints += [ball(f"T{k}", f"rod{k}", "cap", top) for k in range(3)]
    joints += [kic.Joint("hold", "planar", ("ground", "cap"), at=top, axis=X, axis2=Y)]
    f = drawn("rod0 rod1 rod2 cap", joints, coordinates=[]).mobility()
    spins = {one.bodies for one in f.passive_freedoms}
    assert {("rod0",), ("rod1",), ("rod2",)} <= spins


def test_messages_are_printed_once() -> None:
    said = "1 passive degree of freedom: 'coupler' spins about the line through joints 'spin' and 'ball',"
    m = kic.load("rssr")
    assert said in " ".join(m.summary().text().split())
    assert said in report_data(m, m.at())["mobility"]
    assert said in " ".join(CliRunner().invoke(main, ["check", "rssr"]).output.split())
    assert said in " ".join(CliRunner().invoke(main, ["report", "rssr"]).output.split())


def test_a_rigid_loop_beside_a_joint_has_none() -> None:
    """Nothing of its loop moves, and an arm on it is no part of a loop."""
    z = (0, 0, 1)
    joints = [
        kic.Joint("A", "revolute", ("ground", "a"), (0, 0, 0), z),
        kic.Joint("B", "revolute", ("a", "b"), (1, 2, 0), z),
        kic.Joint("C", "revolute", ("b", "ground"), (2, 0, 0), z),
        kic.Joint("E", "revolute", ("a", "c"), (0, 1, 0), z),
    ]
    m = kic.Mechanism("arm on a truss", [kic.Body(name) for name in "abc"], joints, coordinates=["E"])
    assert (m.dof, m.mobility().passive_freedoms) == (1, ())
    with pytest.raises(kic.ConfigurationError):
        m.at({"A": 0.3})
