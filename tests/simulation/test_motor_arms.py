"""Nominal voltages move arms without feedback if the model is right; feedback corrects model errors."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from raising import raises
from scipy.interpolate import make_interp_spline

import kic
from kic import trajectory as tr

PUMA = kic.load("puma560-motors")
CIRCUIT = {"resistance": 0.8, "torque_constant": 0.03, "inductance": 2e-3}
BARS = replace(
    kic.load("five-bar"),
    motors=[
        kic.Motor("P", ["A", "B"], ratios=[30.0, 4.0], inertia=2e-5, damping=1e-5, **CIRCUIT),
        kic.Motor("Q", ["E"], ratios=[-25.0], inertia=1e-5, damping=2e-5, **CIRCUIT),
    ],
)


def swing(m: kic.Mechanism) -> tr.Trajectory:
    """From rest to rest, jerks included, in a second."""
    if m.name == "five-bar":
        at = m.at().value
        return tr.septic({"A": at("A"), "E": at("E")}, {"A": at("A") + 0.5, "E": at("E") - 0.3}, 1.0)
    return tr.septic([0, 0, 0, 0, 0.3, 0], [1.0, 0.8, -0.7, 0.5, 0.8, 1.0], 1.0)


class Nominal:
    """The nominal voltages and currents of a swing (2-238 to 2-240), over the trajectory as a batch."""

    def __init__(self, m: kic.Mechanism) -> None:
        self.m, self.go = m, swing(m)
        course = self.go.on(m, 401)
        self.drive = course.motor_demand()
        self.voltage = make_interp_spline(course.t, self.drive.voltage, k=7)

    def run(
        self, m: kic.Mechanism | None = None, voltage=None, method="DOP853", tolerance=1e-8
    ) -> kic.results.Simulation:
        """The swing from its own start, by the nominal voltages or others, of the model or another."""
        m = m or self.m
        start = m.at(self.go.inputs(self.go(0.0).q))
        limits = kic.Integrator(method, rtol=tolerance, atol=tolerance)
        led = kic.Voltage(voltage or (lambda t, now: self.voltage(t)), current=self.drive.current[0])
        return m.simulate(np.linspace(0, 1, 41), near=start, voltage=led, integrator=limits)

    def missed(self, run: kic.results.Simulation) -> float:
        return float(np.abs(run.q - self.go(run.t).q).max())


@pytest.fixture(scope="module", params=["puma560-motors", "five-bar"])
def nominal(request) -> Nominal:
    return Nominal(PUMA if request.param == PUMA.name else BARS)


def heavier(m: kic.Mechanism) -> kic.Mechanism:
    """With a body 2 kg heavier, or half as heavy again."""
    which = "link3" if m.name == PUMA.name else next(b.name for b in m.bodies if b.mass)
    more = 2.0 if m.name == PUMA.name else 0.5 * next(b.mass for b in m.bodies if b.mass)
    return replace(m, bodies=[replace(b, mass=b.mass + more) if b.name == which else b for b in m.bodies])


def test_voltages_between_samples(nominal: Nominal) -> None:
    course = nominal.go.on(nominal.m, (np.arange(400) + 0.5) / 400)
    assert np.abs(nominal.voltage(course.t) - course.motor_demand().voltage).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DOP853", "LSODA"])
def test_nominal_voltages_track_without_feedback(nominal: Nominal, method: str) -> None:
    """Errors of motion, currents and energy fall with rtol, as global errors of an integrator do.

    In proportion for LSODA, faster for DOP853, whose steps the motor's time constant keeps short.
    """
    tolerances = np.array([1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
    runs = [nominal.run(method=method, tolerance=rtol) for rtol in tolerances]
    missed = np.array([nominal.missed(run) for run in runs])
    current = [np.abs(run.current - nominal.drive.current[::10]).max() for run in runs]
    energy = [np.abs(run.energy.residual).max() / run.energy.electrical[-1] for run in runs]
    for error in (missed, current, energy):
        assert np.polyfit(np.log(tolerances), np.log(error), 1)[0] > 0.5
    # the local errors of some hundred steps may add up
    assert (missed < 100 * tolerances).all()


@pytest.mark.slow
def test_feedback_corrects_a_wrong_mass(nominal: Nominal) -> None:
    wrong = heavier(nominal.m)
    right, astray = nominal.missed(nominal.run()), nominal.missed(nominal.run(wrong))
    assert right < 1e-8
    assert astray > 1e-2
    # computed by a model that does not know of the mass
    missed = []
    for kp, kd in ((400.0, 40.0), (1600.0, 80.0)):
        control = kic.controllers.ComputedVoltage(nominal.m, nominal.go, kp, kd, gain=2.0)
        run = nominal.run(wrong, control, "BDF", 1e-6)
        missed.append(nominal.missed(run))
    assert missed[0] < 0.3 * astray
    assert missed[1] < 0.3 * missed[0]


@pytest.mark.slow
def test_voltage_function_with_pd_feedback(nominal: Nominal) -> None:
    """Nominal voltages plus springs and dampers between shafts and their nominal angles."""
    wrong, train = heavier(nominal.m), nominal.m._model.drive_train
    joints = list(train.joints)
    course = nominal.go.on(nominal.m, 401)
    shaft = course.configuration
    wanted = np.stack([shaft.value(j) for j in joints], axis=1) @ train.ratios.T
    turn, speed = (make_interp_spline(course.t, x, k=7) for x in (wanted, nominal.drive.speed))
    f = nominal.m.prepare.coefficients(joints, order=1)

    def led(t: float, now) -> np.ndarray:
        r = f(now.state)
        value = np.concatenate([r[j].value for j in joints])
        rate = np.concatenate([r[j].G for j in joints]) @ now.qd
        error, slip = turn(t) - train.ratios @ value, speed(t) - train.ratios @ rate
        return nominal.voltage(t) + 4.0 * error + 0.2 * slip

    run = nominal.run(wrong, led, "BDF", 1e-7)
    assert nominal.missed(run) < 0.25 * nominal.missed(nominal.run(wrong))


@pytest.mark.slow
def test_errors_decay_as_designed_without_inductance(nominal: Nominal) -> None:
    """Off the trajectory by 0.05: e = 0.05 (1 + 20 t) exp(−20 t) exactly, with rotors and gears."""
    m = replace(nominal.m, motors=[replace(motor, inductance=0.0) for motor in nominal.m.motors])
    control = kic.controllers.ComputedVoltage(m, nominal.go, 400.0, 40.0)
    start = nominal.go.inputs(nominal.go(0.0).q - 0.05)
    t = np.linspace(0, 0.5, 21)
    run = m.simulate(t, near=m.at(start), voltage=control, integrator=kic.Integrator(rtol=1e-10))
    exact = 0.05 * ((1 + 20 * t) * np.exp(-20 * t))[:, None]
    assert np.abs(nominal.go(t).q - run.q - exact).max() < 1e-8
    measured = [
        SimpleNamespace(q=q, qd=qd, state=s) for q, qd, s in zip(run.q, run.qd, run.state, strict=True)
    ]
    many = np.array([control(x, now) for x, now in zip(t, measured, strict=True)])
    assert np.abs(many - run.voltage).max() < 1e-9
    pulled = kic.controllers.ComputedVoltage(m, nominal.go, 400.0, 40.0, gain=1.5)
    for x, now, made, current in zip(t, measured, many, run.current, strict=True):
        now.current = current - 2.0
        assert np.abs(pulled(x, now) - made - 3.0).max() < 1e-9
        now.current = np.full_like(made, np.nan)
        assert np.abs(pulled(x, now) - made).max() == 0


@pytest.mark.slow
def test_computed_voltage_in_tip_coordinates() -> None:
    m = replace(BARS, motors=[replace(motor, inductance=0.0) for motor in BARS.motors])
    x, y, _ = m.at().value("tip")
    go = tr.septic({"tip.x": x, "tip.y": y}, {"tip.x": x + 0.05, "tip.y": y - 0.03}, 0.5)
    control = kic.controllers.ComputedVoltage(m, go, 400.0, 40.0)
    run = m.simulate(np.linspace(0, 0.5, 11), near=m.at(), voltage=control)
    assert np.abs(run["tip"][:, :2] - go(run.t).q).max() < 1e-8


def test_invalid_arguments_raise() -> None:
    go, make = swing(PUMA), kic.controllers.ComputedVoltage
    with raises(kic.InputError, key="gain"):
        make(PUMA, go, 1.0, 1.0, gain=-1.0)
    with raises(kic.InputError, key="gain"):
        make(PUMA, go, 1.0, 1.0, gain=1.0)(0.0, (PUMA.at()._phi, np.zeros(6)))
    with raises(kic.InputError, motors=()):
        make(kic.load("puma560"), go, 1.0, 1.0)
    torque = kic.controllers.ComputedTorque(PUMA, go, 1.0, 1.0)
    with raises(kic.InputError, key="effort", got="efforts", expected="voltages"):
        PUMA.simulate(0.1, near=PUMA.at(), voltage=torque)
    other = make(BARS, swing(BARS), 1.0, 1.0, wrt=["A", "D"])
    with raises(kic.InputError, got=("A", "D")):
        BARS.simulate(0.1, near=BARS.at(), voltage=other)
    few = replace(PUMA, motors=PUMA.motors[:5])
    with raises(kic.InputError, name="flange"):
        make(few, go, 1.0, 1.0)(0.3, (few.at()._phi, np.zeros(6)))


def test_model_is_the_arm_with_motors() -> None:
    """Bodies and joints are those of puma560; rotors weigh as much as the description states."""
    bare = kic.load("puma560")
    words = {key: getattr(bare, key) for key in ("name", "info")}
    assert replace(PUMA, motors=(), **words) == bare
    gain = np.diag(PUMA.at().dynamics(motors=True).I - bare.at().dynamics().I)
    assert gain == pytest.approx([0.784, 2.325, 0.577, 0.191, 0.171, 0.194], abs=6e-4)
    for motor in PUMA.motors:
        assert 4e-4 < motor.inductance / motor.resistance < 5e-4
