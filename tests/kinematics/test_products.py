"""The generalized products against index sums by hand, the definitions of the source, and its identities."""

import doctest
from itertools import product

import numpy as np
import pytest
import sympy

from kic.errors import InputError
from kic.kinematics import products
from kic.kinematics.products import bilinear, cross, dot, form, quadratic

BATCHES = [(), (1,), (3, 1, 2), (0,)]
SCALARS = [float, complex, object]
# objects are polynomials, whose sums and products are exact and expanded; other tests use SymPy expressions
SYMBOLS = sympy.ring("x:20", sympy.ZZ)[1:]
EPSILON = {  # of the cross product, so that no test leans on np.cross
    (0, 1, 2): 1, (1, 2, 0): 1, (2, 0, 1): 1, (0, 2, 1): -1, (2, 1, 0): -1, (1, 0, 2): -1,
}  # fmt: skip


def sample(seed, shape, scalar=float):
    """Numbers of the scalar type; the objects of each seed are polynomials in a symbol of their own."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=shape)
    if scalar is complex:
        return a + 1j * rng.normal(size=shape)
    if scalar is object:
        a = np.empty(shape, object)
        for i in np.ndindex(shape):
            a[i] = int(rng.integers(-9, 10)) + SYMBOLS[seed] * int(rng.integers(1, 5))
    return a


def same(given, wanted, scalar=float):
    """Assert equal shape, scalar type and entries; objects exactly."""
    assert type(given) is np.ndarray
    assert given.shape == wanted.shape
    assert given.dtype == np.dtype(scalar)
    if scalar is object:
        assert all(a == b for a, b in zip(given.flat, wanted.flat, strict=True))
    elif wanted.size:
        assert np.abs(given - wanted).max() <= 1e-14 * max(1.0, np.abs(wanted).max())


def members(batch, *arrays):
    """For each member of the broadcast batch, its index and the members of the arrays (array, rank)."""
    whole = [np.broadcast_to(a, batch + a.shape[a.ndim - rank :]) for a, rank in arrays]
    for b in np.ndindex(batch):
        yield b, [a[b] for a in whole]


def sums(shape, entry, scalar=float):
    """The array of entry(*index), each a generator to sum."""
    out = np.zeros(shape, scalar)
    for index in np.ndindex(shape):
        out[index] = sum(entry(*index), start=0 * out[index])
    return out


def stacked(batch, shape, scalar, arrays, entry):
    """Return `sums` for every member of a batch; `entry` takes the arrays of the member, then the index."""
    out = np.zeros(batch + shape, scalar)
    for b, own in members(batch, *arrays):
        out[b] = sums(shape, lambda *index, own=own: entry(*own, *index), scalar)
    return out


def split(batch):
    """A batch as two that broadcast to it: the first lacks every second axis."""
    thin = tuple(1 if i % 2 else n for i, n in enumerate(batch))
    return [(batch, batch), (batch, ()), ((), batch), (thin, batch), (batch, thin)]


def turned(v):
    """The rows of the matrix v×, by hand."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


# ------------------------------------------------------------------------------------- sums by hand


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_dot(order, batch, scalar):
    tail = (4, 3, 2, 3)[-order:] if scalar is not object else (2, 1, 2, 1)[-order:]
    for a, t in split(batch):
        A, T = sample(1, (*a, 2, 3), scalar), sample(2, (*t, 3, *tail), scalar)
        wanted = stacked(
            batch, (2, *tail), scalar, [(A, 2), (T, 1 + order)],
            lambda A, T, p, *rest: (A[p, n] * T[(n, *rest)] for n in range(3)),
        )  # fmt: skip
        same(dot(A, T, order=order), wanted, scalar)
        if order == 2:
            same(dot(A, T), wanted, scalar)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("batch", BATCHES)
