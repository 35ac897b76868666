"""Campaigns of random mechanisms, compared with independent references, with one row of counts for each.

Run ``python tests/campaigns.py [NAME …] [--count N] [--seed S] [--pin]``. Without --count a run takes 2
to 3 minutes; its counts are kept in `pins.COUNTS`, which --pin writes, and a row states where they differ.
The exit code is 1 if a result is wrong, falsely refused or beyond the stated law of errors, or if counts
differ from those on file.

The full campaign takes about an hour: ``near-singular --count 10000`` 23 minutes, ``linkages --count 1000``
17, ``arms --count 1000`` 7, and ``families --count 100`` 16. `arms` requires IKDH, which ``pip install ikdh``
installs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from time import perf_counter
from typing import Any

import jumps
import near_singular
import numpy as np
import pins
from complete_searches import FAMILIES, compare_arm, compare_starts

# nodes of a turn, inputs of an arm, and random starts of a member of a family
NODES, INPUTS, STARTS = 60, 4, 4096
BAD = ("wrong", "falsely", "law", "Error")


def linkages(count: int, seed: int) -> Counter[str]:
    """Return verdicts on the nodes of full turns of random linkages; see `jumps`."""
    return jumps.search(NODES * count, seed, NODES, turn=True)


def solutions(name: str, compare: Callable[..., int], *given: Any) -> Counter[str]:
    """Return the number of solutions of a comparison, or the count of an error, which is printed."""
    try:
        return Counter({name: compare(*given)})
    except AssertionError as error:
        print(name, *given, "wrong:", error, flush=True)
        return Counter({f"{name} wrong": 1})


def arms(count: int, seed: int) -> Counter[str]:
    """Return the number of solutions of arms of six joints, those that IKDH finds among them."""
    if find_spec("ikdh") is None:
        return Counter({"skipped: IKDH is not installed": count})
    seeds = range(seed, seed + count)
    found = (solutions("solutions", compare_arm, np.random.default_rng(k), INPUTS) for k in seeds)
    return sum(found, Counter())


def families(count: int, seed: int) -> Counter[str]:
    """Return the number of assembly modes of each family, to which random starts add none."""
    every = product(FAMILIES.items(), range(seed, seed + count))
    return sum((solutions(name, compare_starts, make, k, STARTS) for (name, make), k in every), Counter())


# function of a seed and a count of mechanisms, in families of each family; the default count
CAMPAIGNS: dict[str, tuple[Callable[[int, int], Counter[str]], int]] = {
    "near-singular": (near_singular.search, 200),
    "linkages": (linkages, 60),
    "arms": (arms, 60),
    "families": (families, 8),
}


def main(arguments: list[str]) -> int:
    """Print a row for each campaign, and return the exit code."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pin", action="store_true")
    given: Any = parser.parse_args(arguments)
    usual, on_file, code = given.count is None and not given.seed, pins.read_counts().get("campaigns", {}), 0
    for name in given.names or CAMPAIGNS:
        search, count = CAMPAIGNS[name]
        start = perf_counter()
        found = dict(sorted(search(given.count or count, given.seed).items()))
        listed = ", ".join(f"{key} {n}" for key, n in found.items())
        print(f"{name:14}{given.count or count:7}{perf_counter() - start:8.1f} s  {listed}", flush=True)
        code |= any(word in key for key in found for word in BAD)
        if usual and found != on_file.get(name) and "skipped" not in listed:
            print(f"{name:14}on file: {on_file.get(name)}", flush=True)
            on_file |= {name: found}
            code |= not given.pin
    if given.pin and usual:
        pins.write_counts(campaigns=on_file)
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
