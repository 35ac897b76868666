"""Contacts on a body: contact sets as plain arrays, and the contacts of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.contacts import CONTACT_ROWS, Contact
from kic.description.description import closed_contacts, find_part
from kic.description.parts import Body
from kic.description.validation import GROUND
from kic.errors import InputError, invalid, short_repr
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import contact_axes, spin_axis
from kic.kinematics.items import Item, directions_on
from kic.kinematics.outputs import WRENCH_LABELS, plain_rows
from kic.kinematics.queries import output_query
from kic.numerics.arguments import names_of
from kic.numerics.arrays import as_array, broadcast_batches, directions, numbers, real_array
from kic.numerics.display import Printable, Summary
from kic.transfer.compiled_model import CompiledModel

# number of force components of each contact type in space, and in a plane, where the moment about the
# normal of a soft finger has no effect
COMPONENT_COUNTS = {kind: len(rows) for kind, rows in CONTACT_ROWS.items()}
PLANAR_COMPONENT_COUNTS = {"point": 1, "friction": 2, "soft": 2, "pinned": 2}
# largest component of a unit normal out of the plane
OUT_OF_PLANE_MAX = 1e-9
# axes of the components of a contact, 0 to 3
NORMAL, MOMENT = 0, 3
# smallest component of a unit tangent across the normal
TANGENT_MIN = 1e-6


def contact_frames(normals: Any, *, tangents: Any = None) -> np.ndarray:
    """Return right-handed axes of contacts: the normal and two tangents.

    Parameters
    ----------
    normals : (..., 3) array_like
        Normals of any length except zero.
    tangents : (..., 3) array_like, optional
        Directions of the first tangents, made perpendicular to the normals. The default is the world axis
        that follows, in the order x, y, z, x, the axis nearest to the normal: a normal along z has tangents
        x, y.

    Returns
    -------
    (..., 3, 3) ndarray
        Rows are the unit normal and the two tangents, in world axes.

    Raises
    ------
    InputError
        If a shape is wrong, an entry is not finite, a normal has zero length, or a tangent is along its
        normal.

    Examples
    --------
    >>> contact_frames([0.0, 0.0, 2.0]).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    n = directions("normals", normals, 3)
    if tangents is None:
        first = np.eye(3)[(np.abs(n).argmax(axis=-1) + 1) % 3]
    else:
        first = directions("tangents", tangents, 3)
        broadcast_batches(normals=n.shape[:-1], tangents=first.shape[:-1])
    first = first - (first * n).sum(axis=-1, keepdims=True) * n
    size = np.linalg.norm(first, axis=-1, keepdims=True)
    if not (size > TANGENT_MIN).all():
        where = np.argwhere(~(size[..., 0] > TANGENT_MIN))[0].tolist()
        message = f"`tangents` must not be parallel to the normals, got a parallel one at {where}."
        raise InputError(message, key="tangents", entries=where)
    first = first / size
    n = np.broadcast_to(n, first.shape)
    return np.stack([n, first, np.cross(n, first)], axis=-2)


def planar_frames(frames: np.ndarray, kinds: tuple[str, ...], plane: np.ndarray) -> np.ndarray:
    """Return axes (..., K, 3, 3) of contacts in a plane; the second tangent is the normal of the plane.

    Pins resist all directions equally and have the axes of the plane.
    """
    pins = np.array([kind == "pinned" for kind in kinds])
    n = np.where(pins[:, None], plane[1], frames[..., 0, :])
    out = np.abs(n @ plane[0])
    if out.size and out.max() > OUT_OF_PLANE_MAX:
        where = [int(i) for i in np.unravel_index(int(out.argmax()), out.shape)]
        message = (
            f"`normals` must lie in the plane, got a relative component of {float(out.max()):.3g} along its "
            f"normal at {where}. Leave `plane` out for contacts in space."
        )
        raise InputError(message, key="normals", entries=where)
    n = n - (n @ plane[0])[..., None] * plane[0]
    n = n / np.linalg.norm(n, axis=-1, keepdims=True)
    return np.stack([n, np.cross(plane[0], n), np.broadcast_to(plane[0], n.shape)], axis=-2)


