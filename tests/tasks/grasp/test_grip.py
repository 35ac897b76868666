"""Grip forces: balance, margins and optimality; errors with proofs of infeasibility; feet on the ground."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
from contact_sets import Z, generators, random_grasp
from numpy.testing import assert_allclose
from raising import raises, refuses
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

import kic

pytest.importorskip("clarabel")
CRITERIA = ["minimum norm", "minimum largest"]
SQUARE = np.array([[1.0, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0]])


def weights(c: kic.ContactSet) -> np.ndarray:
    """By how much each component counts in the norm."""
    return np.where(c.axis == 3, 1 / np.where(c.axis == 3, c.gamma[c.owner], 1.0), 1.0)


def cost(c: kic.ContactSet, f: np.ndarray, criterion: str) -> float:
    if criterion == "minimum norm":
        return float(np.linalg.norm(weights(c) * f))
    return max(
        float(np.linalg.norm(f[s]) if kind == "pinned" else f[s.start])
        for kind, s in zip(c.kinds, c.spans, strict=True)
    )


def slack(c: kic.ContactSet, f: np.ndarray, safety: float = 1.0) -> np.ndarray:
    """Margins computed independently."""
    left = []
    for k, kind in enumerate(c.kinds):
        n, t = f[c.spans[k]][0], f[c.spans[k]][1:]
        if kind == "pinned":
            continue
        if kind == "point":
            left.append(n)
        else:
            limits = np.array([c.mu[k], c.mu[k], c.gamma[k]])[: len(t)]
            left.append(c.mu[k] * (n - safety * np.sqrt(((t / limits) ** 2).sum())))
    return np.array(left or [np.inf])


def proves(c: kic.ContactSet, error: kic.SingularError, w: np.ndarray, safety: float = 1.0) -> None:
    """The certificate: contacts only push along the motion, and the load does work on it."""
    size = np.linalg.norm(c.points - c.points.mean(axis=0), axis=1).max()
    twist = error.twist / np.abs(error.twist).max()
    assert twist @ w > 1e-9 * np.linalg.norm(w) * min(size, 1)
    felt = c.map.T @ twist
    for k, kind in enumerate(c.kinds):
        p = felt[c.spans[k]]
        if kind == "pinned":
            assert np.abs(p).max() < 1e-7
        else:
            limits = np.array([c.mu[k], c.mu[k], c.gamma[k]])[: len(p) - 1]
            assert p[0] - np.linalg.norm(p[1:] * limits) / safety > -1e-7


@pytest.mark.slow
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_random_grasps_hold_or_report_why(planar: bool, criterion: str) -> None:
    """Held as linear programs with pyramids decide; accepted grips balance, no margin is negative."""
    rng = np.random.default_rng(31 + planar)
    held = refused = between = 0
    for _ in range(120):
        c = random_grasp(rng, planar)
        G = c.map
        w = rng.normal(size=len(G)) if rng.random() < 0.5 else -G @ np.where(c.axis == 0, 2.0, 0.1)
        safety = float(rng.choice([1.0, 1.3]))
        narrow = kic.ContactSet(
            c.points, c.normals, c.kinds, mu=c.mu / safety, gamma=c.gamma / safety, about=c.about,
            plane=None if c.plane is None else Z,
        )  # fmt: skip
        scale = np.abs(G).max(axis=1)
        inner, outer = (
            linprog(np.zeros(W.shape[1]), A_eq=W / scale[:, None], b_eq=-w / scale).status == 0
            for W in (generators(narrow, around) for around in (False, True))
        )
        try:
            grip = kic.grip_forces(c, w, criterion=criterion, safety=safety)
        except kic.SingularError as error:
            assert not inner
            refused += 1
            between += outer
            if not outer:
                proves(c, error, w, safety)
            continue
        assert outer
        between += not inner
        held += 1
        f = grip.force
        assert np.abs(G @ f + w).max() <= 1e-9 * np.abs(w).max() * scale.max()
        assert grip.margin.min() >= 0
        assert slack(c, f, safety).min() >= -1e-15 * np.abs(f).max()
        assert_allclose(np.minimum(grip.margin, 1e9).min(), min(slack(c, f).min(), 1e9), atol=1e-9)
        # nothing that is allowed in a random direction is cheaper
        least = cost(c, f, criterion)
        _, sigma, Vt = np.linalg.svd(G)
        internal = Vt[len(sigma) :]
        for _ in range(60 if len(internal) else 0):
            other = (
                f + internal.T @ rng.normal(size=len(internal)) * 10 ** rng.uniform(-4, 1) * np.abs(f).max()
            )
            if slack(c, other, safety).min() >= 0:
                assert cost(c, other, criterion) >= least * (1 - 1e-6) - 1e-9
    assert held >= 40
    assert refused >= 12
    assert between <= 6


@pytest.mark.slow
def test_the_minimum_lies_between_those_of_pyramids() -> None:
    """The largest normal force, against linear programs with the cones' inner and outer pyramids."""
    rng = np.random.default_rng(5)
    seen = 0
    while seen < 25:
        c = random_grasp(rng, planar=False, pins=False)
        w = rng.normal(size=6)
        values = []
        for around in (False, True):
            W = generators(c, around)
            counts = [{"point": 1, "friction": 90, "soft": 500}[kind] for kind in c.kinds]
            owner = np.repeat(np.arange(len(c)), counts)
            # generators have a normal force of 1 each; their sums stay below the last unknown
            A = np.concatenate([owner == np.arange(len(c))[:, None], -np.ones((len(c), 1))], axis=1)
            E = np.concatenate([W, np.zeros((6, 1))], axis=1)
            scale = np.abs(W).max(axis=1)[:, None]
            bounds = (0, None)
            found = linprog(
                np.eye(A.shape[1])[-1], A, np.zeros(len(c)), E / scale, -w / scale[:, 0], bounds
            )  # fmt: skip
            values.append(found.fun if found.status == 0 else np.inf)
        inner, outer = values
        if not np.isfinite(inner):
            continue
        ours = kic.grip_forces(c, w, criterion="minimum largest").normal.max()
        assert outer * (1 - 1e-7) <= ours <= inner * (1 + 1e-7)
        assert inner < 1.3 * outer
        seen += 1


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
def test_two_fingers_in_a_plane_in_closed_form(criterion: str) -> None:
    """Tangential forces are those of statics; one normal force is at its friction, whatever the criterion."""
    rng = np.random.default_rng(8)
    for _ in range(60):
        a, mu1, mu2 = rng.uniform(0.1, 2.0, 3)
        Fx, Fy, M = rng.normal(size=3)
        c = kic.ContactSet(
            [[-a, 0, 0], [a, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=[mu1, mu2], plane=Z
        )
        up1, up2 = (-Fy + M / a) / 2, (-Fy - M / a) / 2
        n2 = max(abs(up2) / mu2, abs(up1) / mu1 + Fx)
        grip = kic.grip_forces(c, [Fx, Fy, M], criterion=criterion)
        assert_allclose(grip.normal, [n2 - Fx, n2], rtol=1e-7)
        assert_allclose(grip.on_body[0][:, 1], [up1, up2], atol=1e-9)
        assert grip.binding


def test_two_soft_fingers_in_closed_form() -> None:
    """Weight through the middle and a moment about the line: half of each, on the ellipsoid."""
    mu, gamma, W, M = 0.4, 0.02, 10.0, 0.05
    c = kic.ContactSet([[-0.1, 0, 0], [0.1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "soft", mu=mu, gamma=gamma)
    n = np.hypot(W / 2 / mu, M / 2 / gamma)
    for criterion in CRITERIA:
        grip = kic.grip_forces(c, [0, 0, -W, M, 0, 0], criterion=criterion)
        assert_allclose(grip.normal, n, rtol=1e-6)
    force, moment = kic.grip_forces(c, [0, 0, -W, M, 0, 0]).on_body
    assert_allclose(force.sum(0), [0, 0, W], atol=1e-9)
    assert_allclose(moment[:, 0], -M / 2, rtol=1e-5)


def test_level_of_the_grip_and_safety() -> None:
    c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.5, plane=Z)
    tight = kic.grip_forces(c, [0, -1, 0], normal_force_min=20)
    assert_allclose(tight.normal, 20, rtol=1e-7)
    assert_allclose(tight.margin, 20 * 0.5 - 0.5, rtol=1e-7)
    assert (tight.normal >= 20).all()
    assert tight.binding == ()
    safe = kic.grip_forces(c, [0, -1, 0], safety=2)
    assert_allclose(safe.normal, 2, rtol=1e-6)
    # a grip that holds nothing but its own level
    alone = kic.grip_forces(c, [0, 0, 0], normal_force_min=3)
    assert_allclose(alone.normal, 3, rtol=1e-7)
    np.testing.assert_array_equal(kic.grip_forces(c, [0, 0, 0]).force, 0)


def test_pins_pull_and_share() -> None:
    """A force between two pins: the smallest sum of squares is the pseudoinverse's."""
    rng = np.random.default_rng(1)
    c = kic.ContactSet(rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), "pinned")
    w = rng.normal(size=6)
    grip = kic.grip_forces(c, w)
    assert_allclose(grip.force, -np.linalg.pinv(c.map) @ w, atol=1e-9)
    assert np.isinf(grip.margin).all()
    least = kic.grip_forces(c, w, criterion="minimum largest")
    sizes = np.linalg.norm(least.on_body[0], axis=-1)
    assert sizes.max() <= np.linalg.norm(grip.on_body[0], axis=-1).max() + 1e-9
    assert_allclose(c.map @ least.force, -w, atol=1e-12)


def test_unopposed_contact_carries_no_load() -> None:
    """A finger at the side of a block on smooth ground must not press; the others hold the block."""
    c = kic.ContactSet(
        [[-1, 0, 0], [1, 0, 0], [-1, 1, 0]], [[0, 1, 0], [0, 1, 0], [1, 0, 0]], "point", plane=Z
    )
    for criterion in CRITERIA:
        grip = kic.grip_forces(c, [0, -10, 3], criterion=criterion)
        assert_allclose(grip.force, [6.5, 3.5, 0], atol=1e-9)
        assert grip.force[2] == 0
    with raises(kic.LimitError, binding=("contact 3",), scale=None) as caught:
        kic.grip_forces(c, [0, -10, 3], normal_force_min=1)
    assert caught.value.scale is None


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(scale: float) -> None:
    rng = np.random.default_rng(17)
    c = random_grasp(rng, planar=False, pins=False)
    while not kic.force_closure(c):
        c = random_grasp(rng, planar=False, pins=False)
    w = rng.normal(size=6)
    small = kic.ContactSet(
        scale * c.points, c.normals, c.kinds, mu=c.mu, gamma=scale * c.gamma, about=scale * c.about
    )
    one = kic.grip_forces(c, w, criterion="minimum largest")
    other = kic.grip_forces(small, 1e4 * w * [1, 1, 1, scale, scale, scale], criterion="minimum largest")
    assert_allclose(other.normal.max(), 1e4 * one.normal.max(), rtol=1e-6)
    assert other.margin.min() >= 0


# ---------------------------------------------------------------------------------------- joint efforts


def arms() -> tuple[kic.ContactSet, np.ndarray]:
    """Two fingers, each of two slides: along the line and up."""
    c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.5, plane=Z)
    linear = np.zeros((2, 3, 4))
    linear[0, 0, 0] = linear[0, 1, 1] = linear[1, 0, 2] = linear[1, 1, 3] = 1
    return c, c.jacobian(linear)


def test_efforts_are_those_of_the_fingers() -> None:
    c, J = arms()
    own = np.array([0.0, 1, 0, 2])
    grip = kic.grip_forces(c, [0, -6, 0], jacobian=J, offset=own)
    assert_allclose(grip.effort, own + J.T @ grip.force, atol=1e-12)
    assert_allclose(grip.effort, [6, 4, -6, 5], rtol=1e-6)
    assert "T (efforts)" in grip.summary().text()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_limits_share_the_load_anew(criterion: str) -> None:
    """A finger whose press is limited to less than what both need is refused."""
    c, J = arms()
    free = [np.inf] * 4
    hold = partial(kic.grip_forces, c, [0, -6, 0], criterion=criterion, jacobian=J)
    assert hold(effort_limits=free).normal.max() > 5.9
    ok = hold(effort_limits=[6.1, np.inf, np.inf, 3.1])
    assert (np.abs(ok.effort) <= ok.effort_max).all()
    with raises(kic.LimitError, binding=("left press",)) as caught:
        kic.grip_forces(
            c, [0, -6, 0], criterion=criterion, jacobian=J, effort_limits=[5.9, 90, 90, 90],
            joints=["left press", "left lift", "right press", "right lift"],
        )  # fmt: skip
    assert_allclose(caught.value.scale, 5.9 / 6, rtol=1e-6)
    assert len(str(caught.value)) < 400
    with raises(kic.LimitError, binding=("4",)):
        kic.grip_forces(c, [0, -6, 0], criterion=criterion, jacobian=J, effort_limits=[9, 9, 9, 2.9])
    # the contacts alone are at fault first
    hard = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [1, 0, 0]], "friction", mu=0.5, plane=Z)
    with raises(kic.SingularError, failed=[()]):
        kic.grip_forces(hard, [6, 0, 0], criterion=criterion, jacobian=J, effort_limits=[0.1] * 4)


