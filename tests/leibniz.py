"""Leibniz' and Faà di Bruno's rules in general form: a reference for kernels that apply them in special ways.

A jet is a list: the value of a scalar or vector, its derivatives (m, …) by m variables, (m, m, …) and so on,
with the outermost differentiation first. The values of coordinates and angular velocities are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from math import factorial

import numpy as np

from kic.kernels import layout as lay
from kic.kernels.frames import frames, motion
from kic.kernels.transferred_influence import axis_carrier
from kic.kinematics.items import Item
from kic.kinematics.tree import Tree

Jet = list[np.ndarray]


def leibniz(op: Callable, x: Jet, y: Jet, order: int, is_rate: bool = False) -> np.ndarray:
    """Return a derivative of op(x, y); that of a rate x and a value y is its innermost differentiation."""

    def spread(a: np.ndarray, places: Sequence[int]) -> np.ndarray:
        shape = np.ones(order, dtype=int)
        shape[[*places]] = a.shape[: len(places)]
        return a.reshape((*shape, *a.shape[len(places) :]))

    own, made = [order - 1] * is_rate, 0.0
    for n in range(order + 1 - is_rate):
        for places in combinations(range(order - is_rate), n):
            rest = [k for k in range(order - is_rate) if k not in places]
            made = made + op(spread(x[n + is_rate], [*places, *own]), spread(y[len(rest)], rest))
    return np.asarray(made)


def dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the product of vectors along the last axis."""
    return (x * y).sum(axis=-1)


def total(terms: Iterable[Jet]) -> Jet:
    """Return the sum of jets."""
    return [sum(parts) for parts in zip(*terms, strict=True)]  # type: ignore[misc]


def chain(f: Sequence[complex], y: Jet) -> Jet:
    """Return the jet of f(y), from the value and derivatives of f and the jet of a scalar y."""
    made = [np.asarray(f[0]), f[1] * y[1]]
    if len(y) > 2:
        a, b = y[1][:, None], y[1]
        made.append(f[1] * y[2] + f[2] * a * b)
    if len(y) > 3:
        mixed = y[2][:, :, None] * b + y[2][:, None, :] * a + y[2] * a[:, None]
        made.append(f[1] * y[3] + f[2] * mixed + f[3] * a[:, None] * a * b)
    return made


def root(y: Jet) -> Jet:
    """Return the jet of a square root."""
    s = y[0] ** 0.5
    return chain([s, 1 / (2 * s), -1 / (4 * s**3), 3 / (8 * s**5)], y)


def angle(s: Jet, c: Jet) -> Jet:
    """Return the jet of Im log(c + i s), the angle with sine s and cosine c, times any length."""
    z = [b + 1j * a for a, b in zip(s, c, strict=True)]
    f = [np.log(z[0]), *[-factorial(k - 1) / (-z[0]) ** k for k in (1, 2, 3)]]
    return [a.imag for a in chain(f, z)]


