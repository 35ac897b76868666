"""Names and files of the shipped models."""

from __future__ import annotations

import os
from pathlib import Path

from kic.errors import UnknownNameError, invalid, short_repr, unknown

# files that are read by path even without a directory
SUFFIXES = (".toml", ".urdf", ".sdf", ".xml", ".mjcf")


def models_directory() -> Path:
    """Return the directory of the shipped models, in the installed package or next to it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "models"
    return installed if installed.is_dir() else package.parent / "models"


def model_names() -> tuple[str, ...]:
    """Return the sorted names of the shipped models.

    Examples
    --------
    >>> "puma560" in kic.model_names()
    True
    """
    return tuple(sorted(path.stem for path in models_directory().glob("*.toml")))


def find(model: str | os.PathLike[str]) -> Path:
    """Return the path of a shipped model, or the given path."""
    if not isinstance(model, str | os.PathLike) or not isinstance(text := os.fspath(model), str):
        raise invalid("model", "must be the name of a shipped model or a path", model)
    if isinstance(model, str) and not text.lower().endswith(SUFFIXES) and not any(c in text for c in "/\\"):
        if text not in model_names():
            error = unknown("shipped model", text, "kic", model_names())
            if os.path.isfile(f"{text}.toml"):
                message = f"No shipped model {short_repr(text)}, but there is a file. Give '{text}.toml'."
                raise UnknownNameError(message, **error.numbers)
            if os.path.isfile(text):
                return Path(text)  # reading it states its kind
            raise error
        return models_directory() / f"{text}.toml"
    return Path(text)
