"""Least-effort motions of closed mechanisms by IPOPT: `python -m tests.benchmarks.optimal_motions`.

Loops are closed inside exported functions, which CasADi differentiates exactly, or by closure equations among
the constraints, or efforts have finite differences only. Motions have intervals of constant acceleration.
Times are processor times of the solver, without its construction.
"""

from __future__ import annotations

import time
from typing import Any

import casadi
import numpy as np

import kic
from kic import trajectory

INTERVALS, DURATION, LIMIT_S = 20, 0.3, 60.0
# end of the motion by its change from the start; the motion starts at the reference configuration
CASES = {"five-bar": [-0.3217, 0.4292], "gough-stewart": [0.05, -0.05, 0.025, 0.04, -0.03, 0.015]}
ROADS = ("chords", "Newton steps", "fast_newton", "closure equations", "finite differences")
QUIET = {
    "ipopt.print_level": 0,
    "print_time": False,
    "ipopt.sb": "yes",
    "ipopt.max_cpu_time": LIMIT_S,
    "ipopt.max_iter": 300,
}


def efforts(m: kic.Mechanism, road: str) -> tuple[Any, int]:
    """Return the function of q, qd, qdd, and of a state for closure equations, and the size of the state."""
    near, size = m.at().state, len(m.coordinates)
    if road == "closure equations":
        f = m.export("inverse_dynamics", to="casadi", close="equations")
        q, qd, qdd = (casadi.SX.sym(name, size) for name in ("q", "qd", "qdd"))
        state = casadi.SX.sym("state", near.size)
        effort, closure, values, _ = f(state, qd, qdd)
        gaps = casadi.vertcat(closure, values - q)
        return casadi.Function("efforts", [q, qd, qdd, state], [effort, gaps]), near.size
    named = {"rootfinder": road} if road in ("chords", "fast_newton") else {}
    f = m.export("inverse_dynamics", to="casadi", close=True, **named)
    differences = road == "finite differences"
    kind = casadi.MX if named or differences else casadi.SX
    motion = [kind.sym(name, size) for name in ("q", "qd", "qdd")]
    options = {"enable_fd": True, "enable_forward": False, "enable_reverse": False, "never_inline": True}
    return casadi.Function("efforts", motion, [f(*motion, near)[0]], options if differences else {}), 0


def solve(name: str, road: str) -> tuple[int, float, float, str]:
    """Return the number of iterations, the time, the cost and the status."""
    m = kic.load(name)
    start = m._model.coordinate_values(m.coordinates, m.at().state[None])[0].real
    ends, size, h = np.array([start, start + CASES[name]]), len(start), 1 / INTERVALS
    q0, qd0, *_ = trajectory.quintic(*ends, DURATION)(np.linspace(0, DURATION, INTERVALS + 1))
    guess = np.hstack([q0, DURATION * qd0])
    low = np.full(guess.shape, -np.inf)
    low[[0, -1]] = np.hstack([ends, np.zeros_like(ends)])
    f, extra = efforts(m, road)
    x, states = casadi.MX.sym("x", 2 * size, INTERVALS + 1), casadi.MX.sym("states", extra, INTERVALS)
    a, b = x[:, :-1], x[:, 1:]
    w = (a[size:, :] + b[size:, :]) / 2
    motion = [(a[:size, :] + b[:size, :]) / 2, w / DURATION, (b[size:, :] - a[size:, :]) / (h * DURATION**2)]
    T, *gaps = f.map(INTERVALS).call(motion + [states] * bool(extra))
    constraints = casadi.vertcat(*map(casadi.vec, [b[:size, :] - a[:size, :] - h * w, *gaps]))
    variables = casadi.vertcat(casadi.vec(x), casadi.vec(states))
    first = [guess.ravel()]
    if extra:
        first.append(m.at((q0[1:] + q0[:-1]) / 2, near=m.at()).state.ravel())
    free = np.full(extra * INTERVALS, np.inf)
    limits = (
        np.concatenate([low.ravel(), -free]),
        np.concatenate([np.where(np.isinf(low), np.inf, low).ravel(), free]),
    )
    options = {"ipopt.hessian_approximation": "limited-memory"} if road == "finite differences" else {}
    nlp = {"x": variables, "f": h * DURATION * casadi.sumsqr(T), "g": constraints}
    solver = casadi.nlpsol("solver", "ipopt", nlp, {**QUIET, **options})
    begun = time.process_time()
    r = solver(x0=np.concatenate(first), lbx=limits[0], ubx=limits[1], lbg=0, ubg=0)
    seconds, stats = time.process_time() - begun, solver.stats()
    return stats["iter_count"], seconds, float(r["f"]), stats["return_status"]


def main() -> None:
    """Print iterations and times."""
    print(f"{'mechanism':15}{'loops':20}{'iterations':>11}{'s':>9}{'cost':>16}  status")
    for name in CASES:
        for road in ROADS:
            rounds = [solve(name, road) for _ in range(1 if road == "finite differences" else 3)]
            count, seconds, cost, status = min(rounds, key=lambda r: r[1])
            print(f"{name:15}{road:20}{count:11}{seconds:9.3f}{cost:16.8f}  {status}", flush=True)


if __name__ == "__main__":
    main()
