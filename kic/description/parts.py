"""Parts of a mechanism: bodies, joints, points, distances, angles and loads; immutable, without state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.description import validation as valid
from kic.description.joint_types import BALL_TYPES, JOINT_AXES, JOINT_COORDINATES, JOINT_DOF, JointType
from kic.description.validation import GROUND, Vector, assign, check_part
from kic.errors import ModelError, counted, invalid_part
from kic.numerics.arrays import reals, step_vanishes, strip_complex_step

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

Six = tuple[float, float, float, float, float, float]
# rows and columns of xx yy zz xy xz yz
TENSOR_ENTRIES = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)
# allowed violation of the triangle inequality of principal moments; published values are rounded
INERTIA_RTOL = 1e-6


def check_inertia(label: str, given: Any, mass: float | None = None, exception: str = "") -> Axes:
    """Check an inertia in any form of `Body`, and return it as a matrix.

    The inertia must be 0 for mass 0, and physically possible unless `exception` gives a reason.
    """
    a = reals(given)
    if a is not None and a.shape == ():
        a = np.full(3, a)
    if a is None or a.shape not in ((3,), (6,), (3, 3)):
        forms = "one moment, 3 moments (xx yy zz), 6 numbers (xx yy zz xy xz yz) or a 3×3 matrix, all finite"
        raise invalid_part(label, "inertia", f"must be {forms}", given)
    valid.check_size(label, "inertia", a)
    if a.shape == (3, 3):
        difference = float(np.abs(a - a.T).max())
        if difference > 1e-12 * np.abs(a).max() or not step_vanishes(a - a.T, a):
            message = (
                f"{label}: `inertia` must be symmetric; the largest difference from its transpose is "
                f"{difference:.3g}."
            )
            raise ModelError(message, key="inertia", difference=difference)
        a = a[TENSOR_ENTRIES]
    xx, yy, zz, *products = a.tolist()
    xy, xz, yz = products or (0.0, 0.0, 0.0)
    matrix = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    if not exception:
        _check_possible(label, given, np.array(strip_complex_step(matrix)), strip_complex_step(mass))
    return matrix


def _check_possible(label: str, given: Any, inertia: np.ndarray, mass: float | None) -> None:
    """Raise an error for an inertia that no distribution of mass can have."""
    remedy = "Correct `inertia`, or give the reason for it as `inertia_exception`."
    largest = inertia.diagonal().max()
    if np.count_nonzero(inertia) == 1 and largest > 0:
        remedy = f"For motion in a plane give one number, `inertia = {largest:g}`. {remedy}"
    if mass == 0 and inertia.any():
        raise invalid_part(label, "inertia", "must be 0 with mass = 0", given, remedy)
    low, middle, high = (float(x) for x in np.linalg.eigvalsh(inertia))
    slack, excess = INERTIA_RTOL * max(high, 0.0), high - (low + middle)
    if low < -slack or excess > slack:
        found = f", and the largest exceeds the sum of the others by {excess:.3g}" if low >= -slack else ""
        message = (
            f"{label}: no body has the principal moments of inertia {low:.6g}, {middle:.6g}, {high:.6g}"
            f"{found}: none may be negative, and none may exceed the sum of the other two. {remedy}"
        )
        raise ModelError(message, key="inertia", principal=(low, middle, high), excess=excess)


def combined_inertia(parts: Iterable[tuple[float, Any, Any]]) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre of mass, and central inertia (3, 3) of rigidly connected parts."""
    known = [(mass, np.asarray(com), np.asarray(inertia)) for mass, com, inertia in parts]
    total = sum(mass for mass, *_ in known)
    com = known[0][1]
    if total and len(known) > 1:
        com = sum((mass * c for mass, c, _ in known), np.zeros(3)) / total
    J = np.zeros((3, 3))
    for mass, c, own in known:
        J = J + inertia_about(c - com, mass, own)
    return total, com, J


def inertia_about(arm: np.ndarray, mass: Any, inertia: Any) -> np.ndarray:
    """Return the inertia (3, 3) about a point, from that about the centre of mass, which lies at `arm`."""
    return np.asarray(inertia) + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))