def plane_axes(plane: Any) -> np.ndarray:
    """Return the normal and two axes (3, 3) of a plane."""
    normal = directions("plane", plane, 3)
    if normal.ndim != 1:
        raise invalid("plane", "must be a normal vector (3,)", plane)
    return contact_frames(normal)


def planar_wrenches(plane: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a basis (3, 6) of wrenches in a plane, two forces and a moment, and their names."""
    basis = np.zeros((3, 6))
    basis[:2, :3], basis[2, 3:] = plane[1:], plane[0]
    axes = ["xyz"[int(axis.argmax())] if axis.max() == 1.0 else "" for axis in plane]
    return basis, (f"f{axes[1] or 1}", f"f{axes[2] or 2}", f"m{axes[0]}")


def contact_jacobians(name: str, value: Any, count: int) -> np.ndarray:
    """Return Jacobians (..., K, 3, N) of contacts in any N coordinates."""
    shape = numbers(name, value).shape
    return real_array(name, value, count, 3, shape[-1] if shape else 0)


def contact_kinds(kinds: Any, count: int) -> tuple[str, ...]:
    """Return a kind for every contact."""
    words = (kinds,) * count if isinstance(kinds, str) else names_of(kinds, "kinds")
    bad = [w for w in words if w not in COMPONENT_COUNTS]
    if bad:
        raise invalid("kinds", f"must be among {', '.join(COMPONENT_COUNTS)}", bad[0])
    if len(words) != count:
        message = f"`kinds` must have {count} entries, got {len(words)}: {short_repr(words)}."
        raise InputError(message, key="kinds", got=len(words))
    return words


def contact_names(names: Any, count: int) -> tuple[str, ...]:
    """Return a name for every contact."""
    if names is None:
        return tuple(map(str, range(1, count + 1)))
    words = names_of(names, "names")
    if len(words) != count or len(set(words)) < count:
        raise invalid("names", f"must be {count} distinct strings", names)
    return words


def coefficient(
    name: str, value: Any, kinds: tuple[str, ...], needed: tuple[str, ...], without: str
) -> np.ndarray:
    """Return coefficients (..., K): positive for kinds that need them, zero for other kinds."""
    uses = np.array([kind in needed for kind in kinds])
    if not uses.any():
        return np.zeros(len(kinds))
    if value is None:
        raise InputError(f"Contacts of kind '{kinds[int(uses.argmax())]}' require `{name}`.", key=name)
    a = numbers(name, value)
    if not a.ndim:
        a = np.full(len(kinds), a)
    if a.shape[-1:] == uses.shape and a.dtype == np.float64:
        a = np.where(uses, a, 0.0)  # values for kinds that do not use them are ignored
    a = real_array(name, a, len(kinds))
    if not (a > 0)[..., uses].all():
        worst = float(a[..., uses].min())
        message = f"`{name}` must be positive, got {worst:g}. A contact without it is of kind '{without}'."
        raise InputError(message, key=name, got=worst)
    return np.where(uses, a, 0.0)


def grasp_map(
    points: Any, normals: Any, kinds: str | Sequence[str], *, about: Any = (0.0, 0.0, 0.0), plane: Any = None
) -> np.ndarray:
    """Return the grasp map G: contact forces f apply the wrench G f to the body.

    Parameters
    ----------
    points, normals, kinds, about, plane
        As in `ContactSet`.

    Returns
    -------
    (..., 6, m) ndarray
        Force above moment about `about`, in world axes; in a plane (..., 3, m). Columns are the components of
        all contacts in order.

    Examples
    --------
    >>> grasp_map([[0, 1, 0]], [[0, -1, 0]], "friction").T.round(3).tolist()[0]
    [0.0, -1.0, 0.0, 0.0, 0.0, 0.0]
    """
    return ContactSet(points, normals, kinds, mu=1.0, gamma=1.0, about=about, plane=plane).map


class ContactSet(Printable):
    """Contacts that act on one body, as plain arrays.

    Parameters
    ----------
    points : (..., K, 3) array_like
        Contact points in world axes.
    normals : (..., K, 3) array_like
        Inward normals of the body: the directions in which it is pushed, of any length.
    kinds : str or sequence of K str
        "point" (no friction), "friction" (a hard finger: force within the friction cone), "soft" (and a
        moment about the normal), "pinned" (a force in any direction). A single string applies to all
        contacts.
    mu : float or (..., K) array_like, optional
        Coefficients of friction; required and positive for the kinds "friction" and "soft", else ignored.
    gamma : float or (..., K) array_like, optional
        Lengths that limit the moment m of soft fingers: (fₜ/μ)² + (m/γ)² ≤ fₙ². Required and positive for
        soft fingers in space, else ignored.
    about : (..., 3) array_like
        Reference point of moments; by default the origin.
    tangents : (..., K, 3) array_like, optional
        Directions of the first tangents; by default as in `contact_frames`. Ignored in a plane.
    plane : (3,) array_like, optional
        Normal of the plane, for planar bodies. Wrenches are then two forces in the plane and the moment about
        this normal. The normals of the contacts lie in the plane, and friction contacts have one tangent.
    names : sequence of K str, optional
        Names of the contacts in tables and messages; by default 1, 2, ….

    Attributes
    ----------
    points, normals : (..., K, 3)
        Contact points and unit normals in the common batch.
    kinds, names : tuple of str
        Kinds and names of the contacts.
    mu, gamma : (..., K)
        Coefficients; zero where they are not used.
    about : (..., 3)
        Reference point of moments.
    frames : (..., K, 3, 3)
        Axes of the contacts in rows: normal and tangents; see `contact_frames`. In a plane the first tangent
        is the normal of the plane × that of the contact, and pins have the axes of the plane.
    map : (..., W, m)
        Grasp map, with W = 6, or W = 3 in a plane.
    spans : tuple of slice
        Components of each contact among all m.
    basis : (W, 6)
        Basis of the wrenches (force, moment) in the plane; in space the identity.

    Raises
    ------
    InputError
        If a shape is wrong, there are no contacts, a kind is unknown, a normal has zero length or leaves the
        plane, a coefficient is missing or not positive, an entry is not finite, or names are not K different
        strings.

    Examples
    --------
    Two soft fingers press on a ball from both sides:

    >>> c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "soft", mu=0.4, gamma=0.01)
    >>> c.map.shape
    (6, 8)
    """

    _one_line = ("names", "kinds")

    def __init__(
        self,
        points: Any,
        normals: Any,
        kinds: str | Sequence[str],
        mu: Any = None,
        gamma: Any = None,
        *,
        about: Any = (0.0, 0.0, 0.0),
        tangents: Any = None,
        plane: Any = None,
        names: Sequence[str] | None = None,
    ) -> None:
        shape = numbers("points", points).shape
        if len(shape) < 2 or not shape[-2] or shape[-1] != 3:
            raise invalid("points", "must have shape (..., K, 3)", shape)
        count = shape[-2]
        at = real_array("points", points, count, 3)
        axes = {
            name: None if a is None else as_array(name, a, count, 3, bounded=False)
            for name, a in (("normals", normals), ("tangents", tangents))
        }
        frames = contact_frames(axes["normals"], tangents=axes["tangents"])
        self.kinds = contact_kinds(kinds, count)
        self.names = contact_names(names, count)
        arrays = {"points": points, "normals": normals, "mu": mu, "gamma": gamma, "about": about}
        arrays |= {"tangents": tangents, "plane": plane}
        mu = coefficient("mu", mu, self.kinds, ("friction", "soft"), "point")
        turning = ("soft",) if plane is None else ()
        gamma = coefficient("gamma", gamma, self.kinds, turning, "friction")
        reference = real_array("about", about, 3)
        self.batch = broadcast_batches(
            points=at.shape[:-2],
            normals=frames.shape[:-3],
            mu=mu.shape[:-1],
            gamma=gamma.shape[:-1],
            about=reference.shape[:-1],
        )
        self.plane = None if plane is None else plane_axes(plane)
        # copies of the arguments, for `replaced`
        self._given = {key: None if a is None else np.array(a) for key, a in arrays.items()} | {
            "kinds": kinds if isinstance(kinds, str) else self.kinds,
            "names": None if names is None else self.names,
        }
        self.basis, self.labels = np.eye(6), WRENCH_LABELS
        if self.plane is not None:
            self.basis, self.labels = planar_wrenches(self.plane)
            frames = planar_frames(frames, self.kinds, self.plane)
        self.points = np.broadcast_to(at, (*self.batch, count, 3))
        self.frames = np.broadcast_to(frames, (*self.batch, count, 3, 3))
        self.mu = np.broadcast_to(mu, (*self.batch, count))
        self.gamma = np.broadcast_to(gamma, (*self.batch, count))
        self.about = np.broadcast_to(reference, (*self.batch, 3))
        counts = COMPONENT_COUNTS if plane is None else PLANAR_COMPONENT_COUNTS
        widths = [counts[kind] for kind in self.kinds]
        ends = np.cumsum(widths).tolist()
        self.spans = tuple(slice(end - width, end) for end, width in zip(ends, widths, strict=True))
        # contact and axis of each component; axis MOMENT is the moment about the normal
        self.owner = np.repeat(np.arange(count), widths)
        self.axis = np.concatenate([np.arange(width) for width in widths])
        is_moment = self.axis == MOMENT
        direction = self._component_axes()
        arm = (self.points - self.about[..., None, :])[..., self.owner, :]
        force = np.where(is_moment[:, None], 0.0, direction)
        moment = np.where(is_moment[:, None], direction, np.cross(arm, direction))
        self.columns = np.concatenate([force, moment], axis=-1)  # (..., m, 6)
        self.map = self.basis @ np.swapaxes(self.columns, -1, -2)

    def replaced(self, **changes: Any) -> ContactSet:
        """Return the contacts with some arguments of `ContactSet` replaced; the others are kept.

        Examples
        --------
        >>> c = ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.4)
        >>> c.replaced(mu=[0.4, 0.2]).mu.tolist()
        [0.4, 0.2]
        """
        wrong = [name for name in changes if name not in self._given]
        if wrong:
            message = (
                f"`changes` must be arguments of ContactSet ({', '.join(self._given)}), got '{wrong[0]}'."
            )
            raise InputError(message, key="changes", name=wrong[0])
        return ContactSet(**(self._given | changes))

    __replace__ = replaced  # for copy.replace(), from Python 3.13 on

    @property
    def pinned(self) -> np.ndarray:
        """Mask (K,) of the pins."""
        return np.array([kind == "pinned" for kind in self.kinds])

    @property
    def normals(self) -> np.ndarray:
        """Unit inward normals (..., K, 3)."""
        return self.frames[..., 0, :]

    @property
    def components(self) -> tuple[str, ...]:
        """Tuple of the names of the m components of force: "1.n", "1.t1", "1.t2", "1.moment", …."""
        words = ("n", "t1", "t2", "moment") if self.plane is None else ("n", "t")
        return tuple(f"{self.names[k]}.{words[a]}" for k, a in zip(self.owner, self.axis, strict=True))

    def __len__(self) -> int:
        return len(self.kinds)

    def _component_axes(self) -> np.ndarray:
        """Return the direction (..., m, 3) of each component."""
        return self.frames[..., self.owner, np.where(self.axis == MOMENT, NORMAL, self.axis), :]

    def jacobian(self, linear: Any, angular: Any = None) -> np.ndarray:
        """Compute the hand Jacobian J along the axes of the contacts, with T = Jᵀ f.

        Parameters
        ----------
        linear : (..., K, 3, N) array_like
            G of the fingers' contact points in world axes, in N coordinates.
        angular : (..., K, 3, N) array_like, optional
            G of the angular velocities of the fingers; required for soft fingers in space.

        Returns
        -------
        (..., m, N) ndarray
            Contact forces f on the body require the efforts Jᵀ f of the fingers.

        Examples
        --------
        >>> c = ContactSet([[0, 1, 0]], [[0, -1, 0]], "point")
        >>> c.jacobian([[[1, 0], [0, 1], [0, 0]]]).tolist()
        [[0.0, -1.0]]
        """
        v = contact_jacobians("linear", linear, len(self))
        omega = v if angular is None else contact_jacobians("angular", angular, len(self))
        is_moment = self.axis == MOMENT
        if angular is None and is_moment.any():
            message = "`angular` must be given for soft fingers, with the shape (..., K, 3, N) of `linear`."
            raise InputError(message, key="angular")
        if v.shape[-1] != omega.shape[-1]:
            message = (
                f"`linear` and `angular` must have the same number of coordinates, got {v.shape[-1]} and "
                f"{omega.shape[-1]}."
            )
            raise InputError(message, key="linear", got=v.shape[-1])
        broadcast_batches(linear=v.shape[:-3], angular=omega.shape[:-3], contacts=self.batch)
        rates = np.where(is_moment[:, None, None], omega[..., self.owner, :, :], v[..., self.owner, :, :])
        return np.einsum("...ma,...man->...mn", self._component_axes(), rates)

    def loads(self, force: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return forces and moments (..., K, 3) of the contacts on the body, in world axes.

        `force` (..., m) has the components of all contacts, in their axes.

        Examples
        --------
        >>> c = ContactSet([[0, 1, 0]], [[0, -1, 0]], "point")
        >>> c.loads([2.0])[0].tolist()
        [[0.0, -2.0, 0.0]]
        """
        f = as_array("force", force, len(self.axis), finite=False)
        broadcast_batches(force=f.shape[:-1], contacts=self.batch)
        if np.isinf(f.real).any():
            raise invalid("force", "must not be infinite", force)
        vectors = f[..., None] * self._component_axes()
        is_moment = self.axis == MOMENT
        own = np.arange(len(self))[:, None] == self.owner
        force_sum, moment_sum = ((own & chosen).astype(float) for chosen in (~is_moment, is_moment))
        return np.matmul(force_sum, vectors), np.matmul(moment_sum, vectors)

    def summary(self) -> Summary:
        """Return labelled tables of the contacts and the grasp map."""
        sheet = Summary(f"{len(self)} contacts" + (" in a plane" if self.plane is not None else ""))
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        columns = ("x", "y", "z", "normal x", "normal y", "normal z", "μ", "γ")
        parts = [self.points, self.normals, self.mu[..., None], self.gamma[..., None]]
        rows = [f"{name} ({kind})" for name, kind in zip(self.names, self.kinds, strict=True)]
        sheet.matrix("contacts", rows, columns, np.concatenate([p[index] for p in parts], axis=-1))
        about = ", ".join(f"{x:.5g}" for x in self.about[index])
        sheet.matrix(f"G, moments about ({about})", self.labels, self.components, self.map[index])
        return sheet


