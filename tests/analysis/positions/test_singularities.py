"""Singular configurations: measured everywhere, located where theory has them in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import closed_gap, parallelogram
from numpy.testing import assert_allclose
from raising import raises, refuses
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.description.description import find_part
from kic.mechanism.configuration import Configuration, displacement


def crank_angles() -> np.ndarray:
    """Where crank (0.10) and coupler (0.29) of the four-bar align: law of cosines on ground and rocker."""
    a, b, c, d = 0.10, 0.29, 0.35, 0.48
    stretched, folded = (np.arccos((d**2 + r**2 - c**2) / (2 * d * r)) for r in (b + a, b - a))
    return np.array([stretched, np.pi + folded])


def turn(m: kic.Mechanism, name: str, count: int, start: float | None = None) -> Configuration:
    a = float(m.at().value(name)) if start is None else start
    return m.path({name: a + np.linspace(0, 2 * np.pi, count)})


@pytest.mark.parametrize("count", [9, 20, 61])
def test_dead_centres_of_a_four_bar(count: int) -> None:
    """The rocker turns back where crank and coupler align; C where the crank lies along the ground link."""
    m = kic.load("four-bar")
    c = turn(m, "A", count, 0.31)
    found = c.singularities(drivers="D")
    assert [one.kind for one in found] == ["inputs"] * 2
    angles = np.array([one.configuration.value("A") for one in found])
    expected = (crank_angles() - 0.31) % (2 * np.pi) + 0.31
    assert_allclose(np.sort(angles), np.sort(expected), rtol=0, atol=1e-12)
    for one in found:
        (low,), (high,) = one.between
        assert high == low + 1
        assert c.value("A")[low] <= one.configuration.value("A") <= c.value("A")[high]
        assert one.measure < 1e-14
        assert one.direction == {"D": 1.0}
        # the motion that is free is that of the crank: rates of all joints in A
        G = one.configuration.coefficients(["A", "B", "C", "D"], wrt="A", order=1).G[:, 0]
        rates = np.array([one.motion[name] for name in "ABCD"])
        assert_allclose(rates, rates[0] * G, atol=1e-12)
        assert np.abs(rates).max() == 1.0
        assert one.summary().startswith("inputs: D can be at rest while others move: A ")
        refuses(lambda one=one: one.configuration.coefficients("tip", wrt="D"), kic.SingularError)
        A, D = (float(one.configuration.value(name)) for name in "AD")
        where = f"A = {A:.5g} rad ({np.degrees(A):.2f}°), D = {D:.5g} rad ({np.degrees(D):.2f}°)"
        assert one.where() == where
        assert repr(one) == f"{one.summary()}; at {where}"
        assert f"\n  at {where}" in found.summary().text()
    flat = [float(one.configuration.value("A")) for one in c.singularities(drivers="C")]
    assert_allclose(flat, [np.pi, 2 * np.pi], rtol=0, atol=1e-12)
    assert not len(c.singularities())  # a crank has none
    assert "none was found" in str(c.singularities().summary())


def test_measures_are_those_of_independent_sets() -> None:
    m = kic.load("four-bar")
    c = turn(m, "A", 12)
    s = c.singularities(drivers="D", of="tip.x")
    assert set(s.measures) == {"inputs", "outputs", "closure"}
    for b, a in enumerate(c.value("A")):
        one = m.mobility().independent_sets(m.at({"A": a}, near=m.at({"A": a})), of=["D"])[0]
        assert s.measures["inputs"][b] == pytest.approx(one.worst, rel=1e-9)
    # of two bars and a distance: the closure's condition in the plane
    x = m._model.transfer(())
    G = x.values_and_rates(c.state)[1] / x.scale[:, None] * x.column_scale
    sigma = np.linalg.svd(G, compute_uv=False)
    assert_allclose(s.measures["closure"], sigma[:, 1] / sigma[:, 0], rtol=1e-12)
    assert (sigma[:, 2] < 1e-14).all()  # three of five conditions are redundant


def test_dead_centres_of_a_slider_crank() -> None:
    m = kic.load("slider-crank")
    c = turn(m, "shaft", 24, 0.3)
    found = c.singularities(drivers="piston", of="piston")
    assert [one.kind for one in found] == ["inputs", "outputs"] * 2
    shafts = [one.configuration.value("shaft") for one in found]
    assert_allclose(shafts, np.repeat([np.pi, 2 * np.pi], 2), atol=1e-12, rtol=0)
    np.testing.assert_array_equal(found.measures["inputs"], found.measures["outputs"])


def test_a_two_link_arm_loses_the_direction_along_itself() -> None:
    arm = kic.load("horn-two-link")
    shoulder, elbow = np.linspace(-1, 1, 5)[:, None], np.linspace(-3.5, 3.5, 8)
    c = arm.at({"shoulder": shoulder, "elbow": elbow})
    s = c.singularities(of=["tip.x", "tip.y"])
    length = arm._model.length
    G = c.coefficients(["tip.x", "tip.y"], order=1).G / length
    assert_allclose(s.measures["outputs"], np.linalg.svd(G, compute_uv=False)[..., -1], rtol=1e-12)
    assert (s.measures["inputs"] == 1).all()
    assert "closure" not in s.measures
    assert len(s) == 15
    assert not s.unresolved
    for one in s:
        (i, j), (k, n) = one.between
        assert (k, n) == (i, j + 1)
        at = one.configuration._phi
        assert at[0] == pytest.approx(shoulder[i, 0], abs=1e-12)
        assert min(abs(at[1] - x) for x in (-np.pi, 0, np.pi)) < 1e-12
        along = np.array([np.cos(at[0]), np.sin(at[0])])
        lost = np.array([one.direction["tip.x"], one.direction["tip.y"]])
        assert abs(abs(lost @ along) - 1) < 1e-12
        rates = np.array([one.motion["shoulder"], one.motion["elbow"]])
        assert np.abs(one.configuration.coefficients(["tip.x", "tip.y"], order=1).G @ rates).max() < 1e-12
    assert "between (0, 3) and (0, 4): outputs: no motion along" in str(s.summary())


def test_members_that_are_singular_themselves() -> None:
    arm = kic.load("horn-two-link")
    c = arm.at({"shoulder": np.zeros((3, 1)) + 0.2, "elbow": np.linspace(-1, 1, 5)})
    s = c.singularities(of=["tip.x", "tip.y"])
    assert [one.between for one in s] == [((k, 2),) for k in range(3)]
    assert (s.measures["outputs"][:, 2] < 1e-14).all()
    alone = arm.at([[0.2, 0.0]]).singularities(of=["tip.x", "tip.y"])
    assert [one.between for one in alone] == [((0,),)]
    assert not len(arm.at([[0.2, 0.1]]).singularities(of=["tip.x", "tip.y"]))


def test_fewer_outputs_than_dof() -> None:
    """Three links: the tip loses a direction only where all of them lie on one line."""
    arm = kic.Mechanism(
        "three-link",
        [kic.Body(n) for n in "abc"],
        [
            kic.Joint(n, "revolute", (a, b), at=(k, 0, 0), axis=(0, 0, 1))
            for k, (n, a, b) in enumerate([("A", "ground", "a"), ("B", "a", "b"), ("C", "b", "c")])
        ],
        points=[kic.Point("tip", "c", (3, 0, 0))],
    )
    c = arm.at({"A": 0.3, "B": np.linspace(-1, 1, 8)[:, None] + 0.013, "C": np.linspace(-1, 1, 8)})
    s = c.singularities(of=["tip.x", "tip.y"])
    assert len(s)
    for one in s:
        assert one.kind == "outputs"
        assert np.abs(one.configuration._phi[1:]).max() < 1e-12
        assert not one.motion
        a = one.configuration._phi[0]
        lost = np.array(list(one.direction.values()))
        assert abs(abs(lost @ [np.cos(a), np.sin(a)]) - 1) < 1e-12
    assert not len(arm.at({"A": 0.3, "B": c._phi[:3, :, 1], "C": 0.2}).singularities(of=["tip.x", "tip.y"]))


def test_a_five_bar_has_both_types() -> None:
    """Inputs: the two middle links align. Outputs: a leg is stretched; nothing moves the tip along it."""
    m = kic.load("five-bar")
    start = m.at({"A": 1.7, "E": 1.5708})
    c = m.path({"A": 1.7, "C": np.linspace(-1.6, 0.5, 9)}, near=start)
    (one,) = c.singularities()
    assert one.kind == "inputs"
    assert abs(one.configuration.value("C")) < 1e-12
    assert set(one.direction) == {"A", "E"}
    assert max(abs(one.motion[n]) for n in "AE") < 1e-12
    c = m.path({"B": np.linspace(-0.6, 0.4, 9), "E": 1.5})
    (one,) = c.singularities(of=["tip.x", "tip.y"])
    assert one.kind == "outputs"
    assert abs(one.configuration.value("B")) < 1e-12
    leg = one.configuration.value("tip")[:2]
    lost = np.array([one.direction["tip.x"], one.direction["tip.y"]])
    assert abs(abs(lost @ leg) / np.linalg.norm(leg) - 1) < 1e-12
    G = one.configuration.coefficients(["tip.x", "tip.y"], order=1).G
    assert np.abs(lost @ G).max() < 1e-12


def test_three_lines_that_meet() -> None:
    """The base hinges of a 3-RRR do not hold its platform where the lines of the distal links meet."""
    m = kic.load("three-legged-robot")
    w = m.at().value("w")
    c = m.path({"w.x": w[0], "w.y": w[1], "platform.angle": np.linspace(0, -1.5, 12)}, failures="mask")
    found = [one for one in c.singularities() if one.kind == "inputs"]
    assert len(found) == 1
    at = found[0].configuration
    drawn = {j.name: np.array(j.at) for j in m.joints}

    def line(k: int) -> np.ndarray:
        """Unit line coordinates of a distal link, where the hinges are now."""
        knee = at.pose(f"base{k}").apply(drawn[f"B{k}"])
        hand = at.pose("platform").apply(drawn[f"C{k}"])
        u = (hand - knee)[:2] / np.linalg.norm(hand - knee)
        return np.array([*u, knee[0] * u[1] - knee[1] * u[0]])

    lines = np.array([line(k) for k in (1, 2, 3)])
    assert abs(np.linalg.det(lines)) < 1e-12
    assert np.abs(np.linalg.svd(lines[:, :2])[1]).min() > 0.1  # not parallel: they meet


@pytest.mark.slow
@pytest.mark.parametrize(("count", "near"), [(14, 1e-12), (8, 1e-3)])
def test_fichter_s_singularity(count: int, near: float) -> None:
    """A platform turned by a quarter about its axis moves with all legs held.

    Of 14 members one is turned by just that. Between others the shortest way is no pure turn: it meets the
    surface of singular configurations next to it.
    """
    m = kic.load("gough-stewart")
    angle = np.linspace(0, np.deg2rad(130), count)
    c = m.path({"platform": RigidTransform.from_rotation(Rotation.from_rotvec(angle[:, None] * [0, 0, 1]))})
    (one,) = c.singularities()
    assert one.kind == "inputs"
    turned = Rotation.from_matrix(displacement(one.configuration, "platform")[:3, :3]).as_rotvec()
    assert_allclose(turned, [0, 0, np.pi / 2], rtol=0, atol=near)
    assert one.measure < 1e-12
    assert max(abs(one.motion[f"L{k}"]) for k in range(1, 7)) < 1e-12
    assert one.summary().endswith("…")  # of many joints the first few


def test_balls_on_the_way() -> None:
    m = kic.load("rssr")
    start = m.at()
    c = m.path({"crank": start.value("crank") + np.linspace(0, 2 * np.pi, 30), "spin": start.value("spin")})
    found = c.singularities(drivers=["rocker", "spin"])
    assert len(found) == 2
    for one in found:
        assert np.abs(one.configuration.coefficients("rocker", order=1).G).max() < 1e-12
        assert one.direction["rocker"] == pytest.approx(1)


def joined(m: kic.Mechanism, angles: list[float]) -> Configuration:
    """Parallelograms at these angles of the crank, each checked to be closed."""
    state = np.array([[a, -a, a] for a in angles])
    assert m._model.tree.columns == ("A", "B", "C")
    assert np.abs(m._model.closure(()).rows(state)[0]).max() < 1e-14
    return Configuration(m._model, (len(angles),), state)


@pytest.mark.parametrize("inputs", ["A", "B", "D"])
def test_flat_parallelograms_are_singular(inputs: str) -> None:
    """The closure itself loses rank there; inputs and outputs are not reported."""
    m = parallelogram()
    c = joined(m, [-1.0, -0.6, -0.2, 0.3, 0.8, 1.3, 1.9, 2.4, 3.0, 3.5])
    s = c.singularities(drivers=inputs, of="C")
    assert [(one.kind, one.between) for one in s] == [("closure", ((2,), (3,))), ("closure", ((8,), (9,)))]
    for one, angle in zip(s, (0, np.pi), strict=True):
        assert_allclose(one.configuration._phi, [angle, -angle, angle], atol=1e-13)
        assert one.dof == 2
        said = "closure: conditions of 'D' are dependent, 2 degrees of freedom to first order"
        assert one.summary() == said
        assert not one.motion
    assert not s.unresolved
    # a member that is flat itself
    flat = joined(m, [-0.5, 0.0, 0.5]).singularities()
    assert [(one.kind, one.between) for one in flat] == [("closure", ((1,),))]
    # and the last before it: least of its neighbours, but nothing between the members given
    assert not len(joined(m, [0.3, 0.5, 0.7]).singularities())


@pytest.mark.slow
def test_a_path_that_ends_at_a_dead_centre() -> None:
    m = kic.load("four-bar")
    d = float(m.at().value("D"))
    c = m.path({"D": d + np.linspace(0, 1, 21)}, failures="mask")
    last = int(c.ok.sum()) - 1
    assert 2 < last < 20
    s = c.singularities(drivers="D")
    assert [(one.kind, one.between) for one in s] == [("inputs", ((last,), (last + 1,)))]
    assert min(abs(s[0].configuration.value("A") - a) for a in crank_angles()) < 1e-12
    assert np.isnan(s.measures["inputs"][last + 1 :]).all()
    assert f"between {last} and {last + 1}, which has no configuration: inputs: D can" in str(s.summary())
    assert not len(c.singularities(drivers="A"))


@pytest.mark.slow
def test_ended_path_reports_only_near_members() -> None:
    """This one ends where a leg is stretched; the base hinges are as good there as before."""
    m = kic.load("three-legged-robot")
    w = m.at().value("w")
    c = m.path({"w.x": w[0] - np.linspace(0, 1.5, 12), "w.y": w[1], "platform.angle": 0.0}, failures="mask")
    assert 0 < c.ok.sum() < 12
    assert not len(c.singularities())
    assert [one.kind for one in c.singularities(of=["w.x", "w.y", "platform.angle"])] == ["outputs"]


@pytest.mark.slow
@pytest.mark.parametrize("step", [(0.05, 0.05, 0.0), (-0.05, 0.0, 0.0), (0.0, 0.05, 0.03), (0.0, 0.0, -0.05)])
def test_end_of_a_path_is_on_the_path(step: tuple[float, float, float]) -> None:
    """Points found on a path are its intersections with the singular surfaces of a platform.

    Turned about its middle the platform comes to where several legs are stretched at once.
    """
    m = kic.load("three-legged-robot")
    plate = ["w.x", "w.y", "platform.angle"]
    begin = m.at().value(plate)
    wanted = begin + np.arange(45)[:, None] * np.array(step)
    c = m.path(dict(zip(plate, wanted.T, strict=True)), failures="mask")
    last = int(c.ok.sum()) - 1
    assert 2 < last < 43
    (one,) = (one for one in c.singularities(drivers=plate) if len(one.between) == 2)
    assert one.between == ((last,), (last + 1,))
    share = (one.configuration.value(plate) - wanted[last]) @ np.array(step) / np.dot(step, step)
    assert 0 <= share <= 1
    assert_allclose(one.configuration.value(plate), wanted[last] + share * np.array(step), atol=1e-9)
    stretched = [abs(np.sin(one.configuration.value(f"B{k}"))) for k in (1, 2, 3)]
    assert min(stretched) < 1e-8
    # members cut out of the path know what they were to be
    few = c[last - 1 :]
    assert [x.between for x in few.singularities(drivers=plate)] == [((1,), (2,))]
    # without targets of the next member, nothing is reported between
    unknown = Configuration(c._model, c.batch, c._states, c.ok)
    assert not [x for x in unknown.singularities(drivers=plate) if len(x.between) == 2]


@pytest.mark.slow
def test_a_path_of_poses_ends_on_the_path() -> None:
    """The hand of an arm is moved outwards and turned until the arm is straight."""
    m = kic.load("puma560")
    near = m.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
    begin = near.pose("link6")
    point = np.array(find_part(m, "link6", "bodies").reference)
    t = np.linspace(0, 1, 31)[:, None]
    turn = Rotation.from_rotvec(t * [0.1, 0.2, 0.3])
    place = begin.apply(point)
    away = RigidTransform.from_components(place + t * [0.3, -0.5, 0.3] - turn.apply(place), turn)
    c = m.path({"link6": away * begin}, near=near, failures="mask")
    last = int(c.ok.sum()) - 1
    assert 2 < last < 29
    (one,) = (x for x in c.singularities(of="link6") if x.kind == "outputs")
    assert one.between == ((last,), (last + 1,))
    # between the two poses the place moves straight, the orientation about one axis
    a, b = ((away * begin)[k] for k in (last, last + 1))
    now = one.configuration.pose("link6")
    way = b.apply(point) - a.apply(point)
    gone = now.apply(point) - a.apply(point)
    share = gone @ way / (way @ way)
    assert 0 < share < 1
    assert_allclose(gone, share * way, rtol=0, atol=1e-9)
    whole = (b.rotation * a.rotation.inv()).as_rotvec()
    assert_allclose((now.rotation * a.rotation.inv()).as_rotvec(), share * whole, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_a_grid_with_holes() -> None:
    m = kic.load("five-bar")
    x, y = m.at().value("tip")[:2]
    g = np.linspace(-1, 1, 13)
    c = m.at({"tip.x": x + 20 * g[:, None], "tip.y": y + 14 * g}, failures="mask")
    assert 0 < c.ok.sum() < c.ok.size
    s = c.singularities(of=["tip.x", "tip.y"])
    assert s.measures["outputs"].shape == (13, 13)
    np.testing.assert_array_equal(np.isnan(s.measures["outputs"]), ~c.ok)
    assert len(s)
    for one in s:
        assert c.ok[one.between[0]]
        assert one.measure < 1e-7
        B, D = one.configuration.value("B"), one.configuration.value("D")
        assert min(abs(np.sin(B)), abs(np.sin(D))) < 1e-9  # a leg is stretched or folded


def test_no_false_singularities() -> None:
    m = kic.load("five-bar")
    c = m.at({"A": 1.22 + np.linspace(-0.2, 0.2, 4)[:, None], "E": 1.57 + np.linspace(-0.2, 0.2, 4)})
    assert not len(c.singularities(of=["tip.x", "tip.y"]))


def test_batches_of_nothing_and_of_one() -> None:
    m = kic.load("four-bar")
    for shape in [(0,), (0, 3), (2, 0)]:
        s = m.at({"A": np.zeros(shape)}).singularities(drivers="D", of="tip.x")
        assert {x.shape for x in s.measures.values()} == {shape}
        assert len(s) == 0
        assert "none was found" in str(s.summary())
    nothing = m.at({"A": [np.nan, np.nan]}, failures="mask").singularities()
    assert np.isnan(nothing.measures["inputs"]).all()
    assert not len(nothing)
    single = m.at({"A": 0.3}).singularities(drivers="D")
    assert single.measures["inputs"].shape == ()
    assert single.measures["inputs"] == m.at({"A": [0.3]}).singularities(drivers="D").measures["inputs"][0]
    assert "smallest measure" in str(single.summary())
    refuses(lambda: len(single), key="configuration", got=())


def test_neighbours_of_different_assemblies_are_not_joined() -> None:
    m = kic.load("four-bar")
    s = m.assembly_modes({"A": 1.2}).configuration.singularities(drivers="D")
    assert s.unresolved == (((0,), (1,)),)
    assert not len(s)
    text = s.summary().text()
    assert "not searched, because no closed configurations were found between them: members 0 and 1" in text


def test_zero_distance_has_no_measure() -> None:
    m = closed_gap()
    s = m.at([[-0.5], [0.0], [0.5]]).singularities(of="gap")
    assert np.isnan(s.measures["outputs"]).tolist() == [False, True, False]
    found = m.at([[3.0], [3.5]]).singularities(of="gap")  # the points are farthest apart at π
    assert [one.configuration.value("A") for one in found] == [pytest.approx(np.pi, abs=1e-12)]


def test_singular_everywhere_raises() -> None:
    delta = kic.load("delta")
    c = delta.at({"A1": np.linspace(0.2, 0.6, 5), "A2": 0.4, "A3": 0.4})
    refuses(lambda: c.singularities(of=["plate.x", "plate.wx"]), name="plate.wx")
    m = kic.load("rssr")
    turn = m.path({"crank": np.linspace(0, 6.2, 40), "spin": 0.0})
    refuses(lambda: turn.singularities(drivers=["crank", "rocker"]), coordinates=("crank", "rocker"))
    five = kic.load("five-bar")
    with raises(kic.InputError, names=("A", "crank.angle")):
        five.at({"A": [1.2, 1.3], "E": 1.5}).singularities(of=["A", "crank.angle"])
    # a configuration by chance is none of that: the piston stands still at its dead centre
    slider = kic.load("slider-crank")
    dead = slider.at({"shaft": [0.0]}).singularities(of="piston")
    assert [one.kind for one in dead] == ["outputs"]
