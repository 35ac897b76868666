"""Build the library of kernels: machine code of all kernels for portable processors.

Usage: python kic/kernel_library/build.py [--record] [KERNEL...] [--processors NAME...] [--output FOLDER]

1. `recorded` finds the kernels and the types of arguments with which the package calls them. It runs the
   calls of ``kic warm-up``, and some with complex numbers, with kernels interpreted by Python. The option
   ``--record`` writes the types to `signatures.json`; the tests fail if one is missing.
2. `compile_kernels` compiles each kernel with Numba to one object, in one process for each processor. Only
   the kernel's own wrapper is visible outside the object; parts are objects of their own.
3. `link` compiles `library.c`, which calls kernels from Python, and links all objects to one extension
   module.

It needs Numba, a C compiler and the headers of Python. The files in the output folder, by default
`kic/kernels`, are the extension module and its description; see `kic.kernels.library`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from kic.kernels import library  # noqa: E402

PLACE = ROOT / "kic" / "kernels"
SIGNATURES = HERE / "signatures.json"
# processors for which kernels are compiled, the best first, as LLVM names them
DEFAULT = ["x86-64-v3", "x86-64-v2"] if platform.machine().lower() in ("x86_64", "amd64") else ["generic"]
# codes of types in `library.c`
ARRAYS = {"float64": "d", "int64": "l", "complex128": "D"}
SCALARS = {bool: "b", int: "i", float: "f", type(None): "n"}

Signatures = dict[str, list[str]]


class Recorder:
    """A kernel that is interpreted, and records the types of arguments with which it is called."""

    found: ClassVar[dict[tuple[str, str], None]] = {}
    functions: ClassVar[dict[str, Any]] = {}
    inside = False

    def __init__(self, name: str, function: Any) -> None:
        self.name, self.py_func, self.precompiled = name, function, self
        self.functions[name] = function

    def __call__(self, *arguments: Any) -> Any:
        """Record the types, unless another kernel calls this one, and run the function."""
        if Recorder.inside:
            return self.py_func(*arguments)
        self.found[self.name, "".join(map(code, arguments))] = None
        Recorder.inside = True
        try:
            return self.py_func(*arguments)
        finally:
            Recorder.inside = False


class Recording(library.Library):
    """Take the place of the library, and record the calls of all kernels."""

    def __init__(self) -> None:
        self.kernel_type = Recorder

    def kernel(self, function: Any, fallback: Any) -> Recorder:
        """Return a kernel that records its calls."""
        return Recorder(library.kernel_name(function), function)


def code(given: Any) -> str:
    """Return the code of an argument's type; see `library.c`."""
    if isinstance(given, np.ndarray):
        assert given.flags.c_contiguous
        assert given.flags.writeable
        return f"{ARRAYS[given.dtype.name]}{given.ndim}"
    return f"{SCALARS[type(given.item() if isinstance(given, np.generic) else given)]} "


def recorded() -> Signatures:
    """Return the types of arguments with which the package calls each kernel, real numbers first.

    Sensitivities and some rates are computed from complex numbers.
    """
    library.load = Recording
    from kic.analysis.sensitivity import with_complex_step
    from kic.cli.warm_up import MODELS, call_differentiable_kernels, call_kernels
    from kic.io.toml import load

    os.environ["KIC_THREADS"] = "1"
    call_kernels(MODELS)
    for name, row in MODELS.items():
        m = load(name)
        stepped = with_complex_step(m, {f"{m.bodies[0].name}.com.x": 1.0}, 1e-30)
        call_differentiable_kernels(stepped.at(), row)
        m.at().resolve_redundancy(row, [0.1], [0.0], [0.0], criterion="minimum kinetic energy")
    signatures: Signatures = {name: [] for name in sorted(Recorder.functions)}
    for name, types in sorted(Recorder.found, key=lambda found: "D" in found[1]):
        signatures[name].append(types)
    return signatures


def numba_types(signature: str) -> tuple[Any, ...]:
    """Return Numba's types of arguments."""
    from numba import types

    names = {c: getattr(types, name) for name, c in ARRAYS.items()}
    scalars = {"b": types.boolean, "i": types.int64, "f": types.float64, "n": types.none}

    def of(kind: str, n_axes: str) -> Any:
        return scalars[kind] if kind in scalars else types.Array(names[kind], int(n_axes), "C")

    return tuple(map(of, signature[::2], signature[1::2]))


