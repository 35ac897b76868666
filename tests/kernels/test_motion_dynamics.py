"""Inverse and forward dynamics along motions, compared with I* and P* of `Dynamics`, and with energy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from closed_models import EVERY
from linkages import serial
from raising import raises
from sampling import STEP, mismatch, moved, random_posture, random_tree

import kic

EPS = float(np.finfo(float).eps)


def scale(d: kic.Dynamics, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Return the size (..., 1) of the terms that an effort is summed from."""
    terms = np.einsum("...kn,...n->...k", np.abs(d.I), np.abs(qdd)) + np.abs(d.load)
    terms = terms + np.einsum("...kab,...a,...b->...k", np.abs(d.P), np.abs(qd), np.abs(qd))
    terms = terms + np.einsum("...kn,...n->...k", np.abs(d.damping), np.abs(qd))
    return terms.max(axis=-1, initial=0.0)[..., None]


def compare_outputs(c: kic.Configuration, of: list[str], seed: int, wrt=None) -> None:
    """Compare velocities, accelerations and jerks of outputs with G, H and D."""
    g = c.coefficients(of, order=3, wrt=wrt)
    rates = np.random.default_rng(seed).normal(size=(3, *c.batch, len(g.columns)))
    expected = g.values, g.velocity(rates[0]), g.acceleration(*rates[:2]), g.jerk(*rates)
    condition = c._model.transfer_for(wrt).condition(c._states.real, c._model.real.closure)
    limit = max(1e-12, 1000 * EPS * float(condition.max()))
    sizes = [np.abs(x).max() for x in (g.G, g.H, g.D)]
    sizes = [1.0, sizes[0], sum(sizes[:2]), sum(sizes)]
    for a, b, size in zip(c.motion(of, *rates, wrt=wrt), expected, sizes, strict=True):
        assert np.array_equal(np.isnan(a), np.isnan(b))
        assert np.nanmax(np.abs(a - b)) <= 10 * limit * size * np.abs(rates).max() ** 3 * len(g.columns) ** 3


def compare(c: kic.Configuration, seed: int = 0, wrt=None, limit: float = 1e-12, **more) -> None:
    """Compare both dynamics with the tensors along random motions through the members of a batch."""
    rng = np.random.default_rng(seed)
    d = c.dynamics(wrt=wrt, **more)
    qd, qdd = rng.normal(size=(2, *c.batch, len(d.coordinates)))
    expected = d.inverse_dynamics(qd, qdd)
    condition = c._model.transfer_for(wrt).condition(c._states.real, c._model.real.closure)
    limit = max(limit, 1000 * EPS * float(condition.max()))
    size = scale(d, qd, qdd)
    assert (np.abs(c.inverse_dynamics(qd, qdd, wrt=wrt, **more) - expected) <= limit * size).all()
    found = c.forward_dynamics(qd, expected, wrt=wrt, **more)
    # efforts of the accelerations found, because I* may be ill-conditioned
    assert (np.abs(d.inverse_dynamics(qd, found) - expected) <= limit * scale(d, qd, found)).all()


@pytest.mark.parametrize("name", kic.model_names())
def test_every_model(name: str) -> None:
    m = kic.load(name)
    drawn = m.at()
    try:
        drawn.dynamics()
    except kic.InertiaError as error:
        with pytest.raises(type(error)):
            drawn.inverse_dynamics()
        return
    rng, names = np.random.default_rng(len(name)), list(m.coordinates)
    place = np.concatenate([np.ravel(drawn.value(n)) for n in names])
    moves = rng.uniform(-0.05, 0.05, size=(3, len(place))) * drawn._model.transfer_for(None).row_sizes
    c = m.at(place + moves, near=drawn, failures="mask")
    c = c[c.ok]
    assert c.batch[0] > 0
    compare(c)
    qd, qdd = rng.normal(size=(2, *c.batch, len(names)))
    # parts of it
    d = c.dynamics()
    inertial = np.einsum("bkn,bn->bk", d.I, qdd) + np.einsum("bkmn,bm,bn->bk", d.P, qd, qd)
    size = scale(d, qd, qdd)
    assert (np.abs(c.inverse_dynamics(qd, qdd, loads=False) - inertial) <= 1e-11 * size).all()
    assert (np.abs(c.inverse_dynamics() + d.load) <= 1e-11 * size).all()
    # prepared, for one member and for all
    f, g = m.prepare.inverse_dynamics(), m.prepare.forward_dynamics()
    T, a = f(c.state, qd, qdd), g(c.state, qd, qdd)
    assert np.array_equal(T, c.inverse_dynamics(qd, qdd))
    assert np.array_equal(a, c.forward_dynamics(qd, qdd))
    out = np.empty_like(qd[0])
    assert f(c.state[0], qd[0], qdd[0], out=out) is out
    assert (np.abs(out - T[0]) <= 1e-13 * size[0]).all()
    assert np.allclose(g(c.state[0], qd[0], qdd[0]), a[0], rtol=1e-9, atol=1e-9 * np.abs(a[0]).max())


