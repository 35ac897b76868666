"""Upper bounds that the literature proves for numbers of complex solutions of position problems.

A planar linkage is solved one Assur group after the other. Assur groups are the smallest sets of links that
are at rest if the links joined to them are. The number of solutions is at most the product over the groups. A
group has as many solutions as the Baranov truss that it forms with one link in place of all others.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import numpy as np

from kic.description.description import closed_contacts
from kic.description.validation import GROUND
from kic.kernels import layout as lay
from kic.kinematics.items import LENGTH, LINEAR, WEIGHTED
from kic.kinematics.tree import PLANARITY_ATOL, Tree
from kic.numerics.graphs import components
from kic.transfer.closure import Closure
from kic.transfer.constraint_system import ends_of

# joints between links (a, b, is_prismatic) of a planar linkage; link 0 is ground
Joints = list[tuple[int, int, bool]]
Edges = list[tuple[int, ...]]

# numbers of poses of a body at given distances from another, by their joint and the number of distances
_BODIES: dict[tuple[str, int], tuple[int | None, str]] = {
    ("", 6): (40, "six distances: F. Ronga and T. Vust, 1992; C. W. Wampler, 1996"),
    ("spherical", 3): (8, "three distances about a point: C. Innocenti and V. Parenti-Castelli, 1993"),
    ("revolute", 1): (2, "a circle and a sphere"),
    ("prismatic", 1): (2, "a line and a sphere"),
}
_SOURCES = "E. J. F. Primrose, F. Freudenstein and B. Roth, 1967; N. Rojas and F. Thomas, 2011"


def proven_number(closure: Closure) -> tuple[int, str] | None:
    """Return the proven bound on the number of isolated complex solutions, with its source, or None."""
    t = closure.transfer
    tree, named = t.tree, t.size
    kinds = tree.cols[:, lay.KIND]
    items = [t.system.rows.source[i] for i in t.system.rows.item_of[t.system.picked]]
    if not t.owners and not closure.held and all(item.kind == lay.COORDINATE for item in items):
        return 1, "the values are those of all coordinates"
    if not t.owners and len(closure.held) == 1 and closure.turns[0] - closure.held[0][1] == 3 and named == 12:
        (row,) = {item.frame_b for item in items}
        path = tree.path(row)
        if len(path) == len(kinds) == 6 and (kinds == lay.REVOLUTE).all():
            return _arm_number(tree)
    return _platform_number(closure) or _planar_number(closure)


def _arm_number(tree: Tree) -> tuple[int, str]:
    """Return the largest number of solutions of six revolute joints in series."""
    axes = np.array([a[:, 2] for a in tree.zero_axes]).real
    places = np.array(tree.zero_origins).real
    across = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    for k in range(4):
        three = slice(k, k + 3)
        parallel = np.abs(np.cross(axes[k], axes[three])).max() < PLANARITY_ATOL
        A, b = across[three].reshape(9, 3), (across[three] @ places[three, :, None]).ravel()
        point = np.linalg.lstsq(A, b, rcond=None)[0]
        if parallel or np.abs(A @ point - b).max() < PLANARITY_ATOL * np.ptp(places, axis=0).max():
            how = "parallel" if parallel else "in one point"
            return 8, f"three consecutive axes {how}: D. L. Pieper, 1968; C. Mavroidis and B. Roth, 1994"
    return 16, "six revolute joints in series: E. J. F. Primrose, 1986; H.-Y. Lee and C.-G. Liang, 1988"


def _platform_number(closure: Closure) -> tuple[int, str] | None:
    """Return the largest number of poses of a body at given distances, or on rods, from another one.

    Six distances determine the pose, or fewer if a joint connects the two bodies.
    """
    found = _distances(closure)
    if found is None:
        return None
    distances, rods, joint = found
    number, source = _BODIES.get((joint, len(distances)), (None, ""))
    for body in distances[0]:
        known = [x[body] for x in distances if x[body] is not None]
        frames = np.array([frame for frame, _ in known])
        places = np.array([place for _, place in known], complex).real.reshape(-1, 3)
        apart = np.abs(places[:, None] - places).max(axis=2)
        equal = apart < PLANARITY_ATOL * apart.max(initial=0.0)
        # given joints move the frames of a link
        pairs = (equal & (frames[:, None] == frames)).sum(axis=1) == 2
        if number == 40 and len(places) == 6 and pairs.all():
            number, source = 16, "six distances in pairs to three points: P. Nanua et al., 1990"
    if number is None:
        return None
    ways = ", times 2 for each universal joint" if rods else ""
    return number * 2**rods, source + ways


def _distances(closure: Closure) -> tuple[list[dict[int, Any]], int, str] | None:
    """Return the distances between two bodies, the number of rods among them, and the type of their joint.

    Each distance has a frame and a point on each body, or None where they do not matter. Given coordinates
    are at rest. A rod has a universal and a spherical joint. A link with a revolute and a spherical joint
    moves a point on a circle, as two distances do. A given translation of a free joint is a distance from a
    point at infinity. Return None for other mechanisms.
    """
    t = closure.transfer
    tree, drawing = t.tree, t.tree.description
    source, item_of = t.system.rows.source, t.system.rows.item_of
    items = [source[k] for k in np.unique(item_of[t.system.picked]).tolist()]
    others = {source[k].kind for k in item_of[t.system.picked[: t.size]]} - {lay.COORDINATE, lay.DISTANCE}
    others |= {item.kind for item in items} & {lay.NORM}
    if others or closure.held or drawing.couplings or closed_contacts(drawing) or drawing.angles:
        return None
    given = {tree.columns[item.frame_b] for item in items if item.kind == lay.COORDINATE}
    number = {body: k for k, body in enumerate((GROUND, *(body.name for body in drawing.bodies)))}
    fixed = [joint.bodies for joint in drawing.joints if given.issuperset(joint.components)]
    label = components([(number[a], number[b]) for a, b in fixed], len(number))
    link = {body: int(label[k]) for body, k in number.items()}
    at_frame = {tree.frame[body]: link[body] for body in number}
    distances: list[dict[int, Any]] = [
        {at_frame[n]: (n, place) for n, place in zip((x.frame_b, x.frame_a), ends_of(tree, x), strict=True)}
        for x in items
        if x.kind == lay.DISTANCE
    ]
    joints = [joint for joint in drawing.joints if len({link[body] for body in joint.bodies}) > 1]
    for joint in [joint for joint in joints if joint.type == "free"]:
        distances += [{link[body]: None for body in joint.bodies}] * len(given & {*joint.components[:3]})
        given -= {*joint.components[:3]}
    joints = [joint for joint in joints if joint.type != "free"]
    if any(given.intersection(joint.components) for joint in drawing.joints if joint.bodies not in fixed):
        return None
    ends: dict[int, dict[str, tuple[int, Any]]] = {}  # of links with one joint of each type
    for joint in joints:
        for here, there in (joint.bodies, joint.bodies[::-1]):
            end = tree.frame[there], joint.at
            ends.setdefault(link[here], {})[joint.type] = link[there], end
    rods = [own for own in ends.values() if own.keys() == {"universal", "spherical"}]
    distances += [dict(own.values()) for own in rods]
    known = distances[0].keys() if distances else {0}
    circles = [x for k, x in ends.items() if x.keys() == {"revolute", "spherical"} and k not in known]
    distances += [{x["spherical"][0]: x["spherical"][1], x["revolute"][0]: None} for x in circles] * 2
    if not distances:
        return None
    bodies, legs = distances[0].keys(), len(rods) + len(circles)
    direct = [joint.type for joint in joints if {link[body] for body in joint.bodies} == bodies]
    whole = len({*link.values()} - bodies) == legs and len(joints) == 2 * legs + len(direct)
    if not whole or len(direct) > 1 or any(x.keys() != bodies for x in distances):
        return None
    return distances, len(rods), direct[0] if direct else ""


def _planar_number(closure: Closure) -> tuple[int, str] | None:
    """Return the largest number of solutions of a planar linkage, with its groups and sources."""
    joints, numbers = _planar_joints(closure), list[int]()
    if not joints:
        return None
    while joints and (triangle := _triangle(joints)):
        slides = sum(joints[n][2] for n in triangle)
        if slides == 3:
            return None  # a motion remains
        numbers.append(1 if slides == 2 else 2)
        a, b, c = sorted({link for n in triangle for link in joints[n][:2]})
        same = {b: a, c: a}
        joints = [
            (same.get(p, p), same.get(q, q), prismatic)
            for n, (p, q, prismatic) in enumerate(joints)
            if n not in triangle
        ]
    groups = _assur_groups(joints) if joints else []
    found = [_number_of(group) for group in groups or ()]
    if groups is None or None in found:
        return None
    numbers = sorted([*numbers, *(number for number in found if number)])
    return prod(numbers), f"planar Assur groups, {' · '.join(map(str, numbers))}; {_SOURCES}"


def _triangle(joints: Joints) -> tuple[int, int, int] | None:
    """Return three joints that connect three links in pairs and so make them one link, or None."""
    at = {frozenset((a, b)): n for n, (a, b, _) in enumerate(joints)}
    links = {link for pair in at for link in pair}
    for a, b in (tuple(pair) for pair in at if len(pair) == 2):
        for c in links - {a, b}:
            others = at.get(frozenset((a, c))), at.get(frozenset((b, c)))
            if others[0] is not None and others[1] is not None:
                return at[frozenset((a, b))], others[0], others[1]
    return None


def _planar_joints(closure: Closure) -> Joints | None:
    """Return the joints of a planar linkage with its inputs at rest; None for other mechanisms.

    A given distance is a link with two hinges. A given component of a point is a slider with one hinge, and a
    given angle is a link with two prismatic joints.
    """
    t = closure.transfer
    tree, normal = t.tree, t.tree.planar_normal
    drawing = tree.description
    if normal is None or drawing.couplings or closed_contacts(drawing):
        return None
    joints: Joints = []
    welds: list[tuple[int, int]] = []
    count = tree.size + 1  # link n + 1 is that of frame n

    def add_link(a: int, b: int, first: bool, second: bool) -> None:
        """Join links a and b by a link with two joints, prismatic if `first` or `second` is True."""
        nonlocal count
        joints.extend([(a, count, first), (count, b, second)])
        count += 1

    for cut in tree.cuts:
        a, b = (tree.frame[body] + 1 for body in cut.bodies)
        if cut.type == "fixed":
            welds.append((a, b))
        elif cut.type in ("revolute", "prismatic"):
            joints.append((a, b, cut.type == "prismatic"))
        else:
            return None
    system, given = t.system, set[int]()
    bodies = [row for _, row, turn in closure.held if turn - row == 3]
    picked = system.picked.tolist()
    for k in np.unique(system.rows.item_of[picked]).tolist():
        item = system.rows.source[k]
        own = [n for n, row in enumerate(picked) if system.rows.item_of[row] == k]
        a, b = max(item.frame_a, -1) + 1, item.frame_b + 1
        if item.kind == lay.DISTANCE:
            add_link(a, b, False, False)
        elif item.kind == lay.NORM:
            return None
        elif min(own) >= t.size:
            continue  # of a closed joint
        elif item.kind == lay.COORDINATE:
            given.add(item.frame_b)
        elif item.kind == lay.POINT and set(own) & set(bodies):
            welds.append((a, b))
        elif any(row <= min(own) < turn + 9 for _, row, turn in closure.held):
            if not bodies:
                return None  # an orientation without a place
        elif item.kind == lay.POINT and len(own) == 2:
            joints.append((a, b, False))
        elif LENGTH[item.kind] and not WEIGHTED[item.kind] and len(own) == 1:
            add_link(a, b, True, False)
        elif LINEAR[item.kind]:  # an angle
            add_link(a, b, True, True)
        else:
            return None
    for n, (parent, kind) in enumerate(tree.cols[:, [lay.PARENT, lay.KIND]].tolist()):
        if n in given:
            welds.append((parent + 1, n + 1))
        else:
            joints.append((parent + 1, n + 1, kind == lay.PRISMATIC))
    label = components(welds, count)
    return [(int(label[a]), int(label[b]), prismatic) for a, b, prismatic in joints]


def _assur_groups(joints: Joints) -> list[Edges] | None:
    """Return, for each Assur group, the pairs of links that its joints connect; links outside it are 0.

    Return None if the joints do not determine all links.

    A matching assigns each condition of a joint to one of the three coordinates of a link. A link depends on
    those with which its conditions connect it. The groups are the strongly connected components of this graph
    (A. Sljoka, O. Shai, W. Whiteley, ASME IDETC 2011, DETC2011-48146).
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    moving = sorted({link for a, b, _ in joints for link in (a, b)} - {0})
    if 3 * len(moving) != 2 * len(joints):
        return None
    place = {link: k for k, link in enumerate(moving)}
    entries = [
        (2 * n + condition, 3 * place[link] + coordinate)
        for n, (a, b, _) in enumerate(joints)
        for link in {a, b} - {0}
        for condition in range(2)
        for coordinate in range(3)
    ]
    rows, columns = np.array(entries).reshape(-1, 2).T
    graph = csr_array((np.ones(len(entries)), (rows, columns)), shape=(2 * len(joints), 3 * len(moving)))
    match = maximum_bipartite_matching(graph, perm_type="column")
    if (match < 0).any():
        return None
    depends = [
        (moving[match[2 * n + condition] // 3], link)
        for n, (a, b, _) in enumerate(joints)
        for condition in range(2)
        for link in (a, b)
    ]
    label = components(depends, max(moving) + 1, strong=True)
    groups: dict[int, Edges] = {}
    for n, (a, b, _) in enumerate(joints):
        group = label[moving[match[2 * n] // 3]]
        groups.setdefault(group, []).append(tuple(link if label[link] == group else 0 for link in (a, b)))
    return list(groups.values())


def _number_of(group: Edges) -> int | None:
    """Return the largest number of solutions of an Assur group; None if it is not known."""
    if len(group) != 9:
        return 6 if len(group) == 6 else None
    degree = Counter(link for pair in group for link in pair)
    if max(degree.values()) > 3:
        return 18
    ternary = Counter(link for pair in group if min(degree[link] for link in pair) == 3 for link in pair)
    return 14 if max(ternary.values()) == 3 else 16
