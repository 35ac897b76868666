"""Design sensitivities: complex step through the whole chain against closed forms and against differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.arrays import stepping
from kic.dimensions import numbers_of
from kic.drawing import KINDS
from kic.sensitivity import STEP
from sampling import mismatch, random_tree

Z = (0.0, 0.0, 1.0)
FIELDS = {
    **dict.fromkeys(("at", "com", "axis", "axis2", "force", "moment", "pitch_point"), "xyz"),
    "inertia": ("xx", "yy", "zz", "xy", "xz", "yz"),
}


def redrawn(m: kic.Mechanism, weights: dict[str, float], size: float) -> kic.Mechanism:
    """The mechanism with numbers moved by a finite size, axes turned by a finite rotation; nothing of kic's."""
    moves: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for name, weight in weights.items():
        part, key, *rest = name.split(".")
        if part == "gravity":
            part, key, rest = "", "gravity", [key]
        moves.setdefault((part, key), []).append((rest[0] if rest else "", weight * size))
    changes: dict[str, dict[str, object]] = {}
    for (part, key), steps in moves.items():
        value = np.array(getattr(m.parts[part], key) if part else m.gravity, dtype=float)
        turn = np.zeros(3)
        for component, step in steps:
            if component[:1] == "r":
                turn["xyz".index(component[1])] += step
            elif value.ndim == 0:
                value = value + step
            elif part and key in FIELDS or not part:
                value[tuple(FIELDS.get(key, "xyz")).index(component)] += step
            else:
                value[int(component or 1) - 1] += step
        if turn.any():
            value = Rotation.from_rotvec(turn).apply(value)
        changes.setdefault(part, {})[key] = tuple(value.tolist()) if value.ndim else float(value)
    kinds = {
        kind: tuple(replace(p, **changes[p.name]) if p.name in changes else p for p in getattr(m, kind))
        for kind in KINDS
    }
    return replace(m, **kinds, **changes.get("", {}))


def richardson(f: Callable[[float], np.ndarray], h: float) -> np.ndarray:
    """Derivative at zero by central differences, extrapolated from four steps to eighth order."""
    T = [(f(h / 2**k) - f(-h / 2**k)) / (2 * h / 2**k) for k in range(4)]
    for j in range(1, 4):
        T = [(4**j * b - a) / (4**j - 1) for a, b in zip(T, T[1:], strict=False)]
    return T[0]


def differences(m, answer, weights: dict[str, float], h: float = 4e-3) -> np.ndarray:
    return richardson(lambda e: np.asarray(answer(redrawn(m, weights, e))), h)


def check(m, answer, designs, h: float = 4e-3, tolerance: float = 2e-9) -> np.ndarray:
    """Sensitivities to some designs, each against differences."""
    S = kic.sensitivity(m, answer, designs)
    plain = np.asarray(answer(m))
    assert S.shape == (len(designs), *plain.shape)
    assert S.dtype == np.float64
    for one, design in zip(S, designs, strict=True):
        weights = {design: 1.0} if isinstance(design, str) else design
        expected = differences(m, answer, weights, h)
        largest = max(np.abs(expected).max(initial=0.0), np.abs(plain).max(initial=0.0))
        assert np.abs(one - expected).max(initial=0.0) <= tolerance * largest, (design, one, expected)
    return S


def everything(c, of, order: int = 3, wrt=None) -> np.ndarray:
    """Values, G, H, D of rows, I*, P*, load and damping of one posture in one array."""
    k, d = c.coefficients(of, order=order, wrt=wrt), c.dynamics(wrt=wrt)
    values = np.where(np.isnan(k.values), 0, k.values)
    parts = [values, k.G, k.H, k.D][: order + 1] + [d.I, d.P, d.load, d.damping]
    return np.concatenate([np.ravel(part) for part in parts])


# closed forms, to the last digits


def two_link(x: np.ndarray) -> kic.Mechanism:
    """Planar arm from lengths, centres and masses (l1, c1, c2, m1, m2, J1, J2)."""
    l1, c1, c2, m1, m2, J1, J2 = x
    return kic.Mechanism(
        "two-link",
        [
            kic.Body("upper", mass=m1, com=(c1, 0, 0), inertia=(0, J1, J1)),
            kic.Body("fore", mass=m2, com=(l1 + c2, 0, 0), inertia=(0, J2, J2)),
        ],
        [
            kic.Joint("A", "revolute", ("ground", "upper"), at=(0, 0, 0), axis=Z),
            kic.Joint("B", "revolute", ("upper", "fore"), at=(l1, 0, 0), axis=Z),
        ],
        gravity=(0, -9.81, 0),
    )


