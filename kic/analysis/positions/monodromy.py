"""Complex solutions of a position problem: monodromy, and parameter homotopies to further inputs.

The closure equations hold for complex coordinates, too. At random complex inputs u* all solutions are
regular. A loop of the inputs that returns to u* permutes them, and loops around branch points lead from one
solution to the others (Duff et al., "Solving polynomial systems via homotopy continuation and monodromy", IMA
Journal of Numerical Analysis 39, 2019, pp. 1421–1446). Paths from u* to wanted inputs lead to all isolated
solutions there; singular ones are limits of paths.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from kic.analysis.positions.certificates import Certificates
from kic.analysis.positions.complex_paths import REAL_ATOL, SAME_ATOL, STARTS, Tracker
from kic.analysis.positions.endgame import Endgame
from kic.analysis.positions.legs import COMPLEX_MODES_MAX, MODES_MAX, numbered
from kic.analysis.positions.proven_numbers import proven_number
from kic.numerics.progress import Bar
from kic.transfer.closure import Closure

# imaginary parts of real singular solutions (rad, lengths)
SINGULAR_REAL_ATOL = 1e-4
# paths to given values that are tried: the straight one, and detours
ATTEMPTS = 8
# random states from which Newton's method solves the equations, when loops find nothing new
SOLVED_STARTS = 256
# their condition, which is larger where Newton's method ends near multiple solutions
SOLVED_CONDITION_MAX = 3e4
# solutions for whose loops more corners are worth their time
FEW_STATES_MAX = 18
# trace test: points on a line, and states at most; degree; errors of the trace, and of that of all but one
TRACE_POINTS, TRACE_STATES_MAX, TRACE_DEGREE_MAX = 72, 3_000, 12
TRACE_RTOL, TRACE_CONTROL_RTOL = 1e-9, 1e-6
# loops without a new solution: at least, at most; all loops; the estimated chance below which they end
LOOPS_MIN, LOOPS_MAX, LOOPS_ALL_MAX, CHANCE_MAX = 6, 40, 200, 1e-4
# a loop of so many solutions may lose this share of the paths and nevertheless count: others never end
LOSING_STATES_MIN, LOST_SHARE_MAX = 200, 0.1
# imaginary part beyond which paths of loops are lost by rounding, whatever the tolerance
LOST_IMAGINARY_MAX = 7.0
# factor of the size of loops after one that loses paths and finds nothing new; smallest size
REACH_FACTOR, REACH_MIN = 0.7, 0.2
# loops in a row that lose paths and find nothing new, after which another base is chosen
STUCK_LOOPS_MAX = 8

# combinations of assembly modes of legs, up to which certificates of complex ones are tried
CERTIFIED_MODES_MAX = 1_000

# solutions are kept with the mechanism; one thread at a time adds to them, or follows their paths
_COLLECTING = threading.Lock()


@dataclass
class Ends:
    """Ends of the paths from generic inputs to the wanted inputs of B members.

    Attributes
    ----------
    states, owner : (n, S), (n,)
        Real states near which paths end, and their members.
    complex, infinite, far, lost : (B,) int
        Numbers of paths that end in finite solutions, at infinity, or too far to be real, or that are lost.
    off : float
        Smallest, over lost paths, of the largest imaginary part of the last state (rad, lengths).
    moving : (n,) bool
        True for states near parts of positive dimension. They are real parts of complex states.
    on_parts : (B,) int
        Number of paths that end on parts of positive dimension.
    certified, certified_real, decided : (B,)
        Numbers of distinct certified ends and of real ones; True if the others are certainly not real.
    radius : (n,)
        Radii of balls about the states that certainly have one solution, NaN without a certificate.
    followed : (B,) int
        Number of paths that are certified from their start to their end.
    """

    states: np.ndarray
    owner: np.ndarray
    complex: np.ndarray
    infinite: np.ndarray
    far: np.ndarray
    lost: np.ndarray
    off: float
    moving: np.ndarray
    on_parts: np.ndarray
    certified: np.ndarray
    certified_real: np.ndarray
    decided: np.ndarray
    radius: np.ndarray
    followed: np.ndarray


class GenericSolutions:
    """Solutions of a closure's equations that are found at random complex inputs.

    Attributes
    ----------
    states : (N, S)
        Distinct solutions at the parameters `base`.
    loops, clean, polygons : int
        Number of loops; of the last loops, without a lost path, that found nothing new; of polygons among
        these. With many solutions, a few paths may be lost.
    lost_share : float
        Largest share of the paths that one of these loops lost.
    new, stuck : int
        Number of solutions that the last loop found; number of last loops with lost paths and no new one.
    moved, tracked : int
        Number of assembly modes of legs that polygons moved, and of all, if few or no paths were lost.
        Mirrored loops do not count, because they also exchange conjugate solutions.
    hits, starts : int
        Number of random complex starts that led to known solutions, and of all starts.
    """

    def __init__(self, closure: Closure, reference: np.ndarray, rng: np.random.Generator) -> None:
        self.rng = rng
        self.tracker = Tracker(closure, reference[None], rng)
        self.endgame, self.certificates = Endgame(self.tracker), Certificates(self.tracker)
        P = self.tracker.parameters
        t = closure.transfer
        values = closure.rows(reference[None])[0] * t.scale
        self.like = P.of_values(values[:, : t.size])[0]
        self.base = P.random(self.like, rng, 1, spread=0.2)
        self.reference = reference
        self.states = np.zeros((0, len(reference)), complex)
        self.loops = self.clean = self.polygons = self.moved = self.tracked = self.lost = 0
        self.hits = self.starts = self.new = self.stuck = self.unreached = 0
        self.lost_share = 0.0
        self.reach = 1.0  # size of loops as a share of that of random parameters
        self.proven = proven_number(closure)
        self.trace_degree: int | None = None

    def add(self, states: np.ndarray) -> np.ndarray:
        """Add solutions at the base; return a mask (B,) of those with a new place or mode of a leg."""
        tracker, legs, before = self.tracker, self.tracker.legs, len(self.states)
        if not before + len(states):
            return np.zeros(0, dtype=bool)
        given = np.concatenate([self.states, tracker.canonical(states)])
        rows, new = legs.arrange(*tracker.by_legs(given), SAME_ATOL)
        self.states = given[rows[:, legs.of_entry], np.arange(given.shape[1])]
        mixed = self.states[(rows != rows[:, :1]).any(axis=1)]
        if (tracker.residual(mixed, np.repeat(self.base, len(mixed), axis=0)) > SAME_ATOL).any():
            legs.join()  # the parts depend on each other
            self.states = given[:before]
            return self.add(states)
        if new[before:].any():
            self.clean, self.polygons, self.lost_share, self.trace_degree = 0, 0, 0.0, None
        return new[before:]

    def to_base(self, states: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the solutions at the base to which states (B, S) at parameters (B, n) continue."""
        ends, share = self.tracker.track(states, p, np.repeat(self.base, len(p), axis=0))
        return ends[share == 1]

    def start(self, count: int) -> None:
        """Add the solutions to which random complex closed states continue."""
        tracker = self.tracker
        found = tracker.random_closed(self.rng, count, self.reference)
        if len(found) and not self.starts:
            tracker.find_flips(found)
        t = tracker.closure.transfer
        values = tracker.closure.rows(found)[0] * t.scale
        ends = self.to_base(found, tracker.parameters.of_values(values[:, : t.size]))
        new = self.add(ends)
        self.starts, self.hits = self.starts + len(ends), self.hits + int((~new).sum())

    def solve(self, count: int) -> None:
        """Solve the equations at the reference values by Newton's method; continue the solutions to the base.

        Loops and random starts rarely reach solutions that are near infinity at most values, as for platforms
        whose base and body are nearly similar.
        """
        tracker, p = self.tracker, self.like[None]
        found = tracker.random_closed(self.rng, count, self.reference, p)
        found = tracker.distinct(found[tracker.is_regular(found, SOLVED_CONDITION_MAX)])
        for way in ([], [self._detour(), self._detour()]):
            ends, good = tracker.around([p, *way, self.base], found, 0.3 if way else 1.0)
            self.add(ends[good])
            found = found[~good]
        self.unreached = len(found)

    def loop(self) -> None:
        """Track all known solutions along a random closed path, and add the new ones at its end.

        Every second path leads to real parameters, where solutions are in conjugate pairs, and back with the
        conjugate solutions. The other paths are polygons. They become smaller after lost paths, because large
        ones come close to infinity. Random starts add solutions that loops rarely reach, such as those behind
        a gap between two close branch points.
        """
        parameters = self.tracker.parameters
        corners = 2 if len(self.states) > FEW_STATES_MAX else 4
        away = parameters.random(self.like, self.rng, corners) - self.base
        p = [self.base, *(self.base + self.reach * away)[:, None], self.base]
        if self.loops % 2:
            p = [self.base, parameters.real(p[1]), self.base]
        ends, good = self.tracker.around(p, self.states, 1.0)
        for tightness in (0.3, 0.1):
            again = ~good & (self.tracker.imaginary(ends) < LOST_IMAGINARY_MAX)
            again |= self.tracker.meeting(ends, good).any(axis=1)
            if not again.any():
                break
            ends[again], good[again] = self.tracker.around(p, self.states[again], tightness)
        good &= ~self.tracker.meeting(ends, good).any(axis=1)
        self.loops += 1
        mirrored, lost = len(p) == 3, float(1 - good.mean())
        is_clean = not lost or (len(good) >= LOSING_STATES_MIN and lost < LOST_SHARE_MAX)
        if is_clean and not mirrored:
            self._count_moves(ends, good)
        self.lost += int((~good).sum())
        self.new = int(self.add(ends[good]).sum())
        self.stuck = 0 if self.new or is_clean else self.stuck + 1
        if not self.new and not mirrored:
            reach = self.reach / REACH_FACTOR if is_clean else self.reach * REACH_FACTOR
            self.reach = float(np.clip(reach, REACH_MIN, 1.0))
        if not self.new and is_clean:
            self.clean += 1
            self.polygons += not mirrored
            self.lost_share = max(self.lost_share, lost)
        if self.starts or self.loops <= LOOPS_MIN:  # some mechanisms have none that lead anywhere
            self.start(STARTS // 2)
        if self.stuck >= STUCK_LOOPS_MAX:
            self.move_base()

    def _count_moves(self, ends: np.ndarray, good: np.ndarray) -> None:
        """Count the assembly modes of legs that a loop moves, by the ends of its paths."""
        (places, legs), (before, legs_before) = map(self.tracker.by_legs, (ends[good], self.states[good]))
        own, apart = self.tracker.legs.own, np.abs(places - before).max(axis=1, initial=0.0)
        for k, a, b in zip(own[good].T, legs, legs_before, strict=True):
            moved = np.maximum(np.abs(a - b).max(axis=1, initial=0.0), apart) > SAME_ATOL
            self.moved += int(moved[k].sum())
        self.tracked += int(own.sum())

    def move_base(self) -> None:
        """Continue the solutions to another base, because loops lose paths from solutions near infinity."""
        base, self.stuck = self._detour(), 0
        states, good = self._to(base, 0.3)
        if good.any():
            self.base, self.states = base, np.zeros((0, states.shape[1]), complex)
            self.add(states[good])

    def _to(self, p: np.ndarray, tightness: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the known solutions at other parameters (1, n), and a mask of those that meet no other."""
        states, good = self.tracker.around([self.base, p], self.states, tightness)
        return states, good & ~self.tracker.meeting(states, good).any(axis=1)

    def _trace_test(self) -> int:
        """Return the degree at which the trace on a random line is rational, -1 for none, -2 if not tried.

        The trace is the sum of a function over all solutions. It is a rational function on the line if and
        only if the solutions are closed under monodromy there. A rational function is fitted to half of the
        points, and compared with the others. The result counts only if the trace without the last solution
        deviates.
        """
        tracker, points = self.tracker, TRACE_POINTS
        sums = len(self.states) * self.times * max(1, len(tracker.legs.several))
        if len(self.states) < 2 or sums * points > TRACE_STATES_MAX:
            return -2  # one solution has no control
        way = tracker.parameters.random(self.like, self.rng, 1, spread=0.2) - self.base
        # uniform on the sphere of complex numbers and infinity, so that the fit sees the whole line
        share = self.rng.uniform(0.02, 0.98, points)
        t = np.sqrt(share / (1 - share)) * np.exp(2j * np.pi * self.rng.uniform(size=points))
        end = np.repeat(self.base + t[:, None] * way, len(self.states), axis=0)
        start = np.repeat(self.base, len(end), axis=0)
        ends, share = tracker.track(np.tile(self.states, (points, 1)), start, end)
        good = (share.reshape(points, -1) == 1).all(axis=1)
        if good.sum() < 0.8 * points:
            return -1
        terms = tracker.sampled(tracker.all_flips(ends), self.rng)
        terms = terms.reshape(-1, points, *self.states.shape).sum(axis=0)
        terms, t = (terms * tracker.legs.own[:, tracker.legs.of_entry]).sum(axis=2)[good], t[good]
        for degree in range(TRACE_DEGREE_MAX + 1):
            if _rational_error(t, terms.sum(axis=1), degree) < TRACE_RTOL:
                control = _rational_error(t, terms[:, :-1].sum(axis=1), degree)
                return degree if control > TRACE_CONTROL_RTOL else -1
        return -1

    @property
    def number(self) -> int:
        """Number of solutions."""
        return int(self.tracker.legs.modes.astype(object).prod(axis=1).sum()) * self.times

    @property
    def times(self) -> int:
        """Number of combinations of half turns of universal joints."""
        return 2 ** len(self.tracker.flips)

    @property
    def chance(self) -> float:
        """Estimated chance that one solution is missing, if polygons move it as often as the others."""
        if self.is_proven:
            return 0.0
        return float((1 - (1 + self.moved) / (2 + self.tracked)) ** self.polygons)

    @property
    def share(self) -> float:
        """Estimated progress of the loops, from 0 to 1."""
        likely = float(np.log(max(self.chance, 1e-300)) / np.log(CHANCE_MAX))
        return min(1.0, max(self.clean / LOOPS_MAX, min(self.clean / LOOPS_MIN, likely)))

    @property
    def is_done(self) -> bool:
        """True if nothing new is expected: a proven number is reached, or loops found nothing new.

        After a failed trace test, as for large degrees, or if the numbers of assembly modes of a leg differ,
        only `LOOPS_MAX` loops suffice.
        """
        if self.is_proven or self.clean >= LOOPS_MAX:
            return True
        modes = self.tracker.legs.modes
        if (modes != modes[:1]).any() or self.trace_degree == -1:
            return False
        return self.clean >= LOOPS_MIN and self.chance < CHANCE_MAX

    @property
    def is_proven(self) -> bool:
        """True if the number of solutions equals the proven bound."""
        return self.proven is not None and self.number == self.proven[0]

    def collect(self, seeds: np.ndarray, deadline: float, bar: Bar) -> str:
        """Run loops until nothing new is expected; return '' or the reason why they ended early.

        `seeds` (n, S) are real closed configurations. A later call continues, also after an interruption.
        """
        with _COLLECTING:
            return self._collect(seeds, deadline, bar)

    def _collect(self, seeds: np.ndarray, deadline: float, bar: Bar) -> str:
        """Run the loops of `collect`."""
        tracker = self.tracker
        tracker.deadline = deadline
        try:
            if not self.starts:
                self.start(STARTS // 2)
                regular = tracker.is_regular(self.reference[None])
                seeds = np.concatenate([self.reference[None][regular], seeds])
            if len(seeds):
                t = tracker.closure.transfer
                values = tracker.closure.rows(seeds)[0] * t.scale
                p = tracker.parameters.of_values(values[:, : t.size])
                self.add(self.to_base(seeds.astype(complex), p))
            for _ in range(LOOPS_ALL_MAX):
                if self.is_done and self.trace_degree is None and not self.is_proven:
                    self.solve(SOLVED_STARTS)
                if self.is_done and self.trace_degree is None and not self.is_proven:
                    self.trace_degree = self._trace_test()
                    if self.trace_degree == -1:
                        self.trace_degree = self._trace_test()
                if not len(self.states) or self.is_done:
                    break
                bar.show(self.share)
                self.loop()
            else:
                return f"{LOOPS_ALL_MAX} loops did not suffice: the last found new solutions or lost paths"
        except TimeoutError:
            last = (
                f" after {self.loops} loops, the last of which found {self.new} new solutions"
                if self.loops
                else ""
            )
            return "the time limit ended the search" + last
        finally:
            tracker.deadline = np.inf
        return "" if len(self.states) else "no start led to a regular complex solution"

    def at(self, values: np.ndarray, deadline: float, bar: Bar, certify: bool = False) -> Ends:
        """Return the ends of the paths from all solutions at the base to values (B, P) of the chosen rows.

        Paths of an attempt that the deadline ends are lost. If `certify` is True, certified paths replace
        lost ones, and are counted.
        """
        with _COLLECTING:
            return self._at(values, deadline, bar, certify)

    def _at(self, values: np.ndarray, deadline: float, bar: Bar, certify: bool) -> Ends:
        """Follow the paths of `at`."""
        tracker, count, number = self.tracker, len(self.states), len(values)
        tracker.legs.check_number(self.number, COMPLEX_MODES_MAX, "complex ")
        target = tracker.parameters.of_values(values)
        ends = np.zeros((number, count, self.states.shape[1]), complex)
        share = np.zeros((number, count))
        members = np.arange(number if count else 0)
        for attempt in range(ATTEMPTS):
            if not members.size:
                break
            tracker.deadline, tracker.bar = deadline, bar
            try:
                start, states, good = self.base, self.states, np.ones(count, dtype=bool)
                if attempt:
                    start = self._detour()
                    states, good = self._to(start, 1.0)
                found = self.endgame.ends(states, good, start, target[members])
            except TimeoutError:
                break
            finally:
                tracker.deadline, tracker.bar = np.inf, None
            better = (found[1] == 0).sum(axis=1) < (share[members] == 0).sum(axis=1)
            for n, b in enumerate(members):
                both = (ends[b].copy(), share[b].copy()), (found[0][n], found[1][n])
                own, other = both[::-1] if better[n] else both
                ends[b], share[b] = self.endgame.filled(*own, *other)
            members = np.flatnonzero((share == 0).any(axis=1))
        followed, surplus = np.zeros((2, number), dtype=np.intp)
        if certify:
            followed, surplus = self._follow(ends, share, target, deadline, bar)
        real, moving = self._real(ends, share == 1, target)
        legs, times = tracker.legs, self.times
        finite = np.repeat((share == 1)[..., None], legs.count, axis=2)
        infinite, far = self._unbounded(ends, share)
        masks = finite, ~(infinite | far), ~infinite, np.ones_like(finite), finite & ~moving, real
        counts = [legs.number(mask) for mask in masks]
        legs.check_number(times * counts[-1].max(initial=0.0), MODES_MAX, "real ")
        few = counts[0].max(initial=0.0) <= CERTIFIED_MODES_MAX
        owner, k = legs.combinations(finite if few else real)
        states, member = ends[owner[:, None], k[:, legs.of_entry], np.arange(ends.shape[2])], owner[:, None]
        *certified, radii = self.certificates.counts(states, owner, target)
        kept = real[member, k, np.arange(legs.count)].all(axis=1)
        moving = moving[member, k, np.arange(legs.count)].any(axis=1)[kept]
        states, owner = np.ascontiguousarray(states[kept].real), owner[kept]
        ended, near, bounded, every, still = ((times * x).astype(np.intp) for x in counts[:-1])
        return Ends(
            tracker.all_flips(tracker.unwound(states, tracker.closure.goal(values)[owner])),
            np.tile(owner, times),
            ended,
            every - bounded,
            bounded - near,
            near - ended + times * surplus,
            float(tracker.imaginary(ends[share == 0]).min(initial=np.inf)),
            np.tile(moving, times),
            ended - still,
            times * certified[0],
            times * certified[1],
            certified[2],
            np.tile(radii[kept], times),
            times * followed,
        )

    def certified(self, states: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return a mask (n,) of real states near which a test proves one solution for values (n, P)."""
        return np.isfinite(self.certificates.balls(states, self.tracker.parameters.of_values(values)))

    def _follow(
        self, ends: np.ndarray, code: np.ndarray, target: np.ndarray, deadline: float, bar: Bar
    ) -> np.ndarray:
        """Follow certified paths, replace lost ends, and return counts (2, B) of paths and surplus ends."""
        from scipy.spatial import cKDTree

        tracker, legs, counts = self.tracker, self.tracker.legs, np.zeros((2, len(target)), dtype=np.intp)

        for m in range(len(target)):
            tracker.deadline = deadline
            try:
                curves, share = self.certificates.follow(self.states, self.base, target[[m]], bar)
            finally:
                tracker.deadline = np.inf
            k = np.flatnonzero(share == 1)
            if legs.several.size:
                ends[m], code[m] = self.endgame.filled(
                    ends[m], code[m], curves, np.where(share == 1, 1.0, 0.0)
                )
            known, new = ends[m][code[m] == 1], k
            if len(known) and k.size:
                (at, _), (there, _) = map(tracker.by_legs, (known, curves[k]))
                new = k[cKDTree(at).query(there)[0] > SAME_ATOL]
            free = np.concatenate([np.flatnonzero(code[m] == x) for x in (0, -1)])[: len(new)]
            if not legs.several.size:
                ends[m, free], code[m, free] = curves[new[: len(free)]], 1.0
                new = new[len(free) :]
            counts[:, m] = len(k), len(new)
        return counts

    def _real(self, ends: np.ndarray, finite: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return masks (B, N, L) of legs of finite ends (B, N, S) that are real or movable, and movable.

        Ends on parts of positive dimension are moved along them, if they are too far to be recognized.

        Singular ends are less accurate: they are real if their real parts satisfy the equations. Rounding may
        make one of two conjugate ends regular, or replace one by their mean. Both are treated alike, so that
        a double real solution counts as two.
        """
        tracker, legs = self.tracker, self.tracker.legs
        states, owner = ends[finite], np.nonzero(finite)[0]
        singular = ~tracker.is_regular(states)
        states[singular] = tracker.nearer(states[singular], p[owner[singular]])
        ends[finite], off = states, tracker.imaginary_legs(states)
        real, moving = off < REAL_ATOL, np.zeros(off.shape, dtype=bool)
        moving[singular] = tracker.moves(states[singular], p[owner[singular]])
        almost, double = ~real & (off < SINGULAR_REAL_ATOL), np.zeros(off.shape, dtype=bool)
        for j in np.flatnonzero(almost.any(axis=0) & singular.any()):
            k = np.flatnonzero(off[:, j] < SINGULAR_REAL_ATOL)
            place, points = tracker.by_legs(states[k].real.astype(complex))
            pair = numbered(np.column_stack([points[j], place, owner[k]]), SINGULAR_REAL_ATOL)
            double[k, j] = almost[k, j] & (np.bincount(pair, singular[k]) > 0)[pair]
            real[k, j] |= (np.bincount(pair, singular[k] & real[k, j]) > 0)[pair]
        near = np.flatnonzero(double.any(axis=1))
        trial = np.where(double[near][:, legs.of_entry], states[near].real, states[near])
        real[near] |= double[near] & tracker.solves(trial, p[owner[near]])[:, None]
        found = np.zeros((2, *finite.shape, legs.count), dtype=bool)
        found[0, finite], found[1, finite] = real | moving, moving
        return found[0], found[1]

    def _unbounded(self, ends: np.ndarray, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return masks (B, N, L) of legs at infinity, and of legs at infinity or far, for ends and codes.

        If a path does not stay finite, the other legs of its state are unknown at its end. If no leg is
        large, all legs are far or at infinity if all paths of the place are.
        """
        tracker, legs = self.tracker, self.tracker.legs
        found = np.zeros((2, *code.shape, legs.count), dtype=bool)
        b, k = np.nonzero((code < 0) | (code > 1))
        if len(b):
            large = tracker.far_legs(ends[b, k])
            some = large.any(axis=1)
            for mask, is_so in zip(found, (code < 0, (code < 0) | (code > 1)), strict=True):
                whole = np.logical_and.reduceat(is_so, legs.starts, axis=1)[b, legs.place[k]]
                mask[b, k] = (large & is_so[b, k, None]) | (~some & whole)[:, None]
        return found[0], found[1]

    def _detour(self) -> np.ndarray:
        """Return other random parameters (1, n)."""
        return self.tracker.parameters.random(self.like, self.rng, 1, spread=0.2)

    def statement(self, reason: str) -> tuple[str, str]:
        """Return the kind of evidence of completeness, and a sentence; `reason` for doubt may be ''."""
        count, flips = self.number, len(self.tracker.flips)
        found = f"{count} complex solution{'' if count == 1 else 's'} for generic values"
        if flips:
            found += f", {count // self.times} up to half turns of {flips} universal joints"
        if parts := self.tracker.legs.describe():
            found += f" ({parts})"
        searched = f"{self.clean} monodromy loops and {self.starts} random starts"
        if not reason and self.unreached and not self.is_proven:
            reason = f"{self.unreached} solutions at the reference values did not continue to generic values"
        if self.lost_share and not self.is_proven:  # the same solutions may be lost in all loops
            lost = f"lost up to {self.lost_share:.1%} of their paths"
            reason = reason or f"the last {self.clean} loops found no other, but {lost}"
        if reason:
            return "incomplete", f"incomplete, because {reason}; {found}"
        if self.proven is not None and self.is_proven:
            return "proven number", f"{found}: the proven largest number ({self.proven[1]})"
        if self.trace_degree is not None and self.trace_degree >= 0:
            return "trace test", (
                f"{found}: a trace test of degree {self.trace_degree} passed within rounding error, and "
                f"{searched} found no other: numerical evidence that none is missing on the components of "
                "the configuration space that random starts reached (after A. J. Sommese, J. Verschelde and "
                "C. W. Wampler, 2002)"
            )
        chance = f"{self.chance:.1g}" if self.chance > CHANCE_MAX else f"less than {CHANCE_MAX:g}"
        return "loops", (
            f"{found}: no proof; {searched} found no other. Estimated chance that one is missing: "
            f"{chance}, if they reach it as often as those found (rule of succession)"
        )


def _rational_error(t: np.ndarray, values: np.ndarray, degree: int) -> float:
    """Return the largest error, at half of the points t (n,), of a rational function fitted to the others."""
    from scipy.special import comb

    k = np.arange(degree + 1)
    # polynomials that are orthonormal on the sphere
    powers = t[:, None] ** k / (1 + np.abs(t[:, None]) ** 2) ** (degree / 2) * np.sqrt(comb(degree, k))
    values = values / np.median(np.abs(values))
    half, size = len(t) // 2, np.maximum(1.0, np.abs(values))[:, None]
    system = np.concatenate([powers, -values[:, None] * powers], axis=1) / size
    null = np.linalg.svd(system[:half])[2][-1].conj()
    fitted = (powers @ null[: degree + 1]) / (powers @ null[degree + 1 :])
    return float((np.abs(fitted - values) / size[:, 0])[half:].max())
