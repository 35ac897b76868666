"""Trajectories: ends, derivatives, continuity, limits, and minimum times by another method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from sampling import mismatch
from scipy.optimize import linprog

import kic
from kic import trajectory as tr

STEP = 1e-30
RNG = np.random.default_rng(5)
START, END = RNG.normal(size=3), RNG.normal(size=3)
SIX = RNG.normal(size=(6, 3))
NAMES = [f"{end}_{what}" for what in ("rate", "acceleration", "jerk") for end in ("start", "end")]
AT_ENDS = dict(zip(NAMES, SIX, strict=True))
SLOW_ENDS = dict(list(AT_ENDS.items())[:4])
POINTS = RNG.normal(size=(7, 2))
TIMES = np.array([0.0, 0.4, 1.0, 1.3, 2.1, 2.2, 3.0])


def trapezoid(start: Any, end: Any, rate: Any, acceleration: Any, **options: Any) -> tr.Trajectory:
    return tr.trapezoid(start, end, rate_limits=rate, acceleration_limits=acceleration, **options)


def s_curve(
    start: Any, end: Any, velocity: Any, acceleration: Any, jerk: Any, **options: Any
) -> tr.Trajectory:
    limits = {"rate_limits": velocity, "acceleration_limits": acceleration, "jerk_limits": jerk}
    return tr.s_curve(start, end, **limits, **options)


SAMPLES = {
    "line": tr.line(START, END, 2.0),
    "quintic": tr.quintic(START, END, 1.7, **SLOW_ENDS),
    "septic": tr.septic(START, END, 0.6, **AT_ENDS),
    "trapezoid": trapezoid(START, END, [1.0, 2.0, 0.5], 1.5),
    "trapezoid, each": trapezoid(START, END, [1.0, 2.0, 0.5], 1.5, together="ends"),
    "s-curve": s_curve(START, END, 0.7, 1.5, 4.0),
    "s-curve, each": s_curve(START, END, 0.7, 1.5, 4.0, together="ends"),
    "cubic spline": tr.spline(POINTS, TIMES, degree=3),
    "spline": tr.spline(POINTS, TIMES),
    "septic spline, free": tr.spline(np.tile(POINTS, (2, 1)), duration=3.0, degree=7, ends="free"),
    "with stops": tr.spline(POINTS, TIMES, stops=[2, -3]),
    "back": tr.spline(POINTS, TIMES).reversed(),
    "slower": tr.septic(START, END, 0.6, **AT_ENDS).scaled(3.0),
    "one after the other": tr.concatenate([tr.quintic(START, END, 1.0), trapezoid(END, START, 1.0, 2.0)]),
    "timed": tr.fastest(
        tr.spline(POINTS, ends="free"), rate_limits=2.0, acceleration_limits=3.0, grid=21
    ).trajectory,
}
every_sample = pytest.mark.parametrize("name", SAMPLES)


@every_sample
def test_one_time(name: str) -> None:
    """The form for control loops has the values of the others, also at knots."""
    t = SAMPLES[name]
    times = np.append(np.random.default_rng(1).uniform(0, t.duration, size=20), t.knots)
    many = np.stack(t(times), axis=1)
    for time, motion in zip(times.tolist(), many, strict=True):
        for one, other in zip(t.pieces.at(time), motion, strict=True):
            assert np.abs(one - other).max() < 1e-11 * max(1.0, np.abs(many).max())


@every_sample
def test_derivatives_match_complex_steps(name: str) -> None:
    t = SAMPLES[name]
    times = np.random.default_rng(0).uniform(0, t.duration, size=(3, 20))
    plain, stepped = t(times), t(times + 1j * STEP)
    # the powers of a septic cancel to some 450 eps of its size
    for order in range(3):
        assert mismatch(stepped[order].imag / STEP, plain[order + 1]) < 1e-11
        assert mismatch(stepped[order].real, plain[order]) < 1e-11


@every_sample
@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_batches(name: str, batch: tuple[int, ...]) -> None:
    t = SAMPLES[name]
    times = np.linspace(0, t.duration, max(int(np.prod(batch)), 1))[: int(np.prod(batch))].reshape(batch)
    motion = t(times)
    for part in motion:
        assert part.shape == (*batch, t.size)
    for index in np.ndindex(batch):
        assert all(np.array_equal(a[index], b) for a, b in zip(motion, t(times[index]), strict=True))


@every_sample
def test_extremes_match_dense_samples(name: str) -> None:
    t = SAMPLES[name]
    inside = np.linspace(0, 1, 400)[:, None] * (1 - 2e-6) + 1e-6
    times = (t.knots[:-1] + inside * np.diff(t.knots)).reshape(-1)
    for order, part in enumerate(t(times)):
        lower, upper = t.extremes(order)
        size = np.abs(part).max() + 1e-300
        assert (part >= lower - 1e-9 * size).all()
        assert (part <= upper + 1e-9 * size).all()
        assert np.abs(part.max(axis=0) - upper).max() < 1e-3 * size
        assert np.abs(part.min(axis=0) - lower).max() < 1e-3 * size


@every_sample
def test_positions_and_rates_are_continuous(name: str) -> None:
    t = SAMPLES[name]
    for order in (0, 1):
        size = max(np.abs(x).max() for x in t.extremes(order))
        assert np.abs(t.jumps(order)).max(initial=0.0) < 1e-11 * size


@every_sample
def test_reversed_and_scaled(name: str) -> None:
    t = SAMPLES[name]
    times = np.random.default_rng(1).uniform(0, t.duration, 30)
    there, back, slow = t(times), t.reversed()(t.duration - times), t.lasting(3 * t.duration)(3 * times)
    for order in range(4):
        assert mismatch((-1) ** order * back[order], there[order]) < 1e-9
        assert mismatch(3**order * slow[order], there[order]) < 1e-10


def test_polynomials_meet_end_conditions() -> None:
    for t, T in (
        (tr.quintic(START, END, 1.7, **SLOW_ENDS), 1.7),
        (tr.septic(START, END, 0.6, **AT_ENDS), 0.6),
    ):
        at = t([0.0, T])
        assert mismatch(at.q, np.stack([START, END])) < 1e-12
        assert mismatch(at.qd, SIX[:2]) < 1e-11
        # larger terms cancel with each order
        assert mismatch(at.qdd, SIX[2:4]) < 1e-10
    assert np.abs(at.qddd - SIX[4:]).max() < 1e-12 * np.abs(t.extremes(3)).max()


def test_quintic_matches_the_textbook_polynomial() -> None:
    u = np.linspace(0, 1, 11)
    t = tr.quintic([1.0], [3.0], 2.0)
    assert mismatch(t(2 * u).q[:, 0], 1 + 2 * (10 * u**3 - 15 * u**4 + 6 * u**5)) < 1e-13
    t = tr.septic([0.0], [1.0], 1.0)
    assert mismatch(t(u).q[:, 0], 35 * u**4 - 84 * u**5 + 70 * u**6 - 20 * u**7) < 1e-13


def test_hermite() -> None:
    d = RNG.normal(size=(4, 7, 2))
    for n in (2, 3, 4):
        names = ("rates", "accelerations", "jerks")
        t = tr.hermite(d[0], TIMES, **dict(zip(names, d[1:n], strict=False)))
        for order in range(n):
            assert mismatch(t(TIMES)[order], d[order]) < 1e-10
            assert np.abs(t.jumps(order)).max() < 1e-10 * np.abs(t.extremes(order)).max()


@pytest.mark.parametrize("degree", [3, 5, 7])
@pytest.mark.parametrize("ends", ["rest", "free"])
def test_splines(degree: int, ends: str) -> None:
    points = np.random.default_rng(2).normal(size=(9, 2))
    times = np.append(TIMES, [3.3, 4.0])
    t = tr.spline(points, times, degree=degree, ends=ends)  # type: ignore[arg-type]
    assert mismatch(t(times).q, points) < 1e-12
    for order in range(min(degree, 4)):
        assert np.abs(t.jumps(order)).max() < 1e-11 * np.abs(t.extremes(order)).max()
    if ends == "rest":
        for order in range(1, (degree + 1) // 2):
            assert np.abs(t([0.0, 4.0])[order]).max() < 1e-10 * np.abs(t.extremes(order)).max()
    # free ends reproduce every polynomial of the degree
    if ends == "free":
        p = np.polynomial.Polynomial(np.random.default_rng(3).normal(size=degree + 1))
        again = tr.spline(p(times)[:, None], times, degree=degree, ends="free")  # type: ignore[arg-type]
        u = np.linspace(0, 4, 50)
        assert mismatch(again(u).q[:, 0], p(u)) < 1e-11
        assert mismatch(again(u).qdd[:, 0], p.deriv(2)(u)) < 1e-9


def test_stops() -> None:
    t = tr.spline(POINTS, TIMES, stops=True)
    assert mismatch(t(TIMES).q, POINTS) < 1e-12
    assert np.abs(t(TIMES).qd).max() < 1e-11
    some = tr.spline(POINTS, TIMES, stops=iter([0, 3, -1]))
    assert (
        mismatch(
            tr.spline(POINTS, TIMES, stops=[]).pieces.coefficients,
            tr.spline(POINTS, TIMES).pieces.coefficients,
        )
        == 0
    )
    assert (np.abs(some(TIMES).qd).max(axis=1) < 1e-11).tolist() == [k in (0, 3, 6) for k in range(7)]
    free = tr.spline(np.tile(POINTS, (2, 1)), np.append(TIMES, TIMES + 4), ends="free", stops=[6])
    assert (np.abs(free(free.knots).qd).max(axis=1) < 1e-11).sum() == 1


def test_centripetal_times() -> None:
    """Independent of the units of a coordinate; in proportion to the square roots of the distances."""
    one, two = tr.spline(POINTS), tr.spline(POINTS * [1.0, 1000.0])
    assert mismatch(one.knots, two.knots) < 1e-12
    t = tr.spline([[0.0], [1.0], [5.0]], duration=6.0)
    assert t.knots.tolist() == [0.0, 2.0, 6.0]


# distance, velocity, acceleration: long, just reached, short, backwards
@pytest.mark.parametrize("d", [3.0, 0.5, 0.1, -2.0])
def test_trapezoid_is_time_optimal(d: float) -> None:
    v, a = 1.0, 2.0
    t = trapezoid([1.0], [1.0 + d], v, a)
    least = abs(d) / v + v / a if abs(d) >= v * v / a else 2 * np.sqrt(abs(d) / a)
    assert abs(t.duration - least) < 1e-14 * least
    assert mismatch(t([0.0, t.duration]).q[:, 0], np.array([1.0, 1.0 + d])) < 1e-14
    assert np.abs(t([0.0, t.duration]).qd).max() < 1e-14
    assert abs(max(np.abs(t.extremes(1))) - min(v, np.sqrt(abs(d) * a))) < 1e-14
    assert mismatch(np.abs(t.extremes(2)), np.array([[a], [a]])) < 1e-14


# regimes: all seven phases; no cruise; acceleration not reached, with cruise and without
REGIMES = {
    "all": (4.0, 1.0, 2.0, 5.0, 7),
    "no cruise": (1.0, 5.0, 2.0, 8.0, 6),
    "no even acceleration": (3.0, 0.5, 2.0, 3.0, 5),
    "jerk alone": (0.2, 5.0, 5.0, 3.0, 4),
    "backwards": (-4.0, 1.0, 2.0, 5.0, 7),
    "velocity just reached": (4.0, 2.0, 2.0, 2.0, 4),
}


@pytest.mark.parametrize("name", REGIMES)
def test_s_curve_respects_and_reaches_its_limits(name: str) -> None:
    d, v, a, j, phases = REGIMES[name]
    t = s_curve([0.0], [d], v, a, j)
    assert len(t.knots) - 1 == phases
    assert abs(t(t.duration).q[0] - d) < 1e-13
    assert max(abs(t(t.duration).qd[0]), abs(t(t.duration).qdd[0])) < 1e-12
    reach = [np.abs(t.extremes(k)).max() for k in (1, 2, 3)]
    assert (np.array(reach) <= np.array([v, a, j]) * (1 + 1e-12)).all()
    assert abs(reach[2] - j) < 1e-12 * j
    assert (abs(reach[1] - a) < 1e-12) == (phases >= 6 or name == "velocity just reached")
    assert (abs(reach[0] - v) < 1e-12) == (phases % 2 == 1 or name == "velocity just reached")
    for order in range(3):
        assert np.abs(t.jumps(order)).max() < 1e-12


@pytest.mark.parametrize("name", REGIMES)
def test_s_curve_is_time_optimal(name: str) -> None:
    """The largest distance in the same time, by a linear program over steps of constant jerk."""
    d, v, a, j, _ = REGIMES[name]
    n, T = 300, s_curve([0.0], [d], v, a, j).duration
    h = T / n
    k = np.arange(1, n + 1)[:, None] - np.arange(n)  # steps done since
    on = (k > 0).astype(float)
    A, V = on * h, on * h * h * (k - 0.5)
    X = on * h**3 * (3 * k * k - 3 * k + 1) / 6
    limits = np.concatenate([np.full(2 * n, a), np.full(2 * n, v)])
    found = linprog(
        -X[-1],
        A_ub=np.concatenate([A, -A, V, -V]),
        b_ub=limits,
        A_eq=np.stack([A[-1], V[-1]]),
        b_eq=np.zeros(2),
        bounds=(-j, j),
    )
    assert abs(-found.fun - abs(d)) < 2e-3 * abs(d)


@pytest.mark.parametrize("size", [1e-150, 1e-8, 1.0, 1e8, 1e150])
def test_profiles_in_any_units(size: float) -> None:
    """The same motion in other units of length and time."""
    for limits in ((1.0, 2.0, 5.0), (5.0, 2.0, 8.0), (0.5, 2.0, 3.0), (5.0, 5.0, 3.0)):
        for make, given in ((trapezoid, limits[:2]), (s_curve, limits)):
            one = make([0.0], [1.0], *given)
            other = make([0.0], [size], *(size * x for x in given))
            assert other.duration == pytest.approx(one.duration, rel=1e-14)
            u = np.linspace(0, one.duration * (1 - 1e-12), 40)
            for k in range(3):
                assert mismatch(other(u)[k] / size, one(u)[k]) < 1e-11
            if len(given) == 3 and size == 1e8:
                quick = make([0.0], [1.0], *(x * size ** (k + 1) for k, x in enumerate(given)))
                assert quick.duration * size == pytest.approx(one.duration, rel=1e-14)


@pytest.mark.parametrize("jerk", [1e3, 1e5, 1e7])
def test_s_curve_with_high_jerk_approaches_the_trapezoid(jerk: float) -> None:
    """Later by a / j; short phases in rounded times still end at rest at the target."""
    t = s_curve([5.0], [7.0], 1.0, 1.0, jerk)
    assert t.duration - trapezoid([5.0], [7.0], 1.0, 1.0).duration == pytest.approx(1 / jerk, rel=1e-7)
    assert np.abs(t(t.duration).q - 7.0).max() < 1e-14
    assert max(np.abs(t.jumps(k)).max() for k in (0, 1, 2)) < 1e-14
    assert np.abs(t.pieces.end_derivatives(1)[1][-1]).max() < 1e-14
    assert np.abs(np.abs(t.extremes(3)) - jerk).max() < 1e-7 * jerk


def test_zero_displacement_has_zero_duration() -> None:
    for t in (trapezoid(START, START, 1.0, 1.0), s_curve(START, START, 1.0, 1.0, 1.0)):
        assert t.duration == 0
        assert np.array_equal(t(0.0).q, START)
        assert not any(np.abs(x).max() for x in t(0.0)[1:])
        assert "duration 0" in t.summary().text()
        both = tr.concatenate([t, tr.quintic(START, END, 1.0), t.reversed()][:2])
        assert mismatch(both(1.0).q, END) < 1e-14


def test_coordinated_profiles() -> None:
    """In proportion on a line; or each for itself, never later, with a common end."""
    limits = {"velocity": [1.0, 5.0, 5.0], "acceleration": [9.0, 1.0, 9.0], "jerk": [90.0, 5.0, 90.0]}
    way = np.array([3.0, -1.0, 0.5])
    end = START + way
    line, each = (s_curve(START, end, **limits, together=x) for x in ("line", "ends"))
    share = (line(np.linspace(0, line.duration, 50)).q - START) / way
    assert mismatch(share, share[:, :1] * np.ones(3)) < 1e-12
    alone = [
        s_curve(START[k : k + 1], end[k : k + 1], *(x[k] for x in limits.values())).duration for k in range(3)
    ]
    assert each.duration == pytest.approx(max(alone), rel=1e-13)
    assert each.duration < line.duration
    for t in (line, each):
        for order, limit in enumerate(limits.values(), start=1):
            assert (np.abs(t.extremes(order)) <= np.array(limit) * (1 + 1e-12)).all()
        assert mismatch(t(t.duration).q, end) < 1e-12


@pytest.mark.slow
def test_profiles_with_any_limits() -> None:
    """Distances and limits of many sizes: ends at rest, limits respected, continuous, "ends" never later."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        start, way = rng.normal(size=3), rng.normal(size=3) * 10.0 ** rng.uniform(-5, 2, 3)
        limits = 10.0 ** rng.uniform(-1.5, 1.5, (3, 3))
        for make, given in ((trapezoid, limits[:2]), (s_curve, limits)):
            line, each = (make(start, start + way, *given, together=x) for x in ("line", "ends"))
            assert each.duration <= line.duration * (1 + 1e-12)
            for t in (line, each):
                assert mismatch(t(t.duration).q, start + way) < 1e-12
                for order, limit in enumerate(given, start=1):
                    reach = np.abs(t.extremes(order)).max(axis=0)
                    assert (reach <= limit * (1 + 1e-8)).all()
                    if order < len(given):
                        last = t.pieces.end_derivatives(order)[1][-1]
                        assert (np.abs([*t.jumps(order), last]) <= 1e-8 * reach).all()


