"""Options of `Mechanism.simulate`: the integrator, and voltages with initial currents."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np

from kic.errors import invalid
from kic.numerics.arguments import choice, integer
from kic.numerics.arrays import reals
from kic.numerics.tolerances import EPS

Method = Literal["DOP853", "RK45", "RK23", "LSODA", "Radau", "BDF"]
METHODS = get_args(Method)
# smallest and largest relative tolerance: the integrators' own limit, and an error as large as the motion
RTOL_MIN, RTOL_MAX = 100 * EPS, 1.0


@dataclass(frozen=True)
class Integrator:
    """Integrator of `Mechanism.simulate`: method, tolerances and stop conditions.

    Attributes
    ----------
    method : str
        Integrator of SciPy: "DOP853", "RK45", "RK23" (explicit Runge-Kutta), "LSODA" (Adams, switches to
        BDF where the motion is stiff), "Radau", "BDF" (stiff).
    rtol, atol : float
        Tolerances. For lengths, `atol` is a share of the mechanism's characteristic length.
    max_steps : int
        Largest number of steps.
    contacts : {"stop", "hold"}
        "stop" ends the run at the time when a closed contact would have to pull or exceed its friction
        limit; ``stopped`` then names the contact. "hold" keeps all contacts closed. Where the loads are
        not unique, the run continues if some admissible loads exist.
    on_change_point : {"continue", "stop"}
        Continue through change points, or stop there. At a change point branches of the loop closure meet,
        for example where all links of a parallelogram are in line. A run continues on the branch on which all
        joints move smoothly. The run lists the times in ``change_points``.
    progress : bool, optional
        Show a progress bar on stderr; by default if stderr is a terminal and the run is long.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> rough = m.simulate(2.0, integrator=kic.Integrator("RK45", rtol=1e-4, atol=1e-4))
    >>> rough.steps < m.simulate(2.0, integrator="RK45").steps
    True
    """

    method: Method = "DOP853"
    _: KW_ONLY
    rtol: float = 1e-9
    atol: float = 1e-9
    max_steps: int = 1_000_000
    contacts: Literal["stop", "hold"] = "stop"
    on_change_point: Literal["continue", "stop"] = "continue"
    progress: bool | None = None

    def __post_init__(self) -> None:
        choice("method", self.method, METHODS)
        # energies start at zero, where only `atol` applies
        for name, lowest, highest in (
            ("rtol", RTOL_MIN, RTOL_MAX),
            ("atol", float(np.finfo(float).tiny), np.inf),
        ):
            value = getattr(self, name)
            a = reals(value)
            if a is None or a.ndim or not lowest <= a < highest:
                rule = f"must be a number from {lowest:.2g} to below {highest:g}"
                raise invalid(name, rule, value, "Give 1e-9, or 1e-4 for a rough run.")
            object.__setattr__(self, name, float(a))
        object.__setattr__(self, "max_steps", integer("max_steps", self.max_steps, 1, None))
        choice("contacts", self.contacts, ("stop", "hold"))
        choice("on_change_point", self.on_change_point, ("continue", "stop"))
        if not isinstance(self.progress, bool | np.bool_ | None):
            raise invalid("progress", "must be True, False or None", self.progress)


@dataclass(frozen=True, eq=False)
class Voltage:
    """Voltages of the motors in `Mechanism.simulate`, with initial currents.

    Attributes
    ----------
    value : callable or (K,) array_like
        Voltages, as `voltage` of `Mechanism.simulate`: a function of (t, now), a controller or constants.
    current : (K,) array_like, optional
        Initial currents, 0 by default; ``near.motor_demand(qd, qdd, qddd).current`` gives the currents of a
        known motion. Entries of motors without inductance are ignored: their currents follow the voltage. Not
        allowed with an earlier run.

    Examples
    --------
    >>> m = kic.load("four-bar-motor")
    >>> run = m.simulate(0.1, voltage=kic.Voltage(6.0, current=1.5))
    >>> float(run.current[0, 0])
    1.5
    """

    value: Any
    _: KW_ONLY
    current: Any = None

    def __post_init__(self) -> None:
        if self.value is None or isinstance(self.value, Voltage):
            rule = "must be voltages, a function or a controller"
            raise invalid("value", rule, self.value, "Give 0 for motors without voltage.")
