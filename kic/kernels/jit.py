"""Compilation of kernels, cache of the machine code, and progress messages.

`helper` marks functions called inside kernels; they remain ordinary Python functions for symbolic scalars.
`inlined` marks helpers that are always inlined, `reordered` those whose sums may have any order. `entry`
marks kernels called from outside with arrays; its ``.py_func`` is the ordinary function.
"""

from __future__ import annotations

import glob
import hashlib
import os
import pickle
import sys
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.serialize import dumps
from numba.extending import register_jitable
from numba.misc.appdirs import AppDirs

__all__ = ["HELPER_OPTIONS", "cache_directory", "entry", "helper", "inlined", "reordered"]

# Kernels do not allocate: their scratch is an argument, and no helper returns an array. Reference counting of
# arrays (_nrt) is off, because it would cost as much as the arithmetic; a kernel that allocates does not
# compile. Contracted multiply-adds are the only deviation from IEEE arithmetic.
_OPTIONS: dict[str, Any] = {
    "_nrt": False,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
}

# bytes of a SHA-256 digest
DIGEST_SIZE = 32


class _HelperLibrary(JITCodeLibrary):
    """Code of a helper, which is optimized and translated only within the kernels that use it.

    Numba does both for every function at every level of calls, although only entries are called from outside.
    That takes longer than the kernels themselves.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Code generator, from which Numba uses only `set_env` after a compilation."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Ignore the environment of a function, because there is no machine code that reads it."""


class _HelperCompiler(Compiler):
    """Numba's compiler with libraries for helpers."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


HELPER_OPTIONS: Any = {
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "pipeline_class": _HelperCompiler,
}

helper = register_jitable(**HELPER_OPTIONS)
# sums in any order, which are vectorized: for bounds, whose last digits do not matter
reordered = register_jitable(fastmath={"contract", "reassoc"}, **HELPER_OPTIONS)
# small functions, and those in hot loops where a call copies many array structures
inlined = register_jitable(forceinline=True, **HELPER_OPTIONS)


@lru_cache(maxsize=1)
def source_key() -> str:
    """Return a hash of all kernel sources and Numba's version; Numba's own cache misses edited helpers."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def cache_directory() -> Path:
    """Return the folder of the compiled kernels of this source: `KIC_CACHE_DIR`, else the user's cache."""
    root = os.environ.get("KIC_CACHE_DIR") or AppDirs("kic", False).user_cache_dir
    return Path(root) / source_key()


class KernelCacheWarning(RuntimeWarning):
    """The cache of compiled kernels is damaged or cannot be written; results are not affected."""


_warned: set[str] = set()


def _warn(problem: str, folder: Path, remedy: str) -> None:
    """Warn once per process about each kind of problem."""
    if problem not in _warned:
        _warned.add(problem)
        text = f"compiled kernels in {folder} {problem}. {remedy}"
        # no source line is relevant to the user
        warnings.warn_explicit(text, KernelCacheWarning, "kic", 0, "kic.kernels.jit")


class _Cache(NullCache):
    """Compiled signatures of one kernel, each in a file that begins with the SHA-256 of the rest.

    Numba's own cache does not check its files: a flipped bit in machine code ends the process, an empty index
    or a full disk stops the compilation. Here a file that fails the check counts as missing.
    """

    def __init__(self, function: Any) -> None:
        code = function.__code__
        self._name = function.__name__
        self._stem = f"{Path(code.co_filename).stem}.{self._name}-{code.co_firstlineno}"

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def _file(self, sig: Any, codegen: Any) -> Path:
        """Return the file of a signature for this machine and version of Python."""
        key = repr((sig, codegen.magic_tuple(), sys.implementation.cache_tag))
        return cache_directory() / f"{self._stem}.{hashlib.sha256(key.encode()).hexdigest()[:20]}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        file = self._file(sig, target_context.codegen())
        try:
            content = file.read_bytes()
            data = memoryview(content)[DIGEST_SIZE:]
            if hashlib.sha256(data).digest() != content[:DIGEST_SIZE]:
                raise ValueError("checksum")
            return CompileResult._rebuild(target_context, *pickle.loads(data))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            _warn(f"cannot be read ({error.strerror})", file.parent, "They are compiled again.")
        except Exception:  # a damaged file may raise any error while it is unpickled or linked
            _warn("are damaged", file.parent, "They are compiled again.")
        _announce(self._name, sig)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        _announce_end()
        file = self._file(sig, data.codegen)
        payload = dumps(data._reduce())
        temporary = file.with_name(f"{uuid4().hex[:16]}.tmp")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.write_bytes(hashlib.sha256(payload).digest() + payload)
                os.replace(temporary, file)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
        except OSError as error:
            remedy = "Every process compiles them anew; set KIC_CACHE_DIR to a folder that can be written."
            _warn(f"cannot be written ({error.strerror})", file.parent, remedy)

    def flush(self) -> None:
        for file in cache_directory().glob(f"{glob.escape(self._stem)}.*.nbc"):
            file.unlink(missing_ok=True)


_waiting = {"since": 0.0}


def _announce(name: str, sig: Any) -> None:
    """Print the reason for the wait at a terminal, or if KIC_VERBOSE is set."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if os.environ.get("KIC_VERBOSE", "1" if terminal else "0") == "0":
        return
    if _waiting["since"]:  # an earlier compilation was interrupted
        _write("\n")
    scalar = "complex" if "complex" in str(sig) else "real"
    _waiting["since"] = time.perf_counter()
    _write(f"kic: compiling the {scalar} '{name}' kernel for this machine, once … ")


def _write(text: str) -> None:
    """Write to stderr if possible; a message must not stop the computation."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _announce_end() -> None:
    if _waiting["since"]:
        _write(f"{time.perf_counter() - _waiting['since']:.1f} s\n")
        _waiting["since"] = 0.0


def entry(function: Any) -> Any:
    """Compile a kernel for any scalar type, without the GIL, cached by source."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    dispatcher._cache = _Cache(function)
    return dispatcher
