"""Dynamic parameters, in which efforts are linear: ten numbers of each body; friction, springs and rotors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kic.description.description import D, MechanismDescription, find_part, replace_fields
from kic.description.parts import TENSOR_ENTRIES, Body, Distance, Joint, Measure, inertia_about
from kic.description.validation import GROUND
from kic.dynamics.mass_and_load_tables import Masses
from kic.errors import InputError, unknown
from kic.kernels.functions import root
from kic.kinematics.tree import Tree
from kic.numerics.arguments import names_of

# parameters of a body: mass, first moments and inertia about its moment point
INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
FIRST = slice(1, 4)
# a joint, and a distance or an angle; `offset` is a constant effort, −stiffness · rest of a spring
OF_ROW = ("armature", "damping", "friction", "stiffness", "offset")
OF_SPRING = ("stiffness", "damping", "offset")
OF_MOTOR = ("inertia", "damping", "friction")
# a constant effort that would need a longer rest than this is none of a spring
REST_MAX = 1e6
# those that resist acceleration; the others are loads
INERTIAL_LAWS = ("armature", "inertia")


class Law(NamedTuple):
    """A parameter of a joint coordinate, distance, angle, spring or motor: an effort on one scalar motion.

    Attributes
    ----------
    part, name, key : str
        Name of the part, that of the parameter, such as "A.damping", and its last word.
    rows : tuple of str
        Rows on which the motion depends: a coordinate, those of a shaft, or the two points of a spring.
    weights : tuple of float or None
        Factors of the rows in the motion; None for the distance of two points.
    slides : bool
        True if the rows are lengths.
    value : float
        Value in the description.
    """

    part: str
    name: str
    key: str
    rows: tuple[str, ...]
    weights: tuple[float, ...] | None
    slides: bool
    value: float


@dataclass(frozen=True)
class DynamicParameters:
    """Chosen parameters of a mechanism.

    Attributes
    ----------
    names, values : tuple of str, (K,) ndarray
        Names, and values in the description; NaN where it has none.
    bodies : tuple of str
        Bodies whose ten numbers are computed, in the order of their frames.
    laws : tuple of Law
        Other parameters.
    select : (K,) int or None
        Places of the parameters among those of `bodies` and `laws`; None if these are all, in order.
    points : dict of str to (3,)
        Moment points of the bodies, in the reference configuration.
    """

    names: tuple[str, ...]
    values: np.ndarray
    bodies: tuple[str, ...]
    laws: tuple[Law, ...]
    select: np.ndarray | None
    points: dict[str, tuple[float, ...]]

    @property
    def rows(self) -> tuple[str, ...]:
        """Tuple of the rows on which the laws depend."""
        return tuple(dict.fromkeys(name for law in self.laws for name in law.rows))

    def chosen(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns (..., K) of the parameters, from those of `bodies` and `laws`."""
        return columns if self.select is None else columns[..., self.select]


def moment_points(description: MechanismDescription) -> dict[str, tuple[float, ...]]:
    """Return the points to which the moments of each body refer.

    The point is `at` of the first joint that connects it to ground, else of the first joint whose second body
    it is, else of the first joint whose first body it is, else the origin of the world. A massless body on a
    held joint, such as the slider of a dimension, counts as part of the body that it is held to.
    """
    whole = _held_together(description)
    found: dict[str, tuple[float, ...]] = {}
    joints = [
        ([whole[body] for body in joint.bodies], joint.at)
        for joint in description.joints
        if joint.at is not None and whole[joint.bodies[0]] != whole[joint.bodies[1]]
    ]
    on_ground = [(bodies, at) for bodies, at in joints if GROUND in bodies]
    for some, side in ((on_ground, 1), (on_ground, 0), (joints, 1), (joints, 0)):
        for bodies, at in some:
            found.setdefault(bodies[side], at)
    return {body.name: found.get(whole[body.name], (0.0, 0.0, 0.0)) for body in description.bodies}


def _held_together(description: MechanismDescription) -> dict[str, str]:
    """Return by body, and for ground, a body to which held joints of massless bodies join it.

    A joint that is coupled to a held one alone is held, too.
    """
    whole = {name: name for name in (GROUND, *(body.name for body in description.bodies))}
    massless = {body.name for body in description.bodies if body.mass == 0}
    held = {joint.name for joint in description.joints if joint.held}
    for coupling in description.couplings:
        if len(coupling.joints) == 2 and not held.isdisjoint(coupling.joints):
            held |= set(coupling.joints)
    for joint in description.joints:
        if joint.name in held and not massless.isdisjoint(joint.bodies):
            kept, other = (whole[body] for body in joint.bodies)
            if other == GROUND:
                kept, other = other, kept
            whole = {body: kept if name == other else name for body, name in whole.items()}
    return whole


