"""State space of small deviations, ẋ = A x + B u, y = C x + D u (2-241 to 2-252, 3-48 to 3-53)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import frexp, ldexp
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from kic.analysis.linear.linearize import Linearization, Source, load_gains
from kic.description.parts import Body, Joint, Measure, Point
from kic.description.validation import part_of
from kic.dynamics.drive_train import DriveTrain
from kic.dynamics.dynamics import check_regular
from kic.errors import InputError, invalid, unknown
from kic.kinematics.coefficients import Coefficients, expect, tensor
from kic.kinematics.jets import invert
from kic.mechanism.configuration import Configuration, flat_states, model_of, motor_shafts
from kic.numerics.arguments import choice, flag, names_of, positive
from kic.numerics.arrays import broadcast_batches, map_valid_members, one_batch, reals, scatter
from kic.numerics.display import Batched, Summary
from kic.numerics.optional import import_optional

if TYPE_CHECKING:
    import control
    from scipy.signal import StateSpace as ScipyStateSpace

# name of an output and its row (..., X), None for a current
Output = tuple[str, np.ndarray | None]


@dataclass
class StateSpaceBuilder:
    """Builder of a state space from its parts (2-241 to 2-252; 2-248 and 2-251 corrected)."""

    lin: Linearization  # linearization of bodies, loads and rotors
    # (..., M, 3): derivatives of the loads with respect to components of forces and moments (2-227)
    loads: dict[str, np.ndarray] = field(default_factory=dict)
    # motors, and coefficients of their shafts to second order
    train: DriveTrain | None = None
    shafts: Coefficients | None = None
    reduced: bool = False  # True to neglect inductances

    def __post_init__(self) -> None:
        self.M = len(self.lin.coordinates)
        self.motors: tuple[str, ...] = ()
        self.batch = self.lin.batch
        self.is_inductive = np.zeros(0, dtype=bool)
        if self.train is not None and self.shafts is not None:
            self.motors = self.train.names
            self.N = np.broadcast_to(self.shafts.G, (*self.batch, *self.shafts.G.shape[-2:]))
            H = self.shafts.needed("H", 2)
            # ∂u̇/∂q of the shafts
            self.drift = np.einsum("...pln,...n->...pl", H, self.lin.qd)
            self.is_inductive = (self.train.inductance != 0) & (not self.reduced)
        self.states = (
            *self.lin.coordinates,
            *(f"{c}.rate" for c in self.lin.coordinates),
            *(f"{m}.current" for m, s in zip(self.motors, self.is_inductive, strict=True) if s),
        )

    def state_space(self, inputs: tuple[str, ...], outputs: list[Output]) -> StateSpace:
        """Build the model for named inputs, and outputs given as rows (..., X) or as names of currents."""
        lin, M, X = self.lin, self.M, len(self.states)
        inverse = self._inverse()
        labels, columns, feed = self._inputs(inputs, inverse)
        force = np.zeros((*self.batch, M, X), np.result_type(lin.K, lin.I))  # I* δq̈ by states
        force[..., :M] = -self._stiffness()
        force[..., M : 2 * M] = -lin.C
        A = np.zeros((*self.batch, X, X), force.dtype)
        A[..., :M, :M], A[..., :M, M : 2 * M] = lin.commutator, np.eye(M)
        currents = self._currents()
        if self.train is not None:
            effort_per_current = np.swapaxes(self.N, -1, -2) * self.train.torque_constant
            force += effort_per_current @ currents
            A[..., 2 * M :, :] = self._current_rates()
        A[..., M : 2 * M, :] = inverse @ force
        C = np.zeros((*self.batch, len(outputs), X))
        D = np.zeros((*self.batch, len(outputs), len(labels)))
        for p, (name, row) in enumerate(outputs):
            if row is not None:
                C[..., p, :] = row
            else:
                k = self.motors.index(name.rpartition(".")[0])
                C[..., p, :], D[..., p, :] = currents[..., k, :], feed[..., k, :]
        unsolved = np.isnan(A).any(axis=(-1, -2))
        for matrix in (A, columns, C, D):
            matrix[unsolved] = np.nan
        names = [name for name, _ in outputs]
        named = self.states, labels, names
        return StateSpace(A, columns, C, D, *named, coordinates=lin.coordinates, qd=lin.qd, qdd=lin.qdd)

    def outputs(self, rows: Coefficients, rates: bool) -> list[Output]:
        """Return outputs as pairs of names and rows (..., X), from their coefficients to second order.

        A row with a value is δu = G δq. Its rate, or an angular velocity, is δu̇ = G δq̇ + (∂u̇/∂q) δq.
        """
        drift = np.einsum("...pln,...n->...pl", rows.needed("H", 2), self.lin.qd)
        M, made = self.M, list[Output]()
        for p, label in enumerate(rows.rows):
            row = np.zeros((*self.batch, len(self.states)))
            if rates or label in rows.quasi:
                row[..., :M], row[..., M : 2 * M] = drift[..., p, :], rows.G[..., p, :]
            else:
                row[..., :M] = rows.G[..., p, :]
            made.append((f"{label}.rate" if rates else label, row))
        return made

    def _inverse(self) -> np.ndarray:
        """Return I*⁻¹ (..., M, M), NaN for unsolved members."""
        check_regular(self.lin.inertia_only)
        return invert((self.lin.I,))[0]

    def _stiffness(self) -> np.ndarray:
        """Return K minus the stiffness due to motor torques on shafts with variable ratios, Nᵀ τ = T."""
        K = self.lin.K
        if self.train is None or self.shafts is None or not np.nan_to_num(self.shafts.needed("H", 2)).any():
            return K
        torque = self.train.torques(self.shafts, self.lin.T)
        return K - np.einsum("...plk,...p->...kl", self.shafts.needed("H", 2), torque)

    def _currents(self) -> np.ndarray:
        """Return the matrix (..., K, X) of currents in terms of the states; zero for torque sources."""
        train, M = self.train, self.M
        out = np.zeros((*self.batch, len(self.motors), len(self.states)))
        if train is None:
            return out
        speed = self._speed()
        for k in range(len(self.motors)):
            if self.is_inductive[k]:
                out[..., k, 2 * M + int(self.is_inductive[:k].sum())] = 1.0
            elif train.electrical[k]:
                out[..., k, :] = -train.speed_constant[k] / train.resistance[k] * speed[..., k, :]
        return out

    def _speed(self) -> np.ndarray:
        """Return the matrix (..., K, X) of shaft speeds in terms of the states."""
        out = np.zeros((*self.batch, len(self.motors), len(self.states)))
        out[..., : self.M], out[..., self.M : 2 * self.M] = self.drift, self.N
        return out

    def _current_rates(self) -> np.ndarray:
        """Return the matrix (..., n, X) of the rates of the currents that are states (2-251)."""
        assert self.train is not None  # for the type checker
        train, inductive = self.train, self.is_inductive
        rates = -train.speed_constant[inductive, None] * self._speed()[..., inductive, :]
        rates = rates - train.resistance[inductive, None] * self._currents()[..., inductive, :]
        return rates / train.inductance[inductive, None]

    def _inputs(
        self, names: tuple[str, ...], inverse: np.ndarray
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Return labels, B (..., X, U), and the feedthrough of inputs to currents (..., K, U)."""
        M, X, coordinates = self.M, len(self.states), self.lin.coordinates
        labels: list[str] = []
        columns = [np.zeros((*self.batch, X, 0))]
        feeds = [np.zeros((*self.batch, len(self.motors), 0))]
        for name in names:
            whole, _, part = name.rpartition(".")
            gain = self.loads.get(name)
            made = [f"{name}.{c}" for c in "xyz"] if gain is not None and gain.shape[-1] == 3 else [name]
            one = np.zeros((*self.batch, X, len(made)))
            feed = np.zeros((*self.batch, len(self.motors), len(made)))
            if name in self.motors:
                self._voltage(self.motors.index(name), one, feed, inverse)
            elif name in coordinates:
                one[..., M : 2 * M, 0] = inverse[..., coordinates.index(name)]
            elif name in self.loads:
                one[..., M : 2 * M, :] = inverse @ self.loads[name]
            elif whole in self.loads and part in ("x", "y", "z"):
                one[..., M : 2 * M, 0] = (inverse @ self.loads[whole])[..., "xyz".index(part)]
            else:
                there = [*self.motors, *coordinates, *self.loads]
                raise unknown("input", name, "this state space", there, quoted=False)
            labels += made
            columns.append(one)
            feeds.append(feed)
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise invalid("inputs", "must be distinct", tuple(twice), shown=f"{', '.join(twice)} twice")
        return labels, np.concatenate(columns, axis=-1), np.concatenate(feeds, axis=-1)

    def _voltage(self, k: int, one: np.ndarray, feed: np.ndarray, inverse: np.ndarray) -> None:
        """Fill the column of a motor: its voltage, or its torque for a torque source."""
        assert self.train is not None  # for the type checker: there are motors
        train, M = self.train, self.M
        if self.is_inductive[k]:
            one[..., 2 * M + int(self.is_inductive[:k].sum()), 0] = 1 / train.inductance[k]
            return
        gain = np.ones(())
        if train.electrical[k]:
            feed[..., k, 0] = 1 / train.resistance[k]
            gain = train.torque_constant[k] / train.resistance[k]
        one[..., M : 2 * M, 0] = gain * np.einsum("...mn,...n->...m", inverse, self.N[..., k, :])


