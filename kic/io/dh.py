"""Serial arms from Denavit-Hartenberg rows: Freeman's convention (eqs 2-45 to 2-50) or the standard one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, fields, replace
from math import cos, pi, sin
from typing import Any, Literal, get_args

import numpy as np

from kic.description import validation as valid
from kic.description.parts import TENSOR_ENTRIES, Body, Frame, Joint, Point
from kic.description.validation import GROUND, Vector, assign
from kic.errors import ModelError, invalid_part, short_repr, unknown
from kic.mechanism.mechanism import Mechanism

Convention = Literal["freeman", "modified", "standard"]


@dataclass(frozen=True)
class DHRow:
    """Denavit-Hartenberg row: a joint and its link (Tables 2-1 to 2-2).

    Freeman's convention, the modified one (Craig), has the link of length `a` and twist `alpha` before the
    joint of offset `d` and angle `theta`: T^j = T^(j-1) Tx(a) Rx(alpha) Rz(theta) Tz(d). In the standard
    convention the link follows the joint: T^j = T^(j-1) Rz(theta) Tz(d) Tx(a) Rx(alpha).

    Parameters
    ----------
    joint, body : str
        Names of the joint and of the link that it moves.
    type : {"revolute", "prismatic"}
        Type of joint.
    a, alpha : float
        Link length, and twist (rad).
    d : float
        Offset along the joint axis, Freeman's s; of a prismatic joint, the reference value of the coordinate.
    theta : float
        Angle about the joint axis (rad); of a revolute joint, the reference value of the coordinate.
    limits : (float, float), optional
        Lower and upper limit of the coordinate, as in `Joint`.

    Raises
    ------
    ModelError
        If a name or number is invalid.
    """

    joint: str
    body: str
    _: KW_ONLY
    type: Literal["revolute", "prismatic"] = "revolute"
    a: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    limits: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        assign(self, joint=valid.check_name("DH row", self.joint, "joint"))
        who = f"DH row '{self.joint}'"
        assign(self, body=valid.check_name("DH row", self.body, "body"))
        if self.body == GROUND:
            raise ModelError(f"{who}: '{GROUND}' is the fixed world; name the link that moves.", key="body")
        assign(self, type=valid.choice(who, "type", self.type, ("revolute", "prismatic")))
        for key in ("a", "alpha", "d", "theta"):
            assign(self, **{key: valid.number(who, key, getattr(self, key))})
        if self.limits is not None:
            assign(self, limits=valid.interval(who, "limits", self.limits))


@dataclass(frozen=True)
class DH:
    """Rows of an arm and their convention.

    Parameters
    ----------
    rows : sequence of DHRow
        One row for each joint, starting at the base.
    convention : {"freeman", "modified", "standard"}
        Convention of the rows: modified (also called freeman) or standard.
    """

    rows: tuple[DHRow, ...]
    convention: Convention = "freeman"


def _cosine_sine(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exact for multiples of a right angle; a complex step is kept."""
    if isinstance(angle, complex):
        c, s = _cosine_sine(angle.real)
        return c - 1j * angle.imag * s, s + 1j * angle.imag * c  # type: ignore[return-value]
    quarters = angle / (pi / 2)
    nearest = round(quarters)
    if abs(quarters - nearest) < 1e-15 * max(1.0, abs(quarters)):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[nearest % 4]
    return cos(angle), sin(angle)


