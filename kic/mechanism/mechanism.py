"""Mechanism: a description of parts, and the configurations that are solved for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.description.description import Info, MechanismDescription, find_part, parts_sheet
from kic.description.units import DEGREES_ANGLE_MIN, warn_of_degrees
from kic.errors import ConfigurationError, InputError
from kic.kernels import layout as lay
from kic.kinematics.state import states_of
from kic.mechanism.configuration import Configuration
from kic.mechanism.inputs import coordinates_of, only_coordinates
from kic.mechanism.position import (
    initial_states,
    real_configuration,
    solve_path,
    solve_position,
    within_limits,
)
from kic.numerics.arrays import broadcast_batches, check_failures
from kic.numerics.display import Printable, Summary
from kic.numerics.registration import with_methods
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.limits import Limits

if TYPE_CHECKING:
    from kic.analysis import sensitivity as _sensitivity
    from kic.analysis.identification import calibrate as _calibrate
    from kic.analysis.identification import identify as _identify
    from kic.analysis.linear import equilibrium as _equilibrium
    from kic.analysis.positions import assembly_modes as _assembly_modes
    from kic.analysis.sweeps import sweep as _sweep
    from kic.description import chains as _chains
    from kic.description import description as _description
    from kic.description.contacts import Contact
    from kic.description.couplings import Coupling
    from kic.description.motors import Motor
    from kic.description.parts import (
        Angle,
        Body,
        CenterOfMass,
        Distance,
        Force,
        Frame,
        Joint,
        Moment,
        Point,
        Spring,
    )
    from kic.description.units import Units
    from kic.export.export import Exports
    from kic.io import robot_writers as _robot_writers
    from kic.mechanism import assembly as _assembly
    from kic.mechanism import dimensions as _dimensions
    from kic.mechanism import locking as _locking
    from kic.mechanism.prepared import Evaluators
    from kic.plotting import draw as _draw
    from kic.simulation import simulate as _simulate
    from kic.trajectory import tracking as _tracking
    from kic.transfer.mobility.mobility import Mobility
    from kic.ui.viewer import viewer as _viewer


def _size(a: np.ndarray) -> float:
    """Return the sum of squares, as a fast test for finite numbers; zero for symbols."""
    return 0.0 if a.dtype.kind == "O" else abs(np.vdot(a, a))


@with_methods
@dataclass(frozen=True, repr=False)
class Mechanism(Printable, MechanismDescription):
    """Mechanism described in one assembled configuration, the reference configuration, in world coordinates.

    It is immutable.

    Parameters
    ----------
    name : str
        Short name.
    bodies, joints, points, distances, angles, forces, moments, springs : sequences
    couplings, contacts, motors, frames, centers : sequences
        Parts, each sequence of one kind. All names share one namespace, and ``ground`` is the fixed world.
    gravity : (3,) float, optional
        Acceleration of gravity (length/time²), in any direction; −9.81 m/s² along z by default.
    closure_tolerance : float
        Gap that a loop with rounded dimensions may have, as a share of its length; less than 1. Conditions
        that are redundant within it are dropped; `mobility` reports them, and whether exact conditions are
        among them. Inputs are met exactly, dropped conditions within the tolerance. Files without a tolerance
        are read with ten times the residual of redundant conditions along the motion, if that is rounding.
    coordinates : sequence of str, optional
        Joints, distances and angles that are the default coordinates; by default all joints that move, in
        their order. The attribute is the tuple of single coordinates, as in `Configuration.coordinates`.
    actuators : sequence of str, optional
        Joints, distances, angles, or rows of points and bodies, where efforts act; by default the
        coordinates. There may be more or fewer than degrees of freedom. Drawings mark them, and
        `joint_forces`, `distribute`, `internal_loads`, static efforts and reports use them by default. The
        attribute is the tuple of single rows.
    info : dict of str to str, or results.Info
        Texts: `title`, a headline; `about`, a description; `source` of the data; and `drawing`, the reference
        configuration. The attribute is an `Info`.
    units : Units
        Names of the units, for labels only; angles are radians.
    remarks : sequence of str
        Remarks of the reader of a file: what it merged, renamed, replaced or ignored.

    Raises
    ------
    ModelError
        If the description contradicts itself. The message has the rule, the value and the remedy.

    Examples
    --------
    >>> pendulum = kic.Mechanism(
    ...     "pendulum",
    ...     bodies=[kic.Body("rod", mass=2.0, com=(0.5, 0, 0), inertia=(0, 0.17, 0.17))],
    ...     joints=[kic.Joint("A", "revolute", ("ground", "rod"), at=(0, 0, 0), axis=(0, 0, 1))],
    ...     points=[kic.Point("tip", "rod", at=(1, 0, 0))],
    ...     gravity=(0, -9.81, 0),
    ... )
    >>> pendulum.at([0.0]).coefficients("tip").G
    array([[0.],
           [1.],
           [0.]])
    """

    if TYPE_CHECKING:  # sequences become tuples

        def __init__(
            self,
            name: str,
            bodies: Iterable[Body] = (),
            joints: Iterable[Joint] = (),
            *,
            points: Iterable[Point] = (),
            distances: Iterable[Distance] = (),
            angles: Iterable[Angle] = (),
            forces: Iterable[Force] = (),
            moments: Iterable[Moment] = (),
            springs: Iterable[Spring] = (),
            couplings: Iterable[Coupling] = (),
            contacts: Iterable[Contact] = (),
            motors: Iterable[Motor] = (),
            frames: Iterable[Frame] = (),
            centers: Iterable[CenterOfMass] = (),
            gravity: Any = None,
            closure_tolerance: float = 0.0,
            coordinates: str | Iterable[str] | None = None,
            actuators: str | Iterable[str] | None = None,
            info: Info | Mapping[str, str] = ...,
            units: Units = ...,
            remarks: Iterable[str] = (),
        ) -> None: ...

    @cached_property
    def _model(self) -> CompiledModel:
        return CompiledModel(self)

    def at(
        self,
        values: Any = None,
        *,
        near: Configuration | None = None,
        limits: Limits = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Configuration:
        """Solve a configuration, or a batch of configurations, for given values; loops are closed.

        Parameters
        ----------
        values : (..., M) array_like, dict of str to array_like, or None
            Coordinates in the order of `coordinates`, or by name; batches broadcast. None is the reference
            configuration. A spherical joint takes a rotation vector along its axes, or a SciPy `Rotation`
            relative to the reference configuration. A free joint takes x y z and a rotation vector, or a
            `RigidTransform`, the displacement of the second body relative to the first as returned by
            `Configuration.pose`. For closed mechanisms, and for inverse kinematics, any rows with a value are
            allowed, as many as the degrees of freedom: joints, points ("tip", "tip.x"), distances, angles of
            a planar mechanism. A body takes a `RigidTransform`, its displacement from the reference
            configuration, or a `Rotation` for its orientation alone: 6 and 3 inputs in space, 3 and 1 in a
            plane. A spherical joint, also in a loop, counts as many inputs as an orientation. Coordinates
            that are held, such as dimensions (see `vary`), can be omitted.
        near : Configuration, optional
            Configuration from which the solution is continued, so that the assembly mode is kept; by default
            the reference configuration. The path from its values to the inputs is followed by predictor steps
            of second order, and every step is checked: the solution never crosses a dead centre to another
            branch. Angles of `Mobility.cuts` are known modulo full turns, and change by the shorter arc.
        limits : bool or dict of str to (lower, upper), optional
            True for the limits of the description, or limits of rows with a value ("A", "tip.x") or swings
            ("S1.swing"); by default none. Members beyond them have no solution. Only the solution is checked,
            not the path to it from `near`. `path` checks every member of a given path.
        failures : {"raise", "mask"}
            Treatment of members without solution, or with NaN or infinite input: raise an error, or return
            NaN in every result and False in ``.ok``.

        Raises
        ------
        InputError
            If a shape is wrong, or coordinates are missing, surplus or of another type.
        ConfigurationError
            If members fail, do not close, or exceed limits. The error has their indices (`failed`), the
            `reasons`, the solved members (`configuration`), and the configurations `reached`. Members that do
            not close have the `share` of the path that was completed. Members beyond limits have `beyond`: a
            dict of the names to the excess, negative below the lower limit.

        Examples
        --------
        >>> arm = kic.load("horn-two-link")
        >>> arm.at({"shoulder": 0.0, "elbow": [0.0, 0.1, 0.2]}).batch
        (3,)

        The elbow that is already bent is kept:

        >>> arm.at({"tip.x": 1.0, "tip.y": 1.0}, near=arm.at([0.3, 1.2])).value("elbow").round(6)
        np.float64(1.570796)

        Leg lengths of a platform from its pose:

        >>> from scipy.spatial.transform import RigidTransform
        >>> platform = kic.load("gough-stewart")
        >>> up = RigidTransform.from_translation([0.0, 0.0, 0.1])
        >>> platform.at({"platform": up}).value("L1").round(4)
        np.float64(1.0999)
        """
        found = self._solve(values, near, failures)
        return found if limits is None else within_limits(found, limits, failures)

    def _solve(
        self, inputs: Any, near: Configuration | None, failures: Literal["raise", "mask"]
    ) -> Configuration:
        """Solve configurations without limits; see `at`."""
        if type(failures) is not str or failures != "raise":
            check_failures(failures)
        model = self._model
        if inputs is None:
            if near is not None:
                message = "`near` was given without `values`. Give those of the configuration."
                raise InputError(message, key="near")
            return Configuration(model, (), model.reference_state.copy())
        if not model.is_open_chain or not only_coordinates(self, inputs):
            return solve_position(model, inputs, near, failures)
        if near is not None and model.has_complex_step:
            return solve_position(model, inputs, near, failures)
        a = coordinates_of(self, inputs)
        if near is not None:  # the state of an open chain is the same from any start
            shape = broadcast_batches(values=a.shape[:-1], near=initial_states(model, near)[1])
            a = np.broadcast_to(a, (*shape, a.shape[-1]))
        batch = a.shape[:-1]
        phi = a.reshape(prod(batch), a.shape[-1]).copy()
        size = _size(phi)
        if not size < DEGREES_ANGLE_MIN**2:
            warn_of_degrees(self, self.coordinates, phi)
        if isfinite(size) or np.isfinite(phi).all():
            return Configuration(model, batch, states_of(model.tree, phi))
        ok = np.isfinite(phi).all(axis=-1)
        phi[~ok] = np.nan
        configuration = Configuration(model, batch, states_of(model.tree, phi), ok.reshape(batch))
        if failures == "raise":
            self._refuse(configuration, a)
        return configuration

    def path(
        self,
        values: Any,
        *,
        near: Configuration | None = None,
        limits: Limits = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Configuration:
        """Solve configurations along a path: each member is continued from the previous one, on its branch.

        Parameters
        ----------
        values : (..., M) array_like, or dict of str to array_like
            As in `at`; the first axis of the batch is the path, further axes are parallel paths.
        near : Configuration, optional
            Configuration from which the first member is continued; by default the reference configuration.
        limits
            As in `at`, checked at each member; a path ends at the first member beyond them.
        failures : {"raise", "mask"}
            Treatment of a path that cannot continue without a jump to another branch: raise an error with the
            member and the reason, or return NaN from there on and False in ``.ok``.

        Raises
        ------
        InputError
            As `at`; also if inputs have no batch.
        ConfigurationError
            If a path stops; the error has the same attributes as in `at`.

        Examples
        --------
        A crank makes a full turn; the tip of the coupler returns to its start.

        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 50)})
        >>> bool(np.allclose(turn.value("tip")[0], turn.value("tip")[-1]))
        True
        """
        check_failures(failures)
        direct = self._model.is_open_chain and near is None and only_coordinates(self, values)
        try:
            if direct and values is not None:
                found = self._solve(values, None, failures)
            else:
                found = solve_path(self._model, values, near, failures)
        except ConfigurationError as error:
            if limits is not None and isinstance(done := error.numbers.get("configuration"), Configuration):
                within_limits(done, limits, failures, path=True)
            raise
        return within_limits(found, limits, failures, path=True)

    def _refuse(self, configuration: Configuration, inputs: np.ndarray) -> None:
        failed = [tuple(index) for index in np.argwhere(~configuration.ok).tolist()]
        reasons = []
        for index in failed:
            bad = np.flatnonzero(~np.isfinite(inputs[index]))
            reasons.append(", ".join(f"{configuration.coordinates[k]} = {inputs[index][k]}" for k in bad))
        if not configuration.batch:
            message = f"Coordinates of '{self.name}' must be finite, got {reasons[0]}."
        else:
            some = "; ".join(f"{i}: {why}" for i, why in list(zip(failed, reasons, strict=True))[:4])
            message = (
                f"Coordinates of '{self.name}' must be finite, got others in {len(failed)} of "
                f"{configuration.ok.size} members: {some}{'; …' if len(failed) > 4 else ''}. Use "
                "failures='mask' to keep the rest."
            )
        raise ConfigurationError(message, failed=failed, reasons=reasons, configuration=configuration)

    @property
    def dof(self) -> int:
        """Number of degrees of freedom at the reference configuration and near it; see `mobility`."""
        return self._model.dof

    def mobility(self, configuration: Configuration | None = None) -> Mobility:
        """Return the mobility: degrees of freedom, closure conditions, and their redundancy (D-1).

        Parameters
        ----------
        configuration : Configuration, optional
            One configuration; by default the reference configuration.

        Returns
        -------
        Mobility
            Coordinates of the tree, closure conditions of each part, and the redundant conditions; whether
            motions are finite or only shown to some order; motions that are passive; and, by
            `Mobility.independent_sets`, the coordinates that can drive the mechanism. Printed, it is a
            paragraph.

        Examples
        --------
        >>> kic.load("five-bar").mobility()
        mobility 2: 4 tree coordinates, 5 closure conditions of 1 loop (cut at D), 3 of them redundant (3 of
        joint 'D'). All motion is in one plane, normal (0, 0, 1); other conditions hold identically.
        """
        if configuration is None:
            return self._model.mobility()
        from kic.transfer.mobility.mobility import Mobility

        model = self._model.real
        here = real_configuration(self._model, configuration)
        state, batch = initial_states(model, here, "configuration")
        if batch:
            message = f"`configuration` must not be a batch, got a batch {batch}. Index it first."
            raise InputError(message, key="configuration", got=batch)
        return Mobility(model, state[None], here)

    @property
    def total_mass(self) -> float:
        """Mass of all moving bodies and their point masses.

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        """
        return float(self._model.masses.numbers[:, lay.MASS].sum())

    def __getitem__(self, name: str) -> Any:
        """Return the part with a name."""
        return find_part(self, name)

    def _facts(self) -> Iterator[str]:
        bodies, joints = len(self.bodies), len(self.joints)
        yield f"{bodies} {'body' if bodies == 1 else 'bodies'}, {joints} joint{'s' * (joints != 1)}"
        yield f"coordinates {', '.join(self._moving_parts)}"

    def _repr_html_(self) -> str:
        return parts_sheet(self, "").html()

    def summary(self) -> Summary:
        """Return a table of the parts, with the account of the mobility if loops close."""
        return parts_sheet(self, "" if self._model.tree.open else self.mobility().summary())

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        add = _description.add
        assembly_modes = _assembly_modes.assembly_modes
        calibrate = _calibrate.calibrate
        chain = _chains.chain
        close_loops = _assembly.close_loops
        draw = _draw.draw_reference
        find_equilibrium = _equilibrium.find_equilibrium
        hold_spins = _locking.hold_spins
        identify = _identify.identify
        lock = _locking.lock
        replace = _description.replace_fields
        save = _robot_writers.save
        sensitivity = _sensitivity.sensitivity_to_parameters
        simulate = _simulate.simulate
        sweep = _sweep.sweep
        track = _tracking.track
        unlock = _locking.unlock
        vary = _dimensions.vary
        view = _viewer.view_reference
        without = _description.without

        @property
        def export(self) -> Exports: ...  # noqa: D102
        @property
        def prepare(self) -> Evaluators: ...  # noqa: D102
