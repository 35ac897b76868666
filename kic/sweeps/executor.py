"""Crews: who does the work of a sweep: an executor, or this process. The answers are the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

from kic.errors import InputError, short_repr

# what is known of a job is asked for so often (s), that an interrupt is heard while others work
POLL_S = 0.5


class ParallelMap:
    """An executor, or nobody but this process, with what all jobs share.

    Parameters
    ----------
    shared : object
        First argument of all work. It is pickled once, and unpickled once in each other process.
    executor : concurrent.futures.Executor or None
        Who works.
    chunk : int
        How many members a job has at most.
    """

    def __init__(self, shared: Any, executor: Any, chunk: int) -> None:
        self.executor, self.chunk = executor, chunk
        self._shared = shared
        # threads see what is here
        self._packed = executor is not None and not isinstance(executor, ThreadPoolExecutor)
        if self._packed:
            self._shared = packed(shared)

    def chunks(self, count: int) -> list[slice]:
        """Members in pieces."""
        return [slice(a, min(a + self.chunk, count)) for a in range(0, count, self.chunk)]

    def work(self, what: Callable[..., Any], jobs: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Number and result of each job ``what(shared, *job)``, as they come."""
        jobs = list(jobs)
        if self.executor is None:
            for k, job in enumerate(jobs):
                yield k, what(self._shared, *job)
            return
        open_: dict[Future[Any], int] = {}
        try:
            for k, job in enumerate(jobs):
                call = (_unpacked, what, self._shared) if self._packed else (what, self._shared)
                open_[self.executor.submit(*call, *job)] = k
            while open_:
                done, _ = wait(open_, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=open_.__getitem__):
                    yield open_.pop(future), future.result()
        finally:
            for future in open_:
                future.cancel()


def packed(shared: Any) -> bytes:
    """What other processes get.

    Raises
    ------
    InputError
        If it holds something that cannot be sent, such as a lambda.
    """
    try:
        return pickle.dumps(shared)
    except Exception as error:
        raise InputError(
            "What an executor's processes are to answer must be importable there, and "
            f"{short_repr(shared.answers)} cannot be pickled ({error}). Write it as a function at the top of a "
            "module, take one of kic.metrics, or leave `executor` out; threads take anything."
        ) from None


def _unpacked(what: Callable[..., Any], shared: bytes, *job: Any) -> Any:
    """Do a job, in another process."""
    return what(_kept(shared), *job)


@lru_cache(maxsize=2)
def _kept(shared: bytes) -> Any:
    """What all jobs share, unpacked once."""
    try:
        return pickle.loads(shared)
    except (AttributeError, ImportError) as error:
        raise InputError(
            f"A process of the executor does not find what to answer: {error}. Write it as a function in a "
            "module that is installed there, not in the session."
        ) from None