@pytest.mark.parametrize("name", EVERY)
def test_other_coordinates(name: str) -> None:
    case = EVERY[name]
    m = kic.load(name)
    drawn = m.at()
    place = np.array([float(drawn.value(n)) for n in m.coordinates])
    c = m.at(place + np.array(case.moves), near=drawn)
    compare_outputs(c, case.of.split(), 1)
    for wrt in (*case.wrt, case.quasi):
        if wrt:
            compare(c, wrt=wrt.split())
            compare_outputs(c, case.of.split(), 2, wrt.split())


TREES = (
    ["R", "spherical", "R"],
    ["free", "R", "P"],
    ["free", "spherical", "planar", "cylindrical", "R"],
    "RPRRPR",
)


@pytest.mark.parametrize("kinds", TREES, ids=["".join(k) for k in TREES])
@pytest.mark.parametrize("seed", range(3))
def test_joints_with_several_freedoms(kinds, seed: int) -> None:
    rng = np.random.default_rng(seed)
    c = random_posture(rng, random_tree(rng, kinds, True))
    compare(c, seed)
    compare_outputs(c, [*c.coordinates, *(b.name for b in c._model.description.bodies if b.reference)], seed)
    # complex states, as complex steps have
    step = moved(c, rng.normal(size=(1, len(c.coordinates))))
    d = step.dynamics()
    qd, qdd = rng.normal(size=(2, len(d.coordinates)))
    T, expected = step.inverse_dynamics(qd, qdd), d.inverse_dynamics(qd, qdd)
    size = scale(c.dynamics(), qd, qdd).max()
    assert np.abs(T - expected).imag.max() <= 1e-11 * STEP * max(size, np.abs(expected.imag).max() / STEP)
    a, expected = step.forward_dynamics(qd, qdd), d.forward_dynamics(qd, qdd)
    assert np.abs(a - expected).max() <= 1e-9 * np.abs(expected).max()


def loaded_four_bar() -> kic.Mechanism:
    """Return the four-bar with forces, moments, springs and dampers, in joints of the tree and in the cut."""
    m = kic.load("four-bar")
    joints = [replace(j, stiffness=2.0, rest=0.1, damping=0.3, armature=0.02) for j in m.joints]
    anchor = kic.Point("anchor", "ground", at=(0.3, 0.4, 0.1))
    return replace(
        m,
        joints=joints,
        points=(*m.points, anchor),
        springs=[kic.Spring("coil", ("tip", "anchor"), stiffness=50.0, rest=0.1, damping=3.0)],
        forces=[
            kic.Force("push", "tip", (3.0, -2.0, 0.5), axes="body"),
            kic.Force("pull", "tip", (1.0, 2.0, 0.0)),
        ],
        moments=[kic.Moment("twist", "coupler", (0.1, 0.2, -0.7))],
    )


def test_loads() -> None:
    m = loaded_four_bar()
    assert m.mobility().cuts
    c = m.at({"A": [0.5, 0.9, 1.4]})
    compare(c)
    forces = np.random.default_rng(1).normal(size=(3, 3))
    compare(c, applied={"push": forces, "twist": [0.0, 0.0, 1.0]})
    one = m.at({"A": 0.5})
    qd = np.array([[1.0], [2.0]])
    T = one.inverse_dynamics(qd, 0 * qd, applied={"pull": forces[:2]})
    assert np.allclose(T, one.dynamics(applied={"pull": forces[:2]}).inverse_dynamics(qd, 0 * qd), rtol=1e-12)
    f = m.prepare.inverse_dynamics()
    assert np.allclose(f(c.state, qd[0], qd[1]), c.inverse_dynamics(qd[0], qd[1]), rtol=1e-13)


