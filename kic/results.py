"""Classes of results, for `isinstance`, annotations and their documentation; only kic makes instances."""

from typing import TYPE_CHECKING, Any

from kic import _import_name

# as in kic/__init__.py
# ruff: noqa: I001
if TYPE_CHECKING:
    from kic.analysis.identification.calibrate import Calibration as Calibration
    from kic.analysis.identification.identify import Identification as Identification
    from kic.analysis.joint_forces.joint_forces import JointForces as JointForces, Wrench as Wrench
    from kic.analysis.joint_forces.shaking_force import (
        Balance as Balance,
        Harmonics as Harmonics,
        ShakingForce as ShakingForce,
    )
    from kic.analysis.linear.equilibrium import Equilibrium as Equilibrium
    from kic.analysis.linear.linearize import Linearization as Linearization
    from kic.analysis.linear.modes import Modes as Modes
    from kic.analysis.linear.state_space import StateSpace as StateSpace
    from kic.analysis.positions.assembly_modes import (
        AssemblyModes as AssemblyModes,
        Completeness as Completeness,
    )
    from kic.analysis.positions.singularities import (
        Singularities as Singularities,
        Singularity as Singularity,
    )
    from kic.analysis.sweeps.result import Sweep as Sweep
    from kic.analysis.tolerances.tolerance_analysis import ToleranceAnalysis as ToleranceAnalysis
    from kic.description.description import Info as Info
    from kic.dynamics.contributions import Contributions as Contributions
    from kic.dynamics.drive_train import MotorDemand as MotorDemand
    from kic.dynamics.regressor import BaseParameters as BaseParameters, Regressor as Regressor
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
    from kic.io.order import JointOrder as JointOrder
    from kic.io.robot_writers import UrdfText as UrdfText
    from kic.mechanism.evaluator import Evaluator as Evaluator
    from kic.mechanism.input_sets import (
        IndependentSet as IndependentSet,
        IndependentSets as IndependentSets,
    )
    from kic.mechanism.prepared import Evaluators as Evaluators
    from kic.mechanism.whole_body import CentroidalMomentum as CentroidalMomentum
    from kic.numerics.polynomial_map import PolynomialMap as PolynomialMap
    from kic.numerics.tables import DataTable as DataTable
    from kic.plotting.animate import Animation as Animation
    from kic.plotting.draw import MechanismPicture as MechanismPicture
    from kic.simulation.result import Energy as Energy, Simulation as Simulation
    from kic.simulation.sampling import ControlSamples as ControlSamples, Measurement as Measurement
    from kic.tasks.actuation.distribution import Distribution as Distribution
    from kic.tasks.actuation.internal_loads import InternalLoads as InternalLoads
    from kic.tasks.grasp.force_closure import GraspClosure as GraspClosure
    from kic.tasks.grasp.grasp import Grasp as Grasp, GraspMotion as GraspMotion
    from kic.tasks.grasp.grip import GripForces as GripForces
    from kic.tasks.operational_space.ellipsoids import Ellipsoid as Ellipsoid
    from kic.tasks.operational_space.operational_space import OperationalSpace as OperationalSpace
    from kic.tasks.operational_space.pose import PoseMotion as PoseMotion
    from kic.tasks.operational_space.redundancy import RedundancyResolution as RedundancyResolution
    from kic.trajectory.tracking import TrackingResult as TrackingResult
    from kic.transfer.mobility.mobility import Mobility as Mobility
    from kic.transfer.mobility.passive_freedoms import PassiveFreedom as PassiveFreedom
    from kic.transfer.program import OutputMotion as OutputMotion
    from kic.ui.viewer.viewer import Viewer as Viewer

_NAMES = {
    "analysis.identification.calibrate": "Calibration",
    "analysis.identification.identify": "Identification",
    "analysis.joint_forces.joint_forces": "JointForces Wrench",
    "analysis.joint_forces.shaking_force": "Balance Harmonics ShakingForce",
    "analysis.linear.equilibrium": "Equilibrium",
    "analysis.linear.linearize": "Linearization",
    "analysis.linear.modes": "Modes",
    "analysis.linear.state_space": "StateSpace",
    "analysis.positions.assembly_modes": "AssemblyModes Completeness",
    "analysis.positions.singularities": "Singularities Singularity",
    "analysis.sweeps.result": "Sweep",
    "analysis.tolerances.tolerance_analysis": "ToleranceAnalysis",
    "description.description": "Info",
    "dynamics.contributions": "Contributions",
    "dynamics.drive_train": "MotorDemand",
    "dynamics.regressor": "BaseParameters Regressor",
    "export.actuation_table": "ActuationTable",
    "export.c_source": "CSource",
    "export.export": "ExportedForwardDynamics ExportedMap ExportedQuestion Exports",
    "export.fmu": "FMU",
    "export.numpy_function": "ExportedFunction",
    "io.order": "JointOrder",
    "io.robot_writers": "UrdfText",
    "mechanism.evaluator": "Evaluator",
    "mechanism.input_sets": "IndependentSet IndependentSets",
    "mechanism.prepared": "Evaluators",
    "mechanism.whole_body": "CentroidalMomentum",
    "numerics.polynomial_map": "PolynomialMap",
    "numerics.tables": "DataTable",
    "plotting.animate": "Animation",
    "plotting.draw": "MechanismPicture",
    "simulation.result": "Energy Simulation",
    "simulation.sampling": "ControlSamples Measurement",
    "tasks.actuation.distribution": "Distribution",
    "tasks.actuation.internal_loads": "InternalLoads",
    "tasks.grasp.force_closure": "GraspClosure",
    "tasks.grasp.grasp": "Grasp GraspMotion",
    "tasks.grasp.grip": "GripForces",
    "tasks.operational_space.ellipsoids": "Ellipsoid",
    "tasks.operational_space.operational_space": "OperationalSpace",
    "tasks.operational_space.pose": "PoseMotion",
    "tasks.operational_space.redundancy": "RedundancyResolution",
    "trajectory.tracking": "TrackingResult",
    "transfer.mobility.mobility": "Mobility",
    "transfer.mobility.passive_freedoms": "PassiveFreedom",
    "transfer.program": "OutputMotion",
    "ui.viewer.viewer": "Viewer",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a class on first use (PEP 562)."""
    return _import_name(__name__, name)


def __dir__() -> list[str]:
    """Return the names of the classes."""
    return __all__
