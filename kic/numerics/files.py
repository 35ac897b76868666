"""Atomic writes: a file is written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from kic.errors import FileError, short_repr

_REMEDIES = {
    errno.EEXIST: "Name a directory.",
    errno.ENOENT: "Create the directory first.",
    errno.ENOTDIR: "Name a file in a directory.",
    errno.EISDIR: "Name a file in that directory.",
    errno.ENOSPC: "Free some space, or choose another place.",
    errno.EFBIG: "Raise the limit of file sizes, or choose another place.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
}
# the process's own streams: under these names even a regular file may be in use by others
_STREAMS = ("/dev/std", "/dev/fd/", "/proc/")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, which is flushed to the disk and renamed. If
    anything fails, an existing file at `path` is unchanged. An existing file keeps its permissions, a
    symbolic link is followed, and hard links to the old content are cut. Devices, pipes and the process's own
    streams are written directly, as is an existing file in a directory that permits no other file.

    Raise `FileError` with `path` and `errno` if the file cannot be written, and `BrokenPipeError` if `path`
    is a pipe whose reader has gone.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from kic.numerics.files import atomic_write
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with atomic_write(path) as file:
    ...     _ = file.write(b"all of it")
    >>> path.read_bytes()
    b'all of it'
    """
    target, temporary = "", ""
    try:
        target = file_name(path)
        file, temporary = _opened(target)
        with file:
            yield file
            if temporary:
                file.flush()
                os.fsync(file.fileno())
        if temporary:
            os.replace(temporary, os.path.realpath(target))
            temporary = ""
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error, FileError) or error.filename not in (None, target, temporary):
            raise  # of another file that the block uses
        raise write_error(path, error) from None
    finally:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)


def write_error(path: str | os.PathLike[str], error: OSError) -> FileError:
    """Return the error for a file that cannot be written."""
    remedy = _REMEDIES.get(error.errno or 0, "Choose a place where you may write.")
    reason = error.strerror or str(error)
    return FileError(
        f"{path}: cannot be written: {reason}. {remedy}", path=Path(path), errno=error.errno, strerror=reason
    )


def file_name(path: str | os.PathLike[str], key: str = "path", kind: str = "file") -> str:
    """Return `path` as text; raise `FileError` if it cannot name a file or directory."""
    try:
        name = os.fspath(path)
        os.fsencode(name)
    except (TypeError, UnicodeEncodeError):
        name = None
    if not isinstance(name, str) or not name or "\0" in name:
        example = "a.toml" if kind == "file" else "generated"
        message = f"`{key}` must name a {kind}, got {short_repr(path)}. Give a name such as '{example}'."
        raise FileError(message, path=path, key=key)
    return name


def _opened(target: str) -> tuple[BinaryIO, str]:
    """Return an open file, and its name if it is temporary, else ''."""
    try:
        known = os.stat(target)
    except FileNotFoundError:
        known = None
    stream = os.name == "posix" and os.path.abspath(target).startswith(_STREAMS)
    if stream or (known and not stat.S_ISREG(known.st_mode)):
        return open(target, "wb"), ""
    if known and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    folder = os.path.dirname(os.path.realpath(target))
    # a fixed-length name, because one derived from a long `target` may exceed the system's limit
    temporary = os.path.join(folder, f".kic-{uuid4().hex[:16]}.tmp")
    try:
        file = open(temporary, "xb")  # noqa: SIM115
    except PermissionError:
        if known is None:
            raise
        return open(target, "wb"), ""
    except OSError as error:
        error.filename = target
        raise
    if known:
        if hasattr(os, "chown"):
            with suppress(OSError):
                os.chown(temporary, known.st_uid, known.st_gid)
        with suppress(OSError):
            os.chmod(temporary, stat.S_IMODE(known.st_mode))
    return file, temporary
