"""Form and force closure: against an independent linear program, closed forms and classical cases."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from contact_sets import Z, generators, random_grasp
from numpy.testing import assert_allclose
from raising import raises, refuses
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

import kic
from kic.tasks.grasp.force_closure import sphere_points

TURN = np.deg2rad([90.0, 210.0, 330.0])


def needs_solver() -> None:
    pytest.importorskip("clarabel")


def spans(W: np.ndarray) -> bool:
    """Return True if vectors span a space positively: full rank, a positive sum of all is zero."""
    W = W / np.abs(W).max(axis=1, keepdims=True)
    if np.linalg.matrix_rank(W, tol=1e-10) < len(W):
        return False
    total = -W.sum(axis=1)
    return linprog(np.zeros(W.shape[1]), A_eq=W, b_eq=total, bounds=(0, None)).status == 0


@pytest.mark.slow
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("method", ["cones", "pyramids"])
def test_decided_as_by_linear_programming(planar: bool, method: str) -> None:
    if method == "cones" and not planar:
        needs_solver()
    rng = np.random.default_rng(7 + planar)
    agreed = {True: 0, False: 0}
    between = 0
    for _ in range(120):
        c = random_grasp(rng, planar)
        inner = spans(generators(c, False))
        outer = spans(generators(c, True))
        assert outer or not inner
        if inner != outer:
            between += 1
            continue
        try:
            found = kic.force_closure(c, method=method)
        except kic.SingularError:
            assert (method, planar) == ("pyramids", False)
            between += 1
            continue
        assert bool(found) == inner
        prove(found)
        agreed[inner] += 1
    assert min(agreed.values()) >= 25
    assert between <= (0 if planar else 10)


def prove(found: kic.results.GraspClosure) -> None:
    """Closure and its opposite by their proofs, recomputed from the contacts alone."""
    c = found.contacts
    assert found.batch == ()
    size = np.linalg.norm(c.points - c.points.mean(axis=0), axis=1).max() + 1e-3
    scale = np.linalg.norm(c.points - c.about, axis=1).max() + 1
    if found.closed:
        assert np.linalg.matrix_rank(c.map / np.abs(c.map).max(axis=1, keepdims=True)) == len(c.map)
        assert np.abs(c.map @ found.force).max() < 1e-12 * scale * (1 + np.abs(found.force).max())
        for k, kind in enumerate(c.kinds):
            f = found.force[c.spans[k]]
            if kind != "pinned":
                across = f[1:] / np.array([c.mu[k], c.mu[k], c.gamma[k]])[: len(f) - 1]
                assert f[0] - np.linalg.norm(across) >= found.margin * (1 - 1e-9) > 0
        assert np.isnan(found.twist).all()
        assert found.missing == ("",)
    else:
        felt = c.map.T @ found.twist
        for k, kind in enumerate(c.kinds):
            p = felt[c.spans[k]]
            if kind == "pinned":
                assert np.abs(p).max() < 1e-6
            else:
                across = p[1:] * np.array([c.mu[k], c.mu[k], c.gamma[k]])[: len(p) - 1]
                assert p[0] - np.linalg.norm(across) >= -1e-6
        assert np.abs(found.twist).max() * (1 + 1 / size) > 1e-3
        assert found.margin == 0
        assert np.isnan(found.force).all()
        assert found.missing[0].startswith("cannot resist")
        if found.both:
            assert np.abs(felt).max() < 1e-9 * scale / size


def two_fingers(kind: str, **more) -> kic.ContactSet:
    return kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], kind, mu=0.4, gamma=0.01, **more)


def test_two_soft_fingers_hold_and_two_hard_ones_do_not() -> None:
    needs_solver()
    soft = kic.force_closure(two_fingers("soft"))
    assert soft
    prove(soft)
    hard = kic.force_closure(two_fingers("friction", about=(0, 0.5, 0.3)))
    assert not hard
    assert hard.both
    # spin about the line between them, seen at the reference point: v = ω × arm
    assert_allclose(hard.twist / hard.twist[3], [0, -0.3, 0.5, 1, 0, 0], atol=1e-12)
    assert hard.missing == (
        "cannot resist, in either sense, a moment about the line through (0, 0, 0) along (1, 0, 0)",
    )
    prove(hard)


@pytest.mark.parametrize("method", ["cones", "pyramids"])
def test_three_fingers_with_friction(method: str) -> None:
    if method == "cones":
        needs_solver()
    p = np.stack([np.cos(TURN), np.sin(TURN), 0 * TURN], axis=-1)
    found = kic.force_closure(kic.ContactSet(p, -p, "friction", mu=0.2), method=method)
    assert found
    assert_allclose(found.margin, 1.0, atol=1e-8)  # three equal forces, without friction
    slippery = kic.force_closure(kic.ContactSet(p, -p, "point"), method=method)
    assert not slippery


@pytest.mark.slow
def test_antipodal_fingers_in_a_plane() -> None:
    """Nguyen (1988): two contacts with friction hold in a plane if their line lies inside both cones."""
    rng = np.random.default_rng(3)
    count = 600
    a, b = rng.uniform(-np.pi, np.pi, (2, count))
    mu = rng.uniform(0.3, 3.0, (count, 2))
    points = rng.normal(size=(count, 2, 3))
    points[..., 2] = 0
    lines = np.diff(points, axis=1)[:, 0]
    towards = np.arctan2(lines[:, 1], lines[:, 0])
    angles = np.stack([towards + a / 2.5, towards + np.pi + b / 2.5], axis=1)
    normals = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    c = kic.ContactSet(points, normals, "friction", mu=mu, plane=Z, about=(0.3, -2, 0))
    room = np.arctan(mu) - np.abs(np.stack([a, b], axis=1)) / 2.5
    found = kic.force_closure(c)
    assert np.abs(room).min() > 1e-5
    np.testing.assert_array_equal(found.closed, (room > 0).all(axis=1))
    assert 100 < found.closed.sum() < 500


@pytest.mark.parametrize("gap", [1e-4, -1e-4])
def test_antipodal_fingers_near_the_brink(gap: float) -> None:
    tilt = np.arctan(0.5) - gap
    normals = [[np.cos(tilt), np.sin(tilt), 0], [-1, 0, 0]]
    c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], normals, "friction", mu=0.5, plane=Z)
    assert kic.force_closure(c).closed == (gap > 0)


def test_form_closure_of_a_rectangle() -> None:
    """Four contacts that turn it either way hold; four through its middle, or any three, do not."""
    points = np.array([[1.0, 0.3, 0], [-1, -0.3, 0], [-0.3, -1, 0], [0.3, 1, 0]])
    inward = -np.array([[1.0, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 1, 0]])
    found = kic.form_closure(kic.ContactSet(points, inward, "point", plane=Z))
    assert found
    prove(found)
    for k in range(4):
        less = kic.form_closure(
            kic.ContactSet(np.delete(points, k, 0), np.delete(inward, k, 0), "point", plane=Z)
        )
        assert not less
        prove(less)
    central = kic.form_closure(kic.ContactSet(points * (np.abs(points) == 1), inward, "point", plane=Z))
    assert not central
    assert central.both
    assert_allclose(central.twist, [0, 0, 1], atol=1e-12)


@pytest.mark.slow
def test_form_closure_takes_seven_contacts_in_space() -> None:
    """Six independent normals and one against a sum of them that is a force alone: no less do."""
    rng = np.random.default_rng(11)
    done = 0
    while done < 12:
        points, normals = rng.normal(size=(2, 6, 3))
        six = kic.ContactSet(points, normals, "point")
        # weights along which the resultant's pitch f·m, a quadratic, changes its sign
        a, b = (six.map @ rng.uniform(0.3, 1.5, 6) for _ in range(2))
        roots = np.roots(
            [(b - a)[:3] @ (b - a)[3:], a[:3] @ (b - a)[3:] + (b - a)[:3] @ a[3:], a[:3] @ a[3:]]
        )
        inner = [float(r.real) for r in roots if abs(r.imag) < 1e-12 and 0 < r.real < 1]
        if not inner or np.linalg.cond(six.map) > 50:
            continue
        f, m = np.split(a + inner[0] * (b - a), 2)
        through = np.cross(f, m) / (f @ f)
        all_points, all_normals = np.vstack([points, through]), np.vstack([normals, -f])
        seven = kic.form_closure(kic.ContactSet(all_points, all_normals, "point"))
        assert seven
        prove(seven)
        for k in range(7):
            less = kic.ContactSet(np.delete(all_points, k, 0), np.delete(all_normals, k, 0), "point")
            verdict = kic.form_closure(less)
            assert not verdict
            prove(verdict)
        done += 1


def test_form_closure_does_not_count_friction() -> None:
    c = two_fingers("soft")
    assert not kic.form_closure(c)
    pins = kic.ContactSet(np.eye(3), np.ones((3, 3)), "pinned")
    assert kic.form_closure(pins)
    assert kic.force_closure(pins).margin == 1


@pytest.mark.parametrize("dimension", [0, 1, 2, 3])
@pytest.mark.parametrize("edges", [4, 5, 16, 24])
def test_pyramids_enclose_the_cones(dimension: int, edges: int) -> None:
    points, reach = sphere_points(dimension, edges)
    if dimension == 0:
        assert points.shape == (1, 0)
        return
    assert_allclose(np.linalg.norm(points, axis=1), 1)
    rng = np.random.default_rng(1)
    d = rng.normal(size=(2000, dimension))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    # a hull holds a ball if its support reaches the radius in every direction
    assert (d @ points.T).max(axis=1).min() >= reach - 1e-12
    assert reach > (0.3 if edges < 6 else 0.9)


def test_verdicts_do_not_depend_on_axes_and_units() -> None:
    needs_solver()
    rng = np.random.default_rng(23)
    for _ in range(25):
        c = random_grasp(rng, planar=False)
        R = Rotation.random(random_state=rng).as_matrix()
        points, more = 1e3 * (c.points @ R.T) + [5, 6, 7], {"mu": c.mu, "gamma": 1e3 * c.gamma}
        more |= {"tangents": rng.normal(size=c.points.shape), "about": rng.normal(size=3)}
        moved = kic.ContactSet(points, c.normals @ R.T, c.kinds, **more)
        one, other = kic.force_closure(c), kic.force_closure(moved)
        assert one.closed == other.closed
        assert_allclose(one.margin, other.margin, atol=1e-7)


@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_batches(batch: tuple[int, ...]) -> None:
    needs_solver()
    rng = np.random.default_rng(2)
    u = rng.normal(size=(*batch, 4, 3))
    c = kic.ContactSet(u, -u, ["friction", "soft", "point", "friction"], mu=0.8, gamma=0.05)
    assert c.batch == batch
    assert c.map.shape == (*batch, 6, 11)
    found = kic.force_closure(c)
    for a, tail in ((found.closed, ()), (found.margin, ()), (found.force, (11,)), (found.twist, (6,))):
        assert a.shape == (*batch, *tail)
    assert len(found.missing) == int(np.prod(batch))
    assert f"{len(c)} contacts" in found.summary().text()
    assert "<p>" in found._repr_html_()
    for index in np.ndindex(batch):
        alone = kic.ContactSet(u[index], -u[index], c.kinds, mu=0.8, gamma=0.05)
        assert kic.force_closure(alone).closed == found.closed[index]
        np.testing.assert_array_equal(alone.map, c.map[index])


# ------------------------------------------------------------------------------- frames and grasp map


def test_contact_frames() -> None:
    rng = np.random.default_rng(0)
    n = rng.normal(size=(50, 4, 3)) * 10.0 ** rng.integers(-150, 150, (50, 4, 1))
    F = kic.contact_frames(n)
    assert F.shape == (50, 4, 3, 3)
    assert_allclose(F @ np.swapaxes(F, -1, -2), np.broadcast_to(np.eye(3), F.shape), atol=1e-14)
    assert_allclose(np.linalg.det(F), 1)
    assert ((F[..., 0, :] * (n / np.abs(n).max(axis=-1, keepdims=True))).sum(axis=-1) >= 1 - 1e-14).all()
    t = rng.normal(size=(50, 4, 3))
    given = kic.contact_frames(n, tangents=t)
    assert ((given[..., 1, :] * t).sum(axis=-1) > 0).all()
    assert_allclose((given[..., 2, :] * t).sum(axis=-1), 0, atol=1e-14)


@pytest.mark.parametrize("planar", [False, True])
def test_grasp_map_adds_up_forces_and_moments(planar: bool) -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        c = random_grasp(rng, planar)
        f = rng.normal(size=c.map.shape[1])
        force, moment = c.loads(f)
        total = np.concatenate([force.sum(0), (np.cross(c.points - c.about, force) + moment).sum(0)])
        assert_allclose(c.map @ f, total[[0, 1, 5]] if planar else total, atol=1e-13)
        same = kic.grasp_map(c.points, c.normals, c.kinds, about=c.about, plane=Z if planar else None)
        assert_allclose(same, c.map, atol=1e-14)
        # virtual work: Gᵀ of a twist is the rate of the contacts in their axes, and of a rigid body J is that
        v, omega = rng.normal(size=(2, 3)) * ([[1, 1, 0], [0, 0, 1]] if planar else 1)
        rates = v + np.cross(omega, c.points - c.about)
        J = c.jacobian(rates[..., None], np.broadcast_to(omega, c.points.shape)[..., None])
        twist = np.concatenate([v, omega])
        assert_allclose(J[:, 0], c.map.T @ (twist[[0, 1, 5]] if planar else twist), atol=1e-13)


@pytest.mark.parametrize("normal", [(0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, -2), (1, 1, 1)])
def test_planes(normal: tuple[float, ...]) -> None:
    """The same planar grasp in any plane has the same verdict; labels name world axes where they can."""
    base = kic.ContactSet([[-1, 0.2, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0.1, 0]], "friction", mu=0.5, plane=Z)
    u = np.array(normal) / np.linalg.norm(normal)
    _, e1, e2 = kic.contact_frames(u)
    R = np.stack([e1, e2, u])
    c = kic.ContactSet(
        base.points @ R + 3 * u, base.normals @ R, "friction", mu=0.5, plane=normal, about=5 * u
    )
    assert_allclose(c.map, base.map, atol=1e-14)
    assert kic.force_closure(c).closed == kic.force_closure(base).closed == True  # noqa: E712
    labels = {(0, 0, 1): "fx fy mz", (1, 0, 0): "fy fz mx", (0, 1, 0): "fz fx my"}
    assert base.labels == ("fx", "fy", "mz")
    assert c.labels == tuple(labels[normal].split()) if normal in labels else len(c.labels) == 3
    pin = kic.ContactSet([[0, 0, 0]], [normal], "pinned", plane=normal)
    assert_allclose(pin.map, [[1, 0], [0, 1], [0, 0]], atol=1e-14)


def test_summaries_list_all_parts() -> None:
    c = two_fingers("friction", names=["thumb", "index"])
    assert "thumb (friction)" in c.summary().text()
    assert c.components[:4] == ("thumb.n", "thumb.t1", "thumb.t2", "index.n")
    assert "moments about (0, 0, 0)" in c._repr_html_()
    c = kic.ContactSet(np.zeros((0, 2, 3)), np.ones((0, 2, 3)), "point", plane=None)
    assert "empty batch" in c.summary().text()
    assert "empty batch" in kic.form_closure(c).summary().text()
    p = np.stack([np.cos(TURN), np.sin(TURN), 0 * TURN], axis=-1)
    many = kic.ContactSet(np.stack([p, p]), np.stack([-p, p]), "friction", mu=0.5, plane=Z)
    assert "closed: 2 of 2" in kic.force_closure(many).summary().text()


# ------------------------------------------------------------------------------------------- refusals

P2 = [[-1, 0, 0], [1, 0, 0]]
N2 = [[1, 0, 0], [-1, 0, 0]]


def test_coefficients_that_are_not_used_are_not_read() -> None:
    c = kic.ContactSet(P2, N2, ["point", "friction"], mu=[np.nan, 0.3])
    np.testing.assert_array_equal(c.mu, [0, 0.3])


@pytest.mark.slow
def test_inconclusive_pyramids_raise() -> None:
    """A cone that is needed almost to its edge, in a direction that coarse pyramids do not reach."""
    tilt = np.arctan(0.5) - 0.02
    # in the direction between two edges of the four-sided pyramid
    d = np.array([0, 1, 1]) / np.sqrt(2)
    n = np.cos(tilt) * np.array([1.0, 0, 0]) + np.sin(tilt) * d
    c = kic.ContactSet(P2, [n, [-1, 0, 0]], "soft", mu=0.5, gamma=1.0, tangents=[[0, 1, 0], [0, 1, 0]])
    refuses(lambda: kic.force_closure(c, method="pyramids", edges=4), kic.SingularError, edges=4, failed=[()])
    pair = kic.ContactSet([P2, P2], [[n, [-1, 0, 0]], N2], "soft", mu=0.5, gamma=1.0)
    masked = kic.force_closure(pair, method="pyramids", edges=4, failures="mask")
    assert masked.ok.tolist() == [False, True]
    assert masked.closed.tolist() == [False, True]
    assert np.isnan(masked.margin[0])
    assert "undecided" in masked.summary().text()
    with raises(kic.SingularError, edges=4, failed=[(0,)]):
        kic.force_closure(pair, method="pyramids", edges=4)
    assert kic.force_closure(c, method="pyramids", edges=60)
    needs_solver()
    assert kic.force_closure(c)


def test_missing_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clarabel", None)
    caught = refuses(lambda: kic.force_closure(two_fingers("soft")), kic.KicError, extra="solver")
    assert "\n" not in str(caught)
    # what is linear needs none
    assert kic.force_closure(two_fingers("soft"), method="pyramids")
    assert kic.force_closure(two_fingers("friction", plane=Z))
