"""Save and compare the results of public questions on all shipped models.

* ``python tests/snapshot.py save FILE.npz`` before a change and ``… compare FILE.npz`` after it list results
  that differ by more than 1e-13 of their size, in shape, in type or in their error, and count those that are
  not equal bit for bit. Names of models after the file restrict both.
* ``… against REV`` compares with the results of a commit, made by the questions of this checkout.
* ``… pin`` writes short digests of the results, and counts of operations and steps, for tests; see `pins`.

All calls to kic are in the first part, so that a changed interface needs edits there alone; names of results
in the files do not change.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import kic

Parts = dict[str, Any]


def parts(result: Any, names: str) -> Parts:
    """Return attributes of a result by name."""
    return {name: getattr(result, name) for name in names.split()}


class Case:
    """A model at one configuration and at a batch of three, with a motion of its coordinates."""

    def __init__(self, name: str) -> None:
        step, of, wrt, task = MODELS[name]
        self.m = kic.load(name)
        self.q = list(self.m.coordinates)
        self.of, self.wrt, self.task = of.split(), wrt.split(), task.split()
        drawn = self.m.at()
        self.inputs = {q: drawn.value(q) + step * np.sin(1 + 2 * k) for k, q in enumerate(self.q)}
        self.ways = {
            q: drawn.value(q) + np.array([0.2, 0.5, 0.9]) * (x - drawn.value(q))
            for q, x in self.inputs.items()
        }
        self.c, self.batch = self.m.at(self.inputs), self.m.path(self.ways)
        self.qd, self.qdd, self.qddd = (np.cos(1 + 3 * np.arange(self.m.dof) + k) for k in range(3))
        # one actuator more than coordinates, and values of the coordinates near those of the configuration
        self.actuators, self.weights = [*self.q, self.wrt[0]], np.ones(self.m.dof + 1)
        self.values = np.concatenate([np.atleast_1d(x) for x in self.near(1.0).values()])
        self.ud, self.udd = (0.1 * np.sin(2 + np.arange(len(self.task)) + k) for k in range(2))

    def near(self, share: float) -> dict[str, Any]:
        """Return inputs near those of the configuration."""
        return {q: x + share * 0.01 for q, x in self.inputs.items()}


def coefficients(c: Any, of: Any, order: int, wrt: Any = None) -> Parts:
    """Return rows, columns, values and tensors."""
    found = c.coefficients(of, order=order, wrt=wrt)
    return {"rows": found.rows, "columns": found.columns, **parts(found, "values" + " G H D"[: 2 * order])}


def dynamics(c: Any, **options: Any) -> Parts:
    """Return the tensors of the dynamics, and an effort and an acceleration from them."""
    d = c.dynamics(**options)
    x = np.cos(np.arange(d.I.shape[-1]))
    return {
        **parts(d, "coordinates I P load damping"),
        "effort": d.inverse_dynamics(x, x),
        "acceleration": d.forward_dynamics(x, x),
    }


def motion(c: Any, *args: Any, **options: Any) -> Parts:
    """Return values, velocities, accelerations and jerks."""
    return dict(zip(("value", "velocity", "acceleration", "jerk"), c.motion(*args, **options), strict=True))


def joint_forces(c: Any, *args: Any, **options: Any) -> Parts:
    """Return forces, moments and efforts."""
    return parts(c.joint_forces(*args, **options), "force moment effort")


def linearize(c: Any, *args: Any, **options: Any) -> Parts:
    """Return the matrices of the linearization and its modes."""
    found = c.linearize(*args, **options)
    return {**parts(found, "T K C I"), "growth": found.modes().growth}


def resolve(c: Any, *args: Any, **options: Any) -> Parts:
    """Return the resolved motion with its effort."""
    return parts(c.resolve_redundancy(*args, **options), "qd qdd effort multiplier velocity_residual")


def operational_space(result: Any) -> Parts:
    """Return the tensors of the task."""
    return parts(result, "G Lambda mu p inverse projector damping")


def mobility(m: Any, c: Any) -> Parts:
    """Return the counts and the shares."""
    return parts(m.mobility(c), "dof first_order redundant coordinates shares")


def ellipsoid(c: Any, *args: Any, **options: Any) -> Parts:
    """Return the measures of an ellipsoid."""
    return parts(c.ellipsoid(*args, **options), "semi_axes manipulability condition isotropy")


def simulate(m: Any, c: Any, t: float, **options: Any) -> Parts:
    """Return the motion and the energies."""
    run = m.simulate(t, near=c, **options)
    energy = run.energy
    # a difference of energies, of the size of their rounding errors
    residual = {"residual": energy.residual + energy.kinetic}
    return {**parts(run, "t q qd"), **parts(energy, "kinetic potential work"), **residual}


def tracked(s: Case, path: dict[str, Any], names: str) -> Parts:
    """Return the states and other results of a tracked path."""
    found = s.m.track(path, np.linspace(0, 1, 5), near=s.c)
    return {"state": found.configuration.state, **parts(found, names)}


def table(found: Any) -> Parts:
    """Return the columns of a table."""
    return {"columns": found.columns, "values": np.stack([x.values for x in found.variables], axis=-1)}


def evaluate(s: Case, order: int, wrt: Any) -> Parts:
    """Return results of an evaluator at one state, at a batch, and the check of one state."""
    f = s.m.prepare.coefficients_and_dynamics(s.of, order=order, wrt=wrt)
    one, many = f(s.c.state), f(s.batch.state)
    found = {f"one/{k}": getattr(one, k) for k in ("I", "P", "load", "damping")}
    found |= {f"many/{k}": getattr(many, k) for k in ("I", "P", "load", "damping")}
    for name in s.of:
        found |= {f"one/{name}/{k}": getattr(one[name], k) for k in "GHD"[:order]}
    again = f(s.batch.state, out=f(s.batch.state))
    found |= {f"again/{k}": getattr(again, k) for k in ("I", "P")}
    return {**found, "check": f.check(s.c.state)}


def evaluate_motion(s: Case, wrt: Any) -> Parts:
    """Return results of the evaluators of motions, of poses, of coefficients and of dynamics."""
    prepare, state, rates = s.m.prepare, s.c.state, (s.qd, s.qdd, s.qddd)
    return {
        **parts(prepare.motion(s.of, wrt=wrt)(state, *rates), "value velocity acceleration jerk"),
        **parts(prepare.pose(s.of[1], wrt=wrt)(s.batch.state, s.qd), "p R twist G"),
        "H": prepare.coefficients(s.of, wrt=wrt)(state)[s.of[0]].H,
        "I": prepare.dynamics(wrt=wrt, loads=False)(state).I,
    }


def other_mechanism(m: Any) -> Parts:
    """Return dynamics of a mechanism as it is drawn, and coefficients of its last body."""
    found = parts(m.at().dynamics(), "coordinates I P load damping")
    return {**found, "G": m.at().coefficients(m.bodies[-1].name, order=1).G}


# name of the question: function of a case, for all models
QUESTIONS: dict[str, Callable[[Case], Any]] = {
    "at": lambda s: {**parts(s.c, "state coordinates batch"), "phi": s.c._phi},
    "at/batch": lambda s: parts(s.batch, "state ok"),
    "at/near": lambda s: parts(s.m.at(s.near(1.0), near=s.c), "state"),
    "at/mask": lambda s: parts(
        s.m.at({q: np.array([x, np.nan]) for q, x in s.inputs.items()}, failures="mask"), "state ok"
    ),
    "value": lambda s: {name: s.c.value(name) for name in s.of[:1] + s.q},
    "pose": lambda s: s.c.pose(s.of[1]).as_matrix(),
    "displacement": lambda s: s.c._pose(s.of[1]),
    "euler": lambda s: s.c.value(f"{s.of[1]}.euler_xyz"),
    "coefficients/1": lambda s: coefficients(s.c, s.of, 1),
    "coefficients/2": lambda s: coefficients(s.c, s.of, 2),
    "coefficients/3": lambda s: coefficients(s.c, s.of, 3),
    "coefficients/1/wrt": lambda s: coefficients(s.c, s.of, 1, s.wrt),
    "coefficients/2/wrt": lambda s: coefficients(s.c, s.of, 2, s.wrt),
    "coefficients/3/wrt": lambda s: coefficients(s.c, s.of, 3, s.wrt),
    "coefficients/batch": lambda s: coefficients(s.batch, s.of, 2, s.wrt),
    "coefficients/com": lambda s: parts(s.c.coefficients("com"), "values G H"),
    "dynamics": lambda s: dynamics(s.c),
    "dynamics/wrt": lambda s: dynamics(s.c, wrt=s.wrt),
    "dynamics/batch": lambda s: dynamics(s.batch, wrt=s.wrt),
    "dynamics/motors": lambda s: dynamics(s.c, motors=True),
    "contributions": lambda s: parts(
        s.c.body_contributions(), "bodies I_linear I_angular P_linear P_angular"
    ),
    "contributions/wrt": lambda s: parts(s.c.body_contributions(wrt=s.wrt), "I_linear P_angular"),
    "centroidal_momentum": lambda s: parts(s.c.centroidal_momentum(), "matrix derivative"),
    "inverse_dynamics/static": lambda s: s.c.inverse_dynamics(),
    "inverse_dynamics": lambda s: s.c.inverse_dynamics(s.qd, s.qdd),
    "inverse_dynamics/inertial": lambda s: s.c.inverse_dynamics(s.qd, s.qdd, loads=False),
    "inverse_dynamics/wrt": lambda s: s.c.inverse_dynamics(s.qd, s.qdd, wrt=s.wrt),
    "inverse_dynamics/batch": lambda s: s.batch.inverse_dynamics(s.qd, s.qdd, wrt=s.wrt),
    "regressor": lambda s: parts(s.c.regressor(s.qd, s.qdd), "parameters matrix values"),
    "regressor/batch/wrt": lambda s: s.batch.regressor(s.qd, s.qdd, wrt=s.wrt).matrix,
    "forward_dynamics": lambda s: s.c.forward_dynamics(s.qd, s.qdd),
    "forward_dynamics/wrt": lambda s: s.c.forward_dynamics(s.qd, s.qdd, wrt=s.wrt),
    "motion": lambda s: motion(s.c, s.of, s.qd, s.qdd, s.qddd),
    "motion/wrt": lambda s: motion(s.c, s.of, s.qd, s.qdd, s.qddd, wrt=s.wrt),
    "motion/batch": lambda s: motion(s.batch, s.of, s.qd, s.qdd, s.qddd),
    "energy/kinetic": lambda s: s.c.dynamics().kinetic_energy(s.qd),
    "energy/potential": lambda s: s.batch.potential_energy(),
    "operational_space": lambda s: operational_space(s.c.operational_space(s.task)),
    "operational_space/wrt": lambda s: operational_space(s.c.operational_space(s.task, wrt=s.wrt)),
    "resolve": lambda s: resolve(s.c, s.task, s.ud, s.udd),
    "resolve/energy": lambda s: resolve(s.c, s.task, s.ud, s.udd, criterion="minimum kinetic energy"),
    "resolve/damped": lambda s: resolve(s.c, s.task, s.ud, s.udd, damping=0.1, wrt=s.wrt),
    "shaking_force": lambda s: parts(s.c.shaking_force(s.qd, s.qdd), "force moment"),
    "shaking_force/batch/wrt": lambda s: parts(s.batch.shaking_force(s.qd, s.qdd, wrt=s.wrt), "force moment"),
    "joint_forces": lambda s: joint_forces(s.c, s.qd, s.qdd),
    "joint_forces/wrt": lambda s: joint_forces(s.c, s.qd, s.qdd, wrt=s.wrt, criterion="minimum norm"),
    "linearize": lambda s: linearize(s.c, s.qd, s.qdd),
    "linearize/wrt": lambda s: linearize(s.c, s.qd, s.qdd, wrt=s.wrt),
    "state_space": lambda s: parts(s.c.linearize().state_space(outputs=s.of[:1]), "A B C D states inputs"),
    "mobility": lambda s: mobility(s.m, s.c),
    "singularities": lambda s: s.batch.singularities(drivers=s.wrt, of=s.task).measures,
    "ellipsoid/velocity": lambda s: ellipsoid(s.c, s.task),
    "ellipsoid/inertia": lambda s: ellipsoid(s.c, s.task, kind="inertia"),
    "manipulability_gradient": lambda s: s.c.ellipsoid(s.task).gradient(),
    "distribute": lambda s: parts(
        s.c.distribute(s.qd, actuators=s.actuators, criterion=s.weights), "effort internal"
    ),
    "motor_demand": lambda s: parts(s.c.motor_demand(s.qd, s.qdd, s.qddd), "speed torque current voltage"),
    "prepare/2": lambda s: evaluate(s, 2, None),
    "prepare/3/wrt": lambda s: evaluate(s, 3, s.wrt),
    "prepare/inverse_dynamics": lambda s: s.m.prepare.inverse_dynamics()(s.c.state, s.qd, s.qdd),
    "prepare/inverse_dynamics/wrt": lambda s: s.m.prepare.inverse_dynamics(wrt=s.wrt)(
        s.batch.state, s.qd, s.qdd
    ),
    "prepare/regressor": lambda s: s.m.prepare.regressor()(s.c.state, s.qd, s.qdd),
    "prepare/forward_dynamics": lambda s: s.m.prepare.forward_dynamics()(s.c.state, s.qd, s.qdd),
    "prepare/operational_space": lambda s: operational_space(
        s.m.prepare.operational_space(s.task)(s.c.state)
    ),
    "prepare/resolve": lambda s: parts(
        s.m.prepare.resolve_redundancy(s.task)(s.c.state, s.ud, s.udd), "qd qdd"
    ),
    "prepare/motion": lambda s: evaluate_motion(s, None),
    "prepare/motion/wrt": lambda s: evaluate_motion(s, s.wrt),
    "prepare/position": lambda s: s.m.prepare.position()(s.c.state, s.values),
    "prepare/position/batch": lambda s: s.m.prepare.position()(s.batch.state, s.values),
    "table": lambda s: table(s.batch.table([*s.of, *s.q])),
    "force_table": lambda s: table(s.batch.force_table(s.qd, s.qdd)),
    "mechanical_advantage": lambda s: kic.metrics.mechanical_advantage(s.task[0], s.q[0])(s.batch),
    "internal_loads": lambda s: parts(
        s.c.internal_loads(actuators=s.actuators, criterion=s.weights), "G H dimension"
    ),
    "actuator_dynamics": lambda s: parts(
        s.c.actuator_dynamics(actuators=s.actuators, criterion=s.weights), "I P load"
    ),
    "track": lambda s: tracked(
        s, {x: s.c.value(x) + 0.01 * u * np.arange(5.0) for x, u in zip(s.task, s.ud, strict=True)}, "qd"
    ),
    "hold_spins": lambda s: other_mechanism(s.m.hold_spins()),
    "lock": lambda s: other_mechanism(s.m.lock(s.q[-1:])),
    "vary": lambda s: other_mechanism(s.m.vary([f"{s.of[0]}.at.x"])),
    "without": lambda s: other_mechanism(s.m.without(s.of[0])),
    "replace": lambda s: other_mechanism(s.m.replace(gravity=(1.0, 2.0, 3.0))),
    "add": lambda s: other_mechanism(
        s.m.add(
            kic.Point("anchor", "ground", at=(0.1, 2.0, 0.3)),
            kic.Point("eye_of_spring", s.m.bodies[-1].name, at=(0.3, 0.2, 0.1)),
            kic.Spring("a_spring", ("anchor", "eye_of_spring"), stiffness=7.0, rest=0.2, damping=0.4),
        )
    ),
    "simulate": lambda s: simulate(s.m, s.c, 0.02),
    # errors
    "error/unknown": lambda s: s.c.coefficients("nothing"),
    "error/of": lambda s: s.c.coefficients([], order=2),
    "error/order": lambda s: s.c.coefficients(s.of, order=4),
    "error/count": lambda s: s.c.coefficients(s.of, wrt=[*s.wrt, s.of[0]]),
    "error/dependent": lambda s: s.c.dynamics(wrt=[f"{s.of[1]}.wx"] * s.m.dof),
    "error/shape": lambda s: s.c.inverse_dynamics(np.zeros(s.m.dof + 1)),
    "error/nan": lambda s: s.c.forward_dynamics(np.full(s.m.dof, np.nan)),
    "error/failures": lambda s: s.c.dynamics(failures="none"),
    "error/applied": lambda s: s.c.dynamics(applied={"nothing": [0.0, 0.0, 0.0]}),
    "error/at": lambda s: s.m.at(np.zeros(s.m.dof + 1)),
    "error/far": lambda s: s.m.at({f"{s.of[0]}.{x}": 1e4 for x in "xyz"[: s.m.dof]}),
    "error/members": lambda s: s.m.at({q: np.array([x, np.inf]) for q, x in s.inputs.items()}),
    "error/task": lambda s: s.c.operational_space([*s.wrt, *s.of]),
    "error/kind": lambda s: s.c.ellipsoid(s.task, kind="none"),
    "error/rates": lambda s: s.c.linearize(qdd=s.qdd, effort=s.qdd),
}


def bench(m: kic.Mechanism) -> dict[str, np.ndarray]:
    """Return columns of a measurement of a crank."""
    t = np.linspace(0.0, 4.0, 801)
    effort = np.sin(3 * t) + 0.01 * np.random.default_rng(1).normal(size=len(t))
    return {"t": t, "A": 3 * t + np.sin(5 * t), "A.effort": effort}


def poses(m: kic.Mechanism) -> dict[str, np.ndarray]:
    """Return columns of measured positions of a crank and a rocker."""
    A = np.linspace(0.0, 6.0, 30)
    return {"A": A, "D": m.at({"A": A}).value("D") + 1e-5 * np.sin(A) ** 3}


# further questions, for one model each
OTHERS: dict[str, dict[str, Callable[[Case], Any]]] = {
    "five-bar": {
        "assemblies": lambda s: parts(s.m.assembly_modes(s.inputs, starts=16).configuration, "state"),
        "independent_sets": lambda s: {
            "names": [" ".join(one.names) for one in s.m.mobility().independent_sets(s.c).sets],
            "worst": [one.worst for one in s.m.mobility().independent_sets(s.c).sets],
        },
        "unlock": lambda s: other_mechanism(s.m.lock({"A": 2.0}).unlock("A")),
        "sweep": lambda s: (
            s.m.sweep(
                {"A": np.linspace(1.0, 1.3, 4), "E": np.linspace(1.4, 1.6, 3)},
                kic.metrics.manipulability("tip.x", "tip.y"),
            ).values
        ),
        "simulate/effort": lambda s: simulate(
            s.m, s.c, 0.05, effort=lambda t, now: np.array([np.sin(t), 0.1])
        ),
    },
    "four-bar": {
        "equilibrium": lambda s: {"phi": s.m.find_equilibrium(near=s.c).configuration._phi},
        "calibrate": lambda s: parts(
            s.m.calibrate(poses(s.m), ["coupler.length", "D.at.x"], offsets="D", noise={"D": 1e-3}),
            "values covariance deviation",
        ),
        "identify": lambda s: parts(s.m.identify(bench(s.m), cutoff=8.0), "values covariance noise residual"),
        "tolerances": lambda s: parts(
            s.c.tolerance_analysis("tip", {"crank.length": 1e-3, "C.clearance": 2e-3, "D.value": 1e-2}),
            "nominal mean covariance share worst_case",
        ),
        "mobility/finite": lambda s: parts(s.m.mobility(s.c), "finite infinitesimal nearby"),
        "path": lambda s: parts(s.m.path({"A": np.linspace(1.0, 3.0, 9)}), "state"),
        "singularities/found": lambda s: {
            str(k): found.configuration._phi
            for k, found in enumerate(
                s.m.path({"A": 1.2 + np.linspace(0, 2 * np.pi, 60)}).singularities(drivers="D")
            )
        },
        "sensitivity": lambda s: s.m.sensitivity(
            lambda m: m.at({"A": 1.2}).inverse_dynamics([1.0], [2.0]), "coupler.mass"
        ),
        "sensitivity/rows": lambda s: s.c.sensitivity(
            ["tip", "D"], ["coupler.length", {"B.at.x": 1.0, "B.at.y": 2.0}, "coupler.mass"]
        ),
    },
    "four-bar-motor": {"simulate/voltage": lambda s: simulate(s.m, s.c, 0.02, effort=[12.0])},
    "panda": {
        "follow": lambda s: tracked(
            s, {"flange": s.c.value("flange") + np.linspace(0, 0.05, 5)[:, None]}, "qd error"
        ),
    },
    "planar-4r": {
        "close_loops": lambda s: other_mechanism(
            s.m.add(kic.Point("pin", "ground", at=(1.0, 0.5, 0.0))).close_loops([("tip", "pin", "revolute")])
        ),
    },
    "three-legged-robot": {"chain": lambda s: other_mechanism(s.m.chain("platform", through="A1"))},
    "three-finger-hand": {"grasp": lambda s: parts(s.c.grasp("ball"), "G J internal")},
    "walking-machine": {
        "internal_loads": lambda s: parts(s.c.internal_loads(actuators=["B1", "C1", "B2", "C2"]), "basis"),
        "actuator_dynamics": lambda s: parts(
            s.c.actuator_dynamics(actuators=["B1", "C1", "B2", "C2"]), "I P load"
        ),
    },
}

# step of the coordinates from the reference; outputs (a point and a body); other coordinates; rows of a task
# ruff: noqa: E501
# fmt: off
MODELS = {
    "bennett": (0.3, "M bar3", "M.x", "M.x"),
    "bevel-wrist": (0.3, "finger hand", "finger.x finger.y tip.y", "finger.x finger.y"),
    "bricard": (0.3, "P link56", "P.x", "P.x"),
    "delta": (0.3, "gripper plate", "gripper.x gripper.y gripper.z", "gripper.x gripper.y"),
    "five-bar": (0.3, "tip rocker", "tip.x tip.y", "tip.x"),
    "five-rod-suspension": (0.3, "contact carrier", "contact.x", "contact.x"),
    "four-bar": (0.3, "tip rocker", "tip.x", "tip.x"),
    "four-bar-motor": (0.3, "tip rocker", "tip.x", "tip.x"),
    "geared-five-bar": (0.3, "tip large_wheel", "tip.x", "tip.x"),
    "gough-stewart": (0.3, "eye platform", "eye.x eye.y eye.z S6.3 S6.2 S6.1", "eye.x eye.y eye.z"),
    "horn-three-link": (0.3, "tip link3", "tip.x tip.y link3.wz", "tip.x tip.y"),
    "horn-two-link": (0.3, "tip link2", "tip.x link2.wz", "tip.x"),
    "jansen-leg": (0.3, "hip shank", "foot.x", "foot.x"),
    "ladder": (0.3, "tip coupler3", "tip.x", "tip.x"),
    "lee-puma": (0.3, "hand link6", "hand.x hand.y hand.z wrist.y wrist.z link6.wx", "hand.x hand.y hand.z"),
    "leg": (0.3, "tip link3", "tip.x tip.y tip.z", "tip.x tip.y"),
    "leg-offsets": (0.3, "tip link3", "tip.x tip.y tip.z", "tip.x tip.y"),
    "panda": (0.3, "flange link7", "flange.x flange.y flange.z wrist.x wrist.y elbow.y link7.wy", "flange.x flange.y flange.z"),
    "parallel-serial": (0.3, "tip hand", "tip.x tip.y tip.z wrist.x C3 B3", "tip.x tip.y tip.z"),
    "peaucellier": (0.3, "tracer crank", "tracer.y", "tracer.y"),
    "planar-4r": (0.3, "tip link4", "tip.x tip.y elbow2.x elbow2.y", "tip.x tip.y elbow2.x"),
    "puma560": (0.3, "face link6", "face.x face.y face.z tool.x link6.wz wrist_roll", "face.x face.y face.z"),
    "puma560-motors": (0.3, "face link6", "face.x face.y face.z tool.x link6.wz wrist_roll", "face.x face.y face.z"),
    "quadruped": (0.3, "head shank_hr", "head.x float.2 float.3 float.4 float.5 float.6", "head.x head.y head.z"),
    "rrprrr": (0.3, "hand link6", "hand.x hand.y hand.z link6.wx link6.wy A", "hand.x hand.y hand.z"),
    "rssr": (0.3, "flag rockerarm", "flag.x flag.y", "flag.x"),
    "sarrus": (0.3, "corner plate", "corner.z", "corner.z"),
    "scara": (0.3, "finger spindle", "finger.x finger.y finger.z quill.1", "finger.x finger.y finger.z"),
    "scotch-yoke": (0.3, "face slider", "face.x", "face.x"),
    "six-freedom-planar": (0.3, "tool platform", "tool.x tool.y D3 C3 D2 D1", "tool.x tool.y"),
    "slider-crank": (0.3, "crown slider", "crown.x", "crown.x"),
    "spatial-slider-crank": (0.3, "A slider", "slide theta3", "A.y"),
    "stephenson-six-bar": (0.3, "tip output", "tip.x", "tip.x"),
    "stewart-6r": (0.1, "tool plate", "tool.x tool.y tool.z F6 E6 D6", "tool.x tool.y tool.z"),
    "three-finger-hand": (0.3, "top upper3", "top.x top.y top.z bend3 bend2 bend1", "top.x top.y top.z"),
    "three-legged-robot": (0.3, "w platform", "w.x w.y C3", "w.x w.y"),
    "three-link-arm": (0.3, "frame3 link3", "frame3.x frame3.y link3.wz", "frame3.x frame3.y"),
    "three-rps": (0.05, "tool plate", "tool.x tool.y tool.z", "tool.x tool.y"),
    "three-rrr": (0.3, "tool platform", "tool.x tool.y C3", "tool.x tool.y"),
    "twin-arm": (0.3, "hook head", "hook.z eyes.x eyes.y right_hand.x right_hand.y right_hand.z left_hand.x left_hand.y left_hand.z yaw", "hook.z eyes.x eyes.y"),
    "two-arms": (0.3, "corner load", "corner.x corner.y corner.z grip2.x grip2.y grip1.y", "corner.x corner.y corner.z"),
    "two-finger-hand": (0.3, "tip object", "tip.x tip.y C2", "tip.x tip.y"),
    "walking-machine": (0.3, "load trunk", "load.x load.y C2", "load.x load.y"),
    "walking-machine-on-feet": (0.05, "load trunk", "load.x load.y C2", "load.x load.y"),
    "watt-parallel-motion": (0.3, "piston radius_bar", "piston.x", "piston.x"),
    "wrist-partitioned": (0.3, "grip hand", "grip.x grip.y grip.z wrist.x wrist.y hand.wz", "grip.x grip.y grip.z"),
}
# fmt: on

# below: no calls to kic

RTOL = 1e-13


def plain(value: Any) -> Any:
    """Return data of an error in the form of JSON, numbers with ten digits."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, float | np.floating):
        return float(f"{value:.9e}")
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)]
    if value is None or isinstance(value, str | int | bool):
        return value
    return type(value).__name__


