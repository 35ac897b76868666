"""Mass matrix (I*), Christoffel symbols (P*) and loads in named coordinates; inverse and forward dynamics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.units import effort_unit, row_unit
from kic.errors import InputError, SingularError, batch_indices
from kic.kinematics import jets
from kic.kinematics.coefficients import Coefficients, expect, tensor
from kic.kinematics.products import contract, evaluate_form
from kic.numerics.arguments import by_name, flag, names_of
from kic.numerics.arrays import (
    as_array,
    broadcast_batches,
    check_finite,
    one_batch,
)
from kic.numerics.display import Printable, Summary, largest_of
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable, batch_axes, per
from kic.numerics.tolerances import INERTIA_CONDITION_MAX


class Dynamics(Printable, Tabular):
    """The dynamic model T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ in named coordinates.

    With the Coriolis matrix C_kb = q̇_a P*_kab, Ṁ − 2C is skew, and ∂I*_lm/∂q_n = P*_lnm + P*_mnl. In
    holonomic coordinates P* is symmetric in its last two indices and equals the Christoffel symbols of the
    first kind. For quasi-velocities, such as the angular velocity of a ball joint, it is not symmetric and
    must not be symmetrized. Methods take velocities `qd`, accelerations `qdd` and efforts (..., M), whose
    batches broadcast.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the M coordinates.
    I : (..., M, M) ndarray
        Mass matrix, the effective inertia I* of the source (2-196), from (2-126) to (2-144).
    P : (..., M, M, M) ndarray
        Christoffel symbols, the inertia power P* of the source (2-197).
    load : (..., M) ndarray
        Generalized applied load Tᴸ of gravity, forces and springs (2-125, 2-147).
    damping : (..., M, M) ndarray
        Matrix B of the dampers, whose load is −B q̇.
    holonomic : bool
        True if all coordinates have values.
    inertia_error : (..., M) or None
        Estimated round-off in the diagonal of I*, from the masses of the mechanism. Inertia within 64 times
        this counts as zero. None if I* was given as an array: only a condition above 1e15 is an error.
    efforts : tuple of str
        Names of the coordinates of the efforts: those of the model, unless `transfer` was given `left`. I*,
        P* and damping have a row, and the load an entry, for each of these names.

    Examples
    --------
    >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
    >>> d.I
    array([[2.66666667, 0.83333333],
           [0.83333333, 0.33333333]])
    """

    _one_line = ("coordinates", "batch")
    _counterparts: ClassVar[dict[str, str]] = {
        "mass_matrix": "I, the mass matrix",
        "M": "I, the mass matrix",
        "christoffel": "P, the Christoffel symbols",
        "C": "coriolis(qd)",
        "gravity": "load, whose negative is the static effort",
        "g": "load, whose negative is the static effort",
        "bias": "inverse_dynamics(qd, 0 * qd)",
        "effective_load": "load, or inverse_dynamics(qd, qdd) of a motion",
        "partial_transfer": "transfer(coefficients, left=…)",
    }

    def __init__(
        self,
        coordinates: Iterable[str],
        I: Any,
        P: Any,
        load: Any = None,
        *,
        damping: Any = None,
        holonomic: bool = True,
        efforts: Iterable[str] | None = None,
        inertia_error: np.ndarray | Callable[[], np.ndarray] | None = None,
    ) -> None:
        self.coordinates = names_of(coordinates, "coordinates")
        self.efforts = self.coordinates if efforts is None else names_of(efforts, "efforts")
        height, width = len(self.efforts), len(self.coordinates)
        self.I = tensor("I", I, height, width)
        self.P = tensor("P", P, height, width, width)
        if load is None:
            load = 0 * self.I.sum(axis=-1)  # NaN where I* is
        if damping is None:
            damping = 0 * self.I
        load, damping = tensor("load", load, height), tensor("damping", damping, height, width)
        self.I, self.P, self.load, self.damping = one_batch((2, 3, 1, 2), self.I, self.P, load, damping)
        self.holonomic = flag("holonomic", holonomic)
        self._inertia_error = inertia_error
        # of the mechanism, for the units of a table; None if made from arrays or transferred
        self._description: MechanismDescription | None = None

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        description = self._description

        def unit(*columns: str) -> str:
            """Return the unit of a coefficient divided by the unit of the effort."""
            if description is None:
                return ""
            rows = [row_unit(description, name) for name in columns]
            return f"{description.units.time}² {per(*rows)}"

        def damped(column: str) -> str:
            if description is None:
                return ""
            return f"{description.units.time} {per(row_unit(description, column))}"

        axes = tuple(TableAxis("coordinate" + f"_{k}" * (k > 1), self.coordinates) for k in (1, 2))
        index = (*batch_axes(self.batch), TableAxis("effort", self.efforts))
        made = []
        if description is not None:
            units = np.array([effort_unit(description, name) for name in self.efforts])
            made.append(Variable("unit", np.broadcast_to(units, self.load.shape)))
        made += [Variable("I", self.I, unit, axes[:1]), Variable("load", self.load)]
        made += [Variable("damping", self.damping, damped, axes[:1]), Variable("P", self.P, unit, axes)]
        return DataTable("dynamics", index, tuple(made)).select(names)

    @property
    def inertia_error(self) -> np.ndarray | None:
        """Estimated round-off (..., M) in the diagonal of I*."""
        if callable(self._inertia_error):  # computed when first needed
            self._inertia_error = self._inertia_error()
        error = self._inertia_error
        return None if error is None else np.broadcast_to(error, (*self.batch, error.shape[-1]))

    def _later(self, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[], np.ndarray] | None:
        """Return a function that applies `change` to the inertia error on demand; None without an error."""
        own = self._inertia_error
        if own is None:
            return None
        return lambda: change(own() if callable(own) else own)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inertia_error": self.inertia_error}

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.I.shape[:-2]

    def _motion(self, own: bool = True, **given: Any) -> list[np.ndarray]:
        """Return arguments (..., M) whose batches broadcast; `own` requires efforts at the coordinates."""
        if own and self.efforts != self.coordinates:
            raise InputError(
                f"Efforts must be at the coordinates, {', '.join(self.coordinates)}, got "
                f"{', '.join(self.efforts)}. Transfer without `left`.",
                efforts=self.efforts,
            )
        size = len(self.coordinates)
        arrays = [as_array(name, value, size) for name, value in given.items()]
        batches = {name: a.shape[:-1] for name, a in zip(given, arrays, strict=True)}
        broadcast_batches(model=self.batch, **batches)
        return arrays

    def inverse_dynamics(self, qd: Any, qdd: Any) -> np.ndarray:
        """Compute the efforts (..., M) of a motion, T = I* q̈ + q̇ᵀ P* q̇ + B q̇ − Tᴸ (2-198).

        This is the general form (2-145), in coordinates of the tree (3-5); the first two terms are the
        inertial efforts (2-195).

        Examples
        --------
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.inverse_dynamics([0.0, 0.0], [0.0, 0.0])  # static efforts against gravity
        array([19.62 ,  4.905])
        """
        v, a = self._motion(own=False, qd=qd, qdd=qdd)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is an error, below
            return self._finite("Efforts", evaluate_form(self.I, (a,)) + self._bias(v))

    def _finite(self, quantity: str, result: np.ndarray) -> np.ndarray:
        """Return results (..., K); raise an error if a member with finite I* and load overflows."""
        if result.dtype.kind != "O" and not np.isfinite(result).all():
            known = np.isfinite(self.I).all(axis=(-1, -2)) & np.isfinite(self.load).all(axis=-1)
            name = ", ".join(self.coordinates)
            check_finite(quantity, name, result, np.broadcast_to(known, result.shape[:-1]))
        return result

    def _bias(self, v: np.ndarray) -> np.ndarray:
        """Return the efforts (..., M) of a motion at zero accelerations."""
        return evaluate_form(self.P, (v, v)) + evaluate_form(self.damping, (v,)) - self.load

    def forward_dynamics(self, qd: Any, effort: Any) -> np.ndarray:
        """Compute the accelerations (..., M) due to efforts, q̈ = I*⁻¹ (T − q̇ᵀ P* q̇ − B q̇ + Tᴸ) (2-199).

        This is the general form (2-146). Efforts are (..., M), or a dict of efforts at named coordinates;
        others are zero.

        Raises
        ------
        SingularError
            If I* is singular because some motion moves no mass.

        Examples
        --------
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.forward_dynamics([0.0, 0.0], [19.62, 4.905])
        array([0., 0.])
        """
        v, force = self._motion(qd=qd, effort=by_name("effort", effort, self.coordinates))
        with np.errstate(over="ignore", invalid="ignore"):
            net = self._finite("Velocity forces", force - self._bias(v))
        if "O" in (self.I.dtype.kind, net.dtype.kind):  # symbols are inverted exactly
            return evaluate_form(jets.invert((self.I,))[0], (net,))
        check_regular(self)
        inertia = np.broadcast_to(self.I, net.shape[:-1] + self.I.shape[-2:])
        return np.linalg.solve(inertia, net[..., None])[..., 0]

    def transfer(self, coefficients: Coefficients, *, left: Coefficients | None = None) -> Dynamics:
        """Return the model in other coordinates q (3-34, 3-35, 3-36), fewer (4-32), or dependent ones.

        Legs of a platform are transferred to its motion by (4-45) to (4-47), and their sum to the actuators
        by (4-61), (4-62). Examples are (C-5) to (C-7), (E-7) and Tables E-1 to E-2.

        With A = G^φ_q, B = H^φ_qq and L = A::

            I*_q = Lᵀ I* A        P*_q[k,a,b] = L_ik (P*_imn A_ma A_nb + I*_in B_nab)        Tᴸ_q = Lᵀ Tᴸ

        The efforts follow from virtual work, T_φ = [G^q_φ]ᵀ T_q (3-10), by (3-29) to (3-33). The damping
        matrix transforms like I*. Ṁ − 2C stays skew and ∂I*_lm/∂q_n = P*_lnm + P*_mnl, also for
        quasi-velocities.

        Parameters
        ----------
        coefficients : Coefficients
            Coefficients of all coordinates φ of this model (rows, in any order) with respect to the new ones
            (columns), such as an inverse. They must have full rank, and order 2 at least.
        left : Coefficients, optional
            Coefficients of φ with respect to the coordinates of the efforts, if these are not the new ones.
            For efforts at all w = (y, c) and motion of y only, the result is (4-31), which includes the
            efforts that maintain the constraints c. Such a model supports `inverse_dynamics` only.

        Returns
        -------
        Dynamics
            Model with I* (..., K, M), P* (..., K, M, M) and load (..., K) for K efforts and M new
            coordinates.

        Raises
        ------
        InputError
            If a coordinate is not a row of the coefficients, or these have order 1.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.3, 1.5])
        >>> d = c.dynamics().transfer(c.coefficients(["tip.x", "tip.y"]).inverse())
        >>> d.coordinates, d.inverse_dynamics([0.0, 0.0], [0.0, 0.0]).round(3)  # forces at the tip
        (('tip.x', 'tip.y'), array([-2.135, 14.055]))
        """
        right = expect("coefficients", coefficients).matched(self.coordinates)
        if left is None and self.efforts != self.coordinates:
            raise InputError(
                f"`left` must be given because efforts are at {', '.join(self.efforts)}. To keep them there, "
                "give kic.Coefficients.identity(…).",
                key="left",
            )
        other = right if left is None else expect("left", left).matched(self.efforts)
        batch = broadcast_batches(model=self.batch, coefficients=right.batch, left=other.batch)
        right.needed("H", 2)
        # efforts are composed with the map like other dependents, and then projected
        I, P = jets.compose((self.I, self.P), right.tensors)
        L = np.broadcast_to(np.swapaxes(other.G, -1, -2), (*batch, len(other.columns), len(self.efforts)))
        return Dynamics(
            right.columns,
            L @ I,
            contract(L, P, 1, 2),
            contract(L, self.load, 1, 0),
            damping=L @ self.damping @ right.G,
            holonomic=right.quasi.isdisjoint(right.columns),
            efforts=other.columns,
            inertia_error=self._later(lambda error: moved_error(error, right.G)),
        )

    def __add__(self, other: Dynamics) -> Dynamics:
        """Add the model of another mechanism with the same coordinates.

        The sum of a platform and its legs is (4-48), (4-49), and of legs alone (E-5). Coordinates are
        matched by name; batches broadcast.
        """
        if not isinstance(other, Dynamics):
            return NotImplemented
        picks = []
        for mine, its in ((self.efforts, other.efforts), (self.coordinates, other.coordinates)):
            if set(mine) != set(its):
                message = (
                    f"Models must have the same coordinates, got {', '.join(mine)} and {', '.join(its)}. "
                    "Transfer one of them first."
                )
                raise InputError(message, names=mine, got=its)
            picks.append([its.index(name) for name in mine])
        k, m = picks
        broadcast_batches(first=self.batch, second=other.batch)
        I, P = jets.take((other.I, other.P), k, m)
        return Dynamics(
            self.coordinates,
            self.I + I,
            self.P + P,
            self.load + other.load[..., k],
            damping=self.damping + other.damping[..., k, :][..., m],
            holonomic=self.holonomic and other.holonomic,
            efforts=self.efforts,
            inertia_error=self._later(lambda error: error + _error_of(other)[..., m]),
        )

    def __radd__(self, other: Any) -> Dynamics:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # where sum() starts

    def kinetic_energy(self, qd: Any) -> np.ndarray:
        """Compute the kinetic energy (...,), ½ q̇ᵀ I* q̇ (2-140).

        Examples
        --------
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> round(float(d.kinetic_energy([1.0, 0.0])), 6)
        1.333333
        """
        (v,) = self._motion(qd=qd)
        return np.einsum("...k,...k->...", v, evaluate_form(self.I, (v,))) / 2

    def coriolis(self, qd: Any) -> np.ndarray:
        """Compute the Coriolis matrix (..., M, M) C_kb = q̇_a P*_kab, with efforts C q̇ and Ṁ − 2C skew.

        Examples
        --------
        >>> d = kic.load("horn-two-link").at([0.0, 1.5]).dynamics()
        >>> d.coriolis([1.0, 1.0]).shape
        (2, 2)
        """
        (v,) = self._motion(qd=qd)
        return evaluate_form(self.P, (v, None))

    def inertia_gradient(self) -> np.ndarray:
        """Return the derivatives of the mass matrix, ``[..., l, m, n]`` = ∂I*_lm/∂q_n = P*_lnm + P*_mnl.

        Examples
        --------
        >>> d = kic.load("horn-two-link").at([0.0, 0.0]).dynamics()
        >>> d.inertia_gradient().shape
        (2, 2, 2)
        """
        self._motion()
        lmn = np.swapaxes(self.P, -1, -2)
        return lmn + np.swapaxes(lmn, -3, -2)

    def summary(self, power: bool = True) -> Summary:
        """Return labelled tables of I*, P* (with `power`) and the load."""
        power = flag("power", power)
        sheet = Summary(f"dynamics in {', '.join(self.coordinates)}")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        names, efforts = self.coordinates, self.efforts
        sheet.matrix("I* (inertia)", efforts, names, self.I[index])
        if power:
            sheet.say("\nP* (Christoffel symbols)")
            sheet.planes("P*", efforts, names, names, self.P[index])
        sheet.matrix("Tᴸ (applied load)", efforts, [""], self.load[index][:, None])
        if largest_of(self.damping[index]):
            sheet.matrix("B (damping)", efforts, names, self.damping[index])
        return sheet


def moved_error(error: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return the error (..., m) of the diagonal of Aᵀ I A from that of the diagonal of I (..., M)."""
    if A.dtype == object:
        return np.zeros(A.shape[-1])
    return np.einsum("...na,...n->...a", np.abs(np.real(A)), np.sqrt(error)) ** 2


