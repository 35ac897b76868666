"""How a kernel is compiled, where the machine code is kept, and who is told about the wait.

`helper` marks what runs inside kernels; it stays an ordinary Python function for symbolic scalars. `small`
marks those that are too small for a call of their own.
`entry` marks what is called from outside with arrays; its ``.py_func`` is the ordinary function.
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
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
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

# bytes of a SHA-256
_DIGEST = 32

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


class KernelCacheWarning(RuntimeWarning):
    """The cache of compiled kernels is damaged or cannot be written; results are not affected."""


_warned: set[str] = set()


def _warn(problem: str, folder: Path, remedy: str) -> None:
    """Warn once per process about each kind of problem."""
    if problem not in _warned:
        _warned.add(problem)
        text = f"compiled kernels in {folder} {problem}. {remedy}"
        # no line of source helps here, so none is named
        warnings.warn_explicit(text, KernelCacheWarning, "kic", 0, "kic.kernels.compiled")


class _Cache(NullCache):
    """Compiled signatures of one kernel, each in a file that begins with the SHA-256 of the rest.

    Numba's own cache trusts its files: a flipped bit in machine code ends the process, an empty index or a
    full disk stops the compilation. Here a file that fails the check counts as missing.
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
            data = memoryview(content)[_DIGEST:]
            if hashlib.sha256(data).digest() != content[:_DIGEST]:
                raise ValueError("checksum")
            return CompileResult._rebuild(target_context, *pickle.loads(data))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            _warn(f"cannot be read ({error.strerror})", file.parent, "They are compiled again.")
        except Exception:  # of unpickling or linking: anything may come from a damaged file
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
    """Tell a person at a terminal, or who asked through KIC_VERBOSE, what the wait is for."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if os.environ.get("KIC_VERBOSE", "1" if terminal else "0") == "0":
        return
    if _waiting["since"]:  # of a compilation that was interrupted
        _tell("\n")
    scalar = "complex" if "complex" in str(sig) else "real"
    _waiting["since"] = time.perf_counter()
    _tell(f"kic: compiling the {scalar} '{name}' kernel for this machine, once … ")


def _tell(text: str) -> None:
    """Write to stderr, if it is there and takes it: a message must not stop the work."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _announce_end() -> None:
    if _waiting["since"]:
        _tell(f"{time.perf_counter() - _waiting['since']:.1f} s\n")
        _waiting["since"] = 0.0


def entry(function: Any) -> Any:
    """Compile a kernel for whatever scalar arrives, without the GIL, cached by source."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    dispatcher._cache = _Cache(function)
    return dispatcher
