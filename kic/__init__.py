"""kic: kinematic influence coefficients of mechanisms, exact to third order.

A mechanism is drawn as bodies and joints; `Mechanism.at` fixes a posture; every question is asked of the
resulting `Configuration`:

    import kic
    m = kic.load("puma560")
    c = m.at([0.0, 0.5, -2.2, 0.7, 0.8, -0.4])
    c.coefficients("tool").H                 # ∂²tool/∂q²
    c.dynamics().effort(qd, qdd)             # T = I* q̈ + q̇ᵀ P* q̇ − Tᴸ

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
q̇, λ    for a task (`Resolution`)           (..., M), (..., P)       (4-68) to (4-75)
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
    from kic import products, trajectories
    from kic.bearing.jointforces import JointForces, Wrench
    from kic.closer import Closer
    from kic.coefficients import Coefficients
    from kic.configuration import Configuration
    from kic.contacts import Contact
    from kic.contributions import Contributions
    from kic.couplings import Coupling
    from kic.dh import DHRow, from_dh
    from kic.dynamics import Dynamics
    from kic.errors import (
        FileError,
        InertiaError,
        InputError,
        KicError,
        LimitError,
        LoopError,
        MissingExtraError,
        ModelError,
        ModelFileError,
        PostureError,
        SimulationError,
        SingularError,
        UnknownNameError,
    )
    from kic.evaluator import Evaluator
    from kic.grasping.contactarrays import contact_frames
    from kic.grasping.contactset import ContactSet, grasp_map
    from kic.grasping.forceclosure import GraspClosure, force_closure, form_closure
    from kic.grasping.grasp import Grasp
    from kic.grasping.graspmotion import GraspMotion
    from kic.grasping.gripping import GripForces, grip_forces, largest_load
    from kic.linear.actuators import Drive
    from kic.linear.equilibrium import Equilibrium
    from kic.linear.linearize import Linearization
    from kic.linear.modes import Modes
    from kic.linear.statespace import StateSpace
    from kic.mechanism import Mechanism
    from kic.modelfile import load, save, schema
    from kic.motors import Motor
    from kic.parts import Body, Distance, Force, Joint, Moment, Point, Spring, Units
    from kic.picturing.animate import Animation, animate
    from kic.picturing.draw import MechanismPicture, draw
    from kic.questions.assemblies import Assemblies
    from kic.questions.independent import IndependentSet, IndependentSets
    from kic.questions.sensitivity import sensitivity
    from kic.questions.singularities import Singularities, Singularity
    from kic.reporting.page import report_page
    from kic.sharing.distribution import Distribution
    from kic.sharing.internalloads import InternalLoads
    from kic.shipped import model_names
    from kic.simulating import controllers
    from kic.simulating.energy import Energy
    from kic.simulating.simulate import simulate
    from kic.simulating.simulation import Simulation
    from kic.sweeping import answers
    from kic.sweeping.sweep import sweep
    from kic.sweeping.swept import Sweep
    from kic.tasks.ellipsoids import Ellipsoid
    from kic.tasks.following import Following
    from kic.tasks.operational import OperationalEvaluator, OperationalSpace
    from kic.tasks.redundancy import ResolutionEvaluator
    from kic.tasks.resolution import Resolution
    from kic.tasks.secondary import JointLimits, Manipulability, PreferredPosture

__version__ = "0.1.0"

# every public name with the module it is from, or is
_HOME = {
    "Animation": "picturing.animate",
    "Assemblies": "questions.assemblies",
    "Body": "parts",
    "Closer": "closer",
    "Coefficients": "coefficients",
    "Configuration": "configuration",
    "Contact": "contacts",
    "ContactSet": "grasping.contactset",
    "Contributions": "contributions",
    "Coupling": "couplings",
    "DHRow": "dh",
    "Distance": "parts",
    "Distribution": "sharing.distribution",
    "Drive": "linear.actuators",
    "Dynamics": "dynamics",
    "Ellipsoid": "tasks.ellipsoids",
    "Energy": "simulating.energy",
    "Equilibrium": "linear.equilibrium",
    "Evaluator": "evaluator",
    "FileError": "errors",
    "Following": "tasks.following",
    "Force": "parts",
    "Grasp": "grasping.grasp",
    "GraspClosure": "grasping.forceclosure",
    "GraspMotion": "grasping.graspmotion",
    "GripForces": "grasping.gripping",
    "IndependentSet": "questions.independent",
    "IndependentSets": "questions.independent",
    "InertiaError": "errors",
    "InputError": "errors",
    "InternalLoads": "sharing.internalloads",
    "Joint": "parts",
    "JointForces": "bearing.jointforces",
    "JointLimits": "tasks.secondary",
    "KicError": "errors",
    "LimitError": "errors",
    "Linearization": "linear.linearize",
    "LoopError": "errors",
    "Manipulability": "tasks.secondary",
    "Mechanism": "mechanism",
    "MechanismPicture": "picturing.draw",
    "MissingExtraError": "errors",
    "ModelError": "errors",
    "ModelFileError": "errors",
    "Modes": "linear.modes",
    "Moment": "parts",
    "Motor": "motors",
    "OperationalEvaluator": "tasks.operational",
    "OperationalSpace": "tasks.operational",
    "Point": "parts",
    "PostureError": "errors",
    "PreferredPosture": "tasks.secondary",
    "Resolution": "tasks.resolution",
    "ResolutionEvaluator": "tasks.redundancy",
    "Simulation": "simulating.simulation",
    "SimulationError": "errors",
    "SingularError": "errors",
    "Singularities": "questions.singularities",
    "Singularity": "questions.singularities",
    "Spring": "parts",
    "StateSpace": "linear.statespace",
    "Sweep": "sweeping.swept",
    "Units": "parts",
    "UnknownNameError": "errors",
    "Wrench": "bearing.jointforces",
    "animate": "picturing.animate",
    "answers": "sweeping.answers",
    "contact_frames": "grasping.contactarrays",
    "controllers": "simulating.controllers",
    "draw": "picturing.draw",
    "force_closure": "grasping.forceclosure",
    "form_closure": "grasping.forceclosure",
    "from_dh": "dh",
    "grasp_map": "grasping.contactset",
    "grip_forces": "grasping.gripping",
    "largest_load": "grasping.gripping",
    "load": "modelfile",
    "model_names": "shipped",
    "products": "products",
    "report_page": "reporting.page",
    "save": "modelfile",
    "schema": "modelfile",
    "sensitivity": "questions.sensitivity",
    "simulate": "simulating.simulate",
    "sweep": "sweeping.sweep",
    "trajectories": "trajectories",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    """What is public, loaded when it is first used (PEP 562): so that a question loads its own room alone."""
    if name not in _HOME:
        raise AttributeError(f"module 'kic' has no attribute '{name}'", name=name, obj=import_module("kic"))
    module = import_module(f"kic.{_HOME[name]}")
    found = globals()[name] = getattr(module, name, module)
    return found


def __dir__() -> list[str]:
    """What is public, loaded or not."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
