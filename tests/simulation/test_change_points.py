"""Runs through change points: links in line, where branches of the loop closure meet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linkages import four_bar_pivots
from scipy.integrate import solve_ivp

import kic
from kic.simulation.coordinates import Chart
from kic.simulation.motion import Motion

Z = (0.0, 0.0, 1.0)
G = 9.81


def windows(n: int, gravity: tuple[float, float, float] = (0, -G, 0)) -> kic.Mechanism:
    """Return a row of n parallelograms of unit bars; all n + 1 cranks stay parallel."""
    bodies, joints = [], []
    for k in range(n + 1):
        bodies.append(kic.Body(f"r{k}", mass=1.0, com=(k, 0.5, 0), inertia=(1 / 12, 0, 1 / 12)))
        joints.append(kic.Joint(f"O{k}", "revolute", ("ground", f"r{k}"), (k, 0, 0), Z, value=np.pi / 2))
    for k in range(n):
        bodies.append(kic.Body(f"c{k}", mass=1.0, com=(k + 0.5, 1, 0), inertia=(0, 1 / 12, 1 / 12)))
        joints.append(kic.Joint(f"P{k}", "revolute", (f"r{k}", f"c{k}"), (k, 1, 0), Z))
        joints.append(kic.Joint(f"Q{k}", "revolute", (f"c{k}", f"r{k + 1}"), (k + 1, 1, 0), Z))
    return kic.Mechanism("windows", bodies=bodies, joints=joints, gravity=gravity, coordinates=["O0"])


def pendulum(n: int, start: float, rate: float, t: np.ndarray, gravity=(0, -G, 0)) -> np.ndarray:
    """Return angle and rate (2, T) of the pendulum that n parallelograms are: couplers translate."""
    inertia, moment = (n + 1) / 3 + n, (n + 1) / 2 + n

    def slope(t: float, y: np.ndarray) -> list[float]:
        return [y[1], moment * (gravity[1] * np.cos(y[0]) - gravity[0] * np.sin(y[0])) / inertia]

    way = solve_ivp(slope, (t[0], t[-1]), [start, rate], method="DOP853", rtol=1e-13, atol=1e-13, t_eval=t)
    return way.y


def four_bar(g: float, a: float, b: float, c: float, crank: float, side: int) -> kic.Mechanism:
    """Return a four-bar linkage of frame g, crank a, coupler b, rocker c at an angle of the crank."""
    _, A, B, D = four_bar_pivots(a, b, c, g, crank, side)
    ends = {"crank": (np.zeros(3), A), "coupler": (A, B), "rocker": (D, B)}
    bodies = [
        kic.Body(name, mass=1.0, com=tuple((p + q) / 2), inertia=(1, 1, (q - p) @ (q - p) / 12))
        for name, (p, q) in ends.items()
    ]
    joints = [
        kic.Joint("O", "revolute", ("ground", "crank"), (0, 0, 0), Z, value=crank),
        kic.Joint("A", "revolute", ("crank", "coupler"), tuple(A), Z),
        kic.Joint("B", "revolute", ("coupler", "rocker"), tuple(B), Z),
        kic.Joint(
            "D", "revolute", ("ground", "rocker"), tuple(D), Z, value=float(np.arctan2(B[1], B[0] - g))
        ),
    ]
    return kic.Mechanism("four", bodies=bodies, joints=joints, gravity=(0, -G, 0), coordinates=["O"])


def roughness(run: kic.results.Simulation) -> float:
    """Return the largest difference of joints from what rates and accelerations predict."""
    rate, bend, h = run.tree_rates, run._arrays["second"], np.diff(run.t)[:, None]
    predicted = h / 2 * (rate[1:] + rate[:-1]) - h**2 / 12 * np.diff(bend, axis=0)
    return float(np.abs(np.diff(run.state, axis=0) - predicted).max())


@pytest.mark.slow_for("40", "7.0-5", "7.0-3")
@pytest.mark.parametrize("n", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("rate", [-1.0, 7.0])
def test_rows_of_parallelograms_match_the_pendulum(n: int, rate: float) -> None:
    m, t = windows(n), np.linspace(0, 1.0 if n == 40 else 3.0, 61)
    run = m.simulate(t, near=m.at(), qd=[rate])
    angle, speed = pendulum(n, np.pi / 2, rate, t)
    # the global error of the integrator is some multiples of its tolerance 1e-9
    assert np.abs(run.q[:, 0] - angle).max() < 2e-6
    assert np.abs(run.qd[:, 0] - speed).max() < 2e-6
    for k in range(1, n + 1):
        assert np.abs(run[f"O{k}"] - run.q[:, 0]).max() < 1e-10
    assert np.abs(run.energy.residual).max() < 1e-7 * run.energy.kinetic.max()
    assert run.closure.max() < 1e-11
    fine = pendulum(n, np.pi / 2, rate, np.linspace(0, t[-1], 20001))[0]
    times, half_turns = np.linspace(0, t[-1], 20001), np.floor(fine / np.pi)
    passed = times[1:][np.diff(half_turns) != 0]
    assert len(run.change_points) == len(passed) > 0
    assert np.abs(np.array(run.change_points) - passed).max() < 2 * times[1]


@pytest.mark.parametrize("start", [0.3, 0.02, 1e-3, 1e-5])
def test_small_swings_about_a_change_point(start: float) -> None:
    """Gravity along the frame: the motion reverses on both sides, however near."""
    gravity, t = (G, 0.0, 0.0), np.linspace(0, 3, 61)
    m = windows(1, gravity)
    c = m.at({"O0": start}, near=m.at())
    run = m.simulate(t, near=c, integrator=kic.Integrator(rtol=1e-11, atol=1e-13))
    angle = pendulum(1, start, 0.0, t, gravity)[0]
    assert np.abs(run.q[:, 0] - angle).max() < 1e-6 * start + 1e-10
    assert np.abs(run["O1"] - run.q[:, 0]).max() < 1e-11
    assert len(run.change_points) == 3


def test_antiparallelogram_keeps_its_branch() -> None:
    m = four_bar(2, 1, 2, 1, crank=1.0, side=-1)
    run = m.simulate(np.linspace(0, 2, 401), near=m.at(), qd=[6.0])
    assert len(run.change_points) == 4
    # tan(O/2) : tan(D/2) is constant, written without poles
    x, y = run["O"] / 2, run["D"] / 2
    assert np.abs(3 * np.sin(x) * np.cos(y) + np.cos(x) * np.sin(y)).max() < 1e-9
    assert np.abs(run.energy.residual).max() < 1e-7 * run.energy.kinetic.max()


@pytest.mark.slow_for("1-bars1--15.0", "1-bars3-6.0", "-1-bars1--15.0", "-1-bars3-6.0")
@pytest.mark.parametrize(
    ("bars", "rate"), [((1, 1, 2, 2), 6.0), ((1, 1, 2, 2), -15.0), ((2, 1, 1, 2), -2.0), ((1, 1, 1, 1), 6.0)]
)
@pytest.mark.parametrize("side", [1, -1])
def test_kites_pass_the_flat_configuration(bars: tuple[float, ...], rate: float, side: int) -> None:
    m = four_bar(*bars, 1.0, side)
    coarse, fine = (m.simulate(np.linspace(0, 1.5, n), near=m.at(), qd=[rate]) for n in (401, 1601))
    assert fine.change_points
    assert np.abs(fine.energy.residual).max() < 1e-6 * fine.energy.kinetic.max()
    # no joint jumps or turns a corner: what is missed falls with the fifth power of the interval
    assert roughness(fine) < max(roughness(coarse) / 100, 1e-8)


@pytest.mark.parametrize("together", [False, True])
def test_slider_crank_follows_either_branch(together: bool) -> None:
    """Crank and rod have equal lengths: the slider passes the crank's pivot, or stays there."""
    A = np.array([np.cos(0.5), np.sin(0.5), 0])
    C = np.array([0.0 if together else 2 * A[0], 0, 0])
    bodies = [
        kic.Body("crank", mass=1.0, com=tuple(A / 2), inertia=(1, 1, 0.1)),
        kic.Body("rod", mass=1.0, com=tuple((A + C) / 2), inertia=(1, 1, 0.1)),
        kic.Body("slider", mass=0.5, com=tuple(C), inertia=(1, 1, 1)),
    ]
    joints = [
        kic.Joint("O", "revolute", ("ground", "crank"), (0, 0, 0), Z, value=0.5),
        kic.Joint("A", "revolute", ("crank", "rod"), tuple(A), Z),
        kic.Joint("C", "revolute", ("rod", "slider"), tuple(C), Z),
        kic.Joint("S", "prismatic", ("ground", "slider"), tuple(C), (1, 0, 0), value=float(C[0])),
    ]
    m = kic.Mechanism("folding", bodies=bodies, joints=joints, gravity=(0, -G, 0), coordinates=["O"])
    run = m.simulate(np.linspace(0, 2, 41), near=m.at(), qd=[-12.0])
    assert len(run.change_points) >= 5
    assert np.abs(run["S"] - (0.0 if together else 2 * np.cos(run["O"]))).max() < 1e-10
    assert np.abs(run.energy.residual).max() < 1e-6 * run.energy.kinetic.max()


