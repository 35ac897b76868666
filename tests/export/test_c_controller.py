"""The controller in C of the guide compiles with the exported functions, and follows its motion."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands import HANGS_S

import kic

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
GUIDE = Path(kic.__file__).parent.parent / "notebooks" / "guides" / "export.md"


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
@pytest.mark.skipif(not GUIDE.exists(), reason="guides are not part of an installed package")
def test_controller_of_the_guide(tmp_path: Path) -> None:
    """The error is that of the linear equation e'' + 20 e' + 100 e = 0, but for holds of 1 ms."""
    found = re.search(r"^```c\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    (tmp_path / "main.c").write_text(found[1], encoding="utf-8")
    m, questions = kic.load("five-bar"), ("inverse_dynamics", "forward_dynamics")
    saved = [getattr(m.export, question)(close=True).to_c().save(tmp_path)[1].name for question in questions]
    assert COMPILER is not None
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    command = [COMPILER, *flags, "main.c", *saved, "-o", "controller", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=HANGS_S)
    done = subprocess.run(
        [str(tmp_path / "controller")], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    t, a, e = np.loadtxt(done.stdout.splitlines()).T
    assert len(t) == 6
    # holds of 1 ms delay the gains by half a sample: 7e-5 rad were seen
    assert np.abs(a - 0.05 * (1 + 10 * t) * np.exp(-10 * t)).max() < 2e-3
    assert np.abs(e).max() < 1e-3