def test_cross(batch, scalar):
    for a, b in split(batch):
        A, B = sample(3, (*a, 3, 4), scalar), sample(4, (*b, 3, 2), scalar)
        wanted = stacked(
            batch, (4, 3, 2), scalar, [(A, 2), (B, 2)],
            lambda A, B, m, i, k: (s * A[j, m] * B[l, k] for (h, j, l), s in EPSILON.items() if h == i),
        )  # fmt: skip
        same(cross(A, B), wanted, scalar)
        same(cross(A, B, order=1), wanted, scalar)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("batch", BATCHES)
def test_cross_with_a_vector(batch, scalar):
    for a, b in split(batch):
        A, B = sample(5, (*a, 3, 4), scalar), sample(6, (*b, 3), scalar)
        wanted = stacked(
            batch, (3, 4), scalar, [(A, 2), (B, 1)],
            lambda A, B, i, m: (s * A[j, m] * B[l] for (h, j, l), s in EPSILON.items() if h == i),
        )  # fmt: skip
        same(cross(A, B, order=0), wanted, scalar)
        # The vector as one column gives the same numbers, as planes.
        same(cross(A, B[..., None])[..., 0].swapaxes(-1, -2), wanted, scalar)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("K", [1, 2, 3])
def test_quadratic(K, batch, scalar):
    for c, d in split(batch):
        C, D = sample(7, (*c, 3, 2, 2), scalar), sample(8, (*d, 2, K), scalar)
        wanted = stacked(
            batch, (3, K, K), scalar, [(C, 3), (D, 2)],
            lambda C, D, n, j, k: (C[n, a, b] * D[a, j] * D[b, k] for a, b in product(range(2), repeat=2)),
        )  # fmt: skip
        same(quadratic(C, D), wanted, scalar)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("batch", BATCHES)
def test_bilinear(batch, scalar):
    for c, s in split(batch):
        C = sample(9, (*c, 2, 3, 2), scalar)
        L, R = sample(10, (*s, 3, 1), scalar), sample(11, (*batch, 2, 3), scalar)
        arrays = [(C, 3), (L, 2), (R, 2)]
        both = stacked(
            batch, (2, 1, 3), scalar, arrays,
            lambda C, L, R, n, j, k: (C[n, a, b] * L[a, j] * R[b, k] for a, b in product(range(3), range(2))),
        )  # fmt: skip
        left = stacked(
            batch, (2, 1, 2), scalar, arrays,
            lambda C, L, R, n, j, b: (C[n, a, b] * L[a, j] for a in range(3)),
        )  # fmt: skip
        right = stacked(
            batch, (2, 3, 3), scalar, arrays,
            lambda C, L, R, n, a, k: (C[n, a, b] * R[b, k] for b in range(2)),
        )  # fmt: skip
        same(bilinear(C, L, R), both, scalar)
        same(np.broadcast_to(bilinear(C, L, None), left.shape).copy(), left, scalar)
        same(bilinear(C, None, R), right, scalar)


def test_the_batches_of_the_two_sides_broadcast_with_each_other():
    C, L, R = sample(1, (2, 3, 3)), sample(2, (4, 1, 3, 2)), sample(3, (5, 3, 1))
    given = bilinear(C, L, R)
    assert given.shape == (4, 5, 2, 2, 1)
    for i, j in np.ndindex(4, 5):
        same(given[i, j], bilinear(C, L[i, 0], R[j]))


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(
    "opened", [o for k in (1, 2, 3) for o in product((False, True), repeat=k) if not all(o)]
)
def test_form(opened, batch, scalar):
    sizes = (3, 2, 2)[: len(opened)]
    kept = tuple(m for m, o in zip(sizes, opened, strict=True) if o)
    for t, v in split(batch):
        T = sample(12, (*t, 2, *sizes), scalar)
        vectors = [sample(13 + i, (*(batch if i else v), m), scalar) for i, m in enumerate(sizes)]

        def entry(T, *rest, opened=opened, sizes=sizes, kept=kept):
            own, (n, *free) = rest[: len(sizes)], rest[len(sizes) :]
            for index in product(*(range(m) for m in sizes)):
                if [i for i, o in zip(index, opened, strict=True) if o] == free:
                    x = T[(n, *index)]
                    for i, u, o in zip(index, own, opened, strict=True):
                        x = x if o else x * u[i]
                    yield x

        wanted = stacked(batch, (2, *kept), scalar, [(T, 1 + len(sizes)), *((u, 1) for u in vectors)], entry)
        given = form(T, *(None if o else u for u, o in zip(vectors, opened, strict=True)))
        same(np.broadcast_to(given, wanted.shape).copy(), wanted, scalar)


