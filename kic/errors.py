"""Exceptions. Messages state the rule, the value received and a remedy; numbers are attributes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from reprlib import Repr
from typing import TYPE_CHECKING, Any

_DEGREES = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+))\s*(?:deg|degrees|°)\s*")
_LONG = re.compile(r"(?<!\w)'[^']{301,}'(?!\w)|\S{301,}")
# control characters of terminals except tabs and line breaks, those that reorder text, and lone surrogates
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

# largest number of characters of a message
MESSAGE_MAX = 3000


def printable(text: str) -> str:
    """Return a text with control characters as escape sequences, for a terminal."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def shorten_words(text: str) -> str:
    """Return a text of bounded length; the middle of long words, quotations and texts is omitted."""
    text = _LONG.sub(lambda found: f"{found[0][:200]}…{found[0][-50:]}", text)
    return text if len(text) <= MESSAGE_MAX else f"{text[: MESSAGE_MAX - 501]}…{text[-500:]}"


class KicError(Exception):
    """Base class of all exceptions of kic.

    Parameters
    ----------
    message : str
        Rule, value received and remedy.
    **numbers
        Data of the message, which become attributes. `key` is the argument, `got` the value, shape, type or
        count that it received; `name` and `names` identify parts of the mechanism; `failed` has the
        indices of members in the batch, as tuples, ``()`` for one configuration; `time` is the time along a
        path.
    """

    def __init__(self, message: str, **numbers: Any) -> None:
        message = shorten_words(printable(message))  # names in files that are rejected, and names of files
        super().__init__(message)
        self.message = message
        self.numbers = numbers
        for name, value in numbers.items():
            setattr(self, name, value)

    if TYPE_CHECKING:  # the data of a message depend on the error

        def __getattr__(self, name: str) -> Any: ...

    def __str__(self) -> str:
        return self.message

    def place(self, members: Any, batch: tuple[int, ...]) -> None:
        """Convert positions in `failed`, counted among `members`, to indices of the batch."""
        failed = self.numbers.get("failed", ())
        # positions are numbers or indices (k,); other indices, and those of position problems, are converted
        # already
        if isinstance(self, ConfigurationError) or any(isinstance(k, tuple) and len(k) != 1 for k in failed):
            return
        where: list[tuple[int, ...]] = []
        for position in failed:
            k = position[0] if isinstance(position, tuple) else position
            index: list[int] = []
            left = int(members[k])
            for size in reversed(batch):
                left, place = divmod(left, size)
                index.insert(0, place)
            where.append(tuple(index))
        if where:
            self.numbers["failed"] = self.failed = where

    def place_in_time(self, times: Any) -> None:
        """Add the `time` of the error, from one time or from times of the first axes of a batch."""
        if "time" in self.numbers:
            return
        index = next((k for k in self.numbers.get("failed", ()) if isinstance(k, tuple)), ())
        shape = getattr(times, "shape", ())
        if len(index) >= len(shape):
            time = float(times[index[: len(shape)]] if shape else times)
            self.numbers["time"] = self.time = time
            self.message = f"At t = {time:g}: {self.message}"

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
    """An optional package that is missing or of a version that cannot be used.

    Carries `extra`, the extra of kic that installs it.
    """


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
    except KicError as error:
        error.place(members, batch)
        raise


@contextmanager
def at_times(times: Any) -> Iterator[None]:
    """Add the time to errors raised inside, from one time or times (n, ...) of the first axes of a batch."""
    try:
        yield
    except KicError as error:
        error.place_in_time(times)
        raise


class KernelLibraryWarning(RuntimeWarning):
    """The library of kernels cannot be used; Numba compiles them, and results are not affected."""


class KernelCacheWarning(RuntimeWarning):
    """The cache of compiled kernels is damaged, unsafe, or cannot be written; results are not affected."""


class DegreesWarning(UserWarning):
    """An angle beyond two turns in whole or half numbers, which may be meant in degrees."""


class SimulationError(KicError, RuntimeError):
    """A simulation that cannot continue; carries `time`, `simulation`, the run up to then, and `key`."""


class LoopError(KicError, ValueError):
    """A quantity that is not available for a joint that closes a loop; carries `joint`."""


def either(words: Iterable[str], conjunction: str = "or") -> str:
    """Join words as in "a, b or c"."""
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def counted(n: int, noun: str, several: str = "") -> str:
    """Return a number with its noun, as in "1 row", "2 rows" or "2 bodies"."""
    return f"{n} {noun if n == 1 else several or noun + 's'}"


def coordinates_named(n: int) -> str:
    """Return a clause with the number of named coordinates, such as "1 coordinate was named"."""
    return f"{counted(n, 'coordinate')} {'was' if n == 1 else 'were'} named"


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


def _rule(key: str, rule: str, got: Any, remedy: str, shown: str | None) -> str:
    """Return the message on a rule that a value violates; `shown` replaces the repr of the value."""
    if isinstance(got, str) and (angle := _DEGREES.fullmatch(got)):
        remedy = f"Angles are in radians: give np.deg2rad({angle[1]}). {remedy}"
    return f"`{key}` {rule}, got {short_repr(got) if shown is None else shown}. {remedy}".rstrip()


def invalid(
    key: str, rule: str, got: Any, remedy: str = "", *, shown: str | None = None, **numbers: Any
) -> InputError:
    """Make the error for an argument that violates a rule."""
    return InputError(_rule(key, rule, got, remedy, shown), key=key, got=got, **numbers)


def invalid_part(
    label: str, key: str, rule: str, got: Any, remedy: str = "", *, shown: str | None = None, **numbers: Any
) -> ModelError:
    """Make the error for an argument of a part of a mechanism that violates a rule."""
    return ModelError(f"{label}: {_rule(key, rule, got, remedy, shown)}", key=key, got=got, **numbers)


def unfinished_type(part: str, name: str, kind: str, what: str, where: str) -> ModelError:
    """Make the error for a joint or contact whose type is in the tables, but not fully implemented."""
    tables = "joint_types.py" if part == "joint" else "contacts.py"
    message = (
        f"{part.capitalize()} '{name}' has type '{kind}', whose {what} are not implemented. Implement them "
        f"in {where}; kic/description/{tables} has the table of types."
    )
    return ModelError(message, name=name, got=kind, where=where)


def unknown(
    kind: str, name: Any, owner: str, candidates: Iterable[str], instead: str = "", *, quoted: bool = True
) -> UnknownNameError:
    """Make the error for an unknown name; it states what the name is `instead`, and suggests candidates.

    An `owner` without a name, such as "these forces", is not `quoted`.
    """
    there = tuple(candidates)
    label = short_repr(str(name) if isinstance(name, str) else name)
    where = f"'{owner}'" if quoted else owner
    message = f"No {kind} {label} in {where}{f': it is {instead}' * bool(instead)}."
    # the comparison takes about 10 µs for each candidate, and more for long names
    comparable = isinstance(name, str) and len(name) <= 200 and len(there) <= 2000
    close = get_close_matches(name, there, n=1) if comparable else []
    if close:
        message += f" Did you mean '{close[0]}'?"
    few = there if len(there) <= 24 else (*there[:22], "…", there[-1])
    message += f" Available: {', '.join(few)}." if there else " There are none."
    return UnknownNameError(message, name=name, candidates=there)
