"""Implementation of `Mechanism.simulate`: checks of arguments, motion and integration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kic.description.description import closed_contacts
from kic.errors import InputError, batch_indices, counted, invalid, short_repr, unknown
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import check_parameters, choice, entries, is_function, names_of
from kic.numerics.arrays import as_array, as_numbers, reals
from kic.numerics.progress import Bar
from kic.simulation.contact_monitor import ContactMonitor
from kic.simulation.controllers import Control, Sampled
from kic.simulation.events import Event, Events, Limit
from kic.simulation.integration import Integration, Start
from kic.simulation.motion import Effort, Motion, Snapshot
from kic.simulation.options import METHODS, Integrator, Method, Voltage
from kic.simulation.result import Simulation
from kic.simulation.sampling import sampler
from kic.trajectory.trajectory import Trajectory
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import SWING, Limits, MotionLimits

# number of samples if only an end time is given
SAMPLES_DEFAULT = 1001
# duration below which steps of the integrators underflow
DURATION_MIN = 1e-250


def simulate(
    mechanism: Mechanism,
    t: Any,
    *,
    effort: Effort | Any = None,
    actuators: str | Iterable[str] | None = None,
    controller: Sampled | None = None,
    near: Configuration | Simulation | None = None,
    qd: Any = None,
    wrt: str | Iterable[str] | None = None,
    prescribed: Trajectory | Mapping[str, Callable[[float], Any]] | None = None,
    events: Callable[..., float] | Sequence[Callable[..., float]] = (),
    limits: Limits = None,
    voltage: Voltage | Effort | Any = None,
    integrator: Method | Integrator = "DOP853",
) -> Simulation:
    """Simulate the motion under efforts, voltages or prescribed motions.

    Only independent coordinates are integrated. The loops are closed at each evaluation, to machine
    precision and without stabilization. Where the coordinates cease to drive the mechanism, others
    replace them; the results stay in the user's coordinates.

    Parameters
    ----------
    t : (T,) array_like
        Increasing times at which results are recorded, the first being the time of the start; or the end
        time alone, for 1001 times from 0 (from the end of the earlier run), or the times of the samples
        of a controller.
    effort : callable or (M,) array_like, optional
        ``effort(t, now)`` returns the efforts (M,) at the coordinates; ``now.q``, ``now.qd`` (M,) are
        their values and rates, ``now.state`` (S,) is the closed state that evaluators and controllers
        take. Or a controller of `kic.controllers` that gives efforts at them, or constant efforts. None:
        no efforts. A scalar is accepted for one coordinate; this holds for all array arguments. A dict
        gives a function or a number to each actuator by name, ``{"A": f, "L2": 3.0}``.
    actuators : str or list of str, optional
        Rows where efforts act, such as ``m.actuators``: joints, distances, or rows of points and bodies,
        in any number; by default the coordinates. The efforts T at them act on the coordinates as GᵀT,
        with their Jacobian G.
    controller : controllers.Sampled, optional
        Sampled controller, whose efforts are held between samples and added to `effort`. With `voltage`
        it may give voltages. It has options: measured rows, delay, noise, quantization and limits.
    near : Configuration or Simulation, optional
        Start: one configuration, by default the reference configuration; or an earlier run, which is
        continued from its end and returned with its continuation.
    qd : (M,) array_like, optional
        Rates at the start. By default zero, or the prescribed rates. Not with an earlier run.
    wrt : str or list of str, optional
        The user's coordinates for efforts, rates and results; by default the mechanism's own. The three
        angular velocities of a joint, body or frame may be among them, such as those of a free base.
        Their orientation is integrated as a unit quaternion. Their values in the results and in `now` are
        a rotation vector, which is at most π long and reverses there; their efforts are moments.
    prescribed : Trajectory or dict of str to callable, optional
        Coordinates with a given motion: a trajectory of `kic.trajectory`; or by name, where ``f(t)``
        returns value, rate and acceleration, or is a trajectory of one coordinate. Rates and
        accelerations must be the derivatives of the values. The motion must begin at the start.
        Prescribed coordinates remain when other coordinates are replaced. The results contain the effort
        of the prescribed motion, in place of `effort`. A trajectory continues beyond its ends only if it
        rests there. Prescribed angles of joints that close a loop are slow to integrate.
    events : callable or list of them, optional
        ``event(t, now)`` returns a real number whose zeros are found, including those that it only
        touches. Attributes as in SciPy: ``terminal`` (True stops the run there), ``direction`` (+1 or -1:
        only where it rises or falls). A zero at the start does not count, so a run can continue from
        where an event stopped it.
    limits : bool or dict of str to (lower, upper), optional
        True for the limits of the description, or those of rows and swings, as in `Mechanism.at`. The run
        stops at a limit; at once if it starts there and moves beyond it.
    voltage : callable, (K,) array_like or Voltage, optional
        ``voltage(t, now)`` returns the voltages (K,) of the motors in the order of the description, and
        torques for plain sources of torque; ``now.current`` (K,) are their currents. Or a controller of
        `kic.controllers` that gives voltages, or constant voltages; or a `Voltage`, which has currents at
        the start. Rotors, damping and circuits are then included, and efforts are added. None: the motors
        are ignored.
    integrator : str or Integrator
        Method of integration, such as "DOP853", or "Radau" for stiff motions; an `Integrator` has
        tolerances, too, and states whether to stop at contacts that open and at change points.

    Returns
    -------
    Simulation
        Times, coordinates, rates, accelerations, efforts and states as arrays, with the energy balance;
        for motors currents, voltages and torques. A run interrupted by Ctrl-C keeps its results up to the
        last good state, and ``stopped`` states the interruption.

    Raises
    ------
    InputError
        If an argument has a wrong shape or type, the start is not closed, or voltages are given without
        motors or with dry friction in motors.
    SimulationError
        If the run cannot continue: efforts, voltages or events that are not finite, inconsistent
        prescribed motions, steps that become too small, or loops that are singular or cannot close.

    Notes
    -----
    Circuits are fast. If L/R is far below the time scale of the motion, "Radau" and "LSODA" take longer
    steps. Alternatively remove the inductance, ``m.replace("M", inductance=0.0)``, so that the current
    follows at once.

    A run in coordinates of an orientation, angular velocities or Euler angles, does not pass change
    points.

    Every error during the run carries the run so far as ``simulation``, with its last good state at the
    end. This includes exceptions of the user's functions, which propagate unchanged. The partial run can
    be saved and continued. Changes that functions make to ``now`` have no effect on the run.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> run = m.simulate(2.0)
    >>> bool(abs(run.energy.residual).max() < 1e-7)
    True

    Switch on a motor at the crank:

    >>> circuit = {"resistance": 0.5, "inductance": 1e-3, "torque_constant": 0.02}
    >>> driven = m.add(kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, **circuit))
    >>> run = driven.simulate(0.2, voltage=[6.0])
    >>> run.current.shape, bool(run.energy.electrical[-1] > run.energy.heat[-1])
    ((1001, 1), True)

    Sample a controller of two motors every millisecond, with a delay and limited torques:

    >>> law = lambda t, now: [-now.qd[0], 0.5]
    >>> sampled = kic.controllers.Sampled(law, 1e-3, delay=2e-4, effort_limits={"A": 2.0})
    >>> run = m.simulate(0.1, controller=sampled, actuators=["A", "D"])
    >>> run.control.effort.shape, run.actuator_power.shape
    ((100, 2), (101, 2))
    """
    start = mechanism.at() if near is None else near
    model = model_of(mechanism)
    model.require_none_held("A motion")
    names = model.coordinates if wrt is None else model.transfer(names_of(wrt, "wrt")).labels
    model.check_number(None if wrt is None else names)
    integrator = _integrator(integrator)
    for key, value, kinds, place in (
        ("effort", effort, Sampled, "controller"),
        ("voltage", voltage, Sampled, "controller"),
        ("effort", effort, Voltage, "voltage"),
    ):
        if isinstance(value, kinds):
            shown = type(value).__name__
            rule, remedy = f"must not be a {shown}", f"Pass it as `{place}`."
            raise invalid(key, rule, value, remedy, shown=shown)
    if not isinstance(controller, Sampled | None):
        remedy = "Write `kic.controllers.Sampled(controller, time)`, or pass a continuous one as `effort`."
        raise invalid("controller", "must be a `controllers.Sampled`", controller, remedy)
    current = None
    if isinstance(voltage, Voltage):
        voltage, current = voltage.value, voltage.current
    before = start if isinstance(start, Simulation) else None
    prescriptions = _prescribed(prescribed, model, names)
    motors = tuple(motor.name for motor in model.description.motors)
    acting = _actuators(effort, actuators, model)
    if before is not None and before.actuators != (acting or names):
        raise InputError(
            f"The earlier run has the actuators {', '.join(before.actuators)}. Give the same `actuators`.",
            key="actuators",
            got=acting,
        )
    motion = Motion(
        model,
        names,
        _inputs("effort", _by_name(effort), acting or names, names, model.description.actuators),
        prescriptions,
        _inputs("voltage", voltage, motors, names),
        acting,
    )
    times = _times(t, before)
    earlier = None if before is None else before.control
    sampled = None if controller is None else sampler(controller, motion, times, earlier)
    if sampled is not None and np.ndim(t) == 0:
        times = np.unique([times[0], *sampled.instants, times[-1]])
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
        integrator,
        Bar(integrator.progress),
        _monitor(model, motion) if integrator.contacts == "stop" else None,
        sampled,
    )
    return run.run(before)


def _integrator(given: Method | Integrator) -> Integrator:
    """Return settings of an integrator from a method or from settings."""
    if isinstance(given, Integrator):
        return given
    if not isinstance(given, str):
        rule, remedy = "must be a method or a kic.Integrator", 'Give "DOP853" or `kic.Integrator(rtol=…)`.'
        raise invalid("integrator", rule, given, remedy)
    choice("integrator", given, METHODS)
    return Integrator(given)


def _monitor(model: CompiledModel, motion: Motion) -> ContactMonitor | None:
    """Return a monitor of contacts, or None if no contact can open or slip."""
    prescribed = () if motion.acts_at_coordinates else tuple(motion.names[k] for k in motion.held)
    some = any(contact.type != "pinned" for contact in closed_contacts(model.description))
    return ContactMonitor(model, (*motion.actuators, *prescribed)) if some else None


def _actuators(effort: Any, given: Any, model: CompiledModel) -> tuple[str, ...] | None:
    """Return the rows where efforts act, from `actuators` or the keys of `effort`; None if not given."""
    if isinstance(effort, Mapping):
        if given is not None:
            raise InputError("`actuators` cannot be given with efforts by name. Omit it.", key="actuators")
        if any(isinstance(x, Control) for x in effort.values()):
            message = "A controller returns all efforts. Give it as `effort` itself, with `actuators`."
            raise InputError(message, key="effort")
        given = list(effort)
    if given is None:
        return None
    key = "effort" if isinstance(effort, Mapping) else "actuators"
    return model.actuators(names_of(given, key, 1), hold_all=False)


def _by_name(effort: Any) -> Any:
    """Return efforts by name as one function, or as constants."""
    if not isinstance(effort, Mapping):
        return effort
    if not any(map(is_function, effort.values())):
        return list(effort.values())

    for x in effort.values():
        if is_function(x):
            check_parameters("effort", x, "t", "now")

    def of_all(t: float, now: Snapshot) -> list[Any]:
        return [x(t, now) if is_function(x) else x for x in effort.values()]

    return of_all


def _initial(mechanism: Mechanism, start: Any, qd: Any, names: tuple[str, ...]) -> Start:
    """Return the closed initial state with the values and rates of the coordinates."""
    model = model_of(mechanism)
    if not names:
        raise InputError(
            f"'{mechanism.name}' has mobility 0, so nothing moves. Request its `joint_forces` instead.",
            mobility=0,
        )
    if isinstance(start, Simulation):
        if start.mechanism != mechanism or start.coordinates != names:
            message = (
                f"`near` must be a run of '{mechanism.name}' in the coordinates {', '.join(names)}, got one "
                f"of '{start.mechanism.name}' in {', '.join(start.coordinates)}. Give both the same `wrt`."
            )
            raise InputError(message, key="near", got=start.coordinates, expected=names)
        if qd is not None:
            raise InputError(
                "`qd` cannot be given with an earlier run, which has its own final rates. Omit it.", key="qd"
            )
        return Start(start.state[-1], start.q[-1], start.qd[-1], start.tree_rates[-1])
    if not isinstance(start, Configuration) or model_of(start).description != mechanism:
        remedy = "Write near=m.at(…), or give an earlier run."
        raise invalid("near", f"must be a configuration of '{mechanism.name}'", start, remedy)
    if start.batch or not start.ok.all():
        got, remedy = "one without a solution", "Give a configuration that is `ok`."
        if start.batch:
            got, remedy = f"a batch {start.batch}", "Select a member by its index."
        message = f"`near` must be one solved configuration, got {got}. {remedy}"
        raise InputError(message, key="near", got=start.batch)
    if start.state.dtype != np.float64:
        raise InputError(
            f"`near` must hold real numbers, got {start.state.dtype}.", key="near", got=start.state.dtype
        )
    with batch_indices(range(1), ()):
        model.closure(names).check(start.state[None], key="near")
    rates = np.zeros(len(names)) if qd is None else as_array("qd", qd, len(names), finite=False)
    if rates.dtype != object and not np.isfinite(rates).all():
        as_array("qd", qd, len(names))  # raises InputError; rates that overflow end the run instead
    if rates.ndim != 1 or rates.dtype != np.float64:
        raise invalid("qd", f"must be {counted(len(names), 'real number')}", qd)
    return Start(start.state, model.coordinate_values(names, start.state[None])[0], rates)


def _times(t: Any, before: Simulation | None) -> np.ndarray:
    """Return increasing times (T,) that begin at the start of the run."""
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
    what: str,
    given: Any,
    names: tuple[str, ...],
    coordinates: tuple[str, ...],
    actuators: tuple[str, ...] = (),
) -> Effort | np.ndarray | None:
    """Return efforts or voltages: a function of (t, now), checked constants, or None."""
    if isinstance(given, Control):
        given.check(f"{what}s", coordinates, names if what == "effort" else None)
    if given is None:
        return None
    if is_function(given):
        check_parameters(what, given, "t", "now")
        function: Effort = given
        return function
    a = reals(given)
    a = None if a is None else np.atleast_1d(a)
    if a is None or a.shape != (len(names),):
        fits = a is not None and names == coordinates and a.shape == (len(actuators),)
        raise InputError(
            f"`{what}` must be a function of (t, now) or {counted(len(names), 'finite number')}, one for "
            f"each of {', '.join(names) or 'no motors'}, got {short_repr(given)}."
            + (" For efforts of the declared actuators add actuators=m.actuators." if fits else ""),
            key=what,
            got=given,
        )
    return a


def _currents(current: Any, motion: Motion, before: Simulation | None) -> np.ndarray:
    """Return the initial currents (n,) of the motors with inductance."""
    train = motion.train
    if before is not None and bool(before.motors) != (train is not None):
        raise InputError(
            "The earlier run was driven by voltages. Give `voltage`; 0 lets the motors brake."
            if train is None
            else "The earlier run had no voltages and left the motors out. Continue without "
            "`voltage`, or start a new run at run.at(run.t[-1]) with qd=run.qd[-1].",
            key="voltage",
        )
    if current is not None and before is not None:
        raise InputError(
            "`current` cannot be given with an earlier run, which has its own final currents. Omit it.",
            key="current",
        )
    if train is None:
        return np.zeros(0)
    if before is not None:
        return np.asarray(before.current[-1][train.is_inductive])
    a = as_numbers(np.zeros(len(train.names)) if current is None else current)
    a = None if a is None else np.atleast_1d(a)
    if (
        a is None
        or a.dtype != np.float64
        or a.shape != (len(train.names),)
        or not np.isfinite(a[train.is_inductive]).all()
    ):
        raise InputError(
            f"`current` must be {counted(len(train.names), 'number')}, one for each of "
            f"{', '.join(train.names)}, finite for motors with inductance; got {short_repr(current)}.",
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
        raise invalid(
            "prescribed", "must be a Trajectory, or a dict that maps coordinates to functions of t", given
        )
    for name in given:
        _check_valued("prescribed", name, model, names)
    return dict(given)


def _check_valued(what: str, name: Any, model: CompiledModel, names: tuple[str, ...]) -> None:
    """Raise an error for a name that is not a coordinate of the motion, or has no value."""
    if name not in names:
        raise unknown("coordinate", name, "the motion", names, quoted=False)
    if not model.value_rows(name)[1]:
        raise InputError(
            f"'{name}' has a rate but no value, which `{what}` needs. Use coordinates that have values.",
            name=name,
        )


def _events(events: Any) -> list[Event]:
    several = [events] if is_function(events) else entries(events)
    if not all(map(is_function, several)):
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
