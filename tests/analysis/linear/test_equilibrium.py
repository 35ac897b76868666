"""Equilibria of mechanisms, their stability, and errors if there is none."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from raising import raises, refuses
from sampling import derivative, mismatch, random_body, random_tree

import kic
from kic.mechanism.configuration import displacement


def energy(c) -> float:
    """Potential energy of gravity."""
    m = c._model.description
    heights = [b.mass * (displacement(c, b.name) @ [*b.com, 1.0])[:3] for b in m.bodies if b.mass]
    heights += [p.mass * c.value(p.name) for p in m.points if p.mass]
    return float(-np.sum(heights, axis=0) @ m.gravity)


@pytest.mark.parametrize("name", ["four-bar", "slider-crank", "stephenson-six-bar", "bennett", "jansen-leg"])
def test_a_hanging_linkage(name: str) -> None:
    """The lowest place along its path, with the frequency that the energy's curvature gives."""
    m = kic.load(name)
    found = m.find_equilibrium(stable=True)
    assert found.stability == "stable"
    c = found.configuration
    effort = np.abs(c.dynamics().inverse_dynamics([0.0], [0.0])).max()
    assert effort < 1e-9 * np.abs(m.at().dynamics().load).max() + 1e-12
    assert found.residual < 1e-12
    q = float(c.value(found.coordinates[0]))
    step = 1e-3
    sides = [energy(m.at({found.coordinates[0]: q + s * step}, near=c)) for s in (-1, 0, 1)]
    curvature = (sides[0] - 2 * sides[1] + sides[2]) / step**2
    assert min(sides) == sides[1]
    natural = np.sqrt(curvature / float(c.dynamics().I[0, 0]))
    assert found.modes.natural[0] == pytest.approx(natural, rel=1e-4)
    # nothing is lower along the whole path near it
    assert energy(c) < energy(m.at())


def test_arms_hang_and_stand() -> None:
    m = kic.load("horn-two-link")
    down = m.find_equilibrium(stable=True)
    assert down.configuration.value("tip") == pytest.approx([0, -2, 0], abs=1e-12)
    assert down.stability == "stable"
    up = m.find_equilibrium(near=m.at([1.5, 0.1]))
    assert up.configuration.value("tip") == pytest.approx([0, 2, 0], abs=1e-12)
    assert up.stability == "unstable"
    assert up.descriptions()[1].startswith("grows with time constant")
    # from the very top, where it would stand for ever, it falls if only a stable one will do
    fallen = m.find_equilibrium(near=up.configuration, stable=True)
    assert fallen.configuration.value("tip") == pytest.approx([0, -2, 0], abs=1e-12)
    # from exactly level, where the stiffness is none
    pendulum = kic.Mechanism(
        "pendulum",
        [kic.Body("rod", mass=2.0, com=(0.5, 0, 0), inertia=(0, 0.17, 0.17))],
        [kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))],
        gravity=(0, -9.81, 0),
    )
    hanging = pendulum.find_equilibrium()
    assert hanging.configuration.value("A") == pytest.approx(-np.pi / 2)
    assert hanging.modes.natural == pytest.approx([np.sqrt(2 * 9.81 * 0.5 / (0.17 + 2 * 0.25))])


def test_efforts_that_are_given_and_coordinates_that_are_held() -> None:
    m = kic.load("horn-two-link")
    found = m.find_equilibrium(near=m.at([-1.2, 0.1]), effort={"shoulder": 5.0})
    c = found.configuration
    assert c.dynamics().inverse_dynamics([0, 0], [0, 0]) == pytest.approx([5.0, 0.0], abs=1e-11)
    assert found.effort == pytest.approx([5.0, 0.0], abs=1e-11)
    same = m.find_equilibrium(near=m.at([-1.2, 0.1]), effort=[5.0, 0.0])
    assert same.configuration._phi == pytest.approx(c._phi)
    held = m.find_equilibrium(near=m.at([0.4, -1.0]), fixed="shoulder")
    assert held.configuration.value("shoulder") == 0.4
    assert held.free == ("elbow",)
    assert held.fixed == ("shoulder",)
    assert held.effort[1] == pytest.approx(0.0, abs=1e-12)
    assert held.effort == pytest.approx(held.configuration.dynamics().inverse_dynamics([0, 0], [0, 0]))
    assert held.configuration.value("shoulder") + held.configuration.value("elbow") == pytest.approx(
        -np.pi / 2
    )
    assert held.modes.natural.shape == (1,)
    both = m.find_equilibrium(near=m.at([0.4, -1.0]), fixed=["shoulder", "elbow"])
    assert both.stability == "stable"
    assert both.descriptions() == ["stable"]
    assert "fixed: shoulder" in str(both.summary())
    # a load instead of the model's
    pushed = replace(m, forces=[kic.Force("wind", "tip", (0, 0, 0))])
    blown = pushed.find_equilibrium(near=pushed.at([-1.4, 0.1]), applied={"wind": [9.81, 0, 0]})
    d = blown.configuration.dynamics(applied={"wind": [9.81, 0, 0]})
    assert d.inverse_dynamics([0, 0], [0, 0]) == pytest.approx([0, 0], abs=1e-11)