def carried() -> kic.Mechanism:
    """Return a parallelogram on a turning carrier: two degrees of freedom."""
    m = windows(1)
    joints = [replace(j, bodies=("car", j.bodies[1])) if j.bodies[0] == "ground" else j for j in m.joints] + [
        kic.Joint("T", "revolute", ("ground", "car"), (0.2, -0.5, 0), Z)
    ]
    car = kic.Body("car", mass=1.0, com=(0.5, -0.3, 0), inertia=(1, 1, 0.5))
    return replace(m, bodies=(*m.bodies, car), joints=tuple(joints), coordinates=("T", "O0"))


def stacked() -> kic.Mechanism:
    """Return a parallelogram on the coupler of another: two sets of change points."""
    m, bodies, joints = windows(1), [], []
    for k, x in enumerate((0.25, 0.75)):
        bodies.append(kic.Body(f"s{k}", mass=0.3, com=(x, 1.4, 0), inertia=(0.1, 0.1, 0.1)))
        joints.append(kic.Joint(f"W{k}", "revolute", ("c0", f"s{k}"), (x, 1, 0), Z, value=np.pi / 2))
        joints.append(kic.Joint(f"X{k}", "revolute", (f"s{k}", "plate"), (x, 1.8, 0), Z))
    bodies.append(kic.Body("plate", mass=0.5, com=(0.5, 1.8, 0), inertia=(0.1, 0.1, 0.1)))
    return replace(m, bodies=(*m.bodies, *bodies), joints=(*m.joints, *joints), coordinates=("O0", "W0"))


