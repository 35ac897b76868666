"""Model files: reading, writing, the schema, and errors with file, key and rule."""

from __future__ import annotations

import math
import random
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from cProfile import Profile
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from raising import raises, refuses
from representative_models import OTHER_MODELS, REPRESENTATIVE_MODELS
from sampling import mismatch
from spoiling import spoiled, texts

import kic
from kic.io.library import find, models_directory

BASE = """\
name = "m"

[[bodies]]
name = "b"
mass = 1.0
com = [0.5, 0, 0]
inertia = [0, 0.1, 0.1]

[[joints]]
name = "A"
type = "revolute"
bodies = ["ground", "b"]
at = [0, 0, 0]
axis = [0, 0, 1]

[[points]]
name = "tip"
body = "b"
at = [1, 0, 0]
"""
ARM = 'name = "m"\n[dh]\n[[dh.rows]]\njoint = "A"\nbody = "b"\n'


def swap(old: str, new: str, text: str = BASE) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


@pytest.fixture
def refused(tmp_path: Path):
    """Load a text or bytes that must be refused; the error, and its message without the folder."""

    def load(content: str | bytes) -> tuple[kic.ModelFileError, str]:
        path = tmp_path / "arm.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        error = refuses(lambda: kic.load(path), kic.ModelFileError)
        assert type(error) is kic.ModelFileError
        assert error.path == path
        assert error.__suppress_context__ or error.__context__ is None  # no other traceback
        message = str(error)
        assert message.startswith(f"{path}: ")
        assert len(message) < 1200
        return error, message.removeprefix(f"{path}: ")

    return load


# ---------------------------------------------------------------------------------------- what loads


@pytest.mark.slow_for(*OTHER_MODELS)
@pytest.mark.parametrize("name", kic.model_names())
def test_shipped_models(name: str, tmp_path: Path) -> None:
    m = kic.load(name)
    assert m.name == name
    assert m == kic.load(find(name)) == kic.load(str(find(name)))
    assert all((m.info.title, m.info.about, m.info.source, m.info.drawing))
    m.save(tmp_path / "again.toml")
    assert kic.load(tmp_path / "again.toml") == m


def keys(model: str) -> set[str]:
    """Return the tables and keys of a model, and the types of its joints."""
    found = set[str]()
    for table, rows in tomllib.loads(find(model).read_text(encoding="utf-8")).items():
        found.add(table)
        for row in rows if isinstance(rows, list) else [rows]:
            if isinstance(row, dict):
                found |= {f"{table}.{key}" for key in row} | {f"{table}: {row.get('type')}"}
    return found


def test_representative_models_have_every_key_and_type() -> None:
    chosen = set[str]().union(*map(keys, REPRESENTATIVE_MODELS))
    assert set[str]().union(*map(keys, kic.model_names())) == chosen


def test_names_of_shipped_models() -> None:
    assert kic.model_names() == tuple(sorted(p.stem for p in models_directory().glob("*.toml")))
    assert len(kic.model_names()) >= 5


@pytest.mark.parametrize("dress", ["crlf", "bom", "comments", "inline", "str path"])
def test_models_in_several_notations(dress: str, tmp_path: Path) -> None:
    path = tmp_path / "arm.toml"
    text = {
        "crlf": BASE.replace("\n", "\r\n"),
        "bom": "\ufeff" + BASE,
        "comments": BASE.replace("\n", " # ünï\n\n"),
        "inline": """name = "m"
            bodies = [{name = "b", mass = 1, com = [0.5, 0.0, 0.0], inertia = [0.0, 0.1, 0.1]}]
            joints = [{name="A", type="revolute", bodies=["ground", "b"], at=[0, 0, 0], axis=[0, 0, 1]}]
            points = [{name = "tip", body = "b", at = [1, 0, 0]}]""",
        "str path": BASE,
    }[dress]  # fmt: skip
    path.write_bytes(text.encode())
    body = kic.Body("b", mass=1, com=(0.5, 0, 0), inertia=(0, 0.1, 0.1))
    pin = kic.Joint("A", "revolute", ("ground", "b"), (0, 0, 0), (0, 0, 1))
    wanted = kic.Mechanism("m", [body], [pin], points=[kic.Point("tip", "b", (1, 0, 0))])
    assert kic.load(str(path) if dress == "str path" else path) == wanted


