"""The `simulate` function: check the arguments, build the motion, and run the integration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from kic.configuration import Configuration
from kic.errors import InputError, invalid, short_repr, unknown
from kic.mechanism import Mechanism
from kic.numerics.arguments import choice, entries, instance, integer, names_of
from kic.numerics.arrays import as_array, as_numbers, reals
from kic.numerics.progress import Bar
from kic.numerics.tolerances import EPS
from kic.simulation.contact_monitor import ContactMonitor
from kic.simulation.controllers import Control
from kic.simulation.events import Event, Events, Limit
from kic.simulation.integration import Integration, Settings, Start
from kic.simulation.motion import Effort, Motion, Snapshot
from kic.simulation.result import Simulation
from kic.trajectory.trajectory import Trajectory
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import SWING, Limits, MotionLimits

METHODS = ("DOP853", "RK45", "RK23", "LSODA", "Radau", "BDF")
# number of samples if only an end time is given
SAMPLES_DEFAULT = 1001
# smallest and largest relative tolerance: the integrators' own limit, and an error as large as the motion
RTOL_MIN, RTOL_MAX = 100 * EPS, 1.0
# duration below which steps of the integrators underflow
DURATION_MIN = 1e-250


def simulate(
    mechanism: Mechanism,
    start: Configuration | Simulation | None = None,
    t: Any = None,
    effort: Effort | Any = None,
    qd: Any = None,
    wrt: str | Iterable[str] | None = None,
    prescribed: Trajectory | Mapping[str, Callable[[float], Any]] | None = None,
    events: Callable[..., float] | Sequence[Callable[..., float]] = (),
    limits: Limits = None,
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
    """Simulate the motion of a mechanism under efforts, voltages or prescribed motions.

    Only independent coordinates are integrated. The loops are closed at each evaluation, to machine precision
    and without stabilization. Where the coordinates cease to drive the mechanism, others replace them; the
    results stay in the user's coordinates.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    start : Configuration or Simulation, optional
        One configuration, by default the reference configuration; or an earlier run, which is continued from
        its end and returned with its continuation. It may be left out: ``simulate(mechanism, 2.0)``.
    t : (T,) array_like
        Increasing times at which results are recorded, the first being the time of the start; or the end time
        alone, for 1001 times from 0 (from the end of the earlier run).
    effort : callable or (M,) array_like, optional
        ``effort(t, now)`` returns the efforts (M,) at the coordinates; ``now.q``, ``now.qd`` (M,) are their
        values and rates, ``now.state`` (S,) is the closed state that evaluators and controllers take. Or a
        controller of `kic.controllers` that gives efforts at them, or constant efforts. None: no efforts.
        A number serves if there is one coordinate; this holds for all array arguments.
    qd : (M,) array_like, optional
        Rates at the start. By default zero, or the prescribed rates. Not with an earlier run.
    wrt : str or list of str, optional
        The user's coordinates for efforts, rates and results; by default the mechanism's own. The three
        angular velocities of a joint, body or frame may be among them, such as those of a free base. Their
        orientation is integrated as a unit quaternion. Their values in the results and in `now` are a
        rotation vector, which is at most π long and reverses there; their efforts are moments.
    prescribed : Trajectory or dict of str to callable, optional
        Coordinates with a given motion: a trajectory of `kic.trajectory`; or by name, where ``f(t)`` returns
        value, rate and acceleration, or is a trajectory of one coordinate. Rates and accelerations must be
        the derivatives of the values. The motion must begin at the start. Prescribed coordinates remain when
        other coordinates are replaced. The results contain the effort of the prescribed motion, in place of
        `effort`. A trajectory continues beyond its ends only if it rests there. Prescribed angles of joints
        that close a loop are slow to integrate.
    events : callable or list of them, optional
        ``event(t, now)`` returns a real number whose zeros are found, including those that it only touches.
        Attributes as in SciPy: ``terminal`` (True stops the run there), ``direction`` (+1 or -1: only where
        it rises or falls). A zero at the start does not count, so a run can continue from where an event
        stopped it.
    limits : bool or dict of str to (lower, upper), optional
        True for the limits of the description, or those of some rows and swings, as in `Mechanism.at`. The
        run stops at a limit; at once if it starts there and moves beyond it.
    voltage : callable or (K,) array_like, optional
        ``voltage(t, now)`` returns the voltages (K,) of the motors in the order of the description, and
        torques for plain sources of torque; ``now.current`` (K,) are their currents. Or a controller of
        `kic.controllers` that gives voltages, or constant voltages. Rotors, damping and circuits are then
        included, and efforts are added. None: the motors are left out.
    current : (K,) array_like, optional
        Currents at the start, 0 by default; ``start.drive(qd, qdd, qddd).current`` gives the currents of a
        known motion. Entries of motors without inductance are ignored: these follow the voltage. Not with an
        earlier run.
    method : str
        Integrator of SciPy: "DOP853", "RK45", "RK23" (explicit Runge-Kutta), "LSODA" (Adams, switches to BDF
        where the motion is stiff), "Radau", "BDF" (stiff).
    rtol, atol : float
        Tolerances of the integrator. For lengths, `atol` is a share of the mechanism's characteristic length.
    max_steps : int
        Largest number of steps.
    contacts : {"stop", "hold"}
        "stop" ends the run at the time when a closed contact would have to pull or exceed its friction limit;
        ``stopped`` then names the contact. "hold" keeps all contacts closed. Where the loads are not unique,
        the run continues if some admissible loads exist.
    on_change_point : {"continue", "stop"}
        Continue through change points, or stop there. At a change point branches of the loop closure meet,
        for example where all links of a parallelogram are in line. A run continues on the branch on which all
        joints move smoothly. The times are ``change_points`` of the run.
    progress : bool, optional
        Show a progress bar on stderr; by default if stderr is a terminal and the run is long.

    Returns
    -------
    Simulation
        Times, coordinates, rates, accelerations, efforts and states as arrays, with the energy balance; for
        motors currents, voltages and torques. A run interrupted by Ctrl-C keeps its results up to the last
        good state, and ``stopped`` states the interruption.

    Raises
    ------
    InputError
        For arguments of wrong shape or type, a start that is not closed, or voltages of a mechanism without
        motors or with dry friction in its motors.
    SimulationError
        If the run cannot continue: efforts, voltages or events that are not finite, inconsistent prescribed
        motions, steps that become too small, or loops that are singular or cannot close.

    Notes
    -----
    Circuits are fast. If L/R is far below the time scale of the motion, "Radau" and "LSODA" take longer
    steps. Alternatively remove the inductance, ``replace(motor, inductance=0.0)``, so that the current
    follows at once.

    A run in coordinates of an orientation, angular velocities or Euler angles, does not pass change points.

    Every error during the run carries the run so far as ``simulation``, with its last good state at the end.
    This includes exceptions of the user's functions, which propagate unchanged. The partial run can be saved
    and continued. Changes that functions make to ``now`` have no effect on the run.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> run = kic.simulate(m, m.at(), 2.0)
    >>> bool(abs(run.energy.residual).max() < 1e-7)
    True

    Switch on a motor at the crank:

    >>> from dataclasses import replace
    >>> circuit = {"resistance": 0.5, "inductance": 1e-3, "torque_constant": 0.02}
    >>> driven = replace(m, motors=[kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, **circuit)])
    >>> run = kic.simulate(driven, driven.at(), 0.2, voltage=[6.0])
    >>> run.current.shape, bool(run.energy.electrical[-1] > run.energy.heat[-1])
    ((1001, 1), True)
    """
    instance("mechanism", mechanism, Mechanism)
    if t is None and not isinstance(start, Configuration | Simulation):
        start, t = None, start
    start = mechanism.at() if start is None else start
    model = mechanism._model
    names = model.coordinates if wrt is None else model.transfer(names_of(wrt, "wrt")).labels
    model.check_number(None if wrt is None else names)
    if not isinstance(progress, bool | np.bool_ | None):
        raise invalid("progress", "must be True, False or None", progress)
    before = start if isinstance(start, Simulation) else None
    prescriptions = _prescribed(prescribed, model, names)
    motors = tuple(motor.name for motor in model.description.motors)
    motion = Motion(
        model,
        names,
        _inputs("effort", effort, names, names),
        prescriptions,
        _inputs("voltage", voltage, motors, names),
    )
    times = _times(t, before)
    initial = _initial(mechanism, start, qd, names)
    rates = motion.start_rates(
        float(times[0]), initial.q, None if qd is None and before is None else initial.qd
    )
    run = Integration(
        mechanism,
        motion,
        times,
        replace(initial, qd=rates, current=_currents(current, motion, before)),
        Events([*_events(events), *_limits(limits, model, names)]),
        _settings(method, rtol, atol, max_steps, on_change_point),
        Bar(progress),
        _monitor(contacts, model, names),
    )
    return run.run(before)


def _settings(method: Any, rtol: Any, atol: Any, max_steps: Any, on_change_point: Any) -> Settings:
    """Return the checked settings of the integrator."""
    choice("method", method, METHODS)
    # energies start at zero, where only `atol` applies
    for name, value, lowest, highest in (
        ("rtol", rtol, RTOL_MIN, RTOL_MAX),
        ("atol", atol, float(np.finfo(float).tiny), np.inf),
    ):
        a = reals(value)
        if a is None or a.ndim or not lowest <= a < highest:
            raise invalid(
                name,
                f"must be a number from {lowest:.2g} to below {highest:g}",
                value,
                "Give 1e-9, or 1e-4 for a rough run.",
            )
    stop = choice("on_change_point", on_change_point, ("continue", "stop")) == "stop"
    return Settings(method, float(rtol), float(atol), integer("max_steps", max_steps, 1), stop)


def _monitor(contacts: Any, model: CompiledModel, names: tuple[str, ...]) -> ContactMonitor | None:
    """Return a monitor of contacts, or None if no contact can open or slip."""
    choice("contacts", contacts, ("stop", "hold"))
    some = any(contact.type != "pinned" for contact in model.description.closed_contacts)
    return ContactMonitor(model, names) if some and contacts == "stop" else None


def _initial(mechanism: Mechanism, start: Any, qd: Any, names: tuple[str, ...]) -> Start:
    """Return the closed start with its values and rates."""
    model = mechanism._model
    if isinstance(start, Simulation):
        if start.mechanism != mechanism or start.coordinates != names:
            raise InputError("`start` must be a run of the same mechanism and coordinates.", key="start")
        if qd is not None:
            raise InputError(
                "`qd` cannot be given with an earlier run, which has its own final rates. Omit it.", key="qd"
            )
        return Start(start.state[-1], start.q[-1], start.qd[-1], start.tree_rates[-1])
    if not isinstance(start, Configuration) or start._model.description != mechanism:
        raise invalid("start", f"must be a configuration of '{mechanism.name}'", start)
    if start.batch or not start.ok.all():
        got = f"a batch {start.batch}" if start.batch else "one that failed"
        raise InputError(f"`start` must be one configuration, got {got}.", key="start", got=start.batch)
    if start.state.dtype != np.float64:
        raise InputError(
            f"`start` must hold real numbers, got {start.state.dtype}.", key="start", got=start.state.dtype
        )
    model.closure(names).check(start.state[None])
    rates = np.zeros(len(names)) if qd is None else as_array("qd", qd, len(names), finite=False)
    if rates.dtype != object and not np.isfinite(rates).all():
        as_array("qd", qd, len(names))  # raises InputError; rates that overflow end the run instead
    if rates.ndim != 1 or rates.dtype != np.float64:
        raise invalid("qd", f"must be {len(names)} real numbers", qd)
    return Start(start.state, model.coordinate_values(names, start.state[None])[0], rates)


def _times(t: Any, before: Simulation | None) -> np.ndarray:
    """Return increasing times (T,), the first being that of the start."""
    begin = 0.0 if before is None else float(before.t[-1])
    a = reals(t)
    if a is not None and a.ndim == 0 and a > begin + DURATION_MIN:
        return np.linspace(begin, float(a), SAMPLES_DEFAULT)
    if a is None or a.ndim != 1 or len(a) < 2 or (np.diff(a) <= 0).any():
        raise InputError(
            f"`t` must be at least two increasing times, or an end time greater than {begin:g}, got "
            f"{short_repr(t)}.",
            key="t",
            got=t,
        )
    if a[-1] - a[0] < DURATION_MIN:
        raise invalid("t", f"must span at least {DURATION_MIN:g}", t, "Use a longer time.")
    if before is not None and a[0] != begin:
        raise InputError(
            f"The earlier run ends at t = {begin:.17g}, but `t` begins at {a[0]:.17g}.", key="t", got=a[0]
        )
    return a


def _inputs(
    what: str, given: Any, names: tuple[str, ...], coordinates: tuple[str, ...]
) -> Effort | np.ndarray | None:
    """Return efforts or voltages, which are a function of (t, now), checked constants, or None."""
    if isinstance(given, Control):
        given.check(f"{what}s", coordinates)
    if given is None:
        return None
    if callable(given):
        function: Effort = given
        return function
    a = reals(given)
    a = None if a is None else np.atleast_1d(a)
    if a is None or a.shape != (len(names),):
        raise InputError(
            f"`{what}` must be a function of (t, now) or {len(names)} finite numbers, one for each "
            f"of {', '.join(names) or 'no motors'}; got {short_repr(given)}.",
            key=what,
            got=given,
        )
    return a


def _currents(current: Any, motion: Motion, before: Simulation | None) -> np.ndarray:
    """Return currents (n,) at the start, of the motors with inductance."""
    train = motion.train
    if before is not None and bool(before.motors) != (train is not None):
        raise InputError(
            "The earlier run was driven by voltages. Give `voltage`; 0 lets the motors brake."
            if train is None
            else "The earlier run had no voltages and left the motors out. Continue without "
            "`voltage`, or start a new run at run.at(run.t[-1]) with qd=run.qd[-1].",
            key="voltage",
        )
    if current is not None and (train is None or before is not None):
        why = (
            "requires `voltage`"
            if train is None
            else "cannot be given with an earlier run, which has its own final currents. Omit it"
        )
        raise InputError(f"`current` {why}.", key="current")
    if train is None:
        return np.zeros(0)
    if before is not None:
        return np.asarray(before.current[-1][train.is_inductive])
    a = as_numbers(np.zeros(len(train.names)) if current is None else current)
    if (
        a is None
        or a.dtype != np.float64
        or a.shape != (len(train.names),)
        or not np.isfinite(a[train.is_inductive]).all()
    ):
        raise InputError(
            f"`current` must be {len(train.names)} numbers, one for each of {', '.join(train.names)}, "
            f"finite for motors with inductance; got {short_repr(current)}.",
            key="current",
            got=current,
        )
    return a[train.is_inductive]


def _prescribed(given: Any, model: CompiledModel, names: tuple[str, ...]) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, Trajectory):
        given = given.sampled(names)
    if not isinstance(given, Mapping) or not all(map(callable, given.values())):
        raise invalid("prescribed", "must be a dict of coordinate to function of t, or a Trajectory", given)
    for name in given:
        _check_valued("prescribed", name, model, names)
    return dict(given)


def _check_valued(what: str, name: Any, model: CompiledModel, names: tuple[str, ...]) -> None:
    """Raise an error for a name that is no coordinate of the motion, or has no value."""
    if name not in names:
        raise unknown("coordinate", name, "the motion", names)
    if not model.value_rows(name)[1]:
        raise InputError(
            f"'{name}' has a rate but no value, which `{what}` needs. Use coordinates that have values.",
            name=name,
        )


def _events(events: Any) -> list[Event]:
    several = [events] if callable(events) else entries(events)
    if not all(map(callable, several)):
        raise invalid("events", "must be functions of (t, now)", events)
    return several


def _limits(limits: Limits, model: CompiledModel, names: tuple[str, ...]) -> list[Event]:
    """Return limits as events that stop the run; infinite limits are left out."""
    stops: list[Event] = []
    for name, (lower, upper) in MotionLimits(model, limits).bounds.items():
        one = MotionLimits(model, {name: (lower, upper)})

        k = names.index(name) if name in names else -1

        def read(now: Snapshot, one: MotionLimits = one, k: int = k) -> float:
            # angles among the coordinates count full turns
            return float(one.values(now.state[None])[0, 0] if k < 0 else now.q[k])

        sides = ((lower, -1), (upper, 1)) if not name.endswith(f".{SWING}") else ((upper, 1),)
        stops += [Limit(name, read, bound, sign) for bound, sign in sides if np.isfinite(bound)]
    return stops