def answer(function: Callable[..., Any], *args: Any) -> Parts:
    """Return the parts of a result, or its error with type and data."""
    try:
        found = function(*args)
    except Exception as error:
        data = plain(getattr(error, "numbers", {"message": str(error)}))
        return {"error": json.dumps([type(error).__name__, data], ensure_ascii=False, sort_keys=True)}
    return found if isinstance(found, dict) else {"value": found}


def as_array(value: Any) -> np.ndarray:
    """Return a part as an array without objects."""
    found = np.asarray("None" if value is None else value)
    return found.astype(str) if found.dtype == object else found


def answers(names: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield results by "model/question/part"."""
    for name in names:
        start = perf_counter()
        case = Case(name)
        for question, function in {**QUESTIONS, **OTHERS.get(name, {})}.items():
            for part, value in answer(function, case).items():
                yield f"{name}/{question}/{part}", as_array(value)
        print(f"{name}: {perf_counter() - start:.1f} s", file=sys.stderr)


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """Return how a result differs from the one on file; '' if it is equal within rounding."""
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        if a.dtype.kind == b.dtype.kind == "U":
            return f"was {a}, is {b}"
        return f"was {a.dtype}{a.shape}, is {b.dtype}{b.shape}"
    if a.dtype.kind in "fc":
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return "finite at other places"
        fine = np.isfinite(a)
        error, size = np.abs(a - b)[fine].max(initial=0.0), np.abs(a[fine]).max(initial=0.0)
        return f"relative error {error / size if size else np.inf:.1e}" if error > RTOL * size else ""
    return "" if np.array_equal(a, b) else f"was {a}, is {b}"


def compare(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> int:
    """Print differences and return their number."""
    found = dict[str, str]()
    for key in dict.fromkeys([*old, *new]):
        if key not in new:
            found[key] = "is missing"
        elif key not in old:
            found[key] = "is new"
        elif text := difference(old[key], new[key]):
            found[key] = text
    for key, text in found.items():
        print(f"{key}: {text}")
    same = sum(
        key in new and new[key].dtype == a.dtype and new[key].tobytes() == a.tobytes()
        for key, a in old.items()
    )
    print(f"{len(old)} results on file: {same} equal bit for bit, {len(found)} differences")
    return len(found)


def read(file: str, names: list[str]) -> dict[str, np.ndarray]:
    """Return the results of some models from a file."""
    with np.load(file) as data:
        return {key: data[key] for key in data.files if key.split("/")[0] in names}


def results_of(revision: str, names: list[str]) -> dict[str, np.ndarray]:
    """Return the results of a commit."""
    from benchmarks.versions import checkout

    with checkout(revision) as tree, TemporaryDirectory() as folder:
        file = os.path.join(folder, "results.npz")
        command = [sys.executable, "-W", "ignore", __file__, "save", file, *names]
        subprocess.run(command, check=True, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)})
        return read(file, names)


def main(action: str, file: str = "", *names: str) -> int:
    """Save, pin or compare, and return the exit code."""
    start = perf_counter()
    warnings.simplefilter("ignore")
    chosen = list(names) or list(MODELS)
    print(f"results of {Path(kic.__file__).parent}", file=sys.stderr)
    new = dict(answers(chosen))
    print(f"{len(new)} results in {perf_counter() - start:.0f} s", file=sys.stderr)
    if action == "save":
        np.savez_compressed(file, **new)
    elif action == "pin":
        import pins

        pins.write_results(new)
        pins.write_counts(
            operations={name: pins.operations(Case(name)) for name in pins.EXPORTED}, steps=pins.steps()
        )
    else:
        return int(compare((results_of if action == "against" else read)(file, chosen), new) > 0)
    return 0


if __name__ == "__main__":
    if sys.argv[1:] != ["pin"] and (len(sys.argv) < 3 or sys.argv[1] not in ("save", "compare", "against")):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
