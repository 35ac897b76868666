"""Arms from Denavit-Hartenberg rows: frames of both conventions, reference configuration, invalid rows."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from arms import DATA, arm, frames
from raising import refuses
from sampling import mismatch

import kic

CONVENTIONS = ["freeman", "standard"]


def along_x(a: float, alpha: float) -> np.ndarray:
    c, s = np.cos(alpha), np.sin(alpha)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def along_z(s: float, theta: float) -> np.ndarray:
    c, si = np.cos(theta), np.sin(theta)
    return np.array([[c, -si, 0, 0], [si, c, 0, 0], [0, 0, 1, s], [0, 0, 0, 1]])


def link_frames(rows: list[kic.DHRow], convention: str, phi: np.ndarray) -> list[np.ndarray]:
    """Frames (4, 4) of the links, multiplied out."""
    T, out = np.eye(4), []
    for row, q in zip(rows, phi, strict=True):
        s, theta = (row.d, q) if row.type == "revolute" else (q, row.theta)
        link, joint = along_x(row.a, row.alpha), along_z(s, theta)
        T = T @ link @ joint if convention == "freeman" else T @ joint @ link
        out.append(T)
    return out


def drawn(rows: list[kic.DHRow]) -> np.ndarray:
    return np.array([row.theta if row.type == "revolute" else row.d for row in rows])


def random_rows(rng: np.random.Generator, kinds: str) -> list[kic.DHRow]:
    numbers = rng.uniform(-2, 2, (len(kinds), 4))
    words = {"R": "revolute", "P": "prismatic"}
    return [
        kic.DHRow(f"j{i}", f"l{i}", type=words[kind], a=a, alpha=alpha, d=d, theta=theta)
        for i, (kind, (a, alpha, d, theta)) in enumerate(zip(kinds, numbers.tolist(), strict=True))
    ]


# ------------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("case", [*DATA["chains"], DATA["transfer_hand"]], ids=lambda c: c["chain"]["types"])
def test_freeman_frames(case: dict) -> None:
    """The reference's T^j, P and the axes of all links, in the dissertation's convention (2-45 to 2-50)."""
    chain, phi = case["chain"], np.array(case["phi"])
    m = arm(chain, hand=case["P_local"])
    c = m.at(phi)
    Ts, Rs = frames(chain, phi)
    start, origin = frames(chain, np.zeros(len(phi)))  # as `arm` draws it
    if "P" in case:
        assert c.value("hand") == pytest.approx(np.array(case["P"]), abs=1e-13)
        assert Ts[-1] == pytest.approx(np.array(case["T_j"]), abs=1e-14)
    for n, (T, R) in enumerate(zip(Ts, Rs, strict=True)):
        pose = c.pose(f"l{n + 1}")
        assert pose.rotation.as_matrix() @ start[n] == pytest.approx(T, abs=1e-14)
        assert pose.apply(origin[n]) == pytest.approx(R, abs=1e-13)
        turning = T[:, 2] if chain["types"][n] == "R" else np.zeros(3)  # about s^j
        assert c.coefficients(f"l{n + 1}", order=1).G[3:, n] == pytest.approx(turning, abs=1e-14)
    if "trans" in case:
        assert mismatch(c.coefficients("hand", order=1).G, np.array(case["trans"]["G"])) < 1e-13


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("kinds", ["R", "P", "RR", "RP", "PR", "PP", "RPRRPR", "PRPPRR", "R" * 9])
def test_frames_of_random_rows(kinds: str, convention: str) -> None:
    rng = np.random.default_rng(len(kinds) * 7 + kinds.count("P"))
    for _ in range(5):
        rows = random_rows(rng, kinds)
        local = rng.normal(size=(len(rows), 3))
        points = [kic.Point(f"p{i}", row.body, tuple(local[i])) for i, row in enumerate(rows)]
        points.append(kic.Point("base", "ground", (0.1, 0.2, 0.3)))
        m = kic.from_dh("random", rows, convention=convention, points=points)
        assert m.at()._phi == pytest.approx(drawn(rows), abs=0)
        assert m.at().value("base").tolist() == [0.1, 0.2, 0.3]
        start = link_frames(rows, convention, drawn(rows))
        phi = rng.uniform(-3, 3, (2, len(rows)))
        c = m.at(phi)
        for b in range(2):
            for i, T in enumerate(link_frames(rows, convention, phi[b])):
                place = T[:3, :3] @ local[i] + T[:3, 3]
                assert c.value(f"p{i}")[b] == pytest.approx(place, abs=1e-12)
                assert c.pose(f"l{i}")[b].as_matrix() @ start[i] == pytest.approx(T, abs=1e-12)


def test_standard_rows_are_freeman_rows_shifted_by_one_link() -> None:
    rng = np.random.default_rng(5)
    standard = random_rows(rng, "RPRRPR")
    before = [(0.0, 0.0), *((row.a, row.alpha) for row in standard)]
    freeman = [
        kic.DHRow(row.joint, row.body, type=row.type, a=a, alpha=alpha, d=row.d, theta=row.theta)
        for row, (a, alpha) in zip(standard, before[:-1], strict=True)
    ]
    tool = along_x(*before[-1]) @ [0.3, -0.2, 0.5, 1.0]
    one = kic.from_dh(
        "one", standard, convention="standard", points=[kic.Point("hand", "l5", (0.3, -0.2, 0.5))]
    )
    two = kic.from_dh("two", freeman, points=[kic.Point("hand", "l5", tuple(tool[:3]))], convention="freeman")
    phi = rng.normal(size=(4, 6))
    a, b = (m.at(phi).coefficients("hand", order=3) for m in (one, two))
    for letter in ("values", "G", "H", "D"):
        assert getattr(a, letter) == pytest.approx(getattr(b, letter), abs=1e-13)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_bodies_are_given_in_link_frames_and_the_drawn_configuration_does_not_matter(convention: str) -> None:
    rng = np.random.default_rng(11)
    rows = random_rows(rng, "RPRR")
    bodies, points = [], []
    for row in rows:
        r = rng.normal(size=(6, 3))
        r -= r.mean(axis=0)
        inertia = (np.eye(3) * (r**2).sum(-1)[:, None, None] - r[:, :, None] * r[:, None]).sum(0)
        at, com, place = rng.normal(size=(3, 3))
        bodies.append(
            kic.Body(row.body, mass=6.0, com=tuple(com), inertia=tuple(map(tuple, inertia)), at=tuple(at))
        )
        points.append(kic.Point(f"p_{row.body}", row.body, tuple(place), mass=0.3))
    given = dict(bodies=bodies[::-1], points=points, gravity=(1.0, -9.0, 2.0))
    m = kic.from_dh("arm", rows, convention=convention, **given)
    assert [body.name for body in m.bodies] == ["l0", "l1", "l2", "l3"]
    for i, T in enumerate(link_frames(rows, convention, drawn(rows))):
        R, p = T[:3, :3], T[:3, 3]
        body = m.bodies[i]
        assert np.array(body.com) == pytest.approx(R @ bodies[i].com + p, abs=1e-14)
        assert np.array(body.at) == pytest.approx(R @ bodies[i].at + p, abs=1e-14)
        assert np.array(body.inertia) == pytest.approx(R @ np.array(bodies[i].inertia) @ R.T, abs=1e-13)
    redrawn = [
        kic.DHRow(
            row.joint, row.body, type=row.type, a=row.a, alpha=row.alpha,
            d=row.d if row.type == "revolute" else row.d + 0.7,
            theta=row.theta if row.type == "prismatic" else row.theta - 1.9,
        )
        for row in rows
    ]  # fmt: skip
    phi = rng.normal(size=(3, 4))
    one, two = m.at(phi), kic.from_dh("arm", redrawn, convention=convention, **given).at(phi)
    names = [body.name for body in bodies] + [point.name for point in points]
    a, b = one.coefficients(names, order=3), two.coefficients(names, order=3)
    for letter in "GHD":
        assert getattr(a, letter) == pytest.approx(getattr(b, letter), abs=1e-12)
    a, b = one.dynamics(), two.dynamics()
    for letter in ("I", "P", "load"):
        assert getattr(a, letter) == pytest.approx(getattr(b, letter), abs=1e-11)


def test_links_without_a_body_have_no_mass_given() -> None:
    m = kic.from_dh("bare", [kic.DHRow("A", "upper"), kic.DHRow("B", "fore", a=1.0)], convention="freeman")
    assert m.bodies == (kic.Body("upper"), kic.Body("fore"))
    refuses(lambda: m.at().dynamics(), kic.InertiaError, bodies=("upper", "fore"))


def test_rows_may_be_dicts_and_come_from_a_generator() -> None:
    rows = [kic.DHRow("A", "upper"), kic.DHRow("B", "fore", type="prismatic", a=1.0, d=0.5)]
    same = (dict(joint=r.joint, body=r.body, type=r.type, a=r.a, d=r.d) for r in rows)
    assert kic.from_dh("arm", rows, convention="freeman") == kic.from_dh("arm", same, convention="freeman")
    assert kic.from_dh("arm", rows, gravity=(0, 0, -1), convention="freeman").gravity == (0.0, 0.0, -1.0)


def test_rows_take_the_limits_of_their_joints() -> None:
    rows = [kic.DHRow("A", "upper", limits=(-1, 2)), {"joint": "B", "body": "fore", "type": "prismatic"}]
    m = kic.from_dh("arm", rows, convention="freeman")
    assert dict(m.limits) == {"A": (-1.0, 2.0)}
    refuses(lambda: kic.DHRow("A", "upper", limits=(2.0, -1.0)), kic.ModelError, key="limits")


# ------------------------------------------------------------------------------------- right angles


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_right_angles_are_exact(convention: str) -> None:
    """Quarter turns, in radians as rounded, leave no dust: every axis is exactly one of ±x, ±y, ±z."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        quarters = rng.integers(-5, 6, (6, 2)) * (pi / 2)
        lengths = rng.integers(-3, 4, (6, 2)).astype(float)
        rows = [
            kic.DHRow(f"j{i}", f"l{i}", type="revolute", a=a, alpha=alpha, d=s, theta=theta)
            for i, ((a, s), (alpha, theta)) in enumerate(zip(lengths, quarters, strict=True))
        ]
        m = kic.from_dh("square", rows, convention=convention, points=[kic.Point("tip", "l5", (1, 2, 3))])
        for joint in m.joints:
            assert sorted(map(abs, joint.axis)) == [0.0, 0.0, 1.0]
            assert all(x == round(x) for x in joint.at)
        assert all(x == round(x) for x in m.points[0].at)


