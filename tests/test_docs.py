"""Documentation is true: the code of the README runs, and documented shapes are those of results."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kic

ROOT = Path(kic.__file__).parent.parent
README = ROOT / "README.md"


def readme() -> str:
    if not README.is_file():
        pytest.skip("README.md is not part of an installed package")
    return README.read_text(encoding="utf-8")


@pytest.mark.slow
def test_readme_code_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", readme(), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)  # one block may go on from the one before
    assert np.allclose(names["d"].forward_dynamics(names["qd"], names["T"]), 0, atol=1e-9)


def test_readme_has_its_two_commands() -> None:
    start = "python3 -m venv .venv && .venv/bin/pip install -q -e "
    commands = [line for line in readme().splitlines() if line.startswith("python3 -m venv")]
    assert commands == [
        f"{start}. && .venv/bin/kic report puma560",
        f"{start}'.[test]' && .venv/bin/pytest",
    ]


def test_readme_shows_real_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from kic.cli.main import main

    # the files that it shows are those that its commands read
    monkeypatch.chdir(tmp_path)
    for file in re.findall(r"```toml\n(.*?)```", readme(), flags=re.DOTALL):
        Path(re.search(r'^name = "(.*)"', file)[1] + ".toml").write_text(file, encoding="utf-8")
    shown = re.findall(r"```text\n\$ kic ([^\n]*)\n(.*?)```", readme(), flags=re.DOTALL)
    assert shown
    for command, output in shown:
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code == 0
        lines = iter(result.stdout.splitlines())
        for line in output.splitlines():
            assert line == "…" or line in lines, line  # in this order


def documented(text: str) -> dict[str, str]:
    """Shapes in an Attributes section: name -> what stands between the parentheses."""
    section = re.split(r"\n\s*[A-Z][a-z]+\n\s*-+\n", text.split("Attributes\n")[1])[0]
    found = {}
    for names, shape in re.findall(r"^\s*([\w, ]+) : \((\.\.\.[^)]*)\)", section, flags=re.MULTILINE):
        for name in names.split(", "):
            found[name] = shape
    return found


BATCH = (3, 1, 2)


SHAPED = [
    kic.Coefficients, kic.Dynamics, kic.Contributions, kic.Configuration, kic.Linearization, kic.Modes,
    kic.StateSpace, kic.MotorDemand,
]  # fmt: skip


@pytest.mark.parametrize("cls", SHAPED)
def test_documented_shapes(cls: type) -> None:
    m = kic.load("puma560")
    c = m.at(np.random.default_rng(0).normal(size=(*BATCH, 6)))
    things = {
        kic.Coefficients: c.coefficients(["link6", "reach"], order=3),
        kic.Dynamics: c.dynamics(),
        kic.Contributions: c.contributions(),
        kic.Configuration: c,
        kic.Linearization: c.linearize(),
        kic.Modes: c.linearize().modes(),
        kic.StateSpace: c.state_space(outputs=["link6", "reach"]),
        kic.MotorDemand: replace(m, motors=[kic.Motor(f"M{j}", [j]) for j in m.coordinate_names])
        .at(c.phi)
        .drive(np.zeros(6), np.zeros(6)),
    }
    sizes = {"M": 6, "P": 7, "N": len(c.contributions().bodies), "S": 6}
    sizes |= {"K": 6, "X": 12, "U": 6, "Y": 7, "2M": 12}
    shapes = documented(cls.__doc__)
    assert shapes
    for name, shape in shapes.items():
        want = BATCH + tuple(sizes[s.strip()] for s in shape.split(",")[1:] if s.strip())
        assert getattr(things[cls], name).shape == want, name


def test_notation_table_names_what_exists() -> None:
    c = kic.load("puma560").at()
    things = {
        "Coefficients": c.coefficients("tool", order=3),
        "Dynamics": c.dynamics(),
        "Configuration": c,
        "Linearization": c.linearize(),
        "StateSpace": c.state_space(),
        "OperationalSpace": c.operational_space("tool"),
    }
    named = re.findall(r"^\|.*`(\w+)\.(\w+)`", readme(), flags=re.MULTILINE)
    assert len(named) == 10
    for owner, attribute in named:
        assert isinstance(getattr(things[owner], attribute), np.ndarray), (owner, attribute)
    for name in ("G", "H", "D", "I*", "P*", "Tᴸ", "T"):
        assert re.search(rf"^{re.escape(name)} ", kic.__doc__, flags=re.MULTILINE), name
