"""Calls of all public callables with odd arguments, driven by their signatures.

``python -m tests.odd COUNT [SEED]`` makes many of them and prints their outcomes.
"""

from __future__ import annotations

import inspect
import os
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from importlib.util import find_spec
from time import perf_counter
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic import classics

MODULES = (kic, kic.trajectory, kic.controllers, kic.metrics, kic.products, kic.linkages, classics)
NAMES = ("four-bar", "horn-two-link", "rssr", "planar-4r", "four-bar-motor", "two-finger-hand", "strange")
STRUCTURES = ("truss", "weld")
# classes that only kic makes: their methods are called, not the classes
RESULTS = {
    "ActuationTable", "Animation", "Annulus", "AssemblyModes", "CentroidalMomentum", "Completeness",
    "Configuration", "Contributions", "DataTable",
    "ControlSamples", "CSource", "Distribution",
    "EffortDeviation", "Ellipsoid", "Energy", "Equilibrium", "Evaluator", "ExportedFunction", "FMU",
    "FourBarMotion", "Grasp",
    "GraspClosure", "GraspMotion", "GripForces", "IndependentSet", "IndependentSets", "Info", "InternalLoads",
    "JointForces", "JointOrder", "Linearization", "LinkWrenches", "Measurement", "MechanismPicture",
    "Mobility",
    "Modes", "Motion", "MotorDemand", "OperationCount", "OperationalSpace", "OutputMotion", "PoseMotion",
    "OrientationTrajectory", "PartComparison", "PassiveFreedom", "PathConstraints", "PathSamples",
    "PolynomialMap",
    "RedundancyResolution", "RotationSegments", "SampledMotion", "Simulation",
    "Singularities", "Singularity", "SplitDynamics", "Sweep", "TimeOptimal", "TrackingResult", "Trajectory",
    "UrdfText", "Viewer", "Wrench",
}  # fmt: skip
# methods that only kic calls, and those of tuples
INTERNAL = {
    "view",  # starts a server; see test_viewer.py
    "Evaluators.__call__", "Exports.__call__",  # raise an error in any case
    "ExportedMap.to_polynomial",  # needs one of two arguments; see test_certified_polynomials.py
    "count", "derivative", "describe", "descriptions", "index", "needed", "raw", "results", "sentences",
    "calls", "empty", "packed_motion", "part", "terms", "undriven_freedom",
    "JointLimits.rates", "Manipulability.rates",
    "PreferredConfiguration.rates", "Motion.__add__", "Motion.__getitem__",
    "PathSamples.both", "Tables.jacobian",
    "RotationSegments.__add__", "RotationSegments.__getitem__", "LinkWrenches.__add__",
    "LinkWrenches.__getitem__",
}  # fmt: skip
OPERATORS = ("__getitem__", "__call__", "__add__", "__matmul__")
# numbers of these are sizes of a task: those that are valid and large take long
SIZES = {
    "chunk", "contours", "count", "dt", "duration", "edges", "events", "fps", "gain", "grid", "joints", "ka",
    "kd",
    "kp", "limits_of", "max_steps", "n", "n_joints", "period", "samples", "scale", "speed", "starts", "t",
    "times", "width", "dpi",
}  # fmt: skip


class Table:
    """Array-like object, like a column of a data frame."""

    def __init__(self, values: Any, index: Any = None) -> None:
        self.values, self.index = values, index

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.values, dtype)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> Any:
        return self.values[key]


