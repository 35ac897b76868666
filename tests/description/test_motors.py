"""Motors: description, rotors in the dynamics, currents and voltages, against written-out equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import raises
from sampling import (
    STEP,
    derivative,
    effort_gradient,
    mismatch,
    moved,
    random_posture,
    random_tree,
    tree_rates,
)

import kic

CIRCUIT = {"resistance": 1.5, "inductance": 2e-3, "torque_constant": 0.05, "speed_constant": 0.06}


def geared(rng: np.random.Generator, m: kic.Mechanism, joints: list[str], **more) -> kic.Mechanism:
    """The mechanism with as many motors as joints, every shaft geared to all of them."""
    motors = [
        kic.Motor(
            f"M{k}",
            joints,
            ratios=10 * rng.normal(size=len(joints)),
            inertia=rng.uniform(1e-3, 1e-2),
            damping=rng.uniform(1e-3, 1e-2),
            **{key: x * rng.uniform(0.5, 2) for key, x in {**CIRCUIT, **more}.items()},
        )
        for k in range(len(joints))
    ]
    return replace(m, motors=motors)


CASES = [("puma560", None), ("five-bar", ["D", "A"]), ("four-bar", ["D"]), ("rrprrr", None)]


@pytest.mark.parametrize(("name", "joints"), CASES)
def test_rotors_are_bodies_that_spin(name: str, joints) -> None:
    """Their energy is ½ J u̇², and the inertia's gradient that of any dynamics."""
    rng = np.random.default_rng(1)
    m = kic.load(name)
    m = geared(rng, m, joints or list(m.coordinates))
    c = m.at()
    train = m._model.drive_train
    qd, qdd = rng.normal(size=(2, m.dof))
    bare, whole = c.dynamics(), c.dynamics(motors=True)
    N = train.ratios @ c.coefficients(train.joints).G
    speed = N @ qd
    gain = whole.kinetic_energy(qd) - bare.kinetic_energy(qd)
    assert gain == pytest.approx((train.inertia * speed**2).sum() / 2, rel=1e-10)
    assert mismatch(whole.damping - bare.damping, N.T @ np.diag(train.damping) @ N) < 1e-12
    gradient = derivative(c, lambda x: x.dynamics(motors=True).I)
    assert np.abs(whole.inertia_gradient() - gradient).max() < 1e-12 * np.abs(whole.P).max() + 1e-15
    # efforts at the joints are less than torques on the shafts by what spins
    extra = whole.inverse_dynamics(qd, qdd) - bare.inverse_dynamics(qd, qdd)
    acceleration = train.ratios @ c.coefficients(train.joints).acceleration(qd, qdd)
    want = N.T @ (train.inertia * acceleration + train.damping * speed)
    assert mismatch(extra, want) < 1e-9
    # and so is what they change with small deviations
    lin = c.linearize(qd, qdd, motors=True)
    assert mismatch(lin.K, effort_gradient(c, qd, qdd, motors=True)) < 1e-10
    assert mismatch(lin.T, whole.inverse_dynamics(qd, qdd)) < 1e-12


@pytest.mark.parametrize(("name", "joints"), CASES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)], ids=str)
def test_currents_and_voltages_of_a_motion(name: str, joints, batch: tuple[int, ...]) -> None:
    """(2-238) to (2-240): the circuits' equations hold, the rate of the current is its derivative in time."""
    rng = np.random.default_rng(2)
    m = kic.load(name)
    m = geared(rng, m, joints or list(m.coordinates), friction=0.02)
    c, train = m.at(), m._model.drive_train
    v, a, j = rng.normal(size=(3, *batch, m.dof))
    drive = c.motor_demand(v, a, j)
    K = len(train.names)
    for array in (drive.speed, drive.torque, drive.current, drive.current_rate, drive.voltage, drive.power):
        assert array.shape == (*batch, K)
    joints = c.coefficients(train.joints)
    N = train.ratios @ joints.G
    speed = v @ N.T
    assert mismatch(drive.speed, speed) < 1e-12
    # what moves the rotor, its damping and friction, and the rest, which makes the efforts
    acceleration = joints.acceleration(v, a) @ train.ratios.T
    rest = (
        drive.torque - train.inertia * acceleration - train.damping * speed - train.friction * np.sign(speed)
    )
    assert mismatch(rest @ N, c.dynamics().inverse_dynamics(v, a)) < 1e-9
    assert mismatch(drive.current, drive.torque / train.torque_constant) < 1e-14
    want = (
        train.inductance * drive.current_rate
        + train.resistance * drive.current
        + train.speed_constant * speed
    )
    assert mismatch(drive.voltage, want) < 1e-13
    assert mismatch(drive.power, drive.voltage * drive.current) < 1e-14
    if batch == ():
        h = 1j * STEP
        later = moved(c, np.einsum("bna,a->bn", tree_rates(c), v)).motor_demand(v + h * a, a + h * j, j)
        assert mismatch(drive.current_rate, later.current.imag / STEP) < 1e-9


