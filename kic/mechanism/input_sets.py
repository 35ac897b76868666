"""Input sets: sets of coordinates that can drive a mechanism, ranked by conditioning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.description.description import check_variable, given_names
from kic.errors import InputError, SingularError, batch_indices, short_repr
from kic.kinematics.outputs import make_rows
from kic.mechanism.configuration import Configuration, flat_states, model_of
from kic.numerics.arguments import integer, item, names_of
from kic.numerics.display import Printable, Summary
from kic.numerics.linalg import min_singular_value, null_space
from kic.numerics.tolerances import MEASURE_ATOL
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.input_selection import ALL_SETS_MAX, Ranking, ranking
from kic.transfer.mobility.mobility import Mobility
from kic.transfer.rank import RANK_SHARE


@dataclass(frozen=True)
class IndependentSet:
    """One set of coordinates and its conditioning.

    Attributes
    ----------
    names : tuple of str
        The coordinates, valid for ``wrt=``; those with a value also for `Mechanism.at`.
    worst, median : float
        Smallest and median measure over the configurations: smallest singular value of the scaled rows on the
        orthonormal motions that the closure allows. Between 0, where the set cannot drive the mechanism, and
        1 for joints.
    where : tuple of int
        Index of the worst configuration in the batch.
    """

    names: tuple[str, ...]
    worst: float
    median: float
    where: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class IndependentSets(Printable):
    """Sets of coordinates that can drive a mechanism, the best first. Made by `Mobility.independent_sets`.

    Iterable; ``sets[0].names`` is the best.

    Attributes
    ----------
    sets : tuple of IndependentSet
        Ranked by their smallest measure, then by the median.
    dof : int
        Number of coordinates in a set.
    of : tuple of str
        The candidates. Candidates without a value are included only if needed.
    always : tuple of str
        Candidates in every set. Each drives a motion, such as the spin of a link between two spherical
        joints, that no other candidate drives, or no other candidate with a value.
    tried, total : int
        Numbers of sets tried and of all sets. If these differ, a better one may exist.

    Examples
    --------
    >>> kic.load("four-bar").mobility().independent_sets(count=2).summary()
    four-bar: independent sets of 1 among A, B, C, D
    all 4 sets were tried
    <BLANKLINE>
    sets, by smallest singular value
         conditioning
      B       0.77989
      A       0.58492
    """

    _one_line = ("of", "always")

    sets: tuple[IndependentSet, ...]
    of: tuple[str, ...]
    always: tuple[str, ...]
    tried: int
    total: int
    _name: str
    _batch: tuple[int, ...]

    @property
    def dof(self) -> int:
        """Number of coordinates in a set."""
        return len(self.sets[0].names)

    def __iter__(self) -> Iterator[IndependentSet]:
        return iter(self.sets)

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, index: int) -> IndependentSet:
        return item(self.sets, index)

    def summary(self) -> Summary:
        """Return a labelled table of the sets."""
        among = ", ".join(self.of)
        sheet = Summary(f"{self._name}: independent sets of {self.dof} among {among}")
        if self.tried == self.total:
            sheet.say(f"all {self.total} sets were tried" if self.total > 1 else "there is no other set")
        else:
            sheet.say(
                f"{self.tried} of {self.total} sets were tried, by pivoted QR and exchange of single "
                "coordinates; a better one may exist"
            )
        if self.always and len(self.of) > self.dof:
            sheet.say(f"in every set: {', '.join(self.always)}")
        names = [", ".join(one.names) for one in self.sets]
        if self._batch:
            caption = f"sets, by smallest singular value in a batch {self._batch}"
            where = [str(one.where[0] if len(one.where) == 1 else one.where) for one in self.sets]
            numbers = [[f"{one.worst:.5g}", f"{one.median:.5g}"] for one in self.sets]
            cells = [[*pair, at] for pair, at in zip(numbers, where, strict=True)]
            sheet.texts(caption, names, ["worst", "median", "worst member"], cells)
        else:
            values = np.array([[one.worst] for one in self.sets])
            sheet.matrix("sets, by smallest singular value", names, ["conditioning"], values)
        return sheet


def independent_sets(
    mobility: Mobility,
    configuration: Configuration | None = None,
    *,
    of: str | Iterable[str] | None = None,
    count: int = 10,
) -> IndependentSets:
    """Find sets of coordinates that can drive the mechanism, the best conditioned first.

    Parameters
    ----------
    configuration : Configuration, optional
        A configuration, or a batch whose worst member counts; unsolved members are ignored. By default
        that of this account.
    of : str or list of str, optional
        Candidates: joints, points, distances, angles, body motion, or single rows of them; every row is
        a candidate. By default the coordinates of all joints, including cut joints, and distances and
        angles that are coordinates or actuators. Rows without a value, such as angular velocities of
        spherical joints, are used only for degrees of freedom that no other row determines.
    count : int
        Largest number of sets.

    Returns
    -------
    IndependentSets
        Iterable of sets, with a flag that is True if all sets were tried.

    Raises
    ------
    UnknownNameError, InputError
        If a name does not exist, there are too few candidates or no solved member, or the mechanism
        cannot move.
    SingularError
        If the configuration is a bifurcation, or no set of the candidates can drive the mechanism.

    Examples
    --------
    >>> m = kic.load("four-bar")
    >>> turn = m.path({"A": np.linspace(1, 1 + 2 * np.pi, 100)})
    >>> best = m.mobility().independent_sets(turn)[0]
    >>> best.names, round(best.worst, 2)
    (('A',), 0.58)
    """
    at = mobility._configuration if configuration is None else configuration
    return rank_sets(model_of(mobility), at, of, count)


def rank_sets(model: CompiledModel, at: Any, among: Any, count: Any) -> IndependentSets:
    """Rank candidate sets of coordinates; see `independent_sets`."""
    model.require_real("independent_sets()", "Call it outside of the sensitivity and name the coordinates.")
    name, dof = model.description.name, model.dof
    count = integer("count", count, 1)
    if not dof:
        caveat = model.description.mobility().caveat()
        raise InputError(
            f"'{name}' has mobility 0; no coordinates can drive it. {caveat}".rstrip(), mobility=0
        )
    labels, valued = _candidates(model, among)
    if len(labels) < dof:
        message = (
            f"`of` must name at least {dof} coordinates, the mobility of '{name}', got {len(labels)}: "
            f"{', '.join(labels) or 'none'}. Name more candidates, or omit `of` for all joints."
        )
        raise InputError(message, key="of", mobility=dof, count=len(labels))
    states, members, batch = _states_of(model, at)
    with batch_indices(members, batch):
        J = _rows_on_motions(model, labels, states, members, dof)
    found = ranking(J, valued, int(count), ALL_SETS_MAX)
    sufficient = found.measures.max(axis=1, initial=0.0) > MEASURE_ATOL
    if not sufficient.any():
        raise SingularError(
            f"No set of {dof} among {', '.join(labels)} can drive '{name}' here: while all of them are at "
            f"rest, {_unconstrained(model, labels, states)} can move. Name other candidates.",
            among=labels,
        )
    sets = tuple(
        IndependentSet(
            tuple(labels[n] for n in pick),
            float(x.min()),
            float(np.median(x)),
            tuple(int(i) for i in np.unravel_index(members[int(np.argmin(x))], batch)) if batch else (),
        )
        for pick, x in zip(found.picks[sufficient], found.measures[sufficient], strict=True)
    )
    always = tuple(labels[n] for n in found.pool if _is_indispensable(J, int(n), found, valued))
    among = tuple(labels[n] for n in found.pool)
    return IndependentSets(sets, among, always, found.tried, found.total, name, batch)


def _candidates(model: CompiledModel, among: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the rows that may be coordinates, and a mask of those with a value."""
    description, tree = model.description, model.tree
    if among is None:
        moving = [joint for joint in description.joints if joint.dof]
        # a free joint that is cut imposes no constraint
        names = tuple(j.name for j in moving if not (j in tree.cuts and j.type == "free"))
        own = {n for key in ("coordinates", "actuators") for n in given_names(description, key) or ()}
        names += tuple(name for name in description._variable_measures if name in own)
    else:
        names = names_of(among, "of")
    check_variable(description, names, "a coordinate")
    if not names:
        return (), np.zeros(0, dtype=bool)
    rows = make_rows(tree, names)
    value = dict(zip(rows.labels, rows.valued.tolist(), strict=True))
    return tuple(value), np.array(list(value.values()), dtype=bool)


