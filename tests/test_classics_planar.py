"""Horn's planar arms: closed forms against reference numbers, the printed formulas and the general way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from sampling import mismatch, solved

import kic
from kic.classics import Annulus, ThreeLink, TwoLink, reachable, usable_radii

DATA = json.loads((Path(__file__).parent / "data" / "horn_planar.json").read_text(encoding="utf-8"))
CASES = DATA["cases"]
ERRATA = {erratum["id"]: erratum for erratum in DATA["errata"]}
EPS = np.finfo(float).eps
BATCHES = [(), (3,), (2, 1), (0,)]


def close(found, wanted, tolerance: float = 1e-12) -> None:
    assert mismatch(np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)) < tolerance


def turns(found, wanted) -> np.ndarray:
    """Differences of angles, but for full turns."""
    return np.abs(np.angle(np.exp(1j * (np.asarray(found) - np.asarray(wanted)))))


def random_arm(rng: np.random.Generator, kind: type, **more):
    """Sticks of any length and mass, some of them equal."""
    lengths = 10 ** rng.uniform(-0.7, 0.7, size=kind.size)
    if rng.random() < 0.3:
        lengths[1] = lengths[0]
    return kind(*lengths, *rng.uniform(0.2, 3, size=kind.size), **{"g": 9.81, **more})


# ------------------------------------------------------------------------- the reference numbers


def two_link_answers(arm: TwoLink, case: dict) -> dict:
    q, qd, qdd, told = case["q"], case["qd"], case["qdd"], case["outputs"]
    polar, given = arm.polar(q), told["statics"]
    forces = arm.inverse_statics(q)
    statics = {
        "F": given["F"],
        "T_in": given["T_in"],
        "T_from_F": arm.torques(q, given["F"]),
        "det": np.linalg.det(arm.statics(q)),
        "F_from_T_in": arm.force(q, given["T_in"]),
        "F_from_T1_only_unit": forces[:, 0],
        "F_from_T2_only_unit": forces[:, 1],
    }
    answers = common_answers(arm, q, qd, qdd)
    answers |= {
        "jacobian": arm.jacobian(q),
        "polar": {"r": polar[0], "theta": polar[1], "alpha": polar[1] - q[0]},
        "inverse_kinematics_branches": arm.inverse(arm.tip(q)),
        "cos_theta2_from_tip": np.cos(arm.inverse(arm.tip(q))[:, 1]).mean(),
        "statics": {key: statics[key] for key in given},
    }
    if "equal_links" in told:
        unit = arm.m1 * arm.l1**2 / 2
        weightless = replace(arm, g=0.0)
        answers["equal_links"] = {
            "sensitivity_matrix": arm.inertia(q) / unit,
            "sensitivity_det": np.linalg.det(arm.inertia(q)) / unit**2,
            "inverse_matrix": arm.inverse_inertia(q) * unit,
            "qdd_from_T_in_no_gravity": weightless.acceleration(q, qd, told["equal_links"]["T_in"]),
            "T_in": told["equal_links"]["T_in"],
            "half_angle_tip": polar[0] * np.array([np.cos(polar[1]), np.sin(polar[1])]),
        }
    return answers


def three_link_answers(arm: ThreeLink, case: dict) -> dict:
    q, qd, qdd, told = case["q"], case["qd"], case["qdd"], case["outputs"]
    given = told["statics"]
    answers = common_answers(arm, q, qd, qdd)
    answers |= {
        "tip_velocity": (arm.jacobian(q) @ qd)[:2],
        "phi": arm.pose(q)[2],
        "joint2": arm.wrist(arm.pose(q)),
        "inverse_kinematics_branches": arm.inverse(arm.pose(q)),
        "statics": {
            "F_and_torque": given["F_and_torque"],
            "T_in": given["T_in"],
            "matrix": arm.statics(q),
            "T_from_F": arm.torques(q, given["F_and_torque"]),
            "det": np.linalg.det(arm.jacobian(q)),
            "F_from_T_in": arm.force(q, given["T_in"]),
            "inverse_matrix": arm.inverse_statics(q),
        },
    }
    if "equal_sticks" in told:
        answers["equal_sticks"] = {"sensitivity_matrix": arm.inertia(q) / (arm.m1 * arm.l1**2 / 2)}
    return answers


def common_answers(arm, q, qd, qdd) -> dict:
    return {
        "tip": arm.tip(q),
        "tip_velocity": arm.jacobian(q) @ qd,
        "gravity_torque": arm.gravity(q),
        "mass_matrix": arm.inertia(q),
        "velocity_torque": arm.velocity_torque(q, qd),
        "tau": arm.effort(q, qd, qdd),
        "kinetic_energy": arm.dynamics(q).kinetic_energy(qd),
        "potential_energy": arm.potential_energy(q),
    }


def compare(found: dict, told: dict) -> None:
    assert found.keys() == told.keys()
    for key, value in told.items():
        compare(found[key], value) if isinstance(value, dict) else close(found[key], value)


@pytest.mark.parametrize("name", [name for name in CASES if "parameters" in CASES[name]])
def test_reference_cases(name: str) -> None:
    system = CASES[name]
    two = "two_link" in name
    arm = (TwoLink if two else ThreeLink)(**system["parameters"])
    for case in system["cases"]:
        if "q" in case:
            compare((two_link_answers if two else three_link_answers)(arm, case), case["outputs"])
        else:
            assert arm.solutions([case["x"], case["y"]]) == len(case["solutions"]) == 1
            for branch in arm.inverse([case["x"], case["y"]]):
                close(branch, case["solutions"][0])
    if "workspace" in system:
        ring = arm.workspace
        found = {"r_inner": ring.inner, "r_outer": ring.outer, "width": ring.width}
        compare(found | {"mean_radius": ring.mean_radius}, system["workspace"])
    if "usable_workspace" in system:
        close([(r.inner, r.outer) for r in arm.usable_workspace], system["usable_workspace"])


@pytest.mark.parametrize("case", CASES["B6_usable_workspace"]["cases"], ids=lambda case: case["note"])
def test_reference_usable_workspaces(case: dict) -> None:
    rings = ThreeLink(case["l1"], case["l2"], case["l3"]).usable_workspace
    close([(ring.inner, ring.outer) for ring in rings], case["usable_radii"])


# ------------------------------------------------------------- the printed formulas, letter by letter


def test_equal_sticks_have_horn_s_equations() -> None:
    """Pages 17, 19 and 29, in units of m l²/2, as corrected."""
    rng = np.random.default_rng(1)
    l, m = 0.7, 1.9
    unit = m * l**2 / 2
    q, w, a = rng.normal(size=(3, 50, 3))
    c2, s2, c3, s3 = np.cos(q[:, 1]), np.sin(q[:, 1]), np.cos(q[:, 2]), np.sin(q[:, 2])
    c23, s23 = np.cos(q[:, 1] + q[:, 2]), np.sin(q[:, 1] + q[:, 2])
    (w1, w2, w3), (a1, a2, _) = w.T, a.T
    two = TwoLink(l, l, m, m)
    T1 = 2 * (5 / 3 + c2) * a1 + (2 / 3 + c2) * a2 - s2 * w2 * (2 * w1 + w2)
    T2 = (2 / 3 + c2) * a1 + 2 / 3 * a2 + s2 * w1**2
    close(two.effort(q[:, :2], w[:, :2], a[:, :2]), np.stack([T1, T2], -1) * unit)
    bracket = [[2 / 3 + 0 * c2, -(2 / 3 + c2)], [-(2 / 3 + c2), 2 * (5 / 3 + c2)]] / (16 / 9 - c2**2)
    close(two.inverse_inertia(q[:, :2]), np.moveaxis(bracket, -1, 0) / unit)
    three = ThreeLink(l, l, l, m, m, m)
    M12, M13, M23 = 10 / 3 + 3 * c2 + c23 + 2 * c3, 2 / 3 + c23 + c3, 2 / 3 + c3
    M = [[2 * (4 + 3 * c2 + c23 + c3), M12, M13], [M12, 2 * (5 / 3 + c3), M23], [M13, M23, 2 / 3 + 0 * c2]]
    close(three.inertia(q), np.moveaxis(np.array(M), -1, 0) * unit)
    V1 = -w1 * w2 * (6 * s2 + 2 * s23) - w2**2 * (3 * s2 + s23) - (w2 + w1) * w3 * (2 * s23 + 2 * s3)
    V2 = w1**2 * (3 * s2 + s23) - 2 * s3 * w2 * w3 - s3 * w3**2 - 2 * s3 * w3 * w1
    V3 = w1**2 * (s23 + s3) + 2 * s3 * w1 * w2 + s3 * w2**2
    close(three.velocity_torque(q, w), np.stack([V1 - w3**2 * (s23 + s3), V2, V3], -1) * unit)


def test_weights_and_statics_as_printed() -> None:
    """Pages 11 to 13, 24 to 26, for unequal sticks."""
    rng = np.random.default_rng(2)
    arm = random_arm(rng, ThreeLink)
    two = arm.first_two
    l1, l2, l3, m1, m2, m3, g = arm.l1, arm.l2, arm.l3, arm.m1, arm.m2, arm.m3, arm.g
    q, F, T = rng.normal(size=(3, 50, 3))
    c1, c12, c123 = np.cos(np.cumsum(q, -1)).T
    s1, s12, _ = np.sin(np.cumsum(q, -1)).T
    s2, s3, s23 = np.sin(q[:, 1]), np.sin(q[:, 2]), np.sin(q[:, 1] + q[:, 2])
    weight3 = g * m3 * l3 / 2 * c123
    weight2 = weight3 + g * (m2 / 2 + m3) * l2 * c12
    weight1 = weight2 + g * (m1 / 2 + m2 + m3) * l1 * c1
    close(arm.gravity(q), np.stack([weight1, weight2, weight3], -1))
    X, Y = two.tip(q[:, :2]).T
    T1, T2, T3 = T.T
    u, v = F[:, 0], F[:, 1]
    close(two.torques(q[:, :2], F[:, :2]), np.stack([X * v - Y * u, l2 * c12 * v - l2 * s12 * u], -1))
    span = (l1 * l2 * s2)[:, None]
    close(
        two.force(q[:, :2], T[:, :2]), np.stack([l2 * c12 * T1 - X * T2, l2 * s12 * T1 - Y * T2], -1) / span
    )
    rows = [
        [l2 * c12, -X, l1 * c1],
        [l2 * s12, -Y, l1 * s1],
        [l2 * l3 * s3, -(l1 * l3 * s23 + l2 * l3 * s3), l1 * l2 * s2 + l1 * l3 * s23],
    ]
    inverse = np.moveaxis(np.array(rows), -1, 0) / span[..., None]
    close(arm.inverse_statics(q), inverse)
    close(arm.force(q, np.stack([T1, T2, T3], -1)), np.einsum("bij,bj->bi", inverse, T))
    close(np.linalg.det(arm.statics(q)), span[:, 0])


def test_polar_form_and_both_ways_back_as_printed() -> None:
    """Pages 5 to 9 and 21: radius, tangents, sine and cosine of theta1, half angles of equal links."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        arm = random_arm(rng, TwoLink)
        l1, l2 = arm.l1, arm.l2
        q = rng.uniform(-3, 3, size=(40, 2))
        c2, s2 = np.cos(q[:, 1]), np.sin(q[:, 1])
        x, y = arm.tip(q).T
        r, theta = arm.polar(q).T
        close(r**2, l1**2 + 2 * l1 * l2 * c2 + l2**2)
        assert (turns(theta, q[:, 0] + np.arctan2(l2 * s2, l1 + l2 * c2)) < 1e-12).all()
        close(np.stack([r * np.cos(theta), r * np.sin(theta)]), np.stack([x, y]))
        for branch in arm.inverse(arm.tip(q)):
            close(np.cos(branch[:, 1]), (x**2 + y**2 - l1**2 - l2**2) / (2 * l1 * l2), 1e-11)
            s2, c2 = np.sin(branch[:, 1]), np.cos(branch[:, 1])
            close(l1 + l2 * c2, (x**2 + y**2 + l1**2 - l2**2) / (2 * l1), 1e-11)
            close(np.sin(branch[:, 0]) * r**2, (l1 + l2 * c2) * y - l2 * s2 * x, 1e-11)
            close(np.cos(branch[:, 0]) * r**2, (l1 + l2 * c2) * x + l2 * s2 * y, 1e-11)
    equal = TwoLink(0.8, 0.8)
    half = q[:, 1] / 2
    tip = 1.6 * np.cos(half)[:, None] * np.stack([np.cos(q[:, 0] + half), np.sin(q[:, 0] + half)], -1)
    close(equal.tip(q), tip)
    r, theta = equal.polar(q).T
    close(r, np.hypot(*tip.T))
    assert (turns(theta, q[:, 0] + half) < 1e-12).all()


