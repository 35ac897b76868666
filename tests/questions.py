"""Every question that a configuration answers, with mechanisms that can be asked, for tests of batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

import kic
from kic.numerics.display import Summary


class Case:
    """Mechanism with inputs around a regular configuration, and the names that its questions use."""

    def __init__(self, mechanism: kic.Mechanism, point: str, task: str, spread: float = 0.15) -> None:
        self.mechanism, self.point, self.task, self.spread = mechanism, point, task, spread
        names = mechanism.coordinates
        self.middle = np.array([mechanism.at().value(name) for name in names]).ravel()
        self.size = len(names)

    def inputs(self, batch: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Return inputs (..., M) of regular configurations."""
        return self.middle + rng.uniform(-self.spread, self.spread, (*batch, self.size))


def motors(mechanism: kic.Mechanism) -> kic.Mechanism:
    """Return a mechanism with a motor at each coordinate."""
    made = [
        kic.Motor(f"motor{k}", [name], ratios=[20.0], inertia=1e-5, resistance=0.5, torque_constant=0.02)
        for k, name in enumerate(mechanism.coordinates)
    ]
    return replace(mechanism, motors=made)


def bent(mechanism: kic.Mechanism, phi: list[float]) -> Case:
    """Return a case of an arm around given coordinates."""
    case = Case(mechanism, "tip", "tip.x")
    case.middle = np.array(phi)
    return case


CASES: dict[str, Callable[[], Case]] = {
    "arm": lambda: bent(motors(kic.load("horn-two-link")), [0.4, 0.9]),
    "five-bar": lambda: Case(motors(kic.load("five-bar")), "tip", "tip.x"),
    "four-bar": lambda: Case(kic.load("four-bar"), "tip", "A"),
    "hand": lambda: Case(kic.load("three-finger-hand"), "", "", 0.01),
}

Question = Callable[[kic.Configuration, Case, Mapping[str, np.ndarray]], Any]

# questions by name; `r` has random arrays of one row for each member
QUESTIONS: dict[str, Question] = {
    "phi": lambda c, case, r: c._phi,
    "state": lambda c, case, r: c.state,
    "ok": lambda c, case, r: c.ok,
    "value": lambda c, case, r: [c.value(name) for name in (case.point, *c.coordinates)],
    "pose": lambda c, case, r: c.pose(case.mechanism.bodies[-1].name),
    "displacement": lambda c, case, r: c._displacement(case.mechanism.bodies[-1].name),
    "euler": lambda c, case, r: c.value(f"{case.mechanism.bodies[-1].name}.euler_zyx"),
    "potential_energy": lambda c, case, r: c.potential_energy(),
    "kinetic_energy": lambda c, case, r: c.dynamics(failures="mask").kinetic_energy(r["qd"]),
    "coefficients 1": lambda c, case, r: c.coefficients(case.point, order=1, failures="mask"),
    "coefficients 3": lambda c, case, r: c.coefficients([case.point, "com"], order=3, failures="mask"),
    "dynamics": lambda c, case, r: c.dynamics(failures="mask"),
    "dynamics motors": lambda c, case, r: c.dynamics(failures="mask", motors=True),
    "motion": lambda c, case, r: c.motion(case.point, r["qd"], r["qdd"], r["qddd"], failures="mask"),
    "inverse_dynamics": lambda c, case, r: c.inverse_dynamics(r["qd"], r["qdd"], failures="mask"),
    "forward_dynamics": lambda c, case, r: c.forward_dynamics(r["qd"], r["qdd"], failures="mask"),
    "centroidal_momentum": lambda c, case, r: c.centroidal_momentum(failures="mask"),
    "contributions": lambda c, case, r: c.body_contributions(failures="mask"),
    "joint_forces": lambda c, case, r: c.joint_forces(r["qd"], r["qdd"]),
    "singularities": lambda c, case, r: c.singularities().measures,
    "distribute": lambda c, case, r: c.distribute(r["qd"], failures="mask"),
    "distribute with limits": lambda c, case, r: c.distribute(
        r["qd"], criterion="least largest share", effort_limits=[100.0] * case.size, failures="mask"
    ),
    "internal_loads": lambda c, case, r: c.internal_loads(failures="mask"),
    "actuator_dynamics": lambda c, case, r: c.actuator_dynamics(actuators=c.coordinates, failures="mask"),
    "operational_space": lambda c, case, r: c.operational_space([case.task], failures="mask"),
    "ellipsoid": lambda c, case, r: c.ellipsoid(case.point, failures="mask"),
    "ellipsoid of acceleration": lambda c, case, r: c.ellipsoid(
        case.point, kind="acceleration", qd=r["qd"], effort_limits=[1e3] * case.size, failures="mask"
    ),
    "ellipsoid of inertia": lambda c, case, r: c.ellipsoid([case.task], kind="inertia", failures="mask"),
    "manipulability_gradient": lambda c, case, r: c.ellipsoid([case.task], failures="mask").gradient(
        failures="mask"
    ),
    "resolve": lambda c, case, r: c.resolve_redundancy([case.task], r["one"], r["one"], failures="mask"),
    "linearize": lambda c, case, r: c.linearize(r["qd"], r["qdd"], failures="mask"),
    "modes": lambda c, case, r: c.linearize(failures="mask").modes(),
    "state_space": lambda c, case, r: c.linearize(r["qd"], failures="mask").state_space(),
    "state_space motors": lambda c, case, r: c.linearize(r["qd"], motors=True, failures="mask").state_space(),
    "discretize": lambda c, case, r: c.linearize(failures="mask").state_space().discretize(0.01),
    "drive": lambda c, case, r: c.motor_demand(r["qd"], r["qdd"], r["qddd"], failures="mask"),
    "metrics": lambda c, case, r: [
        kic.metrics.value(case.task)(c),
        kic.metrics.static_effort()(c),
        kic.metrics.transmission()(c),
    ],
    "table": lambda c, case, r: c.table().to_dataframe().to_numpy().reshape(*c.batch, case.size),
    "summary": lambda c, case, r: bool(c.summary().text()) and None,
    "draw": lambda c, case, r: c.draw() and None,
    "grasp": lambda c, case, r: c.grasp("ball", failures="mask"),
    "grasp motion": lambda c, case, r: c.grasp("ball", failures="mask").motion(r["qd"][..., :6]),
    "grasp closure": lambda c, case, r: c.grasp("ball", failures="mask").closure(),
    "grip": lambda c, case, r: _gripped(c.grasp("ball", failures="mask")),
}


