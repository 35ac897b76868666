"""Dimensions as held coordinates, against the complex step and against mechanisms with other dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from exact import exact
from lagrange import circles, delta, slope, unit
from raising import raises, refuses
from scipy.spatial.transform import Rotation

import kic
from kic.description.joint_types import BALL_TYPES
from kic.mechanism.dimensions import dimensions_of

# largest relative difference of two exact routes: rounding, and condition of loops up to 1e5, times 20
EXACT = 1e-9
FOUR_BAR = {"A": 1.2}


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference, relative to the largest entry if this exceeds 1."""
    return float(np.abs(a - b).max(initial=0.0) / max(1.0, np.abs(b).max(initial=0.0)))


def names_of(m: kic.Mechanism) -> Iterator[str]:
    """Names of dimensions that `replace` can change: no lengths, rods, or single sides of joints."""
    for part in (*m.bodies, *m.joints, *m.points, *m.frames, *m.contacts):
        for name, _ in dimensions_of(m, part):
            key, *rest = name.split(".")[1:]
            if key != "length" and rest[:1] != ["ground"] and not set(rest) & {b.name for b in m.bodies}:
                yield name


def stepped(m: kic.Mechanism, name: str) -> str | dict[str, float]:
    """The parameter of `sensitivity` for a dimension."""
    part, key, *rest = name.split(".")
    if key == "axes" and isinstance(m[part], kic.Joint):
        return {f"{part}.axis.{rest[0]}": 1.0, f"{part}.axis2.{rest[0]}": 1.0}
    return name


def beside(m: kic.Mechanism, rng: np.random.Generator) -> dict[str, float]:
    """Coordinates near the reference configuration, vectors of rotation for ball joints."""
    turns = {c for joint in m.joints if joint.type in BALL_TYPES for c in joint.components[-3:]}
    here = m.at()
    return {c: float(rng.normal(0 if c in turns else here.value(c), 0.006)) for c in m.coordinates}


def varied(m: kic.Mechanism, rng: np.random.Generator, most: int) -> list[str]:
    """Some dimensions with which the loops stay closed."""
    chosen: list[str] = []
    # points of rods are another matter, see below
    left = {name for d in m.distances if d.fixed for name in d.points}
    # wheels that mesh cannot tilt alone
    left |= {
        f"{name}.{key}" for x in m.couplings if not x.ratios for name in x.joints for key in ("axis", "axes")
    }
    names = [x for x in names_of(m) if not left & {x.split(".")[0], ".".join(x.split(".")[:2])}]
    for name in rng.permutation(names):
        try:
            m.vary([*chosen, str(name)])
            chosen.append(str(name))
        except kic.SingularError:
            pass
        if len(chosen) == most:
            break
    return chosen


def check_against_the_complex_step(m: kic.Mechanism, most: int) -> None:
    """Columns and blocks of dimensions are derivatives of the mechanism that is reassembled."""
    rng = np.random.default_rng(7)
    chosen = varied(m, rng, most)
    q, n = beside(m, rng), len(m.coordinates)
    of = [p.name for p in m.points if p.body != "ground"][:2] or [*m.coordinates]
    c = m.vary(chosen).at(q)
    u = c.coefficients(of, order=3)
    massive = all(body.mass is not None and body.inertia is not None for body in m.bodies)
    for k, name in enumerate(chosen, n):

        def derivative(function: Any, name: str = name) -> np.ndarray:
            return m.sensitivity(lambda x: function(x.at(q)), [stepped(m, name)])[0]

        known = {"G": "values", "H": "G", "D": "H"}
        for order, (below, found) in enumerate(zip(known.values(), (u.G, u.H, u.D), strict=True)):
            block = found[(slice(None), *(slice(n),) * order, k)]
            want = derivative(lambda x, below=below: getattr(x.coefficients(of, order=3), below))
            assert difference(block, want) < EXACT, (name, below)
        if massive:
            P, K = c.dynamics().P, c.linearize().K
            want = derivative(lambda x: x.dynamics().I)
            assert difference(P[:n, :n, k] + P[:n, :n, k].T, want) < EXACT
            # K is the derivative of efforts, the opposites of loads
            want = -derivative(lambda x: x.dynamics().load)
            assert difference(K[:n, k], want) < EXACT, name


