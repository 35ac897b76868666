"""Singular postures: where inputs, outputs or the closure lose rank, and what is free or lost there.

After Gosselin and Angeles (1990), and with the closure apart: at a singularity of the inputs (their second
type) the mechanism moves while the inputs stand still; at one of the outputs (their first) the outputs lose a
direction, whatever moves; at one of the closure its conditions depend on one another, and motions meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kic.analysis.branches import BranchTargets
from kic.analysis.finite_mobility import beside
from kic.analysis.singularity_search import EXACT, Place, Search
from kic.configuration import Configuration, single_values
from kic.display import Summary
from kic.errors import InputError
from kic.kinematics.scales import row_unit
from kic.numerics.arguments import item, names_of
from kic.numerics.linalg import min_singular_value, null_space
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.targets import BatchTargets

# what moves or counts less than this, beside the largest, is not named
NAMED = 1e-6
# of more joints than these only those that move most are named
MANY = 6


@dataclass(frozen=True, repr=False)
class Singularity:
    """One singular posture; printed, a sentence.

    Attributes
    ----------
    kind : {"inputs", "outputs", "closure"}
        What loses rank.
    posture : Configuration
        The posture, closed.
    between : tuple of tuple of int
        The neighbouring members of the batch between which it lies; one member that is itself singular, or
        near which it was found; or the last member before one without a posture, and that one: it is where
        the straight way of the inputs from one to the other ends, or lies before that.
    left : float
        The measure there, which is zero but for rounding.
    freedoms : int
        How many motions the closure leaves to first order.
    motion : dict of str to float
        Rates of all joints in the motion that is free while the inputs, or as many outputs as freedoms, stand
        still. The largest is 1, lengths in characteristic ones. Empty where several motions meet.
    direction : dict of str to float
        Of the inputs or outputs, the direction that is lost: the sum of their rates, each times its number,
        is zero whatever moves.
    """

    kind: str
    posture: Any
    between: tuple[tuple[int, ...], ...]
    left: float
    freedoms: int
    motion: dict[str, float]
    direction: dict[str, float]
    _conditions: tuple[str, ...] = field(default=(), compare=False)
    _units: dict[str, str] = field(default_factory=dict, compare=False)
    _where: dict[str, float] = field(default_factory=dict, compare=False)

    def where(self) -> str:
        """The posture, in words: values of the mechanism's coordinates and of the inputs."""
        said = []
        for name, x in self._where.items():
            unit = self._units[name]
            said.append(f"{name} = {x:.5g} {unit}{f' ({np.degrees(x):.2f}°)' if unit == 'rad' else ''}")
        return ", ".join(said)

    def summary(self) -> str:
        """What happens there, in words."""
        moves = self._listed(self.motion, True)
        if self.kind == "inputs":
            return f"inputs: {', '.join(self.direction)} can stand still while others move: {moves}"
        if self.kind == "outputs":
            still = f"; they can stand still while others move: {moves}" if moves else ""
            return f"outputs: nothing moves them along {self._listed(self.direction, False)}{still}"
        return (
            f"closure: conditions of {', '.join(self._conditions)} depend on one another, {self.dof} "
            "freedoms to first order"
        )

    def _listed(self, numbers: dict[str, float], units: bool) -> str:
        """The numbers that count, with names, the many cut short."""
        largest = max(map(abs, numbers.values()), default=0.0)
        counting = sorted(
            (name for name in numbers if abs(numbers[name]) > NAMED * largest),
            key=lambda name: -abs(numbers[name]),
        )
        said = [
            f"{name} {x:.4g}{f' {self._units[name]}' if units and self._units[name] != 'rad' else ''}"
            for name, x in numbers.items()
            if name in counting[:MANY]
        ]
        return ", ".join([*said, *(["…"] if counting[MANY:] else [])])

    def __repr__(self) -> str:
        return f"{self.summary()}{f'; at {self.where()}' if self._where else ''}"


