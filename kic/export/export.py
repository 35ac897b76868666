"""Export of questions to other languages and libraries: one method for each question, one for each target."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, TypeVar, Unpack

from kic.errors import invalid
from kic.export import questions, tasks
from kic.export.questions import export_traces, one_state
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.mechanism.prepared import Questions
from kic.numerics.arguments import flag, names_of
from kic.numerics.calls import wrong_arguments
from kic.numerics.display import Hinting
from kic.numerics.polynomial_map import PolynomialMap

if TYPE_CHECKING:
    import casadi

    from kic.export.actuation_table import ActuationTable
    from kic.export.c_source import CSource
    from kic.export.fmu import FMU
    from kic.export.numpy_function import ExportedFunction
    from kic.tasks.operational_space.weighting import Law, Weight

_Names = str | Iterable[str]
_Class = TypeVar("_Class", bound=type)


class ExportOptions(TypedDict, total=False):
    """Options of all questions; see `Exports`."""

    near: Configuration | None
    parameters: str | Iterable[str]
    close: bool | Literal["equations"]
    derivatives: Literal[0, 1, 2]
    outputs: str | Iterable[str]
    steps: int | None
    name: str | None


class ExportedQuestion(Hinting):
    """A question that is ready for a target; made by `Mechanism.export`.

    Results are named "tip.G", "I", "P", "load", "damping", "effort", "regressor", "qdd" and "state"; CasADi
    and C replace dots by underscores. The output "guard" is the smallest ratio of a pivot, or another
    divisor, to its bound, which is its value at `near` times 1e-3. Where it is below one, export again at a
    nearer configuration.
    """

    _counterparts: ClassVar = {
        "to_fmu": "m.export.forward_dynamics().to_fmu()",
        "to_polynomial": "m.export.actuation_map(of).to_polynomial(limits=…, error_max=…)",
        "to_table": "m.export.actuation_map(of).to_table(limits=…)",
        "to_pytorch": "to_torch()",
        "save": "to_c().save(directory)",
    }

    def __init__(
        self, m: Mechanism, trace: Callable[..., Any], own: dict[str, Any], options: ExportOptions
    ) -> None:
        if "to" in options:
            raise TypeError(f"Targets are methods: write m.export.{trace.__name__}(…).to_c(), without `to`.")
        for key in options.keys() - ExportOptions.__annotations__.keys():
            raise TypeError(wrong_arguments(getattr(Exports, trace.__name__), (m,), {key: None, **own}))
        names: dict[str, Any] = own | dict(options)
        for key in ("of", "wrt", "parameters", "outputs"):  # copies
            if names.get(key) is not None:
                names[key] = names_of(names[key], key)
        self._mechanism, self._trace = m, trace
        self._own = {key: names[key] for key in own}
        self._options = {key: names[key] for key in options}

    def __repr__(self) -> str:
        targets = ", ".join(name for name in dir(type(self)) if name.startswith("to_"))
        return f"<{self._trace.__name__} of '{self._mechanism.name}' for {targets}>"

    def _traces(self, **changes: Any) -> questions.Export:
        return export_traces(self._mechanism, self._trace, self._own, **{**self._options, **changes})

    def to_c(self, *, precision: Literal["double", "float"] = "double") -> CSource:
        """Return C99 code: the text of a header, a source file and a test program.

        Examples
        --------
        >>> m = kic.load("five-bar")
        >>> m.export.inverse_dynamics(close=True).to_c()
        C source of five_bar_inverse_dynamics: 837 operations, 507 lines
        """
        from kic.export.c_source import c_source

        return c_source(self._traces(), precision)

    def to_casadi(
        self, *, rootfinder: Literal["fast_newton", "newton", "kinsol", "chords"] | None = None
    ) -> casadi.Function:
        """Return a CasADi function of SX; tensors (P, M, M) become matrices (P, M M).

        The `rootfinder` "fast_newton", "newton" or "kinsol" closes the loops in place of Newton steps.
        "chords" differentiates the closed state twice and is faster; third derivatives are not finite.
        """
        from kic.export.casadi_function import casadi_function

        return casadi_function(self._traces(), rootfinder)

    def to_jax(self, *, callback: bool = False) -> Callable[..., Any]:
        """Return a function for JAX that returns a dict of arrays.

        With `callback`, for "coefficients" only, the function of q and `near` calls the compiled kernels. XLA
        then compiles no operations of large mechanisms; derivatives end with D.
        """
        if flag("callback", callback):
            from kic.export.jax_callback import jax_callback

            return jax_callback(self._mechanism, self._trace.__name__, self._own, **self._options)
        from kic.export.jax_function import jax_function

        return jax_function(self._traces())

    def to_torch(self) -> Callable[..., dict[str, Any]]:
        """Return a function for PyTorch that returns a dict of tensors."""
        from kic.export.torch_function import torch_function

        return torch_function(self._traces())

    def to_sympy(self) -> dict[str, Any]:
        """Return arrays of SymPy expressions by name."""
        from kic.export.sympy_expressions import sympy_expressions

        return sympy_expressions(self._traces())

    def to_numpy(self) -> ExportedFunction:
        """Return a function of NumPy arrays that returns a dict of arrays.

        Examples
        --------
        A mass and gravity remain variable:

        >>> m = kic.load("five-bar")
        >>> f = m.export.dynamics(parameters=["coupler.mass", "gravity.y"]).to_numpy()
        >>> f(m.at().state, [0.01, -386.4])["load"].round(1).tolist()
        [-2.2, -8.1]
        """
        from kic.export.numpy_function import ExportedFunction

        return ExportedFunction(self._traces())


class ExportedForwardDynamics(ExportedQuestion):
    """Forward dynamics ready for a target, including FMUs; made by `Mechanism.export`."""

    def to_fmu(self) -> FMU:
        """Return an FMU of FMI 3.0; its method `save` writes the file.

        Efforts are inputs; coordinates and rates are states. Loops are always closed, because importers
        integrate coordinates. With ``derivatives=1`` it has the directional and adjoint derivatives of FMI.
        """
        from kic.export.fmu import fmu

        # checked, but without effect
        flag("close", self._options.get("close", False))
        # the FMU adds derivatives of its own
        derivatives = self._options.get("derivatives", 0)
        return fmu(self._traces(close=True, derivatives=0), derivatives)


class ExportedMap(ExportedQuestion):
    """An actuation map ready for a target, or for numbers on a box; made by `Mechanism.export`."""

    def _numbers(self) -> tuple[Mechanism, Configuration | None, Any, Any]:
        """Return the mechanism, `near`, rows and coordinates; raise errors for options without effect."""
        model_of(self._mechanism).require_real("export()", "Export the mechanism itself.")
        for key, value in self._options.items():
            if key != "near" and value not in (None, False, 0, ()):
                raise invalid(key, "must be left out for `to_polynomial` and `to_table`", value)
        near, own = self._options.get("near"), self._own
        one_state(model_of(self._mechanism), near)
        return self._mechanism, near, own["of"], own["wrt"]

    def to_polynomial(
        self, *, limits: Mapping[str, Any] | float, degree: int | None = None, error_max: float | None = None
    ) -> PolynomialMap:
        """Return polynomials of up to three motors with certified error bounds.

        Interval arithmetic certifies the bounds for all configurations of the box that continue `near`.

        Parameters
        ----------
        limits : dict of str to (lower, upper), or float
            The box of the motors, such as ``{"A": (0.2, 1.2)}``; a number is the half width about `near`.
        degree : int, optional
            Degree of the polynomials.
        error_max : float, optional
            Largest error, given instead of `degree`: the lowest sufficient degree is used.

        Raises
        ------
        InputError
            If loops do not close in the box; the error has the `values` of the coordinates.
        SingularError
            If the coordinates cannot drive the mechanism in the box; the error has their `values`.
        """
        from kic.export.certified_polynomials import certified_polynomials

        return certified_polynomials(*self._numbers(), limits, degree, error_max)

    def to_table(self, *, limits: Mapping[str, Any] | float, points: int = 33) -> ActuationTable:
        """Return values, J and reflected inertia on a grid of a box of the motors.

        Parameters
        ----------
        limits : dict of str to (lower, upper), or float
            The box, as in `to_polynomial`.
        points : int
            Number of values along each axis.

        Raises
        ------
        InputError, SingularError
            As in `to_polynomial`.
        """
        from kic.export.actuation_table import actuation_table

        found = self._numbers()
        return actuation_table(*found, limits, points, self._own["inertia"])


def _lists_options(cls: _Class) -> _Class:
    """Return a class whose methods list the options of all questions in their signatures."""
    common = [
        p.replace(kind=p.KEYWORD_ONLY, annotation=ExportOptions.__annotations__[name].__forward_arg__)
        for name, p in inspect.signature(export_traces).parameters.items()
        if name in ExportOptions.__annotations__
    ]
    for method in vars(cls).values():
        if inspect.isfunction(method) and method.__name__[0] != "_":
            signature = inspect.signature(method)
            own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
            method.__signature__ = signature.replace(parameters=[*own, *common])  # type: ignore[attr-defined]
    return cls


@_lists_options
class Exports(Questions):
    """Questions about a mechanism for other languages and libraries; see `Mechanism.export`.

    Each method takes the options of the method of `Mechanism.prepare` with the same name, and those below. It
    returns a question. Methods of the question, `to_c`, `to_casadi`, …, convert it for a target, and raise
    the errors. The kernels are recorded once, at one configuration, as a list of operations without branches,
    which is valid wherever the recorded pivots are regular.

    near : Configuration, optional
        One configuration, which selects pivots, by default the reference configuration.
    parameters : str or list of str, optional
        Parameters of the description that become an input "parameters", named as in `sensitivity`, such as
        ``["tool.mass", "gravity.y", "B.at.x"]``. Directions of axes, normals and frames, and values that the
        closure of the loops prescribes, cannot be used.
    close : bool or "equations"
        True for inputs q, the values of the coordinates, and `near`, a closed state, in place of a state.
        `steps` Newton steps close the loops, by default 5. Further outputs are the state, its residual, and
        the "radius" of a ball about it, in the 1-norm, that is proved to hold exactly one closed state, or
        NaN. "branch" is such a radius about `near`. If it is a number, the state is the continuation of
        `near`; if not, it may belong to another assembly mode. "equations" adds the outputs "closure", rows
        that vanish on closed states, and q to a function of the state, for solvers that close the loops.
    derivatives : {0, 1, 2}
        1 for the derivatives of results that are vectors, such as "qdd.d_q", "qdd.d_qd" and "qdd.d_effort",
        with respect to the inputs of a function with ``close=True``. 2 adds an input "weights", one for each
        entry of these results, and the "gradient" and "hessian" of the weighted sum.
    outputs : str or list of str
        Results to return, such as "I" or ``["tip.G"]``, by default all. Operations for other results are
        omitted.
    steps : int, optional
        Number of Newton steps.
    name : str, optional
        Name of the function, an identifier.

    Errors for questions, options and parameters that cannot be exported are `InputError`. `SingularError` is
    raised if the coordinates cannot drive the mechanism at `near`, and `MissingExtraError` if CasADi, JAX,
    PyTorch or SymPy is missing; extras of these names install them.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> f = m.export.coefficients("tip", close=True).to_numpy()
    >>> f([0.5])["tip.G"].shape
    (3, 1)
    """

    _name, _then = "export", ".to_c()"

    def __init__(self, m: Mechanism) -> None:
        self._mechanism = m

    def coefficients(
        self, of: _Names, *, order: int = 2, wrt: _Names | None = None, **options: Unpack[ExportOptions]
    ) -> ExportedQuestion:
        """Export values, Jacobians and higher coefficients of rows `of`.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        own = {"of": of, "order": order, "wrt": wrt}
        return ExportedQuestion(self._mechanism, questions.coefficients, own, options)

    def dynamics(
        self, *, wrt: _Names | None = None, loads: bool = True, **options: Unpack[ExportOptions]
    ) -> ExportedQuestion:
        """Export mass matrix, Christoffel symbols and, with `loads`, loads and damping.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        return ExportedQuestion(self._mechanism, questions.dynamics, {"wrt": wrt, "loads": loads}, options)

    def coefficients_and_dynamics(
        self,
        of: _Names,
        *,
        order: int = 2,
        wrt: _Names | None = None,
        loads: bool = True,
        **options: Unpack[ExportOptions],
    ) -> ExportedQuestion:
        """Export coefficients and dynamics from one run of the kernels.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        own = {"of": of, "order": order, "wrt": wrt, "loads": loads}
        return ExportedQuestion(self._mechanism, questions.coefficients_and_dynamics, own, options)

    def inverse_dynamics(
        self, *, wrt: _Names | None = None, loads: bool = True, **options: Unpack[ExportOptions]
    ) -> ExportedQuestion:
        """Export the efforts that produce a motion.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        own = {"wrt": wrt, "loads": loads}
        return ExportedQuestion(self._mechanism, questions.inverse_dynamics, own, options)

    def regressor(
        self,
        of: _Names | None = None,
        *,
        wrt: _Names | None = None,
        loads: bool = True,
        ground: bool = False,
        **options: Unpack[ExportOptions],
    ) -> ExportedQuestion:
        """Export the regressor of efforts, or with `ground` of force and moment on ground.

        Its columns are those of `Configuration.regressor`.
        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        own = {"of": of, "wrt": wrt, "loads": loads, "ground": ground}
        return ExportedQuestion(self._mechanism, questions.regressor, own, options)

    def forward_dynamics(
        self, *, wrt: _Names | None = None, **options: Unpack[ExportOptions]
    ) -> ExportedForwardDynamics:
        """Export the accelerations due to efforts.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.

        Examples
        --------
        >>> kic.load("four-bar").export.forward_dynamics().to_fmu()
        FMU four_bar_forward_dynamics: 5 source files
        """
        return ExportedForwardDynamics(self._mechanism, questions.forward_dynamics, {"wrt": wrt}, options)

    def motion(
        self, of: _Names, *, wrt: _Names | None = None, **options: Unpack[ExportOptions]
    ) -> ExportedQuestion:
        """Export value, velocity, acceleration and jerk of rows `of`.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        return ExportedQuestion(self._mechanism, questions.motion, {"of": of, "wrt": wrt}, options)

    def operational_space(
        self, of: _Names, *, wrt: _Names | None = None, **options: Unpack[ExportOptions]
    ) -> ExportedQuestion:
        """Export the dynamics of a task in terms of its rows `of`.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        return ExportedQuestion(self._mechanism, tasks.operational_space, {"of": of, "wrt": wrt}, options)

    def pose(
        self, of: str, *, wrt: _Names | None = None, **options: Unpack[ExportOptions]
    ) -> ExportedQuestion:
        """Export the pose of a frame or body: p, R, twist and G.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        return ExportedQuestion(self._mechanism, tasks.pose, {"of": of, "wrt": wrt}, options)

    def position(self, *, wrt: _Names | None = None, **options: Unpack[ExportOptions]) -> ExportedQuestion:
        """Export the closed state with given values of rows `wrt`.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        return ExportedQuestion(self._mechanism, questions.position, {"wrt": wrt}, options)

    def resolve_redundancy(
        self,
        of: _Names,
        *,
        order: int = 2,
        criterion: Weight = "minimum norm",
        law: Law = "consistent",
        wrt: _Names | None = None,
        **options: Unpack[ExportOptions],
    ) -> ExportedQuestion:
        """Export rates and, with `order` 2, accelerations that attain given rates and accelerations of rows.

        Further options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.
        """
        own = {"of": of, "order": order, "criterion": criterion, "law": law, "wrt": wrt}
        return ExportedQuestion(self._mechanism, tasks.resolve_redundancy, own, options)

    def actuation_map(
        self,
        of: _Names,
        *,
        wrt: _Names | None = None,
        inertia: bool = True,
        **options: Unpack[ExportOptions],
    ) -> ExportedMap:
        """Export the map between motors `wrt` and joints `of`.

        Inputs are values and rates of motors, and efforts at joints. Results are the joints' values, their
        derivative J (motors), the rate of J, motor efforts, and with `inertia` the reflected inertia. Further
        options (`close`, `parameters`, `derivatives`, …) are those of `Exports`.

        Examples
        --------
        >>> m = kic.load("five-bar")
        >>> box = {"A": (1.0, 1.4), "E": (1.3, 1.7)}
        >>> m.export.actuation_map(["B", "D"]).to_table(limits=box, points=5).J.shape
        (5, 5, 2, 2)
        """
        own = {"of": of, "wrt": wrt, "inertia": inertia}
        return ExportedMap(self._mechanism, questions.actuation_map, own, options)


def export(mechanism: Mechanism) -> Exports:
    """Return the questions for C, FMI, CasADi, JAX, PyTorch, SymPy and NumPy, and for motor maps.

    Each method returns a question; its methods `to_c`, `to_casadi`, … convert it for a target.

    Examples
    --------
    >>> m = kic.load("five-bar")
    >>> m.export.inverse_dynamics(close=True).to_c()
    C source of five_bar_inverse_dynamics: 837 operations, 507 lines
    """
    return Exports(mechanism)
