"""Printed tables of Appendices C and E, and the open chains that they describe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import kic

DATA = json.loads((Path(__file__).parent / "data" / "appendix_c_e.json").read_text(encoding="utf-8"))
TABLES = {(t["table"], t["quantity"]): t for t in DATA["tables"]}
OPEN_W = ["A", "h.x", "h.y", "rocker.angle"]  # the source's w = (φ1; x, y, θ of h)
PLATE = ["w.x", "w.y", "platform.angle"]


def opened(m: kic.Mechanism, joints: str) -> kic.Mechanism:
    """Return an open chain of a mechanism: the named joints and their bodies."""
    kept = [j for j in m.joints if j.name in joints.split()]
    held = {body for j in kept for body in j.bodies}
    return replace(
        m,
        bodies=[b for b in m.bodies if b.name in held],
        joints=kept,
        points=[p for p in m.points if p.body in held],
        coordinates=None,
    )


def leg(m: kic.Mechanism, r: int) -> kic.Mechanism:
    """Return one leg of the robot with the platform at its end."""
    return opened(m, f"A{r} B{r} C{r}")


def entries(printed: list, at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], str]]:
    """Return every printed number with its position."""
    for i, entry in enumerate(printed):
        if isinstance(entry, list):
            yield from entries(entry, (*at, i))
        elif entry is not None:
            yield (*at, i), entry


def unit(printed: str) -> float:
    """Return one unit of the last digit; whole numbers in these tables are exact."""
    return 10.0 ** -len(printed.partition(".")[2]) if "." in printed else 1e-9


def agrees(printed: str, number: float, units: float = 0.5) -> bool:
    """Return True if a number is within units of the last printed digit."""
    return bool(abs(float(printed) - number) <= units * unit(printed))