def test_limits_one_sided_and_by_name() -> None:
    up = trapezoid({"A": 0.0, "B": 1.0}, {"A": 3.0, "B": 1.0}, {"A": (-0.1, 1.0)}, {"A": (-2.0, 4.0)})
    assert up.duration == pytest.approx(
        3.0 + 1.0 / 2.0, rel=1e-14
    )  # the acceleration is held by the weaker side
    down = trapezoid([3.0], [0.0], [[-0.5], [1.0]], 2.0)
    assert np.abs(down.extremes(1)[0] + 0.5).max() < 1e-14


def test_names_are_passed_to_the_mechanism() -> None:
    m = kic.load("delta")
    c = m.at()
    point = next(p.name for p in m.points if np.ptp(c.coefficients(p.name, order=1).G))
    at, way = c.value(point), np.array([0.02, 0.03, -0.01])
    t = tr.quintic({point: at}, {point: at + way}, 0.5)
    assert t.names == (point,)
    assert t.size == 3
    course = t.on(m, 9)
    assert mismatch(course.configuration.value(point), course.motion.q) < 1e-10
    assert mismatch(course.of(point).qddd, course.motion.qddd) < 1e-9
    single = tr.quintic(
        {f"{point}.{x}": v for x, v in zip("xyz", at, strict=True)},
        {f"{point}.{x}": v for x, v in zip("xyz", at + way, strict=True)},
        0.5,
    )
    assert mismatch(single.on(m, 9).effort(), course.effort()) < 1e-9


