"""Linearization: how efforts change with small deviations from a motion (2-201 to 2-227)."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Literal

import numpy as np

from kic.actuation.motors import dry_friction, motor_shafts
from kic.configuration import Configuration
from kic.display import Summary, member
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, unknown
from kic.kernels.layout import DIRECTION, OMEGA, POINT
from kic.kinematics.items import Item
from kic.kinematics.outputs import Rows, make_rows, plain_rows
from kic.kinematics.queries import OutputQuery
from kic.linear.modes import Modes
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_finite, map_valid_members, scatter
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.identity import Transfer

# numbers of a table that are in work at the same time
_AT_ONCE = 2**22


class OutputDerivatives:
    """Rows to some order, at states, in the coordinates of a transfer.

    Parameters
    ----------
    model : Model
        The mechanism.
    transfer : Transfer
        The coordinates.
    of : list of Item, or tuple of str
        The rows.
    order : {1, 2, 3}
        Highest order.
    """

    def __init__(
        self,
        model: CompiledModel,
        transfer: Transfer,
        of: list[Item] | tuple[str, ...],
        order: int,
    ) -> None:
        tree = model.tree
        self.rows: Rows = make_rows(tree, of) if isinstance(of, tuple) else plain_rows(tree, of)
        self._transfer = transfer
        self._query: Any = transfer.query(self.rows, order)

    @property
    def width(self) -> int:
        """Number of table entries for one configuration."""
        return self._query.width

    def __call__(self, states: np.ndarray) -> list[np.ndarray]:
        """Return the values (B, P), then G (B, P, M), and H and D up to the order."""
        table = self._transfer.evaluate(self._query, states).T
        values, *tensors = self._query.outputs.split(table, (len(states),))
        tensors = self._transfer.in_coordinates(tensors, range(1, len(tensors) + 1))
        values = self.rows.complete(values.copy())
        select = self.rows.select
        if select is None:
            return [values, *tensors]
        return [values[:, select], *(t.take(select, axis=1) for t in tensors)]


class Stiffness:
    """∂T/∂q of a mechanism in chosen coordinates: that of inertia, and that of the loads.

    Parameters
    ----------
    model : Model
        The mechanism.
    transfer : Transfer
        The coordinates.
    order : {2, 3}
        2 for mechanisms at rest, where no third order counts.
    """

    def __init__(self, model: CompiledModel, transfer: Transfer, order: int) -> None:
        tree, masses, loads = model.tree, model.masses, model.loads
        numbers = masses.numbers
        self._size = transfer.size
        self._mass = numbers[:, 0]
        self._gravity = loads.gravity[0]
        self._spinning = np.flatnonzero(numbers[:, 4:].any(axis=1))
        frames = masses.frames.tolist()
        made = [Item(POINT, f, local_b=tuple(x)) for f, x in zip(frames, numbers[:, 1:4], strict=True)]
        made += [Item(OMEGA, frames[i]) for i in self._spinning]
        self._bodies = OutputDerivatives(model, transfer, made, order)
        m = numbers[self._spinning, 4:]
        self._inertia = m[:, [[0, 3, 4], [3, 1, 5], [4, 5, 2]]]
        # forces and moments on what moves; those that turn with a body also know its ω
        table = loads.forces
        self._acting = np.flatnonzero(table[:, 0] >= 0) if len(table) else np.zeros(0, dtype=np.intp)
        self._turning = np.flatnonzero(table[self._acting, 2] == 1)
        made = [
            Item(OMEGA, int(table[i, 0]))
            if table[i, 1]
            else Item(POINT, int(table[i, 0]), local_b=tuple(loads.places[i]))
            for i in self._acting
        ]
        made += [Item(OMEGA, int(table[self._acting[i], 0])) for i in self._turning]
        self._springs = loads.spring_numbers[:, 6:]
        for (a, b), x in zip(loads.springs.tolist(), loads.spring_numbers, strict=True):
            made += [Item(POINT, a, local_b=tuple(x[:3])), Item(POINT, b, local_b=tuple(x[3:6]))]
        self._loaded = OutputDerivatives(model, transfer, made, 2) if made else None
        turned = [frames[i] for i in self._spinning]
        turned += [int(table[self._acting[i], 0]) for i in self._turning]
        # where the axes of those frames are; no matter of coordinates
        axes = [Item(DIRECTION, f, local_b=tuple(e)) for f in turned for e in np.eye(3)]
        self._axes = OutputQuery(tree, plain_rows(tree, axes), 1) if axes else None
        laws = [j for j in model.description.joints if any(j.stiffness) or any(j.damping)]  # type: ignore[arg-type]
        self._joints = OutputDerivatives(model, transfer, tuple(j.name for j in laws), 2) if laws else None
        self._laws = np.array(
            [x for j in laws for x in zip(j.stiffness, j.rest, j.damping, strict=True)]  # type: ignore[arg-type]
        ).reshape(-1, 3)

    def __call__(
        self, states: np.ndarray, v: np.ndarray, a: np.ndarray, force: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """∂T/∂q of the inertia and of the loads, (B, M, M) each, at states (B, S).

        Parameters
        ----------
        v, a : (B, M)
            Rates and accelerations.
        force : (B or 1, n, 3)
            Applied forces and moments, in world axes or in those of their frames.
        """
        width = max(self._bodies.width, self._loaded.width if self._loaded else 0, 1)
        block = max(1, _AT_ONCE // width)
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
        """Both parts at a block of states, added to what is there."""
        count = len(states)
        axes = np.zeros((count, 0, 3, 3))
        if self._axes is not None:
            found = self._axes.layout.split(self._axes.table(states), (count,))[0]
            axes = np.swapaxes(found.reshape(count, -1, 3, 3), -1, -2)
        split = len(self._spinning)
        _, *tensors = self._bodies(states)
        parts = [T.reshape(count, -1, 3, *T.shape[2:]) for T in tensors]
        n = len(self._mass)
        self._add_linear([T[:, :n] for T in parts], v, a, inertial, loaded)
        self._add_angular([T[:, n:] for T in parts], axes[:, :split], v, a, inertial)
        if self._loaded is not None:
            values, G, H = (T.reshape(count, -1, 3, *T.shape[2:]) for T in self._loaded(states))
            k = len(self._acting) + len(self._turning)
            self._add_forces(G[:, :k], H[:, :k], axes[:, split:], force, loaded)
            self._add_springs(values[:, k:], G[:, k:], H[:, k:], v, loaded)
        if self._joints is not None:
            values, G, H = self._joints(states)
            self._add_laws(values, G, H, v, loaded)

    def _add_linear(
        self,
        tensors: list[np.ndarray],
        v: np.ndarray,
        a: np.ndarray,
        inertial: np.ndarray,
        loaded: np.ndarray,
    ) -> None:
        """Linear momentum and weight (2-216)."""
        G, H = tensors[:2]
        force = self._mass[:, None] * accelerations(G, H, v, a)
        change = self._mass[:, None, None] * changes(tensors, v, a)
        inertial += bent(H, force) + gained(G, change)
        weight = self._mass[:, None] * self._gravity
        loaded -= bent(H, np.broadcast_to(weight, force.shape))

    def _add_angular(
        self, tensors: list[np.ndarray], R: np.ndarray, v: np.ndarray, a: np.ndarray, inertial: np.ndarray
    ) -> None:
        """Angular momentum (2-217 to 2-224): II turns with the body, ∂II/∂q_l = g_l × II − II g_l ×."""
        G, H = tensors[:2]
        II = R @ self._inertia @ np.swapaxes(R, -1, -2)
        omega, alpha = np.einsum("bipn,bn->bip", G, v), accelerations(G, H, v, a)
        momentum = np.einsum("bipr,bir->bip", II, omega)
        turned = np.einsum("bipr,bir->bip", II, alpha)
        moment = turned + np.cross(omega, momentum)
        g = np.swapaxes(G, -1, -2)  # columns of G as vectors (B, n, M, 3)

        def carried(of: np.ndarray, with_body: np.ndarray, change: np.ndarray) -> np.ndarray:
            """∂(II x)/∂q_l = g_l × II x + II (∂x/∂q_l − g_l × x), all as vectors (B, n, M, 3)."""
            rest = change - np.cross(g, of[:, :, None, :])
            return np.cross(g, with_body[:, :, None, :]) + np.einsum("bipr,bilr->bilp", II, rest)

        d_omega = np.einsum("bipln,bn->bilp", H, v)
        d_alpha = np.swapaxes(changes(tensors, v, a), -1, -2)
        change = (
            carried(alpha, turned, d_alpha)
            + np.cross(d_omega, momentum[:, :, None, :])
            + np.cross(omega[:, :, None, :], carried(omega, momentum, d_omega))
        )
        inertial += bent(H, moment) + gained(G, np.swapaxes(change, -1, -2))

    def _add_forces(
        self, G: np.ndarray, H: np.ndarray, R: np.ndarray, force: np.ndarray, loaded: np.ndarray
    ) -> None:
        """Forces and moments (2-208), with their own turning where they have the axes of a body."""
        count, k = len(self._acting), self._turning
        f = np.broadcast_to(force[:, self._acting], (len(G), count, 3)).astype(np.result_type(force, R))
        f[:, k] = np.einsum("bipr,bir->bip", R, f[:, k])
        spin = np.swapaxes(G[:, count:], -1, -2)
        loaded -= bent(H[:, :count], f)
        turned = np.cross(spin, f[:, k][:, :, None, :])
        loaded -= gained(G[:, :count][:, k], np.swapaxes(turned, -1, -2))

    def _add_springs(
        self, places: np.ndarray, G: np.ndarray, H: np.ndarray, v: np.ndarray, loaded: np.ndarray
    ) -> None:
        """Springs and dampers between points: T = s (1 − ℓ₀/ℓ) w·W_k + c e_k e·q̇, with W = ∂w, e = w·W/ℓ."""
        w = places[:, 1::2] - places[:, ::2]
        W, bend = G[:, 1::2] - G[:, ::2], H[:, 1::2] - H[:, ::2]
        stiffness, rest, damping = self._springs.T
        square = (w * w).sum(axis=-1)
        # without free length and damping a spring may have no length
        directed = (rest != 0) | (damping != 0)
        length = np.sqrt(np.where(directed, square, 1.0))
        along = np.einsum("bip,bipk->bik", w, W)
        both = np.einsum("bipl,bipk->bikl", W, W) + np.einsum("bip,biplk->bikl", w, bend)
        outer = along[..., :, None] * along[..., None, :]
        pull = stiffness * (1 - rest / length)
        loaded += np.einsum("bi,bikl->bkl", pull, both)
        loaded += np.einsum("bi,bikl->bkl", stiffness * rest / length**3, outer)
        e = along / length[..., None]
        change = both / length[..., None, None] - outer / length[..., None, None] ** 3
        rate = np.einsum("bik,bk->bi", e, v)
        loaded += np.einsum("i,bikl,bi->bkl", damping, change, rate)
        loaded += np.einsum("i,bik,binl,bn->bkl", damping, e, change, v)

    def _add_laws(
        self, values: np.ndarray, G: np.ndarray, H: np.ndarray, v: np.ndarray, loaded: np.ndarray
    ) -> None:
        """Springs and dampers in joints: T = k g_k (φ − φ₀) + c g_k g·q̇."""
        assert self._joints is not None  # for the type checker: there are laws
        stiffness, rest, damping = self._laws.T
        stretch = np.where(self._joints.rows.valued, values - rest, 0.0)
        held = stiffness * stretch + damping * np.einsum("bpn,bn->bp", G, v)
        loaded += np.einsum("bplk,bp->bkl", H, held)
        loaded += np.einsum("bpk,p,bpl->bkl", G, stiffness, G)
        loaded += np.einsum("bpk,p,bpln,bn->bkl", G, damping, H, v)


def accelerations(G: np.ndarray, H: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """ü = G q̈ + q̇ᵀ H q̇ (..., P) of rows (B, ..., P, M) for rates and accelerations (B, M) (2-27)."""
    middle = G.ndim - 3
    v, a = (x.reshape(len(x), *(1,) * middle, -1) for x in (v, a))
    bend = np.einsum("...pmn,...m->...pn", H, v)
    return np.einsum("...pn,...n->...p", G, a) + np.einsum("...pn,...n->...p", bend, v)


def changes(tensors: list[np.ndarray], v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """∂ü/∂q (..., P, M) = H_ln q̈_n + D_lmn q̇_m q̇_n (2-43), of tensors (G, H) at rest, else (G, H, D)."""
    H = tensors[1]
    middle = H.ndim - 4
    v, a = (x.reshape(len(x), *(1,) * middle, -1) for x in (v, a))
    change = np.einsum("...pln,...n->...pl", H, a)
    if len(tensors) > 2:
        change = change + np.einsum("...plmn,...m,...n->...pl", tensors[2], v, v)
    return change


def bent(H: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Forces (B, n, P) on rows that turn: [k, l] = force · h_lk (2-208)."""
    count, size = len(H), H.shape[-1]
    flat = H.reshape(count, prod(H.shape[1:-2]), size * size)
    found = force.reshape(count, 1, flat.shape[1]) @ flat
    return np.swapaxes(found.reshape(count, size, size), -1, -2)


