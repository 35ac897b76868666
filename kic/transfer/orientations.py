"""Positions for sets of coordinates that include angular velocities.

Angular velocities are quasi-velocities: rates without values. The three components of a joint, body or frame
together have a position, the orientation of one body relative to another. It is stored as a unit quaternion p
with the rate ½ ω p, like the ball joints of a state.

Three rows close the loops at each given orientation: b₂·a₃, b₃·a₁ and b₁·a₂. The aⱼ are axes of the
first body, and the bⱼ directions of the second that coincide with them at the start. At the start the rows
are zero and their first order is the angular velocity. The rows determine rotations of less than 60°. They
are holonomic, so the certified Newton iteration applies to them too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.description.parts import Body, Frame, Joint
from kic.description.validation import GROUND
from kic.errors import InputError, short_repr
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import rotation_items, rotation_rows
from kic.kinematics.items import Between, Item, directions_on
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import Query, output_query
from kic.kinematics.tree import Tree, ball_axes
from kic.numerics.rotations import (
    product,
    quaternion_from_matrix,
    quaternion_from_vector,
    rotated,
    vector_from_matrix,
    vector_from_quaternion,
)
from kic.transfer.closure import Closure
from kic.transfer.coordinate_transfer import TRIES, CoordinateTransfer

if TYPE_CHECKING:
    from kic.transfer.compiled_model import CompiledModel
    from kic.transfer.mobility.mobility import Mobility


@dataclass(frozen=True)
class Orientation:
    """Orientation of a body relative to another, with three coordinates as its angular velocity.

    Attributes
    ----------
    name : str
        Joint, body or frame.
    rows : tuple of int
        The three coordinates.
    bodies : (str, str)
        First and second body.
    axes : (3, 3) ndarray
        Axes of the coordinates as columns, carried by the first body, in the reference configuration.
    """

    name: str
    rows: tuple[int, ...]
    bodies: tuple[str, str]
    axes: np.ndarray

    def items(self, tree: Tree) -> list[Item]:
        """Return the rows of rotations from the reference configuration."""
        return rotation_items(Between(tree, self.bodies), self.axes.T)


def orientations_of(tree: Tree, labels: tuple[str, ...], bare: tuple[str, ...]) -> tuple[Orientation, ...]:
    """Return the orientations whose angular velocities are the coordinates without values, `bare`.

    Raise `InputError` if only one or two components of an angular velocity are among the coordinates.
    """
    made = []
    for name in dict.fromkeys(label.rpartition(".")[0] for label in bare):
        part = tree.description._parts[name]
        if isinstance(part, Joint):
            whole, bodies, axes = part.components[-3:], part.bodies, ball_axes(part)
        else:
            assert isinstance(part, Body | Frame)  # for the type checker: no other part turns
            whole, bodies, axes = tuple(f"{name}.w{c}" for c in "xyz"), (GROUND, part.body), np.eye(3)
        given = tuple(one for one in whole if one in labels)
        if len(given) < 3:
            remedy = f"Name {bodies[1]}.angle."
            if tree.planar_normal is None:
                remedy = (
                    f"An orientation needs all three components. Name {', '.join(whole)}, or rows with "
                    f"values, such as {bodies[1]}.euler_xyz."
                )
            raise InputError(
                f"{', '.join(given)} of '{tree.description.name}' have rates but no values. {remedy}",
                names=given,
            )
        rows = tuple(labels.index(one) for one in whole)
        made.append(Orientation(name, rows, (bodies[0], bodies[1]), axes))
    return tuple(made)


class OrientedTransfer(CoordinateTransfer):
    """Transfer to coordinates with values and to rotations from a start.

    The rotations are the last chosen rows, three for each orientation. They are measured from the start of a
    motion. Rows of a single state are measured from that state, and are zero.
    """

    def __init__(
        self,
        tree: Tree,
        names: tuple[str, ...],
        length: float,
        tolerance: float,
        orientations: tuple[Orientation, ...],
        account: Callable[[], Mobility] | None = None,
    ) -> None:
        items = [item for one in orientations for item in one.items(tree)]
        super().__init__(tree, names, length, tolerance, items, account)
        self._orientations = orientations
        axes = [x for one in orientations for b in one.bodies for x in directions_on(tree, b, one.axes.T)]
        self._axes = output_query(tree, plain_rows(tree, axes), 1)

    def rotations(self, states: np.ndarray) -> np.ndarray:
        """Return rotations (B, n, 3, 3) of the second bodies relative to the first, from the reference."""
        shape = len(states), len(self._orientations), 2, 3, 3
        # rows are axes: the transposed rotation
        R = self._axes.arrays(states)[0].reshape(shape)
        return np.asarray(R[:, :, 0] @ np.swapaxes(R[:, :, 1], -1, -2))

    def query_at(self, state: np.ndarray) -> Query:
        """Return the query for rows with rotations measured from a state (S,)."""
        tree, axes = self.tree, []
        for one, R in zip(self._orientations, self.rotations(state[None])[0], strict=True):
            second = tree.frame[one.bodies[1]]
            carried = tree.axes(second).T @ one.axes @ R.T  # columns are the first body's axes
            axes += [carried[:, j] for j in (1, 2, 0)]  # the second axes of `rotation_items`
        return self.own.with_item_vectors(len(self.chosen.source), np.array(axes))

    def values_and_rates(
        self, states: np.ndarray, query: Query | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return values and G^w of the chosen and closure rows; see `CoordinateTransfer.values_and_rates`."""
        compute = super().values_and_rates
        if query is not None or not len(states):
            return compute(states, query)
        parts = [compute(state[None], self.query_at(state)) for state in states]
        return np.concatenate([v for v, _ in parts]), np.concatenate([G for _, G in parts])

    def track(
        self,
        start: np.ndarray,
        target: np.ndarray,
        choice: np.ndarray | None = None,
        tries: int = TRIES,
        query: Query | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Continue closed states (B, S) to targets (B, P); see `CoordinateTransfer.track`.

        The last values of a target are the `rotation_rows` from its start.
        """
        states, share = start.copy(), np.empty(len(start))
        for b in range(len(start)):
            one = slice(b, b + 1)
            states[one], share[one] = super().track(
                start[one], target[one], choice, tries, self.query_at(start[b])
            )
        return states, share


class Positions:
    """Positions of coordinates that include angular velocities: values, then unit quaternions.

    Parameters
    ----------
    model : CompiledModel
        The mechanism.
    names : tuple of str
        The coordinates.

    Attributes
    ----------
    labels : tuple of str
        Labels of the M coordinates.
    orientations : tuple of Orientation
        Orientations whose angular velocities are coordinates.
    valued : (V,) int
        Indices of the coordinates with values.
    size : int
        Length of a position: V, and 4 for each orientation.
    order : (M,) int
        Indices of the coordinates with values, then of the angular velocities.
    closure : Closure
        Position problem of the coordinates with values and the rotations.

    Raises
    ------
    InputError
        If only one or two components of an angular velocity are coordinates.
    """

    def __init__(self, model: CompiledModel, names: tuple[str, ...]) -> None:
        transfer = model.transfer(names)
        has = transfer.chosen.valued
        self._model, self.labels = model, transfer.labels
        bare = tuple(label for label, one in zip(self.labels, has, strict=True) if not one)
        self.orientations = orientations_of(model.tree, self.labels, bare)
        self.valued = np.flatnonzero(has)
        self._names = tuple(self.labels[k] for k in self.valued)
        self._turns = [np.array(one.rows, dtype=np.intp) for one in self.orientations]
        self.order = np.concatenate([self.valued, *self._turns])
        count = len(self.valued)
        self.size = count + 4 * len(self._turns)
        self._quaternions = [slice(k, k + 4) for k in range(count, self.size, 4)]
        self._transfer = OrientedTransfer(
            model.tree, self._names, transfer.length, transfer.tolerance, self.orientations, model.mobility
        )
        self.closure = Closure(self._transfer)

    def of(self, states: np.ndarray) -> np.ndarray:
        """Return the positions (B, size) of states (B, S)."""
        x, count = np.empty((len(states), self.size)), len(self.valued)
        if count:
            x[:, :count] = self._model.values(self._names, states)
        turned = quaternion_from_matrix(self._transfer.rotations(states))
        x[:, count:] = turned.reshape(len(states), self.size - count)
        return x

    def from_values(self, values: np.ndarray) -> np.ndarray:
        """Return positions (..., size) from values (..., M), with rotation vectors for angular velocities."""
        x, count = np.empty((*values.shape[:-1], self.size)), len(self.valued)
        x[..., :count] = values[..., self.valued]
        for rows, place in zip(self._turns, self._quaternions, strict=True):
            x[..., place] = quaternion_from_vector(values[..., rows])
        return x

    def values(self, x: np.ndarray) -> np.ndarray:
        """Return values (..., M) from positions (..., size), with rotation vectors for angular velocities."""
        values = np.empty((*x.shape[:-1], len(self.labels)))
        values[..., self.valued] = x[..., : len(self.valued)]
        for rows, place in zip(self._turns, self._quaternions, strict=True):
            values[..., rows] = vector_from_quaternion(_unit(x[..., place]))
        return values

    def rates(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the rates (size,) of a position x from coordinate rates v (M,): ½ ω p for quaternions."""
        rates, turn = np.empty(self.size), np.zeros(4)
        rates[: len(self.valued)] = v[self.valued]
        for rows, place in zip(self._turns, self._quaternions, strict=True):
            turn[1:] = v[rows] / 2
            rates[place] = product(turn, _unit(x[place]))
        return rates

    def rows_from(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the packed constants of the rows measured from a state (S,), and its rotations (n, 3, 3)."""
        return self._transfer.query_at(state).numbers, self._transfer.rotations(state[None])[0]

    def scale(self, scale: np.ndarray) -> np.ndarray:
        """Return position scales (size,), 1 for quaternions, from coordinate scales (M,)."""
        return np.concatenate([scale[self.valued], np.ones(self.size - len(self.valued))])

    def track(
        self, start: np.ndarray, x: np.ndarray, choice: np.ndarray | None = None, tries: int = TRIES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the last closed states (B, S) on the paths to positions (B, size), and the share (B,).

        See `Closure.track`. Large rotations are divided into steps.
        """
        states, completed, count = start.copy(), np.zeros(len(start)), len(self.valued)
        if not self.closure.compiled:
            return states, completed
        goal = _matrices(x[:, count:].reshape(len(x), len(self._turns), 4))
        for b in np.flatnonzero(np.isfinite(x).all(axis=1) & np.isfinite(start).all(axis=1)):
            one = slice(b, b + 1)
            turn = goal[b] @ np.swapaxes(self._transfer.rotations(states[one])[0], -1, -2)
            if not np.isfinite(turn).all():  # a state whose quaternions are zero, or overflow
                continue
            steps = self._steps(states[one], x[b, :count], turn)
            for k, (values, part) in enumerate(steps):
                target = np.concatenate([values, rotation_rows(part).ravel()])[None]
                states[one], share = self.closure.track(states[one], target, choice, tries)
                completed[b] = (k + share[0]) / len(steps)
                if share[0] != 1:
                    break
        return states, completed

    def _steps(
        self, state: np.ndarray, values: np.ndarray, turn: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return values (V,) and rotations (n, 3, 3) of short equal steps from a state (1, S)."""
        if np.einsum("nii->n", turn).min() >= lay.TRACE_MIN:
            return [(values, turn)]
        vectors = vector_from_matrix(turn)
        count = int(np.ceil(np.linalg.norm(vectors, axis=1).max() / lay.ORIENTATION_TURN_MAX))
        part = _matrices(quaternion_from_vector(vectors / count))
        began = self.of(state)[0, : len(values)]
        return [(began + (values - began) * k / count, part) for k in range(1, count + 1)]

    def normalized(self, x: np.ndarray) -> np.ndarray:
        """Return positions (..., size) with unit quaternions; zero or non-finite quaternions are an error."""
        found = x.copy()
        for one, place in zip(self.orientations, self._quaternions, strict=True):
            size = np.linalg.norm(x[..., place], axis=-1)
            if not ((size > 0) & np.isfinite(size)).all():
                raise InputError(
                    f"The quaternion of '{one.name}' must be finite and not zero, got "
                    f"{short_repr(x[..., place].tolist())}.",
                    name=one.name,
                    got=x[..., place],
                )
            found[..., place] = _unit(x[..., place])
        return found

    def inputs(self, x: np.ndarray) -> dict[str, Any] | None:
        """Return positions (..., size) as inputs of `at`, or None with a free joint between moving bodies."""
        from scipy.spatial.transform import Rotation

        made: dict[str, Any] = {name: x[..., k] for k, name in enumerate(self._names)}
        for one, place in zip(self.orientations, self._quaternions, strict=True):
            turn = Rotation.from_matrix(one.axes)
            turned = turn * Rotation.from_quat(x[..., place], scalar_first=True) * turn.inv()
            if one.name in self._model.description._ball_joints:
                made[one.name] = turned
                continue
            if GROUND not in one.bodies:
                return None
            backwards = one.bodies[1] == GROUND
            made[one.bodies[0 if backwards else 1]] = turned.inv() if backwards else turned
        return made


def _unit(p: np.ndarray) -> np.ndarray:
    """Return normalized quaternions (..., 4)."""
    return np.asarray(p / np.sqrt(np.einsum("...i,...i->...", p, p))[..., None])


def _matrices(p: np.ndarray) -> np.ndarray:
    """Return the rotations (..., 3, 3) of quaternions (..., 4) that need not be normalized."""
    return np.swapaxes(rotated(_unit(p)[..., None, :], np.eye(3)), -1, -2)