@dataclass(frozen=True)
class ContactFrames:
    """Positions and axes of the contacts of a mechanism."""

    point: np.ndarray  # (..., K, 3): contact points, fixed to the first bodies
    axes: np.ndarray  # (..., K, 3, 3): unit vectors n, t1, t2 in rows, fixed to the second bodies
    # (..., K, 3): axes of the moments: t1 of the second × t2 of the first body for soft contacts, n for other
    # types
    spin: np.ndarray
    reference: np.ndarray  # (..., 3): reference point of the object


def contacts_of(model: CompiledModel, held: str) -> tuple[Contact, ...]:
    """Return the closed contacts of a body or, if it has none, of its feet with the ground.

    Raise `UnknownNameError` if there is no such body. Raise `InputError` if no closed contact holds it.
    """
    tree, description = model.tree, model.description
    find_part(description, held, "bodies", argument="of")
    closed = closed_contacts(description)
    found = tuple(contact for contact in closed if held in contact.bodies)
    if not found:
        feet = [body for body in tree.frame if tree.frame[held] in tree.path(tree.frame[body])]
        pairs = [{GROUND, foot} for foot in feet]
        found = tuple(contact for contact in closed if set(contact.bodies) in pairs)
    if found:
        return found
    contacts = [
        f"{c.name} ({' on '.join(c.bodies)}{'' if c.closed else ', open'})" for c in description.contacts
    ]
    raise InputError(
        f"'{held}' of '{description.name}' must have closed contacts, or feet with closed contacts on "
        f"'{GROUND}', got neither. Contacts: {', '.join(contacts) or 'none'}.",
        name=held,
    )


