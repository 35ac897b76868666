"""Mechanism: a drawing that can be asked."""

from __future__ import annotations

import cmath
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np

from kic.arrays import broadcast_batches
from kic.checks import STRICT
from kic.configuration import Configuration
from kic.couplings import relation
from kic.drawing import Drawing
from kic.errors import InputError, PostureError, shown
from kic.evaluator import Evaluator
from kic.mobility import Freedoms
from kic.model import Model
from kic.posture import coordinates_of, only_coordinates, states_of, targets_of
from kic.tables import Sheet


@dataclass(frozen=True, repr=False)
class Mechanism(Drawing):
    """A mechanism as drawn in one assembled posture, in world coordinates. Immutable.

    Parameters
    ----------
    name : str
        Short name.
    bodies, joints, points, distances, forces, moments, springs, couplings : sequences of parts
        All their names share one namespace, and ``ground`` is the fixed world.
    gravity : (3,) float
        Acceleration of gravity (length/time²), in any direction; none by default.
    coordinates : sequence of str, optional
        Joints whose coordinates are meant where none are named; by default all that move, as written.
    title, about, source, drawing : str
        Prose: a headline, a description, where the numbers come from, which posture is drawn.
    units : Units
        Names of the units, for labels only; angles are radians.

    Raises
    ------
    ModelError
        If the description contradicts itself: the rule, what came, and the remedy.

    Examples
    --------
    >>> import kic
    >>> pendulum = kic.Mechanism(
    ...     "pendulum",
    ...     bodies=[kic.Body("rod", mass=2.0, com=(0.5, 0, 0), inertia=(0, 0.17, 0.17))],
    ...     joints=[kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))],
    ...     points=[kic.Point("tip", "rod", at=(1, 0, 0))],
    ...     gravity=(0, -9.81, 0),
    ... )
    >>> pendulum.at([0.0]).coefficients("tip").G
    array([[0.],
           [1.],
           [0.]])
    """

    __pydantic_config__ = STRICT

    @cached_property
    def _model(self) -> Model:
        return Model(self)

    @property
    def mobility(self) -> int:
        """Number of freedoms at the drawing and near it; `freedoms` says what it rests on."""
        return self._model.mobility

    @property
    def redundant(self) -> int:
        """Number of closure conditions that follow from the others."""
        return self._model.redundant

    def freedoms(self) -> Freedoms:
        """Account of the freedoms, in numbers and in words.

        Returns
        -------
        Freedoms
            Coordinates of the tree, closure conditions and whose they are, which of them are redundant, and
            whether the drawing is a posture that can tell. Printed, it is a paragraph.

        Examples
        --------
        >>> import kic
        >>> kic.load("five-bar").freedoms()
        mobility 2: 4 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them redundant (3 of
        joint 'D'). All motion is in one plane, normal (0, 0, 1); conditions out of it hold by themselves.
        """
        return self._model.freedoms

    @property
    def cuts(self) -> tuple[str, ...]:
        """Joints at which the loops are opened; none for an open chain."""
        return tuple(joint.name for joint in self._model.tree.cuts)

    def at(
        self,
        inputs: Any = None,
        near: Configuration | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Configuration:
        """Posture, or batch of postures, that has these values: closes the loops.

        Parameters
        ----------
        inputs : (..., M) array_like, dict of str to array_like, or None
            Coordinates in the order of `coordinates`, or by name; batches broadcast. A spherical joint
            takes a rotation vector or a SciPy `Rotation` from the drawing; a free one x y z of its place
            and a rotation vector, or a `RigidTransform`, the displacement of the second body relative to
            the first from the drawing, as `Configuration.pose` has it. None means as drawn. For a mechanism
            with loops, and for the inverse position of an arm, any rows with a value may be named: joints,
            points ("tip", "tip.x"), distances, angles of a planar mechanism; as many as there are freedoms.
        near : Configuration, optional
            A posture from which the wanted one is led, so that its assembly is kept; by default the
            drawing.
        failures : {"raise", "mask"}
            What becomes of members without a posture (NaN or infinite input): an error that says which,
            or NaN in every answer and False in ``.ok``.

        Returns
        -------
        Configuration

        Raises
        ------
        InputError
            For a wrong shape, or coordinates that are missing, surplus or of another kind.
        PostureError
            For members that fail or do not close; it carries which, why, and the rest.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> arm.at({"shoulder": 0.0, "elbow": [0.0, 0.1, 0.2]}).batch
        (3,)
        """
        if not isinstance(failures, str) or failures not in ("raise", "mask"):
            raise InputError(f"Expected `failures` to be 'raise' or 'mask', got {shown(failures)}.")
        model = self._model
        if inputs is None:
            if near is not None:
                raise InputError("`near` was given without inputs. Say which values the posture should have.")
            return Configuration(model, (), model.drawn.copy())
        if not model.direct or near is not None or not only_coordinates(self, inputs):
            return self._closed(inputs, near, failures)
        a = coordinates_of(self, inputs)
        batch = a.shape[:-1]
        phi = a.reshape(prod(batch), a.shape[-1]).copy()
        if _finite(phi):
            return Configuration(model, batch, states_of(model.tree, phi))
        ok = np.isfinite(phi).all(axis=-1)
        phi[~ok] = np.nan
        configuration = Configuration(model, batch, states_of(model.tree, phi), ok.reshape(batch))
        if failures == "raise":
            self._refuse(configuration, a)
        return configuration

    def _closed(self, inputs: Any, near: Configuration | None, failures: str) -> Configuration:
        """The position problem: lead a closed posture to the values of the inputs."""
        model = self._model
        names, target, batch = targets_of(model.drawing, model.value_rows, inputs)
        model.check_number(names)
        start: np.ndarray = model.drawn
        around: tuple[int, ...] = ()
        if near is not None:
            if not isinstance(near, Configuration):
                raise InputError(f"Expected `near` to be a posture made by at(), got {shown(near)}.")
            if near._model is not model and near._model.drawing != self:
                raise InputError(f"`near` must be a posture of '{self.name}', got one of '{near.name}'.")
            if near._ok is not None:
                bad = int((~near.ok).sum())
                raise InputError(
                    f"`near` must have postures only, but {bad} of its {near.ok.size} members have none."
                )
            start, around = near._states, near.batch
        shape = broadcast_batches(inputs=batch, near=around)
        count = prod(shape)
        begin = _members(start.reshape(*around, start.shape[-1]), shape, count)
        goal = _members(target, shape, count)
        finite = np.isfinite(goal).all(axis=1) & np.isfinite(begin).all(axis=1)
        states = np.full(begin.shape, np.nan)
        reasons = ["inputs must be finite"] * count
        if finite.any():
            outcome = model.closure(names).solve(np.ascontiguousarray(begin[finite]), goal[finite])
            closed = np.array([not reason for reason in outcome.reasons])
            states[finite] = np.where(closed[:, None], outcome.states, np.nan)
            for b, reason in zip(np.flatnonzero(finite), outcome.reasons, strict=True):
                reasons[b] = reason
        ok = np.array([not reason for reason in reasons], dtype=bool).reshape(shape)
        configuration = Configuration(model, shape, states, None if ok.all() else ok)
        if failures == "raise" and not ok.all():
            failed = [tuple(index) for index in np.argwhere(~ok).tolist()]
            why = [reason for reason in reasons if reason]
            where = (
                "; ".join(f"{i}: {r}" for i, r in list(zip(failed, why, strict=True))[:3])
                if shape
                else why[0]
            )
            raise PostureError(
                f"'{self.name}' has no such posture near the start: {where}. Give `near=` a posture closer "
                "to the wanted assembly, or failures='mask' to keep the others.",
                failed=failed,
                reasons=why,
                configuration=configuration,
            )
        return configuration

    def _refuse(self, configuration: Configuration, inputs: np.ndarray) -> None:
        failed = [tuple(index) for index in np.argwhere(~configuration.ok).tolist()]
        reasons = []
        for index in failed:
            bad = np.flatnonzero(~np.isfinite(inputs[index]))
            reasons.append(", ".join(f"{configuration.coordinates[k]} = {inputs[index][k]}" for k in bad))
        if not configuration.batch:
            message = f"Coordinates of '{self.name}' must be finite, got {reasons[0]}."
        else:
            some = "; ".join(f"{i}: {why}" for i, why in list(zip(failed, reasons, strict=True))[:4])
            message = (
                f"{len(failed)} of {configuration.ok.size} members of the batch have no posture, coordinates "
                f"must be finite: {some}{'; …' if len(failed) > 4 else ''}. "
                "failures='mask' keeps the others."
            )
        raise PostureError(message, failed=failed, reasons=reasons, configuration=configuration)

    def prepare(
        self,
        of: str | Iterable[str] = (),
        order: int = 2,
        dynamics: bool | Literal["inertia"] = False,
        wrt: str | Iterable[str] | None = None,
    ) -> Evaluator:
        """Evaluator for hot loops: plain arrays in and out, all names resolved beforehand.

        Parameters
        ----------
        of : str or list of str
            Dependents, as in `Configuration.coefficients`.
        order : {1, 2, 3}
            Highest order.
        dynamics : bool or "inertia"
            Also I*, P*, the load and the damping; "inertia" for I* and P* alone.
        wrt : str or list of str, optional
            The coordinates, as in `Configuration.coefficients`.

        Returns
        -------
        Evaluator
            Call it with a state (..., S); see `Configuration.state`.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `coefficients` and `dynamics` would.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> f = arm.prepare(of=["tip"])
        >>> f(arm.at([0.0, 0.0]).state).tip.G[1].tolist()
        [2.0, 1.0]
        """
        return Evaluator(self._model, of, order, dynamics, wrt)

    def sheet(self) -> Sheet:
        """Labelled account of the parts, to print or to show."""
        sheet = Sheet(f"{self.name}: {self.title}" if self.title else self.name)
        if not self._model.tree.open:
            sheet.say(self.freedoms().text())
        joints = [[j.type, " – ".join(j.bodies), ", ".join(j.components)] for j in self.joints]
        sheet.texts("joints", [j.name for j in self.joints], ["type", "ties", "coordinates"], joints)
        if self.bodies:
            mass = [["?" if b.mass is None else f"{b.mass:.5g}"] for b in self.bodies]
            sheet.texts("bodies", [b.name for b in self.bodies], [f"mass ({self.units.mass})"], mass)
        if self.points:
            carried = [[p.body, ", ".join(f"{x:.5g}" for x in p.at)] for p in self.points]
            sheet.texts("points", [p.name for p in self.points], ["body", "drawn at"], carried)
        if self.couplings:
            relations = [[relation(terms)] for terms in self.terms.values()]
            sheet.texts("couplings", list(self.terms), ["changes from the drawing"], relations)
        if self.rods:
            rods = [[f"{length:.5g}"] for length in self.rods.values()]
            sheet.texts("fixed distances", list(self.rods), [f"length ({self.units.length})"], rods)
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


def _members(a: np.ndarray, shape: tuple[int, ...], count: int) -> np.ndarray:
    """Rows (count, …) of an array (..., n) over a batch of a shape."""
    return np.broadcast_to(a, (*shape, a.shape[-1])).reshape(count, a.shape[-1])


def _finite(a: np.ndarray) -> bool:
    """Whether every number is finite; symbols are taken to be."""
    if a.dtype.kind == "O":
        return True
    square = np.vdot(a, a)  # several times faster than looking at each; an overflow only costs the look
    return cmath.isfinite(square) or bool(np.isfinite(a).all())
