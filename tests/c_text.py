"""Exported C: its text as functions of Python, and its own test, compiled."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import HANGS_S

import kic

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


def compile_c(*arguments: str | Path, folder: Path | None = None) -> None:
    """Run the compiler in a folder, and require that it succeeds."""
    assert COMPILER is not None
    subprocess.run([COMPILER, *arguments], cwd=folder, check=True, timeout=HANGS_S)


def run_own_test(code: kic.results.CSource, folder: Path, *flags: str) -> None:
    """Compile an exported function with its test program, and require that it passes."""
    files, program = [path for path in code.save(folder) if path.suffix == ".c"], folder / "program"
    compile_c(*flags, *files, "-o", program, "-lm")
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert done.stdout == "passed\n", done.stdout + done.stderr


def translated(source: str) -> dict[str, Callable[..., None]]:
    """Return the functions of generated C as Python functions of arrays, line by line.

    Where no compiler is found, mistakes of the text are found by it, in the order of its operations.
    """
    words = {
        r"^\s*\(void\)\w+;|^\s*int k, i;|^\s*}$": "",
        r"for \(i = 0; i < \d+; i\+\+\) (\w+)\[i\] = (\w+)\[i\];": r"\1[:] = \2;",
        r"for \(k = 0; k < (\d+); k\+\+\) {": r"for k in range(\1):",
        r"const (?:double|float) ": "",
        r"(\d\.?)f\b": r"\1",
        r"\(double\)": "",
        r"\b(atan2|cos|sin|sqrt|fabs)f\b": r"\1",
    }
    body = []
    for name, arguments, lines in re.findall(
        r"^(?:static )?void (\w+)\(([^)]*)\)\n{\n(.*?)^}\n", source, flags=re.M | re.S
    ):
        names = re.findall(r"\w+(?=\[)", arguments)
        body.append(f"def {name}({', '.join(names)}):")
        for line in lines.splitlines():
            for word, instead in words.items():
                line = re.sub(word, instead, line)
            if arrays := re.findall(r"(\w+)\[(\d+)\]", line) if re.match(r"\s*(double|float) ", line) else []:
                line = "    " + "; ".join(f"{array} = zeros({size})" for array, size in arrays)
            body.append(line.rstrip(";"))
    space = {name: getattr(np, name) for name in ("sin", "cos", "sqrt", "zeros", "fabs")}
    space |= {"atan2": np.arctan2, "KIC_MIN": min, "KIC_MAX": max, "NAN": np.nan}
    exec("\n".join(body), space)
    return space
