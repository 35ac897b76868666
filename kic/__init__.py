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

Every function raises `InputError` for arguments of a wrong shape, type or range, entries that are not finite
and batches that do not broadcast; `UnknownNameError` for unknown names, with the candidates; `InertiaError`
if masses or inertias are needed and missing; `ModelError` for descriptions that no mechanism satisfies; and
`MissingExtraError` if an optional package is not installed. Docstrings list these errors only if there is
more to say. Their examples assume ``import kic`` and ``import numpy as np``.

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

Terms of the source
-------------------
==============================================  ==========================================================
term                                            call
==============================================  ==========================================================
kinematic influence coefficient                 `Configuration.coefficients`
generalized scalar product                      `products.dot`
generalized inner product                       `products.dot`
transfer of generalized coordinates             an argument `wrt`, `Dynamics.transfer`
partial transfer                                `Configuration.actuator_dynamics`, `Dynamics.transfer`
effective load                                  `Dynamics.load`, `Configuration.inverse_dynamics`
superabundance of inputs, kinematic redundancy  `Configuration.resolve_redundancy`, `Mechanism.track`
load distribution, antagonistic inputs          `Configuration.distribute`, `Configuration.internal_loads`
linearized state space, compliance              `Configuration.linearize`
drive train, payload                            `Motor`, `Configuration.motor_demand`; `metrics.force`
serial manipulator, wrist-partitioned           `from_dh`; `kic.classics.WristPartitioned`
open-chain model, leg                           `Mechanism.chain`, `Mechanism.without`
dyad, constraint load                           `Configuration.joint_forces`, `Mechanism.lock`
hand, cooperating robots                        a body in `of` or `wrt`; ``load("two-arms")``
==============================================  ==========================================================

Packages
--------
A package imports only from lower layers, which are listed above it. The first seven are the core. Each of
the others can be deleted; they add methods to the types that users hold, see `_METHODS` in `kic/__init__.py`.

================  ======================================================================================
package           contents
================  ======================================================================================
`numerics`        arrays, rotations, polynomials, conic programs
`kernels`         compiled arithmetic on plain arrays
`description`     bodies, joints and other parts, as the user writes them
`kinematics`      Chapter II: coefficients of open chains
`dynamics`        Chapter II: mass matrix, Christoffel symbols, loads
`transfer`        Chapters III and IV: coordinates, closed loops, mobility
`mechanism`       the types that a user holds: mechanisms, configurations, evaluators
`io`              model files, robot files, Denavit–Hartenberg tables, common linkages
`tasks`           operational space and redundancy; distribution of efforts; grasps
`analysis`        positions, joint forces, small motions, sweeps, sensitivities
`plotting`        drawings, plots and animations
`trajectory`      desired motions in time, and tracking
`simulation`      motions in time under efforts
`export`          C code, FMUs; functions of CasADi, JAX, PyTorch, SymPy
`classics`        the four short source documents in closed form
`ui`              commands, reports, and the viewer in the browser
================  ======================================================================================

`errors` is below all, and `results` has the classes of results by name. `kic.kinematics`, `kic.dynamics`,
`kic.transfer` and `kic.analysis.linear` have an index of equations.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kic.numerics.registration import import_wing, register