def check_inertia_regular(I: np.ndarray, error: np.ndarray | None, coordinates: tuple[str, ...]) -> None:
    """Raise `SingularError` for a singular I* (..., M, M), naming the motion that moves no mass.

    Members that are not finite are ignored. `error` (..., M) is the estimated error of the diagonal of I*.
    The exception carries `condition`, `coordinates`, and the indices `failed` in the flat batch.
    """
    if not coordinates:
        return
    flat = np.real(I).reshape(-1, *I.shape[-2:])
    known = np.isfinite(flat).all(axis=(1, 2))
    if not known.any():
        return
    # scale each coordinate by its own inertia, because units can differ
    scale = np.sqrt(np.abs(np.einsum("bnn->bn", flat[known])))
    safe = np.where(scale > 0, scale, 1.0)
    size, modes = np.linalg.eigh(flat[known] / (safe[:, :, None] * safe[:, None, :]))
    floor = np.zeros_like(size)
    if error is not None:
        of_diagonal = np.broadcast_to(error, I.shape[:-1]).reshape(flat.shape[:-1])[known]
        # first-order bound of the change of eigenvalues by errors of the entries
        floor = np.einsum("bnk,bn->bk", np.abs(modes), np.sqrt(jets.ERROR_FACTOR * of_diagonal) / safe) ** 2
    zero = (size <= floor) | (size <= 0)
    condition = np.where(zero.any(axis=1), np.inf, size[:, -1] / np.where(size[:, 0] > 0, size[:, 0], 1.0))
    worst = int(np.argmax(condition))
    failed = np.flatnonzero(known)[condition > INERTIA_CONDITION_MAX].tolist()
    if condition[worst] > INERTIA_CONDITION_MAX:
        share = np.abs(modes[worst, :, int(np.argmax(zero[worst]))])
        names = [c for c, x in zip(coordinates, share, strict=True) if x > 0.1 * share.max()]
        raise SingularError(
            f"I* has no inverse (condition {condition[worst]:.1e}): the motion of {', '.join(names)} "
            "moves no mass. Give the bodies beyond it mass and inertia.",
            condition=float(condition[worst]),
            coordinates=tuple(names),
            failed=failed,
        )


def _error_of(d: Dynamics) -> np.ndarray:
    """Return the error of the diagonal of I*, or zeros if there is none."""
    return np.zeros(len(d.coordinates)) if d.inertia_error is None else d.inertia_error


def computed_dynamics(
    coordinates: tuple[str, ...],
    tensors: Sequence[np.ndarray],
    holonomic: bool,
    inertia_error: Callable[[], np.ndarray],
    description: MechanismDescription,
) -> Dynamics:
    """Return the model from results I*, P*, Tᴸ and B of the kernels, without checks."""
    made = Dynamics.__new__(Dynamics)
    made.coordinates = made.efforts = coordinates
    made.I, made.P, made.load, made.damping = tensors
    made.holonomic, made._inertia_error, made._description = holonomic, inertia_error, description
    return made


def check_regular(dynamics: Dynamics) -> None:
    """Raise an error for a singular I*, naming the motion that moves no mass."""
    batch = dynamics.I.shape[:-2]
    with batch_indices(range(prod(batch)), batch):
        check_inertia_regular(dynamics.I, dynamics.inertia_error, dynamics.coordinates)