def test_every_shape_of_an_inertia_and_of_a_value(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"

    def body(inertia: str) -> Any:
        path.write_text(swap("inertia = [0, 0.1, 0.1]", f"inertia = {inertia}"), encoding="utf-8")
        return kic.load(path).bodies[0].inertia

    assert body("[1, 2, 3]") == body("[1, 2, 3, 0, 0, 0]") == body("[[1,0,0],[0,2,0],[0,0,3]]")
    assert body("[2, 2, 2, 0.1, 0.2, 0.3]") == ((2.0, 0.1, 0.2), (0.1, 2.0, 0.3), (0.2, 0.3, 2.0))
    for value in ("0.5", "[0.5]", "5e-1"):
        path.write_text(swap("axis = [0, 0, 1]", f"axis = [0, 0, 1]\nvalue = {value}"), encoding="utf-8")
        assert kic.load(path).joints[0].value == (0.5,)


def test_rows_of_an_arm(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    more = '[[bodies]]\nname = "b"\nmass = 2\ncom = [1, 0, 0]\ninertia = [0, 1, 1]\n'
    path.write_text(ARM + "a = 1\ntheta = 0.5\n" + more, encoding="utf-8")
    body = kic.Body("b", mass=2, com=(1, 0, 0), inertia=(0, 1, 1))
    assert kic.load(path) == kic.from_dh(
        "m", [kic.DHRow("A", "b", a=1, theta=0.5)], bodies=[body], convention="freeman"
    )
    path.write_text(swap("[dh]", '[dh]\nconvention = "standard"', ARM) + "a = 1\n", encoding="utf-8")
    assert kic.load(path) == kic.from_dh("m", [kic.DHRow("A", "b", a=1)], convention="standard")


# -------------------------------------------------------------------------------------- what is saved


PROSE = [
    "one line", "", "two\nlines", "\nfirst empty", "last empty\n",
    "\n\n", '"', '"""', 'a "quoted" word\nin lines',
    'ends with "\n"', '"""\n"""', '"\n""', '"' * 7 + "\n" + '"' * 7, "'''\n", "back\\slash",
    "back\\\nslash\\", "\\u0041\n",
    "tab\tand\nline", "ünï\n😀", "\ufeff\n",
    "\u2028\n",
    "trailing  \n  leading", "# no comment\n[no.table]\nno = key",
]  # fmt: skip


@pytest.mark.parametrize(("sign", "limit"), [("-", -math.inf), ("", math.inf)])
def test_integers_beyond_floats_are_infinite(sign: str, limit: float, tmp_path: Path) -> None:
    path, limits = tmp_path / "m.toml", tuple(sorted([0.0, limit]))
    joint = kic.Joint("J", "prismatic", ("ground", "a"), axis=(0, 0, 1), limits=limits)
    kic.Mechanism("m", [kic.Body("a")], [joint]).save(path)
    text = path.read_text(encoding="utf-8")
    assert f"{sign}inf" in text
    path.write_text(text.replace(f"{sign}inf", f"{sign}1{'0' * 400}"), encoding="utf-8")
    assert kic.load(path)["J"].limits == limits


@pytest.mark.parametrize("prose", PROSE)
def test_prose_is_returned(prose: str, tmp_path: Path) -> None:
    m = replace(
        kic.load("horn-two-link"),
        info=dict.fromkeys(("title", "about", "source", "drawing"), prose),
        units=kic.Units(length=prose),
    )
    m = replace(m, bodies=[replace(body, inertia_exception=prose) for body in m.bodies])
    m.save(tmp_path / "m.toml")
    assert kic.load(tmp_path / "m.toml") == m


@pytest.mark.parametrize(
    "key", ["title", "about", "source", "drawing", "remarks", "inertia_exception", "units"]
)
@pytest.mark.parametrize("control", ["\r\n", "\0", "\x07", "\x1b[2J", "\x7f", "\x9b31m", "\u202e", "\u2067"])
def test_control_characters_are_not_text(key: str, control: str) -> None:
    """They clear a terminal, hide lines or reverse the order of characters."""
    makers: dict[str, Callable[[], object]] = {
        "inertia_exception": lambda: kic.Body("a", inertia_exception=control),
        "units": lambda: kic.Units(length=control),
        "remarks": lambda: kic.load("four-bar").replace(remarks=[control]),
    }
    with pytest.raises(kic.ModelError, match="without control characters") as caught:
        makers.get(key, lambda: kic.load("four-bar").replace(info={key: control}))()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "name", ["a b", '"q"', "it's", "[x]", "ünï", "a=b", "#", "a,b", "😀", "\\", "1", "true", "ß"]
)
def test_names_come_back(name: str, tmp_path: Path) -> None:
    joint = kic.Joint(f"{name} j", "prismatic", ("ground", name), axis=(0, 0, 1))
    point = kic.Point(f"{name} p", name, (1e-300, 5e-324, -9.999999999999999e49))
    m = kic.Mechanism(name, [kic.Body(name)], [joint], points=[point], coordinates=[f"{name} j"])
    m.save(tmp_path / "m.toml")
    assert kic.load(tmp_path / "m.toml") == m


def everything() -> kic.Mechanism:
    """A drawing that uses every part and every field."""
    bodies = ["ground", *"abcdefghij"]
    place: dict[str, Any] = dict(at=(0.1, -0.2, 1 / 3))
    joints = [
        kic.Joint(
            "R", "revolute", ("ground", "a"), axis=(0, 0, 2), value=0.1, stiffness=1, rest=0.2, damping=3,
            **place,
        ),
        kic.Joint("P", "prismatic", ("b", "a"), axis=(1, 1, 0), value=-0.5),
        kic.Joint("X", "fixed", ("b", "c")),
        kic.Joint("C", "cylindrical", ("d", "c"), axis=(0, 1, 0), value=(0.1, 0), damping=2,
            limits=((-1, 1), (0, math.inf)), **place),
        kic.Joint("U", "universal", ("d", "e"), axis=(0, 1, 0), axis2=(1, 0, 0), rest=(0, 1), swing=1,
            **place),
        kic.Joint("S", "spherical", ("e", "f"), damping=(1, 0, 2), swing=0.5, swing_axis=(0, 1, 2), **place),
        kic.Joint(
            "E", "planar", ("f", "g"), axis=(0, 1, 0), axis2=(1, 0, 0), value=(1, 2, 3), stiffness=4, **place,
        ),
        kic.Joint(
            "F", "free", ("ground", "h"), value=(1, 2, 3, 0, 0, 0), stiffness=(1, 1, 1, 0, 0, 0), **place,
        ),
        kic.Joint("V", "revolute", ("ground", "i"), axis=(0, 0, 1), at=(0.6, -0.2, 0), limits=(-math.inf, 1)),
        kic.Joint("W", "revolute", ("ground", "j"), axis=(0, 0, 1), at=(0.6, -0.2, 0)),
    ]  # fmt: skip
    shapes: list[dict] = [
        dict(mass=1, com=(1, 2, 3), inertia=(1, 1, 1, 0.1, 0, 0)), dict(mass=0),
        dict(mass=0, inertia=(0, 0, 0)), dict(mass=2, com=(0, 0, 0), inertia=(1, 2, 3), at=(1, 1, 1)),
        dict(com=(1, 1, 1)), dict(at=(0, 0, 0)), {},
        dict(mass=1, com=(0, 0, 0), inertia=(0, 0, 5), inertia_exception='printed so,\nin "table 3"'), {}, {},
    ]  # fmt: skip
    return kic.Mechanism(
        "everything",
        [kic.Body(name, **shape) for name, shape in zip(bodies[1:], shapes, strict=True)],
        joints,
        points=[kic.Point("p", "g", (1, 2, 3), mass=0.5), kic.Point("o", "ground", (0, 0, 0)), kic.Point("q",
            "h", (1, 0, 0))],
        distances=[kic.Distance("d1", ("p", "o"), limits=(0.5, 1e3)),
            kic.Distance("d2", ("p", "q"), fixed=True), kic.Distance("d3", ("p", "q"), axis=(0, 1, 0))],
        angles=[kic.Angle("w", ("g", "h"), (1, 0, 0), (0, 1, 0), limits=(0.5, 2))],
        forces=[kic.Force("f1", "p", (1, 2, 3), axes="body"), kic.Force("f2", "q")],
        moments=[kic.Moment("m1", "h", (1, 2, 3), axes="body"), kic.Moment("m2", "a", (0, 0, 1))],
        springs=[kic.Spring("s1", ("p", "q"), stiffness=1, rest=2, damping=3),
            kic.Spring("s2", ("q", "o"))],
        couplings=[kic.Coupling("k1", ("R", "C.2", "U.1"), ratios=(1, -0.5, 2)),
            kic.Coupling("k2", ("R", "W"),
            gears=(20, -50)), kic.Coupling("k3", ("V", "R"), belt=(0.1, 0.2)),
            kic.Coupling("k4", ("R", "V"), pitch_point=(0.35, -0.2, 1 / 3))],
        contacts=[kic.Contact("t1", "soft", ("h", "ground"), (1, 0, 0), normal=(0, 0, -2), friction=0.5,
            torsion=0.1),
            kic.Contact("t2", "pinned", ("a", "h"), (0, 1, 1 / 3), closed=False)],
        motors=[kic.Motor("M1", ["R", "C.2"], ratios=[60, -3], inertia=1e-4, damping=1e-3,
            friction=0.02, resistance=1.5, inductance=2e-3, torque_constant=0.05, speed_constant=0.06),
            kic.Motor("M2", ["V"])],
        centers=[kic.CenterOfMass("mean", ["h"])],
        frames=[kic.Frame("tool", "h", origin=(1, 2, 1 / 3), axes=[(0, 1, 0), (0, 0, 1), (1, 0, 0)]),
            kic.Frame("camera", "ground", origin=(0, 0, 1))],
        gravity=(0, 0, -386.0886),
        closure_tolerance=1e-4,
        coordinates=["F", "U.2", "R", "U.1", "P", "C", "S", "E"],
        actuators=["R", "C.2", "d1", "p.x"],
        info={"title": "all at once", "about": "of\nmany\nlines\n", "source": "made up",
            "drawing": "as it stands"},
        remarks=("one thing was left out", "another was merged"),
        units=kic.Units(length="in", mass="lbf s²/in", time="s", force="lbf"),
    )  # fmt: skip


def test_model_with_all_parts_round_trips(tmp_path: Path) -> None:
    m = everything()
    path = tmp_path / "m.toml"
    m.save(path)
    again = kic.load(path)
    for f in fields(m):
        assert getattr(again, f.name) == getattr(m, f.name), f.name
    assert again == m
    assert again.at().value("p").tolist() == m.at().value("p").tolist()
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first
    # nothing of the drawing stands at its default, so that nothing was forgotten here
    for f in fields(m):
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        assert getattr(m, f.name) != default, f.name


def test_saved_files_are_pleasant_to_read(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    everything().save(path)
    text = path.read_text(encoding="utf-8")
    head = '''\
name = "everything"
title = "all at once"
about = """
of
many
lines
"""
source = "made up"
drawing = "as it stands"
units = {length = "in", mass = "lbf s²/in", force = "lbf"}
gravity = [0.0, 0.0, -386.0886]
closure_tolerance = 0.0001
coordinates = ["F", "U.2", "R", "U.1", "P", "C", "S", "E"]
actuators = ["R", "C.2", "d1", "p.x"]
remarks = ["one thing was left out", "another was merged"]

[[bodies]]
name = "a"
mass = 1.0
com = [1.0, 2.0, 3.0]
inertia = [1.0, 1.0, 1.0, 0.1, 0.0, 0.0]

[[bodies]]
name = "b"
mass = 0.0

[[bodies]]
name = "c"
mass = 0.0
inertia = [0.0, 0.0, 0.0]
'''
    assert text.startswith(head)
    for part in (
        '\n\n[[joints]]\nname = "R"\ntype = "revolute"\nbodies = ["ground", "a"]\nat = [0.1, -0.2, 0.333',
        "\nvalue = 0.1\nstiffness = 1.0\nrest = 0.2\ndamping = 3.0\n",
        '[[springs]]\nname = "s2"\npoints = ["q", "o"]\n\n',
        '[[couplings]]\nname = "k4"\njoints = ["R", "V"]\npitch_point = [0.35, -0.2, 0.3333333333333333]\n',
        '\n[[contacts]]\nname = "t1"\ntype = "soft"\nbodies = ["h", "ground"]\nat = [1.0, 0.0, 0.0]\n'
        "normal = [0.0, 0.0, -2.0]\nfriction = 0.5\ntorsion = 0.1\n"
        '\n[[contacts]]\nname = "t2"\ntype = "pinned"\nbodies = ["a", "h"]\n'
        "at = [0.0, 1.0, 0.3333333333333333]\nclosed = false\n",
    ):
        assert part in text
    motor = '\n\n[[motors]]\nname = "M2"\njoints = ["V"]\nratios = [1.0]\n'
    assert motor + '\n[[frames]]\nname = "tool"\n' in text
    assert '\nname = "camera"\nbody = "ground"\norigin = [0.0, 0.0, 1.0]\n' in text
    assert text.endswith('\n[[centers]]\nname = "mean"\nbodies = ["h"]\n')
    assert "\r" not in text
    for line in text.splitlines():
        assert line.count("[") == line.count("]")  # arrays stand on one line
    assert tomllib.loads(text)["joints"][2] == {"name": "X", "type": "fixed", "bodies": ["b", "c"]}


def test_unsavable_models_raise(tmp_path: Path) -> None:
    m = kic.load("horn-two-link")
    # the reason is Python's or the system's, in words of its own
    (tmp_path / "folder.toml").mkdir()
    for place in (tmp_path / "folder.toml", tmp_path / "no" / "m.toml", 5, None, "a\0b.toml"):
        refuses(lambda place=place: m.save(place), kic.ModelFileError, path=place)
    refuses(lambda: replace(m, info={"about": "\ud800"}), kic.ModelError, key="about")


# ------------------------------------------------------------------------------------------ refusals


NO_TEXT = {
    "binary": (bytes(range(256)), "is not text (byte 128 is not UTF-8). A model file is TOML."),
    "picture": (b"\x89PNG\r\n\x1a\n\0\0\0", "is a picture"),
    "utf-16": (BASE.encode("utf-16"), "is not text (byte 0 is not UTF-8)"),
    "zeros": (b"\0" * 999, "is not TOML: Invalid statement (at line 1, column 1)."),
    "latin-1": (swap('"tip"', '"Spitze für"').encode("latin-1"), "is not text (byte "),
    "json": ('{"name": "m"}', "is JSON"),
    "old mac": (BASE.replace("\n", "\r"), "is not TOML: Expected newline"),
    "twice": (
        swap("mass = 1.0", "mass = 1.0\nmass = 2.0"),
        "is not TOML: Cannot overwrite a value (at line 6",
    ),
    "unclosed": ('name = "m', "is not TOML: Unterminated string"),
    "huge integer": (swap("1.0", "9" * 5000), "is not TOML: Exceeds the limit (4300 digits)"),
}


@pytest.mark.parametrize("kind", NO_TEXT)
def test_no_toml(kind: str, refused) -> None:
    content, rule = NO_TEXT[kind]
    _, message = refused(content)
    assert message.startswith(rule)


ENDLESS = {
    "arrays": "x = " + "[" * 10000 + "]" * 10000,
    "inline tables": "x = " + "{a = " * 10000 + "1" + "}" * 10000,
    "dotted key": "a" + ".a" * 10000 + " = 1",
    "table header": "[" + "a." * 9999 + "a]\nb = 1",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENDLESS)
def test_endless_nesting(kind: str, refused) -> None:
    _, message = refused(ENDLESS[kind])
    assert message == "is nested too deeply to be a model."


CASES = tomllib.loads((Path(__file__).parents[1] / "data" / "bad_models.toml").read_text(encoding="utf-8"))[
    "case"
]


def content_of(case: dict) -> str:
    text = ARM if case.get("arm") else BASE
    if "file" in case:
        return case["file"]
    if "swap" in case:
        return swap(*case["swap"], text)
    return case.get("before", "") + "\n" + text + case.get("after", "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["what"])
def test_bad_file(case: dict, refused) -> None:
    error, message = refused(content_of(case))
    assert message.startswith(case["says"]), message
    assert error.key == case["says"].partition(": ")[0]
    assert "\n" not in message


def test_large_values(refused) -> None:
    for number in ("9" * 400, "1e400", "-1e400"):
        error, message = refused(swap("1.0", number))
        assert error.key == "bodies[0].mass"
        assert "`mass` must be a finite number ≥ 0, got " in message
    _, message = refused(swap("1.0", "[" + "1, " * 9999 + "]"))
    assert message == "bodies[0].mass: must be a number, got [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...]."
    _, message = refused(swap('"tip"', '"' + "t" * 9999 + '.x"'))
    assert "got 'ttttttttt" in message
    assert len(message) < 250


def test_several_errors_at_once(refused) -> None:
    points = "".join(f"[[points]]\nname = 'p{i}'\nbody = 3\n" for i in range(7))
    error, message = refused(BASE + points)
    assert error.key == "points[1].body"
    assert message == (
        "points[1].body: must be text, got 3.\n  points[1].at: `at` is missing.\n"
        "  points[2].body: must be text, got 3.\n  points[2].at: `at` is missing.\n  … and 10 more."
    )


def test_numbers_of_the_error_come_along(refused) -> None:
    error, _ = refused(f'{BASE}[[bodies]]\nname = "c"')
    assert isinstance(error, kic.ModelError)
    assert error.key == "bodies[1]"


def test_missing_files_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with raises(kic.ModelFileError, match=r"no\.toml: there is no such file\.$", path=tmp_path / "no.toml"):
        kic.load(tmp_path / "no.toml")
    (tmp_path / "wiper.toml").write_text(BASE)
    refuses(lambda: kic.load(tmp_path / "wipper.toml"), kic.ModelFileError, match=r"there is wiper\.toml\.$")
    with pytest.raises(kic.ModelFileError, match="there is the shipped model 'four-bar'"):
        kic.load(tmp_path / "fourbar.toml")
    refuses(lambda: kic.load(tmp_path), kic.ModelFileError, errno=21)
    refuses(lambda: kic.load("x" * 300 + ".toml"), kic.ModelFileError, errno=36)
    refuses(lambda: kic.load("a\0b.toml"), kic.ModelFileError, path=Path("a\0b.toml"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.stl").write_text("solid part")
    with pytest.raises(kic.ModelFileError, match=r"part\.stl: is not TOML: .* end in \.toml, "):
        kic.load("part.stl")
    (tmp_path / "run.npz").write_bytes(b"PK")
    with pytest.raises(
        kic.ModelFileError, match=r"run\.npz: is a zip archive.* kic\.results\.Simulation\.load reads"
    ):
        kic.load("run.npz")


def test_missing_suffix_of_a_local_file_is_suggested(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    kic.load("horn-two-link").save("fb.toml")
    caught = refuses(lambda: kic.load("fb"), kic.UnknownNameError, match=r"'fb'.* Give 'fb\.toml'")
    assert (caught.name, caught.candidates) == ("fb", kic.model_names())
    assert kic.load("fb.toml") == kic.load("horn-two-link")
    Path("scara.toml").write_text("name = ", encoding="utf-8")
    assert kic.load("scara").name == "scara"  # what is shipped goes first
    Path("folder.toml").mkdir()
    refuses(lambda: kic.load("folder"), kic.UnknownNameError, name="folder")


# -------------------------------------------------------------------------------------------- schema


def problems(schema: dict, value: Any, root: dict, place: str = "") -> list[str]:
    """Return violations of a JSON Schema by a value; supports the keywords that the schema uses."""
    known = {
        "$ref", "$defs", "$schema", "title", "description", "default", "type", "properties", "required",
        "additionalProperties", "items", "prefixItems", "minItems", "maxItems", "anyOf", "oneOf", "enum",
    }  # fmt: skip
    assert set(schema) <= known, set(schema) - known
    if "$ref" in schema:
        return problems(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], value, root, place)
    found = []
    kinds = {
        "object": dict, "array": list, "string": str, "number": int | float, "boolean": bool,
        "null": type(None),
    }  # fmt: skip
    kind = schema.get("type")
    # Python takes a truth value for a number
    if kind and not (isinstance(value, kinds[kind]) and isinstance(value, bool) == (kind == "boolean")):
        return [f"{place}: no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: not in {schema['enum']}")
    for key, rule in (("anyOf", lambda n: n >= 1), ("oneOf", lambda n: n == 1)):
        if key in schema and not rule(sum(not problems(s, value, root, place) for s in schema[key])):
            found.append(f"{place}: {key}")
    if isinstance(value, dict):
        given = schema.get("properties", {})
        found += [f"{place}: {key} missing" for key in schema.get("required", ()) if key not in value]
        if schema.get("additionalProperties") is False:
            found += [f"{place}: {key} unknown" for key in value if key not in given]
        for key in value.keys() & given.keys():
            found += problems(given[key], value[key], root, f"{place}.{key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return [*found, f"{place}: {len(value)} items"]
        first = schema.get("prefixItems", [])
        for i, item in enumerate(value):
            rule = first[i] if i < len(first) else schema.get("items", {})
            found += problems(rule, item, root, f"{place}[{i}]")
    return found


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return kic.schema()


@pytest.mark.parametrize("name", kic.model_names())
def test_schema_accepts_shipped_models(schema: dict[str, Any], name: str) -> None:
    assert problems(schema, tomllib.loads(find(name).read_text(encoding="utf-8")), schema) == []


def test_the_schema_accepts_saved_and_rejects_invalid_models(schema: dict[str, Any], tmp_path: Path) -> None:
    everything().save(tmp_path / "m.toml")
    assert problems(schema, tomllib.loads((tmp_path / "m.toml").read_text(encoding="utf-8")), schema) == []
    assert problems(schema, tomllib.loads(BASE), schema) == []
    assert problems(schema, tomllib.loads(ARM), schema) == []
    refused = [case["what"] for case in CASES if problems(schema, tomllib.loads(content_of(case)), schema)]
    assert len(refused) > 40
    assert {"empty", "unknown key", "text", "date as name", "inertia of 7", "both", "dh type"} <= set(refused)
    # what only the mechanism as a whole can tell
    assert {"unknown body", "zero axis", "one name", "loose", "inertia of no body"}.isdisjoint(refused)


def test_the_schema_describes_every_key() -> None:
    schema = kic.schema()
    assert schema["title"] == "kic model"
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    parts = [
        kic.Body, kic.Joint, kic.Point, kic.Distance, kic.Angle, kic.Force, kic.Moment, kic.Spring,
        kic.Coupling, kic.Units, kic.DHRow,
    ]  # fmt: skip
    for part in parts:
        table = schema["$defs"][part.__name__]
        assert table["additionalProperties"] is False
        assert set(table["properties"]) == {f.name for f in fields(part)}
        for key, rule in table["properties"].items():
            assert len(rule["description"]) > 5, (part, key)
    for key, rule in schema["properties"].items():
        assert rule.get("description"), key
    assert schema["$defs"]["Body"]["properties"]["mass"]["description"] == (
        "Mass. Without it the body has no dynamics; 0 means massless."
    )
    kinds = schema["$defs"]["Joint"]["properties"]["type"]["enum"]
    assert set(kinds) >= {"revolute", "free"}
    schema.clear()  # each asker gets one of his own
    assert kic.schema()["title"] == "kic model"
    assert all(is_dataclass(part) for part in parts)


# ------------------------------------------------------------------------------------------- bounds


HUGE = {
    "bytes": "# " + "x" * 4_000_000,
    "numbers": "gravity = [" + "1," * 1_900_000 + "]",
    "tables": "[[bodies]]\n" * 300_000,
    "dotted key": ".".join("a" * 100_000) + " = 1",
    "spaced dotted key": " . ".join("a" * 100_000) + " = 1",
    "quoted dotted key": ".".join(['"a"'] * 50_000) + " = 1",
    "dotted table": "[" + ".".join("a" * 100_000) + "]",
    "dotted key behind texts": 'a = """\\"" # \\""""\nb = \'"\'\n' + ".".join("a" * 100_000) + " = 1",
    "arrays": "a = " + "[" * 100_000 + "]" * 100_000,
    "inline tables": "a = " + "{a = " * 40_000 + "1" + "}" * 40_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_huge_files_raise_before_they_are_parsed(text: str, refused) -> None:
    _, message = refused(text)
    assert re.search("must have at most|is nested too deeply", message)


def test_many_errors_are_counted(refused) -> None:
    _, message = refused("\n".join(f"[t{i}]" for i in range(20_000)))
    assert message.endswith("… and 19997 more.")


def test_dots_in_strings_do_not_nest(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    about = "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z"
    for quoted in (f'"{about}"', f"'{about}'", f'"""\n\\"{about}"""', f"'''\n'{about}'''"):
        path.write_text(BASE.replace('name = "m"', f'name = "m" # {about}\nabout = {quoted}', 1))
        assert about in kic.load(path).info.about


def test_endless_devices_are_not_models() -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("this system has no /dev/zero")
    refuses(lambda: kic.load(Path("/dev/zero")), kic.ModelFileError, limit=4000000)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["star", "chain"])
def test_calls_for_large_mechanisms_grow_linearly(shape: str) -> None:
    def calls(count: int) -> int:
        above = [f"b{i - 1}" if shape == "chain" and i else "ground" for i in range(count)]
        bodies = [kic.Body(f"b{i}") for i in range(count)]
        joints = [
            kic.Joint(f"j{i}", "revolute", (above[i], f"b{i}"), (0, 0, 0), (0, 0, 1)) for i in range(count)
        ]
        gears = [kic.Coupling(f"c{i}", (f"j{i}", f"j{i + 1}"), ratios=(1, 2)) for i in range(count - 1)]
        with Profile() as profile:
            kic.Mechanism("m", bodies=bodies, joints=joints, couplings=gears)
        return sum(entry.callcount for entry in profile.getstats())

    # eight times as many parts; quadratic growth gives 64
    assert calls(4000) < 10 * calls(500)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["toml", "urdf", "sdf"])
def test_spoiled_models_raise_only_model_errors(kind: str, seed: int, tmp_path: Path) -> None:
    """Change tokens and bytes of sound files; the outcome is a mechanism or a ModelFileError."""
    rng, sound, path = random.Random(seed), texts(kind), tmp_path / f"m.{kind}"
    for text in sound:
        path.write_text(text, encoding="utf-8")
        kic.load(path)
    for _ in range(60):
        path.write_bytes(spoiled(rng, rng.choice(sound)))
        with suppress(kic.ModelFileError):
            kic.load(path)


@pytest.mark.parametrize("suffix", ["toml", "urdf", "sdf", "xml", "mjcf"])
def test_suffixes_in_any_case(tmp_path: Path, suffix: str, monkeypatch) -> None:
    """Files are read and written alike; `load` takes one in the directory without "./"."""
    is_mjcf, known = suffix in ("xml", "mjcf"), tmp_path / f"arm.{suffix}"
    arm = kic.load("three-rrr" if is_mjcf else "horn-two-link")
    if is_mjcf:
        pytest.importorskip("mujoco", reason="needs MuJoCo: pip install -e '.[mujoco]'")
    if suffix == "sdf":
        known.write_text(
            '<sdf version="1.9"><model name="m"><link name="a"/><joint name="j" type="revolute">'
            "<parent>world</parent><child>a</child></joint></model></sdf>"
        )
    else:
        arm.save(known)
    monkeypatch.chdir(tmp_path)
    for name in (f"b.{suffix.upper()}", f"c.{suffix.title()}"):
        Path(name).write_bytes(known.read_bytes())
        assert repr(kic.load(name)) == repr(kic.load(known))
        if suffix != "sdf":
            arm.save(f"saved_{name}")
            assert Path(f"saved_{name}").read_bytes() == known.read_bytes()


def test_the_suffix_selects_the_format(tmp_path: Path) -> None:
    arm, linkage = kic.load("horn-two-link"), kic.load("four-bar")
    for suffix in (".toml", ".urdf"):
        arm.save(tmp_path / f"arm{suffix}")
    platform = kic.load("three-rrr")
    platform.save(tmp_path / "platform.XML")
    q = {"shoulder": 0.3, "elbow": -0.4}
    read = kic.load(tmp_path / "arm.urdf").at(q).dynamics()
    assert mismatch(read.I, arm.at(q).dynamics().I) < 1e-12
    assert kic.load(tmp_path / "arm.toml") == arm
    assert (tmp_path / "platform.XML").read_text(encoding="utf-8") == kic.to_mjcf(platform)
    with raises(kic.ModelError, key="path"):  # a URDF file would be read open
        linkage.save(tmp_path / "linkage.urdf")
    for name in ("linkage", "linkage.sdf", "linkage.json"):
        refuses(lambda name=name: linkage.save(tmp_path / name), key="path")
    assert not list(tmp_path.glob("linkage*"))