# for type checkers and editors, to which `as` marks public names; at run time a name is imported on first
# use, see `_HOME`
# ruff: noqa: I001
if TYPE_CHECKING:
    from kic import results as results, trajectory as trajectory
    from kic.analysis.sensitivity import sensitivity as sensitivity
    from kic.analysis.sweeps import metrics as metrics
    from kic.description.contacts import Contact as Contact
    from kic.description.couplings import Coupling as Coupling
    from kic.description.motors import Motor as Motor
    from kic.description.parts import (
        Angle as Angle,
        Body as Body,
        CenterOfMass as CenterOfMass,
        Distance as Distance,
        Force as Force,
        Frame as Frame,
        Joint as Joint,
        Moment as Moment,
        Point as Point,
        Spring as Spring,
    )
    from kic.description.units import Units as Units
    from kic.dynamics.dynamics import Dynamics as Dynamics
    from kic.errors import (
        ConfigurationError as ConfigurationError,
        DegreesWarning as DegreesWarning,
        FileError as FileError,
        InertiaError as InertiaError,
        InputError as InputError,
        KernelLibraryWarning as KernelLibraryWarning,
        KicError as KicError,
        LimitError as LimitError,
        LoopError as LoopError,
        MemberError as MemberError,
        MissingExtraError as MissingExtraError,
        ModelError as ModelError,
        ModelFileError as ModelFileError,
        OutOfRangeError as OutOfRangeError,
        SimulationError as SimulationError,
        SingularError as SingularError,
        UnknownNameError as UnknownNameError,
    )
    from kic.io import linkages as linkages
    from kic.io.dh import DHRow as DHRow, from_dh as from_dh
    from kic.io.library import model_names as model_names
    from kic.io.mjcf import from_mjcf as from_mjcf
    from kic.io.order import joint_order as joint_order
    from kic.io.robot_writers import to_mjcf as to_mjcf, to_urdf as to_urdf
    from kic.io.sdf import from_sdf as from_sdf
    from kic.io.toml import load as load, schema as schema
    from kic.io.urdf import from_urdf as from_urdf
    from kic.kinematics import products as products
    from kic.kinematics.coefficients import Coefficients as Coefficients
    from kic.mechanism.configuration import Configuration as Configuration
    from kic.mechanism.mechanism import Mechanism as Mechanism
    from kic.simulation import controllers as controllers
    from kic.simulation.options import Integrator as Integrator, Voltage as Voltage
    from kic.tasks.grasp.contacts import (
        ContactSet as ContactSet,
        contact_frames as contact_frames,
        grasp_map as grasp_map,
    )
    from kic.tasks.grasp.force_closure import force_closure as force_closure, form_closure as form_closure
    from kic.tasks.grasp.grip import grip_forces as grip_forces, largest_load as largest_load
    from kic.tasks.operational_space.secondary_objectives import (
        JointLimits as JointLimits,
        Manipulability as Manipulability,
        PreferredConfiguration as PreferredConfiguration,
    )

__version__ = "0.1.0"

