"""Closed mechanisms: evaluation, closure, and cost against the number of loops.

kic gives G and H of a body with I* and P*, in the mechanism's own coordinates; the peer, Pinocchio's
constraintDynamics, gives one acceleration of the tree. `closed_peers` has compared the two before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np

import kic
from benchmarks import peers, timing
from benchmarks.closed_peers import SIX_ROWS, THREE_ROWS, ClosedPeer, check_accelerations, with_masses
from benchmarks.ladder import ladder
from benchmarks.timing import Report, Work, exponent, interleaved, micro, reused, ways

CLOSED_BATCH = 256
# how far configurations of a batch are from the drawing, and one to be closed from one that is
SPREAD, STEP = 0.05, 0.01
WINDOWS = (1, 2, 5, 10, 20, 40)
# between which of them exponents are fitted: where a call no longer costs more than its work, and at the end
FITTED = ((5, 40), (20, 40))
HEADINGS = [
    "per configuration",
    "kic µs",
    *(x for c in (SIX_ROWS, THREE_ROWS) for x in (f"{c} µs", f"kic/{c}")),
]


@dataclass(frozen=True)
class Case:
    """A closed mechanism, a body or point, the peer's types of closure, and targets."""

    model: str
    of: str
    closures: tuple[str, ...] = (SIX_ROWS, THREE_ROWS)
    targets: dict[str, str] = field(default_factory=dict)


# three rows do not close a hinge in space
CASES = (
    Case(
        "gough-stewart",
        "platform",
        targets={
            "one": "≤ 0.6, 1.4",
            "one, out": "≤ 0.6, 1.4",
            "batch": "≤ 0.35",
            "batch, out": "≤ 0.35",
            "prepare_position": "≤ 1.5",
        },
    ),
    Case("five-bar", "tip", targets={"one": "≤ 5 µs", "one, out": "≤ 5 µs"}),
    Case("three-legged-robot", "platform"),
    Case("stewart-6r", "plate", (SIX_ROWS,)),
    Case("rssr", "coupler"),
)


class Loop:
    """A closed mechanism away from its reference configuration, with a prepared evaluator.

    Parameters
    ----------
    mechanism : kic.Mechanism
        With loops.
    of : str
        Body or point whose G and H are requested, besides I* and P*.
    """

    def __init__(self, mechanism: kic.Mechanism, of: str) -> None:
        self.mechanism = mechanism
        names = mechanism.coordinates
        drawn = mechanism.at()
        self.rng = np.random.default_rng(1)
        self.inputs = np.array([float(drawn.value(name)) for name in names])
        self.place = self.inputs + self.moves()
        self.near = mechanism.at(self.place, near=drawn)
        self.evaluate = mechanism.prepare.coefficients_and_dynamics(
            [of], order=2, wrt=list(names), loads=False
        )
        self.take = attrgetter(f"{of}.G", f"{of}.H", "I", "P")

    def moves(self, *batch: int) -> np.ndarray:
        """Return random inputs (..., M) near the reference."""
        return self.rng.uniform(-SPREAD, SPREAD, size=(*batch, len(self.inputs)))

    def states(self) -> np.ndarray:
        """Return closed states of a batch near the reference."""
        inputs = self.inputs + self.moves(timing.BATCH)
        return self.mechanism.at(inputs, near=self.mechanism.at()).state

    def works(self) -> dict[str, Work]:
        """One configuration and a batch, until the arrays are available."""
        return ways(self.evaluate, self.take, self.near.state, self.states())

    def closing(self) -> dict[str, Work]:
        """Closing one configuration that is a step away."""
        at, near, target = self.mechanism.at, self.near, self.place + STEP
        close, state = self.mechanism.prepare.position(), self.near.state
        return {"prepare_position": lambda: close(state, target), "at(near=…)": lambda: at(target, near=near)}

    def closing_batch(self, count: int) -> dict[str, Work]:
        """Closing a batch, each member from its own near configuration."""
        at, inputs = self.mechanism.at, self.inputs + self.moves(count)
        near = at(inputs, near=self.mechanism.at())
        close, states = self.mechanism.prepare.position(), near.state
        return {
            "prepare_position, batch": lambda: close(states, inputs + STEP),
            "at(near=…), batch": lambda: at(inputs + STEP, near=near),
        }

    def peers(self, closures: Iterable[str]) -> tuple[dict[str, Work], float]:
        """An acceleration of each peer at the same configuration, and its largest difference from kic's."""
        weighty = with_masses(self.mechanism)
        near = weighty.at(self.place, near=weighty.at())
        works: dict[str, Work] = {}
        worst = 0.0
        for kind in closures:
            peer = ClosedPeer(weighty, kind)
            worst = max(worst, *check_accelerations(weighty, peer, near).values())
            works[kind] = self._peer(peer, near)
        return works, worst

    @staticmethod
    def _peer(peer: ClosedPeer, near: kic.Configuration) -> Work:
        rates, efforts = np.random.default_rng(2).normal(size=(2, len(near.coordinates)))
        q, tau = peer.q(near), peer.tau(efforts)
        v, _ = peer.motion(near, rates, np.zeros_like(rates))
        return lambda: peer.raw(q, v, tau)


