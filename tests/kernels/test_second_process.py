"""Parts of kernels are compiled once, in a second process where commands allow it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import HANGS_S

from kic.kernels import second_process
from kic.kernels.second_process import SecondProcess
from kic.kernels.transfer import chosen_loads

# the first report of a closed mechanism; prints functions of kic that are compiled twice, and parts
FIRST_REPORT = """
import collections, sys
from numba.core import event
from kic.kernels import second_process
second_process._cores = lambda: {cores}
sys.argv = ["kic", "report", "four-bar"]
from kic.ui.cli.main import main
with event.install_recorder("numba:compile") as recorder:
    main(standalone_mode=False)
done = [(e.data["dispatcher"].py_func, e.data["args"]) for _, e in recorder.buffer if e.is_start]
counts = collections.Counter((f, args) for f, args in done if f.__module__.startswith("kic."))
names = [f.__name__ for f, _ in counts]
print(sorted(f.__name__ for (f, _), n in counts.items() if n > 1), file=sys.stderr)
print(sum(name in ("higher_rows", "inertia_tables", "chosen_loads") for name in names), file=sys.stderr)
"""


def first_report(cache: Path, cores: int) -> tuple[str, list[str], list[str]]:
    """Return the report, the two lines about functions, and the names of the files in the cache."""
    told = subprocess.run(
        [sys.executable, "-c", FIRST_REPORT.format(cores=cores)],
        env={
            **os.environ,
            "KIC_CACHE_DIR": str(cache),
            "KIC_KERNELS": "jit",
            "KIC_VERBOSE": "0",
            "PYTHONIOENCODING": "utf-8",
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout, told.stderr.splitlines(), sorted(file.name for file in cache.rglob("*.*"))


@pytest.mark.slow
def test_the_first_report_in_one_and_in_two_processes(tmp_path: Path) -> None:
    """No function is compiled twice; both leave the same files, which the next report loads."""
    alone, lines, files = first_report(tmp_path / "one", 1)
    assert lines == ["[]", "3"]
    together, lines, same_files = first_report(tmp_path / "two", 2)
    assert lines[0] == "[]"
    assert int(lines[1]) < 3
    assert together == alone
    assert same_files == files
    assert first_report(tmp_path / "two", 2) == (alone, ["[]", "0"], files)


@pytest.mark.slow
def test_a_missing_part_is_compiled_again(tmp_path: Path) -> None:
    report, _, files = first_report(tmp_path, 1)
    (part,) = tmp_path.rglob("kic_inertia_tables*")
    part.unlink()
    assert first_report(tmp_path, 1) == (report, ["[]", "1"], files)


def test_no_process_is_started_unless_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(second_process._settings, "allowed", False)
    second = SecondProcess()
    second.start(tmp_path)
    second.submit("symbol", chosen_loads, ())
    second.finish("symbol")
    assert second._process is None


@pytest.mark.slow
def test_failed_second_process_writes_nothing_and_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part is then compiled where it is needed."""
    monkeypatch.setitem(second_process._settings, "allowed", True)
    monkeypatch.setattr(second_process, "_cores", lambda: 2)
    second = SecondProcess()
    second.start(tmp_path)
    for symbol in ("a", "b"):  # no arguments: the compilation fails, and the process ends
        second.submit(symbol, chosen_loads, ())
    assert second._process is not None
    second._process.wait(60)
    second.finish("b")
    second.finish("a")
    second.finish("unknown")
    assert not list(tmp_path.rglob("*.nbc"))
    second.stop()


def test_second_process_does_not_start_without_writable_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(second_process._settings, "allowed", True)
    monkeypatch.setattr(second_process, "_cores", lambda: 2)
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    second = SecondProcess()
    second.start(blocked / "cache")
    assert second._process is None


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-m", "kic", "report", "four-bar"], 130),
        (["-c", "import kic; kic.load('four-bar').at().dynamics()"], -signal.SIGINT),
    ],
    ids=["command", "program"],
)
def test_an_interrupt_ends_a_compilation(arguments: list[str], code: int, tmp_path: Path) -> None:
    """LLVM compiles the kernel of a closed mechanism for about 10 s without returning to Python."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "KIC_CACHE_DIR": str(tmp_path), "KIC_VERBOSE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # a suite that runs in the background ignores the signal, and so would its processes
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    while b"transfer" not in process.stderr.read1() and process.poll() is None:
        pass
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANGS_S)
    assert process.returncode == code
