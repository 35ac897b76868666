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
from benchmarks import (
    couplings,
    free_base,
    loops,
    motions,
    operational,
    peers,
    redundancy,
    starts,
    swings,
    timing,
)
from benchmarks.timing import Report, Row, Work, exponent, interleaved, micro, peer_ways, ways

CURVE, CURVE_BATCH = (6, 12, 24, 36, 48, 60), 256

# an evaluator, and a function that takes the arrays out of its results
Evaluation = tuple[kic.results.Evaluator, Callable[[Any], Any]]


def fill_of(size: int, fresh: bool = False) -> Callable[[], object]:
    """Plain filling of as much memory, the same or new."""
    count = size // 8
    if fresh:
        return lambda: np.empty(count).fill(1.0)
    block = np.zeros(count)
    return lambda: block.fill(1.0)


class Arm:
    """A mechanism with its peer, configurations, and the rows of the table."""

    def __init__(self, mechanism: kic.Mechanism, hand: str, seconds: float, batch: int | None = None) -> None:
        self.mechanism, self.hand, self.seconds = mechanism, hand, seconds
        rng = np.random.default_rng(1)
        names = mechanism.at().coordinates
        self.phi = rng.uniform(-1.5, 1.5, size=len(names))
        self.batch = rng.uniform(-1.5, 1.5, size=(batch or timing.BATCH, len(names)))
        self.state = mechanism.at(self.phi).state
        self.states = mechanism.at(self.batch).state
        self.peer = peers.PinocchioPeer(mechanism) if peers.pinocchio is not None else None
        if self.peer is not None:
            self.q, self.qs = self.peer.q(self.phi), self.peer.q(self.batch[: timing.PEER_BATCH])
            self.frame = self.peer.frame(hand)
            self.qd = rng.normal(size=len(names))
            self.v = self.peer.v(self.qd)

    def getter(self, order: int) -> Evaluation:
        """Evaluate, and the arrays of the hand as a caller takes them: r.hand.G, r.hand.H."""
        evaluate = self.mechanism.prepare.coefficients([self.hand], order=order)
        return evaluate, attrgetter(*(f"{self.hand}.{letter}" for letter in "GHD"[:order]))

    def modeller(self) -> Evaluation:
        """Evaluate, and r.I, r.P."""
        return self.mechanism.prepare.dynamics(loads=False), attrgetter("I", "P")

    def works(self, evaluation: Evaluation) -> dict[str, Work]:
        """One configuration and a batch, in new and in reused memory, until the arrays are available."""
        return ways(*evaluation, self.state, self.states)

    # the peer's side

    def peer_rates(self) -> dict[str, Work]:
        """Jacobian and Hessian, one configuration and a loop over configurations."""
        peer = self.peer
        return {} if peer is None else peer_ways(peer.raw_rates, self.q, self.qs, self.frame)

    def peer_dynamics(self) -> dict[str, Work]:
        """Mass matrix and Coriolis matrix, one configuration and a loop over configurations."""
        return {} if self.peer is None else peer_ways(self.peer.raw_dynamics, self.q, self.qs, self.v)

    def rows(
        self,
        title: str,
        works: dict[str, Work],
        peer: dict[str, Work],
        width: int,
        targets: dict[str, str],
        worst: float | None,
    ) -> list[Row]:
        """Return the rows of one quantity, timed together."""
        size = 8 * width
        fills = {
            "fill one": fill_of(size),
            "fill batch": fill_of(size * timing.BATCH),
            "fill batch, fresh": fill_of(size * timing.BATCH, fresh=True),
        }
        times = interleaved({**works, **peer, **fills}, self.seconds)
        rows = []
        for name in works:
            fill = "one" if not name.startswith("batch") else "batch" if "out" in name else "batch, fresh"
            speed = size * timing.members(name) / times.best(f"fill {fill}") / 1e9
            more = {"target": targets.get(name, ""), "size": size, "fill": speed, "worst": worst}
            rows.append(Row.of(f"{title}, {name}", times, name, **more))
        return rows

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
        evaluate, state = self.mechanism.prepare.dynamics(), self.state
        qd = qdd = np.linspace(0.1, 1, len(self.phi))

        def effort() -> np.ndarray:
            r = evaluate(state)
            return r.I @ qdd + r.P @ qd @ qd - r.load

        works: dict[str, Work] = {"one": effort}
        if self.peer is not None:
            pin, model, data, q, v = peers.pinocchio, self.peer.model, self.peer.data, self.q, self.peer.v(qd)
            works["peer"] = lambda: pin.rnea(model, data, q, v, v)
        times = interleaved(works, self.seconds / 2)
        row = Row.of(f"{title} effort, one (peer: rnea)", times, "one")
        if self.peer is not None:
            row.worst = peers.check(1e-11, effort=(effort(), self.peer.effort(self.phi, qd, qdd)))["effort"]
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
        return [Row.of(f"{title} {k}", times, k, target=targets.get(k, "")) for k in works]

    def toolbox_row(self, title: str) -> Row | None:
        """G and H against roboticstoolbox."""
        if peers.toolbox is None:
            return None
        peer = peers.ToolboxPeer(self.mechanism, self.hand)
        worst = max(peers.check_rates(self.mechanism, peer, self.hand, self.phi).values())
        (evaluate, take), state, q = self.getter(2), self.state, peer.q(self.phi)
        works = {"one": lambda: take(evaluate(state)), "peer": lambda: peer.raw_rates(q)}
        times = interleaved(works, self.seconds / 2)
        return Row.of(f"{title} G, H, one (peer: jacob0, hessian0)", times, "one", worst=worst)

    def agreement(self, check: Callable[[], dict[str, float]]) -> float | None:
        """Worst mismatch, where there is a peer."""
        return None if self.peer is None else max(check().values())


