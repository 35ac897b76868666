"""Coefficients: G, H and D of named dependents with respect to named coordinates, and their algebra."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kic.display import Summary, member
from kic.errors import InputError, SingularError, unknown
from kic.kinematics import jets
from kic.kinematics.scaling import Scaling, composed, stacked
from kic.numerics.arguments import flag, instance, mapping, names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_order, one_batch


class Coefficients(jets.Jet):
    """Kinematic influence coefficients of named dependents u with respect to named coordinates q.

    The differentiating index comes first: ``H[..., p, m, n]`` = ∂G[p, n]/∂q_m and
    ``D[..., p, l, m, n]`` = ∂H[p, m, n]/∂q_l. Neither is symmetric in rows, or columns, that are turning.

    They are the third-order Taylor part of a map, and can be calculated with as maps: ``a @ b`` is a of b,
    `inverse` turns round, `stack` puts rows together, ``c["tip"]`` and `columns_of` pick. Rows and columns
    find each other by name.

    Attributes
    ----------
    rows, columns : tuple of str
        Names of the P dependents and of the M coordinates, which are all different.
    values : (..., P)
        Values of the dependents, NaN of angular velocities; None where unknown, as after `inverse`.
    G : (..., P, M)
        First order (eq 2-6).
    H : (..., P, M, M) or None
        Second order (eq 2-17); None below order 2.
    D : (..., P, M, M, M) or None
        Third order (eq 2-42); None below order 3.
    quasi : frozenset of str
        Those rows and columns that are rates of nothing: angular velocities, turns of a ball joint.
    holonomic : bool
        Whether there are none of those; H is then symmetric.
    scaling : kic.scaling.Scaling or None
        Sizes of rows and columns in the mechanism, by which `condition` and `inverse` tell motion from
        round-off. Results of all methods keep them. Coefficients made from arrays have None: their own
        entries then set the sizes, so a row or a column of round-off alone counts as motion. Composed or
        stacked with those of a mechanism, such numbers count as exact and get their sizes from these.

    Examples
    --------
    >>> import kic
    >>> tip = kic.load("horn-two-link").at([0.0, 0.5]).coefficients("tip")
    >>> tip.G.shape, tip.H.shape
    ((3, 2), (3, 2, 2))
    >>> tip["tip.y"].rows
    ('tip.y',)
    """

    def __init__(
        self,
        rows: Iterable[str],
        columns: Iterable[str],
        G: Any,
        H: Any = None,
        D: Any = None,
        values: Any = None,
        holonomic: bool = True,
        quasi: Iterable[str] | None = None,
        scaling: Scaling | None = None,
    ) -> None:
        self.rows, self.columns = names_of(rows, "rows"), names_of(columns, "columns")
        height, width = len(self.rows), len(self.columns)
        if len(set(self.columns)) < width:
            raise InputError(f"Expected columns with different names, got {', '.join(self.columns)}.")
        if D is not None and H is None:
            raise InputError("Expected H where D is given.")
        G, H, D, self.values = one_batch(
            (2, 3, 4, 1),
            tensor("G", G, height, width),
            None if H is None else tensor("H", H, height, width, width),
            None if D is None else tensor("D", D, height, width, width, width),
            None if values is None else tensor("values", values, height),
        )
        super().__init__(G, H, D)
        self._quasi: frozenset[str] | None
        if quasi is None:
            self._quasi = frozenset() if flag("holonomic", holonomic) else None
        else:
            self._quasi = frozenset(names_of(quasi, "quasi"))
        self.scaling = scaling

    @property
    def quasi(self) -> frozenset[str]:
        """Rows and columns that are rates of nothing; where nobody said which, all without a value."""
        there = frozenset((*self.rows, *self.columns))
        if self._quasi is None:
            v: Any = np.full(len(self.rows), np.nan) if self.values is None else self.values
            valued = (v == v).any(axis=tuple(range(v.ndim - 1)))  # NaN equals nothing
            self._quasi = there.difference(np.compress(valued, self.rows).tolist())
        return there.intersection(self._quasi)

    @property
    def holonomic(self) -> bool:
        """Whether no row and no column is the rate of nothing."""
        return not self.quasi

    @classmethod
    def identity(cls, names: Iterable[str], quasi: Iterable[str] = ()) -> Coefficients:
        """Coefficients of coordinates with respect to themselves: G = 1, H = D = 0 (eqs 3-27, 3-28).

        Examples
        --------
        >>> Coefficients.identity(["a", "b"])["b"].G
        array([[0., 1.]])
        """
        names = names_of(names, "names")
        size = len(names)
        return cls(names, names, np.eye(size), np.zeros((size,) * 3), np.zeros((size,) * 4), quasi=quasi)

    def __getitem__(self, names: str | Iterable[str]) -> Coefficients:
        """Rows by name: one, several, or all of a part ("hand" for "hand.x", "hand.y" …)."""
        picked = _find("row", names, self.rows)
        jet = jets.take(self.tensors, picked, None)
        values = None if self.values is None else self.values[..., picked]
        rows = [self.rows[i] for i in picked]
        scaling = self.scaling and self.scaling.take(picked, None)
        return Coefficients(rows, self.columns, *_three(jet), values, quasi=self.quasi, scaling=scaling)

    def columns_of(self, names: str | Iterable[str]) -> Coefficients:
        """Columns by name, in the order given; the other coordinates stand still (eqs 4-33, 4-34).

        Raises
        ------
        UnknownNameError
            For a name that is not there.

        Examples
        --------
        >>> Coefficients.identity(["a", "b"]).columns_of("b").G
        array([[0.],
               [1.]])
        """
        picked = _find("column", names, self.columns)
        jet, columns = jets.take(self.tensors, None, picked), [self.columns[i] for i in picked]
        scaling = self.scaling and self.scaling.take(None, picked)
        return Coefficients(self.rows, columns, *_three(jet), self.values, quasi=self.quasi, scaling=scaling)

    def renamed(self, names: Mapping[str, str]) -> Coefficients:
        """The same with new names for some rows and columns, by their old ones.

        Raises
        ------
        UnknownNameError
            For an old name that is not there.

        Examples
        --------
        >>> Coefficients.identity(["a", "b"]).renamed({"a": "c"}).rows
        ('c', 'b')
        """
        there = (*self.rows, *self.columns)
        names = mapping("names", names, "new names by the old ones")
        names_of(names.values(), "names")
        for name in names:
            if name not in there:
                raise unknown("row or column", name, "these coefficients", there)
        rows, columns = ([names.get(x, x) for x in old] for old in (self.rows, self.columns))
        quasi = {names.get(x, x) for x in self.quasi}
        return Coefficients(
            rows, columns, *_three(self.tensors), self.values, quasi=quasi, scaling=self.scaling
        )

    def stack(self, *others: Coefficients) -> Coefficients:
        """Rows of several, one below the other: w = (α, e) from α and e (eqs 4-11, 4-56).

        Parameters
        ----------
        *others : Coefficients
            With the same columns, in any order. Batches broadcast; the result has the lowest order.

        Raises
        ------
        InputError
            If columns differ, a row is there twice, or batches do not broadcast.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.0, 0.5])
        >>> c.coefficients("tip").stack(c.coefficients("reach")).rows
        ('tip.x', 'tip.y', 'tip.z', 'reach')
        """
        parts = [self]
        for other in others:
            expect("others", other)
            if set(other.columns) != set(self.columns):
                raise InputError(
                    f"Expected the same columns in a stack, got {', '.join(self.columns)} and "
                    f"{', '.join(other.columns)}. Compose (@) first."
                )
            parts.append(other if other.columns == self.columns else other.columns_of(self.columns))
        rows = [row for part in parts for row in part.rows]
        twice = sorted({row for row in rows if rows.count(row) > 1})
        if twice:
            raise InputError(f"Expected rows to have their own names, got twice {', '.join(twice)}.")
        batch = broadcast_batches(**{f"part {k}": part.batch for k, part in enumerate(parts)})
        values = None
        if any(part.values is not None for part in parts):
            each = [np.full(len(p.rows), np.nan) if p.values is None else p.values for p in parts]
            values = np.concatenate([np.broadcast_to(v, batch + v.shape[-1:]) for v in each], axis=-1)
        quasi = {name for part in parts for name in part.quasi}
        jet = jets.stack([part.tensors for part in parts], batch)
        scaling = stacked([(part.scaling, part.G) for part in parts])
        return Coefficients(rows, self.columns, *_three(jet), values, quasi=quasi, scaling=scaling)

    def compose(self, inner: Coefficients) -> Coefficients:
        """Coefficients of u(φ(q)): these, u(φ), after the inner ones, φ(q). Also written ``self @ inner``.

        With an inverse as the inner ones this is (3-22), (3-26), and (3-47) for general dependents.

        Parameters
        ----------
        inner : Coefficients
            Whose rows include all columns of these, in any order. Batches broadcast; the result has the
            lower order.

        Raises
        ------
        InputError
            If the inner ones lack a row, or batches do not broadcast.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([0.3, 0.5])
        >>> reach = c.coefficients("reach") @ c.coefficients(["tip.x", "tip.y"]).inverse()
        >>> reach.columns, (reach.G**2).sum().round(12)  # the radius grows by 1 along itself
        (('tip.x', 'tip.y'), np.float64(1.0))
        """
        between = expect("inner", inner).matched(self.columns)
        broadcast_batches(outer=self.batch, inner=inner.batch)
        jet, quasi = jets.compose(self.tensors, between.tensors), self.quasi | inner.quasi
        scaling = composed(self.scaling, self.G, between.scaling, between.G)
        return Coefficients(self.rows, inner.columns, *_three(jet), self.values, quasi=quasi, scaling=scaling)

    def __matmul__(self, inner: Coefficients) -> Coefficients:
        return self.compose(inner) if isinstance(inner, Coefficients) else NotImplemented

    def inverse(self) -> Coefficients:
        """Coefficients of the columns with respect to the rows (eqs 3-15, 3-19, 3-47).

        Its `velocity` is the resolved rate (3-14), its `acceleration` (3-16), its `jerk` (3-46).

        Returns
        -------
        Coefficients
            Rows and columns exchanged, of the same order; values None.

        Raises
        ------
        InputError
            If there are not as many rows as columns.
        SingularError
            If G is singular or nearly so; carries `condition`, `rows`, `columns` and `failed` members.

        Examples
        --------
        >>> import kic
        >>> tip = kic.load("horn-two-link").at([0.0, 1.5]).coefficients(["tip.x", "tip.y"])
        >>> inverse = tip.inverse()
        >>> inverse.rows == tip.columns, (tip @ inverse).H.round(12).any()
        (True, np.False_)
        """
        height, width = self.G.shape[-2:]
        if height != width:
            raise InputError(
                f"Only as many rows as columns have an inverse; there are {height} rows "
                f"({', '.join(self.rows)}) and {width} columns ({', '.join(self.columns)}). "
                f"Choose (or stack) {width} rows."
            )
        self._check_regular()
        jet = jets.invert(self.tensors)
        scaling = self.scaling and self.scaling.inverse(jet[0])
        return Coefficients(self.columns, self.rows, *_three(jet), quasi=self.quasi, scaling=scaling)

    def matched(self, names: tuple[str, ...]) -> Coefficients:
        """Rows of exactly these names, in this order, as a composition needs them.

        Raises
        ------
        InputError
            If some are missing; carries `missing`.
        """
        names = names_of(names, "names")
        if names == self.rows:
            return self
        missing = tuple(name for name in names if name not in self.rows)
        if missing:
            raise InputError(
                f"Rows are needed for {', '.join(names)}; missing: {', '.join(missing)}. "
                f"There are: {', '.join(self.rows)}.",
                missing=missing,
            )
        picked = [self.rows.index(name) for name in names]
        jet = jets.take(self.tensors, picked, None)
        scaling = self.scaling and self.scaling.take(picked, None)
        return Coefficients(names, self.columns, *_three(jet), quasi=self.quasi, scaling=scaling)

    def condition(self) -> np.ndarray:
        """Return the condition number of G, its rows and columns in units of their `scaling`.

        Returns
        -------
        (...,)
            inf where rows depend on each other, or where all that a row or a motion of the columns has is
            round-off; NaN where G is. Without `scaling`, rows and columns are scaled by their own entries.

        Raises
        ------
        InputError
            For symbols.

        Examples
        --------
        >>> import kic
        >>> c = kic.load("horn-two-link").at([[0.0, 0.0], [0.0, 1.5]])
        >>> c.coefficients(["tip.x", "tip.y"]).condition().round(1)
        array([inf, 2.8])
        """
        if self.G.dtype == object:
            raise InputError("Symbols have no condition; put numbers in.")
        return jets.diagnose(self.G, self.H, self.scaling)[0]

    def _check_regular(self) -> None:
        """Refuse a G without inverse, naming the rows that depend on each other and the motion lost."""
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
            f"{', '.join(self.rows)} can not be coordinates here (condition {condition[worst]:.1e}{where}): "
            f"{', '.join(lost)} {depend}, and a motion of {', '.join(still)} moves none of the rows. Choose "
            "other rows or another posture.",
            condition=float(condition[worst]),
            rows=tuple(lost),
            columns=tuple(still),
            failed=failed,
        )

    def summary(self, order: int | None = None) -> Summary:
        """Labelled tables of everything up to an order (by default 2 at most), to print or to show."""
        upto = min(self.order, 2 if order is None else check_order(order))
        count = f"{len(self.rows)} row{'s' if len(self.rows) > 1 else ''}"
        sheet = Summary(f"{count} with respect to {', '.join(self.columns)}")
        index, remark = member(self.batch)
        if remark:
            sheet.say(remark)
        if index is None:
            return sheet
        if self.values is not None:
            values = self.values[index]
            known = np.flatnonzero(values == values)  # NaN equals nothing
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
            sheet.planes("D", labels, self.columns, self.columns, D.reshape(-1, *D.shape[-2:]))
        elif self.D is not None:
            sheet.say(f"\nD {self.D.shape} is here too: print(….summary(order=3).text())")
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def expect(name: str, value: Any) -> Coefficients:
    """Return coefficients; other objects raise `InputError`."""
    remedy = "Make them of arrays by kic.Coefficients(rows, columns, G, H, D)."
    return instance(name, value, Coefficients, remedy)


def tensor(name: str, value: Any, *shape: int) -> np.ndarray:
    """An array that ends in a shape; what the kernels made is not looked at twice."""
    if type(value) is np.ndarray and value.dtype.char in "dDO" and value.shape[-len(shape) :] == shape:
        return value
    return as_array(name, value, *shape, finite=False)


def _three(jet: jets.Tensors) -> tuple[Any, Any, Any]:
    """G, H and D, None for what is not there."""
    G, H, D = (*jet, None, None)[:3]
    return G, H, D


def _find(kind: str, names: str | Iterable[str], there: tuple[str, ...]) -> list[int]:
    """Return the places of names, or of all components of a part."""
    picked: list[int] = []
    for name in names_of(names, "names"):
        found = [i for i, x in enumerate(there) if x == name or x.startswith(f"{name}.")]
        if not found:
            raise unknown(kind, name, "these coefficients", there)
        picked += found
    return picked