def test_complex_step_through_loops() -> None:
    m = loaded_four_bar()
    c = m.at({"A": [0.5]})
    rates = c.coefficients(list(m._model.tree.columns), order=1).G[0, :, 0]
    step = moved(c[0], rates[None])
    slope = step.inverse_dynamics([1.5], [0.7]).imag / STEP
    expected = step.dynamics().inverse_dynamics([1.5], [0.7]).imag / STEP
    assert np.allclose(slope, expected, rtol=1e-11)
    h = 1e-4
    ends = m.at({"A": [0.5 - h, 0.5 + h]}).inverse_dynamics([1.5], [0.7])
    assert np.allclose(slope.ravel(), (ends[1] - ends[0]) / (2 * h), rtol=1e-6)


def test_symbols() -> None:
    t1, t2, w1, w2, a1, a2 = sp.symbols("t1 t2 w1 w2 a1 a2", real=True)
    c = kic.load("horn-two-link").at([t1, t2])
    qd, qdd = np.array([w1, w2]), np.array([a1, a2])
    d = c.dynamics()
    for ours, theirs in (
        (c.inverse_dynamics(qd, qdd), d.inverse_dynamics(qd, qdd)),
        (c.forward_dynamics(qd, qdd), d.forward_dynamics(qd, qdd)),
    ):
        values = {t1: 0.3, t2: 1.1, w1: 0.7, w2: -0.4, a1: 0.2, a2: 1.3}
        assert np.allclose([float(x.subs(values)) for x in ours - theirs], 0.0, atol=1e-12)


def test_motors() -> None:
    c = kic.load("puma560-motors").at()
    qd, qdd = np.random.default_rng(2).normal(size=(2, 6))
    d = c.dynamics(motors=True)
    T = c.inverse_dynamics(qd, qdd, motors=True)
    assert np.allclose(T, d.inverse_dynamics(qd, qdd), rtol=1e-12, atol=1e-12 * np.abs(T).max())
    assert np.allclose(c.forward_dynamics(qd, T, motors=True), qdd, rtol=1e-10)


def test_other_rows_near_a_singular_choice() -> None:
    # the rows chosen in the reference configuration are ill-conditioned here
    m = kic.load("four-bar")
    c = m.at({"A": np.linspace(0, 6.2, 60)}, near=m.at())
    compare(c, limit=1e-9)
    compare(c[20:22], wrt=["C"], limit=1e-9)


def test_batches_and_members_without_solution() -> None:
    m = kic.load("five-bar")
    c = m.at(np.array([[1.2217, 1.5708]] * 3), near=m.at())
    assert c.inverse_dynamics(np.zeros((2, 1, 2))).shape == (2, 3, 2)
    for empty in (c[:0], kic.load("horn-two-link").at(np.zeros((0, 2)))):
        assert empty.inverse_dynamics([1.0, 2.0]).shape == (0, 2)
        assert empty.forward_dynamics([1.0, 2.0]).shape == (0, 2)
        assert [x.shape for x in empty.motion("tip", [1.0, 2.0])] == [(0, 3)] * 4


def test_errors() -> None:
    m = kic.load("horn-two-link")
    light = replace(
        m, bodies=[replace(b, mass=0.0, inertia=(0, 0, 0)) if b is m.bodies[1] else b for b in m.bodies]
    )
    light = replace(light, points=[replace(p, mass=0.0) for p in m.points])
    with pytest.raises(kic.SingularError) as caught:
        light.at([0.3, 0.5]).forward_dynamics()
    assert caught.value.coordinates == light.at([0.3, 0.5]).dynamics().coordinates[1:]
    g = light.prepare.forward_dynamics()
    with pytest.raises(kic.SingularError):
        g(light.at([0.3, 0.5]).state, np.zeros(2), np.zeros(2))


