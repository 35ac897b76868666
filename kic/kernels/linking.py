"""Linking of compiled kernels to a library that processes load without Numba; see `kic.kernels.library`.

It needs a C compiler and the Python headers. ``library.c`` calls kernels from Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from kic.kernels import library
from kic.kernels.library import Compiled

__all__ = ["c_compiler", "compiled_c", "kernels_in", "link", "link_for_this_machine"]

# age above which replaced libraries are removed, except for the last one (s)
REPLACED_MIN = 600.0
SOURCE = Path(__file__).with_name("library.c")


def _table(kernels: Mapping[str, Iterable[Compiled]]) -> str:
    """Return the text of `table.h`, with the kernels of each processor and the types of their arguments."""
    lines, tables, words, arguments = [], [], 1, 1
    for number, (processor, compiled) in enumerate(kernels.items()):
        names: dict[str, list[Compiled]] = {}
        for one in sorted(compiled, key=lambda one: ("D" in one.types, one.symbol)):
            # parts have no names; the package has no other kinds of arguments and results
            if one.name and "?" not in one.types and one.result in "ibn":
                names.setdefault(one.name, []).append(one)
        for place, forms in enumerate(names.values()):
            rows = []
            for one in forms:
                lines.append(f"extern int {one.symbol}_words(const int64_t *, int64_t *);")
                rows.append(f"""{{"{one.types}", '{one.result}', {one.symbol}_words}}""")
                words = max(words, sum(1 if n == " " else 5 + 2 * int(n) for n in one.types[1::2]))
                arguments = max(arguments, len(one.types) // 2)
            listed = ", ".join([*rows, "{NULL, 0, NULL}"])
            lines.append(f"static const Signature signatures_{number}_{place}[] = {{{listed}}};")
        entries = [f"""{{"{name}", signatures_{number}_{place}}}""" for place, name in enumerate(names)]
        listed = ", ".join([*entries, "{NULL, NULL}"])
        lines.append(f"static const Entry entries_{number}[] = {{{listed}}};")
        tables.append(f"""{{"{processor}", entries_{number}}}""")
    lines.append(f"static const Table tables[] = {{{', '.join([*tables, '{NULL, NULL}'])}}};")
    return "\n".join([f"#define WORDS_MAX {words}", f"#define ARGUMENTS_MAX {arguments}", *lines, ""])


def c_compiler() -> list[str]:
    """Return the command of the C compiler, `CC` or cc."""
    return shlex.split(os.environ.get("CC") or "") or ["cc"]


def compiled_c(source: Path, options: Iterable[str], texts: Mapping[str, str]) -> bytes:
    """Return the object of a C file that includes files with given names and texts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        made = folder / "made.o"
        command = [*c_compiler(), "-c", "-fPIC", *options, f"-I{folder}", str(source), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True)
        return made.read_bytes()


def link(output: Path, kernels: Mapping[str, list[Compiled]], key: str) -> Path:
    """Link kernels by processor, the best first, to an extension module in a folder, and return its path."""
    flags = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared", "-s"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "table.h").write_text(_table(kernels), encoding="utf-8")
        objects = []
        for one in {one.symbol: one for compiled in kernels.values() for one in compiled}.values():
            objects.append(folder / f"{one.symbol}.o")
            objects[-1].write_bytes(one.object)
        include = [f"-I{folder}", f"-I{sysconfig.get_path('include')}"]
        options = ["-O2", "-fPIC", "-fvisibility=hidden", *include, str(SOURCE), *map(str, objects), "-lm"]
        made = folder / "made"
        subprocess.run([*c_compiler(), *flags, *options, "-o", str(made)], check=True, capture_output=True)
        content = made.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    file = output / f"{library.MODULE}-{digest[:12]}.abi3.so"
    description = {
        "file": file.name,
        "sha256": digest,
        "sources": key,
        "processors": list(kernels),
    }
    # a process that reads the old description still finds the old file
    library.write(file, content)
    library.write(output / library.DESCRIPTION, f"{json.dumps(description, indent=1)}\n".encode())
    return file


def kernels_in(cache: Path | None, machine: str = "") -> list[Compiled]:
    """Return the undamaged kernels in a cache, optionally only those of one machine."""
    found = []
    for file in () if cache is None else sorted(cache.glob("*.nbc")):
        with suppress(OSError, ValueError, TypeError, EOFError, pickle.UnpicklingError):
            found.append(library.read(file)[0])
    return [one for one in found if machine in ("", one.machine)]


def link_for_this_machine(kernels: list[Compiled]) -> None:
    """Link kernels for later processes of this machine if possible; otherwise Numba loads them."""
    folder = library.machine_folder()
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        if folder is not None and kernels:
            used = link(folder, {library.HERE: kernels}, library.source_key())
            try:
                library.imported(used)
            except ImportError:  # a directory whose files must not be executed
                (folder / library.DESCRIPTION).unlink()
                return
            # starting processes may still load a library that another process has just replaced
            replaced = [file for file in folder.glob(f"{library.MODULE}-*") if file != used]
            for file in sorted(replaced, key=lambda file: file.stat().st_mtime)[:-1]:
                if time.time() - file.stat().st_mtime > REPLACED_MIN:
                    file.unlink(missing_ok=True)
