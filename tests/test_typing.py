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
# types of results, and calls to which a type checker must object: an unused comment is an error
QUESTIONS = """
from typing import assert_type

import numpy as np

import kic
from kic import results

m = kic.load("four-bar")
c = m.at()
assert_type(m.prepare.inverse_dynamics(wrt="A")(c.state, [1.0], [2.0]), np.ndarray)
assert_type(m.prepare.motion("tip")(c.state), results.OutputMotion)
assert_type(m.prepare.operational_space("tip.x")(c.state), results.OperationalSpace)
assert_type(m.export.dynamics(close=True, steps=3).to_c(precision="float"), results.CSource)
assert_type(m.export.forward_dynamics().to_fmu(), results.FMU)
assert_type(m.export.actuation_map("B").to_table(limits={"A": (1.0, 1.1)}), results.ActuationTable)
Row = tuple[float, float, float]
assert_type(kic.Body("rod", inertia=[0, 1, 1]).inertia, tuple[Row, Row, Row] | None)
m.simulate(1.0, integrator="RK4")  # type: ignore[arg-type]
m.prepare.dynamics(order=2)  # type: ignore[call-arg]
m.prepare.coefficients()  # type: ignore[call-arg]
m.prepare("dynamics")  # type: ignore[operator]
m.export.dynamics(closed=True)  # type: ignore[call-arg]
m.export.dynamics(derivatives=3)  # type: ignore[arg-type]
m.export.dynamics().to_c(precision="half")  # type: ignore[arg-type]
m.export.dynamics().to_fmu()  # type: ignore[attr-defined]
"""


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "py.typed").is_file()


@pytest.mark.slow
def test_scripts_of_the_readme_and_of_pages_pass_mypy_in_strict_mode(tmp_path: Path) -> None:
    """The blocks of a page are one script, as a user types them from top to bottom; questions are typed."""
    pytest.importorskip("mypy")
    pages = [ROOT.parent / "README.md", *sorted((ROOT.parent / "notebooks").rglob("*.md"))]
    scripts = []
    for page in pages:
        blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
        if blocks:
            scripts.append(tmp_path / f"{page.stem.replace('-', '_')}.py")
            scripts[-1].write_text("\n".join(blocks), encoding="utf-8")
    assert len(scripts) > 20
    scripts.append(tmp_path / "typed_questions.py")
    scripts[-1].write_text(QUESTIONS, encoding="utf-8")
    # errors in kic itself are those of its own settings
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--config-file="]
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path}", *map(str, scripts)]
    path = os.pathsep.join(filter(None, (str(ROOT.parent), os.environ.get("MYPYPATH"))))
    env = {**os.environ, "MYPYPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
