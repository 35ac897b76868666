"""Random mechanisms near singular configurations and in odd units, against references with 80 digits.

Arms and linkages on one crank are moved to a distance of 10^-2 to 10^-14 from a configuration in which their
coordinates cannot drive them. Lengths and masses are scaled by up to 10^6 either way. Run
``python tests/near_singular.py COUNT [SEED]`` to count results that are right, refused and wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace

import mpmath as mp
import numpy as np
from exact import exact, inverse
from jumps import START, Loop, Z, mechanism, random_loops, solve
from sampling import random_body

import kic
from kic.mechanism.configuration import Configuration

DIGITS = 80
# samples of a turn in which a sign change is looked for
NODES = 2001
# stated law of errors: 100 ε κ by rounding, and 5 ε κ² for solved configurations
EPS, ROUNDING, POSITION = float(np.finfo(float).eps), 100.0, 5.0
# errors of results in units of that of G, near a turning point
FACTORS = {"G": 1, "I": 2, "H": 3, "effort": 4, "D": 5}
# error of a solved configuration beyond which results must raise, margin of the law, and condition below
# which a refusal is false
LOST, MARGIN, REFUSED_MIN = 1e-4, 20.0, 1e4


def unit(v: np.ndarray) -> np.ndarray:
    return v / mp.sqrt(v @ v)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def rotation(axis: np.ndarray, angle: object) -> np.ndarray:
    """Return the rotation (3, 3) about a unit axis."""
    x, y, z = axis
    c, s = mp.cos_sin(angle)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    # arrays come first in products: mpmath formats an array before it returns NotImplemented
    return np.diag([c, c, c]) + K * s + np.outer(axis, axis) * (1 - c)


def zero_between(f, low: object, high: object) -> object:
    """Return a zero of f, which changes its sign between two numbers, to 30 digits (Illinois method)."""
    below, above = f(low), f(high)
    while above != 0 and abs(high - low) > mp.mpf(10) ** -30 * (1 + abs(high)):
        root = high - above * (high - low) / (above - below)
        value = f(root)
        if (value > 0) == (above > 0):
            below = below / 2
        else:
            low, below = high, above
        high, above = root, value
    return high


@dataclass(frozen=True)
class Reference:
    """Coefficients of rows, inertia and effort in one set of coordinates; D is known for linkages."""

    G: np.ndarray
    H: np.ndarray
    inertia: np.ndarray
    effort: np.ndarray
    effort_size: float
    D: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """Mechanism near a singular configuration: how it is solved, what is asked, and what is right."""

    kind: str
    c: Configuration
    rows: list[str]
    wrt: list[str]
    sizes: np.ndarray
    condition: float
    rates: tuple[np.ndarray, np.ndarray]
    reference: Reference
    solved: bool
    places: float = 1.0  # largest coordinate of a joint, in units of the smallest link

    def errors(self) -> dict[str, float]:
        """Return the errors of all results, relative to their size."""
        r = self.reference
        k = self.c.coefficients(self.rows, order=2 if r.D is None else 3, wrt=self.wrt)
        d = self.c.dynamics(wrt=self.wrt)
        effort = d.inverse_dynamics(*self.rates)
        found = {
            "G": _error(k.G / self.sizes[:, None], r.G / self.sizes[:, None]),
            "H": _error(k.H / self.sizes[:, None, None], r.H / self.sizes[:, None, None]),
            "I": _error(d.I, r.inertia),
        }
        if r.D is not None:
            size = self.sizes[:, None, None, None]
            found["D"] = _error(k.D / size, r.D / size)
        return found | {"effort": float(np.abs(effort - r.effort).max()) / r.effort_size}

    @property
    def allowed(self) -> float:
        """Error by the stated law."""
        square = POSITION * self.condition**2 if self.solved else 0.0
        return max(ROUNDING * self.condition, square) * EPS * self.places


def _error(found: np.ndarray, right: np.ndarray) -> float:
    right = right.astype(float)
    return float(np.abs(found - right).max() / np.abs(right).max())


def scaled_body(rng: np.random.Generator, name: str, length: float) -> kic.Body:
    """Return a random body in a unit of length, with a mass of any size."""
    body, mass = random_body(rng, name), 10 ** rng.uniform(-6, 6)
    inertia = mass * length**2 * np.asarray(body.inertia)
    return replace(
        body,
        mass=mass * body.mass,
        com=tuple(length * np.asarray(body.com)),
        inertia=inertia,
    )


def inertia_matrix(body: kic.Body) -> np.ndarray:
    """Return the inertia (3, 3) about the centre of mass, exact."""
    return exact(body.inertia)


# arms ------------------------------------------------------------------------------------------------------


class Arm:
    """Three joints and a tip, in exact arithmetic, with closed forms of the first two orders."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.length = 10 ** rng.uniform(-6, 6)
        self.kinds = [str(k) for k in rng.choice(["revolute", "revolute", "prismatic"], size=3)]
        self.places, self.axes = self.length * rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
        self.tip = self.length * rng.normal(size=3)
        self.bodies = [scaled_body(rng, f"b{k}", self.length) for k in range(3)]
        self.gravity = self.length * rng.normal(size=3)

    def mechanism(self) -> kic.Mechanism:
        names = ["ground", "b0", "b1", "b2"]
        joints = [
            kic.Joint(f"J{k}", kind, (names[k], names[k + 1]), tuple(self.places[k]), tuple(self.axes[k]))
            for k, kind in enumerate(self.kinds)
        ]
        tip = kic.Point("tip", "b2", tuple(self.tip))
        return kic.Mechanism("arm", self.bodies, joints, points=[tip], gravity=tuple(self.gravity))

    def moved(self, q: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return axes, places of the joints, the tip, and poses of the bodies at exact q."""
        R, p = exact(np.eye(3)), exact(np.zeros(3))  # motion of the body from the reference configuration
        axes, places, poses = [], [], []
        for k, kind in enumerate(self.kinds):
            a, o = R @ unit(exact(self.axes[k])), R @ exact(self.places[k]) + p
            axes.append(a)
            places.append(o)
            if kind == "revolute":
                T = rotation(a, q[k])
                R, p = T @ R, T @ (p - o) + o
            else:
                p = p + q[k] * a
            poses.append((R, p))
        return axes, places, R @ exact(self.tip) + p, poses

    def jacobian(self, axes, places, point: np.ndarray, last: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """Return G (3, 3) and H (3, 3, 3) of a point of body `last`."""
        G, H = exact(np.zeros((3, 3))), exact(np.zeros((3, 3, 3)))
        for n in range(last + 1):
            G[:, n] = cross(axes[n], point - places[n]) if self.kinds[n] == "revolute" else axes[n]
        for m in range(last + 1):
            for n in range(m, last + 1):
                if self.kinds[m] == "revolute":
                    H[:, m, n] = H[:, n, m] = cross(axes[m], G[:, n])
        return G, H

    def determinant(self, q: np.ndarray) -> object:
        axes, places, tip, _ = self.moved(q)
        G, _ = self.jacobian(axes, places, tip)
        return cross(G[:, 0], G[:, 1]) @ G[:, 2]

    def units(self) -> np.ndarray:
        """Return the unit of each joint."""
        return np.array([1.0 if kind == "revolute" else self.length for kind in self.kinds])

    def reference(self, q: np.ndarray, rate: np.ndarray, second: np.ndarray) -> Reference:
        """Return results in the coordinates of the tip, at exact q and given rates of the tip."""
        axes, places, tip, poses = self.moved(q)
        G, H = self.jacobian(axes, places, tip)
        A = inverse(G)
        B = -np.einsum("ip,pmn,ma,nb->iab", A, H, A, A, optimize=True)
        x, y = exact(rate), exact(second)
        qd = A @ x
        qdd = A @ y + np.einsum("iab,a,b->i", B, x, x, optimize=True)
        M, effort, size = exact(np.zeros((3, 3))), exact(np.zeros(3)), exact(np.zeros(3))
        turning = exact([kind == "revolute" for kind in self.kinds])
        for k, (body, (R, p)) in enumerate(zip(self.bodies, poses, strict=True)):
            J, K = self.jacobian(axes, places, R @ exact(body.com) + p, k)
            W = np.array([axes[n] * turning[n] if n <= k else exact(np.zeros(3)) for n in range(3)]).T
            inertia = R @ inertia_matrix(body) @ R.T
            mass = mp.mpf(body.mass)
            M = M + mass * J.T @ J + W.T @ inertia @ W
            force = mass * (J @ qdd + np.einsum("pmn,m,n->p", K, qd, qd, optimize=True) - exact(self.gravity))
            omega, alpha = W @ qd, W @ qdd
            for m in range(k + 1):
                for n in range(m + 1, k + 1):
                    alpha = alpha + cross(W[:, m], W[:, n]) * qd[m] * qd[n]
            moment = inertia @ alpha + cross(omega, inertia @ omega)
            effort = effort + J.T @ force + W.T @ moment
            size = size + abs(J.T) @ abs(force) + abs(W.T) @ abs(moment)
        return Reference(A, B, A.T @ M @ A, (A.T @ effort).astype(float), float((abs(A.T) @ size).max()))


def arm_case(rng: np.random.Generator, distance: float) -> Case | None:
    """Return an arm near a configuration in which its tip cannot move in some direction."""
    arm, units = Arm(rng), None
    units = arm.units()
    q, j = rng.normal(size=3) * units, int(rng.integers(3))
    grid = q[j] + units[j] * np.linspace(0, 2 * np.pi, 41)

    def along(x: object) -> object:
        moved = exact(q)
        moved[j] = x
        return arm.determinant(moved)

    first = along(grid[0]) > 0
    k = next((k for k, x in enumerate(grid) if (along(x) > 0) != first), 0)
    if not k:
        return None
    root = zero_between(along, mp.mpf(float(grid[k - 1])), mp.mpf(float(grid[k])))
    q[j] = float(root + distance * units[j] * rng.choice([-1, 1]))
    m, wrt = arm.mechanism(), ["tip.x", "tip.y", "tip.z"]
    c, point, solved = m.at(q), exact(q), bool(rng.random() < 0.5)
    if solved:
        target = arm.moved(point)[2].astype(float)
        c = m.at(dict(zip(wrt, target.tolist(), strict=True)), near=c)
        for _ in range(12):
            axes, places, tip, _ = arm.moved(point)
            point = point - inverse(arm.jacobian(axes, places, tip)[0]) @ (tip - exact(target))
    axes, places, tip, _ = arm.moved(point)
    G = arm.jacobian(axes, places, tip)[0].astype(float)
    # rates of the size that the tip has where it can move
    rate, second = arm.length * rng.normal(size=(2, 3))
    return Case(
        "solved arm" if solved else "arm",
        c,
        [f"J{k}" for k in range(3)],
        wrt,
        units,
        float(np.linalg.cond(G / arm.length * units)),
        (rate, second),
        arm.reference(point, rate, second),
        solved,
    )


# linkages --------------------------------------------------------------------------------------------------


class Linkage:
    """Followers on one crank, in exact arithmetic (see `jumps`)."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.length = 10 ** rng.uniform(-6, 6)
        self.loops = []
        for loop in random_loops(rng, int(rng.integers(1, 4))):
            # loops of very different sizes; driven ones keep that of their driver
            size = self.length * (10 ** rng.uniform(-2, 2) if loop.driver < 0 and rng.random() < 0.3 else 1.0)
            size = self.sizes[loop.driver] if loop.driver >= 0 else size
            self.loops.append(replace(loop, pin=size * loop.pin, base=size * loop.base, end=size * loop.end))
            self.sizes = [*getattr(self, "sizes", []), size]
        self.gravity = self.length * rng.normal(size=3)
        m = mechanism(self.loops)
        bodies = []
        for body in m.bodies:
            k = int(body.name[8:]) if body.name.startswith("follower") else -1
            size = self.length if k < 0 else self.sizes[k]
            massless = kic.Body(body.name, mass=0.0, com=(0, 0, 0), inertia=(0, 0, 0))
            bodies.append(massless if body.name.startswith("coupler") else scaled_body(rng, body.name, size))
        self.masses = {b.name: b for b in bodies}
        self.m = replace(m, bodies=tuple(bodies), gravity=tuple(self.gravity))

    @property
    def turning(self) -> tuple[str, ...]:
        """Revolute joints of followers."""
        return tuple(f"D{k}" for k, loop in enumerate(self.loops) if loop.kind == "revolute")

    @property
    def places(self) -> float:
        """Largest coordinate of a joint, in units of the smallest link or radius."""
        largest = max(float(np.abs([x.pin, x.base, x.end]).max()) for x in self.loops)
        links = [x.end - x.pin for x in self.loops]
        links += [np.cross(x.axis, x.end - x.base) for x in self.loops if x.kind == "revolute"]
        return largest / min(float(np.linalg.norm(x)) for x in links)

    def displacements(self, angle: object) -> tuple[list[object], list[object]]:
        """Return displacements and margins of the followers at an exact crank angle."""
        moved: list[object] = []
        margins: list[object] = []
        for loop in self.loops:
            pin = exact(loop.pin)
            if loop.driver < 0:
                pin = rotation(exact(Z), angle - mp.mpf(START)) @ pin
            else:
                pin = self._carried(self.loops[loop.driver], moved[loop.driver], pin)
            x, margin = self._follow(loop, pin)
            moved.append(x)
            margins.append(margin)
        return moved, margins

    @staticmethod
    def _carried(loop: Loop, x: object, point: np.ndarray) -> np.ndarray:
        axis = unit(exact(loop.axis))
        if loop.kind == "prismatic":
            return point + x * axis
        base = exact(loop.base)
        return base + rotation(axis, x) @ (point - base)

    @staticmethod
    def _follow(loop: Loop, pin: np.ndarray) -> tuple[object, object]:
        end, start, axis = exact(loop.end), exact(loop.pin), unit(exact(loop.axis))
        square = (end - start) @ (end - start)
        if loop.kind == "prismatic":
            away = pin - end
            along, side = away @ axis, -mp.sign((start - end) @ axis)
            D = along**2 - away @ away + square
            return along + side * mp.sqrt(D) if D > 0 else along, D / square
        base = exact(loop.base)
        foot = base + axis * ((end - base) @ axis)
        u = end - foot
        v = cross(axis, u)

        def angles(p: np.ndarray) -> tuple[object, object, object]:
            away = p - foot
            A, B = 2 * away @ u, 2 * away @ v
            ratio = (away @ away + u @ u - square) / mp.sqrt(A * A + B * B)
            half = mp.acos(ratio) if abs(ratio) < 1 else mp.mpf(0)
            return mp.atan2(B, A), half, 1 - ratio**2

        mean, half, _ = angles(start)
        side = 1 if abs(mp.sin((mean + half) / 2)) < mp.mpf(10) ** -9 else -1
        mean, half, margin = angles(pin)
        x = mean + side * half
        return x - 2 * mp.pi * mp.nint(x / (2 * mp.pi)), margin

    def results(self, angle: object, step: object) -> dict[str, tuple[object, object, object, object]]:
        """Return displacements, mass centres and their first three derivatives at an exact crank angle."""
        made = []
        for k in range(-2, 3):
            moved, _ = self.displacements(angle + k * step)
            turned = rotation(exact(Z), angle + k * step - mp.mpf(START))
            one: dict[str, object] = {
                "O": angle + k * step,
                "crank": turned @ exact(self.masses["crank"].com),
            }
            for n, loop in enumerate(self.loops):
                one[f"D{n}"] = moved[n]
                com = exact(self.masses[f"follower{n}"].com)
                one[f"follower{n}"] = self._carried(loop, moved[n], com)
            made.append(one)
        lowest, low, here, high, highest = made
        return {
            name: (
                here[name],
                (high[name] - low[name]) / (2 * step),
                (high[name] - 2 * here[name] + low[name]) / step**2,
                (highest[name] - 2 * high[name] + 2 * low[name] - lowest[name]) / (2 * step**3),
            )
            for name in here
        }

    def reference(self, angle: object, step: object, wrt: str, rate: float, second: float) -> Reference:
        """Return results in one coordinate at an exact crank angle."""
        found = self.results(angle, step)
        _, first, bend, third = found[wrt]
        # rates of the crank: θ' = a, θ'' = b, θ''' = d per unit of the coordinate
        a, b, d = 1 / first, -bend / first**3, 3 * bend**2 / first**5 - third / first**4
        names = ["O", *(f"D{k}" for k in range(len(self.loops)))]
        G = np.array([found[n][1] * a for n in names])
        H = np.array([found[n][2] * a * a + found[n][1] * b for n in names])
        D = np.array([found[n][3] * a**3 + 3 * found[n][2] * a * b + found[n][1] * d for n in names])
        qd, qdd = mp.mpf(rate), mp.mpf(second)
        inertia, effort, size = mp.mpf(0), mp.mpf(0), mp.mpf(0)
        for name, body in self.masses.items():
            if name.startswith("coupler"):
                continue
            loop = self.loops[int(name[8:])] if name.startswith("follower") else None
            mass, x = mp.mpf(body.mass), "O" if loop is None else f"D{name[8:]}"
            v = found[name][1] * a
            acceleration = v * qdd + (found[name][2] * a * a + found[name][1] * b) * qd * qd
            inertia += mass * (v @ v)
            effort += mass * (v @ (acceleration - exact(self.gravity)))
            size += mass * (abs(v) @ (abs(acceleration) + abs(exact(self.gravity))))
            if loop is None or loop.kind == "revolute":
                axis = unit(exact(Z if loop is None else loop.axis))
                J = axis @ inertia_matrix(body) @ axis
                turn, change = found[x][1] * a, found[x][2] * a * a + found[x][1] * b
                inertia += J * turn * turn
                effort += J * turn * (turn * qdd + change * qd * qd)
                size += J * abs(turn) * (abs(turn * qdd) + abs(change) * qd * qd)
        return Reference(
            G[:, None],
            H[:, None, None],
            np.array([[inertia]]),
            np.array([float(effort)]),
            float(size),
            D[:, None, None, None],
        )


def linkage_case(rng: np.random.Generator, distance: float) -> Case | None:
    """Return a linkage near a dead centre of its crank, or of a follower that drives it."""
    linkage = Linkage(rng)
    if linkage.m.dof != 1:
        return None
    way = np.linspace(START, START + rng.choice([-1, 1]) * 2 * np.pi, NODES)
    moved, margins = solve(linkage.loops, way)
    out = np.flatnonzero(margins.min(axis=0) < 0)
    inside = int(out[0]) if out.size else len(way)
    slopes = np.gradient(moved[:, :inside], axis=1) if inside > 2 else np.zeros((1, 0))
    step = mp.mpf(10) ** -24
    wrt, near = "O", None
    places = [
        (k, int(i)) for k, row in enumerate(slopes) for i in np.flatnonzero(row[1:-2] * row[2:-1] < 0) + 1
    ]
    if out.size and (rng.random() < 0.5 or not places):
        row = int(np.argmin(margins[:, inside]))

        def lacking(x: object) -> object:
            return linkage.displacements(x)[1][row]

        root = zero_between(lacking, mp.mpf(float(way[inside - 1])), mp.mpf(float(way[inside])))
        angle = mp.mpf(float(root - mp.mpf(distance) * np.sign(way[1] - way[0])))
        if min(linkage.displacements(angle)[1]) <= 0:
            return None
        value = float(angle)
    elif places:
        k, i = places[int(rng.integers(len(places)))]
        wrt = f"D{k}"

        def slope(x: object) -> object:
            return linkage.displacements(x + step)[0][k] - linkage.displacements(x - step)[0][k]

        if (slope(mp.mpf(float(way[i]))) > 0) == (slope(mp.mpf(float(way[i + 1]))) > 0):
            return None
        root = zero_between(slope, mp.mpf(float(way[i])), mp.mpf(float(way[i + 1])))
        angle = root - mp.mpf(distance)
        value = float(linkage.displacements(angle)[0][k])
        near = linkage.m.at({"O": float(angle)})
        # the closed form returns angles within half a turn
        turns = round((float(near.value(wrt)) - value) / (2 * np.pi)) if wrt in linkage.turning else 0
        value += 2 * np.pi * turns
        for _ in range(40):  # the crank angle at which the follower has this rounded value
            change = linkage.displacements(angle)[0][k] - mp.mpf(value) + 2 * mp.pi * turns
            change = change / linkage.results(angle, step)[wrt][1]
            angle = angle - change
            if abs(change) < mp.mpf(10) ** -40:  # the next step has twice as many zeros
                break
        if not abs(angle - root) < 3 * mp.mpf(distance) or angle > root:
            return None  # rounded to the other side of the dead centre
    else:
        return None
    c = linkage.m.at({wrt: value}, near=near)
    closure = linkage.m._model.closure((wrt,))
    sizes = np.array([1.0] + [1.0 if x.kind == "revolute" else linkage.length for x in linkage.loops])
    own = sizes[0 if wrt == "O" else 1 + int(wrt[1:])]
    rate, second = own * rng.normal(size=2)
    return Case(
        "crank" if wrt == "O" else "follower",
        c,
        ["O", *(f"D{k}" for k in range(len(linkage.loops)))],
        [wrt],
        sizes,
        float(closure.condition(c._states)[0]),
        (np.array([rate]), np.array([second])),
        linkage.reference(angle, step, wrt, rate, second),
        True,
        linkage.places,
    )


def verdict(seed: int) -> tuple[str, str]:
    """Return the outcome of one random mechanism, and its details."""
    rng, case = np.random.default_rng(seed), None
    make = arm_case if seed % 2 else linkage_case
    with mp.workdps(DIGITS):
        while case is None:
            distance = 10 ** -rng.uniform(2, 14)
            try:
                case = make(rng, distance)
            except kic.KicError as error:
                # a configuration this far from singular ones must be found
                false = distance > 1 / REFUSED_MIN
                return ("falsely refused" if false else "not solved"), f"{distance:.1e} {error}"
        try:
            errors = case.errors()
        except kic.KicError as error:
            false = case.condition < REFUSED_MIN
            return (
                f"{case.kind} " + ("falsely refused" if false else "refused")
            ), f"κ {case.condition:.1e} {error}"
    worst = max(errors, key=lambda name: errors[name])
    details = f"κ {case.condition:.1e}, distance {distance:.1e}, " + ", ".join(
        f"{name} {x:.1e}" for name, x in errors.items()
    )
    # a given state counts as exact, and results with two digits are returned
    if not errors[worst] <= (LOST if case.solved else 0.1):
        return f"{case.kind} wrong", details
    if any(not x <= MARGIN * FACTORS[name] * case.allowed for name, x in errors.items()):
        return f"{case.kind} beyond the law", details
    return f"{case.kind} right", details


def search(count: int, seed: int) -> Counter[str]:
    """Return the outcomes of many mechanisms; those that are not right or refused are printed."""
    total: Counter[str] = Counter()
    for k in range(count):
        outcome, details = verdict(seed + k)
        total[outcome] += 1
        if any(word in outcome for word in ("wrong", "falsely", "law")):
            print(seed + k, outcome, details, flush=True)
    return total


if __name__ == "__main__":
    print(dict(search(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
