"""Imports of optional packages; the error has the command that installs a missing package."""

from __future__ import annotations

import importlib
import os
from typing import Any

from kic.errors import InputError, MissingExtraError, short_repr


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional package that an extra of kic installs.

    Raise `MissingExtraError` if it is not installed; the message begins with `purpose`, such as "Drawings
    require Matplotlib". Raise `InputError` if the environment prevents the import of Matplotlib.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise  # an installed package with a broken import
        remedy = f"pip install -e '.[{extra}]' in the checkout; once published, pip install 'kic[{extra}]'"
        raise MissingExtraError(f"{purpose}: {remedy}.", extra=extra) from None
    except ValueError as error:
        backend = os.environ.get("MPLBACKEND")
        if not (module.startswith("matplotlib") and backend):
            raise
        message = (
            f"MPLBACKEND must name a backend of Matplotlib, got {short_repr(backend)}. Correct or unset it."
        )
        raise InputError(message, key="MPLBACKEND", got=backend) from error
