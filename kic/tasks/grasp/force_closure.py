"""Form and force closure: tests if contacts can resist every wrench, with proofs for both results.

Force closure (Murray, Li and Sastry 1994, proposition 5.3): the grasp map has full rank, and there are forces
strictly inside all friction cones whose resultant is zero. Form closure of first order is the same without
friction (Lakshminarayana 1978; Mishra, Schwartz and Sharir 1987): the normals positively span all wrenches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

from kic.errors import MemberError, SingularError
from kic.numerics import conic_programs as conic
from kic.numerics.arguments import choice, instance, integer
from kic.numerics.arrays import check_failures
from kic.numerics.display import Batched, Summary
from kic.tasks.grasp.contacts import NORMAL, ContactSet

# components of a direction below this share of the size of the grasp are shown as 0
SHOWN_RTOL = 1e-6
# contact power against a unit twist that counts as zero in the search for simple twists
ZERO_POWER_ATOL = 1e-12
# contact power, per unit twist, that is accepted for a twist found by the solver
TWIST_POWER_ATOL = 1e-6


def map_members(
    batch: tuple[int, ...], failures: str, answer: Callable[[int], dict[str, Any]]
) -> tuple[np.ndarray, list[dict[str, Any] | None]]:
    """Evaluate a function on all members; return a mask of valid members, and the results or None.

    Unless `failures` is "mask", raise the error of the first failed member, with the indices of all failed
    members in `failed`.
    """
    check_failures(failures)
    answers: list[dict[str, Any] | None] = []
    errors: list[tuple[tuple[int, ...], MemberError]] = []
    for i in range(prod(batch)):
        try:
            answers.append(answer(i))
        except MemberError as error:
            answers.append(None)
            errors.append((tuple(int(k) for k in np.unravel_index(i, batch)), error))
    if errors and failures == "raise":
        first = errors[0][1]
        where = [index for index, _ in errors]
        first.numbers["failed"] = first.failed = where
        if batch:
            those = ", ".join(str(list(index)) for index in where[:4])
            first.message += f" (Members {those}{' …' if where[4:] else ''} of batch {batch}.)"
        raise first
    return np.array([a is not None for a in answers], dtype=bool).reshape(batch), answers


def gather(
    answers: Sequence[dict[str, Any] | None], batch: tuple[int, ...], key: str, tail: tuple[int, ...]
) -> np.ndarray:
    """Return one entry of the results as an array (..., *tail), NaN for failed members."""
    whole = np.full((len(answers), *tail), np.nan)
    for i, answer in enumerate(answers):
        if answer is not None:
            whole[i] = answer[key]
    return whole.reshape((*batch, *tail))[()]  # a number for one member


def single_grasps(contacts: ContactSet, batch: tuple[int, ...]) -> list[SingleGrasp]:
    """Return the grasps of a batch, to which the contacts are broadcast."""
    parts = contacts.points, contacts.columns, contacts.mu, contacts.gamma, contacts.about
    tails = (a.shape[len(contacts.batch) :] for a in parts)
    arrays = [
        np.broadcast_to(a, (*batch, *tail)).reshape(prod(batch), *tail)
        for a, tail in zip(parts, tails, strict=True)
    ]
    return [SingleGrasp(contacts, *(a[i] for a in arrays)) for i in range(prod(batch))]


class SingleGrasp:
    """Dimensionless form of one grasp of a batch.

    Moments are about the centre of the contacts and divided by their size, `length`. Force components x
    are scaled such that every cone is xₙ ≥ |x_others|; f = `unit` · x, with units 1, μ, μ, γ. `map` (W, m)
    gives the wrench for x.
    """

    def __init__(
        self,
        contacts: ContactSet,
        points: np.ndarray,
        columns: np.ndarray,
        mu: np.ndarray,
        gamma: np.ndarray,
        about: np.ndarray,
    ) -> None:
        self.contacts, self.about = contacts, about
        # in a plane, distances across it do not count
        arms = points - points.mean(axis=0)
        if contacts.plane is not None:
            arms = arms @ (np.eye(3) - np.outer(contacts.plane[0], contacts.plane[0]))
        self.middle = points.mean(axis=0)
        size = float(np.sqrt((arms**2).sum(axis=-1).mean()))
        self.length = size or float(gamma.max()) or 1.0
        sliding = np.isin(np.array(contacts.kinds), ("friction", "soft"))[contacts.owner]
        axis = contacts.axis
        self.unit = np.where(axis == 3, gamma[contacts.owner], np.where(axis == 0, 1.0, mu[contacts.owner]))
        self.unit = np.where(sliding, self.unit, 1.0)
        self.map = contacts.basis @ self._moved(columns).T * self.unit

    def wrench(self, w: np.ndarray) -> np.ndarray:
        """Return the dimensionless form of a wrench (W,) about the reference point."""
        return self.contacts.basis @ self._moved(w @ self.contacts.basis)

    def twist(self, y: np.ndarray) -> np.ndarray:
        """Convert a dimensionless twist to the velocity of the reference point and the angular velocity."""
        v, omega = np.split(y @ self.contacts.basis, 2)
        omega = omega / self.length
        return self.contacts.basis @ np.concatenate([v + np.cross(omega, self.about - self.middle), omega])

    def _moved(self, six: np.ndarray) -> np.ndarray:
        """Return wrenches (..., 6) about the centre, with moments divided by the size."""
        force, moment = six[..., :3], six[..., 3:]
        shifted = moment + np.cross(self.about - self.middle, force)
        return np.concatenate([force, shifted / self.length], axis=-1)

    def friction_margins(self, f: np.ndarray) -> np.ndarray:
        """Return margins (K,) of forces (m,): μ fₙ − |fₜ|, fₙ without friction, ∞ for pins."""
        found = np.empty(len(self.contacts))
        for k, (kind, span) in enumerate(zip(self.contacts.kinds, self.contacts.spans, strict=True)):
            if kind == "pinned":
                found[k] = np.inf
            elif kind == "point":
                found[k] = f[span.start]
            else:
                mu = self.unit[span.start + 1]
                weights = mu / self.unit[span.start + 1 : span.stop]
                found[k] = mu * f[span.start] - np.linalg.norm(weights * f[span.start + 1 : span.stop])
        return found

    def least_power(self, y: np.ndarray, counted: np.ndarray | None = None, safety: float = 1.0) -> float:
        """Return the least power of contacts on a dimensionless twist y (W,), negative if they resist."""
        power, least = y @ self.map, np.inf
        if counted is not None:
            power = np.where(np.isin(np.arange(len(power)), counted), power, 0.0)
        for kind, span in zip(self.contacts.kinds, self.contacts.spans, strict=True):
            normal, tangential = power[span.start], float(np.linalg.norm(power[span.start + 1 : span.stop]))
            least = min(
                least, -np.hypot(normal, tangential) if kind == "pinned" else normal - tangential / safety
            )
        return float(least)

    def simplify_twist(
        self,
        y: np.ndarray,
        load: np.ndarray | None = None,
        counted: np.ndarray | None = None,
        safety: float = 1.0,
    ) -> np.ndarray:
        """Return a unit twist along the load or a world axis that no contact resists, else y normalized.

        Of several such twists, return the twist on which the load does the most work.
        """
        unit = np.eye(len(y))
        direction = np.zeros(len(y)) if load is None else load / np.linalg.norm(load)
        simple = [*([] if load is None else [direction]), *unit, *-unit]
        free = [
            v
            for v in simple
            if self.least_power(v, counted, safety) >= -ZERO_POWER_ATOL
            and (load is None or v @ direction > SHOWN_RTOL)
        ]
        return max(free, key=lambda v: round(float(v @ direction), 9)) if free else y / np.linalg.norm(y)

    def describe_load(self, twist: np.ndarray) -> str:
        """Describe the load that does work on a twist (W,): a force, a moment about a line, or a wrench."""
        v, omega = np.split(twist @ self.contacts.basis, 2)
        v = v + np.cross(omega, self.middle - self.about)
        rotation, translation = float(np.linalg.norm(omega)), float(np.linalg.norm(v))
        if rotation * self.length <= SHOWN_RTOL * translation:
            return f"force along {format_vector(v / translation, 1.0)}"
        axis = omega / rotation
        pitch = float(v @ omega) / rotation**2
        point = self.middle + np.cross(omega, v) / rotation**2
        line = f"the line through {format_vector(point, self.length)} along {format_vector(axis, 1.0)}"
        if abs(pitch) <= SHOWN_RTOL * self.length:
            return f"moment about {line}"
        return f"wrench on {line} of pitch {pitch:.4g}"


def format_vector(a: np.ndarray, size: float) -> str:
    """Format a vector with four digits; entries that are negligible compared with a size become 0."""
    return f"({', '.join(f'{x:.4g}' if abs(x) > SHOWN_RTOL * size else '0' for x in a.tolist())})"


@dataclass(frozen=True, repr=False)
class GraspClosure(Batched):
    """Closure of a grasp and its proof; made by `form_closure` and `force_closure`.

    Attributes
    ----------
    kind : {"form", "force"}
        Without and with friction.
    contacts : ContactSet
    ok : (...) bool
        Members for which the test is conclusive.
    closed : (...) bool
        True if every wrench can be resisted.
    margin : (...)
        Margin from 0 (not closed) to 1 (contacts that balance by equal normal forces, without friction). It
        is the largest value, over balanced forces, of the smallest xₙ − |xₜ| over the mean xₙ, where xₜ is
        the friction force divided by its coefficient.
    force : (..., m)
        The balanced forces that prove closure: strictly inside the cones, with mean normal force 1 of
        contacts other than pins. NaN if not closed.
    twist : (..., W)
        Proof of missing closure: a twist (velocity of the reference point, angular velocity) that no contact
        resists, of size one over the grasp. Loads that do work on it are not resisted. NaN if closed.
    both : (...) bool
        True if the contacts do not resist the twist in either sense.
    missing : tuple of str
        Descriptions of the loads that are not resisted, one for each member, "" if closed.
    """

    _one_line = ("kind", "batch")
    _per_member = ("ok", 0)

    kind: str
    contacts: ContactSet
    ok: np.ndarray
    closed: np.ndarray
    margin: np.ndarray
    force: np.ndarray
    twist: np.ndarray
    both: np.ndarray
    missing: tuple[str, ...]

    def __bool__(self) -> bool:
        """Return True if all members are closed; inconclusive members are not."""
        return bool(self.closed.all())

    def summary(self) -> Summary:
        """Return a summary of the result and its proof."""
        sheet = Summary(f"{self.kind} closure of {len(self.contacts)} contacts")
        index = sheet.member(self.batch, f"; closed: {int(self.closed.sum())} of {self.closed.size}")
        if index is None:
            return sheet
        if not self.ok[index]:
            sheet.say("undecided")
        elif self.closed[index]:
            sheet.say(f"closed, margin {self.margin[index]:.4g}")
            forces = self.force[index][:, None]
            sheet.matrix("forces that balance, inside all cones", self.contacts.components, [""], forces)
        else:
            sheet.say(f"not closed: {self.missing[0]}")
            rows = [label.replace("f", "v").replace("m", "w") for label in self.contacts.labels]
            sheet.matrix("motion that no contact resists", rows, [""], self.twist[index][:, None])
        return sheet


def form_closure(contacts: ContactSet, *, failures: Literal["raise", "mask"] = "raise") -> GraspClosure:
    """Test contacts for form closure: they immobilize a body to first order without friction.

    Friction is ignored for all kinds; pins act in both senses. The test is a linear program. Bodies that are
    immobilized by curvature only are not closed to first order.

    Parameters
    ----------
    contacts : ContactSet
        The contacts.
    failures : {"raise", "mask"}
        Treatment of inconclusive members.

    Returns
    -------
    GraspClosure
        The result, with a remaining twist if there is no closure.

    Raises
    ------
    SingularError
        If a member is inconclusive to rounding.

    Examples
    --------
    >>> sides = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]]
    >>> inward = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0]]
    >>> kic.form_closure(kic.ContactSet(sides, inward, "point", plane=[0, 0, 1])).missing
    ('cannot resist, in either sense, a moment about the line through (0, 0, 0) along (0, 0, 1)',)
    """
    instance("contacts", contacts, ContactSet)
    counted = np.flatnonzero((contacts.axis == NORMAL) | contacts.pinned[contacts.owner])
    return _closure("form", contacts, counted, None, failures)


def force_closure(
    contacts: ContactSet,
    *,
    method: Literal["cones", "pyramids"] = "cones",
    edges: int = 24,
    failures: Literal["raise", "mask"] = "raise",
) -> GraspClosure:
    """Test contacts for force closure: with friction they can resist every wrench.

    Parameters
    ----------
    contacts : ContactSet
        The contacts.
    method : {"cones", "pyramids"}
        "cones" solves a second-order cone program (a linear program in a plane). "pyramids" solves linear
        programs with pyramids inside and around the cones. It needs no extra solver, and raises if the two
        disagree.
    edges : int
        Edges of each pyramid, at least 4; for soft fingers, edges of each of half as many rings.
    failures : {"raise", "mask"}
        Treatment of inconclusive members.

    Returns
    -------
    GraspClosure
        The result, with a load that the contacts cannot resist if there is no closure.

    Raises
    ------
    SingularError
        If a member is inconclusive to rounding or for the pyramids.

    Examples
    --------
    Two hard fingers let a ball spin about the line between them:

    >>> c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.4)
    >>> kic.force_closure(c).missing
    ('cannot resist, in either sense, a moment about the line through (0, 0, 0) along (1, 0, 0)',)
    """
    instance("contacts", contacts, ContactSet)
    choice("method", method, ("cones", "pyramids"))
    integer("edges", edges, 4)
    counted = np.arange(len(contacts.axis))
    return _closure("force", contacts, counted, int(edges) if method == "pyramids" else None, failures)


def _closure(
    kind: str, contacts: ContactSet, counted: np.ndarray, edges: int | None, failures: str
) -> GraspClosure:
    """Test closure with the components `counted`, by cones or pyramids."""
    grasps = single_grasps(contacts, contacts.batch)
    ok, answers = map_members(contacts.batch, failures, lambda i: _test_closure(grasps[i], counted, edges))
    tails = {
        "closed": (),
        "margin": (),
        "force": contacts.axis.shape,
        "twist": (len(contacts.labels),),
        "both": (),
    }
    found = {key: gather(answers, contacts.batch, key, tail) for key, tail in tails.items()}
    found |= {key: found[key] == 1 for key in ("closed", "both")}
    missing = tuple("" if a is None else a["missing"] for a in answers)
    return GraspClosure(kind, contacts, ok, missing=missing, **found)


def _test_closure(grasp: SingleGrasp, counted: np.ndarray, edges: int | None) -> dict[str, Any]:
    """Test closure of one member; return the result with its proof."""
    from scipy.linalg import null_space

    contacts = grasp.contacts
    pinned = contacts.pinned[contacts.owner[counted]]
    G = grasp.map[:, counted]
    U, sigma, _ = np.linalg.svd(G)
    rank = int((sigma > conic.EQUALITY_RTOL * sigma.max(initial=0.0)).sum())
    if rank < len(G):
        return _open_result(grasp, _simplest_direction(U[:, rank:]), True, counted)
    # pins resist in both senses; the other contacts must span the remaining wrenches
    rest, press = null_space(G[:, pinned].T, rcond=conic.EQUALITY_RTOL), G[:, ~pinned]
    sizes = tuple(np.unique(contacts.owner[counted][~pinned], return_counts=True)[1].tolist())
    if not sizes:
        return _closed_result(grasp, counted, np.zeros(0), 1.0)
    if edges is None:
        x, y, t = _deepest_balanced(rest.T @ press, np.eye(press.shape[1]), sizes)
    else:
        x, y, t = _deepest_in_pyramids(rest.T @ press, sizes, edges)
    if t > conic.CONE_TIGHTENING_MAX:
        return _closed_result(grasp, counted, x * len(sizes), t * len(sizes))
    return _open_result(grasp, rest @ y, False, counted)


def _deepest_balanced(
    E: np.ndarray, generators: np.ndarray, sizes: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return balanced forces deepest inside the cones, the multipliers of the balance, and the depth.

    The forces are combinations of `generators`, whose coefficients lie in cones of these sizes.
    """
    N = generators.shape[1]
    _, T = conic.orthonormal_rows(E @ generators, np.zeros(len(E)))
    program = conic.Program(np.zeros(N), T @ E @ generators, np.zeros(len(T)), -np.eye(N), np.zeros(N), sizes)
    found = conic.deepest_point(program, bound=1.0)
    return generators @ found.x, T.T @ found.y, found.margin


