"""One family of errors; each says the rule, what came and the remedy, and carries its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class KicError(Exception):
    """Base of everything that kic raises on purpose.

    Parameters
    ----------
    message : str
        The rule, what came, and the remedy.
    **numbers
        What the message says, as attributes, for programs.
    """

    def __init__(self, message: str, **numbers: Any) -> None:
        super().__init__(message)
        self.message = message
        self.numbers = numbers
        for name, value in numbers.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message


class ModelError(KicError, ValueError):
    """A mechanism that can not be, or whose description contradicts itself."""


class ModelFileError(ModelError):
    """A model file that can not be read; carries `path` and, where there is one, `key`."""


class UnknownNameError(KicError, LookupError):
    """A name that the mechanism does not have; carries `name` and `candidates`."""


class InputError(KicError, ValueError):
    """An argument of the wrong shape, kind or content."""


class PostureError(InputError):
    """Members of a batch that have no posture.

    Carries `failed` (indices of the members), `reasons`, and `configuration`, the batch with the
    failed members masked.
    """


class InertiaError(KicError, ValueError):
    """Dynamics asked of bodies whose inertia is missing or can not be; carries `bodies`."""


class SingularError(KicError, ArithmeticError):
    """A system that has no answer at this posture; carries what was singular and its condition."""


class LoopError(KicError, ValueError):
    """A question about a mechanism with loops that only open chains can answer."""


def unknown(kind: str, name: str, owner: str, candidates: Iterable[str]) -> UnknownNameError:
    """Make the error for an unknown name: what there is, and what was probably meant."""
    there = tuple(candidates)
    message = f"No {kind} '{name}' in '{owner}'."
    close = get_close_matches(name, there, n=1)
    if close:
        message += f" Did you mean '{close[0]}'?"
    if there:
        shown = there if len(there) <= 24 else (*there[:22], "…", there[-1])
        message += f" There are: {', '.join(shown)}."
    return UnknownNameError(message, name=name, candidates=there)
