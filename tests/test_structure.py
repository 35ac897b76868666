"""The architecture as a test: imports point down, public names are what they say, docs run."""

from __future__ import annotations

import ast
import doctest
import importlib
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import kic

ROOT = Path(kic.__file__).parent


def checked_names() -> dict[str, str]:
    """Where type checkers find what is public: name to module, from the imports of kic that never run."""
    found = {}
    for block in ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If):
            for line in block.body:
                assert isinstance(line, ast.ImportFrom)
                for name in (alias.name for alias in line.names):
                    inside = ROOT / Path(*line.module.split(".")[1:], name)
                    whole = inside.with_suffix(".py").exists() or inside.is_dir()
                    found[name] = f"{line.module}.{name}" if whole else line.module
    return found


def test_public_names() -> None:
    assert kic.__all__ == sorted(kic.__all__)
    assert checked_names() == {name: f"kic.{home}" for name, home in kic._HOME.items()}
    for name, home in kic._HOME.items():
        value = getattr(kic, name)
        assert getattr(value, "__module__", value) == f"kic.{home}" or value.__name__ == f"kic.{home}"
        assert value.__doc__, f"{name} has no docstring"
        assert vars(kic)[name] is value  # found at once from now on
    with pytest.raises(AttributeError, match="module 'kic' has no attribute 'simulat'"):
        kic.simulat  # noqa: B018


def run(code: str) -> str:
    """What a new Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT.parent
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# rooms of questions, of which a posture, its coefficients and its dynamics need none but the classes whose
# methods ask, and what the arithmetic of closed loops loses in digits
LEAVES = sorted(
    {home.partition(".")[0] for home in kic._HOME.values() if (ROOT / home.partition(".")[0]).is_dir()}
)
ASKING = {"sharing.actuation", "tasks.taskspace", "grasping.holding", "linear.linearized"}
LOADED = (
    "print(*(m for m in sys.modules if m.startswith('kic') or m in 'numpy numba scipy pydantic'.split()))"
)
POSTURE = """
import sys, kic
m = kic.load("puma560")
c = m.at([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
c.coefficients("link6", 3), c.dynamics(), m.prepare("link6", dynamics=True)(c.state)
"""


@pytest.mark.slow
def test_importing_loads_no_room() -> None:
    assert run(f"import sys, kic; {LOADED}") == "kic"
    assert run(f"import sys, kic; dir(kic), kic.__all__, kic.__version__; {LOADED}") == "kic"


@pytest.mark.slow
def test_a_posture_loads_no_room_of_questions() -> None:
    loaded = {name.removeprefix("kic.") for name in run(POSTURE + LOADED).split()}
    assert {"configuration", "kernels.dynamics"} <= loaded
    rooms = {name for name in loaded if name.partition(".")[0] in LEAVES and "." in name}
    assert rooms == ASKING | {"questions.bifurcation"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import kic; print(sorted(set(kic.__all__) - set(dir(kic))), '__doc__' in dir(kic))", "[] True"),
        ("from kic import *; print(simulate.__name__, InputError.__name__)", "simulate InputError"),
        ("import kic.trajectory; print(callable(kic.trajectory.line))", "True"),
        ("import kic; print(callable(kic.trajectory.line), callable(kic.products.dot))", "True True"),
        ("import kic; help(kic.simulate)", "Help on function simulate in module kic.simulation.simulate:"),
        ("import kic; help(kic)", "Help on package kic:"),
        ("from kic.simulation import controllers; import kic; print(kic.controllers is controllers)", "True"),
        (
            "import kic.trajectory.tracking, kic; print(kic.TrackingResult is kic.trajectory.tracking.Following)",
            "True",
        ),
    ],
)
def test_public_names_are_found_any_way(code: str, told: str) -> None:
    assert run(code).splitlines()[0] == told


@pytest.mark.slow
def test_results_are_read_where_nothing_is_loaded(tmp_path: Path) -> None:
    """A pickle names the module of a result, which is loaded for it."""
    c = kic.load("horn-two-link").at([0.1, 0.2])
    results = c.linearize(), c.ellipsoid("velocity", ["tip.x", "tip.y"]), kic.InputError("no", name="tip")
    file = tmp_path / "results"
    file.write_bytes(pickle.dumps(results))
    code = f"import pickle; a, b, e = pickle.load(open({str(file)!r}, 'rb')); import kic; "
    told = run(code + "print(a.K[1, 0], type(a) is kic.Linearization, type(b) is kic.Ellipsoid, e.name)")
    assert told == f"{results[0].K[1, 0]} True True tip"


MODULES = [m.name for m in pkgutil.walk_packages([str(ROOT)], "kic.") if not m.name.endswith("__main__")]


@pytest.mark.parametrize("name", ["kic", *MODULES])
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


def test_constants_are_those_of_the_kernels() -> None:
    """Floors above the kernels say some of the layout again, so that they need not import the compiler."""
    from kic.kernels import layout
    from kic.kinematics import items, tree
    from kic.kinematics import queries as kinematics

    for module in (items, tree):
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, int) and name != "GROUND":
                assert getattr(layout, name) == value, name
    assert (kinematics.WANT_INERTIA, kinematics.WANT_LOADS) == (layout.WANT_INERTIA, layout.WANT_LOADS)
    from kic.kernels import transfer as compiled
    from kic.transfer import constraint_system as system
    from kic.transfer import coordinate_transfer as transfer

    names = "WANT_CURVATURE", "LOWER", "SCALE", "COLUMN_SCALE", "ALLOWED"
    assert [getattr(system, f"_{name}") for name in names] == [getattr(layout, name) for name in names]
    for name in ("PIVOT", "LARGEST", "LEFT", "QUALITY_WIDTH"):
        assert getattr(system, name) == getattr(compiled, name)
    assert transfer.GOOD_PIVOT == compiled.GOOD_PIVOT


@pytest.mark.parametrize("path", sorted((ROOT / "kernels").glob("*.py")), ids=lambda p: p.stem)
def test_no_kernel_helper_returns_an_array(path: Path) -> None:
    """Kernels count no references to arrays: one that is handed back could be freed too early."""
    made = {"reshape", "empty", "zeros", "copy", "ravel", "view"}
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        if not any(
            isinstance(d, ast.Name) and d.id in ("helper", "small", "entry") for d in function.decorator_list
        ):
            continue
        for statement in ast.walk(function):
            if isinstance(statement, ast.Return) and statement.value is not None:
                for node in ast.walk(statement.value):
                    assert not isinstance(node, ast.Slice), f"{function.name} returns a slice"
                    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                    assert not (called and node.func.attr in made), f"{function.name} returns an array"
