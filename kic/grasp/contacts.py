"""Touching: which contacts hold a body, the coordinates of what holds it, and how its contacts stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.contacts import CONTACT_ROWS, Contact
from kic.description.parts import Body
from kic.description.validation import GROUND
from kic.display import Summary, member
from kic.errors import InputError, short_repr
from kic.kernels.layout import BALL, DIRECTION, KIND, POINT
from kic.kinematics.closure_rows import contact_axes
from kic.kinematics.items import Item
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import OutputQuery
from kic.numerics.arguments import names_of
from kic.numerics.arrays import as_array, broadcast_batches, numbers
from kic.transfer.compiled_model import CompiledModel

KINDS = {kind: len(rows) for kind, rows in CONTACT_ROWS.items()}
"""Number of force components of each contact type in space."""
PLANAR = {"point": 1, "friction": 2, "soft": 2, "pinned": 2}
"""The same in a plane, where a moment about the normal does nothing."""
# a normal may leave the plane by so much of itself
IN_PLANE = 1e-9
# a tangent that leaves its normal by less has no direction of its own
ASIDE = 1e-6


def contact_frames(normals: Any, tangents: Any = None) -> np.ndarray:
    """Axes of contacts: the normal and two tangents, right-handed.

    Parameters
    ----------
    normals : (..., 3) array_like
        Any length but zero.
    tangents : (..., 3) array_like, optional
        Directions of the first tangents, made perpendicular to the normals. By default the world axis that
        follows, in the order x, y, z, x, the one to which the normal is nearest: a normal along z has
        tangents x, y.

    Returns
    -------
    (..., 3, 3) ndarray
        Rows are the unit normal and the two tangents, in world axes.

    Raises
    ------
    InputError
        For another shape, entries that are not finite, normals of no length, or tangents along them.

    Examples
    --------
    >>> contact_frames([0.0, 0.0, 2.0]).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    n = _units("normals", normals)
    if tangents is None:
        first = np.eye(3)[(np.abs(n).argmax(axis=-1) + 1) % 3]
    else:
        first = _units("tangents", tangents)
        broadcast_batches(normals=n.shape[:-1], tangents=first.shape[:-1])
    first = first - (first * n).sum(axis=-1, keepdims=True) * n
    size = np.linalg.norm(first, axis=-1, keepdims=True)
    if not (size > ASIDE).all():
        where = np.argwhere(~(size[..., 0] > ASIDE))[0].tolist()
        raise InputError(f"Expected `tangents` across the normals, got one along its own at {where}.")
    first = first / size
    n = np.broadcast_to(n, first.shape)
    return np.stack([n, first, np.cross(n, first)], axis=-2)


def planar_frames(frames: np.ndarray, kinds: tuple[str, ...], plane: np.ndarray) -> np.ndarray:
    """Axes (..., K, 3, 3) of contacts in a plane: the first tangent lies in it, the second is its normal.

    Pins hold all directions alike: theirs are the axes of the plane.
    """
    pins = np.array([kind == "pinned" for kind in kinds])
    n = np.where(pins[:, None], plane[1], frames[..., 0, :])
    out = np.abs(n @ plane[0])
    if out.size and out.max() > IN_PLANE:
        where = [int(i) for i in np.unravel_index(int(out.argmax()), out.shape)]
        raise InputError(
            f"Expected `normals` in the plane, got one that leaves it by {float(out.max()):.3g} of its "
            f"length at {where}. Leave `plane` out for contacts in space.",
            entries=where,
        )
    n = n - (n @ plane[0])[..., None] * plane[0]
    n = n / np.linalg.norm(n, axis=-1, keepdims=True)
    return np.stack([n, np.cross(plane[0], n), np.broadcast_to(plane[0], n.shape)], axis=-2)


def plane_axes(plane: Any) -> np.ndarray:
    """Normal and two axes (3, 3) of a plane."""
    a = real("plane", as_array("plane", plane, 3))
    if a.ndim != 1 or not a.any():
        raise InputError(f"Expected `plane` to be a normal (3,) with a length, got {short_repr(plane)}.")
    return contact_frames(a)


