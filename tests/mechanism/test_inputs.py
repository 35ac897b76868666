"""Inputs of `at`: forms, batches, rotations, round trips, failed members and errors."""

from __future__ import annotations

from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest
import sympy
from questions import zoo
from raising import raises
from sampling import mismatch
from scipy.spatial.transform import RigidTransform, Rotation

import kic
from kic.numerics.arrays import as_array, broadcast_batches, numbers
from kic.numerics.rotations import quaternion_from_vector, vector_from_quaternion

ZOO = zoo()
ARM = kic.load("horn-two-link")
NAMES = ["b5", "b4", "p7", "gap"]


def postures(batch: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(*batch, ZOO.dof))


# ----------------------------------------------------------------------------------- forms of input


def test_arrays_dicts_and_the_drawing_are_the_same_configuration() -> None:
    phi = [0.3, -0.4]
    wanted = ARM.at(phi).value("tip").tolist()
    by_name = {"elbow": -0.4, "shoulder": 0.3}
    forms = [
        np.array(phi), tuple(phi), np.array(phi, dtype=np.longdouble), by_name, OrderedDict(by_name),
        MappingProxyType(by_name), {"shoulder": np.float64(0.3), "elbow": np.array(-0.4)},
        [Fraction(3, 10), Decimal("-0.4")], np.array(phi, dtype=object),
    ]  # fmt: skip
    for form in forms:
        c = ARM.at(form)
        assert c.batch == ()
        assert c.value("tip").tolist() == wanted
    assert ARM.at([0, 1]).state.dtype == np.float64
    assert ARM.at(np.array([0, 1], dtype=np.uint8))._phi.tolist() == [0.0, 1.0]
    assert ARM.at()._phi.tolist() == [0.0, 0.0]
    assert kic.load("panda").at()._phi == pytest.approx(kic.load("panda").at(None)._phi, abs=0)
    assert ARM.at([0.3 + 0j, -0.4]).value("tip").tolist() == pytest.approx(wanted, abs=1e-14)


def test_several_dof_by_joint_or_by_component() -> None:
    m = kic.load("twin-arm")
    rest = {name: 0.1 for name in m.coordinates if not name.startswith("neck")}
    whole = m.at({**rest, "neck": [0.3, 0.7]})
    for parts in ({"neck.1": 0.3, "neck.2": 0.7}, {"neck.2": 0.7, "neck.1": 0.3}):
        assert m.at({**rest, **parts})._phi.tolist() == whole._phi.tolist()
    many = m.at({**rest, "neck": [[0.3, 0.7], [0.4, 0.8]]})
    assert many.batch == (2,)
    assert many._phi[0].tolist() == whole._phi.tolist()


def test_batches_of_a_dict_broadcast() -> None:
    shoulder, elbow = np.linspace(0, 1, 3)[:, None], np.linspace(0, 2, 2)
    c = ARM.at({"shoulder": shoulder, "elbow": elbow})
    assert c.batch == (3, 2)
    for i in range(3):
        for j in range(2):
            assert c._phi[i, j].tolist() == [shoulder[i, 0], elbow[j]]
    assert ARM.at({"shoulder": np.zeros((0,)), "elbow": 1.0}).batch == (0,)
    assert ARM.at({"shoulder": np.zeros((0, 1)), "elbow": np.zeros(4)}).batch == (0, 4)


# ------------------------------------------------------------------------------- rotations and poses


def ball(kind: str, pair: tuple[str, str] = ("ground", "b")) -> kic.Mechanism:
    joint = kic.Joint("S", kind, pair, at=(0.1, 0.2, -0.3))
    corners = [kic.Point(f"p{k}", "b", row) for k, row in enumerate(np.eye(3))]
    return kic.Mechanism("ball", [kic.Body("b", at=(1, 0, 0))], [joint], points=corners)


def corners(c) -> np.ndarray:
    return np.stack([c.value(f"p{k}") for k in range(3)], axis=-2)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1, 2), (0,)])