def test_in_other_coordinates() -> None:
    m = kic.load("four-bar")
    own = m.find_equilibrium(stable=True)
    other = m.find_equilibrium(near=own.configuration, wrt="D")
    assert other.coordinates == ("D",)
    assert other.modes.natural == pytest.approx(own.modes.natural, rel=1e-9)
    assert other.configuration.value("A") == pytest.approx(float(own.configuration.value("A")))


def test_springs_and_dampers() -> None:
    """A bead on a line between two springs, damped: its place by hand."""
    m = kic.Mechanism(
        "bead",
        [kic.Body("bead", mass=2.0, com=(0, 0, 0), inertia=(0, 0, 0))],
        [
            kic.Joint(
                "s", "prismatic", ("ground", "bead"), axis=(0, 1, 0), stiffness=10, rest=0.3, damping=1.5
            )
        ],
        gravity=(0, -9.81, 0),
    )
    found = m.find_equilibrium()
    assert found.configuration.value("s") == pytest.approx(0.3 - 2 * 9.81 / 10)
    assert found.stability == "asymptotically stable"
    assert found.modes.natural == pytest.approx([np.sqrt(5)])
    assert found.modes.damping == pytest.approx(np.full(2, 1.5 / (2 * np.sqrt(20))))


@pytest.mark.parametrize("kinds", [["spherical"], ["R", "spherical"], ["free"]], ids=str)
def test_balls(kinds) -> None:
    """A body in a ball joint, held by springs, comes to rest wherever it starts; no turn is singular."""
    rng = np.random.default_rng(3)
    tree = random_tree(rng, kinds)
    posts = [kic.Point(f"post{k}", "ground", tuple(3 * rng.normal(size=3))) for k in range(8)]
    last = tree.bodies[-1].name
    eyes = [kic.Point(f"eye{k}", last, tuple(rng.normal(size=3))) for k in range(8)]
    springs = [kic.Spring(f"s{k}", (f"post{k}", f"eye{k}"), stiffness=5.0) for k in range(8)]
    m = replace(tree, points=[*tree.points, *posts, *eyes], springs=springs)
    found = m.find_equilibrium(stable=True)
    c = found.configuration
    M = len(c.coordinates)
    effort = c.dynamics().inverse_dynamics(np.zeros(M), np.zeros(M))
    assert np.abs(effort).max() < 1e-10
    assert found.stability == "stable"
    assert "nan" in str(found.summary())  # turns have no value
    # symmetric stiffness, as of any potential at rest where nothing acts
    K = c.linearize().K
    assert mismatch(K, K.T) < 1e-10


def rod_between_balls() -> kic.Mechanism:
    """A closed spatial loop whose own coordinate is a turn of a ball: two cranks and a rod that may spin."""
    rng = np.random.default_rng(5)
    names = ("crank", "rod", "rocker")
    return kic.Mechanism(
        "two balls",
        [random_body(rng, name) for name in names],
        [
            kic.Joint("A", "revolute", ("ground", "crank"), at=(0, 0, 0), axis=(0, 0, 1)),
            kic.Joint("S", "spherical", ("crank", "rod"), at=(1, 0, 0)),
            kic.Joint("T", "spherical", ("rod", "rocker"), at=(1.5, 2, 0.5)),
            kic.Joint("B", "revolute", ("ground", "rocker"), at=(3, 2, 0), axis=(0, 1, 0.3)),
        ],
        gravity=(0, 0, -9.81),
        coordinates=["A", "S.2"],
    )


