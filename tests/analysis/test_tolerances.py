"""Tolerances: moments against exact quadrature, worst cases against searches, Monte Carlo in its error."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raising import raises

import kic
from kic.analysis.tolerances.deviations import Contributor, Deviations

# sums of a few hundred terms of the size of the largest, in units of rounding, times a margin
ROUNDING_RTOL = 1e-11
# rounding of differences, relative to deviations of 1e-4: 1e-16 / 1e-8, times a margin
DIFFERENCES_RTOL = 1e-6
# standard errors that samples stay within
ERRORS_MAX = 5.0
SAMPLES = 20_000
LEG = (("S", ".clearance"), ("L", ".value"), ("U", ".at.ground.x"), ("U", ".at.ground.z"))
LINKS = {"ground.length": 2e-4, "crank.length": 1e-4, "coupler.length": 3e-4, "B.clearance": 5e-5}


def four_bar(angle: float = 1.2) -> kic.Configuration:
    """A four-bar with its crank at an angle."""
    return kic.load("four-bar").at({"A": angle})


def varied() -> tuple[kic.Mechanism, tuple[str, ...]]:
    """The four-bar with the dimensions of LINKS as coordinates, and their names."""
    m = kic.load("four-bar")
    play = {f"play {x}": {f"B.at.crank.{x}": 1.0} for x in "xy"}
    v = m.vary({name: name for name in LINKS if name != "B.clearance"} | play)
    return v, v.coordinates[1:]


def rule(distribution: str, tolerance: float, sigmas: float = 3.0) -> list[tuple[tuple[float, ...], float]]:
    """Points and weights of a quadrature that is exact to fifth order."""
    if distribution == "normal":
        x, w = np.polynomial.hermite_e.hermegauss(4)
        return [((a * tolerance / sigmas,), b / w.sum()) for a, b in zip(x, w, strict=True)]
    if distribution == "uniform":
        x, w = np.polynomial.legendre.leggauss(4)
        return [((a * tolerance,), b / 2) for a, b in zip(x, w, strict=True)]
    angles = np.arange(8) * np.pi / 4 + 0.1
    return [((tolerance * np.cos(a), tolerance * np.sin(a)), 1 / 8) for a in angles]


def test_moments_are_those_of_a_quadratic_function() -> None:
    kinds, limits, sigmas = ("uniform", "normal", "uniform", "contact"), (0.1, 0.02, 0.05, 0.03), 4.0
    contributors = [
        Contributor(t, kind, {f"{t}": None}) for kind, t in zip(kinds[:3], limits[:3], strict=True)
    ]
    deviations = Deviations([*contributors, Contributor(limits[3], kinds[3], {"x": None, "y": None})], sigmas)
    rng = np.random.default_rng(0)
    b, A = rng.normal(size=(3, 5)), rng.normal(size=(3, 5, 5))

    def quadratic(x: np.ndarray) -> np.ndarray:
        return 1.0 + x @ b.T + np.einsum("ni,pij,nj->np", x, A, x)

    values, G, H = deviations.differentiated(quadratic)
    assert_allclose(values[0], 1.0)
    assert_allclose(G, b, rtol=DIFFERENCES_RTOL)
    assert_allclose(H, A + A.swapaxes(1, 2), rtol=DIFFERENCES_RTOL)
    shift, covariance, parts = deviations.moments(G, H)
    rules = [rule(kind, t, sigmas) for kind, t in zip(kinds, limits, strict=True)]
    points = [(sum((x for x, _ in some), ()), np.prod([w for _, w in some])) for some in product(*rules)]
    x, w = np.array([x for x, _ in points]), np.array([w for _, w in points])
    f = quadratic(x)
    mean = w @ f
    assert_allclose(1.0 + shift, mean, rtol=DIFFERENCES_RTOL)
    expected = np.einsum("n,np,nq->pq", w, f - mean, f - mean)
    assert_allclose(covariance, expected, atol=DIFFERENCES_RTOL * expected.max())
    assert_allclose(parts.sum(axis=-1), np.diagonal(expected), rtol=DIFFERENCES_RTOL)


def test_rows_have_the_moments_of_their_derivatives() -> None:
    c = four_bar()
    found = c.tolerance_analysis(["tip", "D"], LINKS)
    v, names = varied()
    u = v.at({"A": 1.2}).coefficients(["tip", "D"])
    places = [u.columns.index(name) for name in names]
    sigma = np.array([*(LINKS[n] / 3 for n in names[:3]), *[LINKS["B.clearance"] / np.sqrt(2)] * 2])
    G = u.G[:, places] * sigma
    H = u.H[:, places][:, :, places] * np.outer(sigma, sigma)
    fourth = np.ones((5, 5)) + 2 * np.eye(5)
    fourth[3:, 3:] = [[1.5, 0.5], [0.5, 1.5]]
    assert_allclose(found.nominal, np.append(c.value("tip"), c.value("D")), rtol=ROUNDING_RTOL)
    assert_allclose(found.mean - found.nominal, np.einsum("pii->p", H) / 2, atol=1e-13)
    for p, q in product(range(4), repeat=2):
        expected = G[p] @ G[q]
        for i, j in product(range(5), repeat=2):
            expected += H[p, i, i] * H[q, j, j] * (fourth[i, j] - 1) / 4
            expected += H[p, i, j] * H[q, i, j] * fourth[i, j] / 2 * (i != j)
        assert_allclose(found.covariance[p, q], expected, atol=ROUNDING_RTOL * found.sigma.max() ** 2)


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
def test_a_function_of_rows_agrees_with_their_names(distribution: Any) -> None:
    c = four_bar()
    one = c.tolerance_analysis("tip", LINKS, distribution=distribution)
    other = c.tolerance_analysis(lambda c: c.value("tip"), LINKS, distribution=distribution)
    assert_allclose(other.nominal, one.nominal, rtol=ROUNDING_RTOL)
    assert_allclose(other.sigma, one.sigma, rtol=DIFFERENCES_RTOL, atol=1e-15)
    assert_allclose(other.mean, one.mean, atol=DIFFERENCES_RTOL * one.sigma.max())
    assert_allclose(other.worst_case, one.worst_case, atol=DIFFERENCES_RTOL * one.sigma.max())


def test_a_clearance_moves_the_end_of_an_arm_by_its_radius() -> None:
    c = kic.load("horn-two-link").at([0.3, 0.5])
    found = c.tolerance_analysis(["tip.x", "tip.y"], {"elbow.clearance": 0.01})
    assert_allclose(found.covariance, np.eye(2) * 0.01**2 / 2, atol=1e-16)
    assert_allclose(found.worst_case - found.nominal[:, None], [[-0.01, 0.01]] * 2, atol=1e-13)
    drawn = found.monte_carlo(500) - found.nominal
    assert_allclose(np.hypot(*drawn.T), 0.01, rtol=1e-11)
    ball = kic.Mechanism(
        "ball",
        [kic.Body("bob")],
        [kic.Joint("pivot", "spherical", ("ground", "bob"), at=(0, 0, 0))],
        points=[kic.Point("tip", "bob", (0, 0, -1))],
    )
    found = ball.at().tolerance_analysis("tip", {"pivot.clearance": 0.01})
    assert_allclose(found.covariance, np.eye(3) * 0.01**2 / 3, atol=1e-16)


def test_an_extreme_value_within_the_tolerances_is_found() -> None:
    c = kic.load("horn-two-link").at([0.0, 0.0])  # stretched along x
    found = c.tolerance_analysis("tip.x", {"shoulder": 0.1, "elbow": 0.2})
    assert_allclose(found.worst_case[0, 1], 2.0, atol=1e-12)
    assert_allclose(found.worst_case[0, 0], np.cos(0.1) + np.cos(0.3), atol=1e-12)
    # both second derivatives are −2 and −1, the mixed one −1
    s = np.array([0.1, 0.2]) / 3
    assert_allclose(found.mean - 2.0, -(2 * s[0] ** 2 + s[1] ** 2) / 2, rtol=1e-10)
    assert_allclose(found.covariance[0, 0], (4 * s[0] ** 4 + s[1] ** 4 + 2 * (s[0] * s[1]) ** 2) / 2)


@pytest.mark.parametrize(("q", "limit"), [(-0.002, 0.01), (0.02, 0.1), (-0.02, 0.1)])
def test_the_larger_of_two_maxima_is_found(q: float, limit: float) -> None:
    c = kic.load("horn-two-link").at([q, 0.0])
    found = c.tolerance_analysis("tip.x", {"shoulder": limit, "elbow": limit}, distribution="uniform")
    x = found.monte_carlo(20_000)
    assert found.worst_case[0, 0] < x.min()
    assert_allclose(found.worst_case[0, 0], np.cos(abs(q) + limit) + np.cos(abs(q) + 2 * limit), rtol=1e-12)
    assert_allclose(found.worst_case[0, 1], 2.0, atol=limit**4)


def test_extremes_of_random_quadratic_functions_are_found() -> None:
    rng = np.random.default_rng(3)
    one = [Contributor(0.5, "uniform", {str(k): None}) for k in range(3)]
    x = Deviations([*one, Contributor(0.5, "contact", {"x": None, "y": None})], 3.0)
    G, H = rng.normal(size=(200, 5)), rng.normal(size=(200, 5, 5))
    H = H + H.swapaxes(1, 2)
    angles = np.linspace(0.0, 2 * np.pi, 361)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    grid = 0.5 * np.array([[*a, *b] for a in product([-1.0, -0.5, 0.0, 0.5, 1.0], repeat=3) for b in circle])
    best = np.array(
        [(grid @ g + np.einsum("ni,ij,nj->n", grid, h, grid) / 2).max() for g, h in zip(G, H, strict=True)]
    )
    where, found = x.largest(G, H, np.zeros(200))
    assert_allclose(np.einsum("pk,pk->p", where, G + (H @ where[..., None])[..., 0] / 2), found, rtol=1e-12)
    assert (np.abs(where) <= 0.5 * (1 + 1e-12)).all()
    # a degree of the circle costs 4e-5 of the size of a function
    assert (found > best - 1e-3).mean() > 0.98
    assert (found > 0.9 * best).all()


def test_extremes_enclose_the_nominal_value() -> None:
    c = four_bar()
    found = c.tolerance_analysis("tip", {"crank.length": 1e-4, "B.clearance": 1e-4}, wrt="tip.x")
    text = str(found.summary())
    assert "Second order does not describe tip.y" in text
    assert "cannot be assembled" in text
    low, high = found.table()["tip.y.low"], found.table()["tip.y.high"]
    assert low < found.nominal[1]
    assert np.isnan(high)


def test_a_gear_turns_by_more_than_half_a_turn() -> None:
    bodies = [kic.Body("small"), kic.Body("large")]
    joints = [
        kic.Joint(name, "revolute", ("ground", body.name), at=(k, 0, 0), axis=(0, 0, 1))
        for k, (name, body) in enumerate(zip("AB", bodies, strict=True))
    ]
    gear = kic.Coupling("gear", ("A", "B"), ratios=(100.0, -1.0))
    m = kic.Mechanism("gears", bodies, joints, couplings=[gear], coordinates=["A"])
    found = m.at({"A": 0.0}).tolerance_analysis(["B", "large.angle"], {"A": 0.05})
    assert_allclose(found.worst_case, [[-5.0, 5.0]] * 2)
    assert_allclose(found.monte_carlo(10_000).std(axis=0), found.sigma, rtol=0.03)


def test_a_ball_keeps_its_rotation() -> None:
    bob, at = kic.Body("bob"), (0, 0, 0)
    pivot = kic.Joint("pivot", "spherical", ("ground", "bob"), at=at)
    m = kic.Mechanism("ball", [bob], [pivot], points=[kic.Point("tip", "bob", (0, 0, -1))])
    turned = [[2.0, 1.0, 0.5], [-0.3, 2.5, 1.0]]
    c = m.at({"pivot": turned})
    found = c.tolerance_analysis("tip", {"pivot.clearance": 0.01})
    assert_allclose(found.worst_case - found.nominal[..., None], [[[-0.01, 0.01]] * 3] * 2, atol=1e-12)
    assert_allclose(found.nominal, c.value("tip"), rtol=1e-13)


def test_a_platform_keeps_its_pose() -> None:
    c = kic.load("gough-stewart").at()
    found = c.tolerance_analysis(["L1", "L2"], {"U1.at.ground.x": 1e-3, "S2.clearance": 1e-3}, wrt="platform")
    assert_allclose(found.share, [[1.0, 0.0], [0.0, 1.0]], atol=1e-12)
    assert_allclose(found.sigma[1], 1e-3 / np.sqrt(3), rtol=1e-3)
    assert_allclose(found.worst_case[1] - found.nominal[1], [-1e-3, 1e-3], rtol=1e-3)


def test_constant_rows_have_no_shares() -> None:
    c = four_bar()
    tolerances = {"tip.at.x": 1e-4, "tip.at.y": 1e-4}
    for of in ("D", lambda c: c.value("D")):
        assert np.isnan(c.tolerance_analysis(of, tolerances).share).all()
    spin = kic.load("rssr").at({"crank": np.linspace(0, 6, 5), "spin": 0.0})
    assert (spin.tolerance_analysis("rocker", {"spin.clearance": 1e-4}).sigma < 1e-15).all()


def test_turned_mechanisms_give_no_warning_about_degrees() -> None:
    with pytest.warns(kic.errors.DegreesWarning):
        turn = kic.load("four-bar").path({"A": np.linspace(0.0, 30.0, 50)})
    found = turn.tolerance_analysis("tip", {"crank.length": 1e-4})
    assert np.isfinite(found.worst_case).all()


def test_no_searched_mechanism_is_worse() -> None:
    turn = kic.load("four-bar").path({"A": np.linspace(0.0, 6.0, 5)})
    found = turn.tolerance_analysis(["tip.x", "tip.y", "D"], LINKS)
    ends = np.array(list(product([-1, 1], repeat=3))) * [LINKS[n] for n in list(LINKS)[:3]]
    angles = np.linspace(0.0, 2 * np.pi, 181)
    v, names = varied()
    values = {name: v.at().value(name) + ends[:, k, None, None] for k, name in enumerate(names[:3])}
    radius = LINKS["B.clearance"]
    values |= {names[3]: radius * np.cos(angles)[:, None], names[4]: radius * np.sin(angles)[:, None]}
    rows = v.at({"A": turn.value("A")} | values).value(["tip.x", "tip.y", "D"])
    deviation = found.worst_case - found.nominal[..., None]
    size = np.abs(deviation).max(axis=-1)
    # a clearance in a direction between two of the search: a degree costs 1.5e-4 of it
    for k, extreme in enumerate((rows.min(axis=(0, 1)), rows.max(axis=(0, 1)))):
        assert np.abs(found.worst_case[..., k] - extreme).max() < 1e-3 * size.max()


@pytest.mark.parametrize("distribution", ["normal", "uniform"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: (four_bar(), "tip", LINKS | {"A": 1e-3}),
        lambda: (
            kic.load("gough-stewart").at(),
            "eye",
            {f"{name}{k}{end}": 1e-3 for k in range(1, 7) for name, end in LEG},
        ),
    ],
)
def test_monte_carlo_agrees_within_its_error(make: Callable[[], Any], distribution: Any) -> None:
    c, of, tolerances = make()
    found = c.tolerance_analysis(of, tolerances, distribution=distribution)
    x = found.monte_carlo(SAMPLES, rng=1)
    varies = np.isfinite(found.share).all(axis=-1)
    error = x.std(axis=0) / np.sqrt(SAMPLES)
    assert (np.abs(x.mean(axis=0) - found.mean)[varies] < ERRORS_MAX * error[varies]).all()
    difference = np.abs(x.std(axis=0)[varies] / found.sigma[varies] - 1)
    assert (difference < ERRORS_MAX / np.sqrt(2 * SAMPLES)).all()


def test_other_coordinates_keep_their_values() -> None:
    c = four_bar()
    found = c.tolerance_analysis("A", {"coupler.length": 3e-4}, wrt="D")
    v = kic.load("four-bar").vary("coupler.length").at({"D": c.value("D"), "coupler.length": 0.29}, near=None)
    slope = v.coefficients("A", order=1, wrt=["D", "coupler.length"]).G[0, 1]
    assert_allclose(found.sigma, abs(slope) * 1e-4, rtol=1e-5)
    assert_allclose(found.worst_case[0, 1] - found.nominal[0], abs(slope) * 3e-4, rtol=1e-2)


def test_results_follow_the_batch() -> None:
    grid = kic.load("horn-two-link").at(np.random.default_rng(0).uniform(0, 1, (2, 3, 2)))
    tolerances = {"link1.length": 1e-3, "shoulder": 1e-3}
    found = grid.tolerance_analysis(["tip.x", "tip.y"], tolerances)
    one = grid[1, 2].tolerance_analysis(["tip.x", "tip.y"], tolerances)
    assert found.batch == (2, 3)
    assert found.share.shape == (2, 3, 2, 2)
    for key in ("nominal", "mean", "covariance", "share", "worst_case"):
        assert_allclose(getattr(found, key)[1, 2], getattr(one, key), rtol=1e-9, atol=1e-15)
    assert found.monte_carlo(7).shape == (7, 2, 3, 2)
    none = grid[:0].tolerance_analysis("tip", tolerances)
    assert none.worst_case.shape == (0, 3, 3, 2)
    assert none.table()["tip.x.low"].shape == (0, 3)
    assert found.table()["tip.x.sigma"].shape == (2, 3)
    again = pickle.loads(pickle.dumps(found))
    assert_allclose(again.worst_case, found.worst_case)


@pytest.mark.parametrize(
    ("all_of_them", "own"),
    [
        (lambda c: np.linalg.inv(c.dynamics().I)[..., 0, 0], lambda c: 1 / c.dynamics().I[..., 0, 0]),
        (
            lambda c: np.linalg.solve(c.dynamics().I, c.dynamics().load[..., None])[..., 0, 0],
            lambda c: c.dynamics().load[..., 0] / c.dynamics().I[..., 0, 0],
        ),
        (
            lambda c: np.linalg.svd(c.coefficients(["tip.x", "tip.y"]).G)[1][..., 0],
            lambda c: np.linalg.norm(c.coefficients(["tip.x", "tip.y"]).G[..., 0], axis=-1),
        ),
        (lambda c: c.dynamics().load, lambda c: c.dynamics().load[..., 0]),
    ],
)
def test_a_function_selects_entries_of_the_mechanism(all_of_them: Any, own: Any) -> None:
    c, link = four_bar(), {"coupler.length": 1e-4}
    with raises(kic.InputError, key="of"):
        c.tolerance_analysis(all_of_them, link)
    found = c.tolerance_analysis(own, link)
    assert_allclose(found.nominal[0], own(c), rtol=1e-9)
    longer, shorter = (
        kic.load("four-bar").vary("coupler.length").lock({"coupler.length": 0.29 + x}).at({"A": 1.2})
        for x in (1e-5, -1e-5)
    )
    slope = (own(longer) - own(shorter)) / 2e-5
    assert_allclose(found.sigma[0], abs(slope) * 1e-4 / 3, rtol=1e-5)


def test_a_function_sees_the_whole_path() -> None:
    turn = kic.load("four-bar").path({"A": np.linspace(0.0, 6.3, 64)})

    def stroke(c: kic.Configuration) -> np.ndarray:
        return np.asarray(np.ptp(c.value("D"), axis=-1))

    found = turn.tolerance_analysis(stroke, {"coupler.length": 1e-3, "crank.length": 1e-3})
    assert (found.rows, found.batch) == (("1",), ())
    x = found.monte_carlo(2000)
    assert abs(x.mean() - found.mean[0]) < ERRORS_MAX * x.std() / np.sqrt(2000)
    assert abs(x.std() / found.sigma[0] - 1) < ERRORS_MAX / np.sqrt(4000)
    assert found.worst_case[0, 0] < x.min()
    assert x.max() < found.worst_case[0, 1] * (1 + 1e-3)


def test_held_dimensions_rods_and_groups_are_sources() -> None:
    m = kic.load("four-bar").vary({"bars": {"crank.length": 1.0, "coupler.length": 1.0}})
    c = m.at({"A": 1.2})
    both = c.tolerance_analysis("tip.x", {"bars": 3e-4})
    u = c.coefficients("tip.x", order=1)
    assert_allclose(both.sigma, abs(u.G[0, u.columns.index("bars")]) * 1e-4, rtol=1e-6)
    rods = kic.load("five-rod-suspension")
    rod = next(one.name for one in rods.distances if one.fixed)
    of = rods.points[-1].name
    found = rods.at().tolerance_analysis(of, {rod: 3e-5})
    longer, shorter = (
        rods.vary(rod).at({"hub.3": 0.0, rod: rods.vary(rod).at().value(rod) + x}).value(of)
        for x in (1e-5, -1e-5)
    )
    assert found.sigma.max() > 1e-6
    assert_allclose(found.sigma, np.abs(longer - shorter) / 2, rtol=1e-6, atol=1e-9)  # curvature


def test_tolerances_too_large_are_told() -> None:
    c = kic.load("four-bar").at({"A": 3.0})
    found = c.tolerance_analysis("tip", {"coupler.length": 0.5})
    with raises(kic.ConfigurationError, key="tolerances"):
        _ = found.worst_case
    with raises(kic.ConfigurationError, key="tolerances"):
        found.monte_carlo(200)
    for of in ("tip", lambda c: np.nan_to_num(c.value("tip"))):
        found = c.tolerance_analysis(of, {"coupler.length": 0.08})
        some = np.isfinite(found.monte_carlo(300, failures="mask")).all(axis=-1)
        assert 250 < some.sum() < 300


def test_members_whose_worst_case_is_not_assembled_are_left_out() -> None:
    turn = kic.load("four-bar").path({"A": np.linspace(0.5, 1.0, 10)})
    found = turn.tolerance_analysis("A", {"crank.length": 1e-4}, wrt="D")
    lost = np.isnan(found.table()["A.low"]) | np.isnan(found.table()["A.high"])
    with raises(kic.ConfigurationError, key="tolerances", failed=[(k,) for k in np.flatnonzero(lost)]):
        _ = found.worst_case
    assert f"cannot be assembled in {lost.sum()} members" in str(found.summary())
    assert len(found.plot().axes) == 1


def test_pictures_have_a_panel_for_each_row() -> None:
    assert len(four_bar().tolerance_analysis("tip", LINKS).plot().axes) == 2
    turn = kic.load("four-bar").path({"A": np.linspace(0.0, 6.0, 9)})
    assert len(turn.tolerance_analysis(["tip.x", "D"], LINKS).plot().axes) == 2
    assert len(turn[:1].tolerance_analysis(["tip.x", "D"], LINKS).plot().axes) == 2
