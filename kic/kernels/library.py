"""The library of kernels: machine code that is loaded without Numba.

The library is an extension module (`kic.kernels.linking`). A wheel contains one in the folder of this file,
built by ``python kic/kernels/library_build/build.py``. It holds each kernel for some processors; the best
that runs here is used. Otherwise, commands link the kernels that Numba has compiled for this machine to a
library in the user's cache directory, if there is a C compiler. A description file holds the hashes of the
library and of the kernels' sources. A library that is damaged or was built from other sources is not loaded:
a warning is issued, and Numba compiles the kernels. It also compiles kernels that the library lacks.

Machine code is executed, and the files of single kernels are unpickled. A digest does not prove their origin.
Therefore files of the cache are used only if no other user can change them (`exposed`).

`KIC_KERNELS` selects the machine code: ``jit`` for Numba, or the name of a processor, such as
``x86-64-v2``.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import stat
import sys
import warnings
from contextlib import suppress
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

__all__ = [
    "ARRAYS",
    "DESCRIPTION",
    "HERE",
    "MODULE",
    "SCALARS",
    "Compiled",
    "Library",
    "cache_folder",
    "cache_root",
    "described",
    "exposed",
    "imported",
    "kernel_name",
    "load",
    "machine_folder",
    "make_folder",
    "packed",
    "read",
    "source_key",
    "uses_cache",
    "warn",
    "write",
]

_FOLDER = Path(__file__).parent
# name of the extension module, and of its description file
MODULE = "_library"
DESCRIPTION = "_library.json"
# name of the processor for kernels that were compiled for this machine
HERE = "this machine"
# codes of types in `library.c`
ARRAYS = {"float64": "d", "int64": "l", "complex128": "D"}
SCALARS = {"bool": "b", "int64": "i", "float64": "f", "none": "n"}
# bytes of a SHA-256 digest
DIGEST_SIZE = 32
# bytes of the description of one processor, about 2000
PROCESSOR_SIZE_MAX = 8192


@cache
def source_key() -> str:
    """Return a hash of the sources of all kernels."""
    digest = hashlib.sha256()
    for path in sorted((*_FOLDER.glob("*.py"), *_FOLDER.glob("*.c"))):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def kernel_name(function: Any) -> str:
    """Return the name of a kernel, with the name of its module."""
    return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"


class Compiled(NamedTuple):
    """Machine code of a kernel for arguments of some types."""

    # name in the object
    symbol: str
    # name with that of the module, types of arguments and of the result (see `library.c`); empty for parts
    name: str
    types: str
    result: str
    # processor and version of Python for which it was compiled
    machine: str
    # symbols of the kernels that it calls
    calls: tuple[str, ...]
    object: bytes


def packed(compiled: Compiled, wrapper: bytes) -> bytes:
    """Return the content of a file: a SHA-256 digest of the rest, a kernel, and Numba's data of its wrapper.

    A file that fails the check counts as missing. Numba's cache does not check its files: a flipped bit in
    machine code ends the process, and an empty index or a full disk stops the compilation.
    """
    data = pickle.dumps((tuple(compiled), wrapper))
    return hashlib.sha256(data).digest() + data


def read(file: Path) -> tuple[Compiled, bytes]:
    """Return the kernel and wrapper data in a file; raise PermissionError if other users can change it."""
    if exposed(file):
        raise PermissionError(errno.EPERM, "others can change them", str(file))
    content = file.read_bytes()
    data = memoryview(content)[DIGEST_SIZE:]
    if hashlib.sha256(data).digest() != content[:DIGEST_SIZE]:
        raise ValueError("checksum")
    compiled, wrapper = pickle.loads(data)
    return Compiled(*compiled), wrapper


def write(file: Path, content: bytes) -> None:
    """Write a file atomically, such that only this user can change it."""
    temporary = file.with_name(f"{uuid4().hex[:16]}.tmp")
    make_folder(file.parent)
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as stream:
            stream.write(content)
        os.replace(temporary, file)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, writable only by this user for any umask."""
    for one in (*reversed(folder.parents), folder):
        one.mkdir(0o755, exist_ok=True)


def exposed(path: Path) -> str:
    """Return why other users could change the file at a path; '' if only this user and root can.

    Parent folders and targets of links are checked too. Others may write to a folder with the sticky bit,
    such as /tmp, where they cannot replace files. A group may write if it is the group of root, or has only
    this user. The owner of / is not root in some containers, and may also own the folders in /. Windows has
    no such modes; its user folders are private by default.
    """
    if not hasattr(os, "geteuid"):
        return ""
    places, seen = [path.absolute()], set[Path]()
    while places:
        place = places.pop()
        if place in seen:
            continue
        seen.add(place)
        places.append(place.parent)
        try:
            found = os.lstat(place)
            if stat.S_ISLNK(found.st_mode):
                places.append(place.parent / os.readlink(place))
        except OSError:  # there is no file, or none that can be read
            continue
        at_root = place.parent == place.parent.parent
        if found.st_uid not in (0, os.geteuid()) and not (at_root and found.st_uid == os.lstat("/").st_uid):
            return f"{place} belongs to another user"
        if not stat.S_ISLNK(found.st_mode) and _is_open(found.st_mode, found.st_gid):
            return f"{place} can be written by others"
    return ""


def _is_open(mode: int, group: int) -> bool:
    """Return True if users other than the owner can write to a file, or replace files of a folder."""
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        return False
    if not mode & stat.S_IWGRP or group == 0:
        return bool(mode & stat.S_IWOTH)
    try:
        import grp
        import pwd

        members, name = grp.getgrgid(group), pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):  # the group, or the user, has no name
        return True
    return bool(mode & stat.S_IWOTH) or members.gr_name != name or not set(members.gr_mem) <= {name}


