"""Contacts as arrays: their axes, and arguments checked once.

A contact has three axes: the normal, along which it pushes, and two tangents, right-handed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kic.arguments import names_of
from kic.arrays import broadcast_batches, numbers, trailing
from kic.errors import InputError, shown

KINDS = {"point": 1, "friction": 3, "soft": 4, "pinned": 3}
"""Kinds of contact, with the components of force that each gives in space."""
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
    a = real("plane", trailing("plane", plane, 3))
    if a.ndim != 1 or not a.any():
        raise InputError(f"Expected `plane` to be a normal (3,) with a length, got {shown(plane)}.")
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
    return real(name, trailing(name, value, shape[-2], 3))


def rates_of(name: str, value: Any, count: int) -> np.ndarray:
    """Rates (..., K, 3, N) of contacts in any N coordinates."""
    shape = numbers(name, value).shape
    return real(name, trailing(name, value, count, 3, shape[-1] if shape else 0))


def contact_kinds(kinds: Any, count: int) -> tuple[str, ...]:
    """A kind for every contact."""
    words = (kinds,) * count if isinstance(kinds, str) else names_of(kinds, "kinds")
    bad = [w for w in words if w not in KINDS]
    if bad:
        raise InputError(f"Expected `kinds` to be of {', '.join(KINDS)}, got {shown(bad[0])}.", kind=bad[0])
    if len(words) != count:
        raise InputError(f"Expected `kinds` for {count} contacts, got {len(words)}: {shown(words)}.")
    return words


def contact_names(names: Any, count: int) -> tuple[str, ...]:
    """A name for every contact."""
    if names is None:
        return tuple(map(str, range(1, count + 1)))
    words = names_of(names, "names")
    if len(words) != count or len(set(words)) < count:
        raise InputError(f"Expected `names` to be {count} different texts, got {shown(names)}.")
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
    a = real(name, trailing(name, a, len(kinds)))
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
    a = real(name, trailing(name, value, 3))
    largest = np.abs(a).max(axis=-1, keepdims=True)
    if not largest.all():
        where = np.argwhere(largest[..., 0] == 0)[0].tolist()
        raise InputError(f"Expected `{name}` to have a length, got zeros at {where}.", entries=where)
    a = a / largest  # the smallest and the largest numbers have no square
    return a / np.linalg.norm(a, axis=-1, keepdims=True)
