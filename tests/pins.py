"""Short digests of results, and counts of operations and of steps, which are kept in files.

``python tests/snapshot.py pin`` writes the files. A digest has the kind and shape of a result, its largest
magnitude, and two weighted sums. Counts are those of the operations of exported questions, and of the
certified steps along fixed paths.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import snapshot

import kic
from kic.transfer.closure import Closure
from kic.transfer.coordinate_transfer import TRIES, CoordinateTransfer

RESULTS, COUNTS = (Path(__file__).parent / "data" / name for name in ("pins.npz", "pins.json"))
NUMBER = re.compile(r"-?\b\d+(?:\.\d*)?(?:e[-+]\d+)?\b|Infinity")
# numbers of an error beyond which they are those of a singular system
INFINITE_MIN = 1e14

# Largest difference on processors with other rounding errors and BLAS kernels: 4e-13, times a margin of 50.
# It is relative to the result, or to a share of the largest one of the question, up to a limit. Beyond it,
# coordinates are nearly singular for some results, and not for others.
RTOL, SHARE, SIZE_MAX = 2e-11, 0.25, 1e5
LOOSE_RTOL = {
    "watt-parallel-motion/*": (2e-9, "a member of its batch is nearly singular: H is 3e11, differs by 5e-11"),
    "*/error": (2e-9, "numbers of errors have ten digits"),
}
# texts that depend on rounding, and why
ARBITRARY = {"spatial-slider-crank/error/far/error": "names one of two joints on the same line"}

# models whose exported questions are counted; questions without rows, and those that are counted closed too
EXPORTED = "horn-two-link", "puma560", "four-bar", "five-bar", "delta", "gough-stewart"
WITHOUT_ROWS = "position", "dynamics", "inverse_dynamics", "forward_dynamics", "regressor"
CLOSED_TOO = "coefficients", "inverse_dynamics", "operational_space"
# models whose number of operations depends on rounding, with the share that may differ: entries of the
# inertia in axes of a leg are zero or not, which changes 12 operations
OPERATIONS_RTOL = {"gough-stewart": 0.005}


def digest(result: np.ndarray) -> tuple[str, list[float]]:
    """Return a text that must not change, and three numbers: the largest magnitude and two weighted sums.

    The sums are divided by the root of the number of entries. Numbers are taken out of the text of an error.
    """
    if result.dtype.kind == "U":
        text, x = json.dumps(result.tolist()), np.empty(0)
        if result.ndim == 0:
            text, x = NUMBER.sub("#", text), np.array([float(n) for n in NUMBER.findall(text)])
            x[np.abs(x) > INFINITE_MIN] = 0.0
        text = f"{text[:40]} {crc32(text.encode()):x}"
    else:
        x = result.astype(complex).ravel().view(float)
        text = f"{result.dtype.kind}{result.shape} finite {crc32(np.isfinite(result).tobytes()):x}"
        x = np.where(np.isfinite(x), x, 0.0)
    k = np.arange(1, x.size + 1)
    sums = (x @ np.sin(k * root + 1) for root in (2**0.5, 3**0.5))
    return text, [float(np.abs(x).max(initial=0.0)), *(float(s / max(1, x.size) ** 0.5) for s in sums)]


def write_results(results: dict[str, np.ndarray]) -> None:
    """Write the digests of results by name."""
    texts, numbers = zip(*map(digest, results.values()), strict=True)
    names, texts = (np.array(x, dtype="S") for x in ([*results], texts))
    np.savez_compressed(RESULTS, names=names, texts=texts, numbers=numbers)


def read_results() -> dict[str, tuple[str, list[float]]]:
    """Return the digests on file by name."""
    with np.load(RESULTS) as data:
        names, texts = (data[key].astype(str).tolist() for key in ("names", "texts"))
        return dict(zip(names, zip(texts, data["numbers"].tolist(), strict=True), strict=True))


def question_of(key: str) -> str:
    """Return the name of a result without its part, which may have several words."""
    model, *words = key.split("/")
    known = snapshot.QUESTIONS | snapshot.OTHERS.get(model, {})
    names = ("/".join(words[:n]) for n in range(len(words) - 1, 0, -1))
    return f"{model}/{next((name for name in names if name in known), key)}"


def differences(results: dict[str, np.ndarray]) -> list[str]:
    """Return how the results of some models differ from their digests on file."""
    models, sizes = {key.split("/")[0] for key in results}, dict[str, float]()
    on_file = {key: x for key, x in read_results().items() if key.split("/")[0] in models}
    for key, (_, (size, *_)) in on_file.items():
        sizes[question_of(key)] = max(size, sizes.get(question_of(key), 1.0))
    found = [f"{key} is missing" for key in on_file.keys() - results.keys()]
    found += [f"{key} is new" for key in results.keys() - on_file.keys()]
    for key, (was, old) in on_file.items():
        text, new = digest(results[key]) if key in results else (was, old)
        rtol = max([RTOL, *(x for name, (x, _) in LOOSE_RTOL.items() if fnmatch(key, name))])
        if was != text and key not in ARBITRARY:
            found.append(f"{key} was {was}, is {text}")
        elif not np.abs(np.subtract(old, new)).max() <= rtol * max(
            old[0], SHARE * min(sizes[question_of(key)], SIZE_MAX)
        ):
            found.append(f"{key} was {old}, is {new}")
    return found


def operations(case: Any) -> dict[str, int]:
    """Return the number of operations of every exported question of a case of `snapshot`."""
    point, body = case.of
    rows = {
        "pose": body,
        "actuation_map": point,
        "operational_space": case.task,
        "resolve_redundancy": case.task,
    }
    found = {}
    for question in (name for name in dir(case.m.export) if name[0] != "_"):
        own = {} if question in WITHOUT_ROWS else {"of": rows.get(question, case.of)}
        for close in (False, True)[: 1 + (question in CLOSED_TOO)]:
            made = getattr(case.m.export, question)(**own, near=case.c, close=close).to_numpy()
            found[question + " closed" * close] = made.operations
    return found


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Count members that are tracked, their certified steps, and members of Newton's method in NumPy.

    The number of steps is the smallest number of tries after which a member is where it ends.
    """
    count = dict.fromkeys(("members", "steps", "newton"), 0)
    track, newton = CoordinateTransfer.track, Closure.newton

    def tracked(own: Any, start: Any, target: Any, choice: Any = None, tries: int = TRIES, query: Any = None):
        states, share = track(own, start, target, choice, tries, query)
        going, made = np.arange(len(start)), 0
        while going.size:
            going = going[track(own, start[going], target[going], choice, made, query)[1] != share[going]]
            count["steps"] += len(going)
            made += 1
        count["members"] += len(start)
        return states, share

    def solved(own: Any, states: Any, *given: Any):
        count["newton"] += len(states)
        return newton(own, states, *given)

    with patch.object(CoordinateTransfer, "track", tracked), patch.object(Closure, "newton", solved):
        yield count


