"""Wrong arguments of public calls: the TypeError of Python names those that kic has."""

from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

import numpy as np
import pytest
from raising import refuses

import kic
import kic.classics
from kic.numerics.calls import COUNTERPARTS, explain, explained

BAR = kic.load("four-bar")
HERE = BAR.at({"A": 1.2})
HAND = kic.load("two-finger-hand").add(*(kic.Motor(f"M{j}", [j]) for j in ("A1", "B1", "C1")))
PLATFORM = kic.load("parallel-serial").chain("hand", through="A1")


def test_type_errors_from_within_pass() -> None:
    """Those that a function of the user raises, or one in the package, are not those of the call."""

    def wrong(t: float, now: Any) -> Any:
        return t + "x"  # type: ignore[operator]

    caught = refuses(lambda: BAR.simulate(0.1, effort=wrong), TypeError, match="unsupported operand")
    assert "no argument" not in str(caught)


def test_functions_keep_their_signature_and_name() -> None:
    def plain(of: str, *, order: int = 2) -> int:
        """Return a number."""
        return order

    call = explained(plain)
    assert (call("tip"), call.__name__, call.__doc__) == (2, "plain", "Return a number.")
    assert inspect.signature(call) == inspect.signature(plain)
    assert explain(call) is call


def test_functions_can_be_pickled() -> None:
    """Those that are handed out, also by modules."""
    modules = [getattr(kic, name) for name in kic.__all__ if inspect.ismodule(getattr(kic, name))]
    named = [getattr(kic, name) for name in kic.__all__]
    named += [getattr(module, name) for module in modules for name in dir(module) if name[0] != "_"]
    for call in named:
        if inspect.isfunction(call):
            assert pickle.loads(pickle.dumps(call)) is call


def test_counterparts_are_arguments() -> None:
    """Each argument that a common term leads to is one of a public call."""
    have = set()
    named = [getattr(module, name) for module in (kic, kic.results) for name in module.__all__]
    for public in named:
        calls = [public, *vars(public).values()] if inspect.isclass(public) else [public]
        calls += vars(public).values() if inspect.ismodule(public) else []
        for call in calls:
            if callable(call) and not isinstance(call, np.ufunc):
                try:
                    have |= inspect.signature(call).parameters.keys()
                except ValueError:
                    continue
    assert {own.partition(",")[0] for several in COUNTERPARTS.values() for own in several} <= have


TERMS = "influence_coefficients transfer effective_load load_distribution antagonistic superabundance "
TERMS += "redundancy kinematic_redundancy drive_train compliance payload"
KNOWN = {
    "kic": kic, "mechanism": BAR, "configuration": HERE, "coordinates": BAR.coordinates, "values": None,
    "of": "tip.x", "ud": [0.1],
    "qd": np.ones(3), "qdd": np.ones(3), "effort": np.ones(3), "A": np.ones((1, 2)), "T": np.ones((2, 3, 3)),
    "coefficients": kic.Coefficients.identity(HAND.coordinates), "name": "M", "joints": ["A"], "rows": [],
    "tip": "hand",
}  # fmt: skip


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (BAR, "title about source drawing cuts independent_sets to_urdf to_mjcf"),
        (PLATFORM, "leg open_chain"),
        (HERE, "phi"),
        (HAND, TERMS),
        (HAND.at(), f"{TERMS} partial_transfer linearization stiffness"),
        (HAND.at().dynamics(), "effective_load partial_transfer"),
        (BAR.prepare, "influence_coefficients effective_load"),
        (kic, "generalized_scalar_product generalized_inner_product influence_coefficients"),
        (kic, "drive_train WristPartitioned payload"),
    ],
)
def test_counterparts_of_names_work(owner: Any, names: str) -> None:
    """The first expression of a hint has a value; arguments that it leaves open are omitted."""
    for name in names.split():
        caught = refuses(lambda name=name: getattr(owner, name), AttributeError)
        use = re.split(r",? (?:and|or) |, (?:the|after) ", str(caught).partition("Use ")[2].rstrip("."))[0]
        use = re.sub(r"(, )?(\w+=)?…", "", use)
        assert eval(use if use.startswith("kic.") else f"owner.{use}", KNOWN | {"owner": owner}) is not None
