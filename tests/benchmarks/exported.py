"""Exported C code, kernels and specialized evaluators: `python -m tests.benchmarks.exported [model …]`.

Evaluators compute a batch on one thread, so that Python costs little, and one state with `out`; the C
function is called in a loop of C at the reference configuration. States of the batch are near it; "kept" is
the share that specialized code answers itself. Compiling 57,000 operations takes minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Sequence
from functools import partial
from tempfile import TemporaryDirectory

os.environ["KIC_THREADS"] = "1"

import numpy as np

import kic
from kic.export.c_source import identifier
from kic.mechanism.configuration import model_of

BOTH = "coefficients_and_dynamics"
CASES = (
    ("four-bar", "dynamics", ""), ("four-bar", "inverse_dynamics", ""), ("four-bar", "forward_dynamics", ""),
    ("five-bar", "dynamics", ""), ("five-bar", "forward_dynamics", ""), ("puma560", BOTH, "link6"),
    ("puma560", "inverse_dynamics", ""), ("puma560", "forward_dynamics", ""), ("five-bar", BOTH, "tip"),
    ("five-bar", "inverse_dynamics", ""), ("delta", BOTH, "plate"),
    ("delta", "dynamics", ""), ("delta", "inverse_dynamics", ""), ("delta", "forward_dynamics", ""),
    ("gough-stewart", "inverse_dynamics", ""), ("gough-stewart", "forward_dynamics", ""),
    ("gough-stewart", BOTH, "platform"),
)  # fmt: skip
ROUNDS, MEMBERS = 15, 4096
MAIN = """
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#include "f.h"
{arrays}
int main(void) {{
    struct timespec a, b;
    double best = 1e9, sum = 0;
    for (int r = 0; r < {rounds}; r++) {{
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < {calls}; i++) {{ {first}[0] += 1e-9; f({names}); sum += {last}[0]; }}
        clock_gettime(CLOCK_MONOTONIC, &b);
        double t = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        best = t < best ? t : best;
    }}
    printf("%g %g\\n", best / {calls}, sum);
    return 0;
}}
"""


def seconds_in_c(
    f: kic.results.ExportedFunction,
    code: kic.results.CSource,
    flags: str = "-O2 -march=native -ffp-contract=fast",
) -> float:
    """Return the time of a call in a loop of C."""
    numbers = {a.name: np.full(a.size, 0.7) if a.default is None else a.default for a in f._export.inputs}
    rows = [(identifier(name), a.ravel().tolist() or [0.0]) for name, a in numbers.items()]
    rows += [(identifier(a.name), [0.0] * max(a.size, 1)) for a in f._export.outputs]
    arrays = "\n".join(f"static double {n}[] = {{{', '.join(map(repr, x))}}};" for n, x in rows)
    names, calls = [n for n, _ in rows], max(1000, 10**7 // max(code.operations, 100))
    text = MAIN.format(
        arrays=arrays, rounds=ROUNDS, calls=calls, first=names[0], names=", ".join(names), last=names[-1]
    )
    with TemporaryDirectory() as folder:
        code.save(folder)
        with open(f"{folder}/main.c", "w", encoding="utf-8") as file:
            file.write(text)
        command = ["cc", "-std=c99", *flags.split(), "f.c", "main.c", "-o", "main", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        done = subprocess.run([f"{folder}/main"], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def states_near(m: kic.Mechanism, count: int) -> np.ndarray:
    """Return at most `count` closed states; coordinates differ from the reference by 0.2 of their size."""
    c, sizes = m.at(), model_of(m).transfer_for(None).row_sizes
    values = np.array([c.value(name) for name in m.coordinates])
    moved = values + np.random.default_rng(0).normal(size=(count, len(values))) * 0.2 * sizes
    found = m.at(dict(zip(m.coordinates, moved.T, strict=True)), near=c, failures="mask").state
    return np.ascontiguousarray(found[np.isfinite(found).all(axis=1)])


def seconds(call: Callable[[], object], calls: int) -> float:
    """Return the least mean time of a call."""
    return min(timeit.repeat(call, number=calls, repeat=ROUNDS)) / calls


def main(models: Sequence[str] = ()) -> None:
    """Print the times for some models, by default for all cases."""
    print(
        f"{'model':14}{'question':26}{'operations':>11}{'trace s':>9}{'C µs':>8}{'kernels':>9}{'special':>9}"
        f"{'to C':>6}{'kept':>9}{'one: kernels':>14}{'special':>9}"
    )
    for name, question, of in CASES:
        if models and name not in models:
            continue
        m, options = kic.load(name), {"of": of} if of else {}
        start = time.perf_counter()
        code = getattr(m.export, question)(name="f", **options).to_c()
        traced = time.perf_counter() - start
        own = seconds_in_c(getattr(m.export, question)(**options).to_numpy(), code)
        general = getattr(m.prepare, question)(**options)
        special, states = general.specialize(), states_near(m, MEMBERS)
        rates = [np.full((len(states), len(general.coordinates)), 0.7) for _ in general.motion]
        one, batches, calls = (states[0].copy(), *(r[0].copy() for r in rates)), [], []
        special(states, *rates)
        kept = 1 - special.recovered / len(states)
        for f in (general, special):
            many, single = f(states, *rates), f(*one)
            batches.append(1e6 * seconds(partial(f, states, *rates, out=many), 1) / len(states))
            calls.append(1e6 * seconds(partial(f, *one, out=single), 1000))
        print(
            f"{name:14}{question:26}{code.operations:11}{traced:9.2f}{own * 1e6:8.3f}{batches[0]:9.3f}"
            f"{batches[1]:9.3f}{batches[1] / own / 1e6:6.2f}{kept:9.2%}{calls[0]:14.2f}{calls[1]:9.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
