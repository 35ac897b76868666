"""Every question of configurations, evaluators and exports, with mechanisms that can be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from four_points import regressor
from sampling import random_tree

import kic
from kic.export.export import Exports
from kic.mechanism.configuration import displacement
from kic.numerics.display import Summary


class Case:
    """Mechanism with inputs around a regular configuration, and the names that its questions use."""

    def __init__(self, mechanism: kic.Mechanism, point: str, task: str, spread: float = 0.15) -> None:
        self.mechanism, self.point, self.task, self.spread = mechanism, point, task, spread
        names = mechanism.coordinates
        c = mechanism.at()
        self.middle = c._phi if mechanism._model.is_open_chain else np.ravel([c.value(x) for x in names])
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


def zoo() -> kic.Mechanism:
    """Return a tree with every kind of joint, branched, with loads; some joints are written backwards."""
    kinds = ["revolute", "spherical", "fixed", "universal", "free", "planar", "cylindrical", "prismatic"]
    return random_tree(np.random.default_rng(21), kinds, branched=True, loads=True)


CASES: dict[str, Callable[[], Case]] = {
    "arm": lambda: bent(motors(kic.load("horn-two-link")), [0.4, 0.9]),
    "five-bar": lambda: Case(motors(kic.load("five-bar")), "tip", "tip.x"),
    "four-bar": lambda: Case(kic.load("four-bar"), "tip", "A"),
    "hand": lambda: Case(kic.load("three-finger-hand"), "", "", 0.01),
    "zoo": lambda: Case(zoo(), "p7", "gap", 1.0),
}

Question = Callable[[kic.Configuration, Case, Mapping[str, np.ndarray]], Any]

# questions by name; `r` has random arrays of one row for each member
QUESTIONS: dict[str, Question] = {
    "phi": lambda c, case, r: c._phi,
    "state": lambda c, case, r: c.state,
    "ok": lambda c, case, r: c.ok,
    "value": lambda c, case, r: [c.value(name) for name in (case.point, *c.coordinates)],
    "pose": lambda c, case, r: c.pose(case.mechanism.bodies[-1].name),
    "displacement": lambda c, case, r: displacement(c, case.mechanism.bodies[-1].name),
    "euler": lambda c, case, r: c.value(f"{case.mechanism.bodies[-1].name}.euler_zyx"),
    "potential_energy": lambda c, case, r: c.potential_energy(),
    "kinetic_energy": lambda c, case, r: c.dynamics(failures="mask").kinetic_energy(r["qd"]),
    "coefficients 1": lambda c, case, r: c.coefficients(case.point, order=1, failures="mask"),
    "coefficients 3": lambda c, case, r: c.coefficients([case.point, "com"], order=3, failures="mask"),
    "dynamics": lambda c, case, r: c.dynamics(failures="mask"),
    "dynamics motors": lambda c, case, r: c.dynamics(failures="mask", motors=True),
    "motion": lambda c, case, r: c.motion(case.point, r["qd"], r["qdd"], r["qddd"], failures="mask"),
    "inverse_dynamics": lambda c, case, r: c.inverse_dynamics(r["qd"], r["qdd"], failures="mask"),
    "regressor": lambda c, case, r: c.regressor(r["qd"], r["qdd"], failures="mask").matrix,
    "shaking_force": lambda c, case, r: c.shaking_force(r["qd"], r["qdd"], failures="mask").force,
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
    "ellipsoid of force": lambda c, case, r: c.ellipsoid(
        case.point, kind="force", effort_limits=[10.0] * case.size, failures="mask"
    ),
    "ellipsoid beyond the load": lambda c, case, r: c.ellipsoid(
        case.point, kind="acceleration", load=False, effort_limits=[1e3] * case.size, failures="mask"
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
NOT_OF_ZOOS = (
    "value", "distribute", "internal_loads", "actuator_dynamics", "ellipsoid",
    "manipulability_gradient", "modes", "metrics", "discretize", "draw", "summary", "table",
)  # fmt: skip


def asked(case: str) -> list[str]:
    """Return the names of the questions that a mechanism answers."""
    names = [n for n in QUESTIONS if all(case in of for word, of in ONLY.items() if word in n)]
    if case == "zoo":
        names = [n for n in names if n not in NOT_OF_ZOOS]
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


# --- questions of evaluators and exported functions ----------------------------------------------------


def arm(order: tuple[int, ...], coordinates: list[str] | None = None) -> kic.Mechanism:
    """Return a spatial arm whose joints are listed in some order."""
    J, at = kic.Joint, ((0, 0, 0), (1, 0, 0.1), (2, 0.2, 0), (2.5, 0.2, 0.3))
    joints = [
        J("base", "revolute", ("ground", "a"), at=at[0], axis=(0, 0, 1), damping=0.5, stiffness=0.2),
        J("elbow", "prismatic", ("a", "b"), at=at[1], axis=(0.2, 1, 0.3), damping=0.3),
        J("wrist", "revolute", ("b", "c"), at=at[2], axis=(0, 1, 0.2), armature=0.4),
        J("roll", "revolute", ("c", "d"), at=at[3], axis=(1, 0, 0.3), stiffness=0.7, rest=0.2),
    ]
    bodies = [
        kic.Body(name, mass=1.0 + k, com=(0.5 + k, 0.1, 0.2 * k), inertia=(0.1, 0.2, 0.25))
        for k, name in enumerate("abcd")
    ]
    return kic.Mechanism(
        "arm",
        bodies,
        [joints[k] for k in order],
        points=[kic.Point("tip", "d", at=(3, 0.2, 0.4))],
        gravity=(0, -9.81, 1.0),
        coordinates=coordinates,
    )


def ball_arm() -> kic.Mechanism:
    """Return an arm that ends with a ball joint with axes of its own, which is listed first."""
    m = arm((3, 1, 0, 2), None)
    laws = {"damping": (0.1, 0.2, 0.3), "armature": (0.3, 0.2, 0.1)}
    axes = {"axis": (1, 2, 0), "axis2": (-2, 1, 3)}
    return m.replace("roll", type="spherical", **axes, **laws)


def sprung(name: str, coordinates: list[str] | None = None) -> kic.Mechanism:
    """Return a closed mechanism with springs, dampers and rotors in all joints, in reverse order."""
    m = kic.load(name)
    for k, joint in enumerate(m.joints):
        count, valued = len(joint.components), len(joint.valued) == len(joint.components)
        laws = {
            "damping": [0.1 + k + n for n in range(count)],
            "armature": [0.02 * (k + n) for n in range(count)],
        }
        if valued and count:
            laws |= {"stiffness": [0.3 + n for n in range(count)], "rest": [0.1 * k] * count}
        m = m.replace(joint.name, **{key: x[0] if count == 1 else x for key, x in laws.items() if count})
    return m.replace(joints=m.joints[::-1], coordinates=coordinates or m.coordinates)


def grown(seed: int, kinds: list[str] | str, branched: bool) -> Callable[[], kic.Mechanism]:
    """Return a function that makes a random tree with loads."""
    return lambda: random_tree(np.random.default_rng(seed), kinds, branched, loads=True)


# mechanism, a task, and a body
MECHANISMS: dict[str, tuple[Callable[[], kic.Mechanism], list[str], str]] = {
    "arm": (lambda: arm((0, 1, 2, 3)), ["tip"], "d"),
    "wrist first": (lambda: arm((2, 3, 0, 1)), ["tip.x", "tip.z"], "d"),
    "base last": (lambda: arm((3, 2, 1, 0)), ["tip.y", "d.wx"], "c"),
    "named coordinates": (lambda: arm((1, 3, 0, 2), ["roll", "base", "wrist", "elbow"]), ["tip"], "d"),
    "ball": (ball_arm, ["tip.x", "tip.y"], "d"),
    "four-bar": (lambda: sprung("four-bar"), ["tip.x"], "coupler"),
    "four-bar by C": (lambda: sprung("four-bar", ["C"]), ["tip.x"], "coupler"),
    "five-bar": (lambda: sprung("five-bar", ["E", "A"]), ["tip.y", "tip.x"], "coupler"),
    "slider-crank": (lambda: sprung("slider-crank"), ["wristpin"], "rod"),
    "rssr": (lambda: sprung("rssr"), ["coupler.wx"], "coupler"),
    "three-rps": (lambda: sprung("three-rps"), ["plate.z", "plate.wx"], "plate"),
}
# others, of which evaluators alone are asked; with coordinates that they have not by themselves
OTHER_COORDINATES: dict[str, list[str]] = {
    "five-bar by its tip": ["tip.x", "tip.y"], "four-bar by D": ["D"], "puma560 by its hand": ["link6"],
    "scara by followers": ["motor1", "elbow", "quill.2", "quill.1"],
    "planar-4r": ["joint4", "joint3", "joint2", "joint1"],
}  # fmt: skip
EVALUATED = MECHANISMS | {
    "chain": (grown(3, "RPRR", False), ["p3.x", "gap"], "b3"),
    "ball in a tree": (grown(3, ["R", "spherical", "P"], True), ["gap", "p0.y"], "b2"),
    "free base": (grown(3, ["free", "R"], False), ["p1.x", "gap"], "b1"),
    "branched": (grown(3, "RRRRRR", True), ["gap", "p0.y"], "b5"),
    "bevel-wrist": (lambda: kic.load("bevel-wrist"), ["tip.x"], "hand"),
    "gough-stewart": (lambda: kic.load("gough-stewart"), ["platform.x", "L2"], "platform"),
    "delta": (lambda: kic.load("delta"), ["plate.z"], "plate"),
    "five-bar by its tip": (lambda: kic.load("five-bar"), ["B"], "coupler"),
    "four-bar by D": (lambda: kic.load("four-bar"), ["tip.x"], "coupler"),
    "puma560 by its hand": (lambda: kic.load("puma560"), ["tool.x"], "link4"),
    "scara by followers": (lambda: kic.load("scara"), ["tip.x"], "spindle"),
    "planar-4r": (lambda: kic.load("planar-4r"), ["tip.x"], "link3"),
}
BOTH = "coefficients_and_dynamics"
EXPORTED = [name for name in vars(Exports) if name[0] != "_"]
SINGLE = [name for name in EXPORTED if name != BOTH]
OPTIONS = {"criterion": "minimum kinetic energy"}


def moved(m: kic.Mechanism) -> kic.Configuration:
    """Return a configuration near the reference."""
    q = m._model.coordinate_values(m.coordinates, m.at().state[None])[0]
    return m.at(q + 0.04 * np.arange(1, 1 + q.size))


def options_of(question: str, of: list[str], body: str) -> dict[str, Any]:
    """Return the options of a question."""
    if question in ("inverse_dynamics", "forward_dynamics", "regressor", "dynamics", "position"):
        return {}
    options: dict[str, Any] = {"of": body if question == "pose" else of}
    if question.startswith("coefficients"):
        options["order"] = 3
    return options | (OPTIONS if question == "resolve_redundancy" else {})


def answered(
    c: kic.Configuration,
    question: str,
    of: list[str],
    body: str,
    x: Mapping[str, np.ndarray],
    wrt: list[str] | None = None,
) -> dict[str, Any]:
    """Return the results for the inputs of a prepared function, by coefficients and dynamics."""
    rates = [x[key] for key in ("qd", "qdd", "qddd") if key in x]
    if question == BOTH:
        return answered(c, "coefficients", of, body, x, wrt) | answered(c, "dynamics", of, body, x, wrt)
    if question == "coefficients":
        found = [(name, c.coefficients(name, order=3, wrt=wrt)) for name in of]
        return {f"{name}.{k}": getattr(r, k) for name, r in found for k in "GHD"}
    if question == "dynamics":
        d = c.dynamics(wrt=wrt)
        return {key: getattr(d, key) for key in ("I", "P", "load", "damping")}
    if question == "inverse_dynamics":
        return {"effort": c.dynamics(wrt=wrt).inverse_dynamics(*rates)}
    if question == "regressor":
        return {"regressor": regressor(c, *rates, wrt)}
    if question == "forward_dynamics":
        return {"qdd": c.dynamics(wrt=wrt).forward_dynamics(*rates, x["effort"])}
    if question == "motion":
        names = "velocity", "acceleration", "jerk"
        found = [(name, c.coefficients(name, order=3, wrt=wrt)) for name in of]
        return {f"{n}.{k}": getattr(r, k)(*rates[: i + 1]) for n, r in found for i, k in enumerate(names)}
    if question == "operational_space":
        s = c.operational_space(of, wrt=wrt)
        return {key: getattr(s, key) for key in ("Lambda", "inverse", "mu", "p", "damping")}
    if question == "pose":
        r, R = c.coefficients(body, order=1, wrt=wrt), c.pose(body).rotation.as_matrix()
        return {"p": r.values[:3], "R": R, "twist": r.G @ rates[0], "G": r.G}
    if question == "position":
        return {"state": c.state}
    if question == "actuation_map":
        r = c.coefficients(of)
        made = {"value": r.values, "J": r.G, "Jdot": np.einsum("pmn,m->pn", r.H, x["qd"])}
        return made | {"motor_effort": r.G.T @ x["effort"], "inertia": c.dynamics().I}
    z = x["secondary"], x["secondary_rate"]
    r = c.resolve_redundancy(of, x["ud"], x["udd"], secondary=z, wrt=wrt, **OPTIONS)
    return {"qd": r.qd, "qdd": r.qdd, "multiplier": r.multiplier}


def evaluated(c: kic.Configuration, f: Any, of: list[str], found: Any) -> dict[str, np.ndarray]:
    """Return the results of an evaluator by the names that `answered` gives them."""
    if isinstance(found, np.ndarray):
        names = {"inverse_dynamics": "effort", "forward_dynamics": "qdd", "position": "state"}
        return {names.get(f.question, f.question): found}
    if f.question == "motion":
        sizes = [len(c.coefficients(name, order=1).rows) for name in of]
        names = "velocity", "acceleration", "jerk"
        parts = [np.split(a, np.cumsum(sizes)[:-1], axis=-1) for a in found[1:]]
        return {f"{n}.{k}": a for k, p in zip(names, parts, strict=True) for n, a in zip(of, p, strict=True)}
    made = {}
    if f.question.startswith("coefficients"):
        made = {
            f"{n}.{k}": getattr(found[n], k) for n in of for k in "GHD" if getattr(found[n], k) is not None
        }
    if f.question != "coefficients":
        names = (
            "I",
            "P",
            "load",
            "damping",
            "Lambda",
            "inverse",
            "mu",
            "p",
            "R",
            "twist",
            "G",
            "qd",
            "qdd",
            "multiplier",
        )
        made |= {k: a for k in names if isinstance(a := getattr(found, k, None), np.ndarray)}
    return made


def inputs_of(f: Any, m: kic.Mechanism, c: kic.Configuration) -> dict[str, np.ndarray]:
    """Return numbers for the inputs of an exported function at a configuration."""
    rng = np.random.default_rng(3)
    known = {"state": c.state, "near": c.state}
    known["q"] = m._model.coordinate_values(m.coordinates, c.state[None])[0]
    return {name: known.get(name, rng.normal(size=shape)) for name, shape in f.inputs.items()}


class Asked:
    """An evaluator, with four members whose last two are equal but for their rates, and their arguments."""

    def __init__(self, question: str, name: str) -> None:
        make, self.of, self.body = EVALUATED[name]
        self.wrt, self.m = OTHER_COORDINATES.get(name), make()
        m = self.m
        self.options = options_of(question, self.of, self.body)
        self.f = getattr(m.prepare, question)(wrt=self.wrt, **self.options)
        rng, q = np.random.default_rng(3), m.at()._phi if m.dof == len(m._model.tree.columns) else None
        q = m._model.coordinate_values(m.coordinates, m.at().state[None])[0] if q is None else q
        self.c = m.at(q + 0.03 * np.array([1.0, -1.0, 2.0, 2.0])[:, None] * np.arange(1, 1 + q.size) / q.size)
        self.state = self.c.state
        columns = self.c.coefficients(m.joints[0].name, order=1, wrt=self.wrt).columns
        sizes = {key: len(columns) for key in ("qd", "qdd", "qddd", "effort", "secondary", "secondary_rate")}
        if "of" in self.options and question != "pose":
            sizes |= dict.fromkeys(("ud", "udd"), len(self.c.coefficients(self.of, order=1).rows))
        names = [
            key for key in self.f.motion if key in sizes and (question, key) != ("resolve_redundancy", "qd")
        ]
        self.x = {key: rng.normal(size=(4, sizes[key])) for key in names}
        if question == "position":
            self.x = {"values": np.stack([self.c.value(row) for row in self.f.names], axis=-1)}

    def __call__(self, k: Any, **more: Any) -> Any:
        return self.f(self.state[k], **{key: a[k] for key, a in self.x.items()}, **more)

    def numbers(self, found: Any) -> dict[str, np.ndarray]:
        return evaluated(self.c, self.f, self.of, found)


asked_of_evaluator = cache(Asked)
