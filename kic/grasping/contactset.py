"""Contacts on one body: what each can give, and the grasp map that adds it up.

Kinds after Salisbury, as in Murray, Li and Sastry (1994), chapter 5. A contact pushes along its normal, which
points into the body; its force has its components in the contact's own axes, the normal one first, then two
tangents, then for a soft finger the moment about the normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, trailing
from kic.errors import InputError, shown
from kic.grasping.contactarrays import (
    KINDS,
    PLANAR,
    coefficient,
    contact_frames,
    contact_kinds,
    contact_names,
    planar_frames,
    planar_wrenches,
    plane_axes,
    rates_of,
    real,
    vectors,
)
from kic.tables import Sheet, member


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
            None if a is None else trailing(name, a, count, 3)
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
        reference = real("about", trailing("about", about, 3))
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
        f = trailing("force", force, len(self.axis), finite=False)
        broadcast_batches(force=f.shape[:-1], contacts=self.batch)
        turns = self.axis == 3
        if np.isinf(f.real).any():
            raise InputError(f"`force` must not be infinite, got {shown(force)}.", name="force")
        along = f[..., None] * self.frames[..., self.owner, np.where(turns, 0, self.axis), :]
        of = np.arange(len(self))[:, None] == self.owner
        return np.matmul((of & ~turns).astype(float), along), np.matmul((of & turns).astype(float), along)

    def sheet(self) -> Sheet:
        """Labelled tables of the contacts and the grasp map, to print or to show."""
        sheet = Sheet(f"{len(self)} contacts" + (" in a plane" if self.plane is not None else ""))
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
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
