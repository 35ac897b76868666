"""Position solvers: the compiled Newton method against `Mechanism.at`, and cases that it does not solve."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from raising import raises

import kic

CLOSED = [
    "four-bar", "slider-crank", "five-bar", "three-legged-robot", "gough-stewart", "stewart-6r", "rssr",
    "ladder", "geared-five-bar", "five-rod-suspension", "watt-parallel-motion", "stephenson-six-bar",
    "peaucellier", "jansen-leg", "three-rrr", "six-freedom-planar", "parallel-serial", "scotch-yoke",
]  # fmt: skip


def values_of(c: kic.Configuration, names) -> np.ndarray:
    return np.stack([c.value(name) for name in names], axis=-1)


@pytest.mark.parametrize("name", CLOSED)
def test_position_solver_agrees_with_at(name: str) -> None:
    m = kic.load(name)
    close, c = m.prepare.position(), m.at()
    here = values_of(c, close.names)
    wanted = here + 0.01 * np.random.default_rng(1).normal(size=(20, len(here)))
    states = close(c.state, wanted)
    assert np.abs(states - m.at(wanted, near=c).state).max() < 1e-12
    residual = m._model.closure(close.names).rows(states)[0][:, len(here) :]
    assert np.abs(residual).max() < 1e-13
    assert np.array_equal(close(c.state, wanted[3]), states[3])
    assert np.abs(close(states, here) - c.state).max() < 1e-12


def test_near_configurations_need_no_leaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One compiled step closes near configurations and does not reach far ones."""
    m = kic.load("gough-stewart")
    c = m.at()
    closure = m._model.closure(m.coordinates)
    here = values_of(c, m.coordinates)
    near = here + np.array([[0.01], [0.02]])
    states, share = closure.track(np.repeat(c.state[None], 2, axis=0), near)
    assert (share == 1).all()
    assert np.abs(closure.rows(states)[0][:, :6] - near / closure.transfer.scale[:6]).max() < 1e-14
    assert (closure.track(c.state[None], here[None] + 3.0, tries=1)[1] < 1).all()
    assert (closure.track(c.state[None], here[None] * np.nan)[1] < 1).all()


def test_subdivided_path_reaches_the_same_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets beyond one compiled step are reached in several, without a call of at()."""
    m = kic.load("gough-stewart")
    c = m.at()
    close, closure = m.prepare.position(), m._model.closure(m.coordinates)
    here = values_of(c, m.coordinates)
    way = np.array([0.3, 0.0, 0.25, 0.1, 0.2, 0.0])
    wanted = here + np.multiply.outer([0.05, 0.6, 1.0], way)
    exact = m.at(wanted, near=c).state
    start = np.repeat(c.state[None], 3, axis=0)
    assert (closure.track(start, wanted, tries=1)[1] == 1).tolist() == [True, False, False]
    with monkeypatch.context() as patch:
        patch.setattr("kic.mechanism.evaluator.solve_position", None)
        assert np.abs(close(c.state, wanted) - exact).max() < 1e-12
        assert np.abs(close(c.state, wanted[2]) - exact[2]).max() < 1e-12
    # members without a configuration do not arrive, and the others of their batch do
    states, share = closure.track(start[:2], np.stack([here * np.nan, wanted[1]]))
    assert (share == 1).tolist() == [False, True]
    assert np.abs(states[1] - exact[1]).max() < 1e-12
    assert (closure.track(start[:1], here[None] * np.nan)[1] < 1).all()


@pytest.mark.slow
def test_path_never_crosses_a_dead_centre() -> None:
    """Just short of where the rocker turns round, a goal beyond it is refused, not met on another branch."""
    m = kic.load("four-bar")
    turn = m.path({"A": np.linspace(0, 2 * np.pi, 721) + m.at().value("A")})
    D = turn.value("D")
    k = int(np.argmax(D))
    c = m.at({"A": turn.value("A")[k] - 0.02}, near=kic.Configuration(m._model, (), turn.state[k : k + 1]))
    close = m.prepare.position(wrt="D")
    with raises(kic.ConfigurationError, failed=[()]):
        close(c.state, [D[k] + 1e-4])
    assert (
        abs(
            m.prepare.coefficients("D")(close(c.state, [float(c.value("D")) + 1e-6])).D.value[0]
            - c.value("D")
            - 1e-6
        )
        < 1e-12
    )


def test_angles_of_cut_joints_and_rounded_loops_take_the_longer_way() -> None:
    m = kic.load("four-bar")
    assert "D" in m.mobility().cuts
    c = m.at()
    state = m.prepare.position(wrt="D")(c.state, [float(c.value("D")) + 0.01])
    assert np.array_equal(state, m.at({"D": c.value("D") + 0.01}, near=c).state)


def test_batches_broadcast_and_threads_share() -> None:
    m = kic.load("five-bar")
    c = m.at()
    close = m.prepare.position()
    here = values_of(c, close.names)
    wanted = here + 0.01 * np.random.default_rng(0).normal(size=(3, 1, 2))
    states = close(np.broadcast_to(c.state, (4, len(c.state))), wanted)
    assert states.shape == (3, 4, len(c.state))
    assert close(c.state, np.zeros((0, 2))).shape == (0, len(c.state))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: close(c.state, x), wanted[:, 0]))
    assert np.array_equal(np.array(found), states[:, 0])
    assert not np.shares_memory(close(c.state, here), c.state)


def test_prepared_position_is_shown() -> None:
    m = kic.load("five-bar")
    close = m.prepare.position()
    assert repr(close) == "evaluator of position of A, E of 'five-bar': f(state, values)"


def test_a_configuration_may_stand_for_its_state() -> None:
    m = kic.load("five-bar")
    c = m.at()
    here = values_of(c, m.coordinates) + 0.01
    assert np.array_equal(m.prepare.position()(c, here), m.prepare.position()(c.state, here))