def test_a_passive_joint_keeps_its_effort() -> None:
    """Limits that are equal fix an effort: here the third of three fingers carries nothing upwards."""
    p = np.array([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0]])
    c = kic.ContactSet(p, -p, "friction", mu=0.8, plane=Z)
    J = np.zeros((6, 1))
    J[4] = 1.0
    grip = kic.grip_forces(c, [0, -6, 0], jacobian=J, effort_limits=[0.0])
    assert grip.effort[0] == 0
    assert abs(grip.force[4]) < 1e-9
    bent = kic.grip_forces(c, [0, -6, 0], jacobian=J, effort_limits=[[2.0], [2.0]])
    assert_allclose(bent.force[4], 2.0, atol=1e-9)
    both = np.zeros((6, 2))
    both[4] = 1.0
    with raises(kic.LimitError, binding=("1", "2"), scale=None):
        kic.grip_forces(c, [0, -6, 0], jacobian=both, effort_limits=[[2.0, 1.0], [2.0, 1.0]])
    # where the contacts alone are too few, that is reported first
    feet = kic.ContactSet(p, np.broadcast_to([0, 1.0, 0], (3, 3)), "friction", mu=0.8, plane=Z)
    with raises(kic.SingularError, failed=[()]):
        kic.grip_forces(feet, [0, 6, 0], jacobian=both, effort_limits=[[2.0, 1.0], [2.0, 1.0]])


