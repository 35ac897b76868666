"""Public names, lazy imports, pickles, examples in docstrings, and rules for kernel sources."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from layers import wings

import kic

ROOT = Path(kic.__file__).parent


def type_checked_names(file: str) -> dict[str, str]:
    """Return the module of every public name, from the imports that only type checkers see."""
    found = {}
    for block in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If):
            for line in block.body:
                assert isinstance(line, ast.ImportFrom)
                for name in (alias.name for alias in line.names):
                    inside = ROOT / Path(*line.module.split(".")[1:], name)
                    whole = inside.with_suffix(".py").exists() or inside.is_dir()
                    found[name] = f"{line.module}.{name}" if whole else line.module
    return found


@pytest.mark.parametrize(("owner", "file"), [(kic, "__init__.py"), (kic.results, "results.py")])
def test_public_names_are_sorted_documented_and_found(owner: ModuleType, file: str) -> None:
    assert owner.__all__ == sorted(owner.__all__)
    assert type_checked_names(file) == {name: f"kic.{home}" for name, home in owner._HOME.items()}
    for name, home in owner._HOME.items():
        value = getattr(owner, name)
        assert getattr(value, "__module__", value) == f"kic.{home}" or value.__name__ == f"kic.{home}"
        assert value.__doc__, f"{name} has no docstring"
        assert vars(owner)[name] is value  # cached by the first access
    with pytest.raises(AttributeError, match=f"module '{owner.__name__}' has no attribute 'simulat'"):
        owner.simulat  # noqa: B018


def test_results_have_a_place_of_their_own() -> None:
    assert not set(kic.results.__all__) & set(kic.__all__)


def run(code: str) -> str:
    """Run code in a new Python process and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT.parent
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# packages that configurations, coefficients and dynamics need
LOADED = "print(*(m for m in sys.modules if m.startswith('kic') or m in 'numpy numba scipy'.split()))"
USE = """
import sys, kic
m = kic.load("MODEL")
c = m.at()
c = m.at({name: float(c.value(name)) for name in m.coordinates})
c.coefficients("OUTPUT", order=3), c.dynamics(), m.prepare.coefficients_and_dynamics("OUTPUT")(c.state)
"""


@pytest.mark.slow
def test_import_loads_only_the_registration_of_methods() -> None:
    loaded = "kic.numerics kic.numerics.registration kic"
    assert run(f"import sys, kic; {LOADED}") == loaded
    assert run(f"import sys, kic; dir(kic), kic.__all__, kic.__version__; {LOADED}") == loaded


@pytest.mark.slow
@pytest.mark.parametrize(("model", "output"), [("puma560", "link6"), ("five-bar", "E")])
def test_configurations_load_no_wing_but_that_of_files(model: str, output: str) -> None:
    code = USE.replace("MODEL", model).replace("OUTPUT", output)
    loaded = {name.removeprefix("kic.") for name in run(code + LOADED).split()}
    assert {
        "mechanism.configuration",
        "kernels.dynamics" if model == "puma560" else "kernels.transfer",
    } <= loaded
    assert not {name.partition(".")[0] for name in loaded} & (wings().keys() - {"io"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("import kic; print(sorted(set(kic.__all__) - set(dir(kic))), '__doc__' in dir(kic))", "[] True"),
        ("from kic import *; print(load.__name__, InputError.__name__)", "load InputError"),
        ("import kic.trajectory; print(callable(kic.trajectory.line))", "True"),
        ("import kic; print(callable(kic.trajectory.line), callable(kic.products.dot))", "True True"),
        ("import kic; help(kic.load)", "Help on function load in module kic.io.toml:"),
        ("import kic; help(kic)", "Help on package kic:"),
        ("from kic.simulation import controllers; import kic; print(kic.controllers is controllers)", "True"),
        (
            "import kic.trajectory.tracking as t, kic; print(kic.results.TrackingResult is t.TrackingResult)",
            "True",
        ),
    ],
)
def test_public_names_can_be_imported_in_any_order(code: str, printed: str) -> None:
    assert run(code).splitlines()[0] == printed


