"""The generalized d'Alembert split of Lee, Lee and Nigam (1982): what moving and turning the links takes.

    T_i = Σ_j (D_ij^tran + D_ij^rot) q̈_j + H_i^tran(q, q̇) + H_i^rot(q, q̇) + G_i                         (29)

The document writes these parts for serial arms of revolute joints (30-33). Its sums over the links are
Freeman's, body by body: linear momentum makes the translational parts, angular momentum the rotational ones.
So they are taken from `Configuration.contributions`, and hold for sliders, branches, loops and other
coordinates too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from kic.classics.splitdynamics import SplitDynamics
from kic.configuration import Configuration
from kic.errors import InputError, shown
from kic.model import Model
from kic.tree import REVOLUTE


def split(
    configuration: Configuration,
    wrt: str | Iterable[str] | None = None,
    failures: Literal["raise", "mask"] = "raise",
) -> SplitDynamics:
    """Dynamics of a mechanism, split into what moving and what turning its bodies takes (eqs 29-33).

    Parameters
    ----------
    configuration : Configuration
        A posture or a batch of them, such as those of a motion.
    wrt : str or list of str, optional
        The coordinates, as in `Configuration.coefficients`; by default the mechanism's own.
    failures : {"raise", "mask"}
        As there.

    Returns
    -------
    SplitDynamics

    Raises
    ------
    InertiaError, InputError, SingularError
        As `Configuration.contributions` and `Configuration.dynamics` would.

    Examples
    --------
    >>> import kic
    >>> from kic.classics import split
    >>> arm = split(kic.load("horn-two-link").at([0.0, 0.0]))
    >>> arm.D_tran.round(3), arm.D_rot.round(3)
    (array([[2.5 , 0.75],
           [0.75, 0.25]]), array([[0.167, 0.083],
           [0.083, 0.083]]))
    """
    if not isinstance(configuration, Configuration):
        raise InputError(
            f"Expected `configuration` to be a posture, got {shown(configuration)}. `Mechanism.at` makes one."
        )
    shares = configuration.contributions(wrt, failures)
    model = configuration.dynamics(wrt, failures=failures)
    parts = {"D_tran": shares.I_linear, "D_rot": shares.I_angular}
    parts |= {"H_tran": shares.P_linear, "H_rot": shares.P_angular}
    parts = {name: of.sum(axis=-4 if name[0] == "H" else -3) for name, of in parts.items()}
    # one number for a pair of rates, whichever of them is named first
    for name in ("H_tran", "H_rot"):
        parts[name] = (parts[name] + parts[name].swapaxes(-1, -2)) / 2
    parts["G"] = -model.load
    return SplitDynamics(
        shares.coordinates, parts, model.damping, no_arm=_no_arm(configuration._model, wrt is None)
    )


def _no_arm(model: Model, own: bool) -> str:
    """Why this is no serial arm of revolute joints in its own coordinates; nothing if it is."""
    tree = model.tree
    if not own:
        return "its coordinates are others than those of the joints"
    if not model.direct:
        return "it has loops, couplings, fixed distances or coordinates left out"
    if any(tree.cols[:, 1] != REVOLUTE):
        kinds = {part.type for part in model.drawing.joints if part.freedoms} - {"revolute"}
        return f"it has joints that are not revolute ({', '.join(sorted(kinds))})"
    if tree.cols[:, 0].tolist() != list(range(-1, tree.size - 1)):
        return "it branches"
    return (
        "its coordinates do not follow one another along the arm" if tree.to_coordinates is not None else ""
    )