def planar_wrenches(plane: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Wrenches in a plane as rows (3, 6): two forces and the moment about its normal; and their names."""
    basis = np.zeros((3, 6))
    basis[:2, :3], basis[2, 3:] = plane[1:], plane[0]
    along = ["xyz"[int(axis.argmax())] if axis.max() == 1.0 else "" for axis in plane]
    return basis, (f"f{along[1] or 1}", f"f{along[2] or 2}", f"m{along[0]}")


def real(name: str, a: np.ndarray) -> np.ndarray:
    """Real numbers; contacts are inequalities, which symbols and complex numbers do not have."""
    if a.dtype != np.float64:
        raise InputError(f"Contacts need real numbers; `{name}` holds {a.dtype}.")
    return a


def vectors(name: str, value: Any) -> np.ndarray:
    """Finite vectors (..., K, 3), one at least."""
    shape = numbers(name, value).shape
    if len(shape) < 2 or not shape[-2] or shape[-1] != 3:
        raise InputError(f"Expected `{name}` to have shape (..., K, 3), got {shape}.", got=shape)
    return real(name, as_array(name, value, shape[-2], 3))


def rates_of(name: str, value: Any, count: int) -> np.ndarray:
    """Rates (..., K, 3, N) of contacts in any N coordinates."""
    shape = numbers(name, value).shape
    return real(name, as_array(name, value, count, 3, shape[-1] if shape else 0))


def contact_kinds(kinds: Any, count: int) -> tuple[str, ...]:
    """A kind for every contact."""
    words = (kinds,) * count if isinstance(kinds, str) else names_of(kinds, "kinds")
    bad = [w for w in words if w not in KINDS]
    if bad:
        raise InputError(
            f"Expected `kinds` to be of {', '.join(KINDS)}, got {short_repr(bad[0])}.", kind=bad[0]
        )
    if len(words) != count:
        raise InputError(f"Expected `kinds` for {count} contacts, got {len(words)}: {short_repr(words)}.")
    return words


def contact_names(names: Any, count: int) -> tuple[str, ...]:
    """A name for every contact."""
    if names is None:
        return tuple(map(str, range(1, count + 1)))
    words = names_of(names, "names")
    if len(words) != count or len(set(words)) < count:
        raise InputError(f"Expected `names` to be {count} different texts, got {short_repr(names)}.")
    return words


def coefficient(
    name: str, value: Any, kinds: tuple[str, ...], needed: tuple[str, ...], without: str
) -> np.ndarray:
    """Coefficients (..., K): positive where a kind needs them, zero elsewhere."""
    uses = np.array([kind in needed for kind in kinds])
    if not uses.any():
        return np.zeros(len(kinds))
    if value is None:
        raise InputError(f"Contacts of kind '{kinds[int(uses.argmax())]}' need `{name}`.", name=name)
    a = numbers(name, value)
    if not a.ndim:
        a = np.full(len(kinds), a)
    if a.shape[-1:] == uses.shape and a.dtype == np.float64:
        a = np.where(uses, a, 0.0)  # what a kind has no use for is not read
    a = real(name, as_array(name, a, len(kinds)))
    if not (a > 0)[..., uses].all():
        worst = float(a[..., uses].min())
        raise InputError(
            f"Expected `{name}` to be positive, got {worst:g}. A contact without it is of kind '{without}'.",
            name=name,
            value=worst,
        )
    return np.where(uses, a, 0.0)


def _units(name: str, value: Any) -> np.ndarray:
    """Unit vectors (..., 3)."""
    a = real(name, as_array(name, value, 3))
    largest = np.abs(a).max(axis=-1, keepdims=True)
    if not largest.all():
        where = np.argwhere(largest[..., 0] == 0)[0].tolist()
        raise InputError(f"Expected `{name}` to have a length, got zeros at {where}.", entries=where)
    a = a / largest  # the smallest and the largest numbers have no square
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def grasp_map(
    points: Any, normals: Any, kinds: str | Sequence[str], about: Any = (0.0, 0.0, 0.0), plane: Any = None
) -> np.ndarray:
    """Grasp map G: the wrench that contact forces f give a body is G f.

    Parameters
    ----------
    points, normals, kinds, about, plane
        As in `ContactSet`.

    Returns
    -------
    (..., 6, m) ndarray
        Force above moment about `about`, in world axes; in a plane (..., 3, m). Columns are the components of
        all contacts, one contact after the other.

    Raises
    ------
    InputError
        As `ContactSet`.

    Examples
    --------
    >>> grasp_map([[0, 1, 0]], [[0, -1, 0]], "friction").T.round(3).tolist()[0]
    [0.0, -1.0, 0.0, 0.0, 0.0, 0.0]
    """
    return ContactSet(points, normals, kinds, mu=1.0, gamma=1.0, about=about, plane=plane).map


SIX: tuple[str, ...] = ("fx", "fy", "fz", "mx", "my", "mz")


class ContactSet:
    """Contacts that act on one body, as plain arrays.

    Parameters
    ----------
    points : (..., K, 3) array_like
        Where they touch, in world axes.
    normals : (..., K, 3) array_like
        Inward normals of the body: the directions in which it is pushed. Made unit vectors.
    kinds : str or sequence of K str
        "point" (no friction), "friction" (a hard finger: force within the friction cone), "soft" (and a
        moment about the normal), "pinned" (a force in any direction). One word is for all contacts.
    mu : float or (..., K) array_like, optional
        Coefficients of friction; needed and positive where the kind is "friction" or "soft", not read
        elsewhere.
    gamma : float or (..., K) array_like, optional
        Lengths that limit the moment m of soft fingers: (fₜ/μ)² + (m/γ)² ≤ fₙ². Needed and positive there,
        not read elsewhere, nor in a plane.
    about : (..., 3) array_like
        Reference point of moments; by default the origin.
    tangents : (..., K, 3) array_like, optional
        Directions of the first tangents; by default as in `contact_frames`, and not read in a plane.
    plane : (3,) array_like, optional
        Normal of the plane, for planar bodies: wrenches are then two forces in the plane and the moment about
        this normal; the contacts' normals lie in the plane, and friction contacts have one tangent.
    names : sequence of K str, optional
        Names of the contacts in tables and messages; by default 1, 2, ….

    Attributes
    ----------
    points, normals : (..., K, 3)
        The same, with one batch; normals of unit length.
    kinds, names : tuple of str
    mu, gamma : (..., K)
        Zero where they are not used.
    about : (..., 3)
    frames : (..., K, 3, 3)
        Axes of the contacts in rows: normal and tangents; see `contact_frames`. In a plane the first tangent
        is the plane's normal × the contact's, and pins have the axes of the plane.
    map : (..., W, m)
        Grasp map, with W = 6 or in a plane 3.
    spans : tuple of slice
        Which of the m components are whose.
    basis : (W, 6)
        Wrenches that are counted: of (force, moment); in space the identity.

    Raises
    ------
    InputError
        For other shapes, no contacts, unknown kinds, normals of no length or out of the plane, coefficients
        that are missing or not positive, entries that are not finite, names that are no K different texts.

    Examples
    --------
    Two soft fingers press a ball from the left and the right:

    >>> import kic
    >>> c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "soft", mu=0.4, gamma=0.01)
    >>> c.map.shape
    (6, 8)
    """

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
        at = vectors("points", points)
        count = at.shape[-2]
        axes = [
            None if a is None else as_array(name, a, count, 3)
            for name, a in (("normals", normals), ("tangents", tangents))
        ]
        frames = contact_frames(*axes)
        self.kinds = contact_kinds(kinds, count)
        self.names = contact_names(names, count)
        arrays = {"points": points, "normals": normals, "mu": mu, "gamma": gamma, "about": about}
        arrays |= {"tangents": tangents, "plane": plane}
        mu = coefficient("mu", mu, self.kinds, ("friction", "soft"), "point")
        turning = ("soft",) if plane is None else ()
        gamma = coefficient("gamma", gamma, self.kinds, turning, "friction")
        reference = real("about", as_array("about", about, 3))
        self.batch = broadcast_batches(
            points=at.shape[:-2],
            normals=frames.shape[:-3],
            mu=mu.shape[:-1],
            gamma=gamma.shape[:-1],
            about=reference.shape[:-1],
        )
        self.plane = None if plane is None else plane_axes(plane)
        # as given, but for later changes of the caller's arrays
        self._given = {key: None if a is None else np.array(a) for key, a in arrays.items()} | {
            "kinds": kinds if isinstance(kinds, str) else self.kinds,
            "names": None if names is None else self.names,
        }
        self.basis, self.labels = np.eye(6), SIX
        if self.plane is not None:
            self.basis, self.labels = planar_wrenches(self.plane)
            frames = planar_frames(frames, self.kinds, self.plane)
        self.points = np.broadcast_to(at, (*self.batch, count, 3))
        self.frames = np.broadcast_to(frames, (*self.batch, count, 3, 3))
        self.mu = np.broadcast_to(mu, (*self.batch, count))
        self.gamma = np.broadcast_to(gamma, (*self.batch, count))
        self.about = np.broadcast_to(reference, (*self.batch, 3))
        widths = [(KINDS if plane is None else PLANAR)[kind] for kind in self.kinds]
        ends = np.cumsum(widths).tolist()
        self.spans = tuple(slice(end - width, end) for end, width in zip(ends, widths, strict=True))
        # for each component its contact and which of its axes: 0 to 2, 3 for the moment about the normal
        self.owner = np.repeat(np.arange(count), widths)
        self.axis = np.concatenate([np.arange(width) for width in widths])
        turns = self.axis == 3
        along = self.frames[..., self.owner, np.where(turns, 0, self.axis), :]
        arm = (self.points - self.about[..., None, :])[..., self.owner, :]
        force = np.where(turns[:, None], 0.0, along)
        moment = np.where(turns[:, None], along, np.cross(arm, along))
        self.columns = np.concatenate([force, moment], axis=-1)  # (..., m, 6)
        self.map = self.basis @ np.swapaxes(self.columns, -1, -2)

    def replaced(self, **changes: Any) -> ContactSet:
        """The same contacts with some of their arguments changed, all checked anew.

        Parameters
        ----------
        **changes
            Arguments of `ContactSet` by name; the others stay as they were given.

        Returns
        -------
        ContactSet

        Raises
        ------
        InputError
            As `ContactSet`; also for a name that is none of its arguments.

        Examples
        --------
        >>> c = ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.4)
        >>> c.replaced(mu=[0.4, 0.2]).mu.tolist()
        [0.4, 0.2]
        """
        strange = [name for name in changes if name not in self._given]
        if strange:
            raise InputError(
                f"Contacts have no argument '{strange[0]}' that could be replaced. There are "
                f"{', '.join(self._given)}.",
                name=strange[0],
            )
        return ContactSet(**(self._given | changes))

    __replace__ = replaced  # for copy.replace(), from Python 3.13 on

    @property
    def normals(self) -> np.ndarray:
        """Unit inward normals (..., K, 3)."""
        return self.frames[..., 0, :]

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the m components of force: "1.n", "1.t1", "1.t2", "1.moment", …"""
        words = ("n", "t1", "t2", "moment") if self.plane is None else ("n", "t")
        return tuple(f"{self.names[k]}.{words[a]}" for k, a in zip(self.owner, self.axis, strict=True))

    def __len__(self) -> int:
        return len(self.kinds)

    def jacobian(self, linear: Any, angular: Any = None) -> np.ndarray:
        """Rates of contact in the contacts' axes, from those of the fingers: J with T = Jᵀ f.

        Parameters
        ----------
        linear : (..., K, 3, N) array_like
            G of the fingers' contact points in world axes, in N coordinates.
        angular : (..., K, 3, N) array_like, optional
            G of the angular velocities of the bodies that touch; needed with soft fingers in space.

        Returns
        -------
        (..., m, N) ndarray
            Contact forces f on the body take the efforts Jᵀ f of the fingers.

        Raises
        ------
        InputError
            For other shapes, or soft fingers without `angular`.

        Examples
        --------
        >>> c = ContactSet([[0, 1, 0]], [[0, -1, 0]], "point")
        >>> c.jacobian([[[1, 0], [0, 1], [0, 0]]]).tolist()
        [[0.0, -1.0]]
        """
        moving = rates_of("linear", linear, len(self))
        turning = moving if angular is None else rates_of("angular", angular, len(self))
        if angular is None and (self.axis == 3).any():
            raise InputError("Soft fingers also turn: give `angular`, (..., K, 3, N) as `linear`.")
        if moving.shape[-1] != turning.shape[-1]:
            raise InputError(
                f"Expected `linear` and `angular` in the same coordinates, got {moving.shape[-1]} and "
                f"{turning.shape[-1]}."
            )
        broadcast_batches(linear=moving.shape[:-3], angular=turning.shape[:-3], contacts=self.batch)
        turns = self.axis == 3
        axes = self.frames[..., self.owner, np.where(turns, 0, self.axis), :]
        rates = np.where(turns[:, None, None], turning[..., self.owner, :, :], moving[..., self.owner, :, :])
        return np.einsum("...ma,...man->...mn", axes, rates)

    def loads(self, force: Any) -> tuple[np.ndarray, np.ndarray]:
        """Forces and moments that the contacts exert on the body, in world axes.

        Parameters
        ----------
        force : (..., m) array_like
            Components of all contacts, in their axes.

        Returns
        -------
        force, moment : (..., K, 3)
            Each at its point.

        Raises
        ------
        InputError
            For another shape or entries that are not finite.

        Examples
        --------
        >>> c = ContactSet([[0, 1, 0]], [[0, -1, 0]], "point")
        >>> c.loads([2.0])[0].tolist()
        [[0.0, -2.0, 0.0]]
        """
        f = as_array("force", force, len(self.axis), finite=False)
        broadcast_batches(force=f.shape[:-1], contacts=self.batch)
        turns = self.axis == 3
        if np.isinf(f.real).any():
            raise InputError(f"`force` must not be infinite, got {short_repr(force)}.", name="force")
        along = f[..., None] * self.frames[..., self.owner, np.where(turns, 0, self.axis), :]
        of = np.arange(len(self))[:, None] == self.owner
        return np.matmul((of & ~turns).astype(float), along), np.matmul((of & turns).astype(float), along)

    def summary(self) -> Summary:
        """Labelled tables of the contacts and the grasp map, to print or to show."""
        sheet = Summary(f"{len(self)} contacts" + (" in a plane" if self.plane is not None else ""))
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        columns = ("x", "y", "z", "normal x", "normal y", "normal z", "μ", "γ")
        parts = [self.points, self.normals, self.mu[..., None], self.gamma[..., None]]
        rows = [f"{name} ({kind})" for name, kind in zip(self.names, self.kinds, strict=True)]
        sheet.matrix("contacts", rows, columns, np.concatenate([p[index] for p in parts], axis=-1))
        about = ", ".join(f"{x:.5g}" for x in self.about[index])
        sheet.matrix(f"G, moments about ({about})", self.labels, self.components, self.map[index])
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


