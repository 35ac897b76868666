"""Traces as C99: one file and its header, without allocation, and a program that tests them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.errors import InputError
from kic.export.trace import BINARY, Argument, Trace
from kic.numerics.arguments import choice
from kic.numerics.files import atomic_write, file_name, write_error

if TYPE_CHECKING:
    from kic.export.questions import Export

# tolerance of the test program, of the size of each output; Newton steps add that of the residual
_TEST_RTOL = {"double": 1e-10, "float": 1e-3}
# operations other than signs between operands; f is the ending of functions of a type
_FORMS = {
    "min": "KIC_MIN({x}, {y})", "max": "KIC_MAX({x}, {y})", "atan2": "atan2{f}({x}, {y})",
    "cos": "cos{f}({x})", "sin": "sin{f}({x})", "sqrt": "sqrt{f}({x})", "abs": "fabs{f}({x})",
}  # fmt: skip
_ENDINGS = {"double": "", "float": "f", "V": "v"}
_WIDTH = 110
# largest number of operations in a C function
_PART_MAX = 3000
# words that must not name a function or argument: of C99, the included headers and the test program
_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while main k failed math stdio fpclassify isfinite isinf isnan isnormal signbit isgreater isgreaterequal
    isless islessequal islessgreater isunordered float_t double_t INFINITY NAN clearerr fclose feof ferror
    fflush fgetc fgetpos fgets fopen fprintf fputc fputs fread freopen fscanf fseek fsetpos ftell fwrite
    getc getchar gets perror printf putc putchar puts remove rename rewind scanf setbuf setvbuf snprintf
    sprintf sscanf stderr stdin stdout tmpfile tmpnam ungetc vfprintf vfscanf vprintf vscanf vsnprintf
    vsprintf vsscanf EOF FILE NULL BUFSIZ size_t fpos_t va_list
"""
# functions of <math.h>, which also exist with the endings f and l
_FUNCTIONS = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim
    floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint
    lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh
    sqrt tan tanh tgamma trunc