@pytest.mark.slow_for("stacked-qd0", "stacked-qd1")
@pytest.mark.parametrize("qd", [[-1.0, 0.5], [4.0, -9.0]])
@pytest.mark.parametrize("make", [carried, stacked])
def test_change_points_with_two_dof(make, qd: list[float]) -> None:
    m = make()
    run = m.simulate(np.linspace(0, 3, 61), near=m.at(), qd=qd)
    assert len(run.change_points) >= 5
    for a, b in (("O0", "O1"), ("W0", "W1")):
        if make is stacked or a == "O0":
            assert np.abs(run[a] - run[b]).max() < 1e-10
    assert np.abs(run.energy.residual).max() < 1e-6 * run.energy.kinetic.max()


def one_leg() -> kic.Mechanism:
    """Return a leg of the quadruped under a quarter of its trunk, which translates in a vertical plane."""
    m = kic.load("quadruped")
    names = ("trunk", "hip_fl", "thigh_fl", "shank_fl")
    bodies = tuple(
        replace(b, mass=b.mass / 4) if b.name == "trunk" else b for b in m.bodies if b.name in names
    )
    guides = [
        kic.Joint("X", "prismatic", ("ground", "carriage"), (0, 0, 0.4), (1, 0, 0)),
        kic.Joint("Z", "prismatic", ("carriage", "trunk"), (0, 0, 0.4), (0, 0, 1)),
    ]
    joints = (*(j for j in m.joints if j.name.endswith("_fl")), *guides)
    return replace(
        m,
        bodies=(*bodies, kic.Body("carriage", mass=0.0)),
        joints=joints,
        points=tuple(p for p in m.points if p.body in ("ground", *names)),
        contacts=tuple(c for c in m.contacts if c.name == "step_fl"),
        coordinates=("swing_fl", "knee_fl"),
        actuators=(),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "rtol"), [(0.0, 1e-6), (0.0, 1e-9), (0.0, 1e-11), (-2.0, 1e-9), (1.0, 1e-9)]
)
def test_held_contacts_pass_a_change_point_of_all_legs(rate: float, rtol: float) -> None:
    """A falling quadruped: its four legs reach a change point together, where two ranks are lost."""
    whole, part, t = kic.load("quadruped"), one_leg(), np.linspace(0, 0.32, 33)
    down = part.at().coefficients(["swing_fl", "knee_fl"], order=1, wrt=["X", "Z"]).G @ [0.0, rate]
    qd = [dict(swing=down[0], knee=down[1], spread=0.0)[n.split("_")[0]] for n in whole.coordinates]
    run = whole.simulate(
        t, near=whole.at(), qd=qd, integrator=kic.Integrator(rtol=rtol, atol=rtol, contacts="hold")
    )
    leg = part.simulate(
        t, near=part.at(), qd=down, integrator=kic.Integrator(rtol=1e-11, atol=1e-12, contacts="hold")
    )
    limit = 1e4 * rtol + 1e-9
    assert len(run.change_points) == len(leg.change_points) > 0
    assert np.abs(np.subtract(run.change_points, leg.change_points)).max() < limit
    for name in ("swing", "knee"):
        for end in ("fl", "fr", "hl", "hr"):
            assert np.abs(run[f"{name}_{end}"] - leg[f"{name}_fl"]).max() < limit
    assert np.abs(run.energy.residual).max() < 1e2 * rtol * run.energy.kinetic.max()
    assert run.closure.max() < 1e-11


