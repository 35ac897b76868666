"""One family of errors; each says the rule, what came and the remedy, and carries its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from reprlib import Repr
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
    """A mechanism that can not be, or whose description contradicts itself.

    Carries `key`, the argument at fault, where one is.
    """


class ModelFileError(ModelError):
    """A model file that can not be read or written; carries `path` and, where there is one, `key`."""


class FileError(KicError, OSError):
    """A file that cannot be written; carries `path` and, from the system, `errno` and `strerror`."""

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        # OSError keeps its numbers outside of `__dict__`, so that pickling alone loses them
        state = state or {}
        super().__setstate__({**state, **state.get("numbers", {})})


class UnknownNameError(KicError, LookupError):
    """A name that the mechanism does not have; carries `name` and `candidates`."""


class MissingExtraError(KicError, ImportError):
    """A package that kic can do without is asked for and not installed; carries `extra`, which brings it."""


class InputError(KicError, ValueError):
    """An argument of the wrong shape, kind or content."""


class OutOfRangeError(InputError, IndexError):
    """An index beyond the last item; an IndexError, too, with which Python ends a loop over items."""


class ConfigurationError(InputError):
    """Members of a batch that have no posture.

    Carries `failed` (indices of the members), `reasons`, and `configuration`, the batch with the
    failed members masked.
    """


class InertiaError(KicError, ValueError):
    """Dynamics asked of bodies whose inertia is missing or can not be; carries `bodies`."""


class MemberError(KicError):
    """Something without an answer; where several were asked, `failed` has the indices of those without."""

    def place(self, members: Any, batch: tuple[int, ...]) -> None:
        """Turn members in `failed`, counted among those that were asked, into indices of the batch."""
        if "failed" not in self.numbers:
            return
        where: list[tuple[int, ...]] = []
        for k in self.numbers["failed"]:
            index: list[int] = []
            left = int(members[k])
            for size in reversed(batch):
                left, place = divmod(left, size)
                index.insert(0, place)
            where.append(tuple(index))
        self.numbers["failed"] = self.failed = where


class SingularError(MemberError, ArithmeticError):
    """A system that has no answer at this posture; carries what was singular and its condition.

    Where several postures were asked, `failed` has the indices of those without an answer.
    """


class LimitError(MemberError, ValueError):
    """A demand that limits leave no answer to.

    Carries `scale`, the share of the demand that they allow, `binding`, the names of those that stop it, and,
    where several demands were made, `failed`, the indices of those without an answer.
    """


@contextmanager
def batch_indices(members: Any, batch: tuple[int, ...]) -> Iterator[None]:
    """Errors from inside name their members by indices of the batch."""
    try:
        yield
    except MemberError as error:
        error.place(members, batch)
        raise


class SimulationError(KicError, RuntimeError):
    """A simulation that can not go on: carries `time` and `simulation`, the run up to the last good state."""


class LoopError(KicError, ValueError):
    """A question that a joint which closes a loop can not answer."""


def short_repr(value: Any) -> str:
    """What came, on one line and short enough for a message."""
    try:
        text = " ".join(_SHORT.repr(value).split())
    except Exception:  # the repr of a stranger
        text = f"a {type(value).__name__}"
    return text if len(text) <= 100 else text[:99] + "…"


_SHORT = Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 12
_SHORT.maxstring = _SHORT.maxlong = 60
_SHORT.maxother = 200


def unknown(kind: str, name: Any, owner: str, candidates: Iterable[str]) -> UnknownNameError:
    """Make the error for an unknown name: what there is, and what was probably meant."""
    there = tuple(candidates)
    label = short_repr(str(name) if isinstance(name, str) else name)
    message = f"No {kind} {label} in '{owner}'."
    # the comparison takes about 10 µs for each candidate, and more for long names
    comparable = isinstance(name, str) and len(name) <= 200 and len(there) <= 2000
    close = get_close_matches(name, there, n=1) if comparable else []
    if close:
        message += f" Did you mean '{close[0]}'?"
    few = there if len(there) <= 24 else (*there[:22], "…", there[-1])
    message += f" There are: {', '.join(few)}." if there else " There are none."
    return UnknownNameError(message, name=name, candidates=there)