"""
_RESERVED = {
    *_WORDS.split(),
    *(f"{name}{ending}" for name in _FUNCTIONS.split() for ending in ("", "f", "l")),
}


@dataclass(frozen=True)
class CSource:
    """An exported function in C99: `NAME.h`, `NAME.c` and a test program `NAME_test.c`.

    Attributes
    ----------
    name : str
        Name of the function and of the files.
    header, source, test : str
        Text of the files.
    operations : int
        Number of arithmetic operations of one call.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> code = m.export.inverse_dynamics(close=True).to_c()
    >>> print(code.header.splitlines()[-5])
    void four_bar_inverse_dynamics(const double q[1], const double qd[1], const double qdd[1],
    """

    name: str
    header: str
    source: str
    test: str
    operations: int

    def save(self, directory: str | Path) -> list[Path]:
        """Write the three files into a directory, which is created if necessary.

        Parameters
        ----------
        directory : str or Path
            The directory.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        FileError
            If the directory cannot be made, or a file cannot be written.
        """
        folder, made = Path(file_name(directory, "directory", "directory")), []
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder, error) from None
        for ending, text in ((".h", self.header), (".c", self.source), ("_test.c", self.test)):
            made.append(folder / f"{self.name}{ending}")
            with atomic_write(made[-1]) as file:
                file.write(text.encode())
        return made

    def __repr__(self) -> str:
        return f"C source of {self.name}: {self.operations} operations, {len(self.source.splitlines())} lines"


def identifier(name: str) -> str:
    """Return a C identifier for a name of kic; reserved words get a prefix.

    Two underscores in a row are reserved by C++ and rejected by CasADi.
    """
    found = re.sub(r"[\W_]+", "_", name, flags=re.ASCII).strip("_")
    plain = re.match("[A-Za-z]", found) and found not in _RESERVED
    return found if plain else f"m_{found}".rstrip("_")


def c_source(export: Export, precision: str = "double") -> CSource:
    """Return the C code of an export in "double" or "float" precision."""
    real = choice("precision", precision, _TEST_RTOL)
    name, inputs, outputs = identifier(export.name), export.inputs, export.outputs
    names = [identifier(a.name) for a in (*inputs, *outputs)]
    name = f"m_{name}" if name in {*names, *(f"{a}_known" for a in names)} else name
    twice = [n for n in names if names.count(n) > 1]
    if twice:
        raise InputError(
            f"Two arguments of '{export.name}' are `{twice[0]}` in C. Rename one of the parts.", name=twice[0]
        )
    signature = _signature(name, inputs, outputs, real)
    about = [
        f"{export.name} of the mechanism '{export.mechanism.name}' in the coordinates",
        ", ".join(export.coordinates) + ".",
        "Generated by kic; angles in rad, other units as in the model. Arrays are in C order.",
        "",
    ]
    for kind, arguments in (("Inputs", inputs), ("Outputs", outputs)):
        about.append(f"{kind}:")
        for a in arguments:
            shape = "".join(f"[{n}]" for n in a.shape) or "scalar"
            labels = f"; {', '.join(a.labels)}" if a.labels else ""
            about.append(f"  {identifier(a.name)} {shape}: {a.about}{labels}")
    # break comment ends, comment starts and trigraphs, which compilers warn about
    lines = [re.sub(r"(?<=[*/?])(?=[*/?])", " ", line) for line in (*about, *_NOTES)]
    cut = [part for line in lines for part in wrap(line, _WIDTH - 4, subsequent_indent="    ") or [""]]
    comment, guard = "\n".join(f" * {line}".rstrip() for line in cut), f"KIC_{name.upper()}_H"
    header = f"/*\n{comment}\n */\n#ifndef {guard}\n#define {guard}\n\n{signature};\n\n#endif\n"
    traces = [t for t in (export.step, export.certificate, export.answer) if t is not None]
    closes = export.step is not None
    body = [
        function_text(t, f"{name}_{k}" if closes else name, real, closes, _PART_MAX)
        for k, t in enumerate(traces)
    ]
    body += [_driver(export, traces, name, signature, real)] if closes else []
    source = _START.format(name=name) + "\n".join(body)
    return CSource(name, header, source, _test(export, name, real), export.operations)


_NOTES = (
    "",
    "The guard is the smallest ratio of a divisor, such as a pivot, to its bound. Below one, results may",
    "have lost digits: export again near the configuration. Inputs and outputs may not overlap.",
)
_START = """\
#include <math.h>
#include "{name}.h"

#define KIC_MIN(a, b) ((b) < (a) ? (b) : (a))
#define KIC_MAX(a, b) ((b) > (a) ? (b) : (a))

"""


def _signature(name: str, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...], real: str) -> str:
    words = [f"const {real} {identifier(a.name)}[{max(a.size, 1)}]" for a in inputs]
    words += [f"{real} {identifier(a.name)}[{max(a.size, 1)}]" for a in outputs]
    text = ", ".join(word.replace(" ", "\0") for word in words)  # blanks within words are not cut
    return "\n".join(wrap(f"void\0{name}({text})", _WIDTH - 1, subsequent_indent="    ")).replace("\0", " ")


def _number(x: float, real: str) -> str:
    x = float(np.float32(x)) if real == "float" else float(x)
    if not np.isfinite(x):
        return f"({'-' if x < 0 else ''}({real}){'NAN' if np.isnan(x) else 'INFINITY'})"
    text = f"{x!r}{'f' if real == 'float' else ''}"
    if real == "V":
        return f"each({text})"
    return f"({text})" if text.startswith("-") else text


def function_text(trace: Trace, name: str, real: str, static: bool, part_max: int) -> str:
    """Return the C function of a trace, with one constant for each operation.

    Numbers are "double", "float" or vectors "V" of specialized.c. Lists longer than `part_max` are divided,
    because compile time grows faster than the length of a function. An array passes values to later parts.
    """
    suffix, count = _ENDINGS[real], 0
    owner: dict[int, int] = {}  # the part of each operation
    kept: dict[int, int] = {}  # place in the array
    parts: list[list[str]] = [[]]
    signature = f"{'static ' if static else ''}{_signature(name, trace.inputs, trace.outputs, real)}"

    def term(k: int, part: int) -> str:
        op, a, b = trace.nodes[k]
        if op == "input":
            return f"{identifier(trace.inputs[a].name)}[{b}]"
        if op == "const":
            return _number(a, real)
        if op == "neg":
            return f"(-{term(a, part)})"
        return f"v{k}" if owner[k] == part else f"kept[{kept.setdefault(k, len(kept))}]"

    for k, (op, a, b) in enumerate(trace.nodes):
        if op in ("input", "const", "neg"):
            continue
        part = owner[k] = count // part_max
        count += 1
        if part == len(parts):
            parts.append([])
        x, y = term(a, part), term(b, part) if op in BINARY else ""
        text = _FORMS.get(op, f"{{x}} {op} {{y}}").format(x=x, y=y, f=suffix)
        parts[part].append(f"    const {real} v{k} = {text};")
    for out in trace.outputs:
        for place, k in enumerate(out.entries):
            base = trace.nodes[k].a if trace.nodes[k].op == "neg" else k
            part = owner.get(base, len(parts) - 1)
            parts[part].append(f"    {identifier(out.name)}[{place}] = {term(k, part)};")
    for k, place in kept.items():
        parts[owner[k]].append(f"    kept[{place}] = v{k};")
    unused = [f"    (void){identifier(a.name)};" for a in (*trace.inputs, *trace.outputs)]
    bodies = ["{\n" + "\n".join([*unused, *lines]) + "\n}\n" for lines in parts]
    if len(parts) == 1:
        return f"{signature}\n{bodies[0]}"
    more = (*trace.outputs, Argument("kept", (len(kept),)))
    own = [f"static {_signature(f'{name}_part{k}', trace.inputs, more, real)}" for k in range(len(parts))]
    words = ", ".join(identifier(a.name) for a in (*trace.inputs, *more))
    calls = [f"    {name}_part{k}({words});" for k in range(len(parts))]
    storage = "PLACE " if real == "V" else ""
    whole = "\n".join(["{", f"    {storage}{real} kept[{len(kept)}];", *calls, "}", ""])
    return "\n".join(
        [*(f"{o}\n{body}" for o, body in zip(own, bodies, strict=True)), f"{signature}\n{whole}"]
    )


def _driver(export: Export, traces: list[Trace], name: str, signature: str, real: str) -> str:
    """Return the C function that closes the loops by Newton steps, and then computes the results."""
    size = export.inputs[-1].size

    def call(k: int, outputs: list[str]) -> str:
        inputs = ["own" if a.name == "state" else identifier(a.name) for a in traces[k].inputs]
        return f"{name}_{k}({', '.join([*inputs, *outputs])});"

    answer = ""
    if export.answer is not None:
        own = [identifier(a.name) for a in export.answer.outputs[:-1]]
        answer = f"    {call(2, [*own, 'least'])}\n    guard[0] = KIC_MIN(guard[0], least[0]);\n"
    return f"""\
{signature}
{{
    {real} own[{size}], moved[{size}], least[1];
    int k, i;
    for (i = 0; i < {size}; i++) own[i] = near[i];
    {call(1, ["residual", "branch", "guard"])}
    for (k = 0; k < {export.steps}; k++) {{
        {call(0, ["moved", "least"])}
        for (i = 0; i < {size}; i++) own[i] = moved[i];
    }}
    {call(1, ["residual", "radius", "guard"])}
{answer}    for (i = 0; i < {size}; i++) state[i] = own[i];
}}
"""


_COMPARE = """\
    for (k = 0; k < {count}; k++)
        if (!(fabs((double){name}[k] - (double){name}_known[k]) <= {allowed!r})
            && !(isnan({name}[k]) && isnan({name}_known[k]))) {{
            failed = 1;
            printf("{name}[%d] differs\\n", k);
        }}"""
_MAIN = """\
#include <math.h>
#include <stdio.h>
#include "{name}.h"

int main(void)
{{
{lines}
    printf(failed ? "failed\\n" : "passed\\n");
    return failed;
}}
"""


def _test(export: Export, name: str, real: str) -> str:
    """Return a program that compares the function with kic at the configuration of the export."""
    given = {a.name: np.full(a.shape, 0.25) if a.default is None else a.default for a in export.inputs}
    both = (*export.inputs, *export.outputs)
    with np.errstate(all="ignore"):
        found = export.run(np, {k: list(x) for k, x in given.items()})

    def array(own: str, size: int, numbers: Any) -> str:
        row = ", ".join(_number(float(x), real) for x in numbers) or "0"
        return f"    static {real} {own}[{max(size, 1)}] = {{{row}}};"

    known, compared = [], []
    for a, x in zip(export.outputs, found, strict=True):
        if a.size and a.name not in ("residual", "radius", "branch", "guard"):
            own, size = identifier(a.name), float(np.nanmax(np.abs(np.array(x, float)), initial=0.0)) or 1.0
            known.append(array(f"{own}_known", a.size, x))
            compared.append(_COMPARE.format(name=own, count=a.size, allowed=size * _TEST_RTOL[real]))
    arrays = [array(identifier(a.name), a.size, given.get(a.name, [0.0])) for a in both]
    words = ", ".join(identifier(a.name) for a in both)
    lines = [*arrays, *known, "    int k, failed = 0;", f"    {name}({words});", *compared]
    return _MAIN.format(name=name, lines="\n".join(lines))
