"""No package calls a higher one.

import-linter enforces the order of the packages (`pyproject.toml`). This test reads what it cannot see:
imports by string, calls through objects of types that are imported for type checkers, and registered methods.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from layers import height as height_of
from layers import layers, members, wings

import kic

ROOT = Path(kic.__file__).parent
ANY_MODULE = "import_module"
# modules that are named by data: optional packages, kernels for the process that compiles, registered methods
BY_NAME = {
    "kernels.second_process.serve: import_module",
    "numerics.optional.import_optional: import_module",
    "numerics.registration.import_wing: import_module",
}


@cache
def module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def paths() -> list[Path]:
    """Return the modules of the package; `library_build` has only scripts."""
    found = (p for p in ROOT.rglob("*.py") if p.parent.name != "library_build")
    return sorted(
        p for p in found if p.name != "__main__.py" and p not in (ROOT / "__init__.py", ROOT / "results.py")
    )


def height(name: str) -> int:
    """Return the height of a dotted module below kic; the root itself and other packages are lowest."""
    known = name == ANY_MODULE or name.split(".")[0] in layers()
    return height_of(name) if known else -1


def called(node: ast.Call) -> str:
    """Return the name of the function or method that is called."""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (module below kic, name) that a statement or a call imports."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kic":
        for alias in node.names:
            home = (node.module or "").removeprefix("kic").removeprefix(".")
            yield home or kic._HOME.get(alias.name, alias.name), alias.name
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.startswith("kic."):
                yield alias.name.removeprefix("kic."), alias.name
    elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
        text = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
        if isinstance(text, ast.Constant):
            yield str(text.value).removeprefix("kic."), "import_module"
        else:
            yield ANY_MODULE, "import_module"


@cache
def nodes(path: Path) -> list[tuple[str, ast.AST]]:
    """Return the imports, calls and functions of a module, with the dotted name of their function."""
    found, todo = list[tuple[str, ast.AST]](), [("", module(path))]
    while todo:
        owner, node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            owner = f"{owner}.{node.name}".lstrip(".")
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call | ast.FunctionDef):
            found.append((owner, node))
        todo += [(owner, child) for child in ast.iter_child_nodes(node)]
    return found


def type_only(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes of modules and classes that only type checkers execute."""
    scopes = [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef))]
    ifs = [n for scope in scopes for n in scope.body if isinstance(n, ast.If)]
    blocks = [n for n in ifs if "TYPE_CHECKING" in ast.unparse(n.test)]
    return {node for block in blocks for statement in block.body for node in ast.walk(statement)}


@cache
def methods(name: str, kind: str) -> frozenset[str]:
    """Return the public methods that a class of a module defines itself."""
    path = ROOT / Path(*name.split(".")).with_suffix(".py")
    if not path.exists():
        return frozenset()
    bodies = [n.body for n in module(path).body if isinstance(n, ast.ClassDef) and n.name == kind]
    found = (n.name for body in bodies for n in body if isinstance(n, ast.FunctionDef))
    return frozenset(method for method in found if not method.startswith("_"))


@cache
def defined_up_to(limit: int) -> frozenset[str]:
    """Return the names of functions and methods in modules up to a height."""
    low = (p for p in paths() if height(".".join(p.relative_to(ROOT).with_suffix("").parts)) <= limit)
    return frozenset(n.name for p in low for _, n in nodes(p) if isinstance(n, ast.FunctionDef))


