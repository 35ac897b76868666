"""Regressors of efforts in any coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from kic.dynamics.dynamic_parameters import INERTIAL_LAWS, LawColumns, dynamic_parameters
from kic.dynamics.regressor import Regressor
from kic.kernels import layout as lay
from kic.kinematics.outputs import WRENCH_LABELS
from kic.mechanism.configuration import Configuration, flat_motion, model_of
from kic.numerics.arguments import flag, names_of
from kic.numerics.arrays import check_finite
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.program import BOTH, Numbered


def regressor_parts(loads: bool, ground: bool) -> int:
    """Return the flags of a regressor for the kernels."""
    want = BOTH if loads else lay.WANT_INERTIA
    return want | lay.WANT_REGRESSOR | (lay.WANT_GROUND if ground else 0)


class RegressorQuestion:
    """Regressor of chosen parameters of a mechanism in its coordinates or others, or on ground.

    Attributes
    ----------
    labels : tuple of str
        Names of the rows.
    parameters : DynamicParameters
        The parameters.
    program : Program or None
        Program along motions for the bodies; None without bodies.
    rows, laws : Program, LawColumns or None
        Program of the rows on which the laws depend, and their columns; None without laws.
    """

    def __init__(
        self,
        model: CompiledModel,
        of: str | Iterable[str] | None,
        wrt: Any,
        loads: bool = True,
        ground: bool = False,
    ) -> None:
        self.model, self.loads, self.ground = model, flag("loads", loads), flag("ground", ground)
        self.transfer: Any = model.transfer_for(wrt)
        self.labels: tuple[str, ...] = WRENCH_LABELS if ground else self.transfer.labels
        self.parameters = found = dynamic_parameters(model.tree, of, ground)
        want = regressor_parts(loads, ground)
        self.program, self.rows, self.laws = None, None, None
        if found.bodies:
            self.program = model.program(self.transfer, found.bodies, want=want, along=True)
        if found.laws:
            self.laws = LawColumns(found.laws, model.rows(found.rows, 1).layout.rows.spans)
            self.rows = model.program(self.transfer, found.rows, self.laws.order)

    def matrix(
        self,
        states: np.ndarray,
        rates: tuple[np.ndarray, ...],
        batch: tuple[int, ...],
        ok: np.ndarray | None = None,
        failures: str = "raise",
        origin: Any = None,
        closed: Numbered | None = None,
    ) -> np.ndarray:
        """Return Y (..., m, K) of motions (B, m); see `Program.run` for the arguments."""
        given: dict[str, Any] = {"batch": batch, "ok": ok, "failures": failures, "origin": origin}
        parts = [np.zeros((*batch, len(self.labels), 0), states.dtype)]
        if self.program is not None:
            parts.append(self.program.efforts(states, rates, closed=closed, **given))
        if self.rows is not None and self.laws is not None:
            found = self.rows.run(states, closed=closed, **given)
            c = self.rows.coefficients(found)
            qd, qdd = (a.reshape(*batch, a.shape[-1]) for a in rates)
            parts.append(self.laws.columns((c.values, *c.tensors), qd, qdd, self.loads))
            known = np.ones(len(states), bool) if found.ok is None else found.ok.reshape(-1)
            flat = parts[-1].reshape(len(states), self.transfer.size, len(self.laws.laws))
            self.model.check_springs(flat[..., self.laws.springs], known)
            check_finite("Regressors", self.model.description.name, flat, known)
        return self.parameters.chosen(np.concatenate(parts, axis=-1) if len(parts) > 2 else parts[-1])

    def sizes(
        self, states: np.ndarray, rates: tuple[np.ndarray, ...], members: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sizes (kinds, B, m) of entries of Y if no terms cancel, and the kind (K,) of each parameter.

        Entries much smaller are rounding. Members (B,) of motions are selected.
        """
        tree, length = self.model.tree, float(self.model.length)
        states, rates = states[members], tuple(a[members] for a in rates)
        turns = (tree.cols[:, lay.KIND] != lay.PRISMATIC).astype(float)
        reach = np.where(turns > 0, length, 1.0)
        if self.ground:
            # moments are about the origin of the world
            far = length + max(map(np.linalg.norm, self.parameters.points.values()), default=0.0)
            V, W = (
                np.tile([force] * 3 + [moment] * 3, (len(states), 1))
                for force, moment in ((1.0, far), (0.0, 1.0))
            )
        else:
            A = np.abs(self.transfer.jets(states, 1)[0])
            V, W = reach @ A, turns @ A
        first, second = np.abs(self.transfer.tree_motion(states, *rates))
        # of unit rates, rates and accelerations: of points, and angular
        v, w = first @ reach, first @ turns
        dv, dw = second @ reach + w * v, second @ turns + w * w
        a = dv + self.loads * np.linalg.norm(self.model.description.gravity)
        v, w, dv, dw, a = (x[:, None] for x in (v, w, dv, dw, a))
        # the mass, first moments, and inertia of a body; then laws of lengths, and of angles
        table: dict[Any, np.ndarray] = {0: V * a, 1: V * dw + W * a, 2: W * dw}
        for slides, G, rate, acceleration, value in ((True, V, v, dv, length), (False, W, w, dw, 1.0)):
            factors = dict.fromkeys(INERTIAL_LAWS, acceleration) | {"damping": rate, "stiffness": value}
            table |= {(key, slides): G * factor for key, factor in factors.items()}
            table |= {(key, slides): G for key in ("friction", "offset")}
        kinds = list(table)
        places = [0, *[1] * 3, *[2] * 6] * len(self.parameters.bodies)
        places += [kinds.index((law.key, law.slides)) for law in self.parameters.laws]
        return np.stack(list(table.values())), self.parameters.chosen(np.array(places, np.intp))

    def function(self) -> Callable[..., np.ndarray | None]:
        """Return the function of one real state, or of a small batch, as `Program.motion_function` does.

        It returns None if `matrix` must be called instead.
        """
        program, rows, laws, found = self.program, self.rows, self.laws, self.parameters
        if self.model.has_complex_step or not self.transfer.is_compiled or not self.transfer.size:
            return lambda *_: None
        shape = (len(self.labels), -1)
        width = 0 if program is None else program.width
        run = None if program is None else program.motion_function(width)

        def matrix(
            state: Any, _: Any, qd: Any = None, qdd: Any = None, more: Any = None, count: int = 0
        ) -> Any:
            parts = []
            if run is not None:
                new = np.empty(count * width) if count else None
                T = run(state, new, qd, qdd, more, count or 1)
                if T is None:
                    return None
                parts.append(T.reshape((count, *shape) if count else shape))
            if rows is not None and laws is not None:
                if count:
                    return None
                table = rows.table(1, state.dtype)
                if state.ndim > 1 or rows.launch(table, state[None], rows.applied, rows.transfer.choice):
                    return None
                c = rows.coefficients_of(rows.outputs.split(table.T, ()), rows.scaling)  # type: ignore[union-attr]
                Y = laws.columns((c.values, *c.tensors), qd, qdd, self.loads)
                if more is not None or not np.isfinite(Y).all():
                    return None
                parts.append(Y)
            return found.chosen(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))

        return matrix


