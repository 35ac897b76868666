"""The table of questions, from their names to what evaluates them in hot loops and what exports them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from kic.errors import InputError, either, unknown
from kic.evaluator import (
    PARTS,
    Accelerations,
    Efforts,
    Evaluator,
    OutputMotions,
    PositionSolver,
    Tables,
)
from kic.numerics.arguments import flag, names_of
from kic.transfer.compiled_model import CompiledModel

if TYPE_CHECKING:
    from kic.operational_space.weighting import Damping, Law, Weight

_Names = str | Iterable[str]


def _coefficients(model: CompiledModel, of: _Names, order: int = 2, wrt: _Names | None = None) -> Tables:
    return Tables(model, of, order, (), wrt)


def _dynamics(model: CompiledModel, wrt: _Names | None = None, loads: bool = True) -> Tables:
    return Tables(model, (), 2, PARTS if flag("loads", loads) else PARTS[:2], wrt)


def _both(
    model: CompiledModel, of: _Names, order: int = 2, wrt: _Names | None = None, loads: bool = True
) -> Tables:
    return Tables(model, names_of(of, least=1), order, PARTS if flag("loads", loads) else PARTS[:2], wrt)


def _operational_space(model: CompiledModel, of: _Names, wrt: _Names | None = None) -> Evaluator:
    from kic.operational_space.operational_space import OperationalSpaceEvaluator

    return OperationalSpaceEvaluator(model, of, wrt)


def _pose(model: CompiledModel, of: _Names, wrt: _Names | None = None) -> Evaluator:
    from kic.operational_space.pose import PoseEvaluator

    return PoseEvaluator(model, of, wrt)


def _resolve_redundancy(
    model: CompiledModel,
    of: _Names,
    order: int = 2,
    criterion: Weight = "minimum norm",
    law: Law = "consistent",
    damping: Damping = None,
    wrt: _Names | None = None,
    effort: bool = False,
) -> Evaluator:
    from kic.operational_space.redundancy import RedundancyEvaluator

    return RedundancyEvaluator(model, of, criterion, law, damping, wrt, effort, order)


class Question(NamedTuple):
    """A question: the function that prepares it, and that which records it, by module and name."""

    evaluator: Callable[..., Evaluator] | None
    trace: str = ""


# by sorted names: several questions are answered by one call of the kernels
QUESTIONS: dict[tuple[str, ...], Question] = {
    ("coefficients",): Question(_coefficients, "questions.coefficients"),
    ("dynamics",): Question(_dynamics, "questions.dynamics"),
    ("coefficients", "dynamics"): Question(_both, "questions.coefficients_and_dynamics"),
    ("forward_dynamics",): Question(Accelerations, "questions.forward_dynamics"),
    ("inverse_dynamics",): Question(Efforts, "questions.inverse_dynamics"),
    ("motion",): Question(OutputMotions, "questions.motion"),
    ("operational_space",): Question(_operational_space, "tasks.operational_space"),
    ("pose",): Question(_pose, "tasks.pose"),
    ("position",): Question(PositionSolver, "questions.position"),
    ("resolve_redundancy",): Question(_resolve_redundancy, "tasks.resolve_redundancy"),
    ("actuation_map",): Question(None, "questions.actuation_map"),
}


def find_question(question: _Names, exported: bool) -> tuple[str, ...]:
    """Return the key of a question in the table; raise the error for one that is not there."""
    known = {names for names, q in QUESTIONS.items() if (q.trace if exported else q.evaluator)}
    names = names_of(question, "question", least=1)
    single = tuple(name for one in QUESTIONS if len(one) == 1 and one in known for name in one)
    for name in names:
        if name not in single:
            error = unknown("question", name, "export()" if exported else "prepare()", single, quoted=False)
            raise InputError(error.message, key="question", got=name, candidates=single)
    found = tuple(sorted(set(names)))
    if found not in known:
        raise InputError(
            f"`question` must be one question, or 'coefficients' and 'dynamics', got {', '.join(names)}. "
            f"{'Export' if exported else 'Prepare'} the others separately.",
            key="question",
            got=names,
        )
    return found


def check_options(
    names: tuple[str, ...], answer: Callable[..., Any], options: dict[str, Any], others: Iterable[str] = ()
) -> None:
    """Raise an error for options that a question does not have, and for those that are missing."""
    allowed = list(signature(answer).parameters.values())[1:]
    listed = [*(p.name for p in allowed), *others]
    wrong = [key for key in options if key not in listed]
    missing = [p.name for p in allowed if p.default is p.empty and p.name not in options]
    if wrong or missing:
        key = (wrong or missing)[0]
        rule = "must be left out" if wrong else "must be given"
        raise InputError(
            f"`{key}` {rule} for '{' and '.join(names)}'. Its options are {either(listed, 'and')}.", key=key
        )


def prepare(model: CompiledModel, question: _Names, options: dict[str, Any]) -> Evaluator:
    """Return the evaluator of a question; see `Mechanism.prepare`."""
    names = find_question(question, exported=False)
    make = QUESTIONS[names].evaluator
    assert make is not None  # for the type checker
    check_options(names, make, options)
    return make(model, **options)
