"""Sweep: any scalar of a mechanism over a grid of inputs or of the task space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from kic.analysis.assemblies import limits_of
from kic.configuration import Configuration
from kic.errors import InputError, short_repr, unknown
from kic.kinematics.state import only_coordinates
from kic.mechanism import Mechanism
from kic.numerics.arguments import entries, integer
from kic.numerics.progress import Bar
from kic.position import initial_states
from kic.sweeps.executor import ParallelMap
from kic.sweeps.grid import Grid, make_grid
from kic.sweeps.grid_continuation import GridContinuation
from kic.sweeps.metrics import BY_NAME, MAKERS, Metric, value
from kic.sweeps.problem import CellResult, SweepProblem, answer_cells, lead_cells
from kic.sweeps.result import Sweep

CHUNK = 1024
# cells that an interrupt or an error left
UNASKED = "not asked: the sweep ended before"
# what a function without a name of its own is called
UNNAMED = "answer"


def sweep(
    mechanism: Mechanism,
    grid: Mapping[str, Any],
    answer: Any,
    *,
    near: Configuration | None = None,
    limits: Mapping[str, Any] | None = None,
    executor: Any = None,
    chunk: int | None = None,
    progress: bool | None = None,
    units: Mapping[str, str] | None = None,
) -> Sweep:
    """Ask a mechanism over a grid of inputs or of the task space.

    An open chain in its own coordinates takes any. Otherwise cells are closed one from another: from the
    start the nearest cell that can be, and from each cell its neighbours, as `Mechanism.at` leads
    configurations. So a map is of one assembly, that of the start, as far as it goes without stepping over a
    dead centre; beyond, cells are not reached and say why. (Where ways around a hole in the grid lead to
    different assemblies, there is a seam between them.) The result depends on the grid and the start alone,
    not on who does the work or in what chunks.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    grid : dict of str to array_like
        Inputs as `Mechanism.at` takes them, as many as freedoms: joints or rows, lists of growing values for
        axes, and single values for what stays.
    answer : callable, str, or dict or list of them
        Functions of a `Configuration` whose batch are n configurations, that return n numbers (or several, in
        a dict of names); those of `kic.metrics`; names of rows with a value ("tip.x"), or "transmission",
        "min_singular_value", "static_effort" for those of `kic.metrics` without arguments. A dict gives names
        of its own.
    near : Configuration, optional
        One configuration, the start of the branch; by default the drawing. Open chains in their own
        coordinates need none.
    limits : dict of str to (lower, upper), optional
        Limits of joint coordinates; cells beyond them are not reached, nor gone through.
    executor : concurrent.futures.Executor, optional
        Who works: a `ThreadPoolExecutor`, a `ProcessPoolExecutor`, Dask's ``client.get_executor()``, an
        `MPIPoolExecutor`. Processes must find what they are asked: a function of an installed module, one of
        `kic.metrics`, or a name. By default this process does it all.
    chunk : int, optional
        How many cells are asked at once, 1024 by default.
    progress : bool, optional
        Whether a bar is shown on stderr; by default where that is a terminal and it takes long.
    units : dict of str to str, optional
        Units of answers of your own, for labels.

    Returns
    -------
    Sweep
        Values, `reached` and `reasons` over the grid; ``plot()``. A sweep that was interrupted (Ctrl-C)
        keeps what it had, and says so in ``stopped``.

    Raises
    ------
    InputError, UnknownNameError
        For a grid that is none, names that are not there, another number of inputs than freedoms, answers
        of another shape, or such as other processes cannot find; a start that is a batch or of another
        mechanism.
    ConfigurationError
        If no cell can be reached from the start.

    Notes
    -----
    Configurations where an answer is refused (`SingularError` and its like) are NaN with their reason. Any
    other error ends the sweep and carries what there is so far as ``sweep``.

    Examples
    --------
    >>> import kic
    >>> import numpy as np
    >>> arm = kic.load("horn-two-link")
    >>> turn = np.linspace(-3, 3, 7)
    >>> s = kic.sweep(arm, {"shoulder": 0.0, "elbow": turn}, kic.metrics.manipulability("tip.x", "tip.y"))
    >>> bool(np.allclose(s["manipulability"], np.abs(np.sin(turn))))
    True
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"`mechanism` must be a Mechanism, got {short_repr(mechanism)}.")
    model = mechanism._model
    model.require_real("sweep()", "Sweep the mechanism with plain numbers.")
    cells = make_grid(grid)
    answers = _answers(answer)
    size = _chunk(chunk)
    _, batch = initial_states(model, near)
    if batch:
        first = ", ".join("0" for _ in batch)
        raise InputError(f"`near` must be one configuration, got a batch {batch}. Take one: near[{first}].")
    if units is not None and not isinstance(units, Mapping):
        raise InputError(f"`units` must be a dict of answers to units, got {short_repr(units)}.")
    if executor is not None and not isinstance(executor, Executor):
        raise InputError(
            f"`executor` must be a concurrent.futures.Executor, got {short_repr(executor)}. Of Dask it is "
            "client.get_executor()."
        )
    targets = model.targets(cells.inputs())
    spread = GridContinuation(model, cells, targets, limits_of(model, limits))
    # a fresh drawing goes out, without all that this one remembers
    desk = SweepProblem(replace(mechanism), targets.names, targets.held, answers)
    if executor is None:
        desk = replace(desk, mechanism=mechanism)
    job = _Job(spread, ParallelMap(desk, executor, size), Bar(progress))
    told = {**{n: a.unit(mechanism) for n, a in answers.items() if isinstance(a, Metric)}, **(units or {})}

    def made(stopped: str = "") -> Sweep:
        return job.made(mechanism, cells, list(answers), told, stopped)

    try:
        job.go(near, model.is_open_chain and only_coordinates(mechanism, grid), mechanism, cells)
    except KeyboardInterrupt:
        if not spread.ok.any():
            raise
        return made(f"interrupted, {int(job.asked.sum())} of {cells.size} cells were asked")
    except Exception as error:
        with suppress(AttributeError, TypeError):  # an error that takes no attributes
            error.sweep = made(str(error))  # type: ignore[attr-defined]
        raise
    finally:
        job.bar.close()
    found = made()
    for name in units or {}:
        if name not in found.values:
            wrong = unknown("answer", name, "the sweep", found.values)
            wrong.sweep = found  # type: ignore[attr-defined]
            raise wrong
    return found


