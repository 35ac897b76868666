"""Matplotlib as every picture of kic uses it: figures without a screen, one style, what to install."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kic.errors import InputError, short_repr
from kic.io.files import atomic_write
from kic.numerics.arrays import reals
from kic.numerics.optional import import_optional

# Okabe and Ito's colours, told apart by all eyes; ink first
INK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#1a1a1a", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
)  # fmt: skip
# inches: a journal's column, and both columns
COLUMN, PAGE = 3.5, 7.2
# inches: a plot is at least so wide, for its words, and at most
LEAST, MOST = 2.0, 40.0
# dots an inch: what is finer than any press is a mistake
DPI_MAX = 2400
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
    "svg.hashsalt": "kic",  # the same picture is the same file
    "svg.fonttype": "path",
    "text.parse_math": False,  # a name may hold $
}


def matplotlib_part(name: str) -> Any:
    """A module of Matplotlib, such as "figure", imported when first needed."""
    return import_optional(f"matplotlib.{name}", "plot", "Pictures need Matplotlib")


@contextmanager
def style() -> Iterator[Any]:
    """Matplotlib in kic's style, the user's settings back afterwards; hands over the module."""
    matplotlib = import_optional("matplotlib", "plot", "Pictures need Matplotlib")
    cycler = import_optional("cycler", "plot", "Pictures need Matplotlib").cycler
    colours = cycler(color=[BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, INK])
    with matplotlib.rc_context({**STYLE, "axes.prop_cycle": colours}):
        yield matplotlib


def new_figure(width: float = COLUMN, height: float = COLUMN) -> Any:
    """A Matplotlib figure of its own: not pyplot's, so no window opens and nothing is left behind."""
    with style():
        return matplotlib_part("figure").Figure(figsize=(width, height), layout="constrained")


def literal(text: str) -> str:
    r"""Return a text that Matplotlib shows letter by letter, neither as mathematics nor as a hidden label.

    Examples
    --------
    >>> literal("$x^$"), literal("_A")
    ('\\$x^\\$', ' _A')
    """
    # a label that starts with an underscore is left out of legends
    return " " * text.startswith("_") + text.replace("$", r"\$")


def axis_label(name: str, unit: str | None) -> str:
    """Return a name with its unit, if it has one, as a label.

    Examples
    --------
    >>> axis_label("tip.x", "m"), axis_label("conditioning", "")
    ('tip.x (m)', 'conditioning')
    """
    return literal(f"{name} ({unit})" if unit else name)


def check_width(width: Any) -> float:
    """A width that a user gave a plot: so narrow that its words find no room, or no number, is refused."""
    a = reals(width)
    if a is None or a.ndim or not LEAST <= a <= MOST:
        raise InputError(
            f"Expected `width` to be a number of inches from {LEAST:g} to {MOST:g}, got {short_repr(width)}."
        )
    return float(a)


def check_target(file: str | Path, formats: tuple[str, ...], what: str, dpi: Any) -> tuple[Path, str]:
    """Where something is saved, and as what, by the ending of the name; other endings are refused."""
    path = Path(file)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in formats:
        raise InputError(
            f"{what} is saved as {', '.join(formats[:-1])} or {formats[-1]}, by the ending of the name; got "
            f"{path.name!r}.",
            formats=formats,
        )
    a = reals(dpi)
    if a is None or a.ndim or not 0 < a <= DPI_MAX:
        raise InputError(f"Expected `dpi` to be dots an inch, at most {DPI_MAX}, got {short_repr(dpi)}.")
    return path, kind


class Picture:
    """A figure that kic drew; a notebook shows it, `save` writes it.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes, or a tuple of them
        Where it is drawn: anything may be added to it before it is saved. Of several panels one each.
    """

    def __init__(self, figure: Any, axes: Any) -> None:
        self.figure, self.axes = figure, axes

    def save(self, file: str | Path, dpi: float = 200) -> Path:
        """Write the picture; the ending of the name says how: png, svg or pdf.

        Parameters
        ----------
        file : str or Path
        dpi : float
            Dots an inch of a png.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            Another ending, or `dpi` that are none.
        FileError
            If the file cannot be written; a file that was there stays as it was.
        """
        path, kind = check_target(file, FORMATS, "A picture", dpi)
        data = self._bytes(kind, dpi)
        with atomic_write(path) as out:
            out.write(data)
        return path

    def svg(self) -> str:
        """The picture as an SVG element, to stand in a page."""
        text = self._bytes("svg", 72).decode()
        return text[text.index("<svg") :]

    def __repr__(self) -> str:
        wide, high = self.figure.get_size_inches()
        return f"<{type(self).__name__} of {wide:.1f} × {high:.1f} inches: save(file) writes it>"

    def _bytes(self, kind: str, dpi: float) -> bytes:
        held = io.BytesIO()
        # no date inside: the same picture is the same file
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        with style():
            self.figure.savefig(held, format=kind, dpi=dpi, metadata=dated)
        return held.getvalue()

    def _repr_png_(self) -> bytes:
        return self._bytes("png", 150)
