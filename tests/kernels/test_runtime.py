"""Compilation, cache, threads and processes."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from commands import HANGS_S, ROOT, python
from raising import raises

import kic
from kic.errors import FileError, KernelCacheWarning
from kic.io.library import models_directory
from kic.kernels import compiler as compiled
from kic.kernels import jit, library
from kic.kernels import threads as pool
from kic.numerics.linalg import pivoted_qr
from kic.ui.cli.warm_up import warm_up

BIG = 3000  # configurations: enough work for several threads


def answer(seed: int) -> np.ndarray:
    """Something large enough to be given to threads."""
    m = kic.load("horn-two-link")
    phi = np.random.default_rng(seed).normal(size=(BIG, 2))
    return m.at(phi).coefficients("tip", order=3).D


def test_batches_are_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "THREAD_WORK_MIN_US", 1.0)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("KIC_THREADS", threads)
        results.append(answer(0))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_user_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "THREAD_WORK_MIN_US", 1.0)
    monkeypatch.setenv("KIC_THREADS", "3")
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(answer, range(8)))
    for seed in range(8):
        assert np.array_equal(found[seed], answer(seed))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_process_pools(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked child inherits a pool without threads; it must make its own."""
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system can not fork")
    monkeypatch.setattr(pool, "THREAD_WORK_MIN_US", 1.0)
    monkeypatch.setenv("KIC_THREADS", "2")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(__file__).parents[1])]))
    here = [answer(seed) for seed in range(3)]  # the parent's pool is alive now
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as processes:
        there = list(processes.map(answer, range(3), timeout=HANGS_S))
    for a, b in zip(here, there, strict=True):
        assert np.array_equal(a, b)


def test_failed_part_of_a_batch_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIC_THREADS", "3")

    def work(start: int, stop: int) -> None:
        if start <= 70 < stop:
            raise ZeroDivisionError("part of 70")

    with pytest.raises(ZeroDivisionError):
        pool.over_batch(work, 100, 1e6)