def arms(report: Report, seconds: float) -> None:
    """Open chains: G, H, D of a body or point, I*, P*, and the public methods."""
    rows: list[Row] = []
    for title, mechanism, hand in (
        ("6R tip", peers.serial_arm(6), "tip"),
        ("6R hand", peers.serial_arm(6), "hand"),  # six rows: with the angular velocity
        ("puma560 tool", kic.load("puma560"), "tool"),
    ):
        arm = Arm(mechanism, hand, seconds)
        rows += [*arm.rates_rows(title), *arm.dynamics_rows(title), *arm.everyday_rows(title)]
        rows += [row for row in [arm.toolbox_row(title)] if row]
    report.rows(rows)


def curves(report: Report, seconds: float) -> None:
    """Cost against the number of joints."""
    for shape, make in (("serial chain", peers.serial_arm), ("binary tree", peers.binary_tree)):
        curve(report, seconds, shape, make)


def curve(report: Report, seconds: float, shape: str, make: Callable[[int], kic.Mechanism]) -> None:
    """Cost against the number of joints."""
    columns: dict[str, list[float]] = {}
    for size in CURVE:
        arm = Arm(make(size), "hand", seconds, CURVE_BATCH)
        works: dict[str, Work] = {}
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
    names = ["numpy", "numba", "pin", "roboticstoolbox-python", "exudyn", "mujoco"]
    report.say(
        f"- kic {kic.__version__}, Python {platform.python_version()}, {', '.join(map(_version, names))}"
    )
    report.say(
        "- Times: best of many interleaved rounds, in µs for one configuration; kic/peer: median of the "
        f"ratios within a round; batches of {timing.BATCH}; `out`: memory used again."
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


PARTS: dict[str, Callable[[Report, float], None]] = {
    "arms": arms,
    "curves": curves,
    "couplings": couplings.table,
    "free-base": free_base.table,
    "loops": loops.table,
    "motions": motions.table,
    "operational": operational.table,
    "redundancy": redundancy.table,
    "swings": swings.table,
    "starts": starts.table,
}


def main(arguments: list[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--once", action="store_true", help="call each job once; times mean nothing")
    parser.add_argument("--only", choices=sorted(PARTS), help="one part of it")
    given = parser.parse_args(arguments)
    report = Report()
    header(report)
    for name in [given.only] if given.only else PARTS:
        PARTS[name](report, 0.0 if given.once else 0.4 if given.quick else 3.0)
    if given.output:
        given.output.write_text("\n".join(report.lines), encoding="utf-8")


if __name__ == "__main__":
    main()
