"""Simulation: motion in time from efforts, with loops closed anew at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from kic.configuration import Configuration
from kic.errors import InputError, short_repr, unknown
from kic.kinematics.state import phi_of
from kic.mechanism import Mechanism
from kic.numerics.arguments import choice, entries, integer, names_of
from kic.numerics.arrays import as_array, as_numbers, reals
from kic.numerics.progress import Bar
from kic.simulation.contact_monitor import ContactMonitor
from kic.simulation.controllers import Control
from kic.simulation.events import Event, Events, Limit
from kic.simulation.integration import Integration, Settings, Start
from kic.simulation.motion import Effort, Motion
from kic.simulation.result import Simulation
from kic.trajectory.trajectory import Trajectory
from kic.transfer.compiled_model import CompiledModel

METHODS = ("DOP853", "RK45", "RK23", "LSODA", "Radau", "BDF")
# times at which results are wanted where only an end is given
MOMENTS = 1001
# the finest relative tolerance that the integrators take
FINEST = 100 * float(np.finfo(float).eps)
# steps of integrators would underflow in less time
SHORTEST_RUN = 1e-250
# an error as large as the motion itself, a radian or the characteristic length, is no tolerance
LOOSEST = 1.0


def simulate(
    mechanism: Mechanism,
    start: Configuration | Simulation,
    t: Any,
    effort: Effort | Any = None,
    qd: Any = None,
    wrt: str | Iterable[str] | None = None,
    prescribed: Trajectory | Mapping[str, Callable[[float], Any]] | None = None,
    events: Callable[..., float] | Sequence[Callable[..., float]] = (),
    limits: Mapping[str, Any] | None = None,
    voltage: Effort | Any = None,
    current: Any = None,
    method: str = "DOP853",
    rtol: float = 1e-9,
    atol: float = 1e-9,
    max_steps: int = 1_000_000,
    contacts: Literal["stop", "hold"] = "stop",
    on_change_point: Literal["continue", "stop"] = "continue",
    progress: bool | None = None,
) -> Simulation:
    """Motion in time of a mechanism that efforts or motors drive, from a posture and its rates.

    Integrated are independent coordinates alone; everything else follows by closing the loops at each
    evaluation, to machine precision and without stabilisation. Where the coordinates come near a posture in
    which they do not drive the mechanism, others take over; the results stay in the user's.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    start : Configuration or Simulation
        One posture; or an earlier run, which is then continued from its end, and comes back as one.
    t : (T,) array_like
        Increasing times at which results are wanted, the first being that of the start; or the end alone,
        for 1001 times from 0 (from the end of the earlier run).
    effort : callable or (M,) array_like, optional
        ``effort(t, now)`` gives the efforts (M,) at the coordinates; ``now.q``, ``now.qd`` (M,) are their
        values and rates, ``now.state`` (S,) is the closed state, as evaluators and controllers take it. Or a
        controller of `kic.controllers` that gives efforts at them, or constant ones. None: it moves freely.
    qd : (M,) array_like, optional
        Rates at the start; at rest, or as prescribed, if left out. Not with an earlier run.
    wrt : str or list of str, optional
        The user's coordinates, in which efforts, rates and results are; by default the mechanism's own.
    prescribed : Trajectory or dict of str to callable, optional
        Coordinates whose motion is given: a trajectory of `kic.trajectory`; or by name, ``f(t)`` returns
        value, rate and acceleration, which must be each other's slopes, or is a trajectory of one. They begin
        where the start is, and stay where others of the coordinates are taken. The effort that they take is
        in the results, in place of what `effort` says there. A trajectory goes on beyond its ends only if it
        rests there. Angles of joints that close a loop are slow to integrate.
    events : callable or list of them, optional
        ``event(t, now)``, a real number whose zeros are found, those that it only touches too. Attributes as
        in SciPy: ``terminal`` (True stops the run there), ``direction`` (+1 or -1: only where it rises, or
        falls). A zero at the start does not count, so that a run goes on from where one stopped it.
    limits : dict of str to (lower, upper), optional
        Coordinates at whose limits the run stops; at once, if it starts at one and goes beyond it.
    voltage : callable or (K,) array_like, optional
        ``voltage(t, now)`` gives the voltages (K,) of the motors in the order of the drawing, and the torques
        of those that are plain sources; ``now.current`` (K,) are their currents. Or a
        controller of `kic.controllers` that gives voltages, or constant ones. Rotors,
        damping and circuits count then, and efforts come on top. None: the bodies move alone, without motors.
    current : (K,) array_like, optional
        Currents at the start, 0 if left out; those that a motion begins with are
        ``start.drive(qd, qdd, qddd).current``. Those of motors without inductance are not looked at: they
        follow the voltage. Not with an earlier run.
    method : str
        Integrator of SciPy: "DOP853", "RK45", "RK23" (explicit Runge-Kutta), "LSODA" (the multistep Adams
        family, which goes over to BDF where the motion is stiff), "Radau", "BDF" (stiff).
    rtol, atol : float
        Tolerances of the integrator; of lengths, `atol` is a share of the mechanism's characteristic length.
    max_steps : int
        A run that takes more is stopped.
    contacts : {"stop", "hold"}
        What becomes of a run in which a closed contact would have to pull, or needs more friction than it
        has: it stops at that moment, and ``stopped`` says which contact; or contacts hold whatever comes.
        Where loads are open, it is enough that some are possible.
    on_change_point : {"continue", "stop"}
        Continue through change points, or stop there. At a change point branches of the loop closure meet,
        such as where all links of a parallelogram are in line. A run continues on the branch on which all
        joints move smoothly. The times are ``change_points`` of the run.
    progress : bool, optional
        Whether a bar is shown on stderr; by default where that is a terminal and the run is long.

    Returns
    -------
    Simulation
        Times, coordinates, rates, accelerations, efforts and states as arrays, with the energy account; of
        motors currents, voltages and torques. A run that was interrupted (Ctrl-C) keeps what it had, to
        the last good state, and says so in ``stopped``.

    Raises
    ------
    InputError
        For arguments of another shape or kind, a start that is not closed, or voltages where there are no
        motors, or such with dry friction.
    SimulationError
        For a run that can not go on: efforts, voltages or events that are no numbers, prescribed motions that
        contradict themselves, steps that shrink to nothing, loops that are singular or come apart.

    Notes
    -----
    A circuit is quick: where L/R is far below what the motion takes, "Radau" and "LSODA" make longer steps;
    or leave the inductance out, ``replace(motor, inductance=0.0)``, and the current follows at once.

    Once it is under way, every error carries the run so far as ``simulation``, its last good state at the end
    even if that was none of the times wanted: also those that the user's functions raise, which come through
    as they are. It can be saved, and continued. What functions write into ``now`` changes nothing of the run.

    Examples
    --------
    >>> import kic
    >>> m = kic.load("four-bar")
    >>> run = kic.simulate(m, m.at(), 2.0)
    >>> bool(abs(run.energy.residual).max() < 1e-7)
    True

    A motor at the crank, switched on:

    >>> from dataclasses import replace
    >>> circuit = {"resistance": 0.5, "inductance": 1e-3, "torque_constant": 0.02}
    >>> driven = replace(m, motors=[kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, **circuit)])
    >>> run = kic.simulate(driven, driven.at(), 0.2, voltage=[6.0])
    >>> run.current.shape, bool(run.energy.electrical[-1] > run.energy.heat[-1])
    ((1001, 1), True)
    """
    if not isinstance(mechanism, Mechanism):
        raise InputError(f"Expected `mechanism` to be a Mechanism, got {short_repr(mechanism)}.")
    model = mechanism._model
    names = model.coordinates if wrt is None else model.transfer(names_of(wrt, "wrt")).labels
    model.check_number(None if wrt is None else names)
    _check_integrable(model, names)
    if not isinstance(progress, bool | np.bool_ | None):
        raise InputError(f"`progress` must be True, False or None, got {short_repr(progress)}.")
    before = start if isinstance(start, Simulation) else None
    led = _prescribed(prescribed, model, names)
    motors = tuple(motor.name for motor in model.description.motors)
    motion = Motion(
        model, names, _inputs("effort", effort, names, names), led, _inputs("voltage", voltage, motors, names)
    )
    times = _times(t, before)
    begun = _begun(mechanism, start, qd, names)
    rates = motion.begun(float(times[0]), begun.q, None if qd is None and before is None else begun.qd)
    run = Integration(
        mechanism,
        motion,
        times,
        replace(begun, qd=rates, current=_currents(current, motion, before)),
        Events([*_events(events), *_limits(limits, model, names)]),
        _settings(method, rtol, atol, max_steps, on_change_point),
        Bar(progress),
        _watch(contacts, model, names),
    )
    return run.go(before)


def _settings(method: Any, rtol: Any, atol: Any, max_steps: Any, on_change_point: Any) -> Settings:
    """How to integrate, checked."""
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"Expected `method` to be one of {', '.join(METHODS)}, got {short_repr(method)}.")
    # work and energy begin at zero, where only `atol` counts
    for name, value, lowest, highest in (
        ("rtol", rtol, FINEST, LOOSEST),
        ("atol", atol, float(np.finfo(float).tiny), np.inf),
    ):
        a = reals(value)
        if a is None or a.ndim or not lowest <= a < highest:
            raise InputError(
                f"`{name}` must be a number from {lowest:.2g} to below {highest:g}, got {short_repr(value)}. "
                "Give 1e-9, or 1e-4 for a rough run.",
                name=name,
            )
    stop = choice("on_change_point", on_change_point, ("continue", "stop")) == "stop"
    return Settings(method, float(rtol), float(atol), integer("max_steps", max_steps, 1), stop)


def _watch(contacts: Any, model: CompiledModel, names: tuple[str, ...]) -> ContactMonitor | None:
    """The watch over contacts, where there are some that may come off or slip."""
    if contacts not in ("stop", "hold") or not isinstance(contacts, str):
        raise InputError(f"Expected `contacts` to be 'stop' or 'hold', got {short_repr(contacts)}.")
    some = any(contact.type != "pinned" for contact in model.description.closed_contacts)
    return ContactMonitor(model, names) if some and contacts == "stop" else None


def _check_integrable(model: CompiledModel, names: tuple[str, ...]) -> None:
    """Refuse coordinates without values, but for those of balls that an open chain has of its own."""
    bare = [name for name in names if not model.value_rows(name)[1]]
    if bare and not (model.is_open_chain and names == model.coordinates):
        own = f" The mechanism's own serve: {', '.join(model.coordinates)}." if model.is_open_chain else ""
        raise InputError(
            f"{', '.join(bare)} of '{model.description.name}' have rates but no values, so that a run can not be "
            f"told in them. Take coordinates `wrt` that have values.{own}",
            names=tuple(bare),
        )


def _begun(mechanism: Mechanism, start: Any, qd: Any, names: tuple[str, ...]) -> Start:
    """The start, closed."""
    model = mechanism._model
    if isinstance(start, Simulation):
        if start.mechanism != mechanism or start.coordinates != names:
            raise InputError("A run is continued with its own mechanism and coordinates.")
        if qd is not None:
            raise InputError(
                "`qd` was given with an earlier run, which ends with rates of its own. Leave it out."
            )
        return Start(start.state[-1], start.q[-1], start.qd[-1], start.tree_rates[-1])
    if not isinstance(start, Configuration) or start._model.description != mechanism:
        raise InputError(f"Expected `start` to be a posture of '{mechanism.name}', got {short_repr(start)}.")
    if start.batch or not start.ok.all():
        got = f"a batch {start.batch}" if start.batch else "one that failed"
        raise InputError(f"Expected `start` to be one posture, got {got}.")
    if start.state.dtype != np.float64:
        raise InputError(f"A simulation needs real numbers; the start holds {start.state.dtype}.")
    model.closure(names).check(start.state[None])
    rates = np.zeros(len(names)) if qd is None else as_array("qd", qd, len(names), finite=False)
    if rates.dtype != object and not np.isfinite(rates).all():
        as_array("qd", qd, len(names))  # raises; huge rates end the run instead
    if rates.ndim != 1 or rates.dtype != np.float64:
        raise InputError(f"Expected `qd` to be {len(names)} real numbers, got {short_repr(qd)}.")
    direct = model.is_open_chain and names == model.coordinates
    q = phi_of(model.tree, start.state[None]) if direct else model.values(names, start.state[None])
    return Start(start.state, q[0], rates)


def _times(t: Any, before: Simulation | None) -> np.ndarray:
    """Increasing times (T,), the first that of the start."""
    begin = 0.0 if before is None else float(before.t[-1])
    a = reals(t)
    if a is not None and a.ndim == 0 and a > begin + SHORTEST_RUN:
        return np.linspace(begin, float(a), MOMENTS)
    if a is None or a.ndim != 1 or len(a) < 2 or (np.diff(a) <= 0).any():
        raise InputError(
            f"Expected `t` to be increasing times, two at least, or an end after {begin:g}; got {short_repr(t)}."
        )
    if a[-1] - a[0] < SHORTEST_RUN:
        raise InputError(f"`t` must span {SHORTEST_RUN:g} at least, got {short_repr(t)}. Take a longer time.")
    if before is not None and a[0] != begin:
        raise InputError(f"The earlier run ends at t = {begin:.17g}, but `t` begins at {a[0]:.17g}.")
    return a


def _inputs(what: str, given: Any, names: tuple[str, ...], coordinates: tuple[str, ...]) -> Effort | None:
    """Efforts or voltages as a function of (t, now), or None where there are none."""
    if isinstance(given, Control):
        given.check(f"{what}s", coordinates)
    if given is None or callable(given):
        return given
    a = reals(given)
    if a is None or a.shape != (len(names),):
        raise InputError(
            f"Expected `{what}` to be a function of (t, now) or {len(names)} finite numbers, one for each "
            f"of {', '.join(names) or 'no motors'}; got {short_repr(given)}."
        )
    return lambda t, now: a


def _currents(current: Any, motion: Motion, before: Simulation | None) -> np.ndarray:
    """Currents (n,) at the start, of the motors with inductance."""
    train = motion.train
    if before is not None and bool(before.motors) != (train is not None):
        raise InputError(
            "The earlier run was driven by voltages. Give `voltage`: 0 of all motors lets them brake."
            if train is None
            else "The earlier run had no voltages, so that its motors did not count. Go on without "
            "`voltage`, or start anew at run.at(run.t[-1]) with qd=run.qd[-1]."
        )
    if current is not None and (train is None or before is not None):
        why = (
            "without `voltage`, so that there are no circuits"
            if train is None
            else ("with an earlier run, which ends with currents of its own")
        )
        raise InputError(f"`current` was given {why}. Leave it out.")
    if train is None:
        return np.zeros(0)
    if before is not None:
        return np.asarray(before.current[-1][train.slow])
    a = as_numbers(np.zeros(len(train.names)) if current is None else current)
    if (
        a is None
        or a.dtype != np.float64
        or a.shape != (len(train.names),)
        or not np.isfinite(a[train.slow]).all()
    ):
        raise InputError(
            f"Expected `current` to be {len(train.names)} numbers, one for each of {', '.join(train.names)}, "
            f"finite where there is inductance; got {short_repr(current)}."
        )
    return a[train.slow]


def _prescribed(given: Any, model: CompiledModel, names: tuple[str, ...]) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, Trajectory):
        given = given.sampled(names)
    if not isinstance(given, Mapping) or not all(map(callable, given.values())):
        raise InputError(
            "Expected `prescribed` to be a dict of coordinate to function of t, or a Trajectory, got "
            f"{short_repr(given)}."
        )
    for name in given:
        _check_valued("prescribed", name, model, names)
    return dict(given)


def _check_valued(what: str, name: Any, model: CompiledModel, names: tuple[str, ...]) -> None:
    """Refuse what is no coordinate of the motion, or one that has no value."""
    if name not in names:
        raise unknown("coordinate", name, "the motion", names)
    if not model.value_rows(name)[1]:
        raise InputError(
            f"'{name}' has a rate but no value, so that there is none for `{what}`. Take coordinates that "
            "have values.",
            name=name,
        )


def _events(events: Any) -> list[Event]:
    several = [events] if callable(events) else entries(events)
    if not all(map(callable, several)):
        raise InputError(f"Expected `events` to be functions of (t, now), got {short_repr(events)}.")
    return several


def _limits(limits: Any, model: CompiledModel, names: tuple[str, ...]) -> list[Event]:
    """Limits of coordinates as events that stop the run; infinite ones are none."""
    if limits is not None and not isinstance(limits, Mapping):
        raise InputError(
            f"Expected `limits` to be a dict of coordinate to (lower, upper), got {short_repr(limits)}."
        )
    stops: list[Event] = []
    for name, pair in (limits or {}).items():
        _check_valued("limits", name, model, names)
        a = as_numbers(pair)
        if a is None or a.dtype != np.float64 or a.shape != (2,) or not a[0] < a[1]:
            raise InputError(f"Expected `limits` of '{name}' to be (lower, upper), got {short_repr(pair)}.")
        k = names.index(name)
        stops += [Limit(name, k, float(x), way) for x, way in zip(a, (-1, 1), strict=True) if np.isfinite(x)]
    return stops
