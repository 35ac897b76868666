"""Errors along paths in time carry the time."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import kic

ARM = kic.load("horn-two-link")
BENT = ARM.at([-0.4, 0.9])
TIMES = np.linspace(0.0, 1.0, 11)
# the elbow is straight at t = 0.5, where points of the arm cannot drive it
STRAIGHTEN = kic.trajectory.line([0.3, -1.0], [0.3, 1.0], 1.0)
TIP = ["tip.x", "tip.y"]


def outward(t: float) -> np.ndarray:
    """Return a straight path of the tip that leaves the reach of 2 m at t = 0.5."""
    return BENT.value("tip")[:2] / np.linalg.norm(BENT.value("tip")[:2]) * (1.8 + 0.4 * t)


def tip_path() -> Callable[[], object]:
    path = {"tip.x": lambda t: outward(t)[0], "tip.y": lambda t: outward(t)[1]}
    near = ARM.at({name: f(0.0) for name, f in path.items()}, near=BENT)
    return lambda: ARM.track(path, TIMES, near=near)


# the tip leaves the reach of 2 m on a line at y = 0.2 m, of which the run has 1001 times by default
LEAVES, RUN_STEP = (np.sqrt(2.0**2 - 0.2**2) - 1.0) / 1.5, 1e-3


def run_out_of_reach() -> kic.results.Simulation:
    start = ARM.at({"tip.x": 1.0, "tip.y": 0.2}, near=ARM.at([-0.9, 1.8]))
    path = {"tip.x": lambda t: (1.0 + 1.5 * t, 1.5, 0.0), "tip.y": lambda t: (0.2, 0.0, 0.0)}
    return ARM.simulate(1.0, near=start, wrt=TIP, prescribed=path)


def rates_of(c: kic.Configuration) -> np.ndarray:
    if np.any(c.value("elbow") > 1.1):
        raise kic.InputError("No rates here.", key="secondary")
    return np.zeros((*c.batch, 2))


CASES = {
    "follow out of reach": (tip_path(), 0.45, 0.55),
    "follow beyond limits": (
        lambda: ARM.track({"elbow": lambda t: 0.9 + t}, TIMES, near=BENT, limits={"elbow": (0.0, 1.35)}),
        0.45, 0.55,
    ),
    "follow a function that fails": (
        lambda: ARM.track({"elbow": lambda t: 0.9 + t}, TIMES, near=BENT, secondary=rates_of), 0.15, 0.3,
    ),
    "a trajectory out of reach": (
        lambda: kic.trajectory.line({"tip.x": 1.0, "tip.y": 0.0}, {"tip.x": 3.0, "tip.y": 0.0}, 1.0).on(
            ARM, TIMES, near=ARM.at([-0.9, 1.8])
        ),
        0.45, 0.65,
    ),
    "efforts": (lambda: STRAIGHTEN.on(ARM, TIMES).effort(actuators=TIP), 0.45, 0.55),
    "joint forces": (lambda: STRAIGHTEN.on(ARM, TIMES).joint_forces(actuators=TIP), 0.45, 0.55),
    "coordinates": (lambda: kic.trajectory.line(
        {"tip.x": 1.0, "tip.y": 0.0}, {"tip.x": 2.0, "tip.y": 0.0}, 1.0
    ).on(ARM, [0.0, 1.0], near=ARM.at([-1.05, 2.1])), 0.9, 1.0),
    "fastest": (
        lambda: kic.trajectory.fastest(STRAIGHTEN, ARM, effort_limits=10.0, actuators=TIP, grid=10),
        0.45, 0.55,
    ),
    "uniform": (
        lambda: kic.trajectory.uniform(STRAIGHTEN, ARM, effort_limits=10.0, actuators=TIP, samples=11),
        0.45, 0.55,
    ),
    "a run": (run_out_of_reach, LEAVES - RUN_STEP, LEAVES + RUN_STEP),
}  # fmt: skip


@pytest.mark.slow_for("follow out of reach")
@pytest.mark.parametrize("name", CASES)
def test_errors_along_paths_have_the_time(name: str) -> None:
    call, earliest, latest = CASES[name]
    with pytest.raises(kic.KicError) as caught:
        call()
    error = caught.value
    assert earliest <= error.numbers["time"] <= latest
    assert error.time == error.numbers["time"]
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.time) == (str(error), error.time)
