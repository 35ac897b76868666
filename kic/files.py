"""Write files as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import NamedTemporaryFile
from typing import BinaryIO, cast


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces `path` when the block ends without an error.

    Parameters
    ----------
    path : path
        File to write.

    Yields
    ------
    binary file
        Temporary file in the same folder.

    Raises
    ------
    OSError
        If it cannot be written; a file that is there stays as it was.
    """
    target = os.path.realpath(path)
    with NamedTemporaryFile(dir=os.path.dirname(target), prefix=".kic-", delete=False) as file:
        try:
            yield cast(BinaryIO, file)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(file.name, target)
        except BaseException:
            file.close()
            with suppress(OSError):
                os.unlink(file.name)
            raise
