"""`animate`: a motion as moving pictures, true in scale and in time."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.errors import FileError, InputError, MissingExtraError, short_repr
from kic.io.files import atomic_write
from kic.numerics.arguments import names_of
from kic.numerics.arrays import reals
from kic.numerics.optional import import_optional
from kic.numerics.progress import Bar
from kic.plotting.canvas import NEEDED, Canvas, settle
from kic.plotting.figures import BLUE, check_target, style
from kic.plotting.overlays import curve_shapes
from kic.plotting.scene import MEMBERS_MAX, Scene, evenly_spaced
from kic.plotting.symbols import Shape, extent
from kic.plotting.view import ViewName

FORMATS = ("gif", "mp4")
# frames a second: what all players show evenly, for a GIF counts hundredths of a second
RATES = (1, 2, 4, 5, 10, 20, 25, 50)
# a picture that moves is for the screen
_DPI = 150
# more frames than these are a mistake rather than a wish
_MOST = 3000


class Animation:
    """A motion that kic drew; a notebook plays it, `save` writes it.

    Attributes
    ----------
    frames : Configuration
        The postures (F,) that are shown, one after the other.
    t : (F,) or None
        Their times, where there are any.
    fps : float
        Frames a second.
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
        return f"<Animation of {len(self)} frames, {seconds:.1f} s: save(file) writes it>"

    def save(self, file: str | Path, dpi: float = _DPI) -> Path:
        """Write the animation; the ending of the name says how: gif, or mp4, which needs ffmpeg.

        Parameters
        ----------
        file : str or Path
        dpi : float
            Dots an inch; the drawing is 3.5 inches wide.

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
        MissingExtraError
            For mp4 where the program ffmpeg is not found.
        """
        target, kind = check_target(file, FORMATS, "An animation", dpi)
        writers = import_optional("matplotlib.animation", "plot", NEEDED)
        if kind == "mp4" and not writers.FFMpegWriter.isAvailable():
            raise MissingExtraError(
                "An mp4 needs the program ffmpeg, which was not found. Install it with your system's "
                "packages, or save a gif.",
                extra="ffmpeg",
            )
        # Matplotlib's writers take no open file
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
        # video counts its pixels in pairs
        canvas, still = self._stage(dpi if kind == "mp4" else None)
        if kind == "gif":
            writer = writers.PillowWriter(fps=self.fps)
        else:
            writer = writers.FFMpegWriter(fps=self.fps, codec="h264", extra_args=["-pix_fmt", "yuv420p"])
        bar = Bar(self._progress)
        # a screen shows no transparency of a film
        with style(), writer.saving(canvas.figure, str(target), dpi):
            for k in range(len(self)):
                self._frame(canvas, still, k)
                writer.grab_frame(facecolor="white")
                bar.show((k + 1) / len(self))
        bar.close()

    def _stage(self, even: float | None) -> tuple[Canvas, Any]:
        """Paper on which every frame has room, and what draws a member on it."""
        scene, canvas = self._scene, Canvas()
        low, high = scene.extent
        some = evenly_spaced(len(self), MEMBERS_MAX)
        over = np.zeros(2), np.zeros(2)

        def make(points: float) -> list[Shape]:
            nonlocal over
            posture, _ = scene.pen(points)
            sampled = [posture(k)[0] for k in some]
            shapes = [shape for one in sampled for shape in one]
            # how far symbols stand out beyond their places, also of the members that are not sampled
            seen = scene.view.project(scene.anchors)
            a, b = zip(*(extent(one) for one in sampled), strict=True)
            over = (
                np.max([seen[k].min(axis=0) - x for k, x in zip(some, a, strict=True)], axis=0),
                np.max([y - seen[k].max(axis=0) for k, y in zip(some, b, strict=True)], axis=0),
            )
            corners = np.stack([low - over[0], high + over[1]])
            return [*shapes, Shape(corners, None, None, 0.0, False, (0.0,)), *self._curves(len(self) - 1)]

        settle(canvas, low, high, make, 10.0 if self.t is not None else 0.0)
        if even is not None:
            width, height = canvas.figure.get_size_inches() * even
            canvas.figure.set_size_inches(2 * round(width / 2) / even, 2 * round(height / 2) / even)
        return canvas, scene.pen(canvas.points)[0]

    def _curves(self, k: int) -> list[Shape]:
        """What points traced up to a frame."""
        view = self._scene.view
        return [s for name, p in self._traces.items() for s in curve_shapes(p[: k + 1], view, BLUE, name)]

    def _frame(self, canvas: Canvas, posture: Any, k: int) -> None:
        scene = self._scene
        canvas.clear()
        canvas.paint([*posture(k)[0], *self._curves(k)])
        canvas.triad(scene.view)
        units = scene.description.units
        canvas.bar(units.length)
        if self.t is not None:
            pt = 1 / canvas.points
            at = np.array([canvas.left + 6 * pt, canvas.top - 4 * pt])
            # as many digits as tell one frame from the next
            step = float(np.diff(self.t[:2])[0]) if len(self.t) > 1 else 1.0
            digits = max(0, int(np.ceil(-np.log10(step) - 1e-9)))
            canvas.text(at, f"t = {self.t[k]:.{digits}f} {units.time}", ha="left", va="top")

    def _repr_html_(self) -> str:
        if self._gif is None:
            with TemporaryDirectory() as place:
                self._gif = self.save(Path(place) / "motion.gif").read_bytes()
        source = b64encode(self._gif).decode()
        return f'<img alt="{self.frames.name}, moving" src="data:image/gif;base64,{source}">'


