"""Rows of the ladder of benchmarks: calls of public names, which earlier commits can run, too.

``python -m benchmarks.rows`` reads a name of a row and seconds from each line, and answers with the seconds
per member.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np

import kic
from benchmarks.ladder import ladder
from benchmarks.peers import serial_arm
from benchmarks.timing import Work, interleaved, reused

# distances of a batch from the drawing, and of inputs from a solved configuration; nodes of a path
SPREAD, STEP, NODES = 0.05, 0.01, 60

# file or function, body or point, members of a batch, and of one with third derivatives, where a call is long
MECHANISMS: dict[str, tuple[Any, str, int, int]] = {
    "arm": ("puma560", "tool", 4096, 256),
    "five-bar": ("five-bar", "tip", 4096, 256),
    "delta": ("delta", "gripper", 256, 256),
    "gough-stewart": ("gough-stewart", "platform", 256, 32),
    "quadruped": ("quadruped", "head", 256, 32),
    "chain of 60": (lambda: serial_arm(60), "hand", 8, 2),
    "32 four-bars": (lambda: ladder(32), "tip", 32, 32),
    "geared five-bar": ("geared-five-bar", "tip", 256, 256),
    "four-bar": ("four-bar", "tip", 4096, 256),
}
# evaluators of `prepare`, and the arrays that are taken of their results `r`
QUESTIONS = {
    "coefficients(of, order=1)": "r[of].G",
    "coefficients(of, order=2)": "(r[of].G, r[of].H)",
    "coefficients(of, order=3)": "(r[of].G, r[of].H, r[of].D)",
    "dynamics()": "(r.I, r.P, r.load)",
    "inverse_dynamics()": "r",
    "forward_dynamics()": "r",
    "motion(of)": "(r.value, r.velocity, r.acceleration, r.jerk)",
    "position()": "r",
}
OF_ARM = {
    "operational_space(of)": "(r.Lambda, r.mu, r.p, r.inverse)",
    "resolve_redundancy(of)": "(r.qd, r.qdd)",
}
GEARED = {
    "coefficients(of, order=2, wrt='E')": "(r[of].G, r[of].H)",
    "coefficients(of, order=3, wrt='E')": "(r[of].G, r[of].H, r[of].D)",
}
# methods; `x` are inputs a step away from the configuration `c`
METHODS = ("m.at(x, near=c)", "m.at(x, near=c).coefficients(of)", "m.at(x, near=c).dynamics()")
NEAR_ONE, TURN = "m.at(batch, near=c)", "m.path(turn)"


@cache
def place(name: str) -> dict[str, Any]:
    """Return by name what calls use; `inputs` are arguments of evaluators for a batch near the drawing."""
    make, of, size, _ = MECHANISMS[name]
    m = kic.load(make) if isinstance(make, str) else make()
    drawn, rng = m.at(), np.random.default_rng(1)
    values = np.array([float(drawn.value(x)) for x in m.coordinates])
    turn = values + np.linspace(0, 2 * np.pi, NODES)[:, None]
    values = values + rng.uniform(-SPREAD, SPREAD, size=(size, len(values)))
    widths = dict.fromkeys(("qd", "qdd", "qddd", "effort"), len(m.coordinates)) | {"ud": 3, "udd": 3}
    inputs = {x: rng.normal(size=(size, width)) for x, width in widths.items()}
    inputs |= {"state": m.at(values, near=drawn).state, "values": values + STEP}
    solved = {"c": m.at(values[0], near=drawn), "x": inputs["values"][0], "batch": inputs["values"]}
    return {"m": m, "of": of, "inputs": inputs, "turn": turn, **solved}


def rows() -> dict[str, tuple[str, str, str, str, int]]:
    """Return mechanism, call, arrays of its result, mode and number of members of each row."""
    found = []
    for name, (_, _, size, third) in MECHANISMS.items():
        more = {"arm": QUESTIONS | OF_ARM, "geared five-bar": GEARED, "four-bar": {}}
        for call, arrays in more.get(name, QUESTIONS).items():
            many = third if "order=3" in call else size
            found += [(name, call, arrays, mode, n) for mode, n in (("one", 1), ("out", 1), ("batch", many))]
        found += [(name, call, "", "method", 1) for call in METHODS]
        if name in ("four-bar", "five-bar", "delta", "gough-stewart"):
            found.append((name, NEAR_ONE, "", "method", size))
    found.append(("four-bar", TURN, "", "method", NODES))
    return {", ".join((name, call, mode)): row for row in found for name, call, _, mode, _ in [row]}


ROWS = rows()


@cache
def work(row: str) -> Work:
    """Return the call of a row, until the arrays are available."""
    name, call, arrays, mode, members = ROWS[row]
    known = place(name)
    if mode == "method":
        return eval(f"lambda: {call}", dict(known))
    evaluate, take = (eval(text, dict(known)) for text in (f"m.prepare.{call}", f"lambda r: {arrays}"))
    arguments = ("state", *takewhile(known["inputs"].__contains__, evaluate.motion))
    chosen = [known["inputs"][x][:members] if mode == "batch" else known["inputs"][x][0] for x in arguments]
    again = reused(evaluate, *chosen) if mode == "out" else lambda: evaluate(*chosen)
    return lambda: take(again())


def seconds_of(row: str, seconds: float) -> float:
    """Return the seconds per member of a row, the best within a time; zero calls it once."""
    return interleaved({row: work(row)}, seconds, least=1).best(row) / ROWS[row][-1]


if __name__ == "__main__":
    for line in sys.stdin:
        try:
            print(seconds_of(*json.loads(line)), flush=True)
        except Exception as error:  # this version of kic cannot run it
            print(line.strip(), repr(error), file=sys.stderr)
            print("null", flush=True)
