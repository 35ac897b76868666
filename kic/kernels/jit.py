"""Functions that mark kernels, and the origin of their machine code.

`helper` marks functions called inside kernels; they remain ordinary Python functions for symbolic scalars.
`inlined` marks helpers that are always inlined, and `reordered` helpers whose sums may have any order. `part`
marks long helpers: their machine code is compiled and cached once for all kernels. `entry` marks kernels
called from outside with arrays; its ``.py_func`` is the ordinary function.

Machine code comes from a library (`kic.kernels.library`), without importing Numba. Without a library, Numba
compiles each kernel on first use (`kic.kernels.compiler`). It also compiles for types of arguments that the
library does not support; marks are queued until then.
"""

from __future__ import annotations

import sys
from collections import deque
from threading import RLock
from typing import Any

from kic.errors import MissingExtraError
from kic.kernels import library

__all__ = [
    "compiled_by",
    "entry",
    "extension",
    "helper",
    "inlined",
    "link_used_kernels",
    "overloaded",
    "part",
    "reordered",
]

# tested versions, as in pyproject.toml; the compiler uses internals of Numba, which change without notice
NUMBA_VERSIONS = ">=0.62,<0.69"
# None if Numba compiles the kernels
LIBRARY = library.load()
# queue of marks for the compiler: name of the mark, arguments and options
_waiting: deque[tuple[str, tuple[Any, ...], dict[str, Any]]] = deque()
_lock = RLock()


def compiler() -> Any:
    """Return the module that compiles kernels, after its queue of marks; raise an error without Numba."""
    try:
        from kic.kernels import compiler as found

        with _lock:
            while _waiting:
                name, arguments, options = _waiting[0]
                getattr(found, name)(*arguments, **options)
                _waiting.popleft()
    except ImportError as error:
        if (error.name or "numba").partition(".")[0] not in ("numba", "llvmlite"):
            raise
        what = "Kernels without their library" if LIBRARY is None else "Arguments of these types"
        raise _without_numba(what, error) from error
    return found


def _without_numba(what: str, error: ImportError) -> MissingExtraError:
    """Return the error for a missing Numba, or for a version that lacks names that kic imports."""
    if isinstance(error, ModuleNotFoundError) and error.name in ("numba", "llvmlite"):
        return MissingExtraError(f"{what} need Numba. Run: pip install 'kic[jit]'.", extra="jit")

    from importlib.metadata import version

    reason = str(error).partition(" (")[0].rstrip(".")  # without the path of a file
    return MissingExtraError(
        f"{what} need Numba {NUMBA_VERSIONS}, got {version('numba')}: {reason}. "
        f"Run: pip install --upgrade 'numba{NUMBA_VERSIONS}'.",
        extra="jit",
    )


def link_used_kernels() -> None:
    """Link compiled kernels to the library in the user's cache if Numba was used since the last call."""
    used = sys.modules.get("kic.kernels.compiler")
    if used is not None and used.used and library.uses_cache():
        from kic.kernels.linking import kernels_in, link_for_this_machine

        used.used.clear()
        link_for_this_machine(kernels_in(used.cache_directory(), used.machine()))


def _mark(name: str, function: Any, *arguments: Any, **options: Any) -> Any:
    """Store a mark of a function for the compiler; without a library, compile at once."""
    _waiting.append((name, (function, *arguments), options))
    if LIBRARY is None:
        compiler()
    return function


def compiled_by(function: Any, implementation: Any, **options: Any) -> None:
    """Compile `implementation` as the body of a function called in kernels, with options of Numba."""
    _mark("compiled_by", function, implementation, **options)


def helper(function: Any) -> Any:
    """Compile a function for calls in kernels."""
    return _mark("helper", function)


def inlined(function: Any) -> Any:
    """Compile a function inline, for small functions and hot loops: each call would copy array structures."""
    return _mark("inlined", function)


def reordered(function: Any) -> Any:
    """Compile a function whose sums may be reordered for vectorization, such as a bound."""
    return _mark("reordered", function)


def part(function: Any) -> Any:
    """Compile a long helper that returns nothing as a separate object, shared by all kernels."""
    return _mark("part", function)


def overloaded(function: Any) -> Any:
    """Return a decorator for the function that selects the implementation of `function` by argument types."""

    def mark(choose: Any) -> Any:
        _mark("overloaded", function, choose)
        return choose

    return mark


def extension(function: Any) -> Any:
    """Mark a function that extends the compiler."""
    return _mark("extension", function)


def entry(function: Any) -> Any:
    """Return the kernel of a function from the library, or compile it for any scalar type without the GIL."""

    if LIBRARY is None:
        return compiler().entry(function)

    def fallback(*arguments: Any) -> Any:
        return compiler().dispatcher(function)(*arguments)

    found = LIBRARY.kernel(function, fallback)
    _mark("callable_entry", found)
    return found
