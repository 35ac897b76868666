"""kic's own threads: batches run on all cores, whatever threads or processes the caller uses.

Started when first needed, and anew after a fork: an inherited pool has no living threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

# below this many microseconds of work, waking another thread costs more than it brings
WORTH_A_THREAD = 200.0

_state: dict[str, ThreadPoolExecutor | None] = {"pool": None}
_lock = Lock()


class ThreadCountError(ValueError):
    """`KIC_THREADS` is not a number of threads."""


def thread_count() -> int:
    """Return the number of threads of a batch: `KIC_THREADS`, else the processors of this process."""
    asked = os.environ.get("KIC_THREADS", "").strip()
    if asked:
        if not (asked.isascii() and asked.isdigit() and len(asked) < 7 and int(asked)):
            shown = asked if len(asked) <= 40 else asked[:39] + "…"
            raise ThreadCountError(
                f"KIC_THREADS must be a whole number from 1 to 999999, got {shown!r}. Correct or unset it."
            )
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _forget() -> None:
    """In a forked child: drop the parent's pool, whose threads do not exist here, and a lock it may hold."""
    global _lock
    _lock = Lock()
    _state["pool"] = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _pool() -> ThreadPoolExecutor:
    with _lock:
        pool = _state["pool"]
        if pool is None:
            pool = ThreadPoolExecutor(max(1, thread_count() - 1), thread_name_prefix="kic")
            _state["pool"] = pool
        return pool


def _retire(pool: ThreadPoolExecutor) -> None:
    """Drop a pool that takes no more work, when what it runs has ended."""
    with _lock:
        if _state["pool"] is pool:
            _state["pool"] = None
    pool.shutdown(cancel_futures=True)


def over_batch(work: Callable[[int, int], None], count: int, microseconds: float) -> None:
    """Call ``work(start, stop)`` on parts of ``range(count)`` until all are done.

    Parameters
    ----------
    work : callable
        Releases the GIL and writes to its own part of the outputs only.
    count : int
        Members of the batch.
    microseconds : float
        Rough cost of one member, which decides whether threads are worth while.
    """
    threads = min(thread_count(), int(count * microseconds / WORTH_A_THREAD)) if count > 1 else 1
    if threads < 2:
        work(0, count)
        return
    # more parts than threads, so that a thread that comes late finds less to do
    parts = min(count, 2 * threads)
    edges = [count * k // parts for k in range(parts + 1)]
    left = iter(range(parts))

    def pull() -> None:
        for k in left:  # `next` on a range iterator is atomic
            work(edges[k], edges[k + 1])

    others: list[Future[None]] = []
    pool = _pool()
    try:
        others.extend(pool.submit(pull) for _ in range(threads - 1))
    except RuntimeError:
        # no thread can be started: the interpreter is ending, or a limit is reached. What was started shares
        # the work with this thread; what only waits in the queue must not run after this call
        _retire(pool)
    try:
        pull()
    except BaseException:
        for _ in left:  # leave nothing for the others
            pass
        raise
    finally:
        for other in others:
            if not other.cancelled():
                other.result()