@pytest.mark.parametrize("count", ["x", "0", "-1", "1.5", "²", "9" * 5000, "1e3"])
def test_invalid_thread_counts_raise(count: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIC_THREADS", count)
    with raises(kic.InputError, key="KIC_THREADS") as caught:
        answer(0)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("started", [0, 1])
def test_a_batch_where_no_thread_can_be_started(started: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as at the end of the interpreter, or at a limit of the system."""
    monkeypatch.setattr(pool, "THREAD_WORK_MIN_US", 1.0)
    monkeypatch.setenv("KIC_THREADS", "1")
    expected = answer(1)
    monkeypatch.setenv("KIC_THREADS", "5")
    monkeypatch.setitem(pool._state, "pool", None)
    start = threading.Thread.start
    left = iter(range(started))

    def refuse(thread: threading.Thread) -> None:
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert np.array_equal(answer(1), expected)
        assert pool._state["pool"] is None
    assert np.array_equal(answer(1), expected)
    assert pool._state["pool"] is not None


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [False, True])
def test_a_batch_after_the_main_thread(loaded: bool) -> None:
    code = (
        "import threading, numpy as np, kic\n"
        "m = kic.load('horn-two-link'); phi = np.zeros((30000, 2)); m.at(phi[0]).coefficients('tip').G\n"
        f"if {loaded}: m.at(phi).coefficients('tip').G\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    print(m.at(phi).coefficients('tip').G.shape)\n"
        "threading.Thread(target=late).start()"
    )
    told = python("-c", code, KIC_THREADS="3")
    assert (told.stdout.strip(), told.stderr) == ("(30000, 3, 2)", "")


TIP = "import kic; print(kic.load('horn-two-link').at([0.0, 0.0]).coefficients('tip', order=1).G[1, 0])"


@pytest.mark.slow
def test_edited_helpers_are_recompiled(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "kic", tmp_path / "kic", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(models_directory(), tmp_path / "models", dirs_exist_ok=True)
    cache = str(tmp_path / "cache")
    told = python("-c", TIP, root=tmp_path, KIC_CACHE_DIR=cache, KIC_VERBOSE="1")
    assert told.stdout.strip() == "2.0", told.stderr
    assert "compiling the real 'first_order' kernel for this machine, once" in told.stderr
    again = python("-c", TIP, root=tmp_path, KIC_CACHE_DIR=cache, KIC_VERBOSE="1")
    assert again.stdout.strip() == "2.0"
    assert "compiling" not in again.stderr
    # the entry's own file stays as it was: only a helper in another file changes
    helper = tmp_path / "kic" / "kernels" / "influence.py"
    text = helper.read_text(encoding="utf-8")
    assert "return cross(s, sub(e, take(F, n, lay.ORIGIN)))" in text
    helper.write_text(
        text.replace(
            "return cross(s, sub(e, take(F, n, lay.ORIGIN)))",
            "return scale(2, cross(s, sub(e, take(F, n, lay.ORIGIN))))",
        ),
        encoding="utf-8",
    )
    edited = python("-c", TIP, root=tmp_path, KIC_CACHE_DIR=cache)
    assert edited.stdout.strip() == "4.0", edited.stderr


@pytest.mark.slow
def test_missing_cache_is_tolerated(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert python("-c", TIP, KIC_CACHE_DIR=str(cache)).stdout.strip() == "2.0"
    for file in cache.rglob("*.nbc"):
        file.write_bytes(b"damaged")
    told = python("-c", TIP, KIC_CACHE_DIR=str(cache))
    assert told.stdout.strip() == "2.0"
    assert told.stderr.count("KernelCacheWarning") == 1
    assert not python("-c", TIP, KIC_CACHE_DIR=str(cache)).stderr  # made again
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    told = python("-c", TIP, KIC_CACHE_DIR=str(blocked), KIC_VERBOSE="1")
    assert told.stdout.strip() == "2.0", told.stderr
    assert "compiling" in told.stderr
    assert told.stderr.count("KernelCacheWarning") == 1


def tiny(numbers):
    numbers[0] += 1.0


def run_tiny() -> int:
    """Run a small kernel from the cache; return the number of cache hits."""
    kernel = compiled.entry(tiny)
    numbers = np.zeros(1)
    kernel(numbers)
    assert numbers[0] == 1.0
    return sum(kernel.stats.cache_hits.values())


@pytest.fixture
def tiny_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File of the small kernel in a cache of its own."""
    monkeypatch.setenv("KIC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(library, "_warned", set())
    assert run_tiny() == 0
    assert run_tiny() == 1
    (file,) = tmp_path.rglob("*.nbc")
    return file


@pytest.mark.slow
def test_damaged_machine_code_is_not_run(tiny_cache: Path) -> None:
    whole = tiny_cache.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", whole[:31], whole[:32], whole[:-1], whole + b"x", rng.bytes(999)]
    damaged += [whole[: rng.integers(len(whole))] for _ in range(3)]
    for _ in range(12):
        content = bytearray(whole)
        content[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        damaged.append(bytes(content))
    hits = []
    with warnings.catch_warnings(record=True, action="always") as told:
        for content in damaged:
            tiny_cache.write_bytes(content)
            hits += [run_tiny(), run_tiny()]
    assert hits == [0, 1] * len(damaged)
    assert ["are damaged" in str(warning.message) for warning in told] == [True]


def test_a_folder_in_place_of_a_cache_file(tiny_cache: Path) -> None:
    tiny_cache.unlink()
    tiny_cache.mkdir()
    with warnings.catch_warnings(record=True, action="always") as told:
        assert [run_tiny() for _ in range(3)] == [0, 0, 0]
    assert [str(w.message).partition(" (")[0].split()[-2:] for w in told] == [
        ["be", "read"],
        ["be", "written"],
    ]
    assert list(tiny_cache.parent.iterdir()) == [tiny_cache]


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_failed_cache_writes_warn(
    tiny_cache: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """Nothing is half-written, and the kernel works."""
    tiny_cache.unlink()

    def fail(*_: object) -> None:
        raise kind(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        if kind is OSError:
            with pytest.warns(KernelCacheWarning, match=r"cannot be written \(No space left"):
                assert run_tiny() == 0
        else:
            with pytest.raises(KeyboardInterrupt):
                run_tiny()
    assert not list(tiny_cache.parent.iterdir())
    assert run_tiny() == 0
    assert run_tiny() == 1


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"KIC_CACHE_DIR": "kic-cache"}, "the path is not absolute"),
        ({"KIC_CACHE_DIR": "", "XDG_CACHE_HOME": "", "LOCALAPPDATA": ""}, "there is no home directory"),
        ({"KIC_CACHE_DIR": "", "XDG_CACHE_HOME": "a", "LOCALAPPDATA": "a"}, "there is no home directory"),
        ({"KIC_CACHE_DIR": "open"}, "can be written by others"),
    ],
)
def test_kernels_without_a_cache(
    variables: dict[str, str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are compiled, and neither read nor stored; one warning has the reason."""
    if "written" in problem:
        if not hasattr(os, "geteuid"):
            pytest.skip("there are no modes")
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        variables = {"KIC_CACHE_DIR": str(tmp_path / "open")}
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(jit, "LIBRARY", None)
    monkeypatch.setattr(library, "_warned", set())
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(record=True, action="always") as told:
        assert [run_tiny(), run_tiny()] == [0, 0]
        assert library.machine_folder() is None
        assert compiled.cache_directory() is None
        with pytest.raises(FileError, match="cannot be stored"):
            warm_up.callback()
    assert [problem in str(warning.message) for warning in told] == [True]
    assert not [path for path in tmp_path.rglob("*") if path.name != "open"]


def test_importing_is_light() -> None:
    """The compiler, SciPy and the writer of TOML come when first needed."""
    heavy = ("numba", "scipy", "tomlkit", "click")
    code = f"from kic import *; import sys; print([m for m in {heavy} if m in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


def test_lapack_is_light() -> None:
    """The functions are loaded without the package, which is then imported as usual."""
    code = (
        "import sys, numpy as np; from kic.numerics.linalg import pivoted_qr as qr; x = qr(np.eye(2))[1]\n"
        "print('scipy.linalg' in sys.modules); import scipy.linalg; print(scipy.linalg.qr(np.eye(2))[1])"
    )
    assert python("-c", code).stdout.split() == ["False", "[[1.", "0.]", "[0.", "1.]]"]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (3, 7), (7, 3), (40, 35)])
def test_pivoted_qr_is_that_of_scipy(shape: tuple[int, int]) -> None:
    from scipy.linalg import qr

    rng = np.random.default_rng(0)
    for a in (rng.normal(size=shape), rng.integers(-2, 3, size=shape[::-1]).astype(float).T):
        (R, order), (diagonal, pivot) = qr(a, mode="r", pivoting=True), pivoted_qr(a)
        assert np.array_equal(order, pivot)
        assert np.array_equal(np.diag(R), diagonal)
    if a.size:
        a[0, 0] = np.nan
        with pytest.raises(ValueError, match="infs or NaNs"):
            pivoted_qr(a)


def test_kernels_keep_nothing() -> None:
    """No kernel keeps references to its arguments."""
    open_arm, loop = kic.load("puma560"), kic.load("gough-stewart")
    state = open_arm.at(np.full(6, 0.3)).state
    prepared = open_arm.prepare.coefficients_and_dynamics(["link6"], order=3)
    elsewhere = loop.prepare.coefficients_and_dynamics(["platform"], order=3)
    for evaluator, at in ((prepared, state), (elsewhere, loop.at().state)):
        out = evaluator(evaluator_state := at.copy())
        evaluator(evaluator_state, out=out)
        for entry, arguments in out._reuse[-1]:
            arrays = [a for a in arguments if isinstance(a, np.ndarray)]
            before = [sys.getrefcount(a) for a in arrays]
            contents = [a.copy() for a in arrays]
            for _ in range(50):
                entry(*arguments)
            assert [sys.getrefcount(a) for a in arrays] == before
            for a, b in zip(arrays, contents, strict=True):
                if a.dtype == np.float64 and a.ndim == 2 and a.size:  # scratch may change, answers may not
                    assert np.array_equal(a, b, equal_nan=True)
