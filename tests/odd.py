"""Calls of the public interface with random odd arguments."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic import classics

NAMES = ("four-bar", "horn-two-link", "rssr", "planar-4r", "four-bar-motor", "two-finger-hand", "strange")

# constructors of results: their arguments come from kic itself
RESULTS = {
    "Animation", "Assemblies", "CentroidalMomentum", "MotionEvaluator", "PositionSolver", "Configuration",
    "Contributions", "Distribution", "JointOrder", "UrdfText",
    "Ellipsoid", "Energy", "Equilibrium", "Evaluator", "Grasp", "GraspClosure", "GraspMotion", "GripForces",
    "IndependentSet", "IndependentSets", "InternalLoads", "JointForces", "Linearization",
    "MechanismPicture", "Modes", "MotorDemand", "OperationalSpaceEvaluator", "OperationalSpace",
    "RedundancyEvaluator", "RedundancyResolution", "Simulation", "Singularities", "Singularity", "StateSpace",
    "Sweep", "TrackingResult", "Wrench",
}  # fmt: skip
# writes files, or is a page for a browser
SKIPPED = {"save", "to_csv", "report_page", "schema", "model_names"}
# methods that kic calls, with arguments of its own
INTERNAL = {
    "derivative", "rates", "table", "results", "describe", "unknown", "needed", "sentences", "descriptions",
    "undriven_freedom", "raw", "terms",
}  # fmt: skip
# a large number of these is long work
COUNTS = {
    "starts", "count", "t", "samples", "duration", "max_steps", "n", "edges", "contours", "fps", "speed",
    "width", "joints", "grid", "kp", "kd", "ka", "gain", "times", "scale", "period", "events", "limits_of",
    "chunk",
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


STRINGS = [
    "", " ", "x", "tip", "A", "C", "shoulder", "ground", "tip.x", "tip.w", "A.1", ".", "a.b.c", "$x^$",
    "\\", "_A", "{0}", "%s", "\n", "\0", "\ud800", "ü", "A" * 2000, "nan", "1", "raise", "mask",
    "minimum norm", "coupler", "ground.x", "tip.rate", "energy", "velocity", "force", "position", "all",
    "both", "rest", "free",
]  # fmt: skip
NUMBERS = [
    0, 1, 2, 3, -1, 7, -0.0, 0.5, -0.5, 1e-320, 1e-200, 1e-9, np.nan, np.inf, -np.inf, True, False, 1j,
    1 + 2j, complex(np.nan, 0), Fraction(1, 3), Decimal("0.1"), Decimal("NaN"), np.float32(1.5),
    np.int8(2), np.bool_(True), np.float64(0.3), np.complex128(1j), np.longdouble(1.5),
]  # fmt: skip
HUGE = [10**400, -(10**400), 10**18, 2**63, 1e300, -1e200, 1e155]
OTHERS: list[Callable[[], Any]] = [
    lambda: None, object, Sour, lambda: Table([0.1]), lambda: Table([1.0, 2.0], ["A", "C"]),
    lambda: Table(["A"]), lambda: b"A", lambda: bytearray(b"1"), lambda: memoryview(b"12"), dict, list,
    tuple, set, frozenset, lambda: {"A"}, lambda: {1.0, 2.0}, lambda: range(0), lambda: range(2),
    lambda: slice(None), lambda: Ellipsis, lambda: NotImplemented, lambda: kic, lambda: iter([]),
    lambda: iter(["A"]), lambda: (x for x in (1.0, 2.0)), lambda: map(str, "AB"),
    lambda: lambda *a, **k: None, lambda: lambda *a, **k: np.zeros(1), lambda: lambda *a, **k: "x",
    lambda: lambda *a, **k: np.nan, lambda: date(2020, 1, 1), lambda: np.datetime64("2020"),
    lambda: np.timedelta64(1, "s"), lambda: np.array(None), lambda: np.array("A"), lambda: np.array(["A"]),
    lambda: np.array(["A", "C"], object), lambda: np.array([["A"]]), lambda: np.str_("A"),
    lambda: Text("A"), lambda: np.array(1.0), lambda: np.array(True), lambda: np.zeros(0),
    lambda: np.zeros((0, 1)), lambda: np.zeros((2, 0)), lambda: np.zeros((0, 0)),
    lambda: np.zeros(1, "f4"), lambda: np.zeros(2, complex), lambda: np.array([1j]),
    lambda: np.zeros(2, bool), lambda: np.zeros(1, "M8[s]"), lambda: np.zeros(2, "i1"),
    lambda: np.zeros(1, [("a", float)]), lambda: np.array([b"A"]), lambda: np.array([None]),
    lambda: np.array([object()], object), lambda: np.ma.array([1.0], mask=[True]),
    lambda: np.ma.array([1.0], mask=[False]), lambda: np.array([np.nan]), lambda: np.array([[np.inf]]),
    lambda: np.matrix([[1.0]]), lambda: np.full((2, 3), np.nan), lambda: [1, "A"], lambda: [[1], [1, 2]],
    lambda: [[]], lambda: [[[[]]]], lambda: [None], lambda: ["A", "A"], lambda: [["A"]],
    lambda: {"A": None}, lambda: {"A": 1.0}, lambda: {"A": "x"}, lambda: {"A": [1, 2]}, lambda: {"A": []},
    lambda: {1: 1.0}, lambda: {None: 1}, lambda: {"tip.x": 1.0}, lambda: {"A": (0, 1)},
    lambda: {"A": np.nan}, lambda: {"x": 1.0}, lambda: {"": 1}, lambda: MappingProxyType({"A": 1.0}),
    lambda: {"A": {"A": 1}}, lambda: {"A": object()}, lambda: {"A": 1e300}, lambda: Rotation.identity(),
    lambda: Rotation.identity(2), lambda: RigidTransform.identity(), lambda: {"A": Rotation.identity()},
    lambda: kic.Body("b"), lambda: kic.Units(), lambda: kic.InputError("x"), lambda: ValueError(),
]  # fmt: skip


def own(rng: random.Random) -> Any:
    """Return objects of kic, of this and of other mechanisms."""
    return rng.choice(subjects()).owner


def odd(rng: random.Random, name: str = "", depth: int = 0) -> Any:
    """Return an odd value; counts stay small."""
    kind = rng.randrange(12)
    if kind < 2:
        return rng.choice(STRINGS)
    if kind < 4:
        return rng.choice(NUMBERS if name in COUNTS or rng.random() < 0.7 else HUGE)
    if kind < 7 or depth > 2:
        return rng.choice(OTHERS)()
    if kind == 7:
        return own(rng)
    if kind == 8:
        shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
        fill = rng.choice(
            [0.0, 1.0, 0.3, -1.0, np.nan, np.inf, 1j, *([] if name in COUNTS else [1e200, 1e-200])]
        )
        return np.full(shape, fill)
    if kind == 9:
        return {odd_key(rng): odd(rng, name, depth + 1) for _ in range(rng.randrange(3))}
    made = [odd(rng, name, depth + 1) for _ in range(rng.randrange(4))]
    return rng.choice([list, tuple, list, iter])(made)


def odd_key(rng: random.Random) -> Any:
    return rng.choice([*STRINGS, 0, None, 1.5, ("A",)])


def bent(rng: random.Random, value: Any, name: str) -> Any:
    """Return a valid value with one error."""
    if isinstance(value, dict) and value:
        changed = dict(value)
        key = rng.choice(list(changed))
        if rng.random() < 0.2:
            changed[odd_key(rng)] = changed.pop(key)
        else:
            changed[key] = bent(rng, changed[key], name) if rng.random() < 0.5 else odd(rng, name)
        return changed
    if isinstance(value, list | tuple) and value:
        changed = list(value)
        pick = rng.randrange(5)
        if pick == 0:
            changed.pop()
        elif pick == 1:
            changed.append(rng.choice(changed))
        else:
            k = rng.randrange(len(changed))
            changed[k] = bent(rng, changed[k], name) if rng.random() < 0.5 else odd(rng, name)
        return type(value)(changed) if type(value) in (list, tuple) else changed
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind == "f":
        changed = value.copy()
        pick = rng.randrange(7)
        if pick == 0:
            changed.flat[rng.randrange(changed.size)] = rng.choice([np.nan, np.inf, -1.0, 1e-200, 0.0])
        elif pick == 1:
            return changed[..., None]
        elif pick == 2:
            return np.broadcast_to(changed, (3, *changed.shape))
        elif pick == 3:
            return changed.astype(rng.choice(["f4", "i8", "c16", "O", "U8", "?"]))
        elif pick == 4:
            return changed.tolist()
        elif pick == 5:
            return changed[:0]
        else:
            return np.full_like(changed, rng.choice([0.0, np.nan] + ([] if name in COUNTS else [1e200])))
        return changed
    if isinstance(value, str):
        return rng.choice(
            [
                value + " ",
                value.upper(),
                value[:-1],
                [value, value],
                value + ".x",
                np.array(value),
                value.encode(),
            ]
        )
    return odd(rng, name)


@dataclass
class Subject:
    """A callable, its object, and valid arguments."""

    label: str
    function: Callable[..., Any]
    valid: dict[str, Any]
    owner: Any = None
    parameters: dict[str, inspect.Parameter] = field(default_factory=dict)
    after: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        self.parameters = dict(inspect.signature(self.function).parameters)

    def draw(self, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
        """Return arguments, one or two of them odd and the others valid."""
        names = list(self.parameters)
        wrong = set(rng.sample(names, min(len(names), 1 if rng.random() < 0.75 else 2)))
        positional: list[Any] = []
        given: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            known = name in self.valid
            if name in wrong:
                value = bent(rng, self.valid[name], name) if known and rng.random() < 0.6 else odd(rng, name)
            elif known and (parameter.default is parameter.empty or rng.random() < 0.4):
                value = self.valid[name]
            elif parameter.default is parameter.empty and parameter.kind not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                value = odd(rng, name)
            else:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += value if isinstance(value, list | tuple) else [value]
            elif parameter.kind is parameter.VAR_KEYWORD:
                continue
            elif parameter.kind is parameter.POSITIONAL_ONLY or (
                any(p.kind is p.VAR_POSITIONAL for p in self.parameters.values())
                and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            ):
                positional.append(value)
            else:
                given[name] = value
        return positional, given

    def run(self, positional: list[Any], given: dict[str, Any]) -> Any:
        """Call it, and format the result."""
        found = self.function(*positional, **given)
        if self.after is not None:
            found = self.after(found)
        if type(found).__module__.startswith("kic"):
            repr(found)
        return found


def methods(owner: Any, label: str, valid: dict[str, Any]) -> Iterator[Subject]:
    """Return the public methods of an object, its items and calls."""
    kind = type(owner)
    for name in dir(kind):
        if name in SKIPPED | INTERNAL or (
            name.startswith("_") and name not in ("__getitem__", "__call__", "__add__", "__matmul__")
        ):
            continue
        if isinstance(inspect.getattr_static(kind, name), property):
            continue
        method = getattr(owner, name)
        if not callable(method) or not getattr(method, "__module__", "kic").startswith("kic"):
            continue
        if not inspect.signature(method).parameters or (name == "motion" and "Evaluator" in label):
            continue
        yield Subject(f"{label}.{name}", method, valid, owner)


def strange() -> kic.Mechanism:
    """Return a four-bar with special characters in names and units."""
    m = kic.load("four-bar")
    m = replace(m, name="C:\\m$", units=kic.Units(length="$m^$", mass="\\kg", time="_s", force="$N"))
    joints = tuple(replace(j, name={"A": "_A", "B": "$x^$"}.get(j.name, j.name)) for j in m.joints)
    points = tuple(replace(p, name="\\frac{" + p.name) for p in m.points)
    return replace(m, joints=joints, points=points, coordinates=("_A",))


def context(name: str) -> dict[str, Any]:
    """Return valid arguments by parameter name, for one mechanism."""
    m = strange() if name == "strange" else kic.load(name)
    drawn, M = m.at(), len(m.coordinate_names)
    c = m.at(
        {
            n: float(drawn.value(n)) + x
            for n, x in zip(m.coordinate_names, np.linspace(0.05, 0.1, M), strict=True)
        },
        near=drawn,
    )
    q = c.value(m.coordinate_names[0])
    tip = m.points[-1].name
    row = f"{tip}.x"
    zero, one = np.zeros(M), np.linspace(0.3, 0.7, M)
    inputs = {n: float(c.value(n)) for n in m.coordinate_names}
    near = [inputs[n] for n in m.coordinate_names]
    goal = [x + 0.02 for x in near]
    line = kic.trajectory.line(dict(inputs), dict(zip(inputs, goal, strict=True)))
    return {
        "mechanism": m, "configuration": c, "of": [row], "task": [row], "wrt": list(m.coordinate_names),
        "order": 1, "qd": one, "qdd": one, "qddd": zero, "effort": one, "dq": zero, "dqd": zero,
        "dqdd": zero, "inputs": inputs, "near": c, "at": c, "names": [*m.coordinate_names],
        "actuators": [*m.coordinate_names], "failures": "mask", "body": m.bodies[-1].name, "name": tip,
        "joint": m.joints[0].name, "values": near, "state": c.state, "kind": "velocity",
        "held": [m.coordinate_names[0]], "limits": one + 1.0, "direction": np.array([1.0]), "length": 0.5,
        "ud": [0.1], "udd": [0.1], "uddd": [0.0], "axis": 0, "path": {row: lambda t: c.value(row)},
        "t": 0.02, "motion": line, "trajectory": line, "start": c, "criterion": "minimum norm",
        "lower": -one, "preload": zero, "applied": {}, "left": c.coefficients(m.coordinate_names, 2),
        "coefficients": c.coefficients(m.coordinate_names, 2),
        "inner": c.coefficients(m.coordinate_names, 2), "other": c.dynamics(), "others": (),
        "members": np.zeros(1, int),
        "grid": {**inputs, m.coordinate_names[0]: [float(q), float(q) + 0.01]},
        "metric": kic.metrics.value(row), "kp": 1.0, "kd": 1.0, "ka": 1.0, "rates": one, "beyond": "hold",
        "weight": "minimum norm", "law": "consistent", "starts": 2, "seed": 1, "max_steps": 50,
        "progress": False, "count": 2, "among": [*m.coordinate_names], "outputs": [row],
        "split": "minimum norm", "dt": 0.01, "method": "DOP853", "rtol": 1e-6, "atol": 1e-6,
        "contacts": "stop", "events": (), "voltage": None, "force": [0.0], "null": zero, "factor": 2.0,
        "duration": 1.0, "later": None, "place": tip, "unit": np.eye(3)[:, :1], "q": near,
        "dynamics": True, "efforts": one, "amounts": [0.0], "damping": 0.1, "secondary": one,
        "secondary_rate": zero, "gain": 1.0, "coordinate": m.coordinate_names[0], "row": row, "fps": 5.0,
        "speed": 1.0, "trace": [tip], "units": {}, "tolerance": 1e-4, "width": 3.5, "scale": 1.0,
        "along": c, "period": 0.5, "parameters": [(m.coordinate_names[0], "value")], "stable": False,
        "motors": False, "end_speed": 0.0, "start_speed": 0.0, "samples": 11, "velocity": one + 1,
        "acceleration": one + 1, "jerk": one + 1, "rows": (), "exact": True, "bounds": None, "contours": 4,
        "check": True,
    }  # fmt: skip


@cache
def subjects() -> tuple[Subject, ...]:
    """Return every public callable, on several mechanisms."""
    found: list[Subject] = []
    add = found.append
    T = kic.trajectory
    for name in NAMES:
        v = context(name)
        m, c = v["mechanism"], v["configuration"]
        coordinates = list(m.coordinate_names)
        of, M = v["of"], len(coordinates)
        found += methods(m, f"{name}: Mechanism", v)
        found += methods(c, f"{name}: Configuration", v)
        batch = m.path({n: np.linspace(x, x + 0.02, 3) for n, x in v["inputs"].items()})
        found += methods(batch, f"{name}: batch", v)
        coefficients = c.coefficients([*of, *coordinates], 2)
        found += methods(
            coefficients, f"{name}: Coefficients", {**v, "names": of, "inner": c.coefficients(coordinates, 2)}
        )
        d = c.dynamics()
        found += methods(d, f"{name}: Dynamics", v)
        lin = c.linearize()
        found += methods(lin, f"{name}: Linearization", {**v, "names": coordinates[:1]})
        found += methods(lin.modes(), f"{name}: Modes", v)
        ss = c.state_space()
        found += methods(ss, f"{name}: StateSpace", {**v, "method": "zoh"})
        found.append(
            Subject(
                f"{name}: StateSpace()",
                kic.StateSpace,
                {
                    k: getattr(ss, k)
                    for k in ("A", "B", "C", "D", "states", "inputs", "outputs", "coordinates")
                },
                ss,
            )
        )
        found += methods(m.prepare(of, 1, dynamics=True), f"{name}: Evaluator", v)
        found += methods(m.prepare_inverse_dynamics(), f"{name}: MotionEvaluator", {**v, "second": v["qdd"]})
        found += methods(m.prepare_position(), f"{name}: PositionSolver", {**v, "near": c.state})
        found += methods(c.ellipsoid("velocity", of), f"{name}: Ellipsoid", v)
        found += methods(c.operational_space(of), f"{name}: OperationalSpace", v)
        found += methods(m.prepare_operational_space(of), f"{name}: OperationalSpaceEvaluator", v)
        found += methods(c.resolve(of, [0.1]), f"{name}: RedundancyResolution", v)
        found += methods(m.prepare_resolve(of), f"{name}: RedundancyEvaluator", v)
        forces = c.joint_forces()
        found += methods(forces, f"{name}: JointForces", v)
        found += methods(forces[m.joints[0].name], f"{name}: Wrench", {**v, "direction": [0, 0, 1.0]})
        extra = [*coordinates, of[0]]
        found += methods(c.distribute(v["effort"], extra, np.ones(M + 1)), f"{name}: Distribution", v)
        found += methods(c.internal_loads(extra, np.ones(M + 1)), f"{name}: InternalLoads", v)
        found += methods(batch.singularities(), f"{name}: Singularities", {**v, "k": 0})
        found += methods(m.independent_sets(c), f"{name}: IndependentSets", {**v, "k": 0})
        found += methods(m.mobility(), f"{name}: Mobility", v)
        found += methods(m.assemblies(v["inputs"], starts=2, seed=1), f"{name}: Assemblies", v)
        line = v["trajectory"]
        found += methods(line, f"{name}: Trajectory", {**v, "t": [0.1, 0.5], "names": coordinates})
        course = line.on(m, 5)
        found += methods(course, f"{name}: SampledMotion", v)
        run = kic.simulate(m, c, 0.02, rtol=1e-6, atol=1e-6)
        found += methods(run, f"{name}: Simulation", {**v, "name": coordinates[0], "later": run})
        grid = kic.sweep(m, v["grid"], v["metric"], progress=False)
        found += methods(
            grid,
            f"{name}: Sweep",
            {**v, "name": grid.names[0] if hasattr(grid, "names") else "largest static effort", "at": {}},
        )
        for f in ("velocity", "acceleration", "forces", "ellipsoid", "trace"):
            picture = Subject(
                f"{name}: picture.{f}",
                getattr(kic.draw(c), f),
                {**v, "ellipsoid": c.ellipsoid("velocity", of), "of": m.points[-1].name},
            )
            picture.function = lambda *a, f=f, c=c, **k: getattr(kic.draw(c), f)(*a, **k)
            add(picture)
        found.append(Subject(f"{name}: follow", m.follow, v, m))
        for f in ("simulate", "sweep", "draw", "animate"):
            found.append(Subject(f"{name}: {f}", getattr(kic, f), v, m))
        found.append(
            Subject(
                f"{name}: sensitivity",
                kic.sensitivity,
                {
                    "of": m,
                    "function": lambda x, row=of[0]: x.at().value(row),
                    "parameters": [(m.bodies[0].name, "com")],
                },
                m,
            )
        )
        found.append(
            Subject(
                f"{name}: sensitivity of a function",
                kic.sensitivity,
                {
                    "of": lambda p, m=m: m,
                    "function": lambda x, row=of[0]: x.at().value(row),
                    "parameters": [0.3],
                },
                m,
            )
        )
        for f in (
            "force",
            "inertia",
            "inverse_condition_number",
            "manipulability",
            "mass",
            "min_singular_value",
            "static_effort",
            "transmission",
            "value",
        ):
            given = {**v, "inputs": coordinates if f == "min_singular_value" else [of[0]]}
            found.append(
                Subject(f"{name}: metrics.{f}", getattr(kic.metrics, f), given, m, after=lambda r, c=c: r(c))
            )
        for f in kic.controllers.__all__:
            found.append(
                Subject(
                    f"{name}: controllers.{f}",
                    getattr(kic.controllers, f),
                    v,
                    m,
                    after=lambda law, m=m, c=c: kic.simulate(m, c, 0.01, law, rtol=1e-3, max_steps=20),
                )
            )
        speeds = {**v, "path": batch, "qd": np.ones(M)}
        found.append(Subject(f"{name}: trajectory.at_speed", T.at_speed, speeds, m))
        for f in ("fastest", "uniform"):
            found.append(Subject(f"{name}: trajectory.{f}", getattr(T, f), {**v, "path": line}, m))
        found.append(Subject(f"{name}: split", classics.split, v, m))
        found.append(Subject(f"{name}: count", classics.count_operations, v, m))
        if name == "horn-two-link":
            s = classics.split(c)
            found += methods(
                s, f"{name}: SplitDynamics", {**v, "part": "gravity", "n_major": 1, "coupling": "both"}
            )
            found += methods(s.compare_parts(v["qd"], v["qdd"]), f"{name}: PartComparison", v)
        secondary = {
            "values": dict(v["inputs"]),
            "limits": {n: (x - 1, x + 1) for n, x in v["inputs"].items()},
            "of": of,
            "gain": 1.0,
            "weights": dict.fromkeys(coordinates, 1.0),
        }
        for f in ("PreferredConfiguration", "JointLimits", "Manipulability"):
            found.append(
                Subject(
                    f"{name}: {f}",
                    getattr(kic, f),
                    secondary,
                    m,
                    after=lambda s, c=c, of=of: c.resolve(of, [0.1], [0.1], secondary=s),
                )
            )
        found.append(
            Subject(
                f"{name}: Coefficients()",
                kic.Coefficients,
                {
                    "rows": coefficients.rows,
                    "columns": coefficients.columns,
                    "G": coefficients.G,
                    "H": coefficients.H,
                    "D": None,
                    "values": coefficients.values,
                    "holonomic": True,
                    "quasi": (),
                },
                coefficients,
            )
        )
        found.append(
            Subject(
                f"{name}: Dynamics()",
                kic.Dynamics,
                {
                    "coordinates": coordinates,
                    "I": d.I,
                    "P": d.P,
                    "load": d.load,
                    "damping": d.damping,
                    "efforts": coordinates,
                },
                d,
            )
        )
        for kind in ("bodies", "joints", "points", "motors"):
            for part in getattr(m, kind)[-1:]:
                fields = {k: getattr(part, k) for k in part.__dataclass_fields__ if k[0] != "_"}
                found.append(Subject(f"{name}: {type(part).__name__}", type(part), fields, part))
        fields = {k: getattr(m, k) for k in m.__dataclass_fields__ if k[0] != "_"}
        found.append(Subject(f"{name}: Mechanism()", kic.Mechanism, fields, m, after=lambda x: x.at()))
    found.append(Subject("load", kic.load, {"model": "four-bar"}))
    found.append(Subject("Simulation.load", kic.Simulation.load, {"path": "nowhere.npz"}))
    found.append(Subject("identity", kic.Coefficients.identity, {"names": ["a", "b"], "quasi": ["a"]}))
    found += parts()
    found += paths()
    found += grasps()
    found += closed_forms()
    return tuple(found)


def parts() -> Iterator[Subject]:
    """Return constructors of parts that the mechanisms above do not have."""
    yield Subject(
        "Contact",
        kic.Contact,
        {
            "name": "c",
            "type": "soft",
            "bodies": ("ground", "b"),
            "at": (0, 0, 0),
            "normal": (0, 0, 1),
            "friction": 0.5,
            "torsion": 0.1,
        },
    )
    yield Subject(
        "Coupling",
        kic.Coupling,
        {"name": "c", "joints": ("A", "B"), "ratios": (1.0, 2.0), "gears": None, "belt": None},
    )
    yield Subject(
        "Coupling of gears",
        kic.Coupling,
        {"name": "c", "joints": ("A", "B"), "gears": (1.0, 2.0), "pitch_point": (0, 0, 0)},
    )
    yield Subject("Distance", kic.Distance, {"name": "d", "points": ("A", "B"), "fixed": True})
    yield Subject("Force", kic.Force, {"name": "f", "point": "p", "force": (0, 0, 1), "axes": "body"})
    yield Subject("Moment", kic.Moment, {"name": "f", "body": "p", "moment": (0, 0, 1), "axes": "body"})
    yield Subject(
        "Spring",
        kic.Spring,
        {"name": "s", "points": ("A", "B"), "stiffness": 1.0, "rest": 1.0, "damping": 1.0},
    )
    yield Subject(
        "Motor",
        kic.Motor,
        {
            "name": "s",
            "joints": ("A",),
            "ratios": (2.0,),
            "inertia": 1.0,
            "resistance": 1.0,
            "torque_constant": 1.0,
        },
    )
    yield Subject("Units", kic.Units, {"length": "m"})
    yield Subject("CenterOfMass", kic.CenterOfMass, {"name": "s", "bodies": ["a", "b"]})
    yield Subject("Frame", kic.Frame, {"name": "s", "body": "a", "origin": (0, 0, 0), "axes": np.eye(3)})
    lengths = {
        "ground": 4.0, "crank": 1.0, "coupler": 3.5, "rocker": 3.0, "rod": 3.0, "offset": 0.1, "angle": 0.5,
        "branch": "open", "tip": (1.0, 0.5), "masses": {}, "proximal": 3.0, "distal": (4.0, 4.0),
        "base_radius": 2.0, "platform_radius": 1.0, "height": 3.0, "arm": 2.0, "forearm": 5.0, "legs": "UPS",
    }  # fmt: skip
    for f in ("four_bar", "four_bar_motion", "slider_crank", "five_bar", "stewart", "delta"):
        yield Subject(f"linkages.{f}", getattr(kic.linkages, f), lengths)
    yield Subject("DHRow", kic.DHRow, {"joint": "A", "body": "a"})
    rows = [kic.DHRow("A", "a", a=1.0), {"joint": "B", "body": "b", "a": 0.5}]
    yield Subject(
        "from_dh",
        kic.from_dh,
        {
            "name": "arm",
            "rows": rows,
            "convention": "standard",
            "bodies": [kic.Body("a")],
            "points": [kic.Point("p", "b", (0, 0, 0))],
        },
        after=lambda m: m.at(),
    )
    robot = (
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/></inertial></link>'
        '<joint name="A" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>'
        "</robot>"
    )
    for f in ("from_urdf", "from_sdf", "from_mujoco"):
        given = {
            "model": robot,
            "floating_base": True,
            "coordinates": ["A"],
            "start": {"A": 0.0},
            "strict": False,
        }
        yield Subject(f, getattr(kic, f), given)
    for f in ("to_urdf", "to_mjcf"):
        yield Subject(f, getattr(kic, f), {"mechanism": kic.load("horn-two-link")})
    for f in ("bilinear", "cross", "dot", "form", "quadratic"):
        e, t = np.eye(3), np.ones((3, 3, 3))
        given = {"A": e, "B": e, "T": t, "C": e, "D": t, "L": e, "R": e, "order": 1, "vectors": (e[0],)}
        given["C"] = e if f == "quadratic" else t
        yield Subject(f"products.{f}", getattr(kic.products, f), given)


def paths() -> Iterator[Subject]:
    """Return calls of trajectories without a mechanism."""
    T = kic.trajectory
    for label, start, end in (
        ("arrays", [0.0, 1.0], [1.0, 2.0]),
        ("names", {"A": 0.0, "B": 1.0}, {"A": 1.0, "B": 2.0}),
    ):
        limit = dict.fromkeys(start, 1.0) if isinstance(start, dict) else [1.0, 1.0]
        v = {
            "start": start, "end": end, "duration": 2.0, "velocity": limit, "acceleration": limit,
            "jerk": limit, "together": "line", "times": [0.0, 1.0],
            "rates": [limit, limit] if isinstance(limit, list) else {n: [0.0, 0.0] for n in start},
            "points": [start, end] if isinstance(start, list) else {n: [start[n], end[n]] for n in start},
            "degree": 5, "ends": "rest", "stops": [0], "start_rate": limit, "end_rate": limit,
            "start_acceleration": limit, "end_acceleration": limit, "t": [0.1, 0.5], "beyond": "hold",
            "order": 1, "factor": 2.0, "q": [0.0, 0.0], "names": ["A"], "near": None,
            "velocity_limits": None, "samples": 11, "accelerations": None, "jerks": None, "rows": (),
        }  # fmt: skip
        line = T.line(start, end)
        v |= {"parts": [line, line.reversed()], "path": line, "trajectory": line}
        for f in (
            "concatenate",
            "fastest",
            "hermite",
            "line",
            "quintic",
            "s_curve",
            "septic",
            "spline",
            "trapezoid",
            "uniform",
        ):
            yield Subject(f"{label}: {f}", getattr(T, f), v, line)
        yield from methods(line, f"{label}: line", v)
        curve = T.quintic(start, end, 2.0)
        yield from methods(curve, f"{label}: quintic", v)
    turns = Rotation.from_rotvec([[0, 0, 0], [0.3, 0, 0.2], [0, 1, 0]])
    v = {
        "rotations": turns, "times": [0, 1, 3.0], "duration": 2.0, "degree": 5, "ends": "rest",
        "stops": [1], "t": [0.1, 0.2], "beyond": "hold", "factor": 2.0,
    }  # fmt: skip
    yield Subject("rotation", T.rotation, v, turns)
    yield from methods(T.rotation(turns), "OrientationTrajectory", v)


def grasps() -> Iterator[Subject]:
    """Return calls of contact sets, and of a hand."""
    points, normals = [[1.0, 0, 0], [-1, 0, 0], [0, 1, 0]], [[-1.0, 0, 0], [1, 0, 0], [0, -1, 0]]
    v = {
        "points": points, "normals": normals, "kinds": ["friction", "soft", "friction"], "mu": 0.5,
        "gamma": 0.1, "about": [0, 0, 0.0], "tangents": None, "plane": None, "names": ["a", "b", "c"],
        "linear": np.zeros((3, 3, 2)), "angular": np.zeros((3, 3, 2)), "method": "pyramids", "edges": 6,
        "failures": "mask", "wrench": [0, 0, 1.0, 0, 0, 0], "criterion": "minimum norm", "least": 0.0,
        "safety": 1.0, "direction": [0, 0, 1.0, 0, 0, 0], "jacobian": None, "limits": None, "lower": None,
        "offset": None, "joints": None, "force": np.zeros(10), "qd": None, "qdd": None,
        "forces": "minimum norm",
    }  # fmt: skip
    s = kic.ContactSet(points, normals, v["kinds"], 0.5, 0.1)
    v["contacts"] = s
    v["force"] = np.zeros(s.G.shape[-1]) if hasattr(s, "G") else np.zeros(10)
    yield Subject("ContactSet", kic.ContactSet, v, s)
    yield from methods(s, "ContactSet", v)
    for f in ("force_closure", "form_closure", "grip_forces", "grasp_map", "contact_frames", "largest_load"):
        yield Subject(f, getattr(kic, f), v, s)
    m = kic.load("three-finger-hand")
    c = m.at()
    yield Subject("Configuration.grasp", c.grasp, {"held": m.bodies[0].name, "fingers": None, "order": 1}, c)
    for body in m.bodies:
        try:
            g = c.grasp(body.name)
        except kic.KicError:
            continue
        n = len(m.coordinate_names)
        yield Subject("Configuration.grasp", c.grasp, {"held": body.name, "order": 1}, c)
        yield from methods(g, "Grasp", {**v, "qd": np.zeros(n), "qdd": np.zeros(n), "method": "cones"})
        yield from methods(g.motion(), "GraspMotion", v)
        yield Subject("Grasp.motion", g.motion, {**v, "qd": np.zeros(n), "qdd": np.zeros(n)}, g)
        break


def closed_forms() -> Iterator[Subject]:
    """Return calls of the closed forms of `kic.classics`."""
    rows = {
        "Leg": {"l2": 0.5, "l3": 0.4, "m2": 1.0, "m3": 1.0, "gravity": (0, 0, -9.81)},
        "PointMassArm": {"l1": 0.5},
        "ThreeLink": {"l1": 1.0, "l2": 0.8, "l3": 0.5, "m1": 1.0, "m2": 1.0, "m3": 1.0, "g": 9.8},
        "TwoLink": {"l1": 1.0, "l2": 0.8, "m1": 1.0, "m2": 1.0, "g": 9.8},
        "WristPartitioned": {"a23": 0.4, "a34": 0.3, "s11": 0.1},
    }
    for name, given in rows.items():
        kind = getattr(classics, name)
        made = kind(**given)
        n = {"TwoLink": 2, "PointMassArm": 2}.get(name, 3)
        q = np.linspace(0.3, 0.6, n)
        v = {
            "q": q, "qd": q, "qdd": q, "theta": q, "order": 2, "torques": q, "force": q, "wrench": q,
            "failures": "mask", "link": 3, "s": 0.2, "P": np.array([0.3, 0.3, 0.1]),
            "pose": np.array([1.0, 0.5, 0.3]), "tip": np.array([1.0, 0.5]),
        }  # fmt: skip
        if name == "WristPartitioned":
            v["theta"] = np.linspace(0.3, 0.6, 6)
        yield Subject(f"classics.{name}()", kind, given, made)
        yield from methods(made, f"classics.{name}", v)
    yield Subject("classics.reachable_workspace", classics.reachable_workspace, {"lengths": (1.0, 0.5)})
    yield Subject("classics.table_1", classics.table_1, {"method": "x", "n_joints": 3})
    yield Subject("classics.dexterous_radii", classics.dexterous_radii, {"l1": 1.0, "l2": 0.5, "l3": 0.3})
    yield Subject(
        "classics.ThreeLinkPuma",
        classics.ThreeLinkPuma,
        {"masses": [1, 1, 1.0], "coms": np.zeros((3, 3)), "inertias": np.ones((3, 3))},
    )
    yield Subject("classics.OperationTable", classics.OperationTable, {"n_joints": range(1, 3)})
    yield from methods(classics.reachable_workspace(1.0, 0.5), "Annulus", {"radius": 1.0})
