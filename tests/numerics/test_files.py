"""Files are replaced as a whole or stay as they were."""

from __future__ import annotations

import ast
import os
import pickle
import re
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

import kic
from kic.errors import FileError
from kic.numerics.files import atomic_write

POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")


def fail(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_file_is_written_with_the_usual_permissions(tmp_path: Path) -> None:
    path, plain = tmp_path / "a", tmp_path / "plain"
    plain.write_bytes(b"")
    with atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode == plain.stat().st_mode
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "plain"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_block_leaves_the_old_file(tmp_path: Path, kind: type[BaseException]) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def half() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise kind

    with pytest.raises(kind):
        half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)

    def write() -> None:
        with atomic_write(path) as file:
            file.write(b"new")

    with pytest.raises(FileError, match=r"a: cannot be written: No space left on device\. Free") as caught:
        write()
    assert (caught.value.path, caught.value.errno) == (path, 28)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# functions that write a file, and the places that may: the writer, and those that write to a folder or
# a cache of their own
WRITERS = {"write_text", "write_bytes", "save", "savez", "savez_compressed", "savetxt", "tofile"}
ELSEWHERE = {"export/fmu.py": 1, "kernels/library.py": 1, "kernels/linking.py": 3}


def writes(node: ast.AST) -> bool:
    """Return True for a call that opens a file by its name for writing."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    texts = [x.value for x in (*node.args, *(k.value for k in node.keywords)) if isinstance(x, ast.Constant)]
    if name in ("open", "fdopen"):
        return any(isinstance(x, str) and re.fullmatch("[rbt]*[wxa+][bt+]*", x) for x in texts)
    of_numpy = isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "np"
    written = node.args and isinstance(node.args[0], ast.Name) and node.args[0].id in ("file", "held")
    return name in WRITERS and (of_numpy or not name.startswith("save")) and not written


def test_files_are_written_in_one_place() -> None:
    root, found = Path(kic.__file__).parent, Counter[str]()
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root).as_posix()
        if not where.startswith("kernels/library_build/") and where != "numerics/files.py":
            found[where] += sum(writes(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    assert +found == {file: count for file, count in ELSEWHERE.items() if (root / file).exists()}


def savers() -> dict[str, tuple[str, Callable[[Path], Any]]]:
    m = kic.load("four-bar")
    turn = m.path({"A": np.linspace(1.0, 1.2, 3)})
    box = {"A": (1.0, 1.2)}
    return {
        "table": ("m.csv", lambda path: turn.dynamics().table().to_csv(path)),
        "run": ("m.npz", lambda path: m.simulate(1e-3, integrator=kic.Integrator(progress=False)).save(path)),
        "actuation table": (
            "m.npz",
            lambda path: m.export.actuation_map("B").to_table(limits=box, points=3).save(path),
        ),
        "polynomials": (
            "m.json",
            lambda path: m.export.actuation_map("B").to_polynomial(limits=box).save(path),
        ),
        "C": ("m", lambda path: m.export.dynamics().to_c().save(path)),
        "model": ("m.toml", lambda path: m.save(path)),
        "picture": ("m.svg", lambda path: m.at().draw().save(path)),
        "animation": ("m.gif", lambda path: turn.animate().save(path, dpi=20)),
    }


@pytest.mark.parametrize("what", ["model", "picture", "animation"])
def test_savers_leave_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    name, save = savers()[what]
    path = tmp_path / name
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with raises(kic.KicError, errno=28):
            save(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    save(path)
    assert path.read_bytes() != b"old"
    with pytest.raises(kic.KicError, match=r"No such file or directory\. Create the directory"):
        save(tmp_path / "none" / name)


@POSIX
def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    path, link, dangling = tmp_path / "a", tmp_path / "link", tmp_path / "dangling"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to("a")
    dangling.symlink_to(tmp_path / "b")
    for to in (link, dangling):
        with atomic_write(to) as file:
            file.write(b"new")
        assert to.is_symlink()
    assert path.read_bytes() == (tmp_path / "b").read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with raises(FileError, errno=40), atomic_write(loop):
        pass


@POSIX
def test_devices_and_pipes_are_written_directly(tmp_path: Path) -> None:
    with atomic_write(os.devnull) as file:
        file.write(b"gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    read, write = os.pipe()
    with atomic_write(f"/dev/fd/{write}") as file:
        file.write(b"through")
    os.close(write)
    with open(read, "rb") as end:
        assert end.read() == b"through"
    if os.path.exists("/dev/full"):
        with raises(FileError, errno=28), atomic_write("/dev/full") as file:
            file.write(b"x")


@POSIX
def test_a_long_name_that_the_system_takes_is_taken(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    with atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    with raises(FileError, errno=36) as caught, atomic_write(f"{path}{path.name}"):
        pass
    assert len(str(caught.value)) < 500


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_files_and_folders(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with raises(FileError, errno=13), atomic_write(path):
        pass
    assert path.read_bytes() == b"old"
    path.chmod(0o644)
    tmp_path.chmod(0o555)  # the file may be written, but no other beside it
    try:
        with atomic_write(path) as file:
            file.write(b"new")
        assert path.read_bytes() == b"new"
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", 3, None, b"a"])
def test_invalid_paths_raise(path: Any) -> None:
    with raises(FileError, path=path), atomic_write(path):
        pass


def test_errors_can_be_pickled(tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught, atomic_write(tmp_path):
        pass
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (str(twin), twin.path, twin.errno) == (str(caught.value), tmp_path, caught.value.errno)
