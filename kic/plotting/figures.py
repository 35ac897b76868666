"""Matplotlib figures without a window, in one style, saved atomically."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kic.errors import InputError, either, invalid
from kic.numerics.arrays import reals
from kic.numerics.files import atomic_write, file_name
from kic.numerics.optional import import_optional

# colours of Okabe and Ito, distinguishable with colour blindness; ink first
INK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#1a1a1a", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
)  # fmt: skip
# width of a journal column in inches
COLUMN = 3.5
# bounds of the width of a plot in inches; narrower plots have no room for labels
WIDTH_MIN, WIDTH_MAX = 2.0, 40.0
# dots per inch: labels are legible, and no printing press is finer
DPI_MIN, DPI_MAX = 10, 2400
FORMATS = ("png", "svg", "pdf")
STYLE = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.hashsalt": "kic",  # makes files reproducible
    "svg.fonttype": "path",
    "text.parse_math": False,  # names may contain $
}


def matplotlib_part(name: str) -> Any:
    """Import a module of Matplotlib, such as "figure"."""
    return import_optional(f"matplotlib.{name}", "plot", "Pictures need Matplotlib")


@contextmanager
def style() -> Iterator[Any]:
    """Apply the Matplotlib style of kic within the context and yield the package."""
    matplotlib = import_optional("matplotlib", "plot", "Pictures need Matplotlib")
    cycler = import_optional("cycler", "plot", "Pictures need Matplotlib").cycler
    colours = cycler(color=[BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, INK])
    with matplotlib.rc_context({**STYLE, "axes.prop_cycle": colours}):
        yield matplotlib


def new_figure(width: float = COLUMN, height: float = COLUMN) -> Any:
    """Return a Matplotlib figure that is not registered with pyplot and opens no window."""
    with style():
        return matplotlib_part("figure").Figure(figsize=(width, height), layout="constrained")


def literal(text: str) -> str:
    r"""Return text that Matplotlib prints literally, neither as mathematics nor as a hidden label.

    Examples
    --------
    >>> literal("$x^$"), literal("_A")
    ('\\$x^\\$', ' _A')
    """
    # legends omit labels that start with an underscore
    return " " * text.startswith("_") + text.replace("$", r"\$")


def axis_label(name: str, unit: str | None) -> str:
    """Return a name with its unit, if any, as a label.

    Examples
    --------
    >>> axis_label("tip.x", "m"), axis_label("conditioning", "")
    ('tip.x (m)', 'conditioning')
    """
    return literal(f"{name} ({unit})" if unit else name)


def check_width(width: Any) -> float:
    """Return the width of a plot in inches after checking it."""
    a = reals(width)
    if a is None or a.ndim or not WIDTH_MIN <= a <= WIDTH_MAX:
        raise invalid("width", f"must be {WIDTH_MIN:g} to {WIDTH_MAX:g} inches", width)
    return float(a)


def check_target(file: str | Path, formats: tuple[str, ...], what: str, dpi: Any) -> tuple[Path, str]:
    """Return the path and the format of a file to save after checking its suffix and `dpi`."""
    path = Path(file_name(file, "file"))
    kind = path.suffix.lower().removeprefix(".")
    if kind not in formats:
        message = (
            f"`file` of {what.lower()} must end in {either(f'.{x}' for x in formats)}, got {path.name!r}."
        )
        raise InputError(message, key="file", got=path.name, formats=formats)
    a = reals(dpi)
    if a is None or a.ndim or not DPI_MIN <= a <= DPI_MAX:
        raise invalid("dpi", f"must be a number from {DPI_MIN} to {DPI_MAX}", dpi)
    return path, kind


class Picture:
    """Figure made by kic; notebooks display it and `save` writes it to a file.

    The figure is not registered with pyplot: use `save`, because ``plt.savefig`` writes another figure.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes, or a tuple of them
        Axes of the plot, one per panel. Artists can be added before saving.
    """

    def __init__(self, figure: Any, axes: Any) -> None:
        self.figure, self.axes = figure, axes

    def save(self, file: str | Path, *, dpi: float = 200) -> Path:
        """Save the picture as png, svg or pdf, depending on the suffix of the file.

        Parameters
        ----------
        file : str or Path
        dpi : float
            Dots per inch of a png, 10 to 2400.

        Returns
        -------
        Path
            Path of the file.

        Raises
        ------
        FileError
            If the file cannot be written; an existing file stays unchanged.
        """
        path, kind = check_target(file, FORMATS, "A picture", dpi)
        data = self._bytes(kind, dpi)
        with atomic_write(path) as out:
            out.write(data)
        return path

    def svg(self) -> str:
        """Return the picture as an SVG element for an HTML page."""
        text = self._bytes("svg", 72).decode()
        return text[text.index("<svg") :]

    def __repr__(self) -> str:
        wide, high = self.figure.get_size_inches()
        return f"<{type(self).__name__} of {wide:.1f} × {high:.1f} inches; use save(file)>"

    def _bytes(self, kind: str, dpi: float) -> bytes:
        held = io.BytesIO()
        # without a date, files are reproducible
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        with style():
            self.figure.savefig(held, format=kind, dpi=dpi, metadata=metadata)
        return held.getvalue()

    def _repr_png_(self) -> bytes:
        return self._bytes("png", 150)