def test_two_link_model_by_lengths_and_masses() -> None:
    x = np.array([0.8, 0.35, 0.3, 2.0, 1.5, 0.11, 0.09])
    q = np.array([0.4, 1.1])

    def model(x: np.ndarray) -> list[np.ndarray]:
        l1, c1, c2, m1, m2, J1, J2 = x
        cosine, sine = np.cos(q[1]), np.sin(q[1])
        b, a = J2 + m2 * (c2**2 + l1 * c2 * cosine), J1 + m1 * c1**2 + m2 * l1**2
        h, J = m2 * l1 * c2 * sine, J2 + m2 * c2**2
        I = np.array([[a + 2 * b - J, b], [b, J]])
        P = np.array([[[0, -h], [-h, -h]], [[h, 0], [0, 0]]])
        second = 9.81 * m2 * c2 * np.cos(q.sum())
        load = -np.array([9.81 * (m1 * c1 + m2 * l1) * np.cos(q[0]) + second, second])
        return [I, P, load]

    for k, name in enumerate(("I", "P", "load")):
        S = kic.sensitivity(two_link, lambda m, name=name: getattr(m.at(q).dynamics(), name), x)
        expected = [model(x + 1j * STEP * e)[k].imag / STEP for e in np.eye(7)]
        assert S.shape == (7, *model(x)[k].shape)
        assert mismatch(S, np.array(expected)) < 1e-14


def test_pendulum_by_the_names_of_the_drawing() -> None:
    rod = kic.Body("rod", mass=2.0, com=(0.5, 0.1, 0), inertia=(0.01, 0.16, 0.17))
    pin = kic.Joint("A", "revolute", ("ground", "rod"), at=(0.1, 0, 0), axis=(0, 0, 2.0), stiffness=3.0, rest=0.2)
    m = kic.Mechanism("pendulum", [rod], [pin], gravity=(0, -9.81, 0))
    names = ["rod.mass", "rod.com.x", "rod.inertia.zz", "A.at.x", "A.axis.z", "A.stiffness", "A.rest", "gravity.y"]
    I = kic.sensitivity(m, lambda m: m.at([0.3]).dynamics().I, names)[:, 0, 0]
    assert np.allclose(I, [0.17, 2 * 2.0 * 0.4, 1, -2 * 2.0 * 0.4, 0, 0, 0, 0], rtol=1e-14, atol=1e-14)
    load = kic.sensitivity(m, lambda m: m.at([0.3]).dynamics().load, names)[:, 0]
    c, s, g = np.cos(0.3), np.sin(0.3), 9.81
    lever = 0.4 * c - 0.1 * s
    assert np.allclose(
        load, [-g * lever, -2 * g * c, 0, 2 * g * c, 0, -(0.3 - 0.2), 3.0, 2 * lever], rtol=1e-14, atol=1e-14
    )


def four_bar(x: np.ndarray) -> kic.Mechanism:
    """A crank-rocker from its lengths: crank a, coupler b, rocker c, ground d; drawn with the crank at 60°."""
    A, D, B = np.zeros(2), np.array([x[3], 0]), x[0] * np.array([0.5, np.sqrt(0.75)])
    C = D + x[2] * unit_of(rocker(x, np.pi / 3))
    joints = [
        kic.Joint(n, "revolute", pair, at=(*at, 0), axis=Z, value=v)
        for n, pair, at, v in (
            ("A", ("ground", "crank"), A, np.pi / 3),
            ("B", ("crank", "coupler"), B, 0.0),
            ("C", ("coupler", "rocker"), C, 0.0),
            ("D", ("ground", "rocker"), D, rocker(x, np.pi / 3)),
        )
    ]
    bodies = [kic.Body(n) for n in ("crank", "coupler", "rocker")]
    return kic.Mechanism("four-bar", bodies, joints, [kic.Point("C0", "coupler", (*C, 0))], coordinates=["A"])