def _inertial_values(description: MechanismDescription, body: Body, about: Any) -> np.ndarray:
    """Return the ten numbers of a body with its point masses; NaN where the description has none."""
    made = np.full(10, np.nan)
    if body.mass is not None:
        made = inertial_numbers(body.mass, body.com, body.inertia, about)
    return made + carried_numbers(description, body.name, about)


def carried_numbers(description: MechanismDescription, body: str, about: Any) -> np.ndarray:
    """Return the ten numbers of the point masses that a body carries."""
    points = (point for point in description.points if point.body == body and point.mass)
    return sum((inertial_numbers(p.mass, p.at, np.zeros((3, 3)), about) for p in points), np.zeros(10))


def inertial_numbers(mass: Any, com: Any, inertia: Any, about: Any) -> np.ndarray:
    """Return the ten numbers about a point of a body with its central inertia."""
    arm = np.zeros(3) if com is None else np.subtract(com, about)
    if inertia is None:
        inertia = np.full((3, 3), np.nan if mass else 0.0)
    return np.array([mass, *(mass * arm), *inertia_about(arm, mass, inertia)[TENSOR_ENTRIES]])


def pseudo_inertia(numbers: np.ndarray) -> np.ndarray:
    """Return the pseudo-inertia ∫ s̃ s̃ᵀ dm (..., 4, 4) of ten numbers, where s̃ = (x, y, z, 1).

    It is positive definite for a body with mass in more than one plane.
    """
    J = np.zeros((*numbers.shape[:-1], 4, 4), numbers.dtype)
    J[..., 3, 3] = numbers[..., 0]
    J[..., :3, 3] = J[..., 3, :3] = numbers[..., FIRST]
    moments, (rows, columns) = numbers[..., 4:], TENSOR_ENTRIES
    J[..., rows, columns] = J[..., columns, rows] = -moments
    J[..., range(3), range(3)] += moments[..., :3].sum(axis=-1, keepdims=True) / 2
    return J


def ten_numbers(J: np.ndarray) -> np.ndarray:
    """Return the ten numbers of a pseudo-inertia (4, 4)."""
    inertia = np.trace(J[:3, :3]) * np.eye(3) - J[:3, :3]
    return np.array([J[3, 3], *J[:3, 3], *inertia[TENSOR_ENTRIES]])


def _laws(description: MechanismDescription) -> Iterator[Law]:
    """Yield the laws of all joints, distances, angles, springs and motors."""
    slides: dict[str, bool] = {}
    for joint in description.joints:
        slides |= zip(joint.components, joint.translations, strict=True)
        numbers = (joint.armature, joint.damping, joint.friction, joint.stiffness, joint.rest)
        for name, *own, stiffness, rest in zip(joint.components, *numbers, strict=True):  # type: ignore[arg-type]
            values = (*own, stiffness, -stiffness * rest)
            keys = OF_ROW if name in joint.valued else OF_ROW[:3]
            for key, value in zip(keys, values, strict=False):
                yield Law(joint.name, f"{name}.{key}", key, (name,), (1.0,), slides[name], value)
    for measure in (*description.distances, *description.angles):
        slides[measure.name] = isinstance(measure, Distance)
        for key in () if measure.fixed else OF_ROW:
            name = measure.name
            yield Law(name, f"{name}.{key}", key, (name,), (1.0,), slides[name], 0.0)
    for spring in description.springs:
        values = (spring.stiffness, spring.damping, -spring.stiffness * spring.rest)
        for key, value in zip(OF_SPRING, values, strict=True):
            yield Law(spring.name, f"{spring.name}.{key}", key, spring.points, None, True, value)
    for motor in description.motors:
        rows, ratios = description._shafts[motor.name], motor.ratios
        for key in OF_MOTOR:
            name, value = f"{motor.name}.{key}", getattr(motor, key)
            yield Law(motor.name, name, key, rows, ratios, slides[rows[0]], value)