def _gripped(grasp: kic.results.Grasp) -> kic.results.GraspMotion:
    """Return the loads at rest within the friction cones."""
    return grasp.motion(forces=grasp.grip())


# questions that only some mechanisms answer
ONLY = {"motors": ("arm", "five-bar"), "drive": ("arm", "five-bar"), "grasp": ("hand",), "grip": ("hand",)}
ASKED_OF_HANDS = ("phi", "state", "joint_forces", "potential_energy", "displacement", "dynamics")


def asked(case: str) -> list[str]:
    """Return the names of the questions that a mechanism answers."""
    names = [n for n in QUESTIONS if all(case in of for word, of in ONLY.items() if word in n)]
    if case == "hand":
        names = [n for n in names if n in ASKED_OF_HANDS or n.startswith("gr")]
    return names


def random_arguments(case: Case, batch: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return random arguments of one row for each member."""
    widths = {"qd": case.size, "qdd": case.size, "qddd": case.size, "one": 1}
    return {key: rng.uniform(0.5, 1.5, (*batch, width)) for key, width in widths.items()}


def arrays(result: Any, depth: int = 3) -> dict[str, np.ndarray]:
    """Return the arrays of a result by their place in it, also those of its properties."""
    if isinstance(result, np.ndarray | float | bool | np.generic):
        return {"": np.asarray(result)}
    if hasattr(result, "as_matrix"):
        return {"": result.as_matrix()}
    if isinstance(result, Mapping):
        parts = {str(key): x for key, x in result.items()}
    elif isinstance(result, tuple | list):
        parts = {str(key): x for key, x in enumerate(result)}
    elif not depth or not type(result).__module__.startswith("kic.") or isinstance(result, LEAVES):
        return {}
    else:
        parts = {key: getattr(result, key) for key in attributes_of(result)}
    made = {}
    for key, part in parts.items():
        made |= {f"{key}.{below}".rstrip("."): a for below, a in arrays(part, depth - 1).items()}
    return made


LEAVES = (kic.Configuration, kic.Mechanism, kic.Contact, Summary)


# properties of ellipsoids of inertia, and those of another question
SOMETIMES = ("masses", "contact_set")
# arguments that are attributes of their results
GIVEN = ("qd", "qdd", "demand", "limits")


def attributes_of(result: Any) -> list[str]:
    """Return the names of the public attributes and properties of a result."""
    kinds = property, cached_property
    names = {key for key in vars(result) if not key.startswith("_")}
    for base in type(result).__mro__:
        names |= {k for k, x in vars(base).items() if isinstance(x, kinds) and not k.startswith("_")}
    omitted = {"batch", "configuration", "mechanism", "scaling", *GIVEN}
    return sorted(names - omitted - ({*SOMETIMES} if getattr(result, "kind", "") != "inertia" else set()))