def test_other_coordinates_and_jerks_that_are_not_needed() -> None:
    rng = np.random.default_rng(3)
    m = geared(rng, kic.load("five-bar"), ["A", "E"])
    c = m.at()
    v, a, j = rng.normal(size=(3, 2))
    tip = c.coefficients(["C"], order=3)
    wrt = ["A", "C"]
    both = c.coefficients(wrt, order=3)
    assert tip.rows == ("C",)
    there = c.motor_demand(both.velocity(v), both.acceleration(v, a), both.jerk(v, a, j), wrt=wrt)
    here = c.motor_demand(v, a, j)
    for key in ("speed", "torque", "current", "current_rate", "voltage"):
        assert mismatch(getattr(there, key), getattr(here, key)) < 1e-9, key
    quick = replace(m, motors=[replace(motor, inductance=0.0) for motor in m.motors]).at()
    found = quick.motor_demand(v, a)
    assert np.isnan(found.current_rate).all()
    assert mismatch(found.voltage, quick.motor_demand(v, a, j).voltage) < 1e-14
    with raises(kic.InputError, motors=("M0", "M1")):
        c.motor_demand(v, a)


def test_plain_sources_of_torque() -> None:
    m = kic.load("horn-two-link")
    motors = [
        kic.Motor("S", ["shoulder"], ratios=[20.0], inertia=1e-4, friction=0.3),
        kic.Motor("E", ["elbow"], ratios=[-10.0], resistance=1.0, torque_constant=0.5),
    ]
    c = replace(m, motors=motors).at([0.1, 0.2])
    drive = c.motor_demand([1.0, 0.0], [0.0, 0.0])
    T = c.dynamics().inverse_dynamics([1.0, 0.0], [0.0, 0.0])
    assert drive.torque == pytest.approx([T[0] / 20 + 0.3, T[1] / -10])
    assert drive.speed == pytest.approx([20.0, 0.0])
    assert np.isnan(drive.current[0])
    assert drive.current[1] == pytest.approx(T[1] / -5)
    assert np.isnan(drive.voltage[0])
    assert drive.power == pytest.approx([20 * drive.torque[0], drive.voltage[1] * drive.current[1]])
    # at rest dry friction is taken as none
    assert c.motor_demand([0, 0], [0, 0]).torque[0] == pytest.approx(
        c.dynamics().inverse_dynamics([0, 0], [0, 0])[0] / 20
    )
    page = str(drive.summary())
    assert "current" in page
    assert "<table>" in drive._repr_html_()
    many = c.motor_demand(np.zeros((0, 2)), np.zeros((0, 2)))
    assert "empty batch (0,)" in str(many.summary())


def test_dry_friction_is_not_left_out() -> None:
    m = replace(
        kic.load("horn-two-link"),
        motors=[kic.Motor("S", ["shoulder"], ratios=[20.0], friction=0.3), kic.Motor("E", ["elbow"])],
    )
    c = m.at([0.1, 0.2])
    lin = c.linearize([1.0, 0.0], [0.0, 0.0], motors=True)
    bare = c.linearize([1.0, 0.0], [0.0, 0.0])
    assert pytest.approx([6.0, 0.0]) == lin.T - bare.T
    assert mismatch(lin.K, bare.K) < 1e-14
    # the effort that is given includes it
    assert c.linearize([1.0, 0.0], effort=lin.T, motors=True).qdd == pytest.approx(np.zeros(2), abs=1e-12)


def test_motions_that_motors_cannot_make() -> None:
    m = kic.load("horn-two-link")
    one = replace(m, motors=[kic.Motor("S", ["shoulder"], ratios=[20.0])])
    c = one.at([0.1, 0.2])
    # with the elbow falling freely, they can
    d = c.dynamics()
    a = d.forward_dynamics([0, 0], [3.0, 0.0])
    assert c.motor_demand([0, 0], a).torque == pytest.approx([0.15])
    three = replace(m, motors=[kic.Motor(f"M{k}", ["shoulder", "elbow"], ratios=[1.0, k]) for k in (1, 2, 3)])
    with raises(kic.InputError, dof=2):
        three.at([0.1, 0.2]).motor_demand([0, 0], [0, 0])
    twins = replace(m, motors=[kic.Motor(f"M{k}", ["shoulder", "elbow"], ratios=[1.0, 2.0]) for k in (1, 2)])
    with raises(kic.SingularError, motors=("M1", "M2")):
        twins.at([0.1, 0.2]).motor_demand([0, 0], [0, 0])


BAD = [
    ({"joints": []}, "joints"),
    ({"joints": [1]}, "joints"),
    ({"joints": ["A", "A"]}, "joints"),
    ({"joints": ["A", "B"]}, "ratios"),
    ({"ratios": [0.0]}, "ratios"),
    ({"ratios": [np.nan]}, "ratios"),
    ({"inertia": -1}, "inertia"),
    ({"friction": -1}, "friction"),
    ({"resistance": 0.0, "torque_constant": 1}, "resistance"),
    ({"resistance": 1.0}, "torque_constant"),
    ({"torque_constant": 1.0}, "resistance"),
    ({"inductance": 1.0}, "resistance"),
    ({"name": "a.b"}, "name"),
]


