"""Results share no mutable state with the mechanism or with other results."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import kic

DEPTH = 6


def members(x: Any) -> dict[str, Any]:
    """Public attributes and properties of an object of kic, except those that cannot be answered."""
    names = [n for n in dir(type(x)) if isinstance(getattr(type(x), n, None), property)]
    names += [n for n in dir(type(x)) if type(getattr(type(x), n, None)).__name__ == "cached_property"]
    # the packed tables of an evaluator are no answer
    names += list(getattr(x, "__dict__", {})) + list(getattr(type(x), "__slots__", ()))
    found = {}
    for name in sorted({n for n in names if not n.startswith("_") and n != "layouts"}):
        try:
            found[name] = getattr(x, name)
        except (kic.KicError, AttributeError):
            continue
    return found


def below(x: Any) -> list[tuple[str, Any]]:
    if isinstance(x, Mapping):
        return [(str(k), v) for k, v in x.items()]
    if isinstance(x, (list, tuple, set, frozenset)):
        return [(str(k), v) for k, v in enumerate(x)]
    return list(members(x).items()) if type(x).__module__.split(".")[0] == "kic" else []


def snapshot(x: Any, depth: int = DEPTH) -> Any:
    """Return a plain copy of a result for comparison."""
    if isinstance(x, np.ndarray):
        return ("array", x.shape, x.dtype.str, x.tobytes() if x.dtype.kind != "O" else repr(x))
    if isinstance(x, (str, bytes, int, float, complex, bool, type(None), np.generic)):
        return repr(x)
    return [(name, snapshot(v, depth - 1)) for name, v in below(x)] if depth else ""


def spoil(x: Any, depth: int = DEPTH, seen: set[int] | None = None) -> None:
    """Change every array and container that can be reached and changed."""
    seen = set() if seen is None else seen
    if id(x) in seen or not depth:
        return
    seen.add(id(x))
    if isinstance(x, np.ndarray):
        if x.flags.writeable and x.dtype.kind in "fciub":
            x[...] = np.nan if x.dtype.kind in "fc" else 1 - x if x.dtype.kind != "b" else ~x
        return
    for _, v in below(x):
        spoil(v, depth - 1, seen)
    if isinstance(x, (list, dict, set)):
        x.clear()


FOUR, FIVE, RSSR, ARM = (kic.load(name) for name in ("four-bar", "five-bar", "rssr", "horn-two-link"))
MOTORS = kic.load("four-bar-motor")
AT, AT5 = FOUR.at(), FIVE.at()
PREPARED, PLACES = FOUR.prepare.coefficients("tip"), FOUR.prepare.position()
QUESTIONS: dict[str, Callable[[], Any]] = {
    "mechanism": lambda: FOUR,
    "geared": lambda: kic.load("geared-five-bar"),
    "motors": lambda: MOTORS,
    "mobility": lambda: FOUR.mobility(),
    "mobility at": lambda: FIVE.mobility(AT5),
    "mobility, idle": lambda: RSSR.mobility(),
    "independent sets": lambda: FIVE.mobility().independent_sets(),
    "configuration": lambda: AT5,
    "coefficients": lambda: AT5.coefficients("tip", order=3),
    "dynamics": lambda: AT5.dynamics(),
    "joint forces": lambda: AT5.joint_forces(),
    "distribute": lambda: AT5.distribute([1.0, 1.0], actuators=["A", "B", "E"]),
    "linearize": lambda: ARM.at().linearize(),
    "evaluator": lambda: PREPARED,
    "evaluator's answer": lambda: PREPARED(AT.state),
    "assemblies": lambda: FOUR.assembly_modes({"A": 0.1}),
    "simulation": lambda: FOUR.simulate(0.02, near=AT),
    "sweep": lambda: FOUR.sweep({"A": [0.0, 0.1]}, ["tip.x"]),
    "values": lambda: AT5.value("tip"),
    "state": lambda: AT5.state,
    "velocity": lambda: AT5.velocity([1.0, 2.0], of="tip") if hasattr(AT5, "velocity") else None,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_modified_result_changes_no_later_result(name: str) -> None:
    ask = QUESTIONS[name]
    before = {other: snapshot(QUESTIONS[other]()) for other in {name, "mechanism", "mobility", "state"}}
    spoil(ask())
    for other, right in before.items():
        assert snapshot(QUESTIONS[other]()) == right, other


def test_mechanisms_are_copied_with_their_read_only_tables() -> None:
    m = kic.load("five-rod-suspension")
    assert (len(m._fixed_distances), len(m._parts)) == (len(dict(m._fixed_distances)), len(dict(m._parts)))
    m.mobility()
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert dict(other._fixed_distances) == dict(m._fixed_distances)
        assert other.dof == m.dof
    with pytest.raises(TypeError):
        m._fixed_distances["camber_rod"] = 1.0
    account = m.mobility().summary()
    m.mobility().conditions.clear()
    assert m.mobility().conditions
    assert m.mobility().summary() == account
