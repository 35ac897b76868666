"""Design sensitivities by the complex step against closed forms and differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from raising import raises, refuses
from representative_models import OTHER_MODELS
from sampling import mismatch, random_tree
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.analysis.sensitivity import COMPLEX_STEP, parameters_of
from kic.description.description import KINDS
from kic.mechanism.configuration import displacement
from kic.mechanism.locking import values_of
from kic.numerics.arrays import stepping

Z = (0.0, 0.0, 1.0)
FIELDS = ("at", "com", "axis", "axis2", "force", "moment", "pitch_point")


def redrawn(m: kic.Mechanism, weights: dict[str, float], size: float) -> kic.Mechanism:
    """The mechanism with numbers moved by a finite size and axes by a finite turn, by nothing of kic's."""
    moves: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for name, weight in weights.items():
        part, key, *rest = name.split(".")
        if part == "gravity":
            part, key, rest = "", "gravity", [key]
        moves.setdefault((part, key), []).append((rest[0] if rest else "", weight * size))
    changes: dict[str, dict[str, object]] = {}
    for (part, key), steps in moves.items():
        value = np.array(getattr(m[part], key) if part else m.gravity, dtype=float)
        turn = np.zeros(3)
        for component, step in steps:
            if component[:1] == "r":
                turn["xyz".index(component[1])] += step
            elif value.ndim == 0:
                value = value + step
            elif value.ndim == 2:
                i, j = map("xyz".index, component)
                value[[i, j], [j, i]] = value[i, j] + step
            elif key in FIELDS or not part:
                value["xyz".index(component)] += step
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
        T = [(4**j * b - a) / (4**j - 1) for a, b in pairwise(T)]
    return T[0]


def differences(m, answer, weights: dict[str, float], h: float = 4e-3) -> np.ndarray:
    return richardson(lambda e: np.asarray(answer(redrawn(m, weights, e))), h)


def check(m, answer, designs, h: float = 4e-3, tolerance: float = 2e-9) -> np.ndarray:
    """Sensitivities to some designs, each against differences."""
    S = m.sensitivity(answer, designs)
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
    """Values, G, H, D of rows, I*, P*, load and damping of one configuration in one array."""
    k, d = c.coefficients(of, order=order, wrt=wrt), c.dynamics(wrt=wrt)
    values = np.where(np.isnan(k.values), 0, k.values)
    parts = [*[values, k.G, k.H, k.D][: order + 1], d.I, d.P, d.load, d.damping]
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
        expected = [model(x + 1j * COMPLEX_STEP * e)[k].imag / COMPLEX_STEP for e in np.eye(7)]
        assert S.shape == (7, *model(x)[k].shape)
        assert mismatch(S, np.array(expected)) < 1e-14


def test_pendulum_by_the_names_of_the_drawing() -> None:
    rod = kic.Body("rod", mass=2.0, com=(0.5, 0.1, 0), inertia=(0.01, 0.16, 0.17))
    pin = kic.Joint(
        "A", "revolute", ("ground", "rod"), at=(0.1, 0, 0), axis=(0, 0, 2.0), stiffness=3.0, rest=0.2
    )
    m = kic.Mechanism("pendulum", [rod], [pin], gravity=(0, -9.81, 0))
    names = [
        "rod.mass", "rod.com.x", "rod.inertia.zz", "A.at.x", "A.axis.z", "A.stiffness", "A.rest",
        "gravity.y",
    ]  # fmt: skip
    I = m.sensitivity(lambda m: m.at([0.3]).dynamics().I, names)[:, 0, 0]
    assert np.allclose(I, [0.17, 2 * 2.0 * 0.4, 1, -2 * 2.0 * 0.4, 0, 0, 0, 0], rtol=1e-14, atol=1e-14)
    load = m.sensitivity(lambda m: m.at([0.3]).dynamics().load, names)[:, 0]
    c, s, g = np.cos(0.3), np.sin(0.3), 9.81
    lever = 0.4 * c - 0.1 * s
    assert np.allclose(
        load, [-g * lever, -2 * g * c, 0, 2 * g * c, 0, -(0.3 - 0.2), 3.0, 2 * lever], rtol=1e-14, atol=1e-14
    )


def four_bar(x: np.ndarray, drawn: float = np.pi / 3) -> kic.Mechanism:
    """A crank-rocker from its lengths: crank, coupler, rocker, ground; drawn with the crank at an angle."""
    A, D, B = np.zeros(2), np.array([x[3], 0]), x[0] * unit_of(drawn)
    C = D + x[2] * unit_of(rocker(x, drawn))
    joints = [
        kic.Joint(n, "revolute", pair, at=(*at, 0), axis=Z, value=v)
        for n, pair, at, v in (
            ("A", ("ground", "crank"), A, drawn),
            ("B", ("crank", "coupler"), B, 0.0),
            ("C", ("coupler", "rocker"), C, 0.0),
            ("D", ("ground", "rocker"), D, rocker(x, drawn)),
        )
    ]
    bodies = [kic.Body(n) for n in ("crank", "coupler", "rocker")]
    return kic.Mechanism(
        "four-bar", bodies, joints, points=[kic.Point("C0", "coupler", (*C, 0))], coordinates=["A"]
    )


def unit_of(angle) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def rocker(x: np.ndarray, theta: float):
    """Freudenstein's equation solved for the rocker's angle ψ by half angles, in any scalar."""
    a, b, c, d = x
    p, q = 2 * c * (d - a * np.cos(theta)), -2 * a * c * np.sin(theta)
    r = a**2 - b**2 + c**2 + d**2 - 2 * a * d * np.cos(theta)
    # p cos ψ + q sin ψ + r = 0
    return 2 * np.arctan((-q - np.sqrt(p**2 + q**2 - r**2)) / (r - p))


@pytest.mark.parametrize("theta", [np.pi / 3, 1.9, 4.0])
def test_four_bar_by_freudenstein(theta: float) -> None:
    x = np.array([0.3, 0.8, 0.6, 0.9])
    steps = [x + 1j * COMPLEX_STEP * e for e in np.eye(4)]
    value = kic.sensitivity(four_bar, lambda m: m.at({"A": theta}).value("D"), x)
    expected = np.array([rocker(s, theta).imag / COMPLEX_STEP for s in steps])
    assert four_bar(x).at({"A": theta}).value("D") == pytest.approx(rocker(x, theta), abs=1e-12)
    assert mismatch(value, expected) < 1e-12

    def ratio(x: np.ndarray):
        """ω4/ω2 = a sin(θ - β) / (c sin(ψ - β)), β the coupler's angle; its tangent is enough."""
        psi = rocker(x, theta)
        bar = np.array([x[3], 0]) + x[2] * unit_of(psi) - x[0] * unit_of(theta)
        across = np.array([-bar[1], bar[0]])
        return x[0] * (unit_of(theta) @ across) / (x[2] * (unit_of(psi) @ across))

    G = kic.sensitivity(four_bar, lambda m: m.at({"A": theta}).coefficients("D").G, x)[:, 0, 0]
    assert mismatch(G, np.array([ratio(s).imag / COMPLEX_STEP for s in steps])) < 1e-12
    place = kic.sensitivity(four_bar, lambda m: m.at({"A": theta}).value("C0"), x)
    C = [np.array([s[3], 0]) + s[2] * unit_of(rocker(s, theta)) for s in steps]
    assert mismatch(place[:, :2], np.array(C).imag / COMPLEX_STEP) < 1e-12
    assert not place[:, 2].any()


