"""Coefficients of planar linkages and of a platform on legs with 60 digits, from their geometry alone."""

from __future__ import annotations

from functools import cached_property

import mpmath as mp
import numpy as np

import kic
from kic.mechanism.configuration import Configuration, displacement

mp.mp.dps = 60
E = np.einsum


def exact(x: object) -> np.ndarray:
    """Return floats as multiple-precision numbers, without rounding."""
    numbers = np.asarray(x)
    return np.array([mp.mpf(v) for v in numbers.ravel().tolist()], dtype=object).reshape(numbers.shape)


def zeros(*shape: int) -> np.ndarray:
    return exact(np.zeros(shape))


def rounded(T: np.ndarray) -> np.ndarray:
    return T.astype(float)


def inverse(G: np.ndarray) -> np.ndarray:
    return np.array((mp.matrix(G.tolist()) ** -1).tolist(), dtype=object)


def invert(G: np.ndarray, H: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coefficients of the inverse map, order by order, from composition to the identity."""
    A = inverse(G)
    B = -E("ip,pmn,ma,nb->iab", A, H, A, A, optimize=True)
    both = E("pmn,mca,nb->pcab", H, B, A, optimize=True) + E("pmn,ma,ncb->pcab", H, A, B, optimize=True)
    both = both + E("pln,lc,nab->pcab", H, A, B, optimize=True)
    third = E("plmn,lc,ma,nb->pcab", D, A, A, A, optimize=True) + both
    return A, B, -E("ip,pcab->icab", A, third)


class Linkage:
    """A planar loop of bars from pivot to pivot, all joints revolute, in exact arithmetic.

    Its unknowns are the rotations of the bars from the reference configuration.
    """

    def __init__(self, m: kic.Mechanism, joints: str) -> None:
        places = {j.name: exact(j.at[:2]) for j in m.joints}
        at = [places[name] for name in joints]
        self.names = joints
        self.vectors = np.diff(at, axis=0)
        self.ground = at[-1] - at[0]
        self.drawn = m.at()

    def start(self, c: Configuration) -> np.ndarray:
        """Return the rotations of the bars in a configuration, in floats."""
        bars = [next(j for j in c._model.description.joints if j.name == name) for name in self.names[:-1]]
        poses = [displacement(c, j.bodies[1]) for j in bars]
        return np.array([np.arctan2(T[1, 0], T[0, 0]) for T in poses])

    def tensors(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the closure error of the chain, and its G, H, D."""
        n = len(x)
        cosine, sine = np.vectorize(mp.cos)(x), np.vectorize(mp.sin)(x)
        u, v = self.vectors.T
        end = np.array([cosine * u - sine * v, sine * u + cosine * v])
        across = np.array([-end[1], end[0]])
        G, H, D = across, zeros(2, n, n), zeros(2, n, n, n)
        k = np.arange(n)
        H[:, k, k], D[:, k, k, k] = -end, -across
        return end.sum(axis=1) - self.ground, G, H, D

    def closed(self, x: np.ndarray, held: dict[int, object]) -> np.ndarray:
        """Return the rotations of all bars, some of them held, from floats nearby."""
        x, free = exact(x), [k for k in range(len(x)) if k not in held]
        for k, value in held.items():
            x[k] = value
        for _ in range(8):
            gap, G, *_ = self.tensors(x)
            x[free] = x[free] - inverse(G[:, free]) @ gap
        return x

    def coefficients(self, x: np.ndarray, chosen: list[int]) -> list[np.ndarray]:
        """Return G, H, D of all rotations with respect to the selected ones."""
        _, G, H, D = self.tensors(x)
        m, n = len(chosen), len(x)
        rows = zeros(m, n)
        rows[np.arange(m), chosen] = mp.mpf(1)
        tops = rows, zeros(m, n, n), zeros(m, n, n, n)
        stacked = [np.concatenate([top, T]) for top, T in zip(tops, (G, H, D), strict=True)]
        A, B, C = invert(*stacked)
        return [A[:, :m], B[:, :m, :m], C[:, :m, :m, :m]]


class Platform:
    """A platform on six legs, each from a point of ground to one of the platform, in exact arithmetic."""

    def __init__(self, m: kic.Mechanism) -> None:
        at = {j.name: exact(j.at) for j in m.joints if j.at}
        self.feet = np.array([at[f"U{k}"] for k in range(1, 7)])
        self.heads = np.array([at[f"S{k}"] for k in range(1, 7)])
        self.eye = exact(next(p.at for p in m.points if p.name == "eye"))

    @cached_property
    def _turns(self) -> list[np.ndarray]:
        """Return the coefficients of 1, r_a, r_a r_b and r_a r_b r_c of a rotation by r."""
        J = zeros(3, 3, 3)
        for a in range(3):
            J[a] = exact(np.cross(np.eye(3)[a], np.eye(3)).T)
        two = E("aij,bjk->abik", J, J)
        three = E("abik,ckl->abcil", two, J)
        orders = [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)]
        return [J, (two + two.swapaxes(0, 1)) / 2, sum(three.transpose(*o, 3, 4) for o in orders) / 6]

    def moved(self, T: np.ndarray, points: np.ndarray) -> list[np.ndarray]:
        """Return positions (N, 3) of points at a pose, and coefficients (N, 3, 6, …) in a displacement."""
        T = exact(T)
        arms = points @ T[:3, :3].T
        made = [arms + T[:3, 3]]
        for order, turn in enumerate(self._turns, 1):
            t = np.moveaxis(E("...ij,nj->n...i", turn, arms), -1, 1)
            whole = zeros(len(points), 3, *(6,) * order)
            whole[(..., *(slice(3, 6),) * order)] = t
            if order == 1:
                whole[:, :, :3] = exact(np.eye(3))
            made.append(whole)
        return made

    def legs(self, T: np.ndarray) -> list[np.ndarray]:
        """Return the lengths of the legs at a pose, and their G, H, D in a small displacement."""
        P, P1, P2, P3 = self.moved(T, self.heads)
        P = P - self.feet
        L = np.vectorize(mp.sqrt)(E("ni,ni->n", P, P))
        # L² = P·P: L G = P·P', and so on
        by = lambda T: T / L.reshape(-1, *(1,) * (T.ndim - 1))  # noqa: E731
        G = by(E("ni,nia->na", P, P1))
        H = by(E("nia,nib->nab", P1, P1) + E("ni,niab->nab", P, P2) - E("na,nb->nab", G, G))
        D = E("nia,nibc->nabc", P1, P2) - E("na,nbc->nabc", G, H)
        D = D + D.transpose(0, 2, 1, 3) + D.transpose(0, 2, 3, 1)
        return [L, G, H, by(D + E("ni,niabc->nabc", P, P3))]

    def eye_of_legs(self, T: np.ndarray) -> list[np.ndarray]:
        """Return G, H, D of the point `eye` with respect to the leg lengths."""
        _, p, q, r = self.moved(T, self.eye[None])
        p, q, r = p[0], q[0], r[0]
        A, B, C = invert(*self.legs(T)[1:])
        D = E("plmn,lc,ma,nb->pcab", r, A, A, A, optimize=True) + E("pn,ncab->pcab", p, C)
        D = D + E("pmn,mca,nb->pcab", q, B, A, optimize=True) + E("pmn,ma,ncb->pcab", q, A, B, optimize=True)
        D = D + E("pln,lc,nab->pcab", q, A, B, optimize=True)
        return [p @ A, E("pmn,ma,nb->pab", q, A, A, optimize=True) + E("pn,nab->pab", p, B), D]
