"""The shipped models: their names and files, for those that list, complete and load them."""

from __future__ import annotations

import os
from pathlib import Path

from kic.errors import InputError, UnknownNameError, short_repr, unknown


def models_directory() -> Path:
    """Folder of the shipped models: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "models"
    return installed if installed.is_dir() else package.parent / "models"


def model_names() -> tuple[str, ...]:
    """Names of the shipped models, sorted.

    Examples
    --------
    >>> import kic
    >>> "puma560" in kic.model_names()
    True
    """
    return tuple(sorted(path.stem for path in models_directory().glob("*.toml")))


def find(model: str | os.PathLike[str]) -> Path:
    """File of a shipped name or of a path.

    Raises
    ------
    UnknownNameError
        For a name that is not shipped.
    """
    if not isinstance(model, str | os.PathLike) or not isinstance(text := os.fspath(model), str):
        raise InputError(
            f"Expected the name of a shipped model or the path of a file, got {short_repr(model)}."
        )
    if isinstance(model, str) and not text.endswith(".toml") and not any(c in text for c in "/\\"):
        if text not in model_names():
            error = unknown("shipped model", text, "kic", model_names())
            if os.path.isfile(f"{text}.toml"):
                said = f"No shipped model {short_repr(text)}, but a file of that name lies here: give '{text}.toml'."
                raise UnknownNameError(said, **error.numbers)
            raise error
        return models_directory() / f"{text}.toml"
    return Path(text)
