"""Kinematic influence coefficients of mechanisms, exact to third order.

A `Mechanism` describes bodies and joints. `Mechanism.at` solves a configuration. The methods of
`Configuration` compute everything else:

    import kic
    m = kic.load("puma560")
    c = m.at([0.0, 0.5, -2.2, 0.7, 0.8, -0.4])
    c.coefficients("tool").G                    # Jacobian
    c.coefficients("tool").H                    # Hessian
    d = c.dynamics()                            # mass matrix, Christoffel symbols, loads
    d.inverse_dynamics(qd, qdd)                 # T = I* q̈ + q̇ᵀ P* q̇ − Tᴸ

Every function raises `InputError` for arguments of a wrong shape, type or range, entries that are not
finite and batches that do not broadcast; `UnknownNameError` for unknown names, with the candidates;
`InertiaError` if masses or inertias are needed and missing; and `MissingExtraError` if an optional package
is not installed. Docstrings list these errors only if there is more to say. Their examples assume ``import
kic`` and ``import numpy as np``.

Notation
--------
Symbols and equation numbers are those of Freeman (1985).

======  ==================================  ===========================  =================
symbol  name                                shape                        source
======  ==================================  ===========================  =================
φ, q    coordinates (rad, length)           (..., M)
u       outputs: points, bodies, …          (..., P)
G       Jacobian ∂u/∂q                      (..., P, M)                  (2-6), Table 2-3
H       Hessian ∂G/∂q                       (..., P, M, M)               (2-17), Table 2-4
D       third derivatives ∂H/∂q             (..., P, M, M, M)            (2-42), Table 2-5
I*      mass matrix (`I`)                   (..., M, M)                  (2-196)
P*      Christoffel symbols (`P`)           (..., M, M, M)               (2-197)
Tᴸ      gravity and applied loads (`load`)  (..., M)                     (2-125), (2-147)
T       generalized forces, efforts         (..., M)                     (2-198)
T_c     constraint loads (`JointForces`)    (..., J, 3)                  (4-31)
K, C    stiffness ∂T/∂q, damping ∂T/∂q̇      (..., M, M)                  (2-225), (2-204)
T_q     actuator efforts (`Distribution`)   (..., A)                     (4-85)
G, J    grasp map, hand Jacobian (`Grasp`)  (..., 6, R), (..., R, n)
Λ, μ    operational-space inertia, forces   (..., P, P), (..., P, M, M)
p, J̄    operational-space load, inverse     (..., P), (..., M, P)        (4-70)
q̇, λ    resolved redundancy, multipliers    (..., M), (..., P)           (4-68) to (4-75)
======  ==================================  ===========================  =================

The symmetric part (P*[m, n, k] + P*[m, k, n]) / 2 has the Christoffel symbols of the mass matrix. The index
of differentiation comes first::

    H[p, m, n] = ∂G[p, n] / ∂q_m          u̇ = G q̇
      │  │  └─ column of G                ü = G q̈ + q̇ᵀ H q̇
      │  └──── differentiated along       u⃛ = G q⃛ + q̈ᵀ (H + 2Hᵀ) q̇ + D(q̇, q̇, q̇)
      └─────── output                     T = I* q̈ + q̇ᵀ P* q̇ − Tᴸ
    D[p, l, m, n] = ∂H[p, m, n] / ∂q_l

Packages
--------
A package imports only from packages above it. The exception are short methods of `Configuration` and
`Mechanism`, which delegate to the packages below.

====================================  ==========================================================
package                               contents
====================================  ==========================================================
`numerics`                            arrays, rotations, polynomials, conic programs
`kernels`                             compiled arithmetic on plain arrays
`description`                         bodies, joints and other parts, as the user writes them
`kinematics`                          Chapter II: coefficients of open chains
`dynamics`                            Chapter II: mass matrix, Christoffel symbols, loads
`transfer`                            Chapters III and IV: coordinates and closed loops
`configuration`, `mechanism`, …       the types that a user holds
`io`                                  model files, Denavit–Hartenberg tables, shipped models
`analysis`                            mobility, assembly modes, input sets, singularities
`joint_forces`, `actuation`           forces in joints; redundant actuators and motors
`operational_space`, `grasp`          tasks and redundancy; contacts and grip forces
`linear`                              linearization, state space, vibration modes, equilibrium
`plotting`                            drawings, plots and animations
`trajectory`, `simulation`, `sweeps`  motions in time; grids of configurations
`classics`                            the four short source documents in closed form
`report`, `cli`                       reports and commands
====================================  ==========================================================

`kic.kinematics`, `kic.dynamics` and `kic.transfer` have an index of equations.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# for type checkers and editors; at run time a name is imported on first use, see `_HOME`
# ruff: noqa: F401
if TYPE_CHECKING:
    from kic import trajectory
    from kic.actuation.distribution import Distribution
    from kic.actuation.internal_loads import InternalLoads
    from kic.analysis.assemblies import Assemblies
    from kic.analysis.input_sets import IndependentSet, IndependentSets
    from kic.analysis.sensitivity import sensitivity
    from kic.analysis.singularities import Singularities, Singularity
    from kic.configuration import Configuration
    from kic.description.contacts import Contact
    from kic.description.couplings import Coupling
    from kic.description.motors import Motor
    from kic.description.parts import Body, Distance, Force, Frame, Joint, Moment, Point, Spring
    from kic.description.units import Units
    from kic.dynamics.contributions import Contributions
    from kic.dynamics.drive_train import MotorDemand
    from kic.dynamics.dynamics import Dynamics
    from kic.errors import (
        ConfigurationError,
        FileError,
        InertiaError,
        InputError,
        KicError,
        LimitError,
        LoopError,
        MissingExtraError,
        ModelError,
        ModelFileError,
        SimulationError,
        SingularError,
        UnknownNameError,
    )
    from kic.evaluator import Evaluator, PositionSolver
    from kic.grasp.contacts import ContactSet, contact_frames, grasp_map
    from kic.grasp.force_closure import GraspClosure, force_closure, form_closure
    from kic.grasp.grasp import Grasp, GraspMotion
    from kic.grasp.grip import GripForces, grip_forces, largest_load
    from kic.io import linkages
    from kic.io.dh import DHRow, from_dh
    from kic.io.library import model_names
    from kic.io.mjcf import from_mujoco
    from kic.io.order import JointOrder
    from kic.io.sdf import from_sdf
    from kic.io.toml import load, save, schema
    from kic.io.urdf import from_urdf
    from kic.joint_forces.joint_forces import JointForces, Wrench
    from kic.kinematics import products
    from kic.kinematics.coefficients import Coefficients
    from kic.linear.equilibrium import Equilibrium
    from kic.linear.linearize import Linearization
    from kic.linear.modes import Modes
    from kic.linear.state_space import StateSpace
    from kic.mechanism import Mechanism
    from kic.motion_dynamics import MotionEvaluator
    from kic.operational_space.ellipsoids import Ellipsoid
    from kic.operational_space.operational_space import OperationalSpace, OperationalSpaceEvaluator
    from kic.operational_space.redundancy import RedundancyEvaluator, RedundancyResolution
    from kic.operational_space.secondary_objectives import JointLimits, Manipulability, PreferredConfiguration
    from kic.plotting.animate import Animation, animate
    from kic.plotting.draw import MechanismPicture, draw
    from kic.report.page import report_page
    from kic.simulation import controllers
    from kic.simulation.result import Energy, Simulation
    from kic.simulation.simulate import simulate
    from kic.sweeps import metrics
    from kic.sweeps.result import Sweep
    from kic.sweeps.sweep import sweep
    from kic.trajectory.tracking import TrackingResult

__version__ = "0.1.0"

# every public name with the module it is from, or is
_HOME = {
    "Animation": "plotting.animate",
    "Assemblies": "analysis.assemblies",
    "Body": "description.parts",
    "Coefficients": "kinematics.coefficients",
    "Configuration": "configuration",
    "ConfigurationError": "errors",
    "Contact": "description.contacts",
    "ContactSet": "grasp.contacts",
    "Contributions": "dynamics.contributions",
    "Coupling": "description.couplings",
    "DHRow": "io.dh",
    "Distance": "description.parts",
    "Distribution": "actuation.distribution",
    "Dynamics": "dynamics.dynamics",
    "Ellipsoid": "operational_space.ellipsoids",
    "Energy": "simulation.result",
    "Equilibrium": "linear.equilibrium",
    "Evaluator": "evaluator",
    "FileError": "errors",
    "Force": "description.parts",
    "Frame": "description.parts",
    "Grasp": "grasp.grasp",
    "GraspClosure": "grasp.force_closure",
    "GraspMotion": "grasp.grasp",
    "GripForces": "grasp.grip",
    "IndependentSet": "analysis.input_sets",
    "IndependentSets": "analysis.input_sets",
    "InertiaError": "errors",
    "InputError": "errors",
    "InternalLoads": "actuation.internal_loads",
    "Joint": "description.parts",
    "JointOrder": "io.order",
    "JointForces": "joint_forces.joint_forces",
    "JointLimits": "operational_space.secondary_objectives",
    "KicError": "errors",
    "LimitError": "errors",
    "Linearization": "linear.linearize",
    "LoopError": "errors",
    "Manipulability": "operational_space.secondary_objectives",
    "Mechanism": "mechanism",
    "MechanismPicture": "plotting.draw",
    "MissingExtraError": "errors",
    "ModelError": "errors",
    "ModelFileError": "errors",
    "Modes": "linear.modes",
    "Moment": "description.parts",
    "MotionEvaluator": "motion_dynamics",
    "Motor": "description.motors",
    "MotorDemand": "dynamics.drive_train",
    "OperationalSpace": "operational_space.operational_space",
    "OperationalSpaceEvaluator": "operational_space.operational_space",
    "Point": "description.parts",
    "PositionSolver": "evaluator",
    "PreferredConfiguration": "operational_space.secondary_objectives",
    "RedundancyEvaluator": "operational_space.redundancy",
    "RedundancyResolution": "operational_space.redundancy",
    "Simulation": "simulation.result",
    "SimulationError": "errors",
    "SingularError": "errors",
    "Singularities": "analysis.singularities",
    "Singularity": "analysis.singularities",
    "Spring": "description.parts",
    "StateSpace": "linear.state_space",
    "Sweep": "sweeps.result",
    "TrackingResult": "trajectory.tracking",
    "Units": "description.units",
    "UnknownNameError": "errors",
    "Wrench": "joint_forces.joint_forces",
    "animate": "plotting.animate",
    "contact_frames": "grasp.contacts",
    "controllers": "simulation.controllers",
    "draw": "plotting.draw",
    "force_closure": "grasp.force_closure",
    "form_closure": "grasp.force_closure",
    "from_dh": "io.dh",
    "from_mujoco": "io.mjcf",
    "from_sdf": "io.sdf",
    "from_urdf": "io.urdf",
    "grasp_map": "grasp.contacts",
    "grip_forces": "grasp.grip",
    "largest_load": "grasp.grip",
    "linkages": "io.linkages",
    "load": "io.toml",
    "metrics": "sweeps.metrics",
    "model_names": "io.library",
    "products": "kinematics.products",
    "report_page": "report.page",
    "save": "io.toml",
    "schema": "io.toml",
    "sensitivity": "analysis.sensitivity",
    "simulate": "simulation.simulate",
    "sweep": "sweeps.sweep",
    "trajectory": "trajectory",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562), with no more packages than it needs."""
    if name not in _HOME:
        raise AttributeError(f"module 'kic' has no attribute '{name}'", name=name, obj=import_module("kic"))
    module = import_module(f"kic.{_HOME[name]}")
    # a package may have a module of its own name
    found = globals()[name] = module if _HOME[name] == name else getattr(module, name, module)
    return found


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
