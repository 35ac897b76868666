"""Certified tracking: at() and path() do not pass a range of inputs in which no configuration exists."""

from __future__ import annotations

import jumps
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import kic
from kic.kernels import layout as lay
from kic.kernels import newton
from kic.kernels.offsets import sections
from kic.transfer import coordinate_transfer

Z = (0.0, 0.0, 1.0)


def linkages(sizes: list[tuple[float, ...]], start: float) -> kic.Mechanism:
    """Return four-bars on one crank; each has crank, coupler, rocker, base length, base angle and side."""
    bodies = [kic.Body("crank")]
    joints = [kic.Joint("O", "revolute", ("ground", "crank"), (0, 0, 0), Z, value=start)]
    for k, (a, b, c, d, turn, side) in enumerate(sizes):
        pin = a * np.array([np.cos(start), np.sin(start), 0])
        base = d * np.array([np.cos(turn), np.sin(turn), 0])
        across = pin - base
        reach = np.linalg.norm(across)
        along = (c * c - b * b + reach * reach) / (2 * reach)
        normal = np.array([-across[1], across[0], 0]) / reach
        end = base + along * across / reach + side * np.sqrt(c * c - along * along) * normal
        bodies += [kic.Body(f"coupler{k}"), kic.Body(f"rocker{k}")]
        joints += [
            kic.Joint(f"A{k}", "revolute", ("crank", f"coupler{k}"), tuple(pin), Z),
            kic.Joint(f"B{k}", "revolute", (f"coupler{k}", f"rocker{k}"), tuple(end), Z),
            kic.Joint(f"D{k}", "revolute", ("ground", f"rocker{k}"), tuple(base), Z),
        ]
    return kic.Mechanism("linkages", bodies=bodies, joints=joints, coordinates=["O"])


def margin(sizes: list[tuple[float, ...]], angles: np.ndarray) -> np.ndarray:
    """Return 1 - cos² of each rocker's angle to its diagonal: negative where a linkage cannot close."""
    out = []
    for a, b, c, d, turn, _ in sizes:
        reach = np.sqrt(a * a + d * d - 2 * a * d * np.cos(angles - turn))
        out.append(1 - ((c * c - b * b + reach * reach) / (2 * reach * c)) ** 2)
    return np.array(out)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_narrow_gap_is_not_passed(copies: int) -> None:
    """Mirrored linkages pass an even number of turning points, where the sign of a determinant is kept."""
    sizes = [(0.05, 0.1, 0.05, 0.09999, turn, side) for turn, side in ((0.0, 1), (np.pi, -1))][:copies]
    m = linkages(sizes, np.pi / 3)
    assert margin(sizes, np.array([0.0])).min() < 0
    with pytest.raises(kic.ConfigurationError):
        m.at({"O": -0.5})
    with pytest.raises(kic.ConfigurationError):
        m.path({"O": np.linspace(np.pi / 3, -0.5, 12)})


@pytest.mark.slow_for("5", "3", "2")
@pytest.mark.parametrize("seed", range(6))
def test_jumps_reach_the_same_configuration_as_the_path(seed: int) -> None:
    """Random jumps of several linkages on one crank: closed exactly where every angle between closes."""
    rng = np.random.default_rng(seed)
    sizes: list[tuple[float, ...]] = []
    while len(sizes) < 1 + seed % 4:
        a, d, c = rng.uniform(0.3, 1.2, size=3)
        # close to, or far from, a change point
        b = abs(d - a) * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-6, -1)) + c
        one = (a, b, c, d, rng.uniform(-3, 3), rng.choice([-1, 1]))
        if margin([one], np.array([0.4])).min() > 0.05:
            sizes.append(one)
    m = linkages(sizes, 0.4)
    ends = 0.4 + rng.uniform(-2 * np.pi, 2 * np.pi, size=12)
    c = m.at({"O": ends}, failures="mask")
    for end, ok in zip(ends, c.ok, strict=True):
        # extremes of a distance lie on the line of centres
        special = [turn + np.pi * k for *_, turn, _ in sizes for k in range(-4, 5)]
        low, high = min(0.4, end), max(0.4, end)
        angles = np.concatenate([np.linspace(low, high, 20_001), [x for x in special if low < x < high]])
        least = margin(sizes, angles).min()
        assert ok == (least > 0), (end, least)


def test_dead_centres_have_exact_values() -> None:
    """At a dead centre of the input the start is returned if it has the requested values."""
    m = kic.load("slider-crank")
    c = m.at({m.coordinates[0]: 0.0})
    slide = next(j.name for j in m.joints if j.type == "prismatic")
    assert np.array_equal(m.at({slide: float(c.value(slide))}, near=c).state, c.state)


