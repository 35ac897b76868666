"""Assembly: close the loops of a mechanism that is described with open loops, by damped Gauss–Newton.

The residuals are displacements between the two frames of each closing joint, as vectors and rotation vectors.
The closure rows of `kic.transfer` do not serve, because they are made in a configuration that is closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.description.contacts import Contact
from kic.description.parts import Frame, Joint, Point, as_matrix
from kic.description.validation import GROUND
from kic.errors import InputError, KicError, ModelError, invalid, short_repr, unknown
from kic.kernels.layout import DIRECTION, KIND, OMEGA, POINT, PRISMATIC
from kic.kinematics.closure_rows import contact_axes
from kic.kinematics.items import Item
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import OutputQuery
from kic.kinematics.state import columns_to_states, distance, integrate
from kic.kinematics.tree import Tree, frame_axes, unit
from kic.mechanism import Mechanism
from kic.numerics.arguments import entries, mapping, names_of
from kic.numerics.arrays import numbers
from kic.numerics.rotations import vector_from_matrix
from kic.transfer.compiled_model import CompiledModel

LOOP_TYPES = ("spherical", "revolute", "fixed", "cylindrical", "prismatic", "universal", "planar")
STEPS_MAX = 100
# a search ends after so many steps that improve the squares of the residuals by less than a share
STALLED_STEPS, STALLED_RTOL = 4, 1e-3
# residual relative to the characteristic length: closed; closed with numbers of four digits; and the largest
CLOSED_RTOL, DIGITS_RTOL, ROUNDED_RTOL = 1e-11, 1e-4, 1e-3
# singular values of the closure, relative to the largest, that the rounding of a file makes: six digits
ROUNDED_RANK = (1e-10, 3e-5)
# margin of the closure tolerance over the residual and the singular values
TOLERANCE_FACTOR = 5.0
# starts sampled within the limits of the joints, if those of the file do not close the loops; the nearest of
# the first closed ones is taken
SAMPLED_STARTS, SAMPLES_ENOUGH = 64, 4
# evaluations of the residuals after which no further start is tried
EVALUATIONS_MAX = 1500
# violation of limits that counts as round-off
VIOLATION_ATOL = 1e-6


# components of the displacement and of the rotation that a closing joint or contact prevents, along axes
# whose third is that of the joint
_SHIFT_ROWS = {"prismatic": [0, 1], "cylindrical": [0, 1], "planar": [2], "point": [2], "rod": [0]}
_TURN_ROWS: dict[str, list[int]] = {"fixed": [0, 1, 2], "prismatic": [0, 1, 2], "soft": [2]}
_TURN_ROWS |= {kind: [] for kind in ("spherical", "point", "friction", "pinned")}


@dataclass(frozen=True)
class LoopFrame:
    """End of a loop: a body, and the pose (4, 4) in the world of a frame of it, where the loop is open."""

    body: str
    pose: np.ndarray


@dataclass(frozen=True)
class ClosingJoint:
    """Joint that closes a loop.

    `axis` is given in the first frame; `axis2` too, but in the second for a universal joint, as in `Joint`.
    """

    name: str
    type: str
    axis: tuple[float, ...] = field(default=(0.0, 0.0, 1.0), kw_only=True)
    axis2: tuple[float, ...] = field(default=(1.0, 0.0, 0.0), kw_only=True)
    damping: float = field(default=0.0, kw_only=True)
    friction: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class Loop(ClosingJoint):
    """Closing joint between two frames in the world; or a contact, or a rod of a given length."""

    first: LoopFrame
    second: LoopFrame
    length: float = 0.0


@dataclass
class ClosedState:
    """State that closes the loops, the remarks on how it was found, and the tolerance that the loops need."""

    state: np.ndarray
    remarks: list[str] = field(default_factory=list)
    tolerance: float = 0.0


class _Residuals:
    """Residuals of loops and couplings, and their derivatives with respect to the coordinates of the tree."""

    def __init__(
        self,
        model: CompiledModel,
        loops: Sequence[Loop],
        couplings: Sequence[tuple[str, dict[str, float], float]],
    ) -> None:
        self.tree, self.loops, self.length = model.tree, loops, _size(model, loops)
        tree, items = self.tree, list[Item]()
        for loop in loops:
            for end in (loop.first, loop.second):
                frame = tree.frame[end.body]
                items.append(Item(POINT, frame, local_b=tuple(tree.local_point(frame, end.pose[:3, 3]))))
                items += [
                    Item(DIRECTION, frame, local_b=tuple(tree.local_vector(frame, e)))
                    for e in end.pose[:3, :3].T
                ]
                items.append(Item(OMEGA, frame))
        self.query = OutputQuery(tree, plain_rows(tree, items), 1) if items else None
        self.scale = np.where(tree.cols[:, KIND] == PRISMATIC, self.length, 1.0)
        self.names = [loop.name for loop in loops] + [name for name, *_ in couplings]
        self.coupled = np.zeros((len(couplings), tree.size))
        self.coupled_value = np.array([value for *_, value in couplings])
        for k, (_, terms, _) in enumerate(couplings):
            for joint, ratio in terms.items():
                self.coupled[k, tree.column[joint]] = ratio
        size = np.abs(self.coupled * self.scale).max(axis=1, initial=0.0)
        self.translations = [len(_SHIFT_ROWS.get(loop.type, (0, 1, 2))) for loop in loops]
        self.translations += [0] * len(couplings)
        self.evaluations = 0
        self.coupled_size = np.where(size > 0, size, 1.0)

    def residual(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return scaled residuals (n,), their derivatives (n, M) by scaled steps, and their owners (n,)."""
        parts, slopes, owner = [], [], []
        self.evaluations += 1
        if self.query is not None:
            values, G = self.query.layout.split(self.query.table(state[None]), (1,))
            per = values.shape[1] // len(self.loops)
            for k, loop in enumerate(self.loops):
                e, J = self._loop(loop, values[0, k * per :][:per], G[0, k * per :][:per])
                parts.append(e)
                slopes.append(J)
                owner += [k] * len(e)
        phi = state if not self.tree.balls else self._columns(state)
        parts.append((self.coupled @ phi - self.coupled_value) / self.coupled_size)
        slopes.append(self.coupled / self.coupled_size[:, None])
        owner += range(len(self.loops), len(self.names))
        return np.concatenate(parts), np.concatenate(slopes) * self.scale, np.array(owner)

    def _columns(self, state: np.ndarray) -> np.ndarray:
        """Return the coordinates (M,) of a state; those of ball joints, which no coupling has, are zero."""
        phi = np.zeros(self.tree.size)
        columns, entries = self.tree.single_columns
        phi[columns] = state[entries]
        return phi

    def _loop(self, loop: Loop, values: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals of a loop and their derivatives, in the axes of its first frame."""
        half = len(values) // 2
        (p, A, wa, va), (q, B, wb, vb) = (
            (v[:3], v[3:12].reshape(3, 3).T, g[12:15], g[:3])
            for v, g in ((values[:half], G[:half]), (values[half:], G[half:]))
        )
        gap = q - p
        shift = A.T @ gap / self.length
        # the first frame turns, too: d(Aᵀ gap) = Aᵀ (v - ω × gap)
        if loop.type == "rod":
            size = np.linalg.norm(gap)
            rate = gap / size @ (vb - va)
            return np.array([size - loop.length]) / self.length, rate[None] / self.length
        shift_rate = A.T @ (vb - va - np.cross(wa.T, gap).T) / self.length
        turn_rate = A.T @ (wb - wa)
        axis, axis2 = unit(loop.axis), unit(loop.axis2)
        if loop.type == "universal":
            cosine = (A @ axis) @ (B @ axis2)
            normal = np.cross(A @ axis, B @ axis2)
            rate = (A.T @ normal) @ turn_rate  # d(a·b) = (ω_b − ω_a)·(b × a), and e = −a·b
            return np.append(shift, -cosine), np.vstack([shift_rate, rate])
        if loop.type == "planar":
            axis = np.cross(axis, axis2)
        E = frame_axes(axis).T
        shift, shift_rate, turn_rate = E @ shift, E @ shift_rate, E @ turn_rate
        rows, turns = _SHIFT_ROWS.get(loop.type, [0, 1, 2]), _TURN_ROWS.get(loop.type, [0, 1])
        turn = E @ (vector_from_matrix(A.T @ B) if 2 in turns else A.T @ _between(A @ axis, B @ axis))
        return np.concatenate([shift[rows], turn[turns]]), np.vstack([shift_rate[rows], turn_rate[turns]])

    def describe(self, state: np.ndarray, unit_of_length: str) -> str:
        """Describe the loops and couplings with the largest gaps, and their residuals."""
        e, _, owner = self.residual(state)
        wide = []
        for k, name in enumerate(self.names):
            sizes = np.abs(e[owner == k])
            if sizes.max(initial=0.0) > CLOSED_RTOL:
                # displacements before rotations
                count = self.translations[k]
                parts = (
                    (sizes[:count].max(initial=0.0) * self.length, unit_of_length),
                    (sizes[count:].max(initial=0.0), "rad"),
                )
                words = [f"{size:.3g} {what}" for size, what in parts if size > CLOSED_RTOL]
                wide.append((sizes.max(), f"'{name}' by {' and '.join(words)}"))
        wide.sort(key=lambda pair: -pair[0])
        more = f" and {len(wide) - 3} more" if len(wide) > 3 else ""
        return ", ".join(words for _, words in wide[:3]) + more

    def worst(self, state: np.ndarray) -> tuple[float, int]:
        """Return the largest residual, and the index of its loop or coupling."""
        e, _, owner = self.residual(state)
        if not e.size:
            return 0.0, 0
        k = int(np.argmax(np.abs(e)))
        return float(np.abs(e[k])), int(owner[k])

    def solve(self, state: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the state where damped Gauss–Newton ends, and its largest residual."""
        damping = 1e-3
        e, J, _ = self.residual(state)
        cost, stalled = float(e @ e), 0
        for _ in range(STEPS_MAX):
            if not np.abs(e).max(initial=0.0) > CLOSED_RTOL * 1e-3:
                break
            U, s, Vt = np.linalg.svd(J, full_matrices=False)
            top = s[0] if len(s) else 0.0
            improved = False
            while damping < 1e8:
                # without damping directions of round-off size would move far
                factor = np.where(s > 1e-12 * top, s / (s**2 + damping * min(1.0, cost) * top**2), 0.0)
                step = -(Vt.T * factor) @ (U.T @ e)
                step *= min(1.0, 0.5 / max(np.abs(step).max(initial=0.0), 1e-300))
                tried = integrate(self.tree, state[None], (step * self.scale)[None])[0]
                new, slope, _ = self.residual(tried)
                if new @ new < cost:
                    improved = True
                    break
                damping = max(damping, 1e-12) * 4
            if not improved:
                break
            gain = float(new @ new) / cost
            state, e, J, cost = tried, new, slope, float(new @ new)
            damping = max(damping / 4, 1e-14)
            stalled = stalled + 1 if gain > 1 - STALLED_RTOL else 0
            if stalled == STALLED_STEPS:
                break
        return state, float(np.abs(e).max(initial=0.0))


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the smallest rotation vector that turns the unit vector a to b."""
    c = np.cross(a, b)
    s = float(np.linalg.norm(c))
    if s < 1e-300:
        return np.zeros(3) if a @ b > 0 else np.pi * frame_axes(a)[:, 0]
    return c / s * np.arctan2(s, a @ b)


def _size(model: CompiledModel, loops: Sequence[Loop]) -> float:
    """Return the characteristic length of the tree and its loops."""
    places = [end.pose[:3, 3] for loop in loops for end in (loop.first, loop.second)]
    extent = float(np.ptp(places, axis=0).max()) if places else 0.0
    return max(model.length, extent) if model.length != 1.0 or not extent else extent


def closed_state(
    model: CompiledModel,
    loops: Sequence[Loop],
    couplings: Sequence[tuple[str, dict[str, float], float]],
    limits: Mapping[str, tuple[float, float]],
    starts: Sequence[Mapping[str, Any]] = (),
    first: Mapping[str, Any] | None = None,
) -> ClosedState:
    """Find the closed state nearest to the described configuration.

    Parameters
    ----------
    model : CompiledModel
        Model whose tree is described with open loops.
    loops, couplings : sequences
        Conditions. A coupling is a name, the coefficients of joints, and the value of their sum.
    limits : dict of str to (lower, upper)
        Limits of joints with one coordinate.
    starts : sequence of dict
        Values of joints to start from after the described configuration.
    first : dict, optional
        Values to start from before it.

    Raises
    ------
    ModelError
        If no start closes the loops; it has the `residual` and the name of the `loop`.
    """
    residuals = _Residuals(model, loops, couplings)
    described = model.reference_state[0]
    opening, _ = residuals.worst(described)
    begin = described if first is None else _at(residuals, described, first)
    known = [("the described configuration", described)]
    if first is not None:
        known.insert(0, ("`start`", begin))
    known += [("a start that was given", _at(residuals, described, values)) for values in starts]
    state, origin, beyond = _nearest(residuals, known, limits)
    made = ClosedState(state)
    left, worst = residuals.worst(made.state)
    if left > ROUNDED_RTOL:
        raise ModelError(
            f"loop '{residuals.names[worst]}' does not close: {left:.2g} of a length of "
            f"{residuals.length:.3g} remains, from the described configuration and sampled starts. "
            "Correct its frames, or give `start=` closer to a closed configuration.",
            loop=residuals.names[worst],
            residual=left,
        )
    if opening > CLOSED_RTOL:
        gaps = residuals.describe(described, model.description.units.length or "length units")
        made.remarks.append(f"loops were open as described: {gaps}; a search from {origin} closed them.")
    if beyond:
        made.remarks.append(
            f"no closed configuration within limits was found: {', '.join(beyond)} are beyond their limits."
        )
    _, J, _ = residuals.residual(made.state)
    s = np.linalg.svd(J, compute_uv=False)
    rounded = s[(s > ROUNDED_RANK[0] * s[0]) & (s < ROUNDED_RANK[1] * s[0])] / s[0] if len(s) else s
    need = max(left if left > CLOSED_RTOL else 0.0, float(rounded.max(initial=0.0)))
    if need:
        made.tolerance = TOLERANCE_FACTOR * need
        made.remarks.append(
            f"the loops are inconsistent by {need:.1g} of a length of {residuals.length:.3g}, most at "
            f"'{residuals.names[worst]}'; `closure_tolerance` was set to {made.tolerance:.1g}."
        )
    return made


def _nearest(
    residuals: _Residuals,
    known: Sequence[tuple[str, np.ndarray]],
    limits: Mapping[str, tuple[float, float]],
) -> tuple[np.ndarray, str, list[str]]:
    """Return the first closed state within limits from known starts, else the nearest of samples.

    Also return the origin of the start, and the names of joints beyond their limits. `known` are pairs of
    origin and state; distances are measured from the first.
    """
    tree, zero = residuals.tree, known[0][1]
    single = {name: n for name, n in tree.column.items() if name in limits}
    lower, upper = np.full(tree.size, -np.inf), np.full(tree.size, np.inf)
    for name, n in single.items():
        lower[n], upper[n] = limits[name]

    def beyond(state: np.ndarray) -> np.ndarray:
        phi = residuals._columns(state)
        return np.maximum(np.maximum(lower - phi, phi - upper) / residuals.scale, 0.0)

    best: tuple[float, float, np.ndarray, str] | None = None
    rough: tuple[float, np.ndarray] | None = None
    closed = 0
    generator = np.random.default_rng(0)
    base = residuals._columns(zero)
    reach = np.where(residuals.scale == 1.0, np.pi, residuals.length)
    low = np.where(np.isfinite(lower), lower, base - reach)
    high = np.where(np.isfinite(upper), upper, base + reach)
    if residuals.worst(zero)[0] <= CLOSED_RTOL:
        return zero, known[0][0], []
    for k in range(len(known) + SAMPLED_STARTS):
        is_known = k < len(known)
        if is_known:
            origin, state = known[k]
        elif residuals.evaluations > EVALUATIONS_MAX:
            break
        else:
            origin = f"start {k - len(known) + 1} of those sampled within the limits"
            phi = low + (high - low) * generator.random(tree.size)
            for turn, _ in tree.ball_slices:
                phi[turn] = generator.normal(size=3)
            state = columns_to_states(tree, phi[None])[0]
        state, left = residuals.solve(state)
        if rough is None or left < rough[0]:
            rough = left, state
        if left <= (DIGITS_RTOL if is_known else ROUNDED_RTOL):
            out = float(beyond(state).max(initial=0.0))
            far = float(distance(tree, zero[None], state[None], residuals.scale).max(initial=0.0))
            if out <= VIOLATION_ATOL and is_known:
                return state, origin, []
            closed += not is_known
            if best is None or (max(out, VIOLATION_ATOL), far) < best[:2]:
                best = max(out, VIOLATION_ATOL), far, state, origin
        if closed == SAMPLES_ENOUGH:
            break
    if best is not None:
        outside = beyond(best[2]) > VIOLATION_ATOL
        return best[2], best[3], [name for name, n in single.items() if outside[n]]
    assert rough is not None  # for the type checker: the first start is always tried
    return rough[1], "the best start", []


def _at(residuals: _Residuals, zero: np.ndarray, values: Mapping[str, Any]) -> np.ndarray:
    """Return the state with some values of joints."""
    tree = residuals.tree
    phi = residuals._columns(zero)
    state = zero.copy()
    columns, entries = tree.single_columns
    for n, number in start_columns(tree, values).items():
        phi[n] = number
    state[entries] = phi[columns]
    return state


def start_columns(tree: Tree, values: Mapping[str, Any]) -> dict[int, float]:
    """Return the columns of the tree that have values at a start, with these values.

    Raises
    ------
    UnknownNameError, InputError
        For an unknown joint, or a value that is not a finite number.
    """
    made = {}
    known = {name: n for name, n in tree.column.items() if tree.cols[n, KIND] <= PRISMATIC}
    for name, value in values.items():
        if name not in known:
            raise unknown("joint", name, tree.description.name, list(known))
        number = numbers(name, value)
        if number.ndim or number.dtype != np.float64 or not np.isfinite(number):
            raise invalid(f"start['{name}']", "must be a finite number", value, name=name)
        made[known[name]] = float(number)
    return made


def assemble(
    mechanism: Mechanism,
    loops: Iterable[Any],
    start: Mapping[str, float] | None = None,
    coordinates: Iterable[str] | None = None,
) -> Mechanism:
    """Close the loops of a mechanism. See `Mechanism.assemble`."""
    mechanism._model.require_real("assemble()", "Assemble the mechanism without it.")
    for contact in mechanism.contacts:
        if not contact.closed:
            raise ModelError(
                f"Contact '{contact.name}' is open: its bodies touch in the described configuration, which "
                "closing the loops would change. Close it, or add it after assembling.",
                name=contact.name,
            )
    made = []
    for k, loop in enumerate(entries(loops)):
        first, second, kind = loop_words(k, loop)
        ends = _end(mechanism, first), _end(mechanism, second)
        if ends[0].body == ends[1].body:
            raise InputError(
                f"`loops[{k}]` connects '{ends[0].body}' with itself. Name frames of two bodies.",
                key=f"loops[{k}]",
            )
        made.append(Loop(f"{first} to {second}", kind, *ends))
    rows = [
        (name, dict(terms), sum(ratio * mechanism.reference_values[c] for c, ratio in terms))
        for name, terms in mechanism.terms.items()
    ]
    given = None if start is None else mapping("start", start, "joints to values")
    closed, remarks = close_loops(mechanism, made, rows, first=given)
    if coordinates is not None:
        names: tuple[str, ...] | None = names_of(coordinates, "coordinates")
    else:
        names = default_coordinates(closed, [mechanism.coordinates or ()])
    return replace(closed, coordinates=names, remarks=(*mechanism.remarks, *remarks))


def loop_words(k: int, given: Any) -> tuple[str, str, str]:
    """Return entry k of `loops`: the names of two frames, and the type of the closing joint."""
    words = entries(given)
    if len(words) not in (2, 3) or not all(isinstance(word, str) for word in words):
        raise invalid(f"loops[{k}]", "must be two frames, and a type of joint if not spherical", given)
    kind = words[2] if len(words) == 3 else "spherical"
    if kind not in LOOP_TYPES:
        raise InputError(
            f"`loops[{k}]`: the type must be one of {', '.join(LOOP_TYPES)}, got {short_repr(kind)}.",
            key=f"loops[{k}]",
            got=kind,
        )
    return words[0], words[1], kind


def _end(mechanism: Mechanism, name: str) -> LoopFrame:
    """Return the end of a loop at a frame or point; points have the axes of the world."""
    part = mechanism.part(name, "frames", "points")
    pose = np.eye(4)
    if isinstance(part, Frame):
        pose[:3, :3], pose[:3, 3] = np.array(part.axes).T, part.origin
    elif isinstance(part, Point):
        pose[:3, 3] = part.at
    return LoopFrame(part.body, pose)  # type: ignore[union-attr]


def close_loops(
    mechanism: Mechanism,
    loops: Sequence[Loop],
    couplings: Sequence[tuple[str, dict[str, float], float]],
    starts: Sequence[Mapping[str, Any]] = (),
    first: Mapping[str, Any] | None = None,
) -> tuple[Mechanism, list[str]]:
    """Return a mechanism with its loops closed, described where they are, and remarks.

    Loops, contacts and rods that are closed already stay so. Free and ball joints are at their zero in the
    new description.
    """
    model = mechanism._model
    limits = {j.name: j.limits for j in mechanism.joints if j.dof == 1 and j.limits is not None}
    kept = [_loop_of(joint) for joint in model.tree.cuts]
    kept += [_contact_loop(contact) for contact in mechanism.closed_contacts]
    kept += [_rod_loop(mechanism, d.points, d.name) for d in mechanism.distances if d.fixed]
    found = closed_state(model, [*kept, *loops], couplings, limits, starts, first)  # type: ignore[arg-type]
    poses = body_poses(mechanism, found.state)
    made = described_at(mechanism, found.state, poses)
    closing = tuple(_closing_joint(loop, poses) for loop in loops)
    tolerance = max(mechanism.closure_tolerance, found.tolerance)
    return replace(made, joints=(*made.joints, *closing), closure_tolerance=tolerance), found.remarks


def _loop_of(joint: Joint) -> Loop:
    """Return the loop that a joint closes, with both frames along the axes of the world."""
    pose = np.eye(4)
    pose[:3, 3] = joint.at or (0.0, 0.0, 0.0)
    first, second = (LoopFrame(body, pose) for body in joint.bodies)
    axes = {key: axis for key in ("axis", "axis2") if (axis := getattr(joint, key))}
    return Loop(joint.name, joint.type, first, second, **axes)


def _contact_loop(contact: Contact) -> Loop:
    """Return the loop of a closed contact, with both frames along its tangents and its normal."""
    n, t1, t2 = contact_axes(contact)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = np.array([t1, t2, n]).T, contact.at
    finger, touched = (LoopFrame(body, pose) for body in contact.bodies)
    return Loop(contact.name, contact.type, touched, finger)


def _rod_loop(mechanism: Mechanism, points: Iterable[str], name: str) -> Loop:
    """Return the loop of a fixed distance between two points."""
    ends = [_end(mechanism, point) for point in points]
    return Loop(name, "rod", ends[0], ends[1], mechanism.fixed_distances[name])


def body_poses(mechanism: Mechanism, state: np.ndarray) -> dict[str, np.ndarray]:
    """Return the displacement (4, 4) of each body, and of ground, from the reference configuration."""
    configuration = Configuration(mechanism._model, (), state[None])
    return {GROUND: np.eye(4)} | {b.name: configuration.displacement(b.name) for b in mechanism.bodies}


def described_at(mechanism: Mechanism, state: np.ndarray, poses: Mapping[str, np.ndarray]) -> Mechanism:
    """Return a mechanism described in another configuration; coordinates keep their values."""

    def point(body: str, x: Any) -> Any:
        return None if x is None else tuple((poses[body][:3, :3] @ x + poses[body][:3, 3]).tolist())

    def vector(body: str, x: Any) -> Any:
        return None if x is None else tuple((poses[body][:3, :3] @ x).tolist())

    bodies = []
    for body in mechanism.bodies:
        R = poses[body.name][:3, :3]
        inertia: Any = body.inertia
        if inertia is not None:
            J = R @ as_matrix(inertia) @ R.T
            inertia = (J + J.T) / 2
        com, at = (point(body.name, x) for x in (body.com, body.at))
        bodies.append(replace(body, com=com, at=at, inertia=inertia))
    joints = []
    for joint in mechanism.joints:
        first, second = joint.bodies
        if joint.swing is not None:
            raise ModelError(
                f"Joint '{joint.name}' has `swing`, an angle from the reference configuration. Add it after "
                "assembling.",
                name=joint.name,
            )
        values = np.zeros(joint.dof)
        if joint.valued:
            known = mechanism._model.values(joint.valued, state[None])[0]
            # the displacement of a free joint is zero in the new description
            values[: len(known)] = 0.0 if joint.type == "free" else known
        joints.append(
            replace(
                joint,
                at=point(second, joint.at),
                axis=vector(first, joint.axis),
                axis2=vector(second if joint.type == "universal" else first, joint.axis2),
                value=tuple(values.tolist()),
            )
        )
    points = {p.name: p for p in mechanism.points}
    return replace(
        mechanism,
        bodies=tuple(bodies),
        joints=tuple(joints),
        points=tuple(replace(p, at=point(p.body, p.at)) for p in mechanism.points),
        frames=tuple(
            replace(f, origin=point(f.body, f.origin), axes=tuple(vector(f.body, e) for e in f.axes))
            for f in mechanism.frames
        ),
        contacts=tuple(
            # the contact point is fixed in the first body, and the normal in the second
            replace(c, at=point(c.bodies[0], c.at), normal=vector(c.bodies[1], c.normal))
            for c in mechanism.contacts
        ),
        forces=tuple(
            replace(f, force=vector(points[f.point].body, f.force)) if f.axes == "body" else f
            for f in mechanism.forces
        ),
        moments=tuple(
            replace(x, moment=vector(x.body, x.moment)) if x.axes == "body" else x for x in mechanism.moments
        ),
    )


def _closing_joint(loop: Loop, poses: Mapping[str, np.ndarray]) -> Joint:
    """Return the joint of a loop where it is closed."""
    first, second = (poses[end.body] @ end.pose for end in (loop.first, loop.second))
    axes: dict[str, Any] = {}
    if loop.type in ("revolute", "prismatic", "cylindrical", "universal", "planar"):
        axes["axis"] = tuple((first[:3, :3] @ loop.axis).tolist())
    if loop.type in ("universal", "planar"):
        carrier = second if loop.type == "universal" else first
        axis2 = carrier[:3, :3] @ loop.axis2
        axis = np.array(axes["axis"])
        # exactly perpendicular, within the residual
        axes["axis2"] = tuple((axis2 - (axis2 @ axis) / (axis @ axis) * axis).tolist())
    at = tuple(((first[:3, 3] + second[:3, 3]) / 2).tolist())
    laws = {"damping": loop.damping, "friction": loop.friction}
    return Joint(loop.name, loop.type, (loop.first.body, loop.second.body), at, **axes, **laws)  # type: ignore[arg-type]


def default_coordinates(mechanism: Mechanism, wanted: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the first of some sets that drives a closed mechanism, else the best conditioned, or None."""
    if mechanism._model.tree.open:
        return None
    if not mechanism.dof:
        return ()
    for names in wanted:
        if names and _drives(mechanism, names):
            return names
    try:
        return mechanism.independent_sets(count=1)[0].names
    except (KicError, IndexError):
        return None


def _drives(mechanism: Mechanism, names: tuple[str, ...]) -> bool:
    """Return True if coordinates can drive a mechanism in its reference configuration."""
    try:
        own = replace(mechanism, coordinates=names)
        if len(own.coordinate_names) != mechanism.dof:  # which does not depend on the coordinates
            return False
        own.at().coefficients(own.joints[0].name, order=1)
    except KicError:
        return False
    return True