def test_half_angles_keep_the_digits_that_cosines_lose() -> None:
    """Equal links near the base: the cosine of theta2 forgets where the tip was, half angles do not."""
    arm = TwoLink(1.0, 1.0)
    tip = 1e-9 * np.array([np.cos(0.4), np.sin(0.4)])
    found = arm.inverse(tip)[0]
    assert np.abs(arm.tip(found) - tip).max() < 20 * EPS
    cosine = (tip @ tip - 2) / 2
    forgetful = np.array([0.0, np.arccos(cosine)])
    assert abs(np.hypot(*arm.tip(forgetful)) - 1e-9) > 1e-10
    folded = np.array([0.3, np.pi - 1e-7])
    r, theta = arm.polar(folded)
    assert abs(theta - (0.3 + folded[1] / 2)) < 20 * EPS
    assert r == pytest.approx(2 * np.sin((np.pi - folded[1]) / 2), rel=1e-8)
    plain = np.sqrt(2 + 2 * np.cos(folded[1]))
    assert abs(plain / r - 1) > 1e-4


# ------------------------------------------------------------------------------- the general way


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("kind", [TwoLink, ThreeLink])
def test_against_the_general_way(kind: type, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    size = kind.size
    place = ["tip.x", "tip.y"] if size == 2 else ["tip.x", "tip.y", "link3.angle"]
    for _ in range(4):
        arm = random_arm(rng, kind, g=rng.normal())
        q, qd, qdd, torques, force = rng.uniform(-3, 3, size=(5, *batch, size))
        c = arm.mechanism().at(q)
        assert c.coordinates == arm.coordinates == arm.dynamics(q).coordinates
        rows = c.coefficients(place, order=1)
        found = arm.tip(q) if size == 2 else arm.pose(q)
        assert mismatch(found, rows.values) < 1e-12
        assert mismatch(arm.jacobian(q), rows.G) < 1e-12
        d, own = c.dynamics(), arm.dynamics(q)
        for letter in ("I", "P", "load", "damping"):
            assert mismatch(getattr(own, letter), getattr(d, letter)) < 1e-12, letter
        assert mismatch(arm.inertia(q), d.I) < 1e-12
        assert mismatch(arm.gravity(q), -d.load) < 1e-12
        assert mismatch(arm.effort(q, qd, qdd), d.effort(qd, qdd)) < 1e-12
        assert mismatch(arm.velocity_torque(q, qd), np.einsum("...kab,...a,...b->...k", d.P, qd, qd)) < 1e-12
        assert mismatch(arm.acceleration(q, qd, torques), d.acceleration(qd, torques)) < solved(d.I)
        # what the tip exerts comes back upon it
        held = replace(
            replace(arm, g=0.0).mechanism(),
            forces=(kic.Force("push", "tip", (0, 0, 0)),),
            moments=(kic.Moment("twist", f"link{size}", (0, 0, 0)),),
        ).at(q)
        push, twist = np.zeros((2, *batch, 3))
        push[..., :2] = -force[..., :2]
        if size == 3:
            twist[..., 2] = -force[..., 2]
        rest = np.zeros(size)
        loaded = held.dynamics(applied={"push": push, "twist": twist}).effort(rest, rest)
        assert mismatch(arm.torques(q, force), loaded) < 1e-12
        assert mismatch(arm.force(q, arm.torques(q, force)), force) < solved(rows.G)
        if size == 2:
            assert mismatch(arm.inverse_inertia(q), np.linalg.inv(d.I)) < solved(d.I)


@pytest.mark.parametrize("kind", [TwoLink, ThreeLink])
def test_derivatives_by_complex_step(kind: type) -> None:
    rng = np.random.default_rng(5)
    arm, step = random_arm(rng, kind), 1e-40
    q = rng.normal(size=(6, kind.size))
    along = q + 1j * step * np.eye(kind.size)[:, None]
    close(np.moveaxis(arm.tip(along).imag / step, 0, -1), arm.jacobian(q)[:, :2])
    close(np.moveaxis(arm.potential_energy(along).imag / step, 0, -1), arm.gravity(q))
    close(np.moveaxis(arm.inertia(along).imag / step, 0, -1), arm.dynamics(q).inertia_gradient())


def test_symbols_give_the_formulas_themselves() -> None:
    t1, t2, t3 = sp.symbols("theta1:4", real=True)
    arm = ThreeLink(1.0, 1.0, 1.0, 2.0, 2.0, 2.0, g=1.0)
    I = arm.inertia([t1, t2, t3])
    wanted = 2 * (4 + 3 * sp.cos(t2) + sp.cos(t2 + t3) + sp.cos(t3))
    assert sp.simplify(sp.nsimplify(I[0, 0] - wanted)) == 0
    assert not any(t1 in sp.sympify(x).free_symbols for x in I.flat)
    assert sp.simplify(sp.diff(arm.potential_energy([t1, t2, t3]), t2) - arm.gravity([t1, t2, t3])[1]) == 0
    push = arm.inverse_statics([t1, t2, t3]) @ arm.statics([t1, t2, t3])
    assert sp.simplify(sp.nsimplify(sp.Matrix(push), rational=True)) == sp.eye(3)
    two = arm.first_two
    whole = two.inverse_inertia([t1, t2]) @ two.inertia([t1, t2])
    assert sp.simplify(sp.nsimplify(sp.Matrix(whole), rational=True)) == sp.eye(2)


def test_nothing_but_the_weight_depends_on_the_first_angle() -> None:
    arm = TwoLink(1.0, 0.6, 1.3, 0.8, g=9.81)
    assert (arm.inertia([1e9, 0.7]) == arm.inertia([0.0, 0.7])).all()
    assert (arm.dynamics([1e9, 0.7]).P == arm.dynamics([0.0, 0.7]).P).all()
    assert arm.polar([1e3, 0.7])[0] == arm.polar([0.0, 0.7])[0]


@pytest.mark.parametrize(
    ("arm", "name"),
    [(TwoLink(1, 1, 1, 1, 9.81), "horn-two-link"), (ThreeLink(1, 1, 1, 1, 1, 1, 9.81), "horn-three-link")],
)
def test_model_files_are_these_arms(arm, name: str) -> None:
    drawn, shipped = arm.mechanism(), kic.load(name)
    for part in ("bodies", "joints", "points", "distances", "gravity"):
        assert getattr(drawn, part) == getattr(shipped, part)


def test_an_arm_without_masses_still_moves() -> None:
    c = TwoLink(1.0, 0.5).mechanism().at([0.2, 0.9])
    close(c.value("tip")[:2], TwoLink(1.0, 0.5).tip([0.2, 0.9]))
    with pytest.raises(kic.InertiaError, match=r"link1 \(mass\)"):
        c.dynamics()


# ------------------------------------------------------------------------------------ the way back


@pytest.mark.parametrize("batch", BATCHES)
def test_both_branches_come_back(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    for kind in (TwoLink, ThreeLink):
        for _ in range(10):
            arm = random_arm(rng, kind)
            q = rng.uniform(-np.pi, np.pi, size=(*batch, kind.size))
            there = arm.tip(q) if kind is TwoLink else arm.pose(q)
            branches = arm.inverse(there)
            assert branches.shape == (2, *batch, kind.size)
            assert (np.abs(branches) <= np.pi).all()
            assert (branches[0, ..., 1] >= 0).all()
            assert (branches[1, ..., 1] <= 0).all()
            assert (arm.solutions(there) == 2).all()
            length = sum(arm.lengths)
            for branch in branches:
                again = arm.tip(branch) if kind is TwoLink else arm.pose(branch)
                assert (np.abs(again - there)[..., :2] < 100 * EPS * length).all()
                assert (turns(again[..., 2:], there[..., 2:]) < 200 * EPS).all()
            own = np.where(q[..., 1:2] >= 0, branches[0], branches[1])
            # as good as the elbow is bent
            assert (turns(own, q).max(axis=-1) * np.abs(np.sin(q[..., 1])) < 400 * EPS).all()


# radii from close to the inner to close to the outer boundary of a ring
SHARES = np.array([1e-4, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999])
LINKS = [(0.7, 0.45), (0.5, 0.5), (0.4, 0.9)]


def rings(two: TwoLink) -> tuple[np.ndarray, np.ndarray]:
    """Places (9, 7, 2) of the end of link 2 all over its ring, and others near by that are well inside."""
    inside = 0.05 + 0.9 * SHARES
    angle = np.linspace(-3, 3, 7)
    ways = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    first, second = (two.workspace.inner + share * two.workspace.width for share in (SHARES, inside))
    return first[:, None, None] * ways, second[:, None, None] * ways


def as_sure_as_it_can_be(arm, found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal but for what the condition of the posture makes of rounding."""
    condition = np.linalg.cond(arm.jacobian(wanted))
    assert (turns(found, wanted).max(axis=-1) < np.maximum(1e-12, 1000 * EPS * condition)).all()


@pytest.mark.parametrize("lengths", LINKS, ids=repr)
def test_over_the_whole_workspace_as_the_general_solver(lengths: tuple[float, float]) -> None:
    """Rings of tips from close to the inner to close to the outer boundary: the same two postures."""
    arm = TwoLink(*lengths)
    m, (tips, inside) = arm.mechanism(), rings(arm)
    branches = arm.inverse(tips)
    solved = m.at({"tip.x": tips[..., 0], "tip.y": tips[..., 1]}, near=m.at(arm.inverse(inside)))
    as_sure_as_it_can_be(arm, solved.phi, branches)


@pytest.mark.parametrize("lengths", LINKS, ids=repr)
@pytest.mark.parametrize("l3", [0.3, 1.4])
def test_poses_over_the_whole_workspace_as_the_general_solver(
    lengths: tuple[float, float], l3: float
) -> None:
    """The wrist all over its ring, the last link in every direction: the same two postures."""
    arm = ThreeLink(*lengths, l3)
    m, (wrists, inside) = arm.mechanism(), rings(arm.first_two)
    phi = np.linspace(-3, 3, 5)

    def poses(places: np.ndarray) -> np.ndarray:
        ends = places[:, :, None] + l3 * np.stack([np.cos(phi), np.sin(phi)], axis=-1)
        return np.concatenate([ends, np.broadcast_to(phi[:, None], (*ends.shape[:-1], 1))], axis=-1)

    branches = arm.inverse(poses(wrists))
    near = m.at(arm.inverse(poses(inside)))
    x, y, asked = np.moveaxis(poses(wrists), -1, 0)
    # the angle is one of whole turns, too: ask for that of the start
    begun = near.value("link3.angle")
    angle = begun + np.angle(np.exp(1j * (asked - begun)))
    solved = m.at({"tip.x": x, "tip.y": y, "link3.angle": angle}, near=near)
    as_sure_as_it_can_be(arm, solved.phi, branches)


@pytest.mark.parametrize("arm", [TwoLink(0.7, 0.45), TwoLink(0.45, 0.7), TwoLink(0.5, 0.5)], ids=repr)
def test_as_many_postures_as_a_search_finds(arm: TwoLink) -> None:
    """Within, on either boundary, beyond: two, one, none; and at the base of equal links, any number."""
    m, ring = arm.mechanism(), arm.workspace
    way = np.array([np.cos(0.7), np.sin(0.7)])
    for radius, count in ((ring.mean_radius, 2), (ring.outer, 1), (ring.inner, 1), (ring.outer * 1.01, 0)):
        tip = radius * way
        inputs = {"tip.x": tip[0], "tip.y": tip[1]}
        if not radius:
            assert np.isinf(arm.solutions(tip))
            for shoulder in (-1.0, 0.3):  # folded, however the shoulder stands
                assert np.abs(m.at([shoulder, np.pi]).value("tip")[:2]).max() < 20 * EPS
            continue
        assert arm.solutions(tip) == count
        if not count:
            with pytest.raises(kic.PostureError):
                m.assemblies(inputs, starts=16)
            with pytest.raises(kic.PostureError, match="inwards"):
                arm.inverse(tip)
            continue
        found = m.assemblies(inputs, starts=32)
        assert len(found.hits) == count
        assert found.singular.all() == (count == 1)
        loose = 1e-3 if count == 1 else 1e-9  # at a boundary a search finds half of the digits
        for branch in arm.inverse(tip):
            assert turns(found.phi, branch).max(axis=-1).min() < loose
        assert (arm.inverse(tip)[0] == arm.inverse(tip)[1]).all() == (count == 1)


@pytest.mark.parametrize("arm", [ThreeLink(0.7, 0.45, 0.3), ThreeLink(0.45, 0.7, 1.4)], ids=repr)
def test_as_many_poses_as_a_search_finds(arm: ThreeLink) -> None:
    """The wrist within its ring, on either boundary, and beyond: two, one, none."""
    m, ring, phi = arm.mechanism(), arm.first_two.workspace, 0.9
    last = arm.l3 * np.array([np.cos(phi), np.sin(phi)])
    for radius, count in ((ring.mean_radius, 2), (ring.outer, 1), (ring.inner, 1), (ring.outer * 1.01, 0)):
        x, y = radius * np.array([np.cos(0.7), np.sin(0.7)]) + last
        assert arm.solutions([x, y, phi]) == count
        inputs = {"tip.x": x, "tip.y": y, "link3.angle": phi}
        if not count:
            with pytest.raises(kic.PostureError):
                m.assemblies(inputs, starts=16)
            continue
        found = m.assemblies(inputs, starts=32)
        assert len(found.hits) == count
        assert found.singular.all() == (count == 1)
        loose = 1e-3 if count == 1 else 1e-9  # at a boundary a search finds half of the digits
        for branch in arm.inverse([x, y, phi]):
            assert turns(found.phi, branch).max(axis=-1).min() < loose


def test_boundaries_are_met_within_rounding() -> None:
    """Stretched and folded postures of arms of all proportions are one solution each, and exactly so."""
    rng = np.random.default_rng(7)
    for kind in (TwoLink, ThreeLink):
        for _ in range(200):
            lengths = 10 ** rng.uniform(-2, 2, size=kind.size)
            arm = kind(*lengths)
            q = rng.uniform(-np.pi, np.pi, size=(50, kind.size))
            q[:, 1] = rng.choice([0, np.pi], size=50)
            there = arm.tip(q) if kind is TwoLink else arm.pose(q)
            assert (arm.solutions(there) == 1).all()
            one, other = arm.inverse(there)
            assert (one[:, 1] == q[:, 1]).all()
            np.testing.assert_array_equal(one, other)
    # a thousandth of a millionth further is out of reach, or within
    arm = TwoLink(0.7, 0.45)
    steps = np.array([-1e-9, 1e-9])
    assert arm.solutions(np.stack([1.15 + steps, 0 * steps], -1)).tolist() == [2, 0]
    assert arm.solutions(np.stack([0.25 + steps, 0 * steps], -1)).tolist() == [0, 2]


def test_masked_members_are_nan() -> None:
    arm = TwoLink(1.0, 1.0)
    tips = np.array([[[1.0, 0.5]], [[3.0, 0.0]], [[0.0, 0.0]]])
    branches = arm.inverse(tips, failures="mask")
    assert np.isnan(branches[:, 1:]).all()
    close(branches[:, 0], arm.inverse(tips[0]))
    poses = np.array([[1.0, 0.5, 0.2], [9.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    three = ThreeLink(1.0, 1.0, 0.5)
    assert three.solutions(poses).tolist() == [2, 0, np.inf]
    assert np.isnan(three.inverse(poses, failures="mask")[:, 1:]).all()


# ------------------------------------------------------------------------------------- the reach


def test_reach_is_what_the_links_span() -> None:
    """Brute force over all elbows, two and three links: least and largest radius."""
    rng = np.random.default_rng(8)
    fine = np.linspace(-np.pi, np.pi, 181)
    for _ in range(20):
        two, three = random_arm(rng, TwoLink), random_arm(rng, ThreeLink)
        r = two.polar(np.stack([0 * fine, fine], -1))[:, 0]
        assert (r.min(), r.max()) == pytest.approx((two.workspace.inner, two.workspace.outer), abs=1e-12)
        assert two.workspace.width == pytest.approx(2 * min(two.lengths))
        assert two.workspace.mean_radius == pytest.approx(max(two.lengths))
        elbows = np.stack(np.meshgrid([0.0], fine, fine), -1).reshape(-1, 3)
        r = np.hypot(*three.tip(elbows).T)
        coarse = 0.02 * sum(three.lengths)
        assert r.max() == pytest.approx(three.workspace.outer)
        assert three.workspace.inner - 1e-12 <= r.min() < three.workspace.inner + coarse
    assert reachable(3.0, 1.0, 1.0) == Annulus(1.0, 5.0)
    assert reachable(1.0, 1.0, 1.5) == Annulus(0.0, 3.5)


def proportions(rng: np.random.Generator, count: int) -> np.ndarray:
    """Link lengths (3, count): random ones, and all the edges at which the rule changes."""
    l1, l2, l3 = 10 ** rng.uniform(-0.5, 0.5, size=(3, count))
    kind = np.arange(count) % 8
    l2 = np.where(kind >= 6, l1, l2)
    edges = [l3, np.abs(l1 - l2), np.minimum(l1, l2), np.maximum(l1, l2), l1 + l2, (l1 + l2) * 1.1]
    l3 = np.choose(np.minimum(kind, 6), [*edges, l3])
    return np.stack([l1, l2, l3])


def sampled_radii(l: np.ndarray) -> np.ndarray:
    """Tip radii (count, D) all over the reach, and close to either side of everything that may be an edge."""
    gap, span, l3 = np.abs(l[0] - l[1]), l[0] + l[1], l[2]
    edges = np.stack([abs(l3 - gap), l3 + gap, abs(span - l3), gap, l3, (l3 - gap + span - l3) / 2], -1)
    grid = np.linspace(0, 1, 20) * (span + l3)[:, None]
    return np.concatenate([np.abs(edges - 1e-6), edges + 1e-6, grid], axis=-1)


def within(radii: np.ndarray, d: np.ndarray, slack: float = 0.0) -> np.ndarray:
    """Whether radii d (count, D) are in one of the intervals (count, 2, 2)."""
    low, high = radii[:, :, 0, None] - slack, radii[:, :, 1, None] + slack
    with np.errstate(invalid="ignore"):
        return ((low <= d[:, None]) & (d[:, None] <= high)).any(axis=1)


def brute_force(l: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Whether the wrist stays within reach while the last link turns once about the tip."""
    turn = np.linspace(0, np.pi, 13)
    l1, l2, l3 = l[:, :, None, None]
    wrist = np.hypot(d[..., None] - l3 * np.cos(turn), l3 * np.sin(turn))
    gap, span = np.abs(l1 - l2), l1 + l2
    return ((wrist >= gap - 1e-9) & (wrist <= span + 1e-9)).all(axis=-1)


def literal(l: np.ndarray) -> np.ndarray:
    """The rule as page 22 has it: a ring, and a disc wherever l3 exceeds the difference of the others."""
    gap, span, l3 = np.abs(l[0] - l[1]), l[0] + l[1], l[2]
    radii = np.full((l.shape[1], 2, 2), np.nan)
    radii[:, 1, 0], radii[:, 1, 1] = l3 + gap, span - l3
    radii[:, 0, 0] = 0.0
    radii[:, 0, 1] = np.where(l3 > gap, l3 - gap, np.nan)
    return radii


def test_usable_workspace_by_brute_force() -> None:
    l = proportions(np.random.default_rng(9), 4000)
    d = sampled_radii(l)
    true = brute_force(l, d)
    radii = usable_radii(*l)
    assert radii.shape == (4000, 2, 2)
    # samples that rounding alone decides count for either side
    sure = within(radii, d, 1e-8) == within(radii, d, -1e-8)
    assert sure.mean() > 0.9
    assert (within(radii, d) == true)[sure].all()
    assert true.any(axis=1).mean() > 0.5
    # the printed rule is wrong for the very arms whose last link is the longest
    wrong = ((within(literal(l), d) != true) & sure).any(axis=1)
    # equality of the two radii is decided by rounding
    longest = l[2] > np.maximum(l[0], l[1]) * (1 + 1e-5)
    even = np.isclose(l[2], np.maximum(l[0], l[1]), rtol=1e-5)
    assert (wrong == longest)[~even].all()
    assert 500 < wrong.sum() < 3000


def test_edges_of_the_usable_workspace() -> None:
    """Equal links, l3 = |l1 − l2|, l3 = min, l3 = l1 + l2, and longer: each as its own rule says."""
    nan = np.nan
    for lengths, wanted in (
        ((1.0, 1.0, 0.5), [[0, 1.5], [nan, nan]]),
        ((1.0, 1.0, 1.0), [[0, 1.0], [nan, nan]]),
        ((1.0, 1.0, 1.5), [[0, 0.5], [nan, nan]]),
        ((1.0, 1.0, 2.0), [[0, 0.0], [nan, nan]]),
        ((1.0, 0.75, 0.25), [[0, 0.0], [0.5, 1.5]]),  # the base itself, and a ring
        ((1.0, 0.75, 0.75), [[0, 0.5], [1.0, 1.0]]),  # a disc and one circle
        ((0.75, 1.0, 1.0), [[0, 0.75], [nan, nan]]),
        ((1.0, 0.25, 0.5), [[nan, nan], [nan, nan]]),  # too long for a ring, too short for a disc
        ((1.0, 0.75, 1.75), [[0, 0.0], [nan, nan]]),
        ((1.0, 0.75, 2.0), [[nan, nan], [nan, nan]]),
    ):
        found = usable_radii(*lengths)
        assert np.array_equal(found, np.array(wanted, dtype=float), equal_nan=True), lengths
        rings = ThreeLink(*lengths).usable_workspace
        assert [[r.inner, r.outer] for r in rings] == [pair for pair in wanted if pair[0] == pair[0]]
    # the same edges in decimals, which rounding puts on either side
    assert ThreeLink(0.4, 0.3, 0.1).usable_workspace[0] == Annulus(0.0, 0.0)
    assert ThreeLink(0.1 + 0.2, 0.3, 0.1).usable_workspace == (Annulus(0.0, 0.1 + 0.2 + 0.3 - 0.1),)
    assert ThreeLink(0.4, 0.1 + 0.2, 0.3).usable_workspace[1].width < 1e-14
    assert ThreeLink(0.5, 0.3, 0.1 + 0.2).usable_workspace[1].width == 0
    assert ThreeLink(0.1, 0.2, 0.3 * (1 + 2 * EPS)).usable_workspace == (Annulus(0.0, 0.0),)
    assert usable_radii(np.ones((2, 1)), 1.0, np.ones(3)).shape == (2, 3, 2, 2)
    assert usable_radii(np.ones(0), 1.0, 1.0).shape == (0, 2, 2)


def test_within_the_usable_workspace_the_way_back_exists() -> None:
    """The definition itself: inside, the inverse answers for all directions of link 3; outside, not."""
    phi = np.linspace(-np.pi, np.pi, 73)
    for lengths in ((1.0, 0.6, 0.5), (1.0, 0.6, 0.3), (1.0, 0.6, 1.2), (0.8, 0.8, 0.3)):
        arm = ThreeLink(*lengths)
        d = np.linspace(0.0123, 0.999 * arm.workspace.outer, 60)
        radius, turn = np.meshgrid(d, phi, indexing="ij")
        usable = (arm.solutions(np.stack([radius, 0 * radius, turn], -1)) > 0).all(axis=1)
        told = np.any([ring.contains(d) for ring in arm.usable_workspace], axis=0)
        assert (usable == told).all()
        assert usable.any() and not usable.all()  # noqa: PT018


# -------------------------------------------------------------------------------- single postures


def test_a_single_torque_pushes_where_horn_says() -> None:
    """Torque 1 alone along link 2, torque 2 alone along the line to the tip; of three links alike."""
    rng = np.random.default_rng(10)
    for kind in (TwoLink, ThreeLink):
        arm = random_arm(rng, kind)
        q = rng.uniform(-3, 3, size=(30, kind.size))
        r = arm.links(q)
        ways = [r[:, 1], r[:, 0] + r[:, 1], r[:, 0]][: kind.size]
        found = arm.force_directions(q)
        close(np.hypot(found[..., 0], found[..., 1]), np.ones((30, kind.size)))
        for k, way in enumerate(ways):
            cross = way[:, 0] * found[:, k, 1] - way[:, 1] * found[:, k, 0]
            assert np.abs(cross).max() < 1e-12
            torques = np.zeros((30, kind.size))
            torques[:, k] = 2.5
            force = arm.force(q, torques)
            assert (np.einsum("bi,bi->b", force[:, :2], found[:, k]) > 0).all()
            assert np.abs(arm.torques(q, force) - torques).max() < 1e-11


def test_decoupling_posture() -> None:
    rng = np.random.default_rng(11)
    assert TwoLink(1, 1).decoupling()[0] == pytest.approx(2.300523983021863, abs=1e-15)
    close(np.cos(TwoLink(0.4, 0.4, 2.0, 2.0).decoupling()), [-2 / 3, -2 / 3])
    for _ in range(20):
        l1 = rng.uniform(0.5, 2)
        arm = TwoLink(l1, l1 * rng.uniform(0.1, 1.5), *rng.uniform(0.1, 3, size=2))
        q = np.stack([rng.normal(size=2), arm.decoupling()], axis=-1)
        I = arm.inertia(q)
        assert np.abs(I[:, 0, 1] / I[:, 1, 1]).max() < 1e-14
        only = arm.acceleration(q, np.zeros(2), [1.0, 0.0])
        assert np.abs(only[:, 1] / only[:, 0]).max() < 1e-13
    for l1, l2 in ((1.0, 1.5), (0.2, 0.3), (0.7, 1.05)):  # rounded either way
        assert TwoLink(l1, l2).decoupling().tolist() == [np.pi, np.pi]
    with pytest.raises(kic.PostureError):
        TwoLink(1.0, 1.5 + 1e-12).decoupling()
    with pytest.raises(
        kic.PostureError, match=r"= -1\.2\. Link 2 would have to be 1\.5 long or shorter"
    ) as told:
        TwoLink(1.0, 1.8).decoupling()
    assert told.value.cosine == pytest.approx(-1.2)
    fine = np.linspace(-np.pi, np.pi, 400)
    coupled = TwoLink(1.0, 1.8, 1.0, 1.0).inertia(np.stack([0 * fine, fine], -1))[:, 0, 1]
    assert (coupled > 0).all()


# ----------------------------------------------------------------------------------------- errata

EQUAL = TwoLink(0.5, 0.5, 1.8, 1.8)
UNEQUAL = ThreeLink(0.7, 0.45, 0.3, 2.3, 1.4, 0.9, 9.81)
Q = np.array([-1.2, -2.1, 1.3])


def erratum_b1() -> tuple[float, float]:
    l = np.array([[1.0], [0.6], [1.2]])
    d = np.array([[0.6]])
    true = brute_force(l, d)
    return float((within(literal(l), d) != true).all()), float((within(usable_radii(*l), d) != true).any())


def erratum_b2() -> tuple[float, float]:
    ring = ThreeLink(1.0, 0.6, 0.3).usable_workspace[0]
    return abs(ring.width - (2 * 0.6 - 0.3)), abs(ring.width - 2 * (0.6 - 0.3))


def erratum_b3() -> tuple[float, float]:
    unit = EQUAL.m1 * EQUAL.l1**2 / 2
    gain = EQUAL.inverse_inertia([[0, 0], [0, np.pi], [0, np.pi / 2], [0, -np.pi / 2]])[:, 0, 0] * unit
    fine = (
        EQUAL.inverse_inertia(np.stack([np.zeros(181), np.linspace(-np.pi, np.pi, 181)], -1))[:, 0, 0] * unit
    )
    held = 1 / EQUAL.inertia([[0, 0], [0, np.pi]])[:, 0, 0]
    assert held[1] > held[0]  # what is printed holds with joint 2 held
    assert fine.min() == pytest.approx(gain[2])
    return abs(gain[0] - fine.min()), np.abs(gain - [6 / 7, 6 / 7, 3 / 8, 3 / 8]).max()


def erratum_b4() -> tuple[float, float]:
    torque = np.array([2.0, -1.0])
    q = Q[:2]
    given = EQUAL.acceleration(q, np.zeros(2), torque)
    return (
        np.abs(EQUAL.inertia(q) @ torque - given).max(),
        np.abs(EQUAL.inverse_inertia(q) @ torque - given).max(),
    )


def erratum_b5() -> tuple[float, float]:
    q = np.array([2.5, 0.4])  # the tip lies left of the base, where a tangent alone points the other way
    x, y = TwoLink(0.7, 0.45).tip(q)
    alpha = np.arctan(0.45 * np.sin(q[1]) / (0.7 + 0.45 * np.cos(q[1])))
    found = TwoLink(0.7, 0.45).inverse([x, y])[0, 0]
    return float(turns(np.arctan(y / x) - alpha, q[0])), float(turns(found, q[0]))


def erratum_b6() -> tuple[float, float]:
    l1, l2, l3 = UNEQUAL.lengths
    right = UNEQUAL.inverse_statics(Q)
    read = right.copy()
    read[2, 2] = (l1 * l2 * np.sin(Q[1]) + l1 * l3 * np.sin(Q[2])) / (l1 * l2 * np.sin(Q[1]))
    statics = UNEQUAL.statics(Q)
    return np.abs(read @ statics - np.eye(3)).max(), np.abs(right @ statics - np.eye(3)).max()


def erratum_b7() -> tuple[float, float]:
    arm = ThreeLink(1, 1, 1, 2, 2, 2)
    M12 = arm.mechanism().at(Q).dynamics().I[0, 1]
    rest = 3 * np.cos(Q[1]) + np.cos(Q[1] + Q[2]) + 2 * np.cos(Q[2])
    return abs(19 / 3 + rest - M12), abs(10 / 3 + rest - M12)


def erratum_b8() -> tuple[float, float]:
    step = 1e-40
    raised = (UNEQUAL.tip(Q + 1j * step * np.eye(3))[:, 1].imag / step)[2]  # the tip rises with joint 3 alone
    pull = UNEQUAL.gravity(Q)[2] / (UNEQUAL.m3 * raised / 2)
    return abs(pull + UNEQUAL.g), abs(pull - UNEQUAL.g)


def erratum_b9() -> tuple[float, float]:
    l1, l2 = 0.7, 0.45
    x, y = TwoLink(l1, l2).tip(Q[:2])
    along, across = l1 + l2 * np.cos(Q[1]), l2 * np.sin(Q[1])
    tangent = (along * y - across * x) / (along * x + across * y)
    return abs(y / x - np.tan(Q[0])), abs(tangent - np.tan(Q[0]))


CHECKS = {
    "B1": erratum_b1, "B2": erratum_b2, "B3": erratum_b3, "B4": erratum_b4, "B5": erratum_b5,
    "B6": erratum_b6, "B7": erratum_b7, "B8": erratum_b8, "B9": erratum_b9,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_errata(name: str) -> None:
    """What is printed (or legible) is wrong here, what the erratum says is right."""
    assert ERRATA[name]["page"]
    assert ERRATA[name]["correct"]
    printed, corrected = CHECKS[name]()
    assert printed > 1e-2
    assert corrected < 1e-12


def test_every_erratum_is_tested() -> None:
    assert CHECKS.keys() == ERRATA.keys()


# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: TwoLink(0, 1), "TwoLink: `l1` is zero; a link of no length has no direction."),
        (lambda: TwoLink(1, -1), "TwoLink: expected `l2` to be a finite number of at least 0, got -1"),
        (
            lambda: ThreeLink(1, 1, "1"),
            "ThreeLink: expected `l3` to be a finite number of at least 0, got '1'",
        ),
        (lambda: TwoLink(1, 1, m1=-2), "TwoLink: expected `m1` to be a finite number of at least 0, got -2"),
        (lambda: TwoLink(1, 1, g=np.nan), "TwoLink: expected `g` to be a finite number, got nan"),
        (lambda: TwoLink(1, None), "TwoLink: expected `l2` to be a finite number of at least 0, got None"),
        (lambda: Annulus(-1, 1), "Annulus: expected `inner` to be a finite number of at least 0, got -1"),
        (lambda: Annulus(2, 1), "Annulus: expected `inner` not above `outer`, got 2 and 1"),
    ],
)
def test_arms_that_can_not_be(make, text: str) -> None:
    with pytest.raises(kic.ModelError) as told:
        make()
    assert text in str(told.value)
    assert told.value.key


ARM, THREE = TwoLink(0.7, 0.45), ThreeLink(1.0, 1.0, 0.5)
THETA = sp.Symbol("theta")


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: ARM.tip([0.0, 0.0, 0.0]), "Expected `q` to have shape (..., 2), got (3,)"),
        (lambda: ARM.inertia("no"), "Expected `q` to be an array of numbers, got 'no'"),
        (lambda: ARM.inverse([1.0, np.nan]), "Expected `tip` to be finite, got nan at (1,)"),
        (lambda: ARM.inverse([0.5, 0.5j]), "Expected `tip` to be real numbers here"),
        (lambda: ARM.solutions([THETA, 0.5]), "Expected `tip` to be real numbers here"),
        (lambda: ARM.polar([0.0, 1j]), "Expected `q` to be real numbers here"),
        (lambda: ARM.force_directions([0.0, 1j]), "Expected `q` to be real numbers here"),
        (lambda: ARM.inverse([0.5, 0.5], failures="drop"), "Expected `failures` to be 'raise' or 'mask'"),
        (lambda: THREE.inverse([0.5, 0.5]), "Expected `pose` to have shape (..., 3), got (2,)"),
        (lambda: THREE.wrist([0.5, 0.5, 1j]), "Expected `pose` to be real numbers here"),
        (
            lambda: THREE.inverse([1.0, 1.0, 0.0], failures=None),
            "Expected `failures` to be 'raise' or 'mask'",
        ),
        (lambda: ARM.torques([0.0, 1.0], [1.0]), "Expected `force` to have shape (..., 2), got (1,)"),
        (lambda: ARM.force([0.0, 1.0], np.ones(3)), "Expected `torques` to have shape (..., 2), got (3,)"),
        (
            lambda: ARM.torques(np.ones((3, 2)), np.ones((2, 2))),
            "Batch shapes do not broadcast: `q` (3,), `force` (2,)",
        ),
        (
            lambda: ARM.force(np.ones((3, 2)), np.ones((2, 2))),
            "Batch shapes do not broadcast: `q` (3,), `torques` (2,)",
        ),
        (lambda: ARM.workspace.contains(np.inf), "Expected `radius` to be finite real numbers, got inf"),
        (lambda: usable_radii(1.0, [1.0, 0.0], 1.0), "Expected `l2` to be positive lengths, got [1.0, 0.0]"),
        (lambda: usable_radii(1.0, 1j, 1.0), "Expected `l2` to be positive lengths, got 1j"),
        (reachable, "A chain needs links to reach anything, got no lengths"),
        (lambda: reachable(1.0, -0.2), "Expected `lengths` to be positive lengths, got (1.0, -0.2). Leave"),
        (lambda: reachable(1.0, "2"), "Expected `lengths` to be an array of numbers, got (1.0, '2')"),
        (lambda: reachable(1.0, np.nan), "Expected `lengths` to be finite, got nan at (1,)"),
        (
            lambda: usable_radii(np.ones(2), np.ones(3), 1.0),
            "Batch shapes do not broadcast: `l1` (2,), `l2` (3,), `l3` ()",
        ),
    ],
)
def test_arguments_that_are_none(ask, text: str) -> None:
    with pytest.raises(kic.InputError) as told:
        ask()
    assert text in str(told.value)


