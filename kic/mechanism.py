"""Mechanism: a drawing that can be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from kic import contacts, couplings
from kic.checks import STRICT
from kic.configuration import Configuration
from kic.errors import InputError
from kic.evaluator import Evaluator
from kic.motors import list_motors
from kic.position import beginning, on_real
from kic.postures import Postures
from kic.tables import Sheet

if TYPE_CHECKING:
    from kic.linear.equilibrium import Equilibrium
    from kic.questions.independent import IndependentSets
    from kic.questions.mobility import Mobility
    from kic.tasks.operational import OperationalEvaluator
    from kic.tasks.redundancy import ResolutionEvaluator
    from kic.tasks.weighting import Damping, Law, Weight


@dataclass(frozen=True, repr=False)
class Mechanism(Postures):
    """A mechanism as drawn in one assembled posture, in world coordinates. Immutable.

    Parameters
    ----------
    name : str
        Short name.
    bodies, joints, points, distances, forces, moments, springs, couplings, contacts, motors : sequences
        Parts, each sequence of one kind.
        All their names share one namespace, and ``ground`` is the fixed world.
    gravity : (3,) float
        Acceleration of gravity (length/time²), in any direction; none by default.
    closure_tolerance : float
        For rounded dimensions: share of its length by which a loop may contradict itself. What is redundant
        within it is dropped, and `mobility` says so; inputs are met exactly, the rest as well as it is drawn.
    coordinates : sequence of str, optional
        Joints whose coordinates are meant where none are named; by default all that move, as written. The
        attribute is what was written, None if nothing; `coordinate_names` are the coordinates that count.
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

    @property
    def freedoms(self) -> int:
        """Number of freedoms at the drawing and near it; `mobility` says what it rests on."""
        return self._model.freedoms

    @property
    def redundant(self) -> int:
        """Number of closure conditions that follow from the others."""
        return self._model.redundant

    def mobility(self, at: Configuration | None = None) -> Mobility:
        """Account of the freedoms, in numbers and in words.

        Parameters
        ----------
        at : Configuration, optional
            One posture; by default the drawing.

        Returns
        -------
        Mobility
            Coordinates of the tree, closure conditions and whose they are, which of them are redundant;
            whether the freedoms are finite motions, or only shown to some order; and those of them that are
            idle. Printed, it is a paragraph.

        Raises
        ------
        InputError
            If `at` is no posture of this mechanism, or a batch of them.

        Examples
        --------
        >>> import kic
        >>> kic.load("five-bar").mobility()
        mobility 2: 4 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them redundant (3 of
        joint 'D'). All motion is in one plane, normal (0, 0, 1); conditions out of it hold by themselves.
        """
        model = self._model.real
        state, batch = beginning(model, on_real(self._model, at) if self._model.stepped else at, "at")
        if batch:
            raise InputError(f"Expected `at` to be one posture, got a batch {batch}. Ask in a loop.")
        return model.mobility if at is None else model.mobility_at(state[None])

    def independent_sets(
        self,
        at: Configuration | None = None,
        among: str | Iterable[str] | None = None,
        count: int = 10,
    ) -> IndependentSets:
        """Sets of coordinates that can drive the mechanism, the best conditioned first.

        Parameters
        ----------
        at : Configuration, optional
            A posture, or a batch of them over which the worst counts; members without a posture are passed
            over. By default the drawing.
        among : str or list of str, optional
            Candidates: joints, points, distances, body motion, or single rows of them; every row is a
            candidate of its own. By default the coordinates of all joints, cut ones included. Rows without a
            value, such as rates of balls, only stand in for freedoms that nothing else has.
        count : int
            How many sets are wanted at most.

        Returns
        -------
        IndependentSets
            Iterable, printable. It says whether all sets were tried.

        Raises
        ------
        UnknownNameError, InputError
            For names that are not there, too few of them, no posture, or a mechanism without freedom.
        SingularError
            At postures where several motions meet, which no set drives; or if no set serves.

        Examples
        --------
        >>> import kic
        >>> import numpy as np
        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": np.linspace(1, 1 + 2 * np.pi, 100)})
        >>> best = m.independent_sets(turn)[0]
        >>> best.names, round(best.worst, 2)
        (('A',), 0.58)
        """
        from kic.questions.independent import independent_sets

        return independent_sets(self._model, at, among, count)

    def find_equilibrium(
        self,
        near: Configuration | None = None,
        effort: Any = None,
        held: str | Iterable[str] = (),
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        motors: bool = False,
        stable: bool = False,
    ) -> Equilibrium:
        """A posture that loads and given efforts leave at rest, near another one, and whether it stays there.

        Parameters
        ----------
        near : Configuration, optional
            One posture from which the search starts; by default the drawing.
        effort : dict of str to float, or (f,) array_like, optional
            Efforts at the coordinates, by name or at all those that are not held; none if left out.
        held : str or list of str
            Coordinates that stay where they are; the effort that this takes is found.
        wrt : str or list of str, optional
            The coordinates, as in `Configuration.coefficients`; by default the mechanism's own.
        applied : dict of str to (3,) array_like, optional
            Components of named forces and moments, instead of those of the model.
        motors : bool
            Whether rotors and damping of motors count in the modes, as in `Configuration.dynamics`.
        stable : bool
            Whether to let the mechanism fall until it rests in a minimum of its potential energy; else any
            equilibrium near will do, such as one that is upside down.

        Returns
        -------
        Equilibrium
            The posture, its efforts, stability, natural frequencies and mode shapes.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            For names that are not there, efforts of another shape, a batch, or missing masses.
        PostureError
            If none was found; it carries the efforts that were `left`, and the posture `reached`.
        SingularError
            If a freedom can move without effort, so that there are more beside it; it carries what is `free`.
            Where coordinates that were named can not drive the mechanism.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> found = arm.find_equilibrium(stable=True)
        >>> found.stability, found.configuration.value("tip").round(6).tolist()
        ('stable', [0.0, -2.0, 0.0])
        """
        from kic.linear.resting import find_equilibrium

        return find_equilibrium(self._model, near, effort, held, wrt, applied, motors, stable)

    @property
    def cuts(self) -> tuple[str, ...]:
        """Joints at which the loops are opened; none for an open chain."""
        return tuple(joint.name for joint in self._model.tree.cuts)

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

    def prepare_operational_space(
        self, task: str | Iterable[str], wrt: str | Iterable[str] | None = None
    ) -> OperationalEvaluator:
        """Evaluator of Λ, μ, p for hot loops: plain arrays in and out.

        Parameters
        ----------
        task : str or list of str
            Rows of the task, as `of` in `Configuration.coefficients`.
        wrt : str or list of str, optional
            The coordinates, as in `Configuration.coefficients`.

        Returns
        -------
        OperationalEvaluator
            Call it with a state (..., S); see `Configuration.state`.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.operational_space` would.
        """
        from kic.tasks.operational import OperationalEvaluator

        return OperationalEvaluator(self._model, task, wrt)

    def prepare_resolve(
        self,
        task: str | Iterable[str],
        weight: Weight = "minimum norm",
        law: Law = "consistent",
        damping: Damping = None,
        wrt: str | Iterable[str] | None = None,
        effort: bool = False,
        order: Literal[1, 2] = 2,
    ) -> ResolutionEvaluator:
        """Evaluator that resolves redundancy in hot loops: plain arrays in and out.

        Parameters
        ----------
        task, weight, law, damping, wrt
            As in `Configuration.resolve`.
        effort : bool
            Whether efforts are wanted, too.
        order : {1, 2}
            1 for rates alone.

        Returns
        -------
        ResolutionEvaluator
            Call it with a state (..., S) (see `Configuration.state`) and the motion of the task.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.resolve` would.
        """
        from kic.tasks.redundancy import ResolutionEvaluator

        return ResolutionEvaluator(self._model, task, weight, law, damping, wrt, effort, order)

    def sheet(self) -> Sheet:
        """Labelled account of the parts, to print or to show."""
        sheet = Sheet(f"{self.name}: {self.title}" if self.title else self.name)
        if not self._model.tree.open:
            sheet.say(self.mobility().text())
        joints = [[j.type, " – ".join(j.bodies), ", ".join(j.components)] for j in self.joints]
        sheet.texts("joints", [j.name for j in self.joints], ["type", "ties", "coordinates"], joints)
        if self.bodies:
            mass = [["?" if b.mass is None else f"{b.mass:.5g}"] for b in self.bodies]
            sheet.texts("bodies", [b.name for b in self.bodies], [f"mass ({self.units.mass})"], mass)
        if self.points:
            carried = [[p.body, ", ".join(f"{x:.5g}" for x in p.at)] for p in self.points]
            sheet.texts("points", [p.name for p in self.points], ["body", "drawn at"], carried)
        couplings.tell(sheet, self.terms)
        contacts.tell(sheet, self.contacts)
        if self.rods:
            rods = [[f"{length:.5g}"] for length in self.rods.values()]
            sheet.texts("fixed distances", list(self.rods), [f"length ({self.units.length})"], rods)
        list_motors(sheet, self.motors)
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
