"""Trajectories in any coordinates: polynomials, trapezoids, S-curves, ways through points, and their timing.

======================  ==============================================================================
`quintic`, `septic`     one polynomial between two states of motion
`hermite`               polynomials through points with given rates, accelerations, jerks
`spline`                a spline through points, smooth up to the acceleration or the jerk; with stops
`rotation`              orientations, with angular velocities, accelerations and jerks
`line`                  a straight path at constant rate, to be timed
`trapezoid`, `s_curve`  the fastest straight way within velocity, acceleration and jerk
`concatenate`           one after the other
`uniform`               the same motion, so much faster or slower as limits allow, of voltages and jerks too
`fastest`               the least time along a path within velocity, acceleration, effort, voltage or others
======================  ==============================================================================

Coordinates come as dicts by name, such as ``{"A": 0.2, "tip.x": 1.0}``, or as bare arrays (M,) in the order
of `Mechanism.coordinates`. A `Trajectory` is called with times; `Trajectory.on` puts a mechanism on its way.
"""

from kic.trajectory.builders import concatenate, line, quintic, s_curve, septic, trapezoid
from kic.trajectory.orientation import OrientationTrajectory, RotationSegments, rotation
from kic.trajectory.path_constraints import PathConstraints, PathSamples
from kic.trajectory.splines import hermite, spline
from kic.trajectory.time_optimal import TimeOptimal, fastest
from kic.trajectory.time_scaling import uniform
from kic.trajectory.trajectory import Motion, SampledMotion, Trajectory

__all__ = [
    "Motion",
    "OrientationTrajectory",
    "PathConstraints",
    "PathSamples",
    "RotationSegments",
    "SampledMotion",
    "TimeOptimal",
    "Trajectory",
    "concatenate",
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