def test_a_joint_that_no_contact_reaches() -> None:
    c, J = arms()
    J = np.concatenate([J, np.zeros((4, 1))], axis=1)
    grip = kic.grip_forces(c, [0, -1, 0], jacobian=J, offset=[0, 0, 0, 0, 2], effort_limits=[9] * 5)
    assert grip.effort[4] == 2
    with raises(kic.LimitError, binding=("5",), scale=None):
        kic.grip_forces(c, [0, -1, 0], jacobian=J, offset=[0, 0, 0, 0, 2], effort_limits=[9, 9, 9, 9, 1])


# ------------------------------------------------------------------------------------------------ feet


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["point", "friction"])
def test_weight_is_held_over_the_support_polygon(kind: str) -> None:
    """Feet on flat ground hold where the centre of mass lies above their hull, and nowhere else."""
    rng = np.random.default_rng(41)
    held = 0
    for _ in range(40):
        feet = np.zeros((int(rng.integers(3, 6)), 3))
        feet[:, :2] = rng.normal(size=(len(feet), 2))
        hull = ConvexHull(feet[:, :2]).equations
        com = np.append(feet[:, :2].mean(axis=0) + rng.normal(size=2) * 0.3, 0.5)
        c = kic.ContactSet(feet, np.broadcast_to([0, 0, 1], feet.shape), kind, mu=0.6, about=com)
        inside = bool((hull[:, :2] @ com[:2] + hull[:, 2] < 0).all())
        weight = [0, 0, -50.0, 0, 0, 0]
        try:
            grip = kic.grip_forces(c, weight)
        except kic.SingularError as error:
            assert not inside
            proves(c, error, np.array(weight))
            continue
        assert inside
        held += 1
        assert_allclose(grip.normal.sum(), 50)
        # the static stability margin: how far the weight may shift along a direction
        a = rng.uniform(0, 2 * np.pi)
        d = np.array([np.cos(a), np.sin(a)])
        turn = np.append(np.zeros(3), np.cross([*d, 0], [0, 0, -50.0]))
        rate = hull[:, :2] @ d
        reach = np.where(
            rate > 0, -(hull[:, :2] @ com[:2] + hull[:, 2]) / np.where(rate > 0, rate, 1), np.inf
        )
        margin = kic.largest_load(c, turn, weight)
        assert_allclose(margin, reach.min(), rtol=1e-5)
        kic.grip_forces(c, np.array(weight) + margin * (1 - 1e-5) * turn)
        with pytest.raises(kic.SingularError):
            kic.grip_forces(c, np.array(weight) + margin * (1 + 1e-5) * turn)
    assert 10 <= held <= 35


