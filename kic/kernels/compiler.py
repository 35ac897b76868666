"""Compilation of kernels by Numba, cache of the machine code, and progress messages.

The functions that mark kernels are described in `kic.kernels.jit`, which imports this module when a kernel
has to be compiled.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import sys
import threading
import time
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.datamodel.models import OpaqueModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_builtin
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.serialize import dumps
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import overload

from kic.kernels import library
from kic.kernels.library import Compiled, cache_folder, kernel_name, source_key, warn
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

# Kernels do not allocate: their scratch is an argument, and helpers return only views of arguments. Reference
# counting of arrays (_nrt) is off, because it would cost as much as the arithmetic; a kernel that allocates
# fails to compile. Contracted multiply-adds are the only deviation from IEEE arithmetic.
_OPTIONS: dict[str, Any] = {
    "_nrt": False,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "no_cfunc_wrapper": True,
    # Numba applies unset options of a caller to the functions that it calls
    "forceinline": False,
}

# stack of the thread that compiles; some systems give threads less than LLVM needs (bytes)
STACK_SIZE = 2**26


class _UnloadedLibrary(JITCodeLibrary):
    """Code of a function that is not translated to machine code in this process."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Code generator, of which Numba uses only `set_env` after a compilation."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Ignore the environment of a function, because no machine code reads it."""


class _HelperLibrary(_UnloadedLibrary):
    """Code of a helper that is optimized and translated only within the kernels that use it.

    Numba would do both for every function at every level of calls, although only entries are called from
    outside. This would take longer than compiling the kernels.
    """

    def _optimize_final_module(self) -> None:
        pass


class _HelperCompiler(Compiler):
    """Compiler of Numba that uses `_HelperLibrary`."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _HelperLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class _KernelLibrary(_UnloadedLibrary):
    """Code of a kernel, translated to an object that runs without Numba and calls other kernels by symbol.

    The same object is used in a library of kernels. Its functions are private, because helpers of the same
    name may be optimized differently in other kernels. Numba's wrapper for calls from Python is translated
    separately.
    """

    def __init__(self, state: Any) -> None:
        super().__init__(state.targetctx.codegen(), state.func_id.func_qualname)
        self._state: Any = state
        # Numba's wrapper, first as a module, then as a library
        self._wrapper: Any = None
        self._callable: Any = None
        self.symbol = symbol_of(state.func_id.func, state.args)

    def add_ir_module(self, ir_module: Any) -> None:
        if ir_module.name == "wrapper":
            self._wrapper = ir_module
        else:
            super().add_ir_module(ir_module)

    def _finalize_final_module(self) -> None:
        super()._finalize_final_module()
        module, state, wrapper = self._final_module, self._state, self._wrapper
        calls = tuple(f.name for f in module.functions if f.is_declaration and f.name in _callees)
        _link(calls)
        own = next(f for f in module.functions if f.linkage == llvm.Linkage.external and not f.is_declaration)
        name = own.name
        for value in (*module.functions, *module.global_variables):
            if not value.is_declaration:
                value.linkage = "internal"
        own.name, own.linkage = self.symbol, "external"
        row = "", "", ""
        if wrapper is not None:
            row = kernel_name(state.func_id.func), "".join(map(code, state.args)), str(state.return_type)[0]
            caller = _caller(state, module, self.symbol)
            module.link_in(llvm.parse_assembly(str(caller)))
        self.compiled = Compiled(self.symbol, *row, machine(), calls, _target()[0].emit_object(module))
        _define(self.compiled)
        if wrapper is not None:
            self._callable = JITCodeLibrary(self._codegen, self._name)
            self._callable.enable_object_caching()
            self._callable.add_ir_module(wrapper)
            self._final_module = self._callable._final_module
            self._final_module.get_function(name).name = self.symbol
            self._callable.finalize()
        self._state = self._wrapper = None

    def get_pointer_to_function(self, name: str) -> int:
        super().get_pointer_to_function(name)
        return 0 if self._callable is None else self._callable.get_pointer_to_function(name)

    @property
    def codegen(self) -> Any:
        return self if self._callable is None else self._codegen

    def serialize_using_object_code(self) -> Any:
        return self._callable.serialize_using_object_code()