@pytest.mark.parametrize("off", [1e-14, -1e-14, 1e-9, 1e-3])
def test_near_right_angles_are_kept(off: float) -> None:
    m = kic.from_dh(
        "skew", [kic.DHRow("A", "l1"), kic.DHRow("B", "l2", alpha=pi / 2 + off)], convention="freeman"
    )
    assert m.joints[1].axis[2] == pytest.approx(np.cos(pi / 2 + off), abs=2e-15)
    assert m.joints[1].axis[2] != 0


def test_shipped_arms_have_exact_axes() -> None:
    for joint in kic.load("puma560").joints:
        assert sorted(map(abs, joint.axis)) == [0.0, 0.0, 1.0]


# ----------------------------------------------------------------------------------------- bad rows


BAD_ROWS = [
    (dict(joint="A", body="l1", a="x"), "a"),
    (dict(joint="A", body="l1", alpha=np.nan), "alpha"),
    (dict(joint="A", body="l1", d=np.inf), "d"),
    (dict(joint="A", body="l1", theta=[1.0]), "theta"),
    (dict(joint="A", body="l1", theta=True), "theta"),
    (dict(joint="A", body="l1", type="spherical"), "type"),
    (dict(joint="A.1", body="l1"), "joint"),
    (dict(joint="A", body=None), "body"),
    (dict(joint="A", body="ground"), "body"),
]