_warned: set[str] = set()


def warn(problem: str, folder: Path, remedy: str) -> None:
    """Warn once per process about each kind of problem with the cache."""
    if problem not in _warned:
        from kic.errors import KernelCacheWarning  # the build reads this file without the package

        _warned.add(problem)
        text = f"compiled kernels in {folder} {problem}. {remedy}"
        # no source line is relevant to the user
        warnings.warn_explicit(text, KernelCacheWarning, "kic", 0, __name__)


_NO_CACHE = (
    "Each process compiles them. Set KIC_CACHE_DIR to the absolute path of a folder that you alone can write."
)


def cache_root() -> Path | None:
    """Return the folder of the cache, `KIC_CACHE_DIR` or the user's cache; None if it is not absolute."""
    given = os.environ.get("KIC_CACHE_DIR")
    root = Path(given) if given else _user_cache()
    if root.is_absolute():
        return root
    problem = (
        "are not stored: the path is not absolute" if given else "are not stored: there is no home directory"
    )
    warn(problem, root, _NO_CACHE)
    return None


def _user_cache() -> Path:
    """Return the folder of kic in the user's cache; it is relative if there is no home directory."""
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return Path(home, "Library", "Caches", "kic")
    variable, usual = ("LOCALAPPDATA", home) if os.name == "nt" else ("XDG_CACHE_HOME", f"{home}/.cache")
    chosen = os.environ.get(variable, "")
    folder = chosen if os.path.isabs(chosen) else usual  # by the XDG specification
    return Path(folder, *(("kic", "Cache") if os.name == "nt" else ("kic",)))


def cache_folder(name: str) -> Path | None:
    """Return a folder of the cache; None if users other than this one and root could change it."""
    root = cache_root()
    if root is None:
        return None
    if not (reason := exposed(root / name)):
        return root / name
    warn(f"are not used: {reason}", root, _NO_CACHE)
    return None


def machine_folder() -> Path | None:
    """Return the folder of the library of this machine's kernels; None without a cache or /proc/cpuinfo.

    Its name depends on the processor, because machines may share user folders.
    """
    try:
        with open("/proc/cpuinfo", "rb") as file:
            processor = file.read(PROCESSOR_SIZE_MAX).partition(b"\n\n")[0]
    except OSError:
        return None
    kinds = (b"vendor_id", b"model", b"flags", b"CPU", b"Features")
    lines = [line for line in processor.splitlines() if line.startswith(kinds)]
    chosen = [os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    key = repr((lines, chosen, sys.implementation.cache_tag, sys.abiflags))
    return cache_folder(f"{source_key()}-{hashlib.sha256(key.encode()).hexdigest()[:12]}")


class Library:
    """Kernels of one processor in the extension module."""

    def __init__(self, module: Any, processor: str) -> None:
        self.processor, self._make = processor, module.kernel

    def kernel(self, function: Any, fallback: Any) -> Any:
        """Return the kernel of a function; `fallback` is called for types that the library lacks."""
        return self._make(self.processor, kernel_name(function), function, fallback)


def described(folder: Path = _FOLDER, key: str = "") -> tuple[dict[str, Any], str]:
    """Return the description of the library, {} without one, and the reason if it is unusable, else ''.

    `key` identifies the sources, by default those of the kernels. In the cache, no other user may be able to
    change the library.
    """
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if description["sources"] != (key or source_key()):
            return description, "was built from other sources"
        content = (folder / description["file"]).read_bytes()
        if hashlib.sha256(content).hexdigest() != description["sha256"]:
            return description, "is damaged"
        files = () if folder == _FOLDER else (DESCRIPTION, description["file"])
        reason = next(filter(None, (exposed(folder / file) for file in files)), "")
        return description, f"is not loaded: {reason}" if reason else ""
    except (FileNotFoundError, NotADirectoryError) as error:  # without a description, there is no library
        return {}, "" if str(error.filename).endswith(DESCRIPTION) else "is missing"
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}, "has a damaged description"


def uses_cache() -> bool:
    """Return True if the library in the user's cache applies: the package has none, and none was chosen."""
    return not os.environ.get("KIC_KERNELS", "").strip() and described(_FOLDER) == ({}, "")


def load() -> Library | None:
    """Return the library, or None if Numba must compile the kernels."""
    chosen = os.environ.get("KIC_KERNELS", "").strip()
    if chosen == "jit":
        return None
    folder, (description, problem) = _FOLDER, described(_FOLDER)
    machine = machine_folder() if uses_cache() else None
    if machine is not None:
        folder, (description, problem) = machine, described(machine)
    if not description and not problem:
        return None
    try:
        module = None if problem else imported(folder / description["file"])
    except ImportError as error:
        module, problem = None, f"cannot be loaded ({error})"
    runnable = module.processors() if module is not None else []
    if not problem and not (chosen in runnable if chosen else runnable):
        problem = f"has no kernels for {chosen or 'this processor'}"
    if problem:
        from kic.errors import KernelLibraryWarning  # the build reads this file without the package

        text = f"the library of kernels in {folder} {problem}. Numba compiles them."
        # no source line is relevant to the user
        warnings.warn_explicit(text, KernelLibraryWarning, "kic", 0, __name__)
        return None
    return Library(module, chosen or runnable[0])


def imported(file: Path) -> Any:
    """Load a file as the extension module, and return it."""
    # Python keeps one module for each name, and changes it when another file is loaded
    name = f"kic.kernels.{file.stem.partition('.')[0]}.{MODULE}"
    spec = spec_from_file_location(name, file, loader=ExtensionFileLoader(name, str(file)))
    assert spec is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
