"""Wrong values for every argument of every public callable, driven by the signatures: the error names it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import odd

import kic
from kic.errors import short_repr

UNKNOWN = "no such name"
NEW = ("path", "name", "directory", "names", "quasi", "length", "repeat", "source")


# the error names the coordinate whose value is wrong
UNNAMED = "position.__call__.values"
# operands of other types, batches, arrays that hot loops or containers do not check, options without effect
ACCEPTED = """
Coefficients.G Coefficients.H Coefficients.__matmul__.inner Coefficients.scaling
Coefficients.values Configuration.animate.progress ContactSet.loads.force Dynamics.I Dynamics.P
Dynamics.__add__.other Dynamics.damping Dynamics.inertia_error Dynamics.load Grasp.grip.criterion
Grasp.grip.normal_force_min Grasp.grip.safety JointOrder.v.qd OrientationTrajectory.__call__.t
SampledMotion.animate.progress Simulation.animate.progress Simulation.at.t Simulation.current_at.t
StateSpace.A StateSpace.B StateSpace.C StateSpace.D StateSpace.frequency_response.omega Sweep.plot.bounds
TrackingResult.animate.progress Trajectory.__call__.t Voltage.value
Trajectory.inputs.q Trajectory.on.applied Trajectory.on.criterion Trajectory.on.effort_limits
Trajectory.on.t Trajectory.plot.t products.bilinear.C products.bilinear.L products.bilinear.R
products.cross.A products.cross.B products.dot.A products.dot.T products.quadratic.C products.quadratic.D
coefficients_and_dynamics.__call__.state coefficients_and_dynamics.check.state
inverse_dynamics.__call__.qd inverse_dynamics.__call__.qdd inverse_dynamics.__call__.state
inverse_dynamics.check.state operational_space.__call__.state operational_space.check.state
pose.__call__.qd pose.__call__.state pose.check.state position.check.state
regressor.__call__.qd regressor.__call__.qdd regressor.__call__.state regressor.check.state
resolve_redundancy.__call__.secondary resolve_redundancy.__call__.secondary_rate
resolve_redundancy.__call__.state resolve_redundancy.__call__.udd resolve_redundancy.check.state
trajectory.at_speed.applied trajectory.at_speed.criterion trajectory.at_speed.effort_limits
trajectory.rotation.stops trajectory.spline.stops
"""


def wrong(valid: Any, new: bool = False) -> list[Any]:
    """Return values that cannot stand for a valid one; `new` names are valid."""
    numbers = isinstance(valid, np.ndarray | float | int) or (
        isinstance(valid, list | tuple) and valid and all(isinstance(x, float | int) for x in valid)
    )
    if numbers and not isinstance(valid, bool):
        shape = np.shape(valid)
        return [object(), "text", np.full(shape, np.nan), np.zeros((*shape[:-1], 7))]
    if isinstance(valid, str):
        return [object(), 5, [5], *([] if new else [UNKNOWN])]
    if isinstance(valid, list | tuple) and valid and all(isinstance(x, str) for x in valid):
        return [object(), 5, [5], *([] if new else [[UNKNOWN]])]
    return [object()]


def names(error: kic.KicError, key: str, value: Any) -> bool:
    """Return True if an error names an argument, or the unknown name that it received."""
    data = error.numbers
    if str(data.get("key")).split("[")[0].split(".")[0] == key or key in data.get("batches", {}):
        return True
    unknown = (
        value == UNKNOWN
        if isinstance(value, str)
        else value == [UNKNOWN]
        if isinstance(value, list)
        else False
    )
    return f"`{key}`" in str(error) or (unknown and UNKNOWN in str(error))


def outcome(call: odd.Call, key: str, value: Any) -> str:
    """Return "named" if the error names the argument, with the required arguments, with all or with some."""
    said = ""
    # some arguments require or exclude others
    some = [(random.Random(seed), 0.5) for seed in range(24)]
    for rng, share in ((None, 0.0), (random.Random(0), 1.0), *some):
        positional, given = call.arguments(rng, share=share)
        if positional and key not in given:
            return "positional"
        try:
            call.run(positional, {**given, key: value})
            said = said or "no error"
        except kic.MissingExtraError:
            return "named"
        except kic.KicError as error:
            if names(error, key, value):
                return "named"
            said = said or f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"raw {type(error).__name__}: {error}"
    return said


def questions() -> dict[tuple[str, str], list[odd.Call]]:
    """Return the calls of each public callable and parameter that has a valid argument."""
    found: dict[tuple[str, str], list[odd.Call]] = {}
    for call in odd.calls():
        if not call.label.startswith((*odd.STRUCTURES, "strange")):
            for key, p in call.parameters.items():
                if key in call.valid and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                    found.setdefault((call.name, key), []).append(call)
    return found


def search() -> Iterator[tuple[str, str, str]]:
    """Yield the callable's parameter, the wrong value and the outcome where no error names the argument."""
    known = {*UNNAMED.split(), *ACCEPTED.split()}
    for (name, key), calls in questions().items():
        if f"{name}.{key}" in known:
            continue
        # constructors give names, and writers paths
        new = isinstance(calls[0].function, type) or key in NEW
        for k, value in enumerate(wrong(calls[0].valid[key], new)):
            said = ""
            for call in calls:
                values = wrong(call.valid[key], new)
                said = outcome(call, key, values[min(k, len(values) - 1)])
                if said in ("named", "positional"):
                    break
            else:
                yield f"{name}.{key}", short_repr(value), said