def test_scipy_rotations_and_transforms(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    R = Rotation.from_rotvec(rng.normal(size=(*shape, 3)))
    m, at = ball("spherical"), np.array([0.1, 0.2, -0.3])
    for given in (R, R.as_rotvec()):
        c = m.at({"S": given})
        assert c.batch == shape
        for k, e in enumerate(np.eye(3)):
            assert c.value(f"p{k}") == pytest.approx(R.apply(e - at) + at, abs=1e-13)
    t = rng.normal(size=(*shape, 3))
    T = RigidTransform.from_components(t, R)
    m = ball("free")
    for given, place in ((T, np.zeros(3)), (np.concatenate([t, R.as_rotvec()], axis=-1), at)):
        c = m.at({"S": given})
        assert c.batch == shape
        for k, e in enumerate(np.eye(3)):
            assert c.value(f"p{k}") == pytest.approx(R.apply(e - place) + place + t, abs=1e-13)
    body = m.bodies[0].name
    again = m.at({"S": m.at({"S": T}).pose(body)})
    assert again._phi == pytest.approx(m.at({"S": T})._phi, abs=1e-14)


def test_rotations_broadcast_with_other_joints() -> None:
    m = kic.Mechanism(
        "m",
        [kic.Body("a"), kic.Body("b")],
        [
            kic.Joint("A", "prismatic", ("ground", "a"), axis=(1, 0, 0)),
            kic.Joint("S", "spherical", ("a", "b"), at=(0, 0, 0)),
        ],
        points=[kic.Point("tip", "b", (1, 0, 0))],
    )
    R = Rotation.from_rotvec([[0, 0, 0.1], [0, 0, 0.2]])
    c = m.at({"A": [[0.0], [5.0], [7.0]], "S": R})
    assert c.batch == (3, 2)
    assert c.value("tip.x")[1] == pytest.approx(5 + np.cos([0.1, 0.2]), abs=1e-13)


SIZES = [
    0.0, 1e-300, 1e-160, 1e-20, 1e-8, 1e-3, 0.0099999, 0.0100001, 0.5, 3.0, np.pi - 1e-9, np.pi, np.pi + 1e-9,
    4.0, 2 * np.pi - 1e-9, 2 * np.pi, 2 * np.pi + 1e-9, 9.0, 100.3, 1e6, 1e155, 1e300,
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_rotation_vectors_of_every_length(size: float) -> None:
    axes = np.random.default_rng(1).normal(size=(30, 3))
    axes = np.concatenate([axes, np.eye(3), -np.eye(3)])
    r = size * axes / np.linalg.norm(axes, axis=-1)[:, None]
    q = quaternion_from_vector(r)
    assert np.linalg.norm(q, axis=-1) == pytest.approx(1.0, abs=1e-14)
    if size < 1e5:  # beyond, the length itself is known to some turns only
        wanted = Rotation.from_rotvec(r).as_quat(scalar_first=True)
        assert np.abs(np.abs((q * wanted).sum(-1)) - 1).max() < 1e-14 * max(1, size)
    back = vector_from_quaternion(q)
    assert np.linalg.norm(back, axis=-1).max() < np.pi + 1e-14
    if size < 3.1:
        assert back == pytest.approx(r, rel=1e-14, abs=0)
    # and as complex numbers, for derivatives by complex step
    if size < 1e5:
        forth = quaternion_from_vector(r + 1e-30j * axes[::-1])
        assert np.abs(forth.real - q).max() < 1e-14 * max(1, size)
        if size < 3.1:
            assert mismatch(vector_from_quaternion(forth).imag * 1e30, axes[::-1]) < 1e-12
    for kind, pair in (("spherical", ("ground", "b")), ("free", ("b", "ground"))):
        if size > 1e100:
            break
        m = ball(kind, pair)
        phi = r if kind == "spherical" else np.concatenate([axes, r], axis=-1)
        c = m.at(phi)
        assert mismatch(corners(m.at(c._phi)), corners(c)) < 1e-13


def test_both_signs_of_a_quaternion_are_one_rotation() -> None:
    q = np.random.default_rng(1).normal(size=(50, 4))
    q = np.concatenate([q, np.eye(4), -np.eye(4)])
    q /= np.linalg.norm(q, axis=-1)[:, None]
    r = Rotation.from_quat(q, scalar_first=True).as_matrix()
    for found in (vector_from_quaternion(q), vector_from_quaternion(-q), vector_from_quaternion(q + 0j).real):
        assert Rotation.from_rotvec(found).as_matrix() == pytest.approx(r, abs=1e-13)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2), (0,)])
def test_inverse_path_returns(batch: tuple[int, ...], scale: float) -> None:
    """The configuration at(c._phi) is the same, however the joints were turned before."""
    c = ZOO.at(scale * postures(batch))
    again = ZOO.at(c._phi)
    assert again.batch == batch
    a, b = c.coefficients(NAMES, order=2), again.coefficients(NAMES, order=2)
    holonomic = ~np.isnan(a.values)
    assert mismatch(b.values[holonomic], a.values[holonomic]) < 1e-12
    assert mismatch(b.G, a.G) < 1e-12
    assert mismatch(b.H, a.H) < 1e-12
    assert mismatch(again._phi, c._phi) < 1e-12
    if scale <= 1:
        assert mismatch(c._phi, scale * postures(batch)) < 1e-14


# ----------------------------------------------------------------------------------- failed members


