"""Packages that kic can do without: what is missing is named with the line that installs it."""

from __future__ import annotations

import importlib
import os
from typing import Any

from kic.errors import InputError, MissingExtraError, short_repr


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """A module of an extra.

    Parameters
    ----------
    module : str
        Its import name, such as ``"matplotlib.figure"``.
    extra : str
        The extra of kic that brings it.
    purpose : str
        What needs it, the start of a sentence, such as "Drawings need Matplotlib".

    Returns
    -------
    module
        Imported.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    InputError
        If the environment keeps Matplotlib from being imported.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise  # the package is there and broken: hiding that would help nobody
        raise MissingExtraError(f"{purpose}: pip install 'kic[{extra}]'.", extra=extra) from None
    except ValueError as error:
        backend = os.environ.get("MPLBACKEND")
        if not (module.startswith("matplotlib") and backend):
            raise
        raise InputError(
            f"MPLBACKEND must name a backend of Matplotlib, got {short_repr(backend)}. Correct or unset it."
        ) from error
