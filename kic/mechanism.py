"""Mechanism: a drawing that can be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np

from kic.configuration import Configuration
from kic.drawing import Drawing
from kic.errors import InputError, PostureError
from kic.evaluator import Evaluator
from kic.model import Model
from kic.parts import STRICT
from kic.posture import coordinates_of, states_of
from kic.tables import Sheet


@dataclass(frozen=True, repr=False)
class Mechanism(Drawing):
    """A mechanism as drawn in one assembled posture, in world coordinates. Immutable.

    Parameters
    ----------
    name : str
        Short name.
    bodies, joints, points, distances, forces, moments, springs : sequences of parts
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
        """Number of freedoms (of an open chain, in this version).

        Raises
        ------
        LoopError
            For a mechanism with loops.
        """
        return self._model.mobility

    @property
    def cuts(self) -> tuple[str, ...]:
        """Joints at which the loops are opened; none for an open chain."""
        return tuple(joint.name for joint in self._model.tree.cuts)

    def at(self, inputs: Any = None, failures: Literal["raise", "mask"] = "raise") -> Configuration:
        """Posture, or batch of postures, that has these joint coordinates.

        Parameters
        ----------
        inputs : (..., M) array_like, dict of str to array_like, or None
            Coordinates in the order of `coordinates`, or by name; batches broadcast. A spherical joint
            takes a rotation vector or a SciPy `Rotation` from the drawing, a free one x y z and a
            rotation vector or a `RigidTransform`. None means as drawn.
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
            For members that fail; it carries which, why, and the rest.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> arm.at({"shoulder": 0.0, "elbow": [0.0, 0.1, 0.2]}).batch
        (3,)
        """
        if failures not in ("raise", "mask"):
            raise InputError(f"Expected `failures` to be 'raise' or 'mask', got {failures!r}.")
        model = self._model
        model.check_open()
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

    def _refuse(self, configuration: Configuration, inputs: np.ndarray) -> None:
        failed = [tuple(index) for index in np.argwhere(~configuration.ok).tolist()]
        reasons = []
        for index in failed:
            bad = np.flatnonzero(~np.isfinite(inputs[index]))
            reasons.append(", ".join(f"{configuration.coordinates[k]} = {inputs[index][k]}" for k in bad))
        if not configuration.batch:
            message = f"Coordinates of '{self.name}' must be finite, got {reasons[0]}."
        else:
            shown = "; ".join(f"{i}: {why}" for i, why in list(zip(failed, reasons, strict=True))[:4])
            message = (
                f"{len(failed)} of {configuration.ok.size} members of the batch have no posture, coordinates "
                f"must be finite: {shown}{'; …' if len(failed) > 4 else ''}. "
                "failures='mask' keeps the others."
            )
        raise PostureError(message, failed=failed, reasons=reasons, configuration=configuration)

    def prepare(self, of: str | Iterable[str] = (), order: int = 2, dynamics: bool = False) -> Evaluator:
        """Evaluator for hot loops: plain arrays in and out, all names resolved beforehand.

        Parameters
        ----------
        of : str or list of str
            Dependents, as in `Configuration.coefficients`.
        order : {1, 2, 3}
            Highest order.
        dynamics : bool
            Also I*, P*, the load and the damping.

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
        return Evaluator(self._model, of, order, dynamics)

    def sheet(self) -> Sheet:
        """Labelled account of the parts, to print or to show."""
        sheet = Sheet(f"{self.name}: {self.title}" if self.title else self.name)
        joints = [[j.type, " – ".join(j.bodies), ", ".join(j.components)] for j in self.joints]
        sheet.texts("joints", [j.name for j in self.joints], ["type", "ties", "coordinates"], joints)
        if self.bodies:
            mass = [["?" if b.mass is None else f"{b.mass:.5g}"] for b in self.bodies]
            sheet.texts("bodies", [b.name for b in self.bodies], [f"mass ({self.units.mass})"], mass)
        if self.points:
            carried = [[p.body, ", ".join(f"{x:.5g}" for x in p.at)] for p in self.points]
            sheet.texts("points", [p.name for p in self.points], ["body", "drawn at"], carried)
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


def _finite(a: np.ndarray) -> bool:
    """Whether every number is finite; symbols are taken to be."""
    if a.dtype.kind == "O":
        return True
    square = np.vdot(a, a)  # several times faster than looking at each; an overflow only costs the look
    return bool(square - square == 0) or bool(np.isfinite(a).all())
