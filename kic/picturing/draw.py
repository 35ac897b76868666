"""`draw`: a mechanism in a posture, as an engineer draws it."""

from __future__ import annotations

from typing import Any

from kic.configuration import Configuration
from kic.errors import InputError, shown
from kic.picturing.canvas import Canvas, settle
from kic.picturing.figures import Picture
from kic.picturing.scene import Scene
from kic.picturing.sketch import Mark
from kic.picturing.symbols import Shape
from kic.picturing.views import ViewName


class MechanismPicture(Picture):
    """A drawing of a mechanism; its methods add to it and hand it back.

    Attributes
    ----------
    figure, axes : Matplotlib's
        As of every picture of kic.
    shapes : list of Shape
        What is painted, in the order of painting.
    """

    def __init__(self, scene: Scene, canvas: Canvas, names: bool) -> None:
        super().__init__(canvas.figure, canvas.axes)
        self._scene, self._canvas, self._names = scene, canvas, names
        self.shapes: list[Shape] = []
        self._marks: list[list[Mark]] = []
        self._paint()

    def _paint(self) -> None:
        scene, canvas = self._scene, self._canvas
        canvas.clear()

        def make(points: float) -> list[Shape]:
            shapes, self._marks, self._size = scene.shapes(points)
            return shapes

        self.shapes = settle(canvas, *scene.extent, make, 9.0 if self._names else 0.0)
        canvas.paint(self.shapes)
        canvas.triad(scene.view)
        canvas.bar(scene.drawing.units.length)


def draw(
    configuration: Configuration, *, names: bool = False, view: ViewName | None = None, ax: Any = None
) -> MechanismPicture:
    """Draw a mechanism as an engineer does: links, pairs, ground, platforms, springs, contacts, to scale.

    Planar mechanisms are seen along their normal, spatial ones from the side, in orthographic projection, so
    that lengths across the view are true. Joints of the mechanism's coordinates are vermilion.

    Parameters
    ----------
    configuration : Configuration
        A posture; or a batch, of which the first and the last are drawn in full and between them so many
        faintly that they are 12 at most, evenly taken. Members without posture are left out.
    names : bool
        Whether names of joints, bodies and points are written beside them.
    view : str or (2,) floats, optional
        "top", "front" or "side", or azimuth and elevation in degrees of who looks; by default a good one.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a figure of its own, a column wide.

    Returns
    -------
    MechanismPicture
        Shown by a notebook; `save` writes it.

    Raises
    ------
    InputError
        If no member has a posture; for symbols or complex steps; for a view that is none.
    MissingExtraError
        Without Matplotlib.

    Examples
    --------
    >>> import kic
    >>> picture = kic.draw(kic.load("four-bar").at({"A": 1.0}))
    >>> picture.save("four-bar.svg")  # doctest: +SKIP
    """
    if not isinstance(configuration, Configuration):
        raise InputError(f"draw() needs a posture, such as mechanism.at([...]), got {shown(configuration)}.")
    return MechanismPicture(Scene(configuration, view), Canvas(ax), names)
