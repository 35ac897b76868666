"""Questions for hot loops: the evaluators of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from kic.mechanism.evaluator import PARTS, Evaluator, Motions, PositionSolver, Results, Tables
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import flag, names_of
from kic.numerics.display import Hinting
from kic.numerics.registration import with_methods
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.program import OutputMotion

if TYPE_CHECKING:
    from kic.tasks.operational_space import operational_space as _operational_space
    from kic.tasks.operational_space import pose as _pose
    from kic.tasks.operational_space import redundancy as _redundancy

_Names = str | Iterable[str]


class Questions(Hinting):
    """Base class of namespaces of questions; errors for unknown attributes suggest the name in kic."""

    _counterparts: ClassVar = {
        **dict.fromkeys(
            ("jacobian", "hessian", "influence_coefficients", "forward_kinematics", "fk"), "coefficients(of)"
        ),
        **dict.fromkeys(("mass_matrix", "gravity", "effective_load", "crba", "nle"), "dynamics()"),
        **dict.fromkeys(("rnea", "id"), "inverse_dynamics()"),
        **dict.fromkeys(("aba", "fd"), "forward_dynamics()"),
        **dict.fromkeys(("inverse_kinematics", "ik", "at"), "position()"),
    }
    _name: ClassVar[str]
    _then: ClassVar[str] = ""

    if not TYPE_CHECKING:  # type checkers report the call

        def __call__(self, question: Any = None, of: Any = None, **options: Any) -> NoReturn:
            """Raise the error that names the method of a question."""
            known = [name for name in dir(type(self)) if name[0] != "_"]
            words = question if isinstance(question, list | tuple) else [question]
            word = "_and_".join(sorted(map(str, words)))
            method = word if word in known else self._counterparts.get(word, "").partition("(")[0]
            written = f"Write m.{self._name}.{method}(…){self._then}. " if method else ""
            raise TypeError(
                f"Questions are methods of `m.{self._name}`. {written}Available: {', '.join(known)}."
            )

    def __repr__(self) -> str:
        return f"<{self._name}: {', '.join(name for name in dir(type(self)) if name[0] != '_')}>"


@with_methods
class Evaluators(Questions):
    """Evaluators of a mechanism for hot loops, by question; see `Mechanism.prepare`.

    Options are as in the method of `Configuration` with the same name: `of`, rows or parts; `order` of
    the coefficients; and `wrt`, coordinates. Each method resolves all names, and raises the errors of
    that method.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> c = m.at({"A": 0.5})
    >>> m.prepare.coefficients("tip")(c.state).tip.G.shape
    (3, 1)
    """

    _name = "prepare"

    def __init__(self, model: CompiledModel) -> None:
        self._model = model

    def coefficients(self, of: _Names, *, order: int = 2, wrt: _Names | None = None) -> Evaluator[Results]:
        """Return an evaluator of values, Jacobians and higher coefficients of rows `of`."""
        return Tables(self._model, of, order, (), wrt)

    def dynamics(self, *, wrt: _Names | None = None, loads: bool = True) -> Evaluator[Results]:
        """Return an evaluator of mass matrix, Christoffel symbols and, with `loads`, loads and damping."""
        return Tables(self._model, (), 2, PARTS if flag("loads", loads) else PARTS[:2], wrt)

    def coefficients_and_dynamics(
        self, of: _Names, *, order: int = 2, wrt: _Names | None = None, loads: bool = True
    ) -> Evaluator[Results]:
        """Return an evaluator of coefficients and dynamics by one call of the kernels."""
        parts = PARTS if flag("loads", loads) else PARTS[:2]
        return Tables(self._model, names_of(of, least=1), order, parts, wrt)

    def inverse_dynamics(self, *, wrt: _Names | None = None, loads: bool = True) -> Evaluator[np.ndarray]:
        """Return an evaluator of the efforts of a motion: ``f(state, qd, qdd)``.

        Without `loads`, gravity, forces, springs and dampers are omitted.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> c, f = m.at({"A": 0.5}), m.prepare.inverse_dynamics()
        >>> bool(abs(f(c.state, [2.0], [1.0]) - c.inverse_dynamics([2.0], [1.0])).max() < 1e-12)
        True
        """
        return Motions(self._model, "inverse_dynamics", wrt, loads)

    def forward_dynamics(self, *, wrt: _Names | None = None) -> Evaluator[np.ndarray]:
        """Return an evaluator of the accelerations due to efforts: ``f(state, qd, effort)``."""
        return Motions(self._model, "forward_dynamics", wrt)

    def regressor(
        self,
        of: _Names | None = None,
        *,
        wrt: _Names | None = None,
        loads: bool = True,
        ground: bool = False,
    ) -> Evaluator[np.ndarray]:
        """Return an evaluator of the regressor (..., M, K) of efforts: ``f(state, qd, qdd)``.

        `names` are those of the K parameters. With `ground` it is that (..., 6, K) of force and moment on
        ground. Calls for one state are fastest with bodies alone.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> f = m.prepare.regressor(["crank", "A.friction"])
        >>> f(m.at(0.5).state, [2.0], [1.0]).shape
        (1, 11)
        """
        return Motions(self._model, "regressor", wrt, loads, of, ground)

    def motion(self, of: _Names, *, wrt: _Names | None = None) -> Evaluator[OutputMotion]:
        """Return an evaluator of value, velocity, acceleration and jerk: ``f(state, qd, qdd, qddd)``.

        Rates that are None are zero.
        """
        return Motions(self._model, "motion", wrt, of=of)

    def position(self, *, wrt: _Names | None = None) -> Evaluator[np.ndarray]:
        """Return an evaluator of closed states with given values of rows `wrt`, near closed states.

        The three angular velocities of a joint, body or frame take a rotation vector.

        Examples
        --------
        >>> m = kic.load("four-bar")
        >>> state = m.prepare.position()(m.at({"A": 0.5}).state, [0.51])
        >>> bool(abs(m.at({"A": 0.51}).state - state).max() < 1e-12)
        True
        """
        return PositionSolver(self._model, wrt)

    if TYPE_CHECKING:  # registered at run time; see `kic.numerics.registration`
        operational_space = _operational_space.operational_space_evaluator
        pose = _pose.pose_evaluator
        resolve_redundancy = _redundancy.redundancy_evaluator


def prepare(mechanism: Mechanism) -> Evaluators:
    """Return the questions for hot loops: their methods return evaluators on plain arrays.

    All names are resolved once. Call an evaluator with a state (..., S), see `Configuration.state`, and
    the motion that the question needs.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> c, f = m.at({"A": 0.5}), m.prepare.inverse_dynamics()
    >>> bool(abs(f(c.state, [2.0], [1.0]) - c.inverse_dynamics([2.0], [1.0])).max() < 1e-12)
    True
    >>> m.prepare.coefficients("tip")(c.state).tip.G.shape
    (3, 1)
    """
    return Evaluators(mechanism._model)
