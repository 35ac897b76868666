"""Thread pool of the package: batches run on all cores, independent of threads or processes of the caller.

The pool starts on first use, and again after a fork, because a forked process has no running threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from kic.errors import InputError, short_repr

# microseconds of work below which another thread costs more than it saves
THREAD_WORK_MIN_US = 200.0

_state: dict[str, ThreadPoolExecutor | None] = {"pool": None}
_lock = Lock()


def thread_count() -> int:
    """Return the number of threads for a batch: `KIC_THREADS`, or the number of available processors."""
    value = os.environ.get("KIC_THREADS", "").strip()
    if value:
        if not (value.isascii() and value.isdigit() and len(value) < 7 and int(value)):
            message = f"KIC_THREADS must be an integer from 1 to 999999, got {short_repr(value)}."
            raise InputError(f"{message} Correct or unset it.", key="KIC_THREADS", got=value)
        return int(value)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _reset_after_fork() -> None:
    """Drop the parent's pool in a forked child, and a lock that the parent may hold."""
    global _lock
    _lock = Lock()
    _state["pool"] = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _pool() -> ThreadPoolExecutor:
    with _lock:
        pool = _state["pool"]
        if pool is None:
            pool = ThreadPoolExecutor(max(1, thread_count() - 1), thread_name_prefix="kic")
            _state["pool"] = pool
        return pool


def _retire(pool: ThreadPoolExecutor) -> None:
    """Drop a pool that accepts no more work, after its running tasks end."""
    with _lock:
        if _state["pool"] is pool:
            _state["pool"] = None
    pool.shutdown(cancel_futures=True)


def over_batch(work: Callable[[int, int], None], count: int, microseconds: float) -> None:
    """Call ``work(start, stop)`` on parts of ``range(count)`` until all are done.

    Parameters
    ----------
    work : callable
        Function that releases the GIL and writes only to its part of the outputs.
    count : int
        Number of members of the batch.
    microseconds : float
        Approximate cost of one member, from which the number of threads follows.
    """
    threads = min(thread_count(), int(count * microseconds / THREAD_WORK_MIN_US)) if count > 1 else 1
    if threads < 2:
        work(0, count)
        return
    # more parts than threads balance the load if threads start late
    parts = min(count, 2 * threads)
    edges = [count * k // parts for k in range(parts + 1)]
    remaining = iter(range(parts))

    def pull() -> None:
        for k in remaining:  # `next` on a range iterator is atomic
            work(edges[k], edges[k + 1])

    futures: list[Future[None]] = []
    pool = _pool()
    try:
        futures.extend(pool.submit(pull) for _ in range(threads - 1))
    except RuntimeError:
        # No thread can be started: the interpreter is ending, or a limit is reached. Started tasks share the
        # work with this thread; queued tasks must not run after this call.
        _retire(pool)
    try:
        pull()
    except BaseException:
        for _ in remaining:  # leave no work for the other threads
            pass
        raise
    finally:
        for future in futures:
            if not future.cancelled():
                future.result()