@pytest.mark.parametrize(("given", "key"), BAD)
def test_invalid_motors_raise(given: dict, key: str) -> None:
    with raises(kic.ModelError, key=key):
        kic.Motor(**{"name": "M", "joints": ["A"], **given})


def test_motors_of_a_drawing() -> None:
    m = kic.load("four-bar")
    for joint, data in (
        ("Z", {"key": "motors[0].joints", "name": "Z"}),
        ("tip", {"key": "motors[0].joints", "name": "tip"}),
    ):
        with raises(kic.ModelError, **data) as caught:
            replace(m, motors=[kic.Motor("M", [joint])])
        assert caught.value.key == "motors[0].joints"
    ball = random_tree(np.random.default_rng(0), ["R", "spherical", "universal"])
    fine = replace(ball, motors=[kic.Motor("M", ["j0", "j2.2"], ratios=[2.0, 3.0])])
    assert fine._shafts == {"M": ("j0", "j2.2")}
    with_motor = replace(m, motors=[kic.Motor("M", ["A"], ratios=[30.0])])
    assert with_motor["M"] is with_motor.motors[0]
    with raises(kic.InputError, name="M"):
        with_motor.at().coefficients("M")
    with raises(kic.InputError, name="M"):
        fine.at({"M": 1.0})
    page = str(with_motor.summary())
    assert "motors" in page
    assert "30 A" in page
    assert "torque" in page
    # motors say nothing about rigid bodies alone
    assert np.array_equal(with_motor.at().dynamics().I, m.at().dynamics().I)


def test_model_files(tmp_path) -> None:
    file = tmp_path / "arm.toml"
    m = kic.load("horn-two-link")
    motors = [
        kic.Motor("M1", ["shoulder"], ratios=[60.0], inertia=1e-4, **CIRCUIT),
        kic.Motor("M2", ["shoulder", "elbow"], ratios=[1.0, 40.0], friction=0.1),
    ]
    m = replace(m, motors=motors)
    m.save(file)
    assert kic.load(file) == m
    text = file.read_text(encoding="utf-8")
    assert "[[motors]]" in text
    for was, put, key, rule in (
        ("ratios = [60.0]", "ratios = 'x'", "motors[0].ratios", "a list of numbers, got 'x'"),
        ("inertia = 0.0001", "inertia = -1", "motors[0].inertia", "≥ 0"),
        ("inertia = 0.0001", "inertia = [1, 2, 3]", "motors[0].inertia", "must be a number, got [1, 2, 3]"),
        ("resistance = 1.5", "resistance = 'x'", "motors[0].resistance", "a number, got 'x'"),
        ('joints = ["shoulder"]', 'joints = ["sholder"]', "motors[0].joints", "Did you mean 'shoulder'?"),
        ("friction = 0.1", "fricton = 0.1", "motors[1].fricton", "Did you mean 'friction'?"),
    ):
        assert was in text
        file.write_text(text.replace(was, put), encoding="utf-8")
        with pytest.raises(kic.ModelFileError) as caught:
            kic.load(file)
        assert caught.value.key == key
        assert rule in str(caught.value)
    schema = kic.schema()
    assert "motors" in schema["properties"]
    assert "Motor" in schema["$defs"]


def test_arms_from_dh_rows() -> None:
    arm = kic.from_dh(
        "planar",
        [kic.DHRow("A", "upper"), kic.DHRow("B", "fore", a=1.0)],
        motors=[kic.Motor("M", ["A", "B"], ratios=[20.0, 1.0])],
        convention="freeman",
    )
    assert arm._shafts == {"M": ("A", "B")}


def test_sensitivities_of_motors() -> None:
    """By ratio, inertia and constants: exact derivatives of currents."""
    rng = np.random.default_rng(4)
    m = geared(rng, kic.load("puma560"), ["waist", "shoulder"])
    m = replace(m, motors=m.motors[:1])
    posture = random_posture(rng, m)._phi
    v, a = rng.normal(size=(2, 6))
    ask = lambda x: x.at(posture).dynamics(motors=True).inverse_dynamics(v, a)  # noqa: E731
    for name, factor in (("M0.inertia", 1.0), ("M0.damping", 1.0)):
        slope = m.sensitivity(ask, name)[0]
        more = replace(m.motors[0], **{name[3:]: getattr(m.motors[0], name[3:]) + factor})
        assert mismatch(slope, ask(replace(m, motors=[more])) - ask(m)) < 1e-8, name  # linear in it
    slope = m.sensitivity(ask, "M0.ratios.2")[0]
    h = 1e-4
    r = np.array(m.motors[0].ratios)
    sides = [
        ask(replace(m, motors=[replace(m.motors[0], ratios=tuple(r + s * h * np.array([0, 1])))]))
        for s in (1, -1)
    ]
    assert mismatch(slope, (sides[0] - sides[1]) / (2 * h)) < 1e-7  # quadratic: exact but for rounding
