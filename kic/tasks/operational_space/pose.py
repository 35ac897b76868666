"""Poses, twists and pose errors of rows and orientations, for control loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.description.parts import Body, Frame
from kic.errors import invalid
from kic.kinematics.items import directions_on
from kic.kinematics.outputs import OMEGA, Rows, make_rows, plain_rows
from kic.kinematics.queries import kernel
from kic.kinematics.scaling import Scaling
from kic.kinematics.tree import Tree
from kic.mechanism.configuration import model_of
from kic.mechanism.evaluator import Evaluator, Results, Tables, tables_of
from kic.numerics.arguments import names_of
from kic.numerics.arrays import ARGUMENT_MAX, REAL, broadcast_batches, real_array, reals
from kic.numerics.rotations import is_rotation, vector_from_matrix
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.program import Program
from kic.transfer.targets import frame_part, placed_reference

if TYPE_CHECKING:
    from kic.mechanism.prepared import Evaluators


class RowMotion:
    """Values, Jacobian and rates of rows, and orientations of the parts whose angular velocities are rows.

    Made by `MovingRows`, which can refill it in place.

    Attributes
    ----------
    value : (..., P)
        Values of the rows; those of angular velocities are arbitrary.
    G : (..., P, M)
        Jacobian.
    H, D : (..., P, M, M), (..., P, M, M, M) or None
        Derivatives of G, if the evaluator has this order.
    R : list of (..., 3, 3)
        Orientation of each part, in the order of `MovingRows.turned`.
    rate : (..., P) or None
        Rates of the rows, if those of the coordinates were given.
    table : (n,)
        Without a batch: values, axes of the parts and G, at the offsets `MovingRows.places`.
    """

    value: np.ndarray
    G: np.ndarray
    H: Any = None
    D: Any = None
    R: list[np.ndarray]
    rate: np.ndarray | None = None
    table: np.ndarray
    _results: Results
    _values: np.ndarray
    _tensors: Sequence[np.ndarray]


def with_axes(tree: Tree, rows: Rows, parts: Sequence[Body | Frame]) -> Rows:
    """Append the axes of parts, 9 entries for each part, to rows; the selected rows stay the same."""
    axes = [item for part in parts for item in directions_on(tree, part.body, part.axes)]
    own = plain_rows(tree, [*rows.source, *axes])
    select = np.arange(rows.height) if rows.select is None else rows.select
    tables = {key: getattr(own, key) for key in ("items", "kinds", "vectors", "height", "source", "item_of")}
    return replace(rows, **tables, select=select)


class MovingRows:
    """The motion of rows, with orientations of parts whose angular velocities are all rows.

    `order` is that of the coefficients: 1 for G, 2 for H and 3 for D as well.

    Attributes
    ----------
    labels : tuple of str
        The P rows.
    turned : dict of str to list of int
        Body or frame, and the indices of its angular velocities among the rows.
    places : tuple of int
        Offsets of axes and G in `RowMotion.table`.
    """

    def __init__(
        self,
        model: CompiledModel,
        of: str | Iterable[str],
        wrt: str | Iterable[str] | None = None,
        order: int = 1,
    ) -> None:
        model.require_real("A pose for control loops", "Use coefficients() and pose().")
        tree, rows = model.tree, make_rows(model.tree, names_of(of, least=1))
        self.labels, self.valued = rows.labels, rows.valued
        self.turned: dict[str, list[int]] = {}
        parts = list[Body | Frame]()
        for name in dict.fromkeys(label.rpartition(".")[0] for label in rows.labels):
            part = model.parts.get(name)
            wanted = [f"{name}.{w}" for w in OMEGA]
            if isinstance(part, Body | Frame) and set(wanted) <= set(rows.labels):
                self.turned[name] = [rows.labels.index(label) for label in wanted]
                parts.append(part)
        full = with_axes(tree, rows, parts)
        assert full.select is not None  # for the type checker
        # a slice is a view
        whole = np.array_equal(full.select, np.arange(len(full.select)))
        self._select: Any = slice(0, len(full.select)) if whole else full.select
        self._rows, self._model, self._first = rows, model, rows.height
        self._program = Program(model.transfer_for(wrt), full, order, model=model)
        self.tables, self.transfer = Tables(model, (), program=self._program), self._program.transfer
        self.coordinates = self.transfer.labels
        self._completed = bool(rows.offsets or rows.angles)
        self._views = whole and not self._completed and self.transfer.permutation is None
        P = len(rows.labels)
        self.places = (rows.height, full.height) if self._views else (P, P + 9 * len(self.turned))

    def at(self, state: Any, out: RowMotion | None = None) -> RowMotion:
        """Return the motion of the rows at a state, without rates; `out` reuses earlier results."""
        return self(self.tables(state, out=None if out is None else out._results), out)

    def __call__(self, results: Results, out: RowMotion | None, qd: Any = None) -> RowMotion:
        """Return the motion of the rows in results of the tables; `out` reuses earlier results."""
        made = self._allocated(results) if out is None else out
        if not (out is None or self._views):
            self._read(made)
        made.rate = None if qd is None else _rates(made.G, qd)
        return made

    def _allocated(self, results: Results) -> RowMotion:
        """Return the motion of the rows in results of the tables."""
        rows, _, batch = tables_of(results)
        if rows.dtype != REAL:
            raise invalid("state", "must hold real numbers", rows.dtype)
        made, layout = RowMotion(), self._program.outputs
        assert layout is not None  # for the type checker: there are rows
        made._results = results
        made._values, *made._tensors = layout.split(rows, batch)
        starts = (self._first + 9 * k for k in range(len(self.turned)))
        made.R = [np.swapaxes(made._values[..., a : a + 9].reshape(*batch, 3, 3), -1, -2) for a in starts]
        self._read(made)
        return made

    def _read(self, made: RowMotion) -> None:
        """Set the values and the Jacobian, which are views of the table unless rows or columns are chosen."""
        values = made._values[..., : self._first]
        if self._completed:
            values = self._rows.complete(values.copy())
        made.value = values[..., self._select]
        ranks = range(1, len(made._tensors) + 1)
        chosen = [T[(..., self._select, *(slice(None),) * n)] for n, T in enumerate(made._tensors, 1)]
        for name, T in zip("GHD", self.transfer.in_coordinates(chosen, ranks), strict=False):
            setattr(made, name, T)
        if values.ndim == 1:
            axes, T = made._values[self._first :], made._results._rows[0]
            made.table = T if self._views else np.concatenate((made.value, axes, made.G.reshape(-1)))

    @property
    def scaling(self) -> Scaling:
        """Typical sizes of rows and coordinates, and the error of rows at regular configurations."""
        return self._program.scaling

    def shortest(self, apart: np.ndarray) -> np.ndarray:
        """Return differences (..., P) of values; angles known modulo full turns are reduced to ±π."""
        return self._rows.shortest(apart) if self._rows.angles else apart


class RowFeedback:
    """Gains times the errors of rows and of their rates, in one kernel call; real numbers only.

    Parameters
    ----------
    rows : MovingRows
        The P rows.
    gains : (P, 2 P)
        Gains of errors, then of their rates.
    null_damping : float
        Rate d (1/s) at which null-space rates approach the desired rates.
    measured : bool
        True if the rows are the coordinates, so that tables (P,) hold their values only.
    """

    def __init__(
        self, rows: MovingRows, gains: np.ndarray, null_damping: float = 0.0, measured: bool = False
    ) -> None:
        self._given = rows, gains, null_damping, measured
        P, M, turned = (
            len(rows.labels),
            len(rows.coordinates),
            [k for own in rows.turned.values() for k in own],
        )
        places = (0, -1) if measured else rows.places
        self._plan = np.array([P, M, len(rows.turned), *places, *turned])
        self._numbers = np.concatenate(([null_damping], rows._rows.turns, gains.reshape(-1)))
        self._scratch, out = np.empty(2 * P * M + P * P + 3 * P), np.empty(2 * P + M)
        self._out, self._parts = out, (out[:P], out[P : 2 * P], out[2 * P :])
        self._entry = kernel("feedback")

    def __reduce__(self) -> tuple[Any, ...]:
        return RowFeedback, self._given  # parts are views, and kernels cannot be copied

    def __call__(
        self, table: np.ndarray, q: np.ndarray, R: np.ndarray, qd: np.ndarray, v: np.ndarray, z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return feedback (P,), row rates (P,) and null accelerations d (P z − v) (M,), in reused arrays.

        `table` is that of a `RowMotion`; q, R (K, 3, 3) and qd are desired, v (M,) are the rates of the
        coordinates. The last result is arbitrary for empty z. P z is the orthogonal projection of z on the
        null space. It is a descent direction of objectives; N z is not, in general.
        """
        self._entry(self._plan, self._numbers, table, q, R, qd, v, z, self._scratch, self._out)
        return self._parts


