"""The main table: kic and its peers, in one run on one machine.

Run with ``python tests/benchmarks`` (``--output FILE`` also writes it, ``--quick`` takes a minute and is
rough). Each row first checks that kic and the peer agree.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kic
from benchmarks import couplings, free_base, loops, motions, operational, peers, redundancy, starts, swings
from benchmarks.timing import HEADINGS, Report, Row, Times, exponent, interleaved, micro, one_thread

BATCH = 4096
CURVE = (6, 12, 24, 36, 48, 60)
CURVE_BATCH = 256

# an evaluator, and what takes the arrays out of its results
Evaluation = tuple[kic.Evaluator, Callable[[Any], Any]]


def fill_of(size: int, fresh: bool = False) -> Callable[[], object]:
    """Plain filling of as much memory, the same or new."""
    count = size // 8
    if fresh:
        return lambda: np.empty(count).fill(1.0)
    block = np.zeros(count)
    return lambda: block.fill(1.0)


class Arm:
    """A mechanism with its peer, configurations, and the rows of the table."""

    def __init__(self, mechanism: kic.Mechanism, hand: str, seconds: float, batch: int = BATCH) -> None:
        self.mechanism, self.hand, self.seconds = mechanism, hand, seconds
        rng = np.random.default_rng(1)
        names = mechanism.at().coordinates
        self.phi = rng.uniform(-1.5, 1.5, size=len(names))
        self.batch = rng.uniform(-1.5, 1.5, size=(batch, len(names)))
        self.state = mechanism.at(self.phi).state
        self.states = mechanism.at(self.batch).state
        self.peer = peers.PinocchioPeer(mechanism) if peers.pinocchio is not None else None
        if self.peer is not None:
            self.q, self.qs = self.peer.q(self.phi), self.peer.q(self.batch[:256])
            self.frame = self.peer.frame(hand)
            self.qd = rng.normal(size=len(names))
            self.v = self.peer.v(self.qd)

    def getter(self, order: int) -> Evaluation:
        """Evaluate, and the arrays of the hand as a caller takes them: r.hand.G, r.hand.H."""
        evaluate = self.mechanism.prepare("coefficients", of=[self.hand], order=order)
        return evaluate, attrgetter(*(f"{self.hand}.{letter}" for letter in "GHD"[:order]))

    def modeller(self) -> Evaluation:
        """Evaluate, and r.I, r.P."""
        return self.mechanism.prepare("dynamics", loads=False), attrgetter("I", "P")

    def works(self, evaluation: Evaluation) -> dict[str, Callable[[], object]]:
        """One configuration and a batch, in new and in reused memory, until the arrays are available."""
        (evaluate, take), state, states = evaluation, self.state, self.states
        once, many = evaluate(state), evaluate(states)
        return {
            "one": lambda: take(evaluate(state)),
            "one, out": lambda: take(evaluate(state, out=once)),
            "batch": lambda: take(evaluate(states)),
            "batch, out": lambda: take(evaluate(states, out=many)),
            "batch, out, 1 thread": one_thread(lambda: take(evaluate(states, out=many))),
        }

    # the peer's side

    def peer_rates(self) -> dict[str, Callable[[], object]]:
        """Jacobian and Hessian, one configuration and a loop over configurations."""
        if self.peer is None:
            return {}
        raw, q, qs, frame = self.peer.raw_rates, self.q, self.qs, self.frame

        def loop() -> None:
            for row in qs:
                raw(row, frame)

        return {"peer": lambda: raw(q, frame), "peer loop": loop}

    def peer_dynamics(self) -> dict[str, Callable[[], object]]:
        """Mass matrix and Coriolis matrix, one configuration and a loop over configurations."""
        if self.peer is None:
            return {}
        raw, q, qs, v = self.peer.raw_dynamics, self.q, self.qs, self.v

        def loop() -> None:
            for row in qs:
                raw(row, v)

        return {"peer": lambda: raw(q, v), "peer loop": loop}

    def rows(
        self,
        title: str,
        works: dict[str, Callable[[], object]],
        peer: dict[str, Callable[[], object]],
        width: int,
        targets: dict[str, str],
        worst: float | None,
    ) -> list[Row]:
        """Return the rows of one quantity, timed together."""
        size = 8 * width
        fills = {
            "fill one": fill_of(size),
            "fill batch": fill_of(size * BATCH),
            "fill batch, fresh": fill_of(size * BATCH, fresh=True),
        }
        times = interleaved({**works, **peer, **fills}, self.seconds)
        rows = []
        for name in works:
            batch = name.startswith("batch")
            fill = "fill one" if not batch else "fill batch" if "out" in name else "fill batch, fresh"
            rows.append(
                self.row(f"{title}, {name}", times, name, peer, size, fill, targets.get(name, ""), worst)
            )
        return rows

    def row(
        self,
        title: str,
        times: Times,
        name: str,
        peer: dict[str, Any],
        size: int,
        fill: str,
        target: str,
        worst: float | None,
    ) -> Row:
        count = BATCH if name.startswith("batch") else 1
        row = Row(title, times.best(name) / count * 1e6, target=target, size=size, worst=worst)
        if peer:
            theirs, many = ("peer loop", len(self.qs)) if count > 1 else ("peer", 1)
            row.peer = times.best(theirs) / many * 1e6
            row.ratio = times.ratio(name, theirs) * many / count
        row.fill = size * count / times.best(fill) / 1e9
        return row

    # questions

    def rates_rows(self, title: str) -> list[Row]:
        """G, H and G, H, D of the hand."""
        second, third = self.getter(2), self.getter(3)
        worst = self.agreement(lambda: peers.check_rates(self.mechanism, self.peer, self.hand, self.phi))
        P, M = second[1](second[0](self.state))[0].shape
        targets = {"one": "≤ 1.0", "one, out": "≤ 1.0", "batch": "≤ 0.15", "batch, out": "≤ 0.15"}
        width = P * (1 + M + M**2)
        rows = self.rows(f"{title} G, H", self.works(second), self.peer_rates(), width, targets, worst)
        worst = self.agreement(lambda: peers.check_third(self.mechanism, self.peer, self.hand, self.phi))
        targets = {"one": "≤ 2.0", "one, out": "≤ 2.0", "batch": "≤ 0.3", "batch, out": "≤ 0.3"}
        width += P * M**3
        return rows + self.rows(
            f"{title} G, H, D", self.works(third), self.peer_rates(), width, targets, worst
        )

    def dynamics_rows(self, title: str) -> list[Row]:
        """I* and P* against mass and Coriolis matrix."""
        worst = self.agreement(lambda: peers.check_dynamics(self.mechanism, self.peer, self.phi))
        targets = {"one": "≤ 1.0", "one, out": "≤ 1.0", "batch": "≤ 0.25", "batch, out": "≤ 0.25"}
        M = len(self.phi)
        width = M**2 + M**3
        works = self.works(self.modeller())
        rows = self.rows(f"{title} I*, P*", works, self.peer_dynamics(), width, targets, worst)
        return [*rows, self.effort_row(title)]

    def effort_row(self, title: str) -> Row:
        """An effort from I*, P*, Tᴸ against recursive Newton-Euler."""
        evaluate, state = self.mechanism.prepare("dynamics"), self.state
        qd = qdd = np.linspace(0.1, 1, len(self.phi))

        def effort() -> np.ndarray:
            r = evaluate(state)
            return r.I @ qdd + r.P @ qd @ qd - r.load

        works: dict[str, Callable[[], object]] = {"one": effort}
        if self.peer is not None:
            pin, model, data, q, v = peers.pinocchio, self.peer.model, self.peer.data, self.q, self.peer.v(qd)
            works["peer"] = lambda: pin.rnea(model, data, q, v, v)
        times = interleaved(works, self.seconds / 2)
        row = Row(f"{title} effort, one (peer: rnea)", times.best("one") * 1e6)
        if self.peer is not None:
            row.worst = peers.check(1e-11, effort=(effort(), self.peer.effort(self.phi, qd, qdd)))["effort"]
            row.peer, row.ratio = times.best("peer") * 1e6, times.ratio("one", "peer")
        return row

    def everyday_rows(self, title: str) -> list[Row]:
        """Return rows for the public methods, with labels and checks."""
        m, phi, hand = self.mechanism, self.phi, self.hand
        works = {
            "at().coefficients()": lambda: m.at(phi).coefficients(hand),
            "at().dynamics()": lambda: m.at(phi).dynamics(),
        }
        times = interleaved(works, self.seconds / 2)
        targets = {"at().coefficients()": "≤ 15 µs"}
        return [Row(f"{title} {k}", times.best(k) * 1e6, target=targets.get(k, "")) for k in works]

    def toolbox_row(self, title: str) -> Row | None:
        """G and H against roboticstoolbox."""
        if peers.toolbox is None:
            return None
        peer = peers.ToolboxPeer(self.mechanism, self.hand)
        worst = max(peers.check_rates(self.mechanism, peer, self.hand, self.phi).values())
        (evaluate, take), state, q = self.getter(2), self.state, peer.q(self.phi)
        works = {"one": lambda: take(evaluate(state)), "peer": lambda: peer.raw_rates(q)}
        times = interleaved(works, self.seconds / 2)
        row = Row(f"{title} G, H, one (peer: jacob0, hessian0)", times.best("one") * 1e6, worst=worst)
        row.peer, row.ratio = times.best("peer") * 1e6, times.ratio("one", "peer")
        return row

    def agreement(self, check: Callable[[], dict[str, float]]) -> float | None:
        """Worst mismatch, where there is a peer."""
        return None if self.peer is None else max(check().values())


def curve(report: Report, seconds: float, shape: str, make: Callable[[int], kic.Mechanism]) -> None:
    """Cost against the number of joints."""
    columns: dict[str, list[float]] = {}
    for size in CURVE:
        arm = Arm(make(size), "hand", seconds, CURVE_BATCH)
        works: dict[str, Callable[[], object]] = {}
        for name, evaluation in (("G, H", arm.getter(2)), ("I*, P*", arm.modeller())):
            ours = arm.works(evaluation)
            works[name], works[f"{name}, batch"] = ours["one"], ours["batch, out"]
        if arm.peer is not None:
            peers.check_rates(arm.mechanism, arm.peer, "hand", arm.phi)
            peers.check_dynamics(arm.mechanism, arm.peer, arm.phi)
            works["peer G, H"], works["peer M, C"] = arm.peer_rates()["peer"], arm.peer_dynamics()["peer"]
        times = interleaved(works, seconds)
        for name in works:
            count = CURVE_BATCH if name.endswith("batch") else 1
            columns.setdefault(name, []).append(times.best(name) / count * 1e6)
    cells = [[f"{n} joints", *(micro(c[i]) for c in columns.values())] for i, n in enumerate(CURVE)]
    fitted = [f"{exponent(CURVE[1:], c[1:]):.2f}" for c in columns.values()]
    report.table([f"{shape}, µs", *columns], [*cells, ["exponent, 12 to 60", *fitted]])


def header(report: Report) -> None:
    """Date, processor, versions."""
    report.say("# Benchmarks")
    report.say()
    report.say(f"- {datetime.date.today().isoformat()}, {_processor()}, {_cores()}")
    names = ["numpy", "numba", "pin", "roboticstoolbox-python", "exudyn"]
    report.say(
        f"- kic {kic.__version__}, Python {platform.python_version()}, {', '.join(map(_version, names))}"
    )
    report.say(
        "- Times: best of many interleaved rounds, in µs for one configuration; kic/peer: median of the "
        f"ratios within a round; batches of {BATCH}; `out`: memory used again."
    )
    report.say(
        "- Peer, unless said otherwise: Pinocchio from Python, computeJointJacobians + getFrameJacobian + "
        "computeJointKinematicHessians + getFrameKinematicHessian, or crba + computeCoriolisMatrix."
    )
    report.say(
        "- bytes: written for one configuration; fill: plain `ndarray.fill` of as much memory by one thread, "
        "new where kic's is new."
    )
    for line in peers.missing():
        report.say(f"- {line}")
    report.say()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{usable} cores{load}"


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"no {name}"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument(
        "--only",
        choices=[
            "arms",
            "couplings",
            "curves",
            "free-base",
            "loops",
            "motions",
            "operational",
            "redundancy",
            "starts",
            "swings",
        ],
        help="one part of it",
    )
    given = parser.parse_args()
    seconds = 0.4 if given.quick else 3.0
    report = Report()
    header(report)
    if given.only in (None, "arms"):
        rows: list[Row] = []
        for title, mechanism, hand in (
            ("6R tip", peers.serial_arm(6), "tip"),
            ("6R hand", peers.serial_arm(6), "hand"),  # six rows: with the angular velocity
            ("puma560 tool", kic.load("puma560"), "tool"),
        ):
            arm = Arm(mechanism, hand, seconds)
            rows += arm.rates_rows(title)
            rows += arm.dynamics_rows(title)
            rows += arm.everyday_rows(title)
            extra = arm.toolbox_row(title)
            rows += [extra] if extra else []
        report.table(HEADINGS, [row.cells() for row in rows])
    if given.only in (None, "curves"):
        curve(report, seconds, "serial chain", peers.serial_arm)
        curve(report, seconds, "binary tree", peers.binary_tree)
    if given.only in (None, "couplings"):
        couplings.table(report, seconds)
    if given.only in (None, "free-base"):
        free_base.table(report, seconds)
    if given.only in (None, "loops"):
        loops.table(report, seconds)
    if given.only in (None, "motions"):
        motions.table(report, seconds)
    if given.only in (None, "operational"):
        operational.table(report, seconds)
    if given.only in (None, "redundancy"):
        redundancy.table(report, seconds)
    if given.only in (None, "swings"):
        swings.table(report, seconds)
    if given.only in (None, "starts"):
        starts.table(report)
    if given.output:
        given.output.write_text("\n".join(report.lines), encoding="utf-8")


if __name__ == "__main__":
    main()