def unit_of(angle) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def rocker(x: np.ndarray, theta: float):
    """Freudenstein: cos θ k1 - cos ψ k2 ... solved for the rocker's angle ψ, by half angles, in any scalar."""
    a, b, c, d = x
    p, q = 2 * c * (d - a * np.cos(theta)), -2 * a * c * np.sin(theta)
    r = a**2 - b**2 + c**2 + d**2 - 2 * a * d * np.cos(theta)
    # p cos ψ + q sin ψ + r = 0
    return 2 * np.arctan((-q - np.sqrt(p**2 + q**2 - r**2)) / (r - p))


@pytest.mark.parametrize("theta", [np.pi / 3, 1.9, 4.0])
def test_four_bar_by_freudenstein(theta: float) -> None:
    x = np.array([0.3, 0.8, 0.6, 0.9])
    steps = [x + 1j * STEP * e for e in np.eye(4)]
    value = kic.sensitivity(four_bar, lambda m: m.at({"A": theta}).value("D"), x)
    expected = np.array([rocker(s, theta).imag / STEP for s in steps])
    assert four_bar(x).at({"A": theta}).value("D") == pytest.approx(rocker(x, theta), abs=1e-12)
    assert mismatch(value, expected) < 1e-12

    def ratio(x: np.ndarray):
        """ω4/ω2 = a sin(θ - β) / (c sin(ψ - β)), β the coupler's angle; its tangent is enough."""
        psi = rocker(x, theta)
        bar = np.array([x[3], 0]) + x[2] * unit_of(psi) - x[0] * unit_of(theta)
        across = np.array([-bar[1], bar[0]])
        return x[0] * (unit_of(theta) @ across) / (x[2] * (unit_of(psi) @ across))

    G = kic.sensitivity(four_bar, lambda m: m.at({"A": theta}).coefficients("D").G, x)[:, 0, 0]
    assert mismatch(G, np.array([ratio(s).imag / STEP for s in steps])) < 1e-12
    place = kic.sensitivity(four_bar, lambda m: m.at({"A": theta}).value("C0"), x)
    C = [np.array([s[3], 0]) + s[2] * unit_of(rocker(s, theta)) for s in steps]
    assert mismatch(place[:, :2], np.array(C).imag / STEP) < 1e-12
    assert not place[:, 2].any()


def test_the_order_of_both_derivatives_is_free() -> None:
    """∂/∂q of a sensitivity of G is the sensitivity of H: exact in x, by differences of postures in q."""
    x = np.array([0.3, 0.8, 0.6, 0.9])

    def G(theta: float, of: str = "G") -> np.ndarray:
        return kic.sensitivity(four_bar, lambda m: getattr(m.at({"A": theta}).coefficients("C0", 3), of), x)

    for low, high in (("G", "H"), ("H", "D")):
        along = richardson(lambda e, low=low: G(1.2 + e, low), 0.02)
        assert mismatch(along.reshape(G(1.2, high).shape), G(1.2, high)) < 1e-9


def test_leg_lengths_of_a_platform_by_its_joints() -> None:
    m = kic.load("gough-stewart")
    turn = Rotation.from_rotvec([0.1, -0.2, 0.15])
    pose = RigidTransform.from_components([0.03, -0.02, 0.1], turn)
    names = [f"{joint}{k}.at.{c}" for joint in "SU" for k in (1, 4) for c in "xyz"]
    legs = [f"L{k}" for k in range(1, 7)]

    def lengths(m: kic.Mechanism) -> np.ndarray:
        c = m.at({"platform": pose})
        return np.stack([c.value(leg) for leg in legs])

    S = kic.sensitivity(m, lengths, names)
    at = {j.name: np.array(j.at) for j in m.joints if j.at}
    expected = np.zeros((12, 6))
    for row, name in enumerate(names):
        joint, k, e = name[0], int(name[1]), np.eye(3)["xyz".index(name[-1])]
        head, foot = at[f"S{k}"], at[f"U{k}"]
        drawn, now = head - foot, pose.apply(head) - foot
        drawn, now = drawn / np.linalg.norm(drawn), now / np.linalg.norm(now)
        # the leg reads as drawn in the drawing, whatever its length there
        expected[row, k - 1] = now @ turn.apply(e) - drawn @ e if joint == "S" else -(now @ e - drawn @ e)
    assert np.abs(S - expected).max() < 1e-12 * np.abs(expected).max()


