"""`draw`: a mechanism in a posture, as an engineer draws it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from kic.configuration import Configuration
from kic.errors import InputError, short_repr
from kic.joint_forces.joint_forces import JointForces, Wrench
from kic.kinematics.coefficients import Coefficients
from kic.kinematics.products import form
from kic.numerics.arguments import flag, instance, names_of
from kic.numerics.arrays import broadcast_batches, real_trailing
from kic.operational_space.ellipsoids import Ellipsoid
from kic.plotting.canvas import Canvas, settle
from kic.plotting.diagram import Mark
from kic.plotting.figures import BLUE, GREEN, INK, PURPLE, VERMILION, Picture, matplotlib_part
from kic.plotting.labels import OccupancyGrid, labels_of, leader_line, place_labels
from kic.plotting.overlays import EllipsoidOverlay, VectorOverlay, check_scale, common_scales, curve_shapes
from kic.plotting.scene import Scene, check_path_batch
from kic.plotting.symbols import FINE, Shape, rgba
from kic.plotting.view import ViewName

_XYZ = ("x", "y", "z")
_KINDS = {"v =": "velocity", "a =": "acceleration", "F =": "force"}


class MechanismPicture(Picture):
    """A drawing of a mechanism; its methods add to it and hand it back.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
    axes : matplotlib.axes.Axes
        In the drawing's unit of length, across the view.
    shapes : list of Shape
        What is painted, in the order of painting.
    scales : dict of str to float
        Length in the drawing of a unit of "velocity", "acceleration", "force", "velocity ellipsoid", ….

    Examples
    --------
    >>> import kic
    >>> c = kic.load("four-bar").at({"A": 1.0})
    >>> picture = kic.draw(c, names=True).velocity([2.0], "tip").forces(c.joint_forces([2.0]))
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

    def velocity(self, qd: Any, of: str | Iterable[str] | None = None, scale: float | None = None) -> Self:
        """Velocities of points, or of the reference points of bodies, as arrows with their scale.

        Of a batch, those of every posture that is drawn.

        Parameters
        ----------
        qd : (..., M) array_like
            Rates of the mechanism's coordinates, with the batch of the posture or none.
        of : str or list of str, optional
            Points and bodies; by default all points that move.
        scale : float, optional
            Length in the drawing of a unit of velocity, of all drawn, to compare panels side by side;
            by default so that the longest fits. `scales` says what it is.

        Raises
        ------
        UnknownNameError, InputError
            As `Configuration.coefficients`; or for rates of another shape, or a scale that is not positive.

        Examples
        --------
        >>> import kic
        >>> m = kic.load("four-bar")
        >>> one = kic.draw(m.at({"A": 1.0})).velocity([2.0])
        >>> other = kic.draw(m.at({"A": 2.0})).velocity([2.0], scale=one.scales["velocity"])
        """
        names, motion = self._motion(of, 1)
        values = form(motion.G, self._rates("qd", qd))
        return self._arrows(("v =", f"{self._units.length}/{self._units.time}", GREEN), names, values, scale)

    def acceleration(
        self, qd: Any, qdd: Any, of: str | Iterable[str] | None = None, scale: float | None = None
    ) -> Self:
        """Accelerations G q̈ + q̇ᵀ H q̇ of points, or of the reference points of bodies.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations of the mechanism's coordinates.
        of : str or list of str, optional
            Points and bodies; by default all points that move.
        scale : float, optional
            Length in the drawing of a unit of acceleration, as in `velocity`.

        Raises
        ------
        UnknownNameError, InputError
            As `velocity`.
        """
        names, motion = self._motion(of, 2)
        rates = self._rates("qd", qd)
        assert motion.H is not None  # for the type checker: second order was asked for
        values = form(motion.G, self._rates("qdd", qdd)) + form(motion.H, rates, rates)
        return self._arrows(
            ("a =", f"{self._units.length}/{self._units.time}²", PURPLE), names, values, scale
        )

    def forces(self, of: JointForces | Wrench | None = None, scale: float | None = None) -> Self:
        """Forces in joints, each of the first body on the second; or those that are applied.

        Parameters
        ----------
        of : JointForces or Wrench, optional
            As `Configuration.joint_forces` of the same posture gives them; by default the forces of the
            model. Of a planar mechanism that is seen flat, only what is in its plane must be known.
        scale : float, optional
            Length in the drawing of a unit of force, as in `velocity`.

        Raises
        ------
        InputError
            For something else, another batch, a force that the model leaves open, or a model without forces.
        """
        if of is None:
            return self._applied(scale)
        if not isinstance(of, (JointForces, Wrench)):
            raise InputError(
                f"forces() needs joint_forces() of this posture, or one of them, got {short_repr(of)}."
            )
        view = self._scene.view
        found = [of] if isinstance(of, Wrench) else [of[name] for name in of]
        starts, vectors = [], []
        for wrench in found:
            seen = self._scene.joint_positions(wrench.name)
            starts.append(self._drawn("forces", wrench.point) if seen is None else seen)
            force = wrench.force
            if view.flat:
                right, up = (wrench.along(d)[0] for d in (view.right, view.up))
                force = right[..., None] * view.right + up[..., None] * view.up
            force = self._drawn("forces", force)
            if not np.isfinite(force).all():
                raise InputError(
                    f"The force in '{wrench.name}' is not determined by the model of rigid bodies, and can "
                    "not be drawn. Ask for joint_forces(split='minimum norm').",
                    joint=wrench.name,
                )
            vectors.append(force)
        return self._forces(starts, vectors, scale)

    def ellipsoid(self, ellipsoid: Ellipsoid, scale: float | None = None) -> Self:
        """An ellipsoid of `Configuration.ellipsoid`, at its point; of a batch the first and the last.

        Parameters
        ----------
        ellipsoid : Ellipsoid
            Of two or three rows x, y, z of one point or body, such as ["tip.x", "tip.y"].
        scale : float, optional
            Length in the drawing of its unit, as in `velocity`; for all ellipsoids of its kind.

        Raises
        ------
        InputError
            For other rows, another batch, or an ellipsoid that has no bound.
        """
        if not isinstance(ellipsoid, Ellipsoid):
            raise InputError(
                f"ellipsoid() needs what Configuration.ellipsoid gives, got {short_repr(ellipsoid)}."
            )
        owners = {row.rpartition(".")[0] for row in ellipsoid.task}
        letters = [row.rpartition(".")[2] for row in ellipsoid.task]
        if len(owners) != 1 or len(letters) < 2 or not set(letters) <= set(_XYZ):
            raise InputError(
                "`ellipsoid` must have two or three rows x, y, z of one point or body, got "
                f"{', '.join(ellipsoid.task)}.",
                task=ellipsoid.task,
            )
        if not np.isfinite(self._drawn("ellipsoid", ellipsoid.semi_axes)).all():
            raise InputError(
                f"This ellipsoid of '{ellipsoid.kind}' has no bound, for the task is singular; it can not be "
                "drawn. Its dual can."
            )
        name, rows = owners.pop(), [_XYZ.index(letter) for letter in letters]
        count = len(self._scene.members)
        image = np.zeros((count, 3, len(rows)))
        image[:, rows] = self._drawn("ellipsoid", ellipsoid.axes * ellipsoid.semi_axes[..., None, :], 2)
        centre = np.zeros((count, 3))
        centre[:, rows] = self._drawn("ellipsoid", ellipsoid.center)
        speed = f"{self._units.length}/{self._units.time}"
        unit = {
            "velocity": speed,
            "force": self._units.force,
            "inertia": f"/√{self._units.mass}",
            "acceleration": f"{speed}²",
        }[ellipsoid.kind]
        at, given = self._places(name), check_scale(scale)
        colour = {"velocity": GREEN, "force": BLUE, "acceleration": PURPLE}.get(ellipsoid.kind, VERMILION)
        for k in sorted({0, count - 1}):
            self._added.append(
                EllipsoidOverlay(ellipsoid.kind, unit, colour, at[k], centre[k], image[k], given)
            )
        self._paint()
        return self

    def trace(self, of: str | Iterable[str], along: Configuration | None = None) -> Self:
        """Curves that points trace through all members of a batch, such as a coupler curve.

        Parameters
        ----------
        of : str or list of str
            Points and bodies.
        along : Configuration, optional
            Another batch (B,) of the same mechanism; by default the one that is drawn.

        Raises
        ------
        UnknownNameError
            If there is none of such a name.
        InputError
            Of one posture, a batch with several axes, or another mechanism's.
        """
        c = self._scene.configuration if along is None else along
        if not isinstance(c, Configuration) or c._model.description != self._scene.description:
            raise InputError(
                f"trace() needs postures of '{self._scene.description.name}', got {short_repr(along)}."
            )
        check_path_batch(c.batch)
        for name in self._named(of):
            self._traces[name] = np.stack([c.value(f"{name}.{x}") for x in _XYZ], axis=-1)
        self._paint()
        return self

    @property
    def _units(self) -> Any:
        return self._scene.description.units

    def _add(self, vectors: VectorOverlay) -> Self:
        self._added.append(vectors)
        self._paint()
        return self

    def _drawn(self, what: str, value: np.ndarray, core: int = 1) -> np.ndarray:
        """Of a batch (..., K) that goes with the posture, the members that are drawn; K are the last axes."""
        batch = self._scene.configuration.batch
        given, width = value.shape[:-core], value.shape[-core:]
        if broadcast_batches(**{what: given, "posture": batch}) != batch:
            raise InputError(f"Expected `{what}` to have the batch {batch} of the posture, got {given}.")
        whole = np.broadcast_to(value, (*batch, *width)).reshape(-1, *width)
        return whole[self._scene.members]

    def _rates(self, name: str, value: Any) -> np.ndarray:
        return self._drawn(name, real_trailing(name, value, len(self._scene.model.coordinates)))

    def _named(self, of: str | Iterable[str] | None) -> tuple[str, ...]:
        """Points and bodies that are meant, each there."""
        drawing = self._scene.description
        if of is None:
            names = tuple(p.name for p in drawing.points if p.body != "ground")
            if not names:
                raise InputError(f"'{drawing.name}' has no points that move. Name bodies.")
            return names
        for name in names_of(of):
            drawing.part(name, "points", "bodies")
        return names_of(of)

    def _motion(self, of: str | Iterable[str] | None, order: int) -> tuple[tuple[str, ...], Coefficients]:
        """Names, and the coefficients of their x, y, z in the members that are drawn."""
        names = self._named(of)
        return names, self._scene.shown.coefficients([f"{n}.{x}" for n in names for x in _XYZ], order=order)

    def _everywhere(self, name: str) -> np.ndarray:
        """Places (B, 3) of a point or a body in all members, NaN in those without posture."""
        self._named(name)
        c = self._scene.configuration
        return np.stack([c.value(f"{name}.{x}") for x in _XYZ], axis=-1).reshape(-1, 3)

    def _places(self, name: str) -> np.ndarray:
        """Places (n, 3) in the members that are drawn."""
        return self._everywhere(name)[self._scene.members]

    def _arrows(
        self, how: tuple[str, str, str], names: tuple[str, ...], values: np.ndarray, scale: float | None
    ) -> Self:
        starts = np.concatenate([self._places(name) for name in names])
        vectors = np.concatenate([values[:, 3 * k : 3 * k + 3] for k in range(len(names))])
        return self._add(VectorOverlay(*how, starts, vectors, check_scale(scale)))

    def _applied(self, scale: float | None) -> Self:
        """Forces of the model, where they act."""
        drawing = self._scene.description
        if not drawing.forces:
            raise InputError(
                f"'{drawing.name}' has no forces. Hand over joint_forces() of the posture to draw those."
            )
        starts, vectors = [], []
        for force in drawing.forces:
            starts.append(self._places(force.point))
            turn = self._scene.displacements[drawing.point(force.point).body][:, :3, :3]
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

        self.shapes = settle(canvas, low, high, make, 8.0 if self._names else 0.0)
        canvas.paint(self.shapes)
        canvas.triad(scene.view)
        canvas.bar(self._units.length)
        canvas.legend([(*key, scale) for key, scale in kinds.items()])
        if self._names:
            self._write()

    def _write(self) -> None:
        """Names of joints and points, and of bodies in italics."""
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