@pytest.mark.slow
def test_the_order_of_both_derivatives_is_free() -> None:
    """∂/∂q of a sensitivity of G is the sensitivity of H: exact in x, by differences in q."""
    x = np.array([0.3, 0.8, 0.6, 0.9])

    def G(theta: float, of: str = "G") -> np.ndarray:
        return kic.sensitivity(
            four_bar, lambda m: getattr(m.at({"A": theta}).coefficients("C0", order=3), of), x
        )

    for low, high in (("G", "H"), ("H", "D")):
        along = richardson(lambda e, low=low: G(1.2 + e, low), 0.02)
        assert mismatch(along.reshape(G(1.2, high).shape), G(1.2, high)) < 1e-9


@pytest.mark.slow
def test_leg_lengths_of_a_platform_by_its_joints() -> None:
    m = kic.load("gough-stewart")
    turn = Rotation.from_rotvec([0.1, -0.2, 0.15])
    pose = RigidTransform.from_components([0.03, -0.02, 0.1], turn)
    names = [f"{joint}{k}.at.{c}" for joint in "SU" for k in (1, 4) for c in "xyz"]
    legs = [f"L{k}" for k in range(1, 7)]

    def lengths(m: kic.Mechanism) -> np.ndarray:
        c = m.at({"platform": pose})
        return np.stack([c.value(leg) for leg in legs])

    S = m.sensitivity(lengths, names)
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


@pytest.mark.slow
def test_dh_rows_of_an_arm() -> None:
    """Freeman's rows: the tip of a planar arm and the twist of a spatial one, through functions of x."""

    def arm(x: np.ndarray, convention: str = "freeman") -> kic.Mechanism:
        rows = [
            kic.DHRow("A", "one", d=x[0]),
            kic.DHRow("B", "two", a=x[1], alpha=x[2], theta=x[3]),
            kic.DHRow("C", "three", type="prismatic", a=0.1, alpha=-0.3, d=x[4]),
        ]
        hand = kic.Body("three", mass=1.0, com=(0.1, x[5], 0.2), inertia=(0.1, 0.2, 0.15), at=(0, 0, x[5]))
        others = [kic.Body(name, mass=0.0) for name in ("one", "two")]
        tip = kic.Point("tip", "three", (0.2, 0.1, x[5]))
        return kic.from_dh(
            "arm", rows, convention=convention, bodies=[*others, hand], points=[tip], gravity=(0, 0, -9.81)
        )

    x = np.array([0.4, 0.7, np.pi / 2, 0.3, 0.2, 0.15])
    D = lambda m: everything(m.at([0.2, 0.5, 0.6]), ["tip", "three"])  # noqa: E731
    for convention in ("freeman", "standard"):
        made = lambda x, convention=convention: arm(x, convention)  # noqa: E731
        S = kic.sensitivity(made, D, x)
        for k, e in enumerate(np.eye(6)):
            expected = richardson(lambda h, e=e: D(made(x + h * e)), 1e-2)  # noqa: B023
            assert np.abs(S[k] - expected).max() < 1e-9, (convention, k)

    def homogeneous(x: np.ndarray) -> np.ndarray:
        """The tip by products of matrices at θ = 0.2, 0.5 and s = 0.6."""

        def screw(axis: int, shift, angle) -> np.ndarray:
            c, s, T = np.cos(angle), np.sin(angle), np.eye(4, dtype=complex)
            i, j = [(1, 2), (2, 0), (0, 1)][axis]
            T[i, i] = T[j, j] = c
            T[i, j], T[j, i], T[axis, 3] = -s, s, shift
            return T

        T = (
            screw(2, x[0], 0.2)
            @ screw(0, x[1], x[2])
            @ screw(2, 0, 0.5)
            @ screw(0, 0.1, -0.3)
            @ screw(2, 0.6, 0)
        )
        return (T @ np.array([0.2, 0.1, x[5], 1]))[:3]

    S = kic.sensitivity(arm, lambda m: m.at([0.2, 0.5, 0.6]).value("tip"), x)
    expected = np.array([homogeneous(x + 1j * COMPLEX_STEP * e).imag / COMPLEX_STEP for e in np.eye(6)])
    assert mismatch(S, expected) < 1e-13


# every kind of number, against differences


def every_kind(seed: int, kinds: list[str]) -> kic.Mechanism:
    """A tree with loads on it; inertias are free to be moved about."""
    m = random_tree(np.random.default_rng(seed), kinds, branched=True, loads=True)
    rng = np.random.default_rng(seed + 1)
    joints = []
    for j in m.joints:
        free = {"spherical": 0, "free": 3}.get(j.type, j.dof)
        own = tuple(rng.uniform(0.5, 1, size=free)) + (0.0,) * (j.dof - free)
        rest = tuple(rng.normal(size=free)) + (0.0,) * (j.dof - free)
        damping = tuple(rng.uniform(0.5, 1, size=j.dof))
        joints.append(replace(j, stiffness=own, rest=rest, damping=damping) if j.dof else j)
    bodies = tuple(
        replace(b, inertia_exception="moved about", at=tuple(rng.normal(size=3))) for b in m.bodies
    )
    points = tuple(replace(p, mass=rng.uniform(0.2, 0.4)) for p in m.points)
    springs = tuple(replace(s, stiffness=2.0, rest=0.3, damping=0.4) for s in m.springs)
    return replace(m, joints=tuple(joints), bodies=bodies, points=points, springs=springs)


def names_in(m: kic.Mechanism) -> list[str]:
    names = [name for kind in KINDS for part in getattr(m, kind) for name, _ in parameters_of(part)]
    return [*names, "gravity.x", "gravity.y", "gravity.z"]


def at_rest(m: kic.Mechanism, name: str) -> bool:
    """A mass, stiffness or damping of zero, which cannot be less."""
    part, key, *_ = name.split(".")
    never = key in ("mass", "stiffness", "damping", "armature") or (
        key == "rest" and isinstance(m[part], kic.Spring)
    )
    return never and not np.any(getattr(m[part], key))


def square(m: kic.Mechanism, name: str) -> bool:
    """Return True if an axis may move alone: the axes of universal and planar joints stay perpendicular."""
    part, key, *_ = name.split(".")
    return key not in ("axis", "axis2") or getattr(m[part], "axis2", None) is None


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


