"""Ends of paths of complex solutions at given values, where solutions may be singular or at infinity."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kic.analysis.positions.complex_paths import SAME_ATOL, Tracker
from kic.kernels.path_tracking import ALMOST

# smallest difference of regular solutions that two attempts find
OTHER_ATOL = 1e-4
# imaginary parts of ends whose rounding errors are accepted
IMAGINARY_MIN = 1.0
# circles of the endgame as shares of the path; corners; turns, the largest multiplicity that is resolved
ENDGAME_RADII, ENDGAME_CORNERS, ENDGAME_TURNS_MAX = 10.0 ** -np.arange(2, 13, 2), 8, 8
# circles about far ends as shares of the path; corners; error of logarithms at which they close
FAR_RADII, FAR_CORNERS, FAR_ATOL = 0.5 * 0.7 ** np.arange(10), 64, 1e-4
# circles by which an end may turn out to be infinite, once it is far
FAR_CIRCLES = 3
# largest distance of a pole from the end of its path, as a share of the path
POLE_ATOL = 1e-9
# largest negative powers of analytic reciprocals of coordinates as shares of these; reciprocals of far ends,
# which are at least 1 for real angles and rotations
ANALYTIC_RTOL, FAR_RECIPROCAL_MAX = 1e-6, 0.05
# distance of the ends of a closed path, as a share of its extent, and at least (rad, lengths)
CLOSED_RTOL, CLOSED_ATOL = 1e-3, 1e-9
# error of an estimate of two close solutions as a share of half their difference
PAIR_RTOL = 0.1


class Endgame:
    """Ends of the paths of a tracker at given parameters."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker

    def ends(
        self, states: np.ndarray, good: np.ndarray, start: np.ndarray, target: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends (B, N, S) of paths from states (N, S) at parameters (1, n) to targets (B, n).

        Also return codes (B, N): 1 for finite ends, -1 for ends at infinity, and 2 for ends that are finite
        or infinite, but too far to be real. Codes are 0 for lost paths, for regular ends at which several
        paths of a member meet, and for states that are not `good` (N,).
        """
        tracker, count, number = self.tracker, len(states), len(target)
        states = np.tile(states, (number, 1))
        begin, end = np.repeat(start, len(states), axis=0), np.repeat(target, count, axis=0)
        ends, code = states.copy(), np.tile(np.where(good, 0.5, 0.0), number)
        turns = np.ones(len(ends), dtype=int)
        for tightness in (1.0, 0.3, 0.0):
            k = np.flatnonzero((code > 0) & (code < 1))
            if not k.size:
                break
            if tightness:
                ends[k], share = tracker.track(states[k], begin[k], end[k], tightness)
                code[k] = np.where(share < 0, ALMOST, share)  # far, but perhaps finite
                self._accept_imaginary(ends, code, end, count)
                code[self._jumped(ends, code == 1, count)] = 0.5
            else:
                far = k[tracker.imaginary(ends[k]) > IMAGINARY_MIN]
                found = self._beyond(states[far], begin[far], end[far])
                code[far] = np.where(found != 0, found, code[far])
                k = k[(code[k] > 0) & (code[k] < 1)]
                ends[k], code[k], turns[k] = self._by_circles(states[k], begin[k], end[k])
                code[self._jumped(ends, (code == 1) & (turns == 1), count)] = 0.0
        return ends.reshape(number, count, -1), code.reshape(number, count)

    def filled(
        self, ends: np.ndarray, code: np.ndarray, others: np.ndarray, other_code: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ends (N, S) and codes (N,), with lost paths replaced by regular ends of another attempt.

        A place with some known ends is completed; a place without known ends becomes a new one.
        """
        tracker, legs = self.tracker, self.tracker.legs
        if code.all() or not other_code.any():
            return ends, code
        rows = np.split(np.arange(len(ends)), legs.starts[1:])
        free = [c for c, own in enumerate(rows) if (code[own] == 0).any()]
        whole = [c for c, own in enumerate(rows) if (other_code[own] == 1).all()]
        if free and whole:
            known, at = np.flatnonzero(code == 1), tracker.by_legs(ends[code == 1])[0]
            regular, places = tracker.is_regular(others), tracker.by_legs(others)[0]
            for c in (c for c in whole if regular[rows[c]].all()):
                near = legs.place[known[np.abs(at - places[rows[c][0]]).max(axis=1) < OTHER_ATOL]]
                for place in free:
                    fits = place in near if near.size else not (code[rows[place]] == 1).any()
                    if fits and (legs.modes[place] == legs.modes[c]).all():
                        ends[rows[place]], code[rows[place]] = others[rows[c]], 1.0
                        free.remove(place)
                        break
        return ends, code

    def _accept_imaginary(self, ends: np.ndarray, code: np.ndarray, p: np.ndarray, count: int) -> None:
        """Set code 1 for paths that are lost by rounding at ends with large imaginary parts.

        The sines and cosines of such states are large. The ends must solve the equations at parameters p, and
        no other path of the member may end nearby.
        """
        k = np.flatnonzero((code > 0) & (code < 1))
        k = k[self.tracker.imaginary(ends[k]) > IMAGINARY_MIN]
        k = k[self.tracker.residual(ends[k], p[k]) < OTHER_ATOL]
        if not k.size:
            return
        states = self.tracker.refined(ends[k], p[k])
        good = self.tracker.solves(states, p[k]) & (np.abs(states - ends[k]).max(axis=1) < OTHER_ATOL)
        k, states = k[good], states[good]
        accepted = code == 1
        accepted[k] = True
        alone = ~self._meets(ends, accepted, count, OTHER_ATOL)[k].any(axis=1)
        ends[k[alone]], code[k[alone]] = states[alone], 1.0

    def _meets(self, ends: np.ndarray, finite: np.ndarray, count: int, atol: float) -> np.ndarray:
        """Return a mask (B, L + 1) of finite ends where several paths of one member meet; see `meeting`."""
        parts = [slice(first, first + count) for first in range(0, len(ends), count)]
        return np.concatenate([self.tracker.meeting(ends[own], finite[own], atol) for own in parts])

    def _jumped(self, ends: np.ndarray, finite: np.ndarray, count: int) -> np.ndarray:
        """Return a mask of finite ends that are regular and where several paths of one member meet.

        Paths that start at one place and end at several count, too.
        """
        legs, met = self.tracker.legs, self._meets(ends, finite, count, SAME_ATOL)
        k = np.flatnonzero(met.any(axis=1))
        if k.size:
            met[k] &= ~self.tracker.released(ends[k])
        jumped = np.asarray(met.any(axis=1))
        k = np.flatnonzero(finite)
        if k.size and legs.several.size:
            jumped[k] |= legs.torn(self.tracker.by_legs(ends[k])[0], k % count, k // count, OTHER_ATOL)
        return jumped

    def _by_circles(
        self, states: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ends of paths by Cauchy's integral formula; codes, 1 or 0 if lost; and numbers of turns.

        The end of a lost path is the last state that was reached.

        Near a singular end a path is a power series in a root of the distance: after some turns about the end
        it closes, and the mean of its points is the end. If a circle encloses the branch point of two close
        solutions, half their difference is the square root of an analytic function, whose mean is its value
        at the end. If it encloses more, a smaller circle follows.
        """
        tracker, way = self.tracker, start - end
        code, turns, here = np.zeros(len(states)), np.zeros(len(states), dtype=int), states.copy()
        going, before = np.arange(len(states)), 1.0
        for radius in ENDGAME_RADII:
            p = end[going] + before * way[going], end[going] + radius * way[going]
            here[going], share = tracker.track(here[going], *p)
            going, before = going[share == 1], radius
            if not going.size:
                break
            means, halves, closed = self._circles(here[going], end[going], radius * way[going])
            k = np.flatnonzero(closed > 0)
            k = k[self.tracker.solves(means[k], end[going[k]])]
            here[going[k]], code[going[k]], turns[going[k]] = means[k], 1.0, closed[k]
            k = np.flatnonzero((closed == 2) & (code[going] == 0))
            guess, p = means[k] + halves[k], end[going[k]]
            pair = tracker.refined(guess, p)
            off, size = (np.abs(x).max(axis=1, initial=0.0) for x in (pair - guess, halves[k]))
            pair[~(off < PAIR_RTOL * size)] = guess[~(off < PAIR_RTOL * size)]
            good = self.tracker.solves(pair, p)
            k = going[k[good]]
            here[k], code[k], turns[k] = pair[good], 1.0, 1
            going = going[code[going] == 0]
        return tracker._normal(here), code, turns

    def _beyond(self, states: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return codes (B,) of paths: -1 for ends at infinity, 2 for far ends, and 0 for other ends."""
        way, here, before = start - end, states.copy(), 1.0
        code, going, seen = np.zeros(len(states)), np.arange(len(states)), np.zeros(len(states), dtype=int)
        corners = np.exp(2j * np.pi * np.arange(FAR_CORNERS + 1) / FAR_CORNERS)
        for radius in FAR_RADII:
            going = going[self._arrives(here, going, end + before * way, end + radius * way)]
            if not going.size:
                break
            k, own, points, before = going, here.copy(), [here], radius
            for turn in range(1, ENDGAME_TURNS_MAX + 1):
                for a, b in pairwise(radius * corners):
                    k = k[self._arrives(own, k, end + a * way, end + b * way)]
                    points.append(own.copy())
                found, closed = self._from_circle(np.array(points)[:, k], turn, radius)
                code[k] = np.where(closed & (found != 0), found, code[k])
                k = k[~closed]
                if not k.size:
                    break
            seen += code > 0
            going = going[(code[going] >= 0) & (seen[going] < FAR_CIRCLES)]
        return code

    def _from_circle(self, points: np.ndarray, turns: int, radius: float) -> tuple[np.ndarray, np.ndarray]:
        """Return codes (B,) as in `_beyond` from points (T, B, S) about ends, and a mask of closed paths.

        At a distance t from an end at infinity, the logarithm of a coordinate is w log t + c₀ + c₁ t + …, or
        a series in a root of t. Around a circle it gains 2πi w, and Cauchy's integrals of negative powers
        vanish. They do not if the pole is only near the end. Then the reciprocal of the coordinate may still
        be analytic within the circle. Its mean is its value at the end, which is small if the end is far.
        """
        logs, turning = self.tracker.logarithms(points), len(self.tracker.turning)
        gained = 1j * np.pi * np.round((logs[-1] - logs[0]).imag / np.pi)
        closed = (np.abs(logs[-1] - logs[0] - gained) < FAR_ATOL).all(axis=1)
        growth, logs = -gained.imag / (2 * np.pi * turns), logs[:-1]
        growing = growth > 0
        growing[:, :turning] |= growth[:, :turning] < 0  # exp(iθ) is zero or infinite
        ramp = np.arange(len(logs)) / len(logs)
        poles = growing & (
            _principal(logs - ramp[:, None, None] * gained) * radius < POLE_ATOL * np.abs(growth)
        )
        reciprocal = np.exp(-np.sign(growth) * logs)
        error = ANALYTIC_RTOL * np.abs(reciprocal).max(axis=0)
        at_end = np.where(_principal(reciprocal) < error, np.abs(reciprocal.mean(axis=0)) + error, np.inf)
        far = growing & (at_end < FAR_RECIPROCAL_MAX)
        far[:, logs.shape[2] - len(self.tracker.sliding) :] = False  # real slides may be large
        return np.where(poles.any(axis=1), -1.0, np.where(far.any(axis=1), 2.0, 0.0)), closed

    def _arrives(self, states: np.ndarray, k: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Track states k between parameters (B, n), in place; return a mask of complete paths.

        Rounding errors of far solutions do not matter here.
        """
        states[k], share = self.tracker.track(states[k], start[k], end[k])
        return (share >= ALMOST) & (self.tracker.residual(states[k], end[k]) < OTHER_ATOL)

    def _circles(
        self, states: np.ndarray, end: np.ndarray, way: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Track paths about parameters `end` (B, n) from `end + way` until they close.

        Return their means (B, S), half the differences (B, S) at `end` of paths that close after two turns,
        and the numbers of turns (B,): 0 for paths that do not close, -1 for angles that gain full turns.
        """
        tracker, here, sums = self.tracker, states.copy(), np.zeros_like(states)
        points = np.zeros((2 * ENDGAME_CORNERS, *states.shape), complex)
        going, turns, extent = np.arange(len(states)), np.zeros(len(states), dtype=int), np.zeros(len(states))
        corners = np.exp(2j * np.pi * np.arange(ENDGAME_CORNERS + 1) / ENDGAME_CORNERS)
        for turn in range(1, ENDGAME_TURNS_MAX + 1):
            for n, (a, b) in enumerate(pairwise(corners)):
                p = end[going] + a * way[going], end[going] + b * way[going]
                if turn <= 2:
                    points[n + (turn - 1) * ENDGAME_CORNERS] = here
                here[going], share = tracker.track(here[going], *p)
                sums[going] += here[going]
                off = np.abs(here[going] - states[going]).max(axis=1, initial=0.0)
                extent[going] = np.maximum(extent[going], off)
                going = going[share == 1]
            moved = here[going] - states[going]
            limit = np.clip(CLOSED_RTOL * extent[going], CLOSED_ATOL, SAME_ATOL)
            closed = np.abs(moved).max(axis=1, initial=0.0) < limit
            moved[:, tracker.turning] -= 2 * np.pi * np.round(moved[:, tracker.turning].real / (2 * np.pi))
            turning = ~closed & (np.abs(moved).max(axis=1, initial=0.0) < limit)
            turns[going[closed]], turns[going[turning]] = turn, -1
            going = going[~closed & ~turning]
        halves = (points[:ENDGAME_CORNERS] - points[ENDGAME_CORNERS:]) / 2
        largest, b = np.abs(halves).max(axis=0).argmax(axis=1), np.arange(len(states))
        products = (halves * halves[:, b, largest][..., None]).mean(axis=0)
        root = np.sqrt(products[b, largest])
        root *= np.where((root.conj() * halves[0, b, largest]).real < 0, -1, 1)
        halves = products / np.where(root == 0, 1, root)[:, None]
        return sums / (ENDGAME_CORNERS * np.maximum(turns, 1))[:, None], halves, turns


def _principal(series: np.ndarray) -> np.ndarray:
    """Return the largest coefficients (B, n) of negative powers of series with values (T, B, n) on a circle.

    Only the last quarter of the coefficients is used, because positive powers alias into the others.
    """
    return np.abs(np.fft.fft(series, axis=0)[-(len(series) // 4) :]).max(axis=0) / len(series)
