#!/usr/bin/env python3
"""Change kic in 30 places, one at a time, and count the changes that fast tests find.

The operators are those that PIT applies by default. The base of the change, which is the seed, selects one
place in each package and module of the layer table. The tests of its folder in `tests` run until one fails,
then other tests that call the changed function. Changes that no test can find are listed in EQUIVALENT.

usage: .ci/mutants.py SEED [NUMBER...]       (default: all numbers)
"""

from __future__ import annotations

import ast
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from layers import members  # noqa: E402

MUTANTS, FOUND_MIN = 30, 27
# a fast test that takes longer does not end; a mutant of kernels compiles them (s)
HANGS_S = 200

NEGATED = {
    ast.Lt: ("<", ">="), ast.LtE: ("<=", ">"), ast.Gt: (">", "<="), ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
BOUNDARY = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
MATH = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Pow: ("**", "*"),
    ast.Mod: ("%", "*"), ast.FloorDiv: ("//", "*"),
}  # fmt: skip

# mutants that no test can find, with the reason
EQUIVALENT: dict[str, str] = {}


@dataclass(frozen=True)
class Mutant:
    """Replacement of the text between two offsets of a module."""

    package: str
    path: Path
    function: str
    entry: int  # offset of the first statement of the function; 0 outside of functions
    old: str
    start: int
    stop: int
    change: str

    @property
    def new(self) -> str:
        """The text of the module with the replacement."""
        return self.old[: self.start] + self.change + self.old[self.stop :]

    def __str__(self) -> str:
        row = self.old.count("\n", 0, self.start)
        before, after = (text.splitlines()[row].strip() for text in (self.old, self.new))
        return f"{self.path.relative_to(ROOT)}: {self.function}: `{before}` → `{after}`"


