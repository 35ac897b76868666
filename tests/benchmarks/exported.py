"""Exported C code against the compiled kernels: `python -m tests.benchmarks.exported`.

The kernels evaluate a batch on one thread, so that Python costs nothing; the C function is called in a loop
of C. Both are at the reference configuration. Compiling 57,000 operations takes minutes.
"""

from __future__ import annotations

import os
import subprocess
import time
from tempfile import TemporaryDirectory

os.environ["KIC_THREADS"] = "1"

import numpy as np

import kic
from kic.export.c_source import identifier

BOTH = "coefficients_and_dynamics"
CASES = (
    ("puma560", BOTH, "link6"), ("puma560", "inverse_dynamics", ""), ("puma560", "forward_dynamics", ""),
    ("five-bar", BOTH, "tip"), ("five-bar", "inverse_dynamics", ""), ("delta", BOTH, "plate"),
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


def main() -> None:
    """Print the times."""
    print(
        f"{'model':14}{'question':26}{'operations':>11}{'trace s':>9}{'C µs':>9}{'kernel µs':>11}{'ratio':>7}"
    )
    for name, question, of in CASES:
        m, options = kic.load(name), {"of": of} if of else {}
        start = time.perf_counter()
        code = getattr(m.export, question)(name="f", **options).to_c()
        traced = time.perf_counter() - start
        own = seconds_in_c(getattr(m.export, question)(**options).to_numpy(), code)
        e = getattr(m.prepare, question)(**options)
        states = np.repeat(m.at().state[None], MEMBERS, 0)
        rates = [np.full((MEMBERS, len(e.coordinates)), 0.7) for _ in e.motion]
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            e(states, *rates)
            times.append((time.perf_counter() - start) / MEMBERS)
        print(
            f"{name:14}{question:26}{code.operations:11}{traced:9.2f}{own * 1e6:9.3f}{min(times) * 1e6:11.3f}"
            f"{own / min(times):7.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
