"""Entry: I*, P*, loads and damping of the tree at a batch of configurations."""

from __future__ import annotations

from kic.kernels import layout as lay
from kic.kernels.frames import frames, motion
from kic.kernels.functions import has_nonfinite
from kic.kernels.inertia import COMPOSITE_WIDTH, add_armature, balls, christoffel, composites
from kic.kernels.jit import entry, helper
from kic.kernels.linear_map import linear_start, open_members, project_matrix, project_vector
from kic.kernels.loads import load_tables
from kic.kernels.offsets import sections


@helper
def model_tables(plan, numbers, states, applied, linear, scratch, T):
    """Compute I*, P*, T^L and damping in the coordinates of `linear`, or of the tree if it is None.

    Returns the number of members whose results are not finite.
    """
    not_finite = 0
    mobile = plan[0, lay.COLUMNS]
    (cols, geometry), _, bodies, forces, springs, rest = sections(plan, numbers)
    want, size = plan[1, lay.WANT], plan[1, lay.SIZE]
    widths = lay.FRAME_WIDTH, lay.FRAME_WIDTH + 6, lay.FRAME_WIDTH + 6 + COMPOSITE_WIDTH
    F = scratch[: mobile * widths[0]].reshape(mobile, lay.FRAME_WIDTH)
    S = scratch[mobile * widths[0] : mobile * widths[1]].reshape(mobile, 6)
    C = scratch[mobile * widths[1] : mobile * widths[2]].reshape(mobile, COMPOSITE_WIDTH)
    stretch = scratch[mobile * widths[2] : mobile * (widths[2] + 1)]
    for b in range(states.shape[0]):
        motion(cols, geometry, states, b, F)
        frames(cols, geometry, F)
        composites(cols, F, *bodies, C)
        start = 0
        if want & lay.WANT_INERTIA:
            christoffel(cols, F, S, C, linear, size, T[b])
            balls(cols, linear, size, T[b])
            add_armature(rest, mobile, linear, size, T[b])
            start = size * size * (1 + size)
        if want & lay.WANT_LOADS:
            t = T[b, start:] if linear is None else scratch[mobile * (widths[2] + 1) :]
            load_tables(cols, F, C, *forces, applied, *springs, rest, states, b, t, stretch)
            if linear is not None:
                project_vector(linear, mobile, size, t, 0, T[b], start)
                project_matrix(linear, mobile, size, t, mobile, T[b], start + size)
        if has_nonfinite(T[b]) or has_nonfinite(states[b]):
            not_finite += 1
    return not_finite


@entry
def dynamics(plan, numbers, states, applied, scratch, T):
    """Compute I* (M, M), P* (M, M, M), T^L (M,) and damping (M, M) side by side in each row of T.

    applied (B or 1, n, 3) are the forces and moments. Parts that the plan does not request are omitted from
    T. Returns the number of members whose results are not finite.
    """
    return model_tables(plan, numbers, states, applied, None, scratch, T)


@entry
def linear_dynamics(plan, numbers, states, applied, scratch, T):
    """Compute `dynamics` in coordinates q with φ - φ₀ = A (q - q₀).

    Returns the number of members whose results are not finite, plus those whose couplings do not hold.
    """
    linear = plan[linear_start(plan, plan) :], numbers[linear_start(plan, numbers) :]
    doubtful = model_tables(plan, numbers, states, applied, linear, scratch, T)
    return doubtful + open_members(plan, linear[0], linear[1], states)