class Sour:
    """Object without array, text or truth value."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise ValueError("no array")

    def __bool__(self) -> bool:
        raise ValueError("no truth")

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __hash__ = None  # type: ignore[assignment]


class Text(str):
    """Subclass of str."""


def symbols() -> list[Any]:
    """Return symbols, if SymPy is installed."""
    try:
        from sympy import Symbol
    except ImportError:
        return []
    return [Symbol("x"), [Symbol("x")], np.array([Symbol("x"), Symbol("y")])]


PLAIN = [
    "", " ", "x", "tip", "A", "C", "shoulder", "ground", "tip.x", "tip.w", "A.1", ".", "a.b.c", "$x^$", "\\",
    "_A",
    "{0}", "%s", "\n", "\0", "a\0b", "\ud800", "ü", "A" * 3000, "nan", "1", "raise", "mask", "minimum norm",
    "coupler", "ground.x", "tip.rate", "energy", "velocity", "force", "position", "all", "both", "rest",
    "free",
    0, 1, 2, 3, -1, 7, -0.0, 0.5, -0.5, 1e-320, 1e-200, 1e-9, np.nan, np.inf, -np.inf, True, False, None, 1j,
    1 + 2j, complex(np.nan, 0), Fraction(1, 3), Decimal("0.1"), Decimal("NaN"), np.float32(1.5), np.int8(2),
    np.bool_(True), np.float64(0.3), np.complex128(1j), np.longdouble(1.5), np.str_("A"), Text("A"), b"A",
    b"\0",
    np.datetime64("2020"), np.timedelta64(1, "s"), date(2020, 1, 1), Ellipsis, NotImplemented, slice(None),
    kic,
    int, np.ndarray, kic.Body, MappingProxyType({"A": 1.0}), range(0), range(2), ValueError(),
    kic.InputError("x"), kic.Units(), kic.Body("b"), Rotation.identity(), Rotation.identity(2),
    RigidTransform.identity(), *symbols(),
]  # fmt: skip
IMPOSSIBLE = [10**400, -(10**400), 2**63]
HUGE = [10**18, 1e300, -1e200, 1e155]
# mutable or used up by a call, therefore made anew
MADE: list[Callable[[], Any]] = [
    object, Sour, dict, list, tuple, set, partial(Table, [0.1]), partial(Table, [1.0, 2.0], ["A", "C"]),
    partial(Table, ["A"]), partial(bytearray, b"1"), partial(memoryview, b"12"), lambda: {"A"}, lambda: {1.0,
    2.0},
    lambda: iter([]), lambda: iter(["A"]), lambda: (x for x in (1.0, 2.0)), lambda: map(str, "AB"),
    lambda: lambda *a, **k: None, lambda: lambda *a, **k: np.zeros(1), lambda: lambda *a, **k: "x",
    lambda: lambda *a, **k: np.nan, lambda: [1, "A"], lambda: [[1], [1, 2]], lambda: [[]], lambda: [[[[]]]],
    lambda: [None], lambda: ["A", "A"], lambda: [["A"]], lambda: {"A": None}, lambda: {"A": 1.0},
    lambda: {"A": "x"}, lambda: {"A": [1, 2]}, lambda: {"A": []}, lambda: {1: 1.0}, lambda: {None: 1},
    lambda: {"tip.x": 1.0}, lambda: {"A": (0, 1)}, lambda: {"A": np.nan}, lambda: {"x": 1.0}, lambda: {"": 1},
    lambda: {"A": {"A": 1}}, lambda: {"A": object()}, lambda: {"A": 1e300},
    lambda: {"A": Rotation.identity()},
    lambda: [b"A"], lambda: [True], lambda: [np.ones(2)], lambda: {"A" * 3000: 1.0}, lambda: ["A" * 3000],
    *(partial(np.array, x) for x in (
        None, "A", ["A"], [["A"]], 1.0, True, [1j], [b"A"], [None], [np.nan], [[np.inf]], [1e200, 1e200],
        [[0.0, np.nan]], [np.datetime64("2020")],
    )),
    lambda: np.array(["A", "C"], object), lambda: np.array([object()], object),
    lambda: np.array([np.datetime64("2020-01-01")], object), lambda: np.array([1.0, 2.0], object),
    lambda: np.zeros(1, "f4"), lambda: np.zeros(2, complex), lambda: np.zeros(2, bool), lambda: np.zeros(2,
    "i1"),
    lambda: np.zeros(1, [("a", float)]), lambda: np.ma.array([1.0], mask=[True]), lambda: np.ma.array([1.0]),
    lambda: np.ma.array([1.0, 2.0], mask=[True, False]), lambda: np.matrix([[1.0]]),
    *(partial(np.zeros, shape) for shape in ((0,), (0, 1), (2, 0), (0, 0), (3, 1), (2, 2), (3, 3), (3, 3,
    3))),
]  # fmt: skip


def odd(rng: random.Random, name: str = "", depth: int = 0) -> Any:
    """Return an odd value; sizes are small or impossible."""
    kind = rng.randrange(10)
    if kind < 4:
        return rng.choice(PLAIN)
    if kind < 7 or depth > 2:
        return rng.choice(MADE)()
    if kind == 7:
        return rng.choice(IMPOSSIBLE if name in SIZES else IMPOSSIBLE + HUGE)
    if kind == 8:
        return rng.choice(owners())
    if rng.random() < 0.4:
        return {rng.choice(["A", "tip.x", "", "x", 0, None, 1.5]): odd(rng, name, depth + 1)}
    return rng.choice([list, tuple, iter])([odd(rng, name, depth + 1) for _ in range(rng.randrange(4))])


def bent(rng: random.Random, value: Any, name: str) -> Any:
    """Return a valid value with one error."""
    if isinstance(value, dict) and value:
        changed = dict(value)
        key = rng.choice(list(changed))
        old = changed.pop(key)
        if rng.random() < 0.2:
            return {**changed, rng.choice(["A", "x", "", 0]): old}
        return {**changed, key: bent(rng, old, name) if rng.random() < 0.5 else odd(rng, name)}
    if type(value) in (list, tuple) and value:
        changed, k = list(value), rng.randrange(len(value))
        made = bent(rng, changed[k], name) if rng.random() < 0.5 else odd(rng, name)
        changed[k : k + 1] = rng.choice([[], [changed[k]] * 2, [made], [made], [made]])
        return type(value)(changed)
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind == "f":
        large = [] if name in SIZES else [1e200]
        changed = value.copy()
        changed.flat[rng.randrange(changed.size)] = rng.choice([np.nan, np.inf, -1.0, 1e-200, 0.0])
        return rng.choice([
            changed, value[..., None], np.broadcast_to(value, (3, *value.shape)), value.tolist(), value[:0],
            np.full_like(value, rng.choice([0.0, np.nan, *large])), np.ma.masked_array(value, value > 0.4),
            value.astype(rng.choice(["f4", "i8", "c16", "O", "U8", "?"])),
        ])  # fmt: skip
    if isinstance(value, str):
        texts = [value + " ", value.upper(), value[:-1], [value, value], value + ".x", value + "\0"]
        return rng.choice([*texts, np.array(value), value.encode()])
    return odd(rng, name)


@dataclass
class Call:
    """A public callable with valid arguments."""

    label: str  # with the mechanism
    name: str  # "module.function", "Class" or "Class.method"
    function: Callable[..., Any]
    valid: dict[str, Any]
    after: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        self.parameters = dict(inspect.signature(self.function).parameters)
        for name, parameter in self.parameters.items():
            if parameter.kind is not parameter.VAR_KEYWORD and parameter.default is parameter.empty:
                assert name in self.valid, f"{self.name} has no valid `{name}` in tests/odd.py"

    def arguments(
        self, rng: random.Random | None, wrong: str = "", share: float = 0.3
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return valid arguments, the required ones and a random share of others; `wrong` becomes odd."""
        positional: list[Any] = []
        given: dict[str, Any] = {}
        variable = any(p.kind is p.VAR_POSITIONAL for p in self.parameters.values())
        for name, p in self.parameters.items():
            if name == wrong and rng is not None:
                known = name in self.valid and rng.random() < 0.5
                value = bent(rng, self.valid[name], name) if known else odd(rng, name)
            elif p.kind is p.VAR_KEYWORD:
                continue
            elif p.default is p.empty or (rng is not None and name in self.valid and rng.random() < share):
                value = self.valid[name]
            else:
                continue
            if p.kind is p.VAR_POSITIONAL:
                positional += value if isinstance(value, list | tuple) else [value]
            elif p.kind is p.POSITIONAL_ONLY or (variable and p.kind is p.POSITIONAL_OR_KEYWORD):
                positional.append(value)
            elif p.kind is not p.VAR_KEYWORD:
                given[name] = value
        return positional, given

    def run(self, positional: list[Any], given: dict[str, Any]) -> Any:
        """Make the call, and format its result."""
        found = self.function(*positional, **given)
        if self.after is not None:
            found = self.after(found)
        if type(found).__module__.startswith("kic"):
            repr(found)
        return found