METHODS = ("zoh", "foh", "impulse", "euler", "backward_diff", "bilinear")


class StateSpace(Batched):
    """Linear model of small deviations, with names: ẋ = A x + B u, y = C x + D u.

    Made by `Linearization.state_space`; states are deviations of the coordinates, of their rates ("A.rate")
    and of the motors' currents ("M.current"). Without currents they are (2-200). A discrete model has ``dt``,
    and the next x in place of ẋ.

    Attributes
    ----------
    A : (..., X, X)
        State matrix (F of eq 2-241).
    B : (..., X, U)
        Input matrix.
    C : (..., Y, X)
        Output matrix.
    D : (..., Y, U)
        Feedthrough.
    states, inputs, outputs : tuple of str
        Names of the X states, U inputs and Y outputs.
    coordinates : tuple of str
        Names of the M coordinates, the first states.
    qd, qdd : (..., M)
        Rates and accelerations of the nominal motion.
    dt : float or None
        Time step of a discrete model.

    Examples
    --------
    >>> s = kic.load("four-bar").at({"A": 1.2}).linearize().state_space(outputs=["tip.x"])
    >>> s.states, s.inputs, s.outputs
    (('A', 'A.rate'), ('A',), ('tip.x',))
    >>> s.A.round(3)
    array([[  0.   ,   1.   ],
           [325.727,   0.   ]])
    """

    _one_line = ("states", "inputs", "outputs", "batch")
    _per_member = ("A", 2)
    _counterparts: ClassVar[dict[str, str]] = {
        "bode": "frequency_response(omega), or to_control()",
        "transfer_function": "frequency_response(omega), or to_control()",
    }

    def __init__(
        self,
        A: Any,
        B: Any,
        C: Any,
        D: Any,
        states: Iterable[str],
        inputs: Iterable[str],
        outputs: Iterable[str],
        *,
        coordinates: Iterable[str] = (),
        qd: Any = None,
        qdd: Any = None,
        dt: float | None = None,
    ) -> None:
        self.states, self.inputs = names_of(states, "states"), names_of(inputs, "inputs")
        self.outputs, self.coordinates = names_of(outputs, "outputs"), names_of(coordinates, "coordinates")
        X, U, Y, M = map(len, (self.states, self.inputs, self.outputs, self.coordinates))
        self.A, self.B, self.C, self.D = one_batch(
            (2, 2, 2, 2),
            tensor("A", A, X, X),
            tensor("B", B, X, U),
            tensor("C", C, Y, X),
            tensor("D", D, Y, U),
        )
        if self.states[: 2 * M] != (*self.coordinates, *(f"{c}.rate" for c in self.coordinates)):
            rule = f"must begin with the coordinates ({', '.join(self.coordinates)}) and their rates"
            raise invalid("states", rule, self.states, shown=", ".join(self.states))
        self.qd = np.zeros(M) if qd is None else tensor("qd", qd, M)
        self.qdd = np.zeros(M) if qdd is None else tensor("qdd", qdd, M)
        self.dt = None if dt is None else positive("dt", dt)

    @property
    def eigenvalues(self) -> np.ndarray:
        """Array (..., X) of the eigenvalues of A, NaN for unsolved members."""
        known = np.isfinite(self.A).all(axis=(-1, -2))
        safe = np.where(known[..., None, None], self.A, 0.0)
        return np.where(known[..., None], np.linalg.eigvals(safe).astype(complex), np.nan)

    def discretize(self, dt: float, *, method: str = "zoh") -> StateSpace:
        """Return the discrete-time model for a time step.

        Parameters
        ----------
        dt : float
            Time step.
        method : {"zoh", "foh", "impulse", "euler", "backward_diff", "bilinear"}
            Method of `scipy.signal.cont2discrete`; "zoh" is exact for piecewise constant inputs.

        Raises
        ------
        InputError
            If the step is not positive or so long that a matrix overflows, the method is unknown, or the
            model is discrete.

        Examples
        --------
        >>> s = kic.load("four-bar").at({"A": 1.2}).linearize().state_space()
        >>> s.discretize(0.01).A.round(4)
        array([[1.0163, 0.0101],
               [3.275 , 1.0163]])
        """
        from scipy.signal import cont2discrete

        self._require_continuous("discretize()")
        h, method = positive("dt", dt), choice("method", method, METHODS)
        A, B, C, D = (np.empty(T.shape) for T in self._matrices)
        for index in np.ndindex(self.batch):
            four = tuple(T[index] for T in self._matrices)
            if not all(np.isfinite(T).all() for T in four):
                A[index], B[index], C[index], D[index] = np.nan, np.nan, np.nan, np.nan
                continue
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    made = cont2discrete(four, h, method)[:4]
                finite = all(np.isfinite(T).all() for T in made)
            except ValueError:  # of arrays that overflow or are singular
                finite = False
            if not finite:
                raise _unsuitable_step(h, four[0])
            A[index], B[index], C[index], D[index] = made
        return self._like(A, B, C, D, dt=h)

    @property
    def _matrices(self) -> tuple[np.ndarray, ...]:
        """Tuple of A, B, C and D, broadcast to a common batch."""
        batch = broadcast_batches(**{n: getattr(self, n).shape[:-2] for n in "ABCD"})
        return tuple(np.broadcast_to(T, batch + T.shape[-2:]) for T in (self.A, self.B, self.C, self.D))

    def _like(self, A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, **other: Any) -> StateSpace:
        """Return a model with other matrices and the same names."""
        named = {"states": self.states, "coordinates": self.coordinates, "qd": self.qd, "qdd": self.qdd}
        return StateSpace(A, B, C, D, inputs=self.inputs, outputs=self.outputs, **{**named, **other})

    def _require_continuous(self, method: str) -> None:
        """Raise an error for a discrete model."""
        if self.dt is not None:
            message = (
                f"{method} requires a continuous-time model, got the time step {self.dt:g}. Call it "
                "before discretize()."
            )
            raise InputError(message, key="dt", got=self.dt)

    def frequency_response(self, omega: Any) -> np.ndarray:
        """Return the complex frequency response C (jω − A)⁻¹ B + D.

        For a discrete model, e^(jω dt) replaces jω.

        Parameters
        ----------
        omega : float or (W,) array_like
            Angular frequencies, in rad per unit of time.

        Returns
        -------
        (..., W, Y, U) ndarray
            Response of each output to each input; `np.abs` and `np.angle` are gain and phase.

        Raises
        ------
        InputError
            If a frequency is not a finite number, or is a pole of the model.

        Examples
        --------
        >>> s = kic.load("four-bar").at({"A": 1.2}).linearize().state_space(outputs=["tip.x"])
        >>> abs(s.frequency_response([0.0, 10.0])).shape
        (2, 1, 1)
        """
        w = reals(omega)
        if w is None:
            raise invalid("omega", "must be finite numbers", omega)
        points = (1j * w if self.dt is None else np.exp(1j * w * self.dt)).ravel()
        unsolved = ~np.isfinite(self.A).all(axis=(-1, -2))[..., None, None, None]
        A, B, C, D = (np.where(unsolved[..., 0], 0.0, T)[..., None, :, :] for T in self._matrices)
        own = points[:, None, None] * np.eye(len(self.states)) - A
        try:
            found = C @ np.linalg.solve(np.where(unsolved, np.eye(len(self.states)), own), B + 0j) + D
        except np.linalg.LinAlgError:
            raise invalid(
                "omega", "must not contain a pole of the model", omega, "Choose other frequencies."
            ) from None
        found = np.where(unsolved, np.nan, found)
        return found.reshape(*self.batch, *w.shape, len(self.outputs), len(self.inputs))

    def transfer(self, coefficients: Coefficients) -> StateSpace:
        """Return the model with states in other coordinates, such as those of an end effector (3-52).

        With G, H, D of the new coordinates u with respect to the old q (3-49 to 3-51), δu = G δq and
        δu̇ = G δq̇ + (∂u̇/∂q) δq. For quasi-velocities, d(δu)/dt = δu̇ + F̂₁₁ δu. For rows of ω,
        F̂₁₁ = diag(0, [ω]×), which the source omits.

        Parameters
        ----------
        coefficients : Coefficients
            Coefficients of order 3 of the new coordinates (rows) with respect to the old ones (columns).

        Returns
        -------
        StateSpace
            Model with the same inputs and outputs.

        Raises
        ------
        InputError
            If the columns are not the coordinates, the number of rows differs, the order is below 3, or the
            model is discrete.
        SingularError
            If the new coordinates cannot drive the mechanism.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.3, 1.5])
        >>> tip = c.coefficients(["tip.x", "tip.y"], order=3)
        >>> s = c.linearize([1.0, 0.0]).state_space().transfer(tip)
        >>> s.states
        ('tip.x', 'tip.y', 'tip.x.rate', 'tip.y.rate')
        """
        self._require_continuous("transfer()")
        new = expect("coefficients", coefficients)
        if set(new.columns) != set(self.coordinates):
            message = (
                f"`coefficients` must be with respect to {', '.join(self.coordinates)}, got "
                f"{', '.join(new.columns)}."
            )
            raise InputError(message, key="coefficients", columns=new.columns)
        new = new.columns_of(self.coordinates)
        M, v = len(self.coordinates), self.qd
        H, D = new.needed("H", 2), new.needed("D", 3)
        A, B, C, through = self._matrices
        G = new.G
        K = new.inverse().G
        rate = np.einsum("...pln,...n->...pl", H, v)  # ∂u̇/∂q
        dG = np.einsum("...pmn,...m->...pn", H, v)  # Ġ
        acceleration = np.einsum("...pln,...n->...pl", H, self.qdd)
        acceleration = acceleration + np.einsum("...plmn,...m,...n->...pl", D, v, v)
        batch = broadcast_batches(space=A.shape[:-2], coefficients=new.batch, motion=rate.shape[:-2])
        X = len(self.states)
        back = np.zeros((*batch, X, X), np.result_type(A, G))
        back[..., :M, :M] = back[..., M : 2 * M, M : 2 * M] = K
        back[..., M : 2 * M, :M] = -K @ rate @ K
        back[..., 2 * M :, 2 * M :] = np.eye(X - 2 * M)
        made = np.zeros((*batch, X, X), back.dtype)
        made[..., :M, :M] = dG + G @ A[..., :M, :M]
        made[..., :M, M : 2 * M] = G
        made[..., M : 2 * M, :] = G @ A[..., M : 2 * M, :]
        made[..., M : 2 * M, :M] += acceleration
        made[..., M : 2 * M, M : 2 * M] += rate + dG
        made[..., 2 * M :, :] = A[..., 2 * M :, :]
        inputs = np.broadcast_to(B, (*batch, *B.shape[-2:])).copy()
        inputs[..., :M, :], inputs[..., M : 2 * M, :] = G @ B[..., :M, :], G @ B[..., M : 2 * M, :]
        return self._like(
            made @ back,
            inputs,
            C @ back,
            np.broadcast_to(through, (*batch, *through.shape[-2:])),
            states=(*new.rows, *(f"{row}.rate" for row in new.rows), *self.states[2 * M :]),
            coordinates=new.rows,
            qd=new.velocity(v),
            qdd=new.acceleration(v, self.qdd),
        )

    def to_scipy(self) -> ScipyStateSpace:
        """Convert the model of one configuration to a `scipy.signal.StateSpace`.

        Examples
        --------
        >>> s = kic.load("four-bar").at({"A": 1.2}).linearize().state_space().to_scipy()
        >>> s.A.shape
        (2, 2)
        """
        from scipy.signal import StateSpace as Linear

        self._require_single("to_scipy()")
        four = self.A, self.B, self.C, self.D
        return Linear(*four) if self.dt is None else Linear(*four, dt=self.dt)

    def to_control(self) -> control.StateSpace:
        """Convert the model of one configuration to a `control.StateSpace`, with _ for dots in names.

        Raises
        ------
        InputError
            If the model is a batch.
        """
        self._require_single("to_control()")
        control = import_optional("control", "control", "to_control() requires python-control")
        names = {kind: _plain_names(getattr(self, kind)) for kind in ("states", "inputs", "outputs")}
        return control.ss(self.A, self.B, self.C, self.D, 0 if self.dt is None else self.dt, **names)

    def _require_single(self, method: str) -> None:
        """Raise an error for a batch."""
        if self.batch:
            message = (
                f"{method} requires a single model, got a batch of shape {self.batch}. Use one configuration."
            )
            raise InputError(message, got=self.batch)

    def summary(self) -> Summary:
        """Return labelled tables of the matrices."""
        when = "ẋ = A x + B u" if self.dt is None else f"sampled with dt = {self.dt:g}, x' = A x + B u"
        sheet = Summary(f"state space of {', '.join(self.coordinates)}: {when}, y = C x + D u")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        A, B, C, D = (T[index] for T in self._matrices)
        sheet.matrix("A", self.states, self.states, A)
        sheet.matrix("B", self.states, self.inputs, B)
        sheet.matrix("C", self.outputs, self.states, C)
        if D.any():
            sheet.matrix("D", self.outputs, self.inputs, D)
        return sheet


