"""A posture with the questions that small deviations from a motion ask; see `Configuration`."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kic.arguments import flag
from kic.arrays import broadcast_batches, check_finite, trailing
from kic.errors import InputError
from kic.grasping.holding import Holding
from kic.members import spread, surviving
from kic.rows import names_of

if TYPE_CHECKING:
    from kic.coefficients import Coefficients
    from kic.dynamics import Dynamics
    from kic.linear.actuators import Drive
    from kic.linear.linearize import Linearization
    from kic.linear.plant import Plant
    from kic.linear.statespace import StateSpace


class Linearized(Holding):
    """A posture with the questions that small deviations ask; see `Configuration`."""

    if TYPE_CHECKING:  # of the class above

        def dynamics(
            self,
            wrt: str | Iterable[str] | None = None,
            applied: dict[str, Any] | None = None,
            failures: Literal["raise", "mask"] = "raise",
            motors: bool = False,
        ) -> Dynamics:
            """See `Configuration`."""
            ...

        def coefficients(
            self,
            of: str | Iterable[str],
            order: int = 2,
            wrt: str | Iterable[str] | None = None,
            failures: Literal["raise", "mask"] = "raise",
        ) -> Coefficients:
            """See `Configuration`."""
            ...

    def linearize(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        effort: Any = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
        motors: bool = False,
    ) -> Linearization:
        """How efforts change with small deviations from a motion: δT = K δq + C δq̇ + I* δq̈.

        Exact, from third-order coefficients, with all loads: gravity, forces in world and body axes, springs
        and dampers; in any coordinates, of open and closed mechanisms, for a batch such as a trajectory.

        Parameters
        ----------
        qd, qdd : (..., M) array_like, optional
            Rates and accelerations of the nominal motion; at rest if left out.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        effort : (..., M) array_like, optional
            Efforts of the nominal motion, in place of `qdd`.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.
        failures : {"raise", "mask"}
            As in `coefficients`.
        motors : bool
            Whether to count the rotors of the motors and their damping, as in `dynamics`.

        Returns
        -------
        Linearization
            K, C, I (..., M, M) (eqs 2-201 to 2-225).

        Raises
        ------
        InertiaError
            If a moving body has no mass or inertia.
        InputError
            For another shape, or both `qdd` and `effort`.
        SingularError
            Where the coordinates can not drive the mechanism, or I* has no inverse and efforts are given.

        Examples
        --------
        >>> import kic
        >>> lin = kic.load("four-bar").at({"A": 1.2}).linearize()
        >>> lin.T.round(4), lin.K.round(4)  # held at rest; the crank would fall away
        (array([-0.0138]), array([[-0.8245]]))
        """
        from kic.linear.linearize import Linearization
        from kic.linear.stiffness import Stiffness, commutator

        model = self._model
        if model.tree.scalar.kind == "O" or self._states.dtype.kind == "O":
            raise InputError("linearize() is answered in numbers only; this posture holds symbols.")
        if qdd is not None and effort is not None:
            raise InputError("Expected `qdd` or `effort` of the nominal motion, got both. Leave one out.")
        d = self.dynamics(wrt, applied, failures)
        M, friction = len(d.coordinates), np.zeros(len(d.coordinates))
        v = np.zeros(M) if qd is None else trailing("qd", qd, M)
        shafts = self._shafts(3, wrt, failures) if flag("motors", motors) else None
        if shafts is not None:
            d = d + model.train.dynamics(shafts)
            friction = self._friction(shafts, v)
        if effort is not None:
            a = d.acceleration(v, trailing("effort", effort, M) - friction)
        else:
            a = np.zeros(M) if qdd is None else trailing("qdd", qdd, M)
        batch = broadcast_batches(posture=d.batch, qd=v.shape[:-1], qdd=a.shape[:-1])
        transfer = model.asked(wrt)
        force, _ = model.loads.applied(applied, self.name)
        count = prod(batch)

        def members(x: np.ndarray, *shape: int) -> np.ndarray:
            return np.broadcast_to(x, (*batch, *shape)).reshape(count, *shape)

        states, moving = members(self.state, self._states.shape[-1]), (members(v, M), members(a, M))
        force = members(force, *force.shape[-2:]) if force.ndim > 2 else force[None]
        states = np.require(states, np.result_type(states, force), ["C", "A", "W"])
        question = Stiffness(model, transfer, 3 if v.any() else 2)

        def answer(some: Any) -> np.ndarray:
            own = force[some] if len(force) == count else force
            parts = question(states[some], moving[0][some], moving[1][some], own)
            return np.stack([*parts, commutator(model, transfer, states[some], moving[0][some])], axis=1)

        good, parts = surviving(np.broadcast_to(self.ok, batch), failures, answer)
        check_finite("Stiffness", self.name, parts)
        full = spread(parts, good).reshape(*batch, 3, M, M)
        full[~good] = np.nan
        stiffness = full[..., 0, :, :], full[..., 1, :, :]
        if shafts is not None:
            rotors = model.train.stiffness(shafts, v, a)
            stiffness = stiffness[0] + rotors[0], stiffness[1] + rotors[1]
        time = model.drawing.units.time
        return Linearization(d, stiffness, v, a, full[..., 2, :, :], friction, time)

    def _friction(self, shafts: Coefficients, v: np.ndarray) -> np.ndarray:
        """Efforts (..., M) of dry friction in the motors, whose shafts must turn."""
        train = self._model.train
        stuck = (train.friction != 0) & (shafts.velocity(v) == 0)
        if stuck.any():
            names = np.array(train.names)[stuck.reshape(-1, len(train.names)).any(axis=0)].tolist()
            raise InputError(
                f"Shafts with dry friction stand still ({', '.join(names)}): what holds them there is no "
                "linear function of small deviations. Give rates that turn them, or draw the motors without "
                "`friction`.",
                motors=tuple(names),
            )
        return np.einsum("...pk,...p->...k", shafts.G, train.dry(shafts, v))

    def state_space(
        self,
        qd: Any = None,
        qdd: Any = None,
        wrt: str | Iterable[str] | None = None,
        effort: Any = None,
        inputs: str | Iterable[str] | None = None,
        outputs: str | Iterable[str] | None = None,
        motors: bool | None = None,
        reduced: bool = False,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> StateSpace:
        """Linear state space of small deviations from a motion: ẋ = A x + B u, y = C x + D u.

        Parameters
        ----------
        qd, qdd, effort : (..., M) array_like, optional
            The nominal motion, as in `linearize`; at rest if left out.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own. They and their rates are
            states.
        inputs : str or list of str, optional
            Names of motors (a voltage, or the torque of a plain source), of coordinates (an effort), of
            forces and moments of the model ("push", or "push.x" alone; eq 2-227). By default all motors if
            they count, else the efforts at all coordinates.
        outputs : str or list of str, optional
            Anything that moves, as `of` in `coefficients`; with ".rate" its rate ("tip.x.rate"; angular
            velocities are rates as they stand), and "M.current" of a motor M. By default the coordinates.
        motors : bool, optional
            Whether motors count, with rotors and circuits; by default if any are drawn.
        reduced : bool
            Whether currents are taken to follow voltages at once, as those of motors without inductance do.
        applied, failures
            As in `linearize`.

        Returns
        -------
        StateSpace
            Its states are those of (2-241): coordinates, rates, currents of motors with inductance.

        Raises
        ------
        UnknownNameError, InputError, SingularError, InertiaError
            As `linearize`; for inputs and outputs that are not there.

        Examples
        --------
        >>> import kic
        >>> s = kic.load("horn-two-link").at([-1.5, 0.0]).state_space(outputs=["tip.x", "tip.y.rate"])
        >>> s.A.shape, s.B.shape, s.C.shape
        ((4, 4), (4, 2), (2, 4))
        """
        from kic.linear.plant import Plant

        model = self._model
        model.only_real("state_space()", "Ask linearize(), whose K, C and I follow it.")
        count = bool(model.drawing.motors) if motors is None else flag("motors", motors)
        reduced = flag("reduced", reduced)
        lin = self.linearize(qd, qdd, wrt, effort, applied, failures, count)
        shafts = self._shafts(2, wrt, failures) if count else None
        if inputs is None:
            named = shafts.rows if shafts is not None else lin.coordinates
        else:
            named = names_of(inputs, "inputs")
        plant = Plant(
            lin,
            self._gains(named, wrt, failures, lin.batch),
            model.train if count else None,
            shafts,
            reduced,
        )
        return plant.state_space(named, self._outputs(outputs, plant, wrt, failures))

    def _gains(
        self, inputs: tuple[str, ...], wrt: Any, failures: Literal["raise", "mask"], batch: tuple[int, ...]
    ) -> dict[str, np.ndarray]:
        """What forces and moments among the inputs give the coordinates, (..., M, 3)."""
        from kic.linear.stiffness import load_gains

        model = self._model
        asked = [name for name in model.loads.names if any(name in (x, x.rpartition(".")[0]) for x in inputs)]
        if not asked:
            return {}
        transfer = model.asked(wrt)

        def answer(some: Any) -> np.ndarray:
            return np.stack([*load_gains(model, transfer, self._states[some], asked).values()], axis=1)

        good, parts = surviving(self.ok, failures, answer)
        full = spread(parts, good).reshape(*self.batch, *parts.shape[1:])
        return {
            name: np.broadcast_to(full[..., k, :, :], (*batch, *full.shape[-2:]))
            for k, name in enumerate(asked)
        }

    def _outputs(
        self, outputs: Any, plant: Plant, wrt: Any, failures: Literal["raise", "mask"]
    ) -> list[tuple[str, np.ndarray]]:
        """Outputs by name with their rows; those of currents are empty."""
        lin, X = plant.lin, len(plant.states)
        if outputs is None:
            return list(zip(lin.coordinates, np.eye(X)[: len(lin.coordinates)], strict=True))
        names = names_of(outputs, "outputs")
        currents = {f"{m}.current" for m in plant.motors}
        if plant.train is not None:
            for k, m in enumerate(plant.motors):
                if f"{m}.current" in names and not plant.train.electrical[k]:
                    raise InputError(f"'{m}' is a plain source of torque and has no current.", motor=m)
        moving = [name for name in names if name not in currents]
        rows = {name: name.removesuffix(".rate") for name in moving}
        made: dict[str, list[tuple[str, np.ndarray]]] = {}
        for name, of in rows.items():
            found = self.coefficients(of, 2, wrt, failures)
            made[name] = plant.outputs(found, name != of)
        return [one for name in names for one in made.get(name, [(name, np.zeros(0))])]

    def _shafts(
        self, order: int, wrt: str | Iterable[str] | None, failures: Literal["raise", "mask"]
    ) -> Coefficients:
        """The shafts of the motors as rows."""
        train = self._model.train
        return train.shafts(self.coefficients(train.joints, order, wrt, failures))

    def _rotors(self, wrt: str | Iterable[str] | None, failures: Literal["raise", "mask"]) -> Dynamics:
        """Rotors and damping of the motors."""
        train = self._model.train
        if train.friction.any():
            dry = [name for name, f in zip(train.names, train.friction, strict=True) if f]
            raise InputError(
                f"Motors of '{self.name}' have dry friction ({', '.join(dry)}), which is no part of a model "
                "in I*, P* and B, and would be left out. Ask for torques that include it with drive(), or "
                "draw them without `friction`.",
                motors=tuple(dry),
            )
        return train.dynamics(self._shafts(2, wrt, failures))

    def drive(
        self,
        qd: Any,
        qdd: Any,
        qddd: Any = None,
        wrt: str | Iterable[str] | None = None,
        applied: dict[str, Any] | None = None,
        failures: Literal["raise", "mask"] = "raise",
    ) -> Drive:
        """What the motors do in a motion: speeds, torques, currents and voltages of each.

        Parameters
        ----------
        qd, qdd : (..., M) array_like
            Rates and accelerations of the coordinates.
        qddd : (..., M) array_like, optional
            Jerks, needed where a motor has inductance.
        wrt : str or list of str, optional
            The coordinates, as in `coefficients`; by default the mechanism's own.
        applied : dict of str to (..., 3) array_like, optional
            Components of named forces and moments, instead of those of the model.
        failures : {"raise", "mask"}
            As in `coefficients`.

        Returns
        -------
        Drive
            Arrays (..., K) for the K motors (eqs 2-238 to 2-240).

        Raises
        ------
        InputError
            Without motors, for another shape, without jerks where inductance asks for them, for a motion that
            the motors can not make, or more motors than freedoms, which leave torques open.
        SingularError, InertiaError
            As `dynamics`; or where motors depend on one another.

        Examples
        --------
        >>> import kic
        >>> from dataclasses import replace
        >>> crank = kic.Motor("M", ["A"], ratios=[30.0], inertia=1e-5, resistance=0.5, torque_constant=0.02)
        >>> c = replace(kic.load("four-bar"), motors=[crank]).at({"A": 1.2})
        >>> c.drive([6.0], [0.0]).speed
        array([180.])
        """
        train = self._model.train
        d = self.dynamics(wrt, applied, failures)
        M = len(d.coordinates)
        v, a = trailing("qd", qd, M), trailing("qdd", qdd, M)
        j = None if qddd is None else trailing("qddd", qddd, M)
        if j is None and train.inductance.any():
            slow = [name for name, L in zip(train.names, train.inductance, strict=True) if L]
            raise InputError(
                f"Motors of '{self.name}' have inductance ({', '.join(slow)}): their voltages need the jerk. "
                "Give `qddd`.",
                motors=tuple(slow),
            )
        shafts = self._shafts(2 if j is None else 3, wrt, failures)
        rate = None
        if j is not None:
            rate = self.linearize(v, a, wrt, applied=applied, failures=failures).rate(j)
        return train.drive(shafts, d.effort(v, a), rate, v, a, j)
