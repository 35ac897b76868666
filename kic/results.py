"""Classes of results, for `isinstance`, annotations and their documentation; only kic makes instances."""

from typing import TYPE_CHECKING, Any

from kic import _import_name

# as in kic/__init__.py
# ruff: noqa: I001
if TYPE_CHECKING:
    from kic.actuation.distribution import Distribution as Distribution
    from kic.actuation.internal_loads import InternalLoads as InternalLoads
    from kic.analysis.assembly_modes import AssemblyModes as AssemblyModes, Completeness as Completeness
    from kic.analysis.input_sets import IndependentSet as IndependentSet, IndependentSets as IndependentSets
    from kic.analysis.singularities import Singularities as Singularities, Singularity as Singularity
    from kic.analysis.whole_body import CentroidalMomentum as CentroidalMomentum
    from kic.description.description import Info as Info
    from kic.dynamics.contributions import Contributions as Contributions
    from kic.dynamics.drive_train import MotorDemand as MotorDemand
    from kic.evaluator import Evaluator as Evaluator
    from kic.export.actuation_table import ActuationTable as ActuationTable
    from kic.export.c_source import CSource as CSource
    from kic.export.export import (
        ExportedForwardDynamics as ExportedForwardDynamics,
        ExportedMap as ExportedMap,
        ExportedQuestion as ExportedQuestion,
        Exports as Exports,
    )
    from kic.export.fmu import FMU as FMU
    from kic.export.numpy_function import ExportedFunction as ExportedFunction
    from kic.grasp.force_closure import GraspClosure as GraspClosure
    from kic.grasp.grasp import Grasp as Grasp, GraspMotion as GraspMotion
    from kic.grasp.grip import GripForces as GripForces
    from kic.io.order import JointOrder as JointOrder
    from kic.io.robot_writers import UrdfText as UrdfText
    from kic.joint_forces.joint_forces import JointForces as JointForces, Wrench as Wrench
    from kic.linear.equilibrium import Equilibrium as Equilibrium
    from kic.linear.linearize import Linearization as Linearization
    from kic.linear.modes import Modes as Modes
    from kic.linear.state_space import StateSpace as StateSpace
    from kic.numerics.polynomial_map import PolynomialMap as PolynomialMap
    from kic.numerics.tables import DataTable as DataTable
    from kic.operational_space.ellipsoids import Ellipsoid as Ellipsoid
    from kic.operational_space.operational_space import OperationalSpace as OperationalSpace
    from kic.operational_space.pose import PoseMotion as PoseMotion
    from kic.operational_space.redundancy import RedundancyResolution as RedundancyResolution
    from kic.plotting.animate import Animation as Animation
    from kic.plotting.draw import MechanismPicture as MechanismPicture
    from kic.prepared import Evaluators as Evaluators
    from kic.simulation.result import Energy as Energy, Simulation as Simulation
    from kic.simulation.sampling import ControlSamples as ControlSamples, Measurement as Measurement
    from kic.sweeps.result import Sweep as Sweep
    from kic.trajectory.tracking import TrackingResult as TrackingResult
    from kic.transfer.mobility import Mobility as Mobility
    from kic.transfer.passive_freedoms import PassiveFreedom as PassiveFreedom
    from kic.transfer.program import OutputMotion as OutputMotion
    from kic.viewer.viewer import Viewer as Viewer

_NAMES = {
    "actuation.distribution": "Distribution",
    "actuation.internal_loads": "InternalLoads",
    "analysis.assembly_modes": "AssemblyModes Completeness",
    "analysis.input_sets": "IndependentSet IndependentSets",
    "analysis.singularities": "Singularities Singularity",
    "analysis.whole_body": "CentroidalMomentum",
    "description.description": "Info",
    "dynamics.contributions": "Contributions",
    "dynamics.drive_train": "MotorDemand",
    "evaluator": "Evaluator",
    "export.actuation_table": "ActuationTable",
    "export.c_source": "CSource",
    "export.export": "ExportedForwardDynamics ExportedMap ExportedQuestion Exports",
    "export.fmu": "FMU",
    "export.numpy_function": "ExportedFunction",
    "grasp.force_closure": "GraspClosure",
    "grasp.grasp": "Grasp GraspMotion",
    "grasp.grip": "GripForces",
    "io.order": "JointOrder",
    "io.robot_writers": "UrdfText",
    "joint_forces.joint_forces": "JointForces Wrench",
    "linear.equilibrium": "Equilibrium",
    "linear.linearize": "Linearization",
    "linear.modes": "Modes",
    "linear.state_space": "StateSpace",
    "numerics.polynomial_map": "PolynomialMap",
    "numerics.tables": "DataTable",
    "operational_space.ellipsoids": "Ellipsoid",
    "operational_space.operational_space": "OperationalSpace",
    "operational_space.pose": "PoseMotion",
    "operational_space.redundancy": "RedundancyResolution",
    "plotting.animate": "Animation",
    "plotting.draw": "MechanismPicture",
    "prepared": "Evaluators",
    "simulation.result": "Energy Simulation",
    "simulation.sampling": "ControlSamples Measurement",
    "sweeps.result": "Sweep",
    "trajectory.tracking": "TrackingResult",
    "transfer.mobility": "Mobility",
    "transfer.passive_freedoms": "PassiveFreedom",
    "transfer.program": "OutputMotion",
    "viewer.viewer": "Viewer",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a class on first use (PEP 562)."""
    return _import_name(__name__, name)


def __dir__() -> list[str]:
    """Return the names of the classes."""
    return __all__
