"""Mobility: how many freedoms a mechanism has, what its closure conditions are worth, and how sure that is.

The rank of the closure conditions at a posture, the drawing if no other is asked for, tells the freedoms
to first order. Where conditions depend on one another, the posture may be one in which they do so by chance,
such as a linkage folded flat. Closed postures near it are then looked at: only a rank that stays is a rank
to count with. Where there are none, the orders to which a first-order motion extends tell what can be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np

from kic.analysis.body_twists import REST
from kic.analysis.passive_freedoms import PassiveFreedom, find_passive_freedoms
from kic.transfer.closure import Closure
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.finite_mobility import (
    NEIGHBOURS,
    Extension,
    FirstOrderMotion,
    LocalDimension,
    extension,
    local_dimension,
    tangent_space,
    weakest_over_range,
)
from kic.transfer.rank import RANK_SHARE, count_independent, rank

# a condition worth less than this share of the strongest may be none, but for rounded dimensions
WEAK = 1e-2
# of more parts than these the rest is only counted
_MANY = 6


class Mobility:
    """Account of the freedoms of a mechanism; printed, it is a paragraph. Made by `Mechanism.mobility`.

    Attributes
    ----------
    freedoms : int
        Number of freedoms: those of the posture, or, where it is singular, the most that closed postures near
        it have. None where what there is to first order is proved to lead nowhere.
    first_order : int
        Freedoms to first order at the posture: coordinates of the tree less independent conditions.
    nearby : tuple of int
        Finite freedoms at closed configurations found near it. They are sought only if conditions depend on
        one another and something moves.
    coordinates : int
        Coordinates of the spanning tree.
    conditions : mapping of str to int
        Closure conditions of each cut joint, coupling, fixed distance and closed contact.
    redundant : int
        Conditions that follow from the others.
    shares : (…) ndarray
        What each condition adds to those before it at the posture, best first, as a share of the best.
        Those below `closure_tolerance` count as redundant.
    regular : bool or None
        Whether the freedoms near the posture are those that it has; None where no posture was found that
        could tell.
    finite : bool or None
        Whether the freedoms are motions that go on: True where conditions are independent, or where closed
        postures were found on the way; False where those of first order are proved to lead nowhere; None
        where that is open, and `extends` is all that is known.
    extends : int or None
        Highest order to which a first-order motion was found to extend; None if closed configurations nearby
        decide, or nothing moves. For several first-order freedoms at most 3.
    motions : tuple of FirstOrderMotion
        Directions of the tangent space, each finite, obstructed at an order, or undecided. If all are finite,
        an orthonormal basis. Otherwise the tangents of finite curves found, an orthonormal basis of the rest,
        and, for several freedoms, one generic combination of all.
    infinitesimal : int
        Number of independent first-order freedoms that are tangent to no finite motion found.
    idle : tuple of Idle
        Idle freedoms: motions of some bodies that leave all others at rest, such as the spin of a rod between
        two balls. They count among `freedoms`, and one coordinate of each belongs to every coordinate set.
        Groups of bodies are tried, the smallest first: of a large mechanism they are those found so far.

    Examples
    --------
    >>> import kic
    >>> print(kic.load("four-bar").mobility())
    mobility 1: 3 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them redundant (3 of joint
    'D'). All motion is in one plane, normal (0, 0, 1); conditions out of it hold by themselves.
    """

    def __init__(self, closure: Closure, state: np.ndarray, drawn: bool = True) -> None:
        self._closure = closure
        self._state = state
        self._where = "the drawing" if drawn else "this posture"
        self.coordinates: int = self._transfer.tree.size
        owners = self._transfer.owners
        self._conditions = {name: owners.count(name) for name in dict.fromkeys(owners)}

    @property
    def conditions(self) -> Mapping[str, int]:
        """Closure conditions of each cut joint, coupling, fixed distance and closed contact."""
        return MappingProxyType(self._conditions)

    @property
    def _transfer(self) -> CoordinateTransfer:
        return self._closure.transfer

    @cached_property
    def first_order(self) -> int:
        """Freedoms to first order at the posture."""
        return self.coordinates - rank(self._transfer, self._state)

    @cached_property
    def shares(self) -> np.ndarray:
        """Worth of each condition at the posture, best first."""
        found = self._transfer.shares(self._closure.rows(self._state)[1][0])[0]
        found.flags.writeable = False
        return found

    @property
    def _independent(self) -> bool:
        """Whether no condition depends on another while something moves: then the rank stays."""
        return not self.first_order or self.coordinates - self.first_order == len(self._transfer.owners)

    @cached_property
    def _local(self) -> LocalDimension:
        """Finite freedoms at the configuration, found by finite steps."""
        return local_dimension(self._closure, self._state, self.first_order)

    @cached_property
    def _neighbours(self) -> np.ndarray:
        """Closed states (n, S) near this one."""
        return self._local.states[:NEIGHBOURS] if self.first_order else self._state[:0]

    @property
    def motions(self) -> tuple[FirstOrderMotion, ...]:
        """Directions of the tangent space, each with a verdict."""
        if not self.first_order:
            return ()
        if self._independent:
            K = tangent_space(self._closure, self._state, self.first_order)
            return tuple(FirstOrderMotion(x * self._transfer.column_scale, "finite") for x in K.T)
        return self._local.motions

    @property
    def infinitesimal(self) -> int:
        """Number of independent first-order freedoms that are tangent to no finite motion found."""
        return self.first_order - sum(motion.verdict == "finite" for motion in self.motions)

    @cached_property
    def nearby(self) -> tuple[int, ...]:
        """Finite freedoms at closed configurations found near this one."""
        if self._independent or not len(self._neighbours):
            return ()
        if self._local.dimension == self.first_order:
            return (self.first_order,) * len(self._neighbours)
        share = max(RANK_SHARE, 10 * self._transfer.tolerance)
        found = []
        for state, G in zip(self._neighbours, self._closure.rows(self._neighbours)[1], strict=True):
            first_order = self.coordinates - _rank(G, share)
            found.append(local_dimension(self._closure, state[None], first_order).dimension)
        # nowhere near is the dimension larger
        most = self._local.dimension
        return tuple(min(n, most) for n in found if n is not None) if most is not None else ()

    @property
    def regular(self) -> bool | None:
        """Whether the freedoms near the posture are those that it has; None where that is open."""
        if self._independent:
            return True
        return {self.first_order} == set(self.nearby) if self.nearby else None

    @cached_property
    def _extension(self) -> Extension | None:
        """How far first-order motions extend, where no posture near by tells."""
        if self.regular is not None:
            return None
        if self.first_order == 1 and self._local.motions[0].order:
            return Extension(self._local.motions[0].order - 1, True)
        return extension(self._closure, self._state, self.first_order)

    @property
    def extends(self) -> int | None:
        """Highest order to which a first-order motion was found to extend, where that is the question."""
        return None if self._extension is None else self._extension.order

    @property
    def finite(self) -> bool | None:
        """Whether the freedoms are motions that go on; None where that is open."""
        if self._extension is None:
            return True
        # several first-order freedoms leave room for motions that start in a cusp
        last = self._extension.order == 1 or self._local.dimension == 0
        return False if last and self._extension.certain else None

    @property
    def dof(self) -> int:
        """Number of freedoms."""
        return 0 if self.finite is False else max(self.nearby, default=self.first_order)

    @cached_property
    def passive_freedoms(self) -> tuple[PassiveFreedom, ...]:
        """Idle freedoms."""
        if not self.first_order:
            return ()
        others = self._neighbours
        if not self.regular and self.nearby:  # the one with the most freedoms first
            others = others[np.argsort(-np.array(self.nearby), kind="stable")]
            others = others[: sum(n == max(self.nearby) for n in self.nearby)]
            return find_passive_freedoms(self._closure, np.concatenate([self._state, others]), singular=True)
        return find_passive_freedoms(self._closure, np.concatenate([self._state, others]))

    @property
    def redundant(self) -> int:
        """Conditions that follow from the others."""
        rank = self.coordinates - (self.dof if self.finite else self.first_order)
        return len(self._transfer.owners) - rank

    @cached_property
    def _surplus(self) -> tuple[dict[str, int], dict[str, int]]:
        """Of each part: conditions that hold by themselves, and those that follow from all others."""
        states = self._state
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
        return self._transfer.tree.description.describe(name)

    def _sources(self) -> str:
        """Where the conditions come from."""
        drawing, cuts = self._transfer.tree.description, [joint.name for joint in self._transfer.tree.cuts]
        said = []
        for kind, verb, names in (
            ("loop", "cut at ", cuts),
            ("coupling", "", [c.name for c in drawing.couplings]),
            ("fixed distance", "", list(drawing.fixed_distances)),
            ("contact", "", [contact.name for contact in drawing.closed_contacts]),
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
        t = self._transfer
        kept = count_independent(self.shares, t.tolerance)
        strong, weak = self.shares[:kept], self.shares[kept:]
        if t.tolerance and (weak > RANK_SHARE).any():
            several = int((weak > RANK_SHARE).sum())
            said = f"{several} are" if several > 1 else "1 is"
            return (
                f"Of the redundant ones {said} so only within closure_tolerance = {t.tolerance:g}: "
                f"the strongest dropped is worth {weak[0]:.1e} of the strongest kept, the weakest kept "
                f"{strong[-1]:.1e}."
            )
        few = int((strong < WEAK).sum())
        if not few:
            return ""
        weakest = f"The weakest {few} conditions are" if few > 1 else "The weakest condition is"
        return (
            f"{weakest} worth {strong[-few]:.1e} of the strongest. If that is rounding of dimensions, "
            f"closure_tolerance = {self._enough(kept - few):g} makes the mobility {self.dof + few}."
        )

    def _enough(self, rank: int) -> float:
        """Return a closure_tolerance that leaves so many conditions over the whole range of motion."""
        dropped, kept = weakest_over_range(self._closure, self._state, rank)
        enough = 2 * max(dropped, self.shares[rank])
        decade = 10 ** np.ceil(np.log10(enough))
        if decade < kept / 2:
            return float(decade)
        digit = 10 ** np.floor(np.log10(enough))
        return float(np.ceil(enough / digit) * digit)

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
        if self._extension is not None:
            return self._short(self._extension, here)
        found = sorted(set(self.nearby))
        if self.infinitesimal and found == [self._local.dimension]:
            orders = sorted({motion.order for motion in self.motions if motion.order is not None})
            order = f" of order {_listed(map(str, orders))}" if orders else ""
            return (
                f"But of {here} at {self._where} {self.infinitesimal} "
                f"{'are' if self.infinitesimal > 1 else 'is'} infinitesimal{order}: the loops open along it."
            )
        said = " or ".join(map(str, found))
        meet = " Motions with different freedoms meet here." if found[1:] else ""
        remedy = "Draw it in" if self._where == "the drawing" else "Ask at"
        return (
            f"But {self._where} is a singular posture: it has {here}, the closed postures found near it have "
            f"{said}.{meet} {remedy} another posture."
        )

    def _short(self, extension: Extension, here: str) -> str:
        """What is known where no posture near by tells."""
        if self.finite is False:
            return (
                f"It is rigid, but shaky: at {self._where} conditions depend on one another, which leave "
                f"{here}, and no motion extends to {_ordinal(extension.order + 1)} order."
            )
        known = {
            1: "and no motion was found that extends to second order",
            2: "and none extends to third order, so that only a motion that starts in a cusp could be there"
            if extension.certain
            else "and no motion was found that extends beyond second order",
            3: "though a motion extends to third order",
        }[extension.order]
        return (
            f"Undecided: at {self._where} conditions depend on one another and leave {here}, but no closed "
            f"posture was found near it, {known}. It may be rigid all the same."
        )

    def _idling(self) -> str:
        """The idle freedoms, in sentences."""
        if not self.passive_freedoms:
            return ""
        several = len(self.passive_freedoms) > 1
        said = "; ".join(
            f"{one.summary()}, in {_listed(one.coordinates)}" for one in self.passive_freedoms[:_MANY]
        )
        more = f"; … {len(self.passive_freedoms) - _MANY} more" if len(self.passive_freedoms) > _MANY else ""
        return (
            f" {_count(len(self.passive_freedoms), 'idle freedom')}: {said}{more}. One coordinate of "
            f"{'each' if several else 'it'} belongs to every coordinate set."
        )

    def undriven_freedom(self, rows: np.ndarray) -> str:
        """What idle freedoms some named rows leave at rest, in a sentence; '' for none.

        Parameters
        ----------
        rows : (P, M)
            First order of the rows at the posture, scaled as `Closure.rows` has it.
        """
        scale = self._transfer.column_scale
        for one in self.passive_freedoms:
            motion = one.motion / scale
            if np.abs(rows @ (motion / np.abs(motion).max())).max(initial=0.0) < REST:
                return (
                    f"{one.summary()}: an idle freedom, of which every set needs a "
                    f"coordinate, such as {_listed(one.coordinates[:3])}."
                )
        return ""

    def summary(self) -> str:
        """The account as a paragraph.

        Examples
        --------
        >>> import kic
        >>> kic.load("puma560").mobility().summary()
        'mobility 6: 6 tree coordinates, no closure condition.'
        """
        sure = "at most " if self.finite is None else ""
        tree = f"mobility {sure}{self.dof}: {_count(self.coordinates, 'tree coordinate')}"
        if not self.conditions:
            return f"{tree}, no closure condition."
        total = _count(len(self._transfer.owners), "closure condition")
        account = (
            f"{tree}, {total} of {self._sources()}, {self._redundancy()}.{self._plane()}{self._idling()}"
        )
        return f"{account} {self.doubt()}".rstrip()

    def __repr__(self) -> str:
        return self.summary()


def _rank(G: np.ndarray, share: float) -> int:
    """Rank of scaled conditions: singular values above a share of the largest."""
    values = np.linalg.svd(G, compute_uv=False) if G.size else np.zeros(1)
    return int((values > share * values[0]).sum()) if values[0] > RANK_SHARE else 0


def _ordinal(n: int) -> str:
    return {2: "second", 3: "third"}.get(n, f"{n}th")


def _count(n: int, one: str) -> str:
    return f"{n} {one}{'s' * (n != 1)}"


def _listed(names: Iterable[str]) -> str:
    """Names one after the other, the many cut short."""
    every = list(names)
    more = f", … {len(every) - _MANY} more" if len(every) > _MANY else ""
    return ", ".join(every[:_MANY]) + more
