"""Motor maps as tables, and as polynomials whose certified bounds hold and are tight."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from raising import raises

import kic
from kic.export import certified_polynomials, intervals

# one name of the model for each kind: box of the motors, rows
MAPS: dict[str, tuple[dict[str, tuple[float, float]], list[str]]] = {
    "four-bar": ({"A": (0.2, 1.2)}, ["B", "D", "tip.x"]),
    "five-bar": ({"E": (1.3, 1.9), "A": (0.9, 1.5)}, ["B", "D"]),
    "scotch-yoke": ({"shaft": (0.5, 1.2)}, ["yoke"]),
    "rssr": ({"crank": (0.2, 0.4), "spin": (-0.1, 0.1)}, ["rocker"]),
    "bennett": ({"A": (1.0, 1.4)}, ["B", "D"]),
}


def errors(m: kic.Mechanism, p: kic.results.PolynomialMap, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest errors of values (P,) and derivatives (P, M) at random configurations."""
    q = np.random.default_rng(5).uniform(*p.limits.T, (count, len(p.variables)))
    q = np.concatenate([q, p.limits.T])
    c = m.at(dict(zip(p.variables, q.T, strict=True)))
    known = c.coefficients(p.rows, wrt=p.variables, order=1)
    return np.abs(p(q) - known.values).max(axis=0), np.abs(p.J(q) - known.G).max(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("error_max", [1e-3, 1e-6])
@pytest.mark.parametrize("name", MAPS)
def test_bounds_hold_and_are_tight(name: str, error_max: float) -> None:
    """No sample is above the bound; the bound is within twice the largest sample, or a share of the goal."""
    m, (limits, rows) = kic.load(name), MAPS[name]
    p = m.export.actuation_map(rows, wrt=list(limits)).to_polynomial(limits=limits, error_max=error_max)
    assert p.variables == tuple(limits)
    assert p.error_bound.max() <= error_max
    value, slope = errors(m, p, 20_000)
    rounding = 1e-13 * np.maximum(1, np.abs(p.coefficients).reshape(len(rows), -1).sum(axis=1))
    assert (value <= p.error_bound + rounding).all()
    assert (slope <= p.J_error_bound + 100 * rounding[:, None]).all()
    assert (p.error_bound <= 2 * value + 0.01 * error_max + 1e-9).all()
    # one degree less is not enough
    if p.degree > 1:
        rough = m.export.actuation_map(rows, wrt=list(limits)).to_polynomial(
            limits=limits, degree=p.degree - 1
        )
        assert errors(m, rough, 20_000)[0].max() > error_max / 1.3


def test_four_bar_in_closed_form() -> None:
    """The polynomial is within its bound of Freudenstein's closed form, in 40 digits."""
    m = kic.load("four-bar")
    p = m.export.actuation_map("D", wrt="A").to_polynomial(limits={"A": (0.0, 6.2)}, error_max=1e-7)
    worst = mpmath.mpf(0)
    with mpmath.workdps(40):
        ground, crank, coupler, rocker = (mpmath.mpf(x) / 100 for x in (48, 10, 29, 35))
        for q in np.linspace(0, 6.2, 400):
            # from the pin of the crank to the fixed pin of the rocker
            x, y = ground - crank * mpmath.cos(mpmath.mpf(q)), -crank * mpmath.sin(mpmath.mpf(q))
            r = mpmath.sqrt(x * x + y * y)
            inner = mpmath.acos((r * r + rocker**2 - coupler**2) / (2 * r * rocker))
            known = mpmath.pi + mpmath.atan2(y, x) - inner
            worst = max(worst, abs(mpmath.mpf(float(p(q)[0])) - known))
    assert float(worst) <= p.error_bound[0] + 1e-13
    assert p.error_bound[0] <= 1.5 * float(worst)


@pytest.mark.slow
def test_wrong_coefficients_have_larger_bounds(monkeypatch) -> None:
    """The proof bounds the polynomial it is given: a change of a coefficient appears in the bound."""
    m = kic.load("five-bar")
    limits = {"A": (1.0, 1.4), "E": (1.4, 1.8)}
    box = certified_polynomials.box_of(m, None, limits)
    states, values, rows = certified_polynomials._sampled(m, None, ("B", "D"), box)
    assert rows == ("B", "D")
    values = values[:, :7, :7].copy()
    for change in (0.0, 3e-4):
        values[1, 2, 1] += change
        problem = certified_polynomials._Problem(m, None, ("B", "D"), box, states, values, np.full(2, True))
        bound, _ = problem.bounds(np.array([1e-4, 1e-4 + change]))
        assert bound[0] < 1e-5 + 1e-4
        # T₂ T₁ is ±1 somewhere on the box
        assert change <= bound[1] + 1e-4
        assert (bound[1] > 2e-4) == (change > 0)
    monkeypatch.setattr(certified_polynomials, "_CELLS_MAX", 4000)
    with raises(kic.InputError, key="limits"):
        problem.bounds(np.array([1e-4, 2e-4]))
    # cells without a proof that are not yet small are no singular configurations
    monkeypatch.setattr(certified_polynomials, "_CELLS_MAX", 1)
    wide = {"A": (0.7, 1.7), "E": (1.1, 2.1)}
    with raises(kic.InputError, key="limits"):
        m.export.actuation_map("B").to_polynomial(limits=wide, error_max=1e-4)


@pytest.mark.slow
def test_boxes_with_singular_configurations_raise() -> None:
    """A dead centre inside, just outside, or at the end of a box is an error that says where."""
    m, wrt = kic.load("four-bar"), "D"
    cosine = (0.48**2 + 0.35**2 - 0.39**2) / (2 * 0.48 * 0.35)
    dead = np.pi - np.arccos(cosine)  # crank and coupler are in line
    near = m.at({"A": 1.2})
    asked = m.export.actuation_map("A", wrt=wrt, near=near)
    with raises(kic.InputError, key="limits") as caught:
        asked.to_polynomial(limits={"D": (dead - 1e-3, dead + 0.2)}, error_max=1e-2)
    assert caught.value.values["D"] < dead
    # all nodes close, but the end of the box is singular
    with raises(kic.SingularError, key="limits") as caught:
        asked.to_polynomial(limits={"D": (dead, dead + 0.2)}, error_max=1e-2)
    assert dead <= caught.value.values["D"] < dead + 2e-3
    p = asked.to_polynomial(limits={"D": (dead + 1e-2, dead + 0.2)}, error_max=1e-2)
    q = np.linspace(*p.limits[0], 500)
    assert np.abs(p(q)[:, 0] - m.path({"D": q}, near=near).value("A")).max() <= p.error_bound[0]


@pytest.mark.slow
def test_pivots_that_vanish_within_the_box() -> None:
    """A full turn passes configurations where the first pivots vanish."""
    m = kic.load("four-bar")
    asked = m.export.actuation_map("A", wrt="D", near=m.at({"A": 1.2}))
    p = asked.to_polynomial(limits={"D": (2.2214, 2.5113)}, error_max=1e-3)
    assert p.error_bound[0] <= 1e-3


def test_linear_maps_of_two_motors() -> None:
    """Maps that are linear but for rounding have bounds near it."""
    m = kic.load("five-bar")
    p = m.export.actuation_map(["A", "E"]).to_polynomial(limits={"A": (1.0, 1.4), "E": (1.4, 1.8)}, degree=1)
    assert p.error_bound.max() <= 1e-8
    np.testing.assert_allclose(p.J([1.1, 1.5]), np.eye(2), atol=1e-12)


@pytest.mark.slow
def test_three_motors() -> None:
    m = kic.load("three-rrr")
    limits = {n: (float(m.at().value(n)) - 0.05, float(m.at().value(n)) + 0.05) for n in m.coordinates}
    p = m.export.actuation_map(["B1", "C3"]).to_polynomial(limits=limits, error_max=1e-4)
    value, slope = errors(m, p, 5000)
    assert (value <= p.error_bound).all()
    assert (slope <= p.J_error_bound).all()
    assert (p.error_bound <= 3 * value).all()


@pytest.mark.slow
def test_errors_of_angles_are_below_half_a_turn() -> None:
    """Errors beyond half a turn, which are known modulo full turns, have no bounds."""
    bar = kic.load("four-bar")
    m = kic.Mechanism(
        "geared",
        [*bar.bodies, kic.Body("wheel")],
        [*bar.joints, kic.Joint("W", "revolute", ("ground", "wheel"), at=(0, 0, 0), axis=(0, 0, 1))],
        couplings=[kic.Coupling("gear", ("D", "W"), ratios=(20, -1))],
        coordinates=["A"],
    )
    asked, limits = m.export.actuation_map("W"), {"A": (0.0, 6.2)}
    with raises(kic.InputError, key="degree"):  # the error is 6 rad
        asked.to_polynomial(limits=limits, degree=1)
    p = asked.to_polynomial(limits=limits, error_max=400)
    q = np.linspace(0, 6.2, 501)
    assert np.abs(p(q)[:, 0] - m.at({"A": q}).value("W")).max() <= p.error_bound[0] < np.pi


@pytest.mark.slow
def test_intervals_hold_exact_results() -> None:
    """Each operation on intervals holds that of their members, in exact or 40-digit arithmetic."""
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(2, 400)) * 10.0 ** rng.integers(-3, 2, 400) for _ in "ab")
    x = intervals.Interval(np.minimum(*a), np.maximum(*a))
    y = intervals.Interval(np.minimum(*b), np.maximum(*b))
    with np.errstate(invalid="ignore"):
        found = {
            "+": x + y, "-": x - y, "*": x * y, "/": x / y, "square": x * x, "neg": -x, "less": 2.0 - x,
            "cos": intervals.Functions.cos(x), "sin": intervals.Functions.sin(x),
            "sqrt": intervals.Functions.sqrt(x), "atan2": intervals.Functions.arctan2(x, y),
            "over": 1.0 / x, "abs": intervals.Functions.abs(x),
            "min": intervals.Functions.minimum(x, y), "max": intervals.Functions.maximum(x, 0.5),
        }  # fmt: skip
    exact: dict[str, Any] = {
        "+": lambda p, q: p + q, "-": lambda p, q: p - q, "*": lambda p, q: p * q, "/": lambda p, q: p / q,
        "square": lambda p, q: p * p, "neg": lambda p, q: -p, "less": lambda p, q: 2 - p,
        "abs": lambda p, q: abs(p), "min": min, "max": lambda p, q: max(p, Fraction(1, 2)),
        "over": lambda p, q: 1 / p, "cos": lambda p, q: mpmath.cos(p), "sin": lambda p, q: mpmath.sin(p),
        "sqrt": lambda p, q: mpmath.sqrt(p), "atan2": lambda p, q: mpmath.atan2(p, q),
    }  # fmt: skip
    counts = dict.fromkeys(found, 0)
    with mpmath.workdps(40):
        for k in range(400):
            for s, t in rng.uniform(size=(5, 2)):
                p, q = float(x.lo[k] + s * (x.hi[k] - x.lo[k])), float(y.lo[k] + t * (y.hi[k] - y.lo[k]))
                p, q = min(max(p, x.lo[k]), x.hi[k]), min(max(q, y.lo[k]), y.hi[k])
                for name, f in exact.items():
                    lo, hi = found[name].lo[k], found[name].hi[k]
                    if not np.isfinite([lo, hi]).all():
                        continue
                    rational = name in (
                        "+",
                        "-",
                        "*",
                        "/",
                        "square",
                        "neg",
                        "less",
                        "over",
                        "abs",
                        "min",
                        "max",
                    )
                    z = f(*(map(Fraction, (p, q)) if rational else map(mpmath.mpf, (p, q))))
                    low, high = (Fraction(lo), Fraction(hi)) if rational else (lo, hi)
                    turn = 2 * mpmath.pi if name == "atan2" else 0  # of angles that pass half a turn
                    assert low <= z <= high or low <= z + turn <= high or low <= z - turn <= high, (
                        name,
                        p,
                        q,
                    )
                    counts[name] += 1
    assert min(counts.values()) > 300, counts
    # widths are not larger than those of the functions
    assert found["sqrt"].hi[x.lo > 0] == pytest.approx(np.sqrt(x.hi[x.lo > 0]), rel=1e-14)
    wide = intervals.Functions.cos(intervals.Interval(np.array([0.1, 3.0, -7.0]), np.array([0.2, 3.2, 9.0])))
    np.testing.assert_allclose(wide.lo, [np.cos(0.2), -1, -1], atol=1e-14)
    np.testing.assert_allclose(wide.hi, [np.cos(0.1), np.cos(3.0), 1], atol=1e-14)


