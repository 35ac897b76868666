"""`Configuration.animate`: animations of a motion, to scale and in real time."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kic.description.description import find_part
from kic.errors import FileError, MissingExtraError, invalid
from kic.mechanism.configuration import Configuration
from kic.numerics.arguments import names_of, positive
from kic.numerics.files import atomic_write
from kic.numerics.optional import import_optional
from kic.numerics.progress import Bar
from kic.plotting.canvas import Canvas, fit_to_page
from kic.plotting.figures import BLUE, check_target, matplotlib_part, style
from kic.plotting.overlays import curve_shapes
from kic.plotting.scene import DRAWN_MAX, PLACED, Scene, evenly_spaced
from kic.plotting.symbols import Shape, extent
from kic.plotting.view import ViewName

FORMATS = ("gif", "mp4")
# frames per second with a period in whole hundredths of a second, the time unit of a GIF
RATES = (1, 2, 4, 5, 10, 20, 25, 50)
_SCREEN_DPI = 150
FRAMES_MAX = 3000


class Animation:
    """Animated motion; notebooks play it and `save` writes it to a file.

    Attributes
    ----------
    frames : Configuration
        The configurations (F,).
    t : (F,) or None
        Times of the frames, if known.
    fps : float
        Frames per second.
    """

    def __init__(
        self,
        scene: Scene,
        t: np.ndarray | None,
        fps: float,
        traces: dict[str, np.ndarray],
        progress: bool | None,
    ) -> None:
        self.frames, self.t, self.fps = scene.shown, t, fps
        self._scene, self._traces, self._progress = scene, traces, progress
        self._gif: bytes | None = None

    def __len__(self) -> int:
        return len(self._scene.members)

    def __repr__(self) -> str:
        seconds = len(self) / self.fps
        return f"<Animation of {len(self)} frames, {seconds:.1f} s; use save(file)>"

    def save(self, file: str | Path, *, dpi: float = _SCREEN_DPI) -> Path:
        """Save the animation as gif or mp4, depending on the suffix of the file; mp4 requires ffmpeg.

        Parameters
        ----------
        file : str or Path
        dpi : float
            Dots per inch; the drawing is 3.5 inches wide.

        Returns
        -------
        Path
            Path of the file.

        Raises
        ------
        FileError
            If the file cannot be written; an existing file stays unchanged.
        MissingExtraError
            If mp4 is requested and the program ffmpeg is not found.
        """
        target, kind = check_target(file, FORMATS, "An animation", dpi)
        writers = matplotlib_part("animation")
        if kind == "mp4" and not writers.FFMpegWriter.isAvailable():
            raise MissingExtraError(
                "Saving mp4 requires the program ffmpeg, which was not found. Install it with the package "
                "manager of your system, or save a gif.",
                extra="ffmpeg",
            )
        # Matplotlib writers accept only paths
        with atomic_write(target) as stream, TemporaryDirectory() as folder:
            made = Path(folder) / f"motion.{kind}"
            try:
                self._write(made, writers, kind, dpi)
            except CalledProcessError as error:
                raise FileError(
                    f"{target}: cannot be written: ffmpeg failed with code {error.returncode}. "
                    "Save a gif, or check ffmpeg and the space for temporary files.",
                    path=target,
                ) from error
            stream.write(made.read_bytes())
        return target

    def _write(self, target: Path, writers: Any, kind: str, dpi: float) -> None:
        # the mp4 codec requires an even number of pixels
        canvas, still = self._stage(dpi if kind == "mp4" else None)
        if kind == "gif":
            writer = writers.PillowWriter(fps=self.fps)
        else:
            writer = writers.FFMpegWriter(fps=self.fps, codec="h264", extra_args=["-pix_fmt", "yuv420p"])
        bar = Bar(self._progress)
        # players show no transparency
        with style(), writer.saving(canvas.figure, str(target), dpi):
            for k in range(len(self)):
                self._frame(canvas, still, k)
                writer.grab_frame(facecolor="white")
                bar.show((k + 1) / len(self))
        bar.close()

    def _stage(self, even: float | None) -> tuple[Canvas, Any]:
        """Return a canvas with room for every frame and the function that draws one member."""
        scene, canvas = self._scene, Canvas()
        low, high = scene.extent
        sampled_members = evenly_spaced(len(self), DRAWN_MAX)
        margin = np.zeros(2), np.zeros(2)

        def make(points: float) -> list[Shape]:
            nonlocal margin
            draw_member, _ = scene.member_renderer(points)
            sampled = [draw_member(k)[0] for k in sampled_members]
            shapes = [shape for one in sampled for shape in one]
            # margin of symbols beyond their positions, applied to all members
            seen = scene.view.project(scene.anchors)
            a, b = zip(*(extent(one) for one in sampled), strict=True)
            margin = (
                np.max([seen[k].min(axis=0) - x for k, x in zip(sampled_members, a, strict=True)], axis=0),
                np.max([y - seen[k].max(axis=0) for k, y in zip(sampled_members, b, strict=True)], axis=0),
            )
            corners = np.stack([low - margin[0], high + margin[1]])
            return [*shapes, Shape(corners, None, None, 0.0, False, (0.0,)), *self._curves(len(self) - 1)]

        fit_to_page(canvas, low, high, make, 10.0 if self.t is not None else 0.0)
        if even is not None:
            width, height = canvas.figure.get_size_inches() * even
            canvas.figure.set_size_inches(2 * round(width / 2) / even, 2 * round(height / 2) / even)
        return canvas, scene.member_renderer(canvas.points)[0]

    def _curves(self, k: int) -> list[Shape]:
        """Return the curves of traced points up to a frame."""
        view = self._scene.view
        return [s for name, p in self._traces.items() for s in curve_shapes(p[: k + 1], view, BLUE, name)]

    def _frame(self, canvas: Canvas, draw_member: Any, k: int) -> None:
        scene = self._scene
        canvas.clear()
        canvas.paint([*draw_member(k)[0], *self._curves(k)])
        canvas.triad(scene.view)
        units = scene.description.units
        canvas.bar(units.length)
        if self.t is not None:
            pt = 1 / canvas.points
            at = np.array([canvas.left + 6 * pt, canvas.top - 4 * pt])
            # enough digits to distinguish consecutive frames
            step = float(np.diff(self.t[:2])[0]) if len(self.t) > 1 else 1.0
            digits = max(0, int(np.ceil(-np.log10(step) - 1e-9)))
            canvas.text(at, f"t = {self.t[k]:.{digits}f} {units.time}", ha="left", va="top")

    def _repr_html_(self) -> str:
        if self._gif is None:
            with TemporaryDirectory() as place:
                self._gif = self.save(Path(place) / "motion.gif").read_bytes()
        source = b64encode(self._gif).decode()
        return f'<img alt="{escape(self.frames.name)}, animated" src="data:image/gif;base64,{source}">'


def animate(
    motion: Any,
    *,
    fps: float = 25,
    speed: float = 1.0,
    trace: str | Iterable[str] = (),
    view: ViewName | None = None,
    progress: bool | None = None,
) -> Animation:
    """Animate the motion, or a batch of configurations (F,), one for each frame.

    Parameters
    ----------
    fps : float
        Frames per second: 1, 2, 4, 5, 10, 20, 25 or 50, which all players show evenly.
    speed : float
        Simulated time per second; 0.1 shows slow motion. Ignored for a batch.
    trace : str or list of str
        Points, frames, centres of mass and bodies whose curves are drawn as they move.
    view : str or (2,) floats, optional
        As in `Configuration.draw`.
    progress : bool, optional
        Show a progress bar while saving; by default at a terminal, if it takes long.

    Returns
    -------
    Animation
        With a method `save`; notebooks play it.

    Raises
    ------
    InputError
        If the batch has no shape (F,) or no valid member; if `fps` or `speed` is
        invalid; if there are more than 3000 frames.

    Examples
    --------
    >>> turn = kic.load("four-bar").path({"A": np.linspace(0.0, 2 * np.pi, 50, endpoint=False)})
    >>> film = turn.animate(trace="tip")
    >>> film.save("four-bar.gif")  # doctest: +SKIP
    """
    import_optional("matplotlib", "plot", "Pictures need Matplotlib")
    frames, t = motion_frames(motion, fps, positive("speed", speed))
    scene = Scene(frames, view, most=FRAMES_MAX)
    for name in (traced := names_of(trace, "trace")):
        find_part(scene.description, name, *PLACED)
    values = {name: np.stack([scene.shown.value(f"{name}.{x}") for x in "xyz"], axis=-1) for name in traced}
    return Animation(scene, None if t is None else t[scene.members], fps, values, progress)


def motion_frames(motion: Any, fps: float, speed: float) -> tuple[Configuration, np.ndarray | None]:
    """Return the configurations to show and their times, if known."""
    if not isinstance(fps, int | float | np.number) or fps not in RATES:
        raise invalid("fps", f"must be one of {', '.join(map(str, RATES))}", fps)
    t, configurations = getattr(motion, "t", None), getattr(motion, "configuration", motion)
    if len(configurations.batch) != 1:
        remedy = "Animate a path, such as m.path({…})."
        raise invalid("configuration", "must have a batch shape (F,)", configurations.batch, remedy)
    if t is None:
        _check_count(len(configurations.ok))
        return configurations, None
    if not len(t):
        return configurations, t
    count = int((t[-1] - t[0]) * fps / speed * (1 + 1e-12)) + 1
    _check_count(count)
    when = t[0] + np.arange(count) * (speed / fps)
    if callable(getattr(motion, "at", None)):
        return motion.at(when), when
    nearest = np.searchsorted((t[1:] + t[:-1]) / 2, when)
    return configurations[nearest], t[nearest]


def _check_count(count: int) -> None:
    if count > FRAMES_MAX:
        rule = f"must have at most {FRAMES_MAX} frames"
        raise invalid("configuration", rule, count, "Reduce `fps` or increase `speed`.", frames=count)