def test_out_of_reach() -> None:
    with pytest.raises(kic.PostureError) as told:
        ARM.inverse([1.2, 0.5])
    error = told.value
    assert str(error) == (
        "TwoLink(l1=0.7, l2=0.45): the tip is at radius 1.3, links 1 and 2 reach 0.25 to 1.15; "
        "move it 0.15 inwards."
    )
    assert error.failed == [()]
    close(error.radius, [1.3])
    with pytest.raises(kic.PostureError, match=r"radius 0\.1, .* move it 0\.15 outwards"):
        ARM.inverse([0.0, 0.1])
    with pytest.raises(kic.PostureError) as told:
        ARM.inverse([[[0.5, 0.5]], [[2.0, 0.0]], [[0.0, 0.0]]])
    error = told.value
    assert "2 of 3 members have no answer: (1, 0): the tip is at radius 2," in str(error)
    assert "failures='mask' keeps the others" in str(error)
    assert error.failed == [(1, 0), (2, 0)]
    assert len(error.reasons) == 2
    close(error.branches[:, 0, 0], ARM.inverse([0.5, 0.5]))
    with pytest.raises(kic.PostureError, match="at any theta1: infinitely many postures, choose theta1"):
        TwoLink(1, 1).inverse([0.0, 0.0])
    with pytest.raises(kic.PostureError, match=r"l3=0\.5\): the wrist is at radius 2\.5"):
        THREE.inverse([3.0, 0.0, 0.0])
    with pytest.raises(kic.PostureError, match="the wrist stands on the base"):
        THREE.inverse([0.5, 0.0, 0.0])
    with pytest.raises(kic.PostureError, match=r"3 of 3 members .*; …\. failures"):
        ARM.inverse(np.full((3, 2), 5.0))