def test_rounding_of_polynomials_is_bounded() -> None:
    """Derivatives in double precision are within their bounds of those in extended precision."""
    rng, chebyshev = np.random.default_rng(4), np.polynomial.chebyshev
    c = rng.normal(size=(3, 30, 30)) / 1.3 ** np.add.outer(np.arange(30), np.arange(30))
    t = np.concatenate([rng.uniform(-1, 1, (200, 2)), [[1, 1], [1, -1], [-1, 1 - 2**-20]]])
    polynomials = certified_polynomials._Polynomials(c)
    for order in range(4):
        found, rounding = polynomials.at(t, order)
        assert (np.abs(found) <= polynomials.bound(order)).all()
        for place in np.ndindex(*[2] * order):
            for k in range(3):
                exact = c[k].astype(np.longdouble)
                for axis in place:
                    exact = chebyshev.chebder(exact, axis=axis)
                known = chebyshev.chebval2d(*t.T.astype(np.longdouble), exact)
                error = np.abs(found[(slice(None), k, *place)] - known).max()
                assert error <= rounding[(k, *place)]


def test_polynomials_as_data(tmp_path) -> None:
    """Powers and the saved file give the same values; arguments outside the box raise."""
    m = kic.load("four-bar")
    p = m.export.actuation_map(["B", "D"]).to_polynomial(limits={"A": (0.2, 1.2)}, error_max=1e-5)
    q = np.linspace(0.2, 1.2, 50)
    for k, row in enumerate(p.rows):
        powers, bound = p.powers(row, about=0.9)
        np.testing.assert_allclose(np.polyval(powers[::-1], q - 0.9), p(q)[:, k], atol=1e-13)
        assert p.error_bound[k] < bound < p.error_bound[k] + 1e-12
    h = 1e-6
    np.testing.assert_allclose((p(q[1:-1] + h) - p(q[1:-1] - h)) / (2 * h), p.J(q[1:-1])[..., 0], atol=1e-8)
    p.save(tmp_path / "map.json")
    saved = json.loads((tmp_path / "map.json").read_text())
    (a, b), c = saved["limits"][0], np.array(saved["coefficients"])
    t = (2 * q - a - b) / (b - a)
    np.testing.assert_allclose(np.polynomial.chebyshev.chebval(t, c.T).T, p(q), rtol=1e-14)
    assert saved["error_bound"] == p.error_bound.tolist()
    assert saved["units"] == ["rad", "rad", "rad"]
    with raises(kic.InputError, key="path"):
        p.save(tmp_path / "map.txt")
    with raises(kic.FileError):
        p.save(tmp_path / "none" / "map.json")


