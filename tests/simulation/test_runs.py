"""Difficult simulations: singular charts, prescribed motions, interruptions, units, files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dynamic_cases import TIGHT, pendulum, top
from raising import raises
from sampling import mismatch

import kic
from kic.simulation.motion import Snapshot
from kic.simulation.options import METHODS


@pytest.mark.slow
def test_sample_times_do_not_change_the_run() -> None:
    """The requested times do not affect the motion."""
    m = kic.load("gough-stewart")
    few, many = (
        m.simulate(np.linspace(0, 0.6, n), near=m.at(), integrator=kic.Integrator(rtol=1e-10))
        for n in (3, 301)
    )
    assert few.charts > 1
    assert np.abs(few.state[-1] - many.state[-1]).max() < 1e-10


def never(t: float, now: Snapshot) -> float:
    """An event that does not happen, and lets no step pass unwatched."""
    return 1.0


def motor_arm(**given) -> kic.Simulation:
    """The arm with its motors at constant voltages."""
    m = kic.load("puma560-motors")
    return m.simulate(np.linspace(0, 0.3, 7), near=m.at(), voltage=np.full(len(m.motors), 2.0), **given)


def free_run(name: str, wrt: list[str] | None = None, end: float = 1.0):
    """Return a run of a shipped mechanism by its name."""

    def run(**given) -> kic.Simulation:
        m = kic.load(name)
        c = m.at()
        qd = 0.4 * np.cos(np.arange(m.dof))
        return m.simulate(np.linspace(0, end, 41), near=c, qd=qd, wrt=wrt, **given)

    return run


RUNS = {
    "open chain": free_run("puma560"),
    "quaternion": lambda **given: top((0.02, 0.03, 0.04)).simulate(
        np.linspace(0, 1, 11), qd=[0.1, 0.0, 0.0, 0.5, 3.0, 20.0], **given
    ),
    "loops": free_run("five-bar", end=0.5),
    "full turns in other coordinates": free_run("four-bar", ["D"], 3.0),
    "rotations": free_run("gough-stewart", ["platform"]),
    "motors": motor_arm,
}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["DOP853", "RK45", "RK23"])
@pytest.mark.parametrize("kind", RUNS)
def test_many_steps_in_one_call_are_the_watched_ones(kind: str, method: str) -> None:
    integrator = kic.Integrator(method=method, rtol=1e-6, atol=1e-6)
    many = RUNS[kind](integrator=integrator)
    watched = RUNS[kind](integrator=integrator, events=[never])
    assert (many.steps, many.charts) == (watched.steps, watched.charts)
    for key in ("state", "q", "qd", "qdd", "effort"):
        assert mismatch(getattr(many, key), getattr(watched, key)) < 1e-9, key


def test_steps_with_very_many_samples() -> None:
    """More samples than one call records, in a few steps."""
    m = kic.load("five-bar")
    runs = [
        m.simulate(np.linspace(0, 0.2, 2001), near=m.at(), qd=[1.0, -1.0], **given)
        for given in ({}, {"events": [never]})
    ]
    assert runs[0].steps == runs[1].steps < 10
    assert mismatch(runs[0].q, runs[1].q) < 1e-11


def test_limit_of_steps_counts_all_steps_of_a_call() -> None:
    m = kic.load("four-bar")
    with raises(kic.SimulationError, key="max_steps", got=57) as caught:
        m.simulate([0, 60], near=m.at(), integrator=kic.Integrator(max_steps=57))
    assert caught.value.simulation.steps == 57


@pytest.mark.slow
@pytest.mark.parametrize("beside", [0.0, 1e-9, 1e-3])
def test_continuation_from_a_dead_centre(beside: float) -> None:
    """The rate of the rocker is zero there; the run stores the rates of all joints."""
    from scipy.optimize import brentq

    m = kic.load("four-bar")
    ratio = m.at().coefficients("D", order=1).G[0, 0]
    free = m.simulate(np.linspace(0, 3, 3001), near=m.at(), qd=[6.0], integrator=TIGHT)
    G = free.configuration.coefficients("D", order=1).G[:, 0, 0]
    k = int(np.flatnonzero(np.diff(np.sign(G)))[0])
    dead = brentq(lambda t: free.at(t).coefficients("D", order=1).G[0, 0], free.t[k], free.t[k + 1])
    half = m.simulate([0, dead + beside], near=m.at(), qd=[6 * ratio], wrt="D", integrator=TIGHT)
    rest = m.simulate([dead + beside, 3.0], near=half, wrt="D", integrator=TIGHT)
    assert np.abs(rest["tip"][-1] - free["tip"][-1]).max() < 1e-9


@pytest.mark.slow
def test_angle_of_a_cut_joint_counts_full_turns() -> None:
    four = kic.load("four-bar")
    m = replace(four, coordinates=("D",), joints=tuple(reversed(four.joints)))
    t = np.linspace(0, 1, 51)
    free = four.simulate(t, near=four.at(), qd=[6.0])
    run = m.simulate(t, near=m.at(), qd=[6.0], wrt="A")
    assert np.ptp(run.q) > 2 * np.pi
    assert np.ptp(run["A"]) < 2 * np.pi
    assert mismatch(run.q, free.q) < 2e-6
    half = m.simulate(t[:31], near=m.at(), qd=[6.0], wrt="A")
    assert mismatch(m.simulate(t[30:], near=half, wrt="A").q, run.q) < 1e-7
    end = run.q[0, 0] + 7.0
    stop = m.simulate(t, near=m.at(), qd=[6.0], wrt="A", limits={"A": (-30, end)})
    assert stop.q[-1, 0] == pytest.approx(end, abs=1e-9)


@pytest.mark.slow
def test_efforts_at_a_point_through_a_singularity() -> None:
    m, F, t = kic.load("horn-two-link"), np.array([1.0, -2.0]), np.linspace(0, 2, 41)
    f = m.prepare.coefficients(["tip"], order=1)
    user = m.simulate(t, near=m.at([0.1, 0.3]), wrt=["tip.x", "tip.y"], effort=F, integrator=TIGHT)
    own = m.simulate(
        t, near=m.at([0.1, 0.3]), effort=lambda t, now: f(now.state).tip.G[:2].T @ F, integrator=TIGHT
    )
    assert user.charts > 1
    assert np.abs(user.q - own["tip"][:, :2]).max() < 1e-8
    assert np.abs(user.effort - F).max() == 0
    G = own.configuration.coefficients("tip", order=1).G[:, :2]
    assert np.abs(user.qd - np.einsum("tpn,tn->tp", G, own.qd)).max() < 1e-7
    assert np.abs(user.energy.residual).max() < 1e-8


def test_momentum_of_two_free_bodies_is_conserved() -> None:
    bodies = [
        kic.Body("a", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.2, 0.25), at=(0, 0, 0)),
        kic.Body("b", mass=2.0, com=(1, 0, 0), inertia=(0.3, 0.2, 0.25), at=(1, 0, 0)),
    ]
    joints = [
        kic.Joint("f", "free", ("ground", "a"), at=(0, 0, 0)),
        kic.Joint("s", "spherical", ("a", "b"), at=(0.5, 0, 0)),
    ]
    m = kic.Mechanism("pair", bodies=bodies, joints=joints, gravity=(0, 0, 0))
    run = m.simulate(
        np.linspace(0, 5, 51), near=m.at(), qd=np.random.default_rng(0).normal(size=9), integrator=TIGHT
    )
    c, P, L = run.configuration, 0.0, 0.0
    for body in bodies:
        u = np.einsum("tpn,tn->tp", c.coefficients(body.name, order=1).G, run.qd)
        R = c.pose(body.name).rotation.as_matrix()
        x = np.stack([c.value(f"{body.name}.{k}") for k in "xyz"], axis=-1)
        p = body.mass * u[:, :3]
        I = R @ np.array(body.inertia) @ R.transpose(0, 2, 1)
        P, L = P + p, L + np.cross(x, p) + np.einsum("tij,tj->ti", I, u[:, 3:])
    assert np.ptp(P, axis=0).max() < 1e-8
    assert np.ptp(L, axis=0).max() < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four-bar", "slider-crank", "five-bar", "spatial-slider-crank"])
def test_energy_balance_includes_springs_and_dampers_of_cut_joints(name: str) -> None:
    drawn = kic.load(name)
    laws = {"stiffness": 20.0, "damping": 0.3, "rest": 0.1}
    plain = ("revolute", "prismatic")
    m = replace(drawn, joints=tuple(replace(j, **laws) if j.type in plain else j for j in drawn.joints))
    run = m.simulate(np.linspace(0, 0.3, 31), near=m.at(), integrator=TIGHT)
    e = run.energy
    assert e.dissipated[-1] > 0.1
    assert np.abs(e.residual).max() < 1e-8 * np.abs(e.total).max()


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e3])
def test_tolerances_scale_with_units(size: float) -> None:
    m = kic.Mechanism(
        "slide",
        bodies=[kic.Body("b", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))],
        joints=[kic.Joint("x", "prismatic", ("ground", "b"), at=(0, 0, 0), axis=(1, 0, 0), stiffness=4.0)],
        points=[kic.Point("p", "b", at=(size, 0, 0))],
    )
    run = m.simulate(np.linspace(0, 10, 11), near=m.at([size]))
    assert np.abs(run.q[:, 0] / size - np.cos(2 * run.t)).max() < 1e-8
    assert np.abs(run.energy.residual).max() < 1e-8 * run.energy.potential[0]


def test_prescribed_motions_must_begin_at_the_start() -> None:
    m = kic.load("four-bar")
    start = m.at()
    a = float(start.value("A"))
    steady = m.simulate([0, 0.5, 1.0], near=start, prescribed={"A": lambda t: (a + t, 1.0, 0.0)})
    assert mismatch(steady.qd, np.ones((3, 1))) < 1e-14
    assert (
        mismatch(steady.effort, steady.configuration.dynamics().inverse_dynamics(steady.qd, steady.qdd))
        < 1e-10
    )
    assert np.abs(steady.energy.residual).max() < 1e-7
    with raises(kic.InputError, name="A"):
        m.simulate(1.0, near=m.at({"A": a + 0.1}), prescribed={"A": lambda t: (0.0, 0.0, 0.0)})
    with raises(kic.InputError, name="A"):
        m.simulate(1.0, near=start, qd=[5.0], prescribed={"A": lambda t: (a + t, 1.0, 0.0)})


def test_inconsistent_prescribed_motions_raise() -> None:
    m = pendulum()
    for order, way in enumerate(
        (
            lambda t: (1.0 + t * t, t, 1.0),
            lambda t: (1.0 + t * t, 2 * t, 1.0),
        ),
        1,
    ):
        with raises(kic.SimulationError, key="prescribed", name="A", order=order) as caught:
            m.simulate(1.0, near=m.at([1.0]), prescribed={"A": way})
        assert len(caught.value.simulation.t) >= 1


def test_translations_of_a_free_body_are_prescribed() -> None:
    m = top((0.3, 0.4, 0.5))
    run = m.simulate([0, 1.0], near=m.at(), prescribed={"hold.1": lambda t: (t * t, 2 * t, 2.0)})
    assert run.effort[-1] == pytest.approx([3, 0, 0, 0, 0, 0])


def test_errors_of_user_functions_carry_the_run() -> None:
    m = pendulum()

    class Mine(Exception):
        pass

    def broken(t: float, now: kic.simulating.motion.Now) -> list[float]:
        if t > 0.5:
            raise Mine("no current")
        return [0.0]

    with pytest.raises(Mine) as caught:
        m.simulate(np.linspace(0, 2, 201), near=m.at([1.0]), effort=broken)
    part = caught.value.simulation
    assert 0.2 < part.t[-1] <= 0.5
    whole = m.simulate(np.linspace(0, 2, 201), near=m.at([1.0]))
    k = len(part.t) - 1
    assert mismatch(part.q[:k], whole.q[:k]) < 1e-12
    # from the last good state on, and what is left of the times
    assert whole.t[k - 1] < part.t[k] < whole.t[k]
    rest = m.simulate([part.t[-1], *whole.t[k:]], near=part)
    assert np.array_equal(np.delete(rest.t, k), whole.t)
    assert np.abs(np.delete(rest.q, k, axis=0) - whole.q).max() < 1e-7


@pytest.mark.parametrize("which", ["effort", "voltage", "events"])
def test_functions_cannot_modify_the_run(which: str) -> None:
    m = kic.load("horn-two-link")
    m = replace(m, motors=[kic.Motor("M", ["elbow"], resistance=1.0, inductance=0.1, torque_constant=0.5)])
    given = {"effort": [1.0, -2.0], "voltage": [3.0], "events": lambda t, now: 1.0}

    def scribble(t: float, now: Snapshot) -> list[float] | float:
        for a in (now.q, now.qd, now.state, now.current):
            a[:] = 7.0
        return 1.0 if which == "events" else list(given[which])

    plain, run = (
        m.simulate([0, 0.3, 0.6], near=m.at([0.0, 0.5]), **{**given, **more})
        for more in ({}, {which: scribble})
    )
    assert np.array_equal(plain.q, run.q)
    assert np.array_equal(plain.current, run.current)
    assert np.array_equal(plain.effort, run.effort)


@pytest.mark.slow_for("DOP853")
@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
def test_overflow_in_trial_steps_is_ignored(method: str) -> None:
    """Explicit trial steps of a stiff brake overflow before they are rejected; the motion is smooth."""
    m = kic.load("horn-two-link")
    seen: list[bool] = []

    def brake(t: float, now: Snapshot) -> np.ndarray:
        seen.append(bool(np.isfinite([now.q, now.qd]).all()))
        return -1e7 * now.qd

    given = {"near": m.at([0.0, 0.5]), "effort": brake, "qd": [0.1, 0.0]}
    rough = kic.Integrator(method, rtol=1e-3, atol=1e-3, max_steps=300)
    with raises(kic.SimulationError, key="max_steps", got=300):
        m.simulate(20.0, **given, integrator=rough)
    assert all(seen)
    slow = m.simulate(20.0, **given, integrator=replace(rough, method="Radau"))
    assert slow.steps < 100


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_diverging_runs_raise_simulation_errors(method: str) -> None:
    m = kic.load("horn-two-link")
    with raises(kic.SimulationError, time=0.0) as e:
        m.simulate(1.0, near=m.at([0.0, 0.5]), qd=[1e160, 0.0], integrator=method)
    assert e.value.simulation.qd[0, 0] == 1e160
    with raises(kic.SimulationError, time=pytest.approx(0.012, abs=1e-3)) as e:
        m.simulate(
            [0, 20.0],
            near=m.at([0.0, 0.5]),
            effort=lambda t, now: 100 * now.qd * np.abs(now.qd),
            integrator=kic.Integrator(method, rtol=1e-6),
        )
    assert e.value.simulation.t[-1] == e.value.time > 0.012
    assert np.abs(e.value.simulation.qd[-1]).max() > 1e3


def test_samples_are_their_own_interpolation() -> None:
    m = pendulum()
    assert m.simulate([0, 10.0], near=m.at([1.2])).at([0.0, 10.0]).batch == (2,)
    assert m.simulate([0, 10.0], near=m.at([1.2])).at(np.zeros((0, 2))).batch == (0, 2)


@pytest.mark.parametrize("what", ["cut", "foreign", "empty attributes", "list attributes", "npy"])
def test_files_that_hold_no_run_are_rejected(tmp_path, what: str) -> None:
    file, m = tmp_path / "run.npz", pendulum()
    m.simulate([0, 0.1], near=m.at([1.0])).save(file)
    if what == "cut":
        file.write_bytes(file.read_bytes()[:600])
    elif what == "npy":
        with file.open("wb") as f:
            np.save(f, np.zeros(3))
    else:
        attributes = {"foreign": "", "empty attributes": '{"format": 2}', "list attributes": "[1]"}[what]
        np.savez(file, attributes=attributes, model="x")
    with raises(kic.ModelFileError, path=file):
        kic.results.Simulation.load(file)


def older(arrays: dict) -> None:
    """Leave out what later formats added."""
    for key in [key for key in arrays if key.startswith(("actuator", "control"))]:
        del arrays[key]


@pytest.mark.parametrize("change", [lambda arrays: None, older, lambda a: a.update(later=a["t"])])
@pytest.mark.parametrize("number", [2, 4, "3", None])
def test_files_of_other_formats_name_them(tmp_path, number, change) -> None:
    """The format is checked before the entries, which depend on it."""
    import json

    file, m = tmp_path / "run.npz", pendulum()
    m.simulate([0, 0.1], near=m.at([1.0])).save(file)
    with np.load(file) as z:
        arrays = dict(z)
    attributes = json.loads(str(arrays["attributes"]))
    assert attributes.pop("actuators")
    arrays["attributes"] = np.array(json.dumps(attributes | {"format": number}))
    change(arrays)
    np.savez(file, **arrays)
    with raises(kic.ModelFileError, path=file, key="format", got=number, expected=attributes["format"]):
        kic.results.Simulation.load(file)


def spoilt(file, **changes) -> None:
    """Save a run file again with some arrays changed, and without its digest."""
    import json

    with np.load(file) as z:
        arrays = dict(z)
    attributes = json.loads(str(arrays["attributes"]))
    del attributes["digest"]
    arrays["attributes"] = np.array(json.dumps(attributes))
    for key, change in changes.items():
        arrays[key] = change(arrays[key])
    np.savez(file, **arrays)


SPOILT = {
    "states too short": {"state": lambda a: a[:5]},
    "states of another width": {"state": lambda a: a[:, :-1]},
    "states not finite": {"state": lambda a: a * np.nan},
    "states not closed": {"state": lambda a: a + 1e-3},
    "coordinates of other states": {"q": lambda a: a + 1e-3},
    "text for numbers": {"q": lambda a: a.astype(str)},
    "objects for numbers": {"q": lambda a: a.astype(object)},
    "complex for real": {"qd": lambda a: a.astype(complex)},
    "infinite": {"effort": lambda a: a + np.inf},
    "times that fall": {"t": lambda a: a[::-1]},
    "no times": {"t": lambda a: a[:0]},
    "deep attributes": {"attributes": lambda a: np.array("[" * 100_000)},
    "deep model": {"model": lambda a: np.array("x = " + "[" * 100_000)},
    "a foreign model": {"model": lambda a: np.array(np.char.replace(a, "0.1", "0.2"))},
    "a number for text": {"model": lambda a: np.zeros(())},
    "control characters": {
        "attributes": lambda a: np.char.replace(a, '"stopped": "', r'"stopped": "\u001b[2J')
    },
}


@pytest.mark.parametrize("what", SPOILT)
def test_corrupted_run_files_raise(tmp_path, what: str) -> None:
    file, m = tmp_path / "run.npz", kic.load("four-bar")
    m.simulate(0.02, near=m.at()).save(file)
    spoilt(file)
    assert len(kic.results.Simulation.load(file).t) == 1001
    spoilt_once = dict(np.load(file))
    spoilt_once |= {key: f(spoilt_once[key]) for key, f in SPOILT[what].items()}
    np.savez(file, **spoilt_once)
    with raises(kic.ModelFileError, path=file):
        kic.results.Simulation.load(file)


@pytest.mark.slow
def test_unpacked_size_of_run_files_is_bounded(tmp_path) -> None:
    """A file of 300 kB holds 300 MB of zeros, which must not be unpacked."""
    import tracemalloc

    file, m = tmp_path / "run.npz", pendulum()
    m.simulate([0, 0.1], near=m.at([1.0])).save(file)
    arrays = dict(np.load(file))
    arrays["state"] = np.zeros((40_000_000, 1))
    np.savez_compressed(file, **arrays)
    del arrays
    assert file.stat().st_size < 1_000_000
    tracemalloc.start()
    with raises(kic.ModelFileError, limit=100):
        kic.results.Simulation.load(file)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@pytest.mark.slow
def test_changed_bytes_of_run_files_are_detected(tmp_path) -> None:
    file, m, rng = tmp_path / "run.npz", pendulum(), np.random.default_rng(5)
    run = m.simulate(np.linspace(0, 0.1, 5), near=m.at([1.0]))
    run.save(file)
    raw, arrays = file.read_bytes(), dict(np.load(file))
    for k in range(400):
        if k % 4 == 0:  # an array by another that fits, in a sound archive
            key = rng.choice([key for key, a in arrays.items() if a.dtype.kind == "f" and a.size])
            other = arrays[key].copy()
            other.flat[rng.integers(other.size)] += 1e-9
            np.savez(file, **(arrays | {key: other}))
        else:
            data = bytearray(raw)
            for _ in range(rng.integers(1, 5)):
                data[rng.integers(len(raw))] ^= 1 << rng.integers(8)
            file.write_bytes(data[: rng.integers(len(raw))] if k % 4 == 1 else data)
        try:
            again = kic.results.Simulation.load(file)
        except kic.ModelFileError:
            continue
        # a bit that means nothing: a date, a comment
        assert np.array_equal(again.state, run.state)
        assert np.array_equal(again.qd, run.qd)
        assert k % 4


def test_failed_save_keeps_the_existing_file(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, m = tmp_path / "run.npz", pendulum()
    run = m.simulate([0, 0.1], near=m.at([1.0]))
    run.save(file)
    before = file.read_bytes()

    def full(stream, **arrays) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with raises(kic.KicError, errno=28):
        run.save(file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
def test_platform_with_very_long_legs() -> None:
    """Legs hundreds of times as long as the platform close to rounding."""
    m = kic.load("gough-stewart")
    run = m.simulate([0.0, 6.0, 12.0], near=m.at())
    way = run["eye"] if "eye" in {p.name for p in m.points} else run[f"{m.bodies[0].name}"]
    assert run.t[-1] == 12.0
    assert way.shape[0] == 3
    assert np.abs(run.energy.residual).max() < 1e-8 * run.energy.kinetic.max()
    assert run.q[-1].min() > 700
    assert run.closure.max() < 1e-14 * 1e5


WRONG_SETTINGS = [
    ({"method": "Euler"}, {"key": "method"}),
    ({"method": np.array(["RK45", "BDF"])}, {"key": "method"}),
    ({"contacts": "slide"}, {"key": "contacts", "got": "slide"}),
    ({"rtol": -1}, {"key": "rtol"}),
    ({"rtol": "fine"}, {"key": "rtol"}),
    ({"rtol": 10}, {"key": "rtol", "got": 10}),
    ({"rtol": True}, {"key": "rtol"}),
    ({"atol": np.nan}, {"key": "atol"}),
    ({"atol": 0.0}, {"key": "atol"}),
    ({"atol": np.inf}, {"key": "atol"}),
    ({"on_change_point": "halt"}, {"key": "on_change_point", "got": "halt"}),
    ({"on_change_point": True}, {"key": "on_change_point", "got": True}),
    ({"progress": "yes"}, {"key": "progress", "got": "yes"}),
    ({"max_steps": 0}, {"key": "max_steps"}),
    ({"max_steps": True}, {"key": "max_steps"}),
]


@pytest.mark.parametrize(("what", "data"), WRONG_SETTINGS, ids=lambda x: str(x)[:30])
def test_invalid_settings_of_the_integrator_raise(what: dict, data: dict) -> None:
    with raises(kic.InputError, **data):
        kic.Integrator(**what)
