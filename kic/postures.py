"""Postures: a drawing that can be set, by any inputs, where its loops close."""

from __future__ import annotations

import cmath
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.arrays import check_failures
from kic.configuration import Configuration
from kic.drawing import Drawing
from kic.errors import InputError, PostureError
from kic.model import Model
from kic.position import along, closed
from kic.posture import coordinates_of, only_coordinates, states_of

if TYPE_CHECKING:
    from kic.closer import Closer
    from kic.questions.assemblies import Assemblies
    from kic.tasks.following import Following
    from kic.tasks.weighting import Damping, Weight


class Postures(Drawing):
    """The drawing with the questions that fix a posture; see `Mechanism`."""

    @cached_property
    def _model(self) -> Model:
        return Model(self)

    def at(
        self,
        inputs: Any = None,
        near: Configuration | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Configuration:
        """Posture, or batch of postures, that has these values: closes the loops.

        Parameters
        ----------
        inputs : (..., M) array_like, dict of str to array_like, or None
            Coordinates in the order of `coordinates`, or by name; batches broadcast. A spherical joint
            takes a rotation vector or a SciPy `Rotation` from the drawing; a free one x y z of its place
            and a rotation vector, or a `RigidTransform`, the displacement of the second body relative to
            the first from the drawing, as `Configuration.pose` has it. None means as drawn. For a mechanism
            with loops, and for the inverse position of an arm, any rows with a value may be named: joints,
            points ("tip", "tip.x"), distances, angles of a planar mechanism; as many as there are freedoms.
            A body takes a `RigidTransform`, its displacement from the drawing as `Configuration.pose` has
            it, or a `Rotation` for its orientation alone: 6 and 3 inputs in space, 3 and 1 in a plane.
        near : Configuration, optional
            A posture from which the wanted one is led, so that its assembly is kept; by default the
            drawing. The mechanism follows the way from its values there to those wanted, in leaps that are
            predicted to second order and watched: it never steps over a dead centre to another branch.
            Angles of `cuts` are known but for full turns, and go the shorter way.
        failures : {"raise", "mask"}
            What becomes of members without a posture (NaN or infinite input): an error that says which,
            or NaN in every answer and False in ``.ok``.

        Returns
        -------
        Configuration

        Raises
        ------
        InputError
            For a wrong shape, or coordinates that are missing, surplus or of another kind.
        PostureError
            For members that fail or do not close; it carries which (`failed`), why (`reasons`), the rest
            (`configuration`), and how far they came: the `share` of the way, and the postures `reached`.

        Examples
        --------
        >>> import kic
        >>> arm = kic.load("horn-two-link")
        >>> arm.at({"shoulder": 0.0, "elbow": [0.0, 0.1, 0.2]}).batch
        (3,)

        The elbow that is bent already is kept:

        >>> arm.at({"tip.x": 1.0, "tip.y": 1.0}, near=arm.at([0.3, 1.2])).phi.round(6).tolist()
        [0.0, 1.570796]

        Leg lengths of a platform from its pose:

        >>> from scipy.spatial.transform import RigidTransform
        >>> platform = kic.load("gough-stewart")
        >>> up = RigidTransform.from_translation([0.0, 0.0, 0.1])
        >>> platform.at({"platform": up}).value("L1").round(4)
        np.float64(1.0999)
        """
        check_failures(failures)
        model = self._model
        if inputs is None:
            if near is not None:
                raise InputError("`near` was given without inputs. Say which values the posture should have.")
            return Configuration(model, (), model.drawn.copy())
        if not model.direct or near is not None or not only_coordinates(self, inputs):
            return closed(model, inputs, near, failures)
        a = coordinates_of(self, inputs)
        batch = a.shape[:-1]
        phi = a.reshape(prod(batch), a.shape[-1]).copy()
        if _finite(phi):
            return Configuration(model, batch, states_of(model.tree, phi))
        ok = np.isfinite(phi).all(axis=-1)
        phi[~ok] = np.nan
        configuration = Configuration(model, batch, states_of(model.tree, phi), ok.reshape(batch))
        if failures == "raise":
            self._refuse(configuration, a)
        return configuration

    def path(
        self,
        inputs: Any,
        near: Configuration | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Configuration:
        """Postures along a path: each member is led from the one before it, and its branch is watched.

        Parameters
        ----------
        inputs : (..., M) array_like, or dict of str to array_like
            As in `at`; the first axis of the batch is the path, further ones are paths side by side.
        near : Configuration, optional
            From where the first member is led; by default the drawing.
        failures : {"raise", "mask"}
            What becomes of a path that can not go on without a jump to another branch: an error that says
            at which member and why, or NaN from there on, and False in ``.ok``.

        Returns
        -------
        Configuration

        Raises
        ------
        InputError
            As `at`; also for inputs without a batch.
        PostureError
            For paths that stop; it carries what that of `at` does.

        Examples
        --------
        A crank makes a full turn; the tip of the coupler comes back to where it was.

        >>> import kic
        >>> import numpy as np
        >>> m = kic.load("four-bar")
        >>> turn = m.path({"A": m.at().value("A") + np.linspace(0, 2 * np.pi, 50)})
        >>> bool(np.allclose(turn.value("tip")[0], turn.value("tip")[-1]))
        True
        """
        check_failures(failures)
        if self._model.direct and near is None and only_coordinates(self, inputs) and inputs is not None:
            return self.at(inputs, failures=failures)
        return along(self._model, inputs, near, failures)

    def assemblies(
        self,
        inputs: Any,
        near: Configuration | None = None,
        starts: int = 128,
        seed: Any = 0,
        limits: Mapping[str, Any] | None = None,
    ) -> Assemblies:
        """Distinct postures found that have these values: other elbows, wrists, assemblies.

        Parameters
        ----------
        inputs : dict or (..., M) array_like
            As in `at`, for one target or a batch of them.
        near : Configuration, optional
            One posture; the solutions come sorted by how far their joints are from it. By default the
            drawing. It is the first start, too.
        starts : int
            How many starts are tried: `near`, and random ones. In a batch so many at the first member and an
            eighth at each other (8 at least), beside the postures found at their neighbours.
        seed : int or numpy Generator
            Of the random starts; the same seed finds the same.
        limits : dict of str to (lower, upper), optional
            Limits of joint coordinates. An angle may lie within them by full turns.

        Returns
        -------
        Assemblies
            A `Configuration` whose first batch axis are the postures found, never claimed to be all. In a
            batch each slice is one branch as far as it goes; where a member has fewer postures than another,
            or none, the rest of its slices are NaN in every answer and False in ``.ok``.

        Raises
        ------
        InputError, UnknownNameError
            As `at`; also for limits that are none.
        PostureError
            If none was found, at no member; it carries how near they came (`left`, in length), or how far
            `beyond` limits.

        Examples
        --------
        >>> import kic
        >>> m = kic.load("four-bar")
        >>> found = m.assemblies({"A": 1.2})
        >>> len(found.hits), found.value("A").tolist()
        (2, [1.2, 1.2])

        The two elbows on the way to the limit of reach and beyond:

        >>> arm = kic.load("horn-two-link")
        >>> arm.assemblies({"tip.x": [1.2, 1.6, 2.0, 2.4], "tip.y": 0.0}).ok.sum(axis=0).tolist()
        [2, 2, 1, 0]
        """
        from kic.questions.branches import assembled

        return assembled(self._model, inputs, near, starts, seed, limits)

    def follow(
        self,
        path: Mapping[str, Any] | Any,
        t: Any,
        near: Configuration | None = None,
        weight: Weight = "minimum norm",
        secondary: Any = None,
        damping: Damping = None,
        gain: float = 0.0,
        exact: bool = True,
        wrt: str | Iterable[str] | None = None,
        tolerance: float = 1e-10,
    ) -> Following:
        """Follow a path in time with a task of fewer rows than freedoms (or as many): redundancy resolved.

        Rates q̇ of `Configuration.resolve` are integrated (Dormand and Prince's method of order 8), loops kept
        closed. At every time of `t` the posture is put on the path, so that the task does not drift; the
        coordinates may, see `Following.drift`. Step by step, in a control loop, `prepare_resolve` gives the
        same rates.

        Parameters
        ----------
        path : Trajectory, or dict of str to callable or array_like
            The task: a trajectory of `kic.trajectories` in its rows; or by rows with a value ("flange",
            "tip.x") or bodies, and their course: a trajectory, a function of time that returns values,
            (values, rates) or (values, rates, accelerations), or samples (n, ..., P) at the times, between
            which a spline of fifth degree goes. A function that returns values alone is derived by a complex
            step, and must pass complex times on; rates that are returned must be those of the values. Of a
            body, a SciPy `RigidTransform` or `Rotation` of n members, its displacement from the drawing; a
            function that returns one with its rates; or a turn made by `kic.trajectories.rotation`.
        t : (n,) array_like
            Times.
        near : Configuration, optional
            Where to begin, one posture or a batch, near to the path; by default the drawing.
        weight, secondary, damping, wrt
            As in `Configuration.resolve`. A callable gets a configuration of the batch, and at the end
            one whose first axis is time.
        gain : float
            Feedback of the task's error between the times, 1/time: u̇ = u̇ of the path + gain · error.
        exact : bool
            Whether postures are put on the path at each time; without, only the gain brings them there. With
            damping they come as near as it lets them.
        tolerance : float
            Relative tolerance of the integration.

        Returns
        -------
        Following
            Postures, rates, errors, damping; `drift`.

        Raises
        ------
        UnknownNameError, InputError, InertiaError
            As `Configuration.resolve`; also for times that do not grow, a path that is none, or one whose
            stated rates contradict its values.
        SingularError
            Where the task is singular on the way and it is not damped; it says when.
        PostureError
            If the path is out of reach; it carries the `time`.

        Examples
        --------
        >>> import kic
        >>> import numpy as np
        >>> m = kic.load("three-link-arm")
        >>> c = m.at([0.4, 0.5, 0.6])
        >>> x = c.value("frame3.x")
        >>> f = m.follow({"frame3.x": lambda t: x - 0.1 * np.sin(t)}, np.linspace(0, 2 * np.pi, 9), near=c)
        >>> f.qd.shape, bool(abs(f.error).max() < 1e-12)
        ((9, 3), True)
        """
        from kic.tasks.following import follow

        return follow(self._model, path, t, near, weight, secondary, damping, gain, exact, wrt, tolerance)

    def prepare_at(self, inputs: str | Iterable[str] | None = None) -> Closer:
        """Closer for hot loops: closes postures near to given states, plain arrays in and out.

        Parameters
        ----------
        inputs : str or list of str, optional
            Rows whose values will be given, as in `at`; by default the coordinates.

        Returns
        -------
        Closer
            Call it with values (..., P) and closed states (..., S).

        Raises
        ------
        InputError, UnknownNameError
            As `at` would.
        """
        from kic.closer import Closer

        return Closer(self._model, inputs)

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
                f"{len(failed)} of {configuration.ok.size} members of the batch have no posture, coordinates "
                f"must be finite: {some}{'; …' if len(failed) > 4 else ''}. "
                "failures='mask' keeps the others."
            )
        raise PostureError(message, failed=failed, reasons=reasons, configuration=configuration)


def _finite(a: np.ndarray) -> bool:
    """Whether every number is finite; symbols are taken to be."""
    if a.dtype.kind == "O":
        return True
    square = np.vdot(a, a)  # several times faster than looking at each; an overflow only costs the look
    return cmath.isfinite(square) or bool(np.isfinite(a).all())
