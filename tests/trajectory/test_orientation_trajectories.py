"""Orientation trajectories against the complex step, closed forms, and mechanisms that follow them."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises
from sampling import mismatch
from scipy.spatial.transform import Rotation

import kic
from kic import trajectory as tr
from kic.numerics.rotations import product
from kic.trajectory.orientation import angular_motion

STEP = 1e-30
SEVERAL = Rotation.from_rotvec(
    [[0.1, 0.2, 0.3], [1.0, -0.5, 0.2], [2.0, 0.4, -1.0], [-1.5, 2.0, 0.3], [-2.0, 0.1, 0.1], [0.3, 0.1, 2.9]]
)
TIMES = [0.0, 0.5, 1.0, 1.8, 2.1, 3.0]
SAMPLES = {
    "two": tr.rotation(SEVERAL[[0, 3]], duration=1.7),
    "two, septic": tr.rotation(SEVERAL[:2], times=[0.0, 0.3], degree=7),
    "several": tr.rotation(SEVERAL, TIMES),
    "cubic": tr.rotation(SEVERAL, TIMES, degree=3),
    "free": tr.rotation(SEVERAL, duration=2.0, ends="free"),
    "with stops": tr.rotation(SEVERAL, TIMES, degree=7, stops=[2, 3]),
    "back, slower": tr.rotation(SEVERAL, TIMES).reversed().scaled(2.0),
    "no turn": tr.rotation(SEVERAL[[1, 1]]),
}
every_sample = pytest.mark.parametrize("name", SAMPLES)


def unit(turn: tr.OrientationTrajectory, t: np.ndarray) -> np.ndarray:
    """Unit quaternions at times that may be complex."""
    p = turn._quaternions(turn.trajectory(t))[0]
    return p / np.sqrt((p * p).sum(axis=-1, keepdims=True))


@every_sample
def test_angular_rates_match_complex_steps(name: str) -> None:
    turn = SAMPLES[name]
    t = np.random.default_rng(1).uniform(0, turn.duration, 40)
    R, w, wd, wdd = turn(t)
    q = unit(turn, t)
    assert (
        mismatch(
            R.as_quat(scalar_first=True) * np.sign((R.as_quat(scalar_first=True) * q).sum(-1))[:, None], q
        )
        < 1e-13
    )
    # q̇ = ω q / 2
    rate = unit(turn, t + 1j * STEP).imag / STEP
    assert mismatch(2 * product(rate, q * [1, -1, -1, -1])[:, 1:], w) < 1e-11
    later = angular_motion(turn._quaternions(turn.trajectory(t + 1j * STEP)))
    assert mismatch(later[0].imag / STEP, wd) < 1e-10
    assert mismatch(later[1].imag / STEP, wdd) < 1e-9


@every_sample
def test_orientations_and_rest_at_the_ends(name: str) -> None:
    turn = SAMPLES[name]
    ends = turn([0.0, turn.duration])
    if name != "free":
        size = max(np.abs(turn(np.linspace(0, turn.duration, 99)).w).max(), 1e-300)
        assert np.abs(ends.w).max() < 1e-12 * size
    if turn.arms is None and "back" not in name:
        at = turn(turn.knots) if name != "free" else None
        times = TIMES if name != "free" else None
        if at is not None:
            # terms of polynomials of degree 7 add up to 200 ε
            assert (turn(times).rotation * SEVERAL.inv()).magnitude().max() < 1e-12
            assert (np.abs(turn(times).w).max(axis=1) < 1e-10).sum() == (4 if name == "with stops" else 2)


def test_two_orientations_are_joined_about_one_axis() -> None:
    a, b = SEVERAL[0], SEVERAL[3]
    turn = tr.rotation(Rotation.concatenate([a, b]), duration=2.0)
    whole = (b * a.inv()).as_rotvec()
    t = np.linspace(0, 2, 21)
    share = tr.quintic([0.0], [1.0], 2.0)(t)
    R, w, wd, wdd = turn(t)
    assert (R * (Rotation.from_rotvec(share.q * whole) * a).inv()).magnitude().max() < 1e-13
    for of, by in ((w, share.qd), (wd, share.qdd), (wdd, share.qddd)):
        assert mismatch(of, by * whole) < 1e-12
    # one moment, none
    assert turn(1.0).w.shape == (3,)
    assert turn([]).wdd.shape == (0, 3)
    assert (turn([2.5], beyond="hold").rotation * b.inv()).magnitude() < 1e-13
    assert "about one axis: duration 2" in repr(turn)
    assert "through 6 orientations" in repr(SAMPLES["several"])


def test_signs_of_quaternions_do_not_matter() -> None:
    """Both quaternions of a rotation give the same path; other world axes rotate the path."""
    q = SEVERAL.as_quat()
    other = tr.rotation(Rotation.from_quat(q * np.array([1, -1, 1, -1, -1, 1])[:, None]), TIMES)
    t = np.linspace(0, 3, 31)
    assert (other(t).rotation * SAMPLES["several"](t).rotation.inv()).magnitude().max() < 1e-13
    Q = Rotation.from_rotvec([0.3, 1.0, -0.4])
    led = tr.rotation(Q * SEVERAL, TIMES)(t)
    assert mismatch(led.wdd, Q.apply(SAMPLES["several"](t).wdd)) < 1e-11


def test_stops_and_centripetal_times() -> None:
    line = Rotation.from_rotvec(np.outer([0.0, 0.1, 0.5], [0.0, 0.6, 0.8]))
    assert mismatch(tr.rotation(line, duration=3.0, stops=True).knots, np.array([0.0, 1.0, 3.0])) < 1e-14
    turn = tr.rotation(SEVERAL, TIMES, stops=True)
    w = turn(np.linspace(0.01, 0.49, 20)).w
    assert np.abs(np.cross(w, w[10])).max() < 1e-10 * np.abs(w).max() ** 2


def test_body_follows_an_orientation_trajectory() -> None:
    """An arm of seven joints rotates its flange: configurations and rates match, also by at()."""
    m = kic.load("panda")
    c = m.at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    now = c.pose("link7").rotation
    turn = tr.rotation(
        Rotation.concatenate([now, Rotation.from_rotvec([0.1, 0.1, -0.1]) * now]), duration=1.0
    )
    home = np.array(c.value("flange"))
    place = tr.quintic(home, home + np.array([0.05, -0.03, 0.02]), 1.0)
    t = np.linspace(0, 1, 5)
    f = m.track({"flange": place, "link7": turn}, t, near=c)
    assert np.abs(f.error).max() < 1e-12
    at = f.configuration
    assert (at.pose("link7").rotation * turn(t).rotation.inv()).magnitude().max() < 1e-12
    rows = at.coefficients(["link7.wx", "link7.wy", "link7.wz"])
    assert mismatch(rows.velocity(f.qd), turn(t).w) < 1e-10
    assert mismatch(rows.acceleration(f.qd, f.qdd), turn(t).wd) < 1e-10
    assert mismatch(at.coefficients("flange").acceleration(f.qd, f.qdd), place(t).qdd) < 1e-9
    wrist = kic.load("gough-stewart")
    tilt = tr.rotation(Rotation.from_rotvec([[0.0, 0.0, 0.0], [0.1, 0.05, 0.02]]))
    place = {f"platform.{x}": wrist.at().value(f"platform.{x}") for x in "xyz"}
    held = wrist.at({"platform": tilt(0.5).rotation, **place})
    assert (held.pose("platform").rotation * tilt(0.5).rotation.inv()).magnitude() < 1e-12


def test_stated_rates_of_a_pose_are_checked() -> None:
    m = kic.load("panda")
    c = m.at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    now = c.pose("link7").rotation
    turn = tr.rotation(Rotation.concatenate([now, Rotation.from_rotvec([0.2, 0.3, -0.1]) * now]))
    in_body = lambda t: (turn(t).rotation, turn(t).rotation.inv().apply(turn(t).w))  # noqa: E731
    with raises(kic.InputError, name="link7", order=1) as caught:
        m.track({"link7": in_body}, [0.0, 0.5, 1.0], near=c)
    e = caught.value
    assert abs(turn(e.time).w - e.found).min() < 1e-6
    wrong = lambda t: (turn(t).rotation, turn(t).w, 1.1 * turn(t).wd)  # noqa: E731
    with raises(kic.InputError, name="link7", order=2):
        m.track({"link7": wrong}, [0.0, 0.5, 1.0], near=c)


ERRORS = [
    ({"key": "rotations", "got": 3}, lambda: tr.rotation(3)),
    ({"key": "rotations"}, lambda: tr.rotation(SEVERAL[0])),
    ({"key": "rotations"}, lambda: tr.rotation(SEVERAL[:1])),
    ({"key": "rotations", "point": 0}, lambda: tr.rotation(
        Rotation.from_rotvec([[0.0, 0.0, 0.0], [np.pi, 0.0, 0.0]]))),
    ({"key": "points", "point": 1}, lambda: tr.rotation(SEVERAL[[0, 1, 1, 2]])),
    ({"key": "times"}, lambda: tr.rotation(SEVERAL, [0.0, 1.0])),
    ({"key": "duration"}, lambda: tr.rotation(SEVERAL[:2], duration=-1.0)),
    ({"key": "degree", "got": 2}, lambda: tr.rotation(SEVERAL, degree=2)),  # type: ignore[arg-type]
    ({"key": "t"}, lambda: SAMPLES["several"](4.0)),
    ({"key": "t"}, lambda: SAMPLES["several"](1j)),
    ({"key": "t"}, lambda: SAMPLES["several"]([[1.0]])),
    ({"key": "rotations"}, lambda: tr.rotation(
        Rotation.from_rotvec([[-1.0, 1.4, -0.5], [1.9, -1.5, 1.7], [0.0, -0.7, 1.7], [1.6, 1.2, -0.3]]),
        [0.0, 0.09, 0.4, 0.82])),
]  # fmt: skip


@pytest.mark.parametrize(("data", "call"), ERRORS)
def test_invalid_arguments_raise(data: dict, call) -> None:
    with raises(kic.InputError, **data):
        call()
