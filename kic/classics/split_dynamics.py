"""Dynamics split into translational and rotational parts: the generalized d'Alembert equations.

Equations are those of C. S. G. Lee, B. H. Lee and R. Nigam, "An Efficient Formulation of Robot Arm
Dynamics for Control Analysis and Manipulator Design", 1982::

    T_i = Σ_j (D_ij^tran + D_ij^rot) q̈_j + H_i^tran(q, q̇) + H_i^rot(q, q̇) + G_i                         (29)

The source derives the parts (30-33) for serial arms of revolute joints. Its sums over links equal
Freeman's sums over bodies: linear momentum gives the translational parts and angular momentum the
rotational parts. `Configuration.body_contributions` therefore extends them to other joints, loops and
coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, counted, unknown
from kic.kinematics.products import form
from kic.mechanism.configuration import Configuration
from kic.numerics.arguments import instance, integer, text
from kic.numerics.arrays import as_array, broadcast_batches
from kic.numerics.display import Batched, Printable, Summary

# parts of the dynamics, and the attributes that hold their tensors
TENSORS = {"D_tran": "D_tran", "D_rot": "D_rot", "H_tran": "P_tran", "H_rot": "P_rot", "G": "G"}


def split(
    configuration: Configuration,
    *,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> SplitDynamics:
    """Split the dynamics of a mechanism into translational and rotational parts (29-33).

    Parameters
    ----------
    configuration : Configuration
        One configuration or a batch, of an arm or of a mechanism with loops.
    wrt, failures : str or list of str, {"raise", "mask"}
        Coordinates and treatment of failed members, as in `Configuration.body_contributions`.

    Examples
    --------
    >>> arm = split(kic.load("horn-two-link").at([0.0, 0.0]))
    >>> arm.D_tran.round(3), arm.D_rot.round(3)
    (array([[2.5 , 0.75],
           [0.75, 0.25]]), array([[0.167, 0.083],
           [0.083, 0.083]]))
    """
    instance("configuration", configuration, Configuration, "Use `Mechanism.at`.")
    bodies = configuration.body_contributions(wrt=wrt, failures=failures)
    whole = configuration.dynamics(wrt=wrt, failures=failures)
    # Freeman's sums over bodies are not symmetric in the two velocities.
    P_tran, P_rot = (
        (P + P.swapaxes(-1, -2)) / 2 for P in (bodies.P_linear.sum(axis=-4), bodies.P_angular.sum(axis=-4))
    )
    D_tran, D_rot = bodies.I_linear.sum(axis=-3), bodies.I_angular.sum(axis=-3)
    return SplitDynamics(bodies.coordinates, D_tran, D_rot, P_tran, P_rot, -whole.load, whole.damping)


@dataclass(frozen=True, eq=False, repr=False)
class SplitDynamics(Batched):
    """Dynamics T = (D_tran + D_rot) q̈ + H_tran(q̇) + H_rot(q̇) + B q̇ + G with parts that can be dropped (29).

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    D_tran, D_rot : (..., M, M) ndarray
        Translational and rotational parts of the mass matrix I* (30).
    P_tran, P_rot : (..., M, M, M) ndarray
        Parts of P* for ``H_i = Σ P[i, a, b] q̇_a q̇_b``, symmetric in a and b. In holonomic coordinates
        each holds the Christoffel symbols of its D.
    G : (..., M) ndarray
        Efforts that hold the mechanism against gravity (33) and other applied loads, −Tᴸ.
    damping : (..., M, M) ndarray
        Damping matrix B, which is not part of the source; it is never dropped.
    dropped : tuple of str
        Descriptions of the dropped parts.

    Examples
    --------
    >>> arm = split(kic.load("horn-two-link").at([0.3, 0.5]))
    >>> arm.H_tran([1.0, 2.0]).round(4)
    array([-1.9177,  0.2397])
    >>> arm.without("G").effort_deviation([1.0, 2.0], [0.0, 0.0]).relative.round(3)
    array([1.123, 0.934])
    """

    _one_line = ("coordinates", "dropped", "batch")
    _per_member = ("G", 1)

    coordinates: tuple[str, ...]
    D_tran: np.ndarray
    D_rot: np.ndarray
    P_tran: np.ndarray
    P_rot: np.ndarray
    G: np.ndarray
    damping: np.ndarray
    dropped: tuple[str, ...] = ()
    _full_model: SplitDynamics | None = None

    def H_tran(self, qd: Any) -> np.ndarray:
        """Return the translational Coriolis and centrifugal efforts (..., M) (31)."""
        return self._velocity_efforts(self.P_tran, qd)

    def H_rot(self, qd: Any) -> np.ndarray:
        """Return the rotational Coriolis, centrifugal and gyroscopic efforts (..., M) (32)."""
        return self._velocity_efforts(self.P_rot, qd)

    def _velocity_efforts(self, P: np.ndarray, qd: Any) -> np.ndarray:
        v = as_array("qd", qd, len(self.coordinates))
        broadcast_batches(model=self.batch, qd=v.shape[:-1])
        return form(P, v, v)

    def dynamics(self) -> Dynamics:
        """Return the sum of the remaining parts, with its inverse and forward dynamics (29)."""
        I, P = self.D_tran + self.D_rot, self.P_tran + self.P_rot
        return Dynamics(self.coordinates, I, P, -self.G, damping=self.damping)

    def without(self, part: Literal["D_tran", "D_rot", "H_tran", "H_rot", "G"]) -> SplitDynamics:
        """Return the model without one part."""
        if text("part", part) not in TENSORS:
            raise unknown("part", part, "split dynamics", tuple(TENSORS), quoted=False)
        return self._drop(part, **{TENSORS[part]: True})

    def simplified(self, n_major: int = 3) -> SplitDynamics:
        """Return the simplified arm model of the source (p. 17): major joints translate, minor joints rotate.

        The mass matrix keeps D_tran among the first `n_major` coordinates, D_rot among the others, and
        both parts between these, which the source does not treat. Velocity parts are kept. The source has
        serial arms of revolute joints in joint angles; other mechanisms and coordinates lose the same
        entries.

        Examples
        --------
        >>> split(kic.load("lee-puma").at([0.3, -0.6, 1.1, 0.8, -0.9, 0.2])).simplified().dropped
        ('D_rot among joint1, joint2, joint3; D_tran among joint4, joint5, joint6',)
        """
        names = self.coordinates
        major = np.arange(len(names)) < integer("n_major", n_major, 1, len(names))
        groups = (("D_rot", names[:n_major]), ("D_tran", names[n_major:]))
        description = "; ".join(f"{part} among {', '.join(group)}" for part, group in groups if group)
        return self._drop(description, D_rot=np.outer(major, major), D_tran=np.outer(~major, ~major))

    def _drop(self, description: str, **masks: Any) -> SplitDynamics:
        """Return the model with the masked entries of some parts set to zero."""
        kept: dict[str, Any] = {name: np.where(mask, 0, getattr(self, name)) for name, mask in masks.items()}
        dropped, full = (*self.dropped, description), self._full_model or self
        return replace(self, **kept, dropped=dropped, _full_model=full)

    def effort_deviation(self, qd: Any, qdd: Any) -> EffortDeviation:
        """Return the errors of the efforts over a motion (..., M) that the dropped parts cause."""
        effort = (self._full_model or self).dynamics().inverse_dynamics(qd, qdd)
        error = self.dynamics().inverse_dynamics(qd, qdd) - effort
        if object in (effort.dtype, error.dtype) or not effort.size:
            batch = effort.shape[:-1]
            message = (
                f"The motion must have at least one configuration of numbers, got {error.dtype} {batch}."
            )
            raise InputError(f"{message} Substitute numbers for symbols.", key="motion", got=batch)
        return EffortDeviation(self.coordinates, self.dropped, effort, error)

    def summary(self) -> Summary:
        """Return tables of the parts that do not depend on velocities."""
        sheet = Summary(f"split dynamics in {', '.join(self.coordinates)}")
        if self.dropped:
            sheet.say(f"dropped: {'; '.join(self.dropped)}")
        index, names = sheet.member(self.batch), self.coordinates
        if index is not None:
            sheet.matrix("D_tran (translational mass matrix)", names, names, self.D_tran[index])
            sheet.matrix("D_rot (rotational mass matrix)", names, names, self.D_rot[index])
            sheet.matrix("G (gravity and applied loads)", names, [""], self.G[index][:, None])
        return sheet


@dataclass(frozen=True, eq=False, repr=False)
class EffortDeviation(Printable):
    """Effort errors of a simplified model over a motion, relative to the efforts of the full model.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    dropped : tuple of str
        Descriptions of the dropped parts.
    effort, error : (..., M) ndarray
        Efforts of the full model, and errors of the simplified model, over the batch of a motion.
    """

    _one_line = ("coordinates", "dropped")

    coordinates: tuple[str, ...]
    dropped: tuple[str, ...]
    effort: np.ndarray
    error: np.ndarray

    def _largest(self, a: np.ndarray) -> np.ndarray:
        return np.abs(a).reshape(-1, len(self.coordinates)).max(axis=0)

    @property
    def relative(self) -> np.ndarray:
        """Ratio (M,) of largest error and largest effort; inf for an error without effort."""
        top, zero = self._largest(self.error), np.zeros(len(self.coordinates))
        with np.errstate(divide="ignore"):
            return np.divide(top, self._largest(self.effort), out=zero, where=top != 0)

    def summary(self) -> Summary:
        """Return a table of errors and efforts."""
        sheet = Summary(f"dropped: {'; '.join(self.dropped) or 'nothing'}")
        columns = ["max error", "RMS error", "max effort", "max error / max effort"]
        rms = np.sqrt((np.abs(self.error) ** 2).mean(axis=tuple(range(self.error.ndim - 1))))
        values = [self._largest(self.error), rms, self._largest(self.effort), self.relative]
        caption = f"efforts and their errors over {counted(self.effort[..., 0].size, 'configuration')}"
        # largest=0.0: columns differ in units, so small entries are not rounded to 0
        sheet.matrix(caption, self.coordinates, columns, np.stack(values, axis=-1), largest=0.0)
        return sheet