@pytest.mark.parametrize("theta2", [0.0, np.pi, -np.pi, 1e-13])
@pytest.mark.parametrize("arm", [ARM, THREE], ids=repr)
def test_parallel_links_tell_no_force(arm, theta2: float) -> None:
    q = np.array([0.3, theta2, 0.8])[: arm.size]
    for ask in (
        lambda q: arm.force(q, np.ones(arm.size)), arm.inverse_statics, arm.force_directions
    ):  # fmt: skip
        with pytest.raises(kic.SingularError, match=r"theta2 = .*\. Bend joint 2\.") as told:
            ask(q)
        assert told.value.theta2 == theta2
        assert told.value.failed == [()]
        assert told.value.condition > 1e12
    batch = np.stack([q + 0.4, q, q])
    with pytest.raises(kic.SingularError, match=r"at member \(1,\), 2 of 3 in all") as told:
        arm.force(batch, np.ones(arm.size))
    assert told.value.failed == [(1,), (2,)]
    assert np.isfinite(arm.torques(q, np.ones(arm.size))).all()  # that way there is no trouble
    assert np.isfinite(arm.force(q + 1e-6, np.ones(arm.size))).all()


def test_dynamics_need_masses() -> None:
    arm = ThreeLink(1.0, 1.0, 0.5, m2=1.0)
    for ask in (arm.inertia, arm.gravity, arm.potential_energy, arm.dynamics):
        with pytest.raises(
            kic.InertiaError, match=r"l3=0\.5\) needs .*missing: m1, m3\. .*written 0"
        ) as told:
            ask(np.zeros(3))
        assert told.value.bodies == ("m1", "m3")
    light = TwoLink(1.0, 1.0, 1.0, 0.0)
    with pytest.raises(kic.SingularError, match=r"link 2 has no mass.* Give m2 above 0") as caught:
        light.inverse_inertia([0.0, 1.0])
    assert np.isinf(caught.value.condition)
    with pytest.raises(kic.SingularError, match="the motion of elbow moves no mass"):
        light.acceleration([0.0, 1.0], [0.0, 0.0], [1.0, 0.0])
    # a massless first link is no trouble
    close(
        TwoLink(1, 1, 0.0, 1.0).inverse_inertia([0, 1.0]),
        np.linalg.inv(TwoLink(1, 1, 0, 1).inertia([0, 1.0])),
    )
    assert (TwoLink(1, 1, 1, 1).gravity([0.3, 0.2]) == 0).all()
