"""The ladder: times of the present checkout, row by row, against those of an earlier commit.

``python tests/benchmarks ladder`` prints the rows of `rows`. ``ladder against REV`` compares with a commit.
Each version runs in a process of its own, and both time a row in turn within each round. A row is marked if
the median of the ratios within rounds exceeds 1 by more than the limit and the scatter, which is half the
interquartile range of these ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.rows import ROWS
from benchmarks.timing import Report, micro

TESTS = Path(__file__).resolve().parents[1]
# accepted increase of a ratio; seconds of a row in a round, for each version
LIMIT, SECONDS = 0.05, 0.01
# rounds, and those of one process: the same code differs by some percent from process to process
ROUNDS, RENEWAL = 24, 4
ONE_THREAD = dict.fromkeys(("KIC_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# seconds per member of each row, by rounds; None where a version cannot run it
Times = dict[str, list[float | None]]


def compared(ours: list[float], theirs: list[float]) -> tuple[float, float, bool]:
    """Return the ratio of two versions, its scatter, and True if ours is slower beyond limit and scatter."""
    low, ratio, high = np.percentile(np.divide(ours, theirs), (25, 50, 75))
    scatter = (high - low) / 2
    return ratio, scatter, bool(ratio > 1 + LIMIT + scatter)


@contextmanager
def checkout(revision: str, repository: Path = TESTS.parent) -> Iterator[Path]:
    """Check out a commit to a temporary folder; exit with the message of git if there is none."""
    git = ["git", "-C", str(repository), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "kic")
        if subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision]).returncode:
            sys.exit(2)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


@contextmanager
def worker(tree: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that times rows with the kic of a folder, on one thread."""
    command = [sys.executable, "-m", "benchmarks.rows"]
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": f"{tree}{os.pathsep}{TESTS}"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tree, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[str], name: str, seconds: float) -> float | None:
    """Return the seconds per member of a row."""
    print(json.dumps((name, seconds)), file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def timed(trees: list[Path], names: list[str], rounds: int) -> list[Times]:
    """Return the times of rows for each version, which alternate in coming first."""
    times: list[Times] = [{name: [] for name in names} for _ in trees]
    for first in range(0, rounds, RENEWAL):
        with ExitStack() as stack:
            both = [
                (stack.enter_context(worker(tree)), found) for tree, found in zip(trees, times, strict=True)
            ]
            for process, _ in both:
                for name in names:  # what is made once
                    ask(process, name, 0.0)
            for k in range(first, min(first + RENEWAL, rounds)):
                for name in names:
                    for process, found in both[:: (-1) ** k]:
                        found[name].append(ask(process, name, SECONDS))
    return times


def cells(name: str, ours: list[float | None], theirs: list[float | None]) -> list[str]:
    """Return a line of the table; its last cell marks a row that is slower or does not run any more."""
    texts = [name, *("does not run" if None in x else micro(min(x) * 1e6) for x in (ours, theirs))]
    if None in ours or None in theirs:
        return [*texts, "", "", "lost" if None in ours else ""]
    ratio, scatter, slower = compared(ours, theirs)
    return [*texts, f"{ratio:.3f}", f"{scatter:.3f}", "slower" if slower else ""]


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 if it marks a row."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks ladder", description=__doc__)
    parser.add_argument("against", nargs="*", metavar="against REV", help="compare with a commit")
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose names contain it")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    if given.against and (given.against[0] != "against" or len(given.against) != 2):
        parser.error("expected `ladder` or `ladder against REV`")
    names = [name for name in ROWS if given.only in name]
    with ExitStack() as stack:
        trees = [TESTS.parent, *(stack.enter_context(checkout(revision)) for revision in given.against[1:])]
        for tree in trees:  # the kernels, which the cache holds by their sources
            (script,) = (tree / "kic").rglob("build.py")  # other revisions have another folder
            build = [sys.executable, str(script), "--cached"]
            subprocess.run(build, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, check=True)
        times = timed(trees, names, given.rounds)
    lines = [cells(name, times[0][name], times[-1][name]) for name in names]
    count = 6 if given.against else 2  # columns
    headings = ["per member", "µs", " ".join((*given.against[1:], "µs")), "ratio", "scatter", "mark"]
    report = Report()
    report.table(headings[:count], [one[:count] for one in lines])
    marked = sum(bool(one[-1]) for one in lines)
    report.say(
        f"{marked} of {len(lines)} rows marked: slower by over {LIMIT:.0%} beyond their scatter, or lost."
    )
    return int(marked > 0)