def _caller(state: Any, module: Any, symbol: str) -> Any:
    """Return a module with a function that reads the arguments of a kernel from words, and calls the kernel.

    The words are described in `library.c`.
    """
    code_type = state.targetctx.call_conv.get_function_type(state.return_type, state.args)
    word, made = ir.IntType(64), ir.Module(f"{symbol}_words")
    made.triple, made.data_layout = module.triple, module.data_layout
    kernel = ir.Function(made, code_type, symbol)
    caller = ir.Function(made, ir.FunctionType(ir.IntType(32), [word.as_pointer()] * 2), f"{symbol}_words")
    builder = ir.IRBuilder(caller.append_basic_block())
    place = builder.alloca(code_type.args[0].pointee)
    failure = builder.alloca(code_type.args[1].pointee)
    builder.store(ir.Constant(place.type.pointee, None), place)
    given = [place, failure]
    for k, kind in enumerate(code_type.args[2:]):
        value = builder.load(builder.gep(caller.args[0], [word(k)]))
        if isinstance(kind, ir.PointerType):
            value = builder.inttoptr(value, kind)
        elif isinstance(kind, ir.DoubleType):
            value = builder.bitcast(value, kind)
        elif kind.width < 64:
            value = builder.trunc(value, kind)
        given.append(value)
    status = builder.call(kernel, given)
    found = builder.load(place)
    if isinstance(found.type, ir.IntType):
        wide = found if found.type.width == 64 else builder.zext(found, word)
        builder.store(wide, caller.args[1])
    builder.ret(status)
    return made


def code(kind: Any) -> str:
    """Return the two-character code of a Numba type; see `library.c`."""
    if not isinstance(kind, types.Array):
        return f"{library.SCALARS.get(str(kind), '?')} "
    plain = kind.layout == "C" and kind.mutable and kind.aligned
    return f"{library.ARRAYS.get(str(kind.dtype), '?') if plain else '?'}{kind.ndim}"


@cache
def _target() -> tuple[Any, Any]:
    """Return LLVM's translator to objects for this machine, and the engine that loads them."""
    codegen = cpu_target.target_context.codegen()
    target, windows = llvm.Target.from_triple(llvm.get_process_triple()), os.name == "nt"
    options = {
        "cpu": codegen._get_host_cpu_name(),
        "features": codegen._tm_features,
        "opt": 3,
    }
    # objects can be linked to a shared library; on Windows they have Numba's options
    options["jit"] = windows
    options["reloc"], options["codemodel"] = ("static", "jitdefault") if windows else ("pic", "default")
    empty = llvm.parse_assembly(str(codegen._create_empty_module("kernels")))
    engine = llvm.create_mcjit_compiler(
        empty, target.create_target_machine(**options), use_lmm=None if windows else True
    )
    return target.create_target_machine(**options), engine


_defined: set[str] = set()


def _define(compiled: Compiled) -> None:
    """Load the object of a kernel, after the objects of the kernels that it calls."""
    if compiled.symbol in _defined:
        return
    for symbol in compiled.calls:
        if symbol not in _defined:
            _define(_read(symbol)[0])
    engine = _target()[1]
    engine.add_object_file(llvm.ObjectFileRef.from_data(compiled.object))
    engine.finalize_object()
    llvm.add_symbol(compiled.symbol, engine.get_function_address(compiled.symbol))
    _defined.add(compiled.symbol)


def machine() -> str:
    """Return text that identifies the processor of the compiled kernels and the version of Python."""
    return repr((cpu_target.target_context.codegen().magic_tuple(), sys.implementation.cache_tag))