def _screw_x(a: float, alpha: float) -> np.ndarray:
    """Return Tx(a) Rx(alpha)."""
    c, s = _cosine_sine(alpha)
    return np.array([[1.0, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def _screw_z(d: float, theta: float) -> np.ndarray:
    """Return Rz(theta) Tz(d)."""
    c, s = _cosine_sine(theta)
    return np.array([[c, -s, 0.0, 0], [s, c, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])


def from_dh(
    name: str,
    rows: Iterable[DHRow | dict[str, Any]],
    *,
    convention: Convention,
    bodies: Iterable[Body] = (),
    points: Iterable[Point] = (),
    frames: Iterable[Frame] = (),
    **rest: Any,
) -> Mechanism:
    """Make a serial arm from DH rows; bodies, points and frames are given in the frames of their links.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    rows : iterable of DHRow (or dict of its fields)
        One row for each joint. The reference configuration has the given theta (revolute) and d (prismatic).
    convention : {"freeman", "modified", "standard"}
        Freeman's rows (eqs 2-45 to 2-50), for which "modified" is the common name, or the standard ones; see
        `DHRow`.
    bodies : iterable of Body
        Mass properties of the links, with `com`, `inertia` and `at` in the frame of the link. Its origin is
        at the joint in the modified convention, and at the end of the link in the standard one. Other links
        have no mass properties.
    points : iterable of Point
        Points, each in the frame of its body; those of ground in world axes.
    frames : iterable of Frame
        Frames, such as that of the tool, with `origin` and `axes` in the frame of their body.
    **rest
        Other arguments of `Mechanism`: gravity, coordinates, distances, forces, texts.

    Returns
    -------
    Mechanism

    Raises
    ------
    ModelError
        If the convention is unknown, a row is invalid, or no row moves a body.

    Examples
    --------
    >>> arm = kic.from_dh(
    ...     "planar",
    ...     [kic.DHRow("A", "upper"), kic.DHRow("B", "fore", a=1.0)],
    ...     convention="freeman",
    ...     points=[kic.Point("tip", "fore", at=(0.5, 0, 0))],
    ... )
    >>> arm.at([0.0, 0.0]).value("tip")
    array([1.5, 0. , 0. ])
    """
    name = valid.check_name("mechanism", name)
    valid.choice(f"'{name}'", "convention", convention, get_args(Convention))
    joints, links_at = _chain(name, valid.listed(f"'{name}'", "rows", rows, "DH rows"), convention)
    links: dict[str, Body | None] = {link: None for link in links_at if link != GROUND}
    for i, body in enumerate(valid.listed(f"'{name}'", "bodies", bodies, "Body parts")):
        _check_part(name, body, Body, f"bodies[{i}]")
        if body.name not in links:
            message = f"'{name}': no DH row moves the body '{body.name}'. The rows move: {', '.join(links)}."
            raise ModelError(message, key=f"bodies[{i}].name", name=body.name)
        if links[body.name] is not None:
            message = f"'{name}': two bodies are called '{body.name}'; rename one."
            raise ModelError(message, key=f"bodies[{i}].name", name=body.name)
        links[body.name] = body
    points = valid.listed(f"'{name}'", "points", points, "Point parts")
    frames = valid.listed(f"'{name}'", "frames", frames, "Frame parts")
    for kind, part_type, parts in (("points", Point, points), ("frames", Frame, frames)):
        for i, part in enumerate(parts):
            _check_part(name, part, part_type, f"{kind}[{i}]")
            if part.body not in links_at:
                error = unknown("body", part.body, name, links_at)
                message = f"{part_type.__name__} '{part.name}': {error}"
                raise ModelError(message, key=f"{kind}[{i}].body", name=part.body)
    return Mechanism(
        name,
        bodies=tuple(_body_in_world(body or Body(link), links_at[link]) for link, body in links.items()),
        joints=joints,
        points=tuple(replace(p, at=_point_in_world(p.at, links_at[p.body])) for p in points),
        frames=tuple(_frame_in_world(frame, links_at[frame.body]) for frame in frames),
        **rest,
    )


def _chain(
    name: str, rows: tuple[Any, ...], convention: Convention
) -> tuple[tuple[Joint, ...], dict[str, np.ndarray]]:
    """Return the joints of the rows, and the frame (4, 4) of ground and of each link."""
    if not rows:
        raise ModelError(f"'{name}': an arm needs at least one DH row.", key="rows")
    T = np.eye(4)
    frames = {GROUND: T}
    joints = []
    before = GROUND
    for i, row in enumerate(map(_row, rows)):
        if row.body in frames:
            message = f"'{name}': two DH rows move the body '{row.body}'; each moves its own."
            raise ModelError(message, key=f"rows[{i}].body", name=row.body)
        moved = T @ _screw_x(row.a, row.alpha) if convention != "standard" else T
        value = row.theta if row.type == "revolute" else row.d
        ties = (before, row.body)
        at, axis = tuple(moved[:3, 3]), tuple(moved[:3, 2])
        joints.append(Joint(row.joint, row.type, ties, at=at, axis=axis, value=value, limits=row.limits))
        T = moved @ _screw_z(row.d, row.theta)
        if convention == "standard":
            T = T @ _screw_x(row.a, row.alpha)
        frames[row.body] = T
        before = row.body
    return tuple(joints), frames


def _row(given: Any) -> DHRow:
    """Return a DH row from a row or a dict of its fields."""
    if isinstance(given, DHRow):
        return given
    keys = [f.name for f in fields(DHRow)]
    if not isinstance(given, dict) or not {"joint", "body"} <= set(given) <= set(keys):
        raise ModelError(
            f"`rows` must hold DHRow or dicts of its fields ({', '.join(keys)}) with `joint` and `body` at "
            f"least, got {short_repr(given)}.",
            key="rows",
        )
    return DHRow(**given)


def _check_part(name: str, part: Any, part_type: type, key: str) -> None:
    """Raise an error unless a part has the given type."""
    if not isinstance(part, part_type):
        raise invalid_part(f"'{name}'", key, f"must be a {part_type.__name__}", part)


def _point_in_world(p: Vector, T: np.ndarray) -> Vector:
    """Transform a point from a link frame to world coordinates."""
    x, y, z = (T[:3, :3] @ np.array(p) + T[:3, 3]).tolist()
    return (x, y, z)


def _frame_in_world(frame: Frame, T: np.ndarray) -> Frame:
    """Transform a frame from a link frame to world coordinates."""
    axes = tuple(map(tuple, (np.array(frame.axes) @ T[:3, :3].T).tolist()))
    return replace(frame, origin=_point_in_world(frame.origin, T), axes=axes)  # type: ignore[arg-type]


def _body_in_world(body: Body, T: np.ndarray) -> Body:
    """Transform a body from a link frame to world coordinates."""
    points = {key: getattr(body, key) for key in ("com", "at") if getattr(body, key) is not None}
    changes: dict[str, Any] = {key: _point_in_world(p, T) for key, p in points.items()}
    if body.inertia is not None:
        turned = T[:3, :3] @ np.array(body.inertia) @ T[:3, :3].T
        changes["inertia"] = turned[TENSOR_ENTRIES]
    return replace(body, **changes)
