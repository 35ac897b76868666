"""Mobility: degrees of freedom, redundant closure conditions, and the certainty of both.

The rank of the closure conditions at a configuration (by default the reference configuration) gives the
degrees of freedom to first order. Where conditions depend on one another, the configuration may be singular,
like a four-bar folded flat. Closed configurations near it are then examined: only a rank that is constant
there counts. If there are none, the orders to which first-order motions extend bound the mobility.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kic.description.spins import HELD, find_spins
from kic.errors import counted, either
from kic.numerics.display import Hinting
from kic.numerics.registration import with_methods
from kic.transfer.closure import Closure
from kic.transfer.coordinate_transfer import CoordinateTransfer
from kic.transfer.mobility.finite_mobility import (
    NEIGHBOURS,
    Extension,
    FirstOrderMotion,
    LocalDimension,
    extension,
    local_dimension,
    tangent_space,
)
from kic.transfer.mobility.passive_freedoms import REST_RTOL, PassiveFreedom, find_passive_freedoms
from kic.transfer.mobility.rounding import motion_beyond, rounded_loops, tilt_sentence
from kic.transfer.rank import RANK_SHARE, count_independent, nearby_rtol, rank

if TYPE_CHECKING:
    from kic.mechanism import input_sets as _input_sets
    from kic.mechanism.configuration import Configuration
    from kic.transfer.compiled_model import CompiledModel

# share of the strongest below which conditions may be artefacts of rounded dimensions
WEAK_CONDITION_RTOL = 1e-2
# text for the reference of contributions if no condition is strong
SCALE = "an ordinary one"
# names listed in a sentence; the rest are counted
LISTED_MAX = 6


@with_methods
class Mobility(Hinting):
    """Mobility account of a mechanism, made by `Mechanism.mobility` and printed as a paragraph.

    Attributes
    ----------
    dof : int
        Number of degrees of freedom. At a singular configuration, the largest number found at closed
        configurations near it; 0 if all first-order motions are proved to be infinitesimal.
    first_order : int
        Degrees of freedom to first order: tree coordinates minus independent conditions.
    nearby : tuple of int
        Finite degrees of freedom at closed configurations nearby. They are sought only if conditions depend
        on one another and the mechanism moves.
    coordinates : int
        Coordinates of the spanning tree.
    cuts : tuple of str
        Joints at which the loops are cut; empty for an open chain.
    conditions : dict of str to int
        Closure conditions of each cut joint, coupling, fixed distance and closed contact. A copy.
    redundant : int
        Conditions that follow from the others.
    shares : (…) ndarray
        Contribution of each condition beyond the previous conditions, largest first, relative to the largest,
        or to the scale of the closure if all are smaller. Shares below `closure_tolerance` count as
        redundant.
    regular : bool or None
        True if nearby configurations have the same degrees of freedom as this one; None if none was found
        that decides it.
    finite : bool or None
        True if the degrees of freedom are finite motions: conditions are independent, or closed
        configurations were found along the motion. False if all first-order motions are proved to be
        infinitesimal. None if undecided; then see `extends`.
    extends : int or None
        Highest order to which a first-order motion was found to extend, at most 3 for several first-order
        degrees of freedom. None if closed configurations nearby decide, or nothing moves.
    motions : tuple of FirstOrderMotion
        Directions of the tangent space, each finite, obstructed at an order, or undecided. If all are finite,
        an orthonormal basis. Otherwise the tangents of finite curves found, an orthonormal basis of the rest,
        and, for several degrees of freedom, one generic combination of all.
    infinitesimal : int
        Number of independent first-order motions that are tangent to no finite motion found.
    passive_freedoms : tuple of PassiveFreedom
        Motions of some bodies that leave all others at rest, such as the spin of a rod between two spherical
        joints. They count in `dof`, and every set of independent coordinates must include one coordinate of
        each. Groups of bodies are tried in order of size, at most a few thousand.

    Examples
    --------
    >>> print(kic.load("four-bar").mobility())
    mobility 1: 3 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them redundant (3 of joint
    'D'). All motion is in one plane, normal (0, 0, 1); other conditions hold identically.
    """

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        independent_sets = _input_sets.independent_sets

    def __init__(
        self, model: CompiledModel, state: np.ndarray, configuration: Configuration | None = None
    ) -> None:
        self._model = model
        self._state = state
        self._configuration = configuration
        self._is_reference = configuration is None
        self._where = "the reference configuration" if self._is_reference else "this configuration"
        self.coordinates: int = model.tree.size
        self.cuts = tuple(joint.name for joint in model.tree.cuts)

    @property
    def conditions(self) -> dict[str, int]:
        """Closure conditions of each cut joint, coupling, fixed distance and closed contact, as a copy."""
        owners = self._transfer.owners
        return {name: owners.count(name) for name in dict.fromkeys(owners)}

    @cached_property
    def _closure(self) -> Closure:
        return self._model.closure(())

    @property
    def _transfer(self) -> CoordinateTransfer:
        return self._closure.transfer

    @cached_property
    def first_order(self) -> int:
        """Number of degrees of freedom to first order at the configuration."""
        return self.coordinates - rank(self._transfer, self._state)

    @cached_property
    def shares(self) -> np.ndarray:
        """Contribution of each condition beyond the previous ones, largest first; see `condition_shares`."""
        found = self._transfer.shares(self._closure.rows(self._state)[1][0])[0]
        found.flags.writeable = False
        return found

    @property
    def _independent(self) -> bool:
        """True if all conditions are independent or nothing moves, so that the rank is constant nearby."""
        return not self.first_order or self.coordinates - self.first_order == len(self._transfer.owners)

    @cached_property
    def _local(self) -> LocalDimension:
        """Finite degrees of freedom at the configuration, found by finite steps."""
        return local_dimension(self._closure, self._state, self.first_order)

    @cached_property
    def _neighbours(self) -> np.ndarray:
        """Closed states (n, S) near the configuration."""
        return self._local.states[:NEIGHBOURS] if self.first_order else self._state[:0]

    @property
    def motions(self) -> tuple[FirstOrderMotion, ...]:
        """Tuple of directions of the tangent space, each with a verdict."""
        if not self.first_order:
            return ()
        if self._independent:
            K = tangent_space(self._closure, self._state, self.first_order)
            return tuple(FirstOrderMotion(x * self._transfer.column_scale, "finite") for x in K.T)
        return self._local.motions

    @property
    def infinitesimal(self) -> int:
        """Number of independent first-order motions that are tangent to no finite motion found."""
        finite = sum(motion.verdict == "finite" for motion in self.motions)
        if self.first_order and not self._independent:
            # a set of dimension d has at least d independent tangents, found or not
            finite = max(finite, self._local.dimension or 0)
        return self.first_order - finite

    @cached_property
    def nearby(self) -> tuple[int, ...]:
        """Tuple of the finite degrees of freedom at closed configurations nearby."""
        if self._independent or not len(self._neighbours):
            return ()
        if self._local.dimension == self.first_order:
            return (self.first_order,) * len(self._neighbours)
        rtol = nearby_rtol(self._transfer.tolerance)
        found = []
        for state, G in zip(self._neighbours, self._closure.rows(self._neighbours)[1], strict=True):
            first_order = self.coordinates - _rank(G, rtol)
            found.append(local_dimension(self._closure, state[None], first_order).dimension)
        # the dimension at the configuration bounds those in its neighbourhood
        largest = self._local.dimension
        return tuple(min(n, largest) for n in found if n is not None) if largest is not None else ()

    @property
    def regular(self) -> bool | None:
        """True if nearby configurations have the same degrees of freedom; None if undecided."""
        if self._independent:
            return True
        return {self.first_order} == set(self.nearby) if self.nearby else None

    @cached_property
    def _extension(self) -> Extension | None:
        """Order to which first-order motions extend, if no nearby configuration decides the mobility."""
        if self.regular is not None:
            return None
        if self.first_order == 1 and self._local.motions[0].order:
            return Extension(self._local.motions[0].order - 1, True)
        return extension(self._closure, self._state, self.first_order)

    @property
    def extends(self) -> int | None:
        """Highest order to which a first-order motion was found to extend; None if not examined."""
        return None if self._extension is None else self._extension.order

    @property
    def finite(self) -> bool | None:
        """True if the degrees of freedom are finite motions; None if undecided."""
        if self._extension is None:
            return True
        # several first-order motions do not exclude a motion that starts in a cusp
        is_final = self._extension.order == 1 or self._local.dimension == 0
        return False if is_final and self._extension.is_certain else None

    @property
    def dof(self) -> int:
        """Number of degrees of freedom."""
        return 0 if self.finite is False else max(self.nearby, default=self.first_order)

    @cached_property
    def passive_freedoms(self) -> tuple[PassiveFreedom, ...]:
        """Tuple of motions of some bodies that leave all others at rest."""
        if not self.first_order:
            return ()
        others, singular = self._neighbours, not self.regular and bool(self.nearby)
        if singular:
            others = others[np.flatnonzero(np.array(self.nearby) == max(self.nearby))]
        return find_passive_freedoms(self._closure, np.concatenate([self._state, others]), singular)

    @property
    def redundant(self) -> int:
        """Number of conditions that follow from the others."""
        rank = self.coordinates - (self.dof if self.finite else self.first_order)
        return len(self._transfer.owners) - rank

    @cached_property
    def _redundant_of_parts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Pair of redundant conditions of each part: alone, and given the conditions of all other parts."""
        states = self._state
        if not self.regular and self.nearby:
            states = self._neighbours[[int(np.argmax(self.nearby))]]
        G, owners = self._closure.rows(states)[1][0], np.array(self._transfer.owners)
        rtol = max(RANK_SHARE, self._transfer.tolerance)
        total = _rank(G, rtol)
        alone, given_others = {}, {}
        for name, count in self.conditions.items():
            own = owners == name
            alone[name] = count - _rank(G[own], rtol)
            given_others[name] = count - (total - _rank(G[~own], rtol))
        return alone, given_others

    def _sources(self) -> str:
        """Return text on the parts that impose closure conditions."""
        description = self._transfer.tree.description
        phrases = []
        for kind, verb, names in (
            ("loop", "cut at ", [joint.name for joint in self._transfer.tree.cuts]),
            ("coupling", "", [c.name for c in description.couplings]),
            ("fixed distance", "", list(description._fixed_distances)),
            ("fixed angle", "", list(description._fixed_angles)),
            ("contact", "", [contact.name for contact in description._closed_contacts]),
        ):
            if names:
                phrases.append(f"{counted(len(names), kind)} ({verb}{_listed(names)})")
        return either(phrases, "and")

    def _redundancy(self) -> str:
        """Return text on the number of redundant conditions and the parts that impose them."""
        if not self.redundant:
            return "none of them redundant"
        alone, given_others = self._redundant_of_parts
        describe = self._transfer.tree.description._describe
        own = [f"{n} of {describe(name)}" for name, n in alone.items() if n]
        rest = self.redundant - sum(alone.values())
        shared = [describe(name) for name, n in given_others.items() if n > alone[name]]
        if rest and shared:
            own.append(f"{rest} among those of {_listed(shared)}" if shared[1:] else f"{rest} of {shared[0]}")
        return f"{self.redundant} of them redundant ({_listed(own)})"

    def _plane(self) -> str:
        """Return a sentence on conditions that a planar mechanism satisfies by itself; '' if none."""
        normal = self._transfer.tree.planar_normal
        if normal is None or not self.dof or not any(self._redundant_of_parts[0].values()):
            return ""
        entries = ", ".join(f"{x:.4g}" for x in normal + 0.0)
        return f" All motion is in one plane, normal ({entries}); other conditions hold identically."

    @cached_property
    def _rounding(self) -> str:
        """Remark on conditions whose redundancy depends on rounded dimensions; '' if none."""
        t = self._transfer
        kept = count_independent(self.shares, t.tolerance)
        strong, weak = self.shares[:kept], self.shares[kept:]
        if t.tolerance and (weak > RANK_SHARE).any():
            number = int((weak > RANK_SHARE).sum())
            # exact conditions, not those of rounded dimensions
            below = (
                " The mobility may be too large: this condition counts if closure_tolerance is below "
                f"{weak[0]:.1e}."
                if weak[0] > WEAK_CONDITION_RTOL
                else ""
            )
            kept_ones = f"the strongest kept, the weakest kept {strong[-1]:.1e}" if kept else SCALE
            return (
                f"Of the redundant ones {number} {'are' if number > 1 else 'is'} redundant only within "
                f"closure_tolerance = {t.tolerance:g}: the strongest dropped contributes {weak[0]:.1e} of "
                f"{kept_ones}.{below}"
            )
        number = int((strong < WEAK_CONDITION_RTOL).sum())
        tilts = rounded_loops(self._closure, self._state)[2]
        turned = "".join(f" {tilt_sentence(axes)}" for axes in tilts)
        if not number:
            return turned.lstrip()
        weakest = f"{number} conditions contribute" if number > 1 else "condition contributes"
        whole = "the strongest" if kept > number else SCALE
        tolerance = self._sufficient_tolerance(kept - number)
        return (
            f"The weakest {weakest} {strong[-number]:.1e} of {whole}.{turned} If that is rounding of "
            f"dimensions, closure_tolerance = {tolerance:g} makes the mobility {self.dof + number}."
        )

    def _sufficient_tolerance(self, rank: int) -> float:
        """Return a closure_tolerance that keeps `rank` conditions over the whole range of motion."""
        motion = motion_beyond(self._closure, self._state, rank)
        smallest = 2 * max(motion.share, self.shares[rank])
        decade = 10 ** np.ceil(np.log10(smallest))
        if decade < motion.kept / 2:
            return float(decade)
        digit = 10 ** np.floor(np.log10(smallest))
        return float(np.ceil(smallest / digit) * digit)

    def caveat(self) -> str:
        """Return the reason why the mobility is uncertain, singularity or rounded dimensions; else ''.

        Examples
        --------
        >>> kic.load("four-bar").mobility().caveat()
        ''
        """
        if self.regular:
            return self._rounding
        here = f"{_dof(self.first_order)} to first order"
        if self._extension is not None:
            return self._infinitesimal_remark(self._extension, here)
        found = sorted(set(self.nearby))
        if self.infinitesimal and found == [self._local.dimension]:
            orders = sorted({motion.order for motion in self.motions if motion.order is not None})
            order = f" of order {_listed(map(str, orders))}" if orders else ""
            return (
                f"But at {self._where}, {self.infinitesimal} of {here} "
                f"{'are' if self.infinitesimal > 1 else 'is'} infinitesimal{order}: motion along "
                f"{'them' if self.infinitesimal > 1 else 'it'} opens the loops."
            )
        numbers = " or ".join(map(str, found))
        meet = " Motions with different degrees of freedom meet here." if found[1:] else ""
        remedy = "Describe the mechanism in" if self._is_reference else "Choose"
        return (
            f"But {self._where} is singular: it has {here}, the closed configurations found near it have "
            f"{numbers}.{meet} {remedy} another configuration."
        )

    def _infinitesimal_remark(self, extension: Extension, here: str) -> str:
        """Describe the result of the extension analysis."""
        if self.finite is False:
            order = {1: "second", 2: "third"}.get(extension.order, f"{extension.order + 1}th")
            return (
                f"It is rigid, but infinitesimally mobile: at {self._where} the closure conditions are "
                f"dependent and leave {here}, and no motion extends to {order} order."
            )
        result = {
            1: "and no motion was found that extends to second order",
            2: "and none extends to third order; only a motion that starts at a cusp is possible"
            if extension.is_certain
            else "and no motion was found that extends beyond second order",
            3: "although a motion extends to third order",
        }[extension.order]
        return (
            f"Undecided: at {self._where} conditions are dependent and leave {here}, but no closed "
            f"configuration was found near it, {result}. The mechanism may be rigid."
        )

    def _passive_remark(self) -> str:
        """Return the passive degrees of freedom, and spins that are held, in sentences."""
        remarks = self._transfer.tree.description.remarks
        held = "".join(f" S{text[text.index(HELD) + 1 :]}" for text in remarks if HELD in text)
        number = len(self.passive_freedoms)
        if not number:
            return held
        phrases = "; ".join(
            f"{one.summary()}, in {_listed(one.coordinates)}" for one in self.passive_freedoms[:LISTED_MAX]
        )
        more = f"; … {number - LISTED_MAX} more" if number > LISTED_MAX else ""
        return (
            f" {number} passive {'degrees' if number > 1 else 'degree'} of freedom: {phrases}{more}. Every "
            f"set of independent coordinates must include one coordinate of {'each' if number > 1 else 'it'}."
            f"{held}"
        )

    def undriven_freedom(self, rows: np.ndarray) -> str:
        """Return a sentence on the first passive degree of freedom that leaves rows at rest; '' if none.

        Parameters
        ----------
        rows : (P, M)
            First-order coefficients at the configuration, scaled like those of `Closure.rows`.
        """
        scale = self._transfer.column_scale
        for one in self.passive_freedoms:
            motion = one.motion / scale
            if np.abs(rows @ (motion / np.abs(motion).max())).max(initial=0.0) < REST_RTOL:
                return (
                    f"{one.summary()}: a passive degree of freedom, of which every set needs a "
                    f"coordinate, such as {_listed(one.coordinates[:3])}.{self._remedy(one)}"
                )
        return ""

    def _remedy(self, one: PassiveFreedom) -> str:
        """Return a sentence on holding a passive degree of freedom; '' if it must be driven."""
        spins = find_spins(self._transfer.tree.description)
        held = any(spin.held and {*spin.bodies} == {*one.bodies} for spin in spins)
        return " `hold_spins()` returns the mechanism without it." if held else ""

    def summary(self) -> str:
        """Return the account as a paragraph.

        Examples
        --------
        >>> kic.load("puma560").mobility().summary()
        'mobility 6: 6 tree coordinates, no closure condition.'
        """
        bound = "at most " if self.finite is None else ""
        tree = f"mobility {bound}{self.dof}: {counted(self.coordinates, 'tree coordinate')}"
        if not self.conditions:
            return f"{tree}, no closure condition."
        total = counted(len(self._transfer.owners), "closure condition")
        account = f"{tree}, {total} of {self._sources()}, {self._redundancy()}."
        remarks = f"{self._plane()}{self._finite_remark()}{self._passive_remark()}"
        return f"{account}{remarks} {self.caveat()}".rstrip()

    def _finite_remark(self) -> str:
        """Return the remark on a spatial mechanism that moves with redundant conditions; '' if none."""
        if not (self.dof and self.redundant and self.finite) or self._plane() or self.caveat():
            return ""
        return " The motion is finite: the redundant conditions hold all along it."

    def __repr__(self) -> str:
        return self.summary()


def _rank(G: np.ndarray, rtol: float) -> int:
    """Return the rank of scaled conditions: singular values above `rtol` times the largest, at least 1."""
    values = np.linalg.svd(G, compute_uv=False) if G.size else np.zeros(1)
    return int((values > rtol * max(values[0], 1.0)).sum())


def _dof(n: int) -> str:
    return f"{n} {'degree' if n == 1 else 'degrees'} of freedom"


def _listed(names: Iterable[str]) -> str:
    """Return names separated by commas, at most `LISTED_MAX` of them."""
    names = list(names)
    more = f", … {len(names) - LISTED_MAX} more" if len(names) > LISTED_MAX else ""
    return ", ".join(names[:LISTED_MAX]) + more
