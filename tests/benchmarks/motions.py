"""Inverse and forward dynamics along a motion, beside the road by I* and P*, and regressors; Pinocchio.

Arms against `rnea`, `aba` and `computeJointTorqueRegressor`, mechanisms with loops against
`constraintDynamics`. Results are compared first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import kic
from benchmarks import peers, timing
from benchmarks.closed_peers import SIX_ROWS, THREE_ROWS, ClosedPeer, with_masses
from benchmarks.loops import Loop
from benchmarks.peers import PinocchioPeer, check, serial_arm
from benchmarks.timing import Report, Work, interleaved, micro, reused

HEADINGS = [
    "per motion", "kic µs", "by tensors µs", "peer µs", "kic/tensors", "kic/peer", "target", "differs",
]  # fmt: skip
ARM_TARGETS = {
    ("puma560", "inverse, out"): "≤ 1.2",
    ("puma560", "inverse, batch"): "≤ 0.25",
    ("puma560", "forward, out"): "≤ 1.3",
    ("puma560", "forward, batch"): "≤ 0.35",
    ("chain of 60", "inverse, out"): "≤ 1.3",
    ("puma560", "regressor, fresh"): "≤ 1.0",
}
LOOP_TARGETS = {("four-bar", THREE_ROWS): "≤ 1.0", ("gough-stewart", THREE_ROWS): "≤ 1.0"}
LOOP_TARGETS["gough-stewart", SIX_ROWS] = "≤ 0.4"


def by_tensors(mechanism: kic.Mechanism, forward: bool) -> object:
    """Return a function of state, rates, and accelerations or efforts, which forms I* and P* first."""
    evaluate = mechanism.prepare.dynamics()

    def work(state: np.ndarray, v: np.ndarray, second: np.ndarray) -> np.ndarray:
        r = evaluate(state)
        bias = (r.P @ v) @ v + r.damping @ v - r.load
        return np.linalg.solve(r.I, second - bias) if forward else r.I @ second + bias

    return work


def works(mechanism: kic.Mechanism, state: np.ndarray, v: np.ndarray, x: np.ndarray) -> dict[str, Work]:
    """Return the calls for one motion and for a batch, where x are accelerations and efforts alike."""
    made: dict[str, Work] = {}
    one = state[0], v[0], x[0]  # the peers, too, are given their arrays ready
    for name, f in (
        ("inverse", mechanism.prepare.inverse_dynamics()),
        ("forward", mechanism.prepare.forward_dynamics()),
    ):
        made[f"{name}, fresh"] = lambda f=f: f(*one)
        made[f"{name}, out"] = reused(f, *one)
        made[f"{name}, batch"] = lambda f=f: f(state, v, x)
        other = by_tensors(mechanism, name == "forward")
        made[f"{name}, tensors"] = lambda other=other: other(*one)
    return made


def regressors(mechanism: kic.Mechanism, state: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, Work]:
    """Return the calls of the regressor for one motion and for a batch."""
    f, one = mechanism.prepare.regressor(), (state[0], v[0], a[0])
    return {"regressor, fresh": lambda: f(*one), "regressor, batch": lambda: f(state, v, a)}


def lines(
    title: str, ours: dict[str, Work], theirs: dict[str, Work], worst: float, seconds: float, targets: dict
) -> Iterator[list[str]]:
    """Yield the rows of the table for one mechanism; a peer's name begins with the kind of dynamics."""
    times = interleaved({**ours, **theirs}, seconds)
    for name in ours:
        kind, way = name.split(", ")
        if way == "tensors":
            continue
        count = timing.BATCH if way == "batch" else 1
        for peer in [p for p in theirs if p.startswith(kind)] or [""]:
            known, tensors = bool(peer), f"{kind}, tensors"
            label = peer.partition(" ")[2]
            yield [
                f"{title}, {name}" + (f", against {label}" if known else ""),
                micro(times.best(name) / count * 1e6),
                micro(times.best(tensors) * 1e6) if tensors in ours else "",
                micro(times.best(peer) * 1e6) if known else "",
                f"{times.ratio(name, tensors) / count:.3f}" if tensors in ours else "",
                f"{times.ratio(name, peer) / count:.2f}" if known else "",
                targets.get((title, name), targets.get((title, label), "") if way == "out" else ""),
                f"{worst:.0e}",
            ]


def arm_rows(title: str, mechanism: kic.Mechanism, seconds: float) -> Iterator[list[str]]:
    """Yield the rows of an open chain."""
    rng, size = np.random.default_rng(3), len(mechanism.coordinates)
    phi, v, x = rng.uniform(-1, 1, size=(3, timing.BATCH, size))
    state = mechanism.at(phi).state
    ours, theirs, worst = works(mechanism, state, v, x) | regressors(mechanism, state, v, x), {}, 0.0
    if peers.pinocchio is not None:
        pin, peer = peers.pinocchio, PinocchioPeer(mechanism)
        model, data, q, w, y = peer.model, peer.data, peer.q(phi[0]), peer.v(v[0]), peer.v(x[0])
        theirs = {
            "inverse rnea": lambda: pin.rnea(model, data, q, w, y),
            "forward aba": lambda: pin.aba(model, data, q, w, y),
            "regressor of Pinocchio": lambda: pin.computeJointTorqueRegressor(model, data, q, w, y),
        }
        numbers = np.concatenate([one.toDynamicParameters() for one in model.inertias[1:]])
        found = check(
            1e-9,
            efforts=(ours["inverse, out"](), np.array(theirs["inverse rnea"]())[peer.back]),
            accelerations=(ours["forward, out"](), np.array(theirs["forward aba"]())[peer.back]),
            batch=(ours["inverse, batch"]()[0], ours["inverse, out"]()),
            regressor=(
                ours["regressor, fresh"]() @ mechanism.at(phi[0]).regressor().values,
                (np.array(theirs["regressor of Pinocchio"]()) @ numbers)[peer.back],
            ),
        )
        worst = max(found.values())
    return lines(title, ours, theirs, worst, seconds, ARM_TARGETS)


def loop_rows(name: str, closures: tuple[str, ...], seconds: float) -> Iterator[list[str]]:
    """Yield the rows of a mechanism with loops."""
    mechanism = with_masses(kic.load(name))
    loop = Loop(mechanism, mechanism.bodies[-1].name)
    states = loop.states()
    states[0] = loop.near.state
    v, x = np.random.default_rng(3).normal(size=(2, timing.BATCH, len(loop.inputs)))
    ours, theirs, worst = works(mechanism, states, v, x) | regressors(mechanism, states, v, x), {}, 0.0
    if peers.pinocchio is not None:
        qdd = ours["forward, out"]()
        for kind in closures:
            peer = ClosedPeer(mechanism, kind)
            q, tau = peer.q(loop.near), peer.tau(x[0])
            w, a = peer.motion(loop.near, v[0], qdd)
            theirs[f"forward {kind}"] = lambda peer=peer, q=q, w=w, tau=tau: peer.raw(q, w, tau)
            found = check(1e-10, accelerations=(a, np.array(theirs[f"forward {kind}"]())))
            worst = max(worst, *found.values())
    return lines(name, ours, theirs, worst, seconds, LOOP_TARGETS)


def table(report: Report, seconds: float) -> None:
    """Write the table."""
    rows = list(arm_rows("puma560", kic.load("puma560"), seconds))
    rows += arm_rows("chain of 60", serial_arm(60), seconds)
    for name in ("four-bar", "gough-stewart"):
        rows += loop_rows(name, (SIX_ROWS, THREE_ROWS), seconds)
    report.table(HEADINGS, rows)
