"""Exceptions. Messages state the rule, the value received and a remedy; numbers are attributes."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from reprlib import Repr
from typing import Any


class KicError(Exception):
    """Base class of all exceptions of kic.

    Parameters
    ----------
    message : str
        Rule, value received and remedy.
    **numbers
        Data of the message, which become attributes. `key` is the argument, `got` the value, shape, type or
        count that it received; `name` and `names` identify parts of the mechanism; `failed` has the
        indices of members.
    """

    def __init__(self, message: str, **numbers: Any) -> None:
        super().__init__(message)
        self.message = message
        self.numbers = numbers
        for name, value in numbers.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # errors cross processes: data that cannot be pickled become text
        reduced: Any = super().__reduce__()
        kind, args, *rest = reduced
        numbers = {name: _picklable(value) for name, value in self.numbers.items()}
        state = rest[0] if rest else {}
        return kind, args, {**state, **numbers, "numbers": numbers}


class ModelError(KicError, ValueError):
    """An impossible mechanism or a contradictory description.

    Carries `key`, the invalid argument, if there is one.
    """


class ModelFileError(ModelError):
    """A model file that cannot be read or written.

    Carries `path` and, where they exist, `key`, the argument or the tag, `line`, the exceeded `limit` and
    `errno`.
    """


class FileError(KicError, OSError):
    """A file that cannot be written; carries `path` and, from the system, `errno` and `strerror`."""

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        # OSError keeps its data outside `__dict__`, where pickling loses them
        state = state or {}
        super().__setstate__({**state, **state.get("numbers", {})})


class UnknownNameError(KicError, LookupError):
    """An unknown name; carries `name` and `candidates`."""


class MissingExtraError(KicError, ImportError):
    """An optional package that is not installed; carries `extra`, the extra of kic that installs it."""


class InputError(KicError, ValueError):
    """An argument of the wrong shape, kind or content.

    Carries `key`, the argument, and `got`, the value, shape or type that the message reports. Some carry
    `name` or `names`, which identify parts of the mechanism, `mobility` and `count` of coordinates, or
    `batches` that do not broadcast.
    """


class OutOfRangeError(InputError, IndexError):
    """An index beyond the last item; as an IndexError it ends iteration over items."""


class ConfigurationError(InputError):
    """Members of a batch without a configuration.

    Carries `failed` (indices of the members), `reasons`, and `configuration`, the batch with the
    failed members masked. If limits were given, `beyond` has the excess of each failed member, by name.
    """


class InertiaError(KicError, ValueError):
    """Missing or impossible inertia of bodies; carries `bodies`."""


class MemberError(KicError):
    """Failed members of a batch; `failed` has their indices."""

    def place(self, members: Any, batch: tuple[int, ...]) -> None:
        """Convert positions in `failed`, counted among some members, to indices of the batch."""
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
    """A system that is singular at a configuration; carries the singular `coordinates` and the `condition`.

    For a batch, `failed` has the indices of the singular members.
    """


class LimitError(MemberError, ValueError):
    """A requested effort or motion that cannot be met within limits.

    Carries `scale`, the feasible share of the demand, `binding`, the names of the active limits, and, for a
    batch, `failed`, the indices of the failed members.
    """


@contextmanager
def batch_indices(members: Any, batch: tuple[int, ...]) -> Iterator[None]:
    """Convert members in errors raised inside to indices of the batch."""
    try:
        yield
    except MemberError as error:
        error.place(members, batch)
        raise


class SimulationError(KicError, RuntimeError):
    """A simulation that cannot continue; carries `time`, `simulation`, the run up to then, and `key`."""


class LoopError(KicError, ValueError):
    """A quantity that is not available for a joint that closes a loop; carries `joint`."""


def either(words: Iterable[str], conjunction: str = "or") -> str:
    """Return words as in "a, b or c"."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def short_repr(value: Any) -> str:
    """Return the repr of a value on one line, shortened for a message."""
    try:
        text = " ".join(_SHORT.repr(value).split())
    except Exception:  # any error of a foreign __repr__
        text = f"a {type(value).__name__}"
    return text if len(text) <= 100 else text[:99] + "…"


def _picklable(value: Any) -> Any:
    """Return a value, or its representation if it cannot be pickled."""
    try:
        pickle.dumps(value)
    except Exception:  # any error of a foreign __reduce__
        return short_repr(value)
    return value


_SHORT = Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = _SHORT.maxset = 12
_SHORT.maxstring = _SHORT.maxlong = 60
_SHORT.maxother = 200


def invalid(key: str, rule: str, got: Any, remedy: str = "", **numbers: Any) -> InputError:
    """Make the error for an argument that violates a rule."""
    message = f"`{key}` {rule}, got {short_repr(got)}. {remedy}".rstrip()
    return InputError(message, key=key, got=got, **numbers)


def unknown(kind: str, name: Any, owner: str, candidates: Iterable[str]) -> UnknownNameError:
    """Make the error for an unknown name, with the nearest and all known names."""
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
