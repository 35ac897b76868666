"""Ellipsoids against closed forms, images of spheres under the equations, and duality."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from linkages import xy_table
from raising import raises
from sampling import OFFSETS, WEIGHTS, derivative, mismatch, random_posture, random_tree

import kic

KINDS = ("velocity", "force", "inertia", "acceleration")
TIP = ["tip.x", "tip.y"]
# mechanisms, a configuration, rows of a task that is regular there, and what scales them
CASES = {
    "panda": ([0.1, 0.3, 0.2, -1.5, 0.3, 1.8, 0.2], "link7", {"length": 0.3}),
    "puma560": ([0.3, 0.5, -2.2, 0.7, 0.8, -0.4], "tool", {}),
    "five-bar": (None, "tip.x tip.y", {}),
    "gough-stewart": (None, "platform", {"length": 0.5}),
    "geared-five-bar": (None, "tip.x", {}),
    "three-rps": (None, "tool.z", {}),
}
every_case = pytest.mark.parametrize("name", CASES)


def case(name: str) -> tuple[kic.Configuration, list[str], dict[str, float]]:
    at, of, scale = CASES[name]
    return kic.load(name).at(at), of.split(), scale


def sphere(count: int, size: int) -> np.ndarray:
    v = np.random.default_rng(0).normal(size=(count, size))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def arm(first: float, second: float) -> kic.Mechanism:
    """Two sticks in a plane, of one kilogram a metre."""
    ends = [(0.0, 0.0, 0.0), (first, 0.0, 0.0), (first + second, 0.0, 0.0)]
    sticks = [
        kic.Body(
            f"link{k}", mass=size, com=((a[0] + b[0]) / 2, 0, 0), inertia=(0, size**3 / 12, size**3 / 12)
        )
        for k, size, a, b in zip((1, 2), (first, second), ends, ends[1:], strict=False)
    ]
    pairs = (("ground", "link1"), ("link1", "link2"))
    hinges = [
        kic.Joint(f"q{k + 1}", "revolute", pair, at=ends[k], axis=(0, 0, 1)) for k, pair in enumerate(pairs)
    ]
    return kic.Mechanism(
        "arm", sticks, hinges, points=[kic.Point("tip", "link2", at=ends[2])], gravity=(0, -9.81, 0)
    )


def scales(c: kic.Configuration, of: list[str], length: float | None) -> np.ndarray:
    rows = c.coefficients(of, order=1).rows
    return np.array([length or 1.0 if ".w" in row else 1.0 for row in rows])


# closed forms


@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (0.7, 0.4), (0.3, 0.9)])
def test_a_two_link_arm_has_known_manipulability(first: float, second: float) -> None:
    q = np.random.default_rng(1).uniform(-3, 3, size=(20, 2))
    c = arm(first, second).at(q)
    e = c.ellipsoid(TIP)
    w = first * second * np.abs(np.sin(q[:, 1]))
    assert mismatch(e.manipulability, w) < 1e-13
    assert mismatch(e.volume, np.pi * w) < 1e-13
    slope = first * second * np.sign(np.sin(q[:, 1])) * np.cos(q[:, 1])
    assert mismatch(c.ellipsoid(TIP).gradient(), np.stack([0 * slope, slope], axis=1)) < 1e-12


def test_two_link_arm_has_one_isotropic_configuration() -> None:
    """Of l₁ = √2 l₂ at elbows of ±135°, whatever the shoulder (Salisbury and Craig 1982)."""
    e = arm(np.sqrt(2), 1.0).at([[0.4, 3 * np.pi / 4], [-1.0, -3 * np.pi / 4], [0.4, 2.0]]).ellipsoid(TIP)
    assert np.abs(e.condition[:2] - 1).max() < 1e-14
    assert np.abs(e.isotropy[:2] - 1).max() < 1e-14
    assert e.condition[2] > 1.3
    # l₂ in every direction
    assert np.abs(e.along([[[1, 0]], [[1, 2]], [[-0.3, 0.7]]])[:, :2] - 1).max() < 1e-14


def test_a_five_bar_is_isotropic_where_its_outer_bars_are_at_right_angles() -> None:
    """By symmetry both move the tip as fast, along lines at right angles; its inertia then is round too."""
    base, knee, tip = 0.3, 0.5, np.array([0.0, 0.9, 0.0])
    places = {"A": (-base, 0, 0), "B": tip - (knee, knee, 0), "D": tip - (-knee, knee, 0), "E": (base, 0, 0)}
    P = {k: np.array(p, dtype=float) for k, p in {**places, "C": tip}.items()}
    bars = {"a": "AB", "b": "BC", "c": "CD", "d": "DE"}
    bodies = [
        kic.Body(n, mass=1.0, com=tuple((P[x] + P[y]) / 2), inertia=(0.1, 0.1, 0.2))
        for n, (x, y) in bars.items()
    ]
    pairs = [("ground", "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("d", "ground")]
    joints = [
        kic.Joint(n, "revolute", pair, at=tuple(P[n]), axis=(0, 0, 1))
        for n, pair in zip("ABCDE", pairs, strict=True)
    ]
    m = kic.Mechanism(
        "round", bodies, joints, points=[kic.Point("tip", "b", at=tuple(tip))], coordinates=["A", "E"]
    )
    e = m.at().ellipsoid(TIP)
    assert np.abs(e.condition - 1) < 1e-13
    # a motor's share: its radius across the outer bar's direction
    arm, out = P["B"] - P["A"], (P["C"] - P["B"]) / np.linalg.norm(P["C"] - P["B"])
    assert abs(e.semi_axes[0] - abs(np.cross(arm, out)[2])) < 1e-13
    assert m.at({"A": m.at().value("A") + 0.2, "E": m.at().value("E")}).ellipsoid(TIP).condition > 1.1


def test_a_robot_of_three_equal_legs_is_round_in_its_middle() -> None:
    """With threefold symmetry all four ellipsoids are circles."""
    leg = [np.array(p) for p in ((1.0, 0.0, 0.0), (0.9, 0.6, 0.0), (0.3, 0.1, 0.0))]
    bodies, joints = [kic.Body("plate", mass=2.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.2))], []
    for k in range(3):
        s, co = np.sin(2 * np.pi * k / 3), np.cos(2 * np.pi * k / 3)
        a, b, p = (np.array([[co, -s, 0], [s, co, 0], [0, 0, 1]]) @ x for x in leg)
        for n, (x, y) in {f"in{k}": (a, b), f"out{k}": (b, p)}.items():
            bodies.append(kic.Body(n, mass=0.5, com=tuple((x + y) / 2), inertia=(0.02, 0.02, 0.04)))
        pairs = [("ground", f"in{k}"), (f"in{k}", f"out{k}"), (f"out{k}", "plate")]
        joints += [
            kic.Joint(f"{n}{k}", "revolute", pair, at=tuple(x), axis=(0, 0, 1))
            for n, pair, x in zip("ABC", pairs, (a, b, p), strict=True)
        ]
    m = kic.Mechanism("equal legs", bodies, joints, points=[kic.Point("middle", "plate", at=(0, 0, 0))],
                      coordinates=["A0", "A1", "A2"])  # fmt: skip
    for kind in KINDS:
        e = m.at().ellipsoid(["middle.x", "middle.y"], kind=kind)
        assert abs(e.condition - 1) < 1e-12, kind
        moved = m.at({"middle.x": 0.1, "middle.y": 0.05, "plate.angle": 0.1}).ellipsoid(
            ["middle.x", "middle.y"], kind=kind
        )
        assert moved.condition > 1.05, kind


def test_an_xy_table_shows_its_load() -> None:
    """Two slides: the masses along the axes, the accelerations that efforts within limits give."""
    table = xy_table(gravity=(0, -9.81, 0))
    c, pen = table.at([0.1, 0.2]), ["pen.x", "pen.y"]
    inertia = c.ellipsoid(pen, kind="inertia")
    assert np.abs(inertia.masses - [2, 3]).max() < 1e-13
    assert np.abs(inertia.axes - [[0, 1], [1, 0]]).max() < 1e-14
    e = c.ellipsoid(pen, kind="acceleration", effort_limits={"X": 6.0, "Y": 10.0})
    assert np.abs(e.semi_axes - [5, 2]).max() < 1e-14
    assert np.abs(e.center - [0, -9.81]).max() < 1e-14
    assert mismatch(e.along([[1, 0], [0, 3]]), np.array([2.0, 5.0])) < 1e-14
    assert mismatch(e.level([[0, -9.81], [2, -9.81], [0, 0]]), np.array([0, 1, 9.81**2 / 25])) < 1e-14


# the definitions


@every_case
def test_a_sphere_of_rates_fills_the_velocity_ellipsoid(name: str) -> None:
    c, of, scale = case(name)
    u, S = c.coefficients(of, order=1), scales(c, of, scale.get("length"))
    P, M = len(u.rows), len(u.columns)
    rates = np.linspace(0.5, 2.0, M)
    e = c.ellipsoid(of, rate_limits=rates, **scale)
    points = S * u.velocity(rates * sphere(200, M))
    assert (e.level(points) < 1 + 1e-9).all()
    # the surface comes from the rates that fit it best
    x = e.surface(sphere(50, P))
    assert np.abs(e.level(x) - 1).max() < 1e-9
    qd = (np.linalg.pinv(S[:, None] * u.G * rates) @ x[..., None])[..., 0]
    assert np.abs(np.linalg.norm(qd, axis=1) - 1).max() < 1e-9
    assert mismatch(S * u.velocity(rates * qd), x) < 1e-10


@every_case
def test_forces_on_the_surface_take_efforts_on_the_sphere(name: str) -> None:
    c, of, scale = case(name)
    u, S = c.coefficients(of, order=1), scales(c, of, scale.get("length"))
    M = len(u.columns)
    limits = np.linspace(3.0, 1.0, M)
    e = c.ellipsoid(of, kind="force", effort_limits=dict(zip(u.columns, limits, strict=True)), **scale)
    F = e.surface(sphere(50, len(u.rows)))
    effort = (S * F) @ u.G  # a moment stands divided by the length
    assert np.abs(np.linalg.norm(effort / limits, axis=1) - 1).max() < 1e-9


@every_case
def test_velocity_and_force_are_dual(name: str) -> None:
    c, of, scale = case(name)
    M = len(c.coefficients(of, order=1).columns)
    rates = np.linspace(0.5, 2.0, M)
    v = c.ellipsoid(of, rate_limits=rates, **scale)
    f = c.ellipsoid(of, kind="force", effort_limits=1 / rates, **scale)
    assert mismatch(v.semi_axes * f.semi_axes[::-1], np.ones(len(v.rows))) < 1e-13
    assert mismatch(np.abs(np.einsum("pk,pk->k", v.axes, f.axes[:, ::-1])), np.ones(len(v.rows))) < 1e-13
    assert mismatch(v.matrix, f.matrix) < 1e-14
    assert abs(v.manipulability * f.manipulability - 1) < 1e-13
    assert abs(v.condition / f.condition - 1) < 1e-13
    d = sphere(20, len(v.rows))
    assert mismatch(v.support(d) * f.along(d), np.ones(20)) < 1e-12
    assert mismatch(f.support(d) * v.along(d), np.ones(20)) < 1e-12


@every_case
def test_inertia_equals_that_of_the_operational_space(name: str) -> None:
    c, of, scale = case(name)
    s, e, S = (
        c.operational_space(of),
        c.ellipsoid(of, kind="inertia", **scale),
        scales(c, of, scale.get("length")),
    )
    Lambda = s.Lambda / S / S[:, None]
    limit = 1e-13 * np.linalg.cond(c.dynamics().I) * e.condition**2
    assert mismatch(e.masses, np.linalg.eigvalsh(Lambda)) < limit
    assert mismatch(e.matrix, np.linalg.inv(Lambda)) < limit
    d = sphere(20, len(s.rows))
    assert mismatch(1 / e.support(d) ** 2, s.mass(S * d) / ((S * d) ** 2).sum(axis=1)) < limit
    assert mismatch(1 / e.along(d) ** 2, np.einsum("dp,pr,dr->d", d, Lambda, d)) < limit
    # along its own axes both ways to a mass agree, and are the principal one
    assert mismatch(1 / e.support(e.axes.T) ** 2, e.masses) < limit
    assert mismatch(1 / e.along(e.axes.T) ** 2, e.masses) < limit
    # on the surface are velocities of a kinetic energy of a half
    u = e.surface(sphere(20, len(s.rows))) / S
    assert np.abs(2 * c.dynamics().kinetic_energy(u @ s.inverse.T) - 1).max() < limit


@pytest.mark.parametrize("moving", [False, True], ids=["rest", "moving"])
@every_case
def test_a_sphere_of_efforts_fills_the_acceleration_ellipsoid(name: str, moving: bool) -> None:
    c, of, scale = case(name)
    d, u, S = c.dynamics(), c.coefficients(of), scales(c, of, scale.get("length"))
    M = len(u.columns)
    qd = np.random.default_rng(3).normal(size=M) if moving else np.zeros(M)
    limits = np.linspace(3.0, 1.0, M)
    given = {"effort_limits": limits, "qd": qd if moving else None, **scale}
    e, free = (
        c.ellipsoid(of, kind="acceleration", **given),
        c.ellipsoid(of, kind="acceleration", load=False, **given),
    )
    T = limits * sphere(300, M)
    udd = S * u.acceleration(np.broadcast_to(qd, T.shape), d.forward_dynamics(qd, T))
    assert (e.level(udd) < 1 + 1e-8).all()
    assert mismatch(e.center, S * u.acceleration(qd, d.forward_dynamics(qd, np.zeros(M)))) < 1e-12
    # efforts beyond what holds the load
    beyond = S * u.acceleration(np.broadcast_to(qd, T.shape), d.forward_dynamics(qd, T - d.load))
    assert (free.level(beyond) < 1 + 1e-8).all()
    shift = S * (u.G @ np.linalg.solve(d.I, d.load))
    assert mismatch(e.center - free.center, shift) < 1e-10
    assert moving or not free.center.any()
    assert np.array_equal(e.semi_axes, free.semi_axes)
    # each point of the surface by the least efforts, which are on the sphere
    A = S[:, None] * u.G @ np.linalg.inv(d.I) * limits
    x = e.surface(sphere(30, len(u.rows))) - e.center
    least = (np.linalg.pinv(A) @ x[..., None])[..., 0]
    assert np.abs(np.linalg.norm(least, axis=1) - 1).max() < 1e-8


@every_case
def test_axes_are_orthonormal_and_in_order(name: str) -> None:
    c, of, scale = case(name)
    for kind in KINDS:
        e = c.ellipsoid(of, kind=kind, **scale)
        P = len(e.rows)
        assert mismatch(e.axes.T @ e.axes, np.eye(P)) < 1e-13
        assert (np.diff(e.semi_axes) <= 0).all()
        assert (e.axes[np.abs(e.axes).argmax(axis=0), range(P)] > 0).all()
        squares = e.semi_axes**2 if kind != "force" else e.semi_axes**-2.0
        assert mismatch(e.axes * squares @ e.axes.T, e.matrix) < 1e-12
        assert mismatch(e.along(e.axes.T), e.semi_axes) < 1e-9
        assert mismatch(e.support(e.axes.T), e.semi_axes) < 1e-9
        assert abs(e.condition - e.semi_axes[0] / e.semi_axes[-1]) < 1e-12 * e.condition
        assert e.rank == P


def test_in_other_coordinates_inertia_is_the_same_and_velocity_is_not() -> None:
    """Of a platform measured by itself the velocity ellipsoid is a ball."""
    c, of = kic.load("gough-stewart").at(), ["platform.x", "platform.y", "platform.z"]
    legs, own = (c.ellipsoid(of, kind="inertia", wrt=w) for w in (None, "platform"))
    assert mismatch(own.masses, legs.masses) < 1e-12
    with raises(kic.InputError, units=("m", "m", "m", "rad", "rad", "rad")):
        c.ellipsoid(of, wrt="platform")
    rates = dict.fromkeys(["platform.x", "platform.y", "platform.z"], 2.0)
    turns = dict.fromkeys(["platform.wx", "platform.wy", "platform.wz"], 1.0)
    e = c.ellipsoid(of, wrt="platform", rate_limits=rates | turns)
    assert mismatch(e.semi_axes, np.full(3, 2.0)) < 1e-13


# singular tasks, batches, masks


def test_singular_tasks_are_flat_or_without_bound() -> None:
    c = arm(1.0, 1.0).at([[0.3, 1.5], [0.3, 0.0], [0.3, np.pi]])
    across, out = np.array([-np.sin(0.3), np.cos(0.3)]), np.array([np.cos(0.3), np.sin(0.3)])
    v, f, i, a = (c.ellipsoid(TIP, kind=kind) for kind in KINDS)
    for e in (v, i, a):
        assert e.rank.tolist() == [2, 1, 1]
        assert (e.semi_axes[1:, 1] == 0).all()
        assert (e.manipulability[1:] == 0).all()
        assert (e.volume[1:] == 0).all()
        assert np.isinf(e.condition[1:]).all()
        assert (e.isotropy[1:] == 0).all()
        assert (e.along(out)[1:] == 0).all()
        assert mismatch(e.along(across)[1:], e.semi_axes[1:, 0]) < 1e-14
        assert (e.support(out)[1:] < 1e-14).all()
        assert np.isinf(e.level(e.center + out)[1:]).all()
        assert mismatch(e.level(e.center + e.semi_axes[:, :1] * across)[1:], np.ones(2)) < 1e-14
        assert np.isfinite(e.surface(sphere(5, 2))).all()
    assert np.isinf(i.masses[1:, 1]).all()
    assert mismatch(v.semi_axes[1:, 0], np.array([np.sqrt(5), 1.0])) < 1e-14
    # outwards any force is held, in line with both sticks
    assert np.isinf(f.semi_axes[1:, 0]).all()
    assert np.isinf(f.along(out)[1:]).all()
    assert np.isinf(f.support(out)[1:]).all()
    assert np.isinf(f.manipulability[1:]).all()
    assert (f.isotropy[1:] == 0).all()
    assert np.isfinite(f.along(across)).all()
    assert (f.level(1e9 * out)[1:] == 0).all()
    assert np.isnan(f.surface(sphere(5, 2))).any(axis=(1, 2)).tolist() == [False, True, True]
    assert np.isfinite(f.matrix).all()
    assert "is flat" in c.ellipsoid("tip").summary().text()
    assert "is unbounded" in c.ellipsoid("tip", kind="force").summary().text()


def test_more_rows_than_dof() -> None:
    """The third row of a planar arm, and three rows that two coordinates move: flat, and no error."""
    c = kic.load("puma560").at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
    e = c.ellipsoid("link6", length=0.2)
    assert e.rank == 6
    both = c.ellipsoid(["link6", "tool"], length=0.2)
    assert both.semi_axes.shape == (9,)
    assert both.rank == 6
    assert (both.semi_axes[6:] == 0).all()
    assert arm(1, 1).at([0.2, 1.0]).ellipsoid("tip", kind="inertia").rank == 2


def test_mechanism_without_dof() -> None:
    m = kic.load("four-bar")
    still = replace(m, distances=[kic.Distance("rod", ("tip", "nail"), fixed=True)],
                    points=(*m.points, kic.Point("nail", "ground", at=(9.0, 9.0, 0.0))),
                    coordinates=[])  # fmt: skip
    v = still.at().ellipsoid(TIP)
    assert (v.semi_axes == 0).all()
    assert (v.isotropy, v.condition, v.rank) == (0, np.inf, 0)
    assert np.isinf(still.at().ellipsoid(TIP, kind="force").semi_axes).all()


def test_rates_may_be_a_batch_of_their_own() -> None:
    c = arm(1, 1).at([0.2, 1.0])
    qd = np.random.default_rng(0).normal(size=(4, 1, 2))
    e = c.ellipsoid(TIP, kind="acceleration", qd=qd)
    assert e.batch == (4, 1)
    assert e.axes.shape == (4, 1, 2, 2)
    one = c.ellipsoid(TIP, kind="acceleration", qd=qd[2, 0])
    assert mismatch(e.center[2, 0], one.center) < 1e-14
    assert np.array_equal(e.semi_axes[2, 0], one.semi_axes)


@pytest.mark.parametrize("kind", KINDS)
def test_members_that_coordinates_cannot_drive_are_masked(kind: str) -> None:
    folded = kic.load("horn-two-link").at([[0.3, 1.0], [0.3, 0.0]])
    with pytest.raises(kic.SingularError):
        folded.ellipsoid("elbow", kind=kind, wrt=TIP)
    e = folded.ellipsoid("elbow", kind=kind, wrt=TIP, failures="mask")
    assert np.isnan(e.semi_axes).ravel().tolist() == [False, True]
    assert e.rank.tolist()[1] == 0


# the gradient of the manipulability


@pytest.mark.parametrize("of", ["tip.x tip.y", "tip.x", "link2.wz link1.wz"])
def test_gradient_of_a_two_link_arm_by_complex_step(of: str) -> None:
    c = kic.load("horn-two-link").at([[0.3, 1.2], [-1.0, 2.0]])
    check_gradient(c, of.split(), {})


@pytest.mark.parametrize(
    "kinds", ["RRRR", "RRRRRRR", ["R", "spherical", "R"], ["spherical", "universal"]], ids=str
)
@pytest.mark.parametrize("group", [["x", "y", "z"], ["wx", "wy"], ["x", "wx"]], ids=" ".join)
def test_gradient_by_complex_step(kinds: list[str], group: list[str]) -> None:
    rng = np.random.default_rng(4)
    m = random_tree(rng, kinds)
    last = m.bodies[-1].name
    scale = {"length": 0.7} if group == ["x", "wx"] else {}
    check_gradient(random_posture(rng, m, (2,)), [f"{last}.{g}" for g in group], scale)


def test_gradient_with_limits_and_sliders() -> None:
    rng = np.random.default_rng(5)
    m = random_tree(rng, "RPRP")
    c = random_posture(rng, m)
    check_gradient(c, ["b3.x", "b3.y", "b3.wz"], {"length": 0.4, "rate_limits": [1.0, 0.3, 2.0, 0.5]})


def check_gradient(c: kic.Configuration, of: list[str], given: dict) -> None:
    S = scales(c, of, given.get("length"))
    R = np.array(given.get("rate_limits", 1.0))

    def w(x: kic.Configuration) -> np.ndarray:
        G = S[:, None] * x.coefficients(of, order=1).G * R
        return np.sqrt(np.linalg.det(G @ np.swapaxes(G, -1, -2)))

    assert mismatch(c.ellipsoid(of, **given).manipulability, w(c)) < 1e-12
    assert mismatch(c.ellipsoid(of, **given).gradient(), derivative(c, w)) < 1e-12


@pytest.mark.parametrize(("name", "of", "wrt"), [
    ("five-bar", "tip.x tip.y", None), ("gough-stewart", "platform.x platform.y", None),
    ("three-rrr", "tool.x tool.y", None), ("five-bar", "A E", "tip.x tip.y"),
])  # fmt: skip
def test_gradient_of_closed_mechanisms(name: str, of: str, wrt: str | None) -> None:
    """Compare with central differences of high order, through configurations that are solved again."""
    m = kic.load(name)
    c = m.at()
    chosen = wrt.split() if wrt else list(c.coordinates)
    own = np.array([float(c.value(x)) for x in chosen])
    got = c.ellipsoid(of.split(), wrt=wrt.split() if wrt else None).gradient()
    for k, x in enumerate(chosen):
        h = 5e-4 * max(1.0, abs(own[k]))
        w = []
        for step in OFFSETS:
            here = dict(zip(chosen, own + step * h * (np.arange(len(own)) == k), strict=True))
            moved = m.at(here, near=c)
            w.append(moved.ellipsoid(of.split(), wrt=wrt.split() if wrt else None).manipulability)
        assert abs(WEIGHTS @ w / h - got[k]) < 1e-8 * np.abs(got).max(), x


def test_gradient_points_to_better_configurations() -> None:
    """A redundant arm that follows it becomes more dexterous, step by step."""
    m, q, w = kic.load("panda"), np.array(CASES["panda"][0]), []
    for _ in range(20):
        c = m.at(q)
        w.append(float(c.ellipsoid("flange").manipulability))
        g = c.ellipsoid("flange").gradient()
        q = q + 0.02 * g / np.linalg.norm(g)
    assert (np.diff(w) > 0).all()


# invalid arguments


def test_rows_of_different_units_need_a_length() -> None:
    c = kic.load("gough-stewart").at()
    data = {"units": ("m", "m", "m", "rad", "rad", "rad")}
    with raises(kic.InputError, **data) as caught:
        c.ellipsoid("platform")
    assert caught.value.units == ("m", "m", "m", "rad", "rad", "rad")
    turning = ["platform.wx", "platform.wy", "platform.wz"]
    # a longer length makes turning count for more
    small, large = (c.ellipsoid(turning, length=x) for x in (0.1, 1.0))
    assert mismatch(10 * small.semi_axes, large.semi_axes) < 1e-14
    assert mismatch(c.ellipsoid(turning).semi_axes, large.semi_axes) < 1e-14


def test_coordinates_of_different_units_need_limits() -> None:
    c = kic.load("rrprrr").at()
    names, of = c.coordinates, [f"{c._model.description.points[-1].name}.x"]
    for kind, key in (
        ("velocity", "rate_limits"),
        ("force", "effort_limits"),
        ("acceleration", "effort_limits"),
    ):
        with raises(kic.InputError, units=("rad", "rad", "m", "rad", "rad", "rad")):
            c.ellipsoid(of, kind=kind)
        with raises(kic.InputError, key=key, missing=("B", "C", "D", "E", "F")) as e:
            c.ellipsoid(of, kind=kind, **{key: {names[0]: 1.0}})
        assert e.value.missing == names[1:]
    c.ellipsoid(of, kind="inertia")  # is measured by I*, which has units
    with raises(kic.UnknownNameError, name="nose"):
        c.ellipsoid(of, rate_limits={"nose": 1.0})
    for limits in (2.0, [1.0], [1.0] * 5 + [0.0], [1.0] * 5 + [np.inf], dict.fromkeys(names, "fast")):
        with raises(kic.InputError, key="rate_limits"):
            c.ellipsoid(of, rate_limits=limits)


def test_velocity_ellipsoid_needs_no_mass() -> None:
    m = kic.load("horn-two-link")
    bare = replace(m, bodies=tuple(replace(b, mass=None) for b in m.bodies))
    bare.at([0.3, 1.0]).ellipsoid(TIP)  # needs no mass


def test_the_gradient_keeps_the_coordinates_of_its_ellipsoid() -> None:
    c, wrt = kic.load("horn-two-link").at([0.3, 1.0]), ["shoulder", "elbow"]
    e, expected = c.ellipsoid(TIP, wrt=wrt), c.ellipsoid(TIP).gradient()
    wrt.reverse()
    for one in (e, c.ellipsoid(TIP, wrt=iter(["shoulder", "elbow"])), pickle.loads(pickle.dumps(e))):
        assert np.array_equal(one.gradient(), expected)


def test_condition_is_a_metric() -> None:
    c = kic.load("horn-two-link").at([[0.3, 1.0], [0.3, 0.0], [np.nan, 0.0]], failures="mask")
    found = kic.metrics.condition(*TIP)(c)
    assert np.array_equal(found, c.ellipsoid(TIP).condition, equal_nan=True)
    assert np.isinf(found[1])


def test_gradients_of_singular_tasks_are_masked() -> None:
    c = kic.load("horn-two-link").at([[0.3, 1.0], [0.3, 0.0]])
    assert np.isnan(c.ellipsoid(TIP, failures="mask").gradient(failures="mask")).tolist() == [
        [False] * 2,
        [True] * 2,
    ]


def test_summary_describes_the_result() -> None:
    c = kic.load("horn-two-link").at([0.0, np.pi / 2])
    text = (
        c.ellipsoid(TIP, kind="acceleration", effort_limits={"shoulder": 20.0, "elbow": 5.0}).summary().text()
    )
    for said in (
        "acceleration ellipsoid of tip.x, tip.y",
        "limits",
        "shoulder  20",
        "center",
        "manipulability",
        "isotropy",
    ):
        assert said in text, said
    assert "mass" in c.ellipsoid(TIP, kind="inertia").summary().text()
    assert "angular rows times 0.5" in c.ellipsoid(["link2.wx", "link2.wz"], length=0.5).summary().text()
    assert "center" not in c.ellipsoid(TIP).summary().text()
