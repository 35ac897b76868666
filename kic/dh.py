"""Serial arms from Denavit-Hartenberg rows: Freeman's convention (eqs 2-45 to 2-50) or the standard one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import cos, isfinite, pi, sin
from typing import Any, Literal

import numpy as np

from kic.errors import ModelError
from kic.inertias import as_matrix
from kic.mechanism import Mechanism
from kic.parts import GROUND, STRICT, Body, Joint, Point, Units, Vector

Convention = Literal["freeman", "standard"]


@dataclass(frozen=True)
class DHRow:
    """One joint and its link.

    Freeman: the link before the joint has length `a` and twist `alpha`, the joint offset `s` and angle
    `theta` (T^j = T^(j-1) Tx(a) Rx(alpha) Rz(theta) Tz(s), often called modified DH). Standard: they come
    after it (T^j = T^(j-1) Rz(theta) Tz(s) Tx(a) Rx(alpha)).
    """

    __pydantic_config__ = STRICT
    joint: str
    """Name of the joint."""
    body: str
    """Name of the link that it moves."""
    type: Literal["revolute", "prismatic"] = "revolute"
    """Kind of joint."""
    a: float = 0.0
    """Link length."""
    alpha: float = 0.0
    """Twist (rad)."""
    s: float = 0.0
    """Offset along the joint axis; of a prismatic joint, the coordinate as drawn."""
    theta: float = 0.0
    """Angle about the joint axis (rad); of a revolute joint, the coordinate as drawn."""

    def __post_init__(self) -> None:
        for key in ("a", "alpha", "s", "theta"):
            if not isfinite(getattr(self, key)):
                raise ModelError(f"DH row '{self.joint}': `{key}` must be finite, got {getattr(self, key)}.")
        if self.type not in ("revolute", "prismatic"):
            raise ModelError(
                f"DH row '{self.joint}': a DH joint is revolute or prismatic, got '{self.type}'."
            )


@dataclass(frozen=True)
class DH:
    """The rows of an arm, with their convention."""

    __pydantic_config__ = STRICT
    rows: tuple[DHRow, ...]
    """One row for each joint, from the base on."""
    convention: Convention = "freeman"
    """Which link a row's a and alpha belong to."""


def _cosine_sine(angle: float) -> tuple[float, float]:
    """Cosine and sine, exact for multiples of a right angle: 6e-17 is no direction."""
    quarters = angle / (pi / 2)
    nearest = round(quarters)
    if abs(quarters - nearest) < 1e-15 * max(1.0, abs(quarters)):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[nearest % 4]
    return cos(angle), sin(angle)


def _screw_x(a: float, alpha: float) -> np.ndarray:
    c, s = _cosine_sine(alpha)
    return np.array([[1.0, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def _screw_z(s: float, theta: float) -> np.ndarray:
    c, si = _cosine_sine(theta)
    return np.array([[c, -si, 0.0, 0], [si, c, 0, 0], [0, 0, 1, s], [0, 0, 0, 1]])


def from_dh(
    name: str,
    rows: Iterable[DHRow | dict[str, Any]],
    convention: Convention = "freeman",
    bodies: Iterable[Body] = (),
    points: Iterable[Point] = (),
    **rest: Any,
) -> Mechanism:
    """Serial arm from DH rows; bodies and points are given in their own link's frame.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    rows : iterable of DHRow (or dict of its fields)
        One for each joint. The arm is drawn at the thetas (of revolutes) and s (of sliders) given.
    convention : {"freeman", "standard"}
        Freeman's rows (eqs 2-45 to 2-50) or the standard ones; see `DHRow`.
    bodies : iterable of Body
        Mass properties of the links, `com`, `inertia` and `at` in the link's frame: at the joint for
        Freeman, at the end of the link for the standard convention. Links left out have no mass given.
    points : iterable of Point
        Points, each in the frame of its body; those of ground in the world's.
    **rest
        Anything else that `Mechanism` takes: gravity, coordinates, distances, forces, prose.

    Returns
    -------
    Mechanism

    Raises
    ------
    ModelError
        For an unknown convention, a row that is wrong, or a body that no row moves.

    Examples
    --------
    >>> import kic
    >>> arm = kic.from_dh(
    ...     "planar",
    ...     [kic.DHRow("A", "upper"), kic.DHRow("B", "fore", a=1.0)],
    ...     points=[kic.Point("tip", "fore", at=(0.5, 0, 0))],
    ... )
    >>> arm.at([0.0, 0.0]).value("tip")
    array([1.5, 0. , 0. ])
    """
    if convention not in ("freeman", "standard"):
        raise ModelError(f"Expected `convention` to be 'freeman' or 'standard', got {convention!r}.")
    T = np.eye(4)
    frames: dict[str, np.ndarray] = {GROUND: T}
    joints = []
    before = GROUND
    for row in (DHRow(**row) if isinstance(row, dict) else row for row in rows):
        moved = T @ _screw_x(row.a, row.alpha) if convention == "freeman" else T
        joints.append(
            Joint(
                row.joint,
                row.type,
                (before, row.body),
                at=tuple(moved[:3, 3]),
                axis=tuple(moved[:3, 2]),
                value=row.theta if row.type == "revolute" else row.s,
            )
        )
        T = moved @ _screw_z(row.s, row.theta)
        if convention == "standard":
            T = T @ _screw_x(row.a, row.alpha)
        if row.body in frames:
            raise ModelError(f"'{name}': two DH rows move the body '{row.body}'.")
        frames[row.body] = T
        before = row.body
    given = {body.name: body for body in bodies}
    for body in given:
        if body not in frames:
            raise ModelError(f"'{name}': no DH row moves the body '{body}'. Rows move: {_list(frames)}.")
    for point in (points := tuple(points)):
        if point.body not in frames:
            raise ModelError(
                f"Point '{point.name}': no body '{point.body}' in '{name}'. There are: {_list(frames)}."
            )
    links = [link for link in frames if link != GROUND]
    if isinstance(rest.get("units"), dict):
        rest["units"] = Units(**rest["units"])
    return Mechanism(
        name,
        bodies=tuple(_drawn_body(given.get(link, Body(link)), frames[link]) for link in links),
        joints=tuple(joints),
        points=tuple(replace(p, at=_drawn(p.at, frames[p.body])) for p in points),
        **rest,
    )


def _list(frames: dict[str, np.ndarray]) -> str:
    return ", ".join(frames)


def _drawn(p: Vector, T: np.ndarray) -> Vector:
    """A point of a link's frame where it stands in the drawing."""
    x, y, z = (float(v) for v in T[:3, :3] @ np.array(p) + T[:3, 3])
    return (x, y, z)


def _drawn_body(body: Body, T: np.ndarray) -> Body:
    """A body of a link's frame as it stands in the drawing."""
    changes: dict[str, Any] = {}
    if body.com is not None:
        changes["com"] = _drawn(body.com, T)
    if body.at is not None:
        changes["at"] = _drawn(body.at, T)
    if body.inertia is not None:
        turned = T[:3, :3] @ as_matrix(body.inertia) @ T[:3, :3].T  # type: ignore[arg-type]
        changes["inertia"] = tuple(
            float(turned[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        )
    return replace(body, **changes) if changes else body