# ------------------------------------------------------------------------ Appendix A as it is written


def test_appendix_a_quadratic_of_a_matrix():
    C, D = sample(1, (4, 3, 3)), sample(2, (3, 2))
    same(quadratic(C, D), np.array([D.T @ C[n] @ D for n in range(4)]))


def test_appendix_a_quadratic_of_a_vector():
    C, b = sample(1, (4, 3, 3)), sample(2, 3)
    same(form(C, b, b), np.array([b @ C[n] @ b for n in range(4)]))
    same(quadratic(C, b[:, None])[:, 0, 0], form(C, b, b))


def test_appendix_a_dot():
    A, C, b = sample(1, (2, 4)), sample(2, (4, 3, 3)), sample(3, 3)
    row = A[0, 0] * C[0] + A[0, 1] * C[1] + A[0, 2] * C[2] + A[0, 3] * C[3]
    same(dot(A[:1], C), row[None])
    same(dot(A, C)[0], row)
    same(A @ form(C, b, b), form(dot(A, C), b, b))  # section 4: the vectors go outside


def test_dot_goes_inside_and_outside_of_every_other_product():
    A, B = sample(1, (2, 4)), sample(2, (5, 2))
    C, D, X, u = sample(3, (4, 3, 3)), sample(4, (4, 3, 3, 3)), sample(5, (3, 2)), sample(6, 3)
    same(dot(A, quadratic(C, X)), quadratic(dot(A, C), X))
    same(dot(A, bilinear(C, X, None)), bilinear(dot(A, C), X, None))
    same(dot(A, form(D, u, None, None)), form(dot(A, D, order=3), u, None, None))
    same(dot(B, dot(A, C)), dot(B @ A, C))
    same(dot(np.eye(4), C), C)
    same(quadratic(quadratic(C, X), sample(7, (2, 3))), quadratic(C, X @ sample(7, (2, 3))))


@pytest.mark.parametrize("batch", BATCHES)
def test_the_momentum_term_2_186(batch):
    G, II, H, qd = sample(1, (*batch, 3, 4)), sample(2, (3, 3)), sample(3, (*batch, 3, 4, 4)), sample(4, 4)
    inside = G.swapaxes(-1, -2) @ II @ form(H, qd, qd)[..., None]
    same(form(dot(G.swapaxes(-1, -2) @ II, H), qd, qd), inside[..., 0])


# -------------------------------------------------- a chain of revolute joints and the source's identities


def spherical(axes, phi):
    """Axes (3, M) of revolute joints through one point, by Rodrigues' rotations, with their H by the rule."""
    M = len(phi)
    R, G, H = np.eye(3), np.zeros((3, M), phi.dtype), np.zeros((3, M, M), phi.dtype)
    for n, (axis, x) in enumerate(zip(axes, phi, strict=True)):
        G[:, n] = R @ axis
        K = turned(axis)
        R = R @ (np.eye(3) + np.sin(x) * K + (1 - np.cos(x)) * K @ K)
        for m in range(n):
            H[:, m, n] = turned(G[:, m]) @ G[:, n]
    return G, H


def random_arm(seed, M):
    """Return an arm with unit axes, and a configuration."""
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(M, 3))
    return axes / np.linalg.norm(axes, axis=1)[:, None], rng.normal(size=M)


def chain(seed, M=5):
    """G and H of a spherical chain; H is the complex step of G, which is checked here."""
    axes, phi = random_arm(seed, M)
    G, H = spherical(axes, phi)
    for m in range(M):
        step = spherical(axes, phi + 1e-30j * np.eye(M)[m])[0].imag / 1e-30
        assert np.abs(step - H[:, m]).max() < 1e-14
    return G, H


