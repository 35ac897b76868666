"""Linearized efforts against complex steps of the effort, in every coordinate, load and batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from arms import DATA, arm
from raising import refuses
from representative_models import OTHER_MODELS
from sampling import (
    STEP,
    derivative,
    effort_gradient,
    mismatch,
    moved,
    random_body,
    random_posture,
    random_tree,
    tree_rates,
)

import kic
from kic.errors import KicError
from kic.mechanism.configuration import Configuration

# beside the oracle's own rounding, both are exact
TOLERANCE = 1e-10


def by_rate(c: Configuration, v: np.ndarray, a: np.ndarray, wrt=None) -> np.ndarray:
    """∂T/∂q̇ (M, M) by complex steps of the rates."""
    d = c.dynamics(wrt=wrt)
    return np.stack([d.inverse_dynamics(v + 1j * STEP * e, a).imag / STEP for e in np.eye(len(v))], axis=-1)


def loaded(m: kic.Mechanism, rng: np.random.Generator) -> kic.Mechanism:
    """The mechanism with every kind of load on the body of its last moving point, and in its joints."""
    last = [p for p in m.points if p.body != "ground"][-1]
    L = m._model.length
    post = kic.Point("a post", "ground", at=tuple(L * (np.array([3, 2, 1]) + rng.normal(size=3) / 3)))
    joints = [
        replace(j, stiffness=2.0, damping=1.5, rest=0.1) if j.type in ("revolute", "prismatic") else j
        for j in m.joints
    ]

    def vector():
        return tuple(rng.normal(size=3))

    return replace(
        m,
        joints=joints,
        points=[*m.points, post],
        forces=[
            *m.forces,
            kic.Force("a push", last.name, vector()),
            kic.Force("a thrust", last.name, vector(), axes="body"),
        ],
        moments=[
            *m.moments,
            kic.Moment("a twist", last.body, vector(), axes="body"),
            kic.Moment("a wrench", last.body, vector()),
        ],
        springs=[
            *m.springs,
            kic.Spring("a coil", (last.name, "a post"), stiffness=30, rest=0.4 * L, damping=2.0),
            kic.Spring("a rubber", ("a post", last.name), stiffness=10),
        ],
        gravity=vector(),
    )


def with_masses() -> list[str]:
    names = []
    for name in kic.model_names():
        try:
            kic.load(name)._model.masses  # noqa: B018
        except KicError:
            continue
        names.append(name)
    return names


@pytest.mark.parametrize("case", DATA["chains"], ids=lambda case: case["chain"]["types"])
def test_freeman_s_tables(case: dict) -> None:
    lin = arm(case["chain"]).at(case["phi"]).linearize(case["phid"], case["phidd"])
    assert mismatch(lin.K, np.array(case["dtau_dphi"])) < 1e-12
    assert mismatch(lin.C, np.array(case["dtau_dphid"])) < 1e-12
    assert mismatch(lin.I, np.array(case["I"])) < 1e-12
    assert mismatch(lin.T, np.array(case["tau_no_gravity"])) < 1e-12
    assert not lin.K_load.any()
    assert not lin.commutator.any()


@pytest.mark.slow_for(*OTHER_MODELS)
@pytest.mark.parametrize("name", with_masses())
def test_shipped_models_with_every_load(name: str) -> None:
    rng = np.random.default_rng(len(name))
    m = loaded(kic.load(name), rng)
    c = m.at()
    M = len(c.dynamics().coordinates)
    v, a = rng.normal(size=(2, M))
    lin = c.linearize(v, a)
    assert mismatch(lin.K, effort_gradient(c, v, a)) < TOLERANCE
    scale = np.abs(lin.C).max()
    assert np.abs(lin.C - by_rate(c, v, a)).max() < TOLERANCE * scale
    d = c.dynamics()
    assert np.array_equal(lin.I, d.I)
    assert np.array_equal(lin.T, d.inverse_dynamics(v, a))
    # the loads' own share: that of a mechanism at rest, where only they act, but for dampers
    still = c.linearize()
    assert mismatch(still.K, effort_gradient(c, 0 * v, 0 * a)) < TOLERANCE
    assert not still.K_inertia.any()


TREES = [
    (["R", "spherical", "R"], False),
    (["free", "R", "P"], True),
    (["P", "universal", "spherical", "R"], True),
    (["free", "spherical", "planar", "cylindrical", "fixed", "R"], True),
    ("RPRRPR", False),
    ("P", False),
]


@pytest.mark.parametrize(("kinds", "branched"), TREES, ids=str)
@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)], ids=str)
def test_batches_of_trees_with_balls(kinds, branched: bool, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    m = random_tree(rng, kinds, branched, loads=True)
    c = random_posture(rng, m, batch)
    M = len(c.coordinates)
    v, a = rng.normal(size=(2, *batch, M))
    lin = c.linearize(v, a)
    assert lin.K.shape == lin.C.shape == lin.I.shape == lin.commutator.shape == (*batch, M, M)
    assert lin.batch == batch
    want = derivative(c, lambda x: x.dynamics().inverse_dynamics(v, a))
    assert mismatch(lin.K, want) < TOLERANCE
    # one configuration, a batch of motions
    if batch == (3,):
        one = m.at(c._phi[0]).linearize(v, a)
        assert mismatch(one.K[0], lin.K[0]) < 1e-12
        assert one.K.shape == (3, M, M)


WRT = [
    ("RPRRPR", ["b5.x", "b5.y", "j1", "b2.z", "b4.y", "j5"]),
    ("RRRRPR", ["b5"]),
    (["R", "spherical", "R"], ["b1.x", "b2.y", "b2.wx", "b2.wz", "b2.z"]),
    (["R", "spherical", "R"], ["j0", "b1.x", "b1.y", "b2.z", "j2"]),
]


@pytest.mark.parametrize(("kinds", "wrt"), WRT, ids=lambda x: str(x)[:24])
@pytest.mark.parametrize("batch", [(), (2, 1), (0,)], ids=str)
def test_other_coordinates(kinds, wrt: list[str], batch: tuple[int, ...]) -> None:
    """Places, angular velocities and balls as coordinates: quasi-derivatives along each rate."""
    rng = np.random.default_rng(3)
    m = random_tree(rng, kinds, loads=True)
    c = random_posture(rng, m, batch)
    M = len(c.coordinates)
    v, a = rng.normal(size=(2, *batch, M))
    lin = c.linearize(v, a, wrt=wrt)
    allowed = TOLERANCE
    if c._states.size:
        allowed = max(allowed, 1e4 * np.finfo(float).eps * c.coefficients(wrt).condition().max() ** 3)
    assert mismatch(lin.K, effort_gradient(c, v, a, wrt)) < allowed
    assert lin.holonomic == c.dynamics(wrt=wrt).holonomic


@pytest.mark.parametrize(
    ("name", "wrt"),
    [
        ("four-bar", ["D"]),
        ("four-bar", ["tip.x"]),
        ("five-bar", ["coupler.x", "coupler.y"]),
        ("gough-stewart", ["platform"]),
        ("three-legged-robot", None),
        ("delta", None),
        ("rssr", None),
    ],
)
def test_closed_mechanisms_in_other_coordinates(name: str, wrt) -> None:
    rng = np.random.default_rng(11)
    m = loaded(kic.load(name), rng)
    wrt = wrt or [m.coordinates[k] for k in range(m.dof)][::-1]
    c = m.at()
    v, a = rng.normal(size=(2, m.dof))
    assert mismatch(c.linearize(v, a, wrt=wrt).K, effort_gradient(c, v, a, wrt)) < TOLERANCE


def test_a_path_of_a_closed_mechanism() -> None:
    rng = np.random.default_rng(1)
    m = loaded(kic.load("four-bar"), rng)
    c = m.path({"A": 1 + np.linspace(0, 6, 50)})
    v, a = rng.normal(size=(2, 50, 1))
    lin = c.linearize(v, a)
    assert mismatch(lin.K, effort_gradient(c, v, a)) < TOLERANCE
    # the rate of the effort along the motion is that of the effort in time
    jerk = rng.normal(size=(50, 1))
    h = 1j * STEP
    later = (
        moved(c, np.einsum("bna,ba->bn", tree_rates(c), v))
        .dynamics()
        .inverse_dynamics(v + h * a, a + h * jerk)
    )
    assert mismatch(lin.rate(jerk), later.imag / STEP) < TOLERANCE


def test_blocks_of_a_large_batch() -> None:
    """Blocks of a batch give what its members give."""
    from kic.analysis.linear import linearize as stiffness

    rng = np.random.default_rng(2)
    m = loaded(kic.load("puma560"), rng)
    c = m.at(rng.normal(size=(7, 6)))
    v, a = rng.normal(size=(2, 7, 6))
    whole = c.linearize(v, a).K
    kept = stiffness._BLOCK_SIZE
    try:
        stiffness._BLOCK_SIZE = 1
        assert mismatch(c.linearize(v, a).K, whole) < 1e-14
    finally:
        stiffness._BLOCK_SIZE = kept


def test_given_loads_and_efforts() -> None:
    rng = np.random.default_rng(5)
    m = random_tree(rng, "RRP", loads=True)
    c = random_posture(rng, m)
    push = rng.normal(size=(4, 3))
    v, a = rng.normal(size=(2, 3))
    lin = c.linearize(v, a, applied={"push": push, "thrust": push[0]})
    want = effort_gradient(c, v, a, applied={"push": push, "thrust": push[0]})
    assert mismatch(lin.K, want) < TOLERANCE
    effort = c.dynamics().inverse_dynamics(v, a)
    same = c.linearize(v, effort=effort)
    assert mismatch(same.qdd, a) < 1e-10
    assert mismatch(same.K, c.linearize(v, a).K) < 1e-10


def test_springs_at_their_ends() -> None:
    """A spring without free length is linear even where its ends meet; one with a free length is refused."""
    m = kic.Mechanism(
        "bead",
        [kic.Body("bead", mass=1.0, com=(0, 0, 0), inertia=(0, 0, 0))],
        [kic.Joint("s", "prismatic", ("ground", "bead"), axis=(1, 0, 0))],
        points=[kic.Point("eye", "bead", (0, 0, 0)), kic.Point("post", "ground", (0, 0, 0))],
        springs=[kic.Spring("coil", ("eye", "post"), stiffness=3.0)],
    )
    assert pytest.approx(np.array([[3.0]])) == m.at().linearize().K
    taut = replace(m, springs=[kic.Spring("coil", ("eye", "post"), stiffness=3.0, rest=0.1)])
    refuses(lambda: taut.at().linearize(), names=("coil",))


def test_masked_members() -> None:
    m = kic.load("puma560")
    phi = np.zeros((3, 6)) + 0.3
    phi[1, 2] = np.nan
    lin = m.at(phi, failures="mask").linearize(np.ones(6), np.ones(6))
    assert np.isnan(lin.K[1]).all()
    assert mismatch(lin.K[2], m.at(phi[0]).linearize(np.ones(6), np.ones(6)).K) < 1e-14
    modes = lin.modes()
    assert np.isnan(modes.eigenvalues[1]).all()
    assert np.isfinite(modes.eigenvalues[0]).all()
    # coordinates that fail at some members
    c = kic.load("horn-two-link").at([[0.3, 1.0], [0.3, 0.0]])
    refuses(lambda: c.linearize(wrt=["tip.x", "tip.y"]), kic.SingularError)
    partly = c.linearize(wrt=["tip.x", "tip.y"], failures="mask")
    assert np.isfinite(partly.K[0]).all()
    assert np.isnan(partly.K[1]).all()


def test_commutator_of_turning_rates() -> None:
    """d(δθ)/dt = δω + ω × δθ for a body's rows, as (3-53) needs and the source leaves out."""
    rng = np.random.default_rng(6)
    m = random_tree(rng, ["R", "R", "R", "R", "P", "R"])
    c = random_posture(rng, m, (2,))
    v = rng.normal(size=(2, 6))
    lin = c.linearize(v, wrt=["b5"])
    for b in range(2):
        w = v[b, 3:]
        cross = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        want = np.zeros((6, 6))
        want[3:, 3:] = cross
        assert np.abs(lin.commutator[b] - want).max() < 1e-11 * np.abs(w).max()
    # of a ball in its own coordinates, and the same seen as rows
    m = random_tree(rng, ["spherical", "P"])
    c = random_posture(rng, m)
    v = rng.normal(size=4)
    own = c.linearize(v).commutator
    assert np.abs(own[:3, :3] @ v[:3]).max() < 1e-14
    rows = c.linearize(v, wrt=["j0", "j1"]).commutator
    assert mismatch(rows, own) < 1e-12


