"""Runs driven by voltages: circuits in closed form, motor quantities, energy balance, files, errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import raises
from sampling import mismatch
from scipy.interpolate import make_interp_spline
from scipy.linalg import expm

import kic

TIGHT = kic.Integrator(rtol=1e-11, atol=1e-12)
CIRCUIT = {"resistance": 0.8, "torque_constant": 0.03, "speed_constant": 0.033}


def disc(J: float = 1e-3, **more) -> kic.Mechanism:
    motor = kic.Motor("M", ["A"], ratios=[3.0], inertia=2e-5, damping=1e-4, **{**CIRCUIT, **more})
    return kic.Mechanism(
        "disc",
        bodies=[kic.Body("disc", mass=1.0, com=(0, 0, 0), inertia=(J, J, J))],
        joints=[kic.Joint("A", "revolute", ("ground", "disc"), at=(0, 0, 0), axis=(0, 0, 1))],
        motors=[motor],
    )


def five_bar(inductance: float = 2e-3) -> kic.Mechanism:
    """Motors at joints that are not the coordinates, one of them geared to two."""
    motors = [
        kic.Motor(
            "P", ["A", "B"], ratios=[30.0, 4.0], inertia=2e-5, damping=1e-5, inductance=inductance, **CIRCUIT
        ),
        kic.Motor("Q", ["D"], ratios=[-25.0], inertia=1e-5, damping=2e-5, **CIRCUIT),
    ]
    return replace(kic.load("five-bar"), motors=motors)


def four_bar(inductance: float = 1e-3) -> kic.Mechanism:
    motor = kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, damping=1e-6, inductance=inductance, **CIRCUIT)
    return replace(kic.load("four-bar"), motors=[motor])


@pytest.mark.parametrize("inductance", [0.0, 0.05])
def test_motor_on_a_disc_matches_the_matrix_exponential(inductance: float) -> None:
    """I ω̇ = n k_t i − n² b ω, L i̇ = V − R i − k_e n ω, by the matrix exponential."""
    m, V, n = disc(inductance=inductance), 5.0, 3.0
    k, e, R, b = CIRCUIT["torque_constant"], CIRCUIT["speed_constant"], CIRCUIT["resistance"], 1e-4
    I = 1e-3 + n**2 * 2e-5
    t = np.linspace(0, 0.5, 26)
    run = m.simulate(t, near=m.at([0.2]), voltage=kic.Voltage([V], current=0.3), qd=[0.4], integrator=TIGHT)
    if inductance:
        A = np.array(
            [[-n * n * b / I, n * k / I, 0], [-e * n / inductance, -R / inductance, V / inductance], [0] * 3]
        )
        exact = np.array([expm(A * x) @ [0.4, 0.3, 1.0] for x in t])[:, :2]
    else:
        slope, gain = -(n * n * b + n * n * k * e / R) / I, n * k * V / R / I
        w = (0.4 + gain / slope) * np.exp(slope * t) - gain / slope
        exact = np.stack([w, (V - e * n * w) / R], axis=1)
    assert np.abs(run.qd[:, 0] - exact[:, 0]).max() < 1e-9
    assert np.abs(run.current[:, 0] - exact[:, 1]).max() < 1e-9
    assert np.array_equal(run.voltage, np.full((26, 1), V))
    assert mismatch(run.torque, k * run.current) < 1e-14
    assert run.motors == ("M",)


CASES = {
    "arm": (kic.load("puma560-motors"), None),
    "five-bar": (five_bar(), None),
    "five-bar in other coordinates": (five_bar(), ["A", "D"]),
    "five-bar at its tip": (five_bar(), ["tip.x", "tip.y"]),
    "five-bar without inductance": (five_bar(0.0), None),
    "four-bar by its rocker": (four_bar(), ["D"]),
}


@pytest.mark.slow_for(
    "four-bar by its rocker", "five-bar in other coordinates", "five-bar at its tip", "five-bar"
)
@pytest.mark.parametrize("name", CASES)
def test_motor_quantities_match_drive(name: str) -> None:
    """Motor quantities of the run equal those of `motor_demand` for its motion; efforts are added."""
    m, wrt = CASES[name]
    K, M = len(m.motors), m.dof
    rng = np.random.default_rng(0)
    V, T, qd = 3 * rng.normal(size=K), 0.1 * rng.normal(size=M), 0.1 * rng.normal(size=M)
    led = kic.Voltage(lambda t, now: V * (1 + t), current=rng.normal(size=K))
    given = {"qd": qd, "wrt": wrt, "effort": T}
    run = m.simulate(np.linspace(0, 0.03, 7), near=m.at(), voltage=led, **given, integrator=TIGHT)
    c, train = run.configuration, m._model.drive_train
    shafts = train.shafts(c.coefficients(train.joints, order=2, wrt=wrt))
    made = np.einsum("tkm,tk->tm", shafts.G, run.torque)
    whole = c.dynamics(wrt=wrt, motors=True)
    need = whole.inverse_dynamics(run.qd, run.qdd)
    assert np.abs(need - made - T).max() < 1e-9 * np.abs(need).max()
    assert mismatch(run.energy.kinetic, whole.kinetic_energy(run.qd)) < 1e-12
    speed = np.einsum("tkm,tm->tk", shafts.G, run.qd)
    rate = np.where(train.is_inductive, run._arrays["current_rate"], 0.0)
    held = train.inductance * rate + train.resistance * run.current + train.speed_constant * speed
    assert mismatch(run.voltage, held) < 1e-11
    assert mismatch(run.voltage, V * (1 + run.t[:, None])) < 1e-14
    # nothing on top: the currents are those of motor_demand()
    alone = m.simulate([0, 0.02, 0.03], near=m.at(), voltage=V, qd=qd, wrt=wrt, integrator=TIGHT)
    quick = replace(m, motors=[replace(motor, inductance=0.0) for motor in m.motors])
    drive = quick.at(alone.q if wrt is None else {w: alone[w] for w in wrt}, near=quick.at()).motor_demand(
        alone.qd, alone.qdd, wrt=wrt
    )
    assert mismatch(alone.current, drive.current) < 1e-8
    e = run.energy
    assert np.abs(e.residual).max() < 1e-9 * max(1.0, np.abs(e.total).max())


@pytest.mark.slow
@pytest.mark.parametrize("inductance", [0.0, 5e-3])
def test_energy_balance_across_chart_switches(inductance: float) -> None:
    """A motor turns the crank in coordinates of the rocker through dead centres; terms by quadrature."""
    m = four_bar(inductance)
    t = 0.9 * np.linspace(0, 1, 1201) ** 2  # close together while the circuit settles
    own, rocker = (
        m.simulate(t, near=m.at(), voltage=lambda t, now: [9 + np.sin(20 * t)], wrt=wrt, integrator=TIGHT)
        for wrt in ("A", "D")
    )
    assert rocker.charts > 1 == own.charts
    assert np.ptp(own.q) > 2 * np.pi
    assert np.abs(own["tip"] - rocker["tip"]).max() < 1e-8
    assert np.abs(own.current - rocker.current).max() < 1e-7

    def sum_of(rate: np.ndarray) -> np.ndarray:
        return make_interp_spline(t, rate, k=7).antiderivative()(t)

    e, i = rocker.energy, rocker.current[:, 0]
    assert np.abs(e.residual).max() < 1e-9 * e.electrical[-1]
    assert mismatch(sum_of(rocker.voltage[:, 0] * i), e.electrical) < 1e-8
    speed = 30 * own.qd[:, 0]
    lost = CIRCUIT["resistance"] * i**2 + 0.003 * i * speed
    assert mismatch(sum_of(lost), e.heat) < 1e-8
    assert mismatch(e.magnetic, inductance * i**2 / 2) < 1e-14 or not inductance
    assert mismatch(sum_of(1e-6 * speed**2), e.dissipated) < 1e-8
    assert not e.work.any()


def test_sources_of_torque_are_efforts() -> None:
    arm, t = kic.load("horn-two-link"), np.linspace(0, 0.5, 6)
    motors = [
        kic.Motor("S", ["shoulder"], ratios=[20.0]),
        kic.Motor("E", ["shoulder", "elbow"], ratios=[1.0, -10.0]),
    ]
    m = replace(arm, motors=motors)
    torque, more = np.array([0.9, -0.3]), np.array([0.5, 0.2])
    run = m.simulate(t, near=m.at([0.1, 0.2]), voltage=torque, effort=more, integrator=TIGHT)
    same = arm.simulate(
        t, near=arm.at([0.1, 0.2]), effort=torque @ [[20.0, 0.0], [1.0, -10.0]] + more, integrator=TIGHT
    )
    assert np.abs(run.q - same.q).max() < 1e-9
    assert np.isnan(run.current).all()
    assert np.isnan(run.voltage).all()
    assert np.array_equal(run.torque, np.tile(torque, (6, 1)))
    e = run.energy
    assert mismatch(e.work + e.electrical, same.energy.work) < 1e-8
    assert not e.heat.any()
    assert not e.magnetic.any()


@pytest.mark.slow
def test_prescribed_motion_with_motors() -> None:
    m = five_bar()
    a = float(m.at().value("A"))
    led = lambda t: (a + 0.2 * t**2, 0.4 * t, 0.4)  # noqa: E731
    run = m.simulate(
        [0, 0.05, 0.1], near=m.at(), prescribed={"A": led}, voltage=[4.0, -2.0], integrator=TIGHT
    )
    c, train = run.configuration, m._model.drive_train
    N = train.shafts(c.coefficients(train.joints, order=1)).G
    need = c.dynamics(motors=True).inverse_dynamics(run.qd, run.qdd) - np.einsum("tkm,tk->tm", N, run.torque)
    assert mismatch(run.effort[:, 0], need[:, 0]) < 1e-9
    assert np.abs(need[:, 1]).max() < 1e-9 * np.abs(need[:, 0]).max()
    assert np.abs(run.energy.residual).max() < 1e-9


def test_small_disturbances_match_the_state_space_model() -> None:
    """About an arm held by its currents, to second order in a step of the voltages."""
    m = kic.load("puma560-motors")
    start = m.at([0, 0.3, -0.4, 0.2, 0.5, 0])
    hold = start.motor_demand(np.zeros(6), np.zeros(6), np.zeros(6))
    s, step = start.linearize(motors=True).state_space(), np.array([1.0, -2.0, 1.0, 0.5, -0.5, 0.3])
    assert s.states[12:] == tuple(f"{name}.current" for name in s.inputs)
    d, t = s.discretize(0.05), [0, 0.05]
    linear = d.B @ step
    off = []
    for size in (1e-2, 1e-1):
        run = m.simulate(
            t,
            near=start,
            voltage=kic.Voltage(hold.voltage + size * step, current=hold.current),
            integrator=TIGHT,
        )
        last = np.concatenate([run.q[-1] - run.q[0], run.qd[-1], run.current[-1] - hold.current])
        off.append(np.abs(last - size * linear).max())
    assert off[1] < 1e-2 * np.abs(linear).max() * 1e-1
    assert 1.8 < np.log10(off[1] / off[0]) < 2.2


@pytest.mark.slow
def test_save_continue_and_interpolate(tmp_path) -> None:
    m = five_bar()
    volts = lambda t, now: [6 * np.sin(9 * t), -3 * now.qd[0]]  # noqa: E731
    t = np.linspace(0, 0.4, 81)
    whole = m.simulate(t, near=m.at(), voltage=kic.Voltage(volts, current=[1.0, np.nan]), integrator=TIGHT)
    half = m.simulate(
        t[:41], near=m.at(), voltage=kic.Voltage(volts, current=[1.0, np.nan]), integrator=TIGHT
    )
    half.save(tmp_path / "half.npz")
    half = kic.results.Simulation.load(tmp_path / "half.npz")
    assert half.motors == ("P", "Q")
    run = m.simulate(t[40:], near=half, voltage=volts, integrator=TIGHT)
    for key in ("q", "current", "voltage", "torque"):
        assert mismatch(getattr(run, key), getattr(whole, key)) < 1e-7, key
    for key in ("electrical", "heat", "magnetic", "residual"):
        assert np.abs(getattr(run.energy, key) - getattr(whole.energy, key)).max() < 1e-8, key
    fine = m.simulate(
        np.linspace(0, 0.4, 161),
        near=m.at(),
        voltage=kic.Voltage(volts, current=[1.0, 0.0]),
        integrator=TIGHT,
    )
    late = fine.t > 0.03  # after the circuit has settled
    between = whole.current_at(fine.t[late])
    assert np.abs(between[:, 0] - fine.current[late, 0]).max() < 1e-5 * np.abs(fine.current[:, 0]).max()
    with raises(kic.InputError, key="t", time=0.0025):
        whole.current_at(0.0025)
    assert np.isnan(between[:, 1]).all()
    assert np.array_equal(whole.current_at(t)[:, 0], whole.current[:, 0])
    assert whole.current_at(0.1).shape == (2,)
    assert whole.current_at(np.zeros((0, 3))).shape == (0, 3, 2)
    lines = [line.get_label() for line in whole.plot("energy").axes[0].get_lines()]
    assert {"supplied to motors", "heat"} <= set(lines), lines
    few = m.simulate([0, 0.2, 0.4], near=m.at(), voltage=volts)
    with raises(kic.InputError, key="t"):
        few.current_at(0.1)
    with raises(kic.InputError, key="t"):
        whole.current_at(0.5)
    page = str(whole.summary())
    for said in ("motors, at most", "heat in motors", "supplied to motors", "in inductance"):
        assert said in page
    bare = m.simulate([0, 0.1], near=m.at())
    assert bare.motors == ()
    assert bare.current.shape == bare.voltage.shape == (2, 0)
    assert bare.current_at(0.05).shape == (0,)


def test_files_without_motor_arrays_raise(tmp_path) -> None:
    m = kic.load("four-bar")
    run = m.simulate([0, 0.1], near=m.at())
    run.save(tmp_path / "run.npz")
    assert kic.results.Simulation.load(tmp_path / "run.npz").current.shape == (2, 0)
    with np.load(tmp_path / "run.npz") as file:
        old = {key: file[key] for key in file if key not in ("torque", "voltage", "current", "current_rate")}
    np.savez(tmp_path / "old.npz", **old)
    with raises(kic.ModelFileError, key="torque"):
        kic.results.Simulation.load(tmp_path / "old.npz")


def test_functions_receive_currents() -> None:
    """Voltage functions receive currents that are states; events receive all, also within steps."""
    m, seen = five_bar(), []

    def volts(t: float, now) -> list[float]:
        seen.append(now.current)
        return [6.0 - 2.0 * now.current[0], 3.0]

    def trips(t: float, now) -> float:
        return now.current[0] - 1.5

    def other(t: float, now) -> float:
        return now.current[1] - 3.7

    trips.terminal = True
    run = m.simulate(
        np.linspace(0, 0.2, 11), near=m.at(), voltage=volts, events=[other, trips], integrator=TIGHT
    )
    assert run.stopped.endswith("by trips")
    assert run.current[-1, 0] == pytest.approx(1.5, abs=1e-9)
    assert all(np.isnan(i[1]) and np.isfinite(i[0]) for i in seen)
    (when, which), (last, stop) = run.events
    assert (which, stop, last) == (0, 1, run.t[-1])
    again = m.simulate([0, when], near=m.at(), voltage=volts, integrator=TIGHT)
    assert again.current[-1, 1] == pytest.approx(3.7, abs=1e-9)


M, ARM = four_bar(), kic.load("puma560-motors")
DRY = replace(M, motors=[replace(M.motors[0], friction=0.1)])
BARE = kic.load("four-bar")


def go(m: kic.Mechanism = M, t=(0.0, 0.1), **more) -> kic.results.Simulation:
    return m.simulate(list(t), near=m.at(), **more)


RUN, FREE = go(voltage=[1.0]), go()
REFUSED = [
    ({"key": "voltage", "got": [1.0, 2.0]}, lambda: go(voltage=[1.0, 2.0])),
    ({"key": "voltage"}, lambda: go(voltage=[np.nan])),
    ({"key": "voltage", "time": 0.0}, lambda: go(voltage=lambda t, now: [1.0, 2.0])),
    ({"key": "voltage", "name": "M"}, lambda: go(voltage=lambda t, now: [np.nan if t > 0.03 else 1.0])),
    ({"motors": ()}, lambda: go(BARE, voltage=lambda t, now: [])),
    ({"motors": ("M",)}, lambda: go(DRY, voltage=[1.0])),
    ({"key": "current", "got": [1.0, 2.0]}, lambda: go(voltage=kic.Voltage([1.0], current=[1.0, 2.0]))),
    ({"key": "current"}, lambda: go(voltage=kic.Voltage([1.0], current=[np.nan]))),
    ({"key": "current"}, lambda: M.simulate(0.2, near=RUN, voltage=kic.Voltage([1.0], current=[1.0]))),
    ({"key": "voltage"}, lambda: M.simulate(0.2, near=RUN)),
    ({"key": "voltage"}, lambda: M.simulate(0.2, near=FREE, voltage=[1.0])),
]


@pytest.mark.parametrize(("data", "call"), REFUSED)
def test_invalid_arguments_raise(data: dict, call) -> None:
    with raises(kic.KicError, **data):
        call()


def test_nan_voltages_raise_with_the_run() -> None:
    with pytest.raises(kic.SimulationError) as caught:
        go(t=np.linspace(0, 0.1, 21), voltage=lambda t, now: [np.nan if t > 0.03 else 1.0])
    assert caught.value.time > 0.03
    assert caught.value.simulation.t[-1] < 0.03
    assert caught.value.simulation.current.shape[1] == 1


@pytest.mark.slow
def test_first_step_from_rest_is_short() -> None:
    """Everything is at rest at first, so the integrator would otherwise take the whole run in one step."""
    bars = kic.load("four-bar")
    motor = kic.Motor(
        "M", ["A"], ratios=[30.0], inertia=1e-5, resistance=0.5, inductance=1e-3, torque_constant=0.02
    )
    rest = bars.find_equilibrium(stable=True).configuration
    driven = replace(bars, motors=[motor])
    seen = []

    def voltage(t, now) -> np.ndarray:
        seen.append(now.q[0])
        return np.array([8.0 * np.sin(np.pi * t) ** 2])  # nothing at the start, nor at the end

    run = driven.simulate(1.0, near=driven.at({"A": rest.value("A") + 1e-12}), voltage=voltage)
    assert np.ptp(run.q) > 0.1
    assert np.ptp(seen) < 1.5 * np.ptp(run.q)
