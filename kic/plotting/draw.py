"""`Configuration.draw`: scale drawings of a mechanism in one or several configurations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, overload

import numpy as np

from kic.analysis.joint_forces.joint_forces import JointForces, Wrench
from kic.description.description import find_part
from kic.errors import InputError, invalid
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.outputs import XYZ
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import flag, instance, integer, names_of
from kic.numerics.arrays import broadcast_batches, one_batch_axis, real_array
from kic.plotting.canvas import Canvas, fit_to_page
from kic.plotting.diagram import Mark
from kic.plotting.figures import BLUE, GREEN, INK, PURPLE, VERMILION, Picture, matplotlib_part, new_figure
from kic.plotting.labels import OccupancyGrid, labels_of, leader_line, place_labels
from kic.plotting.overlays import EllipsoidOverlay, VectorOverlay, check_scale, common_scales, curve_shapes
from kic.plotting.scene import PLACED, Scene
from kic.plotting.symbols import FINE, Shape, rgba
from kic.plotting.view import ViewName
from kic.tasks.operational_space.ellipsoids import Ellipsoid

# most drawings of a sheet, the side of one in inches, and the size of their titles
SHEET_MAX, SHEET_SIDE, TITLE_POINTS = 64, 1.8, 8.0
_KINDS = {"v =": "velocity", "a =": "acceleration", "F =": "force"}


class MechanismPicture(Picture):
    """Drawing of a mechanism; its methods add overlays and return the picture.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes
        Axes in the unit of length of the mechanism.
    shapes : list of Shape
        Painted shapes in order.
    scales : dict of str to float
        Drawing length per unit of "velocity", "acceleration", "force", "velocity ellipsoid", ….

    Examples
    --------
    >>> c = kic.load("four-bar").at({"A": 1.0})
    >>> picture = c.draw(names=True).velocity([2.0], of="tip").forces(c.joint_forces([2.0]))
    """

    def __init__(self, scene: Scene, canvas: Canvas, names: bool) -> None:
        super().__init__(canvas.figure, canvas.axes)
        self._scene, self._canvas, self._names = scene, canvas, names
        self._added: list[VectorOverlay | EllipsoidOverlay] = []
        self._traces: dict[str, np.ndarray] = {}
        self.shapes: list[Shape] = []
        self.scales: dict[str, float] = {}
        self._marks: list[Mark] = []
        self._paint()

    def velocity(self, qd: Any, *, of: str | Iterable[str] | None = None, scale: float | None = None) -> Self:
        """Add velocities of points, or of reference points of bodies, as arrows with their scale.

        Velocities of all drawn members of a batch are shown.

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the mechanism's coordinates; with the batch of the configuration, or none.
        of : str or list of str, optional
            Points, frames, centres of mass and bodies; by default all points that move.
        scale : float, optional
            Drawing length per unit of velocity, for all velocities of the picture; by default the longest
            arrow fits. `scales` holds the value, to be used in other pictures.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> one = m.at({"A": 1.0}).draw().velocity([2.0])
        >>> other = m.at({"A": 2.0}).draw().velocity([2.0], scale=one.scales["velocity"])
        """
        names, motion = self._motion(of, 1)
        unit, values = f"{self._units.length}/{self._units.time}", motion.velocity(self._rates("qd", qd))
        return self._arrows(("v =", unit, GREEN), names, values, scale)

    def acceleration(
        self, qd: Any, qdd: Any, *, of: str | Iterable[str] | None = None, scale: float | None = None
    ) -> Self:
        """Add accelerations G q̈ + q̇ᵀ H q̇ of points, or of reference points of bodies.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations of the mechanism's coordinates.
        of : str or list of str, optional
            Points, frames, centres of mass and bodies; by default all points that move.
        scale : float, optional
            Drawing length per unit of acceleration, as in `velocity`.
        """
        names, motion = self._motion(of, 2)
        values = motion.acceleration(self._rates("qd", qd), self._rates("qdd", qdd))
        unit = f"{self._units.length}/{self._units.time}²"
        return self._arrows(("a =", unit, PURPLE), names, values, scale)

    def forces(self, of: JointForces | Wrench | None = None, *, scale: float | None = None) -> Self:
        """Add joint forces, exerted by the first body on the second, or the applied forces of the model.

        Parameters
        ----------
        of : JointForces or Wrench, optional
            Result of `Configuration.joint_forces` for the same configuration; by default the forces of the
            model. In plan view of a planar mechanism, only components in its plane must be determined.
        scale : float, optional
            Drawing length per unit of force, as in `velocity`.

        Raises
        ------
        InputError
            If `of` has another type or batch, a force is not determined, or the model has no forces.
        """
        if of is None:
            return self._applied(scale)
        if not isinstance(of, (JointForces, Wrench)):
            raise invalid("of", "must be the result of joint_forces() for this configuration", of)
        view = self._scene.view
        found = [of] if isinstance(of, Wrench) else [of[name] for name in of]
        starts, vectors = [], []
        for wrench in found:
            seen = self._scene.joint_positions(wrench.name)
            starts.append(self._drawn_members("forces", wrench.point) if seen is None else seen)
            force = wrench.force
            if view.flat:
                right, up = (wrench.along(d)[0] for d in (view.right, view.up))
                force = right[..., None] * view.right + up[..., None] * view.up
            force = self._drawn_members("forces", force)
            if not np.isfinite(force).all():
                message = (
                    f"The force in '{wrench.name}' is not determined by the rigid-body model and cannot be "
                    "drawn. Use joint_forces(criterion='minimum norm')."
                )
                raise InputError(message, key="of", joint=wrench.name)
            vectors.append(force)
        return self._forces(starts, vectors, scale)

    def ellipsoid(self, ellipsoid: Ellipsoid, *, scale: float | None = None) -> Self:
        """Add an ellipsoid of `Configuration.ellipsoid` at its point; of a batch, the first and the last.

        Parameters
        ----------
        ellipsoid : Ellipsoid
            Ellipsoid of two or three rows x, y, z of one point, frame, centre of mass or body, such as
            ["tip.x", "tip.y"].
        scale : float, optional
            Drawing length per unit, as in `velocity`; for all ellipsoids of this kind.

        Raises
        ------
        InputError
            If the ellipsoid has other rows, another batch, or is unbounded.
        """
        if not isinstance(ellipsoid, Ellipsoid):
            raise invalid("ellipsoid", "must be a result of Configuration.ellipsoid", ellipsoid)
        owners = {row.rpartition(".")[0] for row in ellipsoid.rows}
        letters = [row.rpartition(".")[2] for row in ellipsoid.rows]
        if len(owners) != 1 or len(letters) < 2 or not set(letters) <= set(XYZ):
            message = (
                "`ellipsoid` must have two or three rows x, y, z of one point, frame, centre of mass or "
                f"body, got {', '.join(ellipsoid.rows)}."
            )
            raise InputError(message, key="ellipsoid", names=ellipsoid.rows)
        if not np.isfinite(self._drawn_members("ellipsoid", ellipsoid.semi_axes)).all():
            raise InputError(
                f"The {ellipsoid.kind} ellipsoid is unbounded, since the task is singular, and cannot be "
                "drawn. Draw its dual.",
                key="ellipsoid",
            )
        name, rows = owners.pop(), [XYZ.index(letter) for letter in letters]
        count = len(self._scene.members)
        image = np.zeros((count, 3, len(rows)))
        axes = ellipsoid.axes * ellipsoid.semi_axes[..., None, :]
        image[:, rows] = self._drawn_members("ellipsoid", axes, 2)
        centre = np.zeros((count, 3))
        centre[:, rows] = self._drawn_members("ellipsoid", ellipsoid.center)
        u, speed = self._units, f"{self._units.length}/{self._units.time}"
        unit, colour = {
            "velocity": (speed, GREEN),
            "force": (u.force, BLUE),
            "inertia": (f"/√{u.mass}", VERMILION),
            "acceleration": (f"{speed}²", PURPLE),
        }[ellipsoid.kind]
        at, given = self._drawn_positions(name), check_scale(scale)
        kind, ends = ellipsoid.kind, sorted({0, count - 1})
        return self._add(
            *(EllipsoidOverlay(kind, unit, colour, at[k], centre[k], image[k], given) for k in ends)
        )

    def trace(self, of: str | Iterable[str], *, along: Configuration | None = None) -> Self:
        """Draw the paths of points through the members of a batch, such as a coupler curve.

        Parameters
        ----------
        of : str or list of str
            Points, frames, centres of mass and bodies.
        along : Configuration, optional
            Batch (B,) of the same mechanism; by default the drawn batch.

        Raises
        ------
        InputError
            If the batch shape is not (B,), or `along` belongs to another mechanism.
        """
        c = self._scene.configuration if along is None else along
        if not isinstance(c, Configuration) or model_of(c).description != self._scene.description:
            raise invalid("along", f"must hold configurations of '{self._scene.configuration.name}'", along)
        if len(c.batch) != 1:
            raise invalid(
                "along",
                "must have a batch shape (B,)",
                c.batch,
                'Create a path, such as turn = mechanism.path({"A": np.linspace(0, 2 * np.pi, 97)}), and '
                'pass it: trace("tip", turn).',
            )
        for name in self._named(of):
            self._traces[name] = np.stack([c.value(f"{name}.{x}") for x in XYZ], axis=-1)
        self._paint()
        return self

    @property
    def _units(self) -> Any:
        return self._scene.description.units

    def _add(self, *overlays: VectorOverlay | EllipsoidOverlay) -> Self:
        self._added += overlays
        self._paint()
        return self

    def _drawn_members(self, what: str, value: np.ndarray, core: int = 1) -> np.ndarray:
        """Return the drawn members of a batch (..., K) that matches the configuration; K has `core` axes."""
        batch = self._scene.configuration.batch
        given, width = value.shape[:-core], value.shape[-core:]
        if broadcast_batches(**{what: given, "configuration": batch}) != batch:
            raise invalid(what, f"must have the batch {batch} of the configuration", given, shown=f"{given}")
        whole = one_batch_axis(np.broadcast_to(value, (*batch, *width)), core)
        return whole[self._scene.members]

    def _rates(self, name: str, value: Any) -> np.ndarray:
        return self._drawn_members(name, real_array(name, value, len(self._scene.model.coordinates)))

    def _named(self, of: str | Iterable[str] | None) -> tuple[str, ...]:
        """Check and return the names of parts that have a position."""
        description = self._scene.description
        if of is None:
            names = tuple(p.name for p in description.points if p.body != "ground")
            if not names:
                raise InputError(f"'{description.name}' has no moving points. Name bodies in `of`.", key="of")
            return names
        for name in names_of(of):
            find_part(description, name, *PLACED)
        return names_of(of)

    def _motion(self, of: str | Iterable[str] | None, order: int) -> tuple[tuple[str, ...], Coefficients]:
        """Return the names and the coefficients of their x, y, z in the drawn members."""
        names = self._named(of)
        return names, self._scene.shown.coefficients([f"{n}.{x}" for n in names for x in XYZ], order=order)

    def _drawn_positions(self, name: str) -> np.ndarray:
        """Return positions (n, 3) of a part in the drawn members."""
        self._named(name)
        return np.stack([self._scene.shown.value(f"{name}.{x}") for x in XYZ], axis=-1)

    def _arrows(
        self, how: tuple[str, str, str], names: tuple[str, ...], values: np.ndarray, scale: float | None
    ) -> Self:
        starts = np.concatenate([self._drawn_positions(name) for name in names])
        vectors = np.concatenate([values[:, 3 * k : 3 * k + 3] for k in range(len(names))])
        return self._add(VectorOverlay(*how, starts, vectors, check_scale(scale)))

    def _applied(self, scale: float | None) -> Self:
        """Add the forces of the model at their points."""
        description = self._scene.description
        if not description.forces:
            message = (
                f"'{description.name}' has no forces. Pass the result of joint_forces() to draw joint forces."
            )
            raise InputError(message, key="of")
        starts, vectors = [], []
        for force in description.forces:
            starts.append(self._drawn_positions(force.point))
            turn = self._scene.displacements[description[force.point].body][:, :3, :3]
            f = np.broadcast_to(np.array(force.force, float), (len(turn), 3))
            vectors.append(np.einsum("nij,nj->ni", turn, f) if force.axes == "body" else f)
        return self._forces(starts, vectors, scale)

    def _forces(self, starts: list[np.ndarray], vectors: list[np.ndarray], scale: float | None) -> Self:
        places, forces = np.concatenate(starts), np.concatenate(vectors)
        return self._add(VectorOverlay("F =", self._units.force, BLUE, places, forces, check_scale(scale)))

    def _paint(self) -> None:
        scene, canvas = self._scene, self._canvas
        canvas.clear()
        low, high = scene.extent
        size = float((high - low).max()) or 1.0
        kinds = common_scales(self._added, scene.view, size)
        self.scales = {_KINDS.get(kind, f"{kind} ellipsoid"): scale for (kind, *_), scale in kinds.items()}
        canvas.reserve(len(kinds))

        def make(points: float) -> list[Shape]:
            shapes, marks, self._size = scene.shapes(points)
            self._marks = marks[0]
            curves = [s for name, p in self._traces.items() for s in curve_shapes(p, scene.view, BLUE, name)]
            for one in self._added:
                scale = kinds.get((one.kind, one.unit, one.colour), 0.0)
                if scale > 0:
                    shapes = [*shapes, *one.shapes(scene.view, scale, points)]
            return [*shapes, *curves]

        self.shapes = fit_to_page(canvas, low, high, make, 8.0 if self._names else 0.0)
        canvas.paint(self.shapes)
        canvas.triad(scene.view)
        canvas.bar(self._units.length)
        canvas.legend([(*key, scale) for key, scale in kinds.items()])
        if self._names:
            self._write_labels()

    def _write_labels(self) -> None:
        """Write names of joints and points, and of bodies in italics."""
        canvas, view = self._canvas, self._scene.view
        pt = canvas.points
        labels = labels_of(self._marks, view, self._size, pt)
        low = np.array([canvas.left * pt + 2, canvas.foot * pt + 10])
        high = np.array([canvas.right * pt - 2, canvas.top * pt - 2])
        middles = place_labels(labels, OccupancyGrid(self.shapes, pt, low, high), low, high)
        for label, middle in zip(labels, middles, strict=True):
            line = leader_line(middle, label)
            if line is not None:
                canvas.paint([Shape(line / pt, None, rgba(INK, 0.4), FINE, False, (0.0,))], zorder=1.5)
            canvas.text(middle / pt, label.text, halo=True, style="italic" if label.italic else "normal")


@overload
def draw(
    configuration: Configuration,
    *,
    names: bool = False,
    view: ViewName | None = None,
    ax: Any = None,
    columns: None = None,
) -> MechanismPicture: ...
@overload
def draw(
    configuration: Configuration,
    *,
    names: bool = False,
    view: ViewName | None = None,
    ax: None = None,
    columns: int,
) -> Picture: ...
def draw(
    configuration: Configuration,
    *,
    names: bool = False,
    view: ViewName | None = None,
    ax: Any = None,
    columns: int | None = None,
) -> MechanismPicture | Picture:
    """Draw the mechanism to scale with standard kinematic symbols.

    Planar mechanisms are shown along their normal, spatial mechanisms in an oblique orthographic view;
    lengths across the view are to scale. Actuators are vermilion: those of the mechanism, or else its
    coordinates. A revolute joint is drawn at its `at`; spatial joints with a common position are offset
    along their axes. A distance is drawn as a cylinder if it is an actuator and as a rod if it is fixed.
    The first and the last member of a batch are drawn in full, at most ten evenly spaced members between
    them are faded. Unsolved members are omitted.

    Parameters
    ----------
    names : bool
        Label joints, points and (in italics) bodies.
    view : str or (2,) floats, optional
        "top", "front" (x to the right) or "side"; or azimuth about the vertical, measured from x, and
        elevation of the viewer in degrees. Up is opposite to gravity, or z. By default chosen
        automatically.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure with the width of a journal column.
    columns : int, optional
        Largest number of drawings in a row, to draw the valid members of a batch side by side at one
        scale, such as all assembly modes, with their indices as titles. By default all share one drawing.

    Returns
    -------
    MechanismPicture, or Picture with `columns`
        With a method `save`; notebooks display it. A MechanismPicture also has `velocity`,
        `acceleration`, `forces`, `ellipsoid` and `trace`.

    Raises
    ------
    InputError
        If no member is valid, or more than 64 with `columns`; if the numbers are not real, or the view is
        invalid; or `ax` is given with `columns`.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> turn = m.path({"A": np.linspace(1.0, 2.5, 40)})
    >>> picture = turn.draw().trace("tip")
    >>> picture.save("four-bar.svg")  # doctest: +SKIP
    >>> found = m.assembly_modes({"A": 1.2})
    >>> len(found.configuration.draw(columns=4).axes)
    2
    """
    names = flag("names", names)
    if columns is not None:
        if ax is not None:
            message = "must be left out with `columns`"
            raise invalid("ax", message, ax, "Drawings side by side make their own figure.")
        return _side_by_side(configuration, names, view, integer("columns", columns, 1))
    if ax is not None:
        instance("ax", ax, matplotlib_part("axes").Axes)
    return MechanismPicture(Scene(configuration, view), Canvas(ax), names)


def draw_reference(
    mechanism: Mechanism, *, names: bool = False, view: ViewName | None = None, ax: Any = None
) -> MechanismPicture:
    """Draw the mechanism in its reference configuration; see `Configuration.draw`."""
    return draw(mechanism.at(), names=names, view=view, ax=ax)


def _side_by_side(configuration: Configuration, names: bool, view: ViewName | None, columns: int) -> Picture:
    """Draw the members of a batch side by side."""
    members = [index for index in np.ndindex(configuration.batch) if configuration.ok[index]]
    if not 0 < len(members) <= SHEET_MAX:
        message = f"must have 1 to {SHEET_MAX} valid members"
        raise invalid("configuration", message, len(members), "Index it, such as [:20].")
    columns = min(columns, len(members))
    rows = -(-len(members) // columns)
    figure = new_figure(SHEET_SIDE * columns, SHEET_SIDE * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes:
        ax.set_axis_off()
    drawn = []
    for ax, index in zip(axes, members, strict=False):
        ax.set_title(", ".join(map(str, index)), fontsize=TITLE_POINTS)
        drawn.append(draw(configuration[index] if index else configuration, names=names, view=view, ax=ax))
    points = min(picture._canvas.points for picture in drawn)
    for picture in drawn:
        picture._canvas.common_points = points
        picture._paint()
    return Picture(figure, tuple(axes[: len(members)]))