@pytest.mark.slow
def test_a_closed_loop_with_a_turning_coordinate() -> None:
    m = rod_between_balls()
    found = m.find_equilibrium(stable=True)
    c = found.configuration
    assert found.stability == "stable"
    assert np.abs(c.dynamics(wrt=found.coordinates).inverse_dynamics([0, 0], [0, 0])).max() < 1e-9
    # it is closed, and a question checks it
    m.prepare.dynamics(wrt=found.coordinates)(c.state, check=True)
    # its own coordinates cannot drive it there; those found can, and no set is without a turn of a ball
    assert found.coordinates != ("A", "S.2")
    assert not found.linearization.holonomic
    with raises(kic.SingularError, coordinates=("A", "S.2")):
        m.find_equilibrium(wrt=["A", "S.2"], stable=True)
    named = m.find_equilibrium(wrt=found.coordinates, stable=True)
    assert np.sort(named.modes.natural) == pytest.approx(found.modes.natural, rel=1e-6)
    # the load's derivative along each rate is what the modes were made of
    wrt = found.coordinates
    K = -derivative(c, lambda x: x.dynamics(wrt=wrt).load, wrt)
    assert mismatch(found.linearization.K, K) < 1e-10
    held = m.find_equilibrium(fixed="A", stable=True)
    assert held.configuration.value("A") == pytest.approx(float(m.at().value("A")), abs=1e-12)


def test_rotors_slow_the_modes() -> None:
    m = kic.load("four-bar")
    geared = replace(m, motors=[kic.Motor("M", ["A"], ratios=[20.0], inertia=1e-4, damping=1e-4)])
    still = geared.find_equilibrium(stable=True)
    slow = geared.find_equilibrium(stable=True, motors=True)
    I = float(still.linearization.I[0, 0])
    assert slow.modes.natural == pytest.approx(still.modes.natural * np.sqrt(I / (I + 0.04)))
    assert slow.stability == "asymptotically stable"


def test_follower_loads_are_judged_by_eigenvalues() -> None:
    """Two rods under a force that turns with the second: from some size on they flutter."""
    m = kic.Mechanism(
        "Ziegler's column",
        [
            kic.Body("one", mass=2.0, com=(0, 1, 0), inertia=(0, 0, 0)),
            kic.Body("two", mass=1.0, com=(0, 2, 0), inertia=(0, 0, 0)),
        ],
        [
            kic.Joint("A", "revolute", ("ground", "one"), at=(0, 0, 0), axis=(0, 0, 1), stiffness=1.0),
            kic.Joint("B", "revolute", ("one", "two"), at=(0, 1, 0), axis=(0, 0, 1), stiffness=1.0),
        ],
        points=[kic.Point("top", "two", (0, 2, 0))],
        forces=[kic.Force("load", "top", (0, -1.0, 0), axes="body")],
    )
    # flutter between (7 ∓ 2√2)/2 · k/ℓ for masses 2:1 (Ziegler)
    for load, word in ((2.0, "undecided"), (2.2, "unstable"), (4.8, "unstable")):
        found = m.find_equilibrium(applied={"load": [0, -load, 0]})
        assert found.configuration._phi == pytest.approx([0, 0], abs=1e-14)
        assert found.stability == word, load
        assert np.isnan(found.modes.natural).all()
    critical = 3.5 - np.sqrt(2)
    assert m.find_equilibrium(applied={"load": [0, -0.999 * critical, 0]}).stability == "undecided"
    assert m.find_equilibrium(applied={"load": [0, -1.001 * critical, 0]}).stability == "unstable"


def test_invalid_arguments() -> None:
    arm = kic.load("puma560")
    e = refuses(arm.find_equilibrium, kic.SingularError, free=("waist", "flange"))
    assert arm.find_equilibrium(fixed=e.free, stable=True).stability == "stable"
    two = kic.load("horn-two-link")
    with raises(kic.ConfigurationError, key="near") as lost:
        two.find_equilibrium(effort={"shoulder": 50.0})
    assert lost.value.residual.shape == (2,)
    assert abs(lost.value.residual[0]) > 1
    assert lost.value.reached.batch == ()
    refuses(lambda: two.find_equilibrium(near=two.at(np.zeros((2, 2)))), key="near", got=(2,))
    refuses(lambda: two.find_equilibrium(effort={"hip": 1.0}), kic.UnknownNameError, name="hip")
    refuses(lambda: two.find_equilibrium(effort={"elbow": 1.0}, fixed="elbow"), key="effort", name="elbow")
    refuses(lambda: two.find_equilibrium(effort=[1.0]), key="effort")
    refuses(lambda: two.find_equilibrium(effort=np.zeros((3, 2))), key="effort", got=(3, 2))
    refuses(lambda: two.find_equilibrium(wrt="elbow"), mobility=2, count=1)
    refuses(lambda: two.find_equilibrium(near=arm.at()), key="near", got="puma560")


