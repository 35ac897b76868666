"""Compilation of kernels by Numba, cache of the machine code, and progress messages.

The functions that mark kernels are described in `kic.kernels.jit`, which imports this module when a kernel
has to be compiled.
"""

from __future__ import annotations

import gc
import glob
import hashlib
import os
import pickle
import sys
import threading
import time
import warnings
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from llvmlite.binding import add_symbol
from numba.core import cgutils, types
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.datamodel.models import OpaqueModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_builtin
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import overload, typeof_impl
from numba.misc.appdirs import AppDirs

from kic.kernels.library import source_key
from kic.kernels.second_process import SecondProcess

__all__ = [
    "cache_directory",
    "compiled_by",
    "entry",
    "extension",
    "helper",
    "inlined",
    "overloaded",
    "part",
    "reordered",
]

# Kernels do not allocate: their scratch is an argument, and no helper returns an array. Reference counting of
# arrays (_nrt) is off, because it would cost as much as the arithmetic; a kernel that allocates does not
# compile. Contracted multiply-adds are the only deviation from IEEE arithmetic.
_OPTIONS: dict[str, Any] = {
    "_nrt": False,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
    # Numba passes options that are not set on from a caller to the functions that it calls
    "forceinline": False,
}

# stack of the thread that compiles; some systems give threads less than LLVM needs (bytes)
STACK_SIZE = 2**26
# bytes of a SHA-256 digest
DIGEST_SIZE = 32


class UnloadedLibrary(JITCodeLibrary):
    """Code of a function that is not translated to machine code of this process."""

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


class _HelperLibrary(UnloadedLibrary):
    """Code of a helper, which is optimized and translated only within the kernels that use it.

    Numba does both for every function at every level of calls, although only entries are called from outside.
    That takes longer than the kernels themselves.
    """

    def _optimize_final_module(self) -> None:
        pass