def public(module: ModuleType) -> dict[str, Any]:
    """Return the public callables of a module, without exceptions and abstract classes."""
    names = getattr(module, "__all__", None) or [n for n, f in vars(module).items() if inspect.isfunction(f)]
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    if module is kic.metrics:
        found = {name: f for name, f in found.items() if f.__module__ == module.__name__}
    return {
        name: f
        for name, f in found.items()
        if callable(f)
        and not (isinstance(f, type) and issubclass(f, Exception))
        and not inspect.isabstract(f)
    }


def method_names(kind: type) -> list[str]:
    """Return the names of the public methods of a class of kic."""
    names = [name for name in dir(kind) if name in OPERATORS or not name.startswith("_")]
    return [
        name
        for name in names
        if not {name, f"{kind.__name__}.{name}"} & INTERNAL
        and callable(getattr(kind, name))
        and getattr(getattr(kind, name), "__module__", "").startswith("kic")
    ]


def methods(owner: Any, label: str, valid: dict[str, Any]) -> Iterator[Call]:
    """Return the public methods of an object; exported questions raise their errors for a target."""
    after = kic.results.ExportedQuestion.to_numpy if isinstance(owner, kic.results.Exports) else None
    # an evaluator has the name and the signature of its question
    question = owner.question if isinstance(owner, kic.results.Evaluator) else ""
    for name in method_names(type(owner)):
        key = f"{question or type(owner).__name__}.{name}"
        own = {**valid, **valid.get(f".{name}", {}), **valid.get(key, {}), **OWN.get(key, {})}
        function = owner if question and name == "__call__" else getattr(owner, name)
        yield Call(f"{label}: {key}", key, function, own, after)


def strange() -> kic.Mechanism:
    """Return a four-bar with special characters in names and units."""
    m = kic.load("four-bar")
    m = replace(m, name="C:\\m$", units=kic.Units(length="$m^$", mass="\\kg", time="_s", force="$N"))
    joints = tuple(replace(j, name={"A": "_A", "B": "$x^$"}.get(j.name, j.name)) for j in m.joints)
    points = tuple(replace(p, name="\\frac{" + p.name) for p in m.points)
    return replace(m, joints=joints, points=points, coordinates=("_A",))


def structure(name: str) -> kic.Mechanism:
    """Return a mechanism without freedom: a triangle of bars, or a welded free body."""
    bodies = [kic.Body(n, mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1)) for n in "ac"]
    points = [kic.Point("tip", "a", (0.5, 0.5, 0))]
    if name == "weld":
        free = kic.Joint("A", "free", ("ground", "a"), at=(0, 0, 0))
        fixed = kic.Joint("C", "fixed", ("a", "ground"), at=(1, 1, 0))
        return kic.Mechanism(
            name, bodies[:1], [free, fixed], points=points, gravity=(0, -9.81, 0), coordinates=()
        )
    ends = {"A": ("ground", "a", (0, 0, 0)), "C": ("a", "c", (1, 1, 0)), "D": ("c", "ground", (2, 0, 0))}
    joints = [kic.Joint(n, "revolute", (a, b), at=p, axis=(0, 0, 1)) for n, (a, b, p) in ends.items()]
    return kic.Mechanism(name, bodies, joints, points=points, gravity=(0, -9.81, 0), coordinates=())


