"""The library of kernels: machine code that is loaded without Numba.

The library is an extension module (`kic.kernels.linking`). A wheel has one beside this file, built by
``python kic/kernel_library/build.py``. It holds each kernel for some processors; the best that runs here is
used. Otherwise, commands link the kernels that Numba has compiled for this machine to a library in the user's
cache directory, if there is a C compiler. A file beside a library has the hashes of the library and of the
kernels' sources. A library that is damaged or was built from other sources is not loaded; a warning says so,
and Numba compiles the kernels. It also compiles those that a library does not have.

`KIC_KERNELS` selects the machine code: ``jit`` that of Numba, or the name of a processor, such as
``x86-64-v2``.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
import warnings
from contextlib import suppress
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

__all__ = [
    "ARRAYS",
    "DESCRIPTION",
    "HERE",
    "MODULE",
    "SCALARS",
    "Compiled",
    "Library",
    "cache_root",
    "described",
    "imported",
    "kernel_name",
    "load",
    "machine_folder",
    "packed",
    "read",
    "source_key",
    "uses_cache",
    "write",
]

_FOLDER = Path(__file__).parent
# name of the extension module, and file that describes it
MODULE = "_library"
DESCRIPTION = "_library.json"
# processor of the kernels that were compiled for this machine
HERE = "this machine"
# codes of types in `library.c`
ARRAYS = {"float64": "d", "int64": "l", "complex128": "D"}
SCALARS = {"bool": "b", "int64": "i", "float64": "f", "none": "n"}
# bytes of a SHA-256 digest
DIGEST_SIZE = 32
# bytes of the description of one processor, about 2000
PROCESSOR_SIZE_MAX = 8192


@cache
def source_key() -> str:
    """Return a hash of the sources of all kernels."""
    digest = hashlib.sha256()
    for path in sorted((*_FOLDER.glob("*.py"), *_FOLDER.glob("*.c"))):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def kernel_name(function: Any) -> str:
    """Return the name of a kernel, with that of its module."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"


class Compiled(NamedTuple):
    """Machine code of a kernel for arguments of some types."""

    # name in the object
    symbol: str
    # name with that of the module, types of arguments and of the result (see `library.c`); empty for parts
    name: str
    types: str
    result: str
    # processor and version of Python for which it was compiled
    machine: str
    # symbols of the kernels that it calls
    calls: tuple[str, ...]
    object: bytes


def packed(compiled: Compiled, wrapper: bytes) -> bytes:
    """Return the content of a file: a SHA-256 digest of the rest, a kernel, and Numba's data of its wrapper.

    Numba's own cache does not check its files: a flipped bit in machine code ends the process, an empty index
    or a full disk stops the compilation. Here a file that fails the check counts as missing.
    """
    data = pickle.dumps((tuple(compiled), wrapper))
    return hashlib.sha256(data).digest() + data


def read(file: Path) -> tuple[Compiled, bytes]:
    """Return the content of a file of a kernel."""
    content = file.read_bytes()
    data = memoryview(content)[DIGEST_SIZE:]
    if hashlib.sha256(data).digest() != content[:DIGEST_SIZE]:
        raise ValueError("checksum")
    compiled, wrapper = pickle.loads(data)
    return Compiled(*compiled), wrapper


def write(file: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = file.with_name(f"{uuid4().hex[:16]}.tmp")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary.write_bytes(content)
        os.replace(temporary, file)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def cache_root() -> Path:
    """Return the directory of compiled kernels: `KIC_CACHE_DIR`, else the user's cache."""
    if given := os.environ.get("KIC_CACHE_DIR"):
        return Path(given)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~"), "kic", "Cache")
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches/kic"))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kic")


def machine_folder() -> Path | None:
    """Return the folder of the library of this machine's kernels; None where its processor is not described.

    Folders of users may be shared by machines with other processors.
    """
    try:
        with open("/proc/cpuinfo", "rb") as file:
            processor = file.read(PROCESSOR_SIZE_MAX).partition(b"\n\n")[0]
    except OSError:
        return None
    kinds = (b"vendor_id", b"model", b"flags", b"CPU", b"Features")
    lines = [line for line in processor.splitlines() if line.startswith(kinds)]
    chosen = [os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    key = repr((lines, chosen, sys.implementation.cache_tag, sys.abiflags))
    return cache_root() / f"{source_key()}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


class Library:
    """Kernels of one processor in the extension module."""

    def __init__(self, module: Any, processor: str) -> None:
        self.processor, self._make = processor, module.kernel

    def kernel(self, function: Any, fallback: Any) -> Any:
        """Return the kernel of a function.

        `fallback` is called with arguments of other types than those of the library.
        """
        return self._make(self.processor, kernel_name(function), function, fallback)


def described(folder: Path = _FOLDER) -> tuple[dict[str, Any], str]:
    """Return the description of the library, empty if there is none, and why it cannot be used, else ''."""
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if description["sources"] != source_key():
            return description, "was built from other sources"
        content = (folder / description["file"]).read_bytes()
        sound = hashlib.sha256(content).hexdigest() == description["sha256"]
        return description, "" if sound else "is damaged"
    except (FileNotFoundError, NotADirectoryError) as error:  # without a description, there is no library
        return {}, "" if str(error.filename).endswith(DESCRIPTION) else "is missing"
    except (OSError, ValueError, TypeError, KeyError):
        return {}, "has a damaged description"


def uses_cache() -> bool:
    """Return True if the library is that in the user's cache: none is in the package, and none was chosen."""
    return not os.environ.get("KIC_KERNELS", "").strip() and described(_FOLDER) == ({}, "")


def load() -> Library | None:
    """Return the library, or None where Numba is to compile the kernels."""
    chosen = os.environ.get("KIC_KERNELS", "").strip()
    if chosen == "jit":
        return None
    folder, (description, problem) = _FOLDER, described(_FOLDER)
    machine = machine_folder() if uses_cache() else None
    if machine is not None:
        folder, (description, problem) = machine, described(machine)
    if not description and not problem:
        return None
    try:
        module = None if problem else imported(folder / description["file"])
    except ImportError as error:
        module, problem = None, f"cannot be loaded ({error})"
    runnable = module.processors() if module is not None else []
    if not problem and not (chosen in runnable if chosen else runnable):
        problem = f"has no kernels for {chosen or 'this processor'}"
    if problem:
        from kic.errors import KernelLibraryWarning  # the build reads this file without the package

        text = f"the library of kernels in {folder} {problem}. Numba compiles them."
        # no source line is relevant to the user
        warnings.warn_explicit(text, KernelLibraryWarning, "kic", 0, __name__)
        return None
    return Library(module, chosen or runnable[0])


def imported(file: Path) -> Any:
    """Return an extension module."""
    name = f"kic.kernels.{MODULE}"
    spec = spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))
    assert spec is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
