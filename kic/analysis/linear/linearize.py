"""Linearization: changes of the efforts for small deviations from a motion (2-201 to 2-227)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from kic.analysis.linear.modes import Modes
from kic.analysis.linear.motor_demand import dry_friction
from kic.description.description import held_coordinates
from kic.dynamics.dynamics import Dynamics, check_regular
from kic.dynamics.mass_and_load_tables import Loads
from kic.errors import InputError, unknown
from kic.kernels import layout as lay
from kic.kinematics.items import Item, axes_of
from kic.kinematics.outputs import Rows, make_rows, plain_rows
from kic.kinematics.queries import output_query
from kic.mechanism.configuration import (
    Configuration,
    acting_efforts,
    flat_states,
    generalized_efforts,
    model_of,
    motor_shafts,
)
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import (
    as_array,
    broadcast_batches,
    check_finite,
    map_valid_members,
    scatter,
)
from kic.numerics.display import Batched, Summary
from kic.tasks.actuation.internal_loads import stiffness as constant_effort_stiffness
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.program import Program, Transfer

if TYPE_CHECKING:
    from kic.analysis.linear.state_space import StateSpace

# number of table entries processed at a time, to bound the memory
_BLOCK_SIZE = 2**22


class OutputDerivatives:
    """Function that evaluates rows at states up to an order, in the coordinates of a transfer."""

    def __init__(
        self, model: CompiledModel, transfer: Transfer, of: list[Item] | tuple[str, ...], order: int
    ) -> None:
        tree = model.tree
        self.rows: Rows = make_rows(tree, of) if isinstance(of, tuple) else plain_rows(tree, of)
        self._transfer = transfer
        self._program = Program(transfer, self.rows, order)

    @property
    def width(self) -> int:
        """Number of table entries for one configuration."""
        return self._program.width

    def __call__(self, states: np.ndarray) -> list[np.ndarray]:
        """Return the values (B, P), then G (B, P, M), and H and D up to the order."""
        values, *tensors = self._program.run(states).arrays
        tensors = self._transfer.in_coordinates(tensors, range(1, len(tensors) + 1))
        values = self.rows.complete(values.copy())
        select = self.rows.select
        if select is None:
            return [values, *tensors]
        return [values[:, select], *(t.take(select, axis=1) for t in tensors)]


class Stiffness:
    """Stiffness ∂T/∂q of a mechanism in chosen coordinates, due to its inertia and its loads.

    It has parts due to linear momentum (2-216), angular momentum (2-217 to 2-224) and loads (2-208). Order 2
    suffices for mechanisms at rest, for which third order has no effect.
    """

    def __init__(self, model: CompiledModel, transfer: Transfer, order: int) -> None:
        tree, masses, loads = model.tree, model.masses, model.loads
        numbers = masses.numbers
        self._size = transfer.size
        self._mass = numbers[:, lay.MASS]
        self._gravity = loads.gravity[0]
        self._spinning = np.flatnonzero(numbers[:, lay.MOMENTS :].any(axis=1))
        frames = masses.frames.tolist()
        made = [*map(Item.point, frames, numbers[:, lay.CENTRE : lay.MOMENTS])]
        made += [Item.angular_velocity(frames[i]) for i in self._spinning]
        self._bodies = OutputDerivatives(model, transfer, made, order)
        m = numbers[self._spinning, lay.MOMENTS :]
        self._inertia = m[:, [[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
        # forces and moments on moving bodies; those fixed to a body also need its ω
        table = loads.forces
        self._acting = np.flatnonzero(table[:, 0] >= 0) if len(table) else np.zeros(0, dtype=np.intp)
        self._turning = np.flatnonzero(table[self._acting, 2] == 1)
        made = [_place(loads, i) for i in self._acting.tolist()]
        made += [Item.angular_velocity(int(table[self._acting[i], 0])) for i in self._turning]
        self._springs = loads.spring_numbers[:, 6:]
        for (a, b), x in zip(loads.springs.tolist(), loads.spring_numbers, strict=True):
            made += [Item.point(a, x[:3]), Item.point(b, x[3:6])]
        self._loaded = OutputDerivatives(model, transfer, made, 2) if made else None
        turned = [frames[i] for i in self._spinning]
        turned += [int(table[self._acting[i], 0]) for i in self._turning]
        # axes of those frames, which do not depend on the coordinates
        self._axes = output_query(tree, plain_rows(tree, axes_of(turned)), 1) if turned else None
        laws = [j for j in model.description.joints if any(j.stiffness) or any(j.damping)]  # type: ignore[arg-type]
        self._joints = OutputDerivatives(model, transfer, tuple(j.name for j in laws), 2) if laws else None
        rotors = tuple(j for j in model.description.joints if any(j.armature))  # type: ignore[arg-type]
        names = tuple(j.name for j in rotors)
        self._rotors = OutputDerivatives(model, transfer, names, order) if rotors else None
        self._armature = np.array([x for j in rotors for x in j.armature])  # type: ignore[union-attr]
        self._joint_laws = np.array(
            [x for j in laws for x in zip(j.stiffness, j.rest, j.damping, strict=True)]  # type: ignore[arg-type]
        ).reshape(-1, 3)

    def __call__(
        self, states: np.ndarray, v: np.ndarray, a: np.ndarray, force: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ∂T/∂q (B, M, M) due to the inertia and due to the loads, at states (B, S).

        `v` and `a` (B, M) are rates and accelerations. `force` (B or 1, n, 3) are applied forces and
        moments, in world axes or in the axes of their frames.
        """
        width = max(self._bodies.width, self._loaded.width if self._loaded else 0, 1)
        block = max(1, _BLOCK_SIZE // width)
        dtype = np.result_type(states, v, a, force)
        out = np.zeros((2, len(states), self._size, self._size), dtype)
        for start in range(0, len(states), block):
            some = slice(start, start + block)
            f = force[some] if len(force) == len(states) else force
            self._add(states[some], v[some], a[some], f, *out[:, some])
        return out[0], out[1]

    def _add(
        self,
        states: np.ndarray,
        v: np.ndarray,
        a: np.ndarray,
        force: np.ndarray,
        inertial: np.ndarray,
        loaded: np.ndarray,
    ) -> None:
        """Add the parts due to inertia and loads to two arrays, for a block of states."""
        count = len(states)
        axes = np.zeros((count, 0, 3, 3))
        if self._axes is not None:
            found = self._axes.arrays(states)[0]
            axes = np.swapaxes(found.reshape(count, -1, 3, 3), -1, -2)
        split = len(self._spinning)
        _, *tensors = self._bodies(states)
        parts = [_in_threes(T) for T in tensors]
        n = len(self._mass)
        self._add_linear([T[:, :n] for T in parts], v, a, inertial, loaded)
        self._add_angular([T[:, n:] for T in parts], axes[:, :split], v, a, inertial)
        if self._loaded is not None:
            values, G, H = map(_in_threes, self._loaded(states))
            k = len(self._acting) + len(self._turning)
            self._add_forces(G[:, :k], H[:, :k], axes[:, split:], force, loaded)
            self._add_springs(values[:, k:], G[:, k:], H[:, k:], v, loaded)
        if self._rotors is not None:
            _, *tensors = self._rotors(states)
            force = self._armature * accelerations(tensors[0], tensors[1], v, a)
            d_force = self._armature[:, None] * acceleration_derivatives(tensors, v, a)
            inertial += geometric_stiffness(tensors[1], force) + projected_derivative(tensors[0], d_force)
        if self._joints is not None:
            values, G, H = self._joints(states)
            self._add_joint_loads(values, G, H, v, loaded)

    def _add_linear(
        self,
        tensors: list[np.ndarray],
        v: np.ndarray,
        a: np.ndarray,
        inertial: np.ndarray,
        loaded: np.ndarray,
    ) -> None:
        """Add the parts due to linear momentum and weight (2-216)."""
        G, H = tensors[:2]
        force = self._mass[:, None] * accelerations(G, H, v, a)
        d_force = self._mass[:, None, None] * acceleration_derivatives(tensors, v, a)
        inertial += geometric_stiffness(H, force) + projected_derivative(G, d_force)
        weight = self._mass[:, None] * self._gravity
        loaded -= geometric_stiffness(H, np.broadcast_to(weight, force.shape))

    def _add_angular(
        self, tensors: list[np.ndarray], R: np.ndarray, v: np.ndarray, a: np.ndarray, inertial: np.ndarray
    ) -> None:
        """Add the part due to angular momentum (2-217 to 2-224), with ∂II/∂q_l = g_l × II − II g_l ×."""
        G, H = tensors[:2]
        II = R @ self._inertia @ np.swapaxes(R, -1, -2)
        omega, alpha = np.einsum("bipn,bn->bip", G, v), accelerations(G, H, v, a)
        momentum = np.einsum("bipr,bir->bip", II, omega)
        II_alpha = np.einsum("bipr,bir->bip", II, alpha)
        moment = II_alpha + np.cross(omega, momentum)
        g = np.swapaxes(G, -1, -2)  # columns of G as vectors (B, n, M, 3)

        def inertia_product(x: np.ndarray, II_x: np.ndarray, dx: np.ndarray) -> np.ndarray:
            """Return ∂(II x)/∂q_l = g_l × II x + II (∂x/∂q_l − g_l × x), all as vectors (B, n, M, 3)."""
            relative = dx - np.cross(g, x[:, :, None, :])
            return np.cross(g, II_x[:, :, None, :]) + np.einsum("bipr,bilr->bilp", II, relative)

        d_omega = np.einsum("bipln,bn->bilp", H, v)
        d_alpha = np.swapaxes(acceleration_derivatives(tensors, v, a), -1, -2)
        d_moment = (
            inertia_product(alpha, II_alpha, d_alpha)
            + np.cross(d_omega, momentum[:, :, None, :])
            + np.cross(omega[:, :, None, :], inertia_product(omega, momentum, d_omega))
        )
        inertial += geometric_stiffness(H, moment) + projected_derivative(G, np.swapaxes(d_moment, -1, -2))

    def _add_forces(
        self, G: np.ndarray, H: np.ndarray, R: np.ndarray, force: np.ndarray, loaded: np.ndarray
    ) -> None:
        """Add the part due to forces and moments (2-208), including the rotation of those fixed to a body."""
        count, k = len(self._acting), self._turning
        f = np.broadcast_to(force[:, self._acting], (len(G), count, 3)).astype(np.result_type(force, R))
        f[:, k] = np.einsum("bipr,bir->bip", R, f[:, k])
        spin = np.swapaxes(G[:, count:], -1, -2)
        loaded -= geometric_stiffness(H[:, :count], f)
        d_force = np.cross(spin, f[:, k][:, :, None, :])
        loaded -= projected_derivative(G[:, :count][:, k], np.swapaxes(d_force, -1, -2))

    def _add_springs(
        self, places: np.ndarray, G: np.ndarray, H: np.ndarray, v: np.ndarray, loaded: np.ndarray
    ) -> None:
        """Add the part due to springs and dampers between points: force s (w − ℓ₀ e) + c e e·ẇ, e = w/ℓ."""
        w = places[:, 1::2] - places[:, ::2]
        W, dW = G[:, 1::2] - G[:, ::2], H[:, 1::2] - H[:, ::2]
        stiffness, rest, damping = self._springs.T[..., None]
        # the length may be zero if there is neither free length nor damping
        directed = (rest[:, 0] != 0) | (damping[:, 0] != 0)
        length = np.sqrt(np.where(directed, (w * w).sum(axis=-1), 1.0))[..., None]
        e = w / length
        along = np.einsum("bip,bipl->bil", e, W)[:, :, None]
        de = (W - e[..., None] * along) / length[..., None]
        moved, d_moved = np.einsum("bipn,bn->bip", W, v), np.einsum("bipln,bn->bipl", dW, v)
        rate = (e * moved).sum(axis=-1, keepdims=True)
        d_rate = np.einsum("bip,bipl->bil", moved, de) + np.einsum("bip,bipl->bil", e, d_moved)
        force = stiffness * (w - rest * e) + damping * rate * e
        stretched = stiffness[..., None] * (W - rest[..., None] * de)
        damped = damping[..., None] * (rate[..., None] * de + e[..., None] * d_rate[:, :, None])
        loaded += geometric_stiffness(dW, force) + projected_derivative(W, stretched + damped)

    def _add_joint_loads(
        self, values: np.ndarray, G: np.ndarray, H: np.ndarray, v: np.ndarray, loaded: np.ndarray
    ) -> None:
        """Add the part due to springs and dampers in joints: T = k g_k (φ − φ₀) + c g_k g·q̇."""
        assert self._joints is not None  # for the type checker: there are such joints
        stiffness, rest, damping = self._joint_laws.T
        deflection = np.where(self._joints.rows.valued, values - rest, 0.0)
        effort = stiffness * deflection + damping * np.einsum("bpn,bn->bp", G, v)
        d_effort = stiffness[:, None] * G + damping[:, None] * np.einsum("bpln,bn->bpl", H, v)
        loaded += geometric_stiffness(H, effort) + projected_derivative(G, d_effort)


def _in_threes(T: np.ndarray) -> np.ndarray:
    """Reshape tensors (B, 3n, …) to (B, n, 3, …), with an axis for the components of vectors."""
    return T.reshape(len(T), T.shape[1] // 3, 3, *T.shape[2:])


def accelerations(G: np.ndarray, H: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return ü = G q̈ + q̇ᵀ H q̇ (..., P) of rows (B, ..., P, M) for rates and accelerations (B, M) (2-27)."""
    middle = G.ndim - 3
    v, a = (x.reshape(len(x), *(1,) * middle, -1) for x in (v, a))
    dG = np.einsum("...pmn,...m->...pn", H, v)
    return np.einsum("...pn,...n->...p", G, a) + np.einsum("...pn,...n->...p", dG, v)


def acceleration_derivatives(tensors: list[np.ndarray], v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return ∂ü/∂q (..., P, M) = H_ln q̈_n + D_lmn q̇_m q̇_n (2-43) from (G, H) at rest, else (G, H, D)."""
    H = tensors[1]
    middle = H.ndim - 4
    v, a = (x.reshape(len(x), *(1,) * middle, -1) for x in (v, a))
    made = np.einsum("...pln,...n->...pl", H, a)
    if len(tensors) > 2:
        made = made + np.einsum("...plmn,...m,...n->...pl", tensors[2], v, v)
    return made


def geometric_stiffness(H: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Return the stiffness due to constant forces (B, n, P) and varying G: [k, l] = force · h_lk (2-208)."""
    count, size = len(H), H.shape[-1]
    flat = H.reshape(count, prod(H.shape[1:-2]), size * size)
    found = force.reshape(count, 1, flat.shape[1]) @ flat
    return np.swapaxes(found.reshape(count, size, size), -1, -2)


def projected_derivative(G: np.ndarray, d_force: np.ndarray) -> np.ndarray:
    """Project derivatives of forces (B, n, P, M) on rows (B, n, P, M): [k, l] = g_k · ∂force/∂q_l."""
    count, size = len(G), G.shape[-1]
    rows = prod(G.shape[1:-1])
    return np.swapaxes(G.reshape(count, rows, size), -1, -2) @ d_force.reshape(count, rows, size)


def commutator(model: CompiledModel, transfer: Transfer, states: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Compute the matrix (B, M, M) of d(δq)/dt − δq̇ in terms of δq; zero in coordinates with values.

    For small rotations δθ it is ω × (3-53, corrected). With q̇ = S φ̇ and δq = S δφ in coordinates of the tree,
    d(δq)/dt − δq̇ = φ̇ᵀ(H − Hᵀ)δφ + S (φ̇ × δφ), the last term for ball joints of the tree.
    """
    tree, size = model.tree, transfer.size
    if transfer.holonomic:
        return np.zeros((len(states), size, size), v.dtype)
    rows = make_rows(tree, transfer.names)
    query = output_query(tree, rows, 2)
    _, S, H = query.arrays(states)
    if rows.select is not None:
        S, H = (T.take(rows.select, axis=1) for T in (S, H))
    (A,) = transfer.jets(states, 1)
    rates = np.einsum("bna,ba->bn", A, v)
    brackets = np.einsum("bpmn,bm->bpn", H - np.swapaxes(H, -1, -2), rates)
    for n in tree.balls:  # three columns that rotate about axes of one frame
        three = slice(n, n + 3)
        cross_matrix = np.swapaxes(np.cross(rates[:, None, three], np.eye(3)), -1, -2)
        brackets[:, :, three] += S[:, :, three] @ cross_matrix
    return brackets @ A


def _place(loads: Loads, i: int) -> Item:
    """Return the rows whose rates are the motion at a load: of the point of a force, or ω for a moment."""
    frame, kind = loads.forces[i, [lay.CARRIER, lay.FORCE_KIND]].tolist()
    return Item.angular_velocity(frame) if kind == lay.MOMENT else Item.point(frame, loads.places[i])


def load_gains(
    model: CompiledModel, transfer: Transfer, states: np.ndarray, names: Iterable[str]
) -> dict[str, np.ndarray]:
    """Return ∂Tᴸ/∂f (B, M, 3), derivatives of the loads with respect to named forces and moments (2-227)."""
    tree, loads, made = model.tree, model.loads, {}
    for name in names:
        i = loads.names.index(name)
        frame, _, body = loads.forces[i].tolist()
        if frame < 0:
            made[name] = np.zeros((len(states), transfer.size, 3))
            continue
        G = np.swapaxes(OutputDerivatives(model, transfer, [_place(loads, i)], 1)(states)[1], -1, -2)
        if body:  # unit vectors of the reference configuration, fixed to the body
            axes = [Item.direction(frame, tree.local_vector(frame, e)) for e in np.eye(3)]
            query = output_query(tree, plain_rows(tree, axes), 1)
            found = query.arrays(states)[0]
            G = G @ np.swapaxes(found.reshape(-1, 3, 3), -1, -2)
        made[name] = G
    return made


class Source(NamedTuple):
    """Arguments of `linearize` that its result needs for a state space."""

    configuration: Configuration
    wrt: tuple[str, ...] | None
    failures: Literal["raise", "mask"]
    motors: bool


class Linearization(Batched):
    """Efforts near a nominal motion: δT = K δq + C δq̇ + I* δq̈ (eqs 2-201, 2-225).

    K comes from third-order coefficients, without finite differences. For quasi-velocities (ω of a body or a
    ball joint), δq is the small rotation δθ about the same axes, with the rate d(δq)/dt = δq̇ +
    `commutator` δq, and K is the quasi-derivative. Arguments of methods are deviations (..., M) of
    coordinates, rates, accelerations and efforts, by default zero.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    K : (..., M, M)
        Stiffness ∂T/∂q, the sum of `K_inertia` and `K_load`.
    C : (..., M, M)
        ∂T/∂q̇, the sum of `C_inertia` = q̇ᵀ(P* + P*ᵀ) (eq 2-204) and `C_load`, the damping (2-226).
    I : (..., M, M)
        Effective inertia ∂T/∂q̈ = I* (eq 2-203).
    K_inertia, K_load : (..., M, M)
        Part due to masses (eqs 2-216, 2-224), and part −∂Tᴸ/∂q due to gravity, forces, springs and dampers
        (2-208).
    C_inertia, C_load : (..., M, M)
        The same parts of ∂T/∂q̇.
    qd, qdd : (..., M)
        Rates and accelerations of the nominal motion.
    T : (..., M)
        Efforts of the nominal motion.
    commutator : (..., M, M)
        Matrix of d(δq)/dt − δq̇ in terms of δq: diag(0, [ω]×) for x y z wx wy wz of a body (3-53,
        corrected), 0 for coordinates with values.
    holonomic : bool
        True if all coordinates have values.
    time : str
        Unit of time.

    Examples
    --------
    >>> lin = kic.load("horn-two-link").at([-1.5, 0.0]).linearize()
    >>> lin.K.round(3)
    array([[19.571,  4.893],
           [ 4.893,  4.893]])
    >>> lin.inverse_dynamics([0.001, 0.0]).round(6)
    array([0.019571, 0.004893])
    """

    _one_line = ("coordinates", "batch")
    _per_member = ("T", 1)

    def __init__(
        self,
        dynamics: Dynamics,
        stiffness: tuple[np.ndarray, np.ndarray],
        qd: np.ndarray,
        qdd: np.ndarray,
        commutator: np.ndarray,
        friction: np.ndarray,
        source: Source,
    ) -> None:
        self._source: Source | None = source
        d, self._description = dynamics, model_of(source.configuration).description
        self.time = self._description.units.time
        self.coordinates, self.holonomic = d.coordinates, d.holonomic
        self._nominal = d.coordinates
        M = len(self.coordinates)
        batch = broadcast_batches(
            model=d.batch, qd=qd.shape[:-1], qdd=qdd.shape[:-1], stiffness=stiffness[0].shape[:-2]
        )

        def whole(a: np.ndarray, rank: int) -> np.ndarray:
            return np.broadcast_to(a, (*batch, *(M,) * rank))

        self.qd, self.qdd = whole(qd, 1), whole(qdd, 1)
        self.I = whole(d.I, 2)
        self.inertia_error = None if d.inertia_error is None else whole(d.inertia_error, 1)
        self.T = whole(d.inverse_dynamics(qd, qdd) + friction, 1)
        self.K_inertia, self.K_load = whole(stiffness[0], 2), whole(stiffness[1], 2)
        symmetric = d.P + np.swapaxes(d.P, -1, -2)
        self.C_inertia = whole(np.einsum("...kab,...a->...kb", symmetric, qd), 2)
        self.C_load = whole(d.damping, 2)
        self.commutator = whole(commutator, 2)

    @property
    def K(self) -> np.ndarray:
        """Stiffness ∂T/∂q (..., M, M)."""
        return self.K_inertia + self.K_load

    @property
    def C(self) -> np.ndarray:
        """∂T/∂q̇ (..., M, M)."""
        return self.C_inertia + self.C_load

    def inverse_dynamics(self, dq: Any = None, dqd: Any = None, dqdd: Any = None) -> np.ndarray:
        """Compute the change of the efforts for small deviations: δT = K δq + C δq̇ + I* δq̈ (eq 2-201).

        Examples
        --------
        >>> kic.load("horn-two-link").at([0.0, 0.0]).linearize().inverse_dynamics(dqdd=[1.0, 0.0]).round(3)
        array([2.667, 0.833])
        """
        given = self._deviations(dq=dq, dqd=dqd, dqdd=dqdd)
        total = np.zeros_like(self.T)
        for name, by in (("dq", self.K), ("dqd", self.C), ("dqdd", self.I)):
            if name in given:
                total = total + np.einsum("...kn,...n->...k", by, given[name])
        return total

    def _deviations(self, **given: Any) -> dict[str, np.ndarray]:
        """Return the deviations (..., M) that are not None, after a check that their batches broadcast."""
        M = len(self.coordinates)
        found = {name: as_array(name, x, M) for name, x in given.items() if x is not None}
        broadcast_batches(linearization=self.batch, **{name: x.shape[:-1] for name, x in found.items()})
        return found

    def rate(self, qddd: Any) -> np.ndarray:
        """Compute the rate of the efforts for jerks `qddd`: Ṫ = K q̇ + C q̈ + I* q⃛ (as in eq 2-239).

        Examples
        --------
        >>> lin = kic.load("horn-two-link").at([0.0, 0.0]).linearize([0.0, 0.0], [0.0, 0.0])
        >>> lin.rate([1.0, 0.0]).round(3)
        array([2.667, 0.833])
        """
        return self.inverse_dynamics(self.qd, self.qdd, self._deviations(qddd=qddd).get("qddd"))

    def forward_dynamics(self, dq: Any = None, dqd: Any = None, effort: Any = None) -> np.ndarray:
        """Compute the change of the accelerations: δq̈ = I*⁻¹ (δT − K δq − C δq̇).

        Raises
        ------
        SingularError
            If I* is singular.

        Examples
        --------
        >>> lin = kic.load("horn-two-link").at([-1.5, 0.0]).linearize()
        >>> lin.forward_dynamics([0.001, 0.0]).round(5)
        array([-0.01258,  0.01678])
        """
        given = self._deviations(dq=dq, dqd=dqd, effort=effort)
        net = given.pop("effort", 0.0) - self.inverse_dynamics(**given)
        return self.inertia_only.forward_dynamics(np.zeros(len(self.coordinates)), net)

    @property
    def inertia_only(self) -> Dynamics:
        """Model of small motions without stiffness and damping: T = I* δq̈."""
        # NaN where I* is
        zero = np.repeat(0 * self.I[..., None], len(self.coordinates), axis=-1)
        return Dynamics(
            self.coordinates, self.I, zero, holonomic=self.holonomic, inertia_error=self.inertia_error
        )

    def with_fixed(self, fixed: str | Iterable[str]) -> Linearization:
        """Return the linearization with named coordinates fixed to the nominal motion, and thus omitted.

        Examples
        --------
        >>> kic.load("horn-two-link").at([-1.5, 0.0]).linearize().with_fixed("elbow").K.round(3)
        array([[19.571]])
        """
        still = names_of(fixed, "fixed")
        for name in still:
            if name not in self.coordinates:
                raise unknown("coordinate", name, "this linearization", self.coordinates, quoted=False)
        kept = [n for n, name in enumerate(self.coordinates) if name not in still]
        part = object.__new__(Linearization)
        part.coordinates = tuple(self.coordinates[n] for n in kept)
        part.holonomic, part.time = self.holonomic, self.time
        part._description, part._nominal = self._description, self._nominal
        part._source = None if still else self._source
        part.inertia_error = None if self.inertia_error is None else self.inertia_error[..., kept]
        for name in ("qd", "qdd", "T"):
            setattr(part, name, getattr(self, name)[..., kept])
        for name in ("I", "K_inertia", "K_load", "C_inertia", "C_load", "commutator"):
            setattr(part, name, getattr(self, name)[..., kept, :][..., kept])
        return part

    def state_space(
        self,
        *,
        inputs: str | Iterable[str] | None = None,
        outputs: str | Iterable[str] | None = None,
        reduced: bool = False,
    ) -> StateSpace:
        """Build the state-space model of small deviations: ẋ = A x + B u, y = C x + D u.

        Parameters
        ----------
        inputs : str or list of str, optional
            Names of motors (voltage, or torque of an ideal source), of coordinates or other single rows, such
            as actuators (effort), or of forces and moments of the model ("push", or "push.x" alone; eq
            2-227). By default all motors after ``linearize(motors=True)``, otherwise the efforts at all
            coordinates.
        outputs : str or list of str, optional
            Outputs, as `of` in `coefficients`, with ".rate" for their rates ("tip.x.rate"; angular velocities
            are already rates), and "M.current" for the current of motor M. By default the coordinates.
        reduced : bool
            True to neglect inductances, so that currents follow voltages without delay.

        Returns
        -------
        StateSpace
            Model with the states of (2-241): coordinates, rates, currents of motors with inductance. Its
            matrices are (2-242) to (2-252), and (3-48) without motors.

        Raises
        ------
        UnknownNameError, InputError, SingularError
            If an input or output does not exist, coordinates are fixed by `with_fixed`, or I* is singular.

        Examples
        --------
        >>> lin = kic.load("horn-two-link").at([-1.5, 0.0]).linearize()
        >>> s = lin.state_space(outputs=["tip.x", "tip.y.rate"])
        >>> s.A.shape, s.B.shape, s.C.shape
        ((4, 4), (4, 2), (2, 4))
        """
        from kic.analysis.linear.state_space import state_space

        if self._source is None:
            raise InputError(
                f"state_space() requires all coordinates, got {', '.join(self.coordinates)} with others "
                "fixed. Lock those with `Mechanism.lock`, and linearize.",
                key="fixed",
            )
        return state_space(self, self._source, inputs, outputs, reduced)

    def modes(self) -> Modes:
        """Compute frequencies and shapes of small motions for constant nominal efforts.

        Coordinates that are held, such as dimensions (see `Mechanism.vary`), are fixed.

        Returns
        -------
        Modes
            Eigenvalues (..., 2M) of the state matrix, and natural frequencies (..., M). For a nominal motion
            they are instantaneous.

        Raises
        ------
        SingularError
            If I* is singular.

        Examples
        --------
        >>> kic.load("horn-two-link").at([-1.5707963267948966, 0.0]).linearize().modes().natural.round(3)
        array([2.68 , 7.189])
        """
        if held := held_coordinates(self._description):
            if not held.keys() <= set(self._nominal):
                raise InputError(
                    f"`wrt` must leave {', '.join(held)} among the coordinates, because modes() holds them, "
                    f"got {', '.join(self._nominal)}. Name fewer others.",
                    key="wrt",
                    names=tuple(held),
                )
            if fixed := [name for name in self.coordinates if name in held]:
                return self.with_fixed(fixed).modes()
        check_regular(self.inertia_only)
        return Modes(self.coordinates, self.I, self.C, self.K, self.commutator, self.time)

    def summary(self) -> Summary:
        """Return labelled tables of the nominal motion and of K, C and I*."""
        names = self.coordinates
        sheet = Summary(f"linearization in {', '.join(names)}: δT = K δq + C δq̇ + I* δq̈")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        motion = np.stack([x[index] for x in (self.qd, self.qdd, self.T)], axis=-1)
        sheet.matrix("nominal motion", names, ["q̇", "q̈", "T"], motion)
        sheet.matrix("K = ∂T/∂q", names, names, self.K[index])
        if self.K_inertia[index].any() and self.K_load[index].any():
            sheet.matrix("K of the masses", names, names, self.K_inertia[index])
            sheet.matrix("K of the loads", names, names, self.K_load[index])
        sheet.matrix("C = ∂T/∂q̇", names, names, self.C[index])
        sheet.matrix("I* = ∂T/∂q̈", names, names, self.I[index])
        if self.commutator[index].any():
            sheet.matrix("commutator, d(δq)/dt − δq̇ for δq", names, names, self.commutator[index])
        return sheet


def linearize(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    effort: Any = None,
    *,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    motors: bool = False,
    failures: Literal["raise", "mask"] = "raise",
) -> Linearization:
    """Linearize the efforts about a motion: δT = K δq + C δq̇ + I* δq̈.

    The result is exact, from third-order coefficients, with gravity, forces in world and body axes,
    springs and dampers. It holds in any coordinates, for open and closed mechanisms, and for a batch such
    as a trajectory.

    Parameters
    ----------
    qd, qdd : (..., M) array_like, optional
        Rates and accelerations of the nominal motion; zero by default.
    effort : (..., M) array_like, or dict of str to float, optional
        Efforts of the nominal motion, in place of `qdd`. A dict gives those of actuators by name. These
        efforts stay constant when the mechanism deviates, so that K includes −Σ T_i H_i, and δT are
        additional efforts.
    wrt : str or list of str, optional
        Coordinates, as in `coefficients`; by default the mechanism's own.
    applied : dict of str to (..., 3) array_like, optional
        Components of named forces and moments, each in its axes (world or body), instead of those of the
        model.
    motors : bool
        True to include the rotors of the motors and their damping, as in `dynamics`.
    failures : {"raise", "mask"}
        As in `coefficients`.

    Returns
    -------
    Linearization
        K, C, I (..., M, M) (eqs 2-201 to 2-226).

    Raises
    ------
    InertiaError
        If a moving body has no mass or inertia.
    InputError
        If a shape is wrong, or both `qdd` and `effort` are given.
    SingularError
        If the coordinates cannot drive the mechanism here, or I* is singular and efforts are given.

    Examples
    --------
    >>> lin = kic.load("four-bar").at({"A": 1.2}).linearize()
    >>> lin.T.round(4), lin.K.round(4)  # held at rest; the crank would fall away
    (array([-0.0138]), array([[-0.8245]]))
    """
    model = model_of(configuration)
    wrt = None if wrt is None else names_of(wrt, "wrt")
    if model.tree.scalar.kind == "O" or flat_states(configuration).dtype.kind == "O":
        raise InputError("linearize() requires a numeric configuration, got symbols.", key="configuration")
    if qdd is not None and effort is not None:
        raise InputError("Either `qdd` or `effort` must be given, got both. Leave one out.", key="qdd")
    d = configuration.dynamics(wrt=wrt, applied=applied, failures=failures)
    M, friction = len(d.coordinates), np.zeros(len(d.coordinates))
    v = np.zeros(M) if qd is None else as_array("qd", qd, M)
    shafts = motor_shafts(configuration, 3, wrt, failures) if flag("motors", motors) else None
    if shafts is not None:
        d = d + model.drive_train.dynamics(shafts)
        friction = dry_friction(configuration, shafts, v)
    acting = None
    if isinstance(effort, Mapping):
        acting = acting_efforts(configuration, effort, wrt, failures)
    if effort is not None:
        given = (
            as_array("effort", effort, M) if acting is None else generalized_efforts(acting[0].G, acting[1])
        )
        broadcast_batches(effort=given.shape[:-1], configuration=d.batch, qd=v.shape[:-1])
        a = d.forward_dynamics(v, given - friction)
    else:
        a = np.zeros(M) if qdd is None else as_array("qdd", qdd, M)
    batch = broadcast_batches(configuration=d.batch, qd=v.shape[:-1], qdd=a.shape[:-1])
    transfer = model.transfer_for(wrt)
    force, _ = model.loads.applied(applied, configuration.name)
    count = prod(batch)

    def members(x: np.ndarray, *shape: int) -> np.ndarray:
        return np.broadcast_to(x, (*batch, *shape)).reshape(count, *shape)

    states = members(configuration.state, flat_states(configuration).shape[-1])
    nominal_qd, nominal_qdd = members(v, M), members(a, M)
    force = members(force, *force.shape[-2:]) if force.ndim > 2 else force[None]
    states = np.require(states, np.result_type(states, force), ["C", "A", "W"])
    stiffness_of = Stiffness(model, transfer, 3 if v.any() else 2)

    def evaluate(some: Any) -> np.ndarray:
        own = force[some] if len(force) == count else force
        parts = stiffness_of(states[some], nominal_qd[some], nominal_qdd[some], own)
        return np.stack([*parts, commutator(model, transfer, states[some], nominal_qd[some])], axis=1)

    good, parts = map_valid_members(np.broadcast_to(configuration.ok, batch), failures, evaluate)
    check_finite("Stiffness", configuration.name, parts)
    full = scatter(parts, good).reshape(*batch, 3, M, M)
    full[~good] = np.nan
    stiffness = full[..., 0, :, :], full[..., 1, :, :]
    if acting is not None:  # efforts of actuators are constant, not those at the coordinates
        stiffness = (
            stiffness[0],
            stiffness[1] + constant_effort_stiffness(acting[0].needed("H", 2), acting[1]),
        )
    if shafts is not None:
        rotors = model.drive_train.stiffness(shafts, v, a)
        stiffness = stiffness[0] + rotors[0], stiffness[1] + rotors[1]
    source = Source(configuration, wrt, failures, shafts is not None)
    return Linearization(d, stiffness, v, a, full[..., 2, :, :], friction, source)