@pytest.mark.parametrize("name", ["four-bar", "rssr", "geared-five-bar"])
def test_full_turns_are_passed_at_once(name: str) -> None:
    """A branch that repeats itself after some turns is not followed through all of them."""
    m = kic.load(name)
    c = m.at()
    crank, *others = m.coordinates
    still = {x: float(c.value(x)) for x in others}
    start, turns = float(c.value(crank)), 159_120
    far = m.at({crank: start + 2 * np.pi * turns + 0.3, **still})
    close = m.at({crank: start + 0.3, **still})
    # angles of 1e6 rad are known to 1e-10
    for body in m.bodies:
        assert np.abs(far.pose(body.name).as_matrix() - close.pose(body.name).as_matrix()).max() < 1e-8
    assert far.value(crank) == start + 2 * np.pi * turns + 0.3
    with pytest.raises(kic.ConfigurationError):
        m.at({crank: 1e12, **still})


class System:
    """Square system of a query, evaluated in Python."""

    def __init__(self, plan: np.ndarray, numbers: np.ndarray, choice: np.ndarray) -> None:
        self.size, self.height, self.choice = plan[0, lay.COLUMNS], plan[2, lay.HEIGHT], choice
        (self.cols, geometry), (items, self.vectors), *_, self.rest = sections(plan, numbers)
        self.tables = self.cols, geometry, items, self.vectors, self.rest, choice, plan[2, lay.SYSTEM]

    def __call__(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values of the rows in use and the scaled Jacobian at a state (S,)."""
        F, value = np.zeros((self.size, lay.FRAME_WIDTH)), np.zeros(self.height * (1 + self.size))
        g, W = value[self.height :].reshape(self.height, -1), np.zeros((self.size, self.size))
        newton.evaluate(self.tables, state[None], 0, F, value, g, W)
        return value[self.choice[lay.USED_ROW, : self.size]], W

    def between(self, state: np.ndarray, d: np.ndarray, share: float) -> np.ndarray:
        """Return the state after a share of a chord d (M,)."""
        moved = state.copy()
        for n in range(self.size):
            k = self.cols[n, lay.STATE]
            if self.cols[n, lay.KIND] != lay.BALL:
                moved[k] += share * d[n] * self.rest[n, lay.COLUMN_SCALE]
            elif self.cols[n, lay.GROUP] == n:
                turn = Rotation.from_rotvec(share * d[n : n + 3])
                quaternion = Rotation.from_quat(state[k : k + 4], scalar_first=True)
                moved[k : k + 4] = (turn * quaternion).as_quat(scalar_first=True)
        return moved

    def second(self, state: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return the derivative of the Jacobian along a scaled step, by central differences."""
        h, made = 1e-5, []
        for sign in (1, -1):
            moved = state[None].copy()
            newton.move(self.cols, self.choice, self.rest, sign * h * step, moved, 0)
            made.append(self(moved[0])[1])
        return (made[0] - made[1]) / (2 * h)


def mechanisms() -> dict[str, kic.Mechanism]:
    """Return shipped models with loops, bars, balls and sliders, and random linkages with fixed distances."""
    names = (
        "four-bar",
        "delta",
        "bricard",
        "spatial-slider-crank",
        "gough-stewart",
        "parallel-serial",
        "sarrus",
    )
    made = {name: kic.load(name) for name in names}
    for seed in (1, 4, 5):
        made[f"linkages {seed}"] = jumps.mechanism(
            jumps.random_loops(np.random.default_rng(seed), 1 + seed % 3)
        )
    return made


@pytest.mark.slow_for("gough-stewart")
@pytest.mark.parametrize(("name", "m"), mechanisms().items(), ids=lambda x: x if isinstance(x, str) else "")
def test_bounds_of_the_certificate_hold(name: str, m: kic.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    """κ, and the product of λ and η, are not exceeded at points of the chords that the kernel tests."""
    made, names, rng = [], m.coordinates, np.random.default_rng(0)
    closure, c = m._model.closure(names), m.at()
    start = np.repeat(c.state[None], 3, axis=0)
    goal = np.array([float(c.value(n)) for n in names])
    goal = goal + 0.15 * rng.uniform(-1, 1, (3, len(names))) * closure.transfer.scale[: len(names)]
    certify = newton.certify_chord

    def recorded(*arguments: object) -> None:
        certify(*arguments)
        made.append([x.copy() if isinstance(x, np.ndarray) else x for x in arguments])

    kernel = coordinate_transfer.kernel
    monkeypatch.setattr(newton, "certify_chord", recorded)
    monkeypatch.setattr(
        coordinate_transfer, "kernel", lambda x: newton.closing.py_func if x == "closing" else kernel(x)
    )
    closure.track(start, goal, None, 3)
    assert made
    tested = 0
    for plan, numbers, choice, scratch, width, segment, _ in made:
        _, _, _, begun, aim, _, _, _, inverses, nodes, _, _, weights, test, _ = newton.closing_space(
            plan, width, scratch
        )
        share, a, e = 1.0 if segment == 0 else 0.5, int(segment == 2), 1 if segment == 1 else 2
        system, w = System(plan, numbers, choice), weights[int(segment > 0)]
        N = inverses[int(segment > 0)].reshape(system.size, system.size)
        size, order, d = system.size, choice[lay.ELIMINATED, : system.size], np.zeros(system.size)
        newton.chord(system.cols, system.rest, nodes, a, e, d)
        rows, inputs, w = choice[lay.USED_ROW, :size], choice[lay.INPUT, :size] >= 0, w[order, 0]
        kappa = eta = curvature = 0.0
        for part in np.linspace(0, 1, 5):
            state = system.between(nodes[a], d, part)
            value, W = system(state)
            way = (0.5 if a == 1 else 0.0) + share * part
            residual = aim[rows] - np.where(inputs, (1 - way) * (aim - begun)[rows], 0) - value
            residual /= system.vectors[choice[lay.USED_ITEM, :size], lay.SCALE]
            eta = max(eta, (np.abs(N @ residual) / w).max())
            kappa = max(kappa, (np.abs(np.eye(size) - N @ W) @ w / w).max())
            # λ holds in the ball about the point, of radius RADIUS_MIN or more
            radius = max(newton.RADIUS_MIN, 2 * eta if test[2] else 0)
            ball = state[None].copy()
            newton.move(system.cols, choice, system.rest, radius * w * rng.uniform(-1, 1, size), ball, 0)
            change = system.second(ball[0], w * rng.choice([-1, 1], size=size))
            curvature = max(curvature, (np.abs(N @ change) @ w / w).max())
        # rounding; a test that fails before the product is complete has κ of at least one
        assert kappa <= test[0] + 1e-9
        if test[0] < 1:
            assert 4 * curvature * (eta - 1e-12) <= test[1] * (1 + 1e-6)
            tested += 1
    assert tested


@pytest.mark.parametrize("name", ["bricard", "delta", "spatial-slider-crank"])
def test_short_ways_take_one_step(name: str) -> None:
    """Most inputs within 0.1 of the start are certified at once."""
    m, rng = kic.load(name), np.random.default_rng(0)
    closure, c = m._model.closure(m.coordinates), m.at()
    goal = np.array([float(c.value(n)) for n in m.coordinates])
    goal = goal + rng.uniform(-0.1, 0.1, (200, len(goal)))
    _, share = closure.track(np.repeat(c.state[None], len(goal), axis=0), goal, None, 1)
    assert (share == 1).mean() > 0.9


def test_ill_conditioned_systems_are_solved_to_rounding() -> None:
    """Near a dead centre a state is solved to rounding, although an inverse serves several steps."""
    radius, rod = 0.5, 0.3
    m = kic.Mechanism(
        "bar",
        [kic.Body("crank"), kic.Body("slider")],
        [
            kic.Joint("O", "revolute", ("ground", "crank"), (0, 0, 0), Z, value=0.1),
            kic.Joint("D", "prismatic", ("ground", "slider"), (0, 0, 0), (1, 0, 0)),
        ],
        points=[
            kic.Point("p", "crank", (radius * np.cos(0.1), radius * np.sin(0.1), 0)),
            kic.Point(
                "e", "slider", (radius * np.cos(0.1) + np.sqrt(rod**2 - (radius * np.sin(0.1)) ** 2), 0, 0)
            ),
        ],
        distances=[kic.Distance("rod", ("p", "e"), fixed=True)],
        coordinates=["O"],
    )
    dead = np.arcsin(rod / radius)
    angles = dead - np.geomspace(5e-6, 1e-2, 40)
    c = m.at({"O": angles})
    residual = np.hypot(c.value("e.x") - c.value("p.x"), c.value("p.y")) - rod
    # the solver stops at a residual of 1e-15 of the largest length
    assert np.abs(residual).max() < 20 * (np.finfo(float).eps + 1e-15) * (radius + rod)
