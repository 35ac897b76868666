"""How a kernel is compiled, where the machine code is kept, and who is told about the wait.

`helper` marks what runs inside kernels; it stays an ordinary Python function for symbolic scalars. `small`
marks those that are too small for a call of their own.
`entry` marks what is called from outside with arrays; its ``.py_func`` is the ordinary function.
"""

import hashlib
import os
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.extending import register_jitable
from numba.misc.appdirs import AppDirs

__all__ = ["cache_directory", "entry", "helper", "small"]

# kernels allocate nothing, for their scratch comes with the call, and no helper returns an array: so nobody
# need count references to arrays (_nrt), which would cost as much as the arithmetic. A kernel that allocates
# does not compile. Contracted multiply-adds are the only liberty taken with IEEE arithmetic
_OPTIONS: dict[str, Any] = {
    "_nrt": False,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
}

helper = register_jitable(no_cfunc_wrapper=True)
# what is too small for a call of its own
small = register_jitable(no_cfunc_wrapper=True, forceinline=True)


@lru_cache(maxsize=1)
def source_key() -> str:
    """Hash of every kernel source and of Numba's version: Numba alone misses an edited helper."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def cache_directory() -> Path:
    """Folder of the compiled kernels of this very source: `KIC_CACHE_DIR`, else the user's cache."""
    root = os.environ.get("KIC_CACHE_DIR") or AppDirs("kic", False).user_cache_dir
    return Path(root) / source_key()


class _Locator(_CacheLocator):
    """Where Numba keeps a kernel: in kic's own folder, stamped with all kernel sources."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        # Numba reports these two when it finds that something can not be cached
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return source_key()

    def get_disambiguator(self) -> str:
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator | None":
        locator = cls(py_func, py_file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


class _Files(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012


class _Cache(FunctionCache):
    """A function cache that says when it has to compile, and takes a damaged file for a missing one."""

    _impl_class = _Files

    def load_overload(self, sig, target_context):
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # a truncated or foreign file must never stop the work
            found = None
        if found is None:
            _announce(self._py_func.__name__, sig)
        return found

    def save_overload(self, sig, data):
        super().save_overload(sig, data)
        _announce_end()


class _NoCache:
    """Stands in where the cache folder can not be written: compile, tell, keep nothing."""

    cache_path = None

    def __init__(self, py_func):
        self._py_func = py_func

    def load_overload(self, sig, target_context):
        _announce(self._py_func.__name__, sig)

    def save_overload(self, sig, data):
        _announce_end()

    def enable(self):
        pass

    def disable(self):
        pass

    def flush(self):
        pass


_waiting = {"since": 0.0}


def _announce(name: str, sig: Any) -> None:
    """Tell a person at a terminal, or who asked through KIC_VERBOSE, what the wait is for."""
    if os.environ.get("KIC_VERBOSE", "1" if sys.stderr.isatty() else "0") == "0":
        return
    scalar = "complex" if "complex" in str(sig) else "real"
    _waiting["since"] = time.perf_counter()
    sys.stderr.write(f"kic: compiling the {scalar} '{name}' kernel for this machine, once … ")
    sys.stderr.flush()


def _announce_end() -> None:
    if _waiting["since"]:
        sys.stderr.write(f"{time.perf_counter() - _waiting['since']:.1f} s\n")
        _waiting["since"] = 0.0


def entry(function: Any) -> Any:
    """Compile a kernel for whatever scalar arrives, without the GIL, cached by source."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    try:
        dispatcher._cache = _Cache(function)
    except (OSError, RuntimeError):
        dispatcher._cache = _NoCache(function)
    return dispatcher