def symbol_of(function: Any, args: Any) -> str:
    """Return the symbol of a kernel for given types of arguments, on this machine and version of Python."""
    key = repr((function.__module__, function.__code__.co_firstlineno, tuple(args), machine()))
    return f"kic_{function.__name__}_{hashlib.sha256(key.encode()).hexdigest()[:20]}"


class KernelCompiler(Compiler):
    """Compiler of Numba that uses `_KernelLibrary`."""

    def define_pipelines(self) -> Any:
        self.state.library = _KernelLibrary(self.state)
        return super().define_pipelines()

    def compile_extra(self, function: Any) -> Any:
        # garbage collection among the compiler's millions of objects finds little
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
    """Numba type of a function that is compiled once for all kernels that call it.

    Numba's `register_jitable` recompiles a function for each set of options of its callers.
    """

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        return super().get_call_type(context, tuple(types.unliteral(a) for a in args), kws)


register_default(_HelperType)(OpaqueModel)
# strong references, because Numba's type of a function has only a weak one
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
    """Compile a function inline, for small functions and hot loops: each call would copy array structures."""
    compiled_by(function, function, forceinline=True)
    return function


def reordered(function: Any) -> Any:
    """Compile a function whose sums may be reordered for vectorization, such as a bound."""
    compiled_by(function, function, fastmath={"contract", "reassoc"})
    return function


def overloaded(function: Any, choose: Any) -> None:
    """Compile calls of a function with the implementation that `choose` returns for their argument types."""
    overload(function, jit_options=_HELPER_OPTIONS)(choose)


def extension(register: Any) -> None:
    """Call a function that extends the compiler."""
    register()


# kernels that other kernels of this process call, by symbol: kernel and types of arguments
_callees: dict[str, tuple[Any, Any]] = {}
# stack of the kernels in compilation: each is called by the previous one
_compiling: list[str] = []
_second = SecondProcess()


def part(function: Any) -> Any:
    """Compile a long helper that returns nothing as a separate object, shared by all kernels."""
    kernel = dispatcher(function, is_part=True)

    def result(args: Any) -> Any:
        symbol = _declare(kernel, args)
        if symbol not in _defined and not kernel._cache.has(args):
            _second.submit(symbol, function, args)
        return types.none

    _call_by_symbol(function, kernel, result)
    function.kernel = kernel
    return function


def _call_by_symbol(name: Any, kernel: Any, result: Any) -> None:
    """Compile calls of a global name in kernels as calls of a separate kernel.

    `result` returns the type of the result from the types of the arguments.
    """

    class _Call(AbstractTemplate):
        key = name

        def generic(self, args: Any, kws: Any) -> Any:
            args = tuple(types.unliteral(a) for a in args)
            return signature(result(args), *args)

    kind = types.Function(_Call)
    if isinstance(name, _Kernel):
        name._numba_type_ = kind
    else:
        infer_global(name, kind)

    @lower_builtin(name, types.VarArg(types.Any))
    def _call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        convention = context.call_conv
        code = convention.get_function_type(sig.return_type, sig.args)
        callee = cgutils.get_or_insert_function(builder.module, code, _declare(kernel, sig.args))
        status, result = convention.call_function(builder, callee, sig.return_type, sig.args, args)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result


def _declare(kernel: Any, args: Any) -> str:
    """Register a kernel that another kernel calls, and return its symbol."""
    symbol = symbol_of(kernel.py_func, args)
    _callees[symbol] = kernel, args
    return symbol


def _link(symbols: tuple[str, ...]) -> None:
    """Load, or compile, the machine code of called kernels."""
    missing = [symbol for symbol in symbols if symbol not in _defined]
    for symbol in reversed(missing):  # the second process begins with the first
        kernel, args = _callees[symbol]
        _second.finish(symbol)
        try:
            _define(_read(symbol)[0])
        except Exception:  # there is no file, or it is damaged
            kernel.compile(args)