def context(name: str) -> dict[str, Any]:
    """Return valid arguments by parameter name, for one mechanism."""
    m = structure(name) if name in STRUCTURES else strange() if name == "strange" else kic.load(name)
    drawn, names = m.at(), list(m.coordinates)
    M, first = len(names), (names or ["A"])[0]
    steps = np.linspace(0.05, 0.1, M)
    c = m.at({n: float(drawn.value(n)) + x for n, x in zip(names, steps, strict=True)}, near=drawn)
    tip = m.points[-1].name
    row = f"{tip}.x"
    zero, one = np.zeros(M), np.linspace(0.3, 0.7, M)
    inputs = {n: float(c.value(n)) for n in names}
    near, at = list(inputs.values()), float(c.value(row))
    line = kic.trajectory.line(dict(inputs), {n: x + 0.02 for n, x in inputs.items()}) if M else None
    series = {n: np.linspace(x, x + 0.02, 3) for n, x in inputs.items()}
    return {
        "batch": m.path(series) if M else m.at(),
        "mechanism": m, "configuration": c, "model": m.name, "of": [row], "wrt": names,
        "order": 1, "qd": one, "qdd": one, "qddd": zero, "effort": one, "tau": one, "dq": zero, "dqd": zero,
        "dqdd": zero, "inputs": names, "near": c, "at": c, "names": names, "actuators": names,
        "failures": "mask", "body": m.bodies[-1].name, "name": tip, "joint": m.joints[0].name,
        "values": inputs, "state": c.state, "kind": "velocity", "fixed": names[:1], "limits": one + 1.0,
        "direction": np.array([1.0]), "length": 0.5, "ud": [0.1], "udd": [0.1], "uddd": [0.0], "axis": 0,
        "path": {row: lambda t: (at, 0.0, 0.0)}, "t": [0.0, 0.02], "motion": line, "trajectory": line,
        "criterion": "minimum norm", "preload": zero, "applied": {},
        "other": c.dynamics(), "others": (),
        "members": np.zeros(1, int), "grid": {**inputs, first: [0.0, 0.01]} if not M else {
            **inputs, first: [inputs[first], inputs[first] + 0.01]}, "metric": kic.metrics.value(row),
        "kp": 1.0, "kd": 1.0, "ka": 1.0, "rates": one, "beyond": "hold",
        "law": "consistent", "starts": 2, "rng": 1, "max_steps": 50, "progress": False, "count": 2,
        "drivers": names, "outputs": [row], "dt": 0.01, "method": "DOP853",
        "rtol": 1e-6, "atol": 1e-6, "contacts": "stop", "events": (), "voltage": None, "force": [0.0],
        "null": zero, "factor": 2.0, "duration": 1.0, "later": None, "place": tip, "unit": np.eye(1),
        "question": "dynamics",
        "q": near,
        "dynamics": True, "efforts": one, "amounts": [0.0], "damping": 0.1, "secondary": one,
        "secondary_rate": zero, "gain": 1.0, "coordinate": first, "row": row, "fps": 5.0, "speed": 1.0,
        "trace": [tip], "units": {}, "tolerance": 1e-4, "width": 3.5, "scale": 1.0, "along": c,
        "period": 0.02, "omega": 1.0,
        "parameters": [f"{m.bodies[0].name}.com.x"], "dimensions": [f"{m.bodies[0].name}.com.x"],
        "tolerances": {f"{m.bodies[0].name}.com.x": 1e-4}, "distribution": "uniform", "sigmas": 2.0,
        "stable": False, "motors": False, "end_speed": 0.0,
        "start_speed": 0.0, "samples": 11, "rate_limits": one + 1, "acceleration_limits": one + 1,
        "jerk_limits": one + 1, "effort_limits": one + 1,
        "rows": (), "exact": True, "bounds": None, "contours": 4, "check": True, "second": one, "x": near,
        "index": 0, "k": 0, "loops": [], "peer": object(), "file": "picture.png",
        "function": lambda x: x.at().value(row),
        "udot": [0.1], "sequence": "xyz", "source": "", "repeat": "", "dpi": 40, "changes": {},
        "bodies": [m.bodies[-1].name], "ellipsoid": None, "a": zero,
    }  # fmt: skip


