"""Singular configurations: rank loss of inputs, outputs or closure, and the free or lost motions.

After Gosselin and Angeles (1990), with the closure as a separate kind. At a singularity of the inputs (their
second type) the mechanism can move while the inputs are at rest. At a singularity of the outputs (their first
type) the outputs lose a direction in every motion. At a singularity of the closure its conditions are
dependent, and motions meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kic.analysis.positions.singularity_search import BranchTargets, SingularitySearch, SingularPoint
from kic.description.description import check_variable
from kic.description.units import row_unit
from kic.errors import InputError
from kic.mechanism.configuration import Configuration, flat_states, model_of, single_values
from kic.numerics.arguments import item, names_of
from kic.numerics.display import Printable, Summary
from kic.numerics.linalg import min_singular_value, null_space
from kic.numerics.tolerances import MEASURE_ATOL
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.mobility.finite_mobility import closed_neighbours

# components below this share of the largest are not listed
LISTED_RTOL = 1e-6
# listed components, the largest first
LISTED_COMPONENTS_MAX = 6


@dataclass(frozen=True, repr=False)
class Singularity:
    """One singular configuration, printed as a sentence.

    Attributes
    ----------
    kind : {"inputs", "outputs", "closure"}
        The rows that lose rank.
    configuration : Configuration
        The closed configuration.
    between : tuple of tuple of int
        The two neighbouring members of the batch between which it lies, or the member that is singular or
        near which it was found. If the second has no configuration, the continuation of the inputs towards it
        ends at the singularity or beyond it.
    measure : float
        Measure at the singularity, zero except for round-off.
    dof : int
        Degrees of freedom to first order.
    motion : dict of str to float
        Rates of all joints in the motion that is free while the inputs, or as many outputs as degrees of
        freedom, are at rest. The largest is 1; lengths are in units of the characteristic length. Empty where
        several motions meet.
    direction : dict of str to float
        Coefficients of the lost direction of the inputs or outputs: the sum of coefficients times rates is
        zero in every motion.
    """

    kind: str
    configuration: Any
    between: tuple[tuple[int, ...], ...]
    measure: float
    dof: int
    motion: dict[str, float]
    direction: dict[str, float]
    _conditions: tuple[str, ...] = field(default=(), compare=False)
    _units: dict[str, str] = field(default_factory=dict, compare=False)
    _where: dict[str, float] = field(default_factory=dict, compare=False)

    def where(self) -> str:
        """Return the values of the mechanism's coordinates and of the inputs as text."""
        values = []
        for name, x in self._where.items():
            unit = self._units[name]
            values.append(f"{name} = {x:.5g} {unit}{f' ({np.degrees(x):.2f}°)' if unit == 'rad' else ''}")
        return ", ".join(values)

    def summary(self) -> str:
        """Describe the singularity and its motion."""
        moves = self._listed(self.motion, True)
        if self.kind == "inputs":
            return f"inputs: {', '.join(self.direction)} can be at rest while others move: {moves}"
        if self.kind == "outputs":
            still = f"; they can be at rest while others move: {moves}" if moves else ""
            return f"outputs: no motion along {self._listed(self.direction, False)}{still}"
        return (
            f"closure: conditions of {', '.join(self._conditions)} are dependent, {self.dof} "
            "degrees of freedom to first order"
        )

    def _listed(self, numbers: dict[str, float], units: bool) -> str:
        """Return the largest components with names, at most `LISTED_COMPONENTS_MAX`."""
        largest = max(map(abs, numbers.values()), default=0.0)
        largest_first = sorted(
            (name for name in numbers if abs(numbers[name]) > LISTED_RTOL * largest),
            key=lambda name: -abs(numbers[name]),
        )
        components = [
            f"{name} {x:.4g}{f' {self._units[name]}' if units and self._units[name] != 'rad' else ''}"
            for name, x in numbers.items()
            if name in largest_first[:LISTED_COMPONENTS_MAX]
        ]
        return ", ".join([*components, *(["…"] if largest_first[LISTED_COMPONENTS_MAX:] else [])])

    def __repr__(self) -> str:
        return f"{self.summary()}{f'; at {self.where()}' if self._where else ''}"


