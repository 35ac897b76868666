"""Panels of the viewer: sliders, dragging, motions in time, numbers and changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from kic.description.units import row_unit
from kic.mechanism.configuration import Configuration, model_of
from kic.numerics.rotations import matrix_from_quaternion, quaternion_from_matrix
from kic.ui.report.ranges import ANGLE_RANGE, LENGTH_RANGE_FACTOR
from kic.ui.viewer.session import answer

if TYPE_CHECKING:
    from kic.ui.viewer.viewer import Viewer

NONE = "none"
ELLIPSOIDS = ("velocity", "force", "inertia")
GHOST_OPACITY = 0.25
_NONE_FOUND = "No singular configuration was found while each coordinate moves alone."
_NOT_REACHED = "The changed mechanism does not reach this frame."
_DIGITS = 3  # decimal digits of a slider below its range


def as_html(text: str, start: str = "", wrap: bool = True) -> str:
    """Return HTML that shows `start`, and then a text with its tags escaped."""
    tag, space = ("div", "pre-wrap") if wrap else ("pre", "pre")
    style = f"font-size: small; margin: 0; overflow-x: auto; padding: 0 0.75em; white-space: {space}"
    return f'<{tag} style="{style}">{start}{escape(text)}</{tag}>'


class Panels:
    """Inputs next to the scene; each change moves the session and shows its configuration."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer, self.session, self.gui = viewer, viewer._session, viewer.server.gui
        self._dragged = False
        # pending actions for the last poses of dragged handles
        self._pulled: dict[str, Callable[[], Any]] = {}
        self._playing = threading.Event()
        self.message = self.gui.add_html("")
        if viewer.frames is not None:
            self._add_time(len(viewer.frames))
        self._add_coordinates()
        self._add_dragging()
        self._add_modes()
        self._add_sights()
        self._add_load()
        self._add_changes()
        self._add_files()

    def _on(self, handle: Any, act: Callable[[], Any]) -> Any:
        """Call `act`, and show its result, when a user changes an input or presses a button."""

        def called(event: Any) -> None:
            if event.client is None:  # set by this process
                return
            with self.viewer._lock:
                self._playing.clear()
                self._follow()
                act()
                self.viewer._update()

        getattr(handle, "on_click" if hasattr(handle, "on_click") else "on_update")(called)
        return handle

    def update(self) -> None:
        """Show the values of the session in all inputs."""
        session = self.session
        for slider, name, value in zip(self.sliders, session.drivers, session.values(), strict=True):
            shown = float(value * self.unit(name)[1])
            if np.isfinite(shown):
                slider.min, slider.max = min(slider.min, shown), max(slider.max, shown)
                slider.value = shown
        part = self.part.value
        self.gizmo.visible = part != NONE
        if part != NONE and not self._dragged:
            self._put(self.gizmo, session.pose(part))
        pivot = self.pivot.value
        self.handle.visible = pivot != NONE
        if pivot != NONE and not self._dragged:
            T = session.frame(session.pivots()[pivot])
            place = np.array(session.mechanism[pivot].at)
            self.place.value = tuple(map(float, place))
            self.handle.position = T[:3, :3] @ place + T[:3, 3]
        self.message.content = as_html(session.message, "<b>Stopped:</b> " if session.blocked else "")

    @staticmethod
    def _put(handle: Any, T: np.ndarray) -> None:
        handle.position = T[:3, 3]
        handle.wxyz = quaternion_from_matrix(T[:3, :3])

    def unit(self, name: str) -> tuple[str, float]:
        """Return the unit in which a row is shown, and the conversion factor."""
        unit = row_unit(self.session.mechanism, name)
        return ("deg", float(np.degrees(1))) if unit == "rad" else (unit, 1.0)

    def _add_coordinates(self) -> None:
        with self.gui.add_folder("Coordinates"):
            self.names = self.gui.add_text(
                "Names", ", ".join(self.session.drivers), hint="Rows that drive, separated by commas"
            )
            self._on(self.gui.add_button("Use these coordinates"), self._drive)
            # there are always as many drivers as degrees of freedom
            self.sliders = [
                self._on(self.gui.add_slider("", 0.0, 1.0, 0.1, 0.0), partial(self._slide, k))
                for k in range(len(self.session.drivers))
            ]
        self._set_ranges()

    def _drive(self) -> None:
        if self.session.drive(self.names.value):
            self._set_ranges()

    def _set_ranges(self) -> None:
        """Give the sliders the names, units and limits of the drivers, or a range about their values."""
        m = self.session.mechanism
        limits: dict[str, Any] = {j.name: j.limits for j in m.joints if j.dof == 1 and j.limits}
        for slider, name, value in zip(
            self.sliders, self.session.drivers, self.session.values(), strict=True
        ):
            unit, factor = self.unit(name)
            slider.disabled = not np.isfinite(value)  # that of a spherical joint in a loop
            value = np.nan_to_num(value)
            half = ANGLE_RANGE if unit == "deg" else LENGTH_RANGE_FACTOR * model_of(m).length
            low, high = (factor * x for x in limits.get(name, (value - half, value + half)))
            digits = _DIGITS - int(np.floor(np.log10(high - low)))
            step = 10.0**-digits
            slider.label, slider.step, slider.precision = f"{name} ({unit})", step, max(0, digits)
            slider.min, slider.max = float(low - low % step), float(high + -high % step)

    def _slide(self, k: int) -> None:
        name = self.session.drivers[k]
        self.session.move({name: self.sliders[k].value / self.unit(name)[1]})

    def _add_dragging(self) -> None:
        wide = float(np.ptp(self.viewer._scene.extent, axis=0).max())
        with self.gui.add_folder("Drag"):
            self.part = self.gui.add_dropdown("Part", (NONE, *self.session.parts()))
            self.turn = self.gui.add_checkbox("Turn too", False, hint="Rotations of a body or frame count")
        scene = self.viewer.server.scene
        self.gizmo = scene.add_transform_controls(
            "/gizmo", scale=0.25 * wide, depth_test=False, visible=False
        )
        self.handle = scene.add_transform_controls(
            "/pivot", scale=0.2 * wide, depth_test=False, visible=False, disable_rotations=True
        )
        self._on(self.part, self._release)
        self._on(self.turn, lambda: None)
        self.viewer.server.on_client_disconnect(lambda _: self._release())

        self._on_drag(self.gizmo, lambda T: partial(self._drag, self.part.value, T, self.turn.value))
        self._on_drag(self.handle, lambda T: partial(self._pull, self.pivot.value, T[:3, 3]))

    def _release(self) -> None:
        """Reset a drag whose last event did not arrive."""
        self._dragged = False

    def _on_drag(self, handle: Any, action: Callable[[np.ndarray], Callable[[], Any]]) -> None:
        """Call the action for the last pose (4, 4) to which a user has dragged a handle."""

        @handle.on_update
        async def _(event: Any) -> None:  # in the order of the events, unlike functions in threads
            T = np.eye(4)
            T[:3, :3] = matrix_from_quaternion(np.array(handle.wxyz).tolist())
            T[:3, 3] = handle.position
            self._dragged = event.phase != "end"
            self._pulled[handle.name] = action(T)

        @handle.on_update
        def _(_: Any) -> None:
            with self.viewer._lock:
                self._follow()

    def _follow(self) -> None:
        """Move to the last poses of dragged handles that are still pending."""
        for name in list(self._pulled):
            act = self._pulled.pop(name)
            self._playing.clear()
            act()
            self.viewer._update(not self._dragged)

    def _drag(self, part: str, target: np.ndarray, turn: bool) -> None:
        if part != NONE:
            self.session.drag(part, target, turn)

    def _pull(self, pivot: str, place: np.ndarray) -> None:
        if pivot != NONE:
            T = self.session.frame(self.session.pivots()[pivot])
            self._change(pivot, (place - T[:3, 3]) @ T[:3, :3])

    def _add_modes(self) -> None:
        self.ghosts: list[Any] = []
        with self.gui.add_folder("Other configurations", expand_by_default=False):
            self._on(self.gui.add_button("Assembly modes"), self._show_modes)
            self._on(
                self.gui.add_button("Singular nearby", hint="Dead centres while each coordinate moves alone"),
                self._show_singular,
            )
            self.mode = self.gui.add_dropdown("Take", (NONE,))
        self._on(self.mode, self._take_mode)

    def _show_modes(self) -> None:
        modes = answer(self.session.modes)
        if isinstance(modes, str):
            self.session.message, self.session.blocked = modes, False
            return
        self._show_ghosts({str(k + 1): one for k, one in enumerate(modes)})

    def _show_singular(self) -> None:
        found = self.session.singular(self.of.value)
        self._show_ghosts({f"{k + 1}: {one.where()}": one.configuration for k, one in enumerate(found)})
        lines = [f"{k + 1}. {one}" for k, one in enumerate(found)]
        self.session.message, self.session.blocked = "\n".join(lines or [_NONE_FOUND]), False

    def _show_ghosts(self, found: dict[str, Configuration]) -> None:
        self._hide_ghosts()
        self._found, self.mode.options = found, (NONE, *found)
        for k, (name, one) in enumerate(found.items()):
            for node in self.viewer._add_ghost(f"/modes/{k}", one, GHOST_OPACITY):
                self.ghosts.append(node)
                self._on(node, partial(self._take, name))

    def _hide_ghosts(self) -> None:
        for node in self.ghosts:
            node.remove()
        self.ghosts, self.mode.options = [], (NONE,)

    def _take_mode(self) -> None:
        if self.mode.value != NONE:
            self._take(self.mode.value)

    def _take(self, name: str) -> None:
        self.session.configuration = self._found[name]
        self.session.message, self.session.blocked = "", False
        self._hide_ghosts()

    def _add_time(self, count: int) -> None:
        with self.gui.add_folder("Time"):
            self.frame = self.gui.add_slider("Frame", 0, max(count - 1, 1), 1, 0)
            self.play = self.gui.add_button("Play / pause")
            self.loop = self.gui.add_checkbox("Loop", True)
        self._on(self.frame, lambda: self._show_frame(min(int(self.frame.value), count - 1)))

        @self.play.on_click
        def _(_: Any) -> None:
            if self._playing.is_set():
                self._playing.clear()
                return
            self._playing.set()
            k = int(self.frame.value) % (count - 1) if count > 1 else 0
            while self._playing.is_set():
                with self.viewer._lock:
                    self._show_frame(k, resting=False)
                    self.frame.value = k
                k += 1
                if k == count and not self.loop.value:
                    self._playing.clear()
                k %= count
                threading.Event().wait(1 / self.viewer.fps)

    def _show_frame(self, k: int, resting: bool = True) -> None:
        """Show a frame, if the mechanism, possibly changed since, reaches it."""
        frames = self.viewer.frames
        if frames is not None and frames.ok[k]:
            self.viewer.show(frames[k], resting=resting)
        else:
            self.session.message, self.session.blocked = _NOT_REACHED, False

    def _add_sights(self) -> None:
        with self.gui.add_folder("See", expand_by_default=False):
            self.of = self.gui.add_dropdown("Of", self.session.parts() or (NONE,))
            self.ellipsoid = self.gui.add_dropdown("Ellipsoid", (NONE, *ELLIPSOIDS))
            self.forces = self.gui.add_checkbox("Joint forces", False)
            self.com = self.gui.add_checkbox("Centre of mass", False)
            self.trace = self.gui.add_checkbox("Trace", False)
            self.tables = self.gui.add_checkbox("Numbers", False)
            self.text = self.gui.add_html("")
        for handle in (self.of, self.ellipsoid, self.forces, self.com, self.trace, self.tables):
            self._on(handle, lambda: None)

    def _add_load(self) -> None:
        with self.gui.add_folder("Load", expand_by_default=False):
            self.loaded = self.gui.add_dropdown("On", (NONE, *self.session.parts()))
            hint = "World axes, in the units of the model"
            self.force = self.gui.add_vector3("Force", (0.0, 0.0, 0.0), step=0.001, hint=hint)
            self.moment = self.gui.add_vector3("Moment", (0.0, 0.0, 0.0), step=0.001, hint=hint)
        for handle in (self.loaded, self.force, self.moment):
            self._on(handle, self._apply)

    def _apply(self) -> None:
        part = "" if self.loaded.value == NONE else self.loaded.value
        self.session.apply(part, np.array(self.force.value), np.array(self.moment.value))

    def _add_changes(self) -> None:
        step = 10.0 ** np.floor(np.log10(model_of(self.session.mechanism).length) - _DIGITS)
        with self.gui.add_folder("Change", expand_by_default=False):
            self.pivot = self.gui.add_dropdown("Pivot", (NONE, *self.session.pivots()))
            self.place = self.gui.add_vector3(
                "At", (0.0, 0.0, 0.0), step=step, hint="In the reference configuration"
            )
            self.plot = self.gui.add_dropdown("Plot", (NONE, *self.session.plots()))
            self.chart = self.gui.add_uplot(
                (np.zeros(2), np.zeros(2)), ({}, {"stroke": "#0072b2"}), aspect=1.6, visible=False
            )
        self._on(self.pivot, self._release)
        self._on(self.plot, lambda: None)
        self._on(self.place, lambda: self._change(self.pivot.value, np.array(self.place.value)))

    def _change(self, pivot: str, at: np.ndarray) -> None:
        before = self.session.mechanism
        if pivot != NONE:
            self.session.change(pivot, at)
        if self.session.mechanism is not before:  # also where the drivers cannot keep their values
            self._hide_ghosts()  # of the mechanism before
            self.viewer._rebuild()

    def _add_files(self) -> None:
        with self.gui.add_folder("Save", expand_by_default=False):
            model = self.gui.add_button("Model (TOML)")
            replay = self.gui.add_button("Replay (HTML)")

        @model.on_click
        def _(event: Any) -> None:
            with self.viewer._lock:
                self._follow()
                m = self.session.mechanism
            with TemporaryDirectory() as folder:
                file = Path(folder) / "model.toml"
                m.save(file)
                event.client.send_file_download(f"{m.name}.toml", file.read_bytes(), save_immediately=True)

        @replay.on_click
        def _(event: Any) -> None:
            with self.viewer._lock:
                self._follow()
            name = f"{self.session.mechanism.name}.html"
            event.client.send_file_download(name, self.viewer.to_html().encode(), save_immediately=True)
