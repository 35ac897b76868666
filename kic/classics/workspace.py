"""Where planar arms reach: the annulus of the tip, and radii usable with every direction of the last link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.arrays import broadcast_batches, reals, trailing
from kic.checks import assign, number
from kic.errors import InputError, ModelError, shown

# what is this close to a boundary of reach, as a share of the lengths, is on it: rounding may be all between
ON_BOUNDARY = 4 * np.finfo(float).eps


@dataclass(frozen=True)
class Annulus:
    """Radii from `inner` to `outer` about the base, both included; a disc where `inner` is 0.

    Raises
    ------
    ModelError
        For radii that are no numbers, negative, or in the wrong order.

    Examples
    --------
    >>> ring = Annulus(0.5, 1.5)
    >>> ring.width, ring.mean_radius, ring.contains([0.4, 0.5, 1.0]).tolist()
    (1.0, 1.0, [False, True, True])
    """

    inner: float
    """Least radius."""
    outer: float
    """Largest radius."""

    def __post_init__(self) -> None:
        for key in ("inner", "outer"):
            assign(self, **{key: number("Annulus", key, getattr(self, key), 0.0)})
        if self.inner > self.outer:
            raise ModelError(
                f"Annulus: expected `inner` not above `outer`, got {self.inner:g} and {self.outer:g}.",
                key="inner",
            )

    @property
    def width(self) -> float:
        """Difference of the radii."""
        return self.outer - self.inner

    @property
    def mean_radius(self) -> float:
        """Mean of the radii."""
        return (self.inner + self.outer) / 2

    def contains(self, radius: Any) -> np.ndarray:
        """Whether radii lie within.

        Parameters
        ----------
        radius : (...) array_like
            Distances from the base.

        Returns
        -------
        (...) bool

        Raises
        ------
        InputError
            For radii that are not finite real numbers.

        Examples
        --------
        >>> Annulus(0.5, 1.5).contains([0.4, 0.5, 1.0]).tolist()
        [False, True, True]
        """
        r = reals(radius)
        if r is None:
            raise InputError(f"Expected `radius` to be finite real numbers, got {shown(radius)}.")
        return (self.inner <= r) & (r <= self.outer)


def reachable(*lengths: float) -> Annulus:
    """Radii that the tip of a planar chain reaches (Horn 1975, p. 8, for two links).

    Parameters
    ----------
    *lengths : float
        Lengths of the links, one at least.

    Returns
    -------
    Annulus
        Of two links: width twice the shorter one, mean radius the longer one.

    Raises
    ------
    InputError
        For no lengths, or such that are not positive.

    Examples
    --------
    >>> reachable(2.0, 0.5)
    Annulus(inner=1.5, outer=2.5)
    """
    if not lengths:
        raise InputError("A chain needs links to reach anything, got no lengths. Give one at least.")
    sizes = _lengths("lengths", lengths)
    if sizes.ndim != 1:
        raise InputError(f"`lengths` must be single numbers, got {shown(lengths)}.", name="lengths")
    *rest, longest = np.sort(sizes).tolist()
    others = sum(rest)
    return Annulus(max(0.0, longest - others), longest + others)


def usable_radii(l1: Any, l2: Any, l3: Any) -> np.ndarray:
    """Radii at which the last of three links can point in every direction.

    The circle of radius l3 about the tip must lie in the annulus of the first two links. Horn (1975, p. 22)
    leaves out that the disc ends at l1 + l2 − l3, too, that a ring needs l3 ≤ min(l1, l2), and that beyond
    l3 = l1 + l2 nothing is usable.

    Parameters
    ----------
    l1, l2, l3 : (...) array_like
        Lengths of the links, positive; batches broadcast.

    Returns
    -------
    (..., 2, 2)
        Two intervals (least, largest): a disc about the base, (0, min(l3 − |l1 − l2|, l1 + l2 − l3)), where
        |l1 − l2| ≤ l3 ≤ l1 + l2; and a ring, from l3 + |l1 − l2| on, 2 (min(l1, l2) − l3) wide, where
        l3 ≤ min(l1, l2). NaN where there is none. Of equal links they touch and are given as one disc.
        Lengths that differ by rounding are equal here.

    Raises
    ------
    InputError
        For lengths that are not positive.

    Examples
    --------
    >>> usable_radii(1.0, 0.625, [0.25, 0.5, 0.75]).tolist()
    [[[nan, nan], [0.625, 1.375]], [[0.0, 0.125], [0.875, 1.125]], [[0.0, 0.375], [nan, nan]]]
    """
    lengths = {name: _lengths(name, value) for name, value in (("l1", l1), ("l2", l2), ("l3", l3))}
    batch = broadcast_batches(**{name: a.shape for name, a in lengths.items()})
    first, second, third = (np.broadcast_to(a, batch) for a in lengths.values())
    gap, span, short = abs(first - second), first + second, np.minimum(first, second)
    slack = ON_BOUNDARY * span
    equal, has_ring = gap <= slack, third <= short + slack
    has_disc = (gap <= third + slack) & (third <= span + slack)
    edge = np.where(equal, span - third, np.minimum(third - gap, span - third))
    disc = np.stack([0 * edge, np.maximum(edge, 0.0)], axis=-1)
    inside = third + gap
    ring = np.stack([inside, inside + 2 * np.maximum(short - third, 0.0)], axis=-1)
    there = np.stack([has_disc, has_ring & ~equal], axis=-1)
    return np.where(there[..., None], np.stack([disc, ring], axis=-2), np.nan)


def _lengths(name: str, value: Any) -> np.ndarray:
    """Positive lengths of any shape."""
    a = trailing(name, value)
    if a.dtype != np.float64 or not (a > 0).all():
        raise InputError(
            f"Expected `{name}` to be positive lengths, got {shown(value)}. Leave out a link that has none.",
            name=name,
        )
    return a