@dataclass(frozen=True)
class Frames:
    """Where contacts are, and how they stand.

    Attributes
    ----------
    point : (..., K, 3)
        Points of contact, as the first bodies carry them.
    axes : (..., K, 3, 3)
        Unit vectors n, t1, t2 below each other, as the second bodies carry them.
    spin : (..., K, 3)
        Normals of the crosses of the soft ones, t1 of the second × t2 of the first body; n of the others.
    reference : (..., 3)
        Reference point of the object.
    """

    point: np.ndarray
    axes: np.ndarray
    spin: np.ndarray
    reference: np.ndarray


def contacts_of(model: CompiledModel, held: str) -> tuple[Contact, ...]:
    """Closed contacts that hold a body: those with it or, where there are none, of its feet with ground.

    Raises
    ------
    UnknownNameError
        For a body that is not there.
    InputError
        If no closed contact holds it.
    """
    tree, drawing = model.tree, model.description
    drawing.part(held, "bodies")
    found = tuple(contact for contact in drawing.closed_contacts if held in contact.bodies)
    if not found:
        feet = [body for body in tree.frame if tree.frame[held] in tree.path(tree.frame[body])]
        sole = [{GROUND, foot} for foot in feet]
        found = tuple(contact for contact in drawing.closed_contacts if set(contact.bodies) in sole)
    if found:
        return found
    there = [f"{c.name} ({' on '.join(c.bodies)}{'' if c.closed else ', open'})" for c in drawing.contacts]
    raise InputError(
        f"No closed contact holds '{held}' of '{drawing.name}'. Contacts: {', '.join(there) or 'none'}. A "
        f"grasp needs contacts with '{held}', or of the feet on which it stands with '{GROUND}'.",
        name=held,
    )


