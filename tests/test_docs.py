"""README, CHANGELOG and docstrings: code runs, shown output and shapes are real, listed names exist."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from documentation import BATCH, documented

import kic

ROOT = Path(kic.__file__).parent.parent
DATA = Path(__file__).parent / "data"
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
        exec(block, names)  # a block may use names of the blocks before it
    assert np.allclose(names["d"].forward_dynamics(names["qd"], names["T"]), 0, atol=1e-9)


def test_readme_has_one_install_and_one_test_command() -> None:
    start = "python3 -m venv .venv && .venv/bin/pip install -q -e "
    commands = [line for line in readme().splitlines() if line.startswith("python3 -m venv")]
    assert commands == [
        f"{start}. && .venv/bin/kic report puma560",
        f"{start}'.[test]' && .venv/bin/pytest -n auto",
    ]


def test_readme_output_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from kic.cli.main import main

    # commands read the files that the page shows
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
    for name, axes in shapes.items():
        want = BATCH + tuple(sizes[s.strip()] for s in axes.split(",")[1:] if s.strip())
        shape = getattr(things[cls], name).shape
        if name == "inertia_error":  # broadcasts: it is the same in all configurations of an open chain
            shape = np.broadcast_shapes(shape, want)
        assert shape == want, name


def test_notation_table_names_public_attributes() -> None:
    c = kic.load("puma560").at()
    things = {
        "Coefficients": c.coefficients("tool", order=3),
        "Dynamics": c.dynamics(),
    }
    named = re.findall(r"^\|.*`(\w+)\.(\w+)`", readme(), flags=re.MULTILINE)
    assert len(named) == 6
    for owner, attribute in named:
        assert isinstance(getattr(things[owner], attribute), np.ndarray), (owner, attribute)
    for name in ("G", "H", "D", "I*", "P*", "Tᴸ", "T"):
        assert re.search(rf"^{re.escape(name)} ", kic.__doc__, flags=re.MULTILINE), name


# --- names of version 0.1.0


def attributes(cls: type) -> set[str]:
    """Return the public attributes of a class: of the class, declared, and assigned to `self`."""
    found = set(dir(cls))
    for base in cls.__mro__:
        found |= set(getattr(base, "__annotations__", {})) | set(getattr(base, "__slots__", ()))
        if base.__module__.startswith("kic"):
            nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base))))
            found |= {
                node.attr
                for node in nodes
                if isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            }
    return found


def exists(name: str) -> bool:
    """Return True if a dotted name, as in `Mechanism.at` or `trajectory.line`, is public in kic now."""
    owner: object = kic
    for part in name.split("."):
        if owner is kic and part == "classics":
            import kic.classics as owner
        elif owner is kic and part == "Mobility":  # not exported: the result of `Mechanism.mobility`
            owner = type(kic.load("rssr").mobility())
        elif inspect.isclass(owner):
            return part in attributes(owner)
        elif hasattr(owner, part):
            owner = getattr(owner, part)
        else:
            return False
    return True


def renamed(name: str, table: dict[str, str]) -> str:
    """Return the present name of a name of 0.1.0, by its row or that of its owner."""
    if name in table:
        return table[name]
    owner, _, last = name.rpartition(".")
    if f"*.{last}" in table:
        return f"{renamed(owner, table)}.{table[f'*.{last}'][2:]}"
    return f"{renamed(owner, table)}.{last}" if owner else name


def test_changelog_lists_every_renamed_public_name() -> None:
    changes = ROOT / "CHANGELOG.md"
    if not changes.is_file():
        pytest.skip("CHANGELOG.md is not part of an installed package")
    section = changes.read_text(encoding="utf-8").split("### Renamed\n")[1].split("Modules that moved")[0]
    rows = re.findall(r"^\| `([\w.*]+)` \| `([\w.*]+)`", section, flags=re.MULTILINE)
    table = dict(rows)
    assert len(table) == len(rows)
    names = json.loads((DATA / "public_names_0.1.0.json").read_text(encoding="utf-8"))
    old = {name for owner, members in names.items() for name in (owner, *(f"{owner}.{x}" for x in members))}
    assert {name for name in table if "*" not in name} <= old
    missing = {name: renamed(name, table) for name in sorted(old) if not exists(renamed(name, table))}
    assert not missing
    assert not [new for new in table.values() if "*" not in new and not exists(new)]
    unchanged = [name for name, new in table.items() if name != new and "*" not in name and exists(name)]
    assert not unchanged