def regressor(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    *,
    of: str | Iterable[str] | None = None,
    wrt: str | Iterable[str] | None = None,
    loads: bool = True,
    ground: bool = False,
    failures: Literal["raise", "mask"] = "raise",
) -> Regressor:
    """Compute the regressor of the efforts of a motion: T = Y π, for parameters π of bodies and joints.

    Y depends on the geometry alone; bodies need neither mass nor inertia. For q̇ = 0, q̈ = v and no loads,
    Y π is the momentum I* v, and vᵀ Y π / 2 the kinetic energy of the velocities v.

    Parameters
    ----------
    qd, qdd : (..., M) array_like, optional
        Velocities and accelerations of the coordinates, by default zero. Scalars are accepted for one
        coordinate.
    of : str or list of str, optional
        Bodies, joints, distances, angles, springs and motors, or single parameters, such as "crank.m" or
        "A.friction"; see `results.Regressor`. By default those of the description: the ten numbers of each
        moving body that is not massless, and the numbers of joints and springs that are not zero, without dry
        friction.
    wrt
        Coordinates, as in `coefficients`.
    loads : bool
        False to omit gravity, springs, damping and friction.
    ground : bool
        True for the force and the moment about the origin of the world that ground exerts on the moving
        bodies, rows "fx" to "mz", instead of efforts; see `shaking_force`. Only bodies are parameters.
    failures : {"raise", "mask"}
        As in `coefficients`.

    Returns
    -------
    Regressor
        Y (..., M, K) with the names of K parameters, and the values of the description; (..., 6, K) with
        `ground`.

    Raises
    ------
    UnknownNameError
        If there is no such parameter; the error has the candidates.
    SingularError
        If the coordinates cannot drive the mechanism here.

    Notes
    -----
    Without forces and moments, Y π of the default parameters is `inverse_dynamics`. Motors and dry friction
    are parameters only if they are named. With motors, Y π is the effort with ``motors=True``.

    Examples
    --------
    >>> c = kic.load("four-bar").at(1.2)
    >>> r = c.regressor(6.0, 0.0, of=["crank", "A.friction", "A.damping"])
    >>> r.parameters[-3:], r.matrix.shape
    (('crank.Iyz', 'A.friction', 'A.damping'), (1, 12))
    >>> r.matrix[0, -2:]
    array([1., 6.])
    """
    model = model_of(configuration)
    question = regressor_question(model, of, wrt, loads, ground)
    states, rates, _, given = flat_motion(configuration, question.transfer, {"qd": qd, "qdd": qdd})
    matrix, found = question.matrix(states, rates, failures=failures, **given), question.parameters
    sizes = partial(question.sizes, states, rates)
    return Regressor(question.labels, found.names, matrix, found.values, found.points, sizes)


def regressor_question(
    model: CompiledModel, of: str | Iterable[str] | None, wrt: Any, loads: bool, ground: bool = False
) -> RegressorQuestion:
    """Return the regressor of chosen parameters in chosen coordinates, from a cache."""
    of = of if of is None else names_of(of, least=1)
    wrt = wrt if wrt is None else names_of(wrt, "wrt")
    key = "regressor", of, wrt, flag("loads", loads), flag("ground", ground)
    return model.prepared(key, lambda: RegressorQuestion(model, of, wrt, loads, ground))