def dynamic_parameters(
    tree: Tree, of: str | Iterable[str] | None, inertial: bool = False
) -> DynamicParameters:
    """Return the parameters of parts, or single ones; by default those in the description.

    These are the ten numbers of every moving body that is not massless, and the numbers of joints and springs
    that are not zero, but for dry friction. If they are `inertial`, they are those of bodies alone.
    """
    description, scalar = tree.description, tree.scalar
    points = moment_points(description)
    bodies = sorted(
        (body for body in description.bodies if tree.frame[body.name] >= 0),
        key=lambda body: tree.frame[body.name],
    )
    numbers = {body.name: _inertial_values(description, body, points[body.name]) for body in bodies}
    laws = {} if inertial else {law.name: law for law in _laws(description)}
    groups: dict[str, list[str]] = {name: [f"{name}.{key}" for key in INERTIAL] for name in numbers}
    for law in laws.values():
        for group in dict.fromkeys((law.part, law.name.rpartition(".")[0])):
            groups.setdefault(group, []).append(law.name)
    if of is None:
        motors = {motor.name for motor in description.motors}
        chosen = [name for body, values in numbers.items() if values.real.any() for name in groups[body]]
        chosen += [
            law.name
            for law in laws.values()
            if law.value.real and law.key != "friction" and law.part not in motors
        ]
    else:
        singles = dict.fromkeys(name for members in groups.values() for name in members)
        chosen = []
        for name in names_of(of, least=1):
            if name not in groups and name not in singles:
                raise unknown("parameter", name, description.name, [*groups, *singles])
            chosen += groups.get(name, [name])
        chosen = list(dict.fromkeys(chosen))
    owners = {name.rpartition(".")[0] for name in chosen}
    used = tuple(name for name in numbers if name in owners)
    own = tuple(laws[name] for name in chosen if name in laws)
    every = [f"{body}.{key}" for body in used for key in INERTIAL] + [law.name for law in own]
    values = np.array([*np.ravel([numbers[body] for body in used]), *(law.value for law in own)], scalar)
    select = None
    if every != chosen:
        place = {name: k for k, name in enumerate(every)}
        select = np.array([place[name] for name in chosen], dtype=np.intp)
        values = values[select]
    return DynamicParameters(tuple(chosen), values, used, own, select, {body: points[body] for body in used})