def coordinates_of(
    model: CompiledModel, held: str, fingers: str | Iterable[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the coordinates of the fingers and of the held body while its contacts are open.

    Raise `InputError` if the body is fixed, or the coordinates of the fingers must be named.
    """
    tree, description = model.tree, model.description
    path = tree.path(tree.frame[held])
    if not path:
        raise InputError(f"'{held}' of '{description.name}' must be a body that can move.", name=held)
    own = [tree.columns[n] for n in path]
    body = find_part(description, held, "bodies")
    free = len(path) == 6 and sum(tree.cols[n, lay.KIND] == lay.BALL for n in path) == 3
    rows = (held,) if free and isinstance(body, Body) and body.reference else tuple(own)
    if fingers is not None:
        return names_of(fingers, "fingers"), rows
    count = model.dof - len(own)
    order = [c for joint in description.joints for c in joint.components]
    for candidates in (sorted(tree.columns, key=order.index), model.coordinates):
        rest = tuple(name for name in candidates if name not in own)
        if len(rest) == count:
            return rest, rows
    raise InputError(
        f"With the contacts of '{held}' open, '{description.name}' has mobility {model.dof}: {len(own)} of "
        f"'{held}' and {count} of the fingers. Name {count} coordinates in `fingers`.",
        mobility=model.dof,
    )


def frames_of(
    model: CompiledModel, held: str, contacts: tuple[Contact, ...], states: np.ndarray
) -> ContactFrames:
    """Compute positions and axes of contacts at states (..., S)."""
    tree = model.tree
    body = find_part(model.description, held, "bodies")
    assert isinstance(body, Body)  # for the type checker: `part` searched the bodies
    if body.reference is None:
        message = f"Body '{held}' must have a reference point for its grasp. Give it `at` (or `com`)."
        raise InputError(message, name=held)
    items = [Item.point_on(tree, held, body.reference)]
    items += [Item.point_on(tree, c.bodies[0], c.at) for c in contacts]
    items += [item for c in contacts for item in directions_on(tree, c.bodies[1], contact_axes(c))]
    items += [item for c in contacts for item in directions_on(tree, c.bodies[0], [spin_axis(c)])]
    query = output_query(tree, plain_rows(tree, items), 1)
    batch, count = states.shape[:-1], len(contacts)
    found = query.arrays(states.reshape(-1, states.shape[-1]))[0]
    vectors = found.reshape(*batch, len(items), 3)
    reference, points, rotated, second_tangents = np.split(vectors, [1, 1 + count, 1 + 4 * count], axis=-2)
    rotated = rotated.reshape(*batch, count, 3, 3)
    soft = np.array([contact.type == "soft" for contact in contacts])
    spin = np.where(soft[:, None], np.cross(rotated[..., 1, :], second_tangents), rotated[..., 0, :])
    return ContactFrames(points, rotated, spin, reference[..., 0, :])
