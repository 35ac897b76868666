"""Pressing: with what loads contacts push, and whether they can; only a pin can pull."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kic.description.contacts import CONTACT_ROWS, Contact
from kic.numerics.conic_programs import Program, deepest_point

# loads smaller than this share of the largest, or of what they come from, are zero but for rounding
SMALL = 1e-9
# contacts whose multipliers are less than this share of the largest are not in the way
IN_THE_WAY = 1e-3


def classify_contacts(
    normal: np.ndarray,
    across: np.ndarray,
    moment: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    pinned: np.ndarray,
    small: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Which contacts (..., K) have to pull, and which slip.

    Parameters
    ----------
    normal, across, moment : (..., K)
        Forces along the normal (positive: it pushes) and across it, moments about it.
    bounds : two of (K,)
        Coefficients of friction and lengths of torsion; 0 where there are none.
    pinned : (K,) bool
    small : (..., 1)
        What can not be told from none.
    """
    pulling = ~pinned & (normal < -small)
    return pulling, ~pinned & ~pulling & (used(across, moment, bounds) > normal + small)


def used(across: np.ndarray, moment: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Normal force (..., K) that friction takes: of the cone, or of the soft finger's ellipsoid."""
    shares = [x / np.where(most > 0, most, np.inf) for x, most in zip((across, moment), bounds, strict=True)]
    return np.hypot(*shares)


def remarks(
    names: Sequence[str], normal: np.ndarray, pulling: np.ndarray, slipping: np.ndarray
) -> tuple[str, ...]:
    """What contacts (..., K) can not do, in words; none where all is well."""
    batch, said = normal.shape[:-1], []
    for k, name in enumerate(names):
        for flags, what in (
            (pulling, "would have to pull, by {:.3g}, and comes off"),
            (slipping, "needs more friction than it has, pressed by {:.3g}, and slips"),
        ):
            count = int(flags[..., k].sum())
            if count:
                least = np.abs(normal[..., k][flags[..., k]])
                size = float(least.max() if flags is pulling else least.min())
                where = f" (in {count} of {int(np.prod(batch))} members)" if batch else ""
                said.append(f"contact '{name}' {what.format(size)}{where}")
    return tuple(said)


class ContactForceCheck:
    """Contacts with their rows, as arrays: what their loads are, and which they can have.

    Parameters
    ----------
    names, kinds : sequence of K str
        As in `Contact`.
    friction, torsion : (K,)
        Coefficients of friction and lengths of torsion, 0 where there are none.

    Attributes
    ----------
    rows : int
        Loads of all contacts, R: along the normal, two tangents, about the normal, as they have them.
    along : (R,) bool
        Which of them are along normals.
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
        """Loads (..., R) as forces along and across the normals, and moments about them, (..., K) each."""
        across, moment = np.zeros((2, *load.shape[:-1], len(self.names)))
        for k, span in enumerate(self._spans):
            across[..., k] = np.hypot.reduce(load[..., span][..., 1:3], axis=-1)
            moment[..., k] = np.abs(load[..., span][..., 3:]).sum(axis=-1)
        return load[..., self._first], across, moment

    def margins(self, load: np.ndarray) -> np.ndarray:
        """Normal force (..., K) that friction leaves: negative where a contact pulls or slips, ∞ of pins."""
        normal, across, moment = self.parts(load)
        return np.where(self.pinned, np.inf, normal - used(across, moment, self.bounds))

    def judge(self, load: np.ndarray, small: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which contacts (..., K) have to pull, and which slip; `small` (...) can not be told from none."""
        return classify_contacts(*self.parts(load), self.bounds, self.pinned, small[..., None])

    def most(self, load: np.ndarray, play: np.ndarray, size: float) -> tuple[float, np.ndarray, list[int]]:
        """The largest least margin that any loads have, as a share of a size, and who is in its way.

        Parameters
        ----------
        load, play : (R,), (R, k)
            The loads are load + play z, whatever z is.
        size : float
            What loads are measured by.

        Returns
        -------
        margin : float
            At most 1; negative where no such loads are possible.
        best : (R,)
            Loads that have it.
        who : list of int
            Contacts that pull or slip; where loads can be chosen, those that are in one another's way.

        Raises
        ------
        KicError
            Where the solver for friction cones in space is needed and not installed.
        """
        sure = self.margins(load) / size
        least = float(sure.min(initial=1.0))
        if least >= 0 or not play.any():
            return least, load, np.flatnonzero(sure < 0).tolist()
        unit = np.ones(self.rows)
        for k, span in enumerate(self._spans):
            if not self.pinned[k]:
                bounds = [self.bounds[0][k]] * 2 + [self.bounds[1][k]]
                unit[span][1:] = bounds[: span.stop - span.start - 1]
        who = np.flatnonzero(~self.pinned)
        taken = np.concatenate([np.arange(self.rows)[self._spans[k]] for k in who])
        k = play.shape[1]
        program = Program(
            np.zeros(k),
            np.zeros((0, k)),
            np.zeros(0),
            (-play / unit[:, None])[taken],
            (load / unit / size)[taken],
            tuple(self._spans[k].stop - self._spans[k].start for k in who),
        )
        middle = deepest_point(program)
        weight = middle.z[program.starts]
        best = load + size * (play @ middle.x)
        return middle.margin, best, who[weight > IN_THE_WAY * weight.max()].tolist()


def contact_force_check(contacts: Iterable[Contact]) -> ContactForceCheck:
    """Contacts as arrays: what their loads are, and which they can have."""
    every = tuple(contacts)
    return ContactForceCheck(
        [c.name for c in every],
        [c.type for c in every],
        [c.friction or 0.0 for c in every],
        [c.torsion or 0.0 for c in every],
    )
