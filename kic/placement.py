"""Placement: a posture, or a batch of them, as far as it can be seen without a question of motion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kic.errors import InputError, OutOfRangeError, shown
from kic.model import Model
from kic.parts import Joint
from kic.posture import phi_of
from kic.tables import Sheet, member
from kic.targets import Aims

if TYPE_CHECKING:
    from scipy.spatial.transform import RigidTransform


def valued(joints: Iterable[Joint]) -> list[str]:
    """Components of joints that have values in a loop, too: all but those of balls."""
    return [c for j in joints if j.type != "spherical" for c in j.components[: 3 + 3 * (j.freedoms < 6)]]


def single_values(placement: Placement, names: Iterable[str]) -> np.ndarray:
    """Values (n,) of single rows of one posture, NaN where there is none."""
    found = []
    for name in names:
        try:
            found.append(placement.value(name))
        except InputError:
            found.append(np.array(np.nan))
    return np.array(found)


class Placement:
    """Where everything is: states that were closed, values of rows, places of bodies."""

    def __init__(
        self,
        model: Model,
        batch: tuple[int, ...],
        states: np.ndarray,
        ok: np.ndarray | None = None,
        aims: Aims | None = None,
    ) -> None:
        self._model = model
        self._states = states
        self._batch = batch
        self._ok = ok
        # what was asked of members with and without a posture, where that was a position problem
        self._aims = aims

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch, ``()`` for one posture."""
        return self._batch

    @property
    def ok(self) -> np.ndarray:
        """Members that have a posture, (...) bool."""
        return np.ones(self.batch, dtype=bool) if self._ok is None else self._ok.copy()

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self._model.drawing.name

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates in which answers come."""
        return self._model.coordinates

    @property
    def state(self) -> np.ndarray:
        """State of the spanning tree, (..., S); a copy."""
        return self._states.reshape(*self.batch, self._states.shape[-1]).copy()

    @property
    def phi(self) -> np.ndarray:
        """Coordinates of the spanning tree, (..., M); of an open chain in the order of `coordinates`.

        Balls appear as rotation vectors. For an open chain, ``mechanism.at(c.phi)`` is the same posture.
        """
        phi = phi_of(self._model.tree, self._states)
        return phi.reshape(*self.batch, self._model.tree.size)

    def __getitem__(self, members: Any) -> Self:
        """Members of a batch, by what NumPy takes as an index of its axes.

        Parameters
        ----------
        members : int, slice, array of int or bool, or a tuple of these
            Such as ``path[-1]``, ``path[::10]``, ``grid[0, :]``, ``c[c.ok]``.

        Returns
        -------
        Configuration
            Of the batch that is left.

        Raises
        ------
        IndexError
            For members that are not there.
        InputError
            Of one posture, which has no members.

        Examples
        --------
        >>> import kic
        >>> path = kic.load("four-bar").path({"A": [1.0, 1.1, 1.2]})
        >>> path[-1].value("A").round(6), path[:2].batch
        (np.float64(1.2), (2,))
        """
        if not self.batch:
            raise InputError(f"This is one posture of '{self.name}', and no batch that has members.")
        try:
            which = np.asarray(np.arange(prod(self.batch)).reshape(self.batch)[members])
        except (TypeError, ValueError, OverflowError):
            which = None
        except IndexError as error:
            raise OutOfRangeError(f"`members` must be an index of the batch {self.batch}: {error}.") from None
        if which is None:
            said = "integers, slices, or arrays of integers or booleans"
            raise InputError(f"`members` must be {said}, got {shown(members)}.")
        ok = None if self._ok is None else self._ok.reshape(-1)[which]
        which, shape = which.reshape(-1), which.shape
        aims = None if self._aims is None else self._aims.take(which)
        return type(self)(self._model, shape, self._states[which], ok, aims)

    def _beside(self, batch: tuple[int, ...], states: np.ndarray, ok: np.ndarray | None = None) -> Any:
        """Return a configuration of the same mechanism at other states; of assembly modes a plain one."""
        from kic.configuration import Configuration

        return Configuration(self._model, batch, states, ok)

    def __iter__(self) -> Iterator[Self]:
        """The members of a batch along its first axis."""
        if not self.batch:
            raise InputError(f"This is one posture of '{self.name}', and no batch that has members.")
        return (self[k] for k in range(self.batch[0]))

    def _masked(self, T: np.ndarray) -> np.ndarray:
        """NaN in every number of the members that have no posture."""
        if self._ok is not None:
            T[~self._ok.reshape(-1)] = np.nan
        return T

    def value(self, name: str) -> np.ndarray:
        """Values of a point, a joint, a distance or a single row.

        Parameters
        ----------
        name : str
            Such as "tip" (..., 3), "tip.x" (...,), "A" (...,), "hand.angle" (...,).

        Returns
        -------
        ndarray
            (..., P) of a part with several rows, (...,) of a single one.

        Raises
        ------
        InputError
            For an angular velocity, which is the rate of nothing; `pose` has the orientation.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 0.0]).value("tip")
        array([2., 0., 0.])
        """
        rows = self._model.rows(name, 1).answer.rows
        if not rows.holonomic:
            raise InputError(
                f"'{name}' includes angular velocities, which have no value. "
                "Ask for a point, or for the pose() of a body."
            )
        values = self._masked(self._model.values(name, self._states))
        values = values.reshape(*self.batch, len(rows.labels))
        return values[..., 0] if len(rows.labels) == 1 else values

    def pose(self, body: str) -> RigidTransform:
        """Displacement of a body from the drawing, as a SciPy `RigidTransform` (batched).

        ``pose.apply(p)`` is where the body's point drawn at p is now.

        Parameters
        ----------
        body : str
            Name of the body.

        Returns
        -------
        scipy.spatial.transform.RigidTransform

        Raises
        ------
        UnknownNameError
            If there is no such body.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.0, 0.5])
        >>> c.pose("link2").apply([2.0, 0.0, 0.0]).round(3)
        array([1.878, 0.479, 0.   ])
        """
        from scipy.spatial.transform import RigidTransform

        self._model.only_real("pose()", "Ask for the same as a matrix, displacement().")
        return RigidTransform.from_matrix(self.displacement(body))

    def displacement(self, body: str) -> np.ndarray:
        """The same as a matrix: homogeneous transform of a body from the drawing.

        Parameters
        ----------
        body : str
            Name of the body.

        Returns
        -------
        (..., 4, 4)

        Raises
        ------
        UnknownNameError, InputError
            If there is no such body, or for complex numbers, symbols, or members without posture.

        Examples
        --------
        >>> import kic
        >>> kic.load("horn-two-link").at([0.0, 0.0]).displacement("link2")[:3, :3]
        array([[1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
        """
        model = self._model
        model.drawing.part(body, "bodies")
        if self._states.dtype not in (np.float64, model.tree.scalar):
            raise InputError(f"pose() needs real numbers; this posture holds {self._states.dtype}.")
        if self._ok is not None:
            raise InputError(
                f"pose() needs every member, but {int((~self.ok).sum())} of {self.ok.size} have no posture."
            )
        question = model.pose(body)
        p = question.answer.split(question.table(self._states), self.batch)[0].reshape(*self.batch, 4, 3)
        T = np.zeros((*self.batch, 4, 4), p.dtype)
        T[..., 3, 3] = 1
        T[..., :3, 3] = p[..., 0, :]
        # columns of the rotation: where the drawing's unit vectors have gone
        T[..., :3, :3] = np.swapaxes(p[..., 1:, :], -1, -2)
        return T

    def sheet(self) -> Sheet:
        """Labelled table of the posture, to print or to show."""
        sheet = Sheet(f"{self.name}: posture")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if self._ok is not None:
            sheet.say(f"{int((~self.ok).sum())} of {self.ok.size} members have no posture")
        if index is not None:
            names = self.coordinates if self._model.direct else self._model.tree.columns
            # joints at which loops are cut are no columns of the tree
            cut = [] if self._model.tree.open else valued(self._model.drawing.joints)
            cut = [c for c in cut if c not in names]
            one = self[index] if self.batch else self
            values = np.concatenate([one.phi, single_values(one, cut)])
            caption = "coordinates" if self._model.tree.open else "joints"
            sheet.matrix(caption, [*names, *cut], ["value"], values[:, None])
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