def parse_pose(key: str, part: Body | Frame, given: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return position (..., 3) and orientation (..., 3, 3) of a part from a pose.

    A pose is a pair (p, R), a `RigidTransform` or matrix (..., 4, 4) as `Configuration.pose` returns it.
    Raise `InputError` with the argument `key` for other types.
    """
    if isinstance(given, tuple) and len(given) == 2:
        p, R = real_array(key, given[0]), parse_rotation(key, part.name, given[1])
    else:
        if not hasattr(given, "translation"):
            T = real_array(key, given)
            affine = T.shape[-2:] == (4, 4) and (T[..., 3, :] == [0, 0, 0, 1]).all()
            if not affine or not is_rotation(T[..., :3, :3]):
                rule = "must be a pose (p, R), (4, 4) or a RigidTransform, with Rᵀ R = I and det R = 1"
                raise invalid(key, rule, given, name=part.name)
            from scipy.spatial.transform import RigidTransform

            given = RigidTransform.from_matrix(T)
        p, R = placed_reference(part, given), given.rotation.as_matrix()
    if p.shape[-1:] != (3,):
        raise invalid(key, "must have a position p (..., 3)", p.shape, name=part.name)
    return p, R


def parse_rotation(key: str, name: str, given: Any) -> np.ndarray:
    """Return an orientation (..., 3, 3) from a `Rotation` or matrices; raise `InputError` for other types."""
    if hasattr(given, "as_matrix"):
        return np.asarray(given.as_matrix())
    R = reals(given)
    if R is None or R.shape[-2:] != (3, 3) or not is_rotation(R):
        rule = f"must have rotations R (..., 3, 3) for '{name}' with Rᵀ R = I and det R = 1"
        raise invalid(key, rule, given, "Give a scipy Rotation.", name=name)
    return R


def _rates(G: np.ndarray, qd: Any) -> np.ndarray:
    plain = type(qd) is np.ndarray and qd.dtype is REAL
    if plain and G.ndim == 2 and qd.shape == G.shape[1:] and sum(map(abs, qd.tolist())) < ARGUMENT_MAX:
        return G.dot(qd)
    v = qd if plain else real_array("qd", qd, G.shape[-1], finite=False)
    if v.shape[-1:] != G.shape[-1:]:
        raise invalid("qd", f"must have shape (..., {G.shape[-1]})", v.shape)
    if v.shape[:-1] != G.shape[:-2]:
        broadcast_batches(state=G.shape[:-2], qd=v.shape[:-1])
    with np.errstate(invalid="ignore", over="ignore"):
        return G.dot(v) if v.ndim == 1 and G.ndim == 2 else (G @ v[..., None])[..., 0]


class PoseMotion:
    """Pose and twist of a frame or body; made by ``m.prepare.pose(of)``.

    Attributes
    ----------
    p : (..., 3)
        Position of the reference point: the rows x, y, z of the part.
    R : (..., 3, 3)
        Orientation in the world; of a body, its rotation from the reference configuration.
    twist : (..., 6) or None
        Velocity of the point, then angular velocity, in world axes, if rates were given.
    G : (..., 6, M)
        Jacobian of the twist.
    """

    def __init__(self, task: PoseTask, rows: RowMotion) -> None:
        self._task, self._rows, self._results = task, rows, rows._results

    @property
    def p(self) -> np.ndarray:
        """Position (..., 3) of the reference point."""
        return self._rows.value[..., :3]

    @property
    def R(self) -> np.ndarray:
        """Orientation (..., 3, 3)."""
        return self._rows.R[0]

    @property
    def twist(self) -> np.ndarray | None:
        """Twist (..., 6), or None."""
        return self._rows.rate

    @property
    def G(self) -> np.ndarray:
        """Jacobian (..., 6, M)."""
        return self._rows.G

    def error(self, target: Any) -> np.ndarray:
        """Return the error (..., 6) to a target: a displacement, then a rotation vector, in world axes.

        Parameters
        ----------
        target : tuple, RigidTransform or (..., 4, 4) array_like
            Position (..., 3) and orientation (..., 3, 3) or a `Rotation`, as `p` and `R`; or a pose as
            `Configuration.pose` returns it.

        Examples
        --------
        >>> m = kic.load("puma560")
        >>> f = m.prepare.pose("link6")
        >>> now = f(m.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4]).state)
        >>> now.error(m.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.3]).pose("link6")).round(3)[3:].tolist()
        [0.086, -0.022, 0.045]
        """
        return self._task._error(self._rows, *parse_pose("target", self._task._part, target))

    def __repr__(self) -> str:
        return f"pose of {self._task.names[0]}, batch {self.G.shape[:-2]}"


def one_part(tree: Tree, of: str | Iterable[str]) -> Body | Frame:
    """Return the single body or frame named in `of`."""
    names = names_of(of, "of", 1)
    if len(names) > 1:
        raise invalid("of", "must name one body or frame", names, "Ask for the pose of each separately.")
    return frame_part(tree, names[0])


class PoseTask:
    """Pose and twist of a frame or body, and errors to a target; `motion` is that of its evaluator."""

    question, motion = "pose", ("qd",)

    def __init__(
        self, model: CompiledModel, of: str | Iterable[str], wrt: str | Iterable[str] | None = None
    ) -> None:
        self._part = one_part(model.tree, of)
        self.names, self._rows = (self._part.name,), MovingRows(model, self._part.name, wrt)
        from kic.kernels.row_feedback import rotation_vector

        self._vector = rotation_vector

    def evaluator(self) -> Evaluator[PoseMotion]:
        """Return the evaluator of this pose."""
        made: Evaluator[Any] = Tables(self._rows._model, (), program=self._rows._program, task=self)
        return made

    def __call__(self, results: Results, out: PoseMotion | None, qd: Any = None) -> PoseMotion:
        """Return pose and twist in results of the tables; `out` reuses earlier results."""
        if out is None:
            return PoseMotion(self, self._rows(results, None, qd))
        self._rows(results, out._rows, qd)
        return out

    def _error(self, now: RowMotion, p: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Return the error (..., 6) to a position and an orientation."""
        moved, R_now = p - now.value[..., :3], now.R[0]
        if moved.ndim == 1 and R.ndim == R_now.ndim == 2:
            return np.concatenate((moved, self._vector(*R.dot(R_now.T).reshape(-1).tolist())))
        turn = vector_from_matrix(R @ np.swapaxes(R_now, -1, -2))
        batch = broadcast_batches(p=moved.shape[:-1], R=turn.shape[:-1])
        return np.concatenate([np.broadcast_to(a, (*batch, 3)) for a in (moved, turn)], axis=-1)


def pose_evaluator(
    evaluators: Evaluators, of: str, *, wrt: str | Iterable[str] | None = None
) -> Evaluator[PoseMotion]:
    """Return an evaluator of the pose of a frame or body, its twist and its Jacobian.

    Results are the position `p` of its reference point, the rows x, y, z; the orientation `R`, `twist`
    and `G`; and ``error(target)`` to a pose: a displacement and a rotation vector. `Configuration.pose`
    of a body is relative to the reference configuration.
    """
    return PoseTask(model_of(evaluators), of, wrt).evaluator()
