"""Error messages: rule, value received, remedy, and numbers as attributes."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import raising
from raising import raises
from signatures import written

import kic
from kic.description.description import KINDS
from kic.errors import short_repr, unknown

DEEP: list = []
for _ in range(10000):
    DEEP = [DEEP]


def body(**more) -> kic.Body:
    return kic.Body(**{"name": "b", "mass": 1.0, "com": (0.5, 0, 0), "inertia": (0, 0.1, 0.1), **more})


def joint(**more) -> kic.Joint:
    plain = {"name": "A", "type": "revolute", "bodies": ("ground", "b"), "at": (0, 0, 0), "axis": (0, 0, 1)}
    return kic.Joint(**{**plain, **more})


def mechanism(**more) -> kic.Mechanism:
    points = [kic.Point("tip", "b", (1, 0, 0)), kic.Point("nail", "ground", (0, 0, 0))]
    return kic.Mechanism(**{"name": "m", "bodies": [body()], "joints": [joint()], "points": points, **more})


def refuses(call, kind: type = kic.InputError, text: str = "", **data) -> kic.KicError:
    error = raising.refuses(call, kind, text, **data)
    assert "\n" not in str(error)
    assert len(str(error)) < 400
    return error


# --------------------------------------------------------------------------------------- the family


def test_one_family() -> None:
    for name in kic.__all__:
        kind = getattr(kic, name)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
            assert issubclass(kind, kic.KicError)
    for kind, builtin in (
        (kic.ModelError, ValueError), (kic.ModelFileError, kic.ModelError),
        (kic.UnknownNameError, LookupError),
        (kic.InputError, ValueError), (kic.ConfigurationError, kic.InputError),
        (kic.InertiaError, ValueError), (kic.SingularError, ArithmeticError), (kic.LoopError, ValueError),
    ):  # fmt: skip
        assert issubclass(kind, builtin)


def test_errors_carry_their_numbers_and_travel() -> None:
    error = kic.SingularError("no inverse", condition=1e16, coordinates=("A",))
    assert str(error) == error.message == "no inverse"
    assert (error.condition, error.coordinates) == (1e16, ("A",))
    assert error.numbers == {"condition": 1e16, "coordinates": ("A",)}
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is kic.SingularError
    assert (str(twin), twin.condition) == ("no inverse", 1e16)
    with pytest.raises(kic.ConfigurationError) as caught:  # the error carries a configuration
        kic.load("horn-two-link").at([[0, 0], [np.nan, 0]])
    twin = pickle.loads(pickle.dumps(caught.value))
    assert twin.failed == [(1,)]
    assert twin.configuration.value("tip")[0].tolist() == [2.0, 0.0, 0.0]


def test_errors_with_values_that_cannot_be_pickled_are_pickled() -> None:
    for kind in (kic.InputError, kic.FileError, kic.MissingExtraError):
        error = kind("`of` must be a name.", key="of", got=lambda: 0, count=2)
        for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert (type(twin), str(twin), twin.key, twin.count) == (kind, "`of` must be a name.", "of", 2)
            assert "lambda" in twin.got
            assert twin.numbers == {"key": "of", "got": twin.got, "count": 2}


def test_unknown_names_list_the_candidates() -> None:
    assert str(unknown("body", "hnd", "arm", ["hand", "base"])) == (
        "No body 'hnd' in 'arm'. Did you mean 'hand'? Available: hand, base."
    )
    assert str(unknown("load", "x", "arm", [])) == "No load 'x' in 'arm'. There are none."
    many = [f"p{i}" for i in range(1000)]
    error = unknown("point", "qqq", "arm", many)
    assert str(error).endswith("p20, p21, …, p999.")
    assert len(str(error)) < 200
    assert error.candidates == tuple(many)
    assert str(unknown("point", 5, "arm", ["a"])) == "No point 5 in 'arm'. Available: a."
    assert str(unknown("point", np.str_("b"), "arm", ["a"])).startswith("No point 'b' in")


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError


def test_received_value_is_shown_on_one_short_line() -> None:
    assert short_repr(1.5) == "1.5"
    assert short_repr("x") == "'x'"
    assert short_repr(np.zeros(3)) == "array([0., 0., 0.])"
    assert short_repr(DEEP) == "[[[[[[[...]]]]]]]"
    assert short_repr(Silent()).startswith("<")
    assert short_repr([Silent()])
    for long in ("y" * 10**6, list(range(10**6)), np.zeros((100, 100)), 10**5000, {i: i for i in range(999)}):
        assert len(short_repr(long)) <= 100
        assert "\n" not in short_repr(long)


# -------------------------------------------------------------------------------------------- parts


BAD_NUMBERS = [
    "1", True, None, 1j, np.nan, np.inf, [], [1], [[1]], {}, object(), 10**400, np.array([1.0]), DEEP, b"1",
    np.True_,
]  # fmt: skip
BAD_VECTORS = [
    "123", ["1", "2", "3"], [True, False, True], 5, [1, 2], [1, 2, 3, 4], [[1, 2, 3]], {1, 2, 3}, {"x": 1},
    [1, 2, None], [1, 2, np.nan], [1, 2, np.inf], [1, 2, [3]], [1, 2, 3j], iter([1, 2, 3]), b"abc", DEEP,
    np.zeros((3, 1)), object(), np.ma.array([1.0, 2, 3], mask=[0, 0, 1]), [1, 2, 10**400],
]  # fmt: skip
BAD_NAMES = [
    "", " b", "b ", "b.1", "a.b", "a\nb", "a\tb", "a\0", "\ud800", "\u200b", 5, None, True, b"b", ["b"], DEEP,
]  # fmt: skip
BAD_TEXTS = [5, None, ["b"], b"b", True, DEEP]
BAD_PAIRS = [
    "gb", None, 5, ("b",), ("b", "c", "d"), ("b", "b"), ("b", 5), (["b"], "c"), {"b", "c"}, {"b": 1, "c": 2},
    DEEP,
]  # fmt: skip
NAME = "must be text without dots, line breaks or outer spaces"
# of each type in a signature: wrong values, and the rule in the message
RULES = {
    "float": (BAD_NUMBERS, "must be a finite number"),
    "float | tuple[float, ...]": (BAD_NUMBERS, "must "),
    "Vector": (BAD_VECTORS, "must be three finite numbers, got "),
    "float | Vector | Six | Axes": (
        BAD_VECTORS,
        "must be one moment, 3 moments (xx yy zz), 6 numbers (xx yy zz xy",
    ),
    "str": (BAD_TEXTS, "must be text, got "),
    "JointType": (BAD_TEXTS, "must be one of 'fixed', 'revolute', "),
    "ContactType": (BAD_TEXTS, "must be one of 'point', "),
    "Literal['world', 'body']": (BAD_TEXTS, "must be one of 'world', 'body', got "),
    "tuple[str, str]": (BAD_PAIRS, "must "),
    "bool": ([5, None, "x", [True], DEEP], "must be True or False, got "),
    "Units": (BAD_TEXTS, "must be Units, got "),
}
# sound arguments of every part
SOUND = {
    kic.Body: {"name": "b", "mass": 1.0, "com": (0.5, 0, 0), "inertia": (0, 0.1, 0.1)},
    kic.Joint: {
        "name": "A", "type": "revolute", "bodies": ("ground", "b"), "at": (0, 0, 0), "axis": (0, 0, 1),
    },
    kic.Point: {"name": "p", "body": "b", "at": (0, 0, 0)},
    kic.Distance: {"name": "d", "points": ("p", "q")},
    kic.Angle: {"name": "a", "bodies": ("p", "q"), "axis": (1, 0, 0), "axis2": (0, 1, 0)},
    kic.Force: {"name": "f", "point": "p"},
    kic.Moment: {"name": "t", "body": "b"},
    kic.Spring: {"name": "s", "points": ("p", "q")},
    kic.Coupling: {"name": "k", "joints": ("A", "B"), "ratios": (1, 2)},
    kic.Contact: {
        "name": "c", "type": "soft", "bodies": ("a", "b"), "at": (0, 0, 0), "normal": (0, 0, 1),
        "friction": 0.5, "torsion": 0.1,
    },
    kic.Motor: {"name": "m", "joints": ["A"]},
    kic.Frame: {"name": "g", "body": "b"},
    kic.CenterOfMass: {"name": "w", "bodies": ["b"]},
    kic.Units: {},
    kic.Mechanism: {
        "name": "m", "bodies": [kic.Body("b")],
        "joints": [kic.Joint("A", "free", ("ground", "b"), (0, 0, 0))],
    },
}  # fmt: skip
# their rules depend on other fields
OTHERS = {"swing", "swing_axis", "axis2", "pitch_point"}


def fields() -> Iterator[tuple[type, str, str]]:
    """Return all fields of parts whose type is that of a rule, and this type."""
    for kind in SOUND:
        for key, parameter in inspect.signature(kind).parameters.items():
            type_ = written(parameter.annotation).removesuffix(" | None")
            if type_ in RULES and key not in OTHERS:
                yield kind, key, type_


@pytest.mark.parametrize(("kind", "key", "type_"), list(fields()), ids=lambda x: getattr(x, "__name__", x))
def test_fields_of_parts(kind: type, key: str, type_: str) -> None:
    """Every field with every value that is none of its type."""
    values, rule = (BAD_NAMES, NAME) if key == "name" else RULES[type_]
    optional = inspect.signature(kind).parameters[key].default is None
    label = re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__).capitalize().replace("Center", "Centre")
    for value in values:
        if value is None and optional:
            continue
        if short_repr(value) in ("[1]", "array([1.])") and "tuple" in type_:
            continue  # one number for each freedom
        if type_.startswith("float |") and (value == 5 if isinstance(value, int) else False):
            continue  # one moment is an inertia
        whose = f"A {label.lower()}'s" if key == "name" else f"{label} '{SOUND[kind].get('name')}':"
        text = f"{'Units:' if kind is kic.Units else whose} `{key}` {rule}"
        error = refuses(
            lambda value=value: kind(**{**SOUND[kind], key: value}), kic.ModelError, text, key=key
        )
        if type_ == "tuple[str, str]":
            assert f"list of two {key}" in str(error) or f"name two different {key}" in str(error)


def test_bodies() -> None:
    text = "'ground' is the fixed world and cannot be a body"
    refuses(lambda: kic.Body("ground"), kic.ModelError, text, key="name")
    text = "Body 'b' has mass 2 but no `com`. Give its centre of mass."
    refuses(lambda: kic.Body("b", mass=2), kic.ModelError, text, key="com")
    text = "Body 'b': `inertia` must be 0 with mass = 0, got (1, 1, 1). Correct `inertia`"
    refuses(lambda: kic.Body("b", mass=0, inertia=(1, 1, 1)), kic.ModelError, text, key="inertia")
    assert kic.Body("b", mass=0, inertia=(1, 1, 1), inertia_exception="a rotor as the table has it").inertia
    skew = ((1, 0.1, 0), (0, 1, 0), (0, 0, 1))
    text = "Body 'b': `inertia` must be symmetric; the largest difference from its transpose is 0.1."
    assert refuses(lambda: body(inertia=skew), kic.ModelError, text, key="inertia").difference == 0.1
    assert body(mass=None, com=None, inertia=None).mass is None


# ------------------------------------------------------------------------------------------ drawing


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_parts(kind: str) -> None:
    for value in (None, 5, "parts", b"ab", {"b": 1}, {1, 2}, 1j, object(), body()):
        text = f"Mechanism 'm': `{kind}` must be a"
        refuses(lambda value=value: mechanism(**{kind: value}), kic.ModelError, text, key=kind)
    wrong = joint() if kind == "bodies" else body()
    for value in ("part", None, {"name": "b"}, wrong, DEEP):
        parts = [*getattr(mechanism(), kind), value]
        where, text = f"{kind}[{len(parts) - 1}]", f"`{kind}` must contain "
        refuses(lambda parts=parts: mechanism(**{kind: parts}), kic.ModelError, text, key=where)


def test_drawings_of_several_joints() -> None:
    m = kic.load("twin-arm")
    text = "coordinate 'neck.1' is named twice in `coordinates`."
    refuses(lambda: replace(m, coordinates=["neck", "neck.1"]), kic.ModelError, text, key="coordinates[1]")
    bolted = (*m.joints[:-1], kic.Joint("neck", "fixed", ("torso", "head")))
    text = "joint 'neck' in `coordinates` is fixed and has no coordinates; leave it out."
    rest = partial(replace, m, joints=bolted, coordinates=["neck"])
    refuses(rest, kic.ModelError, text, key="coordinates[0]")
    floating = [j for j in m.joints if j.name != "yaw"]
    text = "no joint connects 'torso', 'left_upper'"
    error = refuses(lambda: replace(m, joints=floating), kic.ModelError, text, key="bodies[1]")
    assert error.bodies == tuple(b.name for b in m.bodies[1:])


# ---------------------------------------------------------------------------------------- questions


ARM = kic.load("horn-two-link")
STRETCHED = ARM.at([0.0, 0.0])


def test_names_of_rows() -> None:
    c = STRETCHED
    unknowns = [
        ("tp", "part 'tp' in 'horn-two-link'. Did you mean 'tip'? Available: link1, link2, shoulder, "),
        ("tip.w", "No row 'tip.w' in 'horn-two-link'. Did you mean 'tip.z'? Available: tip.x, tip.y, tip.z."),
        ("link1.q", "Available: link1.x, link1.y, link1.z, link1.wx, link1.wy, link1.wz, link1.angle, "),
        ("elbow.1", "No row 'elbow.1' in 'horn-two-link'. Did you mean 'elbow'?"),
        ("", "No part '' in 'horn-two-link'."),
        (".x", "No part '' in 'horn-two-link'."),
    ]
    for name, text in unknowns:
        for ask in (c.coefficients, c.value, lambda of: ARM.prepare.coefficients(of)):
            error = refuses(lambda ask=ask, name=name: ask(name), kic.UnknownNameError, text)
            assert error.candidates
    inputs = [
        ([], "`of` must contain at least one name, got none."),
        (["tip", 5], "`of` must contain names, got 5."),
        ("ground", "'ground' does not move. Name a point, a body or a joint."),
        ("tip.angle", "'tip' is not a body; only bodies of planar mechanisms have an `.angle`."),
    ]
    for name, text in inputs:
        refuses(lambda name=name: c.coefficients(name), text=text)
    loads = mechanism(forces=[kic.Force("f", "tip")], springs=[kic.Spring("s", ("tip", "nail"))])
    for name in ("f", "s"):
        text = f"'{name}' is a load, and loads have no rows. Name its point or body."
        refuses(lambda name=name: loads.at().coefficients(name), text=text)
    bare = mechanism(bodies=[kic.Body("b")], joints=[joint(axis=(0, 1, 1))])
    text = "Body 'b' has no reference point. Give it `at` (or `com`), or request 'b.wx' … or a point of it."
    refuses(lambda: bare.at().coefficients("b"), text=text)
    assert bare.at().coefficients(["b.wx", "b.wz"]).rows == ("b.wx", "b.wz")
    bolted = mechanism(joints=[kic.Joint("A", "fixed", ("ground", "b"))])
    refuses(lambda: bolted.at().coefficients("A"), text="Joint 'A' is fixed and has no rows.")
    arm = kic.load("puma560")
    text = "'puma560' is not planar, so 'link2' has no `.angle`. Request 'link2.wx', 'link2.wy', 'link2.wz'."
    refuses(lambda: arm.at().value("link2.angle"), text=text)
    rule = "includes angular velocities, which have no value. Name a point or rows such as"
    refuses(lambda: arm.at().value("link2"), text=f"'link2' {rule} 'link2.x', or use the pose() of a body.")
    loop = kic.load("rssr")
    cone = loop.replace("ball", swing=3.0, swing_axis=(1.0, 0.0, 0.0))
    refuses(lambda: cone.at().value("ball"), text=f"'ball' {rule} 'ball.swing', or use")
    assert cone.at().value("ball.swing").shape == ()
    floating = mechanism(joints=[kic.Joint("A", "free", ("ground", "b"), at=(0, 0, 0))])
    refuses(lambda: floating.at().value("A"), text=f"'A' {rule} 'A.1', or use")
    assert floating.at().value("A.1").shape == ()
    refuses(lambda: arm.at().value("link2.wx"), text=f"'link2.wx' {rule}")


def test_poses() -> None:
    for name in ("tip", "ground", "elbow", "lnk1", ""):
        text = f"No body or frame '{name}' in '"
        error = refuses(lambda name=name: STRETCHED.pose(name), kic.UnknownNameError, text)
        assert error.candidates == ("link1", "link2")
    refuses(lambda: ARM.at([0, 0]).pose("tip"), kic.UnknownNameError, "it is a point of body 'link2'")
    refuses(lambda: STRETCHED.pose(5), text="`of` must be a string, got 5.")
    text = "`configuration` must hold real numbers in pose(), got complex128."
    refuses(lambda: ARM.at([1j, 0]).pose("link1"), text=text)


def test_coefficients() -> None:
    tip = STRETCHED.coefficients("tip", order=1)
    for names in ("tp", "tip.w", ["tip.x", "nope"], "tip.x.y", ""):
        error = refuses(lambda names=names: tip[names], kic.UnknownNameError, "No row '")
        assert error.candidates == ("tip.x", "tip.y", "tip.z")
    text = "because H is needed, got coefficients of order 1. Compute them with order=2."
    refuses(lambda: tip.acceleration([0, 0], [0, 0]), text=text)
    text = "because D is needed, got coefficients of order 2. Compute them with order=3."
    refuses(lambda: STRETCHED.coefficients("tip").jerk([0, 0], [0, 0], [0, 0]), text=text)
    many = ARM.at(np.zeros((3, 2))).dynamics()
    text = "Batch shapes do not broadcast: `model` (3,), `qd` (2,), `qdd` ()."
    refuses(lambda: many.inverse_dynamics(np.zeros((2, 2)), [0, 0]), text=text)


# ----------------------------------------------------------------------------------------- dynamics


def test_unknown_masses_and_inertias() -> None:
    m = replace(ARM, bodies=[kic.Body("link1", mass=1, com=(0.5, 0, 0)), kic.Body("link2")])
    text = (
        "Dynamics of 'horn-two-link' needs the inertia of every moving body; missing: link2 (mass), "
        "link1 (inertia). Write mass = 0 for a massless body and inertia = [0, 0, 0] for a point mass."
    )
    for ask in (m.at().dynamics, m.at().body_contributions, lambda: m.prepare.dynamics()):
        error = refuses(ask, kic.InertiaError, text)
        assert error.bodies == ("link2", "link1")
    assert m.at().coefficients("tip").G.any()  # the motion is known all the same
    # what stands on ground may be as it likes
    foot = kic.Body("foot")
    m = replace(
        ARM, bodies=[*ARM.bodies, foot], joints=[*ARM.joints, kic.Joint("bolt", "fixed", ("ground", "foot"))]
    )
    assert m.at().dynamics().I.tolist() == STRETCHED.dynamics().I.tolist()


def test_a_massless_chain() -> None:
    m = replace(ARM, bodies=[kic.Body("link1", mass=0), kic.Body("link2", mass=0, inertia=(0, 0, 0))])
    text = (
        "No moving body of 'horn-two-link' has mass, so its dynamics would be 0 = T. "
        "Give bodies `mass`, `com` and `inertia`."
    )
    ask_at_once = lambda: m.prepare.coefficients_and_dynamics("tip")  # noqa: E731
    for ask in (m.at().dynamics, m.at().body_contributions, ask_at_once):
        assert refuses(ask, kic.InertiaError, text).bodies == ("link1", "link2")
    tip = [replace(point, mass=2.0) if point.name == "tip" else point for point in m.points]
    half = replace(m, points=tip)  # a point mass is mass enough, but a stretched arm cannot throw it
    d = half.at([0.0, 0.0]).dynamics()
    error = refuses(
        lambda: d.forward_dynamics([0, 0], [0, 0]), kic.SingularError, "I* has no inverse (condition "
    )
    assert "moves no mass. Give the bodies beyond it mass and inertia." in str(error)
    assert error.condition > 1e15
    assert set(error.coordinates) <= {"shoulder", "elbow"}
    assert np.isfinite(half.at([0.0, 1.0]).dynamics().forward_dynamics([0, 0], [0, 0])).all()


def test_springs_without_direction() -> None:
    m = mechanism(springs=[kic.Spring("s", ("tip", "nail"), stiffness=1, rest=0.5)])
    home = replace(m, points=[kic.Point("tip", "b", (0, 0, 0)), kic.Point("nail", "ground", (0, 0, 0))])
    assert np.isfinite(m.at().dynamics().load).all()
    text = "The ends of one of the springs s coincide, so its force has no direction. Move its points"
    refuses(home.at().dynamics, text=text)
    soft = replace(home, springs=[kic.Spring("s", ("tip", "nail"), stiffness=1)])
    assert soft.at().dynamics().load.tolist() == [0.0]


def test_forces_of_the_caller() -> None:
    m = mechanism(forces=[kic.Force("push", "tip")], moments=[kic.Moment("twist", "b")])
    c = m.at([0.0])
    text = "No force or moment 'puhs' in 'm'."
    error = refuses(lambda: c.dynamics(applied={"puhs": (0, 0, 0)}), kic.KicError, text)
    assert "Available: push, twist." in str(error)
    assert error.name == "puhs"
    text = "No force or moment 'tip' in 'horn-two-link'."
    refuses(lambda: STRETCHED.dynamics(applied={"tip": (0, 0, 0)}), kic.KicError, text)
    text = "`push` must have shape (..., 3), got (2,)."
    assert refuses(lambda: c.dynamics(applied={"push": (0, 0)}), text=text).got == (2,)
    # one number serves one degree of freedom, and is no vector for several
    assert c.coefficients("tip").velocity(2.0).shape == (3,)
    text = "`qd` must have shape (..., 2), got ()."
    refuses(lambda: STRETCHED.coefficients("tip").velocity(2.0), text=text)
    refuses(lambda: c.dynamics(applied={"push": "up"}), text="`push` must be an array of numbers, got 'up'.")
    text = "`twist` must be finite, got nan at (1,) (1 of 3 entries)."
    refuses(lambda: c.dynamics(applied={"twist": (0, np.nan, 0)}), text=text)


# ---------------------------------------------------------------------------------------- evaluator


def test_evaluators() -> None:
    f = ARM.prepare.coefficients("tip")
    r = f(STRETCHED.state)
    for ask in (lambda: r.nope, lambda: r["nope"], lambda: r.I):
        assert refuses(ask, kic.UnknownNameError, "in these results. Available: tip.").candidates == ("tip",)
    text = "`state` must have shape (..., 2), as `Configuration.state`, got (3,)."
    refuses(lambda: f([0, 0, 0]), text=text)
    many = ARM.at(np.zeros((3, 2)))
    text = (
        "`out` must be results of this evaluator for batch (3,) and float64, got results for () and float64."
    )
    refuses(lambda: f(many.state, out=r), text=text)


def test_failed_members_are_indices_of_the_batch() -> None:
    m = kic.load("four-bar")
    open_states = m.at({"A": [[1.0, 1.1], [1.2, 1.3]]}).state
    open_states[1, 0] += 0.1
    with raises(kic.InputError, failed=[(1, 0)]):
        m.prepare.coefficients(["tip"]).check(open_states)

    def effort(t: float, now: object) -> float:
        m.prepare.coefficients(["tip"]).check(open_states[1, 0])
        return 0.0

    with raises(kic.InputError, failed=[()], time=0.0):
        m.simulate(0.1, near=m.at(), effort=effort)
    error = kic.SingularError("x", failed=[2])
    for _ in range(2):  # indices stay
        error.place(range(6), (2, 3))
        assert error.failed == [(0, 2)]


def test_messages_are_bounded() -> None:
    with raises(kic.ModelFileError) as caught:
        kic.load("/" + "x y/" * 2000 + "a.toml")
    assert len(str(caught.value)) <= 3000
