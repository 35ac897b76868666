"""Least-effort motions of closed mechanisms by IPOPT: `python -m tests.benchmarks.optimal_motions`.

Loops are closed inside exported functions. The solver takes their exported derivatives, CasADi differentiates
them exactly, or efforts have finite differences only. Or closure equations are among the constraints. Motions
have intervals of constant acceleration. Times are processor times of the solver, without its construction.
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
ROADS = ("derivatives=2", "chords", "Newton steps", "fast_newton", "closure equations", "finite differences")
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
        f = m.export.inverse_dynamics(close="equations").to_casadi()
        q, qd, qdd = (casadi.SX.sym(name, size) for name in ("q", "qd", "qdd"))
        state = casadi.SX.sym("state", near.size)
        effort, closure, values, _ = f(state, qd, qdd)
        gaps = casadi.vertcat(closure, values - q)
        return casadi.Function("efforts", [q, qd, qdd, state], [effort, gaps]), near.size
    finder = road if road in ("chords", "fast_newton") else None
    f = m.export.inverse_dynamics(close=True).to_casadi(rootfinder=finder)  # type: ignore[arg-type]
    differences = road == "finite differences"
    kind = casadi.MX if finder or differences else casadi.SX
    motion = [kind.sym(name, size) for name in ("q", "qd", "qdd")]
    options = {"enable_fd": True, "enable_forward": False, "enable_reverse": False, "never_inline": True}
    return casadi.Function("efforts", motion, [f(*motion, near)[0]], options if differences else {}), 0


def derivatives(m: kic.Mechanism, x: Any, motion: Any, scale: float, constraints: int) -> dict[str, Any]:
    """Return the gradient and the Hessian of scale Σ TᵀT by x, in which motions (q, q̇, q̈) are linear."""
    f = m.export.inverse_dynamics(close=True, derivatives=2).to_casadi()
    q, qd, qdd, weights = (casadi.SX.sym(name, len(m.coordinates)) for name in ("q", "qd", "qdd", "weights"))
    r, one = f(q=q, qd=qd, qdd=qdd, weights=weights, near=m.at().state), casadi.vertcat(q, qd, qdd)
    T, J = r["effort"], casadi.horzcat(*(r[f"effort_d_{name}"] for name in ("q", "qd", "qdd")))
    second = J.T @ J + casadi.substitute(r["hessian"], weights, T)  # of the weighted sum, with T as weights
    gradient = casadi.Function("gradient", [one], [2 * J.T @ T])
    hessian = casadi.Function("hessian", [one], [2 * second], {"cse": True})
    cost, along = casadi.Function("cost", [one], [casadi.sumsqr(T)]), casadi.Function("along", [x], [motion])
    slope = casadi.jacobian(casadi.vec(motion), casadi.vec(x))
    A, count = casadi.Function("slope", [x], [slope])(0), motion.shape[1]
    v, p, of_cost, others = (
        casadi.MX.sym(*a) for a in (("v", x.numel()), ("p", 0), ("f",), ("g", constraints))
    )
    now = along(casadi.reshape(v, *x.shape))
    blocks = casadi.horzsplit(hessian.map(count)(now), one.numel())
    value, first = casadi.sum2(cost.map(count)(now)), A.T @ casadi.vec(gradient.map(count)(now))
    whole = casadi.triu(of_cost * scale * (A.T @ casadi.diagcat(*blocks) @ A))  # constraints are linear
    return {
        "grad_f": casadi.Function("grad_f", [v, p], [scale * value, scale * first]),
        "hess_lag": casadi.Function("hess_lag", [v, p, of_cost, others], [whole]),
    }


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
    if road == "derivatives=2":
        options = derivatives(m, x, casadi.vertcat(*motion), h * DURATION, constraints.numel())
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
