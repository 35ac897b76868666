"""Compilation, cache, threads and processes: what a user feels of the machinery."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import kic
from kic.kernels import pool
from kic.shipped import models_directory

ROOT = Path(kic.__file__).parent.parent
BIG = 3000  # postures: enough work for several threads


def python(code: str, *, root: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter on the package of a folder."""
    everything = {**os.environ, "PYTHONPATH": str(root), "PYTHONIOENCODING": "utf-8", **env}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=everything,
        cwd=root,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def answer(seed: int) -> np.ndarray:
    """Something large enough to be given to threads."""
    m = kic.load("horn-two-link")
    phi = np.random.default_rng(seed).normal(size=(BIG, 2))
    return m.at(phi).coefficients("tip", order=3).D


def test_batches_are_the_same_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WORTH_A_THREAD", 1.0)
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("KIC_THREADS", threads)
        results.append(answer(0))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_user_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WORTH_A_THREAD", 1.0)
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
    monkeypatch.setattr(pool, "WORTH_A_THREAD", 1.0)
    monkeypatch.setenv("KIC_THREADS", "2")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(Path(__file__).parent)]))
    here = [answer(seed) for seed in range(3)]  # the parent's pool is alive now
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as processes:
        there = list(processes.map(answer, range(3), timeout=120))
    for a, b in zip(here, there, strict=True):
        assert np.array_equal(a, b)


def test_a_failing_part_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIC_THREADS", "3")

    def work(start: int, stop: int) -> None:
        if start <= 70 < stop:
            raise ZeroDivisionError("part of 70")

    with pytest.raises(ZeroDivisionError, match="part of 70"):
        pool.over_batch(work, 100, 1e6)


TIP = "import kic; print(kic.load('horn-two-link').at([0.0, 0.0]).coefficients('tip', order=1).G[1, 0])"


@pytest.mark.slow
def test_an_edited_helper_is_never_served_stale(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "kic", tmp_path / "kic", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(models_directory(), tmp_path / "models", dirs_exist_ok=True)
    cache = str(tmp_path / "cache")
    told = python(TIP, root=tmp_path, KIC_CACHE_DIR=cache, KIC_VERBOSE="1")
    assert told.stdout.strip() == "2.0", told.stderr
    assert "compiling the real 'kinematics' kernel for this machine, once" in told.stderr
    again = python(TIP, root=tmp_path, KIC_CACHE_DIR=cache, KIC_VERBOSE="1")
    assert again.stdout.strip() == "2.0"
    assert "compiling" not in again.stderr
    # the entry's own file stays as it was: only a helper in another file changes
    rows = tmp_path / "kic" / "kernels" / "rows.py"
    text = rows.read_text(encoding="utf-8")
    assert "return cross(s, sub(e, take(F, n, ORIGIN)))" in text
    rows.write_text(
        text.replace(
            "return cross(s, sub(e, take(F, n, ORIGIN)))",
            "return scale(2, cross(s, sub(e, take(F, n, ORIGIN))))",
        ),
        encoding="utf-8",
    )
    edited = python(TIP, root=tmp_path, KIC_CACHE_DIR=cache)
    assert edited.stdout.strip() == "4.0", edited.stderr


@pytest.mark.slow
def test_damaged_and_unwritable_caches_do_not_stop_the_work(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert python(TIP, KIC_CACHE_DIR=str(cache)).stdout.strip() == "2.0"
    for file in cache.rglob("*.nbc"):
        file.write_bytes(b"damaged")
    assert python(TIP, KIC_CACHE_DIR=str(cache)).stdout.strip() == "2.0"
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    told = python(TIP, KIC_CACHE_DIR=str(blocked), KIC_VERBOSE="1")
    assert told.stdout.strip() == "2.0", told.stderr
    assert "compiling" in told.stderr


@pytest.mark.slow
def test_importing_is_light() -> None:
    """The compiler, SciPy and the schema library come when first needed."""
    heavy = ("numba", "scipy", "pydantic", "tomlkit", "click")
    code = f"from kic import *; import sys; print([m for m in {heavy} if m in sys.modules])"
    assert python(code).stdout.strip() == "[]"


def test_kernels_keep_nothing() -> None:
    """No kernel holds on to its arguments, whatever it was asked."""
    open_arm, loop = kic.load("puma560"), kic.load("gough-stewart")
    state = open_arm.at(np.full(6, 0.3)).state
    prepared = open_arm.prepare(of=["link6"], order=3, dynamics=True)
    elsewhere = loop.prepare(of=["platform"], order=3, dynamics=True)
    for evaluator, at in ((prepared, state), (elsewhere, loop.at().state)):
        out = evaluator(evaluator_state := at.copy())
        evaluator(evaluator_state, out=out)
        for entry, arguments in out._calls:
            arrays = [a for a in arguments if isinstance(a, np.ndarray)]
            before = [sys.getrefcount(a) for a in arrays]
            contents = [a.copy() for a in arrays]
            for _ in range(50):
                entry(*arguments)
            assert [sys.getrefcount(a) for a in arrays] == before
            for a, b in zip(arrays, contents, strict=True):
                if a.dtype == np.float64 and a.ndim == 2 and a.size:  # scratch may change, answers may not
                    assert np.array_equal(a, b, equal_nan=True)
