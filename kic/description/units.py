"""Sizes of the units whose names are known, and whether those of a model go together."""

from __future__ import annotations

from math import isclose

from kic.errors import ModelError

# in SI; the foot, the pound and its standard weight are exact. Pounds without "f" are mass to some and weight
# to others, so they are not among these
_POUND_FORCE = 0.45359237 * 9.80665
_FEET = {"in": 0.0254, "ft": 0.3048}
SIZES: dict[str, dict[str, float]] = {
    "length": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "dm": 1e-1, "km": 1e3, "um": 1e-6, "µm": 1e-6, "μm": 1e-6}
    | _FEET,
    "mass": {"kg": 1.0, "g": 1e-3, "mg": 1e-6, "t": 1e3, "Mg": 1e3}
    | {"slug": _POUND_FORCE / _FEET["ft"], "lbf s²/ft": _POUND_FORCE / _FEET["ft"]}
    | {"lbf s²/in": _POUND_FORCE / _FEET["in"], "blob": _POUND_FORCE / _FEET["in"]},
    "time": {"s": 1.0, "ms": 1e-3, "min": 60.0},
    "force": {"N": 1.0, "mN": 1e-3, "µN": 1e-6, "uN": 1e-6, "μN": 1e-6, "dyn": 1e-5, "kN": 1e3, "MN": 1e6}
    | {"lbf": _POUND_FORCE},
}


def check_units(length: str, mass: str, time: str, force: str) -> None:
    """Force is mass · length / time², or an error; of names that are not known nothing is said.

    Parameters
    ----------
    length, mass, time, force : str
        Names of units.

    Raises
    ------
    ModelError
        If all four are known and do not go together; it carries `product`, mass · length / time² in that unit
        of force.

    Examples
    --------
    >>> check_units("mm", "t", "s", "N")
    >>> check_units("in", "lb", "s", "lbf")  # whether pounds are masses here can not be told
    >>> check_units("mm", "kg", "s", "N")
    Traceback (most recent call last):
    kic.errors.ModelError: Units: force must be mass · length / time²; kg mm/s² is 0.001 N. Give force = ...
    """
    named = {"length": length, "mass": mass, "time": time, "force": force}
    if not all(name in SIZES[what] for what, name in named.items()):
        return
    size = {what: SIZES[what][name] for what, name in named.items()}
    product = size["mass"] * size["length"] / size["time"] ** 2 / size["force"]
    if isclose(product, 1.0, rel_tol=1e-9):
        return
    composed = f"{mass} {length}/{time}²"
    forces = [*_of_size("force", product * size["force"]), composed]
    masses = _of_size("mass", size["mass"] / product)
    remedies = [f"force = {forces[0]!r}", *(f"mass = {name!r}" for name in masses[:1])]
    raise ModelError(
        f"Units: force must be mass · length / time²; {composed} is {product:.6g} {force}. Give "
        f"{' or '.join(remedies)}, and the numbers in it.",
        key="force",
        product=product,
    )


def _of_size(what: str, size: float) -> list[str]:
    """Names of the units of a size."""
    return [name for name, known in SIZES[what].items() if isclose(known, size, rel_tol=1e-9)]
