"""Euler angles beside gimbal lock, against references with 50 digits, in all sequences and orders.

Three or five hinges through one point carry a frame. Three of them may have the axes of the sequence itself:
their angles are then the Euler angles, with G = 1 and H = D = 0 at any distance to the lock. Run
``python tests/gimbal_lock.py COUNT [SEED]`` to count results that are right, refused and wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import combinations_with_replacement, permutations

import mpmath as mp
import numpy as np
from exact import E, exact, invert, rounded
from scipy.spatial.transform import Rotation

import kic

SEQUENCES = ["xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz"]
EPS, DIGITS = float(np.finfo(float).eps), 50
# stated law: errors of 100 ε / d^(k + 1) beside the size of derivatives of order k; results beyond LOST raise
LAW, LOST = 100.0, 1e-4
# share of LOST below which a refusal is false
FALSE_SHARE = 0.5


def hat(a: np.ndarray) -> np.ndarray:
    x, y, z = a
    return exact(np.zeros((3, 3))) + np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def orientation(axes: np.ndarray, q: np.ndarray) -> list[np.ndarray]:
    """Return R (3, 3) of hinges at exact angles, and its first three derivatives (n, …, 3, 3)."""
    R, K = exact(np.eye(3)), []
    for a, t in zip(axes, q.tolist(), strict=True):
        a = exact(a) / mp.sqrt(exact(a) @ exact(a))
        k, (c, s) = hat(a), mp.cos_sin(mp.mpf(t))
        K.append(hat(R @ a))
        R = R @ (exact(np.eye(3)) + k * s + k @ k * (1 - c))
    n, made = len(K), [R]
    for order in (1, 2, 3):
        T = np.empty((*(n,) * order, 3, 3), dtype=object)
        for first, *others in combinations_with_replacement(range(n), order):
            # outer hinges turn inner ones
            turned = K[first] @ made[order - 1][tuple(others)]
            for index in permutations((first, *others)):
                T[index] = turned
        made.append(T)
    return made


def symmetric(T: np.ndarray) -> np.ndarray:
    return T + T.transpose(0, 2, 1) + T.transpose(2, 0, 1)


def angle(s: list[np.ndarray], c: list[np.ndarray]) -> list[np.ndarray]:
    """Return the first three derivatives of the angle of (c, s) of any length: Im log(c + i s)."""
    square, o = s[0] ** 2 + c[0] ** 2, np.multiply.outer
    p, q = (
        [(x * c[0] + y * s[0]) / square for x, y in zip(c, s, strict=True)],
        [(y * c[0] - x * s[0]) / square for x, y in zip(c, s, strict=True)],
    )
    P = p[2] - o(p[1], p[1]) + o(q[1], q[1])
    Q = q[2] - o(p[1], q[1]) - o(q[1], p[1])
    cube = symmetric(o(o(p[1], p[1]), q[1])) - o(o(q[1], q[1]), q[1])
    return [q[1], Q, q[3] - symmetric(o(P, q[1])) - symmetric(o(Q, p[1])) - cube]


def euler(R: list[np.ndarray], sequence: str) -> tuple[float, list[np.ndarray]]:
    """Return the distance to gimbal lock, and G, H, D of the Euler angles of R and its derivatives."""
    fixed = sequence.islower()
    i, j, k = ("xyz".index(axis) for axis in (sequence[::-1] if fixed else sequence.lower()))

    def entry(a: int, b: int, sign: int = 1) -> list[np.ndarray]:
        # arrays come first in products: mpmath formats an array before it returns NotImplemented
        return [T[..., a, b] * sign for T in R]

    even = 1 if (j - i) % 3 == 1 else -1
    if i == k:
        other = 3 - i - j
        pairs = (entry(j, i), entry(other, i, -even)), (entry(i, j), entry(i, other, even))
        x = entry(i, i, -1)
    else:
        pairs = (entry(j, k, -even), entry(k, k)), (entry(i, j, -even), entry(i, i))
        x = entry(i, k, even)
    d, o = mp.sqrt(1 - x[0] ** 2), np.multiply.outer
    g = x[1] / d
    h = (x[2] + o(g, g) * x[0]) / d
    middle = [g, h, (x[3] + symmetric(o(h, g)) * x[0]) / d + o(o(g, g), g)]
    rows = [angle(*pairs[0]), middle, angle(*pairs[1])]
    rows = rows[::-1] if fixed else rows
    return float(d), [np.array([row[n] for row in rows]) for n in range(3)]


class Hinges:
    """Hinges through one point at a distance to the lock of a sequence: a mechanism and its reference."""

    def __init__(self, rng: np.random.Generator, sequence: str, distance: float) -> None:
        self.sequence, self.row = sequence, f"f.euler_{sequence}"
        order = sequence.lower() if sequence.isupper() else sequence[::-1]
        side = 1 if order[0] == order[2] else int(rng.choice([-1, 1]))
        lock = 0.0 if order[0] == order[2] else side * np.pi / 2
        angles = rng.uniform(-3, 3, size=3)
        angles[1] = lock + (distance if order[0] == order[2] else -side * distance)
        own, self.count = bool(rng.random() < 0.3), int(rng.choice([3, 5]))
        if own:
            axes, self.q = np.eye(3)[["xyz".index(axis) for axis in order]], angles
        else:  # the last three axes lead to the orientation, from any start
            axes, start = rng.normal(size=(self.count, 3)), rng.uniform(-3, 3, size=self.count)
            target = Rotation.from_euler(order.upper(), angles)
            base = Rotation.from_rotvec(start[:-3, None] * axes[:-3]) if self.count > 3 else []
            for R in list(base)[::-1]:
                target = R.inv() * target
            axes[-3:], start[-3:] = np.linalg.qr(axes[-3:].T)[0].T, 0.0
            start[-3:] = target.as_davenport(axes[-3:], "intrinsic")
            self.q = start
        self.axes, n = axes, len(axes)
        self.m = self.mechanism(axes)
        with mp.workdps(DIGITS):
            self.distance, self.tensors = euler(orientation(axes, self.q), sequence)
            self.inverse = invert(*self.tensors) if n == 3 else None

    @staticmethod
    def mechanism(axes: np.ndarray) -> kic.Mechanism:
        names = ["ground", *(f"b{k}" for k in range(len(axes)))]
        joints = [
            kic.Joint(f"J{k}", "revolute", (names[k], names[k + 1]), (0, 0, 0), tuple(axis))
            for k, axis in enumerate(axes)
        ]
        bodies = [kic.Body(name, mass=1, com=(0.1, 0.2, 0.3), inertia=(1, 1.5, 2)) for name in names[1:]]
        return kic.Mechanism("hinges", bodies, joints, frames=[kic.Frame("f", names[-1])])


def error(found: np.ndarray, right: np.ndarray) -> float:
    """Return the error beside the size of the tensor, or of a rotation."""
    right = rounded(right)
    return float(np.abs(found - right).max() / max(1.0, np.abs(right).max()))


def answered(ask: Callable[[], object]) -> object | None:
    """Return an answer, or None if Euler angles are too near gimbal lock."""
    try:
        return ask()
    except kic.SingularError as refused:
        return None if refused.estimate > LOST else np.nan


def errors(case: Hinges) -> dict[str, tuple[float, float, bool]]:
    """Return the error of each result, inf if it is refused, that of the law, and if this is a derivative."""
    c, made = case.m.at(case.q), {}
    size = [1.0, *(max(1.0, float(np.abs(rounded(T)).max())) for T in case.tensors)]
    bound = [LAW * EPS * case.distance ** -(k + 1) / size[k] for k in range(4)]
    joints = list(case.m.coordinates)
    for k, letter in enumerate("GHD", 1):
        worst = max(bound[1 : k + 1])
        rows = answered(lambda k=k: c.coefficients(case.row, order=k))
        f = answered(lambda k=k: case.m.prepare.coefficients([case.row], order=k)(c.state))
        assert (rows is None) == (f is None), letter
        if rows is not None:
            assert (getattr(f[case.row], letter) == getattr(rows, letter)).all()
        made[letter] = (
            np.inf if rows is None else error(getattr(rows, letter), case.tensors[k - 1]),
            worst,
        )
        if case.inverse is not None:
            law = LAW * EPS * case.distance ** -(k + 1)
            back = answered(lambda k=k: c.coefficients(joints, order=k, wrt=case.row))
            found = np.inf if back is None else error(getattr(back, letter), case.inverse[k - 1])
            made[f"{letter} of joints"] = found, law
    rate = np.linspace(0.5, -1.0, len(joints))
    motion = answered(lambda: c.motion(case.row, rate))
    if motion is not None:
        G, H, D = (rounded(T) for T in case.tensors)
        right = G @ rate, E("pmn,m,n->p", H, rate, rate), E("plmn,l,m,n->p", D, rate, rate, rate)
        for k, (found, r) in enumerate(zip(motion[1:], right, strict=True), 1):
            scale = max(1.0, np.abs(r).max())
            made[f"motion {k}"] = float(np.abs(found - r).max() / scale), LAW * EPS / case.distance ** (k + 1)
    if case.inverse is not None:
        own, A, B = c.dynamics(), *(rounded(T) for T in case.inverse[:2])
        d = answered(lambda: c.dynamics(wrt=case.row))
        f = answered(lambda: case.m.prepare.inverse_dynamics(wrt=case.row)(c.state, rate, rate[::-1]))
        assert (d is None) == (f is None)
        law = 10 * LAW * EPS / case.distance**3
        if d is None:
            made["P"] = np.inf, law / 10
        else:
            I, P = A.T @ own.I @ A, E("imn,ik,ma,nb->kab", own.P, A, A, A) + E("in,ik,nab->kab", own.I, A, B)
            made["I"] = error(d.I, exact(I)), 10 * LAW * EPS / case.distance**2
            made["P"] = error(d.P, exact(P)), law
            expected = d.inverse_dynamics(rate, rate[::-1])
            made["effort"] = float(np.abs(f - expected).max() / np.abs(expected).max()), law
    return made


def verdict(seed: int) -> tuple[str, str]:
    """Return the outcome of one random case, and its details."""
    rng = np.random.default_rng(seed)
    sequence = SEQUENCES[seed % 12]
    sequence = sequence.upper() if rng.random() < 0.5 else sequence
    case = Hinges(rng, sequence, 10 ** -rng.uniform(0.3, 9))
    found = errors(case)
    details = f"{sequence}, {len(case.axes)} hinges, {case.distance:.1e} rad: " + ", ".join(
        f"{name} {x:.0e} ({law:.0e})" for name, (x, law) in found.items()
    )
    known = {name: pair for name, pair in found.items() if np.isfinite(pair[0])}
    if any(not x <= LOST for x, _ in known.values()):
        return "wrong", details
    if any(not x <= max(law, 100 * EPS) for x, law in known.values()):
        return "beyond the law", details
    if any(np.isinf(x) and law < FALSE_SHARE * LOST for x, law in found.values()):
        return "falsely refused", details
    return ("right" if len(known) == len(found) else "partly refused" if known else "refused"), details


def search(count: int, seed: int) -> Counter[str]:
    """Return the outcomes of many cases; those that are not right or refused are printed."""
    total: Counter[str] = Counter()
    for k in range(count):
        outcome, details = verdict(seed + k)
        total[outcome] += 1
        if outcome in ("wrong", "beyond the law", "falsely refused"):
            print(seed + k, outcome, details, flush=True)
    return total


if __name__ == "__main__":
    print(dict(search(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)))