@pytest.mark.parametrize("name", ["horn-two-link", "five-bar", "gough-stewart"])
def test_motion_of_a_mechanism_along_a_trajectory(name: str) -> None:
    """Joints match finite differences of closed configurations; power does not depend on the actuators."""
    m = kic.load(name)
    here = m.at([0.4, 0.8] if name == "horn-two-link" else None)
    q = np.array([here.value(x) for x in here.coordinates])
    t = tr.septic(q, q + 0.1 * np.arange(1, len(q) + 1) / len(q), 0.7)
    course = t.on(m, 7, near=here)
    rows = ["tip.x", "tip.y"] if name != "gough-stewart" else ["platform.x", "platform.y", "platform.z"]
    seen, h = course.of(rows), 1e-3
    wide = t.on(
        m, np.sort(np.concatenate([course.t[1:-1] - h, course.t[1:-1], course.t[1:-1] + h])), near=here
    )
    value = wide.of(rows).q.reshape(-1, 3, len(rows))
    assert mismatch((value[:, 2] - value[:, 0]) / (2 * h), seen.qd[1:-1]) < 1e-4
    rate = wide.of(rows).qd.reshape(-1, 3, len(rows))
    assert mismatch((rate[:, 2] - rate[:, 0]) / (2 * h), seen.qdd[1:-1]) < 1e-3
    if name != "gough-stewart":
        there = course.effort(actuators=rows)
        assert (
            mismatch((there * seen.qd).sum(axis=-1), (course.effort() * course.motion.qd).sum(axis=-1)) < 1e-9
        )
    assert "motion of" in repr(course)


