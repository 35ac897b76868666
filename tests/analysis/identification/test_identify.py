"""Identified parameters against the mechanism that made the measurements, and intervals in repetitions."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal
from raising import raises

import kic
from kic.dynamics.dynamic_parameters import pseudo_inertia, ten_numbers, with_parameters
from kic.numerics.conic_programs import Program, solve
from kic.numerics.tables import read_columns
from kic.ui.cli.main import main

# largest difference of estimates from exact data, relative to the largest: eps times a condition of 1e4
EXACT_RTOL = 1e-9
FRICTION = ["crank", "coupler", "rocker", "A.damping", "A.friction"]


def series(count: int, size: int, seed: int = 0, amplitude: float = 0.4) -> tuple[np.ndarray, ...]:
    """Return times (N,), and values, rates and accelerations (N, M) of sums of sines."""
    rng, t = np.random.default_rng(seed), np.linspace(0.0, 6.0, count)
    w, a, p = rng.uniform(1.0, 4.0, (3, size)), rng.normal(size=(3, size)), rng.uniform(0, 6, (3, size))
    angle = t[:, None, None] * w + p
    sums = a * np.sin(angle), a * w * np.cos(angle), -a * w**2 * np.sin(angle)
    return t, *(amplitude * x.sum(axis=1) for x in sums)


def measured(m: kic.Mechanism, names: tuple[str, ...], motion: tuple[np.ndarray, ...]) -> dict[str, Any]:
    """Return columns of a motion."""
    endings = ("", ".rate", ".acceleration")
    return {f"{n}{end}": x[:, k] for end, x in zip(endings, motion, strict=True) for k, n in enumerate(names)}


def crank(count: int = 200) -> tuple[np.ndarray, ...]:
    """Return times and the motion (N, 1) of a crank that turns back."""
    t = np.linspace(0.0, 4.0, count)
    motion = 3 * t + np.sin(5 * t), 3 + 5 * np.cos(5 * t), -25 * np.sin(5 * t)
    return t, *(x[:, None] for x in motion)


def four_bar_bench(noise: float = 5e-3, seed: int = 0, count: int = 200) -> tuple[Any, Any, np.ndarray]:
    """Return a four-bar, columns measured on one with friction, and its parameters `FRICTION`."""
    m = kic.load("four-bar")
    t, *motion = crank(count)
    real = m.replace("A", damping=0.003, friction=0.02)
    r = real.path({"A": motion[0][:, 0]}).regressor(*motion[1:], of=FRICTION)
    effort = (r.matrix @ r.values)[:, 0] + np.random.default_rng(seed).normal(0.0, noise, count)
    return m, measured(m, ("A",), motion) | {"t": t, "A.effort": effort}, r.values


@pytest.mark.parametrize(
    ("name", "amplitude"),
    [
        ("four-bar", 0.3),
        ("five-bar", 0.1),
        ("slider-crank", 0.3),
        ("geared-five-bar", 0.3),
        ("two-arms", 0.1),
        ("puma560", 0.3),
        ("scara", 0.3),
        ("bevel-wrist", 0.3),
        ("delta", 0.1),
    ],
)
def test_exact_measurements_give_the_description(name: str, amplitude: float) -> None:
    m = kic.load(name)
    names, reference = m.coordinates, m.at().value(list(m.coordinates))
    _, *motion = series(120, len(names), amplitude=amplitude)
    motion[0] = motion[0] - motion[0][:1] + reference
    path = m.path(dict(zip(names, motion[0].T, strict=True)))
    effort = path.inverse_dynamics(*motion[1:])
    data = measured(m, names, motion) | {f"{n}.effort": effort[:, k] for k, n in enumerate(names)}
    found = m.identify(data)
    size = np.abs(found.base.values).max()
    assert_allclose(found.values, found.base.values, EXACT_RTOL, EXACT_RTOL * size)
    assert found.efforts == names
    assert not found.unused


def test_efforts_at_other_rows() -> None:
    """Of a five-bar whose tip is measured and whose cranks are driven; of a four-bar driven twice."""
    m = kic.load("five-bar")
    rows, driven = ("tip.x", "tip.y"), m.coordinates
    c = m.at()
    _, *motion = series(100, 2, amplitude=0.02)
    motion[0] = motion[0] - motion[0][:1] + c.value(list(rows))
    path = m.path(dict(zip(rows, motion[0].T, strict=True)))
    _, qd, qdd, *_ = path.motion(list(driven), *motion[1:], wrt=rows)
    effort = path.inverse_dynamics(qd, qdd)
    data = measured(m, rows, motion) | {f"{n}.effort": effort[:, k] for k, n in enumerate(driven)}
    found = m.identify(data)
    assert found.efforts == driven
    assert_allclose(found.values, found.base.values, 1e-6, 1e-9)
    m, data, values = four_bar_bench(0.0)
    path = m.path({"A": data["A"]})
    other = np.sin(data["t"])  # at D, whose effort reduces that at A
    data |= {
        "A.effort": data["A.effort"] - path.coefficients("D", order=1).G[:, 0, 0] * other,
        "D.effort": other,
    }
    found = m.identify(data, FRICTION)
    assert_allclose(found.values, found.base.matrix @ values, 1e-9, 1e-10)


def test_coordinates_without_measured_effort() -> None:
    """Rows without an effort contribute nothing; zeros make a coordinate passive."""
    arm = kic.load("horn-two-link")
    _, *motion = series(60, 2)
    effort = arm.at(motion[0]).inverse_dynamics(*motion[1:])
    data = measured(arm, arm.coordinates, motion) | {"elbow.effort": effort[:, 1]}
    found = arm.identify(data)
    assert found.efforts == ("elbow",)
    assert len(found.values) == 3
    assert_allclose(found.values, found.base.values, 1e-9, 1e-12)


def test_known_parameters_are_subtracted() -> None:
    """Other parameters have the values of the description: bodies, springs, friction, forces."""
    m = kic.load("four-bar").replace("A", damping=0.01, stiffness=0.3, rest=0.2, friction=0.05)
    m = m.add(kic.Force("push", "tip", (1.0, -2.0, 0.0)))
    t, *motion = crank()
    path = m.path({"A": motion[0][:, 0]})
    push = np.stack([np.sin(t), np.cos(t), 0 * t], axis=1)
    effort = path.inverse_dynamics(*motion[1:], applied={"push": push})[:, 0] + 0.05 * np.sign(
        motion[1][:, 0]
    )
    data = measured(m, ("A",), motion) | {"A.effort": effort}
    data["A.effort"][7] = np.nan  # this sample is left out, also of the forces
    found = m.identify(data, ["coupler", "A.damping"], applied={"push": push})
    assert len(found.effort) == len(t) - 1
    assert_allclose(found.values, found.base.values, 1e-9, 1e-10)
    fixed = m.replace("push", force=(0.0, 0.0, 0.0))
    assert np.abs(fixed.identify(data, ["coupler", "A.damping"]).residual).max() > 0.1
    bare = m.replace("rocker", mass=None, inertia=None, com=None)
    unknown = ("m", "mx", "my", "Izz")  # the others have no effect
    with raises(kic.InertiaError, names=tuple(f"rocker.{key}" for key in unknown)):
        bare.identify(data, "coupler", applied={"push": push})


def test_currents_and_torques_of_motors() -> None:
    """Currents times the constant and the ratio are efforts; rotors of the description are known."""
    m = kic.load("puma560-motors")
    _, *motion = series(200, 6)
    motion[0] = motion[0] + m.at().value(list(m.coordinates))
    path = m.path(motion[0])
    demand = path.motor_demand(*motion[1:], 0 * motion[2])
    data = measured(m, m.coordinates, motion)
    currents = {f"{n}.current (mA)": 1000 * x for n, x in zip(demand.motors, demand.current.T, strict=True)}
    torques = {f"{n}.torque": x for n, x in zip(demand.motors, demand.torque.T, strict=True)}
    for columns in (currents, torques):
        found = m.identify(data | columns)
        assert len(found.values) == 36
        assert_allclose(found.values, found.base.values, 1e-8, 1e-9)
    found = m.identify(data | torques, ["link3", "elbow_motor.inertia", "elbow_motor.damping"])
    assert found.base.expressions[-2:] == ("elbow_motor.inertia", "elbow_motor.damping")
    assert_allclose(found.values, found.base.values, 1e-8, 1e-9)
    with raises(kic.InputError, key="measurements"):
        m.identify(data | torques | currents)
    with raises(kic.InputError, key="measurements"):
        m.identify(data | torques | {"waist.effort": demand.torque[:, 0]})


@pytest.mark.parametrize(
    ("count", "low", "high"), [(60, 0.9, 0.99), pytest.param(2000, 0.94, 0.96, marks=pytest.mark.slow)]
)
def test_intervals_hold_in_repetitions(count: int, low: float, high: float) -> None:
    """95 % intervals contain the true values; estimates have the stated covariance."""
    m, data, values = four_bar_bench(0.0)
    rng, held, errors = np.random.default_rng(5), [], []
    clean = data["A.effort"]
    for _ in range(count):
        found = m.identify(data | {"A.effort": clean + rng.normal(0.0, 5e-3, len(clean))}, FRICTION)
        ends, true = found.interval().T, found.base.matrix @ values
        held.append((ends[0] < true) & (true < ends[1]))
        errors.append((found.values - true) / found.sigma)
    assert low < np.mean(held) < high
    assert_allclose(np.std(errors, axis=0), 1.0, atol=6 / np.sqrt(2 * count))


def test_weights_follow_the_noise_of_each_effort() -> None:
    """Noise is estimated for each effort, without bias; given noise is used as it is."""
    arm, rng, sizes = kic.load("horn-two-link"), np.random.default_rng(3), np.array([0.5, 0.002])
    _, *motion = series(400, 2)
    exact = arm.at(motion[0]).inverse_dynamics(*motion[1:])
    noise, errors = [], []
    for _ in range(50):
        effort = exact + rng.normal(size=exact.shape) * sizes
        data = measured(arm, arm.coordinates, motion)
        data |= {"shoulder.effort": effort[:, 0], "elbow.effort": effort[:, 1]}
        found = arm.identify(data)
        noise.append(found.noise)
        errors.append((found.values - found.base.values) / found.sigma)
    assert_allclose(np.mean(noise, axis=0), sizes, 0.03)
    assert_allclose(np.std(errors), 1.0, atol=0.25)
    given = arm.identify(data, noise={"shoulder": 0.5, "elbow": 0.002})
    assert_allclose(given.values, found.values, atol=found.sigma.max())
    assert_array_equal(given.noise, sizes)
    W = arm.at(motion[0]).regressor(*motion[1:]).matrix[..., given.base.columns] / sizes[:, None]
    W = W.reshape(-1, len(given.base))
    assert_allclose(given.covariance, np.linalg.inv(W.T @ W), 1e-6)


def test_positions_are_filtered_and_differentiated() -> None:
    """From an encoder that begins again at 360°, with noise, the parameters are within their intervals."""
    m, data, values = four_bar_bench(5e-3, count=2001)
    rng = np.random.default_rng(2)
    angle = (np.rad2deg(data["A"]) + rng.normal(0.0, 0.01, 2001)) % 360
    raw = {"t (ms)": 1000 * data["t"], "A [deg]": angle, "A.effort (N·mm)": 1000 * data["A.effort"]}
    found = m.identify(raw, FRICTION, cutoff=10.0)
    assert np.abs((found.values - found.base.matrix @ values) / found.sigma).max() < 5
    assert np.abs(found.correlation).max() < 0.5
    assert found.t is not None
    assert_allclose(np.diff(found.t), np.diff(found.t)[0])
    assert np.abs(np.diff(found.t)[0] * 2 * 10.0 - 1) < 0.05


def test_files_and_tables(tmp_path: Path) -> None:
    """A CSV file, a table of kic, a data frame and a dict give the same."""
    pandas = pytest.importorskip("pandas")
    arm = kic.load("horn-two-link")
    run = kic.trajectory.quintic([0.0, 0.0], [1.0, 2.0], duration=1.0).on(arm, 40)
    table = run.table([*arm.coordinates, "efforts"])
    first = arm.identify(table)
    assert first.unused == ("shoulder.jerk (rad/s³)", "elbow.jerk (rad/s³)")
    assert_array_equal(first.t, run.t)
    table.to_csv(tmp_path / "run.csv")
    other = {f"my {v.name.replace('.', ' ')} ({v.unit})": v.values for v in table.variables}
    frame = pandas.DataFrame(other)
    frame.to_csv(tmp_path / "semicolons.csv", sep=";", index=False)
    columns = {v.name: f"my {v.name.replace('.', ' ')}" for v in table.variables if "jerk" not in v.name}
    for found in (
        arm.identify(tmp_path / "run.csv"),
        arm.identify(table.to_dataframe()),
        arm.identify({v.name: v.values for v in table.variables}),
        arm.identify(frame, columns=columns),
        arm.identify(str(tmp_path / "semicolons.csv"), columns=columns),
    ):
        assert_allclose(found.values, first.values, 1e-12, 1e-12)


def test_consistent_values_are_those_of_real_bodies() -> None:
    """Pseudo-inertias are positive definite, with the estimates where these allow it."""
    m, data, _ = four_bar_bench()
    found = m.identify(data, FRICTION)
    assert_allclose(found.base.matrix @ found.consistent, found.values, 1e-9, 1e-12)
    for k in range(3):
        J = pseudo_inertia(found.consistent[10 * k : 10 * k + 10])
        assert np.linalg.eigvalsh(J).min() > 0
    again = found.mechanism.path({"A": data["A"]}).regressor(
        data["A.rate"][:, None], data["A.acceleration"][:, None], of=FRICTION
    )
    assert_allclose(again.values, found.consistent, 1e-9, 1e-12)
    assert_allclose((again.matrix @ again.values)[:, 0], data["A.effort"] - found.residual[:, 0], 1e-9, 1e-9)
    # of exact data of a description, these are its own values
    m, data, values = four_bar_bench(0.0)
    exact = m.replace("A", damping=0.003, friction=0.02).identify(data, FRICTION)
    assert_allclose(exact.consistent, values, 1e-5, 1e-7)


def test_inconsistent_estimates_have_the_nearest_consistent_values() -> None:
    """If no real bodies have the estimates, those found are the nearest in the metric of the covariance."""
    m = kic.load("horn-two-link")
    _, *motion = series(60, 2)
    r = m.at(motion[0]).regressor(*motion[1:])
    values = r.values - 0.4 * (np.array(r.parameters) == "link2.Izz")  # a negative moment of inertia
    effort = r.matrix @ values + np.random.default_rng(2).normal(0.0, 0.1, (60, 2))
    data = measured(m, m.coordinates, motion) | {
        "shoulder.effort": effort[:, 0],
        "elbow.effort": effort[:, 1],
    }
    found = m.identify(data)
    weight = np.linalg.inv(found.covariance)

    def distance(values: np.ndarray) -> float:
        left = found.base.matrix @ values - found.values
        return float(left @ weight @ left)

    best = distance(found.consistent)
    assert best > 1.0
    rng = np.random.default_rng(0)
    for _ in range(300):
        # other real bodies nearby
        J = [pseudo_inertia(found.consistent[k : k + 10]) for k in (0, 10)]
        J = [(A := np.eye(4) + 0.1 * rng.normal(size=(4, 4))) @ one @ A.T for one in J]
        assert distance(np.concatenate([ten_numbers(one) for one in J])) > best * (1 - 1e-6)
    assert all(np.linalg.eigvalsh(pseudo_inertia(found.consistent[k : k + 10])).min() > 0 for k in (0, 10))


def test_pseudo_inertia_is_the_second_moment_of_mass() -> None:
    rng = np.random.default_rng(0)
    masses, places = rng.uniform(size=9), rng.normal(size=(9, 3))
    s = np.column_stack([places, np.ones(9)])
    J = np.einsum("i,ia,ib->ab", masses, s, s)
    assert_allclose(pseudo_inertia(ten_numbers(J)), J, 1e-13)


@pytest.mark.parametrize("name", kic.model_names())
def test_descriptions_from_parameters(name: str) -> None:
    """The inverse of `dynamic_parameters`: a description with its own values, and with half of them."""
    m = kic.load(name)
    r = m.at().regressor()
    assert not np.isnan(r.values).any()
    halves = {} if name == "leg-offsets" else {"half": 0.5}  # points carry masses in leg-offsets
    for factor in (1.0, *halves.values()):
        made = with_parameters(m, dict(zip(r.parameters, factor * r.values, strict=True)))
        again = made.at().regressor(of=r.parameters).values
        assert_allclose(again, factor * r.values, 1e-13, 1e-14 * np.abs(r.values).max(initial=0.0))


def test_results_are_printed_plotted_and_pickled() -> None:
    m, data, _ = four_bar_bench()
    found = m.identify(data | {"temperature": data["A"]}, FRICTION)
    text = found.summary().text()
    assert "10 combinations of 32 parameters from 200 samples" in text
    assert "columns without use: temperature" in text
    assert "Successive" not in text
    picture = found.plot()
    assert [axes.get_ylabel() for axes in picture.axes] == ["effort (N m)", "residual (N m)"]
    table = found.table()
    assert table.columns == ("A.effort", "A.effort.estimate", "A.effort.residual")
    assert_allclose(table["A.effort.residual"], table["A.effort"] - table["A.effort.estimate"], atol=1e-15)
    again = pickle.loads(pickle.dumps(found))
    assert_array_equal(again.values, found.values)
    # an effect that is missing
    assert "residuals are alike" in m.identify(data, FRICTION[:3]).summary().text()


def test_command(tmp_path: Path) -> None:
    """The command prints and plots the estimates, and writes the model."""
    m, data, _ = four_bar_bench()
    lines = ["time (ms);angle (deg);speed (rpm);A.acceleration;torque (Nmm)"]
    rows = (
        1000 * data["t"],
        np.rad2deg(data["A"]),
        data["A.rate"] * 30 / np.pi,
        data["A.acceleration"],
        1000 * data["A.effort"],
    )
    lines += [";".join(map(repr, row)) for row in np.transpose(rows).tolist()]
    (file := tmp_path / "bench.csv").write_text("\n".join(lines))
    heads = {"t": "time", "A": "angle", "A.rate": "speed", "A.effort": "torque"}
    asked = [word for name, head in heads.items() for word in ("--column", f"{name}={head}")]
    model, picture = tmp_path / "found.toml", tmp_path / "residuals.svg"
    call = ["identify", "four-bar", str(file), "--of", ",".join(FRICTION), *asked]
    done = CliRunner().invoke(main, [*call, "--save", str(model), "-o", str(picture), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    here = m.identify(data, FRICTION)
    assert_allclose(found["values"], here.values, 1e-9)
    assert_allclose(kic.load(model)["A"].friction, here.mechanism["A"].friction, 1e-6)
    assert picture.read_text().startswith("<?xml")
    text = CliRunner().invoke(main, call).output
    assert "A.friction" in text
    refused = CliRunner().invoke(main, ["identify", "four-bar", str(file), "--column", "A=angel"])
    assert refused.exit_code == 1
    assert "angle (deg)" in refused.output


@pytest.mark.parametrize(
    "text",
    [
        "t (s),A,'=B\n0,1,2\n0.5,,3e-1\n",
        "\ufefft (s);A;'=B\r\n\r\n0;1;2\r\n0.5; ;3e-1\r\n",
        '# a comment\n"t (s)"\t"A"\t=B\n0\t1\t2\n0.5\t\t0.3',
    ],
)
def test_columns_of_files(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    found = read_columns(file)
    assert tuple(found) == ("t (s)", "A", "=B")
    assert_array_equal(list(found.values()), [[0.0, 0.5], [1.0, np.nan], [2.0, 0.3]])


@pytest.mark.parametrize("text", ["", "# only\n", "A,A\n1,2\n", "A,B\n1\n", "A;B\n1,5;2\n", "A\nred\n"])
def test_files_that_are_no_columns(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "a.csv").write_text(text)
    with raises(kic.InputError, key="path"):
        read_columns(file)
    with raises(kic.FileError):
        read_columns(tmp_path)


def test_semidefinite_program() -> None:
    """The nearest positive semidefinite matrix has the positive eigenvalues of the given one."""
    rng = np.random.default_rng(0)
    B = rng.normal(size=(3, 3))
    B = B + B.T
    rows, columns = np.array([(i, j) for j in range(3) for i in range(j + 1)]).T
    scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
    none = np.zeros((0, 6)), np.zeros(0)
    program = Program(-scale * B[rows, columns], *none, -np.eye(6), np.zeros(6), (), np.eye(6), (3,))
    found = np.zeros((3, 3))
    found[rows, columns] = found[columns, rows] = solve(program)[0] / scale
    values, vectors = np.linalg.eigh(B)
    assert_allclose(found, vectors * np.maximum(values, 0.0) @ vectors.T, atol=1e-6)


def test_ends_of_filtered_motions_are_left_out() -> None:
    """Of exact data that do not begin or end at rest, little more remains than the filter bends."""
    m = kic.load("puma560")
    t, *motion = series(3001, 6)
    motion[0] = motion[0] + m.at().value(list(m.coordinates))
    effort = m.path(motion[0]).inverse_dynamics(*motion[1:])
    data = {"t": t} | dict(zip(m.coordinates, motion[0].T, strict=True))
    data |= {f"{n}.effort": x for n, x in zip(m.coordinates, effort.T, strict=True)}
    found = m.identify(data, cutoff=8.0)
    # 8e-6 and 4e-5; 4e-2 with the ends
    assert (found.noise < 2e-4 * np.abs(effort).max(axis=0)).all()
    assert np.abs(found.residual[:3]).max() < 1e-3 * np.abs(effort).max()
    assert_allclose(found.values, found.base.values, 1e-2, 1e-3)


def test_angles_in_order_of_time_have_no_jumps() -> None:
    """An encoder that begins again turns a geared joint, or a spring, on."""
    m = kic.load("geared-five-bar")
    t, *motion = crank(400)
    motion[0] = motion[0] + m.at().value("A")
    effort = m.path({"A": motion[0][:, 0]}).inverse_dynamics(*motion[1:])
    motion[0] = motion[0] % (2 * np.pi)
    found = m.identify(measured(m, ("A",), motion) | {"t": t, "A.effort": effort[:, 0]})
    assert_allclose(found.values, found.base.values, 1e-8, 1e-9)


def test_given_noise_is_that_before_the_filter() -> None:
    m, data, values = four_bar_bench(0.0, count=4001)
    rng, z = np.random.default_rng(1), []
    for _ in range(10):
        noisy = data | {"A.effort": data["A.effort"] + rng.normal(0.0, 0.02, 4001)}
        found = m.identify(noisy, FRICTION, cutoff=20.0, noise={"A": 0.02})
        z.append((found.values - found.base.matrix @ values) / found.sigma)
        assert np.isinf(found.freedom).all()
    assert 0.6 < np.std(z) < 1.5


def test_torques_of_some_motors() -> None:
    """Of a differential all torques are needed; rotors are found with their torques."""
    first = kic.Motor("M1", ("shoulder", "elbow"), ratios=(10.0, 5.0), inertia=1e-2)
    second = kic.Motor("M2", ("shoulder", "elbow"), ratios=(10.0, -5.0), damping=0.1)
    m = kic.load("horn-two-link").replace(motors=(first, second))
    _, *motion = series(60, 2)
    c = m.at(motion[0])
    effort = c.inverse_dynamics(*motion[1:], motors=True)
    torque = np.linalg.solve(np.array([[10.0, 10.0], [5.0, -5.0]]), effort.T)
    data = measured(m, m.coordinates, motion)
    torques = {"M1.torque": torque[0], "M2.torque": torque[1]}
    found = m.identify(data | torques, ["link2", "M1.inertia", "M2.damping"])
    assert_allclose(found.values, found.base.values, 1e-9, 1e-10)
    assert found.mechanism["M1"].inertia == pytest.approx(0.01)
    with raises(kic.InputError, key="measurements", got="M1"):
        m.identify(data | {"M1.torque": torque[0], "elbow.effort": effort[:, 1]})
    with raises(kic.InputError, key="measurements", names=("M1.inertia",)):
        m.identify(data | {"elbow.effort": effort[:, 1]}, "M1.inertia")


def test_units_of_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    m, data, values = four_bar_bench(0.0)
    frame = pandas.DataFrame(data | {"A": np.rad2deg(data["A"])})
    frame.attrs["units"] = {"A": "deg"}
    found = m.identify(frame, FRICTION)
    assert_allclose(found.values, found.base.matrix @ values, 1e-9, 1e-10)


def test_loads_from_a_start() -> None:
    """Forces of the description are known, also from a given start."""
    m = kic.load("four-bar").add(kic.Force("push", "tip", (1.0, 2.0, 0.0)))
    _, *motion = crank(100)
    effort = m.path({"A": motion[0][:, 0]}).inverse_dynamics(*motion[1:])
    data = measured(m, ("A",), motion) | {"A.effort": effort[:, 0]}
    found = m.identify(data, near=m.at({"A": 0.1}))
    assert_allclose(found.values, found.base.values, 1e-8, 1e-9)
    for load in ([[0.0, 0.0, 0.0]] * 99, [0.0, 0.0], "x", np.zeros((1, 3))):
        with raises(kic.InputError, key="applied['push']"):
            m.identify(data, applied={"push": load})


@pytest.mark.parametrize(
    "of", [["crank.m", "A.friction"], "coupler.m", ["coupler.mx", "A.friction"], ["A.offset", "A.stiffness"]]
)
def test_consistent_single_parameters(of: Any) -> None:
    """Also of a body that is flat in the description, whose other numbers stay."""
    m, data, _ = four_bar_bench(1e-3)
    found = m.identify(data, of)
    assert_allclose(found.base.matrix @ found.consistent, found.values, 1e-6, 1e-9)
    assert found.mechanism.total_mass == pytest.approx(m.total_mass, rel=0.1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("noise", [1e-4, 0.1, 3.0])
def test_bodies_with_point_masses_stay_real(noise: float, known: bool) -> None:
    """The body without its point mass has a positive definite pseudo-inertia, also with much noise."""
    m = kic.load("four-bar").replace("tip", mass=0.5)
    _, *motion = crank(100)
    effort = m.path({"A": motion[0][:, 0]}).inverse_dynamics(*motion[1:])[:, 0]
    effort = effort + np.random.default_rng(1).normal(0.0, noise, 100)
    asked = m if known else m.replace("coupler", mass=None, com=None, inertia=None)
    found = asked.identify(measured(m, ("A",), motion) | {"A.effort": effort})
    made = found.mechanism
    assert made["tip"].mass == 0.5
    assert all(body.mass > 0 and np.linalg.eigvalsh(body.inertia).min() > 0 for body in made.bodies)


def test_fewer_samples_than_combinations() -> None:
    """Several efforts of a sample are as many equations."""
    m = kic.load("panda")
    _, *motion = series(43, 7)
    motion[0] = motion[0] + m.at().value(list(m.coordinates))
    effort = m.path(motion[0]).inverse_dynamics(*motion[1:])
    efforts = {f"{n}.effort": x for n, x in zip(m.coordinates, effort.T, strict=True)}
    found = m.identify(measured(m, m.coordinates, motion) | efforts)
    assert len(found.values) == 43
    assert_allclose(found.values, found.base.values, 1e-6, 1e-7)


def test_times_do_not_change_samples_apart() -> None:
    """Random configurations keep their angles; only rates tell that an encoder began again."""
    m = kic.load("horn-two-link").replace("shoulder", stiffness=5.0)
    rng = np.random.default_rng(0)
    motion = rng.uniform(-3.0, 3.0, (60, 2)), rng.normal(size=(60, 2)), 3 * rng.normal(size=(60, 2))
    effort = m.at(motion[0]).inverse_dynamics(*motion[1:])
    data = measured(m, m.coordinates, motion)
    data |= {f"{n}.effort": x for n, x in zip(m.coordinates, effort.T, strict=True)}
    for t in (60.0 * np.arange(60), np.arange(60)[::-1]):
        found = m.identify(data | {"t": t})
        assert_allclose(found.values, found.base.values, 1e-9, 1e-9)


def test_one_effort_without_noise() -> None:
    """An exact effort has a large weight, and the others still count."""
    m = kic.load("horn-two-link")
    _, *motion = series(200, 2)
    effort = m.at(motion[0]).inverse_dynamics(*motion[1:])
    effort[:, 0] += np.random.default_rng(1).normal(0.0, 0.01, 200)
    efforts = {f"{n}.effort": x for n, x in zip(m.coordinates, effort.T, strict=True)}
    found = m.identify(measured(m, m.coordinates, motion) | efforts)
    assert found.noise[0] == pytest.approx(0.01, rel=0.2)
    assert found.noise[1] < 1e-6
    assert np.abs((found.values - found.base.values) / found.sigma).max() < 5


def test_held_dimensions_stay() -> None:
    m, data, values = four_bar_bench(0.0)
    found = m.vary("D.at.x").identify(data, FRICTION)
    assert found.efforts == ("A",)
    assert_allclose(found.values, found.base.matrix @ values, 1e-9, 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("cutoff", [20.0, 84.0])
def test_intervals_of_filtered_samples(cutoff: float) -> None:
    """Samples are not taken more densely than the filter leaves them independent."""
    m = kic.load("horn-two-link")
    t, *motion = series(3001, 2)
    exact = m.at(motion[0]).inverse_dynamics(*motion[1:])
    data, rng, z = measured(m, m.coordinates, motion) | {"t": t}, np.random.default_rng(0), []
    for _ in range(40):
        effort = exact + rng.normal(0.0, 0.5, exact.shape)
        efforts = {f"{n}.effort": x for n, x in zip(m.coordinates, effort.T, strict=True)}
        found = m.identify(data | efforts, cutoff=cutoff)
        z.append((found.values - found.base.values) / found.sigma)
    assert 0.8 < np.std(z) < 1.25