def _deepest_in_pyramids(
    E: np.ndarray, sizes: tuple[int, ...], edges: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the deepest balanced forces in pyramids inside the cones or, if these fail, around them."""
    for around in (False, True):
        generators = _pyramids(sizes, edges, around)
        x, y, t = _deepest_balanced(E, generators, (1,) * generators.shape[1])
        if around == (t <= conic.CONE_TIGHTENING_MAX):
            return x, y, t if around else float(conic.cone_margins(x, sizes).min())
    raise SingularError(
        f"Pyramids of {edges} edges inside and around the cones disagree on force closure. Increase `edges`, "
        "or use method='cones'.",
        edges=edges,
    )


def _pyramids(sizes: tuple[int, ...], edges: int, around: bool) -> np.ndarray:
    """Return the edges of pyramids inside or around unit cones as columns of a block-diagonal matrix."""
    from scipy.linalg import block_diag

    blocks = []
    for size in sizes:
        points, radius = sphere_points(size - 1, edges)
        rays = np.ones((size, len(points)))
        rays[1:] = points.T / (radius if around else 1.0)
        blocks.append(rays)
    return block_diag(*blocks)


@lru_cache(maxsize=32)
def sphere_points(dimension: int, edges: int) -> tuple[np.ndarray, float]:
    """Return points (n, d) of the unit sphere, d = 0 to 3, and the radius of the largest enclosed ball."""
    from scipy.spatial import ConvexHull

    if dimension == 0:
        return np.zeros((1, 0)), 1.0
    if dimension == 1:
        return np.array([[1.0], [-1.0]]), 1.0
    turn = 2 * np.pi * np.arange(edges) / edges
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    if dimension == 2:
        return ring, float(np.cos(np.pi / edges))
    high = np.pi * np.arange(1, edges // 2) / (edges // 2)
    body = np.concatenate(
        [np.concatenate([np.sin(a) * ring, np.full((edges, 1), np.cos(a))], axis=1) for a in high]
    )
    points = np.concatenate([body, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
    return points, float(-ConvexHull(points).equations[:, -1].max())


def _simplest_direction(null: np.ndarray) -> np.ndarray:
    """Return the unit vector in the span of orthonormal columns that is nearest to an axis."""
    nearest = null @ null.T
    best = int(np.argmax(np.round(np.linalg.norm(nearest, axis=0), 9)[::-1]))
    y = nearest[:, len(null) - 1 - best]
    return y / np.linalg.norm(y)


def _closed_result(grasp: SingleGrasp, counted: np.ndarray, x: np.ndarray, margin: float) -> dict[str, Any]:
    """Return the result of a closed grasp with forces x; pins balance their resultant."""
    contacts = grasp.contacts
    pinned = contacts.pinned[contacts.owner[counted]]
    whole = np.zeros(len(contacts.axis))
    whole[counted[~pinned]] = x
    if pinned.any():
        columns = grasp.map[:, counted[pinned]]
        whole[counted[pinned]] = -np.linalg.lstsq(columns, grasp.map @ whole, rcond=None)[0]
    twist = np.full(len(contacts.labels), np.nan)
    force = grasp.unit * whole
    return {"closed": 1, "margin": margin, "force": force, "twist": twist, "both": 0, "missing": ""}


def _open_result(grasp: SingleGrasp, y: np.ndarray, both: bool, counted: np.ndarray) -> dict[str, Any]:
    """Return the result of a grasp that does not resist the twist y."""
    size = float(np.linalg.norm(y))
    if not (size > 0 and grasp.least_power(y, counted) >= -TWIST_POWER_ATOL * size):
        raise SingularError(
            "The closure test is inconclusive: neither balanced forces inside the cones nor a twist that no "
            "contact resists was found within rounding error. Move a contact, or change the friction."
        )
    twist = grasp.twist(y / size if both else grasp.simplify_twist(y, None, counted))
    sense = "in either sense, " if both else ""
    return {
        "closed": 0,
        "margin": 0.0,
        "force": np.full(len(grasp.unit), np.nan),
        "twist": twist,
        "both": int(both),
        "missing": f"cannot resist{', ' + sense if both else ' '}a {grasp.describe_load(twist)}",
    }