def test_dh_rows_of_an_arm() -> None:
    """Freeman's rows: the tip of a planar arm and the twist of a spatial one, through functions of x."""

    def arm(x: np.ndarray) -> kic.Mechanism:
        rows = [
            kic.DHRow("A", "one", s=x[0]),
            kic.DHRow("B", "two", a=x[1], alpha=x[2], theta=x[3]),
            kic.DHRow("C", "three", "prismatic", a=0.1, alpha=-0.3, s=x[4]),
        ]
        hand = kic.Body("three", mass=1.0, com=(0.1, x[5], 0.2), inertia=(0.1, 0.2, 0.15), at=(0, 0, x[5]))
        return kic.from_dh("arm", rows, bodies=[hand], points=[kic.Point("tip", "three", (0.2, 0.1, x[5]))])

    x = np.array([0.4, 0.7, np.pi / 2, 0.3, 0.2, 0.15])
    for convention in ("freeman",):
        S = kic.sensitivity(arm, lambda m: m.at([0.2, 0.5, 0.6]).coefficients("tip", order=3).D, x)
        for k, e in enumerate(np.eye(6)):
            f = richardson(lambda h, e=e: arm(x + h * e).at([0.2, 0.5, 0.6]).coefficients("tip", order=3).D, 1e-2)
            assert np.abs(S[k] - f).max() < 1e-9, (convention, k)

    def homogeneous(x: np.ndarray) -> np.ndarray:
        """The tip by products of matrices at θ = 0.2, 0.5 and s = 0.6."""

        def screw(axis: int, shift, angle) -> np.ndarray:
            c, s, T = np.cos(angle), np.sin(angle), np.eye(4, dtype=complex)
            i, j = [(1, 2), (2, 0), (0, 1)][axis]
            T[i, i] = T[j, j] = c
            T[i, j], T[j, i], T[axis, 3] = -s, s, shift
            return T

        T = screw(2, x[0], 0.2) @ screw(0, x[1], x[2]) @ screw(2, 0, 0.5) @ screw(0, 0.1, -0.3) @ screw(2, 0.6, 0)
        return (T @ np.array([0.2, 0.1, x[5], 1]))[:3]

    S = kic.sensitivity(arm, lambda m: m.at([0.2, 0.5, 0.6]).value("tip"), x)
    expected = np.array([homogeneous(x + 1j * STEP * e).imag / STEP for e in np.eye(6)])
    assert mismatch(S, expected) < 1e-13


# every kind of number, against differences


def every_kind(seed: int, kinds: list[str]) -> kic.Mechanism:
    """A tree with loads on it; inertias are free to be moved about."""
    m = random_tree(np.random.default_rng(seed), kinds, branched=True, loads=True)
    rng = np.random.default_rng(seed + 1)
    joints = []
    for j in m.joints:
        free = {"spherical": 0, "free": 3}.get(j.type, j.freedoms)
        own = tuple(rng.uniform(0.5, 1, size=free)) + (0.0,) * (j.freedoms - free)
        rest = tuple(rng.normal(size=free)) + (0.0,) * (j.freedoms - free)
        damping = tuple(rng.uniform(0.5, 1, size=j.freedoms))
        joints.append(replace(j, stiffness=own, rest=rest, damping=damping) if j.freedoms else j)
    bodies = tuple(replace(b, inertia_exception="moved about", at=tuple(rng.normal(size=3))) for b in m.bodies)
    points = tuple(replace(p, mass=rng.uniform(0.2, 0.4)) for p in m.points)
    springs = tuple(replace(s, stiffness=2.0, rest=0.3, damping=0.4) for s in m.springs)
    return replace(m, joints=tuple(joints), bodies=bodies, points=points, springs=springs)


def names_in(m: kic.Mechanism) -> list[str]:
    names = [name for kind in KINDS for part in getattr(m, kind) for name, _ in numbers_of(part)]
    return [*names, "gravity.x", "gravity.y", "gravity.z"]


def at_rest(m: kic.Mechanism, name: str) -> bool:
    """A mass, stiffness or damping of zero, which can not be less."""
    part, key, *_ = name.split(".")
    never = key in ("mass", "stiffness", "damping") or (key == "rest" and isinstance(m.parts[part], kic.Spring))
    return never and not np.any(getattr(m.parts[part], key))