def _states_of(model: CompiledModel, at: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return states (B, S), the members (B,) to which they belong, and the shape of the batch."""
    if at is None:
        return model.reference_state, np.zeros(1, dtype=np.intp), ()
    name = model.description.name
    if not isinstance(at, Configuration) or model_of(at).description != model.description:
        received = f", got {short_repr(at)}"
        if isinstance(at, Configuration):
            received = ", got one of " + (
                f"'{at.name}'" if at.name != name else "another mechanism of that name"
            )
        message = f"`configuration` must be a configuration of '{name}', made by at(){received}."
        raise InputError(message, key="configuration")
    if flat_states(at).dtype != np.float64:
        message = f"`configuration` must hold real numbers, got {flat_states(at).dtype}."
        raise InputError(message, key="configuration", got=flat_states(at).dtype)
    members = np.flatnonzero(at.ok)
    if not members.size:
        message = f"`configuration` must have at least one solved member, got none in the batch {at.batch}."
        raise InputError(message, key="configuration", got=at.batch)
    return flat_states(at)[members], members, at.batch


def _rows_on_motions(
    model: CompiledModel, labels: tuple[str, ...], states: np.ndarray, members: np.ndarray, dof: int
) -> np.ndarray:
    """Return the scaled coefficients (B, R, f) of rows in the motions that the closure allows."""
    closure = model.closure(labels)
    first = closure.transfer.size
    G = closure.rows(states)[1]
    if not np.isfinite(G).all():
        message = f"A distance among {', '.join(labels)} is zero here and has no derivatives. Leave it out."
        raise InputError(message, names=labels)
    closing = G[:, first:]
    held = model.tree.size - dof
    if held:
        sigma = np.linalg.svd(closing, compute_uv=False)
        bad = ~(sigma[:, held - 1] > RANK_SHARE * sigma[:, 0])
        if bad.any():
            listed = ", ".join(map(str, members[bad][:4])) + (", …" if bad.sum() > 4 else "")
            which = f" (members {listed} of the batch)" if len(members) > 1 else ""
            message = (
                f"Closure conditions of '{model.description.name}' are dependent at this "
                f"configuration{which}: it has more than {dof} degrees of freedom here, and no set of {dof} "
                "coordinates drives it. Choose configurations away from this bifurcation."
            )
            raise SingularError(message, dof=dof, failed=np.flatnonzero(bad).tolist())
    return G[:, :first] @ null_space(closing, dof)


def _is_indispensable(J: np.ndarray, n: int, found: Ranking, valued: np.ndarray) -> bool:
    """Return True if no set without row n of J (B, R, f) drives the mechanism at any configuration.

    Rows without a value replace only rows that no row with a value can replace; they do not replace row n.
    """
    rest = found.pool[found.pool != n]
    valued_rest = rest[valued[rest]]
    if len(rest) < J.shape[2] or len(valued_rest) < found.share:
        return True
    dependent = min_singular_value(J[:, rest]) <= MEASURE_ATOL
    dependent |= min_singular_value(J[:, valued_rest], found.share) <= MEASURE_ATOL
    return bool(dependent.all())


def _unconstrained(model: CompiledModel, labels: tuple[str, ...], states: np.ndarray) -> str:
    """Return the coordinates that can move at the first of several states while rows are at rest."""
    closure = model.closure(labels)
    return closure.transfer.unconstrained_coordinates(closure.rows(states[:1])[1][0])