class _Job:
    """A sweep under way."""

    def __init__(self, spread: GridContinuation, crew: ParallelMap, bar: Bar) -> None:
        self.spread, self.crew, self.bar = spread, crew, bar
        self.asked = np.zeros(len(spread.reasons), dtype=bool)
        self.parts: list[tuple[np.ndarray, CellResult]] = []

    def go(self, near: Configuration | None, direct: bool, mechanism: Mechanism, cells: Grid) -> None:
        """Close the cells, then ask them."""
        if direct:
            self.spread.set(mechanism.at(cells.inputs()).state)
        else:
            self.spread.go(near, self._lead, lambda share: self.bar.show(share / 2))
        reached = np.flatnonzero(self.spread.ok)
        pieces = [reached[piece] for piece in self.crew.chunks(len(reached))]
        jobs = [(self.spread.states[piece],) for piece in pieces]
        begun = 0.0 if direct else 0.5
        for k, answered in self.crew.work(answer_cells, jobs):
            self.parts.append((pieces[k], answered))
            self.asked[pieces[k]] = True
            self.bar.show(begun + (1 - begun) * self.asked.sum() / max(len(reached), 1))

    def _lead(self, start: np.ndarray, target: np.ndarray, step: bool) -> tuple[np.ndarray, list[str]]:
        """Configurations led by the crew."""
        pieces = self.crew.chunks(len(start))
        states, reasons = np.full(start.shape, np.nan), [""] * len(start)
        for k, (some, why) in self.crew.work(lead_cells, [(start[p], target[p], step) for p in pieces]):
            states[pieces[k]], reasons[pieces[k]] = some, why
        return states, reasons

    def made(
        self, mechanism: Mechanism, cells: Grid, names: list[str], units: dict[str, str], stopped: str
    ) -> Sweep:
        """What there is so far."""
        found: dict[tuple[str, str], np.ndarray] = {}
        sides: dict[tuple[str, str], np.ndarray] = {}
        reasons = np.array(self.spread.reasons, dtype=object)
        reached = self.spread.ok
        for at, answered in self.parts:
            for some, whole in ((answered.values, found), (answered.sides, sides)):
                for key, part in some.items():
                    if key not in whole:
                        whole[key] = np.full((cells.size, *part.shape[1:]), np.nan)
                    whole[key][at] = part
            reasons[at] = answered.reasons
        values: dict[str, np.ndarray] = {}
        for question in names:
            own = {key: a for (asked, key), a in found.items() if asked == question}
            values |= own or {question: np.full(cells.size, np.nan)}
        for name, a in values.items():
            empty = np.isnan(a).reshape(cells.size, -1).any(axis=1) & self.asked & (reasons == "")
            reasons[empty] = f"'{name}' has no value there"
        reasons[reached & ~self.asked] = UNASKED
        reasons[~reached & (reasons == "")] = UNASKED
        shape = cells.shape
        return Sweep(
            mechanism,
            cells.axes,
            cells.fixed,
            self.spread.states,
            {key: a.reshape(*shape, *a.shape[1:]) for key, a in values.items()},
            {key: unit for key, unit in units.items() if key in values},
            reasons.reshape(shape),
            {key: a.reshape(shape) for key, a in sides.items()},
            stopped,
        )


def _answers(answer: Any) -> dict[str, Callable[..., Any]]:
    """Functions by name, from what a user gives."""
    if isinstance(answer, Mapping):
        found = {str(name): _question(one) for name, one in answer.items()}
    else:
        several = [answer] if isinstance(answer, str) or callable(answer) else entries(answer)
        found = {}
        for one in several:
            question = _question(one)
            name = question.name if isinstance(question, Metric) else getattr(question, "__name__", UNNAMED)
            name = UNNAMED if name == "<lambda>" else name
            if name in found:
                raise InputError(f"Two answers of the sweep are called '{name}'. Name them in a dict.")
            found[name] = question
    if not found:
        raise InputError("`answer` must have at least one metric, got none.")
    return found


def _question(one: Any) -> Callable[..., Any]:
    if isinstance(one, str):
        return BY_NAME[one]() if one in BY_NAME else value(one)
    if any(one is maker for maker in MAKERS):
        raise InputError(f"kic.metrics.{one.__name__} makes an answer: call it, with what it asks about.")
    if not callable(one):
        raise InputError(
            "`answer` must be a function of a Configuration, one of kic.metrics, or a name; got "
            f"{short_repr(one)}."
        )
    return one


def _chunk(chunk: Any) -> int:
    if chunk is None:
        return CHUNK
    return integer("chunk", chunk, 1)