def objects(v: dict[str, Any]) -> Iterator[tuple[Callable[[], Any], dict[str, Any]]]:
    """Return makers of the objects of one mechanism, and valid arguments of their methods."""
    m, c, of, names, M = v["mechanism"], v["configuration"], v["of"], v["names"], len(v["names"])
    T, line, extra, effort = kic.trajectory, v["trajectory"], [*v["names"], v["of"][0]], v["effort"]
    own = c.coefficients(names, order=3) if M else None
    body, tip = v["body"], v["name"]
    pair = c.ellipsoid([f"{tip}.x", f"{tip}.y"]) if M > 1 else None
    batch = v["batch"]
    series = {n: np.linspace(x, x + 0.02, 3) for n, x in v["values"].items()}
    t = np.linspace(0.0, 2.0, 201)
    ends = {"": np.sin(3 * t), ".rate": 3 * np.cos(3 * t), ".acceleration": -9 * np.sin(3 * t), ".effort": t}
    moved = {n + end: 0.01 * y + x * (not end) for n, x in v["values"].items() for end, y in ends.items()}
    columns = moved | {"t": t}
    parts = {f".{k}": {"of": body} for k in ("displacement", "pose", "euler", "grasp", "places")}
    parts |= {".value": {"of": of[0]}}
    yield lambda: m, {
        "Mechanism.path": {"values": series},
        "Mechanism.save": {"path": "model.toml"},
        "Mechanism.simulate": {"limits": False, "integrator": "DOP853"},
        "Mechanism.sweep": {"of": v["metric"]}, "Mechanism.sensitivity": {"of": v["function"]},
        "Mechanism.add": {"parts": [kic.Point("added", body, (0, 0, 0))]},
        "Mechanism.without": {"names": [tip]}, "part": body,
        "Mechanism.chain": {"tip": m.joints[0].bodies[1], "through": m.joints[0].name},
        "Mechanism.calibrate": {
            "dimensions": None, "offsets": of, "measurements": moved | {of[0]: t},
        },
        "Mechanism.identify": {"of": f"{(*names, 'A')[0]}.damping", "measurements": columns, "cutoff": 5.0},
    }  # fmt: skip
    yield lambda: c, parts
    yield lambda: batch, parts
    coefficients = {"names": of, ".columns_of": {"of": names}, ".renamed": {"names": {of[0]: "a"}}}
    yield lambda: c.coefficients([*of, *names], order=3), {**coefficients, "inner": own}
    yield lambda: own, {"names": names, "inner": own}
    yield c.dynamics, {"coefficients": own, "left": own}
    yield c.linearize, {"names": names[:1]}
    yield lambda: c.linearize().modes(), {}
    yield c.linearize().state_space, {"method": "zoh", "coefficients": own}
    yield c.centroidal_momentum, {}
    yield lambda: m.prepare.coefficients_and_dynamics(of, order=1), {"out": None}
    yield lambda: m.prepare.inverse_dynamics(), {}
    yield lambda: m.prepare.regressor(), {}
    yield lambda: batch.regressor(v["qd"], v["qdd"], of=f"{body}.m"), {
        "keep": (), "gap_min": 10.0, "values": [1.0], "rows": names,
    }  # fmt: skip
    yield lambda: m.export.dynamics().to_numpy(), {"arguments": [c.state]}
    yield lambda: m.export.dynamics().to_c(), {"directory": "export", "path": "export"}
    box = {n: (x - 1e-3, x + 1e-3) for n, x in v["values"].items()}
    mapped = m.export.actuation_map(names, inertia=False)
    yield lambda: mapped.to_polynomial(limits=box, degree=1) if M == 1 else None, {
        "q": v["q"], "row": (*names, "")[0], "about": 0.0, "path": "map.json",
    }  # fmt: skip
    yield lambda: mapped.to_table(limits=box, points=2) if M else None, {"path": "map.csv"}
    yield lambda: mapped, {"limits": box}
    yield m.export.dynamics, {}
    export = {"parameters": (), "close": False, "derivatives": 0, "of": names, ".pose": {"of": body}}
    yield lambda: m.export, export
    yield lambda: m.prepare, {"of": of, ".pose": {"of": body}}
    yield lambda: m.export.forward_dynamics().to_fmu(), {"path": "export.fmu", "binary": False}
    column = f"{names[0]}.effort" if names else ""
    yield c.force_table, {
        ".__getitem__": {"name": column}, ".select": {"of": column}, ".to_csv": {"path": "table.csv"},
    }  # fmt: skip
    yield lambda: m.prepare.position(), {"values": v["q"]}
    yield lambda: c.ellipsoid(of), {"direction": [1.0]}
    yield lambda: c.operational_space(of), {}
    yield lambda: m.prepare.operational_space(of), {}
    yield lambda: m.prepare.pose(body), {}
    yield lambda: m.prepare.pose(body)(c.state), {"target": c.pose(body)}
    yield lambda: c.resolve_redundancy(of, [0.1]), {}
    yield lambda: m.prepare.resolve_redundancy(of), {}
    yield c.joint_forces, {}
    if m.dof == 1 and len(m.bodies) == 3:  # a linkage
        turning = {
            ".harmonics": {"count": 2},
            ".balance": {"of": "crank", "radius": 0.1, "weights": [1.0] * 6},
        }
        turn = kic.load("four-bar").path({"A": np.linspace(0.0, 2 * np.pi, 9)})
        yield lambda: turn.shaking_force(1.0), turning
        limits = {"crank.length": 1e-4, "B.clearance": 1e-4}
        yield lambda: turn[0].tolerance_analysis("tip", limits), {}
    yield lambda: c.motor_demand(v["qd"], v["qdd"], v["qddd"]) if m.motors else None, {}
    yield lambda: c.joint_forces()[m.joints[0].name], {"direction": [0, 0, 1.0], "place": [0.0, 0.0, 0.0]}
    yield lambda: c.distribute(effort, actuators=extra, criterion=np.ones(M + 1)), {}
    yield lambda: c.internal_loads(actuators=extra, criterion=np.ones(M + 1)), {"efforts": np.ones(M + 1)}
    yield batch.singularities, {}
    yield lambda: m.mobility().independent_sets(c), {}
    yield m.mobility, {}
    yield lambda: (*m.mobility().passive_freedoms, None)[0], {}
    yield c.body_contributions, {}
    yield lambda: m.find_equilibrium(near=c), {}
    yield lambda: m.assembly_modes(v["values"], starts=2, rng=1), parts
    yield lambda: m.track(v["path"], v["t"], near=c), {}
    run = m.simulate(0.02, near=c, integrator=kic.Integrator(rtol=1e-6, atol=1e-6)) if M else None
    yield lambda: run, {"later": run, "name": names[:1]}
    yield lambda: m.sweep(v["grid"], v["metric"], progress=False), {"name": of[0], "of": of[0], "at": {}}
    forces = {".forces": {"of": c.joint_forces()}} if M else {}
    yield lambda: c.draw(), {"of": tip, "ellipsoid": pair, "along": batch, **forces}
    yield lambda: batch.animate(), {"file": "a.gif"}
    if M:
        yield lambda: line, {"t": [0.1, 0.5]}
        yield lambda: line.on(m, 5), {"of": of}
        yield lambda: T.fastest(line, m, rate_limits=effort + 1, acceleration_limits=effort + 1), {}
        yield lambda: path_samples(line, m, effort + 1), {}
        measured = tuple(np.array(a) for a in (list(v["values"].values()), v["qd"], v["qdd"]))
        for key, kind in public(kic.controllers).items():
            more = {"t": 0.5, "measured": measured, "gives": kind.gives, "coordinates": tuple(names)}
            yield partial(controller, key, v), more


def controlled(key: str, v: dict[str, Any]) -> dict[str, Any]:
    """Return valid arguments of a controller by name."""
    names, values = v["names"], iter(v["values"].items())
    given: dict[str, Any] = {
        **v, "reference": v["trajectory"], "secondary": None, "near": v["configuration"], "Q": 1.0, "R": 1.0,
        "actuators": names, "stiffness": 1.0, "damping": 1.0, "sensor": None, "inertia": None,
        "kd_force": 0.0, "gain": 0.0, "controller": lambda t, now: np.zeros(len(names)), "time": 0.01,
    }  # fmt: skip
    if key == "Admittance":
        given |= {"inertia": 1.0, "sensor": lambda t, now: np.zeros(len(names))}
    if key == "HybridForcePosition":
        given |= {"reference": dict([next(values)]), "force": dict(values)}
    return given


def controller(key: str, v: dict[str, Any]) -> Any:
    """Return a controller, or None if the mechanism has no such one."""
    kind, given = getattr(kic.controllers, key), controlled(key, v)
    with suppress(kic.KicError):
        return kind(**{k: given[k] for k in inspect.signature(kind).parameters if k in given})
    return None


def path_samples(line: Any, m: kic.Mechanism, limit: np.ndarray) -> Any:
    """Return the samples of a path that functions of further constraints receive."""
    seen: list[Any] = []
    rows = lambda samples: seen.append(samples) or samples.velocity(limit)  # noqa: E731
    kic.trajectory.fastest(line, m, rate_limits=limit, acceleration_limits=limit, rows=rows)
    return seen[0]


def fields(part: Any) -> dict[str, Any]:
    """Return the arguments that made an immutable object."""
    return {k: getattr(part, k, None) for k in inspect.signature(type(part)).parameters}