AXES = ("world", "body")
Axes = tuple[Vector, Vector, Vector]
WORLD: Axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
# largest deviation of given axes from orthogonal unit vectors: directions are published with three digits
AXES_ATOL = 1e-3
# deviation below which axes are kept as given: a few rounding errors
ORTHOGONAL_ATOL = 1e-14
# largest cosine of the angle between the two axes of a joint
PERPENDICULAR_ATOL = 1e-9
# fields of a joint that must be nonnegative; a single number applies to every coordinate
_PER_JOINT = ("stiffness", "damping", "armature", "friction")


@dataclass(frozen=True)
class Body:
    """Rigid body, described in world axes in the reference configuration.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    mass : float, optional
        Mass. Without it the body has no dynamics; 0 means massless.
    com : (3,) float, optional
        Centre of mass in the reference configuration; not needed without mass.
    inertia : float, (3,), (6,) or (3, 3) float, optional
        Inertia about the centre of mass, in world axes of the reference configuration. A scalar is the moment
        about every axis; in planar motion only the moment about the normal matters. Otherwise moments xx yy
        zz; or xx yy zz xy xz yz, entries of the tensor (xy = −∫ x y dm); or the matrix. The attribute is the
        matrix, as three rows.
    at : (3,) float, optional
        Reference point of the rows x y z of the body; by default the centre of mass.
    inertia_exception : str
        Reason for an inertia that no real body can have, such as published partial data.
    """

    name: str
    _: KW_ONLY
    mass: float | None = None
    com: Vector | None = None
    if TYPE_CHECKING:  # the attribute has one form
        inertia: Axes | None = None
    else:
        inertia: float | Vector | Six | Axes | None = None
    at: Vector | None = None
    inertia_exception: str = ""

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            *,
            mass: float | None = None,
            com: Sequence[float] | np.ndarray | None = None,
            inertia: float | Sequence[float] | Sequence[Sequence[float]] | np.ndarray | None = None,
            at: Sequence[float] | np.ndarray | None = None,
            inertia_exception: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        label = check_part(
            self,
            "body",
            mass=valid.nonnegative,
            com=valid.vector,
            at=valid.vector,
            inertia_exception=valid.text,
        )
        if self.name == GROUND:
            raise ModelError(f"'{GROUND}' is the fixed world and cannot be a body.", key="name")
        if self.mass and self.com is None:
            message = f"{label} has mass {self.mass:g} but no `com`. Give its centre of mass."
            raise ModelError(message, key="com")
        if self.inertia is not None:
            assign(self, inertia=check_inertia(label, self.inertia, self.mass, self.inertia_exception))

    @property
    def reference(self) -> Vector | None:
        """Reference point of the rows x y z: `at`, or else the centre of mass."""
        return self.at if self.at is not None else self.com

    @property
    def body(self) -> str:
        """Name of the body itself, which carries its frame."""
        return self.name

    @property
    def origin(self) -> Vector:
        """Origin of the frame of the body: the world origin in the reference configuration."""
        return (0.0, 0.0, 0.0)

    @property
    def axes(self) -> Axes:
        """Unit vectors of the frame of the body: the world axes in the reference configuration."""
        return WORLD


