"""Mapping of jobs over an executor, or serially; the results do not depend on the executor."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from functools import lru_cache
from importlib import import_module
from typing import Any

from kic.errors import InputError, short_repr

# polling interval of jobs (s), short enough for keyboard interrupts
POLL_S = 0.5
# remedy where functions of the session are not sent by value
_INSTALL = (
    "install cloudpickle in this environment and in that of the workers, to send functions of the session"
)


class ParallelMap:
    """Runner of jobs of at most `chunk` members, on an executor, or serially if `executor` is None.

    Results must not depend on the division into jobs, which depends on the number of workers. `shared` is
    the first argument of all jobs. It is pickled once, and unpickled once in each worker process.
    """

    def __init__(self, shared: Any, executor: Any, chunk: int) -> None:
        self.executor, self.chunk = executor, chunk
        self._shared = shared
        # threads share the memory of this process
        self._is_pickled = executor is not None and not isinstance(executor, ThreadPoolExecutor)
        if self._is_pickled:
            # processes of this module run the script again, so that its functions are there by name
            is_script = hasattr(sys.modules["__main__"], "__file__")
            self._shared = pickled(shared, is_script and isinstance(executor, ProcessPoolExecutor))

    def chunks(self, count: int, least: int) -> list[slice]:
        """Return slices of at most `chunk` members: one for each worker, or of `least` members."""
        size = self.chunk
        if self.executor is not None:
            workers = getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1
            size = min(size, max(least, -(-count // workers)))
        return [slice(a, min(a + size, count)) for a in range(0, count, size)]

    def run(self, func: Callable[..., Any], jobs: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Yield number and result of each job ``func(shared, *job)`` in order of completion."""
        jobs = list(jobs)
        if self.executor is None:
            for k, job in enumerate(jobs):
                yield k, func(self._shared, *job)
            return
        pending: dict[Future[Any], int] = {}
        try:
            for k, job in enumerate(jobs):
                call = (_unpacked, func, self._shared) if self._is_pickled else (func, self._shared)
                pending[self.executor.submit(*call, *job)] = k
            while pending:
                done, _ = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=pending.__getitem__):
                    yield pending.pop(future), future.result()
        finally:
            for future in pending:
                future.cancel()


def _cloudpickle() -> Callable[[Any], bytes] | None:
    """Return the function of cloudpickle that pickles functions by value, or None without cloudpickle."""
    try:
        return import_module("cloudpickle").dumps
    except ImportError:
        return None


def pickled(shared: Any, by_name: bool) -> bytes:
    """Return the shared data as bytes for other processes.

    Functions of the session are sent by value if cloudpickle is installed; with `by_name`, only functions
    without a name, such as lambdas. Raise `InputError` if something cannot be pickled.
    """
    by_value, errors = _cloudpickle(), []
    order = [pickle.dumps, by_value] if by_name else [by_value, pickle.dumps]
    for dumps in filter(None, order):
        try:
            return dumps(shared)
        except Exception as error:  # what a function by value uses may not be pickled
            errors.append(error)
    remedy = "or use threads" if by_value else f"use threads, or {_INSTALL}"
    raise InputError(
        "The metrics of a sweep must be importable in the executor's processes, and "
        f"{short_repr(shared.metrics)} cannot be pickled ({errors[0]}). Define them as functions at the top "
        f"level of a module, use those of kic.metrics, {remedy}.",
        key="of",
    )


def _unpacked(func: Callable[..., Any], shared: bytes, *job: Any) -> Any:
    """Run a job in another process."""
    return func(_load(shared), *job)


@lru_cache(maxsize=2)
def _load(shared: bytes) -> Any:
    """Return the shared data, unpickled once."""
    try:
        return pickle.loads(shared)
    except (AttributeError, ImportError) as error:
        advice = "" if _cloudpickle() else f", or {_INSTALL}"
        raise InputError(
            f"A process of the executor cannot import a metric: {error}. Define it as a function in a module "
            f"that is installed there, not in the session{advice}.",
            key="of",
        ) from None
