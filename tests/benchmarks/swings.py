"""Free swings of ten seconds: kic and Exudyn at equal achieved accuracy, and kic beside MuJoCo.

The reference is kic's run at the tightest tolerance, with which the peer's runs must agree in their limit of
small steps. Errors are the largest distance of one point from it over the run. A line for each relative
tolerance of kic has the peer with as many steps as give the same error. The last line has the peer at a
number of steps that it does fast, beside kic at the loosest power of ten that is no worse. Runs
with too many steps are not made; their time is extrapolated from shorter ones, as each step costs the same,
and the line says so.

MuJoCo has some sizes of the step, beside kic at the loosest power of ten that is no worse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import kic
from benchmarks import exudyn_peer, mujoco_peer
from benchmarks.peers import DisagreementError
from benchmarks.timing import Report, Work, interleaved, micro
from kic.kernels.layout import N_ENERGIES
from kic.simulation.coordinates import Chart
from kic.simulation.motion import Motion

SECONDS, RTOL, REFERENCE = 10.0, 1e-8, 3e-14
TIMES = np.linspace(0, SECONDS, 101)
# steps of the peer from whose errors the number of steps is found, and the most that are waited for
COARSE, REFINED, MOST = 5000, 4, 200_000
# steps of MuJoCo (s)
MUJOCO_STEPS = (1e-2, 5e-3, 2e-3, 1e-3)
HEADINGS = ["swing", "kic ms", "steps", "error", "peer ms", "steps", "error", "kic/peer", "limits differ"]


@dataclass(frozen=True)
class Case:
    """A swing: a mechanism in its reference configuration, initial rates, compared point and tolerances."""

    title: str
    make: Callable[[], kic.Mechanism]
    qd: tuple[float, ...]
    point: str
    tolerances: tuple[float, ...] = (RTOL,)


def hanging() -> kic.Mechanism:
    """The Gough-Stewart platform hung from its base, with a spring of 2 N/mm in each leg, slack as drawn."""
    drawn = kic.load("gough-stewart")
    joints = [
        replace(j, stiffness=2000.0, rest=j.value) if j.type == "prismatic" else j for j in drawn.joints
    ]
    return replace(drawn, joints=tuple(joints), gravity=tuple(-g for g in drawn.gravity))


CASES = (
    Case(
        "four-bar, from rest as drawn",
        lambda: kic.load("four-bar"),
        (0.0,),
        "tip",
        # errors from 5 mm to 10 nm, 1 mm at the second one
        (1e-5, 1.4e-6, 1e-6, 1e-7, RTOL, 1e-9, 1e-10, 1e-11, 1e-12),
    ),
    Case("gough-stewart, hung on springs", hanging, (0.5, -0.5, 0.25, 0.0, -0.25, 0.15), "eye"),
)


# how far in every coordinate a right-hand side is from the one before it, and microseconds it may take
STEP = 0.01
TARGETS = {"gough-stewart, hung on springs": "≤ 60"}


class Swing:
    """One case: kic's runs, the reference, and the right-hand side.

    Attributes
    ----------
    reference : (T, 3) ndarray
        Places of the point, as well as they can be had.
    """

    def __init__(self, case: Case) -> None:
        self.case, self.mechanism, self.qd = case, case.make(), np.array(case.qd)
        self.start = self.mechanism.at()
        self.reference = self.run(REFERENCE)[case.point]

    def run(self, tolerance: float = RTOL) -> kic.results.Simulation:
        """A run of kic."""
        return self.mechanism.simulate(
            TIMES,
            near=self.start,
            qd=self.qd,
            integrator=kic.Integrator(rtol=tolerance, atol=tolerance, progress=False),
        )

    def error(self, places: np.ndarray) -> float:
        """Largest distance (T, 3) from the reference over the run."""
        return float(np.linalg.norm(places - self.reference, axis=1).max())

    def no_worse(self, error: float) -> float:
        """Return the largest power of ten as tolerance that keeps an error."""
        for exponent in range(4, 13):
            if self.error(self.run(10.0**-exponent)[self.case.point]) <= error:
                return float(10.0**-exponent)
        raise AssertionError(f"no tolerance keeps '{self.case.title}' to an error of {error:.1e}")

    def right_side(self) -> Work:
        """Evaluate the right-hand side twice: closure, dynamics and accelerations."""
        names, state = self.start.coordinates, self.start.state
        q = np.array([self.start.value(name) for name in names])
        chart = Chart(Motion(self.mechanism._model, names, None, {}), names, state, q)
        here = chart.pack(state, self.qd, np.zeros(N_ENERGIES))
        there = here.copy()
        there[: len(names)] += STEP

        def both() -> None:
            chart(0.0, here)
            chart(0.0, there)

        return both


class PeerSwing:
    """The peer's runs of a swing, compared with kic's first: accelerations at the start, and the reference.

    Parameters
    ----------
    swing : Swing
        What swings.
    coarse : int
        Steps of the coarser of two runs, from which the order is found.
    """

    def __init__(self, swing: Swing, coarse: int = 0) -> None:
        self.swing = swing
        self.peer = exudyn_peer.ExudynPeer(swing.mechanism, swing.qd, swing.case.point)
        exudyn_peer.check_acceleration(self.peer)
        coarse = coarse or COARSE
        self.fine = coarse * REFINED
        first, second = self.run(coarse), self.run(self.fine)
        self.error = swing.error(second)
        self.order = float(np.log(swing.error(first) / self.error) / np.log(REFINED))
        # what is of second order in the step cancels between the two, and a small part of the error is left
        limit = second + (second - first) / (REFINED**2 - 1)
        self.apart = swing.error(limit)
        if not self.apart < self.error / 5:
            raise DisagreementError(f"the peer's limit of '{swing.case.title}' is off by {self.apart:.1e}")

    def run(self, steps: int) -> np.ndarray:
        """Places (T, 3) of the point; plane bodies come with z = 0."""
        return self.peer.run(TIMES, steps)

    def steps(self, error: float) -> int:
        """Return the number of steps for an error, by the measured order; equal in each output interval."""
        intervals = len(TIMES) - 1
        wanted = self.fine * (self.error / error) ** (1 / self.order)
        return int(np.ceil(wanted / intervals)) * intervals


def case_rows(case: Case, seconds: float, coarse: int = 0, most: int = 0) -> list[list[str]]:
    """All lines of a swing; without the peer those of kic alone, without the last."""
    swing, most = Swing(case), most or MOST
    if exudyn_peer.exudyn is None:
        return [_row(swing, tolerance, None, 0, seconds, most) for tolerance in case.tolerances]
    theirs = PeerSwing(swing, coarse)
    rows = []
    for tolerance in case.tolerances:
        error = swing.error(swing.run(tolerance)[case.point])
        rows.append(_row(swing, tolerance, theirs, theirs.steps(error), seconds, most))
    rows.append(_row(swing, swing.no_worse(theirs.error), theirs, theirs.fine, seconds, most))
    return rows


def _row(
    swing: Swing, tolerance: float, theirs: PeerSwing | None, steps: int, seconds: float, most: int
) -> list[str]:
    """A line: kic at a tolerance, timed in turn with the peer's steps, or with as many as are waited for."""
    run = swing.run(tolerance)
    ours = [f"{run.steps}", f"{swing.error(run[swing.case.point]):.1e}"]
    title = f"{swing.case.title}, rtol {tolerance:g}"
    works: dict[str, Work] = {"kic": lambda: swing.run(tolerance)}
    if theirs is None:
        times = interleaved(works, seconds, least=1)
        return [title, micro(times.best("kic") * 1e3), *ours, "", "", "", "", ""]
    made = min(steps, theirs.fine) if steps > most else steps
    works["peer"] = lambda: theirs.run(made)
    times = interleaved(works, seconds, least=1)
    more = steps / made
    error = swing.error(theirs.run(made)) / more**theirs.order
    return [
        title + (f", peer's time and error carried over from {made} steps" if more > 1 else ""),
        micro(times.best("kic") * 1e3),
        *ours,
        micro(times.best("peer") * more * 1e3),
        f"{steps}",
        f"{error:.1e}",
        micro(times.ratio("kic", "peer") / more),
        f"{theirs.apart:.0e}",
    ]