# public names by their module; some names are modules
_NAMES = {
    "analysis.sensitivity": "sensitivity",
    "analysis.sweeps.metrics": "metrics",
    "description.contacts": "Contact",
    "description.couplings": "Coupling",
    "description.motors": "Motor",
    "description.parts": "Angle Body CenterOfMass Distance Force Frame Joint Moment Point Spring",
    "description.units": "Units",
    "dynamics.dynamics": "Dynamics",
    "errors": (
        "ConfigurationError DegreesWarning FileError InertiaError InputError KernelLibraryWarning "
        "KicError LimitError LoopError MemberError MissingExtraError ModelError ModelFileError "
        "OutOfRangeError SimulationError SingularError UnknownNameError"
    ),
    "io.dh": "DHRow from_dh",
    "io.library": "model_names",
    "io.linkages": "linkages",
    "io.mjcf": "from_mjcf",
    "io.order": "joint_order",
    "io.robot_writers": "to_mjcf to_urdf",
    "io.sdf": "from_sdf",
    "io.toml": "load schema",
    "io.urdf": "from_urdf",
    "kinematics.coefficients": "Coefficients",
    "kinematics.products": "products",
    "mechanism.configuration": "Configuration",
    "mechanism.mechanism": "Mechanism",
    "results": "results",
    "simulation.controllers": "controllers",
    "simulation.options": "Integrator Voltage",
    "tasks.grasp.contacts": "ContactSet contact_frames grasp_map",
    "tasks.grasp.force_closure": "force_closure form_closure",
    "tasks.grasp.grip": "grip_forces largest_load",
    "tasks.operational_space.secondary_objectives": "JointLimits Manipulability PreferredConfiguration",
    "trajectory": "trajectory",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
# methods that packages add to the user's types: by class, names by the module that defines the functions
_METHODS = {
    "Animated": {
        "plotting.animate": "animate",
        "ui.viewer.viewer": "view",
    },
    "Configuration": {
        "analysis.joint_forces.force_table": "force_table",
        "analysis.joint_forces.reactions": "joint_forces",
        "analysis.joint_forces.shaking_force": "shaking_force",
        "analysis.linear.linearize": "linearize",
        "analysis.linear.motor_demand": "motor_demand",
        "analysis.positions.singularities": "singularities",
        "analysis.sensitivity": "sensitivity:sensitivity_of_rows",
        "analysis.tolerances.tolerance_analysis": "tolerance_analysis",
        "mechanism.regressor": "regressor",
        "mechanism.whole_body": "body_contributions centroidal_momentum",
        "plotting.draw": "draw",
        "tasks.actuation.distribution": "actuator_dynamics distribute internal_loads",
        "tasks.grasp.grasp": "grasp",
        "tasks.operational_space.ellipsoids": "ellipsoid",
        "tasks.operational_space.operational_space": "operational_space",
        "tasks.operational_space.redundancy": "resolve_redundancy",
        "ui.report.page": "to_html",
    },
    "Mechanism": {
        "analysis.identification.calibrate": "calibrate",
        "analysis.identification.identify": "identify",
        "analysis.linear.equilibrium": "find_equilibrium",
        "analysis.positions.assembly_modes": "assembly_modes",
        "analysis.sensitivity": "sensitivity:sensitivity_to_parameters",
        "analysis.sweeps.sweep": "sweep",
        "description.chains": "chain",
        "description.description": "add replace:replace_fields without",
        "export.export": "@export",
        "io.robot_writers": "save",
        "mechanism.assembly": "close_loops",
        "mechanism.dimensions": "vary",
        "mechanism.locking": "hold_spins lock unlock",
        "mechanism.prepared": "@prepare",
        "plotting.draw": "draw:draw_reference",
        "simulation.simulate": "simulate",
        "trajectory.tracking": "track",
        "ui.viewer.viewer": "view:view_reference",
    },
    "Evaluator": {
        "export.specialize": "specialize",
    },
    "Evaluators": {
        "tasks.operational_space.operational_space": "operational_space:operational_space_evaluator",
        "tasks.operational_space.pose": "pose:pose_evaluator",
        "tasks.operational_space.redundancy": "resolve_redundancy:redundancy_evaluator",
    },
    "Mobility": {
        "mechanism.input_sets": "independent_sets",
    },
    "Calibration": {
        "plotting.plots": "plot:plot_calibration",
    },
    "Identification": {
        "plotting.plots": "plot:plot_identification",
    },
    "Sweep": {
        "plotting.maps": "plot:plot_sweep",
    },
    "ToleranceAnalysis": {
        "plotting.plots": "plot:plot_tolerance_analysis",
    },
}
__all__ = sorted(_HOME)
# common terms for what users call otherwise, in errors for unknown attributes of the package and its types
_COUNTERPARTS = {
    "kic": {
        "classics": "import kic.classics",
        "DHRobot": "from_dh(name, rows, convention=…)",
        "Robot": "Mechanism(…), load(file) or from_urdf(file)",
        "load_mjcf": "from_mjcf(file)",
        "load_sdf": "from_sdf(file)",
        "load_urdf": "from_urdf(file)",
        **dict.fromkeys(("generalized_scalar_product", "generalized_inner_product"), "products.dot(A, T)"),
        "influence_coefficients": "Configuration.coefficients",
        "serial_manipulator": "from_dh(name, rows, convention=…)",
        "drive_train": "Motor(name, joints)",
        "WristPartitioned": "kic.classics.WristPartitioned, after import kic.classics",
        "payload": "metrics.force",
    },
    "Configuration": {
        "G": "coefficients(of).G, the Jacobian",
        "H": "coefficients(of).H, the Hessian",
        "I": "dynamics().I, the mass matrix",
        "P": "dynamics().P, the Christoffel symbols",
        "jacobian": "coefficients(of).G, the Jacobian",
        "hessian": "coefficients(of).H, the Hessian",
        "mass_matrix": "dynamics().I, the mass matrix",
        "coriolis": "dynamics().coriolis(qd)",
        "gravity": "inverse_dynamics(), the static effort",
        "forward_kinematics": "pose(of) or value(of)",
        "fk": "pose(of) or value(of)",
        "inverse_kinematics": "Mechanism.at({tool: pose}, near=…)",
        "position": "value(of)",
        "euler": 'value("tool.euler_xyz")',
        "kinetic_energy": "dynamics().kinetic_energy(qd)",
        "velocity": "coefficients(of).velocity(qd)",
        "acceleration": "coefficients(of).acceleration(qd, qdd)",
        "reaction_forces": "joint_forces(qd, qdd)",
        "rnea": "inverse_dynamics(qd, qdd)",
        "aba": "forward_dynamics(qd, effort)",
        "crba": "dynamics().I, the mass matrix",
        "simulate": "Mechanism.simulate(t, near=…)",
        "find_equilibrium": "Mechanism.find_equilibrium(near=…)",
        "show": "draw(), or view() in the browser",
        "q": "value(coordinates)",
        "phi": "value(coordinates)",
        "draw_sheet": "draw(columns=4)",
        "plot": "draw()",
        "state_space": "linearize().state_space(); linearize(motors=True) includes motors",
        "mechanical_advantage": "kic.metrics.mechanical_advantage(row)(c), or force_table(of=row)",
        "transmission_angle": "kic.metrics.transmission_angle(joint)(c), or force_table(transmission=joint)",
        "manipulability": "ellipsoid(of).manipulability",
        "manipulability_gradient": "ellipsoid(of).gradient()",
        "center_of_mass": 'coefficients("com")',
        "influence_coefficients": "coefficients(of, order=3)",
        "transfer": "coefficients(of, wrt=…) or dynamics(wrt=…)",
        "partial_transfer": "actuator_dynamics(), or resolve_redundancy(of, ud).dynamics()",
        "effective_load": "dynamics().load, or inverse_dynamics(qd, qdd) of a motion",
        "load_distribution": "distribute(effort, actuators=…)",
        "antagonistic": "internal_loads(actuators=…), and its stiffness(efforts)",
        "superabundance": "resolve_redundancy(of, ud), or distribute(effort) among dependent actuators",
        **dict.fromkeys(("redundancy", "kinematic_redundancy"), "resolve_redundancy(of, ud)"),
        "drive_train": "motor_demand(qd, qdd), or dynamics(motors=True)",
        "linearization": "linearize()",
        "stiffness": "linearize().K",
        "compliance": "linearize().K and coefficients(of).G: compliance is G K⁻¹ Gᵀ",
        "payload": "kic.metrics.force, the largest force within effort limits",
    },
    "Mechanism": {
        "jacobian": "at(values).coefficients(of).G",
        "mass_matrix": "at(values).dynamics().I",
        "forward_kinematics": "at(values).pose(of)",
        "fkine": "at(values).pose(of)",
        "inverse_kinematics": "at({tool: pose}, near=…)",
        "ikine": "at({tool: pose}, near=…)",
        "inverse_dynamics": "at(values).inverse_dynamics(qd, qdd)",
        "forward_dynamics": "at(values).forward_dynamics(qd, effort)",
        "rnea": "at(values).inverse_dynamics(qd, qdd)",
        "aba": "at(values).forward_dynamics(qd, effort)",
        "crba": "at(values).dynamics().I",
        "reaction_forces": "at(values).joint_forces(qd, qdd)",
        "joint_forces": "at(values).joint_forces(qd, qdd)",
        "coefficients": "at(values).coefficients(of)",
        "dynamics": "at(values).dynamics()",
        "operational_space": "at(values).operational_space(of)",
        "linearize": "at(values).linearize()",
        "state_space": "at(values).linearize().state_space(); linearize(motors=True) includes motors",
        "show": "draw(), or view() in the browser",
        "plot": "draw()",
        "locked": "lock(values)",
        "part": "the name as an index, such as m['A']",
        "degrees_of_freedom": "dof",
        "solve": "at(values)",
        "close": "at(values)",
        "cuts": "mobility().cuts",
        "independent_sets": "mobility().independent_sets(configuration)",
        "to_urdf": "kic.to_urdf(mechanism)",
        "to_mjcf": "kic.to_mjcf(mechanism)",
        "joint_order": "kic.joint_order(mechanism, peer)",
        **{text: f"info.{text}" for text in ("title", "about", "source", "drawing")},
        **dict.fromkeys(("leg", "legs", "serial_chain", "open_chain"), "chain(tip, through=…)"),
        "drive_train": "motors, or at(values).motor_demand(qd, qdd)",
        "payload": "kic.metrics.force, the largest force within effort limits",
        "influence_coefficients": "at(values).coefficients(of, order=3)",
        "transfer": "at(values).coefficients(of, wrt=…)",
        "effective_load": "at(values).dynamics().load",
        "load_distribution": "at(values).distribute(effort, actuators=…)",
        "antagonistic": "at(values).internal_loads(actuators=…)",
        **dict.fromkeys(
            ("redundancy", "kinematic_redundancy", "superabundance"),
            "at(values).resolve_redundancy(of, ud), or track({of: …}, t, near=…)",
        ),
        "compliance": "at(values).linearize().K and coefficients(of).G: compliance is G K⁻¹ Gᵀ",
    },
}
register(_METHODS, _COUNTERPARTS)


def _import_name(owner: str, name: str) -> Any:
    """Import a public name of a module on its first use, with only the packages that it needs."""
    module = import_module(owner)
    homes: dict[str, str] = vars(module)["_HOME"]
    if name not in homes:
        message = f"module '{owner}' has no attribute '{name}'"
        if counterpart := _COUNTERPARTS["kic"].get(name):
            message += f". Use {counterpart}."
        for place in ("kic", "kic.results"):
            if name in import_module(place).__all__:
                message += f". Use {place}.{name}."
        raise AttributeError(message, name=name, obj=module)
    home = import_wing(f"kic.{homes[name]}", f"{owner}.{name}")
    # a package may have a module with its name
    found = home if homes[name] == name else getattr(home, name, home)
    vars(module)[name] = found = import_module("kic.numerics.calls").explain(found)
    return found


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    return _import_name(__name__, name)


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
