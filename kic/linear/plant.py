"""The plant: a linearized mechanism with its motors, put together as a state space (2-241 to 2-252)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kic.coefficients import Coefficients
from kic.errors import InputError, unknown
from kic.jets import invert
from kic.linear.actuators import Train
from kic.linear.linearize import Linearization
from kic.linear.statespace import StateSpace


@dataclass
class Plant:
    """What a state space is made of.

    Attributes
    ----------
    lin : Linearization
        Bodies, loads and rotors.
    loads : dict of str to (..., M, 3)
        What components of forces and moments give each coordinate (2-227).
    train, shafts : Train, Coefficients, optional
        Motors and their shafts to second order.
    reduced : bool
        Whether inductances are left out of account.
    """

    lin: Linearization
    loads: dict[str, np.ndarray] = field(default_factory=dict)
    train: Train | None = None
    shafts: Coefficients | None = None
    reduced: bool = False

    def __post_init__(self) -> None:
        self.M = len(self.lin.coordinates)
        self.motors: tuple[str, ...] = ()
        self.batch = self.lin.batch
        self.slow = np.zeros(0, dtype=bool)
        if self.train is not None and self.shafts is not None:
            self.motors = self.train.names
            self.N = np.broadcast_to(self.shafts.G, (*self.batch, *self.shafts.G.shape[-2:]))
            H = self.shafts.needed("H", 2)
            # ∂u̇/∂q of the shafts
            self.drift = np.einsum("...pln,...n->...pl", H, self.lin.qd)
            self.slow = (self.train.inductance != 0) & (not self.reduced)
        self.states = (
            *self.lin.coordinates,
            *(f"{c}.rate" for c in self.lin.coordinates),
            *(f"{m}.current" for m, s in zip(self.motors, self.slow, strict=True) if s),
        )

    def state_space(self, inputs: tuple[str, ...], outputs: list[tuple[str, np.ndarray]]) -> StateSpace:
        """The model for named inputs, and outputs given by rows (..., X) or by names of currents."""
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
            pull = np.swapaxes(self.N, -1, -2) * self.train.torque_constant
            force += pull @ currents
            A[..., 2 * M :, :] = self._current_rates()
        A[..., M : 2 * M, :] = inverse @ force
        C, D = [], []
        for name, row in outputs:
            if row.size:
                C.append(np.broadcast_to(row, (*self.batch, X)))
                D.append(np.zeros((*self.batch, len(labels))))
            else:
                k = self.motors.index(name.rpartition(".")[0])
                C.append(currents[..., k, :])
                D.append(feed[..., k, :])
        C.append(np.zeros((*self.batch, X)))  # taken off again: there may be no output
        D.append(np.zeros((*self.batch, len(labels))))
        four = [A, columns, np.stack(C, axis=-2)[..., :-1, :], np.stack(D, axis=-2)[..., :-1, :]]
        for matrix in four:
            matrix[np.isnan(A).any(axis=(-1, -2))] = np.nan
        names = [name for name, _ in outputs]
        nominal = {"coordinates": lin.coordinates, "qd": lin.qd, "qdd": lin.qdd}
        return StateSpace(four[0], four[1], four[2], four[3], self.states, labels, names, **nominal)  # type: ignore[arg-type]

    def outputs(self, rows: Coefficients, rates: bool) -> list[tuple[str, np.ndarray]]:
        """Rows (..., X) of outputs, by name, from their coefficients to second order.

        A row with a value is δu = G δq; its rate, and an angular velocity, δu̇ = G δq̇ + (∂u̇/∂q) δq.
        """
        drift = np.einsum("...pln,...n->...pl", rows.needed("H", 2), self.lin.qd)
        M, made = self.M, list[tuple[str, np.ndarray]]()
        for p, label in enumerate(rows.rows):
            row = np.zeros((*self.batch, len(self.states)))
            if rates or label in rows.quasi:
                row[..., :M], row[..., M : 2 * M] = drift[..., p, :], rows.G[..., p, :]
            else:
                row[..., :M] = rows.G[..., p, :]
            made.append((f"{label}.rate" if rates else label, row))
        return made

    def _inverse(self) -> np.ndarray:
        """I*⁻¹ (..., M, M); NaN of members without a model."""
        self.lin.still._check_regular()
        return invert((self.lin.I,))[0]

    def _stiffness(self) -> np.ndarray:
        """K, less the torques on shafts whose gearing changes with the coordinates: N^T τ = T."""
        K = self.lin.K
        if self.train is None or self.shafts is None or not np.nan_to_num(self.shafts.needed("H", 2)).any():
            return K
        torque = self.train.torques(self.shafts, self.lin.T)
        return K - np.einsum("...plk,...p->...kl", self.shafts.needed("H", 2), torque)

    def _currents(self) -> np.ndarray:
        """Currents (..., K, X) by states; of plain sources of torque none."""
        train, M = self.train, self.M
        out = np.zeros((*self.batch, len(self.motors), len(self.states)))
        if train is None:
            return out
        speed = self._speed()
        for k in range(len(self.motors)):
            if self.slow[k]:
                out[..., k, 2 * M + int(self.slow[:k].sum())] = 1.0
            elif train.electrical[k]:
                out[..., k, :] = -train.speed_constant[k] / train.resistance[k] * speed[..., k, :]
        return out

    def _speed(self) -> np.ndarray:
        """Speeds of the shafts (..., K, X) by states."""
        out = np.zeros((*self.batch, len(self.motors), len(self.states)))
        out[..., : self.M], out[..., self.M : 2 * self.M] = self.drift, self.N
        return out

    def _current_rates(self) -> np.ndarray:
        """Rates of the currents that are states (2-251)."""
        assert self.train is not None  # for the type checker
        train, slow = self.train, self.slow
        rates = -train.speed_constant[slow, None] * self._speed()[..., slow, :]
        rates = rates - train.resistance[slow, None] * self._currents()[..., slow, :]
        return rates / train.inductance[slow, None]

    def _inputs(
        self, names: tuple[str, ...], inverse: np.ndarray
    ) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Labels, B (..., X, U), and what inputs give at once to the currents (..., K, U)."""
        M, X, coordinates = self.M, len(self.states), self.lin.coordinates
        labels: list[str] = []
        columns, feeds = [], []
        for name in names:
            whole, _, part = name.rpartition(".")
            one = np.zeros((*self.batch, X, 1))
            feed = np.zeros((*self.batch, len(self.motors), 1))
            if name in self.motors:
                self._voltage(self.motors.index(name), one, feed, inverse)
                made = [name]
            elif name in coordinates:
                one[..., M : 2 * M, 0] = inverse[..., coordinates.index(name)]
                made = [name]
            elif name in self.loads or (whole in self.loads and part in ("x", "y", "z")):
                gain = inverse @ self.loads[name if name in self.loads else whole]
                picked = [0, 1, 2] if name in self.loads else ["xyz".index(part)]
                one = np.zeros((*self.batch, X, len(picked)))
                one[..., M : 2 * M, :] = gain[..., picked]
                feed = np.zeros((*self.batch, len(self.motors), len(picked)))
                made = [f"{name}.{c}" for c in "xyz"] if name in self.loads else [name]
            else:
                there = [*self.motors, *coordinates, *self.loads]
                raise unknown("input", name, "this state space", there)
            labels += made
            columns.append(one)
            feeds.append(feed)
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise InputError(f"Expected inputs with different names, got twice {', '.join(twice)}.")
        empty = [np.zeros((*self.batch, X, 0))], [np.zeros((*self.batch, len(self.motors), 0))]
        return (
            labels,
            np.concatenate(columns or empty[0], axis=-1),
            np.concatenate(feeds or empty[1], axis=-1),
        )

    def _voltage(self, k: int, one: np.ndarray, feed: np.ndarray, inverse: np.ndarray) -> None:
        """The column of a motor: its voltage, or the torque of a plain source."""
        assert self.train is not None  # for the type checker: there are motors
        train, M = self.train, self.M
        if self.slow[k]:
            one[..., 2 * M + int(self.slow[:k].sum()), 0] = 1 / train.inductance[k]
            return
        gain = np.ones(())
        if train.electrical[k]:
            feed[..., k, 0] = 1 / train.resistance[k]
            gain = train.torque_constant[k] / train.resistance[k]
        one[..., M : 2 * M, 0] = gain * np.einsum("...mn,...n->...m", inverse, self.N[..., k, :])