def world(name: str) -> Iterator[Call]:
    """Return the calls on one mechanism."""
    v = context(name)
    m, c, of, names = v["mechanism"], v["configuration"], v["of"], v["names"]
    for make, more in objects(v):
        # structures have neither modes nor motions
        with suppress(*[kic.KicError] * (name in STRUCTURES)):
            yield from methods(make(), name, {**v, **more})
    made = {"Mechanism": m, "Coefficients": c.coefficients([*of, *names], order=2), "Dynamics": c.dynamics()}
    if names:
        made["StateSpace"] = c.linearize().state_space()
    parts = (part for kind in ("bodies", "joints", "points", "motors") for part in getattr(m, kind)[-1:])
    for one in (*made.values(), *parts):
        key = type(one).__name__
        yield Call(
            f"{name}: {key}()", key, type(one), fields(one), after=kic.Mechanism.at if one is m else None
        )
    if not names:
        return
    task = {"values": v["values"], "limits": {n: (x - 1, x + 1) for n, x in v["values"].items()}, "of": of}
    for key in ("PreferredConfiguration", "JointLimits", "Manipulability"):
        given = {**task, "gain": 1.0, "weights": dict.fromkeys(names, 1.0)}
        solve = partial(c.resolve_redundancy, of, [0.1], [0.1])
        yield Call(f"{name}: {key}", key, getattr(kic, key), given, lambda s, solve=solve: solve(secondary=s))
    for key, f in public(kic.metrics).items():
        given = {**v, "inputs": of}
        yield Call(f"{name}: metrics.{key}", f"metrics.{key}", f, given, lambda metric: metric(c))
    for key, f in public(kic.controllers).items():
        use = {
            "ComputedTorque": "effort",
            "GravityCompensation": "effort",
            "ComputedVoltage": "voltage",
            "Sampled": "controller",
        }.get(key)
        run = partial(m.simulate, 0.002, near=c, integrator=kic.Integrator(rtol=1e-3, max_steps=200))
        after = None if use is None else lambda law, run=run, use=use: run(**{use: law})
        yield Call(f"{name}: {key}", f"controllers.{key}", f, controlled(key, v), after)
    more: dict[str, dict[str, Any]] = {
        "trajectory.at_speed": {"path": v["batch"], "qd": np.ones(len(names))},
        "trajectory.fastest": {"path": v["trajectory"], "grid": 20},
        "trajectory.exciting": {"of": f"{(*names, 'A')[0]}.damping", "points": 4, "near": m.at()},
        "trajectory.uniform": {},
        "sensitivity": {"make": lambda x: m, "of": v["function"], "x": []},
        "split": {}, "count_operations": {},
    }  # fmt: skip
    for key, given in more.items():
        place = kic.trajectory if "." in key else classics if hasattr(classics, key) else kic
        yield Call(f"{name}: {key}", key, getattr(place, key.split(".")[-1]), {**v, **given})
    if name == "four-bar":
        yield Call(f"{name}: unlock()", "Mechanism.unlock", m.lock("A").unlock, {"names": "A"})
    yield Call(f"{name}: sensitivity()", "sensitivity", kic.sensitivity, {
        "make": lambda p: replace(m, gravity=(0, np.sum(p), np.sum(p))),
        "of": lambda x: x.at().dynamics().load.sum(),
        "x": [9.8]})  # fmt: skip
    if name == "horn-two-link":
        s = classics.split(c)
        yield from methods(s, name, {**v, "part": "D_tran", "n_major": 1})
        yield from methods(s.effort_deviation(v["qd"], v["qdd"]), name, v)