class Singularities:
    """Singular postures found between the members of a batch, and how near all members are to them.

    Made by `Configuration.singularities`. Iterable; the postures are located when first asked for: along the
    straight way between neighbours, in the tangent space of the closed postures. Singular postures of several
    freedoms form lines or surfaces, of which these are points. What touches zero between members without a
    change of sign is found where a member's measure shows it.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Rows that drive the mechanism, and rows of interest.
    measures : dict of str to (...) ndarray
        For "inputs", "outputs" and "closure", as far as there are some, the smallest singular value at every
        member: of the scaled rows on the orthonormal motions that the closure leaves, as in
        `Mechanism.independent_sets`; of the closure's own conditions as a share of the largest. No unit; 0
        where singular, NaN for members without a posture or with a distance of length zero.

    Examples
    --------
    >>> import kic
    >>> import numpy as np
    >>> arm = kic.load("horn-two-link")
    >>> c = arm.at({"shoulder": 0.0, "elbow": np.linspace(-1, 1, 8)})
    >>> print(c.singularities(outputs=["tip.x", "tip.y"])[0])
    outputs: nothing moves them along tip.x 1; they can stand still while others move: ...
    """

    def __init__(
        self,
        model: CompiledModel,
        states: np.ndarray,
        ok: np.ndarray,
        inputs: Any,
        outputs: Any,
        posture: Callable[[np.ndarray], Any],
        aims: BatchTargets | None = None,
    ) -> None:
        self._model, self._posture = model, posture
        self.inputs, self.outputs = _names(model, inputs, outputs)
        spans: dict[str, slice | None] = {"inputs": slice(0, len(self.inputs))}
        if self.outputs:
            spans["outputs"] = slice(len(self.inputs), len(self.inputs) + len(self.outputs))
        if model.dof < model.tree.size:
            spans["closure"] = None
        self._closure = model.closure(self.inputs + self.outputs)
        self._spans = spans
        course = None if aims is None else BranchTargets(model.closure(aims.names, aims.held), aims.values)
        self._search = Search(self._closure, spans, model.dof, states, ok, course)
        self.measures = self._search.measures
        self._refuse_what_is_always_singular()

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self._search.batch

    @property
    def unresolved(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Neighbouring members that could not be joined by closed postures: of different branches, or too
        far apart. Between them nothing was looked for.
        """
        return self._search.untold

    @cached_property
    def configurations(self) -> tuple[Singularity, ...]:
        """The singular postures found between the members given, never claimed to be all.

        Raises
        ------
        InputError
            For one posture, which has no neighbours.
        """
        if not self.batch:
            raise InputError(
                f"Singular postures are looked for between neighbours, and one posture of "
                f"'{self._model.description.name}' has none: ask a batch, made by path() or by at() over a grid. "
                "What this posture itself is worth say its `measures`."
            )
        return tuple(self._told(place) for place in self._search.places)

    def __iter__(self) -> Iterator[Singularity]:
        return iter(self.configurations)

    def __len__(self) -> int:
        return len(self.configurations)

    def __getitem__(self, k: int) -> Singularity:
        return item(self.configurations, k)

    def _told(self, place: Place) -> Singularity:
        """What is free and what is lost at a place."""
        model, tree, freedoms = self._model, self._model.tree, self._model.dof
        here, t = self._search.at(place.state[None]), self._closure.transfer
        G, N, span = here.G[0], here.basis[0], self._spans[place.kind]
        closing = G[t.first :]
        sigma = np.linalg.svd(closing, compute_uv=False) if len(closing) else np.zeros(0)
        now = tree.size - int((sigma > EXACT * sigma.max(initial=0.0)).sum())
        motion: dict[str, float] = {}
        direction: dict[str, float] = {}
        conditions: tuple[str, ...] = ()
        if span is None:
            weak = np.abs(np.linalg.svd(G[here.kept[0]])[0][:, -1])
            owners = [t.owners[k - t.first] for k in here.kept[0][weak > 0.1 * weak.max()]]
            conditions = tuple(f"'{name}'" for name in dict.fromkeys(owners))
        else:
            U, _, V = np.linalg.svd(G[span] @ N)
            normal = U[:, -1] / t.scale[span]
            direction = dict(zip(t.labels[span], _signed(normal / np.linalg.norm(normal)), strict=True))
            if V.shape[0] == U.shape[0]:
                motion = self._motion(place.state, N @ V[-1])
        posture = self._posture(place.state)
        asked = tuple(dict.fromkeys((*model.coordinates, *self.inputs)))
        where = zip(asked, single_values(posture, asked).tolist(), strict=True)
        seen = {name: x for name, x in where if np.isfinite(x)}  # balls in a loop have no values
        units = {name: row_unit(model.description, name) for name in (*motion, *direction, *seen)}
        return Singularity(
            place.kind, posture, place.between, place.left, max(now, freedoms), motion,
            direction, conditions, units, seen,
        )  # fmt: skip

    def _motion(self, state: np.ndarray, rates: np.ndarray) -> dict[str, float]:
        """Rates of all joints from scaled ones (M,) of the tree's coordinates."""
        model = self._model
        joints = tuple(j.name for j in model.description.joints if j.dof)
        t = model.transfer(tuple(n for n in joints if n not in _untied(model)))
        moved = t.values_and_rates(state[None])[1][0, : t.first] @ (rates * t.column_scale)
        largest = np.abs(moved / t.scale[: t.first]).max()
        return dict(zip(t.labels, _signed(moved / largest), strict=True))

    def _refuse_what_is_always_singular(self) -> None:
        """Inputs that drive the mechanism nowhere, and outputs that are bound to one another everywhere."""
        for kind, names in (("inputs", self.inputs), ("outputs", self.outputs)):
            measure = self.measures.get(kind)
            if measure is None or (measure[np.isfinite(measure)] > EXACT).any():
                continue
            here = self._search.at(_about(self._model))
            moved = np.where(np.isfinite(here.G), here.G, 1.0)[:, self._spans[kind]] @ here.basis
            if len(moved) == 1 or (min_singular_value(moved) > EXACT).any():
                continue
            who = self._model.description.name
            if kind == "inputs":
                still = f"{self._model.unconstrained_coordinates(names)} can move. {self._model.undriven_freedom(names)}".rstrip()
                raise InputError(
                    f"Inputs {', '.join(names)} can drive '{who}' at no posture: while they stand still, "
                    f"{still}",
                    coordinates=names,
                )
            dead = [
                n for n, row in zip(names, np.moveaxis(moved, 1, 0), strict=True) if np.abs(row).max() < EXACT
            ]
            if dead:
                raise InputError(
                    f"Output '{dead[0]}' of '{who}' does not move, whatever its joints do. Leave it out.",
                    name=dead[0],
                )
            raise InputError(
                f"Outputs {', '.join(names)} of '{who}' depend on one another at every posture. Leave one "
                "out.",
                names=names,
            )

    def summary(self) -> Summary:
        """Labelled account, to print or to show."""
        who = self._model.description.name
        sheet = Summary(f"{who}: singular postures, found between the members of a batch {self.batch}")
        least = []
        for measure in self.measures.values():
            if not np.isfinite(measure).any():
                continue
            index = np.unravel_index(int(np.nanargmin(measure)), measure.shape) if measure.shape else ()
            where = f" at member {_member(tuple(int(i) for i in index))}" if index else ""
            least.append([f"{np.nanmin(measure):.5g}", where.removeprefix(" at member ") or "–"])
        kinds = [kind for kind, x in self.measures.items() if np.isfinite(x).any()]
        names = {
            "inputs": f"inputs {', '.join(self.inputs)}",
            "outputs": f"outputs {', '.join(self.outputs)}",
        }
        if kinds:
            sheet.texts("least measure", [names.get(k, k) for k in kinds], ["value", "at member"], least)
        if not self.batch:
            return sheet
        if self.unresolved:
            few = "; ".join(f"{_member(a)} and {_member(b)}" for a, b in self.unresolved[:4])
            sheet.say(
                f"not looked at, for no closed postures were found between them: members {few}"
                f"{'; …' if len(self.unresolved) > 4 else ''}"
            )
        if not self.configurations:
            sheet.say("none was found")
        for one in self.configurations:
            where = " and ".join(_member(k) for k in one.between)
            said = f"between {where}" if len(one.between) > 1 else f"at or near {where}"
            if np.isnan(self.measures[one.kind][one.between[-1]]):
                said += ", which has no posture"
            sheet.say(f"\n{said}: {one.summary()}")
            if one.where():
                sheet.say(f"  at {one.where()}")
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def _names(model: CompiledModel, inputs: Any, outputs: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Single rows of the inputs and of the outputs, as many as they may be."""
    who, freedoms = model.description.name, model.dof
    if not freedoms:
        raise InputError(
            f"'{who}' has no freedom; what does not move has no singular postures. "
            f"{model.mobility.doubt()}".rstrip()
        )
    driving = model.coordinates if inputs is None else names_of(inputs, "inputs")
    model.check_number(driving)
    if outputs is None:
        return model.transfer(driving).labels, ()
    wanted = names_of(outputs, "outputs")
    still = [name for name in wanted if name in model.description.fixed_distances]
    if still:
        raise InputError(f"Distance '{still[0]}' of '{who}' is fixed and can be no output.", name=still[0])
    t = model.transfer(wanted)
    labels = t.labels
    if len(labels) > freedoms or not labels:
        raise InputError(
            f"'{who}' has mobility {freedoms}; {len(labels)} outputs were named: "
            f"{', '.join(labels) or 'none'}. More outputs than freedoms always depend on one another; name "
            f"{freedoms} at most.",
            mobility=freedoms,
            count=len(labels),
        )
    return model.transfer(driving).labels, labels


def _about(model: CompiledModel) -> np.ndarray:
    """States (n, S) of the drawing and of closed postures beside it, on ways of no special direction."""
    closure = model.closure(())
    basis = null_space(closure.rows(model.reference_state)[1], model.dof)[0]
    ways = np.random.default_rng(0).normal(size=(3, model.dof)) @ basis.T
    return np.concatenate([model.reference_state, beside(closure, model.reference_state, ways)])


def _untied(model: CompiledModel) -> set[str]:
    """Free joints that are cut and have no coordinate."""
    return {joint.name for joint in model.tree.cuts if joint.type == "free"}


def _signed(numbers: np.ndarray) -> list[float]:
    """Numbers of which the largest is positive."""
    return (numbers * np.sign(numbers[np.argmax(np.abs(numbers))])).tolist()


def _member(index: tuple[int, ...]) -> str:
    return str(index[0]) if len(index) == 1 else str(index)


def singularities(
    configuration: Configuration,
    inputs: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
) -> Singularities:
    """Singular postures between the members of a path or a grid, and how near every member is to one.

    See `Configuration.singularities`.
    """
    if configuration._states.dtype != np.float64:
        raise InputError(
            f"singularities() needs real numbers; this posture holds {configuration._states.dtype}. Ask "
            "outside of a sensitivity, or with real inputs."
        )
    model = configuration._model
    return Singularities(
        model,
        configuration._states,
        configuration.ok,
        inputs,
        outputs,
        lambda state: type(configuration)(model, (), state[None]),
        configuration._aims,
    )
