"""README, pages, renames and docstrings: code runs, printed output and shapes are correct, names exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shlex
import textwrap
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documentation import BATCH, documented

import kic

ROOT = Path(kic.__file__).parent.parent
DATA = Path(__file__).parent / "data"
README = ROOT / "README.md"


PAGES = sorted(
    page for page in (ROOT / "notebooks").rglob("*.md") if "{code-cell}" in page.read_text("utf-8")
)
CODE = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def text_of(path: Path) -> str:
    if not path.is_file():
        pytest.skip(f"{path.name} is not part of an installed package")
    return path.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda path: path.stem)
def test_code_of_pages_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of a page runs from top to bottom; a block uses names of the blocks before it."""
    pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install -e '.[plot]'").use("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = (CODE if page == README else CELL).findall(text_of(page))
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    from matplotlib import pyplot as plt

    plt.close("all")


@pytest.mark.slow
def test_robots_with_loops_move_alike_in_mujoco() -> None:
    """The section on robot files with loops runs with its blocks for MuJoCo, and its differences are real."""
    mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo: pip install -e '.[mujoco]'")
    page = text_of(ROOT / "notebooks" / "guides" / "robots.md")
    page = page[page.index("## A robot file with loops") : page.index("## Inverse dynamics, in")]
    names: dict[str, Any] = {}

    def gaps(data: Any, end: kic.Configuration, joints: list[str]) -> list[float]:
        return [abs(data.joint(name).qpos[0] - end.value(name)[-1]) for name in joints]

    for block in re.findall(r"^```(?:\{code-cell\} python|text)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(compile(block, "robots.md", "exec"), names)
        if "data" in names and "step" not in names:
            assert gaps(names["data"], names["push"], ["pitch", "roll"]) == pytest.approx(
                [9e-5, 2.5e-4], rel=0.1
            )
    joints = ["hip", "knee", "ankle", "toe"]
    assert max(gaps(names["data"], names["step"], joints)) == pytest.approx(7e-3, rel=0.1)
    leg = names["leg"]
    model = mujoco.MjModel.from_xml_string(kic.to_mjcf(leg, timestep=1e-3))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = kic.joint_order(leg, model).q(names["crouch"]), 1.2 * names["hold"]
    for _ in range(300):
        mujoco.mj_step(model, data)
    assert max(gaps(data, names["step"], joints)) < 20 * 1e-7


def test_readme_has_one_install_and_one_test_command() -> None:
    start = "python3 -m venv .venv && .venv/bin/pip install -q -e "
    commands = [line for line in text_of(README).splitlines() if line.startswith("python3 -m venv")]
    assert commands == [
        f"{start}'.[plot]' && .venv/bin/kic report four-bar --at A=70deg --order 2 --html four-bar.html",
        f"{start}'.[test]' && .venv/bin/pytest -n auto -m 'not slow'",
    ]


def test_readme_is_short() -> None:
    assert len(text_of(README).splitlines()) <= 200


def test_shown_output_is_real() -> None:
    from click.testing import CliRunner

    from kic.ui.cli.main import main

    page = text_of(ROOT / "notebooks" / "guides" / "command-line.md")
    shown = re.findall(r"```text\n\$ kic ([^\n]*)\n(.*?)```", page, flags=re.DOTALL)
    assert shown
    for command, output in shown:
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code == output.startswith("Error: ")
        lines = iter(result.output.splitlines())
        for line in output.splitlines():
            assert line == "…" or line in lines, line  # in this order


def test_links_between_pages_lead_to_files() -> None:
    """Relative links in README and pages name files of the checkout or of the generated reference."""
    text_of(README)
    pages = [README, *(ROOT / "notebooks").rglob("*.md")]
    assert len(pages) > 20
    for page in pages:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)|src=\"([^\"]+)\"", prose):
            link = "".join(target)
            generated = "/api/" in link or "build/docs" in link
            assert link.startswith("http") or generated or (page.parent / link).exists(), (page, link)


def test_every_guide_is_listed() -> None:
    folder = ROOT / "notebooks" / "guides"
    listed = re.findall(r"\(([\w-]+\.md)\)", text_of(folder / "index.md"))
    assert sorted(listed) == sorted(path.name for path in folder.glob("*.md") if path.name != "index.md")


