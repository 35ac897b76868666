"""Entry: I*, P*, loads and damping of the tree at a batch of configurations."""

from __future__ import annotations

from kic.kernels.frames import frames, motion
from kic.kernels.functions import unbounded
from kic.kernels.inertia import COMPOSITE_WIDTH, add_armature, balls, christoffel, composites
from kic.kernels.jit import entry
from kic.kernels.layout import (
    BODIES,
    COLUMNS,
    FORCES,
    FRAME_WIDTH,
    HEADER,
    SPRINGS,
    WANT,
    WANT_INERTIA,
    WANT_LOADS,
)
from kic.kernels.loads import load_tables
from kic.kernels.offsets import section


@entry
def dynamics(plan, numbers, states, applied, scratch, T):
    """Compute I* (M, M), P* (M, M, M), T^L (M,) and damping (M, M) side by side in each row of T.

    applied (B or 1, n, 3) are the forces and moments. Parts that the plan does not request are omitted from
    T. Returns the number of members whose results are not finite.
    """
    strange = 0
    mobile = plan[0, COLUMNS]
    cols, geometry = plan[HEADER : HEADER + mobile], numbers[:mobile]
    start, stop = section(plan, BODIES)
    bodies, inertias = plan[HEADER + start : HEADER + stop], numbers[start:stop]
    start, stop = section(plan, FORCES)
    forces, places = plan[HEADER + start : HEADER + stop], numbers[start:stop]
    start, stop = section(plan, SPRINGS)
    springs, coils = plan[HEADER + start : HEADER + stop], numbers[start:stop]
    rest = numbers[stop:]
    want, size = plan[1, WANT], mobile
    widths = FRAME_WIDTH, FRAME_WIDTH + 6, FRAME_WIDTH + 6 + COMPOSITE_WIDTH
    F = scratch[: size * widths[0]].reshape(size, FRAME_WIDTH)
    S = scratch[size * widths[0] : size * widths[1]].reshape(size, 6)
    C = scratch[size * widths[1] : size * widths[2]].reshape(size, COMPOSITE_WIDTH)
    stretch = scratch[size * widths[2] : size * (widths[2] + 1)]
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        composites(cols, F, bodies, inertias, C)
        start = 0
        if want & WANT_INERTIA:
            christoffel(cols, F, S, C, T[b])
            balls(cols, T[b])
            add_armature(rest, size, T[b])
            start = size * size * (1 + size)
        if want & WANT_LOADS:
            t = T[b, start:]
            load_tables(cols, F, C, forces, places, applied, springs, coils, rest, states, b, t, stretch)
        if unbounded(T[b]):
            strange += 1
    return strange