@pytest.mark.slow
def test_each_number_of_open_chains() -> None:
    m = every_kind(3, ["universal", "revolute", "prismatic", "spherical"])
    c = np.random.default_rng(4).normal(size=len(m.coordinates))
    names = [name for name in names_in(m) if square(m, name) and not at_rest(m, name)]
    assert {n.partition(".")[2].split(".")[0] for n in names} == {
        "mass", "com", "inertia", "at", "axis", "value", "stiffness", "rest", "damping",
        "force", "moment", "x", "y", "z",
    }  # fmt: skip
    S = check(
        m, lambda m: everything(m.at(c), ["p3", "b3", "gap", "off", "beside"], 2), names, tolerance=5e-9
    )
    # every number matters to something, but for places that were not asked, of a slider and of ground's mass
    dead = {
        name.rpartition(".")[0] for name, one in zip(names, S, strict=True) if not np.abs(one).max() > 1e-6
    }
    assert dead == {"b0.at", "b1.at", "b2.at", "j2.at", "post"}


@pytest.mark.parametrize(
    "kinds",
    [
        "RRR",
        "RPRR",
        ["free", "revolute"],
        ["planar", "cylindrical"],
        ["universal", "fixed", "spherical", "P"],
    ],
)
def test_open_chains_of_every_kind(kinds) -> None:
    m = every_kind(7, list(kinds))
    q = np.random.default_rng(5).normal(size=len(m.coordinates)) * 0.7
    last = f"b{len(kinds) - 1}"
    check(m, lambda m: everything(m.at(q), [last, "gap"]), [in_concert(m, 1), in_concert(m, 2)], 2e-3)


def in_space(name: str) -> bool:
    """Any number."""
    return True


def in_plane(name: str) -> bool:
    """Parameters that keep a linkage in its plane: joint positions along x and y, no turned axis."""
    return "axis" not in name.split(".")[1] and not name.endswith(".at.z")


LOOPS = {
    "four-bar": ({"A": 1.2}, ["tip", "D", "coupler"], in_plane),
    "five-bar": ({"A": 1.3, "E": 1.5}, ["tip", "D", "B"], in_plane),
    "slider-crank": ({"shaft": 0.9}, ["crown"], in_plane),
    "ladder": ({"D0": 1.4}, ["tip"], in_plane),
    "geared-five-bar": ({"A": 0.8}, ["tip"], in_plane),
    "rssr": ({"crank": 0.5, "spin": 0.2}, ["flag", "rockerball"], in_space),
    "five-rod-suspension": ({"hub.3": 0.03}, ["hub.1", "hub.2"], in_space),
    "three-legged-robot": ({"A1": 1.4, "A2": -2.8, "A3": -0.7}, ["w", "C3"], in_plane),
}


def movable(m: kic.Mechanism) -> kic.Mechanism:
    return replace(m, bodies=tuple(replace(b, inertia_exception="moved about") for b in m.bodies))


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_every_kind(name: str) -> None:
    inputs, of, keep = LOOPS[name]
    m = movable(kic.load(name))
    weights = in_concert(m, 11, keep)
    scale = m._model.length
    weights = {n: w * (scale if n.split(".")[1] in ("at", "com") else 1) * 0.1 for n, w in weights.items()}
    check(m, lambda m: everything(m.at(inputs), of), [weights], 4e-3 if name != "ladder" else 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "of", "order"), [("gough-stewart", "platform", 3), ("stewart-6r", "plate", 2)]
)
def test_platforms_on_legs(name: str, of: str, order: int) -> None:
    m = movable(kic.load(name))
    inputs = {n: float(m.at().value(n)) + 0.02 * k for k, n in enumerate(m.coordinates)}
    weights = {n: 0.1 * w for n, w in in_concert(m, 12).items()}
    check(m, lambda m: everything(m.at(inputs), [of], order), [weights], 4e-3, 1e-8)


# rows by names


def check_rows(name: str, most: int) -> None:
    """Derivatives of rows equal those of a function that solves the same configurations, as do errors."""
    m, rng = kic.load(name), np.random.default_rng(8)
    values = {n: x + rng.normal(0, 0.004) for n, x in values_of(m, m.at(), m.coordinates).items()}
    turns = {c for joint in m.joints if joint.type in ("spherical", "free") for c in joint.components[-3:]}
    some = [*m.coordinates[:3], *(joint.components[0] for joint in m.joints if joint.dof)]
    of = [*(p.name for p in m.points[:3]), *(c.name for c in m.centers), f"{m.bodies[-1].name}.x", "com"]
    of = list(dict.fromkeys([*of, *(n for n in some[:6] if n not in turns)]))
    c = m.at(values)
    rows, wanted = list(c.coefficients(of, order=1).rows), {}
    for number in rng.permutation(names_in(m))[:most].tolist():
        try:
            wanted[number] = m.sensitivity(lambda x: x.at(values).value(rows), number)[0]
        except kic.KicError as error:
            with pytest.raises(type(error)):
                c.sensitivity(of, number)
    want, got = np.stack([*wanted.values()], axis=-1), c.sensitivity(of, list(wanted))
    assert np.abs(got - want).max() < 1e-9 * max(1.0, np.abs(want).max())


@pytest.mark.parametrize("name", ["four-bar", "five-rod-suspension", "geared-five-bar", "scara"])
def test_rows_are_differentiated_as_functions_are(name: str) -> None:
    check_rows(name, 40)


@pytest.mark.slow
@pytest.mark.parametrize("name", kic.model_names())
def test_rows_of_every_model_are_differentiated_as_functions_are(name: str) -> None:
    check_rows(name, 80)


def test_rows_by_lengths_of_a_drawing() -> None:
    A = np.linspace(1.2, 7.0, 5)
    bars = {"ground": 4.0, "crank": 1.0, "coupler": 3.5, "rocker": 3.0}
    m, names = kic.linkages.four_bar(**bars), [f"{name}.length" for name in bars]
    for wrt, of in (("A", "D"), ("D", "A")):
        c = m.path({"A": A})
        got = c.sensitivity(of, names, wrt=wrt)[:, 0]

        def solved(m: kic.Mechanism, c=c, wrt=wrt, of=of) -> np.ndarray:
            return m.at({wrt: c.value(wrt)}, near=m.at({"A": A})).value(of)

        want = kic.sensitivity(
            lambda x: kic.linkages.four_bar(**dict(zip(bars, x, strict=True))), solved, [*bars.values()]
        )
        assert mismatch(got.T, want) < 1e-9