def test_page_of_models_has_every_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generated page has a row and a section with the texts of each shipped model."""
    text_of(ROOT / "notebooks" / "reference_pages.py")
    monkeypatch.syspath_prepend(ROOT / "notebooks")
    page = importlib.import_module("reference_pages").models_page()
    table, *sections = re.split(r"\n(?=\S+\n-+\n)", page)
    assert [section.split("\n")[0] for section in sections] == list(kic.model_names())
    for name, section in zip(kic.model_names(), sections, strict=True):
        m, words = kic.load(name), " ".join(section.split())
        assert f"   * - `{name}`_\n     - {m.dof}\n     - {m.info.title}\n" in table
        for text in (m.info.title, m.info.about, m.info.source, ", ".join(f"``{x}``" for x in m.coordinates)):
            assert " ".join(text.split()) in words, name


SHAPED = [
    kic.Coefficients, kic.Dynamics, kic.results.Contributions, kic.Configuration, kic.results.Linearization,
    kic.results.Modes, kic.results.StateSpace, kic.results.MotorDemand,
]  # fmt: skip


@pytest.mark.parametrize("cls", SHAPED)
def test_documented_shapes(cls: type) -> None:
    m = kic.load("puma560")
    c = m.at(np.random.default_rng(0).normal(size=(*BATCH, 6)))
    things = {
        kic.Coefficients: c.coefficients(["link6", "reach"], order=3),
        kic.Dynamics: c.dynamics(),
        kic.results.Contributions: c.body_contributions(),
        kic.Configuration: c,
        kic.results.Linearization: c.linearize(),
        kic.results.Modes: c.linearize().modes(),
        kic.results.StateSpace: c.linearize().state_space(outputs=["link6", "reach"]),
        kic.results.MotorDemand: m.replace(motors=[kic.Motor(f"M{j}", [j]) for j in m.coordinates])
        .at(c._phi)
        .motor_demand(np.zeros(6), np.zeros(6)),
    }
    sizes = {"M": 6, "P": 7, "N": len(c.body_contributions().bodies), "S": 6}
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
    page = text_of(ROOT / "notebooks" / "explanation" / "conventions.md")
    named = re.findall(r"^\|.*`(Coefficients|Dynamics)\.(\w+)` \|", page, flags=re.MULTILINE)
    assert len(named) == 6
    for owner, attribute in named:
        assert isinstance(getattr(things[owner], attribute), np.ndarray), (owner, attribute)
    for name in ("G", "H", "D", "I*", "P*", "Tᴸ", "T"):
        assert re.search(rf"^{re.escape(name)} ", kic.__doc__, flags=re.MULTILINE), name


TERMS = (
    "kinematic influence coefficient", "generalized scalar product", "generalized inner product", "hand",
    "effective load", "load distribution", "antagonistic", "superabundance", "kinematic redundancy", "dyad",
    "transfer of generalized coordinates", "partial transfer", "linearized state space", "serial manipulator",
    "drive train", "cooperating robots", "wrist-partitioned", "compliance", "payload", "open-chain model",
)  # fmt: skip


def test_terms_of_the_source_lead_to_calls() -> None:
    """The glossary and `help(kic)` have each term, and the names of their calls exist."""
    for text in (text_of(ROOT / "notebooks" / "reference" / "glossary.md"), kic.__doc__):
        words = " ".join(text.split())
        assert not [term for term in TERMS if not re.search(rf"\b{term}\b", words)]
        names = re.findall(r"`(?:kic\.)?((?:[A-Z]\w|products|metrics|classics|results|from_)[\w.]*)", text)
        assert len(names) > 20
        assert not [name for name in names if found(name) is None and found(f"results.{name}") is None]


NUMBERED = {
    "figure": ["2-1", "4-1", "4-2", "4-3", "4-4", "4-5a", "4-5b", "B-1", "C-1", "D-1", "D-2", "E-1"],
    "table": ["1-1", "2-1", "2-2", "2-3", "2-4", "2-5", "B-1", "C-1", "C-2", "C-3", "E-1", "E-2"],
}


def test_page_of_the_dissertation_has_its_figures_and_tables() -> None:
    """The page lists all figures and tables, loads the models of the figures, and has no private names."""
    page = text_of(ROOT / "notebooks" / "reference" / "dissertation.md")
    code, models = "".join(CELL.findall(page)), []
    for kind, names in NUMBERED.items():
        rows = re.findall(rf"^\| {kind} \|.*\n\|.*\n((?:\|.*\n)+)", page, flags=re.MULTILINE)[0].splitlines()
        assert re.findall(r"\w-\d[ab]?", " ".join(row.split(" | ")[0] for row in rows)) == names
        models += re.findall(r'kic\.load\("(.*?)"\)', " ".join(rows))
    assert len(models) == len(NUMBERED["figure"])
    assert not [name for name in models if f'"{name}"' not in code]
    assert not re.search(r"[.( ]_\w", code)


# --- renamed names


@cache
def attributes(cls: type) -> set[str]:
    """Return the public attributes of a class: of the class, declared, and assigned to `self`."""
    found = set(dir(cls)) | set(getattr(cls, "__annotations__", {})) | set(getattr(cls, "__slots__", ()))
    if cls.__module__.startswith("kic"):
        nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls))))
        found |= {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }
    return found.union(*(attributes(base) for base in cls.__bases__))


@cache
def found(name: str) -> object:
    """Return the object of a dotted name, as in `Mechanism.at` or `trajectory.line`, or None."""
    owner: object = kic
    parts = name.split(".")
    for part in parts:
        if inspect.isclass(owner):
            if (part.startswith("_") and part != "__call__") or part not in attributes(owner):
                return None
            value = getattr(owner, part, None)
            return inspect.Parameter.empty if value is None else value
        if inspect.ismodule(owner) and not hasattr(owner, part):
            with suppress(ModuleNotFoundError):
                importlib.import_module(f"{owner.__name__}.{part}")
        owner = getattr(owner, part, None)
    return owner


def parameters(name: str) -> set[str]:
    """Return the parameters of a callable; of ``**options``, the names that its docstring lists."""
    call = found(name)
    if isinstance(call, property):
        return set()
    known = inspect.signature(call).parameters
    if "options" in known:
        return set(known) | set(re.findall(r"`(\w+)`", call.__doc__))
    return set(known)


def renames() -> dict[str, str]:
    """Return renamed names and parameters: the old name, and the new one or words in parentheses."""
    text = text_of(ROOT / ".github" / "renames.md")
    rows = re.findall(r"^\| `([\w.*()]+)` \| (.+?) \|$", text, flags=re.MULTILINE)
    table = {old: (re.match(r"`([\w.*]+)`", new) or [new, f"({new})"])[1] for old, new in rows}
    assert len(table) == len(rows)
    return table


def names_of(table: dict[str, str]) -> dict[str, str]:
    """Return the rows of names that were public, without parameters and modules that were not."""
    return {old: new for old, new in table.items() if "(" not in old and not old.startswith("kic.")}


def renamed(name: str, table: dict[str, str]) -> str:
    """Return the present name of an old name, by its row or that of its owner; words are in parentheses."""
    if name in table:
        return table[name]
    owner, _, last = name.rpartition(".")
    if f"{owner}.*" in table and found(name) is None:
        new = table[f"{owner}.*"]
        return renamed(f"{new[:-2]}.{last}", table) if new.endswith(".*") else new
    if f"*.{last}" in table:
        return f"{renamed(owner, table)}.{table[f'*.{last}'][2:]}"
    return f"{renamed(owner, table)}.{last}" if owner else name


def missing(names: set[str], table: dict[str, str]) -> dict[str, str]:
    """Return the old names whose present names do not exist, and those."""
    new = {name: renamed(name, table) for name in sorted(names)}
    return {name: now for name, now in new.items() if not now.startswith("(") and found(now) is None}


def check_rows(names: set[str], table: dict[str, str]) -> None:
    """Check that the rows are of old names, are needed, and name present names."""
    plain = {name: new for name, new in table.items() if "*" not in name}
    assert set(plain) <= names
    assert not [new for new in plain.values() if not new.startswith("(") and found(new) is None]
    assert not [name for name, new in plain.items() if name != new and found(name) is not None]


@cache
def before() -> tuple[set[str], dict[str, list[str]]]:
    """Return earlier public names, and the parameters of callables before the interface of 1.0."""
    first = json.loads((DATA / "public_names_0.1.0.json").read_text(encoding="utf-8"))
    names = {name for owner, members in first.items() for name in (owner, *(f"{owner}.{x}" for x in members))}
    calls = {}
    owners = json.loads((DATA / "public_names_before_1.0.json").read_text(encoding="utf-8"))
    for owner, members in owners.items():
        for member, given in members.items():
            if not member:
                names |= {f"{owner}.{attribute}".lstrip(".") for attribute in given.split()}
            else:
                name = owner if member == "()" else f"{owner}.{member}".lstrip(".")
                names.add(name)
                calls[name] = given.replace("*", "").split()
    return names, calls


@pytest.mark.slow
def test_every_renamed_public_name_is_listed() -> None:
    """Each name that was public exists, or is a row of the table of renames; no row is needless."""
    rows, old = names_of(renames()), before()[0]
    assert not missing(old, rows)
    check_rows(old, rows)
    for row in rows:
        assert missing(old, {name: new for name, new in rows.items() if name != row}), row


def test_modules_that_moved_exist() -> None:
    for new in (new for old, new in renames().items() if old.startswith("kic.")):
        importlib.import_module(new)


def unknown(table: dict[str, str], names: dict[str, str]) -> set[str]:
    """Return the old parameters that do not exist now and are not in the table, nor is their new name."""
    out = set()
    for call, given in before()[1].items():
        new = renamed(call, names)
        if new.startswith("(") or f"{call}(*)" in table or f"{call.partition('.')[0]}.*" in names:
            continue
        known = parameters(new)
        if "." not in call and "self" in known:
            given = given[1:]  # a function is a method now; its first argument is the object
        for name in given:
            row = f"{call}({name})"
            now = table.get(row) or table.get(f"*.{call.rpartition('.')[2]}({name})") or name
            if not now.startswith("(") and now not in known:
                out.add(row)
    return out


@pytest.mark.slow
def test_every_renamed_parameter_is_listed() -> None:
    """Each earlier parameter exists, or is a row of the table of renames; no row is needless."""
    names, rows = names_of(renames()), {old: new for old, new in renames().items() if "(" in old}
    assert not unknown(rows, names)
    for row in rows:
        assert unknown({name: new for name, new in rows.items() if name != row}, names), row


def test_changelog_is_short_before_a_release() -> None:
    assert len(text_of(ROOT / "CHANGELOG.md").splitlines()) <= 40