def case_rows(case: Case, seconds: float) -> list[list[str]]:
    """Return all rows of one mechanism: single configurations, then batches, each with the peers."""
    loop = Loop(kic.load(case.model), case.of)
    theirs, worst = loop.peers(case.closures) if peers.pinocchio is not None else ({}, None)
    rows = []
    for ours in (loop.works(), {**loop.closing(), **loop.closing_batch(CLOSED_BATCH)}):
        times = interleaved({**ours, **theirs}, 2 * seconds)
        for name in ours:
            count = CLOSED_BATCH if name.endswith(", batch") else timing.members(name)
            row = [f"{case.model} {case.of}, {name}", micro(times.best(name) / count * 1e6)]
            for kind in (SIX_ROWS, THREE_ROWS):
                known = kind in theirs
                row.append(micro(times.best(kind) * 1e6) if known else "")
                row.append(f"{times.ratio(name, kind) / count:.2f}" if known else "")
            rows.append([*row, case.targets.get(name, ""), "" if worst is None else f"{worst:.0e}"])
    return rows


def curve(report: Report, seconds: float) -> None:
    """Cost against the number of loops: a ladder driven at one end, the tip at its other."""
    columns: dict[str, list[float]] = {}
    for windows in WINDOWS:
        loop = Loop(ladder(windows), "tip")
        works: dict[str, Work] = {"G, H, I*, P*": reused(loop.evaluate, loop.near.state), **loop.closing()}
        if peers.pinocchio is not None:
            works |= loop.peers((SIX_ROWS, THREE_ROWS))[0]
        times = interleaved(works, seconds)
        for name in works:
            columns.setdefault(name, []).append(times.best(name) * 1e6)
    cells = [[f"{n} loops", *(micro(c[i]) for c in columns.values())] for i, n in enumerate(WINDOWS)]
    for low, high in FITTED:
        span = slice(WINDOWS.index(low), WINDOWS.index(high) + 1)
        fitted = [f"{exponent(WINDOWS[span], c[span]):.2f}" for c in columns.values()]
        cells.append([f"exponent, {low} to {high} (target ≤ 2)", *fitted])
    report.table(["ladder, µs", *columns], cells)


def table(report: Report, seconds: float) -> None:
    """Report all benchmarks of loops."""
    report.say(
        "Loops: G and H of a body or point, I*, P* in the mechanism's coordinates. Peer: Pinocchio's "
        "constraintDynamics, one acceleration of the tree, loops closed by six rows (the cut joint stays in "
        "the tree, the body beyond it is split and welded) or by three (points held together). Batches of "
        f"{timing.BATCH}, {CLOSED_BATCH} where they are closed, from configurations {STEP} away in every "
        "input. For the peer, massless links get masses, which it requires."
    )
    report.say()
    rows: list[list[str]] = []
    for case in CASES:
        rows += case_rows(case, seconds)
    report.table([*HEADINGS, "target", "differs"], rows)
    curve(report, seconds)