def parameters_with_value(tree: Tree, motors: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the parameters that are not zero, with dry friction and those of some motors."""
    others = {motor.name for motor in tree.description.motors}.difference(motors)
    laws = (law.name for law in _laws(tree.description) if law.value.real and law.part not in others)
    return tuple(dict.fromkeys((*dynamic_parameters(tree, None).names, *laws)))


def with_parameters(description: D, values: Mapping[str, float]) -> D:
    """Return a description with other values of some parameters; others of these bodies must have a value.

    A constant effort becomes the rest of a joint or spring with stiffness; a joint without stiffness has no
    field for it.
    """
    laws, points = {law.name: law for law in _laws(description)}, moment_points(description)
    fields: dict[str, dict[str, Any]] = {}
    for body in description.bodies:
        names = [f"{body.name}.{key}" for key in INERTIAL]
        if values.keys().isdisjoint(names):
            continue
        about, old = np.array(points[body.name]), _inertial_values(description, body, points[body.name])
        whole = [values.get(name, x) for name, x in zip(names, old, strict=True)]
        own = np.array(whole) - carried_numbers(description, body.name, about)
        arm = own[FIRST] / own[0] if own[0] else np.zeros(3)
        central = own - inertial_numbers(own[0], about + arm, np.zeros((3, 3)), about)
        fields[body.name] = {"mass": float(own[0]), "inertia": tuple(central[4:].tolist())}
        if own[0]:
            fields[body.name]["com"] = tuple((about + arm).tolist())
    value: Any
    for name in (name for name in values if name in laws):
        law, key = laws[name], laws[name].key
        part: Any = find_part(description, law.part)
        if isinstance(part, Measure):
            raise InputError(
                f"`parameters` must have a field in the description, got '{name}', which has none. Add a "
                "spring with this damping or stiffness between the points, or use the number itself.",
                key="parameters",
                name=name,
            )
        changed = fields.setdefault(law.part, {})
        k = part.components.index(law.rows[0]) if isinstance(part, Joint) else None
        field, value = key, values[name]
        if key == "offset":
            own = part.stiffness if k is None else part.stiffness[k]
            stiffness = values.get(f"{name.rpartition('.')[0]}.stiffness", own)
            if abs(value) >= REST_MAX * stiffness:
                continue
            field, value = "rest", -value / stiffness
        if k is not None:
            now = changed.get(field, getattr(part, field))
            value = (*now[:k], value, *now[k + 1 :])
        changed[field] = value
    for name, changes in fields.items():
        description = replace_fields(description, name, **changes)
    return description


def pack_bodies(tree: Tree, names: Sequence[str]) -> Masses:
    """Pack moment points and axes of bodies, numbers (n, 12), for the regressor; see `kic.kernels.layout`."""
    frames = [tree.frame[name] for name in names]
    points = moment_points(tree.description)
    numbers = [
        np.concatenate([tree.local_point(n, points[name]), tree.axes(n).ravel()])
        for name, n in zip(names, frames, strict=True)
    ]
    table = np.array(numbers, tree.scalar).reshape(-1, 12)
    return Masses(tuple(names), np.array(frames, dtype=np.int64), table)


class LawColumns:
    """Columns of the regressor of laws, from the coefficients of their rows.

    Parameters
    ----------
    laws : sequence of Law
        The laws.
    places : dict of str to slice
        Places of their rows among those whose coefficients are given.
    weights : sequence of ndarray, optional
        Factors of the rows of each law, instead of its own.

    Attributes
    ----------
    order : {1, 2}
        Order of the coefficients.
    springs : list of int
        Laws of springs between points.
    """

    def __init__(
        self, laws: Sequence[Law], places: Mapping[str, slice], weights: Sequence[Any] | None = None
    ) -> None:
        self.laws, self.places = laws, places
        size = max((place.stop for place in places.values()), default=0)
        self.weights = np.zeros((len(laws), size), float if weights is None else object)
        self.springs = [k for k, law in enumerate(laws) if law.weights is None]
        kinds: dict[str, list[int]] = {}
        for k, law in enumerate(laws):
            if law.weights is not None:
                kinds.setdefault(law.key, []).append(k)
                for row, weight in zip(law.rows, law.weights if weights is None else weights[k], strict=True):
                    self.weights[k, places[row].start] = weight
        self._inertial = [k for key in INERTIAL_LAWS for k in kinds.get(key, ())]
        self._viscous, self._dry = kinds.get("damping", []), kinds.get("friction", [])
        self._elastic, self._constant = kinds.get("stiffness", []), kinds.get("offset", [])
        self.order = 2 if self._inertial else 1

    def columns(
        self, tables: Sequence[np.ndarray], qd: np.ndarray, qdd: np.ndarray, loads: bool = True
    ) -> np.ndarray:
        """Return the columns (..., M, L) of L laws.

        `tables` are values (..., P), G (..., P, M) and for order 2 H (..., P, M, M) of P rows. Without
        `loads`, only columns of inertia are not zero.
        """
        values, G, *H = tables
        values = np.where(values != values, 0.0, values)  # rates without a value have NaN
        along = self.weights @ G
        rate = _times(along, qd)
        factor = np.zeros(rate.shape, rate.dtype)
        if self._inertial:
            bend = _times(_times(H[0], qd[..., None, :]), qd)
            factor[..., self._inertial] = (_times(along, qdd) + bend @ self.weights.T)[..., self._inertial]
        if loads:
            factor[..., self._viscous] = rate[..., self._viscous]
            factor[..., self._elastic] = (values @ self.weights.T)[..., self._elastic]
            factor[..., self._constant] = 1.0
            if self._dry:
                factor[..., self._dry] = self._signs(rate)
            for k in self.springs:
                along[..., k, :], factor[..., k] = self._spring(self.laws[k], values, G, qd)
        return np.swapaxes(along * factor[..., None], -1, -2)

    def _signs(self, rate: np.ndarray) -> np.ndarray:
        """Return the signs of the rates of dry friction."""
        if rate.dtype.kind == "O":
            names = tuple(self.laws[k].name for k in self._dry)
            raise InputError(
                f"Dry friction must have numbers, got symbols for {', '.join(names)}: its effort has the "
                "sign of a rate. Name other parameters in `of`.",
                key="of",
                names=names,
            )
        return np.sign(rate[..., self._dry].real)

    def _spring(self, law: Law, values: np.ndarray, G: np.ndarray, qd: np.ndarray) -> tuple[Any, Any]:
        """Return the gradient (..., M) and the factor (...) of the effort of a spring between two points."""
        a, b = (self.places[name] for name in law.rows)
        w, along = values[..., b] - values[..., a], G[..., b, :] - G[..., a, :]
        if law.key != "stiffness":  # k (l − l₀) w / l = k w + offset w / l
            with np.errstate(invalid="ignore"):
                w = w / _roots((w * w).sum(axis=-1, keepdims=True))
        gradient = _times(np.swapaxes(along, -1, -2), w)
        return gradient, (gradient * qd).sum(axis=-1) if law.key == "damping" else 1.0


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the products of matrices (..., i, j) and vectors (..., j)."""
    return (A @ x[..., None])[..., 0]


def _roots(a: np.ndarray) -> np.ndarray:
    """Return the square roots of numbers or symbols."""
    return np.asarray(np.frompyfunc(root, 1, 1)(a), object) if a.dtype.kind == "O" else np.sqrt(a)
