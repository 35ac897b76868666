"""A control step of a redundant arm: rates, accelerations and efforts, compared with matrix formulas.

The peer takes the Jacobian, its change in time, the mass and the Coriolis matrix from Pinocchio, and solves
with NumPy; the law of (4-70) and its derivative in time. Both are compared first.
"""

from __future__ import annotations

import numpy as np

import kic
from benchmarks import peers, timing
from benchmarks.timing import Report, Row, Work, interleaved, reused

POSTURE = (0.1, 0.3, 0.2, -1.5, 0.3, 1.8, 0.2)
WEIGHTS = ("minimum norm", "minimum kinetic energy")
# microseconds, of a control step with the memory used again
TARGETS = {"one, out": "≤ 15 µs"}


class Step:
    """A control step of the 7-joint arm, for all six rows of its hand.

    Parameters
    ----------
    weight : str
        What is least.
    """

    def __init__(self, weight: str) -> None:
        self.mechanism, self.weight = kic.load("panda"), weight
        c = self.mechanism.at(POSTURE)
        rng = np.random.default_rng(0)
        self.state, self.ud, self.udd = c.state, rng.normal(size=6), rng.normal(size=6)
        self.states = self.mechanism.at(np.array(POSTURE) + 0.1 * rng.normal(size=(timing.BATCH, 7))).state
        self.resolve = self.mechanism.prepare.resolve_redundancy("link7", criterion=weight, effort=True)

    def works(self) -> dict[str, Work]:
        """One configuration and a batch, in new and in reused memory, until the arrays are available."""
        f, state, ud, udd = self.resolve, self.state, self.ud, self.udd
        once, many = reused(f, state, ud, udd), reused(f, self.states, ud, udd)
        rates = self.mechanism.prepare.resolve_redundancy("link7", criterion=self.weight, order=1)
        first = reused(rates, state, ud)
        return {
            "one": lambda: f(state, ud, udd).effort,
            "one, out": lambda: once().effort,
            "rates alone, one, out": lambda: first().qd,
            "batch, out": lambda: many().effort,
        }

    def peer(self) -> tuple[Work, float]:
        """The same by Pinocchio and NumPy, and its largest difference from kic's."""
        peer, pin = peers.PinocchioPeer(self.mechanism), peers.pinocchio
        model, data, q, frame, axes = peer.model, peer.data, peer.q(POSTURE), peer.frame("link7"), peer.axes
        energy, ud, udd, unit = self.weight == WEIGHTS[1], self.ud, self.udd, np.eye(7)
        solve = np.linalg.solve

        def step() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            pin.computeJointJacobians(model, data, q)
            J = pin.getFrameJacobian(model, data, frame, axes)
            M = unit
            if energy:
                upper = pin.crba(model, data, q)
                M = np.triu(upper) + np.triu(upper, 1).T
            X = solve(M, J.T)
            A = J @ X
            multiplier = solve(A, ud)
            v = X @ multiplier
            pin.computeJointJacobiansTimeVariation(model, data, q, v)
            Jd = pin.getFrameJacobianTimeVariation(model, data, frame, axes)
            change = Jd.T @ multiplier
            if energy:
                C = pin.computeCoriolisMatrix(model, data, q, v)
                change = change - (C + C.T) @ v
            y = solve(M, change)
            a = y + X @ solve(A, udd - Jd @ v - J @ y)
            return v, a, pin.rnea(model, data, q, v, a)

        r, back = self.resolve(self.state, ud, udd), peer.back
        found = dict(zip(("qd", "qdd", "effort"), step(), strict=True))
        worst = peers.check(1e-10, **{name: (getattr(r, name), x[back]) for name, x in found.items()})
        return step, max(worst.values())


def table(report: Report, seconds: float) -> None:
    """Report all benchmarks of redundancy resolution."""
    report.say(
        "Redundancy: rates, consistent accelerations and efforts of the panda for the six rows of its hand. "
        "Peer: Jacobian, its change, mass and Coriolis matrix and efforts by Pinocchio, the rest by "
        f"NumPy; batches of {timing.BATCH}, which the peer takes one by one."
    )
    report.say()
    rows = []
    for weight in WEIGHTS:
        step = Step(weight)
        works = step.works()
        theirs, worst = step.peer() if peers.pinocchio is not None else (None, None)
        times = interleaved(works if theirs is None else {**works, "peer": theirs}, seconds)
        for name in works:
            row = Row.of(f"panda, {weight}, {name}", times, name, target=TARGETS.get(name, ""), worst=worst)
            if name.startswith("rates"):  # the peer gives accelerations and efforts, too
                row.peer = row.ratio = None
            rows.append(row)
    report.rows(rows)