class Frames:
    """Jets of the frames of a tree at one state (1, S), from the derivatives (M, m, …) of its columns."""

    def __init__(self, tree: Tree, state: np.ndarray, columns: Sequence[np.ndarray]) -> None:
        cols, size, self.order = tree.cols, tree.size, len(columns)
        F = np.zeros((size, lay.FRAME_WIDTH))
        motion(cols, tree.geometry, state, 0, F)
        frames(cols, tree.geometry, F)
        # the last frame, of index -1, is the ground
        self.origins = np.concatenate([F[:, lay.ORIGIN : lay.ORIGIN + 3], np.zeros((1, 3))])
        self.axes = [*F[:, lay.ROTATION : lay.ROTATION + 9].reshape(-1, 3, 3), np.eye(3)]
        self.columns = [[np.zeros(()), *[a[n] for a in columns]] for n in range(size)]
        still = [np.zeros((*columns[0].shape[1:] * k, 3)) for k in range(self.order + 1)]
        W, O = [still.copy() for _ in range(size + 1)], [still.copy() for _ in range(size + 1)]
        S = [[F[n, lay.AXIS : lay.AXIS + 3]] for n in range(size)]
        E = [[self.origins[n] - self.origins[cols[n, lay.PARENT]]] for n in range(size)]

        def along(x: np.ndarray, s: np.ndarray) -> np.ndarray:
            return x[..., None] * s

        for k in range(1, self.order + 1):
            for n, parent in enumerate(cols[:, lay.PARENT]):
                E[n].append(leibniz(np.cross, W[parent], E[n], k, True))
                W[n][k], O[n][k] = W[parent][k], O[parent][k] + E[n][k]
                if cols[n, lay.KIND] == lay.PRISMATIC:
                    O[n][k] = O[n][k] + leibniz(along, self.columns[n], [*S[n], np.zeros_like(still[k])], k)
                else:
                    W[n][k] = W[n][k] + leibniz(along, self.columns[n], S[n], k, True)
            for n in range(size):
                S[n].append(leibniz(np.cross, W[axis_carrier(cols, n)], S[n], k, True))
        self.turning, self.places = W, O

    def direction(self, frame: int, local: Sequence[float]) -> Jet:
        """Return the jet of a vector that a frame carries, given in its axes."""
        made = [self.axes[frame] @ local]
        for k in range(1, self.order + 1):
            made.append(leibniz(np.cross, self.turning[frame], made, k, True))
        return made

    def point(self, frame: int, local: Sequence[float]) -> Jet:
        """Return the jet of a point that a frame carries, given in its axes."""
        return total([self.direction(frame, local), [self.origins[frame], *self.places[frame][1:]]])

    def rows(self, items: Iterable[Item]) -> list[Jet]:
        """Return the jet of each row of items."""
        made, terms = list[Jet](), list[list[Jet]]()
        for item in items:
            terms.append(self._rows(item, made))
            if not item.has_next_term:
                made += [total(same) for same in zip(*terms, strict=True)]
                terms.clear()
        return made

    def _rows(self, item: Item, before: list[Jet]) -> list[Jet]:
        """Return the jets of the rows of one item, some of which depend on the rows before it."""
        kind, b, a = item.kind, item.frame_b, item.frame_a

        def product(x: Jet, y: Jet, is_rate: bool = False) -> Jet:
            orders = range(is_rate, self.order + 1)
            return [np.zeros(())] * is_rate + [leibniz(dot, x, y, k, is_rate) for k in orders]

        def scaled(jet: Jet, factor: float) -> Jet:
            return [factor * x for x in jet]

        def components(jet: Jet) -> list[Jet]:
            return [[x[..., c] for x in jet] for c in range(3)]

        if kind == lay.COORDINATE:
            return [self.columns[b]]
        if kind == lay.LINEAR_TERM:
            return [scaled(self.columns[b], item.extra[0])]
        if kind == lay.PLANE_ANGLE:
            return [[dot(x, np.array(item.extra)) for x in self.turning[b]]]
        if kind == lay.ANGLE:
            return [angle(*before[-2:])]
        if kind in (lay.ARCSINE, lay.NORM):
            pair = before[-4:-2] if kind == lay.ARCSINE else before[-2:]
            norm = root(total([[leibniz(np.multiply, y, y, k) for k in range(len(y))] for y in pair]))
            return [angle(before[-1], norm) if kind == lay.ARCSINE else norm]
        if kind == lay.DIRECTION:
            return components(self.direction(b, item.local_b))
        if kind == lay.DOT1:
            return [product(self.direction(a, item.local_a), self.direction(b, item.local_b))]
        carriers = [b] if a == lay.NONE else [b, a]
        if kind in (lay.OMEGA, lay.RELATIVE_OMEGA):
            jets = [self.turning[frame] for frame in carriers]
        else:
            jets = [
                self.point(frame, x) for frame, x in zip(carriers, (item.local_b, item.local_a), strict=False)
            ]
        made = total([jets[0], *[scaled(jet, -1) for jet in jets[1:]]])
        if kind == lay.DISTANCE:
            return [root(product(made, made))]
        if kind == lay.DOT2:
            return [product(made, self.direction(a, item.extra))]
        if kind == lay.RELATIVE_OMEGA:
            return [product(made, self.direction(a, item.extra), True)]
        return components(scaled(made, item.extra[0]) if kind == lay.WEIGHTED_POINT else made)