def cache_directory() -> Path | None:
    """Return the cache directory of kernels compiled from these sources; None if there is no safe cache.

    A hash of the sources is part of its name, because Numba's cache does not detect edited helpers.
    """
    return cache_folder(f"{source_key()}-{numba.__version__}")


def _read(symbol: str) -> tuple[Compiled, bytes]:
    """Return a compiled kernel, and Numba's data of its wrapper; raise FileNotFoundError without a cache."""
    folder = cache_directory()
    if folder is None:
        raise FileNotFoundError
    return library.read(folder / f"{symbol}.nbc")


class _Cache(NullCache):
    """Compiled signatures of one kernel, each in a file with a checksum; see `kic.kernels.library.packed`."""

    def __init__(self, function: Any) -> None:
        self._function, self._name = function, function.__name__

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def has(self, sig: Any) -> bool:
        """Return True if there is a file for a signature."""
        folder = cache_directory()
        return folder is not None and (folder / f"{symbol_of(self._function, sig)}.nbc").exists()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        used.add(self._name)
        folder = cache_directory()
        if folder is not None:
            try:
                compiled, reduced = library.read(folder / f"{symbol_of(self._function, sig)}.nbc")
                _define(compiled)
                return CompileResult._rebuild(target_context, *pickle.loads(reduced))
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError as error:
                warn(f"cannot be read ({error.strerror})", folder, "They are compiled again.")
            except Exception:  # a damaged file may raise any error while it is unpickled or linked
                warn("are damaged", folder, "They are compiled again.")
        _announce(self._name, sig)
        _second.start(folder)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        _announce_end(self._name)
        compiled = data.library.compiled
        content = library.packed(compiled, dumps(data._reduce()) if compiled.name else b"")
        folder = cache_directory()
        if folder is None:
            return
        file = folder / f"{compiled.symbol}.nbc"
        try:
            library.write(file, content)
        except OSError as error:
            if os.name == "nt" and file.exists():  # another process reads the file, which is the same
                return
            remedy = "Each process recompiles them. Set KIC_CACHE_DIR to a writable directory."
            warn(f"cannot be written ({error.strerror})", file.parent, remedy)

    def flush(self) -> None:
        folder = cache_directory()
        for file in () if folder is None else folder.glob(f"kic_{self._name}_*.nbc"):
            file.unlink(missing_ok=True)


# names of the kernels that Numba has compiled or loaded in this process since they were last linked
used: set[str] = set()
# the kernel in compilation, and its start time
_waiting: dict[str, Any] = {"name": "", "since": 0.0}


def _announce(name: str, sig: Any) -> None:
    """Print that a kernel is being compiled, at a terminal or if KIC_VERBOSE is set."""
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
    """Compile on another thread, because LLVM would block interrupts of the main thread for many seconds.

    After an interrupt, this thread continues until it has finished or the process ends.
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


class _Kernel(CPUDispatcher):
    """Kernel that other kernels call by its symbol."""

    # Numba's type of the global
    _numba_type_: Any = None


def _new_kernel(function: Any, is_part: bool = False) -> Any:
    """Return the kernel that compiles a function for any scalar type without the GIL, cached by source."""
    options = {**_OPTIONS, "nopython": True, "no_cpython_wrapper": is_part}
    made: Any = _Kernel(function, targetoptions=options, pipeline_class=KernelCompiler)
    made._cache = _Cache(function)
    made.compile = partial(_compile_interruptibly, made.compile)
    return made


dispatcher = cache(_new_kernel)


def entry(function: Any) -> Any:
    """Return the kernel that compiles a function."""
    kernel = _new_kernel(function)
    callable_entry(kernel, kernel)
    return kernel


def callable_entry(name: Any, kernel: Any = None) -> None:
    """Compile calls of an entry, compiled here or from the library, inside other kernels."""
    kernel = dispatcher(name.py_func) if kernel is None else kernel

    def result(args: Any) -> Any:
        kernel.compile(args)
        return kernel.overloads[args].signature.return_type

    _call_by_symbol(name, kernel, result)