class Singularities(Printable):
    """Singular configurations found between the members of a batch, and the measures of all members.

    Made by `Configuration.singularities`. Iterable. The configurations are located on first access, along the
    straight segments between neighbours in the tangent space of the closed configurations. With several
    degrees of freedom, singular configurations form lines or surfaces; the results are points on them. A
    measure that touches zero between members without a change of sign is found only if the measure of a
    member is a local minimum.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Rows that drive the mechanism, and rows of interest.
    measures : dict of str to (...) ndarray
        For "inputs", "outputs" and "closure", where present, the smallest singular value at every member. For
        rows it is that of the scaled rows on the orthonormal motions that the closure allows, as in
        `Mobility.independent_sets`. For the closure it is relative to the largest. Dimensionless; 0 where
        singular, NaN for members without a configuration or with a distance of length zero.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> c = arm.at({"shoulder": 0.0, "elbow": np.linspace(-1, 1, 8)})
    >>> print(c.singularities(of=["tip.x", "tip.y"])[0])
    outputs: no motion along tip.x 1; they can be at rest while others move: ...
    """

    _one_line = ("inputs", "outputs", "batch")

    def __init__(self, configuration: Configuration, inputs: Any, outputs: Any) -> None:
        model, states, targets = model_of(configuration), flat_states(configuration), configuration._aims
        if states.dtype != np.float64:
            message = (
                f"singularities() needs real numbers, got a configuration of {states.dtype}. Call it outside "
                "of a sensitivity, or with real inputs."
            )
            raise InputError(message, key="configuration", got=states.dtype)
        self._model = model
        self.inputs, self.outputs = _input_and_output_rows(model, inputs, outputs)
        spans: dict[str, slice | None] = {"inputs": slice(0, len(self.inputs))}
        if self.outputs:
            spans["outputs"] = slice(len(self.inputs), len(self.inputs) + len(self.outputs))
        if model.dof < model.tree.size:
            spans["closure"] = None
        self._closure = model.closure(self.inputs + self.outputs)
        self._spans = spans
        branches = None
        if targets is not None:
            branches = BranchTargets(model.closure(targets.names, targets.held), targets.values)
        self._search = SingularitySearch(self._closure, spans, model.dof, states, configuration.ok, branches)
        self.measures = self._search.measures
        self._check_regular_somewhere()

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self._search.batch

    @property
    def unresolved(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Neighbouring members on different branches or too far apart; nothing was searched between them."""
        return self._search.unresolved

    @cached_property
    def configurations(self) -> tuple[Singularity, ...]:
        """Singular configurations found between the members; there may be others.

        Raises
        ------
        InputError
            If the batch is a single configuration, because it has no neighbours.
        """
        if not self.batch:
            message = (
                f"Singular configurations of '{self._model.description.name}' are searched for between "
                "neighbours, and a single configuration has none. Use a batch made by path(), or by at() "
                "over a grid, or read `measures`."
            )
            raise InputError(message, key="configuration", got=())
        return tuple(self._describe(point) for point in self._search.points)

    def __iter__(self) -> Iterator[Singularity]:
        return iter(self.configurations)

    def __len__(self) -> int:
        return len(self.configurations)

    def _repr_html_(self) -> str:
        located = "configurations" in vars(self)
        return (self.summary() if located else self._measures_sheet()).html()

    def __getitem__(self, index: int) -> Singularity:
        return item(self.configurations, index)

    def _describe(self, point: SingularPoint) -> Singularity:
        """Return the singularity at a point, with the free motion and the lost direction."""
        model, tree, dof = self._model, self._model.tree, self._model.dof
        tangent_space, t = self._search.tangents_at(point.state[None]), self._closure.transfer
        G, N, span = tangent_space.G[0], tangent_space.basis[0], self._spans[point.kind]
        closing = G[t.size :]
        sigma = np.linalg.svd(closing, compute_uv=False) if len(closing) else np.zeros(0)
        first_order = tree.size - int((sigma > MEASURE_ATOL * sigma.max(initial=0.0)).sum())
        motion: dict[str, float] = {}
        direction: dict[str, float] = {}
        conditions: tuple[str, ...] = ()
        if span is None:
            weak = np.abs(np.linalg.svd(G[tangent_space.kept[0]])[0][:, -1])
            owners = [t.owners[k - t.size] for k in tangent_space.kept[0][weak > 0.1 * weak.max()]]
            conditions = tuple(f"'{name}'" for name in dict.fromkeys(owners))
        else:
            U, _, V = np.linalg.svd(G[span] @ N)
            normal = U[:, -1] / t.scale[span]
            direction = dict(
                zip(t.labels[span], _positive_largest(normal / np.linalg.norm(normal)), strict=True)
            )
            if V.shape[0] == U.shape[0]:
                motion = self._motion(point.state, N @ V[-1])
        configuration = Configuration(model, (), point.state[None])
        names = tuple(dict.fromkeys((*model.coordinates, *self.inputs)))
        numbers = zip(names, single_values(configuration, names).tolist(), strict=True)
        values = {name: x for name, x in numbers if np.isfinite(x)}  # ball joints in a loop have no values
        units = {name: row_unit(model.description, name) for name in (*motion, *direction, *values)}
        return Singularity(
            point.kind, configuration, point.between, point.measure, max(first_order, dof), motion,
            direction, conditions, units, values,
        )  # fmt: skip

    def _motion(self, state: np.ndarray, rates: np.ndarray) -> dict[str, float]:
        """Return the rates of all joints for scaled rates (M,) of the tree's coordinates."""
        model = self._model
        # a free joint that is cut has no coordinate
        free = {joint.name for joint in model.tree.cuts if joint.type == "free"}
        t = model.transfer(tuple(j.name for j in model.description.joints if j.dof and j.name not in free))
        rates_of_rows = t.values_and_rates(state[None])[1][0, : t.size] @ (rates * t.column_scale)
        largest = np.abs(rates_of_rows / t.scale[: t.size]).max()
        return dict(zip(t.labels, _positive_largest(rates_of_rows / largest), strict=True))

    def _check_regular_somewhere(self) -> None:
        """Raise an error if inputs drive the mechanism nowhere, or outputs are dependent everywhere."""
        for kind, names in (("inputs", self.inputs), ("outputs", self.outputs)):
            measure = self.measures.get(kind)
            if measure is None or (measure[np.isfinite(measure)] > MEASURE_ATOL).any():
                continue
            tangent_space = self._search.tangents_at(_generic_states(self._model))
            G = np.where(np.isfinite(tangent_space.G), tangent_space.G, 1.0)[:, self._spans[kind]]
            motions = G @ tangent_space.basis
            if len(motions) == 1 or (min_singular_value(motions) > MEASURE_ATOL).any():
                continue
            name = self._model.description.name
            if kind == "inputs":
                unconstrained = self._model.unconstrained_coordinates(names)
                passive = self._model.transfer(names).undriven_freedom()
                raise InputError(
                    f"Inputs {', '.join(names)} cannot drive '{name}' at any configuration: while they are "
                    f"at rest, {unconstrained} can move. {passive}".rstrip(),
                    coordinates=names,
                )
            constant = [
                n
                for n, row in zip(names, np.moveaxis(motions, 1, 0), strict=True)
                if np.abs(row).max() < MEASURE_ATOL
            ]
            if constant:
                message = f"Output '{constant[0]}' of '{name}' is constant in every motion. Leave it out."
                raise InputError(message, name=constant[0])
            raise InputError(
                f"Outputs {', '.join(names)} of '{name}' are dependent at every configuration. Leave "
                "one out.",
                names=names,
            )

    def _measures_sheet(self) -> Summary:
        """Return a table of the smallest measures, without a search."""
        name = self._model.description.name
        sheet = Summary(f"{name}: singular configurations between the members of a batch {self.batch}")
        smallest = []
        for measure in self.measures.values():
            if not np.isfinite(measure).any():
                continue
            index = np.unravel_index(int(np.nanargmin(measure)), measure.shape) if measure.shape else ()
            where = _member(tuple(int(i) for i in index)) if index else "–"
            smallest.append([f"{np.nanmin(measure):.5g}", where])
        kinds = [kind for kind, x in self.measures.items() if np.isfinite(x).any()]
        names = {
            "inputs": f"inputs {', '.join(self.inputs)}",
            "outputs": f"outputs {', '.join(self.outputs)}",
        }
        if kinds:
            sheet.texts(
                "smallest measure", [names.get(k, k) for k in kinds], ["value", "at member"], smallest
            )
        return sheet

    def summary(self) -> Summary:
        """Return a labelled table of the smallest measures, and descriptions of the singularities."""
        sheet = self._measures_sheet()
        if not self.batch:
            return sheet
        if self.unresolved:
            pairs = "; ".join(f"{_member(a)} and {_member(b)}" for a, b in self.unresolved[:4])
            sheet.say(
                "not searched, because no closed configurations were found between them: members "
                f"{pairs}"
                f"{'; …' if len(self.unresolved) > 4 else ''}"
            )
        if not self.configurations:
            sheet.say("none was found")
        for one in self.configurations:
            where = " and ".join(_member(k) for k in one.between)
            where = f"between {where}" if len(one.between) > 1 else f"at or near {where}"
            if np.isnan(self.measures[one.kind][one.between[-1]]):
                where += ", which has no configuration"
            sheet.say(f"\n{where}: {one.summary()}")
            if one.where():
                sheet.say(f"  at {one.where()}")
        return sheet


def _input_and_output_rows(
    model: CompiledModel, inputs: Any, outputs: Any
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the single rows of the inputs and of the outputs."""
    name, dof = model.description.name, model.dof
    if not dof:
        raise InputError(
            f"'{name}' has mobility 0, and a structure has no singular configurations. "
            f"{model.description.mobility().caveat()}".rstrip(),
            mobility=0,
        )
    driving = model.coordinates if inputs is None else names_of(inputs, "drivers")
    model.check_number(None if inputs is None else driving)
    if outputs is None:
        return model.transfer(driving).labels, ()
    wanted = names_of(outputs, "of")
    check_variable(model.description, wanted, "an output")
    t = model.transfer(wanted)
    labels = t.labels
    if len(labels) > dof or not labels:
        message = (
            f"'{name}' has mobility {dof}; {len(labels)} outputs were named: {', '.join(labels) or 'none'}. "
            f"More outputs than degrees of freedom are always dependent. Name {dof} at most."
        )
        raise InputError(message, mobility=dof, count=len(labels))
    return model.transfer(driving).labels, labels


def _generic_states(model: CompiledModel) -> np.ndarray:
    """Return the reference state and closed states (n, S) near it, in generic directions."""
    closure = model.closure(())
    basis = null_space(closure.rows(model.reference_state)[1], model.dof)[0]
    ways = np.random.default_rng(0).normal(size=(3, model.dof)) @ basis.T
    return np.concatenate([model.reference_state, closed_neighbours(closure, model.reference_state, ways)])


def _positive_largest(numbers: np.ndarray) -> list[float]:
    """Return numbers, all with their signs changed if the largest in magnitude is negative."""
    return (numbers * np.sign(numbers[np.argmax(np.abs(numbers))])).tolist()


def _member(index: tuple[int, ...]) -> str:
    return str(index[0]) if len(index) == 1 else str(index)


def singularities(
    configuration: Configuration,
    *,
    drivers: str | Iterable[str] | None = None,
    of: str | Iterable[str] | None = None,
) -> Singularities:
    """Find singular configurations between the members of a path or grid, and measure every member.

    Parameters
    ----------
    drivers : str or list of str, optional
        Rows that drive the mechanism, as many as its degrees of freedom; by default its coordinates.
    of : str or list of str, optional
        Rows of interest, such as those of a point, at most as many as the degrees of freedom.

    Returns
    -------
    Singularities
        ``measures`` (...) of the kinds "inputs", "outputs" and "closure". Iteration yields the singular
        configurations.

    Raises
    ------
    InputError
        If the number of inputs differs from the degrees of freedom, there are more outputs, the inputs
        drive the mechanism nowhere, or the outputs are fixed or dependent everywhere. Also for a
        mechanism that cannot move, and, on iteration, for one configuration without neighbours.

    Examples
    --------
    >>> turn = kic.load("four-bar").path({"A": 1.2 + np.linspace(0, 2 * np.pi, 60)})
    >>> for one in turn.singularities(drivers="D"):
    ...     print(one.summary())
    inputs: D can be at rest while others move: A 1, B -0.6552, C -0.3448
    inputs: D can be at rest while others move: A -0.7436, B 1, C -0.2564
    """
    model_of(configuration).require_none_held("singularities()")
    return Singularities(configuration, drivers, of)
