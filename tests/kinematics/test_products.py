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
# objects are polynomials, whose sums and products are exact and expanded; other tests use SymPy expressions
SYMBOLS = sympy.ring("x:20", sympy.ZZ)[1:]
# of the cross product, so that no test leans on np.cross
EPSILON = np.array(
    [[[(i - j) * (j - k) * (k - i) // 2 for k in range(3)] for j in range(3)] for i in range(3)]
)


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


def sums(letters, arrays, scalar):
    """Return sums over indices by hand, for every member of the broadcast batch of the arrays."""
    *names, result = letters.replace("->", ",").split(",")
    batch = np.broadcast_shapes(*(a.shape[: a.ndim - len(k)] for k, a in zip(names, arrays, strict=True)))
    arrays = [
        np.broadcast_to(a, batch + a.shape[a.ndim - len(k) :]) for k, a in zip(names, arrays, strict=True)
    ]
    sizes = {
        x: n
        for k, a in zip(names, arrays, strict=True)
        for x, n in zip(k, a.shape[len(batch) :], strict=True)
    }
    out = np.zeros(batch + tuple(sizes[x] for x in result), scalar)
    for member, values in product(np.ndindex(batch), product(*(range(n) for n in sizes.values()))):
        at = dict(zip(sizes, values, strict=True))
        term = 1
        for k, a in zip(names, arrays, strict=True):
            term = term * a[(*member, *(at[x] for x in k))]
        out[(*member, *(at[x] for x in result))] += term
    return out


def split(batch):
    """A batch as two that broadcast to it: the first lacks every second axis."""
    thin = tuple(1 if i % 2 else n for i, n in enumerate(batch))
    return [(batch, batch), (batch, ()), ((), batch), (thin, batch), (batch, thin)]


def turned(v):
    """The rows of the matrix v×, by hand."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def form_of(opened):
    """Return a form with vectors at the places that are not open, as a row of `PRODUCTS`."""

    def call(T, *vectors):
        left = iter(vectors)
        return form(T, *(None if o else next(left) for o in opened))

    letters = list(zip("abc", opened, strict=False))
    closed = [x for x, o in letters if not o]
    kept = "".join(x for x, o in letters if o)
    return call, f"{','.join(['n' + 'abc'[: len(opened)], *closed])}->n{kept}", tuple(range(1 + len(closed)))


# a call, the sums that it stands for, and the indices of its arrays in them; E is EPSILON
SIZES = dict(p=2, n=3, a=3, b=2, c=2, d=2, e=2, f=2, i=3, r=3, s=3, m=4, k=2, j=1)
PRODUCTS = {
    "dot 1": (lambda A, T: dot(A, T, order=1), "pn,na->pa", (0, 1)),
    "dot 2": (lambda A, T: dot(A, T, order=2), "pn,nab->pab", (0, 1)),
    "dot": (dot, "pn,nab->pab", (0, 1)),
    "dot 3": (lambda A, T: dot(A, T, order=3), "pn,nabc->pabc", (0, 1)),
    "dot 4": (lambda A, T: dot(A, T, order=4), "pn,nabcd->pabcd", (0, 1)),
    "cross": (cross, "irs,rm,sk->mik", ("E", 0, 1)),
    "cross 1": (lambda A, B: cross(A, B, order=1), "irs,rm,sk->mik", ("E", 0, 1)),
    "cross of a vector": (lambda A, b: cross(A, b, order=0), "irs,rm,s->im", ("E", 0, 1)),
    "cross of a column": (
        lambda A, b: cross(A, b[..., None])[..., 0].swapaxes(-1, -2), "irs,rm,s->im", ("E", 0, 1)
    ),
    "quadratic to 1": (quadratic, "nef,ej,fg->njg", (0, 1, 1)),
    "quadratic to 2": (quadratic, "nef,ek,fg->nkg", (0, 1, 1)),
    "quadratic to 3": (quadratic, "nef,ei,fg->nig", (0, 1, 1)),
    "bilinear": (bilinear, "nab,aj,bi->nji", (0, 1, 2)),
    "bilinear left": (lambda C, L: bilinear(C, L, None), "nab,aj->njb", (0, 1)),
    "bilinear right": (lambda C, R: bilinear(C, None, R), "nab,bi->nai", (0, 1)),
    **{f"form {o}": form_of(o) for k in (1, 2, 3) for o in product((0, 1), repeat=k) if not all(o)},
}  # fmt: skip


@pytest.mark.parametrize("scalar", [float, complex, object])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_sums_over_indices(name, batch, scalar):
    call, letters, places = PRODUCTS[name]
    names = dict(zip(places, letters.partition("->")[0].split(","), strict=True))
    if name.startswith("quadratic"):  # the matrix stands on both sides
        names[1] = letters.split(",")[1]
    names.pop("E", None)
    for one, other in split(batch):
        batches = one, other, batch, batch
        arrays = [
            sample(5 * k + 1, (*batches[k], *(SIZES[x] for x in names[k])), scalar) for k in range(len(names))
        ]
        wanted = sums(letters, [EPSILON if k == "E" else arrays[k] for k in places], scalar)
        same(call(*arrays), wanted, scalar)


def test_the_batches_of_the_two_sides_broadcast_with_each_other():
    C, L, R = sample(1, (2, 3, 3)), sample(2, (4, 1, 3, 2)), sample(3, (5, 3, 1))
    given = bilinear(C, L, R)
    assert given.shape == (4, 5, 2, 2, 1)
    for i, j in np.ndindex(4, 5):
        same(given[i, j], bilinear(C, L[i, 0], R[j]))


# ------------------------------------------------------------------------ Appendix A as it is written


def test_appendix_a():
    """Quadratics of a matrix and of a vector, and the dot product by rows."""
    C, D, b, A = sample(1, (4, 3, 3)), sample(2, (3, 2)), sample(2, 3), sample(1, (2, 4))
    same(quadratic(C, D), np.array([D.T @ C[n] @ D for n in range(4)]))
    same(form(C, b, b), np.array([b @ C[n] @ b for n in range(4)]))
    same(quadratic(C, b[:, None])[:, 0, 0], form(C, b, b))
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


def each(entry, count):
    """Return the array of entries for two columns."""
    return np.array([[entry(m, n) for n in range(count)] for m in range(count)])


# equations of the source, or their number there, as pairs of sides; g are the columns of G, L the momentum
CHAINS = [lambda: chain(0), lambda: chain(1, 3), lambda: chain(2, 1), lambda: orthogonal(0)]
IDENTITIES = {
    # H_mn − H_nm = g_m × g_n
    "orders": lambda G, H, II, qd: (np.moveaxis(H - H.swapaxes(-1, -2), 0, 1), cross(G, G)),
    "2-172": lambda G, H, II, qd: (
        cross(G, II @ G @ qd, order=0), np.array([turned(g) @ II @ G @ qd for g in G.T]).T
    ),
    "2-178": lambda G, H, II, qd: (form(H, None, qd) - cross(G, G @ qd, order=0), form(H, qd, None)),
    "2-178 left": lambda G, H, II, qd: (form(H, None, qd), qd @ H.swapaxes(-1, -2)),
    "2-178 right": lambda G, H, II, qd: (form(H, qd, None), qd @ H),
    "2-179": lambda G, H, II, qd: (cross(G, G @ qd, order=0) @ qd, np.zeros(3)),
    "2-181": lambda G, H, II, qd: (form(H.swapaxes(-1, -2), qd, qd), form(H, qd, qd)),
    "2-184": lambda G, H, II, qd: (
        cross(G, II @ G @ qd, order=0) @ qd, turned(G @ qd) @ II @ G @ qd
    ),
    "2-189": lambda G, H, II, qd: (
        G.T @ cross(G, II @ G @ qd, order=0),
        each(lambda m, n: G[:, m] @ turned(G[:, n]) @ II @ G @ qd, len(qd)),
    ),
    "2-189 by the momentum": lambda G, H, II, qd: (
        G.T @ cross(G, II @ G @ qd, order=0),
        each(lambda m, n: II @ G @ qd @ turned(G[:, m]) @ G[:, n], len(qd)),
    ),
    "2-189 (L)ᵀ([G]ᵀ × [G])": lambda G, H, II, qd: (
        G.T @ cross(G, II @ G @ qd, order=0), bilinear(cross(G, G), (II @ G @ qd)[:, None], None)[:, 0]
    ),
    "2-190": lambda G, H, II, qd: (cross(G, G), np.array([turned(g) @ G for g in G.T])),
    "2-191": lambda G, H, II, qd: (
        form(bilinear(cross(G, G), II @ G, None), qd, qd), G.T @ cross(G, II @ G @ qd, order=0) @ qd
    ),
    "2-191 right": lambda G, H, II, qd: (
        G.T @ cross(G, II @ G @ qd, order=0) @ qd, G.T @ turned(G @ qd) @ II @ G @ qd
    ),
}  # fmt: skip


@pytest.mark.parametrize("made", CHAINS)
@pytest.mark.parametrize("name", IDENTITIES)
def test_identities_of_the_source(name, made):
    G, H = made()
    rng = np.random.default_rng(7)
    II = rng.normal(size=(3, 3))
    same(*IDENTITIES[name](G, H, II + II.T, rng.normal(size=G.shape[1])))


def test_2_169_columns_of_a_rotation():
    G, _ = chain(3)
    T = np.linalg.qr(sample(5, (3, 3)))[0]
    same(cross(G, T), np.array([turned(g) @ T for g in G.T]))


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


def Z(*shape):
    return np.zeros(shape)


EMPTY = [
    (lambda: dot(Z(0, 3), Z(3, 2, 2)), (0, 2, 2)),
    (lambda: dot(Z(2, 0), Z(0, 3, 3)), (2, 3, 3)),  # nothing to sum is zero
    (lambda: dot(Z(2, 3), Z(3, 0, 0)), (2, 0, 0)),
    (lambda: cross(Z(3, 2), 1 + Z(3, 1)), (2, 3, 1)),
    (lambda: cross(Z(3, 0), 1 + Z(3, 2)), (0, 3, 2)),
    (lambda: cross(1 + Z(3, 2), Z(3, 0)), (2, 3, 0)),
    (lambda: cross(Z(3, 0), 1 + Z(3), order=0), (3, 0)),
    (lambda: cross(1 + Z(3, 2), 1 + Z(3, 2)), (2, 3, 2)),  # parallel
    (lambda: quadratic(Z(0, 2, 2), 1 + Z(2, 3)), (0, 3, 3)),
    (lambda: quadratic(Z(2, 0, 0), Z(0, 3)), (2, 3, 3)),
    (lambda: bilinear(1 + Z(1, 2, 3), Z(2, 0), None), (1, 0, 3)),
    (lambda: form(1 + Z(2, 3, 3), Z(3), 1 + Z(3)), (2,)),
    (lambda: form(Z(2, 0, 0), Z(0), Z(0)), (2,)),
    (lambda: form(Z(0, 3, 3), 1 + Z(3), 1 + Z(3)), (0,)),
]


@pytest.mark.parametrize(("call", "shape"), EMPTY)
def test_zero_vectors_and_zero_sizes(call, shape):
    same(call(), Z(*shape))


def test_lists_and_mixed_scalars():
    empty = np.zeros((2, 0), object)
    assert dot(empty, empty.T, order=1).tolist() == [[0, 0], [0, 0]]
    assert form(empty, np.zeros(0)).tolist() == [0, 0]
    assert dot([[1, 2]], [[[3]], [[4]]]).tolist() == [[[11]]]
    assert dot(np.ones((1, 2), np.float32), np.ones((2, 1, 1), np.float32)).dtype == np.float32
    assert dot([[1.0, 2.0]], [[[1j]], [[1]]]).dtype == complex
    x, y, z = sympy.symbols("x y z")
    assert cross(sympy.Matrix([1, 0, 0]), [x, y, z], order=0).tolist() == [[0], [-z], [y]]
    assert cross(np.eye(3, dtype=int), sympy.Matrix([x, y, z])).dtype == object


def test_views_and_read_only_arrays():
    C, D = sample(1, (3, 3, 4)).transpose(2, 1, 0), sample(2, (4, 3))[::2].T
    C.setflags(write=False)
    kept = C.copy(), D.copy()
    same(quadratic(C, D), quadratic(C.copy(), D.copy()))
    same(dot(D.T[:, [0, 1, 2, 0]], C), dot(D.T[:, [0, 1, 2, 0]].copy(), C.copy()))
    assert (kept[0] == C).all()
    assert (kept[1] == D).all()


# -------------------------------------------------------------------------------------------------- errors


def shape(key, want, got, other="", of=""):
    """Return the message of an array of another shape."""
    match = f" to match {other} of shape (..., {of})" if of else other
    return f"`{key}` must have shape (..., {want}){match}, got {got}."


KINDS = "must hold signed, complex or object numbers, got"
NONE = "`vectors` must hold at least one vector, got none."
WRONG = [
    (lambda: dot(Z(3), Z(3, 2, 2)), shape("A", "P, N", (3,))),
    (lambda: dot(Z(2, 3), Z(2, 4, 4)), shape("T", "3, M, K", (2, 4, 4), "`A`", "P, 3")),
    (lambda: dot(Z(2, 3), Z(3, 4)), shape("T", "3, M, K", (3, 4), "`A`", "P, 3")),
    (lambda: dot(Z(2, 3), Z(3), order=1), shape("T", "3, K", (3,), "`A`", "P, 3")),
    (lambda: dot(Z(2, 3), Z(3, 4, 4), order=3), shape("T", "3, L, M, K", (3, 4, 4), "`A`", "P, 3")),
    (
        lambda: dot(Z(2, 3), Z(2, 1, 1, 1, 1), order=4),
        shape("T", "3, M1, M2, M3, M4", (2, 1, 1, 1, 1), "`A`", "P, 3"),
    ),
    (lambda: dot(Z(2, 3), Z(3, 4), order=0), "`order` must be an integer ≥ 1, got 0."),
    (lambda: dot(Z(2, 3), Z(3, 4), order=1.0), "`order` must be an integer ≥ 1, got 1.0."),
    (lambda: dot(Z(2, 1, 3), Z(5, 3, 4, 4)), "Batches must broadcast, got `A` (2,), `T` (5,)."),
    (lambda: cross(Z(2, 3), Z(3, 1)), shape("A", "3, M", (2, 3))),
    (lambda: cross(Z(3), Z(3, 1)), shape("A", "3, M", (3,))),
    (lambda: cross(Z(3, 2), Z(2, 3)), shape("B", "3, K", (2, 3))),
    (lambda: cross(Z(3, 2), Z(3)), shape("B", "3, K", (3,))),
    (lambda: cross(Z(3, 2), Z(3, 2), order=0), shape("B", "3", (3, 2))),
    (lambda: cross(Z(3, 2), 1.0, order=0), shape("B", "3", ())),
    (lambda: cross(Z(3, 2), Z(3, 2), order=2), "`order` must be an integer from 0 to 1, got 2."),
    (lambda: cross(Z(2, 3, 2), Z(5, 4, 3, 2)), "Batches must broadcast, got `A` (2,), `B` (5, 4)."),
    (lambda: cross(Z(2, 3, 2), Z(5, 3), order=0), "Batches must broadcast, got `A` (2,), `B` (5,)."),
    (lambda: quadratic(Z(4, 2, 3), Z(3, 1)), shape("C", "N, M, M", (4, 2, 3))),
    (lambda: quadratic(Z(3, 3), Z(3, 1)), shape("C", "N, M, M", (3, 3))),
    (lambda: quadratic(Z(4, 3, 3), Z(1, 3)), shape("D", "3, K", (1, 3), "`C`", "N, M, 3")),
    (lambda: quadratic(Z(4, 3, 3), Z(3)), shape("D", "3, K", (3,), "`C`", "N, M, 3")),
    (lambda: quadratic(Z(2, 4, 3, 3), Z(5, 3, 3)), "Batches must broadcast, got `C` (2,), `D` (5,)."),
    (lambda: bilinear(Z(3, 3), None, Z(3, 1)), shape("C", "N, M, W", (3, 3))),
    (lambda: bilinear(Z(4, 2, 3), Z(3, 1), None), shape("L", "2, J", (3, 1), "`C`", "N, 2, 3")),
    (lambda: bilinear(Z(4, 2, 3), Z(2, 1), Z(2, 1)), shape("R", "3, K", (2, 1), "`C`", "N, 2, 3")),
    (lambda: bilinear(Z(4, 2, 3), None, None), "`L` or `R` must be a matrix, got None for both."),
    (
        lambda: bilinear(Z(4, 2, 3), Z(5, 2, 1), Z(6, 3, 1)),
        "Batches must broadcast, got `C` (), `L` (5,), `R` (6,).",
    ),
    (lambda: form(Z(2, 3), Z(3), Z(3)), shape("T", "N, M1, M2", (2, 3), " to match 2 `vectors`")),
    (lambda: form(Z(2, 3, 4), Z(3), Z(4, 1)), shape("vectors[1]", "4", (4, 1), "`T`", "N, 3, 4")),
    (lambda: form(Z(2, 3, 4), 1.0, None), shape("vectors[0]", "3", (), "`T`", "N, 3, 4")),
    (lambda: form(Z(2, 3)), NONE),
    (lambda: form(Z(2, 3), None), NONE),
    (lambda: form(Z(5, 2, 3, 4), None, Z(6, 4)), "Batches must broadcast, got `T` (5,), `vectors[1]` (6,)."),
    (lambda: dot([[1.0], [1.0, 2.0]], Z(1, 2, 2)), "`A` must be an array, got a ragged list."),
    (lambda: dot(Z(1, 1), np.ones((1, 2, 2), bool)), f"`T` {KINDS} bool."),
    (lambda: cross(np.ones((3, 1), np.uint8), Z(3, 1)), f"`A` {KINDS} uint8."),
    (lambda: form(Z(1, 1), ["x"]), f"`vectors[0]` {KINDS} <U1."),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_errors(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == message


def test_errors_carry_their_numbers():
    with pytest.raises(InputError) as caught:
        dot(Z(2, 3), Z(2, 4, 4))
    assert caught.value.numbers == {"key": "T", "got": (2, 4, 4)}
    with pytest.raises(InputError) as caught:
        dot(Z(2, 1, 3), Z(5, 3, 4, 4))
    assert caught.value.numbers == {"batches": {"A": (2,), "T": (5,)}}


def test_docstring_examples_run_and_all_names_are_public():
    assert doctest.testmod(products).failed == 0
    assert doctest.testmod(products).attempted >= 7
    own = {n for n, f in vars(products).items() if getattr(f, "__module__", "") == products.__name__}
    core = {"contract", "transform", "evaluate_form"}  # the arithmetic, without checks
    assert {n for n in own if not n.startswith("_")} == set(products.__all__) | core