def calls_upward() -> Iterator[str]:
    """Yield calls and imports upward that the rule does not allow."""
    for path in paths():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        own, hidden, borne = height(name), type_only(module(path)), set[str]()
        for owner, node in nodes(path):
            for home, imports in imported(node):
                if height(home) <= own:
                    continue
                if node in hidden:
                    borne |= methods(home, imports)
                else:
                    yield f"{name}.{owner}: {home}"
        for owner, node in nodes(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                method = called(node)
                if method in borne and method not in defined_up_to(own):
                    yield f"{name}.{owner}: {method}"


@pytest.mark.slow
def test_no_module_calls_higher_layers() -> None:
    assert set(calls_upward()) == BY_NAME


# private names of other packages that wings read, and how often; the list can only shrink
REACHES = {
    ("io", "_describe"): 2,
    ("io", "_label"): 1,
    ("io", "_shafts"): 4,
    ("io", "_terms"): 3,
    ("analysis", "_aims"): 1,
    ("analysis", "_prepared"): 1,
    ("simulation", "_tables"): 1,
    # all but one of `_rows` are of `MovingRows`, which belongs to tasks
    ("tasks", "_model"): 1,
    ("tasks", "_program"): 1,
    ("tasks", "_rows"): 3,
    ("ui", "_terms"): 1,
}
# of named tuples
DOCUMENTED = {"_replace", "_asdict", "_fields", "_make"}
# of the core, although wings have attributes with the same names
OF_CORE = {"_model", "_states", "_parts", "_rows", "_program", "_columns", "_tables"}


def is_own(node: ast.AST) -> bool:
    """Return True for an object in its own methods."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def private_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names of functions, classes, fields and attributes that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            yield node.attr
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            yield from ast.literal_eval(node.value)


def reaches(wing: str) -> Iterator[str]:
    """Yield the private attributes of other packages that a wing reads."""
    trees = [module(p) for p in paths() if p.relative_to(ROOT).parts[0] == wing]
    known = {name for tree in trees for name in private_names(tree)} - OF_CORE | DOCUMENTED
    for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)):
        if re.match("_[^_]", node.attr) and node.attr not in known and not is_own(node.value):
            yield node.attr


def test_wings_reach_the_core_by_its_documented_names() -> None:
    assert Counter((wing, name) for wing in wings() for name in reaches(wing)) == REACHES


def registered() -> Iterator[tuple[str, str, str, str]]:
    """Yield class, method, module below kic and function of every registered method."""
    for cls, modules in kic._METHODS.items():
        for home, names in modules.items():
            for name, _, function in (entry.replace("@", "").partition(":") for entry in names.split()):
                yield cls, name, home, function or name


@cache
def declared() -> dict[str, dict[str, str]]:
    """Return what classes declare for type checkers: by class and name, the function that is assigned."""
    found: dict[str, dict[str, str]] = {}
    for path in paths():
        for cls in (n for n in module(path).body if isinstance(n, ast.ClassDef)):
            hidden = [n for n in cls.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
            for node in (one for block in hidden for one in block.body):
                if isinstance(node, ast.Assign):
                    name = ast.unparse(node.targets[0])
                    found.setdefault(cls.name, {})[name] = ast.unparse(node.value).partition(".")[2]
    return found


def test_registered_methods_are_declared_for_type_checkers() -> None:
    properties = {"prepare", "export"}
    table: dict[str, dict[str, str]] = {}
    for cls, name, _, function in registered():
        if name not in properties:
            table.setdefault(cls, {})[name] = function
    assert declared() == table


# names of methods of wings that other classes have, too
SHARED = {"pose", "save", "track", "view"}


def test_wings_call_methods_of_other_wings_only_where_this_is_listed() -> None:
    """import-linter does not see such calls."""
    home = {name: place.split(".")[0] for _, name, place, _ in registered() if name not in SHARED}
    found = set[tuple[str, str, str]]()
    for path in paths():
        user = path.relative_to(ROOT).parts[0].removesuffix(".py")
        calls = (called(node) for _, node in nodes(path) if isinstance(node, ast.Call))
        found |= {(user, home[name], name) for name in calls if home.get(name) in wings()}
    assert not {call for call in found if call[0] != call[1] and call[1] not in wings().get(call[0], ())}


def test_registered_methods_are_functions_of_their_modules() -> None:
    for _, _, home, function in registered():
        found = getattr(import_module(f"kic.{home}"), function)
        assert inspect.isfunction(found)
        assert found.__module__ == f"kic.{home}"


def test_every_package_has_a_layer() -> None:
    names = {p.relative_to(ROOT).parts[0].removesuffix(".py") for p in paths()}
    assert names == {name for name in layers() if "." not in name}


def test_tests_have_the_layout_of_the_package() -> None:
    tests = ROOT.parent / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.glob("*/**/test_*.py")} - {Path("benchmarks")}
    assert all((ROOT / folder).is_dir() or folder == Path("errors") for folder in folders)
    assert {folder.parts[0] for folder in folders} == {name for name in layers() if "." not in name}


WITHOUT = """
import sys

missing = sys.argv[1:]

class Missing:
    def find_spec(self, name, path=None, target=None):
        if is_missing(name.removeprefix("kic.")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def is_missing(name):
    return any(f"{name}.".startswith(f"{package}.") for package in missing)

sys.meta_path.insert(0, Missing())
import kic
from kic.mechanism.configuration import Animated
from kic.mechanism.prepared import Evaluators
from kic.transfer.mobility.mobility import Mobility

ends = ("ground", "crank"), ("crank", "coupler"), ("coupler", "rocker"), ("ground", "rocker")
places = zip("ABCD", ends, ((0, 0, 0), (0, 1, 0), (3, 2, 0), (4, 0, 0)))
joints = [kic.Joint(name, "revolute", pair, at, (0, 0, 1)) for name, pair, at in places]
bodies = [kic.Body(b, mass=1.0, com=(1, 1, 0), inertia=1) for b in ("crank", "coupler", "rocker")]
motor = kic.Motor("M", ["A"], ratios=[20.0], inertia=1e-3)
m = kic.Mechanism("four-bar", bodies, joints, motors=[motor], coordinates=["A"]).replace("B", damping=0.1)
c = m.path({"A": [0.0, 0.1, 0.2]}, limits={"D": (-1, 1)})
c.coefficients("coupler", order=3, wrt="D"), c.motion("coupler", [1.0]), c.pose("coupler")
c.dynamics(motors=True), c.inverse_dynamics([1.0], [1.0]), c.forward_dynamics(effort={"C": 1.0})
m.mobility().summary(), m.summary(), c.summary(), c.potential_energy(), m.without("M"), m.lock({"A": 0.1})
m.prepare.coefficients("coupler")(c.state), m.prepare.forward_dynamics()(c.state, [[0.0]] * 3, [1.0])
for cls in (kic.Configuration, kic.Mechanism, Animated, Evaluators, Mobility):
    for home, names in kic._METHODS[cls.__name__].items():
        for name in names.replace("@", "").split():
            try:
                getattr(cls, name.partition(":")[0])
            except kic.MissingExtraError as error:
                assert is_missing(error.package.removeprefix("kic.")), error
                print(home.partition(".")[0], error.package.split(".")[1])
            else:
                assert not is_missing(home), name
for owner in (kic, kic.results):
    for name in owner.__all__:
        try:
            getattr(owner, name)
        except kic.MissingExtraError as error:
            assert is_missing(error.package.removeprefix("kic.")), error
        else:
            assert not is_missing(owner._HOME[name]), name
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "missing", ["all", *wings(), *(name for name in members() if name.split(".")[0] in wings())]
)
def test_the_rest_works_without_wings(missing: str) -> None:
    named = list(wings()) if missing == "all" else [missing]
    done = subprocess.run([sys.executable, "-c", WITHOUT, *named], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    users = {tuple(line.split()) for line in done.stdout.splitlines()}
    assert all(user == used or used in wings()[user] for user, used in users)


def test_the_table_of_wings_is_that_of_the_contract() -> None:
    text = (ROOT.parent / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [
        line.split("|")[1:4] for line in text.partition("| wing |")[2].partition("\n\n")[0].splitlines()[2:]
    ]
    names = [[re.findall("`([a-z]+)`", cell) for cell in row] for row in rows]
    assert {name: set(used) for (name,), _, used in names} == wings()