def square(m: kic.Mechanism, name: str) -> bool:
    """Whether an axis may move alone: the two of a universal or planar joint stay perpendicular."""
    part, key, *_ = name.split(".")
    return key not in ("axis", "axis2") or m.parts[part].axis2 is None


def in_concert(m: kic.Mechanism, seed: int, keep=lambda name: True) -> dict[str, float]:
    """One parameter that moves every number at once, pairs of axes as one."""
    rng, weights = np.random.default_rng(seed), {}
    for name in names_in(m):
        if not keep(name) or at_rest(m, name):
            continue
        if square(m, name):
            weights[name] = rng.normal() * 0.3
        elif ".axis.r" in name:
            weights[name] = weights[name.replace(".axis.", ".axis2.")] = rng.normal() * 0.3
    return weights


def test_each_number_of_open_chains() -> None:
    m = every_kind(3, ["universal", "revolute", "prismatic", "spherical"])
    c = np.random.default_rng(4).normal(size=len(m.coordinate_names))
    names = [name for name in names_in(m) if square(m, name)]
    assert {n.partition(".")[2].split(".")[0] for n in names} == {
        "mass", "com", "inertia", "at", "axis", "value", "stiffness", "rest", "damping", "force", "moment",
        "x", "y", "z",
    }  # fmt: skip
    S = check(m, lambda m: everything(m.at(c), ["p3", "b3", "gap"], 2), names, tolerance=5e-9)
    # every number matters to something
    dead = [name for name, one in zip(names, S, strict=True) if not np.abs(one).max() > 1e-6]
    # the place of a slider, components of an axis along itself, and unused places do not
    assert all(name.startswith(("j2.at", "b0.at", "b1.at", "b2.at")) for name in dead), dead


@pytest.mark.parametrize(
    "kinds",
    ["RRR", "RPRR", ["free", "revolute"], ["planar", "cylindrical"], ["universal", "fixed", "spherical", "P"]],
)
def test_open_chains_of_every_kind(kinds) -> None:
    m = every_kind(7, list(kinds))
    q = np.random.default_rng(5).normal(size=len(m.coordinate_names)) * 0.7
    last = f"b{len(kinds) - 1}"
    check(m, lambda m: everything(m.at(q), [last, "gap"]), [in_concert(m, 1), in_concert(m, 2)], 2e-3)


SPACE = lambda name: True  # noqa: E731


def in_plane(name: str) -> bool:
    """What keeps a linkage in the plane z: places of joints along x and y, no turned axis."""
    return "axis" not in name.split(".")[1] and not name.endswith(".at.z")


LOOPS = {
    "four-bar": ({"A": 1.2}, ["tip", "D", "coupler"], in_plane),
    "five-bar": ({"A": 1.3, "E": 1.5}, ["tip", "D", "B"], in_plane),
    "slider-crank": ({"shaft": 0.9}, ["crown"], in_plane),
    "ladder": ({"D0": 1.4}, ["tip"], in_plane),
    "geared-five-bar": ({"A": 0.8}, ["tip"], in_plane),
    "rssr": ({"crank": 0.5, "spin": 0.2}, ["flag", "rockerball"], SPACE),
    "five-rod-suspension": ({"hub.3": 0.03}, ["hub.1", "hub.2"], SPACE),
    "three-legged-robot": ({"A1": 0.35, "A2": 0.4, "A3": 0.3}, ["w"], lambda name: "axis" not in name),
}


def movable(m: kic.Mechanism) -> kic.Mechanism:
    return replace(m, bodies=tuple(replace(b, inertia_exception="moved about") for b in m.bodies))


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_every_kind(name: str) -> None:
    inputs, of, keep = LOOPS[name]
    m = movable(kic.load(name))
    if name == "three-legged-robot":
        inputs = dict(zip(m.coordinate_names, m.at().phi[[0, 1, 2]], strict=True)) if False else None
        inputs = {n: float(m.at().value(n)) + 0.05 * k for k, n in enumerate(m.coordinate_names)}
        keep = lambda name: name.split(".")[1] in ("mass", "com", "inertia") or name.startswith("w.")  # noqa: E731
    weights = in_concert(m, 11, keep)
    scale = m._model.length
    weights = {n: w * (scale if n.split(".")[1] in ("at", "com") else 1) * 0.1 for n, w in weights.items()}
    check(m, lambda m: everything(m.at(inputs), of), [weights], 4e-3 if name != "ladder" else 1e-3)