def test_rows_in_many_configurations() -> None:
    m, names = kic.load("four-bar"), ["B.at.x", {"C.at.x": 1.0, "C.at.y": 2.0}, "coupler.mass", "tip.at.y"]
    A = np.linspace(1.2, 3.0, 6).reshape(2, 3)
    want = m.sensitivity(lambda m: m.at({"A": A}).value("tip"), names)
    c = m.at({"A": A})
    assert mismatch(c.sensitivity("tip", names), np.moveaxis(want, 0, -1)) < 1e-12
    assert mismatch(m.at(A[0, 0]).sensitivity("tip", names), want[:, 0, 0].T) < 1e-12
    assert c.sensitivity(["tip", "D"], []).shape == (2, 3, 4, 0)
    assert c[:0].sensitivity("tip", names).shape == (0, 3, 3, 4)
    here = m.vary("D.at.x").at({"A": 1.2, "D.at.x": 0.48})
    other = m.replace("D", at=(0.48, 0, 0)).at({"A": 1.2})
    assert mismatch(here.sensitivity("tip", "B.at.x"), other.sensitivity("tip", "B.at.x")) < 1e-9


def test_rows_by_numbers_of_every_kind_together() -> None:
    m = kic.load("four-bar")
    c, v = m.at(1.2), m.vary("coupler.length").at(1.2)
    of = ["coupler.x", "coupler.y"]
    ends = c.sensitivity(of, ["coupler.length", "coupler.com.x", "D.at.x"])
    mass = c.sensitivity("com.x", [{"coupler.mass": 3.0, "D.at.x": 1.0}, "coupler.mass", "D.at.x"])
    assert abs(mass[0, 0] - 3.0 * mass[0, 1] - mass[0, 2]) < 1e-12
    both = c.sensitivity(of, {"coupler.length": 2.0, "coupler.com.x": -1.0, "coupler.mass": 3.0})
    assert mismatch(both[:, 0], 2.0 * ends[:, 0] - ends[:, 1]) < 1e-12
    assert mismatch(v.sensitivity(of, ["coupler.length", "D.at.x"]), ends[:, ::2]) < 1e-9
    tilt = {f"{joint.name}.axis.rx": 1.0 for joint in m.joints}  # none of them alone
    assert mismatch(c.sensitivity(of, ["coupler.length", tilt])[:, 0], ends[:, 0]) < 1e-12
    aside = c.sensitivity("coupler.angle", ["coupler.length", "tip.at.z"])  # angles need a plane
    assert abs(aside[0, 0]) > 0.01
    assert abs(aside[0, 1]) < 1e-12


def test_masses_on_ground_belong_to_no_centre_of_mass() -> None:
    lumped = kic.load("four-bar").add(kic.Point("lump", "ground", (1.0, 2.0, 0.0), mass=5.0))
    locked = kic.load("panda").lock({"joint1": 0.2})
    for m, q, numbers in (
        (lumped, 1.2, ["lump.at.x", "B.at.x"]),
        (locked, np.full(6, 0.3), ["joint1.at.x", "joint2.at.x", "joint3.at.y"]),
    ):
        want = m.sensitivity(lambda x, q=q: x.at(q).value("com"), numbers)
        c = m.at(q)
        assert mismatch(c.sensitivity("com", numbers).T, want) < 1e-9
        found = c.tolerance_analysis("com", dict.fromkeys(numbers, 1e-6))
        assert mismatch(found.nominal, c.value("com")) < 1e-12
        assert mismatch(found.sigma, 1e-6 / 3 * np.sqrt((want**2).sum(axis=0))) < 1e-3


