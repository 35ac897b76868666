"""The controller in C of the guide compiles with the exported functions, and follows its motion."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_text import compile_c, needs_compiler
from commands import HANGS_S

import kic

GUIDE = Path(kic.__file__).parent.parent / "notebooks" / "guides" / "export.md"


@needs_compiler
@pytest.mark.skipif(not GUIDE.exists(), reason="guides are not part of an installed package")
def test_controller_of_the_guide(tmp_path: Path) -> None:
    """The error is that of the linear equation e'' + 20 e' + 100 e = 0, but for holds of 1 ms."""
    found = re.search(r"^```c\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    (tmp_path / "main.c").write_text(found[1], encoding="utf-8")
    m, questions = kic.load("five-bar"), ("inverse_dynamics", "forward_dynamics")
    saved = [getattr(m.export, question)(close=True).to_c().save(tmp_path)[1].name for question in questions]
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    compile_c(*flags, "main.c", *saved, "-o", "controller", "-lm", folder=tmp_path)
    done = subprocess.run(
        [str(tmp_path / "controller")], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    t, a, e = np.loadtxt(done.stdout.splitlines()).T
    assert len(t) == 6
    # holds of 1 ms delay the gains by half a sample: 7e-5 rad were seen
    assert np.abs(a - 0.05 * (1 + 10 * t) * np.exp(-10 * t)).max() < 2e-3
    assert np.abs(e).max() < 1e-3
