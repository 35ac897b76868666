"""Shapes of links: rods between ends, elbows along common normals, faces and hulls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

# maximum offset of joints along their axes, in radii of a joint
_OFFSET_MAX_FACTOR = 11.0


@dataclass(frozen=True)
class LinkEnd:
    """End of a link: a joint with its axis, or a point."""

    place: np.ndarray
    axis: np.ndarray | None
    name: str
    bearing: bool = True  # True if it transmits forces, as a joint does


def distinct(
    place: np.ndarray, among: Iterable[np.ndarray], tolerance: float, normal: np.ndarray | None = None
) -> bool:
    """Return True if a point differs from all others; differences along a normal are ignored."""
    d = place - np.reshape(list(among), (-1, 3))
    if normal is not None:
        d = d - np.outer(d @ normal, normal)
    return not (np.linalg.norm(d, axis=1) < tolerance).any()


def links(
    ends: list[LinkEnd], spare: np.ndarray | None, size: float, normal: np.ndarray | None, serial: bool
) -> list[tuple[str, np.ndarray]]:
    """Return the shapes of a body: rods ("link"), faces ("plate") and hulls ("solid") with points (n, 3).

    `spare` (3,) is the reference point, used if the body has a single end; `size` is the radius of a joint;
    `normal` (3,) is the normal of a planar mechanism in plan view. Spatial open chains are `serial`: their
    links have elbows and their points stand on stems.
    """
    near = 0.5 * size
    bearing: list[LinkEnd] = []
    for end in ends:
        if end.bearing and distinct(end.place, [e.place for e in bearing], near, normal):
            bearing.append(end)
    loose: list[np.ndarray] = []
    for end in ends:
        if not end.bearing and distinct(end.place, [*(e.place for e in bearing), *loose], near, normal):
            loose.append(end.place)
    held = [e.place for e in bearing]
    if (
        len(held) == 1
        and not loose
        and spare is not None
        and _distance_from_axis(spare, bearing[0], normal) > 2 * size
    ):
        loose = [spare]
    if len(held) < 2:
        if len(held) + len(loose) >= 3 and normal is not None:
            return _face([*held, *loose], size)
        return _branches(held, loose)
    if len(held) == 2:
        path = _elbow(bearing[0], bearing[1], size) if serial else np.stack(held)
        off = [p for p in loose if _nearest_on_path(p, path)[1] > near]
        if not serial and off:
            return _face([*held, *off], size)
        return [("link", path), *(("stem", np.stack([_nearest_on_path(p, path)[0], p])) for p in off)]
    made = _face(_coplanar(bearing, size), size)
    for p in loose:
        foot, apart = _stem_foot(p, made)
        if apart > near:
            made.append(("stem", np.stack([foot, p])))
    return made


def _branches(held: list[np.ndarray], loose: list[np.ndarray]) -> list[tuple[str, np.ndarray]]:
    """Return a tree of rods between nearest points, thinner away from the first point, like fingers."""
    tree, left = [*held, *loose][:1], [*held, *loose][1:]
    made: list[tuple[str, np.ndarray]] = []
    while left:
        apart = [[float(np.linalg.norm(p - q)) for q in tree] for p in left]
        k = int(np.argmin([min(row) for row in apart]))
        start = tree[int(np.argmin(apart[k]))]
        made.append(("stem" if start is not tree[0] else "link", np.stack([start, left[k]])))
        tree.append(left.pop(k))
    return made


def _distance_from_axis(p: np.ndarray, end: LinkEnd, normal: np.ndarray | None) -> float:
    """Return the distance of a point from a joint, without components along its axis and the normal."""
    d = p - end.place
    for axis in (end.axis, normal):
        if axis is not None:
            d = d - (d @ axis) * axis
    return float(np.linalg.norm(d))


def _coplanar(ends: list[LinkEnd], size: float) -> list[np.ndarray]:
    """Return positions of joints with parallel axes, moved along the axes to a common plane.

    Joints that are not parallel, or too far from a common plane, keep their positions.
    """
    first = ends[0].axis
    if first is None or any(e.axis is None or np.linalg.norm(np.cross(e.axis, first)) > 1e-6 for e in ends):
        return [e.place for e in ends]
    levels = [float(e.place @ first) for e in ends]
    if np.ptp(levels) > _OFFSET_MAX_FACTOR * size:
        return [e.place for e in ends]
    level = float(np.median(levels))
    return [e.place + (level - e.place @ first) * first for e in ends]


def _elbow(one: LinkEnd, two: LinkEnd, size: float) -> np.ndarray:
    """Return the rod between two joints; oblique connections follow the common normal of the axes."""
    p, q = one.place, two.place
    w = q - p
    length = float(np.linalg.norm(w))
    straight = np.stack([p, q])
    if one.axis is None or two.axis is None:
        return straight
    u, v = one.axis, two.axis
    oblique = [abs(float(w @ a)) / length for a in (u, v)]
    if all(c < 0.05 or c > 0.95 for c in oblique):
        return straight
    across = np.cross(u, v)
    if np.linalg.norm(across) < 0.05:
        corners = [p + (w @ u) * u]
    else:
        # feet of the common normal: p + s u and q + t v
        s, t = np.linalg.lstsq(np.stack([u, -v], axis=1), w, rcond=None)[0]
        if max(abs(s), abs(t)) > 1.5 * length:
            return straight
        corners = [p + s * u, q + t * v]
    path = [p]
    for corner in [*corners, q]:
        if np.linalg.norm(corner - path[-1]) > 0.3 * size:
            path.append(corner)
    path[-1] = q
    return np.stack(path) if len(path) > 1 else straight


def _face(places: list[np.ndarray], size: float) -> list[tuple[str, np.ndarray]]:
    """Return a rod through collinear points, a face of coplanar points, or a hull."""
    p = np.stack(places)
    middle = p.mean(axis=0)
    _, s, axes = np.linalg.svd(p - middle)
    s = np.append(s, np.zeros(3))[:3] / np.sqrt(len(p))
    if s[1] < 0.35 * size:
        along = (p - middle) @ axes[0]
        return [("link", np.stack([p[along.argmin()], p[along.argmax()]]))]
    if s[2] < max(0.35 * size, 0.05 * s[1]):
        return [("plate", p[_hull_indices((p - middle) @ axes[:2].T)])]
    return [("solid", p)]


def _hull_indices(flat: np.ndarray) -> list[int]:
    """Return indices of the convex hull of points (n, 2), counter-clockwise (monotone chain of Andrew)."""
    order = sorted(range(len(flat)), key=lambda k: (flat[k, 0], flat[k, 1]))
    size = np.ptp(flat, axis=0).max()

    def half(ks: list[int]) -> list[int]:
        chain: list[int] = []
        for k in ks:
            while len(chain) > 1:
                a, b = flat[chain[-1]] - flat[chain[-2]], flat[k] - flat[chain[-1]]
                if a[0] * b[1] - a[1] * b[0] > 1e-9 * size**2:
                    break
                chain.pop()
            chain.append(k)
        return chain[:-1]

    return half(order) + half(order[::-1])


def hull(flat: np.ndarray) -> np.ndarray:
    """Return corners (k, 2) of the convex hull of points (n, 2), counter-clockwise."""
    return flat[_hull_indices(flat)]


def within(places: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return a mask of the points (n, 2) within a convex polygon (k, 2)."""
    edge = np.roll(corners, -1, axis=0) - corners
    to = places[:, None] - corners
    side = edge[:, 0] * to[..., 1] - edge[:, 1] * to[..., 0]
    inside: np.ndarray = (side > 0).all(axis=1) | (side < 0).all(axis=1)
    return inside


def _nearest_on_path(p: np.ndarray, path: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the nearest point of a path (n, 3) and its distance."""
    a, d = path[:-1], np.diff(path, axis=0)
    t = np.clip(((p - a) * d).sum(axis=1) / (d**2).sum(axis=1), 0.0, 1.0)
    feet = a + t[:, None] * d
    apart = np.linalg.norm(p - feet, axis=1)
    k = int(apart.argmin())
    return feet[k], float(apart[k])


def _stem_foot(p: np.ndarray, made: list[tuple[str, np.ndarray]]) -> tuple[np.ndarray, float]:
    """Return the foot of a stem and its length: in the face below the point, else at the nearest corner."""
    kind, places = made[0]
    if kind == "link":
        return _nearest_on_path(p, places)
    middle = places.mean(axis=0)
    axes = np.linalg.svd(places - middle)[2]
    foot = p - ((p - middle) @ axes[2]) * axes[2]
    flat = (places - middle) @ axes[:2].T
    if kind == "plate" and within((foot - middle)[None] @ axes[:2].T, flat)[0]:
        return foot, float(np.linalg.norm(p - foot))
    corner = places[np.linalg.norm(places - p, axis=1).argmin()]
    return corner, float(np.linalg.norm(p - corner))