ROBOT = (
    '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/></inertial></link>'
    '<joint name="A" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>'
)
SDF = (
    '<sdf version="1.7"><model name="m"><link name="a"/><link name="b"/><joint name="A" type="revolute">'
    "<parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"
)
MJCF = '<mujoco><worldbody><body><joint name="A" axis="0 0 1"/><geom size="0.1"/></body></worldbody></mujoco>'
WRITTEN = {"mechanism": kic.load("four-bar"), "strict": False, "polynomials": ()}
READ = {"coordinates": ["A"], "near": {"A": 0.0}, "strict": False, "floating_base": True}
EYE, ONES = np.eye(3), np.ones((3, 3, 3))
TENSORS = {
    "A": EYE,
    "B": EYE,
    "T": ONES,
    "C": ONES,
    "D": ONES,
    "L": EYE,
    "R": EYE,
    "order": 1,
    "vectors": (EYE[0],),
}
LENGTHS = {
    "ground": 4.0, "crank": 1.0, "coupler": 3.5, "rocker": 3.0, "rod": 3.0, "offset": 0.1, "angle": 0.5,
    "branch": "open", "tip": (1.0, 0.5), "masses": {}, "proximal": 3.0, "distal": (4.0, 4.0),
    "base_radius": 2.0,
    "platform_radius": 1.0, "height": 3.0, "arm": 2.0, "forearm": 5.0, "legs": "UPS",
    "scale": 1.0, "follower": 2.5, "pivot": (2.0, 6.0), "dyad": "left", "long": 5.0, "short": 2.0,
    "stages": 2, "palm": 1.0, "spacing": 0.5, "finger": 0.5, "center": (0.0, 0.0),
    "anchors": np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]),
    "attachments": 0.1 * np.array([[1, -1], [-1, -1], [-1, 1], [1, 1]]),
}  # fmt: skip
Q = np.linspace(0.3, 0.6, 3)
CLASSIC = {
    "theta": Q, "order": 2, "failures": "mask", "P": np.array([0.3, 0.3, 0.1]), "coms": np.zeros((3, 3)),
    "inertias": np.ones((3, 3)), "masses": [1.0, 1.0, 1.0],
}  # fmt: skip
# valid arguments of methods and functions that differ from those of the mechanism
OWN: dict[str, dict[str, Any]] = {
    "Integrator": {"method": "RK45", "rtol": 1e-6, "atol": 1e-6, "max_steps": 200},
    "Voltage": {"value": lambda t, now: 1.0},
    "load": {"model": "four-bar"}, "Simulation.load": {"path": "nowhere.npz"}, "model_names": {},
    "schema": {},
    "Coefficients.identity": {"names": ["a", "b"], "quasi": ["a"]},
    "Simulation.save": {"path": "run.npz"}, "Simulation.at": {"t": 0.01},
    "Simulation.current_at": {"t": 0.01},
    "Contact": {"name": "c", "type": "soft", "bodies": ("ground", "b"), "at": (0, 0, 0), "normal": (0, 0, 1),
                "friction": 0.5, "torsion": 0.1},
    "Coupling": {"name": "c", "joints": ("A", "B"), "gears": (1.0, 2.0), "pitch_point": (0, 0, 0)},
    "Angle": {"name": "a", "bodies": ("A", "B"), "axis": (1, 0, 0), "axis2": (0, 1, 0), "fixed": True},
    "Distance": {"name": "d", "points": ("A", "B"), "fixed": True},
    "Force": {"name": "f", "point": "p", "force": (0, 0, 1), "axes": "body"},
    "Moment": {"name": "f", "body": "p", "moment": (0, 0, 1), "axes": "body"},
    "Spring": {"name": "s", "points": ("A", "B"), "stiffness": 1.0, "rest": 1.0, "damping": 1.0},
    "Motor": {"name": "s", "joints": ("A",), "ratios": (2.0,), "inertia": 1.0, "resistance": 1.0,
              "torque_constant": 1.0},
    "Units": {"length": "m"}, "CenterOfMass": {"name": "s", "bodies": ["a", "b"]},
    "Frame": {"name": "s", "body": "a", "origin": (0, 0, 0), "axes": EYE}, "DHRow": {"joint": "A",
    "body": "a"},
    "from_dh": {"name": "arm", "rows": [kic.DHRow("A", "a", a=1.0), {"joint": "B", "body": "b", "a": 0.5}],
                "convention": "standard", "bodies": [kic.Body("a")], "points": [kic.Point("p", "b", (0, 0,
                0))]},
    "from_urdf": {**READ, "model": ROBOT}, "from_mjcf": {**READ, "model": MJCF}, "from_sdf": {**READ,
    "model": SDF},
    "to_urdf": WRITTEN, "to_mjcf": WRITTEN | {"timestep": 1e-3},
    "joint_order": {"mechanism": WRITTEN["mechanism"], "peer": object()},
    "products.bilinear": TENSORS, "products.cross": TENSORS, "products.dot": TENSORS,
    "products.form": TENSORS,
    "products.quadratic": TENSORS,
    **{f"linkages.{f}": LENGTHS for f in public(kic.linkages) if f != "FourBarMotion"},
    "linkages.peaucellier": LENGTHS | {"crank": 2.0, "angle": 1.0},
    "linkages.three_rrr": LENGTHS | {"distal": 3.0},
    "linkages.watt": LENGTHS | {"tip": (1.5, -1.0), "rod": 4.0, "follower": 2.0, "pivot": (8.0, 0.0)},
    "table_1": {"method": "Newton-Euler", "n_joints": 3},
    "Leg": {"l2": 0.5, "l3": 0.4, "m2": 1.0, "m3": 1.0, "gravity": (0, 0, -9.81)},
    "PointMassArm": {"l1": 0.5},
    "ThreeLink": {"l1": 1.0, "l2": 0.8, "l3": 0.5, "m1": 1.0, "m2": 1.0, "m3": 1.0, "g": 9.8},
    "TwoLink": {"l1": 1.0, "l2": 0.8, "m1": 1.0, "m2": 1.0, "g": 9.8}, "ThreeLinkPuma": CLASSIC,
    "WristPartitioned": {"a23": 0.4, "a34": 0.3, "s11": 0.1},
}  # fmt: skip


def alone() -> Iterator[Call]:
    """Return the calls that need no mechanism."""
    for module in MODULES:
        for name, f in public(module).items():
            short = f"{module.__name__.rpartition('.')[2]}.{name}"
            for key in {name, short} & OWN.keys():
                after = kic.Mechanism.at if key == "from_dh" else None
                yield Call(key, key, f, OWN[key], after)
    for name in ("Leg", "PointMassArm", "ThreeLink", "TwoLink", "ThreeLinkPuma", "WristPartitioned"):
        n = 2 if name == "TwoLink" else 3
        own = {**CLASSIC, "q": np.linspace(0.3, 0.6, n), "tip": np.array([1.0, 0.5, 0.3])[:n]}
        made = getattr(classics, name)
        valid = {k: x for k, x in OWN[name].items() if k in inspect.signature(made).parameters}
        yield from methods(made(**valid), "classics", own)
    motion = kic.linkages.four_bar_motion(ground=4.0, crank=1.0, coupler=3.5, rocker=3.0)
    yield from methods(motion, "classics", {})
    swing = {"shoulder": [0.3] * 4, "elbow": np.linspace(-0.5, 0.5, 4)}
    stretched = kic.load("horn-two-link").path(swing).singularities(of=["tip.x", "tip.y"])
    for one in (stretched, stretched[0]):
        yield from methods(one, "stretched", {"index": 0})
    if find_spec("mujoco"):
        from mujoco import MjModel

        m = kic.from_mjcf(MJCF)
        given = {"q": [0.1], "qd": [0.1], "qdd": [0.1], "tau": [0.1], "configuration": m.at(), "wrt": ["A"]}
        yield from methods(kic.joint_order(m, MjModel.from_xml_string(MJCF)), "peer", given)
    yield from methods(kic.to_urdf(kic.load("horn-two-link")), "classics", CLASSIC)


