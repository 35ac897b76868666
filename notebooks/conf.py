"""Settings of the documentation: `sphinx-build -n -W -j auto notebooks build/docs`."""

from __future__ import annotations

import re
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.ext import autosummary
from sphinx.roles import XRefRole
from sphinx.util.parallel import make_chunks, parallel_available

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import forked_kernels  # noqa: E402
import layers_picture  # noqa: E402
import reference_pages  # noqa: E402

import kic  # noqa: E402
from kic.ui.cli.warm_up import compile_kernels  # noqa: E402

# `kic.metrics` and the like are imported on first use and stand elsewhere: their public names for autodoc
for name in kic.__all__:
    if isinstance(getattr(kic, name), ModuleType):
        sys.modules.setdefault(f"kic.{name}", getattr(kic, name))

project = "kic"
author = "the kic developers"
project_copyright = author
release = version = kic.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
]
templates_path = ["_templates"]
exclude_patterns = ["README.md", "inventories"]
source_suffix = {
    ".rst": "restructuredtext",
    ".md": "myst-nb",
    ".ipynb": "myst-nb",
}  # generated pages: the first

# pages
html_theme = "pydata_sphinx_theme"
html_title = f"kic {release}"
html_static_path = ["_static"]
html_css_files = ["kic.css"]
html_show_sourcelink = False
html_domain_indices = False
toc_object_entries_show_parents = "hide"
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}

# cells: warnings on stderr are errors of the build
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_output_stderr = "error"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# the interface: every public name has a page, types and names in backticks are links
reference_pages.write(HERE / "reference" / "api")
layers_picture.save(HERE / "reference" / "api" / "layers.svg")
autosummary_generate = True
autosummary.WELL_KNOWN_ABBREVIATIONS += ("p.", "pp.")  # do not end a summary
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    "bool": ":class:`python:bool`",
    "scalar": "scalar",
    "numpy": "numpy",
    "Path": ":class:`python:pathlib.Path`",
    "Executor": ":class:`python:concurrent.futures.Executor`",
    "Rotation": ":class:`scipy:scipy.spatial.transform.Rotation`",
    "RigidTransform": ":class:`scipy:scipy.spatial.transform.RigidTransform`",
    "Axes": ":class:`matplotlib:matplotlib.axes.Axes`",
    "Figure": ":class:`matplotlib:matplotlib.figure.Figure`",
}
numpydoc_xref_aliases |= {
    path.rpartition(".")[2]: f":obj:`{path.rpartition('.')[2]} <kic.{path}>`"
    for path in reference_pages.HOMES
    if path.rpartition(".")[2][0].isupper()
}


def inventory(lines: str, target: Path) -> str:
    """Write the inventory that a text lists, and return the address of its documentation."""
    name, edition, address, entries = lines.split("\n", 3)
    head = f"# Sphinx inventory version 2\n{name}\n{edition}\n"
    head += "# The remainder of this file is compressed using zlib.\n"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(head.encode() + zlib.compress(entries.encode()))
    return address.removeprefix("# ")


# Links to other projects without a network. `inventories` lists the few entries that are used.
BUILT = HERE.parent / "build" / "inventories"
intersphinx_mapping = {}
for path in sorted((HERE / "inventories").glob("*.txt")):
    built = BUILT / f"{path.stem}.inv"
    intersphinx_mapping[path.stem] = (inventory(path.read_text(encoding="utf-8"), built), str(built))

default_role = "name"


class Name(XRefRole):
    """Text in single backticks: a link if it is a documented name, otherwise code."""

    def process_link(
        self, env: Any, refnode: nodes.Element, has_explicit_title: bool, title: str, target: str
    ) -> tuple[str, str]:
        """Mark the reference, so that a name without a page is no error."""
        refnode["refdomain"], refnode["reftype"], refnode["name"] = "py", "obj", True
        refnode["py:module"] = env.ref_context.get("py:module")
        refnode["py:class"] = env.ref_context.get("py:class")
        return title, target


def resolve_name(app: Sphinx, env: Any, node: pending_xref, content: nodes.Node) -> nodes.Node | None:
    """Return a link to the documented object of a name, or its text."""
    if not node.get("name"):
        return None
    domain, target = env.get_domain("py"), node["reftarget"].removesuffix("()")
    places = [f"{node.get('py:module')}.{node.get('py:class')}.{target}"]
    if target[:1].isupper() or "." in target:
        places += [f"kic.{target}", f"kic.results.{target}", target]
    for place in places:
        if place in domain.objects:
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", place, node, content)
    return content


def escape_bars(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape bars outside code, which reStructuredText takes for substitutions: absolute values, norms."""
    for k, line in enumerate(lines):
        parts = re.split(r"(`+[^`]*`+)", line)
        lines[k] = "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in parts)


def skip_member(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which have no docstrings of their own."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field") else None


# accents are placed well by few browsers and fonts; combining characters by all
ACCENT = re.compile(r"<mover[^>]*>\s*<mi>(\w)</mi>\s*<mo[^>]*>(˙˙˙|˙|¨)</mo>\s*</mover>")
COMBINING = {"˙": "\u0307", "¨": "\u0308", "˙˙˙": "\u20db"}


def accented(match: re.Match[str]) -> str:
    """Return a symbol with dots as one identifier."""
    return f'<mi style="font-style: italic">{match[1]}{COMBINING[match[2]]}</mi>'


def mathml(self: Any, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers display without scripts."""
    text = re.sub(r"\\tag\{([^}]*)\}", r"\\qquad\\text{(\1)}", node.astext())
    text = re.sub(r"(\\t?frac)(\d)(\d)", r"\1{\2}{\3}", text).replace(r"\dots", r"\ldots")
    block = isinstance(node, nodes.math_block)
    formula = ACCENT.sub(accented, tex2mathml(text.strip(), as_block=block))
    self.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def prepare_reading(app: Sphinx, env: Any, names: list[str]) -> None:
    """Prepare the execution of pages with cells, and share them among the processes that read pages."""
    if not names or app.config.nb_execution_mode == "off":
        return
    compile_kernels()
    if not app.parallel or app.parallel == 1 or not parallel_available:
        return
    forked_kernels.use()
    with_cells = [name for name in names if has_cells(Path(env.doc2path(name)))]
    others = [name for name in names if name not in with_cells]
    size = len(make_chunks(names, app.parallel)[0])  # number of pages that one process reads
    shares = [with_cells[k :: app.parallel] for k in range(app.parallel)]
    names.clear()
    for share in shares:
        names += share
        while others and len(names) % size:
            names.append(others.pop())
    names += others


def write_replay(app: Sphinx, exception: Exception | None) -> None:
    """Write the replay of the guide to the viewer."""
    if exception is None and app.builder.format == "html":
        turn = kic.load("four-bar").path({"A": np.linspace(0, 2 * np.pi, 250)})
        viewer = turn.view(trace="tip")
        viewer.save(Path(app.outdir) / "four-bar-replay.html")
        viewer.stop()


def has_cells(path: Path) -> bool:
    """Return True if a page has cells to execute."""
    return path.suffix == ".ipynb" or "{code-cell}" in path.read_text(encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Register the role, the resolver and the writer of formulas."""
    app.add_role("name", Name())
    app.connect("env-before-read-docs", prepare_reading)
    app.connect("build-finished", write_replay)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("missing-reference", resolve_name, priority=100)
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))


html_math_renderer = "mathml"
