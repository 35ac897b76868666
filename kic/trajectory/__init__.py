"""Trajectories in any coordinates: polynomials, profiles, splines, orientations, and their timing.

======================  ==============================================================================
`quintic`, `septic`     one polynomial between two states of motion
`hermite`               polynomials through points with given rates, accelerations, jerks
`spline`                a spline through points, smooth up to the acceleration or the jerk; with stops
`rotation`              orientations, with angular velocities, accelerations and jerks
`line`                  a straight path at constant rate, to be timed
`trapezoid`, `s_curve`  the fastest straight path within velocity, acceleration and jerk
`at_speed`              a path of configurations at constant rates of the coordinates
`concatenate`           one trajectory after another
`uniform`               the same motion scaled in time to limits, also of voltages and jerks
`fastest`               the time-optimal motion along a path within velocity, acceleration, effort, voltage
`exciting`              a motion within limits that makes masses and friction easy to identify
======================  ==============================================================================

Coordinates are dicts by name, such as ``{"A": 0.2, "tip.x": 1.0}``, or arrays (M,) in the order of
`Mechanism.coordinates`. Call a `Trajectory` with times; `Trajectory.on` moves a mechanism along it.
"""

import sys

from kic.numerics.calls import explain
from kic.trajectory.builders import concatenate, line, quintic, s_curve, septic, trapezoid
from kic.trajectory.excitation import exciting
from kic.trajectory.orientation import OrientationTrajectory, RotationSegments, rotation
from kic.trajectory.path_constraints import PathConstraints, PathSamples
from kic.trajectory.splines import hermite, spline
from kic.trajectory.timing import TimeOptimal, fastest, uniform
from kic.trajectory.trajectory import Motion, SampledMotion, Trajectory, at_speed

__all__ = [
    "Motion",
    "OrientationTrajectory",
    "PathConstraints",
    "PathSamples",
    "RotationSegments",
    "SampledMotion",
    "TimeOptimal",
    "Trajectory",
    "at_speed",
    "concatenate",
    "exciting",
    "fastest",
    "hermite",
    "line",
    "quintic",
    "rotation",
    "s_curve",
    "septic",
    "spline",
    "trapezoid",
    "uniform",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


# a package that is imported by itself, without the hook of `kic.__getattr__`
explain(sys.modules[__name__])
