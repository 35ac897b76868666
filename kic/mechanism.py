"""Mechanism: a drawing that can be asked."""

from __future__ import annotations

import cmath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np

from kic.arrays import check_failures
from kic.checks import STRICT
from kic.closer import Closer
from kic.configuration import Configuration
from kic.couplings import tell
from kic.drawing import Drawing
from kic.errors import InputError, PostureError
from kic.evaluator import Evaluator
from kic.mobility import Freedoms
from kic.model import Model
from kic.position import along, closed
from kic.posture import coordinates_of, only_coordinates, states_of
from kic.solutions import Solutions, search
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
    closure_tolerance : float
        For rounded dimensions: share of its length by which a loop may contradict itself. What is redundant
        within it is dropped, and `freedoms` says so; inputs are met exactly, the rest as well as it is drawn.
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
            A body takes a `RigidTransform`, its displacement from the drawing as `Configuration.pose` has
            it, or a `Rotation` for its orientation alone: 6 and 3 inputs in space, 3 and 1 in a plane.
        near : Configuration, optional
            A posture from which the wanted one is led, so that its assembly is kept; by default the
            drawing. The mechanism follows the way from its values there to those wanted, in leaps that are
            predicted to second order and watched: it never steps over a dead centre to another branch.
            Angles of `cuts` are known but for full turns, and go the shorter way.
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
            For members that fail or do not close; it carries which (`failed`), why (`reasons`), the rest
            (`configuration`), and how far they came: the `share` of the way, and the postures `reached`.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> arm.at({"shoulder": 0.0, "elbow": [0.0, 0.1, 0.2]}).batch
        (3,)

        The elbow that is bent already is kept:

        >>> arm.at({"tip.x": 1.0, "tip.y": 1.0}, near=arm.at([0.3, 1.2])).phi.round(6).tolist()
        [0.0, 1.570796]

        Leg lengths of a platform from its pose:

        >>> from scipy.spatial.transform import RigidTransform
        >>> platform = kic.load("gough-stewart")
        >>> up = RigidTransform.from_translation([0.0, 0.0, 0.1])
        >>> platform.at({"platform": up}).value("L1").round(4)
        np.float64(1.0999)
        """
        check_failures(failures)
        model = self._model
        if inputs is None:
            if near is not None:
                raise InputError("`near` was given without inputs. Say which values the posture should have.")
            return Configuration(model, (), model.drawn.copy())
        if not model.direct or near is not None or not only_coordinates(self, inputs):
            return closed(model, inputs, near, failures)
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

    def path(
        self,
        inputs: Any,
        near: Configuration | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Configuration:
        """Postures along a path: each member is led from the one before it, and its branch is watched.

        Parameters
        ----------
        inputs : (..., M) array_like, or dict of str to array_like
            As in `at`; the first axis of the batch is the path, further ones are paths side by side.
        near : Configuration, optional
            From where the first member is led; by default the drawing.
        failures : {"raise", "mask"}
            What becomes of a path that can not go on without a jump to another branch: an error that says
            at which member and why, or NaN from there on, and False in ``.ok``.

        Returns
        -------
        Configuration

        Raises
        ------
        InputError
            As `at`; also for inputs without a batch.
        PostureError
            For paths that stop; it carries what that of `at` does.

        Examples
        --------
        A crank makes a full turn; the tip of the coupler comes back to where it was.

        >>> import kic
        >>> import numpy as np
        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 50)})
        >>> bool(np.allclose(turn.value("tip")[0], turn.value("tip")[-1]))
        True
        """
        check_failures(failures)
        if self._model.direct and near is None and only_coordinates(self, inputs) and inputs is not None:
            return self.at(inputs, failures=failures)
        return along(self._model, inputs, near, failures)

    def solutions(
        self,
        inputs: Any,
        near: Configuration | None = None,
        starts: int = 128,
        seed: Any = 0,
        limits: Mapping[str, Any] | None = None,
    ) -> Solutions:
        """Distinct postures found that have these values: other elbows, wrists, assemblies.

        Parameters
        ----------
        inputs : dict or (M,) array_like
            As in `at`, for one posture.
        near : Configuration, optional
            One posture; the solutions come sorted by how far their joints are from it. By default the
            drawing. It is the first start, too.
        starts : int
            How many starts are tried: `near`, and random ones.
        seed : int or numpy Generator
            Of the random starts; the same seed finds the same.
        limits : dict of str to (lower, upper), optional
            Limits of joint coordinates. An angle may lie within them by full turns.

        Returns
        -------
        Solutions
            A `Configuration` whose batch axis are the postures found, never claimed to be all.

        Raises
        ------
        InputError, UnknownNameError
            As `at`; also for a batch, or limits that are none.
        PostureError
            If none was found; it carries how near they came (`left`, in length), or how far `beyond` limits.

        Examples
        --------
        >>> import kic
        >>> m = kic.load("four-bar")
        >>> found = m.solutions({"A": 1.2})
        >>> len(found.hits), found.value("A").tolist()
        (2, [1.2, 1.2])
        """
        return search(self._model, inputs, near, starts, seed, limits)

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

    def prepare_at(self, inputs: str | Iterable[str] | None = None) -> Closer:
        """Closer for hot loops: closes postures near to given states, plain arrays in and out.

        Parameters
        ----------
        inputs : str or list of str, optional
            Rows whose values will be given, as in `at`; by default the coordinates.

        Returns
        -------
        Closer
            Call it with values (..., P) and closed states (..., S).

        Raises
        ------
        InputError, UnknownNameError
            As `at` would.
        """
        return Closer(self._model, inputs)

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
        tell(sheet, self.terms)
        if self.rods:
            rods = [[f"{length:.5g}"] for length in self.rods.values()]
            sheet.texts("fixed distances", list(self.rods), [f"length ({self.units.length})"], rods)
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
    return cmath.isfinite(square) or bool(np.isfinite(a).all())