def orthogonal(seed, M=6):
    """The same for axes that are three perpendicular ones again and again."""
    frame = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    G = np.concatenate([frame] * M, axis=1)[:, :M]
    H = np.zeros((3, M, M))
    for m, n in product(range(M), repeat=2):
        if m < n:
            H[:, m, n] = turned(G[:, m]) @ G[:, n]
    return G, H


CHAINS = [lambda: chain(0), lambda: chain(1, 3), lambda: chain(2, 1), lambda: orthogonal(0)]


@pytest.fixture(params=CHAINS)
def arm(request):
    G, H = request.param()
    rng = np.random.default_rng(7)
    II = rng.normal(size=(3, 3))
    return G, H, II + II.T, rng.normal(size=G.shape[1])


def test_the_two_orders_of_differentiation_differ_by_the_cross_product(arm):
    G, H, _, _ = arm
    same(np.moveaxis(H - H.swapaxes(-1, -2), 0, 1), cross(G, G))  # H_mn − H_nm = g_m × g_n


def test_2_169_columns_of_a_rotation():
    G, _ = chain(3)
    T = np.linalg.qr(sample(5, (3, 3)))[0]
    same(cross(G, T), np.array([turned(g) @ T for g in G.T]))


def test_2_172_columns(arm):
    G, _, II, qd = arm
    b = II @ G @ qd
    same(cross(G, b, order=0), np.array([turned(g) @ b for g in G.T]).T)


def test_2_178(arm):
    G, H, _, qd = arm
    same(form(H, None, qd) - cross(G, G @ qd, order=0), form(H, qd, None))
    same(form(H, None, qd), qd @ H.swapaxes(-1, -2))
    same(form(H, qd, None), qd @ H)


def test_2_179_to_2_181(arm):
    G, H, _, qd = arm
    same(cross(G, G @ qd, order=0) @ qd, np.zeros(3))
    same(form(H.swapaxes(-1, -2), qd, qd), form(H, qd, qd))


def test_2_184_euler(arm):
    G, _, II, qd = arm
    omega = G @ qd
    same(cross(G, II @ omega, order=0) @ qd, turned(omega) @ II @ omega)


def test_2_189(arm):
    G, _, II, qd = arm
    L = II @ G @ qd
    given = G.T @ cross(G, L, order=0)
    g = G.T
    same(given, np.array([[g[m] @ turned(g[n]) @ L for n in range(len(g))] for m in range(len(g))]))
    same(given, np.array([[L @ turned(g[m]) @ g[n] for n in range(len(g))] for m in range(len(g))]))
    same(given, bilinear(cross(G, G), L[:, None], None)[:, 0])  # (L)ᵀ([G]ᵀ × [G])


def test_2_190(arm):
    G, _, _, _ = arm
    same(cross(G, G), np.array([turned(g) @ G for g in G.T]))


def test_2_191(arm):
    G, _, II, qd = arm
    left = G.T @ cross(G, II @ G @ qd, order=0) @ qd
    same(form(bilinear(cross(G, G), II @ G, None), qd, qd), left)
    same(left, G.T @ turned(G @ qd) @ II @ G @ qd)


def test_the_jerk_of_the_angular_velocity():
    """ω⃛ of a spherical chain, (2-44) as corrected, against the complex step of ω̈ along a path."""
    axes, q = random_arm(4, 4)
    G, H = spherical(axes, q)
    D = np.zeros((3, 4, 4, 4))  # d_lmn = derivative of s_m × s_n along l, for m < n
    for l, m, n in product(range(4), repeat=3):
        if m < n:
            D[:, l, m, n] = turned(H[:, l, m]) @ G[:, n] + turned(G[:, m]) @ H[:, l, n]
    v, a, j = np.random.default_rng(3).normal(size=(3, 4))
    t = 1e-30j
    Gt, Ht = spherical(axes, q + v * t)
    at, vt = a + j * t, v + a * t
    wanted = (Gt @ at + form(Ht, vt, vt)).imag / 1e-30
    same(G @ j + form(H, a, v) + 2 * form(H, v, a) + form(D, v, v, v), wanted)
    assert np.abs(2 * form(H, a, v) + form(H, v, a) - form(H, a, v) - 2 * form(H, v, a)).max() > 0.1