def test_commutators_of_all_kinds_of_coordinates() -> None:
    """Of places, the rate of a small deviation is the deviation of the rate: φ̇ᵀH + G W = (Hφ̇)ᵀ for any q."""
    rng = np.random.default_rng(13)
    closed = kic.Mechanism(
        "two balls",
        [random_body(rng, name) for name in ("crank", "rod", "rocker")],
        [
            kic.Joint("A", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("S", "spherical", ("rod", "crank"), at=(1, 0, 0)),
            kic.Joint("T", "spherical", ("rod", "rocker"), at=(1.5, 2, 0.5)),
            kic.Joint("B", "revolute", ("ground", "rocker"), at=(3, 2, 0), axis=(0, 1, 0.3)),
        ],
        points=[kic.Point("tip", "rod", (1.1, 0.4, 0.9))],
        coordinates=["A", "S.1"],
    )
    cases = [(closed.at(), wrt, "tip") for wrt in (None, ["B", "rod.wx"], ["A", "S.3"], ["rod.wz", "rod.wy"])]
    for kinds, wrt in (
        (["free", "R", "P"], ["b0", "j1", "j2"]),
        (["R", "spherical", "R"], ["b1.x", "b2.y", "b2.wx", "b2.wz", "b2.z"]),
    ):
        c = random_posture(rng, random_tree(rng, kinds))
        cases += [(c, None, "p2"), (c, wrt, "p2")]
    for c, wrt, point in cases:
        rows = c.coefficients(point, wrt=wrt)
        v = rng.normal(size=len(rows.columns))
        W = c.linearize(v, wrt=wrt).commutator
        assert W.any()
        left = np.einsum("pmn,m->pn", rows.H, v) + rows.G @ W - np.einsum("pln,n->pl", rows.H, v)
        assert np.abs(left).max() < 1e-10 * max(np.abs(rows.H).max(), 1), (c.name, wrt)


@pytest.mark.parametrize("name", ["puma560", "four-bar", "gough-stewart"])
def test_sensitivities_pass_through(name: str) -> None:
    m = kic.load(name)
    body = m.bodies[-1].name
    ask = lambda x: x.at(m.at()._phi if x.dof == 6 and name == "puma560" else None).linearize(  # noqa: E731
        np.full(x.dof, 0.3)
    )
    weight = f"{body}.mass"
    slope = m.sensitivity(lambda x: ask(x).K, weight)
    heavy = replace(m, bodies=[*m.bodies[:-1], replace(m.bodies[-1], mass=m.bodies[-1].mass + 1.0)])
    # K is linear in a mass
    assert mismatch(slope[0], ask(heavy).K - ask(m).K) < 1e-9


@pytest.mark.parametrize("kinds", ["RRP", ["R", "spherical", "R"]], ids=str)
def test_second_order_in_the_disturbance(kinds) -> None:
    """Nonlinear less linear efforts shrink as the square of the disturbance, turns of balls included."""
    rng = np.random.default_rng(8)
    m = random_tree(rng, kinds, loads=True)
    c = random_posture(rng, m)
    M = len(c.coordinates)
    v, a, dq, dv, da = rng.normal(size=(5, M))
    lin = c.linearize(v, a)
    sizes, missed = np.array([1e-2, 1e-3]), []
    from kic.kinematics.state import integrate

    for s in sizes:
        step = c._model.identity.tree_rates(c._states, s * dq[None])
        there = Configuration(c._model, (), integrate(c._model.tree, c._states, step))
        real = there.dynamics().inverse_dynamics(v + s * dv, a + s * da) - lin.T
        missed.append(np.abs(real - lin.inverse_dynamics(s * dq, s * dv, s * da)).max())
    slope = np.log(missed[0] / missed[1]) / np.log(sizes[0] / sizes[1])
    assert slope == pytest.approx(2, abs=0.05)


def test_modes_of_closed_forms() -> None:
    # two equal masses on massless rods: ω² = (2 ± √2) g/ℓ
    g, ell = 9.81, 0.7
    m = kic.Mechanism(
        "double pendulum",
        [
            kic.Body("one", mass=1.3, com=(0, -ell, 0), inertia=(0, 0, 0)),
            kic.Body("two", mass=1.3, com=(0, -2 * ell, 0), inertia=(0, 0, 0)),
        ],
        [
            kic.Joint("A", "revolute", ("ground", "one"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("B", "revolute", ("one", "two"), at=(0, -ell, 0), axis=(0, 0, 1)),
        ],
        gravity=(0, -g, 0),
    )
    lin = m.at().linearize()
    modes = lin.modes()
    want = np.sqrt((2 + np.array([-1, 1]) * np.sqrt(2)) * g / ell)
    assert modes.natural == pytest.approx(want, rel=1e-13)
    x = modes.natural_shapes
    assert x.T @ lin.I @ x == pytest.approx(np.eye(2), abs=1e-13)
    assert x.T @ lin.K @ x == pytest.approx(np.diag(want**2), abs=1e-11)
    assert modes.eigenvalues == pytest.approx(np.array([1, -1, 1, -1]) * 1j * np.repeat(want, 2))
    assert not modes.damping.any()
    assert modes.descriptions()[0].startswith(f"oscillates at {want[0] / 2 / np.pi:.4g} Hz: A 1, B ")
    # and upside down
    up = m.at([np.pi, 0.0]).linearize().modes()
    assert up.squares == pytest.approx(-(want[::-1] ** 2), rel=1e-12)
    assert np.isnan(up.natural).all()
    assert len(up.descriptions()) == 2
    assert all(line.startswith("grows with time constant") for line in up.descriptions())
    assert float(up.growth) == pytest.approx(want[1])


def bead(damping: float) -> kic.Mechanism:
    return kic.Mechanism(
        "bead",
        [kic.Body("bead", mass=2.0, com=(0, 0, 0), inertia=(0, 0, 0))],
        [kic.Joint("s", "prismatic", ("ground", "bead"), axis=(1, 0, 0), stiffness=18.0, damping=damping)],
    )


@pytest.mark.parametrize("time", [1.0, 1e-9])
def test_eigenvalues_are_sorted_by_magnitude(time: float) -> None:
    """Also of conservative mechanisms that grow, and in any unit of time."""
    K = np.diag([-100.0, 1.0, 4.0]) * time**2
    for damping in (0.0, 1e-13):
        modes = kic.results.Modes(tuple("abc"), np.eye(3), damping * time * np.eye(3), K, np.zeros((3, 3)))
        assert bool(modes.conservative) == (damping == 0)
        pairs = modes.eigenvalues.reshape(3, 2) / time
        assert np.abs(pairs) == pytest.approx(np.array([[1.0, 1.0], [2.0, 2.0], [10.0, 10.0]]))
        assert pairs[:2].imag == pytest.approx(np.array([[1.0, -1.0], [2.0, -2.0]]))
        assert np.abs(modes.shapes[:, ::2]) == pytest.approx(np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]))
        assert modes.natural[1:] == pytest.approx(np.array([1.0, 2.0]) * time)


def test_modes_with_damping() -> None:
    for damping, words in (
        (0.0, "oscillates at 0.4775 Hz: s 1"),
        (2.4, "oscillates at 0.4678 Hz, decaying (damping ratio 0.2): s 1"),
    ):
        modes = bead(damping).at().linearize().modes()
        assert modes.descriptions() == [words]
        assert modes.natural == pytest.approx([3.0])
        assert modes.damping == pytest.approx(np.full(2, damping / 12))
        assert np.abs(modes.eigenvalues) == pytest.approx(np.full(2, 3.0))
    over = bead(20.0).at().linearize().modes()
    assert over.eigenvalues.real == pytest.approx([-1.0, -9.0])
    assert over.descriptions() == [
        "decays with time constant 1 s: s 1",
        "decays with time constant 0.1111 s: s 1",
    ]
    assert float(over.growth) == pytest.approx(-1.0)
    free = replace(bead(0.0), joints=[replace(bead(0.0).joints[0], stiffness=0.0)]).at().linearize()
    assert free.modes().descriptions() == ["drifts: s 1"]
    # a follower force is no potential: natural frequencies are not answered
    rng = np.random.default_rng(0)
    m = random_tree(rng, "RR", loads=True)
    assert np.isnan(m.at().linearize().modes().natural).all()
    assert "damping ratio" in str(m.at().linearize().modes().summary()).lower()


def test_batches_of_modes() -> None:
    c = kic.load("horn-two-link").at(np.array([[[-1.5, 0.2]], [[1.5, 0.1]]]))
    modes = c.linearize().modes()
    assert modes.batch == (2, 1)
    assert modes.eigenvalues.shape == (2, 1, 4)
    assert modes.shapes.shape == (2, 1, 2, 4)
    assert modes.natural_shapes.shape == (2, 1, 2, 2)
    one = kic.load("horn-two-link").at([-1.5, 0.2]).linearize().modes()
    assert mismatch(modes.natural[0, 0], one.natural) < 1e-14
    assert "member [0, 0]" in str(modes.summary())
    assert "member [0, 0]" in str(c.linearize().summary())
    none = kic.load("horn-two-link").at(np.zeros((0, 2))).linearize()
    assert none.modes().eigenvalues.shape == (0, 4)
    assert "empty batch" in str(none.summary())
    assert "empty batch" in str(none.modes().summary())


def test_results_of_a_linearization() -> None:
    rng = np.random.default_rng(4)
    c = kic.load("puma560").at(rng.normal(size=6))
    v, a = rng.normal(size=(2, 6))
    lin = c.linearize(v, a)
    dq, dv, da = rng.normal(size=(3, 5, 6))
    found = lin.inverse_dynamics(dq, dv, da)
    assert found.shape == (5, 6)
    assert mismatch(found[2], lin.K @ dq[2] + lin.C @ dv[2] + lin.I @ da[2]) < 1e-12
    assert mismatch(lin.forward_dynamics(dq, dv, found), da) < 1e-9
    assert mismatch(lin.K, lin.K_inertia + lin.K_load) < 1e-14
    assert mismatch(lin.C, lin.C_inertia + lin.C_load) < 1e-14
    part = lin.with_fixed(["elbow", "waist"])
    assert part.coordinates == ("shoulder", *lin.coordinates[3:])
    assert mismatch(part.K, lin.K[np.ix_([1, 3, 4, 5], [1, 3, 4, 5])]) < 1e-14
    assert part.modes().eigenvalues.shape == (8,)
    page = str(lin.summary())
    for caption in ("K = ∂T/∂q", "K of the masses", "K of the loads", "C = ∂T/∂q̇", "I* = ∂T/∂q̈"):
        assert caption in page
    assert "<table>" in lin._repr_html_()
    assert "<table>" in lin.modes()._repr_html_()
    turning = c.linearize(v, wrt="link6")
    assert "commutator" in str(turning.summary())


def test_modes_are_described_in_the_unit_of_time() -> None:
    """Frequencies of a pendulum in milliseconds equal those in seconds after conversion."""
    m = kic.load("horn-two-link")
    slow = replace(
        m, units=replace(m.units, time="ms", force="MN"), gravity=tuple(1e-6 * np.array(m.gravity))
    )
    here = [-np.pi / 2, 0.0]
    seconds, milli = (x.at(here).linearize().modes() for x in (m, slow))
    assert np.allclose(milli.natural * 1e3, seconds.natural, rtol=1e-12)
    assert milli.descriptions()[0].startswith("oscillates at 0.0004266 1/ms")
    assert seconds.descriptions()[0].startswith("oscillates at 0.4266 Hz")
    assert "rad/ms" in str(milli.summary())
    assert "1/ms" in str(milli.summary())
