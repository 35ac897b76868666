"""The library of kernels: machine code of a wheel, which needs neither a compiler nor Numba."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import python
from library_types import BUILD, SIGNATURES

import kic
from kic.io.library import models_directory
from kic.kernels import jit, library, linking
from kic.kernels.linking import kernels_in as linking_kernels_in

ROOT = BUILD.parents[3]
VERSIONS = re.escape(jit.NUMBA_VERSIONS)


@pytest.mark.slow
def test_recorded_types_are_current() -> None:
    """The types of arguments follow from the calls of the package, not from a list."""
    code = "import json, build; print(json.dumps(build.recorded()))"
    told = python("-c", f"import sys; sys.path.insert(0, {str(BUILD.parent)!r}); {code}")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == json.loads(SIGNATURES.read_text(encoding="utf-8"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder with an empty file in place of a library."""
    monkeypatch.setattr(library, "_FOLDER", tmp_path)
    monkeypatch.setenv("KIC_CACHE_DIR", str(tmp_path))
    library.source_key.cache_clear()
    (tmp_path / "kernels.so").touch()
    yield tmp_path
    library.source_key.cache_clear()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"sources": "0"}, "was built from other sources"),
        ({"sha256": "0"}, "is damaged"),
        ({"file": "no.so"}, "is missing"),
        ({"file": 3}, "has a damaged description"),
        ({}, "cannot be loaded"),
        (None, "has a damaged description"),
    ],
)
def test_unusable_libraries_warn(place: Path, changes: dict[str, object] | None, problem: str) -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of no bytes
    description = {"file": "kernels.so", "sha256": empty, "sources": library.source_key()}
    text = "" if changes is None else json.dumps(description | changes)
    (place / library.DESCRIPTION).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "MODULE", "_no_library")
        patch.delenv("KIC_KERNELS", raising=False)
        with pytest.warns(kic.KernelLibraryWarning, match=problem):
            assert library.load() is None
        patch.setenv("KIC_KERNELS", "jit")
        assert library.load() is None


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File in a folder of a cache."""
    if not hasattr(os, "geteuid"):
        pytest.skip("there are no owners")
    monkeypatch.setattr(library, "_warned", set())
    file = tmp_path / "cache" / "folder" / "file.nbc"
    library.write(file, b"")
    return file


def others(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file belong to another user."""
    plain, its = os.lstat, os.lstat(place)

    def lstat(path: Path) -> Any:
        found = plain(path)
        if not os.path.samestat(found, its):
            return found
        return SimpleNamespace(st_mode=found.st_mode, st_uid=12345, st_gid=found.st_gid)

    monkeypatch.setattr(os, "lstat", lstat)


@pytest.mark.parametrize(
    ("place", "mode", "safe"),
    [
        ("folder/file.nbc", 0o644, True),
        ("folder/file.nbc", 0o646, False),
        ("folder/file.nbc", 0o1646, False),  # of a file, this bit has no meaning
        ("folder", 0o757, False),
        ("folder", 0o1757, True),
        (".", 0o757, False),
        (".", 0o1757, True),
        ("folder/file.nbc", None, False),
        ("folder", None, False),
        (".", None, False),
    ],
)
@pytest.mark.parametrize("linked", [False, True])
def test_files_that_others_can_change(
    cached: Path, monkeypatch: pytest.MonkeyPatch, place: str, mode: int | None, safe: bool, linked: bool
) -> None:
    """They are files of others, or open to others, or in such a folder, also behind a link."""
    root = cached.parents[1]
    assert not library.exposed(cached)
    if mode is None:
        others(root / place, monkeypatch)
    else:
        (root / place).chmod(mode)
    file = cached
    if linked:
        (root.parent / "link").symlink_to(Path("cache", "folder"))
        file = root.parent / "link" / "file.nbc"
    assert bool(library.exposed(file)) != safe
    if not safe:
        with pytest.raises(PermissionError):
            library.read(file)