@pytest.mark.slow
def test_motions_beside_a_change_point_do_not_pass_it() -> None:
    """Legs that are not in step turn sharply near the change point of all four."""
    m = kic.load("quadruped")
    run = m.simulate(
        0.3, near=m.at(), qd=[0.0, 0.0, 0.0, 0.01, 0.0, 0.003], integrator=kic.Integrator(contacts="hold")
    )
    assert run.change_points == ()
    assert run.closure.max() < 1e-11
    assert np.abs(run.energy.residual).max() < 1e-6 * run.energy.kinetic.max()


def unloaded(m: kic.Mechanism) -> kic.Mechanism:
    """Return a mechanism without weight: integrators want steps far longer than its loops allow."""
    return replace(m, gravity=(0, 0, 0))


def restarted(kind: str, integrator: kic.Integrator) -> kic.results.Simulation:
    """Return a run whose integrator is restarted by one kind of place."""
    if kind == "change points":
        m = windows(3, (0, 0, 0))
        return m.simulate(np.linspace(0, 2, 21), near=m.at([0.9]), qd=[-3.0], integrator=integrator)
    if kind == "change points under weight":
        m = windows(1)
        return m.simulate(np.linspace(0, 1.5, 31), near=m.at(), qd=[-4.0], integrator=integrator)
    if kind == "changes of coordinates":
        m = unloaded(four_bar(2.0, 1.5, 1.0, 1.4, crank=1.2, side=1))
        return m.simulate([0, 1, 2], near=m.at(), qd=[3.0], integrator=integrator)
    if kind == "contacts":
        m = one_leg()
        run = m.simulate([0, 0.28], near=m.at(), qd=[0.4, 0.4], integrator=integrator)
        assert run.stopped
        return m.simulate([run.t[-1], 0.28], near=run, integrator=replace(integrator, contacts="hold"))
    assert kind == "events"
    m = unloaded(kic.load("four-bar"))

    def twentieth(t: float, now: kic.simulating.motion.Snapshot) -> float:
        return float(np.sin(20 * np.pi * t))

    twentieth.terminal = True
    run = m.simulate([0, 0.4], near=m.at(), qd=[2.0], events=twentieth, integrator=integrator)
    while run.t[-1] < 0.4:
        run = m.simulate([run.t[-1], 0.4], near=run, events=twentieth, integrator=integrator)
    return run


@pytest.mark.slow_for("1e-09", "1e-06", "events", "changes of coordinates", "change points")
@pytest.mark.parametrize(
    "kind", ["change points", "change points under weight", "changes of coordinates", "contacts", "events"]
)
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-9])
def test_no_integrator_creeps_where_it_is_restarted(kind: str, rtol: float) -> None:
    """Steps of other methods are at most a multiple of those of DOP853, which depends on their orders."""
    methods = ("DOP853", "RK45", "LSODA", "BDF") + ("RK23", "Radau") * (rtol > 1e-8)
    settings = [kic.Integrator(method, rtol=rtol, atol=rtol, max_steps=3000) for method in methods]
    runs = [restarted(kind, integrator) for integrator in settings]
    for method, run in zip(methods, runs, strict=True):
        assert run.steps <= 40 * runs[0].steps, method
        # the global error of the integrator is some multiples of its tolerance
        assert np.abs(run.q[-1] - runs[0].q[-1]).max() < 1e4 * rtol, method


