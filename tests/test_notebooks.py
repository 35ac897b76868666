"""Notebooks run from a clean checkout, contain no outputs, and answer a stated question."""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

import pytest
from commands import HANGS_S

import kic

ROOT = Path(kic.__file__).parent.parent
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# as in pyproject.toml: kic's own warnings are errors, and others are not shown
WARNINGS = """
import warnings
from kic.errors import DegreesWarning

warnings.simplefilter("ignore")
warnings.simplefilter("error", DegreesWarning)
warnings.filterwarnings("error", module="kic")
"""
# a path of one machine: its root, its home or its drive at the start of a word
OWN_PATH = re.compile(r"""(?:^|[\s"'(`=])(?:/(?:[a-z]+/)[\w.]|~/|[A-Z]:[\\/]|file://)""", flags=re.MULTILINE)

for package in ("nbformat", "nbclient", "ipykernel", "matplotlib"):
    pytest.importorskip(package, reason=f"{package} is missing: pip install -e '.[notebooks]'")

import nbclient  # noqa: E402
import nbformat  # noqa: E402
from ipykernel.kernelspec import write_kernel_spec  # noqa: E402
from jupyter_client.kernelspec import KernelSpecManager  # noqa: E402
from jupyter_client.manager import AsyncKernelManager  # noqa: E402


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, isolated from the user's Jupyter settings."""
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "settings" / variable.lower()))
    for variable in ("MPLBACKEND", "JUPYTER_PATH"):  # Jupyter's own are what a reader has
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    for folder in ("run", "settings"):
        (tmp_path / folder).mkdir()
    return tmp_path


def executed(notebook: nbformat.NotebookNode, room: Path) -> nbformat.NotebookNode:
    """Run a notebook with this Python and return it with outputs; warnings of kic in its cells are errors."""
    write_kernel_spec(str(room / "kernels" / "python3"))
    specs = KernelSpecManager(kernel_dirs=[str(room / "kernels")], ensure_native_kernel=False)
    copy = nbformat.from_dict(notebook)
    copy.cells.insert(0, nbformat.v4.new_code_cell(WARNINGS))
    client = nbclient.NotebookClient(
        copy,
        timeout=int(HANGS_S),
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=specs),
        resources={"metadata": {"path": str(room / "run")}},
    )
    client.execute(cleanup_kc=True)  # shut down, as of a manager of its own
    return copy


def said(notebook: nbformat.NotebookNode, stream: str) -> str:
    """Return the output of all cells on a stream."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "".join(o.text for o in outputs if o.output_type == "stream" and o.name == stream)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def of_code(*sources: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def test_notebooks_have_distinct_numbers() -> None:
    if not FOLDER.is_dir():
        pytest.skip("notebooks are not part of an installed package")
    assert NOTEBOOKS
    numbers = [path.name[:2] for path in NOTEBOOKS]
    assert len(set(numbers)) == len(numbers)
    assert all(re.fullmatch(r"\d\d(-[a-z0-9]+)+\.ipynb", path.name) for path in NOTEBOOKS)


def test_index_lists_every_notebook() -> None:
    """The index has one line for each notebook: a link with the title, and the question."""
    if not FOLDER.is_dir():
        pytest.skip("notebooks are not part of an installed package")
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| \[(.*?)\]\((.*?)\) \| (.*?) \|$", text, flags=re.MULTILINE)
    assert [file for _, file, _ in lines] == [path.name for path in NOTEBOOKS]
    for (title, _, question), path in zip(lines, NOTEBOOKS, strict=True):
        assert read(path).cells[0].source.splitlines()[0] == f"# {title}"
        assert question.endswith("?")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_format(path: Path) -> None:
    """A notebook is valid, without outputs and machine data, and formatted by nbformat."""
    text = path.read_text(encoding="utf-8")
    notebook = read(path)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    nbformat.validate(notebook)  # ids among others
    assert notebook.metadata == METADATA
    assert nbformat.writes(notebook) + "\n" == text
    for cell in notebook.cells:
        assert cell.cell_type in ("markdown", "code")
        assert cell.metadata == {}
        assert cell.source == cell.source.strip()
        assert not OWN_PATH.search(cell.source), cell.source
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_has_introduction_and_final_assertion(path: Path) -> None:
    cells = read(path).cells
    title, _, rest = cells[0].source.partition("\n")
    assert cells[0].cell_type == "markdown"
    assert title.startswith("# ")
    assert "?" in rest
    last = [cell for cell in cells if cell.cell_type == "code"][-1]
    assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(last.source)))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, room: Path) -> None:
    if "import casadi" in path.read_text(encoding="utf-8"):
        pytest.importorskip("casadi", reason="needs CasADi: pip install -e '.[casadi]'")
    assert said(executed(read(path), room), "stderr") == ""


@pytest.mark.slow
def test_cells_use_this_python(room: Path) -> None:
    """Cells use this Python and kic, an empty folder, and inline pictures."""
    shown = executed(
        of_code(
            "import sys, os, kic\n\nprint(sys.executable, kic.__file__, os.listdir(), sep='\\n')",
            "import matplotlib.pyplot as plt\n\nplt.plot([1, 2])\nplt.show()",
        ),
        room,
    )
    assert said(shown, "stdout").splitlines() == [sys.executable, kic.__file__, "[]"]
    pictures = [output for output in shown.cells[-1].outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "assert 1 == 2",
        "import kic\n\nkic.load('four-bar').at({'A': 90})",
        "import warnings\n\nwarnings.warn_explicit('beware', UserWarning, 'position.py', 1, 'kic.mechanism')",
    ],
)
def test_errors_and_warnings_in_cells_raise(source: str, room: Path) -> None:
    with pytest.raises(nbclient.exceptions.CellExecutionError, match=r"AssertionError|DegreesWarning|beware"):
        executed(of_code(source), room)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("kic.load('" + "/".join(("", "home", "user", "arm.toml")) + "')", True),
        ("see ~/models", True),
        ("`C:\\models`", True),
        ("rate = 1/2; a / b; m/s, and/or", False),
        ("[that](07-idle.ipynb), rad/s²", False),
    ],
)
def test_absolute_paths_are_detected(source: str, found: bool) -> None:
    assert bool(OWN_PATH.search(source)) == found