def test_numbers_serve_where_there_is_one_coordinate() -> None:
    """Plain numbers are arguments of one coordinate; efforts and accelerations keep its axis."""
    m = kic.load("four-bar")
    c, turn = m.at(1.2), m.path({"A": np.linspace(1.2, 1.5, 4)})
    for of in (c, c.dynamics(), turn, turn.dynamics()):
        T, a = of.inverse_dynamics([6.0], [2.0]), of.forward_dynamics([6.0], [0.3])
        assert T.shape == a.shape == (*of.batch, 1)
        for six in (6.0, 6, np.float64(6.0), [6.0]):
            assert np.array_equal(of.inverse_dynamics(six, 2.0), T)
            assert np.array_equal(of.forward_dynamics(six, 0.3), a)
    assert isinstance(c.value("A"), float)
    assert isinstance(c.value("tip.x"), float)
    assert c.inverse_dynamics().shape == c.inverse_dynamics(6.0).shape == (1,)
    assert np.array_equal(c.inverse_dynamics(6.0, wrt="D"), c.inverse_dynamics([6.0], wrt=["D"]))
    # tensors keep their axes
    assert c.coefficients("tip.x", wrt="D").H.shape == c.dynamics(wrt="D").P.shape == (1, 1, 1)
    # more efforts than coordinates keep theirs
    assert c.actuator_dynamics(actuators=["A", "D"]).inverse_dynamics(6.0, 0.0).shape == (2,)
    motor = kic.load("four-bar-motor").at()
    T = motor.inverse_dynamics([3.0], [1.0], motors=True)
    assert np.array_equal(motor.inverse_dynamics(3.0, 1.0, motors=True), T)
    assert np.array_equal(
        motor.inverse_dynamics(3.0, motors=True), motor.inverse_dynamics([3.0], [0.0], motors=True)
    )
    assert motor.forward_dynamics(3.0, 0.2, motors=True).shape == (1,)
    runs = [
        m.simulate(0.05, near=c, qd=qd, effort=effort)
        for qd, effort in (
            ([2.0], [0.2]), (2.0, 0.2), (2.0, lambda t, now: 0.2), (2.0, lambda t, now: np.array([0.2]))
        )
    ]  # fmt: skip
    # constant efforts have compiled stages, functions have not
    for run, twin in (runs[:2], runs[2:]):
        assert np.array_equal(run.q, twin.q)
    assert mismatch(runs[0].q, runs[2].q) < 1e-12


@pytest.mark.parametrize("name", ["puma560", "four-bar"])
@pytest.mark.parametrize("forward", [False, True])
def test_results_may_overwrite_arguments(name: str, forward: bool) -> None:
    m = kic.load(name)
    f = m.prepare.forward_dynamics() if forward else m.prepare.inverse_dynamics()
    state = m.at().state
    qd, second = np.random.default_rng(4).normal(size=(2, len(f.coordinates)))
    expected = f(state, qd, second)
    for k in (1, 2):
        given = [state.copy(), qd.copy(), second.copy()]
        assert f(*given, out=given[k]) is given[k]
        assert np.array_equal(given[k], expected)
    # nothing is written before an error is raised
    huge = np.full_like(qd, 1e200)
    with pytest.raises(kic.InputError):
        f(state, huge, second, out=huge)
    assert (huge == 1e200).all()


@pytest.mark.parametrize("name", ["puma560", "four-bar"])
@pytest.mark.parametrize("forward", [False, True])
def test_lengths_of_arguments(name: str, forward: bool) -> None:
    m = kic.load(name)
    f = m.prepare.forward_dynamics() if forward else m.prepare.inverse_dynamics()
    size = len(f.coordinates)
    given = [m.at().state, np.ones(size), np.ones(size)]
    for k in range(3):
        for wrong in (given[k][:-1], np.append(given[k], 1.0), np.tile(given[k], 2)):
            with pytest.raises(kic.InputError):
                f(*given[:k], wrong, *given[k + 1 :])
    # two members side by side are no batch
    twice = [np.tile(a, 2) for a in given]
    for out in (None, np.empty(size), np.empty(2 * size)):
        with pytest.raises(kic.InputError):
            f(*twice, out=out)
    for n in (size - 1, size + 1, size * (size + 2) + 2):
        with pytest.raises(kic.InputError):
            f(*given, out=np.empty(n))


def test_members_with_a_singular_mass_matrix_are_masked() -> None:
    """The mass at the tip of two massless links resists no motion along the stretched arm."""
    links = [kic.Body("upper", mass=0, com=(0, 0, 0), inertia=(0, 0, 0))]
    links += [kic.Body("lower", mass=1, com=(2, 0, 0), inertia=(0, 0, 0))]
    m = serial([(0, 0, 0), (1, 0, 0)], links, gravity=(0, -9.81, 0))
    c = m.at([[[0.1, 0.0]], [[0.1, 0.8]]])
    qd, effort = [1.0, 2.0], [[0.3, 0.4]]
    found = c.forward_dynamics(qd, effort, failures="mask")
    assert np.isfinite(found).all(axis=-1).tolist() == [[False], [True]]
    assert np.array_equal(found[1, 0], m.at([0.1, 0.8]).forward_dynamics(qd, effort[0]))
    assert np.isnan(c[0].forward_dynamics(qd, effort, failures="mask")).all()
    with raises(kic.SingularError, failed=[(0, 0)]):
        c.forward_dynamics(qd, effort)
