"""kic: kinematic influence coefficients of mechanisms, exact to third order.

A mechanism is drawn as bodies and joints; `Mechanism.at` fixes a posture; every question is asked of the
resulting `Configuration`:

    import kic
    m = kic.load("puma560")
    c = m.at([0.0, 0.5, -2.2, 0.7, 0.8, -0.4])
    c.coefficients("tool").H                 # ∂²tool/∂q²
    c.dynamics().inverse_dynamics(qd, qdd)             # T = I* q̈ + q̇ᵀ P* q̇ − Tᴸ

The classic arms in closed form, Lee's split dynamics and counted operations are in `kic.classics`.

Notation
--------
======  ==================================  =======================  =================
symbol  name                                shape                    source
======  ==================================  =======================  =================
φ, q    coordinates (rad, length)           (..., M)
u       dependents: points, bodies, …       (..., P)
G       first-order coefficients ∂u/∂q      (..., P, M)              (2-6), Table 2-3
H       second-order, ∂G/∂q                 (..., P, M, M)           (2-17), Table 2-4
D       third-order, ∂H/∂q                  (..., P, M, M, M)        (2-42), Table 2-5
I*      effective inertia (`I`)             (..., M, M)              (2-196)
P*      inertia power (`P`)                 (..., M, M, M)           (2-197)
Tᴸ      applied load (`load`)               (..., M)                 (2-125), (2-147)
T       effort                              (..., M)                 (2-198)
T_c     constraint loads (`JointForces`)    (..., J, 3)              (4-31)
K, C    ∂T/∂q, ∂T/∂q̇ (`Linearization`)      (..., M, M)              (2-225), (2-204)
T_q     of actuators (`Distribution`)       (..., A)                 (4-85)
G, J    grasp map, hand Jacobian (`Grasp`)  (..., 6, R), (..., R, n)
Λ, μ    of a task (`OperationalSpace`)      (..., P, P), (..., P, M, M)
p, J̄    load, consistent inverse of it      (..., P), (..., M, P)    (4-70)
q̇, λ    for a task (`RedundancyResolution`)           (..., M), (..., P)       (4-68) to (4-75)
======  ==================================  =======================  =================

The differentiating index comes first::

    H[p, m, n] = ∂G[p, n] / ∂q_m          u̇ = G q̇
      │  │  └─ column of G                ü = G q̈ + q̇ᵀ H q̇
      │  └──── differentiated along       u⃛ = G q⃛ + q̈ᵀ (H + 2Hᵀ) q̇ + D(q̇, q̇, q̇)
      └─────── which dependent            T = I* q̈ + q̇ᵀ P* q̇ − Tᴸ
    D[p, l, m, n] = ∂H[p, m, n] / ∂q_l

Rooms
-----
The files beside this one lead from a drawing to an answer: parts, tree, rows, closure, transfer,
configuration, mechanism. `kernels` are the compiled arithmetic below them. On them stand `questions` about
a mechanism, `tasks` of fewer rows than freedoms, `sharing` of efforts among more actuators, `grasping`,
`bearing` (forces in joints), `linear` (small motions, motors, state space), `trajectories`, `simulating`,
`sweeping` (answers over grids), and the closed forms of `classics`. `picturing` draws what they find,
`reporting` and `commands` tell it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# what type checkers and editors see; at run time a name is loaded when it is first used, see `_HOME`
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
    from kic.description.parts import Body, Distance, Force, Joint, Moment, Point, Spring, Units
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
    from kic.io.dh import DHRow, from_dh
    from kic.io.library import model_names
    from kic.io.toml import load, save, schema
    from kic.joint_forces.joint_forces import JointForces, Wrench
    from kic.kinematics import products
    from kic.kinematics.coefficients import Coefficients
    from kic.linear.equilibrium import Equilibrium
    from kic.linear.linearize import Linearization
    from kic.linear.modes import Modes
    from kic.linear.state_space import StateSpace
    from kic.mechanism import Mechanism
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
    "Units": "description.parts",
    "UnknownNameError": "errors",
    "Wrench": "joint_forces.joint_forces",
    "animate": "plotting.animate",
    "contact_frames": "grasp.contacts",
    "controllers": "simulation.controllers",
    "draw": "plotting.draw",
    "force_closure": "grasp.force_closure",
    "form_closure": "grasp.force_closure",
    "from_dh": "io.dh",
    "grasp_map": "grasp.contacts",
    "grip_forces": "grasp.grip",
    "largest_load": "grasp.grip",
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
    """What is public, loaded when it is first used (PEP 562): so that a question loads its own room alone."""
    if name not in _HOME:
        raise AttributeError(f"module 'kic' has no attribute '{name}'", name=name, obj=import_module("kic"))
    module = import_module(f"kic.{_HOME[name]}")
    # the package `trajectory` has a module of its own name
    found = globals()[name] = module if _HOME[name] == name else getattr(module, name, module)
    return found


def __dir__() -> list[str]:
    """What is public, loaded or not."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
