"""Pages of the reference that follow from the package: interface by layer, equations, MJCF and models."""

from __future__ import annotations

import inspect
import re
import shutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

import kic
from kic import results
from kic.io.library import find
from kic.io.mjcf_schema import ANY, SCHEMA, TREATMENTS
from kic.ui.cli.completion import read_model_index

# file, title and packages of the pages, in the order of the layers
LAYERS = (
    (
        "mechanism",
        "Mechanisms: describe, load, save",
        ("mechanism.mechanism", "description", "io"),
    ),
    (
        "configuration",
        "Configurations and evaluators",
        ("mechanism.configuration", "mechanism.evaluator", "mechanism.prepared"),
    ),
    ("coefficients", "Influence coefficients", ("kinematics",)),
    ("dynamics", "Dynamics", ("dynamics",)),
    (
        "analysis",
        "Mobility, assembly modes, singularities",
        (
            "transfer",
            "mechanism.input_sets",
            "analysis.positions",
            "analysis.sensitivity",
            "analysis.tolerances",
            "mechanism.whole_body",
        ),
    ),
    ("identification", "Identification", ("analysis.identification",)),
    ("forces", "Joint forces and actuation", ("analysis.joint_forces", "tasks.actuation")),
    ("operational_space", "Operational space and redundancy", ("tasks.operational_space",)),
    ("grasp", "Grasps and contacts", ("tasks.grasp",)),
    ("linear", "Linear models and equilibrium", ("analysis.linear",)),
    ("trajectory", "Trajectories", ("trajectory",)),
    ("simulation", "Simulation and control", ("simulation",)),
    ("sweeps", "Sweeps and metrics", ("analysis.sweeps",)),
    ("export", "Export", ("export", "numerics")),
    ("plotting", "Pictures, reports and viewer", ("plotting", "ui")),
    ("classics", "Classic arms", ("classics",)),
    ("errors", "Errors", ("errors",)),
)
MODULES = ("kic.classics",)  # public modules that are not attributes of `kic`
# modules of kic by the public names that are from them; `results` is a way to others
HOMES = {name: home for name, home in kic._HOME.items() if name != "results"}
HOMES |= {f"results.{name}": home for name, home in results._HOME.items()}
# packages with an index of equations
INDEXED = ("kic.kinematics", "kic.dynamics", "kic.transfer", "kic.analysis.linear")


def members(module: ModuleType) -> list[str]:
    """Return the public functions and classes of a module, in the order of their definition."""
    own = (n for n, x in vars(module).items() if getattr(x, "__module__", "") == module.__name__)
    names = getattr(module, "__all__", None) or own
    return [
        n
        for n in names
        if n[0] != "_" and callable(getattr(module, n)) and inspect.getdoc(getattr(module, n))
    ]


def table(names: list[str], module: str | None = "kic") -> str:
    """Return the reStructuredText of a table of names with a page for each."""
    lines = "\n   ".join(names)
    owner = f".. currentmodule:: {module}\n\n" if module else ""
    return f"{owner}.. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n   {lines}\n"


def heading(title: str, mark: str) -> str:
    """Return a heading."""
    return f"{title}\n{mark * len(title)}\n"


def layer(title: str, packages: tuple[str, ...]) -> str:
    """Return the page of a layer: the public names of its packages."""
    homes = [n for p in packages for n, home in HOMES.items() if f"{home}.".startswith(f"{p}.")]
    modules = {n: found(f"kic.{n}") for n in homes if inspect.ismodule(found(f"kic.{n}"))}
    modules |= {m: import_module(m) for m in MODULES if m.removeprefix("kic.") in packages}
    parts = [heading(title, "=")]
    for package in packages:
        about = inspect.getdoc(import_module(f"kic.{package}"))
        if about and len(packages) == 1:
            parts.append(about.split("\n\n")[0] + "\n")
    classes = [n for n in homes if inspect.isclass(found(f"kic.{n}"))]
    functions = [n for n in homes if n not in modules and n not in classes]
    if functions:
        parts += [heading("Functions", "-"), table(functions)]
    if classes:
        parts += [heading("Classes", "-"), table(classes)]
    for name, module in modules.items():
        public = name if name.startswith("kic.") else f"kic.{name}"
        about = (inspect.getdoc(module) or "").split("\n\n")[0] + "\n"
        parts.append(heading(f"``{public}``", "-"))
        if about not in parts:
            parts.append(about)
        parts.append(table(members(module), public))
    return "\n".join(parts)


def public(path: str) -> str | None:
    """Return the documented name of an object of kic, or None."""
    for name, home in HOMES.items():
        for full in (
            f"kic.{home}.{name.rpartition('.')[2]}",
            f"kic.{home}" if home.endswith(f".{name}") else "",
        ):
            if full and (path == full or path.startswith(f"{full}.")):
                return f"kic.{name}{path.removeprefix(full)}"
    owner = path.split(".")[1]
    return path if owner in kic._HOME or f"kic.{owner}" in MODULES else None