@pytest.mark.slow
def test_a_printed_configuration_lists_cut_joints_too() -> None:
    path = kic.load("four-bar").path({"A": [1.0, 1.1]})
    for c in (path, path[0]):
        head, _, table = c.summary().text().partition("\njoints\n")
        assert head.startswith("four-bar: configuration")
        values = dict(line.split() for line in table.splitlines()[1:])
        assert list(values) == ["A", "B", "C", "D"]
        assert values == {name: f"{path[0].value(name):.5g}" for name in "ABCD"}
    assert "\ncoordinates\n" in kic.load("horn-two-link").at([0.0, 0.5]).summary().text()
    # balls at which loops are cut have no values
    for name in kic.model_names():
        assert "nan" not in kic.load(name).at().summary().text(), name


def test_a_single_configuration_may_be_masked_too() -> None:
    c = ARM.at([0.0, np.nan], failures="mask")
    assert c.ok.shape == ()
    assert not c.ok
    assert np.isnan(c.value("tip")).all()
    assert np.isnan(c.dynamics().I).all()
    assert ARM.at([0.0, 0.1], failures="mask").ok
    assert "1 of 2 members were not solved" in ARM.at([[0, np.nan], [0, 0]], failures="mask").summary().text()
    assert ARM.at(np.zeros((0, 2)), failures="mask").ok.shape == (0,)


def test_user_given_forces_and_masks() -> None:
    m = kic.Mechanism("m", ARM.bodies, ARM.joints, points=ARM.points, forces=[kic.Force("push", "tip")])
    phi = np.array([[0.1, 0.2], [np.nan, 0.0], [0.3, 0.4]])
    many = np.random.default_rng(0).normal(size=(5, 1, 3))
    found = m.at(phi, failures="mask").dynamics(applied={"push": many})
    wanted = m.at(phi[[0, 2]]).dynamics(applied={"push": many})
    assert found.load.shape == (5, 3, 2)
    assert np.isnan(found.load[:, 1]).all()
    assert found.load[:, [0, 2]].tolist() == wanted.load.tolist()
    assert found.I[:, [0, 2]].tolist() == wanted.I.tolist()


def test_errors_carry_failed_and_valid_members() -> None:
    phi = np.zeros((3, 2, 2))
    phi[0, 1, 0], phi[2, 0] = np.nan, [np.inf, -np.inf]
    with pytest.raises(kic.ConfigurationError) as caught:
        ARM.at(phi)
    error = caught.value
    assert str(error) == (
        "Coordinates of 'horn-two-link' must be finite, got others in 2 of 6 members: "
        "(0, 1): shoulder = nan; (2, 0): shoulder = inf, elbow = -inf. Use failures='mask' to keep the rest."
    )
    assert error.failed == [(0, 1), (2, 0)]
    assert error.reasons == ["shoulder = nan", "shoulder = inf, elbow = -inf"]
    rest = error.configuration
    assert rest.ok.tolist() == [[True, False], [True, True], [False, True]]
    assert np.isnan(rest.value("tip.x")).tolist() == (~rest.ok).tolist()
    with pytest.raises(
        kic.ConfigurationError,
        match=r"got others in 9 of 9 members.*\(3,\): shoulder = nan, elbow = nan; …\. Use failures=",
    ) as many:
        ARM.at(np.full((9, 2), np.nan))
    assert len(many.value.failed) == len(many.value.reasons) == 9
    assert isinstance(error, kic.InputError)
    with raises(kic.ConfigurationError, reasons=["S.2 = nan"]):
        ball("spherical").at({"S": [0, np.nan, 0]})


# ---------------------------------------------------------------------------------- what is refused


DEEP: list = []
for _ in range(10000):
    DEEP = [DEEP]

NO_NUMBERS = {
    "text": "0.5", "texts": ["0", "1"], "bytes": b"ab", "booleans": [True, False],
    "array of booleans": np.ones(2, bool), "None": [None, 0.0], "ragged": [[0.0, 1.0], [2.0]], "deep": DEEP,
    "objects": [object(), object()],
    "mixed": [0.0, "x"], "set": {1, 2}, "generator": (x for x in (0, 1)), "function": len, "module": kic,
    "dates": np.array(["2020", "2021"], dtype="M8[Y]"), "masked": np.ma.array([0.0, 1.0], mask=[0, 1]),
    "structured": np.zeros(2, dtype="f4,f4"), "rotation": Rotation.identity(), "large": [10**400, 0],
    "rotations": [Rotation.identity()] * 2, "lists in an array": np.array([[1], [2, 3]], dtype=object),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_non_numbers_raise(kind: str) -> None:
    value = NO_NUMBERS[kind]
    c = ARM.at([0.0, 0.5])
    tip, d = c.coefficients("tip", order=3), c.dynamics()
    calls = {
        "values": lambda: ARM.at(value),
        "elbow": lambda: ARM.at({"shoulder": 0.0, "elbow": value}),
        "qd": lambda: tip.velocity(value),
        "qdd": lambda: d.inverse_dynamics([0, 0], value),
        "effort": lambda: d.forward_dynamics([0, 0], value),
        "state": lambda: ARM.prepare.coefficients("tip")(value),
        "S": lambda: ball("free").at({"S": value}),
    }
    for name, call in calls.items():
        with raises(kic.InputError, key=name) as caught:
            call()
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)