def animate(
    motion: Any,
    *,
    fps: float = 25,
    speed: float = 1.0,
    trace: str | Iterable[str] = (),
    view: ViewName | None = None,
    progress: bool | None = None,
) -> Animation:
    """Show a motion as moving pictures.

    Parameters
    ----------
    motion : Simulation, Course, Following or Configuration
        A run of `simulate`, which is interpolated to the frames' times; what has `t` and `configuration`,
        such as a trajectory on a mechanism, of which the moments nearest to the frames' times are shown; or
        a batch of postures (F,), one a frame.
    fps : float
        Frames a second: 1, 2, 4, 5, 10, 20, 25 or 50, which all players show evenly.
    speed : float
        Time that passes in a second of watching; 0.1 shows fast motions slowly. Of no meaning for a batch.
    trace : str or list of str
        Points and bodies whose curves grow while they move.
    view : str or (2,) floats, optional
        As in `draw`.
    progress : bool, optional
        Whether a bar is shown while it is written; by default at a terminal, if it takes long.

    Returns
    -------
    Animation
        A notebook plays it, `save` writes a gif or an mp4.

    Raises
    ------
    InputError
        For something else, a batch that is no row of postures, or no posture; rates or speeds that can not
        be shown; more than 3000 frames.
    MissingExtraError
        Without Matplotlib.

    Examples
    --------
    >>> import kic
    >>> import numpy as np
    >>> turn = kic.load("four-bar").path({"A": np.linspace(0.0, 2 * np.pi, 50, endpoint=False)})
    >>> film = kic.animate(turn, trace="tip")
    >>> film.save("four-bar.gif")  # doctest: +SKIP
    """
    import_optional("matplotlib", "plot", NEEDED)
    if not isinstance(fps, int | float | np.number) or fps not in RATES:
        raise InputError(f"Expected `fps` to be one of {', '.join(map(str, RATES))}, got {short_repr(fps)}.")
    pace = reals(speed)
    if pace is None or pace.ndim or not pace > 0:
        raise InputError(f"Expected `speed` to be a positive number, got {short_repr(speed)}.")
    frames, t = _frames(motion, fps, float(pace))
    scene = Scene(frames, view, most=_MOST)
    for name in (traced := names_of(trace, "trace")):
        scene.description.part(name, "points", "bodies")
    values = {name: np.stack([scene.shown.value(f"{name}.{x}") for x in "xyz"], axis=-1) for name in traced}
    return Animation(scene, None if t is None else t[scene.members], fps, values, progress)


def _frames(motion: Any, fps: float, speed: float) -> tuple[Configuration, np.ndarray | None]:
    """Postures to show, and their times if they have some."""
    t, moving = getattr(motion, "t", None), getattr(motion, "configuration", motion)
    if not isinstance(moving, Configuration):
        raise InputError(
            "animate() needs a run of simulate(), a trajectory on a mechanism, or a batch of postures, got "
            f"{short_repr(motion)}."
        )
    if len(moving.batch) != 1:
        raise InputError(f"animate() needs postures (F,) in a row, got a batch {moving.batch}.")
    if t is None:
        _few(len(moving.ok))
        return moving, None
    if not len(t):
        return moving, t
    count = int((t[-1] - t[0]) * fps / speed * (1 + 1e-12)) + 1
    _few(count)
    when = t[0] + np.arange(count) * (speed / fps)
    if callable(getattr(motion, "at", None)):
        return motion.at(when), when
    nearest = np.searchsorted((t[1:] + t[:-1]) / 2, when)
    return Configuration(moving._model, (count,), moving._states[nearest]), t[nearest]


def _few(count: int) -> None:
    if count > _MOST:
        raise InputError(
            f"This motion has {count} frames, more than {_MOST}. Take fewer a second (`fps`), or let more "
            "time pass in one (`speed`).",
            frames=count,
        )
