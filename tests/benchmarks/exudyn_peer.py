"""Mechanisms in Exudyn: every body free in space or in its plane, held by joints as constraints.

Exudyn integrates bodies and joint forces together, implicitly, to second order, with steps of one size. Of
its two methods for systems with joints the trapezoidal rule with constraints on rates (`TrapezoidalIndex2`)
is the more accurate one in these swings at the same number of steps, and about as fast.
"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import numpy as np

import kic
from benchmarks.peers import check, optional

# without range checks; must be set before the import, which then prints this
sys.exudynFast = True  # type: ignore[attr-defined]
with contextlib.redirect_stdout(io.StringIO()):
    exudyn = optional("exudyn")
    utilities = optional("exudyn.utilities") if exudyn is not None else None

MISSING = "Exudyn is not installed, its columns are empty: pip install 'exudyn>=1.13'"


class ExudynPeer:
    """The equal Exudyn model of a mechanism in its drawing, with the motion of one point recorded.

    Parameters
    ----------
    mechanism : kic.Mechanism
        Of revolute, prismatic, universal and spherical joints, with springs in prismatic ones; if all joints
        are hinges along z, of plane bodies.
    qd : (M,) ndarray
        Rates of the mechanism's coordinates at the start.
    point : str
        Point whose motion is recorded.
    """

    def __init__(self, mechanism: kic.Mechanism, qd: np.ndarray, point: str) -> None:
        if exudyn is None:
            raise ImportError(MISSING)
        self.mechanism, self.qd = mechanism, qd
        (self.point,) = (p for p in mechanism.points if p.name == point)
        self.start = mechanism.at()
        self.planar = all(j.type == "revolute" and not any(j.axis[:2]) for j in mechanism.joints)

    def run(self, times: np.ndarray, steps: int) -> np.ndarray:
        """Places (T, 3) of the point at equidistant times from zero on; the model is created again."""
        return self._record("Position", times, steps)

    def acceleration(self) -> np.ndarray:
        """Acceleration (3,) of the point at the start."""
        return self._record("Acceleration", np.array([0.0, 1e-9]), 1)[0]

    def _record(self, what: str, times: np.ndarray, steps: int) -> np.ndarray:
        """Values (T, 3) of the point while the system moves."""
        system, bodies = self._system()
        body = next(b for b in self.mechanism.bodies if b.name == self.point.body)
        sensor = system.AddSensor(
            exudyn.itemInterface.SensorBody(
                bodyNumber=bodies[body.name],
                localPosition=list(np.array(self.point.at) - body.com),
                outputVariableType=getattr(exudyn.OutputVariableType, what),
                storeInternal=True,
                writeToFile=False,
            )
        )
        system.Assemble()
        settings = exudyn.SimulationSettings()
        settings.timeIntegration.numberOfSteps = steps
        settings.timeIntegration.endTime = times[-1]
        if not self.planar:  # with a hundred unknowns and more its sparse solver is the faster one
            settings.linearSolver.solverType = exudyn.LinearSolverType.EigenSparse
        settings.solution.file.write = False
        settings.solution.sensors.writePeriod = times[1]
        exudyn.SolveDynamic(system, settings, solverType=exudyn.DynamicSolverType.TrapezoidalIndex2)
        found = np.array(system.GetSensorStoredData(sensor))
        if len(found) != len(times) or np.abs(found[:, 0] - times).max() > 1e-9 * times[-1]:
            raise AssertionError(f"{len(times)} equidistant moments were asked, {len(found)} others came.")
        return found[:, 1:]

    def _system(self) -> tuple[Any, dict[str, Any]]:
        """The model, and its bodies by name."""
        system = exudyn.SystemContainer().AddSystem()
        bodies = {"ground": system.CreateGround()}
        bodies |= {body.name: self._body(system, body) for body in self.mechanism.bodies}
        for joint in self.mechanism.joints:
            if self.planar:
                self._hinge(system, joint, bodies)
            else:
                self._join(system, joint, bodies)
        return system, bodies

    def _body(self, system: Any, body: kic.Body) -> Any:
        """A body, its axes those of the drawing."""
        # of a plane body only the moment about z counts, and others, if rounded, are complained of
        turn = np.array(body.inertia)
        turn = np.eye(3) * turn[2, 2] if self.planar else turn
        motion = self.start.coefficients(body.name, order=1).G @ self.qd
        turning = motion[3:]
        return system.CreateRigidBody(
            referencePosition=list(body.com),
            initialVelocity=list(motion[:3] + np.cross(turning, np.subtract(body.com, body.reference))),
            initialAngularVelocity=list(turning),
            inertia=utilities.RigidBodyInertia(mass=body.mass, inertiaTensor=turn),
            gravity=list(self.mechanism.gravity),
            create2D=self.planar,
        )

    def _place(self, name: str) -> np.ndarray:
        """Return the centre of a body in the reference configuration."""
        return next((np.array(b.com) for b in self.mechanism.bodies if b.name == name), np.zeros(3))

    def _hinge(self, system: Any, joint: kic.Joint, bodies: dict[str, Any]) -> None:
        """A hinge of plane bodies as constraints."""
        marker = exudyn.itemInterface.MarkerBodyPosition
        ends = [
            marker(bodyNumber=bodies[name], localPosition=list(joint.at - self._place(name)))
            for name in joint.bodies
        ]
        numbers = [system.AddMarker(end) for end in ends]
        system.AddObject(exudyn.itemInterface.ObjectJointRevolute2D(markerNumbers=numbers))

    def _join(self, system: Any, joint: kic.Joint, named: dict[str, Any]) -> None:
        """A joint in space as constraints, with its spring."""
        bodies = [named[name] for name in joint.bodies]
        at = list(self._place(joint.bodies[1]) if joint.at is None else joint.at)
        if joint.type == "prismatic":
            system.CreatePrismaticJoint(itemNumbers=bodies, position=at, axis=list(joint.axis))
            if any(joint.stiffness):
                system.CreateLinearSpringDamper(
                    itemNumbers=bodies,
                    position=at,
                    axis=list(joint.axis),
                    stiffness=joint.stiffness[0],
                    offset=joint.rest[0] - joint.value[0],
                )
        elif joint.type == "revolute":
            system.CreateRevoluteJoint(itemNumbers=bodies, position=at, axis=list(joint.axis))
        elif joint.type == "spherical":
            system.CreateSphericalJoint(itemNumbers=bodies, position=at)
        elif joint.type == "universal":
            first, second = (np.array(a) / np.linalg.norm(a) for a in (joint.axis, joint.axis2))
            # y of the first body stays at right angles to z of the second
            axes = np.stack([np.cross(first, second), first, second], axis=1)
            system.CreateGenericJoint(
                itemNumbers=bodies, position=at, rotationMatrixAxes=axes, constrainedAxes=[1, 1, 1, 1, 0, 0]
            )
        else:
            raise ValueError(f"'{joint.name}' is {joint.type}, which this peer does not have.")


def check_acceleration(peer: ExudynPeer) -> float:
    """Difference of the point's acceleration at the start from kic's, as a share of the largest.

    Exudyn takes what rates add to it by finite differences, to some 1e-9 of the acceleration at the rates
    of these swings; from rest it is exact.
    """
    c = peer.start
    co = c.coefficients(peer.point.name, order=2)
    qdd = c.dynamics().forward_dynamics(peer.qd, np.zeros_like(peer.qd))
    ours = co.G @ qdd + np.einsum("pmn,m,n->p", co.H, peer.qd, peer.qd)
    return check(1e-8 if peer.qd.any() else 1e-12, acceleration=(peer.acceleration(), ours))["acceleration"]
