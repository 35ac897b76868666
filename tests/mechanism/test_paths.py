"""Paths: members continued from their neighbours on one branch, or an error at the member that would jump."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import bars_between, four_bar_pivots
from raising import raises
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.description.description import find_part
from kic.mechanism.configuration import displacement

TURN = np.linspace(0, 2 * np.pi, 61)


def lines(m: kic.Mechanism) -> tuple[float, float, float, float]:
    """Crank, coupler, rocker and ground of a drawn four-bar."""
    at = {j.name: np.array(j.at) for j in m.joints}
    return tuple(float(np.linalg.norm(at[p] - at[q])) for p, q in ("AB", "BC", "CD", "AD"))  # type: ignore[return-value]


def four_bar(crank: float, coupler: float, rocker: float, ground: float) -> kic.Mechanism:
    """A four-bar drawn with its crank upright."""
    pivots = four_bar_pivots(crank, coupler, rocker, ground, np.pi / 2)
    if pivots[2][1] < 0:
        pivots = four_bar_pivots(crank, coupler, rocker, ground, np.pi / 2, -1)
    return bars_between(pivots, np.pi / 2)


def test_full_turns_of_a_crank() -> None:
    """The crank of a Grashof linkage turns fully forth and back, and the loop returns to its start."""
    m = kic.load("four-bar")
    crank, coupler, rocker, ground = lines(m)
    assert min(crank, ground) + max(coupler, rocker, ground) <= sum(lines(m)) / 2 + 1e-12
    start = m.at()
    for turn in (TURN, -TURN, np.concatenate([TURN, TURN[-2::-1]]), 5 * TURN):
        c = m.path({"A": start.value("A") + turn})
        assert c.batch == turn.shape
        assert c.ok.all()
        bodies = [displacement(c, b.name) for b in m.bodies]
        assert max(np.abs(T[-1] - T[0]).max() for T in bodies) < 1e-12
        # the cosine law of the quadrilateral at the transmission angle between coupler and rocker
        across = crank**2 + ground**2 - 2 * crank * ground * np.cos(c.value("A"))
        wanted = (coupler**2 + rocker**2 - across) / (2 * coupler * rocker)
        C, B = (np.array(find_part(m._model.description, k).at) for k in "CB")
        D = np.array(find_part(m._model.description, "D").at)
        arms = [c.pose(body).rotation.apply(x - C) for body, x in (("coupler", B), ("rocker", D))]
        assert np.abs(np.einsum("bi,bi->b", *arms) / (coupler * rocker) - wanted).max() < 1e-12


@pytest.mark.parametrize("sides", [(0.3, 0.25, 0.35, 0.5), (0.3, 0.4, 0.25, 0.5)])
def test_a_crank_that_does_not_go_round_stops_at_its_dead_centre(sides: tuple[float, ...]) -> None:
    crank, coupler, rocker, ground = sides
    assert min(sides) + max(sides) > sum(sides) - min(sides) - max(sides)
    m = four_bar(*sides)
    # coupler and rocker in line
    limit = np.arccos((crank**2 + ground**2 - (coupler + rocker) ** 2) / (2 * crank * ground))
    wanted = np.linspace(np.pi / 2, np.pi, 40)
    with pytest.raises(kic.ConfigurationError, match="a dead centre") as caught:
        m.path({"A": wanted})
    first = caught.value.failed[0][0]
    assert wanted[first - 1] < limit < wanted[first]
    assert caught.value.reached.value("A")[0] == pytest.approx(limit, abs=1e-5)
    assert f"member {first}, continued from member {first - 1}: it completed" in str(caught.value)
    assert caught.value.reasons[1:] == [f"its path stops at member {first}"] * (39 - first)
    assert "its path stops" not in str(caught.value)
    masked = m.path({"A": wanted}, failures="mask")
    assert masked.ok.tolist() == (wanted < limit).tolist()
    assert np.isnan(masked.value("A")[first:]).all()
    # members beyond the limit are no configurations of this path, even where they exist
    back = np.concatenate([wanted, wanted[::-1]])
    assert m.path({"A": back}, failures="mask").ok.tolist() == [*(wanted < limit), *[False] * 40]


def test_a_refined_path_has_the_same_configurations() -> None:
    """A path of few members and one of many agree, and both with at() from the drawing."""
    moves = {"four-bar": {"A": 0.7}, "slider-crank": {"shaft": 2.0}, "five-bar": {"tip.x": -1, "tip.y": -6}}
    for name, move in moves.items():
        m, inputs, step = kic.load(name), list(move), list(move.values())
        here = [m.at().value(x) for x in inputs]
        for count in (7, 25):
            coarse, fine = (
                m.path({x: here[k] + t * step[k] for k, x in enumerate(inputs)})
                for t in (np.linspace(0, 1, count), np.linspace(0, 1, 1 + 8 * (count - 1)))
            )
            assert np.abs(coarse.state - fine.state[::8]).max() < 1e-11
            jump = m.at({x: here[k] + step[k] for k, x in enumerate(inputs)})
            assert np.abs(jump.state - coarse.state[-1]).max() < 1e-11


def test_a_slider_crank_turns_over_its_dead_centres() -> None:
    """The shaft drives it through both; the piston cannot, and its path stops at the first."""
    m = kic.load("slider-crank")
    a, b = 0.05, np.hypot(0.198, 0.04)
    shaft = m.at().value("shaft") + TURN
    c = m.path({"shaft": shaft})
    wanted = a * np.cos(shaft) + np.sqrt(b**2 - (a * np.sin(shaft)) ** 2)
    assert np.abs(c.value("piston") - wanted).max() < 1e-13
    stroke = np.linspace(0.23, b - a - 0.001, 30)
    with pytest.raises(kic.ConfigurationError) as caught:
        m.path({"piston": stroke})
    assert stroke[caught.value.failed[0][0]] < b - a < stroke[caught.value.failed[0][0] - 1]
    assert caught.value.reached.value("piston")[0] == pytest.approx(b - a, abs=1e-7)


@pytest.mark.parametrize("count", [2, 10, 20, 50, 200, 3, 5])
def test_parallelograms_stop_when_flat(count: int) -> None:
    """There a second motion branches off, however long the steps are: which one is meant is not known."""
    m = four_bar(0.3, 0.5, 0.3, 0.5)
    # with an odd count one member lies flat itself, and the next cannot start from there
    text = "are dependent where it starts" if count in (3, 5) else "several motions of its loops meet there"
    with pytest.raises(kic.ConfigurationError, match=text) as caught:
        m.path({"A": np.linspace(np.pi / 2, -np.pi / 2, count)})
    assert abs(caught.value.reached.value("A")[0]) < 1e-3


def test_a_five_bar_draws_a_circle() -> None:
    m = kic.load("five-bar")
    x, y, _ = m.at().value("tip")
    first = np.radians(76)  # below the drawn tip, which is close to the reach of both cranks
    turn = first + TURN
    circle = {
        "tip.x": x + 3 * (np.cos(turn) - np.cos(first)),
        "tip.y": y + 3 * (np.sin(turn) - np.sin(first)),
    }
    c = m.path(circle)
    assert np.abs(c.state[0] - c.state[-1]).max() < 1e-12
    # cranks from their triangles: tip, ground pivots, two bars each
    at = {j.name: np.array(j.at) for j in m.joints}
    tip = c.value("tip")
    for pivot, pin, sign in (("A", "B", -1), ("E", "D", 1)):
        arm, rod = np.linalg.norm(at[pin] - at[pivot]), np.linalg.norm(at["C"] - at[pin])
        far = tip - at[pivot]
        long = np.linalg.norm(far, axis=1)
        inside = np.arccos((arm**2 + long**2 - rod**2) / (2 * arm * long))
        angle = np.arctan2(far[:, 1], far[:, 0])
        drawn = np.arctan2(*(at[pin] - at[pivot])[1::-1])
        found = c.value(pivot) - m.at().value(pivot) + drawn
        both = np.stack([found - (angle + s * inside) for s in (-1, 1)])
        off = np.abs(np.remainder(both + np.pi, 2 * np.pi) - np.pi)
        assert off.min(axis=0).max() < 1e-12
        # always the same elbow
        assert off[(sign + 1) // 2].max() < 1e-12 or off[(1 - sign) // 2].max() < 1e-12
    # there and back: the same circle in the cranks
    again = m.path({"A": c.value("A"), "E": c.value("E")})
    assert np.abs(again.value("tip") - tip).max() < 1e-11
    # a circle too wide
    wide = {"tip.x": x - 30 + 30 * np.cos(TURN), "tip.y": y + 30 * np.sin(TURN)}
    with pytest.raises(kic.ConfigurationError):
        m.path(wide)


@pytest.mark.slow
def test_a_platform_along_poses() -> None:
    m = kic.load("gough-stewart")
    turn = Rotation.from_rotvec(0.2 * np.stack([np.cos(TURN), np.sin(TURN), np.sin(2 * TURN)], axis=-1))
    move = 0.05 * np.stack([np.sin(TURN), np.sin(2 * TURN), np.cos(TURN)], axis=-1)
    poses = RigidTransform.from_components(move, turn)
    c = m.path({"platform": poses})
    assert np.abs(displacement(c, "platform") - poses.as_matrix()).max() < 1e-13
    assert np.abs(c.state[0] - c.state[-1]).max() < 1e-12
    legs = m.path({f"L{k}": c.value(f"L{k}") for k in range(1, 7)})
    assert np.abs(displacement(legs, "platform") - poses.as_matrix()).max() < 1e-11


@pytest.mark.slow
def test_paths_side_by_side() -> None:
    m = kic.load("four-bar")
    start = m.at({"A": [0.6, 1.0, 1.4]})
    turn = TURN[:20, None] + [0.6, 1.0, 1.4]
    c = m.path({"A": turn}, near=start)
    assert c.batch == (20, 3)
    for k in range(3):
        alone = m.path({"A": turn[:, k]}, near=m.at({"A": turn[0, k]}))
        assert np.abs(alone.state - c.state[:, k]).max() < 1e-12
    assert m.path({"A": TURN[:5]}, near=start).batch == (5, 3)
    assert m.path({"A": TURN[:0]}).batch == (0,)
    # one of them stops, the others go on
    s = kic.load("slider-crank")
    goal = np.linspace(0.23, 0.24, 8)[:, None] * [1.0, 1.0] + np.linspace(0, 0.05, 8)[:, None] * [0, 1]
    with pytest.raises(kic.ConfigurationError):
        s.path({"piston": goal})
    ok = s.path({"piston": goal}, failures="mask").ok
    assert ok[:, 0].all()
    assert ok[:, 1].tolist() == sorted(ok[:, 1].tolist(), reverse=True)
    assert not ok[-1, 1]


def test_open_chains_and_invalid_members() -> None:
    m = kic.load("horn-two-link")
    phi = np.random.default_rng(0).normal(size=(6, 2))
    assert m.path(phi)._phi.tolist() == phi.tolist()
    tip = m.at(phi * [1, 0] + [0, 1.0] + phi * [0, 0.1]).value("tip")
    c = m.path({"tip.x": tip[:, 0], "tip.y": tip[:, 1]}, near=m.at([0.0, 1.0]), failures="mask")
    assert np.abs(c.value("tip") - tip)[c.ok].max() < 1e-13
    assert (c.value("elbow")[c.ok] > 0).all()
    f = kic.load("four-bar")
    values = f.at().value("A") + np.array([0.1, np.nan, 0.2])
    with raises(kic.ConfigurationError, failed=[(1,), (2,)]) as caught:
        f.path({"A": values})
    assert caught.value.reasons == ["A is NaN, and values must be finite", "its path stops at member 1"]
    assert caught.value.configuration.ok.tolist() == [True, False, False]


WRONG = [
    ({"A": 1.0}, {}, {"key": "values", "got": ()}),
    (None, {}, {"key": "values"}),
    ({"A": TURN}, {"near": 3}, {"key": "near", "got": 3}),
    ({"A": TURN}, {"failures": "skip"}, {"key": "failures", "got": "skip"}),
    ({"A": TURN, "D": TURN}, {}, {"mobility": 1, "count": 2}),
]


@pytest.mark.parametrize(("inputs", "more", "data"), WRONG)
def test_invalid_queries_raise(inputs: object, more: dict, data: dict) -> None:
    with raises(kic.InputError, **data):
        kic.load("four-bar").path(inputs, **more)


@pytest.mark.slow
def test_batches_find_the_solutions_of_their_members() -> None:
    """Members out of reach are given up without their reasons, and take none of the others with them."""
    m = kic.load("five-bar")
    x, y = m.at().value("tip")[:2]
    g = np.linspace(-1.6, 1.6, 7)
    wanted = {"tip.x": x + 20 * g[:, None], "tip.y": y + 14 * g}
    c = m.at(wanted, failures="mask")
    assert 5 < c.ok.sum() < 44
    for i, j in np.ndindex(7, 7):
        one = {"tip.x": wanted["tip.x"][i, 0], "tip.y": wanted["tip.y"][j]}
        if c.ok[i, j]:
            np.testing.assert_allclose(m.at(one).state, c.state[i, j], rtol=0, atol=1e-11)
        else:
            with pytest.raises(kic.ConfigurationError):
                m.at(one)
