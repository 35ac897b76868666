"""Table 1 of Lee, Lee and Nigam (1982), and what kic's own kernels take beside it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from kic.arguments import integer
from kic.classics.counting import count_operations
from kic.dh import DHRow, from_dh
from kic.errors import InputError, shown
from kic.mechanism import Mechanism
from kic.parts import Body, Point
from kic.tables import Sheet

# Table 1: coefficients of n⁴, n³, n², n, 1; multiplications, then additions
_TABLE_1 = {
    "Lagrange-Euler": (("128/3", "512/3", "739/3", "160/3", "0"), ("98/3", "781/6", "559/3", "245/6", "0")),
    "Newton-Euler": (("0", "0", "0", "132", "0"), ("0", "0", "0", "111", "-4")),
    "generalized d'Alembert": (("0", "13/6", "105/2", "268/3", "69"), ("0", "4/3", "44", "146/3", "45")),
}
METHODS = tuple(_TABLE_1)


def table_1(method: str, n: int) -> tuple[int, int]:
    """Multiplications and additions of one set point of an arm, as Table 1 (p 16) of the document has them.

    Parameters
    ----------
    method : {"Lagrange-Euler", "Newton-Euler", "generalized d'Alembert"}
        The formulation.
    n : int
        Number of revolute joints, 1 or more.

    Returns
    -------
    tuple of int

    Raises
    ------
    InputError
        For another method, or what is no number of joints.

    Examples
    --------
    >>> table_1("Newton-Euler", 6), table_1("generalized d'Alembert", 6)
    ((792, 662), (2963, 2209))
    """
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"Expected `method` to be one of {', '.join(METHODS)}, got {shown(method)}.")
    n = _joints("n", n)
    products, sums = (
        sum(Fraction(c) * n**k for k, c in enumerate(reversed(coefficients)))
        for coefficients in _TABLE_1[method]
    )
    return int(products), int(sums)


def _joints(name: str, n: Any) -> int:
    """A number of joints."""
    return integer(name, n, 1)


def revolute_arm(n: int) -> Mechanism:
    """An arm of n revolute joints with nothing special about it, to count on.

    Parameters
    ----------
    n : int
        Number of joints.

    Returns
    -------
    Mechanism
        Joints j1 …, links l1 …, point "hand" at the end of the last.

    Raises
    ------
    InputError
        For what is no number of joints.

    Examples
    --------
    >>> revolute_arm(3).freedoms
    3
    """
    n = _joints("n", n)
    k = np.arange(1, n + 1)
    return from_dh(
        f"{n} revolute joints",
        [DHRow(f"j{i}", f"l{i}", a=0.3 + 0.1 * i, alpha=0.4 * i, s=0.2, theta=0.5 * i) for i in k],
        "standard",
        [Body(f"l{i}", mass=1.0, com=(-0.1, 0.02, 0.03), inertia=(0.1, 0.12, 0.15)) for i in k],
        [Point("hand", f"l{n}", at=(0.0, 0.0, 0.0))],
        gravity=(0.0, 0.0, -9.8062),
    )


class OperationTable:
    """Table 1 of the document with kic's own counts beside it, for arms of so many revolute joints.

    The document counts one set point of a trajectory: D, H and G at given rates. kic's effort is the nearest
    to it, and gives I* and P* for all rates on the way; the last columns are those and the hand's G and H
    alone.

    Parameters
    ----------
    joints : iterable of int
        Numbers of joints.

    Attributes
    ----------
    joints : tuple of int
        Numbers of joints.
    columns : tuple of str
        The three methods of the document, then kic's "effort", "I* and P*", "G and H of the hand".
    products, sums : (N, 6) int ndarray
        Multiplications and divisions; additions and subtractions.

    Raises
    ------
    InputError
        For no numbers, or what is no number of joints.

    Examples
    --------
    >>> table = OperationTable([1, 6])
    >>> table.products[:, :3].tolist()
    [[513, 132, 213], [101348, 792, 2963]]
    """

    def __init__(self, joints: Iterable[int] = range(1, 8)) -> None:
        several = np.iterable(joints) and not isinstance(joints, str)
        if not several or not (given := tuple(joints)):
            raise InputError(f"Expected `joints` to be a list of numbers of joints, got {shown(joints)}.")
        self.joints = tuple(_joints("joints", n) for n in given)
        questions: dict[str, dict[str, Any]] = {
            "effort": {"dynamics": "effort"},
            "I* and P*": {"dynamics": "inertia"},
            "G and H of the hand": {"of": "hand"},
        }
        self.columns = (*METHODS, *questions)
        counts = []
        for n in self.joints:
            arm = revolute_arm(n)
            own = [count_operations(arm, **question) for question in questions.values()]
            counts.append([table_1(method, n) for method in METHODS] + [(c.products, c.sums) for c in own])
        self.products, self.sums = np.moveaxis(
            np.array(counts, dtype=int).reshape(-1, len(self.columns), 2), -1, 0
        )

    def sheet(self) -> Sheet:
        """Labelled tables, to print or to show."""
        sheet = Sheet(
            "operations for one set point of an arm of n revolute joints: Table 1, and kic's kernels"
        )
        short = ["L-E", "N-E", "G-D", *(f"kic {name}" for name in self.columns[3:])]
        rows = [str(n) for n in self.joints]
        sheet.matrix("multiplications and divisions", rows, short, self.products, corner="n")
        sheet.matrix("additions and subtractions", rows, short, self.sums, corner="n")
        sheet.say(
            "\nL-E, N-E, G-D: Lagrange-Euler, Newton-Euler and generalized d'Alembert as printed. kic's are "
            "counted as they run, products with structural zeros and ones included; cosines and sines, n "
            "each, and changes of sign are not in the sums."
        )
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
