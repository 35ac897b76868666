"""Check of contact forces: unilateral normal force and friction limits. Pinned contacts are bilateral."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kic.description.contacts import CONTACT_ROWS, Contact
from kic.numerics.conic_programs import Program, deepest_point

# loads below this share of the largest load are round-off
CONTACT_LOAD_RTOL = 1e-9
# contacts with a multiplier below this share of the largest do not limit the margin
ACTIVE_MULTIPLIER_RTOL = 1e-3


def classify_contacts(
    normal: np.ndarray,
    tangential: np.ndarray,
    moment: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    pinned: np.ndarray,
    small: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return masks (..., K) of contacts that would pull, and of contacts that slip.

    Normal forces (positive for pressure), tangential forces and moments about the normal have shape (..., K).
    `bounds` are coefficients of friction and lengths of torsion (K,), 0 without friction. `small` (..., 1) is
    the size of round-off.
    """
    pulling = ~pinned & (normal < -small)
    return pulling, ~pinned & ~pulling & (required_normal_force(tangential, moment, bounds) > normal + small)


def required_normal_force(
    tangential: np.ndarray, moment: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the normal force (..., K) that the friction cone or soft-finger ellipsoid requires."""
    parts = zip((tangential, moment), bounds, strict=True)
    shares = [x / np.where(bound > 0, bound, np.inf) for x, bound in parts]
    return np.hypot(*shares)


def remarks(
    names: Sequence[str], normal: np.ndarray, pulling: np.ndarray, slipping: np.ndarray
) -> tuple[str, ...]:
    """Return a sentence for each contact that would pull or slips, from masks (..., K)."""
    batch, sentences = normal.shape[:-1], []
    for k, name in enumerate(names):
        for flags, what in (
            (pulling, "would have to pull, by {:.3g}, and separates"),
            (slipping, "needs more friction than it has at a normal force of {:.3g}, and slips"),
        ):
            count = int(flags[..., k].sum())
            if count:
                least = np.abs(normal[..., k][flags[..., k]])
                size = float(least.max() if flags is pulling else least.min())
                where = f" (in {count} of {int(np.prod(batch))} members)" if batch else ""
                sentences.append(f"contact '{name}' {what.format(size)}{where}")
    return tuple(sentences)


class ContactForceCheck:
    """Contacts as arrays, with checks of their loads against pulling and friction limits.

    Parameters
    ----------
    names, kinds : sequence of K str
        Names and types, as in `Contact`.
    friction, torsion : (K,)
        Coefficients of friction and lengths of torsion, 0 if there are none.

    Attributes
    ----------
    rows : int
        Number R of loads of all contacts. A contact has loads along the normal, the two tangents and about
        the normal, depending on its type.
    along : (R,) bool
        True for loads along normals.
    """

    def __init__(
        self, names: Sequence[str], kinds: Sequence[str], friction: Sequence[float], torsion: Sequence[float]
    ) -> None:
        self.names = tuple(names)
        self.bounds = np.array(friction, dtype=float), np.array(torsion, dtype=float)
        self.pinned = np.array([kind == "pinned" for kind in kinds], dtype=bool)
        widths = [len(CONTACT_ROWS[kind]) for kind in kinds]
        ends = np.cumsum(widths, dtype=np.intp).tolist()
        self.rows = ends[-1] if ends else 0
        self._first = np.array([end - width for end, width in zip(ends, widths, strict=True)], dtype=np.intp)
        self.along = np.isin(np.arange(self.rows), self._first)
        self._spans = [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]

    def parts(self, load: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return loads (..., R) as normal forces, tangential forces and moments, (..., K) each."""
        tangential, moment = np.zeros((2, *load.shape[:-1], len(self.names)))
        for k, span in enumerate(self._spans):
            tangential[..., k] = np.hypot.reduce(load[..., span][..., 1:3], axis=-1)
            moment[..., k] = np.abs(load[..., span][..., 3:]).sum(axis=-1)
        return load[..., self._first], tangential, moment

    def margins(self, load: np.ndarray) -> np.ndarray:
        """Return the normal force (..., K) in excess of the required one, ∞ for pinned contacts."""
        normal, tangential, moment = self.parts(load)
        return np.where(self.pinned, np.inf, normal - required_normal_force(tangential, moment, self.bounds))

    def classify(self, load: np.ndarray, small: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return masks (..., K) of contacts that would pull, and that slip; `small` (...) is round-off."""
        return classify_contacts(*self.parts(load), self.bounds, self.pinned, small[..., None])

    def largest_margin(
        self, load: np.ndarray, play: np.ndarray, size: float
    ) -> tuple[float, np.ndarray, list[int]]:
        """Find the loads (R,) of the largest smallest margin; return it, the loads and the limiting contacts.

        The possible loads are load + play z for any z, with `play` (R, k). The margin is in units of `size`,
        at most 1, and negative if no loads satisfy the limits. Limiting contacts pull or slip; if loads can
        be chosen, their limits conflict. Raise `KicError` if the solver for spatial friction cones is needed
        and not installed.
        """
        margins = self.margins(load) / size
        least = float(margins.min(initial=1.0))
        if least >= 0 or not play.any():
            return least, load, np.flatnonzero(margins < 0).tolist()
        unit = np.ones(self.rows)
        for k, span in enumerate(self._spans):
            if not self.pinned[k]:
                bounds = [self.bounds[0][k]] * 2 + [self.bounds[1][k]]
                unit[span][1:] = bounds[: span.stop - span.start - 1]
        unilateral = np.flatnonzero(~self.pinned)
        rows = np.concatenate([np.arange(self.rows)[self._spans[k]] for k in unilateral])
        choices = play.shape[1]
        program = Program(
            np.zeros(choices),
            np.zeros((0, choices)),
            np.zeros(0),
            (-play / unit[:, None])[rows],
            (load / unit / size)[rows],
            tuple(self._spans[k].stop - self._spans[k].start for k in unilateral),
        )
        middle = deepest_point(program)
        weight = middle.z[program.starts]
        best = load + size * (play @ middle.x)
        return middle.margin, best, unilateral[weight > ACTIVE_MULTIPLIER_RTOL * weight.max()].tolist()


def contact_force_check(contacts: Iterable[Contact]) -> ContactForceCheck:
    """Return the check of the forces in contacts against pulling and slipping."""
    every = tuple(contacts)
    return ContactForceCheck(
        [c.name for c in every],
        [c.type for c in every],
        [c.friction or 0.0 for c in every],
        [c.torsion or 0.0 for c in every],
    )
