"""Picture of the packages of kic and of the imports among them that are executed."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

import kic
from kic.plotting.figures import INK, new_figure, style

ROOT = Path(kic.__file__).parent
# names at the top that are no packages: the root, and ways to the others
DOORS = {"__init__", "__main__", "results"}
# sizes of boxes and distances of their centres (inches)
WIDTH, HEIGHT, ACROSS, DOWN = 2.5, 0.62, 3.3, 0.95
FILLS = {True: "#dbe7f3", False: "#f6ead2"}


@cache
def files() -> dict[str, list[Path]]:
    """Return the modules of each package, the one with its summary first."""
    found: dict[str, list[Path]] = {}
    for path in sorted(ROOT.rglob("*.py"), key=lambda path: (len(path.parts), path)):
        name = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if name not in DOORS and path.parent.name != "library_build":
            found.setdefault(name, []).append(path)
    return found


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node without those that only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from executed(child)


@cache
def imports(name: str) -> frozenset[str]:
    """Return the packages that a package imports."""
    nodes = [node for path in files()[name] for node in executed(ast.parse(path.read_text(encoding="utf-8")))]
    froms = [f"{n.module}.{alias.name}" for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names]
    whole = [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    used = {module.split(".")[1] for module in froms + whole if module.startswith("kic.")}
    return frozenset(used & files().keys() - {name})


@cache
def below(name: str) -> frozenset[str]:
    """Return the packages that a package imports, also through others."""
    return imports(name).union(*map(below, imports(name)))


@cache
def floor(name: str) -> int:
    """Return the length of the longest way of imports from a package."""
    return max((floor(used) + 1 for used in imports(name)), default=0)


def arrows() -> list[tuple[str, str]]:
    """Return the imports for which there is no longer way."""
    pairs = [(name, used) for name in files() for used in sorted(imports(name))]
    return [(name, used) for name, used in pairs if not any(used in below(other) for other in imports(name))]


def centres() -> dict[str, tuple[float, float]]:
    """Return the centres of the boxes: the longest way in the middle, others at either side."""
    way = [max(files(), key=floor)]
    while imports(way[-1]):
        way.append(max(sorted(imports(way[-1])), key=floor))
    found = {name: (0.0, DOWN * floor(name)) for name in way}
    for name in files().keys() - found.keys():
        found[name] = (ACROSS * (-1 if "io" in (name, *imports(name)) else 1), DOWN * floor(name))
    return found


def save(path: Path) -> None:
    """Draw the picture to a file; packages that import each other raise `RecursionError`."""
    at, core = centres(), {"mechanism", *below("mechanism")}
    size = 2 * ACROSS + WIDTH + 0.2, DOWN * max(map(floor, at)) + HEIGHT + 0.2
    with style():
        figure = new_figure(*size)
        figure.set_layout_engine("none")
        axes = figure.add_axes((0, 0, 1, 1), xlim=(-size[0] / 2, size[0] / 2), ylim=(-0.41, size[1] - 0.41))
        axes.set_axis_off()
        for name, used in arrows():
            (x, y), (u, v) = at[name], at[used]
            if x == u:
                start, end = (x, y - HEIGHT / 2), (u, v + HEIGHT / 2)
            else:  # from side to side, past the boxes between
                side = WIDTH / 2 if u > x else -WIDTH / 2
                start, end = (x + side, y - 0.1), (u - side, v + 0.1)
            how = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", end, start, arrowprops=how)
        for name, (x, y) in at.items():
            texts = [path.read_text(encoding="utf-8") for path in files()[name]]
            about = (ast.get_docstring(ast.parse(texts[0])) or "").split("\n")[0].rstrip(".")
            corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [WIDTH / 2, HEIGHT / 2]
            axes.fill(
                *(corners + np.array([x, y])).T, facecolor=FILLS[name in core], edgecolor=INK, linewidth=0.6
            )
            axes.text(x, y + 0.16, f"kic.{name}", weight="bold", ha="center", va="center", size=9)
            axes.text(x, y - 0.1, textwrap.fill(about, 54), ha="center", va="center", size=6)
            lines = sum(len(text.splitlines()) for text in texts)
            axes.text(x + WIDTH / 2 - 0.05, y + 0.23, f"{lines:,}", ha="right", va="center", size=5)
        figure.savefig(path)