def coordinates_of(
    model: CompiledModel, held: str, fingers: str | Iterable[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Coordinates of the fingers and of the body held, where its contacts are open.

    Raises
    ------
    InputError
        For a body that stands still, or fingers whose coordinates must be named.
    """
    tree, drawing = model.tree, model.description
    path = tree.path(tree.frame[held])
    if not path:
        raise InputError(
            f"'{held}' of '{drawing.name}' stands still; nothing can grasp or lift it.", name=held
        )
    own = [tree.columns[n] for n in path]
    body = drawing.part(held, "bodies")
    free = len(path) == 6 and sum(tree.cols[n, KIND] == BALL for n in path) == 3
    rows = (held,) if free and isinstance(body, Body) and body.reference else tuple(own)
    if fingers is not None:
        return names_of(fingers, "fingers"), rows
    count = model.dof - len(own)
    drawn = [c for joint in drawing.joints for c in joint.components]
    for candidates in (sorted(tree.columns, key=drawn.index), model.coordinates):
        rest = tuple(name for name in candidates if name not in own)
        if len(rest) == count:
            return rest, rows
    raise InputError(
        f"With the contacts of '{held}' open, '{drawing.name}' has mobility {model.dof}: {len(own)} of "
        f"'{held}', and {count} of what holds it. Name {count} coordinates in `fingers`.",
        mobility=model.dof,
    )


def frames_of(model: CompiledModel, held: str, contacts: tuple[Contact, ...], states: np.ndarray) -> Frames:
    """Places and axes of contacts at states (..., S)."""
    tree = model.tree
    body = model.description.part(held, "bodies")
    assert isinstance(body, Body)  # for the type checker: `part` looked among bodies only
    if body.reference is None:
        raise InputError(
            f"Body '{held}' has no reference point, about which its grasp could be told: give it `at` (or "
            "`com`).",
            name=held,
        )
    pairs = [[tree.frame[name] for name in contact.bodies] for contact in contacts]
    axes = [contact_axes(contact) for contact in contacts]

    def point(frame: int, at: Any) -> Item:
        return Item(POINT, frame, local_b=tuple(tree.local_point(frame, at)))

    def along(frame: int, u: np.ndarray) -> Item:
        return Item(DIRECTION, frame, local_b=tuple(tree.local_vector(frame, u)))

    items = [point(tree.frame[held], body.reference)]
    items += [point(first, c.at) for (first, _), c in zip(pairs, contacts, strict=True)]
    items += [along(second, u) for (_, second), three in zip(pairs, axes, strict=True) for u in three]
    items += [along(first, three[2]) for (first, _), three in zip(pairs, axes, strict=True)]
    question = OutputQuery(tree, plain_rows(tree, items), 1)
    flat = states.reshape(-1, states.shape[-1])
    found = question.layout.split(question.table(flat), states.shape[:-1])[0]
    vectors, count = found.reshape(*states.shape[:-1], len(items), 3), len(contacts)
    turned = vectors[..., 1 + count : 1 + 4 * count, :].reshape(*states.shape[:-1], count, 3, 3)
    soft = np.array([contact.type == "soft" for contact in contacts])
    cross = np.cross(turned[..., 1, :], vectors[..., 1 + 4 * count :, :])
    spin = np.where(soft[:, None], cross, turned[..., 0, :])
    return Frames(vectors[..., 1 : 1 + count, :], turned, spin, vectors[..., 0, :])
