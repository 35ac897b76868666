"""Commands with odd arguments and environments: a result or one paragraph on stderr, never a traceback."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import kic
from kic.ui.cli import completion
from kic.ui.cli.main import main

ODD = (
    "", " ", "x", "nan", "-inf", "1e400", "9" * 5000, "a" * 5000, "A=", "=1", "A=1", "A=1deg", "A=x", "A=nan",
    "A=1e300", "A=1,B=2", ",", "..", "/", "/dev/full", "/no/such/x", "dir.toml", "empty.toml", "binary.toml",
    "\\", "$x^$", "%s", "{}", "\udcff", "-1", "0", "-", "--", "tip", "tip.x", "tip.x=1", "A=0..1", "A=..",
    "a\0b", "a\0.toml", "a\0.png", "a\0.npz", "a\0.csv", "x.png", "/no/x.gif", "x" * 300 + ".png", "top",
    "1,2", "nan,nan", "A=1°", "\n",
)  # fmt: skip
OPTIONS = {
    "report": ("--at", "--near", "--of", "--wrt", "--order", "--html", "--replay"),
    "draw": ("--at", "--near", "-o", "--move", "--trace", "--view", "--dpi"),
    "mobility": ("--at", "--near"),
    "linearize": ("--at", "--near", "--effort", "--wrt"),
    "simulate": ("--at", "--near", "--qd", "--effort", "--voltage", "--wrt", "--of", "--save"),
    "check": (), "list": (), "schema": (), "completion": (), "nonsense": (),
}  # fmt: skip
ENVIRONMENTS = ({}, {}, {"KIC_THREADS": "x"}, {"KIC_VERBOSE": "x"}, {"COLUMNS": "x"}, {"COLUMNS": "-5"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.toml").write_bytes(b"")
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    (tmp_path / "dir.toml").mkdir()
    return tmp_path


@pytest.mark.parametrize("command", OPTIONS)
def test_odd_arguments(command: str, folder: Path) -> None:
    rng = random.Random(command)
    runner = CliRunner()
    for _ in range(12 if OPTIONS[command] else 1 if command == "schema" else 5):
        arguments = [command]
        if command not in ("list", "schema"):
            arguments.append(rng.choice(["four-bar", "horn-two-link", *rng.sample(ODD, 2)]))
        for option in rng.sample(OPTIONS[command], min(len(OPTIONS[command]), rng.choice([0, 1, 1, 2]))):
            arguments += [option, rng.choice(ODD)]
        result = runner.invoke(main, arguments, prog_name="kic", env=rng.choice(ENVIRONMENTS))
        assert result.exception is None or isinstance(result.exception, SystemExit), arguments
        assert result.exit_code in (0, 1, 2), arguments
        assert "Traceback" not in result.output
        if result.exit_code == 1:
            assert result.stderr.startswith("Error: ")
            assert "\n\n" not in result.stderr.strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "a" * 5000], "No shipped model 'aaaa"),
        (["report", "a" * 5000 + ".toml"], "File name too long"),
        (["report", "four-bar", "--html", ""], "`path` must name a file, got ''"),
        (["simulate", "four-bar", "--for", "0.01", "--save", ""], ""),
        (["draw", "four-bar", "-o", ""], "must name a file, got ''"),
    ],
)
def test_names_that_are_none(arguments: list[str], message: str, folder: Path) -> None:
    result = CliRunner().invoke(main, arguments, prog_name="kic")
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr) < 2000


def kic_in_shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = str(Path(kic.__file__).parent.parent)
    everything = {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", **environment}
    command = f"'{sys.executable}' -m kic {line}"
    return subprocess.run(
        command, shell=True, env=everything, capture_output=True, encoding="utf-8", check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("list > /dev/full", "Error: The output cannot be written: No space left on device."),
        ("--help > /dev/full", "Error: The output cannot be written: No space left on device."),
        ("list > /dev/full 2> /dev/full", ""),
        ("mobility /dev/full", "Error: /dev/full: must have at most 4 MB, got more."),
        ("report four-bar --html /dev/full", "Error: /dev/full: cannot be written: No space left on device."),
    ],
)
def test_a_full_disk(line: str, message: str) -> None:
    told = kic_in_shell(line)
    assert told.returncode == 1
    assert told.stderr.strip().startswith(message)
    assert told.stderr.count("\n") <= 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_without_streams() -> None:
    assert kic_in_shell("list >&- 2>&-").returncode in (0, 1)
    assert "Traceback" not in kic_in_shell("report four-bar >&-").stderr


@pytest.mark.slow
@pytest.mark.parametrize(("name", "message"), [("MPLBACKEND", "MPLBACKEND must"), ("KIC_THREADS", "")])
def test_invalid_environment_variables_raise(name: str, message: str, tmp_path: Path) -> None:
    told = kic_in_shell(f"draw four-bar -o '{tmp_path / 'x.svg'}'", **{name: "x"})
    assert "Traceback" not in told.stderr
    assert message in told.stderr
    assert told.returncode == 1 or not message


# a command of terminals, in the forms of TOML and XML; XML has no escape character
CONTROL, TOML, XML = "\x1b[2J\x9b31m\u202e", "\\u001b[2J\\u009b31m\\u202e", "&#x9b;31m&#x7f;&#x202e;"
LINKS = '<link name="a"/><link name="b"/>'
JOINT = '<joint name="{}" type="{}"><parent link="a"/><child link="{}"/><axis xyz="0 0 1"/></joint>'
HOSTILE = {
    **{
        f"{key}.toml": f'name = "a"\n{line}\n[[joints]]\nname = "A"\ntype = "revolute"\n'
        'bodies = ["ground", "b"]\nat = [0, 0, 0]\naxis = [0, 0, 1]\n[[bodies]]\nname = "b"\n'
        for key, line in {
            "title": f'title = "{TOML}"',
            "unit": f'units = {{ length = "{TOML}" }}',
            "remark": f'remarks = ["{TOML}"]',
            "key": f'"{TOML}" = 1',
            "value": f'gravity = "{TOML}"',
            "coordinate": f'coordinates = ["{TOML}"]',
            "point": f'points = [{{ name = "{TOML}", body = "b", at = [0, 0, 0] }}]',
            "reference": f'points = [{{ name = "p", body = "{TOML}", at = [0, 0, 0] }}]',
        }.items()
    },
    "name.urdf": f'<robot name="{XML}">{LINKS}{JOINT.format(XML, "continuous", "b")}</robot>',
    "type.urdf": f'<robot name="r">{LINKS}{JOINT.format(XML, "x", "b")}</robot>',
    "link.urdf": f'<robot name="r">{LINKS}{JOINT.format("j", "continuous", XML)}</robot>',
    "model.sdf": f'<sdf version="1.7"><model name="{XML}"><link name="{XML}"/></model></sdf>',
    "robot.mjcf": f'<mujoco model="{XML}"><include file="{XML}"/></mujoco>',
    f"{CONTROL}.toml": "",
}


@pytest.mark.skipif(os.name == "nt", reason="files have no such names")
@pytest.mark.parametrize("file", HOSTILE)
@pytest.mark.parametrize("command", ["check", "report"])
def test_models_send_no_control_characters(file: str, command: str, folder: Path) -> None:
    (folder / file).write_text(HOSTILE[file], encoding="utf-8")
    result = CliRunner().invoke(main, [command, file], prog_name="kic", color=True)
    assert result.output
    assert all(c.isprintable() or c in "\n\t" for c in result.output), result.output


@pytest.mark.parametrize(
    "arguments",
    [
        (CONTROL,),
        ("check", CONTROL),
        ("check", "four-bar", CONTROL),
        ("report", "four-bar", "--at", CONTROL),
        ("report", "four-bar", f"--{CONTROL}"),
        ("draw", "four-bar", "-o", f"no/{CONTROL}.png"),
        ("report", "four-bar", "--html", f"{CONTROL}.html"),
        ("export", "four-bar", "--c", CONTROL),
        ("export", "four-bar", "--table", f"{CONTROL}.csv", "--of", "B", "--box", "A=1:1.1", "--points", "2"),
    ],
)
def test_arguments_send_no_control_characters(arguments: tuple[str, ...], folder: Path) -> None:
    """Shells insert names of files."""
    result = CliRunner().invoke(main, arguments, prog_name="kic", color=True)
    assert result.exit_code in ((0,) if arguments[0] == "export" or "--html" in arguments else (1, 2))
    assert result.output
    assert all(c.isprintable() or c in "\n\t" for c in result.output), result.output


@pytest.mark.parametrize("name", ["$(id)", "`id`", "a;id", "a|b", "a b", "it's", CONTROL])
def test_completion_inserts_no_commands(name: str, folder: Path) -> None:
    quoted = TOML if name == CONTROL else name
    text = f'name = "a"\n[[joints]]\nname = "{quoted}"\n[[joints]]\nname = "A"\n'
    Path("m.toml").write_text(text, encoding="utf-8")
    context = click.Context(main, info_name="kic")
    context.params["model"] = "m.toml"
    assert {item.value for item in completion.coordinates(context, main.params[0], "")} == {"A="}


@pytest.mark.slow
def test_names_are_escaped_in_pages() -> None:
    m = kic.load("four-bar")
    joints = tuple(replace(j, name="$x^$") if j.name == "A" else j for j in m.joints)
    points = tuple(replace(p, name="$y_$") if p.name == "tip" else p for p in m.points)
    title = r"C:\models \g<1> $a_$ \1 <script>"
    units = kic.Units(length=r"$\frac$")
    odd = replace(m, name=title, joints=joints, points=points, units=units, coordinates=("$x^$",))
    page = odd.at().to_html(of="$y_$")
    assert r"C:\models \g&lt;1&gt; $a_$ \1 &lt;script&gt;" in page
    assert "<script" not in page
