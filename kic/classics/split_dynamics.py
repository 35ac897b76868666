"""Dynamics split into translational and rotational parts: the generalized d'Alembert equations.

Equations are those of C. S. G. Lee, B. H. Lee and R. Nigam, "An Efficient Formulation of Robot Arm Dynamics
for Control Analysis and Manipulator Design", 1982::

    T_i = Σ_j (D_ij^tran + D_ij^rot) q̈_j + H_i^tran(q, q̇) + H_i^rot(q, q̇) + G_i                         (29)

The source derives the parts (30-33) for serial arms of revolute joints. Its sums over links equal Freeman's
sums over bodies: linear momentum gives the translational parts and angular momentum the rotational parts.
`Configuration.body_contributions` therefore extends them to other joints, loops and coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kic.configuration import Configuration, model_of
from kic.dynamics.dynamics import Dynamics
from kic.errors import InputError, SingularError, counted, invalid, unknown
from kic.kernels import layout as lay
from kic.kinematics.products import form
from kic.numerics.arguments import choice, entries, instance, integer, text
from kic.numerics.arrays import as_array, broadcast_batches
from kic.numerics.display import Batched, Printable, Summary
from kic.transfer.compiled_model import CompiledModel

# parts of the dynamics, and the attributes that hold their tensors
TENSORS = {"D_tran": "D_tran", "D_rot": "D_rot", "H_tran": "P_tran", "H_rot": "P_rot", "G": "G"}
PARTS = tuple(TENSORS)
# parts that `SplitDynamics.simplified` drops between major and minor joints
COUPLING_DROPS = {"both": (), "tran": ("D_rot",), "rot": ("D_tran",), "none": ("D_rot", "D_tran")}
VelocityTerm = str | tuple[str, str]


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
        One configuration or a batch, for example those of a motion.
    wrt : str or list of str, optional
        Coordinates, as in `Configuration.coefficients`; by default those of the mechanism.
    failures : {"raise", "mask"}
        Treatment of failed members, as in `Configuration.coefficients`.

    Raises
    ------
    InertiaError, InputError, SingularError
        Under the same conditions as `Configuration.body_contributions` and `Configuration.dynamics`.

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
    return SplitDynamics(
        bodies.coordinates,
        bodies.I_linear.sum(axis=-3),
        bodies.I_angular.sum(axis=-3),
        P_tran,
        P_rot,
        -whole.load,
        whole.damping,
        _serial_arm_obstacle=_serial_arm_obstacle(model_of(configuration), wrt is None),
    )


def _serial_arm_obstacle(model: CompiledModel, joint_coordinates: bool) -> str:
    """Return the reason why a model is not a serial arm of revolute joints; '' for such an arm."""
    tree = model.tree
    if not joint_coordinates:
        return "coordinates other than its joint angles"
    if not model.is_open_chain:
        return "loops, couplings, fixed distances or omitted coordinates"
    if any(tree.cols[:, lay.KIND] != lay.REVOLUTE):
        types = {joint.type for joint in model.description.joints if joint.dof} - {"revolute"}
        return f"joints of type {', '.join(sorted(types))}"
    if tree.cols[:, lay.PARENT].tolist() != list(range(-1, tree.size - 1)):
        return "branches"
    return "coordinates in another order than its joints" if tree.to_coordinates is not None else ""


@dataclass(frozen=True, eq=False, repr=False)
class SplitDynamics(Batched):
    """Dynamics T = (D_tran + D_rot) q̈ + H_tran(q̇) + H_rot(q̇) + B q̇ + G with parts that can be dropped (29).

    `split` returns the full model. Objects are immutable: `without` and `simplified` return new objects.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    D_tran, D_rot : (..., M, M) ndarray
        Translational and rotational parts of the mass matrix I* (30).
    P_tran, P_rot : (..., M, M, M) ndarray
        Parts of P* for ``H_i = Σ P[i, a, b] q̇_a q̇_b``, symmetric in a and b. In holonomic coordinates each
        holds the Christoffel symbols of its D.
    G : (..., M) ndarray
        Efforts that hold the mechanism against gravity (33) and other applied loads, −Tᴸ.
    damping : (..., M, M) ndarray
        Damping matrix B, which is not part of the source; it is never dropped.
    dropped : tuple of str
        Descriptions of the dropped parts.

    Examples
    --------
    >>> arm = split(kic.load("horn-two-link").at([0.3, 0.5]))
    >>> arm.inverse_dynamics([1.0, 2.0], [0.0, 0.0]).round(4)
    array([15.5574,  3.6571])
    >>> arm.without("H_rot").without("G").inverse_dynamics([1.0, 2.0], [0.0, 0.0]).round(4)
    array([-1.9177,  0.2397])
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
    _serial_arm_obstacle: str = ""

    @property
    def full_model(self) -> SplitDynamics:
        """Model before parts were dropped."""
        return self if self._full_model is None else self._full_model

    def H_tran(self, qd: Any) -> np.ndarray:
        """Return the translational Coriolis and centrifugal efforts (..., M) (31).

        Examples
        --------
        >>> split(kic.load("horn-two-link").at([0.3, 0.5])).H_tran([1.0, 2.0]).round(4)
        array([-1.9177,  0.2397])
        """
        return self._velocity_efforts(self.P_tran, qd)

    def H_rot(self, qd: Any) -> np.ndarray:
        """Return the rotational Coriolis, centrifugal and gyroscopic efforts (..., M) (32).

        Examples
        --------
        >>> split(kic.load("horn-two-link").at([0.3, 0.5])).H_rot([1.0, 2.0])
        array([0., 0.])
        """
        return self._velocity_efforts(self.P_rot, qd)

    def _velocity_efforts(self, P: np.ndarray, qd: Any) -> np.ndarray:
        v = as_array("qd", qd, len(self.coordinates))
        broadcast_batches(model=self.batch, qd=v.shape[:-1])
        return form(P, v, v)

    def _dynamics(self) -> Dynamics:
        """Return the sum of the remaining parts."""
        I, P = self.D_tran + self.D_rot, self.P_tran + self.P_rot
        return Dynamics(self.coordinates, I, P, -self.G, damping=self.damping)

    def inverse_dynamics(self, qd: Any, qdd: Any) -> np.ndarray:
        """Return the efforts (..., M) that produce a motion, from the remaining parts (29).

        Examples
        --------
        >>> split(kic.load("horn-two-link").at([0.0, 0.0])).inverse_dynamics([0.0, 0.0], [0.0, 0.0])
        array([19.62 ,  4.905])
        """
        return self._dynamics().inverse_dynamics(qd, qdd)

    def forward_dynamics(self, qd: Any, effort: Any) -> np.ndarray:
        """Return the accelerations (..., M) caused by efforts, from the remaining parts.

        Raises
        ------
        SingularError
            If the remaining mass matrix is not positive definite.

        Examples
        --------
        >>> split(kic.load("horn-two-link").at([0.0, 0.0])).forward_dynamics([0, 0], [19.62, 4.905])
        array([0., 0.])
        """
        try:
            return self._dynamics().forward_dynamics(qd, effort)
        except SingularError as error:
            if not self.dropped:
                raise
            raise SingularError(
                "The remaining mass matrix must be positive definite, got condition "
                f"{error.numbers['condition']:.1e} without {'; '.join(self.dropped)}. Drop fewer parts.",
                **error.numbers,
            ) from None

    def without(
        self, part: str, at: str | Iterable[str] | None = None, by: str | Iterable[VelocityTerm] | None = None
    ) -> SplitDynamics:
        """Return the model without one part, or without some of its entries.

        Parameters
        ----------
        part : {"D_tran", "D_rot", "H_tran", "H_rot", "G"}
            Part to drop.
        at : str or list of str, optional
            Coordinates whose efforts lose the part; by default all.
        by : str or list of str, optional
            Coordinates whose motion causes the dropped entries; by default all. For D these are the entries
            of the pairs (`at`, `by`) and their transposes. For H these are the terms with the velocity of any
            named coordinate. A pair of names, ("waist", "elbow"), selects the product of both velocities.

        Raises
        ------
        InputError
            If `by` is given for G, or contains pairs of names for D.

        Examples
        --------
        >>> arm = split(kic.load("horn-two-link").at([0.3, 0.5]))
        >>> arm.without("D_tran", at="shoulder", by="elbow").D_tran.round(3)
        array([[2.378, 0.   ],
               [0.   , 0.25 ]])
        >>> arm.without("H_tran", by=[("shoulder", "elbow")]).H_tran([1.0, 2.0]).round(4)
        array([-0.9589,  0.2397])
        """
        if text("part", part) not in PARTS:
            raise unknown("part", part, "split dynamics", PARTS, quoted=False)
        at, by = ((x,) if isinstance(x, str) else None if x is None else tuple(entries(x)) for x in (at, by))
        mask = self._selected("at", at)
        if part == "G":
            if by is not None:
                raise invalid("by", "must be None for G", by, "Gravity does not depend on velocity.")
        elif part.startswith("D"):
            mask = np.logical_and.outer(mask, self._selected("by", by))
            mask |= mask.T
        else:
            mask = np.logical_and.outer(mask, self._selected_products(by))
        return self._drop({part: mask}, part + _described("at", at) + _described("by", by))

    def _index(self, argument: str, name: Any) -> int:
        if not isinstance(name, str):
            raise invalid(
                argument,
                "must contain names of coordinates",
                name,
                "Pairs of names are only possible in `by` for H_tran and H_rot.",
            )
        if name not in self.coordinates:
            raise unknown("coordinate", name, "split dynamics", self.coordinates, quoted=False)
        return self.coordinates.index(name)

    def _selected(self, argument: str, names: tuple[Any, ...] | None) -> np.ndarray:
        """Return a mask (M,) of named coordinates; all for None."""
        mask = np.full(len(self.coordinates), names is None)
        mask[[self._index(argument, name) for name in names or ()]] = True
        return mask

    def _selected_products(self, terms: tuple[Any, ...] | None) -> np.ndarray:
        """Return a mask (M, M) of velocity products; all for None."""
        mask = np.full((len(self.coordinates),) * 2, terms is None)
        for term in terms or ():
            if isinstance(term, tuple) and len(term) == 2:
                a, b = (self._index("by", name) for name in term)
                mask[a, b] = mask[b, a] = True
            else:
                a = self._index("by", term)
                mask[a], mask[:, a] = True, True
        return mask

    def simplified(
        self, n_major: int = 3, coupling: Literal["both", "tran", "rot", "none"] = "both"
    ) -> SplitDynamics:
        """Return the simplified arm model of the source (p. 17): major joints translate, minor joints rotate.

        The mass matrix keeps D_tran among the major joints and D_rot among the minor joints. Velocity parts
        are kept; use `compare_parts` and `without` to drop them.

        Parameters
        ----------
        n_major : int
            Number of major joints, counted from the base.
        coupling : {"both", "tran", "rot", "none"}
            Parts of the mass matrix to keep between major and minor joints. The source does not treat them.

        Raises
        ------
        InputError
            If the mechanism is not a serial arm of revolute joints in joint angles, or has no minor joints.

        Examples
        --------
        >>> arm = split(kic.load("lee-puma").at([0.3, -0.6, 1.1, 0.8, -0.9, 0.2]))
        >>> arm.simplified().dropped
        ('D_rot among joint1, joint2, joint3; D_tran among joint4, joint5, joint6',)
        """
        if self._serial_arm_obstacle:
            message = (
                "The mechanism must be a serial arm of revolute joints in joint angles, got "
                f"{self._serial_arm_obstacle}. Use `without` to drop parts by name."
            )
            raise InputError(message, key="mechanism", got=self._serial_arm_obstacle)
        size = len(self.coordinates)
        integer("n_major", n_major, 1, size - 1)
        dropped = COUPLING_DROPS[choice("coupling", coupling, COUPLING_DROPS)]
        major = np.arange(size) < n_major
        between = np.not_equal.outer(major, major)
        masks = {
            "D_rot": np.logical_and.outer(major, major) | (between & ("D_rot" in dropped)),
            "D_tran": np.logical_and.outer(~major, ~major) | (between & ("D_tran" in dropped)),
        }
        text = f"D_rot among {', '.join(self.coordinates[:n_major])}"
        text += f"; D_tran among {', '.join(self.coordinates[n_major:])}"
        return self._drop(masks, text + (f"; {' and '.join(dropped)} between these" if dropped else ""))

    def _drop(self, masks: Mapping[str, np.ndarray], description: str) -> SplitDynamics:
        """Return the model with the masked entries of some parts set to zero."""
        changes: dict[str, Any] = {"dropped": (*self.dropped, description), "_full_model": self.full_model}
        for name, mask in masks.items():
            changes[TENSORS[name]] = np.where(mask, 0, getattr(self, TENSORS[name]))
        return replace(self, **changes)

    def effort_deviation(self, qd: Any, qdd: Any) -> EffortDeviation:
        """Return the effort errors over a motion that the dropped parts cause.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Velocities and accelerations at the configurations of the batch.

        Raises
        ------
        InputError
            If the batch is empty or contains symbols.

        Examples
        --------
        >>> t = np.linspace(0.0, 1.0, 101)[:, None]
        >>> q, qd, qdd = np.sin(t + [0, 1]), np.cos(t + [0, 1]), -np.sin(t + [0, 1])
        >>> arm = split(kic.load("horn-two-link").at(q))
        >>> arm.without("D_rot").effort_deviation(qd, qdd).summary()
        dropped: D_rot
        <BLANKLINE>
        efforts and their errors over 101 configurations
                    max error  RMS error  max effort  max error / max effort
          shoulder    0.21602    0.16218     16.911                 0.012774
          elbow       0.1459     0.12012      3.3609                0.043411
        """
        effort = self.full_model.inverse_dynamics(qd, qdd)
        error = self.inverse_dynamics(qd, qdd) - effort
        if object in (effort.dtype, error.dtype):
            message = "The motion must be numeric, got symbols. Substitute numbers for the symbols."
            raise InputError(message, key="motion")
        if 0 in effort.shape[:-1]:
            message = (
                f"The motion must have at least one configuration, got the empty batch {effort.shape[:-1]}. "
                "Give a configuration."
            )
            raise InputError(message, key="motion", got=effort.shape[:-1])
        return EffortDeviation(self.coordinates, self.dropped, effort, error)

    def compare_parts(self, qd: Any, qdd: Any) -> PartComparison:
        """Return the effort errors over a motion for each part of the full model dropped alone.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Velocities and accelerations at the configurations of the batch.

        Examples
        --------
        >>> arm = split(kic.load("horn-two-link").at([[0.0, 0.0], [0.0, 1.5]]))
        >>> arm.compare_parts([1.0, 1.0], [0.0, 0.0]).relative.round(3).tolist()
        [[0.0, 0.0], [0.0, 0.0], [0.076, 0.102], [0.0, 0.0], [1.0, 1.0]]
        """
        return PartComparison(
            tuple(self.full_model.without(part).effort_deviation(qd, qdd) for part in PARTS)
        )

    def summary(self) -> Summary:
        """Return tables of the parts that do not depend on velocities."""
        sheet = Summary(f"split dynamics in {', '.join(self.coordinates)}")
        if self.dropped:
            sheet.say(f"dropped: {'; '.join(self.dropped)}")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        names = self.coordinates
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

    Examples
    --------
    >>> EffortDeviation(("A",), ("H_rot",), np.array([[8.0], [-10.0]]), np.array([[0.0], [1.0]])).summary()
    dropped: H_rot
    <BLANKLINE>
    efforts and their errors over 2 configurations
         max error  RMS error  max effort  max error / max effort
      A          1    0.70711          10                     0.1
    """

    _one_line = ("coordinates", "dropped")

    coordinates: tuple[str, ...]
    dropped: tuple[str, ...]
    effort: np.ndarray
    error: np.ndarray

    @property
    def max_error(self) -> np.ndarray:
        """Largest absolute error (M,)."""
        return np.abs(self.error).max(axis=tuple(range(self.error.ndim - 1)))

    @property
    def rms_error(self) -> np.ndarray:
        """Root mean square error (M,)."""
        return np.sqrt((np.abs(self.error) ** 2).mean(axis=tuple(range(self.error.ndim - 1))))

    @property
    def max_effort(self) -> np.ndarray:
        """Largest absolute effort (M,) of the full model."""
        return np.abs(self.effort).max(axis=tuple(range(self.effort.ndim - 1)))

    @property
    def relative(self) -> np.ndarray:
        """Ratio (M,) of `max_error` and `max_effort`: 0 without error, inf with an error but no effort."""
        top, zero = self.max_error, np.zeros(len(self.coordinates))
        with np.errstate(divide="ignore"):
            return np.divide(top, self.max_effort, out=zero, where=top != 0)

    @property
    def n_configurations(self) -> int:
        """Number of configurations of the motion."""
        return self.effort[..., 0].size

    def summary(self) -> Summary:
        """Return a table of errors and efforts."""
        sheet = Summary(f"dropped: {'; '.join(self.dropped) or 'nothing'}")
        columns = ["max error", "RMS error", "max effort", "max error / max effort"]
        values = np.stack([self.max_error, self.rms_error, self.max_effort, self.relative], axis=-1)
        caption = f"efforts and their errors over {counted(self.n_configurations, 'configuration')}"
        # largest=0.0: columns differ in units, so small entries are not rounded to 0
        sheet.matrix(caption, self.coordinates, columns, values, largest=0.0)
        return sheet


@dataclass(frozen=True, eq=False, repr=False)
class PartComparison(Printable):
    """Effort errors of several simplified models over one motion.

    Attributes
    ----------
    deviations : tuple of EffortDeviation
        Deviations of K simplifications of the same full model.

    Examples
    --------
    >>> effort, error = np.array([[8.0, 4.0]]), np.array([[0.0, 1.0]])
    >>> PartComparison((EffortDeviation(("A", "B"), ("H_rot",), effort, error),)).relative.tolist()
    [[0.0, 0.25]]
    """

    deviations: tuple[EffortDeviation, ...]

    @property
    def relative(self) -> np.ndarray:
        """Array (K, M) of ratios of the largest error and the largest effort."""
        return np.stack([deviation.relative for deviation in self.deviations])

    def summary(self) -> Summary:
        """Return a table of relative errors."""
        first = self.deviations[0]
        sheet = Summary(
            f"one part dropped at a time, over {counted(first.n_configurations, 'configuration')}"
        )
        labels = ["; ".join(deviation.dropped) or "nothing" for deviation in self.deviations]
        sheet.matrix("max error / max effort", labels, first.coordinates, self.relative, "dropped", 0.0)
        sheet.matrix("max effort", [""], first.coordinates, first.max_effort[None], largest=0.0)
        return sheet


def _described(word: str, names: tuple[Any, ...] | None) -> str:
    """Return the names after `word`, for `SplitDynamics.dropped`; pairs of velocities are joined by a dot."""
    if names is None:
        return ""
    listed = ("·".join(name) if isinstance(name, tuple) else name for name in names)
    return f" {word} {', '.join(listed) or 'no joint'}"