QUICK = (
    "four-bar",
    "five-bar",
    "puma560",
    "rssr",
    "geared-five-bar",
    "three-rps",
    "three-finger-hand",
    "scara",
)


@pytest.mark.parametrize("name", QUICK)
def test_derivatives_are_those_of_the_reassembled_mechanism(name: str) -> None:
    check_against_the_complex_step(kic.load(name), 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", kic.model_names())
def test_derivatives_of_every_model_are_those_of_the_reassembled_mechanism(name: str) -> None:
    check_against_the_complex_step(kic.load(name), 16)


@pytest.mark.parametrize(
    ("name", "dimensions"),
    [
        ("four-bar", ["B.at.x", "D.axis.rz", "coupler.com.y", "A.value", "coupler.length"]),
        ("panda", ["joint2.at.z", "joint3.axis.rx", "joint4.at.link3.y", "joint5.axis.link4.ry"]),
        ("rssr", ["crank.axis.ry", "crank.at.x", "crank.value"]),
    ],
)
def test_blocks_of_two_dimensions_are_complex_steps_of_the_order_below(name, dimensions) -> None:
    m = kic.load(name)
    v, rng = m.vary(dimensions), np.random.default_rng(3)
    at = beside(m, rng) | {d: v.at().value(d) + rng.normal(0, 0.003) for d in dimensions}
    of, n = (m.points or m.joints)[0].name, len(m.coordinates)
    u = v.at(at).coefficients(of, order=3)
    for k, d in enumerate(dimensions, n):
        for below, found in (("values", u.G), ("G", u.H), ("H", u.D)):
            # the zero of a coordinate moves, not the coordinate
            def function(x: kic.Mechanism, below: str = below) -> np.ndarray:
                return getattr(x.at(at).coefficients(of, order=3), below)

            assert difference(found[..., k], -v.sensitivity(function, f"{d}.value")[0]) < EXACT


E1 = np.array([0.1, 0, 0])
TURNED = Rotation.from_rotvec([0, 0, 0.05])
OTHER_DIMENSIONS = [
    ("four-bar", {"B.at.x": 0.01}, lambda m: m.replace("B", at=np.add(m["B"].at, (0.01, 0, 0)))),
    ("four-bar", {"tip.at.y": 0.01}, lambda m: m.replace("tip", at=np.add(m["tip"].at, (0, 0.01, 0)))),
    ("four-bar", {"rocker.com.x": 0.1}, lambda m: m.replace("rocker", com=m["rocker"].com + E1)),
    ("four-bar", {"A.value": 0.01}, lambda m: m.replace("A", value=m["A"].value[0] + 0.01)),
    ("scara", {"motor4.value": 0.01}, lambda m: m.replace("motor4", value=m["motor4"].value[0] + 0.01)),
    ("panda", {"joint3.axis.rz": 0.05}, lambda m: m.replace("joint3", axis=TURNED.apply(m["joint3"].axis))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "replaced"), OTHER_DIMENSIONS)
def test_a_finite_change_gives_the_mechanism_with_other_dimensions(name, change, replaced) -> None:
    m = kic.load(name)
    (dimension, step), q = next(iter(change.items())), beside(m, np.random.default_rng(5))
    v, other = m.vary(dimension), replaced(m)
    moved = {dimension: v.at().value(dimension) + step}
    of, n = m.points[0].name, len(m.coordinates)
    a, b, locked = v.at(q | moved), other.at(q), v.lock(moved)
    assert locked.coordinates == m.coordinates
    for found in (a, locked.at(q)):
        u = found.coefficients(of, order=2)
        assert difference(u.values, b.value(of)) < EXACT
        assert difference(u.H[:, :n, :n], b.coefficients(of).H) < EXACT
        assert difference(found.dynamics().I[:n, :n], b.dynamics().I) < EXACT
        assert difference(found.dynamics().load[:n], b.dynamics().load) < EXACT


def test_lengths_are_those_of_the_drawing() -> None:
    lengths = {"ground": 4.0, "crank": 1.0, "coupler": 3.5, "rocker": 3.0}
    m = kic.linkages.four_bar(**lengths)
    v = m.vary([f"{name}.length" for name in lengths])
    c = v.at(FOUR_BAR)
    assert np.allclose([c.value(f"{name}.length") for name in lengths], [*lengths.values()])
    want = kic.sensitivity(
        lambda x: kic.linkages.four_bar(**dict(zip(lengths, x, strict=True))),
        lambda m: m.at(FOUR_BAR).value("D"),
        [*lengths.values()],
    )
    assert difference(c.coefficients("D", order=1).G[0, 1:], want) < EXACT
    longer = v.at(FOUR_BAR | {"crank.length": 1.1, "ground.length": 4.2})
    other = kic.linkages.four_bar(**lengths | {"crank": 1.1, "ground": 4.2})
    assert abs(longer.value("D") - other.at(FOUR_BAR).value("D")) < 1e-11


def test_denavit_hartenberg_parameters_move_all_beyond_the_joint() -> None:
    rows = [
        {"alpha": 0.3, "a": 0.2, "d": 0.1, "theta": 0.4},
        {"alpha": -0.7, "a": 0.5, "d": 0.3, "theta": -0.2},
    ]

    def arm(x: Any) -> kic.Mechanism:
        keys = [dict(zip(row, x[4 * k : 4 * k + 4], strict=True)) for k, row in enumerate(rows)]
        return kic.from_dh(
            "arm",
            [kic.DHRow(f"joint{k}", f"link{k}", **key) for k, key in enumerate(keys, 1)],
            convention="modified",
            points=[kic.Point("tip", "link2", at=(0.3, 0.1, 0.2))],
        )

    x = [number for row in rows for number in row.values()]
    m, groups = arm(x), {}
    before = np.eye(3)
    for k, row in enumerate(rows, 1):
        # the frame before the joint, whose x axis has the length and the twist
        joint, link = m[f"joint{k}"], "ground" if k == 1 else f"link{k - 1}"
        z = np.array(joint.axis)
        for key, place, e in (("alpha", "axis", before[0]), ("a", "at", before[0]), ("d", "at", z)):
            r = "r" if key == "alpha" else ""
            groups[f"{key}{k}"] = {
                f"joint{k}.{place}.{link}.{r}{c}": w for c, w in zip("xyz", e, strict=True)
            }
        turn = Rotation.from_rotvec(row["theta"] * z) * Rotation.from_rotvec(row["alpha"] * before[0])
        before = turn.apply(before)
    q = {"joint1": 0.7, "joint2": -0.4}
    v = m.vary(groups)
    want = kic.sensitivity(arm, lambda m: m.at(q).coefficients("tip", order=1).values, x)
    want = np.delete(want, [3, 7], axis=0)  # theta is the coordinate
    assert difference(v.at(q).coefficients("tip", order=1).G[:, 2:].T, want) < EXACT


def by_hand_four_bar(A, *x: mp.mpf) -> list:
    """Tip and rocker of the shipped four-bar with points B, C, the tip and the end of ground moved."""
    b, c, tip, d = (mp.mpc(x[2 * k], x[2 * k + 1]) for k in range(4))
    pin = b * unit(A - mp.atan2(mp.mpf(0.08), mp.mpf(0.06)))
    end = circles(pin, abs(c - b), d, abs(c - d), 1)
    place = pin + (tip - b) * (end - pin) / (c - b)
    return [place.real, place.imag, mp.atan2(mp.mpf(0.28), mp.mpf(-0.21)) + mp.arg((end - d) / (c - d))]


def by_hand_slider_crank(shaft, px, py, wx, wy, tilt) -> list:
    """Crown of the shipped slider-crank with crankpin and wristpin moved, and a tilted guide."""
    pin = mp.mpc(px, py) * unit(shaft - mp.atan2(mp.mpf(0.04), mp.mpf(0.03)))
    away, guide, rod = mp.mpc(wx, wy) - pin, unit(tilt), abs(mp.mpc(wx, wy) - mp.mpc(px, py))
    along = (away * mp.conj(guide)).real
    slide = -along + mp.sqrt(along**2 - abs(away) ** 2 + rod**2)
    crown = mp.mpc(0.258, 0) + slide * guide
    return [crown.real, crown.imag, mp.mpf(0.228) + slide]


def by_hand_delta(a1, a2, a3, *x: mp.mpf) -> list:
    """Plate of the shipped Delta with both joints at the knee, and both at the plate, moved in one leg."""
    drawn = mp.atan2(mp.mpf(0.1), mp.mpf(0.24))
    plate = delta(np.array([a1, a2, a3]) - drawn, x[:3], x[3:])["plate"]
    return list((plate @ [mp.mpf(0), mp.mpf(0), mp.mpf(-0.7), mp.mpf(1)])[:3])


HANDS: list[tuple[str, Any, list[str], dict[str, float], list[Any]]] = [
    ("four-bar", by_hand_four_bar, ["tip.x", "tip.y", "D"], {"A": 1.7},
     ["B.at.x", "B.at.y", "C.at.x", "C.at.y", "tip.at.x", "tip.at.y", "D.at.x", "D.at.y"]),
    ("slider-crank", by_hand_slider_crank, ["crown.x", "crown.y", "piston"], {"shaft": 0.6},
     ["crankpin.at.x", "crankpin.at.y", "wristpin.at.x", "wristpin.at.y", "piston.axis.rz"]),
    ("delta", by_hand_delta, ["gripper.x", "gripper.y", "gripper.z"], {"A1": 0.1, "A2": -0.05, "A3": 0.2},
     [{f"{part}1a.at.{x}": 1.0, f"{part}1b.at.{x}": 1.0} for part in "US" for x in "xyz"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "hand", "of", "q", "numbers"), HANDS, ids=[hand[0] for hand in HANDS])
def test_derivatives_are_those_of_closed_forms_with_60_digits(name, hand, of, q, numbers) -> None:
    m = kic.load(name)
    v = m.vary({x if isinstance(x, str) else f"x{k}": x for k, x in enumerate(numbers)})
    at, n = exact([*q.values(), *v.at().value(v.coordinates[len(q) :])]), len(q)
    closed = lambda x: np.array(hand(*x))  # noqa: E731
    G, H = (T(at).astype(float) for T in (slope(closed), slope(slope(closed))))
    assert difference(m.at(q).sensitivity(of, numbers), G[:, n:]) < EXACT
    assert difference(v.at(q).value(of), closed(at).astype(float)) < EXACT
    assert difference(v.at(q).coefficients(of).H, H) < EXACT


def test_both_sides_of_a_joint_add_and_a_body_that_moves_as_a_whole_moves_nothing() -> None:
    m = kic.load("five-bar")
    body = m["B"].bodies[1]
    one, two = m["B"].bodies
    v = m.vary(["B.at.x", "B.at.y"]), m.vary([f"B.at.{one}.x", f"B.at.{two}.x"])
    q = beside(m, np.random.default_rng(2))
    of = m.points[0].name
    both, sides = (x.at(q).coefficients(of, order=1).G[:, 2:] for x in v)
    assert difference(sides.sum(axis=1), both[:, 0]) < EXACT
    owned = [f"{joint.name}.at.{body}" for joint in m.joints if body in joint.bodies]
    owned += [f"{point.name}.at" for point in m.points if point.body == body]
    shifted = m.vary({"all": {f"{name}.x": 1.0 for name in owned}})
    assert abs(shifted.at(q).coefficients(of, order=1).G[:, 2]).max() < 1e-12


def test_dimensions_keep_their_values_unless_they_are_given() -> None:
    m = kic.load("four-bar")
    v = m.vary(["B.at.x", "tip.at.y"])
    first = v.at().value("B.at.x")
    assert first == m["B"].at[0]
    assert v.coordinates == ("A", "B.at.x", "tip.at.y")
    want = v.at({"A": 1.2, "B.at.x": first, "tip.at.y": m["tip"].at[1]}).state
    for given in ({"A": 1.2}, [1.2], {"B.at.x": first, "A": 1.2}, {"D": m.at(FOUR_BAR).value("D")}):
        assert np.allclose(v.at(given).state, want, atol=1e-12)
    assert v.at(np.linspace(1, 2, 5)[:, None]).batch == v.path({"A": np.linspace(1, 2, 5)}).batch == (5,)
    assert v.at([[1.2, first + 0.01, 0.1]]).value("B.at.x") == [first + 0.01]
    G = v.at(FOUR_BAR).coefficients("tip", order=1, wrt=["D"])
    assert G.columns == ("D", "B.at.x", "tip.at.y")
    # a row in place of a dimension determines it
    near = v.at(FOUR_BAR)
    found = v.at({"A": 1.2, "D": near.value("D") + 0.01, "tip.at.y": m["tip"].at[1]}, near=near)
    assert abs(found.value("B.at.x") - first) > 1e-3
    other = m.replace("B", at=(found.value("B.at.x"), *m["B"].at[1:]))
    assert abs(other.at(FOUR_BAR).value("D") - found.value("D")) < 1e-11


def test_open_chains_take_coordinates_without_dimensions() -> None:
    m = kic.load("puma560")
    v = m.vary([f"{m.points[0].name}.at.x"])
    q = np.full((3, 6), 0.2)
    assert v.at(q).coordinates == v.coordinates
    assert np.allclose(v.at(q).value(m.points[0].name), m.at(q).value(m.points[0].name), atol=1e-14)
    assert np.allclose(v.at(dict(zip(m.coordinates, q[0], strict=True))).state, v.at(q[0]).state)


def test_a_rod_keeps_its_length_while_its_point_moves() -> None:
    m = kic.load("five-rod-suspension")
    rod = m.distances[0]
    point, end = (np.array(m[name].at) for name in rod.points)
    name, q = f"{rod.points[0]}.at.x", beside(m, np.random.default_rng(4))
    v = m.vary([name, rod.name])
    c, n = v.at(q), len(m.coordinates)
    assert (v.coordinates[n:], v.dof) == ((name, rod.name), m.dof + 2)
    assert abs(c.value(rod.name) - np.linalg.norm(point - end)) < 1e-12
    of = m.points[-1].name
    by_point, by_rod = c.coefficients(of, order=1).G[:, n:].T
    # `replace` moves the point and stretches the rod
    want = m.sensitivity(lambda x: x.at(q).value(of), name)[0]
    stretch = (point - end)[0] / np.linalg.norm(point - end)
    assert difference(by_point + stretch * by_rod, want) < EXACT
    assert v.lock(rod.name).coordinates == (*m.coordinates, name)


def test_weights_combine_dimensions_at_any_rate() -> None:
    m = kic.load("four-bar")
    a = m.vary({"slope": {"B.at.x": 2.0, "D.at.ground.y": -0.5}, "dx": "C.at.x"}).at(FOUR_BAR)
    b = m.vary(["B.at.x", "D.at.ground.y", "C.at.x"]).at(FOUR_BAR)
    assert (a.value("slope"), a.value("dx")) == (0.0, 0.0)
    G, H = (x.coefficients("tip", order=2) for x in (a, b))
    T = np.array([[1, 0, 0], [0, 2, 0], [0, -0.5, 0], [0, 0, 1.0]])
    assert difference(G.G, H.G @ T) < EXACT
    assert difference(G.H, np.einsum("pij,ia,jb->pab", H.H, T, T)) < EXACT


def test_a_dict_maps_dimensions_also_to_themselves() -> None:
    m, rods = kic.load("four-bar"), kic.load("five-rod-suspension")
    v = m.vary({"coupler.length": "coupler.length", "bar": "coupler.length"})
    assert difference(v.at().value(["coupler.length", "bar"]), np.array([0.29, 0.0])) < EXACT
    rod = next(one.name for one in rods.distances if one.fixed)
    assert rods.vary({rod: rod}).coordinates == rods.vary(rod).coordinates


def test_lengths_do_not_depend_on_names_of_bodies() -> None:
    m = kic.linkages.slider_crank(crank=1.0, rod=3.0)
    joints = [
        replace(joint, bodies=tuple("C slider" if name == "slider" else name for name in joint.bodies))
        for joint in m.joints
    ]
    bodies = [kic.Body("C slider") if body.name == "slider" else body for body in m.bodies]
    other = kic.Mechanism("renamed", bodies, joints)
    assert other.vary("rod.length").at().value("rod.length") == 3.0
    for made in (m.vary("B.at.x"), m.vary("B.at.x").lock("B.at.x")):
        refuses(lambda made=made: made.vary("rod.length"), kic.UnknownNameError)


def test_centres_of_mass_of_some_bodies_follow_the_mass() -> None:
    lump = kic.Point("lump", "link3", (0.1, 0.2, 0.0), mass=2.0)
    m = kic.load("puma560").add(kic.CenterOfMass("arm", ["link2", "link3"]), lump)
    for name in ("link2.com.x", "lump.at.y"):
        c = m.vary(name).at(np.full(6, 0.3))
        want = m.sensitivity(lambda x: x.at(np.full(6, 0.3)).value("arm"), name)[0]
        assert difference(c.value("arm"), m.at(np.full(6, 0.3)).value("arm")) < EXACT
        assert difference(c.coefficients("arm", order=1).G[:, 6], want) < EXACT


def test_questions_that_would_move_dimensions_hold_them_or_are_errors() -> None:
    m = kic.load("four-bar")
    v = m.vary(["coupler.com.y", "B.at.x"])
    rest = v.find_equilibrium()
    assert rest.fixed == ("coupler.com.y", "B.at.x")
    assert np.allclose(
        rest.configuration.value("A"), m.find_equilibrium().configuration.value("A"), atol=1e-8
    )
    want = m.at(FOUR_BAR).linearize().modes().eigenvalues
    assert np.allclose(v.at(FOUR_BAR).linearize().modes().eigenvalues, want, atol=1e-9)
    c = v.at(FOUR_BAR)
    assert c.linearize().with_fixed("B.at.x").modes().coordinates == ("A",)
    with raises(kic.InputError, names=("tip1.at.x",)):
        kic.load("three-finger-hand").vary("tip1.at.x").at().grasp("ball")
    for question in (
        lambda: v.simulate(0.1),
        lambda: c.forward_dynamics(np.zeros(3), np.zeros(3)),
        lambda: v.prepare.forward_dynamics(),
        lambda: v.export.forward_dynamics().to_numpy(),
        lambda: c.operational_space("tip.x"),
        lambda: c.ellipsoid("tip.x"),
        lambda: c.resolve_redundancy("tip.x", [0.1]),
        lambda: v.track({"tip.x": lambda t: 0.1}, [0.0, 1.0]),
        lambda: c.linearize().state_space(),
        lambda: c.linearize(wrt=["A", "D", "coupler.com.y"]).modes(),
        lambda: c.distribute([1.0, 0.0, 0.0], actuators=["A", "D", *v.coordinates[1:]]),
        lambda: c.internal_loads(),
        lambda: c.singularities(),
        lambda: kic.metrics.transmission()(c),
    ):
        with raises(kic.InputError, names=("coupler.com.y", "B.at.x")):
            question()
    run = v.lock(["coupler.com.y", "B.at.x"]).simulate(0.05)
    assert np.allclose(run.configuration.value("A"), m.simulate(0.05).configuration.value("A"), atol=1e-7)


def test_efforts_at_dimensions_are_loads_that_hold_them() -> None:
    m = kic.load("four-bar")
    v = m.vary("D.at.ground.x")
    c, still = v.at(FOUR_BAR), m.at(FOUR_BAR)
    effort = c.inverse_dynamics([2.0, 0.0], [0.5, 0.0])
    assert abs(effort[0] - still.inverse_dynamics([2.0], [0.5])[0]) < 1e-9
    pin = still.joint_forces([2.0], [0.5])["D"].force[0]
    assert abs(abs(effort[1]) - abs(pin)) < 1e-8 * abs(pin)


def test_varied_mechanisms_are_saved_exported_and_drawn(tmp_path) -> None:
    v = kic.load("four-bar").vary("B.at.x")
    v.save(tmp_path / "varied.toml")
    again = kic.load(tmp_path / "varied.toml")
    assert again == v
    assert np.array_equal(again.at(FOUR_BAR).state, v.at(FOUR_BAR).state)
    c = v.at(FOUR_BAR)
    f = v.export.coefficients("tip").to_numpy()
    assert difference(f(c.state)["tip.H"], c.coefficients("tip").H) < EXACT
    c.draw().save(tmp_path / "varied.svg")


def test_coordinates_of_a_description_can_be_held() -> None:
    m = kic.load("five-bar")
    held = m.replace("E", held=True)
    assert np.allclose(held.at({"A": 2.0}).state, m.at({"A": 2.0, "E": m.at().value("E")}).state)
