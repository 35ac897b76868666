"""Types of arguments of compiled kernels, as in the library of kernels."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SIGNATURES = Path(__file__).resolve().parents[1] / "kic" / "kernel_library" / "signatures.json"
ARRAYS = {"float64": "d", "int64": "l", "complex128": "D"}
SCALARS = {"bool": "b", "int64": "i", "float64": "f", "none": "n"}


def code(kind: Any) -> str:
    """Return the code of one of Numba's types; see `kic/kernel_library/library.c`."""
    if not hasattr(kind, "layout"):
        return f"{SCALARS.get(str(kind), '?')} "
    plain = kind.layout == "C" and kind.mutable and kind.aligned
    return f"{ARRAYS.get(str(kind.dtype), '?')}{kind.ndim}" if plain else str(kind)


def missing() -> list[str]:
    """Return the kernels that Numba compiled in this process for types that the library does not have."""
    if not SIGNATURES.exists():  # an installed package
        return []
    known = json.loads(SIGNATURES.read_text(encoding="utf-8"))
    kernels = {
        kernel
        for name, module in list(sys.modules.items())
        if name.startswith("kic.kernels.")
        for kernel in vars(module).values()
        if hasattr(kernel, "signatures")
    }
    found = []
    for kernel in kernels:
        name = f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.py_func.__qualname__}"
        types = {"".join(map(code, signature)) for signature in kernel.signatures}
        found += [f"{name}: {one}" for one in types - set(known.get(name, ()))]
    return sorted(found)