def compile_kernels(processor: str, folder: Path, signatures: Signatures) -> None:
    """Compile all kernels, in a process whose Numba was given the processor.

    Objects and the kernels' table are written to a folder.
    """
    library.load = Recording
    import llvmlite.binding as llvm
    from llvmlite import ir
    from numba.core.caching import NullCache

    from kic.kernels import jit

    for name in signatures:
        __import__(f"kic.kernels.{name.partition('.')[0]}")
    compiler = jit.compiler()

    class ObjectLibrary(compiler.UnloadedLibrary):
        """Code of a kernel, which is translated to an object."""

        def _finalize_final_module(self) -> None:
            super()._finalize_final_module()
            self.parts = compiler.called_parts(self._final_module)

    class ObjectCompiler(compiler.KernelCompiler):
        library_class = ObjectLibrary

    class NoCache(NullCache):
        def has(self, _: Any) -> bool:
            return False

    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = os.environ["NUMBA_CPU_FEATURES"]
    machine = target.create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic", codemodel="default"
    )
    suffix = processor.replace("-", "_")

    def to_objects(kernel: Any) -> Any:
        kernel._cache = NoCache()
        kernel._compiler.pipeline_class = ObjectCompiler
        kernel.targetoptions["no_cpython_wrapper"] = True
        return kernel

    def compiled(kernel: Any, types: tuple[Any, ...]) -> Any:
        kernel.compile(types)
        return kernel.overloads[types]

    def write(result: Any, name: str, *, is_part: bool) -> None:
        module = llvm.parse_assembly(str(result.library._final_module))
        for part in result.library.parts:
            module.get_function(part).name = f"{part}_{suffix}"
        for value in (*module.functions, *module.global_variables):
            if not value.is_declaration:
                value.linkage = "internal"
        own = module.get_function(result.fndesc.llvm_func_name)
        own.name, own.linkage = name if is_part else f"{name}_own", "external"
        own.visibility = "hidden"
        if not is_part:
            module.link_in(llvm.parse_assembly(str(wrapper(ir, result, name))))
            module.get_function(f"{name}_own").linkage = "internal"
            module.get_function(name).visibility = "hidden"
        module.verify()
        (folder / f"{name}.o").write_bytes(machine.emit_object(module))

    lines, entries, parts, words, arguments = [], [], {}, 0, 0
    kernels = {name: to_objects(compiler.dispatcher(Recorder.functions[name])) for name in signatures}
    for number, (name, wanted) in enumerate(signatures.items()):
        kernel, rows = kernels[name], []
        for k, types in enumerate(wanted):
            result = compiled(kernel, numba_types(types))
            symbol = f"kic_{name.replace('.', '_')}_{k}_{suffix}"
            write(result, symbol, is_part=False)
            parts |= dict.fromkeys(result.library.parts)
            words = max(words, sum(1 if n == " " else 5 + 2 * int(n) for n in types[1::2]))
            arguments = max(arguments, len(types) // 2)
            returned = {"int64": "i", "bool": "b", "none": "n"}[str(result.signature.return_type)]
            lines.append(f"extern int {symbol}(const int64_t *, int64_t *);")
            rows.append(f"""{{"{types}", '{returned}', {symbol}}}""")
        listed = ", ".join([*rows, "{NULL, 0, NULL}"])
        lines.append(f"static const Signature signatures_{number}_{suffix}[] = {{{listed}}};")
        entries.append(f"""{{"{name}", signatures_{number}_{suffix}}}""")
    done: set[str] = set()
    while missing := [part for part in parts if part not in done]:
        for part in missing:
            kernel, types = compiler.parts_by_symbol[part]
            result = compiled(to_objects(kernel), types)
            write(result, f"{part}_{suffix}", is_part=True)
            parts |= dict.fromkeys(result.library.parts)
            done.add(part)
    listed = ", ".join([*entries, "{NULL, NULL}"])
    lines.append(f"static const Entry entries_{suffix}[] = {{{listed}}};")
    # as many words as the largest kernel has, the same for each processor
    lines += [
        "#ifndef WORDS_MAX",
        f"#define WORDS_MAX {words}",
        f"#define ARGUMENTS_MAX {arguments}",
        "#endif",
    ]
    (folder / f"{processor}.h").write_text("\n".join(lines) + "\n", encoding="utf-8")


def wrapper(ir: Any, result: Any, name: str) -> Any:
    """Return a module with the function that reads a kernel's arguments from words and calls it."""
    context = result.target_context
    argtypes, returned = result.signature.args, result.signature.return_type
    code_type = context.call_conv.get_function_type(returned, argtypes)
    word, module = ir.IntType(64), ir.Module(name)
    final = result.library._final_module
    module.triple, module.data_layout = final.triple, final.data_layout
    kernel = ir.Function(module, code_type, f"{name}_own")
    caller = ir.Function(module, ir.FunctionType(ir.IntType(32), [word.as_pointer()] * 2), name)
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
    return module


def link(folder: Path, output: Path, processors: list[str], key: str) -> Path:
    """Link objects and `library.c` to an extension module, and describe it with the key of the sources."""
    suffixes = [processor.replace("-", "_") for processor in processors]
    table = [f'#include "{processor}.h"' for processor in processors]
    rows = ", ".join(f'{{"{p}", entries_{s}}}' for p, s in zip(processors, suffixes, strict=True))
    table.append(f"static const Table tables[] = {{{rows}, {{NULL, NULL}}}};")
    (folder / "table.h").write_text("\n".join(table) + "\n", encoding="utf-8")
    file = output / f"{library.MODULE}.abi3.so"
    compiler = shlex.split(os.environ.get("CC") or "cc")
    flags = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared", "-s"]
    include = [f"-I{folder}", f"-I{sysconfig.get_path('include')}"]
    objects = sorted(map(str, folder.glob("*.o")))
    sources = ["-O2", "-fPIC", "-fvisibility=hidden", *include, str(HERE / "library.c"), *objects, "-lm"]
    subprocess.run([*compiler, *flags, *sources, "-o", str(file)], check=True)
    description = {
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "sources": key,
        "processors": processors,
    }
    (output / library.DESCRIPTION).write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    return file


def build(output: Path, processors: list[str], kernels: list[str]) -> Path:
    """Build the library into a folder, and return the path of the extension module."""
    (output / library.DESCRIPTION).unlink(missing_ok=True)
    key = library.source_key()
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for processor in processors:
            command = [sys.executable, __file__, *kernels, "--compile", processor, "--output", folder]
            environment = os.environ | {
                "NUMBA_CPU_NAME": processor,
                "NUMBA_CPU_FEATURES": "",
                "KIC_VERBOSE": "0",
            }
            running.append(subprocess.Popen(command, env=environment))
        if any([process.wait() for process in running]):
            raise RuntimeError("Kernels cannot be compiled.")
        return link(Path(folder), output, processors, key)


def main() -> None:
    """Build the library, or run one of its steps in a process of its own."""
    parser = argparse.ArgumentParser(description="Build the library of kernels.")
    parser.add_argument(
        "kernels", nargs="*", help="names of kernels, such as motion.tree_motion; all by default"
    )
    parser.add_argument("--output", type=Path, default=PLACE, help="folder of the library")
    parser.add_argument("--processors", nargs="+", default=DEFAULT, help="processors, the best first")
    parser.add_argument("--record", action="store_true", help="record the types of arguments of all kernels")
    parser.add_argument("--compile", metavar="PROCESSOR", help="write objects for a processor")
    given = parser.parse_args()
    if given.record:
        SIGNATURES.write_text(json.dumps(recorded(), indent=1) + "\n", encoding="utf-8")
    elif given.compile:
        signatures: Signatures = json.loads(SIGNATURES.read_text(encoding="utf-8"))
        chosen = {name: signatures[name] for name in given.kernels or signatures}
        compile_kernels(given.compile, given.output, chosen)
    else:
        print(build(given.output, given.processors, given.kernels))


if __name__ == "__main__":
    main()
