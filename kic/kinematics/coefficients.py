"""Influence coefficients G, H and D of named rows with respect to named coordinates, and their algebra."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kic.description.description import MechanismDescription
from kic.description.units import row_unit
from kic.errors import InputError, SingularError, unknown
from kic.kinematics import jets
from kic.kinematics.scaling import Scaling, composed, stacked
from kic.numerics.arguments import check_order, flag, instance, mapping, names_of
from kic.numerics.arrays import as_array, broadcast_batches, one_batch, one_batch_axis
from kic.numerics.display import Printable, Summary
from kic.numerics.tables import DataTable, TableAxis, Tabular, Variable, batch_axes, per


class Coefficients(Printable, Tabular, jets.Jet):
    """Jacobian (G), Hessian (H) and third derivatives (D) of named rows u in named coordinates q.

    These are the kinematic influence coefficients of the source, (3-6) of outputs u and (3-7) of other
    coordinates q with respect to those of the tree. The differentiating index comes first:
    ``H[..., p, m, n]`` = ∂G[p, n]/∂q_m and ``D[..., p, l, m, n]`` = ∂H[p, m, n]/∂q_l. Neither is symmetric
    for rows or columns of angular velocity.

    Coefficients are the Taylor part of a map to third order, and can be combined like maps: ``a @ b`` is a
    after b, `inverse` inverts, `stack` concatenates rows, ``c["tip"]`` and `columns_of` select. Rows and
    columns are matched by name. `velocity`, `acceleration` and `jerk` take rates `qd`, accelerations `qdd`
    and jerks `qddd` (..., M) of the coordinates.

    Attributes
    ----------
    rows, columns : tuple of str
        Names of the P rows (dependents) and of the M coordinates; names of coordinates are unique.
    values : (..., P) ndarray or None
        Values of the rows, NaN for angular velocities; None if unknown, as after `inverse`.
    G : (..., P, M) ndarray
        First order (2-5, 2-6).
    H : (..., P, M, M) ndarray or None
        Second order (2-17); None below order 2.
    D : (..., P, M, M, M) ndarray or None
        Third order (2-42); None below order 3.
    quasi : frozenset of str
        Rows and columns that are quasi-velocities: angular velocities and rates of ball joints.
    holonomic : bool
        True if there are no quasi-velocities; H is then symmetric.
    scaling : kic.kinematics.scaling.Scaling or None
        Sizes of rows and columns in the mechanism, with which `condition` and `inverse` distinguish motion
        from round-off. All methods keep them. Coefficients made from arrays have None: their own entries set
        the sizes, and a row or column of round-off counts as motion. In a composition or stack with
        coefficients of a mechanism, they count as exact and take their sizes from these.

    Examples
    --------
    >>> tip = kic.load("horn-two-link").at([0.0, 0.5]).coefficients("tip")
    >>> tip.G.shape, tip.H.shape
    ((3, 2), (3, 2, 2))
    >>> tip["tip.y"].rows
    ('tip.y',)
    """

    if TYPE_CHECKING:  # None above the order; users ask for the orders that they read
        rows: tuple[str, ...]
        columns: tuple[str, ...]
        values: np.ndarray | Any
        G: np.ndarray
        H: np.ndarray | Any
        D: np.ndarray | Any

    _one_line = ("rows", "columns", "batch")
    _counterparts: ClassVar[dict[str, str]] = {
        "jacobian": "G, the Jacobian",
        "J": "G, the Jacobian",
        "hessian": "H, the Hessian",
        "value": "values",
        "transfer": "compose(inner)",
    }

    def __init__(
        self,
        rows: Iterable[str],
        columns: Iterable[str],
        G: Any,
        H: Any = None,
        D: Any = None,
        *,
        values: Any = None,
        holonomic: bool = True,
        quasi: Iterable[str] | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        self.rows, self.columns = names_of(rows, "rows"), names_of(columns, "columns")
        height, width = len(self.rows), len(self.columns)
        if len(set(self.columns)) < width:
            message = f"`columns` must be different names, got {', '.join(self.columns)}."
            raise InputError(message, key="columns", got=self.columns)
        if D is not None and H is None:
            raise InputError("`H` must be given with `D`, got None.", key="H")
        G, H, D, self.values = one_batch(
            (2, 3, 4, 1),
            tensor("G", G, height, width),
            None if H is None else tensor("H", H, height, width, width),
            None if D is None else tensor("D", D, height, width, width, width),
            None if values is None else tensor("values", values, height),
        )
        self.G, self.H, self.D = G, H, D
        self._quasi: frozenset[str] | None
        if quasi is None:
            self._quasi = frozenset() if flag("holonomic", holonomic) else None
        else:
            self._quasi = frozenset(names_of(quasi, "quasi"))
        self.scaling = scaling
        # of the mechanism, for the units of a table; None if made from arrays or combined
        self._description: MechanismDescription | None = None

    def _table(self, names: str | Iterable[str] | None = None) -> DataTable:
        def unit(name: str) -> str:
            return "" if self._description is None else row_unit(self._description, name)

        axes = [TableAxis("coordinate" + f"_{k}" * (k > 1), self.columns) for k in (1, 2, 3)]
        units = np.array([unit(row) for row in self.rows])
        made = [Variable("unit", np.broadcast_to(units, (*self.batch, len(units))))] if any(units) else []
        made += [] if self.values is None else [Variable("value", self.values)]
        made += [
            Variable(name, T, lambda *columns: per(*map(unit, columns)), tuple(axes[: k + 1]))
            for k, (name, T) in enumerate(zip("GHD", self.tensors, strict=False))
        ]
        index = (*batch_axes(self.batch), TableAxis("row", self.rows))
        return DataTable("coefficients", index, tuple(made)).select(names)

    @property
    def quasi(self) -> frozenset[str]:
        """Set of rows and columns that are quasi-velocities; if not given, all rows without a value."""
        there = frozenset((*self.rows, *self.columns))
        if self._quasi is None:
            v: Any = np.full(len(self.rows), np.nan) if self.values is None else self.values
            valued = (v == v).any(axis=tuple(range(v.ndim - 1)))  # False for NaN, also of symbols
            self._quasi = there.difference(np.compress(valued, self.rows).tolist())
        return there.intersection(self._quasi)

    @property
    def holonomic(self) -> bool:
        """True if no row or column is a quasi-velocity."""
        return not self.quasi

    @classmethod
    def identity(cls, names: Iterable[str], quasi: Iterable[str] = ()) -> Coefficients:
        """Return coefficients of coordinates with respect to themselves: G = 1, H = D = 0 (3-27, 3-28).

        In Chapter IV they are (4-35), (4-36).

        Examples
        --------
        >>> Coefficients.identity(["a", "b"])["b"].G
        array([[0., 1.]])
        """
        names = names_of(names, "names")
        size = len(names)
        return cls(names, names, np.eye(size), np.zeros((size,) * 3), np.zeros((size,) * 4), quasi=quasi)

    def __getitem__(self, names: str | Iterable[str]) -> Coefficients:
        """Select rows by name: one, several, or all of a part ("hand" for "hand.x", "hand.y" …)."""
        picked = _find("row", names, self.rows)
        jet = jets.take(self.tensors, picked, None)
        values = None if self.values is None else self.values[..., picked]
        rows = [self.rows[i] for i in picked]
        scaling = self.scaling and self.scaling.take(picked, None)
        return Coefficients(
            rows, self.columns, *_three(jet), values=values, quasi=self.quasi, scaling=scaling
        )

    def columns_of(self, of: str | Iterable[str]) -> Coefficients:
        """Select columns by name, in the order given, with the other coordinates at rest (4-33, 4-34).

        Examples
        --------
        >>> Coefficients.identity(["a", "b"]).columns_of("b").G
        array([[0.],
               [1.]])
        """
        picked = _find("column", of, self.columns, "of")
        jet, columns = jets.take(self.tensors, None, picked), [self.columns[i] for i in picked]
        scaling = self.scaling and self.scaling.take(None, picked)
        return Coefficients(
            self.rows, columns, *_three(jet), values=self.values, quasi=self.quasi, scaling=scaling
        )

    def renamed(self, names: Mapping[str, str]) -> Coefficients:
        """Rename rows and columns; `names` maps old names to new ones.

        Examples
        --------
        >>> Coefficients.identity(["a", "b"]).renamed({"a": "c"}).rows
        ('c', 'b')
        """
        there = (*self.rows, *self.columns)
        names = mapping("names", names, "old names to new ones")
        names_of(names.values(), "names")
        for name in names:
            if name not in there:
                raise unknown("row or column", name, "these coefficients", there, quoted=False)
        rows, columns = ([names.get(x, x) for x in old] for old in (self.rows, self.columns))
        quasi = {names.get(x, x) for x in self.quasi}
        return Coefficients(
            rows, columns, *_three(self.tensors), values=self.values, quasi=quasi, scaling=self.scaling
        )

    def stack(self, *others: Coefficients) -> Coefficients:
        """Concatenate rows: w = (α, e) from α and e (4-11, 4-56, E-6).

        For a platform the rows are joints q of all legs, with respect to its motion w, (4-54) to (4-60).

        Parameters
        ----------
        *others : Coefficients
            Coefficients with the same columns, in any order. Batches broadcast; the result has the lowest
            order.

        Raises
        ------
        InputError
            If columns differ, a row occurs twice, or batches do not broadcast.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.0, 0.5])
        >>> c.coefficients("tip").stack(c.coefficients("reach")).rows
        ('tip.x', 'tip.y', 'tip.z', 'reach')
        """
        parts = [self]
        for other in others:
            expect("others", other)
            if set(other.columns) != set(self.columns):
                message = (
                    f"`others` must have the columns {', '.join(self.columns)}, got "
                    f"{', '.join(other.columns)}. Compose (@) first."
                )
                raise InputError(message, key="others", got=other.columns)
            parts.append(other if other.columns == self.columns else other.columns_of(self.columns))
        rows = [row for part in parts for row in part.rows]
        twice = sorted({row for row in rows if rows.count(row) > 1})
        if twice:
            message = f"Rows must have different names, got {', '.join(twice)} twice."
            raise InputError(message, names=tuple(twice))
        batch = broadcast_batches(**{f"part {k}": part.batch for k, part in enumerate(parts)})
        values = None
        if any(part.values is not None for part in parts):
            each = [np.full(len(p.rows), np.nan) if p.values is None else p.values for p in parts]
            values = np.concatenate([np.broadcast_to(v, batch + v.shape[-1:]) for v in each], axis=-1)
        quasi = {name for part in parts for name in part.quasi}
        jet = jets.stack([part.tensors for part in parts], batch)
        scaling = stacked([(part.scaling, part.G) for part in parts])
        return Coefficients(rows, self.columns, *_three(jet), values=values, quasi=quasi, scaling=scaling)

    def compose(self, inner: Coefficients) -> Coefficients:
        """Return the coefficients of u(φ(q)) from these, u(φ), and `inner`, φ(q); also ``self @ inner``.

        With an inverse as `inner` this is (3-22), (3-26), and (3-47) for general dependents.

        Parameters
        ----------
        inner : Coefficients
            Coefficients whose rows include all columns of `self`, in any order. Batches broadcast; the result
            has the lower order.

        Raises
        ------
        InputError
            If `inner` lacks a row, or batches do not broadcast.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([0.3, 0.5])
        >>> reach = c.coefficients("reach") @ c.coefficients(["tip.x", "tip.y"]).inverse()
        >>> reach.columns, (reach.G**2).sum().round(12)  # the radius grows by 1 along itself
        (('tip.x', 'tip.y'), np.float64(1.0))
        """
        between = expect("inner", inner).matched(self.columns)
        broadcast_batches(outer=self.batch, inner=inner.batch)
        jet, quasi = jets.compose(self.tensors, between.tensors), self.quasi | inner.quasi
        scaling = composed(self.scaling, self.G, between.scaling, between.G)
        return Coefficients(
            self.rows, inner.columns, *_three(jet), values=self.values, quasi=quasi, scaling=scaling
        )

    def __matmul__(self, inner: Coefficients) -> Coefficients:
        return self.compose(inner) if isinstance(inner, Coefficients) else NotImplemented

    def inverse(self) -> Coefficients:
        """Return the coefficients of the columns with respect to the rows (3-11 to 3-19).

        Their `velocity` is the resolved rate (3-14), their `acceleration` (3-16), their `jerk` (3-45) to
        (3-47). For loops it is (4-39), for the legs of a platform (4-42) to (4-44), for the platform (4-63),
        (4-64). Examples are (B-4), (E-3) and (E-4).

        Returns
        -------
        Coefficients
            Coefficients of the same order with rows and columns exchanged; `values` is None.

        Raises
        ------
        InputError
            If there are not as many rows as columns.
        SingularError
            If G is singular or nearly so; carries `condition`, `rows`, `columns` and `failed` members.

        Examples
        --------
        >>> tip = kic.load("horn-two-link").at([0.0, 1.5]).coefficients(["tip.x", "tip.y"])
        >>> inverse = tip.inverse()
        >>> inverse.rows == tip.columns, (tip @ inverse).H.round(12).any()
        (True, np.False_)
        """
        height, width = self.G.shape[-2:]
        if height != width:
            message = (
                f"inverse() requires as many rows as columns, got {height} rows ({', '.join(self.rows)}) "
                f"and {width} columns ({', '.join(self.columns)}). Choose (or stack) {width} rows."
            )
            raise InputError(message, key="G", got=(height, width))
        self._check_regular()
        jet = jets.invert(self.tensors)
        scaling = self.scaling and self.scaling.inverse(jet[0])
        return Coefficients(self.columns, self.rows, *_three(jet), quasi=self.quasi, scaling=scaling)

    def matched(self, names: tuple[str, ...]) -> Coefficients:
        """Return the rows with exactly these names, in this order.

        Raises
        ------
        InputError
            If names are missing; the error carries `missing`.
        """
        names = names_of(names, "names")
        if names == self.rows:
            return self
        missing = tuple(name for name in names if name not in self.rows)
        if missing:
            raise InputError(
                f"Rows must include {', '.join(names)}; missing: {', '.join(missing)}. "
                f"Available: {', '.join(self.rows)}.",
                missing=missing,
            )
        picked = [self.rows.index(name) for name in names]
        jet = jets.take(self.tensors, picked, None)
        scaling = self.scaling and self.scaling.take(picked, None)
        return Coefficients(names, self.columns, *_three(jet), quasi=self.quasi, scaling=scaling)

    def condition(self) -> np.ndarray:
        """Return the condition number of G with rows and columns made dimensionless by `scaling`.

        Returns
        -------
        (...,) ndarray
            Condition numbers. They are inf where rows depend on each other or a row, or a motion of the
            columns, is round-off only; NaN where G is NaN. Without `scaling`, rows and columns are scaled by
            their own entries.

        Examples
        --------
        >>> c = kic.load("horn-two-link").at([[0.0, 0.0], [0.0, 1.5]])
        >>> c.coefficients(["tip.x", "tip.y"]).condition().round(1)
        array([inf, 2.8])
        """
        if self.G.dtype == object:
            raise InputError("`G` must hold numbers, got symbols. Substitute numbers.", key="G")
        return np.asarray(jets.diagnose(self.G, self.H, self.scaling)[0])[()]

    def _check_regular(self) -> None:
        """Raise an error for a singular G, with the rows that depend on each other and the lost motion."""
        if self.G.dtype == object:
            return
        condition, rows, columns = jets.diagnose(self.G, self.H, self.scaling)
        failed = np.argwhere(condition > jets.CONDITION_MAX)
        if not len(failed):
            return
        worst = tuple(max(failed.tolist(), key=lambda member: condition[tuple(member)]))
        lost, still = (
            [name for name, x in zip(names, share[worst], strict=True) if x > 0.1 * share[worst].max()]
            for names, share in ((self.rows, rows), (self.columns, columns))
        )
        where = f" in member {list(worst)}, one of {len(failed)} that fail" if worst else ""
        depend = "depend on each other" if len(lost) > 1 else "does not change"
        raise SingularError(
            f"{', '.join(self.rows)} cannot be coordinates here (condition {condition[worst]:.1e}{where}): "
            f"{', '.join(lost)} {depend}, and a motion of {', '.join(still)} moves none of the rows. Choose "
            "other rows or another configuration.",
            condition=float(condition[worst]),
            rows=tuple(lost),
            columns=tuple(still),
            failed=[tuple(member) for member in failed.tolist()],
        )

    def summary(self, order: int | None = None) -> Summary:
        """Return labelled tables of values and coefficients up to an order, by default at most 2."""
        upto = min(self.order, 2 if order is None else check_order(order))
        count = f"{len(self.rows)} row{'s' if len(self.rows) > 1 else ''}"
        sheet = Summary(f"{count} with respect to {', '.join(self.columns)}")
        index = sheet.member(self.batch)
        if index is None:
            return sheet
        if self.values is not None:
            values = self.values[index]
            known = np.flatnonzero(values == values)  # NaN is left out
            if known.size:
                sheet.matrix("value", [self.rows[i] for i in known], [""], values[known][:, None])
        sheet.matrix("G = ∂u/∂q", self.rows, self.columns, self.G[index])
        if upto > 1:
            sheet.say("\nH[u] = ∂G/∂q, rows: the differentiating coordinate")
            sheet.planes("H", self.rows, self.columns, self.columns, np.asarray(self.H)[index])
        if upto > 2:
            D = np.asarray(self.D)[index]
            labels = [f"{row}, {c}" for row in self.rows for c in self.columns]
            sheet.say("\nD[u, q_l] = ∂H/∂q_l")
            sheet.planes("D", labels, self.columns, self.columns, one_batch_axis(D, 2))
        elif self.D is not None:
            sheet.say(f"\nD {self.D.shape}: print with summary(order=3).text()")
        return sheet


def expect(name: str, value: Any) -> Coefficients:
    """Return `value`, or raise `InputError` unless it is a `Coefficients`."""
    remedy = "Make them of arrays by kic.Coefficients(rows, columns, G, H, D)."
    return instance(name, value, Coefficients, remedy)


def computed_coefficients(
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    tensors: jets.Tensors,
    values: np.ndarray,
    quasi: frozenset[str],
    scaling: Scaling,
    description: MechanismDescription,
) -> Coefficients:
    """Return coefficients from results of the kernels, without checks."""
    made = Coefficients.__new__(Coefficients)
    made.rows, made.columns, made.values = rows, columns, values
    made.G, made.H, made.D = (*tensors, None, None)[:3]  # type: ignore[assignment]
    made._quasi, made.scaling, made._description = quasi, scaling, description
    return made


def tensor(name: str, value: Any, *shape: int) -> np.ndarray:
    """Return an array whose shape ends in `shape`; arrays of the kernels need no further checks."""
    if type(value) is np.ndarray and value.dtype.char in "dDO" and value.shape[-len(shape) :] == shape:
        return value
    return as_array(name, value, *shape, finite=False)


def _three(jet: jets.Tensors) -> tuple[Any, Any, Any]:
    """Return G, H and D, with None above the order."""
    G, H, D = (*jet, None, None)[:3]
    return G, H, D


def _find(
    kind: str, names: str | Iterable[str], there: tuple[str, ...], argument: str = "names"
) -> list[int]:
    """Return the indices of names, or of all components of a part."""
    picked: list[int] = []
    for name in names_of(names, argument):
        found = [i for i, x in enumerate(there) if x == name or x.startswith(f"{name}.")]
        if not found:
            raise unknown(kind, name, "these coefficients", there, quoted=False)
        picked += found
    return picked
