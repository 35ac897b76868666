"""`Mechanism.sweep`: checks of the arguments, closure of the cells, and evaluation of the metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.analysis.sweeps.executor import ParallelMap
from kic.analysis.sweeps.grid import Grid, make_grid
from kic.analysis.sweeps.grid_continuation import GridContinuation
from kic.analysis.sweeps.metrics import BY_NAME, MAKERS, Metric, value
from kic.analysis.sweeps.problem import CellResult, SweepProblem
from kic.analysis.sweeps.result import Sweep
from kic.description.parts import COM
from kic.description.validation import part_of
from kic.errors import InputError, KicError, invalid, short_repr, unknown
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.inputs import only_coordinates, position_problem
from kic.mechanism.mechanism import Mechanism
from kic.mechanism.position import initial_states
from kic.numerics.arguments import entries, integer, is_function, mapping
from kic.numerics.progress import Bar
from kic.transfer.continuation import SOUGHT_MAX
from kic.transfer.limits import Limits, MotionLimits

# default largest number of cells in a job, and smallest numbers if there are many workers: of cells that are
# closed in several steps, and of others, so that a job takes longer than sending it
CHUNK, STEPS_LEAST, LEAST = 1024, 16, 256
# note on errors of other libraries
_NOTE = "The attribute `sweep` of this error has the results so far."
# reason for cells that an interrupt or an error left
NOT_EVALUATED = "not evaluated: the sweep ended before"
# name of the values of a function without a name
UNNAMED = "metric"


def sweep(
    mechanism: Mechanism,
    grid: Mapping[str, Any],
    of: Any,
    *,
    near: Configuration | None = None,
    limits: Limits = None,
    executor: Any = None,
    chunk: int | None = None,
    progress: bool | None = None,
    units: Mapping[str, str] | None = None,
) -> Sweep:
    """Evaluate metrics over a grid of inputs or task coordinates.

    An open chain in its own coordinates reaches all cells. Otherwise each cell is closed from a
    neighbour, beginning with the cell nearest to the start that can be reached, by the continuation of
    `Mechanism.at`. The map therefore shows one assembly, that of the start, up to dead centres. Cells
    beyond are not reached and have a reason. If paths around a hole in the grid lead to different
    assemblies, the map has a seam between them. The result depends on the grid and the start alone, not
    on the executor or the chunks.

    Parameters
    ----------
    grid : dict of str to array_like
        Inputs of `Mechanism.at`, as many as degrees of freedom: joints or rows, lists of monotonic values
        for axes, and single values for fixed inputs. The orientation of a body is given by its Euler
        angles, such as "platform.euler_xyz.1", "platform.euler_xyz.2" and "platform.euler_xyz.3".
    of : callable, str, or dict or list of them
        Metrics: functions of a `Configuration` with a batch of n members that return n numbers, or a dict
        of several by name; metrics of `kic.metrics`; names of rows with a value ("tip.x"); or
        "transmission", "min_singular_value", "static_effort" for those of `kic.metrics` without
        arguments. The keys of a dict name the metrics; a metric with the name of an axis must equal it.
    near : Configuration, optional
        One configuration, the start of the branch; by default the reference configuration. Open chains in
        their own coordinates need no start.
    limits : bool or dict of str to (lower, upper), optional
        True for the limits of the description, or those of rows, as in `Mechanism.at`; cells beyond them
        are not reached, nor passed through.
    executor : concurrent.futures.Executor, optional
        A `ThreadPoolExecutor`, a `ProcessPoolExecutor`, Dask's ``client.get_executor()``, an
        `MPIPoolExecutor`. Processes must be able to import the metrics: functions of an installed module,
        metrics of `kic.metrics`, or names. If cloudpickle is installed, as with Dask, lambdas and
        functions of the session are sent too. By default the sweep runs serially in this process.
    chunk : int, optional
        Largest number of cells in a job, 1024 by default.
    progress : bool, optional
        Show a progress bar on stderr; by default if stderr is a terminal and the sweep is long.
    units : dict of str to str, optional
        Units of your own metrics, for labels.

    Returns
    -------
    Sweep
        Values, `reached` and `reasons` over the grid; ``plot()``. A sweep interrupted by Ctrl-C keeps its
        results, and ``stopped`` states the interruption.

    Raises
    ------
    InputError, UnknownNameError
        If the grid is invalid, a name is unknown, the number of inputs differs from the degrees of
        freedom, metrics have another shape or cannot be imported by other processes, or the start is a
        batch or belongs to another mechanism.
    ConfigurationError
        If no cell can be reached from the start.

    Notes
    -----
    Configurations where a metric raises `SingularError` or a similar member error are NaN with their
    reason. Any other error ends the sweep and carries the results so far as ``sweep``.

    Examples
    --------
    >>> arm = kic.load("horn-two-link")
    >>> turn = np.linspace(-3, 3, 7)
    >>> s = arm.sweep({"shoulder": 0.0, "elbow": turn}, kic.metrics.manipulability("tip.x", "tip.y"))
    >>> bool(np.allclose(s["manipulability"], np.abs(np.sin(turn))))
    True
    >>> arm.sweep({"shoulder": 0.0, "elbow": turn}, "static_effort")["static_effort"].shape
    (7,)
    """
    model = model_of(mechanism)
    model.require_real("sweep()", "Sweep the mechanism with plain numbers.")
    cells = make_grid(grid)
    metrics = _metrics(of, model.parts)
    size = CHUNK if chunk is None else integer("chunk", chunk, 1)
    _, batch = initial_states(model, near)
    if batch:
        first = ", ".join("0" for _ in batch)
        raise InputError(
            f"`near` must be one configuration, got a batch {batch}. Use one member: near[{first}].",
            key="near",
            got=batch,
        )
    units = mapping("units", {} if units is None else units, "metrics to units")
    if executor is not None and not isinstance(executor, Executor):
        raise invalid(
            "executor",
            "must be a concurrent.futures.Executor",
            executor,
            "For Dask, use client.get_executor().",
        )
    targets, _ = position_problem(model, cells.inputs())
    continuation = GridContinuation(model, cells, targets, MotionLimits(model, limits))
    problem = SweepProblem(mechanism, targets.names, targets.held, tuple(cells.axes), metrics)
    known = {name: one.unit(mechanism) for name, one in metrics.items() if isinstance(one, Metric)}
    workers = ParallelMap(problem, executor, size)
    job = _Job(mechanism, cells, metrics, {**known, **units}, continuation, workers, Bar(progress))
    try:
        job.run(near, model.is_open_chain and only_coordinates(mechanism, grid))
    except KeyboardInterrupt:
        if not continuation.ok.any():
            raise
        return job.result(f"interrupted, {int(job.evaluated.sum())} of {cells.size} cells were evaluated")
    except Exception as error:
        with suppress(AttributeError, TypeError):  # some exceptions accept no attributes
            error.sweep = job.result(str(error))  # type: ignore[attr-defined]
            if not isinstance(error, KicError) and _NOTE not in getattr(error, "__notes__", ()):
                error.add_note(_NOTE)
        raise
    finally:
        job.bar.close()
    result = job.result()
    for name in units:
        if name not in result.values:
            wrong = unknown("metric", name, "the sweep", result.values, quoted=False)
            wrong.sweep = result  # type: ignore[attr-defined]
            raise wrong
    return result


@dataclass
class _Job:
    """Sweep in progress."""

    mechanism: Mechanism
    grid: Grid
    metrics: dict[str, Callable[..., Any]]
    units: Mapping[str, str]
    cells: GridContinuation
    workers: ParallelMap
    bar: Bar

    def __post_init__(self) -> None:
        self.evaluated = np.zeros(self.grid.size, dtype=bool)
        self.parts: list[tuple[np.ndarray, CellResult]] = []

    def run(self, near: Configuration | None, direct: bool) -> None:
        """Close the cells, then evaluate the metrics."""
        if direct:
            self.cells.set(self.mechanism.at(self.grid.inputs()).state)
        else:
            self.cells.run(near, self._continue, lambda share: self.bar.show(share / 2))
        reached = np.flatnonzero(self.cells.ok)
        pieces = [reached[piece] for piece in self.workers.chunks(len(reached), LEAST)]
        jobs = [(self.cells.states[piece],) for piece in pieces]
        closed_share = 0.0 if direct else 0.5
        for k, computed in self.workers.run(SweepProblem.evaluate, jobs):
            self.parts.append((pieces[k], computed))
            self.evaluated[pieces[k]] = True
            share = np.count_nonzero(self.evaluated) / max(len(reached), 1)
            self.bar.show(closed_share + (1 - closed_share) * share)

    def _continue(self, start: np.ndarray, target: np.ndarray, step: bool) -> tuple[np.ndarray, list[str]]:
        """Close cells on the executor."""
        pieces = self.workers.chunks(len(start), LEAST if step else STEPS_LEAST)
        sought_max = SOUGHT_MAX if len(start) <= SOUGHT_MAX else 0
        jobs = [(start[p], target[p], step, sought_max) for p in pieces]
        states, reasons = np.full(start.shape, np.nan), [""] * len(start)
        for k, (some, why) in self.workers.run(SweepProblem.continue_cells, jobs):
            states[pieces[k]], reasons[pieces[k]] = some, why
        return states, reasons

    def result(self, stopped: str = "") -> Sweep:
        """Return the results so far."""
        found: dict[tuple[str, str], np.ndarray] = {}
        sides: dict[tuple[str, str], np.ndarray] = {}
        reasons, shape = self.cells.reasons.copy(), self.grid.shape
        for at, computed in self.parts:
            for some, whole in ((computed.values, found), (computed.sides, sides)):
                for key, part in some.items():
                    if key not in whole:
                        whole[key] = np.full((self.grid.size, *part.shape[1:]), np.nan)
                    whole[key][at] = part
            reasons[at] = computed.reasons
        values: dict[str, np.ndarray] = {}
        for name in self.metrics:
            own = {key: a for (metric, key), a in found.items() if metric == name}
            values |= own or {name: np.full(self.grid.size, np.nan)}
        for name, a in values.items():
            empty = np.isnan(a).reshape(self.grid.size, -1).any(axis=1) & self.evaluated & (reasons == "")
            reasons[empty] = f"'{name}' has no value there"
        reached = self.cells.ok
        reasons[reached & ~self.evaluated] = NOT_EVALUATED
        reasons[~reached & (reasons == "")] = NOT_EVALUATED
        made = {name: one for name, one in self.metrics.items() if isinstance(one, Metric)}
        typed = [one.typed for one in made.values()]
        return Sweep(
            self.mechanism,
            self.grid.axes,
            self.grid.fixed,
            self.cells.states,
            {key: a.reshape(*shape, *a.shape[1:]) for key, a in values.items()},
            {key: unit for key, unit in self.units.items() if key in values},
            reasons.reshape(shape),
            {key: a.reshape(shape) for key, a in sides.items()},
            stopped,
            {one.typed: name for name, one in made.items() if typed.count(one.typed) == 1},
        )


def _metrics(metric: Any, parts: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return metrics by name from the user's argument for a mechanism with parts of these names."""
    if isinstance(metric, Mapping):
        found = {str(name): _as_metric(one, parts) for name, one in metric.items()}
    else:
        several = [metric] if isinstance(metric, str) or is_function(metric) else entries(metric)
        found = {}
        for one in several:
            function = _as_metric(one, parts)
            name = function.name if isinstance(function, Metric) else getattr(function, "__name__", UNNAMED)
            name = UNNAMED if name == "<lambda>" else name
            if name in found:
                raise InputError(
                    f"The name '{name}' is used by two metrics. Name them in a dict.", key="of", name=name
                )
            found[name] = function
    if not found:
        raise InputError("`of` must have at least one entry, got none.", key="of")
    return found


def _as_metric(one: Any, parts: Mapping[str, Any]) -> Callable[..., Any]:
    name = one if isinstance(one, str) else None
    if name in BY_NAME:
        return BY_NAME[name]()
    for maker in MAKERS:
        if getattr(one, "__wrapped__", one) is maker or (name == maker.__name__ and name not in parts):
            raise InputError(
                f"kic.metrics.{maker.__name__} is called with rows. Give kic.metrics.{maker.__name__}(rows).",
                key="of",
                name=maker.__name__,
            )
    if name is not None:
        if (whole := part_of(name)) not in parts and whole != COM:
            raise unknown(
                "metric or part", name, "kic.metrics and the mechanism", [*BY_NAME, *parts], quoted=False
            )
        return value(name)
    if not is_function(one):
        raise InputError(
            "`of` must be a function of a Configuration, one of kic.metrics, or a name; got "
            f"{short_repr(one)}.",
            key="of",
            got=one,
        )
    return one