def test_on_the_edge_of_the_polygon_other_contacts_carry_no_load() -> None:
    for com, used in (([1.0, 0.3, 0.5], [0, 3]), ([1.0, 1.0, 0.5], [0])):
        c = kic.ContactSet(SQUARE, np.broadcast_to([0, 0, 1], (4, 3)), "friction", mu=0.6, about=com)
        grip = kic.grip_forces(c, [0, 0, -10, 0, 0, 0])
        assert np.flatnonzero(grip.normal).tolist() == used
        assert_allclose(grip.normal.sum(), 10)


@pytest.mark.parametrize(("slope", "holds"), [(0.5 - 1e-5, True), (0.5 + 1e-5, False), (0.5, None)])
def test_a_slope_as_steep_as_its_friction(slope: float, holds: bool | None) -> None:
    n = np.array([-slope, 1, 0]) / np.hypot(slope, 1)
    t = np.array([n[1], -n[0], 0])
    c = kic.ContactSet([-t, t], [n, n], "friction", mu=0.5, plane=Z)
    if holds:
        assert kic.grip_forces(c, [0, -9, 0]).margin.min() >= 0
        return
    caught = refuses(lambda: kic.grip_forces(c, [0, -9, 0]), kic.SingularError)
    if holds is None:
        assert "with zero margin" in str(caught)
        assert set(caught.at) == {"1", "2"}
    else:
        assert "cannot resist a force along" in str(caught)
        proves(c, caught, np.array([0, -9.0, 0]))