def test_trajectories_are_immutable() -> None:
    times = TIMES.copy()
    t = tr.spline(POINTS, times)
    times[1] = 0.5  # the user's own array is left alone
    assert t.knots[1] == TIMES[1]
    with pytest.raises(ValueError, match="read-only"):
        t.pieces.coefficients[0] = 0.0


def test_holding_beyond_the_ends() -> None:
    t = SAMPLES["quintic"]
    motion = t([-1.0, t.duration + 1.0], beyond="hold")
    assert mismatch(motion.q, np.stack([START, END])) < 1e-12
    assert not any(x.any() for x in motion[1:])
    # an end that rounding has moved is the end
    assert mismatch(t(t.duration * (1 + 1e-12)).qd, SIX[1]) < 1e-9


def test_functions_by_name() -> None:
    t = tr.quintic({"A": 0.0, "p": [1.0, 2.0]}, {"A": 1.0, "p": [0.0, 3.0]}, 2.0)
    course = t.sampled()
    assert list(course) == ["A", "p"]
    times = np.array([0.3, 1.0])
    for order in range(4):
        assert np.array_equal(course["A"](times)[order], t(times)[order][:, 0])
        assert np.array_equal(course["p"](0.3)[order], t(0.3)[order][1:])
    # at rest at both ends, it stays there
    assert t.rests
    assert course["A"](5.0).q == 1.0
    assert not any(x.any() for x in course["p"](-1.0)[1:])
    line = tr.line([0.0, 1.0], [1.0, 1.0])
    assert not line.rests
    assert list(line.sampled(["A", "E"])) == ["A", "E"]
    assert trapezoid(START, START, 1.0, 1.0).rests