def gained(G: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Changes of forces (B, n, P, M) felt by rows (B, n, P, M): [k, l] = g_k · ∂force/∂q_l."""
    count, size = len(G), G.shape[-1]
    rows = prod(G.shape[1:-1])
    return np.swapaxes(G.reshape(count, rows, size), -1, -2) @ change.reshape(count, rows, size)


def commutator(model: CompiledModel, transfer: Transfer, states: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What d(δq)/dt has beside δq̇, (B, M, M) that multiplies δq; zero in coordinates with values.

    For rates of turning δθ it is ω × (3-53, corrected): with q̇ = S φ̇ and δq = S δφ in the tree's coordinates,
    d(δq)/dt − δq̇ = φ̇ᵀ(H − Hᵀ)δφ + S (φ̇ × δφ), where the last is of the tree's own balls.
    """
    tree, size = model.tree, transfer.size
    if transfer.holonomic:
        return np.zeros((len(states), size, size), v.dtype)
    rows = make_rows(tree, transfer.names)
    query = OutputQuery(tree, rows, 2)
    _, S, H = query.layout.split(query.table(states), (len(states),))
    if rows.select is not None:
        S, H = (T.take(rows.select, axis=1) for T in (S, H))
    (A,) = transfer.jets(states, 1)
    rates = np.einsum("bna,ba->bn", A, v)
    turned = np.einsum("bpmn,bm->bpn", H - np.swapaxes(H, -1, -2), rates)
    _add_balls(tree.balls, S, rates, turned)
    return turned @ A


def _add_balls(balls: Iterable[int], S: np.ndarray, rates: np.ndarray, out: np.ndarray) -> None:
    """Add S (φ̇ × δφ) of balls, whose three columns turn about axes of one frame."""
    for n in balls:
        three = slice(n, n + 3)
        # columns of [ω]× are ω × e
        crossed = np.swapaxes(np.cross(rates[:, None, three], np.eye(3)), -1, -2)
        out[:, :, three] += S[:, :, three] @ crossed


def load_gains(
    model: CompiledModel, transfer: Transfer, states: np.ndarray, names: Iterable[str]
) -> dict[str, np.ndarray]:
    """What each component of a force or a moment gives every coordinate, (B, M, 3): ∂Tᴸ/∂f (2-227)."""
    tree, loads, made = model.tree, model.loads, {}
    for name in names:
        i = loads.names.index(name)
        frame, moment, body = loads.forces[i].tolist()
        place = Item(OMEGA, frame) if moment else Item(POINT, frame, local_b=tuple(loads.places[i]))
        if frame < 0:
            made[name] = np.zeros((len(states), transfer.size, 3))
            continue
        G = np.swapaxes(OutputDerivatives(model, transfer, [place], 1)(states)[1], -1, -2)
        if body:  # the drawing's unit vectors, as the body carries them
            axes = [Item(DIRECTION, frame, local_b=tuple(tree.local_vector(frame, e))) for e in np.eye(3)]
            question = OutputQuery(tree, plain_rows(tree, axes), 1)
            found = question.layout.split(question.table(states), (len(states),))[0]
            G = G @ np.swapaxes(found.reshape(-1, 3, 3), -1, -2)
        made[name] = G
    return made


class Linearization:
    """Efforts of motions beside a nominal one: δT = K δq + C δq̇ + I* δq̈ (eqs 2-201, 2-225).

    K comes from third-order coefficients, without differences of any kind. Where a coordinate is the rate of
    nothing (ω of a body, a ball's), δq is the small turn δθ about the same axes and K the quasi-derivative;
    its rate is d(δq)/dt = δq̇ + `commutator` δq.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    K : (..., M, M)
        Stiffness ∂T/∂q, `K_inertia` and `K_load` together.
    C : (..., M, M)
        ∂T/∂q̇, `C_inertia` = q̇ᵀ(P* + P*ᵀ) (eq 2-204) and `C_load`, the damping, together.
    I : (..., M, M)
        Effective inertia ∂T/∂q̈ = I* (eq 2-203).
    K_inertia, K_load : (..., M, M)
        Share of the masses (eqs 2-216, 2-224), and of gravity, forces, springs and dampers, −∂Tᴸ/∂q (2-208).
    C_inertia, C_load : (..., M, M)
        The same of ∂T/∂q̇.
    qd, qdd : (..., M)
        Rates and accelerations of the nominal motion.
    T : (..., M)
        Its efforts.
    commutator : (..., M, M)
        What d(δq)/dt has beside δq̇: diag(0, [ω]×) for a body's x y z wx wy wz, 0 for true coordinates.
    holonomic : bool
        Whether all coordinates have values.
    time : str
        Unit of time.

    Examples
    --------
    >>> import kic
    >>> lin = kic.load("horn-two-link").at([-1.5, 0.0]).linearize()
    >>> lin.K.round(3)
    array([[19.571,  4.893],
           [ 4.893,  4.893]])
    >>> lin.inverse_dynamics([0.001, 0.0]).round(6)
    array([0.019571, 0.004893])
    """

    def __init__(
        self,
        dynamics: Dynamics,
        stiffness: tuple[np.ndarray, np.ndarray],
        qd: np.ndarray,
        qdd: np.ndarray,
        commutator: np.ndarray,
        friction: np.ndarray,
        time: str = "s",
    ) -> None:
        d = dynamics
        self.time = time
        self.coordinates, self.holonomic = d.coordinates, d.holonomic
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

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.T.shape[:-1]

    def inverse_dynamics(self, dq: Any = None, dqd: Any = None, dqdd: Any = None) -> np.ndarray:
        """Change of the efforts for small deviations: δT = K δq + C δq̇ + I* δq̈ (eq 2-201).

        Parameters
        ----------
        dq, dqd, dqdd : (..., M) array_like, optional
            Deviations of coordinates, rates and accelerations; none if left out.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 0.0]).linearize().inverse_dynamics(dqdd=[1.0, 0.0]).round(3)
        array([2.667, 0.833])
        """
        M = len(self.coordinates)
        total = np.zeros_like(self.T)
        for name, given, by in (("dq", dq, self.K), ("dqd", dqd, self.C), ("dqdd", dqdd, self.I)):
            if given is not None:
                x = as_array(name, given, M)
                broadcast_batches(linearization=self.batch, **{name: x.shape[:-1]})
                total = total + np.einsum("...kn,...n->...k", by, x)
        return total

    def rate(self, qddd: Any) -> np.ndarray:
        """Rate of the efforts along the nominal motion: Ṫ = K q̇ + C q̈ + I* q⃛ (as in eq 2-239).

        Parameters
        ----------
        qddd : (..., M) array_like
            Jerks of the coordinates.

        Returns
        -------
        (..., M)

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> import kic
        >>> lin = kic.load("horn-two-link").at([0.0, 0.0]).linearize([0.0, 0.0], [0.0, 0.0])
        >>> lin.rate([1.0, 0.0]).round(3)
        array([2.667, 0.833])
        """
        return self.inverse_dynamics(self.qd, self.qdd, qddd)

    def forward_dynamics(self, dq: Any = None, dqd: Any = None, effort: Any = None) -> np.ndarray:
        """Change of the accelerations: δq̈ = I*⁻¹ (δT − K δq − C δq̇).

        Parameters
        ----------
        dq, dqd, effort : (..., M) array_like, optional
            Deviations of coordinates, rates and efforts; none if left out.

        Returns
        -------
        (..., M)

        Raises
        ------
        SingularError
            Where I* can not be inverted.

        Examples
        --------
        >>> import kic
        >>> lin = kic.load("horn-two-link").at([-1.5, 0.0]).linearize()
        >>> lin.forward_dynamics([0.001, 0.0]).round(5)
        array([-0.01258,  0.01678])
        """
        M = len(self.coordinates)
        net = -self.inverse_dynamics(dq, dqd)
        if effort is not None:
            net = net + as_array("effort", effort, M)
        return self.still.forward_dynamics(np.zeros(M), net)

    @property
    def still(self) -> Dynamics:
        """The model of small motions without stiffness and damping: I* alone."""
        zero = np.zeros((*self.batch, *(len(self.coordinates),) * 3))
        return Dynamics(
            self.coordinates, self.I, zero, holonomic=self.holonomic, inertia_error=self.inertia_error
        )

    def held(self, names: str | Iterable[str]) -> Linearization:
        """The same with some coordinates held: what is left are the others, in their order.

        Parameters
        ----------
        names : str or list of str
            Coordinates that keep to the nominal motion.

        Returns
        -------
        Linearization

        Raises
        ------
        UnknownNameError
            For a name that is no coordinate.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([-1.5, 0.0]).linearize().held("elbow").K.round(3)
        array([[19.571]])
        """
        still = names_of(names, "names")
        for name in still:
            if name not in self.coordinates:
                raise unknown("coordinate", name, "this linearization", self.coordinates)
        kept = [n for n, name in enumerate(self.coordinates) if name not in still]
        part = object.__new__(Linearization)
        part.coordinates = tuple(self.coordinates[n] for n in kept)
        part.holonomic, part.time = self.holonomic, self.time
        part.inertia_error = None if self.inertia_error is None else self.inertia_error[..., kept]
        for name in ("qd", "qdd", "T"):
            setattr(part, name, getattr(self, name)[..., kept])
        for name in ("I", "K_inertia", "K_load", "C_inertia", "C_load", "commutator"):
            setattr(part, name, getattr(self, name)[..., kept, :][..., kept])
        return part

    def modes(self) -> Modes:
        """Small motions about the nominal one while its efforts stay as they are: frequencies and shapes.

        Returns
        -------
        Modes
            Eigenvalues (..., 2M) of the state matrix, and natural frequencies (..., M). About a motion they
            are those of the moment.

        Raises
        ------
        SingularError
            Where I* can not be inverted.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([-1.5707963267948966, 0.0]).linearize().modes().natural.round(3)
        array([2.68 , 7.189])
        """
        self.still._check_regular()
        return Modes(self.coordinates, self.I, self.C, self.K, self.commutator, self.time)

    def summary(self) -> Summary:
        """Labelled tables, to print or to show."""
        names = self.coordinates
        sheet = Summary(f"linearization in {', '.join(names)}: δT = K δq + C δq̇ + I* δq̈")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        motion = np.stack([x[index] for x in (self.qd, self.qdd, self.T)], axis=-1)
        sheet.matrix("nominal motion", names, ["q̇", "q̈", "T"], motion)
        sheet.matrix("K = ∂T/∂q", names, names, self.K[index])
        for caption, part in (
            ("K of the masses", self.K_inertia),
            ("K of the loads", self.K_load),
        ):
            if self.K_inertia[index].any() and self.K_load[index].any():
                sheet.matrix(caption, names, names, part[index])
        sheet.matrix("C = ∂T/∂q̇", names, names, self.C[index])
        sheet.matrix("I* = ∂T/∂q̈", names, names, self.I[index])
        if self.commutator[index].any():
            sheet.matrix("commutator, d(δq)/dt − δq̇ for δq", names, names, self.commutator[index])
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def linearize(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    wrt: str | Iterable[str] | None = None,
    effort: Any = None,
    applied: dict[str, Any] | None = None,
    failures: Literal["raise", "mask"] = "raise",
    motors: bool = False,
) -> Linearization:
    """How efforts change with small deviations from a motion: δT = K δq + C δq̇ + I* δq̈.

    See `Configuration.linearize`.
    """
    model = configuration._model
    if model.tree.scalar.kind == "O" or configuration._states.dtype.kind == "O":
        raise InputError("linearize() is answered in numbers only; this posture holds symbols.")
    if qdd is not None and effort is not None:
        raise InputError("Expected `qdd` or `effort` of the nominal motion, got both. Leave one out.")
    d = configuration.dynamics(wrt, applied, failures)
    M, friction = len(d.coordinates), np.zeros(len(d.coordinates))
    v = np.zeros(M) if qd is None else as_array("qd", qd, M)
    shafts = motor_shafts(configuration, 3, wrt, failures) if flag("motors", motors) else None
    if shafts is not None:
        d = d + model.drive_train.dynamics(shafts)
        friction = dry_friction(configuration, shafts, v)
    if effort is not None:
        a = d.forward_dynamics(v, as_array("effort", effort, M) - friction)
    else:
        a = np.zeros(M) if qdd is None else as_array("qdd", qdd, M)
    batch = broadcast_batches(posture=d.batch, qd=v.shape[:-1], qdd=a.shape[:-1])
    transfer = model.transfer_for(wrt)
    force, _ = model.loads.applied(applied, configuration.name)
    count = prod(batch)

    def members(x: np.ndarray, *shape: int) -> np.ndarray:
        return np.broadcast_to(x, (*batch, *shape)).reshape(count, *shape)

    states, moving = (
        members(configuration.state, configuration._states.shape[-1]),
        (members(v, M), members(a, M)),
    )
    force = members(force, *force.shape[-2:]) if force.ndim > 2 else force[None]
    states = np.require(states, np.result_type(states, force), ["C", "A", "W"])
    question = Stiffness(model, transfer, 3 if v.any() else 2)

    def answer(some: Any) -> np.ndarray:
        own = force[some] if len(force) == count else force
        parts = question(states[some], moving[0][some], moving[1][some], own)
        return np.stack([*parts, commutator(model, transfer, states[some], moving[0][some])], axis=1)

    good, parts = map_valid_members(np.broadcast_to(configuration.ok, batch), failures, answer)
    check_finite("Stiffness", configuration.name, parts)
    full = scatter(parts, good).reshape(*batch, 3, M, M)
    full[~good] = np.nan
    stiffness = full[..., 0, :, :], full[..., 1, :, :]
    if shafts is not None:
        rotors = model.drive_train.stiffness(shafts, v, a)
        stiffness = stiffness[0] + rotors[0], stiffness[1] + rotors[1]
    time = model.description.units.time
    return Linearization(d, stiffness, v, a, full[..., 2, :, :], friction, time)
