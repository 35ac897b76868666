"""Errors for calls with wrong arguments, which list the accepted arguments and suggest the matching name."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from kic.errors import counted, either

# arguments of kic by common terms for them; an error suggests the first that the function accepts
_TIMES = ("t, a duration or times, such as np.arange(0, 2, 0.01)", "duration")
_BODIES = ("bodies, as (parent, child)", "points, as two names")
_INERTIA = ("inertia, principal moments or a (3, 3) matrix at the mass centre",)
COUNTERPARTS: dict[str, tuple[str, ...]] = {
    term: arguments
    for terms, arguments in {
        "tau torque torques u": ("effort",),
        "q x angles joint_angles positions": ("values", "near, a configuration"),
        "q0 x0 y0 start guess initial": ("near, a configuration",),
        "v dq qdot velocity velocities rates": ("qd",),
        "a ddq qddot acceleration accelerations": ("qdd",),
        "task outputs frame body link names name row rows tool": ("of",),
        "ixx iyy izz ixy ixz iyz I J moment_of_inertia": _INERTIA,
        "parent child links between": _BODIES,
        "origin xyz position place pos": ("at",),
        "cog center_of_mass centre_of_mass": ("com",),
        "kind joint_type": ("type",),
        "length free_length rest_length l0": ("rest",),
        "k spring": ("stiffness",),
        "c d damper": ("damping",),
        "dt t_eval t_span t_end times time steps T tf": _TIMES,
        "filename path fname": ("file",),
        "seed random_state": ("rng",),
        "weight weights split": ("criterion",),
        "bounds qlim": ("limits",),
        "independent q_names": ("wrt", "coordinates"),
        "g grav": ("gravity, three numbers",),
        "sample_time": ("time", "controller, kic.controllers.Sampled(controller, time)"),
        "current": ("voltage, kic.Voltage(value, current=…)",),
        "voltage": ("value",),
        "title about source drawing": ("info, a dict of texts",),
    }.items()
    for term in terms.split()
}
COUNTERPARTS |= {
    option: (f"integrator, kic.Integrator({option}=…)",)
    for option in ["method", "rtol", "atol", "max_steps", "contacts", "on_change_point", "progress"]
}
# most arguments that an error lists
ARGUMENTS_LISTED_MAX = 12


def explained(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose errors for wrong arguments list the accepted arguments.

    Parameters
    ----------
    call : callable
        A public function or method.
    """

    @functools.wraps(call)
    def explained_call(*args: Any, **keywords: Any) -> Any:
        try:
            return call(*args, **keywords)
        except TypeError as error:
            # only errors that are raised before the first line of the function have no frame of it
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            wrong = wrong_arguments(explained_call, args, keywords)
            if not wrong:
                raise
            raise TypeError(wrong) from None

    explained_call.is_explained = True  # type: ignore[attr-defined]
    return explained_call


def explain(public: Any) -> Any:
    """Return a public function, class or module whose functions are `explained`."""
    if inspect.isfunction(public):
        if hasattr(public, "is_explained"):
            return public
        made = explained(public)
        # pickles find a function by its module and name
        setattr(sys.modules[public.__module__], public.__name__, made)
        return made
    if inspect.isclass(public):
        explain_methods(public)
    elif inspect.ismodule(public):
        for name in dir(public):
            found = vars(public).get(name)  # names that are imported on first use are explained then
            if name[0] != "_" and (inspect.isfunction(found) or inspect.isclass(found)):
                setattr(public, name, explain(found))
    return public


def explain_methods(cls: type) -> None:
    """Make public methods and constructors of a class, and of its bases in kic, `explained`."""
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] != "kic":
            continue
        for name, found in list(vars(base).items()):
            is_plain = inspect.isfunction(found) and not hasattr(found, "is_explained")
            if is_plain and (name == "__init__" or name[0] != "_"):
                setattr(base, name, explained(found))


def wrong_arguments(call: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    """Return a message about wrong arguments of a call, with the accepted names; '' if all are valid."""
    parameters = [p for name, p in inspect.signature(call).parameters.items() if name != "self"]
    args = args[1:] if "self" in inspect.signature(call).parameters else args
    by_place = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    name = getattr(call, "__qualname__", call.__name__).removesuffix(".__init__")
    rest = [n for n in named if n not in by_place]
    listed = [*by_place, *(["*"] if rest else []), *rest]
    listed = [*listed[:ARGUMENTS_LISTED_MAX], *(["…"] if listed[ARGUMENTS_LISTED_MAX:] else [])]
    there = f"Call {name}({', '.join(listed)})."
    for key in keywords:
        if key in named:
            continue
        instead = [x for x in COUNTERPARTS.get(key, ()) if x.partition(",")[0] in named]
        own, comma, kind = (instead or difflib.get_close_matches(key, named, n=1) or [""])[0].partition(",")
        hint = f"Use `{own}`{comma}{kind}. " if own else ""
        return f"{name}() has no argument `{key}`. {hint}{there}"
    if len(args) > len(by_place):
        count = counted(len(by_place), "positional argument")
        values = "The values are those of `Mechanism.at`. " if by_place[:1] == ["qd"] else ""
        return f"{name}() takes {count}, got {len(args)}. {values}Give others by name. {there}"
    optional = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    required = [p.name for p in parameters if p.default is p.empty and p.kind not in optional]
    missing = [n for n in required if n not in keywords and n not in by_place[: len(args)]]
    if missing:
        return f"{name}() needs {either((f'`{n}`' for n in missing), 'and')}. {there}"
    twice = [n for n in by_place[: len(args)] if n in keywords]
    return f"{name}() got `{twice[0]}` twice, by position and by name. {there}" if twice else ""