def test_links_of_others_are_not_followed(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = cached.parents[2] / "link"
    link.symlink_to(cached.parent)
    others(link, monkeypatch)
    assert library.exposed(link / "file.nbc") == f"{link} belongs to another user"


@pytest.mark.parametrize(("owner", "safe"), [(12345, True), (12346, False)])
def test_the_owner_of_the_root_folder(
    cached: Path, monkeypatch: pytest.MonkeyPatch, owner: int, safe: bool
) -> None:
    """In containers without root, the folders of the system belong to a user without a name."""
    top = Path(*cached.parts[:2])
    owners = {os.lstat("/").st_ino: 12345, os.lstat(top).st_ino: owner}
    plain = os.lstat

    def lstat(path: Path) -> Any:
        found = plain(path)
        mode, group = found.st_mode, found.st_gid
        return SimpleNamespace(st_mode=mode, st_uid=owners.get(found.st_ino, found.st_uid), st_gid=group)

    monkeypatch.setattr(os, "lstat", lstat)
    assert bool(library.exposed(cached)) != safe
    deeper = plain(cached.parent).st_ino
    owners[deeper] = 12345
    assert library.exposed(cached)


@pytest.mark.parametrize(
    ("group", "members", "safe"),
    [("me", [], True), ("me", ["me"], True), ("me", ["you"], False), ("users", [], False), (None, [], False)],
)
def test_groups_that_can_write(
    cached: Path, monkeypatch: pytest.MonkeyPatch, group: str | None, members: list[str], safe: bool
) -> None:
    """Many systems give each user a group, whose members may write by default."""
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")

    def found(_: int) -> Any:
        if group is None:
            raise KeyError
        return SimpleNamespace(gr_name=group, gr_mem=members)

    monkeypatch.setattr(grp, "getgrgid", found)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="me"))
    mode = stat.S_IFREG | 0o664
    assert library._is_open(mode, 1000) != safe
    assert library._is_open(mode | 0o002, 1000)
    assert not library._is_open(mode, 0)


def test_files_of_the_cache_are_safe_with_any_umask(cached: Path) -> None:
    before = os.umask(0)
    try:
        file = cached.parent / "new" / "folder" / "file.nbc"
        library.write(file, b"")
    finally:
        os.umask(before)
    assert not library.exposed(file)


