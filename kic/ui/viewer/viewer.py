"""The viewer: a server on this computer whose page shows a mechanism and moves it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from kic.analysis.joint_forces.joint_forces import JointForces
from kic.description.description import find_part
from kic.errors import invalid
from kic.mechanism.configuration import Configuration, displacements, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import names_of, positive
from kic.numerics.files import atomic_write, file_name
from kic.numerics.optional import import_optional
from kic.numerics.rotations import quaternion_from_matrix
from kic.plotting.animate import motion_frames
from kic.plotting.figures import BLUE, INK, PURPLE, VERMILION
from kic.plotting.scene import PLACED
from kic.plotting.symbols import Colour, rgba
from kic.tasks.operational_space.ellipsoids import Ellipsoid
from kic.ui.viewer.panels import NONE, Panels, as_html
from kic.ui.viewer.server import PORT, VISER, Page, serve, stop
from kic.ui.viewer.session import Session, answer
from kic.ui.viewer.solids import BALL, Solid, SolidScene
from kic.ui.viewer.visuals import visual_parts

_BLUE = (0, 114, 178)
_TRACE_MAX = 2000  # points of a curve that is drawn while a mechanism moves


class Viewer:
    """Mechanism in a browser; made by `Mechanism.view` and `Configuration.view`.

    Notebooks show it inline. All pages that are open show the same configuration.

    Attributes
    ----------
    url : str
        Address of the page with its token; everyone who has it can open the page.
    server : viser.ViserServer
        The server, to which further objects can be added.
    configuration : Configuration
        The configuration that is shown.
    frames : Configuration or None
        Configurations (F,) of a motion. After a change in the viewer, these are configurations of the changed
        mechanism with the same values of the drivers; members out of reach are not `ok`.
    t : (F,) or None
        Times of the frames, if known.
    """

    def __init__(
        self,
        frames: Configuration,
        t: np.ndarray | None,
        fps: float,
        traces: tuple[str, ...],
        page: Page,
        visuals: str | os.PathLike[str] | None = None,
        meshes: Sequence[str] = (),
    ) -> None:
        first = frames[int(np.flatnonzero(frames.ok)[0])] if frames.batch else frames
        self._motion, self.fps = (frames[frames.ok] if frames.batch else None), fps
        self.t = None if t is None else t[frames.ok]
        self._session, self._traces = Session(first), traces
        # the motion of the present mechanism, made on request
        self._frames = self._session.mechanism, self._motion
        self._visuals, missing = (
            visual_parts(self._session.mechanism, visuals, meshes) if visuals else ([], [])
        )
        self._lock = threading.RLock()
        self.server, self._address, self.url = page
        self._panels: Panels | None = None
        self._rebuild()
        self._aim()
        self._panels = Panels(self)
        if missing:
            self._session.message = f"Meshes are not shown: {', '.join(missing)}."
        self._update()

    @property
    def configuration(self) -> Configuration:
        """The configuration that is shown."""
        return self._session.configuration

    @property
    def frames(self) -> Configuration | None:
        """The configurations (F,) of the motion, or None."""
        of, frames = self._frames
        if self._motion is not None and of is not self._session.mechanism:
            frames = self._session.follow(self._motion)
            self._frames = self._session.mechanism, frames
        return frames

    def _aim(self) -> None:
        """Place the camera for the default view of a drawing."""
        view, (low, high), camera = self._scene.view, self._scene.extent, self.server.initial_camera
        wide = float(np.linalg.norm(high - low))
        sun = view.toward + view.up - view.right
        self.server.scene.add_light_directional("/sun", intensity=1.5, position=tuple(sun))
        up = view.up if self._scene.normal is not None else np.sign(np.round(view.up, 1))
        self.server.scene.set_up_direction(tuple(up))
        camera.look_at, camera.up = tuple((low + high) / 2), tuple(view.up)
        camera.position = tuple((low + high) / 2 + 1.2 * wide * view.toward)
        camera.near, camera.far = 0.01 * wide, 100.0 * wide

    def _rebuild(self) -> None:
        """Rebuild the solids of the mechanism."""
        self._scene = SolidScene(self.configuration, self._visuals)
        for place in ("/bodies", "/links"):
            self.server.scene.remove_by_name(place)
        self._bodies, self._links = self._add_parts("/bodies"), list[Any]()
        self._drawn: dict[str, np.ndarray] = {}

    def _add_parts(self, place: str, opacity: float | None = None) -> dict[str, Any]:
        """Add the parts below a node of the scene, and return the frames of the bodies."""
        scene, parts = self.server.scene, self._scene.parts
        names = dict.fromkeys(part.body for part in parts)
        bodies = {body: scene.add_frame(f"{place}/{k}", show_axes=False) for k, body in enumerate(names)}
        for k, part in enumerate(parts):
            name = f"{bodies[part.body].name}/{k}"
            scene.add_mesh_simple(name, *part.mesh, **_paint(part.colour, opacity))
        return bodies

    def _add_ghost(self, place: str, configuration: Configuration, opacity: float) -> list[Any]:
        """Add a translucent copy of the bodies, and return its nodes."""
        bodies = self._add_parts(place, opacity)
        _put(bodies, displacements(configuration))
        return list(bodies.values())

    def show(self, configuration: Configuration, *, resting: bool = True) -> None:
        """Show a single configuration of the mechanism.

        Parameters
        ----------
        configuration : Configuration
        resting : bool
            False during a motion, when tables of numbers are not updated.
        """
        with self._lock:
            self._session.configuration = configuration
            self._session.message, self._session.blocked = "", False
            self._update(resting)

    def _update(self, resting: bool = True) -> None:
        """Show the state of the session."""
        T = displacements(self.configuration)
        with self.server.atomic():
            _put(self._bodies, T)
            links = self._scene.links(T)
            for k, solid in enumerate(links[len(self._links) :], len(self._links)):
                node = self.server.scene.add_mesh_simple(f"/links/{k}", *solid.mesh, **_paint(solid.colour))
                self._links.append(node)
            turns = quaternion_from_matrix(np.reshape([solid.axes for solid in links], (-1, 3, 3)))
            for node, solid, wxyz in zip(self._links, links, turns, strict=True):
                node.position, node.wxyz, node.scale = solid.position, wxyz, tuple(solid.scale.tolist())
            if self._panels is not None:
                self._panels.update()
                self._see(self._panels, resting)

    def _see(self, panels: Panels, resting: bool) -> None:
        """Show the selected results: ellipsoid, forces, centre of mass, traces and numbers."""
        session, scene, size = self._session, self.server.scene, self._scene.size
        c, of = self.configuration, panels.of.value
        longest = 0.24 * float(np.ptp(self._scene.extent, axis=0).max())
        scene.remove_by_name("/see")
        for k, place in enumerate(session.stopped()):
            self._ball(f"/see/stopped{k}", place, 2.0, VERMILION)
        if panels.com.value and isinstance(place := answer(lambda: c.value("com")), np.ndarray):
            self._ball("/see/com", place, 1.5, INK)
        kind = panels.ellipsoid.value
        made = answer(lambda: c.ellipsoid([f"{of}.{x}" for x in "xyz"], kind=kind)) if kind != NONE else None
        if isinstance(made, Ellipsoid) and np.isfinite(made.semi_axes).all():
            axes = made.axes * np.sign(np.linalg.det(made.axes))
            scale = np.maximum(longest * made.semi_axes / made.semi_axes.max(), 0.05 * size)
            at = Solid(BALL, rgba(BLUE), c.value([f"{of}.{x}" for x in "xyz"]), axes, scale)
            scene.add_mesh_simple("/see/ellipsoid", at.placed(), BALL.faces, **_paint(at.colour, 0.35))
        part, *load = session.load
        found = answer(session.loaded(c).joint_forces) if panels.forces.value else None
        arrows = dict[str, tuple[list[np.ndarray], list[np.ndarray], str]]()
        if isinstance(found, JointForces):
            # the force of a sliding pair has no point of application
            placed = [found[j.name] for j in session.mechanism.joints if j.at is not None and j.name in found]
            if placed:
                arrows["forces"] = [w.point for w in placed], [np.nan_to_num(w.force) for w in placed], BLUE
        for name, vector, colour in zip(("load", "moment"), load, (VERMILION, PURPLE), strict=True):
            if part and vector.any():
                arrows[name] = [session.pose(part)[:3, 3]], [vector], colour
        most = max((np.linalg.norm(v) for k, a in arrows.items() if k != "moment" for v in a[1]), default=0.0)
        heads = {"shaft_radius": 0.3 * size, "head_radius": 0.8 * size, "head_length": 2 * size}
        for name, (starts, vectors, colour) in arrows.items():
            largest = np.linalg.norm(vectors[0]) if name == "moment" else most
            ends = np.add(starts, np.multiply(longest / (largest or 1.0), vectors))
            scene.add_arrows(
                f"/see/{name}", np.stack([starts, ends], 1), _paint(rgba(colour))["color"], **heads
            )
        for reason in (made, found):
            session.message = reason if isinstance(reason, str) else session.message
        if resting:
            self._see_at_rest(panels)

    def _see_at_rest(self, panels: Panels) -> None:
        """Show traces, the plot and the tables of numbers."""
        session, of = self._session, panels.of.value
        panels.text.content = as_html(session.numbers(of), wrap=False) if panels.tables.value else ""
        names = dict.fromkeys((*self._traces, *([of] if panels.trace.value and of != NONE else ())))
        self.server.scene.remove_by_name("/traces")
        for k, name in enumerate(names):
            rows = [f"{name}.{x}" for x in "xyz"]
            frames = self.frames
            curve = session.curves(name).get("curve") if frames is None else frames[frames.ok].value(rows)
            if curve is None:
                curve = np.array([*self._drawn.get(name, []), self.configuration.value(rows)])[-_TRACE_MAX:]
                self._drawn[name] = curve
            pairs = np.stack([curve[:-1], curve[1:]], axis=1)
            if len(pairs):
                self.server.scene.add_line_segments(
                    f"/traces/{k}", pairs, _BLUE, thickness=2.0, thickness_units="screen"
                )
        plot = panels.plot.value if of != NONE else NONE
        panels.chart.visible = plot != NONE
        if plot != NONE and plot in (found := session.curves(of)):
            x, y = list(found.values())[1], found[plot]
            panels.chart.data = (x * panels.unit(session.drivers[0])[1], np.ascontiguousarray(y))

    def _ball(self, name: str, place: np.ndarray, radius: float, colour: str) -> None:
        mesh = (BALL.vertices * radius * self._scene.size, BALL.faces)
        self.server.scene.add_mesh_simple(name, *mesh, **_paint(rgba(colour)), position=place)

    def to_html(self) -> str:
        """Return a page that replays the motion without Python or a network; it has about 1 MB.

        Without a motion it shows the present configuration.
        """
        with self._lock:
            before = self.configuration
            recording = self.server.get_scene_serializer()
            frames = self.frames
            for frame in frames[frames.ok] if frames is not None else ():
                self.show(frame, resting=False)
                recording.insert_sleep(1 / self.fps)
            page = recording.as_html()
            self.show(before)
        return page

    def save(self, file: str | Path) -> Path:
        """Write the page of `to_html` to a file.

        Parameters
        ----------
        file : str or Path
            File to write; an existing file is replaced.

        Returns
        -------
        Path
            Path of the file.

        Raises
        ------
        FileError
            If the file cannot be written.
        """
        target = Path(file_name(file))
        with atomic_write(target) as stream:
            stream.write(self.to_html().encode())
        return target

    def wait(self) -> None:
        """Keep the viewer running until it is interrupted (Ctrl-C)."""
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
        self.stop()

    def stop(self) -> None:
        """Stop the server; open pages keep the last picture."""
        stop(self.server)

    def __repr__(self) -> str:
        # without the token, because logs and errors have reprs
        return f"<Viewer of '{self._session.mechanism.name}' at {self._address}, with the token of `url`>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{escape(self.url)}" width="100%" height="520" style="border:0"></iframe>'


def _put(bodies: Mapping[str, Any], displacements: Mapping[str, np.ndarray]) -> None:
    """Move the frames of bodies to their displacements."""
    turns = quaternion_from_matrix(np.stack([displacements[body][:3, :3] for body in bodies]))
    for (body, node), wxyz in zip(bodies.items(), turns, strict=True):
        node.position, node.wxyz = displacements[body][:3, 3], wxyz


def _paint(colour: Colour, opacity: float | None = None) -> dict[str, Any]:
    """Return the colour and opacity of a mesh as arguments for viser."""
    opacity = opacity or (colour[3] if colour[3] < 1 else None)
    return {"color": tuple(round(255 * c) for c in colour[:3]), "opacity": opacity, "side": "double"}


def view(
    motion: Any,
    *,
    fps: float = 25,
    speed: float = 1.0,
    trace: str | Iterable[str] = (),
    host: str = "127.0.0.1",
    port: int = PORT,
    proxy: str | None = None,
    visuals: str | os.PathLike[str] | None = None,
    meshes: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
) -> Viewer:
    """Show a configuration or a motion in an interactive viewer, in the browser or inline in Jupyter.

    Sliders set the coordinates, parts are dragged, and motions are played. The page is served by this
    process and needs no network. Only the address `url` of the viewer, which has a token, opens it. It
    requires the extra ``view``.

    Parameters
    ----------
    fps, speed
        As in `animate`; ignored for one configuration.
    trace : str or list of str, optional
        Points, frames, centres of mass and bodies whose curves are shown.
    host : str
        Address at which the page is served; by default only this computer can open it. "0.0.0.0", or "::"
        for IPv6, allows everyone who has the token, with a warning.
    port : int
        Port of the page; the next free port if it is in use.
    proxy : str, optional
        Address at which a proxy serves the page, such as "https://hub.org/user/me/proxy/{port}". A
        forwarded port (``ssh -L``) needs no proxy.
    visuals : path, optional
        URDF, SDF or MJCF file from which the mechanism was read; its visual meshes are shown too. The
        panel names the meshes that are not shown. MJCF requires the extra ``mujoco``.
    meshes : path or list of paths, optional
        Directories of mesh files outside that of the file, or of its ROS or Gazebo package. Files
        elsewhere are not read.

    Returns
    -------
    Viewer
        With `url`, `show` (another configuration), `save` (a replay as HTML), `wait` and `stop`.

    Raises
    ------
    MissingExtraError
        If viser is not installed.
    ModelFileError
        If the file of the visual meshes cannot be read.
    InputError
        As `animate`; also if the host is not an address of this computer, or the proxy is not the address
        of a page.

    Examples
    --------
    >>> turn = kic.load("four-bar").path({"A": np.linspace(0.0, 2 * np.pi, 100)})
    >>> viewer = turn.view(trace="tip")  # doctest: +SKIP
    >>> viewer.wait()  # doctest: +SKIP
    """
    return open_viewer(motion, lambda: serve(host, port, proxy), fps, speed, trace, visuals, meshes)


def view_reference(
    mechanism: Mechanism,
    *,
    trace: str | Iterable[str] = (),
    host: str = "127.0.0.1",
    port: int = PORT,
    proxy: str | None = None,
    visuals: str | os.PathLike[str] | None = None,
    meshes: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
) -> Viewer:
    """Show the mechanism in an interactive viewer; see `Configuration.view`."""
    return view(
        mechanism.at(), trace=trace, host=host, port=port, proxy=proxy, visuals=visuals, meshes=meshes
    )


def open_viewer(
    motion: Any,
    page: Callable[[], Page],
    fps: float = 25,
    speed: float = 1.0,
    trace: str | Iterable[str] = (),
    visuals: str | os.PathLike[str] | None = None,
    meshes: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
) -> Viewer:
    """Show a configuration or a motion on a page, such as one that is already open; see `view`."""
    import_optional("viser", "view", VISER)
    traces = names_of(trace, "trace")
    frames, t = motion, None
    if not isinstance(motion, Configuration) or motion.batch:
        frames, t = motion_frames(motion, fps, positive("speed", speed))
    for name in traces:
        find_part(model_of(frames).description, name, *PLACED)
    several = isinstance(meshes, Iterable) and not isinstance(meshes, str | bytes)
    folders: list[Any] = list(meshes) if several else [meshes]  # type: ignore[arg-type]
    named = [os.path.expanduser(one) if isinstance(one, str | os.PathLike) else "" for one in folders]
    for one, name in zip(folders, named, strict=True):
        if not os.path.isdir(name):
            raise invalid("meshes", "must be directories", one, "Give existing directories with mesh files.")
    return Viewer(frames, t, fps, traces, page(), visuals, named)
