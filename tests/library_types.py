"""Types of arguments of compiled kernels, as in the library of kernels."""

from __future__ import annotations

import json
import sys
from pathlib import Path

SIGNATURES = Path(__file__).resolve().parents[1] / "kic" / "kernel_library" / "signatures.json"


def missing() -> list[str]:
    """Return the kernels that Numba compiled in this process for types that the library does not have."""
    if not SIGNATURES.exists():  # an installed package
        return []
    from kic.kernels.compiler import code
    from kic.kernels.library import kernel_name

    known = json.loads(SIGNATURES.read_text(encoding="utf-8"))
    kernels = {
        kernel
        for name, module in list(sys.modules.items())
        if name.startswith("kic.kernels.")
        for kernel in vars(module).values()
        if hasattr(kernel, "signatures") and not isinstance(kernel, type)
    }
    found = []
    for kernel in kernels:
        name = kernel_name(kernel.py_func)
        types = {"".join(map(code, signature)) for signature in kernel.signatures}
        found += [f"{name}: {one}" for one in types - set(known.get(name, ()))]
    return sorted(found)
