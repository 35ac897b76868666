"""Mobility: how many freedoms a mechanism has, what its closure conditions are worth, and how sure that is.

The rank of the closure conditions at the drawing tells the freedoms to first order. Where conditions
depend on one another, the drawing may be a posture in which they do so by chance, such as a linkage
folded flat. Closed postures near it are then looked at: only a rank that stays is a rank to count with.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from kic.closure import CLOSED, Closure
from kic.posture import advance
from kic.transfer import RANK_SHARE, Transfer

# how far the neighbours of the drawing are: radians, or shares of the characteristic length
NEARBY = 1e-2
# neighbours looked at where there are several directions to go
NEIGHBOURS = 4
# Newton's steps to the neighbours, which are close by
STEPS = 12
# a condition worth less than this share of the strongest may be none, but for rounded dimensions
WEAK = 1e-2
# of more parts than these the rest is only counted
_MANY = 6


class Mobility:
    """Account of the freedoms of a mechanism; printed, it is a paragraph. Made by `Mechanism.mobility`.

    Attributes
    ----------
    freedoms : int
        Number of freedoms: those of the drawing, or, where the drawing is a singular posture, the most that
        closed postures near it have.
    first_order : int
        Freedoms to first order at the drawing: coordinates of the tree less independent conditions.
    nearby : tuple of int
        Freedoms at the closed postures found near the drawing; looked for only where conditions depend on
        one another while something moves.
    coordinates : int
        Coordinates of the spanning tree.
    conditions : dict of str to int
        Closure conditions of each cut joint, coupling, fixed distance and closed contact.
    redundant : int
        Conditions that follow from the others.
    shares : (…) ndarray
        What each condition adds to those before it at the drawing, best first, as a share of the best.
        Those below `closure_tolerance` count as redundant.
    regular : bool or None
        Whether the freedoms near the drawing are those at the drawing; None where no posture was found that
        could tell.

    Examples
    --------
    >>> import kic
    >>> print(kic.load("four-bar").mobility())
    mobility 1: 3 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them redundant (3 of joint
    'D'). All motion is in one plane, normal (0, 0, 1); conditions out of it hold by themselves.
    """

    def __init__(self, closure: Closure, drawn: np.ndarray) -> None:
        self._closure = closure
        self._drawn = drawn
        self.coordinates: int = self._transfer.tree.size
        owners = self._transfer.owners
        self.conditions = {name: owners.count(name) for name in dict.fromkeys(owners)}

    @property
    def _transfer(self) -> Transfer:
        return self._closure.transfer

    @cached_property
    def first_order(self) -> int:
        """Freedoms to first order at the drawing."""
        return self.coordinates - self._transfer.rank(self._drawn)

    @cached_property
    def shares(self) -> np.ndarray:
        """Worth of each condition at the drawing, best first."""
        return self._transfer.shares(self._closure.rows(self._drawn)[1][0])[0]

    @cached_property
    def _neighbours(self) -> np.ndarray:
        """States (n, S) of closed postures near the drawing, on the way of its first-order motions."""
        t, rank = self._transfer, self.coordinates - self.first_order
        if not self.first_order or rank == len(t.owners):
            return self._drawn[:0]  # nothing moves, or no condition depends on another: the rank stays
        ways = np.linalg.svd(self._closure.rows(self._drawn)[1][0])[2][rank:]
        mixed = np.random.default_rng(0).normal(size=(NEIGHBOURS, len(ways)))
        step = (mixed if len(ways) > 1 else np.array([[1.0], [-1.0]])) @ ways
        step *= NEARBY / np.abs(step).max(axis=1, keepdims=True)
        states = start = advance(t.tree, self._drawn.repeat(len(step), axis=0), step * t.column_scale)
        # what the tolerance takes for redundant must not pull a neighbour back to the drawing
        least = max(1e-10, 10 * t.tolerance)
        for _ in range(STEPS):
            missing, G = self._closure.rows(states)
            if np.abs(missing).max() < CLOSED / 100:
                break
            step = np.einsum("bnp,bp->bn", np.linalg.pinv(G, rcond=least), -missing)
            states = advance(t.tree, states, step * t.column_scale)
        left = np.linalg.norm(self._closure.rows(states)[0], axis=1)
        # a posture that fell back to the drawing is none beside it
        far, gone = (np.linalg.norm(x - self._drawn, axis=1) for x in (start, states))
        return states[(left <= max(self._closure.limit, t.tolerance)) & (gone > far / 10) & (gone < 10 * far)]

    @cached_property
    def nearby(self) -> tuple[int, ...]:
        """Freedoms at the closed postures found near the drawing."""
        if not len(self._neighbours):
            return ()
        share = max(RANK_SHARE, 10 * self._transfer.tolerance)
        return tuple(self.coordinates - _rank(G, share) for G in self._closure.rows(self._neighbours)[1])

    @property
    def regular(self) -> bool | None:
        """Whether the freedoms near the drawing are those at the drawing; None where that is open."""
        if not self.first_order or self.coordinates - self.first_order == len(self._transfer.owners):
            return True
        return {self.first_order} == set(self.nearby) if self.nearby else None

    @property
    def freedoms(self) -> int:
        """Number of freedoms."""
        return max(self.nearby, default=self.first_order)

    @property
    def redundant(self) -> int:
        """Conditions that follow from the others."""
        return len(self._transfer.owners) - (self.coordinates - self.freedoms)

    @cached_property
    def _surplus(self) -> tuple[dict[str, int], dict[str, int]]:
        """Of each part: conditions that hold by themselves, and those that follow from all others."""
        states = self._drawn
        if not self.regular and self.nearby:
            states = self._neighbours[[int(np.argmax(self.nearby))]]
        G, owners = self._closure.rows(states)[1][0], np.array(self._transfer.owners)
        share = max(RANK_SHARE, self._transfer.tolerance)
        total = _rank(G, share)
        alone, follow = {}, {}
        for name, count in self.conditions.items():
            own = owners == name
            alone[name] = count - _rank(G[own], share)
            follow[name] = count - (total - _rank(G[~own], share))
        return alone, follow

    def _said(self, name: str) -> str:
        """A part with its kind."""
        return self._transfer.tree.drawing.said(name)

    def _sources(self) -> str:
        """Where the conditions come from."""
        drawing, cuts = self._transfer.tree.drawing, [joint.name for joint in self._transfer.tree.cuts]
        said = []
        for kind, verb, names in (
            ("loop", "cut at ", cuts),
            ("coupling", "", [c.name for c in drawing.couplings]),
            ("fixed distance", "", list(drawing.rods)),
            ("contact", "", [contact.name for contact in drawing.touching]),
        ):
            if names:
                several = f"{len(names)} {kind}{'s' * (len(names) > 1)}"
                said.append(f"{several} ({verb}{_listed(names)})")
        return " and ".join([", ".join(said[:-1]), said[-1]] if said[1:] else said)

    def _redundancy(self) -> str:
        """How many conditions follow from others, and whose they are."""
        if not self.redundant:
            return "none of them redundant"
        alone, follow = self._surplus
        own = [f"{n} of {self._said(name)}" for name, n in alone.items() if n]
        rest = self.redundant - sum(alone.values())
        shared = [self._said(name) for name, n in follow.items() if n > alone[name]]
        if rest and shared:
            own.append(f"{rest} among those of {_listed(shared)}" if shared[1:] else f"{rest} of {shared[0]}")
        return f"{self.redundant} of them redundant ({_listed(own)})"

    def _plane(self) -> str:
        """Why conditions hold by themselves in a mechanism that moves in a plane."""
        normal = self._transfer.tree.planar_normal
        if normal is None or not any(self._surplus[0].values()):
            return ""
        said = ", ".join(f"{x:.4g}" for x in normal + 0.0)
        return f" All motion is in one plane, normal ({said}); conditions out of it hold by themselves."

    def _rounding(self) -> str:
        """Where rounded dimensions are the reason for conditions that count, or for some that do not."""
        t, kept = self._transfer, self._transfer.count(self.shares)
        strong, weak = self.shares[:kept], self.shares[kept:]
        if t.tolerance and (weak > RANK_SHARE).any():
            several = int((weak > RANK_SHARE).sum())
            return (
                f"Of the redundant ones {several} are so only within closure_tolerance = {t.tolerance:g}: "
                f"the strongest dropped is worth {weak[0]:.1e} of the strongest kept, the weakest kept "
                f"{strong[-1]:.1e}."
            )
        few = int((strong < WEAK).sum())
        if not few:
            return ""
        enough = 10 ** np.ceil(np.log10(2 * strong[-few]))
        weakest = f"The weakest {few} conditions are" if few > 1 else "The weakest condition is"
        return (
            f"{weakest} worth {strong[-few]:.1e} of the strongest. If that is rounding of dimensions, "
            f"closure_tolerance = {enough:g} makes the mobility {self.freedoms + few}."
        )

    def doubt(self) -> str:
        """Why the number of freedoms may be another: singular drawing, rounded dimensions; '' if it is sure.

        Examples
        --------
        >>> import kic
        >>> kic.load("four-bar").mobility().doubt()
        ''
        """
        if self.regular:
            return self._rounding()
        here = f"{_count(self.first_order, 'freedom')} to first order"
        if self.regular is None:
            return (
                f"Undecided: at the drawing conditions depend on one another and leave {here}, but no closed "
                "posture was found near it. It may be rigid all the same."
            )
        found = sorted(set(self.nearby))
        said = " or ".join(map(str, found))
        meet = " Motions with different freedoms meet here." if found[1:] else ""
        return (
            f"But the drawing is a singular posture: it has {here}, the closed postures found near it have "
            f"{said}.{meet} Draw it in another posture."
        )

    def text(self) -> str:
        """The account as a paragraph.

        Examples
        --------
        >>> import kic
        >>> kic.load("puma560").mobility().text()
        'mobility 6: 6 tree coordinates, no closure condition.'
        """
        sure = "" if self.regular is not None else "at most "
        tree = f"mobility {sure}{self.freedoms}: {_count(self.coordinates, 'tree coordinate')}"
        if not self.conditions:
            return f"{tree}, no closure condition."
        total = _count(len(self._transfer.owners), "closure condition")
        account = f"{tree}, {total} of {self._sources()}, {self._redundancy()}.{self._plane()}"
        return f"{account} {self.doubt()}".rstrip()

    def __repr__(self) -> str:
        return self.text()


def _rank(G: np.ndarray, share: float) -> int:
    """Rank of scaled conditions: singular values above a share of the largest."""
    values = np.linalg.svd(G, compute_uv=False) if G.size else np.zeros(1)
    return int((values > share * values[0]).sum()) if values[0] > RANK_SHARE else 0


def _count(n: int, one: str) -> str:
    return f"{n} {one}{'s' * (n != 1)}"


def _listed(names: Iterable[str]) -> str:
    """Names one after the other, the many cut short."""
    every = list(names)
    more = f", … {len(every) - _MANY} more" if len(every) > _MANY else ""
    return ", ".join(every[:_MANY]) + more