def test_rows_of_a_linkage_on_a_floating_base() -> None:
    linkage, Z = kic.load("four-bar"), (0, 0, 1)
    base = kic.Body("base", mass=1.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
    joints = [kic.Joint("J", "free", ("ground", "base"), at=(0.1, 0.5, 0))]
    for joint in linkage.joints:
        pair = tuple("base" if body == "ground" else body for body in joint.bodies)
        joints.append(kic.Joint(joint.name, "revolute", pair, at=joint.at, axis=Z))
    bodies = [base, *linkage.bodies]
    m = kic.Mechanism("float", bodies, joints, points=linkage.points, coordinates=["J", "A"])
    q, numbers = np.linspace(0.1, 0.4, 7), ["B.at.x", "coupler.com.x", "D.at.y"]
    want = m.sensitivity(lambda x: x.at(q).value(["tip", "coupler.x"]), numbers)
    named = dict(zip(m.coordinates, q.tolist(), strict=True))
    assert np.array_equal(m.at(named).value("tip"), m.at(q).value("tip"))
    refuses(lambda: m.at({**named, "J": q[:6]}), name="J")
    for wrt in (None, ["J", "A"], ["base", "A"]):
        assert mismatch(m.at(q).sensitivity(["tip", "coupler.x"], numbers, wrt=wrt).T, want) < 1e-9
    found = m.at(q).tolerance_analysis("tip", {"B.at.x": 1e-6})
    assert mismatch(found.worst_case[:, 1] - found.nominal, 1e-6 * np.abs(want[0, :3])) < 1e-3


def test_rows_of_a_floating_arm() -> None:
    m = every_kind(5, ["free", "spherical", "revolute"])
    q = np.random.default_rng(6).normal(size=len(m.coordinates)) * 0.4
    numbers = [name for name in names_in(m) if square(m, name)]
    want = m.sensitivity(lambda x: x.at(q).value(["p2", "b2.x", "com"]), numbers)
    assert mismatch(m.at(q).sensitivity(["p2", "b2.x", "com"], numbers).T, want) < 1e-9


def test_rows_of_a_platform_in_a_pose() -> None:
    m, names = kic.load("gough-stewart"), ["U1.at.x", "S2.at.z", "L1.axis.rx"]
    pose = RigidTransform.from_translation([0.01, 0.02, 0.03]) * m.at().pose("platform")
    want = m.sensitivity(lambda m: m.at({"platform": pose}).value(["L1", "L2"]), names)
    assert np.abs(want).max() > 1e-3
    got = m.at({"platform": pose}).sensitivity(["L1", "L2"], names, wrt="platform")
    assert mismatch(got.T, want) < 1e-12


# ways to request a configuration, and its results


@pytest.mark.slow
def test_other_inputs_and_other_coordinates() -> None:
    m = movable(kic.load("four-bar"))
    design = ["B.at.x", "C.at.y", "tip.at.x", "D.value", "coupler.mass", {"A.at.x": 0.3, "D.at.x": 0.3}]
    drawn = float(m.at().value("D"))
    check(m, lambda m: everything(m.at({"D": drawn + 0.1}), ["tip", "A", "C"]), design)
    check(m, lambda m: everything(m.at({"A": 1.2}), ["coupler", "A"], wrt="D"), design, 2e-3, 1e-8)
    check(m, lambda m: everything(m.at({"A": 2.2}), ["tip", "B"], wrt="tip.y"), design, 2e-3, 1e-8)
    y = float(m.at({"A": 2.2}).value("tip.y"))
    check(m, lambda m: m.at({"tip.y": y}, near=m.at({"A": 2.2})).value("D"), design, 2e-3)
    # held by itself, a value does not move
    held = m.sensitivity(lambda m: m.at({"tip.y": y}, near=m.at({"A": 2.2})).value("tip.y"), design)
    assert np.abs(held).max() < 1e-14


@pytest.mark.slow
def test_inverse_position_and_poses() -> None:
    m = kic.load("horn-two-link")
    design = ["elbow.at.x", "elbow.at.y", "tip.at.x", "shoulder.at.y", {"elbow.at.x": 1, "tip.at.x": 1}]

    def bent(m: kic.Mechanism) -> kic.Configuration:
        return m.at({"tip.x": 1.1, "tip.y": 0.9}, near=m.at([0.2, 1.0]))

    check(m, lambda m: bent(m)._phi, design)
    check(m, lambda m: bent(m).coefficients("elbow", order=3, wrt=["tip.x", "tip.y"]).D, design)
    # of links of lengths 1 and 1: cos(elbow) = (r² - a² - b²) / 2ab, in a + da and b
    elbow = m.sensitivity(lambda m: bent(m).value("elbow"), {"elbow.at.x": 1, "tip.at.x": 1})
    r, sine = 1.1**2 + 0.9**2, np.sin(bent(m).value("elbow"))
    assert elbow[0] == pytest.approx(-(-2 / 2 - (r - 2) / 2) / sine, rel=1e-13)
    arm = kic.load("puma560")
    pose = arm.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4]).pose("link6")
    near = arm.at([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
    check(arm, lambda m: m.at({"link6": pose}, near=m.at(near._phi))._phi, ["elbow.at.x", "elbow.at.z"])
    # `near` may be a configuration of the mechanism outside
    S = [
        arm.sensitivity(lambda m, c=c: m.at({"link6": pose}, near=c or m.at(near._phi))._phi, ["elbow.at.x"])
        for c in (near, None)
    ]
    assert np.array_equal(*S)
    platform = kic.load("three-legged-robot")
    up = RigidTransform.from_components([0.05, 0.02, 0.0], Rotation.from_rotvec([0, 0, 0.1]))
    check(platform, lambda m: m.at({"platform": up})._phi, ["B1.at.x", "C2.at.y", "platform.com.x"])


def test_inputs_may_come_from_the_mechanism_itself() -> None:
    m = kic.load("four-bar")
    check(m, lambda m: m.at({"A": m.at().value("A") + 0.2}).value("tip"), ["A.value", "B.at.x"])
    # the values of another configuration move with the drawing
    held = lambda m: m.at({"tip.y": m.at({"A": 1.1}).value("tip.y")}).value("A")  # noqa: E731
    assert np.abs(check(m, held, ["B.at.x", "tip.at.x"])).max() < 5e-12  # the rounding of solved states
    arm = kic.load("horn-two-link")
    check(arm, lambda m: m.at(m.at([0.1, 0.2]).value("tip")[:2]).value("tip"), ["elbow.at.y"])


@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_batches(batch: tuple[int, ...]) -> None:
    m = kic.load("four-bar")
    q = 1.2 + 0.3 * np.arange(np.prod(batch, dtype=int)).reshape(batch)

    def answer(m: kic.Mechanism) -> np.ndarray:
        c = m.at({"A": q})
        return np.concatenate([c.coefficients("tip").H[..., 0, 0], c.dynamics().I[..., 0]], axis=-1)

    names = ["B.at.x", "D.at.y"]
    S = m.sensitivity(answer, names)
    assert S.shape == (2, *batch, 4)
    for index in np.ndindex(batch):
        alone = m.sensitivity(lambda m, q=q[index]: m.at({"A": q}).coefficients("tip").H, names)
        assert mismatch(S[(slice(None), *index)][:, :3], alone.reshape(2, 3)) < 1e-13


def test_members_without_configuration_are_nan() -> None:
    m = kic.load("horn-two-link")
    far = {"tip.x": [1.0, 9.0], "tip.y": 0.8}
    answer = lambda m: m.at(far, near=m.at([0.1, 0.9]), failures="mask").value("elbow")  # noqa: E731
    S = m.sensitivity(answer, ["elbow.at.x"])
    assert np.isfinite(S[0, 0])
    assert np.isnan(S[0, 1])
    S = m.sensitivity(lambda m: m.at([[0.1, np.nan]], failures="mask").dynamics().I, ["elbow.at.x"])
    assert np.isnan(S).all()
    # an axis turned about itself changes nothing
    S = m.sensitivity(lambda m: m.at([[0.1, np.nan], [0, 0]], failures="mask")._phi, ["elbow.axis.rz"])
    assert np.isnan(S[0, 0]).all()
    assert np.array_equal(S[0, 1], [0, 0])


@pytest.mark.slow
def test_contacts_move_and_turn() -> None:
    m = kic.load("three-finger-hand")
    fingers = ["bend1", "curl1", "bend2"]
    design = ["tip1.at.x", "tip2.at.z", "tip1.normal.rz", {"tip1.at.y": 0.5, "tip3.at.x": -1.0}]
    check(m, lambda m: m.at().coefficients(fingers, wrt="ball").H, design, 1e-3, 1e-8)
    check(m, lambda m: m.at().dynamics(wrt="ball").P, design, 1e-3, 1e-8)
    # where a finger is held does not depend on how its contact is turned: all three components are
    turned = m.sensitivity(lambda m: m.at().coefficients(fingers, wrt="ball").H, "tip1.normal.rz")
    assert np.abs(turned).max() < 1e-12


@pytest.mark.slow
def test_paths_and_assemblies() -> None:
    m = kic.load("four-bar")
    turn = 1.2 + np.linspace(0, 2 * np.pi, 9)
    S = m.sensitivity(lambda m: m.path({"A": turn}).value("D"), ["B.at.x", "C.at.y"])
    each = [m.sensitivity(lambda m, q=q: m.at({"A": q}).value("D"), ["B.at.x", "C.at.y"]) for q in turn]
    assert mismatch(S, np.stack(each, axis=1)) < 1e-11
    found = ["B.at.x", "C.at.y"]
    check(m, lambda m: m.assembly_modes({"A": 1.2}, starts=32).configuration.value("tip"), found)
    # of a batch, slices that have no configuration are NaN and the others are those of one target
    arm, far = kic.load("horn-two-link"), {"tip.x": [1.2, 1.6, 2.4], "tip.y": 0.3}
    names = ["elbow.at.x", "tip.at.x"]
    S = arm.sensitivity(lambda m: m.assembly_modes(far).configuration.value("elbow"), names)
    for k, x in enumerate(far["tip.x"][:2]):
        one = arm.sensitivity(
            lambda m, x=x: m.assembly_modes({"tip.x": x, "tip.y": 0.3}).configuration.value("elbow"), names
        )
        assert mismatch(S[:, :, k], one) < 1e-12
    assert np.isnan(S[:, :, 2]).all()


@pytest.mark.slow
def test_all_results_exist() -> None:
    m = movable(kic.load("five-bar"))
    design = ["B.at.x", "D.at.y", "E.at.x", {"coupler.mass": 0.01}]
    at = {"A": 1.3, "E": 1.5}
    qd, qdd = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    answers = [
        lambda m: m.at(at)._phi,
        lambda m: displacement(m.at(at), m.bodies[1].name),
        lambda m: m.at(at).dynamics().inverse_dynamics(qd, qdd),
        lambda m: m.at(at).dynamics().forward_dynamics(qd, [0.2, 0.1]),
        lambda m: m.at(at).dynamics().coriolis(qd),
        lambda m: m.at(at).dynamics().kinetic_energy(qd),
        lambda m: m.at(at).body_contributions().P_angular,
        lambda m: m.at(at).coefficients("tip").acceleration(qd, qdd),
        lambda m: m.at(at).coefficients(["tip.x", "tip.y"], order=3).inverse().D,
        lambda m: m.at(at).dynamics().transfer(m.at(at).coefficients(["tip.x", "tip.y"]).inverse()).P,
        lambda m: m.prepare.coefficients_and_dynamics(["tip"], order=3)(m.at(at).state).tip.D,
        lambda m: m.prepare.coefficients_and_dynamics(["tip"])(m.at(at).state, check=True).load,
        lambda m: m.at(at).operational_space(["tip.x", "tip.y"]).mu,
    ]
    for answer in answers:
        check(m, answer, design)


def test_counts_exclude_complex_steps() -> None:
    """The mobility does not change with a dimension, at any configuration."""
    m = kic.load("four-bar")
    at = {"A": 1.2}
    plain = m.sensitivity(lambda m: m.at(at).value("tip"), ["B.at.x"])
    for count in (
        lambda m: m.dof,
        lambda m: m.mobility().redundant,
        lambda m: m.mobility(configuration=m.at(at)).dof,
        lambda m: len(m.mobility(m.at(at)).shares),
    ):
        times = m.sensitivity(lambda m, n=count: n(m) * m.at(at).value("tip"), ["B.at.x"])
        np.testing.assert_allclose(times, plain * count(m), rtol=1e-13)


def test_evaluators_of_open_chains_take_real_states() -> None:
    m = kic.load("horn-two-link")
    state = m.at([0.3, 0.4]).state
    a = m.sensitivity(lambda m: m.prepare.coefficients_and_dynamics(["tip"])(state).P, ["elbow.at.x"])
    b = m.sensitivity(lambda m: m.at([0.3, 0.4]).dynamics().P, ["elbow.at.x"])
    assert np.array_equal(a, b)


def test_springs_in_joints_that_close_the_loop() -> None:
    m = kic.load("four-bar")
    joints = tuple(replace(j, stiffness=2.0, damping=0.3, rest=0.4) for j in m.joints)
    m = replace(m, joints=joints)
    assert m.mobility().cuts == ("D",)
    design = ["D.stiffness", "D.rest", "D.damping", "D.value", "D.at.x", "B.stiffness"]

    def loads(m: kic.Mechanism) -> np.ndarray:
        d = m.at({"A": 1.2}).dynamics()
        return np.concatenate([d.load, d.damping[0]])

    S = check(m, loads, design)
    c = m.at({"A": 1.2})
    G, stretch = c.coefficients("D").G[0, 0], float(c.value("D")) - 0.4
    assert np.allclose(S[:3], [[-G * stretch, 0], [2.0 * G, 0], [0, G**2]], rtol=1e-12)


def test_gears_and_racks() -> None:
    m = movable(kic.load("geared-five-bar"))
    mesh = m.couplings[0]
    key = next(k for k in ("ratios", "gears", "belt", "pitch_point") if getattr(mesh, k) is not None)
    assert key != "pitch_point"
    check(m, lambda m: everything(m.at({"A": 0.8}), ["tip"]), [f"mesh.{key}.1", f"mesh.{key}.2"])

    def rack(x: np.ndarray) -> kic.Mechanism:
        wheel = kic.Joint("A", "revolute", ("ground", "pinion"), at=(0, x[0], 0), axis=Z)
        slide = kic.Joint("S", "prismatic", ("ground", "rack"), axis=(1, 0, 0))
        mesh = kic.Coupling("mesh", ("A", "S"), pitch_point=(0, x[0] - x[1], 0))
        bodies = [kic.Body("pinion"), kic.Body("rack")]
        return kic.Mechanism("rack", bodies, [wheel, slide], couplings=[mesh], coordinates=["A"])

    m = rack(np.array([0.3, 0.05]))
    S = kic.sensitivity(rack, lambda m: m.at({"A": 0.7}).value("S"), [0.3, 0.05])
    assert np.allclose(S, [0, 0.7 * np.sign(m.at({"A": 0.7}).value("S"))], atol=1e-14)
    S = m.sensitivity(lambda m: m.at({"A": 0.7}).coefficients("S").G[0], ["A.at.y", "mesh.pitch_point.y"])
    assert np.allclose(S[:, 0], [1, -1], atol=1e-14)
    with raises(kic.ModelError, key="couplings[0].pitch_point"):
        m.sensitivity(lambda m: m.at({"A": 0.7}).value("S"), ["mesh.pitch_point.x"])
    wheels = [
        kic.Joint(n, "revolute", ("ground", n.lower()), at=(x, 0, 0), axis=Z) for n, x in (("A", 0), ("B", 3))
    ]
    bodies, mesh = [kic.Body("a"), kic.Body("b")], [kic.Coupling("mesh", ("A", "B"), gears=(20, 40))]
    pair = kic.Mechanism("pair", bodies, wheels, couplings=mesh, coordinates=["A"])
    with raises(kic.ModelError, key="couplings[0].gears"):
        pair.sensitivity(lambda m: m.at({"A": 1}).value("B"), ["B.axis.rx"])


def test_directions_are_sums() -> None:
    m = kic.load("rssr")

    def answer(m: kic.Mechanism) -> np.ndarray:
        return everything(m.at({"crank": 0.5, "spin": 0.2}), ["flag"])

    names, weights = ["rocker.at.x", "rocker.axis.ry", "ball.at.z"], [0.3, -2.0, 0.7]
    each = m.sensitivity(answer, names)
    (both,) = m.sensitivity(answer, dict(zip(names, weights, strict=True)))
    assert mismatch(both, np.einsum("k,k...->...", weights, each)) < 1e-13
    assert m.sensitivity(answer, "ball.at.z").shape == each[2:].shape
    # components of an axis and its turning say the same: (1, 0, 0) turned about y goes to -z
    S = m.sensitivity(answer, ["rocker.axis.ry", "rocker.axis.z", "rocker.axis.x"])
    assert mismatch(S[0], -S[1]) < 1e-13
    assert np.abs(S[2]).max() < 1e-13 * np.abs(S[0]).max()


@pytest.mark.slow_for(*OTHER_MODELS)
@pytest.mark.parametrize("name", kic.model_names())
def test_a_larger_mechanism_is_the_same_but_for_its_size(name: str) -> None:
    """Every length by as much: coefficients of points are as homogeneous as their units, in every model."""
    m = kic.load(name)
    scale = {
        f"{part.name}.{key}.{c}": x
        for part in (*m.joints, *m.points, *m.bodies, *m.contacts)
        for key in ("at", "com")
        if getattr(part, key, None) is not None
        for c, x in zip("xyz", getattr(part, key), strict=True)
        if x
    }
    slides = {"prismatic": {0}, "cylindrical": {1}, "planar": {0, 1}, "free": {0, 1, 2}}
    lengths = {c for j in m.joints for k, c in enumerate(j.components) if k in slides.get(j.type, ())}
    for coupling in m.couplings:  # of a screw, what the turn counts
        terms = m._terms[coupling.name]
        if coupling.ratios and {c in lengths for c, _ in terms} == {True, False}:
            scale |= {
                f"{coupling.name}.ratios.{k + 1}": r for k, (c, r) in enumerate(terms) if c not in lengths
            }
    of = [p.name for p in m.points if p.body != "ground"] or [f"{m.bodies[-1].name}.x"]
    one = m.at().coefficients(of, order=3)
    d = np.array([c in lengths for c in one.columns], dtype=float)
    degrees = 1 - d, 1 - d - d[:, None], 1 - d - d[:, None] - d[:, None, None]
    for letter, degree in zip("GHD", degrees, strict=True):
        (S,) = m.sensitivity(lambda m, x=letter: getattr(m.at().coefficients(of, order=3), x), scale)
        T = getattr(one, letter)
        assert np.abs(S - degree * T).max() <= 1e-12 * max(np.abs(T).max(), m._model.length), letter


def test_results_are_invariant_under_rigid_motion() -> None:
    m = kic.load("rssr")
    every = [name for name in names_in(m) if name.endswith((".at.x", ".com.x"))]
    whole = dict.fromkeys(every, 1.0)
    c = {"crank": 0.5, "spin": 0.2}
    S = m.sensitivity(lambda m: m.at(c).coefficients("flag", order=3).D, whole)
    assert np.abs(S).max() < 1e-12
    assert np.allclose(m.sensitivity(lambda m: m.at(c).value("flag"), whole), [[1, 0, 0]], atol=1e-14)
    turned = {n: 1.0 for n in names_in(m) if n.endswith((".axis.rz", ".axis2.rz"))}
    for part in (*m.joints, *m.points, *m.bodies):
        for key in ("at", "com"):
            if getattr(part, key, None) is not None:
                x, y, _ = getattr(part, key)
                turned |= {f"{part.name}.{key}.x": -y, f"{part.name}.{key}.y": x}
    S = m.sensitivity(lambda m: m.at(c).value("flag"), turned)
    x, y, _ = m.at(c).value("flag")
    assert np.allclose(S, [[-y, x, 0]], atol=1e-14)


@pytest.mark.parametrize("unit", [1e-6, 1e3])
def test_units_do_not_matter(unit: float) -> None:
    x = np.array([0.3, 0.8, 0.6, 0.9])

    def H(m: kic.Mechanism) -> np.ndarray:
        return m.at({"A": 1.2}).coefficients(["D", "C0"], order=3).D

    rows = np.array([1.0, *[unit] * 3]).reshape(4, 1, 1, 1)
    S = kic.sensitivity(four_bar, H, x * unit) * unit / rows
    assert mismatch(S, kic.sensitivity(four_bar, H, x)) < 1e-11
    refuses(lambda: four_bar(x * unit).sensitivity(H, "B.axis.rx"), kic.SingularError, joint="D", order=0)


# what cannot be, and what must not pass in silence


@pytest.mark.parametrize(
    ("name", "bends", "keeps"),
    [
        ("bennett", ["A.at.x", "B.axis.rx", "B.at.y"], []),
        ("bricard", ["theta1.at.x", "theta1.axis.rx", "theta2.at.y"], ["theta1.at.z", "theta2.at.x"]),
        ("sarrus", ["A1.axis.rx", "B1.axis.rx"], ["A1.at.x", "B1.at.z"]),
    ],
)
def test_changes_that_lock_a_spatial_linkage_raise(name: str, bends: list[str], keeps: list[str]) -> None:
    """A joint may slide along its own axis, but hardly anything else of a Bricard linkage may move alone."""
    m = kic.load(name)
    answer = lambda m: m.at().coefficients(m.bodies[-1].name, order=3).D  # noqa: E731
    for number in bends:
        refuses(lambda number=number: m.sensitivity(answer, number), kic.SingularError, order=1)
        assert redrawn(m, {number: 1.0}, 1e-3).dof == 0
    if keeps:
        check(m, answer, keeps)


@pytest.mark.parametrize("theta", [1.2, None])
@pytest.mark.parametrize("name", ["B.axis.rx", "C.axis.y", "D.axis.ry", {"A.axis.rx": 1, "B.axis.rx": 1}])
def test_locking_dimension_changes_raise(name, theta: float | None) -> None:
    m = kic.load("four-bar")
    inputs = None if theta is None else {"A": theta}
    with raises(kic.SingularError, match="Sensitivity to", joint="D"):
        m.sensitivity(lambda m: m.at(inputs).coefficients("tip", order=1).G, name)
    # and it is so: with a small tilt, the linkage has no freedom
    weights = {name: 1.0} if isinstance(name, str) else name
    assert redrawn(m, weights, 1e-3).dof == 0
    # the configuration as drawn is one all the same
    S = m.sensitivity(lambda m: m.at().value("tip"), name)
    assert not S.any()
    refuses(lambda: m.sensitivity(lambda m: m.at().dynamics().I, name), kic.SingularError, joint="D", order=1)
    with raises(kic.SingularError, joint="D", order=1):
        m.sensitivity(lambda m: m.prepare.coefficients(["tip"])(m.at().state).tip.G, name)


def test_conditions_are_checked_to_the_requested_order() -> None:
    """With the crank along the ground the coupler does not turn on the rocker: a tilt there acts later."""
    m = four_bar(np.array([0.3, 0.8, 0.6, 0.9]), drawn=0.0)
    assert abs(m.at().coefficients("C").G[0, 0]) < 1e-14
    S = m.sensitivity(lambda m: m.at().coefficients("C0", order=1).G, "C.axis.rx")
    assert np.abs(S).max() < 1e-14
    for order in (2, 3):
        with raises(kic.SingularError, joint="D", order=2):
            m.sensitivity(lambda m, k=order: m.at().coefficients("C0", order=k).G, "C.axis.rx")


def test_planar_changes_have_sensitivities() -> None:
    m = kic.load("four-bar")
    S = m.sensitivity(lambda m: m.at({"A": 1.2}).coefficients("tip", order=3).D, ["B.at.z", "D.at.z"])
    assert not S.any()
    # all axes together are a turn of the whole: its points go out of the plane to first order
    whole = {f"{joint}.axis.rx": 1.0 for joint in "ABCD"}
    for name in ("A", "B", "C", "D", "tip"):
        whole[f"{name}.at.z"] = m[name].at[1]
    S = m.sensitivity(lambda m: m.at({"A": 1.2}).value("tip"), whole)
    assert np.allclose(S, [[0, 0, m.at({"A": 1.2}).value("tip")[1]]], atol=1e-14)
    check(m, lambda m: m.at({"A": 1.2}).coefficients("coupler.angle").H, ["B.at.x", "D.at.y"])
    S = m.sensitivity(lambda m: m.at({"A": 1.2}).coefficients("coupler.angle").G, whole)
    assert np.abs(S).max() < 1e-14
    with raises(kic.InputError, name="link2"):
        kic.load("horn-two-link").sensitivity(lambda m: m.at([0, 1]).value("link2.angle"), "elbow.axis.rx")


def test_rounded_dimensions_have_no_derivative_but_masses_have() -> None:
    m = replace(movable(kic.load("four-bar")), closure_tolerance=1e-6)
    refuses(lambda: m.sensitivity(lambda m: m.at({"A": 1.2}).value("D"), "B.at.x"), closure_tolerance=1e-06)
    with pytest.raises(kic.InputError, match="Give exact dimensions, and leave closure_tolerance out"):
        m.sensitivity(lambda m: m.at().coefficients("D").G, "B.at.x")
    check(m, lambda m: m.at({"A": 1.2}).dynamics().I, ["coupler.mass"])
    spatial = replace(kic.load("rssr"), closure_tolerance=1e-6)  # nothing is redundant
    check(spatial, lambda m: m.at({"crank": 0.5, "spin": 0.2}).value("flag"), ["ball.at.x"])


UNKNOWN = [
    ("B.at.w", "'B.at.w' in 'four-bar'. Did you mean 'B.at.z'? Available: B.at.x, B.at.y, B.at.z, B"),
    ("B", "No parameter 'B' in 'four-bar'"),
    ("Q.at.x", "No parameter 'Q.at.x' in 'four-bar'. Did you mean"),
    ("gravity", "No parameter 'gravity' in 'four-bar'"),
    ("gravity.w", "Did you mean 'gravity.z'"),
    ("B.value.2", "No parameter 'B.value.2' in 'four-bar'"),
    ("", "No parameter '' in 'four-bar'"),
    ("coupler.length", "follow from positions: name these, such as 'D.at.x', or give `kic.sensitivity`"),
]


@pytest.mark.parametrize(("name", "message"), UNKNOWN)
def test_names_that_do_not_exist(name: str, message: str) -> None:
    m = kic.load("four-bar")
    for given in (name, ["B.at.x", name], {"B.at.x": 1.0, name: 2.0}):
        with pytest.raises(kic.UnknownNameError) as e:
            m.sensitivity(lambda m: pytest.fail("was asked before all names were known"), given)
        assert message in str(e.value)
        assert e.value.name == name
        assert {"B.at.x", "B.axis.rz", "B.value"} <= set(e.value.candidates)


def test_a_dropped_step_is_an_error() -> None:
    m = kic.load("four-bar")

    def answer(m: kic.Mechanism) -> np.ndarray:
        room = np.zeros(3)
        room[:] = m.at().value("tip")
        return room + 0j

    refuses(lambda: m.sensitivity(answer, "tip.at.x"), key="of")

    calls = iter([2, 3])
    with raises(kic.InputError, key="of"):
        m.sensitivity(lambda m: m.at().value("tip")[: next(calls)], ["tip.at.x", "tip.at.y"])


def test_state_of_another_mechanism_raises() -> None:
    kept: list[np.ndarray] = []
    m = kic.load("rssr")

    def other(m: kic.Mechanism) -> np.ndarray:
        kept.append(m.at({"crank": 0.5, "spin": 0.2}).state)
        return kept[0]

    m.sensitivity(other, "ball.at.x")
    for given in (kept[0], kept[0].real + 0j):
        with raises(kic.InputError, joint="ball"):
            m.sensitivity(lambda m, s=given: m.prepare.coefficients(["flag"])(s).flag.G, "ball.at.y")


def test_two_axes_stay_perpendicular() -> None:
    m = kic.load("rssr")
    answer = lambda m: m.at({"crank": 0.5, "spin": 0.2}).value("flag")  # noqa: E731
    with pytest.raises(kic.ModelError, match=r"Rotate both together: {'pin.axis.rx': 1, 'pin.axis2.rx': 1}"):
        m.sensitivity(answer, "pin.axis.ry")
    check(m, answer, [{"pin.axis.ry": 1.0, "pin.axis2.ry": 1.0}, "pin.axis2.rz"])


def test_an_inertia_stays_symmetric() -> None:
    def build(x: np.ndarray) -> kic.Mechanism:
        J = np.diag([1.0, 1.0, 1.0]) + 0 * x[0]
        J[0, 1] = x[0]
        J[1, 0] = x[0].real
        pin = kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 1, 1))
        body = kic.Body("rod", mass=1.0, com=(0, 0, 0), inertia=tuple(map(tuple, J)))
        return kic.Mechanism("rod", [body], [pin])

    with raises(kic.ModelError, key="inertia"):
        kic.sensitivity(build, lambda m: m.at([0.0]).dynamics().I, [0.1])


