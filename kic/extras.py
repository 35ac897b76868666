"""Packages that kic can do without: what is missing is named with the line that installs it."""

from __future__ import annotations

import importlib
from typing import Any

from kic.errors import MissingExtraError


def needed(module: str, extra: str, purpose: str) -> Any:
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
        It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module.split(".")[0]:
            raise  # the package is there and broken: hiding that would help nobody
        raise MissingExtraError(f"{purpose}: pip install 'kic[{extra}]'.", extra=extra) from None
