"""Random linkages on one crank, with closed forms of the jumps of the crank that have a solution.

Each linkage ties a point of a driving body to a follower at a constant distance: four-bars, slider-cranks,
and their spatial counterparts. A follower may drive the next linkage. Run
``python -m tests.jumps COUNT [SEED]`` to count the jumps that are solved or raise errors, and how many
of either are wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np

import kic

Z = np.array([0.0, 0.0, 1.0])
# crank angle of the reference configuration, and nodes between two jumps of a closed form
START, NODES = 0.4, 20_001
# smallest margin and distance in the reference configuration; margin below which a verdict is left open
START_MARGIN, LENGTH_MIN, OPEN_MARGIN = 0.02, 0.02, 1e-9


@dataclass(frozen=True)
class Loop:
    """Follower that keeps a constant distance from a point of its driver.

    Attributes
    ----------
    kind : {"revolute", "prismatic"}
        Joint of the follower on the ground.
    link : {"bar", "coupler"}
        Fixed distance, or a body with joints at its ends.
    driver : int
        Index of the driving loop; -1 for the crank.
    pin : (3,)
        Point of the driver, in its reference configuration.
    base, axis : (3,)
        Place and axis of the follower's joint.
    end : (3,)
        Point of the follower, in the reference configuration.
    """

    kind: str
    link: str
    driver: int
    pin: np.ndarray
    base: np.ndarray
    axis: np.ndarray
    end: np.ndarray

    @property
    def planar(self) -> bool:
        """True if the follower moves in a plane across z, in which the pin lies."""
        across = abs(self.axis @ Z) == (1.0 if self.kind == "revolute" else 0.0)
        return bool(across and self.pin[2] == self.end[2])

    def follow(self, pins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the follower's displacement (n,) for places of the pin (n, 3), and its margin (n,).

        The margin is 1 where the follower is farthest from a dead centre, and negative where nothing closes.
        The root is the one of the reference configuration.
        """
        length2 = float((self.end - self.pin) @ (self.end - self.pin))
        if self.kind == "prismatic":
            along, start = (pins - self.end) @ self.axis, float((self.pin - self.end) @ self.axis)
            D = along**2 - ((pins - self.end) ** 2).sum(axis=1) + length2
            side = -np.sign(start)  # at the reference the displacement is 0 = along + side √D
            return along + side * np.sqrt(np.maximum(D, 0)), D / length2
        foot = self.base + self.axis * ((self.end - self.base) @ self.axis)
        u = self.end - foot
        radius = np.linalg.norm(u)
        v = np.cross(self.axis, u)

        def angles(p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            away = p - foot
            A, B = 2 * away @ u, 2 * away @ v
            C = (away**2).sum(axis=-1) + radius**2 - length2
            ratio = C / np.hypot(A, B)
            return np.arctan2(B, A), np.arccos(np.clip(ratio, -1, 1)), 1 - ratio**2

        mean, half, _ = angles(self.pin[None])
        side = 1.0 if abs(np.remainder(mean[0] + half[0] + np.pi, 2 * np.pi) - np.pi) < 1e-6 else -1.0
        mean, half, margin = angles(pins)
        return np.unwrap(mean + side * half), margin


def turned(points: np.ndarray, base: np.ndarray, axis: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return places (n, 3) of a point turned about an axis by angles (n,)."""
    r = points - base
    along = axis * (r @ axis)
    u = r - along
    c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return base + along + c * u + s * np.cross(axis, u)


def solve(loops: list[Loop], angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return displacements and margins (loops, n) of all followers at crank angles (n,)."""
    moved: list[np.ndarray] = []
    margins: list[np.ndarray] = []
    for loop in loops:
        if loop.driver < 0:
            pins = turned(loop.pin, np.zeros(3), Z, angles - START)
        elif loops[loop.driver].kind == "revolute":
            before = loops[loop.driver]
            pins = turned(loop.pin, before.base, before.axis, moved[loop.driver])
        else:
            pins = loop.pin + moved[loop.driver][:, None] * loops[loop.driver].axis
        x, margin = loop.follow(pins)
        moved.append(x)
        margins.append(margin)
    return np.array(moved), np.array(margins)


def random_loops(rng: np.random.Generator, count: int) -> list[Loop]:
    """Return linkages that have some margin in the reference configuration."""
    loops: list[Loop] = []
    while len(loops) < count:
        spatial = rng.random() < 0.5
        driver = int(rng.integers(-1, len(loops))) if rng.random() < 0.4 else -1
        kind = "prismatic" if rng.random() < 0.3 else "revolute"
        link = "bar" if rng.random() < 0.5 else "coupler"
        pin, base, end = rng.normal(size=(3, 3)) * 10 ** rng.uniform(-1, 0.3, size=(3, 1))
        axis = rng.normal(size=3)
        if rng.random() < 0.2:  # a short link
            end = pin + rng.normal(size=3) * 10 ** rng.uniform(-1.5, -0.3)
        if not spatial:
            pin[2] = base[2] = end[2] = 0.0
            axis = Z if kind == "revolute" else np.array([*axis[:2], 0.0])
        axis = axis / np.linalg.norm(axis)
        if kind == "prismatic":
            base = end
        elif rng.random() < 0.3:  # close to a change point, where the follower's circle touches
            reach, out = np.linalg.norm(pin[:2]), np.linalg.norm(end - base)
            share = 1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-6, -1)
            base = base * abs(np.linalg.norm(end - pin) - out + reach) * share / np.linalg.norm(base)
        loop = Loop(kind, link, driver, pin, base, axis, end)
        margin = solve([*loops, loop], np.array([START]))[1].min()
        if np.linalg.norm(end - pin) > LENGTH_MIN and margin > START_MARGIN:
            loops.append(loop)
    return loops


def mechanism(loops: list[Loop]) -> kic.Mechanism:
    """Return the mechanism of linkages on one crank, with the coordinate O."""
    bodies, points, distances = [kic.Body("crank")], [], []
    joints = [kic.Joint("O", "revolute", ("ground", "crank"), (0, 0, 0), tuple(Z), value=START)]
    for k, loop in enumerate(loops):
        driver = "crank" if loop.driver < 0 else f"follower{loop.driver}"
        bodies.append(kic.Body(f"follower{k}"))
        joints.append(
            kic.Joint(f"D{k}", loop.kind, ("ground", f"follower{k}"), tuple(loop.base), tuple(loop.axis))
        )
        if loop.link == "bar":
            points += [
                kic.Point(f"p{k}", driver, tuple(loop.pin)),
                kic.Point(f"e{k}", f"follower{k}", tuple(loop.end)),
            ]
            distances.append(kic.Distance(f"bar{k}", (f"p{k}", f"e{k}"), fixed=True))
            continue
        bodies.append(kic.Body(f"coupler{k}"))
        ends = (driver, f"coupler{k}"), (f"coupler{k}", f"follower{k}")
        if loop.planar and (loop.driver < 0 or loops[loop.driver].planar):
            joints += [
                kic.Joint(f"A{k}", "revolute", ends[0], tuple(loop.pin), tuple(Z)),
                kic.Joint(f"B{k}", "revolute", ends[1], tuple(loop.end), tuple(Z)),
            ]
        else:
            along = loop.end - loop.pin
            side = np.cross(along, [0.6, 0.0, 0.8])
            side /= np.linalg.norm(side)
            other = np.cross(along, side) / np.linalg.norm(along)
            joints += [
                kic.Joint(f"A{k}", "spherical", ends[0], tuple(loop.pin)),
                kic.Joint(f"B{k}", "universal", ends[1], tuple(loop.end), tuple(side), axis2=tuple(other)),
            ]
    return kic.Mechanism(
        "linkages", bodies=bodies, joints=joints, points=points, distances=distances, coordinates=["O"]
    )


@dataclass
class Jump:
    """Jump of the crank: its end, the least margin on its way, and the displacements at its end."""

    end: float
    margin: float
    moved: np.ndarray

    @property
    def solvable(self) -> bool | None:
        """True if a closed configuration exists all along the way; None if rounding decides."""
        return None if abs(self.margin) < OPEN_MARGIN else self.margin > 0


def jump(loops: list[Loop], end: float) -> Jump:
    """Return the closed form of a jump, which looks closer where the margin is least."""
    angles = np.linspace(START, end, NODES)
    moved, margins = solve(loops, angles)
    least = margins.min()
    for row in margins:
        inner = np.flatnonzero((row[1:-1] <= row[:-2]) & (row[1:-1] <= row[2:]) & (row[1:-1] < 1e-2)) + 1
        for k in inner[np.argsort(row[inner])][:8]:
            low, high = angles[k - 1], angles[k + 1]
            for _ in range(6):
                fine = np.linspace(low, high, 101)
                closer = solve(loops, np.concatenate([angles[: k : max(k // 50, 1)], fine]))[1][:, -101:]
                row_fine = closer.min(axis=0)
                best = int(np.argmin(row_fine))
                least = min(least, row_fine[best])
                low, high = fine[max(best - 1, 0)], fine[min(best + 1, 100)]
    return Jump(end, float(least), moved[:, -1])


def random_ends(rng: np.random.Generator, loops: list[Loop], count: int) -> np.ndarray:
    """Return ends of jumps: anywhere within a turn, and close to the first dead centre on either side."""
    ends = START + rng.uniform(-2 * np.pi, 2 * np.pi, size=count)
    for k in range(count // 4):
        way = np.linspace(START, START + rng.choice([-1, 1]) * 2 * np.pi, NODES)
        out = np.flatnonzero(solve(loops, way)[1].min(axis=0) < 0)
        if out.size:
            ends[k] = way[out[0]] - (way[1] - way[0]) * rng.choice([-1, 1]) * 10 ** rng.uniform(0, 3)
    return ends


def verdicts(
    m: kic.Mechanism, loops: list[Loop], ends: np.ndarray, path: bool = False
) -> list[tuple[str, Jump]]:
    """Return the verdict on each jump: right, rightly refused, falsely refused, wrong, or open.

    The jumps start in the reference configuration, or with `path` each where the one before ends.
    """
    c = (m.path if path else m.at)({"O": ends}, failures="mask")
    moved = np.array([c.value(f"D{k}") for k in range(len(loops))])
    made = []
    for b, end in enumerate(ends):
        one = jump(loops, float(end))
        if one.solvable is None:
            verdict = "open"
        elif not c.ok[b]:
            verdict = "falsely refused" if one.solvable else "rightly refused"
        else:
            off = moved[:, b] - one.moved
            for k, loop in enumerate(loops):
                if loop.kind == "revolute":
                    off[k] = np.remainder(off[k] + np.pi, 2 * np.pi) - np.pi
            # near a dead centre both roots have nearly the same displacement
            same = np.abs(off).max() < 1e-6 / np.sqrt(one.margin) if one.solvable else False
            verdict = "right" if same else "wrong"
        made.append((verdict, one))
    return made


def search(count: int, seed: int, jumps: int = 12, turn: bool = False) -> Counter[str]:
    """Return how many jumps have each verdict; those that are wrong or falsely refused are printed.

    With `turn` the jumps of a linkage are the steps of a path along a full turn of its crank.
    """
    total: Counter[str] = Counter()
    for k in range(-(-count // jumps)):
        rng = np.random.default_rng(seed + k)
        loops = random_loops(rng, 1 + k % 4)
        try:
            m = mechanism(loops)
            if m.dof != 1:
                total["several degrees of freedom"] += jumps
                continue
            ends = START + np.linspace(0, 2 * np.pi, jumps) if turn else random_ends(rng, loops, jumps)
            found = verdicts(m, loops, ends, turn)
        except kic.KicError as error:
            total[type(error).__name__] += jumps
            print(seed + k, error)
            continue
        for verdict, one in found:
            total[verdict] += 1
            if verdict in ("wrong", "falsely refused"):
                kinds = [f"{loop.kind[0]}{loop.link[0]}{loop.driver}" for loop in loops]
                print(seed + k, verdict, one.end, f"margin {one.margin:.2e}", kinds, flush=True)
    return total


if __name__ == "__main__":
    print(dict(search(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