ONE = tr.quintic([0.0], [1.0], 1.0)
ERRORS = [
    ({"key": "t"}, lambda: ONE(1.5)),
    ({"key": "beyond", "got": "stop"}, lambda: ONE(0.5, beyond="stop")),  # type: ignore[arg-type]
    ({"key": "t"}, lambda: ONE(np.nan)),
    ({"key": "duration", "got": 0}, lambda: tr.quintic([0.0], [1.0], 0)),
    ({"key": "factor"}, lambda: ONE.scaled(-1.0)),
    ({"key": "duration"}, lambda: trapezoid([0.0], [0.0], 1.0, 1.0).lasting(1.0)),
    ({"key": "end"}, lambda: tr.quintic([0.0, 1.0], [1.0], 1.0)),
    ({"key": "start"}, lambda: tr.quintic(0.0, 1.0, 1.0)),
    ({"key": "points"}, lambda: tr.spline([0.0, 1.0])),
    ({"key": "end"}, lambda: tr.quintic({"A": 0.0}, [1.0], 1.0)),
    ({"key": "end"}, lambda: tr.quintic({"A": 0.0}, {"B": 1.0}, 1.0)),
    ({"key": "end"}, lambda: tr.quintic([0.0], {"B": 1.0}, 1.0)),
    ({"key": "start"}, lambda: tr.quintic({}, {}, 1.0)),
    ({"key": "start['A']"}, lambda: tr.quintic({"A": [[0.0]]}, {"A": 0.0}, 1.0)),
    ({"key": "points['A']"}, lambda: tr.spline({"A": 0.0})),
    ({"key": "points", "got": 1}, lambda: tr.spline([[0.0]])),
    ({"key": "times"}, lambda: tr.spline([[0.0], [1.0]], [0.0, 1.0, 2.0])),
    ({"key": "times"}, lambda: tr.spline([[0.0], [1.0], [2.0]], [0.0, 1.0, 1.0])),
    ({"key": "times"}, lambda: tr.spline([[0.0], [1.0]], [1.0, 2.0])),
    ({"key": "points", "point": 1}, lambda: tr.spline([[0.0], [1.0], [1.0]])),
    ({"key": "degree", "got": 4}, lambda: tr.spline([[0.0], [1.0]], degree=4)),  # type: ignore[arg-type]
    ({"key": "ends", "got": "loose"}, lambda: tr.spline([[0.0], [1.0]], ends="loose")),  # type: ignore[arg-type]
    ({"key": "points", "got": 2}, lambda: tr.spline([[0.0], [1.0]], ends="free")),
    ({"key": "stops", "got": [2]}, lambda: tr.spline([[0.0], [1.0]], stops=[2])),
    ({"key": "accelerations"}, lambda: tr.hermite(POINTS, TIMES, POINTS, jerks=POINTS)),
    ({"key": "stops", "got": [True, False, True]}, lambda: tr.spline(POINTS[:3], stops=[True, False, True])),
    ({"key": "stops", "got": 1}, lambda: tr.spline([[0.0], [1.0], [2.0]], stops=1)),  # type: ignore[arg-type]
    ({"key": "rates"}, lambda: tr.hermite(POINTS, TIMES, None, accelerations=POINTS)),
    ({"key": "duration"}, lambda: tr.quintic([0.0], [1.0], 1e-300)),
    ({"key": "duration"}, lambda: ONE.scaled(1e-50).scaled(1e-50)),
    ({"key": "limits"}, lambda: trapezoid([0.0], [1.0], 1.0, 1e17)),
    ({"key": "limits"}, lambda: s_curve([0.0], [1.0], 1.0, 1.0, 1e17)),
    ({"key": "limits"}, lambda: trapezoid([0.0], [1e300], 1.0, 1.0)),
    ({"key": "acceleration_limits"}, lambda: trapezoid([0.0], [1e-310], 1.0, 1.0)),
    ({"key": "order", "got": True}, lambda: ONE.extremes(True)),
    ({"key": "order", "got": -1}, lambda: ONE.jumps(-1)),
    ({"key": "parts"}, lambda: tr.concatenate(ONE)),  # type: ignore[arg-type]
    ({"key": "mechanism", "got": 3}, lambda: ONE.on(3)),  # type: ignore[arg-type]
    ({"key": "together", "got": "no"}, lambda: trapezoid([0.0], [1.0], 1.0, 1.0, together="no")),  # type: ignore[arg-type]
    ({"key": "rate_limits"}, lambda: trapezoid([0.0], [1.0], -1.0, 1.0)),
    ({"key": "rate_limits"}, lambda: trapezoid([0.0], [1.0], [1.0, 2.0, 3.0], 1.0)),
    ({"key": "acceleration_limits"}, lambda: trapezoid([0.0], [1.0], 1.0, np.inf)),
    ({"name": "B"}, lambda: trapezoid({"A": 0}, {"A": 1}, {"B": 1}, 1)),
    ({"key": "parts", "got": []}, lambda: tr.concatenate([])),
    ({"key": "parts", "got": ("A",), "part": 0}, lambda: tr.concatenate(
        [ONE, tr.line({"A": 1.0}, {"A": 0.0})])),
    ({"key": "duration"}, lambda: tr.concatenate(
        [tr.line([0.0], [0.0], 1e9), tr.quintic([0.0], [1.0], 1e-6)])),
    ({"key": "acceleration_limits"}, lambda: trapezoid([0.0], [1.0], 1.0, [[0.0], [1.0]])),
    ({"key": "parts", "name": "coordinate 1", "part": 0}, lambda: tr.concatenate([ONE, ONE])),
    ({"key": "parts", "name": "coordinate 1", "part": 0}, lambda: tr.concatenate(
        [ONE, tr.line([1.0], [2.0])])),
    ({"key": "order", "got": 4}, lambda: ONE.extremes(4)),
    ({"key": "t", "got": 1}, lambda: ONE.on(kic.load("four-bar"), 1)),
    ({"key": "t"}, lambda: ONE.on(kic.load("four-bar"), [[0.0]])),
]  # fmt: skip


@pytest.mark.parametrize(("data", "call"), ERRORS)
def test_invalid_arguments_raise(data: dict, call) -> None:
    with raises((kic.InputError, kic.UnknownNameError), **data):
        call()