@dataclass(frozen=True)
class Joint:
    """Joint between two bodies; its coordinates are the motion of the second relative to the first.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism. Several coordinates are called name.1, name.2 …
    type : {"revolute", "prismatic", "fixed", "cylindrical", "universal", "spherical", "planar", "free"}
        Type of joint.
    bodies : (2,) str
        The two connected bodies; "ground" is the fixed world.
    at : (3,) float, optional
        A point on the axis, or the centre, in the reference configuration.
    axis : (3,) float, optional
        Axis in the reference configuration, of any length; the first of two for universal and planar joints.
    axis2 : (3,) float, optional
        Second axis of a universal joint (carried by the first), or second direction of a planar joint.
        Spherical and free joints may have both, as the x and y axes of their coordinates, carried by the
        first body; by default the world axes.
    value : float or sequence of float
        Value of each coordinate in the reference configuration (angles in radians). It sets the origin of the
        coordinate and does not move the bodies.
    stiffness, rest, damping : float or sequence of float
        Stiffness of a spring in the joint, its unstretched coordinate, and viscous damping; one number for
        each coordinate, or one stiffness and damping for all.
    armature, friction : float or sequence of float
        Inertia of a geared rotor that resists the acceleration of the joint, and dry friction, which only
        `regressor` includes; one number for each coordinate, or one for all.
    limits : (2,) float or sequence of them, optional
        Lower and upper limit of the coordinate, or of each coordinate that has a value; may be infinite.
        Functions with an argument `limits` respect them if it is True.
    effort_limits, rate_limits : float, (2,) float or sequence of them, optional
        Limits of actuator effort and rate, one for each coordinate: a magnitude, or a lower and an upper
        limit. `trajectory.fastest` and `uniform`, `distribute` and `controllers.Sampled` respect them if
        their arguments of these names are True.
    swing : float, optional
        Largest swing of a universal or spherical joint in radians: the angle between two directions, one in
        each body, that coincide in the reference configuration. A limit like those of coordinates.
    swing_axis : (3,) float, optional
        Direction for `swing`; by default the normal of both axes of a universal joint. Needed for spherical
        joints.
    held : bool
        True for a single coordinate that keeps its reference value unless it is given, such as a dimension;
        see `Mechanism.vary`.
    """

    name: str
    type: JointType
    bodies: tuple[str, str]
    at: Vector | None = None
    axis: Vector | None = None
    _: KW_ONLY
    axis2: Vector | None = None
    value: float | tuple[float, ...] = 0.0
    stiffness: float | tuple[float, ...] = 0.0
    rest: float | tuple[float, ...] = 0.0
    damping: float | tuple[float, ...] = 0.0
    armature: float | tuple[float, ...] = 0.0
    friction: float | tuple[float, ...] = 0.0
    limits: tuple[float, float] | tuple[tuple[float, float], ...] | None = None
    effort_limits: float | tuple[float, float] | tuple[float | tuple[float, float], ...] | None = None
    rate_limits: float | tuple[float, float] | tuple[float | tuple[float, float], ...] | None = None
    swing: float | None = None
    swing_axis: Vector | None = None
    held: bool = False

    def __post_init__(self) -> None:
        types = partial(valid.choice, among=JOINT_DOF)
        label = check_part(self, "joint", type=types, bodies=valid.two_names, held=valid.flag)
        if self.held and self.dof != 1:
            remedy = "Only a single coordinate can be held."
            raise invalid_part(label, "held", f"must be False for a {self.type} joint", True, remedy)
        self._geometry(label)
        for key in ("value", "stiffness", "rest", "damping", "armature", "friction"):
            assign(self, **{key: self._per_coordinate(label, key)})
        if self.type in BALL_TYPES:
            self._no_angles(label)
        self._check_limits(label)
        for key in ("effort_limits", "rate_limits"):
            self._check_bounds(label, key)

    def _check_bounds(self, label: str, key: str) -> None:
        """Check limits of efforts or rates, one pair for each coordinate."""
        given, count = getattr(self, key), len(self.components)
        if given is None:
            return
        if count == 1:
            assign(self, **{key: valid.bounds(label, key, given)})
            return
        several = valid.listed(label, key, given, f"{count} limits")
        if len(several) != count or not count:
            remedy = f"Give one for each of {', '.join(self.components)}." if count else "Leave it out."
            raise invalid_part(label, key, f"must have {count} entries", given, remedy)
        assign(self, **{key: tuple(valid.bounds(label, key, one) for one in several)})

    def _check_limits(self, label: str) -> None:
        """Check limits of coordinates and swing."""
        if self.limits is not None:
            count = len(self.valued)
            if not count:
                remedy = " Give `swing`." if self.type == "spherical" else " Leave it out."
                message = f"{label}: a {self.type} joint has no coordinate that `limits` could bound.{remedy}"
                raise ModelError(message, key="limits")
            if count == 1:
                assign(self, limits=valid.interval(label, "limits", self.limits))
            else:
                pairs = valid.listed(label, "limits", self.limits, f"{count} pairs")
                remedy = f"Give one pair for each of {', '.join(self.valued)}."
                if len(pairs) != count:
                    raise invalid_part(label, "limits", f"must have {count} pairs", self.limits, remedy)
                assign(self, limits=tuple(valid.interval(label, "limits", pair, remedy) for pair in pairs))
        if self.swing is None and self.swing_axis is None:
            return
        if self.type not in ("universal", "spherical") or self.swing is None:
            key = "swing_axis" if self.swing is None else "swing"
            raise ModelError(
                f"{label}: `{key}` needs a universal or spherical joint with `swing`. Leave it out, or use "
                "`limits`.",
                key=key,
            )
        assign(self, swing=valid.number(label, "swing", self.swing, 0.0))
        if not 0 < self.swing.real <= np.pi:
            raise invalid_part(label, "swing", "must be between 0 and π", self.swing, "Give radians.")
        if self.swing_axis is not None:
            assign(self, swing_axis=valid.direction(label, "swing_axis", self.swing_axis))
        elif self.type == "spherical":
            message = f"{label}: `swing` of a spherical joint needs `swing_axis`, the direction it limits."
            raise ModelError(message, key="swing_axis")

    @property
    def valued(self) -> tuple[str, ...]:
        """Tuple of the coordinates that have values: all but the rotations of spherical and free joints."""
        return self.components[: {"spherical": 0, "free": 3}.get(self.type, 6)]

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Range of each limited coordinate, and of the swing as ``name.swing``."""
        pairs: tuple = () if self.limits is None else self.limits
        pairs = (pairs,) if len(self.valued) == 1 and pairs else pairs
        found = dict(zip(self.valued, pairs, strict=False))
        return found if self.swing is None else found | {f"{self.name}.swing": (0.0, self.swing)}

    def _geometry(self, label: str) -> None:
        """Check point and axes against the type of joint."""
        needs_at = self.type not in ("fixed", "prismatic")
        axes = JOINT_AXES.get(self.type, ())
        needs_axes = self.type not in BALL_TYPES or self.axis is not None or self.axis2 is not None
        for key, has in (("at", True), ("axis", "axis" in axes), ("axis2", "axis2" in axes)):
            given = getattr(self, key)
            if given is None and (needs_at if key == "at" else has and needs_axes):
                message = f"{label}: a {self.type} joint needs `{key}`, three numbers in world axes."
                if self.type == "planar":
                    message += " It slides along `axis` and `axis2`, and turns about their normal."
                elif self.type in BALL_TYPES and key != "at":
                    message += " Give both axes, or none for those of the world."
                raise ModelError(message, key=key)
            if given is not None and not has:
                raise ModelError(f"{label}: a {self.type} joint has no `{key}`; leave it out.", key=key)
            if given is not None:
                assign(self, **{key: (valid.vector if key == "at" else valid.direction)(label, key, given)})
        if self.axis2 is not None:
            a, b = (v / np.linalg.norm(v) for v in (np.array(self.axis), np.array(self.axis2)))
            cosine = float((a @ b).real)
            if abs(cosine) > PERPENDICULAR_ATOL:
                message = (
                    f"{label}: the two axes of a {self.type} joint must be perpendicular; the cosine between "
                    f"them is {cosine:.3g}."
                )
                raise ModelError(message, key="axis2", cosine=cosine)
            if not step_vanishes(a @ b, a, b):
                raise ModelError(
                    f"{label}: the two axes of a {self.type} joint must stay perpendicular. Rotate both "
                    f"together: {{'{self.name}.axis.rx': 1, '{self.name}.axis2.rx': 1}}.",
                    key="axis2",
                )

    def _per_coordinate(self, label: str, key: str) -> tuple[float, ...]:
        """Return one number for each coordinate; a single stiffness or damping applies to all."""
        given, count = getattr(self, key), self.dof
        if type(given) is float and not given:
            return (0.0,) * count
        a = reals(given)
        if a is None or a.ndim > 1:
            several = f" or {count} of them, one for each coordinate" if count > 1 else ""
            raise invalid_part(label, key, f"must be a finite number{several}", given)
        if count == 0 and a.any():
            raise ModelError(f"{label}: a fixed joint has no coordinate; leave `{key}` out.", key=key)
        if a.ndim == 0 and (count == 1 or not a or key in _PER_JOINT):
            a = np.full(count, a)
        if a.shape != (count,):
            rule = f"must have {counted(count, 'number')}, one for each coordinate"
            raise invalid_part(label, key, rule, given)
        valid.check_size(label, key, a)
        if key in _PER_JOINT and (a.real < 0).any():
            raise invalid_part(label, key, "must not be negative", given)
        return tuple(a.tolist())

    def _no_angles(self, label: str) -> None:
        """Check that the rotation of a ball joint has no value, stiffness or rest."""
        first = 3 if self.type == "free" else 0
        for key in ("value", "stiffness", "rest"):
            if any(getattr(self, key)[first:]):
                raise ModelError(
                    f"{label}: `{key}` must be 0 for the rotation of a {self.type} joint, which has no "
                    "coordinates. Leave it out.",
                    key=key,
                )

    @property
    def dof(self) -> int:
        """Number of degrees of freedom."""
        return JOINT_DOF[self.type]

    @property
    def translations(self) -> tuple[bool, ...]:
        """Tuple of flags, True for each coordinate that is a translation."""
        return tuple(kind == "t" for kind in JOINT_COORDINATES[self.type])

    @cached_property
    def components(self) -> tuple[str, ...]:
        """Tuple of the names of the coordinates: that of the joint, or name.1, name.2 … for several."""
        count = JOINT_DOF[self.type]
        if count == 1:
            return (self.name,)
        return tuple([f"{self.name}.{k + 1}" for k in range(count)])


@dataclass(frozen=True)
class Point:
    """Point fixed in a body (or in ground), optionally with a point mass.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    body : str
        The body (or ground) that carries it.
    at : (3,) float
        Position in the reference configuration.
    mass : float
        Point mass.
    """

    name: str
    body: str
    at: Vector
    _: KW_ONLY
    mass: float = 0.0

    def __post_init__(self) -> None:
        check_part(self, "point", body=valid.text, at=valid.vector, mass=valid.nonnegative)


@dataclass(frozen=True)
class Frame:
    """Frame fixed in a body or in ground, such as that of a tool, described in the reference configuration.

    Its rows are those of a body: x y z of the origin, then wx wy wz. `Configuration.pose` returns its pose in
    the world, and `Mechanism.at` accepts a pose.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    body : str
        The body (or ground) that carries it.
    origin : (3,) float
        Origin in the reference configuration, in world coordinates. By default the world origin; in
        `from_dh`, that of the link.
    axes : (3, 3) float or scipy.spatial.transform.Rotation
        Unit vectors along the axes x, y and z in the reference configuration, each with its world components,
        so that ``axes[0]`` is the axis x. A rotation matrix R has them as columns: give ``R.T``, or a SciPy
        `Rotation`. By default the world axes. Rounded vectors, to three digits or more, are replaced by the
        nearest orthogonal vectors.

    Raises
    ------
    ModelError
        If axes are not orthogonal or are left-handed, or numbers are missing.

    Examples
    --------
    >>> tool = kic.Frame("tool", "link2", origin=(2, 0, 0), axes=[(0, 1, 0), (-1, 0, 0), (0, 0, 1)])
    >>> arm = kic.load("horn-two-link").add(tool)
    >>> arm.at([0.0, 0.0]).pose("tool").rotation.as_matrix()[:, 0]
    array([0., 1., 0.])
    """

    name: str
    body: str
    _: KW_ONLY
    origin: Vector = (0.0, 0.0, 0.0)
    axes: Axes = WORLD

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            body: str,
            *,
            origin: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
            axes: Rotation | Sequence[Sequence[float]] | np.ndarray = WORLD,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_part(self, "frame", body=valid.text, origin=valid.vector)
        assign(self, axes=_right_handed(self.name, self.axes))

    @property
    def reference(self) -> Vector:
        """Reference point of the rows x y z: the origin."""
        return self.origin


# name of the centre of mass of all bodies, unless another part has it
COM = "com"


@dataclass(frozen=True)
class CenterOfMass:
    """Centre of mass of all moving bodies or of some, as an output with the rows x y z.

    Every mechanism has the centre of mass of all bodies, called "com", unless another part has this name.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    bodies : sequence of str, optional
        Bodies, with their point masses; by default all that move.

    Examples
    --------
    >>> m = kic.load("puma560").add(kic.CenterOfMass("arm", ["link1", "link2"]))
    >>> m.at([0.0] * 6).coefficients("arm").G.shape
    (3, 6)
    """

    name: str
    bodies: tuple[str, ...] | None = None

    if TYPE_CHECKING:  # for users' type checkers: sequences become tuples

        def __init__(self, name: str, bodies: str | Iterable[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        check_part(self, "centre of mass", bodies=_different_names)


def _different_names(owner: str, key: str, value: Any) -> tuple[str, ...]:
    """Return the names of bodies, at least one and all different."""
    names = valid.listed(owner, key, value, "names of bodies")
    if not names or not all(isinstance(x, str) for x in names) or len(set(names)) < len(names):
        raise invalid_part(owner, key, "must have different names", value, "Leave it out for all bodies.")
    return tuple(map(str, names))


def _right_handed(name: str, given: Any) -> Axes:
    """Return three orthonormal vectors from possibly rounded vectors or a SciPy `Rotation`."""
    label = f"Frame '{name}'"
    a = reals(given.as_matrix().T if hasattr(given, "as_matrix") else given)
    if a is None or a.shape != (3, 3):
        raise invalid_part(
            label, "axes", "must be three unit vectors, those along x, y and z, or a SciPy Rotation", given
        )
    valid.check_size(label, "axes", a)
    product = a @ a.T
    error = float(np.abs(product - np.eye(3)).max())
    if not error <= AXES_ATOL or np.linalg.det(a.real) < 0:
        rule, remedy = (
            "right-handed orthogonal unit vectors",
            "Rotation.from_euler of SciPy makes them from angles.",
        )
        raise invalid_part(label, "axes", f"must be {rule}", given, remedy, error=error)
    if not step_vanishes(product, a):
        raise ModelError(
            f"{label}: `axes` must stay orthogonal unit vectors. Rotate them together, by '{name}.axes.rx'.",
            key="axes",
        )
    if error > ORTHOGONAL_ATOL:
        u, _, v = np.linalg.svd(a.real)
        # the nearest rotation in the Frobenius norm; a complex step turns along
        a = a @ np.linalg.solve(a.real, u @ v)
    return tuple(tuple(row) for row in a.tolist())  # type: ignore[return-value]


class Measure:
    """Base class of distances and angles: one row, which may have limits or be fixed."""

    name: str
    fixed: bool
    limits: tuple[float, float] | None
    held: bool

    def _check_measure(self, kind: str, remedy: str, **validators: Callable[[str, str, Any], Any]) -> str:
        """Check the fields of a measure, and return its label for messages."""
        fixed = partial(valid.flag, remedy=remedy)
        label = check_part(self, kind, fixed=fixed, held=valid.flag, **validators)
        if self.fixed and self.held:
            raise ModelError(f"{label} is fixed and cannot be held. Leave one out.", key="held")
        for key, check in (
            ("limits", valid.interval),
            ("effort_limits", valid.bounds),
            ("rate_limits", valid.bounds),
        ):
            if getattr(self, key) is not None:
                if self.fixed:
                    raise ModelError(f"{label} is fixed and cannot have `{key}`. Leave one out.", key=key)
                assign(self, **{key: check(label, key, getattr(self, key))})
        return label


@dataclass(frozen=True)
class Distance(Measure):
    """Distance between two points, or of a point from a line: a measure, a coordinate, or a massless rod.

    If `fixed`, it is a constraint, like a rod with two ball joints. Named in `actuators`, or in `coordinates`
    without them, it acts like a massless cylinder with two ball joints. The force of a distance from a line
    acts at the first point, perpendicular to the line.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    points : (2,) str
        The two points.
    axis : (3,) float, optional
        Direction in the reference configuration of a line through the second point, which the body of this
        point carries. The distance is that of the first point from the line.
    fixed : bool
        True for a constraint that keeps the distance, like a massless rod with two ball joints.
    limits : (float, float), optional
        Smallest and largest length, such as those of a cylinder; see `limits` of `Joint`.
    effort_limits, rate_limits : float or (2,) float, optional
        Limits of the actuator force and of the rate, as in `Joint`.
    held : bool
        True for a coordinate that keeps its reference value unless it is given, as in `Joint`.

    Examples
    --------
    >>> m = kic.load("horn-two-link").add(kic.Point("eye", "ground", (0, 0, 1)))
    >>> m = m.add(kic.Distance("clearance", ("tip", "eye"), axis=(1, 0, 0)))
    >>> m.at([0.0, np.pi / 2]).value("clearance").round(3)
    np.float64(1.414)
    """

    name: str
    points: tuple[str, str]
    _: KW_ONLY
    axis: Vector | None = None
    fixed: bool = False
    limits: tuple[float, float] | None = None
    effort_limits: float | tuple[float, float] | None = None
    rate_limits: float | tuple[float, float] | None = None
    held: bool = False

    def __post_init__(self) -> None:
        remedy = "Use True to keep the length of the reference configuration."
        self._check_measure("distance", remedy, points=valid.two_names, axis=valid.direction)


@dataclass(frozen=True)
class Angle(Measure):
    """Angle between a direction of one body and a direction of another, in [0, π].

    It is a measure, a coordinate where efforts are moments, or a constraint. Where the directions are
    parallel, at 0 and π, it has no derivatives.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    bodies : (2,) str
        The two bodies; one may be "ground".
    axis, axis2 : (3,) float
        Direction that the first body carries, and direction that the second carries, in the reference
        configuration, of any length.
    fixed : bool
        True for a constraint that keeps the angle of the reference configuration.
    limits : (float, float), optional
        Smallest and largest angle; see `limits` of `Joint`.
    effort_limits, rate_limits : float or (2,) float, optional
        Limits of the actuator moment and of the rate, as in `Joint`.
    held : bool
        True for a coordinate that keeps its reference value unless it is given, as in `Joint`.

    Examples
    --------
    >>> tilt = kic.Angle("tilt", ("ground", "link2"), axis=(0, 1, 0), axis2=(1, 0, 0))
    >>> c = kic.load("horn-two-link").add(tilt).at([0.2, 0.3])
    >>> np.pi / 2 - c.value("tilt")
    np.float64(0.5)
    >>> c.coefficients("tilt").G
    array([[-1., -1.]])
    """

    name: str
    bodies: tuple[str, str]
    axis: Vector
    axis2: Vector
    _: KW_ONLY
    fixed: bool = False
    limits: tuple[float, float] | None = None
    effort_limits: float | tuple[float, float] | None = None
    rate_limits: float | tuple[float, float] | None = None
    held: bool = False

    def __post_init__(self) -> None:
        remedy = "Use True to keep the angle of the reference configuration."
        checks = {"bodies": valid.two_names, "axis": valid.direction, "axis2": valid.direction}
        label = self._check_measure("angle", remedy, **checks)
        if any(np.isfinite(x) and not 0 <= x <= np.pi for x in self.limits or ()):
            raise invalid_part(label, "limits", "must be between 0 and π", self.limits, "Give radians.")


def ends_text(measure: Any) -> str:
    """Return a text of the two points of a distance, of its point and line, or of the bodies of an angle."""
    if isinstance(measure, Angle):
        return " – ".join(measure.bodies)
    return f" – {'' if measure.axis is None else 'line at '}".join(measure.points)


def limits_by_row(part: Joint | Distance | Angle, key: str) -> dict[str, tuple[float, float]]:
    """Return the lower and upper limits of "effort_limits" or "rate_limits" by coordinate or measure."""
    given: Any = getattr(part, key)
    if not isinstance(part, Joint):
        return {} if given is None else {part.name: given}
    pairs = () if given is None else (given,) if len(part.components) == 1 else given
    return {c: pair for c, pair in zip(part.components, pairs, strict=False) if np.isfinite(pair).any()}


@dataclass(frozen=True)
class Force:
    """Force at a point; `dynamics(applied=…)` can replace it for each configuration.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    point : str
        Point of application.
    force : (3,) float
        Components.
    axes : {"world", "body"}
        Axes of the components: world, or fixed in the body (equal in the reference configuration).
    """

    name: str
    point: str
    force: Vector = (0.0, 0.0, 0.0)
    _: KW_ONLY
    axes: Literal["world", "body"] = "world"

    def __post_init__(self) -> None:
        check_part(
            self, "force", point=valid.text, force=valid.vector, axes=partial(valid.choice, among=AXES)
        )


@dataclass(frozen=True)
class Moment:
    """Moment on a body; `dynamics(applied=…)` can replace it for each configuration.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    body : str
        Loaded body.
    moment : (3,) float
        Components.
    axes : {"world", "body"}
        Axes of the components: world, or fixed in the body (equal in the reference configuration).
    """

    name: str
    body: str
    moment: Vector = (0.0, 0.0, 0.0)
    _: KW_ONLY
    axes: Literal["world", "body"] = "world"

    def __post_init__(self) -> None:
        check_part(
            self, "moment", body=valid.text, moment=valid.vector, axes=partial(valid.choice, among=AXES)
        )


@dataclass(frozen=True)
class Spring:
    """Spring, damper or both, between two points.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    points : (2,) str
        The two points.
    stiffness, damping : float
        Force per unit of elongation, and per unit of its rate.
    rest : float
        Unstretched length.
    """

    name: str
    points: tuple[str, str]
    _: KW_ONLY
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        numbers = dict.fromkeys(("stiffness", "rest", "damping"), valid.nonnegative)
        check_part(self, "spring", points=valid.two_names, **numbers)