class Planted:
    """Object that makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("door", ["kernel", "kernels to be linked", "library", "description of a library"])
def test_planted_files_are_not_executed(door: str, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark, folder = cached.parents[2] / "mark", cached.parent
    if door.startswith("kernel"):
        data = pickle.dumps(Planted(mark))
        cached.write_bytes(hashlib.sha256(data).digest() + data)
        others(cached, monkeypatch)
        if door == "kernel":
            with pytest.raises(PermissionError):
                library.read(cached)
        else:
            assert linking_kernels_in(folder) == []
    else:
        name = cached.name if door == "library" else library.DESCRIPTION
        content = {"file": cached.name, "sha256": hashlib.sha256().hexdigest()}
        description = json.dumps(content | {"sources": library.source_key()})
        (folder / library.DESCRIPTION).write_text(description, encoding="utf-8")
        others(folder / name, monkeypatch)
        monkeypatch.setattr(library, "imported", lambda _: mark.touch())
        monkeypatch.setattr(library, "machine_folder", lambda: folder)
        monkeypatch.setattr(library, "uses_cache", lambda: True)
        monkeypatch.setenv("KIC_KERNELS", "")
        with pytest.warns(kic.KernelLibraryWarning, match="belongs to another user"):
            assert library.load() is None
    assert not mark.exists()


def test_no_library_is_a_checkout(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KIC_KERNELS", raising=False)
    assert library.load() is None


def has_compiler() -> bool:
    """Return True if this machine can link a library."""
    headers = Path(sysconfig.get_path("include"), "Python.h").exists()
    return headers and bool(shutil.which(shlex.split(os.environ.get("CC", "cc"))[0]))


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C compiler, or no headers of Python")

FIRST = """
import kic, sys
from kic.kernels.jit import link_used_kernels
c = kic.load("puma560").at([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
print(c.coefficients("link6", order=1).G.tobytes().hex(), "numba" in sys.modules)
link_used_kernels()
"""


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the processor is not described")
def test_compiled_kernels_are_linked_for_later_processes(tmp_path: Path) -> None:
    """Later processes load them without Numba, and compile those that are missing."""
    env = {"KIC_CACHE_DIR": str(tmp_path), "KIC_KERNELS": ""}
    told = python("-c", FIRST, CC="no-such-compiler", **env)
    assert told.stdout.split()[1:] == ["True"], told.stderr
    assert not list(tmp_path.rglob(f"{library.MODULE}*"))
    want = [told.stdout.split()[0], "True"]
    assert python("-c", FIRST, **env).stdout.split() == want  # from the cache, and linked
    told = python("-c", f"import sys; sys.modules['numba'] = None; {FIRST.strip()}", **env)
    assert (told.stdout.split()[:1], told.returncode) == (want[:1], 0), told.stderr
    more = FIRST.replace("print", "kic.load('puma560').at().motion('link6'); print")
    assert python("-c", more, **env).stdout.split() == want
    assert python("-c", more, **env).stdout.split() == [want[0], "False"]
    (file,) = tmp_path.rglob(library.DESCRIPTION)
    file.write_text("{}", encoding="utf-8")
    told = python("-c", FIRST, **env)
    assert told.stdout.split() == want
    assert "has a damaged description" in told.stderr
    assert not python("-c", FIRST, **env).stderr  # linked again
    # the build compiles with Numba, although there is a library
    made = tmp_path / "made"
    told = python(str(BUILD), "--cached", "constraint_jacobian.first_order", "--output", str(made), **env)
    assert told.returncode == 0, told.stderr
    assert library.described(made) == (json.loads((made / library.DESCRIPTION).read_text()), "")


def test_kernels_are_linked_after_each_use_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = pytest.importorskip("kic.kernels.compiler", reason="needs Numba")
    linked: list[object] = []
    monkeypatch.setattr(compiler, "used", {"name"})
    monkeypatch.setattr(library, "uses_cache", lambda: True)
    monkeypatch.setattr(linking, "link_for_this_machine", linked.append)
    jit.link_used_kernels()
    jit.link_used_kernels()
    assert len(linked) == 1
    compiler.used.add("another")
    jit.link_used_kernels()
    assert len(linked) == 2


@needs_compiler
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process links nothing")
@pytest.mark.skipif(not BUILD.exists() or not library.uses_cache(), reason="kernels were chosen")
@pytest.mark.skipif(library.machine_folder() is None, reason="the processor is not described")
def test_tests_run_from_the_linked_library() -> None:
    assert jit.LIBRARY is not None
    assert jit.LIBRARY.processor == library.HERE


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nm"), reason="no nm")
def test_kernels_share_no_helpers(tmp_path: Path) -> None:
    """Of helpers of the same name in several objects one would be used by all, and results depend on it."""
    python("-c", FIRST, KIC_CACHE_DIR=str(tmp_path))
    (file,) = tmp_path.rglob("*first_order*.nbc")
    compiled, _ = library.read(file)
    (tmp_path / "kernel.o").write_bytes(compiled.object)
    told = subprocess.run(
        ["nm", "-g", "--defined-only", tmp_path / "kernel.o"], capture_output=True, text=True, check=True
    )
    names = {line.split()[-1] for line in told.stdout.splitlines()}
    assert names == {compiled.symbol, f"{compiled.symbol}_words"}


@pytest.mark.slow
@needs_compiler
def test_the_library_and_numba_agree() -> None:
    """In all questions to all models, every array is the same bit for bit, and every kernel is called."""
    script = ROOT / "tests" / "agreeing_kernels.py"
    halves = [subprocess.Popen([sys.executable, script, half], stdout=subprocess.PIPE) for half in ("0", "1")]
    called = set()
    for process in halves:
        calls, differences = map(json.loads, process.communicate()[0].splitlines())
        assert differences == []
        called |= {(name, types) for name, types, _ in calls}
    known = json.loads(SIGNATURES.read_text(encoding="utf-8"))
    assert called == {(name, types) for name, forms in known.items() for types in forms}


# the only kernel of the small library computes the coefficients of open chains to first order
USE = """
import sys
sys.modules["numba"] = None
import numpy as np, kic
m = kic.load("puma560")
c = m.at(np.full(6, 0.3))
print(c.coefficients("link6", order=1).G.tobytes().hex())
from kic.kernels.constraint_jacobian import first_order
numbers = np.zeros((2, 3)), np.zeros((2, 3))
print(first_order.precompiled.py_func is first_order.py_func, first_order.types[0])
for bad in ((), (1,), (None,) * 5, (*numbers, *numbers, 1), (np.zeros((2, 3), np.int64),) * 5, ("",) * 40):
    try:
        first_order.precompiled(*bad)
    except TypeError as error:
        print(error)
try:
    c.coefficients("link6", order=2)
except kic.MissingExtraError as error:
    print(error)
"""


@pytest.mark.slow
@needs_compiler
def test_a_library_without_numba(tmp_path: Path) -> None:
    """A library of one kernel is built, loaded and called, and damaged."""
    shutil.copytree(ROOT / "kic", tmp_path / "kic", ignore=shutil.ignore_patterns("__pycache__", "_library*"))
    shutil.copytree(models_directory(), tmp_path / "models", dirs_exist_ok=True)
    kernels, name = tmp_path / "kic" / "kernels", "constraint_jacobian.first_order"
    processor = json.loads(
        python("-c", "import json, build; print(json.dumps(build.DEFAULT))", root=BUILD.parent).stdout
    )[-1]
    built = python(str(BUILD), name, "--processors", processor, "--output", str(kernels))
    assert built.returncode == 0, built.stderr
    told = python("-c", USE, root=tmp_path, KIC_KERNELS=processor)
    assert told.returncode == 0, told.stderr
    G, attributes, *errors, remedy = told.stdout.splitlines()
    want = kic.load("puma560").at(np.full(6, 0.3)).coefficients("link6", order=1).G
    found = np.frombuffer(bytes.fromhex(G)).reshape(want.shape)
    assert np.abs(found - want).max() <= 1e-13 * np.abs(want).max()
    assert attributes == "True l2d2d2d1d2"
    assert errors == [f"The kernel {name} has no machine code for these arguments."] * 6
    assert remedy == "Arguments of these types need Numba. Run: pip install 'kic[jit]'."
    # a library that is damaged is not loaded
    file = kernels / json.loads((kernels / library.DESCRIPTION).read_text(encoding="utf-8"))["file"]
    file.write_bytes(file.read_bytes()[:-1])
    told = python("-c", USE, root=tmp_path, KIC_KERNELS="")
    assert "is damaged. Numba compiles them." in told.stderr
    assert "Kernels without their library need Numba." in told.stderr


# modules of kic cannot import a name
CHANGED = """
import builtins, sys
plain = builtins.__import__
def changed(name, globals=None, locals=None, fromlist=(), level=0):
    if name == {module!r} and globals["__name__"].startswith("kic."):
        raise {error}({text!r}, name=name)
    return plain(name, globals, locals, fromlist, level)
builtins.__import__ = changed
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "error", "text"),
    [
        ("numba.core.caching", "ImportError", "cannot import name 'NullCache' from 'numba.core.caching'"),
        ("numba.np.arrayobj", "ImportError", "cannot import name 'make_array' from 'numba.np.arrayobj'"),
        ("llvmlite.binding", "ModuleNotFoundError", "No module named 'llvmlite.binding'"),
    ],
    ids=["name", "name that is imported late", "module"],
)
def test_internals_of_numba_that_changed_raise(module: str, error: str, text: str) -> None:
    """Commands print one message with the versions that work, and so does the last line of a traceback."""
    change = CHANGED.format(module=module, error=error, text=f"{text} (/a/path.py)")
    use = "import kic; kic.load('puma560').at([0.0] * 6).motion('link6')"
    told = python("-c", change + use, KIC_KERNELS="jit")
    line = told.stderr.splitlines()[-1]
    assert re.fullmatch(
        rf"kic\.errors\.MissingExtraError: Kernels without their library need Numba {VERSIONS}, got \S+: "
        rf"{text}\. Run: pip install --upgrade 'numba{VERSIONS}'\.",
        line,
    ), told.stderr
    command = "from kic.ui.cli.main import main; main(['simulate', 'puma560'])"
    told = python("-c", change + command, KIC_KERNELS="jit")
    assert (told.returncode, told.stdout) == (1, "")
    assert " ".join(told.stderr.split()) == line.replace("kic.errors.MissingExtraError", "Error")


def test_the_versions_of_numba_are_those_of_the_package() -> None:
    if not (project := ROOT / "pyproject.toml").exists():
        pytest.skip("an installed package has no pyproject.toml")
    text = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    needed = [*text["dependencies"], *text["optional-dependencies"]["jit"]]
    found = [line.partition(";")[0] for line in needed if line.startswith("numba")]
    assert found == [f"numba{jit.NUMBA_VERSIONS}"] * 2