class _HelperCompiler(Compiler):
    """Numba's compiler with libraries for helpers."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class _KernelLibrary(JITCodeLibrary):
    """Code of a kernel or of one of its parts, which is linked to the parts that it calls."""

    parts: tuple[str, ...] = ()

    def _finalize_final_module(self) -> None:
        self.parts = called_parts(self._final_module)
        _link(self.parts)
        super()._finalize_final_module()


class KernelCompiler(Compiler):
    """Numba's compiler with libraries for kernels."""

    library_class: type[JITCodeLibrary] = _KernelLibrary

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = self.library_class(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()

    def compile_extra(self, function: Any) -> Any:
        # the compiler makes millions of objects; a search for garbage among them finds little
        enabled = gc.isenabled()
        gc.disable()
        _compiling.append(function.__name__)
        try:
            return super().compile_extra(function)
        finally:
            _compiling.pop()
            if enabled:
                gc.enable()


_HELPER_OPTIONS: Any = {**_OPTIONS, "no_cpython_wrapper": True, "pipeline_class": _HelperCompiler}


class _HelperType(types.Dispatcher):
    """Type of a function that kernels call, which is compiled once for all callers.

    Numba's `register_jitable` recompiles a function for each set of options of its callers.
    """

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return super().get_call_type(context, tuple(types.unliteral(a) for a in args), kws)


register_default(_HelperType)(OpaqueModel)
# Numba's type of a function has a weak reference only
_dispatchers: list[Any] = []


def compiled_by(function: Any, implementation: Any, **options: Any) -> None:
    """Compile `implementation` as the body of a function called in kernels."""
    dispatcher = numba.njit(**(_HELPER_OPTIONS | options))(implementation)
    _dispatchers.append(dispatcher)
    infer_global(function, _HelperType(dispatcher))


def helper(function: Any) -> Any:
    """Compile a function for calls in kernels."""
    compiled_by(function, function)
    return function


def inlined(function: Any) -> Any:
    """Compile a small function, or one called in hot loops, where each call would copy array structures."""
    compiled_by(function, function, forceinline=True)
    return function


def reordered(function: Any) -> Any:
    """Compile a function whose sums may have any order, so that they are vectorized.

    For bounds, whose last digits do not matter.
    """
    compiled_by(function, function, fastmath={"contract", "reassoc"})
    return function


def overloaded(function: Any, choose: Any) -> None:
    """Compile calls of a function by the implementation that `choose` returns for types of arguments."""
    overload(function, jit_options=_HELPER_OPTIONS)(choose)


def extension(register: Any) -> None:
    """Call a function that extends the compiler."""
    register()


# parts that kernels of this process call, by their symbols in machine code: kernel and types of arguments
parts_by_symbol: dict[str, tuple[Any, Any]] = {}
_linked: set[str] = set()
# kernels in compilation: the last one is called by those before it
_compiling: list[str] = []
_second = SecondProcess()


def part(function: Any) -> Any:
    """Compile a long helper that returns nothing as a separate object, shared by all kernels."""
    kernel = entry(function, is_part=True)

    class _Call(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            args = tuple(types.unliteral(a) for a in args)
            symbol = _declare(kernel, args)
            if symbol not in _linked and not kernel._cache.has(args):
                _second.submit(symbol, function, args)
            return signature(types.none, *args)

    infer_global(function, types.Function(_Call))

    @lower_builtin(function, types.VarArg(types.Any))
    def _call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        convention = context.call_conv
        code = convention.get_function_type(types.none, sig.args)
        callee = cgutils.get_or_insert_function(builder.module, code, _declare(kernel, sig.args))
        status, result = convention.call_function(builder, callee, types.none, sig.args, args)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    function.kernel = kernel
    return function


def _declare(kernel: Any, args: Any) -> str:
    """Return the symbol of a part for arguments of the given types."""
    name, key = kernel.py_func.__name__, repr((kernel.py_func.__module__, args))
    symbol = f"kic_{name}_{hashlib.sha256(key.encode()).hexdigest()[:20]}"
    parts_by_symbol[symbol] = kernel, args
    return symbol


def called_parts(module: Any) -> tuple[str, ...]:
    """Return the symbols of the parts that a module of machine code calls."""
    return tuple(f.name for f in module.functions if f.is_declaration and f.name in parts_by_symbol)


def _link(symbols: tuple[str, ...]) -> None:
    """Make the machine code of parts available to the kernels that call them."""
    missing = [symbol for symbol in symbols if symbol not in _linked]
    for symbol in reversed(missing):  # the second process begins with the first
        kernel, args = parts_by_symbol[symbol]
        _second.finish(symbol)
        kernel.compile(args)
        compiled = kernel.overloads[args]
        add_symbol(symbol, compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))
        _linked.add(symbol)


def cache_directory() -> Path:
    """Return the directory of the compiled kernels of this source: `KIC_CACHE_DIR`, else the user's cache.

    Numba's own cache misses edited helpers.
    """
    root = os.environ.get("KIC_CACHE_DIR") or AppDirs("kic", False).user_cache_dir
    return Path(root) / f"{source_key()}-{numba.__version__}"


class KernelCacheWarning(RuntimeWarning):
    """The cache of compiled kernels is damaged or cannot be written; results are not affected."""


_warned: set[str] = set()


def _warn(problem: str, folder: Path, remedy: str) -> None:
    """Warn once per process about each kind of problem."""
    if problem not in _warned:
        _warned.add(problem)
        text = f"compiled kernels in {folder} {problem}. {remedy}"
        # no source line is relevant to the user
        warnings.warn_explicit(text, KernelCacheWarning, "kic", 0, "kic.kernels.compiler")


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
        key = repr((tuple(sig), codegen.magic_tuple(), sys.implementation.cache_tag))
        return cache_directory() / f"{self._stem}.{hashlib.sha256(key.encode()).hexdigest()[:20]}.nbc"

    def has(self, sig: Any) -> bool:
        """Return True if there is a file for a signature."""
        return self._file(sig, cpu_target.target_context.codegen()).exists()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        file = self._file(sig, target_context.codegen())
        try:
            content = file.read_bytes()
            data = memoryview(content)[DIGEST_SIZE:]
            if hashlib.sha256(data).digest() != content[:DIGEST_SIZE]:
                raise ValueError("checksum")
            parts, reduced = pickle.loads(data)
            kernels = [(getattr(import_module(module), name).kernel, args) for module, name, args in parts]
            _link(tuple(_declare(kernel, args) for kernel, args in kernels))
            return CompileResult._rebuild(target_context, *reduced)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            _warn(f"cannot be read ({error.strerror})", file.parent, "They are compiled again.")
        except Exception:  # a damaged file may raise any error while it is unpickled or linked
            _warn("are damaged", file.parent, "They are compiled again.")
        _announce(self._name, sig)
        _second.start(cache_directory())
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        _announce_end(self._name)
        file = self._file(sig, data.codegen)
        parts = [parts_by_symbol[symbol] for symbol in data.library.parts]
        names = [(kernel.py_func.__module__, kernel.py_func.__name__, args) for kernel, args in parts]
        payload = dumps((names, data._reduce()))
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
            if os.name == "nt" and file.exists():  # another process reads the file, which is the same
                return
            remedy = "Each process recompiles them. Set KIC_CACHE_DIR to a writable directory."
            _warn(f"cannot be written ({error.strerror})", file.parent, remedy)

    def flush(self) -> None:
        for file in cache_directory().glob(f"{glob.escape(self._stem)}.*.nbc"):
            file.unlink(missing_ok=True)


# the kernel that is compiled, and since when
_waiting: dict[str, Any] = {"name": "", "since": 0.0}


def _announce(name: str, sig: Any) -> None:
    """Print the reason for the wait at a terminal, or if KIC_VERBOSE is set."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if os.environ.get("KIC_VERBOSE", "1" if terminal else "0") == "0":
        return
    if _compiling:  # a kernel or a part that is called by the announced one
        return
    if _waiting["name"]:
        _write("\n")  # an earlier compilation was interrupted
    scalar = "complex" if "complex" in str(sig) else "real"
    _waiting.update(name=name, since=time.perf_counter())
    _write(f"kic: compiling the {scalar} '{name}' kernel for this machine, once … ")


def _write(text: str) -> None:
    """Write to stderr if possible; a message must not stop the computation."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _announce_end(name: str) -> None:
    if _waiting["name"] == name:
        _write(f"{time.perf_counter() - _waiting['since']:.1f} s\n")
        _waiting["name"] = ""


def _compile_interruptibly(compile_kernel: Any, sig: Any) -> Any:
    """Compile on another thread, since LLVM would keep interrupts from the main thread for many seconds.

    After an interrupt the thread goes on until it has finished or the process ends.
    """
    done: list[Any] = []

    def work() -> None:
        try:
            done.append((compile_kernel(sig), None))
        except BaseException as error:  # raised again by the main thread
            done.append((None, error))

    if threading.current_thread() is not threading.main_thread():
        return compile_kernel(sig)
    before = threading.stack_size()
    try:
        threading.stack_size(STACK_SIZE)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
    except (RuntimeError, ValueError):  # no such thread can be started
        return compile_kernel(sig)
    finally:
        threading.stack_size(before)
    try:
        while thread.is_alive():
            thread.join(0.2)  # a wait without limit cannot be interrupted on Windows
    except BaseException:
        _second.stop()
        raise
    found, error = done[0]
    if error is not None:
        raise error
    return found


def entry(function: Any, is_part: bool = False) -> Any:
    """Compile a kernel for any scalar type, without the GIL, cached by source."""
    options = {**_OPTIONS, "no_cpython_wrapper": is_part, "pipeline_class": KernelCompiler}
    dispatcher = numba.njit(**options)(function)
    dispatcher._cache = _Cache(function)
    dispatcher.compile = partial(_compile_interruptibly, dispatcher.compile)
    return dispatcher


@cache
def dispatcher(function: Any) -> Any:
    """Return the kernel that compiles a function marked as an entry of the library."""
    return entry(function)


def compile_calls_of(kind: type) -> None:
    """Compile calls of entries of the library, objects of this type, inside other kernels."""
    typeof_impl.register(kind)(lambda kernel, _: types.Dispatcher(dispatcher(kernel.py_func)))