def _unsuitable_step(dt: float, A: np.ndarray) -> InputError:
    """Return the error for a time step over which deviations overflow."""
    rule = f"must suit eigenvalues of size {np.abs(np.linalg.eigvals(A)).max(initial=0.0):.3g}"
    return invalid("dt", rule, dt, "Choose a shorter step or another `method`.", shown=f"{dt:g}")


def held_cost(
    model: StateSpace, Q: np.ndarray, R: np.ndarray, dt: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, r, s of ∫ (xᵀ Q x + uᵀ R u) dt = xᵀ q x + uᵀ r u + 2 xᵀ s u over a time step with constant u.

    The block exponential of Van Loan (1978) contains e^(−A dt), which grows with damping. It is applied to a
    short step, which is then doubled repeatedly by sums of positive semidefinite matrices.
    """
    from scipy.linalg import expm

    X, U = model.B.shape
    zero = np.zeros((U, X))
    F = np.block([[model.A, model.B], [zero, np.zeros((U, U))]])
    weight = np.block([[Q, zero.T], [zero, R]])
    doublings = max(0, frexp(np.linalg.norm(F, 1))[1] + frexp(dt)[1])
    block = expm(np.block([[-F.T, weight], [np.zeros_like(F), F]]) * ldexp(dt, -doublings))
    motion = block[X + U :, X + U :]
    cost = motion.T @ block[: X + U, X + U :]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(doublings):
            cost, motion = cost + motion.T @ cost @ motion, motion @ motion
    if not np.isfinite(cost).all():
        raise _unsuitable_step(dt, model.A)
    cost = (cost + cost.T) / 2
    return cost[:X, :X], cost[X:, X:], cost[:X, X:]


def _plain_names(names: Iterable[str]) -> list[str]:
    """Return unique names without dots, which python-control reserves as separators of system and signal."""
    made: list[str] = []
    for name in names:
        plain = name.replace(".", "_")
        while plain in made:
            plain += "_"
        made.append(plain)
    return made


def state_space(
    lin: Linearization,
    source: Source,
    inputs: str | Iterable[str] | None,
    outputs: str | Iterable[str] | None,
    reduced: bool,
) -> StateSpace:
    """Build the state space of a linearization; see `Linearization.state_space`."""
    configuration, wrt, failures, motors = source
    model = model_of(configuration)
    model.require_real("state_space()", "Use linearize(), whose K, C and I accept complex steps.")
    model.require_none_held("state_space()")
    reduced = flag("reduced", reduced)
    inputs = None if inputs is None else names_of(inputs, "inputs")
    outputs = None if outputs is None else names_of(outputs, "outputs")
    for motor in () if motors else model.description.motors:
        if motor.name in {part_of(name) for name in (*(inputs or ()), *(outputs or ()))}:
            message = (
                f"'{motor.name}' is a motor, and the linearization has none. Linearize with motors=True."
            )
            raise InputError(message, key="motors", name=motor.name)
    shafts = motor_shafts(configuration, 2, wrt, failures) if motors else None
    named = inputs
    if named is None:
        named = shafts.rows if shafts is not None else lin.coordinates
    gains = _load_gains(configuration, named, wrt, failures, lin.batch)
    others = tuple(shafts.rows if shafts is not None else ()) + lin.coordinates
    builder = StateSpaceBuilder(
        lin,
        gains | _row_gains(configuration, [x for x in named if x not in others], wrt, failures),
        model.drive_train if motors else None,
        shafts,
        reduced,
    )
    return builder.state_space(named, _output_rows(configuration, outputs, builder, wrt, failures))


def _load_gains(
    configuration: Configuration,
    inputs: tuple[str, ...],
    wrt: Any,
    failures: Literal["raise", "mask"],
    batch: tuple[int, ...],
) -> dict[str, np.ndarray]:
    """Return derivatives (..., M, 3) of the loads with respect to forces and moments among the inputs."""
    model = model_of(configuration)
    named = [name for name in model.loads.names if any(name in (x, x.rpartition(".")[0]) for x in inputs)]
    if not named:
        return {}
    transfer = model.transfer_for(wrt)

    def evaluate(some: Any) -> np.ndarray:
        return np.stack(
            [*load_gains(model, transfer, flat_states(configuration)[some], named).values()], axis=1
        )

    good, parts = map_valid_members(configuration.ok, failures, evaluate)
    full = scatter(parts, good).reshape(*configuration.batch, *parts.shape[1:])
    return {
        name: np.broadcast_to(full[..., k, :, :], (*batch, *full.shape[-2:])) for k, name in enumerate(named)
    }


def _row_gains(
    configuration: Configuration, inputs: list[str], wrt: Any, failures: Literal["raise", "mask"]
) -> dict[str, np.ndarray]:
    """Return gains Gᵀ (..., M, 1) of efforts at single rows among the inputs, such as actuators."""
    found, part_names = dict[str, np.ndarray](), model_of(configuration).parts
    for name in inputs:
        part = part_names.get(part_of(name))
        if isinstance(part, Joint | Measure | Point | Body):
            rows = configuration.coefficients(name, order=1, wrt=wrt, failures=failures)
            found |= {row: rows.G[..., k, :, None] for k, row in enumerate(rows.rows) if rows.rows == (name,)}
    return found


def _output_rows(
    configuration: Configuration,
    names: tuple[str, ...] | None,
    builder: StateSpaceBuilder,
    wrt: Any,
    failures: Literal["raise", "mask"],
) -> list[Output]:
    """Return outputs as pairs of names and rows; rows of currents are None."""
    lin, X = builder.lin, len(builder.states)
    if names is None:
        return list(zip(lin.coordinates, np.eye(X)[: len(lin.coordinates)], strict=True))
    currents = {f"{m}.current" for m in builder.motors}
    if builder.train is not None:
        for k, m in enumerate(builder.motors):
            if f"{m}.current" in names and not builder.train.electrical[k]:
                message = f"`outputs` must not name the current of the torque source '{m}'."
                raise InputError(message, key="outputs", motor=m)
    moving = [name for name in names if name not in currents]
    rows = {name: name.removesuffix(".rate") for name in moving}
    made: dict[str, list[Output]] = {}
    for name, of in rows.items():
        found = configuration.coefficients(of, order=2, wrt=wrt, failures=failures)
        made[name] = builder.outputs(found, name != of)
    return [one for name in names for one in made.get(name, [(name, None)])]