def mujoco_rows(case: Case, seconds: float) -> list[list[str]]:
    """Lines of a swing, one for each step of MuJoCo."""
    swing, rows = Swing(case), []
    for step in MUJOCO_STEPS:
        peer = mujoco_peer.MujocoPeer(swing.mechanism, swing.qd, case.point, step)
        error = swing.error(peer.run(TIMES))
        tolerance = swing.no_worse(error)
        works: dict[str, Work] = {
            "kic": lambda tolerance=tolerance: swing.run(tolerance),
            "peer": lambda peer=peer: peer.run(TIMES),
        }
        times, run = interleaved(works, seconds, least=1), swing.run(tolerance)
        rows.append(
            [
                f"{case.title}, MuJoCo's step {step:g} s, kic's rtol {tolerance:g}",
                micro(times.best("kic") * 1e3),
                f"{run.steps}",
                f"{swing.error(run[case.point]):.1e}",
                micro(times.best("peer") * 1e3),
                f"{error:.1e}",
                micro(times.ratio("kic", "peer")),
            ]
        )
    return rows


def table(report: Report, seconds: float) -> None:
    """Report all benchmarks of swings."""
    report.say(
        f"Free swings of {SECONDS:g} s. Peer: Exudyn, bodies and joint forces by the trapezoidal rule with "
        "steps of one size, which has second order; its model is built for each run. Error: the largest "
        f"distance of a point over {len(TIMES)} moments from kic's run at rtol {REFERENCE:g}, in metres; "
        "limits: how far from this the peer's runs extrapolated to small steps end. The peer has as many "
        "steps as give kic's error; in the last line of a swing kic is no worse than the peer."
    )
    report.say()
    if exudyn_peer.exudyn is None:
        report.say(f"- {exudyn_peer.MISSING}")
        report.say()
    report.table(HEADINGS, [row for case in CASES for row in case_rows(case, seconds)])
    report.say(
        "The same swings in MuJoCo: its classical Runge-Kutta method with steps of one size, loops closed by "
        "constraints with a time constant of two steps, the stiffest that it allows, and a model built once. "
        "kic is no worse."
    )
    report.say()
    if mujoco_peer.mujoco is None:
        report.say(f"- {mujoco_peer.MISSING}")
        report.say()
    else:
        headings = ["swing", "kic ms", "steps", "error", "MuJoCo ms", "error", "kic/MuJoCo"]
        report.table(headings, [row for case in CASES for row in mujoco_rows(case, seconds)])
    rows = []
    for case in CASES:
        times = interleaved({"twice": Swing(case).right_side()}, seconds)
        rows.append([case.title, micro(times.best("twice") / 2 * 1e6), TARGETS.get(case.title, "")])
    report.table(["right-hand side of the motion, one", "kic µs", "target"], rows)