def test_largest_loads() -> None:
    c = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.5, plane=Z)
    assert kic.largest_load(c, [0, -1, 0]) == np.inf  # they may press as they like
    _, J = arms()
    assert_allclose(kic.largest_load(c, [0, -1, 0], jacobian=J, effort_limits=[8, 9, 8, 9]), 8.0, rtol=1e-6)
    ground = kic.ContactSet(SQUARE, np.broadcast_to([0, 0, 1], (4, 3)), "friction", mu=0.6)
    assert kic.largest_load(ground, [0, 0, 1, 0, 0, 0]) == 0  # nothing holds it down
    lifted = [[0, 0, -10, 0, 0, 0], [0, 0, 10, 0, 0, 0]]
    most = kic.largest_load(ground, [0, 0, 1, 0, 0, 0], lifted, failures="mask")
    assert_allclose(most, [10, np.nan], rtol=1e-6)
    pushed = kic.largest_load(ground, [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]], lifted[0])
    assert_allclose(pushed, [6, 6 / np.sqrt(2)], rtol=1e-6)
    refuses(lambda: kic.largest_load(ground, np.zeros(6)), key="direction")


# ------------------------------------------------------------------------------- grasps of mechanisms


def contacts_of(g: kic.results.Grasp) -> kic.ContactSet:
    return kic.ContactSet(
        g.point, g.inward, g.kinds, mu=g.friction, gamma=g.torsion, tangents=g.tangent1, about=g.reference,
        names=[contact.name for contact in g.contacts],
    )  # fmt: skip


@pytest.mark.parametrize(("model", "held"), [("three-finger-hand", "ball"), ("quadruped", "trunk")])
def test_contacts_of_a_mechanism(model: str, held: str) -> None:
    """Grasp map, hand Jacobian and forces are those of the grasp, but for the signs of its rows."""
    g = kic.load(model).at().grasp(held)
    c = contacts_of(g)
    assert_allclose(c.map, g.G * g.signs, atol=1e-14)
    assert kic.force_closure(c).closed == (model == "three-finger-hand")
    load = -g.motion().wrench
    J = g.signs[:, None] * g.J
    grip = kic.grip_forces(c, load, safety=1.2, normal_force_min=0.5, jacobian=J, joints=g.fingers)
    held_so = g.motion(forces=g.signs * grip.force)
    assert not held_so.remarks
    assert_allclose(g.signs * held_so.force, grip.force, atol=1e-9 * np.abs(load).max())
    # what contacts take of the efforts is what changes with their loads
    other = g.motion()
    assert_allclose(held_so.effort - other.effort, grip.effort - J.T @ (g.signs * other.force), atol=1e-9)


