"""The library of kernels: machine code that a wheel carries, so that no compiler is needed.

The library is an extension module beside this file, built from the kernels (see `kic.kernels.jit`) by
``python kic/kernel_library/build.py``. A file beside it has the hashes of the library and of the kernels'
sources. It holds each kernel for some processors, of which the best that runs here is used. A library that is
damaged or was built from other sources is not loaded; a warning says so, and Numba compiles the kernels.

`KIC_KERNELS` selects the machine code: ``jit`` that of Numba, or the name of a processor, such as
``x86-64-v2``.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = [
    "DESCRIPTION",
    "MODULE",
    "Library",
    "described",
    "kernel_name",
    "load",
    "source_key",
]

_FOLDER = Path(__file__).parent
# name of the extension module, and file that describes it
MODULE = "_library"
DESCRIPTION = "_library.json"


@cache
def source_key() -> str:
    """Return a hash of the sources of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(_FOLDER.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def kernel_name(function: Any) -> str:
    """Return the name of a kernel, with that of its module."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"


class Library:
    """Kernels of one processor in the extension module."""

    def __init__(self, module: Any, processor: str) -> None:
        self.processor, self.kernel_type = processor, module.Kernel
        self._make = module.kernel

    def kernel(self, function: Any, fallback: Any) -> Any:
        """Return the kernel of a function, or None if it is not in the library.

        `fallback` is called with arguments of other types than those of the library.
        """
        return self._make(self.processor, kernel_name(function), function, fallback)


def described() -> tuple[dict[str, Any], str]:
    """Return the description of the library, empty if there is none, and why it cannot be used, else ''."""
    try:
        description = json.loads((_FOLDER / DESCRIPTION).read_text(encoding="utf-8"))
        if description["sources"] != source_key():
            return description, "was built from other sources"
        content = (_FOLDER / description["file"]).read_bytes()
        sound = hashlib.sha256(content).hexdigest() == description["sha256"]
        return description, "" if sound else "is damaged"
    except FileNotFoundError as error:  # without a description, a checkout
        return {}, "" if str(error.filename).endswith(DESCRIPTION) else "is missing"
    except (OSError, ValueError, TypeError, KeyError):
        return {}, "has a damaged description"


def load() -> Library | None:
    """Return the library, or None where Numba is to compile the kernels."""
    chosen = os.environ.get("KIC_KERNELS", "").strip()
    if chosen == "jit":
        return None
    description, problem = described()
    if not description and not problem:
        return None
    try:
        module = None if problem else import_module(f"kic.kernels.{MODULE}")
    except ImportError as error:
        module, problem = None, f"cannot be loaded ({error})"
    runnable = module.processors() if module is not None else []
    if not problem and not (chosen in runnable if chosen else runnable):
        problem = f"has no kernels for {chosen or 'this processor'}"
    if problem:
        from kic.errors import KernelLibraryWarning  # the build reads this file without the package

        text = f"the library of kernels in {_FOLDER} {problem}. Numba compiles them."
        # no source line is relevant to the user
        warnings.warn_explicit(text, KernelLibraryWarning, "kic", 0, __name__)
        return None
    return Library(module, chosen or runnable[0])