def equations() -> list[tuple[str, str]]:
    """Return the rows (equation, name of the object) of all indices of equations."""
    rows = []
    for package in INDEXED:
        lines = (inspect.getdoc(import_module(package)) or "").split("Equation index")[1].splitlines()
        rows += [m.groups() for m in (re.match(r"(\S.*?)\s{2,}`(kic\.[\w.]+)`", line) for line in lines) if m]

    def place(row: tuple[str, str]) -> tuple[str, bool, int, int]:
        """Return the chapter, its tables last, and the first and last number, wider ranges first."""
        numbers = re.findall(r"(\w)[-.](\d+)", row[0])
        return numbers[0][0], row[0].startswith("Table"), int(numbers[0][1]), -int(numbers[-1][1])

    return sorted(dict.fromkeys(rows), key=place)


def equation_pages() -> dict[str, str]:
    """Return the index of equations and the page of the internal functions that it names."""
    lines = [
        heading("Index of equations", "="),
        "Equations and tables of the dissertation with the public calls that compute them, and internal "
        "functions with their arithmetic. A range is the derivation of one result. See the "
        ":doc:`errata of the sources </reference/errata>` for misprints.\n",
        ".. list-table::",
        "   :header-rows: 1\n",
        "   * - equation",
        "     - public call",
        "     - internal function",
    ]
    internal = []
    cells: dict[str, tuple[list[str], list[str]]] = {}
    for equation, path in equations():
        name = public(path) or path
        row = cells.setdefault(equation, ([], []))
        # operators have no page of their own
        row[public(path) is None].append(f":py:obj:`{name} <{name.partition('.__')[0]}>`")
        if public(path) is None:
            internal.append(path)
    for equation, row in cells.items():
        lines += [f"   * - {equation}", *(f"     - {', '.join(names)}".rstrip() for names in row)]
    others = {p for p in internal if not inspect.isclass(found(p.rpartition(".")[0]))}
    owners = {p.rpartition(".")[0] for p in internal if inspect.isclass(found(p.rpartition(".")[0]))}
    page = [
        heading("Internal functions of the index", "="),
        "Functions that the index of equations names and that are not part of the public interface. They may "
        "change without notice.\n",
        table(sorted(others | owners), None),
    ]
    return {"equations": "\n".join(lines) + "\n", "internals": "\n".join(page)}


def mjcf_page() -> str:
    """Return the table of the elements and attributes of MJCF with their treatment."""
    lines = [
        heading("MJCF: treatment of elements and attributes", "="),
        "`from_mjcf` reads the model that MuJoCo compiles from a file. An attribute that is not in this "
        "table has a remark, and is an error with ``strict=True``. The table has an element once, wherever "
        "it occurs; elements of ``<default>`` are those whose attributes they give.\n",
    ]
    lines += [f"* **{kind}**: {about}" for kind, about in TREATMENTS.items()]
    lines += [
        "",
        ".. list-table::",
        "   :header-rows: 1\n",
        "   * - element",
        "     - treatment",
        "     - attributes",
    ]
    for element, kinds in SCHEMA.items():
        for kind, names in kinds.items():
            words = "all" if names == ANY else ", ".join(f"``{name}``" for name in names.split())
            lines += [f"   * - ``{element}``", f"     - {kind}", f"     - {words}"]
    return "\n".join(lines) + "\n"


def models_page() -> str:
    """Return the page of the shipped models: a table, and a section of each with its texts."""
    lines = [
        heading("Shipped models", "="),
        "``kic.load(name)`` loads a model, and the command ``kic list`` prints this table.\n",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: auto\n",
        "   * - model",
        "     - degrees of freedom",
        "     - title",
    ]
    sections = []
    for name in kic.model_names():
        model = read_model_index(find(name))
        lines += [f"   * - `{name}`_", f"     - {len(model.coordinates)}", f"     - {model.title}"]
        names = ", ".join(f"``{row}``" for row in model.coordinates)
        texts = (
            f"**{model.title}**",
            model.about.strip(),
            f"Coordinates: {names}.",
            f"Source: {model.source.strip()}",
        )
        sections += [heading(name, "-"), *(f"{text}\n" for text in texts)]
    return "\n".join([*lines, "", *sections])


def found(path: str) -> object:
    """Return the object of a dotted path."""
    names = path.split(".")
    for k in range(len(names), 0, -1):
        try:
            owner: object = import_module(".".join(names[:k]))
        except ImportError:
            continue
        for name in names[k:]:
            owner = getattr(owner, name)
        return owner
    raise ImportError(path)


def write(folder: Path) -> None:
    """Write all pages to a folder; if one changes, remove all others that were generated."""
    assigned = tuple(f"{package}." for _, _, packages in LAYERS for package in packages)
    others = sorted({home.split(".")[0] for home in HOMES.values() if not f"{home}.".startswith(assigned)})
    layers = [*LAYERS, *((name, name.replace("_", " ").capitalize(), (name,)) for name in others)]
    pages = {name: layer(title, packages) for name, title, packages in layers} | equation_pages()
    pages |= {"mjcf": mjcf_page(), "models": models_page()}
    old = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.rst")}
    if old != pages:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, text in pages.items():
            (folder / f"{name}.rst").write_text(text, encoding="utf-8")