def test_tables(tmp_path) -> None:
    """Cells of a table, in memory and in both files, equal configurations."""
    m, limits = kic.load("five-bar"), {"A": (1.0, 1.4), "E": (1.3, 1.7)}
    t = m.export.actuation_map(["B", "D"]).to_table(limits=limits, points=4)
    c = m.at({"A": t.axes[0][1], "E": t.axes[1][3]})
    known = c.coefficients(["B", "D"], order=1)
    np.testing.assert_allclose(t.value[1, 3], known.values, rtol=1e-12)
    np.testing.assert_allclose(t.J[1, 3], known.G, rtol=1e-11)
    np.testing.assert_allclose(t.inertia[1, 3], c.dynamics().I, rtol=1e-11)
    t.save(tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as saved:
        assert saved["rows"].tolist() == ["B", "D"]
        np.testing.assert_array_equal(saved["J"], t.J)
        np.testing.assert_array_equal(saved["axis_2"], t.axes[1])
    t.save(tmp_path / "map.csv")
    head, *lines = (tmp_path / "map.csv").read_text().splitlines()
    assert head.startswith('A (rad),E (rad),value[B] (rad),value[D] (rad),"J[B, A] (rad/rad)"')
    assert '"inertia[A, E] (lbf in s²/rad)"' in head
    assert len(lines) == 16
    numbers = np.array([line.split(",") for line in lines], float).reshape(4, 4, -1)
    np.testing.assert_array_equal(numbers[..., 2:4], t.value)
    np.testing.assert_array_equal(numbers[..., 4:8].reshape(4, 4, 2, 2), t.J)
    for wrong in ("map.txt", 3):
        with raises(kic.InputError, key="path"):
            t.save(wrong)
    massless = m.replace("coupler", mass=None)
    free = massless.export.actuation_map("B", inertia=False).to_table(limits=limits, points=2)
    assert free.inertia is None


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("error_max", {}),
        ("error_max", {"error_max": 1e-3, "degree": 2}),
        ("error_max", {"error_max": -1.0}),
        ("error_max", {"error_max": 1e-15}),
        ("degree", {"degree": 0}),
        ("degree", {"degree": 1.5}),
        ("limits", {"error_max": 1e-3, "limits": {}}),
        ("limits", {"error_max": 1e-3, "limits": {"A": (1.0, 0.5)}}),
        ("limits", {"error_max": 1e-3, "limits": {"A": (-np.inf, 0.5)}}),
        ("of", {"error_max": 1e-3, "of": "coupler"}),
        ("of", {"error_max": 1e-3, "of": []}),
        ("close", {"error_max": 1e-3, "close": True}),
        ("near", {"error_max": 1e-3, "near": kic.load("four-bar").at([[0.5], [0.6]])}),
        ("parameters", {"error_max": 1e-3, "parameters": ["C.at.x"]}),
        ("outputs", {"error_max": 1e-3, "outputs": "J"}),
    ],
)
def test_invalid_arguments(key: str, options: dict[str, Any]) -> None:
    m, given = kic.load("four-bar"), {"of": "B", "limits": {"A": (0.2, 1.2)}, **options}
    own = {name: given.pop(name) for name in ("limits", "degree", "error_max") if name in given}
    with raises(kic.InputError, key=key):
        m.export.actuation_map(**given).to_polynomial(**own)


def test_angle_of_more_than_half_a_turn() -> None:
    m = kic.load("four-bar")
    # an angle that reads more than half a turn
    turned = replace(m, joints=[replace(j, value=j.value[0] + 7) if j.name == "D" else j for j in m.joints])
    p = turned.export.actuation_map("D").to_polynomial(limits={"A": (0.2, 1.2)}, degree=4)
    assert errors(turned, p, 100)[0][0] <= p.error_bound[0]
