"""Sensitivities to every number of every linkage against central differences."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import kic
from kic import linkages
from kic.numerics.arrays import stepping

FUNCTIONS = {name: getattr(linkages, name) for name in linkages.__all__}
GENERATORS = {n: f for n, f in FUNCTIONS.items() if inspect.signature(f).return_annotation == "Mechanism"}
FOUR = {"ground": 4.0, "crank": 1.0, "coupler": 3.5, "rocker": 3.1}
SIX = FOUR | {"rod": 4.0, "follower": 2.5, "pivot": (6.0, -0.5), "tip": (1.5, -1.0)}
DELTA = {"base_radius": 0.2, "platform_radius": 0.05, "arm": 0.26, "forearm": 0.65}
STEWART = {"base_radius": 0.8, "platform_radius": 0.5, "base_angle": 0.3, "platform_angle": 0.4}
LEGS = {"base_radius": 0.5, "platform_radius": 0.2, "height": 0.8}
# arguments of calls that together give every number of a linkage, and its defaults that depend on others
CALLS: dict[str, list[dict[str, Any]]] = {
    "cable_robot": [
        {
            "anchors": np.array([[1.0, 1.1], [-1.2, 1.3], [-1.4, -1.0], [1.3, -1.2]]),
            "attachments": np.array([[0.1, -0.11], [-0.12, -0.1], [-0.1, 0.09], [0.09, 0.1]]),
        },
        {
            "anchors": np.eye(3) + 1.0,
            "attachments": 0.1 * np.arange(9.0).reshape(3, 3) % 0.37,
            "center": (0.1, 0.2, 0.3),
        },
    ],
    "chebyshev": [{"coupler": 1.0}],
    "delta": [DELTA | {"angle": 0.5, "width": 0.1}, DELTA | {"height": 0.6}, DELTA],
    "five_bar": [
        {"ground": 0.3, "proximal": 0.25, "distal": 0.41},
        {"ground": 0.3, "proximal": (0.25, 0.22), "distal": (0.4, 0.35)},
        {"ground": 0.9, "proximal": (0.25, 0.25), "distal": (0.4, 0.35)},
        {"ground": 0.3, "proximal": 0.25, "distal": (0.4, 0.4), "angles": (2.0, 1.0)},
    ],
    "four_bar": [
        FOUR,
        FOUR | {"angle": 1.0, "tip": (1.0, 0.5), "branch": "crossed"},
        FOUR | {"crank": 3.1, "rocker": 1.0},
        FOUR | {"crank": 2.0, "coupler": 1.5, "rocker": 2.0},
        FOUR | {"crank": 3.0, "coupler": 1.0, "rocker": 3.5},
    ],
    "klann": [{"scale": 1.1}],
    "parallel_gripper": [{"arm": 0.06, "palm": 0.04, "spacing": 0.02, "finger": 0.05, "angle": 0.2}],
    "peaucellier": [{"long": 5.0, "short": 2.0, "crank": 2.0, "angle": 1.0}],
    "scissor_lift": [{"arm": 1.2, "stages": 2, "angle": 0.5}],
    "scott_russell": [{"crank": 1.0, "angle": 0.7}],
    "slider_crank": [{"crank": 0.3, "rod": 1.0, "offset": 0.1, "angle": 0.7}],
    "stephenson": [SIX | {"angle": 1.0}, SIX],
    "stewart": [
        STEWART | {"height": 0.9},
        STEWART | {"leg_length": 1.0},
        STEWART | {"height": 0.9, "legs": "distance"},
    ],
    "three_rps": [LEGS],
    "three_rrr": [{"base_radius": 0.5, "platform_radius": 0.1, "proximal": 0.3, "distal": 0.35}],
    "tricept": [LEGS],
    "watt": [SIX | {"angle": 1.0, "dyad": "right"}, SIX],
}
CASES = [(name, k) for name in GENERATORS for k in range(len(CALLS.get(name, [])))]


def numbers_of(given: Any) -> Iterator[float]:
    """Yield the numbers of arguments in order; texts and integers are none."""
    if isinstance(given, dict):
        given = given.values()
    if isinstance(given, float):
        yield given
    elif not isinstance(given, str | int):
        for one in given:
            yield from numbers_of(one)


def with_numbers(given: Any, x: Iterator[Any]) -> Any:
    """Return arguments with the numbers of `numbers_of` replaced."""
    if isinstance(given, float):
        return next(x)
    if isinstance(given, dict):
        return {key: with_numbers(one, x) for key, one in given.items()}
    return given if isinstance(given, str | int) else tuple(with_numbers(one, x) for one in given)


def case(name: str, k: int) -> tuple[Callable[[Any], kic.Mechanism], np.ndarray]:
    """Return the function of numbers that makes a linkage, and the numbers; the last one scales masses."""
    call = CALLS[name][k]
    bodies = GENERATORS[name](**call).bodies
    rest = {"gravity": (0.1, -9.8, -0.2), "points": [kic.Point("spot", bodies[-1].name, (0.1, 0.2, 0.3))]}

    def make(x: Any) -> kic.Mechanism:
        masses = {body.name: x[-1] * (1 + 0.1 * n) for n, body in enumerate(bodies)}
        return GENERATORS[name](**with_numbers(call, iter(x)), masses=masses, **rest)

    return make, np.array([*numbers_of(call), 1.0])


def answer(q: np.ndarray) -> Callable[[kic.Mechanism], np.ndarray]:
    """Return the function of positions, coefficients and dynamics of a linkage as drawn and elsewhere."""

    def of(m: kic.Mechanism) -> np.ndarray:
        joints = [joint.name for joint in m.joints if joint.dof == 1]
        points = [point.name for point in m.points]
        found = []
        for c in (m.at(), m.at(q)):
            found += [c.value(row) for row in (*joints, *points)]
            found += [c.coefficients("spot", order=2).H, c.dynamics().I, c.dynamics().load]
        return np.concatenate([np.ravel(a) for a in found])

    return of


@pytest.mark.parametrize(("name", "k"), CASES)
def test_sensitivities_are_those_of_central_differences(name: str, k: int) -> None:
    make, x = case(name, k)
    m = make(x)
    q = (
        m.at()._phi
        if m.coordinates[0][:4] == "free"
        else np.hstack([m.at().value(name) for name in m.coordinates])
    )
    of = answer(q + 0.02 * np.sin(np.arange(1, m.dof + 1)))
    got, size = kic.sensitivity(make, of, x), max(1.0, np.abs(of(m)).max())
    for one, e, value in zip(got, np.eye(len(x)), x, strict=True):
        h = 4e-3 * max(abs(value), 0.05)
        D = [(of(make(x + d * e)) - of(make(x - d * e))) / (2 * d) for d in (h, h / 2, h / 4)]
        fourth = [(4 * b - a) / 3 for a, b in pairwise(D)]
        expected = (16 * fourth[1] - fourth[0]) / 15
        error = np.abs(expected - fourth[1]).max() + 100 * np.finfo(float).eps * size / h
        assert np.abs(one - expected).max() <= 20 * error, (name, np.abs(one - expected).max(), error)
        assert error < 1e-4 * max(size, np.abs(expected).max())
    # all numbers together: the chain rule
    (along,), rounding = kic.sensitivity(lambda s: make(s[0] * x), of, [1.0]), 1e-12 * np.abs(got).max()
    assert np.abs(along - x @ got).max() <= rounding * max(1.0, np.abs(x).max()) * len(x)


@pytest.mark.parametrize("name", GENERATORS)
def test_every_number_is_an_argument_of_a_call(name: str) -> None:
    signature = inspect.signature(GENERATORS[name]).parameters
    numeric = {n for n, p in signature.items() if "float" in p.annotation or p.annotation == "Any"}
    given = {n for call in CALLS[name] for n, value in call.items() if list(numbers_of(value))}
    assert numeric - {"masses", "rest"} <= given


@pytest.mark.parametrize(("name", "k"), CASES)
def test_complex_arguments_raise_outside_and_large_ones_inside_of_a_sensitivity(name: str, k: int) -> None:
    make, x = case(name, k)
    for n in range(len(x)):
        for size in (1e-30, 0.5):
            with pytest.raises(
                kic.InputError, match=r"positive finite number, got|must be real numbers, got"
            ):
                make([a + size * 1j * (j == n) for j, a in enumerate(x)])
        with stepping(), pytest.raises(kic.InputError):
            make([a + 0.5j * (j == n) for j, a in enumerate(x)])


@pytest.mark.parametrize(
    ("make", "x"),
    [
        # rods of one length span elbows at no distance; the rods and the proximal links both reach 0.8
        (lambda x: linkages.five_bar(ground=0.3, proximal=0.25, distal=(x[0], 0.4)), 0.4),
        (lambda x: linkages.five_bar(ground=x[0], proximal=0.25, distal=0.4), 0.3),
        # change points, where the range of the crank changes
        (lambda x: linkages.four_bar(ground=x[0], crank=1.0, coupler=2.0, rocker=1.0), 2.0),
        # links in line
        (lambda x: linkages.four_bar(ground=4.0, crank=1.0, coupler=x[0], rocker=2.5, angle=np.pi), 2.5),
        (lambda x: linkages.peaucellier(long=5.0, short=2.0, crank=x[0], angle=0.0), 3.5),
        (
            lambda x: linkages.delta(
                base_radius=0.2, platform_radius=0.2, arm=0.25, forearm=0.5, height=x[0]
            ),
            0.75 - 3e-14,
        ),
        # no direction, and the size of a box with two corners at one side
        (lambda x: linkages.parallel_gripper(arm=0.06, palm=0.04, spacing=0.02, finger=x[0]), 0.0),
        (
            lambda x: linkages.cable_robot(
                anchors=np.eye(2), attachments=[[x[0], 0], [0.1, 1]], masses={"platform": 1.0}
            ),
            0.1,
        ),
    ],
)
def test_numbers_without_derivative_raise(make: Callable[[Any], kic.Mechanism], x: float) -> None:
    assert make([x]).dof
    with pytest.raises(kic.InputError, match="must change smoothly"):
        kic.sensitivity(make, lambda m: m.at().value(m.coordinates[0]), [x])


@pytest.mark.parametrize(
    ("make", "x"),
    [
        # kites and rhombi
        (lambda x: linkages.four_bar(ground=1.5, crank=x, coupler=1.0, rocker=1.0), 1.5),
        (lambda x: linkages.four_bar(ground=x, crank=1.5, coupler=1.0, rocker=1.0), 1.5),
        (lambda x: linkages.four_bar(ground=x, crank=1.0, coupler=1.0, rocker=x), 1.0),
        # no angles of the elbows are as wide as the rods
        (lambda x: linkages.five_bar(ground=0.1, proximal=(0.25, 0.1), distal=(x, 0.05)), 0.11),
        # legs along the axis
        (
            lambda x: linkages.stewart(
                base_radius=x,
                platform_radius=1.0,
                leg_length=2.0,
                base_angle=1.0,
                platform_angle=2 * np.pi / 3 - 1,
            ),
            1.0,
        ),
    ],
)
def test_special_shapes_with_a_derivative(make: Callable[[float], kic.Mechanism], x: float) -> None:
    joint = make(x).joints[1].name
    of = lambda m: m.at().value(joint)  # noqa: E731
    h = 1e-4
    D = [(of(make(x + d)) - of(make(x - d))) / (2 * d) for d in (h, h / 2)]
    got = kic.sensitivity(lambda v: make(v[0]), of, [x])[0]
    assert abs(got - D[1]) <= 20 * (abs(D[1] - D[0]) + 1e-15 / h)


def test_steps_that_keep_equal_lengths_have_a_derivative() -> None:
    make = lambda x: linkages.four_bar(ground=x[0], crank=1.0, coupler=x[0], rocker=1.0, tip=(0.5, 0.1))  # noqa: E731
    tip = [
        linkages.four_bar(ground=2.0 + h, crank=1.0, coupler=2.0 + h, rocker=1.0, tip=(0.5, 0.1))
        .at()
        .value("tip")
        for h in (-0.1, 0.1)
    ]
    got = kic.sensitivity(make, lambda m: m.at().value("tip"), [2.0])[0]
    assert np.allclose(got, (tip[1] - tip[0]) / 0.2, atol=1e-12)
