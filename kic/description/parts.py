"""The parts of a drawing: bodies, joints, points and loads, immutable and free of any posture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kic.description.validation import (
    GROUND,
    STRICT,
    Vector,
    assign,
    check_name,
    check_size,
    choice,
    direction,
    number,
    text,
    two_names,
    vector,
)
from kic.errors import ModelError, short_repr
from kic.numerics.arrays import reals, step_vanishes, strip_complex_step

JointType = Literal[
    "revolute", "prismatic", "fixed", "cylindrical", "universal", "spherical", "planar", "free"
]
# coordinates of each type of joint, in order: r is a rotation, t a translation
JOINT_COORDINATES = {
    "fixed": "", "revolute": "r", "prismatic": "t", "cylindrical": "rt", "universal": "rr",
    "spherical": "rrr", "planar": "ttr", "free": "tttrrr",
}  # fmt: skip
JOINT_DOF = {joint_type: len(kinds) for joint_type, kinds in JOINT_COORDINATES.items()}

Six = tuple[float, float, float, float, float, float]
# published values are rounded
INERTIA_RTOL = 1e-6


def check_inertia(who: str, given: Any, mass: float | None = None, exception: str = "") -> Six:
    """Bring an inertia into the order xx yy zz xy xz yz, and refuse one that no body can have.

    The numbers are entries of the tensor, ∫ (r² 1 − r rᵀ) dm: the products of inertia carry the sign
    xy = −∫ x y dm.

    Parameters
    ----------
    who : str
        Whose it is, for the message.
    given : (3,), (6,) or (3, 3) array_like
        Moments about the three axes, six numbers xx yy zz xy xz yz, or the symmetric matrix.
    mass : float, optional
        Mass of the body; without any, it has no inertia.
    exception : str
        A reason that allows what no body can have.

    Returns
    -------
    tuple of 6 float

    Raises
    ------
    ModelError
        For another shape, a matrix that is not symmetric, or principal moments that are negative or
        of which one exceeds the sum of the others, or any without mass.

    Examples
    --------
    >>> check_inertia("Body 'rod'", (0, 1, 1))
    (0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    """
    a = reals(given)
    if a is None or a.shape not in ((3,), (6,), (3, 3)):
        raise ModelError(
            f"{who}: expected `inertia` to be 3 moments (xx yy zz), 6 numbers (xx yy zz xy xz yz) or a "
            f"3×3 matrix, all finite, got {short_repr(given)}.",
            key="inertia",
        )
    check_size(who, "inertia", a)
    if a.shape == (3, 3):
        difference = float(np.abs(a - a.T).max())
        if difference > 1e-12 * np.abs(a).max() or not step_vanishes(a - a.T, a):
            raise ModelError(
                f"{who}: `inertia` must be symmetric; the largest difference to its transpose is "
                f"{difference:.3g}.",
                key="inertia",
                difference=difference,
            )
        a = a[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    xx, yy, zz, *products = a.tolist()
    xy, xz, yz = products or (0.0, 0.0, 0.0)
    six = (xx, yy, zz, xy, xz, yz)
    if not exception:
        _check_possible(who, strip_complex_step(six), strip_complex_step(mass))
    return six


def _check_possible(who: str, six: Six, mass: float | None) -> None:
    """Refuse what no distribution of mass has."""
    remedy = "Mend `inertia`, or say in `inertia_exception` why it is meant."
    if mass == 0 and any(six):
        raise ModelError(
            f"{who}: a body with mass = 0 has no inertia, got {short_repr(six)}. {remedy}", key="inertia"
        )
    low, middle, high = (float(x) for x in np.linalg.eigvalsh(as_matrix(six)))
    slack = INERTIA_RTOL * max(high, 0.0)
    if low < -slack or high > low + middle + slack:
        raise ModelError(
            f"{who}: no body has the principal moments of inertia {low:.6g}, {middle:.6g}, {high:.6g}: none "
            f"may be negative, and none may exceed the sum of the other two. {remedy}",
            key="inertia",
            principal=(low, middle, high),
        )


def as_matrix(six: Six) -> np.ndarray:
    """The symmetric matrix (3, 3) of xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


AXES = ("world", "body")


@dataclass(frozen=True)
class Body:
    """A rigid body, described where it stands in the drawing.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    mass : float, optional
        Mass. Without it the body has no dynamics; 0 says that it is massless.
    com : (3,) float, optional
        Centre of mass in the drawing; not needed without mass.
    inertia : (3,), (6,) or (3, 3) float, optional
        About the centre of mass, in the drawing's axes: moments xx yy zz; or xx yy zz xy xz yz, entries of
        the tensor (xy = −∫ x y dm); or the matrix. In a motion in the plane x y only zz counts, but a body
        must be able to have all of them.
    at : (3,) float, optional
        Reference point whose motion is the body's x y z; the centre of mass if left out.
    inertia_exception : str
        Why an inertia is allowed that no real body can have, such as published partial data.

    Raises
    ------
    ModelError
        For numbers that are missing or that no body has.
    """

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    mass: float | None = None
    """Mass. Without it the body has no dynamics; 0 says that it is massless."""
    com: Vector | None = None
    """Centre of mass in the drawing."""
    inertia: (
        Vector | tuple[float, float, float, float, float, float] | tuple[Vector, Vector, Vector] | None
    ) = None
    """Inertia about the centre of mass, in the drawing's axes: 3 moments (xx yy zz), 6 numbers
    (xx yy zz xy xz yz, entries of the tensor: xy = −∫ x y dm) or the 3×3 matrix."""
    at: Vector | None = None
    """Reference point whose motion is the body's x y z; the centre of mass if left out."""
    inertia_exception: str = ""
    """Why an inertia is allowed that no real body can have, such as published partial data."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("body", self.name))
        who = f"Body '{self.name}'"
        if self.name == GROUND:
            raise ModelError(f"'{GROUND}' is the fixed world and can not be a body of its own.", key="name")
        if self.mass is not None:
            assign(self, mass=number(who, "mass", self.mass, 0.0))
        if self.com is not None:
            assign(self, com=vector(who, "com", self.com))
        if self.at is not None:
            assign(self, at=vector(who, "at", self.at))
        if self.mass and self.com is None:
            raise ModelError(
                f"{who} has mass {self.mass:g} but no `com`. Say where its centre of mass is.", key="com"
            )
        reason = text(who, "inertia_exception", self.inertia_exception)
        assign(self, inertia_exception=reason)
        if self.inertia is not None:
            assign(self, inertia=check_inertia(who, self.inertia, self.mass, reason))

    @property
    def reference(self) -> Vector | None:
        """The point whose motion is the body's x y z: `at`, else the centre of mass."""
        return self.at if self.at is not None else self.com


@dataclass(frozen=True)
class Joint:
    """A joint between two bodies, as drawn; its coordinate is the second's motion relative to the first.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism. The freedoms of a joint with several are called name.1, name.2 …
    type : {"revolute", "prismatic", "fixed", "cylindrical", "universal", "spherical", "planar", "free"}
        Kind of pair.
    bodies : (2,) str
        The two bodies that it ties; "ground" is the fixed world.
    at : (3,) float, optional
        A point of the joint in the drawing: on the axis, or the centre.
    axis : (3,) float, optional
        Direction in the drawing; need not have unit length. Universal and planar: the first of two.
    axis2 : (3,) float, optional
        Second axis: of a universal joint (carried by the first), or second direction of a planar one.
    value : float or sequence of float
        What the coordinate reads in the drawing (angles in radians), one number for each freedom: where it is
        read from. It moves nothing.
    stiffness, rest, damping : float or sequence of float
        Of a spring and a viscous damper in the joint, and the coordinate at which that spring is free; one
        number for each freedom, or one stiffness and damping for them all.

    Raises
    ------
    ModelError
        For numbers that are missing, or have no meaning for the type.
    """

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism. The freedoms of a joint with several are called name.1, name.2 …"""
    type: JointType
    """Kind of pair: revolute, prismatic, fixed, cylindrical, universal, spherical, planar or free."""
    bodies: tuple[str, str]
    """The two bodies tied. The coordinate is the second's motion relative to the first."""
    at: Vector | None = None
    """A point of the joint in the drawing: on the axis, or the centre."""
    axis: Vector | None = None
    """Direction in the drawing; need not have unit length. Universal and planar: the first of two."""
    axis2: Vector | None = None
    """Second axis: of a universal joint (carried by the first), or second direction of a planar one."""
    value: float | tuple[float, ...] = 0.0
    """What the coordinate reads in the drawing, one number for each freedom."""
    stiffness: float | tuple[float, ...] = 0.0
    """Stiffness of a spring in the joint, one number for each freedom, or one for them all."""
    rest: float | tuple[float, ...] = 0.0
    """Coordinate at which that spring is free, one number for each freedom."""
    damping: float | tuple[float, ...] = 0.0
    """Viscous damping in the joint, one number for each freedom, or one for them all."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("joint", self.name))
        who = f"Joint '{self.name}'"
        assign(self, type=choice(who, "type", self.type, JOINT_DOF))
        assign(self, bodies=two_names(who, "bodies", self.bodies, "bodies"))
        self._geometry(who)
        for key in ("value", "stiffness", "rest", "damping"):
            assign(self, **{key: self._per_freedom(who, key)})
        if self.type in ("spherical", "free"):
            self._no_angles(who)

    def _geometry(self, who: str) -> None:
        needs_at = self.type not in ("fixed", "prismatic")
        needs_axis = self.type in ("revolute", "prismatic", "cylindrical", "universal", "planar")
        needs_second = self.type in ("universal", "planar")
        for key, needed in (("at", needs_at), ("axis", needs_axis), ("axis2", needs_second)):
            given = getattr(self, key)
            if given is None and needed:
                raise ModelError(
                    f"{who}: a {self.type} joint needs `{key}`, three numbers in the drawing.", key=key
                )
            if given is not None and key != "at" and not needed:
                raise ModelError(f"{who}: a {self.type} joint has no `{key}`; leave it out.", key=key)
            if given is not None:
                assign(self, **{key: (vector if key == "at" else direction)(who, key, given)})
        if needs_second:
            a, b = (v / np.linalg.norm(v) for v in (np.array(self.axis), np.array(self.axis2)))
            cosine = float((a @ b).real)
            if abs(cosine) > 1e-9:
                raise ModelError(
                    f"{who}: the two axes of a {self.type} joint must be perpendicular; "
                    f"their cosine is {cosine:.3g}.",
                    key="axis2",
                    cosine=cosine,
                )
            if not step_vanishes(a @ b, a, b):
                raise ModelError(
                    f"{who}: the two axes of a {self.type} joint must stay perpendicular. Turn both "
                    f"together: {{'{self.name}.axis.rx': 1, '{self.name}.axis2.rx': 1}}.",
                    key="axis2",
                )

    def _per_freedom(self, who: str, key: str) -> tuple[float, ...]:
        """One number for each freedom; a single stiffness or damping is that of each."""
        given, count = getattr(self, key), self.dof
        a = reals(given)
        if a is None or a.ndim > 1:
            several = f" or {count} of them, one for each freedom" if count > 1 else ""
            raise ModelError(
                f"{who}: expected `{key}` to be a finite number{several}, got {short_repr(given)}.",
                key=key,
            )
        if count == 0 and a.any():
            raise ModelError(f"{who}: a fixed joint has no freedom; leave `{key}` out.", key=key)
        if a.ndim == 0 and (count == 1 or not a or key in ("stiffness", "damping")):
            a = np.full(count, a)
        if a.shape != (count,):
            raise ModelError(
                f"{who}: expected `{key}` to have {count} number{'s' if count > 1 else ''}, one for each "
                f"freedom, got {short_repr(given)}.",
                key=key,
            )
        check_size(who, key, a)
        if key in ("stiffness", "damping") and (a.real < 0).any():
            raise ModelError(f"{who}: `{key}` must not be negative, got {short_repr(given)}.", key=key)
        return tuple(a.tolist())

    def _no_angles(self, who: str) -> None:
        first = 3 if self.type == "free" else 0
        for key in ("value", "stiffness", "rest"):
            if any(getattr(self, key)[first:]):
                raise ModelError(
                    f"{who}: the three turns of a {self.type} joint have no coordinates that `{key}` "
                    "could refer to; the drawing is their zero. Leave it out or 0.",
                    key=key,
                )

    @property
    def dof(self) -> int:
        """Number of freedoms."""
        return JOINT_DOF[self.type]

    @property
    def translations(self) -> tuple[bool, ...]:
        """True for each coordinate that is a translation."""
        return tuple(kind == "t" for kind in JOINT_COORDINATES[self.type])

    @property
    def components(self) -> tuple[str, ...]:
        """Names of its coordinates: the joint's own, or name.1, name.2 … of several."""
        if self.dof == 1:
            return (self.name,)
        return tuple(f"{self.name}.{k + 1}" for k in range(self.dof))


@dataclass(frozen=True)
class Point:
    """A point fixed in a body (or in ground), where it stands in the drawing; it may carry a mass."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    body: str
    """The body (or ground) that carries it."""
    at: Vector
    """Place in the drawing."""
    mass: float = 0.0
    """Point mass there."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("point", self.name))
        who = f"Point '{self.name}'"
        assign(self, body=text(who, "body", self.body), at=vector(who, "at", self.at))
        assign(self, mass=number(who, "mass", self.mass, 0.0))


@dataclass(frozen=True)
class Distance:
    """The distance between two points, to ask about; or a rod, which keeps them as far apart as drawn."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    points: tuple[str, str]
    """The two points."""
    fixed: bool = False
    """Whether it always stays as drawn, as a massless rod with a ball at either end keeps it."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("distance", self.name))
        who = f"Distance '{self.name}'"
        assign(self, points=two_names(who, "points", self.points, "points"))
        if self.fixed is not True and self.fixed is not False:
            raise ModelError(
                f"{who}: expected `fixed` to be True or False, got {short_repr(self.fixed)}. Its length is the "
                "drawing's.",
                key="fixed",
            )


@dataclass(frozen=True)
class Force:
    """A force at a point; `dynamics(applied=…)` may give another for each posture."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    point: str
    """The point where it acts."""
    force: Vector = (0.0, 0.0, 0.0)
    """Its components."""
    axes: Literal["world", "body"] = "world"
    """Axes of the components: world, or turning with the body (as they are in the drawing)."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("force", self.name))
        who = f"Force '{self.name}'"
        assign(self, point=text(who, "point", self.point), force=vector(who, "force", self.force))
        assign(self, axes=choice(who, "axes", self.axes, AXES))


@dataclass(frozen=True)
class Moment:
    """A moment on a body; `dynamics(applied=…)` may give another for each posture."""

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    body: str
    """The body on which it acts."""
    moment: Vector = (0.0, 0.0, 0.0)
    """Its components."""
    axes: Literal["world", "body"] = "world"
    """Axes of the components: world, or turning with the body (as they are in the drawing)."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("moment", self.name))
        who = f"Moment '{self.name}'"
        assign(self, body=text(who, "body", self.body), moment=vector(who, "moment", self.moment))
        assign(self, axes=choice(who, "axes", self.axes, AXES))


@dataclass(frozen=True)
class Spring:
    """A spring, a damper or both, between two points.

    Parameters
    ----------
    name : str
        Name, unique in the mechanism.
    points : (2,) str
        The two points.
    stiffness, damping : float
        Force for each length, and for each speed, of stretch.
    rest : float
        Free length.
    """

    __pydantic_config__ = STRICT
    name: str
    """Name, unique in the mechanism."""
    points: tuple[str, str]
    """The two points."""
    stiffness: float = 0.0
    """Force for each length of stretch."""
    rest: float = 0.0
    """Free length."""
    damping: float = 0.0
    """Force for each speed of stretch."""

    def __post_init__(self) -> None:
        assign(self, name=check_name("spring", self.name))
        who = f"Spring '{self.name}'"
        assign(self, points=two_names(who, "points", self.points, "points"))
        for key in ("stiffness", "rest", "damping"):
            assign(self, **{key: number(who, key, getattr(self, key), 0.0)})