# ------------------------------------------------------------------------------- batches and refusals


@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_batches(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    c = kic.ContactSet(SQUARE, np.broadcast_to([0, 0, 1], (4, 3)), "friction", mu=0.6)
    w = np.zeros((*batch, 6))
    w[..., 2], w[..., 3:5] = -10, rng.uniform(-3, 3, (*batch, 2))
    J = rng.normal(size=(12, 2))
    grip = kic.grip_forces(c, w, jacobian=J, effort_limits=[1e3, 1e3])
    shapes = {
        "force": 12, "margin": 4, "normal": 4, "effort": 2, "wrench": 6, "effort_min": 2, "effort_max": 2,
    }  # fmt: skip
    assert {name: getattr(grip, name).shape for name in shapes} == {k: (*batch, n) for k, n in shapes.items()}
    for a, tail in ((grip.on_body[0], (4, 3)), (kic.largest_load(c, [1, 0, 0, 0, 0, 0], w), ())):
        assert a.shape == (*batch, *tail)
    assert "grip forces" in grip.summary().text()
    assert "grip forces" in grip._repr_html_()
    assert isinstance(grip.binding, tuple)
    for index in np.ndindex(batch):
        alone = kic.grip_forces(c, w[index], jacobian=J, effort_limits=[1e3, 1e3])
        np.testing.assert_array_equal(alone.force, grip.force[index])


def test_infeasible_members() -> None:
    c = kic.ContactSet(SQUARE, np.broadcast_to([0, 0, 1], (4, 3)), "friction", mu=0.6)
    w = np.zeros((2, 3, 6))
    w[..., 2] = -10
    w[1, 1, 2] = w[0, 2, 2] = 10
    with pytest.raises(
        kic.SingularError, match=r"force along \(0, 0, 1\).*\[0, 2\], \[1, 1\] of batch"
    ) as caught:
        kic.grip_forces(c, w)
    assert caught.value.failed == [(0, 2), (1, 1)]
    masked = kic.grip_forces(c, w, failures="mask")
    assert np.argwhere(~masked.ok).tolist() == [[0, 2], [1, 1]]
    assert np.isnan(masked.force[~masked.ok]).all()
    assert np.isfinite(masked.force[masked.ok]).all()


SPIN = kic.ContactSet([[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]], "friction", mu=0.5)


def test_unresisted_loads_are_described() -> None:
    caught = refuses(lambda: kic.grip_forces(SPIN, [0, 0, -1, 0.1, 0, 0]), kic.SingularError)
    said = str(caught)
    assert "cannot resist a moment about the line through (0, 0, 0) along (1, 0, 0)" in said
    assert "in either sense" in said
    assert len(said) < 400
    proves(SPIN, caught, np.array([0, 0, -1, 0.1, 0, 0]))


def test_missing_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clarabel", None)
    refuses(lambda: kic.grip_forces(SPIN, [0, 0, -1, 0, 0, 0]), kic.KicError, extra="solver")
    # in a plane the largest normal force takes a linear program only
    c, _ = arms()
    assert_allclose(kic.grip_forces(c, [0, -6, 0], criterion="minimum largest").normal, 6, rtol=1e-7)


def test_solutions_out_of_bounds_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong solutions of a solver raise an error."""
    from kic.numerics import conic_programs as conic

    c, _ = arms()
    good = conic.solve

    def wrong(program):
        x, y, z = good(program)
        return x - 0.1 * np.arange(len(x)), y, z

    monkeypatch.setattr(conic, "solve", wrong)
    refuses(lambda: kic.grip_forces(c, [0, -6, 0]), kic.SingularError, failed=[()])
    monkeypatch.undo()
    monkeypatch.setattr(conic, "solve_feasible", lambda p: np.ones(len(p.cost)))
    caught = refuses(lambda: kic.grip_forces(c, [0, -6, 0]), kic.SingularError, contacts=("1", "2"))
    assert caught.residual > 0.1