def mutants(package: str, path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a module, without annotations, decorators and texts."""
    text = path.read_text(encoding="utf-8")
    begin = [0]
    for line in text.splitlines(keepends=True):
        begin.append(begin[-1] + len(line))

    def start(node: ast.expr | ast.stmt) -> int:
        return begin[node.lineno - 1] + column(node.lineno, node.col_offset)

    def stop(node: ast.expr | ast.stmt) -> int:
        return begin[node.end_lineno - 1] + column(node.end_lineno, node.end_col_offset)

    def column(line: int, byte: int) -> int:
        return len(text[begin[line - 1] : begin[line]].encode()[:byte].decode())

    def between(left: ast.expr, right: ast.expr, old: str, new: str) -> tuple[int, int, str]:
        """Replace the operator between two expressions."""
        found = re.search(re.escape(old).replace(r"\ ", r"\s+"), text[stop(left) : start(right)])
        return stop(left) + found.start(), stop(left) + found.end(), new

    def whole(node: ast.expr | ast.stmt, new: str) -> tuple[int, int, str]:
        return start(node), stop(node), new.format(text[start(node) : stop(node)])

    def changes(node: ast.AST) -> Iterator[tuple[int, int, str]]:
        match node:
            case ast.Compare():
                for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators):  # noqa: B905
                    for table in (BOUNDARY, NEGATED):
                        if type(op) in table:
                            yield between(left, right, *table[type(op)])
            case ast.BinOp() if type(node.op) in MATH:
                yield between(node.left, node.right, *MATH[type(node.op)])
            case ast.AugAssign() if type(node.op) in MATH:
                yield between(node.target, node.value, *(f"{op}=" for op in MATH[type(node.op)]))
            case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
                yield whole(node, f"({text[start(node.operand) : stop(node.operand)]})")
            case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare):
                yield whole(node.test, "not ({})")
            case ast.Expr(value=ast.Call()):
                yield whole(node, "pass")
            case ast.Return(value=ast.Constant(value=bool(value))):
                yield whole(node.value, str(not value))
            case ast.Return(value=ast.expr()) if ast.unparse(node.value) != "None":
                yield whole(node.value, "None")

    todo: list[tuple[str, int, ast.AST]] = [("", 0, ast.parse(text))]
    while todo:
        function, entry, node = todo.pop()
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if is_for_types or isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            # a decorator of the first statement is above it
            lines = [
                one.lineno for statement in body[:1] for one in ast.walk(statement) if hasattr(one, "lineno")
            ]
            entry = begin[min(lines, default=1) - 1]
        for change in changes(node):
            yield Mutant(package, path, function, entry, text, *change)
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list", "type_params"):
                children = value if isinstance(value, list) else [value]
                todo += [(function, entry, child) for child in children if isinstance(child, ast.AST)]


def drawn(seed: str) -> list[Mutant]:
    """Return mutants, one of each layer, again and again."""
    draw, found = random.Random(seed), list[Mutant]()
    for package in islice(cycle(sorted(members())), MUTANTS):
        folder = ROOT.joinpath("kic", *package.split("."))
        paths = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
        choices = [one for path in paths for one in mutants(package, path)]
        while str(one := draw.choice(choices)) in EQUIVALENT:
            pass
        found.append(one)
    return found


def folder_of(package: str) -> str:
    """Return the folder of the tests of a package or module, or of the package that it is in."""
    folder = Path("tests", *package.split("."))
    return str(folder if (ROOT / folder).is_dir() else folder.parent)


def callers(changed: list[Mutant], tree: Path) -> list[list[str]]:
    """Return the tests that call the function of each mutant: all for kernels and outside of functions."""
    tests = [set() if one.entry and one.package != "kernels" else {"tests"} for one in changed]
    calls = tree / "calls"
    (tree / "recorded_calls.py").write_text(
        f"""
import os
seen = set()
def record(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").split("[")[0].split(" (")[0]
    if test and (number, test) not in seen:
        seen.add((number, test))
        with open({str(calls)!r}, "a", encoding="utf-8") as file:
            print(number, test, file=file)
""",
        encoding="utf-8",
    )
    places = [(n, one) for n, one in enumerate(changed) if not tests[n]]
    # from the end, so that the offsets hold
    for n, one in sorted(places, key=lambda place: -place[1].entry):
        path = tree / one.path.relative_to(ROOT)
        text = path.read_text(encoding="utf-8")
        indent = re.match(" *", text[one.entry :])[0]
        call = f"{indent}__import__('recorded_calls').record({n})\n"
        path.write_text(text[: one.entry] + call + text[one.entry :], encoding="utf-8")
    pytest(tree, "-n", "auto", "tests")
    for line in calls.read_text(encoding="utf-8").splitlines() if calls.exists() else ():
        number, test = line.split(" ", 1)
        tests[int(number)].add(test)
    return [sorted(one) for one in tests]


def pytest(tree: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run fast tests in a copy of the project."""
    limit = f"-o faulthandler_timeout={HANGS_S} -o faulthandler_exit_on_timeout=true".split()
    fixed = ["-m", "not slow", "-p", "no:cacheprovider", "-rfE", *limit]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *fixed, *options],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def failure(mutant: Mutant, tests: list[str], tree: Path, cache: Path) -> str:
    """Return the first of some tests that fails with a mutant; it is empty if all pass."""
    path = tree / mutant.path.relative_to(ROOT)
    (tree / "named").write_text("\n".join(tests), encoding="utf-8")
    env = {"KIC_CACHE_DIR": str(cache)} if mutant.package == "kernels" else {}
    path.write_text(mutant.new, encoding="utf-8")
    run = pytest(tree, "-x", "@named", **env)
    path.write_text(mutant.old, encoding="utf-8")
    if run.returncode == 0:
        return ""
    if "Timeout (" in run.stderr:
        return f"a test that does not end within {HANGS_S} s"
    named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", run.stdout, flags=re.MULTILINE)
    test = named[1] if named else "@named"
    if pytest(tree, test).returncode:
        sys.exit(f"{test} of {mutant.package} also fails without the mutant:\n{run.stdout}{run.stderr}")
    return test if named else f"code {run.returncode} of pytest"


def main(seed: str, *numbers: str) -> None:
    """Print each mutant with the test that finds it, and exit with 1 if tests find too few."""
    if subprocess.call(["git", "diff", "--quiet", "HEAD"], cwd=ROOT):
        sys.exit("Mutants are tested in clones of the last commit. Commit your changes first.")
    subprocess.run([sys.executable, ROOT / "kic/kernels/library_build/build.py", "--cached"], check=True)
    chosen = [(n, one) for n, one in enumerate(drawn(seed), 1) if not numbers or str(n) in numbers]
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(cores) as pool:
        copies = [Path(place, str(n)) for n in range(cores + 1)]
        for copy in copies:
            subprocess.run(["git", "clone", "-q", ROOT, copy], check=True)
        trees = SimpleQueue[Path]()
        for copy in copies[1:]:
            trees.put(copy)

        def tested(case: tuple[int, Mutant], tests: list[str]) -> bool:
            number, mutant = case
            here, begin = trees.get(), time.monotonic()
            try:
                test = tests and failure(mutant, tests, here, Path(place, f"cache{number}"))
            finally:
                trees.put(here)
            seconds = time.monotonic() - begin
            print(f"{number:2} {mutant}\n   {seconds:.0f} s: {test or 'not found'}", flush=True)
            return bool(test)

        print("By the tests of its package:")
        found = list(pool.map(tested, chosen, [[folder_of(one.package)] for _, one in chosen]))
        rest = [case for case, known in zip(chosen, found, strict=True) if not known]
        print("By other tests that call the function:")
        others = callers([one for _, one in rest], copies[0]) if rest else []
        found_later = list(pool.map(tested, rest, others))
    total = sum(found) + sum(found_later)
    print(f"{total} of {len(chosen)} mutants found, {sum(found)} of them by tests of their package")
    if not numbers and total < FOUND_MIN:
        sys.exit(f"At least {FOUND_MIN} of {MUTANTS} are to be found.")


if __name__ == "__main__":
    main(*sys.argv[1:])