BAD_DICTS = [
    ({}, {"missing": ("shoulder", "elbow"), "surplus": ()}),
    ({"shoulder": 0}, {"missing": ("elbow",), "surplus": ()}),
    ({1: 0}, {"key": "values", "got": 1}),
    ({"shoulder": [1, 2], "elbow": [1, 2, 3]}, {"batches": {"shoulder": (2,), "elbow": (3,)}}),
    ({"tip": 0}, {"key": "tip", "got": ()}),
    ({"tip.x": 0}, {"mobility": 2, "count": 1}),
    ({"tip": (0, 0, 0)}, {"mobility": 2, "count": 3}),
    ({"tip.x": "far", "tip.y": 0}, {"key": "tip.x", "got": "far"}),
    ({"tip.x": 1j, "tip.y": 0}, {"key": "tip.x", "got": complex}),
    ({"tip.x": 0, 5: 0}, {"key": "values", "got": 5}),
    ({"link1.wz": 0}, {"name": "link1.wz"}),
]


@pytest.mark.parametrize(("values", "data"), BAD_DICTS)
def test_bad_dicts(values: dict, data: dict) -> None:
    with raises(kic.InputError, **data):
        ARM.at(values)


def test_loads_are_not_inputs() -> None:
    data = {"name": "push"}
    with raises(kic.InputError, **data) as caught:
        ZOO.at({"push": 0})
    assert caught.value.name == "push"


def test_rotations_of_ball_joints_are_not_symbols() -> None:
    x = sympy.Symbol("x")
    with raises(kic.InputError, key="state"):
        ball("spherical").at([x, 0, 0])
    c = ball("free").at([x, 0, 0, 0, 0, 0])
    assert c._phi.tolist() == [x, 0, 0, 0, 0, 0]


def test_bad_balls_and_fixed_joints() -> None:
    with raises(kic.InputError, key="S", got=(2,), expected=(3,)):
        ball("spherical").at({"S": [0, 0]})
    with raises(kic.InputError, key="S", got=(3,), expected=(6,)):
        ball("free").at({"S": [0, 0, 0]})
    for kind, given in (("spherical", RigidTransform.identity()), ("free", Rotation.identity())):
        with raises(kic.InputError, key="S"):
            ball(kind).at({"S": given})
    fixed = next(joint.name for joint in ZOO.joints if joint.type == "fixed")
    with raises(kic.InputError, name="j2"):
        ZOO.at({fixed: 0.0})


def test_arrays_by_themselves() -> None:
    assert numbers("x", [1, 2]).dtype == np.float64
    assert numbers("x", [1j]).dtype == np.complex128
    assert numbers("x", np.array([1j], dtype=np.complex64)).dtype == np.complex128
    assert numbers("x", []).shape == (0,)
    given = np.zeros(3)
    assert numbers("x", given) is given
    assert as_array("x", np.full((2, 3), np.nan), 3, finite=False).shape == (2, 3)
    many = np.zeros((3, 2))
    many[1:] = np.nan
    text = r"`qd` must be finite, got nan at \(1, 0\), \(1, 1\), \(2, 0\), \(2, 1\) \(4 of 6 entries\)"
    with pytest.raises(kic.InputError, match=text) as caught:
        as_array("qd", many, 2)
    assert caught.value.entries.tolist() == [[1, 0], [1, 1], [2, 0], [2, 1]]
    with pytest.raises(kic.InputError, match=r"\(1, 1\) … \(50 of 50 entries\)"):
        as_array("qd", np.full((25, 2), np.inf), 2)
    assert broadcast_batches() == ()


def test_rotation_vectors_of_matrices() -> None:
    """At any angle, zero and a half turn included, against SciPy."""
    from kic.numerics.rotations import vector_from_matrix

    axes = np.random.default_rng(0).normal(size=(40, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    for angle in (0.0, 1e-9, 0.3, 2.0, np.pi - 1e-7, np.pi):
        R = Rotation.from_rotvec(angle * axes).as_matrix()
        again = Rotation.from_rotvec(vector_from_matrix(R)).as_matrix()
        assert np.abs(again - R).max() < 1e-13
        assert np.allclose(np.linalg.norm(vector_from_matrix(R), axis=1), angle, atol=1e-14)
