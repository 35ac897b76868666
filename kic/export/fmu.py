"""Forward dynamics as an FMU: the C code of an export behind the interface of FMI 3.0."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from kic.errors import MissingExtraError, invalid
from kic.export.c_source import c_source, identifier
from kic.export.derivatives import with_derivatives
from kic.mechanism.configuration import model_of
from kic.numerics.arguments import flag, integer
from kic.numerics.files import atomic_write, file_name

if TYPE_CHECKING:
    from kic.export.questions import Export

# largest change of a coordinate in one closure of the loops: rad, or shares of the mechanism's length
_REACH = 0.1
# arguments of the function of forward dynamics in `fmi3.c`
_ARGUMENTS = "q, qd, effort, parameters, near, qdd, state, residual, radius, branch, guard"
# arguments of the function of derivatives
_DERIVATIVES = "state, qd, effort, q, parameters, qdd, qdd_d_q, qdd_d_qd, qdd_d_effort, guard"
_COMPILER = "C compiler"
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "i686": "x86", "i386": "x86"}
_SYSTEMS = {"Linux": ("linux", ".so"), "Darwin": ("darwin", ".dylib"), "Windows": ("windows", ".dll")}


@dataclass(frozen=True)
class FMU:
    """An exported mechanism for tools that import FMI 3.0: model exchange and co-simulation.

    Attributes
    ----------
    name : str
        Model identifier, the name of the function in C.
    description : str
        Text of `modelDescription.xml`.
    sources : dict of str to str
        Texts of the source files and of `buildDescription.xml` by their names.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> m.export.forward_dynamics().to_fmu()
    FMU four_bar_forward_dynamics: 5 source files
    """

    name: str
    description: str
    sources: dict[str, str]

    def save(self, path: str | os.PathLike[str], *, binary: bool = True) -> Path:
        """Write the FMU: sources, and a binary for this machine.

        Parameters
        ----------
        path : str or PathLike
            The file, which ends in `.fmu`.
        binary : bool
            True to compile a binary with the C compiler `CC` of the environment, or cc, gcc or clang. False
            for sources alone, which some importers compile.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        FileError
            If the file cannot be written.
        InputError
            If the name does not end in `.fmu`.
        MissingExtraError
            If there is no C compiler, or it fails.
        """
        file = Path(file_name(path))
        if file.suffix != ".fmu":
            raise invalid("path", "must end in '.fmu'", str(path), "Name a file such as 'arm.fmu'.")
        content = {f"sources/{key}": text.encode() for key, text in self.sources.items()}
        content["modelDescription.xml"] = self.description.encode()
        if flag("binary", binary):
            system, ending = _SYSTEMS.get(platform.system(), ("linux", ".so"))
            machine = platform.machine().lower()
            folder = f"binaries/{_MACHINES.get(machine, machine)}-{system}"
            content[f"{folder}/{self.name}{ending}"] = self._compiled(ending)
        with atomic_write(file) as stream, ZipFile(stream, "w", ZIP_DEFLATED) as archive:
            for key in sorted(content):
                archive.writestr(ZipInfo(key), content[key], ZIP_DEFLATED)  # the same bytes at any time
        return file

    def _compiled(self, ending: str) -> bytes:
        """Compile the sources, and return the shared library."""
        found = (
            shlex.split(os.environ.get("CC", ""))
            or [path for path in map(shutil.which, ("cc", "gcc", "clang")) if path][:1]
        )
        remedy = "Install one or set CC, or give binary=False (--no-binary) for an FMU with sources alone."
        if not found:
            raise MissingExtraError(
                f"The binary of '{self.name}' requires a C compiler, and none was found. {remedy}",
                extra=_COMPILER,
            )
        with TemporaryDirectory() as folder:
            for key, text in self.sources.items():
                Path(folder, key).write_text(text, encoding="utf-8")
            target = str(Path(folder, self.name + ending))
            sources = [str(Path(folder, key)) for key in self.sources if key.endswith(".c")]
            command = [*found, "-std=c99", "-O2", "-shared", "-fPIC", *sources, "-o", target, "-lm"]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True)
            except (OSError, subprocess.CalledProcessError) as error:
                reason = str(getattr(error, "stderr", "") or error).strip().partition("\n")[0]
                raise MissingExtraError(
                    f"'{found[0]}' cannot compile: {reason}. {remedy}", extra=_COMPILER
                ) from None
            return Path(target).read_bytes()

    def __repr__(self) -> str:
        return f"FMU {self.name}: {len(self.sources)} source files"


def fmu(export: Export, derivatives: int = 0) -> FMU:
    """Return the FMU of forward dynamics with closed loops, and with its first derivatives if requested."""
    from kic import __version__
    from kic.export.fmu_description import model_description, text_of, variables

    code, own = c_source(export), variables(export)[0]
    texts, header = (
        {f"{code.name}.c": code.source, f"{code.name}.h": code.header},
        _header(export, code.name, own),
    )
    exact = integer("derivatives", derivatives, 0, 1) > 0
    if exact:
        initial = export.inputs[-1].default
        assert export.answer is not None  # for the type checker
        assert export.step is not None
        assert initial is not None
        q = [float(v["start"]) for v in own if "initial" in v][: len(export.coordinates)]
        near = {"state": initial, "q": np.array(q)}
        answer = with_derivatives(export.answer, export.step, near, 1)
        slopes = replace(
            export, name=f"{export.name}_derivatives", answer=answer, step=None, certificate=None
        )
        more = c_source(slopes)
        texts |= {f"{more.name}.c": more.source, f"{more.name}.h": more.header}
        header += _macro("DERIVATIVES", _DERIVATIVES, slopes, more.name)
    texts["fmi3.c"] = files("kic.export").joinpath("fmi3.c").read_text(encoding="utf-8")
    token = sha256("".join([header, *texts.values()]).encode()).hexdigest()
    texts["model.h"] = f'{header}#define TOKEN "{token}"\n'
    build = Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = SubElement(build, "BuildConfiguration", modelIdentifier=code.name)
    sources = SubElement(configuration, "SourceFileSet", language="C99")
    for name in texts:
        if name.endswith(".c"):
            SubElement(sources, "SourceFile", name=name)
    texts["buildDescription.xml"] = text_of(build)
    return FMU(code.name, model_description(export, code.name, token, __version__, exact), texts)


def _header(export: Export, name: str, own: list[dict[str, Any]]) -> str:
    """Return the sizes and start values that `fmi3.c` needs, from the variables of the model."""
    near = export.inputs[-1]
    sizes = model_of(export.mechanism).transfer_for(export.coordinates).row_sizes
    counts = {"DOF": len(export.coordinates), "STATES": near.size}
    counts["PARAMETERS"] = sum(v["variability"] == "tunable" for v in own)
    arrays = {"START": [v.get("start", 0.0) for v in own], "NEAR": near.default, "REACH": _REACH * sizes}
    lines = [
        *(f"#define {key} {count}" for key, count in counts.items()),
        *(
            f"static const double {key}[] = {{{', '.join(repr(float(x)) for x in a)}}};"
            for key, a in arrays.items()
        ),
    ]
    return "\n".join([*lines, _macro("FORWARD", _ARGUMENTS, export, name)])


def _macro(macro: str, arguments: str, export: Export, name: str) -> str:
    """Return the definition of a macro that passes to a function only the arguments that it takes."""
    given = ", ".join(identifier(a.name) for a in (*export.inputs, *export.outputs))
    return f'#include "{name}.h"\n#define {macro}({arguments}) {name}({given})\n'