def follow(m: Any, names: str, *moves: Any, nodes: int = 20, track: bool = False) -> Any:
    """Move rows from the reference configuration along lines, or by functions of a share of the path."""
    c, t = m.at(), np.linspace(0, 1, nodes)
    ends = zip(names.split(), moves, strict=True)
    path = {name: c.value(name) + (x(t) if callable(x) else x * t) for name, x in ends}
    return m.track(path, t, near=c) if track else m.path(path, failures="mask")


def solve(m: Any, step: float) -> None:
    """Solve for coordinates in steps with the prepared solver."""
    solver, c = m.prepare.position(), m.at()
    x, state = np.array([float(c.value(name)) for name in m.coordinates]), c.state
    for _ in range(20):
        x += step * np.cos(np.arange(len(x)))
        state = solver(state, x)


# paths from reference configurations, by the model and a name
PATHS: dict[str, Callable[[Any], Any]] = {
    "bennett/turn": lambda m: follow(m, "A", 2 * np.pi, nodes=60),
    "bricard/line": lambda m: follow(m, "theta6", 0.9),
    "delta/line": lambda m: follow(m, "gripper.x gripper.y gripper.z", 0.1, 0.05, -0.1),
    "delta/position": lambda m: solve(m, 0.02),
    "delta/track": lambda m: follow(m, "gripper.x gripper.y gripper.z", 0.1, 0.05, -0.1, track=True),
    "five-bar/jump": lambda m: m.at({"A": 2.5, "E": 2.2}, failures="mask"),
    "five-bar/position": lambda m: solve(m, 0.03),
    "five-bar/square": lambda m: follow(
        m,
        "tip.x tip.y",
        *(lambda t, k=k: 0.5 * np.clip(1.5 - abs(4 * t - k), 0, 1) for k in (1.5, 2.5)),
        nodes=41,
    ),
    "four-bar/jump": lambda m: m.at({"A": 6.5}),
    "four-bar/turn": lambda m: follow(m, "A", 2 * np.pi, nodes=60),
    "gough-stewart/line": lambda m: follow(m, "L1 L2 L3 L4 L5 L6", 0.1, 0.05, 0.02, 0.0, 0.05, 0.08),
    "gough-stewart/jump": lambda m: m.at([1.12, 1.05, 1.0, 1.1, 1.12, 1.0]),
    "gough-stewart/pose": lambda m: m.at(
        {"platform": m.at([1.1, 1.1, 1.05, 1.05, 1.1, 1.1]).pose("platform")}
    ),
    "jansen-leg/turn": lambda m: follow(m, m.coordinates[0], 2 * np.pi, nodes=60),
    "rssr/turn": lambda m: follow(m.hold_spins(), "crank", 2 * np.pi, nodes=60),
    "slider-crank/dead centre": lambda m: follow(m, "crown.x", 9.0),
    "stephenson-six-bar/jump": lambda m: m.at({m.coordinates[0]: 3.0}, failures="mask"),
}


def steps() -> dict[str, dict[str, int]]:
    """Return the counts along all paths."""
    found = dict[str, dict[str, int]]()
    for name, move in PATHS.items():
        with counted() as found[name]:
            move(kic.load(name.split("/")[0]))
    return found


def read_counts() -> dict[str, Any]:
    """Return the counts on file."""
    return json.loads(COUNTS.read_text()) if COUNTS.exists() else {}


def write_counts(**counts: Any) -> None:
    """Write counts, in addition to others on file, with a line for each model, path or campaign."""
    blocks = []
    for kind, table in sorted((read_counts() | counts).items()):
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table.items())
        blocks.append(f" {json.dumps(kind)}: {{\n{rows}\n }}")
    COUNTS.write_text("{\n" + ",\n".join(blocks) + "\n}\n")