# ------------------------------------------------------------------------------------ degenerate samples


def test_zero_vectors_and_zero_sizes():
    same(dot(np.zeros((0, 3)), np.ones((3, 2, 2))), np.zeros((0, 2, 2)))
    same(dot(np.zeros((2, 0)), np.zeros((0, 3, 3))), np.zeros((2, 3, 3)))  # nothing to sum is zero
    same(dot(np.zeros((2, 3)), np.zeros((3, 0, 0))), np.zeros((2, 0, 0)))
    same(cross(np.zeros((3, 2)), np.ones((3, 1))), np.zeros((2, 3, 1)))
    same(cross(np.zeros((3, 0)), np.ones((3, 2))), np.zeros((0, 3, 2)))
    same(cross(np.ones((3, 2)), np.zeros((3, 0))), np.zeros((2, 3, 0)))
    same(cross(np.zeros((3, 0)), np.ones(3), order=0), np.zeros((3, 0)))
    same(cross(np.ones((3, 2)), np.ones((3, 2))), np.zeros((2, 3, 2)))  # parallel
    same(quadratic(np.zeros((0, 2, 2)), np.ones((2, 3))), np.zeros((0, 3, 3)))
    same(quadratic(np.zeros((2, 0, 0)), np.zeros((0, 3))), np.zeros((2, 3, 3)))
    same(bilinear(np.ones((1, 2, 3)), np.zeros((2, 0)), None), np.zeros((1, 0, 3)))
    same(form(np.ones((2, 3, 3)), np.zeros(3), np.ones(3)), np.zeros(2))
    same(form(np.zeros((2, 0, 0)), np.zeros(0), np.zeros(0)), np.zeros(2))
    same(form(np.zeros((0, 3, 3)), np.ones(3), np.ones(3)), np.zeros(0))


def test_objects_with_nothing_to_sum_give_zero():
    empty = np.zeros((2, 0), object)
    assert dot(empty, empty.T, order=1).tolist() == [[0, 0], [0, 0]]
    assert form(empty, np.zeros(0)).tolist() == [0, 0]


def test_lists_and_mixed_scalars():
    assert dot([[1, 2]], [[[3]], [[4]]]).tolist() == [[[11]]]
    assert dot(np.ones((1, 2), np.float32), np.ones((2, 1, 1), np.float32)).dtype == np.float32
    assert dot([[1.0, 2.0]], [[[1j]], [[1]]]).dtype == complex
    x, y, z = sympy.symbols("x y z")
    assert cross(sympy.Matrix([1, 0, 0]), [x, y, z], order=0).tolist() == [[0], [-z], [y]]
    assert cross(np.eye(3, dtype=int), sympy.Matrix([x, y, z])).dtype == object


def test_transposes_do_not_conjugate():
    C, D = np.array([[[1.0 + 0j]]]), np.array([[1j]])
    assert quadratic(C, D)[0, 0, 0] == -1
    assert bilinear(C, D, D)[0, 0, 0] == -1
    assert form(C, D[0], D[0])[0] == -1


def test_views_and_read_only_arrays():
    C, D = sample(1, (3, 3, 4)).transpose(2, 1, 0), sample(2, (4, 3))[::2].T
    C.setflags(write=False)
    kept = C.copy(), D.copy()
    same(quadratic(C, D), quadratic(C.copy(), D.copy()))
    same(dot(D.T[:, [0, 1, 2, 0]], C), dot(D.T[:, [0, 1, 2, 0]].copy(), C.copy()))
    assert (kept[0] == C).all()
    assert (kept[1] == D).all()


# -------------------------------------------------------------------------------------------------- errors