def draw(
    configuration: Configuration, *, names: bool = False, view: ViewName | None = None, ax: Any = None
) -> MechanismPicture:
    """Draw a mechanism as an engineer does: links, pairs, ground, platforms, springs, contacts, to scale.

    Planar mechanisms are seen along their normal, spatial ones from the side, in orthographic projection, so
    that lengths across the view are true. Joints of the mechanism's coordinates are vermilion. A revolute is
    drawn where its `at` is; in space those that share a place are set apart along their axes.

    Parameters
    ----------
    configuration : Configuration
        A posture; or a batch, of which the first and the last are drawn in full and between them so many
        faintly that they are 12 at most, evenly taken. Members without posture are left out.
    names : bool
        Whether names of joints, points and (in italics) bodies are written beside them.
    view : str or (2,) floats, optional
        "top", "front" (x to the right) or "side"; or azimuth about the vertical, from x on, and elevation, in
        degrees, of who looks. What stands against gravity is up, z without it. By default a good one.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a figure of its own, a column wide.

    Returns
    -------
    MechanismPicture
        A notebook shows it, `save` writes it; `velocity`, `acceleration`, `forces`, `ellipsoid` and `trace`
        add to it.

    Raises
    ------
    InputError
        If no member has a posture; for symbols, complex numbers or steps; for a view that is none.
    MissingExtraError
        Without Matplotlib.

    Examples
    --------
    >>> import kic
    >>> import numpy as np
    >>> m = kic.load("four-bar")
    >>> turn = m.path({"A": np.linspace(1.0, 2.5, 40)})
    >>> picture = kic.draw(turn).trace("tip")
    >>> picture.save("four-bar.svg")  # doctest: +SKIP
    """
    if not isinstance(configuration, Configuration):
        raise InputError(
            f"draw() needs a posture, such as mechanism.at([...]), got {short_repr(configuration)}."
        )
    names = flag("names", names)
    if ax is not None:
        instance("ax", ax, matplotlib_part("axes").Axes)
    return MechanismPicture(Scene(configuration, view), Canvas(ax), names)