@pytest.mark.parametrize(("row", "key"), BAD_ROWS)
def test_invalid_rows_raise(row: dict, key: str) -> None:
    refuses(lambda: kic.DHRow(**row), kic.ModelError, key=key)
    refuses(lambda: kic.from_dh("arm", [row], convention="freeman"), kic.ModelError, key=key)


# Universal Robots, "Parameters for calculations of kinematics and dynamics", UR5e: a, d, alpha
UR5E = [
    (0.0, 0.1625, pi / 2), (-0.425, 0.0, 0.0), (-0.3922, 0.0, 0.0),
    (0.0, 0.1333, pi / 2), (0.0, 0.0997, -pi / 2), (0.0, 0.0996, 0.0),
]  # fmt: skip


def test_a_published_table_gives_the_product_of_its_matrices() -> None:
    rows = [kic.DHRow(f"j{k}", f"l{k}", a=a, d=d, alpha=t) for k, (a, d, t) in enumerate(UR5E, 1)]
    flange = kic.Frame("flange", "l6", origin=(0, 0, 0))
    arm = kic.from_dh("ur5e", rows, convention="standard", frames=[flange])
    for q in (np.zeros(6), np.array([0.3, -1.2, 1.5, -0.7, 0.9, 2.1])):
        T = np.eye(4)
        for (a, d, t), theta in zip(UR5E, q, strict=True):
            ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(t), np.sin(t)
            T = T @ [
                [ct, -st * ca, st * sa, a * ct],
                [st, ct * ca, -ct * sa, a * st],
                [0, sa, ca, d],
                [0, 0, 0, 1],
            ]
        assert np.abs(arm.at(q).pose("flange").as_matrix() - T).max() < 100 * np.finfo(float).eps


def test_modified_is_the_common_name_of_freemans_rows() -> None:
    rows = [kic.DHRow("A", "upper", d=0.2), kic.DHRow("B", "fore", a=1.0, alpha=0.3, d=0.1)]
    assert kic.from_dh("arm", rows, convention="modified") == kic.from_dh("arm", rows, convention="freeman")