Z = np.zeros
WRONG = {
    "dot A": (lambda: dot(Z(3), Z((3, 2, 2))), "`A` must have shape (..., P, N), got (3,)."),
    "dot T": (
        lambda: dot(Z((2, 3)), Z((2, 4, 4))),
        "`T` must have shape (..., 3, M, K) to match `A` of shape (..., P, 3), got (2, 4, 4).",
    ),
    "dot T rank": (
        lambda: dot(Z((2, 3)), Z((3, 4))),
        "`T` must have shape (..., 3, M, K) to match `A` of shape (..., P, 3), got (3, 4).",
    ),
    "dot order 1": (
        lambda: dot(Z((2, 3)), Z(3), order=1),
        "`T` must have shape (..., 3, K) to match `A` of shape (..., P, 3), got (3,).",
    ),
    "dot order 3": (
        lambda: dot(Z((2, 3)), Z((3, 4, 4)), order=3),
        "`T` must have shape (..., 3, L, M, K) to match `A` of shape (..., P, 3), got (3, 4, 4).",
    ),
    "dot order 4": (
        lambda: dot(Z((2, 3)), Z((2, 1, 1, 1, 1)), order=4),
        "`T` must have shape (..., 3, M1, M2, M3, M4) to match `A` of shape (..., P, 3), "
        "got (2, 1, 1, 1, 1).",
    ),
    "dot order": (
        lambda: dot(Z((2, 3)), Z((3, 4)), order=0),
        "`order` must be an integer ≥ 1, got 0.",
    ),
    "dot order kind": (
        lambda: dot(Z((2, 3)), Z((3, 4)), order=1.0),
        "`order` must be an integer ≥ 1, got 1.0.",
    ),
    "dot batches": (
        lambda: dot(Z((2, 1, 3)), Z((5, 3, 4, 4))),
        "Batches must broadcast, got `A` (2,), `T` (5,).",
    ),
    "cross A": (lambda: cross(Z((2, 3)), Z((3, 1))), "`A` must have shape (..., 3, M), got (2, 3)."),
    "cross A rank": (lambda: cross(Z(3), Z((3, 1))), "`A` must have shape (..., 3, M), got (3,)."),
    "cross B": (lambda: cross(Z((3, 2)), Z((2, 3))), "`B` must have shape (..., 3, K), got (2, 3)."),
    "cross B rank": (lambda: cross(Z((3, 2)), Z(3)), "`B` must have shape (..., 3, K), got (3,)."),
    "cross b": (
        lambda: cross(Z((3, 2)), Z((3, 2)), order=0),
        "`B` must have shape (..., 3), got (3, 2).",
    ),
    "cross b scalar": (
        lambda: cross(Z((3, 2)), 1.0, order=0),
        "`B` must have shape (..., 3), got ().",
    ),
    "cross order": (
        lambda: cross(Z((3, 2)), Z((3, 2)), order=2),
        "`order` must be an integer from 0 to 1, got 2.",
    ),
    "cross batches": (
        lambda: cross(Z((2, 3, 2)), Z((5, 4, 3, 2))),
        "Batches must broadcast, got `A` (2,), `B` (5, 4).",
    ),
    "cross b batches": (
        lambda: cross(Z((2, 3, 2)), Z((5, 3)), order=0),
        "Batches must broadcast, got `A` (2,), `B` (5,).",
    ),
    "quadratic C": (
        lambda: quadratic(Z((4, 2, 3)), Z((3, 1))),
        "`C` must have shape (..., N, M, M), got (4, 2, 3).",
    ),
    "quadratic C rank": (
        lambda: quadratic(Z((3, 3)), Z((3, 1))),
        "`C` must have shape (..., N, M, M), got (3, 3).",
    ),
    "quadratic D": (
        lambda: quadratic(Z((4, 3, 3)), Z((1, 3))),
        "`D` must have shape (..., 3, K) to match `C` of shape (..., N, M, 3), got (1, 3).",
    ),
    "quadratic D rank": (
        lambda: quadratic(Z((4, 3, 3)), Z(3)),
        "`D` must have shape (..., 3, K) to match `C` of shape (..., N, M, 3), got (3,).",
    ),
    "quadratic batches": (
        lambda: quadratic(Z((2, 4, 3, 3)), Z((5, 3, 3))),
        "Batches must broadcast, got `C` (2,), `D` (5,).",
    ),
    "bilinear C": (
        lambda: bilinear(Z((3, 3)), None, Z((3, 1))),
        "`C` must have shape (..., N, M, W), got (3, 3).",
    ),
    "bilinear L": (
        lambda: bilinear(Z((4, 2, 3)), Z((3, 1)), None),
        "`L` must have shape (..., 2, J) to match `C` of shape (..., N, 2, 3), got (3, 1).",
    ),
    "bilinear R": (
        lambda: bilinear(Z((4, 2, 3)), Z((2, 1)), Z((2, 1))),
        "`R` must have shape (..., 3, K) to match `C` of shape (..., N, 2, 3), got (2, 1).",
    ),
    "bilinear nothing": (
        lambda: bilinear(Z((4, 2, 3)), None, None),
        "`L` or `R` must be a matrix, got None for both.",
    ),
    "bilinear batches": (
        lambda: bilinear(Z((4, 2, 3)), Z((5, 2, 1)), Z((6, 3, 1))),
        "Batches must broadcast, got `C` (), `L` (5,), `R` (6,).",
    ),
    "form T": (
        lambda: form(Z((2, 3)), Z(3), Z(3)),
        "`T` must have shape (..., N, M1, M2) to match 2 `vectors`, got (2, 3).",
    ),
    "form vector": (
        lambda: form(Z((2, 3, 4)), Z(3), Z((4, 1))),
        "`vectors[1]` must have shape (..., 4) to match `T` of shape (..., N, 3, 4), got (4, 1).",
    ),
    "form vector rank": (
        lambda: form(Z((2, 3, 4)), 1.0, None),
        "`vectors[0]` must have shape (..., 3) to match `T` of shape (..., N, 3, 4), got ().",
    ),
    "form nothing": (lambda: form(Z((2, 3))), "`vectors` must hold at least one vector, got none."),
    "form all open": (lambda: form(Z((2, 3)), None), "`vectors` must hold at least one vector, got none."),
    "form batches": (
        lambda: form(Z((5, 2, 3, 4)), None, Z((6, 4))),
        "Batches must broadcast, got `T` (5,), `vectors[1]` (6,).",
    ),
    "ragged": (
        lambda: dot([[1.0], [1.0, 2.0]], Z((1, 2, 2))),
        "`A` must be an array, got a ragged list.",
    ),
    "bools": (
        lambda: dot(Z((1, 1)), np.ones((1, 2, 2), bool)),
        "`T` must hold signed, complex or object numbers, got bool.",
    ),
    "unsigned": (
        lambda: cross(np.ones((3, 1), np.uint8), Z((3, 1))),
        "`A` must hold signed, complex or object numbers, got uint8.",
    ),
    "words": (
        lambda: form(Z((1, 1)), ["x"]),
        "`vectors[0]` must hold signed, complex or object numbers, got <U1.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(case):
    call, message = WRONG[case]
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message


def test_errors_carry_their_numbers():
    with pytest.raises(InputError) as caught:
        dot(Z((2, 3)), Z((2, 4, 4)))
    assert caught.value.numbers == {"key": "T", "got": (2, 4, 4)}
    with pytest.raises(InputError) as caught:
        dot(Z((2, 1, 3)), Z((5, 3, 4, 4)))
    assert caught.value.numbers == {"batches": {"A": (2,), "T": (5,)}}


def test_docstring_examples_run_and_all_names_are_public():
    assert doctest.testmod(products).failed == 0
    assert doctest.testmod(products).attempted >= 7
    own = {n for n, f in vars(products).items() if getattr(f, "__module__", "") == products.__name__}
    core = {"contract", "transform", "evaluate_form"}  # the arithmetic, without checks
    assert {n for n in own if not n.startswith("_")} == set(products.__all__) | core
