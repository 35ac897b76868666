"""The table of a drive and its load, against free-body equations, power and circles."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from raising import raises, refuses

import kic
from kic.analysis.joint_forces.force_table import transmission_angle

LENGTHS = {"ground": 4.0, "crank": 1.0, "coupler": 3.5, "rocker": 3.0}
MASSES = {"crank": 1.0, "coupler": 2.0, "rocker": 1.5}


def loaded(masses: dict[str, float]) -> kic.Mechanism:
    m = kic.linkages.four_bar(**LENGTHS, masses=masses)
    return m.add(
        kic.Point("end", "rocker", m["C"].at), kic.Force("load", "end"), kic.Moment("brake", "rocker")
    )


def test_a_massless_four_bar_against_its_free_bodies() -> None:
    m = loaded(dict.fromkeys(MASSES, 0.0))
    turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 25)})
    pull = np.stack([np.cos(turn.value("A")), np.sin(2 * turn.value("A")), 0 * turn.value("A")], axis=-1)
    table = turn.force_table(of="rocker.angle", applied={"load": pull}, transmission="C")
    assert table.columns[:3] == ("A", "load.x", "load.y")
    theta, psi = turn.value("A"), turn.value("D")
    B, C, D = np.exp(1j * theta), 4 + 3 * np.exp(1j * psi), 4 + 0j
    u = (C - B) / 3.5  # the coupler is a two-force member
    moment = (np.conj(C - D) * (pull[:, 0] + 1j * pull[:, 1])).imag
    arm = (np.conj(C - D) * u).imag
    push = -moment / arm  # along the coupler, on the rocker
    assert np.allclose(table["B.force"], np.abs(push), atol=1e-10)
    assert np.allclose(table["C.force"], np.abs(push), atol=1e-10)
    assert np.allclose(table["A.effort"], (np.conj(B) * push * u).imag, atol=1e-10)
    assert np.allclose(table["C.transmission_angle"], np.abs(np.angle((C - B) / (C - D))), atol=1e-10)
    # ratio of the arms of the force in the coupler
    assert np.allclose(table["rocker.angle.advantage"], arm / (np.conj(B) * u).imag, rtol=1e-7)


def test_loads_along_a_motion_reach_every_result(tmp_path) -> None:
    m = loaded(MASSES)
    turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 13)})
    pull = np.outer(np.linspace(-2, 3, 13), [1.0, 2.0, 0.0])
    motion = kic.trajectory.at_speed(turn, 3.0, applied={"load": pull})
    free = kic.trajectory.at_speed(turn, 3.0)
    expected = turn.inverse_dynamics(3.0, 0.0, applied={"load": pull})
    assert np.array_equal(motion.effort(), expected)
    power = (pull * turn.coefficients("end").velocity(3.0)).sum(-1)  # d'Alembert
    assert np.allclose((motion.effort() - free.effort())[:, 0] * 3.0, -power, atol=1e-9)
    table = motion.force_table(of=["end.x", "end.y"])
    assert np.allclose(table["A.effort"], expected[:, 0])
    assert np.allclose(motion.joint_forces().effort, expected)
    file = tmp_path / "turn.csv"
    motion.table(["efforts", "joint forces"]).to_csv(file)
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.reader(text))
    assert rows[0][:3] == ["t (s)", "A.effort (N m)", "A (rad)"]
    assert np.allclose([float(row[1]) for row in rows[1:]], expected[:, 0])
    lift = kic.trajectory.quintic({"A": m.at().value("A")}, {"A": m.at().value("A") + 1.0}, duration=1.0)
    still = lift.on(m, 7, applied={"load": (0.0, -5.0, 0.0)})
    assert np.allclose(still.effort(), lift.on(m.replace("load", force=(0.0, -5.0, 0.0)), 7).effort())


@pytest.mark.parametrize("batch", [(), (5,), (2, 3), (0,)])
def test_a_column_for_each_driver(batch: tuple[int, ...]) -> None:
    c = kic.load("five-bar").at(np.broadcast_to([1.2, 1.6], (*batch, 2)))
    for result in (c.joint_forces().table(), c.force_table(of="tip.x", transmission=["B", "C", "D"])):
        frame = result.to_dataframe()
        assert list(frame.columns[:2]) == ["A", "E"]
        assert np.allclose(frame["A"], 1.2)
        assert frame.attrs["units"]["E"] == "rad"
    assert len(result.to_dataframe()) == np.prod(batch, dtype=int)
    assert "tip.x/E.advantage" in result.columns
    cart = c.joint_forces(wrt=["tip.x", "tip.y"]).table().to_dataframe()
    assert list(cart.columns[:2]) == ["tip.x", "tip.y"]
    assert repr(result).startswith("<DataTable: columns A, E")


def test_bad_requests_of_a_table() -> None:
    c = kic.load("five-bar").at()
    assert transmission_angle(c, "C").shape == ()
    refuses(lambda: transmission_angle(kic.load("peaucellier").at(), "O1"), key="joint", name="O1")
    for wrong in ("tip", ["A", "B"], ["A", "B", "tip"], 3):
        refuses(lambda wrong=wrong: transmission_angle(c, wrong), key="joint")
    refuses(lambda: c.force_table()["nothing"], kic.UnknownNameError, name="nothing")
    refuses(lambda: c.force_table(transmission=["B", "C"]), key="transmission")
    assert c.force_table(transmission=["C"]).columns[-1] == "C.transmission_angle"
    refuses(lambda: c.force_table(applied={"nothing": (1.0, 0.0, 0.0)}), kic.UnknownNameError)


def test_advantage_is_the_ratio_of_static_efforts() -> None:
    m = kic.linkages.scissor_lift(
        arm=1.2,
        stages=2,
        masses=dict.fromkeys(("platform", "up1", "down1", "up2", "down2", "foot", "roller"), 0.0),
    ).add(kic.Force("weight", "top", (0.0, -500.0, 0.0)))
    c = m.at({"A": [0.3, 0.8]})
    push = c.inverse_dynamics(wrt="S")[:, 0]
    assert np.allclose(kic.metrics.mechanical_advantage("top.y", wrt="S")(c) * push, 500.0)
    dead = kic.linkages.slider_crank(crank=1.0, rod=3.0).at({"A": 0.0})
    assert abs(kic.metrics.mechanical_advantage("D")(dead)) > 1e12


def test_frequency_response_of_a_damped_pendulum() -> None:
    m = kic.Mechanism(
        "pendulum",
        [kic.Body("rod", mass=2.0, com=(0.0, -0.5, 0.0), inertia=(0.2, 0.0, 0.2))],
        [kic.Joint("A", "revolute", ("ground", "rod"), (0, 0, 0), (0, 0, 1), damping=0.3)],
        gravity=(0, -9.81, 0),
    )
    s = m.at([0.0]).linearize().state_space()
    w = np.array([[0.0, 1.0], [3.0, 40.0]])
    inertia, k = 0.2 + 2.0 * 0.25, 2.0 * 9.81 * 0.5
    expected = 1 / (k - inertia * w**2 + 0.3j * w)
    assert np.allclose(s.frequency_response(w)[..., 0, 0], expected, rtol=1e-12)
    d = s.discretize(0.01)
    z = np.exp(1j * w * 0.01)
    by_hand = [d.C @ np.linalg.inv(x * np.eye(2) - d.A) @ d.B + d.D for x in z.ravel()]
    assert np.allclose(d.frequency_response(w).reshape(-1, 1, 1), np.array(by_hand)[:, :1, :1])
    both = m.at([[0.0], [np.nan]], failures="mask").linearize().state_space().frequency_response([1.0])
    assert both.shape == (2, 1, 1, 1)
    assert np.isfinite(both[0]).all()
    assert np.isnan(both[1]).all()
    for wrong in ("fast", np.nan, [np.inf]):
        refuses(lambda wrong=wrong: s.frequency_response(wrong), key="omega")
    free = m.replace("A", damping=0.0).replace(gravity=(0, 0, 0)).at([0.0]).linearize().state_space()
    refuses(lambda: free.frequency_response(0.0), key="omega")


def test_rates_of_one_configuration_are_a_batch() -> None:
    c = kic.load("four-bar").at({"A": 1.2})
    qd = np.linspace(1.0, 10.0, 5)[:, None]
    table = c.force_table(qd, of="D", transmission="C")
    assert (table["A"] == 1.2).all()
    assert np.array_equal(table["A.effort"], c.joint_forces(qd).effort[:, 0])
    for one in (table, c.joint_forces(qd).table()):
        assert one.to_dataframe().shape[0] == 5


def test_a_transmission_angle_is_between_the_bodies_of_a_pin() -> None:
    m = kic.load("four-bar")
    c = m.at({"A": 1.2})
    assert transmission_angle(c, ["B", "C", "D"]) == transmission_angle(c, "C")
    for names in (["B", "B", "B"], ["B", "C", "B"], ["A", "C", "D"]):
        refuses(lambda names=names: transmission_angle(c, names), key="joint", got=tuple(names))
    with raises(kic.InputError, function="transmission_angle()"):
        m.sensitivity(lambda m: transmission_angle(m.at({"A": 1.2}), "C"), "B.at.x")


def test_a_load_at_rest_needs_no_effort() -> None:
    """1/G is infinite without a warning where a row rests."""
    c = kic.linkages.four_bar(ground=1.0, crank=0.6, coupler=0.7, rocker=0.5, angle=1.0).at()
    assert np.isinf(kic.metrics.mechanical_advantage("tip.z")(c))
    refuses(lambda: kic.metrics.mechanical_advantage("tip")(c), name="tip")
    refuses(lambda: kic.metrics.mechanical_advantage("tip.x")(kic.load("five-bar").at()), key="coordinate")


def test_advantage_and_angle_over_a_sweep() -> None:
    """They are the columns of a table of forces, with their units."""
    m = kic.load("four-bar")
    metrics = [kic.metrics.mechanical_advantage("tip.x"), kic.metrics.transmission_angle("B", "C", "D")]
    found = m.sweep({"A": [1.2, 1.5, 2.0]}, metrics, progress=False).table()
    table = m.at({"A": [1.2, 1.5, 2.0]}).force_table(of="tip.x", transmission="C")
    for name, column in (
        ("mechanical advantage of tip.x", "tip.x.advantage"),
        ("transmission angle at C", "C.transmission_angle"),
    ):
        assert np.allclose(found[name], table[column], rtol=1e-11)
    assert [v.unit for v in found.variables][:2] == ["1/m", "rad"]
