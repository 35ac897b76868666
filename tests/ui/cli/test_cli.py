"""The command line: every command, good and bad input, JSON against kic's arrays, pipes."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from commands import HANGS_S, run, run_line
from raising import refuses
from representative_models import OTHER_MODELS

import kic
from kic.description.units import coordinate_units
from kic.mechanism.configuration import displacement
from kic.ui.cli.main import _with_option_names, main
from kic.ui.report.report import report, report_data, summary

ROOT = Path(kic.__file__).parent.parent
HERE = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}

BARE = """
name = "bare"
bodies = [{ name = "rod" }, { name = "ear" }]
joints = [
    { name = "A", type = "revolute", bodies = ["ground", "rod"], at = [0, 0, 0], axis = [0, 0, 1] },
    { name = "weld", type = "fixed", bodies = ["rod", "ear"] },
]
"""

# nothing holds it
DROP = """
name = "drop"
gravity = [0, 0, -9.81]
bodies = [{ name = "stone", mass = 1, com = [0, 0, 0], inertia = [1, 1, 1] }]
joints = [{ name = "fall", type = "prismatic", bodies = ["ground", "stone"], axis = [0, 0, 1] }]
"""

# everything that loads, a ball, other units
LOADED = """
name = "loaded"
gravity = [0, 0, -9810]
units = { length = "mm", mass = "t" }
bodies = [
    { name = "bob", mass = 0.002, com = [0, 0, -500], inertia = [1, 1, 1] },
    { name = "car", mass = 0.001, com = [0, 0, 0], inertia = [1, 1, 1] },
]
points = [
    { name = "tip", body = "bob", at = [0, 0, -1000] },
    { name = "hook", body = "ground", at = [0, 0, 1000] },
]
forces = [{ name = "wind", point = "tip", force = [3, 0, 0] }]
moments = [{ name = "motor", body = "bob", moment = [0, 0, 5], axes = "body" }]
springs = [{ name = "rope", points = ["hook", "tip"], stiffness = 0.5, damping = 0.25 }]
[[joints]]
name = "rail"
type = "prismatic"
bodies = ["ground", "car"]
axis = [1, 0, 0]
stiffness = 2.0
damping = 0.1
[[joints]]
name = "hip"
type = "spherical"
bodies = ["car", "bob"]
at = [0, 0, 0]
"""

LOOP = """
name = "slab"
coordinates = ["A"]
bodies = [{ name = "slab" }]
joints = [
    { name = "A", type = "revolute", bodies = ["ground", "slab"], at = [0, 0, 0], axis = [0, 0, 1] },
    { name = "B", type = "spherical", bodies = ["slab", "ground"], at = [0, 0, 1] },
]
"""


@pytest.fixture
def file(tmp_path):
    """Write a model file."""

    def write(text, name="model.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def data(*arguments):
    """The object that --json prints, and nothing else."""
    return json.loads(run("report", *arguments, "--json"))


def shell(*arguments, **environment):
    """Run Python in a process of its own. A deprecation elsewhere must not spoil what is printed."""
    line = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.run(line, capture_output=True, env=HERE | environment, timeout=HANGS_S)


COMMANDS = (
    "list", "report", "draw", "mobility", "calibrate", "identify", "assemblies", "linearize", "simulate",
    "view", "export", "check", "schema", "warm-up", "completion",
)  # fmt: skip


# --- kic, kic list, kic schema


@pytest.mark.slow
def test_kic_without_arguments_prints_help():
    assert run() == run("--help")
    result = shell("-m", "kic")
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"kic report puma560 --at" in result.stdout


def test_every_command_has_an_example_and_a_summary():
    assert tuple(main.commands) == COMMANDS
    for name, command in main.commands.items():
        assert re.search(rf'\n +(eval "\$\()?kic {name}\b', command.help), name
        assert command.get_short_help_str(200).endswith(".")


def test_help_teaches_by_example():
    text = run("--help")
    assert "kic report puma560 --at shoulder=30deg" in text
    for command in COMMANDS:
        assert f"kic {command}" in text or f"  {command} " in text
        assert f"kic {command}" in run(command, "--help")
    assert "#:schema" in run("schema", "-h")


@pytest.mark.slow
def test_examples_of_the_help_run(file, monkeypatch):
    arm = Path(file(BARE, "arm.toml"))
    monkeypatch.chdir(arm.parent)
    Path("robot.urdf").write_text(kic.to_urdf(kic.load("puma560")).text, encoding="utf-8")
    hold = "def controller(t, now):\n    return [0.0]\n"
    Path("hold.py").write_text(hold, encoding="utf-8")
    slow = "import kic\nslow = kic.controllers.Sampled(controller, 1e-3, gives='voltages')\n"
    Path("drive.py").write_text(hold + slow, encoding="utf-8")
    t = np.linspace(0.0, 4.0, 401)
    bench = {
        "t": t,
        "A": 3 * t + np.sin(5 * t),
        "crank angle (deg)": 180 * t,
        "A.effort (Nmm)": np.cos(7 * t),
    }
    np.savetxt(
        "bench.csv", np.transpose(list(bench.values())), header=",".join(bench), delimiter=",", comments=""
    )
    A = np.linspace(0.0, 6.0, 30)
    tip = kic.load("four-bar").at({"A": A}).value("tip")
    poses = np.column_stack([np.rad2deg(A), 1000 * tip[:, :2]])
    head = "A (deg),tip.x (mm),tip.y (mm)"
    np.savetxt("poses.csv", poses, header=head, delimiter=",", comments="")
    text = run("--help") + "".join(run(command, "--help") for command in COMMANDS)
    lines = [line.strip().split("     ")[0] for line in text.splitlines() if line.startswith("    kic ")]
    assert len(lines) > 30
    for line in sorted(set(lines)):
        words = shlex.split(line.split(" > ")[0])
        if words[1] == "view" or ("--fmu" in words and not shutil.which("cc")):  # it serves until Ctrl-C
            continue
        if words[-1] != "10deg, 0.5, -30deg":  # an arm of three joints
            run(*words[1:])
    assert {"four-bar.svg", "fan.pdf", "arm.png", "four-bar.html", "fall.npz"} <= set(os.listdir())


def test_version():
    assert run("--version") == f"kic {kic.__version__}\n"


def test_the_entry_point_is_main():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"kic": "kic.__main__:run"}


def test_list_has_a_line_for_each_model():
    head, *lines = run("list").splitlines()
    assert head.split() == ["model", "dof", "title"]
    assert [line.split()[0] for line in lines] == list(kic.model_names())
    for line in lines:
        name, dof, title = line.split(maxsplit=2)
        m = kic.load(name)
        assert (int(dof), title) == (len(m.coordinates), m.info.title)
        assert line.index(title) == head.index("title")


def test_list_is_wrapped_at_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr("kic.ui.cli.list_models.at_terminal", lambda: True)
    lines = run("list").splitlines()
    assert max(map(len, lines)) <= 70
    assert len(lines) > 1 + len(kic.model_names())


def test_list_for_scripts():
    rows = json.loads(run("list", "--json"))
    assert [row["name"] for row in rows] == list(kic.model_names())
    for row in rows:
        m = kic.load(row["name"])
        assert row["dof"] == m.dof == len(row["coordinates"])
        assert tuple(row["coordinates"]) == m.coordinates
        assert row["title"] == m.info.title
        assert kic.load(Path(row["file"])) == m


def test_schema_is_the_schema():
    assert json.loads(run("schema")) == json.loads(json.dumps(kic.schema()))
    assert ">>>" not in run("schema")  # descriptions of keys have no examples in Python


def test_first_compilation_is_reported(monkeypatch):
    monkeypatch.delenv("KIC_VERBOSE")
    run("schema")
    assert os.environ["KIC_VERBOSE"] == "1"
    monkeypatch.setenv("KIC_VERBOSE", "0")
    run("schema")
    assert os.environ["KIC_VERBOSE"] == "0"


# --- kic check


def test_check_prints_ok():
    assert run("check", "horn-two-link") == (
        "ok: horn-two-link, 2 degrees of freedom, 2 bodies, 2 joints, 2 points, no loop.\n"
    )


def test_check_lists_exceptions_with_reasons():
    text = " ".join(run("check", "puma560").split())
    assert "note: the inertia of link1 is an exception. Published partial data" in text
    assert "note: the inertia of link3 is an exception. As published" in text


def test_check_warns_of_missing_inertia(file):
    text = run("check", file(BARE))
    assert text.startswith("ok: bare, 1 degree of freedom, 2 bodies, 2 joints, no loop.\nwarning: ")
    assert "rod (mass)" in text


def test_check_names_loops(file):
    text = run("check", file(LOOP))
    assert "1 loop (cut at B)" in text
    assert "slab (mass)" in text


def test_check_for_scripts(file):
    told = json.loads(run("check", file(BARE), "--json"))
    assert (told["name"], told["ok"], told["notes"]) == ("bare", True, [])
    assert told["summary"] == summary(kic.load(file(BARE)))
    assert "rod (mass)" in told["warnings"][0]
    assert len(json.loads(run("check", "puma560", "--json"))["notes"]) == 2
    assert "is not TOML" in run("check", file("name = "), "--json", code=1)  # nothing on stdout


def test_check_notes_a_centre_of_mass_in_other_units(tmp_path):
    arm = kic.load("horn-two-link")
    for x, noted in ((1.5, False), (500.0, True)):
        arm.replace("link2", com=(x, 0.0, 0.0)).save(tmp_path / "arm.toml")
        text = " ".join(run("check", str(tmp_path / "arm.toml")).split())
        assert ("note: the centre of mass of link2 is 499 m from its nearest joint" in text) == noted


def test_check_notes_a_centre_of_mass_in_metres_beside_millimetres(tmp_path):
    arm = kic.load("horn-two-link").replace("elbow", at=(500.0, 0, 0))
    for first, x, noted in ((0.25, 500.6, False), (0.25, 0.75, True), (0.25, 0, False), (250, 0.75, False)):
        bodies = arm.replace("link1", com=(first, 0.0, 0.0)).replace("link2", com=(x, 0.0, 0.0))
        bodies.save(tmp_path / "arm.toml")
        text = " ".join(run("check", str(tmp_path / "arm.toml")).split())
        note = "note: the centre of mass of link2 is 0.75 m from the origin, and the farthest joint of the "
        assert (note + "body 500 m." in text) == noted


def test_check_notes_gravity_that_moves_nothing(tmp_path):
    """It is perpendicular to the plane of a linkage, by default too."""
    bar = kic.load("four-bar")
    for gravity, noted in ((None, True), ((0, 0, 2.0), True), ((0, -9.81, -9.81), False), ((0, 0, 0), False)):
        bar.replace(gravity=gravity).save(tmp_path / "bar.toml")
        text = " ".join(run("check", str(tmp_path / "bar.toml")).split())
        assert ("is perpendicular to the plane of the mechanism and has no effect on its" in text) == noted
    assert not any(bar.replace(gravity=None).at().dynamics().load)


def test_check_notes_angles_that_may_be_degrees(file):
    def turned(value, text=BARE):
        return text.replace("axis = [0, 0, 1]", f"axis = [0, 0, 1], value = {value}")

    text = " ".join(run("check", file(turned(60))).split())
    assert "note: value = 60 of joint A is read as 60 rad, 9.5 turns; for degrees write 1.047197551." in text
    limited = BARE.replace("axis = [0, 0, 1]", "axis = [0, 0, 1], limits = [-3, 170]")
    text = " ".join(run("check", file(limited)).split())
    assert text.count("note: limit") == 1
    assert "limit 170 of joint A is read as 170 rad, 27.1 turns; for degrees write 2.967059728." in text
    assert "-100 rad, 15.9 turns" in run("check", file(turned(-100.0)))
    for few in ("12.5", "-12.5"):  # just below two turns
        assert "turns" not in run("check", file(turned(few)))
    slides = turned(60, BARE.replace("revolute", "prismatic"))
    assert "turns" not in run("check", file(slides))
    assert len(json.loads(run("check", file(turned(60)), "--json"))["notes"]) == 1


def test_check_reports_that_no_coordinates_are_named(file):
    text = run("check", file(LOOP.replace('coordinates = ["A"]\n', "")), code=1)
    assert "'slab' has mobility 1, and no coordinates are named. Add `coordinates = [\"A\"]`, or any" in text


def test_a_file_without_its_ending(tmp_path, monkeypatch, file):
    file(BARE, "fb.toml")
    monkeypatch.chdir(tmp_path)
    assert "but there is a file. Give 'fb.toml'" in run("report", "fb", code=1)


def test_check_reports_errors(file):
    assert "is not TOML" in run("check", file("name = "), code=1)
    wrong = BARE.replace("axis", "axes")
    assert "axes" in run("check", file(wrong), code=1)
    assert "slab" in run("check", file(LOOP.replace('"A"]', '"C"]')), code=1)
    few = BARE.replace('"bare"', '"bare"\ncoordinates = ["A"]').replace(
        'type = "fixed"', 'type = "spherical", at = [1, 0, 0]'
    )
    assert "mobility 4" in run("check", file(few), code=1)


def test_a_file_may_have_any_name(file):
    assert run("check", file(BARE, "model.txt")).startswith("ok: bare")


# --- kic mobility


@pytest.mark.parametrize("name", ["puma560", "four-bar", "bricard", "rssr"])
def test_mobility(name):
    account = kic.load(name).mobility()
    assert " ".join(run("mobility", name).split()) == " ".join(account.summary().split())
    told = json.loads(run("mobility", name, "--json"))
    assert told["name"] == name
    assert told["summary"] == account.summary()
    for key in ("dof", "first_order", "redundant", "regular", "finite", "extends", "conditions"):
        assert told[key] == getattr(account, key), key
    assert told["tree_coordinates"] == account.coordinates
    assert told["shares"] == account.shares.tolist()
    passive = [list(one.coordinates) for one in account.passive_freedoms]
    assert [one["coordinates"] for one in told["passive_freedoms"]] == passive
    text = run("mobility", "--help")
    for key in told:
        assert key in text


def test_mobility_in_a_configuration():
    m = kic.load("four-bar")
    text = run("mobility", "four-bar", "--at", "A=70deg")
    assert " ".join(text.split()) == " ".join(m.mobility(m.at({"A": np.radians(70)})).summary().split())


# --- kic assemblies


@pytest.mark.slow
def test_assemblies(tmp_path):
    m = kic.load("three-rrr")
    found = m.assembly_modes([m.at().value(name) for name in m.coordinates], complete=True)
    assert run("assemblies", "three-rrr", "--complete").split() == found.summary().text().split()
    told = json.loads(run("assemblies", "three-rrr", "--complete", "--json"))
    assert told["phi"] == pytest.approx(found.configuration._phi)
    assert (told["generic"], told["real"], told["evidence"]) == (6, len(found), "proven number")
    text = run("assemblies", "--help")
    for key in told:
        assert key in text
    quick = json.loads(run("assemblies", "four-bar", "--at", "A=70deg", "--json"))
    assert len(quick["phi"]) == 2
    assert quick["generic"] is None
    none = "horn-two-link", "--at", "tip.x=2.1", "--at", "tip.y=0"
    assert "out of reach by 0.1 m" in json.loads(run("assemblies", *none, "--json"))["reason"]
    nothing = run("assemblies", *none, "-o", str(tmp_path / "x.svg"), code=1)
    assert "There is no assembly mode to draw" in nothing
    certain = json.loads(run("assemblies", "four-bar", "--complete", "--certify", "--json"))
    assert [certain[key] for key in ("certified_complex", "certified_paths", "proven")] == [2, 2, True]
    file = tmp_path / "modes.svg"
    run("assemblies", "four-bar", "-o", str(file))
    assert file.read_text().startswith("<?xml")


def test_assemblies_checks_the_picture_before_the_search(tmp_path, monkeypatch):
    monkeypatch.delattr(kic.Mechanism, "assembly_modes")
    for name, message in (
        ("modes.txt", "must end in .png, .svg or .pdf"),
        ("a/b.svg", "Create the directory"),
    ):
        assert message in run("assemblies", "four-bar", "-o", str(tmp_path / name), code=1)


# --- kic report


@pytest.mark.slow_for("gough-stewart", "two-arms", *OTHER_MODELS)
@pytest.mark.parametrize("name", kic.model_names())
@pytest.mark.parametrize("order", ["1", "3"])
def test_every_model_is_reported(name, order):
    m = kic.load(name)
    text = run("report", name, "--order", order)
    lines = text.splitlines()
    assert lines[0].startswith(f"{name} – ")
    assert max(map(len, lines)) <= 100
    assert not any(line != line.rstrip() for line in lines)
    assert "\n\n\n" not in text
    assert " ".join(m.info.about.split()) in " ".join(text.split())
    assert summary(m) in text
    for part in (*m.coordinates, *(p.name for p in (*m.bodies, *m.points, *m.distances))):
        assert any(line.split()[:1] == [part] for line in lines), part
    assert ("\nD = ∂H/∂q" in text) == (order == "3")
    assert ("\nMore: " in text) == (order == "1")
    small = len(m.coordinates) <= 6
    assert ("P*[" in text) == (small or order == "3")
    assert ("are omitted; print them with --order 2" in text) == (order == "1" and not small)
    assert "nan" not in text.split()


def test_numbers_of_the_text():
    text = run("report", "horn-two-link", "--at", "elbow=90deg", "--order", "2")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for line in (
        "horn-two-link – Horn's planar two-link arm of equal thin sticks",
        "elbow 1.5708 rad 90 revolute link1 – link2",
        "link2 1 1 0.5 0 90 (0, 0, 1)",  # mass, centre, turn, axis
        "tip link2 1 1 0",
        "reach 1.4142 base – tip",
        "tip (point of link2): value | G = ∂u/∂q, per rad",
        "tip.x (m) 1 | -1 -1",
        "tip.y (m) 1 | 1 0",
        "H[tip.x] (m/rad²)",
        "H = 0: tip.z",
        "mass matrix I* (kg m²)",
        "shoulder 1.6667 0.33333",
        "Loads: gravity (0, -9.81, 0) m/s².",
        "shoulder (N m) -14.715 14.715",
        "elbow (N m) 0 0",
    ):
        assert line in lines, line
    assert "coordinates (reference configuration)" not in text
    assert "coordinates (reference configuration)" in run("report", "horn-two-link")


def test_loads_are_listed_separately(file):
    path = file(LOADED)
    m = kic.load(path)
    text = run("report", path)
    flat = " ".join(text.split())
    for part in (
        "gravity (0, 0, -9810) mm/s²",
        "force wind at tip (3, 0, 0) N (world axes)",
        "moment motor on bob (0, 0, 5) N mm (body axes)",
        "spring rope from hook to tip (0.5 N/mm, free length 0 mm, damping 0.25 N s/mm)",
        "springs in the joints rail",
        "+ B q̇ −",
        "damping B",
        "t mm² rotation, t translation, t mm mixed",
        "gravity others Tᴸ holding effort −Tᴸ",
        "rail (N) ",
        "hip.2 (N mm) ",
        "| /mm /rad /rad /rad",
    ):
        assert part in flat, part
    at = ("--at", "rail=2, hip.1=20deg, hip.2=-0.3")
    d = data(path, *at)
    phi = [2.0, np.radians(20), -0.3, 0.0]
    assert d["phi"] == pytest.approx(phi, abs=1e-14)
    weight = m.at(d["phi"]).coefficients(["bob", "car"]).G
    expected = -9810 * (0.002 * weight[2] + 0.001 * weight[8])
    assert np.abs(np.array(d["gravity_load"]) - expected).max() < 1e-12 * np.abs(expected).max()
    assert not d["holonomic"]


def test_report_without_masses(file):
    path = file(BARE)
    text = run("report", path)
    assert "I*, P* and loads are not available. Dynamics of 'bare' needs the inertia" in text
    assert "ear.wx, ear.wy, ear.wz (body): value | G = ∂u/∂q, per rad" in text
    assert ["weld", "fixed", "rod", "–", "ear"] in [line.split() for line in text.splitlines()]
    assert "rod          ?" in text
    d = data(path)
    assert d["rows"] == ["ear.wx", "ear.wy", "ear.wz"]
    assert d["values"] == [None, None, None]
    assert [d[key] for key in ("I", "P", "load", "gravity_load", "damping", "H", "D")] == [None] * 7
    assert "rod (mass)" in d["dynamics_left_out"]


def test_default_outputs(file):
    assert data("puma560")["rows"] == ["face.x", "face.y", "face.z"]
    assert data("twin-arm")["rows"][0] == "eyes.x"  # the last point that holds no spring
    only_held = LOADED.replace('body = "ground"', 'body = "car"')
    assert data(file(only_held))["rows"][0] == "hook.x"
    body = BARE.replace('name = "ear"', 'name = "ear", at = [1, 0, 0]')
    assert data(file(body))["rows"] == [f"ear.{c}" for c in ("x", "y", "z", "wx", "wy", "wz")]


def test_nothing_loads_some():
    assert "Loads: none (no gravity, no forces, no springs)." in run("report", "rrprrr")


def test_of_takes_lists_and_repeats():
    d = data("puma560", "--of", "tool, link6.wz", "--of", "reach", "--of", "tool")
    assert d["rows"] == ["tool.x", "tool.y", "tool.z", "link6.wz", "reach"]
    assert d["row_units"] == ["m", "m", "m", "rad", "m"]
    text = run("report", "puma560", "--of", "tool.x,reach,waist,tool.z")
    assert "tool.x, tool.z (point of link6): value" in text
    assert "reach (distance centre – tool): value" in text
    assert "waist (revolute joint): value" in text
    assert "More:" not in text


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", ["rrprrr", "twin-arm"])
def test_json_is_exact(name, order):
    m = kic.load(name)
    phi = np.linspace(-0.7, 0.9, len(m.coordinates))
    of = ["link6", "hand", "F"] if name == "rrprrr" else ["span", "neck", "head.wy", "right_hand.y"]
    at = ",".join(map(repr, phi.tolist()))
    d = data(name, "--at", at, "--of", ",".join(of), "--order", str(order))
    c = m.at(phi)
    rows, dynamics = c.coefficients(of, order=order), c.dynamics()
    assert d["coordinates"] == list(c.coordinates)
    sliders = ("C", "lift", "left_slide", "right_slide")
    assert d["coordinate_units"] == ["m" if q in sliders else "rad" for q in d["coordinates"]]
    assert np.array_equal(d["phi"], phi)
    assert d["rows"] == list(rows.rows)
    values = [np.nan if v is None else v for v in d["values"]]
    assert np.array_equal(values, rows.values, equal_nan=True)
    for key in ("G", "H", "D"):
        expected = getattr(rows, key)
        assert (d[key] is None) == (expected is None)
        assert expected is None or np.array_equal(d[key], expected)
    for key in ("I", "P", "load", "damping"):
        assert np.array_equal(d[key], getattr(dynamics, key))
    for point in m.points:
        assert np.array_equal(d["points"][point.name], c.value(point.name))
    for body in m.bodies:
        assert np.array_equal(d["poses"][body.name], displacement(c, body.name))
    assert d["gravity"] == list(m.gravity)
    assert d["dof"] == m.dof
    assert d["units"] == {"length": "m", "mass": "kg", "time": "s", "force": "N", "angle": "rad"}
    assert (d["name"], d["title"], d["dynamics_left_out"]) == (m.name, m.info.title, None)


def test_every_key_of_the_json_is_in_the_help():
    text = run("report", "--help")
    for key in data("horn-two-link"):
        assert key in text


# --- configurations


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (["0.1, -.2, 3e-1, +4., 1E1, 0"], [0.1, -0.2, 0.3, 4.0, 10.0, 0.0]),
        (["-30deg,90 deg,0.5rad,45°,0,0"], [-np.pi / 6, np.pi / 2, 0.5, np.pi / 4, 0, 0]),
        (["1,2", "3", "4,5,6"], [1, 2, 3, 4, 5, 6]),
        (["waist=10deg", "elbow = 0.3"], [np.pi / 18, 0, 0.3, 0, 0, 0]),
        (["flange=1,waist=-2"], [-2, 0, 0, 0, 0, 1]),
    ],
)
def test_configurations(at, expected):
    given = [word for text in at for word in ("--at", text)]
    assert data("puma560", *given)["phi"] == pytest.approx(expected, abs=1e-14)


def test_unnamed_coordinates_keep_reference_values():
    drawn = kic.load("panda").at()._phi
    phi = data("panda", "--at", "joint2=0")["phi"]
    assert phi == [x if k != 1 else 0.0 for k, x in enumerate(drawn)]
    assert data("panda")["phi"] == drawn.tolist()


def test_sliders_and_components():
    d = data("twin-arm", "--at", "lift=0.9m, neck.2=5deg, left_slide=0.01")
    c = dict(zip(d["coordinates"], d["phi"], strict=True))
    assert (c["lift"], c["neck.1"], c["neck.2"], c["left_slide"]) == (0.9, 0.0, np.radians(5), 0.01)


def test_positions_determine_a_configuration():
    m = kic.load("five-bar")
    d = data("five-bar", "--at", "tip.x=24, tip.y=25")
    expected = m.at({"tip.x": 24.0, "tip.y": 25.0})
    assert d["phi"] == [float(expected.value(q)) for q in ("A", "E")]
    assert d["points"]["tip"] == pytest.approx([24.0, 25.0, 0.0], abs=1e-10)
    mixed = data("five-bar", "--at", "A=70deg", "--at", "tip.x=24")
    assert mixed["phi"][0] == pytest.approx(np.radians(70), abs=1e-12)
    assert mixed["points"]["tip"][0] == pytest.approx(24.0, abs=1e-10)
    rocker = data("four-bar", "--at", "D=130deg")  # a joint that is no coordinate of the model
    c = kic.load("four-bar").at(rocker["phi"])
    assert float(c.value("D")) == pytest.approx(np.radians(130), abs=1e-10)


def test_near_keeps_the_assembly_mode():
    for near, elbow in (("0.3, 1.2", np.pi / 2), ("elbow=-1.2", -np.pi / 2)):
        phi = data("horn-two-link", "--at", "tip.x=1, tip.y=1", "--near", near)["phi"]
        assert phi[1] == pytest.approx(elbow, abs=1e-9)
    told = data("horn-two-link", "--at", "elbow=0.5", "--near", "shoulder=0.7")
    assert told["phi"] == pytest.approx([0.7, 0.5], abs=1e-14)  # the others stay as in --near


@pytest.mark.parametrize("command", ["mobility", "linearize", "simulate"])
def test_all_commands_with_at_accept_near(command):
    told, other = (
        json.loads(run(command, "horn-two-link", "--at", "tip.x=0.9, tip.y=1.1", "--near", near, "--json"))
        for near in ("0.3, 1.2", "1.4, -1.2")
    )
    assert told["name"] == "horn-two-link"
    if command != "mobility":
        assert told != other


REFUSED = (ROOT / "tests" / "data" / "refused_commands.txt").read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize("row", REFUSED)
def test_refused_commands(row):
    code, line, message = row.split(" | ")
    assert message in run_line(line, code=int(code))


@pytest.mark.slow
def test_names_that_are_offered_are_taken():
    """Each name in the error gives the reference configuration with its reference value."""
    text = run("report", "four-bar", "--at", "E=1", code=1)
    names = text.split("Available: ")[1].strip().rstrip(".").split(", ")
    assert len(names) == 15
    c = kic.load("four-bar").at()
    for name in names:
        data = json.loads(run("report", "four-bar", "--at", f"{name}={float(c.value(name))!r}", "--json"))
        assert abs(data["phi"][0] - c._phi[0]) < 1e-9, name


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("report four-bar --at A=60", "A=60 is read as 60 rad, 9.5 turns; for degrees write A=60deg."),
        ("report four-bar --at -60", "A=-60 is read as -60 rad, 9.5 turns; for degrees write A=-60deg."),
        ("report four-bar --at A=1 --near A=13", "A=13 is read as 13 rad, 2.1 turns; for"),
        ("draw four-bar --move A=1..20 -o x.svg", "A=20 is read as 20 rad, 3.2 turns; for"),
        ("report four-bar --at A=12.5", ""),
        ("report four-bar --at A=60rad", ""),
        ("report four-bar --at A=60deg", ""),
        ("report five-bar --at tip.x=24,tip.y=25", ""),
        ("linearize four-bar --qd A=60", ""),
    ],
)
def test_many_turns_without_a_unit_are_noted(line, note, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, line.split(), env={"KIC_VERBOSE": "0"})
    assert result.exit_code == 0, result.output
    assert "is read as" not in result.stdout
    assert result.stderr.startswith(note) if note else not result.stderr
    assert result.stderr.count("is read as") == bool(note)


@pytest.mark.slow
def test_errors_name_options(tmp_path):
    """Those the command has; an argument without an option stays, and so do errors in Python."""
    given = run("simulate", "four-bar-motor", "--current", "motor=1", code=1)
    assert "--current requires --voltage" in given
    assert "`" not in given
    fan = run("draw", "four-bar", "--move", "D=60deg..200deg", "-o", "never.svg", code=1)
    assert "closer to the desired assembly mode, or look with kic assemblies." in fan
    (tmp_path / "drop.toml").write_text(DROP)
    falls = run("linearize", str(tmp_path / "drop.toml"), "--equilibrium", code=1)
    assert "start nearer with --at." in falls
    assert "Give them as `effort`" in falls  # linearize has no such option
    match = r"Give `near=` a configuration .*, or look with assembly_modes\(\)\.$"
    refuses(lambda: kic.load("four-bar").at({"tip.x": 20.0}), kic.ConfigurationError, match=match)


def test_keys_of_model_files_are_not_options():
    """Keys of a model file keep their spelling even if an option has the same name."""
    for key in ("voltage", "current"):
        text, stops = f"Expected `{key}` to be positive.", "It stops. The run up to there is kept "
        with main.make_context("kic", ["simulate", "four-bar"]) as ctx:
            ctx.invoked_subcommand = "simulate"
            for error, message in (
                (kic.ModelError(text), text),
                (kic.InputError(text), f"Expected --{key} to be positive."),
                (kic.SimulationError(f"{stops}as `simulation`."), f"{stops}with --save FILE."),
            ):
                assert _with_option_names(main, ctx, error) == message


def test_hint_names_all_quantities():
    hint = run("report", "quadruped").split("More: ")[1]
    there = re.search(r"\((.*?)\)", " ".join(hint.split()))[1].split(", ")
    m = kic.load("quadruped")
    assert {joint.name for joint in m.joints if joint.dof} <= set(there)
    for kind in ("points", "distances", "bodies", "contacts"):
        assert {part.name for part in getattr(m, kind)} <= set(there)
    for name in there:
        assert m.at().coefficients(name, order=1).rows


def test_a_folder_is_no_model():
    assert "is a directory; `MODEL` must be a model file" in run("report", str(ROOT), code=1)


def test_loops_close(file):
    text = run("report", "four-bar", "--at", "A=60deg", "--order", "2")
    assert "1 degree of freedom" in text
    assert "1 loop (cut at D)" in text
    assert "coordinates, then dependent ones" in text
    c = kic.load("four-bar").at({"A": np.radians(60)})
    assert f"{np.degrees(c.value('C')):.5g}" in text
    assert f"{c.coefficients('tip').H[0, 0, 0]:.5g}" in text
    told = json.loads(run("report", "four-bar", "--at", "A=60deg", "--json"))
    assert told["I"] == c.dynamics().I.tolist()
    assert told["coordinates"] == ["A"]


# --- the report from Python


def test_report_from_python():
    m = kic.load("horn-two-link")
    c = m.at([0.1, 0.2])
    assert "value | G" not in report(m, c).text()
    assert "tip (point of link2)" in report(m, c, of="tip").html()
    assert report_data(m, c)["rows"] == []
    assert report_data(m, c)["G"] is None
    assert coordinate_units(kic.load("twin-arm"))["lift"] == "m"
    refuses(lambda: report(m, m.at([[0.0, 0.0]])), key="configuration", got=(1,))
    refuses(lambda: report_data(m, m.at([[0.0, 0.0]])), key="configuration", got=(1,))
    refuses(lambda: report(m, c, of=["nose"]), kic.UnknownNameError)


# --- processes


@pytest.mark.slow
def test_python_m_kic():
    result = shell("-m", "kic", "--version")
    assert (result.returncode, result.stdout.split()) == (0, [b"kic", kic.__version__.encode()])
    result = shell("-m", "kic", "report", "nobody")
    assert result.returncode == 1
    assert result.stderr.startswith(b"Error: No shipped model 'nobody'")
    assert result.stdout == b""


def test_help_and_list_load_no_compiler():
    code = (
        "import sys; from kic.ui.cli.main import main\n"
        "for words in (['--help'], ['report', '--help'], ['list']):\n"
        "    main(words, standalone_mode=False)\n"
        "print([m for m in ('numpy', 'numba', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    result = shell("-c", code)
    assert result.stdout.splitlines()[-1] == b"[]", result.stderr


@pytest.mark.slow
def test_closed_pipe_is_not_an_error():
    for unbuffered in ("", "1"):
        line, env = [sys.executable, "-m", "kic", "schema"], HERE | {"PYTHONUNBUFFERED": unbuffered}
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
            process.stdout.close()
            assert process.stderr.read() == b""


@pytest.mark.slow
def test_exit_codes_are_those_of_the_help():
    text = " ".join(run("--help").split())
    for words in "0, success", "1, error", "2, misuse of a command or an option", "130, interrupted":
        assert words in text
    assert "141, closed pipe" in text
    for code, words in ((0, ["list"]), (1, ["report", "nobody", "--json"]), (2, ["report", "--nothing"])):
        result = shell("-m", "kic", *words)
        assert result.returncode == code
        assert (result.stderr == b"") == (code == 0)
        assert (result.stdout == b"") == (code != 0)
    assert shell("-m", "kic", "nothing").returncode == 2


@pytest.mark.slow
def test_closed_pipe_sets_the_exit_code():
    code = (
        "import os, sys\n"
        "from kic.ui.cli.main import main\n"
        "reader, writer = os.pipe()\n"
        "os.close(reader)\n"
        "os.dup2(writer, 1)\n"
        "main(['schema'])\n"
    )
    for unbuffered in ("", "1"):
        result = shell("-c", code, PYTHONUNBUFFERED=unbuffered)
        assert (result.returncode, result.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interruption_is_one_line():
    # a suite that runs in the background may ignore the signal, and its processes with it
    code = (
        "import kic.ui.report.report, signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from kic.ui.cli.main import main\n"
        "def slow(*_): print('now', flush=True); time.sleep(60)\n"
        "sys.modules['kic.ui.report.report'].report = slow\n"
        "main(['report', 'horn-two-link'])\n"
    )
    line = [sys.executable, "-W", "ignore", "-c", code]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=HERE) as process:
        assert process.stdout.readline() == b"now\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGS_S) == 130
        assert process.stderr.read() == b"Interrupted.\n"


def test_an_interruption_while_modules_are_imported_is_one_line():
    code = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'kic.ui.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from kic.__main__ import run\n"
        "run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


# --- completion


def completed(line):
    """Return the completions of bash at the end of a line."""
    last = len(shlex.split(line)) - 1
    setting = {"COMP_WORDS": line, "COMP_CWORD": str(last), "_KIC_COMPLETE": "bash_complete"}
    result = CliRunner(env=setting).invoke(main, [], prog_name="kic")
    return result.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kic rep", ["plain,report"]),
        ("kic report pu", ["plain,puma560", "plain,puma560-motors"]),
        ("kic report ./mod", ["file,./mod"]),
        ("kic check pu", ["plain,puma560", "plain,puma560-motors"]),
        ("kic report puma560 --at sh", ["plain,shoulder="]),
        ("kic report --at waist=1 puma560 --at sh", ["plain,shoulder="]),
        ("kic report puma560 --near waist=1,sh", ["plain,waist=1,shoulder="]),
        ("kic draw twin-arm --at neck", ["plain,neck.1=", "plain,neck.2="]),
        ("kic report puma560 --of tool.", ["plain,tool.x", "plain,tool.y", "plain,tool.z"]),
        ("kic report puma560 --of rea", ["plain,reach"]),
        ("kic linearize four-bar --wrt t", ["plain,tip"]),
        ("kic simulate puma560 --of wrist_b", ["plain,wrist_bend"]),
        ("kic report lee-puma --at joint1", ["plain,joint1="]),
        ("kic report nobody --at a", []),
        ("kic report --at a", []),
        ("kic draw four-bar --move A", ["plain,A="]),
        ("kic draw four-bar --trace t", ["plain,tip"]),
        ("kic draw four-bar --view t", ["plain,top"]),
        ("kic simulate four-bar --qd A", ["plain,A="]),
        ("kic simulate puma560 --effort sh", ["plain,shoulder="]),
        ("kic linearize puma560 --qd sh", ["plain,shoulder="]),
        ("kic completion z", ["plain,zsh"]),
    ],
)
def test_completion(line, expected):
    assert completed(line) == expected


def test_the_views_that_are_completed_are_all_that_have_names():
    from kic.plotting.view import NAMED_VIEWS
    from kic.ui.cli.completion import VIEWS

    assert set(VIEWS) == set(NAMED_VIEWS)


def test_completion_of_a_file(file):
    path = file(LOADED)
    assert completed(f"kic report {path} --at hip") == [f"plain,hip.{k}=" for k in (1, 2, 3)]
    assert completed(f"kic report {path} --of rope") == []  # a spring has no rows
    assert completed(f"kic report {file('joints = 3')} --of a") == []
    assert completed(f"kic report {file('name = ')} --at a") == []


@pytest.mark.slow
def test_model_index_names_all_parts():
    from kic.io.library import find
    from kic.ui.cli.completion import read_model_index

    for name in kic.model_names():
        m, there = kic.load(name), read_model_index(find(name))
        assert there.coordinates == m.coordinates
        c = m.at()
        for part, rows in there.parts.items():
            if rows:
                assert c.coefficients([*rows], order=1).rows == rows, part


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_scripts(name):
    script = run("completion", name)
    assert f"_KIC_COMPLETE={name}_complete" in script
    program = shutil.which(name)
    if program:
        assert subprocess.run([program, "-n", "-c", script], capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_completion_in_a_real_bash(tmp_path):
    kic_here = tmp_path / "kic"
    kic_here.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m kic "$@"\n')
    kic_here.chmod(0o755)
    script = """
        eval "$(kic completion bash)"
        COMP_WORDS=(kic report puma560 --at sh); COMP_CWORD=4
        _kic_completion kic
        echo "${COMPREPLY[@]}"
        COMPREPLY=(); COMP_WORDS=(kic mob); COMP_CWORD=1
        _kic_completion kic
        echo "${COMPREPLY[@]}"
    """
    env = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    line = ["bash", "-c", script]
    result = subprocess.run(line, capture_output=True, text=True, env=env, timeout=HANGS_S)
    assert result.stdout.splitlines() == ["shoulder=", "mobility"], result.stderr


@pytest.mark.slow
def test_streams_that_know_few_letters():
    result = shell("-m", "kic", "report", "horn-two-link", PYTHONIOENCODING="latin-1")
    assert result.returncode == 0, result.stderr
    assert "kg m²".encode("latin-1") in result.stdout
    assert b"applied load T?" in result.stdout


def test_simulate_shows_and_takes_actuators(tmp_path):
    """Efforts, rates and powers of actuators in any number, and a sampled controller."""
    m = kic.load("walking-machine")
    line = "simulate walking-machine --effort B1=5,C1=-5,B2=1,C2=2 --for 0.02 --samples 3"
    told = json.loads(run_line(f"{line} --json"))
    expected = m.simulate([0.0, 0.01, 0.02], effort={"B1": 5.0, "C1": -5.0, "B2": 1.0, "C2": 2.0})
    assert told["actuators"] == ["B1", "C1", "B2", "C2"]
    for key in ("actuator_effort", "actuator_rate", "actuator_power"):
        assert told[key] == getattr(expected, key).tolist()
    shown = run_line(f"{line} --of efforts,rates,powers")
    for name in told["actuators"]:
        assert all(f"{name}.{what}" in shown for what in ("effort (N m)", "rate (rad/s)", "power (W)"))
    assert "actuators, at most" in shown
    law = "def {}(t, now):\n    return -3 * now.q[0] - now.qd[0] + 0 * t\n"
    hold = lambda t, now: -3 * now.q[0] - now.qd[0]  # noqa: E731
    (tmp_path / "hold.py").write_text(law.format("controller") + law.format("other"))
    for name in ("", ":other"):
        given = ("--controller", str(tmp_path / "hold.py") + name, "--sample-time", "1e-3")
        told = json.loads(run("simulate", "four-bar", *given, "--for", "0.02", "--json"))
        sampled = kic.controllers.Sampled(hold, 1e-3)
        control = kic.load("four-bar").simulate(np.linspace(0, 0.02, 11), controller=sampled)
        assert told["q"] == control.q.tolist()
        assert told["control"]["command"] == control.control.command.tolist()
    slow = "import kic\nslow = kic.controllers.Sampled(law, 1e-3, gives='voltages', delay=5e-4)\n"
    (tmp_path / "drive.py").write_text(law.format("law") + slow)
    given = ("--controller", f"{tmp_path / 'drive.py'}:slow", "--voltage", "motor=0")
    told = json.loads(run("simulate", "four-bar-motor", *given, "--for", "0.02", "--json"))
    sampled, m = kic.controllers.Sampled(hold, 1e-3, gives="voltages", delay=5e-4), kic.load("four-bar-motor")
    control = m.simulate(np.linspace(0, 0.02, 11), controller=sampled, voltage=0.0)
    assert told["voltage"] == control.voltage.tolist()
    assert np.abs(control.voltage).max() > 0
    for words, message in (
        (("--controller", f"{tmp_path / 'drive.py'}:slow", "--sample-time", "1"), "must be left out: 'slow'"),
        (
            ("--controller", str(tmp_path / "hold.py"), "--sample-time", "-1"),
            "--sample-time must be a positive",
        ),
        (("--controller", str(tmp_path / "none.py"), "--sample-time", "1"), "FileNotFoundError"),
        (("--controller", f"{tmp_path / 'hold.py'}:third", "--sample-time", "1"), "has no 'third'"),
        (("--controller", str(tmp_path / "hold.py")), "--sample-time must be given for 'controller'"),
    ):
        assert message in run("simulate", "four-bar", *words, code=1)
