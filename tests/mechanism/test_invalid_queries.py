"""Invalid queries: batches, loads, sizes and undefined directions."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import serial
from raising import raises

import kic

ARM = kic.load("horn-two-link")


def test_batches() -> None:
    c = ARM.at(np.zeros((3, 2))).coefficients("tip", order=3)
    a, b = np.zeros((2, 2)), np.zeros(2)
    for ask in (lambda: c.velocity(a), lambda: c.acceleration(b, a), lambda: c.jerk(b, b, a)):
        with pytest.raises(kic.InputError) as caught:
            ask()
        assert caught.value.batches["coefficients"] == (3,)


def test_no_applied_forces() -> None:
    m = kic.Mechanism(
        "m", ARM.bodies, ARM.joints, points=ARM.points, forces=[kic.Force("f", "tip"), kic.Force("g", "tip")]
    )
    c = m.at(np.zeros((3, 2)))
    assert c.dynamics(applied={}).load.shape == (3, 2)


def test_large_and_infinite() -> None:
    assert np.isfinite(ARM.at([0, 1e200]).value("tip")).all()
    m = kic.Mechanism(
        "b",
        [kic.Body("b")],
        [kic.Joint("S", "spherical", ("ground", "b"), at=(0, 0, 0))],
        points=[kic.Point("p", "b", (1, 0, 0))],
    )
    assert np.linalg.norm(m.at([1e200] * 3).value("p")) == pytest.approx(1)


def test_ok_is_a_copy() -> None:
    c = ARM.at([[0, 0], [np.nan, 0]], failures="mask")
    c.ok[:] = True
    assert c.ok.tolist() == [True, False]


def test_a_distance_of_zero_has_no_direction() -> None:
    root, gap = kic.Point("root", "ground", (0, 0, 0)), kic.Distance("gap", ("tip", "root"))
    # half a turn about B brings the tip to within round-off of the root; the drawing moved there exactly
    m, exact = (
        serial([(0, 0, 0), (1, 0, 0)], "ab", points=[kic.Point("tip", "b", (x, 0, 0)), root], distances=[gap])
        for x in (2, 0)
    )
    c = exact.at()
    assert c.value("gap") == 0
    with raises(kic.InputError, distances=("gap",)) as e:
        c.coefficients(["tip", "gap"])
    assert e.value.distances == ("gap",)
    assert np.isfinite(m.at([0, 3.0]).coefficients("gap", order=3).D).all()
