"""Operational space: Λ, μ, p and the consistent inverse of a task, compared with Pinocchio and NumPy.

kic gives μ as a tensor, for all rates at once; the peer gives q̇ᵀ μ q̇ at one rate.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np

import kic
from benchmarks import peers, timing
from benchmarks.timing import Report, Row, Work, interleaved, peer_ways, ways

# arms, the task, and how far configurations of a batch are from the drawing
CASES = (("panda", "link7"), ("puma560", "tool"))
SPREAD = 0.3
TARGETS = {"one, out": "≤ 10 µs"}
Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Task:
    """A task of an open arm at configurations near the reference, with a prepared evaluator."""

    def __init__(self, model: str, task: str, batch: int | None = None) -> None:
        self.mechanism, self.task = kic.load(model), task
        self.evaluate = self.mechanism.prepare.operational_space(task)
        drawn = self.mechanism.at()._phi
        rng = np.random.default_rng(1)
        self.phi = drawn + rng.uniform(-SPREAD, SPREAD, size=drawn.shape)
        self.many = drawn + rng.uniform(-SPREAD, SPREAD, size=(batch or timing.BATCH, len(drawn)))
        self.qd = rng.normal(size=drawn.shape)

    def works(self) -> dict[str, Work]:
        """One configuration and a batch, until the arrays are available."""
        take, at = attrgetter("Lambda", "mu", "p", "inverse"), self.mechanism.at
        return ways(self.evaluate, take, at(self.phi).state, at(self.many).state)


class Peer:
    """The same task from Pinocchio's mass matrix, Coriolis matrix, gravity and frame Jacobian, and NumPy."""

    def __init__(self, task: Task) -> None:
        self.arm = peers.PinocchioPeer(task.mechanism)
        self.task, self.frame = task, self.arm.frame(task.task)
        # of a body all six rows, of a point three
        self.rows = len(task.mechanism.at(task.phi).coefficients(task.task, order=1).rows)
        self.q, self.qs = self.arm.q(task.phi), self.arm.q(task.many[: timing.PEER_BATCH])
        self.v = self.arm.v(task.qd)

    def raw(self, q: np.ndarray, v: np.ndarray) -> Parts:
        """Λ, q̇ᵀ μ q̇, p and the consistent inverse, which are timed."""
        pin, model, data, rows = peers.pinocchio, self.arm.model, self.arm.data, self.rows
        upper = np.triu(pin.crba(model, data, q))
        mass = upper + np.triu(upper, 1).T
        coriolis = pin.computeCoriolisMatrix(model, data, q, v) @ v
        gravity = pin.computeGeneralizedGravity(model, data, q)
        pin.computeJointJacobiansTimeVariation(model, data, q, v)  # the Jacobians, too
        G = pin.getFrameJacobian(model, data, self.frame, self.arm.axes)[:rows]
        drift = pin.getFrameJacobianTimeVariation(model, data, self.frame, self.arm.axes)[:rows] @ v
        mobility = np.linalg.solve(mass, G.T)
        Lambda = np.linalg.inv(G @ mobility)
        inverse = mobility @ Lambda
        return Lambda, inverse.T @ coriolis - Lambda @ drift, inverse.T @ gravity, inverse

    def works(self) -> dict[str, Work]:
        """One configuration, and a loop over configurations."""
        return peer_ways(self.raw, self.q, self.qs, self.v)

    def differs(self) -> float:
        """Largest difference from kic's at the configuration and rate of the table."""
        Lambda, power, p, inverse = self.raw(self.q, self.v)
        s, qd = self.task.evaluate(self.task.mechanism.at(self.task.phi).state), self.task.qd
        pairs = {
            "Lambda": (s.Lambda, Lambda),
            "mu": (np.einsum("pab,a,b->p", s.mu, qd, qd), power),
            "p": (s.p, p),
            "inverse": (s.inverse, inverse[self.arm.back]),
        }
        return max(peers.check(1e-10, **pairs).values())


def case_rows(model: str, of: str, seconds: float) -> list[Row]:
    """Return all rows of one arm, single configurations and batches, with the peer."""
    task = Task(model, of)
    peer = Peer(task) if peers.pinocchio is not None else None
    worst = None if peer is None else peer.differs()
    times = interleaved({**task.works(), **({} if peer is None else peer.works())}, 2 * seconds)
    title = f"{model} {of} Λ, μ, p, J̄"
    return [
        Row.of(f"{title}, {name}", times, name, target=TARGETS.get(name, ""), worst=worst)
        for name in task.works()
    ]


def table(report: Report, seconds: float) -> None:
    """Report all benchmarks of tasks."""
    report.say(
        "Operational space of a task: Λ, μ for all rates, p and the dynamically consistent inverse. Peer: "
        "the same at one rate from Pinocchio's crba, computeCoriolisMatrix, computeGeneralizedGravity and "
        "computeJointJacobiansTimeVariation, put together by NumPy. "
        f"Batches of {timing.BATCH}, of the peer a loop over {timing.PEER_BATCH}."
    )
    report.say()
    report.rows(row for model, of in CASES for row in case_rows(model, of, seconds))