def test_steps_are_allowed_in_a_sensitivity_only() -> None:
    step = 1.0 + 1e-30j
    for make in (
        lambda: kic.Body("rod", mass=step, com=(0, 0, 0)),
        lambda: kic.Point("p", "rod", (step, 0, 0)),
        lambda: kic.Joint("A", "revolute", ("ground", "rod"), (0, 0, 0), (0, 0, step)),
        lambda: kic.Joint("A", "revolute", ("ground", "rod"), (0, 0, 0), Z, value=step),
        lambda: kic.Body("rod", mass=1.0, com=(0, 0, 0), inertia=(1, 1, step)),
        lambda: kic.Coupling("mesh", ("A", "B"), ratios=(step, 1)),
        lambda: replace(kic.load("four-bar"), gravity=(0, step, 0)),
    ):
        refuses(make, kic.ModelError)
        with stepping():
            assert make() is not None
    with stepping(), raises(kic.ModelError, key="mass"):
        kic.Body("rod", mass=1.0 + 0.5j)
    refuses(lambda: kic.load("four-bar").sensitivity(lambda m: 1 / 0, "B.at.x"), ZeroDivisionError)
    refuses(lambda: kic.Body("rod", mass=step), kic.ModelError)


def test_no_parameters_give_an_empty_result() -> None:
    m = kic.load("four-bar")
    assert m.sensitivity(lambda m: m.at().coefficients("tip").H, []).shape == (0, 3, 1, 1)


def test_the_mechanism_itself_stays_as_it_was() -> None:
    m = kic.load("four-bar")
    before = m.at({"A": 1.2}).coefficients("tip").H
    m.sensitivity(lambda m: m.at({"A": 1.2}).coefficients("tip").H, ["B.at.x"])
    assert np.array_equal(m.at({"A": 1.2}).coefficients("tip").H, before)
    assert m == kic.load("four-bar")
