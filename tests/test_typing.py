"""The package carries types for users: the marker file, and the scripts of pages in mypy's strict mode."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kic

ROOT = Path(kic.__file__).parent
BLOCK = re.compile(r"^```(?:python|\{code-cell\} python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "py.typed").is_file()


@pytest.mark.slow
def test_scripts_of_the_readme_and_of_pages_pass_mypy_in_strict_mode(tmp_path: Path) -> None:
    """The blocks of a page are one script, as a user types them from top to bottom."""
    pytest.importorskip("mypy")
    pages = [ROOT.parent / "README.md", *sorted((ROOT.parent / "notebooks").rglob("*.md"))]
    scripts = []
    for page in pages:
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        if blocks:
            scripts.append(tmp_path / f"{page.stem.replace('-', '_')}.py")
            scripts[-1].write_text("\n".join(blocks), encoding="utf-8")
    assert len(scripts) > 20
    # errors in kic itself are those of its own settings
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--config-file="]
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path}", *map(str, scripts)]
    path = os.pathsep.join(filter(None, (str(ROOT.parent), os.environ.get("MYPYPATH"))))
    env = {**os.environ, "MYPYPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