@pytest.mark.slow
def test_pickled_results_load_in_a_new_process(tmp_path: Path) -> None:
    c = kic.load("horn-two-link").at([0.1, 0.2])
    results = c.linearize(), c.ellipsoid(["tip.x", "tip.y"]), kic.InputError("no", name="tip")
    file = tmp_path / "results"
    file.write_bytes(pickle.dumps(results))
    code = f"import pickle; a, b, e = pickle.load(open({str(file)!r}, 'rb')); import kic; "
    printed = run(
        code
        + "print(a.K[1, 0], type(a) is kic.results.Linearization, type(b) is kic.results.Ellipsoid, e.name)"
    )
    assert printed == f"{results[0].K[1, 0]} True True tip"


MODULES = [m.name for m in pkgutil.walk_packages([str(ROOT)], "kic.") if not m.name.endswith("__main__")]


class Checker(doctest.OutputChecker):
    """Compare output with examples written for NumPy 2, also where NumPy 1 prints scalars without a type."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if np.__version__.startswith("1."):
            want = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", re.sub(r"np\.(True|False)_", r"\1", want))
        return super().check_output(want, got, optionflags)


@pytest.mark.slow_for("kic.mechanism.configuration", "kic.mechanism.mechanism", "kic.simulation.controllers")
@pytest.mark.parametrize("name", ["kic", *MODULES])
def test_examples_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(Checker(), verbose=False, optionflags=flags)
    for example in doctest.DocTestFinder().find(module, extraglobs={"kic": kic, "np": np}):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


def decorator_names(function: ast.FunctionDef) -> set[str]:
    """Return the names of the decorators of a function."""
    called = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return {d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", ast.unparse(d)) for d in called}


def kernel_decorators() -> set[str]:
    """Return the decorators that mark kernels: the public functions of a function in `kic.kernels.jit`."""
    jit = importlib.import_module("kic.kernels.jit")
    functions = [getattr(jit, name) for name in jit.__all__ if inspect.isfunction(getattr(jit, name))]
    return {f.__name__ for f in functions if next(iter(inspect.signature(f).parameters), "") == "function"}


# decorators of functions that are no kernels, but run in Python or while kernels are compiled
OTHER_DECORATORS = {"contextmanager", "extension", "lower_builtin", "lru_cache", "property", "type_callable"}


# modules of machine code, which have no kernels
MACHINERY = {"compiler", "library", "linking", "second_process"}
KERNELS = [p for p in sorted((ROOT / "kernels").glob("*.py")) if p.stem not in MACHINERY]


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_no_kernel_helper_returns_an_array_of_its_own(path: Path) -> None:
    """Kernels are compiled without reference counts: only views of arguments outlive a helper."""
    made = {"reshape", "empty", "zeros", "copy", "ravel", "view"}
    kernel = kernel_decorators() - {"extension"}  # functions that tell Numba of a kernel
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = decorator_names(function)
        unknown = names - kernel - OTHER_DECORATORS
        assert not unknown, f"{function.name} has decorators that this test does not know: {unknown}"
        if not names & kernel:
            continue
        arguments = {a.arg for a in function.args.args}
        for statement in ast.walk(function):
            if isinstance(statement, ast.Return) and statement.value is not None:
                for node in ast.walk(statement.value):
                    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
                        assert getattr(node.value, "id", "") in arguments, f"{function.name} returns a slice"
                    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                    assert not (called and node.func.attr in made), f"{function.name} returns an array"


def test_the_decorators_of_kernels_are_known() -> None:
    assert {"helper", "inlined", "reordered", "part", "entry"} <= kernel_decorators()


def constants_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the constants of a module with the text of their values."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name | ast.Tuple):
            target, value = statement.targets[0], statement.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            for name, number in pairs:
                if isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id, ast.unparse(number)


@pytest.mark.slow
def test_each_constant_has_one_value() -> None:
    values: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for name, text in () if path.stem == "layout" else constants_of(path):  # columns of packed arrays
            if re.search(r"_(RTOL|ATOL|MAX|MIN|FACTOR)$", name):
                values.setdefault(name, set()).add(text)
    assert {name for name, texts in values.items() if len(texts) > 1} == set()