@pytest.mark.parametrize("method", ["RK45", "LSODA", "Radau"])
def test_every_integrator_passes_change_points(method: str) -> None:
    m, t = windows(3), np.linspace(0, 1.5, 31)
    run = m.simulate(t, near=m.at(), qd=[-4.0], integrator=kic.Integrator(method, rtol=1e-7, atol=1e-7))
    assert np.abs(run.q[:, 0] - pendulum(3, np.pi / 2, -4.0, t)[0]).max() < 1e-4
    assert len(run.change_points) == 3


@pytest.mark.parametrize("method", ["DOP853", "RK45", "RK23"])
def test_coordinates_are_watched_again_behind_a_change_point(method: str) -> None:
    """The crank leads to a dead centre after the change point, and must be left in time."""
    m = kic.load("peaucellier")
    given = {"t": np.linspace(0, 1, 24), "near": m.at(), "qd": [0.4]}
    exact = m.simulate(**given, integrator=kic.Integrator("Radau", rtol=1e-9, atol=1e-9))
    run = m.simulate(**given, integrator=kic.Integrator(method, rtol=1e-6, atol=1e-6))
    assert len(run.change_points) == 1
    assert run.charts == exact.charts == 3
    assert np.abs(run.q - exact.q).max() < 2e-3


def test_prescribed_crank_passes_change_points() -> None:
    m = windows(1)
    run = m.simulate(
        np.linspace(0, 3, 31), near=m.at(), prescribed={"O0": lambda t: (np.pi / 2 - 2 * t, -2.0, 0.0)}
    )
    assert np.allclose(run.change_points, [np.pi / 4, 3 * np.pi / 4], atol=1e-6)
    weight = 2 * G * np.cos(run.q[:, 0])
    assert np.abs(run.effort[:, 0] - weight).max() < 1e-8


def test_stop_at_change_points(tmp_path) -> None:
    m, t = windows(1), np.linspace(0, 3, 31)
    whole = m.simulate(t, near=m.at(), qd=[-4.0])
    run = m.simulate(t, near=m.at(), qd=[-4.0], integrator=kic.Integrator(on_change_point="stop"))
    assert "by a change point" in run.stopped
    assert run.change_points == (run.t[-1],)
    assert run.q[-1, 0] == pytest.approx(0, abs=1e-6)
    for k in range(1, 4):  # it goes on from there, on the same branch
        run.save(tmp_path / "run.npz")
        run = kic.results.Simulation.load(tmp_path / "run.npz")
        rest = [run.t[-1], *t[t > run.t[-1]]]
        run = m.simulate(rest, near=run, integrator=kic.Integrator(on_change_point="stop"))
        assert np.allclose(run.change_points, whole.change_points[: k + 1], atol=1e-6)
    assert np.abs(run["O1"] - run["O0"]).max() < 1e-10


@pytest.mark.slow_for("1e-06")
@pytest.mark.parametrize("off", [1e-2, 1e-6])
def test_branches_that_do_not_meet_are_kept_apart(off: float) -> None:
    """The coupler is slightly too long: near the flat configuration there is a gap, or a sharp turn."""
    m = four_bar(2, 1, 2 + off, 1, crank=1.0, side=1)
    start, t = m.at(), np.linspace(0, 0.6, 31)
    try:
        run = m.simulate(t, near=start, qd=[-4.0], integrator=kic.Integrator(max_steps=40))
    except kic.SimulationError as error:
        run = error.simulation
    assert run.change_points == ()
    assert run.closure.max() < 1e-11
    assert np.abs(run.energy.residual).max() < 1e-5 * run.energy.kinetic.max()


@pytest.mark.parametrize(("off", "meets"), [(0.0, True), (1e-10, False), (1e-6, False)])
def test_branch_is_found_only_where_branches_meet(off: float, meets: bool) -> None:
    m = four_bar(2, 1, 2 + off, 1, crank=0.3, side=1)
    c = m.at()
    chart = Chart(Motion(m._model, ("O",), None, {}), ("O",), c.state, np.array([c.value("O")]))
    assert chart.seek_branch(np.array([-1.0])) == meets


@pytest.mark.slow
def test_sarrus_linkage_passes_its_flat_configuration() -> None:
    m = kic.load("sarrus")
    coarse, fine = (m.simulate(np.linspace(0, 1, n), near=m.at(), qd=[0.5]) for n in (401, 1601))
    assert len(fine.change_points) == 3
    assert roughness(fine) < roughness(coarse) / 100
    assert np.abs(fine.energy.residual).max() < 1e-6 * fine.energy.kinetic.max()