# of the shipped models from their drawings: what can move without effort, as no weight resists it
NEUTRAL = {
    "five-bar": ("A", "E"),  # in a level plane
    "three-legged-robot": ("A1", "A2", "A3"),
    "parallel-serial": ("A1", "A2", "A3"),
    "rrprrr": ("A", "B", "C", "D", "E", "F"),  # drawn without gravity
    "lee-puma": ("joint1",),  # all others turn about the vertical
    "leg": ("waist",),
    "leg-offsets": ("waist",),
    "panda": ("joint1",),
    "puma560": ("waist", "flange"),
    "puma560-motors": ("waist", "flange"),
    "three-link-arm": ("joint3",),
    "twin-arm": ("yaw", "left_elbow", "right_elbow", "neck.1"),
    "wrist-partitioned": ("waist", "wrist_roll"),
}
# and where there is none, or none that can be linearized
NOWHERE = {
    # the tracer's height falls with C all the way to the flat rhombus, where both corners may part
    "peaucellier": r"ended at C = -1\.65444 \(several motions of its loops meet there",
    # flat at A1 = 0, the plate can rise, or rest while its legs turn: the search does not pass this point
    "sarrus": r"ended at A1 = (0\.000\d*|[\d.]+e-\d+) \(several motions of its loops meet there",
    # where its parallelogram lies flat, it may open either way
    "watt-parallel-motion": r"ended at A = -0\.752\d* \(several motions of its loops meet there",
    # a vertical slide without an end
    "scara": r"the search did not converge in 100 steps: motor3 went from 0 to 25\.",
    # under its base the plate hangs on pistons that slide out
    "three-rps": r"the search did not converge in 100 steps: L\d went from 0\.39 to",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [m for m in kic.model_names() if m not in NOWHERE])
def test_every_model_has_an_equilibrium_or_raises(name: str) -> None:
    m = kic.load(name)
    if name in NEUTRAL:
        refuses(m.find_equilibrium, kic.SingularError, free=NEUTRAL[name])
        return
    found = m.find_equilibrium()
    # no work is done by any motion that the joints allow, in whatever coordinates
    c, names = found.configuration, found.coordinates
    still = np.zeros(len(names))
    size = np.abs(m.at().dynamics().load).max()
    assert np.abs(c.dynamics(wrt=names).inverse_dynamics(still, still)).max() < 1e-10 * size
    assert found.stability in ("stable", "unstable", "asymptotically stable")


@pytest.mark.slow
@pytest.mark.parametrize("name", NOWHERE)
def test_models_that_never_rest_report_why(name: str) -> None:
    e = refuses(lambda: kic.load(name).find_equilibrium(), kic.ConfigurationError, key="near")
    assert re.search(NOWHERE[name], str(e))
    reached = e.reached
    # it went down, on a closed configuration
    assert energy(reached) < energy(kic.load(name).at())
    assert np.abs(reached._model.closure(()).rows(reached._states)[0]).max(initial=0.0) < 1e-12


def test_descents_without_minimum_raise() -> None:
    """The energy is monotone from the reference to the singular configuration where the search ends."""
    m = kic.load("peaucellier")
    heights = energy_along(m, "C", np.linspace(1.287, -1.654, 60))
    assert (np.diff(heights) < 0).all()
    m = kic.load("sarrus")
    # no step across the flat configuration, where several motions meet, is certified
    heights = energy_along(m, "A1", np.linspace(0.927, 1e-3, 60))
    assert (np.diff(heights) < 0).all()


def energy_along(m: kic.Mechanism, name: str, values: np.ndarray) -> np.ndarray:
    """Potential energy at configurations one after the other."""
    c, found = m.at(), []
    for value in values:
        c = m.at({name: value}, near=c)
        found.append(energy(c))
    return np.array(found)


def test_page() -> None:
    found = kic.load("four-bar").find_equilibrium(stable=True)
    page = str(found.summary())
    assert page.startswith("four-bar: equilibrium, stable")
    assert "oscillates at 2.877 Hz: A 1" in page
    assert "<table>" in found._repr_html_()
    assert found.steps > 0