def paths() -> Iterator[Call]:
    """Return the calls of trajectories without a mechanism."""
    T = kic.trajectory
    for start, end in (([0.0, 1.0], [1.0, 2.0]), ({"A": 0.0, "B": 1.0}, {"A": 1.0, "B": 2.0})):
        named = isinstance(start, dict)
        limit = dict.fromkeys(start, 1.0) if named else [1.0, 1.0]
        line, curve = T.line(start, end), T.quintic(start, end, 2.0)
        v = {
            "start": start, "end": end, "duration": 2.0, "velocity": limit, "acceleration": limit,
            "jerk": limit, "rate_limits": limit, "acceleration_limits": limit, "jerk_limits": limit,
            "together": "line", "times": [0.0, 1.0], "degree": 5, "ends": "rest", "stops": [0],
            "rates": {n: [0.0, 0.0] for n in start} if named else [limit, limit],
            "points": {n: [start[n], end[n]] for n in start} if named else [start, end],
            "start_rate": limit, "end_rate": limit, "start_acceleration": limit, "end_acceleration": limit,
            "t": [0.1, 0.5], "beyond": "hold", "order": 1, "factor": 2.0, "q": [0.0, 0.0], "near": None,
            "samples": 11, "accelerations": None, "jerks": None, "rows": (), "parts": [curve, T.quintic(end,
            start, 2.0)],
            "path": line, "trajectory": line, "mechanism": None, "names": ["A", "B"], "width": 4.0,
        }  # fmt: skip
        for key, f in public(T).items():
            if not isinstance(f, type) and key not in ("at_speed", "rotation"):
                yield Call(f"paths: {key}", f"trajectory.{key}", f, v)
        for one in (line, curve):
            calls = methods(one, "paths", v)
            yield from (call for call in calls if call.name != "Trajectory.on")
    turns = Rotation.from_rotvec([[0, 0, 0], [0.3, 0, 0.2], [0, 1, 0]])
    v = {"rotations": turns, "times": [0, 1, 3.0], "duration": 2.0, "degree": 5, "ends": "rest", "stops": [1],
         "t": [0.1, 0.2], "beyond": "hold", "factor": 2.0}  # fmt: skip
    yield Call("rotation", "trajectory.rotation", T.rotation, v)
    yield from methods(T.rotation(turns), "paths", v)


def grasps() -> Iterator[Call]:
    """Return the calls of contact sets, and of a hand."""
    points, normals = [[1.0, 0, 0], [-1, 0, 0], [0, 1, 0]], [[-1.0, 0, 0], [1, 0, 0], [0, -1, 0]]
    v = {
        "points": points, "normals": normals, "kinds": ["friction", "soft", "friction"], "mu": 0.5,
        "gamma": 0.1,
        "about": [0, 0, 0.0], "tangents": None, "plane": None, "names": ["a", "b", "c"], "failures": "mask",
        "linear": np.zeros((3, 3, 2)), "angular": np.zeros((3, 3, 2)), "method": "pyramids", "edges": 6,
        "wrench": [0, 0, 1.0, 0, 0, 0], "criterion": "minimum norm", "normal_force_min": 0.0, "safety": 1.0,
        "direction": [0, 0, 1.0, 0, 0, 0], "jacobian": None, "effort_limits": None,
        "offset": None, "joints": None, "forces": "minimum norm", "changes": {},
    }  # fmt: skip
    s = kic.ContactSet(points, normals, v["kinds"], 0.5, 0.1)
    v |= {"contacts": s, "force": np.zeros(10)}
    for key in ("ContactSet", "force_closure", "form_closure", "grip_forces", "grasp_map", "contact_frames",
                "largest_load"):  # fmt: skip
        yield Call(key, key, getattr(kic, key), v)
    for one in (s, kic.force_closure(s), kic.grip_forces(s, v["wrench"], failures="mask")):
        yield from methods(one, "grasps", v)
    m = kic.load("three-finger-hand")
    c, qd = m.at(), np.zeros(len(m.coordinates))
    held = next(b.name for b in m.bodies if any(b.name in k.bodies for k in m.contacts))
    for body in (held, *(b.name for b in m.bodies)):
        with suppress(kic.KicError):
            g = c.grasp(body)
            yield Call("hand: Configuration.grasp", "Configuration.grasp", c.grasp, {"of": body, "order": 1})
            yield from methods(
                g, "hand", {**v, "qd": qd, "qdd": qd, "method": "cones", "wrt": None, "applied": {}}
            )
            yield from methods(g.motion(), "hand", v)
            return


@cache
def calls() -> tuple[Call, ...]:
    """Return all public callables, most of them on several mechanisms."""
    worlds = (call for name in (*NAMES, *STRUCTURES) for call in world(name))
    return (*worlds, *alone(), *paths(), *grasps())


@cache
def owners() -> list[Any]:
    """Return objects of kic, of several mechanisms."""
    made = [getattr(call.function, "__self__", None) for call in calls()]
    return list({id(one): one for one in made if one is not None}.values())


def search(count: int, seed: int) -> Counter[str]:
    """Return the outcomes of many calls; exceptions of other libraries are printed."""
    total, slowest = Counter[str](), (0.0, "")
    for k in range(count):
        rng = random.Random(f"{seed} {k}")
        call = rng.choice(calls())
        wrong = rng.choice(list(call.parameters) or [""])
        positional, given = call.arguments(rng, wrong)
        start = perf_counter()
        try:
            call.run(positional, given)
            outcome = "result"
        except kic.KicError as error:
            outcome = type(error).__name__
            if len(str(error)) > 2000:
                outcome = "long message"
                print(seed, k, call.label, wrong, outcome, len(str(error)), str(error)[:200], flush=True)
        except Exception as error:
            outcome = f"raw {type(error).__name__}"
            last = traceback.extract_tb(error.__traceback__)
            where = [f"{f.filename.rpartition('kic/')[2]}:{f.lineno}" for f in last if "/kic/" in f.filename][
                -2:
            ]
            print(seed, k, call.label, wrong, outcome, str(error)[:100], *where, flush=True)
        spent = perf_counter() - start
        slowest = max(slowest, (spent, f"{k} {call.label} {wrong}"))
        if spent > 5:
            print(seed, k, call.label, wrong, f"{spent:.1f} s", flush=True)
        total[outcome] += 1
    print("slowest", slowest)
    return total


if __name__ == "__main__":
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "the matrix subclass")
    made = calls()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(len(made), dict(search(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
